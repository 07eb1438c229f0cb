//! A server scripted by a closure, and helpers for tests of clients.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use mcpline::Revision;
use mcpline::client::{Address, Channel, Client, ClientBuilder, ClientTransport};
use schema_check::Conversation;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::tasks::Tasks;

type Script = dyn Fn(&Value, &dyn Fn(Value)) + Send + Sync;

/// A message that closes the connection instead of being sent.
pub(crate) const LEAVE: Value = Value::Null;

/// A server of one revision, scripted by a closure. The closure gets each message after the opening, and a function
/// that sends a message to the client.
#[derive(Clone)]
pub(crate) struct Peer {
    revision: Revision,
    pub(crate) capabilities: Value,
    script: Arc<Script>,
    sent: Arc<Mutex<Vec<Value>>>,
    arrived: Option<mpsc::UnboundedSender<Value>>,
    is_checked: bool,
    dialled: Arc<AtomicUsize>,
    tasks: Tasks,
}

/// The messages of an opening, which the peer answers without its script.
const OPENING: [&str; 3] = ["server/discover", "initialize", "notifications/initialized"];

impl Peer {
    pub(crate) fn new(
        revision: Revision,
        script: impl Fn(&Value, &dyn Fn(Value)) + Send + Sync + 'static,
    ) -> Self {
        Self {
            revision,
            capabilities: json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}}),
            script: Arc::new(script),
            sent: Arc::default(),
            arrived: None,
            is_checked: false,
            dialled: Arc::default(),
            tasks: Tasks::default(),
        }
    }

    /// Validates the messages of this peer and of its client against the schema of the revision.
    pub(crate) fn checked(mut self) -> Self {
        self.is_checked = true;
        self
    }

    /// Returns a receiver of the messages that arrive after the opening, on connections made from now on.
    pub(crate) fn arrivals(&mut self) -> mpsc::UnboundedReceiver<Value> {
        let (arrived, arrivals) = mpsc::unbounded_channel();
        self.arrived = Some(arrived);
        arrivals
    }

    pub(crate) async fn connect(&self, host: ClientBuilder) -> Client {
        let revision = self.revision;
        host.configure(|settings| settings.revisions = vec![revision])
            .connect(Address::Custom(Arc::new(self.clone())))
            .await
            .expect("connects")
    }

    fn receive(&self, message: &Value, say: &dyn Fn(Value)) {
        let method = message["method"].as_str().unwrap_or("response");
        let capabilities = &self.capabilities;
        self.sent
            .lock()
            .expect("not poisoned")
            .push(message.clone());
        match method {
            "server/discover" => say(result(
                message,
                json!({"resultType": "complete", "supportedVersions": [self.revision], "capabilities": capabilities,
                       "ttlMs": 0, "cacheScope": "public"}),
            )),
            "initialize" => say(result(
                message,
                json!({"protocolVersion": self.revision, "capabilities": capabilities,
                       "serverInfo": {"name": "peer", "version": "1"}}),
            )),
            "notifications/initialized" => {}
            _ => {
                if let Some(arrived) = &self.arrived {
                    arrived.send(message.clone()).expect("the test lives");
                }
                (self.script)(message, say);
            }
        }
    }

    /// Counts the received messages with this method; "response" counts responses.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.sent(method).len()
    }

    /// Returns the received messages with this method, on all connections.
    pub(crate) fn sent(&self, method: &str) -> Vec<Value> {
        let is_of = |message: &&Value| message["method"].as_str().unwrap_or("response") == method;
        let sent = self.sent.lock().expect("not poisoned");
        sent.iter().filter(is_of).cloned().collect()
    }

    /// Returns the methods of the messages received after the opening, in order; "response" for a response.
    pub(crate) fn methods(&self) -> Vec<String> {
        let sent = self.sent.lock().expect("not poisoned");
        let methods = sent
            .iter()
            .map(|message| message["method"].as_str().unwrap_or("response"));
        methods
            .filter(|method| !OPENING.contains(method))
            .map(str::to_owned)
            .collect()
    }

    /// Returns the parameters of the requests with this method, in order.
    pub(crate) fn params_of(&self, method: &str) -> Vec<Value> {
        let sent = self.sent(method);
        sent.iter()
            .map(|message| message["params"].clone())
            .collect()
    }

    /// Returns the capabilities that the client declared: in the handshake, or since 2026-07-28 with the first request.
    pub(crate) fn declared(&self) -> Value {
        if self.revision.is_modern() {
            let params = &self.params_of("server/discover")[0];
            return params["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone();
        }
        self.params_of("initialize")[0]["capabilities"].clone()
    }

    /// Returns the implementation that the client declared.
    pub(crate) fn identity(&self) -> Value {
        if self.revision.is_modern() {
            let params = &self.params_of("server/discover")[0];
            return params["_meta"]["io.modelcontextprotocol/clientInfo"].clone();
        }
        self.params_of("initialize")[0]["clientInfo"].clone()
    }

    /// Returns how many connections were opened.
    pub(crate) fn dialled(&self) -> usize {
        self.dialled.load(Ordering::Relaxed)
    }

    /// Waits until it received this method `times` times.
    pub(crate) async fn wait_for(&self, method: &str, times: usize) {
        let received = async {
            while self.count(method) < times {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        soon(received).await;
    }
}

impl ClientTransport for Peer {
    fn dial(&self) -> Pin<Box<dyn Future<Output = std::io::Result<Channel>> + Send + '_>> {
        let (to_server, mut messages) = mpsc::unbounded_channel::<Bytes>();
        let (answers, from_server) = mpsc::channel(100);
        let peer = self.clone();
        peer.dialled.fetch_add(1, Ordering::Relaxed);
        self.tasks.spawn(async move {
            let mut talk = peer
                .is_checked
                .then(|| Conversation::of_client(peer.revision.as_str()));
            while let Some(message) = messages.recv().await {
                let message = serde_json::from_slice(&message).expect("JSON");
                if let Some(talk) = &mut talk {
                    talk.server(&message);
                }
                let replies = Mutex::new(Vec::new());
                peer.receive(&message, &|message| {
                    replies.lock().expect("not poisoned").push(message);
                });
                for message in replies.into_inner().expect("not poisoned") {
                    if let Some(talk) = &mut talk {
                        talk.client(&message);
                    }
                    if message == LEAVE
                        || answers.send(Ok(message.to_string().into())).await.is_err()
                    {
                        return;
                    }
                }
            }
        });
        Box::pin(async {
            Ok(Channel {
                to_server,
                from_server,
            })
        })
    }
}

pub(crate) fn host() -> ClientBuilder {
    Client::builder("host", "1")
}

pub(crate) fn result(to: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": to["id"], "result": result})
}

pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// Acknowledges the subscription with this id.
pub(crate) fn acknowledge(id: &Value, notifications: Value) -> Value {
    notification(
        "notifications/subscriptions/acknowledged",
        json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}, "notifications": notifications}),
    )
}

/// Waits for `what`; panics if it takes longer than five minutes: ThreadSanitizer slows large messages twenty times.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(300), what)
        .await
        .expect("it happens")
}
