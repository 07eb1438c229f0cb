//! Our client and our server over every transport: every revision, input requests during calls, progress, cancellation,
//! subscriptions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::served_transports::served_transports;
use mcpline::client::{Client, ClientBuilder, ClientError, RequestOptions};
use mcpline::protocol::vocabulary::{
    ElicitAction, ElicitParams, ElicitResult, FieldSchema, FormSchema, LoggingLevel, Resource,
    Root, Tool,
};
use mcpline::protocol::wire::Method;
use mcpline::transport;
use mcpline::transport::http::HttpOptions;
use mcpline::{Context, Revision, Server};
use serde_json::json;
use tokio::sync::Notify;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    sum: i64,
}

/// Signals from the server's handlers to the test.
#[derive(Default)]
struct Seen {
    cancelled: Notify,
    started: Notify,
    calls: AtomicUsize,
}

/// Signals when it is dropped.
struct OnDrop(Arc<Seen>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.cancelled.notify_one();
    }
}

fn server(seen: &Arc<Seen>) -> Server {
    let (calls, waits) = (seen.clone(), seen.clone());
    Server::builder("test", "1")
        .instructions("be kind")
        .declare_resources()
        .declare_prompts()
        .build()
        .expect("a server")
        .tool("echo", "Echo", move |args: Text, _: Context| {
            calls.calls.fetch_add(1, Ordering::Relaxed);
            async move { args.text }
        })
        .tool(
            "ask",
            "Ask the user",
            |_: Nothing, ctx: Context| async move {
                let form = FormSchema::new()
                    .with_required("name", FieldSchema::string())
                    .with_optional("kind", FieldSchema::string());
                let answer = ctx.elicit(&ElicitParams::form("Who?", form)).await?;
                let roots = ctx.list_roots().await?;
                Ok::<_, mcpline::ToolError>(format!(
                    "{} {} {}",
                    answer.action.as_str(),
                    answer.content.unwrap_or_default()["name"],
                    roots[0].uri,
                ))
            },
        )
        .tool(
            "report",
            "Report progress",
            |_: Nothing, ctx: Context| async move {
                for step in 1..=3 {
                    ctx.progress(f64::from(step), Some(3.0), None);
                }
                "done"
            },
        )
        .tool("wait", "Wait for ever", move |_: Nothing, _: Context| {
            let seen = waits.clone();
            async move {
                let _guard = OnDrop(seen.clone());
                seen.started.notify_one();
                std::future::pending::<()>().await;
                "never"
            }
        })
}

fn host(revision: Revision) -> ClientBuilder {
    Client::builder("host", "1").configure(|settings| settings.revisions = vec![revision])
}

#[runtimes::test]
async fn every_revision_works_over_every_transport() {
    for revision in Revision::ALL {
        let seen = Arc::new(Seen::default());
        let server = server(&seen);
        for transport in served_transports(&server, *revision).await {
            let client = host(*revision)
                .connect((transport.address)())
                .await
                .expect(transport.name);
            assert_eq!(client.revision(), *revision);
            assert_eq!(client.instructions(), Some("be kind"));
            assert_eq!(
                client.server_info().map(|info| info.name.as_str()),
                Some("test")
            );
            let tools: Vec<Tool> = client.list_tools().await.expect("a list");
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            assert_eq!(names, ["echo", "ask", "report", "wait"], "{revision}");
            let result = client
                .call_tool("echo", json!({"text": "hé\n"}))
                .await
                .expect("a result");
            assert_eq!(
                serde_json::to_value(&result.content).expect("JSON")[0]["text"],
                "hé\n"
            );
            client.ping().await.expect("alive");
            client
                .set_log_level(LoggingLevel::Info)
                .await
                .expect("a level");
            let error = client
                .read_resource("test://none")
                .await
                .expect_err("there is none");
            assert!(matches!(error, ClientError::Rpc(_)), "{revision}: {error}");
            let error = client
                .get_prompt("none", &BTreeMap::new())
                .await
                .expect_err("there is none");
            assert!(matches!(error, ClientError::Rpc(_)), "{revision}: {error}");
            client.close().await;
            let error = client
                .call_tool("echo", json!({"text": ""}))
                .await
                .expect_err("it is closed");
            assert_eq!(error, ClientError::Closed);
        }
    }
}

#[runtimes::test]
async fn negotiates_the_newest_common_revision() {
    let server = server(&Arc::default());
    let client = Client::connect(&server).await.expect("connects");
    assert_eq!(client.revision(), Revision::V2026_07_28);
}

