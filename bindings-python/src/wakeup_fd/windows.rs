//! What wakes on Windows: a connection of this process to itself, because an event loop can watch sockets only, and the interpreter
//! writes signals to a socket.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::windows::io::AsRawSocket;
use std::time::Duration;

use mcpline::foreign::socket_pair;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a wait lasts at most: a signal does not end it unless the interpreter writes it to this socket.
const SLICE: Duration = Duration::from_millis(100);

/// A socket to wait for. One write wakes, however many came before.
#[derive(Debug)]
pub(crate) struct WakeupFd {
    reader: TcpStream,
    writer: TcpStream,
}

impl WakeupFd {
    pub(crate) fn new() -> io::Result<Self> {
        Self::pipe()
    }

    /// Creates a pair of sockets, which accepts single bytes, such as those that are written for signals.
    pub(crate) fn pipe() -> io::Result<Self> {
        let (reader, writer) = socket_pair()?;
        Ok(Self { reader, writer })
    }

    /// Wakes the waiting thread.
    pub(crate) fn wake(&self) {
        // This fails only if it is full: then the other side is being woken already.
        let _ = (&self.writer).write(&[1]);
    }

    /// Resets all wakes so far.
    pub(crate) fn clear(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.reader).read(&mut bytes), Ok(count) if count == bytes.len()) {}
    }

    /// Waits until it is woken or a signal may have arrived.
    pub(crate) fn wait(&self) {
        self.wait_for(SLICE);
    }

    /// Waits until it is woken or a signal may have arrived, for a limited time.
    pub(crate) fn wait_for(&self, longest: Duration) {
        let mut descriptors = [PollFd::new(&self.reader, PollFlags::IN)];
        let longest = Timespec::try_from(longest.min(SLICE)).ok();
        // The result does not matter: the caller checks by itself.
        let _ = poll(&mut descriptors, longest.as_ref());
    }

    /// The socket to wait for.
    pub(crate) fn reader(&self) -> i64 {
        self.reader.as_raw_socket().cast_signed().into()
    }

    /// The socket to write to.
    pub(crate) fn writer(&self) -> i64 {
        self.writer.as_raw_socket().cast_signed().into()
    }
}
