//! Completion of prompt arguments and of template variables.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Extra;
use super::macros::{setters, tagged_union};
use super::tools::ResultType;

/// The parameters of `completion/complete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteParams {
    /// The prompt or resource template with the argument.
    #[serde(rename = "ref")]
    pub reference: Reference,
    /// The argument, with the text typed so far.
    pub argument: CompleteArgument,
    /// Arguments that are already known; since 2025-06-18. Clients leave them out for servers of older revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CompleteContext>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CompleteParams {
    /// Creates parameters for this argument.
    pub fn new(reference: impl Into<Reference>, argument: CompleteArgument) -> Self {
        Self {
            reference: reference.into(),
            argument,
            context: None,
            meta: None,
            extra: Extra::new(),
        }
    }
}

setters!(CompleteParams { with_context => context: CompleteContext, with_meta => meta: Extra });

tagged_union! {
    /// The prompt or resource template that an argument belongs to.
    Reference by "type" {
        /// A prompt.
        Prompt(PromptReference) = "ref/prompt",
        /// A resource template.
        Resource(ResourceReference) = "ref/resource",
    }
}

/// A prompt, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptReference {
    /// Name for programs.
    pub name: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl PromptReference {
    /// Creates a reference to a prompt.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

setters!(PromptReference { with_title => title: String });

/// A resource template, or a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceReference {
    /// URI template.
    pub uri: String,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ResourceReference {
    /// Creates a reference to a resource or template.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            ..Self::default()
        }
    }
}

/// An argument, with the text typed so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteArgument {
    /// Name of the argument.
    pub name: String,
    /// Text typed so far.
    pub value: String,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CompleteArgument {
    /// Creates an argument with the text typed so far.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            ..Self::default()
        }
    }
}

/// Arguments that are already known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteContext {
    /// The arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CompleteContext {
    /// Creates a context with these arguments.
    pub fn new(arguments: BTreeMap<String, String>) -> Self {
        Self {
            arguments: Some(arguments),
            ..Self::default()
        }
    }
}

/// The result of `completion/complete`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteResult {
    /// Type of the result; since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Completion values.
    pub completion: Completion,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CompleteResult {
    /// Creates a result.
    pub fn new(completion: Completion) -> Self {
        Self {
            completion,
            ..Self::default()
        }
    }
}

setters!(CompleteResult { with_meta => meta: Extra });

/// Completion values of an argument.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// The best values, at most 100.
    pub values: Vec<String>,
    /// Total number of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more than `values`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Completion {
    /// Maximum number of values in a result.
    pub const MAX_VALUES: usize = 100;

    /// Creates a completion with the first 100 values and the number of all.
    pub fn new(mut values: Vec<String>) -> Self {
        let total = values.len();
        values.truncate(Self::MAX_VALUES);
        Self {
            has_more: Some(total > values.len()),
            total: Some(total as u64),
            values,
            extra: Extra::new(),
        }
    }
}

setters!(Completion { with_total => total: u64, with_has_more => has_more: bool });
