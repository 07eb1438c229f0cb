package mcpline

import kotlin.coroutines.CoroutineContext
import kotlin.coroutines.EmptyCoroutineContext
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.onSubscription
import kotlinx.coroutines.flow.takeWhile
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import kotlinx.serialization.KSerializer
import kotlinx.serialization.Serializable
import kotlinx.serialization.builtins.ListSerializer
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.serializer
import mcpline.ffi.Client as NativeClient
import mcpline.ffi.ProgressListener

/**
 * A client of one server.
 *
 * Open it with [connect], [spawn], [socket], [memory] or [over], and [close] it at the end, or [use] it. Requests share the
 * connection. If it is lost, the next request opens a new one. If the coroutine of a request is cancelled, so is the request,
 * also at the server. All functions are safe to call from any thread, and throw a [McplineException].
 */
public class Client private constructor(private val native: NativeClient, private val host: ClientHost) {
    private lateinit var description: ServerDescription

    /** The revision of the protocol that both sides speak: `2026-07-28`. */
    public val revision: String get() = description.protocolVersion

    /** Name and version of the server, if it sent them. */
    public val serverInfo: Implementation? get() = description.serverInfo

    /** The capabilities that the server declares. */
    public val serverCapabilities: JsonObject get() = description.serverCapabilities

    /** For the model: how to use the server. */
    public val instructions: String? get() = description.instructions

    /** The process id of the server, if the client has started it. */
    public val pid: Long? get() = native { native.pid()?.toLong() }

    /** What the client holds now. */
    public val stats: JsonObject get() = json.parseToJsonElement(native { native.stats() }).jsonObject

    /** The metrics in the text format of Prometheus, if [ClientSettings.metrics] is on. */
    public val metrics: String get() = native { native.metrics() }

    /**
     * The notifications of the server, those that arrive while the flow is collected. It ends when the client is closed.
     *
     * A collector that is slower than the server loses notifications when more than 4,096, or 32 MiB, are waiting; a warning
     * is logged then.
     */
    public val notifications: Flow<Notification> =
        host.notifications
            .onSubscription { native { native.listen() } }
            .takeWhile { it != null }
            .map { checkNotNull(it) }

    /**
     * Calls a tool. A tool that fails returns a result with [CallToolResult.isError].
     *
     * @param onProgress Called with each progress report, in order, before the call returns.
     */
    public suspend fun callTool(
        name: String,
        arguments: JsonObject = JsonObject(emptyMap()),
        options: RequestOptions? = null,
        onProgress: (suspend (Progress) -> Unit)? = null,
    ): CallToolResult {
        val params = JsonObject(mapOf("name" to JsonPrimitive(name), "arguments" to arguments))
        return result(CallToolResult.serializer(), "tools/call", params, options, onProgress)
    }

    /** Calls a tool with arguments of a serializable type. */
    public suspend inline fun <reified A> callTool(
        name: String,
        arguments: A,
        options: RequestOptions? = null,
        noinline onProgress: (suspend (Progress) -> Unit)? = null,
    ): CallToolResult = callTool(name, encodeArguments(serializer<A>(), arguments), options, onProgress)

    /** Returns the tools of all pages. */
    public suspend fun listTools(options: RequestOptions? = null): List<Tool> =
        list("tools/list", Tool.serializer(), options)

    /** Returns the resources of all pages. */
    public suspend fun listResources(options: RequestOptions? = null): List<Resource> =
        list("resources/list", Resource.serializer(), options)

    /** Returns the resource templates of all pages. */
    public suspend fun listResourceTemplates(options: RequestOptions? = null): List<ResourceTemplate> =
        list("resources/templates/list", ResourceTemplate.serializer(), options)

    /** Returns the prompts of all pages. */
    public suspend fun listPrompts(options: RequestOptions? = null): List<Prompt> =
        list("prompts/list", Prompt.serializer(), options)

    /** Reads a resource. */
    public suspend fun readResource(uri: String, options: RequestOptions? = null): ReadResourceResult =
        result(ReadResourceResult.serializer(), "resources/read", uriParams(uri), options)

    /** Returns a prompt with its arguments filled in. */
    public suspend fun getPrompt(
        name: String,
        arguments: Map<String, String> = emptyMap(),
        options: RequestOptions? = null,
    ): GetPromptResult {
        val given = JsonObject(arguments.mapValues { JsonPrimitive(it.value) })
        val params = JsonObject(mapOf("name" to JsonPrimitive(name), "arguments" to given))
        return result(GetPromptResult.serializer(), "prompts/get", params, options)
    }

    /**
     * Completes an argument of a prompt.
     *
     * @param value What the user typed.
     * @param others The other arguments given so far.
     */
    public suspend fun completePrompt(
        name: String,
        argument: String,
        value: String,
        others: Map<String, String> = emptyMap(),
        options: RequestOptions? = null,
    ): CompletionValues = complete(
        JsonObject(mapOf("type" to JsonPrimitive("ref/prompt"), "name" to JsonPrimitive(name))),
        argument,
        value,
        others,
        options,
    )

