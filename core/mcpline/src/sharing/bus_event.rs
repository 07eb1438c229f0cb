//! Events between the processes of a service, and their encoding.

use std::process;
use std::sync::Arc;

use bytes::Bytes;
use mcpline_protocol::session::{Change, SessionState};
use mcpline_protocol::wire::Raw;
use mcpline_runtime::clock;
use serde::{Deserialize, Serialize};

use crate::quota::{Charge, attach_charge};

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
    /// The process id: the forked children of a process that has joined have the same name.
    process: u32,
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
                Ok(envelope) if envelope.from == own && envelope.process == process::id() => {}
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
            process: process::id(),
            event,
        };
        match serde_json::to_vec(&envelope) {
            Ok(bytes) => {
                let bytes = charges.into_iter().fold(bytes.into(), attach_charge);
                self.bus.publish(bytes);
            }
            Err(error) => tracing::warn!(%error, "cannot encode a bus event"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::Value;

    use super::*;
    use crate::sharing::Sharing;

    #[test]
    fn an_endpoint_receives_from_forked_siblings_but_not_from_itself() {
        let bus = Sharing::in_memory().bus;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (sent, received) = (Arc::new(Mutex::new(Vec::new())), heard.clone());
        let all = sent.clone();
        let _all = bus.subscribe(Arc::new(move |bytes| {
            all.lock().expect("no panic").push(bytes)
        }));
        let endpoint = BusEndpoint::join(&bus, move |event| {
            received.lock().expect("no panic").push(event);
        });
        endpoint.publish(&BusEvent::Ended {
            session: "s".to_owned(),
        });
        assert!(heard.lock().expect("no panic").is_empty());
        // What a process with the same memory sends.
        let own = sent.lock().expect("no panic").pop().expect("an event");
        let mut envelope: Value = serde_json::from_slice(&own).expect("JSON");
        envelope["process"] = (process::id() + 1).into();
        bus.publish(envelope.to_string().into());
        let heard = heard.lock().expect("no panic");
        assert!(matches!(&heard[..], [BusEvent::Ended { session }] if session == "s"));
    }
}
