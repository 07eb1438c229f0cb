//! `#[mcpline::tools]`: methods as tools, resources and prompts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcpline::client::{Client, ClientError};
use mcpline::protocol::vocabulary::{Annotations, CacheHints, CacheScope, Icon};
use mcpline::server::{Args, FeatureSelection};
use mcpline::{Context, HandlerError, Json, Server, ToolError};
use serde_json::{Value, json};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    /// The first number.
    a: i64,
    b: i64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Counted {
    value: u64,
}

#[derive(Default)]
struct App {
    counter: AtomicU64,
}

#[mcpline::tools]
impl App {
    /// Adds two numbers.
    ///
    /// Overflow wraps.
    #[tool(read_only, title = "Sum", tags("sums", "public"))]
    async fn add(&self, Args(sum): Args<Sum>) -> i64 {
        sum.a.wrapping_add(sum.b)
    }

    /// Counts.
    #[tool(
        name = "count-up",
        destructive = false,
        idempotent = false,
        open_world = false
    )]
    async fn count(
        &self,
        /// By how much.
        by: u64,
        /// A note for the log.
        note: Option<String>,
        ctx: &Context,
    ) -> Result<Json<Counted>, ToolError> {
        if ctx.is_cancelled() || note.as_deref() == Some("fail") {
            return Err(ToolError::new("not counted"));
        }
        let value = self.counter.fetch_add(by, Ordering::SeqCst) + by;
        Ok(Json(Counted { value }))
    }

    /// Not a feature.
    fn helper(&self) -> u64 {
        self.counter.load(Ordering::SeqCst)
    }

    #[tool(description = "The value", scopes("count:read"))]
    fn value(&self) -> u64 {
        self.helper()
    }

    #[tool(blocking)]
    fn slow(&self, ctx: Context) -> Result<String, HandlerError> {
        match tokio::runtime::Handle::try_current() {
            // Blocking functions may use the runtime, and run on its threads for blocking work.
            Ok(_) => Ok(format!(
                "{} {}",
                ctx.tool_name().unwrap_or_default(),
                self.helper()
            )),
            Err(error) => Err(HandlerError::Internal(error.to_string())),
        }
    }

    #[tool]
    async fn alone() -> &'static str {
        "without a receiver"
    }

    #[cfg(any())]
    #[tool]
    async fn left_out(&self) -> &'static str {
        "never"
    }

    /// One note.
    #[resource("note://{id}/{part}", mime_type = "text/plain", name = "note")]
    async fn note(&self, part: String, id: u32) -> String {
        format!("note {id}, part {part}")
    }

    #[resource("note://index", tags("public"))]
    async fn index(&self, ctx: Context) -> String {
        ctx.uri().unwrap_or_default()
    }

    /// Plans a day.
    #[prompt(title = "Plan", tags("public"))]
    async fn plan(
        &self,
        /// The name of a city.
        city: String,
        hours: Option<u8>,
    ) -> String {
        format!("Plan {} hours in {city}.", hours.unwrap_or(24))
    }
}

async fn connected(app: impl mcpline::server::Definitions) -> Client {
    let server = Server::new("app", "1.0.0").with(app);
    Client::connect(&server).await.expect("a client")
}

async fn text(client: &Client, tool: &str, arguments: Value) -> String {
    let result = client.call_tool(tool, arguments).await.expect("a result");
    result.text()
}

