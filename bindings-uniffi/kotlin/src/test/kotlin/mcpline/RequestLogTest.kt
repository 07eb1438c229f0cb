package mcpline

import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertTrue
import kotlin.time.Duration
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.launch
import kotlinx.serialization.json.JsonObject

class RequestLogTest {
    private val running = CompletableDeferred<Unit>()

    private fun weather() = server("weather", "1.0.0") {
        tool("works") { "sunny" }
        tool("refuses") { throw ToolException("not today") }
        tool("hangs") {
            running.complete(Unit)
            awaitCancellation()
        }
        tool("asks") { listRoots().size.toString() }
    }

    @Test
    fun `servers report each request when it has ended`() = testing {
        val records = Channel<RequestRecord>(Channel.UNLIMITED)
        val server = weather()
        server.onRequestEnd { records.send(it) }
        val client = Client.memory(server) {
            name = "host"
            settings = ClientSettings(revisions = listOf("2025-11-25"))
        }
        client.use {
            it.callTool("works")
            it.callTool("refuses")
            assertFailsWith<RpcException> { it.callTool("missing") }
            val hanging = launch { it.callTool("hangs") }
            running.await()
            hanging.cancelAndJoin()
        }
        val expected = listOf(
            "initialize  Ok null host",
            "tools/call works Ok null host",
            "tools/call refuses ToolError null host",
            "tools/call missing Error -32602 host",
            "tools/call hangs Cancelled null host",
        )
        val ended = expected.map { records.receive() }
        assertEquals(expected, ended.map { "${it.method} ${it.name} ${it.outcome} ${it.code} ${it.client}" })
        assertTrue(ended.all { it.duration >= Duration.ZERO && it.session == null && it.subject == null })
    }

    @Test
    fun `clients report the requests that they send and answer`() = testing {
        val records = Channel<ClientRequestRecord>(Channel.UNLIMITED)
        val client = Client.memory(weather()) {
            settings = ClientSettings(revisions = listOf("2025-11-25"))
            roots("file:///home")
            onRequestEnd { records.send(it) }
        }
        client.use {
            it.callTool("works")
            it.callTool("asks")
            assertFailsWith<RpcException> { it.callTool("missing") }
            val hanging = launch { it.callTool("hangs") }
            running.await()
            hanging.cancelAndJoin()
        }
        val expected = listOf(
            "Sent tools/call works Ok null null weather",
            "Received roots/list  Ok null null weather",
            "Sent tools/call asks Ok null null weather",
            "Sent tools/call missing Error rpc_error -32602 weather",
            "Sent tools/call hangs Cancelled null null weather",
        )
        val ended = expected.map { records.receive() }
        assertEquals(
            expected,
            ended.map { "${it.direction} ${it.method} ${it.name} ${it.outcome} ${it.errorKind} ${it.code} ${it.server}" },
        )
        assertTrue(ended.all { it.duration >= Duration.ZERO && it.address == null && it.session == null })
    }

    @Test
    fun `a listener that throws gets the next record`() = testing {
        val records = Channel<String>(Channel.UNLIMITED)
        val reported = Channel<String?>(Channel.UNLIMITED)
        val before = Thread.getDefaultUncaughtExceptionHandler()
        Thread.setDefaultUncaughtExceptionHandler { _, error -> reported.trySend(error.message) }
        try {
            val client = Client.memory(weather()) {
                onRequestEnd {
                    records.send(it.name)
                    error("the log of ${it.name}")
                }
            }
            client.use {
                it.callTool("works")
                it.request("tools/call", JsonObject(mapOf("name" to parsed("\"refuses\""))))
            }
            assertEquals(listOf("works", "refuses"), List(2) { records.receive() })
            assertEquals(listOf<String?>("the log of works", "the log of refuses"), List(2) { reported.receive() })
        } finally {
            Thread.setDefaultUncaughtExceptionHandler(before)
        }
    }
}
