//! Tools: their definitions, calls and results.

use mcpline_derive::Members;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::ContentBlock;
use super::implementation::Icon;
use super::shape::{open_words, setters};
use super::{Extra, JsonObject};

/// Whether a tool's name is one that every client takes: 1 to 128 ASCII letters, digits, `_`, `-` and `.` (2025-11-25,
/// `server/tools`, tool names).
pub fn is_recommended_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// The definition of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[members(start = Tool::new("", Value::Null))]
pub struct Tool {
    /// Its name for programs.
    pub name: String,
    /// Its name for people; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments, with `"type": "object"` at its root.
    pub input_schema: Value,
    /// The JSON Schema of its structured content; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// How it behaves; since 2025-03-26.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// How it looks; since 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Whether it may run as a task; 2025-11-25 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Metadata; since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Tool {
    /// A tool of that name whose arguments fit `input_schema`.
    pub fn new(name: impl Into<String>, input_schema: Value) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema,
            output_schema: None,
            annotations: None,
            icons: None,
            execution: None,
            meta: None,
            extra: Extra::new(),
        }
    }
}

setters!(Tool {
    with_title => title: String,
    with_description => description: String,
    with_output_schema => output_schema: Value,
    with_annotations => annotations: ToolAnnotations,
    with_icons => icons: Vec<Icon>,
    with_meta => meta: Extra,
});

/// Whether a tool may run as a task; 2025-11-25 only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecution {
    /// Whether it may, must or cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

open_words! {
    /// Whether a tool runs as a task.
    TaskSupport {
        /// It cannot.
        Forbidden = "forbidden",
        /// It may.
        Optional = "optional",
        /// It must.
        Required = "required",
    }
}

/// Hints about what a tool does. They are not to be trusted unless the server is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy something. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it again with the same arguments changes nothing more. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It deals with an open world. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

setters!(ToolAnnotations {
    with_title => title: String,
    with_read_only_hint => read_only_hint: bool,
    with_destructive_hint => destructive_hint: bool,
    with_idempotent_hint => idempotent_hint: bool,
    with_open_world_hint => open_world_hint: bool,
});

/// The parameters of `tools/call`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolParams {
    /// The tool.
    pub name: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<JsonObject>,
    /// Answers to what the server asked for; since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<JsonObject>,
    /// What the server gave along with its questions; since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CallToolParams {
    /// A call without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

setters!(CallToolParams {
    with_arguments => arguments: JsonObject,
    with_input_responses => input_responses: JsonObject,
    with_request_state => request_state: String,
    with_meta => meta: Extra,
});

/// What a tool returned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// The kind of result; since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The content for the model.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// The content for programs: an object since 2025-06-18, any value since 2026-07-28.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "super::present"
    )]
    pub structured_content: Option<Value>,
    /// The call failed, and `content` tells why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CallToolResult {
    /// A result of these blocks.
    pub fn new(content: Vec<ContentBlock>) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }

    /// A failure that the model can read.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::text(text)],
            is_error: Some(true),
            ..Self::default()
        }
    }
}

setters!(CallToolResult {
    with_structured_content => structured_content: Value,
    with_is_error => is_error: bool,
    with_meta => meta: Extra,
});

open_words! {
    /// The kind of a result (2026-07-28, "Base protocol", ResultType). An absent one means complete.
    ResultType {
        /// The request is done.
        Complete = "complete",
        /// The request needs answers and must be sent again.
        InputRequired = "input_required",
    }
}

#[cfg(test)]
mod tests {
    use super::is_recommended_name;

    #[test]
    fn recommended_names_are_short_and_plain() {
        for name in ["a", "get_user", "files.read-all", &"x".repeat(128)] {
            assert!(is_recommended_name(name), "{name}");
        }
        for name in ["", "two words", "a/b", "größe", &"x".repeat(129)] {
            assert!(!is_recommended_name(name), "{name}");
        }
    }
}
