package mcpline

import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.contentOrNull

/** Handlers of a protocol extension that a client supports: see [ClientBuilder.extension]. */
@McplineDsl
public class ClientExtension internal constructor(private val identifier: String, private val settings: JsonObject) {
    internal val requests = mutableMapOf<String, suspend (JsonObject) -> JsonElement>()
    internal val resultTypes = mutableMapOf<String, suspend (ReceivedResult) -> JsonObject>()

    /** Answers custom requests of the server that belong to the extension. */
    public fun onRequest(method: String, handler: suspend (params: JsonObject) -> JsonObject) {
        requests[method] = handler
    }

    /**
     * Resolves results of a type that the extension defines (2026-07-28): returns the ordinary result of the method, which the
     * caller gets. It may send requests. If it throws, the call fails with an [InputRequestFailedException].
     */
    public fun onResultType(resultType: String, handler: suspend (ReceivedResult) -> JsonObject) {
        resultTypes[resultType] = handler
    }

    /** As the core reads it. */
    internal fun toJson(): JsonObject = JsonObject(
        mapOf(
            "identifier" to JsonPrimitive(identifier),
            "settings" to settings,
            "requests" to JsonArray(requests.keys.map(::JsonPrimitive)),
            "result_types" to JsonArray(resultTypes.keys.map(::JsonPrimitive)),
        ),
    )
}

/**
 * A result of a type that an extension defines: see [ClientExtension.onResultType].
 *
 * @property method Method of the request.
 * @property params Parameters of the request.
 * @property result The result as the server sent it.
 */
@Serializable
public class ReceivedResult internal constructor(
    public val method: String,
    public val params: JsonObject = JsonObject(emptyMap()),
    public val result: JsonObject,
) {
    internal val type: String? get() = (result["resultType"] as? JsonPrimitive)?.contentOrNull
}
