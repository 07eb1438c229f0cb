package mcpline

import kotlin.coroutines.CoroutineContext
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.delay
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.job
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.serialization.KSerializer
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.contentOrNull
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.serializer
import mcpline.ffi.Outcome
import mcpline.ffi.Server as NativeServer
import mcpline.ffi.Serving

/** How long handlers may clean up after they were cancelled at the end of the last transport. */
private val HANDLER_CLEANUP_TIMEOUT = 2.seconds

/** The core's default of [ServerSettings.shutdownTimeout]. */
private val DEFAULT_SHUTDOWN_TIMEOUT = 5.seconds

/**
 * Creates a server.
 *
 * ```kotlin
 * val weather = server("weather", "1.0.0") {
 *     tool<ForecastArguments>("forecast", "Forecast for a city") { arguments -> "${arguments.city}: sunny" }
 * }
 * weather.run()
 * ```
 *
 * @param name Name for programs.
 * @param version Version of the server.
 * @param title Display name.
 * @param instructions For the model: how to use the server.
 * @param settings Settings; every one has a production-safe default.
 * @param extensions Extensions of the protocol to declare.
 * @param context Where handlers run: a dispatcher, and other elements of their coroutines' context. Default:
 *   [Dispatchers.Default], whose threads handlers must not block. Several handlers run on a thread one after another: remove what
 *   a handler sets in a `ThreadLocal`.
 * @param features Adds tools, resources, prompts and others.
 * @throws UsageException A setting or a feature is invalid.
 */
public fun server(
    name: String,
    version: String,
    title: String? = null,
    instructions: String? = null,
    settings: ServerSettings = ServerSettings(),
    extensions: List<Extension> = emptyList(),
    context: CoroutineContext = EmptyCoroutineContext,
    features: Server.() -> Unit = {},
): Server {
    val info = Implementation(name, version, title)
    val timeout = settings.shutdownTimeout ?: DEFAULT_SHUTDOWN_TIMEOUT
    return Server(info, instructions, options(settings, extensions), timeout, context).apply(features)
}

/**
 * A server. Create it with [server].
 *
 * Features can be added and removed while it runs; clients are notified. All functions are safe to call from any thread.
 *
 * Handlers run in coroutines on [Dispatchers.Default], unless the server has a context of its own. Code that blocks its thread
 * belongs into `withContext(Dispatchers.IO)`: handlers that block all threads of [Dispatchers.Default] delay all other calls,
 * also those of other servers. That includes servers with a context of their own: tasks of [Dispatchers.Default] start their
 * handlers.
 */
