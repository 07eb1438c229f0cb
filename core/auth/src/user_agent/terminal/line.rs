//! Reads lines from a terminal so that no read stays blocked when the line is no longer wanted.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use tokio::sync::oneshot;

/// The longest line that is read.
const LONGEST: usize = 64 * 1024;

/// Receives the next line.
type LineRequest = oneshot::Sender<io::Result<Option<String>>>;

/// The lines of a file that may not support polling. A thread reads one line per request, and ends soon after this is
/// dropped.
pub(super) struct Lines {
    requests: mpsc::Sender<LineRequest>,
    is_over: Arc<AtomicBool>,
}

impl Lines {
    pub(super) fn of(mut file: File) -> io::Result<Self> {
        let (requests, requested) = mpsc::channel::<LineRequest>();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        // Not a thread of the runtime, which would wait for it at shutdown.
        std::thread::Builder::new()
            .name("mcpline-terminal".to_owned())
            .spawn(move || {
                for request in requested {
                    // The caller may be gone.
                    let _ = request.send(read_line(&mut file, &over));
                }
            })?;
        Ok(Self { requests, is_over })
    }

    /// Returns the next line; `None` at the end of the input.
    pub(super) async fn next(&mut self) -> io::Result<Option<String>> {
        let (request, line) = oneshot::channel();
        let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
        self.requests.send(request).map_err(|_| ended())?;
        line.await.map_err(|_| ended())?
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Reads a line without its line ending, byte by byte: what follows belongs to the next reader of the file.
fn read_line(file: &mut File, is_over: &AtomicBool) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    loop {
        if !wait(file, is_over)? {
            return Ok(None);
        }
        let mut byte = [0];
        match file.read(&mut byte) {
            Ok(0) if line.is_empty() => return Ok(None),
            Ok(0) => break,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) if line.len() == LONGEST => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the line is too long",
                ));
            }
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

/// Waits until there is input (`true`), or until the lines are no longer wanted (`false`).
#[cfg(unix)]
fn wait(file: &File, is_over: &AtomicBool) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    // How soon a reader notices that it is no longer wanted.
    const LOOK: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    while !is_over.load(Ordering::Relaxed) {
        match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // Also if the terminal doesn't support polling (macOS): then the read blocks.
            Ok(_) => return Ok(!is_over.load(Ordering::Relaxed)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Reads block here: the thread stays until the user has entered something.
#[cfg(not(unix))]
fn wait(_file: &File, is_over: &AtomicBool) -> io::Result<bool> {
    Ok(!is_over.load(Ordering::Relaxed))
}
