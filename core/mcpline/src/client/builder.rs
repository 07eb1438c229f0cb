//! Builds clients with handlers and settings.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use mcpline_protocol::RpcError;
use mcpline_protocol::vocabulary::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
    ElicitationCapability, Implementation, JsonObject, LogMessage, Root, RootsCapability,
    SamplingCapability,
};
use mcpline_protocol::wire::Notification;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client_error::ClientError;

use super::address::Address;
use super::extension::{self, Extension, check_identifiers};
use super::handlers::{self, Handlers, HostRequestHandler};
use super::inner::Inner;
use super::metrics::ClientMetrics;
use super::middleware::ClientMiddleware;
use super::settings::ClientSettings;
use super::tool_call_hooks::{ToolCall, ToolCallOutcome};
use super::{Client, UnopenedClient, traffic};

/// Builds a [`Client`] with handlers and settings. Setting a handler declares its capability.
#[derive(Debug)]
pub struct ClientBuilder {
    info: Implementation,
    settings: ClientSettings,
    pub(super) handlers: Handlers,
}

impl ClientBuilder {
    pub(super) fn new(info: Implementation) -> Self {
        Self {
            info,
            settings: ClientSettings::default(),
            handlers: Handlers::default(),
        }
    }

    /// Sets the complete description of the host: title, icons, website and others.
    #[must_use]
    pub fn implementation(mut self, info: Implementation) -> Self {
        self.info = info;
        self
    }

