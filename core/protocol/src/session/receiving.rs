//! Processes received messages: their era, whether they are admitted, and who answers them.
//!
//! What is rare is not inlined: its variables would be in the stack frame of every call, whose cache lines they spread.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::error::RpcError;
use crate::revision::{BatchRule, Revision};
use crate::vocabulary::{LoggingLevel, SubscriptionFilter};
use crate::wire::{
    JsonKind, Message, Method, Notification, Params, Raw, Request, RequestId, Response,
};

use super::admission::{self, RequestHandledBy};
use super::incoming_requests::{IncomingRequest, RequestKey};
use super::peer_profiles::{self, ClientProfile, ServerProfile};
use super::request_meta::RequestMeta;
use super::server::{
    AdmittedRequest, OpenedSubscription, Phase, ReceiveOutcome, ServerSession, SessionScope,
};
use super::server_requests::{InputRequestError, ServerRequestKey};
use super::subscriptions::{SubscriptionStream, honoured_filter, subscribed_uris};

impl<C, A> ServerSession<C, A> {
    /// Whether a batch may be received now (JSON-RPC batching: received up to 2025-03-26, removed in
    /// 2025-06-18; unknown before the handshake, and `initialize` never comes in one).
    ///
    /// # Errors
    ///
    /// -32600 with the reason, for a response without an id.
    pub fn admit_batch(&self) -> Result<(), RpcError> {
        let Some(peer) = self.peer() else {
            return Err(RpcError::invalid_request(
                "a batch is not allowed before the handshake",
            ));
        };
        if peer.revision.features().batches != BatchRule::Removed {
            return Ok(());
        }
        Err(RpcError::invalid_request(format!(
            "revision {} has no JSON-RPC batches: send each message by itself",
            peer.revision.as_str()
        )))
    }

    /// Processes one message.
    ///
    /// `in_batch` says that it was part of a batch. `now` is the time on the driver's clock.
    pub fn receive(
        &mut self,
        message: Message,
        in_batch: bool,
        profile: &ServerProfile,
        now: Duration,
    ) -> ReceiveOutcome<C, A> {
        self.last_received = now;
        match message {
            Message::Request(request) => self.receive_request(request, in_batch, profile),
            Message::Notification(notification) => {
                self.receive_notification(notification, profile, now)
            }
            Message::Response(response) => self.receive_response(response),
        }
    }

    /// Reserves a request that the driver has to inspect before [`receive`](Self::receive) processes it. In the
    /// meantime it is in flight and can be cancelled. [`cancel`](Self::cancel) removes it again.
    ///
    /// # Errors
    ///
    /// As for any request: too many are in flight, its id is already in flight, or the server shuts down.
    pub fn reserve(&mut self, id: &RequestId) -> Result<RequestKey, RpcError> {
        Ok(self.insert_request(id, None)?.0)
    }

    fn receive_request(
        &mut self,
        request: Request,
        in_batch: bool,
        profile: &ServerProfile,
    ) -> ReceiveOutcome<C, A> {
        let id = request.id.clone();
        match self.admit_request(request, in_batch, profile) {
            Ok(received) => received,
            Err(error) => ReceiveOutcome::Reply {
                id,
                outcome: Err(error),
            },
        }
    }

    fn admit_request(
        &mut self,
        request: Request,
        in_batch: bool,
        profile: &ServerProfile,
    ) -> Result<ReceiveOutcome<C, A>, RpcError> {
        let meta = RequestMeta::of(request.params.as_ref());
        if self.is_modern(&request.method, &meta) {
            return self.admit_modern(request, &meta, profile);
        }
        if request.method == Method::Initialize {
            return self.initialize(request, in_batch, profile);
        }
        let peer = match &self.phase {
            Phase::Initializing(peer) | Phase::Ready(peer) => peer.clone(),
            Phase::Fresh if request.method == Method::Ping => {
                return Ok(ReceiveOutcome::Reply {
                    id: request.id,
                    outcome: Ok(b"{}".to_vec()),
                });
            }
            Phase::Fresh => return Err(before_handshake(&request.method)),
        };
        match admission::admit(&request.method, peer.revision, profile)? {
            RequestHandledBy::Session => self.serve_legacy(request),
            RequestHandledBy::Server => self.begin_request(request, &meta, peer, None),
        }
    }

