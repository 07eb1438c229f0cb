//! What a failure of a client is in a foreign language: a class by its name, and its members.

use std::time::Duration;

use mcpline_protocol::RpcError;
#[cfg(feature = "auth")]
use mcpline_protocol::auth::AuthError;
use mcpline_protocol::client::OpenError;
use serde::Serialize;

use crate::client::{ClientError, ClientErrorKind};

/// A failure of a client, in words that every binding translates: as JSON `{"class", "message", "members"}`.
#[derive(Debug, Serialize)]
pub struct Failure<'e> {
    /// The name of its class. Languages may add their own suffix.
    pub class: FailureClass,
    /// A sentence for people.
    pub message: String,
    /// Whatever else is known.
    pub members: FailureMembers<'e>,
}

/// The classes of failures of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum FailureClass {
    /// The server answered with a JSON-RPC error.
    ServerError,
    /// No answer came in time.
    RequestTimedOut,
    /// The server answered with an HTTP status.
    HttpError,
    /// The server can't be reached, or the connection ended.
    ConnectionFailed,
    /// The server demands a token, and there is none that it takes.
    AuthorizationFailed,
    /// The server's process ended.
    ServerExited,
    /// What the server said can't be.
    InvalidAnswer,
    /// No conversation could be opened.
    OpenFailed,
    /// The server was reached, but did not open a conversation in time.
    OpenTimedOut,
    /// A question of the server had no answer.
    QuestionUnanswered,
    /// The host's hook refused the tool call.
    ToolCallRefused,
    /// The server or the revision doesn't have it.
    NotSupported,
    /// The client is closed.
    ClientClosed,
    /// The client was used wrongly: a class that is not only of clients.
    UsageError,
}

impl FailureClass {
    /// The name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ServerError => "ServerError",
            Self::RequestTimedOut => "RequestTimedOut",
            Self::HttpError => "HttpError",
            Self::ConnectionFailed => "ConnectionFailed",
            Self::AuthorizationFailed => "AuthorizationFailed",
            Self::ServerExited => "ServerExited",
            Self::InvalidAnswer => "InvalidAnswer",
            Self::OpenFailed => "OpenFailed",
            Self::OpenTimedOut => "OpenTimedOut",
            Self::QuestionUnanswered => "QuestionUnanswered",
            Self::ToolCallRefused => "ToolCallRefused",
            Self::NotSupported => "NotSupported",
            Self::ClientClosed => "ClientClosed",
            Self::UsageError => "UsageError",
        }
    }
}

/// What is known of a failure.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct FailureMembers<'e> {
    /// Whether the server certainly did nothing of what was asked.
    pub retry_safe: bool,
    /// Whether it is not known what the server did.
    pub outcome_unknown: bool,
    /// The JSON-RPC error that was given: the answer itself, in the body of an HTTP status, or to a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'e RpcError>,
    /// What only failures of one class have.
    #[serde(flatten)]
    pub details: FailureDetails<'e>,
}

/// What only failures of one class have.
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum FailureDetails<'e> {
    /// Nothing.
    None {},
    /// [`FailureClass::RequestTimedOut`]
    TimedOut {
        /// In seconds.
        waited: f64,
        /// Whether it is the wait in all that is over.
        in_all: bool,
    },
    /// [`FailureClass::HttpError`]
    Http {
        /// The status.
        status: u16,
        /// The beginning of the body.
        body: &'e str,
        /// The `WWW-Authenticate` header.
        challenge: Option<&'e str>,
    },
    /// [`FailureClass::AuthorizationFailed`]
    Authorization {
        /// What failed, by its stable name (`AuthError::code`).
        reason: &'static str,
    },
    /// [`FailureClass::ServerExited`]
    Exited {
        /// How.
        exit: Option<&'e str>,
        /// Its last words.
        stderr: &'e [String],
    },
}

impl<'e> Failure<'e> {
    /// What there is to say of a failure.
    pub fn of(error: &'e ClientError) -> Self {
        let details = match error.cause() {
            ClientError::TimedOut { waited, in_all } => FailureDetails::TimedOut {
                waited: waited.as_secs_f64(),
                in_all: *in_all,
            },
            ClientError::Http {
                status,
                body,
                challenge,
                ..
            } => FailureDetails::Http {
                status: *status,
                body,
                challenge: challenge.as_deref(),
            },
            #[cfg(feature = "auth")]
            ClientError::Authorization(error) => FailureDetails::Authorization {
                reason: error.code(),
            },
            ClientError::Exited { exit, stderr, .. } => FailureDetails::Exited {
                exit: exit.as_deref(),
                stderr,
            },
            _ => FailureDetails::None {},
        };
        let given = match error.cause() {
            ClientError::Unanswered(given) => Some(given),
            error => error.rpc(),
        };
        Self {
            class: class_of(error),
            message: error.to_string(),
            members: FailureMembers {
                retry_safe: error.is_retry_safe(),
                outcome_unknown: error.is_outcome_unknown(),
                error: given,
                details,
            },
        }
    }
}

