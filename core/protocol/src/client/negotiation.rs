//! Opens a session with a server of any revision (2026-07-28, `basic/versioning`, backward compatibility, and the
//! pages of the transports).
//!
//! The driver sends the message of [`NegotiationStep::Send`] and reports the result: a response
//! ([`Negotiation::receive_response`]), an HTTP error ([`Negotiation::receive_http_refusal`]), the end of the server
//! ([`Negotiation::receive_disconnect`]), or a timeout ([`Negotiation::handle_timeout`]). Each report returns the next
//! step, and the last one is [`NegotiationStep::Complete`] or [`NegotiationStep::Failed`]. However a server behaves,
//! this takes no longer than the timeouts of one probe and three responses.
//!
//! An HTTP error for one era says little about the other: servers of the handshake era respond to a first message that
//! isn't `initialize` with 400, 403, 404, 409, 422, 426, 429 or 5xx, depending on their framework. So each way is tried
//! once: the preferred era, the other one, and HTTP+SSE if `initialize` is rejected with 4xx (2025-03-26,
//! `basic/transports`, backwards compatibility). A request for credentials (401, 407) ends the negotiation at once.

use std::time::Duration;

use serde_json::{Value, json};

use crate::adapt;
use crate::error::{ErrorCode, RpcError};
use crate::printable::Printable;
use crate::revision::{Era, Revision};
use crate::vocabulary::{
    ClientCapabilities, DiscoverResult, Implementation, InitializeResult, ServerCapabilities, meta,
};
use crate::wire::{Raw, RequestId, encode};

/// The client's side of a negotiation.
#[derive(Debug, Clone)]
pub struct NegotiationOptions {
    /// The client's name and version.
    pub info: Implementation,
    /// The capabilities that it declares.
    pub capabilities: ClientCapabilities,
    /// The revisions that it may speak, in any order.
    pub revisions: Vec<Revision>,
    /// The era to try first; the other one is tried only if that fails. Without it, `server/discover` is sent first.
    pub era: Option<Era>,
    /// The timeouts of each part.
    pub timeouts: OpenTimeouts,
}

impl NegotiationOptions {
    /// Every revision, nothing remembered, default timeouts.
    pub fn new(info: Implementation, capabilities: ClientCapabilities) -> Self {
        Self {
            info,
            capabilities,
            revisions: Revision::ALL.to_vec(),
            era: None,
            timeouts: OpenTimeouts::default(),
        }
    }
}

/// How long each part of opening a connection may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenTimeouts {
    /// For a response to `server/discover`, which servers of handshake revisions may leave unanswered. Default: 3
    /// seconds.
    pub probe: Duration,
    /// For a response to `initialize`, and to `server/discover` from a server that supports it. Also for opening a
    /// socket or custom channel. Default: 30 seconds.
    pub answer: Duration,
}

impl Default for OpenTimeouts {
    /// Three seconds for a probe, because starting an interpreter takes one; half a minute for a response.
    fn default() -> Self {
        Self {
            probe: Duration::from_secs(3),
            answer: Duration::from_secs(30),
        }
    }
}

/// The driver's next action.
#[derive(Debug)]
pub enum NegotiationStep {
    /// Send this request; over HTTP as a client of `revision` would.
    Send {
        /// The request's id, to match the response.
        id: RequestId,
        /// One JSON-RPC message.
        message: Vec<u8>,
        /// The revision of the message.
        revision: Revision,
    },
    /// Reconnect, then call [`Negotiation::start`] again: the server ended because of the probe.
    Reconnect,
    /// Open the event stream of HTTP+SSE (2024-11-05), then call [`Negotiation::start`] again: the endpoint supports
    /// nothing newer.
    UseHttpSse,
    /// Wait for the next message.
    Wait,
    /// The session is open.
    Complete(Box<NegotiatedSession>),
    /// No session can be opened.
    Failed(HandshakeError),
}

/// The result of a negotiation.
#[derive(Debug, Clone, PartialEq)]
pub struct NegotiatedSession {
    /// The negotiated revision.
    pub revision: Revision,
    /// The server's capabilities.
    pub capabilities: ServerCapabilities,
    /// The server's name and version, as it reports them.
    pub info: Option<Implementation>,
    /// How to use the server, for the model.
    pub instructions: Option<String>,
    /// `notifications/initialized`, to be sent before anything else; 2026-07-28 has none.
    pub initialized: Option<Vec<u8>>,
    /// The first free number for request ids.
    pub next_id: u64,
}

