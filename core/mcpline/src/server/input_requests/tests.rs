//! Tests on one thread, which control the order of events.

use std::sync::Mutex;

use mcpline_protocol::session::SessionScope;
use mcpline_protocol::vocabulary::Tool;
use serde_json::{Value, json};

use crate::server::connection::Connection;
use crate::server::test_sink::{FnHandler, TestSink, connection, modern_call, receive};
use crate::server::{Call, HandlerError, Reply, Server, ToolOptions, ToolReply};

use super::*;

fn elicitation() -> InputRequest {
    let params =
        json!({"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}});
    InputRequest::new(
        InputRequestMethod::Elicit,
        Raw::from_serialize(&params).ok(),
    )
}

/// A server whose tool `ask` passes its calls to `run`.
fn server(run: impl Fn(Call) + Send + Sync + 'static) -> Server {
    let server = Server::new("test", "1");
    let tool = Tool::new("ask", json!({"type": "object"}));
    server
        .add_tool(tool, ToolOptions::default(), Arc::new(FnHandler(run)))
        .expect("a tool");
    server
}

/// An exchange of its own, as for each request over HTTP.
fn exchange(server: &Server) -> (Arc<Connection>, Arc<TestSink>) {
    let connection = connection(server.inner(), SessionScope::Exchange);
    (connection, Arc::new(TestSink::default()))
}

fn retry(round: &Value) -> Value {
    let state = round["result"]["requestState"].clone();
    assert!(state.is_string(), "{round}");
    let more = json!({"requestState": state, "inputResponses": {"ask-1": {"action": "decline"}}});
    modern_call(2, "ask", &more)
}

async fn settle() {
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn answers_a_retry_that_arrives_before_its_round_is_sent() {
    let server = server(|call: Call| {
        call.context().request_input_with(elicitation(), move |_| {
            // Later, in a task of its own.
            tokio::spawn(async { call.reply(Ok(Reply::Tool(ToolReply::text("done")))) });
        });
    });
    let (first, sink) = exchange(&server);
    let (second, answers) = exchange(&server);
    // As another thread may do as soon as the round is sent.
    let (from, to) = (second.clone(), answers.clone());
    sink.on_response(move |round| receive(&from, &to, &retry(&round)));
    receive(&first, &sink, &modern_call(1, "ask", &json!({})));
    settle().await;
    let answered = answers.responses();
    assert_eq!(answered.len(), 1);
    assert_eq!(answered[0]["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn a_call_that_requests_input_again_at_once_keeps_the_request_of_its_retry() {
    let server = server(|call: Call| {
        let context = call.context();
        context.clone().request_input_with(elicitation(), move |_| {
            context.request_input_with(elicitation(), move |_| drop(call));
        });
    });
    let (first, sink) = exchange(&server);
    let (second, answers) = exchange(&server);
    let (from, to) = (second.clone(), answers.clone());
    sink.on_response(move |round| receive(&from, &to, &retry(&round)));
    receive(&first, &sink, &modern_call(1, "ask", &json!({})));
    settle().await;
    let rounds = answers.responses();
    assert_eq!(rounds.len(), 1);
    assert_eq!(rounds[0]["result"]["resultType"], "input_required");
}

#[tokio::test]
async fn a_result_of_a_suspended_call_answers_the_retry() {
    let held: Arc<Mutex<Option<Call>>> = Arc::default();
    let holder = held.clone();
    let server = server(move |call: Call| {
        call.context().request_input_with(elicitation(), |_| {});
        *holder.lock().expect("no panic") = Some(call);
    });
    let (first, sink) = exchange(&server);
    receive(&first, &sink, &modern_call(1, "ask", &json!({})));
    settle().await;
    let round = sink.responses().remove(0);
    // The handler did not wait for the response.
    let call = held.lock().expect("no panic").take().expect("a call");
    call.reply(Ok(Reply::Tool(ToolReply::text("without an answer"))));
    let (second, answers) = exchange(&server);
    receive(&second, &answers, &retry(&round));
    let answered = answers.responses();
    assert_eq!(answered.len(), 1);
    assert_eq!(
        answered[0]["result"]["content"][0]["text"],
        "without an answer"
    );
}

#[tokio::test]
async fn an_input_request_that_races_a_cancellation_fails() {
    let outcomes: Arc<Mutex<Vec<Result<Raw, InputRequestError>>>> = Arc::default();
    let sink = outcomes.clone();
    let server = server(move |call: Call| {
        let sink = sink.clone();
        call.context()
            .request_input_with(elicitation(), move |outcome| {
                sink.lock().expect("no panic").push(outcome);
            });
        std::mem::forget(call);
    });
    let (first, sink) = exchange(&server);
    receive(&first, &sink, &modern_call(1, "ask", &json!({})));
    let call = first
        .lock_session()
        .request_handles()
        .find_map(|(_, served)| served.call.clone())
        .expect("in flight");
    // As if another thread had cancelled the call between the check and the input request.
    let pending = std::mem::take(&mut call.lock_record().pending);
    first.cancel_all();
    call.lock_record().pending = pending;
    settle().await;
    let outcomes = outcomes.lock().expect("no panic");
    assert_eq!(*outcomes, [Err(InputRequestError::Cancelled)]);
    assert!(sink.responses().is_empty());
}

#[tokio::test]
async fn a_round_that_cannot_be_sent_leaves_the_request_to_the_handler() {
    let server = Server::builder("test", "1")
        .settings(crate::Settings {
            max_input_rounds: 0,
            ..crate::Settings::default()
        })
        .build()
        .expect("builds");
    let tool = Tool::new("ask", json!({"type": "object"}));
    let handler = FnHandler(|call: Call| {
        call.context()
            .request_input_with(elicitation(), move |outcome| {
                let error = outcome.expect_err("no rounds");
                call.reply(Err(HandlerError::Tool(error.to_string())));
            });
    });
    server
        .add_tool(tool, ToolOptions::default(), Arc::new(handler))
        .expect("a tool");
    let (first, sink) = exchange(&server);
    receive(&first, &sink, &modern_call(1, "ask", &json!({})));
    settle().await;
    assert_eq!(sink.responses().len(), 1);
    assert_eq!(sink.responses()[0]["result"]["isError"], true);
}
