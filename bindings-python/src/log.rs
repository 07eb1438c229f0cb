//! What the core warns of reaches Python's `logging`, as the logger `mcpline`.
//!
//! The core's threads must not wait for Python, so a thread of its own hands the warnings over. It is started
//! with the first one: most servers never need it.

use std::fmt::{self, Write};
use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, sync_channel};

use pyo3::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::event_loop::lock;

/// How many warnings may wait to be handed over. Further ones are dropped: a flood of them says nothing new.
const CAPACITY: usize = 256;

/// One warning: how severe it is, in `logging`'s numbers, and its text.
type Warning = (u8, String);

static THREAD: Mutex<Option<(u32, SyncSender<Warning>)>> = Mutex::new(None);

/// Sends the core's warnings to `logging` from now on, unless the process has another use for them.
pub(crate) fn install() {
    // Taken means that whoever embeds this interpreter gathers what is traced.
    let _ = tracing::subscriber::set_global_default(Bridge);
}

struct Bridge;

impl Subscriber for Bridge {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.is_event()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let level = match *event.metadata().level() {
            Level::ERROR => 40,
            _ => 30,
        };
        send((level, text.message + &text.fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// An event as a line: the message, then its fields.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string never fails.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

fn send(warning: Warning) {
    let mut thread = lock(&THREAD);
    let process = std::process::id();
    // After a fork the parent's thread is none of ours.
    if thread.as_ref().is_none_or(|(owner, _)| *owner != process) {
        let (sender, receiver) = sync_channel(CAPACITY);
        let started = std::thread::Builder::new()
            .name("mcpline-log".into())
            .spawn(move || receiver.into_iter().for_each(|warning| hand_over(&warning)));
        if started.is_err() {
            return;
        }
        // Dropping the parent's sender would touch nothing but memory.
        *thread = Some((process, sender));
    }
    if let Some((_, sender)) = &*thread {
        let _ = sender.try_send(warning);
    }
}

fn hand_over((level, text): &Warning) {
    // `None` once the interpreter ends; a logging that fails has nobody to tell.
    let _ = Python::try_attach(|py| -> PyResult<()> {
        let logger = py
            .import("logging")?
            .call_method1("getLogger", ("mcpline",))?;
        logger.call_method1("log", (*level, "%s", text)).map(drop)
    });
}
