package mcpline

import java.util.Base64
import kotlinx.serialization.ExperimentalSerializationApi
import kotlinx.serialization.KSerializer
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.builtins.ListSerializer
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonClassDiscriminator
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.JsonTransformingSerializer

/** Author of a message. */
@Serializable
public enum class Role {
    /** The user. */
    @SerialName("user")
    User,

    /** The model. */
    @SerialName("assistant")
    Assistant,
}

/** Severity of a log message (RFC 5424). */
@Serializable
public enum class LogLevel {
    /** For developers. */
    @SerialName("debug")
    Debug,

    /** Normal operation. */
    @SerialName("info")
    Info,

    /** Normal, but significant. */
    @SerialName("notice")
    Notice,

    /** A warning. */
    @SerialName("warning")
    Warning,

    /** An error. */
    @SerialName("error")
    Error,

    /** A critical condition. */
    @SerialName("critical")
    Critical,

    /** Action must be taken immediately. */
    @SerialName("alert")
    Alert,

    /** The system is unusable. */
    @SerialName("emergency")
    Emergency,
    ;

    internal val wire: String get() = name.lowercase()
}

/**
 * An icon.
 *
 * @property src URL of the image: `https:` or `data:`.
 * @property mimeType Media type of the image.
 * @property sizes Sizes for which it is suitable, such as `48x48` or `any`.
 * @property theme Theme for which it is designed: `light` or `dark`.
 */
@Serializable
public data class Icon @JvmOverloads constructor(
    public val src: String,
    public val mimeType: String? = null,
    public val sizes: List<String>? = null,
    public val theme: String? = null,
)

/**
 * Annotations of content or of a resource.
 *
 * @property audience Intended audience.
 * @property priority Importance, from 0 (optional) to 1 (required).
 * @property lastModified Time of the last change, in ISO 8601.
 */
@Serializable
public data class Annotations @JvmOverloads constructor(
    public val audience: List<Role>? = null,
    public val priority: Double? = null,
    public val lastModified: String? = null,
)

/** Content of a message to or from a model: text, an image, audio, a tool call or its result. */
@OptIn(ExperimentalSerializationApi::class)
@Serializable
@JsonClassDiscriminator("type")
public sealed interface SamplingContent

/** A block of a tool's result or of a prompt's message: text, an image, audio, a link to a resource or its contents. */
@OptIn(ExperimentalSerializationApi::class)
@Serializable
@JsonClassDiscriminator("type")
public sealed interface ContentBlock

/** Text. */
@Serializable
@SerialName("text")
public data class TextContent @JvmOverloads constructor(
    /** The text. */
    public val text: String,
    /** Annotations. */
    public val annotations: Annotations? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
) : ContentBlock, SamplingContent

/** An image. */
@Serializable
@SerialName("image")
public data class ImageContent @JvmOverloads constructor(
    /** The image in base64. */
    public val data: String,
    /** Its media type. */
    public val mimeType: String,
    /** Annotations. */
    public val annotations: Annotations? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
) : ContentBlock, SamplingContent {
    /** Returns the bytes of the image. */
    public fun bytes(): ByteArray = Base64.getDecoder().decode(data)
}

/** Audio. */
@Serializable
@SerialName("audio")
public data class AudioContent @JvmOverloads constructor(
    /** The audio in base64. */
    public val data: String,
    /** Its media type. */
    public val mimeType: String,
    /** Annotations. */
    public val annotations: Annotations? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
) : ContentBlock, SamplingContent {
    /** Returns the bytes of the audio. */
    public fun bytes(): ByteArray = Base64.getDecoder().decode(data)
}

/** A link to a resource. */
@Serializable
@SerialName("resource_link")
public data class ResourceLink @JvmOverloads constructor(
    /** URI of the resource. */
    public val uri: String,
    /** Name for programs. */
    public val name: String,
    /** Display name. */
    public val title: String? = null,
    /** Description for the model. */
    public val description: String? = null,
    /** Media type of the contents. */
    public val mimeType: String? = null,
    /** Size of the contents in bytes. */
    public val size: Long? = null,
    /** Icons. */
    public val icons: List<Icon>? = null,
    /** Annotations. */
    public val annotations: Annotations? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
) : ContentBlock

