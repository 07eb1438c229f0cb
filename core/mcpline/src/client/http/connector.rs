//! Connections: TCP, proxies and TLS.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Uri};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tower_service::Service as _;

use crate::background;
use crate::client::alive::Tasks;
use crate::client::error::ClientError;

use super::reach::{Reach, Resolver};
use super::settings::{HttpSettings, Proxy};
use super::target::Target;

/// After how much silence the system asks whether the other end of a connection is still there. Event streams may be
/// silent for hours, and nothing else would tell that their server is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// How often it asks again before it gives the connection up, and in which steps.
const KEEP_ALIVE_TRIES: (u32, Duration) = (4, Duration::from_secs(15));

/// The biggest head of an answer, in bytes. Session ids and challenges are long, but no longer than this.
const MAX_HEAD: usize = 64 * 1024;

/// Makes connections.
pub(super) struct Connector {
    tcp: HttpConnector<Resolver>,
    to_proxy: HttpConnector<Resolver>,
    reach: Reach,
    proxies: Proxies,
    roots: Vec<CertificateDer<'static>>,
    only_these_roots: bool,
    timeout: Duration,
    tasks: Tasks,
    /// Made when it is first needed: reading the system's roots takes milliseconds, and `http` needs none.
    tls: OnceCell<TlsConnector>,
}

enum Proxies {
    Environment(Matcher),
    Direct,
    Always(Intercept),
}

/// An open connection that requests can be sent on, one at a time.
pub(super) struct Wire {
    pub(super) sender: http1::SendRequest<Full<Bytes>>,
    /// Set where an HTTP proxy reads the requests.
    pub(super) proxied: Option<Proxied>,
    /// The server's address, unless a proxy is between.
    pub(super) peer: Option<IpAddr>,
}

/// What requests hold that an HTTP proxy passes on.
#[derive(Clone)]
pub(super) struct Proxied {
    pub(super) authorization: Option<HeaderValue>,
}

