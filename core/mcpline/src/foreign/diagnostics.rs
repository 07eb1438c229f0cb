//! Diagnostics of the core for developers, as lines for a language's own log.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU8, Ordering};

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
pub fn install_listener(
    least: Level,
    listener: impl Fn(Diagnostic<'_>) + Send + Sync + 'static,
) -> bool {
    LEAST.store(number(least), Ordering::Relaxed);
    tracing::subscriber::set_global_default(DiagnosticSubscriber { listener }).is_ok()
}

/// Like [`install_listener`], but spans of requests go to an exporter. Diagnostics begin with [`set_min_level`].
#[cfg(feature = "otlp")]
pub fn listen_and_export(
    exporter: &crate::otlp::OtlpExporter,
    listener: impl Fn(Diagnostic<'_>) + Send + Sync + 'static,
) -> bool {
    use tracing_subscriber::filter::filter_fn;
    use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};

    let spans = exporter.layer().with_filter(filter_fn(|metadata| {
        metadata.is_span() && metadata.target() == SPANS
    }));
    let diagnostics = DiagnosticSubscriber { listener }.with_filter(filter_fn(is_wanted));
    let subscriber = tracing_subscriber::registry().with(spans).with(diagnostics);
    tracing::subscriber::set_global_default(subscriber).is_ok()
}

/// The target of spans of requests.
#[cfg(feature = "otlp")]
const SPANS: &str = "mcpline::spans";

/// Changes the least level that the listener gets; `None` for no diagnostics. Code that emits others costs nothing then.
pub fn set_min_level(least: Option<Level>) {
    LEAST.store(least.map_or(0, number), Ordering::Relaxed);
    // Each place in the code remembers whether its level is wanted.
    tracing::callsite::rebuild_interest_cache();
}

/// The least level that the listener gets, as a number.
static LEAST: AtomicU8 = AtomicU8::new(0);

/// Returns the number of a level: the more severe, the lower.
fn number(level: Level) -> u8 {
    match level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        Level::TRACE => 5,
    }
}

struct DiagnosticSubscriber<F> {
    listener: F,
}

impl<F: Fn(Diagnostic<'_>) + Send + Sync + 'static> Subscriber for DiagnosticSubscriber<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_wanted(metadata)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        (self.listener)(diagnostic(event));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[cfg(feature = "otlp")]
impl<F, S> tracing_subscriber::Layer<S> for DiagnosticSubscriber<F>
where
    F: Fn(Diagnostic<'_>) + Send + Sync + 'static,
    S: Subscriber,
{
    fn on_event(&self, event: &Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        (self.listener)(diagnostic(event));
    }
}

/// Whether the listener gets what has this metadata. `tracing::enabled!` asks with a hint, which is neither an event nor a span.
fn is_wanted(metadata: &Metadata<'_>) -> bool {
    number(*metadata.level()) <= LEAST.load(Ordering::Relaxed) && !metadata.is_span()
}

fn diagnostic<'a>(event: &Event<'a>) -> Diagnostic<'a> {
    let mut line = LineFormatter::default();
    event.record(&mut line);
    Diagnostic {
        level: *event.metadata().level(),
        target: event.metadata().target(),
        text: printable_lines(&(line.message + &line.fields)),
    }
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
struct LineFormatter {
    message: String,
    fields: String,
}

impl Visit for LineFormatter {
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
