//! What can go wrong between a client and its server, and whether asking again is safe.

use std::time::Duration;

#[cfg(feature = "auth")]
use mcpline_protocol::auth::AuthError;
use mcpline_protocol::client::{CallError, OpenError};
use mcpline_protocol::{InvalidRoot, Printable, RpcError};

/// Why something that was asked of a server has no result. Cheap to clone: a failure may end many requests.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server answered with a JSON-RPC error.
    #[error("the server answered with an error: {0}")]
    Rpc(RpcError),
    /// No answer came in time. Whether the server did what was asked is not known.
    #[error("no answer within {} s{}", waited.as_secs_f64(), if *in_all { " in all" } else { "" })]
    TimedOut {
        /// How long was waited: without a sign of life, or in all.
        waited: Duration,
        /// Whether it is the maximum that is over, which no progress extends.
        in_all: bool,
    },
    /// The server answered with an HTTP status instead of a message.
    #[error("the server answered with HTTP status {status}{}", excerpt(body))]
    Http {
        /// The status.
        status: u16,
        /// The beginning of the body, [`MAX_KEPT_BODY`] bytes at most.
        body: String,
        /// The `WWW-Authenticate` header, if there was one.
        challenge: Option<String>,
        /// The JSON-RPC error in the body, if there was one.
        error: Option<Box<RpcError>>,
    },
    /// The session is gone (HTTP 404), or the one that a list's cursor is of: the server did nothing of what was asked. A
    /// list has to be begun anew.
    #[error("the server no longer knows the session")]
    SessionLost,
    /// The server could not be reached: it was never asked.
    #[error("the server can't be reached: {}", Printable(reason))]
    Unreachable {
        /// What the system says.
        reason: String,
    },
    /// The connection, the stream or the process ended before the answer came. Whether the server did what was
    /// asked is not known.
    #[error(
        "the connection was lost before the answer came: {}",
        Printable(reason)
    )]
    ConnectionLost {
        /// What is known of it.
        reason: String,
    },
    /// The server's process ended.
    #[error("the server ended{}{}", exit.as_deref().map(|exit| format!(" ({exit})")).unwrap_or_default(), last_words(stderr))]
    Exited {
        /// How: "exit status: 1", "signal: 9 (SIGKILL)".
        exit: Option<String>,
        /// The last lines that it wrote to stderr, where they are captured.
        stderr: Vec<String>,
        /// Whether the request never reached it.
        unsent: bool,
    },
    /// There is no token that the server would take. The request had no effect.
    #[cfg(feature = "auth")]
    #[error("{0}")]
    Authorization(AuthError),
    /// What came from the server is not what the protocol, or a schema of its own, demands.
    #[error("the server's answer is invalid: {}", Printable(reason))]
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// The conversation could not be opened.
    #[error("{0}")]
    Open(OpenError),
    /// The conversation could not be opened in any of several ways.
    #[error("{cause} (tried {})", each(attempts))]
    NotOpened {
        /// The failure that tells most: its kind, its status and its JSON-RPC error are those of this one.
        cause: Box<ClientError>,
        /// What was tried, in order, and how each failed.
        attempts: Vec<ConnectAttempt>,
    },
    /// The server asked for input more often than `ClientSettings::max_rounds` allows.
    #[error("the server asked for input {rounds} times without giving a result")]
    TooManyRounds {
        /// How often it asked.
        rounds: usize,
    },
    /// A question of the server could not be answered: the host has no handler for it, or the handler failed. The
    /// request in whose course it came was given up (2026-07-28).
    #[error("a question of the server could not be answered: {0}")]
    Unanswered(RpcError),
    /// The host's hook refused the tool call; it was not sent.
    #[error("the tool call was refused: {}", Printable(reason))]
    ToolCallRefused {
        /// The hook's reason.
        reason: String,
    },
    /// The revision or the server doesn't have what was asked for; it was not sent.
    #[error("{}", Printable(.0))]
    Unsupported(String),
    /// The client was closed, or the request was cancelled by its caller.
    #[error("the client is closed")]
    Closed,
    /// The client was used wrongly; nothing was sent.
    #[error("{0}")]
    Misuse(String),
}

/// One way that was tried to open a conversation, and how it failed.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectAttempt {
    /// What was asked: `server/discover` or `initialize`.
    pub method: &'static str,
    /// Whether it was asked over HTTP+SSE (2024-11-05).
    pub over_http_sse: bool,
    /// How it failed.
    pub error: ClientError,
}

impl std::fmt::Display for ConnectAttempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let over = match self.over_http_sse {
            true => " over HTTP+SSE",
            false => "",
        };
        write!(f, "`{}`{over}: {}", self.method, self.error)
    }
}

/// How much of an HTTP body an error keeps: enough for a message, not for a page of HTML.
pub const MAX_KEPT_BODY: usize = 4 * 1024;

/// What kind of failure a [`ClientError`] is: the unit by which bindings translate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientErrorKind {
    /// The server answered with an error.
    Rpc,
    /// No answer in time.
    TimedOut,
    /// An HTTP status instead of an answer.
    Http,
    /// The connection, the session or the process ended, or there never was one.
    Connection,
    /// The server demands a token, and none could be had that it takes.
    Authorization,
    /// What the server said breaks the protocol or a schema.
    Invalid,
    /// No conversation could be opened.
    Open,
    /// A handler of the host had no answer to a question of the server.
    Unanswered,
    /// The host's hook refused a tool call.
    Refused,
    /// Not offered by this server, or not in this revision.
    Unsupported,
    /// The client is closed.
    Closed,
    /// The caller's mistake.
    Misuse,
}

