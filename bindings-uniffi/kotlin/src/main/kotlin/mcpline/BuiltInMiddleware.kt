package mcpline

import kotlin.time.Duration
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonObject

/** Middleware of servers that the library provides, for [Server.addMiddleware]. It runs in the core, without Kotlin code. */
public sealed interface BuiltInMiddleware

/** The key by which a limit counts requests. */
@Serializable
public enum class LimitKey {
    /** The authenticated caller, else the address, else the connection. */
    @SerialName("client")
    Client,

    /** The session, over HTTP on revisions up to 2025-11-25. Other requests count by client. */
    @SerialName("session")
    Session,

    /** The method, and the tool, prompt or resource. */
    @SerialName("target")
    Target,
}

/**
 * Limits how often requests are answered, by a token bucket for each key. Further requests are refused with the error -31000;
 * `retryAfter` in its data says how many seconds to wait.
 */
@Serializable
public class RateLimit(
    /** Average number of requests per period. */
    public val requests: Int,
    /** The period. Default: 1 second. */
    public val period: @Serializable(with = Seconds::class) Duration? = null,
    /** Maximum number of requests at once. Default: the number per period. */
    public val burst: Int? = null,
    /** Keys by which requests are counted, in combination. Default: none; all requests are counted together. */
    public val per: List<LimitKey> = emptyList(),
    /**
     * The name under which all processes that share state ([ServerSettings.sharing]) count together. Limits with the same name
     * should have the same options. While the store fails, each process counts on its own. Default: each process counts on its
     * own.
     */
    public val shared: String? = null,
) : BuiltInMiddleware

/**
 * Limits how many requests run at the same time. Further requests wait in the order of their arrival, and are refused with the
 * error -31000 when too many wait.
 */
@Serializable
public class ConcurrencyLimit(
    /** Maximum number of requests that run at the same time. */
    public val maxRunning: Long,
    /** Maximum number of requests that wait. Default: 0. */
    public val maxWaiting: Long = 0,
    /** Keys by which requests are counted, in combination. Default: none; all requests are counted together. */
    public val per: List<LimitKey> = emptyList(),
) : BuiltInMiddleware

/**
 * Caches resource contents, prompts and the results of [tools], and answers identical requests from the cache.
 *
 * A cached result is used only for the caller that it was made for, with the same scopes; without authorization, only for the same
 * session or connection, and over HTTP on 2026-07-28 for all, if its `cacheScope` is `public`. Errors and results that ask for input
 * are not cached. Results are dropped when features of their kind change, and those of a resource also by
 * [Server.notifyResourceUpdated].
 */
@Serializable
public class ResponseCache(
    /** How long a result is cached. */
    public val ttl: @Serializable(with = Seconds::class) Duration,
    /** Names of tools without side effects whose results are cached too. */
    public val tools: List<String> = emptyList(),
    /** Maximum total size of cached results in bytes; the oldest are dropped. Default: 16 MiB. */
    public val maxBytes: Long? = null,
) : BuiltInMiddleware

/**
 * Limits the size of the results of tools, which models have to read: the longest text of a larger result is cut, with a note. If
 * that is not enough, or the result has structured content, the client gets a tool error that names the size and the limit.
 */
@Serializable
public class ResponseSizeLimit(
    /** Maximum size of a result as JSON, in bytes; at least 512. */
    public val maxBytes: Long,
    /** Whether clients can read the rest page by page, as resources `result://{id}/{page}` that the note names. Default: `false`. */
    public val pages: Boolean = false,
    /** Maximum total size of kept pages in bytes; the oldest are dropped. Default: 16 MiB. */
    public val maxKeptBytes: Long? = null,
    /** How long pages are kept. Default: 10 minutes. */
    public val lifetime: @Serializable(with = Seconds::class) Duration? = null,
) : BuiltInMiddleware

/**
 * Appends a record of each request to a file: a JSON object on a line of its own, with time, method, name, caller, duration and
 * outcome. See the page "Observability".
 *
 * A record contains neither tokens nor session ids, and is passed to the operating system before the client gets the response.
 * [Server.addMiddleware] opens the file, and throws a [UsageException] if that fails.
 *
 * In [ClientBuilder.middleware], it records the requests that the client sends: with the server, its address and the kind of the
 * error, and without a caller. A request whose record cannot be written fails with a [TransportException].
 */
