//! A bus in foreign code. One subscription serves all subscribers of a process.
//!
//! A message begins with the name of the process that published it and a space. A bus may return messages to the process that
//! published them: the process recognizes and drops them, because its own subscribers get each message at once.

use std::collections::HashMap;
use std::process;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use mcpline_runtime::clock;
use tokio::sync::watch;

use crate::sharing::{SharingReply, SharingRequest, Subscription};
use crate::warning_limit::warn_limited;

use super::limits::{MAX_RETRY_DELAY, MAX_WAITING_MESSAGE_BYTES, MIN_RETRY_DELAY};
use super::queue::BoundedQueue;
use super::requests::{Requests, wrong_reply};

/// A subscriber's function.
pub(super) type Receiver = Arc<dyn Fn(Bytes) + Send + Sync>;

pub(super) struct ForeignBus {
    name: String,
    outgoing: BoundedQueue<Bytes>,
    incoming: BoundedQueue<Bytes>,
    receivers: Mutex<Receivers>,
}

#[derive(Default)]
struct Receivers {
    by_number: HashMap<u64, Receiver>,
    next: u64,
}

impl ForeignBus {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            name: clock::token(),
            outgoing: BoundedQueue::new(MAX_WAITING_MESSAGE_BYTES),
            incoming: BoundedQueue::new(MAX_WAITING_MESSAGE_BYTES),
            receivers: Mutex::default(),
        })
    }

    /// Passes a message to the subscribers in this process and, while the server is served, puts it into the queue for others.
    pub(super) fn publish(&self, message: Bytes, is_served: bool) {
        self.deliver(&message);
        if !is_served {
            return;
        }
        let bytes = message.len();
        if self.outgoing.push(message, bytes) {
            warn_limited!("the bus is too slow: its oldest messages were dropped");
        }
    }

    pub(super) fn subscribe(self: &Arc<Self>, receive: Receiver) -> Subscription {
        let number = {
            let mut receivers = self.lock();
            receivers.next += 1;
            let number = receivers.next;
            receivers.by_number.insert(number, receive);
            number
        };
        let bus = self.clone();
        Subscription::new(move || {
            let receive = bus.lock().by_number.remove(&number);
            // Dropped outside the lock, because it may hold something that subscribes itself.
            drop(receive);
        })
    }

    /// Sends messages in order until `stop` is set and all are sent.
    pub(super) async fn send(&self, requests: &Requests, mut stop: watch::Receiver<bool>) {
        while let Some(messages) = self.outgoing.take(0, &mut stop).await {
            for message in &messages {
                let mut named = self.own_prefix().into_bytes();
                named.extend_from_slice(message);
                let message = Bytes::from(named);
                let request = SharingRequest::Publish { message };
                let name = request.name();
                let error = match requests.send(request).await {
                    Ok(SharingReply::Done) => continue,
                    Ok(_) => wrong_reply(name),
                    Err(error) => error,
                };
                warn_limited!(%error, "a message was not published on the bus");
            }
        }
    }

    /// Passes received messages to the subscribers until `stop` is set.
    pub(super) async fn receive(&self, mut stop: watch::Receiver<bool>) {
        while let Some(messages) = self.incoming.take(0, &mut stop).await {
            for message in messages {
                self.deliver(&message);
            }
        }
    }

    /// Subscribes until `stop` is set, trying again when that fails. Sets `attempted` once the first attempt has ended.
    pub(super) async fn keep_subscribed(
        self: Arc<Self>,
        requests: &Requests,
        attempted: watch::Sender<bool>,
        mut stop: watch::Receiver<bool>,
    ) {
        let mut delay = MIN_RETRY_DELAY;
        loop {
            let bus = Arc::downgrade(&self);
            let receive: Receiver = Arc::new(move |message| received(&bus, message));
            let request = SharingRequest::Subscribe { receive };
            let name = request.name();
            let outcome = requests.send(request).await;
            attempted.send_replace(true);
            let error = match outcome {
                Ok(SharingReply::Done) => break,
                Ok(_) => wrong_reply(name),
                Err(error) => error,
            };
            warn_limited!(%error, "cannot subscribe to the bus: trying again");
            tokio::select! {
                () = tokio::time::sleep(delay) => delay = (2 * delay).min(MAX_RETRY_DELAY),
                _ = stop.wait_for(|&is_stopped| is_stopped) => return,
            }
        }
        // An error: the sender is gone, which is the end as well.
        let _ = stop.wait_for(|&is_stopped| is_stopped).await;
        if let Err(error) = requests.send(SharingRequest::Unsubscribe).await {
            warn_limited!(%error, "cannot end the subscription to the bus");
        }
    }

    /// A forked process has another one.
    fn own_prefix(&self) -> String {
        format!("{}.{:x} ", self.name, process::id())
    }

    fn deliver(&self, message: &Bytes) {
        let receivers: Vec<Receiver> = self.lock().by_number.values().cloned().collect();
        for receive in receivers {
            receive(message.clone());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Receivers> {
        self.receivers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a message from the bus, from any thread, unless this process has published it.
fn received(bus: &Weak<ForeignBus>, message: Bytes) {
    let Some(bus) = bus.upgrade() else { return };
    if message.starts_with(bus.own_prefix().as_bytes()) {
        return;
    }
    let Some(end) = message.iter().position(|&byte| byte == b' ') else {
        warn_limited!("ignored a message of the bus that mcpline has not published");
        return;
    };
    let message = message.slice(end + 1..);
    let bytes = message.len();
    if bus.incoming.push(message, bytes) {
        warn_limited!("messages of the bus arrive too fast: the oldest were dropped");
    }
}
