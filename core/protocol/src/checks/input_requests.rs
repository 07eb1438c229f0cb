//! Checks input requests: `elicitation/create` and `sampling/createMessage`.

use fluent_uri::Uri;
use serde_json::Value;

use crate::input_method::InputMethod;
use crate::vocabulary::JsonObject;
use crate::wire::Raw;

use super::schemas;
use super::uris;

/// Whether a URL elicitation's URL uses a connection that others can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlSafety {
    /// `https`, or a URL of this machine, where servers are developed.
    Secure,
    /// Anything else: URLs should be `https` outside of development (2025-11-25, `client/elicitation`, URL mode).
    Insecure,
}

/// Checks the parameters of an input request, as its author wrote them. `Some` for a URL elicitation, with the safety
/// of its URL.
///
/// # Errors
/// Anything that a client could reject; the message names the place:
///
/// - of a form, a schema that is not a flat object of strings, numbers, booleans and choices (2025-06-18,
///   `client/elicitation`, requested schema);
/// - of a URL elicitation, an invalid URL;
/// - of sampling, another role than `user` and `assistant`, results of tools that don't answer the uses of tools before them
///   (2025-11-25, `client/sampling`, message content constraints), a priority that isn't between 0 and 1.
pub fn input_request(method: &str, params: Option<&Raw>) -> Result<Option<UrlSafety>, String> {
    let input = InputMethod::parse(method);
    let checks = matches!(input, Some(InputMethod::Elicit | InputMethod::Sample));
    let params = match params {
        None if !checks => return Ok(None),
        None => return Err("the parameters are missing".to_owned()),
        Some(params) => params.decode::<JsonObject>(),
    };
    let params = params.map_err(|_| "the parameters must be an object".to_owned())?;
    match input {
        Some(InputMethod::Elicit) => check_elicitation(&params),
        Some(InputMethod::Sample) => check_sampling(&params).map(|()| None),
        Some(InputMethod::ListRoots) | None => Ok(None),
    }
}

fn check_elicitation(params: &JsonObject) -> Result<Option<UrlSafety>, String> {
    match params.get("mode") {
        None | Some(Value::Null) => check_form(params).map(|()| None),
        Some(Value::String(mode)) if mode == "form" => check_form(params).map(|()| None),
        Some(Value::String(mode)) if mode == "url" => {
            let url = params.get("url").and_then(Value::as_str);
            elicitation_url(url.ok_or("url: must be a string")?).map(Some)
        }
        Some(mode) => Err(format!("mode: must be `form` or `url`, not {mode}")),
    }
}

/// Checks the URL of a URL elicitation.
///
/// # Errors
/// If it is not a valid URL.
pub fn elicitation_url(url: &str) -> Result<UrlSafety, String> {
    uris::uri(url).map_err(|reason| format!("url: {reason}"))?;
    let parsed = Uri::parse(url).map_err(|error| format!("url: {error}"))?;
    let scheme = parsed.scheme().as_str().to_ascii_lowercase();
    let host = parsed.authority().map(|authority| authority.host());
    let host = host.unwrap_or_default();
    if matches!(&*scheme, "https" | "http") && host.is_empty() {
        return Err("url: a URL of the web needs a host".to_owned());
    }
    Ok(match &*scheme {
        "https" => UrlSafety::Secure,
        "http" if crate::is_loopback_host(host) => UrlSafety::Secure,
        _ => UrlSafety::Insecure,
    })
}

fn check_form(params: &JsonObject) -> Result<(), String> {
    let at = "requestedSchema";
    let schema = params.get(at).and_then(Value::as_object);
    let schema = schema.ok_or_else(|| format!("{at}: must be the schema of an object"))?;
    schemas::author_members(schema).map_err(|reason| format!("{at}: {reason}"))?;
    if schema.get("type") != Some(&Value::from("object")) {
        return Err(format!("{at}: its `type` must be `object`"));
    }
    let fields = schema.get("properties").and_then(Value::as_object);
    let fields = fields.ok_or_else(|| format!("{at}: its `properties` must be an object"))?;
    for (name, schema) in fields {
        check_field(schema).map_err(|reason| format!("{at}.properties.{name}: {reason}"))?;
    }
    Ok(())
}

fn is_choice(of: Option<&Value>) -> bool {
    let strings = of.and_then(Value::as_array);
    strings.is_some_and(|of| of.iter().all(Value::is_string))
}

