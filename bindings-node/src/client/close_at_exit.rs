//! Closes open clients when the process or worker ends, so that no child process is left behind.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use mcpline::foreign::IoAction;
use mcpline::foreign::client::{CLOSING_TIMEOUT, ClientCloser, Connection};
use napi::{Env, Result};
use napi_derive::napi;

use crate::hub::{Hub, Shared, lock};

/// The clients of one JavaScript thread.
#[napi]
pub struct Clients {
    open: Arc<OpenClients>,
}

/// The open clients, by their numbers.
pub(super) struct OpenClients {
    pub(super) hub: Arc<Shared>,
    connections: Mutex<HashMap<u32, Weak<Connection>>>,
}

#[napi]
impl Clients {
    /// Creates the registry of this JavaScript thread's clients, initially empty.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: Env, hub: &Hub) -> Result<Self> {
        let open = Arc::new(OpenClients {
            hub: hub.shared.clone(),
            connections: Mutex::default(),
        });
        let ending = Arc::downgrade(&open);
        // Before the hub's own hook, which ends the I/O thread: hooks run in reverse order.
        env.add_env_cleanup_hook((), move |()| {
            if let Some(open) = ending.upgrade() {
                open.close();
            }
        })?;
        Ok(Self { open })
    }

    /// Closes open clients, and waits for their end for a limited time.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.open.close();
    }
}

impl Clients {
    pub(super) fn open(&self) -> &Arc<OpenClients> {
        &self.open
    }
}

impl OpenClients {
    pub(super) fn enter(&self, number: u32, connection: &Arc<Connection>) {
        lock(&self.connections).insert(number, Arc::downgrade(connection));
    }

    pub(super) fn forget(&self, number: u32) {
        lock(&self.connections).remove(&number);
    }

    fn close(&self) {
        let connections = std::mem::take(&mut *lock(&self.connections));
        let closing = ClientCloser::default();
        for connection in connections.values().filter_map(Weak::upgrade) {
            let task = closing.task(async move { connection.close().await });
            if self.hub.push(IoAction::Run(Box::new(task))).is_err() {
                // The I/O thread has ended, and every connection with it.
                return;
            }
        }
        closing.wait(CLOSING_TIMEOUT);
    }
}
