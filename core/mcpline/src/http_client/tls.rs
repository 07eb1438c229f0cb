//! TLS of connections, and the trusted certificates.

use std::sync::Arc;

use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::background;
use crate::client_error::ClientError;
use crate::shared_io_error::text_with_sources;

use super::settings::HttpSettings;
use super::target::Target;

/// Encrypts the connections of one client.
pub(crate) struct Tls {
    roots: Vec<CertificateDer<'static>>,
    only_tls_roots: bool,
    /// Created on first use: reading the system's roots takes milliseconds, and `http` needs none.
    connector: OnceCell<TlsConnector>,
}

impl Tls {
    /// Parses the certificates in the settings.
    ///
    /// # Errors
    ///
    /// [`ClientError::Usage`] if they contain none, or something else.
    pub(crate) fn new(settings: &HttpSettings) -> Result<Self, ClientError> {
        let roots = CertificateDer::pem_slice_iter(&settings.tls_roots)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| {
                ClientError::Usage(format!("`tls_roots`: not a valid PEM file: {error}"))
            })?;
        if roots.is_empty() && (settings.only_tls_roots || !settings.tls_roots.is_empty()) {
            return Err(ClientError::Usage(
                "`tls_roots` contains no certificates".to_owned(),
            ));
        }
        Ok(Self {
            roots,
            only_tls_roots: settings.only_tls_roots,
            connector: OnceCell::new(),
        })
    }

    /// Encrypts a connection to `target`.
    ///
    /// # Errors
    ///
    /// Why the server is not trusted, or the handshake failed.
    pub(crate) async fn encrypt(
        &self,
        stream: TcpStream,
        target: &Target,
    ) -> Result<TlsStream<TcpStream>, String> {
        let name = ServerName::try_from(target.origin.host().to_owned())
            .map_err(|error| format!("{} has no certificate: {error}", target.origin.host()))?;
        let connector = self
            .connector
            .get_or_try_init(|| self.tls_connector())
            .await?;
        let stream = connector.connect(name, stream).await;
        stream.map_err(|error| format!("TLS: {}", text_with_sources(&error)))
    }

    async fn tls_connector(&self) -> Result<TlsConnector, String> {
        let (roots, only_these) = (self.roots.clone(), self.only_tls_roots);
        // Reads files or calls the system.
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
