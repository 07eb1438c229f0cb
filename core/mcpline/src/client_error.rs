//! Errors of clients.

use std::fmt;
use std::time::Duration;

#[cfg(feature = "auth")]
use mcpline_auth::AuthError;
use mcpline_protocol::client::{HandshakeError, OutgoingRequestError};
use mcpline_protocol::{InvalidRoot, Printable, Quoted, RpcError};

use crate::error_kind::ErrorKind;
use crate::shared_io_error::SharedIoError;

/// Why a request, or another operation of a client, failed. Cheap to clone: one failure may end many requests.
///
/// The message contains what the server sent, such as a JSON-RPC error. Only the error of the operating system is not
/// part of it: it is the [source](std::error::Error::source), an [`io::Error`](std::io::Error), so that reports of error
/// chains print each text once. `{:#}` prints both.
///
/// `docs/errors.md` lists all kinds with what they mean for a retry.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ClientError {
    /// The server returned a JSON-RPC error.
    Rpc(RpcError),
    /// No response arrived in time. The request was cancelled; whether the server performed it is unknown.
    RequestTimedOut {
        /// How long the client waited: since the last sign of life, or in total.
        waited: Duration,
        /// Whether the total timeout elapsed, which progress does not extend.
        in_all: bool,
    },
    /// The server responded with an HTTP status instead of a JSON-RPC message.
    Http {
        /// The status.
        status: u16,
        /// The beginning of the body, at most [`MAX_KEPT_BODY`] bytes.
        body: String,
        /// The `WWW-Authenticate` header, if there was one.
        challenge: Option<String>,
        /// The JSON-RPC error in the body, if there was one.
        error: Option<Box<RpcError>>,
    },
    /// The server no longer knows the session (HTTP 404), or the cursor of a list belongs to an earlier session. The
    /// server did nothing. Read lists again from the first page.
    SessionExpired,
    /// The server could not be reached. Nothing was sent.
    ServerUnreachable {
        /// What was tried, such as a path; empty if `source` says all.
        reason: String,
        /// The error of the system, if it is known.
        source: Option<SharedIoError>,
    },
    /// The connection, the stream or the process ended before the response arrived. Whether the server performed the
    /// request is unknown.
    ConnectionLost {
        /// The known details; empty if `source` says all.
        reason: String,
        /// The error of the system, if it is known.
        source: Option<SharedIoError>,
    },
    /// The server's process exited.
    ServerExited {
        /// The exit status: "exit status: 1", "signal: 9 (SIGKILL)".
        exit: Option<String>,
        /// The last lines of its stderr, if it is captured.
        stderr: Vec<String>,
        /// Whether the request was not sent.
        unsent: bool,
    },
    /// The server requires authorization, and no access token that it accepts could be obtained. The request had no
    /// effect.
    #[cfg(feature = "auth")]
    AuthorizationFailed(AuthError),
    /// A response violates the protocol or a schema of the server.
    InvalidResponse {
        /// The violation.
        reason: String,
    },
    /// The server was reached, but the handshake (`server/discover` or `initialize`) failed: it was refused, or client
    /// and server have no protocol revision in common.
    HandshakeFailed(HandshakeError),
    /// Each attempt to connect to the server failed.
    AllAttemptsFailed {
        /// The most informative error. Kind, status and JSON-RPC error are those of this one.
        cause: Box<ClientError>,
        /// The attempts in order, each with its error.
        attempts: Vec<ConnectAttempt>,
    },
    /// The server requested input more often than `ClientSettings::max_input_rounds` allows.
    TooManyRounds {
        /// The number of rounds.
        rounds: usize,
    },
    /// Too many bytes are waiting to be sent over a [channel](crate::client::Channel), because the server accepts too
    /// little. The request was not sent.
    TooMuchUnsent {
        /// The limit of waiting bytes.
        limit: usize,
    },
    /// A limit of the library is reached. The message names it.
    LimitExceeded(String),
    /// The server has performed the request, and its result has a type of an extension, whose handler failed. Kind,
    /// cause and details are those of the handler's error.
    ResultNotResolved {
        /// The handler's error.
        cause: Box<ClientError>,
    },
    /// An input request of the server was answered with an error: no handler is set for it, or the handler failed. The
    /// request that it belongs to was given up (2026-07-28).
    InputRequestFailed {
        /// The method of the input request; `None` if an extension's result was resolved.
        method: Option<String>,
        /// The error of the handler.
        error: RpcError,
    },
    /// The host's tool call hook refused the call. Nothing was sent.
    ToolCallRefused {
        /// The hook's reason.
        reason: String,
    },
    /// Middleware that must record the request could not, and keeps its outcome back. Whether the server performed the
    /// request is unknown.
    NotRecorded {
        /// What could not be written.
        reason: String,
    },
    /// The server or the protocol revision does not support the operation. Nothing was sent.
    NotSupported(String),
    /// The client was closed.
    Closed,
    /// The client was used incorrectly. Nothing was sent.
    Usage(String),
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The messages of other errors within this one are part of its message.
        match self.cause() {
            Self::ServerUnreachable { source, .. } | Self::ConnectionLost { source, .. } => {
                source.as_ref().map(|source| &**source as _)
            }
            _ => None,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, "", "; the server may have performed the request")
    }
}

