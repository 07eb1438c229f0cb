package mcpline

import kotlinx.serialization.InternalSerializationApi
import kotlinx.serialization.KSerializer
import kotlinx.serialization.builtins.ListSerializer
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.serializer
import kotlinx.serialization.serializerOrNull
import mcpline.ffi.Outcome
import mcpline.ffi.RpcFailure
import mcpline.java.isRecord
import mcpline.java.serializerOf

/**
 * Input requests that a handler returns: it is called again, from its start, with the answers in
 * [CallContext.inputResponses].
 *
 * @property state State for the next run, which finds it in [CallContext.requestState]. Clients can neither read nor change it.
 */
public class InputRequired internal constructor(
    internal val requests: List<JsonArray>,
    public val state: String?,
) {
    /** Collects input requests, each with the key of its answer. */
    @McplineDsl
    public class Builder internal constructor() {
        internal val requests = mutableListOf<JsonArray>()

        /** Asks the user with a form for a [T], whose properties must be of primitive types. */
        public inline fun <reified T> elicit(key: String, message: String): Unit =
            elicit(key, message, jsonSchema<T>())

        /** Asks the user with a form of this JSON Schema. */
        public fun elicit(key: String, message: String, schema: JsonObject): Unit =
            request(key, "elicitation/create", formParams(message, schema))

        /** Asks the user to open a URL. */
        public fun elicitUrl(key: String, elicitation: UrlElicitation): Unit =
            request(key, "elicitation/create", elicitation.params())

        /** Asks the client's model. */
        public fun sample(key: String, params: CreateMessageParams): Unit = request(
            key,
            "sampling/createMessage",
            json.encodeToJsonElement(CreateMessageParams.serializer(), params) as JsonObject,
        )

        /** Asks the client for its root directories. */
        public fun listRoots(key: String): Unit = request(key, "roots/list", null)

        /** Sends any other request to the client. */
        public fun request(key: String, method: String, params: JsonObject?) {
            requests += JsonArray(listOf(JsonPrimitive(key), JsonPrimitive(method), params ?: JsonNull))
        }
    }
}

/** Returns input requests from a handler: see [InputRequired]. */
public fun inputRequired(state: String? = null, requests: InputRequired.Builder.() -> Unit): InputRequired =
    InputRequired(InputRequired.Builder().apply(requests).requests, state)

internal fun formParams(message: String, schema: JsonObject): JsonObject = JsonObject(
    mapOf("mode" to JsonPrimitive("form"), "message" to JsonPrimitive(message), "requestedSchema" to schema),
)

/** Kinds of features, by the names of the core. */
internal enum class FeatureKind {
    Tool,
    Resource,
    Prompt,
    Completion,
    ResourceList,
    Request,
    Notification,
    Event,
    Middleware,
    ;

    val wire: String get() = if (this == ResourceList) "resource_list" else name.lowercase()
}

/** Converts what a handler returned. */
internal fun outcome(kind: FeatureKind, value: Any?): Outcome = when {
    kind == FeatureKind.Event || kind == FeatureKind.Notification -> Outcome.Text("")
    value is Outcome -> value
    value is InputRequired -> Outcome.InputRequired(
        JsonObject(
            buildMap {
                put("requests", JsonArray(value.requests))
                value.state?.let { put("state", JsonPrimitive(it)) }
            },
        ).text(),
    )
    else -> when (kind) {
        FeatureKind.Tool -> toolOutcome(value)
        FeatureKind.Resource -> resourceOutcome(value)
        FeatureKind.Prompt -> promptOutcome(value)
        FeatureKind.Completion -> when (value) {
            is CompletionValues -> complete(
                JsonObject(mapOf("completion" to json.encodeToJsonElement(CompletionValues.serializer(), value))),
            )
            is List<*> -> Outcome.Values(value.map { it.toString().wellFormed() })
            else -> throw misfit("a completion", value)
        }
        FeatureKind.ResourceList -> resourceListOutcome(value)
        else -> complete(
            when (value) {
                Unit, null -> JsonObject(emptyMap())
                is ExtendedResult -> value.toJson()
                else -> dataOf(value)
            },
        )
    }
}

internal fun toolOutcome(value: Any?): Outcome = when {
    value is CharSequence -> Outcome.Text(value.toString().wellFormed())
    value == Unit || value == null -> Outcome.Content("[]")
    value is ContentBlock -> content(ContentBlock.serializer(), listOf(value))
    value is CallToolResult -> complete(json.encodeToJsonElement(CallToolResult.serializer(), value))
    value is Structured -> Outcome.Structured(value.json.text())
    value is List<*> && value.isNotEmpty() && value.all { it is ContentBlock || it is CharSequence } -> {
        val blocks = value.map { if (it is ContentBlock) it else TextContent(it.toString()) }
        content(ContentBlock.serializer(), blocks)
    }
    value is ExtendedResult -> complete(value.toJson())
    else -> Outcome.Text(dataOf(value).text())
}

private fun resourceOutcome(value: Any?): Outcome = when {
    value is CharSequence -> Outcome.Text(value.toString().wellFormed())
    value is ByteArray -> Outcome.Bytes(value, null)
    value is ResourceContents -> content(ResourceContents.serializer(), listOf(value))
    value is ReadResourceResult -> complete(json.encodeToJsonElement(ReadResourceResult.serializer(), value))
    value is List<*> && value.isNotEmpty() && value.all { it is ResourceContents } ->
        content(ResourceContents.serializer(), value.map { it as ResourceContents })
    value is ExtendedResult -> complete(value.toJson())
    value == Unit || value == null -> throw misfit("a resource", value)
    else -> Outcome.Text(dataOf(value).text())
}

