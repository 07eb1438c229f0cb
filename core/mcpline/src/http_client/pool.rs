//! Connections that wait for the next request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use mcpline_protocol::HttpOrigin;
use tokio::time::Instant;

use crate::background::{self, AbortHandle};
use crate::background_tasks::BackgroundTasks;

use super::connector::HttpConnection;

/// Maximum number of idle connections of one client: as many as a busy program has calls in flight. A burst beyond it
/// opens new ones.
const MAX_IDLE: usize = 128;

/// How long a connection may be idle. Servers close theirs after 5 to 75 seconds, which the connection's task notices;
/// this is for those that never do.
const IDLE_FOR: Duration = Duration::from_secs(60);

/// Connections that wait for the next request.
pub(crate) struct Pool {
    shared: Mutex<Shared>,
    tasks: BackgroundTasks,
}

#[derive(Default)]
struct Shared {
    /// The last used one is at the end, because it is most likely still open.
    idle: Vec<Idle>,
    /// The task that closes connections after their idle time. It runs while there are any.
    sweeper: Option<AbortHandle>,
    closed: bool,
}

struct Idle {
    origin: Arc<HttpOrigin>,
    wire: HttpConnection,
    since: Instant,
}

impl Pool {
    pub(crate) fn new(tasks: &BackgroundTasks) -> Self {
        Self {
            shared: Mutex::default(),
            tasks: tasks.clone(),
        }
    }

    /// Takes a connection to `origin` that can carry a request.
    pub(crate) fn take(&self, origin: &HttpOrigin) -> Option<HttpConnection> {
        let mut shared = self.lock();
        let mut at = shared.idle.len();
        while at > 0 {
            at -= 1;
            let idle = &shared.idle[at];
            if idle.wire.sender.is_closed() {
                shared.idle.remove(at);
            } else if *idle.origin == *origin && idle.wire.sender.is_ready() {
                return Some(shared.idle.remove(at).wire);
            }
        }
        None
    }

    /// Keeps a connection whose response has been read to its end.
    pub(crate) fn put(self: &Arc<Self>, origin: Arc<HttpOrigin>, wire: HttpConnection) {
        if wire.sender.is_closed() {
            return;
        }
        let mut shared = self.lock();
        if shared.closed {
            return;
        }
        if shared.idle.len() >= MAX_IDLE {
            shared.idle.remove(0);
        }
        shared.idle.push(Idle {
            origin,
            wire,
            since: Instant::now(),
        });
        // It ends with its runtime, which this pool may outlive.
        if shared.sweeper.as_ref().is_none_or(AbortHandle::is_finished) {
            let task = background::spawn_here(self.tasks.until_closed(sweep(Arc::downgrade(self))));
            shared.sweeper = Some(task.abort_handle());
        }
    }

    /// Closes all idle connections and keeps no more.
    pub(crate) fn close(&self) {
        let (idle, sweeper) = {
            let mut shared = self.lock();
            shared.closed = true;
            (std::mem::take(&mut shared.idle), shared.sweeper.take())
        };
        drop(idle);
        if let Some(sweeper) = sweeper {
            sweeper.abort();
        }
    }

    /// Returns the number of open idle connections.
    #[cfg(test)]
    pub(crate) fn open(&self) -> usize {
        let shared = self.lock();
        let open = |idle: &&Idle| !idle.wire.sender.is_closed();
        shared.idle.iter().filter(open).count()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(sweeper) = self.lock().sweeper.take() {
            sweeper.abort();
        }
    }
}

async fn sweep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(IDLE_FOR).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        let mut shared = pool.lock();
        shared
            .idle
            .retain(|idle| idle.since.elapsed() < IDLE_FOR && !idle.wire.sender.is_closed());
        if shared.idle.is_empty() {
            shared.sweeper = None;
            return;
        }
    }
}
