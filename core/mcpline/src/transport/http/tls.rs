//! TLS of the standalone server: certificates, their renewal, and handshakes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use mcpline_runtime::clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error as TlsError, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::background;
use crate::error::Error;
use crate::shared_io_error::text_with_sources;
use crate::warning_limit::warn_limited;

use super::disconnect_watcher::DisconnectWatcher;
use super::hyper_buffers::BUFFERED_BYTES;
use super::listener::{Http, Security};
use super::write_timeout::Reset;

/// How often files are read again at most. Certificates are renewed weeks before they expire.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// How long a client may take to read the answer to an unencrypted request.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The answer to an unencrypted request.
const NOT_ENCRYPTED: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 58\r\n\
      Connection: close\r\n\r\nthis port serves HTTPS: use a URL that begins with https:\n";

/// The certificate and the private key of a standalone server: TLS 1.2 and 1.3, HTTP/1.1. See [`Http::tls`].
///
/// Cheap to clone; all clones use the same certificate.
#[derive(Clone)]
pub struct Tls {
    shared: Arc<Shared>,
    acceptor: TlsAcceptor,
}

struct Shared {
    current: Arc<CurrentCertificate>,
    /// `None`: the PEM was given as bytes, which do not change.
    files: Option<Files>,
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
    state: Mutex<FileState>,
}

struct FileState {
    /// What the files contained when they were read last, whether or not it could be used.
    read: Pem,
    /// When they were read last.
    at: Duration,
}

/// A certificate with its chain, and its private key, as PEM.
#[derive(PartialEq, Eq)]
struct Pem {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// The certificate of new connections.
struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl Tls {
    /// Uses a certificate and a private key in PEM form.
    ///
    /// - `certificate`: the server's certificate, followed by the intermediate certificates up to the authority.
    /// - `key`: its private key (PKCS #8, PKCS #1 or SEC 1), not encrypted.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): one of them is not valid PEM, or cannot be used, or the key does not
    /// belong to the certificate.
    pub fn from_pem(
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Result<Self, Error> {
        let pem = Pem {
            certificate: certificate.into(),
            key: key.into(),
        };
        Self::new(pem.parse_certified_key(None)?, None)
    }

    /// Uses a certificate and a private key in PEM files: see [`from_pem`](Self::from_pem).
    ///
    /// The files are read again when clients connect, at most every ten seconds. A renewed certificate is therefore used
    /// without a restart; connections that are open keep the old one. If the new files cannot be used, a warning says why
    /// and the old certificate stays.
    ///
    /// # Errors
    ///
    /// As for [`from_pem`](Self::from_pem), or a file cannot be read. The message names the file.
    pub fn from_files(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, Error> {
        let (certificate, key) = (certificate.into(), key.into());
        let read = Pem::read(&certificate, &key)?;
        let certified = read.parse_certified_key(Some((&certificate, &key)))?;
        let files = Files {
            certificate,
            key,
            state: Mutex::new(FileState {
                read,
                at: clock::now(),
            }),
        };
        Self::new(certified, Some(files))
    }

    fn new(certified: CertifiedKey, files: Option<Files>) -> Result<Self, Error> {
        let current = Arc::new(CurrentCertificate(RwLock::new(Arc::new(certified))));
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::usage(format!("TLS: {error}")))?
            .with_no_client_auth()
            .with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            shared: Arc::new(Shared { current, files }),
        })
    }

    /// Reads the files again if they were not read for a while.
    async fn renew(&self) {
        let Some(files) = &self.shared.files else {
            return;
        };
        if !files.claim_reload(clock::now()) {
            return;
        }
        let shared = self.shared.clone();
        // Files may be on a slow disk.
        match background::blocking(move || shared.reload()).await {
            Some(Ok(true)) => tracing::info!(
                certificate = %files.certificate.display(),
                "new connections use the renewed certificate"
            ),
            Some(Err(error)) => warn_limited!(
                "the certificate was not renewed, new connections use the old one: {error:#}"
            ),
            Some(Ok(false)) | None => {}
        }
    }
}

impl Files {
    /// Whether it is time to read the files, for one caller only.
    fn claim_reload(&self, now: Duration) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = now.saturating_sub(state.at) >= RELOAD_INTERVAL;
        if is_due {
            state.at = now;
        }
        is_due
    }
}

impl Shared {
    /// Uses what the files contain now. Returns whether it is another certificate.
    fn reload(&self) -> Result<bool, Error> {
        let Some(files) = &self.files else {
            return Ok(false);
        };
        let read = Pem::read(&files.certificate, &files.key)?;
        let mut state = files.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.read == read {
            return Ok(false);
        }
        let certified = read.parse_certified_key(Some((&files.certificate, &files.key)));
        state.read = read;
        drop(state);
        self.current.replace(certified?);
        Ok(true)
    }
}

impl Pem {
    fn read(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let read = |option: &str, path: &Path| {
            std::fs::read(path).map_err(|error| {
                Error::usage(format!(
                    "`{option}`: cannot read {}: {error}",
                    path.display()
                ))
            })
        };
        Ok(Self {
            certificate: read("certificate", certificate)?,
            key: read("key", key)?,
        })
    }

