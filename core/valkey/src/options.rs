//! Options of the connection.

use std::time::Duration;

use crate::error::ValkeyError;

/// Options of the shared state. All have production-safe defaults.
#[derive(Clone)]
#[non_exhaustive]
pub struct ValkeyOptions {
    /// The first part of all keys. Services that share one Valkey need different ones. It has 1 to 64 characters, none
    /// of which is `{` or `}`. Default: `mcpline`.
    pub key_prefix: String,
    /// How long to wait for a connection, and for the answer to a command. An operation that connects first may take
    /// twice as long. At least one millisecond. Default: 2 s.
    pub timeout: Duration,
    /// Certificates of the authorities that may sign the server's certificate, as PEM. Default: those that the system
    /// trusts.
    #[cfg(feature = "tls")]
    pub tls_roots: Option<Vec<u8>>,
    /// The client's certificate chain and its private key, as PEM. Default: none.
    #[cfg(feature = "tls")]
    pub tls_identity: Option<TlsIdentity>,
    /// The user name at sentinels. Default: none. The user and password of the URL are for the server.
    #[cfg(feature = "sentinel")]
    pub sentinel_username: Option<String>,
    /// The password at sentinels. Default: none.
    #[cfg(feature = "sentinel")]
    pub sentinel_password: Option<String>,
}

/// A client's certificate and its key.
#[cfg(feature = "tls")]
#[derive(Clone)]
pub struct TlsIdentity {
    /// The certificate chain, as PEM.
    pub certificate: Vec<u8>,
    /// The private key, as PEM.
    pub key: Vec<u8>,
}

#[cfg(feature = "tls")]
impl std::fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}

impl Default for ValkeyOptions {
    fn default() -> Self {
        Self {
            key_prefix: "mcpline".to_owned(),
            timeout: Duration::from_secs(2),
            #[cfg(feature = "tls")]
            tls_roots: None,
            #[cfg(feature = "tls")]
            tls_identity: None,
            #[cfg(feature = "sentinel")]
            sentinel_username: None,
            #[cfg(feature = "sentinel")]
            sentinel_password: None,
        }
    }
}

/// Without the password.
impl std::fmt::Debug for ValkeyOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("ValkeyOptions");
        shown
            .field("key_prefix", &self.key_prefix)
            .field("timeout", &self.timeout);
        #[cfg(feature = "tls")]
        shown
            .field("tls_roots", &self.tls_roots.as_ref().map(Vec::len))
            .field("tls_identity", &self.tls_identity);
        #[cfg(feature = "sentinel")]
        shown.field("sentinel_username", &self.sentinel_username);
        shown.finish_non_exhaustive()
    }
}

/// Maximum length of a key prefix. Each key of each session begins with it.
const MAX_PREFIX: usize = 64;

impl ValkeyOptions {
    pub(crate) fn check(&self) -> Result<(), ValkeyError> {
        let prefix = &self.key_prefix;
        if prefix.is_empty() || prefix.len() > MAX_PREFIX || prefix.contains(['{', '}']) {
            return Err(ValkeyError::InvalidOption {
                option: "key_prefix",
                reason: format!("must have 1 to {MAX_PREFIX} bytes, none of them `{{` or `}}`"),
            });
        }
        if self.timeout < Duration::from_millis(1) {
            return Err(ValkeyError::InvalidOption {
                option: "timeout",
                reason: "must be at least one millisecond".to_owned(),
            });
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "sentinel"))]
mod tests {
    use super::*;

    #[test]
    fn debug_output_has_no_password() {
        let options = ValkeyOptions {
            sentinel_username: Some("reader".to_owned()),
            sentinel_password: Some("secret".to_owned()),
            ..ValkeyOptions::default()
        };
        let shown = format!("{options:?}");
        assert!(shown.contains("reader"), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
