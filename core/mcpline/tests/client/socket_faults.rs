//! Connections of an HTTP client that fail at any byte or connection: every request ends with a response or a typed
//! error, the client stays usable, and a closed client leaks nothing.
//!
//! Client and server communicate through a proxy on this machine that cuts one connection: after a number of bytes in
//! one direction, or as soon as it is accepted. Each scenario runs once for each place of the cut, until it ends before
//! the cut is reached.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::support::Nothing;
use crate::support::connection::TEST_TIMEOUT;
use mcpline::client::{Address, Client, ClientError, HttpSettings, Proxy as ProxySetting};
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::{ElicitAction, ElicitResult, Resource};
use mcpline::transport::http::{HttpOptions, http};
use mcpline::{Context, HandlerError, InputRequest, InputRequestMethod, Revision, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::Notify;

/// The runtime of everything except the client, so that a test's runtime has only the client's tasks.
static ELSEWHERE: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    runtime.expect("a runtime")
});

/// Bytes between one place of a cut and the next: not a divisor of any buffer size, so that cuts fall everywhere.
const STEP: usize = 67;

/// The path of HTTP+SSE of 2024-11-05.
const SSE_PATH: &str = "/sse";

/// The most bytes that the proxy forwards at once, so that messages arrive in pieces.
const PIECE: usize = 199;

#[derive(Debug, Clone, Copy)]
enum Place {
    /// After this many bytes over all connections.
    ToServer(usize),
    ToClient(usize),
    /// When the connection with this number is accepted.
    Accept(usize),
}

#[derive(Debug, Clone, Copy)]
struct Cut {
    place: Place,
    /// With a reset instead of an orderly close.
    resets: bool,
}

/// Forwards everything, except for one cut.
struct Proxy {
    server: SocketAddr,
    cut: Cut,
    accepted: AtomicUsize,
    to_server: AtomicUsize,
    to_client: AtomicUsize,
    has_cut: AtomicBool,
    open: AtomicUsize,
    closed: Notify,
}

impl Proxy {
    async fn start(server: SocketAddr, cut: Cut) -> (Arc<Self>, SocketAddr) {
        let proxy = Arc::new(Self {
            server,
            cut,
            accepted: AtomicUsize::new(0),
            to_server: AtomicUsize::new(0),
            to_client: AtomicUsize::new(0),
            has_cut: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            closed: Notify::new(),
        });
        let (accepting, place) = (proxy.clone(), ("127.0.0.1", 0));
        let listening = ELSEWHERE.spawn(async move {
            let listener = TcpListener::bind(place).await.expect("a free port");
            let address = listener.local_addr().expect("an address");
            ELSEWHERE.spawn(async move { accepting.accept(listener).await });
            address
        });
        (proxy, listening.await.expect("it listens"))
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        // Ends with the test.
        while Arc::strong_count(&self) > 1 {
            let accepted = tokio::time::timeout(Duration::from_millis(50), listener.accept());
            let Ok(Ok((client, _))) = accepted.await else {
                continue;
            };
            self.open.fetch_add(1, Ordering::SeqCst);
            let proxy = self.clone();
            ELSEWHERE.spawn(async move {
                proxy.carry(client).await;
                proxy.open.fetch_sub(1, Ordering::SeqCst);
                proxy.closed.notify_waiters();
            });
        }
    }

    /// Forwards one connection until it ends.
    async fn carry(&self, mut client: TcpStream) {
        let number = self.accepted.fetch_add(1, Ordering::SeqCst);
        if matches!(self.cut.place, Place::Accept(at) if at == number) {
            return self.cut(&client);
        }
        let mut server = TcpStream::connect(self.server).await.expect("a server");
        server.set_nodelay(true).expect("a socket");
        client.set_nodelay(true).expect("a socket");
        let (mut request_buffer, mut response_buffer) = ([0; PIECE], [0; PIECE]);
        let (mut requests_open, mut responses_open) = (true, true);
        while requests_open || responses_open {
            let goes_on = tokio::select! {
                read = client.read(&mut request_buffer), if requests_open => {
                    let goes_on = self.hand_on(&request_buffer, read, true, &mut server).await;
                    requests_open = goes_on == Some(true);
                    goes_on
                }
                read = server.read(&mut response_buffer), if responses_open => {
                    let goes_on = self.hand_on(&response_buffer, read, false, &mut client).await;
                    responses_open = goes_on == Some(true);
                    goes_on
                }
            };
            if goes_on.is_none() {
                return self.cut(&client);
            }
        }
    }

