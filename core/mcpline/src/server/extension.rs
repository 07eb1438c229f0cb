//! Extensions of the protocol that a server offers.

use std::collections::BTreeMap;
use std::fmt;
#[cfg(feature = "schemars")]
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use mcpline_protocol::methods::check_custom_result_type;
use mcpline_protocol::session::ClientProfile;
use mcpline_protocol::vocabulary::meta::is_extension_identifier;
use mcpline_protocol::vocabulary::{JsonObject, ServerCapabilities};
use mcpline_protocol::wire::{Method as ProtocolMethod, Raw};
use mcpline_protocol::{ListMethod, Revision};
#[cfg(feature = "schemars")]
use schemars::JsonSchema;
#[cfg(feature = "schemars")]
use serde::Serialize;
#[cfg(feature = "schemars")]
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Error;

use super::Server;
#[cfg(feature = "schemars")]
use super::context::Context;
use super::custom_methods::MethodOptions;
use super::handler::Handler;
#[cfg(feature = "schemars")]
use super::tool_error::ToolError;
#[cfg(feature = "schemars")]
use super::{object_schema, typed_handlers};

/// An extension of the protocol that a server offers (2026-07-28, "Extensions"): an identifier, settings and features.
/// [`ServerBuilder::extension`](super::ServerBuilder::extension) adds it to a server.
///
/// The server declares the identifier and the settings in its capabilities, to clients of every revision. The methods of
/// the extension are served to clients that declare it too. Requests of other clients are answered with -32021; their
/// notifications are dropped with a warning in the log, except on 2026-07-28 if they do not contain the client's
/// capabilities. [`Context::client_extension`](super::Context::client_extension) returns what a client declares.
///
/// ```
/// use mcpline::server::Extension;
/// use mcpline::{Context, HandlerError, Server};
/// use serde_json::{Value, json};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Issue {
///     color: String,
/// }
///
/// let stamps = Extension::new("com.example/stamps").on_request(
///     "stamps/issue",
///     |issue: Issue, _: Context| async move { Ok::<Value, HandlerError>(json!({"stamp": issue.color})) },
/// );
/// let server = Server::builder("shop", "1.0.0").extension(stamps).build()?;
/// # Ok::<(), mcpline::Error>(())
/// ```
#[derive(Clone)]
pub struct Extension {
    identifier: String,
    settings: JsonObject,
    requests: Vec<Method>,
    notifications: Vec<Method>,
    registrations: Vec<Registration>,
    capabilities: Vec<CapabilityHook>,
    results: Vec<(String, ResultHook)>,
    result_types: Vec<String>,
}

#[derive(Clone)]
struct Method {
    name: String,
    options: MethodOptions,
    handler: Arc<dyn Handler>,
}

type Registration = Arc<dyn Fn(&Server) -> Result<(), Error> + Send + Sync>;
type CapabilityHook = Arc<dyn Fn(&mut ServerCapabilities) + Send + Sync>;
type ResultHook = Arc<dyn Fn(&mut JsonObject, &Raw) + Send + Sync>;

impl Extension {
    /// Creates an extension without settings.
    ///
    /// `identifier` is a name with a prefix, which is a domain that its author owns, such as `com.example/stamps`.
    /// Building a server fails if it has another form.
    pub fn new(identifier: impl Into<String>) -> Self {
        Self {
            identifier: identifier.into(),
            settings: JsonObject::new(),
            requests: Vec::new(),
            notifications: Vec::new(),
            registrations: Vec::new(),
            capabilities: Vec::new(),
            results: Vec::new(),
            result_types: Vec::new(),
        }
    }

    /// Returns the identifier.
    pub fn identifier(&self) -> &str {
        &self.identifier
    }

    /// Sets the settings with which the server declares the extension.
    #[must_use]
    pub fn with_settings(mut self, settings: JsonObject) -> Self {
        self.settings = settings;
        self
    }

