//! Models of a client's session. A request's answer, its caller's giving up, the end of the connection, and reports that come
//! while the session takes over from its opening meet; so do a question of the server's, its withdrawal and the end. Each
//! request ends once for its caller and is cancelled at most once, only if he gave it up; no report is lost or overtaken; what
//! answers a question is ended when nobody wants the answer any more.

mod closing;
mod subscriptions;

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use mcpline_protocol::client::{ClientRequest, NegotiatedSession};
use mcpline_protocol::vocabulary::{
    ClientCapabilities, Implementation, RootsCapability, ServerCapabilities,
};
use mcpline_protocol::{Raw, Revision};
use serde_json::{Value, json};
use shuttle::future::block_on;

use crate::client_error::ClientError;
use crate::models::{Record, check, settle};
use crate::server::models::Threads;
use crate::sync::Arc;

use super::connect::{Dialler, Dialling};
use super::handlers::Handlers;
use super::inner::Inner;
use super::link::{Ending, Link, Outgoing, Reports, Sink};
use super::session::{Reception, Session};
use super::settings::ClientSettings;

/// A link that records what is sent.
#[derive(Default)]
struct TestLink {
    sent: Record<Value>,
    abandoned: AtomicUsize,
}

impl TestLink {
    fn cancellations(&self) -> usize {
        let sent = self.sent.all();
        let cancelled = sent
            .iter()
            .filter(|message| message["method"] == "notifications/cancelled");
        cancelled.count()
    }
}

impl Link for TestLink {
    fn send(&self, outgoing: Outgoing) {
        let message = serde_json::from_slice(&outgoing.message).expect("JSON");
        self.sent.add(message);
    }

    fn abandon(&self, _: u64) {
        self.abandoned.fetch_add(1, Ordering::SeqCst);
    }

    fn opened(&self, _: Revision) {}

    fn close(&self) -> Ending {
        Box::pin(std::future::ready(()))
    }
}

/// Makes no links.
struct Nowhere;

impl Dialler for Nowhere {
    fn dial(&self, _: Sink, _: bool) -> Dialling<'_> {
        Box::pin(async { Err(ClientError::Closed) })
    }
}

fn client(handlers: Handlers) -> Arc<Inner> {
    let info = Implementation::new("test", "1");
    Inner::new(info, ClientSettings::default(), handlers, Box::new(Nowhere))
}

fn session(client: &Arc<Inner>) -> (Arc<Session>, Arc<TestLink>) {
    let link = Arc::new(TestLink::default());
    let opened = NegotiatedSession {
        revision: Revision::V2025_11_25,
        capabilities: ServerCapabilities::default(),
        info: None,
        instructions: None,
        initialized: None,
        next_id: 1,
    };
    (Session::start(opened, link.clone(), client), link)
}

/// What hands reports to the session, which has taken over.
fn reception(session: &Arc<Session>) -> Arc<Reception> {
    let (reception, mut reports) = Reception::new();
    reception.hand_over(session, &mut reports);
    reception
}

fn bytes(message: &Value) -> Bytes {
    message.to_string().into()
}

fn response(id: u64) -> Bytes {
    bytes(&json!({"jsonrpc": "2.0", "id": id, "result": {}}))
}

fn question() -> Bytes {
    bytes(&json!({"jsonrpc": "2.0", "id": 7, "method": "roots/list"}))
}

fn withdrawal() -> Bytes {
    bytes(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}),
    )
}

/// The answer, the end of the connection, and a caller who waits.
#[test]
fn an_answer_meets_the_end_of_the_connection() {
    check(|| {
        let client = client(Handlers::default());
        let (session, link) = session(&client);
        let reports = reception(&session);
        let pending = session.ask(&ClientRequest::new("ping", None), None, Vec::new());
        let threads = Threads::default();
        let (answering, ending) = (reports.clone(), reports.clone());
        threads.start(move || {
            answering.message(response(1), Some(1));
        });
        threads.start(move || ending.ended(ClientError::Closed));
        match block_on(pending) {
            Ok(_) => {}
            Err(error) => assert_eq!(error, ClientError::Closed),
        }
        assert_eq!(link.cancellations(), 0);
        // Nobody asks any more, or nothing is sent for him.
        let late = session.ask(&ClientRequest::new("ping", None), None, Vec::new());
        drop(client);
        threads_joined(threads, session, late);
    });
}

/// Waits for threads and tasks, of which a client's timers are one.
fn threads_joined(threads: Threads, session: Arc<Session>, late: super::session::Pending) {
    let ended = block_on(late);
    assert!(ended.is_err(), "{ended:?}");
    drop(session);
    threads.join();
}

