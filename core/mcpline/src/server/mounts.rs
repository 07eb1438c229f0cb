//! Mounted servers: the features of one server at another.
//!
//! A parent's registry has copies of the features of the servers that are mounted in it, so that a call costs the same
//! as one of the parent's own features. Each change at a mounted server updates the copies. Handlers of completions are
//! not copied: a completion for a copy is looked up at the server that it comes from, by the name that it has there.
//!
//! Locks: a parent's registry is locked before that of a mounted server is read, never the other way round. Mounts have
//! no cycles, so there is an order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use mcpline_protocol::session::Change;
use mcpline_protocol::wire::Raw;

use crate::error::Error;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Server;
use super::call_kind::CallKind;
use super::feature_entries::{
    FeatureEntry, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry, prefixed_uri,
};
use super::feature_source::{FeatureSource, with_source};
use super::inner::Inner;
use super::item_list::{CopyChange, CopySource, Item, ItemList};
use super::registry::{ChangedFeatures, MethodItem, Methods, Registry};
use super::tool_transform::ToolTransform;

/// How a server is [mounted](Server::mount).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct MountOptions {
    /// What is put before the names of the mounted features, 1 to 64 of `A-Z`, `a-z`, `0-9`, `_`, `-` and `.`.
    ///
    /// With `work`, the tool or prompt `search` becomes `work_search`, and the resource or template `note://{id}`
    /// becomes `note://work/{id}`. Default: none.
    pub prefix: Option<String>,
    /// Only the features that the mounted server has now; later changes do not show. Default: `false`.
    pub snapshot: bool,
    /// Changes of the mounted server's tools, by the names that they have there. Default: none.
    pub tools: BTreeMap<String, ToolTransform>,
}

impl MountOptions {
    /// Sets the prefix.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Sets whether only the features that the mounted server has now are taken.
    #[must_use]
    pub fn with_snapshot(mut self, snapshot: bool) -> Self {
        self.snapshot = snapshot;
        self
    }

    /// Changes a tool, named as at the mounted server.
    #[must_use]
    pub fn with_tool(mut self, name: impl Into<String>, transform: ToolTransform) -> Self {
        self.tools.insert(name.into(), transform);
        self
    }
}

/// Number of a mount at its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MountId(u64);

/// A mounted server.
struct MountedServer {
    id: MountId,
    server: Arc<Inner>,
    prefix: Option<String>,
    snapshot: bool,
    tools: BTreeMap<String, ToolTransform>,
    /// Numbers of the tools that were to be changed when the server was mounted, with their names then: a tool that is renamed
    /// stays changed.
    tool_numbers: BTreeMap<u64, String>,
    /// [`Inner::copy_from`]. By a pointer, so that the code is left out of programs that mount nothing: the C library is
    /// 100 KB smaller.
    copy_features: fn(&Inner, &MountedServer) -> (CopyOutcome, RemovedCopies),
}

impl MountedServer {
    /// Brings the copies of the server's features at a parent up to date. The second value is to be dropped without a lock.
    fn update(&self, parent: &Inner) -> (CopyOutcome, RemovedCopies) {
        (self.copy_features)(parent, self)
    }

    /// Whether an item is a copy that this mount has made.
    fn has_copy<T>(&self, item: &Item<T>) -> bool {
        let origin = item.origin.as_ref();
        origin.is_some_and(|origin| origin.mount == self.id)
    }

    /// Returns the origin of a copy of this feature.
    fn origin_of<T: FeatureEntry>(&self, original: &Item<T>) -> CopySource<T> {
        let source = FeatureSource::of(&self.server, self.prefix.as_deref(), &*original.entry);
        let origin = original.origin.as_ref();
        let sources = origin.map(|origin| origin.sources.clone());
        CopySource {
            mount: self.id,
            number: original.number,
            name: original.name.clone(),
            entry: original.entry.clone(),
            enabled: original.enabled,
            sources: with_source(source, &sources.unwrap_or_default()),
        }
    }
}

/// The mounts of a server, in both directions.
#[derive(Default)]
pub(crate) struct Mounts {
    mounted: Mutex<MountedServers>,
    parents: Mutex<Vec<Weak<Inner>>>,
}

