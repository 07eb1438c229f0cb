// Tools about the caller, and tools that change the server's features.

import java.util.concurrent.atomic.AtomicInteger
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonObject
import mcpline.Server

@Serializable
class RequestInfo(val revision: String, val client: String, val capabilities: String, val header: String)

private const val WATCHED = "test://watched-resource"
private val version = AtomicInteger(1)

fun Server.addCallerTools(): Unit =
    structuredTool<JsonObject, RequestInfo>("test_request_info", "Tells what it knows of the request") {
        RequestInfo(
            revision,
            client?.let { "${it.name} ${it.version}" } ?: "none",
            clientCapabilities.keys.sorted().joinToString(","),
            headers?.get("x-fixture")?.first() ?: "none",
        )
    }

fun Server.addChangingTools() {
    val server = this
    tool("test_update_resource", "Changes the watched resource") {
        val changed = version.incrementAndGet()
        server.notifyResourceUpdated(WATCHED)
        "version $changed"
    }
    tool("test_trigger_tool_change", "Adds a tool, or removes it") {
        if (server.removeTool("test_dynamic_tool")) {
            "removed"
        } else {
            server.tool("test_dynamic_tool", "A tool that comes and goes") { "dynamic" }
            "added"
        }
    }
    tool("test_trigger_prompt_change", "Adds a prompt, or removes it") {
        if (server.removePrompt("test_dynamic_prompt")) {
            "removed"
        } else {
            server.prompt("test_dynamic_prompt", "A prompt that comes and goes") { "dynamic" }
            "added"
        }
    }
    tool("test_trigger_resource_change", "Adds a resource, or removes it") {
        val uri = "test://dynamic-resource"
        if (server.removeResource(uri)) {
            "removed"
        } else {
            server.resource(uri, "dynamic-resource", "A resource that comes and goes") { "dynamic" }
            "added"
        }
    }
}

fun Server.addWatchedResource(): Unit =
    resource(WATCHED, "watched-resource", "A text that changes", "text/plain") {
        "Watched resource, version ${version.get()}"
    }