/// Why client and server could not agree, although the server was reached.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// Client and server have no protocol revision in common.
    #[error(
        "no common protocol revision: the server supports {}, this client {}",
        Printable(server.join(", ")),
        list_revisions(client)
    )]
    NoCommonRevision {
        /// The revisions that the server supports.
        server: Vec<String>,
        /// The revisions that the client may use.
        client: Vec<Revision>,
    },
    /// The server returned an error.
    #[error("server returned an error: {0}")]
    Refused(RpcError),
    /// The server's response is invalid.
    #[error("invalid response to `{method}`: {}", Printable(reason))]
    Invalid {
        /// The method of the request.
        method: &'static str,
        /// What is wrong with the response.
        reason: String,
    },
    /// The server responded with an HTTP status.
    #[error("server responded with HTTP status {status}{}", server_error_text(error.as_ref()))]
    Http {
        /// The status.
        status: u16,
        /// The JSON-RPC error in the body, if there was one.
        error: Option<RpcError>,
    },
    /// No response arrived in time.
    #[error("no response to `{method}` within {} s (`{}`)", waited.as_secs_f64(), if *is_probe { "probe_timeout" } else { "open_timeout" })]
    TimedOut {
        /// The method of the request.
        method: &'static str,
        /// The timeout that elapsed.
        waited: Duration,
        /// Whether another era was left to try, so that the shorter timeout applied.
        is_probe: bool,
    },
    /// The connection or the process ended.
    #[error("server exited or disconnected before it responded to `{method}`")]
    Gone {
        /// The method of the request.
        method: &'static str,
    },
    /// The options contain no revisions.
    #[error("`revisions` is empty: this client may not use any protocol revision")]
    NoRevision,
}

fn server_error_text(error: Option<&RpcError>) -> String {
    error.map(|error| format!(": {error}")).unwrap_or_default()
}

/// A failed attempt to open a session.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedOpenAttempt {
    /// The method of the request: `server/discover` or `initialize`.
    pub method: &'static str,
    /// Whether it was sent over HTTP+SSE (2024-11-05).
    pub over_http_sse: bool,
    /// How it failed.
    pub error: HandshakeError,
}

fn list_revisions(revisions: &[Revision]) -> String {
    let names: Vec<_> = revisions.iter().map(|revision| revision.as_str()).collect();
    names.join(", ")
}

const DISCOVER: &str = "server/discover";
const INITIALIZE: &str = "initialize";

/// Agrees with a server on an era and a revision. See the [module](super).
#[derive(Debug)]
pub struct Negotiation {
    plan: NegotiationOptions,
    pending: Option<NegotiationRequest>,
    next_id: u64,
    /// The era that is being tried.
    era: Option<Era>,
    /// The revision to request, if the server said which ones it supports.
    requested_revision: Option<Revision>,
    /// What has been tried, so that nothing is tried twice.
    attempted: NegotiationAttempts,
    /// The response to a probe that arrived after its timeout.
    late_discover_result: Option<DiscoverResult>,
    probe: Option<u64>,
    /// The failed attempts, in order.
    attempts: Vec<FailedOpenAttempt>,
    /// Whether requests go over HTTP+SSE.
    over_http_sse: bool,
}

#[derive(Debug)]
struct NegotiationRequest {
    id: u64,
    method: &'static str,
    since: Duration,
    deadline: Duration,
    /// Whether the probe's timeout applies to it.
    is_probe: bool,
    /// Whether something other than the server is awaited.
    is_paused: bool,
}

#[derive(Debug, Default)]
struct NegotiationAttempts {
    modern: bool,
    legacy: bool,
    other_version: bool,
    reconnect: bool,
    http_sse: bool,
}

impl Negotiation {
    /// A negotiation that has not sent anything yet.
    pub fn new(plan: NegotiationOptions) -> Self {
        Self {
            plan,
            pending: None,
            next_id: 1,
            era: None,
            requested_revision: None,
            attempted: NegotiationAttempts::default(),
            late_discover_result: None,
            probe: None,
            attempts: Vec::new(),
            over_http_sse: false,
        }
    }

