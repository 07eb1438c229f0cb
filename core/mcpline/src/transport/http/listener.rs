//! The standalone HTTP server: listener, connections, graceful shutdown.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs, lookup_host};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::task::coop::unconstrained;
use tokio::time::Instant;

use crate::background;
use crate::error::Error;
use crate::quota::{ClientKey, ClientQuota};
use crate::server::Server;
use crate::server::debug_mode::warn_of_address;
use crate::transport::{LAST_ANSWERS, Stop, Transport};
use crate::warning_limit::warn_limited;

use super::disconnect_watcher::{DisconnectWatcher, watched};
use super::first_requests::FIRST_REQUEST_TIMEOUT;
use super::head_timeout::HeadTimeout;
use super::hyper_buffers::{BUFFERED_BYTES, BufferShrinkTimer, RequestBody};
use super::io_threads::IoThreads;
use super::metrics;
use super::options::HttpOptions;
#[cfg(feature = "routes")]
use super::route;
use super::service::HttpService;
use super::write_backpressure::{SplitBody, WriteBackpressure};
use super::write_timeout::{Reset, WriteTimeout};

/// Delay after `accept` failed for lack of file descriptors: an immediate retry would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of connections accepted after the stop signal. Systems keep as many by default (`listen` of tokio); without a
/// limit, clients could delay the shutdown.
const MAX_ACCEPTED_BY_SYSTEM: usize = 1_024;

/// Maximum size of a request's headers in bytes. A call keeps them for as long as it lasts. Tokens with many claims
/// have some kilobytes, and most servers and proxies stop at 8 or 16 KiB.
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// An HTTP server that is listening but not serving yet. See [`http()`].
#[derive(Debug)]
pub struct Http {
    listener: TcpListener,
    address: SocketAddr,
    options: HttpOptions,
    threads: IoThreads,
    /// Whether the listener is certainly not shared with another process.
    is_own: bool,
}

/// Binds an address for an HTTP server, such as `("127.0.0.1", 8000)`. Port 0 lets the system choose.
///
/// # Errors
///
/// [`ErrorKind::Transport`](crate::ErrorKind::Transport): the address cannot be bound, or the I/O threads cannot be started.
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a path, host or origin in the options is invalid.
pub async fn http(address: impl ToSocketAddrs, mut options: HttpOptions) -> Result<Http, Error> {
    options.normalize()?;
    let resolved = lookup_host(address).await.map_err(|error| {
        Error::transport("listen", "cannot resolve the address to listen on", error)
    })?;
    let addresses: Vec<_> = resolved.collect();
    let listener = TcpListener::bind(&addresses[..]).await.map_err(|error| {
        let shown: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        let message = format!("cannot listen on {}", shown.join(" and "));
        Error::transport("listen", message, error)
    })?;
    let http = Http::from_listener(listener, options)?;
    Ok(Http {
        is_own: true,
        ..http
    })
}

impl Http {
    /// Uses a listener that is already bound.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transport`](crate::ErrorKind::Transport): its address is unknown, or the I/O threads cannot be started.
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a path, host or origin in the options is invalid.
    pub fn from_listener(listener: TcpListener, mut options: HttpOptions) -> Result<Self, Error> {
        options.normalize()?;
        let address = listener.local_addr().map_err(|error| {
            Error::transport("listen", "cannot read the address of the listener", error)
        })?;
        let threads = IoThreads::start(options.io_threads, &options.io_thread_hooks)?;
        Ok(Self {
            listener,
            address,
            options,
            threads,
            is_own: false,
        })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of the MCP endpoint at the address that it listens on, such as `http://127.0.0.1:8000/mcp`.
    pub fn url(&self) -> String {
        self.url_with(NotEncrypted::SCHEME)
    }

    /// Returns the socket that it listens on.
    #[cfg(unix)]
    pub(crate) fn socket(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.listener)
    }

    pub(crate) fn url_with(&self, scheme: &str) -> String {
        format!("{scheme}://{}{}", self.address, self.options.path)
    }

