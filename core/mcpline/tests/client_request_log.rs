//! Records of a client's requests: one for each that it sends or answers, with its outcome.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpline::client::middleware::{ClientNext, ClientRequest, ToolPolicy};
use mcpline::client::{Client, ClientBuilder, ClientError, ClientRequestRecord, RequestOptions};
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::{Resource, Root};
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, http};
use mcpline::{Context, RpcError, Server, ToolError};
use serde_json::json;
use support::Nothing;

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// What a listener gets, in the order in which requests end.
#[derive(Clone, Default)]
struct Records(Arc<Mutex<Vec<String>>>);

impl Records {
    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("not poisoned"))
    }

    /// Returns a builder of clients whose records are kept, with their durations in whole seconds.
    fn builder(&self, revision: &str) -> ClientBuilder {
        self.builder_with(revision, |record| {
            let seconds = record.duration.as_secs_f64().round();
            let (direction, server) = (record.direction.name(), record.server.unwrap_or("-"));
            format!(
                "{direction} {} {:?} {} {seconds} s {server}",
                record.method, record.name, record.outcome
            )
        })
    }

    fn builder_with(
        &self,
        revision: &str,
        line: impl Fn(&ClientRequestRecord<'_>) -> String + Send + Sync + 'static,
    ) -> ClientBuilder {
        let kept = self.0.clone();
        Client::builder("test", "1")
            .configure(|settings| settings.revisions = vec![revision.parse().expect("a revision")])
            .on_request_end(move |record| kept.lock().expect("not poisoned").push(line(record)))
    }
}

fn server() -> Server {
    Server::new("weather", "1")
        .tool("ok", "Works", async || "fine")
        .tool("fails", "Fails", async || {
            Err::<String, _>(ToolError::new("no"))
        })
        .tool("waits", "Waits", async || {
            tokio::time::sleep(Duration::from_secs(2)).await;
            "done"
        })
        .tool("hangs", "Never ends", async || {
            std::future::pending::<String>().await
        })
        .tool("asks", "Asks", |_: Nothing, ctx: Context| async move {
            let asked = ctx
                .request_input(mcpline::InputRequest::new(
                    mcpline::InputRequestMethod::ListRoots,
                    None,
                ))
                .await;
            asked
                .map(|_| "answered")
                .map_err(|error| ToolError::new(error.to_string()))
        })
        .resource(Resource::new("a://b", "b"), async || "b")
}

fn timeout(seconds: u64) -> RequestOptions {
    RequestOptions::new().timeout(Duration::from_secs(seconds))
}

