//! What a client writes to and reads from the transport: lost and foreign subscriptions, abandoned handshakes,
//! cancelled input requests, results that must not be cached, secrets.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::log::Log;
use crate::support::peer::{LEAVE, Peer, acknowledge, host, notification, result, soon};
use crate::support::tasks::Tasks;
use bytes::Bytes;
use mcpline::ErrorKind;
use mcpline::Revision;
use mcpline::client::{Address, Channel, ClientBuilder, ClientTransport, RequestOptions};
use mcpline::protocol::Era;
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::{
    CompleteParams, CreateMessageParams, ElicitAction, ElicitResult, LogMessage,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const MODERN: Revision = Revision::V2026_07_28;

fn handshakes() -> impl Iterator<Item = Revision> {
    Revision::ALL
        .iter()
        .copied()
        .filter(|revision| !revision.is_modern())
}

/// A complete result for any revision.
fn complete(to: &Value, mut members: Value) -> Value {
    members["resultType"] = json!("complete");
    result(to, members)
}

/// Returns a host and a receiver of the notifications that its handler gets.
fn notified_host() -> (ClientBuilder, mpsc::UnboundedReceiver<Value>) {
    let (sender, notifications) = mpsc::unbounded_channel();
    let host = host().on_notification(move |notification| {
        let params = notification
            .params
            .as_ref()
            .map(|params| params.raw().decode());
        let params: Value = params.map_or(Value::Null, |params| params.expect("JSON"));
        // The test may be over.
        let _ = sender.send(json!({"method": notification.method.as_str(), "params": params}));
    });
    (host, notifications)
}

/// Waits for the next notification with this method.
async fn next(notifications: &mut mpsc::UnboundedReceiver<Value>, method: &str) -> Value {
    loop {
        let notification = soon(notifications.recv()).await.expect("the client lives");
        if notification["method"] == method {
            return notification;
        }
    }
}

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const UPDATED: &str = "notifications/resources/updated";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn updated(subscription: &Value, uri: &str) -> Value {
    notification(
        UPDATED,
        json!({"_meta": {SUBSCRIPTION: subscription}, "uri": uri}),
    )
}

#[runtimes::test]
async fn modern_subscriptions_are_opened_again_after_a_reconnection() {
    let listened = Mutex::new(0);
    let peer = Peer::new(MODERN, move |message, say| {
        match message["method"].as_str() {
            Some("subscriptions/listen") => {
                let mut listened = listened.lock().expect("not poisoned");
                let filter = &message["params"]["notifications"];
                say(acknowledge(&message["id"], filter.clone()));
                if filter["resourceSubscriptions"].is_array() {
                    *listened += 1;
                }
                if *listened == 2 {
                    say(updated(&message["id"], "test://a"));
                }
            }
            Some("tools/call") => say(LEAVE),
            _ => {}
        }
    });
    let (host, mut notifications) = notified_host();
    let client = peer.connect(host).await;
    soon(client.subscribe("test://a"))
        .await
        .expect("it is known");
    let before = peer.count("subscriptions/listen");
    let error = soon(client.call_tool("t", json!({}))).await;
    assert!(error.expect_err("it left").is_outcome_unknown());
    assert_eq!(
        next(&mut notifications, UPDATED).await["params"]["uri"],
        "test://a"
    );
    // One request covers everything.
    assert_eq!(peer.count("subscriptions/listen"), before + 1);
    let last = peer.sent("subscriptions/listen").pop().expect("a request");
    let expected = json!({"toolsListChanged": true, "resourceSubscriptions": ["test://a"]});
    assert_eq!(last["params"]["notifications"], expected);
    assert_eq!(peer.dialled(), 2);
    client.close().await;
}

#[runtimes::test]
async fn stops_reconnecting_to_a_modern_server_that_always_leaves() {
    let peer = Peer::new(MODERN, |message, say| {
        if message["method"] == "subscriptions/listen" {
            say(acknowledge(&message["id"], json!({})));
            say(complete(message, json!({})));
            say(LEAVE);
        }
    });
    let (host, mut notifications) = notified_host();
    let host = host.configure(|settings| {
        settings.reconnect.first_delay = Duration::from_millis(1);
        settings.reconnect.attempts = 3;
    });
    let client = peer.connect(host).await;
    // The first connection, and one after each of three losses.
    for _ in 0..4 {
        next(&mut notifications, ACKNOWLEDGED).await;
    }
    let error = soon(client.call_tool("t", json!({}))).await;
    assert_eq!(
        error.expect_err("it is left alone").kind(),
        ErrorKind::ConnectionLost
    );
    assert_eq!(peer.dialled(), 4);
    client.close().await;
}

#[runtimes::test]
async fn notifications_of_unknown_subscriptions_reach_no_handler() {
    let listening = Mutex::new(Vec::new());
    let peer = Peer::new(MODERN, move |message, say| {
        let mut listening = listening.lock().expect("not poisoned");
        match message["method"].as_str() {
            Some("subscriptions/listen") => {
                let filter = message["params"]["notifications"].clone();
                say(acknowledge(&message["id"], filter));
                listening.push(message["id"].clone());
            }
            Some("tools/call") => {
                let replaced = &listening[listening.len() - 2];
                for id in [replaced, &json!(999), &json!("x"), &message["id"]] {
                    say(updated(id, "test://wrong"));
                }
                say(updated(listening.last().expect("one"), "test://a"));
                say(complete(message, json!({"content": []})));
            }
            _ => {}
        }
    });
    let (host, mut notifications) = notified_host();
    let client = peer.connect(host).await;
    soon(client.subscribe("test://a"))
        .await
        .expect("it is known");
    soon(client.subscribe("test://b"))
        .await
        .expect("it is known");
    // The server knows by now that the first subscription was replaced.
    peer.wait_for("notifications/cancelled", 1).await;
    soon(client.call_tool("t", json!({})))
        .await
        .expect("a result");
    assert_eq!(
        next(&mut notifications, UPDATED).await["params"]["uri"],
        "test://a"
    );
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn resubscription_delays_grow_until_a_stream_lasts() {
    const HASTY: usize = 9;
    let open = Mutex::new(Value::Null);
    let peer = Peer::new(MODERN, move |message, say| {
        let mut open = open.lock().expect("not poisoned");
        match message["method"].as_str() {
            Some("subscriptions/listen") => {
                let filter = message["params"]["notifications"].clone();
                say(acknowledge(&message["id"], filter));
                let count = open["count"].as_u64().unwrap_or_default() + 1;
                *open = json!({"count": count, "id": message["id"]});
                if count <= HASTY as u64 {
                    say(complete(message, json!({})));
                }
            }
            Some("tools/call") => {
                say(complete(&open, json!({})));
                say(complete(message, json!({"content": []})));
            }
            _ => {}
        }
    });
    let begun = tokio::time::Instant::now();
    let client = peer.connect(notified_host().0).await;
    let listened = async |times| {
        while peer.count("subscriptions/listen") < times {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    listened(HASTY + 1).await;
    // 0.1 s, doubled each time.
    let took = begun.elapsed().as_secs_f64();
    assert!((51.0..55.0).contains(&took), "{took}");
    tokio::time::sleep(Duration::from_secs(20)).await;
    let ended = tokio::time::Instant::now();
    client.call_tool("end", json!({})).await.expect("a result");
    listened(HASTY + 2).await;
    assert!(ended.elapsed() < Duration::from_secs(1));
    client.close().await;
}

#[runtimes::test]
async fn subscribes_to_undeclared_changes_only_if_allowed() {
    for undeclared in [false, true] {
        let mut peer = Peer::new(MODERN, |message, say| {
            if message["method"] == "subscriptions/listen" {
                let filter = message["params"]["notifications"].clone();
                say(acknowledge(&message["id"], filter));
            }
        });
        peer.capabilities = json!({"resources": {"subscribe": true}});
        let (host, _notifications) = notified_host();
        let host = host.configure(|settings| settings.allow_undeclared_capabilities = undeclared);
        let client = peer.connect(host).await;
        soon(client.subscribe("test://a"))
            .await
            .expect("it is known");
        let last = peer.sent("subscriptions/listen").pop().expect("a request");
        let mut expected = json!({"resourceSubscriptions": ["test://a"]});
        if undeclared {
            for list in ["tools", "prompts", "resources"] {
                expected[format!("{list}ListChanged")] = json!(true);
            }
        }
        assert_eq!(last["params"]["notifications"], expected);
        client.close().await;
    }
}

/// A server that reads messages and answers none. Sends an empty list for each message it reads, and all its messages
/// when the connection ends.
struct Silent(mpsc::UnboundedSender<Vec<Value>>, Tasks);

impl ClientTransport for Silent {
    fn dial(&self) -> Pin<Box<dyn Future<Output = std::io::Result<Channel>> + Send + '_>> {
        let (to_server, mut messages) = mpsc::unbounded_channel::<Bytes>();
        let (open, from_server) = mpsc::channel(1);
        let sender = self.0.clone();
        self.1.spawn(async move {
            let mut sent = Vec::new();
            while let Some(message) = messages.recv().await {
                sent.push(serde_json::from_slice(&message).expect("JSON"));
                // Signals that a message arrived. The test may be over.
                let _ = sender.send(Vec::new());
            }
            let _ = sender.send(sent);
            drop(open);
        });
        Box::pin(async {
            Ok(Channel {
                to_server,
                from_server,
            })
        })
    }
}

/// Returns the methods that a silent server received on one connection.
async fn all_sent(received: &mut mpsc::UnboundedReceiver<Vec<Value>>) -> Vec<String> {
    loop {
        let sent = soon(received.recv()).await.expect("the server lives");
        if !sent.is_empty() {
            let method = |message: &Value| message["method"].as_str().unwrap_or("?").to_owned();
            return sent.iter().map(method).collect();
        }
    }
}

#[runtimes::test]
async fn does_not_cancel_an_abandoned_handshake() {
    for revision in handshakes() {
        let (sender, mut received) = mpsc::unbounded_channel();
        let tasks = Tasks::default();
        let connecting = host()
            .configure(move |settings| {
                settings.era = Some(Era::Legacy);
                settings.revisions = vec![revision];
            })
            .connect(Address::Custom(Arc::new(Silent(sender, tasks.clone()))));
        tokio::select! {
            connected = connecting => panic!("{connected:?}"),
            first = received.recv() => assert_eq!(first, Some(Vec::new())),
        }
        assert_eq!(all_sent(&mut received).await, ["initialize"]);
    }
}

#[tokio::test(start_paused = true)]
async fn does_not_cancel_a_handshake_that_timed_out() {
    let (sender, mut received) = mpsc::unbounded_channel();
    let tasks = Tasks::default();
    host()
        .configure(|settings| settings.era = Some(Era::Legacy))
        .connect(Address::Custom(Arc::new(Silent(sender, tasks.clone()))))
        .await
        .expect_err("silence");
    let sent = all_sent(&mut received).await;
    assert!(sent.contains(&"initialize".to_owned()), "{sent:?}");
    assert!(
        !sent.contains(&"notifications/cancelled".to_owned()),
        "{sent:?}"
    );
}

/// A server that completes the handshake of the first connection, closes it on the first call, and is silent on later
/// connections.
struct Leaving(Silent, Mutex<bool>);

impl ClientTransport for Leaving {
    fn dial(&self) -> Pin<Box<dyn Future<Output = std::io::Result<Channel>> + Send + '_>> {
        if std::mem::replace(&mut *self.1.lock().expect("not poisoned"), true) {
            return self.0.dial();
        }
        let (to_server, mut messages) = mpsc::unbounded_channel::<Bytes>();
        let (answers, from_server) = mpsc::channel(1);
        self.0.1.spawn(async move {
            while let Some(message) = messages.recv().await {
                let message: Value = serde_json::from_slice(&message).expect("JSON");
                let answer = match message["method"].as_str() {
                    Some("initialize") => {
                        json!({"protocolVersion": message["params"]["protocolVersion"],
                               "capabilities": {"tools": {}}, "serverInfo": {"name": "peer", "version": "1"}})
                    }
                    Some("tools/call") => return,
                    _ => continue,
                };
                let answer = result(&message, answer).to_string();
                answers.send(Ok(answer.into())).await.expect("the client lives");
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

#[runtimes::test]
async fn does_not_cancel_the_handshake_when_closed_during_a_reconnection() {
    let (sender, mut received) = mpsc::unbounded_channel();
    let tasks = Tasks::default();
    let dial = Leaving(Silent(sender, tasks.clone()), Mutex::new(false));
    let client = host()
        .configure(|settings| settings.era = Some(Era::Legacy))
        .connect(Address::Custom(Arc::new(dial)))
        .await
        .expect("connects");
    client.call_tool("t", json!({})).await.expect_err("it left");
    let (outcome, ()) = tokio::join!(soon(client.call_tool("t", json!({}))), async {
        assert_eq!(soon(received.recv()).await, Some(Vec::new()));
        client.close().await;
    });
    assert_eq!(outcome.expect_err("closed").kind(), ErrorKind::Closed);
    assert_eq!(all_sent(&mut received).await, ["initialize"]);
}

/// Sends a message when it is dropped.
struct Guard(mpsc::UnboundedSender<&'static str>);

impl Drop for Guard {
    fn drop(&mut self) {
        // The test may be over.
        let _ = self.0.send("ended");
    }
}

#[runtimes::test]
async fn a_cancelled_input_request_ends_its_handler_without_a_response() {
    for revision in handshakes() {
        let peer = Peer::new(revision, |message, say| match message["method"].as_str() {
            Some("tools/call") => say(
                json!({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage",
                         "params": {"messages": [], "maxTokens": 1}}),
            ),
            Some("notifications/x") => {
                say(notification(
                    "notifications/cancelled",
                    json!({"requestId": "q"}),
                ));
            }
            Some("ping") => say(result(message, json!({}))),
            _ => {}
        });
        let (sender, mut handler_states) = mpsc::unbounded_channel();
        let host = host().sample_with(Arc::new(move |_| {
            let guard = Guard(sender.clone());
            Box::pin(async move {
                let _ = guard.0.send("begun");
                std::future::pending().await
            })
        }));
        let client = peer.connect(host).await;
        tokio::select! {
            _ = client.call_tool("t", json!({})) => panic!("it has no answer"),
            begun = soon(handler_states.recv()) => assert_eq!(begun, Some("begun")),
        }
        client
            .notify("notifications/x", None)
            .await
            .expect("it is told");
        assert_eq!(soon(handler_states.recv()).await, Some("ended"));
        soon(client.ping()).await.expect("a sign of life");
        assert_eq!(peer.count("response"), 0, "{revision}");
        client.close().await;
    }
}

#[runtimes::test]
async fn ignores_meaningless_cancellations() {
    for revision in handshakes() {
        let call = Mutex::new(Value::Null);
        let peer = Peer::new(revision, move |message, say| {
            match message["method"].as_str() {
                Some("tools/call") => {
                    *call.lock().expect("not poisoned") = message.clone();
                    say(json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}));
                }
                // The client's response completes the input request.
                None => {
                    let call = call.lock().expect("not poisoned");
                    for params in [
                        json!({"requestId": "q"}),
                        json!({"requestId": "never"}),
                        json!({"requestId": 999}),
                        // This is the client's own request: only its sender may cancel it.
                        json!({"requestId": call["id"]}),
                        json!({"requestId": null}),
                        json!({"requestId": {}}),
                        json!({"reason": "?"}),
                        json!({}),
                    ] {
                        say(notification("notifications/cancelled", params));
                    }
                    say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}));
                    say(result(&call, json!({"content": []})));
                }
                _ => {}
            }
        });
        let roots = [mcpline::protocol::vocabulary::Root::new("file:///a").expect("a root")];
        let client = peer.connect(host().roots(roots)).await;
        for calls in 1..=2 {
            soon(client.call_tool("t", json!({})))
                .await
                .expect("a result");
            assert_eq!(peer.count("response"), calls, "{revision}");
        }
        client.close().await;
    }
}

#[runtimes::test]
async fn task_augmented_input_requests_are_answered_like_any_other() {
    let (answer_sender, mut answers) = mpsc::unbounded_channel();
    let peer = Peer::new(
        Revision::V2025_11_25,
        move |message, say| match message["method"].as_str() {
            Some("notifications/x") => {
                let task = json!({"ttl": 60_000});
                say(
                    json!({"jsonrpc": "2.0", "id": "sample", "method": "sampling/createMessage",
                         "params": {"messages": [], "maxTokens": 1, "task": task}}),
                );
                say(
                    json!({"jsonrpc": "2.0", "id": "elicit", "method": "elicitation/create",
                         "params": {"message": "?", "task": task,
                                    "requestedSchema": {"type": "object", "properties": {}}}}),
                );
            }
            _ => answer_sender.send(message.clone()).expect("the test lives"),
        },
    );
    let sampled =
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "a"}});
    let (answer, declined) = (sampled.clone(), json!({"action": "decline"}));
    let host = host()
        .on_sample(move |_: CreateMessageParams| {
            let answer = serde_json::from_value(answer.clone()).expect("an answer");
            async move { Ok(answer) }
        })
        .on_elicit(|_| async { Ok(ElicitResult::new(ElicitAction::Decline)) });
    let client = peer.connect(host).await;
    client
        .notify("notifications/x", None)
        .await
        .expect("it is told");
    for _ in 0..2 {
        let answer = soon(answers.recv()).await.expect("an answer");
        let expected = match answer["id"].as_str() {
            Some("sample") => &sampled,
            _ => &declined,
        };
        assert_eq!(&answer["result"], expected, "{answer}");
    }
    client.close().await;
}