#[runtimes::test]
async fn the_same_handlers_answer_input_requests_of_every_revision() {
    for revision in [
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ] {
        let server = server(&Arc::default());
        for transport in served_transports(&server, revision).await {
            let messages = Arc::new(Mutex::new(Vec::new()));
            let sink = messages.clone();
            let client = host(revision)
                .roots([Root::new("/home").expect("a root")])
                .on_elicit(move |params| {
                    sink.lock().expect("not poisoned").push(params.message);
                    let content = json!({"name": "Ada"})
                        .as_object()
                        .cloned()
                        .unwrap_or_default();
                    async move { Ok(ElicitResult::new(ElicitAction::Accept).with_content(content)) }
                })
                .connect((transport.address)())
                .await
                .expect(transport.name);
            let result = client.call_tool("ask", json!({})).await.expect("a result");
            let text = serde_json::to_value(&result.content).expect("JSON")[0]["text"].clone();
            assert_eq!(text, "accept \"Ada\" file:///home", "{revision}");
            assert_eq!(*messages.lock().expect("not poisoned"), ["Who?"]);
        }
    }
}

#[runtimes::test]
async fn input_requests_without_a_handler_fail_only_the_tool() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let server = server(&Arc::default());
        for transport in served_transports(&server, revision).await {
            let client = host(revision)
                .connect((transport.address)())
                .await
                .expect(transport.name);
            let error = client.call_tool("ask", json!({})).await;
            let refused = match &error {
                Ok(result) => result.is_error == Some(true),
                Err(error) => matches!(error, ClientError::Rpc(_)),
            };
            assert!(refused, "{revision}: {error:?}");
            client
                .call_tool("echo", json!({"text": "on"}))
                .await
                .expect("it lives on");
        }
    }
}

#[runtimes::test]
async fn progress_arrives_in_order_at_the_call_that_requested_it() {
    for revision in Revision::ALL {
        let server = server(&Arc::default());
        for transport in served_transports(&server, *revision).await {
            let client = host(*revision)
                .connect((transport.address)())
                .await
                .expect(transport.name);
            let reports = Arc::new(Mutex::new(Vec::new()));
            let listener = reports.clone();
            let options = RequestOptions::new().on_progress(move |progress| {
                listener
                    .lock()
                    .expect("not poisoned")
                    .push(progress.progress);
            });
            client
                .call_tool_with("report", json!({}), &options)
                .await
                .expect("a result");
            let reports = reports.lock().expect("not poisoned");
            // Bursts of reports are limited; the last report always arrives.
            assert_eq!(reports.last(), Some(&3.0), "{revision}");
            assert!(reports.is_sorted());
        }
    }
}

#[runtimes::test]
async fn dropping_a_call_cancels_it_at_the_server() {
    for revision in Revision::ALL {
        let seen = Arc::new(Seen::default());
        let server = server(&seen);
        for transport in served_transports(&server, *revision).await {
            let client = host(*revision)
                .connect((transport.address)())
                .await
                .expect(transport.name);
            let call = tokio::spawn({
                let client = client.clone();
                async move { client.call_tool("wait", json!({})).await.map(|_| ()) }
            });
            seen.started.notified().await;
            call.abort();
            seen.cancelled.notified().await;
            client
                .call_tool("echo", json!({"text": "on"}))
                .await
                .expect("it lives on");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn idle_calls_time_out_and_are_cancelled() {
    let seen = Arc::new(Seen::default());
    let server = server(&seen);
    let client = host(Revision::V2025_11_25)
        .connect(&server)
        .await
        .expect("connects");
    let options = RequestOptions::new().timeout(Duration::from_millis(20));
    let error = client
        .call_tool_with("wait", json!({}), &options)
        .await
        .expect_err("too late");
    assert!(
        matches!(error, ClientError::RequestTimedOut { in_all: false, .. }),
        "{error}"
    );
    assert!(error.is_outcome_unknown() && !error.is_retry_safe());
    seen.cancelled.notified().await;
}

#[runtimes::test]
async fn closing_fails_calls_in_flight() {
    let seen = Arc::new(Seen::default());
    let server = server(&seen);
    let client = Client::connect(&server).await.expect("connects");
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.call_tool("wait", json!({})).await.map(|_| ()) }
    });
    seen.started.notified().await;
    client.close().await;
    assert_eq!(call.await.expect("no panic"), Err(ClientError::Closed));
    seen.cancelled.notified().await;
}

#[runtimes::test]
async fn dropping_the_last_handle_ends_the_connection() {
    let seen = Arc::new(Seen::default());
    let server = server(&seen);
    let client = Client::connect(&server).await.expect("connects");
    let inner = client.clone();
    let call = tokio::spawn(async move { inner.call_tool("wait", json!({})).await.map(|_| ()) });
    seen.started.notified().await;
    call.abort();
    let _ = call.await;
    seen.cancelled.notified().await;
    drop(client);
}

