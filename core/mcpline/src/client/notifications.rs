//! Notifications of the server as a stream.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_core::Stream;
use mcpline_protocol::wire::Notification;
use tokio::sync::mpsc;

use super::ClientBuilder;

/// How many notifications wait to be read, before further ones are dropped. A host that reads at all is not so far behind
/// a server; more would only show it the past.
const MAX_WAITING: usize = 1024;

/// How many bytes they take at most.
const MAX_WAITING_BYTES: usize = 4 * 1024 * 1024;

/// What a waiting notification takes besides its content.
const ENTRY_BYTES: usize = 128;

/// The notifications of a server, in the order of arrival. Made by [`ClientBuilder::notifications`].
///
/// It is a [`Stream`]; [`Notifications::next`] needs no other crate. It ends when the client and all its clones were dropped. Dropping the stream
/// stops the delivery and leaves the client as it is.
#[derive(Debug)]
pub struct Notifications {
    received: mpsc::Receiver<(Notification, usize)>,
    waiting: Arc<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: AtomicUsize,
    missed: AtomicU64,
}

impl Notifications {
    /// Waits for the next notification; `None` when the client and all its clones were dropped and everything was read.
    pub async fn next(&mut self) -> Option<Notification> {
        let received = self.received.recv().await;
        received.map(|entry| self.read(entry))
    }

    /// Returns how many notifications were dropped because too many were waiting: 1024, or 4 MiB.
    pub fn missed(&self) -> u64 {
        self.waiting.missed.load(Ordering::Relaxed)
    }

    fn read(&self, (notification, bytes): (Notification, usize)) -> Notification {
        self.waiting.bytes.fetch_sub(bytes, Ordering::Relaxed);
        notification
    }
}

impl Stream for Notifications {
    type Item = Notification;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Notification>> {
        let received = self.received.poll_recv(cx);
        received.map(|received| received.map(|entry| self.read(entry)))
    }
}

impl ClientBuilder {
    /// Returns the notifications of the server as a stream, next to the builder. Like
    /// [`on_notification`](Self::on_notification), it subscribes to changes.
    ///
    /// Progress of a request is not among them if the request has a listener of its own. A stream that is not read keeps
    /// at most 1024 notifications or 4 MiB; further ones are dropped and [counted](Notifications::missed).
    ///
    /// ```
    /// use mcpline::client::{Client, ClientError};
    /// use mcpline::{Context, Server};
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// let server = Server::new("acme", "1.0.0").tool("brew", "Brews tea", |ctx: Context| async move {
    ///     ctx.notify("acme/brewing", None).is_ok()
    /// });
    /// let (builder, mut notifications) = Client::builder("host", "1.0.0").notifications();
    /// let client = builder.connect(&server).await?;
    /// client.call_tool("brew", json!({})).await?;
    /// while let Some(notification) = notifications.next().await {
    ///     if notification.method.as_str() == "acme/brewing" {
    ///         break;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn notifications(self) -> (Self, Notifications) {
        let (sender, received) = mpsc::channel(MAX_WAITING);
        let waiting = Arc::new(Waiting::default());
        let of_stream = waiting.clone();
        let builder = self.on_notification(move |notification| {
            let bytes = held_bytes(notification);
            let before = waiting.bytes.fetch_add(bytes, Ordering::Relaxed);
            let is_sent = before + bytes <= MAX_WAITING_BYTES
                && sender.try_send((notification.clone(), bytes)).is_ok();
            if !is_sent {
                waiting.bytes.fetch_sub(bytes, Ordering::Relaxed);
                waiting.missed.fetch_add(1, Ordering::Relaxed);
            }
        });
        let notifications = Notifications {
            received,
            waiting: of_stream,
        };
        (builder, notifications)
    }
}

fn held_bytes(notification: &Notification) -> usize {
    let params = notification.params.as_ref();
    let extra = notification.extra.iter();
    let extra: usize = extra
        .map(|(name, value)| name.len() + value.as_bytes().len())
        .sum();
    ENTRY_BYTES + params.map_or(0, |params| params.raw().as_bytes().len()) + extra
}

#[cfg(test)]
mod tests {
    use mcpline_protocol::Raw;
    use mcpline_protocol::wire::{Method, Params};

    use super::*;
    use crate::client::Client;

    #[tokio::test]
    async fn what_is_not_read_is_bounded_and_counted() {
        let (builder, mut notifications) = Client::builder("host", "1").notifications();
        let listener = builder.handlers.listeners[0].clone();
        let long = Raw::string(&"x".repeat(MAX_WAITING_BYTES / 2)).to_string();
        let params = Raw::parse(format!(r#"{{"text":{long}}}"#)).expect("JSON");
        let large = Notification {
            method: Method::parse("acme/note"),
            params: Params::from_raw(params),
            extra: Vec::new(),
        };
        for _ in 0..3 {
            listener(&large);
        }
        assert_eq!(notifications.missed(), 2);
        let small = Notification {
            params: None,
            ..large.clone()
        };
        for _ in 0..MAX_WAITING {
            listener(&small);
        }
        assert_eq!(notifications.missed(), 3);
        drop((builder, listener));
        let mut read = 0;
        while notifications.next().await.is_some() {
            read += 1;
        }
        assert_eq!(read, MAX_WAITING);
        assert_eq!(notifications.waiting.bytes.load(Ordering::Relaxed), 0);
    }
}
