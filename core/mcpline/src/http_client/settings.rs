//! HTTP settings of a client, with their defaults and the reasons for them.

use std::fmt;
use std::time::Duration;

#[cfg(feature = "auth")]
use super::authorizer::Auth;
use super::custom_connector::HttpConnector;
use mcpline_protocol::without_user_info;

/// How a client reaches servers over HTTP.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpSettings {
    /// Headers for every request, such as `Authorization`. Default: none. Headers that the transport sets itself
    /// (`Accept`, `Content-Type`, `Host`, `Mcp-…`) are rejected.
    pub headers: Vec<(String, String)>,
    /// Source of access tokens. Default: `None`; a server that requires authorization then causes an error.
    #[cfg(feature = "auth")]
    pub auth: Option<Auth>,
    /// The proxy. Default: from the environment variables.
    pub proxy: Proxy,
    /// Trusted certificates in PEM, in addition to those of the system, or instead of them. Default: none. For servers
    /// with private certificates.
    pub tls_roots: Vec<u8>,
    /// Whether only `tls_roots` are trusted. Default: `false`, the system's certificates are trusted too.
    pub only_tls_roots: bool,
    /// Opens the connections in place of TCP, proxies and TLS. Default: `None`.
    pub connector: Option<HttpConnector>,
    /// How long connecting may take: name resolution, connection, proxy and TLS together. Default: 10 seconds, because
    /// systems give up only after minutes.
    pub connect_timeout: Duration,
    /// Maximum number of redirects of one request. Default: 5.
    pub max_redirects: usize,
    /// Maximum number of failed attempts in a row to resume the stream of a call before the call fails. Default: 5,
    /// about ten seconds with the delays.
    pub reconnect_attempts: u32,
    /// Delay before the second attempt to resume a stream; doubled before each further one. Default: 500 ms. If the
    /// server requests a delay with `retry`, the client waits at least that long.
    pub resume_delay: Duration,
    /// Maximum delay between attempts to resume a stream. Default: 30 seconds.
    pub resume_max_delay: Duration,
    /// Maximum size of a response, and of an event of a stream, in bytes. Default: 16 MiB, as for a line on stdio.
    pub max_body_bytes: usize,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            headers: Vec::new(),
            #[cfg(feature = "auth")]
            auth: None,
            proxy: Proxy::Environment,
            tls_roots: Vec::new(),
            only_tls_roots: false,
            connector: None,
            connect_timeout: Duration::from_secs(10),
            max_redirects: 5,
            reconnect_attempts: 5,
            resume_delay: Duration::from_millis(500),
            resume_max_delay: Duration::from_secs(30),
            max_body_bytes: 16 * 1024 * 1024,
        }
    }
}

/// Omits what may be secret: the values of headers.
impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        let mut shown = f.debug_struct("HttpSettings");
        shown.field("headers", &names);
        #[cfg(feature = "auth")]
        shown.field("auth", &self.auth);
        shown
            .field("proxy", &self.proxy)
            .field("only_tls_roots", &self.only_tls_roots)
            .field("connector", &self.connector)
            .field("connect_timeout", &self.connect_timeout)
            .field("max_redirects", &self.max_redirects)
            .field("reconnect_attempts", &self.reconnect_attempts)
            .field("resume_delay", &self.resume_delay)
            .field("resume_max_delay", &self.resume_max_delay)
            .field("max_body_bytes", &self.max_body_bytes)
            .finish_non_exhaustive()
    }
}

/// Proxy for requests.
#[derive(Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Proxy {
    /// The proxy in `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, read once. Addresses of this machine
    /// (`localhost`, `127.0.0.0/8`, `::1`) are always reached directly.
    #[default]
    Environment,
    /// No proxy.
    Direct,
    /// This proxy for all requests: `http://`, `socks5://` (names are resolved by the client) or `socks5h://` (by the
    /// proxy), with credentials if required.
    Url(String),
}

/// Omits what may be secret: credentials in a URL.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str("Environment"),
            Self::Direct => f.write_str("Direct"),
            Self::Url(url) => f.debug_tuple("Url").field(&without_user_info(url)).finish(),
        }
    }
}