fn is_titled(of: Option<&Value>) -> bool {
    let choices = of.and_then(Value::as_array);
    choices.is_some_and(|of| of.iter().all(|choice| choice["const"].is_string()))
}

/// Whether there is a list of choices, and it is empty.
fn is_empty(of: Option<&Value>) -> bool {
    of.and_then(Value::as_array).is_some_and(Vec::is_empty)
}

/// Whether a schema without a type allows only certain strings. A form needs the type all the same (2025-06-18,
/// `schema`, EnumSchema), but some schema generators leave it out.
pub(crate) fn implies_strings(schema: &JsonObject) -> bool {
    let (choice, titled) = (schema.get("enum"), schema.get("oneOf"));
    let is_constant = schema.get("const").is_some_and(Value::is_string);
    !schema.contains_key("type") && (is_choice(choice) || is_titled(titled) || is_constant)
}

fn check_field(schema: &Value) -> Result<(), &'static str> {
    const KINDS: &str =
        "a field of a form is a string, a number, an integer, a boolean, or a choice of strings";
    let implied = schema.as_object().filter(|schema| implies_strings(schema));
    match implied.map_or(schema["type"].as_str(), |_| Some("string")) {
        Some("string") => {
            let (choice, titled) = (schema.get("enum"), schema.get("oneOf"));
            if choice.is_some() && !is_choice(choice) {
                return Err("`enum` must be an array of strings");
            }
            if titled.is_some() && !is_titled(titled) {
                return Err("`oneOf` must be an array of choices with `const` and `title`");
            }
            if schema.get("const").is_some_and(|of| !of.is_string()) {
                return Err("`const` must be a string");
            }
            match (is_empty(choice), is_empty(titled)) {
                (true, _) => Err("`enum` must have at least one value"),
                (_, true) => Err("`oneOf` must have at least one choice"),
                _ => Ok(()),
            }
        }
        Some("number" | "integer" | "boolean") => Ok(()),
        Some("array") => {
            let items = &schema["items"];
            let (choice, titled) = (items.get("enum"), items.get("anyOf"));
            if !is_choice(choice) && !is_titled(titled) {
                return Err("the `items` of a multiple choice must have `enum` or `anyOf`");
            }
            match is_empty(choice) || is_empty(titled) {
                true => Err("the `enum` or `anyOf` of `items` must have at least one choice"),
                false => Ok(()),
            }
        }
        Some("object") => Err("a form is flat: its fields can't be objects"),
        _ => Err(KINDS),
    }
}

fn check_sampling(params: &JsonObject) -> Result<(), String> {
    if let Some(Value::Object(preferences)) = params.get("modelPreferences") {
        for name in ["costPriority", "speedPriority", "intelligencePriority"] {
            let given = preferences.get(name).filter(|given| !given.is_null());
            let fits = |given: &Value| {
                given
                    .as_f64()
                    .is_some_and(|given| (0.0..=1.0).contains(&given))
            };
            if let Some(given) = given.filter(|given| !fits(given)) {
                return Err(format!(
                    "modelPreferences.{name}: must be a number between 0 and 1, not {given}"
                ));
            }
        }
    }
    messages(params)
}

/// Whether a message has the role of the user or the assistant: there are no other roles.
pub(crate) fn has_role(message: &Value) -> bool {
    let role = message.get("role").and_then(Value::as_str);
    matches!(role, Some("user" | "assistant"))
}

/// Checks roles, and tool uses with their results (2025-11-25, `client/sampling`, message content constraints).
/// Messages of another shape are skipped.
pub(crate) fn messages(params: &JsonObject) -> Result<(), String> {
    let messages = params.get("messages").and_then(Value::as_array);
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.into_iter().flatten().enumerate() {
        let wrong = |reason: &str| Err(format!("messages[{index}]: {reason}"));
        let role = &message["role"];
        if !has_role(message) {
            return wrong("its `role` must be `user` or `assistant`");
        }
        let content = message.get("content").unwrap_or(&Value::Null);
        let blocks = content
            .as_array()
            .map_or(std::slice::from_ref(content), Vec::as_slice);
        let of_kind = |kind: &'static str, id: &'static str| {
            let these = blocks.iter().filter(move |block| block["type"] == kind);
            these.map(move |block| block[id].as_str().unwrap_or_default())
        };
        let mut results: Vec<&str> = of_kind("tool_result", "toolUseId").collect();
        let uses: Vec<&str> = of_kind("tool_use", "id").collect();
        if !results.is_empty() && results.len() < blocks.len() {
            return wrong("a message with tool_result blocks must have nothing else");
        }
        if !results.is_empty() && role != "user" {
            return wrong("tool_result blocks must be in user messages");
        }
        if !uses.is_empty() && role != "assistant" {
            return wrong("tool_use blocks must be in assistant messages");
        }
        results.sort_unstable();
        open.sort_unstable();
        if results != open {
            return wrong(UNMATCHED_TOOL_USE);
        }
        open = uses;
    }
    match open.is_empty() {
        true => Ok(()),
        false => Err(format!("messages: {UNMATCHED_TOOL_USE}")),
    }
}

