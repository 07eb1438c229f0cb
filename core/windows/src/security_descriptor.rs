//! Who may access an object of the system.

use std::ffi::OsStr;
use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::ptr;

use windows_sys::Win32::Foundation::LocalFree;
use windows_sys::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{
    GetTokenInformation, PSECURITY_DESCRIPTOR, PSID, SECURITY_ATTRIBUTES, TOKEN_QUERY, TOKEN_USER,
    TokenUser,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// A security descriptor that the system has allocated.
pub(crate) struct SecurityDescriptor(PSECURITY_DESCRIPTOR);

impl SecurityDescriptor {
    /// Protected from inheritance: this user owns the object, and it and the system have `rights`, which are those of an
    /// entry in the language of descriptors (SDDL), such as `;FA`. Others have none.
    ///
    /// The user is that of the process. The owner of what an elevated process creates would be all administrators.
    pub(crate) fn of_user(rights: &str) -> io::Result<Self> {
        let user = User::of_process()?.to_text()?;
        Self::from_text(&format!(
            "O:{user}D:P(A;{rights};;;{user})(A;{rights};;;SY)"
        ))
    }

    /// The descriptor with this text (SDDL).
    #[allow(unsafe_code)]
    pub(crate) fn from_text(text: &str) -> io::Result<Self> {
        let text = wide(OsStr::new(text));
        let mut descriptor = ptr::null_mut();
        // SAFETY: the text ends with a zero, and the pointer is that of a variable.
        let is_made = unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
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

    /// The attributes of what is created with this descriptor, which must live as long as they are used. No child inherits it.
    pub(crate) fn attributes(&self) -> SECURITY_ATTRIBUTES {
        SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: self.0,
            bInheritHandle: 0,
        }
    }

    /// The pointer that functions of the system take.
    pub(crate) fn as_ptr(&self) -> PSECURITY_DESCRIPTOR {
        self.0
    }

    /// Takes a descriptor that a function of the system has returned.
    ///
    /// # Safety
    ///
    /// The system allocated it so that `LocalFree` frees it, and nothing else does.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn from_ptr(descriptor: PSECURITY_DESCRIPTOR) -> Self {
        Self(descriptor)
    }
}

impl Drop for SecurityDescriptor {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the system allocated it so that it is freed like this.
        unsafe { LocalFree(self.0) };
    }
}

/// A user, as the system identifies it.
pub(crate) struct User(Box<[u64]>);

impl User {
    /// The user that this process runs as.
    #[allow(unsafe_code)]
    pub(crate) fn of_process() -> io::Result<Self> {
        let mut token = ptr::null_mut();
        // SAFETY: the handle of the process is always valid, and the pointer is that of a variable.
        if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw mut token) } == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle is open and ours.
        let token = unsafe { OwnedHandle::from_raw_handle(token) };
        let mut length = 0;
        // SAFETY: without a buffer, the call returns the length that it needs.
        unsafe {
            GetTokenInformation(
                token.as_raw_handle(),
                TokenUser,
                ptr::null_mut(),
                0,
                &raw mut length,
            )
        };
        // Aligned for the structure, which is followed by what it points at.
        let mut buffer =
            vec![0u64; (length as usize).div_ceil(size_of::<u64>())].into_boxed_slice();
        // SAFETY: the buffer has at least the length that the call is given.
        let is_read = unsafe {
            GetTokenInformation(
                token.as_raw_handle(),
                TokenUser,
                buffer.as_mut_ptr().cast(),
                length,
                &raw mut length,
            )
        };
        if is_read == 0 || (length as usize) < size_of::<TOKEN_USER>() {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(buffer))
    }

    /// The pointer that functions of the system take, valid as long as this.
    #[allow(unsafe_code)]
    pub(crate) fn sid(&self) -> PSID {
        // SAFETY: the system wrote a structure of this type into the buffer, which is aligned for it.
        unsafe { (*self.0.as_ptr().cast::<TOKEN_USER>()).User.Sid }
    }

    /// The user in the language of descriptors, such as `S-1-5-21-…`.
    #[allow(unsafe_code)]
    pub(crate) fn to_text(&self) -> io::Result<String> {
        let mut text = ptr::null_mut();
        // SAFETY: the identifier is valid, and the pointer is that of a variable.
        if unsafe { ConvertSidToStringSidW(self.sid(), &raw mut text) } == 0 {
            return Err(io::Error::last_os_error());
        }
        let mut units = Vec::new();
        // SAFETY: the text ends with a zero, and is freed once, after it was read.
        unsafe {
            while *text.add(units.len()) != 0 {
                units.push(*text.add(units.len()));
            }
            LocalFree(text.cast());
        }
        String::from_utf16(&units).map_err(io::Error::other)
    }
}

/// The text in UTF-16, with a zero at the end.
pub(crate) fn wide(text: &OsStr) -> Vec<u16> {
    text.encode_wide().chain([0]).collect()
}
