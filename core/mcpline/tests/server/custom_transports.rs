//! Connections over custom transports: the principal that a transport names, and backpressure.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::support::{Client, Nothing};
use mcpline::protocol::Raw;
use mcpline::protocol::mrtr::KeyRing;
use mcpline::protocol::vocabulary::{Prompt, Resource, Tool};
use mcpline::server::{
    Caller, Handler, HandlerError, MethodOptions, PromptOptions, PromptReply, ResourceOptions,
    ResourceReply, ToolOptions,
};
use mcpline::{
    Call, Context, InputRequest, InputRequestMethod, Reply, Server, Settings, transport,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc::unbounded_channel;

const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

fn alice(scopes: &[&str]) -> Caller {
    Caller::new()
        .with_issuer("https://issuer.example")
        .with_subject("alice")
        .with_client_id("desk")
        .with_scopes(scopes)
}

fn bob() -> Caller {
    Caller::new()
        .with_issuer("https://issuer.example")
        .with_subject("bob")
}

/// A handler that replies at once.
fn says(reply: fn() -> Reply) -> Arc<dyn Handler> {
    struct Says(fn() -> Reply);
    impl Handler for Says {
        fn call(&self, call: Call) {
            call.reply(Ok((self.0)()));
        }
    }
    Arc::new(Says(reply))
}

/// A server with a tool without scopes that returns its caller, and a tool, a resource, a prompt and a request that
/// require `write`.
fn server() -> Server {
    let server = Server::new("scoped", "1")
        .tool(
            "who",
            "Says who calls",
            |_: Nothing, ctx: Context| async move {
                match ctx.auth() {
                    Some(caller) => caller.to_json().to_string(),
                    None => "nobody".to_owned(),
                }
            },
        )
        .tool(
            "checks",
            "Wants `write` by itself",
            |_: Nothing, ctx: Context| async move {
                ctx.require_scopes(["write"])?;
                Ok::<_, HandlerError>("done")
            },
        );
    let tool = Tool::new("save", json!({"type": "object"}));
    let options = ToolOptions::default().with_scopes(["write"]);
    server
        .add_tool_fn(tool, options, |_: Nothing, _: Context| async { "saved" })
        .expect("a tool");
    let contents = || {
        Reply::Resource(ResourceReply {
            contents: Raw::EMPTY_ARRAY,
            cache: None,
            meta: None,
        })
    };
    let options = ResourceOptions::default().with_scopes(["write"]);
    server
        .add_resource_with(
            Resource::new("file:///draft", "draft"),
            options,
            says(contents),
        )
        .expect("a resource");
    let prompt = || {
        Reply::Prompt(PromptReply {
            messages: Raw::EMPTY_ARRAY,
            description: None,
            meta: None,
        })
    };
    let options = PromptOptions::default().with_scopes(["write"]);
    server
        .add_prompt_with(Prompt::new("compose"), options, says(prompt))
        .expect("a prompt");
    let options = MethodOptions::default().with_scopes(["write"]);
    server
        .add_request_handler(
            "acme/erase",
            options,
            says(|| Reply::Result(Raw::EMPTY_OBJECT)),
        )
        .expect("a request");
    server
}

async fn client(server: &Server, principal: Option<Caller>, revision: &str) -> Client {
    let client = Client::over(match principal {
        Some(principal) => server.connect_as(principal),
        None => server.connect(),
    });
    match revision {
        "2026-07-28" => client,
        _ => client.shake_hands(revision).await,
    }
}

async fn ask(
    client: &mut Client,
    revision: &str,
    method: &str,
    params: Value,
) -> Result<Value, Value> {
    let id = match revision {
        "2026-07-28" => client.begin_modern(method, params),
        _ => client.begin(method, params),
    };
    client.response(&id).await
}

fn names(result: &Value, list: &str) -> Vec<String> {
    let items = result[list].as_array().expect("a list");
    let name = |item: &Value| item["name"].as_str().expect("a name").to_owned();
    items.iter().map(name).collect()
}

#[runtimes::test]
async fn handlers_see_the_principal_that_the_transport_names() {
    let server = server();
    for revision in REVISIONS {
        let mut client = client(&server, Some(alice(&["read"])), revision).await;
        let call = json!({"name": "who", "arguments": {}});
        let result = ask(&mut client, revision, "tools/call", call).await;
        let text = result.expect("a result")["content"][0]["text"].clone();
        let caller: Value = serde_json::from_str(text.as_str().expect("text")).expect("JSON");
        assert_eq!(caller["subject"], "alice");
        assert_eq!(caller["client_id"], "desk");
        assert_eq!(caller["issuer"], "https://issuer.example");
        assert_eq!(caller["scopes"], json!(["read"]));
    }
}

#[runtimes::test]
async fn refuses_a_principal_without_the_scopes() {
    let server = server();
    for revision in REVISIONS {
        let mut client = client(&server, Some(alice(&["read"])), revision).await;
        for (method, list, visible) in [
            ("tools/list", "tools", vec!["who", "checks"]),
            ("resources/list", "resources", vec![]),
            ("prompts/list", "prompts", vec![]),
        ] {
            let result = ask(&mut client, revision, method, json!({})).await;
            assert_eq!(names(&result.expect("a list"), list), visible, "{method}");
        }
        for (method, params) in [
            ("tools/call", json!({"name": "save", "arguments": {}})),
            ("tools/call", json!({"name": "checks", "arguments": {}})),
            ("resources/read", json!({"uri": "file:///draft"})),
            ("prompts/get", json!({"name": "compose"})),
            ("acme/erase", json!({})),
        ] {
            let refused = ask(&mut client, revision, method, params).await;
            let error = refused.expect_err(method);
            assert_eq!(error["code"], -31001, "{method}: {error}");
            assert_eq!(error["data"], json!({"requiredScopes": ["write"]}));
        }
    }
}

#[runtimes::test]
async fn refuses_subscriptions_of_a_principal_without_the_scopes() {
    let server = server();
    let uri = json!({"uri": "file:///draft"});
    let mut client = client(&server, Some(alice(&["read"])), "2025-11-25").await;
    let refused = ask(&mut client, "2025-11-25", "resources/subscribe", uri).await;
    assert_eq!(refused.expect_err("it wants `write`")["code"], -31001);
}

#[runtimes::test]
async fn serves_principals_with_the_scopes_and_connections_without_a_principal() {
    let server = server();
    for revision in REVISIONS {
        for principal in [Some(alice(&["write"])), None] {
            let mut client = client(&server, principal, revision).await;
            let result = ask(&mut client, revision, "tools/list", json!({})).await;
            let listed = names(&result.expect("a list"), "tools");
            assert_eq!(listed, ["who", "checks", "save"]);
            for (method, params) in [
                ("tools/call", json!({"name": "save", "arguments": {}})),
                ("tools/call", json!({"name": "checks", "arguments": {}})),
                ("resources/read", json!({"uri": "file:///draft"})),
                ("prompts/get", json!({"name": "compose"})),
                ("acme/erase", json!({})),
            ] {
                let served = ask(&mut client, revision, method, params).await;
                assert!(served.is_ok(), "{method}: {served:?}");
            }
        }
    }
}

#[runtimes::test]
async fn drops_notifications_of_a_principal_without_their_scopes() {
    let server = Server::new("scoped", "1");
    let (sender, mut subjects) = unbounded_channel();
    struct Notes(tokio::sync::mpsc::UnboundedSender<Option<String>>);
    impl Handler for Notes {
        fn call(&self, call: Call) {
            let subject = call.context().auth();
            let subject = subject.and_then(|caller| caller.subject().map(str::to_owned));
            self.0.send(subject).expect("the test listens");
            call.reply(Ok(Reply::Result(Raw::EMPTY_OBJECT)));
        }
    }
    let options = MethodOptions::default().with_scopes(["write"]);
    server
        .add_notification_handler("acme/note", options, Arc::new(Notes(sender)))
        .expect("a handler");
    for principal in [Some(alice(&[])), Some(alice(&["write"])), None] {
        let client = client(&server, principal, "2025-11-25").await;
        client.send(json!({"jsonrpc": "2.0", "method": "acme/note"}));
    }
    assert_eq!(subjects.recv().await, Some(Some("alice".to_owned())));
    assert_eq!(subjects.recv().await, Some(None));
    assert!(subjects.try_recv().is_err());
}

#[runtimes::test]
async fn counts_all_connections_of_a_principal_as_one_client() {
    let mut settings = Settings::default();
    settings.max_calls = 4;
    settings.client_share = 0.5;
    let server = Server::builder("busy", "1").settings(settings);
    let server = server
        .build()
        .expect("builds")
        .tool("wait", "Never answers", |_: Nothing, _: Context| async {
            std::future::pending::<String>().await
        })
        .tool("who", "Answers", |_: Nothing, _: Context| async { "done" });
    let call = |name: &str| json!({"name": name, "arguments": {}});
    let mut one = Client::over(server.connect_as(alice(&[])));
    let mut other = Client::over(server.connect_as(alice(&["read"])));
    one.begin_modern("tools/call", call("wait"));
    other.begin_modern("tools/call", call("wait"));
    for client in [&mut one, &mut other] {
        let error = client
            .call_modern("who", json!({}))
            .await
            .expect_err("too many");
        assert_eq!(error["code"], -31000, "{error}");
    }
    let mut neighbour = Client::over(server.connect_as(bob()));
    neighbour
        .call_modern("who", json!({}))
        .await
        .expect("served");
    let mut anonymous = Client::modern(&server);
    anonymous
        .call_modern("who", json!({}))
        .await
        .expect("served");
}

#[runtimes::test]
async fn binds_suspended_calls_to_the_principal() {
    let mut settings = Settings::default();
    settings.state_keys = Some(KeyRing::new([[7_u8; 32]]).expect("long enough"));
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let server = Server::builder("asker", "1").settings(settings);
    let server = server.build().expect("builds").tool(
        "ask",
        "Asks for a name",
        move |_: Nothing, ctx: Context| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let form = json!({"message": "Name?", "requestedSchema": {
                    "type": "object", "properties": {"name": {"type": "string"}}}});
                let form = Raw::from_serialize(&form).ok();
                ctx.request_input(InputRequest::new(InputRequestMethod::Elicit, form))
                    .await?;
                Ok::<_, HandlerError>("answered")
            }
        },
    );
    let mut one = Client::over(server.connect_as(alice(&[])));
    let input_required = one.call_modern("ask", json!({})).await.expect("a result");
    assert_eq!(input_required["resultType"], "input_required");
    let retry = json!({"requestState": input_required["requestState"],
        "inputResponses": {"ask-1": {"action": "accept", "content": {"name": "Ada"}}}});
    for stranger in [Some(bob()), None] {
        let mut stranger = client(&server, stranger, "2026-07-28").await;
        let refused = stranger.call_modern("ask", retry.clone()).await;
        assert_eq!(refused.expect_err("not theirs")["code"], -32602);
    }
    let mut other = Client::over(server.connect_as(alice(&["read"])));
    let answered = other.call_modern("ask", retry).await.expect("a result");
    assert_eq!(answered["content"][0]["text"], "answered");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[runtimes::test]
