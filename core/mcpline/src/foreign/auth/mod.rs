//! Authorization for hosts in other languages: their part of it, asked in JSON by way of the same [`Answerer`]s that
//! answer a server's questions.
//!
//! | method | asked with | answered with |
//! | --- | --- | --- |
//! | `auth/token` | `server`, `refused`, `scopes` | `token`, and `expires_in` in seconds where it lapses |
//! | `auth/open` | `url` | `url`: what the user was redirected to |
//! | `auth/browser` | `url` | nothing |
//! | `auth/unopened` | `url`, `reason` | nothing |
//! | `auth/assertion` | `audience` | `assertion`: the workload's signed word |
//! | `auth/id_token` | `audience` | `id_token` |
//! | `auth/store/load` | `key` | `value` in base64, or null |
//! | `auth/store/save` | `key`, `value` | nothing |
//! | `auth/store/remove` | `key` | nothing |
//! | `auth/store/lock` | `key` | `lock`: whatever tells it from others |
//! | `auth/store/unlock` | `key`, `lock` | nothing |
//!
//! Which of them are asked is said by [`AuthOptions`](super::options::AuthOptions). An error is the failure of what it was
//! asked for, in the host's words. A question that nobody waits for any more is withdrawn, like a server's.

mod store;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use mcpline_protocol::RpcError;
use mcpline_protocol::wire::Raw;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::Answerer;
use crate::error::Error;

pub(super) use store::HostStore;

pub use super::Answerers;

/// What is asked of the host.
pub(super) struct Question {
    answerer: Answerer,
}

impl Question {
    pub(super) fn new(answerers: Answerers<'_>, method: &'static str) -> Result<Arc<Self>, Error> {
        match answerers {
            Some(answerers) => Ok(Arc::new(Self {
                answerer: answerers(method),
            })),
            None => Err(unasked(method)),
        }
    }

    /// Asks it.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        params: impl Serialize,
    ) -> Result<T, RpcError> {
        let params = serde_json::to_string(&params)
            .map_err(|error| RpcError::internal_error(error.to_string()))?;
        let answer = (self.answerer)(Some(Raw::from_trusted(params))).await?;
        // The answer may be a secret: what is wrong with it is not repeated.
        serde_json::from_slice(answer.as_bytes())
            .map_err(|_| RpcError::internal_error("the host's answer is not what was asked for"))
    }
}

#[cold]
fn unasked(method: &str) -> Error {
    Error::usage(format!("the host has no way to be asked for {method}"))
}

/// What has no answer.
#[derive(serde::Deserialize)]
pub(super) struct IgnoredAnswer(#[allow(dead_code)] serde::de::IgnoredAny);
