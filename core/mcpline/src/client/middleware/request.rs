//! A request as middleware of a client sees it.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use mcpline_protocol::client::{RequestTimeouts, is_cacheable};
use mcpline_protocol::vocabulary::ToolAnnotations;
use mcpline_protocol::wire::{JsonKind, Method, Raw};
use mcpline_protocol::{ErrorCode, Revision};
use mcpline_runtime::clock;

use crate::client::SentRequest;
use crate::client::inner::Inner;
#[cfg(doc)]
use crate::client::settings::Reissue;
use crate::client::settings::RequestOptions;
use crate::client_error::ClientError;
#[cfg(feature = "redaction")]
use crate::fair_queue::PeerId;
use crate::span::shown_address;
use crate::sync::Arc;

use super::ClientOutcome;

/// A request on its way through [middleware](super::ClientMiddleware) of a client.
#[derive(Clone)]
pub struct ClientRequest {
    client: Arc<Inner>,
    method: std::sync::Arc<str>,
    params: Option<Raw>,
    options: RequestOptions,
}

impl ClientRequest {
    pub(in crate::client) fn new(
        client: Arc<Inner>,
        method: &str,
        params: Option<&Raw>,
        options: &RequestOptions,
    ) -> Self {
        Self {
            client,
            method: method.into(),
            params: params.cloned(),
            options: options.clone(),
        }
    }

    /// Returns another request of the same client, with the same timeouts.
    pub(super) fn another(&self, method: &str, params: Option<Raw>) -> Self {
        Self {
            client: self.client.clone(),
            method: method.into(),
            params,
            options: RequestOptions {
                timeouts: self.options.timeouts,
                ..RequestOptions::default()
            },
        }
    }

    /// Returns how long the request may take.
    pub(super) fn timeouts(&self) -> RequestTimeouts {
        let timeouts = self.options.timeouts;
        timeouts.unwrap_or(self.client.settings.timeouts)
    }

    /// Returns numbers that differ after a new connection or a notification that the tools have changed; `None` if the client is
    /// not connected.
    pub(super) fn tool_epoch(&self) -> Option<(u64, u64)> {
        let session = self.client.open_session().ok().flatten()?;
        Some((session.number, self.client.tool_changes()))
    }

    /// Whether the cache has the result.
    pub(super) fn is_cached(&self) -> bool {
        let method = Method::parse(&self.method);
        let uses_cache = self.client.settings.cache && is_cacheable(&method) && !self.options.fresh;
        uses_cache
            && self
                .client
                .cache()
                .get(&method, self.params.as_ref(), clock::now())
                .is_some()
    }

    /// Returns the method, such as `tools/call`.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the target: the name of a tool or prompt, or the URI of a resource. `None` for other methods, and if the
    /// parameters lack it.
    pub fn name(&self) -> Option<String> {
        let member = match &*self.method {
            "tools/call" | "prompts/get" => "name",
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
            _ => return None,
        };
        let name = self.params.as_ref()?.member(member)?;
        name.string_value().map(Cow::into_owned)
    }

    /// Returns the parameters: a JSON object without `_meta`, which is in the [options](Self::options). `None` if the request
    /// has none.
    pub fn params(&self) -> Option<&Raw> {
        self.params.as_ref()
    }

    /// Returns the arguments of a tool or prompt: the member `arguments` of the parameters.
    pub fn arguments(&self) -> Option<Raw> {
        self.params.as_ref()?.member("arguments")
    }

    /// Replaces the parameters.
    ///
    /// # Errors
    ///
    /// [`ClientError::Usage`]: the value is not an object, or has `_meta`.
    pub fn set_params(&mut self, params: Raw) -> Result<(), ClientError> {
        let wrong = match (params.kind(), params.member("_meta")) {
            (JsonKind::Object, None) => {
                self.params = Some(params);
                return Ok(());
            }
            (JsonKind::Object, Some(_)) => {
                "must not have `_meta`: set it in the options of the request"
            }
            _ => "must be a JSON object",
        };
        Err(ClientError::Usage(format!(
            "the parameters of a request {wrong}"
        )))
    }

