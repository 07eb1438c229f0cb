package mcpline

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.Executors
import kotlin.concurrent.thread
import kotlin.coroutines.CoroutineContext
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertTrue
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
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
    fun `exceptions end their call only`() = testing {
        class Unprintable : RuntimeException() {
            override fun toString(): String = "secret \uD800"
        }
        val server = server("calls", "1.0.0") {
            tool<Text>("fail") {
                when (it.text) {
                    "tool" -> throw ToolException("no")
                    "rpc" -> throw RpcException(-31000, "refused")
                    "error" -> throw StackOverflowError()
                    "surrogate" -> throw Unprintable()
                    else -> it.text
                }
            }
        }
        Client.memory(server).use { client ->
            repeat(20) {
                val failed = client.callTool("fail", Text("tool"))
                assertEquals("no" to true, failed.text to failed.isError)
                assertEquals(-31000, assertFailsWith<RpcException> { client.callTool("fail", Text("rpc")) }.code)
                for (text in listOf("error", "surrogate")) {
                    val broken = client.callTool("fail", Text(text))
                    assertEquals(true, broken.isError)
                    assertFalse("secret" in broken.text)
                }
                assertEquals("fine", client.callTool("fail", Text("fine")).text)
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
            override val scope: CoroutineScope get() = this@testing

            override val runsOnDefault: Boolean get() = false

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
