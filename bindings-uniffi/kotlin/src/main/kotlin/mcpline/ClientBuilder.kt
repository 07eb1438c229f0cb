package mcpline

import kotlin.coroutines.CoroutineContext
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.launch
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.serializer
import mcpline.ffi.ClientEvent
import mcpline.ffi.Host
import mcpline.ffi.InputAnswer
import mcpline.ffi.RequestListener

/**
 * What the server asks the user.
 *
 * @property message Message to the user.
 * @property schema JSON Schema of the form; `null` if the user is asked to open a URL.
 * @property url The URL to open.
 * @property elicitationId Id under which the server reports that the URL elicitation is complete.
 */
@Serializable
public class Elicitation internal constructor(
    public val message: String,
    @SerialName("requestedSchema") public val schema: JsonObject? = null,
    public val url: String? = null,
    public val elicitationId: String? = null,
) {
    /** Accepts with these contents of the form, or to open the URL. */
    public fun accept(content: JsonObject = JsonObject(emptyMap())): ElicitResult<JsonObject> =
        ElicitResult.Accepted(content)

    /** Accepts with contents of a serializable type. */
    public inline fun <reified T> accept(content: T): ElicitResult<JsonObject> =
        accept(encodeArguments(serializer<T>(), content))
}

/** A log message of a server. */
@Serializable
public class LogMessage internal constructor(
    /** Its severity. */
    public val level: LogLevel,
    /** Any JSON value; usually a text. */
    public val data: JsonElement,
    /** Name of the logger. */
    public val logger: String? = null,
)

/** A change of a client's connection. */
public sealed class ConnectionEvent {
    /** The client has connected for the first time. */
    public data object Connected : ConnectionEvent()

    /**
     * The connection was lost, or could not be opened again. The next request opens a new one.
     *
     * @property error Why there is no connection.
     */
    public data class Lost(public val error: McplineException) : ConnectionEvent()

    /** The client opens a new connection, possibly after a pause. */
    public data object Retrying : ConnectionEvent()

    /** A new connection has taken the place of the lost one. */
    public data object Restored : ConnectionEvent()

    /**
     * The client does not connect again for now: the last attempt that its settings allow has failed. After 30 seconds, a
     * request makes another attempt, unless the settings allow none.
     *
     * @property error Why the attempt has failed; requests fail with it, too.
     */
    public data class GivenUp(public val error: McplineException) : ConnectionEvent()

    /** The client was closed. No event follows. */
    public data object Closed : ConnectionEvent()
}

/** Handlers and settings of a client. Setting a handler declares its capability to the server. */
@McplineDsl
public class ClientBuilder internal constructor() {
    /** Name of the host, as sent to servers. */
    public var name: String = "mcpline"

    /** Version of the host. Default: that of this library. */
    public var version: String = Library.version

    /** Display name of the host. */
    public var title: String? = null

    /** Settings. */
    public var settings: ClientSettings = ClientSettings()

    /** Source of access tokens for an HTTP server. Default: none. */
    public var auth: Auth? = null

    /** Capabilities in addition to, or in place of, those of the handlers: `{"sampling": {"tools": {}}}`. */
    public var capabilities: JsonObject? = null

    /** Middleware that the library provides for the client's requests, the outermost first. */
    public var middleware: List<BuiltInClientMiddleware> = emptyList()

    internal val answers = mutableMapOf<String, suspend (JsonObject) -> JsonElement>()
    private val extensions = mutableListOf<ClientExtension>()
    private var toolCall: (suspend (ToolCall) -> Unit)? = null
    private var toolOutcome: (suspend (ToolCallOutcome) -> Unit)? = null
    internal var log: (suspend (LogMessage) -> Unit)? = null
    internal var notification: (suspend (Notification) -> Unit)? = null
    internal var connection: (suspend (ConnectionEvent) -> Unit)? = null
    internal var stderr: (suspend (String) -> Unit)? = null
    internal var requestEnd: (suspend (ClientRequestRecord) -> Unit)? = null

    /** Asks the user what the server asks. */
    public fun onElicit(handler: suspend (Elicitation) -> ElicitResult<JsonObject>) {
        answers["elicitation/create"] = { params ->
            handler(json.decodeFromJsonElement(Elicitation.serializer(), params)).toJson()
        }
    }

