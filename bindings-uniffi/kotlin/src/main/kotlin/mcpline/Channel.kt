package mcpline

import java.util.concurrent.atomic.AtomicReference
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.async
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.launch
import mcpline.ffi.Channel as NativeChannel
import mcpline.ffi.ClientTransport as NativeTransport
import mcpline.ffi.ForeignFailure
import mcpline.ffi.OpenedChannel

/**
 * An open channel of a custom transport: MCP over anything that carries messages.
 *
 * Messages are JSON, without line breaks. Calls of [send] do not overlap, nor do calls of [receive], so both apply backpressure:
 * a slow [send] slows down the sender, and [receive] is not called while more than 32 MiB of received messages wait to be
 * processed. If one of them throws, the channel ends: requests in flight fail with a [ConnectionLostException], and
 * [Server.serveChannel] throws a [TransportException].
 */
public interface Channel {
    /** Sends one message, or a batch, to the peer. */
    public suspend fun send(message: String)

    /**
     * Returns the next message, or batch, from the peer; `null` if the peer has closed the channel. Cancelled when this side closes
     * the channel.
     */
    public suspend fun receive(): String?

    /**
     * Closes the channel. Called last, regardless of which side closed it, except that a cancelled [send] or [receive] may not have
     * returned yet. Cancelled if it takes more than 5 seconds.
     */
    public suspend fun close() {}
}

/** A way to open channels to a server, for [Client.over]. */
public fun interface ClientTransport {
    /**
     * Opens a channel. Called for each connection, again after a connection was lost.
     *
     * If it throws, the connection fails with a [ServerUnreachableException]. It is cancelled when the client is closed, or
     * [ClientSettings.openTimeout] elapses.
     */
    public suspend fun open(): Channel
}

/** Carries the messages of a channel, in a scope of the program. */
internal class ChannelAdapter(private val channel: Channel, private val scope: CoroutineScope) : NativeChannel {
    override suspend fun send(messages: List<String>): Unit = reported(scope) { messages.forEach { channel.send(it) } }

    override suspend fun receive(): String? = reported(scope) { channel.receive() }

    override suspend fun end(): Unit = reported(scope) { channel.close() }
}

/** Opens channels, in a scope of the program. */
internal class ChannelOpener(private val transport: ClientTransport, private val scope: CoroutineScope) : NativeTransport {
    override suspend fun openChannel(): OpenedChannel = reported(scope) {
        val opened = AtomicReference<Channel>()
        val opening = scope.async { transport.open().also(opened::set) }
        try {
            opening.await()
            OpenedChannel(ChannelAdapter(opened.getAndSet(null), scope))
        } catch (cancelled: CancellationException) {
            opening.cancel()
            // It may have been opened meanwhile.
            opening.invokeOnCompletion { opened.getAndSet(null)?.let { scope.launch { runCatching { it.close() } } } }
            throw cancelled
        }
    }
}

/** Runs a function of the program in its scope. The core gets what it throws as the reason for which the channel ends. */
private suspend fun <T> reported(scope: CoroutineScope, run: suspend () -> T): T = inScope(scope) {
    try {
        run()
    } catch (error: Throwable) {
        if (error is CancellationException) ensureActive()
        throw ForeignFailure.Unexpected(error.message ?: error.toString())
    }
}
