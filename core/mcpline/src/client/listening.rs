//! What a client wants to hear of: resources that it subscribed to, and changes of lists.
//!
//! Handshake-era servers get `resources/subscribe`, and tell changes of lists unasked. Servers of 2026-07-28 get one
//! `subscriptions/listen` for everything, which is replaced when the wishes change and taken up again when its stream
//! is lost (`basic/patterns/subscriptions`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mcpline_protocol::ErrorCode;
use mcpline_protocol::ListChange;
use mcpline_protocol::client::{CallTimeouts, ClientRequest};
use mcpline_protocol::limits::MAX_INLINE_DECODED_BYTES;
use mcpline_protocol::vocabulary::{ListenParams, SubscriptionFilter};
use mcpline_protocol::wire::{Method, Notification, Raw};
use mcpline_runtime::clock;
use tokio::sync::{Notify, mpsc, watch};

use crate::background;
use crate::client_error::ClientError;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use crate::turn_queue::PeerId;

use super::decoding::decode_elsewhere;
use super::handlers::Listener;
use super::inner::Inner;
use super::session::{ResponseFuture, Session};

/// How long a new listen request may take to be acknowledged before the old one is given up all the same.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(10);

/// How long to wait before a stream that ended is taken up again; doubled each time in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest of these waits.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A stream that lasts as long was a good one: when it ends, the waits begin anew. Else a server that acknowledges and ends
/// each stream at once would be asked again as fast as the first wait allows.
const LASTING: Duration = Duration::from_secs(10);

/// The wishes of one client, and the task that sees to them.
pub(super) struct Listening {
    state: Mutex<State>,
    listeners: Mutex<Vec<Listener>>,
    /// Whether one of them wants to hear of changes, not only of log messages.
    wants_changes: AtomicBool,
    changed: Notify,
    settled: watch::Sender<AppliedSubscriptions>,
}

#[derive(Default)]
struct State {
    /// The resources.
    uris: BTreeMap<String, RequestedSubscription>,
    /// Counts the changes of the wishes.
    version: u64,
    task: Option<background::AbortHandle>,
}

/// A resource that is to be subscribed to.
struct RequestedSubscription {
    /// The version of the wishes that it came with.
    since: u64,
    /// How many callers wait until the server knows it.
    waiting: usize,
    /// Whether the server has acknowledged it to one of them.
    is_acknowledged: bool,
}

impl State {
    /// Begins a version of the wishes with this resource or without it; returns its number, and the wish.
    fn set(&mut self, uri: &str, wanted: bool) -> (u64, Option<&mut RequestedSubscription>) {
        self.version += 1;
        let version = self.version;
        if !wanted {
            self.uris.remove(uri);
            return (version, None);
        }
        let wish = self
            .uris
            .entry(uri.to_owned())
            .or_insert(RequestedSubscription {
                since: version,
                waiting: 0,
                is_acknowledged: false,
            });
        (version, Some(wish))
    }
}

/// Which version of the wishes the server knows, or why it doesn't.
#[derive(Debug, Clone, Default)]
struct AppliedSubscriptions {
    version: u64,
    error: Option<ClientError>,
    /// The resources that the server left out of its acknowledgement.
    left_out: Arc<BTreeSet<String>>,
}

