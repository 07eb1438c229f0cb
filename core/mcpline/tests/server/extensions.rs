//! Extensions: values that add methods, settings and result types to a server or a client.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::served_transports::served_transports;
use crate::support::{Client, Nothing};
use mcpline::client::{self, Client as McpClient, ClientBuilder, ClientError, RequestOptions};
use mcpline::protocol::Raw;
use mcpline::protocol::mrtr::KeyRing;
use mcpline::protocol::vocabulary::{
    CacheHints, CacheScope, ElicitParams, FieldSchema, FormSchema, JsonObject, Prompt, Resource,
    Tool,
};
use mcpline::server::{Extension, MethodOptions, Reply, ToolOptions};
use mcpline::{Context, ErrorKind, HandlerError, Revision, Server, Settings};
use serde_json::{Value, json};
use tokio::sync::Notify;

const STAMPS: &str = "com.example/stamps";

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        other => panic!("{other}"),
    }
}

fn raw(value: &Value) -> Raw {
    Raw::from_serialize(value).expect("JSON")
}

fn as_json(raw: &Raw) -> Value {
    raw.decode().expect("JSON")
}

/// A server with the extension, and the notifications that it received.
fn stamping() -> (Server, Arc<Mutex<Vec<Value>>>) {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let noted = notes.clone();
    let stamps = Extension::new(STAMPS)
        .with_settings(object(json!({"colors": 3})))
        .on_request("acme/issue", |params: Value, ctx: Context| async move {
            let settings = ctx
                .client_extension(STAMPS)
                .map(|settings| as_json(&settings));
            Ok::<_, HandlerError>(json!({"color": params["color"], "for": settings}))
        })
        .on_notification("acme/used", move |params: Value, _: Context| {
            let noted = noted.clone();
            async move { noted.lock().expect("not poisoned").push(params) }
        })
        .register(|server| {
            server.add_tool_fn(
                Tool::new("collect", json!({"type": "object"})),
                ToolOptions::default(),
                |_: Nothing, ctx: Context| async move {
                    ctx.require_extension(STAMPS)?;
                    Ok::<_, HandlerError>("collected")
                },
            )
        })
        .on_result("tools/list", |result, settings| {
            let wanted = as_json(settings);
            result.insert("stamps".to_owned(), wanted);
        });
    let server = Server::builder("shop", "1").extension(stamps).build();
    (server.expect("a server"), notes)
}

fn host(revision: Revision) -> ClientBuilder {
    McpClient::builder("host", "1").configure(|settings| settings.revisions = vec![revision])
}

fn collector(revision: Revision) -> ClientBuilder {
    let settings = object(json!({"album": "blue"}));
    host(revision).extension(client::Extension::new(STAMPS).with_settings(settings))
}

fn code(outcome: Result<Raw, ClientError>) -> (i64, Value) {
    let Err(ClientError::Rpc(error)) = outcome else {
        panic!("{outcome:?}");
    };
    let data = error.data.map_or(Value::Null, |data| as_json(&data));
    (error.code.0, data)
}

#[runtimes::test]
async fn both_sides_find_an_extension_on_every_revision_and_transport() {
    let (server, notes) = stamping();
    let plain = RequestOptions::new();
    let issue = raw(&json!({"color": "red"}));
    for revision in Revision::ALL {
        for transport in served_transports(&server, *revision).await {
            let place = format!("{revision}, {}", transport.name);
            let client = collector(*revision).connect((transport.address)()).await;
            let client = client.expect(&place);
            let declared = client.server_capabilities().extensions.clone();
            let declared = declared.unwrap_or_default();
            assert_eq!(declared[STAMPS], object(json!({"colors": 3})), "{place}");
            let stamp = client.request("acme/issue", Some(&issue), &plain).await;
            let stamp = as_json(&stamp.expect(&place));
            assert_eq!(stamp["color"], "red", "{place}");
            assert_eq!(stamp["for"], json!({"album": "blue"}), "{place}");
            client.close().await;
        }
    }
    assert!(notes.lock().expect("not poisoned").is_empty());
}

#[runtimes::test]
async fn a_client_without_the_extension_is_refused_its_methods() {
    let (server, _) = stamping();
    let plain = RequestOptions::new();
    for revision in Revision::ALL {
        for transport in served_transports(&server, *revision).await {
            let place = format!("{revision}, {}", transport.name);
            let client = host(*revision)
                .connect((transport.address)())
                .await
                .expect(&place);
            let needed = json!({"requiredCapabilities": {"extensions": {STAMPS: {}}}});
            let refused = client.request("acme/issue", None, &plain).await;
            assert_eq!(code(refused), (-32021, needed.clone()), "{place}");
            let refused = raw(&json!({"name": "collect", "arguments": {}}));
            let refused = client.request("tools/call", Some(&refused), &plain).await;
            assert_eq!(code(refused), (-32021, needed), "{place}");
            let error = client.request("acme/none", None, &plain).await;
            assert_eq!(code(error).0, -32601, "{place}");
            client.close().await;
        }
    }
}

