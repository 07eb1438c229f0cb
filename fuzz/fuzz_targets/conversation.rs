//! A client receives arbitrary server messages, during the negotiation and in the session after it, with requests,
//! responses and clock ticks in between.
//!
//! The input consists of lines. A line that begins with a control byte is an action of the client; any other is a
//! message of the server. For every input: no panic, every sent message is JSON, the negotiation ends within its limit,
//! and no request ends twice.

#![no_main]

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mcpline_protocol::client::{
    ClientEvent, ClientSession, InputRequiredResult, NegotiatedSession, Negotiation,
    NegotiationOptions, NegotiationStep, OutgoingClientRequest, OutgoingRequestId, ResultCache,
    ToolCatalog, UrlElicitations,
};
use mcpline_protocol::vocabulary::{
    ClientCapabilities, ElicitationCapability, Implementation, RootsCapability, ServerCapabilities,
};
use mcpline_protocol::wire::{Incoming, Message, Method, read};
use mcpline_protocol::{Raw, RequestId, Revision, RpcError};

/// Checks that a sent message is JSON that the scanner accepts.
fn sent(message: &[u8]) {
    assert!(Raw::parse(Bytes::copy_from_slice(message)).is_ok());
}

fn plan() -> NegotiationOptions {
    let capabilities = ClientCapabilities::default()
        .with_elicitation(ElicitationCapability::default())
        .with_roots(RootsCapability::default());
    NegotiationOptions::new(Implementation::new("fuzz", "1"), capabilities)
}

/// Opens a session with the server's messages, within a limited number of steps.
fn open<'d>(lines: &mut impl Iterator<Item = &'d [u8]>) -> Option<NegotiatedSession> {
    let mut opening = Negotiation::new(plan());
    let mut now = Duration::ZERO;
    let mut step = opening.start(now);
    for _ in 0..1_000 {
        step = match step {
            NegotiationStep::Complete(opened) => return Some(*opened),
            NegotiationStep::Failed(_) => return None,
            NegotiationStep::Reconnect | NegotiationStep::UseHttpSse => opening.start(now),
            NegotiationStep::Send { message, .. } => {
                sent(&message);
                NegotiationStep::Wait
            }
            NegotiationStep::Wait => match lines.next() {
                None | Some([]) => {
                    now = opening.poll_deadline()?;
                    opening.handle_timeout(now)
                }
                Some([1, ..]) => opening.receive_disconnect(),
                Some([2, status, ..]) => {
                    opening.receive_http_refusal(u16::from(*status) + 300, None, now)
                }
                Some(line) => match read(Bytes::copy_from_slice(line)) {
                    Ok(Incoming::Single(Message::Response(response))) => match response.id {
                        Some(id) => opening.receive_response(&id, response.outcome, now),
                        None => NegotiationStep::Wait,
                    },
                    _ => NegotiationStep::Wait,
                },
            },
        };
        // Other messages are skipped; the total time is bounded.
        assert!(now <= Duration::from_secs(3 + 3 * 30));
    }
    None
}

struct Driver {
    conversation: ClientSession<u64>,
    started: u64,
    ended: HashSet<u64>,
    input_requests: Vec<RequestId>,
    keys: Vec<OutgoingRequestId>,
    now: Duration,
    tools: ToolCatalog,
    cache: ResultCache,
}

impl Driver {
    fn end(&mut self, handle: u64) {
        assert!(handle < self.started);
        assert!(self.ended.insert(handle), "a request has ended twice");
    }

    fn handle_event(&mut self, event: ClientEvent<u64>) {
        match event {
            ClientEvent::RequestEnded(handle, outcome) => {
                self.end(handle);
                if let Ok(result) = outcome {
                    self.result(&result);
                }
            }
            ClientEvent::SubscriptionEnded(_, handle, _) => self.end(handle),
            ClientEvent::InputRequest(request) => self.input_requests.push(request.id),
            ClientEvent::InputRequestCancelled(id, _) => {
                self.input_requests.retain(|open| *open != id)
            }
            ClientEvent::SubscriptionAcknowledged(_, notification)
            | ClientEvent::Notification(notification)
            | ClientEvent::UnknownSubscription(notification) => {
                self.cache.invalidate(&notification)
            }
            ClientEvent::Reply(message) => sent(&message),
            ClientEvent::Progress(..) | ClientEvent::Violation(_) | ClientEvent::Ignored(_) => {}
        }
    }

