//! A client sends only what was declared: by its server, and by itself.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcpline::Revision;
use mcpline::client::{
    Address, Channel, Client, ClientBuilder, ClientError, ClientErrorKind, Dial,
};
use mcpline::protocol::vocabulary::{CompleteParams, LoggingLevel, Root, RootsCapability};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// A server with these capabilities, that has no method at all, and what it was sent after the opening.
#[derive(Clone)]
struct Peer {
    capabilities: Value,
    sent: Arc<Mutex<Vec<String>>>,
}

impl Peer {
    fn with(capabilities: Value) -> Self {
        Self {
            capabilities,
            sent: Arc::default(),
        }
    }

    async fn connect(&self, host: ClientBuilder, revision: Revision) -> Client {
        host.configure(|settings| {
            settings.revisions = vec![revision];
            settings.listen = false;
        })
        .connect(Address::Custom(Arc::new(self.clone())))
        .await
        .expect("connects")
    }

    fn answer(&self, message: &Value) -> Option<Value> {
        let method = message["method"].as_str().expect("a method");
        let id = &message["id"];
        let result = match method {
            "server/discover" => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "public",
                "capabilities": self.capabilities}),
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"], "capabilities": self.capabilities,
                "serverInfo": {"name": "peer", "version": "1"}}),
            "notifications/initialized" => return None,
            _ => {
                let mut sent = self.sent.lock().expect("not poisoned");
                sent.push(method.to_owned());
                let error = json!({"code": -32601, "message": "no"});
                return (!id.is_null())
                    .then(|| json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        };
        Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    /// What came since the last time.
    fn sent(&self) -> Vec<String> {
        std::mem::take(&mut *self.sent.lock().expect("not poisoned"))
    }
}

impl Dial for Peer {
    fn dial(&self) -> Pin<Box<dyn Future<Output = std::io::Result<Channel>> + Send + '_>> {
        let (to_server, mut messages) = mpsc::unbounded_channel::<Bytes>();
        let (answers, from_server) = mpsc::channel(100);
        let peer = self.clone();
        tokio::spawn(async move {
            while let Some(message) = messages.recv().await {
                let message = serde_json::from_slice(&message).expect("JSON");
                if let Some(answer) = peer.answer(&message)
                    && answers.send(answer.to_string().into()).await.is_err()
                {
                    return;
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

/// How each request of a feature fails, by its method.
async fn failures(client: &Client) -> Vec<(&'static str, ClientError)> {
    let completion: CompleteParams = serde_json::from_value(
        json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}),
    )
    .expect("parameters");
    let mut failures = Vec::new();
    let mut note = |method, outcome: Result<(), ClientError>| {
        failures.push((method, outcome.expect_err(method)));
    };
    note("tools/list", client.list_tools().await.map(drop));
    note(
        "tools/call",
        client.call_tool("t", json!({})).await.map(drop),
    );
    note("resources/list", client.list_resources().await.map(drop));
    let templates = client.list_resource_templates().await;
    note("resources/templates/list", templates.map(drop));
    note(
        "resources/read",
        client.read_resource("a:b").await.map(drop),
    );
    note("resources/subscribe", client.subscribe("a:b").await);
    note("prompts/list", client.list_prompts().await.map(drop));
    let prompt = client.get_prompt("p", &BTreeMap::new()).await;
    note("prompts/get", prompt.map(drop));
    if client.revision() != Revision::V2024_11_05 {
        note(
            "completion/complete",
            client.complete(&completion).await.map(drop),
        );
    }
    note(
        "logging/setLevel",
        client.set_log_level(LoggingLevel::Info).await,
    );
    failures
}

#[runtimes::test]
async fn what_a_server_has_not_declared_is_not_sent() {
    for revision in Revision::ALL {
        let peer = Peer::with(json!({}));
        let client = peer.connect(Client::builder("host", "1"), *revision).await;
        for (method, error) in failures(&client).await {
            assert_eq!(
                error.kind(),
                ClientErrorKind::Unsupported,
                "{method}: {error}"
            );
            assert!(
                error
                    .to_string()
                    .contains("does not declare the capability `"),
                "{error}"
            );
        }
        assert_eq!(peer.sent(), [""; 0], "{revision}");
        client.close().await;
    }
}

#[runtimes::test]
async fn a_server_with_resources_may_still_have_no_subscriptions() {
    for revision in Revision::ALL {
        let peer = Peer::with(json!({"resources": {"subscribe": false}}));
        let client = peer.connect(Client::builder("host", "1"), *revision).await;
        let error = client.subscribe("a:b").await.expect_err("no subscriptions");
        assert_eq!(error.kind(), ClientErrorKind::Unsupported, "{error}");
        assert_eq!(peer.sent(), [""; 0], "{revision}");
        let error = client.read_resource("a:b").await.expect_err("no method");
        assert_eq!(error.kind(), ClientErrorKind::Rpc, "{error}");
        client.close().await;
    }
}

#[runtimes::test]
async fn an_option_sends_what_was_not_declared() {
    for revision in Revision::LEGACY {
        let peer = Peer::with(json!({}));
        let host = Client::builder("host", "1")
            .configure(|settings| settings.allow_undeclared_capabilities = true);
        let client = peer.connect(host, *revision).await;
        let mut expected = Vec::new();
        for (method, error) in failures(&client).await {
            assert_eq!(error.kind(), ClientErrorKind::Rpc, "{method}: {error}");
            expected.push(method);
        }
        assert_eq!(peer.sent(), expected, "{revision}");
        client.close().await;
    }
}

#[runtimes::test]
async fn only_a_client_that_declared_it_tells_that_its_roots_have_changed() {
    const TOLD: &str = "notifications/roots/list_changed";
    let host = || Client::builder("host", "1");
    let roots = || host().roots([Root::new("file:///a").expect("a root")]);
    let quiet = || roots().capabilities(|all| all.roots = Some(RootsCapability::default()));
    for (host, tells) in [(host(), false), (quiet(), false), (roots(), true)] {
        let peer = Peer::with(json!({}));
        let client = peer.connect(host, Revision::V2025_11_25).await;
        for outcome in [
            client.roots_changed().await,
            client.notify(TOLD, None).await,
        ] {
            match outcome {
                Ok(()) => assert!(tells),
                Err(error) => {
                    assert_eq!(error.kind(), ClientErrorKind::Unsupported, "{error}");
                    assert!(!tells);
                }
            }
        }
        // Messages arrive in order: what was sent is known once this one is answered.
        client.ping().await.expect_err("no method");
        let expected: &[&str] = if tells {
            &[TOLD, TOLD, "ping"]
        } else {
            &["ping"]
        };
        assert_eq!(peer.sent(), expected);
        client.close().await;
    }
}
