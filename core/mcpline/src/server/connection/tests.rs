use std::sync::atomic::{AtomicUsize, Ordering};

use mcpline_protocol::Scopes;
use mcpline_protocol::vocabulary::{Resource, Tool};
use serde_json::{Value, json};

use crate::server::test_sink::{FnHandler, TestSink, read, receive, session};
use crate::server::{Call, HttpInfo, Server, ToolOptions};

use super::*;

/// A server with the tools `count`, which counts its calls and never answers, and `forbidden`, which requires a scope.
fn server(calls: &Arc<AtomicUsize>) -> Server {
    let server = Server::new("test", "1");
    let calls = calls.clone();
    let handler = FnHandler(move |call: Call| {
        calls.fetch_add(1, Ordering::SeqCst);
        std::mem::forget(call);
    });
    let handler = Arc::new(handler);
    let tool = |name: &str| Tool::new(name, json!({"type": "object"}));
    let mut options = ToolOptions::default();
    server
        .add_tool(tool("count"), options.clone(), handler.clone())
        .expect("a tool");
    options.scopes = Scopes::checked(["files:read"]).expect("a scope");
    server
        .add_tool(tool("forbidden"), options, handler)
        .expect("a tool");
    server
}

fn call(id: u64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}})
}

fn cancellation(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

/// The HTTP details of a request without a token.
fn http() -> Arc<HttpInfo> {
    let (mut parts, ()) = http::Request::post("/mcp")
        .body(())
        .expect("a request")
        .into_parts();
    Arc::new(HttpInfo::of(&mut parts))
}

#[runtimes::test]
async fn a_request_that_is_cancelled_before_its_call_is_attached_starts_no_handler() {
    let calls = Arc::new(AtomicUsize::new(0));
    let server = server(&calls);
    let connection = session(server.inner());
    let sink = Arc::new(TestSink::default());
    let to: Arc<dyn MessageSink> = sink.clone();
    let Ok(Incoming::Single(request)) = read(&call(1, "count")) else {
        panic!("a request");
    };
    let admission = connection.admit_locked(
        &mut connection.lock_session(),
        request,
        false,
        &to,
        None,
        None,
    );
    let ReceiveOutcome::Request(admitted) = admission.received else {
        panic!("it is admitted");
    };
    receive(
        &connection,
        &Arc::new(TestSink::default()),
        &cancellation(1),
    );
    assert_eq!(sink.abandoned(), 1);
    dispatch::dispatch(&connection, admitted, &to, None, None);
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    assert_eq!(sink.abandoned(), 1);
    assert!(connection.is_idle());
}

#[runtimes::test]
async fn a_request_that_is_cancelled_while_it_is_refused_ends() {
    let server = server(&Arc::default());
    let connection = session(server.inner());
    let sink = Arc::new(TestSink::default());
    let canceller = connection.clone();
    sink.on_demand(move || {
        receive(&canceller, &Arc::new(TestSink::default()), &cancellation(1));
    });
    let to: Arc<dyn MessageSink> = sink.clone();
    connection.receive(read(&call(1, "forbidden")), &to, Some(&http()));
    assert_eq!(sink.responses(), Vec::<Value>::new());
    assert_eq!(sink.abandoned(), 1);
}

#[runtimes::test]
async fn a_batch_completes_when_a_request_is_cancelled_before_its_call_is_attached() {
    let server = server(&Arc::default());
    let connection = session(server.inner());
    let sink = Arc::new(TestSink::default());
    let batch: Arc<dyn MessageSink> = Arc::new(BatchSink::new(sink.clone(), 2));
    let Ok(Incoming::Single(request)) = read(&call(1, "count")) else {
        panic!("a request");
    };
    let admission = connection.admit_locked(
        &mut connection.lock_session(),
        request,
        true,
        &batch,
        None,
        None,
    );
    let ReceiveOutcome::Request(admitted) = admission.received else {
        panic!("it is admitted");
    };
    receive(
        &connection,
        &Arc::new(TestSink::default()),
        &cancellation(1),
    );
    dispatch::dispatch(&connection, admitted, &batch, None, None);
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    connection.receive(read(&ping), &batch, None);
    assert_eq!(
        sink.responses(),
        [json!([{"jsonrpc": "2.0", "id": 2, "result": {}}])]
    );
}

/// Subscribes to a resource, or unsubscribes from it, in a session that processes share. Returns whether it succeeds.
fn change_subscription(connection: &Connection, method: &str, uri: &str) -> bool {
    let sink: Arc<dyn MessageSink> = Arc::new(TestSink::default());
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"uri": uri}});
    let Ok(Incoming::Single(request)) = read(&request) else {
        panic!("a request");
    };
    let mut session = connection.lock_session();
    session.begin_change(1);
    let admission = connection.admit_locked(&mut session, request, false, &sink, None, None);
    match admission.received {
        ReceiveOutcome::Reply { outcome, .. } => outcome.is_ok(),
        _ => panic!("it is answered at once"),
    }
}