impl ClientErrorKind {
    /// Every kind, for bindings that must map each.
    pub const ALL: &'static [Self] = &[
        Self::Rpc,
        Self::TimedOut,
        Self::Http,
        Self::Connection,
        Self::Authorization,
        Self::Invalid,
        Self::Open,
        Self::Unanswered,
        Self::Refused,
        Self::Unsupported,
        Self::Closed,
        Self::Misuse,
    ];

    /// A stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rpc => "rpc",
            Self::TimedOut => "timed_out",
            Self::Http => "http",
            Self::Connection => "connection",
            Self::Authorization => "authorization",
            Self::Invalid => "invalid",
            Self::Open => "open",
            Self::Unanswered => "unanswered",
            Self::Refused => "refused",
            Self::Unsupported => "unsupported",
            Self::Closed => "closed",
            Self::Misuse => "misuse",
        }
    }
}

impl ClientError {
    /// The failure itself: the cause of [`NotOpened`](Self::NotOpened), else this one.
    pub fn cause(&self) -> &Self {
        match self {
            Self::NotOpened { cause, .. } => cause,
            other => other,
        }
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> ClientErrorKind {
        match self.cause() {
            Self::NotOpened { .. } => ClientErrorKind::Open,
            Self::Rpc(_) => ClientErrorKind::Rpc,
            Self::TimedOut { .. } => ClientErrorKind::TimedOut,
            Self::Http { .. } => ClientErrorKind::Http,
            Self::SessionLost
            | Self::Unreachable { .. }
            | Self::ConnectionLost { .. }
            | Self::Exited { .. } => ClientErrorKind::Connection,
            #[cfg(feature = "auth")]
            Self::Authorization(_) => ClientErrorKind::Authorization,
            Self::Invalid { .. } | Self::TooManyRounds { .. } => ClientErrorKind::Invalid,
            Self::Open(_) => ClientErrorKind::Open,
            Self::Unanswered(_) => ClientErrorKind::Unanswered,
            Self::ToolCallRefused { .. } => ClientErrorKind::Refused,
            Self::Unsupported(_) => ClientErrorKind::Unsupported,
            Self::Closed => ClientErrorKind::Closed,
            Self::Misuse(_) => ClientErrorKind::Misuse,
        }
    }

    /// Whether the server certainly did nothing of what was asked, so that asking again can't do it twice.
    pub fn is_retry_safe(&self) -> bool {
        self.kind() == ClientErrorKind::Authorization
            || matches!(
                self.cause(),
                Self::SessionLost | Self::Unreachable { .. } | Self::Exited { unsent: true, .. }
            )
    }

    /// Whether it is not known what the server did.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(
            self.cause(),
            Self::TimedOut { .. }
                | Self::ConnectionLost { .. }
                | Self::Exited { unsent: false, .. }
        )
    }

    /// The JSON-RPC error that the server gave, as an answer or in the body of an HTTP status.
    pub fn rpc(&self) -> Option<&RpcError> {
        match self.cause() {
            Self::Rpc(error) | Self::Open(OpenError::Refused(error)) => Some(error),
            Self::Http { error, .. } => error.as_deref(),
            _ => None,
        }
    }

    /// A connection that broke with this I/O error while an answer was awaited.
    pub(crate) fn lost(error: impl std::fmt::Display) -> Self {
        Self::ConnectionLost {
            reason: error.to_string(),
        }
    }
}

impl From<InvalidRoot> for ClientError {
    fn from(error: InvalidRoot) -> Self {
        Self::Misuse(error.to_string())
    }
}

impl From<CallError> for ClientError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Rpc(error) => Self::Rpc(error),
            CallError::TimedOut { waited, in_all } => Self::TimedOut { waited, in_all },
            CallError::Unreadable(reason) => Self::Invalid { reason },
            _ => Self::ConnectionLost {
                reason: "the connection was closed".to_owned(),
            },
        }
    }
}

fn each(attempts: &[ConnectAttempt]) -> String {
    let attempts: Vec<_> = attempts.iter().map(ToString::to_string).collect();
    attempts.join("; ")
}

fn excerpt(body: &str) -> String {
    const SHOWN: usize = 200;
    let text = body.trim();
    match text.char_indices().nth(SHOWN) {
        _ if text.is_empty() => String::new(),
        Some((end, _)) => format!(": {}…", Printable(&text[..end])),
        None => format!(": {}", Printable(text)),
    }
}

fn last_words(stderr: &[String]) -> String {
    match stderr {
        [] => String::new(),
        lines => format!(". Its last words: {}", Printable(lines.join(" | "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_acts_on_no_terminal() {
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
            ClientError::ConnectionLost {
                reason: hostile.clone(),
            },
            ClientError::Exited {
                exit: None,
                stderr: vec![hostile.clone()],
                unsent: false,
            },
            ClientError::Invalid {
                reason: hostile.clone(),
            },
            ClientError::Open(OpenError::Invalid {
                method: "initialize",
                reason: hostile.clone(),
            }),
            #[cfg(feature = "auth")]
            ClientError::Authorization(AuthError::Refused {
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
