//! Registration of a server's features from foreign code: one function for all kinds, with the definition as JSON.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcpline_protocol::session::Rate;
use mcpline_protocol::vocabulary::{JsonObject, Prompt, Resource, ResourceTemplate, Tool};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Error;
use crate::server::{
    CallKind, ClientNotification, Completer, FeatureSelection, Handler, MethodOptions,
    MiddlewareScope, MountOptions, PromptOptions, ResourceOptions, Server, ToolOptions,
    ToolTransform,
};

#[cfg(feature = "routes")]
use super::options::RouteDefinition;
use super::options::{
    CompletionDefinition, FeatureOptions, MethodDefinition, MiddlewareDefinition,
    ResourceListDefinition, cache_hints, read, seconds,
};

/// The kind and the name of a feature, by which it is removed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FeatureKey {
    kind: CallKind,
    name: String,
}

impl FeatureKey {
    /// Creates a key.
    ///
    /// The name is that of the tool or prompt, the URI of the resource or its template, or the custom method.
    pub fn new(kind: CallKind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
        }
    }

    /// Removes the feature from the server. Returns whether it was registered.
    ///
    /// Completions, lists of templates and the handlers of events can be replaced, but not removed. Middleware and routes stay.
    pub fn remove(&self, server: &Server) -> bool {
        let name = &self.name;
        match self.kind {
            CallKind::Tool => server.remove_tool(name),
            CallKind::Resource => {
                server.remove_resource(name) || server.remove_resource_template(name)
            }
            CallKind::Prompt => server.remove_prompt(name),
            CallKind::Request => server.remove_request_handler(name),
            CallKind::Notification => server.remove_notification_handler(name),
            CallKind::Completion
            | CallKind::ResourceList
            | CallKind::Event
            | CallKind::Middleware
            | CallKind::Sharing => false,
            #[cfg(feature = "openapi")]
            CallKind::HttpClient | CallKind::Credential => false,
            #[cfg(feature = "routes")]
            CallKind::Route => false,
        }
    }

    /// Changes the definition of a tool, resource, template or prompt. `changes` are JSON: the members of the definition that
    /// change, and `null` for those that are removed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): they are not a JSON object, the feature is of another kind, or as
    /// for [`Server::update_tool`].
    pub fn update(&self, server: &Server, changes: &[u8]) -> Result<(), Error> {
        let changes: JsonObject = read("the changes", changes)?;
        let name = &self.name;
        match self.kind {
            CallKind::Tool => server.try_update_tool(name, patch(&changes)),
            CallKind::Prompt => server.try_update_prompt(name, patch(&changes)),
            CallKind::Resource if server.has_resource_template(name) => {
                server.try_update_resource_template(name, patch(&changes))
            }
            CallKind::Resource => server.try_update_resource(name, patch(&changes)),
            _ => Err(Error::usage(format!(
                "a {} has no definition that could change",
                self.kind.name()
            ))),
        }
    }
}

/// Changes a definition by a patch.
fn patch<T: Serialize + DeserializeOwned>(
    patch: &JsonObject,
) -> impl FnOnce(&mut T) -> Result<(), Error> {
    move |definition| {
        *definition = merged(definition, patch)?;
        Ok(())
    }
}

fn merged<T: Serialize + DeserializeOwned>(definition: &T, patch: &JsonObject) -> Result<T, Error> {
    let unreadable = |error: serde_json::Error| {
        Error::usage(format!("the changed definition is not valid: {error}"))
    };
    let mut members = serde_json::to_value(definition).map_err(unreadable)?;
    for (name, value) in patch {
        match members.as_object_mut() {
            Some(members) if value.is_null() => drop(members.shift_remove(name)),
            Some(members) => drop(members.insert(name.clone(), value.clone())),
            None => {}
        }
    }
    serde_json::from_value(members).map_err(unreadable)
}

/// Reads a selection of features: kinds ([`CallKind::name`]), names and tags. An absent criterion selects all features, an
/// empty one none.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a kind is unknown, or is not one of features.
pub fn feature_selection(
    kinds: Option<Vec<String>>,
    names: Option<Vec<String>>,
    tags: Option<Vec<String>>,
) -> Result<FeatureSelection, Error> {
    let kind = |name: &String| match call_kind(name)? {
        kind @ (CallKind::Tool | CallKind::Resource | CallKind::Prompt) => Ok(kind),
        kind => Err(Error::usage(format!(
            "a {} cannot be selected: tools, resources and prompts can",
            kind.name()
        ))),
    };
    let mut selection = FeatureSelection::all();
    if let Some(kinds) = kinds {
        let kinds: Vec<_> = kinds.iter().map(kind).collect::<Result<_, Error>>()?;
        selection = selection.with_kinds(kinds);
    }
    if let Some(names) = names {
        selection = selection.with_names(names);
    }
    if let Some(tags) = tags {
        selection = selection.with_tags(tags);
    }
    Ok(selection)
}