    /// Forwards what was read. Returns whether this direction of the connection continues; `None` if the connection
    /// must be cut.
    async fn hand_on(
        &self,
        buffer: &[u8],
        read: std::io::Result<usize>,
        is_request: bool,
        to: &mut TcpStream,
    ) -> Option<bool> {
        let Ok(read @ 1..) = read else {
            // Close only this direction, so that the other side can read what is in transit.
            let _ = to.shutdown().await;
            return Some(false);
        };
        let (passed, at) = match (is_request, self.cut.place) {
            (true, Place::ToServer(at)) => (&self.to_server, Some(at)),
            (true, _) => (&self.to_server, None),
            (false, Place::ToClient(at)) => (&self.to_client, Some(at)),
            (false, _) => (&self.to_client, None),
        };
        let before = passed.fetch_add(read, Ordering::SeqCst);
        let left = at.and_then(|at| at.checked_sub(before));
        if let Some(left) = left.filter(|left| *left < read) {
            // It does not matter whether this arrives.
            let _ = to.write_all(&buffer[..left]).await;
            return None;
        }
        Some(to.write_all(&buffer[..read]).await.is_ok())
    }

    fn cut(&self, client: &TcpStream) {
        self.has_cut.store(true, Ordering::SeqCst);
        if self.cut.resets {
            client.set_zero_linger().expect("a socket");
        }
    }

    fn has_cut(&self) -> bool {
        self.has_cut.load(Ordering::SeqCst)
    }

    /// Waits until the client has closed all of its connections.
    async fn all_closed(&self) {
        loop {
            let closed = self.closed.notified();
            if self.open.load(Ordering::SeqCst) == 0 {
                return;
            }
            // A connection that closes between the two lines above would be missed otherwise.
            let _ = tokio::time::timeout(Duration::from_millis(20), closed).await;
        }
    }
}

/// Starts a server for all scenarios; returns its address.
async fn serve() -> SocketAddr {
    let serving = ELSEWHERE.spawn(async {
        let mut options = HttpOptions::default();
        options.retry = Duration::from_millis(1);
        options.max_connections = 10_000;
        options.sse_paths = Some((SSE_PATH.to_owned(), "/messages".to_owned()));
        let http = http(("127.0.0.1", 0), options).await.expect("a free port");
        let address = http.address();
        let server = Server::builder("faults", "1")
            .build()
            .expect("a server")
            .resource(Resource::new("test://x", "x"), || async { "x" });
        let plain = |_: Nothing, _: Context| async { "done" };
        let reports = |_: Nothing, ctx: Context| async move {
            ctx.progress(1.0, None, None);
            "done"
        };
        let asks = |_: Nothing, ctx: Context| async move {
            let form = serde_json::json!({"message": "Sure?", "requestedSchema": {
                "type": "object", "properties": {}}});
            ctx.request_input(InputRequest::new(
                InputRequestMethod::Elicit,
                Raw::from_serialize(&form).ok(),
            ))
            .await?;
            Ok::<_, HandlerError>("asked")
        };
        let announcer = server.clone();
        let announces = move |_: Nothing, _: Context| {
            announcer.notify_resource_updated("test://x");
            async { "done" }
        };
        let server = server
            .tool("plain", "Answers", plain)
            .tool("reports", "Reports, answers", reports)
            .tool("asks", "Asks, answers", asks)
            .tool("announces", "Announces a change, answers", announces);
        ELSEWHERE.spawn(async move { server.serve(http).await });
        address
    });
    serving.await.expect("it listens")
}

/// Returns whether a client reports a failed connection with this error.
fn is_of_connection(error: &ClientError) -> bool {
    matches!(
        error.cause(),
        ClientError::ServerUnreachable { .. } | ClientError::ConnectionLost { .. }
    )
}

/// Attempts something, and again if the connection was cut: then it must succeed.
async fn attempt<T>(
    proxy: &Proxy,
    what: &str,
    attempt: impl AsyncFn() -> Result<T, ClientError>,
) -> T {
    let in_time = async || {
        tokio::time::timeout(TEST_TIMEOUT, attempt())
            .await
            .unwrap_or_else(|_| panic!("{:?}, {what}: it hangs", proxy.cut))
    };
    match in_time().await {
        Ok(outcome) => outcome,
        Err(error) => {
            assert!(
                proxy.has_cut() && is_of_connection(&error),
                "{:?}, {what}: {error:?}",
                proxy.cut
            );
            let again = in_time().await;
            again.unwrap_or_else(|error| panic!("{:?}, {what}, again: {error:?}", proxy.cut))
        }
    }
}

