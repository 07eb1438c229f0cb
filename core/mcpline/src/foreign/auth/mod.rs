//! Authorization for hosts in other languages: their part of it, as JSON requests to the same [`HostRequestHandler`]s that answer
//! input requests of servers.
//!
//! | method | parameters | result |
//! | --- | --- | --- |
//! | `auth/token` | `server`, `refused`, `scopes` | `token`, and `expires_in` in seconds if it expires |
//! | `auth/open` | `url` | `url`: the URL that the user was redirected to |
//! | `auth/browser` | `url` | nothing |
//! | `auth/unopened` | `url`, `reason` | nothing |
//! | `auth/assertion` | `audience` | `assertion`: the workload's signed assertion |
//! | `auth/id_token` | `audience` | `id_token` |
//! | `auth/store/load` | `key` | `value` in base64, or null |
//! | `auth/store/save` | `key`, `value` | nothing |
//! | `auth/store/remove` | `key` | nothing |
//! | `auth/store/lock` | `key` | `lock`: any value that identifies it |
//! | `auth/store/unlock` | `key`, `lock` | nothing |
//!
//! [`AuthOptions`](super::options::AuthOptions) determines which of them are sent. An error fails the operation with
//! the host's message. A request whose answer is no longer needed is cancelled, like those of servers.

mod store;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use mcpline_protocol::RpcError;
use mcpline_protocol::wire::Raw;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::HostRequestHandler;
use crate::error::Error;

pub(super) use store::HostStore;

pub use super::HostRequestHandlers;

/// A request to the host.
pub(super) struct HostRequest {
    request_handler: HostRequestHandler,
}

impl HostRequest {
    pub(super) fn new(
        request_handlers: HostRequestHandlers<'_>,
        method: &'static str,
    ) -> Result<Arc<Self>, Error> {
        match request_handlers {
            Some(request_handlers) => Ok(Arc::new(Self {
                request_handler: request_handlers(method),
            })),
            None => Err(no_answerer_error(method)),
        }
    }

    /// Sends the request and returns its result.
    pub(super) async fn call_host<T: DeserializeOwned>(
        &self,
        params: impl Serialize,
    ) -> Result<T, RpcError> {
        let params = serde_json::to_string(&params)
            .map_err(|error| RpcError::internal_error(error.to_string()))?;
        let answer = (self.request_handler)(Raw::from_trusted(params).into()).await?;
        // The answer may be a secret, so the error does not repeat it.
        serde_json::from_slice(answer.as_bytes()).map_err(|_| {
            RpcError::internal_error("the callback returned a value of the wrong form")
        })
    }
}

#[cold]
fn no_answerer_error(method: &str) -> Error {
    Error::usage(format!("the client has no handler for {method}"))
}

/// A result without content.
#[derive(serde::Deserialize)]
pub(super) struct IgnoredAnswer(#[allow(dead_code)] serde::de::IgnoredAny);
