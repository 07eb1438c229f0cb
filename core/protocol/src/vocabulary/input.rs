//! Multi round-trip requests: a server returns input requests, and the client repeats its request with the responses;
//! since 2026-07-28.

use serde::{Deserialize, Serialize};

use super::elicitation::ElicitParams;
use super::macros::{setters, tagged_union};
use super::sampling::CreateMessageParams;
use super::tools::ResultType;
use super::{Extra, JsonObject};

/// A result that requests input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequiredResult {
    /// `input_required`.
    pub result_type: ResultType,
    /// Input requests by key: an ordered map of [`InputRequest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<JsonObject>,
    /// State that the client must return unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Default for InputRequiredResult {
    fn default() -> Self {
        Self {
            result_type: ResultType::InputRequired,
            input_requests: None,
            request_state: None,
            meta: None,
            extra: Extra::new(),
        }
    }
}

setters!(InputRequiredResult {
    with_input_requests => input_requests: JsonObject,
    with_request_state => request_state: String,
    with_meta => meta: Extra,
});

impl InputRequiredResult {
    /// Creates a result without input requests and state.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the decoded input requests.
    ///
    /// # Errors
    ///
    /// An input request does not match its method.
    pub fn decode_input_requests(&self) -> Result<Vec<(String, InputRequest)>, serde_json::Error> {
        let requests = self.input_requests.iter().flatten();
        requests
            .map(|(key, request)| Ok((key.clone(), serde_json::from_value(request.clone())?)))
            .collect()
    }
}

tagged_union! {
    /// An input request.
    InputRequest by "method" {
        /// Elicitation.
        Elicit(InputRequestOf<ElicitParams>) = "elicitation/create",
        /// Sampling.
        Sample(InputRequestOf<CreateMessageParams>) = "sampling/createMessage",
        /// Root directories.
        ListRoots(ListRootsRequest) = "roots/list",
    }
}

/// Parameters of an input request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InputRequestOf<T> {
    /// The parameters.
    pub params: T,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl<T> InputRequestOf<T> {
    /// Creates an input request with these parameters.
    pub fn new(params: T) -> Self {
        Self {
            params,
            extra: Extra::new(),
        }
    }
}

/// An input request for the client's root directories.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListRootsRequest {
    /// The parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<JsonObject>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}
