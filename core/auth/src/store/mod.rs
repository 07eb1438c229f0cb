//! Where tokens and registrations are kept between one connection and the next.

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

/// Where tokens and registrations are kept. Values are secret: a store shows them to nobody, in its `Debug`, its errors
/// or its logs neither.
///
/// Keys are text of any kind, a URL for the most part, and not secret. Values are bytes. Several clients, also of several
/// processes, may use one store: what one saves, another loads.
pub trait TokenStore: Send + Sync {
    /// What was saved last under `key`.
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>>;

    /// Keeps `value` in place of what was there. Whoever loads sees the whole of one or of the other.
    fn save<'a>(&'a self, key: &'a str, value: &'a [u8]) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Forgets what was saved under `key`; no error if there is nothing.
    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Held while a token is refreshed, so that those who share the store refresh once; dropping what is returned lets
    /// go. Loading and saving need no lock. By default nobody is excluded.
    fn lock<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Box<dyn Send>, StoreError>> {
        let _ = key;
        Box::pin(async { Ok(Box::new(()) as Box<dyn Send>) })
    }
}

/// A store that several hold.
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