#[runtimes::test]
async fn handles_extension_notifications_only_of_clients_that_declare_it() {
    let (server, notes) = stamping();
    for revision in ["2024-11-05", "2025-11-25"] {
        for declares in [false, true] {
            let mut client = Client::modern(&server);
            if declares {
                client.capabilities["extensions"] = json!({STAMPS: {}});
            }
            let mut client = client.shake_hands(revision).await;
            client.send(
                json!({"jsonrpc": "2.0", "method": "acme/used", "params": {"declares": declares}}),
            );
            // The ping is answered after the notification was handled.
            let id = client.begin("ping", json!({}));
            client.response(&id).await.expect("a pong");
        }
    }
    // A 2026-07-28 notification may carry its client's capabilities.
    let mut client = Client::modern(&server);
    for (capabilities, params) in [
        (None, json!({"declares": "nothing"})),
        (Some(json!({})), json!({"declares": false})),
        (
            Some(json!({"extensions": {STAMPS: {}}})),
            json!({"declares": true}),
        ),
    ] {
        let mut params = params;
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        if let Some(capabilities) = capabilities {
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        }
        client.send(json!({"jsonrpc": "2.0", "method": "acme/used", "params": params}));
    }
    let id = client.begin_modern("tools/list", json!({}));
    client.response(&id).await.expect("a list");
    let seen = notes.lock().expect("not poisoned").clone();
    let declaring = json!({"declares": true});
    let silent = json!({"declares": "nothing"});
    assert_eq!(
        seen,
        [declaring.clone(), declaring.clone(), silent, declaring]
    );
}

#[runtimes::test]
async fn results_are_changed_for_clients_that_declare_the_extension() {
    let (server, _) = stamping();
    let plain = RequestOptions::new();
    for revision in Revision::ALL {
        let with = collector(*revision)
            .connect(&server)
            .await
            .expect("a client");
        let without = host(*revision).connect(&server).await.expect("a client");
        let changed = with.request("tools/list", None, &plain).await;
        let changed = as_json(&changed.expect("a list"));
        assert_eq!(changed["stamps"], json!({"album": "blue"}), "{revision}");
        assert_eq!(changed["tools"][0]["name"], "collect", "{revision}");
        let plain = without.request("tools/list", None, &plain).await;
        let plain = as_json(&plain.expect("a list"));
        assert_eq!(plain["stamps"], Value::Null, "{revision}");
        with.close().await;
        without.close().await;
    }
}

#[runtimes::test]
async fn results_changed_by_an_extension_are_private() {
    let mut settings = Settings::default();
    settings.list_cache = CacheHints::new(60_000, CacheScope::Public);
    let changing = Extension::new(STAMPS).on_result("tools/list", |result, _| {
        result.insert("a".to_owned(), Value::Null);
    });
    let server = Server::builder("shop", "1")
        .settings(settings)
        .declare_tools()
        .extension(changing);
    let server = server.build().expect("a server");
    let plain = RequestOptions::new();
    for (builder, scope) in [
        (host(Revision::V2026_07_28), "public"),
        (collector(Revision::V2026_07_28), "private"),
    ] {
        let client = builder.connect(&server).await.expect("a client");
        let list = client.request("tools/list", None, &plain).await;
        assert_eq!(as_json(&list.expect("a list"))["cacheScope"], scope);
        client.close().await;
    }
}

#[runtimes::test]
async fn a_panicking_hook_leaves_the_result_unchanged() {
    let clumsy = Extension::new(STAMPS)
        .on_result("tools/list", |result, _| {
            result.clear();
            panic!("a hook of the test");
        })
        .on_result("tools/list", |result, _| {
            result.insert("second".to_owned(), Value::Bool(true));
        });
    let server = Server::builder("shop", "1")
        .declare_tools()
        .extension(clumsy);
    let server = server.build().expect("a server");
    let client = collector(Revision::V2026_07_28)
        .connect(&server)
        .await
        .expect("a client");
    let list = client
        .request("tools/list", None, &RequestOptions::new())
        .await;
    let list = as_json(&list.expect("a list"));
    assert_eq!(list["tools"], json!([]));
    assert_eq!(list["second"], true);
    client.close().await;
}

