package mcpline

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executors
import java.util.concurrent.atomic.AtomicInteger
import kotlin.concurrent.thread
import kotlin.coroutines.CoroutineContext
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.Runnable
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.yield
import kotlinx.serialization.Serializable
import mcpline.ffi.Failure
import mcpline.ffi.Outcome

class HandlerCallsTest {
    @Serializable
    class Depth(val depth: Int)

    @Serializable
    class Text(val text: String)

    private fun echo(context: CoroutineContext? = null): Server {
        val features: Server.() -> Unit = {
            tool<Text>("echo") { it.text }
            tool<Text>("progress") {
                progress(1, 2, it.text)
                "$toolName: ${it.text}"
            }
        }
        return if (context == null) {
            server("calls", "1.0.0", features = features)
        } else {
            server("calls", "1.0.0", context = context, features = features)
        }
    }

    /** Waits until no call is running: their coroutines end after their outcomes. */
    private suspend fun awaitCalls() {
        while (HandlerCalls.runningCount > 0) delay(1)
    }

    @Test
    fun `handlers call tools of their own server`() = testing {
        lateinit var client: Client
        val server = server("calls", "1.0.0") {
            tool<Depth>("nested") {
                progress(it.depth)
                if (it.depth == 0) "0" else "${it.depth} ${client.callTool("nested", Depth(it.depth - 1)).text}"
            }
        }
        client = Client.memory(server)
        client.use { assertEquals("9 8 7 6 5 4 3 2 1 0", client.callTool("nested", Depth(9)).text) }
        awaitCalls()
    }

    @Test
    fun `many threads call at once and get their own results`() = testing {
        val threads = Executors.newFixedThreadPool(16).asCoroutineDispatcher()
        threads.use {
            for (context in listOf(null, threads)) {
                Client.memory(echo(context)).use { client ->
                    val texts = (0 until 800).map { number -> "$number é\uD83D\uDE00".repeat(number % 50 + 1) }
                    val results = coroutineScope {
                        texts.mapIndexed { number, text ->
                            val tool = if (number % 2 == 0) "echo" else "progress"
                            async(threads) { client.callTool(tool, Text(text)).text.removePrefix("progress: ") }
                        }.awaitAll()
                    }
                    assertEquals(texts, results)
                }
            }
        }
        awaitCalls()
    }

    @Test
    fun `threads that make calls may end`() = testing {
        Client.memory(echo()).use { client ->
            repeat(30) { round ->
                var text: String? = null
                thread { text = runBlocking { client.callTool("progress", Text("$round")).text } }.join()
                assertEquals("progress: $round", text)
            }
        }
        // Handlers on threads of which each ends after its task.
        val perTask = object : CoroutineDispatcher() {
            override fun dispatch(context: CoroutineContext, block: Runnable) {
                thread { block.run() }
            }
        }
        Client.memory(echo(perTask)).use { client ->
            repeat(30) { assertEquals("progress: $it", client.callTool("progress", Text("$it")).text) }
        }
        awaitCalls()
    }

    @Test
    fun `many clients get their own results and contexts`() = testing {
        val features: Server.() -> Unit = {
            tool<Text>("who") {
                // Half of them suspend, so that their contexts are used on other threads after other calls began.
                if (it.text.length % 2 == 0) repeat(it.text.length % 5) { yield() }
                "${auth?.subject ?: headers?.get("x-client")?.single()} $sessionId ${it.text}"
            }
        }
        val settings = ServerSettings(startupMessage = false)
        for (context in listOf(EmptyCoroutineContext, Dispatchers.IO)) {
            val server = server("calls", "1.0.0", settings = settings, context = context, features = features)
            val url = CompletableDeferred<String>()
            val serving = launch { server.runHttp(port = 0) { url.complete(it) } }
            val clients = (0 until 8).associate { number ->
                val name = "client $number"
                name to if (number % 2 == 0) {
                    Client.connect(url.await(), HttpClientOptions(headers = mapOf("x-client" to name))) {
                        this.settings = ClientSettings(revisions = listOf(if (number % 4 == 0) "2025-11-25" else "2026-07-28"))
                    }
                } else {
                    Client.over(Served(server, this, Caller(subject = name)))
                }
            }
            val sessions = coroutineScope {
                clients.map { (name, client) ->
                    async {
                        val answers = (0 until 100).map { number ->
                            async {
                                val text = "$number".repeat(number % 7 + 1)
                                val answer = client.callTool("who", Text(text)).text
                                assertTrue(answer.startsWith("$name ") && answer.endsWith(" $text"), "$name, $text: $answer")
                                answer.removePrefix("$name ").removeSuffix(" $text")
                            }
                        }
                        answers.awaitAll().toSet().single()
                    }
                }.awaitAll()
            }
            val ofSessions = sessions.filter { it != "null" }
            assertTrue(ofSessions.size >= 2, "$sessions")
            assertEquals(ofSessions.distinct(), ofSessions)
            clients.values.forEach { it.close() }
            server.close()
            serving.join()
        }
        awaitCalls()
    }

