//! What the metrics of servers and clients have in common: durations by the OpenTelemetry semantic conventions for MCP
//! (`docs/gen-ai/mcp.md` of `open-telemetry/semantic-conventions-genai`), in the text format of Prometheus.
//!
//! [`OperationDurations`] and [`SessionDurations`] record what has ended, with a bounded number of series; [`MetricsText`] writes it.
//! `server/metrics` and `client/metrics` decide what is recorded.

mod durations;
mod histogram;
mod text;

pub(crate) use durations::{
    FeatureLabel, OperationDurations, OperationError, OperationLabels, OperationNames,
    SessionDurations,
};
pub(crate) use histogram::Histogram;
pub(crate) use text::{Labels, MetricKind, MetricsText};
