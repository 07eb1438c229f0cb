//! Questions in the words of the client's revision, or the reason why it has none for them.

use mcpline_protocol::adapt::{self, CannotAsk};
use mcpline_protocol::checks::{self, Visit};
use mcpline_protocol::session::{AskError, Need, Peer};
use mcpline_protocol::vocabulary::JsonObject;
use mcpline_protocol::wire::{Kind, Raw};
use serde_json::Value;

use crate::clock;
use crate::server::visits;

use super::AskMethod;

/// Checks the parameters of a question, whomever it is put to.
///
/// # Errors
///
/// If no client could answer it.
pub(super) fn check(method: &AskMethod, params: Option<&Raw>) -> Result<(), AskError> {
    let invalid =
        |reason: String| AskError::InvalidParams(format!("{}: {reason}", method.as_str()));
    if matches!(method, AskMethod::Custom(_))
        && params.is_some_and(|params| params.kind() != Kind::Object)
    {
        return Err(invalid("params must be a JSON object".to_owned()));
    }
    let visit = checks::question(method.as_str(), params).map_err(invalid)?;
    if let Some(given) = params.and_then(|params| params.member("_meta"))
        && let Some(warning) = checks::meta(&given).map_err(invalid)?
    {
        tracing::warn!("{}: {warning}", method.as_str());
    }
    if visit == Some(Visit::Insecure) {
        let url = params.and_then(|params| params.member("url"));
        visits::warn_of(&url.as_ref().and_then(Raw::string_value).unwrap_or_default());
    }
    Ok(())
}

/// The parameters of a question as this client reads them. What isn't of a question's shape goes out
/// as the author wrote it.
///
/// # Errors
///
/// If the client's revision has no words for it.
pub(super) fn fit(
    method: &AskMethod,
    params: Option<Raw>,
    peer: &Peer,
) -> Result<Option<Raw>, AskError> {
    let Some(raw) = &params else { return Ok(None) };
    let revision = peer.revision;
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
        AskMethod::ListRoots | AskMethod::Custom(_) => true,
        // The later revisions have all the words for a form, as long as each field says its type.
        AskMethod::Elicit => features.elicitation_enums && !is_url() && has_types(raw),
        AskMethod::Sample => {
            features.sampling_tools && (peer.takes_context() || !includes_context())
        }
    };
    if as_it_is {
        return Ok(params);
    }
    let Ok(mut asked) = raw.decode::<JsonObject>() else {
        return Ok(params);
    };
    if *method == AskMethod::Sample {
        if !peer.takes_context() && includes_context() {
            tracing::debug!("includeContext was left out: the client declares no sampling.context");
            asked.shift_remove("includeContext");
        }
        adapt::create_message_params(&mut asked, revision).map_err(cannot)?;
    } else {
        adapt::elicit_params(&mut asked, revision).map_err(cannot)?;
        if features.elicitation_complete && is_url() {
            // Each visit has an id on 2025-11-25 (`client/elicitation`, URL mode).
            let id = asked.entry("elicitationId").or_insert(Value::Null);
            if id.is_null() {
                *id = clock::token().into();
            }
        }
    }
    Ok(Raw::from_serialize(&asked).ok().or(params))
}

/// Whether all fields of a form have a type, and those of multiple choices.
fn has_types(params: &Raw) -> bool {
    let schema = params.member("requestedSchema");
    let fields = schema.and_then(|schema| schema.member("properties"));
    let mut fields = fields.iter().filter_map(Raw::members).flatten();
    fields.all(|(_, field)| {
        let items = field.member("items");
        field.member("type").is_some() && items.is_none_or(|items| items.member("type").is_some())
    })
}

fn cannot(reason: CannotAsk) -> AskError {
    match reason {
        CannotAsk::Elicitation => AskError::Unsupported(Need::ElicitForm),
        CannotAsk::Url => AskError::Unsupported(Need::ElicitUrl),
        CannotAsk::SamplingTools => AskError::Unsupported(Need::SamplingTools),
        CannotAsk::MultipleChoice => AskError::Inexpressible(reason),
    }
}
