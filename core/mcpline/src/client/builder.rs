//! Making a client with handlers and settings.

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

use super::Client;
use super::address::Address;
use super::extension::{self, Extension, check_identifiers};
use super::handlers::{self, Answerer, Handlers};
use super::inner::Inner;
use super::settings::ClientSettings;
use super::tool_calls::{ToolCall, ToolOutcome};

/// Makes a [`Client`] with handlers and settings. A handler that is given declares its capability.
#[derive(Debug)]
pub struct ClientBuilder {
    info: Implementation,
    settings: ClientSettings,
    handlers: Handlers,
}

impl ClientBuilder {
    pub(super) fn new(info: Implementation) -> Self {
        Self {
            info,
            settings: ClientSettings::default(),
            handlers: Handlers::default(),
        }
    }

    /// Everything that the host says of itself: title, icons, website and so on.
    #[must_use]
    pub fn implementation(mut self, info: Implementation) -> Self {
        self.info = info;
        self
    }

    /// Settings in place of the defaults.
    #[must_use]
    pub fn settings(mut self, settings: ClientSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Changes single settings.
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut ClientSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Changes what is declared, beyond what handlers declare: modes of elicitation, tools in sampling, extensions.
    #[must_use]
    pub fn capabilities(mut self, change: impl FnOnce(&mut ClientCapabilities)) -> Self {
        change(&mut self.handlers.capabilities);
        self
    }

    /// Adds an extension: declares it, and serves and takes what belongs to it.
    #[must_use]
    pub fn extension(mut self, extension: Extension) -> Self {
        extension.add_to(&mut self.handlers);
        self
    }

    /// Takes results of a type of an extension that is declared otherwise; see [`Extension::result_type_with`]. For bindings.
    #[must_use]
    pub fn result_type_with(mut self, result_type: impl Into<String>, answerer: Answerer) -> Self {
        let resolver = extension::asking(answerer);
        self.handlers.take_result_type(result_type.into(), resolver);
        self
    }

    /// Answers `elicitation/create`: forms, and visits to URLs (`client/elicitation`). Fields that an accepted form
    /// leaves out get their default. Content that does not match the form's schema then is not sent: a warning in the log says
    /// why, and the server is answered with an internal error. Content is sent for accepted forms alone.
    #[must_use]
    pub fn on_elicit<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ElicitParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, RpcError>> + Send + 'static,
    {
        self.elicit_with(handlers::typed(handler))
    }

    /// The same with the raw question, for bindings.
    #[must_use]
    pub fn elicit_with(mut self, answerer: Answerer) -> Self {
        let both = ElicitationCapability::default()
            .with_form(JsonObject::new())
            .with_url(JsonObject::new());
        self.handlers.capabilities.elicitation.get_or_insert(both);
        self.handlers.elicit = Some(answerer);
        self
    }

    /// Answers `sampling/createMessage` (`client/sampling`). The handler is given whole messages: roles, blocks, and uses of
    /// tools with their results are checked before. What it answers is checked likewise, and not sent if it is no message: a
    /// warning in the log says why, and the server is answered with an internal error.
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

    /// The same with the raw question, for bindings.
    #[must_use]
    pub fn sample_with(mut self, answerer: Answerer) -> Self {
        self.handlers
            .capabilities
            .sampling
            .get_or_insert_with(SamplingCapability::default);
        self.handlers.sample = Some(answerer);
        self
    }

    /// Answers `roots/list` with these roots (`client/roots`).
    ///
    /// Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
    #[must_use]
    pub fn roots(self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.list_roots_with(handlers::fixed_roots(roots.into_iter().collect()))
    }

    /// Answers `roots/list` with the raw question, for bindings and for roots that change. Absolute paths among the
    /// URIs are sent as `file://` URIs; where anything else is no root, the server gets an internal error and the log
    /// says why ([`root_uri`](mcpline_protocol::root_uri)).
    #[must_use]
    pub fn list_roots_with(mut self, answerer: Answerer) -> Self {
        let roots = RootsCapability::default().with_list_changed(true);
        self.handlers.capabilities.roots.get_or_insert(roots);
        self.handlers.list_roots = Some(answerer);
        self
    }

    /// Serves requests of a method that no revision of the protocol defines with a typed closure, on every revision. The
    /// closure is given the parameters without `_meta`; the result must serialize to a JSON object. Nothing is declared for it:
    /// a method of an extension is better served by [`Extension::on_request`].
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

    /// The same with the raw parameters, for bindings.
    #[must_use]
    pub fn request_with(mut self, method: &str, answerer: Answerer) -> Self {
        self.handlers.serve_request(method, answerer);
        self
    }

    /// Asks the host about each tool call before anything of it is sent: for the user's consent (`server/tools`, security
    /// considerations). `Err` refuses the call with a reason, which its caller gets as
    /// [`ClientError::ToolCallRefused`]; so does a panic. The call's timeouts begin when it is sent.
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

    /// The same with a [`ToolCall`] in JSON, for bindings. The message of an error is the reason of a refusal.
    #[must_use]
    pub fn tool_call_with(mut self, hook: Answerer) -> Self {
        self.handlers.tool_calls.before = Some(hook);
        self
    }

    /// Tells the host how each tool call ended, also one that was refused or given up: for an audit log. The caller gets
    /// the outcome once the hook is done.
    #[must_use]
    pub fn on_tool_outcome<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ToolOutcome) -> Fut + Send + Sync + 'static,
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

    /// The same with a [`ToolOutcome`] in JSON, for bindings. What it answers is not read.
    #[must_use]
    pub fn tool_outcome_with(mut self, hook: Answerer) -> Self {
        self.handlers.tool_calls.after = Some(hook);
        self
    }

    /// Hears every notification, in the order of arrival. Called on an I/O thread: it must not block.
    #[must_use]
    pub fn on_notification(
        mut self,
        listener: impl Fn(&Notification) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.listeners.push(Arc::new(listener));
        self
    }

    /// Hears log messages (`server/utilities/logging`). Called on an I/O thread: it must not block.
    ///
    /// Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
    #[must_use]
    pub fn on_log(mut self, listener: impl Fn(LogMessage) + Send + Sync + 'static) -> Self {
        self.handlers
            .listeners
            .push(handlers::log_listener(listener));
        self
    }

    /// Connects.
    ///
    /// # Errors
    ///
    /// [`ClientError`]: the server can't be reached, or speaks nothing that the client may speak; an extension's
    /// identifier has no prefix or is there twice, or a type of results is taken twice or the protocol's; `ping_interval` or `ping_timeout` is zero; a custom request can't have a handler because the
    /// protocol defines its method, its name begins with `notifications/` or `rpc.` or is not 1 to 1024 bytes of visible
    /// ASCII, or it has one already.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn connect(self, address: impl Into<Address>) -> Result<Client, ClientError> {
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
        let dialler = address.into().into_dialler()?;
        let inner = Inner::new(self.info, self.settings, self.handlers, dialler);
        Client::open(inner).await
    }
}
