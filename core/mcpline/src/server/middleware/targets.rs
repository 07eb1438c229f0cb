//! The feature that a request is for, as scopes and mounts see it.

use std::sync::atomic::AtomicBool;

use mcpline_protocol::RpcError;
use mcpline_protocol::wire::{Method, Params};

use crate::middleware::MiddlewareRequest;
use crate::sync::Arc;
use crate::turn_queue::PeerId;

use super::super::call::{CallState, Target as CallTarget};
use super::super::call_kind::CallKind;
use super::super::feature_entries::{
    FeatureEntry, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry,
};
use super::super::feature_selection::FeatureSelection;
use super::super::inner::Inner;
use super::super::item_list::Item;
use super::super::matching;
use super::super::registry::{Methods, Registry};

/// The feature that a request is for.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) feature: Feature,
    pub(super) source: Option<TargetSource>,
}

/// A feature as scopes see it.
#[derive(Clone)]
pub(super) struct Feature {
    pub(super) kind: CallKind,
    /// The name, or the URI of the resource or template.
    pub(super) key: String,
    pub(super) tags: Vec<String>,
}

impl Feature {
    fn of<T: FeatureEntry>(entry: &T) -> Self {
        Self {
            kind: T::KIND,
            key: entry.key().to_owned(),
            tags: entry.tags().to_vec(),
        }
    }

    /// Whether a scope with this selection includes requests for the feature.
    pub(super) fn is_selected_by(&self, selection: &FeatureSelection) -> bool {
        // Custom requests are for no feature.
        self.kind != CallKind::Request && selection.matches(self.kind, &self.key, &self.tags)
    }
}

/// The mounted server that a feature comes from.
#[derive(Clone)]
pub(super) struct TargetSource {
    pub(super) server: Arc<Inner>,
    /// What the request asks for, by the name that it has there.
    pub(super) name: Option<Arc<str>>,
    /// The feature as it was there when it was copied. A snapshot keeps features that the server itself has removed.
    pub(super) feature: Feature,
}

/// Finds the feature that a request is for at this server; `None` if there is none, or the request is for no feature.
/// At a mounted server, disabled features are found, too: a snapshot may still serve them.
///
/// # Errors
///
/// Comparing a URI with the server's templates takes more steps than a request may.
pub(super) async fn find(
    server: &Inner,
    request: &MiddlewareRequest,
    is_mounted: bool,
    peer: PeerId,
) -> Result<Option<Target>, RpcError> {
    let registry = server.registry();
    let method = request.protocol_method();
    let Some(name) = request.name() else {
        return Ok(custom(server, &registry, method));
    };
    let tool = || item::<ToolEntry>(&registry, name, is_mounted).map(|item| target(server, item));
    let prompt =
        || item::<PromptEntry>(&registry, name, is_mounted).map(|item| target(server, item));
    let resource =
        || item::<ResourceEntry>(&registry, name, is_mounted).map(|item| target(server, item));
    let found = match method {
        Method::ToolsCall => tool(),
        Method::PromptsGet => prompt(),
        Method::ResourcesRead => match resource() {
            Some(found) => Some(found),
            None => template(server, &registry, name, peer).await?,
        },
        _ if request.completes_prompt() => prompt(),
        _ => item::<TemplateEntry>(&registry, name, is_mounted)
            .map(|item| target(server, item))
            .or_else(resource),
    };
    Ok(found)
}

/// Finds the tool or prompt that a request is for. Returns `None` if that may take longer: for resources and completions.
pub(super) fn find_at_once(
    registry: &Registry,
    method: &Method,
    params: Option<&Params>,
) -> Option<Option<Feature>> {
    fn found<T: FeatureEntry>(registry: &Registry, name: &str) -> Option<Feature> {
        item::<T>(registry, name, false).map(|item| Feature::of(&*item.entry))
    }
    let name = || params.and_then(|params| params.get_str("name"));
    match method {
        Method::ToolsCall => Some(name().and_then(|name| found::<ToolEntry>(registry, &name))),
        Method::PromptsGet => Some(name().and_then(|name| found::<PromptEntry>(registry, &name))),
        Method::ResourcesRead | Method::CompletionComplete => None,
        _ => Some(None),
    }
}

fn item<'r, T: FeatureEntry>(
    registry: &'r Registry,
    name: &str,
    with_disabled: bool,
) -> Option<&'r Item<T>> {
    let item = T::list(registry).item(name)?;
    (item.enabled || with_disabled).then_some(item)
}