@McplineDsl
public class Server internal constructor(
    info: Implementation,
    instructions: String?,
    options: JsonObject,
    internal val shutdownTimeout: Duration,
    context: CoroutineContext,
) {
    internal val native: NativeServer = native {
        Library.load()
        NativeServer(
            json.text(Implementation.serializer(), info),
            instructions?.wellFormed(),
            options.text(),
        )
    }
    private val scope = CoroutineScope(SupervisorJob() + Dispatchers.Default + context)
    private val queue = native { native.handlerQueue().toLong() }.also { HandlerCalls.openQueue(it, scope) }
    private val serving = mutableSetOf<Serving>()
    private var lifespan: (suspend (serve: suspend () -> Unit) -> Unit)? = null

    /**
     * Adds a tool whose arguments are an [A].
     *
     * The schema of the arguments is derived from the serializer of [A]: see [jsonSchema]. The handler returns a text,
     * content blocks, a [CallToolResult], an [InputRequired], nothing, or data, which is sent as JSON.
     *
     * @param scopes Scopes that a caller needs, all of them. Others do not see the tool.
     * @param timeout How long the handler may run. The time in which an input request is open does not count.
     * @param runOnce Never run the handler again for a retried request.
     * @throws UsageException The name is taken, or an option is invalid.
     */
    public inline fun <reified A> tool(
        name: String,
        description: String? = null,
        title: String? = null,
        annotations: ToolAnnotations? = null,
        icons: List<Icon>? = null,
        meta: JsonObject? = null,
        scopes: List<String> = emptyList(),
        tags: List<String> = emptyList(),
        timeout: Duration? = null,
        runOnce: Boolean = false,
        noinline handler: suspend CallContext.(arguments: A) -> Any?,
    ) {
        val definition = Tool(name, title, description, jsonSchema<A>(), null, annotations, icons, meta)
        val serializer = serializer<A>()
        addTool(definition, FeatureOptions(scopes, tags, timeout, runOnce)) { arguments ->
            handler(decodeArguments(serializer, arguments))
        }
    }

    /** Adds a tool that returns structured content, an [R], whose output schema is derived from its serializer. */
    public inline fun <reified A, reified R> structuredTool(
        name: String,
        description: String? = null,
        title: String? = null,
        annotations: ToolAnnotations? = null,
        icons: List<Icon>? = null,
        meta: JsonObject? = null,
        scopes: List<String> = emptyList(),
        tags: List<String> = emptyList(),
        timeout: Duration? = null,
        runOnce: Boolean = false,
        noinline handler: suspend CallContext.(arguments: A) -> R,
    ) {
        val output = serializer<R>()
        val outputSchema = jsonSchema(output.descriptor)
        val definition = Tool(name, title, description, jsonSchema<A>(), outputSchema, annotations, icons, meta)
        val serializer = serializer<A>()
        addTool(definition, FeatureOptions(scopes, tags, timeout, runOnce)) { arguments ->
            structured(output, handler(decodeArguments(serializer, arguments)))
        }
    }

    /** Adds a tool without arguments. */
    public fun tool(
        name: String,
        description: String? = null,
        title: String? = null,
        annotations: ToolAnnotations? = null,
        icons: List<Icon>? = null,
        meta: JsonObject? = null,
        scopes: List<String> = emptyList(),
        tags: List<String> = emptyList(),
        timeout: Duration? = null,
        runOnce: Boolean = false,
        handler: suspend CallContext.() -> Any?,
    ) {
        val schema = JsonObject(mapOf("type" to JsonPrimitive("object"), "properties" to JsonObject(emptyMap())))
        val definition = Tool(name, title, description, schema, null, annotations, icons, meta)
        addTool(definition, FeatureOptions(scopes, tags, timeout, runOnce)) { handler() }
    }

    /** Adds a tool with JSON Schemas of your own. */
    public fun addTool(
        definition: Tool,
        options: FeatureOptions = FeatureOptions(),
        handler: suspend CallContext.(arguments: JsonObject) -> Any?,
    ): Unit = add(FeatureKind.Tool, json.text(Tool.serializer(), definition), options) { arguments ->
        handler(arguments.jsonObject)
    }

    /** Removes a tool. Returns whether it existed. */
    public fun removeTool(name: String): Boolean = native { native.removeFeature(FeatureKind.Tool.wire, name) }

    /** Changes members of a tool's definition; `null` removes a member. */
    public fun updateTool(name: String, changes: JsonObject): Unit =
        native { native.updateFeature(FeatureKind.Tool.wire, name, changes.text()) }

    /**
     * Adds a resource, or a template if the URI has variables (RFC 6570).
     *
     * The handler gets the variables of the URI, and returns a text, bytes, [ResourceContents], a list of them, a
     * [ReadResourceResult], an [InputRequired], or data, which is sent as JSON. It throws a [ResourceNotFoundException] for
     * what does not exist.
     *
     * @param uncheckedVariables Variables that may have any value. Others may not contain a path out of a directory.
     * @param cache How long clients may cache the contents (2026-07-28). Default: `resourceCache` of the settings.
     * @param list Lists resources of a template: returns URIs and [Resource] objects. They follow the registered resources in
     *   `resources/list`, on its last page. Those that do not match the template, or that are registered, are left out. It is
     *   called for each request of a client that may use the template, and its exception is the error of the request. Call
     *   [notifyResourceListChanged] when its result changes.
     * @throws UsageException The URI is taken, or an option is invalid.
     */
    public fun resource(
        uri: String,
        name: String,
        description: String? = null,
        mimeType: String? = null,
        title: String? = null,
        size: Long? = null,
        annotations: Annotations? = null,
        icons: List<Icon>? = null,
        meta: JsonObject? = null,
        scopes: List<String> = emptyList(),
        tags: List<String> = emptyList(),
        uncheckedVariables: List<String> = emptyList(),
        cache: CacheHint? = null,
        list: (suspend CallContext.() -> List<Any>)? = null,
        handler: suspend CallContext.(variables: UriVariables) -> Any?,
    ) {
        val isTemplate = '{' in uri
        if (list != null && !isTemplate) {
            throw UsageException("resource \"$uri\": only a resource template lists others")
        }
        val definition = if (isTemplate) {
            val template = ResourceTemplate(uri, name, title, description, mimeType, annotations, icons, meta)
            json.text(ResourceTemplate.serializer(), template)
        } else {
            val resource = Resource(uri, name, title, description, mimeType, size, annotations, icons, meta)
            json.text(Resource.serializer(), resource)
        }
        val options = FeatureOptions(scopes, tags, uncheckedVariables = uncheckedVariables, cache = cache)
        add(FeatureKind.Resource, definition, options) { variables ->
            handler(UriVariables(variables as? JsonObject ?: JsonObject(emptyMap())))
        }
        if (list != null) {
            val template = JsonObject(mapOf("uri_template" to JsonPrimitive(uri)))
            add(FeatureKind.ResourceList, template.text(), FeatureOptions()) { list() }
        }
    }

    /** Removes a resource or a template. Returns whether it existed. */
    public fun removeResource(uri: String): Boolean = native { native.removeFeature(FeatureKind.Resource.wire, uri) }

    /** Notifies clients that what a template lists has changed (`notifications/resources/list_changed`). */
    public fun notifyResourceListChanged(): Unit = native { native.notifyResourceListChanged() }

    /** Notifies the subscribers of a resource that it has changed. */
    public fun notifyResourceUpdated(uri: String): Unit = native { native.notifyResourceUpdated(uri) }

    /**
     * Adds a prompt whose arguments are an [A], read from strings: numbers, booleans and enums are converted.
     *
     * The handler returns a text, messages, content blocks, a [GetPromptResult] or an [InputRequired].
     *
     * @throws UsageException The name is taken, or an option is invalid.
     */
    public inline fun <reified A> prompt(
        name: String,
        description: String? = null,
        title: String? = null,
        icons: List<Icon>? = null,
        meta: JsonObject? = null,
        scopes: List<String> = emptyList(),
        tags: List<String> = emptyList(),
        noinline handler: suspend CallContext.(arguments: A) -> Any?,
    ) {
        val serializer = serializer<A>()
        val arguments = promptArguments(serializer)
        addPrompt(Prompt(name, title, description, arguments, icons, meta), FeatureOptions(scopes, tags)) { given ->
            handler(decodePromptArguments(serializer, given))
        }
    }

    /** Adds a prompt without arguments. */
    public fun prompt(
        name: String,
        description: String? = null,
        title: String? = null,
        icons: List<Icon>? = null,
        meta: JsonObject? = null,
        scopes: List<String> = emptyList(),
        tags: List<String> = emptyList(),
        handler: suspend CallContext.() -> Any?,
    ): Unit = addPrompt(Prompt(name, title, description, null, icons, meta), FeatureOptions(scopes, tags)) { handler() }

    /** Adds a prompt with a definition of your own; its handler gets the arguments as strings. */
    public fun addPrompt(
        definition: Prompt,
        options: FeatureOptions = FeatureOptions(),
        handler: suspend CallContext.(arguments: Map<String, String>) -> Any?,
    ): Unit = add(FeatureKind.Prompt, json.text(Prompt.serializer(), definition), options) { arguments ->
        handler(strings(arguments))
    }

    /** Removes a prompt. Returns whether it existed. */
    public fun removePrompt(name: String): Boolean = native { native.removeFeature(FeatureKind.Prompt.wire, name) }

    /**
     * Completes an argument of a prompt, or a variable of a template, from candidates, ranked by what the user typed.
     *
     * @param reference Name of the prompt, or the URI template.
     */
    public fun completion(reference: String, argument: String, candidates: List<String>): Unit =
        native { native.addCandidates(reference, argument, candidates) }

    /**
     * Completes an argument of a prompt, or a variable of a template.
     *
     * @param complete Gets what the user typed and the other arguments; returns the candidates, best first.
     */
    public fun completion(
        reference: String,
        argument: String,
        complete: suspend CallContext.(value: String, others: Map<String, String>) -> List<String>,
    ) {
        val definition = buildJsonObject {
            put("reference", JsonPrimitive(reference))
            put("argument", JsonPrimitive(argument))
        }
        add(FeatureKind.Completion, definition.text(), FeatureOptions()) { request -> completed(request.jsonObject, complete) }
    }

    /** Completes all arguments and variables that have no completion of their own; returns a list or [CompletionValues]. */
    public fun completion(complete: suspend CallContext.(request: JsonObject) -> Any?): Unit =
        add(FeatureKind.Completion, "null", FeatureOptions()) { request -> complete(request.jsonObject) }

    /**
     * Handles requests of a method that the protocol does not define.
     *
     * @param scopes Scopes that a caller needs, all of them.
     * @param extension Identifier of the [Extension] that the method belongs to.
     * @throws UsageException The protocol defines the method, or it has a handler.
     */
    public inline fun <reified P> request(
        method: String,
        scopes: List<String> = emptyList(),
        extension: String? = null,
        noinline handler: suspend CallContext.(params: P) -> Any?,
    ) {
        val serializer = serializer<P>()
        addRequest(method, jsonSchema(serializer.descriptor), FeatureOptions(scopes, extension = extension)) { params ->
            handler(decodeArguments(serializer, params))
        }
    }

    /** Handles requests of a method that the protocol does not define, with a JSON Schema of your own, or none. */
    public fun addRequest(
        method: String,
        paramsSchema: JsonObject? = null,
        options: FeatureOptions = FeatureOptions(),
        handler: suspend CallContext.(params: JsonObject) -> Any?,
    ): Unit = add(FeatureKind.Request, methodDefinition(method, paramsSchema), options) { params ->
        handler(params as? JsonObject ?: JsonObject(emptyMap()))
    }

    /** Handles notifications of a method that the protocol does not define. */
    public inline fun <reified P> notification(
        method: String,
        scopes: List<String> = emptyList(),
        extension: String? = null,
        noinline handler: suspend CallContext.(params: P) -> Unit,
    ) {
        val serializer = serializer<P>()
        addNotification(method, jsonSchema(serializer.descriptor), FeatureOptions(scopes, extension = extension)) { params ->
            handler(decodeArguments(serializer, params))
        }
    }

    /** Handles notifications of a method that the protocol does not define, with a JSON Schema of your own, or none. */
    public fun addNotification(
        method: String,
        paramsSchema: JsonObject? = null,
        options: FeatureOptions = FeatureOptions(),
        handler: suspend CallContext.(params: JsonObject) -> Unit,
    ): Unit = add(FeatureKind.Notification, methodDefinition(method, paramsSchema), options) { params ->
        handler(params as? JsonObject ?: JsonObject(emptyMap()))
    }

    /** Called when a client has finished the handshake (revisions up to 2025-11-25). Its context can send input requests. */
    public fun onInitialized(handler: suspend CallContext.() -> Unit): Unit =
        add(FeatureKind.Event, methodDefinition("notifications/initialized", null), FeatureOptions()) { handler() }

    /** Called when a client's roots have changed (revisions up to 2025-11-25). Its context can send input requests. */
    public fun onRootsChanged(handler: suspend CallContext.() -> Unit): Unit =
        add(FeatureKind.Event, methodDefinition("notifications/roots/list_changed", null), FeatureOptions()) { handler() }

    /**
     * Puts a function around the requests that the server answers: lists, calls of tools, reads of resources, requests for
     * prompts, completions and custom requests; and around other messages whose methods the scope names.
     *
     * ```kotlin
     * middleware { request, next ->
     *     val (result, time) = measureTimedValue { next(request) }
     *     println("${request.method} ${request.name}: $time")
     *     result
     * }
     * ```
     *
     * The function returns the result of `next`, a [JsonObject] that is the whole result or, for `tools/call`, anything that a tool
     * may return. The first middleware is the outermost. A middleware that is added while the server runs applies to later requests.
     *
     * @throws UsageException The scope is invalid, or the server already has 64 middlewares.
     */
    public fun middleware(
        scope: MiddlewareScope = MiddlewareScope(),
        handler: suspend CallContext.(request: MiddlewareRequest, next: Next) -> Any?,
    ): Unit = add(FeatureKind.Middleware, scope.toJson().text(), FeatureOptions()) { runMiddleware(it, handler) }

    /**
     * Adds a middleware that the library provides.
     *
     * @throws UsageException An option or the scope is invalid, or a file can't be opened.
     */
    public fun addMiddleware(middleware: BuiltInMiddleware, scope: MiddlewareScope = MiddlewareScope()): Unit =
        native { native.addBuiltInMiddleware(middleware.definition().text(), scope.toJson().text()) }

    /**
     * Runs a function around each transport that the server serves: it opens what handlers need, calls `serve`, and closes it.
     *
     * ```kotlin
     * lifespan { serve -> openDatabase().use { database = it; serve() } }
     * ```
     */
    public fun lifespan(run: suspend (serve: suspend () -> Unit) -> Unit) {
        lifespan = run
    }

    /**
     * Calls a function at the end of each request, for a log of requests. Replaces an earlier function. While 4,096 records wait
     * because the function is slow, further records are dropped.
     */
    public fun onRequestEnd(listener: suspend (RequestRecord) -> Unit): Unit =
        native { native.recordRequests(RequestRecords(RequestRecord.serializer(), scope, listener)) }

    /** Notifies the client that the URL elicitation with this id is complete. */
    public fun notifyElicitationComplete(elicitationId: String): Unit =
        native { native.notifyElicitationComplete(elicitationId) }

    /** What the server holds now. */
    public val stats: JsonObject get() = json.parseToJsonElement(native { native.stats() }).jsonObject

    /** The metrics in the text format of Prometheus, if [ServerSettings.metrics] is on. */
    public val metrics: String get() = native { native.metrics() }

    /**
     * Serves standard input and output, until standard input ends, the server is [closed][close], or the coroutine is
     * cancelled. Calls in flight may then finish within [ServerSettings.shutdownTimeout].
     *
     * What the program prints to standard output meanwhile goes to standard error.
     */
    public suspend fun run(): Unit = serve({ native { native.serveStdio() } }) { }

    /**
     * Serves HTTP, until the server is [closed][close] or the coroutine is cancelled. Calls in flight may then finish within
     * [ServerSettings.shutdownTimeout].
     *
     * @param port The port; 0 for any that is free.
     * @param host The address to listen on. Default: loopback.
     * @param onReady Called with the URL of the endpoint when the server listens.
     * @throws TransportException The address can't be listened on.
     */
    public suspend fun runHttp(
        port: Int = 8000,
        host: String = "127.0.0.1",
        settings: HttpSettings = HttpSettings(),
        onReady: suspend (url: String) -> Unit = {},
    ) {
        val options = optionsJson.text(HttpSettings.serializer(), settings)
        serve({ awaitNative { native.listen(host, port.toUShort(), options) } }) { onReady(it) }
    }

    /**
     * Serves clients on a Unix socket, one message per line, until the server is [closed][close] or the coroutine is
     * cancelled.
     *
     * @param path Path of the socket. A stale one is replaced, and one in use is refused.
     * @param onReady Called when the server listens.
     * @throws TransportException The path can't be listened on.
     */
    public suspend fun runUnix(path: String, settings: UnixSettings = UnixSettings(), onReady: suspend () -> Unit = {}) {
        val options = optionsJson.text(UnixSettings.serializer(), settings)
        serve({ awaitNative { native.listenUnix(path, options) } }) { onReady() }
    }

    /**
     * Serves one client over a custom transport, until either side closes the channel, the server is [closed][close], or the
     * coroutine is cancelled. Any number of clients can be served at once. The channel runs where handlers run.
     *
     * @param channel An open channel, which is closed at the end.
     * @param principal The client's identity, as authenticated by the transport. It does not change until the channel closes.
     *   Handlers read it from [CallContext.auth]. Scopes of tools, resources, prompts and custom methods apply as over HTTP:
     *   features that it may not use are hidden from lists, and calls are refused with error -31001. All channels of a principal
     *   count as one client. Without a principal the client may do everything, which is right if this process started the client,
     *   or the client started this process.
     * @throws TransportException The channel failed.
     */
    public suspend fun serveChannel(channel: Channel, principal: Caller? = null) {
        val identity = principal?.let { optionsJson.text(Caller.serializer(), it) }
        serve({ native { native.serveChannel(ChannelAdapter(channel, scope), identity) } }) { }
    }

    /**
     * Stops serving: calls in flight may finish within [ServerSettings.shutdownTimeout]. Then [run], [runHttp], [runUnix] and
     * [serveChannel] return, even if they are still starting. This function does not wait for them.
     *
     * When the JVM ends (SIGTERM, Ctrl-C, `exitProcess`), the library closes all servers and waits for these functions to return.
     */
    public fun close() {
        RunningServers.closeRunsOf(this)
        val all = synchronized(serving) { serving.toList() }
        for (transport in all) {
            try {
                native { transport.stop() }
            } catch (_: ClosedException) {
                // It has ended meanwhile.
            }
        }
    }

    private suspend fun serve(start: suspend () -> Serving, onReady: suspend (String) -> Unit) {
        val around = lifespan
        val current = RunningServers.begin(this)
        val serve = suspend { serveUntilEnd(current, start, onReady) }
        try {
            if (around == null) serve() else around(serve)
        } finally {
            current.end()
        }
    }

    /** Waits until nothing is served any more. */
    internal suspend fun awaitTransports() {
        val all = synchronized(serving) { serving.toList() }
        all.forEach { runCatching { awaitNative { it.ended() } } }
    }

    private suspend fun serveUntilEnd(
        run: RunningServers.Run,
        start: suspend () -> Serving,
        onReady: suspend (String) -> Unit,
    ) {
        if (run.isClosed) return
        var started: Serving? = null
        try {
            // A coroutine that is cancelled meanwhile would not get the transport, which would go on without it.
            withContext(NonCancellable) { started = start() }
            started?.let { serveUntilEnd(run, it, onReady) }
        } finally {
            started?.close()
        }
    }

    private suspend fun serveUntilEnd(
        run: RunningServers.Run,
        transport: Serving,
        onReady: suspend (String) -> Unit,
    ) {
        synchronized(serving) { serving += transport }
        try {
            if (run.isClosed) {
                transport.stop()
            } else {
                transport.startupMessage()?.let(System.err::println)
                transport.url()?.let { onReady(it) }
            }
            awaitNative { transport.ended() }
        } catch (cancelled: Throwable) {
            transport.stop()
            withContext(NonCancellable) { runCatching { awaitNative { transport.ended() } } }
            throw cancelled
        } finally {
            val isLast = synchronized(serving) {
                serving -= transport
                serving.isEmpty()
            }
            // While there are others, it is not known whose handlers still run.
            if (isLast) withContext(NonCancellable) { awaitHandlers() }
        }
    }

    /** Waits for handlers that clean up after their cancellation, before [lifespan] closes what they use. */
    private suspend fun awaitHandlers() {
        withTimeoutOrNull(HANDLER_CLEANUP_TIMEOUT) {
            while (HandlerCalls.queue(queue)?.isWaiting() == true) delay(1)
            scope.coroutineContext.job.children.toList().joinAll()
        }
    }

    private fun add(
        kind: FeatureKind,
        definition: String,
        options: FeatureOptions,
        handler: suspend CallContext.(arguments: JsonElement) -> Any?,
    ) {
        val encoded = optionsJson.text(FeatureOptions.serializer(), options)
        val called = FeatureHandler(kind, handler)
        native { HandlerCalls.pass(called) { native.addNumberedFeature(kind.wire, definition, encoded, it.toULong()) } }
    }
}

