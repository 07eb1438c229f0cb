package mcpline

import java.io.File
import java.net.InetSocketAddress
import java.net.ServerSocket
import java.util.concurrent.TimeUnit
import java.util.logging.Handler
import java.util.logging.LogRecord
import java.util.logging.Logger
import kotlin.io.path.createTempDirectory
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertIs
import kotlin.test.assertNull
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.yield
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

class ServerTest {
    @Serializable
    data class Forecast(@Description("The name of a city") val city: String, val days: Int = 1)

    @Serializable
    data class Weather(val city: String, val summary: String, val wind: Double? = null)

    @Serializable
    class Name(val name: String)

    @Test
    fun `tools have schemas of their arguments and return what handlers return`() = testing {
        val server = server("weather", "1.0.0", title = "Weather", instructions = "Ask by city.") {
            tool<Forecast>("text", "Forecast for a city") { "${it.city}: ${it.days}" }
            structuredTool<Forecast, Weather>("structured") { Weather(it.city, "sunny") }
            tool("image") { image(byteArrayOf(1, 2), "image/png") }
            tool("blocks") { listOf("a", TextContent("b")) }
            tool("data") { mapOf("a" to listOf(1, 2)) }
            tool("class") { Weather("Oslo", "sunny", 1.5) }
            tool("nothing") { }
            tool("result") { CallToolResult(listOf(TextContent("no")), isError = true) }
        }
        Client.memory(server).use { client ->
            assertEquals("Weather", client.serverInfo?.title)
            assertEquals("Ask by city.", client.instructions)
            val tool = client.listTools().first()
            assertEquals(jsonSchema<Forecast>(), tool.inputSchema)
            assertEquals("Oslo: 2", client.callTool("text", Forecast("Oslo", 2)).text)
            val structured = client.callTool("structured", Forecast("Oslo"))
            assertEquals(Weather("Oslo", "sunny"), structured.data<Weather>())
            val image = client.callTool("image").content.single()
            assertIs<ImageContent>(image)
            assertEquals(listOf<Byte>(1, 2), image.bytes().toList())
            assertEquals("a\nb", client.callTool("blocks").text)
            assertEquals("""{"a":[1,2]}""", client.callTool("data").text)
            assertEquals("""{"city":"Oslo","summary":"sunny","wind":1.5}""", client.callTool("class").text)
            assertTrue(client.callTool("nothing").content.isEmpty())
            assertEquals(true, client.callTool("result").isError)
        }
    }

    @Test
    fun `invalid arguments are refused before the handler`() = testing {
        val server = server("weather", "1.0.0") {
            tool<Forecast>("forecast") { error("not called") }
            tool<Forecast>("range") { error("not called") }
        }
        Client.memory(server).use { client ->
            val refused = client.callTool("forecast", obj("""{"days": 2}"""))
            assertEquals(true, refused.isError)
            assertContains(refused.text, "city")
            // It matches the schema, but not the type.
            val beyond = client.callTool("range", obj("""{"city": "Oslo", "days": 3000000000}"""))
            assertEquals(true, beyond.isError)
            assertFalse("not called" in beyond.text)
        }
    }

    @Test
    fun `failures of handlers are for the model, the client or the log`() = testing {
        val server = server("failures", "1.0.0") {
            tool("tool") { throw ToolException("try again") }
            tool("rpc") { throw RpcException(-31050, "no", JsonPrimitive("why")) }
            tool("secret") { error("secret-7c1f") }
            tool("timeout") { withTimeout(1.milliseconds) { awaitCancellation() } }
            tool("fatal") { throw StackOverflowError("deep") }
            resource("test://{id}", "missing") { throw ResourceNotFoundException() }
        }
        Client.memory(server).use { client ->
            assertEquals("try again", client.callTool("tool").text)
            val error = assertFailsWith<RpcException> { client.callTool("rpc") }
            assertEquals(-31050, error.code)
            assertEquals("no", error.rpcMessage)
            assertEquals(JsonPrimitive("why"), error.data)
            for (name in listOf("secret", "timeout", "fatal")) {
                val failed = client.callTool(name)
                assertEquals(true, failed.isError, name)
                assertFalse("7c1f" in failed.text, failed.text)
            }
            assertFailsWith<RpcException> { client.readResource("test://1") }
        }
    }

    @Test
    fun `failures of handlers are logged`() = testing {
        val logged = CompletableDeferred<String>()
        val logger = Logger.getLogger("mcpline")
        val handler = object : Handler() {
            override fun publish(record: LogRecord) {
                if ("secret-4e0a" in record.message) logged.complete(record.message)
            }

            override fun flush() = Unit

            override fun close() = Unit
        }
        logger.addHandler(handler)
        try {
            val server = server("failures", "1.0.0") { tool("secret") { error("secret-4e0a") } }
            Client.memory(server).use { it.callTool("secret") }
            assertContains(logged.await(), "IllegalStateException")
        } finally {
            logger.removeHandler(handler)
        }
    }

