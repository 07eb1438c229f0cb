//! The supervisor: starts workers, replaces those that fail, and stops them together.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mcpline_process::{has_served, inheritable, terminate, wait_for_end};
use mcpline_runtime::clock::random;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep, timeout_at};

use crate::error::Error;
use crate::server::{STATE_SECRETS_VARIABLE, Server};
use crate::transport::http::Http;
use crate::transport::{LAST_ANSWERS, Stop, Transport};

use super::WorkerProgram;
use super::worker::Assignment;

/// How long a worker that ends by itself, with an error, must have lived to count as one that has started: a lifespan that
/// fails needs some time.
const START_TIME: Duration = Duration::from_secs(10);

/// Maximum number of workers in a row that do not start. Then the program has an error that another start does not correct.
const MAX_FAILED_STARTS: u32 = 5;

/// Pause before a worker that has not started is replaced; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// How long a worker may take to end after its calls and last responses: the program may close files and connections.
const END_TIME: Duration = Duration::from_secs(5);

/// Worker processes that serve on one socket.
#[derive(Debug)]
pub struct WorkerProcesses {
    /// Not served. It keeps the socket open, and knows the address and the URL.
    http: Http,
    /// The socket for workers.
    socket: OwnedFd,
    /// The address as the program names it.
    name: String,
    program: WorkerProgram,
}

impl WorkerProcesses {
    pub(super) fn new(http: Http, name: String, program: WorkerProgram) -> Result<Self, Error> {
        let socket = inheritable(http.socket());
        let socket =
            socket.map_err(|error| transport("cannot open the socket for workers", error))?;
        Ok(Self {
            http,
            socket,
            name,
            program,
        })
    }

    /// Returns the address that the workers serve.
    pub fn address(&self) -> SocketAddr {
        self.http.address()
    }

    /// Returns the URL of the MCP endpoint; `scheme` is `http`, or `https` if the workers serve with TLS.
    pub fn url(&self, scheme: &str) -> String {
        self.http.url_with(scheme)
    }

    /// Returns the command that starts a worker.
    fn command(&self) -> Command {
        let assignment = Assignment {
            supervisor: std::process::id(),
            socket: self.socket.as_raw_fd(),
            address: self.name.clone(),
        };
        let mut command = Command::new(&self.program.program);
        command.args(&self.program.arguments);
        // Node closes its own when another program is started.
        if let Ok(stdout) = io::stdout().as_fd().try_clone_to_owned() {
            command.stdout(stdout);
        }
        if let Ok(stderr) = io::stderr().as_fd().try_clone_to_owned() {
            command.stderr(stderr);
        }
        let (name, value) = assignment.variable();
        command.env(name, value);
        // Ctrl-C reaches the supervisor alone, which then stops the workers.
        command.process_group(0);
        if std::env::var_os(STATE_SECRETS_VARIABLE).is_none() {
            // Calls continue at any worker.
            command.env(STATE_SECRETS_VARIABLE, STANDARD.encode(random::<32>()));
        }
        command
    }
}

impl Transport for WorkerProcesses {
    async fn serve(self, server: Server, stop: Stop) -> Result<(), Error> {
        let settings = server.settings();
        let end_time = settings
            .shutdown_grace
            .saturating_add(LAST_ANSWERS + END_TIME);
        let mut workers = Workers::new(self.command());
        let outcome = workers.run(self.program.count.get(), &stop).await;
        workers.stop(end_time).await;
        outcome
    }
}

/// The workers that run.
struct Workers {
    command: Command,
    running: HashMap<u32, Worker>,
    ended: UnboundedReceiver<u32>,
    /// Sends the process id of each worker when it has ended: at most once for each.
    sender: UnboundedSender<u32>,
    failed_starts: u32,
}

struct Worker {
    process: Child,
    /// The other end of its stdin: says whether it serves, and ends with the supervisor.
    line: UnixStream,
    started: Instant,
}

impl Workers {
    fn new(command: Command) -> Self {
        let (sender, ended) = unbounded_channel();
        Self {
            command,
            running: HashMap::new(),
            ended,
            sender,
            failed_starts: 0,
        }
    }

