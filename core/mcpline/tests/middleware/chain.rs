//! Middleware of servers: what it sees, what it can change, and how requests end around it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::log::Log;
use crate::support::{Client, Nothing};
use mcpline::foreign::{self, Feature};
use mcpline::middleware::{MiddlewareOutcome, MiddlewareRequest, Next};
use mcpline::protocol::vocabulary::{Prompt, PromptArgument, Resource, ResourceTemplate, Tool};
use mcpline::protocol::{ErrorCode, Raw, RpcError};
use mcpline::server::{
    CallKind, Completer, FeatureSelection, MethodOptions, MiddlewareScope, MountOptions,
    RequestOutcome, ToolOptions,
};
use mcpline::{
    Call, Context, ErrorKind, Handler, HandlerError, InputRequest, InputRequestMethod, Server,
};
use serde_json::{Value, json};

/// What happened, in order.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl Events {
    fn push(&self, event: impl Into<String>) {
        self.0.lock().expect("not poisoned").push(event.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("not poisoned"))
    }

    /// A middleware that records `name` before and after the rest.
    fn middleware(
        &self,
        name: &'static str,
    ) -> impl Fn(MiddlewareRequest, Next) -> BoxedOutcome + Send + Sync + 'static {
        let events = self.clone();
        move |request, next| {
            let events = events.clone();
            Box::pin(async move {
                let target = request.name().unwrap_or("-").to_owned();
                events.push(format!("{name}: {} {target}", request.method()));
                let outcome = next.run(request).await;
                events.push(format!("{name}: end"));
                outcome
            })
        }
    }
}

type BoxedOutcome = std::pin::Pin<Box<dyn Future<Output = MiddlewareOutcome> + Send>>;

/// A server with a feature of each kind.
fn notes() -> Server {
    let server = Server::new("notes", "1")
        .resource(Resource::new("note://all", "all"), |_: Context| async {
            "all notes"
        })
        .resource_template(
            ResourceTemplate::new("note://by/{id}", "note"),
            |variables: Value, _: Context| async move { format!("note {}", variables["id"]) },
        )
        .prompt(
            Prompt::new("review").with_arguments(vec![PromptArgument::new("id")]),
            |_: Value, _: Context| async { "Review." },
        )
        .on_request("notes/count", |_: Nothing, _: Context| async {
            // An error, because no schema describes a result.
            let error = RpcError::new(ErrorCode(-31_001), "uncounted");
            Err::<Value, _>(HandlerError::Rpc(error))
        });
    let echo =
        |arguments: Value, _: Context| async move { Ok::<_, HandlerError>(arguments.to_string()) };
    let add = |name: &str, tags: &[&str]| {
        let tool = Tool::new(name, json!({"type": "object"}));
        let options = ToolOptions::default().with_tags(tags.iter().copied());
        server.add_tool_fn(tool, options, echo).expect("a tool");
    };
    add("echo", &[]);
    add("admin", &["admin"]);
    for reference in ["review", "note://by/{id}"] {
        let candidates = Completer::Candidates(vec!["1".into()]);
        server
            .add_completer(reference, "id", candidates)
            .expect("has it");
    }
    server
}

fn all(server: &Server, middleware: impl mcpline::middleware::Middleware) {
    add(server, MiddlewareScope::all(), middleware);
}

fn add(server: &Server, scope: MiddlewareScope, middleware: impl mcpline::middleware::Middleware) {
    server
        .add_middleware(scope, Arc::new(middleware))
        .expect("a middleware");
}

fn features(selection: FeatureSelection) -> MiddlewareScope {
    MiddlewareScope::all().with_features(selection)
}

async fn ask(client: &mut Client, method: &str, params: Value) -> Result<Value, Value> {
    let id = client.begin(method, params);
    client.response(&id).await
}

async fn call(client: &mut Client, name: &str, arguments: Value) -> Result<Value, Value> {
    ask(
        client,
        "tools/call",
        json!({"name": name, "arguments": arguments}),
    )
    .await
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}