    @Test
    fun `resources and templates are read`() = testing {
        val server = server("files", "1.0.0") {
            resource("config://units", "units", mimeType = "text/plain") { "Celsius" }
            resource("blob://a", "a", mimeType = "image/png") { byteArrayOf(1) }
            resource("city://{name}", "city", mimeType = "application/json") { mapOf("name" to it["name"]) }
            completion("city://{name}", "name", listOf("Bergen", "Oslo"))
        }
        Client.memory(server).use { client ->
            assertEquals("Celsius", client.readResource("config://units").text)
            assertEquals(listOf<Byte>(1), client.readResource("blob://a").contents.single().bytes().toList())
            val city = client.readResource("city://Oslo").contents.single()
            assertEquals("""{"name":"Oslo"}""", city.text)
            assertEquals("application/json", city.mimeType)
            assertEquals(listOf("config://units", "blob://a"), client.listResources().map { it.uri })
            assertEquals("city://{name}", client.listResourceTemplates().single().uriTemplate)
            assertEquals(listOf("Oslo"), client.completeResource("city://{name}", "name", "O").values)
            assertTrue(server.removeResource("config://units"))
            assertFailsWith<RpcException> { client.readResource("config://units") }
        }
    }

    @Test
    fun `templates list resources`() = testing {
        val server = server("logs", "1.0.0") {
            resource(
                "log://{day}",
                "log",
                cache = CacheHint(60_000, isPublic = true),
                list = { listOf("log://monday", Resource("log://$revision", "today"), "other://monday") },
            ) { "on ${it["day"]}" }
            resource("log://all", "all") { "everything" }
        }
        Client.memory(server).use { client ->
            val uris = client.listResources().map { it.uri }
            assertEquals(listOf("log://all", "log://monday", "log://2026-07-28"), uris)
            val log = client.readResource("log://monday")
            assertEquals("on monday", log.text)
            assertEquals(60_000, log.ttlMs)
            assertEquals("public", log.cacheScope)
            server.notifyResourceListChanged()
            server.removeResource("log://{day}")
            assertEquals(listOf("log://all"), client.listResources().map { it.uri })
        }
        assertFailsWith<UsageException> {
            server("logs", "1.0.0") { resource("log://all", "all", list = { listOf("log://monday") }) { "" } }
        }
    }

    @Serializable
    class Plan(@Description("Where to") val city: String, val days: Int = 1)

    @Test
    fun `prompts convert their arguments`() = testing {
        val server = server("plans", "1.0.0") {
            prompt<Plan>("plan", "Plan a day") { "Plan ${it.days} day(s) in ${it.city}." }
            prompt("talk") { listOf("2 + 2?", PromptMessage(Role.Assistant, TextContent("4"))) }
            completion("plan", "city") { value, others -> listOf("$value of ${others["days"]}") }
        }
        Client.memory(server).use { client ->
            val plan = client.getPrompt("plan", mapOf("city" to "Oslo", "days" to "3"))
            assertEquals(TextContent("Plan 3 day(s) in Oslo."), plan.messages.single().content)
            val arguments = client.listPrompts().first().arguments
            assertEquals(listOf(PromptArgument("city", "Where to", true), PromptArgument("days", null, false)), arguments)
            assertEquals(listOf(Role.User, Role.Assistant), client.getPrompt("talk").messages.map { it.role })
            val error = assertFailsWith<RpcException> { client.getPrompt("plan", mapOf("city" to "a", "days" to "b")) }
            assertEquals(-32602, error.code)
            val completed = client.completePrompt("plan", "city", "Os", mapOf("days" to "3"))
            assertEquals(listOf("Os of 3"), completed.values)
        }
    }

    @Test
    fun `handlers ask the user, the model and the host`() = testing {
        val server = server("asking", "1.0.0") {
            tool("elicit") {
                when (val answer = elicit<Name>("Who?")) {
                    is ElicitResult.Accepted -> "Hello, ${answer.content.name}"
                    else -> answer.action
                }
            }
            tool("sample") { sample(CreateMessageParams(listOf(SamplingMessage(Role.User, "Hi")), 10)).text }
            tool("roots") { listRoots().map { it.uri } }
            tool("url") { elicitUrl(UrlElicitation("Go", "https://example.com/", "a")).action }
        }
        Client.memory(server) {
            onElicit { if (it.url == null) it.accept(Name("Ada")) else ElicitResult.Declined }
            onSample { CreateMessageResult(Role.Assistant, listOf(TextContent("Hm.")), "none") }
            roots("file:///home/ada")
            capabilities = obj("""{"elicitation": {"form": {}, "url": {}}}""")
        }.use { client ->
            assertEquals("Hello, Ada", client.callTool("elicit").text)
            assertEquals("Hm.", client.callTool("sample").text)
            assertEquals("file:///home/ada", client.callTool("roots").text)
            assertEquals("decline", client.callTool("url").text)
        }
        Client.memory(server).use { client ->
            assertFailsWith<RpcException> { client.callTool("elicit") }
        }
    }