    /// Parses both. `files` are named in errors.
    fn parse_certified_key(&self, files: Option<(&Path, &Path)>) -> Result<CertifiedKey, Error> {
        let named = |path: Option<&Path>| match path {
            Some(path) => path.display().to_string(),
            None => "the value".to_owned(),
        };
        let certificate_name = named(files.map(|(certificate, _)| certificate));
        let key_name = named(files.map(|(_, key)| key));
        let chain = CertificateDer::pem_slice_iter(&self.certificate)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| {
                Error::usage(format!(
                    "`certificate`: {certificate_name} is not valid PEM: {error}"
                ))
            })?;
        if chain.is_empty() {
            return Err(Error::usage(format!(
                "`certificate`: {certificate_name} contains no PEM certificate (`-----BEGIN CERTIFICATE-----`)"
            )));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| Error::usage(self.explain_key(&key_name, &error)))?;
        CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| {
            Error::usage(match error {
                TlsError::InconsistentKeys(_) => {
                    format!("`key`: {key_name} is not the private key of the certificate")
                }
                TlsError::InvalidCertificate(_) => format!(
                    "`certificate`: the first certificate of {certificate_name} is not valid: {error}"
                ),
                error => format!("`key`: {key_name} cannot be used: {error}"),
            })
        })
    }

    fn explain_key(&self, name: &str, error: &PemError) -> String {
        const ENCRYPTED: &[u8] = b"ENCRYPTED";
        let is_encrypted = self
            .key
            .windows(ENCRYPTED.len())
            .any(|text| text == ENCRYPTED);
        match error {
            PemError::NoItemsFound if is_encrypted => {
                format!("`key`: {name} is encrypted: decrypt it, for example with `openssl pkey`")
            }
            PemError::NoItemsFound => {
                format!("`key`: {name} contains no PEM private key (`-----BEGIN PRIVATE KEY-----`)")
            }
            _ if is_encrypted => {
                format!("`key`: {name} is encrypted: decrypt it, for example with `openssl pkey`")
            }
            error => format!("`key`: {name} is not valid PEM: {error}"),
        }
    }
}

impl CurrentCertificate {
    fn replace(&self, certified: CertifiedKey) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(certified);
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Some(current.clone())
    }
}

impl fmt::Debug for CurrentCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentCertificate").finish_non_exhaustive()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.shared.files.as_ref();
        f.debug_struct("Tls")
            .field("certificate", &files.map(|files| &files.certificate))
            .finish_non_exhaustive()
    }
}

impl Security for Tls {
    const SCHEME: &'static str = "https";
    type Stream = TlsStream<DisconnectWatcher>;

    async fn is_admitted(&self, stream: &mut TcpStream) -> bool {
        self.renew().await;
        let mut first = [0];
        let begins_as_http = matches!(
            stream.peek(&mut first).await,
            // A handshake begins with 22, a request with the letter of a method.
            Ok(1) if first[0].is_ascii_alphabetic()
        );
        if begins_as_http {
            tracing::debug!("refused an unencrypted request on a TLS port");
            // It is refused either way.
            let _ = tokio::time::timeout(REFUSAL_TIMEOUT, refuse(stream)).await;
        }
        !begins_as_http
    }

    async fn secure(&self, stream: DisconnectWatcher) -> Option<Self::Stream> {
        let accept = self.acceptor.accept_with(stream, |connection| {
            // Otherwise rustls would keep 64 KiB for a client that does not read.
            connection.set_buffer_limit(Some(BUFFERED_BYTES));
        });
        match accept.await {
            Ok(stream) => Some(stream),
            Err(error) => {
                let error = text_with_sources(&error);
                tracing::debug!(error, "a TLS handshake failed");
                None
            }
        }
    }
}

/// Answers an unencrypted request.
async fn refuse(stream: &mut TcpStream) {
    if stream.write_all(NOT_ENCRYPTED).await.is_err() || stream.shutdown().await.is_err() {
        return;
    }
    // A client that is still sending would lose the answer if the connection were closed.
    let mut discarded = [0; 1024];
    while let Ok(1..) = stream.read(&mut discarded).await {}
}

impl Reset for TlsStream<DisconnectWatcher> {
    fn reset_on_close(&self) {
        self.get_ref().0.reset_on_close();
    }
}

impl Http {
    /// Encrypts the connections with TLS, for clients that use `https` URLs.
    ///
    /// The handshake must be completed within [`read_timeout`](super::HttpOptions::read_timeout), and counts as one of the
    /// [`max_connections`](super::HttpOptions::max_connections). An unencrypted request is answered with status 400.
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn tls(self, tls: Tls) -> Https {
        Https { http: self, tls }
    }
}

/// An HTTPS server that is listening but not serving yet. See [`Http::tls`].
#[derive(Debug)]
pub struct Https {
    http: Http,
    tls: Tls,
}

impl Https {
    /// Returns the address that it listens on.
    pub fn address(&self) -> std::net::SocketAddr {
        self.http.address()
    }

    /// Returns the URL of the MCP endpoint at the address that it listens on, such as `https://127.0.0.1:8443/mcp`.
    pub fn url(&self) -> String {
        self.http.url_with(Tls::SCHEME)
    }
}

impl crate::transport::Transport for Https {
    async fn serve(
        self,
        server: crate::server::Server,
        stop: crate::transport::Stop,
    ) -> Result<(), Error> {
        self.http.serve_with(self.tls, server, stop).await
    }
}