#[runtimes::test]
async fn a_hook_sets_no_type_but_the_types_of_its_extension() {
    let typing = |own_type: &'static str| {
        Extension::new(STAMPS)
            .with_result_type("acme/stamped")
            .on_result("tools/list", move |result, _| {
                result.insert("resultType".to_owned(), own_type.into());
            })
    };
    for (own_type, is_kept) in [
        ("acme/stamped", true),
        ("acme/other", false),
        ("input_required", false),
    ] {
        let server = Server::builder("shop", "1").declare_tools();
        let server = server
            .extension(typing(own_type))
            .build()
            .expect("a server");
        let client = collector(Revision::V2026_07_28)
            .connect(&server)
            .await
            .expect("a client");
        let mut manual_results = RequestOptions::new();
        manual_results.manual_results = true;
        let list = client.request("tools/list", None, &manual_results).await;
        let list = as_json(&list.expect(own_type));
        let expected = if is_kept { own_type } else { "complete" };
        assert_eq!(list["resultType"], expected);
        client.close().await;
    }
}

#[test]
fn results_of_sessions_cannot_be_changed() {
    for (method, is_accepted) in [
        ("tools/call", true),
        ("resources/templates/list", true),
        ("acme/own", true),
        ("initialize", false),
        ("ping", false),
        ("server/discover", false),
        ("logging/setLevel", false),
        ("resources/subscribe", false),
        ("subscriptions/listen", false),
        ("sampling/createMessage", false),
    ] {
        let extension = Extension::new(STAMPS).on_result(method, |_, _| {});
        let built = Server::builder("shop", "1").extension(extension).build();
        assert_eq!(built.is_ok(), is_accepted, "{method}");
    }
}

#[runtimes::test]
async fn a_custom_result_of_an_extensions_type_needs_the_extension() {
    let receipts = Extension::new("com.example/receipts").with_result_type("acme/receipt");
    let server = Server::builder("shop", "1").extension(receipts);
    let server =
        server
            .build()
            .expect("a server")
            .on_request("acme/buy", |_: Nothing, _: Context| async {
                Ok::<_, HandlerError>(json!({"resultType": "acme/receipt", "token": 1}))
            });
    let client = host(Revision::V2026_07_28).connect(&server).await;
    let client = client.expect("a client");
    let plain = RequestOptions::new();
    let refused = client.request("acme/buy", None, &plain).await;
    let refused = refused.expect_err("the extension is missing");
    assert_eq!(refused.rpc().expect("an error").code.0, -32021, "{refused}");
    client.close().await;
}

#[runtimes::test]
async fn notifications_of_an_extension_are_dropped_for_clients_without_it() {
    let (server, notes) = stamping();
    for revision in Revision::ALL {
        for (client, expected) in [(host(*revision), 0), (collector(*revision), 1)] {
            notes.lock().expect("not poisoned").clear();
            let client = client.connect(&server).await.expect("a client");
            let params = raw(&json!({"color": "red", "_meta": {"com.example/a": 1}}));
            client
                .notify("acme/used", Some(&params))
                .await
                .expect("sent");
            // Handled in order.
            client.list_tools().await.expect("an answer");
            client.close().await;
            let received = notes.lock().expect("not poisoned").clone();
            assert_eq!(received.len(), expected, "{revision}: {received:?}");
        }
    }
}

/// A server whose tool returns a receipt to clients with the extension, and the method that redeems it.
fn selling() -> Server {
    let receipts = Extension::new("com.example/receipts")
        .with_result_type("acme/receipt")
        .on_request("acme/redeem", |params: Value, _: Context| async move {
            let text = format!("bought for {}", params["token"].as_str().unwrap_or("?"));
            Ok::<_, HandlerError>(json!({"content": [{"type": "text", "text": text}]}))
        })
        .register(|server| {
            server.add_tool_fn(
                Tool::new("buy", json!({"type": "object"}))
                    .with_output_schema(json!({"type": "object", "required": ["never"]})),
                ToolOptions::default(),
                |_: Nothing, _: Context| async {
                    let receipt = json!({"resultType": "acme/receipt", "token": "t-1"});
                    Ok::<_, HandlerError>(Reply::Result(raw(&receipt)))
                },
            )
        });
    let server = Server::builder("shop", "1").extension(receipts);
    let server = server.extension(Extension::new(STAMPS)).build();
    server.expect("a server")
}

/// A client extension that redeems receipts and counts them in `taken`.
fn receipts(taken: &Arc<AtomicUsize>) -> client::Extension {
    let taken = taken.clone();
    client::Extension::new("com.example/receipts").on_result_type("acme/receipt", move |receipt| {
        taken.fetch_add(1, Ordering::SeqCst);
        async move {
            assert_eq!(receipt.method(), "tools/call");
            let token = as_json(receipt.result())["token"].clone();
            let params = raw(&json!({"token": token}));
            let plain = RequestOptions::new();
            receipt.request("acme/redeem", Some(&params), &plain).await
        }
    })
}

