//! Threads that wait for I/O.

use std::os::windows::io::AsRawHandle;
use std::thread::JoinHandle;

use windows_sys::Win32::System::IO::CancelSynchronousIo;

/// Makes the read or write that the thread waits for fail. Does nothing if it waits for none, also if it is about to.
#[allow(unsafe_code)]
pub fn cancel_blocking_io<T>(thread: &JoinHandle<T>) {
    // SAFETY: the handle of the thread is open while the `JoinHandle` exists.
    unsafe { CancelSynchronousIo(thread.as_raw_handle()) };
}