/// Reads how a server is mounted. `tools` is JSON: an object of [transforms](ToolTransform) by the names of tools.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the transforms are invalid.
pub fn mount_options(
    prefix: Option<String>,
    snapshot: bool,
    tools: Option<&[u8]>,
) -> Result<MountOptions, Error> {
    let mut options = MountOptions::default().with_snapshot(snapshot);
    options.prefix = prefix;
    if let Some(tools) = tools {
        options.tools = read("`tools`", tools)?;
    }
    Ok(options)
}

/// Changes a tool by a [transform](ToolTransform), which is JSON. Returns its new name, if it gets one.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the transform is invalid, or as for [`Server::transform_tool`].
pub fn transform_tool(
    server: &Server,
    name: &str,
    transform: &[u8],
) -> Result<Option<String>, Error> {
    let transform: ToolTransform = read("the change", transform)?;
    server.transform_tool(name, &transform)?;
    Ok(transform.name)
}

/// A feature to be added to a server.
#[derive(Debug)]
pub struct Feature {
    definition: Definition,
    options: FeatureOptions,
}

#[derive(Debug)]
enum Definition {
    Tool(Tool),
    Resource(Resource),
    Template(ResourceTemplate),
    Prompt(Prompt),
    /// `None` for all arguments that have no completion of their own.
    Completion(Option<CompletionDefinition>),
    ResourceList(ResourceListDefinition),
    Request(MethodDefinition),
    Notification(MethodDefinition),
    Event(ClientNotification),
    /// With a number, because it has no name.
    Middleware(MiddlewareDefinition, u64),
    #[cfg(feature = "routes")]
    Route(RouteDefinition),
}

impl Feature {
    /// Reads a feature. `definition` is JSON:
    ///
    /// - a `Tool`, `Prompt`, `Resource` or `ResourceTemplate` of the specification;
    /// - for a completion, a [`CompletionDefinition`], or `null` for all arguments that have no completion of their own;
    /// - for the list of a resource template, a [`ResourceListDefinition`];
    /// - for a custom method, a [`MethodDefinition`];
    /// - for an event, a [`MethodDefinition`] with the method that reports it;
    /// - for a middleware, a [`MiddlewareDefinition`];
    /// - for a route, a [`RouteDefinition`](super::options::RouteDefinition).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the definition has another form, or `options` name an extension
    /// for a feature that cannot have one: clients see tools, resources and prompts whatever extensions they declare.
    pub fn read(kind: CallKind, definition: &[u8], options: FeatureOptions) -> Result<Self, Error> {
        let is_custom = matches!(kind, CallKind::Request | CallKind::Notification);
        if options.extension.is_some() && !is_custom {
            return Err(Error::usage(
                "the options have an extension: only custom methods belong to one",
            ));
        }
        let has_scopes = !matches!(
            kind,
            CallKind::Completion | CallKind::ResourceList | CallKind::Event | CallKind::Middleware
        );
        if !has_scopes && !options.scopes.is_empty() {
            // Otherwise a protection that the author asked for would be missing.
            return Err(Error::usage(
                "completions, lists of templates, events and middleware cannot require scopes",
            ));
        }
        let has_tags = matches!(kind, CallKind::Tool | CallKind::Resource | CallKind::Prompt);
        if !has_tags && !options.tags.is_empty() {
            return Err(Error::usage(format!("a {} cannot have tags", kind.name())));
        }
        let definition = match kind {
            CallKind::Tool => Definition::Tool(read("the tool", definition)?),
            CallKind::Resource => {
                let members: Value = read("the resource", definition)?;
                match members.get("uriTemplate") {
                    Some(_) => Definition::Template(read("the template", definition)?),
                    None => Definition::Resource(read("the resource", definition)?),
                }
            }
            CallKind::Prompt => Definition::Prompt(read("the prompt", definition)?),
            CallKind::Completion => Definition::Completion(read("the completion", definition)?),
            CallKind::ResourceList => Definition::ResourceList(read("the list", definition)?),
            CallKind::Request => Definition::Request(read("the method", definition)?),
            CallKind::Notification => Definition::Notification(read("the method", definition)?),
            CallKind::Event => Definition::Event(event(&read("the event", definition)?)?),
            CallKind::Middleware => {
                static NUMBER: AtomicU64 = AtomicU64::new(0);
                let number = NUMBER.fetch_add(1, Ordering::Relaxed);
                Definition::Middleware(read("the middleware", definition)?, number)
            }
            CallKind::Sharing => {
                return Err(Error::usage(
                    "shared state is set when a server is created: it cannot be added later",
                ));
            }
            #[cfg(feature = "openapi")]
            CallKind::HttpClient | CallKind::Credential => {
                return Err(Error::usage(format!(
                    "a {} belongs to an imported API: it cannot be added to a server",
                    kind.name()
                )));
            }
            #[cfg(feature = "routes")]
            CallKind::Route => Definition::Route(read("the route", definition)?),
        };
        Ok(Self {
            definition,
            options,
        })
    }

