//! A client sends only what its server and the client itself declared.

use std::collections::BTreeMap;

use crate::support::peer::{self, Peer};
use mcpline::ErrorKind;
use mcpline::Revision;
use mcpline::client::{Client, ClientBuilder, ClientError};
use mcpline::protocol::vocabulary::{CompleteParams, LoggingLevel, Root, RootsCapability};
use serde_json::{Value, json};

/// A server with these capabilities that implements no method.
fn peer_with(revision: Revision, capabilities: Value) -> Peer {
    let mut peer = Peer::new(revision, |message, say| {
        if !message["id"].is_null() {
            say(json!({"jsonrpc": "2.0", "id": message["id"],
                       "error": {"code": -32601, "message": "no"}}));
        }
    });
    peer.capabilities = capabilities;
    peer
}

/// A host that opens no subscription by itself.
fn host() -> ClientBuilder {
    peer::host().configure(|settings| settings.listen = false)
}

/// Sends a request of each feature; returns the errors by method.
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
async fn sends_no_requests_of_undeclared_features() {
    for revision in Revision::ALL {
        let peer = peer_with(*revision, json!({}));
        let client = peer.connect(host()).await;
        for (method, error) in failures(&client).await {
            assert_eq!(error.kind(), ErrorKind::NotSupported, "{method}: {error}");
            assert!(
                error
                    .to_string()
                    .contains("does not declare the capability `"),
                "{error}"
            );
        }
        assert_eq!(peer.methods(), [""; 0], "{revision}");
        client.close().await;
    }
}

#[runtimes::test]
async fn does_not_subscribe_without_the_subscribe_capability() {
    for revision in Revision::ALL {
        let peer = peer_with(*revision, json!({"resources": {"subscribe": false}}));
        let client = peer.connect(host()).await;
        let error = client.subscribe("a:b").await.expect_err("no subscriptions");
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
        assert_eq!(peer.methods(), [""; 0], "{revision}");
        let error = client.read_resource("a:b").await.expect_err("no method");
        assert_eq!(error.kind(), ErrorKind::Rpc, "{error}");
        client.close().await;
    }
}

#[runtimes::test]
async fn sends_requests_of_undeclared_features_if_allowed() {
    for revision in Revision::LEGACY {
        let peer = peer_with(*revision, json!({}));
        let host = host().configure(|settings| settings.allow_undeclared_capabilities = true);
        let client = peer.connect(host).await;
        let mut expected = Vec::new();
        for (method, error) in failures(&client).await {
            assert_eq!(error.kind(), ErrorKind::Rpc, "{method}: {error}");
            expected.push(method);
        }
        assert_eq!(peer.methods(), expected, "{revision}");
        client.close().await;
    }
}

#[runtimes::test]
async fn notifies_of_changed_roots_only_if_declared() {
    const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
    let roots = || host().roots([Root::new("file:///a").expect("a root")]);
    let quiet = || roots().capabilities(|all| all.roots = Some(RootsCapability::default()));
    for (host, is_sent) in [(host(), false), (quiet(), false), (roots(), true)] {
        let peer = peer_with(Revision::V2025_11_25, json!({}));
        let client = peer.connect(host).await;
        for outcome in [
            client.roots_changed().await,
            client.notify(ROOTS_CHANGED, None).await,
        ] {
            match outcome {
                Ok(()) => assert!(is_sent),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
                    assert!(!is_sent);
                }
            }
        }
        // Messages arrive in order: what was sent is known once this one is answered.
        client.ping().await.expect_err("no method");
        let expected: &[&str] = if is_sent {
            &[ROOTS_CHANGED, ROOTS_CHANGED, "ping"]
        } else {
            &["ping"]
        };
        assert_eq!(peer.methods(), expected);
        client.close().await;
    }
}