#[runtimes::test]
async fn invalid_log_messages_reach_no_handler() {
    for revision in Revision::ALL {
        let peer = Peer::new(*revision, |message, say| {
            if message["method"] == "tools/call" {
                for params in [
                    json!({"level": "warn", "data": "unknown"}),
                    json!({"level": 4, "data": "a number"}),
                    json!({"data": "none"}),
                    json!({"level": "error"}),
                    json!({"level": "error", "data": {"a": 1}}),
                ] {
                    say(notification("notifications/message", params));
                }
                say(complete(message, json!({"content": []})));
            }
        });
        let (host, mut notifications) = notified_host();
        let (logged, mut log) = mpsc::unbounded_channel();
        let host = host.on_log(move |message: LogMessage| {
            // The test may be over.
            let _ = logged.send(message.data);
        });
        let client = peer.connect(host).await;
        soon(client.call_tool("t", json!({})))
            .await
            .expect("a result");
        assert_eq!(log.try_recv(), Ok(json!({"a": 1})), "{revision}");
        assert!(log.try_recv().is_err());
        let received = next(&mut notifications, "notifications/message").await;
        assert_eq!(received["params"]["data"], json!({"a": 1}));
        soon(client.call_tool("t", json!({})))
            .await
            .expect("a result");
        client.close().await;
    }
}

