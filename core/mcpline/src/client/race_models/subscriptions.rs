//! Models of a client's subscriptions on 2026-07-28. Callers that subscribe to the same or different resources, give up
//! or unsubscribe race each other and the task that updates the server. A resource stays subscribed exactly as long as
//! a caller waits for it or has it; each caller gets the outcome of its own change; at the end the server has the
//! client's current subscriptions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mcpline_protocol::client::RequestTimeouts;
use shuttle::future::{block_on, yield_now};
use shuttle::thread;
use tokio::sync::mpsc;

use crate::race_models::spawn;
use crate::sync::{Mutex, yield_point};

use super::*;

/// A link that passes the client's messages to a server.
struct ListeningServer {
    sent: mpsc::UnboundedSender<Value>,
}

impl Link for ListeningServer {
    fn send(&self, outgoing: Outgoing) {
        let message = serde_json::from_slice(&outgoing.message).expect("JSON");
        // The server has ended at the end of the model.
        let _ = self.sent.send(message);
    }

    fn abandon(&self, _: u64) {}

    fn set_session_open(&self, _: Revision) {}

    fn close(&self) -> LinkFuture {
        Box::pin(std::future::ready(()))
    }
}

/// A client subscribed to a server that acknowledges all resources of the scheme `test`.
struct Model {
    client: Arc<Inner>,
    /// The resources that the server has acknowledged.
    known: Arc<Mutex<BTreeSet<String>>>,
    /// `null` ends the server.
    to_server: mpsc::UnboundedSender<Value>,
    threads: Threads,
}

impl Model {
    fn start() -> Self {
        let client = client(Handlers::default());
        let (to_server, mut sent) = mpsc::unbounded_channel();
        let link = Arc::new(ListeningServer {
            sent: to_server.clone(),
        });
        let resources = json!({"resources": {"subscribe": true}});
        let opened = NegotiatedSession {
            revision: Revision::V2026_07_28,
            capabilities: serde_json::from_value(resources).expect("capabilities"),
            info: None,
            instructions: None,
            initialized: None,
            next_id: 1,
        };
        let session = Session::start(opened, link, &client);
        let reports = reception(&session);
        client.listen(&session);
        let known: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let knows = known.clone();
        spawn(async move {
            let mut open: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
            while let Some(message) = sent.recv().await {
                if message.is_null() {
                    break;
                }
                if message["method"] == "subscriptions/listen" {
                    let id = message["id"].as_u64().expect("a number");
                    let requested = &message["params"]["notifications"]["resourceSubscriptions"];
                    let requested: BTreeSet<String> =
                        serde_json::from_value(requested.clone()).expect("URIs");
                    let taken: BTreeSet<String> = requested
                        .into_iter()
                        .filter(|uri| uri.starts_with("test:"))
                        .collect();
                    open.insert(id, taken.clone());
                    *knows.lock().expect("no panic") = open.values().flatten().cloned().collect();
                    let params = json!({
                        "_meta": {"io.modelcontextprotocol/subscriptionId": id},
                        "notifications": {"resourceSubscriptions": taken}});
                    let method = "notifications/subscriptions/acknowledged";
                    let acknowledged =
                        json!({"jsonrpc": "2.0", "method": method, "params": params});
                    reports.message(bytes(&acknowledged), Some(id));
                }
                if message["method"] == "notifications/cancelled" {
                    let id = message["params"]["requestId"].as_u64().expect("a number");
                    open.remove(&id).expect("it was open");
                    *knows.lock().expect("no panic") = open.values().flatten().cloned().collect();
                }
            }
        });
        Self {
            client,
            known,
            to_server,
            threads: Threads::default(),
        }
    }

