//! Captures log lines for tests.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::{Arc, Mutex, Once};

/// Captures what is logged on this thread, at one level or at every level.
#[derive(Clone)]
pub(crate) struct Log(Option<tracing::Level>, Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn new(level: tracing::Level) -> Self {
        want_every_line();
        Self(Some(level), Arc::default())
    }

    /// Captures every level.
    pub(crate) fn all() -> Self {
        want_every_line();
        Self(None, Arc::default())
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.1.lock().expect("not poisoned").clone()
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        let kept = self.1.lock().expect("not poisoned");
        kept.iter().any(|line| line.contains(text))
    }
}

/// Sets a subscriber for the threads of tests that have none. While there is only one subscriber, `tracing` asks that of the thread
/// which is the first to reach a line, and remembers for all threads if it has none.
fn want_every_line() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        // Fails if the test has set one.
        let _ = tracing::subscriber::set_global_default(Wanting);
    });
}

impl tracing::field::Visit for Log {
    fn record_debug(&mut self, _: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.1
            .lock()
            .expect("not poisoned")
            .push(format!("{value:?}"));
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        if self
            .0
            .is_none_or(|level| level == *event.metadata().level())
        {
            event.record(&mut self.clone());
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// Wants every line, and ignores it.
struct Wanting;

impl tracing::Subscriber for Wanting {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {}

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
