//! Metrics of clients, by the OpenTelemetry semantic conventions for MCP, and some of our own.
//!
//! Durations are recorded when requests and sessions end ([`ClientMetrics`]); everything else is read from the client's
//! [statistics](super::ClientStats) when the metrics are rendered.

use std::borrow::Cow;
use std::time::Duration;

use mcpline_protocol::ErrorCode;
use mcpline_protocol::wire::{Method, Raw};
use mcpline_runtime::clock;

use crate::client_error::ClientError;
use crate::metrics::{
    FeatureLabel, Histogram, Labels, MetricKind, MetricsText, OperationDurations, OperationError,
    OperationLabels, OperationNames, SessionDurations,
};
use crate::span::is_tool_error;
use crate::sync::Arc;

use super::inner::Inner;
use super::session::Session;
use super::settings::ClientSettings;
use super::{Client, ClientStats};

/// Size in bytes of the longest name that has a series of its own. A model chooses names of tools; 128 characters are the
/// longest that the specification advises (`server/tools`, tool names).
const MAX_NAME_BYTES: usize = 256;

/// The series of a histogram.
type Series = Vec<(Labels, Histogram)>;

/// The recorded durations of a client.
#[derive(Default)]
pub(super) struct ClientMetrics {
    operations: OperationDurations,
    sessions: SessionDurations,
}

/// A request that is measured. One that is dropped before its end was cancelled.
pub(super) struct MeasuredRequest<'a> {
    client: &'a Inner,
    metrics: &'a ClientMetrics,
    method: Method,
    feature: Option<FeatureLabel>,
    /// `None` once it is recorded.
    started: Option<Duration>,
}

impl ClientMetrics {
    /// Creates the metrics of a client, if its settings turn them on.
    pub(super) fn of(settings: &ClientSettings) -> Result<Option<Arc<Self>>, ClientError> {
        Ok(settings.metrics.then(Arc::default))
    }

    /// Records a session that has ended. 2026-07-28 has no sessions.
    pub(super) fn record_session(&self, session: &Session) {
        let revision = session.revision();
        if !revision.is_modern() {
            let duration = clock::now().saturating_sub(session.started);
            let transport = session.link.network_transport();
            self.sessions.record((revision, transport), duration);
        }
    }
}

impl<'a> MeasuredRequest<'a> {
    /// Begins to measure a request, if metrics are on.
    pub(super) fn begin(client: &'a Inner, method: &str, params: Option<&Raw>) -> Option<Self> {
        let metrics = client.metrics.as_deref()?;
        let method = Method::parse(method);
        let feature = match method {
            Method::ToolsCall | Method::PromptsGet => {
                let name = params.and_then(|params| params.member("name"));
                let name = name.as_ref().and_then(Raw::string_value);
                name.map(|name| match name.len() <= MAX_NAME_BYTES {
                    true => FeatureLabel::Known(Cow::into_owned(name).into()),
                    false => FeatureLabel::Other,
                })
            }
            _ => None,
        };
        Some(Self {
            client,
            metrics,
            method,
            feature,
            started: Some(clock::now()),
        })
    }

    /// Records how the request ended.
    pub(super) fn end(mut self, outcome: &Result<Raw, ClientError>) {
        let error = match outcome {
            Ok(result) if is_tool_error(&self.method, result) => Some(OperationError::Tool),
            Ok(_) => None,
            Err(error) => Some(match error.rpc() {
                Some(rpc) => OperationError::Code(rpc.code.0),
                None => OperationError::Kind(error.kind().as_str()),
            }),
        };
        self.record(error);
    }

    fn record(&mut self, error: Option<OperationError>) {
        // A model may call tools that do not exist, by ever new names.
        if error == Some(OperationError::Code(ErrorCode::INVALID_PARAMS.0))
            && self.feature.is_some()
        {
            self.feature = Some(FeatureLabel::Other);
        }
        let Some(started) = self.started.take() else {
            return;
        };
        let session = self.client.open_session().ok().flatten();
        let has_name = self.method.as_str().len() <= MAX_NAME_BYTES;
        let operation = OperationLabels {
            names: OperationNames {
                method: has_name.then(|| self.method.clone()),
                feature: self.feature.take(),
            },
            error,
            revision: session.as_ref().map(|session| session.revision()),
            transport: session.and_then(|session| session.link.network_transport()),
        };
        let duration = clock::now().saturating_sub(started);
        self.metrics.operations.record(operation, duration);
    }
}