private fun resourceListOutcome(value: Any?): Outcome {
    val items = value as? List<*> ?: throw misfit("the list of a template", value)
    val resources = items.map {
        when (it) {
            is CharSequence -> JsonPrimitive(it.toString().wellFormed())
            is Resource -> json.encodeToJsonElement(Resource.serializer(), it)
            is JsonObject -> it
            else -> throw misfit("the list of a template", it)
        }
    }
    return Outcome.Content(JsonArray(resources).text())
}

private fun promptOutcome(value: Any?): Outcome = when {
    value is CharSequence -> Outcome.Text(value.toString().wellFormed())
    value is PromptMessage -> content(PromptMessage.serializer(), listOf(value))
    value is ContentBlock -> content(PromptMessage.serializer(), listOf(PromptMessage(Role.User, value)))
    value is GetPromptResult -> complete(json.encodeToJsonElement(GetPromptResult.serializer(), value))
    value is List<*> && value.all { it is PromptMessage || it is ContentBlock || it is CharSequence } ->
        content(
            PromptMessage.serializer(),
            value.map {
                when (it) {
                    is PromptMessage -> it
                    is ContentBlock -> PromptMessage(Role.User, it)
                    else -> PromptMessage(Role.User, TextContent(it.toString()))
                }
            },
        )
    value is ExtendedResult -> complete(value.toJson())
    else -> throw misfit("a prompt", value)
}

/**
 * A result of a type that an [Extension] defines.
 *
 * @property resultType The type.
 * @property members The members of the result.
 */
public class ExtendedResult(public val resultType: String, public val members: JsonObject) {
    internal fun toJson(): JsonObject = JsonObject(mapOf("resultType" to JsonPrimitive(resultType)) + members)
}

/**
 * An extension of the protocol, which a server declares.
 *
 * @property identifier Identifier: a domain of yours, and a name.
 * @property settings What the server tells clients about it.
 * @property resultTypes Types of results that it defines: see [ExtendedResult].
 */
public class Extension(
    public val identifier: String,
    public val settings: JsonObject = JsonObject(emptyMap()),
    public val resultTypes: List<String> = emptyList(),
)

/** The structured content of a tool with an output type. */
internal class Structured(val json: JsonElement)

private fun complete(result: JsonElement): Outcome = Outcome.Complete(result.text())

private fun <T> content(serializer: KSerializer<T>, items: List<T>): Outcome =
    Outcome.Content(json.text(ListSerializer(serializer), items))

/** Encodes data whose type is known at run time only. */
@OptIn(InternalSerializationApi::class)
internal fun dataOf(value: Any?): JsonElement = when (value) {
    null -> JsonNull
    is JsonElement -> value
    is String -> JsonPrimitive(value)
    is Number -> JsonPrimitive(value)
    is Boolean -> JsonPrimitive(value)
    is Enum<*> -> serialized(value)
    is Map<*, *> -> JsonObject(value.entries.associate { (name, member) -> name.toString() to dataOf(member) })
    is Iterable<*> -> JsonArray(value.map(::dataOf))
    is Array<*> -> JsonArray(value.map(::dataOf))
    else -> serialized(value)
}

@OptIn(InternalSerializationApi::class)
private fun serialized(value: Any): JsonElement {
    @Suppress("UNCHECKED_CAST")
    val serializer = (value::class.serializerOrNull() ?: recordSerializerOrNull(value)) as KSerializer<Any>?
        ?: throw UsageException("${value::class.qualifiedName} is not serializable: annotate it with @Serializable")
    return json.encodeToJsonElement(serializer, value)
}

private fun recordSerializerOrNull(value: Any): KSerializer<*>? =
    if (isRecord(value.javaClass)) serializerOf(value.javaClass) else null

private fun misfit(feature: String, value: Any?): UsageException =
    UsageException("the handler of $feature can't return ${value?.let { it::class.simpleName }}")

/** Converts what a handler threw. */
internal fun outcome(kind: FeatureKind, error: Throwable): Outcome = when {
    error is ToolException -> Outcome.ToolFailure((error.message ?: "").wellFormed())
    error is RpcException -> Outcome.RpcFailed(error.toFailure())
    error is ResourceNotFoundException -> Outcome.ResourceNotFound(error.uri?.wellFormed())
    error is UrlElicitationRequiredException ->
        Outcome.UrlElicitationRequired(JsonArray(error.elicitations.map { it.params() }).text())
    error is NotSupportedException && error.required != null ->
        Outcome.NotSupported((error.message ?: "").wellFormed(), error.required.text())
    error is McplineException && error.facts.isForModel -> Outcome.ToolFailure((error.message ?: "").wellFormed())
    else -> Outcome.Exception(error.toString().wellFormed(), error.stackTraceToString().wellFormed())
}

internal fun RpcFailure.toException(): RpcException = RpcException(code, message, data?.let(json::parseToJsonElement))

internal fun RpcException.toFailure(): RpcFailure =
    RpcFailure(code, rpcMessage.wellFormed(), data?.text())
