//! A directory on Windows that only its user can access. Files are checked through their own handles, so that nothing can
//! change between check and use.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::windows::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use mcpline_windows::{
    OtherUsersAccess, create_private_directory, create_private_file, lock_private_file,
};

use super::super::StoreError;
use super::failed;

/// The age at which a partly written file counts as abandoned.
const ABANDONED: Duration = Duration::from_secs(3600);

/// How long to wait until others have closed a file that is to be replaced, and between attempts. Files have a few kilobytes.
const IN_USE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);
/// `ERROR_SHARING_VIOLATION`.
const SHARING_VIOLATION: i32 = 32;

/// `FILE_FLAG_OPEN_REPARSE_POINT`: opens a link itself, not what it leads to.
const OPEN_LINK: u32 = 0x0020_0000;
/// `FILE_FLAG_BACKUP_SEMANTICS`: opens directories too.
const OPEN_DIRECTORY: u32 = 0x0200_0000;
/// `READ_CONTROL | FILE_READ_ATTRIBUTES`: the rights to examine it.
const EXAMINE: u32 = 0x0002_0080;
/// `FILE_ATTRIBUTE_REPARSE_POINT`.
const LINK: u32 = 0x0400;

/// A directory that was found to be safe to store secrets in.
pub(super) struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Opens `path`; `None` if it doesn't exist.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, StoreError> {
        let opened = OpenOptions::new()
            .access_mode(EXAMINE)
            .custom_flags(OPEN_LINK | OPEN_DIRECTORY)
            .open(path);
        let directory = match opened {
            Ok(directory) => directory,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(path.to_owned(), "opened", error)),
        };
        let found = directory
            .metadata()
            .map_err(|error| failed(path.to_owned(), "examined", error))?;
        if !found.is_dir() || found.file_attributes() & LINK != 0 {
            return Err(unsafe_error(
                path,
                "it is not a directory, or a symbolic link to one",
            ));
        }
        let access = access_of_others(path, &directory)?;
        if access.can_change {
            return Err(unsafe_error(path, "others can write to it"));
        }
        Ok(Some(Self {
            path: path.to_owned(),
        }))
    }

    /// Opens `path` and creates it if it doesn't exist.
    pub(super) fn make(path: &Path) -> Result<Self, StoreError> {
        if let Some(directory) = Self::open(path)? {
            return Ok(directory);
        }
        let parents = path.parent().map_or(Ok(()), fs::create_dir_all);
        match parents.and_then(|()| create_private_directory(path)) {
            Ok(()) => {}
            // Another process may create it at the same time; the result is the same.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(path.to_owned(), "made", error)),
        }
        Self::open(path)?.ok_or_else(|| failed(path.to_owned(), "opened", ErrorKind::NotFound))
    }

    /// Reads at most `limit` bytes of the file `name`; `None` if it doesn't exist.
    pub(super) fn read(&self, name: &str, limit: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path.join(name);
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(OPEN_LINK | OPEN_DIRECTORY)
            .open(&path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(path, "opened", error)),
        };
        check_file(&path, &file)?;
        let mut bytes = Vec::new();
        file.take(limit as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| failed(path, "read", error))?;
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
        let beside = self
            .path
            .join(format!("{name}.{}.new", super::hex(&random)));
        let written = create_private_file(&beside)
            .and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            })
            .and_then(|()| replace_file(&beside, &self.path.join(name)));
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

    /// Removes temporary files of processes that ended while they wrote `name`.
    fn sweep(&self, name: &str) {
        let Ok(entries) = fs::read_dir(&self.path) else {
            return;
        };
        for entry in entries.flatten() {
            let found = entry.file_name().to_string_lossy().into_owned();
            let is_left = found
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".new"));
            if is_left && is_abandoned(&entry) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Renames a file, in place of one that other processes may have open: those that read it, and scanners for viruses. The system
/// refuses that while they do, unless the file system and they allow it.
fn replace_file(from: &Path, to: &Path) -> std::io::Result<()> {
    let until = Instant::now() + IN_USE;
    loop {
        match fs::rename(from, to) {
            // Refused alike, and always, if it is a directory.
            Err(error) if is_in_use(&error) && Instant::now() < until && !to.is_dir() => {
                std::thread::sleep(PAUSE);
            }
            renamed => return renamed,
        }
    }
}

fn is_in_use(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied || error.raw_os_error() == Some(SHARING_VIOLATION)
}

fn is_abandoned(entry: &fs::DirEntry) -> bool {
    let written = entry.metadata().and_then(|found| found.modified());
    written.is_ok_and(|written| {
        SystemTime::now()
            .duration_since(written)
            .is_ok_and(|age| age > ABANDONED)
    })
}

/// A file that one process at a time can lock: while it is open, nothing else can open it.
pub(super) struct LockFile {
    path: PathBuf,
    held: Option<File>,
}

impl LockFile {
    /// Tries to lock the file and returns whether that succeeded. The lock ends when this is dropped or the process
    /// ends.
    pub(super) fn try_lock(&mut self) -> Result<bool, StoreError> {
        let opened = lock_private_file(&self.path)
            .map_err(|error| failed(self.path.clone(), "locked", error))?;
        if let Some(file) = &opened {
            check_file(&self.path, file)?;
        }
        self.held = opened;
        Ok(self.held.is_some())
    }
}

/// Refuses what is not a file, and what others have access to.
fn check_file(path: &Path, file: &File) -> Result<(), StoreError> {
    let found = file
        .metadata()
        .map_err(|error| failed(path.to_owned(), "examined", error))?;
    if found.file_attributes() & LINK != 0 {
        return Err(unsafe_error(path, "it is a symbolic link"));
    }
    if !found.is_file() {
        return Err(unsafe_error(path, "it is not a file"));
    }
    let access = access_of_others(path, file)?;
    if access.can_read || access.can_change {
        return Err(unsafe_error(
            path,
            "others than its owner have permissions on it",
        ));
    }
    Ok(())
}

/// Returns what others may do with it, unless it belongs to another user.
fn access_of_others(path: &Path, file: &File) -> Result<OtherUsersAccess, StoreError> {
    let access =
        OtherUsersAccess::of(file).map_err(|error| failed(path.to_owned(), "examined", error))?;
    if access.is_owner {
        return Err(unsafe_error(path, "it belongs to another user"));
    }
    Ok(access)
}

fn unsafe_error(path: &Path, reason: &str) -> StoreError {
    StoreError::Unsafe {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}
