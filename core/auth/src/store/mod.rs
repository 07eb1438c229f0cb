//! Stores for tokens and registrations between connections.

mod error;
mod file;
#[cfg(feature = "keyring")]
mod keyring;
mod memory;

use super::BoxFuture;

pub use error::StoreError;
pub use file::FileStore;
#[cfg(feature = "keyring")]
pub use keyring::KeyringStore;
pub use memory::MemoryStore;

/// Stores tokens and registrations. Values are secret: a store must not show them, not in its `Debug`, its errors or
/// its logs either.
///
/// Keys are arbitrary text, mostly with a URL, and not secret. Values are bytes. Several clients, also of several
/// processes, may use one store: what one saves, another loads.
pub trait TokenStore: Send + Sync {
    /// Loads the value that was last saved under `key`.
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>>;

    /// Replaces the value under `key`. Concurrent readers must see the old or the new value as a whole.
    fn save<'a>(&'a self, key: &'a str, value: &'a [u8]) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes the value under `key`; no error if there is none.
    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Takes a lock that is held while a token is refreshed, so that all who share the store refresh it once. Dropping
    /// the returned value releases it. Loading and saving need no lock. By default nothing is locked.
    fn lock<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Box<dyn Send>, StoreError>> {
        let _ = key;
        Box::pin(async { Ok(Box::new(()) as Box<dyn Send>) })
    }
}

/// A store with several owners.
impl<S: TokenStore + ?Sized> TokenStore for std::sync::Arc<S> {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        (**self).load(key)
    }

    fn save<'a>(&'a self, key: &'a str, value: &'a [u8]) -> BoxFuture<'a, Result<(), StoreError>> {
        (**self).save(key, value)
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        (**self).remove(key)
    }

    fn lock<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Box<dyn Send>, StoreError>> {
        (**self).lock(key)
    }
}