/** The contents of a resource, embedded in a result. */
@Serializable
@SerialName("resource")
public data class EmbeddedResource @JvmOverloads constructor(
    /** The contents. */
    public val resource: ResourceContents,
    /** Annotations. */
    public val annotations: Annotations? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
) : ContentBlock

/** A tool call that a model requests (2025-11-25). */
@Serializable
@SerialName("tool_use")
public data class ToolUseContent @JvmOverloads constructor(
    /** Identifies the call. */
    public val id: String,
    /** Name of the tool. */
    public val name: String,
    /** The arguments. */
    public val input: JsonObject,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
) : SamplingContent

/** The result of a tool call, for a model (2025-11-25). */
@Serializable
@SerialName("tool_result")
public data class ToolResultContent @JvmOverloads constructor(
    /** The `id` of the call. */
    public val toolUseId: String,
    /** The content. */
    public val content: List<ContentBlock>,
    /** Structured content: any JSON value. */
    @Serializable(with = JsonOrAbsent::class) public val structuredContent: JsonElement? = null,
    /** Whether the tool failed. */
    public val isError: Boolean? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
) : SamplingContent

/** Contents of a resource: either [text] or, in base64, [blob]. */
@Serializable
public data class ResourceContents @JvmOverloads constructor(
    /** URI of the resource. */
    public val uri: String,
    /** Media type. */
    public val mimeType: String? = null,
    /** The contents, if they are text. */
    public val text: String? = null,
    /** The contents in base64, if they are bytes. */
    public val blob: String? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
) {
    /** Returns the contents as bytes. */
    public fun bytes(): ByteArray = blob?.let(Base64.getDecoder()::decode) ?: (text ?: "").encodeToByteArray()
}

/** Hints about a tool's behaviour. Do not rely on them unless you trust the server. */
@Serializable
public data class ToolAnnotations @JvmOverloads constructor(
    /** Display name. */
    public val title: String? = null,
    /** The tool does not modify its environment. */
    public val readOnlyHint: Boolean? = null,
    /** The tool may perform destructive updates. */
    public val destructiveHint: Boolean? = null,
    /** Repeated calls with the same arguments have no additional effect. */
    public val idempotentHint: Boolean? = null,
    /** The tool interacts with external entities. */
    public val openWorldHint: Boolean? = null,
)

/** A tool of a server (`server/tools`). */
@Serializable
public data class Tool @JvmOverloads constructor(
    /** Name for calls. */
    public val name: String,
    /** Display name. */
    public val title: String? = null,
    /** Description for the model. */
    public val description: String? = null,
    /** JSON Schema of the arguments. */
    public val inputSchema: JsonObject,
    /** JSON Schema of the structured content. */
    public val outputSchema: JsonObject? = null,
    /** Hints about the tool's behaviour. */
    public val annotations: ToolAnnotations? = null,
    /** Icons. */
    public val icons: List<Icon>? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
)

/** A resource of a server (`server/resources`). */
@Serializable
public data class Resource @JvmOverloads constructor(
    /** URI of the resource. */
    public val uri: String,
    /** Name for programs. */
    public val name: String,
    /** Display name. */
    public val title: String? = null,
    /** Description for the model. */
    public val description: String? = null,
    /** Media type of the contents. */
    public val mimeType: String? = null,
    /** Size of the contents in bytes. */
    public val size: Long? = null,
    /** Annotations. */
    public val annotations: Annotations? = null,
    /** Icons. */
    public val icons: List<Icon>? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
)

/** A resource template of a server (`server/resources`). */
@Serializable
public data class ResourceTemplate @JvmOverloads constructor(
    /** URI template (RFC 6570). */
    public val uriTemplate: String,
    /** Name for programs. */
    public val name: String,
    /** Display name. */
    public val title: String? = null,
    /** Description for the model. */
    public val description: String? = null,
    /** Media type of the contents, if all resources have the same. */
    public val mimeType: String? = null,
    /** Annotations. */
    public val annotations: Annotations? = null,
    /** Icons. */
    public val icons: List<Icon>? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
)

/** An argument of a prompt. */
@Serializable
public data class PromptArgument @JvmOverloads constructor(
    /** Name of the argument. */
    public val name: String,
    /** Description for the user. */
    public val description: String? = null,
    /** Whether it must be given. */
    public val required: Boolean? = true,
    /** Display name. */
    public val title: String? = null,
)