#[derive(Default)]
struct MountedServers {
    servers: Vec<Arc<MountedServer>>,
    next: u64,
}

/// A feature at the server that it was registered at.
pub(super) struct OriginalFeature {
    pub(super) server: Arc<Inner>,
    pub(super) name: Arc<str>,
}

/// Held while servers are mounted, so that two threads cannot make a cycle.
static MOUNTING: std::sync::Mutex<()> = std::sync::Mutex::new(());

impl Server {
    /// Adds the tools, resources, templates, prompts, completions and custom methods of another server to this one.
    ///
    /// Features that are registered, changed, enabled, disabled or removed at the mounted server later do the same here,
    /// unless [`MountOptions::snapshot`] is set. A feature whose name is taken by then is left out, with a warning in
    /// the log. Their handlers run as calls of this server: its settings, sessions and authorization apply. Handlers of
    /// events, extensions and instructions of the mounted server do not.
    ///
    /// A server can be mounted in several others, also more than once with different prefixes. The rate limit of a tool is
    /// the one that it has at its own server, for calls over both servers together. Mounted features can be
    /// [disabled](Server::disable) here, but are removed and changed at their own server.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the prefix is invalid, a name is taken, the servers would contain
    /// each other, a custom method belongs to an extension that this server does not declare, or a tool cannot be changed
    /// (see [`Server::transform_tool`]). Nothing is mounted then.
    pub fn mount(&self, server: &Server, options: MountOptions) -> Result<(), Error> {
        if let Some(prefix) = &options.prefix {
            check_prefix(prefix)?;
        }
        let (changed, removed) = {
            let _mounting = MOUNTING.lock().unwrap_or_else(PoisonError::into_inner);
            if contains(server.inner(), self.inner()) {
                return Err(Error::usage(format!(
                    "the server {:?} cannot be mounted in {:?}, which it contains",
                    server.name(),
                    self.name()
                )));
            }
            // Before the first feature can be called, and below once the mounted server tells its parent of middleware.
            self.inner().use_middleware_of(server.inner());
            let mounted = self.inner().mounts.add(server.inner(), options);
            let first = match self.inner().copy_or_refuse(&mounted) {
                Ok(changed) => changed,
                Err(refused) => {
                    self.inner().mounts.forget(mounted.id);
                    return Err(Error::usage(format!(
                        "the server {:?} cannot be mounted: {}",
                        server.name(),
                        refused.join("; ")
                    )));
                }
            };
            server.inner().mounts.add_parent(self.inner());
            self.inner().use_middleware_of(server.inner());
            // What changed before the mounted server knew its parent.
            let (later, removed) = self.inner().copy_from(&mounted);
            (first.plus(later.changed), removed)
        };
        drop(removed);
        self.inner().publish(changed);
        Ok(())
    }

    /// Removes the features of a mounted server, whatever prefixes it was mounted with. Connected clients are notified.
    /// Returns `false` if it was not mounted. Calls in flight continue.
    pub fn unmount(&self, server: &Server) -> bool {
        let mut changed = ChangedFeatures::default();
        let mut removed = Vec::new();
        let mounts = {
            let _mounting = MOUNTING.lock().unwrap_or_else(PoisonError::into_inner);
            let mounts = self.inner().mounts.of(server.inner());
            server.inner().mounts.remove_parent(self.inner());
            for mounted in &mounts {
                self.inner().mounts.forget(mounted.id);
                let (copied, dropped) = self.inner().remove_copies_of(mounted);
                changed = changed.plus(copied.changed);
                removed.push(dropped);
            }
            mounts
        };
        drop(removed);
        self.inner()
            .publish(changed.plus(self.inner().copy_missing()));
        !mounts.is_empty()
    }
}

