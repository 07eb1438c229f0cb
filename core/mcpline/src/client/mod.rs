//! The client: connects to a server of any revision over any transport, sends requests and answers those of the server.
//!
//! A [`Client`] is made by [`Client::connect`], or with handlers and settings by [`Client::builder`], from an
//! [`Address`]. It is a handle: cheap to clone, used from any task and any thread of its runtime, closed from anywhere.
//!
//! The path of a request: [`Client::request`] → [`middleware`] → `Inner::hooked_request` (the host's tool call hooks) →
//! `Inner::request` (cached results, rounds, reconnection) → `Session::ask` (one connection) → a `Link` (one transport), and
//! back through the link's `LinkEventSink`.

mod address;
mod builder;
mod cancelled_before_start;
mod channel;
#[cfg(feature = "stdio")]
mod child;
mod config_file;
mod connect;
mod connection_events;
mod cursors;
mod extension;
mod features;
mod handlers;
mod handshake_servers;
#[cfg(feature = "http")]
mod http;
mod inner;
mod input_request_span;
mod link;
mod link_shutdown;
mod list_sizes;
#[cfg(feature = "server")]
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(not(feature = "metrics"))]
#[path = "no_metrics.rs"]
mod metrics;
pub mod middleware;
mod notifications;
mod offloaded_decoding;
#[cfg(feature = "stdio")]
mod pipe;
#[cfg(all(test, mcpline_models))]
mod race_models;
mod request;
mod request_log;
mod request_span;
pub(crate) mod resolver_error;
mod session;
mod settings;
#[cfg(feature = "stdio")]
mod socket;
mod stats;
mod subscriptions;
mod tool_call_hooks;
mod traffic;
mod typed_results;

use std::sync::Arc;

use mcpline_protocol::client::NegotiatedSession;
use mcpline_protocol::vocabulary::{Implementation, ServerCapabilities};
use mcpline_protocol::wire::{Method, Notification};
use mcpline_protocol::{Raw, Revision};

use inner::Inner;

use crate::background;

pub use crate::client_error::{ClientError, ConnectAttempt, MAX_KEPT_BODY};
#[cfg(feature = "http")]
#[cfg_attr(docsrs, doc(cfg(feature = "http")))]
pub use crate::http_client::{ConnectTarget, HttpConnector, HttpSettings, Proxy};
pub use crate::traffic::TRAFFIC_FILE_VARIABLE;
pub use address::{Address, Channel, ClientTransport};
pub use builder::ClientBuilder;
#[cfg(feature = "stdio")]
#[cfg_attr(docsrs, doc(cfg(feature = "stdio")))]
pub use child::{Command, Stderr};
pub use config_file::ConfiguredServer;
pub use connection_events::{ConnectionEvent, ConnectionEvents};
pub use cursors::Cursors;
pub use extension::{ExtendedResult, Extension};
pub use handlers::{
    Handlers, HostRequest, HostRequestHandler, HostResponseFuture, Listener, sampling_refused,
};
pub use notifications::Notifications;
pub use request_log::{
    ClientRequestOutcome, ClientRequestRecord, RequestDirection, RequestListener,
};
pub(crate) use request_span::SentRequest;
pub use settings::{ClientSettings, ProgressListener, Reconnect, Reissue, RequestOptions};
pub use stats::ClientStats;
pub use tool_call_hooks::{ToolCall, ToolCallError, ToolCallOutcome};
pub use typed_results::TypedCallError;

/// A client: a connection to a server. Cheap to clone; clones share the connection.
///
/// Dropping the last clone closes the connection in the background. [`Client::close`] closes it and waits until it is
/// closed.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
}

/// What all clones share. Dropping it closes the connection.
struct Handle {
    inner: Arc<Inner>,
    opened: NegotiatedSession,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.inner.subscriptions.stop();
        let inner = self.inner.clone();
        // Requests in flight hold the session, not the client: they end too.
        background::spawn(&self.inner.runtime, async move { inner.close().await });
    }
}

/// A client that is not open yet, and can be closed while it opens. Clones share it.
#[derive(Clone)]
pub(crate) struct UnopenedClient {
    inner: Arc<Inner>,
}