    /** Completes a variable of a resource template. */
    public suspend fun completeResource(
        uriTemplate: String,
        variable: String,
        value: String,
        others: Map<String, String> = emptyMap(),
        options: RequestOptions? = null,
    ): CompletionValues = complete(
        JsonObject(mapOf("type" to JsonPrimitive("ref/resource"), "uri" to JsonPrimitive(uriTemplate))),
        variable,
        value,
        others,
        options,
    )

    /** Subscribes to updates to a resource: `notifications/resources/updated` among the [notifications]. */
    public suspend fun subscribe(uri: String, options: RequestOptions? = null): Unit =
        perform("resources/subscribe", uri, options)

    /** Unsubscribes from updates to a resource. */
    public suspend fun unsubscribe(uri: String, options: RequestOptions? = null): Unit =
        perform("resources/unsubscribe", uri, options)

    /** Sets the least severe level of log messages that the server sends. */
    public suspend fun setLogLevel(level: LogLevel, options: RequestOptions? = null): Unit =
        perform("logging/setLevel", level.wire, options)

    /** Checks that the server answers. */
    public suspend fun ping(options: RequestOptions? = null): Unit = perform("ping", "", options)

    /** Notifies the server that the client's roots have changed. */
    public suspend fun notifyRootsChanged(): Unit = perform("notifications/roots/list_changed", "", null)

    /** Sends any other request, and returns its result. */
    public suspend fun request(
        method: String,
        params: JsonObject? = null,
        options: RequestOptions? = null,
        onProgress: (suspend (Progress) -> Unit)? = null,
    ): JsonObject = json.parseToJsonElement(send(method, params, options, onProgress)).jsonObject

    /** Sends a notification. */
    public suspend fun notify(method: String, params: JsonObject? = null): Unit =
        awaitNative { native.notify(method, params?.text()) }

    /**
     * Closes the connection: requests in flight fail with a [ClosedException], and a program that the client started ends.
     * Returns when nothing of it is left.
     */
    public suspend fun close() {
        withContext(NonCancellable) {
            awaitNative { native.disconnect() }
            host.close()
        }
    }

    /** Runs a function with the client, and closes it. */
    public suspend inline fun <R> use(block: (Client) -> R): R =
        try {
            block(this)
        } finally {
            close()
        }

    private suspend fun complete(
        ref: JsonObject,
        argument: String,
        value: String,
        others: Map<String, String>,
        options: RequestOptions?,
    ): CompletionValues {
        val params = buildJsonObject {
            put("ref", ref)
            put("argument", JsonObject(mapOf("name" to JsonPrimitive(argument), "value" to JsonPrimitive(value))))
            if (others.isNotEmpty()) {
                val given = JsonObject(others.mapValues { JsonPrimitive(it.value) })
                put("context", JsonObject(mapOf("arguments" to given)))
            }
        }
        return result(CompleteResult.serializer(), "completion/complete", params, options).completion
    }

    private suspend fun <T> result(
        serializer: KSerializer<T>,
        method: String,
        params: JsonObject?,
        options: RequestOptions?,
        onProgress: (suspend (Progress) -> Unit)? = null,
    ): T = decodeResult(serializer, send(method, params, options, onProgress), "the result of $method")

    private suspend fun send(
        method: String,
        params: JsonObject?,
        options: RequestOptions?,
        onProgress: (suspend (Progress) -> Unit)?,
    ): String {
        val given = params?.text()
        if (onProgress == null) return awaitNative { native.request(method, given, encoded(options), null) }
        // Reports run in the context of the caller. The library waits while one is handed over, and holds the next ones.
        val reports = Channel<Progress>(Channel.RENDEZVOUS)
        return coroutineScope {
            val reporting = launch { for (report in reports) onProgress(report) }
            try {
                awaitNative { native.request(method, given, encoded(options), ProgressReports(reports)) }
            } finally {
                reports.close()
                reporting.join()
            }
        }
    }

    private suspend fun <T> list(method: String, serializer: KSerializer<T>, options: RequestOptions?): List<T> =
        decodeResult(
            ListSerializer(serializer),
            awaitNative { native.list(method, encoded(options)) },
            "the result of $method",
        )

    private suspend fun perform(method: String, argument: String, options: RequestOptions?): Unit =
        awaitNative { native.perform(method, argument, encoded(options)) }

    private fun encoded(options: RequestOptions?): String? =
        options?.let { optionsJson.text(RequestOptions.serializer(), it) }

