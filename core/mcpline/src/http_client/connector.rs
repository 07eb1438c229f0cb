//! Connections: TCP, proxies and TLS, or those that the program opens itself.

use std::error::Error as StdError;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Uri};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service as _;

use crate::background;
use crate::background_tasks::BackgroundTasks;
use crate::client_error::ClientError;
use crate::shared_io_error::SharedIoError;

use super::address_policy::{AddressPolicy, Resolver};
use super::custom_connector::HttpConnector as CustomConnector;
use super::settings::{HttpSettings, Proxy};
use super::stream::Stream;
use super::target::Target;
use super::tls::Tls;

/// Idle time after which the system probes the other end of a connection. Event streams may be idle for hours, and
/// nothing else would reveal that their server is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// Number of probes before the connection is given up, and their interval.
const KEEP_ALIVE_TRIES: (u32, Duration) = (4, Duration::from_secs(15));

/// Maximum size of a response head in bytes. Session ids and challenges are long, but not longer than this.
const MAX_HEAD: usize = 64 * 1024;

/// Opens connections.
pub(crate) struct Connector {
    tcp: HttpConnector<Resolver>,
    to_proxy: HttpConnector<Resolver>,
    reach: AddressPolicy,
    proxies: Proxies,
    tls: Tls,
    /// Replaces all of the above.
    custom: Option<CustomConnector>,
    timeout: Duration,
    tasks: BackgroundTasks,
}

enum Proxies {
    Environment(Matcher),
    Direct,
    Always(Intercept),
}

/// An open connection, which carries one request at a time.
pub(crate) struct HttpConnection {
    pub(crate) sender: http1::SendRequest<Full<Bytes>>,
    /// Set if an HTTP proxy reads the requests.
    pub(crate) proxied: Option<ProxyRequestHeaders>,
    /// The server's address, unless a proxy is in between.
    pub(crate) peer: Option<IpAddr>,
}

/// What requests through an HTTP proxy contain.
#[derive(Clone)]
pub(crate) struct ProxyRequestHeaders {
    pub(crate) authorization: Option<HeaderValue>,
}

impl Connector {
    pub(crate) fn new(
        settings: &HttpSettings,
        reach: AddressPolicy,
        tasks: &BackgroundTasks,
    ) -> Result<Self, ClientError> {
        let tcp = |reach| {
            let mut tcp = HttpConnector::new_with_resolver(Resolver::new(reach));
            tcp.enforce_http(false);
            tcp.set_nodelay(true);
            tcp.set_keepalive(Some(KEEP_ALIVE));
            tcp.set_keepalive_retries(Some(KEEP_ALIVE_TRIES.0));
            tcp.set_keepalive_interval(Some(KEEP_ALIVE_TRIES.1));
            tcp.set_connect_timeout(Some(settings.connect_timeout));
            tcp
        };
        if settings.connector.is_some() {
            check_custom(settings)?;
        }
        let proxies = match &settings.proxy {
            Proxy::Environment => Proxies::Environment(Matcher::from_env()),
            Proxy::Direct => Proxies::Direct,
            Proxy::Url(url) => Proxies::Always(proxy(url)?),
        };
        Ok(Self {
            tcp: tcp(reach),
            // The user has chosen its host.
            to_proxy: tcp(AddressPolicy::Everywhere),
            reach,
            proxies,
            tls: Tls::new(settings)?,
            custom: settings.connector.clone(),
            timeout: settings.connect_timeout,
            tasks: tasks.clone(),
        })
    }

    /// Connects to `target`.
    ///
    /// # Errors
    ///
    /// [`ClientError::ServerUnreachable`]: nothing of a request has been sent.
    pub(crate) async fn connect(&self, target: &Target) -> Result<HttpConnection, ClientError> {
        match tokio::time::timeout(self.timeout, self.try_connect(target)).await {
            Ok(result) => result,
            Err(_) => Err(ClientError::unreachable(format!(
                "no connection to {} within {} s (`connect_timeout`)",
                target.host.to_str().unwrap_or_default(),
                self.timeout.as_secs_f64()
            ))),
        }
    }

    async fn try_connect(&self, target: &Target) -> Result<HttpConnection, ClientError> {
        // Names are checked when they are resolved, but addresses are not.
        let checked = self.reach.check_host(target.origin.host());
        checked.map_err(ClientError::unreachable)?;
        if let Some(custom) = &self.custom {
            let stream = custom.connect(target).await;
            let stream = stream.map_err(|error| ClientError::ServerUnreachable {
                reason: format!(
                    "no connection to {}",
                    target.host.to_str().unwrap_or_default()
                ),
                source: Some(error.into()),
            })?;
            return Ok(HttpConnection {
                sender: http_handshake(stream, &self.tasks).await?,
                proxied: None,
                peer: None,
            });
        }
        let proxy = self.proxy_for(target);
        if proxy.is_some() {
            let checked = self.reach.check_proxy(target.origin.host());
            checked.map_err(ClientError::unreachable)?;
        }
        let https = target.origin.is_https();
        let mut proxied = None;
        let mut tcp = self.to_proxy.clone();
        let stream = match &proxy {
            None => self
                .tcp
                .clone()
                .call(target.uri.clone())
                .await
                .map_err(|error| unreachable(&error))?,
            Some(proxy) => match proxy.uri().scheme_str() {
                Some("socks5" | "socks5h") => self.socks(proxy, target).await?,
                Some("http") if https => {
                    let mut tunnel = Tunnel::new(proxy.uri().clone(), tcp);
                    if let Some(authorization) = proxy.basic_auth() {
                        tunnel = tunnel.with_auth(authorization.clone());
                    }
                    let to = with_port(target).map_err(ClientError::unreachable)?;
                    let stream = tunnel.call(to).await;
                    stream.map_err(|error| proxy_error(proxy, &error))?
                }
                Some("http") => {
                    proxied = Some(ProxyRequestHeaders {
                        authorization: proxy.basic_auth().cloned(),
                    });
                    let stream = tcp.call(proxy.uri().clone()).await;
                    stream.map_err(|error| proxy_error(proxy, &error))?
                }
                other => {
                    return Err(ClientError::unreachable(format!(
                        "a proxy with the scheme {} is not supported",
                        other.unwrap_or_default()
                    )));
                }
            },
        };
        let peer = match &proxy {
            None => stream.inner().peer_addr().ok().map(|peer| peer.ip()),
            Some(_) => None,
        };
        let sender = if https {
            let encrypted = self.tls.encrypt(stream.into_inner(), target).await;
            let stream = encrypted.map_err(ClientError::unreachable)?;
            http_handshake(Box::new(TokioIo::new(stream)), &self.tasks).await?
        } else {
            http_handshake(Box::new(stream), &self.tasks).await?
        };
        Ok(HttpConnection {
            sender,
            proxied,
            peer,
        })
    }

