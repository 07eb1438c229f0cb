//! Servers on a Unix socket: the file and its permissions, connections and their limits, shutdown.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::Nothing;
use crate::support::connection::TEST_TIMEOUT;
use mcpline::client::{Address, Client, ClientError};
use mcpline::protocol::limits::MAX_LINE;
use mcpline::protocol::vocabulary::LoggingLevel;
use mcpline::transport::{Stop, Unix, UnixOptions, unix};
use mcpline::{Context, Error, ErrorKind, Revision, Server, Settings};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

/// A folder of one test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("mcpline-unix-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a new folder");
        Self(path)
    }

    fn path(&self) -> PathBuf {
        self.0.join("server.sock")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A test that fails may leave it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server that is being served.
struct Running {
    folder: Folder,
    server: Server,
    stop: Stop,
    served: JoinHandle<Result<(), Error>>,
}

impl Running {
    fn path(&self) -> PathBuf {
        self.folder.path()
    }

    async fn end(self) {
        self.stop.stop();
        let served = tokio::time::timeout(TEST_TIMEOUT, self.served).await;
        let served = served.expect("it ends").expect("no panic");
        served.expect("it ends well");
        assert!(!self.folder.path().exists(), "the file is removed");
    }
}

async fn start(server: Server, options: UnixOptions) -> Running {
    let folder = Folder::new();
    let unix = unix(folder.path(), options).await.expect("a socket");
    let stop = Stop::new();
    let (serving, signal) = (server.clone(), stop.clone());
    let served = tokio::spawn(async move { serving.serve_until(unix, signal).await });
    Running {
        folder,
        server,
        stop,
        served,
    }
}

async fn listen(path: &Path) -> Result<Unix, Error> {
    unix(path, UnixOptions::default()).await
}

fn echo() -> Server {
    with_echo(Server::new("sockets", "1"))
}

fn with_echo(server: Server) -> Server {
    server.tool("hello", "Greets", |_: Nothing, _: Context| async {
        "hello"
    })
}

fn with_settings(change: impl FnOnce(&mut Settings)) -> Server {
    let mut settings = Settings::default();
    change(&mut settings);
    let server = Server::builder("sockets", "1").settings(settings);
    server.build().expect("a server")
}

/// A client that sends raw lines.
struct RawClient {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl RawClient {
    async fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).await.expect("connected");
        let (reader, writer) = stream.into_split();
        Self {
            lines: BufReader::new(reader).lines(),
            writer,
        }
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.writer
            .write_all(line.as_bytes())
            .await
            .expect("written");
    }

    /// Returns the next message; `None` if the connection has ended.
    async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(TEST_TIMEOUT, self.lines.next_line());
        // A connection that is closed while it has unread messages is reset.
        let line = line.await.expect("in time").ok().flatten()?;
        Some(serde_json::from_str(&line).expect("a message"))
    }

    /// Whether the server answers a ping on this connection.
    async fn is_served(&mut self) -> bool {
        let ping = b"{\"jsonrpc\":\"2.0\",\"id\":\"ping\",\"method\":\"ping\"}\n";
        if self.writer.write_all(ping).await.is_err() {
            return false;
        }
        self.next().await.is_some()
    }
}

fn modern_call(id: i64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": tool,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}}}})
}

#[runtimes::test]
async fn serves_clients_of_both_eras_at_once() {
    let running = start(echo(), UnixOptions::default()).await;
    let mut clients = Vec::new();
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for _ in 0..4 {
            let client = Client::builder("test", "1")
                .configure(move |settings| settings.revisions = vec![revision])
                .connect(Address::Socket(running.path()))
                .await
                .expect("connected");
            assert_eq!(client.revision(), revision);
            clients.push(client);
        }
    }
    assert_eq!(running.server.stats().connections, 8);
    for client in &clients {
        let result = client.call_tool("hello", json!({})).await.expect("called");
        let content = serde_json::to_value(&result.content).expect("JSON");
        assert_eq!(content[0]["text"], "hello");
    }
    for client in clients {
        client.close().await;
    }
    running.end().await;
}

