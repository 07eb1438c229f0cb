//! A suspended handler resumes with the metadata of the retry, or is cancelled when it expires (2026-07-28).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::support::connection::TEST_TIMEOUT;
use crate::support::{Client, Nothing};
use mcpline::protocol::Raw;
use mcpline::protocol::session::InputRequestError;
use mcpline::protocol::vocabulary::LoggingLevel;
use mcpline::{
    Context, HandlerError, InputRequest, InputRequestMethod, Server, Settings, transport,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

fn name_request() -> InputRequest {
    let form = json!({"message": "Name?", "requestedSchema": {
        "type": "object", "properties": {"name": {"type": "string"}}}});
    InputRequest::new(InputRequestMethod::Elicit, Raw::from_serialize(&form).ok())
}

/// The parameters of a retried call of `ask`, with an answer.
fn retry(result: &Value) -> Value {
    assert_eq!(result["resultType"], "input_required", "{result}");
    let answers = json!({"ask-1": {"action": "accept", "content": {"name": "Ada"}}});
    json!({"requestState": result["requestState"], "inputResponses": answers})
}

#[runtimes::test]
async fn a_resumed_handler_uses_the_token_and_log_level_of_the_retry() {
    let server =
        Server::new("resuming", "1").tool("ask", "Asks", |_: Nothing, ctx: Context| async move {
            let report = |ctx: &Context, step: f64| {
                ctx.progress(step, None, None);
                ctx.log(LoggingLevel::Info, None, format!("step {step}"));
            };
            report(&ctx, 1.0);
            ctx.request_input(name_request()).await?;
            report(&ctx, 2.0);
            Ok::<_, HandlerError>(format!("{:?}", ctx.meta().map(|meta| meta.member("mine"))))
        });
    let mut client = Client::modern(&server);
    client.capabilities = json!({"elicitation": {}});
    let meta = |token: &str, level: &str| json!({"progressToken": token, "io.modelcontextprotocol/logLevel": level, "mine": token});
    let first = json!({"name": "ask", "arguments": {}, "_meta": meta("first", "error")});
    let id = client.begin_modern("tools/call", first);
    let progress = client.next().await;
    assert_eq!(progress["params"]["progressToken"], "first");
    // The log message is below the level.
    let input_required = client.next().await;
    assert_eq!(input_required["id"], id);

    let mut again = retry(&input_required["result"]);
    again["name"] = "ask".into();
    again["arguments"] = json!({});
    again["_meta"] = meta("second", "debug");
    let id = client.begin_modern("tools/call", again);
    let progress = client.next().await;
    assert_eq!(progress["params"]["progressToken"], "second");
    let log = client.next().await;
    assert_eq!(log["params"]["data"], "step 2");
    let result = client.response(&id).await.expect("a result");
    assert!(result.to_string().contains("second"), "{result}");
}

#[runtimes::test]
async fn a_resumed_handler_uses_the_capabilities_of_the_retry() {
    let server = Server::new("resuming", "1").tool(
        "ask",
        "Asks twice",
        |_: Nothing, ctx: Context| async move {
            ctx.request_input(name_request()).await?;
            Ok::<_, HandlerError>(match ctx.request_input(name_request()).await {
                Err(InputRequestError::NotSupported(_)) => "can't be asked".to_owned(),
                other => format!("{other:?}"),
            })
        },
    );
    let mut client = Client::modern(&server);
    let input_required = client.call_modern("ask", json!({})).await;
    client.capabilities = json!({});
    let again = retry(&input_required.expect("a question"));
    let result = client.call_modern("ask", again).await.expect("a result");
    assert_eq!(result["content"][0]["text"], "can't be asked");
}

/// Sends a message when it is dropped.
struct Dropped(mpsc::UnboundedSender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        // The test may have ended.
        let _ = self.0.send(());
    }
}

#[runtimes::test]
async fn cancels_a_handler_that_is_not_retried_in_time() {
    let (sender, mut dropped) = mpsc::unbounded_channel();
    let mut settings = Settings::default();
    settings.state_lifetime = Duration::from_millis(10);
    let server = Server::builder("resuming", "1")
        .settings(settings)
        .build()
        .expect("a server")
        .tool("ask", "Asks", move |_: Nothing, ctx: Context| {
            let held = Dropped(sender.clone());
            async move {
                let answer = ctx.request_input(name_request()).await;
                drop(held);
                answer.map(|_| "answered").map_err(HandlerError::from)
            }
        });
    let mut client = Client::modern(&server);
    let input_required = client.call_modern("ask", json!({})).await;
    assert_eq!(
        input_required.expect("a question")["resultType"],
        "input_required"
    );
    let cancelled = tokio::time::timeout(TEST_TIMEOUT, dropped.recv()).await;
    assert_eq!(cancelled, Ok(Some(())));
}

#[runtimes::test]
async fn a_client_that_leaves_does_not_cancel_handlers_of_others() {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let server =
        Server::new("resuming", "1").tool("ask", "Asks", move |_: Nothing, ctx: Context| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                ctx.request_input(name_request()).await?;
                Ok::<_, HandlerError>("answered")
            }
        });
    let mut client = Client::modern(&server);
    let input_required = client.call_modern("ask", json!({})).await;
    let pipe = transport::lines(tokio::io::empty(), tokio::io::sink());
    server.serve(pipe).await.expect("its input has ended");
    let again = retry(&input_required.expect("a question"));
    let result = client.call_modern("ask", again).await.expect("a result");
    assert_eq!(result["content"][0]["text"], "answered");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}