/// The caller gives up while the answer comes.
#[test]
fn an_answer_meets_its_cancellation() {
    check(|| {
        let client = client(Handlers::default());
        let (session, link) = session(&client);
        let reports = reception(&session);
        let pending = session.ask(&ClientRequest::new("ping", None), None, Vec::new());
        let threads = Threads::default();
        let answering = reports.clone();
        threads.start(move || {
            assert!(answering.message(response(1), Some(1)), "it is over");
        });
        threads.start(move || drop(pending));
        let failing = reports.clone();
        threads.start(move || failing.failed(1, ClientError::Closed));
        drop((client, session));
        threads.join();
        let told = link.cancellations();
        assert!(told <= 1);
        assert_eq!(link.abandoned.load(Ordering::SeqCst), told);
    });
}

/// Requests are made while the connection ends: each ends.
#[test]
fn requests_meet_the_end_of_the_connection() {
    check(|| {
        let client = client(Handlers::default());
        let (session, _link) = session(&client);
        let reports = reception(&session);
        let threads = Threads::default();
        for _ in 0..2 {
            let session = session.clone();
            threads.start(move || {
                let pending = session.ask(&ClientRequest::new("ping", None), None, Vec::new());
                assert!(block_on(pending).is_err());
            });
        }
        threads.start(move || reports.ended(ClientError::Closed));
        drop((client, session));
        threads.join();
    });
}

/// Reports come while the session takes over from its opening: none is lost, none overtakes another.
#[test]
fn reports_meet_the_handing_over() {
    check(|| {
        let told: Arc<Record<String>> = Arc::default();
        let heard = told.clone();
        let handlers = Handlers {
            listeners: vec![Arc::new(move |notification: &_| {
                let notification: &mcpline_protocol::wire::Notification = notification;
                heard.add(notification.method.as_str().to_owned());
            })],
            ..Handlers::default()
        };
        let client = client(handlers);
        let (session, _link) = session(&client);
        let (reception, mut reports) = Reception::new();
        let pending = session.ask(&ClientRequest::new("ping", None), None, Vec::new());
        let threads = Threads::default();
        let reporting = reception.clone();
        threads.start(move || {
            for method in [
                "notifications/one",
                "notifications/two",
                "notifications/three",
            ] {
                let message = json!({"jsonrpc": "2.0", "method": method});
                reporting.message(bytes(&message), None);
            }
            reporting.message(response(1), Some(1));
            reporting.ended(ClientError::Closed);
        });
        reception.hand_over(&session, &mut reports);
        assert!(block_on(pending).is_ok());
        drop(client);
        drop(session);
        threads.join();
        assert_eq!(
            told.all(),
            [
                "notifications/one",
                "notifications/two",
                "notifications/three"
            ]
        );
    });
}

/// Handlers that never answer, each of which holds what is returned.
fn handlers_that_wait() -> (Handlers, Arc<()>) {
    let held = Arc::new(());
    let kept = held.clone();
    let handlers = Handlers {
        capabilities: ClientCapabilities {
            roots: Some(RootsCapability::default()),
            ..ClientCapabilities::default()
        },
        list_roots: Some(Arc::new(move |_: Option<Raw>| {
            let kept = kept.clone();
            Box::pin(async move {
                std::future::pending::<()>().await;
                drop(kept);
                Ok(Raw::EMPTY_OBJECT)
            })
        })),
        ..Handlers::default()
    };
    (handlers, held)
}

/// A question comes over one stream, its withdrawal over another.
#[test]
fn a_question_meets_its_withdrawal() {
    check(|| {
        let (handlers, _held) = handlers_that_wait();
        let client = client(handlers);
        let (session, link) = session(&client);
        let reports = reception(&session);
        let threads = Threads::default();
        let asking = reports.clone();
        threads.start(move || {
            asking.message(question(), None);
        });
        let withdrawing = reports.clone();
        threads.start(move || {
            withdrawing.message(withdrawal(), None);
        });
        // What was withdrawn before it was asked was not withdrawn.
        threads.join_threads();
        reports.message(withdrawal(), None);
        drop((client, session));
        // The handler's task, too.
        settle();
        assert_eq!(link.sent.all().len(), 0);
    });
}

/// The server asks while the connection ends.
#[test]
fn a_question_meets_the_end_of_the_connection() {
    check(|| {
        let (handlers, _held) = handlers_that_wait();
        let client = client(handlers);
        let (session, _link) = session(&client);
        let reports = reception(&session);
        let threads = Threads::default();
        let asking = reports.clone();
        threads.start(move || {
            asking.message(question(), None);
        });
        threads.start(move || reports.ended(ClientError::Closed));
        threads.join_threads();
        drop((client, session));
        // The handler's task, too.
        settle();
    });
}
