package mcpline

import java.io.IOException
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.launch
import kotlinx.coroutines.channels.Channel as Queue

/** One end of a pair of queues. */
internal class End(private val outgoing: Queue<String>, private val incoming: Queue<String>) : Channel {
    val closed = CompletableDeferred<Unit>()

    override suspend fun send(message: String) = outgoing.send(message)

    override suspend fun receive(): String? = incoming.receiveCatching().getOrNull()

    override suspend fun close() {
        outgoing.close()
        closed.complete(Unit)
    }
}

private fun pair(): Pair<End, End> {
    val (there, back) = Queue<String>(4) to Queue<String>(4)
    return End(there, back) to End(back, there)
}

/** Serves each channel that a client opens. */
internal class Served(
    private val server: Server,
    private val scope: CoroutineScope,
    private val principal: Caller? = null,
) : ClientTransport {
    val ends = CopyOnWriteArrayList<End>()
    val serving = CopyOnWriteArrayList<Job>()

    override suspend fun open(): Channel {
        val (mine, others) = pair()
        ends += mine
        ends += others
        serving += scope.launch { server.serveChannel(others, principal) }
        return mine
    }
}

class ChannelTest {
    private val server = server("channels", "1.0.0", settings = ServerSettings(startupMessage = false)) {
        tool("add") { arguments: kotlinx.serialization.json.JsonObject -> "${arguments.size} members" }
        tool("whoami") { auth?.subject ?: "anonymous" }
        tool("secret", scopes = listOf("admin")) { "42" }
        tool("ask") { elicit("Name?", obj("""{"type": "object", "properties": {}}""")).action }
        tool("wait") { awaitCancellation() }
    }

    @Test
    fun `a client and a server speak over a channel, in both directions`() = testing {
        val transport = Served(server, this)
        Client.over(transport) { onElicit { it.accept() } }.use { client ->
            assertEquals("accept", client.callTool("ask").text)
            assertEquals("anonymous", client.callTool("whoami").text)
            // A message that is larger than what crosses at once.
            val large = "x".repeat(1_000_000)
            assertEquals("1 members", client.callTool("add", obj("""{"text": "$large"}""")).text)
        }
        // Both ends are closed, and serving has returned.
        transport.ends.forEach { it.closed.await() }
        transport.serving.forEach { it.join() }
    }

    @Test
    fun `the transport names the principal`() = testing {
        val someone = Caller(subject = "alice", issuer = "https://auth.example.com", scopes = listOf("admin"))
        Client.over(Served(server, this, someone)).use { client ->
            assertEquals("alice", client.callTool("whoami").text)
            assertEquals("42", client.callTool("secret").text)
        }
        Client.over(Served(server, this, Caller(subject = "bob"))).use { client ->
            assertEquals(listOf("add", "ask", "wait", "whoami"), client.listTools().map { it.name }.sorted())
            assertEquals(-31001, assertFailsWith<RpcException> { client.callTool("secret") }.code)
        }
    }

    @Test
    fun `a channel that fails ends with the reason, and the next request opens another`() = testing {
        val transport = Served(server, this)
        var isBroken = false
        val breaking = ClientTransport {
            val channel = transport.open()
            object : Channel by channel {
                override suspend fun send(message: String) {
                    if (isBroken) throw IOException("the cable is cut")
                    channel.send(message)
                }
            }
        }
        Client.over(breaking).use { client ->
            isBroken = true
            val error = assertFailsWith<ConnectionLostException> { client.callTool("wait") }
            assertContains(error.toString(), "the cable is cut")
            isBroken = false
            assertEquals("anonymous", client.callTool("whoami").text)
        }
    }

    @Test
    fun `a transport that cannot open is unreachable, with the reason`() = testing {
        val error = assertFailsWith<ServerUnreachableException> {
            Client.over({ throw IOException("no cable") }) { settings = ClientSettings(reconnectAttempts = 0) }
        }
        assertContains(error.toString(), "no cable")
    }

    @Test
    fun `opening is cancelled at the timeout`() = testing {
        val cancelled = CompletableDeferred<Unit>()
        assertFailsWith<ServerUnreachableException> {
            Client.over({
                try {
                    awaitCancellation()
                } finally {
                    cancelled.complete(Unit)
                }
            }) { settings = ClientSettings(openTimeout = 50.milliseconds) }
        }
        cancelled.await()
    }

    @Test
    fun `cancelling the coroutine that serves ends the channel gracefully`() = testing {
        val (mine, others) = pair()
        val serving = launch { server.serveChannel(others) }
        val client = Client.over({ mine })
        serving.cancelAndJoin()
        others.closed.await()
        assertFailsWith<McplineException> { client.callTool("whoami") }
        client.close()
    }

    @Test
    fun `a server whose channel fails throws`() = testing {
        val failing = object : Channel {
            override suspend fun send(message: String) = Unit

            override suspend fun receive(): String? = throw IOException("the cable is cut")
        }
        val error = assertFailsWith<TransportException> { server.serveChannel(failing) }
        assertContains(error.toString(), "the cable is cut")
    }

    @Test
    fun `what is not JSON is answered with an error, and the channel goes on`() = testing {
        val (mine, others) = pair()
        val serving = launch { server.serveChannel(others) }
        mine.send("{")
        assertContains(mine.receive().orEmpty(), "-32700")
        mine.send("""{"jsonrpc": "2.0", "id": 1, "method": "ping"}""")
        assertContains(mine.receive().orEmpty(), "\"id\":1")
        mine.close()
        serving.join()
    }

    @Test
    fun `calls of one function of a channel do not overlap`() = testing {
        val (sends, receives) = AtomicInteger() to AtomicInteger()
        var overlapped = false
        val transport = Served(server, this)
        val watching = ClientTransport {
            val channel = transport.open()
            object : Channel by channel {
                override suspend fun send(message: String) {
                    if (sends.incrementAndGet() > 1) overlapped = true
                    channel.send(message)
                    sends.decrementAndGet()
                }

                override suspend fun receive(): String? {
                    if (receives.incrementAndGet() > 1) overlapped = true
                    return channel.receive().also { receives.decrementAndGet() }
                }
            }
        }
        Client.over(watching).use { client ->
            List(50) { launch { client.callTool("whoami") } }.forEach { it.join() }
        }
        assertTrue(!overlapped)
    }
}
