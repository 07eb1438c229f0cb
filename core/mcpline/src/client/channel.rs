//! A client's end of a channel that its host brought along.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use mcpline_protocol::Revision;
use tokio::sync::{mpsc, watch};

use crate::transport::Stop;

use super::address::Channel;
use super::error::ClientError;
use super::link::{Ending, Link, Outgoing, Sink};

/// A link over a [`Channel`].
pub(super) struct ChannelLink {
    /// Closed with the link, so that the other end sees that nothing more comes.
    to_server: Mutex<Option<mpsc::UnboundedSender<Bytes>>>,
    stop: Stop,
    over: watch::Receiver<bool>,
}

impl ChannelLink {
    pub(super) fn open(channel: Channel, sink: Sink) -> Arc<Self> {
        let Channel {
            to_server,
            mut from_server,
        } = channel;
        let stop = Stop::new();
        let (ended, over) = watch::channel(false);
        let stopped = stop.clone();
        tokio::spawn(async move {
            loop {
                let message = tokio::select! {
                    biased;
                    () = stopped.stopped() => break,
                    message = from_server.recv() => message,
                };
                match message {
                    Some(message) => drop(sink.message(message, None)),
                    None => break,
                }
            }
            drop(from_server);
            sink.ended(if stopped.is_stopped() {
                ClientError::Closed
            } else {
                ClientError::lost("the server closed its end")
            });
            ended.send_replace(true);
        });
        Arc::new(Self {
            to_server: Mutex::new(Some(to_server)),
            stop,
            over,
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
        self.stop.stop();
        let mut over = self.over.clone();
        Box::pin(async move {
            // An error is the task being gone.
            let _ = over.wait_for(|over| *over).await;
        })
    }
}

impl Drop for ChannelLink {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
