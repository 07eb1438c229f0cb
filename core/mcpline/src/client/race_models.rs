//! Models of a client's session. Races of a request's response, its cancellation by the caller, the end of the
//! connection, and reports during the handover from negotiation to session; and races of a server's request, its
//! cancellation and the end. Each request ends once for its caller and is cancelled at most once, only if the caller
//! gave it up; no report is lost or reordered; the handler of a request ends when its answer is no longer needed.

mod closing;
mod subscriptions;

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use mcpline_protocol::client::{NegotiatedSession, OutgoingClientRequest};
use mcpline_protocol::vocabulary::{
    ClientCapabilities, Implementation, RootsCapability, ServerCapabilities,
};
use mcpline_protocol::{Raw, Revision};
use serde_json::{Value, json};
use shuttle::future::block_on;

use crate::client_error::ClientError;
use crate::race_models::{Record, check, settle};
use crate::server::race_models::Threads;
use crate::sync::Arc;

use super::connect::{DialFuture, Dialler};
use super::handlers::{Handlers, HostRequest};
use super::inner::Inner;
use super::link::{Link, LinkEventSink, LinkFuture, Outgoing, SharedEventSink};
use super::session::{LinkEventReceiver, Session};
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

    fn set_session_open(&self, _: Revision) {}

    fn close(&self) -> LinkFuture {
        Box::pin(std::future::ready(()))
    }
}

/// A dialler without links.
struct Nowhere;

impl Dialler for Nowhere {
    fn dial(&self, _: SharedEventSink, _: bool) -> DialFuture<'_> {
        Box::pin(async { Err(ClientError::Closed) })
    }
}

fn client(handlers: Handlers) -> Arc<Inner> {
    let info = Implementation::new("test", "1");
    Inner::new(
        info,
        ClientSettings::default(),
        handlers,
        Box::new(Nowhere),
        None,
    )
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

/// Passes reports to the session, which has taken over.
fn reception(session: &Arc<Session>) -> Arc<LinkEventReceiver> {
    let (reception, mut reports) = LinkEventReceiver::new();
    reception.hand_over(session, &mut reports);
    reception
}

fn bytes(message: &Value) -> Bytes {
    message.to_string().into()
}

fn response(id: u64) -> Bytes {
    bytes(&json!({"jsonrpc": "2.0", "id": id, "result": {}}))
}

fn server_request() -> Bytes {
    bytes(&json!({"jsonrpc": "2.0", "id": 7, "method": "roots/list"}))
}

fn cancellation() -> Bytes {
    bytes(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}),
    )
}

/// A response races the end of the connection while the caller waits.
#[test]
fn response_races_end_of_connection() {
    check(|| {
        let client = client(Handlers::default());
        let (session, link) = session(&client);
        let reports = reception(&session);
        let pending =
            session.send_request(&OutgoingClientRequest::new("ping", None), None, Vec::new());
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
        // The caller is gone, or nothing is sent.
        let late =
            session.send_request(&OutgoingClientRequest::new("ping", None), None, Vec::new());
        drop(client);
        threads_joined(threads, session, late);
    });
}

/// Waits for threads and tasks, including the client's timers.
fn threads_joined(threads: Threads, session: Arc<Session>, late: super::session::ResponseFuture) {
    let ended = block_on(late);
    assert!(ended.is_err(), "{ended:?}");
    drop(session);
    threads.join();
}

/// The caller gives up while the response arrives.
#[test]
fn response_races_cancellation() {
    check(|| {
        let client = client(Handlers::default());
        let (session, link) = session(&client);
        let reports = reception(&session);
        let pending =
            session.send_request(&OutgoingClientRequest::new("ping", None), None, Vec::new());
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
        let cancelled = link.cancellations();
        assert!(cancelled <= 1);
        assert_eq!(link.abandoned.load(Ordering::SeqCst), cancelled);
    });
}

/// Requests made while the connection ends all end.
#[test]
fn requests_race_end_of_connection() {
    check(|| {
        let client = client(Handlers::default());
        let (session, _link) = session(&client);
        let reports = reception(&session);
        let threads = Threads::default();
        for _ in 0..2 {
            let session = session.clone();
            threads.start(move || {
                let pending = session.send_request(
                    &OutgoingClientRequest::new("ping", None),
                    None,
                    Vec::new(),
                );
                assert!(block_on(pending).is_err());
            });
        }
        threads.start(move || reports.ended(ClientError::Closed));
        drop((client, session));
        threads.join();
    });
}

/// LinkEventSink during the handover to the session are neither lost nor reordered.
#[test]
fn reports_race_handover() {
    check(|| {
        let received: Arc<Record<String>> = Arc::default();
        let record = received.clone();
        let handlers = Handlers {
            listeners: vec![Arc::new(move |notification: &_| {
                let notification: &mcpline_protocol::wire::Notification = notification;
                record.add(notification.method.as_str().to_owned());
            })],
            ..Handlers::default()
        };
        let client = client(handlers);
        let (session, _link) = session(&client);
        let (reception, mut reports) = LinkEventReceiver::new();
        let pending =
            session.send_request(&OutgoingClientRequest::new("ping", None), None, Vec::new());
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
            received.all(),
            [
                "notifications/one",
                "notifications/two",
                "notifications/three"
            ]
        );
    });
}

/// Handlers that never answer, each of which holds the returned value.
fn handlers_that_wait() -> (Handlers, Arc<()>) {
    let held = Arc::new(());
    let kept = held.clone();
    let handlers = Handlers {
        capabilities: ClientCapabilities::default().with_roots(RootsCapability::default()),
        list_roots: Some(Arc::new(move |_: HostRequest| {
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

/// A server's request arrives over one stream, its cancellation over another.
#[test]
fn server_request_races_its_cancellation() {
    check(|| {
        let (handlers, _held) = handlers_that_wait();
        let client = client(handlers);
        let (session, link) = session(&client);
        let reports = reception(&session);
        let threads = Threads::default();
        let requesting = reports.clone();
        threads.start(move || {
            requesting.message(server_request(), None);
        });
        let cancelling = reports.clone();
        threads.start(move || {
            cancelling.message(cancellation(), None);
        });
        // A cancellation that came before its request had no effect.
        threads.join_threads();
        reports.message(cancellation(), None);
        drop((client, session));
        // Including the handler's task.
        settle();
        assert_eq!(link.sent.all().len(), 0);
    });
}

/// The server sends a request while the connection ends.
#[test]
fn server_request_races_end_of_connection() {
    check(|| {
        let (handlers, _held) = handlers_that_wait();
        let client = client(handlers);
        let (session, _link) = session(&client);
        let reports = reception(&session);
        let threads = Threads::default();
        let requesting = reports.clone();
        threads.start(move || {
            requesting.message(server_request(), None);
        });
        threads.start(move || reports.ended(ClientError::Closed));
        threads.join_threads();
        drop((client, session));
        // Including the handler's task.
        settle();
    });
}
