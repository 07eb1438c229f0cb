//! Adapts input requests, elicitation and sampling, to the revision of a client.

use serde_json::Value;

use super::content;
use crate::checks::implies_strings;
use crate::revision::{Revision, RevisionFeatures};
use crate::vocabulary::JsonObject;

/// An input request that the client's revision cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InexpressibleInputRequest {
    /// The revision has no elicitation.
    #[error("the client's protocol revision has no elicitation")]
    Elicitation,
    /// The revision cannot send a user to a URL.
    #[error("the client's protocol revision has no URL elicitation")]
    Url,
    /// The revision has no forms with multiple choice.
    #[error("the client's protocol revision has no multiple choice in forms")]
    MultipleChoice,
    /// The revision has no tools in sampling.
    #[error(
        "the client's protocol revision has no tools in sampling: leave out `tools`, `toolChoice` and content of tool calls"
    )]
    SamplingTools,
    /// The revision defines the method of a custom request, which other revisions leave to extensions.
    #[error("the client's protocol revision defines this method, so it cannot be a custom request")]
    DefinedMethod,
    /// The revision requests input in the result of a request, whose retry carries the responses, and this request has
    /// a parameter of that name.
    #[error("handlers of `tasks/update` cannot ask for input on the client's protocol revision")]
    OwnInputResponses,
}

/// Rewrites the parameters of `elicitation/create` as a client of `revision` reads them.
///
/// A choice of strings gets its type if its author left it out, and a constant becomes a choice of one: forms have no
/// `const`, and a client would show a field for any text. Before 2025-11-25 the mode is left out, titled choices are
/// written with `enumNames`, and default values of all but booleans are left out. Anything that does not have the shape
/// of an input request stays unchanged.
///
/// # Errors
/// When the revision cannot express the input request.
pub fn elicit_params(
    params: &mut JsonObject,
    revision: Revision,
) -> Result<(), InexpressibleInputRequest> {
    let features = revision.features();
    if !features.elicitation {
        return Err(InexpressibleInputRequest::Elicitation);
    }
    if !features.url_elicitation {
        match params.get("mode").and_then(Value::as_str) {
            Some("url") => return Err(InexpressibleInputRequest::Url),
            Some("form") => drop(params.shift_remove("mode")),
            _ => {}
        }
    }
    if !features.elicitation_complete {
        params.shift_remove("elicitationId");
    }
    let fields = params
        .get_mut("requestedSchema")
        .and_then(|schema| schema.get_mut("properties"))
        .and_then(Value::as_object_mut);
    for schema in fields.into_iter().flat_map(JsonObject::values_mut) {
        if let Value::Object(schema) = schema {
            adapt_field(schema, features)?;
        }
    }
    Ok(())
}

fn adapt_field(
    field: &mut JsonObject,
    features: &RevisionFeatures,
) -> Result<(), InexpressibleInputRequest> {
    add_type(field);
    if field.get("const").is_some_and(Value::is_string) && !field.contains_key("oneOf") {
        let constant = field.shift_remove("const").into_iter().collect();
        field.insert("enum".to_owned(), constant);
        // They named the choices that the constant replaces.
        field.shift_remove("enumNames");
    }
    if let Some(Value::Object(items)) = field.get_mut("items") {
        add_type(items);
    }
    if !features.elicitation_enums {
        if field.get("items").is_some_and(|items| !items.is_null()) {
            return Err(InexpressibleInputRequest::MultipleChoice);
        }
        let choices = field.get("oneOf").and_then(Value::as_array);
        let all = |name| {
            let words = choices?.iter().map(|choice| choice.get(name).cloned());
            let words = words.map(|word| word.filter(Value::is_string));
            words.collect::<Option<Value>>()
        };
        if let (Some(values), Some(titles)) = (all("const"), all("title")) {
            field.shift_remove("oneOf");
            field.insert("enum".to_owned(), values);
            field.insert("enumNames".to_owned(), titles);
        }
    }
    let is_boolean = field.get("type").and_then(Value::as_str) == Some("boolean");
    if !features.elicitation_defaults && !is_boolean {
        field.shift_remove("default");
    }
    Ok(())
}

