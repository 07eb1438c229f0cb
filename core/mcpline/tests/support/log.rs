//! Captures log lines for tests.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::{Arc, Mutex};

/// Captures what is logged on this thread, at one level or at every level.
///
/// Every test of a program that reaches the same log line needs one: if the first thread that reaches the line has no
/// subscriber, `tracing` caches for all threads that the line is not wanted.
#[derive(Clone)]
pub(crate) struct Log(Option<tracing::Level>, Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn new(level: tracing::Level) -> Self {
        Self(Some(level), Arc::default())
    }

    /// Captures every level.
    pub(crate) fn all() -> Self {
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