    pub(super) async fn serve_with<S: Security>(
        self,
        security: S,
        server: Server,
        stop: Stop,
    ) -> Result<(), Error> {
        #[cfg(feature = "routes")]
        route::check(&server, &self.options)?;
        metrics::check(&server, &self.options)?;
        if let Some(ready) = server.startup_message(Some(&self.url_with(S::SCHEME))) {
            tracing::info!("{ready}");
        }
        warn_of_address(&server, self.address);
        let grace = server.inner().settings.shutdown_timeout;
        let bound = match self.address.ip() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => None,
            address => Some(address),
        };
        let permits = Arc::new(Semaphore::new(self.options.max_connections));
        let timeouts = Timeouts {
            read: self.options.read_timeout,
            write: self.options.write_timeout,
        };
        let connections = self.options.max_connections;
        let runtime = tokio::runtime::Handle::current();
        let threads = self.threads;
        let service = HttpService::new(server.clone(), self.options, bound, false);
        if !threads.is_empty() {
            service.set_runtime(&runtime);
        }
        server.inner().start(&runtime);
        let serve_accepted = |open_connections: &mut JoinSet<()>,
                              permit: Option<OwnedSemaphorePermit>,
                              stream: TcpStream,
                              remote: SocketAddr| {
            let clients = server.inner().clients();
            let client = clients.client(ClientKey::of_address(remote.ip()));
            let Some(open) = client.open_connection(client.share_of(connections)) else {
                warn_limited!(
                    %remote,
                    "closed a connection: this client has too many (`max_connections`, `client_share`)"
                );
                return;
            };
            let service = service.for_connection(client.clone(), remote);
            let security = security.clone();
            let stop = stop.clone();
            let serve = move |stream| async move {
                serve_connection(stream, security, service, client, stop, timeouts).await;
                drop((permit, open));
            };
            let Some(thread) = threads.assign() else {
                open_connections.spawn(background::task(serve(stream)));
                return;
            };
            let runtime = thread.runtime.clone();
            match thread.serve(stream, serve) {
                Ok(served) => {
                    open_connections.spawn_on(background::task(served), &runtime);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot pass a connection to its thread");
                }
            }
        };
        // The remaining ones end when this set is dropped. A stop signal in each would cost every request.
        let mut open_connections = JoinSet::new();
        loop {
            let permit = permits.clone().acquire_owned();
            let stream = tokio::select! {
                () = stop.stopped() => break,
                Some(_) = open_connections.join_next() => continue,
                accepted = async {
                    // Never closed while it is held here.
                    let permit = permit.await.ok();
                    (permit, self.listener.accept().await)
                } => accepted,
            };
            match stream {
                (permit, Ok((stream, remote))) => {
                    serve_accepted(&mut open_connections, permit, stream, remote);
                }
                (_, Err(error)) => {
                    tracing::warn!(%error, "cannot accept a connection; trying again (raise the limit of open files if it is reached, or lower `max_connections`)");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        // Before the last connections are accepted, whose clients may have sent requests already.
        service.begin_stopping();
        for (stream, remote) in accepted_by_system(self.listener, self.is_own) {
            let Ok(permit) = permits.clone().try_acquire_owned() else {
                break;
            };
            serve_accepted(&mut open_connections, Some(permit), stream, remote);
        }
        let all = u32::try_from(connections).unwrap_or(u32::MAX);
        service.end_calls(grace).await;
        // Everything is answered. Clients that do not read their response are disconnected.
        let deadline = Instant::now() + LAST_ANSWERS;
        let _ = tokio::time::timeout_at(deadline, permits.acquire_many(all)).await;
        drop(open_connections);
        threads.end(deadline).await;
        Ok(())
    }
}

/// Returns the connections that the system has accepted and the server has not, and closes the listener. The system resets those
/// that it accepts after the last one here.
fn accepted_by_system(listener: TcpListener, is_own: bool) -> Vec<(TcpStream, SocketAddr)> {
    if is_own {
        ignore_new_connections(&listener);
    }
    let accept = |listener: &std::net::TcpListener| {
        let (stream, remote) = listener.accept()?;
        stream.set_nonblocking(true)?;
        Ok::<_, std::io::Error>((TcpStream::from_std(stream)?, remote))
    };
    match listener.into_std() {
        // It does not block: there is an error when there are no more.
        Ok(listener) => std::iter::from_fn(|| accept(&listener).ok())
            .take(MAX_ACCEPTED_BY_SYSTEM)
            .collect(),
        Err(error) => {
            tracing::debug!(%error, "cannot accept the last connections");
            Vec::new()
        }
    }
}

/// Lets the system ignore the first packets of further connections, so that it accepts none before the listener is closed. Their
/// clients repeat the packet after a second, find that nothing listens, and may go elsewhere: unlike a connection that is reset,
/// nothing was sent over it.
#[cfg(target_os = "linux")]
fn ignore_new_connections(listener: &TcpListener) {
    /// `BPF_RET | BPF_K` of classic BPF: returns a constant, which is how many bytes of a packet are let through.
    const RETURN_CONSTANT: u16 = 0x06;
    let none = socket2::SockFilter::new(RETURN_CONSTANT, 0, 0, 0);
    if let Err(error) = socket2::SockRef::from(listener).attach_filter(&[none]) {
        tracing::debug!(%error, "connections that arrive during the shutdown may be reset");
    }
}

#[cfg(not(target_os = "linux"))]
fn ignore_new_connections(_: &TcpListener) {}

impl Transport for Http {
    async fn serve(self, server: Server, stop: Stop) -> Result<(), Error> {
        self.serve_with(NotEncrypted, server, stop).await
    }
}

/// How the connections of a server are secured. A type parameter, so that programs without TLS contain none of its code.
pub(super) trait Security: Clone + Send + Sync + 'static {
    /// The scheme of the server's URL.
    const SCHEME: &'static str;
    /// A secured connection.
    type Stream: AsyncRead + AsyncWrite + Reset + Unpin + Send;

    /// Returns whether the connection goes on. Called first.
    fn is_admitted(&self, stream: &mut TcpStream) -> impl Future<Output = bool> + Send;

    /// Returns the secured connection, or `None` if that failed.
    fn secure(
        &self,
        stream: DisconnectWatcher,
    ) -> impl Future<Output = Option<Self::Stream>> + Send;
}

/// No security.
#[derive(Debug, Clone, Copy)]
struct NotEncrypted;

impl Security for NotEncrypted {
    const SCHEME: &'static str = "http";
    type Stream = DisconnectWatcher;

