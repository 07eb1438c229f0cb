//! Diagnostics for developers, and settings of the library as a whole.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Once, PoisonError, RwLock};
use std::time::Duration;

use mcpline::foreign::diagnostics::{self, Diagnostic};
use mcpline::foreign::{flush_traffic, log_traffic, print_debug_warning};
use mcpline::protocol::vocabulary::LoggingLevel;
use tracing::Level;

use crate::pool;
use crate::status::{Fault, FaultResult, entry, mcpl_status};
use crate::text::to_c_string;
use crate::threads;
use crate::user_data::{UserData, mcpl_finalizer};

/// Severity of a log message, in ascending order (RFC 5424).
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum mcpl_log_level {
    /// Detailed information for debugging.
    MCPL_LOG_DEBUG = 0,
    /// Normal operation.
    MCPL_LOG_INFO = 1,
    /// Normal but significant.
    MCPL_LOG_NOTICE = 2,
    /// A possible problem.
    MCPL_LOG_WARNING = 3,
    /// An operation failed.
    MCPL_LOG_ERROR = 4,
    /// A component failed.
    MCPL_LOG_CRITICAL = 5,
    /// Immediate action is required.
    MCPL_LOG_ALERT = 6,
    /// The system is unusable.
    MCPL_LOG_EMERGENCY = 7,
}

use mcpl_log_level::*;

impl From<LoggingLevel> for mcpl_log_level {
    fn from(level: LoggingLevel) -> Self {
        match level {
            LoggingLevel::Debug => MCPL_LOG_DEBUG,
            LoggingLevel::Info => MCPL_LOG_INFO,
            LoggingLevel::Notice => MCPL_LOG_NOTICE,
            LoggingLevel::Warning => MCPL_LOG_WARNING,
            LoggingLevel::Error => MCPL_LOG_ERROR,
            LoggingLevel::Critical => MCPL_LOG_CRITICAL,
            LoggingLevel::Alert => MCPL_LOG_ALERT,
            LoggingLevel::Emergency => MCPL_LOG_EMERGENCY,
        }
    }
}

/// Returns the protocol's log level of this number.
pub(crate) fn level(number: i32) -> FaultResult<LoggingLevel> {
    const LEVELS: [LoggingLevel; 8] = [
        LoggingLevel::Debug,
        LoggingLevel::Info,
        LoggingLevel::Notice,
        LoggingLevel::Warning,
        LoggingLevel::Error,
        LoggingLevel::Critical,
        LoggingLevel::Alert,
        LoggingLevel::Emergency,
    ];
    let level = usize::try_from(number)
        .ok()
        .and_then(|number| LEVELS.get(number).copied());
    level.ok_or_else(|| Fault::invalid(format!("unknown log level {number}")))
}

/// Receives a diagnostic message of the library.
///
/// - `level`: severity of the message.
/// - `target`: the part of the library that it comes from, `message`: its text. Both are valid until the callback
///   returns.
/// - `user`: the pointer given with the callback.
pub type mcpl_diagnostics = Option<
    unsafe extern "C" fn(
        level: mcpl_log_level,
        target: *const c_char,
        message: *const c_char,
        user: *mut c_void,
    ),
>;

/// The callback for diagnostics, and the lowest level that it receives.
struct DiagnosticSink {
    least: mcpl_log_level,
    write: unsafe extern "C" fn(mcpl_log_level, *const c_char, *const c_char, *mut c_void),
    data: Arc<UserData>,
}

impl DiagnosticSink {
    fn receives(&self, severity: mcpl_log_level) -> bool {
        severity as i32 >= self.least as i32
    }
}

/// Done when diagnostics are passed on, by the first callback or by an exporter of spans.
static INSTALLED: Once = Once::new();

static SINK: RwLock<Option<DiagnosticSink>> = RwLock::new(None);

/// The target of messages in debug mode.
const TRAFFIC: &str = "mcpline::traffic";

