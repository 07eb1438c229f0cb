//! Opening a conversation with a server of any age (2026-07-28, `basic/versioning`, backward compatibility, and the
//! pages of the transports).
//!
//! The driver sends what [`Step::Send`] holds and reports what comes of it: an answer ([`Opening::answered`]), a
//! refusal by HTTP ([`Opening::refused`]), the end of the server ([`Opening::gone`]), or nothing
//! ([`Opening::handle_timeout`]). Each report gives the next step, and the last one is [`Step::Opened`] or
//! [`Step::Failed`]. However a server behaves, this takes no longer than one probe and three answers may.
//!
//! An HTTP status that refuses one era says little of the other: servers of the handshake era answer a first message
//! that isn't `initialize` with 400, 403, 404, 409, 422, 426, 429 or 5xx, as their framework has it. So each way is tried
//! once: the era that comes first, the other one, and HTTP+SSE where `initialize` is refused with 4xx (2025-03-26,
//! `basic/transports`, backwards compatibility). A demand for credentials (401, 407) ends the opening at once.

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

/// What a client brings along.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Who the client is.
    pub info: Implementation,
    /// What it offers.
    pub capabilities: ClientCapabilities,
    /// The revisions that it may speak, in any order.
    pub revisions: Vec<Revision>,
    /// The era to try first; the other one is tried only if that fails. Without it `server/discover` goes first.
    pub remembered: Option<Era>,
    /// How long to wait.
    pub timeouts: OpenTimeouts,
}

impl Plan {
    /// Every revision, nothing remembered, default timeouts.
    pub fn new(info: Implementation, capabilities: ClientCapabilities) -> Self {
        Self {
            info,
            capabilities,
            revisions: Revision::ALL.to_vec(),
            remembered: None,
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
    /// Three seconds for a probe, because starting an interpreter takes one; half a minute for an answer.
    fn default() -> Self {
        Self {
            probe: Duration::from_secs(3),
            answer: Duration::from_secs(30),
        }
    }
}

/// What to do next.
#[derive(Debug)]
pub enum Step {
    /// Send this request; over HTTP as a client of `revision` would.
    Send {
        /// The request's id, to report its answer under.
        id: RequestId,
        /// One JSON-RPC message.
        message: Vec<u8>,
        /// The revision that it is written in.
        revision: Revision,
    },
    /// Connect anew, then [`Opening::start`] again: the server ended over the probe.
    Reconnect,
    /// Open the event stream of HTTP+SSE (2024-11-05), then [`Opening::start`] again: the endpoint serves nothing
    /// newer.
    UsePair,
    /// Wait on.
    Wait,
    /// The conversation is open.
    Opened(Box<Opened>),
    /// It can't be opened.
    Failed(HandshakeError),
}

/// An open conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// What both speak.
    pub revision: Revision,
    /// What the server offers.
    pub capabilities: ServerCapabilities,
    /// Who the server says it is.
    pub info: Option<Implementation>,
    /// How to use the server, for the model.
    pub instructions: Option<String>,
    /// `notifications/initialized`, to be sent before anything else; 2026-07-28 has none.
    pub initialized: Option<Vec<u8>>,
    /// The number that the next request may have as its id.
    pub next_id: u64,
}

/// Why client and server could not connect, although the server was reached.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// Client and server have no protocol revision in common.
    #[error(
        "no common protocol revision: the server supports {}, this client {}",
        Printable(server.join(", ")),
        words(client)
    )]
    NoCommonRevision {
        /// What the server supports.
        server: Vec<String>,
        /// What the client may use.
        client: Vec<Revision>,
    },
    /// The server returned an error.
    #[error("server returned an error: {0}")]
    Refused(RpcError),
    /// The server's response is invalid.
    #[error("invalid response to `{method}`: {}", Printable(reason))]
    Invalid {
        /// What was asked.
        method: &'static str,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The server responded with an HTTP status.
    #[error("server responded with HTTP status {status}{}", said(error.as_ref()))]
    Http {
        /// The status.
        status: u16,
        /// The JSON-RPC error in the body, if there was one.
        error: Option<RpcError>,
    },
    /// No response arrived in time.
    #[error("no response to `{method}` within {} s (`{}`)", waited.as_secs_f64(), if *is_probe { "probe_timeout" } else { "open_timeout" })]
    TimedOut {
        /// What was asked.
        method: &'static str,
        /// How long was waited.
        waited: Duration,
        /// Whether another era was left to try, so that the shorter timeout held.
        is_probe: bool,
    },
    /// The connection or the process ended.
    #[error("server exited or disconnected before it responded to `{method}`")]
    Gone {
        /// What was asked.
        method: &'static str,
    },
    /// The plan has no revisions.
    #[error("`revisions` is empty: this client may not use any protocol revision")]
    NoRevision,
}