    /// Replaces the arguments of a tool or prompt.
    ///
    /// # Errors
    ///
    /// [`ClientError::Usage`]: the value is not an object.
    pub fn set_arguments(&mut self, arguments: &Raw) -> Result<(), ClientError> {
        if arguments.kind() != JsonKind::Object {
            return Err(ClientError::Usage(
                "the arguments of a request must be a JSON object".to_owned(),
            ));
        }
        let others = self.params.take().unwrap_or(Raw::EMPTY_OBJECT);
        self.params = Some(others.with("arguments", arguments));
        Ok(())
    }

    /// Replaces the arguments of a tool or prompt by what `redact` returns for them; removes them if that is nothing.
    pub(in crate::client) fn redact_arguments(&mut self, redact: impl FnOnce(Raw) -> Option<Raw>) {
        let Some(arguments) = self.arguments() else {
            return;
        };
        let redacted = redact(arguments);
        self.params = self.params.take().map(|params| match redacted {
            Some(arguments) => params.with("arguments", &arguments),
            None => params.without("arguments"),
        });
    }

    /// Returns the options: timeouts, `_meta`, progress.
    pub fn options(&self) -> &RequestOptions {
        &self.options
    }

    /// Returns the options, to change them.
    pub fn options_mut(&mut self) -> &mut RequestOptions {
        &mut self.options
    }

    /// Lets it be known how the request was sent.
    pub(crate) fn track(&mut self) -> Arc<SentRequest> {
        SentRequest::track(&mut self.options)
    }

    /// Returns the name of the server that the client is connected to.
    pub(crate) fn server_name(&self) -> Option<String> {
        let session = self.client.open_session().ok().flatten()?;
        let info = session.opened.info.as_ref()?;
        Some(info.name.clone())
    }

    /// Returns the address of the server, if there is one.
    pub(crate) fn server_address(&self) -> Option<String> {
        self.client.dialler.server_address().map(shown_address)
    }

    /// Returns the client as a participant of turns for long computations.
    #[cfg(feature = "redaction")]
    pub(crate) fn peer(&self) -> PeerId {
        self.client.handlers.peer
    }

    /// Returns the protocol revision of the connection, if there is one.
    pub fn revision(&self) -> Option<Revision> {
        let session = self.client.open_session().ok().flatten()?;
        Some(session.revision())
    }

    /// Returns the annotations of the tool that is called, if the client has listed it. They are the server's claims
    /// (`server/tools`).
    pub fn annotations(&self) -> Option<ToolAnnotations> {
        let is_call = &*self.method == "tools/call";
        let name = is_call.then(|| self.name()).flatten()?;
        self.client.tools().annotations(&name)
    }

    /// Returns whether the request may be performed twice, by the rules of its option [`Reissue`].
    pub fn is_repeatable(&self) -> bool {
        let method = Method::parse(&self.method);
        let (params, reissue) = (self.params.as_ref(), self.options.reissue);
        self.client.may_repeat(&method, params, reissue)
    }

    /// Waits for a time, or until the client is closed.
    pub(super) async fn wait(&self, delay: Duration) -> Result<(), ClientError> {
        let tasks = &self.client.handlers.tasks;
        let waited = tasks.until_closed(tokio::time::sleep(delay)).await;
        waited.ok_or(ClientError::Closed)
    }

    /// Sends the request, after the last middleware.
    pub(super) async fn send(self) -> ClientOutcome {
        let meta = self.options.meta.as_ref();
        if meta.is_some_and(|meta| meta.kind() != JsonKind::Object) {
            return Err(ClientError::Usage("_meta must be a JSON object".to_owned()));
        }
        self.client
            .hooked_request(&self.method, self.params.as_ref(), &self.options)
            .await
    }
}

/// Whether an error says that the server is too busy, in a JSON-RPC error or in an HTTP status: it did not perform the request.
pub(super) fn is_busy(error: &ClientError) -> bool {
    if error
        .rpc()
        .is_some_and(|error| error.code == ErrorCode::BUSY)
    {
        return true;
    }
    matches!(
        error.cause(),
        ClientError::Http {
            status: 429 | 503,
            ..
        }
    )
}

impl fmt::Debug for ClientRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRequest")
            .field("method", &self.method)
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}