/** A prompt of a server (`server/prompts`). */
@Serializable
public data class Prompt @JvmOverloads constructor(
    /** Name for requests. */
    public val name: String,
    /** Display name. */
    public val title: String? = null,
    /** Description for the user. */
    public val description: String? = null,
    /** Its arguments. */
    public val arguments: List<PromptArgument>? = null,
    /** Icons. */
    public val icons: List<Icon>? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
)

/** A message of a prompt. */
@Serializable
public data class PromptMessage(
    /** Its author. */
    public val role: Role,
    /** Its content. */
    public val content: ContentBlock,
)

/** The result of a tool call. */
@Serializable
public data class CallToolResult @JvmOverloads constructor(
    /** Content blocks for the model. */
    public val content: List<ContentBlock> = emptyList(),
    /** Structured content: any JSON value, as described by the tool's output schema. */
    @Serializable(with = JsonOrAbsent::class) public val structuredContent: JsonElement? = null,
    /** Whether the tool failed. The content describes the failure for the model. */
    public val isError: Boolean? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
) {
    /** The text of all text blocks, one to a line. */
    public val text: String get() = content.filterIsInstance<TextContent>().joinToString("\n") { it.text }
}

/** The contents of a resource. */
@Serializable
public data class ReadResourceResult @JvmOverloads constructor(
    /** The contents. */
    public val contents: List<ResourceContents>,
    /** Cache lifetime in milliseconds (2026-07-28). */
    public val ttlMs: Long? = null,
    /** `public` if shared caches may store the result (2026-07-28). */
    public val cacheScope: String? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
) {
    /** The text of all contents, one to a line. */
    public val text: String get() = contents.mapNotNull { it.text }.joinToString("\n")
}

/** A prompt with its arguments filled in. */
@Serializable
public data class GetPromptResult @JvmOverloads constructor(
    /** The messages. */
    public val messages: List<PromptMessage>,
    /** Description of the prompt. */
    public val description: String? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
)

/** Completions of an argument. At most 100 values are sent. */
@Serializable
public data class CompletionValues @JvmOverloads constructor(
    /** The candidates, best first. */
    public val values: List<String>,
    /** Total number of candidates, if known. */
    public val total: Long? = null,
    /** Whether there are more candidates. */
    public val hasMore: Boolean? = null,
)

/** Name and version of a client or server. */
@Serializable
public data class Implementation @JvmOverloads constructor(
    /** Name for programs. */
    public val name: String,
    /** Its version. */
    public val version: String,
    /** Display name. */
    public val title: String? = null,
    /** Purpose of the client or server. */
    public val description: String? = null,
    /** Home page. */
    public val websiteUrl: String? = null,
    /** Icons. */
    public val icons: List<Icon>? = null,
)

/** A root directory or file of the client (`client/roots`). */
@Serializable
public data class Root @JvmOverloads constructor(
    /** A `file://` URI. */
    public val uri: String,
    /** Display name. */
    public val name: String? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
)

/** A message to or from a model. */
@Serializable
public data class SamplingMessage @JvmOverloads constructor(
    /** Its author. */
    public val role: Role,
    /** Its content. */
    @Serializable(with = OneOrMore::class) public val content: List<SamplingContent>,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
) {
    /** Creates a message with one text. */
    public constructor(role: Role, text: String) : this(role, listOf(TextContent(text)))
}

/** A server's preferences for the choice of a model. */
@Serializable
public data class ModelPreferences @JvmOverloads constructor(
    /** Names of preferred models, best first. */
    public val hints: List<ModelHint>? = null,
    /** Importance of low cost, from 0 to 1. */
    public val costPriority: Double? = null,
    /** Importance of speed, from 0 to 1. */
    public val speedPriority: Double? = null,
    /** Importance of capability, from 0 to 1. */
    public val intelligencePriority: Double? = null,
)

/** The name of a preferred model. */
@Serializable
public data class ModelHint @JvmOverloads constructor(
    /** The name, or a part of it. */
    public val name: String? = null,
)

