package mcpline.java

import java.util.concurrent.CompletableFuture
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.future.future
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.runInterruptible
import kotlinx.serialization.json.JsonObject
import mcpline.CallToolResult
import mcpline.CompletionValues
import mcpline.GetPromptResult
import mcpline.Implementation
import mcpline.LogLevel
import mcpline.McplineException
import mcpline.Progress
import mcpline.Prompt
import mcpline.ReadResourceResult
import mcpline.Resource
import mcpline.ResourceTemplate
import mcpline.Tool
import mcpline.data

/**
 * A client of one server, for programs in Java.
 *
 * ```java
 * try (Client client = Client.builder().connect("http://localhost:8000/mcp").join()) {
 *     System.out.println(client.callTool("forecast", Map.of("city", "Oslo")).join().getText());
 * }
 * ```
 *
 * Each request returns a future, which fails with a `McplineException`. Cancelling this future cancels the request, also at the
 * server; cancelling a future that depends on it does not. Functions that are chained to a future, such as with `thenApply`, may
 * block. All functions are safe to call from any thread.
 */
public class Client internal constructor(
    /** The client in Kotlin, for functions that this class does not have. */
    public val delegate: mcpline.Client,
) : AutoCloseable {
    private val scope = CoroutineScope(SupervisorJob() + futureThreads)

    /** The revision of the protocol that both sides speak: `2026-07-28`. */
    public val revision: String get() = delegate.revision

    /** Name and version of the server, if it sent them. */
    public val serverInfo: Implementation? get() = delegate.serverInfo

    /** The capabilities that the server declares. */
    public val serverCapabilities: JsonObject get() = delegate.serverCapabilities

    /** For the model: how to use the server. */
    public val instructions: String? get() = delegate.instructions

    /** The process id of the server, if the client has started it. */
    public val pid: Long? get() = delegate.pid

    /** What the client holds now: see [mcpline.Client.stats]. */
    public val stats: JsonObject get() = delegate.stats

    /** The metrics in the text format of Prometheus, if [mcpline.ClientSettings.metrics] is on. */
    public val metrics: String get() = delegate.metrics

    /**
     * Calls a tool. A tool that fails returns a result with `isError`.
     *
     * @param arguments A record, a map or a `JsonObject`.
     */
    @JvmOverloads
    public fun callTool(
        name: String,
        arguments: Any = emptyMap<String, Any>(),
        options: RequestOptions = RequestOptions(),
    ): CompletableFuture<CallToolResult> = prepared { call(name, arguments, options) }

    /** Calls a tool, and reads its structured content as a [R], usually a record. Fails with a `ToolException` if the tool fails. */
    @JvmOverloads
    public fun <R : Any> callTool(
        name: String,
        arguments: Any,
        result: Class<R>,
        options: RequestOptions = RequestOptions(),
    ): CompletableFuture<R> = prepared {
        val called = call(name, arguments, options)
        suspend { called().data(serializerOf(result)) }
    }

    /** Returns the tools of all pages. */
    @JvmOverloads
    public fun listTools(options: RequestOptions = RequestOptions()): CompletableFuture<List<Tool>> =
        prepared {
            val given = options.toKotlin()
            suspend { delegate.listTools(given) }
        }

    /** Returns the resources of all pages. */
    @JvmOverloads
    public fun listResources(options: RequestOptions = RequestOptions()): CompletableFuture<List<Resource>> =
        prepared {
            val given = options.toKotlin()
            suspend { delegate.listResources(given) }
        }

    /** Returns the resource templates of all pages. */
    @JvmOverloads
    public fun listResourceTemplates(options: RequestOptions = RequestOptions()): CompletableFuture<List<ResourceTemplate>> =
        prepared {
            val given = options.toKotlin()
            suspend { delegate.listResourceTemplates(given) }
        }

    /** Returns the prompts of all pages. */
    @JvmOverloads
    public fun listPrompts(options: RequestOptions = RequestOptions()): CompletableFuture<List<Prompt>> =
        prepared {
            val given = options.toKotlin()
            suspend { delegate.listPrompts(given) }
        }

    /** Reads a resource. */
    @JvmOverloads
    public fun readResource(uri: String, options: RequestOptions = RequestOptions()): CompletableFuture<ReadResourceResult> =
        prepared {
            val given = options.toKotlin()
            suspend { delegate.readResource(uri, given) }
        }

    /** Returns a prompt with its arguments filled in. */
    @JvmOverloads
    public fun getPrompt(
        name: String,
        arguments: Map<String, String> = emptyMap(),
        options: RequestOptions = RequestOptions(),
    ): CompletableFuture<GetPromptResult> = prepared {
        val (values, given) = arguments.toMap() to options.toKotlin()
        suspend { delegate.getPrompt(name, values, given) }
    }

    /**
     * Completes an argument of a prompt.
     *
     * @param value What the user typed.
     * @param others The other arguments given so far.
     */
    @JvmOverloads
    public fun completePrompt(
        name: String,
        argument: String,
        value: String,
        others: Map<String, String> = emptyMap(),
    ): CompletableFuture<CompletionValues> = prepared {
        val given = others.toMap()
        suspend { delegate.completePrompt(name, argument, value, given) }
    }

    /** Completes a variable of a resource template. */
    @JvmOverloads
    public fun completeResource(
        uriTemplate: String,
        variable: String,
        value: String,
        others: Map<String, String> = emptyMap(),
    ): CompletableFuture<CompletionValues> = prepared {
        val given = others.toMap()
        suspend { delegate.completeResource(uriTemplate, variable, value, given) }
    }

    /** Subscribes to updates to a resource: `notifications/resources/updated`. */
    public fun subscribe(uri: String): CompletableFuture<Void?> = perform { delegate.subscribe(uri) }

    /** Unsubscribes from updates to a resource. */
    public fun unsubscribe(uri: String): CompletableFuture<Void?> = perform { delegate.unsubscribe(uri) }

    /** Sets the least severe level of log messages that the server sends. */
    public fun setLogLevel(level: LogLevel): CompletableFuture<Void?> = perform { delegate.setLogLevel(level) }

    /** Checks that the server answers. */
    public fun ping(): CompletableFuture<Void?> = perform { delegate.ping() }

    /** Notifies the server that the client's roots have changed. */
    public fun notifyRootsChanged(): CompletableFuture<Void?> = perform { delegate.notifyRootsChanged() }

    /** Sends any other request, and returns its result; [params] are a record or a map. */
    @JvmOverloads
    public fun request(
        method: String,
        params: Any? = null,
        options: RequestOptions = RequestOptions(),
    ): CompletableFuture<JsonObject> = prepared {
        val (given, chosen) = params?.let(Json::objectOf) to options.toKotlin()
        val progress = listening(options.progress)
        suspend { delegate.request(method, given, chosen, progress) }
    }

    /** Sends a notification; [params] are a record or a map. */
    @JvmOverloads
    public fun notify(method: String, params: Any? = null): CompletableFuture<Void?> =
        prepared {
            val given = params?.let(Json::objectOf)
            suspend {
                delegate.notify(method, given)
                null
            }
        }

    /**
     * Closes the connection: requests in flight fail with a `ClosedException`, and a program that the client started ends. Returns
     * when nothing of it is left.
     */
    override fun close() {
        try {
            runBlocking { delegate.close() }
        } catch (_: InterruptedException) {
            // The client is closed. Java does not expect this exception here.
            Thread.currentThread().interrupt()
        }
    }

    /** Closes the connection without waiting on this thread. */
    public fun closeAsync(): CompletableFuture<Void?> = perform { delegate.close() }

    private fun call(name: String, arguments: Any, options: RequestOptions): suspend () -> CallToolResult {
        val (given, chosen) = Json.objectOf(arguments) to options.toKotlin()
        val progress = listening(options.progress)
        return { delegate.callTool(name, given, chosen, progress) }
    }

    /**
     * Sends a request that [prepare] has made of the arguments: on the caller's thread, because the program may change them
     * afterwards. The future fails if that is impossible.
     */
    private fun <T> prepared(prepare: () -> suspend () -> T): CompletableFuture<T> {
        val send = try {
            prepare()
        } catch (error: McplineException) {
            return CompletableFuture.failedFuture(error)
        }
        return scope.future { send() }
    }

    private fun perform(action: suspend () -> Unit): CompletableFuture<Void?> = scope.future {
        action()
        null
    }

    /** Opens clients. */
    public companion object {
        /** Returns a builder, which sets handlers and settings, and then opens clients. */
        @JvmStatic
        public fun builder(): ClientBuilder = ClientBuilder()
    }
}

private fun listening(listener: Listener<Progress>?): (suspend (Progress) -> Unit)? =
    listener?.let { { report -> runInterruptible { it.accept(report) } } }