@Serializable
public class AuditLog(
    /** The file. A new one can be read and written by its owner only. */
    public val path: String,
    /** The size at which the file is rotated; 0: never. Default: 100 MiB. */
    public val maxBytes: Long? = null,
    /** How many rotated files are kept: `path.1`, which is the newest, `path.2` and so on; at most 1,000. Default: 10. */
    public val maxFiles: Int? = null,
    /** Whether records contain the arguments of tools and prompts; above 16 KiB only their size. Default: `false`. */
    public val arguments: Boolean = false,
    /** Whether records contain results; above 16 KiB only their size. Default: `false`. */
    public val results: Boolean = false,
    /**
     * Names of members whose values are replaced by `[redacted]`, at any depth and without regard to case. The values of obvious
     * secrets, such as `password`, always are.
     */
    public val redact: List<String> = emptyList(),
    /** Whether a request fails if its record cannot be written. Otherwise a warning is logged. Default: `true`. */
    public val required: Boolean? = null,
) : BuiltInMiddleware, BuiltInClientMiddleware

/**
 * Replaces values in the results of tools, the texts of resources and the messages of prompts, and, if it is added without a scope,
 * in what handlers send.
 *
 * Structured content is validated against the output schema before redaction, so declare redacted members as strings in the schema.
 * If redacting a value takes more than five seconds, it is not sent. Add a [ResponseSizeLimit] before this one.
 *
 * In [ClientBuilder.middleware], results are replaced before the caller gets them, and arguments before they leave the host.
 * [ClientBuilder.onToolOutcome] gets the result as the server sent it.
 */
@Serializable
public class Redaction(
    /** Names of members whose values are replaced, at any depth, also in texts that are JSON. Case does not matter. */
    public val members: List<String> = emptyList(),
    /** Regular expressions, of the Rust crate `regex`, whose matches are replaced in texts and messages of errors. */
    public val patterns: List<String> = emptyList(),
    /** What takes the place of a value or match. Default: `[redacted]`. */
    public val replacement: String? = null,
    /** Whether the arguments of tools and prompts are redacted as well, before they are checked. */
    public val arguments: Boolean = false,
) : BuiltInMiddleware, BuiltInClientMiddleware

/**
 * Restricts which tools clients can list and call. For servers; clients use [ClientToolPolicy].
 *
 * A tool that is not allowed is left out of lists, and a call of it fails like that of a tool that does not exist. Before each call
 * of a tool that needs approval, the server asks the user by an elicitation that shows the name and the arguments. If the user
 * declines, or the client does not support elicitation, the tool does not run.
 */
@Serializable
public class ToolPolicy(
    /** Names of the tools that are allowed; `*` stands for any characters. Default: all. */
    public val allowed: List<String>? = null,
    /** Names of tools that are denied, even if [allowed] matches them. */
    public val denied: List<String> = emptyList(),
    /** Names of tools whose calls need the user's approval. */
    public val approval: List<String> = emptyList(),
    /**
     * Callers with all of these scopes may use every tool without approval. Callers on stdio, on Unix sockets and in memory count
     * as having all scopes. Default: none are exempt.
     */
    public val exemptScopes: List<String>? = null,
) : BuiltInMiddleware

/** As the core reads it. */
internal fun BuiltInMiddleware.definition(): JsonObject {
    val (name, options) = when (this) {
        is RateLimit -> "rate_limit" to optionsJson.encodeToJsonElement(RateLimit.serializer(), this)
        is ConcurrencyLimit -> "concurrency_limit" to optionsJson.encodeToJsonElement(ConcurrencyLimit.serializer(), this)
        is ResponseCache -> "response_cache" to optionsJson.encodeToJsonElement(ResponseCache.serializer(), this)
        is ResponseSizeLimit ->
            "response_size_limit" to optionsJson.encodeToJsonElement(ResponseSizeLimit.serializer(), this)
        is AuditLog -> "audit_log" to optionsJson.encodeToJsonElement(AuditLog.serializer(), this)
        is Redaction -> "redaction" to optionsJson.encodeToJsonElement(Redaction.serializer(), this)
        is ToolPolicy -> "tool_policy" to optionsJson.encodeToJsonElement(ToolPolicy.serializer(), this)
    }
    return JsonObject(mapOf(name to options))
}
