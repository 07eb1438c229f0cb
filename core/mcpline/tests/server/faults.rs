//! Fault injection: whatever fails, at whichever use, nothing hangs, panics or fails more than it must.
//!
//! Each scenario runs once for every use of something that can fail, as in SQLite's tests: first with the first use
//! failing, then with the second, until the scenario ends before the fault is reached.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use crate::support::Nothing;
use crate::support::requests::{call, initialize, request};
use bytes::Bytes;
use http::{Method, StatusCode};
use mcpline::protocol::vocabulary::Resource;
use mcpline::sharing::{
    Bus, EventLog, LoggedEvents, Pending, SaveOutcome, SessionStore, Sharing, SharingError,
    Subscription,
};
use mcpline::transport::http::{HttpOptions, HttpService};
use mcpline::transport::lines;
use mcpline::{Context, Server, Settings};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

/// Fails only at the use with this number.
struct Fault {
    at: usize,
    uses: AtomicUsize,
}

impl Fault {
    fn at(use_number: usize) -> Arc<Self> {
        Arc::new(Self {
            at: use_number,
            uses: AtomicUsize::new(0),
        })
    }

    fn strikes(&self) -> bool {
        self.uses.fetch_add(1, Ordering::SeqCst) == self.at
    }

    fn was_reached(&self) -> bool {
        self.uses.load(Ordering::SeqCst) > self.at
    }
}

/// The shared parts of a service; one use of them fails.
struct Faulty {
    sound: Sharing,
    fault: Arc<Fault>,
}

impl Faulty {
    fn sharing(fault: &Arc<Fault>) -> Sharing {
        let mut sharing = Sharing::in_memory();
        let faulty = Arc::new(Self {
            sound: sharing.clone(),
            fault: fault.clone(),
        });
        sharing.sessions = faulty.clone();
        sharing.events = faulty.clone();
        sharing.bus = faulty;
        sharing
    }

    fn failure<'a, T: Send + 'a>() -> Pending<'a, T> {
        Box::pin(async { Err(SharingError::new("the disk is full")) })
    }
}

impl SessionStore for Faulty {
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        lifetime: Duration,
    ) -> Pending<'a, SaveOutcome> {
        match self.fault.strikes() {
            true => Self::failure(),
            false => self.sound.sessions.save(id, session, replaces, lifetime),
        }
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        match self.fault.strikes() {
            true => Self::failure(),
            false => self.sound.sessions.load(id),
        }
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        match self.fault.strikes() {
            true => Self::failure(),
            false => self.sound.sessions.remove(id),
        }
    }
}

impl EventLog for Faulty {
    fn append(&self, stream: &str, number: u64, event: Bytes) {
        if !self.fault.strikes() {
            self.sound.events.append(stream, number, event);
        }
    }

    fn end(&self, stream: &str, last: u64) {
        if !self.fault.strikes() {
            self.sound.events.end(stream, last);
        }
    }

    fn read<'a>(&'a self, stream: &'a str, after: u64) -> Pending<'a, Option<LoggedEvents>> {
        match self.fault.strikes() {
            true => Self::failure(),
            false => self.sound.events.read(stream, after),
        }
    }
}

impl Bus for Faulty {
    fn publish(&self, message: Bytes) {
        if !self.fault.strikes() {
            self.sound.bus.publish(message);
        }
    }

    fn subscribe(&self, receive: Arc<dyn Fn(Bytes) + Send + Sync>) -> Subscription {
        self.sound.bus.subscribe(receive)
    }
}

fn server(sharing: Option<Sharing>) -> Server {
    let mut settings = Settings::default();
    settings.sharing = sharing;
    Server::builder("faults", "1")
        .settings(settings)
        .build()
        .expect("builds")
        .resource(Resource::new("test://x", "x"), || async { "x" })
        .tool("plain", "Answers", |_: Nothing, _: Context| async {
            "done"
        })
        .tool(
            "reports",
            "Reports, answers",
            |_: Nothing, ctx: Context| async move {
                ctx.progress(1.0, None, None);
                "done"
            },
        )
}

