//! Extensions of the protocol that a host supports.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use mcpline_protocol::RpcError;
use mcpline_protocol::vocabulary::JsonObject;
use mcpline_protocol::vocabulary::meta::is_extension_identifier;
use mcpline_protocol::wire::{Raw, json_string};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::background;
use crate::client_error::ClientError;
use crate::sync::atomic::Ordering;

use super::handlers::{self, Handlers, HostRequestHandler};
use super::inner::Inner;
use super::request::AbortOnDrop;
use super::resolver_error;
use super::settings::RequestOptions;

/// An extension of the protocol that a host supports (2026-07-28, "Extensions"): an identifier, settings, handlers for
/// requests of servers, and handlers for result types.
///
/// [`ClientBuilder::extension`](super::ClientBuilder::extension) adds it to a client, which declares it to servers of
/// every revision.
#[derive(Clone)]
pub struct Extension {
    identifier: String,
    settings: JsonObject,
    requests: Vec<(String, HostRequestHandler)>,
    result_types: Vec<(String, Resolver)>,
}

/// Turns a result of an extension's type into the ordinary result of its method.
pub(super) type Resolver = Arc<dyn Fn(ExtendedResult) -> ResolverFuture + Send + Sync>;
type ResolverFuture = Pin<Box<dyn Future<Output = Result<Raw, ClientError>> + Send>>;

/// A result whose `resultType` an extension defines, with its request.
pub struct ExtendedResult {
    method: String,
    params: Option<Raw>,
    result: Raw,
    client: Arc<Inner>,
}

impl Extension {
    /// Creates an extension without settings.
    ///
    /// `identifier` is a name with a prefix, which is a domain that its author owns, such as `com.example/stamps`.
    /// Connecting fails if it has another form.
    pub fn new(identifier: impl Into<String>) -> Self {
        Self {
            identifier: identifier.into(),
            settings: JsonObject::new(),
            requests: Vec::new(),
            result_types: Vec::new(),
        }
    }

    /// Returns the identifier.
    pub fn identifier(&self) -> &str {
        &self.identifier
    }

    /// Sets the settings with which the client declares the extension.
    #[must_use]
    pub fn with_settings(mut self, settings: JsonObject) -> Self {
        self.settings = settings;
        self
    }

    /// Handles requests of servers with a typed closure; see
    /// [`ClientBuilder::on_request`](super::ClientBuilder::on_request).
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
    pub fn request_with(
        mut self,
        method: impl Into<String>,
        request_handler: HostRequestHandler,
    ) -> Self {
        self.requests.push((method.into(), request_handler));
        self
    }

    /// Handles results of a type that the extension defines, the value of `resultType` (2026-07-28).
    ///
    /// `resolve` returns the ordinary result of the method, and may send requests to obtain it; the caller of the
    /// method receives only that result. It runs after the timeouts of the first request, and ends when the caller
    /// cancels or the client is closed.
    ///
    /// Requests with [`RequestOptions::manual_results`] receive the result unchanged.
    #[must_use]
    pub fn on_result_type<F, Fut>(mut self, result_type: impl Into<String>, resolve: F) -> Self
    where
        F: Fn(ExtendedResult) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Raw, ClientError>> + Send + 'static,
    {
        let resolver: Resolver = Arc::new(move |result| Box::pin(resolve(result)));
        self.result_types.push((result_type.into(), resolver));
        self
    }

    /// Like [`on_result_type`](Self::on_result_type), with an [`ExtendedResult`] as JSON, `{"method": …, "params": …,
    /// "result": …}`. For bindings. The error of a request that the handler sent keeps its kind if the answer contains its
    /// facts; others become [`ClientError::InputRequestFailed`].
    #[must_use]
    pub fn result_type_with(
        self,
        result_type: impl Into<String>,
        request_handler: HostRequestHandler,
    ) -> Self {
        let mut extension = self;
        extension
            .result_types
            .push((result_type.into(), host_resolver(request_handler)));
        extension
    }

    /// Adds the extension's handlers to those of a host.
    pub(super) fn add_to(self, handlers: &mut Handlers) {
        for (name, resolver) in self.result_types {
            handlers.register_resolver(name, resolver);
        }
        for (method, request_handler) in self.requests {
            handlers.register_request_handler(&method, request_handler);
        }
        let declared = handlers
            .capabilities
            .extensions
            .get_or_insert_with(Default::default);
        if declared
            .insert(self.identifier.clone(), self.settings)
            .is_some()
        {
            let identifier = &self.identifier;
            let reason = format!("extension {identifier:?}: already added to this client");
            handlers.unusable.get_or_insert(reason);
        }
    }
}

/// Makes a resolver of an request_handler that receives an [`ExtendedResult`] as JSON.
pub(super) fn host_resolver(request_handler: HostRequestHandler) -> Resolver {
    Arc::new(move |extended| {
        let written = extended.to_json();
        let answer = handlers::call_host(request_handler.clone(), written.into(), extended);
        Box::pin(async move { answer.await.map_err(resolver_error::error_of_answer) })
    })
}

