package mcpline

import java.util.concurrent.ConcurrentLinkedQueue
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonPrimitive

class ToolCallTest {
    @Serializable
    class Words(val words: String)

    @Test
    fun `hooks of the host consent to tool calls and get their outcomes`() = testing {
        val server = server("archive", "1.0.0") {
            tool<Words>("lookup") { "pages about ${it.words}" }
            tool("erase") { "erased" }
        }
        val outcomes = ConcurrentLinkedQueue<String>()
        Client.memory(server) {
            onToolCall {
                if (it.arguments["words"] == JsonPrimitive("secret")) throw ToolCallRefusedException("not without the user")
                if (it.name == "erase") error("broken hook")
            }
            onToolOutcome { outcomes += "${it.call.name}: ${it.result?.keys?.contains("content")} ${it.error?.kind}" }
        }.use { client ->
            assertEquals("pages about tea", client.callTool("lookup", Words("tea")).text)
            val refused = assertFailsWith<ToolCallRefusedException> { client.callTool("lookup", Words("secret")) }
            assertContains(refused.message ?: "", "not without the user")
            assertFailsWith<ToolCallRefusedException> { client.callTool("erase") }
        }
        val expected = listOf("lookup: true null", "lookup: null tool_call_refused", "erase: null tool_call_refused")
        assertEquals(expected, outcomes.toList())
    }
}
