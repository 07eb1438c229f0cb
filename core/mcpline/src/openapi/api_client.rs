//! Sends the requests of an imported API.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use mcpline_openapi::RequestParts;
use mcpline_openapi::limits::MAX_ERROR_BODY_BYTES;
use mcpline_protocol::without_secrets;
use tokio::runtime::Handle;

use crate::client_error::ClientError;
use crate::error::Error;
use crate::http_client::answer::BodyError;
use crate::http_client::target::Target;
use crate::http_client::{HttpClient, HttpSettings, Reach, Reuse, USER_AGENT_VALUE};

use super::OpenApiSettings;

/// Headers that depend on the request or the connection.
const RESERVED: [&str; 10] = [
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Sends the requests of one import. Its connections are used by all servers that serve its tools.
pub(super) struct ApiClient {
    /// Created by the first request, which has a runtime.
    client: OnceLock<Arc<HttpClient>>,
    http: HttpSettings,
    reach: Reach,
    headers: HeaderMap,
    timeout: Duration,
    max_response_bytes: usize,
}

/// A response.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    /// `Location` of a redirect, without what may be secret.
    pub(super) location: Option<String>,
    pub(super) body: Bytes,
}

impl ApiClient {
    /// Checks the settings.
    pub(super) fn new(settings: &OpenApiSettings) -> Result<Self, Error> {
        let http = HttpSettings {
            headers: Vec::new(),
            #[cfg(feature = "auth")]
            auth: None,
            ..settings.http.clone()
        };
        if settings.timeout.is_zero() {
            return Err(Error::usage("`timeout` must be longer than 0"));
        }
        HttpClient::check(&http).map_err(|error| Error::usage(error.to_string()))?;
        let is_reach_free = settings.base_url.is_some() || settings.allow_private_addresses;
        Ok(Self {
            client: OnceLock::new(),
            http,
            reach: match is_reach_free {
                true => Reach::Everywhere,
                false => Reach::PublicDirect,
            },
            headers: headers(&settings.headers)?,
            timeout: settings.timeout,
            max_response_bytes: settings.max_response_bytes,
        })
    }

    /// Sends a request to a server, and reads the response.
    ///
    /// # Errors
    ///
    /// A message for the model: there is no response, or it is too long.
    pub(super) async fn send(
        &self,
        server: &str,
        request: RequestParts,
    ) -> Result<Response, String> {
        match tokio::time::timeout(self.timeout, self.perform(server, request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!(
                "The API did not answer within {} s (`timeout`). It may have performed the request.",
                self.timeout.as_secs_f64()
            )),
        }
    }

    async fn perform(&self, server: &str, request: RequestParts) -> Result<Response, String> {
        let target = Target::parse(&format!("{server}{}", request.path_and_query))
            .map_err(|error| error.to_string())?;
        let headers = self.headers_of(&target, &request)?;
        let headers = || headers.clone();
        let method = Method::from_bytes(request.method.as_bytes());
        let method = method.map_err(|error| error.to_string())?;
        let body = Bytes::from(request.body);
        let client = self.client()?;
        let sent = client.send(method, &target, &headers, &body, Reuse::Yes);
        let mut answer = sent.await.map_err(|error| failure(&error))?;
        let text = |name: HeaderName| {
            let value = answer.head.headers.get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let status = answer.head.status;
        let encoding = text(header::CONTENT_ENCODING);
        let (content_type, location) = (text(header::CONTENT_TYPE), text(header::LOCATION));
        if let Some(encoding) =
            encoding.filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
        {
            return Err(format!(
                "HTTP {}, but the response has the encoding {encoding:?}, which was not asked for",
                status.as_u16()
            ));
        }
        let body = match status.is_success() {
            false => answer.beginning(MAX_ERROR_BODY_BYTES + 1).await,
            true => answer.collect(self.max_response_bytes).await.map_err(|error| match error {
                BodyError::TooLong => format!(
                    "HTTP {}, but the response is longer than {} bytes (`max_response_bytes`): ask for less, for example \
                     with arguments that filter or page",
                    status.as_u16(),
                    self.max_response_bytes
                ),
                BodyError::Broken(reason) => {
                    format!("HTTP {}, but the response broke off: {reason}", status.as_u16())
                }
            })?,
        };
        Ok(Response {
            status: status.as_u16(),
            content_type,
            location: location
                .filter(|_| status.is_redirection())
                .map(|location| without_secrets(&location)),
            body,
        })
    }

    /// Returns the headers of a request: those of the author take the place of those of the operation.
    fn headers_of(&self, target: &Target, request: &RequestParts) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, target.host.clone());
        headers.insert(header::USER_AGENT, USER_AGENT_VALUE);
        headers.insert(
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("identity"),
        );
        if let Some(credentials) = &target.credentials {
            headers.insert(header::AUTHORIZATION, credentials.clone());
        }
        for (name, value) in &request.headers {
            let (name, value) = header_of(name, value)
                .ok_or_else(|| format!("The header {name:?} cannot have this value"))?;
            headers.insert(name, value);
        }
        for name in self.headers.keys() {
            headers.remove(name);
            for value in self.headers.get_all(name) {
                headers.append(name.clone(), value.clone());
            }
        }
        Ok(headers)
    }

    fn client(&self) -> Result<&Arc<HttpClient>, String> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = HttpClient::of_api(self.http.clone(), Handle::current(), self.reach);
        let client = client.map_err(|error| error.to_string())?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// Returns the message for the model of a request without a response.
fn failure(error: &ClientError) -> String {
    match error {
        ClientError::Http { status, body, .. } => {
            format!("{}: {body}", mcpline_openapi::status_text(*status))
        }
        error => format!("The API gave no response: {error:#}"),
    }
}

/// Checks the author's headers.
fn headers(given: &[(String, String)]) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::with_capacity(given.len());
    for (name, value) in given {
        let invalid = |why: &str| Error::usage(format!("`headers`: the header {name:?} {why}"));
        if RESERVED
            .iter()
            .any(|reserved| reserved.eq_ignore_ascii_case(name))
        {
            return Err(invalid("is set by the library"));
        }
        // The value may be a secret, so the error does not repeat it.
        let (name, value) = header_of(name, value)
            .ok_or_else(|| invalid("has a name or a value that HTTP does not allow"))?;
        headers.append(name, value);
    }
    Ok(headers)
}

fn header_of(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let mut value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}
