import kotlinx.serialization.Serializable
import mcpline.server

/** What is echoed. */
@Serializable
class Echo(val text: String)

/** mcpline for Kotlin serving an echo tool over stdio, or over HTTP with `--http PORT`. */
suspend fun main(arguments: Array<String>) {
    val server = server("bench", "1.0.0") {
        tool<Echo>("echo", "Echo") { it.text }
        tool<Echo>("echo_stream", "Echo after a progress notification") {
            progress(1)
            it.text
        }
    }
    val http = arguments.indexOf("--http")
    if (http < 0) server.run() else server.runHttp(arguments[http + 1].toInt())
}