#[runtimes::test]
async fn completes_without_candidates_and_without_the_capability_on_old_servers() {
    let params =
        json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
    let params: CompleteParams = serde_json::from_value(params).expect("parameters");
    for revision in Revision::ALL {
        for (capabilities, is_served) in [
            (json!({"completions": {}}), true),
            (json!({"prompts": {}}), *revision <= Revision::V2025_03_26),
            (json!({"tools": {}}), *revision == Revision::V2024_11_05),
        ] {
            let mut peer = Peer::new(*revision, |message, say| {
                say(complete(message, json!({"completion": {"values": []}})));
            });
            peer.capabilities = capabilities;
            let client = peer.connect(host()).await;
            let outcome = soon(client.complete(&params)).await;
            match is_served {
                true => {
                    let completion = outcome.expect("an answer").completion;
                    assert_eq!(completion.values, [] as [String; 0]);
                    assert_eq!((completion.total, completion.has_more), (None, None));
                }
                false => assert_eq!(
                    outcome.expect_err("it is not sent").kind(),
                    ErrorKind::NotSupported
                ),
            }
            assert_eq!(peer.count("completion/complete"), usize::from(is_served));
            client.close().await;
        }
    }
}

/// Adds hints that allow caching for ten minutes.
fn cacheable(mut members: Value) -> Value {
    members["ttlMs"] = json!(600_000);
    members["cacheScope"] = json!("private");
    members
}