#[runtimes::test]
async fn a_client_without_memory_left_unsubscribes_only_from_what_it_is_subscribed_to() {
    let server = server(&Arc::default());
    // With it, the server has the capability.
    let resource = Resource::new("file:///a", "a");
    let handler = Arc::new(FnHandler(|_| unreachable!("it is not read")));
    server.add_resource(resource, handler).expect("a resource");
    let connection = session(server.inner());
    assert!(change_subscription(
        &connection,
        "resources/subscribe",
        "file:///a"
    ));
    let mut held = Vec::new();
    for bytes in [1 << 20, 1 << 10, 1] {
        while let Ok(charge) = connection.client().hold_bytes(bytes) {
            held.push(charge);
        }
    }
    let retained = || connection.lock_session().retained_bytes();
    let before = retained();
    // The session would keep it as a recent change.
    assert!(!change_subscription(
        &connection,
        "resources/unsubscribe",
        "file:///unknown"
    ));
    assert_eq!(retained(), before);
    assert!(change_subscription(
        &connection,
        "resources/unsubscribe",
        "file:///a"
    ));
    assert!(retained() < before);
    // As after a lost response. It takes no more memory.
    assert!(change_subscription(
        &connection,
        "resources/unsubscribe",
        "file:///a"
    ));
    held.clear();
    assert!(change_subscription(
        &connection,
        "resources/unsubscribe",
        "file:///unknown"
    ));
}

#[runtimes::test]
async fn refusing_an_oversize_batch_takes_no_more_than_three_times_its_size() {
    let server = server(&Arc::default());
    let connection = session(server.inner());
    let sink = Arc::new(TestSink::default());
    let to: Arc<dyn MessageSink> = sink.clone();
    let batch = format!(
        "[{}]",
        vec![r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#; 5_000].join(",")
    );
    connection.receive(
        mcpline_protocol::wire::read(batch.clone().into()),
        &to,
        None,
    );
    let answer: usize = sink
        .responses()
        .iter()
        .map(|one| one.to_string().len())
        .sum();
    assert!(
        answer > batch.len() && answer < 3 * batch.len(),
        "{answer} bytes for {}",
        batch.len()
    );
}

#[runtimes::test]
async fn a_batch_with_an_unreadable_notification_answers_each_of_its_requests() {
    let server = server(&Arc::default());
    let connection = session(server.inner());
    let sink = Arc::new(TestSink::default());
    let to: Arc<dyn MessageSink> = sink.clone();
    let batch = json!([
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": 5},
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
    ]);
    connection.receive(read(&batch), &to, None);
    assert_eq!(
        sink.responses(),
        [
            json!([{"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 2, "result": {}}])
        ]
    );
    assert_eq!(sink.abandoned(), 0);
}
