//! Models of a client's subscriptions on 2026-07-28. Callers that subscribe to one resource or to several, that give up, and
//! one that unsubscribes, meet each other and the task that tells the server. A resource stays a wish as long as a caller waits
//! for it or has it, and no longer; each caller learns what came of its own; in the end the server knows the wishes as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mcpline_protocol::client::CallTimeouts;
use shuttle::future::{block_on, yield_now};
use shuttle::thread;
use tokio::sync::mpsc;

use crate::models::spawn;
use crate::sync::{Mutex, switch};

use super::*;

/// A link to a server that knows these resources after what it was sent so far.
struct ListeningServer {
    sent: mpsc::UnboundedSender<Value>,
}

impl Link for ListeningServer {
    fn send(&self, outgoing: Outgoing) {
        let message = serde_json::from_slice(&outgoing.message).expect("JSON");
        // It has ended at the end of the model.
        let _ = self.sent.send(message);
    }

    fn abandon(&self, _: u64) {}

    fn opened(&self, _: Revision) {}

    fn close(&self) -> Ending {
        Box::pin(std::future::ready(()))
    }
}

/// A client that listens to a server, which acknowledges all resources of the scheme `test`.
struct Model {
    client: Arc<Inner>,
    /// What the server knows.
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
                    let asked = &message["params"]["notifications"]["resourceSubscriptions"];
                    let asked: BTreeSet<String> =
                        serde_json::from_value(asked.clone()).expect("URIs");
                    let taken: BTreeSet<String> = asked
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

    /// A thread that subscribes or unsubscribes, and gives up after so many turns, if at all. What came of it is recorded.
    fn change(&self, uri: &'static str, wanted: bool, turns: Option<usize>) -> Outcome {
        let outcome = Outcome::default();
        let (client, ended) = (self.client.clone(), outcome.clone());
        self.threads.start(move || {
            let timeouts = CallTimeouts {
                idle: Duration::MAX,
                total: Duration::MAX,
            };
            let changing = client.listening.set(uri, wanted, timeouts);
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
            // Giving up has ended here.
            switch();
            *ended.0.lock().expect("no panic") = changed;
        });
        outcome
    }

    /// Waits for all callers, and until the server knows the wishes; these.
    fn wishes(&self) -> Vec<String> {
        self.threads.join_threads();
        loop {
            let wishes = self.client.listening.uris();
            let known = self.known.lock().expect("no panic").clone();
            if known.iter().eq(&wishes) {
                return wishes;
            }
            thread::yield_now();
        }
    }

    fn end(self) {
        self.client.listening.stop();
        let _ = self.to_server.send(Value::Null);
        drop(self.client);
        settle();
    }
}

/// What came of a change; `None` if its caller gave up.
#[derive(Clone, Default)]
struct Outcome(Arc<Mutex<Option<Result<(), ClientError>>>>);

impl Outcome {
    fn get(&self) -> Option<Result<(), ClientError>> {
        self.0.lock().expect("no panic").clone()
    }
}

const ONE: &str = "test://one";
const TWO: &str = "test://two";

/// Two callers subscribe to one resource, each of whom may give up before the server knows it.
#[test]
fn callers_of_one_resource_meet_their_giving_up() {
    check(|| {
        let model = Model::start();
        let outcomes = [5, 10].map(|turns| model.change(ONE, true, Some(turns)));
        let wishes = model.wishes();
        let is_known = outcomes.iter().any(|outcome| outcome.get().is_some());
        assert_eq!(wishes, if is_known { vec![ONE] } else { vec![] });
        model.end();
    });
}

/// A caller who gives up, and one who subscribes to another resource.
#[test]
fn a_subscription_meets_the_giving_up_of_another() {
    check(|| {
        let model = Model::start();
        let impatient = model.change(ONE, true, Some(5));
        let patient = model.change(TWO, true, None);
        let wishes = model.wishes();
        assert_eq!(patient.get(), Some(Ok(())));
        let expected: &[&str] = match impatient.get() {
            Some(_) => &[ONE, TWO],
            None => &[TWO],
        };
        assert_eq!(wishes, expected);
        model.end();
    });
}

/// One caller subscribes, another one unsubscribes.
#[test]
fn a_subscription_meets_its_end() {
    check(|| {
        let model = Model::start();
        let outcomes = [
            model.change(ONE, true, None),
            model.change(ONE, false, None),
            model.change(TWO, true, None),
        ];
        let wishes = model.wishes();
        assert!(wishes == [TWO] || wishes == [ONE, TWO], "{wishes:?}");
        assert!(outcomes.iter().all(|outcome| outcome.get() == Some(Ok(()))));
        model.end();
    });
}

/// Two callers subscribe, one of them to a resource whose changes the server doesn't report.
#[test]
fn a_subscription_meets_one_that_the_server_leaves_out() {
    check(|| {
        let model = Model::start();
        let left_out = model.change("other://one", true, None);
        let taken = model.change(TWO, true, None);
        let wishes = model.wishes();
        let refused = left_out.get();
        assert!(
            matches!(refused, Some(Err(ClientError::NotSupported(_)))),
            "{refused:?}"
        );
        assert_eq!(taken.get(), Some(Ok(())));
        assert_eq!(wishes, [TWO]);
        model.end();
    });
}
