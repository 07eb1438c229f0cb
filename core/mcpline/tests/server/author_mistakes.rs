//! Mistakes of server authors are rejected where they are made: definitions when they are added, input requests when
//! they are sent or returned, results when they are returned.

use std::sync::{Arc, Mutex};

use crate::support::log::Log;
use crate::support::{Client as RawClient, Nothing};
use mcpline::client::{Client, ClientError, RequestOptions};
use mcpline::protocol::session::InputRequestError;
use mcpline::protocol::vocabulary::{
    Annotations, ElicitMode, ElicitParams, FormSchema, JsonObject, Prompt, PromptMessage, Resource,
    ResourceContents, ResourceTemplate, Role, TextContent, Tool, ToolExecution,
};
use mcpline::protocol::{ErrorCode, Raw, RpcError};
use mcpline::server::{
    KeyedInputRequest, PromptReply, ResourceOptions, ResourceReply, ToolOptions,
};
use mcpline::{
    Context, Error, ErrorKind, HandlerError, InputRequest, InputRequestMethod, InputRequired,
    Reply, Server, Settings, ToolReply,
};
use serde_json::{Value, json};

fn raw(value: &Value) -> Raw {
    Raw::from_serialize(value).expect("JSON")
}

fn meta(key: &str) -> JsonObject {
    [(key.to_owned(), json!(1))].into_iter().collect()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn add_tool(server: &Server, tool: Tool) -> Result<(), Error> {
    server.add_tool_fn(
        tool,
        ToolOptions::default(),
        |_: Nothing, _: Context| async { "" },
    )
}

/// A handler that is never called.
fn never() -> Arc<dyn mcpline::Handler> {
    struct Never;
    impl mcpline::Handler for Never {
        fn call(&self, _: mcpline::server::Call) {
            panic!("a handler was called that must not be")
        }
    }
    Arc::new(Never)
}

fn refused(outcome: Result<(), Error>, expected: &str) {
    let error = outcome.expect_err(expected).to_string();
    assert!(error.contains(expected), "{expected}: {error}");
}

#[test]
fn rejects_limits_that_would_refuse_every_message() {
    let built = |change: fn(&mut Settings)| {
        let mut settings = Settings::default();
        change(&mut settings);
        let built = Server::builder("authors", "1").settings(settings).build();
        built.map(|_| ())
    };
    for (change, name) in [
        (
            (|settings| settings.wire.max_line_bytes = 0) as fn(&mut Settings),
            "max_line_bytes",
        ),
        (
            |settings| settings.wire.max_json_depth = 0,
            "max_json_depth",
        ),
    ] {
        let outcome = built(change);
        let kind = outcome.as_ref().map_err(Error::kind);
        assert_eq!(kind, Err(ErrorKind::Usage), "{name}");
        refused(outcome, &format!("`{name}` must be more than zero"));
    }
    // Batches may be turned off.
    built(|settings| settings.wire.max_batch_messages = 0).expect("valid settings");
}

#[test]
fn rejects_resources_with_duplicate_or_invalid_uris() {
    let server = Server::new("authors", "1");
    let add = |uri: &str| server.add_resource(Resource::new(uri, "r"), never());
    for uri in [
        "memo:1",
        "test://a",
        "file:///a%20b",
        "urn:isbn:1",
        "db+x://[::1]/y",
    ] {
        add(uri).expect(uri);
    }
    refused(add("memo:1"), "there is a resource at memo:1 already");
    refused(add(""), "must not be empty");
    refused(add("notes"), "scheme");
    refused(add("/etc/hosts"), "scheme");
    refused(add("my_app://x"), "'_'");
    refused(add("app://x/y z"), "' ' at byte 9");
    refused(add("app://caf\u{e9}"), "at byte 9");
}

#[test]
fn rejects_templates_without_a_uri_scheme() {
    let server = Server::new("authors", "1");
    let add = |uri: &str| server.add_resource_template(ResourceTemplate::new(uri, "t"), never());
    for template in ["memo:{id}", "{+uri}", "test://x/{id}"] {
        add(template).expect(template);
    }
    refused(add("notes/{id}"), "scheme");
    refused(add("my_app://{id}"), "'_'");
    refused(add("memo:{id}"), "already");
}

#[test]
fn rejects_invalid_annotations_of_resources() {
    let server = Server::new("authors", "1");
    let given = |annotations: Annotations| {
        let resource = Resource::new("test://a", "r").with_annotations(annotations.clone());
        let outcome = server.add_resource(resource, never());
        server.remove_resource("test://a");
        let template = ResourceTemplate::new("test://{a}", "t").with_annotations(annotations);
        let other = server.add_resource_template(template, never());
        server.remove_resource_template("test://{a}");
        assert_eq!(outcome.is_ok(), other.is_ok());
        outcome
    };
    let fine = Annotations::default()
        .with_audience(vec![Role::User])
        .with_priority(1.0)
        .with_last_modified("2025-01-12T15:00:58Z");
    given(fine).expect("annotations");
    let none = Annotations::default;
    refused(given(none().with_priority(1.5)), "annotations.priority");
    refused(
        given(none().with_priority(f64::NAN)),
        "annotations.priority",
    );
    refused(
        given(none().with_audience(vec![Role::from("model")])),
        "annotations.audience",
    );
    refused(
        given(none().with_last_modified("yesterday")),
        "annotations.lastModified",
    );
}

#[test]
fn rejects_reserved_meta_keys_in_definitions() {
    let server = Server::new("authors", "1");
    let tool = |key| {
        let tool = Tool::new("tool", json!({"type": "object"})).with_meta(meta(key));
        let outcome = add_tool(&server, tool);
        server.remove_tool("tool");
        outcome
    };
    let others = |key| {
        let resource = Resource::new("test://a", "r").with_meta(meta(key));
        let template = ResourceTemplate::new("test://{a}", "t").with_meta(meta(key));
        let prompt = Prompt::new("prompt").with_meta(meta(key));
        [
            server.add_resource(resource, never()),
            server.add_resource_template(template, never()),
            server.add_prompt(prompt, never()),
        ]
    };
    for key in ["a", "example.com/a", "openai/toolInvocation/invoking"] {
        tool(key).expect(key);
    }
    for outcome in others("io.modelcontextprotocol/ui") {
        outcome.expect("a key of an official extension");
    }
    for key in ["dev.mcp/a", "org.modelcontextprotocol.api/a"] {
        refused(tool(key), "reserved");
        for outcome in others(key) {
            refused(outcome, "reserved");
        }
    }
}

#[test]
fn accepts_malformed_meta_keys_with_a_warning() {
    for key in ["_fastmcp", "a b", ".com/a", "1com/a", "com.example/-a"] {
        let log = Log::new(tracing::Level::WARN);
        let _guard = tracing::subscriber::set_default(log.clone());
        let server = Server::new("authors", "1");
        let tool = Tool::new("t", json!({"type": "object"})).with_meta(meta(key));
        add_tool(&server, tool).expect(key);
        let resource = Resource::new("test://a", "r").with_meta(meta(key));
        server.add_resource(resource, never()).expect(key);
        let template = ResourceTemplate::new("test://{a}", "t").with_meta(meta(key));
        let outcome = server.add_resource_template(template, never());
        outcome.expect(key);
        let prompt = Prompt::new("p").with_meta(meta(key));
        server.add_prompt(prompt, never()).expect(key);
        for place in [
            "tool \"t\"",
            "resource \"test://a\"",
            "resource template \"test://{a}\"",
            "prompt \"p\"",
        ] {
            let warning = format!("{place}: the key {key:?} of `_meta` is malformed");
            assert!(log.has(&warning), "{warning}: {:?}", log.lines());
        }
    }
}

#[test]
fn rejects_a_second_prompt_of_the_same_name() {
    let server = Server::new("authors", "1");
    let add = || server.add_prompt(Prompt::new("review"), never());
    add().expect("the first");
    refused(add(), "there is a prompt named review already");
}

#[test]
fn rejects_tools_with_invalid_header_annotations() {
    let server = Server::new("authors", "1");
    let add = |properties: Value| {
        let schema = json!({"type": "object", "properties": properties});
        add_tool(&server, Tool::new("tool", schema))
    };
    let marked = |kind: &str, header: &str| json!({"type": kind, "x-mcp-header": header});
    for header in ["", "a b", "a:b", "a\nb", "\u{e9}", "a\u{7f}"] {
        refused(add(json!({"a": marked("string", header)})), "x-mcp-header");
    }
    for kind in ["number", "object", "array", "null"] {
        refused(add(json!({"a": marked(kind, "A")})), "x-mcp-header");
    }
    refused(
        add(json!({"a": marked("string", "Same"), "b": marked("string", "sAME")})),
        "x-mcp-header",
    );
    refused(
        add(json!({"a": {"type": "array", "items": marked("string", "A")}})),
        "x-mcp-header",
    );
    refused(
        add(json!({"a": {"anyOf": [marked("string", "A")]}})),
        "x-mcp-header",
    );
    let within = json!({"type": "object", "properties": {"b": marked("boolean", "B")}});
    add(json!({"a": within, "c": marked("integer", "C")})).expect("a tool");
}

#[test]
fn rejects_tools_that_require_task_support() {
    let server = Server::new("authors", "1");
    let add = |support: &str| {
        let mut tool = Tool::new(support, json!({"type": "object"}));
        tool.execution = Some(ToolExecution::default().with_task_support(support));
        add_tool(&server, tool)
    };
    refused(add("required"), "taskSupport");
    add("optional").expect("it need not be a task");
    add("forbidden").expect("it is none");
}

#[test]
fn warns_of_tool_names_that_clients_may_refuse() {
    let log = Log::new(tracing::Level::WARN);
    let _guard = tracing::subscriber::set_default(log.clone());
    let server = Server::new("authors", "1");
    let add = |name: &str| add_tool(&server, Tool::new(name, json!({"type": "object"})));
    add("get_weather.v2-x").expect("a tool");
    assert!(!log.has("clients may refuse"));
    for name in ["get,weather", "wetter/\u{fc}ber", &"x".repeat(129)] {
        let log = Log::new(tracing::Level::WARN);
        let _guard = tracing::subscriber::set_default(log.clone());
        add(name).expect("it is warned of alone");
        assert!(log.has("clients may refuse") && log.has(name), "{name}");
    }
}

/// A server whose tool `ask` sends this input request and returns the answer or the error as text.
fn requesting_server(method: InputRequestMethod, params: &Value) -> Server {
    let params = raw(params);
    Server::new("authors", "1").tool("ask", "Asks", move |_: Nothing, ctx: Context| {
        let input_request = InputRequest::new(method.clone(), Some(params.clone()));
        async move {
            match ctx.request_input(input_request).await {
                Ok(answer) => answer.to_string(),
                Err(InputRequestError::InvalidParams(reason)) => format!("invalid: {reason}"),
                Err(error) => format!("other: {error}"),
            }
        }
    })
}

/// Calls the tool `ask` and returns what the server sends: the input request, or the result.
async fn input_request_or_result(server: &Server, revision: &str, capabilities: &Value) -> Value {
    let mut client = RawClient::modern(server);
    client.capabilities = capabilities.clone();
    if revision == "2026-07-28" {
        let result = client
            .call_modern("ask", json!({}))
            .await
            .expect("a result");
        let input_requests = result["inputRequests"].as_object();
        return match input_requests.and_then(|input_requests| input_requests.values().next()) {
            Some(input_request) => input_request.clone(),
            None => result,
        };
    }
    let mut client = client.shake_hands(revision).await;
    client.begin("tools/call", json!({"name": "ask"}));
    let message = client.next().await;
    match message.get("method") {
        Some(_) => json!({"method": message["method"], "params": message["params"]}),
        None => message["result"].clone(),
    }
}

fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}})
}

