//! Middleware of clients: the chain, and `Retry`, `CircuitBreaker` and `ToolPolicy`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpline::client::middleware::{CircuitBreaker, ClientNext, ClientRequest, Retry, ToolPolicy};
use mcpline::client::{Client, ClientBuilder, ClientError, Reissue, RequestOptions};
use mcpline::middleware::{MiddlewareRequest, Next};
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::{Tool, ToolAnnotations};
use mcpline::server::{Settings, ToolOptions};
use mcpline::{Context, ErrorKind, Revision, RpcError, Server};
use serde_json::{Value, json};
use tokio::time::Instant;

const REVISIONS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

fn host(revision: Revision) -> ClientBuilder {
    Client::builder("host", "1").configure(|settings| settings.revisions = vec![revision])
}

fn add(server: &Server, name: &str, description: &str) {
    let tool = Tool::new(name, json!({"type": "object"})).with_description(description);
    let echo = |arguments: Value, _: Context| async move { arguments.to_string() };
    server
        .add_tool_fn(tool, ToolOptions::default(), echo)
        .expect("a tool");
}

fn text(result: &mcpline::protocol::vocabulary::CallToolResult) -> String {
    let content = serde_json::to_value(&result.content).expect("JSON");
    content[0]["text"].as_str().expect("a text").to_owned()
}

/// A server whose calls of tools fail a given number of times, with a given error.
#[derive(Clone, Default)]
struct Failing {
    left: Arc<AtomicUsize>,
    calls: Arc<AtomicUsize>,
}

impl Failing {
    fn server(&self, error: RpcError) -> Server {
        let this = self.clone();
        let server =
            Server::new("test", "1").middleware(move |request: MiddlewareRequest, next: Next| {
                let (this, error) = (this.clone(), error.clone());
                async move {
                    if request.method() == "tools/call" {
                        this.calls.fetch_add(1, Ordering::Relaxed);
                        let fails = |left: usize| left.checked_sub(1);
                        let order = Ordering::Relaxed;
                        if this.left.fetch_update(order, order, fails).is_ok() {
                            return Err(error);
                        }
                    }
                    next.run(request).await
                }
            });
        add(&server, "echo", "Echoes");
        let mut safe = Tool::new("safe", json!({"type": "object"}));
        safe.annotations = Some(ToolAnnotations::default().with_read_only_hint(true));
        let echo = |_: Value, _: Context| async { "safe" };
        server
            .add_tool_fn(safe, ToolOptions::default(), echo)
            .expect("a tool");
        server
    }

    fn fail(&self, times: usize) {
        self.left.store(times, Ordering::Relaxed);
    }

    fn take_calls(&self) -> usize {
        self.calls.swap(0, Ordering::Relaxed)
    }
}

