package mcpline

import java.util.concurrent.ArrayBlockingQueue
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executor
import java.util.concurrent.ExecutorService
import java.util.concurrent.Executors
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.atomic.AtomicReference
import kotlin.coroutines.CoroutineContext
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Runnable
import kotlinx.coroutines.ThreadContextElement
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.int
import kotlinx.serialization.json.jsonPrimitive
import mcpline.ffi.Outcome

/** Longer than a leader may wait for a thread. */
private const val MINUTE_NANOS = 60_000_000_000L

class HandlerQueueTest {
    @Serializable
    class Text(val text: String)

    private val started = ConcurrentLinkedQueue<String>()

    private fun server(context: CoroutineContext): Server {
        val settings = ServerSettings(startupMessage = false)
        return server("queue", "1.0.0", settings = settings, context = context) {
            tool<Text>("start") {
                started += it.text
                it.text
            }
        }
    }

    /** Runs a test on threads that are not those of handlers. */
    private fun testing(test: suspend CoroutineScope.() -> Unit): Unit = runBlocking { withTimeout(60.seconds, test) }

    /** Threads of handlers that are blocked until it is opened. */
    private inner class Gate(val context: CoroutineContext, val threads: Int, dispatch: (Runnable) -> Unit) : AutoCloseable {
        private val latch = CountDownLatch(1)

        init {
            val blocked = CountDownLatch(threads)
            repeat(threads) {
                dispatch {
                    blocked.countDown()
                    latch.await()
                }
            }
            blocked.await()
        }

        override fun close() = latch.countDown()
    }

    private fun defaultGate(): Gate {
        // What kotlinx.coroutines documents.
        val threads = maxOf(2, Runtime.getRuntime().availableProcessors())
        return Gate(EmptyCoroutineContext, threads) { Dispatchers.Default.dispatch(EmptyCoroutineContext, it) }
    }

    private fun executorGate(executor: ExecutorService, threads: Int) =
        Gate(executor.asCoroutineDispatcher(), threads) { executor.execute(it) }

    /** Runs a test with each kind of context. */
    private fun withGates(test: suspend CoroutineScope.(Gate) -> Unit) {
        testing { defaultGate().use { test(it) } }
        for (threads in listOf(1, 4)) {
            val executor = Executors.newFixedThreadPool(threads)
            try {
                testing { executorGate(executor, threads).use { test(it) } }
            } finally {
                executor.shutdown()
            }
        }
    }

    private suspend fun awaitInFlight(server: Server, count: Int) {
        while (server.stats.getValue("requests_in_flight").jsonPrimitive.int != count) delay(1)
    }

    private fun CoroutineScope.start(client: Client, text: String) = async(start = CoroutineStart.UNDISPATCHED) {
        client.callTool("start", Text(text)).text
    }

    @Test
    fun `clients take turns when threads become free`() = withGates { gate ->
        started.clear()
        val otherBegan = CountDownLatch(1)
        val server = server(gate.context).apply {
            tool("busy") {
                started += "busy"
                // If the busy client had all threads, the call of the other one would never begin.
                if (gate.threads > 1) otherBegan.await()
                "busy"
            }
            tool("other") {
                started += "other"
                otherBegan.countDown()
                "other"
            }
        }
        val (busy, other) = List(2) { Client.memory(server) }
        val calls = List(1000) { async(start = CoroutineStart.UNDISPATCHED) { busy.callTool("busy").text } }
        awaitInFlight(server, calls.size)
        // They are in the library: nothing of them is in the JVM.
        assertEquals(0, HandlerCalls.runningCount)
        val call = async(start = CoroutineStart.UNDISPATCHED) { other.callTool("other").text }
        awaitInFlight(server, calls.size + 1)
        gate.close()
        assertEquals("other", call.await())
        calls.awaitAll()
        assertTrue(started.indexOf("other") < gate.threads.coerceAtLeast(2), "$started")
        busy.close()
        other.close()
    }

