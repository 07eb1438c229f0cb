//! 2025-03-26 to 2025-11-25 over HTTP: sessions, POST and DELETE. GET is in `stream_resumption`.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use mcpline_protocol::Revision;
use mcpline_protocol::wire::{Incoming, Message, Method, ReadError, RequestId};
use mcpline_runtime::clock;

use crate::header_names::{PROTOCOL_VERSION, SESSION_ID, value_of};
use crate::message_sink::{MessageSink, ResponseStatus};
use crate::quota::ClientQuota;
use crate::server::HttpInfo;

use super::caller;
use super::post::{PendingResponse, accepted, outcome, unreadable};
use super::post_response::PostResponse;
use super::recorded;
use super::replicas::ForwardedParts;
use super::response_body::Body;
use super::service::{Refusal, Shared, empty, principal};
use super::sessions::Session;
use super::stream::Stream;

/// Passes the message of one POST on. `revision` is the one that its header names.
pub(super) fn begin<'a>(
    shared: &'a Arc<Shared>,
    parts: &'a mut Parts,
    revision: Option<Revision>,
    incoming: Result<Incoming, ReadError>,
    client: &'a Arc<ClientQuota>,
) -> PendingResponse<'a> {
    let incoming = match incoming {
        Ok(incoming) => incoming,
        Err(error) => return refuse_later(shared, parts, error, client),
    };
    let opens = matches!(
        &incoming,
        Incoming::Single(Message::Request(request)) if request.method == Method::Initialize
    );
    if opens && !parts.headers.contains_key(SESSION_ID) {
        return open_later(shared, parts, incoming, client);
    }
    if shared.sessions.replicas().is_some() {
        return serve_later(shared, parts, incoming, client);
    }
    let served = &shared.server.inner().settings.revisions;
    let session = check_served(revision, served)
        .and_then(|()| find_local_session(shared, parts, session_id(parts)?));
    let session = match session {
        Ok(session) => session,
        Err(refusal) => return refusal.response().into(),
    };
    note_use(shared, &session, &incoming);
    match pass_to_session(shared, &session, parts, incoming) {
        Ok(Some(exchange)) => PendingResponse::Legacy(exchange),
        Ok(None) => accepted().into(),
        Err(refusal) => refusal.response().into(),
    }
}

// The futures are large. Constructed in functions of their own, they are not part of the stack frame of every request.

#[inline(never)]
fn refuse_later<'a>(
    shared: &'a Arc<Shared>,
    parts: &'a Parts,
    error: ReadError,
    client: &'a Arc<ClientQuota>,
) -> PendingResponse<'a> {
    PendingResponse::later(refuse(shared, parts, error, client))
}

#[inline(never)]
fn open_later<'a>(
    shared: &'a Arc<Shared>,
    parts: &'a mut Parts,
    incoming: Incoming,
    client: &'a Arc<ClientQuota>,
) -> PendingResponse<'a> {
    PendingResponse::later(open(shared, parts, incoming, client))
}

#[inline(never)]
fn serve_later<'a>(
    shared: &'a Arc<Shared>,
    parts: &'a mut Parts,
    incoming: Incoming,
    client: &'a Arc<ClientQuota>,
) -> PendingResponse<'a> {
    PendingResponse::later(async move {
        match find_session(shared, parts, client).await {
            Ok(session) => serve(shared, &session, parts, incoming).await,
            Err(refusal) => refusal.response(),
        }
    })
}

/// Refuses an invalid message. The requests of an oversized batch are answered one by one, in a session that has
/// batches; anything else gets one error.
async fn refuse(
    shared: &Arc<Shared>,
    parts: &Parts,
    error: ReadError,
    client: &Arc<ClientQuota>,
) -> Response<Body> {
    let mut session = None;
    if error.batch.is_some() {
        let named = find_session(shared, parts, client).await.ok();
        session = named.filter(|session| session.connection.lock_session().admit_batch().is_ok());
    }
    let Some(session) = session else {
        let response = unreadable(&error);
        let inner = shared.server.inner();
        if let Some(origin) = recorded::origin_of(parts) {
            recorded::record_refusal(inner, &origin, &response);
        }
        return response;
    };
    let (options, reader) = (shared.options.clone(), client.clone());
    let exchange = PostResponse::new(client.clone(), None, move || {
        Stream::transient(&options, &reader)
    });
    let sink: Arc<dyn MessageSink> = exchange.clone();
    session.connection.receive(Err(error), &sink, None);
    outcome(shared, &exchange, status).await
}

