//! Checks the content of input requests and of the host's responses before they are passed on.
//!
//! A schema or a long conversation may take a while to check. Without an interrupt flag, the checks only do what is
//! quick and return `None` if there is more to do. With one, they run to the end, or until the flag is set.

use std::sync::atomic::AtomicBool;

use serde::Deserialize;
use serde_json::Value;

use crate::checks;
use crate::error::RpcError;
use crate::input_method::InputMethod;
use crate::limits::{MAX_INLINE_DECODED_BYTES, MAX_INLINE_SCHEMA_BYTES};
use crate::schema::{CompiledSchema, SchemaError};
use crate::vocabulary::{JsonObject, SamplingContent};
use crate::wire::Raw;

/// Checks the content of an input request: the messages of `sampling/createMessage` (`client/sampling`, message content
/// constraints and error handling), and that a form has a schema in a supported dialect (`basic`, JSON Schema usage).
///
/// # Errors
/// -32602, with the place in the parameters.
pub fn check_input_request_content(
    method: &str,
    params: Option<&Raw>,
    interrupt: Option<&AtomicBool>,
) -> Option<Result<(), RpcError>> {
    let outcome = match InputMethod::parse(method) {
        Some(InputMethod::Sample) => {
            let params = params.cloned().unwrap_or(Raw::EMPTY_OBJECT);
            if interrupt.is_none() && params.as_bytes().len() > MAX_INLINE_DECODED_BYTES {
                return None;
            }
            check_messages(&params)
        }
        Some(InputMethod::Elicit) => match form_schema(params) {
            Some(schema) => match compile_schema(&schema, interrupt)? {
                Err(unusable @ (SchemaError::NotASchema | SchemaError::Dialect(_))) => {
                    Err(schema_error_text(&unusable))
                }
                // A host can show a form with a slightly invalid schema, and the server knows what it means.
                Ok(_) | Err(_) => Ok(()),
            },
            None => Ok(()),
        },
        Some(InputMethod::ListRoots) | None => Ok(()),
    };
    Some(outcome.map_err(RpcError::invalid_params))
}

/// Validates and completes a host's response to an input request.
///
/// The content of an accepted form gets the schema's defaults for missing fields (2025-11-25, `client/elicitation`,
/// requested schema), and has to match the schema, with or without them. If the schema can't be used for validation,
/// that is left to the server. Every other response to an elicitation is sent without content (`schema`, ElicitResult).
/// The blocks of a response to `sampling/createMessage` are checked like those of a message.
///
/// # Errors
/// What is wrong with the response, and where. Nothing that the user entered is repeated.
pub fn prepare_input_response(
    method: &str,
    params: Option<&Raw>,
    answer: &Raw,
    interrupt: Option<&AtomicBool>,
) -> Option<Result<Raw, String>> {
    let input = InputMethod::parse(method);
    let most = match input {
        Some(InputMethod::Sample) => MAX_INLINE_DECODED_BYTES,
        Some(InputMethod::Elicit) => MAX_INLINE_SCHEMA_BYTES,
        Some(InputMethod::ListRoots) | None => return Some(Ok(answer.clone())),
    };
    if interrupt.is_none() && answer.as_bytes().len() > most {
        return None;
    }
    let Ok(members) = answer.decode::<JsonObject>() else {
        return Some(Err("it must be an object".to_owned()));
    };
    if input == Some(InputMethod::Elicit) {
        return prepare_elicit_result(params, answer, members, interrupt);
    }
    let is_model = members.get("model").is_some_and(Value::is_string);
    let outcome = match is_model {
        true => check_message("", &Value::Object(members)),
        false => Err("`model` must be a string".to_owned()),
    };
    Some(outcome.map(|()| answer.clone()))
}

fn prepare_elicit_result(
    params: Option<&Raw>,
    answer: &Raw,
    mut members: JsonObject,
    interrupt: Option<&AtomicBool>,
) -> Option<Result<Raw, String>> {
    let is_accepted = match members.get("action").and_then(Value::as_str) {
        Some("accept") => true,
        Some("decline" | "cancel") => false,
        _ => {
            let reason = "`action` must be accept, decline or cancel";
            return Some(Err(reason.to_owned()));
        }
    };
    if !is_accepted || is_url_mode(params) {
        return Some(Ok(match members.shift_remove("content") {
            Some(_) => serialize_or(&members, answer),
            None => answer.clone(),
        }));
    }
    let content = members.entry("content").or_insert(Value::Null);
    if content.is_null() {
        *content = JsonObject::new().into();
    }
    let Some(content) = content.as_object_mut() else {
        return Some(Err("`content` must be an object".to_owned()));
    };
    let Some(schema) = form_schema(params) else {
        return Some(Ok(serialize_or(&members, answer)));
    };
    let compiled = compile_schema(&schema, interrupt)?;
    let given = content.clone();
    let properties = schema.member("properties");
    for (name, field) in properties.iter().filter_map(Raw::members).flatten() {
        if !content.contains_key(&*name)
            && let Some(default) = field.member("default")
            // Generators write this for a field without a default.
            && !default.is_null()
            && let Ok(default) = default.decode()
        {
            content.insert(name.into_owned(), default);
        }
    }
    let Ok(compiled) = compiled else {
        return Some(Ok(serialize_or(&members, answer)));
    };
    let mut outcome = validate_content(&compiled, content, interrupt)?;
    // A default that breaks the server's own schema is not the user's mistake.
    if outcome.is_err() && *content != given {
        *content = given;
        outcome = validate_content(&compiled, content, interrupt)?;
    }
    Some(outcome.map(|()| serialize_or(&members, answer)))
}

