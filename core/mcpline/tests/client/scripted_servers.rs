//! A client and servers that are scripted line by line: eras, cursors, lost connections, endless input requests; and
//! what the client caches.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::tasks::Tasks;
use bytes::Bytes;
use mcpline::client::{
    Address, Channel, Client, ClientError, ClientTransport, Reissue, RequestOptions,
};
use mcpline::protocol::Era;
use mcpline::protocol::client::{HandshakeError, RequestTimeouts};
use mcpline::protocol::vocabulary::{
    CacheHints, CacheScope, CreateMessageParams, ElicitAction, ElicitResult, Extra, Root, Tool,
};
use mcpline::server::ToolOptions;
use mcpline::transport::http::HttpOptions;
use mcpline::transport::{self, Stop};
use mcpline::{Call, Context, Handler, Reply, Revision, Server, Settings, ToolReply};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// What a scripted server does with a message.
enum Act {
    Say(Value),
    Noise(&'static str),
    Nothing,
    Leave,
}

type Script = dyn Fn(usize, &Value) -> Vec<Act> + Send + Sync;

/// A server that a closure scripts: the closure gets the number of the connection and the message.
#[derive(Clone)]
struct Scripted {
    script: Arc<Script>,
    dialled: Arc<AtomicUsize>,
    /// The methods of the received requests and notifications.
    methods: Arc<Mutex<Vec<String>>>,
    tasks: Tasks,
}

fn scripted(script: impl Fn(usize, &Value) -> Vec<Act> + Send + Sync + 'static) -> Scripted {
    Scripted {
        script: Arc::new(script),
        dialled: Arc::default(),
        methods: Arc::default(),
        tasks: Tasks::default(),
    }
}

struct To(Scripted);

impl ClientTransport for To {
    fn dial(&self) -> Pin<Box<dyn Future<Output = std::io::Result<Channel>> + Send + '_>> {
        let connection = self.0.dialled.fetch_add(1, Ordering::Relaxed);
        let (to_server, mut sent) = mpsc::unbounded_channel::<Bytes>();
        let (answers, from_server) = mpsc::channel(100);
        let server = self.0.clone();
        self.0.tasks.spawn(async move {
            while let Some(message) = sent.recv().await {
                let message: Value = serde_json::from_slice(&message).expect("JSON");
                if let Some(method) = message["method"].as_str() {
                    server
                        .methods
                        .lock()
                        .expect("not poisoned")
                        .push(method.to_owned());
                }
                for act in (server.script)(connection, &message) {
                    let said = match act {
                        Act::Say(said) => Bytes::from(said.to_string()),
                        Act::Noise(text) => Bytes::from_static(text.as_bytes()),
                        Act::Nothing => continue,
                        Act::Leave => return,
                    };
                    if answers.send(Ok(said)).await.is_err() {
                        return;
                    }
                }
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

impl Scripted {
    fn address(&self) -> Address {
        Address::Custom(Arc::new(To(self.clone())))
    }

    fn methods(&self) -> Vec<String> {
        self.methods.lock().expect("not poisoned").clone()
    }

    fn count(&self, method: &str) -> usize {
        self.methods().iter().filter(|sent| *sent == method).count()
    }
}

fn result(to: &Value, result: Value) -> Vec<Act> {
    vec![Act::Say(
        json!({"jsonrpc": "2.0", "id": to["id"], "result": result}),
    )]
}

fn error(to: &Value, code: i64) -> Vec<Act> {
    let error = json!({"code": code, "message": "no"});
    vec![Act::Say(
        json!({"jsonrpc": "2.0", "id": to["id"], "error": error}),
    )]
}

fn capabilities() -> Value {
    json!({"tools": {}, "resources": {"subscribe": true}, "prompts": {}, "logging": {}})
}

fn shake(to: &Value, revision: &str) -> Vec<Act> {
    let info = json!({"name": "s", "version": "1"});
    result(
        to,
        json!({"protocolVersion": revision, "capabilities": capabilities(), "serverInfo": info}),
    )
}

fn discovered(to: &Value) -> Vec<Act> {
    result(
        to,
        json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities(),
               "ttlMs": 0, "cacheScope": "public"}),
    )
}

/// A server of the handshake era; `probe` answers `server/discover`.
fn legacy(
    probe: impl Fn(&Value) -> Vec<Act> + Send + Sync + 'static,
    others: impl Fn(usize, &Value) -> Vec<Act> + Send + Sync + 'static,
) -> Scripted {
    scripted(
        move |connection, message| match message["method"].as_str() {
            Some("server/discover") => probe(message),
            Some("initialize") => shake(message, "2025-06-18"),
            Some("notifications/initialized") => vec![],
            _ => others(connection, message),
        },
    )
}

#[tokio::test(start_paused = true)]
async fn detects_handshake_era_servers_by_any_answer_to_the_probe() {
    type Probe = Box<dyn Fn(&Value) -> Vec<Act> + Send + Sync>;
    let probes: Vec<(&str, Probe)> = vec![
        ("-32601", Box::new(|to| error(to, -32601))),
        ("-32602", Box::new(|to| error(to, -32602))),
        ("-32600", Box::new(|to| error(to, -32600))),
        ("another code", Box::new(|to| error(to, -1))),
        ("silence", Box::new(|_| vec![Act::Nothing])),
        ("noise", Box::new(|_| vec![Act::Noise("starting up …")])),
        ("an empty result", Box::new(|to| result(to, json!({})))),
        (
            "an answer to another id",
            Box::new(|_| vec![Act::Say(json!({"jsonrpc": "2.0", "id": 999, "result": {}}))]),
        ),
        (
            "an error without an id",
            Box::new(|_| {
                vec![Act::Say(
                    json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "?"}}),
                )]
            }),
        ),
        ("its end", Box::new(|_| vec![Act::Leave])),
    ];
    for (name, probe) in probes {
        let server = legacy(probe, |_, to| result(to, json!({"tools": []})));
        let client = Client::connect(server.address()).await.expect(name);
        assert_eq!(client.revision(), Revision::V2025_06_18, "{name}");
        assert_eq!(client.list_tools().await.expect(name), [], "{name}");
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn gives_up_on_a_silent_server_within_the_documented_bound() {
    let server = scripted(|_, _| vec![]);
    let began = tokio::time::Instant::now();
    let failed = Client::connect(server.address())
        .await
        .expect_err("silence");
    assert!(
        matches!(
            failed.cause(),
            ClientError::HandshakeFailed(HandshakeError::TimedOut { .. })
        ),
        "{failed:?}"
    );
    // The clock is paused: it shows how long the client waited.
    assert!(began.elapsed() <= Duration::from_secs(3 + 3 * 30));
}

#[runtimes::test]
async fn tries_the_remembered_era_first() {
    let server = legacy(|_| unreachable!(), |_, _| vec![]);
    let client = Client::builder("host", "1")
        .configure(|settings| settings.era = Some(Era::Legacy))
        .connect(server.address())
        .await
        .expect("connects");
    assert_eq!(client.revision(), Revision::V2025_06_18);
    assert_eq!(server.count("server/discover"), 0);
}

#[runtimes::test]
async fn writes_responses_as_the_servers_revision_does() {
    let (answer_sender, mut answers) = mpsc::unbounded_channel();
    let server = scripted(move |_, message| match message["method"].as_str() {
        Some("initialize") => shake(message, "2024-11-05"),
        Some("notifications/initialized") => {
            let ask = |id, method: &str, params| {
                Act::Say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            };
            let mut input_requests: Vec<_> = (0..3)
                .map(|case| {
                    let params = json!({"messages": [], "maxTokens": case});
                    ask(case, "sampling/createMessage", params)
                })
                .collect();
            input_requests.push(ask(3, "roots/list", json!({})));
            input_requests
        }
        Some(_) => error(message, -32601),
        None => {
            answer_sender
                .send(message.clone())
                .expect("somebody listens");
            vec![]
        }
    });
    let client = Client::builder("host", "1")
        .on_sample(|params: CreateMessageParams| async move {
            let text = |text: &str| json!({"type": "text", "text": text});
            let content = match params.max_tokens {
                0 => json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}),
                1 => json!([text("a"), text("b")]),
                _ => json!([{"type": "tool_use", "id": "1", "name": "t", "input": {}}]),
            };
            let answer = json!({"role": "assistant", "model": "m", "content": content});
            Ok(serde_json::from_value(answer).expect("an answer"))
        })
        .roots([Root::new("/x/../a")
            .expect("a root")
            .with_meta(Extra::from_iter([("x".to_owned(), json!(1))]))])
        .connect(server.address())
        .await
        .expect("connects");
    let mut by_id = [Value::Null, Value::Null, Value::Null, Value::Null];
    for _ in 0..by_id.len() {
        let answer = answers.recv().await.expect("an answer");
        let id = usize::try_from(answer["id"].as_u64().expect("a number")).expect("small");
        by_id[id] = answer;
    }
    let note = json!({"type": "text", "text": "[audio left out: audio/wav]"});
    assert_eq!(by_id[0]["result"]["content"], note);
    let joined = json!({"type": "text", "text": "a\nb"});
    assert_eq!(by_id[1]["result"]["content"], joined);
    assert_eq!(
        by_id[2]["error"],
        json!({"code": -32603, "message": "`content`: protocol revision 2024-11-05 has no tools in sampling"})
    );
    assert_eq!(by_id[3]["result"], json!({"roots": [{"uri": "file:///a"}]}));
    client.close().await;
}

