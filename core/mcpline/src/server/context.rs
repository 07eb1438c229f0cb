//! What a handler may do and know while it works.

use std::sync::Arc;

use mcpline_protocol::Scopes;
use mcpline_protocol::session::{InputRequestError, Outgoing, Peer};
use mcpline_protocol::vocabulary::LoggingLevel;
use mcpline_protocol::wire::{Raw, encode};
use mcpline_protocol::{Revision, RpcError};

use crate::authorized::Authorized;
use crate::clock;
use crate::error::Error;
use crate::lane::{self, Lane};
use crate::quota::ClientQuota;

use super::asking::{self, Ask};
use super::call::CallState;
use super::connection::{Connection, SessionGuard};
use super::custom;
use super::permission;
use super::request_info::HttpInfo;

/// A handler's view of the request that it serves. Cheap to clone, usable from any thread.
///
/// After a suspension (see [`Context::ask`]) everything here is that of the client's retry.
#[derive(Clone)]
pub struct Context {
    call: Arc<CallState>,
}

impl Context {
    pub(crate) fn new(call: Arc<CallState>) -> Self {
        Self { call }
    }

    /// Whom what is held for the call is charged to.
    pub(crate) fn client(&self) -> Arc<ClientQuota> {
        self.call.lock_seat().connection.client().clone()
    }