fn form(fields: Value) -> Value {
    json!({"message": "?", "requestedSchema": {"type": "object", "properties": fields}})
}

fn messages(messages: Value) -> Value {
    json!({"messages": messages, "maxTokens": 1})
}

#[runtimes::test]
async fn invalid_input_requests_fail_in_the_handler_that_sends_them() {
    let said = json!({"type": "text", "text": "hi"});
    let used = json!({"role": "assistant",
        "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]});
    let given = |id: &str| json!({"role": "user", "content": [{"type": "tool_result", "toolUseId": id, "content": []}]});
    let url_elicitation = |url: &str| json!({"message": "?", "mode": "url", "url": url});
    let mut unlikely = messages(json!([{"role": "user", "content": said}]));
    unlikely["modelPreferences"] = json!({"costPriority": 2});
    let mut marked = form(json!({}));
    marked["_meta"] = json!({"dev.mcp/a": 1});
    for (method, params, place) in [
        (
            InputRequestMethod::Elicit,
            form(json!({"address": {"type": "object"}})),
            "requestedSchema.properties.address",
        ),
        (
            InputRequestMethod::Elicit,
            form(json!({"rows": {"type": "array", "items": {"type": "object"}}})),
            "requestedSchema.properties.rows",
        ),
        (
            InputRequestMethod::Elicit,
            json!({"message": "?"}),
            "requestedSchema",
        ),
        (
            InputRequestMethod::Elicit,
            url_elicitation("not a url"),
            "url",
        ),
        (
            InputRequestMethod::Elicit,
            url_elicitation("https://"),
            "url",
        ),
        (InputRequestMethod::Elicit, marked, "the key \"dev.mcp/a\""),
        (
            InputRequestMethod::Sample,
            unlikely,
            "modelPreferences.costPriority",
        ),
        (
            InputRequestMethod::Sample,
            messages(json!([{"role": "system", "content": said}])),
            "messages[0]",
        ),
        (
            InputRequestMethod::Sample,
            messages(json!([used, given("b")])),
            "messages[1]",
        ),
        (
            InputRequestMethod::Sample,
            messages(json!([given("a")])),
            "messages[0]",
        ),
    ] {
        let server = requesting_server(method.clone(), &params);
        for revision in ["2025-11-25", "2026-07-28"] {
            let result = input_request_or_result(&server, revision, &everything()).await;
            let expected = format!("invalid: {}: {place}", method.as_str());
            assert!(
                text(&result).starts_with(&expected),
                "{revision} {params}: {result}"
            );
        }
        // The author gets the error even if the client does not support the request.
        let result = input_request_or_result(&server, "2025-06-18", &json!({})).await;
        assert!(text(&result).starts_with("invalid: "), "{result}");
    }
    let server = requesting_server(
        InputRequestMethod::Sample,
        &messages(json!([used, given("a")])),
    );
    for revision in ["2025-11-25", "2026-07-28"] {
        let input_request = input_request_or_result(&server, revision, &everything()).await;
        assert_eq!(
            input_request["method"], "sampling/createMessage",
            "{revision}"
        );
    }
}

#[runtimes::test]
async fn adds_the_string_type_to_choices_of_a_form() {
    let choices = json!({
        "unit": {"enum": ["C", "F"], "title": "Unit"},
        "kind": {"const": "celsius"},
        "scale": {"oneOf": [{"const": "c", "title": "C"}]},
    });
    let several = json!({"units": {"type": "array", "items": {"enum": ["C", "F"]}}});
    let sent_fields = async |fields: &Value, revision| {
        let server = requesting_server(InputRequestMethod::Elicit, &form(fields.clone()));
        let input_request = input_request_or_result(&server, revision, &everything()).await;
        input_request["params"]["requestedSchema"]["properties"].clone()
    };
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let fields = sent_fields(&choices, revision).await;
        for name in ["unit", "kind", "scale"] {
            assert_eq!(fields[name]["type"], "string", "{revision}: {fields}");
        }
        assert_eq!(fields["unit"]["enum"], json!(["C", "F"]));
        assert_eq!(fields["unit"]["title"], "Unit");
    }
    for revision in ["2025-11-25", "2026-07-28"] {
        let fields = sent_fields(&several, revision).await;
        assert_eq!(fields["units"]["items"]["type"], "string", "{revision}");
    }
}

#[runtimes::test]
async fn sends_include_context_only_to_clients_that_declare_it() {
    let params = |context: &str| {
        let mut params =
            messages(json!([{"role": "user", "content": {"type": "text", "text": "hi"}}]));
        params["includeContext"] = context.into();
        params
    };
    let without = json!({"sampling": {}});
    for context in ["thisServer", "allServers"] {
        let server = requesting_server(InputRequestMethod::Sample, &params(context));
        for revision in ["2025-11-25", "2026-07-28"] {
            let input_request = input_request_or_result(&server, revision, &everything()).await;
            assert_eq!(
                input_request["params"]["includeContext"], context,
                "{revision}"
            );
            let input_request = input_request_or_result(&server, revision, &without).await;
            assert_eq!(input_request["params"]["maxTokens"], 1, "{revision}");
            assert_eq!(
                input_request["params"].get("includeContext"),
                None,
                "{revision}"
            );
        }
        // Before 2025-11-25, clients could not declare this.
        let input_request = input_request_or_result(&server, "2025-06-18", &without).await;
        assert_eq!(input_request["params"]["includeContext"], context);
    }
    let server = requesting_server(InputRequestMethod::Sample, &params("none"));
    let input_request = input_request_or_result(&server, "2026-07-28", &without).await;
    assert_eq!(input_request["params"]["includeContext"], "none");
}

#[tokio::test]
async fn warns_of_elicitation_urls_that_are_neither_https_nor_local() {
    for (url, is_warned_of) in [
        ("https://example.com/a", false),
        ("http://localhost:8000/a", false),
        ("http://127.0.0.1/a", false),
        ("http://example.com/a", true),
        ("app:login", true),
    ] {
        let log = Log::new(tracing::Level::WARN);
        let _guard = tracing::subscriber::set_default(log.clone());
        let params = json!({"message": "?", "mode": "url", "url": url});
        let input_request = input_request_or_result(
            &requesting_server(InputRequestMethod::Elicit, &params),
            "2025-11-25",
            &everything(),
        )
        .await;
        assert_eq!(input_request["params"]["url"], url);
        assert_eq!(log.has("not https"), is_warned_of, "{url}");
    }
}

#[tokio::test]
async fn warns_once_of_an_insecure_elicitation_url_without_its_secrets() {
    let url = "http://user:secret@example.com/secret?token=secret#secret";
    let url_elicitation = || ElicitParams::url("Go", url);
    let foreign = RpcError::new(ErrorCode::URL_ELICITATION_REQUIRED, "visit first")
        .with_data(&json!({"elicitations": [url_elicitation()]}));
    for revision in REVISIONS {
        for error in [
            HandlerError::UrlElicitationRequired(vec![url_elicitation()]),
            foreign.clone().into(),
        ] {
            let log = Log::new(tracing::Level::WARN);
            let _guard = tracing::subscriber::set_default(log.clone());
            drop(call_failing_tool(error, revision).await);
            let lines = log.lines();
            let warnings = lines.iter().filter(|line| line.contains("not https"));
            assert_eq!(warnings.count(), 1, "{revision}: {lines:?}");
            assert!(log.has("example.com") && !log.has("secret"), "{lines:?}");
        }
    }
}

/// A server whose tool and prompt, both named `ask`, return these input requests.
fn returning_server(requests: Vec<KeyedInputRequest>) -> Server {
    let input_required = InputRequired {
        requests,
        state: None,
    };
    let returned = input_required.clone();
    Server::new("authors", "1")
        .tool("ask", "Asks", move |_: Nothing, _: Context| {
            let input_required = returned.clone();
            async move { input_required }
        })
        .prompt(Prompt::new("ask"), move |_: Nothing, _: Context| {
            let input_required = input_required.clone();
            async move { input_required }
        })
}

fn input_request(key: &str, fields: Value) -> KeyedInputRequest {
    KeyedInputRequest {
        key: key.to_owned(),
        method: InputRequestMethod::Elicit,
        params: Some(raw(&form(fields))),
    }
}

#[tokio::test]
async fn invalid_returned_input_requests_are_a_handler_failure() {
    let nested = json!({"address": {"type": "object"}});
    for (requests, expected) in [
        (
            vec![
                input_request("same", json!({})),
                input_request("other", json!({})),
                input_request("same", json!({})),
            ],
            "the key \\\"same\\\"",
        ),
        (
            vec![input_request("a", json!({})), input_request("b", nested)],
            "requestedSchema.properties.address",
        ),
    ] {
        let server = returning_server(requests);
        for revision in ["2025-11-25", "2026-07-28"] {
            let log = Log::new(tracing::Level::ERROR);
            let _guard = tracing::subscriber::set_default(log.clone());
            let result = input_request_or_result(&server, revision, &everything()).await;
            assert_eq!(result["isError"], true, "{revision}");
            assert!(!result.to_string().contains("address"), "{result}");
            assert!(log.has(expected), "{revision}: {expected}");
        }
        let mut client = RawClient::modern(&server);
        let id = client.begin_modern("prompts/get", json!({"name": "ask"}));
        let error = client.response(&id).await.expect_err("a failure");
        assert_eq!(error["code"], -32603);
    }
}

/// Calls the tool `fail`, whose handler returns this error.
async fn call_failing_tool(error: HandlerError, revision: &str) -> Result<Value, Value> {
    let server =
        Server::new("authors", "1").tool("fail", "Fails", move |_: Nothing, _: Context| {
            let error = error.clone();
            async move { Err::<String, _>(error) }
        });
    if revision == "2026-07-28" {
        return RawClient::modern(&server)
            .call_modern("fail", json!({}))
            .await;
    }
    let mut client = RawClient::legacy(&server, revision).await;
    let id = client.begin("tools/call", json!({"name": "fail"}));
    client.response(&id).await
}

const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

#[tokio::test]
async fn replaces_reserved_error_codes_of_handlers() {
    for code in [-32_023, -32_042, -32_050, -32_099] {
        let log = Log::new(tracing::Level::ERROR);
        let _guard = tracing::subscriber::set_default(log.clone());
        let data = json!({"elicitations": []});
        for revision in REVISIONS {
            let error = RpcError::new(ErrorCode(code), "a detail").with_data(&data);
            let error = call_failing_tool(error.into(), revision)
                .await
                .expect_err("an error");
            // 2025-11-25 defines one of these codes, and 2026-07-28 reserves all of them.
            let sent = match revision {
                "2026-07-28" => -32603,
                "2025-11-25" if code == -32_042 => -32603,
                _ => code,
            };
            let expected = json!({"code": sent, "message": "a detail", "data": data});
            assert_eq!(error, expected, "{code} {revision}");
        }
        assert!(log.has("reserved for the protocol") && log.has(&code.to_string()));
    }
    for code in [-32_000, -32_020, -32_100, -31_050, 7] {
        let error = RpcError::new(ErrorCode(code), "a detail");
        let error = call_failing_tool(error.into(), "2026-07-28")
            .await
            .expect_err("an error");
        assert_eq!(error["code"], code);
    }
}

#[tokio::test]
async fn error_messages_can_not_forge_log_lines() {
    let log = Log::new(tracing::Level::ERROR);
    let _guard = tracing::subscriber::set_default(log.clone());
    // A handler may repeat text from its client.
    let error = RpcError::new(ErrorCode(-32_050), "said\n\u{1b}[2Jforged");
    let sent = call_failing_tool(error.into(), "2026-07-28").await;
    assert_eq!(sent.expect_err("an error")["code"], -32603);
    assert!(log.has("said forged"), "{:?}", log.lines());
    assert!(!log.has("\n") && !log.has("\u{1b}"), "{:?}", log.lines());
}

#[tokio::test]
async fn replaces_error_codes_that_lack_their_defined_data() {
    let sent = async |code, data: &Value, revision| {
        let mut error = RpcError::new(ErrorCode(code), "a detail");
        if !data.is_null() {
            error = error.with_data(data);
        }
        let error = call_failing_tool(error.into(), revision)
            .await
            .expect_err("an error");
        assert_eq!(error["message"], "a detail");
        assert_eq!(error.get("data").unwrap_or(&Value::Null), data);
        error["code"].as_i64().expect("a code")
    };
    for (code, defined, others) in [
        (
            -32_021,
            json!({"requiredCapabilities": {"sampling": {}}, "more": 1}),
            [
                json!(null),
                json!({}),
                json!("sampling"),
                json!({"requiredCapabilities": null}),
                json!({"requiredCapabilities": "sampling"}),
                json!({"requiredCapabilities": {"sampling": true}}),
            ],
        ),
        (
            -32_022,
            json!({"supported": ["2026-07-28"], "requested": "1900-01-01"}),
            [
                json!(null),
                json!({}),
                json!({"supported": ["2026-07-28"]}),
                json!({"requested": "1900-01-01"}),
                json!({"supported": "2026-07-28", "requested": "1900-01-01"}),
                json!({"supported": [1], "requested": 7}),
            ],
        ),
    ] {
        let log = Log::new(tracing::Level::ERROR);
        let _guard = tracing::subscriber::set_default(log.clone());
        assert_eq!(sent(code, &defined, "2026-07-28").await, code);
        assert!(log.lines().is_empty(), "{:?}", log.lines());
        for data in &others {
            assert_eq!(sent(code, data, "2026-07-28").await, -32_603, "{data}");
            assert!(log.has("without the `data`") && log.has(&code.to_string()));
            // Earlier revisions do not define these codes.
            assert_eq!(sent(code, data, "2025-11-25").await, code, "{data}");
        }
    }
}

#[runtimes::test]
async fn forwards_required_url_elicitations_of_another_server_in_each_revision() {
    let url_elicitation = json!({"mode": "url", "elicitationId": "v", "url": "https://example.com/a", "message": "Go"});
    let error = || {
        RpcError::new(ErrorCode::URL_ELICITATION_REQUIRED, "visit first")
            .with_data(&json!({"elicitations": [url_elicitation]}))
    };
    let given = call_failing_tool(error().into(), "2025-11-25")
        .await
        .expect_err("an error");
    assert_eq!(given["code"], -32042);
    assert_eq!(given["data"]["elicitations"], json!([url_elicitation]));
    let modern = call_failing_tool(error().into(), "2026-07-28")
        .await
        .expect("a result");
    assert_eq!(
        modern["inputRequests"]["v"]["params"]["url"],
        url_elicitation["url"]
    );
    let legacy = call_failing_tool(error().into(), "2025-06-18")
        .await
        .expect("a result");
    assert!(text(&legacy).contains("https://example.com/a"));
}

#[tokio::test]
async fn required_url_elicitations_have_distinct_ids_and_a_url() {
    let elicitations = vec![
        ElicitParams::url("One", "https://example.com/1"),
        ElicitParams::url("Two", "https://example.com/2"),
    ];
    let error = call_failing_tool(
        HandlerError::UrlElicitationRequired(elicitations),
        "2025-11-25",
    )
    .await;
    let error = error.expect_err("visits are required");
    let ids = [0, 1].map(|index| error["data"]["elicitations"][index]["elicitationId"].clone());
    assert!(
        ids.iter()
            .all(|id| id.as_str().is_some_and(|id| !id.is_empty())),
        "{error}"
    );
    assert_ne!(ids[0], ids[1]);

    let form = || ElicitParams::form("Name?", FormSchema::new());
    let no_url = || ElicitParams::url("Go", "nowhere");
    let mut both = ElicitParams::url("Go", "https://example.com/1");
    both.mode = Some(ElicitMode::Form);
    for invalid in [form(), no_url(), both] {
        for revision in REVISIONS {
            let log = Log::new(tracing::Level::ERROR);
            let _guard = tracing::subscriber::set_default(log.clone());
            let elicitations = vec![
                ElicitParams::url("One", "https://example.com/1"),
                invalid.clone(),
            ];
            let result =
                call_failing_tool(HandlerError::UrlElicitationRequired(elicitations), revision)
                    .await;
            assert_eq!(result.expect("a failure")["isError"], true, "{revision}");
            assert!(log.has("UrlElicitationRequired: "), "{revision}");
        }
    }
}

#[runtimes::test]
async fn reserved_meta_keys_in_a_result_are_a_handler_failure() {
    let results = [
        json!([{"type": "text", "text": "secret", "_meta": {"dev.mcp/x": 1}}]),
        json!([{"type": "text", "text": "secret", "_meta": 7}]),
    ];
    for content in results {
        let reply = ToolReply {
            content: Some(raw(&content)),
            ..ToolReply::default()
        };
        let server = Server::new("authors", "1").tool("ask", "", move |_: Nothing, _: Context| {
            let reply = reply.clone();
            async move { reply }
        });
        let result = input_request_or_result(&server, "2026-07-28", &json!({})).await;
        assert_eq!(text(&result), "Error executing tool ask");
    }
    let bad = || Some(raw(&json!({"dev.mcp/x": 1})));
    let tool = ToolReply {
        meta: bad(),
        ..ToolReply::text("secret")
    };
    let contents = raw(&json!([ResourceContents::text("test://a", "secret")]));
    let resource = ResourceReply {
        contents,
        cache: None,
        meta: bad(),
    };
    let said = PromptMessage::new(Role::User, TextContent::new("secret"));
    let prompt = PromptReply {
        messages: raw(&json!([said])),
        description: None,
        meta: bad(),
    };
    let server = Server::new("authors", "1")
        .tool("ask", "", move |_: Nothing, _: Context| {
            let reply = tool.clone();
            async move { reply }
        })
        .resource(Resource::new("test://a", "a"), move |_: Context| {
            let reply = Reply::Resource(resource.clone());
            async move { reply }
        })
        .prompt(Prompt::new("say"), move |_: Nothing, _: Context| {
            let reply = Reply::Prompt(prompt.clone());
            async move { reply }
        });
    let result = input_request_or_result(&server, "2025-11-25", &json!({})).await;
    assert_eq!(text(&result), "Error executing tool ask");
    let mut client = RawClient::modern(&server);
    for (method, params) in [
        ("resources/read", json!({"uri": "test://a"})),
        ("prompts/get", json!({"name": "say"})),
    ] {
        let id = client.begin_modern(method, params);
        let error = client.response(&id).await.expect_err(method);
        assert_eq!(error["code"], -32603, "{method}");
    }
}

#[tokio::test]
async fn sends_results_with_malformed_meta_or_annotations_with_one_warning() {
    for (member, odd, expected) in [
        ("_meta", json!({"_fastmcp": {"tags": []}}), "_fastmcp"),
        (
            "annotations",
            json!({"lastModified": "2025-01-12 15:00:58"}),
            "annotations.lastModified",
        ),
        ("annotations", json!({"audience": "user"}), "annotations: "),
        (
            "annotations",
            json!({"audience": ["model"]}),
            "annotations.audience",
        ),
        (
            "annotations",
            json!({"priority": 7}),
            "annotations.priority",
        ),
    ] {
        let mut block = json!({"type": "text", "text": "done"});
        block[member] = odd;
        // Two such blocks: one warning for the call.
        let content = json!([block, block]);
        let reply = ToolReply {
            content: Some(raw(&content)),
            meta: (member == "_meta").then(|| raw(&json!({"a b": 1}))),
            ..ToolReply::default()
        };
        let server = Server::new("authors", "1").tool("ask", "", move |_: Nothing, _: Context| {
            let reply = reply.clone();
            async move { reply }
        });
        // `RawClient` validates against the schema and would reject this result.
        let client = Client::builder("host", "1").connect(server).await;
        let client = client.expect("connects");
        let log = Log::new(tracing::Level::WARN);
        let _guard = tracing::subscriber::set_default(log.clone());
        let call = raw(&json!({"name": "ask", "arguments": {}}));
        let options = RequestOptions::new();
        let result = client.request("tools/call", Some(&call), &options).await;
        let result: Value = result.expect("a result").decode().expect("JSON");
        assert_eq!(result["content"], content);
        assert_ne!(result["isError"], true);
        let lines = log.lines();
        let warnings = lines.iter().filter(|line| line.contains("sent unchanged"));
        assert_eq!(warnings.count(), 1, "{lines:?}");
        assert!(log.has(expected), "{expected}: {lines:?}");
        client.close().await;
    }
}

#[runtimes::test]
async fn rejects_sampling_results_with_an_unknown_role() {
    let params = messages(json!([{"role": "user", "content": {"type": "text", "text": "hi"}}]));
    let server = requesting_server(InputRequestMethod::Sample, &params);
    for (role, expected) in [
        ("assistant", "{"),
        (
            "system",
            "other: invalid response from client to `sampling/createMessage`: role",
        ),
    ] {
        let mut client = RawClient::legacy(&server, "2025-11-25").await;
        let id = client.begin("tools/call", json!({"name": "ask"}));
        let input_request = client.next().await;
        let answer =
            json!({"role": role, "model": "m", "content": {"type": "text", "text": "yes"}});
        client.send(json!({"jsonrpc": "2.0", "id": input_request["id"], "result": answer}));
        let result = client.response(&id).await.expect("a result");
        assert!(text(&result).starts_with(expected), "{role}: {result}");
    }
}

#[runtimes::test]
async fn rejects_prompt_arguments_that_are_not_strings() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let server = Server::new("authors", "1").prompt(
        Prompt::new("review"),
        move |arguments: Value, _: Context| {
            sink.lock().expect("not poisoned").push(arguments);
            async { "done" }
        },
    );
    let mut client = RawClient::modern(&server);
    for given in [json!(7), json!(true), json!({}), json!(["a"])] {
        let params = json!({"name": "review", "arguments": {"fine": "a", "code": given}});
        let id = client.begin_modern("prompts/get", params);
        let error = client.response(&id).await.expect_err("no text");
        assert_eq!(error["code"], -32602);
        assert!(error.to_string().contains("code"), "{error}");
    }
    assert!(seen.lock().expect("not poisoned").is_empty());
    let params = json!({"name": "review", "arguments": {"code": null, "fine": "a"}});
    let id = client.begin_modern("prompts/get", params);
    client.response(&id).await.expect("null is absent");
    assert_eq!(*seen.lock().expect("not poisoned"), [json!({"fine": "a"})]);
}