    @Test
    fun `handlers return input requests`() = testing {
        val server = server("asking", "1.0.0") {
            tool("greet") {
                val name = (inputResponses?.get("name") as? JsonObject)?.get("content") as? JsonObject
                if (name == null) inputRequired(state = "s") { elicit<Name>("name", "Who?") } else "$requestState $name"
            }
        }
        Client.memory(server) { onElicit { it.accept(Name("Ada")) } }.use { client ->
            assertEquals("""s {"name":"Ada"}""", client.callTool("greet").text)
        }
    }

    @Test
    fun `a cancelled request cancels the coroutine of its handler`() = testing {
        val started = CompletableDeferred<Unit>()
        val cancelled = CompletableDeferred<Thread>()
        val server = server("slow", "1.0.0") {
            tool("wait") {
                started.complete(Unit)
                try {
                    awaitCancellation()
                } finally {
                    cancelled.complete(Thread.currentThread())
                }
            }
        }
        Client.memory(server).use { client ->
            coroutineScope {
                val call = launch { client.callTool("wait") }
                started.await()
                call.cancelAndJoin()
            }
            assertFalse("mcpline-io" in cancelled.await().name, "handlers don't run on the I/O thread")
        }
    }

    @Test
    fun `contexts cannot be used after their handler`() = testing {
        var kept: CallContext? = null
        val server = server("kept", "1.0.0") { tool("keep") { kept = this } }
        Client.memory(server).use { it.callTool("keep") }
        assertFailsWith<ClosedException> { kept?.progress(1) }
    }

    @Test
    fun `custom requests and notifications are handled`() = testing {
        val noted = CompletableDeferred<String>()
        val server = server("custom", "1.0.0") {
            request<Name>("acme/greet") { mapOf("greeting" to "Hello, ${it.name}") }
            notification<Name>("acme/note") { noted.complete(it.name) }
            tool("pick") { request("acme/pick", obj("""{"from": [1, 2]}"""))["picked"].toString() }
        }
        Client.memory(server) { onRequest("acme/pick") { JsonObject(mapOf("picked" to it.getValue("from"))) } }.use { client ->
            val greeting = client.request("acme/greet", obj("""{"name": "Ada"}"""))
            assertEquals(JsonPrimitive("Hello, Ada"), greeting["greeting"])
            assertFailsWith<RpcException> { client.request("acme/greet", obj("{}")) }
            client.notify("acme/note", obj("""{"name": "Bob"}"""))
            assertEquals("Bob", noted.await())
            assertEquals("[1,2]", client.callTool("pick").text)
        }
    }

    @Test
    fun `a lifespan surrounds serving, and closing ends it`() = testing {
        val events = mutableListOf<String>()
        val server = server("span", "1.0.0", settings = ServerSettings(startupMessage = false)) {
            lifespan { serve ->
                events += "open"
                serve()
                events += "closed"
            }
            tool("ping") { "pong" }
        }
        val url = CompletableDeferred<String>()
        val serving = launch { server.runHttp(port = 0) { url.complete(it) } }
        Client.connect(url.await()).use { client ->
            assertEquals("pong", client.callTool("ping").text)
        }
        server.close()
        serving.join()
        assertEquals(listOf("open", "closed"), events)
    }

    @Test
    fun `cancelling the coroutine stops serving`() = testing {
        val server = server("stop", "1.0.0", settings = ServerSettings(startupMessage = false)) {
            tool("headers") { headers?.get("x-fixture").toString() }
        }
        val url = CompletableDeferred<String>()
        val serving = launch { server.runHttp(port = 0) { url.complete(it) } }
        val http = HttpClientOptions(headers = mapOf("x-fixture" to "a"))
        Client.connect(url.await(), http).use { assertEquals("[a]", it.callTool("headers").text) }
        serving.cancelAndJoin()
        assertFailsWith<ServerUnreachableException> { Client.connect(url.await()) }
    }

