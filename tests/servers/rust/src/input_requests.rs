//! Tools that send input requests from within the handler.

use mcpline::protocol::vocabulary::LoggingLevel;
use mcpline::protocol::wire::Raw;
use mcpline::{Context, Error, HandlerError, InputRequest, InputRequestMethod, Server};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::content::Nothing;

#[derive(Deserialize, JsonSchema)]
struct Prompt {
    prompt: String,
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    message: String,
}

/// The parameters of `elicitation/create` for a form.
pub(crate) fn form(message: &str, properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    json!({"message": message, "requestedSchema": schema})
}

/// The parameters of `sampling/createMessage` for one user message.
pub(crate) fn sampling(text: &str, max_tokens: u32) -> Value {
    json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        "maxTokens": max_tokens
    })
}

/// Converts JSON to raw JSON.
pub(crate) fn raw(value: &Value) -> Option<Raw> {
    Raw::from_serialize(value).ok()
}

/// Returns the text of a sampled message.
pub(crate) fn sampled_text(answer: &Value) -> String {
    let content = &answer["content"];
    let block = content.get(0).unwrap_or(content);
    block["text"].as_str().unwrap_or_default().to_owned()
}

/// Returns the blocks of a sampled message, from a single block or an array.
pub(crate) fn sampled_blocks(answer: &Value) -> Vec<Value> {
    match &answer["content"] {
        Value::Array(blocks) => blocks.clone(),
        block => vec![block.clone()],
    }
}

/// The tool that the model may use.
pub(crate) fn get_weather() -> Value {
    json!({
        "name": "get_weather",
        "description": "Weather of a city",
        "inputSchema": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"]
        }
    })
}

/// The answer to a form: the action, and the content if it was accepted.
struct Answered {
    action: String,
    content: Map<String, Value>,
}

impl Answered {
    fn text(&self, name: &str) -> Option<String> {
        Some(self.content.get(name)?.as_str()?.to_owned())
    }

    fn json(&self) -> String {
        Value::Object(self.content.clone()).to_string()
    }
}

async fn elicit(ctx: &Context, key: &str, params: &Value) -> Result<Answered, HandlerError> {
    let answer = request_input(ctx, InputRequestMethod::Elicit, key, Some(params)).await?;
    let action = answer["action"].as_str().unwrap_or_default().to_owned();
    let content = match (&answer["content"], action.as_str()) {
        (Value::Object(content), "accept") => content.clone(),
        _ => Map::new(),
    };
    Ok(Answered { action, content })
}

/// Sends an input request with this key and returns the client's answer.
pub(crate) async fn request_input(
    ctx: &Context,
    method: InputRequestMethod,
    key: &str,
    params: Option<&Value>,
) -> Result<Value, HandlerError> {
    let input_request = InputRequest::new(method, params.and_then(raw)).with_key(key);
    let answer = ctx.request_input(input_request).await?;
    answer
        .decode()
        .map_err(|error| HandlerError::Internal(error.to_string()))
}