    fn proxy_for(&self, target: &Target) -> Option<Intercept> {
        match &self.proxies {
            Proxies::Direct => None,
            Proxies::Environment(_) if target.origin.is_loopback() => None,
            Proxies::Environment(matcher) => matcher.intercept(&target.uri),
            Proxies::Always(proxy) => Some(proxy.clone()),
        }
    }

    async fn socks(
        &self,
        proxy: &Intercept,
        target: &Target,
    ) -> Result<TokioIo<TcpStream>, ClientError> {
        let local_names = proxy.uri().scheme_str() == Some("socks5");
        let mut socks =
            SocksV5::new(proxy.uri().clone(), self.to_proxy.clone()).local_dns(local_names);
        if let Some((user, password)) = proxy.raw_auth() {
            socks = socks.with_auth(user.to_owned(), password.to_owned());
        }
        let to = with_port(target).map_err(ClientError::unreachable)?;
        let stream = socks.call(to).await;
        stream.map_err(|error| proxy_error(proxy, &error))
    }
}

/// Starts HTTP on a stream. The connection runs in a task of its own, which ends with it.
async fn http_handshake(
    stream: Box<dyn Stream>,
    tasks: &BackgroundTasks,
) -> Result<http1::SendRequest<Full<Bytes>>, ClientError> {
    let (sender, connection) = http1::Builder::new()
        .max_header_size(MAX_HEAD)
        .handshake(stream)
        .await
        .map_err(|error| unreachable(&error))?;
    let alive = tasks.begin();
    background::spawn_here(async move {
        let _alive = alive;
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended");
        }
    });
    Ok(sender)
}

/// Refuses settings that have no effect on connections that the program opens itself.
fn check_custom(settings: &HttpSettings) -> Result<(), ClientError> {
    let unused = [
        ("proxy", matches!(settings.proxy, Proxy::Url(_))),
        ("tls_roots", !settings.tls_roots.is_empty()),
        ("only_tls_roots", settings.only_tls_roots),
    ];
    match unused.iter().find(|(_, is_set)| *is_set) {
        None => Ok(()),
        Some((name, _)) => Err(ClientError::Usage(format!(
            "`{name}` has no effect on the connections that `connector` opens"
        ))),
    }
}

fn proxy(url: &str) -> Result<Intercept, ClientError> {
    let any = Uri::from_static("http://example.invalid");
    let proxy = Matcher::builder().all(url).build().intercept(&any);
    let proxy = proxy
        .ok_or_else(|| ClientError::Usage("`proxy`: the proxy's URL is invalid".to_owned()))?;
    // The default port would be used in place of an invalid one.
    let authority = proxy.uri().authority();
    let port = authority.and_then(|authority| authority.as_str().strip_prefix(authority.host()));
    match port.and_then(|port| port.strip_prefix(':')) {
        Some(port) if !port.is_empty() && !port.parse::<u16>().is_ok_and(|port| port != 0) => {
            Err(ClientError::Usage(format!(
                "`proxy`: {port} in the proxy's URL is not a port, which is a number from 1 to 65535"
            )))
        }
        _ => Ok(proxy),
    }
}

/// Returns the target with an explicit port, which proxies require.
fn with_port(target: &Target) -> Result<Uri, String> {
    let host = target.uri.host().unwrap_or_default();
    let mut parts = target.uri.clone().into_parts();
    let authority = format!("{host}:{}", target.origin.port());
    parts.authority = Some(authority.parse().map_err(|error| format!("{error}"))?);
    Uri::from_parts(parts).map_err(|error| error.to_string())
}

fn unreachable(error: &(dyn StdError + 'static)) -> ClientError {
    let (reason, source) = SharedIoError::split(error);
    ClientError::ServerUnreachable { reason, source }
}

fn proxy_error(proxy: &Intercept, error: &(dyn StdError + 'static)) -> ClientError {
    let place = proxy.uri().authority().map_or("", |place| place.as_str());
    let (reason, source) = SharedIoError::split(error);
    let colon = if reason.is_empty() { "" } else { ": " };
    ClientError::ServerUnreachable {
        reason: format!("the proxy {place}{colon}{reason}"),
        source,
    }
}
