//! A call that waits for its client's retry, charged to the client for as long as it does.

use std::sync::Arc;

use crate::quota::{Charge, Exceeded};

use super::call::{CallState, CurrentRequest};
use super::connection::Connection;

/// About what a suspended call takes beside its request: the handler's task, the connection and its session machine, the
/// questions. A Python coroutine with its context has some 5 KiB of it.
const SUSPENDED_BYTES: usize = 8 * 1024;

/// A call that waits for its client's retry.
pub(super) struct SuspendedCall {
    pub(super) call: Arc<CallState>,
    _charge: Charge,
}

impl SuspendedCall {
    /// Charges the client of this request for what the call holds: the headers of its request, and its questions. The
    /// request's parameters, if they are long, were charged when they arrived.
    pub(super) fn new(
        call: Arc<CallState>,
        current_request: &CurrentRequest,
    ) -> Result<Self, Exceeded> {
        let headers = current_request
            .http
            .as_ref()
            .map_or(0, |http| http.headers_len());
        let questions = call.lock_record().pending_bytes();
        let client = current_request.connection.client();
        let charge = client.hold_bytes(SUSPENDED_BYTES + headers + questions)?;
        Ok(Self {
            call,
            _charge: charge,
        })
    }

    pub(super) fn is_of(&self, connection: &Arc<Connection>) -> bool {
        Arc::ptr_eq(&self.call.lock_current_request().connection, connection)
    }
}
