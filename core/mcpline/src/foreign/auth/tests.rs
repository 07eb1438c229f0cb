//! A host with JSON requests: what it receives, and what its answers cause.

use std::collections::HashMap;
use std::sync::Mutex;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::auth::TokenStore;
use crate::foreign::options::{AuthOptions, HttpClientOptions, read};

/// Creates a host that answers with `answer`, and a receiver of the methods that it was called with.
fn host(
    answer: impl Fn(&str, &Value) -> Result<Value, RpcError> + Send + Sync + 'static,
) -> (
    impl Fn(&'static str) -> HostRequestHandler,
    mpsc::UnboundedReceiver<String>,
) {
    let (sender, methods) = mpsc::unbounded_channel();
    let answer = Arc::new(answer);
    let request_handlers = move |method: &'static str| -> HostRequestHandler {
        let (answer, sender) = (answer.clone(), sender.clone());
        Arc::new(move |request| {
            let params = request.params.expect("params");
            let params: Value = serde_json::from_slice(params.as_bytes()).expect("JSON");
            let _ = sender.send(method.to_owned());
            let answered = answer(method, &params);
            Box::pin(async move { answered.map(|value| Raw::from_trusted(value.to_string())) })
        })
    };
    (request_handlers, methods)
}

/// Implements `auth/store` with a map.
fn keeping() -> impl Fn(&str, &Value) -> Result<Value, RpcError> + Send + Sync + 'static {
    let kept: Mutex<HashMap<String, Value>> = Mutex::default();
    move |method, params| {
        let mut kept = kept.lock().expect("unpoisoned");
        let key = params["key"].as_str().expect("a key").to_owned();
        Ok(match method {
            "auth/store/load" => json!({ "value": kept.get(&key) }),
            "auth/store/save" => {
                kept.insert(key, params["value"].clone());
                Value::Null
            }
            "auth/store/remove" => {
                kept.remove(&key);
                json!({})
            }
            "auth/store/lock" => json!({ "lock": 7 }),
            _ => {
                assert_eq!(params["lock"], 7);
                Value::Null
            }
        })
    }
}

#[runtimes::test]
async fn a_host_store_keeps_bytes() {
    let (request_handlers, mut methods) = host(keeping());
    let store = HostStore::new(Some(&request_handlers), true, None).expect("made");
    assert_eq!(store.load("k").await.expect("loaded"), None);
    store.save("k", b"\0\xff").await.expect("saved");
    let loaded = store.load("k").await.expect("loaded");
    assert_eq!(loaded.as_deref(), Some(&b"\0\xff"[..]));
    store.remove("k").await.expect("removed");
    assert_eq!(store.load("k").await.expect("loaded"), None);
    drop(store.lock("k").await.expect("locked"));
    for expected in ["load", "save", "load", "remove", "load", "lock", "unlock"] {
        let method = methods.recv().await.expect("asked");
        assert_eq!(method, format!("auth/store/{expected}"));
    }
}

#[runtimes::test]
async fn a_host_without_locks_still_has_one_at_a_time_refresh() {
    let (request_handlers, mut methods) = host(keeping());
    let group = || Some("a store of the test".to_owned());
    let store = HostStore::new(Some(&request_handlers), false, group()).expect("made");
    let same = HostStore::new(Some(&request_handlers), false, group()).expect("made");
    let other = HostStore::new(Some(&request_handlers), false, None).expect("made");
    let held = store.lock("k").await.expect("locked");
    other.lock("k").await.expect("another store's");
    let mut second = same.lock("k");
    tokio::select! {
        biased;
        _ = &mut second => unreachable!("the first is held"),
        () = tokio::task::yield_now() => {}
    }
    drop(held);
    second.await.expect("locked");
    methods.close();
    assert_eq!(methods.recv().await, None, "the host was not asked");
}

// On one thread, where the host cannot have answered within the first poll.
#[tokio::test]
async fn a_lock_that_arrives_after_its_caller_has_gone_is_released() {
    let (request_handlers, mut methods) = host(keeping());
    let store = HostStore::new(Some(&request_handlers), true, None).expect("made");
    let mut locking = store.lock("k");
    tokio::select! {
        biased;
        _ = &mut locking => unreachable!("it takes a turn of the scheduler"),
        () = std::future::ready(()) => {}
    }
    drop(locking);
    for expected in ["auth/store/lock", "auth/store/unlock"] {
        assert_eq!(methods.recv().await.expect("asked"), expected);
    }
    drop(store.lock("k").await.expect("free"));
}

