package mcpline

import kotlinx.coroutines.CancellationException
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.booleanOrNull
import kotlinx.serialization.json.contentOrNull
import kotlinx.serialization.json.jsonObject
import mcpline.ffi.Outcome

/** The kind of a message. A middleware sees messages other than client requests only if its scope names their methods. */
@Serializable
public enum class MessageKind {
    /** A request of the client. */
    @SerialName("request")
    Request,

    /** A request of a handler to the client: `elicitation/create`. Its result is the client's answer. */
    @SerialName("input_request")
    InputRequest,

    /** A notification of a handler to the client: `notifications/message`. Those of a handler keep their order. */
    @SerialName("sent_notification")
    SentNotification,

    /** A notification of the client that the server has a handler for. */
    @SerialName("received_notification")
    ReceivedNotification,
    ;

    internal val isNotification: Boolean get() = this == SentNotification || this == ReceivedNotification
}

/**
 * The requests that a middleware sees. Default: all requests of clients. A scope that selects features excludes list requests.
 *
 * @property methods Methods: `tools/call`. They may also name input requests (`elicitation/create`) and notifications of
 *   handlers, and notifications of clients that have handlers.
 * @property tools Names of tools: short for [names] with [kinds], like [resources] and [prompts]. Use only one of the three.
 * @property resources URIs of resources and templates.
 * @property prompts Names of prompts.
 * @property names Names of features of any kind.
 * @property tags Tags of features.
 * @property kinds Kinds of features: `tool`, `resource` and `prompt`.
 */
public class MiddlewareScope(
    public val methods: List<String>? = null,
    public val tools: List<String>? = null,
    public val resources: List<String>? = null,
    public val prompts: List<String>? = null,
    public val names: List<String>? = null,
    public val tags: List<String>? = null,
    public val kinds: List<String>? = null,
) {
    /** As the core reads it. */
    internal fun toJson(): JsonObject {
        val given = mapOf("methods" to methods, "names" to names, "tags" to tags, "kinds" to kinds).filterValues { it != null }
        val short = mapOf("tool" to tools, "resource" to resources, "prompt" to prompts).filterValues { it != null }
        if (short.size + listOf("names", "kinds").count { it in given } > 1 && short.isNotEmpty()) {
            throw UsageException(
                "`tools`, `resources` and `prompts` are short for `names` with `kinds`: use only one of them, without `names` " +
                    "and `kinds`, or add the middleware once for each",
            )
        }
        val criteria = given + short.entries.flatMap { (kind, names) -> listOf("names" to names, "kinds" to listOf(kind)) }
        return JsonObject(criteria.mapValues { JsonArray(it.value.orEmpty().map(::JsonPrimitive)) })
    }
}

/** A request, or another message, on its way through the middleware of a server. */
public class MiddlewareRequest internal constructor(
    /** The kind of the message. */
    public val kind: MessageKind,
    /** The method: `tools/call`. */
    public val method: String,
    /**
     * The name of the tool or prompt, or the URI of the resource, that the request is for; for a completion, those of the prompt
     * or template. `null` for other methods.
     */
    public val name: String?,
    /** The parameters. */
    public val params: JsonObject,
    internal val isChanged: Boolean,
) {
    /** The arguments of a tool or prompt. */
    public val arguments: JsonObject get() = params["arguments"] as? JsonObject ?: JsonObject(emptyMap())

    /**
     * Returns a changed copy, to be passed to `next`. To send the request to another tool or prompt, change `name` in [params];
     * to another resource, `uri`.
     *
     * If a tool asks the client for input, a client of 2026-07-28 sends the request again with the answers. Change the parameters
     * of that request in the same way, or the answers are refused.
     */
    public fun copy(arguments: JsonObject? = null, params: JsonObject? = null): MiddlewareRequest {
        val changed = params ?: this.params
        val all = if (arguments == null) changed else JsonObject(changed + ("arguments" to arguments))
        return MiddlewareRequest(kind, method, name, all, isChanged = true)
    }
}

/** The result of a request, as the client gets it. */
public class MiddlewareResult internal constructor(
    /** The result as JSON. */
    public val json: String,
) {
    /** The result, which is decoded when it is first used. */
    public val members: JsonObject by lazy { mcpline.json.parseToJsonElement(json).jsonObject }

    /** Whether this is the result of a tool that failed. */
    public val isError: Boolean get() = (members["isError"] as? JsonPrimitive)?.booleanOrNull ?: false

    /** Whether this asks the client for input (2026-07-28). The client then sends the request again with the answers. */
    public val isInputRequired: Boolean
        get() = (members["resultType"] as? JsonPrimitive)?.contentOrNull == "input_required"
}

/** The rest of the chain after a middleware: the next middleware or, at the end, the handler. */
public fun interface Next {
    /**
     * Passes the request on, and returns its result. It may be called several times: the handler runs each time. If the wait is
     * cancelled, for example by a timeout, the handler continues until the middleware ends.
     *
     * @param request The request of the middleware, or a copy from its `copy`.
     * @throws RpcException The request has failed. The client gets the same error if the middleware does not catch it.
     */
    public suspend operator fun invoke(request: MiddlewareRequest): MiddlewareResult
}

/** A request as the core describes it. */
@Serializable
internal class DescribedRequest(
    val kind: MessageKind,
    val method: String,
    val name: String? = null,
    val params: JsonObject = JsonObject(emptyMap()),
) {
    fun request() = MiddlewareRequest(kind, method, name, params, isChanged = false)
}

/** Runs a middleware for the call of a request. */
internal suspend fun CallContext.runMiddleware(
    described: JsonElement,
    middleware: suspend CallContext.(MiddlewareRequest, Next) -> Any?,
): Outcome {
    val request = json.decodeFromJsonElement(DescribedRequest.serializer(), described).request()
    val next = Next { passed ->
        val params = if (passed.isChanged) passed.params.text() else null
        try {
            MiddlewareResult(native { call.runNext(params) })
        } catch (_: ClosedException) {
            // The coroutine is cancelled as well, perhaps a moment later.
            throw CancellationException("the request was cancelled")
        }
    }
    val value = try {
        middleware(request, next)
    } catch (missing: ResourceNotFoundException) {
        // As in a handler, it stands for the URI that the client reads.
        val isRead = request.method == "resources/read"
        throw if (missing.uri == null && isRead) ResourceNotFoundException(request.name) else missing
    }
    return middlewareOutcome(request, value)
}

/** Converts what a middleware returned: the result of the request, or for tools what a tool may return. */
private fun middlewareOutcome(request: MiddlewareRequest, value: Any?): Outcome {
    val misfit = {
        val returned = if (value == null || value == Unit) "nothing" else value::class.simpleName
        val allowed = if (request.method == "tools/call") "a `JsonObject` or what a tool may return" else "a `JsonObject`"
        UsageException("middleware for `${request.method}`: returned $returned; return the result of `next`, or $allowed")
    }
    return when {
        value is MiddlewareResult -> Outcome.MethodResult(value.json)
        request.kind.isNotification -> Outcome.MethodResult("{}")
        value == null || value == Unit || value is InputRequired -> throw misfit()
        value is ExtendedResult -> Outcome.MethodResult(value.toJson().text())
        value is JsonObject -> Outcome.MethodResult(value.text())
        request.method == "tools/call" -> toolOutcome(value)
        else -> Outcome.MethodResult((dataOf(value) as? JsonObject ?: throw misfit()).text())
    }
}
