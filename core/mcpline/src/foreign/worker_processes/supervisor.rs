//! The supervisor: starts workers, replaces those that end, and stops them together.

use std::collections::HashMap;
use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mcpline_process::{pass_descriptors, terminate, wait_for_end};
use mcpline_runtime::clock::random;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::error::Error;
use crate::server::Server;
use crate::transport::http::Http;
use crate::transport::{LAST_ANSWERS, Stop, Transport};
use crate::worker_process::{Assignment, VARIABLE};

use super::WorkerProgram;

/// Maximum number of workers in a row that end before they serve. Then the program has an error that another start does not
/// correct.
const MAX_FAILED_STARTS: u32 = 5;

/// A worker that lives shorter is replaced after a pause.
const SHORT_LIFE: Duration = Duration::from_secs(10);

/// The pause before the first worker with a [`SHORT_LIFE`] is replaced. It is doubled for each further one in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// How often the pause is doubled at most: a request that crashes its handler must not end the service for long.
const MAX_DOUBLINGS: u32 = 4;

/// How long a worker may take from its start until it serves. After that it hangs, for example because it waits for a database without
/// a timeout, and is replaced as if it had ended: it would never be replaced otherwise. As long as systemd waits for a service by
/// default (`TimeoutStartSec`), and longer than programs take that load large models.
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// How long a worker may take to end by itself after its calls and last responses, then after SIGTERM: the program may close
/// files and connections.
const END_TIME: Duration = Duration::from_secs(3);

/// Worker processes that serve on one socket.
#[derive(Debug)]
pub struct WorkerProcesses {
    /// Not served. It knows the address and the URL.
    http: Http,
    /// The socket for workers.
    socket: Arc<OwnedFd>,
    /// The address as the program names it.
    name: String,
    program: WorkerProgram,
}

