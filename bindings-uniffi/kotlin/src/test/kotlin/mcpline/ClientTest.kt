package mcpline

import java.util.concurrent.CompletableFuture
import java.util.concurrent.TimeUnit
import kotlin.coroutines.Continuation
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.coroutines.startCoroutine
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertIs
import kotlin.test.assertNotNull
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineName
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject

class ClientTest {
    @Test
    fun `progress reports come in order, before the result, in the caller's context`() = testing {
        val server = server("progress", "1.0.0") {
            tool("report") {
                for (step in 1..3) progress(step, 3, "step $step")
                "done"
            }
        }
        Client.memory(server).use { client ->
            val reports = mutableListOf<Progress>()
            val names = mutableSetOf<String?>()
            val result = withContext(CoroutineName("mine")) {
                client.callTool("report") {
                    names += currentCoroutineContext()[CoroutineName]?.name
                    reports += it
                }
            }
            assertEquals("done", result.text)
            assertEquals((1..3).map { Progress(it.toDouble(), 3.0, "step $it") }, reports)
            assertEquals(setOf<String?>("mine"), names)
        }
    }

    @Test
    fun `a listener of progress that throws ends the call`() = testing {
        val server = server("progress", "1.0.0") {
            tool("report") {
                progress(1)
                awaitCancellation()
            }
        }
        Client.memory(server).use { client ->
            assertFailsWith<IllegalStateException> { client.callTool("report") { error("enough") } }
        }
    }

    @Test
    fun `notifications are a flow that ends with the client`() = testing {
        val server = server("notes", "1.0.0") {
            tool("note") {
                notify("acme/note", obj("""{"n": 1}"""))
                log(LogLevel.Warning, "careful", "fixture")
            }
        }
        val logged = CompletableDeferred<LogMessage>()
        Client.memory(server) { onLog { logged.complete(it) } }.use { client ->
            coroutineScope {
                val noted = async { client.notifications.first { it.method == "acme/note" } }
                while (!noted.isCompleted) {
                    client.callTool("note", options = RequestOptions(logLevel = LogLevel.Debug))
                }
                assertEquals(obj("""{"n": 1}"""), noted.await().params)
            }
            assertEquals("fixture", logged.await().logger)
            val collecting = async { client.notifications.toList() }
            while (!collecting.isCompleted) client.close()
            collecting.join()
        }
    }

    @Test
    fun `requests time out`() = testing {
        val server = server("slow", "1.0.0") { tool("wait") { awaitCancellation() } }
        Client.memory(server).use { client ->
            val error = assertFailsWith<RequestTimedOutException> {
                client.callTool("wait", options = RequestOptions(timeout = 20.milliseconds))
            }
            assertEquals(20.milliseconds, error.waited)
            assertTrue(error.outcomeUnknown)
            assertEquals("tools/call", error.operation)
        }
    }

    @Test
    fun `closing fails the requests in flight, and later ones`() = testing {
        val started = CompletableDeferred<Unit>()
        val server = server("slow", "1.0.0") {
            tool("wait") {
                started.complete(Unit)
                awaitCancellation()
            }
        }
        val client = Client.memory(server)
        coroutineScope {
            val call = launch { assertFailsWith<ClosedException> { client.callTool("wait") } }
            started.await()
            client.close()
            call.join()
        }
        assertFailsWith<ClosedException> { client.ping() }
        client.close()
    }

    @Test
    fun `input requests that are no longer needed are cancelled`() = testing {
        val asked = CompletableDeferred<Unit>()
        val cancelled = CompletableDeferred<Unit>()
        val server = server("asking", "1.0.0") { tool("ask") { elicitUrl(UrlElicitation("Go", "https://example.com/")).action } }
        Client.memory(server) {
            capabilities = obj("""{"elicitation": {"url": {}}}""")
            onElicit {
                asked.complete(Unit)
                try {
                    awaitCancellation()
                } finally {
                    cancelled.complete(Unit)
                }
            }
        }.use { client ->
            coroutineScope {
                val call = launch { client.callTool("ask") }
                asked.await()
                call.cancel()
            }
            cancelled.await()
        }
    }

    @Test
    fun `servers that cannot be reached or started are errors with a reason`() = testing {
        val unreachable = assertFailsWith<ServerUnreachableException> { Client.connect("http://127.0.0.1:9/mcp") }
        assertTrue(unreachable.retrySafe)
        assertEquals("connect", unreachable.operation)
        assertFailsWith<ServerUnreachableException> { Client.spawn("/no/such/program") }
        assertFailsWith<UsageException> {
            Client.connect("http://127.0.0.1:9/mcp") { settings = ClientSettings(revisions = emptyList()) }
        }
    }

