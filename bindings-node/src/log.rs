//! What the core warns of reaches the developer as a warning of the process (`process.on("warning")`).

use std::sync::{Arc, Mutex, Once, Weak};

use mcpline::foreign::diagnostics;
use tracing::Level;

use crate::hub::{self, Shared, lock};

/// The JavaScript thread that is told: the first that is still there.
static THREADS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Sends the core's warnings to this JavaScript thread, or another one, from now on.
pub(crate) fn install(shared: &Arc<Shared>) {
    static INSTALLED: Once = Once::new();
    let mut threads = lock(&THREADS);
    threads.retain(|thread| thread.strong_count() > 0);
    threads.push(Arc::downgrade(shared));
    // Taken means that another addon of ours gathers them.
    INSTALLED.call_once(|| {
        diagnostics::listen(Level::WARN, |said| {
            let shared = lock(&THREADS).iter().find_map(Weak::upgrade);
            if let Some(shared) = shared {
                shared.post_at_once(hub::Event::Warning(said.text));
            }
        });
    });
}