/** The options of a server, as the core reads them. */
private fun options(settings: ServerSettings, extensions: List<Extension>): JsonObject {
    val encoded = optionsJson.encodeToJsonElement(ServerSettings.serializer(), settings).jsonObject
    val owners = extensions.flatMap { extension -> extension.resultTypes.map { it to JsonPrimitive(extension.identifier) } }
    return JsonObject(
        encoded +
            ("extensions" to JsonObject(extensions.associate { it.identifier to it.settings })) +
            ("result_types" to JsonObject(owners.toMap())),
    )
}

/** Runs the handler of a feature in the server's scope, in a coroutine that ends with the request. */
private class FeatureHandler(
    private val kind: FeatureKind,
    private val handler: suspend CallContext.(arguments: JsonElement) -> Any?,
) : NumberedHandler {
    override suspend fun handle(arguments: String, call: HandlerCall): Outcome =
        try {
            outcome(kind, handler(CallContext(call), json.parseToJsonElement(arguments)))
        } catch (error: Throwable) {
            // A timeout within the handler is a failure like others.
            if (error is CancellationException) currentCoroutineContext().ensureActive()
            outcome(kind, error)
        }

    override fun failure(error: Throwable): Outcome = outcome(kind, error)
}

/**
 * The variables of a URI.
 *
 * @property json All variables: strings, and arrays for `{name*}`.
 */
