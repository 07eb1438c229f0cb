//! Attempts to avoid middleware, to keep it from ending, and to get what it holds back.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Client, Nothing};
use mcpline::foreign::{self, Feature};
use mcpline::middleware::*;
use mcpline::protocol::vocabulary::*;
use mcpline::protocol::{ErrorCode, Raw, RpcError};
use mcpline::server::*;
use mcpline::{Call, Context, Handler, HandlerError, InputRequest, InputRequestMethod, Server};
use serde_json::{Value, json};

type Out = Pin<Box<dyn Future<Output = MiddlewareOutcome> + Send>>;

/// Refuses everything that it sees, and counts.
fn guard(seen: &Arc<AtomicU32>) -> impl Fn(MiddlewareRequest, Next) -> Out + Send + Sync + 'static {
    let seen = seen.clone();
    move |_, _| {
        seen.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Err(RpcError::new(ErrorCode(-31_777), "guarded")) })
    }
}
fn count(seen: &Arc<AtomicU32>) -> impl Fn(MiddlewareRequest, Next) -> Out + Send + Sync + 'static {
    let seen = seen.clone();
    move |r, n| {
        seen.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { n.run(r).await })
    }
}
fn add(server: &Server, scope: MiddlewareScope, m: impl Middleware) {
    server
        .add_middleware(scope, Arc::new(m))
        .expect("a middleware");
}
fn tagged(tag: &str) -> MiddlewareScope {
    MiddlewareScope::all().with_features(FeatureSelection::all().with_tags([tag]))
}
fn named(name: &str) -> FeatureSelection {
    FeatureSelection::all().with_names([name])
}
async fn ask(client: &mut Client, method: &str, params: Value) -> Result<Value, Value> {
    let id = client.begin(method, params);
    client.response(&id).await
}
async fn call(client: &mut Client, name: &str) -> Result<Value, Value> {
    ask(client, "tools/call", json!({"name": name, "arguments": {}})).await
}
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}
fn with_admin() -> Server {
    let server = Server::new("inner", "1");
    let tool = Tool::new("admin", json!({"type": "object"}));
    server
        .add_tool_fn(
            tool,
            ToolOptions::default().with_tags(["admin"]),
            |a: Value, _: Context| async move { Ok::<_, HandlerError>(format!("secret {a}")) },
        )
        .expect("a tool");
    server
}
fn code(outcome: &Result<Value, Value>) -> Option<i64> {
    outcome.as_ref().err().and_then(|e| e["code"].as_i64())
}

