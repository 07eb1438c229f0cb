//! A request, or another message, as middleware sees it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use mcpline_protocol::wire::{JsonKind, Method, Params, Raw};
use mcpline_protocol::{Revision, Scopes};
use tokio::runtime::Handle;

use crate::caller::Caller;
use crate::error::Error;
use crate::fair_queue::PeerId;
use crate::sharing::SharedBuckets;

/// A request, or another message, on its way through [middleware](super::Middleware).
#[derive(Clone)]
pub struct MiddlewareRequest {
    kind: MessageKind,
    method: Method,
    params: Option<Params>,
    /// The target, by the name that it has at the server of the middleware.
    name: Option<Arc<str>>,
    is_changed: bool,
    origin: Arc<dyn MiddlewareOrigin>,
}

/// What a [`MiddlewareRequest`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageKind {
    /// A request of the client.
    Request,
    /// A request of a handler to the client, such as `elicitation/create`. The outcome is the client's answer.
    InputRequest,
    /// A notification of a handler to the client, such as `notifications/message`. The outcome is an empty object.
    SentNotification,
    /// A notification of the client that the server has a handler for. The outcome is an empty object.
    ReceivedNotification,
}

impl MessageKind {
    /// Returns the name: `request`, `input_request`, `sent_notification` or `received_notification`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::InputRequest => "input_request",
            Self::SentNotification => "sent_notification",
            Self::ReceivedNotification => "received_notification",
        }
    }

    /// Whether the message goes to the client.
    #[cfg(feature = "redaction")]
    pub(super) fn is_sent(self) -> bool {
        matches!(self, Self::InputRequest | Self::SentNotification)
    }
}

/// Where a request comes from.
pub(crate) trait MiddlewareOrigin: Send + Sync + 'static {
    fn auth(&self) -> Option<&Caller>;
    fn principal(&self) -> &str;
    fn client(&self) -> &str;
    fn session_id(&self) -> Option<&str>;
    fn revision(&self) -> Revision;
    fn transport(&self) -> &'static str;
    fn client_info(&self) -> Option<Raw>;
    fn header(&self, name: &str) -> Option<&str>;
    fn request_id(&self) -> &str;
    fn tool_error(&self, text: &str) -> Raw;
    fn peer(&self) -> PeerId;
    fn has_scopes(&self, scopes: &Scopes) -> bool;
    fn was_approved(&self) -> bool;
    fn is_client_a_connection(&self) -> bool;
    fn shared_buckets(&self) -> Option<&Arc<dyn SharedBuckets>>;
    fn runtime(&self) -> &Handle;
}

impl MiddlewareRequest {
    pub(crate) fn new(
        kind: MessageKind,
        method: Method,
        params: Option<Params>,
        origin: Arc<dyn MiddlewareOrigin>,
    ) -> Self {
        let name = match kind {
            MessageKind::Request => target_of(&method, params.as_ref()).map(Arc::from),
            _ => None,
        };
        Self {
            kind,
            method,
            params,
            name,
            is_changed: false,
            origin,
        }
    }

    /// Returns what it is. Middleware sees other messages than requests of clients only if its
    /// [scope](crate::server::MiddlewareScope::with_methods) names their methods.
    pub fn kind(&self) -> MessageKind {
        self.kind
    }

    /// Returns the method, such as `tools/call`.
    pub fn method(&self) -> &str {
        self.method.as_str()
    }

    /// Returns the target: the name of a tool or prompt, or the URI of a resource; for a completion those of the prompt or
    /// resource template that it completes. `None` for other methods, and if the parameters lack it.
    ///
    /// Middleware of a mounted server sees the name that the feature has there, without the prefix of the mount.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the parameters: a JSON object, with `_meta`. `None` if the request has none.
    pub fn params(&self) -> Option<&Raw> {
        self.params.as_ref().map(Params::raw)
    }

    /// Returns the arguments of a tool or prompt: the member `arguments` of the parameters.
    pub fn arguments(&self) -> Option<Raw> {
        self.params.as_ref()?.get("arguments")
    }

    /// Replaces the parameters. A client of 2026-07-28 may send the request again with answers to input requests; they are
    /// accepted only if the parameters are changed in the same way then.
    ///
    /// Changing the name of a tool or prompt, or the URI of a resource, passes the request to that feature, through the
    /// middleware whose scope has it. Middleware of a mounted server cannot do this: the request fails.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the value is not an object.
    pub fn set_params(&mut self, params: Raw) -> Result<(), Error> {
        let Some(params) = Params::from_raw(params) else {
            return Err(Error::usage(
                "the parameters of a request must be a JSON object",
            ));
        };
        if self.kind == MessageKind::Request {
            let target = target_of(&self.method, Some(&params));
            if target != target_of(&self.method, self.params.as_ref()) {
                self.name = target.map(Arc::from);
            }
        }
        self.params = Some(params);
        self.is_changed = true;
        Ok(())
    }

