//! Passes the core's warnings to Python's `logging`, as the logger `mcpline`, records of requests, as the loggers
//! `mcpline.requests` and `mcpline.requests.client`, and messages in debug mode, as the logger `mcpline.traffic`.
//!
//! The core's threads must not wait for Python, so a separate thread passes them on. It is started with the first one: most
//! servers never need it. It ends before the interpreter does (`exit.rs`).

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};

use mcpline::ErrorKind;
use mcpline::client::ClientRequestRecord;
use mcpline::foreign::{self, diagnostics};
use mcpline::server::RequestOutcome;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tracing::Level;

use crate::event_loop::lock;
use crate::exit::{self, END_TIMEOUT, InterpreterGuard};
use crate::per_process::PerProcess;
use crate::runtime::{keep_state_of_this_thread, release_thread_state};

/// Maximum number of waiting entries. Further ones are dropped: a flood of warnings contains nothing new, and a log that is
/// slower than the requests must not use up the memory.
const CAPACITY: usize = 4096;

/// An entry of a log.
enum LogEntry {
    /// A warning: its level as a number of `logging`, and its text.
    Warning(u8, String),
    Request(Box<Record>),
    ClientRequest(Box<ClientRecord>),
    /// Sends when all earlier entries were passed on.
    Flush(SyncSender<()>),
    /// A message of a client or to it.
    Message(String),
    /// The end of a traced request, as JSON.
    Span(String),
}

/// A request that has ended.
struct Record {
    text: String,
    method: String,
    name: String,
    outcome: &'static str,
    error_code: Option<i64>,
    /// In seconds.
    duration: f64,
    client: Option<String>,
    session: Option<String>,
    issuer: Option<String>,
    subject: Option<String>,
    client_id: Option<String>,
    trace_id: Option<String>,
    /// The number of the request, if it is traced.
    number: Option<u64>,
}

/// A request of a client that has ended.
struct ClientRecord {
    text: String,
    direction: &'static str,
    method: String,
    name: String,
    outcome: &'static str,
    error_kind: Option<&'static str>,
    error_code: Option<i64>,
    /// In seconds.
    duration: f64,
    server: Option<String>,
    address: Option<String>,
    session: Option<String>,
    trace_id: Option<String>,
}

impl Record {
    /// Sets the trace, if the record has none: the program's OpenTelemetry has begun one for the request.
    fn set_trace(&mut self, trace_id: String) {
        if self.trace_id.is_none() {
            self.text += &format!(", trace {trace_id}");
            self.trace_id = Some(trace_id);
        }
    }
}

/// Maximum number of ended spans whose traces are remembered for their records. A record directly follows the end of its span,
/// apart from those of other threads.
const RECENT_SPANS: usize = 64;

/// The traces of requests whose spans have just ended, by the number of the request.
#[derive(Default)]
struct RecentTraces(VecDeque<(u64, String)>);

impl RecentTraces {
    fn add(&mut self, number: u64, trace_id: String) {
        if self.0.len() == RECENT_SPANS {
            self.0.pop_front();
        }
        self.0.push_back((number, trace_id));
    }

    fn take(&mut self, number: u64) -> Option<String> {
        let index = self.0.iter().position(|(known, _)| *known == number)?;
        self.0.remove(index).map(|(_, trace_id)| trace_id)
    }
}

