//! Transformed tools: what clients see of them, and what their handlers get.

use crate::support::Client;
use mcpline::protocol::vocabulary::Tool;
use mcpline::server::{ArgumentTransform, MountOptions, ToolOptions, ToolTransform};
use mcpline::{Context, Server, ToolError};
use serde_json::{Value, json};

/// A server with a tool that returns its arguments, with this input schema.
fn echo_server(schema: Value, options: ToolOptions) -> Server {
    let server = Server::new("echo", "1");
    let tool = Tool::new("echo", schema).with_description("Returns its arguments.");
    server
        .add_tool_fn(tool, options, |arguments: Value, _: Context| async move {
            arguments.to_string()
        })
        .expect("is valid");
    server
}

fn search_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "q": {"type": "string"},
            "limit": {"type": "integer", "maximum": 100},
            "region": {"$ref": "#/$defs/Region"},
            "debug": {"type": "boolean"},
        },
        "required": ["q", "limit", "region"],
        "additionalProperties": false,
        "$defs": {"Region": {"enum": ["eu", "us"]}},
    })
}

fn search() -> Server {
    echo_server(search_schema(), ToolOptions::default())
}

fn search_transform() -> ToolTransform {
    ToolTransform::default()
        .with_name("find")
        .with_title("Find")
        .with_description("Finds pages.")
        .with_argument(
            "q",
            ArgumentTransform::default()
                .with_name("query")
                .with_description("What to find"),
        )
        .with_argument("limit", ArgumentTransform::default().with_default(10))
        .with_argument("region", ArgumentTransform::default().with_fixed("eu"))
        .with_argument("debug", ArgumentTransform::default().with_hidden())
}

async fn ask(client: &mut Client, method: &str, params: Value) -> Result<Value, Value> {
    let id = client.begin(method, params);
    client.response(&id).await
}

/// Returns the result of a call: the arguments that the handler got, or the text of the error.
async fn call(client: &mut Client, name: &str, arguments: Value) -> Result<Value, String> {
    let params = json!({"name": name, "arguments": arguments});
    let result = ask(client, "tools/call", params).await;
    let result = result.map_err(|error| error["message"].to_string())?;
    let text = result["content"][0]["text"].as_str().expect("a text");
    match result.get("isError") == Some(&Value::Bool(true)) {
        true => Err(text.to_owned()),
        false => Ok(serde_json::from_str(text).expect("JSON")),
    }
}

async fn tools(client: &mut Client) -> Vec<Value> {
    let result = ask(client, "tools/list", json!({})).await.expect("a list");
    result["tools"].as_array().expect("a list").clone()
}

/// Returns why a transformation of the search tool is refused.
fn refusal(schema: Value, transform: &ToolTransform) -> String {
    let server = echo_server(schema, ToolOptions::default());
    let error = server.transform_tool("echo", transform);
    error.expect_err("is refused").to_string()
}

#[runtimes::test]
async fn clients_see_the_changed_definition() {
    let server = search();
    server
        .transform_tool("echo", &search_transform())
        .expect("can be changed");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let [tool] = &tools(&mut client).await[..] else {
        panic!("one tool");
    };
    assert_eq!(tool["name"], "find");
    assert_eq!(tool["title"], "Find");
    assert_eq!(tool["description"], "Finds pages.");
    assert_eq!(
        tool["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to find"},
                "limit": {"type": "integer", "maximum": 100, "default": 10},
            },
            "required": ["query"],
            "additionalProperties": false,
            "$defs": {"Region": {"enum": ["eu", "us"]}},
        })
    );
}

#[runtimes::test]
async fn handlers_get_the_arguments_that_they_know() {
    let server = search();
    server
        .transform_tool("echo", &search_transform())
        .expect("can be changed");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(
        call(&mut client, "find", json!({"query": "\"é\\"})).await,
        Ok(json!({"q": "\"é\\", "limit": 10, "region": "eu"}))
    );
    assert_eq!(
        call(&mut client, "find", json!({"limit": 3, "query": "a"})).await,
        Ok(json!({"limit": 3, "q": "a", "region": "eu"}))
    );
}

#[runtimes::test]
async fn hidden_arguments_cannot_be_sent() {
    let server = search();
    server
        .transform_tool("echo", &search_transform())
        .expect("can be changed");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for (name, value) in [
        ("region", json!("us")),
        ("debug", json!(true)),
        ("q", json!("other")),
    ] {
        let arguments = json!({"query": "a", name: value});
        let refused = call(&mut client, "find", arguments).await;
        let error = refused.expect_err("is refused");
        assert!(error.contains(name), "{error}");
    }
    let missing = call(&mut client, "find", json!({})).await;
    assert!(missing.expect_err("is refused").contains("query"));
}