const UNMATCHED_TOOL_USE: &str =
    "each tool_use must be followed by its tool_result in the next message, and by nothing else";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(method: &str, params: &Value) -> Result<Option<UrlSafety>, String> {
        input_request(method, Some(&Raw::from_serialize(params).expect("JSON")))
    }

    fn elicit(schema: &Value) -> Result<Option<UrlSafety>, String> {
        checked(
            "elicitation/create",
            &json!({"message": "?", "requestedSchema": schema}),
        )
    }

    #[test]
    fn a_form_is_flat() {
        let fields = json!({
            "a": {"type": "string", "format": "email", "pattern": "@"},
            "b": {"type": "integer", "minimum": 1, "default": 2},
            "c": {"type": "boolean"},
            "d": {"type": "string", "enum": ["x"], "enumNames": ["X"]},
            "e": {"type": "string", "oneOf": [{"const": "x", "title": "X"}]},
            "f": {"type": "array", "items": {"type": "string", "enum": ["x"]}},
            "g": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}},
            "h": {"type": "number"},
            "i": {"enum": ["x", "y"]},
            "j": {"const": "x"},
            "k": {"oneOf": [{"const": "x", "title": "X"}]},
        });
        let schema = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
            "properties": fields, "required": ["a"], "additionalProperties": false, "title": "T"});
        assert_eq!(elicit(&schema), Ok(None));
        assert_eq!(
            elicit(&json!({"type": "object", "properties": {}})),
            Ok(None)
        );
        for wrong in [
            json!({"type": "object", "properties": {"x": {"type": "string"}}}),
            json!({"$ref": "#/$defs/address"}),
            json!({"type": "array", "items": {"type": "object"}}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array"}),
            json!({"type": ["string", "null"]}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"type": "string", "enum": [1]}),
            json!({"enum": [1]}),
            json!({"enum": ["a", null]}),
            json!({"const": 1}),
            json!({"oneOf": [{"const": "a"}, {"type": "string"}]}),
            json!({"type": null, "enum": ["a"]}),
            json!({"type": "string", "oneOf": [{"type": "string"}]}),
            json!({"type": "null"}),
            json!({"type": "string", "const": 1}),
            json!({"enum": []}),
            json!({"type": "string", "enum": []}),
            json!({"oneOf": []}),
            json!({"type": "string", "oneOf": []}),
            json!({"type": "array", "items": {"type": "string", "enum": []}}),
            json!({"type": "array", "items": {"anyOf": []}}),
            json!({}),
            json!(true),
        ] {
            let error = elicit(&json!({"type": "object", "properties": {"field": wrong}}));
            let error = error.expect_err("no field of a form");
            assert!(
                error.starts_with("requestedSchema.properties.field: "),
                "{error}"
            );
        }
        for wrong in [
            json!({"type": "string"}),
            json!({"properties": {}}),
            json!({"type": "object"}),
            json!("x"),
            json!(null),
        ] {
            let error = elicit(&wrong).expect_err("no form");
            assert!(error.starts_with("requestedSchema: "), "{error}");
        }
        let error = checked(
            "elicitation/create",
            &json!({"message": "?", "mode": "voice"}),
        );
        assert!(error.expect_err("no mode").starts_with("mode: "));
        assert!(input_request("elicitation/create", None).is_err());
        assert!(checked("elicitation/create", &json!([])).is_err());
    }

    #[test]
    fn url_elicitations_need_a_url_with_https_unless_it_is_local() {
        let check_url = |url: Value| {
            checked(
                "elicitation/create",
                &json!({"message": "?", "mode": "url", "url": url}),
            )
        };
        for url in [
            "https://example.com/login?x=1",
            "HTTPS://example.com",
            "http://localhost:8000/x",
            "http://127.0.0.1/",
            "http://[::1]:80/",
            "http://app.localhost/",
        ] {
            assert_eq!(check_url(json!(url)), Ok(Some(UrlSafety::Secure)), "{url}");
        }
        for url in [
            "http://example.com",
            "ftp://example.com/x",
            "app:login",
            "http://128.0.0.1",
        ] {
            assert_eq!(
                check_url(json!(url)),
                Ok(Some(UrlSafety::Insecure)),
                "{url}"
            );
        }
        for url in [
            json!("not a url"),
            json!(""),
            json!("/login"),
            json!("https://"),
            json!("https:///x"),
            json!("https://a b/"),
            json!(7),
            json!(null),
        ] {
            let error = check_url(url.clone()).expect_err("no URL");
            assert!(error.starts_with("url: "), "{url}: {error}");
        }
    }

    fn sample(messages: &Value) -> Result<(), String> {
        checked(
            "sampling/createMessage",
            &json!({"messages": messages, "maxTokens": 1}),
        )
        .map(drop)
    }

    #[test]
    fn tool_uses_and_results_must_match() {
        let text = || json!({"role": "user", "content": {"type": "text", "text": "hi"}});
        let uses = |ids: &[&str]| {
            let blocks = ids
                .iter()
                .map(|id| json!({"type": "tool_use", "id": id, "name": "t", "input": {}}));
            json!({"role": "assistant", "content": blocks.collect::<Vec<_>>()})
        };
        let results = |ids: &[&str]| {
            let blocks = ids
                .iter()
                .map(|id| json!({"type": "tool_result", "toolUseId": id, "content": []}));
            json!({"role": "user", "content": blocks.collect::<Vec<_>>()})
        };
        assert_eq!(sample(&json!([text(), text()])), Ok(()));
        assert_eq!(
            sample(&json!([
                text(),
                uses(&["a", "b"]),
                results(&["b", "a"]),
                text()
            ])),
            Ok(())
        );
        let mut mixed = results(&["a"]);
        mixed["content"]
            .as_array_mut()
            .expect("a list")
            .push(text()["content"].take());
        let mut by_the_model = results(&["a"]);
        by_the_model["role"] = "assistant".into();
        let mut by_the_user = uses(&["a"]);
        by_the_user["role"] = "user".into();
        for wrong in [
            json!([uses(&["a"]), mixed]),
            json!([uses(&["a"]), by_the_model]),
            json!([by_the_user, results(&["a"])]),
            json!([text(), uses(&["a"])]),
            json!([uses(&["a"]), text(), results(&["a"])]),
            json!([uses(&["a", "b"]), results(&["a"])]),
            json!([uses(&["a"]), results(&["b"])]),
            json!([text(), results(&["a"])]),
        ] {
            assert!(sample(&wrong).is_err(), "{wrong}");
        }
        assert_eq!(sample(&json!("no list")), Ok(()));
    }

    #[test]
    fn there_are_two_roles() {
        for role in [json!("system"), json!("tool"), json!(null), json!(1)] {
            let error = sample(&json!([{"role": role, "content": {"type": "text", "text": "hi"}}]));
            assert!(
                error.expect_err("no role").starts_with("messages[0]: "),
                "{role}"
            );
        }
    }

    #[test]
    fn priorities_lie_between_0_and_1() {
        let sample = |preferences: Value| {
            let params = json!({"messages": [], "maxTokens": 1, "modelPreferences": preferences});
            checked("sampling/createMessage", &params)
        };
        let all = json!({"costPriority": 0, "speedPriority": 1, "intelligencePriority": 0.5, "hints": []});
        assert_eq!(sample(all), Ok(None));
        for name in ["costPriority", "speedPriority", "intelligencePriority"] {
            for wrong in [json!(1.01), json!(-1), json!("high")] {
                let error = sample(json!({ name: wrong })).expect_err(name);
                assert!(
                    error.starts_with(&format!("modelPreferences.{name}: ")),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn roots_requests_need_no_parameters() {
        assert_eq!(input_request("roots/list", None), Ok(None));
    }
}
