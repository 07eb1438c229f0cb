//! A directory on systems without Unix modes and owners: the permissions of the user's profile apply.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::super::StoreError;
use super::failed;

/// A directory in the user's profile.
pub(super) struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Opens `path`; `None` if it doesn't exist.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, StoreError> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => Ok(Some(Self {
                path: path.to_owned(),
            })),
            Ok(_) => Err(not_safe(
                path,
                "it is not a directory, or a symbolic link to one",
            )),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(path.to_owned(), "opened", error)),
        }
    }

    /// Opens `path` and creates it if it doesn't exist.
    pub(super) fn make(path: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(path).map_err(|error| failed(path.to_owned(), "made", error))?;
        Self::open(path)?.ok_or_else(|| failed(path.to_owned(), "opened", ErrorKind::NotFound))
    }

    /// Reads at most `limit` bytes of the file `name`; `None` if it doesn't exist.
    pub(super) fn read(&self, name: &str, limit: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path.join(name);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() => {}
            Ok(_) => return Err(not_safe(&path, "it is not a file")),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(path, "examined", error)),
        }
        let mut bytes = Vec::new();
        let read =
            File::open(&path).and_then(|file| file.take(limit as u64 + 1).read_to_end(&mut bytes));
        match read {
            Ok(length) if length > limit => {
                Err(StoreError::Damaged("the file is larger than any of ours"))
            }
            Ok(_) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(path, "read", error)),
        }
    }

    /// Atomically replaces the file `name` with one that contains `bytes`.
    pub(super) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(StoreError::other)?;
        let beside = self
            .path
            .join(format!("{name}.{}.new", super::hex(&random)));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&beside)
            .and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&beside, self.path.join(name)));
        written.map_err(|error| {
            let _ = fs::remove_file(&beside);
            failed(self.path.join(name), "written", error)
        })
    }

    /// Removes the file `name` if it exists.
    pub(super) fn remove(&self, name: &str) -> Result<(), StoreError> {
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(failed(self.path.join(name), "removed", error))
            }
            _ => Ok(()),
        }
    }

    /// The lock file `name`.
    pub(super) fn open_lock_file(&self, name: &str) -> Result<LockFile, StoreError> {
        Ok(LockFile {
            path: self.path.join(name),
            held: None,
        })
    }
}

/// A file that one process at a time can lock: opening it excludes all others.
pub(super) struct LockFile {
    path: PathBuf,
    held: Option<File>,
}

impl LockFile {
    /// Tries to lock the file and returns whether that succeeded. The lock ends when this is dropped or the process
    /// ends.
    pub(super) fn try_lock(&mut self) -> Result<bool, StoreError> {
        /// `ERROR_SHARING_VIOLATION`.
        const SHARED: i32 = 32;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(windows)]
        std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 0);
        match options.open(&self.path) {
            Ok(file) => {
                self.held = Some(file);
                Ok(true)
            }
            Err(error) if error.raw_os_error() == Some(SHARED) => Ok(false),
            Err(error) => Err(failed(self.path.clone(), "locked", error)),
        }
    }
}

fn not_safe(path: &Path, reason: &str) -> StoreError {
    StoreError::Unsafe {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}