    /// The failed attempts so far, in order.
    pub fn attempts(&self) -> &[FailedOpenAttempt] {
        &self.attempts
    }

    /// Whether a probe failed in a way that says nothing about the server's era: it was slow, busy, broken or gone.
    pub fn is_era_uncertain(&self) -> bool {
        let mut probes = self.attempts.iter().filter(|one| one.method == DISCOVER);
        probes.any(|probe| match probe.error {
            HandshakeError::TimedOut { .. } | HandshakeError::Gone { .. } => true,
            HandshakeError::Http { status, .. } => {
                matches!(status, 408 | 425 | 429) || !(400..500).contains(&status)
            }
            _ => false,
        })
    }

    /// The first request, or the first after [`NegotiationStep::Reconnect`] or [`NegotiationStep::UseHttpSse`].
    pub fn start(&mut self, now: Duration) -> NegotiationStep {
        let first = self.plan.era.unwrap_or(Era::Modern);
        let era = self.era.unwrap_or(first);
        match era {
            Era::Modern if self.newest_of_era(Era::Modern).is_some() => self.send_discover(now),
            Era::Legacy if self.newest_of_era(Era::Legacy).is_some() => self.send_initialize(now),
            _ if self.newest_of_era(Era::Legacy).is_some() => self.send_initialize(now),
            _ if self.newest_of_era(Era::Modern).is_some() => self.send_discover(now),
            _ => NegotiationStep::Failed(HandshakeError::NoRevision),
        }
    }

    /// Processes the response to the request with this id.
    pub fn receive_response(
        &mut self,
        id: &RequestId,
        outcome: Result<Raw, RpcError>,
        now: Duration,
    ) -> NegotiationStep {
        let Some(pending) = self
            .pending
            .take_if(|pending| *id == request_id(pending.id))
        else {
            if self.probe.is_some_and(|probe| *id == request_id(probe)) {
                // It may still be needed if the handshake fails.
                self.late_discover_result = outcome.ok().and_then(|result| result.decode().ok());
            }
            return NegotiationStep::Wait;
        };
        if let Err(error) = &outcome {
            self.record_failure(pending.method, &HandshakeError::Refused(error.clone()));
        }
        match (pending.method, outcome) {
            (DISCOVER, Ok(result)) => match result.decode::<DiscoverResult>() {
                Ok(found) => self.receive_discover_result(found, now),
                // A server of the handshake era that answers any request.
                Err(error) => {
                    let error = HandshakeError::Invalid {
                        method: DISCOVER,
                        reason: error.to_string(),
                    };
                    self.record_failure(DISCOVER, &error);
                    self.try_other_era(error, now)
                }
            },
            (DISCOVER, Err(error)) => self.receive_probe_error(error, now),
            (_, Ok(result)) => self.receive_initialize_result(&result, now),
            (_, Err(error)) => self.receive_initialize_error(error, now),
        }
    }

    /// Processes an HTTP error status in place of a response to the latest request; `error` is the JSON-RPC error in
    /// its body, if any.
    pub fn receive_http_refusal(
        &mut self,
        status: u16,
        error: Option<RpcError>,
        now: Duration,
    ) -> NegotiationStep {
        let Some(pending) = self.pending.take() else {
            return NegotiationStep::Wait;
        };
        let refusal = HandshakeError::Http {
            status,
            error: error.clone(),
        };
        self.record_failure(pending.method, &refusal);
        let code = error.as_ref().map(|error| error.code);
        if let Some(error) = error.filter(is_modern_error) {
            return self.receive_probe_error(error, now);
        }
        if needs_credentials(status) || status < 400 {
            return NegotiationStep::Failed(refusal);
        }
        if pending.method == DISCOVER {
            // A server that is known to support `server/discover` is overloaded or broken, not old.
            let is_known = self.plan.era == Some(Era::Modern);
            if is_known && !self.attempted.legacy && (status == 429 || status >= 500) {
                return NegotiationStep::Failed(refusal);
            }
            return self.try_other_era(refusal, now);
        }
        if let Some(found) = self.late_discover_result.take() {
            return self.receive_discover_result(found, now);
        }
        let speaks_json_rpc =
            code == Some(ErrorCode::METHOD_NOT_FOUND) && self.has_untried(Era::Modern);
        if may_serve_http_sse(status)
            && !speaks_json_rpc
            && self
                .plan
                .revisions
                .iter()
                .any(|revision| revision.features().http_sse)
            && !std::mem::replace(&mut self.attempted.http_sse, true)
        {
            self.era = Some(Era::Legacy);
            self.over_http_sse = true;
            return NegotiationStep::UseHttpSse;
        }
        self.try_other_era(refusal, now)
    }

