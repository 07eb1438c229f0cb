//! Everything that a server's metrics contain.

use crate::quota::{Level, Limit};

use super::super::Server;
use super::super::request_span;
use super::super::traffic::TransportKind;
use super::text::{Kind, Labels, Text};
use super::{Histogram, Metrics, OTHER, Operation, OperationError};

/// Returns the metrics of a server as text.
pub(super) fn render(server: &Server, metrics: &Metrics) -> String {
    let mut text = Text::default();
    add_operations(&mut text, metrics);
    add_sessions(&mut text, metrics);
    add_stats(&mut text, server);
    add_limits(&mut text, server);
    text.into_string()
}

fn add_operations(text: &mut Text, metrics: &Metrics) {
    // Copied, so that requests do not wait for the text.
    let operations = metrics.lock_operations().clone();
    let series = operations
        .iter()
        .map(|(operation, histogram)| (operation.labels(), histogram));
    add_histogram(
        text,
        "mcp_server_operation_duration_seconds",
        "Time from the arrival of a request to its response.",
        series.collect(),
    );
}

fn add_sessions(text: &mut Text, metrics: &Metrics) {
    let sessions = metrics.lock_sessions().clone();
    let series = sessions.iter().map(|((revision, transport), histogram)| {
        let labels = Labels::default()
            .with("mcp_protocol_version", revision.as_str())
            .with("network_transport", network_transport(*transport));
        (labels, histogram)
    });
    add_histogram(
        text,
        "mcp_server_session_duration_seconds",
        "Duration of sessions that have ended.",
        series.collect(),
    );
}

fn add_histogram(text: &mut Text, name: &str, help: &str, mut series: Vec<(Labels, &Histogram)>) {
    series.sort_by(|(one, _), (other, _)| one.cmp(other));
    text.metric(name, Kind::Histogram, help);
    for (labels, histogram) in series {
        text.histogram(name, &labels, histogram);
    }
}

fn add_stats(text: &mut Text, server: &Server) {
    let stats = server.stats();
    let gauges = [
        (
            "mcpline_connections",
            "Open connections.",
            stats.connections,
        ),
        (
            "mcpline_sessions",
            "Open sessions of handshake revisions.",
            stats.sessions,
        ),
        (
            "mcpline_streams",
            "Event streams that a client reads.",
            stats.streams,
        ),
        (
            "mcpline_requests_in_flight",
            "Requests that a handler or middleware is answering.",
            stats.requests_in_flight,
        ),
    ];
    for (name, help, value) in gauges {
        text.metric(name, Kind::Gauge, help);
        text.value(name, &Labels::default(), value);
    }
    let name = "mcpline_uptime_seconds";
    text.metric(name, Kind::Gauge, "Time since the server was built.");
    text.value(name, &Labels::default(), stats.uptime.as_secs_f64());
    let name = "mcpline_budget_used";
    text.metric(name, Kind::Gauge, "How much of a limit is used.");
    for budget in &stats.budgets {
        let labels = Labels::default().with("budget", budget.name);
        text.value(name, &labels, budget.used);
    }
    let name = "mcpline_budget_limit";
    text.metric(name, Kind::Gauge, "The limit.");
    for budget in &stats.budgets {
        let labels = Labels::default().with("budget", budget.name);
        text.value(name, &labels, budget.limit);
    }
}

fn add_limits(text: &mut Text, server: &Server) {
    let counts = server.inner().clients().counts();
    let name = "mcpline_limit_reached_total";
    text.metric(
        name,
        Kind::Counter,
        "How often a limit was reached: a request was refused as busy, a message dropped or a connection closed.",
    );
    for limit in Limit::ALL {
        for (level, scope) in [(Level::Server, "server"), (Level::Client, "client")] {
            let labels = Labels::default()
                .with("limit", limit.setting())
                .with("scope", scope);
            text.value(name, &labels, counts.reached(*limit, level));
        }
    }
    let name = "mcpline_notifications_dropped_total";
    text.metric(
        name,
        Kind::Counter,
        "Notifications of clients that were dropped, and messages to clients that read too slowly.",
    );
    for (direction, count) in [
        ("received", counts.dropped_received()),
        ("sent", counts.dropped_sent()),
    ] {
        let labels = Labels::default().with("direction", direction);
        text.value(name, &labels, count);
    }
}

impl Operation {
    fn labels(&self) -> Labels {
        use mcpline_protocol::wire::Method;

        let method = self.names.method.as_ref();
        let feature = self.names.feature.as_ref().map(super::Name::as_str);
        let code;
        let (error, status) = match self.error {
            None => (None, None),
            Some(OperationError::Tool) => (Some("tool_error"), None),
            Some(OperationError::Cancelled) => (Some("cancelled"), None),
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
        Labels::default()
            .with("mcp_method_name", method.map_or(OTHER, Method::as_str))
            .with_some(feature_label, feature)
            .with_some("error_type", error)
            .with_some("rpc_response_status_code", status)
            .with_some(
                "mcp_protocol_version",
                self.revision.map(|revision| revision.as_str()),
            )
            .with("network_transport", network_transport(self.transport))
    }
}

/// Returns the value of `network.transport`. The conventions have values for stdio and HTTP; the others are ours.
fn network_transport(transport: TransportKind) -> &'static str {
    request_span::network_transport(transport).unwrap_or_else(|| transport.name())
}