fn add_type(schema: &mut JsonObject) {
    if implies_strings(schema) {
        schema.shift_insert(0, "type".to_owned(), "string".into());
    }
}

/// Rewrites the parameters of `sampling/createMessage` as a client of `revision` reads them.
///
/// Before 2025-11-25 a message has one block, so a list becomes several messages of the same role; before 2025-03-26
/// audio becomes a note in text. Anything that does not have the shape of an input request stays unchanged.
///
/// # Errors
/// When the request has tools and the revision has none in sampling.
pub fn create_message_params(
    params: &mut JsonObject,
    revision: Revision,
) -> Result<(), InexpressibleInputRequest> {
    let features = revision.features();
    if features.sampling_tools {
        return Ok(());
    }
    params.shift_remove("toolChoice");
    let tools = params.shift_remove("tools");
    if tools.is_some_and(|tools| tools.as_array().is_some_and(|tools| !tools.is_empty())) {
        return Err(InexpressibleInputRequest::SamplingTools);
    }
    let Some(Value::Array(messages)) = params.get_mut("messages") else {
        return Ok(());
    };
    for mut message in std::mem::take(messages) {
        let blocks = match message.get_mut("content").map(Value::take) {
            Some(Value::Array(blocks)) => blocks,
            Some(block) => vec![block],
            None => {
                messages.push(message);
                continue;
            }
        };
        for mut block in blocks {
            match block.get("type").and_then(Value::as_str) {
                Some("tool_use" | "tool_result") => {
                    return Err(InexpressibleInputRequest::SamplingTools);
                }
                Some("audio") => content::adapt_block(&mut block, features),
                _ => {}
            }
            let mut message = message.clone();
            message["content"] = block;
            messages.push(message);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_json::json;

    use super::*;
    use crate::vocabulary::{
        AudioContent, Choice, CreateMessageParams, ElicitMode, ElicitParams, FieldSchema,
        FormSchema, Role, SamplingContent, SamplingMessage, Tool, ToolUseContent,
    };

    fn form() -> ElicitParams {
        let schema = FormSchema::new()
            .with_required("name", FieldSchema::string().with_default("x"))
            .with_required("agree", FieldSchema::boolean().with_default(true))
            .with_optional(
                "color",
                FieldSchema::titled_choice(vec![Choice::new("r", "Red")]),
            );
        ElicitParams::form("?", schema).with_mode(ElicitMode::Form)
    }

    fn written(params: &impl Serialize) -> JsonObject {
        match serde_json::to_value(params) {
            Ok(Value::Object(object)) => object,
            other => panic!("no object: {other:?}"),
        }
    }

    fn elicit(
        params: &impl Serialize,
        revision: Revision,
    ) -> Result<Value, InexpressibleInputRequest> {
        let mut params = written(params);
        elicit_params(&mut params, revision).map(|()| params.into())
    }

    fn sample(
        params: &impl Serialize,
        revision: Revision,
    ) -> Result<Value, InexpressibleInputRequest> {
        let mut params = written(params);
        create_message_params(&mut params, revision).map(|()| params.into())
    }

    #[test]
    fn form_is_adapted_to_the_revision() {
        assert_eq!(
            elicit(&form(), Revision::V2025_06_18),
            Ok(json!({
                "message": "?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "agree": {"type": "boolean", "default": true},
                        "color": {"type": "string", "enum": ["r"], "enumNames": ["Red"]},
                    },
                    "required": ["name", "agree"],
                },
            }))
        );
        let as_it_is = Ok(Value::Object(written(&form())));
        assert_eq!(elicit(&form(), Revision::V2025_11_25), as_it_is);
    }

    #[test]
    fn choices_of_strings_get_their_type_and_constants_become_choices() {
        let form = |fields: Value| json!({"requestedSchema": {"properties": fields}});
        let adapted = |fields: Value| elicit(&form(fields), Revision::V2025_11_25);
        assert_eq!(
            adapted(json!({
                "a": {"enum": ["x"], "description": "A"},
                "b": {"const": "x"},
                "e": {"type": "string", "const": "x", "title": "E"},
                "f": {"type": "string", "const": "x", "enum": ["x", "y"], "enumNames": ["X", "Y"]},
                "c": {"oneOf": [{"const": "x", "title": "X"}]},
                "d": {"type": "array", "items": {"enum": ["x"]}},
            })),
            Ok(form(json!({
                "a": {"type": "string", "enum": ["x"], "description": "A"},
                "b": {"type": "string", "enum": ["x"]},
                "e": {"type": "string", "title": "E", "enum": ["x"]},
                "f": {"type": "string", "enum": ["x"]},
                "c": {"type": "string", "oneOf": [{"const": "x", "title": "X"}]},
                "d": {"type": "array", "items": {"type": "string", "enum": ["x"]}},
            })))
        );
        let others =
            json!({"a": {"enum": [1]}, "b": {"const": 1}, "c": {"type": "number"}, "d": {}});
        assert_eq!(adapted(others.clone()), Ok(form(others)));
    }

    #[test]
    fn rejects_requests_that_a_revision_cannot_express() {
        let url = ElicitParams::url("?", "https://example.com").with_elicitation_id("1");
        let many = FormSchema::new().with_optional("m", FieldSchema::multiple_choice(["a"]));
        let many = ElicitParams::form("?", many);
        assert_eq!(
            elicit(&form(), Revision::V2025_03_26),
            Err(InexpressibleInputRequest::Elicitation)
        );
        assert_eq!(
            elicit(&url, Revision::V2025_06_18),
            Err(InexpressibleInputRequest::Url)
        );
        assert_eq!(
            elicit(&many, Revision::V2025_06_18),
            Err(InexpressibleInputRequest::MultipleChoice)
        );
        let id = |revision| elicit(&url, revision).expect("has URLs")["elicitationId"].clone();
        assert_eq!(id(Revision::V2025_11_25), "1");
        assert_eq!(id(Revision::V2026_07_28), Value::Null);
    }

    #[test]
    fn leaves_other_values_unchanged() {
        for odd in [
            json!({}),
            json!({"requestedSchema": {"properties": {"a": 1, "b": {"oneOf": [{"const": 1}]}}}}),
            json!({"messages": [1, {"role": "user"}, {"content": "text"}]}),
        ] {
            assert_eq!(elicit(&odd, Revision::V2025_06_18), Ok(odd.clone()));
            assert_eq!(sample(&odd, Revision::V2024_11_05), Ok(odd));
        }
    }

    #[test]
    fn a_list_of_blocks_becomes_messages_of_one_block() {
        let blocks = vec![
            SamplingContent::text("a"),
            SamplingContent::Audio(AudioContent::new("", "audio/x")),
        ];
        let params = CreateMessageParams::new(vec![SamplingMessage::new(Role::User, blocks)], 10);
        assert_eq!(
            sample(&params, Revision::V2024_11_05),
            Ok(json!({
                "messages": [
                    {"role": "user", "content": {"type": "text", "text": "a"}},
                    {"role": "user", "content": {"type": "text", "text": "[audio left out: audio/x]"}},
                ],
                "maxTokens": 10,
            }))
        );
        let as_it_is = Ok(Value::Object(written(&params)));
        assert_eq!(sample(&params, Revision::V2025_11_25), as_it_is);
    }

    #[test]
    fn sampling_with_tools_needs_a_revision_that_has_it() {
        let with_tools =
            CreateMessageParams::new(vec![], 1).with_tools(vec![Tool::new("t", json!({}))]);
        let used = SamplingContent::ToolUse(ToolUseContent::default());
        let with_use =
            CreateMessageParams::new(vec![SamplingMessage::new(Role::Assistant, used)], 1);
        for params in [with_tools, with_use] {
            assert_eq!(
                sample(&params, Revision::V2025_06_18),
                Err(InexpressibleInputRequest::SamplingTools)
            );
            assert!(sample(&params, Revision::V2025_11_25).is_ok());
        }
    }
}
