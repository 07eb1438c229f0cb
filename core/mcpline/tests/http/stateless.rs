//! Clients of handshake revisions that are served without sessions (`HttpOptions::stateless`): every request may reach
//! another process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::support::Nothing;
use crate::support::requests::{body, call, events, initialize, request};
use http::{Method, StatusCode};
use mcpline::client::{Address, Client};
use mcpline::protocol::vocabulary::{ElicitParams, FormSchema, Resource};
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, HttpService, http};
use mcpline::{Context, Revision, Server};
use serde_json::{Value, json};

/// The handshake revisions that have Streamable HTTP.
const REVISIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

fn server(cancelled: &Arc<AtomicBool>) -> Server {
    let cancelled = cancelled.clone();
    Server::new("stateless", "1")
        .tool("plain", "Answers at once", |_: Nothing, _: Context| async {
            "done"
        })
        .tool(
            "reports",
            "Reports, answers",
            |_: Nothing, ctx: Context| async move {
                ctx.progress(1.0, None, None);
                "done"
            },
        )
        .tool(
            "waits",
            "Reports and waits",
            move |_: Nothing, ctx: Context| {
                let cancelled = cancelled.clone();
                ctx.on_cancel(move || cancelled.store(true, Ordering::SeqCst));
                ctx.progress(1.0, None, None);
                std::future::pending::<String>()
            },
        )
        .tool("asks", "Asks", |_: Nothing, ctx: Context| async move {
            let params = ElicitParams::form("Who?", FormSchema::new());
            ctx.elicit(&params)
                .await
                .expect_err("the client declares no capability")
                .to_string()
        })
        .resource(Resource::new("test://a", "a"), |_: Context| async { "a" })
}

fn options() -> HttpOptions {
    let mut options = HttpOptions::default();
    options.stateless = true;
    options
}

fn service() -> (HttpService, Arc<AtomicBool>) {
    let cancelled = Arc::default();
    (server(&cancelled).http_service(options()), cancelled)
}

async fn post(
    service: &HttpService,
    headers: &[(&str, &str)],
    message: Value,
) -> http::Response<mcpline::transport::http::Body> {
    service
        .handle(request(Method::POST, headers, message))
        .await
}

#[runtimes::test]
async fn each_request_is_served_by_a_process_that_saw_no_other() {
    for revision in REVISIONS {
        let opened = post(&service().0, &[], initialize(revision)).await;
        assert_eq!(opened.status(), StatusCode::OK);
        assert!(
            !opened.headers().contains_key("mcp-session-id"),
            "{revision}"
        );
        let result = body(opened).await["result"].clone();
        assert_eq!(result["protocolVersion"], revision);
        let declared = json!({"tools": {}, "resources": {}, "logging": {}});
        assert_eq!(
            result["capabilities"], declared,
            "nothing that needs a session"
        );

        let version = [("mcp-protocol-version", revision)];
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let accepted = post(&service().0, &version, initialized).await;
        assert_eq!(accepted.status(), StatusCode::ACCEPTED);
        let called = post(&service().0, &version, call(1, "plain")).await;
        assert_eq!(called.status(), StatusCode::OK);
        assert_eq!(body(called).await["result"]["content"][0]["text"], "done");
    }
}

#[runtimes::test]
async fn requests_without_a_version_are_those_of_2025_03_26() {
    let (service, _) = service();
    post(&service, &[], initialize("2025-03-26")).await;
    let batch = json!([call(1, "plain"), call(2, "plain")]);
    let answered = post(&service, &[], batch.clone()).await;
    assert_eq!(body(answered).await.as_array().map(Vec::len), Some(2));
    let refused = post(&service, &[("mcp-protocol-version", "2025-11-25")], batch).await;
    assert_eq!(
        refused.status(),
        StatusCode::BAD_REQUEST,
        "it has no batches"
    );
}

