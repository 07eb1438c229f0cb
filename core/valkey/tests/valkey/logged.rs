//! The warnings that this process has logged.

use std::fmt::{Debug, Write as _};
use std::sync::{Mutex, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Collects warnings from now on.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        tracing::subscriber::set_global_default(Collector).expect("there is no other");
    });
}

/// Whether a warning begins with this text.
pub(crate) fn is_warned_of(text: &str) -> bool {
    let warnings = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
    warnings.iter().any(|warning| warning.starts_with(text))
}

struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.is_event()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message::default();
        event.record(&mut message);
        let mut warnings = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.push(message.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}
