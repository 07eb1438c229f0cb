//! Requests that require URL elicitations first, for clients of every revision.

use std::sync::Arc;

use fluent_uri::Uri;
use mcpline_protocol::checks::{self, UrlSafety};
use mcpline_protocol::session::RequiredCapability;
use mcpline_protocol::vocabulary::{ElicitMode, ElicitParams, UrlElicitationRequired};
use mcpline_protocol::wire::Raw;
use mcpline_protocol::{ErrorCode, RpcError};
use mcpline_runtime::clock;

use super::call::{CallState, CurrentRequest};
use super::input_requests::InputRequestMethod;
use super::reply::{HandlerError, InputRequired, KeyedInputRequest};

/// Converts [`HandlerError::UrlElicitationRequired`] into the error for this client's revision.
pub(super) fn into_handler_error(
    call: &Arc<CallState>,
    mut url_elicitations: Vec<ElicitParams>,
) -> HandlerError {
    if let Err(reason) = url_elicitations.iter().try_for_each(check) {
        return HandlerError::Internal(format!("UrlElicitationRequired: {reason}"));
    }
    let current_request = call.current_request();
    for elicitation in &mut url_elicitations {
        elicitation.mode = Some(ElicitMode::Url);
    }
    let features = current_request.peer.revision.features();
    if features.mrtr {
        // Insecure URLs are reported with the input requests.
        return HandlerError::InputRequired(as_input_required(&url_elicitations));
    }
    for url in url_elicitations
        .iter()
        .filter_map(|elicitation| elicitation.url.as_deref())
    {
        if checks::elicitation_url(url) == Ok(UrlSafety::Insecure) {
            warn_of(url);
        }
    }
    match features.url_elicitation_required_code {
        Some(code) if current_request.peer.accepts(RequiredCapability::ElicitUrl) => {
            HandlerError::Rpc(as_error(&current_request, url_elicitations, code))
        }
        _ => HandlerError::Tool(as_text(&url_elicitations)),
    }
}

/// Returns the elicitations of a handler's error if it is error -32042 of 2025-11-25, for example from an upstream
/// server.
pub(super) fn elicitations_of_error(error: &RpcError) -> Option<Vec<ElicitParams>> {
    if error.code != ErrorCode::URL_ELICITATION_REQUIRED {
        return None;
    }
    let required: UrlElicitationRequired = error.data.as_ref()?.decode().ok()?;
    let url_elicitations = required.elicitations;
    (!url_elicitations.is_empty()
        && url_elicitations
            .iter()
            .all(|elicitation| check(elicitation).is_ok()))
    .then_some(url_elicitations)
}

/// Checks that an elicitation has a URL and no form.
fn check(elicitation: &ElicitParams) -> Result<(), String> {
    if elicitation.mode == Some(ElicitMode::Form) || elicitation.requested_schema.is_some() {
        return Err("a URL elicitation cannot have a form: use `elicit`".to_owned());
    }
    checks::elicitation_url(elicitation.url.as_deref().unwrap_or_default()).map(drop)
}

/// Logs a warning about a URL that is not https, which is for development only (2025-11-25, `client/elicitation`, safe
/// URL handling). Only scheme and host are logged, because the rest may be secret.
pub(super) fn warn_of(url: &str) {
    let Ok(url) = Uri::parse(url) else { return };
    tracing::warn!(
        scheme = url.scheme().as_str(),
        host = url.authority().map(|authority| authority.host()),
        "URL elicitation with a URL that is not https: clients may refuse it"
    );
}

fn as_input_required(url_elicitations: &[ElicitParams]) -> InputRequired {
    let request = |(index, elicitation): (usize, &ElicitParams)| KeyedInputRequest {
        key: elicitation
            .elicitation_id
            .clone()
            .unwrap_or_else(|| format!("visit-{}", index + 1)),
        method: InputRequestMethod::Elicit,
        params: Raw::from_serialize(elicitation).ok(),
    };
    InputRequired {
        requests: url_elicitations.iter().enumerate().map(request).collect(),
        state: None,
    }
}

/// Returns error -32042. Each elicitation gets the id for its completion notification.
fn as_error(
    current_request: &CurrentRequest,
    mut url_elicitations: Vec<ElicitParams>,
    code: ErrorCode,
) -> RpcError {
    let mut session = current_request.connection.lock_session();
    for elicitation in &mut url_elicitations {
        let id = elicitation.elicitation_id.get_or_insert_with(clock::token);
        session.note_url_elicitation_required(id);
    }
    drop(session);
    RpcError::new(code, "This request requires a visit to a URL first")
        .with_data(&serde_json::json!({ "elicitations": url_elicitations }))
}

fn as_text(url_elicitations: &[ElicitParams]) -> String {
    let mut text = String::from("Before this can be done, the user has to visit:");
    for elicitation in url_elicitations {
        let url = elicitation.url.as_deref().unwrap_or_default();
        text.push_str(&format!("\n{url} ({})", elicitation.message));
    }
    text
}
