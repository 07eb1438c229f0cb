//! What the processes of one service share, so that a handshake-era client may reach any of them.
//!
//! A server that runs alone needs none of this: its sessions, their events and the news of changes are held
//! in its own memory. Several processes behind one address are given [`Sharing`]: a [`SessionStore`] finds
//! the session that another process began, an [`EventLog`] the events of a stream that another process sent,
//! and a [`Bus`] carries what happens in one of them to the others. All three see opaque bytes under opaque
//! names, so a key-value store with publish and subscribe is enough to implement them. [`Memory`] does so
//! within one process.
//!
//! 2026-07-28 has no sessions; there the bus alone matters (changes that `subscriptions/listen` tells of), and
//! the request-state keys that the processes have in common ([`Settings::state_keys`](crate::Settings)).
//!
//! What stays with its process: a request in flight, and a session of HTTP+SSE (2024-11-05), which is one
//! connection.

mod bus;
mod bus_event;
mod log;
mod memory;
mod store;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use bus::{Bus, Subscription};
pub(crate) use bus_event::{BusEndpoint, BusEvent};
pub use log::{EventLog, LoggedEvents};
pub use memory::Memory;
pub use store::SessionStore;
pub(crate) use store::StoredSession;

/// What an operation of a shared part gives once it is done.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, SharingError>> + Send + 'a>>;

/// A shared part could not be reached, or gave something that it was not given.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct SharingError(String);

impl SharingError {
    /// The reason, for a log.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// The parts that processes share. See the [module](self).
#[derive(Clone)]
pub struct Sharing {
    /// Where sessions are found.
    pub sessions: Arc<dyn SessionStore>,
    /// Where the events of resumable streams are found.
    pub events: Arc<dyn EventLog>,
    /// How processes tell one another.
    pub bus: Arc<dyn Bus>,
}

impl Sharing {
    /// All three parts in the memory of this process: for several servers in one process, and for tests.
    pub fn in_memory() -> Self {
        let memory = Arc::new(Memory::default());
        Self {
            sessions: memory.clone(),
            events: memory.clone(),
            bus: memory,
        }
    }
}

impl std::fmt::Debug for Sharing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sharing").finish_non_exhaustive()
    }
}
