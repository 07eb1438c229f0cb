//! Servers: what they offer, and how they answer.
//!
//! Start at [`Server`]. A transport passes a message to a `connection`, whose session machine admits it; `dispatch`
//! finds the feature, a `call` is passed to its `handler`, and `finish_call` writes the response. Meanwhile the handler
//! reports through its `context` and sends input requests through `asking`; a cancellation comes through `connection`.
//! The folder `race_models` has tests of races, no data.

#[cfg(feature = "openapi")]
mod api_function;
#[cfg(feature = "macros")]
mod args;
mod argument_map;
mod builder;
mod call;
mod call_kind;
mod call_timeout;
mod client_notifications;
mod completion_candidates;
pub(crate) mod connection;
mod context;
mod custom_methods;
pub(crate) mod debug_mode;
mod definitions;
mod dispatch;
mod extension;
mod feature_entries;
mod feature_options;
mod feature_selection;
mod feature_source;
mod feature_updates;
mod finish_call;
mod handler;
mod handler_function;
mod inner;
mod input_request_span;
mod input_requests;
mod input_response_check;
mod item_list;
mod list_pages;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(not(feature = "metrics"))]
#[path = "no_metrics.rs"]
mod metrics;
mod middleware;
mod misspelled_arguments;
mod mounts;
mod offloaded_validation;
mod open_session;
mod pending_records;
mod permission;
#[cfg(all(test, mcpline_models))]
pub(crate) mod race_models;
mod registry;
mod reply;
mod request_info;
mod request_log;
mod request_span;
mod response_writes;
#[cfg(feature = "routes")]
mod routes;
mod sent_notifications;
mod settings;
mod sharing_call;
mod startup_message;
mod state;
mod state_keys;
mod stats;
mod suspended_call;
mod template_lists;
#[cfg(test)]
pub(crate) mod test_sink;
#[cfg(test)]
mod tests;
mod tool_approval;
mod tool_error;
mod tool_transform;
pub(crate) mod traffic;
mod typed_handlers;
mod typed_input_requests;
mod uri_matching;
mod url_elicitation_required;

use std::collections::hash_map::Entry;
use std::future::Future;

use mcpline_protocol::session::Change;
use mcpline_protocol::vocabulary::{Prompt, Resource, ResourceTemplate, Tool};
#[cfg(feature = "schemars")]
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Error;
use crate::sync::Arc;

pub use crate::caller::Caller;
pub use crate::traffic::TRAFFIC_FILE_VARIABLE;
#[cfg(feature = "openapi")]
pub(crate) use api_function::{ApiFunction, ApiRequest, call_api_function};
#[cfg(feature = "macros")]
#[cfg_attr(docsrs, doc(cfg(feature = "macros")))]
pub use args::Args;
pub use builder::ServerBuilder;
pub use call::Call;
pub use call_kind::CallKind;
pub use client_notifications::ClientNotification;
pub use context::Context;
pub use custom_methods::MethodOptions;
pub use definitions::{
    Definitions, Features, PromptDefinition, ResourceDefinition, ToolDefinition,
};
pub use extension::Extension;
pub use feature_options::{PromptOptions, ResourceOptions, ToolOptions};
pub use feature_selection::FeatureSelection;
pub use handler::Handler;
#[cfg(feature = "openapi")]
pub(crate) use handler::handler;
pub use handler_function::{Blocking, BlockingCall, HandlerFunction, NoArguments};
pub use input_requests::{CustomMethod, InputRequest, InputRequestMethod};
pub use middleware::MiddlewareScope;
pub use mounts::MountOptions;
pub use registry::Completer;
pub use reply::{
    CompletionReply, HandlerError, InputRequired, KeyedInputRequest, PromptReply, Reply,
    ResourceReply, ToolReply,
};
#[cfg(feature = "http")]
#[cfg_attr(docsrs, doc(cfg(feature = "http")))]
pub use request_info::{HttpInfo, Principal};
#[cfg(feature = "http")]
pub(crate) use request_info::{HttpNetwork, UnknownHttpVersion};
pub use request_log::{RequestOutcome, RequestRecord};
#[cfg(feature = "routes")]
#[cfg_attr(docsrs, doc(cfg(feature = "routes")))]
pub use routes::{PathVariables, Route, route_handler};
#[cfg(feature = "routes")]
pub(crate) use routes::{RouteCall, RouteEntry, RouteMatch, RouteMismatch, RouteOutcome};
pub use settings::{DEBUG_VARIABLE, STATE_SECRETS_VARIABLE, Settings};
pub(crate) use sharing_call::{RunningSharingCall, start_sharing_function};
pub use state_keys::state_keys;
pub use stats::{BudgetStats, ServerStats};
pub use tool_error::ToolError;
pub use tool_transform::{ArgumentTransform, ToolTransform};
pub use traffic::{Direction, TrafficRecord, TransportKind};
#[cfg(feature = "schemars")]
#[cfg_attr(docsrs, doc(cfg(feature = "schemars")))]
pub use typed_handlers::Json;
pub use typed_handlers::{
    IntoPromptReply, IntoResourceList, IntoResourceReply, IntoToolReply, prompt_handler,
    resource_handler, resource_list_handler, tool_handler,
};

