//! Rules that a client enforces on servers that break them or have a choice: result types, subscriptions, tools that
//! need a task, cursors that became invalid.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::log::Log;
use crate::support::peer::{Peer, acknowledge, host, notification, result, soon};
use mcpline::ErrorKind;
use mcpline::Revision;
use mcpline::client::{ClientError, RequestOptions};
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::JsonObject;
use serde_json::{Value, json};
use tokio::sync::mpsc;

#[tokio::test]
#[should_panic(expected = "a task of a server that the test plays has panicked")]
async fn a_panic_of_a_scripted_server_fails_the_test() {
    let peer = Peer::new(Revision::V2026_07_28, |_, _| panic!("as it should"));
    let client = peer.connect(host()).await;
    let error = client.list_tools().await.expect_err("the server is gone");
    assert!(error.to_string().contains("connection"), "{error}");
    client.close().await;
}

#[runtimes::test]
async fn rejects_unknown_result_types_since_2026() {
    let answer = |kind: Value| {
        move |message: &Value, say: &dyn Fn(Value)| {
            say(result(
                message,
                json!({"resultType": kind, "content": [], "tools": []}),
            ));
        }
    };
    let call = Raw::from_trusted(r#"{"name":"t"}"#);
    let mut manual_results = RequestOptions::new();
    manual_results.manual_results = true;
    for kind in [json!("task"), json!(""), json!(7)] {
        let peer = Peer::new(Revision::V2026_07_28, answer(kind.clone()));
        let client = peer.connect(host()).await;
        for outcome in [
            client.list_tools().await.map(drop),
            client.call_tool("t", json!({})).await.map(drop),
            client
                .request("tools/call", Some(&call), &manual_results)
                .await
                .map(drop),
        ] {
            let error = outcome.expect_err("an unknown type");
            assert!(
                matches!(&error, ClientError::InvalidResponse { reason } if reason.contains("resultType")),
                "{kind}: {error}"
            );
        }
        client.close().await;
        // Extensions define result types. A client that declares one reads such results manually.
        let extended = host().capabilities(|all| {
            let extension = ("com.example/tasks".to_owned(), JsonObject::new());
            all.extensions = Some([extension].into_iter().collect());
        });
        let client = peer.connect(extended).await;
        client.list_tools().await.expect_err("an unknown type");
        let given = client
            .request("tools/call", Some(&call), &manual_results)
            .await;
        let given: Value = given.expect("a result").decode().expect("JSON");
        assert_eq!(given["resultType"], kind);
        client.close().await;
    }
    for (revision, kind) in [
        (Revision::V2026_07_28, json!("complete")),
        (Revision::V2026_07_28, Value::Null),
        (Revision::V2025_11_25, json!("task")),
    ] {
        let client = Peer::new(revision, answer(kind)).connect(host()).await;
        client.list_tools().await.expect("a list");
        client.call_tool("t", json!({})).await.expect("a result");
        client.close().await;
    }
}

#[runtimes::test]
async fn a_log_handler_alone_opens_no_subscription() {
    let peer = Peer::new(
        Revision::V2026_07_28,
        |message, say| match message["method"].as_str() {
            Some("subscriptions/listen") => {
                let wanted = message["params"]["notifications"].clone();
                say(acknowledge(&message["id"], wanted));
            }
            Some("tools/call") => say(result(
                message,
                json!({"resultType": "complete", "content": []}),
            )),
            _ => {}
        },
    );
    let client = peer.connect(host().on_log(drop)).await;
    client.call_tool("t", json!({})).await.expect("a result");
    assert_eq!(peer.count("subscriptions/listen"), 0);
    // A listener for all notifications opens one.
    let (sender, mut methods) = mpsc::unbounded_channel();
    client.on_notification(move |notification| {
        // The test may be over.
        let _ = sender.send(notification.method.as_str().to_owned());
    });
    let acknowledged = Some("notifications/subscriptions/acknowledged".to_owned());
    assert_eq!(soon(methods.recv()).await, acknowledged);
    assert_eq!(peer.count("subscriptions/listen"), 1);
    client.close().await;
}

#[runtimes::test]
async fn reopens_a_subscription_that_the_server_cancels() {
    let listening = Mutex::new(Value::Null);
    let peer = Peer::new(Revision::V2026_07_28, move |message, say| {
        let mut listening = listening.lock().expect("not poisoned");
        match message["method"].as_str() {
            Some("subscriptions/listen") => {
                *listening = message["id"].clone();
                say(acknowledge(
                    &listening,
                    message["params"]["notifications"].clone(),
                ));
            }
            Some("tools/call") => {
                // Not a subscription: servers can cancel nothing else.
                let own = json!({"requestId": message["id"], "reason": "?"});
                say(notification("notifications/cancelled", own));
                say(result(
                    message,
                    json!({"resultType": "complete", "content": []}),
                ));
                let subscription = json!({"requestId": *listening, "reason": "moving"});
                say(notification("notifications/cancelled", subscription));
            }
            _ => {}
        }
    });
    let (sender, mut methods) = mpsc::unbounded_channel();
    let host = host().on_notification(move |notification| {
        // The test may be over.
        let _ = sender.send(notification.method.as_str().to_owned());
    });
    let client = peer.connect(host).await;
    let acknowledged = Some("notifications/subscriptions/acknowledged".to_owned());
    assert_eq!(soon(methods.recv()).await, acknowledged);
    client.call_tool("t", json!({})).await.expect("a result");
    assert_eq!(soon(methods.recv()).await, acknowledged);
    assert_eq!(peer.count("subscriptions/listen"), 2);
    // The server knows that the subscription is over.
    assert_eq!(peer.count("notifications/cancelled"), 0);
    client.close().await;
}

#[runtimes::test]
async fn subscribing_fails_unless_its_acknowledgement_names_the_resource() {
    // Acknowledgements that the server sends for other subscriptions than the requested one.
    for others in [
        json!({"resourceSubscriptions": []}),
        json!({"resourceSubscriptions": ["test://a", "test://b"]}),
    ] {
        let peer = Peer::new(Revision::V2026_07_28, move |message, say| {
            if message["method"] == "subscriptions/listen" {
                let requested =
                    message["params"]["notifications"]["resourceSubscriptions"].as_array();
                let mut known = requested.expect("resources").clone();
                known.retain(|uri| uri == "test://a" || uri == "test://c");
                say(acknowledge(&json!(999), others.clone()));
                say(acknowledge(&json!("x"), others.clone()));
                say(acknowledge(
                    &message["id"],
                    json!({"resourceSubscriptions": known}),
                ));
            }
        });
        let client = peer.connect(host()).await;
        soon(client.subscribe("test://a"))
            .await
            .expect("it is known");
        let error = soon(client.subscribe("test://b")).await;
        let error = error.expect_err("it is not known");
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
        assert!(error.to_string().contains("test://b"), "{error}");
        // The failed subscription is forgotten and blocks no other.
        soon(client.subscribe("test://c"))
            .await
            .expect("it is known");
        soon(client.unsubscribe("test://b"))
            .await
            .expect("nothing to do");
        client.close().await;
    }
}

#[runtimes::test]
async fn a_refused_subscription_does_not_block_others() {
    let peer = Peer::new(Revision::V2026_07_28, |message, say| {
        if message["method"] == "subscriptions/listen" {
            let filter = &message["params"]["notifications"];
            let bad = filter["resourceSubscriptions"].to_string().contains("bad");
            say(match bad {
                true => json!({"jsonrpc": "2.0", "id": message["id"],
                               "error": {"code": -32602, "message": "no such resource"}}),
                false => acknowledge(&message["id"], filter.clone()),
            });
        }
    });
    let client = peer.connect(host()).await;
    for first in [false, true] {
        if first {
            soon(client.subscribe("test://a"))
                .await
                .expect("it is known");
        }
        let error = soon(client.subscribe("test://bad")).await;
        let error = error.expect_err("it is refused");
        assert_eq!(error.kind(), ErrorKind::Rpc, "{error}");
    }
    soon(client.subscribe("test://b"))
        .await
        .expect("it is known");
    soon(client.unsubscribe("test://a"))
        .await
        .expect("it was known");
    client.close().await;
}

#[runtimes::test]
async fn retries_a_subscription_when_the_server_is_busy() {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let kept = requests.clone();
    let peer = Peer::new(Revision::V2026_07_28, move |message, say| {
        let mut requests = kept.lock().expect("not poisoned");
        match message["method"].as_str() {
            Some("subscriptions/listen") => {
                requests.push(message.clone());
                // The server that gets the next requests is shutting down, too.
                let busy = [2, 3].contains(&requests.len());
                say(match busy {
                    true => json!({"jsonrpc": "2.0", "id": message["id"],
                                   "error": {"code": -31002, "message": "shutting down"}}),
                    false => {
                        acknowledge(&message["id"], message["params"]["notifications"].clone())
                    }
                });
            }
            // Ends the stream.
            Some("tools/call") => {
                let complete = json!({"resultType": "complete", "content": []});
                say(result(&requests[0], complete.clone()));
                say(result(message, complete));
            }
            _ => {}
        }
    });
    let client = peer.connect(host()).await;
    soon(client.subscribe("test://a"))
        .await
        .expect("it is known");
    soon(client.call_tool("end", &json!({})))
        .await
        .expect("answered");
    let taken_up = async {
        while requests.lock().expect("not poisoned").len() < 4 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(taken_up).await;
    client.close().await;
}

#[runtimes::test]
async fn a_refused_subscription_does_not_lose_a_concurrent_one() {
    let peer = Peer::new(Revision::V2026_07_28, |message, say| {
        if message["method"] == "subscriptions/listen" {
            let filter = &message["params"]["notifications"];
            let bad = filter["resourceSubscriptions"].to_string().contains("bad");
            say(match bad {
                true => json!({"jsonrpc": "2.0", "id": message["id"],
                               "error": {"code": -32602, "message": "no such resource"}}),
                false => acknowledge(&message["id"], filter.clone()),
            });
        }
    });
    let client = peer.connect(host()).await;
    for _ in 0..20 {
        let (good, bad) = tokio::join!(
            soon(client.subscribe("test://good")),
            soon(client.subscribe("test://bad"))
        );
        bad.expect_err("it is refused");
        // Both may have been refused together; then it succeeds alone.
        if good.is_err() {
            soon(client.subscribe("test://good"))
                .await
                .expect("it is known");
        }
        soon(client.unsubscribe("test://good"))
            .await
            .expect("it was known");
    }
    client.close().await;
}

#[runtimes::test]
async fn closing_a_client_fails_pending_subscriptions() {
    let peer = Peer::new(Revision::V2026_07_28, |_, _| {});
    let client = peer.connect(host()).await;
    let (waiting, ()) = tokio::join!(soon(client.subscribe("test://a")), async {
        while peer.count("subscriptions/listen") == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        client.close().await;
    });
    waiting.expect_err("it was never acknowledged");
}

#[runtimes::test]
async fn does_not_call_a_task_tool_without_a_task() {
    let listed = |support: Value| {
        move |message: &Value, say: &dyn Fn(Value)| {
            let tool = json!({"name": "slow", "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}});
            say(result(message, json!({"tools": [tool], "content": []})));
        }
    };
    let offers = json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}});
    for (revision, capabilities, support, refused) in [
        (Revision::V2025_11_25, &offers, "required", true),
        (Revision::V2025_11_25, &offers, "optional", false),
        (Revision::V2025_11_25, &offers, "forbidden", false),
        // The member is ignored without the capability and in other revisions.
        (
            Revision::V2025_11_25,
            &json!({"tools": {}, "tasks": {}}),
            "required",
            false,
        ),
        (Revision::V2025_06_18, &offers, "required", false),
    ] {
        let mut peer = Peer::new(revision, listed(json!(support)));
        peer.capabilities = capabilities.clone();
        let client = peer.connect(host()).await;
        client.list_tools().await.expect("a list");
        let outcome = client.call_tool("slow", json!({})).await;
        if refused {
            let error = outcome.expect_err("it has to be a task");
            assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
            let error = error.to_string();
            assert!(
                error.contains("\"slow\"") && error.contains("task"),
                "{error}"
            );
            assert_eq!(peer.count("tools/call"), 0);
            // As a task, the call is allowed.
            let task = Raw::from_trusted(r#"{"name":"slow","arguments":{},"task":{}}"#);
            let options = RequestOptions::new();
            let outcome = client.request("tools/call", Some(&task), &options).await;
            outcome.expect("a result");
        } else {
            outcome.expect("a result");
        }
        assert_eq!(peer.count("tools/call"), 1);
        client.close().await;
    }
}

#[runtimes::test]
async fn discards_cached_pages_when_the_server_refuses_a_cursor() {
    let lists = Mutex::new(0);
    let peer = Peer::new(Revision::V2026_07_28, move |message, say| {
        let mut lists = lists.lock().expect("not poisoned");
        let page = |next: Value| json!({"resultType": "complete", "tools": [], "ttlMs": 60_000, "cacheScope": "private", "nextCursor": next});
        say(match message["params"]["cursor"].as_str() {
            None => {
                *lists += 1;
                result(message, page(json!(format!("after {lists}"))))
            }
            // The first list has changed in the meantime.
            Some("after 1") => {
                let error = json!({"code": -32602, "message": "unknown cursor"});
                json!({"jsonrpc": "2.0", "id": message["id"], "error": error})
            }
            Some(_) => result(message, page(Value::Null)),
        });
    });
    let client = peer.connect(host()).await;
    let error = client
        .list_tools()
        .await
        .expect_err("the cursor is refused");
    assert_eq!(error.kind(), ErrorKind::Rpc, "{error}");
    client.list_tools().await.expect("a new list");
    assert_eq!(peer.count("tools/list"), 4);
    // The cached pages are fresh and none of their cursors was refused: nothing is requested again.
    client.list_tools().await.expect("the kept list");
    assert_eq!(peer.count("tools/list"), 4);
    client.close().await;
}

#[tokio::test]
async fn logs_the_reason_why_a_subscription_ended() {
    let log = Log::new(tracing::Level::DEBUG);
    let _guard = tracing::subscriber::set_default(log.clone());
    let ended = Arc::new(Mutex::new(false));
    let mut peer = Peer::new(Revision::V2026_07_28, move |message, say| {
        if message["method"] == "subscriptions/listen" {
            say(acknowledge(
                &message["id"],
                json!({"resourceSubscriptions": ["test://a"]}),
            ));
            // Once: the client comes back.
            if !std::mem::replace(&mut *ended.lock().expect("not poisoned"), true) {
                let why = json!({"requestId": message["id"], "reason": "moved away"});
                say(notification("notifications/cancelled", why));
            }
        }
    });
    peer.capabilities = json!({"resources": {"subscribe": true}});
    let client = peer.connect(host().on_notification(|_| {})).await;
    // The stream may have ended before the acknowledgement: both outcomes are fine.
    let _ = soon(client.subscribe("test://a")).await;
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(log.has("moved away"));
    client.close().await;
}

#[tokio::test]
async fn logs_list_changes_that_the_server_does_not_acknowledge() {
    let log = Log::new(tracing::Level::WARN);
    let _guard = tracing::subscriber::set_default(log.clone());
    let mut peer = Peer::new(Revision::V2026_07_28, |message, say| {
        if message["method"] == "subscriptions/listen" {
            let kinds = json!({"toolsListChanged": true, "resourceSubscriptions": ["test://a"]});
            say(acknowledge(&message["id"], kinds));
        }
    });
    let changes = json!({"listChanged": true, "subscribe": true});
    peer.capabilities = json!({"tools": changes, "prompts": changes, "resources": changes});
    let client = peer.connect(host().on_notification(|_| {})).await;
    soon(client.subscribe("test://a"))
        .await
        .expect("it is known");
    assert!(log.has("promptsListChanged") && log.has("resourcesListChanged"));
    assert!(!log.has("toolsListChanged"));
    client.close().await;
}

/// Answers `tools/list` with these tools, and each call with this result.
fn lists(tools: Value, called: Value) -> impl Fn(&Value, &dyn Fn(Value)) + Send + Sync + 'static {
    move |message, say| match message["method"].as_str() {
        Some("tools/list") => say(result(
            message,
            json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"}),
        )),
        Some("tools/call") => say(result(message, called.clone())),
        _ => {}
    }
}

#[runtimes::test]
async fn rejects_lists_with_a_tool_whose_input_schema_is_not_an_object() {
    let good = json!({"name": "good", "inputSchema": {"type": "object"}});
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for schema in [
            Value::Null,
            json!([]),
            json!([{"type": "object"}]),
            json!("object"),
            json!(true),
            json!(7),
        ] {
            let odd = json!({"name": "odd", "inputSchema": schema});
            let peer = Peer::new(revision, lists(json!([good, odd]), json!({"content": []})));
            let client = peer.connect(host()).await;
            let options = RequestOptions::new();
            for outcome in [
                client.list_tools().await.map(drop),
                client.request("tools/list", None, &options).await.map(drop),
            ] {
                let error = outcome.expect_err("no list");
                assert_eq!(
                    error.kind(),
                    ErrorKind::InvalidResponse,
                    "{schema}: {error}"
                );
                assert!(error.to_string().contains("\"odd\""), "{schema}: {error}");
            }
            client.close().await;
        }
    }
}

