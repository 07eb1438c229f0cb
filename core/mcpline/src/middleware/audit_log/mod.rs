//! Records requests in a file.

mod record;
#[cfg(feature = "server")]
mod server;

use std::path::Path;
use std::time::{Duration, SystemTime};

use mcpline_runtime::clock;

use crate::error::Error;
use crate::log_file::{LogFile, LogWriter};
use crate::sync::Arc;

use record::RecordOptions;
pub(crate) use record::{Ending, RecordedRequest};

/// Default size at which the file is rotated, in bytes.
const DEFAULT_MAX_BYTES: u64 = 100 * 1024 * 1024;

/// Default number of rotated files that are kept.
const DEFAULT_MAX_FILES: u32 = 10;

/// How long a log that is freed waits until all records are written: as long as handlers have at shutdown.
const MAX_CLOSING_TIME: Duration = Duration::from_secs(5);

/// Maximum number of rotated files: each rotation renames all of them, which takes some milliseconds then.
const MAX_FILES: u32 = 1_000;

/// A middleware of servers and of clients that appends a record of each request that it sees to a file: a JSON object on a line of its own, with time,
/// method, target, caller, duration and outcome. `docs/observability.md` describes its members.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use mcpline::Server;
/// use mcpline::middleware::AuditLog;
/// use mcpline::server::MiddlewareScope;
///
/// let server = Server::new("files", "1.0.0");
/// let log = AuditLog::open("/var/log/files/audit.jsonl")?.with_arguments(true).with_redacted(["iban"]);
/// server.add_middleware(MiddlewareScope::all().with_methods(["tools/call"]), Arc::new(log))?;
/// # Ok::<(), mcpline::Error>(())
/// ```
///
/// Records contain neither tokens nor ids of sessions. The record of a request is passed to the operating system before the
/// client gets the response. A thread writes the records, several at once if they wait; each is written as a whole. When too many
/// bytes wait for the disk, further requests wait before they run; one that is cancelled meanwhile has no record. A request that
/// ends without a response is `cancelled`, and its record is written soon after. Dropping the log with its server waits until all
/// records are written.
///
/// If a record cannot be written, the request has run, but the client gets an internal error, unless the log is not
/// [required](Self::with_required). The reason is logged as a warning.
///
/// A new file can be read and written by its owner only. When it would exceed 100 MiB, it is renamed: `audit.jsonl.1` is the newest of
/// ten rotated files. Each log needs a file of its own. Several processes may share one only without rotation
/// ([`with_max_bytes`](Self::with_max_bytes)).
#[derive(Debug)]
pub struct AuditLog {
    options: Arc<RecordOptions>,
    writer: Arc<LogWriter>,
    is_required: bool,
}

/// A request whose record is not written yet.
pub(crate) struct OpenRecord {
    options: Arc<RecordOptions>,
    writer: Arc<LogWriter>,
    request: Box<dyn RecordedRequest>,
    time: SystemTime,
    /// On the monotonic clock.
    started: Duration,
    is_required: bool,
    is_written: bool,
}

impl AuditLog {
    /// Opens or creates the file of a log.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the file cannot be opened for writing.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut file = LogFile::open(path).map_err(|error| {
            Error::usage(format!(
                "cannot open the audit log {}: {error}",
                path.display()
            ))
        })?;
        file.max_bytes = DEFAULT_MAX_BYTES;
        file.max_files = DEFAULT_MAX_FILES;
        Ok(Self {
            options: Arc::default(),
            writer: Arc::new(LogWriter::new("the audit log", MAX_CLOSING_TIME, file)),
            is_required: true,
        })
    }

    /// Sets the size in bytes that the file does not exceed, unless a single record does; 0: there is no rotation. Default:
    /// 100 MiB.
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: u64) -> Self {
        self.writer.with_file(|file| file.max_bytes = max_bytes);
        self
    }

    /// Sets how many rotated files are kept: `path.1`, which is the newest, to `path.N`. Default: 10. At most 1,000.
    #[must_use]
    pub fn with_max_files(self, max_files: u32) -> Self {
        let max_files = max_files.min(MAX_FILES);
        self.writer.with_file(|file| file.max_files = max_files);
        self
    }

    /// Sets whether records contain the arguments of tools and prompts. Of those above 16 KiB they contain the size. Default:
    /// `false`.
    #[must_use]
    pub fn with_arguments(mut self, arguments: bool) -> Self {
        Arc::make_mut(&mut self.options).arguments = arguments;
        self
    }

    /// Sets whether records contain results. Of those above 16 KiB they contain the size. Default: `false`.
    #[must_use]
    pub fn with_results(mut self, results: bool) -> Self {
        Arc::make_mut(&mut self.options).results = results;
        self
    }

    /// Sets names of members of arguments and results whose values are replaced by `[redacted]`, at any depth and without
    /// regard to case. The values of obvious secrets, such as `password` and `api_key`, always are.
    #[must_use]
    pub fn with_redacted<S: AsRef<str>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        let names = names.into_iter().map(|name| name.as_ref().to_lowercase());
        Arc::make_mut(&mut self.options).redacted = names.collect();
        self
    }

    /// Sets whether a request fails if its record cannot be written. Default: `true`.
    #[must_use]
    pub fn with_required(mut self, is_required: bool) -> Self {
        self.is_required = is_required;
        self
    }
}

impl AuditLog {
    /// Returns what begins a record, once there is room for it: a request waits for that before it runs.
    pub(crate) fn begin(&self) -> impl Future<Output = OpenedLog> + Send + use<> {
        let opened = self.opened();
        async move {
            opened.writer.wait_for_room().await;
            opened
        }
    }

    /// Returns what begins a record, if there is room for it.
    #[cfg(feature = "client")]
    pub(crate) fn begin_now(&self) -> Option<OpenedLog> {
        self.writer.has_room().then(|| self.opened())
    }

    fn opened(&self) -> OpenedLog {
        OpenedLog {
            options: self.options.clone(),
            writer: self.writer.clone(),
            is_required: self.is_required,
            time: SystemTime::now(),
            started: clock::now(),
        }
    }
}

/// A log that has room for a record.
pub(crate) struct OpenedLog {
    options: Arc<RecordOptions>,
    writer: Arc<LogWriter>,
    is_required: bool,
    time: SystemTime,
    started: Duration,
}

impl OpenedLog {
    pub(crate) fn record(self, request: impl RecordedRequest) -> OpenRecord {
        OpenRecord {
            options: self.options,
            writer: self.writer,
            request: Box::new(request),
            time: self.time,
            started: self.started,
            is_required: self.is_required,
            is_written: false,
        }
    }
}

impl OpenRecord {
    /// Returns the record of a request that has ended like this.
    pub(crate) fn line(&self, ending: &Ending<'_>) -> Vec<u8> {
        let duration = clock::now().saturating_sub(self.started);
        self.options
            .line(&*self.request, self.time, duration, ending)
    }

    /// Writes the record. Returns whether the outcome of the request may be returned.
    pub(crate) async fn end(mut self, line: Vec<u8>) -> bool {
        self.is_written = true;
        match self.writer.write(line).await {
            Ok(()) => true,
            Err(error) => {
                self.writer.warn(&error);
                !self.is_required
            }
        }
    }
}

/// The request ended before its outcome.
impl Drop for OpenRecord {
    fn drop(&mut self) {
        if self.is_written {
            return;
        }
        let ending = match std::thread::panicking() {
            true => Ending::Panicked,
            false => Ending::Cancelled,
        };
        if let Err(error) = self.writer.write_later(self.line(&ending)) {
            self.writer.warn(&error);
        }
    }
}
