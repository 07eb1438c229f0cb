package mcpline

import kotlin.system.exitProcess

/** A program whose main function has no dispatcher, and ends the JVM while the server's transport waits. */
internal suspend fun main() {
    server("ending", "1.0.0").runHttp(0) { exitProcess(3) }
}