/// `initialize`: opens a session, which is published once the handshake was answered.
async fn open(
    shared: &Arc<Shared>,
    parts: &mut Parts,
    incoming: Incoming,
    client: &Arc<ClientQuota>,
) -> Response<Body> {
    let room = match shared.sessions.make_room(client) {
        Ok(room) => room,
        Err(refusal) => return refusal.response(),
    };
    let session = shared
        .sessions
        .begin(&shared.server, &shared.options, principal(parts), client);
    // The client does not know its id if the handshake fails, or if the client leaves while the session is saved.
    let unpublished = UnpublishedSession(Some(&session));
    session
        .general
        .extend_deadline(caller::stream_deadline(parts));
    let mut response = serve(shared, &session, parts, incoming).await;
    if session.connection.peer().is_none() {
        return response;
    }
    unpublished.keep();
    session.publish(room);
    if let Ok(id) = HeaderValue::from_str(session.id()) {
        response.headers_mut().insert("mcp-session-id", id);
    }
    response
}

/// A session that ends in every process on drop, unless it is kept.
struct UnpublishedSession<'a>(Option<&'a Session>);

impl UnpublishedSession<'_> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for UnpublishedSession<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.0 {
            session.end();
        }
    }
}

/// Answers a message, and shares the changes that it made with other processes.
async fn serve(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    parts: &mut Parts,
    incoming: Incoming,
) -> Response<Body> {
    // Before anything waits, because sessions that are not used have to make room for others.
    note_use(shared, session, &incoming);
    // The message is only examined if there are other processes.
    let replicas = shared.sessions.replicas();
    let shareable = replicas.map(|replicas| replicas.shareable(session, &incoming));
    let shareable = match shareable.transpose() {
        Ok(shareable) => shareable,
        Err(refusal) => return refusal.response(),
    };
    let mut unshared = replicas.map(|replicas| replicas.watch_changes(session));
    if let (Some(replicas), Some(ForwardedParts { state: true, .. })) = (replicas, &shareable) {
        if session.connection.peer().is_some() {
            replicas.refresh(session).await;
        }
        let now = clock::unix_now();
        session.connection.lock_session().begin_change(now);
    }
    // Meanwhile, a DELETE may have arrived at any process.
    if session.has_ended() {
        return no_such_session().response();
    }
    let exchange = match pass_to_session(shared, session, parts, incoming) {
        Ok(exchange) => exchange,
        Err(refusal) => return refusal.response(),
    };
    if let (Some(replicas), Some(unshared), Some(shareable)) = (replicas, &mut unshared, shareable)
    {
        unshared.is_uncounted = shareable.state;
        session.connection.wait_for_subscription_checks().await;
        // What follows counts it before it waits.
        unshared.is_uncounted = false;
        replicas.share(session, shareable).await;
    }
    // Not only once the response is complete.
    drop(unshared);
    match exchange {
        Some(exchange) => outcome(shared, &exchange, status).await,
        None => accepted(),
    }
}

/// Records it if this uses the session beyond its handshake.
fn note_use(shared: &Shared, session: &Session, incoming: &Incoming) {
    let uses = |message: &Message| match message {
        Message::Request(request) => request.method != Method::Initialize,
        Message::Notification(notification) => {
            let profile = shared.server.inner().profile();
            let method = notification.method.as_str();
            profile.notifications.contains(method)
        }
        Message::Response(_) => false,
    };
    if incoming.messages().any(uses) {
        session.note_use();
    }
}

/// Passes a message to its session. Returns the exchange of its response, if it has one.
fn pass_to_session(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    parts: &mut Parts,
    incoming: Incoming,
) -> Result<Option<Arc<PostResponse>>, Refusal> {
    if let Incoming::Batch(_) = &incoming {
        let admitted = session.connection.lock_session().admit_batch();
        admitted.map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, error.message))?;
    }
    if shared.sessions.replicas().is_some() {
        for message in incoming.messages() {
            session.connection.conclude_handshake(message);
        }
    }
    let awaits = awaits_response(&incoming);
    let opener = Arc::downgrade(session);
    let options = shared.options.clone();
    let primes = session.sends_priming_event();
    let id = match &incoming {
        Incoming::Single(Message::Request(request)) => Some(request.id.clone()),
        _ => None,
    };
    let client = session.connection.client().clone();
    let reader = client.clone();
    let request = id.clone();
    let exchange = PostResponse::new(client, id, move || match opener.upgrade() {
        Some(session) => open_stream(&session, primes, request.as_ref()),
        None => Stream::transient(&options, &reader),
    });
    let sink: Arc<dyn MessageSink> = exchange.clone();
    let http = Arc::new(HttpInfo::of(parts));
    session.connection.receive(Ok(incoming), &sink, Some(&http));
    Ok(awaits.then_some(exchange))
}

