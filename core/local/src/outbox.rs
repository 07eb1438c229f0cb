//! The messages that wait for one other process, and the task that writes them to its socket.
//!
//! A message is its length (four bytes, little-endian) and its bytes.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rustix::net::SendFlags;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::limits::{CONNECT_DELAY, MAX_OUTBOX_BYTES, MAX_WRITE_BYTES, STALL_TIMEOUT};
use crate::sessions::remove_file;

/// Writing to a process that ended must not raise SIGPIPE, which ends programs in C.
#[cfg(not(target_vendor = "apple"))]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
/// Here it is an option of the socket, which the standard library sets.
#[cfg(target_vendor = "apple")]
const SEND_FLAGS: SendFlags = SendFlags::empty();

/// The messages that wait for one other process.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Bytes>,
    bytes: usize,
    /// The process has not read for long: what comes meanwhile is dropped.
    is_stalled: bool,
    /// No more messages follow.
    is_closed: bool,
    /// The process cannot be reached.
    is_dead: bool,
}

impl State {
    fn clear(&mut self) -> VecDeque<Bytes> {
        self.bytes = 0;
        std::mem::take(&mut self.messages)
    }
}

impl Outbox {
    /// Adds a message; drops the oldest above the limit.
    pub(crate) fn push(&self, message: &Bytes) {
        let mut dropped = Vec::new();
        let mut state = self.lock();
        if state.is_stalled || state.is_dead {
            return;
        }
        state.bytes += message.len();
        state.messages.push_back(message.clone());
        while state.bytes > MAX_OUTBOX_BYTES && state.messages.len() > 1 {
            if let Some(oldest) = state.messages.pop_front() {
                state.bytes -= oldest.len();
                dropped.push(oldest);
            }
        }
        drop(state);
        self.changed.notify_one();
        if !dropped.is_empty() {
            tracing::debug!(
                dropped = dropped.len(),
                "messages for another process were dropped: it reads too slowly"
            );
        }
    }

    /// Ends the task once it has written what waits.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Whether the process cannot be reached.
    pub(crate) fn is_dead(&self) -> bool {
        self.lock().is_dead
    }

    /// Connects to the socket at this path and writes until the outbox is closed or the other process ends.
    pub(crate) async fn write_to(self: Arc<Self>, path: PathBuf) {
        if let Err(error) = self.write(&path).await {
            tracing::debug!(%error, "disconnected from another process of this service");
            if error.kind() == io::ErrorKind::ConnectionRefused {
                // It was killed. Names of sockets are never used again, and each is listened on before it gets its name.
                let _ = remove_file(&path);
            }
        }
        let cleared = {
            let mut state = self.lock();
            state.is_dead = true;
            state.clear()
        };
        drop(cleared);
    }

    async fn write(&self, path: &PathBuf) -> io::Result<()> {
        let stream = self.connect(path).await?;
        while let Some(batch) = self.take().await {
            let buffer = encode(&batch);
            // What the messages hold is charged to clients: not while the other process does not read.
            drop(batch);
            let mut writing = pin!(send(&stream, &buffer));
            match timeout(STALL_TIMEOUT, writing.as_mut()).await {
                Ok(sent) => sent?,
                Err(_) => {
                    self.stall();
                    writing.await?;
                    self.lock().is_stalled = false;
                }
            }
        }
        Ok(())
    }

    async fn connect(&self, path: &PathBuf) -> io::Result<UnixStream> {
        let mut waited = Duration::ZERO;
        loop {
            match UnixStream::connect(path).await {
                Err(error) if is_temporary(&error) => {
                    if waited >= STALL_TIMEOUT {
                        self.stall();
                    }
                    tokio::time::sleep(CONNECT_DELAY).await;
                    waited += CONNECT_DELAY;
                    if self.lock().is_closed {
                        return Err(error);
                    }
                }
                connected => {
                    self.lock().is_stalled = false;
                    return connected;
                }
            }
        }
    }

