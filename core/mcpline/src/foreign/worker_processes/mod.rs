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

use serde::Deserialize;

use crate::error::Error;
use crate::server::Server;
use crate::transport::Stop;
use crate::transport::http::{Http, HttpOptions};
use crate::worker_process::WorkerProcess;

use super::listening;

pub use supervisor::WorkerProcesses;

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
}

/// A transport of a program that may have worker processes.
#[derive(Debug)]
pub enum Listening {
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
/// server of the program has workers, or the system is Windows.
pub async fn listen_with_workers(
    server: &Server,
    address: (String, u16),
    options: HttpOptions,
    workers: WorkerProgram,
    stop: &Stop,
) -> Result<Listening, Error> {
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
        let workers = WorkerProcesses::new(http, name, workers)?;
        return Ok(Listening::Supervisor(workers));
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
    Ok(Listening::Worker(http))
}

/// Reports to the supervisor, if this process is a worker, that its handlers can run.
pub fn report_ready() {
    if let Some(worker) = WorkerProcess::current() {
        worker.report_ready();
    }
}
