package mcpline

import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject

/** Runs a test, which fails if it does not end in time. */
internal fun testing(test: suspend CoroutineScope.() -> Unit): Unit = runBlocking(Dispatchers.Default) {
    withTimeout(60.seconds, test)
}

internal fun parsed(text: String): JsonElement = json.parseToJsonElement(text)

internal fun obj(text: String): JsonObject = parsed(text) as JsonObject
