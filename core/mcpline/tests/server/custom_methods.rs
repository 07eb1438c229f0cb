//! Custom requests, which no revision defines: served by the author's handlers, on every revision and transport.

use std::sync::{Arc, Mutex};

use crate::support::log::Log;
use crate::support::served_transports::served_transports;
use crate::support::{Client, Nothing};
use mcpline::client::{Client as McpClient, ClientBuilder, ClientError, RequestOptions};
use mcpline::protocol::vocabulary::{
    ElicitAction, ElicitParams, ElicitResult, FieldSchema, FormSchema, LoggingLevel,
};
use mcpline::protocol::{ErrorCode, Raw};
use mcpline::server::MethodOptions;
use mcpline::{Context, HandlerError, Revision, RpcError, Server};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    query: String,
}

#[derive(Serialize)]
struct Found {
    hits: Vec<String>,
}

fn server() -> Server {
    Server::new("acme", "1")
        .on_request("acme/search", |params: Search, ctx: Context| async move {
            ctx.progress(1.0, None, None);
            let note = Raw::from_serialize(&json!({"query": params.query})).expect("JSON");
            ctx.notify("acme/searching", Some(&note))
                .expect("a custom method");
            if params.query.is_empty() {
                return Err(HandlerError::Rpc(RpcError::new(ErrorCode(-1), "empty")));
            }
            Ok(Found {
                hits: vec![params.query],
            })
        })
        .on_request("acme/ask", |_: Nothing, ctx: Context| async move {
            let form = FormSchema::new().with_required("name", FieldSchema::string());
            let answer = ctx.elicit(&ElicitParams::form("Who?", form)).await?;
            Ok::<_, HandlerError>(json!({"name": answer.content.unwrap_or_default()["name"]}))
        })
}

/// Reports that a handler was dropped.
struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

fn host(revision: Revision) -> ClientBuilder {
    McpClient::builder("host", "1").configure(|settings| settings.revisions = vec![revision])
}

fn raw(value: &Value) -> Raw {
    Raw::from_serialize(value).expect("JSON")
}

fn as_json(raw: &Raw) -> Value {
    raw.decode().expect("JSON")
}

#[runtimes::test]
async fn custom_requests_are_served_on_every_revision_and_transport() {
    for revision in Revision::ALL {
        for transport in served_transports(&server(), *revision).await {
            let place = format!("{revision}, {}", transport.name);
            let client = host(*revision)
                .connect((transport.address)())
                .await
                .expect(transport.name);
            let reports = Arc::new(Mutex::new(0));
            let seen = reports.clone();
            let options = RequestOptions::new().on_progress(move |_| {
                *seen.lock().expect("not poisoned") += 1;
            });
            let notes = Arc::new(Mutex::new(Vec::new()));
            let sink = notes.clone();
            client.on_notification(move |notification| {
                let params = notification
                    .params
                    .as_ref()
                    .map(|params| as_json(params.raw()));
                let note = (notification.method.as_str().to_owned(), params);
                sink.lock().expect("not poisoned").push(note);
            });
            let params = raw(&json!({"query": "tea"}));
            let found = client.request("acme/search", Some(&params), &options).await;
            let found = as_json(&found.expect(&place));
            assert_eq!(found["hits"], json!(["tea"]), "{place}");
            assert_eq!(*reports.lock().expect("not poisoned"), 1, "{place}");
            let mut notes = std::mem::take(&mut *notes.lock().expect("not poisoned"));
            notes.retain(|(method, _)| method == "acme/searching");
            let note = ("acme/searching".to_owned(), Some(json!({"query": "tea"})));
            assert_eq!(notes, [note], "{place}");

            let plain = RequestOptions::new();
            for (method, params, code) in [
                ("acme/search", json!({"query": 7}), -32602),
                ("acme/search", json!({"query": "x", "more": 1}), -32602),
                ("acme/search", json!({"query": ""}), -1),
                ("acme/none", json!({}), -32601),
            ] {
                let error = client.request(method, Some(&raw(&params)), &plain).await;
                let Err(ClientError::Rpc(error)) = error else {
                    panic!("{place}: {error:?}");
                };
                assert_eq!(error.code.0, code, "{place}: {method} {params}");
            }
            let missing = client.request("acme/search", None, &plain).await;
            assert!(matches!(missing, Err(ClientError::Rpc(error)) if error.code.0 == -32602));
            client.close().await;
        }
    }
}

