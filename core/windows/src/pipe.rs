//! Named pipes that only their owner may connect to.

use std::ffi::OsStr;
use std::io;
use std::ptr;

use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};
use windows_sys::Win32::Foundation::LocalFree;
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{PSECURITY_DESCRIPTOR, SECURITY_ATTRIBUTES};
use windows_sys::w;

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
    let descriptor = Descriptor::of_owner()?;
    let mut attributes = SECURITY_ATTRIBUTES {
        nLength: u32::try_from(size_of::<SECURITY_ATTRIBUTES>()).map_err(io::Error::other)?,
        lpSecurityDescriptor: descriptor.0,
        bInheritHandle: 0,
    };
    let mut options = ServerOptions::new();
    options
        .first_pipe_instance(is_first)
        .reject_remote_clients(true);
    // SAFETY: the attributes and the descriptor are valid during the call, which copies them.
    unsafe { options.create_with_security_attributes_raw(name, (&raw mut attributes).cast()) }
}

/// A security descriptor that the system has allocated.
struct Descriptor(PSECURITY_DESCRIPTOR);

impl Descriptor {
    /// Protected from inheritance; everything for the owner (OW) and the system (SY), nothing for others.
    #[allow(unsafe_code)]
    fn of_owner() -> io::Result<Self> {
        let mut descriptor = ptr::null_mut();
        // SAFETY: the text ends with a zero, and the pointer is that of a variable.
        let is_made = unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                w!("D:P(A;;GA;;;OW)(A;;GA;;;SY)"),
                SDDL_REVISION_1,
                &raw mut descriptor,
                ptr::null_mut(),
            )
        };
        if is_made == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(descriptor))
    }
}

impl Drop for Descriptor {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the system allocated it so that it is freed like this.
        unsafe { LocalFree(self.0) };
    }
}
