package mcpline

import kotlin.time.Duration
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonObject

/**
 * Middleware of clients that the library provides, for [ClientBuilder.middleware]: [Retry], [CircuitBreaker], [ClientToolPolicy],
 * [AuditLog] and [Redaction]. It runs in the core, without Kotlin code.
 */
public sealed interface BuiltInClientMiddleware

/**
 * Sends failed requests again, after a delay that doubles.
 *
 * A request that the server did not perform, because it was busy or could not be reached, is always sent again. If the server may
 * have performed it, it is sent again only if that is safe: lists, reads, prompts, completions, calls of [tools], and calls of tools
 * that a [trusted][ClientSettings.trustToolAnnotations] server annotates as read-only or idempotent.
 */
@Serializable
public class Retry(
    /** Maximum number of attempts, including the first. Default: 3. */
    public val attempts: Int? = null,
    /**
     * Delay before the second attempt; it doubles with each further attempt. Jitter shortens it by up to half. If the server asks for
     * a longer delay (`retryAfter`), that one is used. Default: 200 milliseconds.
     */
    public val firstDelay: @Serializable(with = Seconds::class) Duration? = null,
    /** Maximum delay. An error with a longer `retryAfter` is thrown. Default: 10 seconds. */
    public val maxDelay: @Serializable(with = Seconds::class) Duration? = null,
    /** Names of tools that may run twice for one call, whatever their annotations say. */
    public val tools: List<String> = emptyList(),
) : BuiltInClientMiddleware

/**
 * Stops sending requests for a while to a server that has failed several times in a row. Meanwhile, requests fail with a
 * [ServerUnreachableException], and what the client has cached is still returned. Put [Retry] before it.
 */
@Serializable
public class CircuitBreaker(
    /** Number of consecutive failures that opens the circuit. Default: 5. */
    public val failures: Int? = null,
    /** How long nothing is sent, before some requests are sent as trials. Default: 30 seconds. */
    public val reset: @Serializable(with = Seconds::class) Duration? = null,
) : BuiltInClientMiddleware

/**
 * Restricts which tools of a server the client can list and call. Calls of other tools fail with a [ToolCallRefusedException].
 * Servers use [ToolPolicy].
 *
 * With pins, a tool keeps the definition that it had when it was first listed: one whose definition has changed is left out of
 * lists, with a warning, and calls of it are refused.
 */
@Serializable
public class ClientToolPolicy(
    /** Names of the tools that are allowed; `*` stands for any characters. Default: all. */
    public val allowed: List<String>? = null,
    /** Names of tools that are denied, even if [allowed] matches them. */
    public val denied: List<String> = emptyList(),
    /**
     * Names of tools whose calls need the approval of [ClientBuilder.onToolCall], which then runs only for these. Without this hook,
     * their calls are refused. Default: the hook runs for all tools.
     */
    public val approval: List<String>? = null,
    /** Whether definitions are pinned for the life of the client. */
    public val pin: Boolean = false,
    /** File in which the pinned definitions are kept. Use one for each server. */
    public val pinFile: String? = null,
) : BuiltInClientMiddleware

/** As the core reads it. */
internal fun BuiltInClientMiddleware.definition(): JsonObject {
    val (name, options) = when (this) {
        is Retry -> "retry" to optionsJson.encodeToJsonElement(Retry.serializer(), this)
        is CircuitBreaker -> "circuit_breaker" to optionsJson.encodeToJsonElement(CircuitBreaker.serializer(), this)
        is ClientToolPolicy -> "tool_policy" to optionsJson.encodeToJsonElement(ClientToolPolicy.serializer(), this)
        is AuditLog -> "audit_log" to optionsJson.encodeToJsonElement(AuditLog.serializer(), this)
        is Redaction -> "redaction" to optionsJson.encodeToJsonElement(Redaction.serializer(), this)
    }
    return JsonObject(mapOf(name to options))
}
