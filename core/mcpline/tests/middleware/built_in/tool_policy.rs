//! Tool policies of servers: what they list, call, and ask the user.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcpline::middleware::{MiddlewareRequest, Next, ResponseCache, ToolPolicy};
use mcpline::protocol::Raw;
use mcpline::protocol::mrtr::KeyRing;
use mcpline::protocol::vocabulary::{ElicitParams, FormSchema, Tool};
use mcpline::server::{
    Caller, FeatureSelection, KeyedInputRequest, MiddlewareScope, MountOptions, ToolOptions,
    ToolTransform,
};
use mcpline::{Context, HandlerError, InputRequestMethod, InputRequired, Server, Settings};
use serde_json::{Value, json};

use super::{ask, call, counting, with};
use crate::support::Client;

const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

async fn listed(client: &mut Client) -> Vec<String> {
    let mut names = Vec::new();
    let mut params = json!({});
    loop {
        let page = ask(client, "tools/list", params).await.expect("a page");
        for tool in page["tools"].as_array().expect("an array") {
            names.push(tool["name"].as_str().expect("a name").to_owned());
        }
        match &page["nextCursor"] {
            Value::Null => return names,
            cursor => params = json!({ "cursor": cursor }),
        }
    }
}

async fn is_unknown(client: &mut Client, name: &str) {
    let error = call(client, name).await.expect_err("refused");
    let unknown = json!({"code": -32_602, "message": format!("Unknown tool: {name}")});
    assert_eq!(error, unknown);
}

/// Calls a tool, and answers the elicitation. Returns its message and the result.
async fn approve(client: &mut Client, name: &str, answer: Value) -> (String, Value) {
    let id = client.begin("tools/call", json!({"name": name, "arguments": {"x": 1}}));
    let asked = client.next().await;
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
    let message = asked["params"]["message"].as_str().expect("a text");
    let result = client.response(&id).await.expect("a result");
    (message.to_owned(), result)
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}

#[runtimes::test]
async fn denied_tools_are_neither_listed_nor_called() {
    for policy in [
        ToolPolicy::new().with_allowed(["a*"]),
        ToolPolicy::new().with_denied(["b"]),
        ToolPolicy::new().with_allowed(["*"]).with_denied(["b*"]),
    ] {
        let runs = Arc::default();
        let server = with(counting(&runs), policy);
        for revision in REVISIONS {
            let mut client = Client::legacy(&server, revision).await;
            assert_eq!(listed(&mut client).await, ["a"]);
            call(&mut client, "a").await.expect("a result");
            is_unknown(&mut client, "b").await;
        }
        let mut client = Client::modern(&server);
        let refused = client.call_modern("b", json!({})).await;
        assert_eq!(refused.expect_err("refused")["message"], "Unknown tool: b");
        assert_eq!(runs.load(Ordering::SeqCst), 4);
    }
}

#[runtimes::test]
async fn pages_are_full_without_denied_tools() {
    let mut settings = Settings::default();
    settings.page_size = 2;
    let server = Server::builder("pages", "1").settings(settings).build();
    let server = server.expect("builds");
    for index in 0..10 {
        let tool = Tool::new(
            format!("{}{index}", "ab".as_bytes()[index % 2] as char),
            json!({"type": "object"}),
        );
        server
            .add_tool_fn(tool, ToolOptions::default(), |_: Value, _: Context| async {
                Ok::<_, HandlerError>("done")
            })
            .expect("a tool");
    }
    let server = with(server, ToolPolicy::new().with_denied(["b*"]));
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let page = ask(&mut client, "tools/list", json!({}))
        .await
        .expect("a page");
    assert_eq!(page["tools"].as_array().map(Vec::len), Some(2), "{page}");
    assert_eq!(listed(&mut client).await, ["a0", "a2", "a4", "a6", "a8"]);
}

