//! One POST request and its response.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use mcpline_protocol::Revision;

use crate::client::link::{RequestHead, SharedEventSink};
use crate::client_error::ClientError;
use crate::header_names::SESSION_ID;
use crate::http_client::refusal::refusal;
use crate::http_client::response::{BodyError, HttpResponse, Media};
use crate::http_client::{ConnectionReuse, RequestTimer};

use super::events::{ResumptionState, StreamEnd, StreamOwner, pump};
use super::one_way::OneWayMessage;
use super::one_way_retries::OneWayRetries;
use super::streamable::HttpLinkShared;

/// Sends a request and makes sure that it is answered or fails.
pub(super) async fn exchange(talk: Arc<HttpLinkShared>, message: Bytes, head: RequestHead) {
    if let Err(error) = try_exchange(&talk, message, &head).await {
        talk.sink.failed(head.number, error);
    }
}

/// Pauses the timeouts of a link's request while it waits for something other than the server. Without a number it
/// applies to whatever request is in flight.
pub(super) struct LinkRequestTimer<'s>(pub(super) &'s SharedEventSink, pub(super) Option<u64>);

impl RequestTimer for LinkRequestTimer<'_> {
    fn set_paused(&self, held: bool) {
        self.0.set_timeout_paused(self.1, held);
    }
}

/// Sends a message that has no response, and retries if the connection fails. A refusal is only logged: its
/// consequences show in a later request.
pub(super) async fn send_one_way(talk: &HttpLinkShared, message: OneWayMessage) {
    let mut retries = OneWayRetries::new(&talk.client.settings, message.repeat);
    while let Err(error) = try_send_one_way(talk, &message.bytes).await {
        if !retries.wait_for_retry(&error).await {
            talk.sink.warning(format!(
                "the server did not accept a notification or a response: {error}"
            ));
            return;
        }
    }
}

async fn try_send_one_way(talk: &HttpLinkShared, message: &Bytes) -> Result<(), ClientError> {
    let view = talk.snapshot();
    let sent = talk
        .client
        .send_authorized(
            Method::POST,
            &talk.target,
            &|| (*view.heads.post).clone(),
            message,
            &(),
            ConnectionReuse::Yes,
        )
        .await?;
    if sent.head.status.is_success() {
        sent.drain().await;
        return Ok(());
    }
    Err(refusal(sent, view.in_session).await)
}

async fn try_exchange(
    talk: &HttpLinkShared,
    message: Bytes,
    head: &RequestHead,
) -> Result<(), ClientError> {
    let mut view = talk.snapshot();
    if let Some(gate) = view.gate.take()
        && !head.opens
    {
        gate.wait_until_open().await;
        // Read again, because the state may have changed meanwhile.
        view = talk.snapshot();
    }
    let in_session = view.in_session && !head.opens && !head.revision.is_modern();
    let mut answer = talk
        .client
        .send_authorized(
            Method::POST,
            &talk.target,
            &|| view.heads.of(head),
            &message,
            &LinkRequestTimer(&talk.sink, Some(head.number)),
            if head.is_repeatable {
                ConnectionReuse::Repeatable
            } else {
                ConnectionReuse::Yes
            },
        )
        .await?;
    if !answer.head.status.is_success() {
        return Err(Box::pin(refusal(answer, in_session)).await);
    }
    if head.opens
        && !head.revision.is_modern()
        && let Some(session) = answer.head.headers.get(SESSION_ID)
        && !session.is_empty()
    {
        talk.set_session_id(session.clone());
    }
    match answer.media() {
        Media::EventStream => Box::pin(stream(talk, answer, head)).await,
        Media::Json => {
            let limit = talk.client.settings.max_body_bytes;
            let body = collect(&mut answer, limit).await?;
            if body.is_empty() {
                return Err(no_message_error(&answer));
            }
            if talk.sink.message(body, Some(head.number)) {
                return Ok(());
            }
            Err(ClientError::InvalidResponse {
                reason: "the body is not a response to the request".to_owned(),
            })
        }
        Media::Other(media) => {
            let empty = answer.read_beginning(1).await.is_empty();
            Err(match media {
                Some(media) if !empty => ClientError::InvalidResponse {
                    reason: format!(
                        "the content type is {media}, not application/json or text/event-stream"
                    ),
                },
                None if !empty => ClientError::InvalidResponse {
                    reason: "the response has no content type: application/json or text/event-stream is required".to_owned(),
                },
                _ => no_message_error(&answer),
            })
        }
    }
}

async fn stream(
    talk: &HttpLinkShared,
    answer: HttpResponse,
    head: &RequestHead,
) -> Result<(), ClientError> {
    let mut memory = ResumptionState::default();
    let owner = StreamOwner::Request(head.number);
    let limit = talk.client.settings.max_body_bytes;
    match pump(answer, owner, &mut memory, limit, &talk.sink).await {
        StreamEnd::Answered => Ok(()),
        StreamEnd::TooLarge { limit } => Err(too_large(limit)),
        StreamEnd::Lost { reason, .. }
            if memory.last_event.is_none() || !has_resumable_streams(head.revision) =>
        {
            Err(ClientError::lost(reason))
        }
        StreamEnd::Lost { is_broken, .. } => {
            talk.resume_stream(head.number, memory, is_broken).await
        }
    }
}

/// Whether streams of this revision can be resumed with `Last-Event-ID`. Before the handshake is complete, the
/// requested revision decides.
fn has_resumable_streams(revision: Revision) -> bool {
    revision.features().resumable_streams
}

async fn collect(answer: &mut HttpResponse, limit: usize) -> Result<Bytes, ClientError> {
    answer.collect(limit).await.map_err(|error| match error {
        BodyError::TooLong => too_large(limit),
        BodyError::Broken(reason) => ClientError::lost(reason),
    })
}

pub(super) fn too_large(limit: usize) -> ClientError {
    ClientError::InvalidResponse {
        reason: format!("a message is larger than {limit} bytes (`max_body_bytes`)"),
    }
}

fn no_message_error(answer: &HttpResponse) -> ClientError {
    ClientError::InvalidResponse {
        reason: format!(
            "the server answered the request with HTTP status {} and no message",
            answer.head.status.as_u16()
        ),
    }
}