#[runtimes::test]
async fn progress_is_streamed_and_a_client_that_leaves_cancels_its_call() {
    let (service, cancelled) = service();
    post(&service, &[], initialize("2025-11-25")).await;
    let version = [("mcp-protocol-version", "2025-11-25")];
    let mut stream = post(&service, &version, call(1, "reports"))
        .await
        .into_body();
    let mut messages = Vec::new();
    while let Some(found) = events(&mut stream).await {
        messages.extend(found.into_iter().map(|(id, message)| {
            assert_eq!(id, "", "the stream cannot be resumed");
            message
        }));
    }
    assert_eq!(messages[0]["method"], "notifications/progress");
    assert_eq!(messages[1]["result"]["content"][0]["text"], "done");

    let mut stream = post(&service, &version, call(2, "waits")).await.into_body();
    events(&mut stream).await.expect("progress");
    drop(stream);
    assert!(cancelled.load(Ordering::SeqCst));
}

#[runtimes::test]
async fn what_needs_a_session_is_refused() {
    let (service, _) = service();
    post(&service, &[], initialize("2025-11-25")).await;
    let version = [("mcp-protocol-version", "2025-11-25")];
    for method in [Method::GET, Method::DELETE] {
        let refused = service.handle(request(method, &version, Value::Null)).await;
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(refused.headers()["allow"], "POST");
    }
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"uri": "test://a"}});
        let refused = post(&service, &version, message).await;
        assert_eq!(body(refused).await["error"]["code"], -32601, "{method}");
    }
    let asked = post(&service, &version, call(2, "asks")).await;
    let text = body(asked).await["result"]["content"][0]["text"].clone();
    assert!(
        text.as_str()
            .is_some_and(|text| text.contains("elicitation")),
        "{text}"
    );
    let unsupported = post(
        &service,
        &[("mcp-protocol-version", "1999-01-01")],
        call(3, "plain"),
    )
    .await;
    assert_eq!(unsupported.status(), StatusCode::BAD_REQUEST);
    let mut sse = request(Method::GET, &[], Value::Null);
    *sse.uri_mut() = "/sse".parse().expect("a URI");
    assert_eq!(service.handle(sse).await.status(), StatusCode::NOT_FOUND);
}

#[runtimes::test]
async fn custom_notifications_are_handled() {
    let handled = Arc::new(AtomicUsize::new(0));
    let count = handled.clone();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let sender = std::sync::Mutex::new(Some(sender));
    let server = Server::new("stateless", "1").on_notification(
        "acme/noted",
        move |_: Nothing, _: Context| {
            count.fetch_add(1, Ordering::SeqCst);
            if let Some(sender) = sender.lock().expect("not poisoned").take() {
                let _ = sender.send(());
            }
            async {}
        },
    );
    let service = server.http_service(options());
    let note = json!({"jsonrpc": "2.0", "method": "acme/noted", "params": {}});
    let accepted = service
        .handle(request(
            Method::POST,
            &[("mcp-protocol-version", "2025-11-25")],
            note,
        ))
        .await;
    assert_eq!(accepted.status(), StatusCode::ACCEPTED);
    receiver.await.expect("it was handled");
    assert_eq!(handled.load(Ordering::SeqCst), 1);
}

#[runtimes::test]
async fn real_clients_of_every_revision_work_and_leave_nothing_behind() {
    let cancelled = Arc::default();
    let server = server(&cancelled);
    let bound = http("127.0.0.1:0", options()).await.expect("a port");
    let url = format!("http://127.0.0.1:{}/mcp", bound.address().port());
    let stop = Stop::new();
    let serving = tokio::spawn({
        let stop = stop.clone();
        async move { server.serve_until(bound, stop).await }
    });
    for revision in Revision::ALL
        .iter()
        .filter(|revision| **revision != Revision::V2024_11_05)
    {
        let host =
            Client::builder("host", "1").configure(|settings| settings.revisions = vec![*revision]);
        let client = host
            .connect(Address::from(url.clone()))
            .await
            .expect("connects");
        assert_eq!(client.revision(), *revision);
        let result = client
            .call_tool("plain", &json!({}))
            .await
            .expect("a result");
        assert!(!result.is_error.unwrap_or_default(), "{revision}");
        client.close().await;
    }
    stop.stop();
    serving.await.expect("no panic").expect("it served");
}