#[runtimes::test]
async fn fails_without_a_common_revision() {
    let server = scripted(|_, to| match to["method"].as_str() {
        Some("initialize") => shake(to, "1999-01-01"),
        _ => error(to, -32601),
    });
    let failed = Client::connect(server.address())
        .await
        .expect_err("too old");
    let ClientError::HandshakeFailed(HandshakeError::NoCommonRevision { server, .. }) = &failed
    else {
        panic!("{failed:?}");
    };
    assert_eq!(server, &["1999-01-01"]);
}

#[runtimes::test]
async fn accepts_any_text_as_cursor_and_rejects_repeated_cursors() {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let server = legacy(
        |to| error(to, -32601),
        move |_, to| match to["params"]["cursor"].as_str() {
            None => result(to, json!({"tools": [tool("a")], "nextCursor": ""})),
            Some("") => result(to, json!({"tools": [tool("b")], "nextCursor": "last"})),
            Some(_) => result(to, json!({"tools": [tool("c")]})),
        },
    );
    let client = Client::connect(server.address()).await.expect("connects");
    let names: Vec<String> = client
        .list_tools()
        .await
        .expect("a list")
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(names, ["a", "b", "c"]);

    let server = legacy(
        |to| error(to, -32601),
        |_, to| result(to, json!({"tools": [], "nextCursor": "same"})),
    );
    let client = Client::connect(server.address()).await.expect("connects");
    let failed = client.list_tools().await.expect_err("a circle");
    assert!(
        matches!(failed, ClientError::InvalidResponse { .. }),
        "{failed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_a_call_includes_listing_tools_again() {
    let lists = AtomicUsize::new(0);
    let server = scripted(move |_, to| match to["method"].as_str() {
        Some("server/discover") => discovered(to),
        Some("tools/call") => error(to, -32020),
        Some("tools/list") if lists.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) => {
            result(to, json!({"tools": [], "nextCursor": "more"}))
        }
        _ => vec![Act::Nothing],
    });
    let client = Client::connect(server.address()).await.expect("connects");
    for (idle, total) in [(5, 60), (60, 5)] {
        let mut options = RequestOptions::new();
        options.timeouts = Some(RequestTimeouts {
            idle: Duration::from_secs(idle),
            total: Duration::from_secs(total),
        });
        let begun = tokio::time::Instant::now();
        let outcome = client.call_tool_with("x", json!({}), &options).await;
        let Err(ClientError::RequestTimedOut { waited, in_all }) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!((waited, in_all), (Duration::from_secs(5), total == 5));
        assert_eq!(begun.elapsed().as_secs(), 5);
    }
}

