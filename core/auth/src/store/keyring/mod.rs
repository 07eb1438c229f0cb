//! A token store in the system's keyring: Keychain, Credential Manager, or a Secret Service over D-Bus.

mod entries;
mod system;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keyring_core::CredentialStore;
use tokio::sync::oneshot;

use crate::BoxFuture;

use super::file::FileStore;
use super::memory::Locks;
use super::{StoreError, TokenStore};
use entries::Entries;

/// Stores tokens in the system's keyring, under a name of the host's. Needs the cargo feature `keyring`.
///
/// A system may ask its user to unlock the keyring. Values that are too long for a system (2560 bytes on Windows) are
/// stored in pieces. Keyrings have no locks between processes, so the lock is a file in a directory of the user
/// ([`lock_directory`](Self::lock_directory)); without such a directory it works within this process only.
#[derive(Clone)]
pub struct KeyringStore {
    service: Arc<str>,
    system: Arc<Mutex<Option<Arc<CredentialStore>>>>,
    piece: usize,
    locks: Locks,
    lock_files: Option<FileStore>,
    timeout: Duration,
}

impl KeyringStore {
    /// How long a keyring operation may take by default: the user may have to enter a password.
    pub const TIMEOUT: Duration = Duration::from_secs(120);

    /// A store in the system's keyring. `service` groups its entries there, for example the name of the program. The
    /// keyring is connected to on first use.
    pub fn new(service: impl Into<String>) -> Self {
        Self {
            service: service.into().into(),
            system: Arc::default(),
            piece: system::LARGEST,
            locks: Locks::default(),
            lock_files: system::lock_directory().map(FileStore::new),
            timeout: Self::TIMEOUT,
        }
    }

    /// The directory for lock files, which exclude other processes. By default, a directory of mcpline's in
    /// `XDG_RUNTIME_DIR` or in the user's state directory.
    #[must_use]
    pub fn lock_directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.lock_files = Some(FileStore::new(path));
        self
    }

    /// How long a keyring operation may take, [`TIMEOUT`](Self::TIMEOUT) by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the system's keyring, and connects to it first if necessary.
    fn entries(&self) -> Result<Entries, keyring_core::Error> {
        let mut connected = self.system.lock().unwrap_or_else(PoisonError::into_inner);
        let store = match &*connected {
            Some(store) => store.clone(),
            None => connected.insert(system::connect()?).clone(),
        };
        Ok(Entries::new(store, self.service.clone(), self.piece))
    }

    /// Runs a keyring operation on its own thread: it may wait for a user, and the runtime must not wait for that
    /// thread when it shuts down.
    async fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Entries) -> Result<T, KeyringError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (done, result) = oneshot::channel();
        let store = self.clone();
        let run = move || {
            let acted = store
                .entries()
                .map_err(KeyringError::from)
                .and_then(|entries| act(&entries));
            if matches!(
                &acted,
                Err(KeyringError::Keyring(keyring_core::Error::PlatformFailure(
                    _
                )))
            ) {
                // The keyring service may have been restarted.
                store
                    .system
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take();
            }
            // The caller may be gone.
            let _ = done.send(acted.map_err(KeyringError::into_store_error));
        };
        std::thread::Builder::new()
            .name("mcpline-keyring".to_owned())
            .spawn(run)
            .map_err(StoreError::other)?;
        match tokio::time::timeout(self.timeout, result).await {
            Ok(Ok(acted)) => acted,
            Ok(Err(_)) => Err(StoreError::Keyring(
                "the thread that called it panicked".to_owned(),
            )),
            Err(_) => Err(StoreError::Keyring(format!(
                "it did not answer within {} seconds",
                self.timeout.as_secs()
            ))),
        }
    }
}

impl TokenStore for KeyringStore {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        let key = key.to_owned();
        Box::pin(self.with(move |entries| entries.load(&key)))
    }

    fn save<'a>(&'a self, key: &'a str, value: &'a [u8]) -> BoxFuture<'a, Result<(), StoreError>> {
        let (key, value) = (key.to_owned(), value.to_vec());
        Box::pin(self.with(move |entries| entries.save(&key, &value)))
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        let key = key.to_owned();
        Box::pin(self.with(move |entries| entries.remove(&key)))
    }

    fn lock<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Box<dyn Send>, StoreError>> {
        Box::pin(async move {
            match &self.lock_files {
                Some(files) => files.lock(&format!("{}\n{key}", self.service)).await,
                None => Ok(Box::new(self.locks.lock(key).await) as Box<dyn Send>),
            }
        })
    }
}

impl fmt::Debug for KeyringStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyringStore")
            .field("service", &self.service)
            .field("lock_files", &self.lock_files)
            .finish_non_exhaustive()
    }
}

/// Why a keyring operation failed.
enum KeyringError {
    Keyring(keyring_core::Error),
    Damaged(&'static str),
    Other(StoreError),
}

impl KeyringError {
    fn into_store_error(self) -> StoreError {
        match self {
            // Its text would list all of them.
            Self::Keyring(keyring_core::Error::Ambiguous(_)) => StoreError::Keyring(
                "it has several entries with the same name: remove them".to_owned(),
            ),
            Self::Keyring(error) => StoreError::Keyring(error.to_string()),
            Self::Damaged(what) => StoreError::Damaged(what),
            Self::Other(error) => error,
        }
    }
}

impl From<keyring_core::Error> for KeyringError {
    fn from(error: keyring_core::Error) -> Self {
        Self::Keyring(error)
    }
}
