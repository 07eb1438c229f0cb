//! Connections that a program opens itself, such as those to a Unix socket or with a TLS configuration of its own.

use std::fmt;
use std::io;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::authorizer::BoxFuture;
use super::stream::Stream;
use super::target::Target;

type Connect =
    dyn Fn(ConnectTarget) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> + Send + Sync;

/// A function that opens the connections of a client.
///
/// It replaces TCP, proxies and TLS: with it a client reaches a Unix socket or a server in the same process, or uses a TLS
/// configuration or a proxy that mcpline does not support. HTTP/1.1 runs on the stream that it returns, which may be any
/// [`AsyncRead`] and [`AsyncWrite`]. If the target is [`https`](ConnectTarget::is_https), the function has to encrypt the
/// stream and to check the certificate, and if it negotiates a protocol by ALPN, that must be `http/1.1`.
///
/// It is called for each connection: to the server, to the hosts it redirects to, and to the authorization server. An
/// address of a private network is refused before that where a URL comes from a server, but the function resolves host
/// names itself: whether they have such an address is for it to check.
///
/// ```no_run
/// # async fn connect() -> Result<(), mcpline::client::ClientError> {
/// use mcpline::client::{Address, Client, HttpConnector, HttpSettings};
/// use tokio::net::UnixStream;
///
/// let mut settings = HttpSettings::default();
/// settings.connector = Some(HttpConnector::new(|_| UnixStream::connect("/run/weather.sock")));
/// let client = Client::connect(Address::Url("http://localhost/mcp".to_owned(), settings)).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct HttpConnector(Arc<Connect>);

/// Where a connection is to lead.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectTarget {
    /// The host in the URL: a name or an IP address, without the brackets of IPv6.
    pub host: String,
    /// The port in the URL, or the default of its scheme.
    pub port: u16,
    /// Whether the scheme is `https`: the connection must be encrypted.
    pub is_https: bool,
}

impl HttpConnector {
    /// Connects with this function. Its errors become `ClientError::ServerUnreachable`, and so does a connection that
    /// takes longer than [`connect_timeout`](super::HttpSettings::connect_timeout).
    pub fn new<F, S>(connect: impl Fn(ConnectTarget) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Self(Arc::new(move |target| {
            let connected = connect(target);
            Box::pin(async move {
                let stream: Box<dyn Stream> = Box::new(TokioIo::new(connected.await?));
                Ok(stream)
            })
        }))
    }

    pub(super) async fn connect(&self, target: &Target) -> io::Result<Box<dyn Stream>> {
        let host = target.origin.host();
        let unbracketed = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        (self.0)(ConnectTarget {
            host: unbracketed.unwrap_or(host).to_owned(),
            port: target.origin.port(),
            is_https: target.origin.is_https(),
        })
        .await
    }
}

impl fmt::Debug for HttpConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpConnector")
    }
}
