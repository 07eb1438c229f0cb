//! Definitions as values, handlers of every shape, state, and the types that handlers return.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcpline::client::{Client, ClientError, RequestOptions, TypedCallError};
use mcpline::protocol::vocabulary::{
    CacheHints, CacheScope, ContentBlock, LoggingLevel, PromptArgument, Resource, Tool,
};
use mcpline::server::{
    Blocking, Caller, FeatureSelection, NoArguments, PromptDefinition, ResourceDefinition,
    Settings, ToolDefinition, ToolOptions, tool_handler,
};
use mcpline::transport::MemoryTransportOptions;
use mcpline::{Context, ErrorKind, HandlerError, Json, Server};
use serde_json::{Value, json};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

async fn add(sum: Sum) -> i64 {
    sum.a + sum.b
}

async fn call(server: &Server, tool: &str, arguments: Value) -> String {
    let client = Client::connect(server).await.expect("a client");
    let result = client.call_tool(tool, arguments).await.expect("a result");
    assert_ne!(result.is_error, Some(true), "{result:?}");
    result.text()
}

#[runtimes::test]
async fn handlers_take_arguments_and_context_or_neither() {
    let server = Server::new("shapes", "1")
        .tool("none", "No parameters", || async { "none" })
        .tool("context", "The context", |ctx: Context| async move {
            ctx.tool_name()
        })
        .tool("arguments", "The arguments", add)
        .tool("both", "Both", |sum: Sum, ctx: Context| async move {
            format!("{} {}", ctx.tool_name().unwrap_or_default(), sum.a)
        })
        .tool("blocking", "On another thread", Blocking(|sum: Sum| sum.b))
        .tool("blocking-none", "On another thread", Blocking(|| "none"))
        .tool(
            "blocking-both",
            "On another thread",
            Blocking(|_: NoArguments, ctx: Context| ctx.tool_name()),
        );
    let both = json!({"a": 1, "b": 2});
    for (tool, arguments, expected) in [
        ("none", json!({}), "none"),
        ("context", json!({}), "context"),
        ("arguments", both.clone(), "3"),
        ("both", both.clone(), "both 1"),
        ("blocking", both, "2"),
        ("blocking-none", json!({}), "none"),
        ("blocking-both", json!({}), "blocking-both"),
    ] {
        assert_eq!(call(&server, tool, arguments).await, expected);
    }
}

#[runtimes::test]
async fn a_panic_of_a_blocking_handler_is_an_internal_error() {
    let server = Server::new("shapes", "1").tool(
        "panics",
        "Panics",
        Blocking(|| -> String { panic!("a mistake") }),
    );
    let client = Client::connect(&server).await.expect("a client");
    let result = client.call_tool("panics", json!({})).await;
    let result = result.expect("a result");
    assert_eq!(result.is_error, Some(true));
    assert_eq!(result.text(), "Error executing tool panics");
}

#[runtimes::test]
async fn handlers_return_options_lists_numbers_and_borrowed_texts() {
    let server = Server::new("replies", "1")
        .tool("some", "Some", || async { Some("text") })
        .tool("none", "None", || async { None::<String> })
        .tool("byte", "A byte", || async { 7_u8 })
        .tool("wide", "128 bits", || async { i128::MIN })
        .tool("cow", "A text", || async { Cow::Borrowed("cow") })
        .tool("texts", "Two texts", || async { vec!["a", "b"] })
        .tool("blocks", "A block", || async {
            vec![ContentBlock::text("c")]
        });
    for (tool, expected) in [
        ("some", "text"),
        ("none", ""),
        ("byte", "7"),
        ("wide", "-170141183460469231731687303715884105728"),
        ("cow", "cow"),
        ("texts", "a\nb"),
        ("blocks", "c"),
    ] {
        assert_eq!(call(&server, tool, json!({})).await, expected);
    }
}

