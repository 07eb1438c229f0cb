//! The directory of a service: where it is, whether it is safe, and the names of its files.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::address::ServiceAddress;
use crate::error::LocalError;

/// The version of the layout: processes that use different layouts never read each other's files.
const LAYOUT: &str = "1";

/// Permissions of all directories: nothing for other users.
const MODE: u32 = 0o700;

/// The permissions of others to write, and the bit that keeps them from renaming what is not theirs.
const WRITABLE_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// The directory of a service.
#[derive(Debug)]
pub(crate) struct ServiceDirectory {
    /// The directories that are checked, the outer one first.
    checked: Vec<PathBuf>,
    /// `ROOT/1`.
    layout: PathBuf,
    /// The first part of the names of temporary files of this process.
    own: String,
    temporary_files: AtomicU64,
    /// The names of locks that a stopped process keeps. A process waits once for `LOCK_TIMEOUT`, and then for less.
    given_up_locks: Mutex<BTreeSet<String>>,
}

impl ServiceDirectory {
    /// Creates the directory at this address unless it exists, and checks that no other user can read it, or
    /// replace it in its parent.
    pub(crate) fn open(address: ServiceAddress, own: String) -> Result<Self, LocalError> {
        let checked = match address {
            ServiceAddress::Path(path) => vec![normalized(&path)?],
            ServiceAddress::Name(name) => {
                let services = services();
                vec![services.clone(), services.join(name)]
            }
        };
        let layout = checked.last().map(|root| root.join(LAYOUT));
        let directory = Self {
            checked,
            layout: layout.unwrap_or_default(),
            own,
            temporary_files: AtomicU64::new(0),
            given_up_locks: Mutex::default(),
        };
        directory.create()?;
        Ok(directory)
    }

    /// Creates what is missing, and checks the rest.
    pub(crate) fn create(&self) -> Result<(), LocalError> {
        for (index, path) in self.checked.iter().enumerate() {
            if index == 0 {
                check_parent(path)?;
            }
            make(path)?;
            check(path)?;
        }
        for folder in [
            &self.layout,
            &self.sessions(),
            &self.ended(),
            &self.used(),
            &self.buckets(),
            &self.locks(),
            &self.streams(),
            &self.temporary(),
            &self.bus(),
        ] {
            make(folder)?;
        }
        Ok(())
    }

    /// A file for each session: see `sessions.rs`.
    pub(crate) fn sessions(&self) -> PathBuf {
        self.layout.join("sessions")
    }

    /// An empty file for each session that was removed.
    pub(crate) fn ended(&self) -> PathBuf {
        self.layout.join("ended")
    }

    /// An empty file for each key that was used: see `used_keys.rs`.
    pub(crate) fn used(&self) -> PathBuf {
        self.layout.join("used")
    }

    /// A file for each bucket that is not full: see `buckets.rs`.
    pub(crate) fn buckets(&self) -> PathBuf {
        self.layout.join("buckets")
    }

    /// An empty file for the sessions and buckets whose names have the same first two digits, to lock them.
    pub(crate) fn locks(&self) -> PathBuf {
        self.layout.join("locks")
    }

    /// The locks that this process has not had within `LOCK_TIMEOUT`, and not since: at most 256.
    pub(crate) fn given_up_locks(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.given_up_locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A directory for each session, with a file for each stream: see `streams.rs`.
    pub(crate) fn streams(&self) -> PathBuf {
        self.layout.join("streams")
    }

    /// Files that are being written.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.layout.join("tmp")
    }

    /// A socket for each process. Names that begin with a dot are not yet listened on.
    pub(crate) fn bus(&self) -> PathBuf {
        bus_of(&self.layout)
    }

    /// An empty file, whose time is that of the latest sweep.
    pub(crate) fn sweep_marker(&self) -> PathBuf {
        self.layout.join("swept")
    }

    /// A path for a file that is being written.
    pub(crate) fn new_temporary(&self) -> PathBuf {
        let number = self.temporary_files.fetch_add(1, Ordering::Relaxed);
        self.temporary().join(format!("{}-{number}", self.own))
    }

    /// Writes a file so that readers find the previous one or all of this one.
    pub(crate) fn replace(&self, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
        use io::Write as _;

        let temporary = self.new_temporary();
        let written = private_file()
            .write(true)
            .create_new(true)
            .open(&temporary)
            .and_then(|mut file| parts.iter().try_for_each(|part| file.write_all(part)))
            .and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            // It may not even exist.
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}

/// Options of a file that only this user may read.
pub(crate) fn private_file() -> fs::OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;