impl UnopenedClient {
    /// Opens the client.
    pub(crate) async fn open(&self) -> Result<Client, ClientError> {
        let inner = self.inner.clone();
        let session = inner.session().await?;
        let opened = session.opened.clone();
        let handle = Arc::new(Handle { inner, opened });
        Ok(Client { handle })
    }

    /// Ends the negotiation, and waits until nothing of it is left. Can be called repeatedly.
    pub(crate) async fn close(&self) {
        self.inner.close().await;
    }

    /// Ends the negotiation in the background. `closed` is called when nothing of it is left.
    pub(crate) fn close_in_background(&self, closed: impl FnOnce() + Send + 'static) {
        let inner = self.inner.clone();
        background::spawn(&self.inner.runtime, async move {
            inner.close().await;
            closed();
        });
    }

    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl std::fmt::Debug for UnopenedClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnopenedClient").finish_non_exhaustive()
    }
}

impl Client {
    /// Connects with default settings and without handlers. Use [`Client::builder`] to set them.
    ///
    /// # Errors
    ///
    /// [`ClientError`]: the server cannot be reached, or has no protocol revision in common with the client.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn connect(address: impl Into<Address>) -> Result<Self, ClientError> {
        Self::builder(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .connect(address)
            .await
    }

    /// Starts building a client with handlers and settings. `name` and `version` describe the host and are sent to
    /// servers.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(Implementation::new(name, version))
    }

    fn inner(&self) -> &Arc<Inner> {
        &self.handle.inner
    }

    /// Returns the protocol revision that was negotiated when the connection was first opened.
    pub fn revision(&self) -> Revision {
        self.handle.opened.revision
    }

    /// Returns the name, version and description of the server.
    pub fn server_info(&self) -> Option<&Implementation> {
        self.handle.opened.info.as_ref()
    }

    /// Returns the capabilities of the server.
    pub fn server_capabilities(&self) -> &ServerCapabilities {
        &self.handle.opened.capabilities
    }

    /// Returns the server's instructions for the model.
    pub fn instructions(&self) -> Option<&str> {
        self.handle.opened.instructions.as_deref()
    }

    /// Returns the id of the server's process, if this client started it and is connected to it.
    pub fn pid(&self) -> Option<u32> {
        let session = self.inner().open_session().ok().flatten()?;
        session.link.pid()
    }

    /// Sends a request and waits for its result, as raw JSON.
    ///
    /// Parameters may contain `_meta`; members that the protocol requires are added. Dropping the future cancels the
    /// request and notifies the server.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn request(
        &self,
        method: &str,
        params: Option<&Raw>,
        options: &RequestOptions,
    ) -> Result<Raw, ClientError> {
        self.inner().checked_request(method, params, options).await
    }

    /// Sends a notification.
    ///
    /// # Errors
    ///
    /// [`ClientError`]: the connection is lost and cannot be restored; `params` are not an object; or the notification
    /// reports changed roots and the client has not declared that it does.
    pub async fn notify(&self, method: &str, params: Option<&Raw>) -> Result<(), ClientError> {
        if Method::parse(method) == Method::NotificationsRootsListChanged {
            self.inner().handlers.check_roots_change()?;
        }
        request::check_params(params)?;
        if let Some(given) = params.and_then(|params| params.member("_meta")) {
            request::check_meta(method, &given)?;
        }
        self.inner().session().await?.notify(method, params)
    }

    /// Adds a listener for notifications, besides the one of [`ClientBuilder::on_notification`]. It receives them in
    /// the order of arrival.
    ///
    /// On 2026-07-28 the first listener subscribes to changes. Runs on an I/O thread and must not block.
    pub fn on_notification(&self, listener: impl Fn(&Notification) + Send + Sync + 'static) {
        self.inner().subscriptions.add_listener(Arc::new(listener));
    }

    /// Subscribes to changes on 2026-07-28, for the listeners that were set before.
    pub(crate) fn subscribe_to_changes(&self) {
        self.inner().subscriptions.subscribe_to_changes();
    }

    /// Closes the connection and waits until all of its tasks, descriptors and processes are gone. Requests in flight
    /// fail with [`ClientError::Closed`]. Can be called repeatedly and from any task.
    pub async fn close(&self) {
        self.inner().close().await;
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("revision", &self.revision())
            .field("server", &self.server_info())
            .finish_non_exhaustive()
    }
}