#[runtimes::test]
async fn rejects_structured_content_that_does_not_match_the_output_schema() {
    let schema = json!({"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]});
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema});
    for revision in [
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ] {
        for (structured, named) in [
            (json!({"degrees": "warm"}), "/degrees"),
            (json!({}), "degrees"),
            (json!([21]), "object"),
            (Value::Null, "no structured content"),
        ] {
            let mut called = json!({"resultType": "complete", "content": []});
            if !structured.is_null() {
                called["structuredContent"] = structured.clone();
            }
            let peer = Peer::new(revision, lists(json!([tool]), called));
            let client = peer.connect(host()).await;
            client.list_tools().await.expect("a list");
            let error = client.call_tool("t", json!({})).await;
            let error = error.expect_err("it breaks the schema");
            assert_eq!(
                error.kind(),
                ErrorKind::InvalidResponse,
                "{structured}: {error}"
            );
            assert!(error.to_string().contains(named), "{structured}: {error}");
            client.close().await;
        }
        // A result with `isError` needs no structured content.
        let failed = json!({"resultType": "complete", "content": [], "isError": true});
        let fits =
            json!({"resultType": "complete", "content": [], "structuredContent": {"degrees": 21}});
        for called in [failed, fits] {
            let peer = Peer::new(revision, lists(json!([tool]), called));
            let client = peer.connect(host()).await;
            client.list_tools().await.expect("a list");
            client.call_tool("t", json!({})).await.expect("a result");
            client.close().await;
        }
    }
}

