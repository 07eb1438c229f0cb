//! URIs crafted to match slowly, and long lists of candidates.

mod support;

use std::sync::Arc;

use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::{Prompt, PromptArgument, Resource, ResourceTemplate};
use mcpline::server::{Completer, Handler, ResourceOptions, ResourceReply};
use mcpline::{Call, Context, Reply, Server};
use serde_json::{Value, json};
use support::computations::HeldComputations;
use support::{Client, Nothing};

struct Reads;

impl Handler for Reads {
    fn call(&self, call: Call) {
        call.reply(Ok(Reply::Resource(ResourceReply {
            contents: Raw::EMPTY_ARRAY,
            cache: None,
            meta: None,
        })));
    }
}

fn server(template: &str) -> Server {
    let server = Server::new("templates", "1");
    let scoped = ResourceOptions::default().with_scopes(["logs:read"]);
    let template = ResourceTemplate::new(template, "log");
    server
        .add_resource_template_with(template, scoped, Arc::new(Reads))
        .expect("a template");
    let open = Resource::new("log://open", "open");
    server.add_resource(open, Arc::new(Reads)).expect("added");
    server
}

async fn ask(client: &mut Client, method: &str, params: Value) -> Result<Value, Value> {
    let id = client.begin_modern(method, params);
    client.response(&id).await
}

#[runtimes::test]
async fn refuses_too_many_subscriptions_before_matching_them() {
    let mut client = Client::modern(&server("log://{host}-{day}-{name}"));
    let uri = format!("log://{}/", "-".repeat(8_000));
    let uris = vec![uri.as_str(); 2_000];
    let wanted = json!({"notifications": {"resourceSubscriptions": uris}});
    let error = ask(&mut client, "subscriptions/listen", wanted).await;
    let error = error.expect_err("too many");
    assert_eq!(error["code"], -32602);
    let words = error["message"].as_str().expect("words");
    assert!(words.contains("max_subscription_bytes"), "{words}");
}

#[runtimes::test]
async fn slow_uris_share_one_matching_budget() {
    let template = "log://{/all*}{/more*}{/rest*}!";
    let mut client = Client::modern(&server(template));
    let slow = format!("log://{}", "/a".repeat(2_000));
    for (method, params) in [
        ("resources/read", json!({"uri": slow})),
        (
            "subscriptions/listen",
            json!({"notifications": {"resourceSubscriptions": vec![slow.as_str(); 50]}}),
        ),
    ] {
        let error = ask(&mut client, method, params).await.expect_err("slow");
        assert_eq!(error["code"], -32602);
        let words = error["message"].as_str().expect("words");
        assert!(words.contains("the matching limit was reached"), "{words}");
    }
    let read = ask(&mut client, "resources/read", json!({"uri": "log:///a!"})).await;
    assert!(read.is_ok(), "{read:?}");
}

#[runtimes::test(one_blocking_thread)]
async fn other_requests_are_served_while_many_candidates_are_ranked() {
    let server = Server::new("completion", "1").prompt(
        Prompt::new("greet").with_arguments(vec![PromptArgument::new("name")]),
        |_: Nothing, _: Context| async { "hello" },
    );
    let names = (0..200_000).map(|number| format!("name{number}")).collect();
    server
        .add_completer("greet", "name", Completer::Candidates(names))
        .expect("it has the argument");
    let mut client = Client::modern(&server);
    let params = json!({"ref": {"type": "ref/prompt", "name": "greet"},
                       "argument": {"name": "name", "value": "name19999"}});
    let held = HeldComputations::hold().await;
    let completing = client.begin_modern("completion/complete", params);
    let listing = client.begin_modern("prompts/list", json!({}));
    assert_eq!(client.next().await["id"], listing, "it was held up");
    drop(held);
    let completion = client.response(&completing).await.expect("candidates");
    assert_eq!(completion["completion"]["values"][0], "name19999");
}