#[runtimes::test]
async fn a_policy_holds_through_mounts_and_for_new_names() {
    let inner = with(
        counting(&Arc::default()),
        ToolPolicy::new().with_denied(["b"]),
    );
    let outer = Server::new("outer", "1");
    let renamed = MountOptions::default()
        .with_prefix("x")
        .with_tool("b", ToolTransform::default().with_name("harmless"));
    outer.mount(&inner, renamed).expect("mounts");
    let outermost = with(
        Server::new("outermost", "1"),
        ToolPolicy::new().with_denied(["y_x_c"]),
    );
    let mount = MountOptions::default().with_prefix("y");
    outermost.mount(&outer, mount).expect("mounts");
    let mut client = Client::legacy(&outermost, "2025-11-25").await;
    assert_eq!(listed(&mut client).await, ["y_x_a"]);
    call(&mut client, "y_x_a").await.expect("a result");
    is_unknown(&mut client, "y_x_harmless").await;
    // At its own server a tool has the name that it was given there.
    inner
        .transform_tool("a", &ToolTransform::default().with_name("c"))
        .expect("renamed");
    assert_eq!(listed(&mut client).await, Vec::<String>::new());
    is_unknown(&mut client, "y_x_c").await;
}

#[runtimes::test]
async fn a_policy_decides_on_the_tool_that_other_middleware_names() {
    let runs = Arc::default();
    for policy_first in [true, false] {
        let alias = |mut request: MiddlewareRequest, next: Next| async move {
            if request.name() == Some("alias") {
                let params = Raw::parse(r#"{"name":"b","arguments":{}}"#).expect("JSON");
                request.set_params(params).expect("an object");
            }
            next.run(request).await
        };
        let policy = ToolPolicy::new().with_denied(["b"]);
        let server = match policy_first {
            true => with(with(counting(&runs), policy), alias),
            false => with(with(counting(&runs), alias), policy),
        };
        let mut client = Client::legacy(&server, "2025-11-25").await;
        let error = call(&mut client, "alias").await.expect_err("refused");
        assert_eq!(error["message"], "Unknown tool: b");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[runtimes::test]
async fn callers_with_all_exempt_scopes_have_every_tool() {
    let policy = ToolPolicy::new().with_allowed(["a"]);
    let policy = policy.with_exempt_scopes(["admin", "ops"]).expect("scopes");
    let server = with(counting(&Arc::default()), policy);
    let caller = |scopes: &[&str]| Caller::new().with_subject("ann").with_scopes(scopes);
    for (scopes, expected) in [
        (&[][..], &["a"][..]),
        (&["admin"], &["a"]),
        (&["ops", "admin"], &["a", "b"]),
    ] {
        let client = Client::over(server.connect_as(caller(scopes)));
        let mut client = client.shake_hands("2025-11-25").await;
        assert_eq!(listed(&mut client).await, expected, "{scopes:?}");
        assert_eq!(call(&mut client, "b").await.is_ok(), expected.len() == 2);
    }
    // The user who runs the server.
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(listed(&mut client).await, ["a", "b"]);
    assert!(ToolPolicy::new().with_exempt_scopes([""; 0]).is_err());
    assert!(ToolPolicy::new().with_exempt_scopes(["a b"]).is_err());
}

/// Returns the cache scope of the list of tools.
async fn scope_of_list(server: &Server) -> Value {
    let mut client = Client::modern(server);
    let id = client.begin_modern("tools/list", json!({}));
    client.response(&id).await.expect("a list")["cacheScope"].clone()
}

#[runtimes::test]
async fn a_list_is_private_if_the_caller_decides_what_it_has() {
    let server = || {
        let mut settings = Settings::default();
        settings.list_cache.cache_scope = Some(mcpline::protocol::vocabulary::CacheScope::Public);
        let server = Server::builder("scoped", "1").settings(settings).build();
        let server = server.expect("builds");
        server
            .mount(&counting(&Arc::default()), MountOptions::default())
            .expect("mounts");
        server
    };
    let policy = ToolPolicy::new().with_denied(["b"]);
    assert_eq!(
        scope_of_list(&with(server(), policy.clone())).await,
        "public"
    );
    let policy = policy.with_exempt_scopes(["admin"]).expect("a scope");
    assert_eq!(scope_of_list(&with(server(), policy)).await, "private");
}

#[runtimes::test]
async fn a_policy_has_the_calls_of_its_scope() {
    let server = Server::new("tagged", "1");
    for (name, tag) in [("a", "safe"), ("b", "destructive")] {
        let tool = Tool::new(name, json!({"type": "object"}));
        let options = ToolOptions::default().with_tags([tag]);
        server
            .add_tool_fn(tool, options, |_: Value, _: Context| async {
                Ok::<_, HandlerError>("done")
            })
            .expect("a tool");
    }
    let mut before = Client::legacy(&server, "2025-11-25").await;
    let tagged = FeatureSelection::all().with_tags(["destructive"]);
    let scope = MiddlewareScope::all().with_features(tagged);
    let policy = ToolPolicy::new().with_denied(["*"]);
    server
        .add_middleware(scope, Arc::new(policy.clone()))
        .expect("a scope");
    // Clients learn of a new policy.
    assert_eq!(
        before.next().await["method"],
        "notifications/tools/list_changed"
    );
    assert_eq!(listed(&mut before).await, ["a"]);
    is_unknown(&mut before, "b").await;
    let lists = MiddlewareScope::all().with_methods(["prompts/list"]);
    server
        .add_middleware(lists, Arc::new(policy))
        .expect("a scope");
    call(&mut before, "a").await.expect("a result");
}

#[runtimes::test]
async fn the_user_is_asked_before_each_call() {
    let runs = Arc::default();
    let server = with(counting(&runs), ToolPolicy::new().with_approval(["b"]));
    let outer = Server::new("outer", "1");
    outer
        .mount(&server, MountOptions::default())
        .expect("mounts");
    for (server, revision) in [(&server, "2025-06-18"), (&outer, "2025-11-25")] {
        let mut client = Client::legacy(server, revision).await;
        assert_eq!(listed(&mut client).await, ["a", "b"]);
        call(&mut client, "a").await.expect("a result");
        let before = runs.load(Ordering::SeqCst);
        for action in ["decline", "cancel"] {
            let (_, refused) = approve(&mut client, "b", json!({"action": action})).await;
            assert_eq!(refused["isError"], true);
            assert_eq!(
                text(&refused),
                "The user did not allow the call of the tool b."
            );
        }
        assert_eq!(runs.load(Ordering::SeqCst), before);
        for run in 1..=2 {
            let accept = json!({"action": "accept", "content": {}});
            let (message, result) = approve(&mut client, "b", accept).await;
            assert_eq!(
                message,
                r#"Allow the call of the tool b with these arguments? {"x":1}"#
            );
            assert_eq!(text(&result), format!("run {}", before + run));
        }
    }
}

#[runtimes::test]
async fn long_arguments_and_control_characters_are_shown_safely() {
    let server = with(
        counting(&Arc::default()),
        ToolPolicy::new().with_approval(["*"]),
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let long = format!("\u{202e}{}", "ä".repeat(10_000));
    let arguments = json!({"x": long, "y": "kept"});
    let id = client.begin("tools/call", json!({"name": "a", "arguments": arguments}));
    let asked = client.next().await;
    let message = asked["params"]["message"].as_str().expect("a text");
    assert!(message.chars().count() < 4_200 && !message.contains('\u{202e}'));
    assert!(
        message.contains(" more bytes), \"y\": \"kept\""),
        "{message}"
    );
    client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}));
    client.response(&id).await.expect("a result");

    // A terminal would take what follows the first one as its title.
    let hidden = json!({"note": "\u{9d}\u{9b}1", "to": "evil"});
    let id = client.begin("tools/call", json!({"name": "a", "arguments": hidden}));
    let asked = client.next().await;
    assert_eq!(
        asked["params"]["message"],
        r#"Allow the call of the tool a with these arguments? {"note":"\u009d\u009b1","to":"evil"}"#
    );
    client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}));
    client.response(&id).await.expect("a result");
}

