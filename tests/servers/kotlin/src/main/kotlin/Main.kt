// The everything-server in Kotlin. Its specification is ../../../../README.md.

import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.runBlocking
import mcpline.HttpSettings
import mcpline.ServerSettings

/** How long the end of the process waits for its server. */
private const val ENDING_SECONDS = 20L

fun main(arguments: Array<String>) {
    val options = arguments.toList().chunked(2).associate { (name, value) -> name.removePrefix("--") to value }
    val number = { name: String -> options[name]?.toLong() }
    val settings = ServerSettings(
        pageSize = number("page-size"),
        maxSuspendedHandlers = number("max-suspended-handlers"),
        maxTotalClientBytes = number("max-total-client-bytes"),
        declare = if (number("declared") == 1L) listOf("tools", "prompts", "resources") else null,
    )
    val parts = options.filterValues { it == "1" }.keys
    val server = everything(settings, parts)

    val ended = CountDownLatch(1)
    Runtime.getRuntime().addShutdownHook(
        Thread {
            // The library stops the server.
            ended.await(ENDING_SECONDS, TimeUnit.SECONDS)
            // Otherwise the exit code is that of the signal.
            Runtime.getRuntime().halt(0)
        },
    )
    runBlocking {
        when (val port = number("http")) {
            null -> server.run()
            else -> server.runHttp(
                port.toInt(),
                settings = HttpSettings(
                    maxSessions = number("max-sessions"),
                    readTimeout = number("read-timeout")?.seconds,
                    writeTimeout = number("write-timeout")?.seconds,
                ),
            )
        }
    }
    ended.countDown()
}