#[runtimes::test]
async fn subscriptions_and_list_changes_are_delivered_on_every_revision() {
    for revision in Revision::ALL {
        let server = Server::new("test", "1")
            .resource(Resource::new("test://a", "a"), || async { "text" })
            .tool("one", "One", |_: Nothing, _: Context| async { "one" });
        for transport in served_transports(&server, *revision).await {
            let (sender, mut methods) = tokio::sync::mpsc::unbounded_channel();
            let client = host(*revision)
                .on_notification(move |notification| {
                    // The test may be over.
                    let _ = sender.send(notification.method.clone());
                })
                .connect((transport.address)())
                .await
                .expect(transport.name);
            client.subscribe("test://a").await.expect("subscribed");
            server.notify_resource_updated("test://a");
            let mut next = async || loop {
                match methods.recv().await.expect("the client lives") {
                    Method::NotificationsSubscriptionsAcknowledged => {}
                    method => return method,
                }
            };
            assert_eq!(
                next().await,
                Method::NotificationsResourcesUpdated,
                "{revision}"
            );
            client.unsubscribe("test://a").await.expect("unsubscribed");
            server.notify_resource_updated("test://a");
            let server = server.clone().tool(
                &transport.name.replace(' ', "_"),
                "More",
                |_: Nothing, _: Context| async { "more" },
            );
            assert_eq!(
                next().await,
                Method::NotificationsToolsListChanged,
                "{revision}"
            );
            drop(server);
        }
    }
}

#[runtimes::test]
async fn late_listeners_get_subsequent_notifications() {
    for revision in Revision::ALL {
        let server =
            Server::new("test", "1").tool("one", "One", |_: Nothing, _: Context| async { "one" });
        for transport in served_transports(&server, *revision).await {
            let client = host(*revision)
                .connect((transport.address)())
                .await
                .expect(transport.name);
            let (sender, mut methods) = tokio::sync::mpsc::unbounded_channel();
            client.on_notification(move |notification| {
                // The test may be over.
                let _ = sender.send(notification.method.clone());
            });
            if revision.features().listen {
                assert_eq!(
                    methods.recv().await,
                    Some(Method::NotificationsSubscriptionsAcknowledged)
                );
            }
            let server = server.clone().tool(
                &transport.name.replace(' ', "_"),
                "More",
                |_: Nothing, _: Context| async { "more" },
            );
            assert_eq!(
                methods.recv().await,
                Some(Method::NotificationsToolsListChanged),
                "{revision}"
            );
            drop(server);
        }
    }
}

#[runtimes::test]
async fn returns_structured_content_that_fits_the_output_schema() {
    let server = Server::new("test", "1").tool("sum", "Sum", |_: Nothing, _: Context| async {
        mcpline::Json(Sum { sum: 3 })
    });
    let client = Client::connect(&server).await.expect("connects");
    let tools = client.list_tools().await.expect("a list");
    assert!(tools[0].output_schema.is_some());
    let result = client.call_tool("sum", json!({})).await.expect("a result");
    assert_eq!(result.structured_content, Some(json!({"sum": 3})));
}

#[runtimes::test]
async fn rejects_arguments_and_params_that_are_not_objects() {
    let server = server(&Arc::default());
    let client = Client::connect(&server).await.expect("connects");
    let error = client.call_tool("echo", 3).await;
    assert!(
        matches!(error, Err(ClientError::Rpc(_) | ClientError::Usage(_))),
        "{error:?}"
    );
    let array = mcpline::protocol::Raw::from_trusted("[]");
    let error = client
        .request("tools/list", Some(&array), &RequestOptions::new())
        .await;
    assert!(matches!(error, Err(ClientError::Usage(_))), "{error:?}");
}

/// A runtime whose only tasks are the client's.
fn runtime_of_a_client() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

#[test]
fn closing_a_client_leaves_no_tasks() {
    let serving = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let mut options = HttpOptions::default();
    options.sse_paths = Some(("/sse".to_owned(), "/messages".to_owned()));
    let http = serving
        .block_on(transport::http::http(("127.0.0.1", 0), options))
        .expect("a free port");
    let address = http.address();
    let server =
        Server::new("closing", "1").tool("hello", "Greets", |_: Nothing, _: Context| async {
            "hello"
        });
    serving.spawn(async move { server.serve(http).await });
    for (path, revision) in [
        ("mcp", Revision::V2026_07_28),
        ("mcp", Revision::V2025_11_25),
        ("sse", Revision::V2024_11_05),
    ] {
        runtime_of_a_client().block_on(async {
            let client = Client::builder("host", "1")
                .on_notification(|_| {})
                .configure(|settings| settings.revisions = vec![revision])
                .connect(format!("http://{address}/{path}").as_str())
                .await
                .expect("connects");
            assert_eq!(client.revision(), revision);
            // Several connections, some of them idle.
            let call = || client.call_tool("hello", json!({}));
            let (first, second, third) = tokio::join!(call(), call(), call());
            for outcome in [first, second, third] {
                outcome.expect("an answer");
            }
            let metrics = tokio::runtime::Handle::current().metrics();
            assert!(metrics.num_alive_tasks() > 0);
            client.close().await;
            assert_eq!(metrics.num_alive_tasks(), 0, "{revision}");
        });
    }
}
