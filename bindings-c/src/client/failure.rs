//! From a client's failures to C's.

use mcpline::client::ClientError;
use mcpline::foreign::{Failure, FailureClass};
use serde_json::Value;

use crate::status::Fault;
use crate::status::mcpl_status::{self, *};

impl From<&ClientError> for Fault {
    fn from(error: &ClientError) -> Self {
        let failure = Failure::of(error);
        let mut fault = Self::new(status(failure.class), failure.message);
        // The members are strings, numbers, truth values and the vocabulary's error: nothing that JSON couldn't hold.
        if let Ok(Value::Object(members)) = serde_json::to_value(&failure.members) {
            fault.details = Box::new(members);
        }
        fault.rpc = failure.members.error.cloned().map(Box::new);
        fault
    }
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        Self::from(&error)
    }
}

fn status(class: FailureClass) -> mcpl_status {
    match class {
        FailureClass::ServerError => MCPL_SERVER_ERROR,
        FailureClass::RequestTimedOut => MCPL_TIMED_OUT,
        FailureClass::HttpError => MCPL_HTTP_ERROR,
        FailureClass::ConnectionFailed => MCPL_CONNECTION_FAILED,
        FailureClass::AuthorizationFailed => MCPL_AUTHORIZATION_FAILED,
        FailureClass::ServerExited => MCPL_SERVER_EXITED,
        FailureClass::InvalidAnswer => MCPL_INVALID_ANSWER,
        FailureClass::OpenFailed => MCPL_OPEN_FAILED,
        FailureClass::OpenTimedOut => MCPL_OPEN_TIMED_OUT,
        FailureClass::QuestionUnanswered => MCPL_QUESTION_UNANSWERED,
        FailureClass::ToolCallRefused => MCPL_TOOL_CALL_REFUSED,
        FailureClass::NotSupported => MCPL_NOT_SUPPORTED,
        FailureClass::ClientClosed => MCPL_CLOSED,
        FailureClass::UsageError => MCPL_INVALID_ARGUMENT,
        // A class that this binding doesn't know yet is a defect of ours until it does.
        _ => MCPL_INTERNAL,
    }
}

#[cfg(test)]
mod tests {
    use mcpline::foreign::failure_examples;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_failure_of_a_client_has_a_status_and_tells_what_is_known_of_it() {
        for error in failure_examples() {
            let fault = Fault::from(&error);
            assert_ne!(fault.status, MCPL_INTERNAL, "{error:?}");
            assert_eq!(fault.message, error.to_string());
            let members = serde_json::to_value(Failure::of(&error).members).unwrap();
            assert_eq!(Value::Object(*fault.details), members);
        }
    }

    #[test]
    fn the_error_that_a_server_answered_with_is_told_as_it_is() {
        let given = mcpline::RpcError::invalid_params("no").with_data(&json!({"why": 1}));
        let fault = Fault::from(ClientError::Rpc(given.clone()));
        assert_eq!(fault.status, MCPL_SERVER_ERROR);
        assert_eq!(fault.details["error"]["data"], json!({"why": 1}));
        assert_eq!(fault.rpc.as_deref(), Some(&given));
    }
}
