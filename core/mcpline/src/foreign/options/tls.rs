//! Options of TLS.

use crate::error::Error;
use crate::transport::http::Tls;

use super::options_macro::options;

options! {
    /// The certificate and the private key of a standalone server: each is PEM, or the path of a PEM file.
    #[derive(Default)]
    pub struct TlsOptions {
        certificate: String,
        key: String,
    }
    needs certificate, key;
}

impl TlsOptions {
    /// Reads the certificate and the key. Renewed files are used without a restart if both are files.
    ///
    /// # Errors
    ///
    /// As for [`Tls::from_files`].
    pub fn tls(self) -> Result<Tls, Error> {
        let Self { certificate, key } = self;
        match (is_pem(&certificate), is_pem(&key)) {
            (true, true) => Tls::from_pem(certificate, key),
            (false, false) => Tls::from_files(certificate, key),
            (true, false) => Tls::from_pem(certificate, file("key", &key)?),
            (false, true) => Tls::from_pem(file("certificate", &certificate)?, key),
        }
    }
}

impl std::fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key is secret.
        f.debug_struct("TlsOptions").finish_non_exhaustive()
    }
}

/// Whether a text is PEM. No path contains this.
fn is_pem(text: &str) -> bool {
    text.contains("-----BEGIN ")
}

fn file(option: &str, path: &str) -> Result<Vec<u8>, Error> {
    std::fs::read(path)
        .map_err(|error| Error::usage(format!("`{option}`: cannot read {path}: {error}")))
}