#[runtimes::test]
async fn calls_fail_if_the_output_schema_has_an_unknown_dialect() {
    let schema = json!({"$schema": "https://schemas.example/draft-99", "type": "object"});
    let tools = json!([
        {"name": "odd", "inputSchema": {"type": "object"}, "outputSchema": schema},
        {"name": "even", "inputSchema": {"type": "object"}},
    ]);
    let called = json!({"resultType": "complete", "content": [], "structuredContent": {"a": 1}});
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let peer = Peer::new(revision, lists(tools.clone(), called.clone()));
        let client = peer.connect(host()).await;
        assert_eq!(client.list_tools().await.expect("a list").len(), 2);
        let error = client.call_tool("odd", json!({})).await;
        let error = error.expect_err("it can't be checked");
        assert_eq!(error.kind(), ErrorKind::InvalidResponse, "{error}");
        let error = error.to_string();
        assert!(
            error.contains("draft-99") && error.contains("\"odd\""),
            "{error}"
        );
        client.call_tool("even", json!({})).await.expect("a result");
        client.close().await;
    }
}

#[runtimes::test]
async fn reports_the_servers_own_code_for_missing_resources() {
    for code in [-32002, -32602] {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let peer = Peer::new(revision, move |message, say| {
                if message["params"]["uri"] == "test://none" {
                    say(json!({"jsonrpc": "2.0", "id": message["id"],
                               "error": {"code": code, "message": "not found", "data": {"uri": "test://none"}}}));
                } else {
                    let contents = json!([{"uri": "test://a", "text": "a"}]);
                    say(result(
                        message,
                        json!({"resultType": "complete", "contents": contents}),
                    ));
                }
            });
            let client = peer.connect(host()).await;
            let error = client.read_resource("test://none").await;
            let error = error.expect_err("there is none");
            assert_eq!(error.kind(), ErrorKind::Rpc);
            assert_eq!(error.rpc().map(|error| error.code.0), Some(code));
            let read = client.read_resource("test://a").await;
            assert_eq!(read.expect("a resource").contents.len(), 1);
            client.close().await;
        }
    }
}