    async fn is_admitted(&self, _: &mut TcpStream) -> bool {
        true
    }

    async fn secure(&self, stream: DisconnectWatcher) -> Option<DisconnectWatcher> {
        Some(stream)
    }
}

/// Limits how many unsent bytes the system buffers: for a client that does not read it would keep megabytes, which are
/// not accounted for. Set per connection, because connections accepted earlier do not inherit it from the listener.
#[cfg(target_os = "linux")]
fn limit_unsent(stream: &TcpStream) {
    let lowat = u32::try_from(BUFFERED_BYTES).unwrap_or(u32::MAX);
    if let Err(error) = socket2::SockRef::from(stream).set_tcp_notsent_lowat(lowat) {
        tracing::debug!(%error, "cannot limit the send buffer of a connection");
    }
}

#[cfg(not(target_os = "linux"))]
fn limit_unsent(_: &TcpStream) {}

/// How long a client may take.
#[derive(Debug, Clone, Copy)]
struct Timeouts {
    read: Duration,
    write: Duration,
}

async fn serve_connection<S: Security>(
    mut stream: TcpStream,
    security: S,
    service: HttpService,
    client: Arc<ClientQuota>,
    stop: Stop,
    timeouts: Timeouts,
) {
    // Responses are written as a whole, so waiting for more data would only delay them.
    let _ = stream.set_nodelay(true);
    limit_unsent(&stream);
    let secured = async {
        if !security.is_admitted(&mut stream).await {
            return None;
        }
        let (stream, gone) = watched(stream);
        Some((security.secure(stream).await?, gone))
    };
    let secured = tokio::select! {
        biased;
        // A client that does not complete its handshake must not keep its place.
        secured = tokio::time::timeout(timeouts.read, secured) => secured,
        () = stop.stopped() => return,
    };
    let Ok(Some((stream, gone))) = secured else {
        return;
    };
    serve_stream(stream, gone, service, client, stop, timeouts).await;
}

async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Reset + Unpin,
    gone: impl Future<Output = ()>,
    service: HttpService,
    client: Arc<ClientQuota>,
    stop: Stop,
    timeouts: Timeouts,
) {
    let outgoing = Arc::new(WriteBackpressure::default());
    let service = Arc::new(service);
    let stream = WriteTimeout::new(stream, timeouts.write, outgoing.clone(), client);
    let answers = outgoing.clone();
    let handler = hyper::service::service_fn(move |request| {
        let service = service.clone();
        let answers = answers.clone();
        let answering = answers.begin();
        async move {
            answers.wait_until_unblocked().await;
            let request = request.map(|body: Incoming| RequestBody::new(body, answers));
            let response = service.handle(request).await;
            Ok::<_, Infallible>(response.map(|body| SplitBody::of(body, answering)))
        }
    });
    let mut builder = http1::Builder::new();
    builder
        // Without a timer hyper has no timeout of its own: see `head_timeout`.
        .header_read_timeout(None)
        .max_header_size(MAX_HEADER_BYTES)
        .max_buf_size(BUFFERED_BYTES)
        // A single buffer: see `write_backpressure`.
        .writev(false);
    let mut head_timeout = HeadTimeout::new(timeouts.read);
    let mut gone = std::pin::pin!(gone);
    let (mut stream, mut handler) = (TokioIo::new(stream), handler);
    loop {
        let mut connection = builder.serve_connection(stream, handler);
        let connected = Pin::new(&mut connection);
        let driven = drive(
            connected,
            gone.as_mut(),
            &stop,
            &outgoing,
            &mut head_timeout,
        )
        .await;
        match driven {
            Ok(DriveOutcome::Ended) => return,
            Ok(DriveOutcome::NoRequest) => {
                tracing::debug!("closed a connection without a request (`read_timeout`)");
                return;
            }
            Ok(DriveOutcome::KeepsUnusedBuffers) => {
                let parts = connection.into_parts();
                (stream, handler) = (parts.io, parts.service);
                stream.inner_mut().renew(&parts.read_buf);
            }
            Err(error) => {
                tracing::debug!(%error, "a connection ended");
                return;
            }
        }
    }
}