impl Mounts {
    fn lock(&self) -> MutexGuard<'_, MountedServers> {
        self.mounted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_parents(&self) -> MutexGuard<'_, Vec<Weak<Inner>>> {
        self.parents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, server: &Arc<Inner>, options: MountOptions) -> Arc<MountedServer> {
        let mut mounted = self.lock();
        mounted.next += 1;
        let entry = Arc::new(MountedServer {
            id: MountId(mounted.next),
            server: server.clone(),
            prefix: options.prefix,
            snapshot: options.snapshot,
            tool_numbers: transforms_by_number(&options.tools, &server.registry()),
            tools: options.tools,
            copy_features: Inner::copy_from,
        });
        mounted.servers.push(entry.clone());
        entry
    }

    fn forget(&self, id: MountId) {
        let mut removed = Vec::new();
        self.lock().servers.retain(|mounted| {
            let stays = mounted.id != id;
            if !stays {
                removed.push(mounted.clone());
            }
            stays
        });
        // `removed` is dropped without the lock: it may be the last reference to the server.
    }

    fn all(&self) -> Vec<Arc<MountedServer>> {
        self.lock().servers.clone()
    }

    fn of(&self, server: &Arc<Inner>) -> Vec<Arc<MountedServer>> {
        let mut mounts = self.all();
        mounts.retain(|mounted| Arc::ptr_eq(&mounted.server, server));
        mounts
    }

    fn has(&self, id: MountId) -> bool {
        self.lock().servers.iter().any(|mounted| mounted.id == id)
    }

    /// Returns a value without what the redactions of mounted servers replace; `None` if that takes too long.
    pub(super) fn redacted(&self, value: Raw, until: Duration) -> Option<Raw> {
        let mut mounted = self.all().into_iter();
        mounted.try_fold(value, |value, mounted| {
            mounted.server.redacted_until(value, until)
        })
    }

    /// Whether servers are mounted.
    pub(super) fn is_used(&self) -> bool {
        !self.lock().servers.is_empty()
    }

    pub(super) fn server(&self, id: MountId) -> Option<Arc<Inner>> {
        let mounted = self.lock();
        let found = mounted.servers.iter().find(|mounted| mounted.id == id)?;
        Some(found.server.clone())
    }

    fn add_parent(&self, parent: &Arc<Inner>) {
        let mut parents = self.lock_parents();
        parents.retain(|other| is_other(other, parent));
        parents.push(Arc::downgrade(parent));
    }

    fn remove_parent(&self, parent: &Arc<Inner>) {
        self.lock_parents().retain(|other| is_other(other, parent));
    }

    pub(super) fn parents(&self) -> Vec<Arc<Inner>> {
        self.lock_parents()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }
}

/// What copying the features of a mounted server did.
#[derive(Default)]
struct CopyOutcome {
    changed: ChangedFeatures,
    /// Why features are left out.
    refused: Vec<String>,
}

impl Inner {
    /// Brings the copies at the servers that this one is mounted in up to date.
    pub(super) fn update_parents(&self) {
        for parent in self.mounts.parents() {
            let mut changed = ChangedFeatures::default();
            for mounted in parent.mounts.all() {
                if mounted.snapshot || !std::ptr::eq(&*mounted.server, self) {
                    continue;
                }
                let (copied, removed) = mounted.update(&parent);
                drop(removed);
                changed = changed.plus(copied.changed);
                for reason in copied.refused {
                    tracing::warn!(
                        server = self.info.name,
                        "a mounted feature is left out: {reason}"
                    );
                }
            }
            parent.publish(changed);
        }
    }

    /// Adds what was left out at mounted servers because its name was taken, and is free now. Returns the changes, which
    /// have to be published.
    pub(super) fn copy_missing(&self) -> ChangedFeatures {
        let mut changed = ChangedFeatures::default();
        for mounted in self.mounts.all() {
            if !mounted.snapshot {
                changed = changed.plus(mounted.update(self).0.changed);
            }
        }
        changed
    }

    /// Notifies the clients of the servers that this one is mounted in.
    pub(super) fn tell_parents(&self, change: &Change) {
        for parent in self.mounts.parents() {
            for mounted in parent.mounts.all() {
                if !std::ptr::eq(&*mounted.server, self) {
                    continue;
                }
                match (change, &mounted.prefix) {
                    (Change::Resource(uri), Some(prefix)) => {
                        parent.notify_all_processes(&Change::Resource(prefixed_uri(prefix, uri)));
                    }
                    _ => parent.notify_all_processes(change),
                }
            }
        }
    }

