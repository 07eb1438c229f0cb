//! The keyring of each system, its limits, and a directory for locks.

use std::path::PathBuf;
use std::sync::Arc;

use keyring_core::{CredentialStore, Error};

/// The longest secret that the system accepts: `CRED_MAX_CREDENTIAL_BLOB_SIZE` on Windows. Other systems have no limit
/// near the size of tokens; a megabyte stands for none.
pub(super) const LARGEST: usize = if cfg!(windows) { 2560 } else { 1024 * 1024 };

/// Connects to the system's keyring.
#[cfg(target_os = "macos")]
pub(super) fn connect() -> Result<Arc<CredentialStore>, Error> {
    Ok(apple_native_keyring_store::keychain::Store::new()?)
}

/// Connects to the system's keyring.
#[cfg(windows)]
pub(super) fn connect() -> Result<Arc<CredentialStore>, Error> {
    Ok(windows_native_keyring_store::Store::new()?)
}

/// Connects to the system's keyring.
#[cfg(all(
    unix,
    not(any(target_os = "macos", target_os = "ios", target_os = "android"))
))]
pub(super) fn connect() -> Result<Arc<CredentialStore>, Error> {
    Ok(zbus_secret_service_keyring_store::Store::new()?)
}

/// No keyring is known for this system.
#[cfg(not(any(unix, windows)))]
pub(super) fn connect() -> Result<Arc<CredentialStore>, Error> {
    Err(none())
}

/// No keyring is known for this system.
#[cfg(any(target_os = "ios", target_os = "android"))]
pub(super) fn connect() -> Result<Arc<CredentialStore>, Error> {
    Err(none())
}

#[cfg(any(not(any(unix, windows)), target_os = "ios", target_os = "android"))]
fn none() -> Error {
    Error::NotSupportedByStore("this system has no supported keyring: use a file store".to_owned())
}

/// A directory of the user for lock files.
pub(super) fn lock_directory() -> Option<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let directory = if cfg!(windows) {
        variable("LOCALAPPDATA")?
    } else if cfg!(target_os = "macos") {
        variable("HOME")?.join("Library/Application Support")
    } else {
        variable("XDG_RUNTIME_DIR")
            .or_else(|| variable("XDG_STATE_HOME"))
            .or_else(|| Some(variable("HOME")?.join(".local/state")))?
    };
    Some(directory.join("mcpline-locks"))
}