    @Test
    fun `a handler that blocks its thread delays no other call`() = testing {
        val release = CountDownLatch(1)
        val blocked = CompletableDeferred<Unit>()
        val server = server("calls", "1.0.0") {
            tool<Text>("echo") { it.text }
            tool<Text>("suspend") {
                yield()
                it.text
            }
            tool("block") {
                blocked.complete(Unit)
                release.await()
                "released"
            }
        }
        Client.memory(server).use { client ->
            val block = async(start = CoroutineStart.UNDISPATCHED) { client.callTool("block").text }
            try {
                // Those that arrive with it, those behind it, and those that arrive later.
                repeat(2) { round ->
                    val calls = (0 until 40).map { number ->
                        val tool = if (number % 2 == 0) "echo" else "suspend"
                        val text = "$round $number"
                        async { assertEquals(text, client.callTool(tool, Text(text)).text) }
                    }
                    calls.awaitAll()
                    blocked.await()
                }
                repeat(5) { assertEquals("$it", client.callTool("echo", Text("$it")).text) }
                assertFalse(block.isCompleted)
            } finally {
                release.countDown()
            }
            assertEquals("released", block.await())
        }
        awaitCalls()
    }

    @Test
    fun `calls in flight and calls that arrive while the server closes are answered`() = testing {
        for (context in listOf(EmptyCoroutineContext, Dispatchers.IO)) {
            val gate = CompletableDeferred<Unit>()
            val began = AtomicInteger()
            val settings = ServerSettings(startupMessage = false, shutdownTimeout = 30.seconds)
            val server = server("calls", "1.0.0", settings = settings, context = context) {
                tool<Text>("echo") { it.text }
                tool<Text>("gated") {
                    began.incrementAndGet()
                    gate.await()
                    it.text
                }
            }
            val url = CompletableDeferred<String>()
            val serving = launch { server.runHttp(port = 0) { url.complete(it) } }
            val clients = List(4) {
                Client.connect(url.await()) { this.settings = ClientSettings(reconnectAttempts = 0) }
            }
            val gated = clients.flatMap { client ->
                (0 until 10).map { number -> async { assertEquals("$number", client.callTool("gated", Text("$number")).text) } }
            }
            while (began.get() < gated.size) delay(1)
            val answered = AtomicInteger()
            // Each of them calls until the server does not accept calls any more.
            val callers = clients.flatMap { client ->
                (0 until 4).map { caller ->
                    async {
                        var number = 0
                        while (true) {
                            val text = "$caller ${number++}"
                            try {
                                assertEquals(text, client.callTool("echo", Text(text)).text)
                            } catch (_: McplineException) {
                                break
                            }
                            answered.incrementAndGet()
                        }
                    }
                }
            }
            while (answered.get() < 200) delay(1)
            server.close()
            callers.awaitAll()
            gate.complete(Unit)
            gated.awaitAll()
            serving.join()
            clients.forEach { it.close() }
        }
        awaitCalls()
    }

