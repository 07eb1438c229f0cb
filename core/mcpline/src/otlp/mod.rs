//! Exports spans with OTLP, for programs that have no set-up of OpenTelemetry of their own.
//!
//! The [spans](crate#cargo-features) of requests, and the program's own, go to a collector with OTLP over HTTP, in the background.
//! Programs that have set up OpenTelemetry need nothing of this: `tracing-opentelemetry` exports the spans of `mcpline` as well.

mod failure_logging_exporter;
mod http_sender;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::trace::{Config, SdkTracerProvider};
use tokio::runtime::Handle;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::error::Error;
use crate::http_client::HttpSettings;
use crate::http_client::target::Target;
use crate::open_telemetry::RequestSampler;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};

use failure_logging_exporter::{FailureLoggingExporter, FailureText};
use http_sender::HttpSender;

/// Path of spans at a collector (OTLP, "OTLP/HTTP Request").
const TRACES_PATH: &str = "v1/traces";

/// Where spans are exported to, and in whose name.
///
/// What is left out is read from the environment variables that all SDKs of OpenTelemetry read; without those it has the
/// default values of OpenTelemetry. Also read are `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_…` and
/// `OTEL_EXPORTER_OTLP_COMPRESSION`.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct OtlpSettings {
    /// URL of the collector, without the path of spans. Default: `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` (with the path) or
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`, else `http://localhost:4318`.
    pub endpoint: Option<String>,
    /// Headers of the requests, such as a key for the collector. Default: `OTEL_EXPORTER_OTLP_HEADERS`.
    pub headers: Vec<(String, String)>,
    /// Name of the program in traces (`service.name`). Default: `OTEL_SERVICE_NAME`.
    pub service_name: Option<String>,
    /// How the collector is reached: proxy, certificates, timeouts. Its headers are not sent.
    pub http: HttpSettings,
}

/// Omits what may be secret: the values of headers, and credentials in the URL.
impl std::fmt::Debug for OtlpSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        let endpoint = self.endpoint.as_deref();
        f.debug_struct("OtlpSettings")
            .field("endpoint", &endpoint.map(mcpline_protocol::without_secrets))
            .field("headers", &names)
            .field("service_name", &self.service_name)
            .finish_non_exhaustive()
    }
}

/// Exports spans with OTLP over HTTP, in batches, from a thread of its own.
///
/// Batches that fail are logged as warnings. Their spans are lost, as are those that the collector refuses one by one (partial success), and so are those that end while 2,048 others wait
/// (`OTEL_BSP_MAX_QUEUE_SIZE`).
///
/// ```no_run
/// use mcpline::otlp::{OtlpExporter, OtlpSettings};
/// use tracing_subscriber::layer::SubscriberExt as _;
/// use tracing_subscriber::util::SubscriberInitExt as _;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let exporter = OtlpExporter::start(OtlpSettings::default())?;
/// tracing_subscriber::registry().with(exporter.layer()).init();
/// // … serve …
/// exporter.shut_down().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct OtlpExporter {
    provider: SdkTracerProvider,
    sampler: RequestSampler,
    /// Of the last batch that was lost.
    failure: FailureText,
    /// Makes further requests fail at once.
    is_closed: Arc<AtomicBool>,
}

impl OtlpExporter {
    /// Starts the exporter. Its requests run on the current runtime of tokio, which has to last as long as spans are exported.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a setting or an environment variable is invalid, or there is no runtime.
    pub fn start(settings: OtlpSettings) -> Result<Self, Error> {
        let handle = Handle::try_current()
            .map_err(|_| Error::usage("the span exporter must be started in a tokio runtime"))?;
        let mut headers = headers(&settings.headers)?;
        let endpoint = match &settings.endpoint {
            Some(endpoint) => Some(traces_url(endpoint, &mut headers)?),
            None => None,
        };
        let sender = HttpSender::new(settings.http, headers, handle)?;
        let (attempt, failure) = (sender.failure(), FailureText::default());
        let is_closed = sender.closing_switch();
        let mut exporter = SpanExporter::builder().with_http().with_http_client(sender);
        if let Some(endpoint) = endpoint {
            exporter = exporter.with_endpoint(endpoint);
        }
        // Without the text of the error, which may have secrets of a URL.
        let exporter = exporter.build().map_err(|_| {
            Error::usage("spans cannot be exported: an environment variable (`OTEL_EXPORTER_OTLP_…`) is invalid")
        })?;
        let exporter = FailureLoggingExporter::new(exporter, attempt, failure.clone());
        // Reads the environment as well.
        let mut resource = Resource::builder();
        if let Some(name) = settings.service_name {
            resource = resource.with_service_name(name);
        }
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build());
        // Also from the environment.
        let sampler = RequestSampler::of(Config::default().sampler);
        let provider = sampler.configure(provider).build();
        Ok(Self {
            provider,
            sampler,
            failure,
            is_closed,
        })
    }

    /// Returns the layer that takes spans from `tracing`: those of `mcpline` (target `mcpline::spans`, level INFO) and all others
    /// that the program makes. Add it to the program's subscriber, with a filter if other spans are to be left out.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        // What the semantic conventions do not have would make more than half of each span.
        tracing_opentelemetry::layer()
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_tracer(self.provider.tracer("mcpline"))
            .with_filter(self.sampler.clone())
    }

    /// Sends the spans that have ended.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transport`](crate::ErrorKind::Transport): the collector did not take them.
    pub async fn flush(&self) -> Result<(), Error> {
        let exporter = self.clone();
        run_blocking(move || {
            exporter.failure.take();
            exporter.export_outcome(exporter.provider.force_flush())
        })
        .await
    }

    /// Sends the spans that have ended, and ends the exporter and its thread. Later spans are dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transport`](crate::ErrorKind::Transport): the collector did not take them.
    pub async fn shut_down(self) -> Result<(), Error> {
        run_blocking(move || self.shut_down_here()).await
    }

    /// Like [`shut_down`](Self::shut_down), but blocks this thread, which must not be one of the runtime.
    pub(crate) fn shut_down_here(self) -> Result<(), Error> {
        self.failure.take();
        let done = self.provider.shutdown();
        self.is_closed.store(true, Ordering::Release);
        self.export_outcome(done)
    }

    fn export_outcome(&self, done: Result<(), OTelSdkError>) -> Result<(), Error> {
        let failure = self.failure.take().map(std::io::Error::other);
        failure
            .map_or(Ok(()), Err)
            .and(done.map_err(std::io::Error::other))
            .map_err(|error| Error::transport("export spans", "spans were not exported", error))
    }
}

