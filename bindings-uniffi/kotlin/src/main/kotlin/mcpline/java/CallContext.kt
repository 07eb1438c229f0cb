package mcpline.java

import java.util.concurrent.CompletableFuture
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.future.future
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import mcpline.Caller
import mcpline.CreateMessageParams
import mcpline.CreateMessageResult
import mcpline.ElicitResult
import mcpline.Implementation
import mcpline.LogLevel
import mcpline.McplineException
import mcpline.Root
import mcpline.UrlElicitation

/**
 * The context of a request, for handlers in Java. It can be used until the handler has ended: then its futures are cancelled.
 *
 * Cancelling a future withdraws its input request. The functions are those of [mcpline.CallContext], and fail with the same
 * errors.
 */
public class CallContext internal constructor(
    private val context: mcpline.CallContext,
    private val scope: CoroutineScope,
) {
    /** The name of the tool, if the call is one of a tool. */
    public val toolName: String? get() = context.toolName

    /** The name of the prompt, if the call gets one. */
    public val promptName: String? get() = context.promptName

    /** The URI of the resource, if the call reads one. */
    public val uri: String? get() = context.uri

    /** The revision of the protocol that the request follows: `2026-07-28`. */
    public val revision: String get() = context.revision

    /** The JSON-RPC id of the request: a string or a number. */
    public val requestId: JsonElement get() = context.requestId

    /** Name and version of the client, if it sent them. */
    public val client: Implementation? get() = context.client

    /** The capabilities that the client declares. */
    public val clientCapabilities: JsonObject get() = context.clientCapabilities

    /** The id of the HTTP session (revisions up to 2025-11-25). */
    public val sessionId: String? get() = context.sessionId

    /** The `_meta` of the request. */
    public val meta: JsonObject? get() = context.meta

    /** The HTTP headers of the request: values by name, in lower case. `null` on other transports. */
    public val headers: Map<String, List<String>>? get() = context.headers

    /** The authenticated caller. `null` if callers are not authenticated. */
    public val auth: Caller? get() = context.auth

    /** Reports progress. Does nothing if the client did not ask for it. */
    @JvmOverloads
    public fun progress(progress: Double, total: Double? = null, message: String? = null): Unit =
        context.progress(progress, total, message)

    /** Sends a text as a log message, if the client wants messages of this level. */
    @JvmOverloads
    public fun log(level: LogLevel, text: String, logger: String? = null): Unit = context.log(level, text, logger)

    /** Sends a custom notification; [params] are a record or a map. */
    @JvmOverloads
    public fun notify(method: String, params: Any? = null): Unit = context.notify(method, params?.let(Json::objectOf))

    /** Checks that the caller has all these scopes. */
    public fun requireScopes(vararg scopes: String): Unit = context.requireScopes(*scopes)

    /**
     * Asks the user with a form for a [T]: a record whose components are texts, numbers, booleans or enums.
     *
     * @param message The text that the user sees.
     * @param key Identifies the input request among those of the handler, if it may run again. Default: its number. It has this
     * meaning in all functions of this class.
     * @return A future that fails with a `NotSupportedException` if the client cannot ask its user.
     */
    @JvmOverloads
    public fun <T : Any> elicit(message: String, type: Class<T>, key: String? = null): CompletableFuture<ElicitResult<T>> =
        future { context.elicit(message, serializerOf(type), key) }

    /** Asks the user with a form of this JSON Schema. */
    @JvmOverloads
    public fun elicit(message: String, schema: JsonObject, key: String? = null): CompletableFuture<ElicitResult<JsonObject>> =
        future { context.elicit(message, schema, key) }

    /** Asks the user to open a URL: for secrets, payments and sign-in. */
    @JvmOverloads
    public fun elicitUrl(elicitation: UrlElicitation, key: String? = null): CompletableFuture<ElicitResult<JsonObject>> =
        future { context.elicitUrl(elicitation, key) }

    /** Asks the client's model. */
    @JvmOverloads
    public fun sample(params: CreateMessageParams, key: String? = null): CompletableFuture<CreateMessageResult> =
        future { context.sample(params, key) }

    /** Asks the client for its root directories. */
    @JvmOverloads
    public fun listRoots(key: String? = null): CompletableFuture<List<Root>> = future { context.listRoots(key) }

    /** Sends any other request to the client; [params] are a record or a map. */
    @JvmOverloads
    public fun request(method: String, params: Any? = null, key: String? = null): CompletableFuture<JsonObject> {
        // Now, because the program may change the object afterwards.
        val given = try {
            params?.let(Json::objectOf)
        } catch (error: McplineException) {
            return CompletableFuture.failedFuture(error)
        }
        return future { context.request(method, given, key) }
    }

    // Not on the handler's thread, which may wait for it.
    private fun <T> future(ask: suspend () -> T): CompletableFuture<T> = scope.future(futureThreads) { ask() }
}
