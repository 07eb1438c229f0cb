//! Named pipes that only their owner may connect to.

use std::ffi::OsStr;
use std::io;

use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};

use crate::security_descriptor::SecurityDescriptor;

/// What the name of a pipe of this machine begins with.
pub const PIPE_PREFIX: &str = r"\\.\pipe\";

/// Creates an instance of the pipe with this name, which accepts one connection. Only the user who creates it and the system may
/// connect, and only from this machine; by default, every user of the machine could read. If `is_first` is set, it fails if the name
/// is in use.
///
/// # Errors
///
/// The system's.
///
/// # Panics
///
/// Outside a tokio runtime.
#[allow(unsafe_code)]
pub fn create_pipe(name: &OsStr, is_first: bool) -> io::Result<NamedPipeServer> {
    let descriptor = SecurityDescriptor::of_user(";GA")?;
    let mut attributes = descriptor.attributes();
    let mut options = ServerOptions::new();
    options
        .first_pipe_instance(is_first)
        .reject_remote_clients(true);
    // SAFETY: the attributes and the descriptor are valid during the call, which copies them.
    unsafe { options.create_with_security_attributes_raw(name, (&raw mut attributes).cast()) }
}
