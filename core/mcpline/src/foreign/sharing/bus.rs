//! A bus in foreign code. One subscription serves all subscribers of a process.
//!
//! A message begins with the name of the process that published it and a space. A bus may return messages to the process that
//! published them: the process recognizes and drops them, because its own subscribers get each message at once.

use std::collections::HashMap;
use std::future::pending;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use mcpline_runtime::clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::sharing::{SharingError, SharingReply, SharingRequest, Subscription};
use crate::warning_limit::warn_limited;

use super::limits::{
    MAX_MESSAGE_AGE, MAX_MESSAGE_BYTES, MAX_RETRY_DELAY, MAX_WAITING_MESSAGE_BYTES, MIN_RETRY_DELAY,
};
use super::queue::BoundedQueue;
use super::requests::{Requests, failed, wrong_reply};

/// A subscriber's function.
pub(super) type Receiver = Arc<dyn Fn(Bytes) + Send + Sync>;

pub(super) struct ForeignBus {
    name: String,
    outgoing: BoundedQueue<Bytes>,
    incoming: BoundedQueue<Bytes>,
    receivers: Arc<Mutex<Receivers>>,
    /// One function publishes at a time: the next message waits until it has returned, so that messages keep their order.
    publishing: Arc<Semaphore>,
    /// There is one subscription at a time: the next one waits until the functions of the previous one have returned.
    subscribing: Arc<Semaphore>,
}

#[derive(Default)]
struct Receivers {
    by_number: HashMap<u64, Receiver>,
    next: u64,
}

impl ForeignBus {
    pub(super) fn new() -> Arc<Self> {
        Self::of(Arc::default())
    }

    /// Returns the same for a forked process, with its subscribers: nothing waits in it.
    pub(super) fn forked(&self) -> Arc<Self> {
        Self::of(self.receivers.clone())
    }

    fn of(receivers: Arc<Mutex<Receivers>>) -> Arc<Self> {
        Arc::new(Self {
            name: clock::token(),
            outgoing: BoundedQueue::new(MAX_WAITING_MESSAGE_BYTES),
            incoming: BoundedQueue::new(MAX_WAITING_MESSAGE_BYTES),
            receivers,
            publishing: Arc::new(Semaphore::new(1)),
            subscribing: Arc::new(Semaphore::new(1)),
        })
    }

    /// Passes a message to the subscribers in this process and, while the server is served, puts it into the queue for others.
    pub(super) fn publish(&self, message: Bytes, is_served: bool) {
        self.deliver(&message);
        if !is_served {
            warn_limited!("dropped a message for other processes: the server is not serving");
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
        // The semaphore is never closed.
        while let Ok(order) = self.publishing.clone().acquire_owned().await
            && let Some((message, came)) = self.outgoing.take(&mut stop).await
        {
            if came.elapsed() > MAX_MESSAGE_AGE {
                warn_limited!("the bus is too slow: messages waited too long and were dropped");
                continue;
            }
            let mut named = self.own_prefix().into_bytes();
            named.extend_from_slice(&message);
            let message = Bytes::from(named);
            let request = SharingRequest::Publish { message };
            let name = request.name();
            let error = match requests.send(request, order).await {
                Ok(SharingReply::Done) => continue,
                Ok(_) => wrong_reply(name),
                Err(error) => error,
            };
            warn_limited!(%error, "a message was not published on the bus");
        }
    }

    /// Passes received messages to the subscribers until `stop` is set.
    pub(super) async fn receive(&self, mut stop: watch::Receiver<bool>) {
        while let Some((message, _)) = self.incoming.take(&mut stop).await {
            self.deliver(&message);
        }
    }

    /// Subscribes until `stop` is set, trying again when that fails. Sets `attempted` once the first attempt has ended, or the
    /// timeout has passed.
    pub(super) async fn keep_subscribed(
        self: &Arc<Self>,
        requests: &Requests,
        attempted: &watch::Sender<bool>,
        mut stop: watch::Receiver<bool>,
    ) {
        let is_subscribed = AtomicBool::new(false);
        let turn = Mutex::new(None);
        let subscribing = async {
            // The semaphore is never closed.
            let Ok(permit) = self.subscribing.clone().acquire_owned().await else {
                return;
            };
            let permit = Arc::new(permit);
            *turn.lock().unwrap_or_else(PoisonError::into_inner) = Some(permit.clone());
            self.subscribe_to_bus(requests, &permit, attempted, &is_subscribed)
                .await;
            pending::<()>().await;
        };
        let waiting = async {
            tokio::time::sleep(requests.timeout()).await;
            attempted.send_replace(true);
            pending::<()>().await;
        };
        tokio::select! {
            // First, because there is nothing to do if it is set already.
            biased;
            // An error: the sender is gone, which is the end as well.
            _ = stop.wait_for(|&is_stopped| is_stopped) => {}
            () = subscribing => {}
            () = waiting => {}
        }
        let turn = turn.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !is_subscribed.into_inner() {
            return;
        }
        if let Err(error) = requests.send(SharingRequest::Unsubscribe, turn).await {
            warn_limited!(%error, "cannot end the subscription to the bus");
        }
    }

    /// Subscribes, trying again once a function that failed has returned. `is_subscribed` is set while there may be a
    /// subscription. Functions hold `turn` until they have returned.
    async fn subscribe_to_bus(
        self: &Arc<Self>,
        requests: &Requests,
        turn: &Arc<OwnedSemaphorePermit>,
        attempted: &watch::Sender<bool>,
        is_subscribed: &AtomicBool,
    ) {
        let mut delay = MIN_RETRY_DELAY;
        loop {
            is_subscribed.store(true, Ordering::Relaxed);
            let outcome = self.try_to_subscribe(requests, turn.clone()).await;
            let error = match outcome {
                Ok(SharingReply::Done) => {
                    attempted.send_replace(true);
                    return;
                }
                Ok(_) => wrong_reply("bus.subscribe"),
                Err(error) => error,
            };
            is_subscribed.store(false, Ordering::Relaxed);
            attempted.send_replace(true);
            warn_limited!(%error, "cannot subscribe to the bus: trying again");
            tokio::time::sleep(delay).await;
            delay = (2 * delay).min(MAX_RETRY_DELAY);
        }
    }

    /// Subscribes once. A function that does not return in time is cancelled and may still subscribe: a second one at the same
    /// time would get each message twice.
    async fn try_to_subscribe(
        self: &Arc<Self>,
        requests: &Requests,
        turn: Arc<OwnedSemaphorePermit>,
    ) -> Result<SharingReply, SharingError> {
        let bus = Arc::downgrade(self);
        let receive: Receiver = Arc::new(move |message| received(&bus, message));
        let request = SharingRequest::Subscribe { receive };
        let name = request.name();
        let mut call = requests.start(request, turn)?;
        let outcome = match tokio::time::timeout(requests.timeout(), call.outcome()).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let error = requests.timed_out(name);
                warn_limited!(%error, "not yet subscribed to the bus: still waiting for `bus.subscribe`");
                call.cancel();
                call.outcome().await
            }
        };
        outcome.map_err(|error| failed(name, &error))
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
    if message.len() > MAX_MESSAGE_BYTES {
        warn_limited!(
            "ignored a message of the bus of {} bytes (limit {MAX_MESSAGE_BYTES})",
            message.len()
        );
        return;
    }
    let message = message.slice(end + 1..);
    let bytes = message.len();
    if bus.incoming.push(message, bytes) {
        warn_limited!("messages of the bus arrive too fast: the oldest were dropped");
    }
}
