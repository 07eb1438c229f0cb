//! Resources that resource templates list follow the registered ones in `resources/list`, for callers that may use the
//! template.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::authorized::Rig;
use crate::support::log::Log;
use crate::support::{self, Client};
use mcpline::middleware::ResponseCache;
use mcpline::protocol::vocabulary::{
    CacheHints, CacheScope, ElicitParams, Icon, ListResourcesResult, Resource, Role,
};
use mcpline::protocol::{ErrorCode, Revision, RpcError};
use mcpline::server::{
    Call, FeatureSelection, Handler, MiddlewareScope, MountOptions, Reply, ResourceDefinition,
    resource_list_handler,
};
use mcpline::transport::{Stop, lines};
use mcpline::{Context, Server, Settings, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::Notify;

#[derive(Deserialize)]
struct Day {
    day: String,
}

/// A template of logs by day.
fn logs() -> ResourceDefinition {
    ResourceDefinition::template("log://{day}", "log", |day: Day| async move { day.day })
}

fn fixed(uri: &str) -> ResourceDefinition {
    ResourceDefinition::new(uri, uri, || async { "fixed" })
}

fn server_with(page_size: usize) -> Server {
    let mut settings = Settings::default();
    settings.page_size = page_size;
    settings.list_cache = CacheHints::new(60_000, CacheScope::Public);
    let builder = Server::builder("lists", "1").settings(settings);
    builder.build().expect("a server")
}

fn server() -> Server {
    server_with(1_000)
}

fn uris(result: &Value) -> Vec<&str> {
    let resources = result["resources"].as_array().expect("a list");
    resources
        .iter()
        .map(|resource| resource["uri"].as_str().expect("a URI"))
        .collect()
}

async fn list(client: &mut Client, params: Value) -> Result<Value, Value> {
    let id = client.begin("resources/list", params);
    client.response(&id).await
}

async fn list_modern(client: &mut Client, params: Value) -> Result<Value, Value> {
    let id = client.begin_modern("resources/list", params);
    client.response(&id).await
}

/// Lists the resources of a server for a client of 2026-07-28.
async fn listed(server: &Server) -> Result<Value, Value> {
    list_modern(&mut Client::modern(server), json!({})).await
}

#[runtimes::test]
async fn listed_resources_follow_the_registered_ones_on_the_last_page() {
    let server = server_with(2);
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let days = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        async { vec!["log://monday", "log://tuesday", "log://friday"] }
    };
    for uri in ["note://1", "note://2", "note://3"] {
        server.add(fixed(uri)).expect("added");
    }
    server.add(logs().list(days)).expect("added");
    let notes = ResourceDefinition::template("page://{day}", "page", |_: Day| async { "" });
    let pages = || async {
        tokio::task::yield_now().await;
        vec![Resource::new("page://1", "First page")]
    };
    server.add(notes.list(pages)).expect("added");
    let mut client = Client::modern(&server);
    let first = list_modern(&mut client, json!({})).await.expect("a page");
    assert_eq!(uris(&first), ["note://1", "note://2"]);
    assert_eq!(first["cacheScope"], "public");
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    let rest = json!({"cursor": first["nextCursor"]});
    let last = list_modern(&mut client, rest).await.expect("a page");
    let expected = [
        "note://3",
        "log://monday",
        "log://tuesday",
        "log://friday",
        "page://1",
    ];
    assert_eq!(uris(&last), expected);
    assert!(last.get("nextCursor").is_none());
    // The time to live is that of the settings.
    assert_eq!(last["cacheScope"], "private");
    assert_eq!(last["ttlMs"], 60_000);
    assert_eq!(last["resources"][1]["name"], "log://monday");
    assert_eq!(last["resources"][4]["name"], "First page");
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    let id = client.begin_modern("resources/read", json!({"uri": "log://friday"}));
    let read = client.response(&id).await.expect("contents");
    assert_eq!(read["contents"][0]["text"], "friday");
}

