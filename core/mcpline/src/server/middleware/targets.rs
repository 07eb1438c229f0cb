//! The feature that a request is for, as scopes and mounts see it.

use std::sync::atomic::AtomicBool;

use mcpline_protocol::RpcError;
use mcpline_protocol::wire::{Method, Params};

use crate::fair_queue::PeerId;
use crate::middleware::MiddlewareRequest;
use crate::sync::Arc;

use super::super::call::{CallState, Target as CallTarget};
use super::super::call_kind::CallKind;
use super::super::feature_entries::{
    FeatureEntry, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry,
};
use super::super::feature_selection::FeatureSelection;
use super::super::feature_source::FeatureSources;
use super::super::inner::Inner;
use super::super::item_list::Item;
use super::super::registry::{Methods, Registry};
use super::super::uri_matching;

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

/// A [`Feature`] in a registry.
#[derive(Clone, Copy)]
pub(super) struct FeatureRef<'r> {
    kind: CallKind,
    key: &'r str,
    tags: &'r [String],
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
        let Self { kind, key, tags } = self;
        let feature = FeatureRef {
            kind: *kind,
            key,
            tags,
        };
        feature.is_selected_by(selection)
    }
}

impl FeatureRef<'_> {
    /// Whether a scope with this selection includes requests for the feature.
    pub(super) fn is_selected_by(&self, selection: &FeatureSelection) -> bool {
        // Custom requests are for no feature.
        self.kind != CallKind::Request && selection.matches(self.kind, self.key, self.tags)
    }
}

/// A mounted server that a feature comes from.
#[derive(Clone)]
pub(super) struct TargetSource {
    sources: FeatureSources,
    index: usize,
    /// What the request asks for, by the name that it has there.
    pub(super) name: Option<Arc<str>>,
}

impl TargetSource {
    /// Returns the first of the sources, if there is one. `name` is what the request asks for.
    fn first(sources: &FeatureSources, name: Option<&str>) -> Option<Self> {
        Self::at(sources.clone(), 0, name)
    }

    /// Returns the server that the feature comes from at this one.
    pub(super) fn next(&self) -> Option<Self> {
        Self::at(self.sources.clone(), self.index + 1, self.name.as_deref())
    }

    fn at(sources: FeatureSources, index: usize, name: Option<&str>) -> Option<Self> {
        let source = sources.get(index)?;
        let name = match source.kind {
            CallKind::Request => None,
            // A URI that matches a template.
            CallKind::Resource => name.map(|uri| source.own_uri(uri)),
            _ => Some(source.key.clone()),
        };
        Some(Self {
            sources,
            index,
            name,
        })
    }

    pub(super) fn server(&self) -> &Arc<Inner> {
        &self.sources[self.index].server
    }

    /// Returns the feature as it was there when it was copied.
    pub(super) fn feature(&self) -> Feature {
        let source = &self.sources[self.index];
        Feature {
            kind: source.kind,
            key: source.key.to_string(),
            tags: source.tags.clone(),
        }
    }
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
        return Ok(custom(&registry, method));
    };
    let tool = || item::<ToolEntry>(&registry, name, is_mounted).map(|item| target(item, name));
    let prompt = || item::<PromptEntry>(&registry, name, is_mounted).map(|item| target(item, name));
    let resource =
        || item::<ResourceEntry>(&registry, name, is_mounted).map(|item| target(item, name));
    let found = match method {
        Method::ToolsCall => tool(),
        Method::PromptsGet => prompt(),
        Method::ResourcesRead => match resource() {
            Some(found) => Some(found),
            None => template(&registry, name, peer).await?,
        },
        _ if request.completes_prompt() => prompt(),
        _ => item::<TemplateEntry>(&registry, name, is_mounted)
            .map(|item| target(item, name))
            .or_else(resource),
    };
    Ok(found)
}

