//! Completion of prompt arguments and of template variables.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Extra;
use super::shape::{setters, tagged_union};
use super::tools::ResultType;

/// The parameters of `completion/complete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteParams {
    /// What has the argument.
    #[serde(rename = "ref")]
    pub reference: Reference,
    /// The argument as far as it is typed.
    pub argument: CompleteArgument,
    /// What is known already; since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CompleteContext>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

tagged_union! {
    /// What an argument to be completed belongs to.
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
pub struct PromptReference {
    /// Its name for programs.
    pub name: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A resource template, or a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceReference {
    /// The template.
    pub uri: String,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An argument as far as it is typed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteArgument {
    /// Its name.
    pub name: String,
    /// What is typed.
    pub value: String,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Arguments that are known already.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteContext {
    /// The arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The result of `completion/complete`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteResult {
    /// The kind of result; since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The candidates.
    pub completion: Completion,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Candidates for an argument.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// The best, at most 100.
    pub values: Vec<String>,
    /// How many there are.
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
    /// How many values one result may have.
    pub const MAX_VALUES: usize = 100;

    /// These candidates, cut to what the protocol allows, with the count of all of them.
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