/// Whether a message has a response.
pub(super) fn awaits_response(incoming: &Incoming) -> bool {
    match incoming {
        Incoming::Single(message) => matches!(message, Message::Request(_)),
        Incoming::Batch(entries) => entries.iter().any(|entry| match entry {
            Ok(message) => matches!(message, Message::Request(_)),
            Err(error) => error.is_answerable(),
        }),
    }
}

/// Opens a stream for the response to one POST. Called while the connection's session may be locked, so it must not
/// lock it.
fn open_stream(session: &Session, primes: bool, request: Option<&RequestId>) -> Arc<Stream> {
    let stream = session.open_stream();
    if let Some(request) = request
        && stream.is_logged()
    {
        stream.name_request(request);
    }
    if primes {
        stream.prime();
    }
    stream
}

/// DELETE: the client no longer needs the session.
pub(super) async fn delete(
    shared: &Arc<Shared>,
    parts: &Parts,
    client: &Arc<ClientQuota>,
) -> Response<Body> {
    match find_session(shared, parts, client).await {
        Ok(session) => {
            session.end_and_wait().await;
            empty(StatusCode::NO_CONTENT)
        }
        Err(refusal) => refusal.response(),
    }
}

/// Finds the session of a request, if its protocol version is served.
pub(super) async fn find_session(
    shared: &Shared,
    parts: &Parts,
    client: &Arc<ClientQuota>,
) -> Result<Arc<Session>, Refusal> {
    check_version(&parts.headers, &shared.server.inner().settings.revisions)?;
    let id = session_id(parts)?;
    let here = find_local_session(shared, parts, id);
    let Some(replicas) = shared.sessions.replicas() else {
        return here;
    };
    if here.is_ok() || shared.sessions.get(id).is_some() {
        return here;
    }
    let found = replicas.find(shared, id, principal(parts), client).await?;
    let session = found.ok_or_else(no_such_session)?;
    session
        .general
        .extend_deadline(caller::stream_deadline(parts));
    Ok(session)
}

/// Finds the session of a request in this process.
fn find_local_session(shared: &Shared, parts: &Parts, id: &str) -> Result<Arc<Session>, Refusal> {
    let found = shared.sessions.find(id, principal(parts));
    let session = found.map_err(|_| no_such_session())?;
    session
        .general
        .extend_deadline(caller::stream_deadline(parts));
    Ok(session)
}

fn session_id(parts: &Parts) -> Result<&str, Refusal> {
    let Some(id) = value_of(&parts.headers, &SESSION_ID) else {
        return Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "the request needs an Mcp-Session-Id: send initialize first",
        ));
    };
    std::str::from_utf8(id.as_bytes()).map_err(|_| no_such_session())
}

fn no_such_session() -> Refusal {
    Refusal::new(
        StatusCode::NOT_FOUND,
        "unknown session: send initialize to start a new one",
    )
}

/// Refuses an invalid or unsupported version (2025-06-18, `basic/transports`, protocol version header). Without a
/// version the client is an older one.
pub(super) fn check_version(headers: &HeaderMap, served: &[Revision]) -> Result<(), Refusal> {
    let Some(version) = value_of(headers, &PROTOCOL_VERSION) else {
        return Ok(());
    };
    let version = std::str::from_utf8(version.as_bytes()).ok();
    let revision = version.and_then(|version| Revision::parse(version.trim()));
    revision.map_or_else(
        || Err(unsupported_version()),
        |revision| check_served(Some(revision), served),
    )
}

/// Refuses a revision that is not served. One of the other era is refused by the code that serves that era.
fn check_served(revision: Option<Revision>, served: &[Revision]) -> Result<(), Refusal> {
    match revision {
        Some(revision) if !revision.is_modern() && !served.contains(&revision) => {
            Err(unsupported_version())
        }
        _ => Ok(()),
    }
}

fn unsupported_version() -> Refusal {
    Refusal::new(
        StatusCode::BAD_REQUEST,
        "this MCP-Protocol-Version is not supported",
    )
}

/// Returns the status for the outcome of a request. In this era errors of requests have status 200; only invalid
/// messages do not.
pub(super) fn status(ended: ResponseStatus) -> StatusCode {
    match ended {
        ResponseStatus::Unreadable(_) => StatusCode::BAD_REQUEST,
        ResponseStatus::Forbidden(_) => StatusCode::FORBIDDEN,
        ResponseStatus::Result | ResponseStatus::Error(_) | ResponseStatus::Refused(_) => {
            StatusCode::OK
        }
    }
}
