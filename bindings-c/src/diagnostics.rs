//! What the library has to say to developers, and settings of the library as a whole.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Once, PoisonError, RwLock};

use mcpline::foreign::diagnostics::{self, Diagnostic};
use mcpline::protocol::vocabulary::LoggingLevel;
use tracing::Level;

use crate::pool;
use crate::status::{Done, Fault, entry, mcpl_status};
use crate::text::terminated;
use crate::user::{UserData, mcpl_finalizer};

/// How severe a message is, from the least to the most (RFC 5424).
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum mcpl_log_level {
    /// For developers.
    MCPL_LOG_DEBUG = 0,
    /// Something has happened.
    MCPL_LOG_INFO = 1,
    /// Something unusual has happened.
    MCPL_LOG_NOTICE = 2,
    /// Something may be wrong.
    MCPL_LOG_WARNING = 3,
    /// Something has failed.
    MCPL_LOG_ERROR = 4,
    /// Something that others depend on has failed.
    MCPL_LOG_CRITICAL = 5,
    /// Somebody must act at once.
    MCPL_LOG_ALERT = 6,
    /// Nothing works any more.
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

/// The protocol's level of this number.
pub(crate) fn level(number: i32) -> Done<LoggingLevel> {
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
    level.ok_or_else(|| Fault::invalid(format!("{number} is no log level")))
}

/// Is given a message of the library. `target` names the part that it is from. Both are valid until it returns.
pub type mcpl_diagnostics = Option<
    unsafe extern "C" fn(
        level: mcpl_log_level,
        target: *const c_char,
        message: *const c_char,
        user: *mut c_void,
    ),
>;

/// Who is told, and from which level on.
struct Sink {
    least: mcpl_log_level,
    write: unsafe extern "C" fn(mcpl_log_level, *const c_char, *const c_char, *mut c_void),
    data: Arc<UserData>,
}

static SINK: RwLock<Option<Sink>> = RwLock::new(None);

/// Has `write` told what the library has to say to developers: refused messages, handlers that failed, transports that
/// broke. Replaces what was told before; `NULL` for nobody, as at first.
///
/// `least` is an `mcpl_log_level`. `write` is called from any thread, also while functions of this library run, and must
/// call none of them. Messages to clients are another thing: `mcpl_call_log`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_set_diagnostics(
    least: i32,
    write: mcpl_diagnostics,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    static INSTALLED: Once = Once::new();
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
        let sink = write.map(|write| Sink { least, write, data });
        // Nobody is being told while this is replaced, so the data of the one before can be released.
        let before = std::mem::replace(
            &mut *SINK.write().unwrap_or_else(PoisonError::into_inner),
            sink,
        );
        drop(before);
        // Only another copy of this library within the process can have taken it.
        INSTALLED.call_once(|| {
            diagnostics::listen(Level::TRACE, tell);
        });
        Ok(())
    })
}

/// Sets how many worker threads take callbacks, before the first server, client or loop is made; 0 is the default: one
/// per processor, at least four, and up to 32 more for clients of whose callbacks none runs while others hold all of these.
///
/// Callbacks that wait in `mcpl_call_ask_wait` and in functions of a client are not counted: others take their places. One
/// that goes on after that ends beside those others, so that for so long more callbacks run than are set: they need locks
/// of their own, even where one is set.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_set_worker_threads(most: u32) -> mcpl_status {
    entry(|| {
        pool::set_most(most);
        Ok(())
    })
}

/// The version of the library, such as `"1.2.3"`. The string lives as long as the library.
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

fn tell(said: Diagnostic<'_>) {
    let severity = severity(said.level);
    let sink = SINK.read().unwrap_or_else(PoisonError::into_inner);
    let Some(sink) = &*sink else { return };
    if (severity as i32) < sink.least as i32 {
        return;
    }
    let (message, target) = (terminated(&said.text), terminated(said.target));
    // SAFETY: both texts outlive the call; the data is released when nobody is told any more.
    unsafe {
        (sink.write)(
            severity,
            target.as_ptr(),
            message.as_ptr(),
            sink.data.pointer(),
        );
    }
}