    /// Reports progress; must increase with each report (every revision, `basic/utilities/progress`).
    ///
    /// Does nothing if the client didn't ask for progress. Floods are thinned, the last report is always
    /// delivered.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let (connection, lane, key) = {
            let seat = self.call.lock_seat();
            let Some(key) = seat.key else { return };
            (seat.connection.clone(), seat.lane.clone(), key)
        };
        let mut session = connection.lock_session();
        let outgoing = session.progress(key, progress, total, message, clock::now());
        send_or_schedule(&connection, session, &*lane, outgoing);
    }

    /// Sends a log message to the client, if it wants messages of this level.
    ///
    /// `data` is any JSON value. Handshake era: `logging/setLevel` decides; 2026-07-28: only requests
    /// that name a level get messages.
    ///
    /// Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
    pub fn log(&self, level: LoggingLevel, logger: Option<&str>, data: &Raw) {
        let (connection, lane, key) = {
            let seat = self.call.lock_seat();
            if seat.key.is_none() && !self.call.is_outside_request() {
                return;
            }
            (seat.connection.clone(), seat.lane.clone(), seat.key)
        };
        let mut session = connection.lock_session();
        let outgoing = session.log(key, level, logger, data, clock::now());
        send_or_schedule(&connection, session, &*lane, outgoing);
    }

    /// Sends a notification that no revision defines, on the stream of the call.
    ///
    /// In a handshake-era session, the handlers of events and of custom notifications send it on the session's own stream.
    /// Does nothing once the request has ended or was cancelled, while it is suspended, or where there is none. While too much waits to be read
    /// by the client, half of `kept_events` or `kept_bytes` on a resumable stream, notifications are dropped.
    ///
    /// # Errors
    ///
    /// The protocol defines the method, its name is not 1 to 1024 bytes of visible ASCII or begins with `rpc.`, or `params` is
    /// not a JSON object.
    pub fn notify(&self, method: &str, params: Option<&Raw>) -> Result<(), Error> {
        custom::check_notification(method, params)?;
        let (connection, lane, key) = {
            let seat = self.call.lock_seat();
            if seat.key.is_none()
                && (!self.call.is_outside_request() || seat.peer.revision.is_modern())
            {
                return Ok(());
            }
            (seat.connection.clone(), seat.lane.clone(), seat.key)
        };
        let mut session = connection.lock_session();
        if key.is_some_and(|key| !session.is_in_flight(key)) {
            return Ok(());
        }
        if lane.is_congested() {
            tracing::debug!(
                method,
                "dropped a notification of a handler: too much waits to be read"
            );
            return Ok(());
        }
        let params = params.map(Raw::as_bytes);
        lane.write(
            lane::Kind::Notification,
            params.map_or(0, <[u8]>::len) + 96,
            &mut |out| encode::notification(out, method, params),
        );
        Ok(())
    }

    /// Asks the client, in the middle of the call, on every revision.
    ///
    /// Toward a handshake-era client the question is sent and the answer awaited. On 2026-07-28 the
    /// request ends with `input_required`, the handler stays where it is, and the client's retry resumes
    /// it; if the retry reaches another process, the handler runs again from its start there and gets
    /// the recorded answers. Questions that are asked at the same time share one round; on a runtime with
    /// several threads they may come in two.
    ///
    /// `sink` is called once, on any thread, with the client's result.
    pub fn ask_with(
        &self,
        ask: Ask,
        sink: impl FnOnce(Result<Raw, InputRequestError>) + Send + 'static,
    ) {
        asking::ask(&self.call, ask, Box::new(sink));
    }

    /// Asks the client and awaits the answer; see [`Context::ask_with`].
    ///
    /// # Errors
    ///
    /// [`InputRequestError`]: the client can't be asked this, refused, took too long, or the request was
    /// cancelled.
    pub async fn ask(&self, ask: Ask) -> Result<Raw, InputRequestError> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.ask_with(ask, move |outcome| {
            // The handler may have lost interest.
            let _ = sender.send(outcome);
        });
        receiver
            .await
            .unwrap_or(Err(InputRequestError::ConnectionLost))
    }

    /// Whether the request was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    /// Whether the handler is suspended: its request was answered with questions, and the client's retry has not come yet
    /// (2026-07-28).
    pub fn is_suspended(&self) -> bool {
        self.call.lock_seat().key.is_none() && !self.call.is_outside_request()
    }

    /// Has `callback` called once, on any thread, when the request is cancelled; at once if it was.
    pub fn on_cancel(&self, callback: impl FnOnce() + Send + 'static) {
        self.call.on_cancel(Box::new(callback));
    }

    /// Closes the response stream while the call goes on; the client comes back for the rest
    /// (2025-11-25, `basic/transports`, polling). Does nothing on other revisions and transports.
    pub fn close_stream(&self) {
        let seat = self.call.seat();
        if seat.peer.revision.features().sse_priming {
            seat.lane.close_stream();
        }
    }

    /// The client: its revision, name and capabilities.
    pub fn peer(&self) -> Arc<Peer> {
        self.call.lock_seat().peer.clone()
    }

    /// The settings, an object, with which the client declared an extension; `None` if it did not. On 2026-07-28 each request
    /// declares its own.
    pub fn client_extension(&self, identifier: &str) -> Option<Raw> {
        self.peer().extension(identifier)
    }

    /// Checks that the client declared an extension, where only a part of what the handler does needs it. A method that
    /// belongs to an extension ([`MethodOptions::extension`](super::MethodOptions::extension)) is not called else.
    ///
    /// # Errors
    ///
    /// What a handler is to end with: -32021, which names the extension (2026-07-28, "Extensions", negotiation).
    pub fn require_extension(&self, identifier: &str) -> Result<(), RpcError> {
        match self.client_extension(identifier) {
            Some(_) => Ok(()),
            None => Err(RpcError::missing_extension(identifier)),
        }
    }

    /// The revision that the request follows.
    pub fn revision(&self) -> Revision {
        self.call.lock_seat().peer.revision
    }

    /// The request's JSON-RPC id, as JSON; `""` outside of a request.
    pub fn request_id(&self) -> Raw {
        Raw::from_trusted(bytes::Bytes::copy_from_slice(
            self.call.lock_seat().id.raw(),
        ))
    }

    /// The HTTP session's id, in the handshake era.
    pub fn session_id(&self) -> Option<String> {
        self.call
            .lock_seat()
            .connection
            .session_id()
            .map(Into::into)
    }

    /// The HTTP side of the request, where there is one.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn http(&self) -> Option<Arc<HttpInfo>> {
        self.call.lock_seat().http.clone()
    }

    /// The caller: who it is, what it may do, what is known of it. Over HTTP whose token was checked, over a transport
    /// that names its [principal](crate::Server::connect_as) that one. `None` where there is neither: on other transports,
    /// and over HTTP without authorization.
    pub fn auth(&self) -> Option<Authorized> {
        let seat = self.call.lock_seat();
        match &seat.http {
            Some(http) => http.auth.clone(),
            None => seat.connection.auth().cloned(),
        }
    }

    /// Checks that the caller has these scopes, where they depend on what is asked for; what is needed in any case is
    /// better said with the tool ([`ToolOptions::scopes`](super::ToolOptions::scopes)). Over transports that name no principal
    /// everybody has them.
    ///
    /// # Errors
    ///
    /// What a handler is to end with: over HTTP it becomes status 403 with a challenge that names the scopes
    /// (2025-11-25, `basic/authorization`, scope challenge handling), unless something was sent before; over other
    /// transports the JSON-RPC error -31001.
    pub fn require_scopes<S: AsRef<str>>(
        &self,
        scopes: impl IntoIterator<Item = S>,
    ) -> Result<(), RpcError> {
        let needed = Scopes::checked(scopes)
            .map_err(|text| RpcError::internal_error(format!("{text:?} can't be a scope")))?;
        let (connection, http) = {
            let seat = self.call.lock_seat();
            (seat.connection.clone(), seat.http.clone())
        };
        match permission::has(&connection, http.as_deref(), &needed) {
            true => Ok(()),
            false => Err(RpcError::insufficient_scope(&needed)),
        }
    }

    /// The request's `_meta`, as JSON.
    pub fn meta(&self) -> Option<Raw> {
        self.call.lock_seat().meta.clone()
    }

    /// The client's answers to the questions that the handler returned in its last run, by key; `None`
    /// in the first run.
    pub fn input_responses(&self) -> Option<Raw> {
        self.call
            .input
            .as_ref()
            .map(|input| input.responses.clone())
    }

    /// What the handler's last run wanted to remember.
    pub fn request_state(&self) -> Option<String> {
        self.call.input.as_ref()?.state.clone()
    }
}

/// Sends a message within the session's lock, so that neither a later report nor the response overtakes it.
fn send_or_schedule(
    connection: &Arc<Connection>,
    session: SessionGuard<'_>,
    lane: &dyn Lane,
    outgoing: Option<Outgoing>,
) {
    match outgoing {
        Some(outgoing) => lane::send(lane, lane::Kind::Notification, &outgoing.message),
        None => {
            drop(session);
            connection.schedule();
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("name", &self.call.name())
            .field("cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}
