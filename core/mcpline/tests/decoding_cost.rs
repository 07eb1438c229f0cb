//! Decoding large lists, results and requests of one server does not block a host's other servers.

mod support;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcpline::client::{Client, ClientBuilder, ClientError, RequestOptions};
use mcpline::protocol::vocabulary::{ElicitAction, ElicitResult};
use mcpline::{Context, Revision, Server};
use serde_json::{Value, json};
use support::Nothing;
use support::computations::HeldComputations;
use support::peer::{Peer, host};
use tokio::sync::Notify;

/// Connects a client to a server that a closure scripts. The closure gets the method of each request and returns the
/// members of its messages that not every message has. Messages without a method get the id of the request. Pings are
/// answered.
async fn client_of(
    builder: ClientBuilder,
    script: impl Fn(&str) -> Vec<Value> + Send + Sync + 'static,
) -> (Client, Peer) {
    let mut peer = Peer::new(Revision::V2025_11_25, move |message, say| {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            return;
        };
        let messages = match method {
            "ping" => vec![json!({"result": {}})],
            _ => script(method),
        };
        for mut message in messages {
            message["jsonrpc"] = "2.0".into();
            if message.get("method").is_none() {
                message["id"] = id.clone();
            }
            say(message);
        }
    });
    peer.capabilities = json!({"tools": {}});
    (peer.connect(builder).await, peer)
}

/// A schema of most of a megabyte.
fn large_schema() -> Value {
    let fields = (0..9_000).map(|number| {
        let field =
            json!({"type": "string", "title": format!("The field {number}"), "maxLength": 9});
        (format!("field{number}"), field)
    });
    let fields: serde_json::Map<_, _> = fields.collect();
    json!({"type": "object", "properties": fields})
}

/// Makes twenty calls of another server, once the client has received its server's answer to a request of this method.
async fn call_another((client, peer): (&Client, &Peer), method: &str) {
    peer.wait_for(method, 1).await;
    // The ping is answered after it.
    client.ping().await.expect("an answer");
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

#[runtimes::test(one_blocking_thread)]
async fn other_servers_are_served_while_a_large_list_is_read() {
    let page = json!({"result": {"tools": [{"name": "large", "inputSchema": large_schema()}]}});
    let (client, peer) = client_of(host(), move |_| vec![page.clone()]).await;
    let held = HeldComputations::hold().await;
    let mut listing = pin!(client.list_tools());
    tokio::select! {
        biased;
        listed = listing.as_mut() => panic!("it was read where it arrived: {:?}", listed.map(|tools| tools.len())),
        () = call_another((&client, &peer), "tools/list") => {}
    }
    drop(held);
    assert_eq!(listing.await.expect("a list").len(), 1);
}

#[runtimes::test(one_blocking_thread)]
async fn other_servers_are_served_while_a_large_result_is_decoded() {
    let result = json!({"result": {"content": [], "structuredContent": large_schema()}});
    let (client, peer) = client_of(host(), move |_| vec![result.clone()]).await;
    let held = HeldComputations::hold().await;
    let mut calling = pin!(client.call_tool("large", json!({})));
    tokio::select! {
        biased;
        called = calling.as_mut() => {
            panic!("it was decoded where it arrived: {:?}", called.map(|result| result.content))
        }
        () = call_another((&client, &peer), "tools/call") => {}
    }
    drop(held);
    calling.await.expect("a result");
}

#[runtimes::test(one_blocking_thread)]
async fn other_servers_are_served_while_a_large_form_is_decoded() {
    let form = json!({"message": "Fill in", "requestedSchema": large_schema()});
    let input_request = json!({"id": "form", "method": "elicitation/create", "params": form});
    let handler_called = Arc::new(Notify::new());
    let notifier = handler_called.clone();
    let builder = host().on_elicit(move |_| {
        notifier.notify_one();
        async { Ok(ElicitResult::new(ElicitAction::Accept)) }
    });
    let (client, peer) = client_of(builder, move |_| vec![input_request.clone()]).await;
    let held = HeldComputations::hold().await;
    let mut calling = pin!(client.call_tool("asks", json!({})));
    tokio::select! {
        biased;
        called = calling.as_mut() => panic!("it is never answered: {:?}", called.map(|result| result.content)),
        () = handler_called.notified() => panic!("it was decoded where it arrived"),
        () = call_another((&client, &peer), "tools/call") => {}
    }
    drop(held);
    handler_called.notified().await;
}

#[runtimes::test]
async fn a_small_list_does_not_overtake_a_large_one_that_came_before_it() {
    let lists = Arc::new(AtomicUsize::new(0));
    let listed = lists.clone();
    let schema = large_schema();
    let (client, _) = client_of(host(), move |method| {
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
    // The latest list has no output schema for the tool.
    let called: Result<_, ClientError> = client.call_tool("x", json!({})).await;
    called.expect("nothing is missing");
}
