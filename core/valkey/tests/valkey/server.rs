//! Servers of the tests, and what waits for them.

use std::future::Future;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpline::sharing::{Bus, Sharing, Subscription};
use mcpline_valkey::{Valkey, ValkeyOptions};
use rustix::process::{Pid, Signal, kill_process};

/// How long to wait for what has to happen. A test that passes needs a fraction.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A session's lifetime that no test outlives.
pub(crate) const LIFETIME: Duration = Duration::from_secs(3_600);

/// A server process on loopback, which keeps nothing on disk.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) folder: PathBuf,
    arguments: Vec<String>,
    process: Option<Child>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with these arguments, in which `%` is its folder.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let mut server = Self::prepare(arguments);
        server.run();
        server
    }

    /// Prepares a server that does not run yet.
    pub(crate) fn prepare(arguments: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("mcpline-valkey-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let place = folder.display().to_string();
        Self {
            port: free_port(),
            arguments: arguments
                .iter()
                .map(|argument| argument.replace('%', &place))
                .collect(),
            folder,
            process: None,
        }
    }

    /// Starts the process, and waits until it accepts connections.
    pub(crate) fn run(&mut self) {
        let program =
            std::env::var("MCPLINE_VALKEY_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
        let mut command = Command::new(program);
        if let Some(file) = self
            .arguments
            .iter()
            .find(|argument| argument.ends_with(".conf"))
        {
            command.arg(file);
        }
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"]);
        command
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(&self.folder);
        command.args(
            self.arguments
                .iter()
                .filter(|argument| !argument.ends_with(".conf")),
        );
        let log = std::fs::File::create(self.folder.join("log")).expect("a log");
        command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(Stdio::null());
        self.process = Some(
            command
                .spawn()
                .expect("the server of Debian's redis-server, or of Valkey"),
        );
        let began = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(
                began.elapsed() < WAIT_TIMEOUT,
                "the server does not accept connections: {log}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills the process. All data is lost.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("kills");
            process.wait().expect("ends");
        }
    }

    /// Stops the process without closing its connections.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("a process");
        kill_process(Pid::from_child(process), signal).expect("a signal");
    }

    pub(crate) fn url(&self) -> String {
        format!("valkey://127.0.0.1:{}", self.port)
    }

    /// Connects a process of the service.
    pub(crate) fn connect(&self) -> Sharing {
        connect(&self.url())
    }

    /// Sends a command as an administrator.
    pub(crate) async fn command<T: redis::FromRedisValue>(&self, line: &str) -> T {
        let client = redis::Client::open(self.url()).expect("a client");
        let mut connection = client
            .get_multiplexed_async_connection()
            .await
            .expect("connects");
        let mut words = line.split(' ');
        let mut command = redis::cmd(words.next().expect("a command"));
        for word in words {
            command.arg(if word == "''" { "" } else { word });
        }
        command.query_async(&mut connection).await.expect(line)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// How far the port of a cluster's bus is above that of its node.
const BUS_OFFSET: u16 = 10_000;

/// The first of 10,000 ports for servers. Those of clusters' buses are then below the ports that systems give connections, of
/// which one may be in use at any time.
const FIRST_PORT: u32 = 12_000;

/// Returns a free port, whose bus has a free port too.
fn free_port() -> u16 {
    static OFFSET: AtomicU32 = AtomicU32::new(0);
    let first = (std::process::id() % 500) * 20;
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    loop {
        let next = OFFSET.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(FIRST_PORT + (first + next) % 10_000).expect("a port");
        if is_free(port) && is_free(port + BUS_OFFSET) {
            return port;
        }
    }
}

/// How long processes of the service wait for a server that fails.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// Options with which a server that works is waited for, however busy the machine is.
pub(crate) fn options() -> ValkeyOptions {
    let mut options = ValkeyOptions::default();
    options.timeout = WAIT_TIMEOUT / 2;
    options
}

/// Connects a process of the service.
pub(crate) fn connect(url: &str) -> Sharing {
    Valkey::connect(url, options()).expect("a valid URL")
}

/// Connects a process of the service to a server that will fail.
pub(crate) fn connect_briefly(url: &str) -> Sharing {
    let mut options = options();
    options.timeout = TIMEOUT;
    Valkey::connect(url, options).expect("a valid URL")
}

/// Waits until this returns something.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut found: impl FnMut() -> F,
) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(began.elapsed() < WAIT_TIMEOUT, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a session is stored with this value.
pub(crate) async fn until_loaded(sharing: &Sharing, session: &str, value: Option<&str>) {
    until(&format!("{session} is {value:?}"), || async {
        let loaded = sharing.sessions.load(session).await.ok()?;
        (loaded.as_deref() == value.map(str::as_bytes)).then_some(())
    })
    .await;
}

/// Reads a stream until it has events up to this number.
pub(crate) async fn until_read(sharing: &Sharing, stream: &str, after: u64, events: &[&str]) {
    until(
        &format!("{stream} has {events:?} after {after}"),
        || async {
            let read = sharing.events.read(stream, after).await.ok()??;
            (read.events == events).then_some(())
        },
    )
    .await;
}

/// A subscriber that keeps what it receives.
pub(crate) struct Subscriber {
    received: Arc<Mutex<Vec<String>>>,
    _subscription: Subscription,
}

impl Subscriber {
    /// Subscribes, and waits until messages of another process arrive.
    pub(crate) async fn join(bus: &Arc<dyn Bus>, other: &Arc<dyn Bus>) -> Self {
        let subscriber = Self::local(bus);
        until("messages arrive", || async {
            other.publish(Bytes::from_static(b"ready?"));
            (!subscriber.received().is_empty()).then_some(())
        })
        .await;
        // All of them, so that none comes later.
        other.publish(Bytes::from_static(b"ready"));
        subscriber.until("ready").await;
        subscriber.received.lock().expect("no panic").clear();
        subscriber
    }

    /// Subscribes.
    pub(crate) fn local(bus: &Arc<dyn Bus>) -> Self {
        let received = Arc::new(Mutex::new(Vec::new()));
        let kept = received.clone();
        let subscription = bus.subscribe(Arc::new(move |message: Bytes| {
            let message = String::from_utf8_lossy(&message).into_owned();
            kept.lock().expect("no panic").push(message);
        }));
        Self {
            received,
            _subscription: subscription,
        }
    }

    pub(crate) fn received(&self) -> Vec<String> {
        self.received.lock().expect("no panic").clone()
    }

    /// Waits for a message; returns all until then.
    pub(crate) async fn until(&self, last: &str) -> Vec<String> {
        until(&format!("receives {last}"), || async {
            let received = self.received();
            received
                .iter()
                .any(|message| message == last)
                .then_some(received)
        })
        .await
    }
}

/// Writes a file into a folder.
pub(crate) fn write(folder: &Path, name: &str, content: &str) {
    std::fs::write(folder.join(name), content).expect("writes");
}