impl WorkerProcesses {
    pub(super) fn new(http: Http, name: String, program: WorkerProgram) -> Result<Self, Error> {
        let socket = http.socket().try_clone_to_owned();
        let socket = socket.map_err(|error| failed("cannot open the socket for workers", error))?;
        Ok(Self {
            http,
            socket: Arc::new(socket),
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
}

impl Transport for WorkerProcesses {
    async fn serve(self, server: Server, stop: Stop) -> Result<(), Error> {
        let settings = server.settings();
        let grace = settings.shutdown_grace.saturating_add(LAST_ANSWERS);
        let mut workers = Workers {
            starter: Starter {
                socket: self.socket,
                secret: STANDARD.encode(random::<32>()),
                name: self.name,
                program: self.program,
            },
            running: Running::default(),
            start_timeout: START_TIMEOUT,
            failed_starts: 0,
            short_lives: 0,
        };
        let outcome = workers.run(&stop).await;
        let Workers {
            starter, running, ..
        } = workers;
        // Without the socket, new connections are refused as soon as the workers refuse them.
        drop((starter, self.http));
        running.stop(grace).await;
        outcome
    }
}

/// How workers are started.
struct Starter {
    socket: Arc<OwnedFd>,
    /// Seals `requestState` in all workers, so that calls continue at any of them.
    secret: String,
    name: String,
    program: WorkerProgram,
}

impl Starter {
    fn start(&self) -> io::Result<(Child, UnixStream)> {
        let (line, other) = UnixStream::pair()?;
        let other = Arc::new(OwnedFd::from(other));
        let assignment = Assignment {
            supervisor: std::process::id(),
            socket: self.socket.as_raw_fd(),
            line: other.as_raw_fd(),
            secret: self.secret.clone(),
            address: self.name.clone(),
        };
        let mut command = Command::new(&self.program.program);
        command
            .args(&self.program.arguments)
            .env(VARIABLE, assignment.to_string())
            .stdin(Stdio::null())
            // Ctrl-C reaches the supervisor alone, which then stops the workers.
            .process_group(0);
        if let Some(directory) = &self.program.directory
            && directory.is_dir()
        {
            command.current_dir(directory);
        }
        // Node closes its own when another program is started.
        if let Ok(stdout) = io::stdout().as_fd().try_clone_to_owned() {
            command.stdout(stdout);
        }
        if let Ok(stderr) = io::stderr().as_fd().try_clone_to_owned() {
            command.stderr(stderr);
        }
        pass_descriptors(&mut command, vec![self.socket.clone(), other]);
        Ok((command.spawn()?, line))
    }
}

struct Workers {
    starter: Starter,
    running: Running,
    /// [`START_TIMEOUT`].
    start_timeout: Duration,
    failed_starts: u32,
    short_lives: u32,
}

impl Workers {
    /// Keeps workers running until `stop` is given.
    async fn run(&mut self, stop: &Stop) -> Result<(), Error> {
        for _ in 0..self.starter.program.count.get() {
            self.start()?;
        }
        loop {
            let next_check = self.running.next_check(self.start_timeout);
            let ended = tokio::select! {
                () = stop.stopped() => return Ok(()),
                ended = self.running.next_end() => ended,
                () = sleep_until(next_check) => {
                    self.running.kill_those_that_hang(self.start_timeout);
                    None
                }
            };
            let Some(ended) = ended else {
                continue;
            };
            self.failed_starts = if ended.has_served {
                0
            } else {
                self.failed_starts + 1
            };
            self.short_lives = if ended.lived < SHORT_LIFE {
                self.short_lives + 1
            } else {
                0
            };
            let status = match ended.status {
                Some(status) => status.to_string(),
                None => "unknown status".to_owned(),
            };
            if self.failed_starts >= MAX_FAILED_STARTS {
                let message =
                    format!("{MAX_FAILED_STARTS} worker processes in a row did not start");
                return Err(failed(message, io::Error::other(status)));
            }
            tracing::warn!(pid = ended.pid, %status, "a worker process has ended; another one takes its place");
            if self.short_lives > 0 {
                let doublings = (self.short_lives - 1).min(MAX_DOUBLINGS);
                tokio::select! {
                    () = stop.stopped() => return Ok(()),
                    () = sleep(FIRST_PAUSE * 2_u32.pow(doublings)) => {}
                }
            }
            self.start()?;
        }
    }

    fn start(&mut self) -> Result<(), Error> {
        let started = self.starter.start();
        let (process, line) =
            started.map_err(|error| failed("cannot start a worker process", error))?;
        let added = self.running.add(process, line);
        added.map_err(|error| failed("cannot start a thread for a worker process", error))
    }
}

/// The workers that run, by their process ids.
struct Running {
    workers: HashMap<u32, Worker>,
    ended: UnboundedReceiver<u32>,
    /// Sends the process id of each worker when it has ended: at most once for each.
    sender: UnboundedSender<u32>,
}

struct Worker {
    process: Child,
    /// The worker writes to it when it serves, and stops when it is closed.
    line: UnixStream,
    started: Instant,
    has_served: bool,
    /// Killed because it did not serve in time; its end is yet to be noticed.
    is_killed: bool,
}

impl Worker {
    /// Whether the worker has reported that it serves.
    fn has_served(&mut self) -> bool {
        self.has_served |=
            self.line.set_nonblocking(true).is_ok() && matches!(self.line.read(&mut [0]), Ok(1));
        self.has_served
    }
}

/// A worker that has ended.
struct Ended {
    pid: u32,
    has_served: bool,
    lived: Duration,
    /// `None` if the program ignores SIGCHLD.
    status: Option<ExitStatus>,
}

impl Default for Running {
    fn default() -> Self {
        let (sender, ended) = unbounded_channel();
        Self {
            workers: HashMap::new(),
            ended,
            sender,
        }
    }
}

impl Running {
    fn add(&mut self, process: Child, line: UnixStream) -> io::Result<()> {
        let pid = process.id();
        let sender = self.sender.clone();
        let worker = Worker {
            process,
            line,
            started: Instant::now(),
            has_served: false,
            is_killed: false,
        };
        self.workers.insert(pid, worker);
        let thread = std::thread::Builder::new().name("mcpline-worker".to_owned());
        thread.spawn(move || {
            // On errors, it has ended as well.
            let _ = wait_for_end(pid);
            let _ = sender.send(pid);
        })?;
        Ok(())
    }

    /// Waits until a worker ends.
    async fn next_end(&mut self) -> Option<Ended> {
        let pid = self.ended.recv().await?;
        let mut worker = self.workers.remove(&pid)?;
        Some(Ended {
            pid,
            has_served: worker.has_served(),
            lived: worker.started.elapsed(),
            status: worker.process.wait().ok(),
        })
    }

    /// Returns when the next worker must have reported that it serves.
    fn next_check(&self, start_timeout: Duration) -> Instant {
        let starting = self
            .workers
            .values()
            .filter(|worker| !worker.has_served && !worker.is_killed);
        let ends = starting.filter_map(|worker| worker.started.checked_add(start_timeout));
        // If none starts, the next check finds nothing.
        ends.min().unwrap_or_else(|| Instant::now() + START_TIMEOUT)
    }

    /// Kills workers that have not reported in time that they serve.
    fn kill_those_that_hang(&mut self, start_timeout: Duration) {
        for (pid, worker) in &mut self.workers {
            if worker.started.elapsed() < start_timeout || worker.is_killed || worker.has_served() {
                continue;
            }
            tracing::warn!(
                pid,
                seconds = start_timeout.as_secs(),
                "a worker process does not serve in time, and is killed"
            );
            // It may have ended.
            let _ = worker.process.kill();
            worker.is_killed = true;
        }
    }

    /// Stops all workers: they have `grace` for their calls. Those that do not end after that are terminated, then killed.
    async fn stop(mut self, grace: Duration) {
        for worker in self.workers.values() {
            // It may have ended.
            let _ = worker.line.shutdown(Shutdown::Write);
        }
        if self.ends_within(grace.saturating_add(END_TIME)).await {
            return;
        }
        for worker in self.workers.values() {
            let _ = terminate(&worker.process);
        }
        if self.ends_within(END_TIME).await {
            return;
        }
        for (pid, mut worker) in self.workers.drain() {
            tracing::warn!(pid, "a worker process did not end, and is killed");
            let _ = worker.process.kill();
            let _ = worker.process.wait();
        }
    }

    /// Waits for the end of all workers. Returns whether they have ended in time.
    async fn ends_within(&mut self, time: Duration) -> bool {
        // Without a deadline if it is beyond the end of time.
        let deadline = Instant::now().checked_add(time);
        while !self.workers.is_empty() {
            let next = self.next_end();
            match deadline {
                Some(deadline) => {
                    if timeout_at(deadline, next).await.is_err() {
                        return false;
                    }
                }
                None => {
                    next.await;
                }
            }
        }
        true
    }
}

fn failed(message: impl Into<String>, error: io::Error) -> Error {
    Error::transport("serve", message.into(), error)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::num::NonZeroUsize;

    use super::*;

    /// Workers that run this script of a shell, of which each has this long to serve.
    fn workers(script: &str, start_timeout: Duration, directory: Option<&str>) -> Workers {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        Workers {
            starter: Starter {
                socket: Arc::new(listener.into()),
                secret: String::new(),
                name: "127.0.0.1:0".to_owned(),
                program: WorkerProgram {
                    program: "/bin/sh".into(),
                    arguments: vec!["-c".to_owned(), script.to_owned()],
                    directory: directory.map(Into::into),
                    count: NonZeroUsize::MIN,
                },
            },
            running: Running::default(),
            start_timeout,
            failed_starts: 0,
            short_lives: 0,
        }
    }

    #[tokio::test]
    async fn workers_that_hang_before_they_serve_are_killed() {
        let mut workers = workers("exec sleep 1000", Duration::ZERO, None);
        let failed = workers.run(&Stop::new()).await.expect_err("none serves");
        assert!(failed.to_string().contains("did not start"), "{failed}");
    }

    #[tokio::test]
    async fn workers_start_in_the_directory_of_the_program() {
        for (directory, expected) in [(Some("/usr"), "/usr"), (Some("/no/such"), ""), (None, "")] {
            let test = format!("test -z '{expected}' || test \"$PWD\" = '{expected}'");
            let started = workers(&test, START_TIMEOUT, directory).starter.start();
            let (mut process, _line) = started.expect("starts");
            assert!(process.wait().expect("ends").success(), "{directory:?}");
        }
    }
}