fn target<T: FeatureEntry>(server: &Inner, item: &Item<T>) -> Target {
    let own_name = item.origin.as_ref().map(|origin| origin.name.clone());
    target_named(server, item, own_name)
}

/// `own_name` is what the request asks for, as it is named at the server that the item is a copy from.
fn target_named<T: FeatureEntry>(
    server: &Inner,
    item: &Item<T>,
    own_name: Option<Arc<str>>,
) -> Target {
    let source = item.origin.as_ref().and_then(|origin| {
        Some(TargetSource {
            server: server.mounts.server(origin.mount)?,
            name: own_name,
            feature: Feature::of(&*origin.entry),
        })
    });
    Target {
        feature: Feature::of(&*item.entry),
        source,
    }
}

/// Finds the template that matches a URI, on another thread if that takes long.
async fn template(
    server: &Inner,
    registry: &Arc<Registry>,
    uri: &str,
    peer: PeerId,
) -> Result<Option<Target>, RpcError> {
    let matched = match matching::template_inline(registry, uri) {
        Some(matched) => matched,
        None => {
            let interrupt = Arc::new(AtomicBool::new(false));
            matching::template_elsewhere(registry.clone(), uri, peer, interrupt).await?
        }
    };
    let Some((entry, _)) = matched else {
        return Ok(None);
    };
    let mut items = registry.templates.iter();
    let item = items.find(|item| Arc::ptr_eq(&item.entry, &entry));
    Ok(item.map(|item| {
        let origin = item.origin.as_ref();
        let own_uri = origin.map(|origin| server.mounts.own_uri(origin.mount, uri));
        target_named(server, item, own_uri)
    }))
}

/// A custom request, which a mounted server may handle.
fn custom(server: &Inner, registry: &Registry, method: &Method) -> Option<Target> {
    let mount = registry.requests.get(method.as_str())?.mount?;
    let source = server.mounts.server(mount)?;
    let feature = Feature {
        kind: CallKind::Request,
        key: method.as_str().to_owned(),
        tags: Vec::new(),
    };
    Some(Target {
        feature: feature.clone(),
        source: Some(TargetSource {
            server: source,
            name: None,
            feature,
        }),
    })
}

/// Returns the servers whose middlewares see what the handler of a call sends, the innermost first: the mounted servers that its
/// feature comes from, and the server that is served.
pub(super) fn servers_of(call: &CallState) -> Vec<Arc<Inner>> {
    let server = &call.server;
    let mut servers = match &call.target {
        CallTarget::Tool(entry) => sources::<ToolEntry>(server, entry.key()),
        CallTarget::Prompt(entry) => sources::<PromptEntry>(server, entry.key()),
        CallTarget::Resource(entry) => sources::<ResourceEntry>(server, entry.key()),
        CallTarget::Template(entry) => sources::<TemplateEntry>(server, entry.key()),
        CallTarget::Request(entry) => {
            sources_of_method(server, &entry.method, |registry| &registry.requests)
        }
        CallTarget::Notification(entry) => servers_of_notification(server, &entry.method),
        _ => vec![server.clone()],
    };
    servers.reverse();
    servers
}

/// Returns a server and the mounted servers that its feature comes from.
fn sources<T: FeatureEntry>(server: &Arc<Inner>, key: &str) -> Vec<Arc<Inner>> {
    let mut servers = vec![server.clone()];
    let mut key: Arc<str> = key.into();
    let mut current = server.clone();
    loop {
        let registry = current.registry();
        let origin = T::list(&registry)
            .item(&key)
            .and_then(|item| item.origin.clone());
        let Some(origin) = origin else {
            return servers;
        };
        let Some(source) = current.mounts.server(origin.mount) else {
            return servers;
        };
        key = origin.name;
        servers.push(source.clone());
        current = source;
    }
}

/// Returns the servers whose middlewares see a custom notification, the outermost first.
pub(super) fn servers_of_notification(server: &Arc<Inner>, method: &str) -> Vec<Arc<Inner>> {
    sources_of_method(server, method, |registry| &registry.notifications)
}

fn sources_of_method(
    server: &Arc<Inner>,
    method: &str,
    methods: fn(&Registry) -> &Methods,
) -> Vec<Arc<Inner>> {
    let mut servers = vec![server.clone()];
    let mut current = server.clone();
    loop {
        let registry = current.registry();
        let mount = methods(&registry).get(method).and_then(|item| item.mount);
        let Some(source) = mount.and_then(|mount| current.mounts.server(mount)) else {
            return servers;
        };
        servers.push(source.clone());
        current = source;
    }
}
