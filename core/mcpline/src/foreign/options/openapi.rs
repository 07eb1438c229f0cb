//! Options of an imported HTTP API.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;
use crate::openapi::{Credential, OpenApiSettings, Proxy};

use super::options_macro::options;
use super::{set, set_seconds};

options! {
    /// [`OpenApiSettings`] from foreign code, with the URL of the document and the other documents that it refers to. The
    /// proxy is a URL, or `direct` for none.
    #[derive(Default)]
    pub struct OpenApiOptions {
        pub(crate) document_url: Option<String>,
        pub(crate) external_documents: BTreeMap<String, Value>,
        base_url: Option<String>,
        headers: Vec<(String, String)>,
        credentials: BTreeMap<String, CredentialOption>,
        names: BTreeMap<String, String>,
        resource_scheme: Option<String>,
        timeout: Option<f64>,
        max_response_bytes: Option<usize>,
        max_schema_bytes: Option<usize>,
        output_schemas: Option<bool>,
        allow_private_addresses: bool,
        proxy: Option<String>,
        tls_roots: Option<String>,
        only_tls_roots: bool,
        connect_timeout: Option<f64>,
    }
}

/// A secret, or user name and password.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a credential must be a text, or user and password"
)]
pub(crate) enum CredentialOption {
    Secret(String),
    Basic(String, String),
}

impl From<CredentialOption> for Credential {
    fn from(credential: CredentialOption) -> Self {
        match credential {
            CredentialOption::Secret(secret) => Self::Secret(secret),
            CredentialOption::Basic(username, password) => Self::Basic { username, password },
        }
    }
}

/// Omits what may be secret.
impl std::fmt::Debug for OpenApiOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenApiOptions").finish_non_exhaustive()
    }
}

impl OpenApiOptions {
    /// Refuses settings of the built-in HTTP client beside a client of the program's own, for which they would do nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): one is set.
    pub(crate) fn check_own_client(&self) -> Result<(), Error> {
        let given = [
            ("proxy", self.proxy.is_some()),
            ("tls_roots", self.tls_roots.is_some()),
            ("only_tls_roots", self.only_tls_roots),
            ("connect_timeout", self.connect_timeout.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((name, _)) => Err(Error::usage(format!(
                "`{name}` is a setting of the built-in HTTP client: configure your own client instead"
            ))),
        }
    }

    /// Sets the settings that are given.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a time is invalid.
    pub(crate) fn apply(self, settings: &mut OpenApiSettings) -> Result<(), Error> {
        settings.base_url = self.base_url;
        settings.headers = self.headers;
        for (scheme, credential) in self.credentials {
            settings.credentials =
                std::mem::take(&mut settings.credentials).with(scheme, credential.into());
        }
        settings.names = self.names;
        set(&mut settings.resource_scheme, self.resource_scheme);
        set_seconds(&mut settings.timeout, self.timeout)?;
        set(&mut settings.max_response_bytes, self.max_response_bytes);
        set(&mut settings.max_schema_bytes, self.max_schema_bytes);
        set(&mut settings.output_schemas, self.output_schemas);
        settings.allow_private_addresses = self.allow_private_addresses;
        let http = &mut settings.http;
        http.proxy = match self.proxy.as_deref() {
            None => Proxy::Environment,
            Some("direct") => Proxy::Direct,
            Some(url) => Proxy::Url(url.to_owned()),
        };
        http.tls_roots = self.tls_roots.map(String::into_bytes).unwrap_or_default();
        http.only_tls_roots = self.only_tls_roots;
        set_seconds(&mut http.connect_timeout, self.connect_timeout)
    }
}
