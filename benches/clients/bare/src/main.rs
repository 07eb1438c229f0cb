//! The baseline: a call is one message written and one message read, of which only the envelope is parsed. Over HTTP
//! each call in flight has its own hyper connection; over stdio one pipe carries all.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::error::Error;
use std::process::Stdio;
use std::rc::Rc;

use bench_client::{Options, TEXT, Target, drive};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};

/// The parsed part of a response.
#[derive(serde::Deserialize)]
struct Envelope<'a> {
    id: u64,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bare","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn call(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{TEXT}"}}}}}}"#
    )
}

fn check(answer: &[u8], id: u64) -> Result<(), Box<dyn Error>> {
    let envelope: Envelope<'_> = serde_json::from_slice(answer)?;
    if envelope.id != id || envelope.result.is_none() {
        return Err("not the answer".into());
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse()?;
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async {
            match &options.target {
                Target::Http(url) => over_http(&options, url).await,
                Target::Stdio(command) => over_stdio(&options, command).await,
            }
        })
        .await
}

type Sender = http1::SendRequest<Full<Bytes>>;

async fn over_http(options: &Options, url: &str) -> Result<(), Box<dyn Error>> {
    let authority = url.strip_prefix("http://").ok_or("an http URL")?;
    let (authority, path) = authority.split_once('/').ok_or("a URL with a path")?;
    let (authority, path) = (authority.to_owned(), format!("/{path}"));
    let mut senders = Vec::new();
    for _ in 0..options.width {
        let socket = TcpStream::connect(&authority).await?;
        socket.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
        // The connection ends with its sender.
        tokio::task::spawn_local(async move { drop(connection.await) });
        senders.push(RefCell::new(Some(sender)));
    }
    let post = |session: Option<&str>, body: String| {
        let mut request = Request::post(&path)
            .header("host", &authority)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        request.body(Full::new(Bytes::from(body)))
    };
    let mut first = senders[0].borrow_mut().take().ok_or("a connection")?;
    let answer = first.send_request(post(None, INITIALIZE.to_owned())?).await?;
    let session = answer.headers()["mcp-session-id"].to_str()?.to_owned();
    answer.collect().await?;
    let answer = first
        .send_request(post(Some(&session), INITIALIZED.to_owned())?)
        .await?;
    answer.collect().await?;
    *senders[0].borrow_mut() = Some(first);
    let senders: Rc<Vec<RefCell<Option<Sender>>>> = Rc::new(senders);
    let ids = Rc::new(Cell::new(1));
    drive(options, move |slot| {
        let id = ids.replace(ids.get() + 1);
        let request = Request::post(path.as_str())
            .header("host", authority.as_str())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25")
            .header("mcp-session-id", session.as_str())
            .body(Full::new(Bytes::from(call(id))));
        let senders = senders.clone();
        async move {
            let mut sender = senders[slot].borrow_mut().take().ok_or("in use")?;
            sender.ready().await?;
            let answer = sender.send_request(request?).await?;
            let body = answer.into_body().collect().await?.to_bytes();
            *senders[slot].borrow_mut() = Some(sender);
            check(&body, id)
        }
    })
    .await
}

#[derive(Default)]
struct Pipe {
    outgoing: RefCell<Vec<u8>>,
    filled: Notify,
    waiting: RefCell<HashMap<u64, oneshot::Sender<Vec<u8>>>>,
}

impl Pipe {
    fn write(&self, message: &str) {
        let mut outgoing = self.outgoing.borrow_mut();
        outgoing.extend_from_slice(message.as_bytes());
        outgoing.push(b'\n');
        self.filled.notify_one();
    }
}

async fn over_stdio(options: &Options, command: &[String]) -> Result<(), Box<dyn Error>> {
    let mut child = tokio::process::Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut stdin = child.stdin.take().ok_or("a pipe")?;
    let mut lines = BufReader::with_capacity(64 * 1024, child.stdout.take().ok_or("a pipe")?);
    let mut line = Vec::new();
    stdin.write_all(format!("{INITIALIZE}\n").as_bytes()).await?;
    lines.read_until(b'\n', &mut line).await?;
    let pipe = Rc::new(Pipe::default());
    pipe.write(INITIALIZED);
    let writing = pipe.clone();
    tokio::task::spawn_local(async move {
        let mut buffer = Vec::new();
        loop {
            std::mem::swap(&mut buffer, &mut *writing.outgoing.borrow_mut());
            if buffer.is_empty() {
                writing.filled.notified().await;
            } else if stdin.write_all(&buffer).await.is_err() {
                return;
            }
            buffer.clear();
        }
    });
    let reading = pipe.clone();
    tokio::task::spawn_local(async move {
        let mut line = Vec::new();
        while let Ok(1..) = lines.read_until(b'\n', &mut line).await {
            if let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(&line) {
                let id = envelope.id;
                let waiting = reading.waiting.borrow_mut().remove(&id);
                if let Some(waiting) = waiting {
                    // The caller may be gone.
                    let _ = waiting.send(std::mem::take(&mut line));
                }
            }
            line.clear();
        }
    });
    let ids = Rc::new(Cell::new(1));
    drive(options, move |_| {
        let id = ids.replace(ids.get() + 1);
        let (sender, receiver) = oneshot::channel();
        pipe.waiting.borrow_mut().insert(id, sender);
        pipe.write(&call(id));
        async move {
            receiver.await?;
            Ok(())
        }
    })
    .await
}
