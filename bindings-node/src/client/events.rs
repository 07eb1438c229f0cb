//! Passes input requests and notifications of a server to JavaScript's handlers.

use std::sync::Arc;

use mcpline::ErrorKind;
use mcpline::client::{ClientRequestRecord, ConnectionEvent};
use mcpline::foreign::client::{BacklogSlot, ClientEvents, HostInputRequest, InputRequests};
use mcpline::protocol::InputMethod;
use mcpline::protocol::vocabulary::Progress;
use mcpline::protocol::wire::Raw;
use serde_json::json;

use crate::hub::{Event, Shared};
use crate::waiting_records::WaitingRecord;

use super::failure::failure;

/// The kind of an event of a client. The numbers are those of `lib/client/event_kinds.ts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventKind {
    /// Progress of the request with this number: `[progress, total, message]`.
    Progress = 0,
    /// An input request with this number: its parameters.
    Elicit = 1,
    Sample = 2,
    Roots = 3,
    /// The input request with this number was cancelled.
    Withdrawn = 4,
    /// A notification: `[method, params]`.
    ListenerCalled = 5,
    /// A line of a process's stderr.
    Stderr = 6,
    /// A change of the connection: `[name, failure]`.
    Connection = 7,
    /// The end of a request: its record.
    RequestEnded = 8,
    /// A request of the library itself with this number: `[method, params]`.
    Auth = 10,
    /// A custom request of the server with this number: `[method, params]`.
    Request = 11,
}

/// Posts the events of one client to the listener with its number.
#[derive(Clone)]
pub(super) struct Events {
    pub(super) hub: Arc<Shared>,
    pub(super) client: u32,
}

impl Events {
    fn post(&self, about: EventKind, number: u64, json: Option<Raw>, slot: Option<BacklogSlot>) {
        let (client, number) = (self.client, number as f64);
        self.hub.post(Event::ListenerCalled(
            client,
            about as u32,
            number,
            json,
            slot,
        ));
    }

    pub(super) fn progress(&self, promise: u32, progress: &Progress, slot: BacklogSlot) {
        let json = json!([progress.progress, progress.total, progress.message]);
        let json = Raw::from_trusted(json.to_string());
        self.post(EventKind::Progress, promise.into(), Some(json), Some(slot));
    }

    /// Returns a listener that posts the records of requests. While too many wait, further ones are dropped.
    pub(super) fn request_listener(
        &self,
    ) -> impl Fn(&ClientRequestRecord<'_>) + Send + Sync + use<> {
        let (events, waiting) = (self.clone(), Arc::default());
        move |record| {
            let Some(waiting) = WaitingRecord::count(&waiting) else {
                return;
            };
            let record = json!({
                "direction": record.direction.name(),
                "method": record.method,
                "name": record.name,
                "outcome": record.outcome.name(),
                "errorKind": record.outcome.error_kind().map(ErrorKind::as_str),
                "code": record.outcome.code().map(|code| code.0),
                "duration": record.duration.as_secs_f64() * 1e3,
                "server": record.server,
                "address": record.address,
                "session": record.session,
                "traceId": record.trace_id,
            });
            let record = Raw::from_trusted(record.to_string());
            let kind = EventKind::RequestEnded as u32;
            let ended = Event::ClientRequestEnded(events.client, kind, record, waiting);
            events.hub.post(ended);
        }
    }
}

impl ClientEvents for Events {
    fn input_request(&self, _: &Arc<InputRequests>, request: HostInputRequest) {
        let is_own = || {
            ["host/", "auth/"]
                .iter()
                .any(|own| request.method.starts_with(own))
        };
        let about = match InputMethod::parse(&request.method) {
            Some(InputMethod::Elicit) => EventKind::Elicit,
            Some(InputMethod::Sample) => EventKind::Sample,
            Some(InputMethod::ListRoots) => EventKind::Roots,
            None if is_own() => EventKind::Auth,
            None => EventKind::Request,
        };
        let json = match about {
            EventKind::Auth | EventKind::Request => {
                Some(named(&request.method, request.params.as_ref()))
            }
            _ => request.params,
        };
        self.post(about, request.number, json, request.slot);
    }

    fn withdrawn(&self, number: u64) {
        self.post(EventKind::Withdrawn, number, None, None);
    }

    fn notification(&self, method: &str, params: Option<Raw>, slot: BacklogSlot) {
        let json = named(method, params.as_ref());
        self.post(EventKind::ListenerCalled, 0, Some(json), Some(slot));
    }

    fn connection(&self, event: &ConnectionEvent, slot: Option<BacklogSlot>) {
        let failure = event.error().map(|error| failure(error, "").to_json());
        let failure = failure.as_deref().unwrap_or("null");
        let json = Raw::from_trusted(format!(r#"["{}",{failure}]"#, event.name()));
        self.post(EventKind::Connection, 0, Some(json), slot);
    }

    fn stderr(&self, line: &str, slot: BacklogSlot) {
        self.post(EventKind::Stderr, 0, Some(Raw::string(line)), Some(slot));
    }
}

/// `[method, params]`
fn named(method: &str, params: Option<&Raw>) -> Raw {
    let (method, params) = (Raw::string(method), params.map_or("{}", Raw::as_str));
    Raw::from_trusted(format!("[{method},{params}]"))
}
