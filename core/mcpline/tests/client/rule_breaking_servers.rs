//! A client with servers that break the rules: it fails at once and reports what the server sent. Misbehaviour over
//! each transport in every revision is tested in `tests/misbehaving`.

use std::pin::Pin;
use std::sync::Arc;

use crate::support::tasks::Tasks;
use bytes::Bytes;
use mcpline::ErrorKind;
use mcpline::client::{
    Address, Channel, Client, ClientBuilder, ClientError, ClientTransport, RequestOptions,
};
use mcpline::protocol::client::HandshakeError;
use mcpline::{Revision, RpcError};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};

fn host() -> ClientBuilder {
    Client::builder("host", "1")
        .configure(|settings| settings.revisions = vec![Revision::V2024_11_05])
}

fn shaken(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {
        "protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "peer", "version": "1"}}})
}

/// A server that completes the handshake and answers everything else with the same members and the request's id.
struct Answers(Value, Tasks);

impl ClientTransport for Answers {
    fn dial(&self) -> Pin<Box<dyn Future<Output = std::io::Result<Channel>> + Send + '_>> {
        let (to_server, mut sent) = mpsc::unbounded_channel::<Bytes>();
        let (answers, from_server) = mpsc::channel(10);
        let members = self.0.clone();
        self.1.spawn(async move {
            while let Some(message) = sent.recv().await {
                let message: Value = serde_json::from_slice(&message).expect("JSON");
                let mut answer = match (message["method"].as_str(), message.get("id")) {
                    (_, None) => continue,
                    (Some("initialize"), Some(id)) => shaken(id),
                    _ => members.clone(),
                };
                answer["id"] = message["id"].clone();
                if answers.send(Ok(answer.to_string().into())).await.is_err() {
                    return;
                }
            }
        });
        Box::pin(async {
            Ok(Channel {
                to_server,
                from_server,
            })
        })
    }
}

#[runtimes::test]
async fn malformed_responses_are_invalid_and_do_not_lose_the_connection() {
    for members in [
        json!({"jsonrpc": "2.0"}),
        json!({"jsonrpc": "1.0", "result": {}}),
        json!({"jsonrpc": "2.0", "result": {}, "error": {"code": 1, "message": "both"}}),
        json!({"jsonrpc": "2.0", "error": "no"}),
    ] {
        let tasks = Tasks::default();
        let address = Address::Custom(Arc::new(Answers(members.clone(), tasks.clone())));
        let client = host().connect(address).await.expect("connects");
        let error = client.list_tools().await.expect_err("no answer");
        assert!(
            matches!(error, ClientError::InvalidResponse { .. }),
            "{members}: {error:?}"
        );
        client.close().await;
    }
}

/// How an HTTP server of these tests answers a request, given as `METHOD PATH` and the body.
type Serve = dyn Fn(&str, &Value) -> Reply + Send + Sync;

enum Reply {
    Whole(&'static str),
    /// 200 with one JSON-RPC message.
    Json(Value),
    /// 200 with these messages as an event stream that ends.
    Events(Vec<Value>),
    /// A status and further headers, without a body.
    Status(&'static str),
    /// The stream of HTTP+SSE, which stays open.
    Stream(&'static str),
    /// 202, and this event on the stream.
    Event(Value),
}

async fn served(
    tasks: &Tasks,
    serve: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
) -> String {
    let serve: Arc<Serve> = Arc::new(serve);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let stream: Arc<Mutex<Option<OwnedWriteHalf>>> = Arc::default();
    let connections = tasks.clone();
    tasks.spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let (stream, serve) = (stream.clone(), serve.clone());
            connections.spawn(async move {
                // The client may leave at any time.
                let _ = one(connection, &*serve, &stream).await;
            });
        }
    });
    format!("http://127.0.0.1:{port}/mcp")
}

