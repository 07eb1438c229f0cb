//! What wakes on Unix: an event counter or a pipe.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::pipe::PipeFlags;

/// A descriptor to wait for. One write wakes, however many came before.
#[derive(Debug)]
pub(crate) struct WakeupFd {
    reader: OwnedFd,
    writer: OwnedFd,
    /// An event counter takes eight bytes, a pipe any number.
    counter: bool,
}

impl WakeupFd {
    /// Creates an event counter if the system supports it, otherwise a pipe.
    pub(crate) fn new() -> io::Result<Self> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            use rustix::event::EventfdFlags;
            let counter =
                rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            Ok(Self {
                writer: counter.try_clone()?,
                reader: counter,
                counter: true,
            })
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        Self::pipe()
    }

    /// Creates a pipe, which accepts single bytes, such as those that are written for signals.
    pub(crate) fn pipe() -> io::Result<Self> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self {
            reader,
            writer,
            counter: false,
        })
    }

    /// Wakes the waiting thread.
    pub(crate) fn wake(&self) {
        let one = 1_u64.to_ne_bytes();
        let bytes = if self.counter { &one[..] } else { &one[..1] };
        // This fails only if it is full: then the other side is being woken already.
        let _ = rustix::io::write(&self.writer, bytes);
    }

    /// Resets all wakes so far.
    pub(crate) fn clear(&self) {
        let mut bytes = [0; 64];
        loop {
            match rustix::io::read(&self.reader, &mut bytes) {
                Ok(count) if count == bytes.len() => {}
                Err(rustix::io::Errno::INTR) => {}
                // Empty, or about to be.
                _ => return,
            }
        }
    }

    /// Waits until it is woken or a signal arrives.
    pub(crate) fn wait(&self) {
        use rustix::event::{PollFd, PollFlags};
        let mut descriptors = [PollFd::from_borrowed_fd(self.reader.as_fd(), PollFlags::IN)];
        // The result does not matter: the caller checks by itself.
        let _ = rustix::event::poll(&mut descriptors, None);
    }

    /// Waits until it is woken or a signal arrives, for a limited time.
    pub(crate) fn wait_for(&self, longest: Duration) {
        use rustix::event::{PollFd, PollFlags, Timespec};
        let mut descriptors = [PollFd::from_borrowed_fd(self.reader.as_fd(), PollFlags::IN)];
        let longest = Timespec::try_from(longest).ok();
        // The result does not matter: the caller checks by itself.
        let _ = rustix::event::poll(&mut descriptors, longest.as_ref());
    }

    /// The descriptor to wait for.
    pub(crate) fn reader(&self) -> i64 {
        self.reader.as_raw_fd().into()
    }

    /// The descriptor to write to.
    pub(crate) fn writer(&self) -> i64 {
        self.writer.as_raw_fd().into()
    }
}