    /// Whether what a client sets lasts until its next request.
    fn keeps_state(&self) -> bool {
        self.scope != SessionScope::Sessionless
    }

    /// Decides the era of a message by one rule for the connection: a request that names its version is modern, an
    /// exchange always is, and `server/discover` exists nowhere else.
    fn is_modern(&self, method: &Method, meta: &RequestMeta) -> bool {
        match self.scope {
            SessionScope::Exchange => true,
            SessionScope::Session | SessionScope::Sessionless => false,
            SessionScope::Connection => meta.version.is_some() || *method == Method::ServerDiscover,
        }
    }

    fn admit_modern(
        &mut self,
        request: Request,
        meta: &RequestMeta,
        profile: &ServerProfile,
    ) -> Result<ReceiveOutcome<C, A>, RpcError> {
        // `initialize` and other methods of the handshake era don't exist here, whatever their `_meta` says.
        let newest = profile.revisions.iter().copied().max();
        if meta.version.is_none()
            && let Some(newest) = newest.filter(|revision| revision.is_modern())
        {
            admission::admit(&request.method, newest, profile)?;
        }
        let modern = meta.check_modern(&profile.revisions)?;
        let destination = admission::admit(&request.method, modern.revision, profile)?;
        let peer = Arc::new(ClientProfile {
            revision: modern.revision,
            info: meta.client_info.clone(),
            capabilities: modern.capabilities,
        });
        match (destination, &request.method) {
            (RequestHandledBy::Session, Method::ServerDiscover) => Ok(ReceiveOutcome::Reply {
                id: request.id,
                outcome: Ok(peer_profiles::discover_result(profile, modern.revision)),
            }),
            (RequestHandledBy::Session, _) => self.listen(request, modern.revision, profile),
            (RequestHandledBy::Server, _) => {
                self.begin_request(request, meta, peer, modern.log_level)
            }
        }
    }

    fn begin_request(
        &mut self,
        request: Request,
        meta: &RequestMeta,
        peer: Arc<ClientProfile>,
        log_level: Option<LoggingLevel>,
    ) -> Result<ReceiveOutcome<C, A>, RpcError> {
        let (key, entry) = self.insert_request(&request.id, Some(peer.revision))?;
        entry.progress_token = meta.progress_token();
        entry.log_level = log_level;
        Ok(ReceiveOutcome::Request(AdmittedRequest {
            key,
            id: request.id,
            method: request.method,
            params: request.params,
            peer,
        }))
    }

    fn insert_request(
        &mut self,
        id: &RequestId,
        revision: Option<Revision>,
    ) -> Result<(RequestKey, &mut IncomingRequest<C>), RpcError> {
        if let Some(error) = &self.refusal {
            return Err((**error).clone());
        }
        if self.requests.len() >= self.limits.max_requests_in_flight {
            return Err(RpcError::busy(format!(
                "{} requests are in flight already (`max_requests_in_flight`); try again when one has ended",
                self.limits.max_requests_in_flight
            )));
        }
        self.requests.insert(id, revision).ok_or_else(|| {
            RpcError::invalid_request(format!(
                "a request with the id {} is in flight",
                String::from_utf8_lossy(id.raw())
            ))
        })
    }