#[runtimes::test]
async fn the_client_resolves_results_of_an_extensions_type() {
    let taken = Arc::new(AtomicUsize::new(0));
    let server = selling();
    for transport in served_transports(&server, Revision::V2026_07_28).await {
        let before = taken.load(Ordering::SeqCst);
        let client = host(Revision::V2026_07_28).extension(receipts(&taken));
        let client = client
            .connect((transport.address)())
            .await
            .expect(transport.name);
        let bought = client
            .call_tool("buy", json!({}))
            .await
            .expect(transport.name);
        client.list_tools().await.expect(transport.name);
        let bought = serde_json::to_value(&bought).expect("JSON");
        assert_eq!(
            bought["content"][0]["text"], "bought for t-1",
            "{}",
            transport.name
        );
        assert_eq!(
            taken.load(Ordering::SeqCst),
            before + 1,
            "{}",
            transport.name
        );
        let mut manual_results = RequestOptions::new();
        manual_results.manual_results = true;
        let call = raw(&json!({"name": "buy", "arguments": {}}));
        let receipt = client
            .request("tools/call", Some(&call), &manual_results)
            .await;
        let receipt = as_json(&receipt.expect(transport.name));
        assert_eq!(receipt["resultType"], "acme/receipt", "{}", transport.name);
        assert_eq!(
            taken.load(Ordering::SeqCst),
            before + 1,
            "{}",
            transport.name
        );
        client.close().await;
    }
}

#[runtimes::test]
async fn results_of_an_extensions_type_are_not_sent_to_other_clients() {
    let server = selling();
    let taken = Arc::new(AtomicUsize::new(0));
    let call = raw(&json!({"name": "buy", "arguments": {}}));
    let plain = RequestOptions::new();
    for builder in [
        host(Revision::V2026_07_28),
        // It declares another extension that the server also has.
        collector(Revision::V2026_07_28),
        host(Revision::V2025_11_25),
    ] {
        let client = builder.connect(&server).await.expect("a client");
        let needed = json!({"requiredCapabilities": {"extensions": {"com.example/receipts": {}}}});
        let refused = client.request("tools/call", Some(&call), &plain).await;
        assert_eq!(code(refused), (-32021, needed));
        client.close().await;
    }
    // That revision has no result types.
    let client = host(Revision::V2025_11_25).extension(receipts(&taken));
    let client = client.connect(&server).await.expect("a client");
    let bought = client.call_tool("buy", json!({})).await;
    assert_eq!(bought.expect("a tool error").is_error, Some(true));
    client.close().await;
    assert_eq!(taken.load(Ordering::SeqCst), 0);
}

#[runtimes::test]
async fn results_of_an_unregistered_type_are_not_sent() {
    let server = Server::builder("shop", "1").extension(Extension::new("com.example/receipts"));
    let server = server.build().expect("a server");
    let added = server.add_tool_fn(
        Tool::new("buy", json!({"type": "object"})),
        ToolOptions::default(),
        |_: Nothing, _: Context| async {
            Ok::<_, HandlerError>(Reply::Result(raw(&json!({"resultType": "acme/receipt"}))))
        },
    );
    added.expect("free");
    let client = host(Revision::V2026_07_28).extension(receipts(&Arc::default()));
    let client = client.connect(&server).await.expect("a client");
    let bought = client.call_tool("buy", json!({})).await;
    assert_eq!(bought.expect("a tool error").is_error, Some(true));
    client.close().await;
}

#[runtimes::test]
async fn resources_and_prompts_can_return_results_of_an_extensions_type() {
    let receipt = || Reply::Result(raw(&json!({"resultType": "acme/receipt", "token": "t-2"})));
    let receipts_of = Extension::new("com.example/receipts").with_result_type("acme/receipt");
    let server = Server::builder("shop", "1").extension(receipts_of);
    let server = server
        .build()
        .expect("a server")
        .resource(
            Resource::new("shop://a", "a"),
            move || async move { receipt() },
        )
        .prompt(Prompt::new("a"), move |_: Nothing, _: Context| async move {
            receipt()
        });
    let ordinary = client::Extension::new("com.example/receipts").on_result_type(
        "acme/receipt",
        |receipt| async move {
            let text = as_json(receipt.result())["token"].clone();
            Ok(match receipt.method() {
                "resources/read" => raw(&json!({"contents": [{"uri": "shop://a", "text": text}], "ttlMs": 60_000})),
                _ => raw(&json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]})),
            })
        },
    );
    let client = host(Revision::V2026_07_28).extension(ordinary);
    let client = client.connect(&server).await.expect("a client");
    let plain = RequestOptions::new();
    let uri = raw(&json!({"uri": "shop://a"}));
    for _ in 0..2 {
        let read = client.request("resources/read", Some(&uri), &plain).await;
        let read = as_json(&read.expect("contents"));
        assert_eq!(read["contents"][0]["text"], "t-2");
    }
    let name = raw(&json!({"name": "a"}));
    let got = client.request("prompts/get", Some(&name), &plain).await;
    let got = as_json(&got.expect("messages"));
    assert_eq!(got["messages"][0]["content"]["text"], "t-2");
    client.close().await;
}