fn said(error: Option<&RpcError>) -> String {
    error.map(|error| format!(": {error}")).unwrap_or_default()
}

/// One way that was tried to open a conversation, and how it failed.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenAttempt {
    /// What was asked: `server/discover` or `initialize`.
    pub method: &'static str,
    /// Whether it was asked over HTTP+SSE (2024-11-05).
    pub over_http_sse: bool,
    /// How it failed.
    pub error: HandshakeError,
}

fn words(revisions: &[Revision]) -> String {
    let names: Vec<_> = revisions.iter().map(|revision| revision.as_str()).collect();
    names.join(", ")
}

const DISCOVER: &str = "server/discover";
const INITIALIZE: &str = "initialize";

/// A conversation being opened. See the [module](super).
#[derive(Debug)]
pub struct Opening {
    plan: Plan,
    asked: Option<Asked>,
    next_id: u64,
    /// What is tried now.
    era: Option<Era>,
    /// The revision to ask for, where the server said which it has.
    wanted: Option<Revision>,
    /// What has been tried, so that nothing is tried for ever.
    tried: Tried,
    /// The answer to a probe that came too late to be waited for.
    late: Option<DiscoverResult>,
    probe: Option<u64>,
    /// The ways that failed, in order.
    attempts: Vec<OpenAttempt>,
    /// Requests go over HTTP+SSE.
    on_pair: bool,
}

#[derive(Debug)]
struct Asked {
    id: u64,
    method: &'static str,
    since: Duration,
    deadline: Duration,
    /// Whether it has the time of a probe.
    is_probe: bool,
    /// Something else than the server is waited for.
    held: bool,
}

#[derive(Debug, Default)]
struct Tried {
    modern: bool,
    legacy: bool,
    other_version: bool,
    reconnect: bool,
    pair: bool,
}

