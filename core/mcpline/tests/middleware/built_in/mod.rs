//! The middleware that the library provides: limits of rate, concurrency and size, the cache of responses, the audit log,
//! redaction, and tool policies.

mod audit_log;
mod no_bypass;
mod redaction;
mod tool_policy;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Client, Nothing};
use mcpline::middleware::{
    ConcurrencyLimit, LimitKey, Middleware, MiddlewareFuture, MiddlewareRequest, Next, RateLimit,
    ResponseCache, ResponseSizeLimit,
};
use mcpline::protocol::session::Change;
use mcpline::protocol::vocabulary::{CacheHints, CacheScope, Resource, Tool};
use mcpline::server::{
    Caller, FeatureSelection, MiddlewareScope, MountOptions, ResourceOptions, ToolOptions,
    resource_handler,
};
use mcpline::{Context, HandlerError, Server, Settings};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

const SECOND: Duration = Duration::from_secs(1);

fn with(server: Server, middleware: impl Middleware) -> Server {
    server.middleware(middleware)
}

/// A server with the tools `a` and `b`, which count their calls.
fn counting(runs: &Arc<AtomicU32>) -> Server {
    let server = Server::new("counting", "1");
    for name in ["a", "b"] {
        let runs = runs.clone();
        let tool = Tool::new(name, json!({"type": "object"}));
        server
            .add_tool_fn(tool, ToolOptions::default(), move |_: Value, _: Context| {
                let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
                async move { Ok::<_, HandlerError>(format!("run {run}")) }
            })
            .expect("a tool");
    }
    server
}

async fn ask(client: &mut Client, method: &str, params: Value) -> Result<Value, Value> {
    let id = client.begin(method, params);
    client.response(&id).await
}

async fn call(client: &mut Client, name: &str) -> Result<String, Value> {
    let params = json!({"name": name, "arguments": {}});
    let result = ask(client, "tools/call", params).await?;
    Ok(result["content"][0]["text"]
        .as_str()
        .expect("a text")
        .to_owned())
}