/// The thread that passes entries on.
struct LogThread {
    /// `None` once the interpreter is about to end.
    sender: Option<SyncSender<LogEntry>>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

#[derive(Default)]
struct Log {
    thread: Mutex<Option<LogThread>>,
    /// Number of records of requests that were dropped because the log was too slow.
    dropped: AtomicU64,
    /// Number of messages that were dropped because the log was too slow.
    dropped_messages: AtomicU64,
    /// The numbers of traced requests whose ends were dropped because the log was too slow: their spans end without what they
    /// end with. At most as many as the language has begun handlers for.
    dropped_spans: Mutex<Vec<u64>>,
    /// Number of entries that are waiting.
    waiting: AtomicU64,
}

/// After a fork, the parent's thread does not exist in the child.
static LOG: PerProcess<Log> = PerProcess::new(Log::default);

/// Sends the core's warnings to `logging` from now on, unless the process has its own listener.
pub(crate) fn install() {
    // Fails if the program that embeds the interpreter collects the traces itself.
    diagnostics::install_listener(Level::WARN, |said| {
        let level = match said.level {
            Level::ERROR => 40,
            _ => 30,
        };
        send(LogEntry::Warning(level, said.text));
    });
}

/// Sends the requests of a server to the logger `mcpline.requests` when they end.
pub(crate) fn record_requests(server: &mcpline::Server) {
    server.on_request_end(|record| {
        send(LogEntry::Request(Box::new(Record {
            text: record.to_string(),
            method: record.method.to_owned(),
            name: record.name.to_owned(),
            outcome: record.outcome.name(),
            error_code: match record.outcome {
                RequestOutcome::Error(code) => Some(code.0),
                _ => None,
            },
            duration: record.duration.as_secs_f64(),
            client: record.client.map(str::to_owned),
            session: record.session.map(str::to_owned),
            issuer: record.issuer.map(str::to_owned),
            subject: record.subject.map(str::to_owned),
            client_id: record.client_id.map(str::to_owned),
            trace_id: record.trace_id.map(str::to_owned),
            number: foreign::span_number_of_record(record),
        })));
    });
}

/// Returns a listener that sends the requests of a client to the logger `mcpline.requests.client` when they end.
pub(crate) fn client_request_listener() -> impl Fn(&ClientRequestRecord<'_>) + Send + Sync + 'static
{
    |record| {
        send(LogEntry::ClientRequest(Box::new(ClientRecord {
            text: record.to_string(),
            direction: record.direction.name(),
            method: record.method.to_owned(),
            name: record.name.to_owned(),
            outcome: record.outcome.name(),
            error_kind: record.outcome.error_kind().map(ErrorKind::as_str),
            error_code: record.outcome.code().map(|code| code.0),
            duration: record.duration.as_secs_f64(),
            server: record.server.map(str::to_owned),
            address: record.address.map(str::to_owned),
            session: record.session.map(str::to_owned),
            trace_id: record.trace_id.map(str::to_owned),
        })));
    }
}

/// Sends the messages of a server in debug mode to the logger `mcpline.traffic`.
pub(crate) fn record_traffic(server: &mcpline::Server) {
    server.on_traffic(|record| send(LogEntry::Message(record.to_string())));
}

/// Sends the ends of the requests of a server to `mcpline._open_telemetry`.
pub(crate) fn trace_requests(server: &mcpline::Server) {
    foreign::trace_requests(server, |ended| send(LogEntry::Span(ended)));
}

fn send(entry: LogEntry) {
    let log = LOG.get();
    let mut thread = lock(&log.thread);
    if thread.is_none() {
        *thread = start();
    }
    if let Some(LogThread {
        sender: Some(sender),
        ..
    }) = &*thread
    {
        log.waiting.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = sender.try_send(entry) {
            log.waiting.fetch_sub(1, Ordering::Relaxed);
            match error {
                TrySendError::Full(LogEntry::Request(_) | LogEntry::ClientRequest(_)) => {
                    log.dropped.fetch_add(1, Ordering::Relaxed);
                }
                TrySendError::Full(LogEntry::Message(_)) => {
                    log.dropped_messages.fetch_add(1, Ordering::Relaxed);
                }
                TrySendError::Full(LogEntry::Span(ended)) => {
                    lock(&log.dropped_spans).extend(foreign::number_of_span(&ended));
                }
                _ => {}
            }
        }
    }
}

/// Passes on what is waiting, and flushes `sys.stdout`; takes at most [`END_TIMEOUT`].
pub(crate) async fn flush() {
    let flushing = tokio::task::spawn_blocking(|| {
        wait_for_entries();
        foreign::flush_traffic(END_TIMEOUT);
        if let Some(_entered) = InterpreterGuard::enter() {
            // Errors of other code's streams cannot be reported.
            let _ = Python::try_attach(|py| {
                let stdout = py.import("sys")?.getattr("stdout")?;
                match stdout.is_none() {
                    true => Ok(()),
                    false => stdout.call_method0("flush").map(drop),
                }
            });
        }
    });
    // An error either way: Python is busy, or flushing takes too long.
    let _ = tokio::time::timeout(END_TIMEOUT, flushing).await;
}

/// Waits until the entries that are waiting now were passed on.
fn wait_for_entries() {
    let (sender, flushed) = sync_channel(1);
    let is_queued = match &*lock(&LOG.get().thread) {
        Some(LogThread {
            sender: Some(entries),
            ..
        }) => entries.try_send(LogEntry::Flush(sender)).is_ok(),
        _ => false,
    };
    if is_queued {
        // An error: the entry was dropped, or it takes too long.
        let _ = flushed.recv_timeout(END_TIMEOUT);
    }
}

fn start() -> Option<LogThread> {
    let (sender, receiver) = sync_channel(CAPACITY);
    let (running, ended) = channel::<()>();
    let thread = std::thread::Builder::new().name("mcpline-log".into());
    let started = thread.spawn(move || {
        prepare();
        let mut traces = RecentTraces::default();
        for entry in receiver {
            hand_over(entry, &mut traces);
        }
        // `end` waits for this, and the interpreter ends after it.
        release_thread_state();
        drop(running);
    });
    started.ok().map(|_| LogThread {
        sender: Some(sender),
        ended,
    })
}

/// Passes on what is waiting and ends the thread, which takes at most [`END_TIMEOUT`]. Later entries are dropped.
pub(crate) fn end() {
    let none = LogThread {
        sender: None,
        ended: channel().1,
    };
    let running = lock(&LOG.get().thread).replace(none);
    if let Some(LogThread { sender, ended }) = running {
        drop(sender);
        // An error either way: the thread has ended, or it takes too long.
        let _ = ended.recv_timeout(END_TIMEOUT);
    }
}

/// Keeps the thread's Python state, imports `logging`, and makes the interpreter end this thread before `logging` closes its handlers.
fn prepare() {
    let Some(_entered) = InterpreterGuard::enter() else {
        return;
    };
    let is_not_first = Python::try_attach(|py| has_imported(py, "threading"));
    // A main thread of `threading` that keeps its state would be waited for when the program ends.
    if is_not_first == Some(true) {
        keep_state_of_this_thread();
    }
    // Without it, the last entries may be lost.
    let _ = Python::try_attach(|py| {
        py.import("logging")?;
        exit::register(py)
    });
}

/// Whether the program has imported this module.
fn has_imported(py: Python<'_>, module: &str) -> bool {
    let modules = py.import("sys").and_then(|sys| sys.getattr("modules"));
    modules.is_ok_and(|modules| modules.contains(module).unwrap_or(false))
}

/// Says on stderr how many entries were lost, when no more are passed on.
pub(crate) fn report_lost_entries() {
    let log = LOG.get();
    let lost = log.waiting.load(Ordering::Relaxed)
        + log.dropped.load(Ordering::Relaxed)
        + log.dropped_messages.load(Ordering::Relaxed);
    if lost > 0 {
        // Possibly because nothing reads stderr.
        foreign::print_line(format!(
            "mcpline: logging was too slow: {lost} log records were lost at the end of the program"
        ));
        foreign::flush_traffic(END_TIMEOUT);
    }
}

fn hand_over(entry: LogEntry, traces: &mut RecentTraces) {
    if let LogEntry::Flush(passed_on) = &entry {
        // It has room for this one; the receiver may have stopped waiting.
        let _ = passed_on.try_send(());
        return;
    }
    let Some(_entered) = InterpreterGuard::enter() else {
        return;
    };
    LOG.get().waiting.fetch_sub(1, Ordering::Relaxed);
    // Errors of logging cannot be reported.
    let _ = Python::try_attach(|py| match entry {
        LogEntry::Warning(level, text) => warn(py, level, &text),
        LogEntry::Request(mut record) => {
            report_dropped_requests(py)?;
            if let Some(trace_id) = record.number.and_then(|number| traces.take(number)) {
                record.set_trace(trace_id);
            }
            log_request(py, &record)
        }
        LogEntry::ClientRequest(record) => {
            report_dropped_requests(py)?;
            log_client_request(py, &record)
        }
        LogEntry::Flush(_) => Ok(()),
        LogEntry::Message(text) => log_message(py, &text),
        LogEntry::Span(ended) => {
            if let Some((number, trace_id)) = end_span(py, &ended)? {
                traces.add(number, trace_id);
            }
            Ok(())
        }
    });
    let dropped = std::mem::take(&mut *lock(&LOG.get().dropped_spans));
    for number in dropped {
        // Errors of OpenTelemetry cannot be reported.
        let _ =
            Python::try_attach(|py| end_span(py, &format!(r#"{{"number":{number}}}"#)).map(drop));
    }
    // Only a full queue drops messages, so this is reached after the last of them.
    let dropped = LOG.get().dropped_messages.swap(0, Ordering::Relaxed);
    if dropped > 0 {
        let text = format!("the log is too slow: {dropped} messages were not recorded");
        let _ = Python::try_attach(|py| warn(py, 30, &text));
    }
}

/// Logs how many requests were not recorded because the log was too slow.
fn report_dropped_requests(py: Python<'_>) -> PyResult<()> {
    match LOG.get().dropped.swap(0, Ordering::Relaxed) {
        0 => Ok(()),
        dropped => {
            let text = format!("the log is too slow: {dropped} requests were not recorded");
            warn(py, 30, &text)
        }
    }
}

/// Ends the span of a request. Returns the number of the request and the id of its trace, if there is one.
fn end_span(py: Python<'_>, ended: &str) -> PyResult<Option<(u64, String)>> {
    py.import("mcpline._open_telemetry")?
        .call_method1("end_span", (PyBytes::new(py, ended.as_bytes()),))?
        .extract()
}

/// Appends a message to the log or prints it.
fn log_message(py: Python<'_>, text: &str) -> PyResult<()> {
    let traffic = py.import("mcpline._traffic")?;
    if !traffic
        .call_method1("log_message", (text,))?
        .extract::<bool>()?
    {
        foreign::print_line(text.to_owned());
    }
    Ok(())
}

fn logger<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("logging")?.call_method1("getLogger", (name,))
}

fn warn(py: Python<'_>, level: u8, text: &str) -> PyResult<()> {
    let logger = logger(py, "mcpline")?;
    logger.call_method1("log", (level, "%s", text)).map(drop)
}

fn log_request(py: Python<'_>, record: &Record) -> PyResult<()> {
    let extra = PyDict::new(py);
    extra.set_item("mcp_method", &record.method)?;
    extra.set_item("mcp_name", &record.name)?;
    extra.set_item("mcp_outcome", record.outcome)?;
    extra.set_item("mcp_error_code", record.error_code)?;
    extra.set_item("mcp_duration", record.duration)?;
    extra.set_item("mcp_client", &record.client)?;
    extra.set_item("mcp_session", &record.session)?;
    extra.set_item("mcp_issuer", &record.issuer)?;
    extra.set_item("mcp_subject", &record.subject)?;
    extra.set_item("mcp_client_id", &record.client_id)?;
    extra.set_item("mcp_trace_id", &record.trace_id)?;
    log_info(py, "mcpline.requests", &record.text, &extra)
}

fn log_client_request(py: Python<'_>, record: &ClientRecord) -> PyResult<()> {
    let extra = PyDict::new(py);
    extra.set_item("mcp_direction", record.direction)?;
    extra.set_item("mcp_method", &record.method)?;
    extra.set_item("mcp_name", &record.name)?;
    extra.set_item("mcp_outcome", record.outcome)?;
    extra.set_item("mcp_error_kind", record.error_kind)?;
    extra.set_item("mcp_error_code", record.error_code)?;
    extra.set_item("mcp_duration", record.duration)?;
    extra.set_item("mcp_server", &record.server)?;
    extra.set_item("mcp_address", &record.address)?;
    extra.set_item("mcp_session", &record.session)?;
    extra.set_item("mcp_trace_id", &record.trace_id)?;
    log_info(py, "mcpline.requests.client", &record.text, &extra)
}

/// Logs a text of level INFO with further attributes.
fn log_info(py: Python<'_>, name: &str, text: &str, extra: &Bound<'_, PyDict>) -> PyResult<()> {
    let options = PyDict::new(py);
    options.set_item("extra", extra)?;
    logger(py, name)?
        .call_method("info", ("%s", text), Some(&options))
        .map(drop)
}
