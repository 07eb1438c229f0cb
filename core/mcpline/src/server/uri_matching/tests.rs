use std::sync::Mutex;

use mcpline_protocol::limits::MAX_URI;
use mcpline_protocol::session::SessionScope;
use mcpline_protocol::uri_template::UriTemplate;
use mcpline_protocol::vocabulary::{Resource, ResourceTemplate};
use serde_json::{Value, json};

use crate::message_sink::MessageSink;
use crate::server::connection::Connection;
use crate::server::test_sink::{FnHandler, TestSink, connection, read, receive, session};
use crate::server::{Call, HttpInfo, Reply, ResourceOptions, ResourceReply, Server};

use super::*;

const SLOW: &str = "slow://{/all*}{/more*}/b{/rest*}!";

/// A URI that matches `SLOW` only after more steps than the receiving thread may take.
fn slow_uri() -> String {
    let uri = format!("slow:///x/b{}!", "/a".repeat(200));
    let template = UriTemplate::parse(SLOW).expect("a template");
    let mut budget = StepBudget::new(MAX_MATCH_STEPS, None);
    let matched = template.matches_within(&uri, &mut budget);
    assert!(matches!(matched, Ok(Some(_))));
    assert!(budget.spent() > MAX_INLINE_MATCH_STEPS);
    uri
}

/// A server whose templates require a scope, except `plain://{name}`; and the URIs that were read.
fn server() -> (Server, Arc<Mutex<Vec<String>>>) {
    let server = Server::builder("test", "1")
        .declare_resources()
        .build()
        .expect("a server");
    let uris = Arc::new(Mutex::new(Vec::new()));
    let recorded = uris.clone();
    let reads = Arc::new(FnHandler(move |call: Call| {
        recorded.lock().expect("not poisoned").push(call.name());
        call.reply(Ok(Reply::Resource(ResourceReply {
            contents: Raw::EMPTY_ARRAY,
            cache: None,
            meta: None,
        })));
    }));
    let plain = ResourceTemplate::new("plain://{name}", "plain");
    server
        .add_resource_template(plain, reads.clone())
        .expect("a template");
    let slow = ResourceTemplate::new(SLOW, "slow");
    let scoped = ResourceOptions::default().with_scopes(["logs:read"]);
    server
        .add_resource_template_with(slow, scoped, reads.clone())
        .expect("a template");
    let open = Resource::new("log://open", "open");
    server.add_resource(open, reads).expect("a resource");
    (server, uris)
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn modern(id: u64, method: &str, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    request(id, method, &params)
}

fn listening(id: u64, uris: &[&str]) -> Value {
    let wanted = json!({"notifications": {"resourceSubscriptions": uris}});
    modern(id, "subscriptions/listen", &wanted)
}

/// The HTTP details of a request without a token.
fn http() -> Arc<HttpInfo> {
    let request = http::Request::post("/mcp").body(()).expect("a request");
    Arc::new(HttpInfo::of(&mut request.into_parts().0))
}

async fn answered(sink: &TestSink, messages: usize) {
    while sink.written() < messages {
        tokio::task::yield_now().await;
    }
}

/// Receives a message, then one of another request. Returns the steps that the first took here, and its sink.
async fn steps_here(connection: &Arc<Connection>, message: &Value) -> (usize, Arc<TestSink>) {
    let (sink, neighbour) = (Arc::new(TestSink::default()), Arc::new(TestSink::default()));
    let before = steps::counted();
    receive(connection, &sink, message);
    let spent = steps::counted() - before;
    let ping = match message["params"].get("_meta") {
        Some(_) => modern(99, "resources/read", &json!({"uri": "log://open"})),
        None => request(99, "ping", &json!({})),
    };
    receive(connection, &neighbour, &ping);
    assert_eq!(neighbour.responses().len(), 1, "{message} held it up");
    answered(&sink, 1).await;
    (spent, sink)
}

#[runtimes::test]
async fn slow_matching_takes_few_steps_of_the_thread_that_receives_requests() {
    let (server, _) = server();
    let uri = slow_uri();
    let session = session(server.inner());
    let pipe = connection(server.inner(), SessionScope::Connection);
    for (connection, message) in [
        (&session, request(1, "resources/read", &json!({"uri": uri}))),
        (
            &session,
            request(2, "resources/subscribe", &json!({"uri": uri})),
        ),
        (&pipe, modern(3, "resources/read", &json!({"uri": uri}))),
        (&pipe, listening(4, &[&uri, "plain://x", &uri])),
    ] {
        let (spent, sink) = steps_here(connection, &message).await;
        assert!(spent <= MAX_INLINE_MATCH_STEPS, "{spent}: {message}");
        for response in sink.responses() {
            assert!(response["error"].is_null(), "{response}");
        }
    }
}

#[runtimes::test]
async fn plain_templates_are_matched_where_the_request_is_received() {
    let (server, uris) = server();
    let session = session(server.inner());
    let longest = format!("plain://{}", "x".repeat(MAX_URI - 8));
    for uri in ["plain://x", &longest] {
        let sink = Arc::new(TestSink::default());
        receive(
            &session,
            &sink,
            &request(1, "resources/read", &json!({"uri": uri})),
        );
        assert_eq!(sink.responses().len(), 1, "{uri}");
    }
    assert_eq!(uris.lock().expect("not poisoned").len(), 2);
}

#[runtimes::test]
async fn scopes_are_required_whichever_thread_finds_the_template() {
    let (server, uris) = server();
    let uri = slow_uri();
    let session = session(server.inner());
    for method in ["resources/read", "resources/subscribe"] {
        let sink = Arc::new(TestSink::default());
        let to: Arc<dyn MessageSink> = sink.clone();
        let message = request(1, method, &json!({"uri": uri}));
        session.receive(read(&message), &to, Some(&http()));
        answered(&sink, 1).await;
        assert_eq!(sink.responses()[0]["error"]["code"], -31001, "{method}");
    }
    assert!(uris.lock().expect("not poisoned").is_empty());
    let state = serde_json::to_value(session.lock_session().state()).expect("JSON");
    assert_eq!(state["subscribed"], json!([]));
}

#[runtimes::test]
async fn a_request_that_is_cancelled_while_it_is_matched_is_not_answered() {
    let (server, uris) = server();
    let uri = slow_uri();
    let session = session(server.inner());
    for method in ["resources/read", "resources/subscribe"] {
        let before = uris.lock().expect("not poisoned").len();
        let sink = Arc::new(TestSink::default());
        receive(&session, &sink, &request(1, method, &json!({"uri": uri})));
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                               "params": {"requestId": 1}});
        receive(&session, &Arc::new(TestSink::default()), &cancelled);
        session.wait_for_subscription_checks().await;
        while !session.is_idle() {
            tokio::task::yield_now().await;
        }
        // Unless it was answered before.
        assert_eq!(sink.abandoned() + sink.responses().len(), 1, "{method}");
        let after = uris.lock().expect("not poisoned").len();
        assert!(sink.abandoned() == 0 || after == before, "{method}");
    }
}

