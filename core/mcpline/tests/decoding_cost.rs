//! Large lists, results and requests of one server are decoded without holding up a host's other servers.

#[path = "support/peer.rs"]
mod peer;
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcpline::client::{Client, ClientBuilder, ClientError, RequestOptions};
use mcpline::protocol::vocabulary::{ElicitAction, ElicitResult};
use mcpline::{Context, Revision, Server};
use peer::{Peer, host};
use serde_json::{Value, json};
use support::Nothing;
use tokio::sync::Notify;

/// A client of a server that a closure plays: it is given the method of each request, and returns the members of its messages
/// beside those that every message has. Messages without a method get the id of the request.
async fn client_of(
    builder: ClientBuilder,
    script: impl Fn(&str) -> Vec<Value> + Send + Sync + 'static,
) -> Client {
    let mut peer = Peer::new(Revision::V2025_11_25, move |message, say| {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            return;
        };
        for mut said in script(method) {
            said["jsonrpc"] = "2.0".into();
            if said.get("method").is_none() {
                said["id"] = id.clone();
            }
            say(said);
        }
    });
    peer.capabilities = json!({"tools": {}});
    peer.connect(builder).await
}

/// A schema of the better part of a megabyte.
fn large_schema() -> Value {
    let fields = (0..9_000).map(|number| {
        let field =
            json!({"type": "string", "title": format!("The field {number}"), "maxLength": 9});
        (format!("field{number}"), field)
    });
    let fields: serde_json::Map<_, _> = fields.collect();
    json!({"type": "object", "properties": fields})
}

/// Twenty calls of another server.
async fn call_another() {
    let server =
        Server::new("honest", "1").tool("hello", "Greets", |_: Nothing, _: Context| async {
            "hello"
        });
    let other = Client::connect(&server).await.expect("connects");
    for _ in 0..20 {
        let result = other.call_tool("hello", json!({})).await;
        result.expect("an answer");
    }
}

#[runtimes::test]
async fn other_servers_are_heard_while_a_large_list_is_read() {
    let page = json!({"result": {"tools": [{"name": "large", "inputSchema": large_schema()}]}});
    let client = client_of(host(), move |_| vec![page.clone()]).await;
    tokio::select! {
        biased;
        listed = client.list_tools() => panic!("it held up the other: {:?}", listed.map(|tools| tools.len())),
        () = call_another() => {}
    }
    assert_eq!(client.list_tools().await.expect("a list").len(), 1);
}

#[runtimes::test]
async fn other_servers_are_heard_while_a_large_result_is_decoded() {
    let result = json!({"result": {"content": [], "structuredContent": large_schema()}});
    let client = client_of(host(), move |_| vec![result.clone()]).await;
    tokio::select! {
        biased;
        called = client.call_tool("large", json!({})) => {
            panic!("it held up the other: {:?}", called.map(|result| result.content))
        }
        () = call_another() => {}
    }
}

#[runtimes::test]
async fn other_servers_are_heard_while_a_large_form_is_decoded() {
    let form = json!({"message": "Fill in", "requestedSchema": large_schema()});
    let question = json!({"id": "form", "method": "elicitation/create", "params": form});
    let asked = Arc::new(Notify::new());
    let asking = asked.clone();
    let builder = host().on_elicit(move |_| {
        asking.notify_one();
        async { Ok(ElicitResult::new(ElicitAction::Accept)) }
    });
    let client = client_of(builder, move |_| vec![question.clone()]).await;
    let calling = client.call_tool("asks", json!({}));
    let other = async {
        tokio::select! {
            biased;
            () = asked.notified() => panic!("it held up the other"),
            () = call_another() => {}
        }
    };
    tokio::select! {
        biased;
        called = calling => panic!("it is never answered: {:?}", called.map(|result| result.content)),
        () = other => {}
    }
    asked.notified().await;
}

#[runtimes::test]
async fn a_small_list_does_not_overtake_a_large_one_that_came_before_it() {
    let lists = Arc::new(AtomicUsize::new(0));
    let listed = lists.clone();
    let schema = large_schema();
    let client = client_of(host(), move |method| {
        let tool = json!({"name": "x", "inputSchema": {"type": "object"}});
        let mut large = tool.clone();
        large["outputSchema"] = schema.clone();
        match method {
            "tools/list" if listed.fetch_add(1, Ordering::Relaxed) == 0 => {
                vec![json!({"result": {"tools": [large]}})]
            }
            "tools/list" => vec![json!({"result": {"tools": [tool]}})],
            _ => vec![json!({"result": {"content": []}})],
        }
    })
    .await;
    let options = RequestOptions::default();
    let (large, small) = tokio::join!(
        biased;
        client.request("tools/list", None, &options),
        client.request("tools/list", None, &options),
    );
    assert!(large.expect("a page").as_bytes().len() > small.expect("a page").as_bytes().len());
    assert_eq!(lists.load(Ordering::Relaxed), 2);
    // The latest list has no output schema for it.
    let called: Result<_, ClientError> = client.call_tool("x", json!({})).await;
    called.expect("nothing is missing");
}
