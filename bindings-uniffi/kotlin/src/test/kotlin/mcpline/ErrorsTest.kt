package mcpline

import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertIs
import kotlin.test.assertNotNull
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.seconds
import kotlinx.serialization.json.jsonPrimitive
import mcpline.ffi.errorExamples

class ErrorsTest {
    private fun examples(): List<McplineException> = errorExamples().map { text ->
        val example = obj(text)
        val member = { name: String -> example.getValue(name).jsonPrimitive.content }
        McplineException.of(member("kind"), member("text"), member("facts"))
    }

    @Test
    fun `every kind has a class of its own`() {
        val examples = examples()
        val kinds = examples.map { it.kind }.toSet()
        assertEquals(examples.map { it::class }.toSet().size, kinds.size)
        assertEquals(errorExamples().map { obj(it).getValue("kind").jsonPrimitive.content }, examples.map { it.kind })
        assertTrue(examples.none { it is InternalException }, "a kind is not mapped")
        assertTrue(examples.all { !it.message.isNullOrEmpty() })
    }

    @Test
    fun `errors have their facts`() {
        val examples = examples()
        val timedOut = examples.filterIsInstance<RequestTimedOutException>().first()
        assertEquals(1.seconds, timedOut.waited)
        assertEquals("tools/call", timedOut.operation)
        assertTrue(timedOut.outcomeUnknown)
        val http = examples.filterIsInstance<HttpException>().single()
        assertEquals(401, http.status)
        assertEquals("Bearer", http.challenge)
        assertIs<RpcException>(http.cause)
        val exited = examples.filterIsInstance<ServerExitedException>().single()
        assertEquals("exit status: 1", exited.exit)
        assertEquals(listOf("last words"), exited.stderr)
        val unsupported = examples.filterIsInstance<NotSupportedException>().first { it.required != null }
        assertEquals(obj("""{"elicitation": {"form": {}}}""").keys, unsupported.required?.keys)
        assertEquals("unattended", examples.filterIsInstance<AuthorizationFailedException>().single().reason)
        assertNotNull(examples.filterIsInstance<RpcException>().firstOrNull { it.code == -32602L })
    }
}