/// Writes a reason, and in the alternate form its source.
fn write_reason(
    f: &mut fmt::Formatter<'_>,
    reason: &str,
    source: Option<&SharedIoError>,
) -> fmt::Result {
    if !reason.is_empty() {
        write!(f, ": {}", Printable(reason))?;
    }
    match source {
        Some(source) if f.alternate() => write!(f, ": {}", Printable(source.to_string())),
        _ => Ok(()),
    }
}

/// Returns a reason with its source.
#[cfg(feature = "client")]
pub(crate) fn reason_text(reason: &str, source: Option<&SharedIoError>) -> String {
    match source {
        Some(source) if reason.is_empty() => source.to_string(),
        Some(source) => format!("{reason}: {source}"),
        None => reason.to_owned(),
    }
}

/// The message of a request's error, with the request's method.
#[cfg(feature = "client")]
pub(crate) struct ErrorOfMethod<'e>(pub(crate) &'e ClientError, pub(crate) &'e str);

#[cfg(feature = "client")]
impl fmt::Display for ErrorOfMethod<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = format!(" to `{}`", self.1);
        self.0
            .write(f, &to, "; the server may have performed the request")
    }
}

/// The message of a nested error: of an attempt to connect, or a cause. The outer message contains the outcome of the
/// request.
struct ShortError<'e>(&'e ClientError);

impl fmt::Display for ShortError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ClientError::HandshakeFailed(error) => error.fmt(f),
            error => error.write(f, "", ""),
        }
    }
}

impl ClientError {
    /// Writes the message. `to` names the request, and `outcome` is the text for an unknown outcome.
    fn write(&self, f: &mut fmt::Formatter<'_>, to: &str, outcome: &str) -> fmt::Result {
        match self {
            Self::Rpc(error) => write!(f, "server returned an error{to}: {error}"),
            Self::RequestTimedOut { waited, in_all } => {
                let option = if *in_all { "total_timeout" } else { "timeout" };
                let waited = waited.as_secs_f64();
                write!(f, "no response{to} within {waited} s (`{option}`){outcome}")
            }
            Self::Http { status, body, .. } => {
                write!(f, "server responded with HTTP status {status}{to}")?;
                match body.trim() {
                    "" => Ok(()),
                    body => write!(f, ": {}", Quoted(body)),
                }
            }
            Self::SessionExpired => f.write_str(
                "session expired; the server did not perform the request: send it again, and read lists from the first page",
            ),
            Self::ServerUnreachable { reason, source } => {
                f.write_str("server unreachable")?;
                write_reason(f, reason, source.as_ref())
            }
            Self::ConnectionLost { reason, source } => {
                write!(f, "connection lost before the response{to} arrived")?;
                write_reason(f, reason, source.as_ref())?;
                f.write_str(outcome)
            }
            Self::ServerExited {
                exit,
                stderr,
                unsent,
            } => {
                f.write_str("server process exited")?;
                if let Some(exit) = exit {
                    write!(f, " ({exit})")?;
                }
                match unsent {
                    true => f.write_str("; the request was not sent")?,
                    false => write!(f, " before it responded{to}{outcome}")?,
                }
                match stderr.as_slice() {
                    [] => Ok(()),
                    lines => write!(f, "; stderr: {}", Printable(lines.join(" | "))),
                }
            }
            #[cfg(feature = "auth")]
            Self::AuthorizationFailed(error) => write!(f, "authorization failed: {error}"),
            Self::InvalidResponse { reason } => {
                write!(f, "invalid response from server{to}: {}", Printable(reason))
            }
            Self::HandshakeFailed(error) => write!(f, "handshake failed: {error}"),
            Self::AllAttemptsFailed { cause, attempts } => {
                cause.write(f, to, "")?;
                // In full, because their sources are not sources of this error.
                let in_full = |attempt| format!("{attempt:#}");
                let attempts: Vec<_> = attempts.iter().map(in_full).collect();
                write!(f, " (attempts: {})", attempts.join("; "))
            }
            Self::TooManyRounds { rounds } => write!(
                f,
                "server requested input {rounds} times without returning a result{to} (`max_input_rounds`)"
            ),
            Self::TooMuchUnsent { limit } => write!(
                f,
                "unsent messages exceed {limit} bytes; the request{to} was not sent"
            ),
            Self::LimitExceeded(reason) => f.write_str(reason),
            Self::ResultNotResolved { cause } => {
                cause.write(f, "", outcome)?;
                write!(f, " (while the extension's response{to} was resolved)")
            }
            Self::InputRequestFailed {
                method: Some(method),
                error,
            } => {
                let method = Printable(method);
                write!(
                    f,
                    "input request of the server failed in this client: `{method}`: {error}"
                )
            }
            Self::InputRequestFailed {
                method: None,
                error,
            } => write!(f, "handler of the extension failed: {error}"),
            Self::ToolCallRefused { reason } => {
                write!(f, "tool call refused: {}", Printable(reason))
            }
            Self::NotRecorded { reason } => write!(f, "request{to} not recorded: {reason}{outcome}"),
            Self::NotSupported(reason) => write!(f, "not supported: {}", Printable(reason)),
            Self::Closed => f.write_str("client is closed"),
            Self::Usage(reason) => f.write_str(reason),
        }
    }
}