    /// Processes the end of the connection, or of the server's process, before a response.
    pub fn receive_disconnect(&mut self) -> NegotiationStep {
        let Some(pending) = self.pending.take() else {
            return NegotiationStep::Wait;
        };
        let error = HandshakeError::Gone {
            method: pending.method,
        };
        self.record_failure(pending.method, &error);
        if self.over_http_sse {
            return self.leave_http_sse(error);
        }
        // Some servers of the handshake era exit when they receive an unknown request.
        if pending.method == DISCOVER
            && self.has_untried(Era::Legacy)
            && !std::mem::replace(&mut self.attempted.reconnect, true)
        {
            self.era = Some(Era::Legacy);
            return NegotiationStep::Reconnect;
        }
        NegotiationStep::Failed(error)
    }

    /// Pauses the timeout of the latest request until [`resume_timeout`](Self::resume_timeout), while something other
    /// than the server is awaited, such as the user's consent.
    pub fn pause_timeout(&mut self) {
        if let Some(pending) = &mut self.pending {
            pending.is_paused = true;
        }
    }

    /// Restarts the timeout of the latest request with its full length.
    pub fn resume_timeout(&mut self, now: Duration) {
        if let Some(pending) = self.pending.as_mut().filter(|pending| pending.is_paused) {
            pending.is_paused = false;
            pending.deadline = now + pending.deadline.saturating_sub(pending.since);
            pending.since = now;
        }
    }

    /// When to call [`Negotiation::handle_timeout`].
    pub fn poll_deadline(&self) -> Option<Duration> {
        let pending = self.pending.as_ref().filter(|pending| !pending.is_paused)?;
        Some(pending.deadline)
    }

    /// Stops waiting for an overdue response.
    pub fn handle_timeout(&mut self, now: Duration) -> NegotiationStep {
        let Some(pending) = self
            .pending
            .take_if(|pending| !pending.is_paused && pending.deadline <= now)
        else {
            return NegotiationStep::Wait;
        };
        let error = HandshakeError::TimedOut {
            method: pending.method,
            waited: now.saturating_sub(pending.since),
            is_probe: pending.is_probe,
        };
        self.record_failure(pending.method, &error);
        if pending.method == DISCOVER {
            self.probe = Some(pending.id);
            return self.try_other_era(error, now);
        }
        self.fail_handshake(error, now)
    }

    // Requests

    fn send_discover(&mut self, now: Duration) -> NegotiationStep {
        let Some(revision) = self
            .requested_revision
            .take()
            .or_else(|| self.newest_of_era(Era::Modern))
        else {
            return NegotiationStep::Failed(HandshakeError::NoRevision);
        };
        self.attempted.modern = true;
        self.era = Some(Era::Modern);
        // It is a probe only if there is something else to try.
        let alone = self.attempted.legacy || self.newest_of_era(Era::Legacy).is_none();
        let is_probe = self.plan.era != Some(Era::Modern) && !alone;
        let params = json!({"_meta": {
            meta::PROTOCOL_VERSION: revision,
            meta::CLIENT_INFO: adapt::implementation(&self.plan.info, revision),
            meta::CLIENT_CAPABILITIES: adapt::client_capabilities(&self.plan.capabilities, revision),
        }});
        self.send_request(DISCOVER, &params, revision, is_probe, now)
    }

    fn send_initialize(&mut self, now: Duration) -> NegotiationStep {
        let Some(revision) = self
            .requested_revision
            .take()
            .or_else(|| self.newest_of_era(Era::Legacy))
        else {
            return NegotiationStep::Failed(HandshakeError::NoRevision);
        };
        self.attempted.legacy = true;
        self.era = Some(Era::Legacy);
        let params = json!({
            "protocolVersion": revision,
            "capabilities": adapt::client_capabilities(&self.plan.capabilities, revision),
            "clientInfo": adapt::implementation(&self.plan.info, revision),
        });
        self.send_request(INITIALIZE, &params, revision, false, now)
    }

