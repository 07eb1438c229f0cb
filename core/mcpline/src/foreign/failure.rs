//! Errors as every binding raises them: a kind, a message, and the same facts in every language.

#[cfg(feature = "client")]
use std::time::Duration;

#[cfg(all(feature = "client", feature = "auth"))]
use mcpline_auth::AuthError;
use mcpline_protocol::RpcError;
#[cfg(feature = "client")]
use mcpline_protocol::client::HandshakeError;
#[cfg(feature = "server")]
use mcpline_protocol::session::InputRequestError;
use serde_json::{Map, Value};

#[cfg(feature = "client")]
use crate::client::ClientError;
#[cfg(feature = "client")]
use crate::client_error::{ErrorOfMethod, reason_text};
use crate::{Error, ErrorKind};

/// An error of the core, for other languages.
#[derive(Debug)]
pub struct Failure<'e> {
    /// Determines the class or status code.
    pub kind: ErrorKind,
    /// The message for people.
    pub message: String,
    /// Whether the peer certainly did not perform the request, so that sending it again cannot perform it twice.
    pub retry_safe: bool,
    /// Whether it is unknown if the peer performed the request.
    pub outcome_unknown: bool,
    /// The method or action that failed: `tools/call`, `connect`, `listen`.
    pub operation: Option<&'e str>,
    /// The cause.
    pub source: Option<FailureCause<'e>>,
    /// Facts that only errors of one kind have.
    pub details: FailureDetails<'e>,
    /// Whether a handler that propagates this error fails with its message as a tool error, which the model reads.
    /// Otherwise the message goes to the log.
    pub is_for_model: bool,
    /// Inserts the method into the message.
    #[cfg(feature = "client")]
    client_error: Option<&'e ClientError>,
}

/// The cause of an error.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FailureCause<'e> {
    /// A JSON-RPC error: the response itself, in the body of an HTTP status, or to an input request.
    Rpc(&'e RpcError),
    /// An error of the system or the validator.
    Text(String),
}

/// Facts that only errors of one kind have.
#[derive(Debug)]
#[non_exhaustive]
pub enum FailureDetails<'e> {
    /// Nothing.
    None,
    /// [`ErrorKind::RequestTimedOut`], [`ErrorKind::HandshakeTimedOut`]
    TimedOut {
        /// In seconds.
        waited: f64,
        /// Whether the total timeout elapsed.
        in_all: bool,
    },
    /// [`ErrorKind::Http`]
    Http {
        /// The status.
        status: u16,
        /// The beginning of the body.
        body: &'e str,
        /// The `WWW-Authenticate` header.
        challenge: Option<&'e str>,
    },
    /// [`ErrorKind::AuthorizationFailed`]
    Authorization {
        /// What failed, by its stable name (`AuthError::code`).
        reason: &'static str,
    },
    /// [`ErrorKind::ServerExited`]
    Exited {
        /// The exit status.
        exit: Option<&'e str>,
        /// The last lines of stderr.
        stderr: &'e [String],
    },
    /// [`ErrorKind::NotSupported`], where a client lacks a capability.
    Required(Value),
}

impl<'e> Failure<'e> {
    pub(super) fn new(kind: ErrorKind, message: String) -> Self {
        Self {
            kind,
            message,
            retry_safe: false,
            outcome_unknown: false,
            operation: None,
            source: None,
            details: FailureDetails::None,
            is_for_model: false,
            #[cfg(feature = "client")]
            client_error: None,
        }
    }

    /// Sets the method or action that failed, unless the error itself has one.
    #[must_use]
    pub fn with_operation(mut self, operation: &'e str) -> Self {
        if self.operation.is_none() && !operation.is_empty() {
            self.operation = Some(operation);
            #[cfg(feature = "client")]
            if let Some(error) = self.client_error.filter(|_| is_request_method(operation)) {
                self.message = format!("{:#}", ErrorOfMethod(error, operation));
            }
        }
        self
    }

    /// Creates a failure from an error of a server, a builder or the library.
    pub fn of_error(error: &Error) -> Self {
        let source = std::error::Error::source(error);
        Self {
            operation: error.operation(),
            source: source.map(|source| FailureCause::Text(source.to_string())),
            ..Self::new(error.kind(), format!("{error:#}"))
        }
    }

