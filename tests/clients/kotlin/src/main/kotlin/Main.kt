// The everything-client in Kotlin. Its specification is ../../../../README.md.

import kotlin.system.exitProcess
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import mcpline.Client
import mcpline.ClientBuilder
import mcpline.ClientSettings
import mcpline.ElicitResult

private val LEGACY = listOf("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
private val MODERN = listOf("2026-07-28")

/** What the suite passes to a scenario. */
val context: JsonObject by lazy { Json.parseToJsonElement(System.getenv("MCP_CONFORMANCE_CONTEXT")).jsonObject }

/** Runs a scenario with a client that speaks its era. */
suspend fun connected(url: String, handlers: ClientBuilder.() -> Unit = {}, play: suspend (Client) -> Unit) {
    val revision = System.getenv("MCP_CONFORMANCE_PROTOCOL_VERSION") ?: ""
    val client = Client.connect(url) {
        name = "everything-client"
        version = "1.0.0"
        settings = ClientSettings(
            revisions = listOf(MODERN, LEGACY).firstOrNull { revision in it } ?: (LEGACY + MODERN),
            // The suite starts everything at once: a busy machine must not look like a server of another era.
            probeTimeout = 25.seconds,
            // Servers of the suite answer `tools/list` without declaring tools.
            allowUndeclaredCapabilities = true,
        )
        handlers()
    }
    client.use { play(it) }
}

private val listTools: suspend (String) -> Unit = { url -> connected(url) { it.listTools() } }

private val scenarios: Map<String, suspend (String) -> Unit> = mapOf(
    "initialize" to listTools,
    "json-schema-ref-no-deref" to listTools,
    "tools_call" to { url ->
        connected(url) {
            it.listTools()
            it.callTool("add_numbers", obj("""{"a":5,"b":3}"""))
        }
    },
    // Accepts without content, so that the form's defaults are used.
    "elicitation-sep1034-client-defaults" to { url ->
        connected(url, { onElicit { it.accept() } }) {
            it.listTools()
            it.callTool("test_client_elicitation_defaults")
        }
    },
    "sse-retry" to { url ->
        connected(url) {
            it.listTools()
            it.callTool("test_reconnection")
        }
    },
    "request-metadata" to { url -> connected(url, { onElicit { ElicitResult.Declined } }) { it.listTools() } },
    "sep-2322-client-request-state" to { url ->
        connected(url, { onElicit { it.accept(obj("""{"confirmed":true}""")) } }) { client ->
            client.listTools()
            for (kind in listOf("echo_state", "no_state", "unrelated", "no_result_type")) {
                client.callTool("test_mrtr_$kind")
            }
        }
    },
    "http-standard-headers" to { url ->
        connected(url) { client ->
            client.listTools().forEach { client.callTool(it.name) }
            client.listResources().forEach { client.readResource(it.uri) }
            client.listPrompts().forEach { client.getPrompt(it.name) }
        }
    },
    "http-custom-headers" to { url ->
        connected(url) { client ->
            client.listTools()
            for (call in context.getValue("toolCalls").jsonArray.map { it.jsonObject }) {
                client.callTool(call.getValue("name").jsonPrimitive.content, call.getValue("arguments").jsonObject)
            }
        }
    },
    // Calls all tools that are left in the list.
    "http-invalid-tool-headers" to { url ->
        connected(url) { client -> client.listTools().forEach { client.callTool(it.name, obj("""{"region":"eu"}""")) } }
    },
    "json-schema-2020-12-preservation" to { url ->
        connected(url) { client ->
            val tool = client.listTools().first { it.name == "json_schema_2020_12_tool" }
            client.callTool("json_schema_echo", JsonObject(mapOf("schema" to tool.inputSchema)))
        }
    },
) + AUTHORIZATION

fun main(arguments: Array<String>) {
    val url = arguments.singleOrNull()
    val name = System.getenv("MCP_CONFORMANCE_SCENARIO") ?: ""
    val scenario = scenarios[name]
    if (url == null || scenario == null) {
        System.err.println(if (url == null) "usage: everything-client URL" else "no scenario is named $name")
        exitProcess(2)
    }
    runBlocking { scenario(url) }
}
