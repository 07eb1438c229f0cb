//! State that the processes of one service share, so that clients of handshake revisions may reach any of them.
//!
//! A server that runs alone needs none of this: it keeps its sessions, their events and change notifications in memory.
//! Several processes behind one address use [`Sharing`]: a [`SessionStore`] finds sessions that another process
//! started, an [`EventLog`] the events of streams that another process sent, and a [`Bus`] distributes events among
//! them. All three handle opaque bytes under opaque names, so a key-value store with publish and subscribe is enough to
//! implement them. [`SharedBuckets`] let rate limits count for all processes, and may be missing. [`MemorySharing`]
//! implements them within one process.
//!
//! 2026-07-28 has no sessions. It only needs the bus, for changes that `subscriptions/listen` reports, and common keys
//! for request states ([`Settings::state_keys`](crate::Settings)).
//!
//! Requests in flight stay with their process, as do sessions of HTTP+SSE (2024-11-05), each of which is one
//! connection.

mod buckets;
mod bus;
mod bus_event;
mod log;
mod memory;
mod request;
mod store;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use buckets::{BucketPolicy, SharedBuckets, TakeOutcome};
pub use bus::{Bus, Subscription};
pub(crate) use bus_event::{BusEndpoint, BusEvent};
pub use log::{EventLog, LoggedEvents};
pub use memory::MemorySharing;
pub use request::{SharingReply, SharingRequest};
pub(crate) use store::StoredSession;
pub use store::{SaveOutcome, SessionStore, UseOutcome};

/// The future of an operation on shared state.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, SharingError>> + Send + 'a>>;

/// Shared state could not be reached, or is corrupt.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct SharingError(String);

impl SharingError {
    /// Creates an error. The reason is for the log.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// The shared state of processes. See the [module](self).
#[derive(Clone)]
pub struct Sharing {
    /// The sessions.
    pub sessions: Arc<dyn SessionStore>,
    /// The events of resumable streams.
    pub events: Arc<dyn EventLog>,
    /// The bus between the processes.
    pub bus: Arc<dyn Bus>,
    /// The buckets of rate limits that count for all processes. Without them, each process counts on its own.
    pub buckets: Option<Arc<dyn SharedBuckets>>,
}

impl Sharing {
    /// Keeps all shared state in the memory of this process: for several servers in one process, and for tests.
    pub fn in_memory() -> Self {
        let memory = Arc::new(MemorySharing::default());
        Self {
            sessions: memory.clone(),
            events: memory.clone(),
            bus: memory.clone(),
            buckets: Some(memory),
        }
    }
}

impl std::fmt::Debug for Sharing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sharing").finish_non_exhaustive()
    }
}
