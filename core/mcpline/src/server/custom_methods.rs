//! Custom methods: requests and notifications that no protocol revision defines, and requests that some revisions leave to
//! extensions.

use std::sync::Arc;

use mcpline_protocol::checks;
use mcpline_protocol::methods::{check_custom_notification, check_custom_request};
use mcpline_protocol::schema::CompiledSchema;
use mcpline_protocol::session::ClientProfile;
use mcpline_protocol::wire::{JsonKind, Params, Raw, json_string};
use mcpline_protocol::{RpcError, Scopes};
use serde_json::Value;

use crate::error::Error;
use crate::quota::{self, ClientQuota, Exceeded, UNCHARGED_BYTES};

use super::feature_options::{check_scopes, checked_scopes};
use super::handler::Handler;

/// Options of a custom request or notification.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct MethodOptions {
    /// JSON Schema of the parameters, which must be an object. `None`: any object.
    ///
    /// Requests that do not match are answered with -32602; notifications are dropped with a warning in the log.
    /// `_meta` and the members that a retry adds (2026-07-28) are not validated.
    pub params_schema: Option<Value>,
    /// Scopes that a caller needs, all of them: see [`ToolOptions::scopes`](super::ToolOptions::scopes). Notifications
    /// of other callers are dropped with a warning in the log.
    pub scopes: Scopes,
    /// Extension that the method belongs to. The server must declare it.
    ///
    /// Requests of clients that do not declare it are answered with -32021; their notifications are dropped with a
    /// warning in the log. On 2026-07-28 a notification without declared capabilities is handled.
    pub extension: Option<String>,
    /// Never run the handler twice for one request: a retry (2026-07-28) that reaches another process fails instead.
    pub run_once: bool,
    /// A value given as a scope that is not a valid one.
    unusable_scope: Option<String>,
}

impl MethodOptions {
    /// Sets the JSON Schema of the parameters.
    #[must_use]
    pub fn with_params_schema(mut self, schema: Value) -> Self {
        self.params_schema = Some(schema);
        self
    }

    /// Sets the required scopes.
    #[must_use]
    pub fn with_scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        (self.scopes, self.unusable_scope) = checked_scopes(scopes);
        self
    }

    /// Sets the extension that the method belongs to.
    #[must_use]
    pub fn with_extension(mut self, identifier: impl Into<String>) -> Self {
        self.extension = Some(identifier.into());
        self
    }

    /// Sets [`run_once`](Self::run_once).
    #[must_use]
    pub fn with_run_once(mut self) -> Self {
        self.run_once = true;
        self
    }
}

/// A registered custom request or notification.
pub(crate) struct MethodEntry {
    pub(crate) method: Box<str>,
    pub(crate) params: Option<CompiledSchema>,
    pub(crate) scopes: Scopes,
    pub(crate) extension: Option<String>,
    pub(crate) run_once: bool,
    pub(crate) handler: Arc<dyn Handler>,
}

impl MethodEntry {
    /// Checks the registration of a request handler.
    ///
    /// # Errors
    ///
    /// The method cannot have a handler, or the schema or a scope is invalid.
    pub(super) fn request(
        method: &str,
        options: MethodOptions,
        handler: Arc<dyn Handler>,
    ) -> Result<Self, Error> {
        Self::new(method, check_custom_request(method), options, handler)
    }

    /// Checks the registration of a notification handler.
    ///
    /// # Errors
    ///
    /// As for a request.
    pub(super) fn notification(
        method: &str,
        options: MethodOptions,
        handler: Arc<dyn Handler>,
    ) -> Result<Self, Error> {
        Self::new(method, check_custom_notification(method), options, handler)
    }

    fn new(
        method: &str,
        checked: Result<(), &'static str>,
        options: MethodOptions,
        handler: Arc<dyn Handler>,
    ) -> Result<Self, Error> {
        checked.map_err(|reason| {
            Error::usage(format!("method {method:?} can't have a handler: {reason}"))
        })?;
        check_scopes(options.unusable_scope.as_deref())?;
        if let Some(schema) = &options.params_schema {
            check_is_of_objects(schema).map_err(|reason| {
                Error::usage(format!("method {method:?}: the params schema {reason}"))
            })?;
            checks::author_schema(schema).map_err(|reason| {
                Error::usage(format!(
                    "method {method:?}: unusable params schema: {reason}"
                ))
            })?;
        }
        let params = options.params_schema.as_ref().map(CompiledSchema::compile);
        let params = params.transpose().map_err(|error| {
            Error::usage(format!(
                "method {method:?}: unusable params schema: {error}"
            ))
        })?;
        Ok(Self {
            method: method.into(),
            params,
            scopes: options.scopes,
            extension: options.extension,
            run_once: options.run_once,
            handler,
        })
    }

    /// Checks that the client declares the extension that the method belongs to.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::MISSING_CLIENT_CAPABILITY`](mcpline_protocol::ErrorCode::MISSING_CLIENT_CAPABILITY)
    pub(super) fn check_extension(&self, peer: &ClientProfile) -> Result<(), RpcError> {
        match &self.extension {
            Some(identifier) if peer.extension(identifier).is_none() => {
                Err(RpcError::missing_extension(identifier))
            }
            _ => Ok(()),
        }
    }
}

/// Checks that a schema allows objects: parameters always are.
fn check_is_of_objects(schema: &Value) -> Result<(), &'static str> {
    let allows_objects = match schema.get("type") {
        Some(Value::String(one)) => one == "object",
        Some(Value::Array(types)) => types.iter().any(|one| one == "object"),
        _ => schema != &Value::Bool(false),
    };
    match allows_objects {
        true => Ok(()),
        false => Err("must allow objects"),
    }
}

/// Checks a custom notification that a handler sends.
///
/// # Errors
///
/// The method is reserved, or the parameters are not an object.
pub(crate) fn check_notification(method: &str, params: Option<&Raw>) -> Result<(), Error> {
    let is_object = params.is_none_or(|params| params.kind() == JsonKind::Object);
    let outcome = match check_custom_notification(method) {
        Ok(()) if !is_object => Err("its params must be a JSON object"),
        outcome => outcome,
    };
    outcome
        .map_err(|reason| Error::usage(format!("notification {method:?} was not sent: {reason}")))
}

/// Returns the parameters without `_meta`, and with `retries` also without the members that a retry adds. A copy is
/// charged to the client.
///
/// # Errors
///
/// The client's memory limit is exhausted.
pub(super) fn own_params(
    params: Option<&Params>,
    retries: bool,
    client: &ClientQuota,
) -> Result<Raw, Exceeded> {
    let Some(params) = params.map(Params::raw) else {
        return Ok(Raw::EMPTY_OBJECT);
    };
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
    Ok(Raw::from_trusted(quota::attach_charge(own.into(), charge)))
}