impl Opening {
    /// An opening that has sent nothing yet.
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            asked: None,
            next_id: 1,
            era: None,
            wanted: None,
            tried: Tried::default(),
            late: None,
            probe: None,
            attempts: Vec::new(),
            on_pair: false,
        }
    }

    /// The ways that failed so far, in the order in which they were tried.
    pub fn attempts(&self) -> &[OpenAttempt] {
        &self.attempts
    }

    /// Whether a probe failed in a way that says nothing of what the server speaks: it was slow, busy, broken or gone.
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

    /// The first request, or the first after [`Step::Reconnect`] or [`Step::UsePair`].
    pub fn start(&mut self, now: Duration) -> Step {
        let first = self.plan.remembered.unwrap_or(Era::Modern);
        let era = self.era.unwrap_or(first);
        match era {
            Era::Modern if self.preferred(Era::Modern).is_some() => self.discover(now),
            Era::Legacy if self.preferred(Era::Legacy).is_some() => self.initialize(now),
            _ if self.preferred(Era::Legacy).is_some() => self.initialize(now),
            _ if self.preferred(Era::Modern).is_some() => self.discover(now),
            _ => Step::Failed(HandshakeError::NoRevision),
        }
    }

    /// What came of the request with this id.
    pub fn answered(
        &mut self,
        id: &RequestId,
        outcome: Result<Raw, RpcError>,
        now: Duration,
    ) -> Step {
        let Some(asked) = self.asked.take_if(|asked| *id == number(asked.id)) else {
            if self.probe.is_some_and(|probe| *id == number(probe)) {
                // It may yet be needed, should the handshake fail.
                self.late = outcome.ok().and_then(|result| result.decode().ok());
            }
            return Step::Wait;
        };
        if let Err(error) = &outcome {
            self.failed(asked.method, &HandshakeError::Refused(error.clone()));
        }
        match (asked.method, outcome) {
            (DISCOVER, Ok(result)) => match result.decode::<DiscoverResult>() {
                Ok(found) => self.discovered(found, now),
                // A server of the handshake era that answers whatever it is asked.
                Err(error) => {
                    let error = HandshakeError::Invalid {
                        method: DISCOVER,
                        reason: error.to_string(),
                    };
                    self.failed(DISCOVER, &error);
                    self.other_era(error, now)
                }
            },
            (DISCOVER, Err(error)) => self.probe_refused(error, now),
            (_, Ok(result)) => self.shaken(&result, now),
            (_, Err(error)) => self.handshake_refused(error, now),
        }
    }

    /// The latest request was answered by an HTTP status instead of a message; `error` is the JSON-RPC error that
    /// its body held, if any.
    pub fn refused(&mut self, status: u16, error: Option<RpcError>, now: Duration) -> Step {
        let Some(asked) = self.asked.take() else {
            return Step::Wait;
        };
        let refusal = HandshakeError::Http {
            status,
            error: error.clone(),
        };
        self.failed(asked.method, &refusal);
        let code = error.as_ref().map(|error| error.code);
        if let Some(error) = error.filter(is_modern) {
            return self.probe_refused(error, now);
        }
        if needs_credentials(status) || status < 400 {
            return Step::Failed(refusal);
        }
        if asked.method == DISCOVER {
            // A server that is known to have `server/discover` is overloaded or broken, not old.
            let is_known = self.plan.remembered == Some(Era::Modern);
            if is_known && !self.tried.legacy && (status == 429 || status >= 500) {
                return Step::Failed(refusal);
            }
            return self.other_era(refusal, now);
        }
        if let Some(found) = self.late.take() {
            return self.discovered(found, now);
        }
        let speaks_json_rpc =
            code == Some(ErrorCode::METHOD_NOT_FOUND) && self.has_untried(Era::Modern);
        if may_be_pair(status)
            && !speaks_json_rpc
            && self
                .plan
                .revisions
                .iter()
                .any(|revision| revision.features().http_sse)
            && !std::mem::replace(&mut self.tried.pair, true)
        {
            self.era = Some(Era::Legacy);
            self.on_pair = true;
            return Step::UsePair;
        }
        self.other_era(refusal, now)
    }

    /// The connection, or the server's process, ended before it answered.
    pub fn gone(&mut self) -> Step {
        let Some(asked) = self.asked.take() else {
            return Step::Wait;
        };
        let error = HandshakeError::Gone {
            method: asked.method,
        };
        self.failed(asked.method, &error);
        if self.on_pair {
            return self.leave_pair(error);
        }
        // Some servers of the handshake era end over a request that they don't know.
        if asked.method == DISCOVER
            && self.has_untried(Era::Legacy)
            && !std::mem::replace(&mut self.tried.reconnect, true)
        {
            self.era = Some(Era::Legacy);
            return Step::Reconnect;
        }
        Step::Failed(error)
    }

    /// The latest request waits for something that isn't the server's doing, such as a user who is asked for consent: its
    /// time stands still until [`release`](Self::release).
    pub fn hold(&mut self) {
        if let Some(asked) = &mut self.asked {
            asked.held = true;
        }
    }

    /// The latest request waits for the server again, for as long as in the beginning.
    pub fn release(&mut self, now: Duration) {
        if let Some(asked) = self.asked.as_mut().filter(|asked| asked.held) {
            asked.held = false;
            asked.deadline = now + asked.deadline.saturating_sub(asked.since);
            asked.since = now;
        }
    }

    /// When [`Opening::handle_timeout`] has something to do.
    pub fn poll_deadline(&self) -> Option<Duration> {
        let asked = self.asked.as_ref().filter(|asked| !asked.held)?;
        Some(asked.deadline)
    }

    /// Gives up waiting for an answer that is due.
    pub fn handle_timeout(&mut self, now: Duration) -> Step {
        let Some(asked) = self
            .asked
            .take_if(|asked| !asked.held && asked.deadline <= now)
        else {
            return Step::Wait;
        };
        let error = HandshakeError::TimedOut {
            method: asked.method,
            waited: now.saturating_sub(asked.since),
            is_probe: asked.is_probe,
        };
        self.failed(asked.method, &error);
        if asked.method == DISCOVER {
            self.probe = Some(asked.id);
            return self.other_era(error, now);
        }
        self.fail_handshake(error, now)
    }

    // What is asked

    fn discover(&mut self, now: Duration) -> Step {
        let Some(revision) = self.wanted.take().or_else(|| self.preferred(Era::Modern)) else {
            return Step::Failed(HandshakeError::NoRevision);
        };
        self.tried.modern = true;
        self.era = Some(Era::Modern);
        // It is a probe only while there is something else to try.
        let alone = self.tried.legacy || self.preferred(Era::Legacy).is_none();
        let is_probe = self.plan.remembered != Some(Era::Modern) && !alone;
        let params = json!({"_meta": {
            meta::PROTOCOL_VERSION: revision,
            meta::CLIENT_INFO: adapt::implementation(&self.plan.info, revision),
            meta::CLIENT_CAPABILITIES: adapt::client_capabilities(&self.plan.capabilities, revision),
        }});
        self.ask(DISCOVER, &params, revision, is_probe, now)
    }

    fn initialize(&mut self, now: Duration) -> Step {
        let Some(revision) = self.wanted.take().or_else(|| self.preferred(Era::Legacy)) else {
            return Step::Failed(HandshakeError::NoRevision);
        };
        self.tried.legacy = true;
        self.era = Some(Era::Legacy);
        let params = json!({
            "protocolVersion": revision,
            "capabilities": adapt::client_capabilities(&self.plan.capabilities, revision),
            "clientInfo": adapt::implementation(&self.plan.info, revision),
        });
        self.ask(INITIALIZE, &params, revision, false, now)
    }

    fn ask(
        &mut self,
        method: &'static str,
        params: &Value,
        revision: Revision,
        is_probe: bool,
        now: Duration,
    ) -> Step {
        let timeout = match is_probe {
            true => self.plan.timeouts.probe,
            false => self.plan.timeouts.answer,
        };
        let id = self.next_id;
        self.next_id += 1;
        self.asked = Some(Asked {
            id,
            method,
            since: now,
            deadline: now + timeout,
            is_probe,
            held: false,
        });
        let mut message = Vec::new();
        let params = params.to_string();
        encode::request(&mut message, &number(id), method, Some(params.as_bytes()));
        Step::Send {
            id: number(id),
            message,
            revision,
        }
    }

    // What comes of it

    fn discovered(&mut self, found: DiscoverResult, now: Duration) -> Step {
        match self.common(&found.supported_versions) {
            Some(revision) if revision.is_modern() => {
                let info = found.meta.as_ref().and_then(|meta| {
                    serde_json::from_value(meta.get(meta::SERVER_INFO)?.clone()).ok()
                });
                self.opened(Opened {
                    revision,
                    capabilities: found.capabilities,
                    info,
                    instructions: found.instructions,
                    initialized: None,
                    next_id: self.next_id,
                })
            }
            Some(revision) if !self.tried.legacy => {
                self.wanted = Some(revision);
                self.initialize(now)
            }
            _ => self.nothing_in_common(found.supported_versions),
        }
    }

    fn probe_refused(&mut self, error: RpcError, now: Duration) -> Step {
        if !is_modern(&error) {
            return self.other_era(HandshakeError::Refused(error), now);
        }
        if error.code != ErrorCode::UNSUPPORTED_VERSION {
            return Step::Failed(HandshakeError::Refused(error));
        }
        let supported = supported(&error);
        let again = !std::mem::replace(&mut self.tried.other_version, true);
        match self.common(&supported) {
            Some(revision) if revision.is_modern() && again => {
                self.wanted = Some(revision);
                self.discover(now)
            }
            Some(revision) if !revision.is_modern() && !self.tried.legacy => {
                self.wanted = Some(revision);
                self.initialize(now)
            }
            _ => self.nothing_in_common(supported),
        }
    }

    fn shaken(&mut self, result: &Raw, now: Duration) -> Step {
        let result = match result.decode::<InitializeResult>() {
            Ok(result) => result,
            Err(error) => {
                let error = HandshakeError::Invalid {
                    method: INITIALIZE,
                    reason: error.to_string(),
                };
                self.failed(INITIALIZE, &error);
                return self.fail_handshake(error, now);
            }
        };
        let revision = Revision::parse(&result.protocol_version)
            .filter(|revision| !revision.is_modern() && self.plan.revisions.contains(revision));
        let Some(revision) = revision else {
            return self.nothing_in_common(vec![result.protocol_version]);
        };
        let mut initialized = Vec::new();
        encode::notification(&mut initialized, "notifications/initialized", None);
        self.opened(Opened {
            revision,
            capabilities: result.capabilities,
            info: Some(result.server_info),
            instructions: result.instructions,
            initialized: Some(initialized),
            next_id: self.next_id,
        })
    }

    fn handshake_refused(&mut self, error: RpcError, now: Duration) -> Step {
        // Some servers don't make a counter-offer, and name what they have in an error (2024-11-05, `lifecycle`,
        // error handling).
        let supported = supported(&error);
        let other = self.common(&supported);
        if let Some(revision) = other
            && !std::mem::replace(&mut self.tried.other_version, true)
        {
            self.wanted = Some(revision);
            return match revision.era() {
                Era::Modern => self.discover(now),
                Era::Legacy => self.initialize(now),
            };
        }
        self.fail_handshake(HandshakeError::Refused(error), now)
    }

    /// The handshake failed: then what a probe told after all, or was never asked, counts.
    fn fail_handshake(&mut self, error: HandshakeError, now: Duration) -> Step {
        match self.late.take() {
            Some(found) => self.discovered(found, now),
            None => self.other_era(error, now),
        }
    }

    /// Goes on with the other era, or fails with `error` if it has been tried or may not be spoken.
    fn other_era(&mut self, error: HandshakeError, now: Duration) -> Step {
        if self.on_pair {
            return self.leave_pair(error);
        }
        match self.era {
            Some(Era::Modern) if self.has_untried(Era::Legacy) => self.initialize(now),
            Some(Era::Legacy) if self.has_untried(Era::Modern) => self.discover(now),
            _ => Step::Failed(error),
        }
    }

    /// HTTP+SSE failed: what is left is `server/discover`, over a link of its own.
    fn leave_pair(&mut self, error: HandshakeError) -> Step {
        if !self.has_untried(Era::Modern) {
            return Step::Failed(error);
        }
        self.on_pair = false;
        self.era = Some(Era::Modern);
        Step::Reconnect
    }

    /// Notes that a way failed.
    fn failed(&mut self, method: &'static str, error: &HandshakeError) {
        self.attempts.push(OpenAttempt {
            method,
            over_http_sse: self.on_pair,
            error: error.clone(),
        });
    }

    fn opened(&mut self, opened: Opened) -> Step {
        Step::Opened(Box::new(opened))
    }

    fn nothing_in_common(&self, server: Vec<String>) -> Step {
        Step::Failed(HandshakeError::NoCommonRevision {
            server,
            client: self.plan.revisions.clone(),
        })
    }

    // Revisions

    /// The newest revision of an era that the client may speak.
    fn preferred(&self, era: Era) -> Option<Revision> {
        let of_era = |revision: &&Revision| revision.era() == era;
        self.plan.revisions.iter().filter(of_era).max().copied()
    }

    /// Whether the client may speak this era and has not tried it.
    fn has_untried(&self, era: Era) -> bool {
        let tried = match era {
            Era::Modern => self.tried.modern,
            Era::Legacy => self.tried.legacy,
        };
        !tried && self.preferred(era).is_some()
    }

    /// The newest revision that both may speak.
    fn common(&self, server: &[String]) -> Option<Revision> {
        let known = server.iter().filter_map(|version| Revision::parse(version));
        known
            .filter(|revision| self.plan.revisions.contains(revision))
            .max()
    }
}