public class UriVariables internal constructor(public val json: JsonObject) {
    /** Returns a variable. */
    public operator fun get(name: String): String? = (json[name] as? JsonPrimitive)?.contentOrNull

    /** Returns a variable. Fails if the URI does not have it. */
    public fun getValue(name: String): String =
        get(name) ?: throw UsageException("the URI has no variable `$name`")

    /** Returns the values of a variable that is a list. */
    public fun list(name: String): List<String> = when (val value = json[name]) {
        is JsonArray -> value.map { (it as JsonPrimitive).content }
        is JsonPrimitive -> listOf(value.content)
        else -> emptyList()
    }
}

@PublishedApi
internal fun <A> decodeArguments(serializer: KSerializer<A>, arguments: JsonObject): A =
    try {
        json.decodeFromJsonElement(serializer, arguments)
    } catch (error: IllegalArgumentException) {
        // They match the schema, but not the type: a number beyond its range, or a check in `init`.
        throw ToolException(firstLine(error))
    }

@PublishedApi
internal fun <A> decodePromptArguments(serializer: KSerializer<A>, arguments: Map<String, String>): A =
    try {
        val given = JsonObject(arguments.mapValues { JsonPrimitive(it.value) })
        lenientJson.decodeFromJsonElement(serializer, given)
    } catch (error: IllegalArgumentException) {
        throw RpcException(-32602, firstLine(error))
    }