impl Connector {
    pub(super) fn new(
        settings: &HttpSettings,
        reach: Reach,
        tasks: &Tasks,
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
        let roots = CertificateDer::pem_slice_iter(&settings.tls_roots)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| ClientError::Misuse(format!("tls_roots is no PEM: {error}")))?;
        if roots.is_empty() && (settings.only_these_roots || !settings.tls_roots.is_empty()) {
            return Err(ClientError::Misuse(
                "there is no certificate in tls_roots".to_owned(),
            ));
        }
        let proxies = match &settings.proxy {
            Proxy::Environment => Proxies::Environment(Matcher::from_env()),
            Proxy::Direct => Proxies::Direct,
            Proxy::Url(url) => Proxies::Always(proxy(url)?),
        };
        Ok(Self {
            tcp: tcp(reach),
            // Its host is the user's own choice.
            to_proxy: tcp(Reach::Everywhere),
            reach,
            proxies,
            roots,
            only_these_roots: settings.only_these_roots,
            timeout: settings.connect_timeout,
            tasks: tasks.clone(),
            tls: OnceCell::new(),
        })
    }

    /// Connects to where `target` is.
    ///
    /// # Errors
    ///
    /// Why it isn't possible; nothing of a request has been sent then.
    pub(super) async fn connect(&self, target: &Target) -> Result<Wire, String> {
        match tokio::time::timeout(self.timeout, self.try_connect(target)).await {
            Ok(result) => result,
            Err(_) => Err(format!(
                "no connection to {} within {} s",
                target.host.to_str().unwrap_or_default(),
                self.timeout.as_secs_f64()
            )),
        }
    }

    async fn try_connect(&self, target: &Target) -> Result<Wire, String> {
        // Names are looked at when they are resolved; addresses never are.
        self.reach.check_host(&target.origin.host)?;
        let proxy = self.proxy_for(target);
        let https = target.origin.https;
        let mut proxied = None;
        let mut tcp = self.to_proxy.clone();
        let stream = match &proxy {
            None => self
                .tcp
                .clone()
                .call(target.uri.clone())
                .await
                .map_err(|error| reason(&error))?,
            Some(proxy) => match proxy.uri().scheme_str() {
                Some("socks5" | "socks5h") => self.socks(proxy, target).await?,
                Some("http") if https => {
                    let mut tunnel = Tunnel::new(proxy.uri().clone(), tcp);
                    if let Some(authorization) = proxy.basic_auth() {
                        tunnel = tunnel.with_auth(authorization.clone());
                    }
                    let stream = tunnel.call(with_port(target)?).await;
                    stream.map_err(|error| via(proxy, &error))?
                }
                Some("http") => {
                    proxied = Some(Proxied {
                        authorization: proxy.basic_auth().cloned(),
                    });
                    let stream = tcp.call(proxy.uri().clone()).await;
                    stream.map_err(|error| via(proxy, &error))?
                }
                other => {
                    return Err(format!(
                        "a proxy with the scheme {} is not supported",
                        other.unwrap_or_default()
                    ));
                }
            },
        };
        let peer = match &proxy {
            None => stream.inner().peer_addr().ok().map(|peer| peer.ip()),
            Some(_) => None,
        };
        let sender = if https {
            let stream = self.encrypt(stream.into_inner(), target).await?;
            handshake(Box::new(TokioIo::new(stream)), &self.tasks).await?
        } else {
            handshake(Box::new(stream), &self.tasks).await?
        };
        Ok(Wire {
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
    ) -> Result<TokioIo<TcpStream>, String> {
        let local_names = proxy.uri().scheme_str() == Some("socks5");
        let mut socks =
            SocksV5::new(proxy.uri().clone(), self.to_proxy.clone()).local_dns(local_names);
        if let Some((user, password)) = proxy.raw_auth() {
            socks = socks.with_auth(user.to_owned(), password.to_owned());
        }
        let stream = socks.call(with_port(target)?).await;
        stream.map_err(|error| via(proxy, &error))
    }

    async fn encrypt(
        &self,
        stream: TcpStream,
        target: &Target,
    ) -> Result<tokio_rustls::client::TlsStream<TcpStream>, String> {
        let name = ServerName::try_from(target.origin.host.clone())
            .map_err(|error| format!("{} has no certificate: {error}", target.origin.host))?;
        let connector = self.tls.get_or_try_init(|| self.tls_connector()).await?;
        let stream = connector.connect(name, stream).await;
        stream.map_err(|error| format!("TLS: {}", reason(&error)))
    }

    async fn tls_connector(&self) -> Result<TlsConnector, String> {
        let (roots, only_these) = (self.roots.clone(), self.only_these_roots);
        // Reads files or asks the system.
        let config = background::blocking(move || tls_config(roots, only_these)).await;
        let config = config.ok_or("TLS: the certificates could not be read")??;
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

fn tls_config(
    roots: Vec<CertificateDer<'static>>,
    only_these: bool,
) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let failed = |error: tokio_rustls::rustls::Error| format!("TLS: {error}");
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    let mut config = if only_these {
        let mut store = RootCertStore::empty();
        for root in roots {
            store.add(root).map_err(failed)?;
        }
        builder.with_root_certificates(store).with_no_client_auth()
    } else {
        let verifier = Verifier::new_with_extra_roots(roots, provider).map_err(failed)?;
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// What HTTP is spoken on, encrypted or not: the machine that speaks it is compiled once for both.
trait Stream: hyper::rt::Read + hyper::rt::Write + Unpin + Send {}

impl<S: hyper::rt::Read + hyper::rt::Write + Unpin + Send> Stream for S {}

/// Begins HTTP on a stream. The connection lives in a task of its own, which ends with it.
async fn handshake(
    stream: Box<dyn Stream>,
    tasks: &Tasks,
) -> Result<http1::SendRequest<Full<Bytes>>, String> {
    let (sender, connection) = http1::Builder::new()
        .max_header_size(MAX_HEAD)
        .handshake(stream)
        .await
        .map_err(|error| reason(&error))?;
    let alive = tasks.begin();
    background::spawn_here(async move {
        let _alive = alive;
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended");
        }
    });
    Ok(sender)
}

fn proxy(url: &str) -> Result<Intercept, ClientError> {
    let any = Uri::from_static("http://example.invalid");
    Matcher::builder()
        .all(url)
        .build()
        .intercept(&any)
        .ok_or_else(|| ClientError::Misuse("the proxy's URL is invalid".to_owned()))
}

/// The target as proxies want it: they know no default ports.
fn with_port(target: &Target) -> Result<Uri, String> {
    let host = target.uri.host().unwrap_or_default();
    let mut parts = target.uri.clone().into_parts();
    let authority = format!("{host}:{}", target.origin.port);
    parts.authority = Some(authority.parse().map_err(|error| format!("{error}"))?);
    Uri::from_parts(parts).map_err(|error| error.to_string())
}

fn via(proxy: &Intercept, error: &dyn StdError) -> String {
    let place = proxy.uri().authority().map_or("", |place| place.as_str());
    format!("the proxy {place}: {}", reason(error))
}

/// An error with all that it was caused by: the outermost alone says little.
pub(super) fn reason(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.ends_with(&more) {
            let _ = write!(text, ": {more}");
        }
        source = error.source();
    }
    text
}