    /// Returns the key by which the feature is removed.
    ///
    /// A completion or an event has one as well, which is equal to that of the feature that it replaces.
    pub fn key(&self) -> FeatureKey {
        match &self.definition {
            Definition::Tool(tool) => FeatureKey::new(CallKind::Tool, &tool.name),
            Definition::Resource(resource) => FeatureKey::new(CallKind::Resource, &resource.uri),
            Definition::Template(template) => {
                FeatureKey::new(CallKind::Resource, &template.uri_template)
            }
            Definition::Prompt(prompt) => FeatureKey::new(CallKind::Prompt, &prompt.name),
            Definition::Completion(of) => {
                let name = of.as_ref().map(CompletionDefinition::key);
                FeatureKey::new(CallKind::Completion, name.unwrap_or_default())
            }
            Definition::ResourceList(of) => {
                FeatureKey::new(CallKind::ResourceList, &of.uri_template)
            }
            Definition::Request(method) => FeatureKey::new(CallKind::Request, &method.method),
            Definition::Notification(method) => {
                FeatureKey::new(CallKind::Notification, &method.method)
            }
            Definition::Event(event) => FeatureKey::new(CallKind::Event, event.method().as_str()),
            Definition::Middleware(_, number) => {
                FeatureKey::new(CallKind::Middleware, number.to_string())
            }
            #[cfg(feature = "routes")]
            Definition::Route(route) => {
                let methods = route.methods.as_ref().map(|methods| methods.join(","));
                let methods = methods.unwrap_or_default();
                FeatureKey::new(CallKind::Route, format!("{methods} {}", route.path))
            }
        }
    }

    /// Returns the MIME type in the definition of a resource or template.
    pub fn mime_type(&self) -> Option<&str> {
        match &self.definition {
            Definition::Resource(resource) => resource.mime_type.as_deref(),
            Definition::Template(template) => template.mime_type.as_deref(),
            _ => None,
        }
    }

    /// Adds the feature to the server.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the name is taken, or the definition or the options are invalid.
    pub fn add(self, server: &Server, handler: Arc<dyn Handler>) -> Result<(), Error> {
        let options = self.options;
        match self.definition {
            Definition::Tool(tool) => server.add_tool(tool, options.tool()?, handler),
            Definition::Resource(resource) => {
                server.add_resource_with(resource, options.resource(), handler)
            }
            Definition::Template(template) => {
                server.add_resource_template_with(template, options.resource(), handler)
            }
            Definition::Prompt(prompt) => server.add_prompt_with(prompt, options.prompt(), handler),
            Definition::Completion(None) => {
                server.set_completion(handler);
                Ok(())
            }
            Definition::Completion(Some(of)) => {
                server.add_completer(&of.reference, &of.argument, Completer::Handler(handler))
            }
            Definition::ResourceList(of) => {
                server.set_resource_template_list(&of.uri_template, handler)
            }
            Definition::Request(of) => {
                server.add_request_handler(&of.method, options.method(of.params_schema), handler)
            }
            Definition::Notification(of) => server.add_notification_handler(
                &of.method,
                options.method(of.params_schema),
                handler,
            ),
            Definition::Event(event) => {
                server.set_event_handler(event, handler);
                Ok(())
            }
            Definition::Middleware(of, _) => server.add_middleware_handler(of.scope()?, handler),
            #[cfg(feature = "routes")]
            Definition::Route(route) => {
                server.add_route(super::routes::read_route(route, options.scopes)?, handler)
            }
        }
    }
}

impl MiddlewareDefinition {
    pub(super) fn scope(self) -> Result<MiddlewareScope, Error> {
        let mut scope = MiddlewareScope::all();
        if let Some(methods) = self.methods {
            scope = scope.with_methods(methods);
        }
        if self.kinds.is_some() || self.names.is_some() || self.tags.is_some() {
            scope = scope.with_features(feature_selection(self.kinds, self.names, self.tags)?);
        }
        Ok(scope)
    }
}

impl FeatureOptions {
    fn tool(self) -> Result<ToolOptions, Error> {
        let mut options = ToolOptions::default()
            .with_scopes(self.scopes)
            .with_tags(self.tags);
        options.run_once = self.run_once;
        options.decodes_itself = self.decodes_itself;
        options.rate = self
            .rate
            .map(|(per_second, burst)| Rate { per_second, burst });
        let timeout = self.timeout.map(seconds).transpose();
        options.timeout = timeout.map_err(|error| Error::usage(format!("`timeout`: {error}")))?;
        Ok(options)
    }