private fun firstLine(error: Exception): String {
    // What a constructor throws is wrapped.
    val reason = error.cause as? IllegalArgumentException ?: error
    return reason.message?.lineSequence()?.firstOrNull() ?: reason.toString()
}

@PublishedApi
internal fun <R> structured(serializer: KSerializer<R>, value: R): Any =
    Structured(json.encodeToJsonElement(serializer, value))

@PublishedApi
internal fun promptArguments(serializer: KSerializer<*>): List<PromptArgument> {
    val schema = jsonSchema(serializer.descriptor)
    val required = (schema["required"] as? JsonArray)?.map { (it as JsonPrimitive).content }?.toSet() ?: emptySet()
    return (schema["properties"] as? JsonObject ?: JsonObject(emptyMap())).map { (name, property) ->
        val description = (property as? JsonObject)?.get("description") as? JsonPrimitive
        PromptArgument(name, description?.content, name in required)
    }
}

private fun strings(arguments: JsonElement): Map<String, String> =
    (arguments as? JsonObject ?: JsonObject(emptyMap())).mapValues { (it.value as JsonPrimitive).content }

private fun methodDefinition(method: String, paramsSchema: JsonObject?): String = JsonObject(
    buildMap {
        put("method", JsonPrimitive(method))
        paramsSchema?.let { put("params_schema", it) }
    },
).text()

private suspend fun CallContext.completed(
    request: JsonObject,
    complete: suspend CallContext.(value: String, others: Map<String, String>) -> List<String>,
): List<String> {
    val value = ((request["argument"] as? JsonObject)?.get("value") as? JsonPrimitive)?.contentOrNull ?: ""
    val others = (request["context"] as? JsonObject)?.get("arguments") ?: JsonObject(emptyMap())
    return complete(value, strings(others))
}
