//! Stands in for TLS in builds without the cargo feature `tls`: `https` URLs are refused.

use tokio::net::TcpStream;

use crate::client_error::ClientError;

use super::settings::HttpSettings;
use super::target::Target;

/// Encrypts nothing.
pub(crate) struct Tls;

impl Tls {
    /// Checks that the settings contain no certificates.
    ///
    /// # Errors
    ///
    /// [`ClientError::Usage`] if they do.
    pub(crate) fn new(settings: &HttpSettings) -> Result<Self, ClientError> {
        if settings.only_tls_roots || !settings.tls_roots.is_empty() {
            return Err(ClientError::Usage(
                "`tls_roots` needs the cargo feature `tls`".to_owned(),
            ));
        }
        Ok(Self)
    }

    /// Refuses to connect.
    ///
    /// # Errors
    ///
    /// Always.
    pub(crate) async fn encrypt(&self, _: TcpStream, target: &Target) -> Result<TcpStream, String> {
        let host = target.origin.host();
        Err(format!("https://{host} needs the cargo feature `tls`"))
    }
}