#[runtimes::test]
async fn without_elicitation_a_call_that_needs_approval_is_refused() {
    let runs: Arc<AtomicU32> = Arc::default();
    let server = with(counting(&runs), ToolPolicy::new().with_approval(["a"]));
    for revision in REVISIONS {
        let mut client = Client::modern(&server);
        client.capabilities = json!({});
        let mut client = client.shake_hands(revision).await;
        let refused = call(&mut client, "a").await.expect("a result");
        assert!(refused.contains("only if the user allows it"), "{refused}");
        assert!(refused.contains("does not support"), "{refused}");
    }
    let mut client = Client::modern(&server);
    client.capabilities = json!({});
    let error = client
        .call_modern("a", json!({}))
        .await
        .expect_err("refused");
    assert_eq!(error["code"], -32_021, "{error}");
    // Forms alone ask the user.
    client.capabilities = json!({"elicitation": {"url": {}}});
    let error = client
        .call_modern("a", json!({}))
        .await
        .expect_err("refused");
    assert_eq!(error["code"], -32_021, "{error}");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.state_keys = Some(KeyRing::new([[7_u8; 32]]).expect("long enough"));
    settings
}

/// A server whose tool `ask` needs approval, and asks twice: during the call, and by returning an input request.
fn asking(runs: &Arc<AtomicU32>, options: ToolOptions) -> Server {
    let server = Server::builder("asking", "1").settings(settings()).build();
    let server = server.expect("builds");
    let runs = runs.clone();
    let tool = Tool::new("ask", json!({"type": "object"}));
    server
        .add_tool_fn(tool, options, move |_: Value, ctx: Context| {
            runs.fetch_add(1, Ordering::SeqCst);
            async move {
                if ctx.input_responses().is_some() {
                    return Ok("done");
                }
                let form = ElicitParams::form("Sure?", FormSchema::new());
                ctx.elicit(&form).await?;
                let params = Raw::from_serialize(&form).ok();
                Err(HandlerError::InputRequired(InputRequired {
                    requests: vec![KeyedInputRequest {
                        key: "returned".into(),
                        method: InputRequestMethod::Elicit,
                        params,
                    }],
                    state: Some("state".into()),
                }))
            }
        })
        .expect("a tool");
    with(server, ToolPolicy::new().with_approval(["ask"]))
}