impl Listening {
    /// Of a client whose host has these listeners.
    pub(super) fn new(listeners: Vec<Listener>, wants_changes: bool) -> Self {
        Self {
            state: Mutex::default(),
            listeners: Mutex::new(listeners),
            wants_changes: AtomicBool::new(wants_changes),
            changed: Notify::new(),
            settled: watch::Sender::new(AppliedSubscriptions::default()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The resources that are subscribed to.
    pub(super) fn uris(&self) -> Vec<String> {
        self.lock().uris.keys().cloned().collect()
    }

    /// Enters or removes a wish of a server that has answered a request for it.
    pub(super) fn set_answered(&self, uri: &str, wanted: bool) {
        let mut state = self.lock();
        if let (_, Some(wish)) = state.set(uri, wanted) {
            wish.is_acknowledged = true;
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Enters or removes a wish, and waits until the server knows it.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotSupported`] if the server does not tell changes of the resource; what the whole subscription
    /// failed with; [`ClientError::RequestTimedOut`]. The resource is no wish then, unless another caller waits for it or has it.
    /// So it is if the future is dropped.
    pub(super) async fn set(
        &self,
        uri: &str,
        wanted: bool,
        timeouts: CallTimeouts,
    ) -> Result<(), ClientError> {
        let mut waiting = self.begin(uri, wanted);
        let version = waiting.version;
        let mut settled = self.settled.subscribe();
        let settling = settled.wait_for(|settled| settled.version >= version);
        // Nothing reports progress here.
        let waited = timeouts.idle.min(timeouts.total);
        let settled = match tokio::time::timeout(waited, settling).await {
            Ok(Ok(settled)) => settled.clone(),
            // The sender lives as long as `self`.
            Ok(Err(_)) => return Err(ClientError::Closed),
            Err(_) => {
                let in_all = timeouts.total < timeouts.idle;
                return Err(ClientError::RequestTimedOut { waited, in_all });
            }
        };
        if settled.error.is_none() && !settled.left_out.contains(uri) {
            waiting.outcome = Outcome::Acknowledged;
            return Ok(());
        }
        if let Some(error) = &settled.error {
            return Err(error.clone());
        }
        waiting.outcome = Outcome::LeftOut;
        Err(ClientError::NotSupported(format!(
            "the server does not report changes of {uri:?}: it left the resource out of the acknowledged subscription"
        )))
    }

    /// Enters or removes a wish, for a caller who waits until the server knows it.
    fn begin<'l>(&'l self, uri: &'l str, wanted: bool) -> Waiting<'l> {
        let mut state = self.lock();
        let (version, wish) = state.set(uri, wanted);
        if let Some(wish) = wish {
            wish.waiting += 1;
        }
        drop(state);
        self.changed.notify_one();
        Waiting {
            listening: self,
            version,
            uri,
            outcome: Outcome::GivenUp,
        }
    }

    fn settle(&self, version: u64, outcome: Result<BTreeSet<String>, ClientError>) {
        let (left_out, error) = match outcome {
            Ok(left_out) => (Arc::new(left_out), None),
            Err(error) => (Arc::default(), Some(error)),
        };
        self.settled.send_if_modified(|settled| {
            // What was acknowledged once was, whatever comes of it when it is asked for again.
            if error.is_some() && settled.error.is_none() && settled.version == version {
                return false;
            }
            *settled = AppliedSubscriptions {
                version,
                error,
                left_out,
            };
            true
        });
    }

    /// Whether anything is to be heard without being asked for.
    pub(super) fn wants(&self, client: &Inner) -> bool {
        self.hears(client) || !self.lock().uris.is_empty()
    }

    /// Whether changes of lists are asked for.
    fn hears(&self, client: &Inner) -> bool {
        client.settings.listen && self.wants_changes.load(Ordering::Relaxed)
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Has somebody more hear of notifications.
    pub(super) fn hear(&self, listener: Listener) {
        self.listeners().push(listener);
        self.want_changes();
    }

    /// Has listeners that are there hear of changes.
    pub(super) fn want_changes(&self) {
        if !self.wants_changes.swap(true, Ordering::Relaxed) {
            self.lock().version += 1;
            self.changed.notify_one();
        }
    }

    /// Tells whoever listens.
    pub(super) fn tell(&self, notification: &Notification) {
        // They may do what they want: no lock is held meanwhile.
        let listeners = self.listeners().clone();
        for listener in &listeners {
            listener(notification);
        }
    }

    /// Ends the task, for good.
    pub(super) fn stop(&self) {
        self.settle(u64::MAX, Err(ClientError::Closed));
        if let Some(task) = self.lock().task.take() {
            task.abort();
        }
    }

    fn filter(&self, client: &Inner, session: &Session) -> (SubscriptionFilter, u64) {
        let server = &session.opened.capabilities;
        let hears = self.hears(client);
        let state = self.lock();
        let mut filter = SubscriptionFilter::default();
        if hears {
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

/// A caller who waits until the server knows a change of the wishes. Dropped, it waits no more.
struct Waiting<'l> {
    listening: &'l Listening,
    /// The version of the wishes with this change.
    version: u64,
    uri: &'l str,
    outcome: Outcome,
}

/// What has come of a wish for one of its callers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The server reports changes of the resource.
    Acknowledged,
    /// The server has left the resource out of what it acknowledged.
    LeftOut,
    /// The caller waits no more, or the whole subscription has failed.
    GivenUp,
}

impl Drop for Waiting<'_> {
    /// With its last caller a wish goes that the server has acknowledged to none of them.
    fn drop(&mut self) {
        let mut state = self.listening.lock();
        // It may have been removed since, and entered anew.
        let wish = state.uris.get_mut(self.uri);
        let Some(wish) = wish.filter(|wish| wish.since <= self.version) else {
            return;
        };
        wish.waiting = wish.waiting.saturating_sub(1);
        wish.is_acknowledged |= self.outcome == Outcome::Acknowledged;
        if wish.waiting > 0 || wish.is_acknowledged {
            return;
        }
        state.uris.remove(self.uri);
        if self.outcome != Outcome::LeftOut {
            // The server may report changes of the others if it is asked for them alone, and of this one if it isn't.
            state.version += 1;
            drop(state);
            self.listening.changed.notify_one();
        }
    }
}

impl Inner {
    /// Sees to the wishes on a new conversation.
    pub(super) fn listen(&self, session: &Arc<Session>) {
        if !session.revision().features().listen {
            return;
        }
        let listening = listen(self.this.clone(), session.clone());
        let task = background::spawn(&self.runtime, self.handlers.tasks.until_closed(listening));
        let former = self.listening.lock().task.replace(task.abort_handle());
        if let Some(former) = former {
            former.abort();
        }
    }
}

/// Keeps one listen request open for as long as the conversation lasts.
async fn listen(client: Weak<Inner>, session: Arc<Session>) {
    let mut open: Option<ResponseFuture> = None;
    let mut pause = FIRST_PAUSE;
    loop {
        let Some(client) = client.upgrade() else {
            return;
        };
        let begun = clock::now();
        let (filter, version) = client.listening.filter(&client, &session);
        let wanted = filter != SubscriptionFilter::default();
        let mut left_out = BTreeSet::new();
        let mut next = wanted.then(|| ask(&session, &filter));
        let mut ended = match &mut next {
            Some((next, acknowledgement)) => tokio::select! {
                biased;
                // Also where the stream has ended since.
                Some(acknowledged) = acknowledgement.recv() => {
                    left_out = compare(client.handlers.peer, filter, acknowledged).await;
                    None
                }
                ended = next => Some(ended),
                () = tokio::time::sleep(ACKNOWLEDGEMENT) => {
                    tracing::warn!("the server did not acknowledge a subscription");
                    None
                }
            },
            None => None,
        };
        if let Some(error) = ended.as_ref().and_then(refusal) {
            tracing::warn!("the server refused a subscription: {error}");
            client.listening.settle(version, Err(error.clone()));
            // The old one goes on, until the wishes are others.
            ended = wait(&client, &mut open, version).await;
            if ended.is_none() {
                continue;
            }
        } else {
            // The old one goes when the new one is known, so that nothing is missed between the two.
            open = next.map(|(pending, _)| pending);
            match &ended {
                None => {
                    client.listening.settle(version, Ok(left_out));
                    ended = wait(&client, &mut open, version).await;
                }
                // Who waits is told; with a new conversation they are asked for again.
                Some(Err(error)) if session.ended_with().is_none() => {
                    client.listening.settle(version, Err(error.clone()));
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
                tracing::warn!("the server ended a subscription: {error}");
                wait(&client, &mut None, version).await;
                continue;
            }
            // The server is going away, sheds load, or its stream was lost.
            if clock::now().saturating_sub(begun) >= LASTING {
                pause = FIRST_PAUSE;
            }
            // A new wish doesn't wait as long.
            let _ = tokio::time::timeout(pause, wait(&client, &mut open, version)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Waits until the wishes are others than this version's; or until the open request ends, and returns how.
async fn wait(
    client: &Inner,
    open: &mut Option<ResponseFuture>,
    version: u64,
) -> Option<Result<Raw, ClientError>> {
    loop {
        let changed = client.listening.changed.notified();
        // What changed while they were read is known already.
        if client.listening.lock().version != version {
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

/// The resources that the server left out of what it acknowledged; kinds of lists that it left out are logged
/// (`basic/patterns/subscriptions`, acknowledgment).
async fn compare(
    peer: PeerId,
    asked: SubscriptionFilter,
    acknowledged: Notification,
) -> BTreeSet<String> {
    let params = acknowledged.params.map(|params| params.raw().clone());
    let params = params.unwrap_or_else(|| Raw::from_trusted("{}"));
    let decoded = match params.as_bytes().len() <= MAX_INLINE_DECODED_BYTES {
        true => params.decode::<ListenParams>().ok(),
        false => decode_elsewhere(peer, params).await.and_then(Result::ok),
    };
    // What can't be read acknowledges nothing.
    let known = decoded.unwrap_or_default().notifications;
    for change in ListChange::ALL {
        if change.is_in(&asked) && !change.is_in(&known) {
            let kind = change.filter_member();
            tracing::warn!("the server did not acknowledge the subscription to {kind}");
        }
    }
    let mut left_out: BTreeSet<String> =
        asked.resource_subscriptions.into_iter().flatten().collect();
    for uri in known.resource_subscriptions.iter().flatten() {
        left_out.remove(uri);
    }
    if !left_out.is_empty() {
        let count = left_out.len();
        tracing::warn!("the server did not acknowledge the subscription to {count} resources");
    }
    left_out
}

fn ask(
    session: &Arc<Session>,
    filter: &SubscriptionFilter,
) -> (ResponseFuture, mpsc::Receiver<Notification>) {
    let filter = Raw::from_serialize(filter).unwrap_or_else(|_| Raw::from_trusted("{}"));
    let params = Raw::from_trusted(format!(r#"{{"notifications":{}}}"#, filter.as_str()));
    let method = "subscriptions/listen";
    let ask = ClientRequest {
        // It lasts for as long as the client wants.
        timeouts: CallTimeouts {
            idle: Duration::MAX,
            total: Duration::MAX,
        },
        ..ClientRequest::new(method, Some(&params))
    };
    session.listen(&ask, vec![("Mcp-Method".to_owned(), method.to_owned())])
}

/// The error with which the server refused a listen request, if asking the same again would be refused again: not one of
/// a server that is busy or about to end.
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
