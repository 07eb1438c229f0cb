//! Errors of resolvers in other languages: the facts of an error that such a resolver did not handle.
//!
//! The host answers with a JSON-RPC error whose `data` has the member `failure`: the `kind` and the `message` of its
//! error, and its facts (`Failure::members` of the kernel). It never leaves the process.

use std::time::Duration;

use mcpline_protocol::wire::Raw;
use mcpline_protocol::{ErrorCode, RpcError};
use serde_json::Value;

use crate::client_error::ClientError;
use crate::error_kind::ErrorKind;

/// Returns the error that a resolver's answer represents.
pub(crate) fn error_of_answer(error: RpcError) -> ClientError {
    let data = error.data.as_ref();
    let data = data.and_then(|data| serde_json::from_slice::<Value>(data.as_bytes()).ok());
    match data.and_then(|data| ErrorMembers(data.get("failure")?).error()) {
        Some(known) => known,
        // The handler chose it: hosts answer with this code if a handler failed in another way.
        None if error.code != ErrorCode::INTERNAL_ERROR => ClientError::Rpc(error),
        None => ClientError::InputRequestFailed {
            method: None,
            error,
        },
    }
}

/// The facts of an error. Read by hand: a derived decoder takes more code than all of this.
struct ErrorMembers<'f>(&'f Value);

impl ErrorMembers<'_> {
    #[inline(never)]
    fn text(&self, name: &str) -> Option<String> {
        Some(self.0.get(name)?.as_str()?.to_owned())
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool) == Some(true)
    }

    fn number(&self, name: &str) -> f64 {
        self.0.get(name).and_then(Value::as_f64).unwrap_or_default()
    }

    /// Returns the JSON-RPC error that is the cause.
    fn rpc(&self) -> Option<RpcError> {
        let source = self.0.get("source")?;
        let code = ErrorCode(source.get("code")?.as_i64()?);
        let mut error = RpcError::new(code, source.get("message")?.as_str()?.to_owned());
        let data = source.get("data");
        error.data = data.and_then(|data| Raw::from_serialize(data).ok());
        Some(error)
    }

    /// Returns the error with these facts; `None` if the kind is not one of requests.
    fn error(&self) -> Option<ClientError> {
        let identifier = self.text("kind")?;
        let mut kinds = ErrorKind::ALL.iter();
        let kind = kinds.find(|kind| kind.as_str() == identifier)?;
        let source = self.text("source").or_else(|| self.text("message"));
        let (reason, rpc) = (source.unwrap_or_default(), self.rpc());
        Some(match kind {
            ErrorKind::Rpc => ClientError::Rpc(rpc?),
            ErrorKind::RequestTimedOut => ClientError::RequestTimedOut {
                waited: Duration::try_from_secs_f64(self.number("waited")).unwrap_or_default(),
                in_all: self.flag("in_all"),
            },
            ErrorKind::Http => ClientError::Http {
                // A conversion that saturates: a status has three digits.
                status: self.number("status") as u16,
                error: rpc.map(Box::new),
                body: self.text("body").unwrap_or_default(),
                challenge: self.text("challenge"),
            },
            ErrorKind::SessionExpired => ClientError::SessionExpired,
            ErrorKind::ServerUnreachable => ClientError::unreachable(reason),
            ErrorKind::ConnectionLost => ClientError::lost(reason),
            ErrorKind::ServerExited => ClientError::ServerExited {
                exit: self.text("exit"),
                stderr: self
                    .0
                    .get("stderr")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .filter_map(|line| line.as_str().map(str::to_owned))
                    .collect(),
                unsent: !self.flag("outcome_unknown"),
            },
            ErrorKind::InvalidResponse => ClientError::InvalidResponse { reason },
            ErrorKind::InputRequestFailed => ClientError::InputRequestFailed {
                method: None,
                error: rpc?,
            },
            ErrorKind::ToolCallRefused => ClientError::ToolCallRefused { reason },
            ErrorKind::NotSupported => ClientError::NotSupported(reason),
            ErrorKind::LimitExceeded => ClientError::LimitExceeded(reason),
            ErrorKind::Closed => ClientError::Closed,
            ErrorKind::Usage => ClientError::Usage(reason),
            _ => return None,
        })
    }
}
