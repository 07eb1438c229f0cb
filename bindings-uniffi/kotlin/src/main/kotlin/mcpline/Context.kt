package mcpline

import kotlinx.serialization.KSerializer
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.contentOrNull
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.put
import kotlinx.serialization.serializer
import mcpline.ffi.Call

/** Keeps functions of a builder from being called within a handler. */
@DslMarker
@Target(AnnotationTarget.CLASS, AnnotationTarget.TYPE)
public annotation class McplineDsl

/**
 * An authenticated caller. Does not contain the token.
 *
 * @property subject The caller (`sub`); unique per issuer.
 * @property clientId The OAuth client that acts for the subject.
 * @property issuer The authorization server that issued the token.
 * @property scopes The granted scopes.
 * @property claims All claims of the token, or all members of the introspection response.
 * @property audience The audiences of the token (`aud`).
 * @property expiresAt Expiry of the token, in seconds since 1970.
 */
@Serializable
public class Caller @JvmOverloads public constructor(
    public val subject: String? = null,
    @SerialName("client_id") public val clientId: String? = null,
    public val issuer: String? = null,
    public val scopes: List<String> = emptyList(),
    public val claims: JsonObject? = null,
    public val audience: List<String> = emptyList(),
    @SerialName("expires_at") public val expiresAt: Long? = null,
)

/** What the user answered to an elicitation. */
public sealed class ElicitResult<out T> {
    /**
     * The user filled in the form, or agreed to open the URL.
     *
     * @property content What the user entered.
     */
    public data class Accepted<T>(public val content: T) : ElicitResult<T>()

    /** The user declined. */
    public data object Declined : ElicitResult<Nothing>()

    /** The user dismissed the question. */
    public data object Cancelled : ElicitResult<Nothing>()

    /** The content, if the user accepted. */
    public val contentOrNull: T? get() = (this as? Accepted)?.content

    /** The protocol's name of the action: `accept`, `decline` or `cancel`. */
    public val action: String
        get() = when (this) {
            is Accepted -> "accept"
            Declined -> "decline"
            Cancelled -> "cancel"
        }
}

/**
 * The context of a request, which the handlers of a server have as their receiver. It can be used until the handler returns.
 *
 * If the client cancels the request, or its connection ends, the coroutine of the handler is cancelled.
 */
@McplineDsl
public class CallContext internal constructor(private val handlerCall: HandlerCall) {
    internal val call: Call get() = handlerCall.context

    private val info: JsonObject by lazy { json.parseToJsonElement(native { call.info() }).jsonObject }

    private fun text(name: String): String? = (info[name] as? JsonPrimitive)?.contentOrNull

    /** The name of the tool, if the call is one of a tool. */
    public val toolName: String? get() = text("toolName")

    /** The name of the prompt, if the call gets one. */
    public val promptName: String? get() = text("promptName")

    /** The URI of the resource, if the call reads one. */
    public val uri: String? get() = text("uri")

    /** The revision of the protocol that the request follows: `2026-07-28`. */
    public val revision: String get() = text("revision") ?: ""

    /** The JSON-RPC id of the request: a string or a number. */
    public val requestId: JsonElement get() = info.getValue("requestId")

    /** Name and version of the client, if it sent them. */
    public val client: Implementation? by lazy {
        info["client"]?.let { json.decodeFromJsonElement(Implementation.serializer(), it) }
    }

    /** The capabilities that the client declares. */
    public val clientCapabilities: JsonObject get() = info["clientCapabilities"] as? JsonObject ?: JsonObject(emptyMap())

    /** The id of the HTTP session (revisions up to 2025-11-25). */
    public val sessionId: String? get() = text("sessionId")

    /** The `_meta` of the request. */
    public val meta: JsonObject? get() = info["meta"] as? JsonObject

    /** The HTTP headers of the request: values by name, in lower case. `null` on other transports. */
    public val headers: Map<String, List<String>>? by lazy {
        (info["headers"] as? JsonObject)?.mapValues { (_, values) ->
            (values as JsonArray).map { (it as JsonPrimitive).content }
        }
    }

    /** The authenticated caller. `null` if callers are not authenticated. */
    public val auth: Caller? by lazy {
        info["auth"]?.let { json.decodeFromJsonElement(Caller.serializer(), it) }
    }

    /** Answers to the input requests that the previous run of the handler returned ([InputRequired]), by their keys. */
    public val inputResponses: JsonObject? get() = info["inputResponses"] as? JsonObject

    /** The state that the previous run of the handler returned. */
    public val requestState: String? get() = text("requestState")

    /** Reports progress. Does nothing if the client did not ask for it. */
    public fun progress(progress: Number, total: Number? = null, message: String? = null): Unit =
        native { call.progress(progress.toDouble(), total?.toDouble(), message?.wellFormed()) }