/** Parameters of a sampling request, `sampling/createMessage`. */
@Serializable
public data class CreateMessageParams @JvmOverloads constructor(
    /** The conversation. */
    public val messages: List<SamplingMessage>,
    /** Maximum number of tokens to generate. */
    public val maxTokens: Long,
    /** System prompt. */
    public val systemPrompt: String? = null,
    /** Preferences for the choice of a model. */
    public val modelPreferences: ModelPreferences? = null,
    /** Context of MCP servers to include: `none`, `thisServer` or `allServers`. */
    public val includeContext: String? = null,
    /** Sampling temperature. */
    public val temperature: Double? = null,
    /** Sequences that stop the generation. */
    public val stopSequences: List<String>? = null,
    /** Metadata for the model provider. */
    public val metadata: JsonObject? = null,
    /** Tools that the model may call (2025-11-25). */
    public val tools: List<Tool>? = null,
    /** Whether the model has to call tools (2025-11-25). */
    public val toolChoice: ToolChoice? = null,
)

/** Whether a model has to call tools. */
@Serializable
public data class ToolChoice @JvmOverloads constructor(
    /** `auto`, `required` or `none`. */
    public val mode: String? = null,
)

/** The result of a sampling request. */
@Serializable
public data class CreateMessageResult @JvmOverloads constructor(
    /** Author of the message. */
    public val role: Role,
    /** Its content. */
    @Serializable(with = OneOrMore::class) public val content: List<SamplingContent>,
    /** Name of the model. */
    public val model: String,
    /** Why the model stopped, such as `endTurn`. */
    public val stopReason: String? = null,
    /** Additional members. */
    @SerialName("_meta") public val meta: JsonObject? = null,
) {
    /** The text of all text blocks, one to a line. */
    public val text: String get() = content.filterIsInstance<TextContent>().joinToString("\n") { it.text }
}

/**
 * A URL for the user to open (2025-11-25): for secrets, payments and sign-in.
 *
 * @property message Message to the user.
 * @property url The URL.
 * @property elicitationId Id for [Server.notifyElicitationComplete].
 */
@Serializable
public data class UrlElicitation @JvmOverloads constructor(
    public val message: String,
    public val url: String,
    public val elicitationId: String? = null,
) {
    internal fun params(): JsonObject = JsonObject(
        mapOf("mode" to JsonPrimitive("url")) +
            (json.encodeToJsonElement(serializer(), this) as JsonObject),
    )
}

/** A notification.
 *
 * @property method The method: `notifications/tools/list_changed`.
 * @property params The parameters.
 */
public data class Notification(public val method: String, public val params: JsonObject)

/** A progress report (`basic/utilities/progress`).
 *
 * @property progress Progress so far; increases with each report.
 * @property total Value of [progress] at the end, if known.
 * @property message Description of the current step.
 */
public data class Progress(
    public val progress: Double,
    public val total: Double? = null,
    public val message: String? = null,
)

/** One block, or an array of blocks, which revisions before 2025-11-25 do not have. */
internal object OneOrMore :
    JsonTransformingSerializer<List<SamplingContent>>(ListSerializer(SamplingContent.serializer())) {
    override fun transformDeserialize(element: JsonElement): JsonElement =
        element as? JsonArray ?: JsonArray(listOf(element))

    override fun transformSerialize(element: JsonElement): JsonElement {
        val block = (element as JsonArray).singleOrNull() as? JsonObject ?: return element
        val type = (block["type"] as? JsonPrimitive)?.content
        return if (type == "tool_use" || type == "tool_result") element else block
    }
}

/** An image from its bytes. */
public fun image(bytes: ByteArray, mimeType: String): ImageContent =
    ImageContent(Base64.getEncoder().encodeToString(bytes), mimeType)

/** Audio from its bytes. */
public fun audio(bytes: ByteArray, mimeType: String): AudioContent =
    AudioContent(Base64.getEncoder().encodeToString(bytes), mimeType)

/** Decodes what a peer has sent. */
internal fun <T> decodeResult(serializer: KSerializer<T>, text: String, what: String): T =
    try {
        json.decodeFromString(serializer, text)
    } catch (error: IllegalArgumentException) {
        throw InvalidResponseException("$what: ${error.message?.lineSequence()?.firstOrNull()}")
    }
