//! A server that a closure plays, and what tests of clients need beside it.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use mcpline::Revision;
use mcpline::client::{Address, Channel, Client, ClientBuilder, Dial};
use serde_json::{Value, json};
use tokio::sync::mpsc;

type Script = dyn Fn(&Value, &dyn Fn(Value)) + Send + Sync;

/// What a server says by which it leaves.
pub(crate) const LEAVE: Value = Value::Null;

/// A server in one revision that a closure plays: it is given each message after the opening, and what says something.
#[derive(Clone)]
pub(crate) struct Peer {
    revision: Revision,
    pub(crate) capabilities: Value,
    script: Arc<Script>,
    sent: Arc<Mutex<Vec<Value>>>,
    dialled: Arc<AtomicUsize>,
}

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
            dialled: Arc::default(),
        }
    }

    pub(crate) async fn connect(&self, host: ClientBuilder) -> Client {
        let revision = self.revision;
        host.configure(|settings| settings.revisions = vec![revision])
            .connect(Address::Custom(Arc::new(self.clone())))
            .await
            .expect("connects")
    }

    fn hear(&self, message: &Value, say: &dyn Fn(Value)) {
        let method = message["method"].as_str().unwrap_or("response");
        let capabilities = &self.capabilities;
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
                self.sent
                    .lock()
                    .expect("not poisoned")
                    .push(message.clone());
                (self.script)(message, say);
            }
        }
    }

    /// How often it was sent this method; "response" for a response.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.sent(method).len()
    }

    /// What it was sent of this method, on all connections.
    pub(crate) fn sent(&self, method: &str) -> Vec<Value> {
        let is_of = |message: &&Value| message["method"].as_str().unwrap_or("response") == method;
        let sent = self.sent.lock().expect("not poisoned");
        sent.iter().filter(is_of).cloned().collect()
    }

    /// How many connections there were.
    pub(crate) fn dialled(&self) -> usize {
        self.dialled.load(Ordering::Relaxed)
    }

    /// Waits until it was sent this method so often.
    pub(crate) async fn asked(&self, method: &str, times: usize) {
        let asked = async {
            while self.count(method) < times {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        soon(asked).await;
    }
}

impl Dial for Peer {
    fn dial(&self) -> Pin<Box<dyn Future<Output = std::io::Result<Channel>> + Send + '_>> {
        let (to_server, mut messages) = mpsc::unbounded_channel::<Bytes>();
        let (answers, from_server) = mpsc::channel(100);
        let peer = self.clone();
        peer.dialled.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            while let Some(message) = messages.recv().await {
                let message = serde_json::from_slice(&message).expect("JSON");
                let said = Mutex::new(Vec::new());
                peer.hear(&message, &|message| {
                    said.lock().expect("not poisoned").push(message);
                });
                for message in said.into_inner().expect("not poisoned") {
                    if message == LEAVE || answers.send(message.to_string().into()).await.is_err() {
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

/// Whatever has to happen soon.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what)
        .await
        .expect("it happens")
}
