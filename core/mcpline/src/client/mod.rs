//! The client: connects to a server of any age over any transport, asks it, answers it, and stays connected.
//!
//! A [`Client`] is made by [`Client::connect`], or with handlers and settings by [`Client::builder`], from an
//! [`Address`]. It is a handle: cheap to clone, used from any task and any thread of its runtime, closed from anywhere.
//!
//! How a request goes: [`Client::request`] → `Inner::hooked_request` (the host's hooks of tool calls) → `Inner::request` (kept results, rounds, what to do when the connection is
//! lost) → `Session::ask` (one conversation) → a `Link` (one transport), and back through the link's `Reports`.

mod address;
mod builder;
mod channel;
#[cfg(all(unix, feature = "stdio"))]
mod child;
mod closing;
mod connect;
mod cursors;
mod decoding;
mod eras;
mod extension;
mod features;
mod handlers;
#[cfg(feature = "http")]
mod http;
mod inner;
mod link;
mod list_sizes;
mod listening;
#[cfg(feature = "server")]
mod memory;
#[cfg(all(test, mcpline_models))]
mod models;
#[cfg(feature = "stdio")]
mod pipe;
mod request;
mod session;
mod settings;
#[cfg(all(unix, feature = "stdio"))]
mod socket;
mod tool_calls;

use std::sync::Arc;

use mcpline_protocol::client::Opened;
use mcpline_protocol::vocabulary::{Implementation, ServerCapabilities};
use mcpline_protocol::wire::{Method, Notification};
use mcpline_protocol::{Raw, Revision};

use inner::Inner;

use crate::background;

pub use crate::client_error::{ClientError, ConnectAttempt, MAX_KEPT_BODY};
#[cfg(feature = "http")]
#[cfg_attr(docsrs, doc(cfg(feature = "http")))]
pub use crate::http_client::{HttpSettings, Proxy};
pub use address::{Address, Channel, Dial};
pub use builder::ClientBuilder;
#[cfg(all(unix, feature = "stdio"))]
#[cfg_attr(docsrs, doc(cfg(feature = "stdio")))]
pub use child::{Command, Stderr};
pub use cursors::Cursors;
pub use extension::{ExtendedResult, Extension};
pub use handlers::{Answer, Answerer, Handlers, Listener, sampling_refused};
pub use settings::{ClientSettings, ProgressListener, Reconnect, Reissue, RequestOptions};
pub use tool_calls::{ToolCall, ToolCallError, ToolOutcome};

/// A connection to a server. Cheap to clone; clones are the same connection.
///
/// Dropping the last clone ends it in the background; [`Client::close`] ends it and says when nothing of it is left.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
}

/// What all clones share; the connection ends with it.
struct Handle {
    inner: Arc<Inner>,
    opened: Opened,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.inner.listening.stop();
        let inner = self.inner.clone();
        // Requests in flight hold the conversation, not the client: they end too.
        background::spawn(&self.inner.runtime, async move { inner.close().await });
    }
}

impl Client {
    /// Connects with default settings and without handlers; see [`Client::builder`] for more.
    ///
    /// # Errors
    ///
    /// [`ClientError`]: the server can't be reached, or speaks nothing that the client may speak.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn connect(address: impl Into<Address>) -> Result<Self, ClientError> {
        Self::builder(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .connect(address)
            .await
    }

    /// Makes a client with more than defaults. Name and version are the host's, as the server gets to see them.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(Implementation::new(name, version))
    }

    async fn open(inner: Arc<Inner>) -> Result<Self, ClientError> {
        let session = inner.session().await?;
        let opened = session.opened.clone();
        let handle = Arc::new(Handle { inner, opened });
        Ok(Self { handle })
    }

    fn inner(&self) -> &Arc<Inner> {
        &self.handle.inner
    }

    /// What both sides spoke when the connection was first opened.
    pub fn revision(&self) -> Revision {
        self.handle.opened.revision
    }

    /// Who the server said it is.
    pub fn server_info(&self) -> Option<&Implementation> {
        self.handle.opened.info.as_ref()
    }

    /// What the server offers.
    pub fn server_capabilities(&self) -> &ServerCapabilities {
        &self.handle.opened.capabilities
    }

    /// How to use the server, for the model.
    pub fn instructions(&self) -> Option<&str> {
        self.handle.opened.instructions.as_deref()
    }

    /// Sends any request and awaits its result, raw. Parameters may have a `_meta` of their own; the protocol's members
    /// are added to it. Dropping the future cancels the request, and the server hears
    /// of it.
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

    /// Sends any notification.
    ///
    /// # Errors
    ///
    /// [`ClientError`]: there is no connection, and none can be opened; or it tells that the roots have changed, and the
    /// client has not declared that it does.
    pub async fn notify(&self, method: &str, params: Option<&Raw>) -> Result<(), ClientError> {
        if Method::parse(method) == Method::NotificationsRootsListChanged {
            self.inner().handlers.check_roots_change()?;
        }
        if let Some(given) = params.and_then(|params| params.member("_meta")) {
            request::check_meta(method, &given)?;
        }
        self.inner().session().await?.tell(method, params)
    }

    /// Hears every notification from now on, in the order of arrival, besides whoever was
    /// [built in](ClientBuilder::on_notification). On 2026-07-28, changes are asked for with the first listener.
    /// Called on an I/O thread: it must not block.
    pub fn hear(&self, listener: impl Fn(&Notification) + Send + Sync + 'static) {
        self.inner().listening.hear(Arc::new(listener));
    }

    /// Ends the connection as its transport's page says, and resolves when nothing of it is left: no task, no
    /// descriptor, no process. Requests in flight fail with [`ClientError::Closed`]. From anywhere, any number of
    /// times.
    pub async fn close(&self) {
        self.inner().close().await;
    }
}

/// The parameters without their `_meta`.
fn without_meta(params: &Raw) -> Raw {
    let mut out = String::from("{");
    for (name, value) in params.members().into_iter().flatten() {
        if name != "_meta" {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(Raw::string(&name).as_str());
            out.push(':');
            out.push_str(value.as_str());
        }
    }
    out.push('}');
    Raw::from_trusted(out)
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("revision", &self.revision())
            .field("server", &self.server_info())
            .finish_non_exhaustive()
    }
}