    #[inline(never)]
    fn initialize(
        &mut self,
        request: Request,
        in_batch: bool,
        profile: &ServerProfile,
    ) -> Result<ReceiveOutcome<C, A>, RpcError> {
        if in_batch {
            return Err(RpcError::invalid_request(
                "initialize must not be in a batch",
            ));
        }
        if self.peer().is_some() {
            return Err(RpcError::invalid_request(
                "this session is initialized already",
            ));
        }
        let params = request
            .params
            .as_ref()
            .ok_or_else(|| RpcError::invalid_params("initialize needs params"))?;
        let requested: String = params
            .get("protocolVersion")
            .and_then(|version| version.decode().ok())
            .ok_or_else(|| RpcError::invalid_params("params.protocolVersion must be a string"))?;
        let capabilities = params
            .get("capabilities")
            .filter(|value| value.as_bytes().first() == Some(&b'{'))
            .ok_or_else(|| RpcError::invalid_params("params.capabilities must be an object"))?;
        let info = params
            .get("clientInfo")
            .filter(|value| value.as_bytes().first() == Some(&b'{'))
            .ok_or_else(|| RpcError::invalid_params("params.clientInfo must be an object"))?;
        let kept = info.as_bytes().len() + capabilities.as_bytes().len();
        if kept > self.limits.max_client_info_bytes {
            return Err(RpcError::invalid_params(format!(
                "params.clientInfo and params.capabilities have {kept} bytes together, more than the {} that this \
                 server keeps of a client (`max_client_info_bytes`)",
                self.limits.max_client_info_bytes
            )));
        }
        let revision = negotiate(&requested, &profile.revisions)
            .ok_or_else(|| RpcError::unsupported_version(&requested, &profile.revisions))?;
        // Copied: a session that lives for hours must not keep the whole received buffer alive.
        let peer = Arc::new(ClientProfile {
            revision,
            info: Some(info.detached()),
            capabilities: capabilities.detached(),
        });
        self.phase = Phase::Initializing(peer.clone());
        Ok(ReceiveOutcome::Initialized {
            id: request.id,
            result: peer_profiles::initialize_result(profile, revision, self.keeps_state()),
            peer,
        })
    }

    #[inline(never)]
    fn serve_legacy(&mut self, request: Request) -> Result<ReceiveOutcome<C, A>, RpcError> {
        let params = request.params.as_ref();
        let uri = || {
            params
                .and_then(|params| params.get_str("uri"))
                .ok_or_else(|| RpcError::invalid_params("params.uri must be a string"))
        };
        match request.method {
            Method::ResourcesSubscribe | Method::ResourcesUnsubscribe if !self.keeps_state() => {
                return Err(RpcError::method_not_found(request.method.as_str()));
            }
            Method::LoggingSetLevel => {
                let level = params
                    .and_then(|params| params.get("level"))
                    .and_then(|level| level.decode().ok())
                    .ok_or_else(|| {
                        RpcError::invalid_params(
                            "params.level must be a log level, such as `info` or `warning`",
                        )
                    })?;
                self.note_change(None);
                self.log_level = Some(level);
            }
            Method::ResourcesSubscribe => {
                let uri = uri()?;
                let is_known = self.subscribed.contains(uri.as_ref());
                if !is_known && self.subscribed.len() >= self.limits.max_subscriptions {
                    return Err(RpcError::busy(format!(
                        "{} resources are subscribed to already (`max_subscriptions`)",
                        self.limits.max_subscriptions
                    )));
                }
                let kept: usize = self.subscribed.iter().map(String::len).sum();
                if !is_known && kept + uri.len() > self.limits.max_subscription_bytes {
                    return Err(RpcError::busy(format!(
                        "the URIs of this session's subscriptions would have more than {} bytes together \
                         (`max_subscription_bytes`)",
                        self.limits.max_subscription_bytes
                    )));
                }
                self.note_change(Some(&uri));
                self.subscribed.insert(uri.into_owned());
            }
            Method::ResourcesUnsubscribe => {
                let uri = uri()?;
                self.note_change(Some(&uri));
                self.subscribed.remove(uri.as_ref());
            }
            _ => {}
        }
        Ok(ReceiveOutcome::Reply {
            id: request.id,
            outcome: Ok(b"{}".to_vec()),
        })
    }