    @Test
    fun `exceptions end their call only`() = testing {
        class LoneSurrogate : RuntimeException() {
            override fun toString(): String = "secret \uD800"
        }

        class Unprintable : RuntimeException() {
            override fun toString(): String = throw this
        }

        for (context in listOf(EmptyCoroutineContext, Dispatchers.IO)) {
            val server = server("calls", "1.0.0", context = context) {
                tool<Text>("fail") {
                    if (it.text.startsWith("later")) yield()
                    when (it.text.substringAfterLast(' ')) {
                        "tool" -> throw ToolException("no")
                        "rpc" -> throw RpcException(-31000, "refused")
                        "stack" -> throw StackOverflowError()
                        "memory" -> throw OutOfMemoryError("secret")
                        "cancel" -> throw CancellationException("secret")
                        "surrogate" -> throw LoneSurrogate()
                        "unprintable" -> throw Unprintable()
                        else -> it.text
                    }
                }
            }
            Client.memory(server).use { client ->
                suspend fun check(text: String) {
                    if (text.endsWith("rpc")) {
                        assertEquals(-31000, assertFailsWith<RpcException> { client.callTool("fail", Text(text)) }.code)
                        return
                    }
                    val result = client.callTool("fail", Text(text))
                    when (text.substringAfterLast(' ')) {
                        "fine" -> assertEquals(text to false, result.text to (result.isError == true))
                        "tool" -> assertEquals("no" to true, result.text to result.isError)
                        else -> {
                            assertEquals(true, result.isError, text)
                            assertFalse("secret" in result.text)
                        }
                    }
                }
                val ends = listOf("fine", "tool", "rpc", "stack", "memory", "cancel", "surrogate", "unprintable")
                val texts = listOf("now", "later").flatMap { time -> ends.map { "$time $it" } }
                for (text in texts) check(text)
                // In one batch.
                coroutineScope { (0 until 160).map { async { check(texts[it % texts.size]) } }.awaitAll() }
            }
        }
        awaitCalls()
    }

    @Test
    fun `calls fail if the coroutines of the server are cancelled`() = testing {
        for (isCancelledBefore in listOf(true, false)) {
            val job = Job()
            val began = CompletableDeferred<Unit>()
            val server = server("calls", "1.0.0", context = job) {
                tool("wait") {
                    began.complete(Unit)
                    awaitCancellation()
                }
            }
            Client.memory(server).use { client ->
                if (isCancelledBefore) job.cancel()
                val result = async { client.callTool("wait") }
                if (!isCancelledBefore) {
                    began.await()
                    job.cancel()
                }
                assertEquals(true, result.await().isError)
            }
        }
        awaitCalls()
    }

    @Test
    fun `no code of the program runs on the I-O thread`() = testing {
        val threads = ConcurrentHashMap.newKeySet<String>()
        val dispatcher = object : CoroutineDispatcher() {
            override fun dispatch(context: CoroutineContext, block: Runnable) {
                threads += Thread.currentThread().name
                Dispatchers.Default.dispatch(context, block)
            }
        }
        for (context in listOf(null, dispatcher, Dispatchers.Unconfined)) {
            val began = CompletableDeferred<Unit>()
            val ended = CompletableDeferred<Unit>()
            val features: Server.() -> Unit = {
                tool("wait") {
                    threads += Thread.currentThread().name
                    began.complete(Unit)
                    try {
                        awaitCancellation()
                    } finally {
                        threads += Thread.currentThread().name
                        ended.complete(Unit)
                    }
                }
            }
            val server = context?.let { server("calls", "1.0.0", context = it, features = features) }
                ?: server("calls", "1.0.0", features = features)
            Client.memory(server).use { client ->
                val call = launch { client.callTool("wait") }
                began.await()
                call.cancelAndJoin()
                ended.await()
            }
        }
        assertTrue(threads.isNotEmpty())
        assertTrue(threads.none { "mcpline-io" in it }, "$threads")
        awaitCalls()
    }

    @Test
    fun `the library releases the handlers of features that are removed or refused`() = testing {
        class Unused : NumberedHandler {
            override suspend fun handle(arguments: String, call: HandlerCall): Outcome = error("not called")

            override fun failure(error: Throwable): Outcome = error("not called")
        }

        val server = echo()
        val definition = """{"name": "more", "inputSchema": {"type": "object"}}"""
        repeat(5) {
            val added = Unused()
            HandlerCalls.pass(added) { server.native.addNumberedFeature("tool", definition, null, it.toULong()) }
            assertTrue(HandlerCalls.isRegistered(added))
            val refused = Unused()
            assertFailsWith<Failure.Failed> {
                HandlerCalls.pass(refused) { server.native.addNumberedFeature("tool", definition, null, it.toULong()) }
            }
            assertFalse(HandlerCalls.isRegistered(refused))
            assertTrue(server.removeTool("more"))
            // The library reports it to another thread.
            while (HandlerCalls.isRegistered(added)) delay(1)
        }
    }
}