    @Test
    fun `spawned programs report their end and their stderr`() = testing {
        val line = CompletableDeferred<String>()
        val error = assertFailsWith<McplineException> {
            Client.spawn("sh", "-c", "echo last words >&2; exit 3") { onStderr { line.complete(it) } }
        }
        assertIs<ServerExitedException>(error)
        assertEquals(listOf("last words"), error.stderr)
        assertEquals("last words", line.await())
        assertNotNull(error.exit)
    }

    @Test
    fun `extensions are declared, with handlers of their requests and result types`() = testing {
        val receipts = "com.example/receipts"
        val server = server("shop", "1.0.0", extensions = listOf(Extension(receipts, resultTypes = listOf("acme/receipt")))) {
            tool("declared") { clientExtension(receipts) }
            tool("buy") {
                requireExtension(receipts)
                ExtendedResult("acme/receipt", obj("""{"token": "t-1"}"""))
            }
            tool("pick") { request("acme/pick", obj("""{"from": [1, 2]}"""))["picked"] }
        }
        Client.memory(server) {
            extension(receipts, obj("""{"album": "blue"}""")) {
                onRequest("acme/pick") { obj("""{"picked": ${it["from"]}}""") }
                onResultType("acme/receipt") {
                    assertEquals("tools/call", it.method)
                    assertEquals(obj("""{"name": "buy", "arguments": {}}"""), JsonObject(it.params - "_meta"))
                    obj("""{"content": [{"type": "text", "text": ${it.result["token"]}}]}""")
                }
            }
        }.use { client ->
            assertEquals("""{"album":"blue"}""", client.callTool("declared").text)
            assertEquals("t-1", client.callTool("buy").text)
            assertEquals("[1,2]", client.callTool("pick").text)
        }
        Client.memory(server).use { client ->
            assertEquals(-32021, assertFailsWith<RpcException> { client.callTool("buy") }.code)
        }
        Client.memory(server) { extension(receipts) }.use { client ->
            assertFailsWith<InvalidResponseException> { client.callTool("buy") }
        }
    }

    @Test
    fun `changes of the connection are reported`() = testing {
        val states = mutableListOf<ConnectionEvent>()
        val closed = CompletableDeferred<Unit>()
        val client = Client.memory(server("a", "1")) {
            onConnection {
                states += it
                if (it == ConnectionEvent.Closed) closed.complete(Unit)
            }
        }
        client.close()
        closed.await()
        assertEquals(listOf(ConnectionEvent.Connected, ConnectionEvent.Closed), states)
    }

    @Test
    fun `structured content may be null, which is not the same as absent`() {
        val isNull = json.decodeFromString<CallToolResult>("""{"content": [], "structuredContent": null}""")
        assertEquals(JsonNull, isNull.structuredContent)
        assertEquals(null, isNull.data<Int?>())
        val absent = json.decodeFromString<CallToolResult>("{}")
        assertEquals(null, absent.structuredContent)
        assertFailsWith<InvalidResponseException> { absent.data<Int?>() }
        for (result in listOf(isNull, absent)) {
            assertEquals(result, json.decodeFromString<CallToolResult>(json.encodeToString(result)))
        }
    }

    @Test
    fun `a coroutine without a dispatcher does not continue on the thread of the library`() {
        val thread = CompletableFuture<String>()
        val calling = suspend {
            val server = server("plain", "1.0.0") { tool("tool") { "done" } }
            Client.memory(server).use { client ->
                client.callTool("tool")
                Thread.currentThread().name
            }
        }
        calling.startCoroutine(
            Continuation(EmptyCoroutineContext) { result ->
                result.fold(thread::complete, thread::completeExceptionally)
            },
        )
        val name = thread.get(60, TimeUnit.SECONDS)
        assertFalse(name.startsWith("mcpline"), name)
    }

    @Test
    fun `the reason of a refused tool call is not for another server`() = testing {
        val server = server("asking", "1.0.0") {
            tool("ask") { elicit("Sure?", obj("""{"type": "object", "properties": {}}""")).toString() }
        }
        val client = Client.memory(server) {
            settings = ClientSettings(revisions = listOf("2025-11-25"))
            onElicit { throw ToolCallRefusedException("for the user: 7c1f") }
        }
        client.use {
            val result = it.callTool("ask")
            assertEquals(true, result.isError)
            assertFalse("7c1f" in result.text, result.text)
        }
    }
}