/// Adds these tools.
pub(crate) fn add(server: &Server) -> Result<(), Error> {
    let server = server
        .clone()
        .tool(
            "test_sampling",
            "Samples",
            |args: Prompt, ctx: Context| async move {
                let params = sampling(&args.prompt, 100);
                let answer =
                    request_input(&ctx, InputRequestMethod::Sample, "sample", Some(&params))
                        .await?;
                Ok::<_, HandlerError>(format!("LLM response: {}", sampled_text(&answer)))
            },
        )
        .tool(
            "test_sampling_with_tools",
            "Samples with a tool",
            |_: Nothing, ctx: Context| async move {
                let mut params = sampling("What is the weather in Oslo?", 100);
                params["tools"] = json!([get_weather()]);
                params["toolChoice"] = json!({"mode": "auto"});
                let answer =
                    request_input(&ctx, InputRequestMethod::Sample, "sample", Some(&params))
                        .await?;
                let content = &answer["content"];
                let block = content.get(0).unwrap_or(content);
                Ok::<_, HandlerError>(if block["type"] == "tool_use" {
                    let name = block["name"].as_str().unwrap_or_default();
                    format!("tool_use {name} {}", block["input"])
                } else {
                    format!("text {}", sampled_text(&answer))
                })
            },
        )
        .tool(
            "test_elicitation",
            "Asks the user",
            |args: Message, ctx: Context| async move {
                let properties =
                    json!({"username": {"type": "string"}, "email": {"type": "string"}});
                let params = form(&args.message, properties, &["username", "email"]);
                let answered = elicit(&ctx, "user", &params).await?;
                Ok::<_, HandlerError>(format!(
                    "User response: action={}, content={}",
                    answered.action,
                    answered.json()
                ))
            },
        );
    add_schemas(&server);
    let _ = server
        .tool(
            "test_url_elicitation",
            "Asks for a visit",
            |_: Nothing, ctx: Context| async move {
                let mut params = json!({
                    "mode": "url",
                    "message": "Please authorise access",
                    "url": "https://example.com/authorise"
                });
                if ctx.revision().features().elicitation_complete {
                    params["elicitationId"] = "fixture-1".into();
                }
                let answered = elicit(&ctx, "user", &params).await?;
                Ok::<_, HandlerError>(format!("URL elicitation: action={}", answered.action))
            },
        )
        .tool(
            "test_roots",
            "Lists the client's roots",
            |_: Nothing, ctx: Context| async move { roots(&ctx).await },
        )
        .tool(
            "test_two_questions",
            "Asks twice",
            |_: Nothing, ctx: Context| async move {
                let params = form(
                    "What is your name?",
                    json!({"name": {"type": "string"}}),
                    &["name"],
                );
                let Some(name) = elicit(&ctx, "first", &params).await?.text("name") else {
                    return Ok::<_, HandlerError>("no name".to_owned());
                };
                let params = form(
                    &format!("How old are you, {name}?"),
                    json!({"age": {"type": "integer"}}),
                    &["age"],
                );
                let answered = elicit(&ctx, "second", &params).await?;
                Ok(match answered.content.get("age") {
                    Some(age) => format!("{name} is {age}"),
                    None => "no age".to_owned(),
                })
            },
        )
        .tool(
            "test_streaming_elicitation",
            "Asks on a stream",
            |_: Nothing, ctx: Context| async move {
                let params = form(
                    "Streaming elicitation",
                    json!({"answer": {"type": "string"}}),
                    &["answer"],
                );
                let answered = elicit(&ctx, "user", &params).await?;
                Ok::<_, HandlerError>(format!("Streaming elicitation: action={}", answered.action))
            },
        );
    Ok(())
}

fn add_schemas(server: &Server) {
    let _ = server
        .clone()
        .tool(
            "test_elicitation_sep1034_defaults",
            "Asks with defaults",
            |_: Nothing, ctx: Context| async move {
                let properties = json!({
                    "name": {"type": "string", "default": "John Doe"},
                    "age": {"type": "integer", "default": 30},
                    "score": {"type": "number", "default": 95.5},
                    "status": {
                        "type": "string",
                        "enum": ["active", "inactive", "pending"],
                        "default": "active"
                    },
                    "verified": {"type": "boolean", "default": true}
                });
                let params = form("Please provide user information", properties, &[]);
                let answered = elicit(&ctx, "user", &params).await?;
                Ok::<_, HandlerError>(format!(
                    "Elicitation result: action={}, content={}",
                    answered.action,
                    answered.json()
                ))
            },
        )
        .tool(
            "test_elicitation_sep1330_enums",
            "Asks with choices",
            |_: Nothing, ctx: Context| async move {
                let properties = json!({
                    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
                    "titledSingle": {"type": "string", "oneOf": [
                        {"const": "value1", "title": "First Option"},
                        {"const": "value2", "title": "Second Option"},
                        {"const": "value3", "title": "Third Option"}
                    ]},
                    "legacyEnum": {
                        "type": "string",
                        "enum": ["opt1", "opt2", "opt3"],
                        "enumNames": ["Option One", "Option Two", "Option Three"]
                    },
                    "untitledMulti": {
                        "type": "array",
                        "items": {"type": "string", "enum": ["option1", "option2", "option3"]}
                    },
                    "titledMulti": {"type": "array", "items": {"anyOf": [
                        {"const": "value1", "title": "First Choice"},
                        {"const": "value2", "title": "Second Choice"},
                        {"const": "value3", "title": "Third Choice"}
                    ]}}
                });
                let params = form("Please select options", properties, &[]);
                let answered = elicit(&ctx, "user", &params).await?;
                Ok::<_, HandlerError>(format!(
                    "Elicitation completed: action={}, content={}",
                    answered.action,
                    answered.json()
                ))
            },
        );
}

/// Returns the URIs of the client's roots, one per line.
async fn roots(ctx: &Context) -> Result<String, HandlerError> {
    let answer = request_input(ctx, InputRequestMethod::ListRoots, "roots", None).await?;
    let roots = answer["roots"].as_array().into_iter().flatten();
    let uris: Vec<&str> = roots.filter_map(|root| root["uri"].as_str()).collect();
    Ok(match uris.is_empty() {
        true => "none".to_owned(),
        false => uris.join("\n"),
    })
}

/// Logs the client's current roots.
pub(crate) async fn tell_roots(ctx: Context) {
    if let Ok(uris) = roots(&ctx).await {
        ctx.log(LoggingLevel::Info, Some("roots"), uris);
    }
}