#[runtimes::test]
async fn lists_without_list_handlers_stay_public() {
    let server = server();
    server.add(vec![fixed("note://1"), logs()]).expect("added");
    let list = listed(&server).await.expect("a list");
    assert_eq!(uris(&list), ["note://1"]);
    assert_eq!(list["cacheScope"], "public");
}

#[runtimes::test]
async fn listed_resources_have_the_members_of_the_clients_revision() {
    let server = Server::new("lists", "1");
    let days = || async {
        let mut day = Resource::new("log://monday", "monday");
        day.title = Some("Monday".into());
        day.description = Some("What happened".into());
        day.mime_type = Some("text/plain".into());
        day.size = Some(7);
        day.icons = Some(vec![Icon::new("https://example.com/log.png")]);
        let mut annotations = mcpline::protocol::vocabulary::Annotations::default();
        annotations.audience = Some(vec![Role::User]);
        day.annotations = Some(annotations);
        day.meta = Some(
            [("com.example/lines".to_owned(), json!(3))]
                .into_iter()
                .collect(),
        );
        let mut days = ListResourcesResult::default();
        days.resources = vec![day];
        Ok::<_, ToolError>(days)
    };
    server.add(logs().list(days)).expect("added");
    for revision in Revision::ALL {
        let result = if revision.is_modern() {
            listed(&server).await
        } else {
            let mut client = Client::legacy(&server, revision.as_str()).await;
            list(&mut client, json!({})).await
        };
        let result = result.expect("a list");
        let day = &result["resources"][0];
        let has = |name: &str| day.get(name).is_some();
        assert_eq!(day["uri"], "log://monday");
        assert_eq!((day["size"].as_u64(), has("mimeType")), (Some(7), true));
        assert!(has("annotations"), "{revision}");
        let is_newer = *revision >= Revision::V2025_06_18;
        assert_eq!(
            (has("title"), has("_meta")),
            (is_newer, is_newer),
            "{revision}"
        );
        assert_eq!(
            has("icons"),
            *revision >= Revision::V2025_11_25,
            "{revision}"
        );
        assert_eq!(result.get("cacheScope").is_some(), revision.is_modern());
    }
}

#[runtimes::test]
async fn resources_that_cannot_be_read_or_are_registered_are_left_out() {
    let log = Log::new(tracing::Level::WARN);
    let _recorded = tracing::subscriber::set_default(log.clone());
    let server = server();
    server.add(fixed("log://monday")).expect("added");
    let days = || async {
        let resources = json!({"resources": [
            "log://monday", "log://tuesday", "log://tuesday", "note://1", "log://a/b", 3, {"name": "no URI"},
            {"uri": "log://friday"}, {"uri": "log://sunday", "name": "s", "_meta": {"com.mcp/lines": 1}},
        ]});
        let resources = mcpline::protocol::Raw::from_serialize(&resources).expect("JSON");
        Reply::Result(resources)
    };
    server.add(logs().list(days)).expect("added");
    let files = ResourceDefinition::template("file:///logs/{day}", "file", |_: Day| async { "" });
    let outside = || async { vec!["file:///logs/..", "file:///logs/a.txt"] };
    server.add(files.list(outside)).expect("added");
    let result = listed(&server).await.expect("a list");
    let expected = [
        "log://monday",
        "log://tuesday",
        "log://friday",
        "file:///logs/a.txt",
    ];
    assert_eq!(uris(&result), expected);
    assert_eq!(result["resources"][2]["name"], "log://friday");
    assert!(log.has("left out 5 resources"), "{:?}", log.lines());
    assert!(log.has("log://{day}"), "{:?}", log.lines());
}

