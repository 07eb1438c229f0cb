//! Progress and cancellation of a request.

use mcpline_derive::Members;
use serde::{Deserialize, Serialize};

use super::Extra;
use super::macros::{number, optional_number, setters};
use crate::request_id::RequestId;

/// Identifies progress notifications of a request: a string or an integer, chosen by its sender.
pub type ProgressToken = RequestId;

/// The parameters of `notifications/progress`.
#[derive(Clone, Debug, PartialEq, Serialize, Members)]
#[serde(rename_all = "camelCase")]
#[members(start = Progress::new(0.into(), 0.0))]
#[non_exhaustive]
pub struct Progress {
    /// Token of the request.
    pub progress_token: ProgressToken,
    /// Progress so far. Increases with each notification.
    #[serde(serialize_with = "number")]
    pub progress: f64,
    /// Total progress at the end, if known.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_number"
    )]
    pub total: Option<f64>,
    /// Message for the user; since 2025-03-26.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Progress {
    /// Creates progress of the request with `token`.
    pub fn new(token: ProgressToken, progress: f64) -> Self {
        Self {
            progress_token: token,
            progress,
            total: None,
            message: None,
            meta: None,
            extra: Extra::new(),
        }
    }
}

setters!(Progress { with_total => total: f64, with_message => message: String, with_meta => meta: Extra });

/// The parameters of `notifications/cancelled`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Cancelled {
    /// The request. Absent only where 2025-11-25 cancels a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Reason, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Members that no known revision defines.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Cancelled {
    /// Creates the cancellation of `request_id`.
    pub fn new(request_id: RequestId) -> Self {
        Self {
            request_id: Some(request_id),
            ..Self::default()
        }
    }
}

setters!(Cancelled { with_reason => reason: String, with_meta => meta: Extra });
