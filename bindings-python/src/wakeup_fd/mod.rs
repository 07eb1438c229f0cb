//! Wakes a thread that waits for a descriptor: an event loop, or the main thread.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub(crate) use system::WakeupFd;
