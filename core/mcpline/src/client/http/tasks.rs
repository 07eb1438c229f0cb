//! The tasks of one link: each can be ended by itself, and all of them for good.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::background;

/// The tasks of one link.
pub(super) struct Tasks {
    handle: Handle,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// The tasks that live, numbered. A task that begins is in here before its handle is.
    open: HashMap<Key, (u64, Option<JoinHandle<()>>)>,
    next: u64,
    closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// The exchange of the request with this number.
    Exchange(u64),
    Other(u64),
}

impl Tasks {
    pub(super) fn new(handle: Handle) -> Arc<Self> {
        Arc::new(Self {
            handle,
            table: Mutex::default(),
        })
    }

    /// Starts the exchange of a request. Returns whether it did: nothing is started once the link is closed.
    pub(super) fn exchange(
        self: &Arc<Self>,
        number: u64,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> bool {
        self.start(Some(number), task)
    }

    /// Starts anything else.
    pub(super) fn spawn(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) -> bool {
        self.start(None, background::task(task))
    }

    /// Runs something that belongs to no link any more.
    pub(super) fn detached<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        background::spawn(&self.handle, task)
    }

    /// Ends the exchange of a request.
    pub(super) fn abandon(&self, number: u64) {
        if let Some((_, Some(task))) = self.lock().open.get(&Key::Exchange(number)) {
            task.abort();
        }
    }

    /// Ends all tasks for good, and returns them to be waited for.
    pub(super) fn close(&self) -> Vec<JoinHandle<()>> {
        let mut table = self.lock();
        table.closed = true;
        let tasks: Vec<_> = table
            .open
            .drain()
            .filter_map(|(_, (_, task))| task)
            .collect();
        drop(table);
        tasks.iter().for_each(JoinHandle::abort);
        tasks
    }

    fn start(
        self: &Arc<Self>,
        exchange: Option<u64>,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> bool {
        let mut table = self.lock();
        if table.closed {
            return false;
        }
        let task_number = table.next;
        let key = exchange.map_or(Key::Other(task_number), Key::Exchange);
        table.next += 1;
        table.open.insert(key, (task_number, None));
        drop(table);
        let entry = Entry {
            tasks: self.clone(),
            key,
            task_number,
        };
        let handle = self.handle.spawn(async move {
            let _entry = entry;
            task.await;
        });
        let mut table = self.lock();
        match table.open.get_mut(&key) {
            Some((number, place)) if *number == task_number => *place = Some(handle),
            // Closed in between, or over already.
            _ => handle.abort(),
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a task out of the table when it is over, in whatever way.
struct Entry {
    tasks: Arc<Tasks>,
    key: Key,
    /// Tells it from a later task of the same key.
    task_number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut table = self.tasks.lock();
        let open = table.open.get(&self.key);
        if open.is_some_and(|(number, _)| *number == self.task_number) {
            table.open.remove(&self.key);
        }
    }
}
