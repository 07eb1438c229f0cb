//! Features that are enabled, disabled and changed while clients are connected.

use crate::support::Client;
use mcpline::protocol::vocabulary::{Prompt, PromptArgument, Resource, ResourceTemplate, Tool};
use mcpline::server::{CallKind, Completer, FeatureSelection, ToolOptions};
use mcpline::{Context, Server};
use serde_json::{Value, json};

fn tool(name: &str) -> Tool {
    Tool::new(name, json!({"type": "object"}))
}

fn add(server: &Server, name: &str, tags: &[&str]) {
    let options = ToolOptions::default().with_tags(tags.iter().copied());
    let run = |_: Value, _: Context| async { "done" };
    server.add_tool_fn(tool(name), options, run).expect("adds");
}

async fn ask(client: &mut Client, method: &str, params: Value) -> Result<Value, Value> {
    let id = client.begin(method, params);
    client.response(&id).await
}

async fn tools(client: &mut Client) -> Vec<String> {
    let result = ask(client, "tools/list", json!({})).await.expect("a list");
    let tools = result["tools"].as_array().expect("a list");
    tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[runtimes::test]
async fn disabled_features_do_not_exist_for_clients() {
    let server = Server::new("test", "1")
        .resource(Resource::new("a://b", "b"), |_: Context| async { "b" })
        .resource_template(
            ResourceTemplate::new("t://{x}", "t"),
            |_: Value, _: Context| async { "t" },
        )
        .prompt(
            Prompt::new("p").with_arguments(vec![PromptArgument::new("x")]),
            |_: Value, _: Context| async { "p" },
        );
    let values = || Completer::Candidates(vec!["1".into()]);
    server.add_completer("p", "x", values()).expect("has it");
    add(&server, "a", &[]);
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(server.disable(FeatureSelection::all()), 4);
    for list in ["tools", "resources", "prompts"] {
        let method = client.next().await["method"].clone();
        assert_eq!(method, format!("notifications/{list}/list_changed"));
    }
    let unknown = [
        ("tools/call", json!({"name": "a"})),
        ("resources/read", json!({"uri": "a://b"})),
        ("resources/read", json!({"uri": "t://1"})),
        ("prompts/get", json!({"name": "p"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": ""}}),
        ),
    ];
    for (method, params) in &unknown {
        ask(&mut client, method, params.clone())
            .await
            .expect_err(method);
    }
    assert_eq!(tools(&mut client).await, [""; 0]);
    assert_eq!(server.enable(FeatureSelection::all()), 4);
    for (method, params) in &unknown {
        ask(&mut client, method, params.clone())
            .await
            .expect(method);
    }
}

#[runtimes::test]
async fn rules_hold_for_features_that_are_registered_later() {
    let server = Server::new("test", "1");
    server.disable(FeatureSelection::all().with_tags(["beta"]));
    add(&server, "a", &["beta"]);
    add(&server, "b", &["beta", "x"]);
    add(&server, "c", &["x"]);
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(tools(&mut client).await, ["c"]);
    assert_eq!(server.enable(FeatureSelection::all().with_names(["b"])), 1);
    assert_eq!(
        tools(&mut client).await,
        ["b", "c"],
        "in the order of registration"
    );
    assert_eq!(server.enable(FeatureSelection::all().with_names(["b"])), 0);
    let prompts = FeatureSelection::all().with_kinds([CallKind::Prompt]);
    assert_eq!(server.disable(prompts), 0);
}

#[runtimes::test]
async fn the_name_of_a_disabled_tool_is_taken() {
    let server = Server::new("test", "1");
    add(&server, "a", &[]);
    server.disable(FeatureSelection::all().with_names(["a"]));
    let run = |_: Value, _: Context| async { "done" };
    server
        .add_tool_fn(tool("a"), ToolOptions::default(), run)
        .expect_err("taken");
    assert!(server.remove_tool("a"));
}

#[runtimes::test]
async fn an_updated_tool_keeps_its_handler_and_its_place() {
    let server = Server::new("test", "1");
    for name in ["a", "b", "c"] {
        add(&server, name, &[]);
    }
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let updated = server.update_tool("b", |tool| {
        tool.name = "z".into();
        tool.input_schema = json!({"type": "object", "required": ["x"]});
    });
    updated.expect("updates");
    assert_eq!(
        client.next().await["method"],
        "notifications/tools/list_changed"
    );
    assert_eq!(tools(&mut client).await, ["a", "z", "c"]);
    ask(&mut client, "tools/call", json!({"name": "b"}))
        .await
        .expect_err("renamed");
    let refused = ask(&mut client, "tools/call", json!({"name": "z"}))
        .await
        .expect("a tool error");
    assert_eq!(refused["isError"], true, "the new schema is checked");
    let called = ask(
        &mut client,
        "tools/call",
        json!({"name": "z", "arguments": {"x": 1}}),
    )
    .await;
    assert_eq!(called.expect("a result")["content"][0]["text"], "done");

    let error = server
        .update_tool("a", |tool| tool.name = "c".into())
        .expect_err("taken")
        .to_string();
    assert!(error.contains("there is a tool c already"), "{error}");
    server.update_tool("b", |_| ()).expect_err("unknown");
    server
        .update_tool("a", |tool| tool.input_schema = json!({"type": 7}))
        .expect_err("invalid");
    assert_eq!(tools(&mut client).await, ["a", "z", "c"]);
}

#[test]
fn a_schema_that_the_handler_decodes_itself_cannot_be_updated() {
    let server = Server::new("test", "1");
    let mut options = ToolOptions::default();
    options.decodes_itself = true;
    let run = |_: Value, _: Context| async { "done" };
    server.add_tool_fn(tool("a"), options, run).expect("adds");
    server
        .update_tool("a", |tool| tool.title = Some("A".into()))
        .expect("updates");
    let schema = json!({"type": "object", "required": ["x"]});
    server
        .update_tool("a", |tool| tool.input_schema = schema)
        .expect_err("the function's");
}

#[runtimes::test]
async fn resources_templates_and_prompts_are_updated() {
    let server = Server::new("test", "1")
        .resource(Resource::new("a://b", "b"), |_: Context| async { "b" })
        .resource_template(
            ResourceTemplate::new("t://{x}", "t"),
            |_: Value, _: Context| async { "t" },
        )
        .prompt(Prompt::new("p"), |_: Value, _: Context| async { "p" });
    server
        .update_resource("a://b", |resource| resource.uri = "a://c".into())
        .expect("updates");
    server
        .update_resource_template("t://{x}", |template| {
            template.uri_template = "u://{x}".into()
        })
        .expect("updates");
    server
        .update_prompt("p", |prompt| prompt.name = "q".into())
        .expect("updates");
    server
        .update_resource("a://c", |resource| resource.uri = "no URI".into())
        .expect_err("invalid");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for uri in ["a://c", "u://1"] {
        ask(&mut client, "resources/read", json!({"uri": uri}))
            .await
            .expect(uri);
    }
    for uri in ["a://b", "t://1"] {
        ask(&mut client, "resources/read", json!({"uri": uri}))
            .await
            .expect_err(uri);
    }
    ask(&mut client, "prompts/get", json!({"name": "q"}))
        .await
        .expect("renamed");
}

#[test]
fn names_with_spaces_and_completions_for_nothing_are_refused() {
    let server = Server::new("test", "1").prompt(
        Prompt::new("p").with_arguments(vec![PromptArgument::new("x")]),
        |_: Value, _: Context| async { "p" },
    );
    let run = |_: Value, _: Context| async { "done" };
    for name in ["my tool", "a\n", "a\u{a0}b"] {
        let error = server
            .add_tool_fn(tool(name), ToolOptions::default(), run)
            .expect_err(name);
        assert!(
            error
                .to_string()
                .contains("has a space or a control character"),
            "{error}"
        );
    }
    let values = || Completer::Candidates(Vec::new());
    let error = server
        .add_completer("q", "x", values())
        .expect_err("unknown")
        .to_string();
    assert!(
        error.contains("no such prompt or resource template"),
        "{error}"
    );
    let error = server
        .add_completer("p", "y", values())
        .expect_err("unknown")
        .to_string();
    assert!(error.contains("the prompt \"p\" does not have"), "{error}");
}
