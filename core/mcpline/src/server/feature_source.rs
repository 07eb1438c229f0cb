//! The servers that a mounted feature comes from, as they were when it was copied. Copies remember them, because the servers in
//! between may remove the feature while a snapshot or a running call still has it.

use crate::sync::Arc;

use super::call_kind::CallKind;
use super::feature_entries::{FeatureEntry, prefixed_uri, unprefixed_uri};
use super::inner::Inner;

/// A feature at one of the servers that it comes from.
pub(crate) struct FeatureSource {
    pub(super) server: Arc<Inner>,
    /// What the server puts before the names of this one's features.
    prefix: Option<Box<str>>,
    pub(super) kind: CallKind,
    /// The name there, or the URI of the resource or template.
    pub(super) key: Arc<str>,
    pub(super) tags: Vec<String>,
}

/// The servers that a feature comes from, from the mounted one on. Empty for a feature of the server itself.
pub(crate) type FeatureSources = Arc<[Arc<FeatureSource>]>;

impl FeatureSource {
    /// Returns the source of a copy of this feature.
    pub(super) fn of<T: FeatureEntry>(
        server: &Arc<Inner>,
        prefix: Option<&str>,
        entry: &T,
    ) -> Arc<Self> {
        Arc::new(Self {
            server: server.clone(),
            prefix: prefix.map(Into::into),
            kind: T::KIND,
            key: entry.key().into(),
            tags: entry.tags().to_vec(),
        })
    }

    /// Returns the source of a copy of a custom method.
    pub(super) fn of_method(server: &Arc<Inner>, method: &str) -> Arc<Self> {
        Arc::new(Self {
            server: server.clone(),
            prefix: None,
            kind: CallKind::Request,
            key: method.into(),
            tags: Vec::new(),
        })
    }

    /// Returns the URI there of a resource that has this URI at the server in which it is mounted.
    pub(super) fn own_uri(&self, uri: &str) -> Arc<str> {
        let own = self
            .prefix
            .as_deref()
            .and_then(|prefix| unprefixed_uri(prefix, uri));
        own.map_or_else(|| Arc::from(uri), Arc::from)
    }

    /// Returns the URI of a resource at the server in which this one is mounted.
    pub(super) fn mounted_uri(&self, uri: String) -> String {
        match &self.prefix {
            Some(prefix) => prefixed_uri(prefix, &uri),
            None => uri,
        }
    }
}

/// Returns the sources of a copy: this one, and those that the original has.
pub(super) fn with_source(
    first: Arc<FeatureSource>,
    of_original: &FeatureSources,
) -> FeatureSources {
    std::iter::once(first)
        .chain(of_original.iter().cloned())
        .collect()
}