    fn send_request(
        &mut self,
        method: &'static str,
        params: &Value,
        revision: Revision,
        is_probe: bool,
        now: Duration,
    ) -> NegotiationStep {
        let timeout = match is_probe {
            true => self.plan.timeouts.probe,
            false => self.plan.timeouts.answer,
        };
        let id = self.next_id;
        self.next_id += 1;
        self.pending = Some(NegotiationRequest {
            id,
            method,
            since: now,
            deadline: now + timeout,
            is_probe,
            is_paused: false,
        });
        let mut message = Vec::new();
        let params = params.to_string();
        encode::request(
            &mut message,
            &request_id(id),
            method,
            Some(params.as_bytes()),
        );
        NegotiationStep::Send {
            id: request_id(id),
            message,
            revision,
        }
    }

    // Responses

    fn receive_discover_result(&mut self, found: DiscoverResult, now: Duration) -> NegotiationStep {
        match self.newest_common(&found.supported_versions) {
            Some(revision) if revision.is_modern() => {
                let info = found.meta.as_ref().and_then(|meta| {
                    serde_json::from_value(meta.get(meta::SERVER_INFO)?.clone()).ok()
                });
                self.finish(NegotiatedSession {
                    revision,
                    capabilities: found.capabilities,
                    info,
                    instructions: found.instructions,
                    initialized: None,
                    next_id: self.next_id,
                })
            }
            Some(revision) if !self.attempted.legacy => {
                self.requested_revision = Some(revision);
                self.send_initialize(now)
            }
            _ => self.fail_without_common_revision(found.supported_versions),
        }
    }

    fn receive_probe_error(&mut self, error: RpcError, now: Duration) -> NegotiationStep {
        if !is_modern_error(&error) {
            return self.try_other_era(HandshakeError::Refused(error), now);
        }
        if error.code != ErrorCode::UNSUPPORTED_VERSION {
            return NegotiationStep::Failed(HandshakeError::Refused(error));
        }
        let supported = supported_versions(&error);
        let again = !std::mem::replace(&mut self.attempted.other_version, true);
        match self.newest_common(&supported) {
            Some(revision) if revision.is_modern() && again => {
                self.requested_revision = Some(revision);
                self.send_discover(now)
            }
            Some(revision) if !revision.is_modern() && !self.attempted.legacy => {
                self.requested_revision = Some(revision);
                self.send_initialize(now)
            }
            _ => self.fail_without_common_revision(supported),
        }
    }

    fn receive_initialize_result(&mut self, result: &Raw, now: Duration) -> NegotiationStep {
        let result = match result.decode::<InitializeResult>() {
            Ok(result) => result,
            Err(error) => {
                let error = HandshakeError::Invalid {
                    method: INITIALIZE,
                    reason: error.to_string(),
                };
                self.record_failure(INITIALIZE, &error);
                return self.fail_handshake(error, now);
            }
        };
        let revision = Revision::parse(&result.protocol_version)
            .filter(|revision| !revision.is_modern() && self.plan.revisions.contains(revision));
        let Some(revision) = revision else {
            return self.fail_without_common_revision(vec![result.protocol_version]);
        };
        let mut initialized = Vec::new();
        encode::notification(&mut initialized, "notifications/initialized", None);
        self.finish(NegotiatedSession {
            revision,
            capabilities: result.capabilities,
            info: Some(result.server_info),
            instructions: result.instructions,
            initialized: Some(initialized),
            next_id: self.next_id,
        })
    }

    fn receive_initialize_error(&mut self, error: RpcError, now: Duration) -> NegotiationStep {
        // Some servers make no counter-offer but name their revisions in an error (2024-11-05, `lifecycle`, error
        // handling).
        let supported = supported_versions(&error);
        let other = self.newest_common(&supported);
        if let Some(revision) = other
            && !std::mem::replace(&mut self.attempted.other_version, true)
        {
            self.requested_revision = Some(revision);
            return match revision.era() {
                Era::Modern => self.send_discover(now),
                Era::Legacy => self.send_initialize(now),
            };
        }
        self.fail_handshake(HandshakeError::Refused(error), now)
    }