#[runtimes::test]
async fn hidden_arguments_do_not_reach_handlers_of_open_schemas() {
    let schema = json!({
        "type": "object",
        "properties": {"region": {"type": "string"}, "q": {"type": "string"}},
        "additionalProperties": true,
    });
    let server = echo_server(schema, ToolOptions::default());
    let transform = ToolTransform::default()
        .with_argument("region", ArgumentTransform::default().with_fixed("eu"))
        .with_argument("q", ArgumentTransform::default().with_name("query"));
    server.transform_tool("echo", &transform).expect("changes");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let arguments = json!({"region": "us", "q": "a", "query": "b", "other": 1});
    assert_eq!(
        call(&mut client, "echo", arguments).await,
        Ok(json!({"q": "b", "other": 1, "region": "eu"}))
    );
}

#[runtimes::test]
async fn arguments_swap_names() {
    let schema = json!({
        "type": "object",
        "properties": {"from": {"type": "string"}, "to": {"type": "string"}},
    });
    let server = echo_server(schema, ToolOptions::default());
    let transform = ToolTransform::default()
        .with_argument("from", ArgumentTransform::default().with_name("to"))
        .with_argument("to", ArgumentTransform::default().with_name("from"));
    server.transform_tool("echo", &transform).expect("changes");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(
        call(&mut client, "echo", json!({"from": "a", "to": "b"})).await,
        Ok(json!({"to": "a", "from": "b"}))
    );
}

/// Returns the names and the required names of a tool with the arguments `a` (required), `b` and `c`.
async fn names_after(changes: &[(&str, ArgumentTransform)]) -> (Vec<String>, Value) {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}},
        "required": ["a"],
    });
    let server = echo_server(schema, ToolOptions::default());
    let mut transform = ToolTransform::default();
    for (name, change) in changes {
        transform = transform.with_argument(*name, change.clone());
    }
    server.transform_tool("echo", &transform).expect("changes");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let schema = tools(&mut client).await[0]["inputSchema"].clone();
    let names = schema["properties"].as_object().expect("an object");
    (names.keys().cloned().collect(), schema["required"].clone())
}

#[runtimes::test]
async fn a_required_argument_stays_required_under_the_old_name_of_another() {
    let named = |name: &str| ArgumentTransform::default().with_name(name);
    let fixed = ArgumentTransform::default().with_fixed(9);
    let hidden = ArgumentTransform::default().with_hidden();
    for (other, names) in [
        (fixed, vec!["b", "c"]),
        (hidden, vec!["b", "c"]),
        (named("a"), vec!["b", "a", "c"]),
        (named("d"), vec!["b", "d", "c"]),
    ] {
        let (seen, required) = names_after(&[("a", named("b")), ("b", other)]).await;
        assert_eq!(
            (seen, required),
            (
                names.iter().map(|name| (*name).to_owned()).collect(),
                json!(["b"])
            )
        );
    }
}

#[runtimes::test]
async fn a_mounted_tool_that_is_renamed_stays_transformed() {
    let server = Server::new("main", "1");
    let mounted = search();
    let options = MountOptions::default().with_tool("echo", search_transform());
    server.mount(&mounted, options).expect("mounts");
    mounted
        .update_tool("echo", |tool| tool.name = "other".into())
        .expect("changes");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(tools(&mut client).await[0]["name"], "find");
    let refused = call(&mut client, "find", json!({"query": "a", "region": "us"})).await;
    assert!(refused.is_err());
}

#[runtimes::test]
async fn a_transformed_tool_is_transformed_again() {
    let server = search();
    server
        .transform_tool("echo", &search_transform())
        .expect("can be changed");
    let again = ToolTransform::default()
        .with_argument("query", ArgumentTransform::default().with_fixed("always"));
    server.transform_tool("find", &again).expect("changes");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(
        call(&mut client, "find", json!({"limit": 1})).await,
        Ok(json!({"limit": 1, "q": "always", "region": "eu"}))
    );
}

#[runtimes::test]
async fn mounts_change_tools_also_those_that_are_changed_later() {
    let server = Server::new("main", "1");
    let mounted = search();
    let options = MountOptions::default()
        .with_prefix("web")
        .with_tool("echo", search_transform());
    server.mount(&mounted, options).expect("mounts");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let expected = Ok(json!({"q": "a", "limit": 10, "region": "eu"}));
    assert_eq!(
        call(&mut client, "web_find", json!({"query": "a"})).await,
        expected
    );
    mounted
        .update_tool("echo", |tool| tool.title = Some("Echo".into()))
        .expect("changes");
    assert_eq!(tools(&mut client).await[0]["title"], "Find");
    assert_eq!(
        call(&mut client, "web_find", json!({"query": "a"})).await,
        expected
    );
    // The mounted server itself is unchanged.
    let mut direct = Client::legacy(&mounted, "2025-11-25").await;
    assert_eq!(tools(&mut direct).await[0]["name"], "echo");
}

#[runtimes::test]
async fn handlers_that_decode_arguments_check_the_values() {
    let mut options = ToolOptions::default();
    options.decodes_itself = true;
    let server = echo_server(search_schema(), options);
    server
        .transform_tool("echo", &search_transform())
        .expect("can be changed");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    // A value that the schema refuses, and the handler does not.
    assert_eq!(
        call(&mut client, "find", json!({"query": "a", "limit": "5"})).await,
        Ok(json!({"q": "a", "limit": "5", "region": "eu"}))
    );
    let unknown = call(&mut client, "find", json!({"query": "a", "q": "b"})).await;
    assert!(unknown.expect_err("is refused").contains("\"q\""));
}