use custom_methods::MethodEntry;
pub(crate) use custom_methods::check_notification;
use feature_entries::{FeatureEntry, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry};
pub(crate) use inner::Inner;
use registry::{MethodItem, Methods, Registry};

/// A server and everything that it offers. Cheap to clone; clones are the same server.
///
/// ```
/// use mcpline::{Context, Server};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Forecast {
///     /// Where.
///     city: String,
/// }
///
/// let server = Server::new("weather", "1.0.0").tool(
///     "forecast",
///     "Forecast for a city",
///     |args: Forecast, _ctx: Context| async move { format!("{}: sunny", args.city) },
/// );
/// assert_eq!(server.name(), "weather");
/// ```
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

impl Server {
    /// Creates a server with default settings.
    ///
    /// # Panics
    ///
    /// If the secrets for `requestState` or [`DEBUG_VARIABLE`] in the environment are invalid; [`ServerBuilder::build`]
    /// returns the error instead.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        match Self::builder(name, version).build() {
            Ok(server) => server,
            Err(error) => panic!("{error}"),
        }
    }

    /// Starts building a server with settings and a complete description.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(name.into(), version.into())
    }

    /// Returns the name of the server.
    pub fn name(&self) -> &str {
        &self.inner.info.name
    }

    /// Returns the settings of the server.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Whether the server is in debug mode, because of its [setting](Settings::debug) or [`DEBUG_VARIABLE`].
    pub fn is_debugged(&self) -> bool {
        self.inner.is_debugged
    }

    /// Adds a tool with a typed function or closure ([`HandlerFunction`]). The input and output schemas are derived from
    /// the types. A [`ToolDefinition`] also takes a title, annotations, scopes and other options.
    ///
    /// # Panics
    ///
    /// If the name is taken or a derived schema is invalid. [`Server::add`] returns the error instead.
    #[cfg(feature = "schemars")]
    #[cfg_attr(docsrs, doc(cfg(feature = "schemars")))]
    #[must_use]
    pub fn tool<M, F>(self, name: &str, description: &str, run: F) -> Self
    where
        F: HandlerFunction<M, Arguments: JsonSchema, Output: IntoToolReply>,
    {
        self.with(ToolDefinition::new(name, run).description(description))
    }

    /// Adds a tool with a definition and a typed closure. Connected clients are notified.
    ///
    /// # Errors
    ///
    /// As for [`Server::add_tool`].
    pub fn add_tool_fn<M, F>(&self, tool: Tool, options: ToolOptions, run: F) -> Result<(), Error>
    where
        F: HandlerFunction<M, Output: IntoToolReply>,
    {
        self.add_tool(tool, options, typed_handlers::tool_handler(run))
    }

    /// Adds a tool. Connected clients are notified.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the name is taken; a schema is invalid, refers to another
    /// document, has an unknown dialect or exceeds the limits; an `x-mcp-header` is invalid; the tool requires
    /// execution as a task; or `_meta` has a malformed or reserved key.
    pub fn add_tool(
        &self,
        tool: Tool,
        options: ToolOptions,
        handler: Arc<dyn Handler>,
    ) -> Result<(), Error> {
        let rate = self.inner.settings.tool_rate;
        let entry = ToolEntry::new(tool, options, handler, rate)?;
        self.add_feature(entry, |name| {
            format!("there is a tool named {name} already")
        })
    }

    /// Removes a tool and notifies connected clients. Returns `false` if there was none. Calls in flight continue.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.take_out(Change::Tools, |registry| registry.tools.remove(name))
    }

    /// Adds a resource with a function or closure ([`HandlerFunction`]) that takes no arguments.
    ///
    /// # Panics
    ///
    /// If the URI is taken or invalid. [`Server::add_resource`] returns the error instead.
    #[must_use]
    pub fn resource<M, F>(self, resource: Resource, run: F) -> Self
    where
        F: HandlerFunction<M, Arguments = NoArguments, Output: IntoResourceReply>,
    {
        let handler = typed_handlers::resource_handler(resource.mime_type.clone(), run);
        match self.add_resource(resource, handler) {
            Ok(()) => self,
            Err(error) => panic!("{error}"),
        }
    }

    /// Adds a resource. Connected clients are notified.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the URI is taken or invalid (RFC 3986), an annotation has an
    /// invalid value, or `_meta` has a malformed or reserved key.
    pub fn add_resource(&self, resource: Resource, handler: Arc<dyn Handler>) -> Result<(), Error> {
        self.add_resource_with(resource, ResourceOptions::default(), handler)
    }

    /// Adds a resource with options. Connected clients are notified.
    ///
    /// # Errors
    ///
    /// As for [`Server::add_resource`].
    pub fn add_resource_with(
        &self,
        resource: Resource,
        options: ResourceOptions,
        handler: Arc<dyn Handler>,
    ) -> Result<(), Error> {
        let entry = ResourceEntry::new(resource, options, handler)?;
        self.add_feature(entry, |uri| format!("there is a resource at {uri} already"))
    }

    /// Removes a resource and notifies connected clients. Returns `false` if there was none. Calls in flight continue.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.take_out(Change::Resources, |registry| registry.resources.remove(uri))
    }

    /// Adds a resource template with a function or closure ([`HandlerFunction`]) over its variables.
    ///
    /// # Panics
    ///
    /// If the template is taken or invalid. [`Server::add_resource_template`] returns the error instead.
    #[must_use]
    pub fn resource_template<M, F>(self, template: ResourceTemplate, run: F) -> Self
    where
        F: HandlerFunction<M, Output: IntoResourceReply>,
    {
        let handler = typed_handlers::resource_handler(template.mime_type.clone(), run);
        match self.add_resource_template(template, handler) {
            Ok(()) => self,
            Err(error) => panic!("{error}"),
        }
    }

    /// Adds a resource template (RFC 6570). Connected clients are notified.
    ///
    /// The handler receives percent-decoded variables. For templates of `file:` URIs, paths with `..` segments, and
    /// absolute paths below a directory, are rejected before the handler is called. For other URIs the handler must
    /// check the variables.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the template is taken, is not a URI template, or yields URIs
    /// without a valid scheme; or as for [`Server::add_resource`].
    pub fn add_resource_template(
        &self,
        template: ResourceTemplate,
        handler: Arc<dyn Handler>,
    ) -> Result<(), Error> {
        self.add_resource_template_with(template, ResourceOptions::default(), handler)
    }

    /// Adds a resource template (RFC 6570) with options. Connected clients are notified.
    ///
    /// # Errors
    ///
    /// As for [`Server::add_resource_template`].
    pub fn add_resource_template_with(
        &self,
        template: ResourceTemplate,
        options: ResourceOptions,
        handler: Arc<dyn Handler>,
    ) -> Result<(), Error> {
        self.add_template(template, options, handler, None)
    }

    fn add_template(
        &self,
        template: ResourceTemplate,
        options: ResourceOptions,
        handler: Arc<dyn Handler>,
        list: Option<Arc<dyn Handler>>,
    ) -> Result<(), Error> {
        let mut entry = TemplateEntry::new(template, options, handler)?;
        entry.list = list;
        self.add_feature(entry, |text| format!("there is a template {text} already"))
    }

    /// Removes a resource template and notifies connected clients. Returns `false` if there was none. Calls in flight
    /// continue.
    pub fn remove_resource_template(&self, template: &str) -> bool {
        self.take_out(Change::Resources, |registry| {
            registry.templates.remove(template)
        })
    }

    /// Adds a prompt with a typed function or closure ([`HandlerFunction`]).
    ///
    /// # Panics
    ///
    /// If the name is taken. [`Server::add_prompt`] returns the error instead.
    #[must_use]
    pub fn prompt<M, F>(self, prompt: Prompt, run: F) -> Self
    where
        F: HandlerFunction<M, Output: IntoPromptReply>,
    {
        match self.add_prompt(prompt, typed_handlers::prompt_handler(run)) {
            Ok(()) => self,
            Err(error) => panic!("{error}"),
        }
    }

    /// Adds a prompt. Connected clients are notified.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the name is taken, or `_meta` has a malformed or reserved key.
    pub fn add_prompt(&self, prompt: Prompt, handler: Arc<dyn Handler>) -> Result<(), Error> {
        self.add_prompt_with(prompt, PromptOptions::default(), handler)
    }

    /// Adds a prompt with options. Connected clients are notified.
    ///
    /// # Errors
    ///
    /// As for [`Server::add_prompt`].
    pub fn add_prompt_with(
        &self,
        prompt: Prompt,
        options: PromptOptions,
        handler: Arc<dyn Handler>,
    ) -> Result<(), Error> {
        let entry = PromptEntry::new(prompt, options, handler)?;
        self.add_feature(entry, |name| {
            format!("there is a prompt named {name} already")
        })
    }

    /// Removes a prompt and notifies connected clients. Returns `false` if there was none. Calls in flight continue.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.take_out(Change::Prompts, |registry| registry.prompts.remove(name))
    }

    /// Completes an argument of a prompt, or a variable of a resource template (`server/utilities/completion`).
    ///
    /// `reference` is the name of the prompt or the URI template. Replaces an earlier completer of the same argument.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the server has no such prompt or template, or it has no such argument
    /// or variable. Register it first.
    pub fn add_completer(
        &self,
        reference: &str,
        argument: &str,
        completer: Completer,
    ) -> Result<(), Error> {
        self.inner
            .registry()
            .check_completion(reference, argument)?;
        let key = (reference.to_owned(), argument.to_owned());
        let mut replaced = None;
        self.inner.change_registry(|registry| {
            replaced = registry.completers.insert(key, Arc::new(completer));
            true
        });
        self.inner.refresh_profile();
        self.inner.update_parents();
        Ok(())
    }

    /// Sets a closure that completes all arguments without a completer of their own.
    ///
    /// The closure receives an object with `ref`, `argument` and `context`, and returns the values, best match first.
    #[must_use]
    pub fn completion<F, Fut>(self, run: F) -> Self
    where
        F: Fn(Value, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.set_completion(typed_handlers::completion_handler(run));
        self
    }

    /// Sets the handler for completions of all arguments that have no completer of their own.
    pub fn set_completion(&self, handler: Arc<dyn Handler>) {
        let mut replaced = None;
        self.inner.change_registry(|registry| {
            replaced = registry.completion.replace(handler);
            true
        });
        self.inner.refresh_profile();
        self.inner.update_parents();
    }

    /// Sets a closure that runs for each session after its handshake (handshake revisions, `basic/lifecycle`).
    ///
    /// Its context can send input requests (`roots/list`, `sampling/createMessage`, `elicitation/create`) outside a
    /// call while the closure runs; it is cancelled when the session ends. Over HTTP this requires an open GET stream
    /// of the client.
    #[must_use]
    pub fn on_initialized<F, Fut>(self, run: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.set_event_handler(
            ClientNotification::Initialized,
            typed_handlers::event_handler(run),
        );
        self
    }

    /// Sets a closure that runs when a client that declared roots reports a change (handshake revisions,
    /// `client/roots`).
    ///
    /// Get the new list with the context, which is like that of [`Server::on_initialized`]. Changes that a session
    /// reports while the closure runs cause one more run afterwards.
    #[must_use]
    pub fn on_roots_changed<F, Fut>(self, run: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.set_event_handler(
            ClientNotification::RootsListChanged,
            typed_handlers::event_handler(run),
        );
        self
    }

    /// Sets the handler for an event of sessions. Replaces an earlier one.
    pub fn set_event_handler(&self, event: ClientNotification, handler: Arc<dyn Handler>) {
        let mut replaced = None;
        self.inner.change_registry(|registry| {
            replaced = registry.events[event as usize].replace(handler);
            true
        });
    }

    /// Handles requests of a custom method with a typed closure, on every revision and transport.
    ///
    /// The schema of the parameters is derived from their type. The result must serialize to a JSON object.
    ///
    /// # Panics
    ///
    /// If the method has a handler or cannot have one, or the derived schema is invalid.
    /// [`Server::add_request_handler`] returns the error instead.
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
        let added = self.add_request_handler(method, options, typed_handlers::request_handler(run));
        match added {
            Ok(()) => self,
            Err(error) => panic!("{error}"),
        }
    }

    /// Handles requests of a custom method: one that no protocol revision defines.
    ///
    /// The requests of tasks (`tasks/get` and so on) are custom methods on revisions that do not define them; on 2025-11-25,
    /// which does, their handlers are not called.
    ///
    /// The handler ends its call with [`Reply::Result`]. Like the handler of a tool it can report progress, log and
    /// send input requests.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the method has a handler, is defined by the protocol, begins with
    /// `notifications/` or `rpc.`, or is not 1 to 1024 bytes of visible ASCII; the schema of its parameters or a scope
    /// is invalid.
    pub fn add_request_handler(
        &self,
        method: &str,
        options: MethodOptions,
        handler: Arc<dyn Handler>,
    ) -> Result<(), Error> {
        let entry = MethodEntry::request(method, options, handler)?;
        self.add_method(entry, |registry| &mut registry.requests)
    }

    /// Handles requests of a custom method with options and a typed closure.
    ///
    /// Parameters are validated by the schema in the options only, then decoded.
    ///
    /// # Errors
    ///
    /// As for [`Server::add_request_handler`].
    pub fn add_request_fn<P, F, Fut, R, E>(
        &self,
        method: &str,
        options: MethodOptions,
        run: F,
    ) -> Result<(), Error>
    where
        P: DeserializeOwned,
        F: Fn(P, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        R: Serialize,
        E: Into<ToolError>,
    {
        self.add_request_handler(method, options, typed_handlers::request_handler(run))
    }

    /// Removes the handler of a custom request. Returns `false` if there was none. Calls in flight continue.
    pub fn remove_request_handler(&self, method: &str) -> bool {
        self.remove_method(|registry| &mut registry.requests, method)
    }

    /// Handles notifications of a custom method with a typed closure, on every revision and transport.
    ///
    /// The schema of the parameters is derived from their type.
    ///
    /// # Panics
    ///
    /// If the method has a handler or cannot have one, or the derived schema is invalid.
    /// [`Server::add_notification_handler`] returns the error instead.
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
        let added = self.add_notification_handler(
            method,
            options,
            typed_handlers::notification_handler(run),
        );
        match added {
            Ok(()) => self,
            Err(error) => panic!("{error}"),
        }
    }

    /// Handles notifications of a custom method: one that no protocol revision defines.
    ///
    /// A notification has no response, so the result of the handler is ignored; errors are logged. Handlers start in
    /// the order in which notifications arrive, except after parameters that take long to validate, and run
    /// concurrently.
    ///
    /// Notifications count as calls in flight. One is dropped if the client has too many, its parameters do not match
    /// the schema, or the client lacks a scope; over HTTP it has been accepted with status 202. Drops are logged as
    /// warnings, at a limited rate.
    ///
    /// On handshake revisions the context can send input requests and log messages, like that of
    /// [`Server::on_initialized`], and the end of the session cancels the handler. On 2026-07-28 it can do neither.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the method has a handler, is defined by the protocol, begins with
    /// `rpc.`, or is not 1 to 1024 bytes of visible ASCII; the schema of its parameters or a scope is invalid.
    pub fn add_notification_handler(
        &self,
        method: &str,
        options: MethodOptions,
        handler: Arc<dyn Handler>,
    ) -> Result<(), Error> {
        let entry = MethodEntry::notification(method, options, handler)?;
        self.add_method(entry, |registry| &mut registry.notifications)
    }

    /// Handles notifications of a custom method with options and a typed closure.
    ///
    /// Parameters are validated by the schema in the options only, then decoded.
    ///
    /// # Errors
    ///
    /// As for [`Server::add_notification_handler`].
    pub fn add_notification_fn<P, F, Fut>(
        &self,
        method: &str,
        options: MethodOptions,
        run: F,
    ) -> Result<(), Error>
    where
        P: DeserializeOwned,
        F: Fn(P, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.add_notification_handler(method, options, typed_handlers::notification_handler(run))
    }

    /// Removes the handler of a custom notification. Returns `false` if there was none. Calls in flight continue.
    pub fn remove_notification_handler(&self, method: &str) -> bool {
        self.remove_method(|registry| &mut registry.notifications, method)
    }

    /// Adds a feature. If its name is taken, `taken` says so.
    fn add_feature<T: FeatureEntry>(
        &self,
        entry: T,
        taken: impl FnOnce(&str) -> String,
    ) -> Result<(), Error> {
        let name = entry.key().to_owned();
        // Dropped once the registry is unlocked, if it is refused.
        let mut entry = Some(entry);
        self.inner
            .register(T::CHANGE, |registry| registry.add(&mut entry))
            .ok_or_else(|| Error::usage(taken(&name)))
    }

    /// Removes an item. It is dropped once the registry is unlocked, because what a handler holds may use the server.
    fn take_out<T>(&self, change: Change, remove: impl FnOnce(&mut Registry) -> Option<T>) -> bool {
        let mut removed = None;
        let outcome = self.inner.register(change, |registry| {
            removed = remove(registry);
            removed.is_some()
        });
        if outcome.is_some() {
            self.inner.publish_missing();
        }
        outcome.is_some()
    }

    fn remove_method(
        &self,
        methods: impl FnOnce(&mut Registry) -> &mut Methods,
        method: &str,
    ) -> bool {
        let mut removed = None;
        self.inner.register_method(|registry| {
            let methods = methods(registry);
            if methods.get(method).is_some_and(|item| item.mount.is_none()) {
                removed = methods.remove(method);
            }
            removed.is_some()
        })
    }

    fn add_method(
        &self,
        entry: MethodEntry,
        methods: impl FnOnce(&mut Registry) -> &mut Methods,
    ) -> Result<(), Error> {
        let name = entry.method.clone();
        self.inner.check_extension_of(&entry)?;
        // Dropped once the registry is unlocked, if it is refused.
        let entry = Arc::new(entry);
        let is_added =
            self.inner
                .register_method(|registry| match methods(registry).entry(name.clone()) {
                    Entry::Occupied(_) => false,
                    Entry::Vacant(vacant) => {
                        vacant.insert(MethodItem {
                            entry: entry.clone(),
                            mount: None,
                            sources: Default::default(),
                        });
                        true
                    }
                });
        match is_added {
            true => Ok(()),
            false => Err(Error::usage(format!(
                "method {name:?} has a handler already"
            ))),
        }
    }

    /// Enables the features that the selection selects. Returns how many were disabled before.
    ///
    /// The rule also holds for features that are registered later; where several rules select a feature, the last one
    /// decides. Connected clients are notified of the lists that change. To show features to some callers only, use
    /// scopes ([`ToolOptions::scopes`]).
    pub fn enable(&self, selection: FeatureSelection) -> usize {
        self.inner.add_rule(selection, true)
    }

    /// Disables the features that the selection selects: they are missing from lists, and clients that use them get the
    /// same errors as for features that do not exist. Returns how many were enabled before. Calls in flight continue.
    ///
    /// The rule also holds for features that are registered later: see [`Server::enable`].
    pub fn disable(&self, selection: FeatureSelection) -> usize {
        self.inner.add_rule(selection, false)
    }

    /// Notifies the subscribers of a resource that it changed.
    pub fn notify_resource_updated(&self, uri: &str) {
        self.inner
            .notify_all_processes(&Change::Resource(uri.to_owned()));
    }

    /// Notifies clients that the list of resources changed (`notifications/resources/list_changed`): for
    /// [lists of templates](Self::set_resource_template_list). When resources are registered or removed, the server does so by
    /// itself.
    pub fn notify_resource_list_changed(&self) {
        self.notify_changed(&Change::Resources);
    }

    /// Notifies the client that a URL elicitation is complete (2025-11-25, `client/elicitation`, completion
    /// notifications).
    ///
    /// Does nothing on other revisions, and the second time. Any thread, also after the call has ended.
    pub fn notify_elicitation_complete(&self, elicitation_id: &str) {
        self.inner
            .notify_elicitation_complete_everywhere(elicitation_id);
    }

    /// Notifies clients of a change that the server cannot detect, such as new resources behind a template.
    ///
    /// Adding and removing features notifies clients automatically.
    pub fn notify_changed(&self, change: &Change) {
        self.inner.notify_all_processes(change);
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.inner.info.name)
            .field("version", &self.inner.info.version)
            .finish_non_exhaustive()
    }
}

/// Returns the schema of objects for the schema of a type: arguments are objects, also for types that take none (`()`) and
/// for optional ones. Schemas that no object matches are left to the registration to refuse.
#[cfg(feature = "schemars")]
fn object_schema(mut schema: Value) -> Value {
    if let Some(members) = schema.as_object_mut() {
        let object = Value::from("object");
        match members.get("type") {
            Some(Value::String(kind)) if kind == "null" => {
                members.clear();
                members.insert("type".into(), object);
            }
            Some(Value::Array(kinds)) if kinds.contains(&object) => {
                members.insert("type".into(), object);
                // No arguments mean `None`.
                members.shift_remove("required");
            }
            _ => {}
        }
    }
    schema
}