/// A server whose results of `acme/redeem` must always be redeemed again.
fn endless() -> Server {
    let receipt = || json!({"resultType": "acme/receipt", "token": "t-1"});
    let receipts = Extension::new("com.example/receipts")
        .with_result_type("acme/receipt")
        .on_request("acme/redeem", move |_: Value, _: Context| async move {
            Ok::<_, HandlerError>(receipt())
        });
    let server = Server::builder("shop", "1").extension(receipts).build();
    server.expect("a server")
}

#[runtimes::test]
async fn gives_up_on_a_server_that_never_returns_an_ordinary_result() {
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = taken.clone();
    let redeeming = client::Extension::new("com.example/receipts").on_result_type(
        "acme/receipt",
        move |receipt| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                receipt
                    .request("acme/redeem", None, &RequestOptions::new())
                    .await
            }
        },
    );
    let client = host(Revision::V2026_07_28).extension(redeeming);
    let client = client.connect(&endless()).await.expect("a client");
    let given_up = client
        .request("acme/redeem", None, &RequestOptions::new())
        .await;
    let given_up = given_up.expect_err("no result");
    assert!(
        matches!(given_up.cause(), ClientError::LimitExceeded(_)),
        "{given_up}"
    );
    assert_eq!(taken.load(Ordering::SeqCst), 1024);
    // The count starts again with each request.
    let given_up = client
        .request("acme/redeem", None, &RequestOptions::new())
        .await;
    given_up.expect_err("no result");
    assert_eq!(taken.load(Ordering::SeqCst), 2048);
    client.close().await;
}

#[runtimes::test]
async fn a_panicking_resolver_fails_only_its_call() {
    let panicking = client::Extension::new("com.example/receipts")
        .on_result_type("acme/receipt", |_| async {
            panic!("a resolver of the test")
        });
    let client = host(Revision::V2026_07_28).extension(panicking);
    let client = client.connect(&selling()).await.expect("a client");
    let failed = client
        .call_tool("buy", json!({}))
        .await
        .expect_err("a panic");
    assert!(
        matches!(failed.cause(), ClientError::InputRequestFailed { .. }),
        "{failed}"
    );
    client.list_tools().await.expect("the client lives on");
    client.close().await;
}

/// A failure of a resolver's request is that of the call, except that the call itself was performed: sending it again is
/// not safe, even if sending the other request again is.
#[runtimes::test]
async fn a_resolvers_error_keeps_its_kind_but_not_its_safety() {
    let failing = client::Extension::new("com.example/receipts")
        .on_result_type("acme/receipt", |_| async {
            Err::<Raw, _>(ClientError::SessionExpired)
        });
    let client = host(Revision::V2026_07_28).extension(failing);
    let client = client.connect(&selling()).await.expect("a client");
    let failed = client
        .call_tool("buy", json!({}))
        .await
        .expect_err("the resolver failed");
    assert_eq!(failed.kind(), ErrorKind::SessionExpired, "{failed}");
    assert!(!failed.is_retry_safe());
    assert!(failed.to_string().contains("was resolved"), "{failed}");
    client.close().await;
}

#[runtimes::test]
async fn closing_the_client_ends_a_resolver() {
    let begun = Arc::new(Notify::new());
    let notifier = begun.clone();
    let waiting =
        client::Extension::new("com.example/receipts").on_result_type("acme/receipt", move |_| {
            notifier.notify_one();
            std::future::pending()
        });
    let client = host(Revision::V2026_07_28).extension(waiting);
    let client = client.connect(&selling()).await.expect("a client");
    let other = client.clone();
    let calling = tokio::spawn(async move { other.call_tool("buy", json!({})).await });
    begun.notified().await;
    client.close().await;
    let ended = calling.await.expect("no panic").expect_err("closed");
    assert!(matches!(ended, ClientError::Closed), "{ended}");
}