#[runtimes::test]
async fn input_required_results_and_results_of_retries_are_not_cached() {
    let peer = Peer::new(MODERN, |message, say| {
        let params = &message["params"];
        let requires_input = params["uri"] == "test://asks" && params["inputResponses"].is_null();
        say(match requires_input {
            true => result(
                message,
                cacheable(
                    json!({"resultType": "input_required", "requestState": "s", "inputRequests": {
                "q": {"method": "roots/list"}}}),
                ),
            ),
            false => complete(message, cacheable(json!({"contents": []}))),
        });
    });
    let roots = [mcpline::protocol::vocabulary::Root::new("file:///a").expect("a root")];
    let client = peer.connect(host().roots(roots)).await;
    let mut total_requests = 0;
    let mut manual_results = RequestOptions::new();
    manual_results.manual_results = true;
    // A plain result is cached. One that requires input, or whose request had input responses or a request state, is
    // not.
    for (params, options, requests) in [
        (json!({"uri": "test://plain"}), RequestOptions::new(), 1),
        (json!({"uri": "test://asks"}), RequestOptions::new(), 4),
        (json!({"uri": "test://asks"}), manual_results.clone(), 2),
        (
            json!({"uri": "test://asks", "inputResponses": {"q": {"roots": []}}}),
            manual_results.clone(),
            2,
        ),
        (
            json!({"uri": "test://plain", "requestState": "s"}),
            manual_results,
            2,
        ),
    ] {
        let given = Raw::from_serialize(&params).expect("JSON");
        for _ in 0..2 {
            let outcome = client.request("resources/read", Some(&given), &options);
            soon(outcome).await.expect("a result");
        }
        total_requests += requests;
        assert_eq!(peer.count("resources/read"), total_requests, "{params}");
    }
    client.close().await;
}

