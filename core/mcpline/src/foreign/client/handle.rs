//! One client, as a binding holds it.

use mcpline_protocol::client::CallTimeouts;

use crate::backlog::{Backlog, BacklogSlot};
use crate::client::{Address, ClientBuilder, ProgressListener, RequestOptions};
use crate::error::Error;
use crate::foreign::options::{CallOptions, ClientOptions, HostOptions, read};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, PoisonError};
use mcpline_protocol::vocabulary::Progress;

use super::connection::{Connection, PhaseError};
use super::events::{
    ClientEvents, listener_backlog, notification_listener, progress_listener, stderr_listener,
};
use super::input_requests::InputRequests;
use super::outcome::Outcome;
use super::target::Target;

/// A client whose handlers are one [`ClientEvents`]: its [`Connection`], the host's side of it, and how it is to be opened.
///
/// Dropping it ends the host: input requests are answered with an error. The connection lasts until its last reference is
/// dropped or it is closed.
#[derive(Debug)]
pub struct ClientHandle {
    connection: Arc<Connection>,
    host: Host,
    timeouts: CallTimeouts,
    /// Until it is opened.
    plan: Mutex<Option<Box<(ClientBuilder, Address)>>>,
    /// Whether the core passes notifications on.
    is_listening: AtomicBool,
}

/// The host of a client.
pub(super) struct Host {
    events: Arc<dyn ClientEvents>,
    input_requests: Arc<InputRequests>,
    /// What waits for its listeners.
    backlog: Backlog,
    /// Whether it wants all notifications, not only log messages.
    wants_all: Arc<AtomicBool>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

impl Host {
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "authorization asks, over HTTP")
    )]
    pub(super) fn input_requests(&self) -> &Arc<InputRequests> {
        &self.input_requests
    }

    #[cfg_attr(
        not(all(unix, feature = "stdio")),
        expect(dead_code, reason = "only processes have a stderr")
    )]
    pub(super) fn stderr_listener(&self) -> impl Fn(&str) + Send + Sync + 'static {
        stderr_listener(self.events.clone(), self.backlog.clone())
    }

    fn notification_listener(
        &self,
    ) -> impl Fn(&mcpline_protocol::wire::Notification) + Send + Sync + 'static {
        notification_listener(
            self.events.clone(),
            self.backlog.clone(),
            self.wants_all.clone(),
        )
    }
}

impl ClientHandle {
    /// A client that is not connected yet. `host` is [`HostOptions`] and `settings` is [`ClientOptions`], as JSON.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the options are not these, or a value can't be.
    pub fn new(
        events: Arc<dyn ClientEvents>,
        host: &[u8],
        settings: &[u8],
        target: Target,
    ) -> Result<Self, Error> {
        let options: HostOptions = read("the handlers", host)?;
        let settings: ClientOptions = read("the settings", settings)?;
        let settings = settings.settings()?;
        let timeouts = settings.timeouts;
        let host = Host {
            input_requests: InputRequests::new(events.clone()),
            events,
            backlog: listener_backlog(),
            wants_all: Arc::new(AtomicBool::new(options.notifications)),
        };
        let address = target.address(&host, options.stderr)?;
        let is_listening = options.notifications || options.logs;
        let answerers = |method: &str| host.input_requests.answerer(method);
        let mut builder = options.builder(settings, answerers)?;
        if is_listening {
            builder = builder.on_notification(host.notification_listener());
        }
        Ok(Self {
            connection: Connection::new(),
            host,
            timeouts,
            plan: Mutex::new(Some(Box::new((builder, address)))),
            is_listening: AtomicBool::new(is_listening),
        })
    }

    /// The connection.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// The input requests that wait for the host.
    pub fn input_requests(&self) -> &Arc<InputRequests> {
        &self.host.input_requests
    }

    /// Begins to open the connection, once: see [`Connection::open`].
    ///
    /// # Errors
    ///
    /// [`PhaseError::Opened`], [`PhaseError::Closed`]
    pub fn open(
        &self,
    ) -> Result<impl Future<Output = Outcome> + Send + 'static + use<>, PhaseError> {
        self.connection.check_planned()?;
        let plan = self
            .plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let (builder, address) = *plan.ok_or(PhaseError::Opened)?;
        self.connection.open(builder, address)
    }

    /// The options of one request. What they leave out is as the client's settings say.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a value can't be.
    pub fn options(&self, options: CallOptions) -> Result<RequestOptions, Error> {
        options.options(self.timeouts)
    }

    /// Passes the progress of one request on, to `report`.
    pub fn progress_listener(
        &self,
        report: impl Fn(Progress, BacklogSlot) + Send + Sync + 'static,
    ) -> ProgressListener {
        progress_listener(self.host.backlog.clone(), report)
    }

    /// Passes all notifications on from now on.
    ///
    /// # Errors
    ///
    /// [`PhaseError::NotConnected`], [`PhaseError::Closed`], if no one listened so far.
    pub fn listen(&self) -> Result<(), PhaseError> {
        self.host.wants_all.store(true, Ordering::Relaxed);
        if !self.is_listening.load(Ordering::Relaxed) {
            let client = self.connection.client()?;
            if !self.is_listening.swap(true, Ordering::Relaxed) {
                client.hear(self.host.notification_listener());
            }
        }
        Ok(())
    }

    /// Closes the connection: see [`Connection::close`]. The plan of one that was never opened is dropped.
    pub fn closing(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let plan = self
            .plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(plan);
        let connection = self.connection.clone();
        async move { connection.close().await }
    }
}

impl Drop for ClientHandle {
    fn drop(&mut self) {
        self.host.input_requests.end();
    }
}
