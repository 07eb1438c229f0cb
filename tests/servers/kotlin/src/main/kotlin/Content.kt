// Tools that return content of every kind, and tools whose input schema has more than types.

import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import mcpline.Annotations
import mcpline.AudioContent
import mcpline.CallToolResult
import mcpline.EmbeddedResource
import mcpline.ImageContent
import mcpline.ResourceContents
import mcpline.ResourceLink
import mcpline.Role
import mcpline.Server
import mcpline.TextContent
import mcpline.Tool
import mcpline.ToolAnnotations

@Serializable
class Weather(val temperature: Double, val conditions: String, val humidity: Int)

@Serializable
class EchoedText(val text: String)

@Serializable
class Size(val size: Int)

@Serializable
class Numbers(val a: Double, val b: Double)

val LINK = ResourceLink(
    "test://static-text",
    "static-text",
    description = "A link to the static text",
    mimeType = "text/plain",
)

private val JSON_SCHEMA = obj(
    """
    {"${'$'}schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
     "${'$'}defs":{"address":{"${'$'}anchor":"addressDef","type":"object",
       "properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
     "properties":{"name":{"type":"string"},"address":{"${'$'}ref":"#/${'$'}defs/address"},
      "contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
     "allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
     "if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},
     "then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}
    """,
)

private val HEADERS = obj(
    """
    {"type":"object","properties":{"value":{"type":"string","x-mcp-header":"Value"},
     "count":{"type":"integer","x-mcp-header":"Count"},"flag":{"type":"boolean","x-mcp-header":"Flag"}}}
    """,
)

fun Server.addSimpleText(): Unit =
    tool("test_simple_text", "Returns a simple text") { "This is a simple text response for testing." }

fun Server.addContentTools() {
    addSimpleText()
    tool("test_image_content", "Returns an image") { ImageContent(PNG, "image/png") }
    tool("test_audio_content", "Returns a recording") { AudioContent(WAV, "audio/wav") }
    tool("test_embedded_resource", "Returns a resource, sent along") {
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    }
    tool("test_resource_link", "Returns a link to a resource") { LINK }
    tool("test_multiple_content_types", "Returns text, an image and a resource") {
        listOf(
            TextContent("Multiple content types test:"),
            ImageContent(PNG, "image/png"),
            embedded("test://mixed-content-resource", "application/json", """{"test":"data","value":123}"""),
        )
    }
    structuredTool<JsonObject, Weather>("test_structured_content", "Returns structured content") {
        Weather(22.5, "Partly cloudy", 65)
    }
    structuredTool<JsonObject, List<Int>>("test_structured_list", "Returns structured content that is no object") {
        listOf(1, 2, 3)
    }
    tool(
        "test_annotated_tool",
        "Has everything that a tool can say of itself",
        title = "Annotated tool",
        annotations = ToolAnnotations("Annotated tool", true, false, true, false),
        icons = ICONS,
        meta = obj("""{"example.com/fixture":"annotated"}"""),
    ) {
        val text = TextContent("annotated", Annotations(listOf(Role.User), 0.5))
        CallToolResult(listOf(text), meta = obj("""{"example.com/answer":42}"""))
    }
    tool<EchoedText>("test_echo", "Returns the text unchanged") { it.text }
    tool<Size>("test_large_result", "Returns a long text") { "x".repeat(it.size) }
    tool<Numbers>("test_add_numbers", "Adds two numbers") { shortest(it.a + it.b) }
    addTool(
        Tool(
            "json_schema_2020_12_tool",
            description = "Has an input schema with keywords of JSON Schema 2020-12",
            inputSchema = JSON_SCHEMA,
        ),
    ) { "JSON Schema 2020-12 tool called with: $it" }
    addTool(
        Tool(
            "test_custom_header",
            description = "Has arguments that clients repeat in HTTP headers",
            inputSchema = HEADERS,
        ),
    ) { arguments ->
        val shown = { name: String -> (arguments[name] as? JsonPrimitive)?.content ?: "none" }
        "value=${shown("value")} count=${shown("count")} flag=${shown("flag")}"
    }
}

fun embedded(uri: String, mimeType: String, text: String): EmbeddedResource =
    EmbeddedResource(ResourceContents(uri, mimeType, text))

private fun shortest(number: Double): String =
    if (number % 1.0 == 0.0) number.toLong().toString() else number.toString()
