//! Questions in the words of the client's revision, or the reason why it has none for them.

use mcpline_protocol::Revision;
use mcpline_protocol::adapt::{self, CannotAsk};
use mcpline_protocol::session::{AskError, Need};
use mcpline_protocol::vocabulary::{CreateMessageParams, ElicitParams};
use mcpline_protocol::wire::Raw;
use serde::Serialize;
use serde::de::DeserializeOwned;

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
    let fitted = match method {
        AskMethod::ListRoots => None,
        AskMethod::Elicit => {
            let is_url = raw
                .member("mode")
                .is_some_and(|mode| mode.as_str() == "\"url\"");
            // The later revisions have all the words for a form.
            if !is_url && features.elicitation_enums {
                return Ok(params);
            }
            decoded::<ElicitParams>(raw)
                .map(|asked| {
                    let mut asked = adapt::elicit_params(&asked, revision)?.into_owned();
                    if features.elicitation_complete && is_url {
                        // Each visit has an id on 2025-11-25 (`client/elicitation`, URL mode).
                        asked.elicitation_id.get_or_insert_with(clock::token);
                    }
                    Ok(written(&asked))
                })
                .transpose()
                .map_err(cannot)?
        }
        AskMethod::Sample if features.sampling_tools => None,
        AskMethod::Sample => decoded::<CreateMessageParams>(raw)
            .map(|asked| adapt::create_message_params(&asked, revision).map(|p| written(&*p)))
            .transpose()
            .map_err(cannot)?,
    };
    Ok(fitted.flatten().or(params))
}

fn decoded<T: DeserializeOwned>(raw: &Raw) -> Option<T> {
    raw.decode().ok()
}

fn written(params: &impl Serialize) -> Option<Raw> {
    Raw::from_serialize(params).ok()
}

fn cannot(reason: CannotAsk) -> AskError {
    match reason {
        CannotAsk::Elicitation => AskError::Unsupported(Need::ElicitForm),
        CannotAsk::Url => AskError::Unsupported(Need::ElicitUrl),
        CannotAsk::SamplingTools => AskError::Unsupported(Need::SamplingTools),
        CannotAsk::MultipleChoice => AskError::Inexpressible(reason),
    }
}