#[runtimes::test]
async fn errors_contain_the_message_of_the_host_but_never_its_answers() {
    let (request_handlers, _methods) = host(|method, _| match method {
        "auth/store/load" => Ok(json!({ "value": "not/base64/secret" })),
        "auth/store/lock" => Ok(json!({ "secret": 1 })),
        _ => Err(RpcError::internal_error("the disk is full")),
    });
    let store = HostStore::new(Some(&request_handlers), true, None).expect("made");
    let failed = store.save("k", b"v").await.expect_err("failed");
    assert_eq!(failed.to_string(), "the disk is full");
    let failed = store.load("k").await.expect_err("failed");
    assert_eq!(failed.code(), "damaged");
    assert!(!format!("{failed} {failed:?}").contains("secret"));
    let failed = store.lock("k").await.err().expect("failed");
    assert!(!format!("{failed} {failed:?}").contains("secret"));
}

#[test]
fn rejects_options_that_need_a_host_without_answerers() {
    for options in [
        json!({ "source": {} }),
        json!({ "oauth": { "client_name": "c", "store": { "host": {} } } }),
        json!({ "oauth": { "client_name": "c", "user_agent": { "host": { "redirect_uri": "https://h.example/cb" } } } }),
        json!({ "oauth": { "client_name": "c", "user_agent": { "loopback": { "browser": "host" } } } }),
        json!({ "oauth": { "client_name": "c", "grant": "workload_identity" } }),
    ] {
        let text = options.to_string();
        let read: AuthOptions = read("auth", text.as_bytes()).expect("options");
        let refused = read.auth(None).expect_err(&text);
        assert!(refused.to_string().contains("has no handler for"), "{text}");
    }
}

#[test]
fn options_of_every_kind_are_read_and_shown_without_secrets() {
    let (request_handlers, _methods) = host(|_, _| Ok(Value::Null));
    for options in [
        json!({ "bearer": "hush" }),
        json!({ "source": {} }),
        json!({ "oauth": { "client_name": "c" } }),
        json!({ "oauth": {
            "client_name": "c", "client_uri": "https://c.example", "logo_uri": null, "software_id": "i",
            "software_version": "1", "client_id_metadata_url": "https://c.example/client.json",
            "credentials": [{
                "client_id": "id", "issuer": "https://as.example", "secret": "hush", "auth": "client_secret_basic",
            }],
            "grant": "client_credentials", "scopes": "a b", "store": { "file": "/nowhere" }, "account": "me",
            "dpop": true, "allow_private_addresses": true, "require_pkce": false,
        } }),
        json!({ "oauth": {
            "client_name": "c", "store": "memory",
            "grant": { "enterprise": { "token_endpoint": "https://i.example/t", "client_id": "id", "secret": "hush" } },
        } }),
        json!({ "oauth": {
            "client_name": "c", "store": { "host": { "locks": true } },
            "user_agent": { "loopback": {
                "redirect_uri": "http://localhost/cb", "timeout": 1.5, "browser": "host", "unopened": true,
            } },
        } }),
        json!({ "oauth": { "client_name": "c", "user_agent": { "terminal": { "timeout": 10 } } } }),
    ] {
        let text = json!({ "auth": options }).to_string();
        let read: HttpClientOptions =
            read("the settings of HTTP", text.as_bytes()).expect("options");
        assert!(!format!("{read:?}").contains("hush"));
        let address = read.address("https://h.example/mcp".to_owned(), Some(&request_handlers));
        let crate::client::Address::Url(_, settings) = address.expect(&text) else {
            unreachable!("a URL");
        };
        let shown = format!("{:?}", settings.auth.expect("authorized"));
        assert!(!shown.contains("hush"), "{shown}");
    }
}

#[test]
fn invalid_options_are_usage_errors() {
    let (request_handlers, _methods) = host(|_, _| Ok(Value::Null));
    for options in [
        json!({ "oauth": { "client_name": "c", "user_agent": { "loopback": { "redirect_uri": "https://h.example" } } } }),
        json!({ "oauth": { "client_name": "c", "user_agent": { "loopback": { "timeout": -1 } } } }),
        json!({ "oauth": { "client_name": "c", "credentials": [{ "client_id": "i", "private_key": "no key" }] } }),
    ] {
        let text = options.to_string();
        let read: AuthOptions = read("auth", text.as_bytes()).expect("options");
        read.auth(Some(&request_handlers)).expect_err(&text);
    }
    for unread in [
        json!({ "bearer": "hush", "source": {} }),
        json!({ "oauth": {} }),
        json!({ "oauth": { "client_name": "c", "hush": 1 } }),
        json!({ "oauth": { "client_name": "c", "store": "elsewhere" } }),
    ] {
        let text = unread.to_string();
        read::<AuthOptions>("auth", text.as_bytes()).expect_err(&text);
    }
}