    /// Whether a mounted server may add features at any time.
    pub(super) fn has_live_mounts(&self) -> bool {
        self.mounts.all().iter().any(|mounted| !mounted.snapshot)
    }

    pub(super) fn mounted_have_completions(&self) -> bool {
        self.mounts.all().iter().any(|mounted| {
            let server = &mounted.server;
            server.registry().has_completions() || server.mounted_have_completions()
        })
    }

    /// Reports a change of features to the middleware of mounted servers: a request that ran the previous handler meanwhile may
    /// have filled a cache there.
    pub(super) fn report_change_to_mounted(&self, change: &Change) {
        for mounted in self.mounts.all().iter() {
            mounted.server.report_change(change);
        }
    }

    /// Adds what was left out before, because a name may have become free.
    pub(super) fn publish_missing(&self) {
        let changed = self.copy_missing();
        if changed.sum() > 0 {
            self.publish(changed);
        }
    }

    /// Makes changed copies known: to clients, and to the servers that this one is mounted in.
    fn publish(&self, changed: ChangedFeatures) {
        self.refresh_profile();
        for change in changed.lists() {
            self.notify_change(&change);
        }
        self.update_parents();
    }

    /// Copies the features of a server that is being mounted, if none of their names is taken.
    fn copy_or_refuse(&self, mounted: &MountedServer) -> Result<ChangedFeatures, Vec<String>> {
        let mut copied = CopyOutcome::default();
        // Nothing is removed: nothing comes from this mount yet.
        let mut removed = RemovedCopies::default();
        let replaced;
        {
            let mut registry = self
                .registry
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            let mut next = Registry::clone(&registry);
            let source = mounted.server.registry();
            copied.refused = mounted.unknown_tools(&source);
            copied.copy_all(self, &mut next, &source, mounted, &mut removed);
            if !copied.refused.is_empty() {
                return Err(copied.refused);
            }
            replaced = std::mem::replace(&mut *registry, Arc::new(next));
        }
        drop(replaced);
        Ok(copied.changed)
    }

    /// Brings the copies of a mounted server's features up to date, unless it has been unmounted. What is removed is to be
    /// dropped without a lock, because what a handler holds may use the server.
    fn copy_from(&self, mounted: &MountedServer) -> (CopyOutcome, RemovedCopies) {
        let mut copied = CopyOutcome::default();
        let mut removed = RemovedCopies::default();
        self.change_registry(|registry| {
            // Checked under the registry's lock: `unmount` forgets the mount before it removes the copies.
            if self.mounts.has(mounted.id) {
                let source = mounted.server.registry();
                copied.copy_all(self, registry, &source, mounted, &mut removed);
            }
            true
        });
        (copied, removed)
    }

    fn remove_copies_of(&self, mounted: &MountedServer) -> (CopyOutcome, RemovedCopies) {
        let mut copied = CopyOutcome::default();
        let mut removed = RemovedCopies::default();
        self.change_registry(|registry| {
            let nothing = Registry::default();
            copied.copy_all(self, registry, &nothing, mounted, &mut removed);
            true
        });
        (copied, removed)
    }
}

/// Whether a parent is alive and not this one. Upgrading the reference could make it the last one.
fn is_other(parent: &Weak<Inner>, this: &Arc<Inner>) -> bool {
    parent.strong_count() > 0 && !std::ptr::eq(parent.as_ptr(), Arc::as_ptr(this))
}

/// Copies that were removed from a registry.
#[derive(Default)]
struct RemovedCopies {
    tools: Vec<Arc<Item<ToolEntry>>>,
    resources: Vec<Arc<Item<ResourceEntry>>>,
    templates: Vec<Arc<Item<TemplateEntry>>>,
    prompts: Vec<Arc<Item<PromptEntry>>>,
    methods: Vec<MethodItem>,
}