#[runtimes::test]
async fn rejects_malformed_results() {
    let server = legacy(
        |to| error(to, -32601),
        |_, to| match to["method"].as_str() {
            Some("tools/list") => result(to, json!({"tools": [{"name": "x"}]})),
            _ => result(to, json!({"content": 7})),
        },
    );
    let client = Client::connect(server.address()).await.expect("connects");
    for failed in [
        client.list_tools().await.map(drop).expect_err("no schema"),
        client
            .call_tool("x", json!({}))
            .await
            .map(drop)
            .expect_err("no content"),
    ] {
        assert!(
            matches!(failed, ClientError::InvalidResponse { .. }),
            "{failed:?}"
        );
    }
}

#[runtimes::test]
async fn accepts_meta_in_the_params_or_the_options_but_not_both() {
    let server = scripted(|_, to| match to["method"].as_str() {
        Some("server/discover") => discovered(to),
        _ => result(
            to,
            json!({"meta": to["params"]["_meta"], "name": to["params"]["name"]}),
        ),
    });
    let client = Client::connect(server.address()).await.expect("connects");
    let raw = |value: Value| mcpline::protocol::Raw::from_serialize(&value).expect("JSON");
    let within = raw(json!({"name": "x", "_meta": {"com.example/a": 1}}));
    let answer = client
        .request("x/y", Some(&within), &RequestOptions::new())
        .await;
    let answer: Value = answer.expect("a result").decode().expect("JSON");
    assert_eq!(answer["meta"]["com.example/a"], 1);
    assert_eq!(
        answer["meta"]["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(answer["name"], "x");
    let mut options = RequestOptions::new();
    options.meta = Some(raw(json!({"com.example/b": 2})));
    let failed = client.request("x/y", Some(&within), &options).await;
    assert!(matches!(failed, Err(ClientError::Usage(_))), "{failed:?}");
}

/// A server that closes the connection during the first call, and answers the second.
fn leaving() -> Scripted {
    let calls = AtomicUsize::new(0);
    legacy(
        |to| error(to, -32601),
        move |_, to| match to["method"].as_str() {
            Some("tools/list") => result(
                to,
                json!({"tools": [
                    {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
                    {"name": "again", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": true}},
                    {"name": "pay", "inputSchema": {"type": "object"}},
                ]}),
            ),
            _ if calls.fetch_add(1, Ordering::Relaxed) == 0 => vec![Act::Leave],
            _ => result(to, json!({"content": [{"type": "text", "text": "done"}]})),
        },
    )
}

#[runtimes::test]
async fn reissues_calls_of_unknown_outcome_only_if_safe() {
    for (tool, reissue, trusted, again) in [
        // Annotations of tools count only if the host trusts the server.
        ("read", Reissue::IfSafe, false, false),
        ("again", Reissue::IfSafe, false, false),
        ("read", Reissue::IfSafe, true, true),
        ("again", Reissue::IfSafe, true, true),
        ("pay", Reissue::IfSafe, true, false),
        ("pay", Reissue::Always, false, true),
        ("read", Reissue::Never, true, false),
    ] {
        let server = leaving();
        let client = Client::builder("host", "1")
            .configure(|settings| settings.trust_tool_annotations = trusted)
            .connect(server.address())
            .await
            .expect("connects");
        client.list_tools().await.expect("a list");
        let mut options = RequestOptions::new();
        options.reissue = reissue;
        let outcome = client.call_tool_with(tool, json!({}), &options).await;
        if again {
            outcome.expect("the second time");
            assert_eq!(server.count("tools/call"), 2, "{tool} {reissue:?}");
        } else {
            let failed = outcome.expect_err("its outcome is unknown");
            assert!(
                failed.is_outcome_unknown() && !failed.is_retry_safe(),
                "{failed:?}"
            );
            assert_eq!(server.count("tools/call"), 1, "{tool} {reissue:?}");
            // The next request uses a new connection.
            client.call_tool(tool, json!({})).await.expect("anew");
        }
        assert_eq!(server.count("initialize"), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn reissues_a_request_at_most_twice() {
    for method in ["tools/call", "resources/read"] {
        let server = legacy(
            |to| error(to, -32601),
            |_, to| match to["method"].as_str() {
                Some("tools/list") => result(
                    to,
                    json!({"tools": [{"name": "x", "inputSchema": {"type": "object"},
                        "annotations": {"readOnlyHint": true}}]}),
                ),
                _ => vec![Act::Leave],
            },
        );
        let client = Client::builder("host", "1")
            .configure(|settings| settings.trust_tool_annotations = true)
            .connect(server.address())
            .await
            .expect("connects");
        client.list_tools().await.expect("a list");
        let failed = match method {
            "tools/call" => client.call_tool("x", json!({})).await.map(drop),
            _ => client.read_resource("test://a").await.map(drop),
        };
        assert!(failed.expect_err("it leaves").is_outcome_unknown());
        assert_eq!(server.count(method), 3, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn pauses_reconnections_to_a_server_that_keeps_leaving() {
    let server = legacy(|to| error(to, -32601), |_, _| vec![Act::Leave]);
    let client = Client::connect(server.address()).await.expect("connects");
    // Each is sent three times at most.
    for _ in 0..2 {
        let failed = client.list_tools().await.expect_err("it leaves");
        assert!(
            matches!(failed, ClientError::ConnectionLost { .. }),
            "{failed:?}"
        );
    }
    let dialled = server.dialled.load(Ordering::Relaxed);
    assert!((2..=8).contains(&dialled), "{dialled} connections");
    let failed = client.list_tools().await.expect_err("it is left alone");
    assert!(
        matches!(failed, ClientError::ConnectionLost { .. }),
        "{failed:?}"
    );
    assert_eq!(server.dialled.load(Ordering::Relaxed), dialled);
    tokio::time::advance(Duration::from_secs(31)).await;
    client.list_tools().await.expect_err("it still leaves");
    assert!(server.dialled.load(Ordering::Relaxed) > dialled);
}

#[runtimes::test]
async fn restores_subscriptions_and_the_log_level_after_a_reconnection() {
    let server = legacy(
        |to| error(to, -32601),
        |connection, to| match to["method"].as_str() {
            Some("tools/list") if connection == 0 => vec![Act::Leave],
            Some("tools/list") => result(to, json!({"tools": []})),
            _ => result(to, json!({})),
        },
    );
    let client = Client::connect(server.address()).await.expect("connects");
    client.subscribe("test://a").await.expect("subscribed");
    client
        .set_log_level(mcpline::protocol::vocabulary::LoggingLevel::Error)
        .await
        .expect("a level");
    client.list_tools().await.expect("the second time");
    // They are sent concurrently with the list request, not before it.
    for method in ["resources/subscribe", "logging/setLevel"] {
        let restored = async {
            while server.count(method) < 2 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let restored = tokio::time::timeout(Duration::from_secs(30), restored).await;
        restored.unwrap_or_else(|_| panic!("{method} was not sent again"));
        assert_eq!(server.count(method), 2);
    }
}

fn asking_server() -> Scripted {
    scripted(|_, to| match to["method"].as_str() {
        Some("server/discover") => discovered(to),
        _ => result(
            to,
            json!({"resultType": "input_required", "requestState": "s", "inputRequests": {
                "q": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {
                    "type": "object", "properties": {"x": {"type": "string", "default": "d"}}}}}}}),
        ),
    })
}

#[runtimes::test]
async fn limits_the_rounds_of_input_requests() {
    let server = asking_server();
    let answers = Arc::new(AtomicUsize::new(0));
    let counted = answers.clone();
    let client = Client::builder("host", "1")
        .configure(|settings| settings.max_input_rounds = 3)
        .on_elicit(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Ok(ElicitResult::new(ElicitAction::Decline)) }
        })
        .connect(server.address())
        .await
        .expect("connects");
    let failed = client
        .call_tool("x", json!({}))
        .await
        .expect_err("it asks again");
    assert_eq!(failed, ClientError::TooManyRounds { rounds: 3 });
    assert_eq!(answers.load(Ordering::Relaxed), 3);
    // In manual mode, the caller answers the input requests.
    let mut options = RequestOptions::new();
    options.manual_results = true;
    let params = mcpline::protocol::Raw::from_trusted(r#"{"name":"x"}"#);
    let input_required = client
        .request("tools/call", Some(&params), &options)
        .await
        .expect("a result");
    let needed =
        mcpline::protocol::client::InputRequiredResult::of(&input_required).expect("well formed");
    assert_eq!(needed.expect("it asks").input_requests[0].key, "q");
    assert_eq!(answers.load(Ordering::Relaxed), 3);
}

#[runtimes::test]
async fn requests_that_require_input_fail_without_a_handler() {
    let server = asking_server();
    let client = Client::connect(server.address()).await.expect("connects");
    let failed = client
        .call_tool("x", json!({}))
        .await
        .expect_err("nobody answers");
    assert!(
        matches!(failed, ClientError::InputRequestFailed { .. }),
        "{failed:?}"
    );
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[runtimes::test]
async fn serves_fresh_lists_from_the_cache_unless_bypassed() {
    let server = scripted(|_, to| match to["method"].as_str() {
        Some("server/discover") => discovered(to),
        _ => result(
            to,
            json!({"resultType": "complete", "tools": [], "ttlMs": 60_000, "cacheScope": "private"}),
        ),
    });
    let client = Client::connect(server.address()).await.expect("connects");
    client.list_tools().await.expect("a list");
    client.list_tools().await.expect("a list");
    assert_eq!(server.count("tools/list"), 1);
    let mut options = RequestOptions::new();
    options.fresh = true;
    client
        .list_tools_page(None, &options)
        .await
        .expect("a page");
    assert_eq!(server.count("tools/list"), 2);
}

#[runtimes::test]
async fn list_changes_invalidate_cached_lists() {
    let mut settings = Settings::default();
    settings.list_cache = CacheHints::new(60_000, CacheScope::Private);
    let server = Server::builder("test", "1")
        .settings(settings)
        .build()
        .expect("a server")
        .tool("one", "One", |_: Nothing, _: Context| async { "one" });
    let (sender, mut methods) = mpsc::unbounded_channel();
    let client = Client::builder("host", "1")
        .on_notification(move |notification| {
            // The test may be over.
            let _ = sender.send(notification.method.as_str().to_owned());
        })
        .connect(&server)
        .await
        .expect("connects");
    while methods.recv().await.expect("the client lives")
        != "notifications/subscriptions/acknowledged"
    {}
    assert_eq!(client.list_tools().await.expect("a list").len(), 1);
    let server = server.tool("two", "Two", |_: Nothing, _: Context| async { "two" });
    while methods.recv().await.expect("the client lives") != "notifications/tools/list_changed" {}
    assert_eq!(client.list_tools().await.expect("a list").len(), 2);
    drop(server);
}

/// A tool that counts its calls.
struct Counting(Arc<AtomicUsize>);

impl Handler for Counting {
    fn call(&self, call: Call) {
        self.0.fetch_add(1, Ordering::Relaxed);
        call.reply(Ok(Reply::Tool(ToolReply::default())));
    }
}

#[runtimes::test]
async fn a_header_mismatch_refreshes_the_tool_list_and_repeats_the_call() {
    let schema = |header: &str| json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": header}}});
    let calls = Arc::new(AtomicUsize::new(0));
    let server = Server::new("test", "1");
    let add = |header: &str| {
        let tool = Tool::new("where", schema(header));
        let handler = Arc::new(Counting(calls.clone()));
        server
            .add_tool(tool, ToolOptions::default(), handler)
            .expect("added");
    };
    add("Region");
    let http = transport::http::http("127.0.0.1:0", HttpOptions::default());
    let http = http.await.expect("a port");
    let url = format!("http://{}/mcp", http.address());
    let stop = Stop::new();
    let (serving, stopped) = (server.clone(), stop.clone());
    tokio::spawn(async move { serving.serve_until(http, stopped).await });
    let client = Client::connect(url).await.expect("connects");
    client.list_tools().await.expect("a list");
    client
        .call_tool("where", json!({"region": "eu"}))
        .await
        .expect("a result");
    server.remove_tool("where");
    add("Area");
    client
        .call_tool("where", json!({"region": "eu"}))
        .await
        .expect("a result");
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    client.close().await;
    stop.stop();
}

#[runtimes::test]
async fn requests_of_a_modern_server_get_no_response() {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = sent.clone();
    let server = scripted(move |_, message| {
        let what = message["method"].as_str().unwrap_or("a response");
        seen.lock().expect("not poisoned").push(what.to_owned());
        let mut said: Vec<Act> = ["ping", "roots/list", "no/such"]
            .into_iter()
            .map(|method| Act::Say(json!({"jsonrpc": "2.0", "id": method, "method": method})))
            .collect();
        said.extend(match what {
            "server/discover" => return discovered(message),
            _ => result(message, json!({"resultType": "complete", "tools": []})),
        });
        said
    });
    let client = Client::builder("host", "1")
        .roots([Root::new("file:///a").expect("a root")])
        .connect(server.address())
        .await
        .expect("connects");
    client.list_tools().await.expect("a list");
    // Messages arrive in order: what was sent before is known once this one is answered.
    client.list_tools().await.expect("a list");
    let sent = sent.lock().expect("not poisoned").clone();
    assert_eq!(sent, ["server/discover", "tools/list", "tools/list"]);
}
