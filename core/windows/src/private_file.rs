//! Files and directories that only their user may access.

use std::fs::File;
use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle as _, FromRawHandle as _};
use std::path::Path;
use std::ptr;

use windows_sys::Win32::Foundation::{
    ERROR_SHARING_VIOLATION, GENERIC_ALL, GENERIC_READ, GENERIC_WRITE, INVALID_HANDLE_VALUE,
};
use windows_sys::Win32::Security::Authorization::{GetSecurityInfo, SE_FILE_OBJECT};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACE_HEADER, ACL, DACL_SECURITY_INFORMATION, EqualSid, GetAce,
    INHERIT_ONLY_ACE, IsWellKnownSid, OWNER_SECURITY_INFORMATION,
    PROTECTED_DACL_SECURITY_INFORMATION, PSID, SetFileSecurityW, WinBuiltinAdministratorsSid,
    WinCreatorOwnerRightsSid, WinLocalSystemSid,
};
use windows_sys::Win32::Storage::FileSystem::{
    CREATE_NEW, CreateDirectoryW, CreateFileW, DELETE, FILE_APPEND_DATA, FILE_ATTRIBUTE_NORMAL,
    FILE_CREATION_DISPOSITION, FILE_DELETE_CHILD, FILE_FLAG_OPEN_REPARSE_POINT, FILE_READ_DATA,
    FILE_WRITE_DATA, OPEN_ALWAYS, WRITE_DAC, WRITE_OWNER,
};

use crate::security_descriptor::{SecurityDescriptor, User, wide};

/// The length from which the system takes only paths with a prefix; those of directories are the shortest.
const LONG_PATH: usize = 240;

/// Rights to change what a file or directory contains, or who may.
const CHANGES: u32 = FILE_WRITE_DATA
    | FILE_APPEND_DATA
    | FILE_DELETE_CHILD
    | DELETE
    | WRITE_DAC
    | WRITE_OWNER
    | GENERIC_WRITE
    | GENERIC_ALL;
const READS: u32 = FILE_READ_DATA | GENERIC_READ | GENERIC_ALL;

/// Types of entries that allow something (`winnt.h`): plain and conditional ones, whose structures begin alike.
const ALLOWED: [u8; 2] = [0, 9];
/// Those with another structure, which files do not have.
const ALLOWED_OTHERWISE: [u8; 3] = [4, 5, 11];

/// Creates a directory that this user and the system may access; files that are created in it too.
///
/// # Errors
///
/// The system's.
#[allow(unsafe_code)]
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    let descriptor = SecurityDescriptor::of_user("OICI;FA")?;
    let path = wide_path(path)?;
    // SAFETY: the path ends with a zero; the attributes and the descriptor are valid during the call.
    let is_made = unsafe { CreateDirectoryW(path.as_ptr(), &descriptor.attributes()) };
    if is_made == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Creates a file that this user and the system may access, and opens it for writing. Fails if it exists.
///
/// # Errors
///
/// The system's.
pub fn create_private_file(path: &Path) -> io::Result<File> {
    create(path, CREATE_NEW)
}

/// Opens a file so that nothing else can open it until it is closed, or returns `None` if something has it open. If it does not
/// exist, creates it like [`create_private_file`]. A symbolic link is opened itself.
///
/// # Errors
///
/// The system's.
pub fn lock_private_file(path: &Path) -> io::Result<Option<File>> {
    match create(path, OPEN_ALWAYS) {
        Err(error) if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION as i32) => Ok(None),
        opened => opened.map(Some),
    }
}

#[allow(unsafe_code)]
fn create(path: &Path, disposition: FILE_CREATION_DISPOSITION) -> io::Result<File> {
    let descriptor = SecurityDescriptor::of_user(";FA")?;
    let path = wide_path(path)?;
    // SAFETY: the path ends with a zero; the attributes and the descriptor are valid during the call.
    let file = unsafe {
        CreateFileW(
            path.as_ptr(),
            GENERIC_READ | GENERIC_WRITE,
            0,
            &descriptor.attributes(),
            disposition,
            FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT,
            ptr::null_mut(),
        )
    };
    if file == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is open and ours.
    Ok(unsafe { File::from_raw_handle(file) })
}