async fn a_byte_stream_names_its_principal() {
    let server = server();
    let (client, ours) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let transport = transport::lines(reader, writer).with_principal(alice(&["read"]));
    let serving = tokio::spawn(async move { server.serve(transport).await });
    let (reader, mut writer) = tokio::io::split(client);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "save", "arguments": {}, "_meta": meta}});
    writer
        .write_all(format!("{call}\n").as_bytes())
        .await
        .expect("written");
    let line = BufReader::new(reader).lines().next_line().await;
    let answer: Value = serde_json::from_str(&line.expect("read").expect("a line")).expect("JSON");
    assert_eq!(answer["error"]["code"], -31001);
    writer.shutdown().await.expect("closed");
    serving.await.expect("no panic").expect("ends well");
}

#[runtimes::test]
async fn charges_messages_to_the_principal_that_sends_them() {
    let mut settings = Settings::default();
    settings.max_total_client_bytes = 400_000;
    settings.client_share = 0.5;
    let server = Server::builder("full", "1").settings(settings);
    let server = server.build().expect("builds").tool(
        "wait",
        "Never answers",
        |_: Value, _: Context| async { std::future::pending::<String>().await },
    );
    let call = json!({"name": "wait", "arguments": {"text": "x".repeat(150_000)}});
    let mut one = Client::over(server.connect_as(alice(&[])));
    one.begin_modern("tools/call", call.clone());
    let mut other = Client::over(server.connect_as(alice(&[])));
    let id = other.begin_modern("tools/call", call.clone());
    let refused = other.response(&id).await.expect_err("too much");
    assert_eq!(refused["code"], -31000, "{refused}");
    let mut neighbour = Client::over(server.connect_as(bob()));
    neighbour.begin_modern("tools/call", call);
    let id = neighbour.begin_modern("tools/list", json!({}));
    neighbour.response(&id).await.expect("served");
}

#[runtimes::test]
async fn a_connection_is_ready_once_the_server_has_handled_what_was_sent() {
    let server = Server::new("loud", "1").tool(
        "loud",
        "Answers at length",
        |_: Nothing, _: Context| async { "x".repeat(12 << 20) },
    );
    let memory = server.connect();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "loud", "arguments": {}, "_meta": meta}});
    for _ in 0..4 {
        memory.send(call.to_string());
        // Three responses of 12 MiB exceed what may wait, so the fourth call is not handled yet.
    }
    let is_ready = |memory: &mcpline::transport::MemoryTransport| {
        let ready = std::pin::pin!(memory.ready());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        ready.poll(&mut context).is_ready()
    };
    assert!(!is_ready(&memory));
    let reading = async {
        let mut received = 0;
        while received < 4 {
            memory.receive().await.expect("an answer");
            received += 1;
        }
    };
    let both = async { tokio::join!(memory.ready(), reading) };
    tokio::time::timeout(Duration::from_secs(60), both)
        .await
        .expect("it is ready");
    assert!(is_ready(&memory));
    memory.close();
    assert!(is_ready(&memory));
}
