//! One request of a client: over a network with delays and lost connections, to whichever replica the load balancer chooses.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use mcpline::protocol::wire::sse::EventDecoder;
use mcpline::transport::http::Body;
use serde_json::Value;
use tokio::time::Instant;

use crate::replica::Replica;
use crate::world::World;

/// Maximum size of an event.
const MAX_EVENT_BYTES: usize = 1 << 20;

/// Shares of 1,000 requests whose connection is lost before they arrive, and after they were answered.
const LOST_REQUESTS: u64 = 5;
const LOST_RESPONSES: u64 = 10;

/// Share of 1,000 streams whose connection is lost.
const LOST_STREAMS: u64 = 300;

/// A response, as far as it has arrived.
pub(crate) struct Reply {
    pub(crate) replica: Arc<Replica>,
    pub(crate) status: StatusCode,
    pub(crate) session: Option<String>,
    pub(crate) body: ReplyBody,
}

pub(crate) enum ReplyBody {
    Json(Value),
    Stream(Box<EventStream>),
}

/// The connection was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionLost;

/// The replicas that an operation had to do with, and when it began: what may have failed for it.
pub(crate) struct Contacts {
    pub(crate) since: Duration,
    replicas: Vec<Arc<Replica>>,
}

impl Contacts {
    pub(crate) fn new(world: &World) -> Self {
        Self {
            since: world.now(),
            replicas: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, replica: &Arc<Replica>) {
        if !self
            .replicas
            .iter()
            .any(|known| known.number == replica.number)
        {
            self.replicas.push(replica.clone());
        }
    }

    /// Whether a replica of the operation ended, shut down or could not reach the shared state.
    pub(crate) fn were_disturbed(&self) -> bool {
        self.replicas
            .iter()
            .any(|replica| replica.was_disturbed(self.since))
    }
}

/// Builds a request for the MCP endpoint.
pub(crate) fn request(
    method: Method,
    headers: &[(&str, &str)],
    body: &Value,
) -> Request<Full<Bytes>> {
    let mut builder = Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    let body = match body {
        Value::Null => Bytes::new(),
        body => Bytes::from(body.to_string()),
    };
    builder
        .body(Full::new(body))
        .expect("the headers are valid")
}

/// Sends a request and waits for its response, or for the head of its stream.
///
/// # Errors
///
/// The connection was lost: the request may have arrived.
pub(crate) async fn send(
    world: &Arc<World>,
    contacts: &mut Contacts,
    request: Request<Full<Bytes>>,
) -> Result<Reply, ConnectionLost> {
    world.pause(1, 10).await;
    let Some(replica) = world.replicas.choose(world) else {
        return Err(ConnectionLost);
    };
    contacts.add(&replica);
    if world.has_faults() && world.happens(LOST_REQUESTS) {
        return Err(ConnectionLost);
    }
    let handled = replica.run(replica.service().handle(request)).await;
    let response: Response<Body> = handled.ok_or(ConnectionLost)?;
    let status = response.status();
    let header = |name: &str| {
        let value = response.headers().get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let session = header("mcp-session-id");
    let is_stream = header("content-type").is_some_and(|kind| kind == "text/event-stream");
    let body = match is_stream {
        true => {
            let is_lost = world.has_faults() && world.happens(LOST_STREAMS);
            let lost_after = is_lost.then(|| Duration::from_millis(world.between(0, 4_000)));
            ReplyBody::Stream(Box::new(EventStream {
                replica: replica.clone(),
                body: response.into_body(),
                decoder: EventDecoder::new(MAX_EVENT_BYTES),
                lost_at: lost_after.map(|after| Instant::now() + after),
            }))
        }
        false => {
            let collected = replica.run(response.into_body().collect()).await;
            let bytes = match collected {
                Some(Ok(collected)) => collected.to_bytes(),
                _ => return Err(ConnectionLost),
            };
            if world.has_faults() && world.happens(LOST_RESPONSES) {
                return Err(ConnectionLost);
            }
            ReplyBody::Json(serde_json::from_slice(&bytes).unwrap_or(Value::Null))
        }
    };
    world.pause(1, 10).await;
    Ok(Reply {
        replica,
        status,
        session,
        body,
    })
}

/// An event stream that a client reads.
pub(crate) struct EventStream {
    replica: Arc<Replica>,
    body: Body,
    decoder: EventDecoder,
    /// When the connection is lost.
    lost_at: Option<Instant>,
}

/// What a client received on a stream.
pub(crate) enum Received {
    /// An event: its id, and its message unless it has none.
    Event(String, Value),
    /// The stream ended.
    End,
    /// The connection was lost.
    Lost,
    /// Nothing arrived in time.
    Nothing,
}

impl EventStream {
    /// Waits for the next event until then.
    pub(crate) async fn next(&mut self, until: Instant) -> Received {
        loop {
            if let Some(event) = self.decoder.next_event() {
                let Ok(event) = event else {
                    return Received::Lost;
                };
                let message = serde_json::from_slice(&event.data).unwrap_or(Value::Null);
                return Received::Event(self.decoder.last_event_id().to_owned(), message);
            }
            let wait_until = self.lost_at.map_or(until, |lost| lost.min(until));
            let replica = self.replica.clone();
            let frame = replica.run(tokio::time::timeout_at(wait_until, self.body.frame()));
            match frame.await {
                None => return Received::Lost,
                Some(Err(_)) if self.lost_at == Some(wait_until) => return Received::Lost,
                Some(Err(_)) => return Received::Nothing,
                Some(Ok(None)) => return Received::End,
                Some(Ok(Some(Err(_)))) => return Received::Lost,
                Some(Ok(Some(Ok(frame)))) => {
                    if let Ok(data) = frame.into_data() {
                        self.decoder.push(&data);
                    }
                }
            }
        }
    }
}

/// The events of one stream that a client has received, over all its connections.
#[derive(Default)]
pub(crate) struct ReceivedEvents {
    seen: HashSet<String>,
    /// From which event the stream is resumed.
    pub(crate) last: Option<String>,
}

impl ReceivedEvents {
    /// Adds an event. Returns whether it is new.
    pub(crate) fn add(&mut self, id: String) -> bool {
        if id.is_empty() {
            return true;
        }
        self.last = Some(id.clone());
        self.seen.insert(id)
    }
}