#[runtimes::test]
async fn tool_call_hooks_run_for_calls_of_a_resolver() {
    let called_tools = Arc::new(Mutex::new(Vec::new()));
    let seen = called_tools.clone();
    let calling = client::Extension::new("com.example/receipts").on_result_type(
        "acme/receipt",
        |receipt| async move {
            let call = raw(&json!({"name": "forbidden", "arguments": {}}));
            receipt
                .request("tools/call", Some(&call), &RequestOptions::new())
                .await
        },
    );
    let client = host(Revision::V2026_07_28)
        .extension(calling)
        .on_tool_call(move |call| {
            let seen = seen.clone();
            async move {
                seen.lock().expect("not poisoned").push(call.name.clone());
                match &*call.name {
                    "forbidden" => Err("not that one".to_owned()),
                    _ => Ok(()),
                }
            }
        });
    let client = client.connect(&selling()).await.expect("a client");
    let refused = client
        .call_tool("buy", json!({}))
        .await
        .expect_err("refused");
    assert!(
        matches!(refused.cause(), ClientError::ToolCallRefused { .. }),
        "{refused}"
    );
    assert_eq!(
        *called_tools.lock().expect("not poisoned"),
        ["buy", "forbidden"]
    );
    client.close().await;
}

#[runtimes::test]
async fn hooks_on_capabilities_change_what_is_declared() {
    let stamps = Extension::new(STAMPS)
        .capabilities(|all| {
            all.experimental = Some(
                [("stamps".to_owned(), JsonObject::new())]
                    .into_iter()
                    .collect(),
            );
            // The declared extensions stay.
            all.extensions = None;
        })
        .capabilities(|all| {
            all.logging = None;
            panic!("a hook of the test");
        });
    let server = Server::builder("shop", "1").extension(stamps).build();
    let server = server.expect("a server");
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = host(revision).connect(&server).await.expect("a client");
        let declared = client.server_capabilities();
        assert!(
            declared
                .experimental
                .as_ref()
                .is_some_and(|all| all.contains_key("stamps"))
        );
        assert!(
            declared
                .extensions
                .as_ref()
                .is_some_and(|all| all.contains_key(STAMPS))
        );
        assert!(declared.logging.is_some());
        client.close().await;
    }
}

#[runtimes::test]
async fn an_extension_of_a_client_serves_requests_of_servers() {
    let server =
        Server::new("shop", "1").on_request("acme/ask", |_: Value, ctx: Context| async move {
            let answer = ctx.send_request("acme/album", None).await?;
            Ok::<_, HandlerError>(as_json(&answer))
        });
    for revision in Revision::ALL {
        let album = client::Extension::new(STAMPS).on_request("acme/album", |_: Value| async {
            Ok(json!({"album": "blue"}))
        });
        let client = host(*revision).extension(album).connect(&server).await;
        let client = client.expect("a client");
        let answer = client
            .request("acme/ask", None, &RequestOptions::new())
            .await;
        assert_eq!(as_json(&answer.expect("an answer"))["album"], "blue");
        client.close().await;
    }
}

#[runtimes::test]
async fn connecting_fails_with_an_unusable_extension() {
    let server = Server::new("shop", "1");
    let make = |identifier: &str| client::Extension::new(identifier);
    let resolve = |_| async { Ok(Raw::EMPTY_OBJECT) };
    let album = || make(STAMPS).on_request("a/b", |_: Value| async { Ok(json!({})) });
    for (builder, named) in [
        (
            host(Revision::V2026_07_28).extension(make("stamps")),
            "prefix",
        ),
        (
            host(Revision::V2026_07_28)
                .extension(make(STAMPS))
                .extension(make(STAMPS)),
            "already added",
        ),
        (
            host(Revision::V2026_07_28).extension(make(STAMPS).on_result_type("complete", resolve)),
            "protocol defines it",
        ),
        (
            host(Revision::V2026_07_28)
                .extension(make(STAMPS).on_result_type("acme/receipt", resolve))
                .extension(make("com.example/b").on_result_type("acme/receipt", resolve)),
            "already",
        ),
        (
            host(Revision::V2026_07_28)
                .on_request("a/b", |_: Value| async { Ok(json!({})) })
                .extension(album()),
            "already",
        ),
    ] {
        let error = builder.connect(&server).await.expect_err(named);
        assert!(matches!(error, ClientError::Usage(_)), "{error:?}");
        assert!(error.to_string().contains(named), "{error}");
    }
}

