//! Lines from a terminal, read so that nothing is left waiting for one when nobody wants it any more.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use tokio::sync::oneshot;

/// The longest line that is read.
const LONGEST: usize = 64 * 1024;

/// Whom to give the next line to.
type LineRequest = oneshot::Sender<io::Result<Option<String>>>;

/// The lines of a file, which may be one that can't be polled: a thread reads one whenever it is asked to, and ends soon
/// after this is dropped.
pub(super) struct Lines {
    requests: mpsc::Sender<LineRequest>,
    is_over: Arc<AtomicBool>,
}

impl Lines {
    pub(super) fn of(mut file: File) -> io::Result<Self> {
        let (requests, requested) = mpsc::channel::<LineRequest>();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        // Not one of the runtime's, which would wait for it when it ends.
        std::thread::Builder::new()
            .name("mcpline-terminal".to_owned())
            .spawn(move || {
                for request in requested {
                    // Nobody may be waiting any more.
                    let _ = request.send(read_line(&mut file, &over));
                }
            })?;
        Ok(Self { requests, is_over })
    }

    /// The next line; `None` at the end of the input.
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

/// Reads a line without what ends it, byte by byte: what follows belongs to whoever reads next.
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

/// Waits until there is something to read, or nobody is interested any more.
#[cfg(unix)]
fn wait(file: &File, is_over: &AtomicBool) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    // How soon a reader that is over is seen to be.
    const LOOK: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    while !is_over.load(Ordering::Relaxed) {
        match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // Also where a terminal can't be polled (macOS): reading it waits then.
            Ok(_) => return Ok(!is_over.load(Ordering::Relaxed)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Reading waits, and the thread stays until the user has entered something.
#[cfg(not(unix))]
fn wait(_file: &File, is_over: &AtomicBool) -> io::Result<bool> {
    Ok(!is_over.load(Ordering::Relaxed))
}
