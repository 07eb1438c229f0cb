//! From a client's errors to C's.

use mcpline::client::ClientError;
use mcpline::foreign::Failure;

use crate::status::Fault;

impl Fault {
    /// An error of a client during this operation; empty if it is not known.
    pub(super) fn of_client(error: &ClientError, operation: &str) -> Self {
        Failure::of_client(error).during(operation).into()
    }
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        Self::of_client(&error, "")
    }
}

#[cfg(test)]
mod tests {
    use mcpline::foreign::{client_error_examples, input_request_error_examples};
    use serde_json::{Value, json};

    use super::*;
    use crate::status::mcpl_status;

    #[test]
    fn every_error_of_a_client_has_a_status_and_all_facts() {
        for error in client_error_examples() {
            let fault = Fault::of_client(&error, "tools/call");
            assert_eq!(fault.status, mcpl_status::from(error.kind()));
            // Of an operation the message says which it was, as the kernel words it.
            assert_eq!(Fault::from(error.clone()).message, error.to_string());
            assert!(fault.details["operation"].is_string());
            assert_eq!(fault.details["retry_safe"], error.is_retry_safe());
            assert_eq!(fault.details["outcome_unknown"], error.is_outcome_unknown());
        }
    }

    #[test]
    fn every_error_of_an_input_request_has_a_status_and_all_facts() {
        for error in input_request_error_examples() {
            let fault = Fault::of_input_request(&error, "elicitation/create");
            assert_eq!(
                fault.status,
                mcpl_status::from(mcpline::ErrorKind::from(&error))
            );
            assert_eq!(fault.message, error.to_string());
            assert_eq!(fault.details["operation"], "elicitation/create");
        }
    }

    #[test]
    fn the_error_that_a_server_returned_is_kept() {
        let given = mcpline::RpcError::invalid_params("no").with_data(&json!({"why": 1}));
        let fault = Fault::from(ClientError::Rpc(given.clone()));
        assert_eq!(fault.status, mcpl_status::MCPL_RPC_ERROR);
        assert_eq!(fault.details["source"]["data"], json!({"why": 1}));
        assert_eq!(fault.details.get("operation"), None::<&Value>);
        assert_eq!(fault.rpc.as_deref(), Some(&given));
    }
}
