//! Options of an HTTP client.

use crate::client::{Address, HttpSettings, Proxy};
use crate::error::Error;
use crate::foreign::HostRequestHandlers;

#[cfg(feature = "auth")]
use super::client_auth::AuthOptions;
use super::options_macro::options;
use super::{set, set_seconds};

/// Without the feature `auth`, any value is refused.
#[cfg(not(feature = "auth"))]
type AuthOptions = serde_json::Value;

options! {
    /// [`HttpSettings`] from foreign code. The proxy is a URL, or `direct` for none.
    #[derive(Default)]
    pub struct HttpClientOptions {
        headers: Vec<(String, String)>,
        proxy: Option<String>,
        tls_roots: Option<String>,
        only_tls_roots: bool,
        connect_timeout: Option<f64>,
        max_redirects: Option<usize>,
        resume_attempts: Option<u32>,
        resume_delay: Option<f64>,
        resume_max_delay: Option<f64>,
        max_body_bytes: Option<usize>,
        auth: Option<AuthOptions>,
    }
}

/// Omits what may be secret.
impl std::fmt::Debug for HttpClientOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpClientOptions").finish_non_exhaustive()
    }
}

impl HttpClientOptions {
    /// Returns the address of the server at this URL. Authorization sends its requests to the host, listed in
    /// [`auth`](crate::foreign::auth), by `request_handlers`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a value is invalid, or authorization needs requests that the host
    /// cannot answer.
    pub fn address(
        self,
        url: String,
        request_handlers: HostRequestHandlers<'_>,
    ) -> Result<Address, Error> {
        let mut settings = HttpSettings {
            headers: self.headers,
            proxy: match self.proxy.as_deref() {
                None => Proxy::Environment,
                Some("direct") => Proxy::Direct,
                Some(url) => Proxy::Url(url.to_owned()),
            },
            tls_roots: self.tls_roots.map(String::into_bytes).unwrap_or_default(),
            only_tls_roots: self.only_tls_roots,
            ..HttpSettings::default()
        };
        set_seconds(&mut settings.connect_timeout, self.connect_timeout)?;
        set(&mut settings.max_redirects, self.max_redirects);
        set(&mut settings.reconnect_attempts, self.resume_attempts);
        set_seconds(&mut settings.resume_delay, self.resume_delay)?;
        set_seconds(&mut settings.resume_max_delay, self.resume_max_delay)?;
        set(&mut settings.max_body_bytes, self.max_body_bytes);
        authorize(&mut settings, self.auth, request_handlers)?;
        Ok(Address::Url(url, settings))
    }
}

#[cfg(feature = "auth")]
fn authorize(
    settings: &mut HttpSettings,
    auth: Option<AuthOptions>,
    request_handlers: HostRequestHandlers<'_>,
) -> Result<(), Error> {
    settings.auth = auth.map(|auth| auth.auth(request_handlers)).transpose()?;
    Ok(())
}

#[cfg(not(feature = "auth"))]
fn authorize(
    _: &mut HttpSettings,
    auth: Option<AuthOptions>,
    _: HostRequestHandlers<'_>,
) -> Result<(), Error> {
    match auth {
        Some(_) => Err(Error::usage(
            "`auth` needs the feature `auth`, which this build lacks",
        )),
        None => Ok(()),
    }
}