    /// Keeps `count` workers running until `stop` is given, or one of them ends with success: its program was stopped.
    async fn run(&mut self, count: usize, stop: &Stop) -> Result<(), Error> {
        for _ in 0..count {
            self.start()?;
        }
        loop {
            let pid = tokio::select! {
                () = stop.stopped() => return Ok(()),
                Some(pid) = self.ended.recv() => pid,
            };
            let Some((has_started, status)) = self.remove(pid) else {
                continue;
            };
            if status.is_some_and(|status| status.success()) {
                return Ok(());
            }
            let status =
                status.map_or_else(|| "unknown status".to_owned(), |status| status.to_string());
            self.failed_starts = if has_started {
                0
            } else {
                self.failed_starts + 1
            };
            if self.failed_starts >= MAX_FAILED_STARTS {
                let message =
                    format!("{MAX_FAILED_STARTS} worker processes in a row did not start");
                return Err(Error::transport("serve", message, io::Error::other(status)));
            }
            tracing::warn!(pid, %status, "a worker process has ended; another one takes its place");
            if self.failed_starts > 0 {
                let pause = FIRST_PAUSE * 2_u32.pow(self.failed_starts - 1);
                tokio::select! {
                    () = stop.stopped() => return Ok(()),
                    () = sleep(pause) => {}
                }
            }
            self.start()?;
        }
    }

    fn start(&mut self) -> Result<(), Error> {
        let (line, stdin) =
            UnixStream::pair().map_err(|error| transport("cannot open a socket pair", error))?;
        self.command.stdin(OwnedFd::from(stdin));
        let process = self
            .command
            .spawn()
            .map_err(|error| transport("cannot start a worker process", error))?;
        // The worker alone has its end of the pair from now on.
        self.command.stdin(Stdio::null());
        let pid = process.id();
        let sender = self.sender.clone();
        let thread = std::thread::Builder::new().name("mcpline-worker".to_owned());
        let waits = thread.spawn(move || {
            // On errors, it has ended as well.
            let _ = wait_for_end(pid);
            let _ = sender.send(pid);
        });
        self.running.insert(
            pid,
            Worker {
                process,
                line,
                started: Instant::now(),
            },
        );
        waits
            .map(drop)
            .map_err(|error| transport("cannot start a thread for a worker process", error))
    }

    /// Removes a worker that has ended. Returns whether it had started to serve, and its status unless the program's
    /// handling of SIGCHLD hides it.
    fn remove(&mut self, pid: u32) -> Option<(bool, Option<ExitStatus>)> {
        let mut worker = self.running.remove(&pid)?;
        let status = worker.process.wait().ok();
        let has_failed = status.is_some_and(|status| status.code().is_some())
            && worker.started.elapsed() < START_TIME;
        Some((has_served(&worker.line) && !has_failed, status))
    }

    /// Stops all workers; kills those that take longer than `end_time`.
    async fn stop(&mut self, end_time: Duration) {
        for worker in self.running.values() {
            // It may have ended.
            let _ = terminate(&worker.process);
        }
        let deadline = Instant::now().checked_add(end_time);
        while !self.running.is_empty() {
            let next = self.ended.recv();
            let ended = match deadline {
                Some(deadline) => timeout_at(deadline, next).await,
                None => Ok(next.await),
            };
            match ended {
                Ok(Some(pid)) => drop(self.remove(pid)),
                Ok(None) => return,
                Err(_) => break,
            }
        }
        for (pid, mut worker) in self.running.drain() {
            tracing::warn!(pid, "a worker process did not end, and is killed");
            let _ = worker.process.kill();
            let _ = worker.process.wait();
        }
    }
}

/// Workers do not outlive a supervisor that is dropped without its end: they get SIGTERM, and stop as they do with it.
impl Drop for Workers {
    fn drop(&mut self) {
        for worker in self.running.values() {
            let _ = terminate(&worker.process);
        }
    }
}

fn transport(message: &'static str, error: io::Error) -> Error {
    Error::transport("serve", message, error)
}