    fn result(&mut self, result: &Raw) {
        if let Ok(Some(needed)) = InputRequiredResult::of(result) {
            let params = Raw::from_trusted(r#"{"name":"x"}"#);
            let answers = needed.input_requests.iter();
            let answers: Vec<_> = answers
                .map(|request| (request.key.clone(), Raw::from_trusted("{}")))
                .collect();
            sent(needed.retry(Some(&params), &answers).as_bytes());
        }
        if let Ok(learnt) = self.tools.add_raw_page(result, true)
            && let Some(page) = learnt.page
        {
            sent(page.as_bytes());
        }
        if let Some(check) = self.tools.output_check("x", result)
            && let Some(inline) = check.run_inline()
        {
            // Either result is fine, but if both checks complete, they must agree.
            let whole = check.run(&AtomicBool::new(false));
            assert_eq!(inline.is_ok(), whole.is_ok());
        }
        drop(self.tools.headers("x", Some(result)));
        let generation = self.cache.generation();
        self.cache
            .insert(&Method::ToolsList, None, result, generation, self.now);
        drop(self.cache.get(&Method::ToolsList, None, self.now));
    }

    fn act(&mut self, line: &[u8]) {
        match line[0] % 5 {
            0 => {
                let text = Raw::parse(Bytes::copy_from_slice(&line[1..])).ok();
                let meta = text.as_ref().filter(|text| text.members().is_some());
                let outgoing = OutgoingClientRequest {
                    meta,
                    wants_progress: line.len() % 2 == 0,
                    ..OutgoingClientRequest::new("tools/call", meta)
                };
                let (key, message) =
                    self.conversation
                        .begin_request(&outgoing, self.started, self.now);
                self.started += 1;
                self.keys.push(key);
                // `begin_request` requires parameters without `_meta`: its callers remove it.
                if meta.is_none_or(|meta| meta.member("_meta").is_none()) {
                    sent(&message);
                }
            }
            1 => {
                if let Some(key) = self.keys.pop()
                    && let Some((handle, message)) = self.conversation.cancel(key, "enough")
                {
                    sent(&message);
                    self.end(handle);
                }
            }
            2 => {
                if let Some(id) = self.input_requests.pop() {
                    let error = RpcError::internal_error("no");
                    let answer = self.conversation.write_input_response(&id, Err(&error));
                    sent(&answer.expect("it is open"));
                }
            }
            3 => {
                self.now += Duration::from_secs(u64::from(*line.last().unwrap_or(&0)));
                for (_, overdue) in self.conversation.handle_timeout(self.now) {
                    sent(&overdue.cancellation);
                    self.end(overdue.handle);
                }
            }
            _ => {
                for handle in self.conversation.close() {
                    self.end(handle);
                }
                self.input_requests.clear();
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut lines = data.split(|byte| *byte == b'\n');
    let plan = plan();
    let opened = open(&mut lines).unwrap_or(NegotiatedSession {
        revision: Revision::ALL[data.len() % Revision::ALL.len()],
        capabilities: ServerCapabilities::default(),
        info: None,
        instructions: None,
        initialized: None,
        next_id: 1,
    });
    let mut driver = Driver {
        conversation: ClientSession::new(
            &opened,
            &plan.info,
            &plan.capabilities,
            UrlElicitations::default(),
        ),
        started: 0,
        ended: HashSet::new(),
        input_requests: Vec::new(),
        keys: Vec::new(),
        now: Duration::ZERO,
        tools: ToolCatalog::new(),
        cache: ResultCache::new(),
    };
    for line in lines {
        if line.first().is_some_and(|byte| *byte < 0x20) {
            driver.act(line);
            continue;
        }
        match read(Bytes::copy_from_slice(line)) {
            Ok(Incoming::Single(message)) => {
                let event = driver.conversation.receive(message, driver.now);
                driver.handle_event(event);
            }
            Ok(Incoming::Batch(messages)) => {
                for message in messages.into_iter().flatten() {
                    let event = driver.conversation.receive(message, driver.now);
                    driver.handle_event(event);
                }
            }
            Err(error) => {
                let event = driver.conversation.receive_unreadable(error, None);
                driver.handle_event(event);
            }
        }
    }
});