    /// Handles requests of a method of the extension with a typed closure; see [`Server::on_request`].
    #[cfg(feature = "schemars")]
    #[cfg_attr(docsrs, doc(cfg(feature = "schemars")))]
    #[must_use]
    pub fn on_request<P, F, Fut, R, E>(self, method: &str, run: F) -> Self
    where
        P: DeserializeOwned + JsonSchema,
        F: Fn(P, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        R: Serialize,
        E: Into<ToolError>,
    {
        let options = MethodOptions::default()
            .with_params_schema(object_schema(typed_handlers::schema_of::<P>()));
        self.request_with(method, options, typed_handlers::request_handler(run))
    }

    /// Handles requests of a method of the extension; see [`Server::add_request_handler`].
    #[must_use]
    pub fn request_with(
        mut self,
        method: impl Into<String>,
        options: MethodOptions,
        handler: Arc<dyn Handler>,
    ) -> Self {
        self.requests.push(Method {
            name: method.into(),
            options,
            handler,
        });
        self
    }

    /// Handles notifications of a method of the extension with a typed closure; see [`Server::on_notification`].
    #[cfg(feature = "schemars")]
    #[cfg_attr(docsrs, doc(cfg(feature = "schemars")))]
    #[must_use]
    pub fn on_notification<P, F, Fut>(self, method: &str, run: F) -> Self
    where
        P: DeserializeOwned + JsonSchema,
        F: Fn(P, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let options = MethodOptions::default()
            .with_params_schema(object_schema(typed_handlers::schema_of::<P>()));
        self.notification_with(method, options, typed_handlers::notification_handler(run))
    }

    /// Handles notifications of a method of the extension; see [`Server::add_notification_handler`].
    #[must_use]
    pub fn notification_with(
        mut self,
        method: impl Into<String>,
        options: MethodOptions,
        handler: Arc<dyn Handler>,
    ) -> Self {
        self.notifications.push(Method {
            name: method.into(),
            options,
            handler,
        });
        self
    }

    /// Allows handlers to return results of this `resultType` on 2026-07-28 to clients that declare the extension: a
    /// [`Reply::Result`](super::Reply::Result) instead of the usual result of a tool, resource, prompt or completion.
    ///
    /// Clients that do not declare the extension receive error -32021.
    #[must_use]
    pub fn with_result_type(mut self, result_type: impl Into<String>) -> Self {
        self.result_types.push(result_type.into());
        self
    }

    /// Registers other features of the extension with each server that it is added to: tools, resources, prompts.
    ///
    /// Clients that do not declare the extension see them as well.
    #[must_use]
    pub fn register(
        mut self,
        register: impl Fn(&Server) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        self.registrations.push(Arc::new(register));
        self
    }

    /// Changes the declared capabilities of the server each time they are computed: when something is registered or
    /// removed.
    ///
    /// `change` must not change the server. If it panics, its change is discarded. It cannot change `extensions`.
    #[must_use]
    pub fn capabilities(
        mut self,
        change: impl Fn(&mut ServerCapabilities) + Send + Sync + 'static,
    ) -> Self {
        self.capabilities.push(Arc::new(change));
        self
    }

    /// Changes the results of a method, such as `tools/list`, for clients that declare the extension.
    ///
    /// The method is that of a list, `tools/call`, `resources/read`, `prompts/get`, `completion/complete` or a custom
    /// request; building a server fails for others. Results that request input are not changed.
    ///
    /// `change` receives the result as it would be sent in the client's revision, and the settings that the client
    /// declared. It may set a `resultType` of the extension ([`with_result_type`](Self::with_result_type)), where the
    /// revision has one. It runs on an I/O thread and must not block. If it panics or sets another `resultType`, its
    /// change is left out, with an error in the log. A changed result of a method whose results are cacheable is
    /// cacheable for this client only (`cacheScope`).
    #[must_use]
    pub fn on_result(
        mut self,
        method: impl Into<String>,
        change: impl Fn(&mut JsonObject, &Raw) + Send + Sync + 'static,
    ) -> Self {
        self.results.push((method.into(), Arc::new(change)));
        self
    }
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |methods: &[Method]| methods.iter().map(|m| m.name.clone()).collect::<Vec<_>>();
        f.debug_struct("Extension")
            .field("identifier", &self.identifier)
            .field("settings", &self.settings)
            .field("requests", &names(&self.requests))
            .field("notifications", &names(&self.notifications))
            .finish_non_exhaustive()
    }
}

/// The extensions of a server, while it is built and afterwards.
#[derive(Default)]
pub(super) struct Extensions {
    /// The declared extensions with their settings.
    pub(super) declared: BTreeMap<String, JsonObject>,
    capabilities: Vec<CapabilityHook>,
    results: Vec<(String, String, ResultHook)>,
    /// The extension that each result type belongs to.
    result_types: BTreeMap<String, String>,
}

impl Extensions {
    /// Collects what the extensions declare and change.
    ///
    /// # Errors
    ///
    /// An identifier has no prefix, or two extensions share one.
    pub(super) fn of(extensions: &[Extension]) -> Result<Self, Error> {
        let mut all = Self::default();
        for extension in extensions {
            let identifier = &extension.identifier;
            if !is_extension_identifier(identifier) {
                return Err(Error::usage(format!(
                    "extension {identifier:?}: the identifier needs a prefix, as in com.example/search"
                )));
            }
            let before = all
                .declared
                .insert(identifier.clone(), extension.settings.clone());
            if before.is_some() {
                return Err(Error::usage(format!(
                    "extension {identifier:?}: already added to this server"
                )));
            }
            all.capabilities
                .extend(extension.capabilities.iter().cloned());
            for name in &extension.result_types {
                let taken = all.result_types.insert(name.clone(), identifier.clone());
                let checked = match taken {
                    None => check_custom_result_type(name),
                    Some(_) => Err("already used by another extension"),
                };
                checked.map_err(|reason| {
                    Error::usage(format!(
                        "extension {identifier:?}: result type {name:?}: {reason}"
                    ))
                })?;
            }
            for (method, hook) in &extension.results {
                if !has_changeable_results(method) {
                    return Err(Error::usage(format!(
                        "extension {identifier:?}: the results of {method:?} cannot be changed"
                    )));
                }
                let hook = (method.clone(), identifier.clone(), hook.clone());
                all.results.push(hook);
            }
        }
        Ok(all)
    }

