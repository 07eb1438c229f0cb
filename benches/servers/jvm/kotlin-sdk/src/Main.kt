import io.ktor.server.cio.CIO
import io.ktor.server.engine.embeddedServer
import io.modelcontextprotocol.kotlin.sdk.server.Server
import io.modelcontextprotocol.kotlin.sdk.server.ServerOptions
import io.modelcontextprotocol.kotlin.sdk.server.StdioServerTransport
import io.modelcontextprotocol.kotlin.sdk.server.mcpStatelessStreamableHttp
import io.modelcontextprotocol.kotlin.sdk.server.mcpStreamableHttp
import io.modelcontextprotocol.kotlin.sdk.types.CallToolResult
import io.modelcontextprotocol.kotlin.sdk.types.Implementation
import io.modelcontextprotocol.kotlin.sdk.types.ServerCapabilities
import io.modelcontextprotocol.kotlin.sdk.types.TextContent
import io.modelcontextprotocol.kotlin.sdk.types.ToolSchema
import kotlinx.coroutines.Job
import kotlinx.io.asSink
import kotlinx.io.asSource
import kotlinx.io.buffered
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.put
import kotlinx.serialization.json.putJsonObject

private fun made(): Server {
    val capabilities = ServerCapabilities(tools = ServerCapabilities.Tools(listChanged = null))
    val server = Server(Implementation("bench", "1.0.0"), ServerOptions(capabilities))
    val properties = buildJsonObject { putJsonObject("text") { put("type", "string") } }
    server.addTool("echo", "Echo", ToolSchema(properties = properties, required = listOf("text"))) { request ->
        val text = request.arguments?.get("text")?.jsonPrimitive?.content ?: ""
        CallToolResult(listOf(TextContent(text)))
    }
    return server
}

/**
 * The official Kotlin server with an echo tool, over stdio, or over HTTP with `--http PORT`: without sessions, its fastest mode, or
 * in its default mode with `--sessions`.
 */
suspend fun main(arguments: Array<String>) {
    val http = arguments.indexOf("--http")
    if (http < 0) {
        val ended = Job()
        val session = made().createSession(StdioServerTransport(System.`in`.asSource().buffered(), System.out.asSink().buffered()))
        session.onClose { ended.complete() }
        ended.join()
    } else {
        embeddedServer(CIO, port = arguments[http + 1].toInt(), host = "127.0.0.1") {
            if ("--sessions" in arguments) mcpStreamableHttp { made() } else mcpStatelessStreamableHttp { made() }
        }.start(wait = true)
    }
}