#[tokio::test]
async fn definitions_come_from_the_methods() {
    let client = connected(App::default()).await;
    let tools = client.list_tools().await.expect("tools");
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["add", "count-up", "value", "slow", "alone"]);
    let add = &tools[0];
    assert_eq!(add.title.as_deref(), Some("Sum"));
    assert_eq!(
        add.description.as_deref(),
        Some("Adds two numbers.\n\nOverflow wraps.")
    );
    let hints = add.annotations.clone().expect("hints");
    assert_eq!(hints.read_only_hint, Some(true));
    assert_eq!(hints.destructive_hint, None);
    assert_eq!(
        add.input_schema["properties"]["a"]["description"],
        "The first number."
    );
    let count = &tools[1];
    let hints = count.annotations.clone().expect("hints");
    assert_eq!(
        (
            hints.destructive_hint,
            hints.idempotent_hint,
            hints.open_world_hint
        ),
        (Some(false), Some(false), Some(false))
    );
    let schema = &count.input_schema;
    assert_eq!(schema["properties"]["by"]["description"], "By how much.");
    assert_eq!(schema["required"], json!(["by"]));
    let output = count.output_schema.as_ref().expect("an output schema");
    assert_eq!(output["properties"]["value"]["type"], "integer");
    assert_eq!(tools[2].description.as_deref(), Some("The value"));
    let prompts = client.list_prompts().await.expect("prompts");
    assert_eq!(prompts[0].title.as_deref(), Some("Plan"));
    let arguments = prompts[0].arguments.as_ref().expect("arguments");
    assert_eq!(
        arguments[0].description.as_deref(),
        Some("The name of a city.")
    );
    assert_eq!(arguments[0].required, Some(true));
    assert_eq!(arguments[1].required, Some(false));
    let templates = client.list_resource_templates().await.expect("templates");
    assert_eq!(templates[0].name, "note");
    assert_eq!(templates[0].mime_type.as_deref(), Some("text/plain"));
    assert_eq!(templates[0].description.as_deref(), Some("One note."));
}

#[tokio::test]
async fn tags_select_features() {
    let server = Server::new("app", "1.0.0").with(App::default());
    assert_eq!(
        server.disable(FeatureSelection::all().with_tags(["sums"])),
        1
    );
    assert_eq!(
        server.disable(FeatureSelection::all().with_tags(["public"])),
        2
    );
    let client = Client::connect(&server).await.expect("a client");
    let tools = client.list_tools().await.expect("tools");
    assert!(tools.iter().all(|tool| tool.name != "add"));
    assert!(client.list_prompts().await.expect("prompts").is_empty());
}

#[tokio::test]
async fn calls_reach_the_methods() -> Result<(), ClientError> {
    let app = Arc::new(App::default());
    let client = connected(app.clone()).await;
    assert_eq!(text(&client, "add", json!({"a": 1, "b": 2})).await, "3");
    let counted = client
        .call_tool("count-up", json!({"by": 5}))
        .await?
        .structured::<Value>()
        .expect("structured content");
    assert_eq!(counted, json!({"value": 5}));
    assert_eq!(app.helper(), 5);
    let failed = client
        .call_tool("count-up", json!({"by": 5, "note": "fail"}))
        .await?;
    assert_eq!(
        (failed.is_error, failed.text().as_str()),
        (Some(true), "not counted")
    );
    assert_eq!(text(&client, "value", json!({})).await, "5");
    assert_eq!(text(&client, "slow", json!({})).await, "slow 5");
    assert_eq!(
        text(&client, "alone", json!({})).await,
        "without a receiver"
    );
    let note = client.read_resource("note://7/b").await?;
    assert_eq!(note.contents[0].text.as_deref(), Some("note 7, part b"));
    let index = client.read_resource("note://index").await?;
    assert_eq!(index.contents[0].text.as_deref(), Some("note://index"));
    let mut arguments = BTreeMap::from([("city".to_owned(), "Oslo".to_owned())]);
    let plan = client.get_prompt("plan", &arguments).await?;
    assert_eq!(
        serde_json::to_value(&plan.messages[0].content).expect("JSON")["text"],
        "Plan 24 hours in Oslo."
    );
    arguments.insert("hours".to_owned(), "8".to_owned());
    let plan = client.get_prompt("plan", &arguments).await?;
    assert_eq!(
        serde_json::to_value(&plan.messages[0].content).expect("JSON")["text"],
        "Plan 8 hours in Oslo."
    );
    Ok(())
}

#[tokio::test]
async fn arguments_that_do_not_parse_are_named() {
    let client = connected(App::default()).await;
    let error = client.read_resource("note://seven/b").await;
    let error = error.expect_err("not a number").to_string();
    assert!(error.contains("`id`"), "{error}");
    let result = client.call_tool("count-up", json!({"by": -1})).await;
    let text = result.expect("a result").text();
    assert!(text.contains("by"), "{text}");
}

