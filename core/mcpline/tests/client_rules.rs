//! Rules that a client keeps at servers which break them, or leave them a choice: types of results, subscriptions,
//! questions that the host can't answer, tools that need a task, cursors that became invalid.

#[path = "support/peer.rs"]
mod peer;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpline::client::{ClientBuilder, ClientError, ClientErrorKind, RequestOptions};
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::{
    ElicitAction, ElicitResult, ElicitationCapability, JsonObject, SamplingCapability,
};
use mcpline::{Revision, RpcError};
use peer::{Log, Peer, acknowledge, host, notification, result, soon};
use serde_json::{Value, json};
use tokio::sync::mpsc;

#[runtimes::test]
async fn a_result_of_an_unknown_type_is_invalid_since_2026() {
    let answer = |kind: Value| {
        move |message: &Value, say: &dyn Fn(Value)| {
            say(result(
                message,
                json!({"resultType": kind, "content": [], "tools": []}),
            ));
        }
    };
    let call = Raw::from_trusted(r#"{"name":"t"}"#);
    let mut by_hand = RequestOptions::new();
    by_hand.by_hand = true;
    for kind in [json!("task"), json!(""), json!(7)] {
        let peer = Peer::new(Revision::V2026_07_28, answer(kind.clone()));
        let client = peer.connect(host()).await;
        for outcome in [
            client.list_tools().await.map(drop),
            client.call_tool("t", json!({})).await.map(drop),
            client
                .request("tools/call", Some(&call), &by_hand)
                .await
                .map(drop),
        ] {
            let error = outcome.expect_err("an unknown type");
            assert!(
                matches!(&error, ClientError::Invalid { reason } if reason.contains("resultType")),
                "{kind}: {error}"
            );
        }
        client.close().await;
        // Extensions bring types of results, which whoever declares one reads by hand.
        let extended = host().capabilities(|all| {
            let extension = ("com.example/tasks".to_owned(), JsonObject::new());
            all.extensions = Some([extension].into_iter().collect());
        });
        let client = peer.connect(extended).await;
        client.list_tools().await.expect_err("an unknown type");
        let given = client.request("tools/call", Some(&call), &by_hand).await;
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
async fn a_subscription_that_its_server_cancels_is_taken_up_again() {
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
                // About no subscription: servers have nothing else to cancel.
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
    let (heard, mut hear) = mpsc::unbounded_channel();
    let host = host().on_notification(move |notification| {
        // The test may be over.
        let _ = heard.send(notification.method.as_str().to_owned());
    });
    let client = peer.connect(host).await;
    let acknowledged = Some("notifications/subscriptions/acknowledged".to_owned());
    assert_eq!(soon(hear.recv()).await, acknowledged);
    client.call_tool("t", json!({})).await.expect("a result");
    assert_eq!(soon(hear.recv()).await, acknowledged);
    assert_eq!(peer.count("subscriptions/listen"), 2);
    // The server knows that it is over.
    assert_eq!(peer.count("notifications/cancelled"), 0);
    client.close().await;
}

#[runtimes::test]
async fn a_subscription_fails_unless_its_own_acknowledgement_has_the_resource() {
    // What the server acknowledges beside: other subscriptions than the one that it was asked for.
    for others in [
        json!({"resourceSubscriptions": []}),
        json!({"resourceSubscriptions": ["test://a", "test://b"]}),
    ] {
        let peer = Peer::new(Revision::V2026_07_28, move |message, say| {
            if message["method"] == "subscriptions/listen" {
                let asked = message["params"]["notifications"]["resourceSubscriptions"].as_array();
                let mut known = asked.expect("resources").clone();
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
        assert_eq!(error.kind(), ClientErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("test://b"), "{error}");
        // What failed is no wish any more, and nothing else is in its way.
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
async fn a_refused_subscription_is_in_the_way_of_no_other() {
    let peer = Peer::new(Revision::V2026_07_28, |message, say| {
        if message["method"] == "subscriptions/listen" {
            let asked = &message["params"]["notifications"];
            let bad = asked["resourceSubscriptions"].to_string().contains("bad");
            say(match bad {
                true => json!({"jsonrpc": "2.0", "id": message["id"],
                               "error": {"code": -32602, "message": "no such resource"}}),
                false => acknowledge(&message["id"], asked.clone()),
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
        assert_eq!(error.kind(), ClientErrorKind::Rpc, "{error}");
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
async fn a_busy_server_is_asked_for_a_subscription_again() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = asked.clone();
    let peer = Peer::new(Revision::V2026_07_28, move |message, say| {
        let mut asked = kept.lock().expect("not poisoned");
        match message["method"].as_str() {
            Some("subscriptions/listen") => {
                asked.push(message.clone());
                // The server that is asked after the end is about to end, too.
                let busy = [2, 3].contains(&asked.len());
                say(match busy {
                    true => json!({"jsonrpc": "2.0", "id": message["id"],
                                   "error": {"code": -31002, "message": "shutting down"}}),
                    false => {
                        acknowledge(&message["id"], message["params"]["notifications"].clone())
                    }
                });
            }
            // Has the stream end.
            Some("tools/call") => {
                let complete = json!({"resultType": "complete", "content": []});
                say(result(&asked[0], complete.clone()));
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
        while asked.lock().expect("not poisoned").len() < 4 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(taken_up).await;
    client.close().await;
}

#[runtimes::test]
async fn of_two_subscriptions_at_once_only_the_refused_one_is_given_up() {
    let peer = Peer::new(Revision::V2026_07_28, |message, say| {
        if message["method"] == "subscriptions/listen" {
            let asked = &message["params"]["notifications"];
            let bad = asked["resourceSubscriptions"].to_string().contains("bad");
            say(match bad {
                true => json!({"jsonrpc": "2.0", "id": message["id"],
                               "error": {"code": -32602, "message": "no such resource"}}),
                false => acknowledge(&message["id"], asked.clone()),
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
        // It may have been refused together with the other; then it can be had alone.
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
async fn closing_a_client_ends_what_waits_for_a_subscription() {
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
async fn a_tool_that_requires_a_task_is_not_called_without_one() {
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
        // Without the capability the member means nothing; nor does it in other revisions.
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
            assert_eq!(error.kind(), ClientErrorKind::Unsupported, "{error}");
            let error = error.to_string();
            assert!(
                error.contains("\"slow\"") && error.contains("task"),
                "{error}"
            );
            assert_eq!(peer.count("tools/call"), 0);
            // Whoever makes it a task may call it.
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

/// Hosts that can answer something of a kind, but not these questions, and what the error has to name.
fn unanswerable() -> Vec<(ClientBuilder, &'static str, Value, &'static str)> {
    let forms = || ElicitationCapability::default().with_form(JsonObject::new());
    let urls = || ElicitationCapability::default().with_url(JsonObject::new());
    let elicits = || host().on_elicit(|_| async { Ok(ElicitResult::new(ElicitAction::Cancel)) });
    let declares = |elicitation: ElicitationCapability| {
        elicits().capabilities(move |all| all.elicitation = Some(elicitation))
    };
    let samples = || {
        host().sample_with(Arc::new(|_| {
            Box::pin(async { Err(RpcError::internal_error("the host was asked")) })
        }))
    };
    let form = |mode: Option<&str>| {
        let mut form =
            json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
        if let Some(mode) = mode {
            form["mode"] = json!(mode);
        }
        form
    };
    let visit =
        |url: &str| json!({"mode": "url", "message": "?", "url": url, "elicitationId": "1"});
    let sample = |name: &str, value: Value| json!({"messages": [], "maxTokens": 1, name: value});
    let elicit = "elicitation/create";
    let mut cases = vec![
        (
            declares(forms()),
            elicit,
            visit("https://a.example/"),
            "elicitation.url",
        ),
        (
            declares(ElicitationCapability::default()),
            elicit,
            visit("https://a.example/"),
            "elicitation.url",
        ),
        (declares(urls()), elicit, form(None), "elicitation.form"),
        (
            declares(urls()),
            elicit,
            form(Some("form")),
            "elicitation.form",
        ),
        (elicits(), elicit, form(Some("voice")), "mode"),
        (
            samples(),
            "sampling/createMessage",
            sample("tools", json!([])),
            "sampling.tools",
        ),
        (
            samples().capabilities(|all| all.sampling = Some(SamplingCapability::default())),
            "sampling/createMessage",
            sample("toolChoice", json!({"mode": "auto"})),
            "sampling.tools",
        ),
    ];
    for url in [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "vscode://open",
        " https://a.example/",
        "https://a.example/\nb",
        "https:a.example",
        "https://",
        "a.example",
    ] {
        cases.push((elicits(), elicit, visit(url), "`url`"));
    }
    cases
}

#[runtimes::test]
async fn questions_that_the_host_did_not_declare_never_reach_it() {
    for (host, method, params, named) in unanswerable() {
        let (told, mut answers) = mpsc::unbounded_channel();
        let question = json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params});
        let asked = question.clone();
        let peer = Peer::new(
            Revision::V2025_11_25,
            move |message, say| match message["method"].as_str() {
                Some(_) => say(asked.clone()),
                None => told.send(message.clone()).expect("the test lives"),
            },
        );
        let client = peer.connect(host).await;
        client
            .notify("notifications/x", None)
            .await
            .expect("it is told");
        let answer = soon(answers.recv()).await.expect("an answer");
        assert_eq!(answer["error"]["code"], -32602, "{question}: {answer}");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.contains(named), "{question}: {message}");
        client.close().await;
    }
}

#[runtimes::test]
async fn a_request_fails_in_whose_course_the_host_is_asked_what_it_did_not_declare() {
    for (host, method, params, named) in unanswerable() {
        let question = json!({"method": method, "params": params});
        let peer = Peer::new(Revision::V2026_07_28, move |message, say| {
            say(result(
                message,
                json!({"resultType": "input_required", "inputRequests": {"q": question}}),
            ));
        });
        let client = peer.connect(host).await;
        let error = client.call_tool("t", json!({})).await;
        let error = error.expect_err("it can't be answered");
        assert_eq!(
            error.kind(),
            ClientErrorKind::Unanswered,
            "{params}: {error}"
        );
        assert!(error.to_string().contains(named), "{params}: {error}");
        assert_eq!(peer.count("tools/call"), 1);
        client.close().await;
    }
}

#[runtimes::test]
async fn questions_that_the_host_declared_reach_it() {
    let host = || {
        host()
            .on_elicit(|_| async { Ok(ElicitResult::new(ElicitAction::Decline)) })
            .sample_with(Arc::new(|_| {
                Box::pin(async { Ok(Raw::from_trusted("{}")) })
            }))
            .capabilities(|all| {
                all.sampling = Some(SamplingCapability::default().with_tools(JsonObject::new()));
            })
    };
    let visit =
        |url: &str| json!({"mode": "url", "message": "?", "url": url, "elicitationId": "1"});
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    for (method, params) in [
        ("elicitation/create", form),
        ("elicitation/create", visit("https://a.example/b?c=d")),
        ("elicitation/create", visit("HTTP://127.0.0.1:1/")),
        (
            "sampling/createMessage",
            json!({"messages": [], "maxTokens": 1, "tools": [], "toolChoice": {"mode": "none"}}),
        ),
    ] {
        let question = json!({"method": method, "params": params});
        let peer = Peer::new(Revision::V2026_07_28, move |message, say| {
            say(match message["params"]["inputResponses"].is_null() {
                true => result(
                    message,
                    json!({"resultType": "input_required", "inputRequests": {"q": question}}),
                ),
                false => result(message, json!({"resultType": "complete", "content": []})),
            });
        });
        let client = peer.connect(host()).await;
        client.call_tool("t", json!({})).await.expect("a result");
        client.close().await;
    }
}

#[runtimes::test]
async fn pages_are_given_up_when_the_server_refuses_a_cursor() {
    let lists = Mutex::new(0);
    let peer = Peer::new(Revision::V2026_07_28, move |message, say| {
        let mut lists = lists.lock().expect("not poisoned");
        let page = |next: Value| json!({"resultType": "complete", "tools": [], "ttlMs": 60_000, "cacheScope": "private", "nextCursor": next});
        say(match message["params"]["cursor"].as_str() {
            None => {
                *lists += 1;
                result(message, page(json!(format!("after {lists}"))))
            }
            // The first list has changed meanwhile.
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
    assert_eq!(error.kind(), ClientErrorKind::Rpc, "{error}");
    client.list_tools().await.expect("a new list");
    assert_eq!(peer.count("tools/list"), 4);
    // A cursor that nobody knows is no reason to ask again for what is fresh, unless it was refused.
    client.list_tools().await.expect("the kept list");
    assert_eq!(peer.count("tools/list"), 4);
    client.close().await;
}

#[tokio::test]
async fn the_reason_of_a_withdrawn_question_is_logged() {
    let log = Log::new(tracing::Level::DEBUG);
    let _guard = tracing::subscriber::set_default(log.clone());
    let peer = Peer::new(Revision::V2025_11_25, |message, say| {
        say(json!({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {}}));
        let reason = json!({"requestId": "q", "reason": "the user left"});
        say(notification("notifications/cancelled", reason));
        say(result(message, json!({})));
    });
    let host = host().sample_with(Arc::new(|_| Box::pin(std::future::pending())));
    let client = peer.connect(host).await;
    client.ping().await.expect("a sign of life");
    assert!(log.has("the user left"));
    client.close().await;
}

#[tokio::test]
async fn the_reason_for_which_a_subscription_ends_is_logged() {
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
    // Whether it is known when the stream has ended already is another matter.
    let _ = soon(client.subscribe("test://a")).await;
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(log.has("moved away"));
    client.close().await;
}

#[tokio::test]
async fn lists_whose_changes_a_server_will_not_tell_are_logged() {
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
