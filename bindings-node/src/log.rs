//! What the core warns of reaches the developer as a warning of the process (`process.on("warning")`).

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, Once, Weak};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

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
    INSTALLED.call_once(|| drop(tracing::subscriber::set_global_default(Bridge)));
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
        let shared = lock(&THREADS).iter().find_map(Weak::upgrade);
        if let Some(shared) = shared {
            shared.post_at_once(hub::Event::Warning(text.message + &text.fields));
        }
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
    fn record_str(&mut self, field: &Field, value: &str) {
        // As it is: stack traces have lines.
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string never fails.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
