//! Durations of requests and sessions, in a bounded number of series.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::quality::RandomState;
use mcpline_protocol::Revision;
use mcpline_protocol::wire::Method;

use crate::sync::{Mutex, PoisonError};

use super::{Histogram, Labels, MetricsText};

/// Maximum number of series of operations, apart from those that count what exceeds it. Enough for 100 tools with three
/// outcomes on three revisions. A series has 17 lines of text, so a scrape has at most about 4 MB.
const MAX_SERIES: usize = 1_000;

/// The value of a label that stands for all values without a series of their own. OpenTelemetry has it for this purpose.
const OTHER: &str = "_OTHER";

/// How long requests take.
#[derive(Default)]
pub(crate) struct OperationDurations(Mutex<HashMap<OperationLabels, Histogram, RandomState>>);

/// How long sessions last: at most one series for each revision and transport.
#[derive(Default)]
pub(crate) struct SessionDurations(Mutex<HashMap<SessionLabels, Histogram, RandomState>>);

/// The revision of sessions, and the value of `network.transport`, if it is known.
type SessionLabels = (Revision, Option<&'static str>);

/// The labels of a series of operations.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct OperationLabels {
    pub(crate) names: OperationNames,
    pub(crate) error: Option<OperationError>,
    pub(crate) revision: Option<Revision>,
    /// The value of `network.transport`, if it is known.
    pub(crate) transport: Option<&'static str>,
}

/// What a request names, as its labels have it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct OperationNames {
    /// `None` if it has no series of its own.
    pub(crate) method: Option<Method>,
    /// The tool or prompt.
    pub(crate) feature: Option<FeatureLabel>,
}

/// A label whose values are bounded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum FeatureLabel {
    Known(Box<str>),
    /// One of all values without a series of their own.
    Other,
}

/// How a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OperationError {
    Tool,
    Cancelled,
    /// The code of a JSON-RPC error.
    Code(i64),
    /// The kind of another error. There are few.
    Kind(&'static str),
    /// One of the codes without a series of their own.
    Other,
}

impl OperationDurations {
    pub(crate) fn record(&self, operation: OperationLabels, duration: Duration) {
        let mut operations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = operations.len() >= MAX_SERIES;
        let series = match operations.get_mut(&operation) {
            Some(series) => series,
            None if is_full => operations.entry(operation.generalized()).or_default(),
            None => operations.entry(operation).or_default(),
        };
        series.record(duration);
    }

    /// Returns all series, with further labels before their own.
    pub(crate) fn series(&self, labels: &Labels) -> Vec<(Labels, Histogram)> {
        // Copied, so that requests do not wait for the text.
        let operations = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let series = operations.into_iter();
        series
            .map(|(operation, histogram)| (operation.labels(labels.clone()), histogram))
            .collect()
    }
}

impl SessionDurations {
    pub(crate) fn record(&self, session: SessionLabels, duration: Duration) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.entry(session).or_default().record(duration);
    }

    /// Returns all series, with further labels before their own.
    pub(crate) fn series(&self, labels: &Labels) -> Vec<(Labels, Histogram)> {
        let sessions = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let series = sessions
            .into_iter()
            .map(|((revision, transport), histogram)| {
                let labels = labels
                    .clone()
                    .with("mcp_protocol_version", revision.as_str())
                    .with_some("network_transport", transport);
                (labels, histogram)
            });
        series.collect()
    }
}

impl OperationLabels {
    /// Returns the labels of what has no series of its own: of these there are as many as known methods, revisions, kinds of
    /// errors and transports allow.
    fn generalized(mut self) -> Self {
        let names = &mut self.names;
        names.method = names.method.take().filter(|method| method.spec().is_some());
        names.feature = names.feature.take().map(|_| FeatureLabel::Other);
        if let Some(OperationError::Code(_)) = self.error {
            self.error = Some(OperationError::Other);
        }
        self
    }

    fn labels(&self, labels: Labels) -> Labels {
        let method = self.names.method.as_ref();
        let feature = self.names.feature.as_ref().map(|name| match name {
            FeatureLabel::Known(name) => &**name,
            FeatureLabel::Other => OTHER,
        });
        let code;
        let (error, status) = match self.error {
            None => (None, None),
            Some(OperationError::Tool) => (Some("tool_error"), None),
            Some(OperationError::Cancelled) => (Some("cancelled"), None),
            Some(OperationError::Kind(kind)) => (Some(kind), None),
            Some(OperationError::Code(number)) => {
                code = number.to_string();
                (Some(&*code), Some(&*code))
            }
            Some(OperationError::Other) => (Some(OTHER), Some(OTHER)),
        };
        let feature_label = match method {
            Some(Method::PromptsGet) => "gen_ai_prompt_name",
            _ => "gen_ai_tool_name",
        };
        labels
            .with("mcp_method_name", method.map_or(OTHER, Method::as_str))
            .with_some(feature_label, feature)
            .with_some("error_type", error)
            .with_some("rpc_response_status_code", status)
            .with_some(
                "mcp_protocol_version",
                self.revision.map(|revision| revision.as_str()),
            )
            .with_some("network_transport", self.transport)
    }
}

impl MetricsText {
    /// Adds a histogram with these series, in the order of their labels.
    pub(crate) fn durations(
        &mut self,
        name: &str,
        help: &str,
        mut series: Vec<(Labels, Histogram)>,
    ) {
        series.sort_by(|(one, _), (other, _)| one.cmp(other));
        self.metric(name, super::MetricKind::Histogram, help);
        for (labels, histogram) in &series {
            self.histogram(name, labels, histogram);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(durations: &OperationDurations, tool: &str, error: Option<OperationError>) {
        let operation = OperationLabels {
            names: OperationNames {
                method: Some(Method::ToolsCall),
                feature: Some(FeatureLabel::Known(tool.into())),
            },
            error,
            revision: None,
            transport: Some("pipe"),
        };
        durations.record(operation, Duration::ZERO);
    }

    #[test]
    fn series_above_the_limit_share_one_for_each_kind_of_outcome() {
        let durations = OperationDurations::default();
        let count = || durations.0.lock().expect("not poisoned").len();
        for number in 0..MAX_SERIES {
            record(&durations, &number.to_string(), None);
        }
        assert_eq!(count(), MAX_SERIES);
        for number in 0..100 {
            let tool = format!("more-{number}");
            record(&durations, &tool, None);
            record(&durations, &tool, Some(OperationError::Tool));
            record(&durations, &tool, Some(OperationError::Code(number - 50)));
        }
        assert_eq!(count(), MAX_SERIES + 3);
        let operations = durations.0.lock().expect("not poisoned");
        let shared = operations
            .iter()
            .filter(|(operation, _)| operation.names.feature == Some(FeatureLabel::Other));
        let counts: Vec<u64> = shared.map(|(_, series)| series.count()).collect();
        assert_eq!(counts, [100, 100, 100]);
        drop(operations);
        record(&durations, "0", None);
        assert_eq!(count(), MAX_SERIES + 3, "its own series goes on");
    }
}