async fn one(
    connection: TcpStream,
    serve: &Serve,
    stream: &Mutex<Option<OwnedWriteHalf>>,
) -> std::io::Result<()> {
    let (reader, mut writer) = connection.into_split();
    let mut lines = BufReader::new(reader);
    let mut line = String::new();
    lines.read_line(&mut line).await?;
    let what: Vec<String> = line.split(' ').take(2).map(str::to_owned).collect();
    let mut length = 0;
    while line.trim() != "" {
        line.clear();
        lines.read_line(&mut line).await?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body).await?;
    let message = serde_json::from_slice(&body).unwrap_or_default();
    match serve(&what.join(" "), &message) {
        Reply::Whole(answer) => writer.write_all(answer.as_bytes()).await,
        Reply::Json(message) => {
            let body = message.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            writer.write_all((head + &body).as_bytes()).await
        }
        Reply::Events(messages) => {
            let mut stream = String::from(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
            );
            for message in messages {
                stream.push_str(&format!("data: {message}\n\n"));
            }
            writer.write_all(stream.as_bytes()).await
        }
        Reply::Status(status) => {
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            writer.write_all(head.as_bytes()).await
        }
        Reply::Stream(head) => {
            writer.write_all(head.as_bytes()).await?;
            *stream.lock().await = Some(writer);
            Ok(())
        }
        Reply::Event(event) => {
            let accepted =
                b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            writer.write_all(accepted).await?;
            let mut stream = stream.lock().await;
            let event = format!("data: {event}\n\n");
            stream
                .as_mut()
                .expect("a stream")
                .write_all(event.as_bytes())
                .await
        }
    }
}

#[runtimes::test]
async fn reports_the_endpoints_own_error_rather_than_a_missing_stream() {
    let tasks = Tasks::default();
    let url = served(&tasks, |what, _| match what {
        "POST /mcp" => Reply::Whole(
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 14\r\nconnection: close\r\n\r\nno such tenant",
        ),
        _ => Reply::Status("405 Method Not Allowed"),
    });
    let error = host().connect(url.await).await.expect_err("refused");
    let ClientError::Http { status, body, .. } = error.cause() else {
        panic!("{error:?}");
    };
    assert_eq!((*status, body.as_str()), (400, "no such tenant"));
}

#[runtimes::test]
async fn falls_back_to_the_handshake_after_any_error_status_of_the_probe() {
    for status in [
        "403 Forbidden",
        "409 Conflict",
        "422 Unprocessable Content",
        "426 Upgrade Required",
        "429 Too Many Requests\r\nretry-after: 60",
        "500 Internal Server Error",
        "503 Service Unavailable\r\nretry-after: 60",
    ] {
        let tasks = Tasks::default();
        let url = served(&tasks, move |what, message| {
            match (what, message["method"].as_str()) {
                ("POST /mcp", Some("initialize")) => Reply::Json(shaken(&message["id"])),
                ("POST /mcp", Some("notifications/initialized")) => Reply::Status("202 Accepted"),
                ("POST /mcp", _) => Reply::Status(status),
                _ => Reply::Status("405 Method Not Allowed"),
            }
        });
        let client = Client::builder("host", "1")
            .connect(url.await)
            .await
            .expect(status);
        assert!(!client.revision().is_modern(), "{status}");
        client.close().await;
    }
}

#[runtimes::test]
async fn falls_back_to_http_sse_after_any_4xx_to_initialize() {
    for status in ["403 Forbidden", "422 Unprocessable Content"] {
        let tasks = Tasks::default();
        let url = served(&tasks, move |what, message| match what {
            "GET /mcp" => Reply::Stream(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: /messages\n\n",
            ),
            "POST /messages" if message["method"] == "initialize" => {
                Reply::Event(shaken(&message["id"]))
            }
            "POST /messages" => Reply::Status("202 Accepted"),
            _ => Reply::Status(status),
        });
        let client = Client::builder("host", "1")
            .connect(url.await)
            .await
            .expect(status);
        assert!(!client.revision().is_modern(), "{status}");
        client.close().await;
    }
}

#[runtimes::test]
async fn the_error_lists_the_outcome_of_each_attempt() {
    let tasks = Tasks::default();
    let url = served(&tasks, |what, message| {
        match (what, message["method"].as_str()) {
            ("POST /mcp", Some("initialize")) => Reply::Whole(
                "HTTP/1.1 403 Forbidden\r\ncontent-length: 14\r\nconnection: close\r\n\r\nno such tenant",
            ),
            ("POST /mcp", _) => Reply::Status("500 Internal Server Error"),
            // An HTML page.
            _ => Reply::Whole(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>",
            ),
        }
    });
    let error = Client::builder("host", "1")
        .connect(url.await)
        .await
        .expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Http);
    assert_eq!(
        error.to_string(),
        "server responded with HTTP status 403: \"no such tenant\" (attempts: `server/discover`: server responded with \
         HTTP status 500; `initialize`: server responded with HTTP status 403: \"no such tenant\"; `initialize` over \
         HTTP+SSE: invalid response from server: the response to GET is not an event stream)"
    );
}

