//! Transports written in foreign code: a [`Channel`] stands between the core and the code that carries its messages.
//!
//! Foreign code gives the channel what has come from the other side ([`Channel::receive`]) and takes from it what goes
//! there ([`Channel::next`]). Both directions are queues that are counted in bytes. While more than
//! [`MAX_WAITING_CHANNEL_BYTES`] waits in one, whoever fills it is slowed down: the core takes nothing more from the other
//! side, foreign code is told to wait ([`Channel::ready`]). Code that doesn't wait loses the channel at eight times as
//! much.
//!
//! [`ServedChannel`] serves one client over a channel, [`ChannelAddress`] has foreign code open one for each conversation
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

/// While more than this waits in one direction of a channel, no more is taken in: as much as of a pipe, for the same
/// reason.
pub const MAX_WAITING_CHANNEL_BYTES: usize = OUTBOX_LIMIT;

/// How much is handed to foreign code at once: a few messages cross together, and little is held twice.
const MAX_BATCH_BYTES: usize = 256 * 1024;

/// How long the last messages may take to be sent once a channel is closed: whoever reads takes milliseconds.
pub const LAST_MESSAGES: Duration = Duration::from_millis(750);

/// Why a channel ended.
type ChannelEndResult = Result<(), String>;

/// One connection over a transport that foreign code carries. Shared by both sides; any thread.
#[derive(Debug, Default)]
pub struct Channel {
    /// From the other side, to the core.
    incoming: Queue,
    /// From the core, to the other side.
    outgoing: Queue,
    opening: Mutex<Option<oneshot::Sender<ChannelEndResult>>>,
}

/// The channel takes no more messages: either side has closed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelClosed;

/// Closes a channel that is not opened after all.
struct Unopened(Option<Arc<Channel>>);

impl Drop for Unopened {
    fn drop(&mut self) {
        if let Some(channel) = &self.0 {
            channel.close();
        }
    }
}

impl Channel {
    /// A channel that nobody has opened yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Takes a message, or batch, that has come from the other side. Returns whether there is room for more; if there
    /// isn't, wait until the channel is [ready](Self::ready).
    ///
    /// # Errors
    ///
    /// If the channel is closed, or so many messages have been given without waiting that it ends now.
    pub fn receive(&self, message: impl Into<Bytes>) -> Result<bool, ChannelClosed> {
        let waiting = self.incoming.push(message.into()).ok_or(ChannelClosed)?;
        if waiting > 8 * MAX_WAITING_CHANNEL_BYTES {
            self.incoming.discard();
            self.hang_up(Some("too many messages were given without waiting".into()));
            return Err(ChannelClosed);
        }
        Ok(waiting <= MAX_WAITING_CHANNEL_BYTES)
    }

    /// Whether there is room for a message from the other side.
    pub fn has_room(&self) -> bool {
        self.incoming.has_room()
    }

    /// Waits until there is room for a message from the other side, or the channel is closed.
    pub async fn ready(&self) {
        self.incoming.room().await;
    }

    /// Nothing more comes from the other side; with a reason if that is a failure. What came before is still read. The first
    /// end counts.
    pub fn hang_up(&self, failure: Option<String>) {
        let end = failure.map_or(Ok(()), Err);
        let opening = self.lock_opening().take();
        if let Some(opening) = opening {
            let early = end.clone();
            // Nobody may wait for it any more.
            let _ = opening.send(Err(early
                .err()
                .unwrap_or_else(|| "the channel was closed".into())));
        }
        if end.is_err() {
            // What failed carries nothing more.
            self.outgoing.discard();
        }
        self.incoming.end(end);
    }

    /// The next messages to be sent to the other side, in order; `None` when there are none left and the core needs the
    /// channel no more. Asking for them says that those before have been sent.
    pub async fn next(&self) -> Option<Vec<Bytes>> {
        self.outgoing.take_batch(MAX_BATCH_BYTES).await
    }

    /// Waits until the core needs the channel no more, but for what is not sent yet: [`LAST_MESSAGES`] later it is to be
    /// closed.
    pub async fn ended(&self) {
        // The core never fails.
        let _ = self.outgoing.ended().await;
    }

    /// Waits until messages of [`next`](Self::next) have been sent, but not for ever once the channel is closed. Whether they
    /// have.
    pub async fn sending(&self, sent: impl Future<Output = ()>) -> bool {
        let given_up = async {
            self.ended().await;
            tokio::time::sleep(LAST_MESSAGES).await;
        };
        tokio::select! {
            () = sent => true,
            () = given_up => false,
        }
    }

    /// Ends the channel for the core: what waits is still handed out by [`next`](Self::next), and nothing is taken any more.
    pub fn close(&self) {
        self.lock_opening().take();
        self.incoming.discard();
        self.incoming.end(Ok(()));
        self.outgoing.end(Ok(()));
    }

    /// Has foreign code open the channel; resolves when it has answered by [`opened`](Self::opened). If that is no longer
    /// awaited, the channel is closed.
    ///
    /// # Errors
    ///
    /// If it could not be opened.
    pub async fn open(self: &Arc<Self>, open: impl FnOnce(Arc<Self>)) -> io::Result<()> {
        let mut unopened = Unopened(Some(self.clone()));
        let (opening, opened) = oneshot::channel();
        *self.lock_opening() = Some(opening);
        open(self.clone());
        let outcome = opened.await;
        let outcome = outcome.unwrap_or_else(|_| Err("the channel was closed".to_owned()));
        outcome.map_err(io::Error::other)?;
        unopened.0 = None;
        Ok(())
    }

    /// Answers [`open`](Self::open): the channel is open, or could not be opened, for a reason. Whether it was being opened.
    pub fn opened(&self, outcome: Result<(), String>) -> bool {
        let opening = self.lock_opening().take();
        let is_opening = opening.is_some();
        if let Some(opening) = opening {
            // Nobody may wait for it any more.
            let _ = opening.send(outcome);
        }
        is_opening
    }

    fn lock_opening(&self) -> MutexGuard<'_, Option<oneshot::Sender<ChannelEndResult>>> {
        self.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
