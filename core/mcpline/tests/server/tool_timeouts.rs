//! Timeouts of tools: what the client gets, what the handler notices, and which time counts.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::log::Log;
use crate::support::{Client, Nothing};
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::Tool;
use mcpline::server::{Call, ToolDefinition, ToolOptions};
use mcpline::{
    Context, ErrorKind, HandlerError, InputRequest, InputRequestMethod, InputRequired, Reply,
    Server, Settings, ToolReply,
};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(10);
const HALF: Duration = Duration::from_secs(5);

fn options() -> ToolOptions {
    ToolOptions::default().with_timeout(TIMEOUT)
}

/// A server with one tool, `work`, that has the timeout.
fn server<Fut>(run: impl Fn(Context) -> Fut + Send + Sync + 'static) -> Server
where
    Fut: Future<Output = Result<String, HandlerError>> + Send + 'static,
{
    let server = Server::new("timeouts", "1");
    let tool = Tool::new("work", json!({"type": "object"}));
    server
        .add_tool_fn(tool, options(), move |_: Value, ctx: Context| run(ctx))
        .expect("a tool");
    server
}

async fn never(_: Context) -> Result<String, HandlerError> {
    std::future::pending().await
}

fn call() -> Value {
    json!({"name": "work", "arguments": {}})
}

fn elapsed(started: tokio::time::Instant) -> Duration {
    // Timers of tokio have a resolution of one millisecond.
    Duration::from_secs(started.elapsed().as_secs())
}

/// Asserts that the result is the error of a timeout.
fn assert_timed_out(result: &Value) {
    assert_eq!(result["isError"], true, "{result}");
    let text = &result["content"][0]["text"];
    assert_eq!(text, "The tool work did not finish within 10 seconds");
}

fn assert_text(result: &Value, text: &str) {
    assert_eq!(result["content"][0]["text"], text, "{result}");
}

fn elicitation() -> InputRequest {
    let params = json!({"message": "Name?", "requestedSchema": {
        "type": "object", "properties": {"name": {"type": "string"}}}});
    InputRequest::new(
        InputRequestMethod::Elicit,
        Raw::from_serialize(&params).ok(),
    )
}

fn answer() -> Value {
    json!({"action": "accept", "content": {"name": "Ada"}})
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_is_answered_with_a_tool_error() {
    let server = server(never);
    let started = tokio::time::Instant::now();
    let mut client = Client::modern(&server);
    let result = client
        .call_modern("work", json!({}))
        .await
        .expect("a result");
    assert_timed_out(&result);
    assert_eq!(elapsed(started), TIMEOUT);
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::legacy(&server, revision).await;
        let id = client.begin("tools/call", call());
        assert_timed_out(&client.response(&id).await.expect("a result"));
        assert!(client.try_next().is_none(), "one response");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_finishes_in_time_is_answered_once() {
    let server = server(async |_| {
        tokio::time::sleep(HALF).await;
        Ok("done".to_owned())
    });
    let mut client = Client::modern(&server);
    let result = client
        .call_modern("work", json!({}))
        .await
        .expect("a result");
    assert_text(&result, "done");
    tokio::time::sleep(TIMEOUT * 2).await;
    assert!(client.try_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn the_timeout_cancels_the_handler_and_drops_its_future() {
    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let cancelled = Arc::new(AtomicU32::new(0));
    let contexts: Arc<Mutex<Vec<Context>>> = Arc::default();
    let (held, counted, kept) = (dropped.clone(), cancelled.clone(), contexts.clone());
    let server = server(move |ctx: Context| {
        let held = Dropped(held.clone());
        let counted = counted.clone();
        ctx.on_cancel(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        kept.lock().expect("not poisoned").push(ctx.clone());
        async move {
            let _held = held;
            never(ctx).await
        }
    });
    let mut client = Client::modern(&server);
    let result = client
        .call_modern("work", json!({}))
        .await
        .expect("a result");
    assert_timed_out(&result);
    tokio::task::yield_now().await;
    assert!(dropped.load(Ordering::SeqCst));
    assert_eq!(cancelled.load(Ordering::SeqCst), 1);
    let context = contexts.lock().expect("not poisoned").pop().expect("one");
    assert!(context.is_cancelled());
    // Later ones run at once.
    let counted = cancelled.clone();
    context.on_cancel(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    assert_eq!(cancelled.load(Ordering::SeqCst), 2);
    context
        .request_input(elicitation())
        .await
        .expect_err("the call is over");
}

/// Keeps its calls, as handlers on threads that cannot be stopped do.
struct Keeps(Arc<Mutex<Vec<Call>>>);

impl mcpline::Handler for Keeps {
    fn call(&self, call: Call) {
        self.0.lock().expect("not poisoned").push(call);
    }
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_handler_that_goes_on_is_dropped() {
    let calls: Arc<Mutex<Vec<Call>>> = Arc::default();
    let kept = calls.clone();
    let server = Server::new("timeouts", "1");
    let tool = Tool::new("work", json!({"type": "object"}));
    let added = server.add_tool(tool, options(), Arc::new(Keeps(kept)));
    added.expect("a tool");
    let mut client = Client::modern(&server);
    let result = client
        .call_modern("work", json!({}))
        .await
        .expect("a result");
    assert_timed_out(&result);
    let call = calls.lock().expect("not poisoned").pop().expect("one call");
    assert!(call.context().is_cancelled());
    call.reply(Ok(Reply::Tool(ToolReply::text("too late"))));
    tokio::time::sleep(TIMEOUT).await;
    assert!(client.try_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_its_client_cancels_is_not_answered_by_the_timeout() {
    let server = server(never);
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tools/call", call());
    tokio::time::sleep(HALF).await;
    client.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
    );
    tokio::time::sleep(TIMEOUT * 2).await;
    assert!(client.try_next().is_none());
}

/// A tool that works for half of its time, asks, works for the rest of its time but a second, and for `longer`.
fn requesting_server(longer: Duration) -> Server {
    server(move |ctx: Context| async move {
        tokio::time::sleep(HALF).await;
        ctx.request_input(elicitation()).await?;
        tokio::time::sleep(HALF - Duration::from_secs(1)).await;
        tokio::time::sleep(longer).await;
        Ok("done".to_owned())
    })
}

#[tokio::test(start_paused = true)]
async fn time_in_which_an_input_request_is_open_does_not_count_on_handshake_revisions() {
    for (longer, is_in_time) in [(Duration::ZERO, true), (HALF, false)] {
        let server = requesting_server(longer);
        let mut client = Client::legacy(&server, "2025-11-25").await;
        let id = client.begin("tools/call", call());
        let input_request = client.next().await;
        assert_eq!(input_request["method"], "elicitation/create");
        tokio::time::sleep(TIMEOUT * 6).await;
        assert!(client.try_next().is_none(), "the time is held");
        let answered = tokio::time::Instant::now();
        client.send(json!({"jsonrpc": "2.0", "id": input_request["id"], "result": answer()}));
        let result = client.response(&id).await.expect("a result");
        match is_in_time {
            true => assert_text(&result, "done"),
            false => {
                assert_timed_out(&result);
                assert_eq!(elapsed(answered), HALF);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn time_in_which_a_handler_is_suspended_does_not_count() {
    for (longer, is_in_time) in [(Duration::ZERO, true), (HALF, false)] {
        let server = requesting_server(longer);
        let mut client = Client::modern(&server);
        let asked = client
            .call_modern("work", json!({}))
            .await
            .expect("a result");
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        tokio::time::sleep(TIMEOUT * 6).await;
        assert!(client.try_next().is_none(), "the time is held");
        let answered = tokio::time::Instant::now();
        let retry =
            json!({"requestState": asked["requestState"], "inputResponses": {"ask-1": answer()}});
        let result = client.call_modern("work", retry).await.expect("a result");
        match is_in_time {
            true => assert_text(&result, "done"),
            false => {
                assert_timed_out(&result);
                assert_eq!(elapsed(answered), HALF);
            }
        }
        assert!(client.try_next().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_is_held_until_the_last_of_several_input_requests_is_answered() {
    let server = server(|ctx: Context| async move {
        let (one, other) = tokio::join!(
            ctx.request_input(elicitation().with_key("one")),
            ctx.request_input(elicitation().with_key("other"))
        );
        one.and(other)?;
        never(ctx).await
    });
    let mut client = Client::modern(&server);
    let asked = client
        .call_modern("work", json!({}))
        .await
        .expect("a result");
    let retry = json!({"requestState": asked["requestState"], "inputResponses": {"one": answer()}});
    let asked = client.call_modern("work", retry).await.expect("a result");
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    tokio::time::sleep(TIMEOUT * 2).await;
    let answered = tokio::time::Instant::now();
    let retry =
        json!({"requestState": asked["requestState"], "inputResponses": {"other": answer()}});
    let result = client.call_modern("work", retry).await.expect("a result");
    assert_timed_out(&result);
    assert_eq!(elapsed(answered), TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_handler_that_gets_no_answer_ends_with_its_request_state() {
    let held = Arc::new(());
    let weak = Arc::downgrade(&held);
    let mut settings = Settings::default();
    settings.state_lifetime = TIMEOUT * 2;
    let server = Server::builder("timeouts", "1").settings(settings);
    let server = server.build().expect("builds");
    let tool = Tool::new("work", json!({"type": "object"}));
    server
        .add_tool_fn(tool, options(), move |_: Value, ctx: Context| {
            let running = held.clone();
            async move {
                ctx.request_input(elicitation()).await?;
                drop(running);
                Ok::<_, HandlerError>("done".to_owned())
            }
        })
        .expect("a tool");
    let mut client = Client::modern(&server);
    let asked = client
        .call_modern("work", json!({}))
        .await
        .expect("a result");
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(
        weak.strong_count(),
        2,
        "the server has one, the handler the other"
    );
    tokio::time::sleep(TIMEOUT * 3).await;
    assert_eq!(weak.strong_count(), 1, "the handler is gone");
    assert!(client.try_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_called_again_with_answers_has_the_whole_time_again() {
    let server = server(|ctx: Context| async move {
        tokio::time::sleep(TIMEOUT - Duration::from_secs(1)).await;
        match ctx.input_responses() {
            Some(_) => Ok("done".to_owned()),
            None => Err(HandlerError::InputRequired(InputRequired {
                requests: vec![mcpline::server::KeyedInputRequest {
                    key: "name".to_owned(),
                    method: InputRequestMethod::Elicit,
                    params: elicitation().params,
                }],
                state: None,
            })),
        }
    });
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let id = client.begin("tools/call", call());
    let input_request = client.next().await;
    tokio::time::sleep(TIMEOUT).await;
    client.send(json!({"jsonrpc": "2.0", "id": input_request["id"], "result": answer()}));
    assert_text(&client.response(&id).await.expect("a result"), "done");
}

#[tokio::test(start_paused = true)]
async fn a_mounted_tool_keeps_its_timeout() {
    let mounted = server(never);
    let parent = Server::new("parent", "1");
    parent.mount(&mounted, Default::default()).expect("mounted");
    let mut client = Client::modern(&parent);
    let result = client
        .call_modern("work", json!({}))
        .await
        .expect("a result");
    assert_timed_out(&result);
}

#[tokio::test(start_paused = true)]
async fn an_updated_tool_keeps_its_timeout() {
    let server = server(never);
    let renamed = server.update_tool("work", |tool| tool.title = Some("Work".to_owned()));
    renamed.expect("updated");
    let mut client = Client::modern(&server);
    let result = client
        .call_modern("work", json!({}))
        .await
        .expect("a result");
    assert_timed_out(&result);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_logged() {
    let log = Log::new(tracing::Level::WARN);
    let _guard = tracing::subscriber::set_default(log.clone());
    let server = server(never);
    let mut client = Client::modern(&server);
    let result = client
        .call_modern("work", json!({}))
        .await
        .expect("a result");
    assert_timed_out(&result);
    tokio::task::yield_now().await;
    assert!(log.has("`timeout` of 10 seconds"), "{:?}", log.lines());
}

#[tokio::test(start_paused = true)]
async fn a_definition_sets_the_timeout() {
    let server = Server::new("timeouts", "1");
    let definition = ToolDefinition::new("work", |_: Nothing| async {
        std::future::pending::<String>().await
    });
    server.add(definition.timeout(TIMEOUT)).expect("a tool");
    let mut client = Client::modern(&server);
    let result = client
        .call_modern("work", json!({}))
        .await
        .expect("a result");
    assert_timed_out(&result);
}

struct App;

#[mcpline::tools]
impl App {
    /// Never ends.
    #[tool(timeout = TIMEOUT)]
    async fn work(&self) -> String {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn the_macro_sets_the_timeout() {
    let server = Server::new("timeouts", "1").with(App);
    let mut client = Client::modern(&server);
    let result = client
        .call_modern("work", json!({}))
        .await
        .expect("a result");
    assert_timed_out(&result);
}

#[test]
fn a_timeout_of_zero_is_refused() {
    let server = Server::new("timeouts", "1");
    let tool = Tool::new("work", json!({"type": "object"}));
    let options = ToolOptions::default().with_timeout(Duration::ZERO);
    let refused = server.add_tool_fn(tool, options, |_: Value, ctx: Context| never(ctx));
    let error = refused.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(
        error.to_string(),
        "tool \"work\": `timeout` must be longer than 0"
    );
}