    /** Asks the model what the server asks. */
    public fun onSample(handler: suspend (CreateMessageParams) -> CreateMessageResult) {
        answers["sampling/createMessage"] = { params ->
            val result = handler(json.decodeFromJsonElement(CreateMessageParams.serializer(), params))
            json.encodeToJsonElement(CreateMessageResult.serializer(), result)
        }
    }

    /** Returns the root directories of the host. */
    public fun onListRoots(handler: suspend () -> List<Root>) {
        answers["roots/list"] = { json.encodeToJsonElement(Roots.serializer(), Roots(handler())) }
    }

    /** Offers these root directories to the server. */
    public fun roots(vararg uris: String): Unit = onListRoots { uris.map { Root(it) } }

    /** Answers custom requests of the server. */
    public fun onRequest(method: String, handler: suspend (params: JsonObject) -> JsonObject) {
        answers[method] = handler
    }

    /**
     * Declares an extension of the protocol that the client supports, to servers of every revision.
     *
     * @param identifier A domain as prefix, and a name: `com.example/stamps`.
     * @param settings Settings to declare, whose members the extension defines.
     * @param configure Sets its handlers.
     */
    public fun extension(
        identifier: String,
        settings: JsonObject = JsonObject(emptyMap()),
        configure: ClientExtension.() -> Unit = {},
    ) {
        extensions += ClientExtension(identifier, settings).apply(configure)
    }

    /**
     * Called before each tool call is sent, to get the user's consent. Return to allow the call; throw a [ToolCallRefusedException]
     * to refuse it. Any other exception refuses it too. The timeouts of the call start when it is sent.
     */
    public fun onToolCall(hook: suspend (ToolCall) -> Unit) {
        toolCall = hook
    }

    /** Called with the outcome of each tool call, also of refused and cancelled ones, before the caller gets it. */
    public fun onToolOutcome(hook: suspend (ToolCallOutcome) -> Unit) {
        toolOutcome = hook
    }

    /** Called with the log messages of the server. */
    public fun onLog(handler: suspend (LogMessage) -> Unit) {
        log = handler
    }

    /** Called with all notifications of the server. [Client.notifications] has them as a flow. */
    public fun onNotification(handler: suspend (Notification) -> Unit) {
        notification = handler
    }

    /** Called with changes of the connection. */
    public fun onConnection(handler: suspend (ConnectionEvent) -> Unit) {
        connection = handler
    }

    /** Called with the lines that the server's process writes to stderr. */
    public fun onStderr(handler: suspend (line: String) -> Unit) {
        stderr = handler
    }

    /**
     * Called at the end of each request of the client, for a log of requests: those that it sends, and those of the server that it
     * answers. While 4,096 records wait because the function is slow, further records are dropped.
     */
    public fun onRequestEnd(listener: suspend (ClientRequestRecord) -> Unit) {
        requestEnd = listener
    }

    /** The options of the host, as the core reads them. */
    internal fun offer(): String {
        val custom = answers.keys - setOf("elicitation/create", "sampling/createMessage", "roots/list")
        val info = json.encodeToJsonElement(Implementation.serializer(), Implementation(name, version, title))
        return JsonObject(
            mapOf(
                "info" to info,
                "elicit" to JsonPrimitive("elicitation/create" in answers),
                "sample" to JsonPrimitive("sampling/createMessage" in answers),
                "roots" to JsonPrimitive("roots/list" in answers),
                "requests" to JsonArray(custom.map(::JsonPrimitive)),
                "notifications" to JsonPrimitive(notification != null),
                "logs" to JsonPrimitive(log != null),
                "connection" to JsonPrimitive(connection != null),
                "stderr" to JsonPrimitive(stderr != null),
                "capabilities" to (capabilities ?: JsonObject(emptyMap())),
                "tool_call" to JsonPrimitive(toolCall != null),
                "tool_outcome" to JsonPrimitive(toolOutcome != null),
                "middleware" to JsonArray(middleware.map { it.definition() }),
                "extensions" to JsonArray(extensions.map { it.toJson() }),
            ),
        ).text()
    }

