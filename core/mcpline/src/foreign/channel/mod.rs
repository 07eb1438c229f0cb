//! Transports in foreign code: a [`Channel`] connects the core to the code that carries its messages.
//!
//! Foreign code passes messages of the other side to the channel ([`Channel::receive`]), and takes messages for the
//! other side from it ([`Channel::next`]). Both directions are queues with their size in bytes. While more than
//! [`MAX_WAITING_CHANNEL_BYTES`] waits in one, its producer has to wait: the core accepts nothing from the other side,
//! and foreign code is asked to wait ([`Channel::ready`]). Code that does not wait loses the channel at eight times
//! this size.
//!
//! [`ServedChannel`] serves one client over a channel. [`ChannelAddress`] opens one in foreign code for each connection
//! of a client.

#[cfg(feature = "client")]
mod address;
mod queue;
#[cfg(feature = "server")]
mod served;
#[cfg(test)]
mod tests;

#[cfg(feature = "client")]
pub use address::{ChannelAddress, OpenChannel};
#[cfg(feature = "server")]
pub use served::ServedChannel;

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::line_io::outbox::OUTBOX_LIMIT;

use queue::Queue;

/// Limit of waiting bytes in one direction of a channel, above which no more is accepted: as for a pipe, for the same
/// reason.
pub const MAX_WAITING_CHANNEL_BYTES: usize = OUTBOX_LIMIT;

/// Maximum number of bytes passed to foreign code at once: some messages cross together, and little is held twice.
const MAX_BATCH_BYTES: usize = 256 * 1024;

/// How long the last messages may take to be sent after a channel is closed. A peer that reads takes milliseconds.
pub const LAST_MESSAGES: Duration = Duration::from_millis(750);

/// Why a channel has ended.
type ChannelEndResult = Result<(), String>;

/// One connection over a transport in foreign code. Both sides share it, from any thread.
#[derive(Debug, Default)]
pub struct Channel {
    /// From the other side to the core.
    incoming: Queue,
    /// From the core to the other side.
    outgoing: Queue,
    opening: Mutex<Option<oneshot::Sender<ChannelEndResult>>>,
}

/// The channel accepts no more messages, because either side has closed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelClosed;

/// Closes a channel that fails to open.
struct CloseUnlessOpened(Option<Arc<Channel>>);

impl Drop for CloseUnlessOpened {
    fn drop(&mut self) {
        if let Some(channel) = &self.0 {
            channel.close();
        }
    }
}

impl Channel {
    /// Creates a channel that is not open yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Accepts a message or batch from the other side. Returns whether there is room for more; if not, wait until the
    /// channel is [ready](Self::ready).
    ///
    /// # Errors
    ///
    /// If the channel is closed, or is closed now because too much was passed without waiting.
    pub fn receive(&self, message: impl Into<Bytes>) -> Result<bool, ChannelClosed> {
        let waiting = self.incoming.push(message.into()).ok_or(ChannelClosed)?;
        if waiting > 8 * MAX_WAITING_CHANNEL_BYTES {
            self.incoming.discard();
            self.hang_up(Some(
                "the transport passed on too many messages without waiting for room".into(),
            ));
            return Err(ChannelClosed);
        }
        Ok(waiting <= MAX_WAITING_CHANNEL_BYTES)
    }

    /// Returns whether there is room for a message from the other side.
    pub fn has_room(&self) -> bool {
        self.incoming.has_room()
    }

    /// Waits until there is room for a message from the other side, or the channel is closed.
    pub async fn ready(&self) {
        self.incoming.wait_for_room().await;
    }

    /// Reports that the other side has ended, with a reason if it failed. Earlier messages are still read. Only the
    /// first end counts.
    pub fn hang_up(&self, failure: Option<String>) {
        let end = failure.map_or(Ok(()), Err);
        let opening = self.lock_opening().take();
        if let Some(opening) = opening {
            let early = end.clone();
            // The caller may be gone.
            let _ = opening.send(Err(early
                .err()
                .unwrap_or_else(|| "the channel was closed".into())));
        }
        if end.is_err() {
            // A failed channel carries nothing more.
            self.outgoing.discard();
        }
        self.incoming.end(end);
    }

    /// Returns the next messages for the other side, in order; `None` when there are none left and the core no longer
    /// needs the channel. The call confirms that the previous ones have been sent.
    pub async fn next(&self) -> Option<Vec<Bytes>> {
        self.outgoing.take_batch(MAX_BATCH_BYTES).await
    }

    /// Waits until the core no longer needs the channel, except for unsent messages. Close it [`LAST_MESSAGES`] later.
    pub async fn ended(&self) {
        // The core never fails.
        let _ = self.outgoing.ended().await;
    }

    /// Waits until the other side has failed: nothing more can be sent to it.
    pub async fn failed(&self) {
        if self.incoming.ended().await.is_ok() {
            // The first end counts, so it does not fail later.
            std::future::pending().await
        }
    }

    /// Waits until messages of [`next`](Self::next) have been sent, with a timeout once the channel is closed. Returns
    /// whether they have.
    pub async fn wait_until_sent(&self, sent: impl Future<Output = ()>) -> bool {
        tokio::select! {
            () = sent => true,
            () = self.unsent_timeout_elapsed() => false,
        }
    }

    /// Waits until some time after the channel was closed, in which its last messages are sent.
    pub async fn unsent_timeout_elapsed(&self) {
        self.ended().await;
        tokio::time::sleep(LAST_MESSAGES).await;
    }

    /// Closes the channel for the core: [`next`](Self::next) still returns waiting messages, and no more are accepted.
    pub fn close(&self) {
        self.lock_opening().take();
        self.incoming.discard();
        self.incoming.end(Ok(()));
        self.outgoing.end(Ok(()));
    }

    /// Opens the channel in foreign code. Resolves once that calls [`opened`](Self::opened). Dropping the future closes
    /// the channel.
    ///
    /// # Errors
    ///
    /// If it could not be opened.
    pub async fn open(self: &Arc<Self>, open: impl FnOnce(Arc<Self>)) -> io::Result<()> {
        let mut unopened = CloseUnlessOpened(Some(self.clone()));
        let (opening, opened) = oneshot::channel();
        *self.lock_opening() = Some(opening);
        open(self.clone());
        let outcome = opened.await;
        let outcome = outcome.unwrap_or_else(|_| Err("the channel was closed".to_owned()));
        outcome.map_err(io::Error::other)?;
        unopened.0 = None;
        Ok(())
    }

    /// Ends [`open`](Self::open): the channel is open, or could not be opened for the given reason. Returns `false` if `open` was
    /// not waiting.
    pub fn opened(&self, outcome: Result<(), String>) -> bool {
        let opening = self.lock_opening().take();
        let is_opening = opening.is_some();
        if let Some(opening) = opening {
            // The caller may be gone.
            let _ = opening.send(outcome);
        }
        is_opening
    }

    fn lock_opening(&self) -> MutexGuard<'_, Option<oneshot::Sender<ChannelEndResult>>> {
        self.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
