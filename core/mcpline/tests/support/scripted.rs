//! Servers of one revision that a closure scripts, by message and connection.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use mcpline::Revision;
use mcpline::client::{Address, Channel, ClientTransport};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::tasks::Tasks;

/// An action of a scripted server.
pub(crate) enum Act {
    Say(Value),
    Leave,
    /// Reads nothing for this long.
    Work(Duration),
}

type Script = dyn Fn(usize, &Value) -> Vec<Act> + Send + Sync;

/// A scripted server. It handles the opening itself; its closure gets the connection's number and each message after
/// that.
pub(crate) struct Scripted {
    server: Arc<Server>,
    tasks: Tasks,
}

impl Deref for Scripted {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// What a scripted server has received.
pub(crate) struct Server {
    revision: Revision,
    script: Box<Script>,
    dialled: AtomicUsize,
    /// How many connections the client has closed.
    closed: AtomicUsize,
    /// Once this is true, `server/discover` goes to the script as well.
    refusing: OnceLock<Arc<AtomicBool>>,
    /// The received messages, with the number of their connection.
    sent: Mutex<Vec<(usize, Value)>>,
}

impl Scripted {
    pub(crate) fn new(
        revision: Revision,
        script: impl Fn(usize, &Value) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        Self {
            server: Arc::new(Server {
                revision,
                script: Box::new(script),
                dialled: AtomicUsize::new(0),
                closed: AtomicUsize::new(0),
                refusing: OnceLock::new(),
                sent: Mutex::default(),
            }),
            tasks: Tasks::default(),
        }
    }

    pub(crate) fn address(&self) -> Address {
        Address::Custom(Arc::new(To(self.server.clone(), self.tasks.clone())))
    }
}

impl Server {
    /// Leaves `server/discover` to the script once `refusing` is true.
    pub(crate) fn refuse_openings_when(&self, refusing: Arc<AtomicBool>) {
        assert!(self.refusing.set(refusing).is_ok(), "it is set once");
    }

    pub(crate) fn dialled(&self) -> usize {
        self.dialled.load(Ordering::SeqCst)
    }

    pub(crate) fn closed(&self) -> usize {
        self.closed.load(Ordering::SeqCst)
    }

    /// Returns the received messages with this method, on all connections.
    pub(crate) fn sent(&self, method: &str) -> Vec<(usize, Value)> {
        let sent = self.sent.lock().expect("not poisoned");
        let with = sent
            .iter()
            .filter(|(_, message)| message["method"] == method);
        with.cloned().collect()
    }

    fn receive(&self, connection: usize, message: Value) -> Vec<Act> {
        let method = message["method"].as_str().unwrap_or("response").to_owned();
        let is_first = !self.sent(&method).iter().any(|(at, _)| *at == connection);
        let mut sent = self.sent.lock().expect("not poisoned");
        sent.push((connection, message.clone()));
        drop(sent);
        let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}, "prompts": {},
            "logging": {}, "completions": {}});
        let refusing = self.refusing.get();
        let refuses = refusing.is_some_and(|refusing| refusing.load(Ordering::SeqCst));
        match method.as_str() {
            "server/discover" if refuses => (self.script)(connection, &message),
            "server/discover" if !self.revision.is_modern() => vec![error(&message, -32601)],
            "server/discover" if is_first => vec![result(
                &message,
                json!({"resultType": "complete", "supportedVersions": [self.revision],
                    "capabilities": capabilities, "ttlMs": 0, "cacheScope": "public"}),
            )],
            "initialize" => vec![result(
                &message,
                json!({"protocolVersion": self.revision, "capabilities": capabilities,
                    "serverInfo": {"name": "scripted", "version": "1"}}),
            )],
            "notifications/initialized" => vec![],
            _ => (self.script)(connection, &message),
        }
    }
}

pub(crate) fn result(to: &Value, result: Value) -> Act {
    Act::Say(json!({"jsonrpc": "2.0", "id": to["id"], "result": result}))
}

pub(crate) fn error(to: &Value, code: i64) -> Act {
    Act::Say(json!({"jsonrpc": "2.0", "id": to["id"], "error": {"code": code, "message": "no"}}))
}

struct To(Arc<Server>, Tasks);

impl ClientTransport for To {
    fn dial(&self) -> Pin<Box<dyn Future<Output = std::io::Result<Channel>> + Send + '_>> {
        let connection = self.0.dialled.fetch_add(1, Ordering::SeqCst);
        let (to_server, mut messages) = mpsc::unbounded_channel::<Bytes>();
        let (answers, from_server) = mpsc::channel(100);
        let server = self.0.clone();
        self.1.spawn(async move {
            while let Some(message) = messages.recv().await {
                let message = serde_json::from_slice(&message).expect("JSON");
                for act in server.receive(connection, message) {
                    match act {
                        Act::Say(said) => {
                            // The client may be gone.
                            let _ = answers.send(Ok(said.to_string().into())).await;
                        }
                        Act::Leave => return,
                        Act::Work(time) => tokio::time::sleep(time).await,
                    }
                }
            }
            server.closed.fetch_add(1, Ordering::SeqCst);
        });
        Box::pin(async {
            Ok(Channel {
                to_server,
                from_server,
            })
        })
    }
}
