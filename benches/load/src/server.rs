//! The server process: started on its core, measured by its own CPU clock, ended on drop.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::options::Options;

/// How long a server may take until it accepts connections.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A running server.
pub struct Server {
    /// The process, with its pipes if it serves stdio.
    pub child: Child,
    /// Its address, unless it serves stdio.
    pub address: Option<SocketAddr>,
    pid: Pid,
}

impl Server {
    /// Starts the server for stdio.
    pub fn spawn_stdio(options: &Options) -> Result<Self, Box<dyn Error>> {
        Self::spawn(options, &[], Stdio::piped(), None)
    }

    /// Starts the server for HTTP and waits until it accepts a connection.
    pub async fn spawn_http(options: &Options) -> Result<Self, Box<dyn Error>> {
        let port = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
            .local_addr()?
            .port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let arguments = ["--http".to_owned(), port.to_string()];
        let mut server = Self::spawn(options, &arguments, Stdio::null(), Some(address))?;
        let started = Instant::now();
        while TcpStream::connect(address).await.is_err() {
            if let Some(status) = server.child.try_wait()? {
                return Err(format!("the server ended before it accepted: {status}").into());
            }
            if started.elapsed() > START_LIMIT {
                return Err("the server never accepted a connection".into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(server)
    }

    fn spawn(
        options: &Options,
        arguments: &[String],
        pipes: Stdio,
        address: Option<SocketAddr>,
    ) -> Result<Self, Box<dyn Error>> {
        // Thousands of sessions with a stream need as many descriptors, here and in the server.
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
        let stdio = address.is_none();
        // The child and all its threads inherit the affinity; then the generator moves to its own core.
        if let Some((server_core, _)) = options.cores
            && !options.server_unpinned
        {
            pin(server_core)?;
        }
        let child = Command::new(&options.server[0])
            .args(&options.server[1..])
            .args(arguments)
            .stdin(pipes)
            .stdout(if stdio { Stdio::piped() } else { Stdio::null() })
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{} can't be started: {error}", options.server[0]))?;
        if let Some((_, generator_core)) = options.cores {
            pin(generator_core)?;
        }
        let pid = Pid::from_raw(child.id().ok_or("the server ended at once")?.try_into()?);
        Ok(Self {
            child,
            address,
            pid,
        })
    }

    /// The CPU time of all threads of the server, including ended ones, with nanosecond resolution.
    pub fn cpu(&self) -> Result<Duration, Box<dyn Error>> {
        Ok(clock_getcpuclockid(self.pid)?.now()?.into())
    }

    /// Resident memory in KiB.
    pub fn resident(&self) -> Result<u64, Box<dyn Error>> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let figure = line.and_then(|line| line.split_whitespace().next());
        Ok(figure.ok_or("no VmRSS in the process status")?.parse()?)
    }

    /// Terminates the server, kills it if it doesn't end, and waits for it.
    pub async fn end(mut self) -> Result<(), Box<dyn Error>> {
        drop(self.child.stdin.take());
        kill(self.pid, Signal::SIGTERM)?;
        if tokio::time::timeout(Duration::from_secs(10), self.child.wait())
            .await
            .is_err()
        {
            self.child.kill().await?;
        }
        Ok(())
    }
}

fn pin(core: usize) -> Result<(), Box<dyn Error>> {
    let mut set = CpuSet::new();
    set.set(core)?;
    sched_setaffinity(Pid::from_raw(0), &set)?;
    Ok(())
}
