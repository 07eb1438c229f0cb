package mcpline.java

import java.util.concurrent.CompletableFuture
import java.util.concurrent.Executor
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import mcpline.Caller
import mcpline.ClosedException
import mcpline.Extension
import mcpline.HttpSettings
import mcpline.Prompt
import mcpline.RequestRecord
import mcpline.ServerSettings
import mcpline.Tool
import mcpline.TransportException
import mcpline.UnixSettings
import mcpline.UsageException
import mcpline.decodeArguments
import mcpline.decodePromptArguments
import mcpline.jsonSchema
import mcpline.promptArguments
import mcpline.server
import mcpline.structured

/**
 * A server, for programs in Java.
 *
 * ```java
 * record Forecast(String city, Optional<Integer> days) {}
 *
 * Server server = Server.builder("weather", "1.0.0").build();
 * server.tool("forecast", "Forecast for a city", Forecast.class, (call, forecast) -> forecast.city() + ": sunny");
 * server.run();
 * ```
 *
 * Handlers run on threads that may block: virtual threads on Java 21 or later, otherwise a pool. Features can be added and
 * removed while the server runs. All functions are safe to call from any thread. They throw a [UsageException] if an argument is
 * invalid.
 */
public class Server private constructor(
    /** The server in Kotlin, for functions that this class does not have. */
    public val delegate: mcpline.Server,
) : AutoCloseable {
    private val scope = CoroutineScope(SupervisorJob() + futureThreads)

    /** Settings of a server. */
    public class Builder internal constructor(private val name: String, private val version: String) {
        private var title: String? = null
        private var instructions: String? = null
        private var settings: Map<String, *> = emptyMap<String, Any>()
        private var extensions: List<Extension> = emptyList()
        private var executor: Executor? = null

        /** Display name. */
        public fun title(title: String): Builder = apply { this.title = title }

        /** For the model: how to use the server. */
        public fun instructions(instructions: String): Builder = apply { this.instructions = instructions }

        /** Settings by the names that [ServerSettings] has: `Map.of("pageSize", 50, "shutdownTimeout", Duration.ofSeconds(2))`. */
        public fun settings(settings: Map<String, *>): Builder = apply { this.settings = settings }

        /** Extensions of the protocol to declare. */
        public fun extensions(vararg extensions: Extension): Builder = apply { this.extensions = extensions.toList() }

        /**
         * The threads on which handlers run. Default: virtual threads on Java 21 or later, otherwise at most 256 threads.
         *
         * Several handlers run on a thread one after another, as in a pool, also if the executor starts a thread for each task:
         * remove what a handler sets in a `ThreadLocal`. If the executor rejects a task, a call fails, unless the executor
         * runs or keeps other tasks of the server.
         */
        public fun executor(executor: Executor): Builder = apply { this.executor = executor }

        /**
         * Creates the server.
         *
         * @throws UsageException A setting is invalid.
         */
        public fun build(): Server {
            val read = settingsOf(ServerSettings.serializer(), settings)
            val context = executor?.asCoroutineDispatcher() ?: handlerThreads
            return Server(server(name, version, title, instructions, read, extensions, context))
        }
    }

    /**
     * Adds a tool whose arguments are an [A], usually a record. The JSON Schema is derived from it: components are required unless
     * they are an `Optional`, and `@Description` describes them.
     *
     * The handler returns a text, content blocks, a `CallToolResult`, `null`, or data, which is sent as JSON.
     */
    @JvmOverloads
    public fun <A : Any> tool(
        name: String,
        description: String?,
        options: FeatureOptions = FeatureOptions(),
        arguments: Class<A>,
        handler: ArgumentsHandler<A>,
    ) {
        val serializer = serializerOf(arguments)
        val definition = definition(name, description, options, jsonSchema(serializer.descriptor), options.outputSchema)
        delegate.addTool(definition, options.toKotlin()) { given ->
            val read = decodeArguments(serializer, given)
            handled { handler.handle(it, read) }
        }
    }

    /** Adds a tool with a JSON Schema of your own, whose handler gets the arguments as JSON. */
    @JvmOverloads
    public fun tool(
        name: String,
        description: String?,
        options: FeatureOptions = FeatureOptions(),
        inputSchema: JsonObject,
        handler: ArgumentsHandler<JsonObject>,
    ) {
        val definition = definition(name, description, options, inputSchema, options.outputSchema)
        delegate.addTool(definition, options.toKotlin()) { given -> handled { handler.handle(it, given) } }
    }

    /** Adds a tool without arguments. */
    @JvmOverloads
    public fun tool(name: String, description: String?, options: FeatureOptions = FeatureOptions(), handler: CallHandler): Unit =
        tool(name, description, options, NO_ARGUMENTS) { call, _ -> handler.handle(call) }

    /**
     * Adds a tool that returns structured content, an [R], usually a record, from which the output schema is derived. The handler
     * returns an [R] or a `CompletionStage` of it.
     */
    @JvmOverloads
    public fun <A : Any, R : Any> structuredTool(
        name: String,
        description: String?,
        options: FeatureOptions = FeatureOptions(),
        arguments: Class<A>,
        result: Class<R>,
        handler: ArgumentsHandler<A>,
    ) {
        val serializer = serializerOf(arguments)
        val output = serializerOf(result)
        val schemas = jsonSchema(serializer.descriptor) to jsonSchema(output.descriptor)
        delegate.addTool(definition(name, description, options, schemas.first, schemas.second), options.toKotlin()) { given ->
            val read = decodeArguments(serializer, given)
            val value = handled { handler.handle(it, read) }
            if (!result.isInstance(value)) throw UsageException("tool `$name`: the handler must return a ${result.name}")
            structured(output, result.cast(value))
        }
    }

    /** Removes a tool. Returns whether it existed. */
    public fun removeTool(name: String): Boolean = delegate.removeTool(name)

    /**
     * Adds a resource, or a template if the URI has variables (RFC 6570).
     *
     * The handler returns a text, bytes, `ResourceContents`, a list of them, a `ReadResourceResult`, or data, which is sent as JSON.
     * It throws a `ResourceNotFoundException` for what does not exist.
     */
    @JvmOverloads
    public fun resource(
        uri: String,
        name: String,
        description: String?,
        options: FeatureOptions = FeatureOptions(),
        handler: ResourceHandler,
    ): Unit = delegate.resource(
        uri,
        name,
        description,
        options.mimeType,
        options.title,
        options.size,
        options.annotations,
        options.icons,
        options.meta,
        options.scopes,
        options.tags,
        options.uncheckedVariables,
        options.cache,
    ) { variables -> handled { handler.handle(it, variables) } }

    /** Removes a resource or a template. Returns whether it existed. */
    public fun removeResource(uri: String): Boolean = delegate.removeResource(uri)

    /** Notifies the subscribers of a resource that it has changed. */
    public fun notifyResourceUpdated(uri: String): Unit = delegate.notifyResourceUpdated(uri)

    /**
     * Adds a prompt whose arguments are an [A], usually a record, read from strings.
     *
     * The handler returns a text, messages, content blocks or a `GetPromptResult`.
     */
    @JvmOverloads
    public fun <A : Any> prompt(
        name: String,
        description: String?,
        options: FeatureOptions = FeatureOptions(),
        arguments: Class<A>,
        handler: ArgumentsHandler<A>,
    ) {
        val serializer = serializerOf(arguments)
        val given = promptArguments(serializer)
        val definition = Prompt(name, options.title, description, given, options.icons, options.meta)
        delegate.addPrompt(definition, options.toKotlin()) { texts ->
            val read = decodePromptArguments(serializer, texts)
            handled { handler.handle(it, read) }
        }
    }

    /** Adds a prompt without arguments. */
    @JvmOverloads
    public fun prompt(name: String, description: String?, options: FeatureOptions = FeatureOptions(), handler: CallHandler) {
        val definition = Prompt(name, options.title, description, null, options.icons, options.meta)
        delegate.addPrompt(definition, options.toKotlin()) { handled(handler::handle) }
    }

    /** Removes a prompt. Returns whether it existed. */
    public fun removePrompt(name: String): Boolean = delegate.removePrompt(name)

    /**
     * Completes an argument of a prompt, or a variable of a template, from candidates, ranked by what the user typed.
     *
     * @param reference Name of the prompt, or the URI template.
     * @param argument Name of the argument or variable.
     */
    public fun completion(reference: String, argument: String, candidates: List<String>): Unit =
        delegate.completion(reference, argument, candidates)

    /**
     * Completes an argument of a prompt, or a variable of a template.
     *
     * @param reference Name of the prompt, or the URI template.
     * @param argument Name of the argument or variable.
     * @param handler Returns the candidates, best first.
     */
    public fun completion(reference: String, argument: String, handler: CompletionHandler): Unit =
        delegate.completion(reference, argument) { value, others ->
            @Suppress("UNCHECKED_CAST")
            handled { handler.complete(it, value, others) } as List<String>
        }

    /** Handles requests of a method that the protocol does not define; the parameters are a [P], usually a record. */
    @JvmOverloads
    public fun <P : Any> request(
        method: String,
        options: FeatureOptions = FeatureOptions(),
        params: Class<P>,
        handler: ArgumentsHandler<P>,
    ) {
        val serializer = serializerOf(params)
        delegate.addRequest(method, jsonSchema(serializer.descriptor), options.toKotlin()) { given ->
            val read = decodeArguments(serializer, given)
            handled { handler.handle(it, read) }
        }
    }

    /** Called when a client has finished the handshake (revisions up to 2025-11-25). Its context can send input requests. */
    public fun onInitialized(handler: CallHandler): Unit = delegate.onInitialized { handled(handler::handle) }

    /**
     * Serves standard input and output, until standard input ends, the server is [closed][close], or the thread is interrupted.
     *
     * What the program prints to standard output meanwhile goes to standard error.
     */
    @Throws(InterruptedException::class)
    public fun run(): Unit = runBlocking { delegate.run() }

    /**
     * Serves HTTP, until the server is [closed][close] or the thread is interrupted.
     *
     * @param port The port; 0 for any that is free.
     * @param host The address to listen on. Default: loopback.
     * @param settings Settings by the names that [HttpSettings] has.
     * @throws TransportException The address can't be listened on.
     */
    @JvmOverloads
    @Throws(InterruptedException::class)
    public fun runHttp(port: Int = 8000, host: String = "127.0.0.1", settings: Map<String, *> = emptyMap<String, Any>()) {
        val read = settingsOf(HttpSettings.serializer(), settings)
        runBlocking { delegate.runHttp(port, host, read) }
    }

    /**
     * Serves clients on a Unix socket, until the server is [closed][close] or the thread is interrupted.
     *
     * @param path Path of the socket. A stale one is replaced, and one in use is refused.
     * @param settings Settings by the names that [UnixSettings] has.
     * @throws TransportException The path can't be listened on.
     */
    @JvmOverloads
    @Throws(InterruptedException::class)
    public fun runUnix(path: String, settings: Map<String, *> = emptyMap<String, Any>()) {
        val read = settingsOf(UnixSettings.serializer(), settings)
        runBlocking { delegate.runUnix(path, read) }
    }

    /**
     * Serves one client over a custom transport, until either side closes the channel, the server is [closed][close], or the thread
     * is interrupted. Any number of clients can be served at once.
     *
     * @param channel An open channel, which is closed at the end.
     * @param principal The client's identity, as authenticated by the transport: see [mcpline.Server.serveChannel]. Without one the
     *   client may do everything.
     * @throws TransportException The channel failed.
     */
    @JvmOverloads
    @Throws(InterruptedException::class)
    public fun serveChannel(channel: Channel, principal: Caller? = null): Unit =
        runBlocking { delegate.serveChannel(BlockingChannel(channel), principal) }

    /**
     * Starts to serve HTTP, until the server is [closed][close]. Parameters as for [runHttp].
     *
     * @return A future of the endpoint's URL, completed when the server listens. Fails with a [TransportException] if the address
     * can't be listened on.
     */
    @JvmOverloads
    public fun startHttp(
        port: Int = 8000,
        host: String = "127.0.0.1",
        settings: Map<String, *> = emptyMap<String, Any>(),
    ): CompletableFuture<String> {
        val read = settingsOf(HttpSettings.serializer(), settings)
        return start { ready -> delegate.runHttp(port, host, read) { ready(it) } }
    }

    /** Starts to serve clients on a Unix socket. The future has its path when the server listens. */
    @JvmOverloads
    public fun startUnix(path: String, settings: Map<String, *> = emptyMap<String, Any>()): CompletableFuture<String> {
        val read = settingsOf(UnixSettings.serializer(), settings)
        return start { ready -> delegate.runUnix(path, read) { ready(path) } }
    }

    /** Calls a function at the end of each request, for a log of requests. Replaces an earlier one. */
    public fun onRequestEnd(listener: Listener<RequestRecord>): Unit = delegate.onRequestEnd { deliver(listener, it) }

    /** What the server holds now: see [mcpline.Server.stats]. */
    public val stats: JsonObject get() = delegate.stats

    /** The metrics in the text format of Prometheus, if [ServerSettings.metrics] is on. */
    public val metrics: String get() = delegate.metrics

    /** Stops serving: calls in flight may finish within `shutdownTimeout`. Does not wait for them; [run] and others return then. */
    override fun close(): Unit = delegate.close()

    private fun start(serve: suspend (ready: (String) -> Unit) -> Unit): CompletableFuture<String> {
        val ready = CompletableFuture<String>()
        scope.launch {
            try {
                serve { ready.complete(it) }
                ready.completeExceptionally(ClosedException("the server was closed"))
            } catch (error: Throwable) {
                // Otherwise the thread's handler of uncaught exceptions gets it.
                if (!ready.completeExceptionally(error)) throw error
            }
        }
        return ready
    }

    /** Creates servers. */
    public companion object {
        /**
         * Returns a builder of a server.
         *
         * @param name Name for programs.
         * @param version Version of the server.
         */
        @JvmStatic
        public fun builder(name: String, version: String): Builder = Builder(name, version)
    }
}

private val NO_ARGUMENTS =
    JsonObject(mapOf("type" to JsonPrimitive("object"), "properties" to JsonObject(emptyMap())))

private fun definition(
    name: String,
    description: String?,
    options: FeatureOptions,
    inputSchema: JsonObject,
    outputSchema: JsonObject?,
) = Tool(name, options.title, description, inputSchema, outputSchema, options.toolAnnotations, options.icons, options.meta)
