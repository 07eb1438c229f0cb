//! Redirect URIs on this machine, and listening on them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::TcpListener;

use super::super::UserAgentError;

/// How often another free port is drawn because the first one is taken on `::1`.
const DRAWS: usize = 16;

/// The host name of a redirect URI on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// `127.0.0.1`: never another machine, whatever the resolver says (RFC 8252, 8.3).
    Address,
    /// `localhost`, which may resolve to either address.
    Name,
}

impl Host {
    fn text(self) -> &'static str {
        match self {
            Self::Address => "127.0.0.1",
            Self::Name => "localhost",
        }
    }
}

/// A redirect URI on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoopbackUri {
    pub(super) host: Host,
    /// `None` for a free port that the system chooses.
    pub(super) port: Option<u16>,
    /// The path, with the query of the redirect URI if it has one.
    pub(super) path: String,
}

impl LoopbackUri {
    /// Parses a redirect URI; `None` if it can't be listened on.
    pub(super) fn read(uri: &str) -> Option<Self> {
        let uri = fluent_uri::Uri::parse(uri).ok()?;
        let authority = uri.authority()?;
        let host = match authority.host() {
            "127.0.0.1" => Host::Address,
            name if name.eq_ignore_ascii_case("localhost") => Host::Name,
            _ => return None,
        };
        if !uri.scheme().as_str().eq_ignore_ascii_case("http")
            || authority.has_userinfo()
            || uri.has_fragment()
        {
            return None;
        }
        let port = match authority.port().map(|port| port.as_str()) {
            None | Some("") => None,
            Some(port) => Some(port.parse().ok().filter(|port| *port != 0)?),
        };
        let path = uri.path().as_str();
        let path = if path.is_empty() { "/" } else { path };
        Some(Self {
            host,
            port,
            path: match uri.query() {
                Some(query) => format!("{path}?{}", query.as_str()),
                None => path.to_owned(),
            },
        })
    }

    /// Listens on this address.
    pub(super) async fn bind(&self) -> Result<Bound, UserAgentError> {
        let mut draws = 0;
        loop {
            draws += 1;
            let first = listen(Ipv4Addr::LOCALHOST.into(), self.port.unwrap_or(0)).await?;
            let port = first
                .local_addr()
                .map_err(|source| failed(Ipv4Addr::LOCALHOST.into(), 0, source))?
                .port();
            let mut listeners = vec![first];
            if self.host == Host::Name {
                // Browsers try `::1` first. Another process that listened there would receive the response.
                match listen(Ipv6Addr::LOCALHOST.into(), port).await {
                    Ok(second) => listeners.push(second),
                    Err(UserAgentError::Listen { source, .. }) if !is_taken(&source) => {}
                    Err(_) if self.port.is_none() && draws < DRAWS => continue,
                    Err(error) => return Err(error),
                }
            }
            return Ok(Bound {
                listeners,
                authority: format!("{}:{port}", self.host.text()),
                path: self.path.clone(),
            });
        }
    }
}

/// Listeners for a redirect URI.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) listeners: Vec<TcpListener>,
    /// The expected `Host` header.
    pub(super) authority: String,
    path: String,
}

impl Bound {
    pub(super) fn redirect_uri(&self) -> String {
        format!("http://{}{}", self.authority, self.path)
    }
}

async fn listen(address: IpAddr, port: u16) -> Result<TcpListener, UserAgentError> {
    TcpListener::bind(SocketAddr::new(address, port))
        .await
        .map_err(|source| failed(address, port, source))
}

fn failed(address: IpAddr, port: u16, source: io::Error) -> UserAgentError {
    UserAgentError::Listen {
        address: SocketAddr::new(address, port).to_string(),
        source,
    }
}

/// Whether another process has the port; otherwise the machine doesn't have the address.
fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_redirect_uris_of_this_machine() {
        let read = LoopbackUri::read("http://127.0.0.1:8123/cb?x=1").expect("a place");
        assert_eq!(read.host, Host::Address);
        assert_eq!(read.port, Some(8123));
        assert_eq!(read.path, "/cb?x=1");
        let read = LoopbackUri::read("http://LocalHost").expect("a place");
        assert_eq!((read.host, read.port), (Host::Name, None));
        assert_eq!(read.path, "/");
    }

    #[test]
    fn rejects_other_redirect_uris() {
        for uri in [
            "https://127.0.0.1:1/cb",
            "http://127.0.0.2/cb",
            "http://[::1]:1/cb",
            "http://127.0.0.1.example/cb",
            "http://user@127.0.0.1/cb",
            "http://127.0.0.1:0/cb",
            "http://127.0.0.1:70000/cb",
            "http://127.0.0.1/cb#fragment",
            "com.example.app:/cb",
            "/cb",
            "http://127.0.0.1/a b",
        ] {
            assert_eq!(LoopbackUri::read(uri), None, "{uri}");
        }
    }
}
