//! Reads event streams.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use mcpline_protocol::wire::sse::{Event, EventDecoder};

use crate::client::link::SharedEventSink;

use crate::http_client::response::HttpResponse;

/// What a stream belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamOwner {
    /// A request: the stream ends with its response.
    Request(u64),
    /// The session: the stream ends with it.
    Session,
}

impl StreamOwner {
    fn request(self) -> Option<u64> {
        match self {
            Self::Request(number) => Some(number),
            Self::Session => None,
        }
    }
}

/// What is remembered of a stream across its connections.
#[derive(Debug, Default)]
pub(super) struct ResumptionState {
    /// The last event id, after which the stream resumes.
    pub(super) last_event: Option<HeaderValue>,
    /// The reconnection delay that the server demanded.
    pub(super) retry: Option<Duration>,
}

impl ResumptionState {
    /// Takes over the state of a connection that ended. Returns whether it delivered an event id.
    fn learn(&mut self, decoder: &EventDecoder) -> bool {
        if let Some(milliseconds) = decoder.retry() {
            self.retry = Some(Duration::from_millis(milliseconds));
        }
        let id = decoder.last_event_id();
        if !id.is_empty() {
            // An id that does not fit into a header cannot be sent back.
            self.last_event = HeaderValue::from_bytes(id.as_bytes()).ok();
        }
        !id.is_empty()
    }
}

/// How one connection of a stream ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// The request has its response.
    Answered,
    /// The stream was closed, or the connection broke.
    Lost {
        /// Whether it had delivered an event.
        received_event: bool,
        /// Whether the connection broke. A server that wants to be polled closes the stream instead.
        is_broken: bool,
        reason: String,
    },
    /// An event exceeded this limit and cannot be read.
    TooLarge { limit: usize },
}

/// The events of one connection.
pub(super) struct Events {
    answer: HttpResponse,
    decoder: EventDecoder,
}

/// The next item of a stream.
pub(super) enum StreamItem {
    Event(Event),
    TooLarge { limit: usize },
    End { is_broken: bool, reason: String },
}

impl Events {
    pub(super) fn new(answer: HttpResponse, limit: usize) -> Self {
        let decoder = EventDecoder::new(limit);
        Self { answer, decoder }
    }

    pub(super) async fn next(&mut self) -> StreamItem {
        loop {
            match self.decoder.next_event() {
                Some(Ok(event)) => return StreamItem::Event(event),
                Some(Err(error)) => return StreamItem::TooLarge { limit: error.limit },
                None => {}
            }
            match self.answer.chunk().await {
                Ok(Some(chunk)) => self.decoder.push(&chunk),
                Ok(None) => {
                    return StreamItem::End {
                        is_broken: false,
                        reason: "the server closed the stream".to_owned(),
                    };
                }
                Err(reason) => {
                    return StreamItem::End {
                        is_broken: true,
                        reason,
                    };
                }
            }
        }
    }
}

/// Returns the message of an event, or `None` for an event that only carries an id.
pub(super) fn message(event: Event) -> Option<Bytes> {
    (event.event == "message" && !event.data.is_empty()).then_some(event.data)
}

/// Passes the messages of a stream on until it ends.
pub(super) async fn pump(
    answer: HttpResponse,
    owner: StreamOwner,
    memory: &mut ResumptionState,
    limit: usize,
    sink: &SharedEventSink,
) -> StreamEnd {
    let mut events = Events::new(answer, limit);
    let mut received_event = false;
    loop {
        match events.next().await {
            StreamItem::Event(event) => {
                received_event = true;
                let answered =
                    message(event).is_some_and(|message| sink.message(message, owner.request()));
                if answered && owner != StreamOwner::Session {
                    events.answer.drain().await;
                    return StreamEnd::Answered;
                }
            }
            StreamItem::TooLarge { limit } => return StreamEnd::TooLarge { limit },
            StreamItem::End { is_broken, reason } => {
                received_event |= memory.learn(&events.decoder);
                return StreamEnd::Lost {
                    received_event,
                    is_broken,
                    reason,
                };
            }
        }
    }
}
