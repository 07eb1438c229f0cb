//! Exports spans with OTLP, for programs that have no set-up of OpenTelemetry of their own.
//!
//! The [spans](crate#cargo-features) of requests, and the program's own, go to a collector with OTLP over HTTP, in the background.
//! Programs that have set up OpenTelemetry need nothing of this: `tracing-opentelemetry` exports the spans of `mcpline` as well.

mod http_sender;

use std::collections::HashMap;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::error::Error;
use crate::http_client::HttpSettings;

use http_sender::{HttpSender, LastFailure};

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
/// Failures are logged as warnings. Spans of batches that fail are lost, and so are those that end while 2,048 others wait
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
    failure: LastFailure,
}

impl OtlpExporter {
    /// Starts the exporter. Its requests run on the current runtime of tokio, which has to last as long as spans are exported.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a setting or an environment variable is invalid, or there is no runtime.
    pub fn start(settings: OtlpSettings) -> Result<Self, Error> {
        let handle = Handle::try_current()
            .map_err(|_| Error::usage("an exporter of spans needs a runtime of tokio"))?;
        let sender = HttpSender::new(settings.http, handle)?;
        let failure = sender.failure();
        let mut exporter = SpanExporter::builder().with_http().with_http_client(sender);
        if let Some(endpoint) = &settings.endpoint {
            exporter = exporter.with_endpoint(traces_url(endpoint)?);
        }
        if !settings.headers.is_empty() {
            let headers: HashMap<_, _> = settings.headers.into_iter().collect();
            exporter = exporter.with_headers(headers);
        }
        let exporter = exporter
            .build()
            .map_err(|error| Error::usage(format!("spans cannot be exported: {error}")))?;
        // Reads the environment as well.
        let mut resource = Resource::builder();
        if let Some(name) = settings.service_name {
            resource = resource.with_service_name(name);
        }
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        Ok(Self { provider, failure })
    }

    /// Returns the layer that takes spans from `tracing`: those of `mcpline` (target `mcpline::spans`, level INFO) and all others
    /// that the program makes. Add it to the program's subscriber, with a filter if other spans are to be left out.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        tracing_opentelemetry::layer().with_tracer(self.provider.tracer("mcpline"))
    }

    /// Sends the spans that have ended.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transport`](crate::ErrorKind::Transport): the collector did not take them.
    pub async fn flush(&self) -> Result<(), Error> {
        let exporter = self.clone();
        wait_for(move || exporter.exported(exporter.provider.force_flush())).await
    }

    /// Sends the spans that have ended, and ends the exporter and its thread. Later spans are dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transport`](crate::ErrorKind::Transport): the collector did not take them.
    pub async fn shut_down(self) -> Result<(), Error> {
        wait_for(move || self.shut_down_here()).await
    }

    /// Like [`shut_down`](Self::shut_down), but blocks this thread, which must not be one of the runtime.
    pub(crate) fn shut_down_here(self) -> Result<(), Error> {
        self.exported(self.provider.shutdown())
    }

    fn exported(&self, done: Result<(), OTelSdkError>) -> Result<(), Error> {
        let failure = self.failure.take().map(std::io::Error::other);
        failure
            .map_or(Ok(()), Err)
            .and(done.map_err(std::io::Error::other))
            .map_err(|error| Error::transport("export spans", "spans were not exported", error))
    }
}

/// Waits for the exporter's thread, whose requests need a thread of the runtime.
async fn wait_for(work: impl FnOnce() -> Result<(), Error> + Send + 'static) -> Result<(), Error> {
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

/// Returns the URL of spans at a collector.
fn traces_url(endpoint: &str) -> Result<String, Error> {
    let is_url = ["http://", "https://"].iter().any(|scheme| {
        endpoint
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    if !is_url {
        return Err(Error::usage(format!(
            "`endpoint` must be the URL of a collector, such as \"http://localhost:4318\", not {:?}",
            mcpline_protocol::without_secrets(endpoint)
        )));
    }
    Ok(format!("{}/{TRACES_PATH}", endpoint.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            "HTTPS://collector.example/otlp/v1/traces"
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