/// Why serving a connection stopped.
enum DriveOutcome {
    Ended,
    /// The next request has not come in time.
    NoRequest,
    /// It waits for a request, and its buffers are larger than necessary (`buffers`).
    KeepsUnusedBuffers,
}

/// A connection that can be asked to end once its responses are written.
trait GracefulConnection: Future<Output = hyper::Result<()>> {
    fn graceful_shutdown(self: Pin<&mut Self>);
}

impl<I, S, B> GracefulConnection for http1::Connection<I, S>
where
    S: hyper::service::HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    B: http_body::Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>> + 'static,
{
    fn graceful_shutdown(self: Pin<&mut Self>) {
        Self::graceful_shutdown(self);
    }
}

/// Serves a connection until it ends, its client leaves in the middle of a response or sends no request, or it has to get
/// new buffers.
async fn drive(
    mut connection: Pin<&mut impl GracefulConnection>,
    mut gone: Pin<&mut impl Future<Output = ()>>,
    stop: &Stop,
    outgoing: &WriteBackpressure,
    head_timeout: &mut HeadTimeout,
) -> hyper::Result<DriveOutcome> {
    // Polled once, so even if the task has used up its budget by then.
    let mut stopped = std::pin::pin!(unconstrained(stop.stopped()));
    let mut is_registered = false;
    let mut first_request = None;
    let mut renewal = BufferShrinkTimer::default();
    let mut is_stopping = false;
    poll_fn(|cx| {
        // The connection is polled in one place only: its code is large, and would be compiled into each.
        loop {
            match connection.as_mut().poll(cx) {
                Poll::Pending if outgoing.is_unwatched() && gone.as_mut().poll(cx).is_ready() => {
                    return Poll::Ready(Ok(DriveOutcome::Ended));
                }
                Poll::Pending => {}
                Poll::Ready(served) => return Poll::Ready(served.map(|()| DriveOutcome::Ended)),
            }
            if head_timeout.poll(outgoing, cx).is_ready() {
                return Poll::Ready(Ok(DriveOutcome::NoRequest));
            }
            if is_stopping {
                return Poll::Pending;
            }
            // The signal wakes this task, which is the only one that polls the connection.
            let is_stopped = match std::mem::replace(&mut is_registered, true) {
                true => stop.is_stopped(),
                false => stopped.as_mut().poll(cx).is_ready(),
            };
            if !is_stopped {
                return if outgoing.is_idle() {
                    renewal
                        .poll(&outgoing.buffers, cx)
                        .map(|()| Ok(DriveOutcome::KeepsUnusedBuffers))
                } else {
                    Poll::Pending
                };
            }
            // hyper would close a new connection, whose client may be about to send a request.
            if !outgoing.is_used() {
                let timer = first_request
                    .get_or_insert_with(|| Box::pin(tokio::time::sleep(FIRST_REQUEST_TIMEOUT)));
                ready!(timer.as_mut().poll(cx));
            }
            is_stopping = true;
            connection.as_mut().graceful_shutdown();
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;
    use crate::quota::ClientTable;

    /// A request with an empty body.
    const EMPTY: &str = "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n\
                         content-type: text/plain\r\ncontent-length: 0\r\n\r\n";

    /// A connection that is being served, with its client.
    fn served(stop: &Stop) -> (DuplexStream, Arc<ClientQuota>) {
        served_over(1 << 20, stop)
    }

    /// The same, over a connection that holds this many bytes.
    fn served_over(bytes: usize, stop: &Stop) -> (DuplexStream, Arc<ClientQuota>) {
        let (ours, theirs) = tokio::io::duplex(bytes);
        let client = ClientTable::new(1.0, 1 << 30, 8).sole_client();
        let server = Server::builder("test", "1").build().expect("valid");
        let service = HttpService::new(server, HttpOptions::default(), None, false);
        let timeouts = Timeouts {
            read: Duration::from_secs(30),
            write: Duration::from_secs(30),
        };
        let serving = serve_stream(
            theirs,
            std::future::pending(),
            service,
            client.clone(),
            stop.clone(),
            timeouts,
        );
        tokio::spawn(background::task(async move {
            use_up_budget().await;
            serving.await;
        }));
        (ours, client)
    }

    /// Uses up the budget of the task, as handlers that are ready immediately may: what is polled next does nothing.
    async fn use_up_budget() {
        poll_fn(|cx| {
            while let Poll::Ready(unit) = tokio::task::coop::poll_proceed(cx) {
                unit.made_progress();
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Reads one response with a short body, and returns it.
    async fn status(connection: &mut DuplexStream) -> String {
        let mut answer = Vec::new();
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            answer.push(connection.read_u8().await.expect("an answer"));
        }
        let head = String::from_utf8(answer).expect("text").to_lowercase();
        let length = head.split("content-length: ").nth(1).expect("a body");
        let length = length.split("\r\n").next().expect("a line");
        let mut body = vec![0; length.parse().expect("a number")];
        connection.read_exact(&mut body).await.expect("a body");
        head.lines().next().expect("a line").to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_releases_large_buffers_and_continues() {
        let stop = Stop::new();
        let (mut connection, client) = served(&stop);
        let (begun, rest) = EMPTY.split_at(20);
        for _ in 0..2 {
            let body = " ".repeat(600_000);
            let head = EMPTY
                .replace("text/plain", "application/json")
                .replace(": 0", &format!(": {}", body.len()));
            let sent = async {
                // The next request has begun when the buffers are released.
                let all = head + &body + begun;
                connection.write_all(all.as_bytes()).await.expect("open");
            };
            sent.await;
            assert_eq!(status(&mut connection).await, "http/1.1 400 bad request");
            assert!(
                client.held_bytes() > 100_000,
                "the buffers are charged: {}",
                client.held_bytes()
            );
            tokio::time::sleep(Duration::from_secs(3)).await;
            assert_eq!(client.held_bytes(), 0);
            connection.write_all(rest.as_bytes()).await.expect("open");
            assert!(status(&mut connection).await.contains("415"));
        }
        stop.stop();
        assert_eq!(connection.read(&mut [0]).await.expect("closed"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_never_ends_is_timed_out_however_large_its_buffer_is() {
        let (mut connection, client) = served(&Stop::new());
        let begun = format!("POST /mcp HTTP/1.1\r\nx: {}", "a".repeat(20_000));
        let write = connection.write_all(begun.as_bytes());
        write.await.expect("open");
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(client.held_bytes() > 20_000, "its buffer has grown");
        let mut rest = Vec::new();
        let ended = connection.read_to_end(&mut rest);
        let ended = tokio::time::timeout(Duration::from_secs(40), ended).await;
        ended.expect("it was timed out").expect("closed");
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_ends_when_the_server_stops() {
        let stop = Stop::new();
        let (mut connection, _) = served(&stop);
        let begun = Instant::now();
        connection.write_all(EMPTY.as_bytes()).await.expect("open");
        status(&mut connection).await;
        stop.stop();
        assert_eq!(connection.read(&mut [0]).await.expect("closed"), 0);
        assert_eq!(begun.elapsed().as_secs(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_is_closed() {
        let (mut connection, _) = served(&Stop::new());
        let begun = Instant::now();
        tokio::time::sleep(Duration::from_secs(20)).await;
        connection.write_all(EMPTY.as_bytes()).await.expect("open");
        status(&mut connection).await;
        assert_eq!(connection.read(&mut [0]).await.expect("closed"), 0);
        assert_eq!(begun.elapsed().as_secs(), 50);
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_read_slowly_arrives_completely() {
        let (mut connection, _) = served_over(64, &Stop::new());
        let (mut reader, mut writer) = tokio::io::split(&mut connection);
        let write = writer.write_all(EMPTY.as_bytes());
        write.await.expect("open");
        let mut response = Vec::new();
        while !response.ends_with(b"}") {
            tokio::time::sleep(Duration::from_secs(20)).await;
            let mut piece = [0; 64];
            let read = reader.read(&mut piece).await.expect("open");
            assert!(read > 0, "closed after {} bytes", response.len());
            response.extend_from_slice(&piece[..read]);
        }
        assert!(response.len() > 2 * 64, "it takes longer than the timeout");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_releases_its_buffers_after_an_unread_body() {
        let (mut connection, client) = served(&Stop::new());
        let unread = EMPTY
            .replace("POST /mcp", "DELETE /mcp")
            .replace(": 0", ": 2")
            + "{}";
        let large = EMPTY
            .replace("text/plain", "application/json")
            .replace(": 0", ": 600000")
            + &" ".repeat(600_000);
        for request in [unread, large] {
            let write = connection.write_all(request.as_bytes());
            write.await.expect("open");
            status(&mut connection).await;
        }
        assert!(client.held_bytes() > 100_000);
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(client.held_bytes(), 0);
    }
}