#[runtimes::test]
async fn an_escaped_reference_meets_the_guard_of_its_prompt() {
    let seen = Arc::default();
    let server = Server::new("s", "1").prompt(
        Prompt::new("review").with_arguments(vec![PromptArgument::new("id")]),
        |_: Value, _: Context| async { "Review." },
    );
    server
        .add_completer("review", "id", Completer::Candidates(vec!["secret".into()]))
        .expect("has it");
    let prompts = FeatureSelection::all().with_kinds([CallKind::Prompt]);
    add(
        &server,
        MiddlewareScope::all().with_features(prompts),
        guard(&seen),
    );
    let memory = server.connect();
    for (escaped, kind) in [(false, "ref/prompt"), (true, r"ref\/prompt")] {
        memory.send(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{{"ref":{{"type":"{kind}","name":"review"}},"argument":{{"name":"id","value":""}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        ));
        let answer = memory.receive().await.expect("an answer");
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(
            answer["error"]["code"], -31_777,
            "escaped {escaped}: {answer}"
        );
    }
}

#[runtimes::test]
async fn an_escaped_reference_meets_the_middleware_of_a_mounted_server() {
    let seen = Arc::default();
    let server = Server::new("s", "1").prompt(
        Prompt::new("review").with_arguments(vec![PromptArgument::new("id")]),
        |_: Value, _: Context| async { "Review." },
    );
    server
        .add_completer("review", "id", Completer::Candidates(vec!["secret".into()]))
        .expect("has it");
    add(&server, MiddlewareScope::all(), guard(&seen));
    let outer = Server::new("outer", "1");
    outer
        .mount(&server, MountOptions::default())
        .expect("mounts");
    let memory = outer.connect();
    for (escaped, kind) in [(false, "ref/prompt"), (true, r"ref\/prompt")] {
        memory.send(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{{"ref":{{"type":"{kind}","name":"review"}},"argument":{{"name":"id","value":""}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        ));
        let answer = memory.receive().await.expect("an answer");
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(
            answer["error"]["code"], -31_777,
            "escaped {escaped}: {answer}"
        );
    }
}

#[runtimes::test]
async fn a_snapshot_keeps_the_guard_of_a_disabled_tool() {
    let seen = Arc::default();
    let (inner, outer) = (with_admin(), Server::new("outer", "1"));
    add(&inner, tagged("admin"), guard(&seen));
    outer
        .mount(&inner, MountOptions::default().with_snapshot(true))
        .expect("mounts");
    let mut client = Client::legacy(&outer, "2025-11-25").await;
    assert_eq!(code(&call(&mut client, "admin").await), Some(-31_777));
    inner.disable(named("admin"));
    let outcome = call(&mut client, "admin").await;
    assert_eq!(code(&outcome), Some(-31_777), "{outcome:?}");
}

#[runtimes::test]
async fn a_snapshot_keeps_the_guard_of_a_removed_tool() {
    let seen = Arc::default();
    let (inner, outer) = (with_admin(), Server::new("outer", "1"));
    add(&inner, tagged("admin"), guard(&seen));
    outer
        .mount(&inner, MountOptions::default().with_snapshot(true))
        .expect("mounts");
    let mut client = Client::legacy(&outer, "2025-11-25").await;
    inner.remove_tool("admin");
    let outcome = call(&mut client, "admin").await;
    assert_eq!(code(&outcome), Some(-31_777), "{outcome:?}");
}

#[runtimes::test]
async fn a_snapshot_of_a_mount_keeps_the_middleware_of_a_disabled_tool() {
    let seen = Arc::default();
    let (inner, middle, outer) = (
        with_admin(),
        Server::new("middle", "1"),
        Server::new("outer", "1"),
    );
    add(&inner, MiddlewareScope::all(), guard(&seen));
    middle
        .mount(&inner, MountOptions::default())
        .expect("mounts");
    outer
        .mount(&middle, MountOptions::default().with_snapshot(true))
        .expect("mounts");
    let mut client = Client::legacy(&outer, "2025-11-25").await;
    inner.disable(named("admin"));
    let outcome = call(&mut client, "admin").await;
    assert_eq!(code(&outcome), Some(-31_777), "{outcome:?}");
}

#[runtimes::test]
async fn a_resource_that_is_disabled_at_the_parent_leaves_the_guard_of_its_template() {
    let seen = Arc::default();
    let inner = Server::new("inner", "1")
        .resource(Resource::new("note://all", "all"), |_: Context| async {
            "all"
        })
        .resource_template(
            ResourceTemplate::new("note://{id}", "note"),
            |v: Value, _: Context| async move { format!("template {v}") },
        );
    let outer = Server::new("outer", "1");
    add(
        &inner,
        MiddlewareScope::all().with_features(named("note://{id}")),
        guard(&seen),
    );
    outer
        .mount(&inner, MountOptions::default())
        .expect("mounts");
    let mut client = Client::legacy(&outer, "2025-11-25").await;
    assert_eq!(
        code(&ask(&mut client, "resources/read", json!({"uri": "note://1"})).await),
        Some(-31_777)
    );
    outer.disable(named("note://all"));
    let outcome = ask(&mut client, "resources/read", json!({"uri": "note://all"})).await;
    assert_eq!(code(&outcome), Some(-31_777), "{outcome:?}");
}

#[runtimes::test]
async fn a_cache_does_not_answer_callers_without_the_scope() {
    let server = Server::new("s", "1");
    let tool = Tool::new("a", json!({"type": "object"}));
    server
        .add_tool_fn(
            tool,
            ToolOptions::default().with_scopes(["secret"]),
            |_: Value, _: Context| async { Ok::<_, HandlerError>("secret") },
        )
        .expect("a tool");
    add(
        &server,
        MiddlewareScope::all(),
        ResponseCache::new(Duration::from_secs(60)).with_tools(["a"]),
    );
    let caller = || mcpline::server::Caller::new().with_subject("ann");
    let mut may = Client::over(server.connect_as(caller().with_scopes(["secret"])))
        .shake_hands("2025-11-25")
        .await;
    let mut may_not = Client::over(server.connect_as(caller()))
        .shake_hands("2025-11-25")
        .await;
    assert!(call(&mut may_not, "a").await.is_err());
    call(&mut may, "a").await.expect("a result");
    let outcome = call(&mut may_not, "a").await;
    assert!(outcome.is_err(), "{outcome:?}");
}

#[runtimes::test]
async fn a_result_from_before_clear_is_not_kept_after_it() {
    let value = Arc::new(AtomicU32::new(1));
    let gate = Arc::new(tokio::sync::Notify::new());
    let (v, g) = (value.clone(), gate.clone());
    let server = Server::new("s", "1").tool("a", "A", move |_: Nothing, _: Context| {
        let now = v.load(Ordering::SeqCst);
        let g = g.clone();
        async move {
            if now == 1 {
                g.notified().await;
            }
            format!("{now}")
        }
    });
    let cache = Arc::new(ResponseCache::new(Duration::from_secs(60)).with_tools(["a"]));
    server
        .add_middleware(MiddlewareScope::all(), cache.clone())
        .expect("added");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tools/call", json!({"name": "a", "arguments": {}}));
    ask(&mut client, "ping", json!({})).await.expect("a pong");
    value.store(2, Ordering::SeqCst);
    cache.clear();
    gate.notify_one();
    client.response(&id).await.expect("a result");
    assert_eq!(text(&call(&mut client, "a").await.expect("a result")), "2");
}

/// Replies with its arguments as they are, as bindings see them.
struct Echo;
impl Handler for Echo {
    fn call(&self, call: Call) {
        let arguments = call.arguments().as_str().to_owned();
        call.reply(Ok(mcpline::Reply::Tool(mcpline::ToolReply::text(
            &arguments,
        ))));
    }
}

#[runtimes::test]
async fn large_numbers_have_cache_entries_of_their_own() {
    for (one, two) in [
        ("100000000000000000001", "100000000000000000002"),
        ("1", "1.0"),
    ] {
        let server = Server::new("s", "1");
        server
            .add_tool(
                Tool::new("echo", json!({"type": "object"})),
                ToolOptions::default(),
                Arc::new(Echo),
            )
            .expect("a tool");
        add(
            &server,
            MiddlewareScope::all(),
            ResponseCache::new(Duration::from_secs(60)).with_tools(["echo"]),
        );
        let memory = server.connect();
        for number in [one, two] {
            memory.send(format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"id":{number}}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
            ));
            let answer = memory.receive().await.expect("an answer");
            let answer: Value = serde_json::from_slice(&answer).expect("JSON");
            assert_eq!(
                text(&answer["result"]),
                format!(r#"{{"id":{number}}}"#),
                "{one} {two}"
            );
        }
    }
}

/// Not only the cache: the user accepts one amount, and the retry has another one.
#[runtimes::test]
async fn a_retry_with_a_number_out_of_range_cannot_change_other_arguments() {
    struct Pays;
    impl Handler for Pays {
        fn call(&self, call: Call) {
            if call.context().request_state().is_some() {
                let arguments = call.arguments().as_str().to_owned();
                return call.reply(Ok(mcpline::Reply::Tool(mcpline::ToolReply::text(
                    &format!("paid {arguments}"),
                ))));
            }
            let params = json!({"message": "Pay 1?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}});
            let request = mcpline::server::KeyedInputRequest {
                key: "ask-1".into(),
                method: InputRequestMethod::Elicit,
                params: Raw::from_serialize(&params).ok(),
            };
            call.reply(Ok(mcpline::Reply::InputRequired(InputRequired {
                requests: vec![request],
                state: Some("asked".into()),
            })));
        }
    }
    let server = Server::new("asking", "1");
    server
        .add_tool(
            Tool::new("pay", json!({"type": "object"})),
            ToolOptions::default(),
            Arc::new(Pays),
        )
        .expect("a tool");
    let memory = server.connect();
    let send = |amount: u32, more: String| {
        memory.send(format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"pay","arguments":{{"amount":{amount}}},"pad":1e999{more},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{"form":{{}}}}}}}}}}}}"#
    ))
    };
    send(1, String::new());
    let round: Value =
        serde_json::from_slice(&memory.receive().await.expect("an answer")).expect("JSON");
    assert_eq!(round["result"]["resultType"], "input_required", "{round}");
    send(
        1_000_000,
        format!(
            r#","requestState":{},"inputResponses":{{"ask-1":{{"action":"accept","content":{{"name":"x"}}}}}}"#,
            round["result"]["requestState"]
        ),
    );
    let answer: Value =
        serde_json::from_slice(&memory.receive().await.expect("an answer")).expect("JSON");
    assert_eq!(answer["error"]["code"], -32_602, "{answer}");
}