#[runtimes::test]
async fn a_long_list_is_cut_with_a_warning() {
    let log = Log::new(tracing::Level::WARN);
    let _recorded = tracing::subscriber::set_default(log.clone());
    let server = server();
    let many = || async {
        (0..6_000)
            .map(|day| format!("log://{day}"))
            .collect::<Vec<_>>()
    };
    server.add(logs().list(many)).expect("added");
    let more = ResourceDefinition::template("more://{day}", "more", |_: Day| async { "" });
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let handler = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        async { vec!["more://1"] }
    };
    server.add(more.list(handler)).expect("added");
    let result = listed(&server).await.expect("a list");
    assert_eq!(uris(&result).len(), 5_000);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert!(log.has("is cut"), "{:?}", log.lines());
    // And by bytes.
    let long = || async {
        let mut day = Resource::new("log://0", "long");
        day.description = Some("x".repeat(1024 * 1024));
        (0..10)
            .map(|number| {
                let mut other = day.clone();
                other.uri = format!("log://{number}");
                other
            })
            .collect::<Vec<_>>()
    };
    let handler = resource_list_handler(long);
    server
        .set_resource_template_list("log://{day}", handler)
        .expect("set");
    let result = listed(&server).await.expect("a list");
    assert_eq!(uris(&result).len(), 3);
}

#[runtimes::test]
async fn an_error_of_a_handler_is_that_of_the_request() {
    let server = server();
    let failing = || async { Err::<Vec<String>, _>(std::io::Error::other("disk 7 is on fire")) };
    server.add(logs().list(failing)).expect("added");
    let mut client = Client::modern(&server);
    let error = list_modern(&mut client, json!({}))
        .await
        .expect_err("fails");
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32603), &json!("disk 7 is on fire"))
    );
    let set = |handler| {
        server
            .set_resource_template_list("log://{day}", handler)
            .expect("set")
    };
    let refusing = || async {
        let error = RpcError::new(ErrorCode(-31_000), "ask again tomorrow");
        Err::<Vec<String>, _>(ToolError::from(error))
    };
    set(resource_list_handler(refusing));
    let error = list_modern(&mut client, json!({}))
        .await
        .expect_err("fails");
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-31_000), &json!("ask again tomorrow"))
    );
    async fn panicking() -> Vec<String> {
        panic!("disk 7 is on fire")
    }
    set(resource_list_handler(panicking));
    let error = list_modern(&mut client, json!({}))
        .await
        .expect_err("fails");
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32603), &json!("resources/list failed"))
    );
    let other = || async { Reply::Result(mcpline::protocol::Raw::EMPTY_OBJECT) };
    set(resource_list_handler(other));
    let error = list_modern(&mut client, json!({}))
        .await
        .expect_err("fails");
    assert_eq!(error["message"], "resources/list failed");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let error = list(&mut client, json!({})).await.expect_err("fails");
    assert_eq!(error["message"], "resources/list failed");
}

#[runtimes::test]
async fn handlers_have_the_context_of_the_request_and_cannot_ask_for_input() {
    let server = server();
    let days = |ctx: Context| async move {
        ctx.progress(1.0, Some(2.0), None);
        let asked = ctx.elicit(&ElicitParams::default()).await;
        let refused = asked.expect_err("refused").to_string();
        let mut day = Resource::new("log://monday", "monday");
        day.description = Some(refused);
        vec![day]
    };
    server.add(logs().list(days)).expect("added");
    let mut client = Client::modern(&server);
    let id = client.begin_modern("resources/list", json!({"_meta": {"progressToken": "p"}}));
    let progress = client.next().await;
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "p");
    let result = client.response(&id).await.expect("a list");
    let refused = result["resources"][0]["description"]
        .as_str()
        .expect("a text");
    assert!(refused.contains("allowed only while"), "{refused}");
}

