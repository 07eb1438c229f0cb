//! Passes the core's warnings to Python's `logging`, as the logger `mcpline`.
//!
//! The core's threads must not wait for Python, so a separate thread passes the warnings on. It is started with the
//! first warning: most servers never need it.

use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, sync_channel};

use mcpline::foreign::diagnostics;
use pyo3::prelude::*;
use tracing::Level;

use crate::event_loop::lock;

/// Maximum number of waiting warnings. Further ones are dropped: a flood of them contains nothing new.
const CAPACITY: usize = 256;

/// A warning: its level as a number of `logging`, and its text.
type Warning = (u8, String);

static THREAD: Mutex<Option<(u32, SyncSender<Warning>)>> = Mutex::new(None);

/// Sends the core's warnings to `logging` from now on, unless the process has its own listener.
pub(crate) fn install() {
    // Fails if the program that embeds the interpreter collects the traces itself.
    diagnostics::listen(Level::WARN, |said| {
        let level = match said.level {
            Level::ERROR => 40,
            _ => 30,
        };
        send((level, said.text));
    });
}

fn send(warning: Warning) {
    let mut thread = lock(&THREAD);
    let process = std::process::id();
    // After a fork, the parent's thread does not exist in this process.
    if thread.as_ref().is_none_or(|(owner, _)| *owner != process) {
        let (sender, receiver) = sync_channel(CAPACITY);
        let started = std::thread::Builder::new()
            .name("mcpline-log".into())
            .spawn(move || receiver.into_iter().for_each(|warning| hand_over(&warning)));
        if started.is_err() {
            return;
        }
        // Forgetting the parent's sender only leaks its memory.
        *thread = Some((process, sender));
    }
    if let Some((_, sender)) = &*thread {
        let _ = sender.try_send(warning);
    }
}

fn hand_over((level, text): &Warning) {
    // `None` once the interpreter has ended. Errors of logging cannot be reported.
    let _ = Python::try_attach(|py| -> PyResult<()> {
        let logger = py
            .import("logging")?
            .call_method1("getLogger", ("mcpline",))?;
        logger.call_method1("log", (*level, "%s", text)).map(drop)
    });
}