#[test]
fn building_a_server_fails_with_an_unusable_extension() {
    let make = |identifier: &str| Extension::new(identifier);
    let answering = |_: Value, _: Context| async { Ok::<_, HandlerError>(json!({})) };
    for (builder, named) in [
        (
            Server::builder("shop", "1").extension(make("stamps")),
            "prefix",
        ),
        (
            Server::builder("shop", "1")
                .extension(make(STAMPS))
                .extension(make(STAMPS)),
            "already added",
        ),
        (
            Server::builder("shop", "1")
                .extension(make(STAMPS).on_request("a/b", answering))
                .extension(make("com.example/b").on_request("a/b", answering)),
            "handler already",
        ),
        (
            Server::builder("shop", "1")
                .extension(make(STAMPS).on_request("tools/call", answering)),
            "protocol defines it",
        ),
        (
            Server::builder("shop", "1").extension(make(STAMPS).register(|server| {
                let tool = Tool::new("a b", json!({"type": "string"}));
                server.add_tool_fn(tool, ToolOptions::default(), |_: Value, _: Context| async {
                    ""
                })
            })),
            "tool",
        ),
    ] {
        let error = builder.build().expect_err(named).to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn rejects_methods_of_an_undeclared_extension() {
    let handler = || {
        struct Never;
        impl mcpline::Handler for Never {
            fn call(&self, _: mcpline::Call) {}
        }
        Arc::new(Never)
    };
    let options = || MethodOptions::default().with_extension(STAMPS);
    let server = Server::new("shop", "1");
    let error = server.add_request_handler("a/b", options(), handler());
    let error = error.expect_err("not declared").to_string();
    assert!(error.contains(STAMPS), "{error}");
    let error = server.add_notification_handler("a/c", options(), handler());
    error.expect_err("not declared");
    let server = Server::builder("shop", "1").extension(Extension::new(STAMPS));
    let server = server.build().expect("a server");
    let added = server.add_request_handler("a/b", options(), handler());
    added.expect("declared");
}

#[test]
fn rejects_params_schemas_that_do_not_allow_objects() {
    let handler = || {
        struct Never;
        impl mcpline::Handler for Never {
            fn call(&self, _: mcpline::Call) {}
        }
        Arc::new(Never)
    };
    let server = Server::new("shop", "1");
    let mut number = 0;
    let mut add = |schema: Value| {
        number += 1;
        let options = MethodOptions::default().with_params_schema(schema);
        server.add_request_handler(&format!("a/{number}"), options, handler())
    };
    for schema in [
        json!({"type": "string"}),
        json!({"type": ["string", "null"]}),
        json!(false),
    ] {
        let error = add(schema.clone()).expect_err("no object").to_string();
        assert!(error.contains("must allow objects"), "{schema}: {error}");
    }
    for schema in [
        json!({"type": "object"}),
        json!({"type": ["object", "null"]}),
        json!({}),
        json!(true),
    ] {
        add(schema).expect("an object");
    }
}

#[runtimes::test]
async fn does_not_replay_custom_requests_that_run_once() {
    let runs = Arc::new(AtomicUsize::new(0));
    let process = || {
        let runs = runs.clone();
        let mut settings = Settings::default();
        settings.state_keys = Some(KeyRing::new([[7_u8; 32]]).expect("long enough"));
        let server = Server::builder("shop", "1").settings(settings).build();
        let server = server.expect("a server");
        let options = MethodOptions::default().with_run_once();
        let added = server.add_request_fn("acme/pay", options, move |_: Value, ctx: Context| {
            let runs = runs.clone();
            async move {
                runs.fetch_add(1, Ordering::SeqCst);
                let form = FormSchema::new().with_required("name", FieldSchema::string());
                ctx.elicit(&ElicitParams::form("Who?", form)).await?;
                Ok::<_, HandlerError>(json!({}))
            }
        });
        added.expect("free");
        server
    };
    let (first, second) = (process(), process());
    let mut client = Client::modern(&first);
    let id = client.begin_modern("acme/pay", json!({}));
    let input_required = client.response(&id).await.expect("a question");
    assert_eq!(input_required["resultType"], "input_required");
    let key = input_required["inputRequests"]
        .as_object()
        .and_then(|all| all.keys().next())
        .cloned();
    let answers = json!({
        "requestState": input_required["requestState"],
        "inputResponses": {key.expect("a question"): {"action": "accept", "content": {"name": "Ada"}}},
    });
    let mut elsewhere = Client::modern(&second);
    let id = elsewhere.begin_modern("acme/pay", answers);
    let error = elsewhere.response(&id).await.expect_err("refused");
    let message = error["message"].as_str().expect("a text");
    assert!(message.contains("must not run twice"), "{message}");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

const TASKS: &str = "io.modelcontextprotocol/tasks";
const TASK_METHODS: [&str; 5] = [
    "tasks/get",
    "tasks/result",
    "tasks/list",
    "tasks/cancel",
    "tasks/update",
];

/// Returns whether the revision defines the method itself: 2025-11-25 has its own methods with most of these names.
fn defines(revision: Revision, method: &str) -> bool {
    revision == Revision::V2025_11_25 && method != "tasks/update"
}

#[runtimes::test]
async fn an_extension_serves_methods_that_only_other_revisions_define() {
    let tasks = TASK_METHODS
        .into_iter()
        .fold(Extension::new(TASKS), |tasks, method| {
            tasks.on_request(method, |params: Value, ctx: Context| async move {
                ctx.progress(1.0, None, None);
                Ok::<_, HandlerError>(json!({"taskId": params["taskId"], "status": "working"}))
            })
        });
    let server = Server::builder("tasks", "1").extension(tasks).build();
    let server = server.expect("a server");
    let params = raw(&json!({"taskId": "t \u{e4}"}));
    let plain = RequestOptions::new();
    for (revision, declares) in Revision::ALL
        .iter()
        .flat_map(|&revision| [(revision, true), (revision, false)])
    {
        for transport in served_transports(&server, revision).await {
            let mut client = host(revision);
            if declares {
                client = client.extension(client::Extension::new(TASKS));
            }
            let client = client
                .connect((transport.address)())
                .await
                .expect(transport.name);
            for method in TASK_METHODS {
                let place = format!("{revision}, {}, {method}, {declares}", transport.name);
                let outcome = client.request(method, Some(&params), &plain).await;
                if defines(revision, method) {
                    // The server does not declare tasks of that revision.
                    let error = outcome.expect_err(&place).to_string();
                    assert!(error.contains("tasks"), "{place}: {error}");
                } else if declares {
                    let result = as_json(&outcome.expect(&place));
                    assert_eq!(result["taskId"], "t \u{e4}", "{place}");
                    assert_eq!(result["status"], "working", "{place}");
                } else {
                    let required = json!({"requiredCapabilities": {"extensions": {TASKS: {}}}});
                    assert_eq!(code(outcome), (-32021, required), "{place}");
                }
            }
            client.close().await;
        }
    }
}

#[runtimes::test]
async fn task_updates_keep_their_own_input_responses() {
    let tasks = Extension::new(TASKS).on_request(
        "tasks/update",
        |params: Value, ctx: Context| async move {
            assert!(ctx.input_responses().is_none());
            // An input request's responses would use the name of this parameter.
            let picked = ctx.send_request("acme/choose", None).await;
            Ok::<_, HandlerError>(json!({"got": params, "asked": picked.is_ok()}))
        },
    );
    let server = Server::builder("tasks", "1").extension(tasks).build();
    let server = server.expect("a server");
    let given = json!({"taskId": "t", "inputResponses": {"a": {"action": "accept"}}});
    for revision in Revision::ALL {
        for transport in served_transports(&server, *revision).await {
            let place = format!("{revision}, {}", transport.name);
            let client = host(*revision).extension(client::Extension::new(TASKS));
            let client = client.on_request("acme/choose", |_: Value| async { Ok(json!({})) });
            let client = client.connect((transport.address)()).await.expect(&place);
            let plain = RequestOptions::new();
            let params = raw(&given);
            let result = client.request("tasks/update", Some(&params), &plain);
            let result = as_json(&result.await.expect(&place));
            assert_eq!(result["got"], given, "{place}");
            assert_eq!(result["asked"], revision.features().handshake, "{place}");
            client.close().await;
        }
    }
}

#[runtimes::test]
async fn extension_methods_that_the_revision_defines_are_not_served() {
    let tasks = Extension::new(TASKS).on_request("tasks/get", |_: Value, _: Context| async {
        Ok::<_, HandlerError>(json!({}))
    });
    let server = Server::builder("tasks", "1").extension(tasks).build();
    let server = server.expect("a server");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tasks/get", json!({"taskId": "t"}));
    let error = client.response(&id).await.expect_err("no such method");
    assert_eq!(error["code"], -32601);
}

#[runtimes::test]
async fn clients_serve_methods_that_only_other_revisions_define() {
    let server =
        Server::new("tasks", "1").on_request("acme/relay", |_: Value, ctx: Context| async move {
            let task = Raw::from_serialize(&json!({"taskId": "t"})).expect("JSON");
            let task = ctx.send_request("tasks/get", Some(&task)).await?;
            Ok::<_, HandlerError>(json!({"status": as_json(&task)["status"]}))
        });
    for revision in Revision::ALL {
        for transport in served_transports(&server, *revision).await {
            let place = format!("{revision}, {}", transport.name);
            let client = host(*revision).on_request("tasks/get", |params: Value| async move {
                assert_eq!(params["taskId"], "t");
                Ok(json!({"status": "working"}))
            });
            let client = client.connect((transport.address)()).await.expect(&place);
            let plain = RequestOptions::new();
            let relayed = client.request("acme/relay", None, &plain).await;
            if defines(*revision, "tasks/get") {
                let error = relayed.expect_err(&place).to_string();
                assert!(error.contains("defines this method"), "{place}: {error}");
            } else {
                let relayed = as_json(&relayed.expect(&place));
                assert_eq!(relayed["status"], "working", "{place}");
            }
            client.close().await;
        }
    }
}
