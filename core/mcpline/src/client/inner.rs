//! The state that a client's handles share: the current connection, knowledge of the server, and reconnection.
//! `request` handles requests.

use std::time::Duration;

use mcpline_protocol::Era;
use mcpline_protocol::client::{OutgoingClientRequest, ResultCache, ToolCatalog, UrlElicitations};
use mcpline_protocol::vocabulary::{Implementation, LoggingLevel};
use mcpline_protocol::wire::{Method, Notification, Raw};
use mcpline_runtime::clock;

use crate::background;
use crate::background_tasks::BackgroundTasks;
use crate::client_error::ClientError;
use crate::fair_queue::PeerId;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use crate::timers::Timers;

use super::connect::{self, Dialler};
use super::connection_events::{ConnectionAnnouncer, ConnectionEvent};
use super::handlers::Handlers;
use super::handshake_servers::ServerKey;
use super::link::Link;
use super::list_sizes::ListSizes;
use super::metrics::ClientMetrics;
use super::session::Session;
use super::settings::ClientSettings;
use super::subscriptions::Subscriptions;

/// After this time without a loss, earlier losses no longer count: reconnection starts over with a server that was
/// down.
const FORGIVEN_AFTER: Duration = Duration::from_secs(30);

/// The state that a client's handles share.
pub(super) struct Inner {
    pub(super) info: Implementation,
    pub(super) settings: ClientSettings,
    pub(super) handlers: Handlers,
    pub(super) dialler: Box<dyn Dialler>,
    pub(super) runtime: tokio::runtime::Handle,
    pub(super) timers: Arc<Timers>,
    pub(super) subscriptions: Subscriptions,
    current: Mutex<CurrentConnection>,
    connection: ConnectionAnnouncer,
    /// Number of connections so far.
    conversations: AtomicU64,
    /// Held while a connection is opened, so that all waiting callers share one.
    turn: tokio::sync::Mutex<()>,
    cache: Mutex<ResultCache>,
    tools: Mutex<ToolCatalog>,
    /// URL elicitations of all connections: a later connection may report their completion.
    pub(super) url_elicitations: UrlElicitations,
    /// Held while a page of tools is processed, so that pages are processed in order.
    pub(super) learning: tokio::sync::Mutex<()>,
    pub(super) sizes: Mutex<ListSizes>,
    /// Number of extension results that are being resolved.
    pub(super) resolving: AtomicUsize,
    /// `None` if they are off: see [`ClientSettings::metrics`].
    pub(super) metrics: Option<Arc<ClientMetrics>>,
    /// When the client was created, on the monotonic clock.
    pub(super) started: Duration,
    /// Number of notifications that the tools have changed.
    tool_changes: AtomicU64,
    pub(super) this: Weak<Inner>,
}

struct CurrentConnection {
    session: Option<Arc<Session>>,
    era: Option<Era>,
    /// Number of losses in a row before the connection answered a request.
    lost: u32,
    /// Error and time of the last loss.
    why: Option<(ClientError, Duration)>,
    /// The log level set on the server, on revisions with `logging/setLevel`.
    log_level: Option<LoggingLevel>,
    /// Links that no session has taken over yet, and links that are being closed, until they have ended.
    links: Vec<Arc<dyn Link>>,
    closed: bool,
    /// Whether the client has connected before, and is not closed: changes of the connection are announced.
    was_connected: bool,
}

impl CurrentConnection {
    fn has_link(&self, link: &Arc<dyn Link>) -> bool {
        self.links.iter().any(|other| Arc::ptr_eq(other, link))
    }

    fn forget_link(&mut self, link: &Arc<dyn Link>) {
        self.links.retain(|other| !Arc::ptr_eq(other, link));
    }
}

/// An attempt to open a new connection in place of a lost one. The listeners of the connection get its begin and its end.
struct ReconnectAttempt {
    client: Arc<Inner>,
    /// Why the connection was lost; `None` once the end of the attempt is announced.
    why: Option<ClientError>,
}

