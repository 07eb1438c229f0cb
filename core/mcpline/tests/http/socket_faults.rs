//! Connections to an HTTP server that fail at any byte: handlers whose client is gone are cancelled, other clients are
//! served, and nothing of the connection is leaked.
//!
//! A client on this machine sends part of a request, or reads part of its response, and then cuts the connection. Each
//! scenario runs once for each place of the cut, until it ends before the cut is reached.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::Nothing;
use crate::support::connection::{Connection, TEST_TIMEOUT};
use crate::support::requests::initialize;
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, http};
use mcpline::{Context, Error, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// Bytes between one place of a cut and the next: not a divisor of any buffer size, so that cuts fall everywhere.
const STEP: usize = 23;

/// How a connection ends.
#[derive(Debug, Clone, Copy)]
enum Cut {
    /// The client closes its direction in an orderly way; what the server still sends is reset.
    Closed,
    /// With a reset.
    Reset,
}

/// Where a connection ends, in bytes.
#[derive(Debug, Clone, Copy)]
enum Place {
    Request(usize),
    Response(usize),
}

/// The exchange that is cut: a call of this tool.
#[derive(Debug, Clone, Copy)]
enum Exchange {
    /// A 2026-07-28 call.
    Modern(&'static str),
    /// A 2025-11-25 call in its own session.
    Handshake(&'static str),
}

/// A server on its own runtime, whose tasks are counted.
struct Served {
    /// Set until this is dropped.
    runtime: Option<Runtime>,
    address: SocketAddr,
    /// The number of running handlers: a cancelled one is dropped.
    running: Arc<AtomicUsize>,
    stop: Stop,
    served: tokio::task::JoinHandle<Result<(), Error>>,
}

struct Run(Arc<AtomicUsize>);

impl Drop for Run {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Served {
    async fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let running = Arc::new(AtomicUsize::new(0));
        let (counted, stop) = (running.clone(), Stop::new());
        let server = Server::new("faults", "1")
            .tool("plain", "Answers at once", |_: Nothing, _: Context| async {
                "done"
            })
            .tool(
                "waits",
                "Reports and waits",
                move |_: Nothing, ctx: Context| {
                    counted.fetch_add(1, Ordering::SeqCst);
                    let run = Run(counted.clone());
                    async move {
                        let _run = run;
                        ctx.progress(1.0, None, None);
                        std::future::pending::<String>().await
                    }
                },
            );
        let signal = stop.clone();
        let listening = runtime.spawn(http(("127.0.0.1", 0), HttpOptions::default()));
        let http = listening.await.expect("no panic").expect("a free port");
        let address = http.address();
        let served = runtime.spawn(async move { server.serve_until(http, signal).await });
        Self {
            runtime: Some(runtime),
            address,
            running,
            stop,
            served,
        }
    }

    fn tasks(&self) -> usize {
        self.runtime
            .as_ref()
            .expect("until it is dropped")
            .metrics()
            .num_alive_tasks()
    }

    /// Waits until no handler runs and there are no more tasks than these.
    async fn settled(&self, tasks: usize, when: &str) {
        let settling = async {
            while self.running.load(Ordering::SeqCst) > 0 || self.tasks() > tasks {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let settled = tokio::time::timeout(TEST_TIMEOUT, settling).await;
        let left = (self.running.load(Ordering::SeqCst), self.tasks());
        assert!(
            settled.is_ok(),
            "{when}: {left:?} handlers and tasks are left, {tasks} tasks were before"
        );
    }

    /// Makes a call as another client.
    async fn serves_others(&self, when: &str) {
        let mut connection = Connection::open(self.address).await;
        let (headers, message) = call("plain");
        connection.send("POST", "/mcp", &headers, &message).await;
        connection.until(Some("\"done\"")).await;
        assert!(
            connection.seen.starts_with("HTTP/1.1 200"),
            "{when}: {}",
            connection.seen
        );
    }

    /// Runs one connection up to the cut; returns whether the cut was reached, so that a later one is possible.
    async fn cut(
        &self,
        request: &[u8],
        place: Place,
        cut: Cut,
        is_over: impl Fn(&str) -> bool,
    ) -> bool {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        let (sent, most) = match place {
            Place::Request(at) if at >= request.len() => return false,
            Place::Request(at) => (&request[..at], 0),
            Place::Response(at) => (request, at),
        };
        stream.write_all(sent).await.expect("it reads");
        let mut seen = Vec::new();
        let mut buffer = [0; STEP];
        let mut reached = true;
        while seen.len() < most {
            let room = buffer.len().min(most - seen.len());
            let read = tokio::time::timeout(TEST_TIMEOUT, stream.read(&mut buffer[..room])).await;
            match read.expect("the server answers") {
                Ok(0) | Err(_) => {
                    reached = false;
                    break;
                }
                Ok(read) => seen.extend_from_slice(&buffer[..read]),
            }
            if is_over(&String::from_utf8_lossy(&seen)) {
                reached = false;
                break;
            }
        }
        match cut {
            Cut::Closed => {
                let _ = stream.shutdown().await;
            }
            Cut::Reset => {
                stream.set_zero_linger().expect("a socket");
            }
        }
        reached
    }

    /// Runs one kind of exchange with a cut at every place. `is_over` returns whether the response is complete.
    async fn every_cut(&self, exchange: Exchange, is_over: impl Fn(&str) -> bool + Copy) {
        self.serves_others("before").await;
        let tasks = self.idle_tasks().await;
        for cut in [Cut::Closed, Cut::Reset] {
            for place in [Place::Request, Place::Response] {
                let mut at = 0;
                loop {
                    let when = format!("{:?}, {cut:?}", place(at));
                    let (request, session) = self.begin(exchange).await;
                    let reached = self.cut(&request, place(at), cut, is_over).await;
                    self.serves_others(&when).await;
                    if let Some(session) = session {
                        self.end_session(&session).await;
                    }
                    self.settled(tasks, &when).await;
                    if !reached {
                        break;
                    }
                    at += STEP;
                }
                assert!(at > 100, "{at} bytes are no message");
            }
        }
    }

    /// Returns the request of an exchange, and the session that was started for it.
    async fn begin(&self, exchange: Exchange) -> (Vec<u8>, Option<String>) {
        match exchange {
            Exchange::Modern(tool) => {
                let (headers, message) = call(tool);
                (post(&headers, &message), None)
            }
            Exchange::Handshake(tool) => {
                let session = self.begin_session().await;
                let params =
                    json!({"name": tool, "arguments": {}, "_meta": {"progressToken": "p"}});
                let message =
                    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
                (post(&session_headers(&session), &message), Some(session))
            }
        }
    }

    async fn begin_session(&self) -> String {
        let mut connection = Connection::open(self.address).await;
        let hello = initialize("2025-11-25");
        connection.send("POST", "/mcp", &[], &hello).await;
        connection.until(Some("\"capabilities\"")).await;
        let head = connection.seen.to_ascii_lowercase();
        let name = "mcp-session-id: ";
        let start = head.find(name).expect("a session") + name.len();
        let length = head[start..].find('\r').expect("the end of a line");
        let session = connection.seen[start..start + length].to_owned();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let headers = session_headers(&session);
        let mut connection = Connection::open(self.address).await;
        connection
            .send("POST", "/mcp", &headers, &initialized)
            .await;
        connection.until(Some("202 Accepted")).await;
        session
    }

    /// Ends a session. Until then, a call continues without its connection, because its client may come back for the
    /// result.
    async fn end_session(&self, session: &str) {
        let mut connection = Connection::open(self.address).await;
        let headers = session_headers(session);
        connection
            .send("DELETE", "/mcp", &headers, &Value::Null)
            .await;
        connection.until(Some("204 No Content")).await;
    }

    /// Returns the number of tasks once earlier connections have ended: when it stays the same for a while.
    async fn idle_tasks(&self) -> usize {
        let (mut fewest, mut looks) = (self.tasks(), 0);
        while looks < 100 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            looks = if self.tasks() < fewest { 0 } else { looks + 1 };
            fewest = fewest.min(self.tasks());
        }
        fewest
    }

    async fn end(mut self) {
        self.stop.stop();
        let served = tokio::time::timeout(TEST_TIMEOUT, &mut self.served).await;
        let served = served.expect("the server ends").expect("no panic");
        served.expect("in good order");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // An async test must not wait for another runtime's end.
        self.runtime
            .take()
            .expect("until it is dropped")
            .shutdown_background();
    }
}

/// Builds a call of a 2026-07-28 client.
fn call(tool: &'static str) -> ([(&'static str, &'static str); 3], Value) {
    let headers = [
        ("Mcp-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
    ];
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": "p",
    });
    let params = json!({"name": tool, "arguments": {}, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    (headers, message)
}

fn session_headers(session: &str) -> [(&'static str, &str); 2] {
    [
        ("Mcp-Session-Id", session),
        ("Mcp-Protocol-Version", "2025-11-25"),
    ]
}

fn post(headers: &[(&str, &str)], message: &Value) -> Vec<u8> {
    let body = message.to_string();
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Returns whether the progress has arrived, after which the tool sends nothing more.
fn has_progress(seen: &str) -> bool {
    // An event ends with its chunk.
    seen.contains("notifications/progress") && seen.ends_with("\n\n\r\n")
}

fn has_result(seen: &str) -> bool {
    seen.contains("\"done\"") && seen.ends_with('}')
}

#[tokio::test]
async fn cutting_the_connection_anywhere_cancels_a_2026_07_28_call() {
    let served = Served::start().await;
    served
        .every_cut(Exchange::Modern("waits"), has_progress)
        .await;
    served.end().await;
}

#[tokio::test]
async fn cutting_the_connection_anywhere_leaks_nothing_of_a_2026_07_28_response() {
    let served = Served::start().await;
    served
        .every_cut(Exchange::Modern("plain"), has_result)
        .await;
    served.end().await;
}

#[tokio::test]
async fn a_2025_11_25_call_with_a_cut_connection_ends_with_its_session() {
    let served = Served::start().await;
    served
        .every_cut(Exchange::Handshake("waits"), has_progress)
        .await;
    served.end().await;
}
