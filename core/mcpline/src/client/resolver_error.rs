//! Errors of resolvers in other languages: the facts of an error that such a resolver did not handle.
//!
//! The host answers with a JSON-RPC error whose `data` has the member `failure`: the `kind` and the `message` of its
//! error, and its facts (`Failure::members` of the kernel). It never leaves the process.

use std::time::Duration;

use mcpline_protocol::{ErrorCode, RpcError};
use serde::Deserialize;
use serde_json::Value;

use crate::client_error::ClientError;
use crate::error_kind::ErrorKind;

#[derive(Deserialize)]
struct HostData {
    failure: Facts,
}

#[derive(Deserialize)]
struct Facts {
    kind: String,
    message: String,
    #[serde(default)]
    outcome_unknown: bool,
    #[serde(default)]
    source: Value,
    #[serde(default)]
    waited: f64,
    #[serde(default)]
    in_all: bool,
    #[serde(default)]
    status: u16,
    #[serde(default)]
    body: String,
    #[serde(default)]
    challenge: Option<String>,
    #[serde(default)]
    exit: Option<String>,
    #[serde(default)]
    stderr: Vec<String>,
}

/// Returns the error that a resolver's answer represents.
pub(crate) fn of_answer(error: RpcError) -> ClientError {
    let data = error.data.as_ref();
    let data = data.and_then(|data| serde_json::from_slice::<HostData>(data.as_bytes()).ok());
    match data.and_then(|data| data.failure.into_error()) {
        Some(known) => known,
        // The handler chose it: hosts answer with this code if a handler failed in another way.
        None if error.code != ErrorCode::INTERNAL_ERROR => ClientError::Rpc(error),
        None => ClientError::InputRequestFailed {
            method: None,
            error,
        },
    }
}

impl Facts {
    /// Returns the error with these facts; `None` if the kind is not one of requests.
    fn into_error(self) -> Option<ClientError> {
        let mut kinds = ErrorKind::ALL.iter();
        let kind = kinds.find(|kind| kind.as_str() == self.kind)?;
        let rpc = || serde_json::from_value::<RpcError>(self.source.clone()).ok();
        let reason = || match &self.source {
            Value::String(reason) => reason.clone(),
            _ => self.message.clone(),
        };
        Some(match kind {
            ErrorKind::Rpc => ClientError::Rpc(rpc()?),
            ErrorKind::RequestTimedOut => ClientError::RequestTimedOut {
                waited: Duration::try_from_secs_f64(self.waited).unwrap_or_default(),
                in_all: self.in_all,
            },
            ErrorKind::Http => ClientError::Http {
                status: self.status,
                error: rpc().map(Box::new),
                body: self.body,
                challenge: self.challenge,
            },
            ErrorKind::SessionExpired => ClientError::SessionExpired,
            ErrorKind::ServerUnreachable => ClientError::ServerUnreachable { reason: reason() },
            ErrorKind::ConnectionLost => ClientError::ConnectionLost { reason: reason() },
            ErrorKind::ServerExited => ClientError::ServerExited {
                exit: self.exit,
                stderr: self.stderr,
                unsent: !self.outcome_unknown,
            },
            ErrorKind::InvalidResponse => ClientError::InvalidResponse { reason: reason() },
            ErrorKind::InputRequestFailed => ClientError::InputRequestFailed {
                method: None,
                error: rpc()?,
            },
            ErrorKind::ToolCallRefused => ClientError::ToolCallRefused { reason: reason() },
            ErrorKind::NotSupported => ClientError::NotSupported(reason()),
            ErrorKind::LimitExceeded => ClientError::LimitExceeded(reason()),
            ErrorKind::Closed => ClientError::Closed,
            ErrorKind::Usage => ClientError::Usage(reason()),
            _ => return None,
        })
    }
}