impl ReconnectAttempt {
    fn begin(client: Arc<Inner>, why: ClientError) -> Self {
        {
            let current = client.current();
            if current.was_connected && !current.closed {
                client.connection.add(ConnectionEvent::Retrying);
            }
        }
        client.connection.deliver();
        let why = Some(why);
        Self { client, why }
    }

    /// The session announces the new connection.
    fn succeeded(mut self) {
        self.why = None;
    }

    fn failed(mut self, error: &ClientError) {
        self.why = Some(error.clone());
    }
}

impl Drop for ReconnectAttempt {
    /// Also when the request that opens the connection is dropped.
    fn drop(&mut self) {
        if let Some(why) = self.why.take() {
            {
                let current = self.client.current();
                if current.was_connected && !current.closed {
                    let event = match self.client.has_given_up(&current) {
                        true => ConnectionEvent::GivenUp(why),
                        false => ConnectionEvent::Lost(why),
                    };
                    self.client.connection.add(event);
                }
            }
            self.client.connection.deliver();
        }
    }
}

impl Inner {
    pub(super) fn new(
        info: Implementation,
        settings: ClientSettings,
        mut handlers: Handlers,
        dialler: Box<dyn Dialler>,
        metrics: Option<Arc<ClientMetrics>>,
    ) -> Arc<Self> {
        // Replaced, because a builder may be used several times.
        (handlers.peer, handlers.tasks) = (PeerId::new(), BackgroundTasks::default());
        let runtime = tokio::runtime::Handle::current();
        let timers = Arc::new(Timers::new());
        timers.start_with_guard(&runtime, handlers.tasks.begin());
        Arc::new_cyclic(|this| Self {
            current: Mutex::new(CurrentConnection {
                session: None,
                era: settings.era,
                lost: 0,
                why: None,
                log_level: None,
                links: Vec::new(),
                closed: false,
                was_connected: false,
            }),
            connection: ConnectionAnnouncer::new(std::mem::take(
                &mut handlers.connection_listeners,
            )),
            conversations: AtomicU64::new(0),
            info,
            settings,
            subscriptions: Subscriptions::new(
                std::mem::take(&mut handlers.listeners),
                handlers.wants_changes,
            ),
            handlers,
            dialler,
            runtime,
            timers,
            turn: tokio::sync::Mutex::new(()),
            cache: Mutex::new(ResultCache::new()),
            tools: Mutex::new(ToolCatalog::new()),
            url_elicitations: UrlElicitations::default(),
            learning: tokio::sync::Mutex::new(()),
            sizes: Mutex::default(),
            resolving: AtomicUsize::new(0),
            metrics,
            started: clock::now(),
            tool_changes: AtomicU64::new(0),
            this: this.clone(),
        })
    }