    /// Creates a failure from an error of a client.
    #[cfg(feature = "client")]
    pub fn of_client(error: &'e ClientError) -> Self {
        let cause = error.cause();
        let details = match cause {
            ClientError::RequestTimedOut { waited, in_all } => FailureDetails::TimedOut {
                waited: waited.as_secs_f64(),
                in_all: *in_all,
            },
            ClientError::HandshakeFailed(HandshakeError::TimedOut { waited, .. }) => {
                FailureDetails::TimedOut {
                    waited: waited.as_secs_f64(),
                    in_all: true,
                }
            }
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
            ClientError::AuthorizationFailed(error) => FailureDetails::Authorization {
                reason: error.code(),
            },
            ClientError::ServerExited { exit, stderr, .. } => FailureDetails::Exited {
                exit: exit.as_deref(),
                stderr,
            },
            _ => FailureDetails::None,
        };
        let rpc = match cause {
            ClientError::InputRequestFailed { error, .. } => Some(error),
            error => error.rpc(),
        };
        let source = match (cause, rpc) {
            (_, Some(error)) => Some(FailureCause::Rpc(error)),
            (
                ClientError::ServerUnreachable { reason, source }
                | ClientError::ConnectionLost { reason, source },
                _,
            ) => Some(FailureCause::Text(reason_text(reason, source.as_ref()))),
            (
                ClientError::InvalidResponse { reason } | ClientError::ToolCallRefused { reason },
                _,
            ) => Some(FailureCause::Text(reason.clone())),
            // Without the text about the result, which a resolver that passes the error on would repeat.
            (cause, None) if matches!(error, ClientError::ResultNotResolved { .. }) => {
                Some(FailureCause::Text(format!("{cause:#}")))
            }
            _ => None,
        };
        Self {
            retry_safe: error.is_retry_safe(),
            outcome_unknown: error.is_outcome_unknown(),
            operation: error.operation(),
            source,
            details,
            client_error: Some(error),
            ..Self::new(error.kind(), format!("{error:#}"))
        }
    }

    /// Creates a failure from an error of a server's input request.
    #[cfg(feature = "server")]
    pub fn of_input_request(error: &'e InputRequestError) -> Self {
        let kind = ErrorKind::from(error);
        let details = match error {
            InputRequestError::NotSupported(need) => FailureDetails::Required(need.required()),
            InputRequestError::TimedOut { waited, in_all, .. } => FailureDetails::TimedOut {
                waited: waited.as_secs_f64(),
                in_all: *in_all,
            },
            _ => FailureDetails::None,
        };
        let source = match error {
            InputRequestError::Rpc { error, .. } | InputRequestError::Refused { error, .. } => {
                Some(FailureCause::Rpc(error))
            }
            InputRequestError::InvalidResponse { reason, .. } => {
                Some(FailureCause::Text(reason.clone()))
            }
            _ => None,
        };
        // A missing capability is an error of the protocol, and a mistake of the author belongs to the log.
        let is_for_model = match kind {
            ErrorKind::NotSupported => matches!(error, InputRequestError::Inexpressible(_)),
            ErrorKind::InputRequestFailed
            | ErrorKind::InvalidResponse
            | ErrorKind::RequestTimedOut
            | ErrorKind::LimitExceeded => true,
            _ => false,
        };
        Self {
            outcome_unknown: matches!(kind, ErrorKind::RequestTimedOut | ErrorKind::ConnectionLost),
            source,
            is_for_model,
            details,
            ..Self::new(kind, error.to_string())
        }
    }

    /// Returns the JSON-RPC error that the peer returned.
    pub fn rpc(&self) -> Option<&'e RpcError> {
        match self.source {
            Some(FailureCause::Rpc(error)) => Some(error),
            _ => None,
        }
    }

    /// Returns all facts except kind and message, as the members of a JSON object. Times are in seconds.
    pub fn members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        let mut set = |name: &str, value: Value| {
            members.insert(name.to_owned(), value);
        };
        set("retry_safe", self.retry_safe.into());
        set("outcome_unknown", self.outcome_unknown.into());
        if let Some(operation) = self.operation {
            set("operation", operation.into());
        }
        match &self.source {
            // Cannot fail: its keys are strings.
            Some(FailureCause::Rpc(error)) => {
                set("source", serde_json::to_value(error).unwrap_or_default())
            }
            Some(FailureCause::Text(text)) => set("source", text.as_str().into()),
            None => {}
        }
        match &self.details {
            FailureDetails::None => {}
            FailureDetails::TimedOut { waited, in_all } => {
                set("waited", (*waited).into());
                set("in_all", (*in_all).into());
            }
            FailureDetails::Http {
                status,
                body,
                challenge,
            } => {
                set("status", (*status).into());
                set("body", (*body).into());
                set("challenge", (*challenge).into());
            }
            FailureDetails::Authorization { reason } => set("reason", (*reason).into()),
            FailureDetails::Exited { exit, stderr } => {
                set("exit", (*exit).into());
                set("stderr", (*stderr).into());
            }
            FailureDetails::Required(required) => set("required", required.clone()),
        }
        members
    }
}