    fn stall(&self) {
        let cleared = {
            let mut state = self.lock();
            if state.is_stalled {
                return;
            }
            state.is_stalled = true;
            state.clear()
        };
        drop(cleared);
        tracing::warn!(
            "another process of this service does not read its messages: dropping them; it may be stopped"
        );
    }

    /// Waits for messages; `None` after the last.
    async fn take(&self) -> Option<Vec<Bytes>> {
        loop {
            {
                let mut state = self.lock();
                let mut batch: Vec<Bytes> = Vec::new();
                let mut bytes = 0;
                while let Some(next) = state.messages.front() {
                    bytes += next.len();
                    if !batch.is_empty() && bytes > MAX_WRITE_BYTES {
                        break;
                    }
                    state.bytes -= next.len();
                    batch.extend(state.messages.pop_front());
                }
                if !batch.is_empty() {
                    return Some(batch);
                }
                if state.is_closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the process may accept a connection later: too many wait, or this process has too many files open.
fn is_temporary(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::InvalidInput
    )
}

fn encode(batch: &[Bytes]) -> Vec<u8> {
    let bytes = batch.iter().map(|message| 4 + message.len()).sum();
    let mut buffer = Vec::with_capacity(bytes);
    for message in batch {
        // Longer messages are not published.
        let length = u32::try_from(message.len()).unwrap_or_default();
        buffer.extend_from_slice(&length.to_le_bytes());
        buffer.extend_from_slice(message);
    }
    buffer
}

async fn send(stream: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        let sending = || Ok(rustix::net::send(stream, bytes, SEND_FLAGS)?);
        match stream.try_io(Interest::WRITABLE, sending) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_messages_are_dropped_above_the_limit() {
        const LARGE: usize = 1024 * 1024;
        let outbox = Outbox::default();
        for number in 0..32 {
            outbox.push(&Bytes::from(vec![number; LARGE]));
            assert!(outbox.lock().bytes <= MAX_OUTBOX_BYTES);
        }
        let first = outbox.take().await.expect("a batch");
        assert_eq!((first.len(), first[0][0]), (1, 16), "one at a time");
        // However large, one message is taken.
        outbox.push(&Bytes::from(vec![99; 2 * MAX_OUTBOX_BYTES]));
        let huge = outbox.take().await.expect("a batch");
        assert_eq!(huge[0][0], 99);
        assert_eq!(outbox.lock().bytes, 0);
    }

    #[tokio::test]
    async fn small_messages_are_written_together() {
        let outbox = Outbox::default();
        for _ in 0..3 {
            outbox.push(&Bytes::from_static(b"message"));
        }
        let batch = outbox.take().await.expect("a batch");
        assert_eq!(encode(&batch).len(), 3 * (4 + 7));
        outbox.close();
        assert!(outbox.take().await.is_none());
    }

    #[tokio::test]
    async fn a_process_that_does_not_read_keeps_no_message() {
        /// More than a socket holds.
        const HUGE: usize = 8 * 1024 * 1024;
        struct Charged {
            bytes: Vec<u8>,
            _charge: Arc<()>,
        }
        impl AsRef<[u8]> for Charged {
            fn as_ref(&self) -> &[u8] {
                &self.bytes
            }
        }
        let path = std::env::temp_dir().join(format!("mcpline-outbox-{}", std::process::id()));
        let _ = remove_file(&path);
        let _stopped = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let charge = Arc::new(());
        let outbox = Arc::new(Outbox::default());
        let writing = tokio::spawn(outbox.clone().write_to(path.clone()));
        for _ in 0..2 {
            let charged = Charged {
                bytes: vec![0; HUGE],
                _charge: charge.clone(),
            };
            outbox.push(&Bytes::from_owner(charged));
        }
        let returned = async {
            while Arc::strong_count(&charge) > 1 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        // Those that wait are dropped when the other process is found to be stopped.
        timeout(12 * STALL_TIMEOUT, returned)
            .await
            .expect("returned");
        assert!(outbox.lock().is_stalled);
        writing.abort();
        let _ = remove_file(&path);
    }
}
