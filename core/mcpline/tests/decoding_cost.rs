//! Large lists, results and requests of one server are decoded without holding up a host's other servers.

mod support;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use mcpline::client::{Address, Channel, Client, ClientBuilder, ClientError, Dial, RequestOptions};
use mcpline::protocol::vocabulary::{ElicitAction, ElicitResult};
use mcpline::{Context, Revision, Server};
use serde_json::{Value, json};
use support::Nothing;
use tokio::sync::{Notify, mpsc};

type Script = dyn Fn(&str, usize) -> Vec<Value> + Send + Sync;

/// A server that shakes hands; a closure tells what it answers: the members of a message beside those that every message
/// has. It gets the method, and how often it was asked anything before. Messages without a method get the id that was asked.
struct Scripted(Arc<Script>);

impl Dial for Scripted {
    fn dial(&self) -> Pin<Box<dyn Future<Output = std::io::Result<Channel>> + Send + '_>> {
        let (to_server, mut sent) = mpsc::unbounded_channel::<Bytes>();
        let (answers, from_server) = mpsc::channel(10);
        let script = self.0.clone();
        tokio::spawn(async move {
            let mut asked = 0;
            while let Some(message) = sent.recv().await {
                let message: Value = serde_json::from_slice(&message).expect("JSON");
                let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id"))
                else {
                    continue;
                };
                let said = match method {
                    "initialize" => vec![json!({"result": {
                        "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                        "serverInfo": {"name": "peer", "version": "1"}}})],
                    _ => script(method, asked),
                };
                asked += usize::from(method != "initialize");
                for mut message in said {
                    message["jsonrpc"] = "2.0".into();
                    if message.get("method").is_none() {
                        message["id"] = id.clone();
                    }
                    if answers.send(message.to_string().into()).await.is_err() {
                        return;
                    }
                }
            }
        });
        Box::pin(async {
            Ok(Channel {
                to_server,
                from_server,
            })
        })
    }
}

fn host() -> ClientBuilder {
    Client::builder("host", "1")
        .configure(|settings| settings.revisions = vec![Revision::V2025_11_25])
}

async fn client_of(
    builder: ClientBuilder,
    script: impl Fn(&str, usize) -> Vec<Value> + Send + Sync + 'static,
) -> Client {
    let server = Arc::new(Scripted(Arc::new(script)));
    let client = builder.connect(Address::Custom(server)).await;
    client.expect("connects")
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
    let client = client_of(host(), move |_, _| vec![page.clone()]).await;
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
    let client = client_of(host(), move |_, _| vec![result.clone()]).await;
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
    let client = client_of(builder, move |_, _| vec![question.clone()]).await;
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
    let client = client_of(host(), move |method, _| {
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
