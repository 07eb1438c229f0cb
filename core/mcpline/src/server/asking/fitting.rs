//! Questions in the words of the client's revision, or the reason why it has none for them.

use mcpline_protocol::Revision;
use mcpline_protocol::adapt::{self, CannotAsk};
use mcpline_protocol::session::{AskError, Need};
use mcpline_protocol::vocabulary::JsonObject;
use mcpline_protocol::wire::Raw;
use serde_json::Value;

use crate::clock;
use crate::server::reply::AskMethod;

/// The parameters of a question as a client of `revision` reads them. What isn't of a question's shape goes out
/// as the author wrote it.
///
/// # Errors
///
/// If the revision has no words for it.
pub(super) fn fit(
    method: AskMethod,
    params: Option<Raw>,
    revision: Revision,
) -> Result<Option<Raw>, AskError> {
    let Some(raw) = &params else { return Ok(None) };
    let features = revision.features();
    let is_url = || {
        let mode = raw.member("mode");
        mode.is_some_and(|mode| mode.as_str() == "\"url\"")
    };
    let as_it_is = match method {
        AskMethod::ListRoots => true,
        // The later revisions have all the words for a form.
        AskMethod::Elicit => features.elicitation_enums && !is_url(),
        AskMethod::Sample => false,
    };
    if as_it_is {
        return Ok(params);
    }
    let Ok(mut asked) = raw.decode::<JsonObject>() else {
        return Ok(params);
    };
    if method == AskMethod::Sample {
        adapt::check_tool_messages(&asked).map_err(cannot)?;
        if features.sampling_tools {
            return Ok(params);
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

fn cannot(reason: CannotAsk) -> AskError {
    match reason {
        CannotAsk::Elicitation => AskError::Unsupported(Need::ElicitForm),
        CannotAsk::Url => AskError::Unsupported(Need::ElicitUrl),
        CannotAsk::SamplingTools => AskError::Unsupported(Need::SamplingTools),
        CannotAsk::MultipleChoice | CannotAsk::MixedToolResults | CannotAsk::UnbalancedToolUse => {
            AskError::Inexpressible(reason)
        }
    }
}