/// A server whose tool refuses arguments in its own words.
fn refusing(text: &'static str) -> Server {
    let server = Server::new("strict", "1");
    let tool = Tool::new("find", json!({"properties": {"q": {}, "limit": {}}}));
    let mut options = ToolOptions::default();
    options.decodes_itself = true;
    let refuse = move |_: Value, _: Context| async move { Err::<String, _>(ToolError::new(text)) };
    server.add_tool_fn(tool, options, refuse).expect("is valid");
    server
}

#[runtimes::test]
async fn errors_of_handlers_name_arguments_as_clients_know_them() {
    for (text, expected) in [
        (
            "Invalid arguments: at /q: must be of type string (type)",
            "Invalid arguments: at /query: must be of type string (type)",
        ),
        (
            "Invalid arguments: at /q/0/q: no; at /limit: too large",
            "Invalid arguments: at /query/0/q: no; at /limit: too large",
        ),
        (
            "Invalid arguments: `q[2].id`: UUID parsing failed",
            "Invalid arguments: `query[2].id`: UUID parsing failed",
        ),
        (
            "Invalid arguments: at /quality: no",
            "Invalid arguments: at /quality: no",
        ),
        ("look at /q: it is a file", "look at /q: it is a file"),
    ] {
        let server = refusing(text);
        let renamed = ArgumentTransform::default().with_name("terms");
        let first = ToolTransform::default().with_argument("q", renamed);
        server.transform_tool("find", &first).expect("is possible");
        let renamed = ArgumentTransform::default().with_name("query");
        let second = ToolTransform::default().with_argument("terms", renamed);
        server.transform_tool("find", &second).expect("is possible");
        let mut client = Client::legacy(&server, "2025-11-25").await;
        let refused = call(&mut client, "find", json!({"query": 1})).await;
        assert_eq!(refused.expect_err("the handler refuses"), expected);
    }
}

#[test]
fn mounts_refuse_tools_that_do_not_exist() {
    let server = Server::new("main", "1");
    let options = MountOptions::default().with_tool("ecko", ToolTransform::default());
    let error = server.mount(&search(), options).expect_err("is refused");
    assert!(
        error.to_string().contains("there is no tool ecko"),
        "{error}"
    );
}

#[test]
fn impossible_changes_are_refused() {
    let argument = |name: &str, change: ArgumentTransform| {
        ToolTransform::default().with_argument(name, change)
    };
    let unchanged = ArgumentTransform::default;
    for (transform, reason) in [
        (
            argument("query", unchanged().with_name("q")),
            "it has no argument \"query\"; its arguments are q, limit, region, debug",
        ),
        (
            argument("q", unchanged().with_name("limit")),
            "two arguments would be named \"limit\"",
        ),
        (
            argument("q", unchanged().with_hidden()),
            "the argument \"q\" is required, so it can be hidden only with a value",
        ),
        (
            argument("limit", unchanged().with_fixed(101)),
            "`fixed` of the argument \"limit\" does not match its schema",
        ),
        (
            argument("region", unchanged().with_default("asia")),
            "`default` of the argument \"region\" does not match its schema",
        ),
        (
            argument("limit", unchanged().with_default(1).with_fixed(1)),
            "the argument \"limit\" has `default` and `fixed`",
        ),
    ] {
        let refused = refusal(search_schema(), &transform);
        assert!(refused.contains(reason), "{refused}");
    }
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "dependentRequired": {"a": ["b"]},
    });
    let refused = refusal(schema, &argument("a", unchanged().with_hidden()));
    assert!(refused.contains("\"dependentRequired\""), "{refused}");
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}},
    });
    let refused = refusal(schema, &argument("a", unchanged().with_name("c")));
    assert!(refused.contains("#/properties/"), "{refused}");
    for name in ["", "a\nb", &"a".repeat(129)] {
        let refused = refusal(search_schema(), &argument("q", unchanged().with_name(name)));
        assert!(
            refused.contains("is not a valid argument name"),
            "{refused}"
        );
    }
}

#[test]
fn a_transformation_is_read_from_json() {
    let read: ToolTransform = serde_json::from_value(json!({
        "name": "find",
        "tags": ["web"],
        "arguments": {"q": {"fixed": null}, "limit": {"name": "count", "hidden": false}},
    }))
    .expect("can be read");
    let expected = ToolTransform::default()
        .with_name("find")
        .with_tags(["web"])
        .with_argument("q", ArgumentTransform::default().with_fixed(Value::Null))
        .with_argument("limit", ArgumentTransform::default().with_name("count"));
    assert_eq!(read, expected);
    let misspelt = serde_json::from_value::<ToolTransform>(json!({"descripton": "x"}));
    let null = serde_json::from_value::<ToolTransform>(json!({"title": null}));
    assert!(null.is_err());
    assert!(
        misspelt
            .expect_err("is unknown")
            .to_string()
            .contains("descripton")
    );
}
