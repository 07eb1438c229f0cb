//! Mounted servers: the features of one server at another.
//!
//! A parent's registry has copies of the features of the servers that are mounted in it, so that a call costs the same
//! as one of the parent's own features. Each change at a mounted server updates the copies. Handlers of completions are
//! not copied: a completion for a copy is looked up at the server that it comes from, by the name that it has there.
//!
//! Locks: a parent's registry is locked before that of a mounted server is read, never the other way round. Mounts have
//! no cycles, so there is an order.

use std::collections::HashSet;

use mcpline_protocol::session::Change;

use crate::error::Error;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Server;
use super::feature_entries::{
    FeatureEntry, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry, prefixed_uri,
};
use super::inner::Inner;
use super::item_list::{Item, Origin};
use super::registry::{ChangedFeatures, MethodItem, Methods, Registry};

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
}

/// Number of a mount at its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MountId(u64);

/// A mounted server.
struct Mounted {
    id: MountId,
    server: Arc<Inner>,
    prefix: Option<String>,
    snapshot: bool,
}

/// The mounts of a server, in both directions.
#[derive(Default)]
pub(crate) struct Mounts {
    mounted: Mutex<MountedServers>,
    parents: Mutex<Vec<Weak<Inner>>>,
}

#[derive(Default)]
struct MountedServers {
    servers: Vec<Arc<Mounted>>,
    next: u64,
}

/// A feature at the server that it was registered at.
pub(super) struct Source {
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
    /// A server can be mounted in several others, also more than once with different prefixes. Mounted features can be
    /// [disabled](Server::disable) here, but are removed and changed at their own server.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the prefix is invalid, a name is taken, the servers would contain
    /// each other, or a custom method belongs to an extension that this server does not declare. Nothing is mounted then.
    pub fn mount(&self, server: &Server, options: MountOptions) -> Result<(), Error> {
        let _mounting = MOUNTING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(prefix) = &options.prefix {
            check_prefix(prefix)?;
        }
        if contains(server.inner(), self.inner()) {
            return Err(Error::usage(format!(
                "the server {:?} cannot be mounted in {:?}, which it contains",
                server.name(),
                self.name()
            )));
        }
        let mounted = self.inner().mounts.add(server.inner(), options);
        let copied = self.inner().copy_from(&mounted);
        if !copied.refused.is_empty() {
            self.inner().mounts.forget(mounted.id);
            // What was copied is removed: nothing comes from this mount any more.
            self.inner().remove_copies_of(&mounted);
            return Err(Error::usage(format!(
                "the server {:?} cannot be mounted: {}",
                server.name(),
                copied.refused.join("; ")
            )));
        }
        server.inner().mounts.add_parent(self.inner());
        self.inner().publish(copied.changed);
        Ok(())
    }