    let mut options = fs::OpenOptions::new();
    options.mode(0o600);
    options
}

/// The directory of this user's services: in memory and private to the user where there is such a place.
fn services() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // It is another user's in a program that was started with `sudo`.
    let runtime = runtime.filter(|path| {
        let found = fs::metadata(path);
        path.is_absolute() && found.is_ok_and(|found| found.is_dir() && found.uid() == user)
    });
    match runtime {
        Some(runtime) => runtime.join("mcpline"),
        None => services_of(&temporary_folder(), user),
    }
}

/// The directory of a user's services in the directory for temporary files.
fn services_of(temporary: &Path, user: u32) -> PathBuf {
    temporary.join(format!("mcpline-{user}"))
}

#[cfg(not(target_vendor = "apple"))]
fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}

/// `TMPDIR` is too long here for the paths of sockets: some 50 bytes of 103.
#[cfg(target_vendor = "apple")]
fn temporary_folder() -> PathBuf {
    PathBuf::from("/tmp")
}

/// The bus of a service: see [`ServiceDirectory::bus`].
fn bus_of(layout: &Path) -> PathBuf {
    layout.join("bus")
}

/// Returns the path without a slash or a dot at its end, after which the system follows a link.
fn normalized(path: &Path) -> Result<PathBuf, LocalError> {
    let has_parents = path
        .components()
        .any(|component| component == Component::ParentDir);
    if !path.is_absolute() || has_parents {
        return Err(refused(path, "must be an absolute path without `..`"));
    }
    Ok(path.components().collect())
}

fn make(path: &Path) -> Result<(), LocalError> {
    match DirBuilder::new().mode(MODE).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(unusable(path, &error)),
        _ => Ok(()),
    }
}

/// Checks that no other user can read what is in the directory, and that it is no link, which another user may have made.
fn check(path: &Path) -> Result<(), LocalError> {
    let found = fs::symlink_metadata(path).map_err(|error| unusable(path, &error))?;
    if !found.is_dir() {
        return Err(refused(path, "is not a directory"));
    }
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user {
        let owner = found.uid();
        return Err(refused(
            path,
            &format!("belongs to user {owner}, and this process runs as user {user}"),
        ));
    }
    if permissions(&found) != MODE {
        let mode = permissions(&found);
        return Err(refused(
            path,
            &format!("has mode {mode:o}, and must have mode 700"),
        ));
    }
    Ok(())
}

/// Checks that no other user can replace the directory in its parent. Those above are not checked.
fn check_parent(path: &Path) -> Result<(), LocalError> {
    let Some(parent) = path.parent() else {
        return Err(refused(path, "must be in another directory"));
    };
    let found = fs::metadata(parent).map_err(|error| unusable(parent, &error))?;
    let user = rustix::process::geteuid().as_raw();
    let is_ours = found.uid() == user || found.uid() == 0;
    let is_writable = permissions(&found) & WRITABLE_BY_OTHERS != 0;
    let is_sticky = found.mode() & STICKY != 0;
    if !is_ours || is_writable && !is_sticky {
        return Err(refused(
            parent,
            "other users can replace what is in this directory",
        ));
    }
    Ok(())
}

fn permissions(found: &Metadata) -> u32 {
    found.mode() & 0o777
}

fn refused(path: &Path, reason: &str) -> LocalError {
    LocalError::UnsafeDirectory {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

pub(crate) fn unusable(path: &Path, error: &io::Error) -> LocalError {
    LocalError::Unusable {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;
    use crate::address::MAX_NAME;
    use crate::inbox::NAME_CHARACTERS;

    /// Bytes of the path of a socket on macOS; Linux has four more.
    const MAX_SOCKET_PATH: usize = 103;

    /// The length of the longest path of a socket, of the user with the longest number.
    fn longest_socket(temporary: &Path) -> usize {
        let service = services_of(temporary, u32::MAX).join("x".repeat(MAX_NAME));
        // A dot precedes the name until the socket is listened on.
        let name = format!(".{}", "x".repeat(NAME_CHARACTERS));
        let socket = bus_of(&service.join(LAYOUT)).join(name);
        socket.as_os_str().as_bytes().len()
    }

    #[test]
    fn paths_of_sockets_are_short_enough_for_all_systems() {
        assert!(longest_socket(Path::new("/tmp")) <= MAX_SOCKET_PATH);
        // What macOS sets TMPDIR to.
        let private = Path::new("/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T/");
        assert!(longest_socket(private) > MAX_SOCKET_PATH);
        #[cfg(target_vendor = "apple")]
        assert!(longest_socket(&temporary_folder()) <= MAX_SOCKET_PATH);
    }
}
