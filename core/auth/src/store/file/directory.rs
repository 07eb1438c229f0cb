//! A directory that only its owner can access. Files are opened relative to its descriptor and checked through their
//! own, so that nothing can change between check and use.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;

use super::super::StoreError;
use super::failed;

/// The age at which a partly written file counts as abandoned.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Permission bits that a directory must not have; files are checked more strictly.
const WRITABLE_BY_OTHERS: RawMode = 0o022;
const OPEN_TO_OTHERS: RawMode = 0o077;

/// An open directory that is safe to store secrets in.
pub(super) struct Directory {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl Directory {
    /// Opens `path`; `None` if it doesn't exist.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, StoreError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(descriptor) => descriptor,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(unsafe_error(
                    path,
                    "it is not a directory, or a symbolic link to one",
                ));
            }
            Err(error) => return Err(failed(path.to_owned(), "opened", error)),
        };
        let stat = rustix::fs::fstat(&descriptor)
            .map_err(|error| failed(path.to_owned(), "examined", error))?;
        check_owner(path, &stat)?;
        if RawMode::from(stat.st_mode) & WRITABLE_BY_OTHERS != 0 {
            return Err(unsafe_error(path, "others can write to it"));
        }
        Ok(Some(Self {
            path: path.to_owned(),
            descriptor,
        }))
    }

    /// Opens `path` and creates it if it doesn't exist.
    pub(super) fn make(path: &Path) -> Result<Self, StoreError> {
        if let Some(directory) = Self::open(path)? {
            return Ok(directory);
        }
        // Another process may create it at the same time; the result is the same.
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path);
        made.map_err(|error| failed(path.to_owned(), "made", error))?;
        Self::open(path)?.ok_or_else(|| failed(path.to_owned(), "opened", Errno::NOENT))
    }

    /// Reads at most `limit` bytes of the file `name`; `None` if it doesn't exist.
    pub(super) fn read(&self, name: &str, limit: usize) -> Result<Option<Vec<u8>>, StoreError> {
        // Opening something other than a file, such as a pipe, could block for ever.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let file = match self.open_file(name, flags) {
            Err(StoreError::File { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                return Ok(None);
            }
            file => file?,
        };
        let mut bytes = Vec::new();
        file.take(limit as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| failed(self.path.join(name), "read", error))?;
        if bytes.len() > limit {
            return Err(StoreError::Damaged(
                "the file is larger than any that mcpline writes",
            ));
        }
        Ok(Some(bytes))
    }

    /// Atomically replaces the file `name` with one that contains `bytes`.
    pub(super) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.sweep(name);
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(StoreError::other)?;
        let beside = format!("{name}.{}.new", super::hex(&random));
        let written = self.write(&beside, bytes).and_then(|()| {
            rustix::fs::renameat(&self.descriptor, &beside, &self.descriptor, name)
                .map_err(|error| failed(self.path.join(name), "replaced", error))
        });
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.descriptor, &beside, AtFlags::empty());
        }
        written?;
        self.sync()
    }

    /// Removes the file `name` if it exists.
    pub(super) fn remove(&self, name: &str) -> Result<(), StoreError> {
        match rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Ok(()) => self.sync(),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed(self.path.join(name), "removed", error)),
        }
    }

    /// Opens the lock file `name`. It is never removed: otherwise two processes could lock two files of that name.
    pub(super) fn open_lock_file(&self, name: &str) -> Result<LockFile, StoreError> {
        let file = self.open_file(name, OFlags::RDWR | OFlags::CREATE)?;
        Ok(LockFile {
            path: self.path.join(name),
            file,
        })
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let mut file = self.open_file(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        file.write_all(bytes)
            .and_then(|()| file.sync_all())
            .map_err(|error| failed(self.path.join(name), "written", error))
    }

    /// Opens a file that only its owner can access.
    fn open_file(&self, name: &str, flags: OFlags) -> Result<File, StoreError> {
        let path = || self.path.join(name);
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = match rustix::fs::openat(&self.descriptor, name, flags, mode) {
            Err(Errno::LOOP) => return Err(unsafe_error(&path(), "it is a symbolic link")),
            opened => opened.map_err(|error| failed(path(), "opened", error))?,
        };
        let stat = rustix::fs::fstat(&file).map_err(|error| failed(path(), "examined", error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(unsafe_error(&path(), "it is not a file"));
        }
        check_owner(&path(), &stat)?;
        if RawMode::from(stat.st_mode) & OPEN_TO_OTHERS != 0 {
            return Err(unsafe_error(
                &path(),
                "others than its owner have permissions on it",
            ));
        }
        Ok(File::from(file))
    }

    /// Flushes changed names to the disk.
    fn sync(&self) -> Result<(), StoreError> {
        match rustix::fs::fsync(&self.descriptor) {
            // Some file systems don't support this.
            Ok(()) | Err(Errno::INVAL | Errno::NOTSUP | Errno::BADF) => Ok(()),
            Err(error) => Err(failed(self.path.clone(), "written", error)),
        }
    }

    /// Removes temporary files of processes that ended while they wrote `name`.
    fn sweep(&self, name: &str) {
        let Ok(entries) = rustix::fs::Dir::read_from(&self.descriptor) else {
            return;
        };
        for entry in entries.flatten() {
            let found = entry.file_name().to_string_lossy();
            let is_left = found
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".new"));
            if is_left && self.is_abandoned(&found) {
                let _ = rustix::fs::unlinkat(&self.descriptor, entry.file_name(), AtFlags::empty());
            }
        }
    }

    fn is_abandoned(&self, name: &str) -> bool {
        let Ok(stat) = rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return false;
        };
        let Ok(now) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) else {
            return false;
        };
        let written = u64::try_from(stat.st_mtime).unwrap_or_default();
        now.as_secs().saturating_sub(written) > ABANDONED.as_secs()
    }
}

/// A file that one process at a time can lock.
pub(super) struct LockFile {
    path: PathBuf,
    file: File,
}

impl LockFile {
    /// Tries to lock the file and returns whether that succeeded. The lock ends when this is dropped or the process
    /// ends.
    pub(super) fn try_lock(&mut self) -> Result<bool, StoreError> {
        match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
            Err(error) => Err(failed(self.path.clone(), "locked", error)),
        }
    }
}

fn check_owner(path: &Path, stat: &Stat) -> Result<(), StoreError> {
    if stat.st_uid == rustix::process::geteuid().as_raw() {
        Ok(())
    } else {
        Err(unsafe_error(path, "it belongs to another user"))
    }
}

fn unsafe_error(path: &Path, reason: &str) -> StoreError {
    StoreError::Unsafe {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}
