//! Events between the processes of a service, and their encoding.

use std::sync::Arc;

use bytes::Bytes;
use mcpline_protocol::session::{Change, SessionState};
use mcpline_protocol::wire::Raw;
use mcpline_runtime::clock;
use serde::{Deserialize, Serialize};

use crate::quota::{Charge, charged};

use super::bus::{Bus, Subscription};

/// An event of one process that concerns the others.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BusEvent {
    /// A list or a resource changed.
    Changed { change: Change },
    /// A client answered an input request or cancelled a request that another process may hold.
    Message { session: String, message: Raw },
    /// A client's handshake, log level or subscriptions changed.
    State {
        session: String,
        state: SessionState,
    },
    /// A URL elicitation is complete.
    ElicitationComplete { elicitation: String },
    /// The sender serves a session that another process started.
    TakenOver { session: String },
    /// A session ended.
    Ended { session: String },
}

#[derive(Serialize, Deserialize)]
struct Envelope<N> {
    from: String,
    event: N,
}

/// One subscriber's end of the bus. It does not receive its own events.
pub(crate) struct BusEndpoint {
    bus: Arc<dyn Bus>,
    name: String,
    _subscription: Subscription,
}

impl BusEndpoint {
    /// Joins the bus and calls `hear` with events of other processes.
    pub(crate) fn join(
        bus: &Arc<dyn Bus>,
        hear: impl Fn(BusEvent) + Send + Sync + 'static,
    ) -> Self {
        let name = clock::token();
        let own = name.clone();
        let subscription = bus.subscribe(Arc::new(move |bytes: Bytes| {
            match serde_json::from_slice::<Envelope<BusEvent>>(&bytes) {
                Ok(envelope) if envelope.from == own => {}
                Ok(envelope) => hear(envelope.event),
                // Another version of mcpline may send events that this one does not know.
                Err(error) => {
                    tracing::debug!(%error, "ignored a bus event that this version cannot read")
                }
            }
        }));
        Self {
            bus: bus.clone(),
            name,
            _subscription: subscription,
        }
    }

    /// Sends an event to the other processes.
    pub(crate) fn publish(&self, event: &BusEvent) {
        self.publish_charged(event, []);
    }

    /// Sends an event to the other processes. The charges are returned when the bus no longer holds it.
    pub(crate) fn publish_charged(
        &self,
        event: &BusEvent,
        charges: impl IntoIterator<Item = Charge>,
    ) {
        let envelope = Envelope {
            from: self.name.clone(),
            event,
        };
        match serde_json::to_vec(&envelope) {
            Ok(bytes) => {
                let bytes = charges.into_iter().fold(bytes.into(), charged);
                self.bus.publish(bytes);
            }
            Err(error) => tracing::warn!(%error, "cannot encode a bus event"),
        }
    }
}