    /// Starts a thread that subscribes or unsubscribes and records the outcome. With `turns`, it gives up after so many
    /// turns.
    fn change(&self, uri: &'static str, wanted: bool, turns: Option<usize>) -> ChangeOutcome {
        let outcome = ChangeOutcome::default();
        let (client, ended) = (self.client.clone(), outcome.clone());
        self.threads.start(move || {
            let timeouts = RequestTimeouts {
                idle: Duration::MAX,
                total: Duration::MAX,
            };
            let changing = client.subscriptions.set(uri, wanted, timeouts);
            let giving_up = async {
                match turns {
                    Some(turns) => {
                        for _ in 0..turns {
                            yield_now().await;
                        }
                    }
                    None => std::future::pending().await,
                }
            };
            let changed = block_on(async {
                tokio::select! {
                    biased;
                    changed = changing => Some(changed),
                    () = giving_up => None,
                }
            });
            // The thread has given up, if it was to.
            yield_point();
            *ended.0.lock().expect("no panic") = changed;
        });
        outcome
    }

    /// Waits for all callers, and until the server has the client's subscriptions. Returns them.
    fn subscriptions(&self) -> Vec<String> {
        self.threads.join_threads();
        loop {
            let uris = self.client.subscriptions.uris();
            let known = self.known.lock().expect("no panic").clone();
            if known.iter().eq(&uris) {
                return uris;
            }
            thread::yield_now();
        }
    }

    fn end(self) {
        self.client.subscriptions.stop();
        let _ = self.to_server.send(Value::Null);
        drop(self.client);
        settle();
    }
}

/// The outcome of a change; `None` if its caller gave up.
#[derive(Clone, Default)]
struct ChangeOutcome(Arc<Mutex<Option<Result<(), ClientError>>>>);

impl ChangeOutcome {
    fn get(&self) -> Option<Result<(), ClientError>> {
        self.0.lock().expect("no panic").clone()
    }
}

const ONE: &str = "test://one";
const TWO: &str = "test://two";

/// Two callers subscribe to one resource, and each may give up before the acknowledgment.
#[test]
fn subscribers_of_one_resource_race_giving_up() {
    check(|| {
        let model = Model::start();
        let outcomes = [5, 10].map(|turns| model.change(ONE, true, Some(turns)));
        let uris = model.subscriptions();
        let is_known = outcomes.iter().any(|outcome| outcome.get().is_some());
        assert_eq!(uris, if is_known { vec![ONE] } else { vec![] });
        model.end();
    });
}

/// One caller gives up while another one subscribes to another resource.
#[test]
fn subscription_races_giving_up_of_another() {
    check(|| {
        let model = Model::start();
        let impatient = model.change(ONE, true, Some(5));
        let patient = model.change(TWO, true, None);
        let uris = model.subscriptions();
        assert_eq!(patient.get(), Some(Ok(())));
        let expected: &[&str] = match impatient.get() {
            Some(_) => &[ONE, TWO],
            None => &[TWO],
        };
        assert_eq!(uris, expected);
        model.end();
    });
}

/// One caller subscribes while another one unsubscribes.
#[test]
fn subscribe_races_unsubscribe() {
    check(|| {
        let model = Model::start();
        let outcomes = [
            model.change(ONE, true, None),
            model.change(ONE, false, None),
            model.change(TWO, true, None),
        ];
        let uris = model.subscriptions();
        assert!(uris == [TWO] || uris == [ONE, TWO], "{uris:?}");
        assert!(outcomes.iter().all(|outcome| outcome.get() == Some(Ok(()))));
        model.end();
    });
}

/// Two callers subscribe, one of them to a resource whose changes the server does not report.
#[test]
fn subscription_races_one_that_the_server_leaves_out() {
    check(|| {
        let model = Model::start();
        let left_out = model.change("other://one", true, None);
        let taken = model.change(TWO, true, None);
        let uris = model.subscriptions();
        let refused = left_out.get();
        assert!(
            matches!(refused, Some(Err(ClientError::NotSupported(_)))),
            "{refused:?}"
        );
        assert_eq!(taken.get(), Some(Ok(())));
        assert_eq!(uris, [TWO]);
        model.end();
    });
}
