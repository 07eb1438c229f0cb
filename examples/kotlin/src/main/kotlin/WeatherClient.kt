import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import mcpline.Client
import mcpline.ClientBuilder

private fun ClientBuilder.handlers() {
    onElicit { asked ->
        println("The server asks: ${asked.message}")
        asked.accept(Booking("Oslo", 2))
    }
    onLog { println("${it.level}: ${it.data}") }
}

/** A client of the weather server: the arguments are its URL, or the command that starts it. */
suspend fun main(arguments: Array<String>) {
    val client = if (arguments.size == 1) {
        Client.connect(arguments[0]) { handlers() }
    } else {
        Client.spawn(arguments[0], *arguments.drop(1).toTypedArray()) { handlers() }
    }
    client.use {
        println("Connected to ${it.serverInfo?.name} with ${it.revision}")
        for (tool in it.listTools()) println("${tool.name}: ${tool.description}")
        val days = JsonObject(mapOf("city" to JsonPrimitive("Oslo"), "days" to JsonPrimitive(2)))
        val forecast = it.callTool("forecast", days) { report -> println(report.message) }
        println(forecast.structuredContent)
        println(it.callTool("book").text)
        println(it.readResource("city://Rome").text)
        println(it.getPrompt("trip", mapOf("city" to "Oslo")).messages.first().content)
    }
}
