//! Middleware around messages that are not requests of clients: input requests and notifications of handlers, and notifications
//! for handlers.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpline::foreign::{self, Feature};
use mcpline::middleware::{Middleware, MiddlewareRequest, Next, Redaction};
use mcpline::protocol::vocabulary::LoggingLevel;
use mcpline::protocol::{ErrorCode, Raw, RpcError};
use mcpline::server::{CallKind, FeatureSelection, MiddlewareScope, MountOptions};
use mcpline::{Ask, AskMethod, Call, Context, Handler, HandlerError, Reply, Server};
use serde_json::{Value, json};
use support::{Client, Nothing};

fn raw(value: &Value) -> Raw {
    Raw::from_serialize(value).expect("JSON")
}

/// A server whose tools send messages before they return.
fn server() -> Server {
    Server::new("sends", "1")
        .tool(
            "reports",
            "Reports",
            |_: Nothing, ctx: Context| async move {
                ctx.log(
                    LoggingLevel::Info,
                    Some("own"),
                    json!({"pin": 1, "text": "by ann"}),
                );
                ctx.progress(1.0, Some(2.0), Some("ann is ready"));
                let params = raw(&json!({"pin": [2], "_meta": {"pin": 3}}));
                ctx.notify("acme/note", Some(&params)).expect("valid");
                ctx.log(LoggingLevel::Info, None, "last");
                "done"
            },
        )
        .tool("asks", "Asks", |_: Nothing, ctx: Context| async move {
            let form = json!({"type": "object", "properties": {"pin": {"type": "string"}}});
            let params = json!({"message": "Is ann there?", "requestedSchema": form});
            let answer = ctx
                .ask(Ask::new(AskMethod::Elicit, Some(raw(&params))))
                .await;
            match answer {
                Ok(answer) => answer.as_str().to_owned(),
                Err(error) => format!("failed: {error}"),
            }
        })
        .tool(
            "samples",
            "Samples",
            |_: Nothing, ctx: Context| async move {
                let message = json!({"role": "user", "content": {"type": "text", "text": "ann?"}});
                let params =
                    json!({"messages": [message], "maxTokens": 5, "systemPrompt": "for ann"});
                let params = Some(raw(&params));
                ctx.ask(Ask::new(AskMethod::Sample, params))
                    .await
                    .is_ok()
                    .to_string()
            },
        )
        .on_notification("acme/seen", |_: Nothing, ctx: Context| async move {
            ctx.log(LoggingLevel::Info, None, "seen");
        })
}

fn add(server: &Server, methods: &[&str], middleware: impl Middleware) {
    let scope = MiddlewareScope::all().with_methods(methods.iter().copied());
    server
        .add_middleware(scope, Arc::new(middleware))
        .expect("a middleware");
}

fn begin(client: &mut Client, tool: &str) -> Value {
    let params = json!({"name": tool, "_meta": {"progressToken": 7}});
    client.begin("tools/call", params)
}

/// Returns the methods or results of the messages up to a response.
async fn until(client: &Client, id: &Value) -> Vec<Value> {
    let mut messages = Vec::new();
    loop {
        let message = client.next().await;
        let is_response = message["id"] == *id && message.get("method").is_none();
        messages.push(message);
        if is_response {
            return messages;
        }
    }
}

fn methods(messages: &[Value]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| message["method"].as_str().unwrap_or("response"))
        .collect()
}

const SENT: [&str; 3] = [
    "notifications/message",
    "notifications/progress",
    "acme/note",
];
const ALL: [&str; 5] = [
    "notifications/message",
    "notifications/progress",
    "acme/note",
    "notifications/message",
    "response",
];

