//! The tasks of one link, which can be aborted one by one or all together.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;

use crate::background::{self, JoinHandle};

/// The tasks of one link.
pub(super) struct LinkTasks {
    handle: Handle,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// The live tasks, numbered. A task is entered before it is spawned.
    open: HashMap<Key, (u64, TaskState)>,
    next: u64,
    closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// The exchange of the request with this number.
    Exchange(u64),
    Other(u64),
}

/// The state of a task.
enum TaskState {
    /// Being spawned: it cannot be aborted yet.
    Starting,
    /// Abandoned while it was being spawned.
    Abandoned,
    Running(JoinHandle<()>),
}

impl LinkTasks {
    pub(super) fn new(handle: Handle) -> Arc<Self> {
        Arc::new(Self {
            handle,
            table: Mutex::default(),
        })
    }

    /// Starts the exchange of a request. Returns `false` if the link is closed.
    pub(super) fn exchange(
        self: &Arc<Self>,
        number: u64,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> bool {
        self.start(Some(number), task)
    }

    /// Starts any other task. Returns `false` if the link is closed.
    pub(super) fn spawn(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) -> bool {
        self.start(None, background::task(task))
    }

    /// Runs a task that does not belong to a link any more.
    pub(super) fn spawn_detached<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        background::spawn(&self.handle, task)
    }

    /// Aborts the exchange of a request.
    pub(super) fn abandon(&self, number: u64) {
        match self.lock().open.get_mut(&Key::Exchange(number)) {
            Some((_, TaskState::Running(task))) => task.abort(),
            Some((_, task)) => *task = TaskState::Abandoned,
            None => {}
        }
    }

    /// Aborts all tasks, prevents new ones, and returns them to be awaited.
    pub(super) fn close(&self) -> Vec<JoinHandle<()>> {
        let mut table = self.lock();
        table.closed = true;
        let tasks: Vec<_> = table
            .open
            .drain()
            .filter_map(|(_, (_, task))| match task {
                TaskState::Running(task) => Some(task),
                // The spawning code notices that the entry is gone.
                TaskState::Starting | TaskState::Abandoned => None,
            })
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
        let Some(entry) = self.enter(exchange) else {
            return false;
        };
        let (key, task_number) = (entry.key, entry.task_number);
        // Without the table's lock: a runtime that shuts down drops the task, and thus its entry, immediately.
        let handle = background::spawn_unboxed(&self.handle, async move {
            let _entry = entry;
            task.await;
        });
        self.store_handle(key, task_number, handle);
        true
    }

    /// Enters a task that is about to be spawned. Returns `None` if the link is closed.
    fn enter(self: &Arc<Self>, exchange: Option<u64>) -> Option<TaskEntryGuard> {
        let mut table = self.lock();
        if table.closed {
            return None;
        }
        let task_number = table.next;
        let key = exchange.map_or(Key::Other(task_number), Key::Exchange);
        table.next += 1;
        table.open.insert(key, (task_number, TaskState::Starting));
        Some(TaskEntryGuard {
            tasks: self.clone(),
            key,
            task_number,
        })
    }

    /// Stores the handle of a spawned task.
    fn store_handle(&self, key: Key, task_number: u64, handle: JoinHandle<()>) {
        match self.lock().open.get_mut(&key) {
            Some((number, task)) if *number == task_number => {
                if matches!(task, TaskState::Abandoned) {
                    handle.abort();
                }
                *task = TaskState::Running(handle);
            }
            // The link was closed meanwhile, or the task has ended already.
            _ => handle.abort(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a task from the table when it ends, in any way.
struct TaskEntryGuard {
    tasks: Arc<LinkTasks>,
    key: Key,
    /// Distinguishes it from a later task with the same key.
    task_number: u64,
}

impl Drop for TaskEntryGuard {
    fn drop(&mut self) {
        let mut table = self.tasks.lock();
        let open = table.open.get(&self.key);
        if open.is_some_and(|(number, _)| *number == self.task_number) {
            table.open.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    fn tasks() -> Arc<LinkTasks> {
        LinkTasks::new(Handle::current())
    }

    /// Waits until the task that holds the other end of this channel has ended.
    async fn is_dropped(ended: oneshot::Receiver<()>) {
        let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
        assert!(ended.expect("it goes on").is_err(), "nothing is sent");
    }

    #[runtimes::test]
    async fn an_exchange_that_is_abandoned_while_it_is_spawned_ends() {
        let tasks = tasks();
        let entry = tasks.enter(Some(1)).expect("open");
        let (key, task_number) = (entry.key, entry.task_number);
        let (ends, ended) = oneshot::channel::<()>();
        let task = background::spawn(&tasks.handle, async move {
            let _alive = (entry, ends);
            pending::<()>().await;
        });
        tasks.abandon(1);
        tasks.store_handle(key, task_number, task);
        is_dropped(ended).await;
    }

    #[runtimes::test]
    async fn a_task_that_is_spawned_while_the_link_closes_ends() {
        let tasks = tasks();
        let entry = tasks.enter(None).expect("open");
        let (key, task_number) = (entry.key, entry.task_number);
        let (ends, ended) = oneshot::channel::<()>();
        let task = background::spawn(&tasks.handle, async move {
            let _alive = (entry, ends);
            pending::<()>().await;
        });
        assert!(tasks.close().is_empty());
        tasks.store_handle(key, task_number, task);
        is_dropped(ended).await;
        assert!(!tasks.spawn(pending()));
    }

    #[runtimes::test]
    async fn exchanges_that_abandon_themselves_at_once_end() {
        let tasks = tasks();
        let mut dropped = Vec::new();
        for number in 0..1_000 {
            let (ends, ended) = oneshot::channel::<()>();
            let abandoning = tasks.clone();
            tasks.exchange(number, async move {
                let _alive = ends;
                abandoning.abandon(number);
                pending::<()>().await;
            });
            dropped.push(ended);
        }
        for ended in dropped {
            is_dropped(ended).await;
        }
        // A task leaves the table right after its state is dropped.
        let emptied = async {
            while !tasks.lock().open.is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let emptied = tokio::time::timeout(Duration::from_secs(60), emptied).await;
        emptied.expect("a task stays in the table");
    }
}
