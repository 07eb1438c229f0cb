//! Sends the requests of an imported API.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use mcpline_openapi::RequestParts;
use mcpline_openapi::limits::MAX_ERROR_BODY_BYTES;
use mcpline_protocol::without_secrets;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::client_error::ClientError;
use crate::error::Error;
use crate::http_client::response::BodyError;
use crate::http_client::target::Target;
use crate::http_client::{
    AddressPolicy, ConnectionReuse, HttpClient, HttpSettings, USER_AGENT_VALUE,
};
use crate::server::{Context, HandlerError};

use super::OpenApiSettings;
use super::failure::failed;
use super::http_client::{ApiHttpClient, ResponseBodyError};

/// In place of a timeout that no clock can express.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

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
    transport: Transport,
    headers: HeaderMap,
    timeout: Duration,
    max_response_bytes: usize,
}

/// What sends the requests.
enum Transport {
    BuiltIn {
        /// Created by the first request, which has a runtime.
        client: OnceLock<Arc<HttpClient>>,
        http: Box<HttpSettings>,
        reach: AddressPolicy,
    },
    /// The client of the program.
    Own(Arc<dyn ApiHttpClient>),
}

/// What a client of the program's own may leave out of a body, because it is of no use. In the extensions of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    /// Of a response that succeeds, in bytes. A longer one is refused.
    pub(crate) success: usize,
    /// Of an error.
    pub(crate) error: usize,
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
        if settings.timeout.is_zero() {
            return Err(Error::usage("`timeout` must be longer than 0"));
        }
        Ok(Self {
            transport: match &settings.http_client {
                Some(client) => own_transport(settings, client)?,
                None => built_in_transport(settings)?,
            },
            headers: headers(&settings.headers)?,
            timeout: settings.timeout,
            max_response_bytes: settings.max_response_bytes,
        })
    }

    /// Returns when a request that begins now has to end.
    pub(super) fn deadline(&self) -> Instant {
        let now = Instant::now();
        // A timeout that no clock can express has the effect of none.
        now.checked_add(self.timeout)
            .unwrap_or_else(|| now + MAX_TIMEOUT)
    }

    /// Sends a request to a server, and reads the response.
    ///
    /// # Errors
    ///
    /// The outcome of the call: there is no response, or it is too long.
    pub(super) async fn send(
        &self,
        context: &Context,
        server: &str,
        request: RequestParts,
        deadline: Instant,
    ) -> Result<Response, HandlerError> {
        match tokio::time::timeout_at(deadline, self.perform(context, server, request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(HandlerError::Tool(format!(
                "The API did not answer within {} s (`timeout`). It may have performed the request.",
                self.timeout.as_secs_f64()
            ))),
        }
    }

    async fn perform(
        &self,
        context: &Context,
        server: &str,
        request: RequestParts,
    ) -> Result<Response, HandlerError> {
        let target = Target::parse(&format!("{server}{}", request.path_and_query))
            .map_err(|error| HandlerError::Tool(error.to_string()))?;
        let headers = self
            .headers_of(&target, &request)
            .map_err(HandlerError::Tool)?;
        let method = Method::from_bytes(request.method.as_bytes());
        let method = method.map_err(|error| HandlerError::Tool(error.to_string()))?;
        let body = Bytes::from(request.body);
        match &self.transport {
            Transport::BuiltIn {
                client,
                http,
                reach,
            } => {
                let client = built_in_client(client, http, *reach).map_err(HandlerError::Tool)?;
                let sent = self.send_built_in(client, method, &target, headers, body);
                sent.await.map_err(HandlerError::Tool)
            }
            Transport::Own(client) => {
                let mut request = Request::new(body);
                *request.method_mut() = method;
                *request.uri_mut() = target.uri;
                *request.headers_mut() = headers;
                self.send_own(context, &**client, request).await
            }
        }
    }

    async fn send_built_in(
        &self,
        client: &Arc<HttpClient>,
        method: Method,
        target: &Target,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, String> {
        let headers = || headers.clone();
        let sent = client.send(method, target, &headers, &body, ConnectionReuse::Yes);
        let mut answer = sent.await.map_err(|error| failure(&error))?;
        let status = answer.head.status;
        let head = Response::head(status, &answer.head.headers)?;
        let body = match status.is_success() {
            false => answer.read_beginning(MAX_ERROR_BODY_BYTES + 1).await,
            true => answer
                .collect(self.max_response_bytes)
                .await
                .map_err(|error| match error {
                    BodyError::TooLong => self.too_long(status),
                    BodyError::Broken(reason) => {
                        format!("{}: {reason}", truncated_response_error(status))
                    }
                })?,
        };
        Ok(Response { body, ..head })
    }

    async fn send_own(
        &self,
        context: &Context,
        client: &dyn ApiHttpClient,
        mut request: Request<Bytes>,
    ) -> Result<Response, HandlerError> {
        request.extensions_mut().insert(context.clone());
        request.extensions_mut().insert(BodyLimits {
            success: self.max_response_bytes,
            error: MAX_ERROR_BODY_BYTES,
        });
        let (head, body) = match client.send(request).await {
            Ok(response) => response.into_parts(),
            Err(error) => {
                let message = "The API gave no response: the HTTP client failed".to_owned();
                return Err(failed(context, message, error));
            }
        };
        let status = head.status;
        let head = Response::head(status, &head.headers).map_err(HandlerError::Tool)?;
        let body = match status.is_success() {
            false => body.read_beginning(MAX_ERROR_BODY_BYTES + 1).await,
            true => match body.collect(self.max_response_bytes).await {
                Ok(body) => body,
                Err(ResponseBodyError::TooLong) => {
                    return Err(HandlerError::Tool(self.too_long(status)));
                }
                Err(ResponseBodyError::Broken(error)) => {
                    return Err(failed(context, truncated_response_error(status), error));
                }
            },
        };
        Ok(Response { body, ..head })
    }

    fn too_long(&self, status: StatusCode) -> String {
        format!(
            "HTTP {}, but the response is longer than {} bytes (`max_response_bytes`): ask for less, for example with \
             arguments that filter or page",
            status.as_u16(),
            self.max_response_bytes
        )
    }

    /// Returns the headers of a request: those of the author take the place of those of the operation.
    fn headers_of(&self, target: &Target, request: &RequestParts) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        // A client of the program's own sets these itself.
        if let Transport::BuiltIn { .. } = self.transport {
            headers.insert(header::HOST, target.host.clone());
            headers.insert(header::USER_AGENT, USER_AGENT_VALUE);
            headers.insert(
                header::ACCEPT_ENCODING,
                HeaderValue::from_static("identity"),
            );
        }
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
}

impl Response {
    /// Reads the head of a response.
    ///
    /// # Errors
    ///
    /// The body is encoded.
    fn head(status: StatusCode, headers: &HeaderMap) -> Result<Self, String> {
        let text = |name: HeaderName| {
            let value = headers.get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let encoding = text(header::CONTENT_ENCODING);
        if let Some(encoding) =
            encoding.filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
        {
            return Err(format!(
                "HTTP {}, but the response has the encoding {encoding:?}, which was not asked for",
                status.as_u16()
            ));
        }
        Ok(Self {
            status: status.as_u16(),
            content_type: text(header::CONTENT_TYPE),
            location: text(header::LOCATION)
                .filter(|_| status.is_redirection())
                .map(|location| without_secrets(&location)),
            body: Bytes::new(),
        })
    }
}

fn built_in_transport(settings: &OpenApiSettings) -> Result<Transport, Error> {
    let http = HttpSettings {
        headers: Vec::new(),
        #[cfg(feature = "auth")]
        auth: None,
        ..settings.http.clone()
    };
    HttpClient::check(&http).map_err(|error| Error::usage(error.to_string()))?;
    let is_reach_free = settings.base_url.is_some() || settings.allow_private_addresses;
    Ok(Transport::BuiltIn {
        client: OnceLock::new(),
        http: Box::new(http),
        reach: match is_reach_free {
            true => AddressPolicy::Everywhere,
            false => AddressPolicy::PublicDirect,
        },
    })
}

/// Refuses a client of the program's own for the servers that a document names: their addresses cannot be checked.
fn own_transport(
    settings: &OpenApiSettings,
    client: &Arc<dyn ApiHttpClient>,
) -> Result<Transport, Error> {
    if settings.base_url.is_none() && !settings.allow_private_addresses {
        return Err(Error::usage(
            "an HTTP client of your own needs `base_url`: the addresses of the servers that the document names are not \
             checked; to send requests to them all the same, set `allow_private_addresses`",
        ));
    }
    Ok(Transport::Own(client.clone()))
}

fn built_in_client<'c>(
    client: &'c OnceLock<Arc<HttpClient>>,
    http: &HttpSettings,
    reach: AddressPolicy,
) -> Result<&'c Arc<HttpClient>, String> {
    if let Some(client) = client.get() {
        return Ok(client);
    }
    let created = HttpClient::of_api(http.clone(), Handle::current(), reach);
    let created = created.map_err(|error| error.to_string())?;
    Ok(client.get_or_init(|| created))
}

fn truncated_response_error(status: StatusCode) -> String {
    format!("HTTP {}, but the response broke off", status.as_u16())
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