    /// The handshake failed: uses a late response to the probe, or sends a probe if none has been sent.
    fn fail_handshake(&mut self, error: HandshakeError, now: Duration) -> NegotiationStep {
        match self.late_discover_result.take() {
            Some(found) => self.receive_discover_result(found, now),
            None => self.try_other_era(error, now),
        }
    }

    /// Continues with the other era, or fails with `error` if that has been tried or is not allowed.
    fn try_other_era(&mut self, error: HandshakeError, now: Duration) -> NegotiationStep {
        if self.over_http_sse {
            return self.leave_http_sse(error);
        }
        match self.era {
            Some(Era::Modern) if self.has_untried(Era::Legacy) => self.send_initialize(now),
            Some(Era::Legacy) if self.has_untried(Era::Modern) => self.send_discover(now),
            _ => NegotiationStep::Failed(error),
        }
    }

    /// HTTP+SSE failed: only `server/discover` is left, over another connection.
    fn leave_http_sse(&mut self, error: HandshakeError) -> NegotiationStep {
        if !self.has_untried(Era::Modern) {
            return NegotiationStep::Failed(error);
        }
        self.over_http_sse = false;
        self.era = Some(Era::Modern);
        NegotiationStep::Reconnect
    }

    /// Records a failed attempt.
    fn record_failure(&mut self, method: &'static str, error: &HandshakeError) {
        self.attempts.push(FailedOpenAttempt {
            method,
            over_http_sse: self.over_http_sse,
            error: error.clone(),
        });
    }

    fn finish(&mut self, opened: NegotiatedSession) -> NegotiationStep {
        NegotiationStep::Complete(Box::new(opened))
    }

    fn fail_without_common_revision(&self, server: Vec<String>) -> NegotiationStep {
        NegotiationStep::Failed(HandshakeError::NoCommonRevision {
            server,
            client: self.plan.revisions.clone(),
        })
    }

    // Revisions

    /// The newest revision of an era that the client may speak.
    fn newest_of_era(&self, era: Era) -> Option<Revision> {
        let of_era = |revision: &&Revision| revision.era() == era;
        self.plan.revisions.iter().filter(of_era).max().copied()
    }

    /// Whether the client may speak this era and has not tried it.
    fn has_untried(&self, era: Era) -> bool {
        let attempted = match era {
            Era::Modern => self.attempted.modern,
            Era::Legacy => self.attempted.legacy,
        };
        !attempted && self.newest_of_era(era).is_some()
    }

    /// The newest revision that both sides may use.
    fn newest_common(&self, server: &[String]) -> Option<Revision> {
        let known = server.iter().filter_map(|version| Revision::parse(version));
        known
            .filter(|revision| self.plan.revisions.contains(revision))
            .max()
    }
}

fn request_id(id: u64) -> RequestId {
    RequestId::number(i64::try_from(id).unwrap_or(i64::MAX))
}

/// Whether a status asks for credentials of the server or a proxy: another request without them would fail, too.
fn needs_credentials(status: u16) -> bool {
    matches!(status, 401 | 407)
}

/// Whether an endpoint that rejects `initialize` with this status may support HTTP+SSE: any 4xx (2025-03-26,
/// `basic/transports`, backwards compatibility) except for too many requests, and 501, which means that POST is not
/// supported.
fn may_serve_http_sse(status: u16) -> bool {
    (matches!(status, 400..=499) && status != 429) || status == 501
}

/// Whether only a server of 2026-07-28 returns this error (`basic/versioning`, backward compatibility).
fn is_modern_error(error: &RpcError) -> bool {
    matches!(
        error.code,
        ErrorCode::UNSUPPORTED_VERSION
            | ErrorCode::MISSING_CLIENT_CAPABILITY
            | ErrorCode::HEADER_MISMATCH
    )
}

/// The versions in an error's `data.supported_versions`.
fn supported_versions(error: &RpcError) -> Vec<String> {
    let data = error.data.as_ref();
    let named = data.and_then(|data| data.member("supported"));
    named
        .and_then(|named| named.decode().ok())
        .unwrap_or_default()
}
