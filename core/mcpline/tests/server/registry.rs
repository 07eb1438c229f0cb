//! Lists show what is registered, also when it changes while serving.

use crate::support::{Client, Nothing};
use mcpline::protocol::vocabulary::Tool;
use mcpline::server::{Extension, ToolOptions};
use mcpline::{Context, Server, Settings};
use serde_json::{Value, json};

fn names(result: &Value) -> Vec<String> {
    let tools = result["tools"].as_array().expect("a list");
    tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name").to_owned())
        .collect()
}

async fn list(client: &mut Client, params: Value) -> Value {
    let id = client.begin("tools/list", params);
    client.response(&id).await.expect("a list")
}

fn add(server: &Server, name: &str) {
    let _ = server
        .clone()
        .tool(name, "A tool", |_: Nothing, _: Context| async { "done" });
}

#[runtimes::test]
async fn lists_show_changes_since_the_last_request() {
    let server = Server::new("registry", "1");
    add(&server, "one");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(names(&list(&mut client, json!({})).await), ["one"]);
    add(&server, "two");
    assert_eq!(
        client.next().await["method"],
        "notifications/tools/list_changed"
    );
    assert_eq!(names(&list(&mut client, json!({})).await), ["one", "two"]);
    assert!(server.remove_tool("one"));
    assert!(!server.remove_tool("one"));
    assert_eq!(
        client.next().await["method"],
        "notifications/tools/list_changed"
    );
    assert!(client.try_next().is_none());
    assert_eq!(names(&list(&mut client, json!({})).await), ["two"]);
}

#[runtimes::test]
async fn paging_misses_no_item_when_others_are_removed() {
    let mut settings = Settings::default();
    settings.page_size = 2;
    let server = Server::builder("registry", "1")
        .settings(settings)
        .build()
        .expect("builds");
    for name in ["a", "b", "c", "d", "e"] {
        add(&server, name);
    }
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let first = list(&mut client, json!({})).await;
    assert_eq!(names(&first), ["a", "b"]);
    server.remove_tool("b");
    server.remove_tool("a");
    let second = list(&mut client, json!({"cursor": first["nextCursor"]})).await;
    assert_eq!(names(&second), ["c", "d"]);
    let third = list(&mut client, json!({"cursor": second["nextCursor"]})).await;
    assert_eq!(names(&third), ["e"]);
    assert!(third.get("nextCursor").is_none());
    for cursor in ["", "rubbish", "cDE"] {
        let id = client.begin("tools/list", json!({"cursor": cursor}));
        let error = client.response(&id).await.expect_err("refused");
        assert_eq!(error["code"], -32602, "{cursor:?}");
    }
}

#[runtimes::test]
async fn invalid_arguments_are_a_tool_error_with_path_and_rule() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Days {
        #[allow(dead_code, reason = "only decoded")]
        days: u8,
    }
    let server =
        Server::new("registry", "1").tool("forecast", "Forecast", |_: Days, _: Context| async {
            "sunny"
        });
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::legacy(&server, revision).await;
        let id = client.begin(
            "tools/call",
            json!({"name": "forecast", "arguments": {"days": "3"}}),
        );
        let result = client.response(&id).await.expect("a tool error");
        assert_eq!(result["isError"], true, "{revision}");
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert!(text.contains("/days") && text.contains("type"), "{text}");
    }
}

#[test]
fn rejects_extensions_without_a_prefix() {
    let declared = |name: &str| {
        let builder = Server::builder("registry", "1");
        builder.extension(Extension::new(name)).build()
    };
    assert!(declared("com.example/search").is_ok());
    let refused = declared("search").expect_err("no prefix").to_string();
    assert!(refused.contains("\"search\""), "{refused}");
}

#[test]
fn rejects_tools_whose_input_is_not_an_object() {
    let server = Server::new("registry", "1");
    let add = |name: &str, schema: Value| {
        let tool = Tool::new(name, schema);
        server.add_tool_fn(
            tool,
            ToolOptions::default(),
            |_: Nothing, _: Context| async { "" },
        )
    };
    assert!(add("of_nothing_said", json!({"properties": {"a": {}}})).is_ok());
    for (number, schema) in [
        json!(true),
        json!({"type": "string"}),
        json!({"type": ["object"]}),
    ]
    .into_iter()
    .enumerate()
    {
        let refused = add(&format!("tool{number}"), schema).expect_err("no object");
        assert!(refused.to_string().contains("input schema"), "{refused}");
    }
}

#[runtimes::test]
async fn lists_input_schemas_without_a_type_as_objects() {
    let server = Server::new("registry", "1");
    let tool = Tool::new("tool", json!({"properties": {"a": {}}}));
    server
        .add_tool_fn(
            tool,
            ToolOptions::default(),
            |_: Nothing, _: Context| async { "" },
        )
        .expect("added");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let listed = list(&mut client, json!({})).await;
    assert_eq!(listed["tools"][0]["inputSchema"]["type"], "object");
}