    /// Replaces the arguments of a tool or prompt; see [`set_params`](Self::set_params).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the value is not an object.
    pub fn set_arguments(&mut self, arguments: Raw) -> Result<(), Error> {
        if arguments.kind() != JsonKind::Object {
            return Err(Error::usage(
                "the arguments of a request must be a JSON object",
            ));
        }
        let params = self.params().cloned().unwrap_or(Raw::EMPTY_OBJECT);
        self.set_params(params.with("arguments", &arguments))
    }

    /// Returns the authenticated caller, as [`Context::auth`](crate::Context::auth) does.
    pub fn auth(&self) -> Option<&Caller> {
        self.origin.auth()
    }

    /// Returns a text that identifies the authenticated caller, for limits and caches per caller; `""` if there is none. It may
    /// contain a digest of a token, and has no form to rely on.
    pub fn principal(&self) -> &str {
        self.origin.principal()
    }

    /// Returns a text that identifies the client, as [`LimitKey::Client`](super::LimitKey::Client) counts: the authenticated caller,
    /// else the address of its requests, else its connection. It has no form to rely on.
    pub fn client(&self) -> &str {
        self.origin.client()
    }

    /// Returns the id of the session, over HTTP on handshake revisions. It gives access to the session: do not log it.
    pub fn session_id(&self) -> Option<&str> {
        self.origin.session_id()
    }

    /// Returns the client's protocol revision.
    pub fn revision(&self) -> Revision {
        self.origin.revision()
    }

    /// Returns the transport: `stdio`, `unix`, `lines`, `memory`, `http` or `http+sse`.
    pub fn transport(&self) -> &'static str {
        self.origin.transport()
    }

    /// Returns the client's name and version (`Implementation`), if it has sent them.
    pub fn client_info(&self) -> Option<Raw> {
        self.origin.client_info()
    }

    /// Returns a header of the HTTP request, if it exists and is visible ASCII. `None` on other transports.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.origin.header(name)
    }

    /// Returns the id of the JSON-RPC request, as JSON: for a message of a handler that of the request that it serves. Empty
    /// outside of a request.
    pub fn request_id(&self) -> &str {
        self.origin.request_id()
    }

    /// Returns the result of a tool that failed with this text, which the model reads.
    pub fn tool_error(&self, text: &str) -> Raw {
        self.origin.tool_error(text)
    }

    /// Returns the client as a participant of turns for long computations.
    #[cfg(feature = "redaction")]
    pub(super) fn peer(&self) -> PeerId {
        self.origin.peer()
    }

    /// Whether the caller has these scopes, or needs none.
    pub(super) fn has_scopes(&self, scopes: &Scopes) -> bool {
        self.origin.has_scopes(scopes)
    }

    /// Whether the user was asked before the tool ran, the last time that the request was passed on.
    pub(super) fn was_approved(&self) -> bool {
        self.origin.was_approved()
    }

    /// Whether the [client](Self::client) is its connection.
    pub(super) fn is_client_a_connection(&self) -> bool {
        self.origin.is_client_a_connection()
    }

    /// Returns the buckets that processes share, if they do.
    pub(super) fn shared_buckets(&self) -> Option<&Arc<dyn SharedBuckets>> {
        self.origin.shared_buckets()
    }

    /// Returns the runtime of the connection.
    pub(super) fn runtime(&self) -> &Handle {
        self.origin.runtime()
    }

    pub(crate) fn protocol_method(&self) -> &Method {
        &self.method
    }

    pub(crate) fn shared_name(&self) -> Option<&Arc<str>> {
        self.name.as_ref()
    }

    /// Whether it is a completion for an argument of a prompt, rather than for a variable of a template.
    pub(crate) fn completes_prompt(&self) -> bool {
        let reference = self.params.as_ref().and_then(|params| params.get("ref"));
        let kind = reference.and_then(|reference| reference.member("type"));
        kind.is_some_and(|kind| kind.string_value().as_deref() == Some("ref/prompt"))
    }

    /// Sets the name that the target has at the server whose middleware comes next.
    pub(crate) fn set_name(&mut self, name: Arc<str>) {
        self.name = Some(name);
    }

    /// Returns the target that the parameters name.
    pub(crate) fn target(&self) -> Option<Cow<'_, str>> {
        target_of(&self.method, self.params.as_ref())
    }

    /// Returns the method, the parameters, and whether middleware has changed these.
    pub(crate) fn into_parts(self) -> (Method, Option<Params>, bool) {
        (self.method, self.params, self.is_changed)
    }
}

/// Returns the target that the parameters of a request name.
fn target_of<'p>(method: &Method, params: Option<&'p Params>) -> Option<Cow<'p, str>> {
    let params = params?;
    match method {
        Method::ToolsCall | Method::PromptsGet => params.get_str("name"),
        Method::ResourcesRead => params.get_str("uri"),
        Method::CompletionComplete => {
            let reference = params.get("ref")?;
            let member = match reference.member("type")?.string_value().as_deref() {
                Some("ref/prompt") => "name",
                Some("ref/resource") => "uri",
                _ => return None,
            };
            let target = reference.member(member)?;
            Some(Cow::Owned(target.string_value()?.into_owned()))
        }
        _ => None,
    }
}

impl fmt::Debug for MiddlewareRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MiddlewareRequest")
            .field("kind", &self.kind)
            .field("method", &self.method())
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