/// Waits for the exporter's thread, whose requests need a thread of the runtime.
async fn run_blocking(
    work: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> Result<(), Error> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| {
            let error = std::io::Error::from(error);
            Err(Error::transport(
                "export spans",
                "spans were not exported",
                error,
            ))
        })
}

/// Checks the program's headers.
fn headers(given: &[(String, String)]) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::with_capacity(given.len());
    for (name, value) in given {
        let key = HeaderName::from_bytes(name.as_bytes()).ok();
        let pair = key.zip(HeaderValue::from_bytes(value.as_bytes()).ok());
        // The value may be a secret, so the error does not repeat it.
        let (key, mut value) = pair.ok_or_else(|| {
            Error::usage(format!(
                "`headers`: the header {name:?} has a name or a value that HTTP does not allow"
            ))
        })?;
        value.set_sensitive(true);
        headers.append(key, value);
    }
    Ok(headers)
}

/// Returns the URL of spans at a collector. Credentials in the URL become a header.
fn traces_url(endpoint: &str, headers: &mut HeaderMap) -> Result<String, Error> {
    // Without the value, which may have secrets in any form.
    let unusable = |reason: &str| {
        Error::usage(format!(
            "`endpoint` must be the URL of a collector, such as \"http://localhost:4318\"{reason}"
        ))
    };
    let target = Target::parse(endpoint).map_err(|_| unusable(""))?;
    if target.uri.query().is_some() || endpoint.contains('#') {
        return Err(unusable(", and this one has a query or a fragment"));
    }
    if let Some(credentials) = target.credentials {
        headers.entry(AUTHORIZATION).or_insert(credentials);
    }
    let base = target.uri.to_string();
    Ok(format!("{}/{TRACES_PATH}", base.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traces_url(endpoint: &str) -> Result<String, Error> {
        super::traces_url(endpoint, &mut HeaderMap::new())
    }

    #[test]
    fn credentials_of_the_endpoint_become_a_header() {
        let mut headers = HeaderMap::new();
        let url = super::traces_url("https://user:word@collector.example", &mut headers);
        assert_eq!(url.unwrap(), "https://collector.example/v1/traces");
        assert_eq!(headers[AUTHORIZATION], "Basic dXNlcjp3b3Jk");
        for endpoint in [
            "http://user:word@bad host",
            "http://host?key=word",
            "user:word@host",
        ] {
            let refused = traces_url(endpoint).unwrap_err().to_string();
            assert!(!refused.contains("word"), "{refused}");
        }
    }

    #[test]
    fn the_path_of_spans_is_added_to_the_endpoint() {
        for endpoint in ["http://localhost:4318", "http://localhost:4318/"] {
            assert_eq!(
                traces_url(endpoint).unwrap(),
                "http://localhost:4318/v1/traces"
            );
        }
        assert_eq!(
            traces_url("HTTPS://collector.example/otlp").unwrap(),
            "https://collector.example/otlp/v1/traces"
        );
        let refused = traces_url("localhost:4318").unwrap_err();
        assert!(
            refused.to_string().contains("`endpoint` must be the URL"),
            "{refused}"
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        let settings = OtlpSettings {
            endpoint: Some("https://user:word@collector.example".to_owned()),
            headers: vec![("api-key".to_owned(), "hidden".to_owned())],
            ..OtlpSettings::default()
        };
        let shown = format!("{settings:?}");
        assert!(shown.contains("api-key"), "{shown}");
        assert!(
            !shown.contains("hidden") && !shown.contains("word"),
            "{shown}"
        );
    }
}