#[runtimes::test]
async fn definitions_set_every_option() {
    let server = Server::new("definitions", "1");
    let tool = ToolDefinition::new("add", add)
        .title("Sum")
        .description("Adds")
        .read_only(true)
        .idempotent(true)
        .open_world(false)
        .scopes(["math"]);
    server.add(tool).expect("a tool");
    server
        .add(vec![
            ResourceDefinition::new("note://index", "index", || async { "1" })
                .title("Index")
                .mime_type("text/plain"),
            ResourceDefinition::template(
                "note://{id}",
                "note",
                |note: BTreeMap<String, String>| async move { note["id"].clone() },
            )
            .description("One note"),
        ])
        .expect("resources");
    server
        .add(PromptDefinition::new("sum", |texts: Texts| async move { texts.first }).title("Sum"))
        .expect("a prompt");
    let caller = Caller::new().with_subject("alice").with_scopes(["math"]);
    let client = Client::connect((&server, caller)).await.expect("a client");
    let tools = client.list_tools().await.expect("tools");
    assert_eq!(tools[0].title.as_deref(), Some("Sum"));
    let hints = tools[0].annotations.clone().expect("hints");
    assert_eq!(
        (
            hints.read_only_hint,
            hints.destructive_hint,
            hints.idempotent_hint,
            hints.open_world_hint
        ),
        (Some(true), None, Some(true), Some(false))
    );
    let index = client.read_resource("note://index").await.expect("a note");
    assert_eq!(index.contents[0].mime_type.as_deref(), Some("text/plain"));
    let note = client.read_resource("note://7").await.expect("a note");
    assert_eq!(note.contents[0].text.as_deref(), Some("7"));
    let prompts = client.list_prompts().await.expect("prompts");
    let arguments = prompts[0].arguments.as_ref().expect("arguments");
    let shown: Vec<_> = arguments
        .iter()
        .map(|one| (one.name.as_str(), one.description.as_deref(), one.required))
        .collect();
    assert_eq!(
        shown,
        [
            ("first", Some("The first text."), Some(true)),
            ("second", None, Some(false))
        ]
    );
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Texts {
    /// The first text.
    first: String,
    #[expect(dead_code, reason = "only its schema matters")]
    second: Option<String>,
}

#[runtimes::test]
async fn a_client_in_memory_has_the_scopes_of_its_principal() {
    let server = Server::new("scopes", "1");
    let tool = ToolDefinition::new("who", |ctx: Context| async move {
        ctx.auth()?.subject().map(str::to_owned)
    });
    server.add(tool.scopes(["read"])).expect("a tool");
    let alice = Caller::new().with_subject("alice").with_scopes(["read"]);
    let client = Client::connect((&server, alice)).await.expect("a client");
    let result = client.call_tool("who", json!({})).await.expect("a result");
    assert_eq!(result.text(), "alice");
    let bob = Caller::new().with_subject("bob");
    let client = Client::connect((&server, bob)).await.expect("a client");
    assert!(client.list_tools().await.expect("tools").is_empty());
}

#[runtimes::test]
async fn resources_have_cache_hints_of_their_own() {
    let mut settings = Settings::default();
    settings.resource_cache = CacheHints::new(1, CacheScope::Private);
    let server = Server::builder("cache", "1").settings(settings).build();
    let server = server.expect("a server");
    let public = CacheHints::new(60_000, CacheScope::Public);
    let definitions = vec![
        ResourceDefinition::new("a://own", "own", || async { "" }).cache(public.clone()),
        ResourceDefinition::template(
            "a://template/{id}",
            "template",
            |_: BTreeMap<String, String>| async { "" },
        )
        .cache(public.clone()),
        ResourceDefinition::new("a://default", "default", || async { "" }),
        ResourceDefinition::new("a://protected", "protected", || async { "" })
            .cache(public.clone())
            .scopes(["read"]),
    ];
    server.add(definitions).expect("resources");
    let client = Client::connect(&server).await.expect("a client");
    for (uri, hints) in [
        ("a://own", public.clone()),
        ("a://template/7", public),
        ("a://default", CacheHints::new(1, CacheScope::Private)),
        (
            "a://protected",
            CacheHints::new(60_000, CacheScope::Private),
        ),
    ] {
        let read = client.read_resource(uri).await.expect("a resource");
        assert_eq!(read.cache, hints, "{uri}");
    }
}

#[runtimes::test]
async fn definitions_have_tags() {
    let server = Server::new("tags", "1");
    let tool = ToolDefinition::new("tool", || async { "" }).tags(["beta"]);
    server.add(tool).expect("a tool");
    let resource = ResourceDefinition::new("a://b", "b", || async { "" }).tags(["beta", "files"]);
    server.add(resource).expect("a resource");
    let prompt = PromptDefinition::new("prompt", || async { "" }).tags(["beta"]);
    server.add(prompt).expect("a prompt");
    let tagged = |tag: &str| FeatureSelection::all().with_tags([tag]);
    assert_eq!(server.disable(tagged("files")), 1);
    assert_eq!(server.disable(tagged("beta")), 2);
}

#[runtimes::test]
async fn a_client_in_memory_has_headers_that_authenticate_no_one() {
    let server = Server::new("headers", "1");
    let tool = ToolDefinition::new("header", |ctx: Context| async move {
        let http = ctx.http();
        let header = http.as_ref().and_then(|http| http.header("x-tenant"));
        format!("{header:?} {:?}", ctx.auth().is_some())
    });
    server.add(tool).expect("a tool");
    let scoped = ToolDefinition::new("scoped", || async { "" }).scopes(["read"]);
    server.add(scoped).expect("a tool");
    let mut headers = http::HeaderMap::new();
    headers.insert("x-tenant", http::HeaderValue::from_static("acme"));
    let bearer = http::HeaderValue::from_static("Bearer token");
    headers.insert(http::header::AUTHORIZATION, bearer);
    let options = MemoryTransportOptions::new().with_headers(headers);
    let caller = Caller::new().with_subject("alice");
    for (options, expected, tools) in [
        (options.clone(), r#"Some("acme") false"#, 2),
        (options.with_principal(caller), r#"Some("acme") true"#, 1),
        (MemoryTransportOptions::new(), "None false", 2),
    ] {
        let client = Client::connect((&server, options)).await;
        let client = client.expect("a client");
        let result = client.call_tool("header", json!({})).await;
        assert_eq!(result.expect("a result").text(), expected);
        assert_eq!(client.list_tools().await.expect("tools").len(), tools);
    }
}

#[test]
fn invalid_definitions_are_errors() {
    let server = Server::new("invalid", "1");
    for (error, expected) in [
        (
            server.add(ToolDefinition::new("", add)),
            "a tool needs a name",
        ),
        (
            server.add(ToolDefinition::with_schema(
                "x",
                json!({"type": "string"}),
                add,
            )),
            "input schema",
        ),
        (
            server.add(ToolDefinition::new("x", add).scopes(["a b"])),
            "a b",
        ),
        (
            server.add(ResourceDefinition::new("no uri", "x", || async { "" })),
            "no uri",
        ),
        (
            server.add(PromptDefinition::new("sum", |sum: Sum| async move {
                sum.a.to_string()
            })),
            "not a string",
        ),
    ] {
        let error = error.expect_err(expected);
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[runtimes::test]
async fn handlers_find_the_state_of_their_type() {
    struct Greeting(&'static str);
    let server = Server::new("state", "1")
        .with_state(Greeting("replaced"))
        .with_state(Greeting("hello"))
        .tool("greet", "Greets", |ctx: Context| async move {
            ctx.state::<Greeting>().map(|greeting| greeting.0)
        })
        .tool("missing", "No state", |ctx: Context| async move {
            ctx.state::<u8>().map(|value| *value)
        });
    assert_eq!(call(&server, "greet", json!({})).await, "hello");
    assert_eq!(
        server.state::<Greeting>().map(|state| state.0),
        Some("hello")
    );
    let client = Client::connect(&server).await.expect("a client");
    let result = client.call_tool("missing", json!({})).await;
    let result = result.expect("a result");
    assert_eq!(result.text(), "Error executing tool missing");
}

#[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Point {
    x: i64,
}

#[runtimes::test]
async fn results_decode_into_types() {
    let server = Server::new("typed", "1")
        .tool("point", "A point", || async { Json(Point { x: 3 }) })
        .tool("fails", "Fails", || async {
            Err::<String, _>(HandlerError::Tool("no point".into()))
        })
        .tool("text", "A text", || async { "text" });
    let client = Client::connect(&server).await.expect("a client");
    let point: Point = client
        .call_tool_as("point", json!({}))
        .await
        .expect("a point");
    assert_eq!(point, Point { x: 3 });
    let error = client.call_tool_as::<Point>("fails", json!({})).await;
    let error = error.expect_err("the tool fails");
    assert!(matches!(error, TypedCallError::Tool(_)));
    assert_eq!(error.to_string(), "tool failed: no point");
    let error = client.call_tool_as::<Point>("text", json!({})).await;
    assert!(matches!(error, Err(TypedCallError::Mismatch { .. })));
    let error = client.call_tool_as::<Point>("unknown", json!({})).await;
    assert!(matches!(
        error,
        Err(TypedCallError::Request(ClientError::Rpc(_)))
    ));
    let error = client.call_tool_as::<Vec<i64>>("point", json!({})).await;
    assert!(
        error
            .expect_err("another type")
            .to_string()
            .contains("structured content")
    );
}

#[runtimes::test]
async fn results_that_are_no_objects_decode_on_every_revision() {
    let server = Server::new("typed", "1")
        .tool("points", "Points", || async {
            Json(vec![Point { x: 1 }, Point { x: 2 }])
        })
        .tool("point", "A point", || async { Json(Some(Point { x: 3 })) })
        .tool("none", "No point", || async { Json(None::<Point>) });
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let client = Client::builder("test", "1")
            .configure(|settings| settings.revisions = vec![revision.parse().expect("a revision")])
            .connect(&server)
            .await
            .expect("a client");
        let points = client.call_tool_as::<Vec<Point>>("points", json!({})).await;
        assert_eq!(points.expect("points"), [Point { x: 1 }, Point { x: 2 }]);
        let point = client
            .call_tool_as::<Option<Point>>("point", json!({}))
            .await;
        assert_eq!(point.expect("a point"), Some(Point { x: 3 }), "{revision}");
        let none = client
            .call_tool_as::<Option<Point>>("none", json!({}))
            .await;
        assert_eq!(none.expect("no point"), None, "{revision}");
        let wrong = client.call_tool_as::<Vec<i64>>("points", json!({})).await;
        assert!(matches!(wrong, Err(TypedCallError::Mismatch { .. })));
    }
}

#[runtimes::test]
async fn functions_may_return_any_error() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}

    let server = Server::new("failing", "1")
        .tool("anyhow", "Fails", || async {
            let number: i64 = "x".parse()?;
            Ok::<_, anyhow::Error>(number)
        })
        .tool("io", "Fails", || async {
            Err::<String, _>(std::io::Error::other("disk full"))
        })
        .on_request("acme/fail", |_: Nothing, _: Context| async {
            Err::<Value, _>(anyhow::anyhow!("not today"))
        });
    let client = Client::connect(&server).await.expect("a client");
    for (tool, text) in [
        ("anyhow", "invalid digit found in string"),
        ("io", "disk full"),
    ] {
        let result = client.call_tool(tool, json!({})).await.expect("a result");
        assert_eq!(result.is_error, Some(true));
        assert_eq!(result.text(), text);
    }
    let failed = client
        .request("acme/fail", None, &RequestOptions::new())
        .await;
    assert!(matches!(failed, Err(ClientError::Rpc(_))), "{failed:?}");
}

/// A value that serde refuses although its schema does not, as those of UUIDs and dates are.
#[derive(Debug, schemars::JsonSchema)]
struct Even(#[expect(dead_code, reason = "only read")] u8);

impl<'de> serde::Deserialize<'de> for Even {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = u8::deserialize(deserializer)?;
        match value % 2 {
            0 => Ok(Self(value)),
            _ => Err(serde::de::Error::custom(format!("{value} is odd"))),
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nested {
    #[expect(dead_code, reason = "only read")]
    numbers: Vec<Even>,
}

#[runtimes::test]
async fn arguments_that_the_type_refuses_are_named_with_their_path() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Outer {
        #[expect(dead_code, reason = "only read")]
        inner: Nested,
    }
    let server = Server::new("paths", "1").tool("even", "Even", |_: Outer| async { "even" });
    let client = Client::connect(&server).await.expect("a client");
    let arguments = json!({"inner": {"numbers": [2, 3]}});
    let result = client.call_tool("even", arguments).await.expect("a result");
    assert_eq!(result.is_error, Some(true));
    assert_eq!(
        result.text(),
        "Invalid arguments: `inner.numbers[1]`: 3 is odd"
    );
}

#[runtimes::test]
async fn handler_constructors_fit_the_methods_that_take_handlers() {
    let server = Server::new("constructors", "1");
    let schema = json!({"type": "object"});
    let tool = Tool::new("add", schema).with_title("Sum");
    server
        .add_tool(tool, ToolOptions::default(), tool_handler(add))
        .expect("a tool");
    assert_eq!(call(&server, "add", json!({"a": 1, "b": 2})).await, "3");
    let prompt = PromptDefinition::with_arguments(
        "plan",
        vec![PromptArgument::new("city").with_required(true)],
        |arguments: BTreeMap<String, String>, ctx: Context| async move {
            format!(
                "{} {}",
                ctx.prompt_name().unwrap_or_default(),
                arguments["city"]
            )
        },
    );
    server.add(prompt).expect("a prompt");
    let server = server.resource(Resource::new("now://", "now"), |ctx: Context| async move {
        ctx.uri().unwrap_or_default()
    });
    let client = Client::connect(&server).await.expect("a client");
    let arguments = BTreeMap::from([("city".to_owned(), "Oslo".to_owned())]);
    let plan = client
        .get_prompt("plan", &arguments)
        .await
        .expect("a prompt");
    let text = serde_json::to_value(&plan.messages[0].content).expect("JSON");
    assert_eq!(text["text"], "plan Oslo");
    let now = client.read_resource("now://").await.expect("contents");
    assert_eq!(now.contents[0].text.as_deref(), Some("now://"));
}

#[runtimes::test]
async fn logs_any_value_with_a_json_form() {
    #[derive(serde::Serialize)]
    struct Event {
        step: u8,
    }
    let server = Server::new("logs", "1").tool("log", "Logs", |ctx: Context| async move {
        ctx.log(LoggingLevel::Error, None, "a text");
        ctx.log(LoggingLevel::Error, None, Event { step: 1 });
        ctx.log(LoggingLevel::Error, None, BTreeMap::from([((1, 2), 3)]));
    });
    let (builder, mut notifications) = Client::builder("host", "1").notifications();
    let client = builder
        .configure(|settings| settings.revisions = vec![mcpline::Revision::V2025_11_25])
        .connect(&server)
        .await
        .expect("a client");
    client.call_tool("log", json!({})).await.expect("a result");
    let mut logged = Vec::new();
    for _ in 0..2 {
        let message = notifications.next().await.expect("a log message");
        let params = message.params.expect("params");
        logged.push(params.get("data").expect("data").as_str().to_owned());
    }
    assert_eq!(logged, [r#""a text""#, r#"{"step":1}"#]);
}

#[runtimes::test]
async fn a_dropped_stream_of_notifications_leaves_the_client_open() {
    let server = Server::new("changes", "1").tool("first", "First", || async { 1 });
    let (builder, notifications) = Client::builder("host", "1").notifications();
    let client = builder.connect(&server).await.expect("a client");
    drop(notifications);
    let server = server.tool("second", "Second", || async { 2 });
    assert_eq!(client.list_tools().await.expect("tools").len(), 2);
    drop(server);
}

#[runtimes::test]
async fn a_stream_of_notifications_ends_with_the_client() {
    let server = Server::new("changes", "1").tool("first", "First", || async { 1 });
    let (builder, mut notifications) = Client::builder("host", "1").notifications();
    let client = builder.connect(&server).await.expect("a client");
    client.close().await;
    drop(client);
    while notifications.next().await.is_some() {}
    assert_eq!(notifications.missed(), 0);
}