impl CopyOutcome {
    fn copy_all(
        &mut self,
        parent: &Inner,
        registry: &mut Registry,
        source: &Registry,
        mounted: &MountedServer,
        removed: &mut RemovedCopies,
    ) {
        self.changed.tools = self.copy(registry, source, mounted, &mut removed.tools);
        self.changed.resources = self.copy(registry, source, mounted, &mut removed.resources)
            + self.copy(registry, source, mounted, &mut removed.templates);
        self.changed.prompts = self.copy(registry, source, mounted, &mut removed.prompts);
        let RemovedCopies { methods, .. } = removed;
        self.copy_methods(
            parent,
            &mut registry.requests,
            &source.requests,
            mounted,
            methods,
        );
        self.copy_methods(
            parent,
            &mut registry.notifications,
            &source.notifications,
            mounted,
            methods,
        );
    }

    /// Brings the copies of one kind up to date: those that are changed keep their place in the list, those that are gone
    /// are removed, new ones are added at the end. Returns the number of changes that clients see.
    fn copy<T: FeatureEntry>(
        &mut self,
        registry: &mut Registry,
        source: &Registry,
        mounted: &MountedServer,
        removed: &mut Vec<Arc<Item<T>>>,
    ) -> usize {
        let originals: HashMap<u64, &Arc<Item<T>>> = T::list(source)
            .all()
            // A snapshot never sees its features enabled later.
            .filter(|item| item.enabled || !mounted.snapshot)
            .map(|item| (item.number, item))
            .collect();
        let visible = |list: &ItemList<T>| -> Vec<Arc<T>> {
            let copies = list.iter().filter(|item| mounted.has_copy(item));
            copies.map(|item| item.entry.clone()).collect()
        };
        let before = visible(T::list(registry));
        let rules = std::mem::take(&mut registry.rules);
        let list = T::list_mut(registry);
        let old_items = list.change_copies(
            |_, origin| {
                if origin.mount != mounted.id {
                    return CopyChange::None;
                }
                let Some(original) = originals.get(&origin.number) else {
                    return CopyChange::Remove;
                };
                let is_current = Arc::ptr_eq(&original.entry, &origin.entry)
                    && original.enabled == origin.enabled;
                if is_current {
                    return CopyChange::None;
                }
                match mounted.copy_of(original) {
                    Ok((name, entry)) => {
                        CopyChange::Replace(name, entry, mounted.origin_of(original))
                    }
                    Err(_) => CopyChange::Remove,
                }
            },
            |name, entry| rules.enables(T::KIND, name, entry.tags()),
        );
        removed.extend(old_items);
        let present: HashSet<u64> = list
            .all()
            .filter(|item| mounted.has_copy(item))
            .filter_map(|item| item.origin.as_ref())
            .map(|origin| origin.number)
            .collect();
        let new = T::list(source)
            .all()
            .filter(|item| originals.contains_key(&item.number) && !present.contains(&item.number));
        for item in new {
            let (name, entry) = match mounted.copy_of(item) {
                Ok(copy) => copy,
                Err(error) => {
                    self.refused.push(error.to_string());
                    continue;
                }
            };
            let enabled = item.enabled && rules.enables(T::KIND, entry.key(), entry.tags());
            let origin = mounted.origin_of(item);
            // A disabled feature leaves its name to others, because clients do not see it.
            if !list.add_copy(Arc::clone(&name), entry, enabled, origin) && item.enabled {
                self.refused
                    .push(format!("there is a {} {name} already", T::KIND.name()));
            }
        }
        registry.rules = rules;
        let after = visible(T::list(registry));
        changes(&before, &after)
    }