#[runtimes::test]
async fn change_notifications_invalidate_the_cached_results_they_concern() {
    let members = json!({"prompts": [], "resources": [], "resourceTemplates": [], "contents": []});
    let peer = Peer::new(MODERN, move |message, say| {
        match message["method"].as_str() {
            Some("tools/call") => {
                let notification_method = message["params"]["name"].as_str().expect("a name");
                say(notification(
                    notification_method,
                    message["params"]["arguments"].clone(),
                ));
                say(complete(message, json!({"content": []})));
            }
            _ => say(complete(message, cacheable(members.clone()))),
        }
    });
    let mut peer = peer;
    peer.capabilities = json!({"tools": {}, "prompts": {}, "resources": {}});
    let client = peer.connect(host()).await;
    let read = json!({"uri": "test://a"});
    let prompts = "notifications/prompts/list_changed";
    let resources = "notifications/resources/list_changed";
    for (method, params, notification_method, about, is_stale) in [
        ("prompts/list", json!({}), prompts, json!({}), true),
        ("prompts/list", json!({}), resources, json!({}), false),
        ("resources/list", json!({}), resources, json!({}), true),
        ("resources/list", json!({}), prompts, json!({}), false),
        (
            "resources/templates/list",
            json!({}),
            resources,
            json!({}),
            true,
        ),
        ("resources/read", read.clone(), UPDATED, read.clone(), true),
        (
            "resources/read",
            read,
            UPDATED,
            json!({"uri": "test://b"}),
            false,
        ),
    ] {
        let params = Raw::from_serialize(&params).expect("JSON");
        let options = RequestOptions::new();
        let ask = async || {
            let outcome = client.request(method, Some(&params), &options);
            soon(outcome).await.expect("a result");
            peer.count(method)
        };
        let known = ask().await;
        assert_eq!(ask().await, known, "{method} is kept");
        soon(client.call_tool(notification_method, &about))
            .await
            .expect("a result");
        let request_count = ask().await;
        assert_eq!(
            request_count,
            known + usize::from(is_stale),
            "{method} after {notification_method}"
        );
    }
    client.close().await;
}

