//! Methods of the server's author: requests that no revision defines, served by handlers like any other.

use std::sync::Arc;

use mcpline_protocol::Revision;
use mcpline_protocol::auth::Scopes;
use mcpline_protocol::limits::MAX_METHOD;
use mcpline_protocol::schema::CompiledSchema;
use mcpline_protocol::wire::{Kind, Method, Params, Raw, json_string};
use serde_json::Value;

use crate::error::Error;
use crate::quota::{self, ClientQuota, Exceeded, UNCHARGED_BYTES};

use super::handler::Handler;
use super::registry::{check_scopes, checked_scopes};

/// How a custom request is to be treated.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RequestOptions {
    /// The JSON Schema of the parameters, which must be an object. Parameters that don't match are refused with -32602
    /// before the handler runs. `_meta` and what a retry of 2026-07-28 adds are left out of the check.
    pub params_schema: Option<Value>,
    /// The scopes that a caller needs, all of them, over HTTP: see [`ToolOptions::scopes`](super::ToolOptions::scopes).
    pub scopes: Scopes,
    /// What was given as a scope and can't be one.
    unusable_scope: Option<String>,
}

impl RequestOptions {
    /// With this JSON Schema of the parameters.
    #[must_use]
    pub fn with_params_schema(mut self, schema: Value) -> Self {
        self.params_schema = Some(schema);
        self
    }

    /// For callers with these scopes only.
    #[must_use]
    pub fn with_scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        (self.scopes, self.unusable_scope) = checked_scopes(scopes);
        self
    }
}

/// A registered custom request.
pub(crate) struct RequestEntry {
    pub(crate) method: Box<str>,
    pub(crate) params: Option<CompiledSchema>,
    pub(crate) scopes: Scopes,
    pub(crate) handler: Arc<dyn Handler>,
}

impl RequestEntry {
    /// Checks a registration.
    ///
    /// # Errors
    ///
    /// The method can't be served by a handler, the schema is unusable, or a scope is.
    pub(super) fn new(
        method: &str,
        options: RequestOptions,
        handler: Arc<dyn Handler>,
    ) -> Result<Self, Error> {
        check_request_method(method).map_err(|reason| {
            Error::misuse(format!("method {method:?} can't have a handler: {reason}"))
        })?;
        check_scopes(options.unusable_scope.as_deref())?;
        let params = options.params_schema.as_ref().map(CompiledSchema::compile);
        let params = params.transpose().map_err(|error| {
            Error::misuse(format!(
                "method {method:?}: unusable params schema: {error}"
            ))
        })?;
        Ok(Self {
            method: method.into(),
            params,
            scopes: options.scopes,
            handler,
        })
    }
}

/// Whether an author may serve requests of this method.
fn check_request_method(method: &str) -> Result<(), &'static str> {
    if method.starts_with("notifications/") {
        return Err("names that begin with `notifications/` are those of notifications");
    }
    check_name(method)
}

/// Whether an author may use this name for a method.
fn check_name(method: &str) -> Result<(), &'static str> {
    if method.is_empty() || method.len() > MAX_METHOD {
        return Err("a name has 1 to 1024 bytes");
    }
    // The header `Mcp-Method` repeats it (2026-07-28, `basic/transports`, standard headers).
    if !method.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a name is visible ASCII without spaces");
    }
    if method.starts_with("rpc.") {
        return Err("JSON-RPC reserves names that begin with `rpc.`");
    }
    match Method::parse(method).spec() {
        None => Ok(()),
        Some(_) => Err("the protocol defines it"),
    }
}

/// Checks a custom notification that a handler wants to send.
///
/// # Errors
///
/// The method is not the author's to send, or the parameters are not an object.
pub(crate) fn check_notification(method: &str, params: Option<&Raw>) -> Result<(), Error> {
    let is_object = params.is_none_or(|params| params.kind() == Kind::Object);
    let outcome = match check_name(method) {
        Ok(()) if !is_object => Err("its params must be a JSON object"),
        outcome => outcome,
    };
    outcome
        .map_err(|reason| Error::misuse(format!("notification {method:?} was not sent: {reason}")))
}

/// The parameters as the author defined them: without what the revision adds to every request. A copy is charged to the
/// client.
///
/// # Errors
///
/// The memory that may be held for the client is used up.
pub(super) fn own_params(
    params: Option<&Params>,
    revision: Revision,
    client: &ClientQuota,
) -> Result<Raw, Exceeded> {
    let Some(params) = params.map(Params::raw) else {
        return Ok(Raw::EMPTY_OBJECT);
    };
    let retries = revision.features().mrtr;
    let is_added = |name: &str| {
        name == "_meta" || (retries && matches!(name, "inputResponses" | "requestState"))
    };
    let members = || params.members().into_iter().flatten();
    if !members().any(|(name, _)| is_added(&name)) {
        return Ok(params.clone());
    }
    let mut own = Vec::with_capacity(params.as_bytes().len());
    for (name, value) in members().filter(|(name, _)| !is_added(name)) {
        own.push(if own.is_empty() { b'{' } else { b',' });
        json_string(&mut own, &name);
        own.push(b':');
        own.extend_from_slice(value.as_bytes());
    }
    if own.is_empty() {
        own.push(b'{');
    }
    own.push(b'}');
    if own.len() < UNCHARGED_BYTES {
        return Ok(Raw::from_trusted(own));
    }
    let charge = client.hold_bytes(own.len())?;
    Ok(Raw::from_trusted(quota::charged(own.into(), charge)))
}