#[runtimes::test]
async fn reports_a_refused_http_sse_handshake_rather_than_earlier_attempts() {
    let tasks = Tasks::default();
    let url = served(&tasks, |what, message| match what {
        "GET /mcp" => Reply::Stream(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: /messages\n\n",
        ),
        "POST /messages" => Reply::Event(json!({"jsonrpc": "2.0", "id": message["id"],
            "error": {"code": -32602, "message": "who are you?"}})),
        _ => Reply::Status("405 Method Not Allowed"),
    });
    let error = host().connect(url.await).await.expect_err("refused");
    let refused = HandshakeError::Refused(RpcError::invalid_params("who are you?"));
    assert_eq!(error.cause(), &ClientError::HandshakeFailed(refused));
}

/// A server that completes the handshake and has a further page of tools for every cursor.
struct Endless(Tasks);

impl ClientTransport for Endless {
    fn dial(&self) -> Pin<Box<dyn Future<Output = std::io::Result<Channel>> + Send + '_>> {
        let (to_server, mut sent) = mpsc::unbounded_channel::<Bytes>();
        let (answers, from_server) = mpsc::channel(10);
        self.0.spawn(async move {
            let mut pages = 0;
            while let Some(message) = sent.recv().await {
                let message: Value = serde_json::from_slice(&message).expect("JSON");
                let Some(id) = message.get("id") else {
                    continue;
                };
                let answer = if message["method"] == "initialize" {
                    shaken(id)
                } else {
                    pages += 1;
                    json!({"jsonrpc": "2.0", "id": id, "result": {
                        "tools": [{"name": format!("tool{pages}"), "inputSchema": {"type": "object"},
                                   "description": "d".repeat(10_000)}],
                        "nextCursor": format!("page{pages}")}})
                };
                if answers.send(Ok(answer.to_string().into())).await.is_err() {
                    return;
                }
            }
        });
        Box::pin(async {
            Ok(Channel {
                to_server,
                from_server,
            })
        })
    }
}

#[tokio::test]
async fn limits_the_total_size_of_a_lists_pages() {
    let tasks = Tasks::default();
    let client = host()
        .configure(|settings| settings.max_list_bytes = 105_000)
        .connect(Address::Custom(Arc::new(Endless(tasks.clone()))))
        .await
        .expect("connects");
    let error = client.list_tools().await.expect_err("endless");
    assert!(
        matches!(&error, ClientError::InvalidResponse { reason } if reason.contains("max_list_bytes")),
        "{error}"
    );
    // Following the cursors manually has the same limit.
    let mut cursor: Option<String> = None;
    let mut pages = 0;
    let error = loop {
        let options = RequestOptions::new();
        match client.list_tools_page(cursor.as_deref(), &options).await {
            Ok(page) => cursor = page.next_cursor,
            Err(error) => break error,
        }
        pages += 1;
    };
    assert!(
        matches!(error, ClientError::InvalidResponse { .. }),
        "{error}"
    );
    assert_eq!(pages, 10);
}

#[runtimes::test]
async fn requests_of_a_modern_server_get_no_response_over_http() {
    let sent = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = sent.clone();
    let tasks = Tasks::default();
    let url = served(&tasks, move |_, message| {
        let what = message["method"].as_str().unwrap_or("a response");
        seen.lock().expect("not poisoned").push(what.to_owned());
        let result = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "ttlMs": 0, "cacheScope": "public", "tools": []});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        match what {
            "server/discover" => Reply::Json(answer),
            _ => Reply::Events(vec![
                json!({"jsonrpc": "2.0", "id": "q", "method": "ping"}),
                json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"}),
                answer,
            ]),
        }
    });
    let client = Client::builder("host", "1").connect(url.await).await;
    let client = client.expect("connects");
    client.list_tools().await.expect("a list");
    client.list_tools().await.expect("a list");
    client.close().await;
    let sent = sent.lock().expect("not poisoned").clone();
    assert_eq!(sent, ["server/discover", "tools/list", "tools/list"]);
}
