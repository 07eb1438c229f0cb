//! A client as held by a binding.

use mcpline_protocol::vocabulary::Progress;

use crate::backlog::{Backlog, BacklogSlot};
use crate::client::{ClientRequestRecord, ProgressListener, RequestOptions};
use crate::error::Error;
use crate::foreign::options::{CallOptions, ClientOptions, HostOptions, read};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::configuration::ClientConfiguration;
use super::connection::{Connection, OpenError, WrongPhaseError};
use super::events::{
    ClientEvents, connection_listener, listener_backlog, notification_listener, progress_listener,
    stderr_listener,
};
use super::input_requests::InputRequests;
use super::outcome::Outcome;
use super::target::Target;

/// A client whose handlers are one [`ClientEvents`]: its [`Connection`], the host's side of it, and its configuration.
///
/// Dropping it ends the host: input requests are answered with an error. The connection lasts until its last reference
/// is dropped or it is closed.
#[derive(Debug)]
pub struct ClientHandle {
    connection: Arc<Connection>,
    host: Host,
    configuration: Mutex<ClientConfiguration>,
    /// Whether the core has a listener, at least for log messages.
    has_listener: AtomicBool,
    /// Whether all notifications are passed on.
    is_listening: AtomicBool,
}

/// The host of a client.
pub(super) struct Host {
    events: Arc<dyn ClientEvents>,
    pub(super) input_requests: Arc<InputRequests>,
    /// Backlog of its listeners.
    backlog: Backlog,
    /// Whether it listens for all notifications, not only log messages.
    wants_all: Arc<AtomicBool>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

impl Host {
    pub(super) fn stderr_listener(&self) -> impl Fn(&str) + Send + Sync + 'static {
        stderr_listener(self.events.clone(), self.backlog.clone())
    }

    pub(super) fn connection_listener(
        &self,
    ) -> impl Fn(&crate::client::ConnectionEvent) + Send + Sync + 'static {
        connection_listener(self.events.clone(), self.backlog.clone())
    }

    pub(super) fn notification_listener(
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
    /// Creates a client that is not connected yet. `host` is [`HostOptions`] and `settings` is [`ClientOptions`], as
    /// JSON.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the options have another form, or a value is invalid.
    pub fn new(
        events: Arc<dyn ClientEvents>,
        host: &[u8],
        settings: &[u8],
        target: Target,
    ) -> Result<Self, Error> {
        let host: HostOptions = read("the handlers", host)?;
        let settings: ClientOptions = read("the settings", settings)?;
        let configuration = ClientConfiguration {
            host,
            authorizes: true,
            settings: settings.settings()?,
            target: Some(target),
            ..ClientConfiguration::default()
        };
        configuration.check_host()?;
        Ok(Self::unopened(events, configuration))
    }

    /// Creates a client that is not connected yet and may be configured further.
    pub fn unopened(events: Arc<dyn ClientEvents>, configuration: ClientConfiguration) -> Self {
        Self {
            connection: Connection::new(),
            host: Host {
                input_requests: InputRequests::new(events.clone()),
                events,
                backlog: listener_backlog(),
                wants_all: Arc::default(),
            },
            configuration: Mutex::new(configuration),
            has_listener: AtomicBool::new(false),
            is_listening: AtomicBool::new(false),
        }
    }

    /// Lets `listener` get the record of each request that has ended: see
    /// [`on_request_end`](crate::client::ClientBuilder::on_request_end).
    ///
    /// # Errors
    ///
    /// [`WrongPhaseError::Opened`], [`WrongPhaseError::Closed`]
    pub fn record_requests(
        &self,
        listener: impl Fn(&ClientRequestRecord<'_>) + Send + Sync + 'static,
    ) -> Result<(), WrongPhaseError> {
        let listener = std::sync::Arc::new(listener);
        self.configure(|configuration| configuration.request_listener = Some(listener))
    }

    /// Returns the connection.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Returns the input requests that wait for the host.
    pub fn input_requests(&self) -> &Arc<InputRequests> {
        &self.host.input_requests
    }

    /// Changes the configuration.
    ///
    /// # Errors
    ///
    /// [`WrongPhaseError::Opened`], [`WrongPhaseError::Closed`]
    pub fn configure<T>(
        &self,
        change: impl FnOnce(&mut ClientConfiguration) -> T,
    ) -> Result<T, WrongPhaseError> {
        let mut configuration = self.configuration();
        self.connection.check_unopened()?;
        Ok(change(&mut configuration))
    }

    /// Begins to open the connection: see [`Connection::open`].
    ///
    /// # Errors
    ///
    /// [`OpenError`]
    pub fn open(
        &self,
    ) -> Result<impl Future<Output = Outcome> + Send + 'static + use<>, OpenError> {
        let configuration = self.configuration();
        self.connection.check_unopened()?;
        let (builder, address) = configuration.builder_and_address(&self.host)?;
        let options = &configuration.host;
        let has_listener = options.notifications || options.logs;
        self.host
            .wants_all
            .store(options.notifications, Ordering::Relaxed);
        self.has_listener.store(has_listener, Ordering::Relaxed);
        self.is_listening
            .store(options.notifications, Ordering::Relaxed);
        Ok(self.connection.open(builder, address)?)
    }

    /// Returns the options of one request. Absent ones come from the client's settings.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a value is invalid.
    pub fn options(&self, options: CallOptions) -> Result<RequestOptions, Error> {
        options.options(self.configuration().settings.timeouts)
    }

    /// Returns a listener that passes the progress of one request to `report`.
    pub fn progress_listener(
        &self,
        report: impl Fn(Progress, BacklogSlot) + Send + Sync + 'static,
    ) -> ProgressListener {
        progress_listener(self.host.backlog.clone(), report)
    }

    /// Starts to pass all notifications on to the host.
    ///
    /// # Errors
    ///
    /// [`WrongPhaseError::NotConnected`] or [`WrongPhaseError::Closed`], unless notifications are already passed on.
    pub fn listen(&self) -> Result<(), WrongPhaseError> {
        if self.is_listening.load(Ordering::Relaxed) {
            return Ok(());
        }
        let client = self.connection.client()?;
        self.host.wants_all.store(true, Ordering::Relaxed);
        if !self.is_listening.swap(true, Ordering::Relaxed) {
            match self.has_listener.swap(true, Ordering::Relaxed) {
                true => client.subscribe_to_changes(),
                false => client.on_notification(self.host.notification_listener()),
            }
        }
        Ok(())
    }

    /// Closes the connection: see [`Connection::close`]. Drops the configuration.
    pub fn closing(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        // First, so that nothing is added to the configuration afterwards.
        self.connection.begin_closing();
        let dropped = std::mem::take(&mut *self.configuration());
        drop(dropped);
        let connection = self.connection.clone();
        async move { connection.close().await }
    }

    fn configuration(&self) -> MutexGuard<'_, ClientConfiguration> {
        self.configuration
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClientHandle {
    fn drop(&mut self) {
        self.host.input_requests.end();
    }
}
