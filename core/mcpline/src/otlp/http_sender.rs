//! Sends batches of spans with the library's own HTTP client.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderMap, Request, Response};
use mcpline_protocol::Printable;
use opentelemetry_http::{HttpClient as OtelHttpClient, HttpError};
use tokio::runtime::Handle;

use crate::error::Error;
use crate::http_client::response::BodyError;
use crate::http_client::target::Target;
use crate::http_client::{ConnectionReuse, HttpClient, HttpSettings};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};

use super::failure_logging_exporter::FailureText;

/// How long a request may take: the default of OpenTelemetry for OTLP.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a response, in bytes: it is empty, or says why spans were refused.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// How much of it an error shows, in characters.
const MAX_SHOWN_CHARS: usize = 200;

/// Sends requests on a runtime, because the exporter's thread has none.
///
/// The clients of the crate `opentelemetry-http` would add reqwest, or HTTP/2.
pub(super) struct HttpSender {
    client: Arc<HttpClient>,
    handle: Handle,
    /// The program's headers, which replace those of the environment.
    headers: HeaderMap,
    /// Of the last request.
    failure: FailureText,
    is_closed: Arc<AtomicBool>,
}

impl HttpSender {
    pub(super) fn new(
        settings: HttpSettings,
        headers: HeaderMap,
        handle: Handle,
    ) -> Result<Self, Error> {
        let settings = HttpSettings {
            headers: Vec::new(),
            #[cfg(feature = "auth")]
            auth: None,
            ..settings
        };
        let client = HttpClient::new(settings, handle.clone());
        let client = client.map_err(|error| Error::usage(error.to_string()))?;
        Ok(Self {
            client,
            handle,
            headers,
            failure: FailureText::default(),
            is_closed: Arc::default(),
        })
    }

    /// Returns where the failure of the last request is.
    pub(super) fn failure(&self) -> FailureText {
        self.failure.clone()
    }

    /// Returns the switch that makes further requests fail at once.
    pub(super) fn closing_switch(&self) -> Arc<AtomicBool> {
        self.is_closed.clone()
    }
}

impl fmt::Debug for HttpSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSender").finish_non_exhaustive()
    }
}

impl OtelHttpClient for HttpSender {
    // What the attribute `async_trait` makes of an `async fn`.
    fn send_bytes<'sender, 'future>(
        &'sender self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'future>>
    where
        'sender: 'future,
        Self: 'future,
    {
        if self.is_closed.load(Ordering::Acquire) {
            return Box::pin(std::future::ready(Err(
                "the span exporter was shut down".into()
            )));
        }
        let (client, headers) = (self.client.clone(), self.headers.clone());
        let sent = self.handle.spawn(async move {
            tokio::time::timeout(TIMEOUT, send(&client, &headers, request)).await
        });
        let failure = self.failure.clone();
        Box::pin(async move {
            let response = match sent.await? {
                Ok(response) => response,
                Err(_) => Err(format!("no response within {} s", TIMEOUT.as_secs()).into()),
            };
            match &response {
                Ok(response) if response.status().is_success() => {}
                Ok(response) => failure.set(status_text(response)),
                Err(error) => failure.set(format!("{error:#}")),
            }
            response
        })
    }
}

/// Returns the text of a response that refuses spans.
fn status_text(response: &Response<Bytes>) -> String {
    let body = String::from_utf8_lossy(response.body());
    let body: String = Printable(&body)
        .to_string()
        .chars()
        .take(MAX_SHOWN_CHARS)
        .collect();
    match body.is_empty() {
        true => format!("the collector answered {}", response.status()),
        false => format!("the collector answered {}: {body}", response.status()),
    }
}

async fn send(
    client: &HttpClient,
    own: &HeaderMap,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, HttpError> {
    let (head, body) = request.into_parts();
    let target = Target::parse(&head.uri.to_string())?;
    let mut headers: HeaderMap = head.headers;
    headers.remove(CONTENT_LENGTH);
    headers.insert(HOST, target.host.clone());
    for (name, value) in own {
        headers.insert(name, value.clone());
    }
    let headers = || headers.clone();
    // A batch that arrives twice has spans with the same ids, which collectors tolerate.
    let reuse = ConnectionReuse::Repeatable;
    let mut answer = client
        .send(head.method, &target, &headers, &body, reuse)
        .await?;
    let body = answer.collect(MAX_RESPONSE_BYTES).await;
    let body = body.map_err(|error| match error {
        BodyError::TooLong => format!("the response is longer than {MAX_RESPONSE_BYTES} bytes"),
        BodyError::Broken(reason) => format!("the response broke off: {reason}"),
    })?;
    let mut response = Response::new(body);
    *response.status_mut() = answer.head.status;
    *response.headers_mut() = answer.head.headers.clone();
    Ok(response)
}