    @Test
    fun `a coroutine that is cancelled while the server starts leaves no listener`() = testing {
        val server = server("stop", "1.0.0", settings = ServerSettings(startupMessage = false)) { tool("ping") { "pong" } }
        val port = ServerSocket(0).use { it.localPort }
        repeat(200) {
            val serving = launch(Dispatchers.Default) { runCatching { server.runHttp(port) } }
            repeat(it % 20) { yield() }
            serving.cancelAndJoin()
        }
        // The last one may still be ending.
        while (runCatching { ServerSocket().use { it.bind(InetSocketAddress("127.0.0.1", port)) } }.isFailure) delay(10)
    }

    @Test
    fun `clients connect to a Unix socket`() = testing {
        val folder = createTempDirectory("mcpline")
        val path = folder.resolve("socket").toString()
        val server = server("unix", "1.0.0", settings = ServerSettings(startupMessage = false)) { tool("ping") { "pong" } }
        val ready = CompletableDeferred<Unit>()
        val serving = launch { server.runUnix(path, UnixSettings(mode = "0600", maxConnections = 2)) { ready.complete(Unit) } }
        ready.await()
        Client.socket(path).use { assertEquals("pong", it.callTool("ping").text) }
        server.close()
        serving.join()
        folder.toFile().deleteRecursively()
    }

    @Test
    fun `wrong use is refused with a reason`() {
        val settings = ServerSettings(clientShare = 2.0)
        assertContains(assertFailsWith<UsageException> { server("a", "1", settings = settings) }.message ?: "", "client_share")
        assertFailsWith<UsageException> {
            server("a", "1") {
                tool("twice") { }
                tool("twice") { }
            }
        }
        val server = server("a", "1")
        assertFalse(server.removeTool("none"))
        assertNull(server.stats["none"])
    }

    @Test
    fun `lone surrogates are replaced`() = testing {
        val server = server("text", "1.0.0") {
            tool<Name>("echo") { it.name + "\uD800" }
            tool("log") { log(LogLevel.Info, "\uDC00") }
        }
        Client.memory(server).use { client ->
            assertEquals("😀\uFFFD\uFFFD", client.callTool("echo", Name("😀\uD800")).text)
            client.callTool("log")
        }
    }

    @Test
    fun `tools added later are announced`() = testing {
        val server = server("later", "1.0.0") { tool("first") { } }
        val changed = CompletableDeferred<Unit>()
        Client.memory(server) {
            onNotification { if (it.method == "notifications/tools/list_changed") changed.complete(Unit) }
        }.use { client ->
            assertEquals(1, client.listTools().size)
            while (!changed.isCompleted) {
                // The subscription may begin after a change.
                server.tool("later") { }
                delay(20.milliseconds)
                server.removeTool("later")
            }
        }
    }

    @Test
    fun `handlers that are cancelled clean up before the end of the lifespan`() = testing {
        val order = mutableListOf<String>()
        val started = CompletableDeferred<Unit>()
        val server = server("cleaning", "1.0.0", settings = ServerSettings(shutdownTimeout = 0.milliseconds)) {
            lifespan { serve ->
                serve()
                order += "lifespan"
            }
            tool("wait") {
                started.complete(Unit)
                try {
                    awaitCancellation()
                } finally {
                    withContext(NonCancellable) { delay(20) }
                    order += "handler"
                }
            }
        }
        val url = CompletableDeferred<String>()
        val serving = launch { server.runHttp(0) { url.complete(it) } }
        Client.connect(url.await()).use { client ->
            val calling = launch { assertFailsWith<McplineException> { client.callTool("wait") } }
            started.await()
            server.close()
            serving.join()
            calling.join()
        }
        assertEquals(listOf("handler", "lifespan"), order)
    }

    @Test
    fun `a server that is closed while it starts ends`() = testing {
        val opening = CompletableDeferred<Unit>()
        val opened = CompletableDeferred<Unit>()
        val server = server("starting", "1.0.0") {
            lifespan { serve ->
                opening.complete(Unit)
                opened.await()
                serve()
            }
        }
        val run = launch { server.runHttp(0) { error("it listens at $it") } }
        opening.await()
        server.close()
        opened.complete(Unit)
        run.join()
        assertFalse(run.isCancelled)
    }

    @Test
    fun `a program may end the JVM once its server listens`() {
        val java = File(System.getProperty("java.home"), "bin/java").path
        val path = System.getProperty("surefire.test.class.path") ?: System.getProperty("java.class.path")
        val program = ProcessBuilder(java, "-cp", path, "mcpline.EndingProgramKt").inheritIO().start()
        try {
            assertTrue(program.waitFor(60, TimeUnit.SECONDS), "the JVM does not end")
            assertEquals(3, program.exitValue())
        } finally {
            program.destroyForcibly()
        }
    }
}