fn validate_content(
    compiled: &CompiledSchema,
    content: &JsonObject,
    interrupt: Option<&AtomicBool>,
) -> Option<Result<(), String>> {
    let content = match Raw::from_serialize(content) {
        Ok(content) => content,
        Err(error) => return Some(Err(error.to_string())),
    };
    let outcome = match interrupt {
        None => compiled.validate_inline(&content)?,
        Some(_) => compiled.validate_until(&content, interrupt),
    };
    Some(
        outcome.map_err(|violation| {
            format!("`content` does not match `requestedSchema`: {violation}")
        }),
    )
}

/// The changed response, or the original if that cannot be written.
fn serialize_or(members: &JsonObject, answer: &Raw) -> Raw {
    Raw::from_serialize(members).unwrap_or_else(|_| answer.clone())
}

fn is_url_mode(params: Option<&Raw>) -> bool {
    let mode = params.and_then(|params| params.member("mode"));
    mode.and_then(|mode| mode.string_value().map(|mode| mode == "url"))
        .unwrap_or_default()
}

/// The schema of a form; `None` for a URL elicitation, or if the server sent none.
fn form_schema(params: Option<&Raw>) -> Option<Raw> {
    let schema = params?.member("requestedSchema")?;
    (!is_url_mode(params) && !schema.is_null()).then_some(schema)
}

/// `None` if compiling it may take a while and there is no interrupt flag.
fn compile_schema(
    schema: &Raw,
    interrupt: Option<&AtomicBool>,
) -> Option<Result<CompiledSchema, SchemaError>> {
    if interrupt.is_none() && schema.as_bytes().len() > MAX_INLINE_SCHEMA_BYTES {
        return None;
    }
    let Ok(decoded) = schema.decode::<Value>() else {
        return Some(Err(SchemaError::NotASchema));
    };
    if !decoded.is_object() {
        return Some(Err(SchemaError::NotASchema));
    }
    match interrupt {
        None => CompiledSchema::compile_inline(&decoded),
        Some(_) => Some(CompiledSchema::compile_until(&decoded, interrupt)),
    }
}

fn schema_error_text(reason: &SchemaError) -> String {
    format!("`requestedSchema`: {reason}")
}

fn check_messages(params: &Raw) -> Result<(), String> {
    let params: JsonObject = params.decode().map_err(|error| error.to_string())?;
    let messages = params.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or("`messages` must be an array")?;
    for (index, message) in messages.iter().enumerate() {
        check_message(&format!("messages[{index}]."), message)?;
    }
    checks::messages(&params)
}