/// Returns the only key of the input requests, and the parameters of a retry that accepts it.
fn accepted(round: &Value) -> (String, Value) {
    assert_eq!(round["resultType"], "input_required", "{round}");
    let requests = round["inputRequests"].as_object().expect("an object");
    let key = requests.keys().next().expect("a key");
    assert_eq!(requests.len(), 1);
    let retry = json!({"requestState": round["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {}}}});
    (key.clone(), retry)
}

#[runtimes::test]
async fn approval_is_an_input_request_on_2026_07_28() {
    // In the same process, and with a process of its own for each request.
    for elsewhere in [false, true] {
        let runs: Arc<AtomicU32> = Arc::default();
        let first = asking(&runs, ToolOptions::default());
        let mut client = Client::modern(&first);
        let mut extra = json!({});
        let mut keys = Vec::new();
        let result = loop {
            let result = client.call_modern("ask", extra).await.expect("a result");
            if result["resultType"] == "complete" {
                break result;
            }
            let (key, retry) = accepted(&result);
            if keys.is_empty() {
                assert_eq!(runs.load(Ordering::SeqCst), 0, "it is approved first");
            }
            keys.push(key);
            extra = retry;
            if elsewhere {
                let server = asking(&runs, ToolOptions::default());
                client = Client::modern(&server);
            }
        };
        assert_eq!(keys, ["tool-approval", "ask-1", "returned"]);
        assert_eq!(text(&result), "done");
    }
}

#[runtimes::test]
async fn an_approval_is_for_its_arguments_and_its_caller() {
    let runs: Arc<AtomicU32> = Arc::default();
    let server = asking(&runs, ToolOptions::default());
    let caller = |subject: &str| Caller::new().with_subject(subject);
    let mut ann = Client::over(server.connect_as(caller("ann")));
    let mut bob = Client::over(server.connect_as(caller("bob")));
    let round = ann.call_modern("ask", json!({})).await.expect("a round");
    let (_, retry) = accepted(&round);
    let error = bob
        .call_modern("ask", retry.clone())
        .await
        .expect_err("refused");
    assert_eq!(error["code"], -32_602);
    let mut other = retry.clone();
    other["arguments"] = json!({"all": true});
    let error = ann.call_modern("ask", other).await.expect_err("refused");
    assert_eq!(error["code"], -32_602);
    // Answers without the state of the server are no approval.
    let invented = json!({"inputResponses": retry["inputResponses"]});
    accepted(&ann.call_modern("ask", invented).await.expect("a round"));
    let mut declined = retry.clone();
    declined["inputResponses"]["tool-approval"] = json!({"action": "decline"});
    let refused = ann.call_modern("ask", declined).await.expect("a result");
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[runtimes::test]
async fn a_tool_that_runs_once_runs_where_its_approval_was_asked_for() {
    let runs: Arc<AtomicU32> = Arc::default();
    let mut options = ToolOptions::default();
    options.run_once = true;
    let once = || asking(&runs, options.clone());
    let server = once();
    let mut client = Client::modern(&server);
    let (_, retry) = accepted(&client.call_modern("ask", json!({})).await.expect("a round"));
    let (key, _) = accepted(
        &client
            .call_modern("ask", retry.clone())
            .await
            .expect("a round"),
    );
    assert_eq!((key.as_str(), runs.load(Ordering::SeqCst)), ("ask-1", 1));
    // Another process cannot know that it has run.
    let mut client = Client::modern(&once());
    let error = client
        .call_modern("ask", retry)
        .await
        .expect_err("it has run");
    let text = error["message"].as_str().expect("a text");
    assert!(text.contains("must not run twice"), "{text}");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[runtimes::test]
async fn a_cache_answers_no_call_that_needs_approval() {
    let cache = || ResponseCache::new(Duration::from_secs(60)).with_tools(["a", "b"]);
    let policy = ToolPolicy::new().with_approval(["b"]);
    for (server, is_mounted) in [
        (
            with(with(counting(&Arc::default()), cache()), policy.clone()),
            false,
        ),
        (
            with(with(counting(&Arc::default()), policy.clone()), cache()),
            false,
        ),
        (with(counting(&Arc::default()), policy), true),
    ] {
        let server = match is_mounted {
            true => {
                let outer = with(Server::new("outer", "1"), cache());
                outer
                    .mount(&server, MountOptions::default())
                    .expect("mounts");
                outer
            }
            false => server,
        };
        let mut client = Client::legacy(&server, "2025-11-25").await;
        for _ in 0..2 {
            assert_eq!(call(&mut client, "a").await.expect("a result"), "run 1");
        }
        for run in 2..4 {
            let accept = json!({"action": "accept", "content": {}});
            let (_, result) = approve(&mut client, "b", accept).await;
            assert_eq!(text(&result), format!("run {run}"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_a_tool_begins_after_the_approval() {
    let server = Server::new("slow", "1");
    let options = ToolOptions::default().with_timeout(Duration::from_secs(1));
    let tool = Tool::new("a", json!({"type": "object"}));
    server
        .add_tool_fn(tool, options, |_: Value, _: Context| async {
            Ok::<_, HandlerError>("done")
        })
        .expect("a tool");
    let server = with(server, ToolPolicy::new().with_approval(["a"]));
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tools/call", json!({"name": "a"}));
    let asked = client.next().await;
    assert_eq!(asked["params"]["message"], "Allow the call of the tool a?");
    tokio::time::advance(Duration::from_secs(5)).await;
    let accept = json!({"action": "accept", "content": {}});
    client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": accept}));
    let result = client.response(&id).await.expect("a result");
    assert_eq!(text(&result), "done");
}

#[runtimes::test]
async fn a_cancelled_call_is_not_run_by_a_late_approval() {
    let runs: Arc<AtomicU32> = Arc::default();
    let server = with(counting(&runs), ToolPolicy::new().with_approval(["a"]));
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tools/call", json!({"name": "a"}));
    let asked = client.next().await;
    client.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
    );
    let accept = json!({"action": "accept", "content": {}});
    client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": accept}));
    ask(&mut client, "ping", json!({}))
        .await
        .expect("an answer");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}
