//! Diagnostics of the core for developers, as lines for a language's own log.

use std::fmt::{self, Write};

use mcpline_protocol::Printable;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// A diagnostic of the core.
#[derive(Debug)]
pub struct Diagnostic<'a> {
    /// Its severity.
    pub level: Level,
    /// The module that emitted it.
    pub target: &'a str,
    /// The message, then its fields.
    pub text: String,
}

/// Passes diagnostics of at least this level to `listener` from now on, on any thread. Once per process: returns `false`
/// and does nothing if a tracing subscriber is already installed.
pub fn listen(least: Level, listener: impl Fn(Diagnostic<'_>) + Send + Sync + 'static) -> bool {
    tracing::subscriber::set_global_default(DiagnosticSubscriber { least, listener }).is_ok()
}

struct DiagnosticSubscriber<F> {
    least: Level,
    listener: F,
}

impl<F: Fn(Diagnostic<'_>) + Send + Sync + 'static> Subscriber for DiagnosticSubscriber<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.least && metadata.is_event()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        (self.listener)(Diagnostic {
            level: *event.metadata().level(),
            target: event.metadata().target(),
            text: printable_lines(&(line.message + &line.fields)),
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Returns the text without control characters and terminal escapes, because exceptions of handlers repeat text of
/// clients. Line breaks stay, for stack traces.
fn printable_lines(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            printable.push('\n');
        }
        // Writing to a string never fails.
        let _ = write!(printable, "{}", Printable(line));
    }
    printable
}

/// Formats an event as a line.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        // Unchanged, because stack traces contain line breaks.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_terminal_escapes_and_keeps_line_ends() {
        let text = "a handler failed detail=ValueError: \u{1b}]0;owned\u{7}x\u{1b}[2Jy\n  at tool.py:3\r\n  at \u{202e}main";
        assert_eq!(
            printable_lines(text),
            "a handler failed detail=ValueError: xy\n  at tool.py:3\n  at \u{fffd}main"
        );
    }
}