#[runtimes::test]
async fn two_clients_of_one_process_are_isolated() {
    for revision in Revision::ALL {
        // What each server received, and the notifications that each host received.
        let requests: [Arc<Mutex<String>>; 2] = Default::default();
        let notifications: [Arc<Mutex<Vec<String>>>; 2] = Default::default();
        let mut clients = Vec::new();
        for (index, name) in ["first", "second"].into_iter().enumerate() {
            let kept = requests[index].clone();
            let uri = format!("test://{name}");
            let peer = Peer::new(*revision, move |message, say| {
                kept.lock()
                    .expect("not poisoned")
                    .push_str(&message.to_string());
                let tools = json!([{"name": name, "inputSchema": {"type": "object"}}]);
                match message["method"].as_str() {
                    Some("subscriptions/listen") => {
                        let filter = message["params"]["notifications"].clone();
                        say(acknowledge(&message["id"], filter));
                    }
                    Some("tools/list") => say(result(
                        message,
                        json!({"resultType": "complete", "tools": tools, "ttlMs": 60_000, "cacheScope": "public"}),
                    )),
                    Some("tools/call") => {
                        let log = json!({"level": "info", "data": name});
                        say(notification("notifications/message", log));
                        let updated = json!({ "uri": uri });
                        say(notification("notifications/resources/updated", updated));
                        let text = json!([{"type": "text", "text": name}]);
                        say(result(
                            message,
                            json!({"resultType": "complete", "content": text}),
                        ));
                    }
                    Some(_) if !message["id"].is_null() => say(result(message, json!({}))),
                    _ => {}
                }
            });
            let sink = notifications[index].clone();
            let host = host().on_notification(move |notification| {
                if let Some(params) = &notification.params {
                    let mut notifications = sink.lock().expect("not poisoned");
                    notifications.push(format!(
                        "{} {}",
                        notification.method.as_str(),
                        params.raw().as_str()
                    ));
                }
            });
            clients.push(peer.connect(host).await);
        }
        let [first, second] = &clients[..] else {
            panic!("two clients");
        };
        soon(first.subscribe("test://first"))
            .await
            .expect("it is known");
        for _ in 0..2 {
            for (client, name) in [(first, "first"), (second, "second")] {
                let tools = client.list_tools().await.expect("a list");
                assert_eq!(tools[0].name, name);
                let called = client.call_tool(name, json!({})).await.expect("a result");
                let text = serde_json::to_string(&called.content).expect("JSON");
                assert!(text.contains(name), "{text}");
            }
        }
        for client in &clients {
            client.close().await;
        }
        for (index, other) in ["second", "first"].into_iter().enumerate() {
            let requests = requests[index].lock().expect("not poisoned");
            assert!(!requests.contains(other), "{revision}: {requests}");
            let notifications = notifications[index].lock().expect("not poisoned");
            assert!(notifications.len() >= 4, "{revision}: {notifications:?}");
            let strangers = notifications
                .iter()
                .find(|notifications| notifications.contains(other));
            assert_eq!(strangers, None, "{revision}");
        }
    }
}