/// One attempt of the client to connect, and its error.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectAttempt {
    /// The request: `server/discover` or `initialize`.
    pub method: &'static str,
    /// Whether it was sent over HTTP+SSE (2024-11-05).
    pub over_http_sse: bool,
    /// The error.
    pub error: ClientError,
}

impl fmt::Display for ConnectAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let over = match self.over_http_sse {
            true => " over HTTP+SSE",
            false => "",
        };
        write!(f, "`{}`{over}: ", self.method)?;
        ShortError(&self.error).fmt(f)
    }
}

/// Maximum size of an HTTP body in an error: enough for a message, not for a page of HTML.
pub const MAX_KEPT_BODY: usize = 4 * 1024;

impl ClientError {
    /// Returns the actual error: the cause of [`AllAttemptsFailed`](Self::AllAttemptsFailed) or
    /// [`ResultNotResolved`](Self::ResultNotResolved), otherwise this one.
    pub fn cause(&self) -> &Self {
        match self {
            Self::AllAttemptsFailed { cause, .. } | Self::ResultNotResolved { cause } => {
                cause.cause()
            }
            other => other,
        }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self.cause() {
            Self::Rpc(_) => ErrorKind::Rpc,
            Self::RequestTimedOut { .. } => ErrorKind::RequestTimedOut,
            Self::Http { .. } => ErrorKind::Http,
            Self::SessionExpired => ErrorKind::SessionExpired,
            Self::ServerUnreachable { .. } => ErrorKind::ServerUnreachable,
            Self::ConnectionLost { .. } => ErrorKind::ConnectionLost,
            Self::ServerExited { .. } => ErrorKind::ServerExited,
            #[cfg(feature = "auth")]
            Self::AuthorizationFailed(_) => ErrorKind::AuthorizationFailed,
            Self::InvalidResponse { .. } => ErrorKind::InvalidResponse,
            Self::HandshakeFailed(HandshakeError::TimedOut { .. }) => ErrorKind::HandshakeTimedOut,
            Self::HandshakeFailed(_)
            | Self::AllAttemptsFailed { .. }
            | Self::ResultNotResolved { .. } => ErrorKind::HandshakeFailed,
            Self::TooManyRounds { .. } | Self::TooMuchUnsent { .. } | Self::LimitExceeded(_) => {
                ErrorKind::LimitExceeded
            }
            Self::InputRequestFailed { .. } => ErrorKind::InputRequestFailed,
            Self::ToolCallRefused { .. } => ErrorKind::ToolCallRefused,
            Self::NotRecorded { .. } => ErrorKind::Transport,
            Self::NotSupported(_) => ErrorKind::NotSupported,
            Self::Closed => ErrorKind::Closed,
            Self::Usage(_) => ErrorKind::Usage,
        }
    }