/// What users other than that of this process may do with a file or directory. The system and administrators do not count:
/// nothing on the machine is kept from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherUsersAccess {
    /// Another user owns it, and can therefore change who has access.
    pub is_owner: bool,
    /// Others can read its content.
    pub can_read: bool,
    /// Others can change its content, remove it, or change who has access.
    pub can_change: bool,
}

impl OtherUsersAccess {
    /// Asks the system about an open file or directory.
    ///
    /// # Errors
    ///
    /// The system's, also if the handle has no right to read permissions.
    #[allow(unsafe_code)]
    pub fn of(file: &impl AsHandle) -> io::Result<Self> {
        let user = User::of_process()?;
        let (mut owner, mut entries, mut descriptor) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: the handle is open, and the pointers are those of variables.
        let failure = unsafe {
            GetSecurityInfo(
                file.as_handle().as_raw_handle(),
                SE_FILE_OBJECT,
                OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION,
                &raw mut owner,
                ptr::null_mut(),
                &raw mut entries,
                ptr::null_mut(),
                &raw mut descriptor,
            )
        };
        if failure != 0 {
            return Err(io::Error::from_raw_os_error(failure as i32));
        }
        // SAFETY: the call allocated it for its caller. The other pointers point into it.
        let _descriptor = unsafe { SecurityDescriptor::from_ptr(descriptor) };
        let rights = rights_of_others(entries, &user)?;
        Ok(Self {
            is_owner: !is_trusted(owner, &user),
            can_read: rights & READS != 0,
            can_change: rights & CHANGES != 0,
        })
    }
}

/// Returns the rights that entries give to others than the user. Entries that deny something do not count.
#[allow(unsafe_code)]
fn rights_of_others(entries: *const ACL, user: &User) -> io::Result<u32> {
    if entries.is_null() {
        // Without a list, all users may do everything.
        return Ok(GENERIC_ALL);
    }
    let mut rights = 0;
    // SAFETY: the list is valid.
    for index in 0..u32::from(unsafe { (*entries).AceCount }) {
        let mut entry = ptr::null_mut();
        // SAFETY: the list is valid, the index below its length, and the pointer that of a variable.
        if unsafe { GetAce(entries, index, &raw mut entry) } == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: each entry begins with this structure.
        let header = unsafe { &*entry.cast::<ACE_HEADER>() };
        if u32::from(header.AceFlags) & INHERIT_ONLY_ACE != 0 {
            continue;
        }
        if ALLOWED_OTHERWISE.contains(&header.AceType) {
            return Ok(GENERIC_ALL);
        }
        if ALLOWED.contains(&header.AceType) {
            let allowed = entry.cast::<ACCESS_ALLOWED_ACE>();
            // SAFETY: entries of these types begin with this structure, whose last member is the beginning of the identifier.
            let (mask, sid) = unsafe { ((*allowed).Mask, (&raw mut (*allowed).SidStart).cast()) };
            if !is_trusted(sid, user) {
                rights |= mask;
            }
        }
    }
    Ok(rights)
}

/// Whether this is the user, the system, administrators, or the entry for the owner of the object.
#[allow(unsafe_code)]
fn is_trusted(sid: PSID, user: &User) -> bool {
    const OTHERS: [i32; 3] = [
        WinLocalSystemSid,
        WinBuiltinAdministratorsSid,
        WinCreatorOwnerRightsSid,
    ];
    // SAFETY: both identifiers are valid.
    unsafe {
        EqualSid(sid, user.sid()) != 0 || OTHERS.iter().any(|kind| IsWellKnownSid(sid, *kind) != 0)
    }
}