#[runtimes::test]
async fn the_file_has_its_mode_before_it_is_served_whatever_the_umask_is() {
    let folder = Folder::new();
    for mode in [0o600, 0o660, 0o666] {
        let mut options = UnixOptions::default();
        assert_eq!(options.mode, 0o600);
        options.mode = mode;
        let unix = unix(folder.path(), options).await.expect("a socket");
        let metadata = fs::symlink_metadata(unix.path()).expect("it is there");
        assert!(metadata.file_type().is_socket());
        assert_eq!(metadata.permissions().mode() & 0o7777, mode);
        assert_eq!(unix.url(), format!("unix:{}", folder.path().display()));
        drop(unix);
        assert!(
            !folder.path().exists(),
            "removed without having been served"
        );
    }
}

#[runtimes::test]
async fn replaces_a_stale_socket() {
    let folder = Folder::new();
    let stale = std::os::unix::net::UnixListener::bind(folder.path()).expect("a socket");
    drop(stale);
    assert!(folder.path().exists());
    let _unix = listen(&folder.path()).await.expect("replaced");
    UnixStream::connect(folder.path()).await.expect("connected");
}

#[runtimes::test]
async fn refuses_a_socket_that_another_server_uses() {
    let running = start(echo(), UnixOptions::default()).await;
    let inode = fs::metadata(running.path()).expect("it is there").ino();
    let error = listen(&running.path()).await.expect_err("in use");
    assert_eq!(error.kind(), ErrorKind::Transport);
    let expected = format!("{} is in use by another server", running.path().display());
    assert_eq!(error.to_string(), expected);
    let left = fs::metadata(running.path()).expect("it is still there");
    assert_eq!(left.ino(), inode);
    let mut client = RawClient::connect(&running.path()).await;
    assert!(client.is_served().await);
    running.end().await;
}

#[runtimes::test]
async fn refuses_and_keeps_a_file_that_is_not_a_socket() {
    let folder = Folder::new();
    let target = folder.0.join("target");
    fs::write(&target, "kept").expect("written");
    for link in [false, true] {
        if link {
            std::os::unix::fs::symlink(&target, folder.path()).expect("linked");
        } else {
            fs::write(folder.path(), "kept").expect("written");
        }
        let error = listen(&folder.path()).await.expect_err("refused");
        let shown = format!("{error:#}");
        assert!(shown.starts_with("cannot listen on /"), "{shown}");
        assert!(shown.ends_with("not a socket exists there"), "{shown}");
        assert_eq!(fs::read_to_string(folder.path()).expect("kept"), "kept");
        fs::remove_file(folder.path()).expect("removed");
    }
}

#[runtimes::test]
async fn refuses_paths_and_modes_that_a_socket_cannot_have() {
    let folder = Folder::new();
    let long = folder.0.join("n".repeat(120));
    for (path, expected) in [
        (long.as_path(), "the path of a Unix socket may have"),
        (Path::new(""), "is empty"),
        (Path::new("\0abstract"), "abstract sockets"),
        (Path::new("/tmp/a\0b"), "zero byte"),
    ] {
        let error = listen(path).await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().starts_with("`path`: "), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let mut options = UnixOptions::default();
    // Decimal by mistake.
    for (mode, expected) in [
        (660, "`mode`: 660 is not a file mode"),
        (
            0o400,
            "`mode`: 0o400 (decimal 256) keeps the server's own user",
        ),
    ] {
        options.mode = mode;
        let error = unix(folder.path(), options.clone())
            .await
            .expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().starts_with(expected), "{error}");
    }
    options.mode = 0o600;
    options.max_connections = 0;
    let error = unix(folder.path(), options).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(
        error.to_string().starts_with("`max_connections`: 0"),
        "{error}"
    );
    let error = listen(&folder.0.join("missing/server.sock")).await;
    assert_eq!(error.expect_err("no folder").kind(), ErrorKind::Transport);
    assert_eq!(fs::read_dir(&folder.0).expect("read").count(), 0);
}