    /// Removes the features of a mounted server, whatever prefixes it was mounted with. Connected clients are notified.
    /// Returns `false` if it was not mounted. Calls in flight continue.
    pub fn unmount(&self, server: &Server) -> bool {
        let _mounting = MOUNTING.lock().unwrap_or_else(PoisonError::into_inner);
        let mounts = self.inner().mounts.of(server.inner());
        server.inner().mounts.remove_parent(self.inner());
        let mut changed = ChangedFeatures::default();
        for mounted in &mounts {
            self.inner().mounts.forget(mounted.id);
            let removed = self.inner().remove_copies_of(mounted);
            changed = changed.plus(removed);
        }
        self.inner().publish(changed);
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

    fn add(&self, server: &Arc<Inner>, options: MountOptions) -> Arc<Mounted> {
        let mut mounted = self.lock();
        mounted.next += 1;
        let entry = Arc::new(Mounted {
            id: MountId(mounted.next),
            server: server.clone(),
            prefix: options.prefix,
            snapshot: options.snapshot,
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

    fn all(&self) -> Vec<Arc<Mounted>> {
        self.lock().servers.clone()
    }

    fn of(&self, server: &Arc<Inner>) -> Vec<Arc<Mounted>> {
        let mut mounts = self.all();
        mounts.retain(|mounted| Arc::ptr_eq(&mounted.server, server));
        mounts
    }

    fn server(&self, id: MountId) -> Option<Arc<Inner>> {
        let mounted = self.lock();
        let found = mounted.servers.iter().find(|mounted| mounted.id == id)?;
        Some(found.server.clone())
    }

    fn add_parent(&self, parent: &Arc<Inner>) {
        let mut parents = self.lock_parents();
        parents.retain(|other| {
            other
                .upgrade()
                .is_some_and(|other| !Arc::ptr_eq(&other, parent))
        });
        parents.push(Arc::downgrade(parent));
    }

    fn remove_parent(&self, parent: &Arc<Inner>) {
        self.lock_parents().retain(|other| {
            other
                .upgrade()
                .is_some_and(|other| !Arc::ptr_eq(&other, parent))
        });
    }

    fn parents(&self) -> Vec<Arc<Inner>> {
        self.lock_parents()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }
}

/// What copying the features of a mounted server did.
#[derive(Default)]
struct Copied {
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
                let copied = parent.copy_from(&mounted);
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

    /// Notifies the clients of the servers that this one is mounted in.
    pub(super) fn tell_parents(&self, change: &Change) {
        for parent in self.mounts.parents() {
            for mounted in parent.mounts.all() {
                if !std::ptr::eq(&*mounted.server, self) {
                    continue;
                }
                match (change, &mounted.prefix) {
                    (Change::Resource(uri), Some(prefix)) => {
                        parent.tell_everywhere(&Change::Resource(prefixed_uri(prefix, uri)));
                    }
                    _ => parent.tell_everywhere(change),
                }
            }
        }
    }

    pub(super) fn mounted_have_completions(&self) -> bool {
        self.mounts.all().iter().any(|mounted| {
            let server = &mounted.server;
            server.registry().has_completions() || server.mounted_have_completions()
        })
    }

    /// Makes changed copies known: to clients, and to the servers that this one is mounted in.
    fn publish(&self, changed: ChangedFeatures) {
        self.refresh_profile();
        for change in changed.lists() {
            self.notify_change(&change);
        }
        self.update_parents();
    }

    /// Brings the copies of a mounted server's features up to date.
    fn copy_from(&self, mounted: &Mounted) -> Copied {
        self.copy(mounted, || mounted.server.registry())
    }

    fn remove_copies_of(&self, mounted: &Mounted) -> ChangedFeatures {
        self.copy(mounted, Arc::default).changed
    }

    fn copy(&self, mounted: &Mounted, source: impl FnOnce() -> Arc<Registry>) -> Copied {
        let mut copied = Copied::default();
        // What is removed is dropped once the registry is unlocked, because what a handler holds may use the server.
        let mut removed = Removed::default();
        self.change_registry(|registry| {
            copied.copy_all(self, registry, &source(), mounted, &mut removed);
            true
        });
        copied
    }
}

/// Copies that were removed from a registry.
#[derive(Default)]
struct Removed {
    tools: Vec<Arc<Item<ToolEntry>>>,
    resources: Vec<Arc<Item<ResourceEntry>>>,
    templates: Vec<Arc<Item<TemplateEntry>>>,
    prompts: Vec<Arc<Item<PromptEntry>>>,
    methods: Vec<MethodItem>,
}

impl Copied {
    fn copy_all(
        &mut self,
        parent: &Inner,
        registry: &mut Registry,
        source: &Registry,
        mounted: &Mounted,
        removed: &mut Removed,
    ) {
        self.changed.tools = self.copy(registry, source, mounted, &mut removed.tools);
        self.changed.resources = self.copy(registry, source, mounted, &mut removed.resources)
            + self.copy(registry, source, mounted, &mut removed.templates);
        self.changed.prompts = self.copy(registry, source, mounted, &mut removed.prompts);
        let Removed { methods, .. } = removed;
        self.copy_methods(
            parent,
            &mut registry.requests,
            &source.requests,
            mounted.id,
            methods,
        );
        self.copy_methods(
            parent,
            &mut registry.notifications,
            &source.notifications,
            mounted.id,
            methods,
        );
    }

    /// Copies the enabled features of one kind, and removes copies of features that are gone. Returns the number of
    /// changes.
    fn copy<T: FeatureEntry>(
        &mut self,
        registry: &mut Registry,
        source: &Registry,
        mounted: &Mounted,
        removed: &mut Vec<Arc<Item<T>>>,
    ) -> usize {
        let wanted = T::list(source);
        let gone = T::list_mut(registry).remove_copies(|origin| {
            origin.mount != mounted.id
                || wanted
                    .get(&origin.name)
                    .is_some_and(|entry| Arc::ptr_eq(entry, &origin.entry))
        });
        let mut changes = gone.len();
        removed.extend(gone);
        let present: HashSet<Arc<str>> = T::list(registry)
            .all()
            .filter_map(|item| item.origin.as_ref())
            .filter(|origin| origin.mount == mounted.id)
            .map(|origin| origin.name.clone())
            .collect();
        for item in wanted.iter().filter(|item| !present.contains(&item.name)) {
            let (name, entry) = match prefixed(item, mounted.prefix.as_deref()) {
                Ok(prefixed) => prefixed,
                Err(error) => {
                    self.refused.push(error.to_string());
                    continue;
                }
            };
            let enabled = registry.enables(&*entry);
            let origin = Origin {
                mount: mounted.id,
                name: item.name.clone(),
                entry: item.entry.clone(),
            };
            if T::list_mut(registry).add_copy(Arc::clone(&name), entry, enabled, origin) {
                changes += 1;
            } else {
                self.refused
                    .push(format!("there is a {} {name} already", T::KIND.name()));
            }
        }
        changes
    }

    /// Copies custom methods, which keep their names.
    fn copy_methods(
        &mut self,
        parent: &Inner,
        methods: &mut Methods,
        source: &Methods,
        mount: MountId,
        removed: &mut Vec<MethodItem>,
    ) {
        methods.retain(|name, item| {
            let stays = item.mount != Some(mount)
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
                Some(present) if present.mount == Some(mount) => continue,
                Some(_) => self
                    .refused
                    .push(format!("method {name:?} has a handler already")),
                None => match parent.check_extension_of(&item.entry) {
                    Ok(()) => {
                        let entry = item.entry.clone();
                        let mount = Some(mount);
                        methods.insert(name.clone(), MethodItem { entry, mount });
                    }
                    Err(error) => self.refused.push(error.to_string()),
                },
            }
        }
    }
}

/// Returns the name and the entry of a feature with a prefix.
fn prefixed<T: FeatureEntry>(
    item: &Item<T>,
    prefix: Option<&str>,
) -> Result<(Arc<str>, Arc<T>), Error> {
    let Some(prefix) = prefix else {
        return Ok((item.name.clone(), item.entry.clone()));
    };
    let name = T::prefixed_key(prefix, &item.name);
    let entry = item.entry.with_key(&name)?;
    Ok((name.into(), Arc::new(entry)))
}

/// Returns the server that a mounted feature was registered at, with its name there; `None` for features of `server`
/// itself.
pub(super) fn source_of<T: FeatureEntry>(server: &Arc<Inner>, item: &Item<T>) -> Option<Source> {
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
            None => return Some(Source { server, name }),
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