    @Test
    fun `calls that are cancelled before their handlers begin never begin, and nothing of them is left`() = withGates { gate ->
        started.clear()
        val server = server(gate.context)
        Client.memory(server).use { client ->
            val calls = (0 until 100).map { start(client, "$it") }
            awaitInFlight(server, calls.size)
            calls.filterIndexed { number, _ -> number % 2 == 0 }.forEach { it.cancelAndJoin() }
            // The answer follows the cancellations.
            client.listTools()
            gate.close()
            calls.forEachIndexed { number, call -> if (number % 2 == 1) assertEquals("$number", call.await()) }
            assertEquals("last", start(client, "last").await())
        }
        assertEquals((1 until 100 step 2).map { "$it" } + "last", started.sortedBy { it.toIntOrNull() ?: 100 })
        while (HandlerCalls.runningCount > 0) delay(1)
        awaitInFlight(server, 0)
    }

    @Test
    fun `servers whose handlers block all threads answer when the handlers return`() = testing {
        val threads = maxOf(2, Runtime.getRuntime().availableProcessors())
        val executor = Executors.newFixedThreadPool(threads)
        for (context in listOf(EmptyCoroutineContext, executor.asCoroutineDispatcher())) {
            val release = CountDownLatch(1)
            val blocked = AtomicInteger()
            val server = server(context).apply {
                tool("block") {
                    blocked.incrementAndGet()
                    release.await()
                    "released"
                }
            }
            Client.memory(server).use { client ->
                val blocks = List(2 * threads) { async(start = CoroutineStart.UNDISPATCHED) { client.callTool("block").text } }
                while (blocked.get() < threads) delay(1)
                val calls = (0 until 200).map { start(client, "$it") }
                awaitInFlight(server, blocks.size + calls.size)
                assertEquals(threads, blocked.get())
                assertFalse(calls.any { it.isCompleted })
                release.countDown()
                assertEquals(List(blocks.size) { "released" }, blocks.awaitAll())
                assertEquals((0 until 200).map { "$it" }, calls.awaitAll())
            }
        }
        executor.shutdown()
    }

    @Test
    fun `all threads of a context run handlers that block`() = testing {
        val executor = Executors.newFixedThreadPool(40)
        val all = CountDownLatch(40)
        val server = server(executor.asCoroutineDispatcher()).apply {
            tool("meet") {
                all.countDown()
                all.await()
                "met"
            }
        }
        Client.memory(server).use { client ->
            val calls = List(40) { async(start = CoroutineStart.UNDISPATCHED) { client.callTool("meet").text } }
            assertEquals(List(40) { "met" }, calls.awaitAll())
        }
        executor.shutdown()
    }

    @Test
    fun `calls fail if the context of their server has no thread for them`() = testing {
        val ended = Executors.newSingleThreadExecutor().apply { shutdown() }
        val refusing = object : CoroutineDispatcher() {
            override fun dispatch(context: CoroutineContext, block: Runnable): Unit = throw IllegalStateException("full")
        }
        for (context in listOf(ended.asCoroutineDispatcher(), refusing)) {
            started.clear()
            val server = server(context)
            Client.memory(server).use { client ->
                val calls = (0 until 20).map { async(start = CoroutineStart.UNDISPATCHED) { client.callTool("start", Text("$it")) } }
                calls.awaitAll().forEach { assertEquals(true, it.isError) }
            }
            assertTrue(started.isEmpty())
        }
        while (HandlerCalls.runningCount > 0) delay(1)
    }

    /** Calls a tool of a server in this context; the results in the order of the calls. */
    private suspend fun CoroutineScope.callAll(context: CoroutineContext, count: Int): List<CallToolResult> =
        Client.memory(server(context)).use { client ->
            List(count) { async(start = CoroutineStart.UNDISPATCHED) { client.callTool("start", Text("$it")) } }.awaitAll()
        }

