//! The supervisor: starts workers, replaces those that end, and stops them together.

use std::collections::HashMap;
use std::future::pending;
use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
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

/// Maximum number of workers in a row that end before they serve, while no worker serves. Then the program has an error that
/// another start does not correct.
const MAX_FAILED_STARTS: u32 = 5;

/// A worker that lives shorter is replaced after a pause.
const SHORT_LIFE: Duration = Duration::from_secs(10);

/// The pause before the first worker with a [`SHORT_LIFE`] is replaced. It is doubled for each further one in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// How often the pause is doubled at most: a request that crashes its handler must not end the service for long.
const MAX_DOUBLINGS: u32 = 4;

/// The pause before another attempt to start a process, if the system could not start one while other workers serve.
const SPAWN_PAUSE: Duration = Duration::from_secs(1);

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
    /// How long a worker may take from its start until it serves.
    start_timeout: Duration,
}

impl WorkerProcesses {
    pub(super) fn new(
        http: Http,
        name: String,
        program: WorkerProgram,
        start_timeout: Duration,
    ) -> Result<Self, Error> {
        let socket = http.socket().try_clone_to_owned();
        let socket = socket.map_err(|error| failed("cannot open the socket for workers", error))?;
        Ok(Self {
            http,
            socket: Arc::new(socket),
            name,
            program,
            start_timeout,
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
        let grace = settings.shutdown_timeout.saturating_add(LAST_ANSWERS);
        let mut workers = Workers {
            starter: WorkerStarter {
                socket: self.socket,
                secret: STANDARD.encode(random::<32>()),
                name: self.name,
                program: self.program,
            },
            running: RunningWorkers::default(),
            start_timeout: self.start_timeout,
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
struct WorkerStarter {
    socket: Arc<OwnedFd>,
    /// Seals `requestState` in all workers, so that calls continue at any of them.
    secret: String,
    name: String,
    program: WorkerProgram,
}

impl WorkerStarter {
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
    starter: WorkerStarter,
    running: RunningWorkers,
    /// How long a worker may take from its start until it serves.
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
        self.keep_running(stop).await
    }

    /// Replaces workers that end.
    async fn keep_running(&mut self, stop: &Stop) -> Result<(), Error> {
        loop {
            let next_check = self.running.next_check(self.start_timeout);
            let ended = tokio::select! {
                () = stop.stopped() => return Ok(()),
                ended = self.running.next_end() => ended,
                () = sleep_until_or_forever(next_check) => {
                    self.running.kill_those_that_hang(self.start_timeout);
                    None
                }
            };
            let Some(ended) = ended else {
                continue;
            };
            self.check_restart(&ended)?;
            tracing::warn!(
                pid = ended.pid,
                status = %ended.status,
                "a worker process has ended; another one takes its place"
            );
            if self.short_lives > 0 {
                let doublings = (self.short_lives - 1).min(MAX_DOUBLINGS);
                tokio::select! {
                    () = stop.stopped() => return Ok(()),
                    () = sleep(FIRST_PAUSE * 2_u32.pow(doublings)) => {}
                }
            }
            while let Err(error) = self.start() {
                if !self.running.any_serves() {
                    return Err(error);
                }
                tracing::warn!(%error, "a worker process is not replaced yet: trying again");
                tokio::select! {
                    () = stop.stopped() => return Ok(()),
                    () = sleep(SPAWN_PAUSE) => {}
                }
            }
        }
    }

    /// Counts failed starts and short lives. Fails if another start is of no use.
    fn check_restart(&mut self, ended: &EndedWorker) -> Result<(), Error> {
        if ended.has_served || self.running.any_serves() {
            self.failed_starts = 0;
        } else if !ended.was_killed {
            // One that was killed waited for something, such as a database, which may be available to the next one.
            self.failed_starts += 1;
        }
        self.short_lives = if ended.lived < SHORT_LIFE {
            self.short_lives + 1
        } else {
            0
        };
        if self.failed_starts < MAX_FAILED_STARTS {
            return Ok(());
        }
        let message = format!(
            "{MAX_FAILED_STARTS} worker processes in a row did not start (see their stderr)"
        );
        Err(failed(message, io::Error::other(ended.status.clone())))
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
struct RunningWorkers {
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
struct EndedWorker {
    pid: u32,
    has_served: bool,
    /// Whether it was killed because it did not serve in time.
    was_killed: bool,
    lived: Duration,
    status: String,
}

impl Default for RunningWorkers {
    fn default() -> Self {
        let (sender, ended) = unbounded_channel();
        Self {
            workers: HashMap::new(),
            ended,
            sender,
        }
    }
}

impl RunningWorkers {
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
    async fn next_end(&mut self) -> Option<EndedWorker> {
        let pid = self.ended.recv().await?;
        let mut worker = self.workers.remove(&pid)?;
        Some(EndedWorker {
            pid,
            has_served: worker.has_served(),
            was_killed: worker.is_killed,
            lived: worker.started.elapsed(),
            // None if the program ignores SIGCHLD.
            status: worker
                .process
                .wait()
                .map_or_else(|_| "unknown status".to_owned(), |status| status.to_string()),
        })
    }

    /// Whether a worker serves.
    fn any_serves(&mut self) -> bool {
        self.workers.values_mut().any(Worker::has_served)
    }

    /// Returns when the next worker must have reported that it serves; `None` if none starts.
    fn next_check(&self, start_timeout: Duration) -> Option<Instant> {
        let starting = self
            .workers
            .values()
            .filter(|worker| !worker.has_served && !worker.is_killed);
        let ends = starting.filter_map(|worker| worker.started.checked_add(start_timeout));
        ends.min()
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
                "a worker process has not completed its startup within `worker_start_timeout`, and is killed"
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
        if self.wait_for_all(grace.saturating_add(END_TIME)).await {
            return;
        }
        for worker in self.workers.values() {
            let _ = terminate(&worker.process);
        }
        if self.wait_for_all(END_TIME).await {
            return;
        }
        for (pid, mut worker) in self.workers.drain() {
            tracing::warn!(pid, "a worker process did not end, and is killed");
            let _ = worker.process.kill();
            let _ = worker.process.wait();
        }
    }

    /// Waits for the end of all workers. Returns whether they have ended in time.
    async fn wait_for_all(&mut self, time: Duration) -> bool {
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

/// Waits until a time is reached; forever if there is none.
async fn sleep_until_or_forever(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

fn failed(message: impl Into<String>, error: io::Error) -> Error {
    Error::transport("serve", message.into(), error)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::num::NonZeroUsize;

    use tokio::time::timeout;

    use super::*;

    /// Workers that run this script of a shell, of which each has this long to serve.
    fn workers(script: &str, start_timeout: Duration, directory: Option<&str>) -> Workers {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        Workers {
            starter: WorkerStarter {
                socket: Arc::new(listener.into()),
                secret: String::new(),
                name: "127.0.0.1:0".to_owned(),
                program: WorkerProgram {
                    program: "/bin/sh".into(),
                    arguments: vec!["-c".to_owned(), script.to_owned()],
                    directory: directory.map(Into::into),
                    count: NonZeroUsize::MIN,
                    start_timeout: None,
                },
            },
            running: RunningWorkers::default(),
            start_timeout,
            failed_starts: 0,
            short_lives: 0,
        }
    }

    /// Adds a worker that serves, or hangs if it does not; returns its end of the line.
    fn add_worker(running: &mut RunningWorkers, serves: bool) -> UnixStream {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec sleep 1000"]);
        let process = command.spawn().expect("starts");
        let (line, mut other) = UnixStream::pair().expect("a line");
        if serves {
            other.write_all(b"1").expect("a byte");
        }
        running.add(process, line).expect("a thread");
        other
    }

    async fn kill_all(mut running: RunningWorkers) {
        for worker in running.workers.values_mut() {
            worker.process.kill().expect("killed");
        }
        assert!(running.wait_for_all(Duration::MAX).await);
    }

    /// An end of a worker that has not served.
    fn failed_start() -> EndedWorker {
        EndedWorker {
            pid: 1,
            has_served: false,
            was_killed: false,
            lived: Duration::ZERO,
            status: "exit status: 3".to_owned(),
        }
    }

    #[tokio::test]
    async fn workers_that_hang_before_they_serve_are_killed_and_replaced() {
        let name = format!("mcpline-workers-{}", std::process::id());
        let started = std::env::temp_dir().join(name);
        let script = format!("echo $$ >> '{}'; exec sleep 1000", started.display());
        let mut workers = workers(&script, Duration::from_millis(100), None);
        let stop = Stop::new();
        let enough = async {
            let has_more = |text: String| text.lines().count() > MAX_FAILED_STARTS as usize;
            while !std::fs::read_to_string(&started).is_ok_and(has_more) {
                sleep(Duration::from_millis(20)).await;
            }
            stop.stop();
        };
        let both = async { tokio::join!(workers.run(&stop), enough) };
        let (outcome, ()) = timeout(Duration::from_secs(120), both)
            .await
            .expect("replaced");
        outcome.expect("goes on: what they wait for may be available later");
        kill_all(workers.running).await;
        std::fs::remove_file(&started).expect("removed");
    }

    #[tokio::test]
    async fn only_workers_that_do_not_serve_are_killed_after_the_start_timeout() {
        let mut running = RunningWorkers::default();
        let _serving = add_worker(&mut running, true);
        for _ in 0..3 {
            let _hanging = add_worker(&mut running, false);
            running.kill_those_that_hang(Duration::ZERO);
            let ended = running.next_end().await.expect("one ends");
            assert!(ended.was_killed && !ended.has_served);
            assert_eq!(running.next_check(Duration::ZERO), None);
        }
        let worker = running.workers.values_mut().next().expect("one serves");
        assert!(worker.has_served && !worker.is_killed);
        assert_eq!(worker.process.try_wait().expect("a child"), None);
        kill_all(running).await;
    }

    #[tokio::test]
    async fn failed_starts_do_not_end_a_service_that_serves() {
        let mut workers = workers("", Duration::MAX, None);
        let _serving = add_worker(&mut workers.running, true);
        for _ in 0..2 * MAX_FAILED_STARTS {
            workers.check_restart(&failed_start()).expect("goes on");
        }
        kill_all(workers.running).await;
    }

    #[tokio::test]
    async fn a_program_that_cannot_be_started_does_not_end_a_service_that_serves() {
        let mut workers = workers("", Duration::MAX, None);
        workers.starter.program.program = "/no/such/program".into();
        let _serving = add_worker(&mut workers.running, true);
        let hanging = add_worker(&mut workers.running, false);
        for worker in workers.running.workers.values_mut() {
            if !worker.has_served() {
                worker.process.kill().expect("killed");
            }
        }
        let stop = Stop::new();
        // It does not end by itself.
        let running = timeout(2 * SPAWN_PAUSE, workers.keep_running(&stop)).await;
        running.expect_err("goes on");
        drop(hanging);
        kill_all(workers.running).await;
    }

    #[tokio::test]
    async fn failed_starts_are_counted_from_the_latest_worker_that_served() {
        let mut workers = workers("", Duration::MAX, None);
        for _ in 1..MAX_FAILED_STARTS {
            workers.check_restart(&failed_start()).expect("goes on");
        }
        let served = EndedWorker {
            has_served: true,
            ..failed_start()
        };
        workers.check_restart(&served).expect("goes on");
        for _ in 1..MAX_FAILED_STARTS {
            workers.check_restart(&failed_start()).expect("goes on");
        }
        let error = workers
            .check_restart(&failed_start())
            .expect_err("none serves");
        assert!(error.to_string().contains("did not start"), "{error}");
    }

    #[tokio::test]
    async fn workers_start_in_the_directory_of_the_program() {
        let current = std::env::current_dir().expect("a directory");
        let current = current.to_str().expect("Unicode");
        for (directory, expected) in [
            (Some("/usr"), "/usr"),
            (Some("/no/such"), current),
            (None, current),
        ] {
            let test = format!("test \"$(pwd -P)\" = '{expected}'");
            let started = workers(&test, Duration::MAX, directory).starter.start();
            let (mut process, _line) = started.expect("starts");
            assert!(process.wait().expect("ends").success(), "{directory:?}");
        }
    }
}
