package mcpline

import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeoutOrNull

/**
 * How long the end of the JVM waits for functions that serve to return, once their transports have ended: for handlers that
 * clean up, and for what [Server.lifespan] closes. One that calls `exitProcess` itself never returns.
 */
private const val RETURN_TIMEOUT_SECONDS = 5L

/**
 * How long the end of the JVM waits for transports beyond the grace period in which calls may finish: the library ends them
 * within a second. A thread that calls `exitProcess` may be one that they need.
 */
private val TRANSPORTS_TIMEOUT = 5.seconds

/** The servers that are being served in this process: they are stopped before the JVM ends. */
internal object RunningServers {
    private val running = mutableSetOf<Run>()

    /** Whether the JVM is ending, so that what begins now must stop immediately. */
    private var isEnding = false

    /** One run of a server, around one transport. */
    class Run(val server: Server, isClosed: Boolean) {
        val ended = CountDownLatch(1)

        /** Whether the server was closed since it began, perhaps before it had a transport that could be stopped. */
        @Volatile
        var isClosed: Boolean = isClosed
            internal set

        fun end() {
            synchronized(running) { running -= this }
            ended.countDown()
        }
    }

    fun begin(server: Server): Run = synchronized(running) { Run(server, isEnding).also { running += it } }

    /** Makes runs of a server that are still starting end. */
    fun closeRunsOf(server: Server): Unit =
        synchronized(running) { running.filter { it.server === server }.forEach { it.isClosed = true } }

    /** Stops all servers and waits until they have ended: calls in flight may finish within their grace period. */
    fun close() {
        val all = synchronized(running) {
            isEnding = true
            running.toList()
        }
        val servers = all.map { it.server }.toSet()
        // Whatever one of them does, the others are stopped.
        servers.forEach { runCatching { it.close() } }
        val grace = servers.maxOfOrNull { it.shutdownTimeout } ?: Duration.ZERO
        runBlocking { withTimeoutOrNull(grace + TRANSPORTS_TIMEOUT) { servers.forEach { it.awaitTransports() } } }
        val deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(RETURN_TIMEOUT_SECONDS)
        all.forEach { it.ended.await(deadline - System.nanoTime(), TimeUnit.NANOSECONDS) }
    }
}
