//! Everything that a server's metrics contain.

use crate::metrics::{Labels, MetricKind, MetricsText};
#[cfg(feature = "http")]
use crate::quota::RefusalReason;
use crate::quota::{Limit, LimitOwner};
use crate::sync::PoisonError;
use crate::sync::atomic::{AtomicU64, Ordering};

use super::super::Server;
use super::{Metrics, TransportBytes};
use crate::server::traffic::TransportKind;

/// Returns the metrics of a server as text.
pub(super) fn render(server: &Server, metrics: &Metrics) -> String {
    let mut text = MetricsText::default();
    text.durations(
        "mcp_server_operation_duration_seconds",
        "Time from the arrival of a request to its response.",
        metrics.operations.series(&Labels::default()),
    );
    text.durations(
        "mcp_server_session_duration_seconds",
        "Duration of sessions that have ended.",
        metrics.sessions.series(&Labels::default()),
    );
    text.durations(
        "mcpline_input_request_duration_seconds",
        "Time from an input request of a handler to its answer.",
        metrics.input_requests.series(&Labels::default()),
    );
    let queue = metrics.queue.lock();
    let queue = queue.unwrap_or_else(PoisonError::into_inner).clone();
    text.durations(
        "mcpline_queue_duration_seconds",
        "Time that calls waited for the thread of their handler.",
        vec![(Labels::default(), queue)],
    );
    add_bytes(&mut text, metrics);
    add_stats(&mut text, server);
    add_limits(&mut text, server);
    text.into_string()
}

fn add_bytes(text: &mut MetricsText, metrics: &Metrics) {
    type Read = fn(&TransportBytes) -> &AtomicU64;
    let counters: [(&str, &str, Read); 2] = [
        (
            "mcpline_received_bytes_total",
            "Bytes of messages of clients.",
            |bytes| &bytes.received,
        ),
        (
            "mcpline_sent_bytes_total",
            "Bytes of messages to clients.",
            |bytes| &bytes.sent,
        ),
    ];
    for (name, help, read) in counters {
        text.metric(name, MetricKind::Counter, help);
        for transport in TransportKind::ALL {
            let value = read(&metrics.bytes[*transport as usize]).load(Ordering::Relaxed);
            let labels = Labels::default().with("transport", transport.name());
            text.value(name, &labels, value);
        }
    }
}

fn add_stats(text: &mut MetricsText, server: &Server) {
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
        text.metric(name, MetricKind::Gauge, help);
        text.value(name, &Labels::default(), value);
    }
    let name = "mcpline_uptime_seconds";
    text.metric(name, MetricKind::Gauge, "Time since the server was built.");
    text.value(name, &Labels::default(), stats.uptime.as_secs_f64());
    let name = "mcpline_budget_used";
    text.metric(name, MetricKind::Gauge, "How much of a limit is used.");
    for budget in &stats.budgets {
        let labels = Labels::default().with("budget", budget.name);
        text.value(name, &labels, budget.used);
    }
    let name = "mcpline_budget_limit";
    text.metric(name, MetricKind::Gauge, "The limit.");
    for budget in &stats.budgets {
        let labels = Labels::default().with("budget", budget.name);
        text.value(name, &labels, budget.limit);
    }
}

fn add_limits(text: &mut MetricsText, server: &Server) {
    let counts = server.inner().clients().counts();
    let name = "mcpline_limit_reached_total";
    text.metric(
        name,
        MetricKind::Counter,
        "How often a limit was reached: a request was refused as busy, a message dropped or a connection closed.",
    );
    for limit in Limit::ALL {
        for (level, scope) in [
            (LimitOwner::Server, "server"),
            (LimitOwner::Client, "client"),
        ] {
            let labels = Labels::default()
                .with("limit", limit.setting())
                .with("scope", scope);
            text.value(name, &labels, counts.reached(*limit, level));
        }
    }
    #[cfg(feature = "http")]
    {
        let name = "mcpline_http_requests_refused_total";
        text.metric(
            name,
            MetricKind::Counter,
            "Requests that the HTTP server refused before they reached a session.",
        );
        for reason in RefusalReason::ALL {
            let labels = Labels::default().with("reason", reason.name());
            text.value(name, &labels, counts.refused(*reason));
        }
    }
    let name = "mcpline_notifications_dropped_total";
    text.metric(
        name,
        MetricKind::Counter,
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