    /// Returns whether the server certainly did not perform the request, so that sending it again cannot perform it
    /// twice.
    pub fn is_retry_safe(&self) -> bool {
        if matches!(self, Self::ResultNotResolved { .. }) {
            // What the cause says is about another request.
            return false;
        }
        self.kind() == ErrorKind::AuthorizationFailed
            || matches!(
                self.cause(),
                Self::SessionExpired
                    | Self::ServerUnreachable { .. }
                    | Self::TooMuchUnsent { .. }
                    | Self::ServerExited { unsent: true, .. }
            )
    }

    /// Returns whether it is unknown if the server performed the request.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(
            self.cause(),
            Self::RequestTimedOut { .. }
                | Self::ConnectionLost { .. }
                | Self::ServerExited { unsent: false, .. }
                | Self::NotRecorded { .. }
        )
    }

    /// Returns the action that failed, if the error determines it: `connect`, `tools/call`. The sender of a request
    /// knows its method.
    pub fn operation(&self) -> Option<&'static str> {
        match self {
            Self::HandshakeFailed(_) | Self::AllAttemptsFailed { .. } => Some("connect"),
            Self::ToolCallRefused { .. } => Some("tools/call"),
            _ => None,
        }
    }

    /// Returns the JSON-RPC error of the server, from a response or the body of an HTTP status.
    pub fn rpc(&self) -> Option<&RpcError> {
        match self.cause() {
            Self::Rpc(error) | Self::HandshakeFailed(HandshakeError::Refused(error)) => Some(error),
            Self::Http { error, .. } => error.as_deref(),
            _ => None,
        }
    }

    /// Creates the error for a server that can't be reached.
    pub(crate) fn unreachable(reason: impl Into<String>) -> Self {
        Self::ServerUnreachable {
            reason: reason.into(),
            source: None,
        }
    }

    /// Creates the error for a connection that ended while a response was awaited.
    pub(crate) fn lost(reason: impl Into<String>) -> Self {
        Self::ConnectionLost {
            reason: reason.into(),
            source: None,
        }
    }

    /// Creates the error for a connection that broke with this I/O error while a response was awaited.
    pub(crate) fn broken(error: std::io::Error) -> Self {
        Self::ConnectionLost {
            reason: String::new(),
            source: Some(error.into()),
        }
    }
}

impl From<InvalidRoot> for ClientError {
    fn from(error: InvalidRoot) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<OutgoingRequestError> for ClientError {
    fn from(error: OutgoingRequestError) -> Self {
        match error {
            OutgoingRequestError::Rpc(error) => Self::Rpc(error),
            OutgoingRequestError::TimedOut { waited, in_all } => {
                Self::RequestTimedOut { waited, in_all }
            }
            OutgoingRequestError::Unreadable(reason) => Self::InvalidResponse { reason },
            _ => Self::lost("the connection was closed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_escape_terminal_sequences_of_the_server() {
        let hostile = "\u{1b}]0;title\u{7}\u{1b}[31mred\nforged\u{202e}".to_owned();
        let shown = "red forged\u{fffd}";
        let errors = [
            ClientError::Rpc(RpcError::internal_error(hostile.clone())),
            ClientError::Http {
                status: 500,
                body: hostile.clone(),
                challenge: None,
                error: None,
            },
            ClientError::lost(hostile.clone()),
            ClientError::ServerExited {
                exit: None,
                stderr: vec![hostile.clone()],
                unsent: false,
            },
            ClientError::InvalidResponse {
                reason: hostile.clone(),
            },
            ClientError::HandshakeFailed(HandshakeError::Invalid {
                method: "initialize",
                reason: hostile.clone(),
            }),
            #[cfg(feature = "auth")]
            ClientError::AuthorizationFailed(AuthError::AuthorizationServerError {
                error: hostile.clone(),
                description: Some(hostile.clone()),
            }),
        ];
        for error in errors {
            let text = error.to_string();
            assert!(text.contains(shown), "{text:?}");
            assert!(!text.contains(char::is_control), "{text:?}");
        }
    }
}