/// As t09, for numbers that no f64 has: the digest of all such requests is that of `null`.
#[runtimes::test]
async fn numbers_out_of_range_have_cache_entries_of_their_own() {
    let server = Server::new("s", "1")
        .resource(Resource::new("note://a", "a"), |_: Context| async { "a" })
        .resource(Resource::new("note://b", "b"), |_: Context| async { "b" });
    add(
        &server,
        MiddlewareScope::all(),
        ResponseCache::new(Duration::from_secs(60)),
    );
    let memory = server.connect();
    for name in ["a", "b"] {
        memory.send(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"note://{name}","pad":1e999,"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        ));
        let answer = memory.receive().await.expect("an answer");
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(answer["result"]["contents"][0]["text"], name, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_huge_burst_does_not_overflow() {
    for (requests, period, burst) in [
        (u32::MAX, Duration::from_nanos(1), u32::MAX),
        (1, Duration::from_secs(1 << 40), u32::MAX),
        (0, Duration::ZERO, 0),
    ] {
        let server = with_admin();
        add(
            &server,
            MiddlewareScope::all(),
            RateLimit::new(requests, period).with_burst(burst),
        );
        let mut client = Client::legacy(&server, "2025-11-25").await;
        call(&mut client, "admin").await.expect("a result");
    }
}

fn endless() -> Server {
    Server::new("endless", "1").tool("wait", "Waits", |_: Nothing, _: Context| async {
        std::future::pending::<&'static str>().await
    })
}

/// Waits until what follows a response has happened, and a little longer for what must not happen.
async fn settle(mut has_happened: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if has_happened() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// A middleware that runs the rest in a task of its own (to survive panics, to share results, to refresh a cache).
#[tokio::test(flavor = "multi_thread")]
async fn next_in_a_task_ends_after_a_cancellation() {
    let server = endless();
    let ended = Arc::new(AtomicU32::new(0));
    let counted = ended.clone();
    add(
        &server,
        MiddlewareScope::all(),
        move |r: MiddlewareRequest, n: Next| {
            let counted = counted.clone();
            async move {
                let task = tokio::spawn(async move {
                    let outcome = n.run(r).await;
                    counted.fetch_add(1, Ordering::SeqCst);
                    outcome
                });
                task.await
                    .unwrap_or_else(|_| Err(RpcError::internal_error("panicked")))
            }
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for _ in 0..20 {
        let id = client.begin("tools/call", json!({"name": "wait"}));
        ask(&mut client, "ping", json!({})).await.expect("a pong");
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    }
    ask(&mut client, "ping", json!({})).await.expect("a pong");
    settle(|| ended.load(Ordering::SeqCst) == 20 && server.stats().requests_in_flight == 0).await;
    assert_eq!(
        (
            ended.load(Ordering::SeqCst),
            server.stats().requests_in_flight
        ),
        (20, 0)
    );
}

/// Stale-while-revalidate: the client is answered at once, and the rest runs in the background.
#[tokio::test(flavor = "multi_thread")]
async fn next_after_the_end_of_the_request_is_an_error() {
    let server = with_admin();
    let ended = Arc::new(AtomicU32::new(0));
    let counted = ended.clone();
    add(
        &server,
        MiddlewareScope::all(),
        move |r: MiddlewareRequest, n: Next| {
            let counted = counted.clone();
            async move {
                let stale = r.tool_error("stale");
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    let _ = n.run(r).await;
                    counted.fetch_add(1, Ordering::SeqCst);
                });
                Ok(stale)
            }
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for _ in 0..20 {
        call(&mut client, "admin").await.expect("a result");
    }
    settle(|| ended.load(Ordering::SeqCst) == 20 && server.stats().requests_in_flight == 0).await;
    assert_eq!(
        (
            ended.load(Ordering::SeqCst),
            server.stats().requests_in_flight
        ),
        (20, 0)
    );
}

#[runtimes::test]
async fn a_null_result_type_is_completed() {
    let server = with_admin();
    add(
        &server,
        MiddlewareScope::all(),
        |_: MiddlewareRequest, _: Next| async {
            Ok(Raw::parse(r#"{"content": [], "resultType": null}"#).expect("JSON"))
        },
    );
    let memory = server.connect();
    memory.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"admin","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#);
    let answer = memory.receive().await.expect("an answer");
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
}

#[runtimes::test]
async fn white_space_in_results_does_not_matter() {
    for odd in [
        "{}",
        "{ }",
        " { \n } \n",
        "{\n\"content\":[]\n}\n",
        "{\r\n\t}",
    ] {
        let server = with_admin();
        add(
            &server,
            MiddlewareScope::all(),
            move |_: MiddlewareRequest, _: Next| async move { Ok(Raw::parse(odd).expect("JSON")) },
        );
        let memory = server.connect();
        memory.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#);
        let answer = memory.receive().await.expect("an answer");
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(answer["result"]["resultType"], "complete");
    }
}

#[runtimes::test]
async fn indented_results_stay_on_one_line() {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let server = with_admin();
    add(
        &server,
        MiddlewareScope::all(),
        |_: MiddlewareRequest, _: Next| async {
            Ok(Raw::parse("{\n  \"content\": []\r\n}").expect("JSON"))
        },
    );
    let (client, ours) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    tokio::spawn(async move {
        server
            .serve(mcpline::transport::lines(reader, writer))
            .await
    });
    let (reader, mut writer) = tokio::io::split(client);
    let mut lines = BufReader::new(reader).lines();
    writer.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"admin\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n").await.expect("written");
    let line = lines.next_line().await.expect("read").expect("a line");
    let _: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
}

#[runtimes::test]
async fn custom_requests_are_for_no_feature() {
    let own = Arc::default();
    let make = || {
        Server::new("s", "1").on_request("notes/count", |_: Nothing, _: Context| async {
            Err::<Value, _>(HandlerError::Rpc(RpcError::new(
                ErrorCode(-31_001),
                "uncounted",
            )))
        })
    };
    let (inner, outer) = (make(), Server::new("outer", "1"));
    outer
        .mount(&inner, MountOptions::default())
        .expect("mounts");
    let scope = || MiddlewareScope::all().with_features(FeatureSelection::all());
    add(&inner, scope(), count(&own));
    add(&outer, scope(), count(&own));
    let mut client = Client::legacy(&inner, "2025-11-25").await;
    let _ = ask(&mut client, "notes/count", json!({})).await;
    assert_eq!(own.load(Ordering::SeqCst), 0, "not mounted");
    let mut client = Client::legacy(&outer, "2025-11-25").await;
    let _ = ask(&mut client, "notes/count", json!({})).await;
    assert_eq!(own.load(Ordering::SeqCst), 0, "mounted");
}

/// Returns questions in place of a result.
struct AsksByState(String);
impl Handler for AsksByState {
    fn call(&self, call: Call) {
        call.reply(Ok(mcpline::Reply::InputRequired(InputRequired {
            requests: Vec::new(),
            state: Some(self.0.clone()),
        })));
    }
}

#[runtimes::test]
async fn a_request_for_input_is_no_result_to_limit() {
    let server = Server::new("s", "1");
    server
        .add_tool(
            Tool::new("a", json!({"type": "object"})),
            ToolOptions::default(),
            Arc::new(AsksByState("x".repeat(600))),
        )
        .expect("a tool");
    add(&server, MiddlewareScope::all(), ResponseSizeLimit::new(512));
    let mut client = Client::modern(&server);
    let result = client.call_modern("a", json!({})).await.expect("a result");
    assert_eq!(result["resultType"], "input_required", "{result}");
}

#[runtimes::test]
async fn a_foreign_middleware_that_returns_questions_is_an_error() {
    let server = with_admin();
    let middleware =
        Feature::read(CallKind::Middleware, b"{}", Default::default()).expect("a middleware");
    middleware
        .add(&server, Arc::new(AsksByState("x".into())))
        .expect("added");
    let memory = server.connect();
    memory.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"admin","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#);
    let answer = memory.receive().await.expect("an answer");
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    assert!(
        answer.get("error").is_some() || answer["result"].get("content").is_some(),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_middleware_uses_its_own_server() {
    let server = with_admin();
    let own = Arc::new(Mutex::new(None::<Server>));
    let held = own.clone();
    add(
        &server,
        MiddlewareScope::all().with_methods(["tools/list"]),
        move |r: MiddlewareRequest, n: Next| {
            let server = held.lock().expect("ok").clone().expect("set");
            async move {
                let extra = with_admin();
                let _ = server.mount(&extra, MountOptions::default().with_prefix("x"));
                add(
                    &server,
                    MiddlewareScope::all().with_methods(["prompts/list"]),
                    |r: MiddlewareRequest, n: Next| async move { n.run(r).await },
                );
                server.disable(named("x_admin"));
                let memory = server.connect();
                memory.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"admin","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#);
                memory.receive().await.expect("an answer");
                server.unmount(&extra);
                let outcome = n.run(r).await;
                server.stats();
                outcome
            }
        },
    );
    *own.lock().expect("ok") = Some(server.clone());
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let listed = tokio::time::timeout(
        Duration::from_secs(5),
        ask(&mut client, "tools/list", json!({})),
    )
    .await;
    listed.expect("no deadlock").expect("a list");
    own.lock().expect("ok").take();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_server_frees_its_middleware() {
    let token = Arc::new(());
    let weak = Arc::downgrade(&token);
    {
        let (inner, outer) = (endless(), Server::new("outer", "1"));
        let held = token.clone();
        add(
            &inner,
            MiddlewareScope::all(),
            move |r: MiddlewareRequest, n: Next| {
                let held = held.clone();
                async move {
                    let outcome = n.run(r).await;
                    drop(held);
                    outcome
                }
            },
        );
        outer
            .mount(&inner, MountOptions::default())
            .expect("mounts");
        let mut client = Client::legacy(&outer, "2025-11-25").await;
        for _ in 0..5 {
            client.begin("tools/call", json!({"name": "wait"}));
        }
        ask(&mut client, "ping", json!({})).await.expect("a pong");
        drop(client);
    }
    drop(token);
    settle(|| weak.upgrade().is_none()).await;
    assert!(weak.upgrade().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_at_once_are_one_response() {
    let server = with_admin();
    add(
        &server,
        MiddlewareScope::all(),
        |r: MiddlewareRequest, n: Next| async move {
            let (a, b) = tokio::join!(n.run(r.clone()), n.run(r));
            a.and(b)
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    call(&mut client, "admin").await.expect("a result");
    ask(&mut client, "ping", json!({})).await.expect("a pong");
    assert!(client.try_next().is_none());
    assert_eq!(server.stats().requests_in_flight, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_at_once_are_both_cancelled() {
    let cancelled = Arc::new(AtomicU32::new(0));
    let flag = cancelled.clone();
    let server =
        Server::new("endless", "1").tool("wait", "Waits", move |_: Nothing, ctx: Context| {
            let flag = flag.clone();
            ctx.on_cancel(move || {
                flag.fetch_add(1, Ordering::SeqCst);
            });
            async { std::future::pending::<&'static str>().await }
        });
    add(
        &server,
        MiddlewareScope::all(),
        |r: MiddlewareRequest, n: Next| async move {
            let (a, b) = tokio::join!(n.run(r.clone()), n.run(r));
            a.and(b)
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tools/call", json!({"name": "wait"}));
    ask(&mut client, "ping", json!({})).await.expect("a pong");
    client.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
    );
    ask(&mut client, "ping", json!({})).await.expect("a pong");
    settle(|| cancelled.load(Ordering::SeqCst) == 2 && server.stats().requests_in_flight == 0)
        .await;
    assert_eq!(
        (
            cancelled.load(Ordering::SeqCst),
            server.stats().requests_in_flight
        ),
        (2, 0)
    );
}

fn asking() -> Server {
    let mut settings = mcpline::Settings::default();
    settings.state_keys =
        Some(mcpline::protocol::mrtr::KeyRing::new([[7_u8; 32]]).expect("long enough"));
    let server = Server::builder("asking", "1")
        .settings(settings)
        .build()
        .expect("builds");
    let schema = json!({"type": "object"});
    server
        .add_tool_fn(Tool::new("ask", schema), ToolOptions::default(), |a: Value, ctx: Context| async move {
            let params = json!({"message": "Name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}});
            let answer = ctx.request_input(InputRequest::new(InputRequestMethod::Elicit, Raw::from_serialize(&params).ok())).await?;
            Ok::<_, HandlerError>(format!("{a} {}", answer.as_str()))
        })
        .expect("a tool");
    add(
        &server,
        MiddlewareScope::all(),
        |mut r: MiddlewareRequest, n: Next| async move {
            if r.method() == "tools/call" {
                r.set_arguments(Raw::parse(r#"{"x":"changed"}"#).expect("JSON"))
                    .expect("ok");
            }
            n.run(r).await
        },
    );
    server
}

#[runtimes::test]
async fn changed_parameters_stay_changed_in_a_replay_elsewhere() {
    for other in [true, false] {
        let (first, second) = (asking(), asking());
        let mut client = Client::modern(&first);
        let round = client
            .call_modern("ask", json!({"arguments": {"x": "original"}}))
            .await
            .expect("a result");
        assert_eq!(round["resultType"], "input_required");
        let key = round["inputRequests"]
            .as_object()
            .expect("o")
            .keys()
            .next()
            .expect("k")
            .clone();
        let retry = json!({"arguments": {"x": "original"}, "requestState": round["requestState"], "inputResponses": {key: {"action": "accept", "content": {"name": "Ann"}}}});
        let mut client = if other {
            Client::modern(&second)
        } else {
            client
        };
        let result = client.call_modern("ask", retry).await.expect("a result");
        assert!(
            text(&result).contains("changed") && text(&result).contains("Ann"),
            "{result}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_times_out_under_middleware() {
    let server = Server::new("s", "1");
    let options = ToolOptions::default().with_timeout(Duration::from_secs(2));
    server
        .add_tool_fn(
            Tool::new("wait", json!({"type": "object"})),
            options,
            |_: Value, _: Context| async {
                std::future::pending::<Result<&'static str, HandlerError>>().await
            },
        )
        .expect("a tool");
    let events = Arc::new(Mutex::new(Vec::new()));
    let pushed = events.clone();
    server.on_request_end(move |r| {
        if r.method == "tools/call" {
            pushed.lock().expect("ok").push(r.outcome.name())
        }
    });
    add(
        &server,
        MiddlewareScope::all(),
        |r: MiddlewareRequest, n: Next| async move {
            let first = n.run(r.clone()).await;
            assert!(first.is_ok());
            n.run(r).await
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let result = call(&mut client, "wait").await.expect("a result");
    assert_eq!(result["isError"], true);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(*events.lock().expect("ok"), ["tool_error"]);
    assert_eq!(server.stats().requests_in_flight, 0);
}

struct PanicsInHandle(bool);
struct PanicsOnDrop;
impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("in drop");
        }
    }
}
impl Middleware for PanicsInHandle {
    fn handle(&self, r: MiddlewareRequest, n: Next) -> MiddlewareFuture {
        if r.name() != Some("admin") {
            return Box::pin(async move { n.run(r).await });
        }
        if self.0 {
            panic!("in handle");
        }
        let guard = PanicsOnDrop;
        Box::pin(async move {
            let outcome = n.run(r).await;
            drop(guard);
            outcome
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn panics_end_only_their_request() {
    for in_handle in [true, false] {
        let server = with_admin();
        add(&server, MiddlewareScope::all(), PanicsInHandle(in_handle));
        let mut client = Client::legacy(&server, "2025-11-25").await;
        assert_eq!(code(&call(&mut client, "admin").await), Some(-32_603));
        ask(&mut client, "tools/list", json!({}))
            .await
            .expect("a list");
        assert_eq!(server.stats().requests_in_flight, 0);
    }
}

/// A future that panics when it is dropped without having ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_on_cancellation_ends_only_its_request() {
    let server = endless();
    add(
        &server,
        MiddlewareScope::all(),
        |r: MiddlewareRequest, n: Next| async move {
            if r.name().is_none() {
                return n.run(r).await;
            }
            let _guard = PanicsOnDrop;
            n.run(r).await
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tools/call", json!({"name": "wait"}));
    ask(&mut client, "ping", json!({})).await.expect("a pong");
    client.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
    );
    ask(&mut client, "tools/list", json!({}))
        .await
        .expect("a list");
    settle(|| server.stats().requests_in_flight == 0).await;
    assert_eq!(server.stats().requests_in_flight, 0);
}

#[runtimes::test]
async fn next_of_a_foreign_middleware_after_its_end_is_an_error() {
    struct Keeps(Arc<Mutex<Vec<mcpline::Context>>>);
    impl Handler for Keeps {
        fn call(&self, call: Call) {
            self.0.lock().expect("ok").push(call.context());
            call.reply(Ok(mcpline::Reply::Result(
                Raw::parse(r#"{"content":[]}"#).expect("JSON"),
            )));
        }
    }
    let server = with_admin();
    let kept: Arc<Mutex<Vec<mcpline::Context>>> = Arc::default();
    let middleware = Feature::read(
        CallKind::Middleware,
        br#"{"methods":["tools/call"]}"#,
        Default::default(),
    )
    .expect("a middleware");
    middleware
        .add(&server, Arc::new(Keeps(kept.clone())))
        .expect("added");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    call(&mut client, "admin").await.expect("a result");
    let found = Arc::new(Mutex::new(None));
    for context in kept.lock().expect("ok").drain(..) {
        let found = found.clone();
        foreign::run_next(&context, None, move |o| {
            *found.lock().expect("ok") = Some(o.is_err())
        })
        .run();
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(*found.lock().expect("ok"), Some(true));
}

/// The URI is compared with the templates before the outermost middleware sees the request.
#[runtimes::test]
async fn slow_uris_meet_the_rate_limit_first() {
    let (seen, never) = (Arc::default(), Arc::default());
    let server = Server::new("s", "1").resource_template(
        ResourceTemplate::new("log://{/all*}{/more*}{/rest*}!", "log"),
        |v: Value, _: Context| async move { v.to_string() },
    );
    add(&server, MiddlewareScope::all(), count(&seen));
    add(
        &server,
        MiddlewareScope::all(),
        RateLimit::new(1, Duration::from_secs(3600)),
    );
    add(&server, tagged("none"), count(&never));
    let mut client = Client::modern(&server);
    let slow = format!("log://{}", "/a".repeat(2_000));
    let mut codes = Vec::new();
    for _ in 0..5 {
        let id = client.begin_modern("resources/read", json!({"uri": slow}));
        codes.push(code(&client.response(&id).await));
    }
    assert_eq!(seen.load(Ordering::SeqCst), 5, "{codes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_logged_with_the_outcome_that_clients_get() {
    let server = with_admin();
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let pushed = outcomes.clone();
    server.on_request_end(move |r| {
        if r.method == "tools/call" {
            pushed.lock().expect("ok").push(r.outcome.name())
        }
    });
    add(
        &server,
        MiddlewareScope::all().with_methods(["tools/call"]),
        |r: MiddlewareRequest, n: Next| async move {
            let how = r
                .arguments()
                .and_then(|a| a.member("how"))
                .and_then(|h| h.string_value().map(|h| h.into_owned()));
            let error = r.tool_error("no");
            let outcome = n.run(r).await;
            match how.as_deref() {
                Some("tool_error") => Ok(error),
                Some("error") => Err(RpcError::new(ErrorCode(-31_002), "no")),
                _ => outcome,
            }
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for (how, expected) in [
        ("ok", "ok"),
        ("tool_error", "tool_error"),
        ("error", "error"),
    ] {
        let _ = ask(
            &mut client,
            "tools/call",
            json!({"name": "admin", "arguments": {"how": how}}),
        )
        .await;
        settle(|| !outcomes.lock().expect("ok").is_empty()).await;
        assert_eq!(
            outcomes.lock().expect("ok").drain(..).collect::<Vec<_>>(),
            [expected],
            "{how}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_cancelled_before_and_after_next() {
    for before in [true, false] {
        let server = with_admin();
        let (begun, dropped) = (Arc::new(AtomicU32::new(0)), Arc::new(()));
        let (count, held) = (begun.clone(), dropped.clone());
        add(
            &server,
            MiddlewareScope::all().with_methods(["tools/call"]),
            move |r: MiddlewareRequest, n: Next| {
                let (count, held) = (count.clone(), held.clone());
                async move {
                    let _held = held;
                    if before {
                        count.fetch_add(1, Ordering::SeqCst);
                        std::future::pending::<()>().await;
                    }
                    let outcome = n.run(r).await;
                    count.fetch_add(1, Ordering::SeqCst);
                    std::future::pending::<()>().await;
                    outcome
                }
            },
        );
        let mut client = Client::legacy(&server, "2025-11-25").await;
        let id = client.begin("tools/call", json!({"name": "admin", "arguments": {}}));
        while begun.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
        ask(&mut client, "ping", json!({})).await.expect("a pong");
        settle(|| Arc::strong_count(&dropped) == 2 && server.stats().requests_in_flight == 0).await;
        assert_eq!(Arc::strong_count(&dropped), 2, "before {before}");
        assert_eq!(server.stats().requests_in_flight, 0);
        assert!(client.try_next().is_none());
    }
}

#[runtimes::test]
async fn waiting_chains_are_limited() {
    let mut settings = mcpline::Settings::default();
    settings.max_calls = 4;
    settings.client_share = 1.0;
    let server = Server::builder("s", "1")
        .settings(settings)
        .build()
        .expect("builds")
        .tool("a", "A", |_: Nothing, _: Context| async { "done" });
    add(
        &server,
        MiddlewareScope::all(),
        |_: MiddlewareRequest, _: Next| async { std::future::pending::<MiddlewareOutcome>().await },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for _ in 0..4 {
        client.begin("tools/list", json!({}));
    }
    let outcome = ask(&mut client, "tools/list", json!({})).await;
    assert!(outcome.is_err(), "{outcome:?}");
}

#[runtimes::test]
async fn a_panic_leaves_the_place_of_a_concurrency_limit() {
    let server = with_admin();
    add(
        &server,
        MiddlewareScope::all().with_methods(["tools/call"]),
        ConcurrencyLimit::new(1),
    );
    add(
        &server,
        MiddlewareScope::all().with_methods(["tools/call"]),
        |r: MiddlewareRequest, n: Next| async move {
            tokio::task::yield_now().await;
            assert!(
                r.arguments().is_none_or(|a| a.member("panic").is_none()),
                "a bug"
            );
            n.run(r).await
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for _ in 0..3 {
        let outcome = ask(
            &mut client,
            "tools/call",
            json!({"name": "admin", "arguments": {"panic": 1}}),
        )
        .await;
        assert_eq!(code(&outcome), Some(-32_603));
    }
    call(&mut client, "admin").await.expect("a result");
}

/// A guard of the parent by name or tag, for tools of a mount that were renamed or mounted twice.
#[runtimes::test]
async fn guards_of_the_parent_hold_for_renamed_and_double_mounts() {
    let seen = Arc::default();
    let (inner, outer) = (with_admin(), Server::new("outer", "1"));
    add(&outer, tagged("admin"), guard(&seen));
    let renamed = ToolTransform::default().with_name("harmless");
    outer
        .mount(
            &inner,
            MountOptions::default()
                .with_prefix("a")
                .with_tool("admin", renamed),
        )
        .expect("mounts");
    outer
        .mount(&inner, MountOptions::default().with_prefix("b"))
        .expect("mounts");
    let mut client = Client::legacy(&outer, "2025-11-25").await;
    for name in ["a_harmless", "b_admin"] {
        assert_eq!(
            code(&call(&mut client, name).await),
            Some(-31_777),
            "{name}"
        );
    }
    // By name at the mounted server.
    let (inner, outer) = (with_admin(), Server::new("outer", "1"));
    add(
        &inner,
        MiddlewareScope::all().with_features(named("admin")),
        guard(&seen),
    );
    let renamed = ToolTransform::default().with_name("harmless");
    outer
        .mount(
            &inner,
            MountOptions::default()
                .with_prefix("a")
                .with_tool("admin", renamed),
        )
        .expect("mounts");
    outer
        .mount(&inner, MountOptions::default().with_prefix("b"))
        .expect("mounts");
    let mut client = Client::legacy(&outer, "2025-11-25").await;
    for name in ["a_harmless", "b_admin"] {
        assert_eq!(
            code(&call(&mut client, name).await),
            Some(-31_777),
            "{name}"
        );
    }
}

/// A renamed snapshot: the tool that has the old name now is another one.
#[runtimes::test]
async fn a_snapshot_of_a_tool_whose_name_another_one_has_keeps_its_guard() {
    let seen = Arc::default();
    let (inner, outer) = (with_admin(), Server::new("outer", "1"));
    add(&inner, tagged("admin"), guard(&seen));
    outer
        .mount(&inner, MountOptions::default().with_snapshot(true))
        .expect("mounts");
    inner
        .transform_tool("admin", &ToolTransform::default().with_name("admin2"))
        .expect("renamed");
    let mut client = Client::legacy(&outer, "2025-11-25").await;
    let outcome = call(&mut client, "admin").await;
    assert_eq!(code(&outcome), Some(-31_777), "{outcome:?}");
}