    fn current(&self) -> MutexGuard<'_, CurrentConnection> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the cached results for the current authorization.
    pub(super) fn cache(&self) -> MutexGuard<'_, ResultCache> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.set_authorization(self.dialler.authorization());
        cache
    }

    pub(super) fn tools(&self) -> MutexGuard<'_, ToolCatalog> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number for a new connection.
    pub(super) fn next_connection_number(&self) -> u64 {
        self.conversations.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the number of the latest connection.
    pub(super) fn latest_connection(&self) -> u64 {
        self.conversations.load(Ordering::Relaxed)
    }

    /// Returns the current session, if one is open.
    pub(super) fn open_session(&self) -> Result<Option<Arc<Session>>, ClientError> {
        let current = self.current();
        if current.closed {
            return Err(ClientError::Closed);
        }
        Ok(current.session.clone())
    }

    /// Returns the current session, or opens a new one.
    pub(super) async fn session(&self) -> Result<Arc<Session>, ClientError> {
        if let Some(session) = self.open_session()? {
            return Ok(session);
        }
        let _turn = self.turn.lock().await;
        if let Some(session) = self.open_session()? {
            return Ok(session);
        }
        let this = self.this.upgrade().ok_or(ClientError::Closed)?;
        let (era, lost, why) = {
            let mut current = self.current();
            let at = current.why.as_ref().map_or(Duration::ZERO, |(_, at)| *at);
            if current.lost > 1 && clock::now().saturating_sub(at) > FORGIVEN_AFTER {
                current.lost = 1;
            }
            (current.era, current.lost, current.why.clone())
        };
        let why = why.map(|(why, _)| why);
        if lost > self.settings.reconnect.attempts
            && let Some(why) = why
        {
            return Err(why);
        }
        let retry = why.map(|why| ReconnectAttempt::begin(this.clone(), why));
        let delay = self.settings.reconnect.delay(lost, jitter());
        // The host's knowledge comes first, then this client's, then that of other clients.
        let server = self.dialler.known_server();
        let server = server.filter(|_| self.settings.era.is_none());
        let first = era.or_else(|| server.and_then(ServerKey::era));
        // Ends when the client is closed: a server may take long to answer.
        let opening = self.handlers.tasks.until_closed(async {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            connect::open(&this, first).await
        });
        match opening.await.ok_or(ClientError::Closed)? {
            Ok((session, is_certain)) => {
                let found = session.revision().era();
                let server = server.filter(|_| is_certain || found == Era::Modern);
                self.record_era(server, first, found);
                // From here on, the session's end is announced.
                retry.into_iter().for_each(ReconnectAttempt::succeeded);
                self.adopt_session(session).await
            }
            Err(error) => {
                if let Some(server) = server {
                    server.forget();
                }
                let mut current = self.current();
                if lost > 0 {
                    current.lost += 1;
                    current.why = Some((error.clone(), clock::now()));
                }
                drop(current);
                if let Some(retry) = retry {
                    retry.failed(&error);
                }
                Err(error)
            }
        }
    }

    /// Records a server's era for later clients. `first` is the era that was tried first.
    fn record_era(&self, server: Option<ServerKey>, first: Option<Era>, found: Era) {
        // A client that does not support 2026-07-28 has not probed whether the server does.
        let probed =
            first != Some(Era::Legacy) && self.settings.revisions.iter().any(|one| one.is_modern());
        if let Some(server) = server.filter(|_| probed || found == Era::Modern) {
            server.record_era(found);
        }
    }

    pub(super) async fn adopt_session(
        &self,
        session: Arc<Session>,
    ) -> Result<Arc<Session>, ClientError> {
        let Some((again, level)) = self.make_current(&session) else {
            session.link.close().await;
            self.forget_link(&session.link);
            return Err(ClientError::Closed);
        };
        // A session that ended before it became current has reported its end to no one.
        if let Some(error) = session.ended_with() {
            self.handle_connection_loss(&session, &error);
            return Err(error);
        }
        self.announce(&session);
        if again {
            self.cache().clear();
            self.restore(&session, level);
        }
        self.listen(&session);
        Ok(session)
    }

    /// Makes a session the current one. Returns whether there was one before, and the log level to restore; `None` if
    /// the client is closed.
    fn make_current(&self, session: &Arc<Session>) -> Option<(bool, Option<LoggingLevel>)> {
        let mut current = self.current();
        if current.closed {
            return None;
        }
        current.era = Some(session.revision().era());
        current.session = Some(session.clone());
        current.forget_link(&session.link);
        Some((current.lost > 0, current.log_level))
    }

    /// Announces a session to the listeners of the connection, unless it has already ended.
    fn announce(&self, session: &Arc<Session>) {
        {
            let mut current = self.current();
            let is_current = current.session.as_ref();
            if !is_current.is_some_and(|current| Arc::ptr_eq(current, session)) {
                return;
            }
            let was_connected = std::mem::replace(&mut current.was_connected, true);
            self.connection.add(match was_connected {
                true => ConnectionEvent::Restored,
                false => ConnectionEvent::Connected,
            });
        }
        self.connection.deliver();
    }

    /// Returns whether the next request makes no attempt to connect again.
    fn has_given_up(&self, current: &CurrentConnection) -> bool {
        current.lost > self.settings.reconnect.attempts
    }

    /// Restores the log level and the subscriptions on a new connection.
    fn restore(&self, session: &Arc<Session>, level: Option<LoggingLevel>) {
        let features = session.revision().features();
        let mut requests = Vec::new();
        let may = |method| session.check_capability(&method, &self.settings).is_ok();
        let level = level.filter(|_| features.set_level && may(Method::LoggingSetLevel));
        if let Some(level) = level {
            let params = Raw::from_trusted(format!(r#"{{"level":"{}"}}"#, level.as_str()));
            requests.push(("logging/setLevel", params));
        }
        if features.resource_subscribe && may(Method::ResourcesSubscribe) {
            requests.extend(self.subscriptions.uris().into_iter().map(|uri| {
                let uri = Raw::string(&uri);
                let params = Raw::from_trusted(format!(r#"{{"uri":{}}}"#, uri.as_str()));
                ("resources/subscribe", params)
            }));
        }
        for (method, params) in requests {
            let outgoing = OutgoingClientRequest {
                timeouts: self.settings.timeouts,
                ..OutgoingClientRequest::new(method, Some(&params))
            };
            let answer = session.send_request(&outgoing, None, Vec::new());
            let repeating = self.handlers.tasks.until_closed(async move {
                if let Err(error) = answer.await {
                    tracing::warn!("reconnected, but the log level or a subscription was not restored: {method} failed: {error:#}");
                }
            });
            background::spawn(&self.runtime, repeating);
        }
    }

    /// Handles the loss of a connection or its session: the next request opens a new one.
    pub(super) fn handle_connection_loss(&self, session: &Arc<Session>, error: &ClientError) {
        {
            let mut current = self.current();
            let is_current = current.session.as_ref();
            if current.closed || !is_current.is_some_and(|current| Arc::ptr_eq(current, session)) {
                return;
            }
            current.session = None;
            current.lost = if session.has_answered() {
                1
            } else {
                current.lost + 1
            };
            current.why = Some((error.clone(), clock::now()));
            if current.was_connected {
                self.connection.add(ConnectionEvent::Lost(error.clone()));
                if self.has_given_up(&current) {
                    self.connection.add(ConnectionEvent::GivenUp(error.clone()));
                }
            }
        }
        self.connection.deliver();
        session.stop_pings();
        tracing::debug!("the connection was lost: {error:#}");
        // With subscriptions, reconnect now instead of with the next request.
        if self.subscriptions.needs_connection(self) && self.settings.reconnect.attempts > 0 {
            let this = self.this.clone();
            let returning = self.handlers.tasks.until_closed(async move {
                if let Some(this) = this.upgrade()
                    && let Err(error) = this.session().await
                {
                    tracing::warn!("cannot reconnect to the server: {error:#}");
                }
            });
            background::spawn(&self.runtime, returning);
        }
    }

    /// Keeps a dialled link until a session takes it over. Closing the client waits for it.
    pub(super) fn keep_link(&self, link: &Arc<dyn Link>) {
        self.current().links.push(link.clone());
    }

    /// Removes a link that has ended.
    pub(super) fn forget_link(&self, link: &Arc<dyn Link>) {
        self.current().forget_link(link);
    }

    /// Closes a link whose negotiation was given up, unless a session has taken it over or it has ended.
    pub(super) fn abandon_link(&self, link: &Arc<dyn Link>) {
        if self.current().has_link(link) {
            self.close_link(link.clone());
        }
    }

    /// Closes the link of a failed session whose link has not noticed. Closing the client waits for it.
    pub(super) fn close_link(&self, link: Arc<dyn Link>) {
        {
            let mut current = self.current();
            if !current.has_link(&link) {
                current.links.push(link.clone());
            }
        }
        let (this, alive) = (self.this.clone(), self.handlers.tasks.begin());
        let ending = link.close();
        background::spawn(&self.runtime, async move {
            ending.await;
            if let Some(this) = this.upgrade() {
                this.forget_link(&link);
            }
            drop(alive);
        });
    }

    /// Closes the connection for good, and resolves when nothing of it is left. Can be called repeatedly; all calls
    /// wait.
    pub(super) async fn close(&self) {
        self.close_all().await;
        if std::mem::take(&mut self.current().was_connected) {
            self.connection.add(ConnectionEvent::Closed);
        }
        self.connection.deliver();
    }

    async fn close_all(&self) {
        let session = {
            let mut current = self.current();
            current.closed = true;
            let session = current.session.take();
            let link = session.iter().map(|session| session.link.clone());
            current.links.extend(link);
            session
        };
        self.subscriptions.stop();
        if let Some(session) = &session {
            session.end(&ClientError::Closed);
        }
        // First, so that no further link is dialled.
        self.handlers.tasks.stop();
        self.close_links().await;
        self.dialler.close().await;
        self.timers.close();
        while !self.handlers.tasks.ended().await {
            if self.current().links.is_empty() {
                tracing::warn!(
                    "client closed, but some of its background tasks are still running: a handler or transport may be blocking its thread"
                );
                return;
            }
            // A negotiation on another thread had dialled before it noticed the end.
            self.close_links().await;
        }
    }

    /// Closes all links and waits until they have ended.
    async fn close_links(&self) {
        // They stay in the list, where concurrent callers find them.
        let links = self.current().links.clone();
        // All are closed before any is awaited, so that this takes only as long as the slowest.
        let endings: Vec<_> = links.iter().map(|link| link.close()).collect();
        for ending in endings {
            ending.await;
        }
        let mut current = self.current();
        links.iter().for_each(|link| current.forget_link(link));
    }

    pub(super) fn is_closed(&self) -> bool {
        self.current().closed
    }

    /// Returns the least severe level of log messages that the host wants, if it has set one.
    pub(super) fn log_level(&self) -> Option<LoggingLevel> {
        self.current().log_level
    }

    pub(super) fn set_log_level(&self, level: LoggingLevel) {
        self.current().log_level = Some(level);
    }

    pub(super) fn tool_changes(&self) -> u64 {
        self.tool_changes.load(Ordering::Relaxed)
    }

    /// Updates the cache with a notification, then passes it to the listeners.
    pub(super) fn deliver_notification(&self, notification: &Notification) {
        if notification.method == Method::NotificationsToolsListChanged {
            self.tool_changes.fetch_add(1, Ordering::Relaxed);
        }
        self.cache().invalidate(notification);
        self.subscriptions.deliver(notification);
    }
}

/// Returns a random number from 0 to 1.
pub(super) fn jitter() -> f64 {
    f64::from(u32::from_le_bytes(clock::random())) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use mcpline_protocol::Revision;
    use mcpline_protocol::client::NegotiatedSession;
    use mcpline_protocol::vocabulary::ServerCapabilities;
    use tokio::sync::watch;

    use super::super::link::{LinkFuture, Outgoing, SharedEventSink};
    use super::*;

    /// A link that ends once `links` links have been closed.
    struct TestLink {
        closes: watch::Sender<usize>,
        links: usize,
    }

    impl Link for TestLink {
        fn send(&self, _: Outgoing) {}

        fn abandon(&self, _: u64) {}

        fn set_session_open(&self, _: Revision) {}

        fn close(&self) -> LinkFuture {
            self.closes.send_modify(|closes| *closes += 1);
            let (mut closes, links) = (self.closes.subscribe(), self.links);
            Box::pin(async move {
                // Other links keep the sender alive.
                let _ = closes.wait_for(|closes| *closes >= links).await;
            })
        }
    }

    /// A dialler without links.
    struct Nowhere;

    impl Dialler for Nowhere {
        fn dial(&self, _: SharedEventSink, _: bool) -> connect::DialFuture<'_> {
            Box::pin(async { Err(ClientError::Closed) })
        }
    }

    /// A dialler with one link.
    struct Once(Arc<TestLink>);

    impl Dialler for Once {
        fn dial(&self, _: SharedEventSink, _: bool) -> connect::DialFuture<'_> {
            let link: Arc<dyn Link> = self.0.clone();
            Box::pin(async { Ok(link) })
        }
    }

    fn client(dialler: impl Dialler + 'static) -> Arc<Inner> {
        Inner::new(
            Implementation::new("test", "1"),
            ClientSettings::default(),
            Handlers::default(),
            Box::new(dialler),
            None,
        )
    }

    /// A client with an open session over this link.
    fn connected(link: Arc<TestLink>) -> Arc<Inner> {
        let client = client(Nowhere);
        let opened = NegotiatedSession {
            revision: Revision::V2025_11_25,
            capabilities: ServerCapabilities::default(),
            info: None,
            instructions: None,
            initialized: None,
            next_id: 1,
        };
        client.current().session = Some(Session::start(opened, link, &client));
        client
    }

    #[tokio::test(start_paused = true)]
    async fn closing_waits_for_all_links_at_once() {
        let closes = watch::Sender::new(0);
        let link = || {
            let closes = closes.clone();
            Arc::new(TestLink { closes, links: 3 })
        };
        let client = connected(link());
        client
            .current()
            .links
            .extend([link() as Arc<dyn Link>, link()]);
        let closed = tokio::time::timeout(Duration::from_secs(60), client.close()).await;
        closed.expect("no link waits for the end of another");
        assert_eq!(*closes.borrow(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_closes_wait_for_the_same_link() {
        let closes = watch::Sender::new(0);
        let link = TestLink {
            closes: closes.clone(),
            links: usize::MAX,
        };
        let client = connected(Arc::new(link));
        let mut first = Box::pin(client.close());
        let mut second = Box::pin(client.close());
        let waits = Duration::from_secs(60);
        let first_ended = tokio::time::timeout(waits, &mut first).await;
        assert!(first_ended.is_err(), "its link has not ended");
        let second_ended = tokio::time::timeout(waits, &mut second).await;
        assert!(second_ended.is_err(), "its link has not ended");
        // A dropped `close` leaves the link to the other callers.
        drop(first);
        let mut third = Box::pin(client.close());
        let third_ended = tokio::time::timeout(waits, &mut third).await;
        assert!(third_ended.is_err(), "its link has not ended");
        closes.send_replace(usize::MAX);
        tokio::join!(second, third);
        assert!(client.current().links.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn closing_waits_for_the_link_of_a_session_that_is_being_opened() {
        let closes = watch::Sender::new(0);
        let link = Arc::new(TestLink {
            closes: closes.clone(),
            links: usize::MAX,
        });
        let client = client(Once(link));
        let opening = client.clone();
        let opening = tokio::spawn(async move { opening.session().await.err() });
        tokio::task::yield_now().await;
        let mut closing = Box::pin(client.close());
        let closed = tokio::time::timeout(Duration::from_secs(60), &mut closing).await;
        assert!(closed.is_err(), "the link has not ended");
        assert_eq!(opening.await.unwrap(), Some(ClientError::Closed));
        closes.send_replace(usize::MAX);
        closing.await;
        assert!(client.current().links.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn closing_waits_for_the_link_of_an_opening_that_was_given_up() {
        let closes = watch::Sender::new(0);
        let link = Arc::new(TestLink {
            closes: closes.clone(),
            links: usize::MAX,
        });
        let client = client(Once(link));
        let given_up = tokio::time::timeout(Duration::from_secs(1), client.session()).await;
        assert!(given_up.is_err(), "nobody answers");
        assert_eq!(*closes.borrow(), 1, "it is closed at once");
        let mut closing = Box::pin(client.close());
        let closed = tokio::time::timeout(Duration::from_secs(60), &mut closing).await;
        assert!(closed.is_err(), "the link has not ended");
        closes.send_replace(usize::MAX);
        closing.await;
        assert!(client.current().links.is_empty());
    }
}
