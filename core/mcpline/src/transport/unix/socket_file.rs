//! The file of a Unix socket: its creation with the right permissions, and its removal.
//!
//! A connection needs a socket that listens. So the socket gets its name first, then its permissions, and listens last:
//! until then every `connect` fails, and the process's umask, which all threads share, need not change.
//!
//! Between these steps, the socket looks like one that an ended server has left. A lock on the directory keeps other
//! servers of this library from replacing it then, and from replacing a stale socket both at the same time.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::fs::OFlags;
use rustix::fs::{FlockOperation, Mode};
use tokio::net::{UnixListener, UnixSocket, UnixStream};
use tokio::time::Instant;

use crate::error::Error;

/// Maximum number of connections that wait to be accepted. The system may have a lower limit.
const BACKLOG: u32 = 1_024;

/// Maximum length of a socket's path in bytes, without the zero byte at its end.
const MAX_PATH_BYTES: usize = if cfg!(any(target_os = "linux", target_os = "android")) {
    107
} else {
    103
};

/// How long to wait for the lock on the directory. Other servers hold it for less than a millisecond. But every process
/// that can read the directory can lock it, so after this time the socket is created without the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Permissions that the server's own user needs to connect. Numbers that were meant as octal ones mostly lack them.
const OWNER: u32 = 0o600;

/// Delay between two attempts to lock the directory.
const LOCK_RETRY: Duration = Duration::from_millis(1);

/// The file of a socket. Removed when this is dropped, unless the path names another file by then.
#[derive(Debug)]
pub(super) struct SocketFile {
    /// Absolute, because the working directory may change.
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    fn new(path: &Path, metadata: &Metadata) -> io::Result<Self> {
        Ok(Self {
            path: std::path::absolute(path)?,
            identity: identity(metadata),
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = remove_if_same(&self.path, self.identity) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the Unix socket");
        }
    }
}

/// Creates a socket with this mode and listens on it.
pub(super) async fn listen(path: &Path, mode: u32) -> Result<(SocketFile, UnixListener), Error> {
    check(path, mode)?;
    let _lock = lock_directory(path).await;
    replace_stale(path).await?;
    create(path, mode).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => in_use_error(path),
        _ => failed(path, error),
    })
}

fn check(path: &Path, mode: u32) -> Result<(), Error> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let shown = path.display();
    let refused = if bytes.is_empty() {
        "`path`: the path of the socket is empty".to_owned()
    } else if bytes[0] == 0 {
        "`path`: abstract sockets have no permissions, so every user of the machine could connect; use the path of a file"
            .to_owned()
    } else if bytes.contains(&0) {
        "`path`: the path of the socket contains a zero byte".to_owned()
    } else if bytes.len() > MAX_PATH_BYTES || SocketAddr::from_pathname(path).is_err() {
        format!(
            "`path`: {shown} has {} bytes, and the path of a Unix socket may have {MAX_PATH_BYTES}",
            bytes.len()
        )
    } else if mode & !0o777 != 0 {
        format!("`mode`: {mode} is not a file mode; write it in octal, such as 0o660")
    } else if mode & OWNER != OWNER {
        format!(
            "`mode`: 0o{mode:o} (decimal {mode}) keeps the server's own user from connecting; use 0o600 or more, in octal"
        )
    } else {
        return Ok(());
    };
    Err(Error::usage(refused))
}

/// Locks the directory of a socket against other servers that create one in it. `None` if that is not possible.
async fn lock_directory(path: &Path) -> Option<File> {
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    let directory = File::open(directory.unwrap_or(Path::new("."))).ok()?;
    let end = Instant::now() + LOCK_TIMEOUT;
    loop {
        match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(directory),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < end => {
                tokio::time::sleep(LOCK_RETRY).await;
            }
            // Some file systems have no locks.
            Err(_) => return None,
        }
    }
}

/// Removes a socket that nothing listens on.
async fn replace_stale(path: &Path) -> Result<(), Error> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(path, error)),
    };
    if !found.file_type().is_socket() {
        let error = io::Error::new(
            io::ErrorKind::AlreadyExists,
            "a file that is not a socket exists there",
        );
        return Err(failed(path, error));
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            remove_if_same(path, identity(&found)).map_err(|error| failed(path, error))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // Too many connections wait already.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(in_use_error(path)),
        // Whether a server listens is unknown, for example because this process may not connect.
        Err(error) => Err(failed(path, error)),
        Ok(_) => Err(in_use_error(path)),
    }
}

fn create(path: &Path, mode: u32) -> io::Result<(SocketFile, UnixListener)> {
    let socket = UnixSocket::new_stream()?;
    // On Linux, the file never has more permissions than the socket has before it gets its name. Other systems refuse
    // this; there, the file has those of the umask until the next step.
    let _ = rustix::fs::fchmod(&socket, Mode::from_raw_mode(mode as _));
    socket.bind(path)?;
    let metadata = fs::symlink_metadata(path)?;
    let file = SocketFile::new(path, &metadata)?;
    // The umask may have removed some.
    if metadata.permissions().mode() & 0o777 != mode {
        set_mode(path, mode, file.identity)?;
    }
    let listener = socket.listen(BACKLOG)?;
    Ok((file, listener))
}

/// Changes the permissions of a socket, if the path still names this one. In a directory that others can write, they may have
/// replaced it with a link.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn set_mode(path: &Path, mode: u32, expected: (u64, u64)) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if identity(&file.metadata()?) != expected {
        return Err(replaced_error());
    }
    // A descriptor of this kind has no other way to change the mode.
    let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::set_permissions(opened, Permissions::from_mode(mode))
}

/// Changes the permissions of a socket, without following a link.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn set_mode(path: &Path, mode: u32, expected: (u64, u64)) -> io::Result<()> {
    if identity(&fs::symlink_metadata(path)?) != expected {
        return Err(replaced_error());
    }
    let mode = Mode::from_raw_mode(mode as _);
    Ok(rustix::fs::chmodat(
        rustix::fs::CWD,
        path,
        mode,
        rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

fn replaced_error() -> io::Error {
    io::Error::other("another process has replaced the socket")
}

/// Removes the file if it is still this one.
fn remove_if_same(path: &Path, expected: (u64, u64)) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if identity(&found) == expected => fs::remove_file(path),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn in_use_error(path: &Path) -> Error {
    let message = format!("{} is in use by another server", path.display());
    Error::transport("listen", message, io::ErrorKind::AddrInUse.into())
}

fn failed(path: &Path, error: io::Error) -> Error {
    let message = format!("cannot listen on {}", path.display());
    Error::transport("listen", message, error)
}
