//! The end of the process, or of the worker: clients that are still open are closed, so that no child stays.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use mcpline::foreign::Completion;
use napi::{Env, Result};
use napi_derive::napi;

use crate::hub::{Hub, Shared, lock};

use super::handle::Connection;

/// How long the end waits for connections to end: a child has two seconds to leave by itself, and two more once it is
/// told to.
const PATIENCE: Duration = Duration::from_secs(5);

/// The clients of one JavaScript thread.
#[napi]
pub struct Clients {
    open: Arc<Open>,
}

/// Those that are open, by their numbers.
pub(super) struct Open {
    hub: Arc<Shared>,
    connections: Mutex<HashMap<u32, Weak<Connection>>>,
}

#[napi]
impl Clients {
    /// The clients of this JavaScript thread, of which there are none yet.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: Env, hub: &Hub) -> Result<Self> {
        let open = Arc::new(Open {
            hub: hub.shared.clone(),
            connections: Mutex::default(),
        });
        let ending = Arc::downgrade(&open);
        // Before the hub's own, which ends the I/O thread: the last that is added comes first.
        env.add_env_cleanup_hook((), move |()| {
            if let Some(open) = ending.upgrade() {
                open.close();
            }
        })?;
        Ok(Self { open })
    }

    /// Closes those that are still open, and waits until nothing of them is left, but not for ever.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.open.close();
    }
}

impl Clients {
    pub(super) fn open(&self) -> &Arc<Open> {
        &self.open
    }
}

impl Open {
    pub(super) fn hub(&self) -> &Arc<Shared> {
        &self.hub
    }

    pub(super) fn enter(&self, number: u32, connection: &Arc<Connection>) {
        lock(&self.connections).insert(number, Arc::downgrade(connection));
    }

    pub(super) fn forget(&self, number: u32) {
        lock(&self.connections).remove(&number);
    }

    fn close(&self) {
        let connections = std::mem::take(&mut *lock(&self.connections));
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut open = 0;
        for connection in connections.values().filter_map(Weak::upgrade) {
            let sender = sender.clone();
            let closing = Completion::Run(Box::new(move || {
                tokio::spawn(async move {
                    connection.close().await;
                    // Nobody waits any more if it took too long.
                    let _ = sender.send(());
                });
            }));
            if self.hub.push(closing).is_err() {
                // The I/O thread has ended, and every connection with it.
                return;
            }
            open += 1;
        }
        let until = Instant::now() + PATIENCE;
        for _ in 0..open {
            let left = until.saturating_duration_since(Instant::now());
            if receiver.recv_timeout(left).is_err() {
                return;
            }
        }
    }
}
