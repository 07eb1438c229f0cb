//! Calls that wait for their client's retry, charged to the client meanwhile.

use std::sync::Arc;

use crate::quota::{Charge, Exceeded};

use super::call::{CallState, CurrentRequest};
use super::connection::Connection;

/// Approximate size of a suspended call without its request: the handler's task, the connection with its session, and
/// the input requests. A Python coroutine with its context takes about 5 KiB of it.
const SUSPENDED_BYTES: usize = 8 * 1024;

/// A call that waits for its client's retry.
pub(super) struct SuspendedCall {
    pub(super) call: Arc<CallState>,
    _charge: Charge,
}

impl SuspendedCall {
    /// Charges the request's client for what the call holds: the headers of its request, and its input requests. Long
    /// parameters of the request were charged on arrival.
    pub(super) fn new(
        call: Arc<CallState>,
        current_request: &CurrentRequest,
    ) -> Result<Self, Exceeded> {
        let headers = current_request
            .http
            .as_ref()
            .map_or(0, |http| http.headers_len());
        let input_required = call.lock_record().pending_bytes();
        let client = current_request.connection.client();
        let charge = client.hold_bytes(SUSPENDED_BYTES + headers + input_required)?;
        Ok(Self {
            call,
            _charge: charge,
        })
    }

    pub(super) fn is_of(&self, connection: &Arc<Connection>) -> bool {
        Arc::ptr_eq(&self.call.lock_current_request().connection, connection)
    }
}
