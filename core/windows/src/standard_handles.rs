//! The standard handles of this process, and what stands in their place.
//!
//! A handle is known in two places: to the system (`GetStdHandle`, which Rust asks) and to each C runtime that is loaded, under the
//! descriptors 0 and 1. `printf` and Python's `print` ask the latter. A program that has its own copy of the C runtime, as `node.exe`
//! does, has a table that cannot be reached from here.

use std::ffi::{CStr, c_int};
use std::fs::OpenOptions;
use std::io;
use std::mem;
use std::os::windows::io::{
    AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, IntoRawHandle, OwnedHandle, RawHandle,
};

use windows_sys::Win32::Foundation::{
    GetHandleInformation, HANDLE_FLAG_INHERIT, HANDLE_FLAG_PROTECT_FROM_CLOSE,
    INVALID_HANDLE_VALUE, SetHandleInformation,
};
use windows_sys::Win32::System::Console::{
    GetStdHandle, STD_ERROR_HANDLE, STD_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetStdHandle,
};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};

/// The C runtimes that a program may be linked with.
const C_RUNTIMES: [&CStr; 2] = [c"ucrtbase.dll", c"msvcrt.dll"];

/// The real stdin and stdout.
#[derive(Debug)]
pub struct StandardHandles {
    input: ReplacedHandle,
    output: ReplacedHandle,
}

/// A handle that something else stands in for.
#[derive(Debug)]
struct ReplacedHandle {
    which: STD_HANDLE,
    descriptor: c_int,
    /// The value that the system and the C runtimes knew. It stays open until the end.
    original: RawHandle,
    /// Its flags.
    flags: u32,
    /// A duplicate that no child inherits.
    own: OwnedHandle,
}

// SAFETY: handles may be used from any thread.
#[allow(unsafe_code)]
unsafe impl Send for ReplacedHandle {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for ReplacedHandle {}

impl StandardHandles {
    /// Puts the null device in the place of stdin, and stderr in that of stdout, or the null device if there is no stderr.
    ///
    /// # Errors
    ///
    /// The process has no stdin or stdout, or the system's.
    pub fn move_away() -> io::Result<Self> {
        let null = OpenOptions::new().read(true).write(true).open("NUL")?;
        let null = OwnedHandle::from(null);
        let errors = match standard(STD_ERROR_HANDLE) {
            Some(errors) => borrow(errors).try_clone_to_owned()?,
            None => null.try_clone()?,
        };
        let input = ReplacedHandle::new(STD_INPUT_HANDLE, 0)?;
        let output = ReplacedHandle::new(STD_OUTPUT_HANDLE, 1)?;
        input.replace(null)?;
        if let Err(error) = output.replace(errors) {
            input.restore();
            return Err(error);
        }
        Ok(Self { input, output })
    }

    /// The real stdin.
    #[must_use]
    pub fn input(&self) -> BorrowedHandle<'_> {
        self.input.own.as_handle()
    }

    /// The real stdout.
    #[must_use]
    pub fn output(&self) -> BorrowedHandle<'_> {
        self.output.own.as_handle()
    }

    /// Puts them back in their places.
    pub fn restore(&mut self) {
        self.input.restore();
        self.output.restore();
    }
}

impl ReplacedHandle {
    #[allow(unsafe_code)]
    fn new(which: STD_HANDLE, descriptor: c_int) -> io::Result<Self> {
        let original = standard(which).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                "the process has no stdin or no stdout",
            )
        })?;
        let own = borrow(original).try_clone_to_owned()?;
        let mut flags = 0;
        // SAFETY: the handle is open, and the pointer is that of a variable.
        unsafe { GetHandleInformation(original, &raw mut flags) };
        Ok(Self {
            which,
            descriptor,
            original,
            flags,
            own,
        })
    }

    /// Puts another handle in the place of this one.
    #[allow(unsafe_code)]
    fn replace(&self, by: OwnedHandle) -> io::Result<()> {
        // Each C runtime closes the original, which only one of them may do. So none can: it stays open.
        let mask = HANDLE_FLAG_INHERIT | HANDLE_FLAG_PROTECT_FROM_CLOSE;
        // SAFETY: the handle is open.
        unsafe { SetHandleInformation(self.original, mask, HANDLE_FLAG_PROTECT_FROM_CLOSE) };
        // Children that inherit the standard handles get it.
        // SAFETY: the handle is open.
        unsafe {
            SetHandleInformation(by.as_raw_handle(), HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT)
        };
        redirect_descriptor(self.descriptor, by.as_handle());
        // Stays open until the process ends: code that has asked for the standard handle may still use its value.
        // SAFETY: the call takes any handle.
        if unsafe { SetStdHandle(self.which, by.into_raw_handle()) } == 0 {
            let error = io::Error::last_os_error();
            self.restore();
            return Err(error);
        }
        Ok(())
    }

    #[allow(unsafe_code)]
    fn restore(&self) {
        redirect_descriptor(self.descriptor, self.own.as_handle());
        let mask = HANDLE_FLAG_INHERIT | HANDLE_FLAG_PROTECT_FROM_CLOSE;
        // SAFETY: the handle is open, because it was protected.
        unsafe { SetHandleInformation(self.original, mask, self.flags & mask) };
        // SAFETY: as above.
        unsafe { SetStdHandle(self.which, self.original) };
    }
}

#[allow(unsafe_code)]
fn standard(which: STD_HANDLE) -> Option<RawHandle> {
    // SAFETY: the call has no pointers.
    let handle = unsafe { GetStdHandle(which) };
    (!handle.is_null() && handle != INVALID_HANDLE_VALUE).then_some(handle)
}

#[allow(unsafe_code)]
fn borrow<'a>(handle: RawHandle) -> BorrowedHandle<'a> {
    // SAFETY: standard handles are open while the process runs, except if it closes them itself.
    unsafe { BorrowedHandle::borrow_raw(handle) }
}

/// Makes a descriptor of each C runtime that is loaded a duplicate of a handle.
#[allow(unsafe_code)]
fn redirect_descriptor(descriptor: c_int, to: BorrowedHandle<'_>) {
    for runtime in C_RUNTIMES {
        // SAFETY: the name ends with a zero byte.
        let module = unsafe { GetModuleHandleA(runtime.as_ptr().cast()) };
        if module.is_null() {
            continue;
        }
        let function = |name: &CStr| {
            // SAFETY: the module is loaded, and the name ends with a zero byte.
            unsafe { GetProcAddress(module, name.as_ptr().cast()) }
        };
        let (Some(open), Some(duplicate), Some(close)) = (
            function(c"_open_osfhandle"),
            function(c"_dup2"),
            function(c"_close"),
        ) else {
            continue;
        };
        let Ok(handle) = to.try_clone_to_owned() else {
            continue;
        };
        // SAFETY: these are the signatures of the functions in every C runtime.
        unsafe {
            let open: extern "C" fn(isize, c_int) -> c_int = mem::transmute(open);
            let duplicate: extern "C" fn(c_int, c_int) -> c_int = mem::transmute(duplicate);
            let close: extern "C" fn(c_int) -> c_int = mem::transmute(close);
            let handle = handle.into_raw_handle();
            let opened = open(handle as isize, 0);
            if opened < 0 {
                drop(OwnedHandle::from_raw_handle(handle));
                continue;
            }
            // It is the descriptor itself if the program had closed that.
            if opened != descriptor {
                duplicate(opened, descriptor);
                close(opened);
            }
        }
    }
}
