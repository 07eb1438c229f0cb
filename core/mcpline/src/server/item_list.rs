//! A list of features of one kind, in the order of registration, found by name.

use std::collections::HashMap;

use foldhash::quality::RandomState;

use crate::sync::Arc;

use super::feature_source::FeatureSources;
use super::mounts::MountId;

/// Items of one kind in the order of registration. The number of an item never changes, so a cursor that contains it
/// stays valid whatever is added or removed.
pub(crate) struct ItemList<T> {
    items: Vec<Arc<Item<T>>>,
    by_name: HashMap<Arc<str>, Arc<Item<T>>, RandomState>,
    next: u64,
}

/// One feature, with what the registry knows of it.
pub(crate) struct Item<T> {
    pub(crate) number: u64,
    pub(crate) name: Arc<str>,
    pub(crate) entry: Arc<T>,
    /// Whether clients see and may use the feature.
    pub(crate) enabled: bool,
    /// Where the feature comes from; `None` if it was registered here.
    pub(crate) origin: Option<CopySource<T>>,
}

/// The feature of another server that an item is a copy of.
pub(crate) struct CopySource<T> {
    pub(crate) mount: MountId,
    /// The number of the item at that server, which it keeps when it is changed.
    pub(crate) number: u64,
    /// The name of the feature at that server.
    pub(crate) name: Arc<str>,
    pub(crate) entry: Arc<T>,
    /// Whether it is enabled at that server.
    pub(crate) enabled: bool,
    /// That server, and those that the feature comes from there.
    pub(crate) sources: FeatureSources,
}

/// What becomes of a copy when its original has changed.
pub(crate) enum CopyChange<T> {
    /// It is up to date.
    None,
    /// Its original is gone.
    Remove,
    /// It gets this name, entry and origin, and keeps its place in the list.
    Replace(Arc<str>, Arc<T>, CopySource<T>),
}

impl<T> Clone for CopySource<T> {
    fn clone(&self) -> Self {
        Self {
            mount: self.mount,
            number: self.number,
            name: self.name.clone(),
            entry: self.entry.clone(),
            enabled: self.enabled,
            sources: self.sources.clone(),
        }
    }
}

impl<T> Clone for ItemList<T> {
    fn clone(&self) -> Self {
        Self {
            items: self.items.clone(),
            by_name: self.by_name.clone(),
            next: self.next,
        }
    }
}

impl<T> Default for ItemList<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            by_name: HashMap::default(),
            next: 1,
        }
    }
}

impl<T> ItemList<T> {
    /// Adds an item. Returns `false` and leaves it in `entry` if the name is taken.
    pub(crate) fn add(&mut self, name: &str, entry: &mut Option<T>, enabled: bool) -> bool {
        if self.by_name.contains_key(name) {
            return false;
        }
        let Some(entry) = entry.take() else {
            return false;
        };
        self.insert(name.into(), Arc::new(entry), enabled, None);
        true
    }

    /// Adds the copy of another server's feature. Returns `false` if the name is taken.
    pub(crate) fn add_copy(
        &mut self,
        name: Arc<str>,
        entry: Arc<T>,
        enabled: bool,
        origin: CopySource<T>,
    ) -> bool {
        if self.by_name.contains_key(&name) {
            return false;
        }
        self.insert(name, entry, enabled, Some(origin));
        true
    }

    fn insert(
        &mut self,
        name: Arc<str>,
        entry: Arc<T>,
        enabled: bool,
        origin: Option<CopySource<T>>,
    ) {
        let item = Arc::new(Item {
            number: self.next,
            name: name.clone(),
            entry,
            enabled,
            origin,
        });
        self.next += 1;
        self.by_name.insert(name, item.clone());
        self.items.push(item);
    }

    /// Removes an item that was registered here.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Arc<T>> {
        if self.by_name.get(name)?.origin.is_some() {
            return None;
        }
        let item = self.by_name.remove(name)?;
        self.items.retain(|other| !Arc::ptr_eq(other, &item));
        Some(item.entry.clone())
    }

    /// Applies changes to copies. A copy whose new name is taken is removed. Returns the items that were removed or
    /// replaced.
    pub(crate) fn change_copies(
        &mut self,
        change: impl Fn(&Item<T>, &CopySource<T>) -> CopyChange<T>,
        is_enabled: impl Fn(&str, &T) -> bool,
    ) -> Vec<Arc<Item<T>>> {
        let mut old_items = Vec::new();
        let Self { items, by_name, .. } = self;
        items.retain_mut(|place| {
            let Some(origin) = &place.origin else {
                return true;
            };
            let (name, entry, origin) = match change(place, origin) {
                CopyChange::None => return true,
                CopyChange::Remove => {
                    by_name.remove(&place.name);
                    old_items.push(place.clone());
                    return false;
                }
                CopyChange::Replace(name, entry, origin) => (name, entry, origin),
            };
            by_name.remove(&place.name);
            if by_name.contains_key(&name) {
                old_items.push(place.clone());
                return false;
            }
            let item = Arc::new(Item {
                number: place.number,
                name: name.clone(),
                enabled: origin.enabled && is_enabled(&name, &entry),
                entry,
                origin: Some(origin),
            });
            by_name.insert(name, item.clone());
            old_items.push(std::mem::replace(place, item));
            true
        });
        old_items
    }

    /// Puts another entry, possibly with another name, in the place of an item. The new name must be free.
    /// Returns the old item.
    pub(crate) fn replace(
        &mut self,
        name: &str,
        new_name: Arc<str>,
        entry: Arc<T>,
        enabled: bool,
    ) -> Option<Arc<Item<T>>> {
        let old = self.by_name.remove(name)?;
        let item = Arc::new(Item {
            number: old.number,
            name: new_name.clone(),
            entry,
            enabled,
            origin: old.origin.clone(),
        });
        self.by_name.insert(new_name, item.clone());
        if let Some(place) = self.items.iter_mut().find(|item| Arc::ptr_eq(item, &old)) {
            *place = item;
        }
        Some(old)
    }

    /// Sets for each item whether it is enabled; copies of disabled features stay disabled. Returns the number of items that
    /// changed.
    pub(crate) fn set_enabled(&mut self, is_enabled: impl Fn(&Item<T>) -> bool) -> usize {
        let mut changed = 0;
        for place in &mut self.items {
            let at_origin = place.origin.as_ref().is_none_or(|origin| origin.enabled);
            let enabled = at_origin && is_enabled(place);
            if enabled == place.enabled {
                continue;
            }
            let item = Arc::new(Item {
                number: place.number,
                name: place.name.clone(),
                entry: place.entry.clone(),
                enabled,
                origin: place.origin.clone(),
            });
            self.by_name.insert(place.name.clone(), item.clone());
            *place = item;
            changed += 1;
        }
        changed
    }

    /// Returns the enabled feature with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<T>> {
        let item = self.by_name.get(name)?;
        item.enabled.then_some(&item.entry)
    }

    /// Returns the item with this name, enabled or not.
    pub(crate) fn item(&self, name: &str) -> Option<&Arc<Item<T>>> {
        self.by_name.get(name)
    }

    /// Returns the enabled items in the order of registration.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Item<T>>> {
        self.items.iter().filter(|item| item.enabled)
    }

    /// Returns all items in the order of registration, also disabled ones.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Item<T>>> {
        self.items.iter()
    }

    /// Whether there are no items, not even disabled ones.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}