fn number(id: u64) -> RequestId {
    RequestId::number(i64::try_from(id).unwrap_or(i64::MAX))
}

/// Whether a status demands credentials, of the server or of a proxy: another request without them fails, too.
fn needs_credentials(status: u16) -> bool {
    matches!(status, 401 | 407)
}

/// Whether an endpoint that refuses `initialize` with this status may be one of HTTP+SSE: any 4xx (2025-03-26,
/// `basic/transports`, backwards compatibility) but too many requests, and 501, which says that there is no POST.
fn may_be_pair(status: u16) -> bool {
    (matches!(status, 400..=499) && status != 429) || status == 501
}

/// Whether only a server of 2026-07-28 gives this error (`basic/versioning`, backward compatibility).
fn is_modern(error: &RpcError) -> bool {
    matches!(
        error.code,
        ErrorCode::UNSUPPORTED_VERSION
            | ErrorCode::MISSING_CLIENT_CAPABILITY
            | ErrorCode::HEADER_MISMATCH
    )
}

/// The versions that an error names in `data.supported`.
fn supported(error: &RpcError) -> Vec<String> {
    let data = error.data.as_ref();
    let named = data.and_then(|data| data.member("supported"));
    named
        .and_then(|named| named.decode().ok())
        .unwrap_or_default()
}
