//! Signs of life of processes that serve the same sessions: how a process that continues another one's stream knows that the other
//! one has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::background;
use crate::sharing::SessionStore;

/// The time between two signs of life: one small write, so that even a thousand processes are little load.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// How long the store keeps a sign of life: one may be lost or late.
const HEARTBEAT_LIFETIME: Duration = HEARTBEAT_INTERVAL.saturating_mul(3);

/// How long the store must be without a sign of life before a process counts as ended: longer than processes take to write again
/// after the store has failed. With the lifetime, a request ends 15 to 25 s after its process, before the timeouts of most clients.
const PROCESS_LOST_TIMEOUT: Duration = Duration::from_secs(10);

/// The value of a sign of life.
const ALIVE: &[u8] = b"alive";

/// The signs of life of this process. They end on drop.
#[derive(Default)]
pub(super) struct Heartbeats {
    /// The number of the process that sends them; 0 if none does. A forked process finds that of its parent.
    sender: AtomicU32,
    /// Held as long as the process serves.
    is_serving: Arc<()>,
}

impl Heartbeats {
    /// Starts to send them, unless this process, whose number is not 0, sends them already.
    pub(super) fn start(&self, runtime: &Handle, store: &Arc<dyn SessionStore>, process: u32) {
        if self.sender.load(Ordering::Relaxed) == process
            || self.sender.swap(process, Ordering::Relaxed) == process
        {
            return;
        }
        let (store, is_serving) = (Arc::downgrade(store), Arc::downgrade(&self.is_serving));
        background::spawn(runtime, async move {
            let (key, alive) = (key_of(process), Bytes::from_static(ALIVE));
            while is_serving.strong_count() > 0
                && let Some(store) = store.upgrade()
            {
                let sending = store.save(&key, alive.clone(), alive.clone(), HEARTBEAT_LIFETIME);
                if let Err(error) = sending.await {
                    // Saving sessions fails as well, which is logged as a warning.
                    tracing::debug!(%error, "a heartbeat was not sent");
                }
                drop(store);
                tokio::time::sleep(HEARTBEAT_INTERVAL).await;
            }
        });
    }
}

/// Another process, of which this one looks for signs of life.
pub(super) struct OtherProcess {
    store: Arc<dyn SessionStore>,
    key: String,
    next_look: Option<Instant>,
    /// Since when the store has been without a sign of life.
    missing_since: Option<Instant>,
}

impl OtherProcess {
    pub(super) fn new(store: Arc<dyn SessionStore>, process: u32) -> Self {
        Self {
            store,
            key: key_of(process),
            next_look: None,
            missing_since: None,
        }
    }

    /// Whether the process has ended. Looks for signs of life every few seconds, however often it is called.
    pub(super) async fn is_lost(&mut self) -> bool {
        let now = Instant::now();
        if self.next_look.is_some_and(|next| now < next) {
            return false;
        }
        self.next_look = Some(now + HEARTBEAT_INTERVAL);
        let is_missing = matches!(self.store.load(&self.key).await, Ok(None));
        // While the store fails, or takes no writes, nothing is known.
        if !is_missing || !self.can_be_written().await {
            self.missing_since = None;
            return false;
        }
        let since = *self.missing_since.get_or_insert(now);
        now - since >= PROCESS_LOST_TIMEOUT
    }

    /// Whether the other process could store a sign of life now.
    async fn can_be_written(&self) -> bool {
        let (probe, value) = (format!("probe-{}", self.key), Bytes::from_static(ALIVE));
        let saving = self
            .store
            .save(&probe, value.clone(), value, HEARTBEAT_LIFETIME);
        saving.await.is_ok()
    }
}

/// Returns the id under which signs of life are stored. It is shorter than those of sessions.
fn key_of(process: u32) -> String {
    format!("process-{process:x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sharing::Sharing;

    #[tokio::test(start_paused = true)]
    async fn each_process_that_has_the_memory_sends_signs_of_life() {
        let store = Sharing::in_memory().sessions;
        let heartbeats = Heartbeats::default();
        // As the parent, then as a process that was forked from it.
        for process in [1, 2] {
            heartbeats.start(&Handle::current(), &store, process);
            tokio::time::sleep(HEARTBEAT_INTERVAL).await;
            let sign = store.load(&key_of(process)).await;
            assert!(sign.expect("loads").is_some(), "process {process}");
        }
    }
}
