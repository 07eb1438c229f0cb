//! Passes the core's warnings to a log of the other language.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use mcpline::foreign::diagnostics;
use tracing::Level;

/// Maximum number of warnings that wait for the log. What repeats is rare by itself: the core limits it.
const MAX_WAITING_WARNINGS: usize = 1_024;

/// A log, in the other language.
#[uniffi::export(with_foreign)]
pub trait Log: Send + Sync {
    /// Writes a warning. Called on a thread of its own, one at a time.
    fn warn(&self, text: String);
}

/// Sends the core's warnings to a log from now on. Once per process: later calls do nothing.
#[uniffi::export]
pub fn set_log(log: Arc<dyn Log>) {
    let (sender, warnings) = sync_channel::<String>(MAX_WAITING_WARNINGS);
    // Warnings come from any thread, which must neither wait for the log nor run it.
    let listener = move |said: diagnostics::Diagnostic<'_>| {
        // While the log is too slow, warnings are lost.
        let _ = sender.try_send(said.text);
    };
    if !diagnostics::install_listener(Level::WARN, listener) {
        return;
    }
    // Without a thread there is no log; nothing else depends on it.
    let _ = std::thread::Builder::new()
        .name("mcpline-log".into())
        .spawn(move || {
            for warning in warnings {
                log.warn(warning);
            }
        });
}
