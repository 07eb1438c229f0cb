//! Tools: their definitions, calls and results.

use mcpline_derive::Members;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::ContentBlock;
use super::implementation::Icon;
use super::macros::{open_words, setters};
use super::{Extra, JsonObject};

/// Returns whether all clients accept a tool name: 1 to 128 ASCII letters, digits, `_`, `-` and `.` (2025-11-25,
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
#[non_exhaustive]
pub struct Tool {
    /// Name for programs.
    pub name: String,
    /// Display name; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments, with `"type": "object"` at its root.
    pub input_schema: Value,
    /// JSON Schema of the structured content; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Annotations; since 2025-03-26.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Icons; since 2025-11-25.
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
    /// Creates a tool with a name and the schema of its arguments.
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
#[non_exhaustive]
pub struct ToolExecution {
    /// Support for tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

setters!(ToolExecution { with_task_support => task_support: TaskSupport });

open_words! {
    /// Whether a tool runs as a task.
    TaskSupport {
        /// The tool cannot run as a task.
        Forbidden = "forbidden",
        /// The tool may run as a task.
        Optional = "optional",
        /// The tool must run as a task.
        Required = "required",
    }
}

/// Hints about the behaviour of a tool. Untrusted unless the server is trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool changes nothing. Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// The tool may perform destructive updates. Default: `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling the tool again with the same arguments has no further effect. Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// The tool interacts with external entities. Default: `true`.
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
#[non_exhaustive]
pub struct CallToolParams {
    /// The tool.
    pub name: String,
    /// Arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<JsonObject>,
    /// Responses to input requests of the server; since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<JsonObject>,
    /// State that the server sent with its input requests; since 2026-07-28.
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
    /// Creates a call without arguments.
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

/// Result of `tools/call`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// Type of the result; since 2026-07-28.
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
    /// Whether the call failed; `content` has the reason.
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
    /// Creates a result with these content blocks.
    pub fn new(content: Vec<ContentBlock>) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }

    /// Returns the text of all text blocks, one to a line.
    pub fn text(&self) -> String {
        let mut texts = self.content.iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        let mut joined = texts.next().unwrap_or_default().to_owned();
        for text in texts {
            joined.push('\n');
            joined.push_str(text);
        }
        joined
    }

    /// Decodes the structured content.
    ///
    /// Before 2026-07-28 it is an object, and servers wrap other values: `{"result": [1, 2]}`. If the whole content does not have
    /// this type, the wrapped value is decoded.
    ///
    /// # Errors
    ///
    /// If there is none, or it does not have this type.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        let Some(content) = &self.structured_content else {
            return Err(serde::de::Error::custom(
                "the result has no structured content",
            ));
        };
        let Some(wrapped) = wrapped_value(content) else {
            return T::deserialize(content);
        };
        if self.is_marked_as_wrapped() {
            return T::deserialize(wrapped).or_else(|_| T::deserialize(content));
        }
        T::deserialize(content).or_else(|error| T::deserialize(wrapped).map_err(|_| error))
    }

    /// Whether the server says that it has wrapped the structured content, as those of FastMCP do.
    fn is_marked_as_wrapped(&self) -> bool {
        let mark = self.meta.as_ref().and_then(|meta| meta.get("fastmcp"));
        mark.and_then(|mark| mark.get("wrap_result")) == Some(&Value::Bool(true))
    }

    /// Creates a result with an error message for the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::text(text)],
            is_error: Some(true),
            ..Self::default()
        }
    }
}

/// Returns the only member of an object, `result`, in which servers wrap a value that is no object.
fn wrapped_value(content: &Value) -> Option<&Value> {
    let members = content.as_object()?;
    members.get("result").filter(|_| members.len() == 1)
}

setters!(CallToolResult {
    with_structured_content => structured_content: Value,
    with_is_error => is_error: bool,
    with_meta => meta: Extra,
});

open_words! {
    /// Type of a result (2026-07-28, "Base protocol", ResultType). A missing one means complete.
    ResultType {
        /// The request is complete.
        Complete = "complete",
        /// The request requires input and must be sent again with the responses.
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
