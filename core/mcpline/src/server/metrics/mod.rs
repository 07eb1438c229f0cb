//! Metrics of a server, by the OpenTelemetry semantic conventions for MCP, and some of our own.
//!
//! Durations are recorded when requests and sessions end ([`Metrics`]); everything else is read from counters of the
//! server when the metrics are rendered ([`exposition`]).

mod exposition;

use std::time::Duration;

use mcpline_protocol::session::InputRequestError;
use mcpline_protocol::wire::{Method, Raw};
use mcpline_protocol::{Revision, Scopes};

use crate::error::Error;
use crate::error_kind::ErrorKind;
use crate::message_sink::{Encode, MessageKind, MessageSink};
pub(super) use crate::metrics::OperationNames;
use crate::metrics::{
    FeatureLabel, Histogram, OperationDurations, OperationError, OperationLabels, SessionDurations,
};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, PoisonError};

use super::Server;
use super::inner::Inner;
use super::request_log::RequestOutcome;
use super::request_span;
use super::settings::Settings;
use super::traffic::TransportKind;

/// The recorded durations of a server.
#[derive(Default)]
pub(crate) struct Metrics {
    operations: OperationDurations,
    sessions: SessionDurations,
    input_requests: OperationDurations,
    /// Of calls that waited for the thread of their handler.
    queue: Mutex<Histogram>,
    bytes: [TransportBytes; TransportKind::ALL.len()],
}

/// The bytes of messages over one transport.
#[derive(Default)]
struct TransportBytes {
    received: AtomicU64,
    sent: AtomicU64,
}

/// A sink that counts the bytes of its messages.
struct CountingSink {
    sink: Arc<dyn MessageSink>,
    metrics: Arc<Metrics>,
    transport: TransportKind,
}

impl MessageSink for CountingSink {
    fn write(&self, kind: MessageKind, hint: usize, encode: Encode<'_>) {
        let sent = &self.metrics.bytes[self.transport as usize].sent;
        self.sink.write(kind, hint, &mut |out| {
            let before = out.len();
            encode(out);
            let bytes = out.len().saturating_sub(before);
            sent.fetch_add(bytes as u64, Ordering::Relaxed);
        });
    }

    fn is_connected(&self) -> bool {
        self.sink.is_connected()
    }

    fn is_congested(&self) -> bool {
        self.sink.is_congested()
    }

    fn abandon(&self) {
        self.sink.abandon();
    }

    fn report_missing_scopes(&self, needed: &Scopes) {
        self.sink.report_missing_scopes(needed);
    }

    fn close_stream(&self) {
        self.sink.close_stream();
    }
}

impl Metrics {
    /// Creates the metrics of a server, if its settings turn them on.
    pub(super) fn of(settings: &Settings) -> Result<Option<Arc<Self>>, Error> {
        Ok(settings.metrics.then(Arc::default))
    }

    /// Records the duration of a request.
    pub(super) fn record_operation(
        &self,
        names: &OperationNames,
        outcome: RequestOutcome,
        revision: Option<Revision>,
        transport: TransportKind,
        duration: Duration,
    ) {
        let operation = OperationLabels {
            names: names.clone(),
            error: error_of(outcome),
            revision,
            transport: Some(network_transport(transport)),
        };
        self.operations.record(operation, duration);
    }

    /// Records the duration of an input request.
    pub(super) fn record_input_request(
        &self,
        method: Method,
        outcome: &Result<Raw, InputRequestError>,
        revision: Revision,
        transport: TransportKind,
        duration: Duration,
    ) {
        let operation = OperationLabels {
            names: OperationNames {
                method: Some(method),
                feature: None,
            },
            error: match outcome {
                Ok(_) => None,
                Err(InputRequestError::Rpc { error, .. }) => {
                    Some(OperationError::Code(error.code.0))
                }
                Err(InputRequestError::Cancelled) => Some(OperationError::Cancelled),
                Err(other) => Some(OperationError::Kind(ErrorKind::from(other).as_str())),
            },
            revision: Some(revision),
            transport: Some(network_transport(transport)),
        };
        self.input_requests.record(operation, duration);
    }

    /// Records how long a call waited for the thread of its handler.
    pub(super) fn record_queue_time(&self, duration: Duration) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.record(duration);
    }

    /// Counts the bytes of a message of a client.
    pub(super) fn add_received(&self, transport: TransportKind, bytes: usize) {
        self.bytes[transport as usize]
            .received
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns a sink that counts the bytes of its messages.
    pub(super) fn counting_sink(
        self: &Arc<Self>,
        transport: TransportKind,
        sink: &Arc<dyn MessageSink>,
    ) -> Arc<dyn MessageSink> {
        Arc::new(CountingSink {
            sink: sink.clone(),
            metrics: self.clone(),
            transport,
        })
    }

    /// Records the duration of a session.
    pub(super) fn record_session(
        &self,
        revision: Revision,
        transport: TransportKind,
        duration: Duration,
    ) {
        let session = (revision, Some(network_transport(transport)));
        self.sessions.record(session, duration);
    }
}

impl OperationNames {
    /// Returns the names of a request that names this tool or prompt, if metrics are on. Names that the server does not
    /// have share a series, because clients choose them.
    pub(super) fn of(server: &Inner, method: &Method, name: &str) -> Option<Self> {
        server.metrics.as_ref()?;
        let registry = server.registry();
        let is_known = match method {
            Method::ToolsCall => Some(registry.tools.item(name).is_some()),
            Method::PromptsGet => Some(registry.prompts.item(name).is_some()),
            _ => None,
        };
        let has_method = match method {
            Method::Other(method) => registry.requests.contains_key(&**method),
            _ => true,
        };
        Some(Self {
            method: has_method.then(|| method.clone()),
            feature: is_known.map(|is_known| match is_known {
                true => FeatureLabel::Known(name.into()),
                false => FeatureLabel::Other,
            }),
        })
    }
}

fn error_of(outcome: RequestOutcome) -> Option<OperationError> {
    match outcome {
        RequestOutcome::Ok | RequestOutcome::InputRequired => None,
        RequestOutcome::ToolError => Some(OperationError::Tool),
        RequestOutcome::Cancelled => Some(OperationError::Cancelled),
        RequestOutcome::Error(code) => Some(OperationError::Code(code.0)),
    }
}

/// Returns the value of `network.transport`. The conventions have values for stdio and HTTP; the others are ours.
fn network_transport(transport: TransportKind) -> &'static str {
    request_span::network_transport(transport).unwrap_or_else(|| transport.name())
}

impl Server {
    /// Returns the metrics of the server in the text format of Prometheus, version 0.0.4; its media type is
    /// `text/plain; version=0.0.4`. Empty if [`Settings::metrics`] is off.
    ///
    /// It may be called at any time, from any thread. Its length is bounded: names that clients choose share a series
    /// unless the server has a feature of that name, and the number of series has a limit.
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn metrics_text(&self) -> String {
        match &self.inner().metrics {
            Some(metrics) => exposition::render(self, metrics),
            None => String::new(),
        }
    }
}