#[runtimes::test]
async fn notifications_that_middleware_delays_keep_their_order_and_precede_the_response() {
    let server = server();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    add(
        &server,
        &SENT,
        move |request: MiddlewareRequest, next: Next| {
            let kept = kept.clone();
            async move {
                // Longer for the first ones, so that later ones would overtake them.
                let before = kept.lock().expect("not poisoned").len() as u64;
                let kind = request.kind().name();
                let entry = format!("{kind} {} {:?}", request.method(), request.name());
                kept.lock().expect("not poisoned").push(entry);
                tokio::time::sleep(Duration::from_millis(20 / (1 + before))).await;
                next.run(request).await
            }
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = begin(&mut client, "reports");
    let messages = until(&client, &id).await;
    assert_eq!(methods(&messages), ALL);
    let progress =
        json!({"progressToken": 7, "progress": 1, "total": 2, "message": "ann is ready"});
    assert_eq!(messages[1]["params"], progress);
    assert_eq!(messages[0]["params"]["logger"], "own");
    assert_eq!(
        *seen.lock().expect("not poisoned"),
        [
            "sent_notification notifications/message None",
            "sent_notification notifications/progress None",
            "sent_notification acme/note None",
            "sent_notification notifications/message None",
        ]
    );
}

#[runtimes::test]
async fn notifications_can_be_changed_refused_and_dropped() {
    let server = server();
    add(
        &server,
        &SENT,
        |mut request: MiddlewareRequest, next: Next| async move {
            match request.method() {
                "notifications/progress" => return Err(RpcError::new(ErrorCode(1), "no")),
                "acme/note" => return Ok(Raw::EMPTY_OBJECT),
                _ => {}
            }
            let changed = json!({"level": "error", "data": "changed"});
            request.set_params(raw(&changed)).expect("an object");
            next.run(request).await
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = begin(&mut client, "reports");
    let messages = until(&client, &id).await;
    let changed = json!({"level": "error", "data": "changed"});
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[0]["params"], changed);
    assert_eq!(messages[1]["params"], changed);
    assert!(messages[2].get("result").is_some());
}

#[runtimes::test]
async fn middleware_that_breaks_a_notification_ends_nothing() {
    let server = server();
    add(
        &server,
        &SENT,
        |mut request: MiddlewareRequest, next: Next| async move {
            match request.method() {
                "notifications/progress" => panic!("oh no"),
                "notifications/message" => {
                    request
                        .set_params(raw(&json!({"level": "loud"})))
                        .expect("an object");
                }
                _ => {}
            }
            next.run(request).await
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = begin(&mut client, "reports");
    let messages = until(&client, &id).await;
    assert_eq!(methods(&messages), ["acme/note", "response"]);
}

#[runtimes::test]
async fn a_cancelled_request_does_not_wait_for_the_middleware_of_its_notifications() {
    struct SetOnDrop(Arc<AtomicBool>);
    impl Drop for SetOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let (server, dropped) = (server(), Arc::new(AtomicBool::new(false)));
    let flag = dropped.clone();
    add(
        &server,
        &["notifications/message"],
        move |_: MiddlewareRequest, _: Next| {
            let guard = SetOnDrop(flag.clone());
            async move {
                let _guard = guard;
                std::future::pending().await
            }
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = begin(&mut client, "reports");
    client.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
    );
    while !dropped.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    let id = client.begin("ping", json!({}));
    client.response(&id).await.expect("a pong");
    assert_eq!(client.try_next(), None);
}

/// Passes on what it gets, from a thread of its own, as a binding does.
struct Passes(Arc<Mutex<Vec<String>>>);

impl Handler for Passes {
    fn call(&self, call: Call) {
        let described = call.arguments().decode::<Value>().expect("JSON");
        let kind = described["kind"].as_str().expect("a kind").to_owned();
        let method = described["method"].as_str().expect("a method").to_owned();
        self.0
            .lock()
            .expect("not poisoned")
            .push(format!("{kind} {method}"));
        std::thread::spawn(move || {
            let context = call.context();
            foreign::run_next(&context, None, move |outcome| {
                call.reply(match outcome {
                    Ok(result) => Ok(Reply::Result(result)),
                    Err(error) => Err(HandlerError::Rpc(error)),
                });
            })
            .run();
        });
    }
}

#[runtimes::test]
async fn middleware_of_another_language_sees_messages_in_both_directions() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let (server, seen) = (server(), Arc::new(Mutex::new(Vec::new())));
        let definition = json!({"methods": [
            "notifications/message", "notifications/progress", "acme/note", "acme/seen", "elicitation/create",
        ]});
        let definition = definition.to_string();
        Feature::read(
            CallKind::Middleware,
            definition.as_bytes(),
            Default::default(),
        )
        .expect("a middleware")
        .add(&server, Arc::new(Passes(seen.clone())))
        .expect("a middleware");
        let mut client = match revision {
            "2025-11-25" => Client::legacy(&server, revision).await,
            _ => Client::modern(&server),
        };
        let meta = json!({"progressToken": 7, "io.modelcontextprotocol/logLevel": "debug"});
        let id = match revision {
            "2025-11-25" => begin(&mut client, "reports"),
            _ => client.begin_modern("tools/call", json!({"name": "reports", "_meta": meta})),
        };
        let messages = until(&client, &id).await;
        assert_eq!(methods(&messages), ALL, "{revision}");
        let expected = [
            "sent_notification notifications/message",
            "sent_notification notifications/progress",
            "sent_notification acme/note",
            "sent_notification notifications/message",
        ];
        let taken = || std::mem::take(&mut *seen.lock().expect("not poisoned"));
        assert_eq!(taken(), expected);
        let accepted = json!({"action": "accept", "content": {"pin": "1"}});
        let result = match revision {
            "2025-11-25" => {
                client.send(json!({"jsonrpc": "2.0", "method": "acme/seen", "params": {}}));
                let log = client.next().await;
                assert_eq!(log["params"]["data"], "seen");
                let expected = [
                    "received_notification acme/seen",
                    "sent_notification notifications/message",
                ];
                assert_eq!(taken(), expected);
                let id = begin(&mut client, "asks");
                let asked = client.next().await;
                assert_eq!(asked["method"], "elicitation/create");
                client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": accepted}));
                client.response(&id).await
            }
            _ => {
                let round = client
                    .call_modern("asks", json!({}))
                    .await
                    .expect("a result");
                let requests = round["inputRequests"].as_object().expect("requests");
                let key = requests.keys().next().expect("a request");
                let retry = json!({"requestState": round["requestState"], "inputResponses": {key: accepted}});
                client.call_modern("asks", retry).await
            }
        };
        let result = result.expect("a result");
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), accepted);
        assert_eq!(taken(), ["input_request elicitation/create"]);
    }
}

#[runtimes::test]
async fn input_requests_can_be_changed_answered_and_refused() {
    let server = server();
    add(
        &server,
        &["elicitation/create"],
        |mut request: MiddlewareRequest, next: Next| async move {
            let params = request.params().expect("parameters").clone();
            request
                .set_params(params.with("message", &Raw::string("Really?")))
                .expect("an object");
            let answer = next.run(request).await?;
            match answer
                .member("content")
                .and_then(|content| content.member("pin"))
            {
                Some(pin) if pin.as_str() == "\"own\"" => Ok(raw(
                    &json!({"action": "accept", "content": {"pin": "changed"}}),
                )),
                Some(pin) if pin.as_str() == "\"bad\"" => {
                    Ok(raw(&json!({"action": "accept", "content": {"pin": 5}})))
                }
                _ => Err(RpcError::new(ErrorCode(-31_005), "not today")),
            }
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for (pin, expected) in [
        ("own", "\"changed\""),
        (
            "bad",
            "failed: invalid response from client to `elicitation/create`",
        ),
        (
            "?",
            "failed: a middleware refused `elicitation/create`: \"not today\"",
        ),
    ] {
        let id = begin(&mut client, "asks");
        let asked = client.next().await;
        assert_eq!(asked["params"]["message"], "Really?");
        let accepted = json!({"action": "accept", "content": {"pin": pin}});
        client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": accepted}));
        let result = client.response(&id).await.expect("a result");
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert!(text.contains(expected), "{text}");
    }
    // An error of the client, and one of the library, reach the handler as they would without middleware.
    let id = begin(&mut client, "asks");
    let asked = client.next().await;
    let error = json!({"code": -1, "message": "user rejected"});
    client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
    let result = client.response(&id).await.expect("a result");
    let text = result["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("client returned an error"), "{text}");
}

#[runtimes::test]
async fn an_input_request_is_answered_without_the_client() {
    let server = server();
    add(
        &server,
        &["sampling/createMessage"],
        |_: MiddlewareRequest, _: Next| async {
            let content = json!({"type": "text", "text": "cached"});
            Ok(raw(
                &json!({"role": "assistant", "content": content, "model": "none"}),
            ))
        },
    );
    for revision in ["2025-06-18", "2026-07-28"] {
        let mut client = match revision {
            "2026-07-28" => Client::modern(&server),
            _ => Client::legacy(&server, revision).await,
        };
        let result = match revision {
            "2026-07-28" => client.call_modern("samples", json!({})).await,
            _ => {
                let id = begin(&mut client, "samples");
                client.response(&id).await
            }
        };
        assert_eq!(result.expect("a result")["content"][0]["text"], "true");
    }
}

#[runtimes::test]
async fn notifications_of_clients_can_be_refused() {
    let server = server().on_roots_changed(|ctx: Context| async move {
        ctx.log(LoggingLevel::Info, None, "roots");
    });
    let received = ["acme/seen", "notifications/roots/list_changed"];
    let blocked = Arc::new(AtomicBool::new(true));
    let flag = blocked.clone();
    add(
        &server,
        &received,
        move |request: MiddlewareRequest, next: Next| {
            let is_blocked = flag.load(Ordering::SeqCst);
            async move {
                match is_blocked {
                    true => Err(RpcError::new(ErrorCode(1), "no")),
                    false => next.run(request).await,
                }
            }
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let notify = |client: &Client| {
        for method in received {
            client.send(json!({"jsonrpc": "2.0", "method": method}));
        }
    };
    notify(&client);
    let id = client.begin("ping", json!({}));
    client.response(&id).await.expect("a pong");
    assert_eq!(client.try_next(), None);
    blocked.store(false, Ordering::SeqCst);
    notify(&client);
    let mut logged =
        [client.next().await, client.next().await].map(|log| log["params"]["data"].clone());
    logged.sort_by_key(Value::to_string);
    assert_eq!(logged, ["roots", "seen"]);
}

#[runtimes::test]
async fn messages_of_a_mounted_server_meet_its_middleware_first() {
    let (inner, outer) = (server(), Server::new("outer", "1"));
    let marked = |mark: &'static str| {
        move |mut request: MiddlewareRequest, next: Next| async move {
            let params = request.params().expect("parameters").clone();
            let data = params.member("data").expect("data");
            let data = format!("{}{mark}", data.string_value().unwrap_or_default());
            request
                .set_params(params.with("data", &Raw::string(&data)))
                .expect("an object");
            next.run(request).await
        }
    };
    let method = ["notifications/message"];
    add(&outer, &method, marked(" outer"));
    outer
        .mount(&inner, MountOptions::default().with_prefix("in"))
        .expect("mounts");
    add(&inner, &method, marked(" inner"));
    let own = |_: Nothing, ctx: Context| async move {
        ctx.log(LoggingLevel::Info, None, "own");
        "done"
    };
    let outer = outer.tool("own", "Own", own);
    let mut client = Client::legacy(&outer, "2025-11-25").await;
    let id = begin(&mut client, "in_reports");
    let messages = until(&client, &id).await;
    assert_eq!(messages[3]["params"]["data"], "last inner outer");
    let id = begin(&mut client, "own");
    let messages = until(&client, &id).await;
    assert_eq!(messages[0]["params"]["data"], "own outer");
}

#[runtimes::test]
async fn a_redaction_covers_what_handlers_send() {
    let server = server();
    let redaction = Redaction::new()
        .with_members(["pin"])
        .with_patterns(["ann"])
        .expect("a pattern");
    server
        .add_middleware(MiddlewareScope::all(), Arc::new(redaction))
        .expect("a middleware");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = begin(&mut client, "reports");
    let messages = until(&client, &id).await;
    assert_eq!(methods(&messages), ALL);
    let data = json!({"pin": "[redacted]", "text": "by [redacted]"});
    assert_eq!(messages[0]["params"]["data"], data);
    assert_eq!(messages[1]["params"]["message"], "[redacted] is ready");
    let note = json!({"pin": "[redacted]", "_meta": {"pin": 3}});
    assert_eq!(messages[2]["params"], note);
    let id = begin(&mut client, "asks");
    let asked = client.next().await;
    assert_eq!(asked["params"]["message"], "Is [redacted] there?");
    let form = &asked["params"]["requestedSchema"]["properties"]["pin"];
    assert_eq!(*form, json!({"type": "string"}));
    let accepted = json!({"action": "accept", "content": {"pin": "1"}});
    client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": accepted}));
    client.response(&id).await.expect("a result");
    begin(&mut client, "samples");
    let asked = client.next().await;
    assert_eq!(asked["params"]["systemPrompt"], "for [redacted]");
    assert_eq!(
        asked["params"]["messages"][0]["content"]["text"],
        "[redacted]?"
    );
}

#[runtimes::test]
async fn a_scope_without_their_methods_leaves_messages_alone() {
    let (server, count) = (server(), Arc::new(Mutex::new(0)));
    let counted = count.clone();
    let middleware = move |request: MiddlewareRequest, next: Next| {
        *counted.lock().expect("not poisoned") += 1;
        async move { next.run(request).await }
    };
    server
        .add_middleware(MiddlewareScope::all(), Arc::new(middleware))
        .expect("a middleware");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = begin(&mut client, "reports");
    assert_eq!(methods(&until(&client, &id).await), ALL);
    assert_eq!(*count.lock().expect("not poisoned"), 1);
}

#[test]
fn scopes_with_methods_that_middleware_cannot_see_are_refused() {
    let server = server();
    let pass = |request: MiddlewareRequest, next: Next| async move { next.run(request).await };
    for method in [
        "ping",
        "initialize",
        "notifications/cancelled",
        "notifications/tools/list_changed",
    ] {
        let scope = MiddlewareScope::all().with_methods([method]);
        let error = server
            .add_middleware(scope, Arc::new(pass))
            .expect_err(method);
        assert!(error.to_string().contains(method), "{error}");
    }
    let scope = MiddlewareScope::all()
        .with_methods(["notifications/message"])
        .with_features(FeatureSelection::all().with_tags(["a"]));
    let error = server
        .add_middleware(scope, Arc::new(pass))
        .expect_err("features");
    assert!(error.to_string().contains("no feature"), "{error}");
}