/// How long functions wait until the messages of servers in debug mode are delivered.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Sets the callback for diagnostics: rejected messages, failed handlers, broken transports. There is none by default.
/// For log messages to clients see `mcpl_call_log`.
///
/// - `least`: an `mcpl_log_level`; messages below it are not delivered. The library's own messages go up to
///   `MCPL_LOG_ERROR`.
/// - `write`: the callback, or `NULL` for none. It replaces the current one.
/// - `user`, `finalize`: passed to the callback, and its finalizer.
///
/// Some diagnostics of level `MCPL_LOG_INFO` have a target of their own:
///
/// - `mcpline::requests`: a request to a server has ended. With method, name, outcome, duration, client, session, trace id, and
///   the issuer, subject and client id of the authenticated caller.
/// - `mcpline::requests::client`: a request of a client has ended. With direction (`sent`, or `received` for those that the
///   client answers), method, name, outcome, duration, session, trace id, and the name and address of the server.
/// - `mcpline::traffic`: a message from a client or to it, in debug mode (the option `debug` of `mcpl_server_new_with`).
///
/// The callback runs on any thread, also inside functions of this library, and on several threads at the same time. It must
/// not call functions of this library. The thread that reads and writes messages waits for it.
///
/// Messages of `mcpline::traffic` are different:
///
/// - One thread of their own delivers them, one at a time. Other threads do not wait for the callback.
/// - Up to 1,024 of them wait for the callback. Further ones are left out, and a diagnostic says how many.
/// - If no callback receives this level, they go to stderr.
/// - When the callback is replaced, those that wait are delivered to the current one first, for at most one second.
///
/// Returns `MCPL_USAGE_ERROR` if `least` is not a level. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_set_diagnostics(
    least: i32,
    write: mcpl_diagnostics,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let data = UserData::new(user, finalize);
    entry(|| {
        level(least)?;
        let least = [
            MCPL_LOG_DEBUG,
            MCPL_LOG_INFO,
            MCPL_LOG_NOTICE,
            MCPL_LOG_WARNING,
        ]
        .into_iter()
        .find(|level| *level as i32 == least)
        .unwrap_or(MCPL_LOG_ERROR);
        let wanted = write.map(|_| match least {
            MCPL_LOG_DEBUG => Level::TRACE,
            MCPL_LOG_INFO => Level::INFO,
            MCPL_LOG_NOTICE | MCPL_LOG_WARNING => Level::WARN,
            _ => Level::ERROR,
        });
        let sink = write.map(|write| DiagnosticSink { least, write, data });
        flush();
        // No diagnostic is delivered while the lock is held for writing, so the data of the previous sink can be
        // released.
        let before = std::mem::replace(
            &mut *SINK.write().unwrap_or_else(PoisonError::into_inner),
            sink,
        );
        drop(before);
        // Only another copy of this library in the process can have installed its own listener.
        INSTALLED.call_once(|| {
            diagnostics::install_listener(Level::ERROR, pass_on);
        });
        diagnostics::set_min_level(wanted);
        Ok(())
    })
}

/// Sets the number of worker threads that run callbacks. Call it before the first server, client or loop is created.
///
/// - `most`: the number of threads; 0 for the default: one per processor, at least four, and up to 32 more for clients
///   none of whose callbacks runs while those of others occupy all threads.
///
/// Workers that wait in a function of this library, such as `mcpl_call_request_input_wait`, do not count: others replace them. A
/// worker that finishes waiting continues alongside its replacement, so more callbacks than this can run at once for a
/// while. Callbacks therefore need locks for shared data even with one thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_set_worker_threads(most: u32) -> mcpl_status {
    entry(|| {
        pool::set_max_threads(most);
        Ok(())
    })
}

/// Sets the size of the stack of each worker thread. Call it before the first server, client or loop is created.
///
/// - `bytes`: the size, at least 262,144; 0 for the default, 2 MiB.
///
/// Handlers and other callbacks run on this stack, unless they run on a loop. One that needs more than the stack ends the
/// process with SIGSEGV, because the memory below it cannot be accessed; the thread is called `mcpline-worker`.
///
/// Returns `MCPL_USAGE_ERROR` if the size is too small.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_set_worker_stack_size(bytes: usize) -> mcpl_status {
    entry(|| threads::set_worker_stack(bytes))
}

/// Returns the version of the library, such as `"1.2.3"`. The string is static. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

fn severity(level: Level) -> mcpl_log_level {
    match level {
        Level::ERROR => MCPL_LOG_ERROR,
        Level::WARN => MCPL_LOG_WARNING,
        Level::INFO => MCPL_LOG_INFO,
        _ => MCPL_LOG_DEBUG,
    }
}

fn pass_on(said: Diagnostic<'_>) {
    // Messages in debug mode have a thread of their own, because this one must not wait for the callback.
    if said.target != TRAFFIC {
        deliver(said.level, said.target, &said.text);
    }
}

/// Passes a diagnostic to the callback. Returns `false` if there is none that receives its level.
fn deliver(level: Level, target: &str, text: &str) -> bool {
    let severity = severity(level);
    let sink = SINK.read().unwrap_or_else(PoisonError::into_inner);
    let Some(sink) = sink.as_ref().filter(|sink| sink.receives(severity)) else {
        return false;
    };
    let (message, target) = (to_c_string(text), to_c_string(target));
    // SAFETY: both texts outlive the call, and the data is released only after the sink is replaced, which needs the
    // lock.
    unsafe {
        (sink.write)(
            severity,
            target.as_ptr(),
            message.as_ptr(),
            sink.data.pointer(),
        );
    }
    true
}

/// Begins to export spans.
///
/// # Errors
///
/// Usage error: an option is invalid, or a callback for diagnostics was set before.
#[cfg(feature = "otlp")]
pub(crate) fn export_spans(
    options: &str,
    runtime: &tokio::runtime::Handle,
) -> FaultResult<mcpline::foreign::SpanExport> {
    let started = mcpline::foreign::SpanExport::start(options.as_bytes(), runtime, pass_on)?;
    // Nothing else may replace the subscriber now.
    INSTALLED.call_once(|| {});
    Ok(started)
}

/// Logs the messages of a server from now on if it is in debug mode, and makes sure that something says so.
pub(crate) fn log_debugged(server: &mcpline::Server) {
    if !server.is_debugged() {
        return;
    }
    let has_warned = {
        let sink = SINK.read().unwrap_or_else(PoisonError::into_inner);
        sink.as_ref()
            .is_some_and(|sink| sink.receives(MCPL_LOG_WARNING))
    };
    if !has_warned {
        print_debug_warning(server);
    }
    log_traffic(server, |level, text| deliver(level, TRAFFIC, text));
}

/// Waits until the messages of servers in debug mode are delivered, for a limited time, and ends the thread that does so.
pub(crate) fn flush() {
    flush_traffic(FLUSH_TIMEOUT);
}