/// Asserts that a call is refused for a time.
async fn is_refused(client: &mut Client, name: &str, retry_after: u64) {
    let error = call(client, name).await.expect_err("it is refused");
    assert_eq!(error["code"], -31_000);
    assert_eq!(error["data"], json!({"retryAfter": retry_after}));
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_is_exact() {
    let runs = Arc::default();
    let limit = RateLimit::new(6, 60 * SECOND).with_burst(2);
    let server = with(counting(&runs), limit);
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for _ in 0..2 {
        call(&mut client, "a").await.expect("a result");
    }
    is_refused(&mut client, "b", 10).await;
    tokio::time::advance(9 * SECOND).await;
    is_refused(&mut client, "a", 1).await;
    tokio::time::advance(SECOND).await;
    call(&mut client, "a").await.expect("a result");
    is_refused(&mut client, "a", 10).await;
    // An hour gives no more than the burst.
    tokio::time::advance(3_600 * SECOND).await;
    for _ in 0..2 {
        call(&mut client, "a").await.expect("a result");
    }
    is_refused(&mut client, "a", 10).await;
    assert_eq!(runs.load(Ordering::SeqCst), 5);
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_counts_by_its_keys() {
    let caller = |subject: &str| Caller::new().with_subject(subject);
    for (keys, other_client, other_tool) in [
        (&[][..], false, false),
        (&[LimitKey::Client], true, false),
        (&[LimitKey::Target], false, true),
        (&[LimitKey::Client, LimitKey::Target], true, true),
        // Without a session, the client counts.
        (&[LimitKey::Session], true, false),
    ] {
        let limit = RateLimit::new(1, 60 * SECOND).per(keys.iter().copied());
        let server = with(counting(&Arc::default()), limit).clone();
        let mut ann = Client::over(server.connect_as(caller("ann")));
        let mut bob = Client::over(server.connect_as(caller("bob")));
        // The handshake and lists would use the only token.
        ann = ann.shake_hands("2025-11-25").await;
        bob = bob.shake_hands("2025-11-25").await;
        call(&mut ann, "a").await.expect("a result");
        assert_eq!(call(&mut ann, "b").await.is_ok(), other_tool, "{keys:?}");
        assert_eq!(call(&mut bob, "a").await.is_ok(), other_client, "{keys:?}");
        // The limit outlives the connection.
        drop(ann);
        let mut again = Client::over(server.connect_as(caller("ann")));
        again = again.shake_hands("2025-11-25").await;
        call(&mut again, "a").await.expect_err("it is refused");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_keeps_a_bounded_number_of_keys() {
    let limit = RateLimit::new(1, 60 * SECOND).per([LimitKey::Target]);
    let server = with(counting(&Arc::default()), limit);
    let mut client = Client::legacy(&server, "2025-11-25").await;
    // Unknown tools count, too: a client must not try names without a limit.
    for index in 0..10_000 {
        let error = call(&mut client, &format!("unknown-{index}")).await;
        assert_eq!(error.expect_err("unknown")["code"], -32_602);
    }
    // The next keys share one bucket.
    call(&mut client, "a").await.expect("a result");
    is_refused(&mut client, "b", 60).await;
    // Those that are full again make room.
    tokio::time::advance(60 * SECOND).await;
    call(&mut client, "a").await.expect("a result");
    call(&mut client, "b").await.expect("a result");
}

/// A server with the tools `a` and `b`, which wait for a permit, and the greatest number of calls that ran together.
fn gated() -> (Server, Arc<Semaphore>, Arc<AtomicU32>) {
    let gate = Arc::new(Semaphore::new(0));
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let server = Server::new("gated", "1");
    for name in ["a", "b"] {
        let (gate, running, most) = (gate.clone(), running.clone(), most.clone());
        let tool = Tool::new(name, json!({"type": "object"}));
        server
            .add_tool_fn(tool, ToolOptions::default(), move |_: Value, _: Context| {
                let (gate, running, most) = (gate.clone(), running.clone(), most.clone());
                async move {
                    let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    gate.acquire().await.expect("open").forget();
                    running.fetch_sub(1, Ordering::SeqCst);
                    Ok::<_, HandlerError>("done")
                }
            })
            .expect("a tool");
    }
    (server, gate, most)
}

#[runtimes::test]
async fn a_concurrency_limit_queues_and_refuses() {
    let (server, gate, most) = gated();
    let server = with(server, ConcurrencyLimit::new(2).with_queue(1));
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let call = |name: &str| json!({"name": name, "arguments": {}});
    let first = client.begin("tools/call", call("a"));
    let second = client.begin("tools/call", call("b"));
    let third = client.begin("tools/call", call("a"));
    let fourth = client.begin("tools/call", call("a"));
    let error = client.response(&fourth).await.expect_err("it is refused");
    assert_eq!(error["code"], -31_000);
    gate.add_permits(2);
    have_results(&client, vec![first, second]).await;
    gate.add_permits(1);
    client.response(&third).await.expect("a result");
    assert_eq!(most.load(Ordering::SeqCst), 2);
    // Nothing holds a place any more.
    gate.add_permits(2);
    let ids = vec![
        client.begin("tools/call", call("a")),
        client.begin("tools/call", call("b")),
    ];
    have_results(&client, ids).await;
}

/// Waits for the results of requests, which arrive in any order.
async fn have_results(client: &Client, mut ids: Vec<Value>) {
    while !ids.is_empty() {
        let answer = client.next().await;
        assert!(answer.get("result").is_some(), "{answer}");
        ids.retain(|id| *id != answer["id"]);
    }
}

/// Whether a call is refused because too many run.
async fn is_busy(client: &mut Client, name: &str) -> bool {
    match call(client, name).await {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error["code"], -31_000);
            true
        }
    }
}

#[runtimes::test]
async fn a_cancelled_request_leaves_its_place_and_the_queue() {
    let (server, gate, _) = gated();
    let server = with(
        server,
        ConcurrencyLimit::new(1)
            .with_queue(1)
            .per([LimitKey::Target]),
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let params = |name: &str| json!({"name": name, "arguments": {}});
    let cancel = |client: &Client, id: &Value| {
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    };
    let running = client.begin("tools/call", params("a"));
    let waiting = client.begin("tools/call", params("a"));
    // Another tool has places of its own.
    let other = client.begin("tools/call", params("b"));
    assert!(is_busy(&mut client, "a").await);
    cancel(&client, &waiting);
    cancel(&client, &running);
    cancel(&client, &other);
    // Enough for the cancelled ones, whose tasks end soon.
    gate.add_permits(3);
    while is_busy(&mut client, "a").await {
        tokio::task::yield_now().await;
    }
}

/// A server with a resource whose cache scope is this, and the tool `a`, which count their runs.
fn cached(scope: CacheScope) -> (Server, Arc<AtomicU32>, Arc<ResponseCache>) {
    let runs = Arc::new(AtomicU32::new(0));
    let server = counting(&runs);
    let counted = runs.clone();
    let mut hints = CacheHints::default();
    hints.cache_scope = Some(scope);
    let mut settings = Settings::default();
    settings.resource_cache = hints;
    let with_settings = Server::builder("cached", "1")
        .settings(settings)
        .build()
        .expect("builds");
    with_settings
        .mount(&server, Default::default())
        .expect("mounts");
    let handler = resource_handler(None, move |_: Context| {
        let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { format!("run {run}") }
    });
    with_settings
        .add_resource_with(
            Resource::new("note://a", "a"),
            ResourceOptions::default(),
            handler,
        )
        .expect("a resource");
    let cache = Arc::new(ResponseCache::new(60 * SECOND).with_tools(["a"]));
    with_settings
        .add_middleware(MiddlewareScope::all(), cache.clone())
        .expect("a middleware");
    (with_settings, runs, cache)
}

async fn read(client: &mut Client) -> String {
    let id = client.begin_modern("resources/read", json!({"uri": "note://a"}));
    let result = client.response(&id).await.expect("contents");
    result["contents"][0]["text"]
        .as_str()
        .expect("a text")
        .to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_cache_answers_equal_requests_for_its_time() {
    let (server, runs, cache) = cached(CacheScope::Private);
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(call(&mut client, "a").await.expect("a result"), "run 1");
    assert_eq!(call(&mut client, "a").await.expect("a result"), "run 1");
    // Other arguments and other tools run.
    let other = json!({"name": "a", "arguments": {"x": 1}});
    ask(&mut client, "tools/call", other)
        .await
        .expect("a result");
    assert_eq!(call(&mut client, "b").await.expect("a result"), "run 3");
    assert_eq!(call(&mut client, "b").await.expect("a result"), "run 4");
    tokio::time::advance(58 * SECOND).await;
    assert_eq!(call(&mut client, "a").await.expect("a result"), "run 1");
    tokio::time::advance(3 * SECOND).await;
    assert_eq!(call(&mut client, "a").await.expect("a result"), "run 5");
    cache.clear();
    assert_eq!(call(&mut client, "a").await.expect("a result"), "run 6");
    assert_eq!(runs.load(Ordering::SeqCst), 6);
}

#[runtimes::test]
async fn a_cache_shares_public_results_only() {
    for (scope, second) in [
        (CacheScope::Private, "run 2"),
        (CacheScope::Public, "run 1"),
    ] {
        let (server, ..) = cached(scope);
        let mut one = Client::modern(&server);
        assert_eq!(read(&mut one).await, "run 1");
        assert_eq!(read(&mut one).await, "run 1");
        let mut other = Client::modern(&server);
        assert_eq!(read(&mut other).await, second);
    }
}

#[runtimes::test]
async fn a_cache_forgets_what_changes_concern() {
    let (server, _, _) = cached(CacheScope::Private);
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let mut reader = Client::modern(&server);
    assert_eq!(call(&mut client, "a").await.expect("a result"), "run 1");
    assert_eq!(read(&mut reader).await, "run 2");

    server.notify_resource_updated("note://b");
    assert_eq!(read(&mut reader).await, "run 2");
    server.notify_resource_updated("note://a");
    assert_eq!(read(&mut reader).await, "run 3");
    assert_eq!(call(&mut client, "a").await.expect("a result"), "run 1");

    // Of a kind of features all results, whatever changed.
    server.disable(FeatureSelection::all().with_names(["b"]));
    assert_eq!(call(&mut client, "a").await.expect("a result"), "run 4");
    assert_eq!(read(&mut reader).await, "run 3");
    server.disable(FeatureSelection::all().with_names(["a"]));
    call(&mut client, "a").await.expect_err("it is disabled");
    server.remove_resource("note://a");
    let id = reader.begin_modern("resources/read", json!({"uri": "note://a"}));
    reader.response(&id).await.expect_err("it is removed");
}

/// Records the changes that are reported to it.
struct Changes(&'static str, Arc<Mutex<Vec<&'static str>>>);

impl Middleware for Changes {
    fn handle(&self, request: MiddlewareRequest, next: Next) -> MiddlewareFuture {
        Box::pin(async move { next.run(request).await })
    }

    fn on_features_changed(&self, _: &Change) {
        self.1.lock().expect("not poisoned").push(self.0);
    }
}

#[runtimes::test]
async fn caches_of_mounted_servers_forget_before_those_of_their_parents() {
    let reported = Arc::default();
    let mounted = with(
        counting(&Arc::default()),
        Changes("mounted", Arc::clone(&reported)),
    );
    let parent = with(
        Server::new("parent", "1"),
        Changes("parent", Arc::clone(&reported)),
    );
    parent
        .mount(&mounted, MountOptions::default())
        .expect("mounts");
    let take = || std::mem::take(&mut *reported.lock().expect("not poisoned"));
    take();
    // Again after the parent has the change: a request may have run the previous handler meanwhile.
    mounted.disable(FeatureSelection::all().with_names(["a"]));
    assert_eq!(take(), ["mounted", "mounted", "parent"]);
    mounted.notify_resource_updated("note://a");
    assert_eq!(take()[..2], ["mounted", "parent"]);
}

#[runtimes::test]
async fn a_cache_keeps_no_errors() {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let server = Server::new("failing", "1").tool("a", "Fails", move |_: Nothing, _: Context| {
        let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Err::<String, _>(HandlerError::Tool(format!("run {run}"))) }
    });
    let server = with(server, ResponseCache::new(60 * SECOND).with_tools(["a"]));
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(call(&mut client, "a").await.expect("a result"), "run 1");
    assert_eq!(call(&mut client, "a").await.expect("a result"), "run 2");
}

#[runtimes::test]
async fn a_cache_drops_the_oldest_results_when_it_is_full() {
    let runs = Arc::default();
    let cache = ResponseCache::new(60 * SECOND)
        .with_tools(["a", "b"])
        .with_max_bytes(400);
    let server = with(counting(&runs), cache);
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(call(&mut client, "a").await.expect("a result"), "run 1");
    assert_eq!(call(&mut client, "a").await.expect("a result"), "run 1");
    assert_eq!(call(&mut client, "b").await.expect("a result"), "run 2");
    assert_eq!(call(&mut client, "b").await.expect("a result"), "run 2");
    assert_eq!(call(&mut client, "a").await.expect("a result"), "run 3");
}

/// A server whose tool returns these content blocks.
fn replying(content: Value, limit: usize) -> Server {
    let content = mcpline::protocol::Raw::from_serialize(&content).expect("JSON");
    let tool = Tool::new("a", json!({"type": "object"}));
    let server = Server::new("replying", "1");
    server
        .add_tool_fn(tool, ToolOptions::default(), move |_: Value, _: Context| {
            let reply = mcpline::ToolReply {
                content: Some(content.clone()),
                ..Default::default()
            };
            async move { Ok::<_, HandlerError>(reply) }
        })
        .expect("a tool");
    with(server, ResponseSizeLimit::new(limit))
}

async fn replied(content: Value, limit: usize) -> Value {
    let server = replying(content, limit);
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let params = json!({"name": "a", "arguments": {}});
    ask(&mut client, "tools/call", params)
        .await
        .expect("a result")
}

#[runtimes::test]
async fn long_texts_are_cut_to_the_limit() {
    let heading = json!({"type": "text", "text": "heading"});
    for character in ["a", "é", "\u{1}", "\"", "😀"] {
        for length in [500, 1_000, 100_000] {
            let text = character.repeat(length);
            let whole = json!([heading, {"type": "text", "text": text}]);
            let result = replied(whole.clone(), 1_000).await;
            let size = result.to_string().len();
            if json!({"content": whole}).to_string().len() <= 1_000 {
                assert_eq!(result["content"], whole);
                continue;
            }
            assert!(size <= 1_000, "{size} bytes");
            assert_eq!(result["content"][0], heading);
            let cut = result["content"][1]["text"].as_str().expect("a text");
            let note = cut.rsplit('\n').next().expect("a note");
            let missing = text.len() - (cut.len() - note.len() - 1);
            assert_eq!(
                note,
                format!("[{missing} of {} bytes are left out]", text.len())
            );
            assert!(size > 900, "no more than necessary is cut: {size} bytes");
        }
    }
}

/// Reads the resources that a note or an error names, and returns their texts together.
async fn read_pages(client: &mut Client, note: &str) -> String {
    let uris: Vec<&str> = note
        .split([' ', ']'])
        .filter(|word| word.starts_with("result://"))
        .map(|word| word.trim_end_matches('.'))
        .collect();
    let [first, last] = uris[..] else {
        panic!("two URIs: {note}");
    };
    let (start, page) = first.rsplit_once('/').expect("a page");
    assert_eq!(page, "1");
    let (_, last) = last.rsplit_once('/').expect("a page");
    let last: usize = last.parse().expect("a number");
    let mut text = String::new();
    for page in 1..=last {
        let uri = format!("{start}/{page}");
        let result = ask(client, "resources/read", json!({"uri": uri})).await;
        let result = result.expect("a page");
        let contents = &result["contents"][0];
        assert_eq!(contents["uri"], uri);
        assert!(contents.to_string().len() <= 1_000);
        text.push_str(contents["text"].as_str().expect("a text"));
    }
    text
}

fn with_pages() -> ResponseSizeLimit {
    ResponseSizeLimit::new(1_000).with_pages(100_000, Duration::from_secs(60))
}

#[runtimes::test]
async fn clients_can_read_in_pages_what_was_cut() {
    let text = "é\n".repeat(5_000);
    let content = text.clone();
    let server = Server::new("paged", "1")
        .tool("text", "Long", move || std::future::ready(content.clone()))
        .tool("rows", "Structured", async || {
            mcpline::Json(json!({"rows": vec!["row"; 1_000]}))
        });
    let server = with(server, with_pages());
    for revision in ["2024-11-05", "2025-11-25"] {
        let mut client = Client::legacy(&server, revision).await;
        let params = json!({"name": "text", "arguments": {}});
        let result = ask(&mut client, "tools/call", params)
            .await
            .expect("a result");
        assert!(result.to_string().len() <= 1_000);
        let cut = result["content"][0]["text"].as_str().expect("a text");
        assert!(cut.starts_with("é\né"));
        let note = cut.rsplit('\n').next().expect("a note");
        assert_eq!(read_pages(&mut client, note).await, text);
        let params = json!({"name": "rows", "arguments": {}});
        let result = ask(&mut client, "tools/call", params)
            .await
            .expect("a result");
        let content = result["content"][0]["text"].as_str().expect("a text");
        match revision {
            "2024-11-05" => {
                // Structured content came later; the client gets it as a text.
                let note = content.rsplit('\n').next().expect("a note");
                assert!(read_pages(&mut client, note).await.contains("row"));
            }
            _ => {
                assert_eq!(result["isError"], true);
                let json: Value =
                    serde_json::from_str(&read_pages(&mut client, content).await).expect("JSON");
                assert_eq!(json["rows"].as_array().expect("rows").len(), 1_000);
            }
        }
        let templates = ask(&mut client, "resources/templates/list", json!({})).await;
        let templates = templates.expect("a list");
        assert_eq!(
            templates["resourceTemplates"][0]["uriTemplate"],
            "result://{id}/{page}"
        );
    }
}

#[runtimes::test]
async fn pages_are_read_by_the_caller_that_they_were_made_for() {
    let server = Server::new("paged", "1").tool("a", "Long", async || "x".repeat(5_000));
    let server = with(server, with_pages()).clone();
    let caller = |subject: &str| Caller::new().with_subject(subject);
    let connect =
        |subject| Client::over(server.connect_as(caller(subject))).shake_hands("2025-11-25");
    let (mut ann, mut bob) = (connect("ann").await, connect("bob").await);
    let text = call(&mut ann, "a").await.expect("a result");
    let uri = text
        .split(' ')
        .find(|word| word.starts_with("result://"))
        .expect("a URI");
    let params = json!({"uri": uri});
    ask(&mut ann, "resources/read", params.clone())
        .await
        .expect("a page");
    let error = ask(&mut bob, "resources/read", params)
        .await
        .expect_err("not for bob");
    assert_eq!(error["code"], -32002);
}

#[runtimes::test]
async fn results_that_cannot_be_cut_are_errors() {
    let image = json!([{"type": "image", "mimeType": "image/png", "data": "A".repeat(2_000)}]);
    let result = replied(image, 1_000).await;
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("more than the limit of 1000"), "{text}");
}
