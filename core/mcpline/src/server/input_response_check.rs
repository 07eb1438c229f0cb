//! Checks whether a client's response matches its input request.

use mcpline_protocol::limits::MAX_ANSWER_STEPS;
use mcpline_protocol::schema::{CompiledSchema, StepBudget};
use mcpline_protocol::wire::{JsonKind, Raw};
use serde_json::Value;

use super::input_requests::InputRequestMethod;

/// Checks a response against its input request: its shape, and the content of an accepted elicitation against the
/// requested schema, within [`MAX_ANSWER_STEPS`] steps.
///
/// # Errors
///
/// A description of the violation.
pub(super) fn check(
    method: &InputRequestMethod,
    params: Option<&Raw>,
    answer: &Raw,
) -> Result<(), String> {
    check_within(method, params, answer, &mut budget())
}

/// Returns the budget for checking the responses of one message.
pub(super) fn budget() -> StepBudget<'static> {
    StepBudget::new(MAX_ANSWER_STEPS, None)
}

/// Like [`check`], with a budget that several responses share.
///
/// # Errors
///
/// A description of the violation.
pub(super) fn check_within(
    method: &InputRequestMethod,
    params: Option<&Raw>,
    answer: &Raw,
    budget: &mut StepBudget<'_>,
) -> Result<(), String> {
    check_shape(method, answer)?;
    if *method != InputRequestMethod::Elicit || action(answer).as_deref() != Some("accept") {
        return Ok(());
    }
    let Some(schema) = params.and_then(|params| params.member("requestedSchema")) else {
        return Ok(());
    };
    let schema: Value = schema.decode().map_err(|error| error.to_string())?;
    let content = answer.member("content").unwrap_or(Raw::EMPTY_OBJECT);
    let schema =
        CompiledSchema::compile_within(&schema, budget).map_err(|error| error.to_string())?;
    schema
        .validate_within(&content, budget)
        .map_err(|violation| format!("content: {violation}"))
}

/// Checks what does not depend on the parameters of the input request.
///
/// # Errors
///
/// A description of the violation.
pub(super) fn check_shape(method: &InputRequestMethod, answer: &Raw) -> Result<(), String> {
    if answer.kind() != JsonKind::Object {
        return Err("must be an object".into());
    }
    let member = |name: &str, kind: JsonKind| match answer.member(name) {
        Some(value) if value.kind() == kind => Ok(()),
        Some(_) | None => Err(format!("{name} must be {}", named(kind))),
    };
    match method {
        InputRequestMethod::Elicit => match action(answer).as_deref() {
            Some("accept" | "decline" | "cancel") => match answer.member("content") {
                Some(content) if !matches!(content.kind(), JsonKind::Object | JsonKind::Null) => {
                    Err("content must be an object with the values of the form".into())
                }
                _ => Ok(()),
            },
            _ => Err("action must be accept, decline or cancel".into()),
        },
        InputRequestMethod::Sample => {
            let role = answer.member("role");
            let role = role.as_ref().and_then(Raw::string_value);
            if !matches!(role.as_deref(), Some("user" | "assistant")) {
                return Err("role must be user or assistant".into());
            }
            member("model", JsonKind::String)?;
            match answer.member("content").map(|content| content.kind()) {
                Some(JsonKind::Object | JsonKind::Array) => Ok(()),
                _ => Err("`content` of the sampling response must be an object or an array".into()),
            }
        }
        InputRequestMethod::ListRoots => member("roots", JsonKind::Array),
        InputRequestMethod::Custom(_) => Ok(()),
    }
}

fn action(answer: &Raw) -> Option<String> {
    Some(answer.member("action")?.string_value()?.into_owned())
}

fn named(kind: JsonKind) -> &'static str {
    match kind {
        JsonKind::Object => "an object",
        JsonKind::Array => "an array",
        JsonKind::String => "a string",
        JsonKind::Number => "a number",
        JsonKind::Bool => "a boolean",
        JsonKind::Null => "null",
    }
}
