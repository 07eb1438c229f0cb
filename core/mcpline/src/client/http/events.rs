//! Reading an event stream.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use mcpline_protocol::wire::sse::{Event, EventDecoder};

use crate::client::link::Sink;

use crate::http_client::answer::Answer;

/// Whose stream it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamOwner {
    /// A request's: it ends with the answer.
    Request(u64),
    /// Nobody's: it ends with the session.
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

/// What is remembered of a stream beyond the connections that carry it.
#[derive(Debug, Default)]
pub(super) struct ResumptionState {
    /// The last event, to go on after.
    pub(super) last_event: Option<HeaderValue>,
    /// The wait that the server demands before a reconnection.
    pub(super) retry: Option<Duration>,
}

impl ResumptionState {
    /// Takes over what a connection that ended has told. Returns whether that was an event.
    fn learn(&mut self, decoder: &EventDecoder) -> bool {
        if let Some(milliseconds) = decoder.retry() {
            self.retry = Some(Duration::from_millis(milliseconds));
        }
        let id = decoder.last_event_id();
        if !id.is_empty() {
            // One that no header can hold can't be asked for.
            self.last_event = HeaderValue::from_bytes(id.as_bytes()).ok();
        }
        !id.is_empty()
    }
}

/// How one connection of a stream ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// The request has its answer.
    Answered,
    /// The stream was closed, or the connection broke. `heard` tells whether it had brought an event.
    Lost { heard: bool, reason: String },
    /// An event was longer than this, and so can't be had.
    TooLarge { limit: usize },
}

/// The events of one connection.
pub(super) struct Events {
    answer: Answer,
    decoder: EventDecoder,
}

/// What a stream brings.
pub(super) enum Next {
    Event(Event),
    TooLarge { limit: usize },
    End { reason: String },
}

impl Events {
    pub(super) fn new(answer: Answer, limit: usize) -> Self {
        let decoder = EventDecoder::new(limit);
        Self { answer, decoder }
    }

    pub(super) async fn next(&mut self) -> Next {
        loop {
            match self.decoder.next_event() {
                Some(Ok(event)) => return Next::Event(event),
                Some(Err(error)) => return Next::TooLarge { limit: error.limit },
                None => {}
            }
            let reason = match self.answer.chunk().await {
                Ok(Some(chunk)) => {
                    self.decoder.push(&chunk);
                    continue;
                }
                Ok(None) => "the server closed the stream".to_owned(),
                Err(reason) => reason,
            };
            return Next::End { reason };
        }
    }
}

/// The message that an event carries. One without data only tells its id.
pub(super) fn message(event: Event) -> Option<Bytes> {
    (event.event == "message" && !event.data.is_empty()).then_some(event.data)
}

/// Hands on the messages of a stream until it ends.
pub(super) async fn pump(
    answer: Answer,
    owner: StreamOwner,
    memory: &mut ResumptionState,
    limit: usize,
    sink: &Sink,
) -> StreamEnd {
    let mut events = Events::new(answer, limit);
    let mut heard = false;
    loop {
        match events.next().await {
            Next::Event(event) => {
                heard = true;
                let answered =
                    message(event).is_some_and(|message| sink.message(message, owner.request()));
                if answered && owner != StreamOwner::Session {
                    events.answer.drain().await;
                    return StreamEnd::Answered;
                }
            }
            Next::TooLarge { limit } => return StreamEnd::TooLarge { limit },
            Next::End { reason } => {
                heard |= memory.learn(&events.decoder);
                return StreamEnd::Lost { heard, reason };
            }
        }
    }
}
