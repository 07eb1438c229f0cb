package mcpline

import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlinx.coroutines.runBlocking

/**
 * How long the end of the JVM waits for functions that serve to return, once their transports have ended: for handlers that
 * clean up, and for what [Server.lifespan] closes. One that calls `exitProcess` itself never returns.
 */
private const val RETURN_TIMEOUT_SECONDS = 5L

/** The servers that are being served in this process: they are stopped before the JVM ends. */
internal object RunningServers {
    private val running = mutableSetOf<Run>()

    /** Whether the JVM is ending, so that what begins now must stop immediately. */
    @Volatile
    var isEnding: Boolean = false
        private set

    /** One run of a server, around one transport. */
    class Run(val server: Server) {
        val ended = CountDownLatch(1)

        fun end() {
            synchronized(running) { running -= this }
            ended.countDown()
        }
    }

    fun begin(server: Server): Run = Run(server).also { synchronized(running) { running += it } }

    /** Stops all servers and waits until they have ended: calls in flight may finish within their grace period. */
    fun close() {
        isEnding = true
        val all = synchronized(running) { running.toList() }
        val servers = all.map { it.server }.toSet()
        servers.forEach { it.close() }
        runBlocking { servers.forEach { it.awaitTransports() } }
        val deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(RETURN_TIMEOUT_SECONDS)
        all.forEach { it.ended.await(deadline - System.nanoTime(), TimeUnit.NANOSECONDS) }
    }
}
