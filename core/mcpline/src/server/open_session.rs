//! An open session of a handshake revision, as statistics and metrics count it.

use std::time::Duration;

use mcpline_protocol::Revision;
use mcpline_runtime::clock;

use crate::quota::Counted;
use crate::sync::Arc;

use super::connection::Connection;
use super::metrics::Metrics;
use super::traffic::TransportKind;

/// Whether a connection has an open session.
#[derive(Default)]
pub(super) enum SessionPhase {
    /// Its handshake has not been completed, or it has none.
    #[default]
    Fresh,
    Open {
        _session: Box<OpenSession>,
    },
    /// The connection is closed.
    Ended,
}

/// An open session. It is counted, and its duration recorded, until it is dropped.
pub(super) struct OpenSession {
    started: Duration,
    revision: Revision,
    transport: TransportKind,
    metrics: Option<Arc<Metrics>>,
    _counted: Counted,
}

impl OpenSession {
    /// Begins the session of this connection.
    pub(super) fn begin(connection: &Connection, revision: Revision) -> Self {
        Self {
            started: clock::now(),
            revision,
            transport: connection.transport_kind(),
            metrics: connection.server().metrics.clone(),
            _counted: connection.client().counts().session(),
        }
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        if let Some(metrics) = &self.metrics {
            let duration = clock::now().saturating_sub(self.started);
            metrics.record_session(self.revision, self.transport, duration);
        }
    }
}