/// Whether an operation is a request, not an action of this library.
#[cfg(feature = "client")]
fn is_request_method(operation: &str) -> bool {
    !matches!(operation, "connect" | "listen" | "serve")
}

/// Returns examples of client errors of every kind, which the tests of each binding cover.
#[cfg(feature = "client")]
pub fn client_error_examples() -> Vec<ClientError> {
    let rpc = || RpcError::invalid_params("no");
    let waited = Duration::from_secs(1);
    vec![
        ClientError::Rpc(rpc()),
        ClientError::RequestTimedOut {
            waited,
            in_all: false,
        },
        ClientError::Http {
            status: 401,
            body: "no".to_owned(),
            challenge: Some("Bearer".to_owned()),
            error: Some(Box::new(rpc())),
        },
        ClientError::SessionExpired,
        ClientError::unreachable("no route"),
        ClientError::lost("reset"),
        ClientError::ServerExited {
            exit: Some("exit status: 1".to_owned()),
            stderr: vec!["last words".to_owned()],
            unsent: false,
        },
        #[cfg(feature = "auth")]
        ClientError::AuthorizationFailed(AuthError::Unattended("no terminal".to_owned())),
        ClientError::InvalidResponse {
            reason: "not JSON".to_owned(),
        },
        ClientError::LimitExceeded("too many results are being resolved".to_owned()),
        ClientError::TooManyRounds { rounds: 10 },
        ClientError::TooMuchUnsent { limit: 1 },
        ClientError::HandshakeFailed(HandshakeError::Refused(rpc())),
        ClientError::HandshakeFailed(HandshakeError::TimedOut {
            method: "initialize",
            waited,
            is_probe: false,
        }),
        ClientError::InputRequestFailed {
            method: Some("elicitation/create".to_owned()),
            error: rpc(),
        },
        ClientError::ResultNotResolved {
            cause: Box::new(ClientError::ConnectionLost {
                source: None,
                reason: "reset".to_owned(),
            }),
        },
        ClientError::ToolCallRefused {
            reason: "no".to_owned(),
        },
        ClientError::NotSupported("the server does not declare the capability `tools`".to_owned()),
        ClientError::Closed,
        ClientError::Usage("parameters must be a JSON object".to_owned()),
    ]
}

/// Returns examples of input request errors of every kind, which the tests of each binding cover.
#[cfg(feature = "server")]
pub fn input_request_error_examples() -> Vec<InputRequestError> {
    use mcpline_protocol::adapt::InexpressibleInputRequest;
    use mcpline_protocol::session::RequiredCapability;

    vec![
        InputRequestError::NotSupported(RequiredCapability::ElicitForm),
        InputRequestError::Inexpressible(InexpressibleInputRequest::MultipleChoice),
        InputRequestError::InvalidParams("no message".to_owned()),
        InputRequestError::OutsideCall,
        InputRequestError::Rpc {
            method: "elicitation/create".into(),
            error: RpcError::invalid_params("no"),
        },
        InputRequestError::InvalidResponse {
            method: "elicitation/create".into(),
            reason: "no action".to_owned(),
        },
        InputRequestError::Diverged {
            key: "name".to_owned(),
        },
        InputRequestError::TimedOut {
            method: "elicitation/create".into(),
            waited: std::time::Duration::from_secs(1),
            in_all: false,
        },
        InputRequestError::Cancelled,
        InputRequestError::ConnectionLost,
        InputRequestError::LimitExceeded(
            "too many input requests are open (`max_open_input_requests`)",
        ),
    ]
}

#[cfg(all(test, feature = "client", feature = "server"))]
mod tests {
    use mcpline_protocol::wire::Raw;
    use serde_json::json;