    @Test
    fun `a leader whose task is lost is replaced`() = testing {
        val isLost = AtomicBoolean(true)
        val threads = Executors.newFixedThreadPool(4)
        val losing = Executor { if (!isLost.getAndSet(false)) threads.execute(it) }
        assertEquals(List(20) { "$it" }, callAll(losing.asCoroutineDispatcher(), 20).map { it.text })
        threads.shutdown()
    }

    @Test
    fun `calls fail if the context drops all tasks`() = testing {
        val server = server(Executor { }.asCoroutineDispatcher())
        Client.memory(server).use { client ->
            val queue = HandlerCalls.queue(server.native.handlerQueue().toLong())!!
            val calls = List(20) { async(start = CoroutineStart.UNDISPATCHED) { client.callTool("start", Text("$it")) } }
            // As if time passed.
            var now = System.nanoTime()
            while (calls.any { !it.isCompleted }) {
                now += MINUTE_NANOS
                queue.tick(now)
                delay(1)
            }
            calls.awaitAll().forEach { assertEquals(true, it.isError) }
        }
        assertTrue(started.isEmpty())
        while (HandlerCalls.runningCount > 0) delay(1)
    }

    @Test
    fun `calls that wait fail when the executor is shut down`() = testing {
        started.clear()
        val executor = ThreadPoolExecutor(1, 1, 0, TimeUnit.SECONDS, LinkedBlockingQueue())
        val release = CountDownLatch(1)
        executor.execute { while (release.count > 0) Thread.onSpinWait() }
        val server = server(executor.asCoroutineDispatcher())
        Client.memory(server).use { client ->
            val calls = List(20) { async(start = CoroutineStart.UNDISPATCHED) { client.callTool("start", Text("$it")) } }
            awaitInFlight(server, calls.size)
            // The leader waits for the thread.
            while (executor.queue.isEmpty()) delay(1)
            executor.shutdownNow()
            release.countDown()
            calls.awaitAll().forEach { assertEquals(true, it.isError) }
        }
        assertTrue(started.isEmpty())
        while (HandlerCalls.runningCount > 0) delay(1)
    }

    @Test
    fun `calls fail if an element of the context throws`() = testing {
        class Throwing : ThreadContextElement<Unit> {
            override val key = object : CoroutineContext.Key<Throwing> {}

            override fun updateThreadContext(context: CoroutineContext): Unit = throw IllegalStateException("not today")

            override fun restoreThreadContext(context: CoroutineContext, oldState: Unit) = Unit
        }

        val threads = Executors.newFixedThreadPool(4)
        callAll(threads.asCoroutineDispatcher() + Throwing(), 20).forEach { assertEquals(true, it.isError) }
        assertTrue(started.isEmpty())
        threads.shutdown()
    }

    @Test
    fun `calls do not fail while others of their server run in a bounded executor`() = testing {
        for ((threads, waiting) in listOf(4 to 10, 1 to 1, 2 to 4)) {
            val executor = ThreadPoolExecutor(threads, threads, 0, TimeUnit.SECONDS, ArrayBlockingQueue(waiting))
            repeat(20) {
                val server = server(executor.asCoroutineDispatcher()).apply {
                    tool("block") {
                        Thread.sleep(1)
                        "returned"
                    }
                }
                Client.memory(server).use { client ->
                    val calls = List(10) { async(start = CoroutineStart.UNDISPATCHED) { client.callTool("block").text } }
                    assertEquals(List(10) { "returned" }, calls.awaitAll())
                }
            }
            executor.shutdown()
        }
    }