/// The path as functions of the system take it.
fn wide_path(path: &Path) -> io::Result<Vec<u16>> {
    let path = std::path::absolute(path)?.into_os_string();
    let units = wide(&path);
    if units[..units.len() - 1].contains(&0) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path contains a zero",
        ));
    }
    let starts_with = |text: &str| path.to_string_lossy().starts_with(text);
    if units.len() < LONG_PATH || starts_with(r"\\?\") || starts_with(r"\\.\") {
        return Ok(units);
    }
    // `\\server\share` becomes `\\?\UNC\server\share`.
    let (prefix, rest) = if starts_with(r"\\") {
        (r"\\?\UNC\", &units[2..])
    } else {
        (r"\\?\", &units[..])
    };
    Ok(prefix.encode_utf16().chain(rest.iter().copied()).collect())
}

/// Gives this user all rights on a file or directory, and others those of entries in the language of descriptors (SDDL), such as
/// `(A;;FR;;;WD)`. For tests.
///
/// # Errors
///
/// The system's.
#[doc(hidden)]
#[allow(unsafe_code)]
pub fn set_access(path: &Path, entries: &str) -> io::Result<()> {
    let user = User::of_process()?.to_text()?;
    let descriptor = SecurityDescriptor::from_text(&format!("D:P(A;;FA;;;{user}){entries}"))?;
    let path = wide_path(path)?;
    // SAFETY: the path ends with a zero, and the descriptor is valid.
    let is_set = unsafe {
        SetFileSecurityW(
            path.as_ptr(),
            DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION,
            descriptor.as_ptr(),
        )
    };
    if is_set == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// A directory that is removed with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("mcpline-{name}-{}", std::process::id()));
            create_private_directory(&path).expect("made");
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn access(path: &Path) -> OtherUsersAccess {
        OtherUsersAccess::of(&File::open(path).expect("opened")).expect("examined")
    }

    #[test]
    fn others_have_no_access_to_what_is_created() {
        let scratch = Scratch::new("private");
        let none = OtherUsersAccess {
            is_owner: false,
            can_read: false,
            can_change: false,
        };
        let path = scratch.0.join("file");
        drop(create_private_file(&path).expect("created"));
        assert_eq!(access(&path), none);
        let lock = scratch.0.join("lock");
        drop(lock_private_file(&lock).expect("opened"));
        assert_eq!(access(&lock), none);
        create_private_file(&path).expect_err("it exists");
    }

    #[test]
    fn rights_of_others_are_found() {
        let scratch = Scratch::new("rights");
        let path = scratch.0.join("file");
        drop(create_private_file(&path).expect("created"));
        for (entries, can_read, can_change) in [
            ("(A;;FA;;;SY)(A;;FA;;;BA)", false, false),
            ("(A;;FR;;;WD)", true, false),
            ("(A;;FW;;;WD)", false, true),
            ("(A;;FA;;;WD)", true, true),
        ] {
            set_access(&path, entries).expect("set");
            let found = access(&path);
            assert_eq!(
                (found.can_read, found.can_change),
                (can_read, can_change),
                "{entries}"
            );
        }
    }

    #[test]
    fn a_locked_file_cannot_be_locked_again_until_it_is_closed() {
        let scratch = Scratch::new("lock");
        let path = scratch.0.join("lock");
        let held = lock_private_file(&path).expect("opened");
        assert!(held.is_some());
        assert!(lock_private_file(&path).expect("asked").is_none());
        drop(held);
        assert!(lock_private_file(&path).expect("opened").is_some());
    }

    #[test]
    fn long_paths_are_accepted() {
        let scratch = Scratch::new("long");
        let folder = scratch.0.join("x".repeat(200));
        create_private_directory(&folder).expect("made");
        let path = folder.join("y".repeat(200));
        drop(create_private_file(&path).expect("created"));
        assert!(path.is_file());
    }

    #[test]
    fn a_path_with_a_zero_is_refused() {
        let failed = create_private_file(Path::new("a\0b")).expect_err("refused");
        assert_eq!(failed.kind(), io::ErrorKind::InvalidInput);
    }
}