    #[inline(never)]
    fn listen(
        &mut self,
        request: Request,
        revision: Revision,
        profile: &ServerProfile,
    ) -> Result<ReceiveOutcome<C, A>, RpcError> {
        if let Some(params) = &request.params {
            let wanted = subscribed_uris(params, &self.limits)?.len();
            let held: usize = self
                .subscription_streams
                .iter()
                .map(SubscriptionStream::uris)
                .sum();
            // A client replaces a stream by opening the next one first.
            let most = self.limits.max_subscriptions.saturating_mul(2);
            if held.saturating_add(wanted) > most {
                return Err(RpcError::busy(format!(
                    "{held} resources are subscribed to already on other streams of this connection (`max_subscriptions`)"
                )));
            }
        }
        let filter: SubscriptionFilter = request
            .params
            .as_ref()
            .and_then(|params| params.get("notifications"))
            .ok_or_else(|| RpcError::invalid_params("params.notifications must be an object"))?
            .decode()
            .map_err(|error| RpcError::invalid_params(format!("params.notifications: {error}")))?;
        let filter = honoured_filter(&filter, &profile.capabilities);
        let (key, _) = self.insert_request(&request.id, Some(revision))?;
        let listen = SubscriptionStream {
            key,
            id: request.id,
            filter,
        };
        let acknowledgment = listen.acknowledgment();
        self.subscription_streams.push(listen);
        Ok(ReceiveOutcome::Subscription(OpenedSubscription {
            key,
            acknowledgment,
        }))
    }

    /// Removes resources that the server doesn't have from a stream, before the acknowledgment says what is honoured
    /// (2026-07-28, `basic/patterns/subscriptions`, acknowledgment).
    pub fn remove_unknown_resources(
        &mut self,
        listening: &mut OpenedSubscription,
        unknown: &HashSet<String>,
    ) {
        let mut listens = self.subscription_streams.iter_mut();
        let Some(listen) = listens.find(|listen| listen.key == listening.key) else {
            return;
        };
        if let Some(uris) = &mut listen.filter.resource_subscriptions {
            uris.retain(|uri| !unknown.contains(uri));
        }
        listening.acknowledgment = listen.acknowledgment();
    }

    #[inline(never)]
    fn receive_notification(
        &mut self,
        notification: Notification,
        profile: &ServerProfile,
        now: Duration,
    ) -> ReceiveOutcome<C, A> {
        match notification.method {
            Method::NotificationsInitialized => match &self.phase {
                Phase::Initializing(peer) => {
                    self.phase = Phase::Ready(peer.clone());
                    self.is_initialized = true;
                    ReceiveOutcome::Ready(self.held.take(&self.server_requests))
                }
                Phase::Fresh => {
                    ReceiveOutcome::Ignored("notifications/initialized before initialize")
                }
                // It was overtaken by a request, which this process or another has received.
                Phase::Ready(_) if !std::mem::replace(&mut self.is_initialized, true) => {
                    ReceiveOutcome::Ready(Vec::new())
                }
                Phase::Ready(_) => ReceiveOutcome::Ignored("notifications/initialized twice"),
            },
            Method::NotificationsCancelled => self.receive_cancelled(notification.params.as_ref()),
            Method::NotificationsProgress => {
                self.receive_progress(notification.params.as_ref(), now);
                ReceiveOutcome::Ignored("progress on an input request")
            }
            Method::NotificationsRootsListChanged => ReceiveOutcome::RootsChanged,
            ref method if !profile.notifications.contains(method.as_str()) => {
                ReceiveOutcome::Ignored("a notification without a handler")
            }
            _ => match self.sender_of(&notification, profile) {
                Ok(peer) => ReceiveOutcome::Notification { notification, peer },
                Err(why) => ReceiveOutcome::Ignored(why),
            },
        }
    }

