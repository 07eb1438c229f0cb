//! Serving HTTP with several worker processes: a supervisor opens the socket and starts the program again, once for each
//! worker. In a worker, the program serves on the supervisor's socket.
//!
//! The program itself is started again, instead of forked, so that its threads, connections and locks are its own.

#[cfg(unix)]
mod supervisor;
#[cfg(not(unix))]
#[path = "unsupported.rs"]
mod supervisor;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::error::Error;
use crate::server::Server;
use crate::transport::Stop;
use crate::transport::http::{Http, HttpOptions};
use crate::worker_process::WorkerProcess;

use super::listening;
use super::options::seconds;

pub use supervisor::WorkerProcesses;

/// How long a worker may take from its start until it serves, unless the program says otherwise. After that it hangs, for example
/// because it waits for a database without a timeout, and would never be replaced otherwise. Longer than programs take that load
/// large models from a slow disk: those that are killed too early never serve, while one that is killed late is only missing longer.
const START_TIMEOUT: Duration = Duration::from_secs(300);

/// A program, and how many processes of it serve.
#[derive(Debug, Clone, Deserialize)]
pub struct WorkerProgram {
    /// Path of the executable.
    pub program: PathBuf,
    /// Arguments that make it serve as this process does.
    pub arguments: Vec<String>,
    /// The directory in which this process was started, to which relative paths among the arguments refer; `None` if it is not
    /// known, or was removed: workers then start in the current one.
    pub directory: Option<PathBuf>,
    /// Number of processes.
    pub count: NonZeroUsize,
    /// How long a worker may take from its start until it serves, in seconds: greater than 0. Then it is killed and replaced. Default:
    /// five minutes.
    pub start_timeout: Option<f64>,
}

impl WorkerProgram {
    /// Returns how long a worker may take from its start until it serves.
    fn start_timeout(&self) -> Result<Duration, Error> {
        let Some(given) = self.start_timeout else {
            return Ok(START_TIMEOUT);
        };
        match seconds(given) {
            Ok(timeout) if !timeout.is_zero() => Ok(timeout),
            _ => Err(Error::usage(format!(
                "worker_start_timeout: {given} must be a time greater than 0"
            ))),
        }
    }
}

/// A transport of a program that may have worker processes.
#[derive(Debug)]
pub enum ServingRole {
    /// This process serves.
    Server(Http),
    /// This process serves, as one of several. The binding calls [`report_ready`] when handlers can run.
    Worker(Http),
    /// This process starts workers and waits for them.
    Supervisor(WorkerProcesses),
}

/// Like [`listen`](super::listen), with worker processes: the first process of the program opens the socket, and the
/// others serve on it. `stop` is given when the supervisor of a worker stops.
///
/// # Errors
///
/// Besides those of [`listen`](super::listen):
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): clients of the server have sessions that the processes do not share, another
/// server of the program has workers, the start timeout is not greater than 0, or the system is Windows.
pub async fn listen_with_workers(
    server: &Server,
    address: (String, u16),
    options: HttpOptions,
    workers: WorkerProgram,
    stop: &Stop,
) -> Result<ServingRole, Error> {
    let start_timeout = workers.start_timeout()?;
    let settings = server.settings();
    let has_sessions = settings.revisions.iter().any(|each| !each.is_modern());
    if has_sessions && !options.stateless && settings.sharing.is_none() {
        return Err(Error::usage(
            "workers: clients of revisions up to 2025-11-25 have sessions, which processes must share: set `sharing`, \
             or serve without sessions (`stateless`)",
        ));
    }
    let name = format!("{}:{}", address.0, address.1);
    let Some(worker) = WorkerProcess::current() else {
        let http = listening::listen(server, address, options).await?;
        let workers = WorkerProcesses::new(http, name, workers, start_timeout)?;
        return Ok(ServingRole::Supervisor(workers));
    };
    let socket = (worker.address == name).then(|| worker.take_socket());
    let Some(socket) = socket.flatten() else {
        return Err(Error::usage(
            "workers: one server of a program can have worker processes, once",
        ));
    };
    let http = listening::listen_on(server, socket, options)?;
    let stop = stop.clone();
    worker
        .on_stop(move || stop.stop())
        .map_err(|error| Error::transport("listen", "cannot start a thread", error))?;
    Ok(ServingRole::Worker(http))
}

/// Reports to the supervisor, if this process is a worker, that its handlers can run.
pub fn report_ready() {
    if let Some(worker) = WorkerProcess::current() {
        worker.report_ready();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_timeouts_are_greater_than_zero() {
        let given = |start_timeout| WorkerProgram {
            program: PathBuf::new(),
            arguments: Vec::new(),
            directory: None,
            count: NonZeroUsize::MIN,
            start_timeout,
        };
        for (seconds, expected) in [
            (None, START_TIMEOUT),
            (Some(0.5), Duration::from_millis(500)),
            (Some(f64::INFINITY), Duration::MAX),
        ] {
            assert_eq!(given(seconds).start_timeout().expect("valid"), expected);
        }
        for seconds in [0.0, -1.0, f64::NAN] {
            let error = given(Some(seconds)).start_timeout().expect_err("refused");
            assert!(
                error.to_string().contains("worker_start_timeout"),
                "{error}"
            );
        }
    }
}