#[cfg(unix)]
#[runtimes::test]
async fn writes_indented_json_of_a_host_on_one_line() {
    // It is also a valid sampling result, so that it can answer an input request.
    let indented = "{\n  \"text\": \"a\\nb\",\r\n  \"list\": [\n    1\n  ],\n  \"role\": \"assistant\",\n\
                    \"model\": \"m\",\n  \"content\": []\n}";
    let value: Value = serde_json::from_str(indented).expect("JSON");
    for revision in [Revision::V2025_11_25, MODERN] {
        let folder = std::env::temp_dir();
        let path = folder.join(format!(
            "mcpline-wires-{}-{revision}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        // One of an earlier run may be left.
        let _ = std::fs::remove_file(&path);
        let listener = tokio::net::UnixListener::bind(&path).expect("a socket");
        let (sender, mut messages) = mpsc::unbounded_channel();
        let tasks = Tasks::default();
        tasks.spawn(async move {
            let (socket, _) = listener.accept().await.expect("a client");
            let (reader, mut writer) = socket.into_split();
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).expect("one message a line");
                let answer = match message["method"].as_str() {
                    Some("server/discover") => complete(
                        &message,
                        json!({"supportedVersions": [revision], "capabilities": {},
                               "ttlMs": 0, "cacheScope": "public"}),
                    ),
                    Some("initialize") => result(
                        &message,
                        json!({"protocolVersion": revision, "capabilities": {},
                               "serverInfo": {"name": "peer", "version": "1"}}),
                    ),
                    Some("notifications/initialized") => continue,
                    Some("acme/ask") => {
                        sender.send(message.clone()).expect("the test lives");
                        json!({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage",
                               "params": {"messages": [], "maxTokens": 1}})
                    }
                    _ => {
                        sender.send(message.clone()).expect("the test lives");
                        continue;
                    }
                };
                let line = format!("{answer}\n");
                writer.write_all(line.as_bytes()).await.expect("written");
            }
        });
        let host = host()
            .configure(move |settings| settings.revisions = vec![revision])
            .sample_with(Arc::new(move |_| {
                Box::pin(async move { Ok(Raw::from_trusted(indented)) })
            }));
        let client = host
            .connect(Address::Socket(path.clone()))
            .await
            .expect("connects");
        let given = Raw::parse(indented).expect("JSON");
        client
            .notify("acme/told", Some(&given))
            .await
            .expect("it is told");
        let options = RequestOptions::new();
        let checks = async {
            let notification = messages.recv().await.expect("the server lives");
            let request = messages.recv().await.expect("the server lives");
            for message in [notification, request] {
                assert_eq!(message["params"]["text"], value["text"]);
                assert_eq!(message["params"]["list"], value["list"]);
            }
            // Servers of 2026-07-28 send no requests.
            if !revision.is_modern() {
                let answer = messages.recv().await.expect("the server lives");
                assert_eq!(answer["result"]["text"], value["text"]);
            }
        };
        tokio::select! {
            _ = client.request("acme/ask", Some(&given), &options) => panic!("it has no answer"),
            () = soon(checks) => {}
        }
        client.close().await;
        std::fs::remove_file(&path).expect("removed");
    }
}