    /// Replaces all settings.
    #[must_use]
    pub fn settings(mut self, settings: ClientSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Changes individual settings.
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut ClientSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Changes the declared capabilities beyond those of the handlers: modes of elicitation, tools in sampling,
    /// extensions.
    #[must_use]
    pub fn capabilities(mut self, change: impl FnOnce(&mut ClientCapabilities)) -> Self {
        change(&mut self.handlers.capabilities);
        self
    }

    /// Adds an extension: declares it and registers its handlers.
    #[must_use]
    pub fn extension(mut self, extension: Extension) -> Self {
        extension.add_to(&mut self.handlers);
        self
    }

    /// Handles results of a type that a separately declared extension defines; see [`Extension::result_type_with`]. For
    /// bindings.
    #[must_use]
    pub fn result_type_with(
        mut self,
        result_type: impl Into<String>,
        request_handler: HostRequestHandler,
    ) -> Self {
        let resolver = extension::host_resolver(request_handler);
        self.handlers
            .register_resolver(result_type.into(), resolver);
        self
    }

    /// Handles elicitation requests, in form and URL mode (`elicitation/create`, `client/elicitation`).
    ///
    /// Fields that are missing from an accepted form are set to their defaults. If the content does not match the
    /// form's schema, it is not sent: a warning is logged and the server receives an internal error. Content is sent
    /// for accepted forms only.
    #[must_use]
    pub fn on_elicit<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ElicitParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, RpcError>> + Send + 'static,
    {
        self.elicit_with(handlers::typed(handler))
    }

    /// Like [`on_elicit`](Self::on_elicit), with raw JSON. For bindings.
    #[must_use]
    pub fn elicit_with(mut self, request_handler: HostRequestHandler) -> Self {
        let both = ElicitationCapability::default()
            .with_form(JsonObject::new())
            .with_url(JsonObject::new());
        self.handlers.capabilities.elicitation.get_or_insert(both);
        self.handlers.elicit = Some(request_handler);
        self
    }

    /// Handles sampling requests (`sampling/createMessage`, `client/sampling`).
    ///
    /// Messages are validated before the handler is called: roles, content blocks, tool uses and their results. An
    /// invalid result of the handler is not sent: a warning is logged and the server receives an internal error.
    ///
    /// Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
    #[must_use]
    pub fn on_sample<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(CreateMessageParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CreateMessageResult, RpcError>> + Send + 'static,
    {
        self.sample_with(handlers::typed(handler))
    }

    /// Like [`on_sample`](Self::on_sample), with raw JSON. For bindings.
    #[must_use]
    pub fn sample_with(mut self, request_handler: HostRequestHandler) -> Self {
        self.handlers
            .capabilities
            .sampling
            .get_or_insert_with(SamplingCapability::default);
        self.handlers.sample = Some(request_handler);
        self
    }

    /// Answers `roots/list` with these roots (`client/roots`).
    ///
    /// Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
    #[must_use]
    pub fn roots(self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.list_roots_with(handlers::fixed_roots(roots.into_iter().collect()))
    }

    /// Handles `roots/list` with raw JSON, for bindings and for roots that change.
    ///
    /// Absolute paths are sent as `file://` URIs. If another value is not a root, the server receives an internal error
    /// and a warning is logged ([`root_uri`](mcpline_protocol::root_uri)).
    #[must_use]
    pub fn list_roots_with(mut self, request_handler: HostRequestHandler) -> Self {
        let roots = RootsCapability::default().with_list_changed(true);
        self.handlers.capabilities.roots.get_or_insert(roots);
        self.handlers.list_roots = Some(request_handler);
        self
    }

    /// Handles requests of a custom method with a typed closure, on every revision.
    ///
    /// The closure receives the parameters without `_meta`; its result must serialize to a JSON object. No capability
    /// is declared; for a method of an extension use [`Extension::on_request`].
    #[must_use]
    pub fn on_request<P, R, F, Fut>(self, method: &str, handler: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        F: Fn(P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
    {
        self.request_with(method, handlers::typed(handler))
    }

    /// Like [`on_request`](Self::on_request), with raw parameters. For bindings.
    #[must_use]
    pub fn request_with(mut self, method: &str, request_handler: HostRequestHandler) -> Self {
        self.handlers
            .register_request_handler(method, request_handler);
        self
    }

    /// Puts code around each request of the client; see [`ClientMiddleware`]. The first that was added is the outermost.
    #[must_use]
    pub fn middleware(self, middleware: impl ClientMiddleware) -> Self {
        self.shared_middleware(Arc::new(middleware))
    }

    /// Like [`middleware`](Self::middleware), with one that is kept elsewhere, too: for another client, or to call its methods.
    #[must_use]
    pub fn shared_middleware(mut self, middleware: Arc<dyn ClientMiddleware>) -> Self {
        let before = self.handlers.middlewares.iter().cloned();
        self.handlers.middlewares = before.chain([middleware]).collect();
        self
    }

    /// Sets a hook that runs before each tool call is sent, for the user's consent (`server/tools`, security
    /// considerations).
    ///
    /// `Err` refuses the call with a reason; the call then fails with [`ClientError::ToolCallRefused`], as it does if
    /// the hook panics. The timeouts of the call start when it is sent.
    #[must_use]
    pub fn on_tool_call<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        let hook = Arc::new(hook);
        self.tool_call_with(handlers::typed(move |call| {
            let hook = hook.clone();
            async move { hook(call).await.map_err(RpcError::internal_error) }
        }))
    }

    /// Like [`on_tool_call`](Self::on_tool_call), with a [`ToolCall`] as JSON. For bindings. The message of an error is
    /// the reason for the refusal.
    #[must_use]
    pub fn tool_call_with(mut self, hook: HostRequestHandler) -> Self {
        self.handlers.tool_calls.before = Some(hook);
        self
    }

    /// Sets a hook that runs with the outcome of each tool call, including refused and cancelled ones, for an audit
    /// log.
    ///
    /// The caller receives the outcome after the hook has finished.
    #[must_use]
    pub fn on_tool_outcome<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ToolCallOutcome) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let hook = Arc::new(hook);
        self.tool_outcome_with(handlers::typed(move |outcome| {
            let hook = hook.clone();
            async move {
                hook(outcome).await;
                Ok(())
            }
        }))
    }

    /// Like [`on_tool_outcome`](Self::on_tool_outcome), with a [`ToolCallOutcome`] as JSON. For bindings. The result is
    /// ignored.
    #[must_use]
    pub fn tool_outcome_with(mut self, hook: HostRequestHandler) -> Self {
        self.handlers.tool_calls.after = Some(hook);
        self
    }

    /// Sets the listener for all notifications. It receives them in the order of arrival, on an I/O thread, and must
    /// not block.
    #[must_use]
    pub fn on_notification(
        mut self,
        listener: impl Fn(&Notification) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.listeners.push(Arc::new(listener));
        self.handlers.wants_changes = true;
        self
    }

    /// Like [`on_notification`](Self::on_notification) for a listener of log messages only: it causes no subscription
    /// to changes.
    #[must_use]
    pub(crate) fn on_logged(
        mut self,
        listener: impl Fn(&Notification) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.listeners.push(Arc::new(listener));
        self
    }

    /// Sets the listener for log messages (`server/utilities/logging`). It runs on an I/O thread and must not block.
    ///
    /// Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
    #[must_use]
    pub fn on_log(self, listener: impl Fn(LogMessage) + Send + Sync + 'static) -> Self {
        let listener = handlers::log_listener(listener);
        self.on_logged(move |notification| listener(notification))
    }

    /// Connects to a server.
    ///
    /// # Errors
    ///
    /// [`ClientError`]: the server cannot be reached or has no protocol revision in common with the client;
    /// `ping_interval`, `ping_timeout` or `max_line_bytes` is zero; the identifier of an extension has no prefix or is used
    /// twice; a result type is used twice or defined by the protocol; a custom method has two handlers, is defined by
    /// the protocol, begins with `notifications/` or `rpc.`, or is not 1 to 1024 bytes of visible ASCII.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn connect(self, address: impl Into<Address>) -> Result<Client, ClientError> {
        self.build_unopened(address)?.open().await
    }

    /// Builds a client without opening it.
    pub(crate) fn build_unopened(
        self,
        address: impl Into<Address>,
    ) -> Result<UnopenedClient, ClientError> {
        check_identifiers(&self.handlers)?;
        if let Some(reason) = &self.handlers.unusable {
            return Err(ClientError::Usage(reason.clone()));
        }
        for (name, time) in [
            ("ping_interval", self.settings.ping_interval),
            ("ping_timeout", Some(self.settings.ping_timeout)),
        ] {
            if time == Some(Duration::ZERO) {
                return Err(ClientError::Usage(format!(
                    "`{name}` must be more than zero"
                )));
            }
        }
        if self.settings.max_line_bytes == 0 {
            return Err(ClientError::Usage(
                "`max_line_bytes` must be more than zero".to_owned(),
            ));
        }
        let metrics = ClientMetrics::of(&self.settings)?;
        let address = address.into();
        let transport = address.transport();
        let dialler = address.into_dialler(self.settings.max_line_bytes)?;
        let dialler = traffic::recorded(dialler, &self.settings, &self.info.name, transport)
            .map_err(|error| ClientError::Usage(error.to_string()))?;
        let inner = Inner::new(self.info, self.settings, self.handlers, dialler, metrics);
        Ok(UnopenedClient { inner })
    }
}
