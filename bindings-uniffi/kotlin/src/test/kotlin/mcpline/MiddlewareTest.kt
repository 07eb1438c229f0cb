package mcpline

import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicInteger
import kotlin.io.path.createTempDirectory
import kotlin.io.path.readLines
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.launch
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

class MiddlewareTest {
    @Serializable
    class Words(val words: String)

    private fun archive(features: Server.() -> Unit) = server("archive", "1.0.0") {
        tool<Words>("lookup") { "pages about ${it.words}" }
        tool("fail") { throw ToolException("no") }
        tool("secret") { mapOf("iban" to "NO93", "city" to "Oslo") }
        resource("test://{id}", "page") { "page ${it["id"]}" }
        features()
    }

    @Test
    fun `middleware sees requests and their results, the first one outermost`() = testing {
        val seen = ConcurrentLinkedQueue<String>()
        val server = archive {
            middleware { request, next ->
                val result = next(request)
                seen += "${request.kind} ${request.method} ${request.name} ${result.isError} by ${client?.name}"
                result
            }
            middleware(MiddlewareScope(methods = listOf("tools/call"))) { request, next ->
                seen += "inner ${request.arguments}"
                next(request)
            }
        }
        Client.memory(server) { name = "tester" }.use { client ->
            client.listTools()
            assertEquals("pages about tea", client.callTool("lookup", Words("tea")).text)
            assertEquals("no", client.callTool("fail").text)
            client.readResource("test://1")
        }
        assertEquals(
            listOf(
                "Request tools/list null false by tester",
                """inner {"words":"tea"}""",
                "Request tools/call lookup false by tester",
                "inner {}",
                "Request tools/call fail true by tester",
                "Request resources/read test://1 false by tester",
            ),
            seen.toList(),
        )
    }

    @Test
    fun `middleware changes, repeats, answers and refuses requests`() = testing {
        val runs = AtomicInteger()
        val server = archive {
            tool("flaky") { if (runs.incrementAndGet() < 3) throw ToolException("again") else "done" }
            middleware(MiddlewareScope(tools = listOf("lookup"))) { request, next ->
                when (val words = request.arguments["words"]) {
                    JsonPrimitive("help") -> "Look up pages by words."
                    JsonPrimitive("blocks") -> listOf("a", TextContent("b"))
                    JsonPrimitive("whole") -> CallToolResult(listOf(TextContent("c")), isError = true)
                    JsonPrimitive("json") -> obj("""{"content": [{"type": "text", "text": "d"}]}""")
                    JsonPrimitive("nothing") -> throw ToolException("Say what to look up.")
                    JsonPrimitive("forbidden") -> throw RpcException(-31050, "no", JsonPrimitive("why"))
                    JsonPrimitive("broken") -> error("secret-7c1f")
                    JsonPrimitive("forgotten") -> Unit
                    else -> next(request.copy(arguments = JsonObject(mapOf("words" to JsonPrimitive("all $words")))))
                }
            }
            middleware(MiddlewareScope(tools = listOf("flaky"))) { request, next ->
                var result = next(request)
                while (result.isError) result = next(request)
                result
            }
            middleware(MiddlewareScope(methods = listOf("tools/list"))) { request, next ->
                val members = next(request).members
                val tools = (members.getValue("tools") as JsonArray).take(1)
                JsonObject(members + ("tools" to JsonArray(tools)))
            }
        }
        Client.memory(server).use { client ->
            val lookup: suspend (String) -> CallToolResult = { client.callTool("lookup", Words(it)) }
            assertEquals("pages about all \"tea\"", lookup("tea").text)
            assertEquals("Look up pages by words.", lookup("help").text)
            assertEquals("a\nb", lookup("blocks").text)
            assertEquals(CallToolResult(listOf(TextContent("c")), isError = true).content, lookup("whole").content)
            assertEquals("d", lookup("json").text)
            assertEquals(true, lookup("nothing").isError)
            val refused = assertFailsWith<RpcException> { lookup("forbidden") }
            assertEquals(-31050, refused.code)
            assertEquals(JsonPrimitive("why"), refused.data)
            for (words in listOf("broken", "forgotten")) {
                assertFalse("7c1f" in assertFailsWith<RpcException> { lookup(words) }.rpcMessage)
            }
            assertEquals("done", client.callTool("flaky").text)
            assertEquals(3, runs.get())
            assertEquals(listOf("lookup"), client.listTools().map { it.name })
        }
    }

    @Test
    fun `errors of requests reach middleware, and the client unchanged`() = testing {
        val codes = ConcurrentLinkedQueue<Long>()
        val server = archive {
            middleware(MiddlewareScope(kinds = listOf("resource"))) { request, next ->
                if (request.name == "gone://2") throw ResourceNotFoundException()
                try {
                    next(request)
                } catch (error: RpcException) {
                    codes += error.code
                    throw error
                }
            }
            resource("gone://{id}", "gone") { throw ResourceNotFoundException() }
        }
        Client.memory(server).use { client ->
            val error = assertFailsWith<RpcException> { client.readResource("gone://1") }
            assertEquals(listOf(error.code), codes.toList())
            val same = assertFailsWith<RpcException> { client.readResource("gone://2") }
            assertEquals(error.code, same.code)
            assertEquals(obj("""{"uri": "gone://2"}"""), same.data)
        }
    }

    @Test
    fun `middleware is cancelled with its request`() = testing {
        val started = CompletableDeferred<Unit>()
        val cancelled = CompletableDeferred<Unit>()
        val server = archive {
            tool("wait") {
                started.complete(Unit)
                awaitCancellation()
            }
            middleware(MiddlewareScope(tools = listOf("wait"))) { request, next ->
                try {
                    next(request)
                } catch (error: CancellationException) {
                    cancelled.complete(Unit)
                    throw error
                }
            }
        }
        Client.memory(server).use { client ->
            coroutineScope {
                val call = launch { client.callTool("wait") }
                started.await()
                call.cancel()
            }
            cancelled.await()
        }
    }

