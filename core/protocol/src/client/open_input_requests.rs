//! Requests of a server that wait for a response of the host, bounded by number and by bytes.

use std::collections::HashMap;

use crate::limits::{MAX_OPEN_INPUT_REQUEST_BYTES, MAX_OPEN_INPUT_REQUESTS};
use crate::request_id::RequestId;

/// The open input requests of one session, by id.
#[derive(Debug, Default)]
pub(super) struct OpenInputRequests {
    requests: HashMap<RequestId, OpenInputRequest>,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct OpenInputRequest {
    /// The URL elicitation that it begins.
    pub(super) elicitation: Option<u64>,
    /// Size of its parameters.
    pub(super) bytes: usize,
}

impl OpenInputRequests {
    /// Whether a request with parameters of `bytes` bytes may wait too. A single one always may.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.requests.is_empty()
            || self.requests.len() < MAX_OPEN_INPUT_REQUESTS
                && self.bytes.saturating_add(bytes) <= MAX_OPEN_INPUT_REQUEST_BYTES
    }

    pub(super) fn contains(&self, id: &RequestId) -> bool {
        self.requests.contains_key(id)
    }

    /// Adds a request. The caller has seen that there is room, and no request with this id.
    pub(super) fn insert(&mut self, id: RequestId, request: OpenInputRequest) {
        self.bytes += request.bytes;
        self.requests.insert(id, request);
    }

    /// Removes a request that was answered or cancelled.
    pub(super) fn remove(&mut self, id: &RequestId) -> Option<OpenInputRequest> {
        let request = self.requests.remove(id)?;
        self.bytes -= request.bytes;
        Some(request)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: usize) -> OpenInputRequest {
        OpenInputRequest {
            elicitation: None,
            bytes,
        }
    }

    fn id(number: i64) -> RequestId {
        RequestId::from(number)
    }

    #[test]
    fn is_bounded_by_number_and_by_bytes() {
        let mut open = OpenInputRequests::default();
        for number in (0..).take(MAX_OPEN_INPUT_REQUESTS) {
            assert!(open.has_room(1));
            open.insert(id(number), request(1));
        }
        assert!(!open.has_room(0));
        open.clear();
        open.insert(id(1), request(MAX_OPEN_INPUT_REQUEST_BYTES - 1));
        assert!(open.has_room(1) && !open.has_room(2));
        open.remove(&id(1));
        assert!(open.has_room(MAX_OPEN_INPUT_REQUEST_BYTES + 1));
    }
}
