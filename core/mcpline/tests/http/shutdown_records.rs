//! A shutdown waits until the requests that are answered are recorded, which happens after their response.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support::Nothing;
use crate::support::requests::{body, call, request};
use http::Method;
use mcpline::protocol::vocabulary::Tool;
use mcpline::server::{Call, Handler, Reply, ToolOptions, ToolReply};
use mcpline::transport::http::{HttpOptions, HttpService};
use mcpline::{Context, Server, foreign};
use serde_json::json;
use tokio::time::Instant;
use tracing::subscriber::NoSubscriber;

/// Answers on a thread of its own, as a handler of another runtime does, and returns when the response is written.
struct AnswersElsewhere {
    answering: Mutex<Option<JoinHandle<()>>>,
    is_answered: Mutex<Receiver<()>>,
}

impl Handler for AnswersElsewhere {
    fn call(&self, call: Call) {
        let answering = std::thread::spawn(move || {
            call.reply(Ok(Reply::Tool(ToolReply::default())));
        });
        *self.answering.lock().expect("not poisoned") = Some(answering);
        let is_answered = self.is_answered.lock().expect("not poisoned");
        is_answered.recv().expect("an answer");
    }
}

/// Calls a tool on 2026-07-28.
async fn answer(service: &HttpService, tool: &str) {
    let mut message = call(1, tool);
    let meta = &mut message["params"]["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
    ];
    let request = request(Method::POST, &headers, message);
    let answer = body(service.handle(request).await).await;
    assert!(answer["result"].is_object(), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_the_record_of_an_answered_request() {
    let (answered, is_answered) = channel();
    let handler = Arc::new(AnswersElsewhere {
        answering: Mutex::default(),
        is_answered: Mutex::new(is_answered),
    });
    let server = Server::new("recorded", "1");
    let tool = Tool::new("elsewhere", json!({"type": "object"}));
    server
        .add_tool(tool, ToolOptions::default(), handler.clone())
        .expect("a tool");
    let (go_on, blocked) = channel();
    let blocked = Mutex::new(blocked);
    server.on_request_end(move |_| {
        answered.send(()).expect("the handler waits");
        let blocked = blocked.lock().expect("not poisoned");
        blocked.recv().expect("the test goes on");
    });
    let service = server.http_service(HttpOptions::default());
    answer(&service, "elsewhere").await;
    let began = Instant::now();
    let mut shutdown = std::pin::pin!(service.shut_down(Duration::from_secs(10)));
    tokio::select! {
        biased;
        () = &mut shutdown => panic!("the request is not recorded"),
        () = tokio::time::sleep(Duration::from_millis(100)) => {}
    }
    go_on.send(()).expect("the record waits");
    let answering = handler.answering.lock().expect("not poisoned").take();
    answering.expect("a thread").join().expect("answers");
    shutdown.await;
    assert!(began.elapsed() < Duration::from_millis(200));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_keeps_its_context_delays_no_shutdown_if_another_language_traces_it() {
    // Other tests of this program record spans.
    let _unrecorded = tracing::subscriber::set_default(NoSubscriber::default());
    let kept: Arc<Mutex<Option<Context>>> = Arc::default();
    let keeps = kept.clone();
    let server = Server::new("recorded", "1").tool("keeps", "", move |_: Nothing, ctx: Context| {
        *keeps.lock().expect("not poisoned") = Some(ctx);
        async { "done" }
    });
    foreign::trace_requests(&server, |_| {});
    let service = server.http_service(HttpOptions::default());
    answer(&service, "keeps").await;
    assert!(kept.lock().expect("not poisoned").is_some());
    let began = Instant::now();
    service.shut_down(Duration::from_secs(10)).await;
    let took = began.elapsed();
    assert!(took < Duration::from_millis(100), "{took:?}");
}
