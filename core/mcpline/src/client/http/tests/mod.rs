//! Tests of the links over real sockets, against scripted servers and this crate's own.

mod answers;
mod handshake;
mod http_sse;
mod own_server;
mod peer;
mod redirects;
mod settings;
mod streams;
#[path = "../../../../tests/support/tasks.rs"]
mod tasks;
mod tls;
mod whole_client;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcpline_protocol::Revision;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::client::link::{Link, LinkEventSink, Outgoing, OutgoingKind, RequestHead};
use crate::client_error::ClientError;
use crate::http_client::{HttpClient, HttpSettings, Proxy};

use super::HttpLink;

/// Guards against hanging; no test waits that long.
const GUARD: Duration = Duration::from_secs(60);

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;

/// A report of a link.
#[derive(Debug, PartialEq)]
enum Report {
    Message(String, Option<u64>),
    Failed(u64, ClientError),
    Held(Option<u64>, bool),
    Ended(ClientError),
    Warning(String),
}

/// Records reports in order.
struct Recorder(mpsc::UnboundedSender<Report>);

impl LinkEventSink for Recorder {
    fn message(&self, message: Bytes, request: Option<u64>) -> bool {
        let text = String::from_utf8(message.to_vec()).expect("UTF-8");
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let answers =
            request.is_some() && value["id"] == json!(request) && value["method"].is_null();
        let _ = self.0.send(Report::Message(text, request));
        answers
    }

    fn failed(&self, request: u64, error: ClientError) {
        let _ = self.0.send(Report::Failed(request, error));
    }

    fn ended(&self, error: ClientError) {
        let _ = self.0.send(Report::Ended(error));
    }

    fn set_timeout_paused(&self, request: Option<u64>, held: bool) {
        let _ = self.0.send(Report::Held(request, held));
    }

    fn warning(&self, text: String) {
        let _ = self.0.send(Report::Warning(text));
    }
}

/// Receives the reports of one link.
struct ReportReceiver(mpsc::UnboundedReceiver<Report>);

impl ReportReceiver {
    fn new() -> (Arc<Recorder>, Self) {
        let (sender, reports) = mpsc::unbounded_channel();
        (Arc::new(Recorder(sender)), Self(reports))
    }

    async fn next(&mut self) -> Report {
        guarded(self.0.recv()).await.expect("a report")
    }

    /// Returns the next message, parsed.
    async fn message(&mut self) -> Value {
        match self.next().await {
            Report::Message(text, _) => serde_json::from_str(&text).expect("JSON"),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the failure of request 1.
    async fn failure(&mut self) -> ClientError {
        match self.next().await {
            Report::Failed(1, error) => error,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the unread reports.
    fn rest(&mut self) -> Vec<Report> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }
}

async fn guarded<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(GUARD, future).await.expect("in time")
}

/// Settings for tests: nothing from the environment, and no long delays.
fn settings() -> HttpSettings {
    HttpSettings {
        proxy: Proxy::Direct,
        resume_delay: Duration::from_millis(2),
        ..HttpSettings::default()
    }
}

fn http_client(settings: HttpSettings) -> Arc<HttpClient> {
    HttpClient::new(settings, Handle::current()).expect("valid settings")
}

/// Opens a link to a URL with the default settings of tests.
fn link(url: &str) -> (Arc<HttpLink>, ReportReceiver) {
    link_with(url, settings())
}

fn link_with(url: &str, settings: HttpSettings) -> (Arc<HttpLink>, ReportReceiver) {
    link_of(&http_client(settings), url)
}

fn link_of(client: &Arc<HttpClient>, url: &str) -> (Arc<HttpLink>, ReportReceiver) {
    let (recorder, receiver) = ReportReceiver::new();
    let link = HttpLink::open(url, client, recorder).expect("a URL");
    (link, receiver)
}

/// Waits until the client has this many open idle connections.
async fn idle(client: &HttpClient, count: usize) {
    let settled = async {
        while client.pool.open() != count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    guarded(settled).await;
}

fn head(number: u64, revision: Revision) -> RequestHead {
    RequestHead {
        number,
        revision,
        opens: false,
        is_repeatable: false,
        headers: Vec::new(),
    }
}

/// `tools/call` with this number.
fn call(number: u64, revision: Revision) -> Outgoing {
    with_head(
        head(number, revision),
        "tools/call",
        json!({"name": "plain", "arguments": {}}),
    )
}

fn with_head(head: RequestHead, method: &str, params: Value) -> Outgoing {
    let message = json!({"jsonrpc": "2.0", "id": head.number, "method": method, "params": params});
    Outgoing {
        message: message.to_string().into(),
        purpose: OutgoingKind::Request(head),
    }
}

fn initialize(number: u64) -> Outgoing {
    let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let head = RequestHead {
        opens: true,
        ..head(number, LEGACY)
    };
    with_head(head, "initialize", params)
}

fn initialized() -> Outgoing {
    notification("notifications/initialized", None)
}

fn notification(method: &str, about: Option<u64>) -> Outgoing {
    Outgoing {
        message: json!({"jsonrpc": "2.0", "method": method})
            .to_string()
            .into(),
        purpose: OutgoingKind::Notification { about },
    }
}

/// The result of request `id`, as text.
fn result(id: u64) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string()
}

async fn close(link: &Arc<impl Link>) {
    guarded(link.close()).await;
}