/// Connects, calls tools, subscribes, receives an update, lists, closes. Returns whether the cut was reached.
async fn play(server: SocketAddr, revision: Revision, cut: Cut) -> bool {
    let (proxy, address) = Proxy::start(server, cut).await;
    let path = match revision {
        Revision::V2024_11_05 => SSE_PATH,
        _ => "/mcp",
    };
    let updated = Arc::new(Notify::new());
    let connect = async || {
        let mut http = HttpSettings::default();
        http.proxy = ProxySetting::Direct;
        http.resume_delay = Duration::from_millis(1);
        http.resume_max_delay = Duration::from_millis(10);
        let notifier = updated.clone();
        Client::builder("host", "1")
            .configure(|settings| {
                settings.revisions = vec![revision];
                settings.reconnect.first_delay = Duration::from_millis(1);
                settings.reconnect.max_delay = Duration::from_millis(5);
            })
            .on_notification(move |notification| {
                if notification.method.as_str() == "notifications/resources/updated" {
                    notifier.notify_one();
                }
            })
            .on_elicit(|_| async { Ok(ElicitResult::new(ElicitAction::Accept)) })
            .connect(Address::Url(format!("http://{address}{path}"), http))
            .await
    };
    let client = attempt(&proxy, "opening", connect).await;
    let call = async |tool: &str| {
        let call = async || client.call_tool(tool, serde_json::json!({})).await;
        attempt(&proxy, tool, call).await;
    };
    call("plain").await;
    call("reports").await;
    if revision != Revision::V2024_11_05 {
        // That revision has no elicitation.
        call("asks").await;
    }
    let subscribe = async || client.subscribe("test://x").await;
    attempt(&proxy, "subscribing", subscribe).await;
    // Streams are reopened automatically, but messages sent in the meantime may be lost.
    let received = async {
        loop {
            call("announces").await;
            let update = tokio::time::timeout(Duration::from_millis(20), updated.notified());
            if update.await.is_ok() {
                break;
            }
        }
    };
    let received = tokio::time::timeout(TEST_TIMEOUT, received).await;
    received.unwrap_or_else(|_| panic!("{cut:?}: the stream never came back"));
    let list = async || client.list_tools().await;
    assert_eq!(attempt(&proxy, "listing", list).await.len(), 4);
    let closing = tokio::time::timeout(TEST_TIMEOUT, client.close()).await;
    closing.unwrap_or_else(|_| panic!("{cut:?}: it can't be closed"));
    drop(client);
    let left = async {
        proxy.all_closed().await;
        while Handle::current().metrics().num_alive_tasks() > 0 {
            tokio::task::yield_now().await;
        }
    };
    let left = tokio::time::timeout(TEST_TIMEOUT, left).await;
    left.unwrap_or_else(|_| panic!("{cut:?}: tasks or connections are left"));
    proxy.has_cut()
}

async fn play_with_every_cut(revision: Revision) {
    let server = serve().await;
    let cuts = async |place: fn(usize) -> Place| {
        let mut number = 0;
        loop {
            let cut = Cut {
                place: place(number),
                resets: number % 2 == 1,
            };
            if !play(server, revision, cut).await {
                return number;
            }
            number += 1;
        }
    };
    let to_server = cuts(|number| Place::ToServer(number * STEP)).await;
    let to_client = cuts(|number| Place::ToClient(number * STEP)).await;
    let accepted = cuts(Place::Accept).await;
    assert!(
        to_server > 20 && to_client > 20 && accepted > 1,
        "{to_server}, {to_client} and {accepted} cuts were made"
    );
}

#[runtimes::test]
async fn a_session_of_2025_11_25_survives_a_cut_connection_anywhere() {
    play_with_every_cut(Revision::V2025_11_25).await;
}

#[runtimes::test]
async fn exchanges_of_2026_07_28_survive_a_cut_connection_anywhere() {
    play_with_every_cut(Revision::V2026_07_28).await;
}

#[runtimes::test]
async fn http_sse_of_2024_11_05_survives_a_cut_connection_anywhere() {
    play_with_every_cut(Revision::V2024_11_05).await;
}