    /** Returns the handler of an input request of the server, or of the library. */
    internal fun answer(method: String): (suspend (JsonObject) -> JsonElement)? = when (method) {
        "host/extended_result" -> ::resolve
        TOOL_CALL -> { params ->
            toolCall?.invoke(json.decodeFromJsonElement(ToolCall.serializer(), params))
            JsonObject(emptyMap())
        }
        "host/tool_outcome" -> { params ->
            toolOutcome?.invoke(json.decodeFromJsonElement(ToolCallOutcome.serializer(), params))
            JsonObject(emptyMap())
        }
        else -> answers[method] ?: extensions.firstNotNullOfOrNull { it.requests[method] } ?: auth?.answers?.get(method)
    }

    private suspend fun resolve(params: JsonObject): JsonElement {
        val received = json.decodeFromJsonElement(ReceivedResult.serializer(), params)
        val handler = extensions.firstNotNullOfOrNull { it.resultTypes[received.type] }
        return handler?.invoke(received) ?: throw RpcException(-32601, "no handler for results of type ${received.type}")
    }

    internal fun encodedSettings(): String = optionsJson.text(ClientSettings.serializer(), settings)
}

/** The method with which the core asks for consent to a tool call. */
private const val TOOL_CALL = "host/tool_call"

/** The host of a client: answers input requests, and passes events on, each in the client's scope. */
internal class ClientHost(private val builder: ClientBuilder, context: CoroutineContext) : Host {
    val scope = CoroutineScope(SupervisorJob() + Dispatchers.Default + context)

    /** Notifications; `null` when the client is closed. Collectors that are slower hold the library's queue back. */
    val notifications = MutableSharedFlow<Notification?>()

    override suspend fun inputRequest(method: String, params: String?): InputAnswer = inScope(scope) {
        try {
            val handler = builder.answer(method) ?: throw RpcException(-32601, "no handler for $method")
            val given = params?.let { json.parseToJsonElement(it).jsonObject } ?: JsonObject(emptyMap())
            InputAnswer.Answered(handler(given).text())
        } catch (error: RpcException) {
            InputAnswer.Refused(error.toFailure())
        } catch (error: Throwable) {
            if (error is CancellationException) ensureActive()
            // The program gets its reason. That of a tool call within another handler is not for the server that asks.
            if (error is ToolCallRefusedException && method == TOOL_CALL) {
                return@inScope InputAnswer.Refused(RpcException(-32603, error.message ?: "").toFailure())
            }
            reportUncaught(error)
            // The message of one for authorization is that of the error, which the program itself gets.
            val reason = if (method.startsWith("auth/")) error.toString() else "the handler failed"
            InputAnswer.Refused(RpcException(-32603, reason).toFailure())
        }
    }

    override suspend fun events(events: List<ClientEvent>): Unit = inScope(scope) {
        for (event in events) {
            try {
                pass(event)
            } catch (error: Throwable) {
                if (error is CancellationException) ensureActive()
                reportUncaught(error)
            }
        }
    }

    /** Returns the listener of the client's requests, if the program has one. */
    fun requestListener(): RequestListener? =
        builder.requestEnd?.let { RequestRecords(ClientRequestRecord.serializer(), scope, it) }

    /** Ends the flows of notifications. Does not wait for their collectors, as one of them may be closing the client. */
    fun close() {
        scope.launch { notifications.emit(null) }
    }

    private suspend fun pass(event: ClientEvent) {
        when (event) {
            is ClientEvent.Notification -> {
                val params = event.params?.let { json.parseToJsonElement(it).jsonObject } ?: JsonObject(emptyMap())
                val notification = Notification(event.method, params)
                if (event.method == "notifications/message") {
                    builder.log?.invoke(json.decodeFromJsonElement(LogMessage.serializer(), params))
                }
                builder.notification?.invoke(notification)
                notifications.emit(notification)
            }
            is ClientEvent.Connection -> builder.connection?.invoke(
                when (event.state) {
                    "connected" -> ConnectionEvent.Connected
                    "retrying" -> ConnectionEvent.Retrying
                    "restored" -> ConnectionEvent.Restored
                    "closed" -> ConnectionEvent.Closed
                    "given_up" -> event.failure?.let { ConnectionEvent.GivenUp(McplineException.of(it)) } ?: return
                    else -> event.failure?.let { ConnectionEvent.Lost(McplineException.of(it)) } ?: return
                },
            )
            is ClientEvent.Stderr -> builder.stderr?.invoke(event.line)
        }
    }
}