/// Finds the tool or prompt that a request is for. Returns `None` if that may take longer: for resources and completions.
pub(super) fn find_at_once<'r>(
    registry: &'r Registry,
    method: &Method,
    params: Option<&Params>,
) -> Option<Option<FeatureRef<'r>>> {
    fn found<'r, T: FeatureEntry + 'r>(
        registry: &'r Registry,
        name: &str,
    ) -> Option<FeatureRef<'r>> {
        item::<T>(registry, name, false).map(|item| FeatureRef {
            kind: T::KIND,
            key: item.entry.key(),
            tags: item.entry.tags(),
        })
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

fn target<T: FeatureEntry>(item: &Item<T>, name: &str) -> Target {
    let origin = item.origin.as_ref();
    Target {
        feature: Feature::of(&*item.entry),
        source: origin.and_then(|origin| TargetSource::first(&origin.sources, Some(name))),
    }
}

/// Finds the template that matches a URI, on another thread if that takes long.
async fn template(
    registry: &Arc<Registry>,
    uri: &str,
    peer: PeerId,
) -> Result<Option<Target>, RpcError> {
    let matched = match uri_matching::template_inline(registry, uri) {
        Some(matched) => matched,
        None => {
            let interrupt = Arc::new(AtomicBool::new(false));
            uri_matching::find_template_offloaded(registry.clone(), uri, peer, interrupt).await?
        }
    };
    let Some((entry, _)) = matched else {
        return Ok(None);
    };
    let mut items = registry.templates.iter();
    let item = items.find(|item| Arc::ptr_eq(&item.entry, &entry));
    Ok(item.map(|item| target(item, uri)))
}

/// A custom request, which a mounted server may handle.
fn custom(registry: &Registry, method: &Method) -> Option<Target> {
    let item = registry.requests.get(method.as_str())?;
    let source = TargetSource::first(&item.sources, None)?;
    Some(Target {
        feature: source.feature(),
        source: Some(source),
    })
}

/// Returns the servers whose middlewares see what the handler of a call sends, the innermost first: the mounted servers that its
/// feature comes from, and the server that is served.
pub(in super::super) fn servers_of(call: &CallState) -> Arc<[Arc<Inner>]> {
    let registry = call.server.registry();
    let sources = match &call.target {
        CallTarget::Tool(entry) => sources::<ToolEntry>(&registry, entry.key()),
        CallTarget::Prompt(entry) => sources::<PromptEntry>(&registry, entry.key()),
        CallTarget::Resource(entry) => sources::<ResourceEntry>(&registry, entry.key()),
        CallTarget::Template(entry) => sources::<TemplateEntry>(&registry, entry.key()),
        CallTarget::ResourceList(list) => sources::<TemplateEntry>(&registry, list.name()),
        CallTarget::Request(entry) => sources_of_method(&registry.requests, &entry.method),
        CallTarget::Notification(entry) => {
            sources_of_method(&registry.notifications, &entry.method)
        }
        _ => FeatureSources::default(),
    };
    let mounted = sources.iter().rev().map(|source| source.server.clone());
    mounted.chain([call.server.clone()]).collect()
}

fn sources<T: FeatureEntry>(registry: &Registry, key: &str) -> FeatureSources {
    let item = T::list(registry).item(key);
    let origin = item.and_then(|item| item.origin.as_ref());
    origin
        .map(|origin| origin.sources.clone())
        .unwrap_or_default()
}

/// Returns the servers whose middlewares see a custom notification, the outermost first.
pub(super) fn servers_of_notification(server: &Arc<Inner>, method: &str) -> Vec<Arc<Inner>> {
    let sources = sources_of_method(&server.registry().notifications, method);
    let mounted = sources.iter().map(|source| source.server.clone());
    [server.clone()].into_iter().chain(mounted).collect()
}

fn sources_of_method(methods: &Methods, method: &str) -> FeatureSources {
    let item = methods.get(method);
    item.map(|item| item.sources.clone()).unwrap_or_default()
}
