// A server whose calls never end by themselves, over stdio, a Unix socket or HTTP.

import kotlin.system.exitProcess
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.withContext
import kotlinx.serialization.Serializable
import mcpline.ServerSettings
import mcpline.server

@Serializable
class Label(val label: String)

/** In one piece, because other handlers write at the same time. */
fun writeLine(text: String): Unit = synchronized(System.err) { System.err.println(text) }

val waiting = server("shutdown", "1", settings = ServerSettings(shutdownTimeout = 1.seconds)) {
    tool<Label>("waits", "Waits until it is cancelled") {
        progress(0, 1)
        writeLine("waiting ${it.label}")
        try {
            awaitCancellation()
        } finally {
            writeLine("cancelled ${it.label}")
        }
    }
    tool<Label>("ignores", "Blocks a thread, and doesn't look whether it is cancelled") {
        progress(0, 1)
        writeLine("waiting ${it.label}")
        withContext(Dispatchers.IO) { Thread.sleep(600_000) }
    }
}

suspend fun main(arguments: Array<String>) {
    val (way, place) = arguments.toList() + listOf("", "")
    when (way) {
        "" -> waiting.run()
        "http" -> waiting.runHttp(place.toInt())
        "unix" -> waiting.runUnix(place)
        else -> {
            System.err.println("there is no way $way")
            exitProcess(2)
        }
    }
}