async fn post(service: &HttpService, session: &str, body: Value) -> StatusCode {
    let headers = [
        ("mcp-session-id", session),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    service
        .handle(request(Method::POST, &headers, body))
        .await
        .status()
}

#[tokio::test(start_paused = true)]
async fn one_failure_of_a_shared_store_fails_no_request_of_the_owning_process() {
    let mut reached = 0;
    loop {
        let fault = Fault::at(reached);
        let sharing = Faulty::sharing(&fault);
        let service = || server(Some(sharing.clone())).http_service(HttpOptions::default());
        let (first, second) = (service(), service());
        let begun = first
            .handle(request(Method::POST, &[], initialize("2025-11-25")))
            .await;
        assert_eq!(begun.status(), StatusCode::OK, "use {reached}");
        let id = begun.headers()["mcp-session-id"]
            .to_str()
            .expect("ASCII")
            .to_owned();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(
            post(&first, &id, initialized).await,
            StatusCode::ACCEPTED,
            "use {reached}"
        );
        let subscribe = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe",
                               "params": {"uri": "test://x"}});
        assert_eq!(
            post(&first, &id, subscribe).await,
            StatusCode::OK,
            "use {reached}"
        );
        assert_eq!(
            post(&first, &id, call(2, "reports")).await,
            StatusCode::OK,
            "use {reached}"
        );
        // Another process may be unable to look the session up, but does not say that it has ended.
        let elsewhere = post(&second, &id, call(3, "plain")).await;
        assert!(
            matches!(elsewhere, StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE),
            "use {reached}: {elsewhere}"
        );
        assert_eq!(
            post(&first, &id, call(4, "plain")).await,
            StatusCode::OK,
            "use {reached}"
        );
        let headers = [("mcp-session-id", id.as_str())];
        let ended = first
            .handle(request(Method::DELETE, &headers, Value::Null))
            .await;
        assert_eq!(ended.status(), StatusCode::NO_CONTENT, "use {reached}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        if !fault.was_reached() {
            break;
        }
        reached += 1;
    }
    assert!(reached > 10, "{reached} uses were made to fail");
}

/// One end of a pipe; one read, write or flush of it fails.
struct FaultyPipe<S> {
    sound: S,
    fault: Arc<Fault>,
}

fn broken() -> io::Error {
    io::Error::other("the disk is full")
}

impl<S: AsyncRead + Unpin> AsyncRead for FaultyPipe<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.fault.strikes() {
            true => Poll::Ready(Err(broken())),
            false => Pin::new(&mut self.sound).poll_read(cx, buffer),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FaultyPipe<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.fault.strikes() {
            true => Poll::Ready(Err(broken())),
            // Never more than a few bytes at once.
            false => {
                let few = bytes.len().min(50);
                Pin::new(&mut self.sound).poll_write(cx, &bytes[..few])
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        match self.fault.strikes() {
            true => Poll::Ready(Err(broken())),
            false => Pin::new(&mut self.sound).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.sound).poll_shutdown(cx)
    }
}

#[tokio::test(start_paused = true)]
async fn one_failure_of_a_pipe_ends_its_server_and_cancels_its_calls() {
    let mut reached = 0;
    loop {
        let fault = Fault::at(reached);
        let cancelled = Arc::new(AtomicUsize::new(0));
        let started = Arc::new(AtomicUsize::new(0));
        let (count, begun) = (cancelled.clone(), started.clone());
        let server = server(None).tool("waits", "Waits", move |_: Nothing, ctx: Context| {
            let count = count.clone();
            begun.fetch_add(1, Ordering::SeqCst);
            ctx.on_cancel(move || {
                count.fetch_add(1, Ordering::SeqCst);
            });
            async move {
                std::future::pending::<()>().await;
                "never"
            }
        });
        let (mut client, ours) = tokio::io::duplex(256);
        let (reader, writer) = tokio::io::split(ours);
        let reader = FaultyPipe {
            sound: reader,
            fault: fault.clone(),
        };
        let writer = FaultyPipe {
            sound: writer,
            fault: fault.clone(),
        };
        let serving = tokio::spawn(async move { server.serve(lines(reader, writer)).await });
        let messages = [
            initialize("2025-11-25"),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            call(1, "waits"),
            call(2, "plain"),
        ];
        let talk = async {
            for message in messages {
                // The server may be gone.
                if client
                    .write_all(format!("{message}\n").as_bytes())
                    .await
                    .is_err()
                {
                    break;
                }
            }
            let mut received = Vec::new();
            let mut buffer = [0; 1024];
            while let Ok(read @ 1..) = client.read(&mut buffer).await {
                received.extend_from_slice(&buffer[..read]);
                if received.windows(6).any(|bytes| bytes == b"\"id\":2") {
                    break;
                }
            }
            drop(client);
        };
        tokio::time::timeout(Duration::from_secs(60), talk)
            .await
            .unwrap_or_else(|_| panic!("use {reached}: the client waits for ever"));
        let served = tokio::time::timeout(Duration::from_secs(60), serving)
            .await
            .unwrap_or_else(|_| panic!("use {reached}: the server goes on"))
            .expect("no panic");
        let (started, cancelled) = (
            started.load(Ordering::SeqCst),
            cancelled.load(Ordering::SeqCst),
        );
        assert_eq!(cancelled, started, "use {reached}: every call was told");
        if !fault.was_reached() {
            assert!(served.is_ok(), "{served:?}");
            break;
        }
        reached += 1;
    }
    assert!(reached > 10, "{reached} uses were made to fail");
}
