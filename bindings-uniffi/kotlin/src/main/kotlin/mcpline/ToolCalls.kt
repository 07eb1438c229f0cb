package mcpline

import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonObject

/**
 * A tool call that is about to be sent: see [ClientBuilder.onToolCall].
 *
 * @property id Number of the call, unique in this process.
 * @property name Name of the tool.
 * @property arguments Arguments of the tool.
 * @property annotations Annotations of the tool, if it was listed. Do not rely on them unless you trust the server.
 */
@Serializable
public class ToolCall internal constructor(
    public val id: Long,
    public val name: String,
    public val arguments: JsonObject = JsonObject(emptyMap()),
    public val annotations: ToolAnnotations? = null,
)

/**
 * The error of a tool call without a result.
 *
 * @property kind The kind of the error, as [McplineException.kind]; `request_cancelled` if the caller cancelled the call.
 * @property message The message.
 */
@Serializable
public class ToolCallError internal constructor(public val kind: String, public val message: String)

/**
 * The end of a tool call: see [ClientBuilder.onToolOutcome].
 *
 * @property call The call.
 * @property result The result as the server sent it, also if it has `isError`; `null` if there is none.
 * @property error The error, if there is no result.
 */
@Serializable
public class ToolCallOutcome internal constructor(
    public val call: ToolCall,
    public val result: JsonObject? = null,
    public val error: ToolCallError? = null,
)
