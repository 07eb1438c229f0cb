//! Middleware around messages that are not requests of clients: input requests and notifications of handlers, and notifications
//! for handlers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Client, Nothing};
use mcpline::foreign::{self, Feature};
use mcpline::middleware::{
    AuditLog, Middleware, MiddlewareFuture, MiddlewareRequest, Next, Redaction,
};
use mcpline::protocol::vocabulary::{LoggingLevel, Tool};
use mcpline::protocol::{ErrorCode, Raw, RpcError};
use mcpline::server::{
    CallKind, FeatureSelection, KeyedInputRequest, MiddlewareScope, MountOptions, ToolOptions,
};
use mcpline::{
    Call, Context, Handler, HandlerError, InputRequest, InputRequestMethod, InputRequired, Reply,
    Server,
};
use serde_json::{Value, json};

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
                .request_input(InputRequest::new(
                    InputRequestMethod::Elicit,
                    Some(raw(&params)),
                ))
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
                ctx.request_input(InputRequest::new(InputRequestMethod::Sample, params))
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

/// Panics before it returns a future.
struct Panics;

impl Middleware for Panics {
    fn handle(&self, _: MiddlewareRequest, _: Next) -> MiddlewareFuture {
        panic!("a bug")
    }
}

#[runtimes::test]
async fn a_middleware_that_panics_at_once_breaks_its_message_only() {
    let server = server();
    add(
        &server,
        &["notifications/message", "elicitation/create"],
        Panics,
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = begin(&mut client, "reports");
    let sent = until(&client, &id).await;
    assert_eq!(
        methods(&sent),
        ["notifications/progress", "acme/note", "response"]
    );
    let id = begin(&mut client, "asks");
    let sent = until(&client, &id).await;
    let text = &sent[0]["result"]["content"][0]["text"];
    assert!(
        text.as_str().expect("text").starts_with("failed: "),
        "{text}"
    );
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

/// Marks the texts of log messages, elicitations and results.
fn marking(mark: &'static str) -> impl Middleware {
    move |mut request: MiddlewareRequest, next: Next| async move {
        let member = match request.method() {
            "notifications/message" => "data",
            "elicitation/create" => "message",
            _ => return next.run(request).await,
        };
        let params = request.params().expect("parameters").clone();
        let text = params.member(member).expect("a text");
        let marked = format!("{}{mark}", text.string_value().unwrap_or_default());
        request
            .set_params(params.with(member, &Raw::string(&marked)))
            .expect("an object");
        next.run(request).await
    }
}

#[runtimes::test]
async fn what_is_sent_passes_the_outermost_middleware_last() {
    let server = server();
    let redaction = Redaction::new().with_patterns(["ann"]).expect("a pattern");
    server
        .add_middleware(MiddlewareScope::all(), Arc::new(redaction))
        .expect("a middleware");
    let methods = ["notifications/message", "elicitation/create"];
    add(&server, &methods, marking(" and ann"));
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = begin(&mut client, "reports");
    let messages = until(&client, &id).await;
    assert_eq!(messages[3]["params"]["data"], "last and [redacted]");
    begin(&mut client, "asks");
    let asked = client.next().await;
    assert_eq!(
        asked["params"]["message"],
        "Is [redacted] there? and [redacted]"
    );
}

#[runtimes::test]
async fn large_messages_are_redacted_whatever_thread_sends_them() {
    let server =
        Server::new("threads", "1").tool("logs", "Logs", |_: Nothing, ctx: Context| async move {
            let (sender, sent) = tokio::sync::oneshot::channel::<()>();
            std::thread::spawn(move || {
                ctx.log(LoggingLevel::Info, None, "ann ".repeat(40_000));
                drop(sender);
            });
            let _ = sent.await;
            "done"
        });
    let redaction = Redaction::new().with_patterns(["ann"]).expect("a pattern");
    server
        .add_middleware(MiddlewareScope::all(), Arc::new(redaction))
        .expect("a middleware");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = begin(&mut client, "logs");
    let messages = until(&client, &id).await;
    assert_eq!(messages.len(), 2);
    let data = messages[0]["params"]["data"].as_str().expect("a text");
    assert_eq!(data, "[redacted] ".repeat(40_000));
}

#[runtimes::test]
async fn input_requests_that_a_handler_returns_are_seen() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let server = Server::new("returns", "1").tool(
            "asks",
            "Asks",
            |_: Nothing, ctx: Context| async move {
                if let Some(answers) = ctx.input_responses() {
                    return Ok(answers.as_str().to_owned());
                }
                let form = json!({"type": "object", "properties": {}});
                let params = json!({"message": "for ann", "requestedSchema": form});
                let request = KeyedInputRequest {
                    key: "key".to_owned(),
                    method: InputRequestMethod::Elicit,
                    params: Some(raw(&params)),
                };
                Err(HandlerError::InputRequired(InputRequired {
                    requests: vec![request],
                    state: None,
                }))
            },
        );
        let redaction = Redaction::new().with_patterns(["ann"]).expect("a pattern");
        server
            .add_middleware(MiddlewareScope::all(), Arc::new(redaction))
            .expect("a middleware");
        add(&server, &["elicitation/create"], marking(", ann"));
        let mut client = match revision {
            "2025-11-25" => Client::legacy(&server, revision).await,
            _ => Client::modern(&server),
        };
        let expected = "for [redacted], [redacted]";
        let answer = json!({"action": "accept", "content": {}});
        let result = match revision {
            "2025-11-25" => {
                let id = begin(&mut client, "asks");
                let asked = client.next().await;
                assert_eq!(asked["params"]["message"], expected);
                client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
                client.response(&id).await
            }
            _ => {
                let round = client
                    .call_modern("asks", json!({}))
                    .await
                    .expect("a result");
                let asked = &round["inputRequests"]["key"]["params"]["message"];
                assert_eq!(asked, expected);
                let retry = json!({"requestState": round["requestState"], "inputResponses": {"key": answer}});
                client.call_modern("asks", retry).await
            }
        };
        let text = result.expect("a result")["content"][0]["text"].to_string();
        assert!(text.contains("accept"), "{text}");
    }
}