    /** Opens clients. */
    public companion object {
        /**
         * Connects to an HTTP server: 2026-07-28, an older revision of Streamable HTTP, or HTTP+SSE. Detects which of them the
         * server speaks.
         *
         * @param context Where handlers run: a dispatcher, and other elements of their coroutines' context.
         * @param configure Sets handlers and settings.
         */
        public suspend fun connect(
            url: String,
            http: HttpClientOptions = HttpClientOptions(),
            context: CoroutineContext = EmptyCoroutineContext,
            configure: ClientBuilder.() -> Unit = {},
        ): Client {
            val builder = ClientBuilder().apply(configure)
            val options = optionsJson.encodeToJsonElement(HttpClientOptions.serializer(), http).jsonObject
            val auth = builder.auth?.let { mapOf("auth" to it.options) }
            return open(builder, "url", url, JsonObject(options + auth.orEmpty()), context)
        }

        /**
         * Starts a program and connects to it over its standard input and output. It ends when the client ends, together with
         * all processes that it started.
         */
        public suspend fun spawn(
            program: String,
            vararg arguments: String,
            options: ProgramOptions = ProgramOptions(),
            context: CoroutineContext = EmptyCoroutineContext,
            configure: ClientBuilder.() -> Unit = {},
        ): Client {
            val given = optionsJson.encodeToJsonElement(ProgramOptions.serializer(), options).jsonObject
            val command = buildJsonObject {
                given.forEach { (name, value) -> put(name, value) }
                put("program", JsonPrimitive(program))
                put("arguments", JsonArray(arguments.map(::JsonPrimitive)))
            }
            return open(ClientBuilder().apply(configure), "program", "", command, context)
        }

        /** Connects to a server at a Unix socket, with one message per line. */
        public suspend fun socket(
            path: String,
            context: CoroutineContext = EmptyCoroutineContext,
            configure: ClientBuilder.() -> Unit = {},
        ): Client = open(ClientBuilder().apply(configure), "socket", path, JsonObject(emptyMap()), context)

        /** Connects to a server in the same process, without sockets: for tests. The whole protocol runs. */
        public suspend fun memory(
            server: Server,
            context: CoroutineContext = EmptyCoroutineContext,
            configure: ClientBuilder.() -> Unit = {},
        ): Client {
            val builder = ClientBuilder().apply(configure)
            val host = ClientHost(builder, context)
            return open(host) {
                NativeClient.ofServer(host, builder.offer(), builder.encodedSettings(), server.native, "{}")
            }
        }

        /** Connects over a custom transport, which opens a channel for each connection. It runs where handlers run. */
        public suspend fun over(
            transport: ClientTransport,
            context: CoroutineContext = EmptyCoroutineContext,
            configure: ClientBuilder.() -> Unit = {},
        ): Client {
            val builder = ClientBuilder().apply(configure)
            val host = ClientHost(builder, context)
            return open(host) {
                NativeClient.ofTransport(
                    host,
                    builder.offer(),
                    builder.encodedSettings(),
                    ChannelOpener(transport, host.scope),
                )
            }
        }

        private suspend fun open(
            builder: ClientBuilder,
            kind: String,
            at: String,
            options: JsonObject,
            context: CoroutineContext,
        ): Client {
            val host = ClientHost(builder, context)
            return open(host) {
                NativeClient.of(host, builder.offer(), builder.encodedSettings(), kind, at, options.text())
            }
        }

        private suspend fun open(host: ClientHost, create: () -> NativeClient): Client {
            Library.load()
            val client = Client(native(create), host)
            try {
                host.requestListener()?.let { native { client.native.recordRequests(it) } }
                val description = awaitNative { client.native.open() }
                client.description = json.decodeFromString(ServerDescription.serializer(), description)
                return client
            } catch (error: Throwable) {
                client.close()
                throw error
            }
        }
    }
}

/**
 * The structured content of a result, decoded as a [T].
 *
 * @throws ToolException The tool failed: its text.
 * @throws InvalidResponseException The content has another form, or there is none.
 */
public inline fun <reified T> CallToolResult.data(): T = data(serializer<T>())

/** The structured content of a result, decoded by this serializer. */
public fun <T> CallToolResult.data(serializer: KSerializer<T>): T {
    if (isError == true) throw ToolException(text)
    val content = structuredContent ?: throw InvalidResponseException("the result has no structured content")
    try {
        return json.decodeFromJsonElement(serializer, content)
    } catch (error: IllegalArgumentException) {
        throw InvalidResponseException("the structured content: ${error.message}")
    }
}

@PublishedApi
internal fun <A> encodeArguments(serializer: KSerializer<A>, arguments: A): JsonObject =
    json.encodeToJsonElement(serializer, arguments) as? JsonObject
        ?: throw UsageException("the arguments of a tool must be an object")

private fun uriParams(uri: String): JsonObject = JsonObject(mapOf("uri" to JsonPrimitive(uri)))

@Serializable
private class ServerDescription(
    val protocolVersion: String,
    val serverInfo: Implementation? = null,
    val serverCapabilities: JsonObject,
    val instructions: String? = null,
)

@Serializable
private class CompleteResult(val completion: CompletionValues)

/** Hands the progress reports of a request over to the coroutine that waits for it. */
private class ProgressReports(private val reports: Channel<Progress>) : ProgressListener {
    override suspend fun progress(progress: Double, total: Double?, message: String?): Unit =
        reports.send(Progress(progress, total, message))
}
