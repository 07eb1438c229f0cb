//! Performs the requests of authorization: metadata, registrations, tokens, keys.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use mcpline_auth::AuthError;
use mcpline_auth::fetch::{FetchMethod, FetchRequest, FetchResponse};
use mcpline_protocol::without_user_info;
use tokio::runtime::Handle;

use crate::client_error::ClientError;

use super::address_policy::AddressPolicy;
use super::client::{ConnectionReuse, HttpClient};
use super::headers::USER_AGENT_VALUE;
use super::response::BodyError;
use super::settings::HttpSettings;
use super::target::Target;

/// Maximum size of a document. Metadata and key sets have some KiB.
const MAX_BODY: usize = 1024 * 1024;

/// How long one request may take, with its redirects and its body.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of redirects of a document. Each stays at its origin.
const MAX_REDIRECTS: usize = 3;

/// Performs requests of authorization. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Fetcher {
    client: Arc<HttpClient>,
}

impl Fetcher {
    /// Creates a fetcher with the proxy and certificates of `settings`; other settings do not apply. `allow_private`
    /// allows connections to addresses that are not public, for URLs that an operator or a user has chosen.
    ///
    /// # Errors
    ///
    /// [`ClientError::Usage`] if the settings contain an invalid proxy or certificate.
    pub(crate) fn new(
        settings: &HttpSettings,
        handle: Handle,
        allow_private: bool,
    ) -> Result<Self, ClientError> {
        let settings = HttpSettings {
            headers: Vec::new(),
            auth: None,
            max_redirects: MAX_REDIRECTS,
            max_body_bytes: MAX_BODY,
            ..settings.clone()
        };
        let reach = match allow_private {
            true => AddressPolicy::Everywhere,
            false => AddressPolicy::Public,
        };
        Ok(Self {
            client: HttpClient::with_reach(settings, handle, reach)?,
        })
    }

    /// Performs one request and returns its response, whatever the status.
    ///
    /// # Errors
    ///
    /// [`AuthError::InsecureUrl`] for a URL that is neither `https` nor on this machine, [`AuthError::FetchFailed`] if
    /// there is no response, or one that is too long or redirects elsewhere.
    pub(crate) async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, AuthError> {
        let url = without_user_info(&request.url);
        let failed = |reason: String| AuthError::FetchFailed {
            url: url.clone(),
            reason,
        };
        match tokio::time::timeout(TIMEOUT, self.perform(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(FetchFailure::Auth(error))) => Err(error),
            Ok(Err(FetchFailure::Failed(reason))) => Err(failed(reason)),
            Err(_) => Err(failed(format!("no answer within {} s", TIMEOUT.as_secs()))),
        }
    }

    async fn perform(&self, request: FetchRequest) -> Result<FetchResponse, FetchFailure> {
        let target =
            Target::parse(&request.url).map_err(|error| FetchFailure::Failed(error.to_string()))?;
        if !target.origin.is_secure() {
            return Err(FetchFailure::Auth(AuthError::InsecureUrl {
                what: "URL",
                url: without_user_info(&request.url),
            }));
        }
        let headers = headers(&request, &target)?;
        let body = Bytes::from(request.body);
        let headers = || headers.clone();
        let client = &self.client;
        let method = match request.method {
            FetchMethod::Get => Method::GET,
            FetchMethod::Post => Method::POST,
        };
        // The server may be closing a connection that was idle, for example while the user was asked for consent. Codes
        // and refresh tokens must not be sent twice, so they are sent over a new connection.
        let answer = match request.is_repeatable {
            true => {
                let reuse = ConnectionReuse::Repeatable;
                let sent = client.send_authorized(method, &target, &headers, &body, &(), reuse);
                sent.await
            }
            false => client.send_afresh(method, &target, &headers, &body).await,
        };
        let mut answer = answer.map_err(|error| FetchFailure::Failed(format!("{error:#}")))?;
        let body = answer.collect(MAX_BODY).await.map_err(|error| {
            FetchFailure::Failed(match error {
                BodyError::TooLong => format!("the answer is longer than {MAX_BODY} bytes"),
                BodyError::Broken(reason) => reason,
            })
        })?;
        let headers = answer.head.headers.iter();
        let headers = headers.filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        });
        Ok(FetchResponse {
            status: answer.head.status.as_u16(),
            headers: headers.collect(),
            body,
        })
    }
}

enum FetchFailure {
    Auth(AuthError),
    Failed(String),
}

fn headers(request: &FetchRequest, target: &Target) -> Result<HeaderMap, FetchFailure> {
    let mut headers = HeaderMap::new();
    headers.insert(HOST, target.host.clone());
    headers.insert(USER_AGENT, USER_AGENT_VALUE);
    for (name, value) in &request.headers {
        let pair = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(value),
        );
        let (Ok(name), Ok(mut value)) = pair else {
            return Err(FetchFailure::Failed(format!(
                "the header {name} can't be sent"
            )));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetcher").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::super::settings::Proxy;
    use super::*;

    #[runtimes::test]
    async fn a_proxy_may_have_a_private_address_when_fetched_urls_may_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let seen = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut line = vec![0; 1024];
            let read = stream.read(&mut line).await.expect("a request");
            let refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(refusal).await.expect("sent");
            String::from_utf8_lossy(&line[..read]).into_owned()
        });
        let settings = HttpSettings {
            proxy: Proxy::Url(format!("http://localhost:{port}")),
            ..HttpSettings::default()
        };
        let fetcher = Fetcher::new(&settings, Handle::current(), false).expect("a fetcher");
        let fetched = fetcher.fetch(FetchRequest::get("https://auth.example.com/keys"));
        assert_eq!(fetched.await.expect_err("refused").code(), "fetch_failed");
        let seen = seen.await.expect("no panic");
        assert!(seen.starts_with("CONNECT auth.example.com:443 "), "{seen}");
        let private = fetcher
            .fetch(FetchRequest::get("https://10.1.2.3/keys"))
            .await;
        let error = private.expect_err("refused");
        assert!(error.to_string().contains("private address"), "{error}");
    }
}
