//! Sampling: the server requests a completion from the client's model.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::{AudioContent, ContentBlock, ImageContent, Role, TextContent};
use super::macros::{open_words, optional_number, setters, tagged_union};
use super::tools::Tool;
use super::{Extra, JsonObject};

/// The parameters of `sampling/createMessage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// Preferred models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Context of servers to include; values other than `none` are deprecated since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// The sampling temperature.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_number"
    )]
    pub temperature: Option<f64>,
    /// Maximum number of tokens.
    pub max_tokens: u64,
    /// Sequences that stop the completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Metadata for the provider of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// Tools that the model may use; since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// How the model uses them; since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CreateMessageParams {
    /// Creates a request to continue `messages` with at most `max_tokens` tokens.
    pub fn new(messages: Vec<SamplingMessage>, max_tokens: u64) -> Self {
        Self {
            messages,
            max_tokens,
            ..Self::default()
        }
    }
}

setters!(CreateMessageParams {
    with_model_preferences => model_preferences: ModelPreferences,
    with_system_prompt => system_prompt: String,
    with_include_context => include_context: IncludeContext,
    with_temperature => temperature: f64,
    with_stop_sequences => stop_sequences: Vec<String>,
    with_metadata => metadata: JsonObject,
    with_tools => tools: Vec<Tool>,
    with_tool_choice => tool_choice: ToolChoice,
    with_meta => meta: Extra,
});

open_words! {
    /// Context that a sampling request includes.
    IncludeContext {
        /// No context.
        None = "none",
        /// Context of the server that sends the request.
        ThisServer = "thisServer",
        /// Context of all servers.
        AllServers = "allServers",
    }
}

/// How the model uses tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolChoice {
    /// Mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

setters!(ToolChoice { with_mode => mode: ToolChoiceMode });

open_words! {
    /// Whether the model uses tools.
    ToolChoiceMode {
        /// The model decides.
        Auto = "auto",
        /// The model must use at least one tool.
        Required = "required",
        /// The model must not use tools.
        None = "none",
    }
}

/// Preferred models of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelPreferences {
    /// Models, most preferred first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<ModelHint>>,
    /// How much cost matters, from 0 to 1.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_number"
    )]
    pub cost_priority: Option<f64>,
    /// How much speed matters, from 0 to 1.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_number"
    )]
    pub speed_priority: Option<f64>,
    /// How much intelligence matters, from 0 to 1.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_number"
    )]
    pub intelligence_priority: Option<f64>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

setters!(ModelPreferences {
    with_hints => hints: Vec<ModelHint>,
    with_cost_priority => cost_priority: f64,
    with_speed_priority => speed_priority: f64,
    with_intelligence_priority => intelligence_priority: f64,
});

/// A model, by name or part of a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelHint {
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ModelHint {
    /// Creates a hint with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            ..Self::default()
        }
    }
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingMessage {
    /// Sender.
    pub role: Role,
    /// Content.
    pub content: SamplingContents,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl SamplingMessage {
    /// Creates a message.
    pub fn new(role: Role, content: impl Into<SamplingContents>) -> Self {
        Self {
            role,
            content: content.into(),
            meta: None,
            extra: Extra::new(),
        }
    }
}

setters!(SamplingMessage { with_meta => meta: Extra });

/// One block, or since 2025-11-25 a list of blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[allow(
    clippy::large_enum_variant,
    reason = "a box would be in the way of every match"
)]
pub enum SamplingContents {
    /// One block.
    One(SamplingContent),
    /// A list of blocks.
    Many(Vec<SamplingContent>),
}

impl SamplingContents {
    /// Returns the blocks, for either form.
    pub fn blocks(&self) -> &[SamplingContent] {
        match self {
            Self::One(block) => std::slice::from_ref(block),
            Self::Many(blocks) => blocks,
        }
    }
}

impl From<SamplingContent> for SamplingContents {
    fn from(block: SamplingContent) -> Self {
        Self::One(block)
    }
}

impl From<Vec<SamplingContent>> for SamplingContents {
    fn from(blocks: Vec<SamplingContent>) -> Self {
        Self::Many(blocks)
    }
}

tagged_union! {
    /// One piece of a sampling message.
    SamplingContent by "type" {
        /// Text.
        Text(TextContent) = "text",
        /// An image.
        Image(ImageContent) = "image",
        /// Audio; since 2025-03-26.
        Audio(AudioContent) = "audio",
        /// A tool call of the model; since 2025-11-25.
        ToolUse(ToolUseContent) = "tool_use",
        /// The result of a tool call; since 2025-11-25.
        ToolResult(ToolResultContent) = "tool_result",
    }
}

impl SamplingContent {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }
}

/// A tool call of the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolUseContent {
    /// Id of this tool call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Arguments.
    pub input: JsonObject,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ToolUseContent {
    /// Creates a tool call.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: JsonObject) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            input,
            ..Self::default()
        }
    }
}

setters!(ToolUseContent { with_meta => meta: Extra });

/// The result of a tool call of the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResultContent {
    /// Id of the tool call.
    pub tool_use_id: String,
    /// The content for the model.
    pub content: Vec<ContentBlock>,
    /// The content for programs.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "super::present"
    )]
    pub structured_content: Option<Value>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ToolResultContent {
    /// Creates the result of this tool call.
    pub fn new(tool_use_id: impl Into<String>, content: Vec<ContentBlock>) -> Self {
        Self {
            tool_use_id: tool_use_id.into(),
            content,
            ..Self::default()
        }
    }
}

setters!(ToolResultContent {
    with_structured_content => structured_content: Value,
    with_is_error => is_error: bool,
    with_meta => meta: Extra,
});

/// Result of `sampling/createMessage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageResult {
    /// Role of the model.
    pub role: Role,
    /// Content.
    pub content: SamplingContents,
    /// Name of the model.
    pub model: String,
    /// Why the model stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or another value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CreateMessageResult {
    /// Creates a result.
    pub fn new(role: Role, content: impl Into<SamplingContents>, model: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            model: model.into(),
            stop_reason: None,
            meta: None,
            extra: Extra::new(),
        }
    }
}

setters!(CreateMessageResult { with_stop_reason => stop_reason: String, with_meta => meta: Extra });