#[tokio::test(start_paused = true)]
async fn each_request_of_the_program_is_recorded_with_its_outcome() {
    for revision in [LEGACY, MODERN] {
        let records = Records::default();
        let client = records.builder(revision).connect(server()).await;
        let client = client.expect("connects");
        client.list_tools().await.expect("tools");
        for tool in ["ok", "fails", "waits"] {
            client.call_tool(tool, json!({})).await.expect("a result");
        }
        let missing = client.call_tool("missing", json!({})).await;
        missing.expect_err("no such tool");
        client.read_resource("a://b").await.expect("a resource");
        let late = client.call_tool_with("hangs", json!({}), &timeout(3)).await;
        late.expect_err("a timeout");
        let given_up = client.call_tool("hangs", json!({}));
        let given_up = tokio::time::timeout(Duration::from_secs(4), given_up).await;
        given_up.expect_err("it hangs");
        let params = Raw::from_trusted("[]");
        let options = RequestOptions::new();
        let invalid = client.request("tools/call", Some(&params), &options).await;
        invalid.expect_err("no object");
        client.close().await;
        let closed = client.call_tool("ok", json!({})).await;
        closed.expect_err("a closed client");
        assert_eq!(
            records.taken(),
            [
                r#"sent tools/list "" ok 0 s weather"#,
                r#"sent tools/call "ok" ok 0 s weather"#,
                r#"sent tools/call "fails" tool_error 0 s weather"#,
                r#"sent tools/call "waits" ok 2 s weather"#,
                r#"sent tools/call "missing" error rpc_error -32602 0 s weather"#,
                r#"sent resources/read "a://b" ok 0 s weather"#,
                r#"sent tools/call "hangs" error request_timed_out 3 s weather"#,
                r#"sent tools/call "hangs" cancelled 4 s weather"#,
                r#"sent tools/call "ok" error closed 0 s -"#,
            ],
            "{revision}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_or_answered_without_the_server_is_recorded() {
    let records = Records::default();
    let answers = |request: ClientRequest, next: ClientNext| async move {
        match request.name().as_deref() {
            Some("answered") => Ok(Raw::from_trusted(r#"{"content":[]}"#)),
            _ => next.run(request).await,
        }
    };
    let client = records
        .builder(MODERN)
        .middleware(answers)
        .middleware(ToolPolicy::new().with_denied(["fails"]))
        .connect(server())
        .await
        .expect("connects");
    client.call_tool("answered", json!({})).await.expect("one");
    let refused = client.call_tool("fails", json!({})).await;
    assert!(matches!(refused, Err(ClientError::ToolCallRefused { .. })));
    assert_eq!(
        records.taken(),
        [
            r#"sent tools/call "answered" ok 0 s weather"#,
            r#"sent tools/call "fails" error tool_call_refused 0 s weather"#,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn requests_of_the_server_are_recorded_before_the_request_that_they_belong_to() {
    for revision in [LEGACY, MODERN] {
        let records = Records::default();
        let root = Root::new("file:///a").expect("a root");
        let fine = records.builder(revision).roots([root]);
        let client = fine.connect(server()).await.expect("connects");
        client.call_tool("asks", json!({})).await.expect("a result");
        let expected = [
            r#"received roots/list "" ok 0 s weather"#,
            r#"sent tools/call "asks" ok 0 s weather"#,
        ];
        assert_eq!(records.taken(), expected, "{revision}");

        let failing = records.builder(revision).list_roots_with(Arc::new(|_| {
            Box::pin(async { Err(RpcError::internal_error("no roots")) })
        }));
        let client = failing.connect(server()).await.expect("connects");
        // On 2026-07-28 the client gives the call up.
        let outcome = client.call_tool("asks", json!({})).await;
        let records = records.taken();
        let failed = r#"received roots/list "" error rpc_error -32603 0 s weather"#;
        assert_eq!(records[0], failed, "{revision}");
        let call = match outcome {
            Ok(_) => r#"sent tools/call "asks" tool_error 0 s weather"#,
            Err(_) => r#"sent tools/call "asks" error input_request_failed 0 s weather"#,
        };
        assert_eq!(records[1..], [call], "{revision}");

        // The caller gives the call up while the handler runs.
        let records = Records::default();
        let hanging = records
            .builder(revision)
            .list_roots_with(Arc::new(|_| Box::pin(std::future::pending())));
        let client = hanging.connect(server()).await.expect("connects");
        let call = client.call_tool("asks", json!({}));
        let call = tokio::time::timeout(Duration::from_secs(2), call).await;
        call.expect_err("it hangs");
        client.close().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut records = records.taken();
        records.sort_unstable();
        let expected = [
            r#"received roots/list "" cancelled 2 s weather"#,
            r#"sent tools/call "asks" cancelled 2 s weather"#,
        ];
        assert_eq!(records, expected, "{revision}");
    }
}

#[tokio::test]
async fn texts_of_models_and_servers_cannot_control_a_terminal_or_forge_lines() {
    let records = Records::default();
    let builder = records.builder(LEGACY);
    let server = Server::new("\u{1b}[31mred\r\nERROR forged\u{202e}", "1");
    let client = builder.connect(server).await.expect("connects");
    let name = format!("\u{1b}]0;title\u{7}no\nthing{}", "x".repeat(300));
    let _ = client.call_tool(&name, json!({})).await;
    let records = records.taken();
    assert_eq!(records.len(), 1);
    let expected = r#"sent tools/call "no thingxxx"#;
    assert!(records[0].starts_with(expected), "{records:?}");
    assert!(
        records[0].ends_with("red  ERROR forged\u{fffd}"),
        "{records:?}"
    );
    assert!(records[0].len() < 300, "{records:?}");
}

#[tokio::test]
async fn records_name_the_address_without_credentials_the_session_and_the_trace() {
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let bound = http("127.0.0.1:0", HttpOptions::default()).await;
    let bound = bound.expect("a port");
    let (url, port, stop) = (bound.url(), bound.address().port(), Stop::new());
    let serving = {
        let stop = stop.clone();
        tokio::spawn(async move { server().serve_until(bound, stop).await })
    };
    let records = Records::default();
    let builder = records.builder_with(LEGACY, |record| {
        assert_eq!(record.session.map(str::len), Some(8));
        record.to_string()
    });
    let client = builder.connect(&*url).await.expect("connects");
    let meta = json!({"traceparent": format!("00-{trace}-00f067aa0ba902b7-01")});
    let mut options = RequestOptions::new();
    options.meta = Some(Raw::from_serialize(&meta).expect("JSON"));
    let called = client.call_tool_with("ok", json!({}), &options).await;
    called.expect("a result");
    let records = records.taken();
    let line = &records[0];
    assert_eq!(records.len(), 1);
    assert!(
        line.starts_with(r#"sent tools/call "ok": ok in "#),
        "{line}"
    );
    let server = format!(r#" ms, server "weather", address "127.0.0.1:{port}", session "#);
    assert!(line.contains(&server), "{line}");
    assert!(line.ends_with(&format!(", trace {trace}")), "{line}");
    client.close().await;
    stop.stop();
    let served = serving.await.expect("no panic");
    served.expect("stops");
}
