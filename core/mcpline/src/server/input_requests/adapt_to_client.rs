//! Adapts input requests to the client's revision, or reports why the revision cannot express them.

use mcpline_protocol::adapt::{self, InexpressibleInputRequest};
use mcpline_protocol::checks::{self, UrlSafety};
use mcpline_protocol::session::{ClientProfile, InputRequestError, RequiredCapability};
use mcpline_protocol::vocabulary::JsonObject;
use mcpline_protocol::wire::{JsonKind, Method, Raw};
use mcpline_runtime::clock;
use serde_json::Value;

use crate::server::url_elicitation_required;

use super::InputRequestMethod;

/// Checks the parameters of an input request against the rules of every revision.
///
/// # Errors
///
/// If no client could answer it.
pub(super) fn check(
    method: &InputRequestMethod,
    params: Option<&Raw>,
) -> Result<(), InputRequestError> {
    let invalid =
        |reason: String| InputRequestError::InvalidParams(format!("{}: {reason}", method.as_str()));
    if matches!(method, InputRequestMethod::Custom(_))
        && params.is_some_and(|params| params.kind() != JsonKind::Object)
    {
        return Err(invalid("params must be a JSON object".to_owned()));
    }
    let elicitation = checks::input_request(method.as_str(), params).map_err(invalid)?;
    if let Some(given) = params.and_then(|params| params.member("_meta"))
        && let Some(warning) = checks::meta(&given).map_err(invalid)?
    {
        tracing::warn!("{}: {warning}", method.as_str());
    }
    if elicitation == Some(UrlSafety::Insecure) {
        let url = params.and_then(|params| params.member("url"));
        url_elicitation_required::warn_of(
            &url.as_ref().and_then(Raw::string_value).unwrap_or_default(),
        );
    }
    Ok(())
}

/// Returns the parameters of an input request in the form of the client's revision. Parameters of another shape are
/// sent as the handler wrote them.
///
/// # Errors
///
/// If the client's revision cannot express the request.
pub(super) fn fit(
    method: &InputRequestMethod,
    params: Option<Raw>,
    peer: &ClientProfile,
) -> Result<Option<Raw>, InputRequestError> {
    let revision = peer.revision;
    if matches!(method, InputRequestMethod::Custom(_))
        && !Method::parse(method.as_str()).is_custom_in(revision)
    {
        return Err(inexpressible_error(
            InexpressibleInputRequest::DefinedMethod,
        ));
    }
    let Some(raw) = &params else { return Ok(None) };
    let features = revision.features();
    let is_url = || {
        let mode = raw.member("mode");
        mode.is_some_and(|mode| mode.as_str() == "\"url\"")
    };
    let includes_context = || {
        let included = raw.member("includeContext");
        let included = included.as_ref().map(Raw::as_str);
        matches!(included, Some("\"thisServer\"" | "\"allServers\""))
    };
    let as_it_is = match method {
        InputRequestMethod::ListRoots | InputRequestMethod::Custom(_) => true,
        // The later revisions can express every form.
        InputRequestMethod::Elicit => features.elicitation_enums && !is_url() && is_complete(raw),
        InputRequestMethod::Sample => {
            features.sampling_tools && (peer.accepts_context() || !includes_context())
        }
    };
    if as_it_is {
        return Ok(params);
    }
    let Ok(mut object) = raw.decode::<JsonObject>() else {
        return Ok(params);
    };
    if *method == InputRequestMethod::Sample {
        if !peer.accepts_context() && includes_context() {
            tracing::debug!("includeContext was left out: the client declares no sampling.context");
            object.shift_remove("includeContext");
        }
        adapt::create_message_params(&mut object, revision).map_err(inexpressible_error)?;
    } else {
        adapt::elicit_params(&mut object, revision).map_err(inexpressible_error)?;
        if features.elicitation_complete && is_url() {
            // On 2025-11-25 each URL elicitation has an id (`client/elicitation`, URL mode).
            let id = object.entry("elicitationId").or_insert(Value::Null);
            if id.is_null() {
                *id = clock::token().into();
            }
        }
    }
    Ok(Raw::from_serialize(&object).ok().or(params))
}

/// Whether a form can be sent as it is: every field has a type, and none is a constant. Titled multiple choices have no
/// type of their own.
fn is_complete(params: &Raw) -> bool {
    let schema = params.member("requestedSchema");
    let fields = schema.and_then(|schema| schema.member("properties"));
    let mut fields = fields.iter().filter_map(Raw::members).flatten();
    let has = |schema: &Raw, name| schema.member(name).is_some();
    fields.all(|(_, field)| {
        let items = field.member("items");
        let has_choices = items.is_none_or(|items| has(&items, "type") || has(&items, "anyOf"));
        has(&field, "type") && !has(&field, "const") && has_choices
    })
}

fn inexpressible_error(reason: InexpressibleInputRequest) -> InputRequestError {
    match reason {
        InexpressibleInputRequest::Elicitation => {
            InputRequestError::NotSupported(RequiredCapability::ElicitForm)
        }
        InexpressibleInputRequest::Url => {
            InputRequestError::NotSupported(RequiredCapability::ElicitUrl)
        }
        InexpressibleInputRequest::SamplingTools => {
            InputRequestError::NotSupported(RequiredCapability::SamplingTools)
        }
        // No capability would help.
        _ => InputRequestError::Inexpressible(reason),
    }
}

#[cfg(test)]
mod tests {
    use mcpline_protocol::Revision;

    use super::*;

    fn adapted(field: &str) -> (String, String) {
        let form = format!(
            r#"{{ "message": "?", "requestedSchema": {{"type": "object", "properties": {{"f": {field}}}}} }}"#
        );
        let peer = ClientProfile {
            revision: Revision::V2026_07_28,
            info: None,
            capabilities: Raw::from_trusted("{}"),
        };
        let params = Some(Raw::from_trusted(form.clone()));
        check(&InputRequestMethod::Elicit, params.as_ref()).expect("a form");
        let params = fit(&InputRequestMethod::Elicit, params, &peer).expect("it has the words");
        (form, params.expect("it has some").as_str().to_owned())
    }

    #[test]
    fn sends_complete_forms_unchanged() {
        for field in [
            r#"{ "type": "string" }"#,
            r#"{ "type": "string", "oneOf": [{"const": "x", "title": "X"}] }"#,
            r#"{ "type": "array", "items": {"type": "string", "enum": ["x"]} }"#,
            r#"{ "type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]} }"#,
        ] {
            let (form, sent) = adapted(field);
            assert_eq!(form, sent);
        }
    }

    #[test]
    fn completes_forms_that_lack_types() {
        for (field, fitted) in [
            (r#"{"const": "x"}"#, r#"{"type":"string","enum":["x"]}"#),
            (
                r#"{"type": "string", "const": "x"}"#,
                r#"{"type":"string","enum":["x"]}"#,
            ),
            (r#"{"enum": ["x"]}"#, r#"{"type":"string","enum":["x"]}"#),
            (
                r#"{"type": "array", "items": {"enum": ["x"]}}"#,
                r#"{"type":"array","items":{"type":"string","enum":["x"]}}"#,
            ),
        ] {
            let (_, sent) = adapted(field);
            assert!(sent.contains(fitted), "{sent}");
        }
    }
}