#[runtimes::test]
async fn keeps_a_file_that_has_taken_the_place_of_the_socket() {
    let running = start(echo(), UnixOptions::default()).await;
    let path = running.path();
    fs::remove_file(&path).expect("removed");
    fs::write(&path, "another").expect("written");
    running.stop.stop();
    running.served.await.expect("no panic").expect("ends well");
    assert_eq!(fs::read_to_string(&path).expect("kept"), "another");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn only_one_of_several_servers_replaces_a_stale_socket() {
    let folder = Folder::new();
    for _ in 0..1_000 {
        drop(std::os::unix::net::UnixListener::bind(folder.path()).expect("a socket"));
        let barrier = Arc::new(tokio::sync::Barrier::new(4));
        let starting: Vec<_> = (0..4)
            .map(|_| {
                let (path, barrier) = (folder.path(), barrier.clone());
                tokio::spawn(async move {
                    barrier.wait().await;
                    listen(&path).await
                })
            })
            .collect();
        let mut listening = Vec::new();
        for started in starting {
            match started.await.expect("no panic") {
                Ok(unix) => listening.push(unix),
                Err(error) => assert!(error.to_string().contains("in use by"), "{error}"),
            }
        }
        assert_eq!(listening.len(), 1);
        UnixStream::connect(folder.path())
            .await
            .expect("it listens");
    }
}

#[runtimes::test]
async fn a_given_listener_keeps_its_file() {
    let folder = Folder::new();
    let listener = tokio::net::UnixListener::bind(folder.path()).expect("a socket");
    let unix = Unix::from_listener(listener, UnixOptions::default()).expect("an address");
    assert_eq!(unix.path(), folder.path());
    let stop = Stop::new();
    let (server, signal) = (echo(), stop.clone());
    let served = tokio::spawn(async move { server.serve_until(unix, signal).await });
    let mut client = RawClient::connect(&folder.path()).await;
    assert!(client.is_served().await);
    stop.stop();
    served.await.expect("no panic").expect("ends well");
    assert!(folder.path().exists());
}

/// A server with a tool that reports that it runs, and then waits for `go_on`.
fn waiting(grace: Duration, running: &Arc<Notify>, go_on: &Arc<Notify>) -> Server {
    let server = with_settings(|settings| settings.shutdown_timeout = grace);
    let (running, go_on) = (running.clone(), go_on.clone());
    server.tool("waits", "Waits", move |_: Nothing, _: Context| {
        let (running, go_on) = (running.clone(), go_on.clone());
        async move {
            running.notify_one();
            go_on.notified().await;
            "finished"
        }
    })
}

#[runtimes::test]
async fn answers_calls_that_outlive_the_grace_period() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let server = waiting(Duration::from_millis(50), &begun, &go_on);
    let running = start(server, UnixOptions::default()).await;
    let mut clients = Vec::new();
    for id in 0..3 {
        let mut client = RawClient::connect(&running.path()).await;
        client.send(&modern_call(id, "waits")).await;
        begun.notified().await;
        clients.push((id, client));
    }
    running.end().await;
    for (id, mut client) in clients {
        let expected = json!({"jsonrpc": "2.0", "id": id, "error": {
            "code": -31002, "message": "the server is shutting down", "data": {"retryable": true}}});
        assert_eq!(client.next().await, Some(expected));
        assert_eq!(client.next().await, None);
    }
}

#[runtimes::test]
async fn finishes_calls_within_the_grace_period() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let server = waiting(Duration::from_secs(600), &begun, &go_on);
    let running = start(server, UnixOptions::default()).await;
    let mut client = RawClient::connect(&running.path()).await;
    client.send(&modern_call(1, "waits")).await;
    begun.notified().await;
    running.stop.stop();
    // The file is removed before calls have ended, so that a successor can start.
    while running.path().exists() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let _successor = listen(&running.path()).await.expect("a socket");
    go_on.notify_one();
    let answer = client.next().await.expect("an answer");
    assert_eq!(answer["result"]["content"][0]["text"], "finished");
    assert_eq!(client.next().await, None);
    running.served.await.expect("no panic").expect("ends well");
}

#[runtimes::test]
async fn closes_connections_above_the_limit_until_another_ends() {
    let mut options = UnixOptions::default();
    options.max_connections = 2;
    let running = start(echo(), options).await;
    let mut first = RawClient::connect(&running.path()).await;
    let mut second = RawClient::connect(&running.path()).await;
    assert!(first.is_served().await && second.is_served().await);
    let mut third = RawClient::connect(&running.path()).await;
    assert!(!third.is_served().await);
    assert!(first.is_served().await && second.is_served().await);
    drop(first);
    let served = async {
        // The server detects the end of the first one on its own.
        while !RawClient::connect(&running.path()).await.is_served().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, served)
        .await
        .expect("served");
    running.end().await;
}

