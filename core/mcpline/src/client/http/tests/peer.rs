//! A scripted server that answers with exact bytes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

use super::guarded;
use super::tasks::Tasks;

/// A received request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    pub(super) method: String,
    /// As in the request line.
    pub(super) path: String,
    pub(super) headers: HashMap<String, String>,
    pub(super) body: String,
    /// Number of its connection, from 0.
    pub(super) connection: usize,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// A step of the answer to a request. After the last one the connection is ready for another request.
pub(super) enum Step {
    Send(Vec<u8>),
    Wait(Arc<Notify>),
    /// Closes the connection properly.
    Close,
    /// Resets the connection.
    Reset,
    /// Sends nothing more, and notifies when the client has gone.
    Silence(Arc<Notify>),
}

pub(super) type Reply = Vec<Step>;

/// The server. A panic in it, in its script or because of an invalid request, fails the test that holds it.
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    seen: mpsc::UnboundedReceiver<Seen>,
    accepting: AbortHandle,
    _tasks: Tasks,
}

impl Peer {
    /// Starts a server that answers each request with the steps of `script`, which also gets the request's number, from
    /// 0.
    pub(super) async fn new(script: impl FnMut(usize, &Seen) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, seen) = mpsc::unbounded_channel();
        let script = Arc::new(Mutex::new((0, script)));
        let tasks = Tasks::default();
        let connections_of_peer = tasks.clone();
        let accepting = tokio::spawn(async move {
            let mut connections = 0;
            while let Ok((stream, _)) = listener.accept().await {
                let (script, sender) = (script.clone(), sender.clone());
                let connection = connections;
                connections += 1;
                let answer = move |mut request: Seen| {
                    request.connection = connection;
                    let mut script = script.lock().expect("unpoisoned");
                    let count = script.0;
                    script.0 += 1;
                    let reply = (script.1)(count, &request);
                    let _ = sender.send(request);
                    reply
                };
                connections_of_peer.spawn(serve(stream, answer));
            }
        });
        Self {
            address,
            seen,
            accepting: accepting.abort_handle(),
            _tasks: tasks,
        }
    }

    /// Starts a server that answers every request with the same bytes.
    pub(super) async fn always(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::new(move |_, _| vec![Step::Send(bytes.clone())]).await
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Accepts no more connections.
    pub(super) fn refuse(&self) {
        self.accepting.abort();
    }

    /// Returns the next received request.
    pub(super) async fn seen(&mut self) -> Seen {
        guarded(self.seen.recv()).await.expect("a request")
    }

    /// Returns the received requests that were not read yet.
    pub(super) fn rest(&mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.seen.try_recv().ok()).collect()
    }
}

async fn serve(mut stream: TcpStream, mut answer: impl FnMut(Seen) -> Reply) {
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut stream, &mut buffer).await {
        for step in answer(request) {
            match step {
                Step::Send(bytes) => {
                    // The client may be gone, which the next step reports.
                    let _ = stream.write_all(&bytes).await;
                }
                Step::Wait(notify) => notify.notified().await,
                Step::Close => return,
                Step::Reset => {
                    // Closing a socket with unread data resets the connection.
                    let _ = stream.set_zero_linger();
                    return;
                }
                Step::Silence(gone) => {
                    let mut byte = [0];
                    let _ = stream.read(&mut byte).await;
                    gone.notify_one();
                    return;
                }
            }
        }
    }
}

/// Reads one request; `None` if the client closed the connection.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer[..end].to_vec()).expect("ASCII");
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: HashMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length");
    let length: usize = length.map_or(0, |length| length.parse().expect("a number"));
    let all = end + 4 + length;
    while buffer.len() < all {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(buffer[end + 4..all].to_vec()).expect("UTF-8");
    buffer.drain(..all);
    Some(Seen {
        method,
        path,
        headers,
        body,
        connection: 0,
    })
}

/// A response with a length.
pub(super) fn answer(status: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    format!("{text}\r\n{body}").into_bytes()
}

/// A response with status 200 and a JSON body.
pub(super) fn json(body: &str) -> Vec<u8> {
    answer("200 OK", &[("content-type", "application/json")], body)
}

/// The head of a chunked event stream.
pub(super) fn events() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        .to_vec()
}

/// One chunk of an event stream.
pub(super) fn chunk(data: &str) -> Vec<u8> {
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

/// The end of an event stream.
pub(super) fn last_chunk() -> Vec<u8> {
    b"0\r\n\r\n".to_vec()
}

/// A whole event stream in one write.
pub(super) fn stream(data: &str) -> Vec<u8> {
    [events(), chunk(data), last_chunk()].concat()
}
