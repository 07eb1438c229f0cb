//! A session receives sequences of messages, handler actions and clock ticks, and is saved and restored now and then.
//!
//! The input consists of lines. A line that begins with a control byte is an action or a tick; any other is a message
//! of the client. For every input: no panic, every sent message is JSON, and no request ends twice.

#![no_main]

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mcpline_protocol::Raw;
use mcpline_protocol::session::{
    Change, InputRequestTimeouts, ReceiveOutcome, RequestKey, ServerProfile, ServerRequest,
    ServerSession, SessionLimits, SessionScope, TimeoutEvent,
};
use mcpline_protocol::vocabulary::{
    Implementation, JsonObject, ListCapability, LoggingLevel, ResourcesCapability,
    ServerCapabilities,
};
use mcpline_protocol::wire::{Incoming, Message, read};

type Session = ServerSession<(), ()>;

fn profile() -> ServerProfile {
    let lists = ListCapability::default().with_list_changed(true);
    ServerProfile {
        info: Implementation::new("fuzz", "1"),
        capabilities: ServerCapabilities::default()
            .with_tools(lists.clone())
            .with_prompts(lists)
            .with_resources(
                ResourcesCapability::default()
                    .with_list_changed(true)
                    .with_subscribe(true),
            )
            .with_logging(JsonObject::new())
            .with_completions(JsonObject::new()),
        revisions: mcpline_protocol::Revision::ALL.to_vec(),
        ..ServerProfile::default()
    }
}

fn limits() -> SessionLimits {
    SessionLimits {
        max_requests_in_flight: 4,
        max_open_input_requests: 4,
        ping_interval: Some(Duration::from_secs(5)),
        ..SessionLimits::default()
    }
}

/// Checks that a sent message is JSON that the scanner accepts.
fn sent(message: &[u8]) {
    assert!(Raw::parse(Bytes::copy_from_slice(message)).is_ok());
}

struct Driver {
    session: Session,
    profile: ServerProfile,
    now: Duration,
    open: Vec<RequestKey>,
    ended: HashSet<RequestKey>,
}

impl Driver {
    fn message(&mut self, message: Message, in_batch: bool) {
        match self
            .session
            .receive(message, in_batch, &self.profile, self.now)
        {
            ReceiveOutcome::Request(admitted) => {
                self.session.attach(admitted.key, ());
                self.open.push(admitted.key);
            }
            ReceiveOutcome::Subscription(listening) => {
                sent(&listening.acknowledgment);
                self.session.attach(listening.key, ());
                self.open.push(listening.key);
            }
            ReceiveOutcome::Reply {
                outcome: Ok(result),
                ..
            }
            | ReceiveOutcome::Initialized { result, .. } => sent(&result),
            ReceiveOutcome::Ready(held) => held.iter().for_each(|outgoing| sent(&outgoing.message)),
            _ => {}
        }
    }

    fn wish(&mut self, wish: u8, detail: u8) {
        let key = self
            .open
            .get(usize::from(detail) % self.open.len().max(1))
            .copied();
        match (wish, key) {
            (1, _) => self.now += Duration::from_millis(u64::from(detail) * 50),
            (2, Some(key)) => {
                self.open.retain(|open| *open != key);
                if let Some(finished) = self.session.finish(key) {
                    assert!(self.ended.insert(key), "a request ended twice");
                    finished.before.iter().for_each(|message| sent(message));
                }
            }
            (3, Some(key)) => {
                let progress =
                    self.session
                        .progress(key, f64::from(detail), None, Some("m"), self.now);
                progress.iter().for_each(|outgoing| sent(&outgoing.message));
            }
            (4, key) => {
                let level = LoggingLevel::ALL[usize::from(detail) % LoggingLevel::ALL.len()];
                let log = self
                    .session
                    .log(key, level, None, &Raw::EMPTY_OBJECT, self.now);
                log.iter().for_each(|outgoing| sent(&outgoing.message));
            }
            (5, related) => {
                let timeouts = InputRequestTimeouts {
                    idle: Duration::from_secs(1),
                    total: Duration::from_secs(3),
                };
                let request = ServerRequest {
                    method: if detail & 1 == 0 {
                        "roots/list"
                    } else {
                        "elicitation/create"
                    }
                    .into(),
                    params: None,
                    related,
                    timeouts,
                };
                if let Ok((_, Some(outgoing))) =
                    self.session.begin_server_request(request, (), self.now)
                {
                    sent(&outgoing.message);
                }
            }
            (6, _) => {
                let change = match detail & 3 {
                    0 => Change::Tools,
                    1 => Change::Prompts,
                    2 => Change::Resources,
                    _ => Change::Resource("a".into()),
                };
                self.session
                    .notify_change(&change)
                    .iter()
                    .for_each(|outgoing| sent(&outgoing.message));
            }
            (7, Some(key)) => {
                let _ = self.session.cancel(key);
            }
            (8, _) => {
                for (key, _, result) in self.session.end_subscription_streams() {
                    assert!(self.ended.insert(key), "a stream ended twice");
                    sent(&result);
                }
            }
            _ => {}
        }
        for due in self.session.handle_timeout(self.now) {
            if let TimeoutEvent::Send(outgoing)
            | TimeoutEvent::ServerRequest {
                cancel: outgoing, ..
            } = due
            {
                sent(&outgoing.message);
            }
        }
        if let Some(deadline) = self.session.poll_deadline() {
            assert!(deadline > self.now, "what was due is still due");
        }
    }

    /// Restores the session from its serialized form; requests in flight get new keys.
    fn restart(&mut self) {
        let text = serde_json::to_vec(&self.session.snapshot()).expect("a snapshot serializes");
        let snapshot = serde_json::from_slice(&text).expect("and reads back");
        self.session = Session::restore(&snapshot, limits(), |_| Some(()), |_| ());
        self.open = self
            .session
            .request_handles()
            .map(|(key, ())| key)
            .collect();
        self.ended.clear();
    }
}

fuzz_target!(|data: &[u8]| {
    let mut driver = Driver {
        session: Session::new(SessionScope::Connection, limits()),
        profile: profile(),
        now: Duration::from_secs(1),
        open: Vec::new(),
        ended: HashSet::new(),
    };
    for line in data.split(|byte| *byte == b'\n') {
        match line {
            [9, ..] => driver.restart(),
            [wish @ 1..9, rest @ ..] => driver.wish(*wish, rest.first().copied().unwrap_or(0)),
            _ => match read(Bytes::copy_from_slice(line)) {
                Ok(Incoming::Single(message)) => driver.message(message, false),
                Ok(Incoming::Batch(entries)) if driver.session.admit_batch().is_ok() => {
                    for message in entries.into_iter().flatten() {
                        driver.message(message, true);
                    }
                }
                _ => {}
            },
        }
    }
});
