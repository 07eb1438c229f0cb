//! GET of 2025-03-26 to 2025-11-25: opens a session's own event stream, or resumes a lost stream after its last event.

use std::sync::Arc;

use http::header::ACCEPT;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::header_names::LAST_EVENT_ID;
use crate::quota::ClientQuota;

use super::legacy::find_session;
use super::post::events;
use super::response_body::Body;
use super::service::{Shared, refusal};
use super::sessions::Session;
use super::stream::EventId;

/// GET: the session's own stream, or the rest of a lost one.
pub(super) async fn open_or_resume(
    shared: &Arc<Shared>,
    parts: &Parts,
    client: &Arc<ClientQuota>,
) -> Response<Body> {
    if !accepts_event_stream(&parts.headers) {
        return refusal(
            StatusCode::NOT_ACCEPTABLE,
            "Accept must list text/event-stream",
        );
    }
    let session = match find_session(shared, parts, client).await {
        Ok(session) => session,
        Err(refusal) => return refusal.response(),
    };
    if let Some(id) = parts.headers.get(LAST_EVENT_ID) {
        return resume_stream(shared, &session, id).await;
    }
    if session.sends_priming_event() {
        session.general.prime();
    }
    events(shared, &session.general, None)
}

/// Resumes a stream that the client lost.
async fn resume_stream(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    last: &HeaderValue,
) -> Response<Body> {
    let event = last.to_str().ok().and_then(EventId::parse);
    if let Some(event) = event {
        let (name, after) = (event.stream, event.event);
        if let Some(stream) = session.stream(name) {
            return events(shared, &stream, Some(after));
        }
        if let Some(replicas) = shared.sessions.replicas() {
            let retry = shared.options.retry;
            // Connects first: events of a stream without a listener are left to another process.
            let general = name
                .is_general()
                .then(|| events(shared, &session.general, None));
            match (
                replicas.continue_stream(session, event, retry).await,
                general,
            ) {
                (Err(refusal), _) => return refusal.response(),
                (Ok(Some(_)), Some(response)) => return response,
                (Ok(Some(stream)), None) => return events(shared, &stream, Some(after)),
                (Ok(None), _) => {}
            }
        }
    }
    refusal(
        StatusCode::BAD_REQUEST,
        "Last-Event-ID: unknown stream, or the events after it are no longer kept",
    )
}

fn accepts_event_stream(headers: &HeaderMap) -> bool {
    headers.get_all(ACCEPT).iter().any(|value| {
        value.to_str().is_ok_and(|value| {
            value.split(',').any(|entry| {
                let entry = entry.split(';').next().unwrap_or_default().trim();
                entry.eq_ignore_ascii_case("text/event-stream")
                    || entry == "*/*"
                    || entry == "text/*"
            })
        })
    })
}
