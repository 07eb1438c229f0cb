//! Names of streams, as in the ids of their events and in the log that processes share.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpline_protocol::wire::RequestId;

use crate::sharing::EventLog;
use crate::sync::Arc;

/// Bytes of a request's id that become a part of each event's id: enough for numbers and UUIDs. Requests with longer ids end with
/// the client's timeout when their process has ended; a client could otherwise make each of its events many times as large as its
/// message. So do those of a batch: it is not known which of their responses the client already has.
const MAX_REQUEST_BYTES: usize = 64;

/// A stream's name within its session, which is the first part of each event id: a number, and if there are several
/// processes the one that assigned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) struct StreamName {
    pub(in super::super) number: u64,
    pub(in super::super) process: Option<u32>,
}

impl StreamName {
    fn parse(name: &str) -> Option<Self> {
        let (number, process) = match name.split_once('.') {
            Some((number, process)) => (number, Some(u32::from_str_radix(process, 16).ok()?)),
            None => (name, None),
        };
        let number = number.parse().ok()?;
        Some(Self { number, process })
    }

    /// Whether it is the session's own stream, which belongs to no request.
    pub(in super::super) fn is_general(self) -> bool {
        self.number == 0
    }
}

impl std::fmt::Display for StreamName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.process {
            Some(process) => write!(f, "{}.{process:x}", self.number),
            None => write!(f, "{}", self.number),
        }
    }
}

/// The id of an event: `STREAM-EVENT`, and `-REQUEST` if other processes may have to answer the request whose stream it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct EventId {
    pub(in super::super) stream: StreamName,
    /// The number of the event.
    pub(in super::super) event: u64,
    /// The id of the request that the stream responds to.
    pub(in super::super) request: Option<RequestId>,
}

impl EventId {
    pub(in super::super) fn parse(id: &str) -> Option<Self> {
        let mut parts = id.splitn(3, '-');
        let (stream, event) = (parts.next()?, parts.next()?);
        let request = parts.next().map(decoded_request);
        Some(Self {
            stream: StreamName::parse(stream)?,
            event: event.parse().ok()?,
            // Another version may write something else.
            request: request.flatten(),
        })
    }
}

/// Returns a request's id as a part of ids of events; `None` if it is too long.
pub(in super::super) fn encoded_request(id: &RequestId) -> Option<Box<str>> {
    let json = serde_json::to_vec(id).ok()?;
    (json.len() <= MAX_REQUEST_BYTES).then(|| URL_SAFE_NO_PAD.encode(json).into())
}

fn decoded_request(encoded: &str) -> Option<RequestId> {
    let json = URL_SAFE_NO_PAD.decode(encoded).ok()?;
    serde_json::from_slice(&json).ok()
}

/// A stream's place in the log that processes share.
pub(in super::super) struct StreamLog {
    pub(in super::super) log: Arc<dyn EventLog>,
    pub(in super::super) name: String,
}

#[cfg(test)]
mod tests {
    use mcpline_protocol::wire::Raw;

    use super::*;

    fn request(json: &str) -> RequestId {
        let raw = Raw::parse(json.as_bytes().to_vec()).expect("JSON");
        RequestId::from_raw(&raw).expect("an id")
    }

    #[test]
    fn ids_of_events_name_the_stream_the_event_and_the_request() {
        for id in [request("7"), request("\"a-b/c\""), request("-3")] {
            let encoded = encoded_request(&id).expect("short");
            let parsed = EventId::parse(&format!("3.a1-12-{encoded}")).expect("an id");
            let stream = StreamName {
                number: 3,
                process: Some(0xa1),
            };
            assert_eq!((parsed.stream, parsed.event), (stream, 12));
            assert_eq!(parsed.request, Some(id));
        }
        let without = EventId::parse("3-12").expect("an id");
        assert_eq!(without.request, None);
        assert_eq!(EventId::parse("3.a1-12-%").expect("an id").request, None);
        assert_eq!(EventId::parse("3.a1"), None);
    }

    #[test]
    fn long_ids_of_requests_are_left_out() {
        let long = format!("\"{}\"", "x".repeat(MAX_REQUEST_BYTES));
        assert_eq!(encoded_request(&request(&long)), None);
    }
}