/// Checks role and blocks of a message, or of a sampling response, which has the same shape.
fn check_message(place: &str, message: &Value) -> Result<(), String> {
    if !checks::has_role(message) {
        return Err(format!("`{place}role` must be user or assistant"));
    }
    let block = |place: String, block| {
        let read = SamplingContent::deserialize(block);
        read.map(drop)
            .map_err(|error| format!("`{place}`: {error}"))
    };
    match message.get("content") {
        Some(Value::Array(blocks)) => blocks
            .iter()
            .enumerate()
            .try_for_each(|(index, one)| block(format!("{place}content[{index}]"), one)),
        Some(one @ Value::Object(_)) => block(format!("{place}content"), one),
        _ => Err(format!("`{place}content` must be an object or an array")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(value: &Value) -> Raw {
        Raw::from_trusted(value.to_string())
    }

    fn checked(method: &str, params: &Value) -> Result<(), String> {
        let params = raw(params);
        let here = check_input_request_content(method, Some(&params), None);
        let elsewhere =
            check_input_request_content(method, Some(&params), Some(&AtomicBool::new(false)));
        let outcome = elsewhere.expect("it ends");
        assert!(here.is_none_or(|here| here == outcome));
        outcome.map_err(|error| {
            assert_eq!(error.code, crate::ErrorCode::INVALID_PARAMS);
            error.message.into_owned()
        })
    }

    fn fitted(method: &str, params: &Value, answer: &Value) -> Result<Value, String> {
        let (params, answer) = (raw(params), raw(answer));
        let here = prepare_input_response(method, Some(&params), &answer, None);
        let flag = AtomicBool::new(false);
        let outcome =
            prepare_input_response(method, Some(&params), &answer, Some(&flag)).expect("it ends");
        assert!(here.is_none_or(|here| here == outcome));
        outcome.map(|fitted| fitted.decode().expect("JSON"))
    }

    fn form() -> Value {
        json!({"message": "?", "requestedSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 2},
                "age": {"type": "integer", "default": 18, "maximum": 120},
                "mood": {"type": "string", "enum": ["good", "bad"]},
            },
            "required": ["name", "age"],
        }})
    }

    #[test]
    fn accepted_content_has_to_match_the_schema() {
        let accept = |content: Value| json!({"action": "accept", "content": content});
        let elicit = |answer: &Value| fitted("elicitation/create", &form(), answer);
        assert_eq!(
            elicit(&accept(json!({"name": "Ada", "age": 36}))),
            Ok(accept(json!({"name": "Ada", "age": 36})))
        );
        for (content, named) in [
            (json!({"age": 36}), "name"),
            (json!({"name": "A"}), "/name"),
            (json!({"name": "Ada", "age": "36"}), "/age"),
            (json!({"name": "Ada", "age": 121}), "/age"),
            (json!({"name": "Ada", "mood": "so so"}), "/mood"),
            (json!(["Ada"]), "object"),
            (json!("Ada"), "object"),
            (Value::Null, "name"),
        ] {
            let reason = elicit(&accept(content.clone())).expect_err("it does not match");
            assert!(
                reason.contains("`content`") && reason.contains(named),
                "{content}: {reason}"
            );
            assert!(!reason.contains("so so"), "{reason}");
        }
        assert!(elicit(&json!({"action": "accept"})).is_err());
    }

    #[test]
    fn fields_that_are_left_out_get_the_defaults_of_the_schema_and_no_others() {
        let answer = json!({"action": "accept", "content": {"name": "Ada"}, "_meta": {"x": 1}});
        let sent =
            json!({"action": "accept", "content": {"name": "Ada", "age": 18}, "_meta": {"x": 1}});
        assert_eq!(fitted("elicitation/create", &form(), &answer), Ok(sent));
    }

    #[test]
    fn defaults_that_break_their_schema_are_not_the_users_mistake() {
        let answer = json!({"action": "accept", "content": {"name": "Ada"}});
        for (field, default) in [
            (json!({"type": "string"}), Value::Null),
            (json!({"type": "string", "minLength": 1}), json!("")),
            (
                json!({"type": "string", "enum": ["good", "bad"]}),
                json!(""),
            ),
            (json!({"type": "integer"}), json!("old")),
        ] {
            let mut form = form();
            let schema = &mut form["requestedSchema"];
            schema["required"] = json!(["name"]);
            schema["properties"]["age"] = json!({"type": "integer"});
            schema["properties"]["odd"] = field;
            schema["properties"]["odd"]["default"] = default;
            assert_eq!(
                fitted("elicitation/create", &form, &answer),
                Ok(answer.clone())
            );
            let wrong = json!({"action": "accept", "content": {"name": "A"}});
            fitted("elicitation/create", &form, &wrong).expect_err("the user's mistake");
        }
    }

    #[test]
    fn accepts_forms_with_slightly_invalid_schemas() {
        for odd in [
            json!({"type": "string", "required": true}),
            json!({"type": "string", "description": null, "default": "x"}),
            json!({"type": "text"}),
        ] {
            let request = json!({"message": "?", "requestedSchema": {
                "type": "object", "properties": {"odd": odd}}});
            assert_eq!(checked("elicitation/create", &request), Ok(()), "{odd}");
            let answer = json!({"action": "accept", "content": {"odd": "y"}});
            assert_eq!(
                fitted("elicitation/create", &request, &answer),
                Ok(answer.clone())
            );
        }
    }

    #[test]
    fn content_is_sent_only_for_accepted_forms() {
        let url_elicitation = json!({"message": "?", "mode": "url", "url": "https://a.example/"});
        for (params, action) in [
            (form(), "decline"),
            (form(), "cancel"),
            (url_elicitation.clone(), "accept"),
            (url_elicitation.clone(), "decline"),
            (url_elicitation, "cancel"),
        ] {
            for content in [json!({"name": "Ada", "age": 1}), json!(7), Value::Null] {
                let answer = json!({"action": action, "content": content});
                let sent = fitted("elicitation/create", &params, &answer);
                assert_eq!(sent, Ok(json!({ "action": action })), "{params}");
            }
        }
        for odd in [
            json!({"action": "maybe"}),
            json!({}),
            json!("accept"),
            json!([]),
        ] {
            fitted("elicitation/create", &form(), &odd).expect_err("no answer");
        }
    }

    #[test]
    fn rejects_forms_without_a_usable_schema() {
        for (schema, named) in [
            (json!(["a"]), "object"),
            (json!(true), "object"),
            (
                json!({"$schema": "https://schemas.example/draft-99", "type": "object"}),
                "draft-99",
            ),
        ] {
            let request = json!({"message": "?", "requestedSchema": schema});
            let reason = checked("elicitation/create", &request).expect_err("unusable");
            assert!(
                reason.contains("requestedSchema") && reason.contains(named),
                "{reason}"
            );
        }
        assert_eq!(checked("elicitation/create", &form()), Ok(()));
        let without = json!({"message": "Go on?"});
        assert_eq!(checked("elicitation/create", &without), Ok(()));
    }

    #[test]
    fn messages_are_checked_with_their_roles_and_blocks() {
        let text = json!({"type": "text", "text": "hi"});
        let uses = json!({"type": "tool_use", "id": "a", "name": "t", "input": {}});
        let result = json!({"type": "tool_result", "toolUseId": "a", "content": []});
        let say = |role: &str, content: &Value| json!({"role": role, "content": content});
        let sample = |messages: Value| {
            checked(
                "sampling/createMessage",
                &json!({"messages": messages, "maxTokens": 1}),
            )
        };
        assert_eq!(sample(json!([])), Ok(()));
        let later = json!({"type": "hologram", "data": "x"});
        for fitting in [
            json!([say("user", &text), say("assistant", &json!([text, text]))]),
            json!([say("user", &later)]),
            json!([say("assistant", &uses), say("user", &json!([result]))]),
        ] {
            assert_eq!(sample(fitting.clone()), Ok(()), "{fitting}");
        }
        for (messages, named) in [
            (json!("hi"), "`messages`"),
            (json!(["hi"]), "messages[0].role"),
            (json!([say("system", &text)]), "messages[0].role"),
            (
                json!([say("user", &text), {"role": "user"}]),
                "messages[1].content",
            ),
            (json!([say("user", &json!("hi"))]), "messages[0].content"),
            (
                json!([say("user", &json!([text, {"type": "text"}]))]),
                "messages[0].content[1]",
            ),
            (
                json!([say("user", &json!({"type": "image", "data": "x"}))]),
                "mimeType",
            ),
            (json!([say("assistant", &uses)]), "tool_result"),
            (
                json!([say("assistant", &uses), say("user", &text)]),
                "tool_result",
            ),
            (json!([say("user", &result)]), "tool_use"),
            (
                json!([say("assistant", &uses), say("user", &json!([result, text]))]),
                "nothing else",
            ),
        ] {
            let reason = sample(messages.clone()).expect_err("not to be sampled");
            assert!(reason.contains(named), "{messages}: {reason}");
        }
    }

    #[test]
    fn sampling_responses_are_checked_as_messages() {
        let answer = |role: &str, content: Value| json!({"role": role, "content": content, "model": "m", "x": 1});
        let fit = |answer: &Value| fitted("sampling/createMessage", &json!({}), answer);
        let text = json!({"type": "text", "text": "hi"});
        let uses = json!({"type": "tool_use", "id": "a", "name": "t", "input": {}});
        for fitting in [
            answer("assistant", text.clone()),
            answer("assistant", json!([text, uses, uses])),
        ] {
            assert_eq!(fit(&fitting), Ok(fitting.clone()));
        }
        for (odd, named) in [
            (json!("hi"), "object"),
            (json!({"role": "assistant", "content": text}), "model"),
            (answer("robot", text), "role"),
            (answer("assistant", json!("hi")), "content"),
            (answer("assistant", json!([{"type": "text"}])), "content[0]"),
        ] {
            let reason = fit(&odd).expect_err("no message");
            assert!(reason.contains(named), "{odd}: {reason}");
        }
    }

    #[test]
    fn long_checks_need_an_interrupt_flag() {
        let fields: JsonObject = (0..1_000)
            .map(|number| (format!("field{number}"), json!({"type": "string"})))
            .collect();
        let large = raw(
            &json!({"message": "?", "requestedSchema": {"type": "object", "properties": fields}}),
        );
        assert_eq!(
            check_input_request_content("elicitation/create", Some(&large), None),
            None
        );
        let accept = raw(&json!({"action": "accept", "content": {}}));
        let outcome = prepare_input_response("elicitation/create", Some(&large), &accept, None);
        assert_eq!(outcome, None);
        let text = "x".repeat(MAX_INLINE_DECODED_BYTES);
        let long = raw(
            &json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}),
        );
        assert_eq!(
            check_input_request_content("sampling/createMessage", Some(&long), None),
            None
        );
    }
}
