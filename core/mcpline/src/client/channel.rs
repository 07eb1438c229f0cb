//! A client's end of a channel that its host brought along.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use mcpline_protocol::Revision;
use tokio::sync::mpsc;

use crate::background;
use crate::client_error::ClientError;

use super::address::Channel;
use super::closing::{Closing, closing};
use super::link::{Ending, Link, Outgoing, Sink};

/// A link over a [`Channel`].
pub(super) struct ChannelLink {
    /// Closed with the link, so that the other end sees that nothing more comes.
    to_server: Mutex<Option<mpsc::UnboundedSender<Bytes>>>,
    closing: Closing,
}

impl ChannelLink {
    pub(super) fn open(channel: Channel, sink: Sink) -> Arc<Self> {
        let Channel {
            to_server,
            mut from_server,
        } = channel;
        let (closing, running) = closing();
        background::spawn_here(async move {
            let error = loop {
                let message = tokio::select! {
                    biased;
                    () = running.stop.stopped() => break ClientError::Closed,
                    message = from_server.recv() => message,
                };
                match message {
                    Some(Ok(message)) => drop(sink.message(message, None)),
                    Some(Err(error)) => break ClientError::lost(error),
                    None => break ClientError::lost("the server closed its end"),
                }
            };
            drop(from_server);
            sink.ended(error);
        });
        Arc::new(Self {
            to_server: Mutex::new(Some(to_server)),
            closing,
        })
    }

    fn sender(&self) -> std::sync::MutexGuard<'_, Option<mpsc::UnboundedSender<Bytes>>> {
        self.to_server
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link for ChannelLink {
    fn send(&self, outgoing: Outgoing) {
        if let Some(sender) = &*self.sender() {
            // If the other end is gone, the receiving task ends as well and says so.
            let _ = sender.send(outgoing.message);
        }
    }

    fn abandon(&self, _: u64) {}

    fn opened(&self, _: Revision) {}

    fn close(&self) -> Ending {
        drop(self.sender().take());
        self.closing.close()
    }
}
