package mcpline.java

import kotlinx.coroutines.withContext
import mcpline.ClientSettings
import mcpline.ConnectionLostException
import mcpline.ServerUnreachableException
import mcpline.TransportException

/**
 * An open channel of a custom transport: MCP over anything that carries messages.
 *
 * Messages are JSON, without line breaks. [send] and [receive] may block, each on a thread of its own. Calls of one of them do not
 * overlap, so both apply backpressure. If one of them throws, the channel ends: requests in flight fail with a
 * [ConnectionLostException], and [Server.serveChannel] throws a [TransportException].
 */
public interface Channel {
    /** Sends one message, or a batch, to the peer. */
    @Throws(Exception::class)
    public fun send(message: String)

    /**
     * Returns the next message, or batch, from the peer; `null` if the peer has closed the channel. The thread is interrupted when
     * this side closes the channel.
     */
    @Throws(Exception::class)
    public fun receive(): String?

    /** Closes the channel. Called last, except that [receive] may still wait. */
    @Throws(Exception::class)
    public fun close() {}
}

/** A way to open channels to a server, for [ClientBuilder.over]. */
public fun interface ClientTransport {
    /**
     * Opens a channel. Called for each connection, again after a connection was lost. May block.
     *
     * If it throws, the connection fails with a [ServerUnreachableException]. The thread is interrupted when the client is closed, or
     * [ClientSettings.openTimeout] elapses.
     */
    @Throws(Exception::class)
    public fun open(): Channel
}

/** A channel whose functions run on threads that may block as long as they want, without keeping handlers from running. */
internal class BlockingChannel(private val channel: Channel) : mcpline.Channel {
    override suspend fun send(message: String): Unit = onThread { channel.send(message) }

    override suspend fun receive(): String? = onThread { channel.receive() }

    override suspend fun close(): Unit = onThread { channel.close() }
}

internal class BlockingTransport(private val transport: ClientTransport) : mcpline.ClientTransport {
    override suspend fun open(): mcpline.Channel = BlockingChannel(onThread { transport.open() })
}

@Suppress("UNCHECKED_CAST")
private suspend fun <R> onThread(code: () -> R): R = withContext(futureThreads) { runBlockingCode(code) as R }