    /** Sends a log message to the client, if it wants messages of this level. */
    public fun log(level: LogLevel, data: JsonElement, logger: String? = null): Unit =
        native { call.log(level.wire, logger?.wellFormed(), data.text()) }

    /** Sends a text as a log message. */
    public fun log(level: LogLevel, text: String, logger: String? = null): Unit =
        log(level, JsonPrimitive(text), logger)

    /** Sends a custom notification. */
    public fun notify(method: String, params: JsonObject? = null): Unit =
        native { call.notify(method, params?.text()) }

    /** Closes the response stream while the handler continues; the client reconnects for the rest (2025-11-25). */
    public fun closeStream(): Unit = native { call.closeStream() }

    /** Returns the settings with which the client declares an extension; `null` if it does not. */
    public fun clientExtension(identifier: String): JsonObject? =
        native { call.clientExtension(identifier) }?.let { json.parseToJsonElement(it).jsonObject }

    /**
     * Checks that the client declares an extension.
     *
     * @throws RpcException It does not: the error that the specification defines for this.
     */
    public fun requireExtension(identifier: String) {
        native { call.requireExtension(identifier) }?.let { throw it.toException() }
    }

    /**
     * Checks that the caller has all these scopes, for requirements that depend on the arguments. On transports without a
     * principal, every caller has all scopes.
     *
     * Declare fixed requirements with the feature instead, with the argument `scopes`.
     *
     * @throws RpcException The caller lacks a scope. Let it through: over HTTP, the client then gets a challenge with the scopes.
     */
    public fun requireScopes(vararg scopes: String) {
        native { call.requireScopes(scopes.toList()) }?.let { throw it.toException() }
    }

    /**
     * Asks the user with a form for a [T], whose properties must be of primitive types, and waits for the answer.
     *
     * @param key Identifies the input request among those of the handler, if it may run again. Default: its number.
     * @throws NotSupportedException The client cannot ask its user.
     */
    public suspend inline fun <reified T> elicit(message: String, key: String? = null): ElicitResult<T> =
        elicit(message, serializer<T>(), key)

    /** Asks the user with a form for what this serializer reads. */
    public suspend fun <T> elicit(message: String, serializer: KSerializer<T>, key: String? = null): ElicitResult<T> =
        when (val answer = elicit(message, jsonSchema(serializer.descriptor), key)) {
            is ElicitResult.Accepted -> ElicitResult.Accepted(
                try {
                    json.decodeFromJsonElement(serializer, answer.content)
                } catch (error: IllegalArgumentException) {
                    throw InvalidResponseException("the user's answer: ${error.message}")
                },
            )
            ElicitResult.Declined -> ElicitResult.Declined
            ElicitResult.Cancelled -> ElicitResult.Cancelled
        }

    /** Asks the user with a form of this JSON Schema. */
    public suspend fun elicit(message: String, schema: JsonObject, key: String? = null): ElicitResult<JsonObject> =
        elicited(request("elicitation/create", formParams(message, schema), key))

    /** Asks the user to open a URL: for secrets, payments and sign-in. */
    public suspend fun elicitUrl(elicitation: UrlElicitation, key: String? = null): ElicitResult<JsonObject> =
        elicited(request("elicitation/create", elicitation.params(), key))

    /** Asks the client's model. */
    public suspend fun sample(params: CreateMessageParams, key: String? = null): CreateMessageResult {
        val encoded = json.encodeToJsonElement(CreateMessageParams.serializer(), params) as JsonObject
        val answer = request("sampling/createMessage", encoded, key)
        return decodeResult(CreateMessageResult.serializer(), answer.toString(), "the model's answer")
    }

    /** Asks the client for its root directories. */
    public suspend fun listRoots(key: String? = null): List<Root> {
        val answer = request("roots/list", null, key)
        return decodeResult(Roots.serializer(), answer.toString(), "the client's roots").roots
    }

    /** Sends any other request to the client, and returns its result. */
    public suspend fun request(method: String, params: JsonObject? = null, key: String? = null): JsonObject =
        json.parseToJsonElement(native { call.requestInput(method, params?.text(), key) }).jsonObject

    private fun elicited(answer: JsonObject): ElicitResult<JsonObject> =
        when ((answer["action"] as? JsonPrimitive)?.contentOrNull) {
            "accept" -> ElicitResult.Accepted(answer["content"] as? JsonObject ?: JsonObject(emptyMap()))
            "decline" -> ElicitResult.Declined
            else -> ElicitResult.Cancelled
        }
}

@Serializable
internal class Roots(val roots: List<Root>)

/** The answer of an elicitation, on the wire. */
internal fun ElicitResult<JsonObject>.toJson(): JsonObject = buildJsonObject {
    put("action", action)
    contentOrNull?.let { put("content", it) }
}
