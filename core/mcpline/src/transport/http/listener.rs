//! The standalone HTTP server: listener, connections, graceful shutdown.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::background;
use crate::error::Error;
use crate::quota::{ClientKey, ClientQuota};
use crate::server::Server;
use crate::transport::{LAST_ANSWERS, Stop, Transport};
use crate::warning_limit::warn_limited;

use super::options::HttpOptions;
use super::outgoing::{BUFFERED_BYTES, Outgoing, Pieces};
use super::service::HttpService;
use super::watched::watched;
use super::write_timeout::WriteTimeout;

/// How long to wait after `accept` failed for want of descriptors: trying again at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The longest head of a request, in bytes. A call keeps its request's headers for as long as it goes on; tokens with many
/// claims have some kilobytes, and most servers and proxies stop at 8 or 16 KiB.
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// An HTTP server that is listening but not serving yet. See [`http()`].
#[derive(Debug)]
pub struct Http {
    listener: TcpListener,
    address: SocketAddr,
    options: HttpOptions,
}

/// Binds an address for an HTTP server, such as `("127.0.0.1", 8000)`. Port 0 lets the system choose.
///
/// # Errors
///
/// [`ErrorKind::Transport`](crate::ErrorKind::Transport): the address cannot be bound.
pub async fn http(address: impl ToSocketAddrs, options: HttpOptions) -> Result<Http, Error> {
    let failed = |error| Error::transport("listen", "cannot listen on the address", error);
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Http {
        listener,
        address,
        options,
    })
}

impl Http {
    /// Uses a listener that is already bound.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transport`](crate::ErrorKind::Transport): its address is unknown.
    pub fn from_listener(listener: TcpListener, options: HttpOptions) -> Result<Self, Error> {
        let address = listener.local_addr().map_err(|error| {
            Error::transport("listen", "cannot read the address of the listener", error)
        })?;
        Ok(Self {
            listener,
            address,
            options,
        })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Transport for Http {
    async fn serve(self, server: Server, stop: Stop) -> Result<(), Error> {
        let grace = server.inner().settings.shutdown_grace;
        let bound = match self.address.ip() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => None,
            address => Some(address),
        };
        let permits = Arc::new(Semaphore::new(self.options.connections));
        let timeouts = Timeouts {
            read: self.options.read_timeout,
            write: self.options.write_timeout,
        };
        let connections = self.options.connections;
        let service = HttpService::new(server.clone(), self.options, bound, true);
        server.inner().start(&tokio::runtime::Handle::current());
        // Whatever is left of them ends with this set. To have each look for a signal would cost every request.
        let mut open_connections = JoinSet::new();
        loop {
            let permit = permits.clone().acquire_owned();
            let stream = tokio::select! {
                () = stop.stopped() => break,
                Some(_) = open_connections.join_next() => continue,
                accepted = async {
                    // Never closed while we hold it.
                    let permit = permit.await.ok();
                    (permit, self.listener.accept().await)
                } => accepted,
            };
            match stream {
                (permit, Ok((stream, remote))) => {
                    let clients = server.inner().clients();
                    let client = clients.client(ClientKey::of_address(remote.ip()));
                    let Some(open) = client.open_connection(client.share_of(connections)) else {
                        warn_limited!(
                            %remote,
                            "closed a connection: this client has too many (`connections`, `client_share`)"
                        );
                        continue;
                    };
                    let service = service.clone();
                    let served = serve_connection(stream, service, client, stop.clone(), timeouts);
                    open_connections.spawn(background::task(async move {
                        served.await;
                        drop((permit, open));
                    }));
                }
                (_, Err(error)) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.listener);
        let all = u32::try_from(connections).unwrap_or(u32::MAX);
        service.shut_down(grace).await;
        // Everything is answered. A client that doesn't read its answer is cut off.
        let _ = tokio::time::timeout(LAST_ANSWERS, permits.acquire_many(all)).await;
        Ok(())
    }
}

/// Has the system take no more of an answer than it soon sends: a client that doesn't read would have it keep megabytes, which
/// nothing accounts for. Of a listener, connections that came before it was said would not inherit it.
#[cfg(target_os = "linux")]
fn limit_unsent(stream: &TcpStream) {
    let lowat = u32::try_from(BUFFERED_BYTES).unwrap_or(u32::MAX);
    if let Err(error) = socket2::SockRef::from(stream).set_tcp_notsent_lowat(lowat) {
        tracing::debug!(%error, "the system's own buffers keep their size");
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

async fn serve_connection(
    stream: TcpStream,
    service: HttpService,
    client: Arc<ClientQuota>,
    stop: Stop,
    timeouts: Timeouts,
) {
    // Answers are written whole; waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    limit_unsent(&stream);
    let (stream, gone) = watched(stream);
    let outgoing = Arc::new(Outgoing::default());
    let service = Arc::new(service.for_connection(client.clone()));
    let stream = WriteTimeout::new(stream, timeouts.write, outgoing.clone(), client);
    let answers = outgoing.clone();
    let handler = hyper::service::service_fn(move |request| {
        let service = service.clone();
        let answers = answers.clone();
        async move {
            let answering = answers.begin().await;
            let response = service.handle(request).await;
            Ok::<_, Infallible>(response.map(|body| Pieces::of(body, answering)))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(timeouts.read)
        .max_header_size(MAX_HEADER_BYTES)
        .max_buf_size(BUFFERED_BYTES)
        // One buffer, see `outgoing`.
        .writev(false)
        .serve_connection(TokioIo::new(stream), handler);
    let connection = std::pin::pin!(connection);
    let gone = std::pin::pin!(gone);
    let served = drive(connection, gone, &stop, &outgoing).await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended");
    }
}

/// What serves a connection, and can be told to end once its answers are written.
trait Serves: Future<Output = hyper::Result<()>> {
    fn graceful_shutdown(self: Pin<&mut Self>);
}

impl<I, S, B> Serves for http1::Connection<I, S>
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

/// Serves a connection until it is over, or its client has left in the middle of an answer.
async fn drive(
    mut connection: Pin<&mut impl Serves>,
    mut gone: Pin<&mut impl Future<Output = ()>>,
    stop: &Stop,
    outgoing: &Outgoing,
) -> hyper::Result<()> {
    let mut stopped = std::pin::pin!(stop.stopped());
    let mut is_stopping = false;
    poll_fn(|cx| {
        // The connection is polled in one place: what serves it is large, and would be compiled into each.
        loop {
            match connection.as_mut().poll(cx) {
                Poll::Pending if outgoing.is_unwatched() && gone.as_mut().poll(cx).is_ready() => {
                    return Poll::Ready(Ok(()));
                }
                Poll::Pending => {}
                served => return served,
            }
            if is_stopping || stopped.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            is_stopping = true;
            connection.as_mut().graceful_shutdown();
        }
    })
    .await
}
