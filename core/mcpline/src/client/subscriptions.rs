//! Subscriptions of a client: to resources, and to changes of lists.
//!
//! Servers of handshake revisions get `resources/subscribe`, and report changes of lists unsolicited. Servers of
//! 2026-07-28 get one `subscriptions/listen` for everything, which is replaced when the subscriptions change and
//! reopened when its stream is lost (`basic/patterns/subscriptions`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mcpline_protocol::ErrorCode;
use mcpline_protocol::ListChange;
use mcpline_protocol::client::{OutgoingClientRequest, RequestTimeouts};
use mcpline_protocol::limits::MAX_INLINE_DECODED_BYTES;
use mcpline_protocol::vocabulary::{ListenParams, SubscriptionFilter};
use mcpline_protocol::wire::{Method, Notification, Raw};
use mcpline_runtime::clock;
use tokio::sync::{Notify, mpsc, watch};

use crate::background;
use crate::client_error::ClientError;
use crate::fair_queue::PeerId;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::handlers::Listener;
use super::inner::Inner;
use super::offloaded_decoding::decode_offloaded;
use super::session::{ResponseFuture, Session};

/// How long a new listen request may stay unacknowledged before it replaces the old one anyway.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(10);

/// Delay before an ended stream is reopened. Doubles each time in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Longest of these delays.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A stream that lasts this long resets the delay. Otherwise a server that acknowledges and ends each stream at once
/// would be asked again as fast as the first delay allows.
const LASTING: Duration = Duration::from_secs(10);

/// The subscriptions of one client, and the task that maintains them.
pub(super) struct Subscriptions {
    state: Mutex<State>,
    listeners: Mutex<Vec<Listener>>,
    /// Whether a listener subscribes to changes, beyond log messages.
    wants_changes: AtomicBool,
    changed: Notify,
    applied: watch::Sender<AppliedSubscriptions>,
}

#[derive(Default)]
struct State {
    /// The subscribed resources.
    uris: BTreeMap<String, RequestedSubscription>,
    /// Number of changes to the subscriptions.
    version: u64,
    task: Option<background::AbortHandle>,
}

/// A resource to subscribe to.
struct RequestedSubscription {
    /// The version of the subscriptions that added it.
    since: u64,
    /// Number of callers that wait for the server's acknowledgment.
    waiting: usize,
    /// Whether the server has acknowledged it to one of them.
    is_acknowledged: bool,
}

impl State {
    /// Begins a version of the subscriptions with or without this resource. Returns the version, and the subscription.
    fn set(&mut self, uri: &str, wanted: bool) -> (u64, Option<&mut RequestedSubscription>) {
        self.version += 1;
        let version = self.version;
        if !wanted {
            self.uris.remove(uri);
            return (version, None);
        }
        let requested = self
            .uris
            .entry(uri.to_owned())
            .or_insert(RequestedSubscription {
                since: version,
                waiting: 0,
                is_acknowledged: false,
            });
        (version, Some(requested))
    }
}

/// The version of the subscriptions that the server has acknowledged or refused.
#[derive(Debug, Clone, Default)]
struct AppliedSubscriptions {
    version: u64,
    error: Option<ClientError>,
    /// The resources that the server left out of its acknowledgment.
    left_out: Arc<BTreeSet<String>>,
}

