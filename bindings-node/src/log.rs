//! Passes the core's warnings to the developer, as warnings of the process (`process.on("warning")`).

use std::sync::{Arc, Mutex, Once, Weak};

use mcpline::foreign::diagnostics;
use tracing::Level;

use crate::hub::{self, Shared, lock};

/// JavaScript threads. The first that still exists receives the warnings.
static THREADS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Sends the core's warnings to this JavaScript thread, or another one, from now on.
pub(crate) fn install(shared: &Arc<Shared>) {
    static INSTALLED: Once = Once::new();
    let mut threads = lock(&THREADS);
    threads.retain(|thread| thread.strong_count() > 0);
    threads.push(Arc::downgrade(shared));
    // Fails if another copy of this addon has installed its listener.
    INSTALLED.call_once(|| {
        diagnostics::install_listener(Level::WARN, |said| {
            let shared = lock(&THREADS).iter().find_map(Weak::upgrade);
            if let Some(shared) = shared {
                shared.post_at_once(hub::Event::Warning(said.text));
            }
        });
    });
}