#[runtimes::test]
async fn a_feature_that_is_removed_during_its_call_stays_redacted() {
    let redaction = || {
        let redaction = Redaction::new().with_patterns(["ann"]).expect("a pattern");
        Arc::new(redaction)
    };
    let (outer, middle, inner) = (
        Server::new("outer", "1"),
        Server::new("middle", "1"),
        Server::new("inner", "1"),
    );
    let (parent, grandparent) = (middle.clone(), outer.clone());
    let inner = inner.tool("tool", "Tool", move |_: Nothing, ctx: Context| {
        let (parent, grandparent) = (parent.clone(), grandparent.clone());
        async move {
            ctx.log(LoggingLevel::Info, None, "before ann");
            grandparent.unmount(&parent);
            ctx.log(LoggingLevel::Info, None, "after ann");
            "ann"
        }
    });
    inner
        .add_middleware(MiddlewareScope::all(), redaction())
        .expect("a middleware");
    middle
        .mount(&inner, MountOptions::default())
        .expect("mounts");
    outer
        .mount(&middle, MountOptions::default())
        .expect("mounts");
    let mut client = Client::legacy(&outer, "2025-11-25").await;
    let id = begin(&mut client, "tool");
    let messages = until(&client, &id).await;
    let logged: Vec<_> = messages
        .iter()
        .filter(|message| message["method"] == "notifications/message")
        .map(|message| message["params"]["data"].clone())
        .collect();
    assert_eq!(logged, ["before [redacted]", "after [redacted]"]);
    let last = messages.last().expect("a response");
    assert_eq!(last["result"]["content"][0]["text"], "[redacted]");
}

#[runtimes::test]
async fn a_snapshot_keeps_the_middleware_of_all_servers_that_its_features_come_from() {
    let (outer, middle, inner) = (
        Server::new("outer", "1"),
        Server::new("middle", "1"),
        Server::new("inner", "1").tool("secret", "Secret", |_: Nothing, _: Context| async {
            "secret"
        }),
    );
    let guard =
        |request: MiddlewareRequest, _: Next| async move { Ok(request.tool_error("denied")) };
    inner
        .add_middleware(
            MiddlewareScope::all().with_methods(["tools/call"]),
            Arc::new(guard),
        )
        .expect("a middleware");
    let prefixed = |prefix: &str| MountOptions::default().with_prefix(prefix);
    middle.mount(&inner, prefixed("c")).expect("mounts");
    outer
        .mount(&middle, prefixed("b").with_snapshot(true))
        .expect("mounts");
    let mut client = Client::legacy(&outer, "2025-11-25").await;
    for _ in 0..2 {
        let id = client.begin("tools/call", json!({"name": "b_c_secret"}));
        let result = client.response(&id).await.expect("a result");
        assert_eq!(result["content"][0]["text"], "denied");
        inner.remove_tool("secret");
    }
}