    @Test
    fun `middleware whose scope names them sees what handlers send`() = testing {
        val server = archive {
            tool("ask") { elicit<Words>("What?").contentOrNull?.words }
            tool("log") { log(LogLevel.Error, "dropped") }
            middleware(MiddlewareScope(methods = listOf("elicitation/create"))) { request, _ ->
                check(request.kind == MessageKind.InputRequest)
                obj("""{"action": "accept", "content": {"words": "tea"}}""")
            }
            middleware(MiddlewareScope(methods = listOf("notifications/message"))) { _, _ -> }
        }
        val logged = ConcurrentLinkedQueue<LogMessage>()
        Client.memory(server) {
            onElicit { error("not asked") }
            onLog { logged += it }
        }.use { client ->
            assertEquals("tea", client.callTool("ask").text)
            client.callTool("log", options = RequestOptions(logLevel = LogLevel.Debug))
        }
        assertTrue(logged.isEmpty())
    }

    @Test
    fun `the middleware of the library limits, records, hides and denies`() = testing {
        val log = createTempDirectory("mcpline-audit").resolve("audit.jsonl")
        val server = archive {
            addMiddleware(AuditLog(log.toString(), arguments = true, redact = listOf("words")), MiddlewareScope(methods = listOf("tools/call")))
            addMiddleware(RateLimit(1, period = 3600.seconds, per = listOf(LimitKey.Target)), MiddlewareScope(tools = listOf("lookup")))
            addMiddleware(Redaction(members = listOf("iban")))
            addMiddleware(ToolPolicy(denied = listOf("f*")))
        }
        Client.memory(server).use { client ->
            assertEquals(listOf("lookup", "secret"), client.listTools().map { it.name })
            assertEquals("""{"iban":"[redacted]","city":"Oslo"}""", client.callTool("secret").text)
            client.callTool("lookup", Words("tea"))
            assertEquals(-31000, assertFailsWith<RpcException> { client.callTool("lookup", Words("tea")) }.code)
            assertFailsWith<RpcException> { client.callTool("fail") }
        }
        val records = log.readLines()
        assertEquals(4, records.size)
        assertContains(records[1], """{"words":"[redacted]"}""")
    }

    @Test
    fun `every option of the library's middleware is accepted`() {
        val scope = MiddlewareScope(methods = listOf("tools/call"), names = listOf("lookup"), tags = listOf("a"), kinds = listOf("tool"))
        val path = createTempDirectory("mcpline-audit").resolve("audit.jsonl").toString()
        archive {
            for (
                middleware in listOf(
                    RateLimit(1, 2.seconds, 3, LimitKey.entries, "calls"),
                    ConcurrencyLimit(1, 2, LimitKey.entries),
                    ResponseCache(1.seconds, listOf("lookup"), 1000),
                    ResponseSizeLimit(1000, true, 2000, 3.seconds),
                    AuditLog(path, 1000, 2, true, true, listOf("a"), false),
                    Redaction(listOf("a"), listOf("[0-9]+"), "", true),
                    ToolPolicy(listOf("a*"), listOf("b"), listOf("c"), listOf("admin")),
                )
            ) {
                addMiddleware(middleware, scope)
            }
        }
        assertFailsWith<UsageException> { archive { addMiddleware(RateLimit(0)) } }
        assertFailsWith<UsageException> { archive { addMiddleware(AuditLog("")) } }
        assertFailsWith<UsageException> { archive { middleware(MiddlewareScope(methods = listOf("initialize"))) { it, next -> next(it) } } }
        assertFailsWith<UsageException> {
            archive { middleware(MiddlewareScope(tools = listOf("a"), prompts = listOf("b"))) { it, next -> next(it) } }
        }
    }

    @Test
    fun `the middleware of clients retries, records and replaces`() = testing {
        val runs = AtomicInteger()
        val log = createTempDirectory("mcpline-audit").resolve("client.jsonl")
        val server = archive {
            tool("busy") { if (runs.incrementAndGet() < 3) throw RpcException(-31000, "busy") else "done" }
        }
        Client.memory(server) {
            middleware = listOf(
                Retry(attempts = 3, firstDelay = 1.milliseconds),
                CircuitBreaker(),
                ClientToolPolicy(denied = listOf("f*")),
                AuditLog(log.toString()),
                Redaction(members = listOf("iban")),
            )
        }.use { client ->
            assertEquals("done", client.callTool("busy").text)
            assertEquals("""{"iban":"[redacted]","city":"Oslo"}""", client.callTool("secret").text)
            assertFailsWith<ToolCallRefusedException> { client.callTool("fail") }
        }
        assertEquals(3, runs.get())
        assertTrue(log.readLines().size >= 2)
    }

    @Test
    fun `every option of the middleware of clients is accepted`() = testing {
        val folder = createTempDirectory("mcpline-audit")
        Client.memory(archive { }) {
            middleware = listOf(
                Retry(2, 1.milliseconds, 1.seconds, listOf("lookup")),
                CircuitBreaker(2, 1.seconds),
                ClientToolPolicy(listOf("*"), listOf("b"), listOf("c"), true, folder.resolve("pins.json").toString()),
                AuditLog(folder.resolve("audit.jsonl").toString(), 1000, 2, true, true, listOf("a"), false),
                Redaction(listOf("a"), listOf("[0-9]+"), "", true),
            )
        }.use { it.listTools() }
        assertFailsWith<UsageException> { Client.memory(archive { }) { middleware = listOf(Retry(0)) } }
    }
}