/// Returns the variables.
fn variables() -> Arc<dyn mcpline::Handler> {
    struct Variables;
    impl mcpline::Handler for Variables {
        fn call(&self, call: mcpline::server::Call) {
            let text = call.arguments().as_str().to_owned();
            let contents = raw(&json!([{"uri": call.name(), "text": text}]));
            call.reply(Ok(Reply::Resource(ResourceReply {
                contents,
                cache: None,
                meta: None,
            })));
        }
    }
    Arc::new(Variables)
}

#[runtimes::test]
async fn rejects_unsafe_paths_in_variables() {
    let server = Server::new("authors", "1");
    for (template, unchecked) in [
        ("file:///docs/{name}", vec![]),
        ("note://{name}", vec![]),
        ("git://{branch}/{name}", vec!["branch"]),
    ] {
        let options = ResourceOptions::default().with_unchecked_variables(unchecked);
        let template = ResourceTemplate::new(template, "t");
        let added = server.add_resource_template_with(template, options, variables());
        added.expect("a template");
    }
    let mut client = RawClient::modern(&server);
    for uri in [
        "file:///docs/..%2F..%2Fetc%2Fpasswd",
        "file:///docs/..",
        "file:///docs/%2e%2e",
        "file:///docs/%252e%252e%252fetc",
        "file:///docs/..%5Cx",
        "file:///docs/%2Fetc%2Fpasswd",
        "note://..%2F..%2Fetc%2Fpasswd",
        "note://%2Fetc%2Fpasswd",
        "note://a%00.txt",
        "git://main/..",
    ] {
        let id = client.begin_modern("resources/read", json!({"uri": uri}));
        let error = client.response(&id).await.expect_err(uri);
        assert_eq!(error["code"], -32602, "{uri}");
    }
    for (uri, variables) in [
        ("file:///docs/a..b%20c", r#"{"name":"a..b c"}"#),
        ("git://..%2Fx/y", r#"{"branch":"../x","name":"y"}"#),
    ] {
        let id = client.begin_modern("resources/read", json!({"uri": uri}));
        let result = client.response(&id).await.expect(uri);
        assert_eq!(result["contents"][0]["text"], variables);
    }
}

#[test]
fn rejects_exceptions_for_variables_that_a_template_lacks() {
    let server = Server::new("authors", "1");
    let options = || ResourceOptions::default().with_unchecked_variables(["naem"]);
    let template = ResourceTemplate::new("note://{name}", "notes");
    let outcome = server.add_resource_template_with(template, options(), never());
    refused(outcome, "unchecked_variables names \"naem\"");
    let resource = Resource::new("note://a", "a");
    refused(
        server.add_resource_with(resource, options(), never()),
        "unchecked_variables",
    );
}

#[runtimes::test]
async fn rejects_reserved_meta_keys_of_a_host() {
    let server =
        Server::new("authors", "1").tool("echo", "", |_: Nothing, ctx: Context| async move {
            ctx.meta().map_or_else(String::new, |meta| meta.to_string())
        });
    let client = Client::builder("host", "1");
    let client = client.connect(server).await.expect("connects");
    let call = raw(&json!({"name": "echo", "arguments": {}}));
    for (key, is_fine) in [
        ("example.com/a", true),
        ("bad key", true),
        ("dev.mcp/a", false),
    ] {
        let mut options = RequestOptions::new();
        options.meta = Some(raw(&json!({ key: 1 })));
        let outcome = client.request("tools/call", Some(&call), &options).await;
        let params = raw(&json!({"_meta": {key: 1}}));
        let notified = client.notify("notifications/x", Some(&params)).await;
        assert_eq!(notified.is_ok(), is_fine, "{key}");
        match outcome {
            Ok(result) => assert!(is_fine && result.as_str().contains(key), "{result}"),
            Err(ClientError::Usage(reason)) => {
                assert!(!is_fine && reason.contains(key), "{reason}")
            }
            Err(error) => panic!("{key}: {error}"),
        }
    }
    client.close().await;
}