#[runtimes::test]
async fn a_client_that_misbehaves_does_not_affect_others() {
    let server = with_echo(with_settings(|settings| {
        settings.wire.max_line_bytes = 10_000;
        settings.shutdown_timeout = Duration::ZERO;
    }));
    let server = server.tool("large", "Returns much", |_: Nothing, _: Context| async {
        "x".repeat(100_000)
    });
    let running = start(server, UnixOptions::default()).await;
    // Half a line, which never ends.
    let mut half = RawClient::connect(&running.path()).await;
    half.writer.write_all(b"{\"jsonrpc\"").await.expect("sent");
    // A line that is too long.
    let mut long = RawClient::connect(&running.path()).await;
    let line = "x".repeat(100_000) + "\n";
    long.writer.write_all(line.as_bytes()).await.expect("sent");
    let error = long.next().await.expect("an answer");
    assert_eq!(error["error"]["code"], -32600, "{error}");
    assert!(long.is_served().await, "the connection stays open");
    // Calls without end whose results are never read.
    let mut deaf = RawClient::connect(&running.path()).await;
    let calling = tokio::spawn(async move {
        let call = format!("{}\n", modern_call(1, "large"));
        while deaf.writer.write_all(call.as_bytes()).await.is_ok() {}
        drop(deaf);
    });
    let mut client = RawClient::connect(&running.path()).await;
    assert!(client.is_served().await);
    // A half-closed direction is answered; the rest of a line counts as one.
    let mut closing = RawClient::connect(&running.path()).await;
    let call = modern_call(7, "hello").to_string();
    closing
        .writer
        .write_all(call.as_bytes())
        .await
        .expect("sent");
    closing.writer.shutdown().await.expect("closed");
    let answer = closing.next().await.expect("an answer");
    assert_eq!(answer["id"], 7);
    assert_eq!(closing.next().await, None);
    running.end().await;
    calling.await.expect("its connection ends too");
    let mut rest = Vec::new();
    half.lines
        .get_mut()
        .read_to_end(&mut rest)
        .await
        .expect("ended");
}

#[runtimes::test]
async fn records_name_the_transport() {
    let server = with_echo(with_settings(|settings| settings.debug = Some(true)));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let seeing = seen.clone();
    server.on_traffic(move |record| {
        let seen = (record.transport.name(), record.connection);
        seeing.lock().expect("no panic").push(seen);
    });
    let running = start(server, UnixOptions::default()).await;
    for _ in 0..2 {
        let mut client = RawClient::connect(&running.path()).await;
        assert!(client.is_served().await);
    }
    running.end().await;
    let seen = seen.lock().expect("no panic");
    assert!(seen.iter().all(|(name, _)| *name == "unix"), "{seen:?}");
    let connections: std::collections::BTreeSet<_> =
        seen.iter().map(|(_, number)| number).collect();
    assert_eq!(connections.len(), 2);
}

#[runtimes::test]
async fn a_client_refuses_a_line_limit_of_zero() {
    let client = Client::builder("client", "1").configure(|settings| settings.max_line_bytes = 0);
    // Refused before the socket is looked for.
    let connected = client.connect(Address::Socket("/nowhere".into())).await;
    let refused = connected.expect_err("no message has zero bytes");
    assert!(matches!(refused, ClientError::Usage(_)), "{refused:?}");
    assert!(refused.to_string().contains("max_line_bytes"), "{refused}");
}

#[runtimes::test]
async fn a_client_skips_messages_above_its_line_limit() {
    let log = |ctx: Context| async move {
        for length in [10_000, 10] {
            ctx.log(LoggingLevel::Info, None, "x".repeat(length));
        }
        "logged"
    };
    let server = Server::new("logs", "1").tool("log", "Logs", log);
    let running = start(server, UnixOptions::default()).await;
    for (max_line_bytes, first) in [(4096, 10), (MAX_LINE, 10_000)] {
        let (sender, mut lengths) = mpsc::unbounded_channel();
        let client = Client::builder("client", "1")
            .configure(|settings| {
                settings.max_line_bytes = max_line_bytes;
                settings.revisions = vec![Revision::V2025_11_25];
            })
            .on_log(move |message| {
                let text = message.data.as_str().unwrap_or_default().len();
                sender.send(text).expect("the test waits");
            })
            .connect(Address::Socket(running.path()))
            .await
            .expect("a client");
        let result = client.call_tool("log", json!({})).await.expect("a result");
        assert_eq!(result.text(), "logged");
        assert_eq!(lengths.recv().await, Some(first));
        client.close().await;
    }
    running.end().await;
}
