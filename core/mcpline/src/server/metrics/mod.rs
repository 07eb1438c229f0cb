//! Metrics of a server, by the OpenTelemetry semantic conventions for MCP (`docs/gen-ai/mcp.md` of
//! `open-telemetry/semantic-conventions-genai`), and some of our own.
//!
//! Durations are recorded when requests and sessions end ([`Metrics`]); everything else is read from counters of the
//! server when the metrics are rendered ([`exposition`]).

mod exposition;
mod histogram;
mod text;

use std::collections::HashMap;
use std::time::Duration;

use foldhash::quality::RandomState;
use mcpline_protocol::Revision;
use mcpline_protocol::wire::Method;

use crate::error::Error;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Server;
use super::inner::Inner;
use super::request_log::RequestOutcome;
use super::settings::Settings;
use super::traffic::TransportKind;

use histogram::Histogram;

/// Maximum number of series of `mcp_server_operation_duration`, apart from those that count what exceeds it. Enough for
/// 100 tools with three outcomes on three revisions. A series has 17 lines of text, so a scrape has at most about 4 MB.
const MAX_SERIES: usize = 1_000;

/// The value of a label that stands for all values without a series of their own. OpenTelemetry has it for this purpose.
const OTHER: &str = "_OTHER";

/// The recorded durations of a server.
#[derive(Default)]
pub(crate) struct Metrics {
    operations: Mutex<HashMap<Operation, Histogram, RandomState>>,
    /// At most one series for each revision and kind of transport.
    sessions: Mutex<HashMap<(Revision, TransportKind), Histogram, RandomState>>,
}

/// A label whose values are bounded: [`OTHER`] for values that are not known.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Name {
    Known(Box<str>),
    Other,
}

impl Name {
    fn as_str(&self) -> &str {
        match self {
            Self::Known(name) => name,
            Self::Other => OTHER,
        }
    }
}

/// What a request names, as its labels have it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct OperationNames {
    /// `None` if no revision defines it and the server has no custom method of this name.
    method: Option<Method>,
    /// The tool or prompt.
    feature: Option<Name>,
}

/// The labels of a series.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Operation {
    names: OperationNames,
    error: Option<OperationError>,
    revision: Option<Revision>,
    transport: TransportKind,
}

/// How a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum OperationError {
    Tool,
    Cancelled,
    Code(i64),
    Other,
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
        let operation = Operation {
            names: names.clone(),
            error: OperationError::of(outcome),
            revision,
            transport,
        };
        let mut operations = self.lock_operations();
        let is_full = operations.len() >= MAX_SERIES;
        let series = match operations.get_mut(&operation) {
            Some(series) => series,
            None if is_full => operations.entry(operation.generalized()).or_default(),
            None => operations.entry(operation).or_default(),
        };
        series.record(duration);
    }

    /// Records the duration of a session.
    pub(super) fn record_session(
        &self,
        revision: Revision,
        transport: TransportKind,
        duration: Duration,
    ) {
        let mut sessions = self.lock_sessions();
        let series = sessions.entry((revision, transport)).or_default();
        series.record(duration);
    }

    fn lock_operations(&self) -> MutexGuard<'_, HashMap<Operation, Histogram, RandomState>> {
        self.operations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_sessions(
        &self,
    ) -> MutexGuard<'_, HashMap<(Revision, TransportKind), Histogram, RandomState>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Operation {
    /// Returns the labels of what has no series of its own: of these there are as many as known methods, revisions and
    /// kinds of transport allow.
    fn generalized(mut self) -> Self {
        let names = &mut self.names;
        names.method = names.method.take().filter(|method| method.spec().is_some());
        names.feature = names.feature.take().map(|_| Name::Other);
        if let Some(OperationError::Code(_)) = self.error {
            self.error = Some(OperationError::Other);
        }
        self
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
                true => Name::Known(name.into()),
                false => Name::Other,
            }),
        })
    }
}

impl OperationError {
    fn of(outcome: RequestOutcome) -> Option<Self> {
        match outcome {
            RequestOutcome::Ok | RequestOutcome::InputRequired => None,
            RequestOutcome::ToolError => Some(Self::Tool),
            RequestOutcome::Cancelled => Some(Self::Cancelled),
            RequestOutcome::Error(code) => Some(Self::Code(code.0)),
        }
    }
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

#[cfg(test)]
mod tests {
    use mcpline_protocol::ErrorCode;

    use super::*;

    fn record(metrics: &Metrics, tool: &str, outcome: RequestOutcome) {
        let names = OperationNames {
            method: Some(Method::ToolsCall),
            feature: Some(Name::Known(tool.into())),
        };
        let transport = TransportKind::Stdio;
        metrics.record_operation(&names, outcome, None, transport, Duration::ZERO);
    }

    #[test]
    fn series_above_the_limit_share_one_for_each_kind_of_outcome() {
        let metrics = Metrics::default();
        for number in 0..MAX_SERIES {
            record(&metrics, &number.to_string(), RequestOutcome::Ok);
        }
        assert_eq!(metrics.lock_operations().len(), MAX_SERIES);
        for number in 0..100 {
            let tool = format!("more-{number}");
            record(&metrics, &tool, RequestOutcome::Ok);
            record(&metrics, &tool, RequestOutcome::ToolError);
            record(
                &metrics,
                &tool,
                RequestOutcome::Error(ErrorCode(number - 50)),
            );
        }
        let operations = metrics.lock_operations();
        assert_eq!(operations.len(), MAX_SERIES + 3);
        let shared = operations
            .iter()
            .filter(|(operation, _)| operation.names.feature == Some(Name::Other));
        let counts: Vec<u64> = shared.map(|(_, series)| series.count()).collect();
        assert_eq!(counts, [100, 100, 100]);
        drop(operations);
        record(&metrics, "0", RequestOutcome::Ok);
        let operations = metrics.lock_operations();
        assert_eq!(operations.len(), MAX_SERIES + 3, "its own series goes on");
    }
}