impl Subscriptions {
    /// Creates the subscriptions of a client with these listeners.
    pub(super) fn new(listeners: Vec<Listener>, wants_changes: bool) -> Self {
        Self {
            state: Mutex::default(),
            listeners: Mutex::new(listeners),
            wants_changes: AtomicBool::new(wants_changes),
            changed: Notify::new(),
            applied: watch::Sender::new(AppliedSubscriptions::default()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the subscribed resources.
    pub(super) fn uris(&self) -> Vec<String> {
        self.lock().uris.keys().cloned().collect()
    }

    /// Adds or removes a subscription that the server has confirmed in a response of its own.
    pub(super) fn record_confirmed(&self, uri: &str, wanted: bool) {
        let mut state = self.lock();
        if let (_, Some(requested)) = state.set(uri, wanted) {
            requested.is_acknowledged = true;
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Adds or removes a subscription, and waits until the server has acknowledged the change.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotSupported`] if the server does not report changes of the resource; the error of the whole
    /// subscription; [`ClientError::RequestTimedOut`]. The subscription is then removed, unless another caller waits
    /// for it or has it; also if the future is dropped.
    pub(super) async fn set(
        &self,
        uri: &str,
        wanted: bool,
        timeouts: RequestTimeouts,
    ) -> Result<(), ClientError> {
        let mut waiting = self.change_subscription(uri, wanted);
        let version = waiting.version;
        let mut applied = self.applied.subscribe();
        let settling = applied.wait_for(|applied| applied.version >= version);
        // There is no progress here, so both timeouts apply from the start.
        let waited = timeouts.idle.min(timeouts.total);
        let applied = match tokio::time::timeout(waited, settling).await {
            Ok(Ok(applied)) => applied.clone(),
            // The sender lives as long as `self`.
            Ok(Err(_)) => return Err(ClientError::Closed),
            Err(_) => {
                let in_all = timeouts.total < timeouts.idle;
                return Err(ClientError::RequestTimedOut { waited, in_all });
            }
        };
        if applied.error.is_none() && !applied.left_out.contains(uri) {
            waiting.outcome = Outcome::Acknowledged;
            return Ok(());
        }
        if let Some(error) = &applied.error {
            return Err(error.clone());
        }
        waiting.outcome = Outcome::LeftOut;
        Err(ClientError::NotSupported(format!(
            "the server does not report changes of {uri:?}: it left the resource out of the acknowledged subscription"
        )))
    }

    /// Adds or removes a subscription, for a caller that waits for the acknowledgment.
    fn change_subscription<'l>(&'l self, uri: &'l str, wanted: bool) -> Waiting<'l> {
        let mut state = self.lock();
        let (version, requested) = state.set(uri, wanted);
        if let Some(requested) = requested {
            requested.waiting += 1;
        }
        drop(state);
        self.changed.notify_one();
        Waiting {
            subscriptions: self,
            version,
            uri,
            outcome: Outcome::GivenUp,
        }
    }

    fn record_outcome(&self, version: u64, outcome: Result<BTreeSet<String>, ClientError>) {
        let (left_out, error) = match outcome {
            Ok(left_out) => (Arc::new(left_out), None),
            Err(error) => (Arc::default(), Some(error)),
        };
        self.applied.send_if_modified(|applied| {
            // An acknowledged version stays acknowledged, even if requesting it again fails.
            if error.is_some() && applied.error.is_none() && applied.version == version {
                return false;
            }
            *applied = AppliedSubscriptions {
                version,
                error,
                left_out,
            };
            true
        });
    }

    /// Whether the client needs a connection for notifications.
    pub(super) fn needs_connection(&self, client: &Inner) -> bool {
        self.has_listeners(client) || !self.lock().uris.is_empty()
    }

    /// Whether changes of lists are subscribed to.
    fn has_listeners(&self, client: &Inner) -> bool {
        client.settings.listen && self.wants_changes.load(Ordering::Relaxed)
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a listener for notifications.
    pub(super) fn add_listener(&self, listener: Listener) {
        self.listeners().push(listener);
        self.subscribe_to_changes();
    }

    /// Subscribes the existing listeners to changes.
    pub(super) fn subscribe_to_changes(&self) {
        if !self.wants_changes.swap(true, Ordering::Relaxed) {
            self.lock().version += 1;
            self.changed.notify_one();
        }
    }

    /// Passes a notification to all listeners.
    pub(super) fn deliver(&self, notification: &Notification) {
        // No lock is held meanwhile, because listeners may do anything.
        let listeners = self.listeners().clone();
        for listener in &listeners {
            listener(notification);
        }
    }

    /// Ends the task for good.
    pub(super) fn stop(&self) {
        self.record_outcome(u64::MAX, Err(ClientError::Closed));
        if let Some(task) = self.lock().task.take() {
            task.abort();
        }
    }

    fn filter(&self, client: &Inner, session: &Session) -> (SubscriptionFilter, u64) {
        let server = &session.opened.capabilities;
        let has_listeners = self.has_listeners(client);
        let state = self.lock();
        let mut filter = SubscriptionFilter::default();
        if has_listeners {
            let undeclared = client.settings.allow_undeclared_capabilities;
            for change in ListChange::ALL {
                if undeclared || change.is_declared(server) {
                    change.add_to(&mut filter);
                }
            }
        }
        let subscribes = session.check_capability(&Method::ResourcesSubscribe, &client.settings);
        if !state.uris.is_empty() && subscribes.is_ok() {
            filter.resource_subscriptions = Some(state.uris.keys().cloned().collect());
        }
        (filter, state.version)
    }
}

/// A caller that waits for the acknowledgment of a change. Stops waiting on drop.
struct Waiting<'l> {
    subscriptions: &'l Subscriptions,
    /// The version of the subscriptions with this change.
    version: u64,
    uri: &'l str,
    outcome: Outcome,
}

/// The outcome of a subscription for one caller.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The server reports changes of the resource.
    Acknowledged,
    /// The server left the resource out of its acknowledgment.
    LeftOut,
    /// The caller stopped waiting, or the whole subscription failed.
    GivenUp,
}

impl Drop for Waiting<'_> {
    /// Removes the subscription with its last caller, unless the server has acknowledged it to one of them.
    fn drop(&mut self) {
        let mut state = self.subscriptions.lock();
        // It may have been removed and added again meanwhile.
        let requested = state.uris.get_mut(self.uri);
        let Some(requested) = requested.filter(|requested| requested.since <= self.version) else {
            return;
        };
        requested.waiting = requested.waiting.saturating_sub(1);
        requested.is_acknowledged |= self.outcome == Outcome::Acknowledged;
        if requested.waiting > 0 || requested.is_acknowledged {
            return;
        }
        state.uris.remove(self.uri);
        if self.outcome != Outcome::LeftOut {
            // Without this resource the server may accept the others; and if it was accepted, it must be unsubscribed.
            state.version += 1;
            drop(state);
            self.subscriptions.changed.notify_one();
        }
    }
}

impl Inner {
    /// Starts to maintain the subscriptions on a new connection.
    pub(super) fn listen(&self, session: &Arc<Session>) {
        if !session.revision().features().listen {
            return;
        }
        let subscriptions = listen(self.this.clone(), session.clone());
        let task = background::spawn(
            &self.runtime,
            self.handlers.tasks.until_closed(subscriptions),
        );
        let former = self.subscriptions.lock().task.replace(task.abort_handle());
        if let Some(former) = former {
            former.abort();
        }
    }
}

/// Keeps one listen request open for as long as the connection lasts.
async fn listen(client: Weak<Inner>, session: Arc<Session>) {
    let mut open: Option<ResponseFuture> = None;
    let mut pause = FIRST_PAUSE;
    loop {
        let Some(client) = client.upgrade() else {
            return;
        };
        let begun = clock::now();
        let (filter, version) = client.subscriptions.filter(&client, &session);
        let wanted = filter != SubscriptionFilter::default();
        let mut left_out = BTreeSet::new();
        let mut next = wanted.then(|| send_listen(&session, &filter));
        let mut ended = match &mut next {
            Some((next, acknowledgement)) => tokio::select! {
                biased;
                // Takes precedence even if the stream has ended since.
                Some(acknowledged) = acknowledgement.recv() => {
                    left_out = unacknowledged_resources(client.handlers.peer, filter, acknowledged).await;
                    None
                }
                ended = next => Some(ended),
                () = tokio::time::sleep(ACKNOWLEDGEMENT) => {
                    tracing::warn!("the server has not acknowledged a subscription: it may not report changes");
                    None
                }
            },
            None => None,
        };
        if let Some(error) = ended.as_ref().and_then(refusal) {
            tracing::warn!("the server refused a subscription: {error:#}");
            client
                .subscriptions
                .record_outcome(version, Err(error.clone()));
            // The old request stays open until the subscriptions change.
            ended = wait(&client, &mut open, version).await;
            if ended.is_none() {
                continue;
            }
        } else {
            // The old request ends once the new one is acknowledged, so that no notification is missed in between.
            open = next.map(|(pending, _)| pending);
            match &ended {
                None => {
                    client.subscriptions.record_outcome(version, Ok(left_out));
                    ended = wait(&client, &mut open, version).await;
                }
                // Waiting callers get the error; a new connection subscribes again.
                Some(Err(error)) if session.ended_with().is_none() => {
                    client
                        .subscriptions
                        .record_outcome(version, Err(error.clone()));
                }
                Some(_) => {}
            }
        }
        if let Some(ended) = ended {
            open = None;
            if session.ended_with().is_some() || client.is_closed() {
                return;
            }
            if let Some(error) = refusal(&ended) {
                tracing::warn!(
                    "the server ended a subscription and would refuse it again: it reports no changes until the client changes its subscriptions: {error:#}"
                );
                wait(&client, &mut None, version).await;
                continue;
            }
            // The server is shutting down or shedding load, or the stream was lost.
            if clock::now().saturating_sub(begun) >= LASTING {
                pause = FIRST_PAUSE;
            }
            // A new subscription cuts the delay short.
            let _ = tokio::time::timeout(pause, wait(&client, &mut open, version)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Waits until the subscriptions differ from this version, or until the open request ends, and returns how it ended.
async fn wait(
    client: &Inner,
    open: &mut Option<ResponseFuture>,
    version: u64,
) -> Option<Result<Raw, ClientError>> {
    loop {
        let changed = client.subscriptions.changed.notified();
        // Changes up to here are part of the version that was read.
        if client.subscriptions.lock().version != version {
            return None;
        }
        match open {
            Some(pending) => tokio::select! {
                ended = pending => return Some(ended),
                () = changed => {}
            },
            None => changed.await,
        }
    }
}

/// Returns the resources that the server left out of its acknowledgment. Logs kinds of lists that it left out
/// (`basic/patterns/subscriptions`, acknowledgment).
async fn unacknowledged_resources(
    peer: PeerId,
    requested: SubscriptionFilter,
    acknowledged: Notification,
) -> BTreeSet<String> {
    let params = acknowledged.params.map(|params| params.raw().clone());
    let params = params.unwrap_or_else(|| Raw::from_trusted("{}"));
    let decoded = match params.as_bytes().len() <= MAX_INLINE_DECODED_BYTES {
        true => params.decode::<ListenParams>().ok(),
        false => decode_offloaded(peer, params).await.and_then(Result::ok),
    };
    // An invalid acknowledgment acknowledges nothing.
    let known = decoded.unwrap_or_default().notifications;
    for change in ListChange::ALL {
        if change.is_in(&requested) && !change.is_in(&known) {
            let kind = change.filter_member();
            tracing::warn!("the server did not acknowledge the subscription to {kind}");
        }
    }
    let mut left_out: BTreeSet<String> = requested
        .resource_subscriptions
        .into_iter()
        .flatten()
        .collect();
    for uri in known.resource_subscriptions.iter().flatten() {
        left_out.remove(uri);
    }
    if !left_out.is_empty() {
        let count = left_out.len();
        tracing::warn!("the server did not acknowledge the subscription to {count} resources");
    }
    left_out
}

fn send_listen(
    session: &Arc<Session>,
    filter: &SubscriptionFilter,
) -> (ResponseFuture, mpsc::Receiver<Notification>) {
    let filter = Raw::from_serialize(filter).unwrap_or_else(|_| Raw::from_trusted("{}"));
    let params = Raw::from_trusted(format!(r#"{{"notifications":{}}}"#, filter.as_str()));
    let method = "subscriptions/listen";
    let outgoing = OutgoingClientRequest {
        // It lasts as long as the client wants.
        timeouts: RequestTimeouts {
            idle: Duration::MAX,
            total: Duration::MAX,
        },
        ..OutgoingClientRequest::new(method, Some(&params))
    };
    session.listen(
        &outgoing,
        vec![("Mcp-Method".to_owned(), method.to_owned())],
    )
}

/// Returns the error with which the server refused a listen request, if the same request would be refused again. A
/// server that is busy or shutting down does not count.
fn refusal(ended: &Result<Raw, ClientError>) -> Option<&ClientError> {
    let error = ended.as_ref().err()?;
    let is_final = match error {
        ClientError::Rpc(error) => {
            ![ErrorCode::BUSY, ErrorCode::SHUTTING_DOWN].contains(&error.code)
        }
        ClientError::Http { status, .. } => {
            (400..500).contains(status) && ![408, 425, 429].contains(status)
        }
        _ => false,
    };
    is_final.then_some(error)
}