    fn resource(self) -> ResourceOptions {
        let mut options = ResourceOptions::default()
            .with_scopes(self.scopes)
            .with_tags(self.tags)
            .with_unchecked_variables(self.unchecked_variables);
        options.cache = self.cache.map(cache_hints);
        options
    }

    fn prompt(self) -> PromptOptions {
        PromptOptions::default()
            .with_scopes(self.scopes)
            .with_tags(self.tags)
    }

    fn method(self, params_schema: Option<Value>) -> MethodOptions {
        let mut options = MethodOptions::default().with_scopes(self.scopes);
        options.params_schema = params_schema;
        options.extension = self.extension;
        options.run_once = self.run_once;
        options
    }
}

/// Returns the kind with this name ([`CallKind::name`]).
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): there is none.
pub fn call_kind(name: &str) -> Result<CallKind, Error> {
    let mut kinds = CallKind::ALL.iter().copied();
    kinds
        .find(|kind| kind.name() == name)
        .ok_or_else(|| Error::usage(format!("unknown kind of feature {name:?}")))
}

fn event(definition: &MethodDefinition) -> Result<ClientNotification, Error> {
    let mut events = ClientNotification::ALL.iter().copied();
    events
        .find(|event| event.method().as_str() == definition.method)
        .ok_or_else(|| Error::usage(format!("unknown event {:?}", definition.method)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::test_sink::FnHandler;

    fn feature(kind: CallKind, definition: &Value) -> Feature {
        let definition = definition.to_string();
        Feature::read(kind, definition.as_bytes(), FeatureOptions::default()).unwrap()
    }

    #[test]
    fn features_of_every_kind_are_added_and_removed_by_their_key() {
        let server = Server::new("test", "1");
        let definitions = [
            (
                CallKind::Tool,
                json!({"name": "t", "inputSchema": {"type": "object"}}),
            ),
            (CallKind::Resource, json!({"uri": "a://b", "name": "r"})),
            (
                CallKind::Resource,
                json!({"uriTemplate": "a://{b}/c", "name": "r"}),
            ),
            (CallKind::Prompt, json!({"name": "p"})),
            (CallKind::Request, json!({"method": "acme/a"})),
            (CallKind::Notification, json!({"method": "acme/b"})),
        ];
        for (kind, definition) in definitions {
            let feature = feature(kind, &definition);
            let key = feature.key();
            feature.add(&server, Arc::new(FnHandler(drop))).unwrap();
            assert!(key.remove(&server), "{key:?}");
            assert!(!key.remove(&server), "{key:?}");
        }
    }

    #[test]
    fn completions_and_handlers_of_events_replace_each_other() {
        let server = Server::new("test", "1");
        let prompt = json!({"name": "p", "arguments": [{"name": "a"}]});
        let prompt = feature(CallKind::Prompt, &prompt);
        prompt.add(&server, Arc::new(FnHandler(drop))).unwrap();
        let template = json!({"uriTemplate": "a://{b}", "name": "r"});
        let template = feature(CallKind::Resource, &template);
        template.add(&server, Arc::new(FnHandler(drop))).unwrap();
        let definitions = [
            (CallKind::Completion, Value::Null),
            (
                CallKind::Completion,
                json!({"reference": "p", "argument": "a"}),
            ),
            (CallKind::ResourceList, json!({"uri_template": "a://{b}"})),
            (
                CallKind::Event,
                json!({"method": "notifications/initialized"}),
            ),
        ];
        for (kind, definition) in definitions {
            for _ in 0..2 {
                let feature = feature(kind, &definition);
                feature.add(&server, Arc::new(FnHandler(drop))).unwrap();
            }
            assert!(!feature(kind, &definition).key().remove(&server));
        }
    }

    #[test]
    fn options_that_protect_nothing_are_refused() {
        let scoped = || FeatureOptions {
            scopes: vec!["read".to_owned()],
            ..FeatureOptions::default()
        };
        let event = br#"{"method": "notifications/initialized"}"#;
        Feature::read(CallKind::Event, event, scoped()).unwrap_err();
        Feature::read(CallKind::Completion, b"null", scoped()).unwrap_err();
        let extended = FeatureOptions {
            extension: Some("com.example/a".to_owned()),
            ..FeatureOptions::default()
        };
        Feature::read(CallKind::Prompt, br#"{"name": "p"}"#, extended).unwrap_err();
    }

    #[test]
    fn kinds_have_the_names_of_their_variants() {
        for kind in CallKind::ALL {
            assert_eq!(call_kind(kind.name()).unwrap(), *kind);
            let name = kind.name().replace('_', "");
            assert_eq!(format!("{kind:?}").to_lowercase(), name);
        }
        call_kind("nothing").unwrap_err();
    }
}