impl Drop for MeasuredRequest<'_> {
    fn drop(&mut self) {
        self.record(Some(OperationError::Cancelled));
    }
}

impl Client {
    /// Returns the metrics of the client in the text format of Prometheus, version 0.0.4; its media type is
    /// `text/plain; version=0.0.4`. Empty if [`ClientSettings::metrics`] is off. [`Client::metrics_of`] joins those of several clients.
    ///
    /// It may be called at any time, from any thread, also after the client was closed.
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn metrics_text(&self) -> String {
        match self.inner().metrics {
            Some(_) => render(&[(Labels::default(), self)]),
            None => String::new(),
        }
    }

    /// Returns the metrics of several clients as one text, each with its name as the label `server`. Clients whose
    /// [`ClientSettings::metrics`] is off are left out.
    ///
    /// ```
    /// use mcpline::Server;
    /// use mcpline::client::{Client, ClientError, ClientSettings};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// let mut settings = ClientSettings::default();
    /// settings.metrics = true;
    /// let builder = Client::builder("host", "1.0.0").settings(settings);
    /// let server = Server::new("weather", "1.0.0").tool("now", "The weather now", async || "sunny");
    /// let weather = builder.connect(server).await?;
    /// weather.list_tools().await?;
    /// let text = Client::metrics_of([("weather", &weather)]);
    /// let series = r#"mcp_client_operation_duration_seconds_count{server="weather",mcp_method_name="tools/list","#;
    /// assert!(text.contains(series));
    /// # weather.close().await;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn metrics_of<'a>(clients: impl IntoIterator<Item = (&'a str, &'a Self)>) -> String {
        let measured = clients
            .into_iter()
            .filter(|(_, client)| client.inner().metrics.is_some());
        let named = measured.map(|(name, client)| (Labels::default().with("server", name), client));
        let clients: Vec<_> = named.collect();
        match clients.is_empty() {
            true => String::new(),
            false => render(&clients),
        }
    }
}

fn render(clients: &[(Labels, &Client)]) -> String {
    let mut text = MetricsText::default();
    let series = |of: fn(&ClientMetrics, &Labels) -> Series| {
        let measured = clients.iter();
        let all = measured.filter_map(|(labels, client)| {
            let inner = client.inner();
            let server = inner.dialler.server_address();
            let port = server.and_then(|server| server.port);
            let labels = labels
                .clone()
                .with_some("server_address", server.map(|server| &*server.address))
                .with_some("server_port", port.map(|port| port.to_string()).as_deref());
            Some(of(inner.metrics.as_deref()?, &labels))
        });
        all.flatten().collect()
    };
    text.durations(
        "mcp_client_operation_duration_seconds",
        "Time from sending a request to its result, with input requests and repetitions.",
        series(|metrics, labels| metrics.operations.series(labels)),
    );
    text.durations(
        "mcp_client_session_duration_seconds",
        "Duration of sessions that have ended.",
        series(|metrics, labels| metrics.sessions.series(labels)),
    );
    let stats: Vec<_> = clients
        .iter()
        .map(|(labels, client)| (labels, client.stats()))
        .collect();
    let name = "mcpline_client_uptime_seconds";
    text.metric(
        name,
        MetricKind::Gauge,
        "Time since the client was created.",
    );
    for (labels, stats) in &stats {
        text.value(name, labels, stats.uptime.as_secs_f64());
    }
    type Read = fn(&ClientStats) -> u64;
    let mut add = |name: &str, kind, help: &str, read: Read| {
        text.metric(name, kind, help);
        for (labels, stats) in &stats {
            text.value(name, labels, read(stats));
        }
    };
    add(
        "mcpline_client_connected",
        MetricKind::Gauge,
        "Whether the client has a connection.",
        |stats| u64::from(stats.is_connected),
    );
    add(
        "mcpline_client_connections_total",
        MetricKind::Counter,
        "Connections that were opened.",
        |stats| stats.connections,
    );
    add(
        "mcpline_client_requests_in_flight",
        MetricKind::Gauge,
        "Requests that wait for a response of the server.",
        |stats| stats.requests_in_flight as u64,
    );
    add(
        "mcpline_client_cached_results",
        MetricKind::Gauge,
        "Results in the cache.",
        |stats| stats.cached_results as u64,
    );
    add(
        "mcpline_client_cached_bytes",
        MetricKind::Gauge,
        "Size of the results in the cache.",
        |stats| stats.cached_bytes as u64,
    );
    text.into_string()
}
