//! A token store in files that only their owner can read.

#[cfg(unix)]
mod directory;
#[cfg(windows)]
#[path = "windows_directory.rs"]
mod directory;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use directory::Directory;
use mcpline_runtime::background;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::BoxFuture;

use super::memory::Locks;
use super::{StoreError, TokenStore};

/// The largest value. Tokens have a few kilobytes at most; anything larger is not from this store.
const LARGEST: usize = 1024 * 1024;

/// The first and the longest pause between attempts to take a lock.
const FIRST_TRY: Duration = Duration::from_millis(5);
const LAST_TRY: Duration = Duration::from_millis(100);

/// The first bytes of a file: its format and version.
const FORMAT: &str = "mcpline-store 1 ";

/// Stores each value in its own file, in a directory that only its owner can access.
///
/// The directory is created on the first write, with mode 0700; files have mode 0600. Anything that other users could
/// read or have created is rejected with [`StoreError::Unsafe`]: a symbolic link in place of the directory or a file, a
/// file that others can read or that belongs to another user, a directory that others can write to. A value is written
/// to a temporary file that then replaces the old one atomically, so that readers see one or the other, also after a
/// crash. On Windows, access control lists take the place of modes: directory and files belong to this user, and only it and
/// the system have access. An entry for any other user but administrators is rejected, as on Unix.
///
/// The lock works between all processes that use the same directory and ends with the process that holds it. Clones
/// share their values.
///
/// Values are not encrypted: every process that can read this user's files can read them.
#[derive(Debug, Clone)]
pub struct FileStore {
    path: Arc<Path>,
    lock_timeout: Duration,
    locks: Locks,
}

impl FileStore {
    /// How long to wait for a lock by default: longer than any refresh that ends at all.
    pub const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

    /// A store in the directory `path`, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into().into(),
            lock_timeout: Self::LOCK_TIMEOUT,
            locks: Locks::default(),
        }
    }

    /// How long to wait for a lock before failing with [`StoreError::Locked`]; [`LOCK_TIMEOUT`](Self::LOCK_TIMEOUT) by default.
    #[must_use]
    pub fn lock_timeout(mut self, lock_timeout: Duration) -> Self {
        self.lock_timeout = lock_timeout;
        self
    }

    /// Runs a file operation on a thread that may block.
    async fn on_disk<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Path) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let path = self.path.clone();
        let done = background::blocking(move || act(&path)).await;
        done.unwrap_or_else(|| {
            Err(StoreError::other(
                "the file operation panicked, or the runtime is shutting down",
            ))
        })
    }

    async fn acquire(&self, key: &str) -> Result<Box<dyn Send>, StoreError> {
        let until = Instant::now() + self.lock_timeout;
        let late = || StoreError::Locked(self.lock_timeout);
        // Callers in this process queue up, and only the first one polls the file lock.
        let turn = tokio::time::timeout_at(until, self.locks.lock(key));
        let turn = turn.await.map_err(|_| late())?;
        let name = file_name(key);
        let lock = self
            .on_disk(move |path| Directory::make(path)?.open_lock_file(&format!("{name}.lock")));
        let mut lock = lock.await?;
        let mut pause = FIRST_TRY;
        // Blocking in the system call would occupy a thread that can't be cancelled.
        while !lock.try_lock()? {
            if Instant::now() + pause > until {
                return Err(late());
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_TRY);
        }
        // Released in this order.
        Ok(Box::new((lock, turn)))
    }
}

impl TokenStore for FileStore {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        let name = file_name(key);
        Box::pin(self.on_disk(move |path| {
            let Some(directory) = Directory::open(path)? else {
                return Ok(None);
            };
            match directory.read(&name, LARGEST + header(b"").len())? {
                Some(written) => strip_header(written).map(Some),
                None => Ok(None),
            }
        }))
    }

    fn save<'a>(&'a self, key: &'a str, value: &'a [u8]) -> BoxFuture<'a, Result<(), StoreError>> {
        let name = file_name(key);
        let written = [header(value).as_bytes(), value].concat();
        let fits = value.len() <= LARGEST;
        Box::pin(self.on_disk(move |path| {
            if !fits {
                return Err(StoreError::other(
                    "the value is larger than 1 MiB, the limit of this store",
                ));
            }
            Directory::make(path)?.replace(&name, &written)
        }))
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        let name = file_name(key);
        Box::pin(self.on_disk(move |path| match Directory::open(path)? {
            Some(directory) => directory.remove(&name),
            None => Ok(()),
        }))
    }

    fn lock<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Box<dyn Send>, StoreError>> {
        Box::pin(self.acquire(key))
    }
}

/// The file name for `key`: keys have any length and characters, file names don't.
fn file_name(key: &str) -> String {
    hex(&Sha256::digest(key))
}

/// The header before a value, which reveals a truncated file.
fn header(value: &[u8]) -> String {
    format!("{FORMAT}{}\n", hex(&Sha256::digest(value)))
}

/// The value in a file, if it is complete.
fn strip_header(mut written: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    let damaged = StoreError::Damaged("the header or the checksum of the file is wrong");
    let length = header(b"").len();
    if written.len() < length {
        return Err(damaged);
    }
    let value = written.split_off(length);
    if written == header(&value).as_bytes() {
        Ok(value)
    } else {
        Err(damaged)
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The error for an action on a file or directory.
fn failed(path: PathBuf, action: &'static str, source: impl Into<std::io::Error>) -> StoreError {
    StoreError::File {
        path,
        action,
        source: source.into(),
    }
}
