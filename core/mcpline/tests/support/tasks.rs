//! Tasks of servers that a test scripts. A panic in one of them fails the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The tasks of one server. Panics when dropped if one of them has panicked; a test keeps it, or its owner, until the
/// end.
#[derive(Clone, Default)]
pub(crate) struct Tasks {
    has_panicked: Arc<AtomicBool>,
}

impl Tasks {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let noting = NotingPanic(self.has_panicked.clone());
        tokio::spawn(async move {
            // Dropped when the task panics.
            let _noting = noting;
            task.await;
        });
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        if self.has_panicked.load(Ordering::SeqCst) && !std::thread::panicking() {
            panic!("a task of a server that the test plays has panicked: its message stands above");
        }
    }
}

struct NotingPanic(Arc<AtomicBool>);

impl Drop for NotingPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}
