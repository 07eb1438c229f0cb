//! What this process has from the supervisor that started it, if it is a worker.

use std::fmt;
use std::net::TcpListener;
use std::str::FromStr;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The environment variable of a worker. Bindings remove it when the worker serves.
pub(crate) const VARIABLE: &str = "MCPLINE_WORKER";

/// What a supervisor says in the environment of its workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The process id of the supervisor.
    pub(crate) supervisor: u32,
    /// The descriptor of the listening socket.
    pub(crate) socket: i32,
    /// The descriptor of the line to the supervisor.
    pub(crate) line: i32,
    /// The secret that seals `requestState` in all workers, in base64.
    pub(crate) secret: String,
    /// The address as the program names it.
    pub(crate) address: String,
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            supervisor,
            socket,
            line,
            secret,
            address,
        } = self;
        write!(f, "{supervisor} {socket} {line} {secret} {address}")
    }
}

impl FromStr for Assignment {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(5, ' ');
        let mut next = || parts.next().ok_or(());
        Ok(Self {
            supervisor: next()?.parse().map_err(drop)?,
            socket: next()?.parse().map_err(drop)?,
            line: next()?.parse().map_err(drop)?,
            secret: next()?.to_owned(),
            address: next()?.to_owned(),
        })
    }
}

/// A worker: this process.
pub(crate) struct WorkerProcess {
    /// The address as the program names it.
    pub(crate) address: String,
    /// The secret that seals `requestState` in all workers, in base64.
    pub(crate) secret: String,
    socket: Mutex<Option<TcpListener>>,
    #[cfg(unix)]
    line: std::os::unix::net::UnixStream,
}

impl WorkerProcess {
    /// Returns this process, if a supervisor has started it. Another process that has inherited the variable has not inherited
    /// the descriptors.
    pub(crate) fn current() -> Option<&'static Self> {
        static CURRENT: OnceLock<Option<WorkerProcess>> = OnceLock::new();
        let assignment = || std::env::var(VARIABLE).ok()?.parse().ok();
        CURRENT
            .get_or_init(|| assignment().and_then(Self::adopt))
            .as_ref()
    }

    #[cfg(unix)]
    fn adopt(assignment: Assignment) -> Option<Self> {
        let Assignment {
            supervisor,
            socket,
            line,
            secret,
            address,
        } = assignment;
        let (socket, line) = mcpline_process::adopt(socket, line, supervisor)?;
        Some(Self {
            address,
            secret,
            socket: Mutex::new(Some(socket)),
            line,
        })
    }

    #[cfg(not(unix))]
    fn adopt(_assignment: Assignment) -> Option<Self> {
        None
    }

    /// Returns the listening socket, once.
    pub(crate) fn take_socket(&self) -> Option<TcpListener> {
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        socket.take()
    }

    /// Calls `stop` when the supervisor says so, or has ended. Waits on a thread of its own.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    #[cfg(unix)]
    pub(crate) fn on_stop(
        &'static self,
        stop: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<()> {
        use std::io::{ErrorKind, Read};

        let thread = std::thread::Builder::new().name("mcpline-supervisor".to_owned());
        thread.spawn(move || {
            let mut line = &self.line;
            // The supervisor writes nothing: it closes the line.
            while let Err(error) = line.read(&mut [0]) {
                if error.kind() != ErrorKind::Interrupted {
                    break;
                }
            }
            stop();
        })?;
        Ok(())
    }

    #[cfg(not(unix))]
    pub(crate) fn on_stop(
        &'static self,
        _stop: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<()> {
        Ok(())
    }

    /// Reports to the supervisor that this process serves. It may have ended.
    #[cfg(unix)]
    pub(crate) fn report_ready(&self) {
        use std::io::Write;

        let _ = (&self.line).write_all(b"1");
    }

    #[cfg(not(unix))]
    pub(crate) fn report_ready(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read_as_they_are_written() {
        let assignment = Assignment {
            supervisor: 4711,
            socket: 5,
            line: 6,
            secret: "c2VjcmV0".to_owned(),
            address: "a host with spaces:8000".to_owned(),
        };
        assert_eq!(assignment.to_string().parse(), Ok(assignment));
        for text in ["", "1", "1 2 3 x", "a 2 3 x b", "1 b 3 x c"] {
            assert_eq!(text.parse::<Assignment>(), Err(()), "{text:?}");
        }
    }

    #[test]
    fn a_process_that_no_supervisor_has_started_is_no_worker() {
        assert!(WorkerProcess::current().is_none());
    }
}