    use super::*;
    use crate::client::ConnectAttempt;
    use crate::client::resolver_error::error_of_answer;

    fn members(error: &ClientError) -> Value {
        Failure::of_client(error).members().into()
    }

    #[test]
    fn examples_cover_every_kind_but_those_of_servers() {
        let clients = client_error_examples();
        let inputs = input_request_error_examples();
        let kinds: Vec<_> = clients
            .iter()
            .map(ClientError::kind)
            .chain(inputs.iter().map(ErrorKind::from))
            .collect();
        for kind in ErrorKind::ALL {
            let is_of_servers = matches!(kind, ErrorKind::Transport | ErrorKind::Internal);
            let is_left_out = !cfg!(feature = "auth") && *kind == ErrorKind::AuthorizationFailed;
            assert_eq!(
                kinds.contains(kind),
                !is_of_servers && !is_left_out,
                "{kind:?}"
            );
        }
    }

    /// Returns the documented beginnings of messages of this kind.
    fn documented(kind: ErrorKind) -> Vec<&'static str> {
        let page = include_str!("../../../../docs/errors.md");
        let rows = page.lines().filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            let name = cells.next()?.split('`').next()?;
            (name == kind.name()).then(|| cells.next()).flatten()
        });
        rows.collect()
    }

    #[test]
    fn documentation_lists_every_kind_and_the_beginning_of_its_messages() {
        for kind in ErrorKind::ALL {
            assert!(!documented(*kind).is_empty(), "{kind:?}");
        }
        let clients = client_error_examples();
        let inputs = input_request_error_examples();
        let clients = clients.iter().map(Failure::of_client);
        let failures = clients.chain(inputs.iter().map(Failure::of_input_request));
        for Failure { kind, message, .. } in failures {
            let is_free = matches!(kind, ErrorKind::Usage | ErrorKind::LimitExceeded);
            let begins = |start: &&str| message.starts_with(start);
            assert!(
                is_free || documented(kind).iter().any(begins),
                "{kind:?}: {message}"
            );
        }
    }

    #[test]
    fn no_failure_is_both_safe_to_retry_and_of_unknown_outcome() {
        for error in client_error_examples() {
            let failure = Failure::of_client(&error);
            assert!(
                !(failure.retry_safe && failure.outcome_unknown),
                "{error:?}"
            );
        }
    }

    #[test]
    fn messages_name_method_option_and_outcome_and_quote_the_peer() {
        let to = |error: &ClientError| {
            Failure::of_client(error)
                .with_operation("tools/call")
                .message
        };
        let waited = Duration::from_millis(2500);
        let late = |in_all| ClientError::RequestTimedOut { waited, in_all };
        assert_eq!(
            to(&late(false)),
            "no response to `tools/call` within 2.5 s (`timeout`); the server may have performed the request"
        );
        assert_eq!(
            late(true).to_string(),
            "no response within 2.5 s (`total_timeout`); the server may have performed the request"
        );
        assert_eq!(
            to(&ClientError::lost("reset")),
            "connection lost before the response to `tools/call` arrived: reset; the server may have performed the request"
        );
        assert_eq!(
            to(&ClientError::Rpc(RpcError::invalid_params("no"))),
            r#"server returned an error to `tools/call`: "no" (-32602)"#
        );
        for error in client_error_examples() {
            let message = to(&error);
            let unknown = message.contains("the server may have performed the request");
            assert_eq!(unknown, error.is_outcome_unknown(), "{message}");
        }
        let refused =
            ClientError::HandshakeFailed(HandshakeError::Refused(RpcError::invalid_params("no")));
        let failed = ClientError::AllAttemptsFailed {
            cause: Box::new(ClientError::lost("reset")),
            attempts: vec![ConnectAttempt {
                method: "initialize",
                over_http_sse: false,
                error: refused,
            }],
        };
        assert_eq!(
            Failure::of_client(&failed).message,
            "connection lost before the response arrived: reset \
             (attempts: `initialize`: server returned an error: \"no\" (-32602))"
        );
        for error in input_request_error_examples() {
            let message = error.to_string();
            let is_answered = matches!(
                error,
                InputRequestError::Rpc { .. }
                    | InputRequestError::InvalidResponse { .. }
                    | InputRequestError::TimedOut { .. }
            );
            assert_eq!(
                message.contains("client to `elicitation/create`")
                    || message.contains("client returned an error to `elicitation/create`"),
                is_answered,
                "{message}"
            );
        }
    }

    #[test]
    fn members_hold_every_fact() {
        let rpc = RpcError::invalid_params("no").with_data(&json!([1]));
        let error = ClientError::Rpc(rpc);
        let failure = Failure::of_client(&error).with_operation("tools/call");
        assert_eq!(
            Value::from(failure.members()),
            json!({"retry_safe": false, "outcome_unknown": false, "operation": "tools/call",
                   "source": {"code": -32602, "message": "no", "data": [1]}})
        );
        let error = ClientError::ServerExited {
            exit: None,
            stderr: vec!["oh".to_owned()],
            unsent: true,
        };
        assert_eq!(
            members(&error),
            json!({"retry_safe": true, "outcome_unknown": false, "exit": null, "stderr": ["oh"]})
        );
        let error = ClientError::Http {
            status: 401,
            body: "no".to_owned(),
            challenge: None,
            error: None,
        };
        assert_eq!(
            members(&error),
            json!({"retry_safe": false, "outcome_unknown": false,
                   "status": 401, "body": "no", "challenge": null})
        );
        let all_failed = ClientError::AllAttemptsFailed {
            cause: Box::new(error.clone()),
            attempts: Vec::new(),
        };
        let failure = Failure::of_client(&all_failed);
        assert_eq!(failure.kind, ErrorKind::Http);
        assert_eq!(failure.operation, Some("connect"));
        assert_eq!(failure.members()["status"], 401);
        let error = ClientError::RequestTimedOut {
            waited: Duration::from_millis(1500),
            in_all: true,
        };
        assert_eq!(
            members(&error),
            json!({"retry_safe": false, "outcome_unknown": true, "waited": 1.5, "in_all": true})
        );
        let error = ClientError::unreachable("no route");
        assert_eq!(members(&error)["source"], "no route");
    }

    #[test]
    fn failed_input_requests_are_for_the_model_and_mistakes_of_the_author_are_not() {
        let for_model: Vec<_> = input_request_error_examples()
            .iter()
            .map(|error| Failure::of_input_request(error).is_for_model)
            .collect();
        assert_eq!(
            for_model,
            [
                false, true, false, false, true, true, false, true, false, false, true
            ]
        );
    }

    #[test]
    fn names_the_capability_that_a_client_lacks() {
        let examples = input_request_error_examples();
        let failure = Failure::of_input_request(&examples[0]).with_operation("elicitation/create");
        assert_eq!(
            Value::from(failure.members()),
            json!({"retry_safe": false, "outcome_unknown": false,
                   "operation": "elicitation/create", "required": {"elicitation": {}}})
        );
    }

    /// Returns the error that the caller receives if a resolver in another language fails with this one.
    fn passed_on(error: &ClientError) -> ClientError {
        let failure = Failure::of_client(error);
        let mut members = failure.members();
        members.insert("kind".to_owned(), failure.kind.as_str().into());
        members.insert("message".to_owned(), failure.message.as_str().into());
        let mut answer = RpcError::internal_error("the handler of the host failed");
        answer.data = Raw::from_serialize(&json!({ "failure": members })).ok();
        error_of_answer(answer)
    }

    #[test]
    fn a_resolver_keeps_kind_and_facts_of_the_errors_of_its_requests() {
        for error in client_error_examples() {
            let passed = passed_on(&error);
            if matches!(
                error.kind(),
                ErrorKind::AuthorizationFailed
                    | ErrorKind::HandshakeFailed
                    | ErrorKind::HandshakeTimedOut
            ) {
                assert_eq!(passed.kind(), ErrorKind::InputRequestFailed);
                continue;
            }
            assert_eq!(passed.kind(), error.kind(), "{error}");
            assert_eq!(passed.is_outcome_unknown(), error.is_outcome_unknown());
            assert_eq!(passed.rpc(), error.rpc());
        }
    }

    #[test]
    fn an_answer_without_facts_is_a_failure_of_the_resolver() {
        let error = error_of_answer(RpcError::internal_error("the handler of the host failed"));
        assert_eq!(error.kind(), ErrorKind::InputRequestFailed);
        let error = error_of_answer(RpcError::invalid_params("no such receipt"));
        assert_eq!(error.kind(), ErrorKind::Rpc);
    }
}
