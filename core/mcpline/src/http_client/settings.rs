//! What a client can be told about HTTP, each with its default and the reason for it.

use std::fmt;
use std::time::Duration;

#[cfg(feature = "auth")]
use super::authorizer::Auth;
use mcpline_protocol::without_user_info;

/// How a client reaches servers over HTTP. Every field has a default that suits a server anywhere.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpSettings {
    /// Headers for every request, such as `Authorization`; none by default. Those that the transport writes itself
    /// (`Accept`, `Content-Type`, `Host`, `Mcp-…`) are refused.
    pub headers: Vec<(String, String)>,
    /// Where the tokens come from that the server wants; nowhere by default: then a refusal is an error.
    #[cfg(feature = "auth")]
    pub auth: Option<Auth>,
    /// The proxy. By default what the environment says, as for other programs.
    pub proxy: Proxy,
    /// Certificates, PEM, that are trusted beside those of the system, or instead of them; none by default. For
    /// servers with a certificate of one's own.
    pub tls_roots: Vec<u8>,
    /// Whether only `tls_roots` count. By default the system's count too.
    pub only_these_roots: bool,
    /// How long it may take to reach the server: name, connection, proxy and TLS together. 10 seconds: a system
    /// gives up only after minutes.
    pub connect_timeout: Duration,
    /// How many redirects one request may follow. 5: real servers send one.
    pub max_redirects: usize,
    /// How often in a row it is tried in vain to resume the stream of a call before the call fails. 5: with the
    /// waits between, some ten seconds.
    pub reconnect_attempts: u32,
    /// The wait before the second attempt; it doubles with each further one. 500 ms. What a server demands with
    /// `retry` is waited in any case.
    pub reconnect_first: Duration,
    /// The longest wait between attempts. 30 seconds: a server that is back is found again soon.
    pub reconnect_cap: Duration,
    /// The longest answer, and the longest event of a stream. 16 MiB: as long as a line on stdio.
    pub body_limit: usize,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            headers: Vec::new(),
            #[cfg(feature = "auth")]
            auth: None,
            proxy: Proxy::Environment,
            tls_roots: Vec::new(),
            only_these_roots: false,
            connect_timeout: Duration::from_secs(10),
            max_redirects: 5,
            reconnect_attempts: 5,
            reconnect_first: Duration::from_millis(500),
            reconnect_cap: Duration::from_secs(30),
            body_limit: 16 * 1024 * 1024,
        }
    }
}

/// Without what may be secret: the values of headers.
impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        let mut shown = f.debug_struct("HttpSettings");
        shown.field("headers", &names);
        #[cfg(feature = "auth")]
        shown.field("auth", &self.auth);
        shown
            .field("proxy", &self.proxy)
            .field("only_these_roots", &self.only_these_roots)
            .field("connect_timeout", &self.connect_timeout)
            .field("max_redirects", &self.max_redirects)
            .field("reconnect_attempts", &self.reconnect_attempts)
            .field("reconnect_first", &self.reconnect_first)
            .field("reconnect_cap", &self.reconnect_cap)
            .field("body_limit", &self.body_limit)
            .finish_non_exhaustive()
    }
}

/// Which proxy requests take.
#[derive(Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Proxy {
    /// What `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say, read once. This machine itself
    /// (`localhost`, `127.0.0.0/8`, `::1`) is always reached directly: a proxy would look for it elsewhere.
    #[default]
    Environment,
    /// None.
    Direct,
    /// This one, for everything: `http://`, `socks5://` (names resolved here) or `socks5h://` (by the proxy), with
    /// credentials where it wants them.
    Url(String),
}

/// Without what may be secret: credentials in a URL.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str("Environment"),
            Self::Direct => f.write_str("Direct"),
            Self::Url(url) => f.debug_tuple("Url").field(&without_user_info(url)).finish(),
        }
    }
}