#[runtimes::test]
async fn unwanted_messages_meet_no_middleware_and_the_last_progress_is_sent() {
    let server =
        Server::new("busy", "1").tool("works", "Works", |_: Nothing, ctx: Context| async move {
            for step in 0..2_000 {
                ctx.log(LoggingLevel::Debug, None, step);
            }
            ctx.log(LoggingLevel::Error, None, "important");
            for step in 1..=3_000 {
                ctx.progress(f64::from(step), Some(3_000.0), None);
            }
            "done"
        });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let scope = ["notifications/message", "notifications/progress"];
    add(
        &server,
        &scope,
        move |request: MiddlewareRequest, next: Next| {
            kept.lock()
                .expect("not poisoned")
                .push(request.method().to_owned());
            async move {
                tokio::task::yield_now().await;
                next.run(request).await
            }
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("logging/setLevel", json!({"level": "error"}));
    client.response(&id).await.expect("a result");
    let id = client.begin("tools/call", json!({"name": "works"}));
    let messages = until(&client, &id).await;
    assert_eq!(methods(&messages), ["notifications/message", "response"]);
    assert_eq!(messages[0]["params"]["data"], "important");
    assert_eq!(
        *seen.lock().expect("not poisoned"),
        ["notifications/message"]
    );
    let id = begin(&mut client, "works");
    let messages = until(&client, &id).await;
    let last = &messages[messages.len() - 2];
    assert_eq!(last["params"]["progress"], 3_000);
}

#[tokio::test(start_paused = true)]
async fn a_result_does_not_time_out_behind_the_messages_of_its_handler() {
    let timeout = Some(Duration::from_secs(1));
    let server = Server::new("timed", "1");
    let tool = Tool::new("logs", json!({"type": "object"}));
    let mut options = ToolOptions::default();
    options.timeout = timeout;
    server
        .add_tool_fn(tool, options, |_: Nothing, ctx: Context| async move {
            ctx.log(LoggingLevel::Info, None, "slow");
            "done"
        })
        .expect("a tool");
    add(
        &server,
        &["notifications/message"],
        |request: MiddlewareRequest, next: Next| async move {
            tokio::time::sleep(Duration::from_secs(30)).await;
            next.run(request).await
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = begin(&mut client, "logs");
    let messages = until(&client, &id).await;
    assert_eq!(messages[0]["params"]["data"], "slow");
    assert_eq!(messages[1]["result"]["content"][0]["text"], "done");
}

#[tokio::test(start_paused = true)]
async fn input_requests_have_the_keys_of_their_order_however_long_middleware_takes() {
    let server =
        Server::new("asks", "1").tool("both", "Both", |_: Nothing, ctx: Context| async move {
            let elicitation = |message: &str| {
                let form = json!({"type": "object", "properties": {}});
                let params = json!({"message": message, "requestedSchema": form});
                InputRequest::new(InputRequestMethod::Elicit, Some(raw(&params)))
            };
            let (first, second) = tokio::join!(
                ctx.request_input(elicitation("first")),
                ctx.request_input(elicitation("second"))
            );
            (first.is_ok() && second.is_ok()).to_string()
        });
    add(
        &server,
        &["elicitation/create"],
        |request: MiddlewareRequest, next: Next| async move {
            let params = request.params().expect("parameters").to_string();
            if params.contains("first") {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            next.run(request).await
        },
    );
    let mut client = Client::modern(&server);
    let mut extra = json!({});
    for _ in 0..3 {
        let round = client.call_modern("both", extra).await.expect("a result");
        let Some(requests) = round["inputRequests"].as_object() else {
            assert_eq!(round["content"][0]["text"], "true");
            return;
        };
        let mut answers = json!({});
        for (key, request) in requests {
            let expected = match request["params"]["message"].as_str() {
                Some("first") => "ask-1",
                _ => "ask-2",
            };
            assert_eq!(key, expected);
            answers[key] = json!({"action": "accept", "content": {}});
        }
        extra = json!({"requestState": round["requestState"], "inputResponses": answers});
    }
    panic!("the call needs more rounds than it has input requests");
}

#[runtimes::test]
async fn what_a_middleware_sends_is_redacted() {
    let server = server();
    let redaction = Redaction::new().with_patterns(["ann"]).expect("a pattern");
    server
        .add_middleware(MiddlewareScope::all(), Arc::new(redaction))
        .expect("a middleware");
    struct Logs;
    impl Handler for Logs {
        fn call(&self, call: Call) {
            call.context()
                .log(LoggingLevel::Info, None, "middleware of ann");
            let context = call.context();
            foreign::run_next(&context, None, move |outcome| {
                call.reply(outcome.map(Reply::Result).map_err(HandlerError::Rpc));
            })
            .run();
        }
    }
    Feature::read(
        CallKind::Middleware,
        br#"{"methods": ["tools/call"]}"#,
        Default::default(),
    )
    .expect("a middleware")
    .add(&server, Arc::new(Logs))
    .expect("a middleware");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = begin(&mut client, "reports");
    let messages = until(&client, &id).await;
    assert_eq!(messages[0]["params"]["data"], "middleware of [redacted]");
}

#[runtimes::test]
async fn an_audit_log_says_what_kind_of_message_it_records() {
    static NUMBERS: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let name = format!("mcpline-messages-{}-{number}.jsonl", std::process::id());
    let path = std::env::temp_dir().join(name);
    let server = server();
    let scope = MiddlewareScope::all().with_methods(["notifications/message", "tools/call"]);
    let log = AuditLog::open(&path).expect("opens");
    server
        .add_middleware(scope, Arc::new(log))
        .expect("a middleware");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = begin(&mut client, "reports");
    until(&client, &id).await;
    let text = std::fs::read_to_string(&path).expect("a file");
    std::fs::remove_file(&path).expect("a file");
    let records: Vec<_> = text
        .lines()
        .map(|line| {
            let record: Value = serde_json::from_str(line).expect("JSON");
            (record["kind"].clone(), record["method"].clone())
        })
        .collect();
    let message = (json!("sent_notification"), json!("notifications/message"));
    let expected = [message.clone(), message, (Value::Null, json!("tools/call"))];
    assert_eq!(records, expected);
}
