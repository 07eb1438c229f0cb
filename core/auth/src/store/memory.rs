//! A token store in memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Mutex as AsyncMutex;

use crate::BoxFuture;

use super::{StoreError, TokenStore};

/// Stores tokens in memory: the user has to consent again after a restart. Clones share their values.
#[derive(Clone, Default)]
pub struct MemoryStore {
    values: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    locks: Locks,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, Vec<u8>>) -> T) -> T {
        act(&mut self.values.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl TokenStore for MemoryStore {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move { Ok(self.with(|values| values.get(key).cloned())) })
    }

    fn save<'a>(&'a self, key: &'a str, value: &'a [u8]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.with(|values| values.insert(key.to_owned(), value.to_vec()));
            Ok(())
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.with(|values| values.remove(key));
            Ok(())
        })
    }

    fn lock<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Box<dyn Send>, StoreError>> {
        Box::pin(async move { Ok(Box::new(self.locks.lock(key).await) as Box<dyn Send>) })
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("kept", &self.with(|values| values.len()))
            .finish()
    }
}

/// One lock per key, kept as long as it is held or awaited.
#[derive(Debug, Clone, Default)]
pub(super) struct Locks {
    by_key: Arc<Mutex<HashMap<String, Weak<AsyncMutex<()>>>>>,
}

impl Locks {
    /// Waits for the lock of `key`. Its holder is a client that refreshes tokens, which takes a limited time.
    pub(super) async fn lock(&self, key: &str) -> impl Send + 'static {
        let lock = {
            let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
            by_key.retain(|_, lock| lock.strong_count() > 0);
            if let Some(lock) = by_key.get(key).and_then(Weak::upgrade) {
                lock
            } else {
                let lock = Arc::new(AsyncMutex::new(()));
                by_key.insert(key.to_owned(), Arc::downgrade(&lock));
                lock
            }
        };
        lock.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[runtimes::test]
    async fn what_was_saved_is_loaded_until_it_is_removed() {
        let store = MemoryStore::new();
        assert_eq!(store.load("k").await.expect("loaded"), None);
        store.save("k", b"one").await.expect("saved");
        store.save("k", b"two").await.expect("saved");
        let shared = store.clone();
        assert_eq!(
            shared.load("k").await.expect("loaded").as_deref(),
            Some(&b"two"[..])
        );
        shared.remove("k").await.expect("removed");
        shared.remove("k").await.expect("removed again");
        assert_eq!(store.load("k").await.expect("loaded"), None);
    }

    #[runtimes::test]
    async fn one_at_a_time_holds_the_lock_of_a_key() {
        let store = MemoryStore::new();
        let holders = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..50)
            .map(|_| {
                let (store, holders) = (store.clone(), holders.clone());
                tokio::spawn(async move {
                    let held = store.lock("k").await.expect("locked");
                    assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                    tokio::task::yield_now().await;
                    holders.fetch_sub(1, Ordering::SeqCst);
                    drop(held);
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("held alone");
        }
        let _one = store.lock("one").await.expect("locked");
        let _other = store.lock("other").await.expect("not held up by another");
    }

    #[runtimes::test]
    async fn values_are_not_shown() {
        let store = MemoryStore::new();
        store.save("k", b"secret").await.expect("saved");
        assert_eq!(format!("{store:?}"), "MemoryStore { kept: 1 }");
    }
}