/// Checks the identifiers of the declared extensions.
///
/// # Errors
///
/// An identifier has no prefix, or result types are handled though no extension is declared.
pub(super) fn check_identifiers(handlers: &Handlers) -> Result<(), ClientError> {
    let mut declared = handlers.capabilities.extensions.iter().flatten();
    let has_types = !handlers.result_types.is_empty();
    if has_types && declared.clone().next().is_none() {
        return Err(ClientError::Usage(
            "the client has handlers of result types, but declares no extension: declare theirs"
                .to_owned(),
        ));
    }
    match declared.find(|(identifier, _)| !is_extension_identifier(identifier)) {
        None => Ok(()),
        Some((unusable, _)) => Err(ClientError::Usage(format!(
            "extension {unusable:?}: the identifier must have a prefix, as com.example/search has"
        ))),
    }
}

impl ExtendedResult {
    /// Returns the method of the request.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the parameters of the request.
    pub fn params(&self) -> Option<&Raw> {
        self.params.as_ref()
    }

    /// Returns the result, a JSON object.
    pub fn result(&self) -> &Raw {
        &self.result
    }

    fn to_json(&self) -> Raw {
        let mut json = b"{\"method\":".to_vec();
        json_string(&mut json, &self.method);
        if let Some(params) = &self.params {
            json.extend_from_slice(b",\"params\":");
            json.extend_from_slice(params.as_bytes());
        }
        json.extend_from_slice(b",\"result\":");
        json.extend_from_slice(self.result.as_bytes());
        json.push(b'}');
        Raw::from_trusted(json)
    }

    /// Sends a request to the server of the result; see [`Client::request`](super::Client::request).
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
        self.client.checked_request(method, params, options).await
    }
}

/// Maximum number of extension results that one client resolves at once: each is a task, and in some languages a
/// thread. This stops a server that answers the requests of a resolver with further such results.
const MAX_RESOLVING: usize = 1_024;

/// Returns the error of a request whose result was not resolved. Does not nest: a resolver may fail because the result of
/// its own request was not resolved.
fn not_resolved(cause: ClientError) -> ClientError {
    match cause {
        ClientError::Closed | ClientError::ResultNotResolved { .. } => cause,
        cause => ClientError::ResultNotResolved {
            cause: Box::new(cause),
        },
    }
}

/// Counts one result that is being resolved.
struct ResolutionGuard<'a>(&'a Inner);

impl Drop for ResolutionGuard<'_> {
    fn drop(&mut self) {
        self.0.resolving.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Inner {
    /// Returns the resolver of a result, if its type is one of an extension.
    pub(super) fn resolver_of(&self, result: &Raw) -> Option<Resolver> {
        if self.handlers.result_types.is_empty() {
            return None;
        }
        let own_type = result.member("resultType")?;
        let own_type = own_type.string_value()?;
        self.handlers.result_types.get(&*own_type).cloned()
    }

    /// Runs a resolver for a result. It runs in a task of its own: a panic ends only that task, and results of its own
    /// requests that have to be resolved do not nest.
    pub(super) async fn resolve_result(
        &self,
        resolver: Resolver,
        method: &str,
        params: Option<&Raw>,
        result: Raw,
    ) -> Result<Raw, ClientError> {
        let others = self.resolving.fetch_add(1, Ordering::Relaxed);
        let _resolving = ResolutionGuard(self);
        if others >= MAX_RESOLVING {
            return Err(not_resolved(ClientError::LimitExceeded(format!(
                "{MAX_RESOLVING} results of extensions are being resolved already; try again later"
            ))));
        }
        let client = self.this.upgrade().ok_or(ClientError::Closed)?;
        let extended = ExtendedResult {
            method: method.to_owned(),
            params: params.cloned(),
            result,
            client,
        };
        let resolving = async move { resolver(extended).await };
        let resolving = self.handlers.tasks.until_closed(resolving);
        let task = background::spawn(&self.runtime, resolving);
        let _aborting = AbortOnDrop(vec![task.abort_handle()]);
        match task.await {
            Ok(Some(resolved)) => resolved.map_err(not_resolved),
            Ok(None) => Err(ClientError::Closed),
            Err(_) => Err(not_resolved(ClientError::InputRequestFailed {
                method: None,
                error: RpcError::internal_error("the handler of the extension panicked"),
            })),
        }
    }
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests: Vec<&String> = self.requests.iter().map(|(method, _)| method).collect();
        let types: Vec<&String> = self.result_types.iter().map(|(name, _)| name).collect();
        f.debug_struct("Extension")
            .field("identifier", &self.identifier)
            .field("settings", &self.settings)
            .field("requests", &requests)
            .field("result_types", &types)
            .finish()
    }
}

impl fmt::Debug for ExtendedResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtendedResult")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}
