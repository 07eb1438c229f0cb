//! Tools that return content of every kind.

use mcpline::protocol::vocabulary::{
    Annotations, AudioContent, CallToolResult, ContentBlock, EmbeddedResource, Icon, ImageContent,
    Resource, ResourceContents, Role, TextContent, Tool, ToolAnnotations,
};
use mcpline::server::ToolOptions;
use mcpline::{Context, Error, Json, Server};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The 1×1 PNG.
pub(crate) const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// The empty WAV.
pub(crate) const AUDIO: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Size {
    size: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Sum {
    a: f64,
    b: f64,
}

#[derive(Deserialize)]
struct Mirrored {
    value: Option<String>,
    count: Option<i64>,
    flag: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct Weather {
    temperature: f64,
    conditions: String,
    humidity: i64,
}

/// Creates a tool without arguments.
pub(crate) fn plain(name: &str, description: &str) -> Tool {
    Tool::new(name, json!({"type": "object", "properties": {}})).with_description(description)
}

/// The image as content.
pub(crate) fn image() -> ContentBlock {
    ImageContent::new(IMAGE, "image/png").into()
}

/// A link to the static text as content.
pub(crate) fn static_text_link() -> ContentBlock {
    ContentBlock::ResourceLink(
        Resource::new("test://static-text", "static-text")
            .with_mime_type("text/plain")
            .with_description("A link to the static text"),
    )
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    EmbeddedResource::new(ResourceContents::text(uri, text).with_mime_type(mime_type)).into()
}

/// Adds these tools.
pub(crate) fn add(server: &Server) -> Result<(), Error> {
    let server = server
        .clone()
        .tool(
            "test_simple_text",
            "Returns a text",
            |_: Nothing, _: Context| async { "This is a simple text response for testing." },
        )
        .tool(
            "test_image_content",
            "Returns an image",
            |_: Nothing, _: Context| async { image() },
        )
        .tool(
            "test_audio_content",
            "Returns audio",
            |_: Nothing, _: Context| async {
                ContentBlock::from(AudioContent::new(AUDIO, "audio/wav"))
            },
        )
        .tool(
            "test_embedded_resource",
            "Returns a resource",
            |_: Nothing, _: Context| async {
                embedded(
                    "test://embedded-resource",
                    "text/plain",
                    "This is an embedded resource content.",
                )
            },
        )
        .tool(
            "test_resource_link",
            "Returns a link",
            |_: Nothing, _: Context| async { static_text_link() },
        )
        .tool(
            "test_multiple_content_types",
            "Returns three kinds",
            |_: Nothing, _: Context| async {
                vec![
                    ContentBlock::from(TextContent::new("Multiple content types test:")),
                    image(),
                    embedded(
                        "test://mixed-content-resource",
                        "application/json",
                        r#"{"test":"data","value":123}"#,
                    ),
                ]
            },
        )
        .tool(
            "test_structured_content",
            "Returns an object",
            |_: Nothing, _: Context| async {
                Json(Weather {
                    temperature: 22.5,
                    conditions: "Partly cloudy".into(),
                    humidity: 65,
                })
            },
        );
    let list = plain("test_structured_list", "Returns an array")
        .with_output_schema(json!({"type": "array", "items": {"type": "integer"}}));
    server.add_tool_fn(
        list,
        ToolOptions::default(),
        |_: Nothing, _: Context| async { Json(vec![1, 2, 3]) },
    )?;
    add_annotated(&server)?;
    let server = server
        .tool(
            "test_echo",
            "Returns its text",
            |args: Text, _: Context| async move { args.text },
        )
        .tool(
            "test_large_result",
            "Returns a long text",
            |args: Size, _: Context| async move { "x".repeat(args.size) },
        )
        .tool(
            "test_add_numbers",
            "Adds two numbers",
            |args: Sum, _: Context| async move { (args.a + args.b).to_string() },
        );
    add_schemas(&server)
}

fn add_annotated(server: &Server) -> Result<(), Error> {
    let mut meta = serde_json::Map::new();
    meta.insert("example.com/fixture".into(), "annotated".into());
    let tool = plain(
        "test_annotated_tool",
        "A tool with everything a definition can have",
    )
    .with_title("Annotated tool")
    .with_annotations(
        ToolAnnotations::default()
            .with_title("Annotated tool")
            .with_read_only_hint(true)
            .with_destructive_hint(false)
            .with_idempotent_hint(true)
            .with_open_world_hint(false),
    )
    .with_icons(vec![
        Icon::new("https://example.com/icon.png")
            .with_mime_type("image/png")
            .with_sizes(vec!["48x48".to_owned()]),
    ])
    .with_meta(meta);
    server.add_tool_fn(
        tool,
        ToolOptions::default(),
        |_: Nothing, _: Context| async {
            let annotations = Annotations::default()
                .with_audience(vec![Role::User])
                .with_priority(0.5);
            let text = TextContent::new("annotated").with_annotations(annotations);
            let mut meta = serde_json::Map::new();
            meta.insert("example.com/answer".into(), 42.into());
            CallToolResult::new(vec![text.into()]).with_meta(meta)
        },
    )
}

fn add_schemas(server: &Server) -> Result<(), Error> {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"}
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false
    });
    let tool = Tool::new("json_schema_2020_12_tool", schema)
        .with_description("A tool whose input schema uses what 2020-12 has");
    server.add_tool_fn(tool, ToolOptions::default(), |args: Value, _: Context| async move {
        format!("JSON Schema 2020-12 tool called with: {args}")
    })?;
    let schema = json!({
        "type": "object",
        "properties": {
            "value": {"type": "string", "x-mcp-header": "Value"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "flag": {"type": "boolean", "x-mcp-header": "Flag"}
        }
    });
    let tool = Tool::new("test_custom_header", schema)
        .with_description("A tool whose arguments are mirrored in headers");
    server.add_tool_fn(
        tool,
        ToolOptions::default(),
        |args: Mirrored, _: Context| async move {
            let text = |value: Option<String>| value.unwrap_or_else(|| "none".into());
            format!(
                "value={} count={} flag={}",
                text(args.value),
                text(args.count.map(|count| count.to_string())),
                text(args.flag.map(|flag| flag.to_string())),
            )
        },
    )
}