#[tokio::test]
async fn a_request_is_in_flight_while_it_is_matched() {
    let (server, _) = server();
    let uri = slow_uri();
    let pipe = connection(server.inner(), SessionScope::Connection);
    let (sink, second) = (Arc::new(TestSink::default()), Arc::new(TestSink::default()));
    receive(&pipe, &sink, &listening(1, &[&uri]));
    assert!(!pipe.is_idle());
    receive(&pipe, &second, &listening(1, &[&uri]));
    let refused = second.responses();
    assert!(
        refused[0]["error"]["message"]
            .as_str()
            .is_some_and(|words| words.contains("in flight")),
        "{refused:?}"
    );
    answered(&sink, 1).await;
    assert_eq!(sink.responses(), Vec::<Value>::new());
}

#[runtimes::test]
async fn an_interrupt_ends_matching() {
    let (server, _) = server();
    let registry = server.inner().registry();
    let flag = Arc::new(AtomicBool::new(false));
    drop(InterruptOnDrop(flag.clone()));
    let outcome =
        find_template_offloaded(registry.clone(), &slow_uri(), PeerId::new(), flag.clone()).await;
    assert!(outcome.is_err());
    let Ok(message) = read(&listening(1, &[&slow_uri()])) else {
        panic!("a message");
    };
    let mcpline_protocol::wire::Incoming::Single(mcpline_protocol::wire::Message::Request(request)) =
        message
    else {
        panic!("a request");
    };
    let limits = SessionLimits::default();
    let uris = SubscribedUris::of(&request, || registry, &limits).expect("few");
    let uris = uris.expect("it subscribes");
    assert!(uris.look_up_inline().is_none());
    assert!(uris.look_up(PeerId::new(), flag).await.is_err());
}

#[runtimes::test]
async fn rejects_subscriptions_to_unknown_uris() {
    let (server, _) = server();
    let session = session(server.inner());
    let sink = Arc::new(TestSink::default());
    for (id, uri) in [(1, "log://open"), (2, "plain://x"), (3, "log://none")] {
        let subscribe = request(id, "resources/subscribe", &json!({"uri": uri}));
        receive(&session, &sink, &subscribe);
    }
    let codes = sink.responses();
    let codes: Vec<&Value> = codes.iter().map(|one| &one["error"]["code"]).collect();
    assert_eq!(codes, [&Value::Null, &Value::Null, &json!(-32002)]);
    let state = serde_json::to_value(session.lock_session().state()).expect("JSON");
    assert_eq!(state["subscribed"], json!(["log://open", "plain://x"]));
}

#[runtimes::test]
async fn a_stream_leaves_out_unknown_uris_whichever_thread_detects_them() {
    let (server, _) = server();
    let slow = slow_uri();
    for uris in [
        vec!["log://open", "log://none"],
        vec!["log://open", "log://none", &slow, &slow],
    ] {
        let pipe = connection(server.inner(), SessionScope::Connection);
        let sink = Arc::new(TestSink::default());
        receive(&pipe, &sink, &listening(1, &uris));
        answered(&sink, 1).await;
        let honoured = &sink.messages()[0]["params"]["notifications"]["resourceSubscriptions"];
        let known: Vec<&str> = uris
            .iter()
            .copied()
            .filter(|uri| *uri != "log://none")
            .collect();
        assert_eq!(*honoured, json!(known));
    }
}
