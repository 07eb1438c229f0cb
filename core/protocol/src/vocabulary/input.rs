//! Multi round-trip requests: a server answers with questions, and the client asks again with the
//! answers; since 2026-07-28.

use serde::{Deserialize, Serialize};

use super::elicitation::ElicitParams;
use super::sampling::CreateMessageParams;
use super::shape::{setters, tagged_union};
use super::tools::ResultType;
use super::{Extra, JsonObject};

/// A result that asks instead of answering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputRequiredResult {
    /// `input_required`.
    pub result_type: ResultType,
    /// The questions, by keys that the answers repeat. An ordered map of [`InputRequest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<JsonObject>,
    /// What the client must send back unread.
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
    /// The questions, decoded.
    ///
    /// # Errors
    /// When one does not have the shape that its method demands.
    pub fn questions(&self) -> Result<Vec<(String, InputRequest)>, serde_json::Error> {
        let requests = self.input_requests.iter().flatten();
        requests
            .map(|(key, request)| Ok((key.clone(), serde_json::from_value(request.clone())?)))
            .collect()
    }
}

tagged_union! {
    /// One question.
    InputRequest by "method" {
        /// To the user.
        Elicit(InputRequestOf<ElicitParams>) = "elicitation/create",
        /// To the model.
        Sample(InputRequestOf<CreateMessageParams>) = "sampling/createMessage",
        /// For the client's roots.
        ListRoots(ListRootsRequest) = "roots/list",
    }
}

/// The parameters of a question, beside its method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputRequestOf<T> {
    /// The parameters.
    pub params: T,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl<T> InputRequestOf<T> {
    /// A question with these parameters.
    pub fn new(params: T) -> Self {
        Self {
            params,
            extra: Extra::new(),
        }
    }
}

/// A question for the client's roots, which has no parameters of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListRootsRequest {
    /// The parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<JsonObject>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}