#[runtimes::test]
async fn the_first_middleware_is_the_outermost() {
    let (server, events) = (notes(), Events::default());
    all(&server, events.middleware("a"));
    all(&server, events.middleware("b"));
    for legacy in [true, false] {
        let result = match legacy {
            true => {
                let mut client = Client::legacy(&server, "2025-11-25").await;
                call(&mut client, "echo", json!({"x": 1})).await
            }
            false => {
                let mut client = Client::modern(&server);
                client
                    .call_modern("echo", json!({"arguments": {"x": 1}}))
                    .await
            }
        };
        assert_eq!(text(&result.expect("a result")), r#"{"x":1}"#);
        assert_eq!(
            events.take(),
            [
                "a: tools/call echo",
                "b: tools/call echo",
                "b: end",
                "a: end"
            ]
        );
    }
}

#[runtimes::test]
async fn every_request_that_a_feature_answers_meets_the_middleware() {
    let (server, events) = (notes(), Events::default());
    all(&server, events.middleware("a"));
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let reference = json!({"type": "ref/prompt", "name": "review"});
    let completion = json!({"ref": reference, "argument": {"name": "id", "value": ""}});
    for (method, params, name) in [
        ("tools/list", json!({}), "-"),
        ("prompts/list", json!({}), "-"),
        ("resources/list", json!({}), "-"),
        ("resources/templates/list", json!({}), "-"),
        ("tools/call", json!({"name": "echo"}), "echo"),
        ("tools/call", json!({"name": "unknown"}), "unknown"),
        ("resources/read", json!({"uri": "note://all"}), "note://all"),
        (
            "resources/read",
            json!({"uri": "note://by/1"}),
            "note://by/1",
        ),
        ("prompts/get", json!({"name": "review"}), "review"),
        ("completion/complete", completion, "review"),
        ("notes/count", json!({}), "-"),
    ] {
        // Errors are outcomes, too.
        let _ = ask(&mut client, method, params).await;
        assert_eq!(
            events.take(),
            [format!("a: {method} {name}"), "a: end".into()]
        );
    }
    let _ = ask(&mut client, "ping", json!({})).await;
    assert_eq!(events.take(), [""; 0]);
}

#[runtimes::test]
async fn middleware_changes_arguments_and_results() {
    let server = notes();
    all(
        &server,
        |mut request: MiddlewareRequest, next: Next| async move {
            assert_eq!(request.arguments().expect("some").as_str(), r#"{"x":1}"#);
            let changed = Raw::parse(r#"{"x":2}"#).expect("JSON");
            request.set_arguments(changed).expect("an object");
            let result = next.run(request).await?;
            let result = result.as_str().replace(r#"{\"x\":2}"#, "changed");
            Ok(Raw::parse(result).expect("JSON"))
        },
    );
    let mut client = Client::modern(&server);
    let result = client
        .call_modern("echo", json!({"arguments": {"x": 1}}))
        .await;
    assert_eq!(text(&result.expect("a result")), "changed");
}

#[runtimes::test]
async fn middleware_answers_in_place_of_the_handler() {
    let server = notes();
    let answers = |request: MiddlewareRequest, next: Next| async move {
        match request.name() {
            Some("echo") => Ok(Raw::parse(r#"{"content": []}"#).expect("JSON")),
            Some("admin") => Ok(request.tool_error("not today")),
            Some("note://all") => Err(RpcError::new(ErrorCode(-31_999), "closed")),
            _ => next.run(request).await,
        }
    };
    all(&server, answers);
    // The schema check of the client fails if a member that the revision requires is missing.
    let mut client = Client::modern(&server);
    let result = client
        .call_modern("echo", json!({}))
        .await
        .expect("a result");
    assert_eq!(result["content"], json!([]));
    let result = client
        .call_modern("admin", json!({}))
        .await
        .expect("a result");
    assert_eq!(
        (text(&result), &result["isError"]),
        ("not today", &json!(true))
    );
    let id = client.begin_modern("resources/read", json!({"uri": "note://all"}));
    let error = client.response(&id).await.expect_err("an error");
    assert_eq!(error, json!({"code": -31_999, "message": "closed"}));
}

#[runtimes::test]
async fn results_of_middleware_are_completed_for_the_revision() {
    let server = notes();
    all(&server, |_: MiddlewareRequest, _: Next| async {
        Ok(Raw::parse(r#"{"tools": []}"#).expect("JSON"))
    });
    let mut client = Client::modern(&server);
    let id = client.begin_modern("tools/list", json!({}));
    let result = client.response(&id).await.expect("a list");
    assert_eq!(
        result,
        json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": []})
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let result = ask(&mut client, "tools/list", json!({})).await;
    assert_eq!(result.expect("a list"), json!({"tools": []}));
}

#[runtimes::test]
async fn a_result_that_is_not_an_object_is_an_internal_error() {
    let server = notes();
    all(&server, |_: MiddlewareRequest, _: Next| async {
        Ok(Raw::NULL)
    });
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let error = call(&mut client, "echo", json!({}))
        .await
        .expect_err("an error");
    assert_eq!(error["code"], -32_603);
}

#[runtimes::test]
async fn scopes_select_methods_features_and_tags() {
    let (server, events) = (notes(), Events::default());
    let methods = MiddlewareScope::all().with_methods(["tools/list", "notes/count"]);
    add(&server, methods, events.middleware("methods"));
    let tagged = features(FeatureSelection::all().with_tags(["admin"]));
    add(&server, tagged, events.middleware("tagged"));
    let templates = features(FeatureSelection::all().with_names(["note://by/{id}"]));
    add(&server, templates, events.middleware("template"));
    let prompts = features(FeatureSelection::all().with_kinds([CallKind::Prompt]));
    add(&server, prompts, events.middleware("prompts"));
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let complete = |kind: &str, member: &str, name: &str| json!({"ref": {"type": kind, member: name}, "argument": {"name": "id", "value": ""}});
    for (method, params, expected) in [
        ("tools/list", json!({}), "methods"),
        ("prompts/list", json!({}), ""),
        ("notes/count", json!({}), "methods"),
        ("tools/call", json!({"name": "echo"}), ""),
        ("tools/call", json!({"name": "admin"}), "tagged"),
        ("resources/read", json!({"uri": "note://all"}), ""),
        ("resources/read", json!({"uri": "note://by/1"}), "template"),
        ("prompts/get", json!({"name": "review"}), "prompts"),
        (
            "completion/complete",
            complete("ref/prompt", "name", "review"),
            "prompts",
        ),
        (
            "completion/complete",
            complete("ref/resource", "uri", "note://by/{id}"),
            "template",
        ),
    ] {
        let params_text = params.to_string();
        let _ = ask(&mut client, method, params).await;
        let seen = events.take();
        let seen = seen.first().and_then(|event| event.split(':').next());
        assert_eq!(seen.unwrap_or(""), expected, "{method} {params_text}");
    }
}

#[test]
fn methods_that_no_middleware_sees_are_refused() {
    let server = Server::new("test", "1");
    for method in ["ping", "initialize", "resources/subscribe"] {
        let scope = MiddlewareScope::all().with_methods([method]);
        let middleware =
            |request: MiddlewareRequest, next: Next| async move { next.run(request).await };
        let error = server
            .add_middleware(scope, Arc::new(middleware))
            .expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(method), "{error}");
    }
}

#[test]
fn methods_that_are_like_those_of_the_protocol_are_refused() {
    let server = Server::new("test", "1");
    let add = |method: &str| {
        let middleware =
            |request: MiddlewareRequest, next: Next| async move { next.run(request).await };
        let scope = MiddlewareScope::all().with_methods([method]);
        server
            .add_middleware(scope, Arc::new(middleware))
            .map_err(|error| error.to_string())
    };
    for (method, hint) in [
        ("tools/cal", "did you mean \"tools/call\"?"),
        ("Tools/Call", "did you mean \"tools/call\"?"),
        ("prompt/get", "did you mean \"prompts/get\"?"),
        (
            "notification/message",
            "did you mean \"notifications/message\"?",
        ),
        ("tools/run", "there are tools/call, tools/list, "),
    ] {
        let error = add(method).expect_err("refused");
        assert!(error.contains(hint), "{error}");
    }
    for custom in ["notes/count", "notifications/acme", "tasks/list", "call"] {
        add(custom).expect("a custom method");
    }
    // The author has a method of this name.
    let handler = |_: Value, _: Context| async { Ok::<_, RpcError>(json!({})) };
    server
        .add_request_fn("tools/run", MethodOptions::default(), handler)
        .expect("a custom method");
    add("tools/run").expect("a custom method");
}

#[test]
fn a_server_has_64_middlewares_at_most() {
    let server = Server::new("test", "1");
    let middleware =
        |request: MiddlewareRequest, next: Next| async move { next.run(request).await };
    for _ in 0..64 {
        all(&server, middleware);
    }
    let error = server
        .add_middleware(MiddlewareScope::all(), Arc::new(middleware))
        .expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[tokio::test(start_paused = true)]
async fn a_request_may_be_passed_on_again() {
    let server = Server::new("flaky", "1");
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let server = server.tool("flaky", "Fails twice", move |_: Nothing, _: Context| {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            match run {
                0 | 1 => Err(HandlerError::Rpc(RpcError::busy("busy"))),
                _ => Ok("done"),
            }
        }
    });
    all(
        &server,
        |request: MiddlewareRequest, next: Next| async move {
            loop {
                match next.run(request.clone()).await {
                    Err(error) if error.code == ErrorCode::BUSY => {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                    outcome => return outcome,
                }
            }
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let result = call(&mut client, "flaky", json!({})).await;
    assert_eq!(text(&result.expect("a result")), "done");
    assert_eq!(runs.load(Ordering::SeqCst), 3);
}

/// A server whose only tool never ends, and says when it is cancelled.
fn endless() -> (Server, Arc<AtomicBool>) {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = cancelled.clone();
    let server =
        Server::new("endless", "1").tool("wait", "Waits", move |_: Nothing, ctx: Context| {
            let flag = flag.clone();
            ctx.on_cancel(move || flag.store(true, Ordering::SeqCst));
            async { std::future::pending::<&'static str>().await }
        });
    (server, cancelled)
}

#[runtimes::test]
async fn cancelling_a_request_drops_its_middleware_and_cancels_its_handler() {
    let (server, cancelled) = endless();
    let dropped = Arc::new(AtomicBool::new(false));
    struct SetOnDrop(Arc<AtomicBool>);
    impl Drop for SetOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let flag = dropped.clone();
    all(&server, move |request: MiddlewareRequest, next: Next| {
        let guard = SetOnDrop(flag.clone());
        async move {
            let outcome = next.run(request).await;
            drop(guard);
            outcome
        }
    });
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tools/call", json!({"name": "wait"}));
    client.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
    );
    ask(&mut client, "ping", json!({})).await.expect("a pong");
    while !dropped.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    assert!(cancelled.load(Ordering::SeqCst));
    assert!(client.try_next().is_none());
}

#[runtimes::test]
async fn a_handler_of_another_language_finds_its_call_cancelled_when_its_request_has_ended() {
    /// Keeps its call open, and what it has found when the passed request ended.
    struct Passes(Arc<Mutex<Vec<Call>>>, Arc<Mutex<Option<bool>>>);
    impl Handler for Passes {
        fn call(&self, call: Call) {
            let (context, found) = (call.context(), self.1.clone());
            foreign::run_next(&call.context(), None, move |outcome| {
                let was_cancelled = outcome.is_err() && context.is_cancelled();
                *found.lock().expect("not poisoned") = Some(was_cancelled);
            })
            .run();
            self.0.lock().expect("not poisoned").push(call);
        }
    }
    let (server, cancelled) = endless();
    let (open, found) = (Arc::default(), Arc::new(Mutex::new(None)));
    let middleware = Feature::read(CallKind::Middleware, b"{}", Default::default());
    let handler = Arc::new(Passes(Arc::clone(&open), found.clone()));
    middleware
        .expect("a middleware")
        .add(&server, handler)
        .expect("a middleware");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tools/call", json!({"name": "wait"}));
    client.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
    );
    ask(&mut client, "ping", json!({})).await.expect("a pong");
    while found.lock().expect("not poisoned").is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(*found.lock().expect("not poisoned"), Some(true));
    assert!(cancelled.load(Ordering::SeqCst));
    open.lock().expect("not poisoned").clear();
}

#[tokio::test(start_paused = true)]
async fn a_middleware_that_answers_first_cancels_the_handler() {
    let (server, cancelled) = endless();
    all(
        &server,
        |request: MiddlewareRequest, next: Next| async move {
            let error = request.tool_error("too slow");
            match tokio::time::timeout(Duration::from_secs(5), next.run(request)).await {
                Ok(outcome) => outcome,
                Err(_) => Ok(error),
            }
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let result = call(&mut client, "wait", json!({}))
        .await
        .expect("a result");
    assert_eq!(text(&result), "too slow");
    assert!(cancelled.load(Ordering::SeqCst));
}

#[runtimes::test]
async fn a_middleware_that_panics_is_an_internal_error_and_the_session_goes_on() {
    let log = Log::all();
    let _subscribed = tracing::subscriber::set_default(log.clone());
    let server = notes();
    all(
        &server,
        |request: MiddlewareRequest, next: Next| async move {
            assert_ne!(request.name(), Some("echo"), "a bug");
            next.run(request).await
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let error = call(&mut client, "echo", json!({}))
        .await
        .expect_err("an error");
    assert_eq!(error["code"], -32_603);
    assert!(log.has("a middleware panicked"));
    call(&mut client, "admin", json!({}))
        .await
        .expect("a result");
}

#[runtimes::test]
async fn errors_keep_their_data() {
    let server =
        Server::new("failing", "1").tool("fail", "Fails", |_: Nothing, _: Context| async {
            let error = RpcError::new(ErrorCode(-31_000), "no").with_data(&json!({"a": 1}));
            Err::<String, _>(HandlerError::Rpc(error))
        });
    all(
        &server,
        |request: MiddlewareRequest, next: Next| async move { next.run(request).await },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let error = call(&mut client, "fail", json!({}))
        .await
        .expect_err("an error");
    assert_eq!(
        error,
        json!({"code": -31_000, "message": "no", "data": {"a": 1}})
    );
}

/// A tool that asks for a name.
fn asking() -> Server {
    Server::new("asking", "1").tool("ask", "Asks", |_: Nothing, ctx: Context| async move {
        let params = json!({"message": "Name?", "requestedSchema": {
            "type": "object", "properties": {"name": {"type": "string"}}}});
        let params = Raw::from_serialize(&params).ok();
        let answer = ctx
            .request_input(InputRequest::new(InputRequestMethod::Elicit, params))
            .await?;
        Ok::<_, HandlerError>(answer.as_str().to_owned())
    })
}

#[runtimes::test]
async fn a_handler_asks_under_middleware_in_the_middle_of_a_call() {
    let (server, events) = (asking(), Events::default());
    all(&server, events.middleware("a"));
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tools/call", json!({"name": "ask"}));
    let asked = client.next().await;
    assert_eq!(asked["method"], "elicitation/create");
    let answer = json!({"action": "accept", "content": {"name": "Ann"}});
    client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
    let result = client.response(&id).await.expect("a result");
    assert!(text(&result).contains("Ann"));
    assert_eq!(events.take(), ["a: tools/call ask", "a: end"]);
}

#[runtimes::test]
async fn on_2026_07_28_the_retry_with_the_answers_is_another_request() {
    let (server, events) = (asking(), Events::default());
    all(&server, events.middleware("a"));
    let outcomes = Events::default();
    let ended = outcomes.clone();
    server.on_request_end(move |record| {
        if record.method == "tools/call" {
            ended.push(record.outcome.name());
        }
    });
    let mut client = Client::modern(&server);
    let round = client
        .call_modern("ask", json!({}))
        .await
        .expect("a result");
    assert_eq!(round["resultType"], "input_required");
    let requests = round["inputRequests"].as_object().expect("requests");
    let key = requests.keys().next().expect("a request");
    let answer = json!({"action": "accept", "content": {"name": "Ann"}});
    let retry = json!({"requestState": round["requestState"], "inputResponses": {key: answer}});
    let result = client.call_modern("ask", retry).await.expect("a result");
    assert!(text(&result).contains("Ann"));
    assert_eq!(
        events.take(),
        ["a: tools/call ask", "a: end", "a: tools/call ask", "a: end"]
    );
    let expected = [
        RequestOutcome::InputRequired.name(),
        RequestOutcome::Ok.name(),
    ];
    // Requests are recorded after their responses, on other threads in any order.
    let mut ended = Vec::new();
    while ended.len() < expected.len() {
        ended.extend(outcomes.take());
        tokio::task::yield_now().await;
    }
    ended.sort_unstable();
    assert_eq!(ended, expected);
}

#[runtimes::test]
async fn a_middleware_of_a_mounted_server_sees_its_own_features_by_their_own_names() {
    let events = Events::default();
    let (inner, middle) = (notes(), Server::new("middle", "1"));
    let outer =
        Server::new("outer", "1").tool("echo", "Echo", |_: Nothing, _: Context| async { "own" });
    all(&inner, events.middleware("inner"));
    let prefixed = |prefix: &str| MountOptions::default().with_prefix(prefix);
    middle.mount(&inner, prefixed("in")).expect("mounts");
    outer.mount(&middle, prefixed("mid")).expect("mounts");
    // Added after the mount.
    all(&middle, events.middleware("middle"));
    let mut client = Client::legacy(&outer, "2025-11-25").await;
    for (method, params, names) in [
        ("tools/call", json!({"name": "echo"}), None),
        (
            "tools/call",
            json!({"name": "mid_in_echo"}),
            Some(("in_echo", "echo")),
        ),
        (
            "resources/read",
            json!({"uri": "note://mid/in/all"}),
            Some(("note://in/all", "note://all")),
        ),
        (
            "resources/read",
            json!({"uri": "note://mid/in/by/7"}),
            Some(("note://in/by/7", "note://by/7")),
        ),
        (
            "prompts/get",
            json!({"name": "mid_in_review"}),
            Some(("in_review", "review")),
        ),
        ("tools/list", json!({}), None),
    ] {
        ask(&mut client, method, params).await.expect("a result");
        let expected = match names {
            Some((middle, inner)) => vec![
                format!("middle: {method} {middle}"),
                format!("inner: {method} {inner}"),
                "inner: end".into(),
                "middle: end".into(),
            ],
            None => Vec::new(),
        };
        assert_eq!(events.take(), expected);
    }
}

#[runtimes::test]
async fn custom_requests_of_a_mounted_server_meet_its_middleware() {
    let events = Events::default();
    let (inner, outer) = (notes(), Server::new("outer", "1"));
    all(&inner, events.middleware("inner"));
    outer
        .mount(&inner, MountOptions::default())
        .expect("mounts");
    let mut client = Client::legacy(&outer, "2025-11-25").await;
    let count = ask(&mut client, "notes/count", json!({})).await;
    assert_eq!(count.expect_err("an error")["code"], -31_001);
    assert_eq!(events.take(), ["inner: notes/count -", "inner: end"]);
}

/// Passes calls of the tool `from` to the tool `to`.
fn translate(
    from: &'static str,
    to: &'static str,
) -> impl Fn(MiddlewareRequest, Next) -> BoxedOutcome + Send + Sync + 'static {
    move |mut request, next| {
        Box::pin(async move {
            if request.name() == Some(from) {
                let params = Raw::from_serialize(&json!({"name": to})).expect("JSON");
                request.set_params(params).expect("an object");
                assert_eq!(request.name(), Some(to));
            }
            next.run(request).await
        })
    }
}

#[runtimes::test]
async fn a_translated_name_does_not_avoid_the_middleware_of_its_tool() {
    let (server, events) = (notes(), Events::default());
    let guarded = features(FeatureSelection::all().with_tags(["admin"]));
    add(&server, guarded, events.middleware("guard"));
    all(&server, translate("alias", "admin"));
    let mut client = Client::legacy(&server, "2025-11-25").await;
    call(&mut client, "alias", json!({}))
        .await
        .expect("a result");
    assert_eq!(events.take(), ["guard: tools/call admin", "guard: end"]);
}

#[runtimes::test]
async fn a_middleware_of_a_mounted_server_cannot_reach_other_features() {
    let (inner, outer) = (notes(), Server::new("outer", "1"));
    let prefixed = MountOptions::default().with_prefix("in");
    outer.mount(&inner, prefixed).expect("mounts");
    all(&inner, translate("echo", "in_admin"));
    let mut client = Client::legacy(&outer, "2025-11-25").await;
    let error = call(&mut client, "in_echo", json!({})).await;
    assert_eq!(error.expect_err("an error")["code"], -32_603);
}

#[runtimes::test]
async fn each_request_of_a_batch_meets_the_middleware() {
    let (server, events) = (notes(), Events::default());
    all(&server, events.middleware("a"));
    let client = Client::legacy(&server, "2025-03-26").await;
    let request = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo"}});
    client.send(json!([request(11), request(12)]));
    let responses = client.next().await;
    assert_eq!(responses.as_array().map(Vec::len), Some(2));
    let seen = events.take();
    let begun = seen.iter().filter(|event| event.ends_with("echo"));
    assert_eq!(begun.count(), 2);
}

#[runtimes::test]
async fn middleware_knows_where_a_request_comes_from() {
    let (server, events) = (notes(), Events::default());
    let seen = events.clone();
    all(&server, move |request: MiddlewareRequest, next: Next| {
        let info = request.client_info().map(|info| info.to_string());
        seen.push(format!(
            "{} {} {:?} {:?} {}",
            request.revision().as_str(),
            request.transport(),
            request
                .auth()
                .and_then(|caller| caller.subject().map(str::to_owned)),
            info.map(|info| info.contains("test")),
            request.request_id(),
        ));
        async move { next.run(request).await }
    });
    let mut client =
        Client::over(server.connect_as(mcpline::server::Caller::new().with_subject("ann")));
    client = client.shake_hands("2025-06-18").await;
    call(&mut client, "echo", json!({}))
        .await
        .expect("a result");
    assert_eq!(
        events.take(),
        [r#"2025-06-18 memory Some("ann") Some(true) 2"#]
    );
}

#[runtimes::test]
async fn a_shutdown_waits_for_the_middleware_after_the_handler() {
    let server = notes();
    let release = Arc::new(tokio::sync::Notify::new());
    let wait = release.clone();
    all(&server, move |request: MiddlewareRequest, next: Next| {
        let wait = wait.clone();
        async move {
            let outcome = next.run(request).await;
            wait.notified().await;
            outcome
        }
    });
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tools/call", json!({"name": "echo"}));
    ask(&mut client, "ping", json!({})).await.expect("a pong");
    assert!(client.try_next().is_none());
    release.notify_one();
    client.response(&id).await.expect("a result");
}
