//! Arguments of closures: the schema of every type is listed, and what it allows can be decoded.

use crate::support::Client;
use mcpline::protocol::RpcError;
use mcpline::protocol::vocabulary::Tool;
use mcpline::server::ToolOptions;
use mcpline::{Context, Server, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "printed by `Debug`")]
struct City {
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "printed by `Debug`")]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Place {
    City { name: String },
    Point { x: i32, y: i32 },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "printed by `Debug`")]
#[serde(untagged)]
enum Query {
    ByName { name: String },
    ById { id: u32 },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "printed by `Debug`")]
#[serde(untagged)]
enum Word {
    Text(String),
    Number(u32),
}

fn server() -> Server {
    Server::new("typed", "1")
        .tool("tagged", "", |place: Place, _: Context| async move {
            format!("{place:?}")
        })
        .tool("untagged", "", |query: Query, _: Context| async move {
            format!("{query:?}")
        })
        .tool(
            "optional",
            "",
            |city: Option<City>, _: Context| async move { format!("{city:?}") },
        )
        .tool("none", "", |(): (), _: Context| async { "called" })
        .tool("any", "", |value: Value, _: Context| async move {
            value.to_string()
        })
}

#[runtimes::test]
async fn the_schema_of_every_type_is_listed() {
    let mut client = Client::modern(&server());
    let id = client.begin_modern("tools/list", json!({}));
    let listed = client.response(&id).await.expect("a list");
    let schema = |name: &str| {
        let mut tools = listed["tools"].as_array().expect("a list").iter();
        let tool = tools.find(|tool| tool["name"] == name).expect("listed");
        tool["inputSchema"].clone()
    };
    for name in ["tagged", "untagged", "optional", "none", "any"] {
        assert_eq!(schema(name)["type"], "object", "{name}");
    }
    let alternatives = |name: &str, keyword: &str| {
        let alternatives = schema(name)[keyword].as_array().map(Vec::len);
        assert_eq!(alternatives, Some(2), "{name}: {}", schema(name));
    };
    alternatives("tagged", "oneOf");
    alternatives("untagged", "anyOf");
    let optional = schema("optional").to_string();
    assert!(optional.contains("\"name\""), "{optional}");
}

#[runtimes::test]
async fn what_the_schema_allows_is_decoded() {
    let server = server();
    let mut client = Client::modern(&server);
    for (tool, arguments, expected) in [
        (
            "tagged",
            json!({"kind": "city", "name": "Oslo"}),
            "City { name: \"Oslo\" }",
        ),
        (
            "tagged",
            json!({"kind": "point", "x": 1, "y": 2}),
            "Point { x: 1, y: 2 }",
        ),
        (
            "untagged",
            json!({"name": "Oslo"}),
            "ByName { name: \"Oslo\" }",
        ),
        ("untagged", json!({"id": 7}), "ById { id: 7 }"),
        (
            "optional",
            json!({"name": "Oslo"}),
            "Some(City { name: \"Oslo\" })",
        ),
        ("none", json!({}), "called"),
        ("none", json!({"extra": 1}), "called"),
        ("any", json!({"a": [1]}), "{\"a\":[1]}"),
    ] {
        let params = json!({"name": tool, "arguments": arguments});
        let id = client.begin_modern("tools/call", params);
        let result = client.response(&id).await.expect(tool);
        assert_eq!(result["content"][0]["text"], expected, "{tool}");
    }
    // Arguments may be missing.
    for (tool, expected) in [("none", "called"), ("any", "{}"), ("optional", "None")] {
        let id = client.begin_modern("tools/call", json!({"name": tool}));
        let result = client.response(&id).await.expect(tool);
        assert_eq!(result["content"][0]["text"], expected);
    }
    for (tool, arguments) in [
        ("tagged", json!({"kind": "region"})),
        ("untagged", json!({})),
        ("optional", json!({"name": 1})),
    ] {
        let params = json!({"name": tool, "arguments": arguments});
        let id = client.begin_modern("tools/call", params);
        let result = client.response(&id).await.expect(tool);
        assert_eq!(result["isError"], true, "{tool}");
    }
}

#[test]
fn alternatives_of_several_types_are_accepted() {
    let server = Server::new("typed", "1");
    for alternatives in [
        json!([{"type": ["object", "null"]}, {"type": "string"}]),
        json!([{"required": ["a"]}]),
    ] {
        let name = format!("tool-{}", alternatives.to_string().len());
        let tool = Tool::new(name, json!({"anyOf": alternatives}));
        let added =
            server.add_tool_fn(tool, ToolOptions::default(), |_: Value, _: Context| async {
                "done"
            });
        added.expect("some objects match");
    }
}

#[test]
#[should_panic(expected = "none of its alternatives has the type \"object\"")]
fn types_that_no_object_matches_are_refused() {
    let _ = Server::new("typed", "1").tool("words", "", |word: Word, _: Context| async move {
        format!("{word:?}")
    });
}

#[test]
#[should_panic(expected = "its type is not \"object\"")]
fn types_of_other_values_are_refused() {
    let _ =
        Server::new("typed", "1").tool("list", "", |list: Vec<String>, _: Context| async move {
            list.join(" ")
        });
}

#[runtimes::test]
async fn a_propagated_error_of_the_protocol_stays_one() {
    async fn refusing() -> Result<String, ToolError> {
        Err(RpcError::invalid_params("no such city"))?
    }
    async fn failing() -> Result<String, ToolError> {
        let number: i32 = "x".parse()?;
        Ok(number.to_string())
    }
    let server = Server::new("errors", "1")
        .tool("refusing", "", |_: Value, _: Context| refusing())
        .tool("failing", "", |_: Value, _: Context| failing());
    let mut client = Client::modern(&server);
    let id = client.begin_modern("tools/call", json!({"name": "refusing"}));
    let error = client.response(&id).await.expect_err("an error");
    assert_eq!(error["message"], "no such city");
    let id = client.begin_modern("tools/call", json!({"name": "failing"}));
    let result = client.response(&id).await.expect("a result");
    assert_eq!(
        result["content"][0]["text"],
        "invalid digit found in string"
    );
}

#[runtimes::test]
async fn structured_content_may_be_null() {
    let server = Server::new("null", "1").tool("find", "", |_: Value, _: Context| async {
        mcpline::server::Json(None::<Found>)
    });
    let client = mcpline::client::Client::connect(&server)
        .await
        .expect("a client");
    let result = client.call_tool("find", json!({})).await.expect("a result");
    assert_eq!(result.structured_content, Some(Value::Null));
}

#[derive(Debug, serde::Serialize, JsonSchema)]
struct Found {
    name: String,
}