#[runtimes::test]
async fn a_handler_is_cancelled_with_its_request_and_its_connection() {
    for has_middleware in [false, true] {
        let server = server();
        if has_middleware {
            let cache = Arc::new(ResponseCache::new(Duration::from_secs(60)));
            server
                .add_middleware(MiddlewareScope::all(), cache)
                .expect("added");
        }
        let (started, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (on_start, on_end) = (started.clone(), ended.clone());
        let days = move |ctx: Context| {
            let on_end = on_end.clone();
            ctx.on_cancel(move || on_end.notify_one());
            on_start.notify_one();
            std::future::pending::<Vec<String>>()
        };
        server.add(logs().list(days)).expect("added");
        let mut client = Client::legacy(&server, "2025-11-25").await;
        let id = client.begin("resources/list", json!({}));
        started.notified().await;
        client.send(
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
        );
        ended.notified().await;
        let id = client.begin("ping", json!({}));
        client.response(&id).await.expect("an answer");
        assert!(client.try_next().is_none());
        // The connection ends.
        client.begin("resources/list", json!({}));
        started.notified().await;
        drop(client);
        ended.notified().await;
    }
}

#[runtimes::test]
async fn a_shutdown_lets_lists_finish_within_the_grace_period_and_cancels_them_after_it() {
    for grace in [Duration::ZERO, support::connection::TEST_TIMEOUT] {
        let mut settings = Settings::default();
        settings.shutdown_timeout = grace;
        let builder = Server::builder("lists", "1").settings(settings);
        let server = builder.build().expect("a server");
        let (started, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let cancelled = Arc::new(Notify::new());
        let (on_start, wait, on_cancel) = (started.clone(), go_on.clone(), cancelled.clone());
        let days = move |ctx: Context| {
            let (wait, on_cancel) = (wait.clone(), on_cancel.clone());
            ctx.on_cancel(move || on_cancel.notify_one());
            on_start.notify_one();
            async move {
                wait.notified().await;
                vec!["log://monday"]
            }
        };
        server.add(logs().list(days)).expect("added");
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        let stop = Stop::new();
        let signal = stop.clone();
        let serving = async move { server.serve_until(lines(reader, writer), signal).await };
        let served = tokio::spawn(serving);
        let (reader, mut writer) = tokio::io::split(ours);
        let (_, request) = support::authorized::modern("resources/list", json!({}));
        let line = format!("{request}\n");
        writer.write_all(line.as_bytes()).await.expect("it reads");
        started.notified().await;
        stop.stop();
        match grace {
            Duration::ZERO => cancelled.notified().await,
            _ => go_on.notify_one(),
        }
        let mut answers = BufReader::new(reader).lines();
        let answer = answers.next_line().await.expect("a pipe").expect("a line");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        match grace {
            Duration::ZERO => assert_eq!(answer["error"]["code"], -31_002, "{answer}"),
            _ => assert_eq!(uris(&answer["result"]), ["log://monday"]),
        }
        served.await.expect("no panic").expect("in good order");
    }
}

#[runtimes::test]
async fn lists_of_mounted_servers_have_the_prefixes_of_their_mounts() {
    let inner = Server::new("inner", "1");
    let days = || async { vec!["log://monday", "log://inner/monday"] };
    inner.add(logs().list(days)).expect("added");
    let middle = Server::new("middle", "1");
    let prefix = |prefix: &str| MountOptions::default().with_prefix(prefix);
    middle.mount(&inner, prefix("inner")).expect("mounted");
    let outer = server();
    outer.mount(&middle, prefix("middle")).expect("mounted");
    outer.add(fixed("log://today")).expect("added");
    let uris_of = async |server: &Server| {
        let result = listed(server).await.expect("a list");
        uris(&result)
            .iter()
            .map(|uri| uri.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        uris_of(&outer).await,
        ["log://today", "log://middle/inner/monday"]
    );
    // A later handler is that of the copies, too.
    let later = resource_list_handler(|| async { vec!["log://friday"] });
    inner
        .set_resource_template_list("log://{day}", later)
        .expect("set");
    assert_eq!(
        uris_of(&outer).await,
        ["log://today", "log://middle/inner/friday"]
    );
    let mut client = Client::modern(&outer);
    let read = json!({"uri": "log://middle/inner/friday"});
    let id = client.begin_modern("resources/read", read);
    let read = client.response(&id).await.expect("contents");
    assert_eq!(read["contents"][0]["text"], "friday");
    let handler = resource_list_handler(|| async { vec!["log://friday"] });
    let refused = outer.set_resource_template_list("log://middle/inner/{day}", handler);
    assert!(
        refused
            .expect_err("refused")
            .to_string()
            .contains("mounted server")
    );
    assert!(middle.unmount(&inner));
    assert_eq!(uris_of(&outer).await, ["log://today"]);
    // Without a prefix, and as a snapshot.
    let snapshot = Server::new("snapshot", "1");
    let options = MountOptions::default().with_snapshot(true);
    snapshot.mount(&inner, options).expect("mounted");
    assert!(inner.remove_resource_template("log://{day}"));
    assert_eq!(uris_of(&snapshot).await, ["log://friday"]);
}

#[runtimes::test]
async fn disabled_templates_are_not_asked() {
    let server = server();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let days = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        async { vec!["log://monday"] }
    };
    server.add(logs().tags(["logs"]).list(days)).expect("added");
    let logs = || FeatureSelection::all().with_tags(["logs"]);
    server.disable(logs());
    let result = listed(&server).await.expect("a list");
    assert_eq!((uris(&result).len(), asked.load(Ordering::Relaxed)), (0, 0));
    server.enable(logs());
    let result = listed(&server).await.expect("a list");
    assert_eq!((uris(&result).len(), asked.load(Ordering::Relaxed)), (1, 1));
    // A changed definition keeps the handler.
    let renamed = server.update_resource_template("log://{day}", |template| {
        template.uri_template = "log://{day}{?lines}".into();
    });
    renamed.expect("updated");
    let result = listed(&server).await.expect("a list");
    assert_eq!(uris(&result), ["log://monday"]);
}

#[runtimes::test]
async fn a_caller_without_the_scopes_of_a_template_sees_none_of_its_resources() {
    let server = server();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let days = move |ctx: Context| {
        let auth = ctx.auth();
        let subject = auth.and_then(|auth| auth.subject().map(str::to_owned));
        seen.lock().expect("not poisoned").push(subject);
        async { vec!["log://monday"] }
    };
    server
        .add(logs().scopes(["logs:read"]).list(days))
        .expect("added");
    let rig = Rig::start(server, |builder, issuer| builder.issuer(issuer.issuer())).await;
    let reader = rig.token("mcp logs:read");
    let answer = rig.modern(&reader, "resources/list", json!({})).await;
    assert_eq!(answer.body["result"]["resources"][0]["uri"], "log://monday");
    assert_eq!(answer.body["result"]["cacheScope"], "private");
    let other = rig.token("mcp mail:read");
    let answer = rig.modern(&other, "resources/list", json!({})).await;
    assert_eq!(answer.body["result"]["resources"], json!([]));
    assert_eq!(answer.body["result"]["cacheScope"], "private");
    assert_eq!(asked.lock().expect("not poisoned").len(), 1);
}

#[runtimes::test]
async fn middleware_sees_the_whole_list_and_the_cache_keeps_none() {
    let server = server();
    let cache = Arc::new(ResponseCache::new(Duration::from_secs(60)));
    server
        .add_middleware(MiddlewareScope::all(), cache)
        .expect("added");
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let days = move || {
        let run = counted.fetch_add(1, Ordering::Relaxed);
        async move { vec![format!("log://{run}")] }
    };
    server.add(logs().list(days)).expect("added");
    for run in 0..2 {
        let result = listed(&server).await.expect("a list");
        assert_eq!(uris(&result), [format!("log://{run}")]);
    }
}

#[runtimes::test]
async fn clients_hear_of_a_new_handler_and_see_the_capability() {
    let server = server();
    server.add(logs()).expect("added");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let handler = resource_list_handler(|| async { vec!["log://monday"] });
    server
        .set_resource_template_list("log://{day}", handler)
        .expect("set");
    let change = client.next().await;
    assert_eq!(change["method"], "notifications/resources/list_changed");
    let result = list(&mut client, json!({})).await.expect("a list");
    assert_eq!(uris(&result), ["log://monday"]);
    let handler = resource_list_handler(|| async { vec!["log://monday"] });
    server.notify_resource_list_changed();
    let change = client.next().await;
    assert_eq!(change["method"], "notifications/resources/list_changed");
    let unknown = server.set_resource_template_list("day://{day}", handler);
    assert!(
        unknown
            .expect_err("refused")
            .to_string()
            .contains("day://{day}")
    );
    let on_resource = fixed("note://1").list(|| async { vec!["note://2"] });
    let refused = server.add(on_resource).expect_err("refused");
    assert!(
        refused.to_string().contains("only a resource template"),
        "{refused}"
    );
}

#[runtimes::test]
async fn many_templates_whose_handlers_return_at_once_need_no_deep_stack() {
    let server = server();
    for number in 0..2_000 {
        let uri = format!("log{number}://{{day}}");
        let template = ResourceDefinition::template(uri, "log", |day: Day| async move { day.day });
        let listed = move || async move { vec![format!("log{number}://monday")] };
        server.add(template.list(listed)).expect("added");
    }
    let result = listed(&server).await.expect("a list");
    assert_eq!(uris(&result).len(), 2_000);
}

#[runtimes::test]
async fn a_waiting_list_counts_as_a_call_of_its_client() {
    let mut settings = Settings::default();
    settings.max_calls = 1;
    let builder = Server::builder("lists", "1").settings(settings);
    let server = builder.build().expect("a server");
    server.add(fixed("note://1")).expect("added");
    let started = Arc::new(Notify::new());
    let on_start = started.clone();
    let days = move || {
        on_start.notify_one();
        std::future::pending::<Vec<String>>()
    };
    server.add(logs().list(days)).expect("added");
    let mut client = Client::modern(&server);
    client.begin_modern("resources/list", json!({}));
    started.notified().await;
    let refused = list_modern(&mut client, json!({})).await.expect_err("busy");
    assert!(
        refused["message"]
            .as_str()
            .is_some_and(|text| text.contains("calls")),
        "{refused}"
    );
    server.remove_resource_template("log://{day}");
    let result = list_modern(&mut client, json!({})).await.expect("a list");
    assert_eq!(uris(&result), ["note://1"]);
}

/// Gives its calls to the test, whatever becomes of their requests.
struct Keeps(tokio::sync::mpsc::UnboundedSender<Call>);

impl Handler for Keeps {
    fn call(&self, call: Call) {
        self.0.send(call).expect("the test waits");
    }
}

#[runtimes::test]
async fn a_list_that_goes_on_after_its_request_counts_as_a_call() {
    let mut settings = Settings::default();
    settings.max_calls = 1;
    let builder = Server::builder("lists", "1").settings(settings);
    let server = builder.build().expect("a server");
    server.add(logs()).expect("added");
    let (sender, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let keeps = Arc::new(Keeps(sender));
    let set = server.set_resource_template_list("log://{day}", keeps);
    set.expect("a template");
    let mut client = Client::modern(&server);
    let request = client.begin_modern("resources/list", json!({}));
    let call = begun.recv().await.expect("it begins");
    client.send(json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request},
    }));
    client.begin_modern("resources/list", json!({}));
    tokio::select! {
        _ = begun.recv() => panic!("the handler of the cancelled request is not counted"),
        busy = client.next() => assert_eq!(busy["error"]["code"], ErrorCode::BUSY.0, "{busy}"),
    }
    drop(call);
    // Until the task that waited for it has ended as well.
    loop {
        client.begin_modern("resources/list", json!({}));
        tokio::task::yield_now().await;
        tokio::select! {
            call = begun.recv() => break drop(call.expect("it begins")),
            busy = client.next() => assert_eq!(busy["error"]["code"], ErrorCode::BUSY.0, "{busy}"),
        }
    }
}