#[runtimes::test]
async fn handlers_of_custom_requests_can_send_input_requests() {
    for revision in [
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ] {
        for transport in served_transports(&server(), revision).await {
            let accept = |_| async {
                let content = json!({"name": "Ada"})
                    .as_object()
                    .cloned()
                    .unwrap_or_default();
                Ok(ElicitResult::new(ElicitAction::Accept).with_content(content))
            };
            let client = host(revision).on_elicit(accept);
            let client = client
                .connect((transport.address)())
                .await
                .expect(transport.name);
            let answered = client
                .request("acme/ask", None, &RequestOptions::new())
                .await;
            let answered = as_json(&answered.expect(transport.name));
            assert_eq!(answered["name"], "Ada", "{revision}, {}", transport.name);
            client.close().await;
        }
    }
}

/// A server whose handler of `acme/choose` sends the client a custom request.
fn choosing() -> Server {
    Server::new("acme", "1").on_request("acme/choose", |params: Value, ctx: Context| async move {
        let method = params["method"].as_str().unwrap_or("acme/pick").to_owned();
        let from = Raw::from_serialize(&json!({"from": [1, 2, 3]})).expect("JSON");
        let picked = ctx.send_request(&method, Some(&from)).await?;
        Ok::<_, HandlerError>(json!({"picked": as_json(&picked)["picked"]}))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pick {
    from: Vec<i64>,
}

#[runtimes::test]
async fn clients_serve_custom_requests_on_every_revision_and_transport() {
    for revision in Revision::ALL {
        for transport in served_transports(&choosing(), *revision).await {
            let place = format!("{revision}, {}", transport.name);
            let client = host(*revision)
                .on_request("acme/pick", |pick: Pick| async move {
                    Ok(json!({"picked": pick.from.last()}))
                })
                .on_request("acme/text", |_: Pick| async { Ok("no object") })
                .on_request("acme/refuse", |_: Pick| async {
                    Err::<Value, _>(RpcError::new(ErrorCode(-7), "not now"))
                });
            let client = client.connect((transport.address)()).await.expect(&place);
            let plain = RequestOptions::new();
            let answer = client.request("acme/choose", None, &plain).await;
            assert_eq!(as_json(&answer.expect(&place))["picked"], 3, "{place}");
            for (method, named) in [
                ("acme/none", "-32601"),
                ("acme/\"x\",\\", "-32601"),
                ("acme/text", "must be an object"),
                ("acme/refuse", "not now"),
                ("tools/call", "acme/choose failed"),
            ] {
                let params = raw(&json!({"method": method}));
                let error = client.request("acme/choose", Some(&params), &plain).await;
                let error = error.expect_err(&place).to_string();
                assert!(error.contains(named), "{place}: {method}: {error}");
            }
            client.close().await;
        }
    }
}

#[runtimes::test]
async fn connecting_fails_with_a_handler_of_a_protocol_method() {
    for (methods, named) in [
        (vec!["tools/call"], "protocol defines it"),
        (vec!["notifications/acme"], "notifications"),
        (vec!["rpc.a"], "JSON-RPC"),
        (vec!["acme/a", "acme/a"], "has one already"),
    ] {
        let register = |client: ClientBuilder, method: &&str| {
            client.on_request(method, |_: Value| async { Ok(json!({})) })
        };
        let client = methods.iter().fold(host(Revision::V2025_11_25), register);
        let error = client.connect(&choosing()).await.expect_err(named);
        assert!(matches!(&error, ClientError::Usage(reason) if reason.contains(named)));
    }
}

#[runtimes::test]
async fn results_of_custom_requests_have_the_members_their_revision_requires() {
    let server = Server::new("acme", "1")
        .on_request("acme/empty", |_: Nothing, _: Context| async {
            Ok::<_, HandlerError>(json!({}))
        })
        .on_request("acme/own", |_: Nothing, _: Context| async {
            Ok::<_, HandlerError>(
                json!({"_meta": {"acme.example/a": 1}, "resultType": "task", "b": 2}),
            )
        })
        .on_request("acme/text", |_: Nothing, _: Context| async {
            Ok::<_, HandlerError>("no object")
        });
    let server = server
        .on_request("acme/null", |_: Nothing, _: Context| async {
            Ok::<_, HandlerError>(json!({"_meta": null, "resultType": "a\"b"}))
        })
        .on_request("acme/seven", |_: Nothing, _: Context| async {
            Ok::<_, HandlerError>(json!({"resultType": 7}))
        })
        .on_request("acme/input", |_: Nothing, _: Context| async {
            Ok::<_, HandlerError>(json!({"resultType": "input_required", "inputRequests": {}}))
        })
        .on_request("acme/params", |params: Value, _: Context| async {
            Ok::<_, HandlerError>(params)
        });
    let mut client = Client::modern(&server);
    let id = client.begin_modern("acme/null", json!({}));
    let result = client.response(&id).await.expect("a result");
    assert_eq!(result["resultType"], "a\"b");
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "acme"
    );
    for method in ["acme/seven", "acme/input"] {
        let id = client.begin_modern(method, json!({}));
        let error = client.response(&id).await.expect_err(method);
        assert_eq!(error["code"], -32603, "{method}");
    }
    let id = client.begin_modern("acme/params", json!({"a": [1], "b": "\u{e9}"}));
    let result = client.response(&id).await.expect("a result");
    assert_eq!(
        (&result["a"], &result["b"]),
        (&json!([1]), &json!("\u{e9}"))
    );
    let id = client.begin_modern("acme/empty", json!({}));
    let result = client.response(&id).await.expect("a result");
    assert_eq!(result["resultType"], "complete");
    let info = "io.modelcontextprotocol/serverInfo";
    assert_eq!(result["_meta"][info]["name"], "acme");
    let id = client.begin_modern("acme/own", json!({}));
    let result = client.response(&id).await.expect("a result");
    assert_eq!(result["resultType"], "task");
    assert_eq!(result["b"], 2);
    assert_eq!(result["_meta"]["acme.example/a"], 1);
    assert_eq!(result["_meta"][info]["name"], "acme");
    let id = client.begin_modern("acme/text", json!({}));
    let error = client.response(&id).await.expect_err("no object");
    assert_eq!(error["code"], -32603);

    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("acme/empty", json!({}));
    assert_eq!(client.response(&id).await, Ok(json!({})));
    // Names of a later revision have no meaning here.
    let params = json!({"requestState": "mine", "inputResponses": 7});
    let id_of_params = client.begin("acme/params", params.clone());
    assert_eq!(client.response(&id_of_params).await, Ok(params));
    let id = client.begin("acme/own", json!({}));
    let own = json!({"_meta": {"acme.example/a": 1}, "resultType": "task", "b": 2});
    assert_eq!(client.response(&id).await, Ok(own));
}

#[runtimes::test]
async fn a_custom_request_can_be_cancelled_and_its_handler_removed() {
    let cancelled = Arc::new(Notify::new());
    let dropped = cancelled.clone();
    let server = server().on_request("acme/wait", move |_: Nothing, _: Context| {
        let guard = OnDrop(dropped.clone());
        async move {
            let _guard = guard;
            std::future::pending::<Result<Value, HandlerError>>().await
        }
    });
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("acme/wait", json!({}));
    client.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
    );
    cancelled.notified().await;
    assert!(server.remove_request_handler("acme/search"));
    assert!(!server.remove_request_handler("acme/search"));
    let id = client.begin("acme/search", json!({"query": "tea"}));
    let error = client.response(&id).await.expect_err("no such method");
    assert_eq!(error["code"], -32601);
}

#[runtimes::test]
async fn only_custom_notifications_are_sent_by_name() {
    let server = Server::new("acme", "1").on_request(
        "acme/notify",
        |params: Value, ctx: Context| async move {
            let method = params["method"].as_str().unwrap_or_default();
            let sent = ctx.notify(method, Raw::from_serialize(&params["params"]).ok().as_ref());
            Ok::<_, HandlerError>(json!({"error": sent.err().map(|error| error.to_string())}))
        },
    );
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for (method, params, named) in [
        ("notifications/message", json!({}), "protocol defines"),
        ("tools/call", json!({}), "protocol defines"),
        ("rpc.note", json!({}), "JSON-RPC"),
        ("", json!({}), "1 to 1024"),
        ("acme/note", json!([1]), "object"),
    ] {
        let id = client.begin("acme/notify", json!({"method": method, "params": params}));
        let result = client.response(&id).await.expect("a result");
        let error = result["error"].as_str().expect(method);
        assert!(error.contains(named), "{method}: {error}");
    }
    let id = client.begin("acme/notify", json!({"method": "acme/note", "params": {}}));
    assert_eq!(client.next().await["method"], "acme/note");
    assert_eq!(client.response(&id).await, Ok(json!({"error": null})));
}

#[runtimes::test]
async fn a_client_sends_no_notification_whose_params_are_not_an_object() {
    let client = host(Revision::V2026_07_28).connect(&server()).await;
    let client = client.expect("a client");
    let params = raw(&json!([1, 2]));
    let refused = client.notify("acme/note", Some(&params)).await;
    assert!(matches!(refused, Err(ClientError::Usage(_))), "{refused:?}");
    client.close().await;
}

/// With clients of both eras on one pipe, the handler of a 2026-07-28 notification logged into the other's session.
#[runtimes::test]
async fn handlers_of_modern_notifications_do_not_log_into_a_handshake_session() {
    let server = Server::new("acme", "1").on_notification(
        "acme/note",
        |_: Value, ctx: Context| async move {
            ctx.log(LoggingLevel::Error, None, "noted");
        },
    );
    let client = Client::legacy(&server, "2025-11-25").await;
    client.send(json!({"jsonrpc": "2.0", "method": "acme/note", "params": {}}));
    assert_eq!(client.next().await["params"]["data"], "noted");
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    client.send(json!({"jsonrpc": "2.0", "method": "acme/note", "params": {"_meta": meta}}));
    let mut client = client;
    let id = client.begin("ping", json!({}));
    // The handler of a notification may still be running when a later request is answered.
    assert_eq!(client.next().await["id"], id);
    tokio::task::yield_now().await;
    assert_eq!(client.try_next(), None);
}

/// A handler whose outcome is the given error.
struct Failing(RpcError);

impl mcpline::Handler for Failing {
    fn call(&self, call: mcpline::Call) {
        call.reply(Err(self.0.clone().into()));
    }
}

#[tokio::test(flavor = "current_thread")]
async fn only_a_notification_with_invalid_params_is_logged_as_dropped() {
    for (error, says) in [
        (
            RpcError::internal_error("no disk"),
            "the handler of a notification failed",
        ),
        (
            RpcError::invalid_params("no text"),
            "a notification was dropped",
        ),
    ] {
        let log = Log::all();
        let _guard = tracing::subscriber::set_default(log.clone());
        let server = Server::new("acme", "1");
        let added = server.add_notification_handler(
            "acme/note",
            MethodOptions::default(),
            Arc::new(Failing(error)),
        );
        added.expect("a handler");
        let mut client = Client::legacy(&server, "2025-11-25").await;
        client.send(json!({"jsonrpc": "2.0", "method": "acme/note", "params": {}}));
        let id = client.begin("ping", json!({}));
        client.response(&id).await.expect("an answer");
        let lines = log.lines();
        assert!(log.has(says), "{lines:?}");
        let failed = log.has("the handler of a notification failed");
        let dropped = log.has("a notification was dropped");
        assert!(failed != dropped, "{lines:?}");
    }
}

#[test]
fn rejects_request_handlers_of_protocol_methods() {
    let handler = || {
        struct Never;
        impl mcpline::Handler for Never {
            fn call(&self, _: mcpline::Call) {}
        }
        Arc::new(Never)
    };
    let server = Server::new("acme", "1");
    let add = |method: &str, options: MethodOptions| {
        server.add_request_handler(method, options, handler())
    };
    for (method, named) in [
        ("", "1 to 1024"),
        (&"a".repeat(1025), "1 to 1024"),
        ("acme/s\u{fc}\u{df}", "ASCII"),
        ("acme/a ", "ASCII"),
        ("prompts/get", "protocol defines it"),
        ("tools/call", "protocol defines it"),
        ("initialize", "protocol defines it"),
        ("sampling/createMessage", "protocol defines it"),
        ("notifications/acme", "notifications"),
        ("rpc.discover", "JSON-RPC"),
    ] {
        let error = add(method, MethodOptions::default()).expect_err(method);
        assert!(error.to_string().contains(named), "{method}: {error}");
    }
    add("acme/a", MethodOptions::default()).expect("free");
    let error = add("acme/a", MethodOptions::default()).expect_err("taken");
    assert!(error.to_string().contains("handler already"), "{error}");
    let broken = MethodOptions::default().with_params_schema(json!({"type": 7}));
    assert!(add("acme/b", broken).is_err());
    let scope = MethodOptions::default().with_scopes(["a b\"c"]);
    assert!(add("acme/c", scope).is_err());
}