fn class_of(error: &ClientError) -> FailureClass {
    match (error.kind(), error.cause()) {
        (ClientErrorKind::Rpc, _) => FailureClass::ServerError,
        (ClientErrorKind::TimedOut, _) => FailureClass::RequestTimedOut,
        (ClientErrorKind::Http, _) => FailureClass::HttpError,
        (ClientErrorKind::Connection, ClientError::Exited { .. }) => FailureClass::ServerExited,
        (ClientErrorKind::Connection, _) => FailureClass::ConnectionFailed,
        (ClientErrorKind::Authorization, _) => FailureClass::AuthorizationFailed,
        (ClientErrorKind::Invalid, _) => FailureClass::InvalidAnswer,
        (ClientErrorKind::Open, ClientError::Open(OpenError::TimedOut { .. })) => {
            FailureClass::OpenTimedOut
        }
        (ClientErrorKind::Open, _) => FailureClass::OpenFailed,
        (ClientErrorKind::Unanswered, _) => FailureClass::QuestionUnanswered,
        (ClientErrorKind::Refused, _) => FailureClass::ToolCallRefused,
        (ClientErrorKind::Unsupported, _) => FailureClass::NotSupported,
        (ClientErrorKind::Closed, _) => FailureClass::ClientClosed,
        (ClientErrorKind::Misuse, _) => FailureClass::UsageError,
    }
}

/// Failures of every kind and every class: for the test of a binding that it forgets none.
pub fn failure_examples() -> Vec<ClientError> {
    let rpc = || RpcError::invalid_params("no");
    let waited = Duration::from_secs(1);
    vec![
        ClientError::Rpc(rpc()),
        ClientError::TimedOut {
            waited,
            in_all: false,
        },
        ClientError::Http {
            status: 401,
            body: "no".to_owned(),
            challenge: Some("Bearer".to_owned()),
            error: Some(Box::new(rpc())),
        },
        ClientError::SessionLost,
        ClientError::Unreachable {
            reason: "no route".to_owned(),
        },
        ClientError::ConnectionLost {
            reason: "reset".to_owned(),
        },
        ClientError::Exited {
            exit: Some("exit status: 1".to_owned()),
            stderr: vec!["last words".to_owned()],
            unsent: false,
        },
        #[cfg(feature = "auth")]
        ClientError::Authorization(AuthError::Unattended("nobody is there".to_owned())),
        ClientError::Invalid {
            reason: "no JSON".to_owned(),
        },
        ClientError::TooManyRounds { rounds: 10 },
        ClientError::Open(OpenError::Refused(rpc())),
        ClientError::Open(OpenError::TimedOut {
            method: "initialize",
            waited,
        }),
        ClientError::Unanswered(rpc()),
        ClientError::ToolCallRefused {
            reason: "no".to_owned(),
        },
        ClientError::Unsupported("not here".to_owned()),
        ClientError::Closed,
        ClientError::Misuse("no object".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn described(error: &ClientError) -> Value {
        serde_json::to_value(Failure::of(error)).unwrap()
    }

    #[test]
    fn there_is_an_example_of_every_kind() {
        let examples = failure_examples();
        for kind in ClientErrorKind::ALL {
            assert!(
                examples.iter().any(|error| error.kind() == *kind),
                "{}",
                kind.as_str()
            );
        }
    }

    #[test]
    fn a_class_is_written_as_its_name() {
        for error in failure_examples() {
            let class = Failure::of(&error).class;
            assert_eq!(described(&error)["class"], class.as_str());
        }
    }

    #[test]
    fn everything_that_is_known_is_told() {
        let error = ClientError::Rpc(RpcError::invalid_params("no").with_data(&json!([1])));
        assert_eq!(
            described(&error)["members"],
            json!({"retry_safe": false, "outcome_unknown": false,
                   "error": {"code": -32602, "message": "no", "data": [1]}})
        );
        let error = ClientError::Exited {
            exit: None,
            stderr: vec!["oh".to_owned()],
            unsent: true,
        };
        assert_eq!(
            described(&error)["members"],
            json!({"retry_safe": true, "outcome_unknown": false, "exit": null, "stderr": ["oh"]})
        );
        let error = ClientError::Http {
            status: 401,
            body: "no".to_owned(),
            challenge: None,
            error: None,
        };
        assert_eq!(
            described(&error)["members"],
            json!({"retry_safe": false, "outcome_unknown": false,
                   "status": 401, "body": "no", "challenge": null})
        );
        let not_opened = ClientError::NotOpened {
            cause: Box::new(error.clone()),
            attempts: Vec::new(),
        };
        assert_eq!(
            described(&not_opened)["members"],
            described(&error)["members"]
        );
        assert_eq!(described(&not_opened)["class"], "HttpError");
        let error = ClientError::TimedOut {
            waited: Duration::from_millis(1500),
            in_all: true,
        };
        assert_eq!(
            described(&error)["members"],
            json!({"retry_safe": false, "outcome_unknown": true, "waited": 1.5, "in_all": true})
        );
    }
}
