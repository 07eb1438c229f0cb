// Tools that report progress, wait and are cancelled.

import java.util.concurrent.ConcurrentHashMap
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.delay
import mcpline.CallContext
import mcpline.LogLevel
import mcpline.Server

/** Named doors, each of which opens once and stays open. Calls can wait for a door before or after it opens. */
class Doors {
    private val doors = ConcurrentHashMap<String, CompletableDeferred<Unit>>()

    suspend fun pass(name: String): Unit = door(name).await()

    fun open(name: String) {
        door(name).complete(Unit)
    }

    private fun door(name: String) = doors.computeIfAbsent(name) { CompletableDeferred() }
}

val gates = Doors()
private val cancellations = Doors()

/** Waits until the call is cancelled, and records its label. */
suspend fun CallContext.untilCancelled(label: String): Nothing {
    progress(0, 1, "waiting")
    try {
        awaitCancellation()
    } finally {
        cancellations.open(label)
    }
}

fun Server.addRunningTools() {
    tool("test_tool_with_logging", "Logs while it runs") {
        log(LogLevel.Info, "Tool execution started")
        delay(50)
        log(LogLevel.Info, "Tool processing data")
        delay(50)
        log(LogLevel.Info, "Tool execution completed")
        "Tool with logging executed successfully"
    }
    tool("test_log_levels", "Logs once at each level") {
        for (level in LogLevel.entries) log(level, "message at ${level.name.lowercase()}", "fixture")
        "logged"
    }
    tool("test_logging_tool", "Logs once") {
        log(LogLevel.Info, "Logging tool called")
        "logged"
    }
    tool("test_tool_with_progress", "Reports progress") {
        for (step in listOf(0, 50, 100)) {
            progress(step, 100, "Completed step $step of 100")
            delay(50)
        }
        "progress done"
    }
    tool("test_reconnection", "Closes its stream and goes on") {
        closeStream()
        delay(100)
        "reconnected"
    }
    tool<Name>("test_gate", "Waits until a gate is open") {
        progress(0, 1, "waiting")
        gates.pass(it.name)
        "gate ${it.name} passed"
    }
    tool<Name>("test_open_gate", "Opens a gate for good") {
        gates.open(it.name)
        "gate ${it.name} opened"
    }
    tool<Label>("test_cancellation", "Waits until it is cancelled") { untilCancelled(it.label) }
    tool<Label>("test_cancellation_status", "Waits until another tool was cancelled") {
        cancellations.pass(it.label)
        "${it.label} was cancelled"
    }
}
