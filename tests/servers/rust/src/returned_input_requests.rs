//! Tools and a prompt that return their input requests and are called again with the answers.

use mcpline::protocol::session::RequiredCapability;
use mcpline::protocol::vocabulary::{ElicitResult, Prompt, PromptMessage, Role, TextContent};
use mcpline::server::KeyedInputRequest;
use mcpline::{Context, Error, InputRequestMethod, InputRequired, Reply, Server, ToolReply};
use serde_json::{Value, json};

use crate::content::Nothing;
use crate::input_requests::{form, raw, sampled_text, sampling};

/// Builds a result with input requests.
pub(crate) struct InputRequests(InputRequired);

impl InputRequests {
    pub(crate) fn new() -> Self {
        Self(InputRequired {
            requests: Vec::new(),
            state: None,
        })
    }

    fn with(mut self, key: &str, method: InputRequestMethod, params: Option<&Value>) -> Self {
        self.0.requests.push(KeyedInputRequest {
            key: key.into(),
            method,
            params: params.and_then(raw),
        });
        self
    }

    pub(crate) fn elicit(self, key: &str, message: &str, name: &str, kind: &str) -> Self {
        let params = form(message, json!({ name: { "type": kind } }), &[name]);
        self.with(key, InputRequestMethod::Elicit, Some(&params))
    }

    fn sample(self, key: &str, text: &str, max_tokens: u32) -> Self {
        self.with(
            key,
            InputRequestMethod::Sample,
            Some(&sampling(text, max_tokens)),
        )
    }

    fn roots(self, key: &str) -> Self {
        self.with(key, InputRequestMethod::ListRoots, None)
    }

    fn state(mut self, state: impl Into<String>) -> Self {
        self.0.state = Some(state.into());
        self
    }

    fn reply(self) -> Reply {
        Reply::InputRequired(self.0)
    }
}

impl From<InputRequests> for InputRequired {
    fn from(requests: InputRequests) -> Self {
        requests.0
    }
}

fn user_name(requests: InputRequests) -> InputRequests {
    requests.elicit("user_name", "What is your name?", "name", "string")
}

/// Returns the client's answer with this key.
fn answer(ctx: &Context, key: &str) -> Option<Value> {
    ctx.input_responses()?.member(key)?.decode().ok()
}

/// Returns a member of an accepted form.
fn accepted(ctx: &Context, key: &str, name: &str) -> Option<Value> {
    let answer: ElicitResult = serde_json::from_value(answer(ctx, key)?).ok()?;
    answer.content?.get(name).cloned()
}

/// The same for a string.
pub(crate) fn accepted_text(ctx: &Context, key: &str, name: &str) -> Option<String> {
    Some(accepted(ctx, key, name)?.as_str()?.to_owned())
}

fn text(text: impl AsRef<str>) -> Reply {
    Reply::Tool(ToolReply::text(text.as_ref()))
}

/// Adds these tools.
pub(crate) fn add(server: &Server) -> Result<(), Error> {
    let server = server.clone();
    let tool = |server: Server, name: &str, run: fn(&Context) -> Reply| {
        let full = format!("test_input_required_result_{name}");
        server.tool(
            &full,
            "Returns its questions",
            move |_: Nothing, ctx: Context| async move { run(&ctx) },
        )
    };
    let server = tool(server, "elicitation", |ctx| {
        match accepted_text(ctx, "user_name", "name") {
            Some(name) => text(format!("Hello, {name}!")),
            None => user_name(InputRequests::new()).reply(),
        }
    });
    let server = tool(server, "sampling", |ctx| {
        match answer(ctx, "capital_question") {
            Some(answer) => text(format!("Model said: {}", sampled_text(&answer))),
            None => InputRequests::new()
                .sample("capital_question", "What is the capital of France?", 100)
                .reply(),
        }
    });
    let server = tool(server, "list_roots", |ctx| {
        match answer(ctx, "client_roots").and_then(|answer| Some(answer["roots"].as_array()?.len()))
        {
            Some(count) => text(format!("Client exposed {count} root(s).")),
            None => InputRequests::new().roots("client_roots").reply(),
        }
    });
    let server = tool(server, "request_state", |ctx| {
        let confirmed = accepted(ctx, "confirm", "ok").is_some();
        if confirmed && ctx.request_state().as_deref() == Some("request-state-nonce") {
            return text("state-ok: confirmation received");
        }
        InputRequests::new()
            .elicit("confirm", "Please confirm", "ok", "boolean")
            .state("request-state-nonce")
            .reply()
    });
    let server = tool(server, "multiple_inputs", |ctx| {
        let answered = accepted_text(ctx, "user_name", "name").is_some()
            && answer(ctx, "greeting").is_some()
            && answer(ctx, "client_roots").is_some();
        if answered {
            return text("All inputs received.");
        }
        user_name(InputRequests::new())
            .sample("greeting", "Generate a greeting", 50)
            .roots("client_roots")
            .state("multiple-inputs")
            .reply()
    });
    let server = tool(server, "multi_round", |ctx| {
        let state = ctx.request_state().unwrap_or_default();
        let second = |name: &str| {
            InputRequests::new()
                .elicit(
                    "step2",
                    "Step 2: What is your favorite color?",
                    "color",
                    "string",
                )
                .state(format!("round-2:{name}"))
                .reply()
        };
        if let Some(name) = state.strip_prefix("round-2:") {
            return match accepted_text(ctx, "step2", "color") {
                Some(color) => text(format!("{name} likes {color}.")),
                None => second(name),
            };
        }
        match accepted_text(ctx, "step1", "name") {
            Some(name) => second(&name),
            None => InputRequests::new()
                .elicit("step1", "Step 1: What is your name?", "name", "string")
                .state("round-1")
                .reply(),
        }
    });
    let server = tool(server, "tampered_state", |ctx| {
        match (accepted(ctx, "confirm", "ok"), ctx.request_state()) {
            (Some(_), Some(state)) => text(format!("state-ok: {state}")),
            _ => InputRequests::new()
                .elicit("confirm", "Please confirm", "ok", "boolean")
                .state("round-1")
                .reply(),
        }
    });
    let _ = tool(server, "capabilities", |ctx| {
        let mut requests = InputRequests::new().state("capability-gated");
        let mut keys = Vec::new();
        if ctx.peer().accepts(RequiredCapability::ElicitForm) {
            requests = requests.elicit("ask", "What is your name?", "name", "string");
            keys.push("ask");
        }
        if ctx.peer().accepts(RequiredCapability::Sampling) {
            requests = requests.sample("sample", "Say hello", 50);
            keys.push("sample");
        }
        if ctx.request_state().is_some() && keys.iter().all(|key| answer(ctx, key).is_some()) {
            return text(format!("capabilities respected: {}", keys.join(",")));
        }
        requests.reply()
    });
    Ok(())
}

/// Adds the prompt that returns its input request.
pub(crate) fn add_prompt(server: &Server) {
    let prompt =
        Prompt::new("test_input_required_result_prompt").with_description("Returns its question");
    let _ = server
        .clone()
        .prompt(prompt, |_: Nothing, ctx: Context| async move {
            match accepted_text(&ctx, "user_context", "context") {
                Some(context) => Ok(vec![PromptMessage::new(
                    Role::User,
                    TextContent::new(format!("Use this context: {context}")),
                )]),
                None => {
                    let requests = InputRequests::new().elicit(
                        "user_context",
                        "What context should the prompt use?",
                        "context",
                        "string",
                    );
                    Err(mcpline::HandlerError::InputRequired(requests.0))
                }
            }
        });
}
