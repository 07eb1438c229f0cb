// Tools that return content of every kind, and tools whose input schema has more than types.

import Mcpline

struct Weather: Codable {
    var temperature: Double
    var conditions: String
    var humidity: Int
}

struct EchoedText: Codable {
    var text: String
}

struct Size: Codable {
    var size: Int
}

struct Numbers: Codable {
    var a: Double
    var b: Double
}

let link = ContentBlock.resourceLink(
    ResourceLink(
        uri: "test://static-text", name: "static-text", description: "A link to the static text", mimeType: "text/plain"))
let image = ContentBlock.image(ImageContent(data: png, mimeType: "image/png"))

private let jsonSchema2020 = """
    {"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
     "$defs":{"address":{"$anchor":"addressDef","type":"object",
       "properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
     "properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},
      "contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
     "allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
     "if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},
     "then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}
    """

private let headers: JSONObject = [
    "type": "object",
    "properties": [
        "value": ["type": "string", "x-mcp-header": "Value"],
        "count": ["type": "integer", "x-mcp-header": "Count"],
        "flag": ["type": "boolean", "x-mcp-header": "Flag"],
    ],
]

func embedded(_ uri: String, _ mimeType: String, _ text: String) -> ContentBlock {
    .resource(EmbeddedResource(resource: ResourceContents(uri: uri, mimeType: mimeType, text: text)))
}

extension Server {
    func addSimpleText() throws {
        try tool("test_simple_text", description: "Returns a simple text") { _ in
            "This is a simple text response for testing."
        }
    }

    func addContentTools() throws {
        try addSimpleText()
        try tool("test_image_content", description: "Returns an image") { _ in image }
        try tool("test_audio_content", description: "Returns a recording") { _ in
            ContentBlock.audio(AudioContent(data: wav, mimeType: "audio/wav"))
        }
        try tool("test_embedded_resource", description: "Returns a resource, sent along") { _ in
            embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
        }
        try tool("test_resource_link", description: "Returns a link to a resource") { _ in link }
        try tool("test_multiple_content_types", description: "Returns text, an image and a resource") { _ -> [ContentBlock] in
            [
                .text("Multiple content types test:"),
                image,
                embedded("test://mixed-content-resource", "application/json", #"{"test":"data","value":123}"#),
            ]
        }
        try structuredTool("test_structured_content", description: "Returns structured content") { (_: JSONObject, _) in
            Weather(temperature: 22.5, conditions: "Partly cloudy", humidity: 65)
        }
        try structuredTool(
            "test_structured_list", description: "Returns structured content that is no object"
        ) { (_: JSONObject, _) in [1, 2, 3] }
        try tool(
            "test_annotated_tool",
            description: "Has everything that a tool can say of itself",
            title: "Annotated tool",
            annotations: ToolAnnotations(
                title: "Annotated tool", readOnlyHint: true, destructiveHint: false, idempotentHint: true,
                openWorldHint: false),
            icons: icons,
            meta: ["example.com/fixture": "annotated"]
        ) { _ in
            let text = TextContent(text: "annotated", annotations: Annotations(audience: [.user], priority: 0.5))
            return CallToolResult(content: [.text(text)], meta: ["example.com/answer": 42])
        }
        try tool("test_echo", description: "Returns the text unchanged") { (echoed: EchoedText, _) in echoed.text }
        try tool("test_large_result", description: "Returns a long text") { (wanted: Size, _) in
            String(repeating: "x", count: wanted.size)
        }
        try tool("test_add_numbers", description: "Adds two numbers") { (numbers: Numbers, _) in
            shortest(numbers.a + numbers.b)
        }
        try addTool(
            Tool(
                name: "json_schema_2020_12_tool",
                description: "Has an input schema with keywords of JSON Schema 2020-12",
                inputSchema: JSONObject(parsing: jsonSchema2020))
        ) { arguments, _ in "JSON Schema 2020-12 tool called with: \(arguments)" }
        try addTool(
            Tool(
                name: "test_custom_header",
                description: "Has arguments that clients repeat in HTTP headers",
                inputSchema: headers)
        ) { arguments, _ in
            "value=\(shown(arguments["value"])) count=\(shown(arguments["count"])) flag=\(shown(arguments["flag"]))"
        }
    }
}

private func shortest(_ number: Double) -> String {
    Int(exactly: number).map(String.init) ?? String(number)
}

private func shown(_ argument: JSON?) -> String {
    argument?.stringValue ?? argument?.text ?? "none"
}