#[test]
fn a_second_registration_is_an_error() {
    let server = Server::new("app", "1.0.0");
    server.add(App::default()).expect("the first one");
    let error = server.add(App::default()).expect_err("the names are taken");
    assert!(error.to_string().contains("add"), "{error}");
}

/// Methods that a macro writes have names and types from another place than the attribute.
macro_rules! written {
    ($name:ident, $returned:ty, $value:expr) => {
        struct Written;

        #[mcpline::tools]
        impl Written {
            #[tool]
            async fn $name(&self, argument: String, ctx: &Context) -> $returned {
                let _ = (argument, ctx.is_cancelled());
                $value
            }
        }
    };
}

written!(generated, u8, 7);

#[tokio::test]
async fn methods_may_come_from_a_macro() {
    let client = connected(Written).await;
    let arguments = json!({"argument": "x"});
    assert_eq!(text(&client, "generated", arguments).await, "7");
}

/// A type whose features have every option that a definition may have.
struct Atlas;

#[mcpline::tools]
impl Atlas {
    #[tool(
        icons(Icon::new("https://example.com/find.png")),
        meta = [("example.com/tier".to_owned(), json!("free"))].into_iter().collect(),
        output_schema = json!({"type": "object", "required": ["city"]})
    )]
    async fn find(&self) -> Json<Value> {
        Json(json!({"city": "Oslo"}))
    }

    #[resource(
        "map://{path}",
        list = maps,
        unchecked_variables("path"),
        annotations = Annotations::default().with_priority(0.5),
        icons(Icon::new("https://example.com/map.png"))
    )]
    async fn map(&self, path: String) -> String {
        format!("the map {path}")
    }

    async fn maps(&self, ctx: &Context) -> Vec<String> {
        vec![format!("map://{}", ctx.revision().as_str())]
    }

    #[resource("globe://{part}", list = globes, cache = CacheHints::new(5, CacheScope::Public))]
    fn globe(part: String) -> String {
        part
    }

    fn globes() -> Vec<&'static str> {
        vec!["globe://north"]
    }

    #[prompt(icons(Icon::new("https://example.com/plan.png")), meta = Default::default())]
    async fn plan(&self) -> &'static str {
        "Plan a journey."
    }
}

#[tokio::test]
async fn definitions_have_icons_metadata_and_schemas() -> Result<(), ClientError> {
    let client = connected(Atlas).await;
    let tools = client.list_tools().await?;
    let icons = tools[0].icons.as_ref().expect("icons");
    assert_eq!(icons[0].src, "https://example.com/find.png");
    let meta = tools[0].meta.as_ref().expect("metadata");
    assert_eq!(meta["example.com/tier"], "free");
    let output = tools[0].output_schema.as_ref().expect("a schema");
    assert_eq!(output["required"], json!(["city"]));
    let templates = client.list_resource_templates().await?;
    assert_eq!(templates[0].icons.as_ref().expect("icons").len(), 1);
    let annotations = templates[0].annotations.as_ref().expect("annotations");
    assert_eq!(annotations.priority, Some(0.5));
    let prompts = client.list_prompts().await?;
    assert_eq!(prompts[0].icons.as_ref().expect("icons").len(), 1);
    let globe = client.read_resource("globe://north").await?;
    assert_eq!(globe.cache, CacheHints::new(5, CacheScope::Public));
    Ok(())
}

#[tokio::test]
async fn methods_list_the_resources_of_templates() -> Result<(), ClientError> {
    let client = connected(Atlas).await;
    let resources = client.list_resources().await?;
    let uris: Vec<_> = resources.iter().map(|one| one.uri.as_str()).collect();
    assert_eq!(uris, ["map://2026-07-28", "globe://north"]);
    // Without `unchecked_variables` this would be an error.
    let read = client.read_resource("map://..%2Fa").await?;
    assert_eq!(read.contents[0].text.as_deref(), Some("the map ../a"));
    Ok(())
}