    /// Applies the extensions to a server's capabilities.
    pub(super) fn declare(&self, capabilities: &mut ServerCapabilities) {
        for change in &self.capabilities {
            let mut changed = capabilities.clone();
            // After a panic only the copy is in an unknown state.
            match catch_unwind(AssertUnwindSafe(|| change(&mut changed))) {
                Ok(()) => *capabilities = changed,
                Err(_) => tracing::error!(
                    "a hook on the capabilities of an extension panicked; its change is left out"
                ),
            }
        }
        if !self.declared.is_empty() {
            capabilities.extensions = Some(self.declared.clone());
        }
    }

    /// Returns the extension that a result type belongs to.
    pub(super) fn extension_of_result_type(&self, result_type: &str) -> Option<&str> {
        self.result_types.get(result_type).map(String::as_str)
    }

    /// Whether a hook changes the results of `method` for this client.
    #[inline]
    pub(super) fn change_result_of(&self, method: &str, peer: &ClientProfile) -> bool {
        let mut hooks = self.results.iter();
        hooks.any(|(of, identifier, _)| of == method && peer.extension(identifier).is_some())
    }

    /// Whether the type of a result, if it has changed, is one of this extension.
    fn may_set_type(&self, identifier: &str, before: &JsonObject, after: &JsonObject) -> bool {
        let own_type = after.get("resultType");
        own_type == before.get("resultType")
            || own_type
                .and_then(Value::as_str)
                .is_some_and(|own_type| self.extension_of_result_type(own_type) == Some(identifier))
    }

    /// Returns the result of `method` as changed by the client's extensions.
    pub(super) fn changed(&self, method: &str, peer: &ClientProfile, result: Vec<u8>) -> Vec<u8> {
        let mut changed = match serde_json::from_slice::<JsonObject>(&result) {
            Ok(changed) => changed,
            Err(error) => {
                tracing::error!(method, %error, "a result can't be changed by the hooks of extensions; it is sent as it is");
                return result;
            }
        };
        for (of, identifier, hook) in &self.results {
            if of != method {
                continue;
            }
            let Some(settings) = peer.extension(identifier) else {
                continue;
            };
            let before = changed.clone();
            // After a panic only the copy is in an unknown state.
            let hook = AssertUnwindSafe(|| hook(&mut changed, &settings));
            let mistake = match catch_unwind(hook) {
                Err(_) => "it panicked",
                Ok(()) if !self.may_set_type(identifier, &before, &changed) => {
                    "it set a `resultType` that is not one of the extension"
                }
                Ok(()) => continue,
            };
            tracing::error!(
                method,
                extension = identifier,
                "a hook of an extension failed: {mistake}; its change is left out"
            );
            changed = before;
        }
        let is_cacheable = ProtocolMethod::parse(method)
            .spec()
            .is_some_and(|spec| spec.is_cacheable);
        if let Some(scope) = changed.get_mut("cacheScope").filter(|_| is_cacheable) {
            *scope = Value::from("private");
        }
        serde_json::to_vec(&changed).unwrap_or(result)
    }
}

/// Whether a server's results of this method can be changed by hooks: those of its features, but not of its sessions.
fn has_changeable_results(method: &str) -> bool {
    let method = ProtocolMethod::parse(method);
    ListMethod::of(&method).is_some()
        || matches!(
            method,
            ProtocolMethod::ToolsCall
                | ProtocolMethod::ResourcesRead
                | ProtocolMethod::PromptsGet
                | ProtocolMethod::CompletionComplete
        )
        || Revision::ALL
            .iter()
            .any(|revision| method.is_custom_in(*revision))
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Extensions").field(&self.declared).finish()
    }
}

impl Server {
    /// Registers the methods and features of an extension.
    pub(super) fn add_extension(&self, extension: Extension) -> Result<(), Error> {
        let identifier = extension.identifier;
        for Method {
            name,
            options,
            handler,
        } in extension.requests
        {
            self.add_request_handler(&name, options.with_extension(&identifier), handler)?;
        }
        for Method {
            name,
            options,
            handler,
        } in extension.notifications
        {
            self.add_notification_handler(&name, options.with_extension(&identifier), handler)?;
        }
        extension
            .registrations
            .iter()
            .try_for_each(|register| register(self))
    }
}
