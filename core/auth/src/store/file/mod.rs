//! A store in files that only their owner can read.

#[cfg(unix)]
mod directory;
#[cfg(not(unix))]
#[path = "portable.rs"]
mod directory;
#[cfg(all(test, unix))]
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

/// How long a value may be. Tokens have some kilobytes at most; what has more is not ours.
const LARGEST: usize = 1024 * 1024;

/// How soon a lock that somebody else holds is tried again, at first and at last.
const FIRST_TRY: Duration = Duration::from_millis(5);
const LAST_TRY: Duration = Duration::from_millis(100);

/// What a file begins with: the format, and its version.
const FORMAT: &str = "mcpline-store 1 ";

/// Keeps each value in a file of its own, in a directory that only its owner gets at.
///
/// The directory is made when it is first written to, with mode 0700, and files have mode 0600. What others could read, or
/// have put there, is not used: a symbolic link in place of the directory or a file, a file that others can read or that
/// belongs to somebody else, a directory that others can write to, are [`StoreError::Unsafe`]. A file is written beside the
/// one it replaces and takes its place at once, so that whoever reads sees one or the other, also after a crash. Elsewhere
/// than on Unix what others can read is as the user's profile has it.
///
/// The lock holds between all processes that use the same directory; it ends with the process that has it. Clones share
/// what they keep.
///
/// Values are not encrypted: who can read the files of this user has them.
#[derive(Debug, Clone)]
pub struct FileStore {
    path: Arc<Path>,
    patience: Duration,
    locks: Locks,
}

impl FileStore {
    /// How long a lock is waited for by default: longer than any refresh takes that ends at all.
    pub const PATIENCE: Duration = Duration::from_secs(60);

    /// A store in the directory `path`, which need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into().into(),
            patience: Self::PATIENCE,
            locks: Locks::default(),
        }
    }

    /// How long a lock is waited for, [`PATIENCE`](Self::PATIENCE) by default; then it fails with
    /// [`StoreError::Locked`].
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Does something with files, on a thread that may wait for a disk.
    async fn on_disk<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Path) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let path = self.path.clone();
        let done = background::blocking(move || act(&path)).await;
        done.unwrap_or_else(|| Err(StoreError::other("the files could not be looked at")))
    }

    async fn acquire(&self, key: &str) -> Result<Box<dyn Send>, StoreError> {
        let until = Instant::now() + self.patience;
        let late = || StoreError::Locked(self.patience);
        // Those of this process wait in line; one of them at a time asks the system.
        let turn = tokio::time::timeout_at(until, self.locks.lock(key));
        let turn = turn.await.map_err(|_| late())?;
        let name = file_name(key);
        let lock =
            self.on_disk(move |path| Directory::make(path)?.lock_file(&format!("{name}.lock")));
        let mut lock = lock.await?;
        let mut pause = FIRST_TRY;
        // Waiting within the system would keep a thread that nothing can take back.
        while !lock.try_lock()? {
            if Instant::now() + pause > until {
                return Err(late());
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_TRY);
        }
        // Let go of in this order.
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
                Some(written) => unwrapped(written).map(Some),
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
                return Err(StoreError::other("a value of more than 1 MiB is not kept"));
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

/// The name of the file for `key`: keys have any length and any characters, names don't.
fn file_name(key: &str) -> String {
    hex(&Sha256::digest(key))
}

/// What stands before a value, so that a part of it is not taken for the whole.
fn header(value: &[u8]) -> String {
    format!("{FORMAT}{}\n", hex(&Sha256::digest(value)))
}

/// The value of a file, if it is whole.
fn unwrapped(mut written: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    let damaged = StoreError::Damaged("the file is not as it was written");
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
        // Writing to a string doesn't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A file or directory, and what could not be done with it.
fn failed(path: PathBuf, action: &'static str, source: impl Into<std::io::Error>) -> StoreError {
    StoreError::File {
        path,
        action,
        source: source.into(),
    }
}
