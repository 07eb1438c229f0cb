package mcpline.java

import java.time.Duration
import kotlin.time.toKotlinDuration
import kotlinx.serialization.KSerializer
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.Json as KotlinJson
import mcpline.Annotations
import mcpline.CacheHint
import mcpline.Icon
import mcpline.LogLevel
import mcpline.Progress
import mcpline.Reissue
import mcpline.ToolAnnotations
import mcpline.UsageException
import mcpline.dataOf

/** Options of a tool, a resource or a prompt. Options that a kind of feature does not have are ignored. */
public class FeatureOptions {
    internal var title: String? = null
    internal var mimeType: String? = null
    internal var size: Long? = null
    internal var icons: List<Icon>? = null
    internal var meta: JsonObject? = null
    internal var toolAnnotations: ToolAnnotations? = null
    internal var annotations: Annotations? = null
    internal var outputSchema: JsonObject? = null
    internal var scopes: List<String> = emptyList()
    internal var tags: List<String> = emptyList()
    internal var uncheckedVariables: List<String> = emptyList()
    internal var timeout: Duration? = null
    internal var runOnce: Boolean = false
    internal var cache: CacheHint? = null

    /** Display name. */
    public fun title(title: String): FeatureOptions = apply { this.title = title }

    /** Media type of a resource. */
    public fun mimeType(mimeType: String): FeatureOptions = apply { this.mimeType = mimeType }

    /** Size of a resource, in bytes. */
    public fun size(size: Long): FeatureOptions = apply { this.size = size }

    /** Icons. */
    public fun icons(vararg icons: Icon): FeatureOptions = apply { this.icons = icons.toList() }

    /** Additional members of the definition: a record or a map. */
    public fun meta(meta: Any): FeatureOptions = apply { this.meta = Json.objectOf(meta) }

    /** Hints about a tool's behaviour. */
    public fun annotations(annotations: ToolAnnotations): FeatureOptions = apply { toolAnnotations = annotations }

    /** Annotations of a resource. */
    public fun annotations(annotations: Annotations): FeatureOptions = apply { this.annotations = annotations }

    /** JSON Schema of a tool's structured content. */
    public fun outputSchema(schema: JsonObject): FeatureOptions = apply { outputSchema = schema }

    /** Scopes that a caller needs, all of them. Others do not see the feature. */
    public fun scopes(vararg scopes: String): FeatureOptions = apply { this.scopes = scopes.toList() }

    /** Words by which features are selected. */
    public fun tags(vararg tags: String): FeatureOptions = apply { this.tags = tags.toList() }

    /** Variables of a resource template that may have any value. */
    public fun uncheckedVariables(vararg names: String): FeatureOptions = apply { uncheckedVariables = names.toList() }

    /** How long the handler of a tool may run. The time in which an input request is open does not count. */
    public fun timeout(timeout: Duration): FeatureOptions = apply { this.timeout = timeout }

    /** Never run the handler of a tool again for a retried request. */
    public fun runOnce(): FeatureOptions = apply { runOnce = true }

    /** How long clients may cache the contents of a resource (2026-07-28). */
    public fun cache(cache: CacheHint): FeatureOptions = apply { this.cache = cache }

    internal fun toKotlin() = mcpline.FeatureOptions(
        scopes,
        tags,
        timeout?.toKotlinDuration(),
        runOnce,
        uncheckedVariables,
        cache,
    )
}

/** Options of a client's request. */
public class RequestOptions {
    private var timeout: Duration? = null
    private var totalTimeout: Duration? = null
    private var meta: JsonObject? = null
    private var logLevel: LogLevel? = null
    private var reissue: Reissue? = null
    private var fresh: Boolean? = null
    internal var progress: Listener<Progress>? = null

    /** Time to wait for the result; each progress notification restarts it. */
    public fun timeout(timeout: Duration): RequestOptions = apply { this.timeout = timeout }

    /** Maximum total time to wait for the result, regardless of progress. */
    public fun totalTimeout(timeout: Duration): RequestOptions = apply { totalTimeout = timeout }

    /** Members of the request's `_meta`: a record or a map. */
    public fun meta(meta: Any): RequestOptions = apply { this.meta = Json.objectOf(meta) }

    /** Minimum level of the log messages sent during the request (2026-07-28). */
    public fun logLevel(level: LogLevel): RequestOptions = apply { logLevel = level }

    /** Whether to send the request again if the connection is lost. */
    public fun reissue(reissue: Reissue): RequestOptions = apply { this.reissue = reissue }

    /** Bypass the cache of results (2026-07-28). */
    public fun fresh(): RequestOptions = apply { fresh = true }

    /** Called with each progress report, in order, before the result is there. Tool calls and custom requests. */
    public fun onProgress(listener: Listener<Progress>): RequestOptions = apply { progress = listener }

    internal fun toKotlin() = mcpline.RequestOptions(
        timeout?.toKotlinDuration(),
        totalTimeout?.toKotlinDuration(),
        meta,
        logLevel,
        reissue,
        fresh,
    )
}

private val settingsJson = KotlinJson { explicitNulls = false }

/**
 * Reads settings from a map of their names to values: numbers, texts, booleans, lists, maps, `java.time.Duration`, and classes of
 * this library.
 */
internal fun <T> settingsOf(serializer: KSerializer<T>, settings: Map<String, *>): T = try {
    settingsJson.decodeFromJsonElement(serializer, settingOf(settings))
} catch (error: IllegalArgumentException) {
    throw UsageException("settings: ${error.message?.lineSequence()?.first()}")
}

private fun settingOf(value: Any?): JsonElement = when (value) {
    is Duration -> JsonPrimitive(value.toNanos() / 1e9)
    is JsonElement -> value
    is Map<*, *> -> JsonObject(value.entries.associate { (name, member) -> name.toString() to settingOf(member) })
    else -> dataOf(value)
}