#[runtimes::test]
async fn middleware_runs_in_its_order_and_may_change_everything() {
    for revision in REVISIONS {
        let server = Server::new("test", "1");
        add(&server, "echo", "Echoes");
        let log = Arc::new(Mutex::new(Vec::<String>::new()));
        let observe = |mark: &'static str| {
            let log = log.clone();
            move |request: ClientRequest, next: ClientNext| {
                let log = log.clone();
                async move {
                    let seen = format!("{mark} {} {:?}", request.method(), request.name());
                    log.lock().expect("not poisoned").push(seen);
                    let outcome = next.run(request).await;
                    let seen = format!("{mark} {}", outcome.is_ok());
                    log.lock().expect("not poisoned").push(seen);
                    outcome
                }
            }
        };
        let change = |mut request: ClientRequest, next: ClientNext| async move {
            match request.name().as_deref() {
                Some("echo") => {
                    assert_eq!(
                        request.revision().map(|of| of.is_modern()),
                        Some(request.options().meta.is_some())
                    );
                    let arguments = request.arguments().expect("arguments");
                    let arguments = arguments.with("added", &Raw::from_trusted("1"));
                    request.set_arguments(&arguments)?;
                    let result = next.run(request).await?;
                    Ok(result.with("_meta", &Raw::from_trusted(r#"{"by":"middleware"}"#)))
                }
                Some("local") => Ok(Raw::from_trusted(
                    r#"{"content":[{"type":"text","text":"answered"}],"resultType":"complete"}"#,
                )),
                Some("wrong") => request
                    .set_params(Raw::from_trusted("[]"))
                    .map(|()| Raw::EMPTY_OBJECT),
                _ => next.run(request).await,
            }
        };
        let mut builder = host(revision).middleware(observe("outer"));
        if revision.is_modern() {
            builder =
                builder.middleware(|mut request: ClientRequest, next: ClientNext| async move {
                    request.options_mut().meta = Some(Raw::from_trusted(r#"{"x":1}"#));
                    next.run(request).await
                });
        }
        let client = builder
            .middleware(observe("inner"))
            .middleware(change)
            .connect(&server)
            .await
            .expect("connects");
        let result = client
            .call_tool("echo", json!({"a": 0}))
            .await
            .expect("a result");
        assert_eq!(text(&result), r#"{"added":1,"a":0}"#);
        let meta = serde_json::to_value(&result.meta).expect("JSON");
        assert_eq!(meta["by"], "middleware");
        let seen = std::mem::take(&mut *log.lock().expect("not poisoned"));
        let call = r#"tools/call Some("echo")"#;
        assert_eq!(
            seen,
            [
                format!("outer {call}"),
                format!("inner {call}"),
                "inner true".to_owned(),
                "outer true".to_owned(),
            ]
        );
        let answered = client
            .call_tool("local", json!({}))
            .await
            .expect("a result");
        assert_eq!(text(&answered), "answered");
        let wrong = client
            .call_tool("wrong", json!({}))
            .await
            .expect_err("an error");
        assert_eq!(wrong.kind(), ErrorKind::Usage);
        // Lists pass through it, too, also those whose result is cached.
        log.lock().expect("not poisoned").clear();
        client.list_tools().await.expect("tools");
        client.list_tools().await.expect("tools");
        assert_eq!(log.lock().expect("not poisoned").len(), 8);
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_repeats_what_the_server_has_not_performed_and_what_may_run_twice() {
    for revision in REVISIONS {
        let failing = Failing::default();
        let busy = RpcError::busy("busy").with_data(&json!({"retryAfter": 3}));
        let client = host(revision)
            .middleware(Retry::new(3))
            .connect(&failing.server(busy))
            .await
            .expect("connects");
        failing.fail(2);
        let begun = Instant::now();
        client
            .call_tool("echo", json!({}))
            .await
            .expect("the third attempt");
        assert_eq!(failing.take_calls(), 3);
        assert_eq!(
            begun.elapsed().as_secs(),
            6,
            "the server's delays are longer"
        );
        failing.fail(3);
        let error = client
            .call_tool("echo", json!({}))
            .await
            .expect_err("an error");
        assert_eq!((error.kind(), failing.take_calls()), (ErrorKind::Rpc, 3));

        let error = RpcError::internal_error("crashed");
        for (trusted, tools, tool, attempts) in [
            (false, &[][..], "echo", 1),
            (false, &[], "safe", 1),
            (true, &[], "safe", 3),
            (true, &[], "echo", 1),
            (false, &["echo"], "echo", 3),
            (false, &["echo"], "safe", 1),
        ] {
            let client = host(revision)
                .configure(|settings| settings.trust_tool_annotations = trusted)
                .middleware(Retry::new(3).with_tools(tools.iter().copied()))
                .connect(&failing.server(error.clone()))
                .await
                .expect("connects");
            client.list_tools().await.expect("tools");
            failing.fail(9);
            let begun = Instant::now();
            let failed = client
                .call_tool(tool, json!({}))
                .await
                .expect_err("an error");
            assert_eq!(failed.rpc(), Some(&error));
            assert_eq!(failing.take_calls(), attempts, "{trusted} {tools:?} {tool}");
            // 200 and 400 ms, or half of that.
            let waited = begun.elapsed().as_millis();
            let expected = if attempts == 1 { 0..=0 } else { 300..=602 };
            assert!(expected.contains(&waited), "{waited}");
        }
        failing.fail(0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_gives_up_long_delays_invalid_requests_and_closed_clients() {
    let failing = Failing::default();
    let busy = RpcError::busy("busy").with_data(&json!({"retryAfter": 60}));
    let server = failing.server(busy);
    let client = Client::builder("host", "1")
        .middleware(Retry::new(3))
        .connect(&server);
    let client = client.await.expect("connects");
    failing.fail(9);
    client
        .call_tool("echo", json!({}))
        .await
        .expect_err("longer than 10 s");
    assert_eq!(failing.take_calls(), 1);

    let delays = Retry::new(3).with_delays(Duration::from_secs(1), Duration::from_secs(3_600));
    let client = Client::builder("host", "1")
        .middleware(delays)
        .connect(&server);
    let client = client.await.expect("connects");
    let begun = Instant::now();
    let (failed, ()) = tokio::join!(client.call_tool("echo", json!({})), async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        client.close().await;
    });
    assert_eq!(failed.expect_err("closed").kind(), ErrorKind::Closed);
    assert_eq!((begun.elapsed().as_secs(), failing.take_calls()), (10, 1));
}

#[tokio::test(start_paused = true)]
async fn an_open_circuit_sends_nothing_until_a_trial_succeeds() {
    let failing = Failing::default();
    let server = failing.server(RpcError::busy("busy"));
    let breaker = Arc::new(CircuitBreaker::new(3, Duration::from_secs(30)));
    let client = Client::builder("host", "1")
        .shared_middleware(breaker.clone())
        .connect(&server)
        .await
        .expect("connects");
    let call = || client.call_tool("echo", json!({}));
    // A success in between starts over.
    failing.fail(2);
    for fails in [true, true, false] {
        assert_eq!(call().await.is_err(), fails);
    }
    failing.fail(4);
    for _ in 0..3 {
        assert!(!breaker.is_open());
        assert_eq!(call().await.expect_err("busy").kind(), ErrorKind::Rpc);
    }
    assert!(breaker.is_open());
    assert_eq!(failing.take_calls(), 6);
    tokio::time::advance(Duration::from_secs(29)).await;
    let error = call().await.expect_err("open");
    assert_eq!(
        (error.kind(), error.is_retry_safe()),
        (ErrorKind::ServerUnreachable, true)
    );
    let message = "server unreachable: the circuit breaker is open after 3 failures in a row; the next attempt is in 1.0s";
    assert_eq!(error.to_string(), message);
    assert_eq!(failing.take_calls(), 0);
    // The trial fails, so it stays open for another 30 seconds.
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(call().await.expect_err("busy").kind(), ErrorKind::Rpc);
    assert_eq!(
        call().await.expect_err("open").kind(),
        ErrorKind::ServerUnreachable
    );
    assert_eq!(failing.take_calls(), 1);
    tokio::time::advance(Duration::from_secs(30)).await;
    call().await.expect("the trial");
    assert!(!breaker.is_open());
    call().await.expect("closed");
    assert_eq!(failing.take_calls(), 2);
    // Errors that concern one request are no failures of the server.
    for _ in 0..5 {
        client
            .call_tool("missing", json!({}))
            .await
            .expect_err("unknown");
    }
    assert!(!breaker.is_open());
}

#[tokio::test(start_paused = true)]
async fn ten_trials_are_in_flight_and_cancelled_ones_make_room() {
    let (answers, started) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let (gate, began) = (answers.clone(), started.clone());
    let server = Server::new("test", "1").tool("wait", "Waits", move |_: Value, _: Context| {
        let (gate, began) = (gate.clone(), began.clone());
        async move {
            began.fetch_add(1, Ordering::Relaxed);
            if !gate.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            "done"
        }
    });
    let client = Client::builder("host", "1")
        .configure(|settings| {
            settings.timeouts.idle = Duration::from_secs(1);
            settings.timeouts.total = Duration::from_secs(1);
        })
        .middleware(CircuitBreaker::new(1, Duration::from_secs(5)))
        .connect(&server)
        .await
        .expect("connects");
    let call = || client.call_tool("wait", json!({}));
    assert_eq!(
        call().await.expect_err("timeout").kind(),
        ErrorKind::RequestTimedOut
    );
    tokio::time::advance(Duration::from_secs(5)).await;
    {
        let trials = (0..10)
            .map(|_| client.clone())
            .map(|client| tokio::spawn(async move { client.call_tool("wait", json!({})).await }));
        let trials: Vec<_> = trials.collect();
        while started.load(Ordering::Relaxed) < 11 {
            tokio::task::yield_now().await;
        }
        let error = call().await.expect_err("ten trials at a time");
        let source = std::error::Error::source(&error)
            .expect("a source")
            .to_string();
        assert_eq!(source, "the circuit is open");
        assert!(
            error.to_string().ends_with("a trial request is in flight"),
            "{error}"
        );
        for trial in &trials {
            trial.abort();
        }
        for trial in trials {
            assert!(trial.await.expect_err("aborted").is_cancelled());
        }
    }
    answers.store(true, Ordering::Relaxed);
    call().await.expect("another trial");
    call().await.expect("closed");
}

#[tokio::test(start_paused = true)]
async fn only_answers_of_the_server_close_a_circuit() {
    let failing = Failing::default();
    let server = failing.server(RpcError::busy("busy"));
    let breaker = Arc::new(CircuitBreaker::new(2, Duration::from_secs(5)));
    let client = Client::builder("host", "1")
        .shared_middleware(breaker.clone())
        .middleware(ToolPolicy::new().with_denied(["delete"]))
        .connect(&server)
        .await
        .expect("connects");
    let refused = async || {
        let error = client
            .call_tool("delete", json!({}))
            .await
            .expect_err("denied");
        assert_eq!(error.kind(), ErrorKind::ToolCallRefused);
    };
    failing.fail(3);
    client.call_tool("echo", json!({})).await.expect_err("busy");
    // Says nothing about the server, so that the next failure is the second in a row.
    refused().await;
    client.call_tool("echo", json!({})).await.expect_err("busy");
    assert!(breaker.is_open());
    tokio::time::advance(Duration::from_secs(5)).await;
    refused().await;
    assert!(breaker.is_open());
    client
        .call_tool("echo", json!({}))
        .await
        .expect_err("busy, as a trial");
    tokio::time::advance(Duration::from_secs(5)).await;
    client.call_tool("echo", json!({})).await.expect("a trial");
    assert!(!breaker.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_retry_returns_the_error_of_an_open_circuit_and_never_reissues_against_the_callers_will()
{
    let failing = Failing::default();
    let client = Client::builder("host", "1")
        .middleware(Retry::new(3).with_tools(["echo"]))
        .middleware(CircuitBreaker::new(1, Duration::MAX))
        .connect(&failing.server(RpcError::busy("busy")))
        .await
        .expect("connects");
    failing.fail(1);
    let begun = Instant::now();
    let error = client.call_tool("echo", json!({})).await.expect_err("open");
    assert_eq!(error.kind(), ErrorKind::ServerUnreachable);
    assert_eq!(failing.take_calls(), 1);
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "one delay, after `busy`"
    );

    let client = Client::builder("host", "1")
        .middleware(Retry::new(3).with_tools(["echo"]))
        .connect(&failing.server(RpcError::internal_error("crashed")))
        .await
        .expect("connects");
    failing.fail(3);
    let mut options = RequestOptions::new();
    options.reissue = Reissue::Never;
    let params = Raw::from_trusted(r#"{"name":"echo","arguments":{}}"#);
    client
        .request("tools/call", Some(&params), &options)
        .await
        .expect_err("crashed");
    assert_eq!(failing.take_calls(), 1);
}

#[runtimes::test]
async fn a_policy_says_which_calls_need_approval() {
    for revision in REVISIONS {
        let server = Server::new("test", "1");
        for name in ["get_note", "delete_note", "delete_all"] {
            add(&server, name, "A tool");
        }
        let asked = Arc::new(Mutex::new(Vec::new()));
        let hooked = |policies: [ToolPolicy; 2]| {
            let asked = asked.clone();
            let builder = host(revision).on_tool_call(move |call| {
                asked.lock().expect("not poisoned").push(call.name.clone());
                let answer = match &*call.name {
                    "delete_all" => Err("the user says no".to_owned()),
                    _ => Ok(()),
                };
                std::future::ready(answer)
            });
            let [one, other] = policies;
            builder.middleware(one).middleware(other)
        };
        let policy = || ToolPolicy::new().with_approval(["delete_*"]);
        let other = || ToolPolicy::new().with_approval(["other"]);
        // A policy that demands no approval does not undo what another demands.
        for policies in [[policy(), other()], [other(), policy()]] {
            let client = hooked(policies).connect(&server).await.expect("connects");
            for (name, is_allowed) in [
                ("get_note", true),
                ("delete_note", true),
                ("delete_all", false),
            ] {
                let outcome = client.call_tool(name, json!({})).await;
                assert_eq!(outcome.is_ok(), is_allowed, "{name}");
            }
            let asked = std::mem::take(&mut *asked.lock().expect("not poisoned"));
            assert_eq!(asked, ["delete_note", "delete_all"]);
            client.close().await;
        }
        let client = host(revision).middleware(policy()).connect(&server).await;
        let client = client.expect("connects");
        client
            .call_tool("get_note", json!({}))
            .await
            .expect("a result");
        let outcome = client.call_tool("delete_note", json!({})).await;
        let error = outcome.expect_err("there is no hook");
        assert_eq!(error.kind(), ErrorKind::ToolCallRefused);
        assert!(error.to_string().contains("demands approval"), "{error}");
        client.close().await;
    }
}

#[runtimes::test]
async fn a_policy_hides_and_refuses_tools_by_name() {
    for revision in REVISIONS {
        let server = Server::new("test", "1");
        for name in ["get_time", "get_secret", "search", "delete"] {
            add(&server, name, "Does it");
        }
        let policy = ToolPolicy::new()
            .with_allowed(["get_*", "search"])
            .with_denied(["*secret"]);
        let client = host(revision).middleware(policy).connect(&server).await;
        let client = client.expect("connects");
        let tools = client.list_tools().await.expect("tools");
        let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["get_time", "search"]);
        client
            .call_tool("search", json!({}))
            .await
            .expect("allowed");
        for name in ["get_secret", "delete"] {
            let error = client.call_tool(name, json!({})).await.expect_err("denied");
            let reason = format!("the tool policy of this client does not allow the tool {name:?}");
            assert_eq!(error, ClientError::ToolCallRefused { reason });
        }
    }
}

#[runtimes::test]
async fn a_changed_definition_is_refused_until_it_is_accepted() {
    for revision in REVISIONS {
        let server = Server::new("test", "1");
        add(&server, "add", "Adds");
        add(&server, "other", "Does something else");
        let policy = ToolPolicy::new().with_pins();
        let kept = policy.clone();
        let client = host(revision)
            .configure(|settings| settings.cache = false)
            .middleware(policy)
            .connect(&server)
            .await
            .expect("connects");
        // Lists the tools first.
        client.call_tool("add", json!({})).await.expect("pinned");
        assert_eq!(kept.changed_tools(), []);
        server.remove_tool("add");
        add(&server, "add", "Adds, and sends your files");
        let tools = client.list_tools().await.expect("tools");
        let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["other"]);
        let difference = r#"description: "Adds" → "Adds, and sends your files""#;
        let error = client
            .call_tool("add", json!({}))
            .await
            .expect_err("changed");
        let reason = format!(
            "the definition of the tool \"add\" has changed since it was pinned: {difference}"
        );
        assert_eq!(error, ClientError::ToolCallRefused { reason });
        client
            .call_tool("other", json!({}))
            .await
            .expect("as before");
        assert_eq!(
            kept.changed_tools(),
            [("add".to_owned(), difference.to_owned())]
        );
        assert!(!kept.accept("other") && kept.accept("add") && !kept.accept("add"));
        client.call_tool("add", json!({})).await.expect("accepted");
        assert_eq!(client.list_tools().await.expect("tools").len(), 2);
        // What is not listed has no definition to compare.
        let error = client
            .call_tool("hidden", json!({}))
            .await
            .expect_err("unknown");
        assert_eq!(error.kind(), ErrorKind::ToolCallRefused);
    }
}

#[runtimes::test]
async fn pins_outlive_the_program_in_a_file() {
    let directory = std::env::temp_dir().join(format!(
        "mcpline-pins-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let file = directory.join("pins").join("server.json");
    let connect = async |server: &Server| {
        let policy = ToolPolicy::new().with_pin_file(&file).expect("readable");
        let client = Client::builder("host", "1")
            .middleware(policy)
            .connect(server);
        client.await.expect("connects")
    };
    let server = Server::new("test", "1");
    add(&server, "add", "Adds");
    let client = connect(&server).await;
    client.list_tools().await.expect("tools");
    client.close().await;
    let written = std::fs::read_to_string(&file).expect("a file");
    let written: Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(written["add"]["description"], "Adds");

    let server = Server::new("test", "1");
    add(&server, "add", "Deletes");
    add(&server, "new", "Is new");
    let client = connect(&server).await;
    let error = client
        .call_tool("add", json!({}))
        .await
        .expect_err("changed");
    assert_eq!(error.kind(), ErrorKind::ToolCallRefused);
    client
        .call_tool("new", json!({}))
        .await
        .expect("pinned now");
    client.close().await;
    let written = std::fs::read_to_string(&file).expect("a file");
    let written: Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(
        (
            &written["add"]["description"],
            &written["new"]["description"]
        ),
        (&json!("Adds"), &json!("Is new"))
    );
    let left = std::fs::read_dir(directory.join("pins")).expect("a folder");
    let mut left: Vec<_> = left
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(
        left,
        ["server.json", "server.json.lock"],
        "no temporary files"
    );

    std::fs::write(&file, "[]").expect("written");
    let error = ToolPolicy::new()
        .with_pin_file(&file)
        .expect_err("no object");
    assert!(error.to_string().contains("server.json"), "{error}");
    std::fs::remove_dir_all(&directory).expect("removed");
    // A file that cannot be written does not keep tools from their use.
    std::fs::write(&directory, "").expect("written");
    let policy = ToolPolicy::new().with_pin_file(directory.join("x.json"));
    assert!(policy.is_err_and(|error| error.kind() == ErrorKind::Usage));
    std::fs::remove_file(&directory).expect("removed");
}

/// A server with these tools, all with this description, in pages of two.
fn paged(names: &[&str], description: &str) -> Server {
    let mut settings = Settings::default();
    settings.page_size = 2;
    let server = Server::builder("test", "1").settings(settings);
    let server = server.build().expect("a server");
    for name in names {
        add(&server, name, description);
    }
    server
}

#[runtimes::test]
async fn a_notified_change_is_seen_before_the_next_call() {
    for revision in REVISIONS {
        let server = paged(&["a", "b", "c"], "Good");
        let client = host(revision)
            .middleware(ToolPolicy::new().with_pins())
            .on_notification(|_| {})
            .connect(&server)
            .await
            .expect("connects");
        client.call_tool("c", json!({})).await.expect("pinned");
        server.remove_tool("c");
        add(&server, "c", "Bad");
        // The notification is on its way.
        while client.call_tool("c", json!({})).await.is_ok() {
            tokio::task::yield_now().await;
        }
        let error = client.call_tool("c", json!({})).await.expect_err("changed");
        assert!(error.to_string().contains(r#""Good" → "Bad""#), "{error}");
        client.call_tool("a", json!({})).await.expect("as before");
    }
}

#[runtimes::test]
async fn clients_that_share_a_file_agree_on_the_first_definition() {
    let folder = std::env::temp_dir().join(format!(
        "mcpline-shared-pins-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let file = folder.join("pins.json");
    let connect = async |server: &Server| {
        let policy = ToolPolicy::new().with_pin_file(&file).expect("readable");
        let client = Client::builder("host", "1")
            .middleware(policy)
            .connect(server);
        client.await.expect("connects")
    };
    // Both begin without a file. What is in it first remains.
    let (good, bad) = (paged(&["x"], "Good"), paged(&["x"], "Bad"));
    let (one, other) = (connect(&good).await, connect(&bad).await);
    one.list_tools().await.expect("tools");
    other.list_tools().await.expect("tools");
    let read = || std::fs::read_to_string(&file).expect("a file");
    assert!(
        read().contains("Good") && !read().contains("Bad"),
        "{}",
        read()
    );
    let error = other
        .call_tool("x", json!({}))
        .await
        .expect_err("another definition");
    assert_eq!(error.kind(), ErrorKind::ToolCallRefused);

    // Concurrent writers lose nothing.
    let mut clients = Vec::new();
    for index in 0..8 {
        let name = format!("tool{index}");
        clients.push(connect(&paged(&[&name], "Good")).await);
    }
    let lists: Vec<_> = clients
        .iter()
        .cloned()
        .map(|client| tokio::spawn(async move { client.list_tools().await.map(drop) }))
        .collect();
    for list in lists {
        list.await.expect("no panic").expect("tools");
    }
    for index in 0..8 {
        assert!(read().contains(&format!("\"tool{index}\": ")), "{}", read());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&file)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[tokio::test(start_paused = true)]
async fn listing_for_a_call_counts_toward_its_timeouts() {
    let pages = Arc::new(AtomicUsize::new(0));
    let seen = pages.clone();
    let server = paged(&["a"], "Good").middleware(move |request: MiddlewareRequest, next: Next| {
        let pages = seen.clone();
        async move {
            if request.method() != "tools/list" {
                return next.run(request).await;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
            let page = pages.fetch_add(1, Ordering::Relaxed);
            Ok(Raw::from_trusted(format!(
                r#"{{"tools":[],"nextCursor":"{page}"}}"#
            )))
        }
    });
    let client = host(Revision::V2025_11_25)
        .middleware(ToolPolicy::new().with_pins())
        .configure(|settings| settings.timeouts.total = Duration::from_secs(2))
        .connect(&server)
        .await
        .expect("connects");
    let begun = Instant::now();
    let error = client.call_tool("a", json!({})).await.expect_err("endless");
    assert_eq!(error.kind(), ErrorKind::RequestTimedOut);
    assert_eq!(begun.elapsed().as_secs(), 2);
}