    /// Returns the sender of a custom notification. On 2026-07-28 its `_meta` may be empty (`schema`,
    /// NotificationParams).
    fn sender_of(
        &self,
        notification: &Notification,
        profile: &ServerProfile,
    ) -> Result<Arc<ClientProfile>, &'static str> {
        let meta = RequestMeta::of(notification.params.as_ref());
        let is_modern = match (self.scope, &self.phase) {
            (SessionScope::Exchange, _) => true,
            (SessionScope::Session | SessionScope::Sessionless, _) => false,
            (SessionScope::Connection, Phase::Fresh) => true,
            (SessionScope::Connection, _) => meta.version.is_some(),
        };
        if !is_modern {
            // Over HTTP it may arrive before `notifications/initialized`.
            return match self.peer() {
                Some(peer) => Ok(peer.clone()),
                None => Err("a custom notification before the handshake"),
            };
        }
        let revision = match meta.version() {
            Some(version) => Revision::parse(&version),
            None => {
                let newest = profile.revisions.iter().copied().max();
                self.declared_revision.or(newest)
            }
        };
        let served =
            |revision: &Revision| revision.is_modern() && profile.revisions.contains(revision);
        let capabilities = meta
            .client_capabilities
            .filter(|capabilities| capabilities.kind() == JsonKind::Object);
        Ok(Arc::new(ClientProfile {
            revision: revision
                .filter(served)
                .ok_or("a custom notification of a revision that is not served")?,
            info: meta.client_info,
            capabilities: capabilities.unwrap_or(Raw::EMPTY_OBJECT),
        }))
    }

    fn receive_cancelled(&mut self, params: Option<&Params>) -> ReceiveOutcome<C, A> {
        let Some(id) = params
            .and_then(|params| params.get("requestId"))
            .and_then(|id| RequestId::from_raw(&id).ok())
        else {
            return ReceiveOutcome::Ignored("notifications/cancelled without a request id");
        };
        let Some(key) = self.requests.key_of(&id) else {
            return ReceiveOutcome::Ignored("notifications/cancelled for a request that has ended");
        };
        let reason = params
            .and_then(|params| params.get_str("reason"))
            .map(std::borrow::Cow::into_owned);
        match self.cancel(key) {
            Some((handle, server_requests)) => ReceiveOutcome::Cancelled {
                key,
                handle,
                server_requests,
                reason,
            },
            None => ReceiveOutcome::Ignored("notifications/cancelled for a request that has ended"),
        }
    }

    /// Progress on an input request restarts its idle timeout.
    fn receive_progress(&mut self, params: Option<&Params>, now: Duration) {
        let token: Option<u64> = params
            .and_then(|params| params.get("progressToken"))
            .and_then(|token| token.decode().ok());
        if let Some(server_request) =
            token.and_then(|token| self.server_requests.open.get_mut(&ServerRequestKey(token)))
        {
            server_request.idle_deadline = now + server_request.timeouts.idle;
        }
    }

    #[inline(never)]
    fn receive_response(&mut self, response: Response) -> ReceiveOutcome<C, A> {
        let Some(key) = response
            .id
            .as_ref()
            .and_then(RequestId::as_integer)
            .and_then(|id| u64::try_from(id).ok())
            .map(ServerRequestKey)
        else {
            return ReceiveOutcome::Ignored("a response to nothing that was asked");
        };
        if self.ping == Some(key) {
            self.ping = None;
            self.pings_missed = 0;
            return ReceiveOutcome::Ignored("the answer to a ping");
        }
        let Some(server_request) = self.server_requests.open.remove(&key) else {
            return ReceiveOutcome::Ignored("a response to nothing that was asked");
        };
        ReceiveOutcome::Answer {
            handle: server_request.handle,
            outcome: response.outcome.map_err(|error| InputRequestError::Rpc {
                method: server_request.method,
                error,
            }),
        }
    }
}

#[cold]
fn before_handshake(method: &Method) -> RpcError {
    RpcError::invalid_request(format!(
        "{} before the handshake: send initialize first, or name the revision in params._meta",
        method.as_str()
    ))
}

/// The revision for the response to `initialize`: the requested one if it is supported, otherwise the newest
/// handshake-era one (every handshake revision, `basic/lifecycle`, version negotiation).
fn negotiate(requested: &str, served: &[Revision]) -> Option<Revision> {
    let wanted = Revision::negotiate(requested);
    if served.contains(&wanted) {
        return Some(wanted);
    }
    served
        .iter()
        .copied()
        .filter(|revision| !revision.is_modern())
        .max()
}
