//! Links over a custom channel of the host.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use mcpline_protocol::Revision;
use tokio::sync::mpsc;

use crate::background;
use crate::client_error::ClientError;
use crate::line_io::outbox::OUTBOX_LIMIT;

use super::address::Channel;
use super::link::{Link, LinkFuture, Outgoing, OutgoingKind, SharedEventSink};
use super::link_shutdown::{LinkShutdown, link_shutdown};

/// Maximum number of unsent bytes in a channel, because nothing else bounds it: above, further requests fail and
/// notifications are dropped. As much as a connection in memory may leave unreceived. Answers are accepted, because a
/// channel whose other side takes nothing should not be read either; so are cancellations, which are small and at most
/// as many as requests.
const MAX_UNSENT_BYTES: usize = 8 * OUTBOX_LIMIT;

/// A link over a [`Channel`].
pub(super) struct ChannelLink {
    /// Dropped when the link closes, which ends the stream for the other side.
    to_server: Mutex<Option<mpsc::UnboundedSender<Bytes>>>,
    /// Number of unsent bytes.
    unsent: Arc<AtomicUsize>,
    /// Refused requests, for the task to report.
    refused: mpsc::UnboundedSender<u64>,
    closing: LinkShutdown,
}

/// A message that counts as unsent until the channel has dropped it.
struct CountedMessage {
    message: Bytes,
    unsent: Arc<AtomicUsize>,
}

impl CountedMessage {
    fn new(message: Bytes, unsent: &Arc<AtomicUsize>) -> Self {
        unsent.fetch_add(message.len(), Ordering::Relaxed);
        Self {
            message,
            unsent: unsent.clone(),
        }
    }
}

impl AsRef<[u8]> for CountedMessage {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

impl Drop for CountedMessage {
    fn drop(&mut self) {
        self.unsent.fetch_sub(self.message.len(), Ordering::Relaxed);
    }
}

impl ChannelLink {
    pub(super) fn open(channel: Channel, sink: SharedEventSink) -> Arc<Self> {
        let Channel {
            to_server,
            mut from_server,
        } = channel;
        let (closing, running) = link_shutdown();
        let (refused, mut to_refuse) = mpsc::unbounded_channel();
        background::spawn_here(async move {
            let error = loop {
                let message = tokio::select! {
                    biased;
                    () = running.stop.stopped() => break ClientError::Closed,
                    Some(request) = to_refuse.recv() => {
                        let limit = MAX_UNSENT_BYTES;
                        sink.failed(request, ClientError::TooMuchUnsent { limit });
                        continue;
                    }
                    message = from_server.recv() => message,
                };
                match message {
                    Some(Ok(message)) => drop(sink.message(message, None)),
                    Some(Err(error)) => break ClientError::broken(error),
                    None => break ClientError::lost("the server closed its end"),
                }
            };
            drop(from_server);
            sink.ended(error);
        });
        Arc::new(Self {
            to_server: Mutex::new(Some(to_server)),
            unsent: Arc::default(),
            refused,
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
        if self.unsent.load(Ordering::Relaxed) > MAX_UNSENT_BYTES {
            match outgoing.purpose {
                OutgoingKind::Request(head) => {
                    // If the task has ended, every request has failed already.
                    let _ = self.refused.send(head.number);
                    return;
                }
                OutgoingKind::Notification { about: None } => {
                    tracing::warn!(
                        "dropped a notification: more than {MAX_UNSENT_BYTES} bytes wait to be sent to the server"
                    );
                    return;
                }
                OutgoingKind::Notification { about: Some(_) } | OutgoingKind::Answer => {}
            }
        }
        if let Some(sender) = &*self.sender() {
            let message = CountedMessage::new(outgoing.message, &self.unsent);
            // If the other side is gone, the receiving task ends too and reports it.
            let _ = sender.send(Bytes::from_owner(message));
        }
    }

    fn abandon(&self, _: u64) {}

    fn set_session_open(&self, _: Revision) {}

    fn close(&self) -> LinkFuture {
        drop(self.sender().take());
        self.closing.close()
    }
}

#[cfg(test)]
mod tests {
    use mcpline_protocol::Revision;

    use super::*;
    use crate::client::link::RequestHead;
    use crate::client::session::{LinkEvent, LinkEventReceiver};

    fn request(number: u64) -> Outgoing {
        let head = RequestHead {
            number,
            revision: Revision::V2026_07_28,
            opens: false,
            is_repeatable: false,
            headers: Vec::new(),
        };
        Outgoing {
            message: Bytes::from_static(b"{}"),
            purpose: OutgoingKind::Request(head),
        }
    }

    fn notification(about: Option<u64>) -> Outgoing {
        Outgoing {
            message: Bytes::from_static(b"[]"),
            purpose: OutgoingKind::Notification { about },
        }
    }

    #[runtimes::test]
    async fn requests_fail_while_too_much_is_not_sent() {
        let (to_server, mut sent) = mpsc::unbounded_channel();
        let (_from, from_server) = mpsc::channel(1);
        let (reception, mut reports) = LinkEventReceiver::new();
        let channel = Channel {
            to_server,
            from_server,
        };
        let link = ChannelLink::open(channel, reception);
        let large = CountedMessage::new(vec![b' '; 100].into(), &link.unsent);
        link.unsent
            .fetch_add(MAX_UNSENT_BYTES - 100, Ordering::Relaxed);
        link.send(request(1));
        link.send(request(2));
        let report = reports.recv().await.expect("a report");
        let limit = MAX_UNSENT_BYTES;
        assert!(
            matches!(report, LinkEvent::Failed(2, ClientError::TooMuchUnsent { limit: l }) if l == limit)
        );
        link.send(notification(None));
        link.send(notification(Some(1)));
        assert_eq!(sent.recv().await.expect("the request"), "{}");
        assert_eq!(sent.recv().await.expect("the cancellation"), "[]");
        assert!(sent.try_recv().is_err());
        // Sent messages no longer count.
        drop(large);
        link.send(request(3));
        assert_eq!(sent.recv().await.expect("the request"), "{}");
        assert!(reports.try_recv().is_err());
    }
}