    /// Copies custom methods, which keep their names.
    fn copy_methods(
        &mut self,
        parent: &Inner,
        methods: &mut Methods,
        source: &Methods,
        mounted: &MountedServer,
        removed: &mut Vec<MethodItem>,
    ) {
        methods.retain(|name, item| {
            let stays = item.mount != Some(mounted.id)
                || source
                    .get(name)
                    .is_some_and(|other| Arc::ptr_eq(&other.entry, &item.entry));
            if !stays {
                removed.push(item.clone());
            }
            stays
        });
        for (name, item) in source {
            match methods.get(name) {
                Some(present) if Arc::ptr_eq(&present.entry, &item.entry) => continue,
                Some(_) => self
                    .refused
                    .push(format!("method {name:?} has a handler already")),
                None => match parent.check_extension_of(&item.entry) {
                    Ok(()) => {
                        let first = FeatureSource::of_method(&mounted.server, name);
                        let copy = MethodItem {
                            entry: item.entry.clone(),
                            mount: Some(mounted.id),
                            sources: with_source(first, &item.sources),
                        };
                        methods.insert(name.clone(), copy);
                    }
                    Err(error) => self.refused.push(error.to_string()),
                },
            }
        }
    }
}

impl MountedServer {
    /// Returns the name and the entry of a feature's copy.
    fn copy_of<T: FeatureEntry>(&self, item: &Item<T>) -> Result<(Arc<str>, Arc<T>), Error> {
        let entry = match self.transform_of(item) {
            Some(transform) => Arc::new(item.entry.transformed_by(transform)?),
            None => item.entry.clone(),
        };
        match &self.prefix {
            Some(prefix) => {
                let name = T::prefixed_key(prefix, entry.key());
                let entry = entry.with_key(&name)?;
                Ok((name.into(), Arc::new(entry)))
            }
            None => Ok((entry.key().into(), entry)),
        }
    }

    /// Returns how a feature is changed. A tool is found by its name, and if it had the name when the server was mounted.
    fn transform_of<T: FeatureEntry>(&self, item: &Item<T>) -> Option<&ToolTransform> {
        if T::KIND != CallKind::Tool {
            return None;
        }
        let name = self.tool_numbers.get(&item.number);
        self.tools.get(name.map_or(&*item.name, String::as_str))
    }

    /// Returns why tools cannot be changed that the server does not have.
    fn unknown_tools(&self, source: &Registry) -> Vec<String> {
        let unknown = |name: &&String| source.tools.item(name).is_none();
        let unknown = self.tools.keys().filter(unknown);
        unknown
            .map(|name| format!("there is no tool {name} that could be changed"))
            .collect()
    }
}

/// Returns the numbers of tools that are to be changed.
fn transforms_by_number(
    tools: &BTreeMap<String, ToolTransform>,
    source: &Registry,
) -> BTreeMap<u64, String> {
    let number = |name: &String| Some((source.tools.item(name)?.number, name.clone()));
    tools.keys().filter_map(number).collect()
}

/// Returns how many entries of a list were removed, added or replaced.
fn changes<T>(before: &[Arc<T>], after: &[Arc<T>]) -> usize {
    let addresses =
        |entries: &[Arc<T>]| -> HashSet<*const T> { entries.iter().map(Arc::as_ptr).collect() };
    let (before, after) = (addresses(before), addresses(after));
    before.symmetric_difference(&after).count()
}

/// Returns the server that a mounted feature was registered at, with its name there; `None` for features of `server`
/// itself.
pub(super) fn source_of<T: FeatureEntry>(
    server: &Arc<Inner>,
    item: &Item<T>,
) -> Option<OriginalFeature> {
    let mut origin = item.origin.clone()?;
    let mut server = server.clone();
    loop {
        server = server.mounts.server(origin.mount)?;
        let name = origin.name;
        let registry = server.registry();
        match T::list(&registry)
            .item(&name)
            .and_then(|item| item.origin.clone())
        {
            Some(next) => origin = next,
            None => return Some(OriginalFeature { server, name }),
        }
    }
}

/// Whether `server` is `other` or has it mounted.
fn contains(server: &Arc<Inner>, other: &Arc<Inner>) -> bool {
    Arc::ptr_eq(server, other)
        || server
            .mounts
            .all()
            .iter()
            .any(|mounted| contains(&mounted.server, other))
}

fn check_prefix(prefix: &str) -> Result<(), Error> {
    let is_valid = (1..=64).contains(&prefix.len())
        && prefix
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    match is_valid {
        true => Ok(()),
        false => Err(Error::usage(format!(
            "the prefix {prefix:?} is not 1 to 64 of A-Z, a-z, 0-9, _, - and ."
        ))),
    }
}