/// The bytes with which the HTTP server of these tests answers a request, and whether the connection stays open.
type Answer = (String, bool);

fn json_answer(message: &Value, headers: &str) -> Answer {
    let body = message.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
        body.len()
    );
    (head + &body, false)
}

fn status(status: &str) -> Answer {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    (head, false)
}

fn events(messages: &[Value], stays_open: bool) -> Answer {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        .to_owned();
    let events = messages
        .iter()
        .map(|message| format!("data: {message}\n\n"));
    (head + &events.collect::<String>(), stays_open)
}

/// Serves one request per connection with `serve`, which gets the HTTP method and the message. Returns the URL.
async fn served(
    tasks: &Tasks,
    serve: impl Fn(&str, &Value) -> Answer + Send + Sync + 'static,
) -> String {
    let serve = Arc::new(serve);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let connections = tasks.clone();
    tasks.spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let serve = serve.clone();
            connections.spawn(async move {
                // The client may leave at any time.
                let _ = one(connection, &*serve).await;
            });
        }
    });
    format!("http://{address}/mcp")
}

async fn one(
    mut connection: TcpStream,
    serve: &(dyn Fn(&str, &Value) -> Answer + Send + Sync),
) -> std::io::Result<()> {
    let (reader, mut writer) = connection.split();
    let mut reader = BufReader::new(reader);
    let mut line = String::new();
    reader.read_line(&mut line).await?;
    let method = line.split(' ').next().unwrap_or_default().to_owned();
    let mut length = 0;
    while line.trim() != "" {
        line.clear();
        reader.read_line(&mut line).await?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await?;
    let message = serde_json::from_slice(&body).unwrap_or_default();
    let (answer, stays_open) = serve(&method, &message);
    writer.write_all(answer.as_bytes()).await?;
    if stays_open {
        // Until the client leaves.
        reader.read_to_end(&mut body).await?;
    }
    Ok(())
}

#[runtimes::test]
async fn reopens_a_lost_listen_stream_over_http() {
    let filters = Arc::new(Mutex::new(Vec::new()));
    let seen = filters.clone();
    let tasks = Tasks::default();
    let url = served(&tasks, move |_, message| match message["method"].as_str() {
        Some("subscriptions/listen") => {
            let mut seen = seen.lock().expect("not poisoned");
            seen.push(message["params"]["notifications"].clone());
            let known = acknowledge(&message["id"], message["params"]["notifications"].clone());
            match seen.len() {
                // The connection breaks without the request's answer.
                1 | 2 => events(&[known], false),
                _ => events(&[known, updated(&message["id"], "test://a")], true),
            }
        }
        _ => json_answer(
            &complete(
                message,
                json!({"supportedVersions": ["2026-07-28"], "capabilities": {"resources": {"subscribe": true}},
                       "ttlMs": 0, "cacheScope": "public"}),
            ),
            "",
        ),
    });
    let (host, mut notifications) = notified_host();
    let client = host.connect(url.await).await.expect("connects");
    soon(client.subscribe("test://a"))
        .await
        .expect("it is known");
    assert_eq!(
        next(&mut notifications, UPDATED).await["params"]["uri"],
        "test://a"
    );
    let wanted = json!({"resourceSubscriptions": ["test://a"]});
    assert_eq!(*filters.lock().expect("not poisoned"), vec![wanted; 3]);
    client.close().await;
}

#[tokio::test]
async fn session_ids_appear_in_no_error_and_no_log() {
    const ID: &str = "s3cr3t-session";
    let log = Log::all();
    let _guard = tracing::subscriber::set_default(log.clone());
    let calls = Mutex::new(0);
    let tasks = Tasks::default();
    let url = served(&tasks, move |method, message| {
        match (method, message["method"].as_str()) {
            (_, Some("initialize")) => json_answer(
                &result(
                    message,
                    json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "peer", "version": "1"}}),
                ),
                &format!("mcp-session-id: {ID}\r\n"),
            ),
            (_, Some("tools/call")) => {
                let mut calls = calls.lock().expect("not poisoned");
                *calls += 1;
                match *calls {
                    1 => status("500 Internal Server Error"),
                    2 => status("401 Unauthorized"),
                    3 => (String::new(), false),
                    4 => ("no HTTP".to_owned(), false),
                    5 => events(&[], false),
                    6 => status("307 Temporary Redirect\r\nlocation: http://example.invalid/"),
                    // Each time, the session is gone.
                    _ => status("404 Not Found"),
                }
            }
            ("POST", _) => status("202 Accepted"),
            // The session's own stream is lost again and again.
            ("GET", _) => events(&[], false),
            _ => status("500 Internal Server Error"),
        }
    });
    let client = host()
        .configure(|settings| settings.revisions = vec![Revision::V2025_11_25])
        .connect(url.await)
        .await
        .expect("connects");
    let mut said = vec![format!("{client:?}")];
    for _ in 0..7 {
        let error = soon(client.call_tool("t", json!({}))).await;
        let error = error.expect_err("it fails");
        said.push(format!("{error} {error:?}"));
    }
    client.close().await;
    for said in said.iter().chain(&log.lines()) {
        assert!(!said.contains(ID), "{said}");
    }
    // The log was captured.
    assert!(log.has("the connection was lost"));
}
