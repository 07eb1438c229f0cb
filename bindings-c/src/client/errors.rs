//! Conversion of the kernel's client errors to those of this binding.

use mcpline::foreign::client::{OpenError, WrongPhaseError};

use crate::status::Fault;

impl From<WrongPhaseError> for Fault {
    fn from(error: WrongPhaseError) -> Self {
        error.failure().into()
    }
}

impl From<OpenError> for Fault {
    fn from(error: OpenError) -> Self {
        error.failure().into()
    }
}

#[cfg(test)]
mod tests {
    use mcpline::client::ClientError;
    use mcpline::foreign::{Failure, client_error_examples, input_request_error_examples};
    use serde_json::{Value, json};

    use super::*;
    use crate::status::mcpl_status;

    fn fault(error: &ClientError, operation: &str) -> Fault {
        Failure::of_client(error).with_operation(operation).into()
    }

    #[test]
    fn every_error_of_a_client_has_a_status_and_all_facts() {
        for error in client_error_examples() {
            let failed = fault(&error, "tools/call");
            assert_eq!(failed.status, mcpl_status::from(error.kind()));
            // The kernel's message names the operation.
            assert_eq!(fault(&error, "").message, error.to_string());
            assert!(failed.details["operation"].is_string());
            assert_eq!(failed.details["retry_safe"], error.is_retry_safe());
            assert_eq!(
                failed.details["outcome_unknown"],
                error.is_outcome_unknown()
            );
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
        let fault = fault(&ClientError::Rpc(given.clone()), "");
        assert_eq!(fault.status, mcpl_status::MCPL_RPC_ERROR);
        assert_eq!(fault.details["source"]["data"], json!({"why": 1}));
        assert_eq!(fault.details.get("operation"), None::<&Value>);
        assert_eq!(fault.rpc.as_deref(), Some(&given));
    }
}