    @Test
    fun `an executor that is shut down while a handler runs begins no other`() = testing {
        val executor = Executors.newSingleThreadExecutor()
        val began = CountDownLatch(1)
        val isShutDown = AtomicBoolean()
        val server = server(executor.asCoroutineDispatcher()).apply {
            tool("spin") {
                began.countDown()
                while (!isShutDown.get()) Thread.onSpinWait()
                "spun"
            }
        }
        started.clear()
        Client.memory(server).use { client ->
            val spin = async(start = CoroutineStart.UNDISPATCHED) { client.callTool("spin").text }
            began.await()
            val calls = List(20) { async(start = CoroutineStart.UNDISPATCHED) { client.callTool("start", Text("$it")) } }
            awaitInFlight(server, calls.size + 1)
            executor.shutdownNow()
            isShutDown.set(true)
            assertEquals("spun", spin.await())
            calls.awaitAll().forEach { assertEquals(true, it.isError) }
        }
        assertTrue(started.isEmpty())
        assertTrue(executor.awaitTermination(30, TimeUnit.SECONDS))
    }

    @Test
    fun `a quick handler that begins to block is expected to occupy its thread while it does`() = testing {
        val release = AtomicReference<CountDownLatch>()
        val found = AtomicReference<RegisteredHandler>()
        val numbered = object : NumberedHandler {
            override suspend fun handle(arguments: String, call: HandlerCall): Outcome {
                found.set(call.handler)
                release.get()?.await()
                return Outcome.Text("ran")
            }

            override fun failure(error: Throwable): Outcome = Outcome.Text("$error")
        }
        for (context in listOf(EmptyCoroutineContext, Dispatchers.IO)) {
            release.set(null)
            val server = server(context)
            val definition = """{"name": "quick", "inputSchema": {"type": "object"}}"""
            HandlerCalls.pass(numbered) { server.native.addNumberedFeature("tool", definition, null, it.toULong()) }
            Client.memory(server).use { client ->
                do {
                    assertEquals("ran", client.callTool("quick").text)
                } while (found.get().isExpectedToOccupy)
                val latch = CountDownLatch(1)
                release.set(latch)
                val call = async(start = CoroutineStart.UNDISPATCHED) { client.callTool("quick").text }
                try {
                    while (!found.get().isExpectedToOccupy) delay(1)
                    assertFalse(call.isCompleted)
                } finally {
                    latch.countDown()
                }
                assertEquals("ran", call.await())
            }
        }
    }

    @Test
    fun `contexts that run their tasks immediately do not nest handlers`() = testing {
        val depth = ThreadLocal.withInitial { 0 }
        val immediate = java.util.concurrent.Executor(Runnable::run)
        for (context in listOf(immediate.asCoroutineDispatcher(), Dispatchers.Unconfined)) {
            val server = server(context).apply {
                tool("depth") {
                    depth.set(depth.get() + 1)
                    Thread.sleep(1)
                    val found = depth.get()
                    depth.set(found - 1)
                    "$found"
                }
            }
            Client.memory(server).use { client ->
                val calls = List(100) { async(start = CoroutineStart.UNDISPATCHED) { client.callTool("depth").text } }
                assertEquals(List(100) { "1" }, calls.awaitAll())
            }
        }
    }

    @Test
    fun `a handler that leaves its thread interrupted does not interrupt the next`() = withGates { gate ->
        val server = server(gate.context).apply {
            tool("interrupt") {
                val wasInterrupted = Thread.currentThread().isInterrupted
                Thread.currentThread().interrupt()
                "$wasInterrupted"
            }
        }
        Client.memory(server).use { client ->
            val calls = List(20) { async(start = CoroutineStart.UNDISPATCHED) { client.callTool("interrupt").text } }
            awaitInFlight(server, calls.size)
            gate.close()
            assertEquals(List(20) { "false" }, calls.awaitAll())
        }
    }

    @Test
    fun `the library releases the queue of a server that is freed`() = testing {
        val server = server(EmptyCoroutineContext)
        val number = server.native.handlerQueue().toLong()
        Client.memory(server).use { client -> assertEquals("a", start(client, "a").await()) }
        assertTrue(HandlerCalls.queue(number) != null)
        server.native.close()
        while (HandlerCalls.queue(number) != null) delay(1)
    }
}
