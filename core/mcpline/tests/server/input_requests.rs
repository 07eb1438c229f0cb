//! Input requests of running handlers, in every revision: suspension, resumption, replay in another process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{self, Client, Nothing};
use mcpline::protocol::Raw;
use mcpline::protocol::mrtr::KeyRing;
use mcpline::protocol::session::InputRequestError;
use mcpline::protocol::vocabulary::{
    CacheHints, CacheScope, Prompt, PromptArgument, Resource, Tool,
};
use mcpline::server::{Call, Completer, CompletionReply, Handler, KeyedInputRequest, ToolOptions};
use mcpline::{
    Context, HandlerError, InputRequest, InputRequestMethod, InputRequired, Reply, Server,
    Settings, ToolReply,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.state_keys = Some(KeyRing::new([[7_u8; 32]]).expect("long enough"));
    settings
}

fn form(message: &str, name: &str) -> Option<Raw> {
    Raw::from_serialize(&json!({"message": message, "requestedSchema": {
        "type": "object", "properties": { name: {"type": "string"} }, "required": [name]}}))
    .ok()
}

/// A tool that asks for a name and then for a colour, and counts how often it was started.
fn two_requests(runs: &Arc<AtomicU32>, options: ToolOptions) -> Server {
    two_requests_with(runs, options, settings())
}

fn two_requests_with(runs: &Arc<AtomicU32>, options: ToolOptions, settings: Settings) -> Server {
    let server = Server::builder("asker", "1")
        .settings(settings)
        .build()
        .expect("builds");
    let runs = runs.clone();
    let tool = Tool::new("ask", json!({"type": "object"}));
    server
        .add_tool_fn(tool, options, move |_: Value, ctx: Context| {
            runs.fetch_add(1, Ordering::SeqCst);
            async move {
                let text = |answer: Raw, name: &str| {
                    answer
                        .member("content")
                        .and_then(|content| content.member(name))
                        .map_or_else(
                            || "nothing".to_owned(),
                            |value| value.string_value().unwrap_or_default().into_owned(),
                        )
                };
                let name = ctx
                    .request_input(InputRequest::new(
                        InputRequestMethod::Elicit,
                        form("Name?", "name"),
                    ))
                    .await?;
                let name = text(name, "name");
                let params = form(&format!("Colour, {name}?"), "colour");
                let colour = ctx
                    .request_input(
                        InputRequest::new(InputRequestMethod::Elicit, params).with_key("colour"),
                    )
                    .await?;
                Ok::<_, HandlerError>(format!("{name} likes {}", text(colour, "colour")))
            }
        })
        .expect("the name is free");
    server
}

fn accept(name: &str, value: &str) -> Value {
    json!({"action": "accept", "content": { name: value }})
}

/// Runs one round: calls the tool, and returns the keys of the input requests and the request state.
async fn ask_round(client: &mut Client, extra: Value) -> (Vec<String>, Value) {
    let result = client.call_modern("ask", extra).await.expect("a result");
    assert_eq!(result["resultType"], "input_required", "{result}");
    let keys = result["inputRequests"]
        .as_object()
        .expect("questions")
        .keys()
        .cloned()
        .collect();
    (keys, result["requestState"].clone())
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"))
}

#[runtimes::test]
async fn resumes_a_suspended_handler_where_it_stopped() {
    let runs = Arc::new(AtomicU32::new(0));
    let server = two_requests(&runs, ToolOptions::default());
    let mut client = Client::modern(&server);
    let (keys, first) = ask_round(&mut client, json!({})).await;
    assert_eq!(keys, ["ask-1"]);
    let (keys, second) = ask_round(
        &mut client,
        json!({"requestState": first, "inputResponses": {"ask-1": accept("name", "Ada")}}),
    )
    .await;
    assert_eq!(keys, ["colour"]);
    assert_ne!(first, second);
    let result = client
        .call_modern(
            "ask",
            json!({"requestState": second, "inputResponses": {"colour": accept("colour", "red")}}),
        )
        .await
        .expect("a result");
    assert_eq!(text(&result), "Ada likes red");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// A tool that samples in an endless loop until sampling fails.
fn samples_for_ever(change: impl FnOnce(&mut Settings)) -> Server {
    let mut settings = settings();
    change(&mut settings);
    let server = Server::builder("asker", "1").settings(settings);
    server.build().expect("builds").tool(
        "ask",
        "Samples for ever",
        |_: Nothing, ctx: Context| async move {
            let params = json!({"messages": [], "maxTokens": 1});
            let mut answers = 0;
            loop {
                let params = Raw::from_serialize(&params).ok();
                match ctx
                    .request_input(InputRequest::new(InputRequestMethod::Sample, params))
                    .await
                {
                    Ok(_) => answers += 1,
                    Err(error) => break format!("after {answers}: {error}"),
                }
            }
        },
    )
}

fn sampled() -> Value {
    json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "on and on"}})
}

#[runtimes::test]
async fn an_endless_loop_of_input_requests_ends_at_the_round_limit() {
    let server = samples_for_ever(|settings| settings.max_input_rounds = 3);
    let mut client = Client::modern(&server);
    let mut extra = json!({});
    for _ in 0..3 {
        let (keys, state) = ask_round(&mut client, extra).await;
        let responses = keys.into_iter().map(|key| (key, sampled()));
        let responses: serde_json::Map<_, _> = responses.collect();
        extra = json!({"requestState": state, "inputResponses": responses});
    }
    let result = client.call_modern("ask", extra).await.expect("a result");
    assert_eq!(
        text(&result),
        "after 3: too many rounds of input requests (`max_input_rounds`)"
    );
}

#[runtimes::test]
async fn an_endless_loop_ends_at_the_request_limit_of_a_handshake_era_client() {
    let server = samples_for_ever(|settings| settings.max_input_requests_per_call = 3);
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for _ in 0..2 {
        client.begin("tools/call", json!({"name": "ask", "arguments": {}}));
        for _ in 0..3 {
            let input_request = client.next().await;
            assert_eq!(
                input_request["method"], "sampling/createMessage",
                "{input_request}"
            );
            let id = &input_request["id"];
            client.send(json!({"jsonrpc": "2.0", "id": id, "result": sampled()}));
        }
        let ended = client.next().await;
        let message = text(&ended["result"]);
        assert!(
            message.starts_with("after 3: ") && message.contains("max_input_requests_per_call"),
            "{message}"
        );
    }
}

#[runtimes::test]
async fn a_retry_at_another_process_replays_the_handler_with_recorded_answers() {
    let runs = Arc::new(AtomicU32::new(0));
    let first_process = two_requests(&runs, ToolOptions::default());
    let second_process = two_requests(&runs, ToolOptions::default());
    let mut client = Client::modern(&first_process);
    let (_, state) = ask_round(&mut client, json!({})).await;
    let mut elsewhere = Client::modern(&second_process);
    let (_, state) = ask_round(
        &mut elsewhere,
        json!({"requestState": state, "inputResponses": {"ask-1": accept("name", "Ada")}}),
    )
    .await;
    // And back to the first one, which never saw the first answer.
    drop(elsewhere);
    let result = client
        .call_modern(
            "ask",
            json!({"requestState": state, "inputResponses": {"colour": accept("colour", "red")}}),
        )
        .await
        .expect("a result");
    assert_eq!(text(&result), "Ada likes red");
    assert_eq!(runs.load(Ordering::SeqCst), 3);
}

#[runtimes::test]
async fn does_not_replay_tools_that_run_once() {
    let runs = Arc::new(AtomicU32::new(0));
    let mut options = ToolOptions::default();
    options.run_once = true;
    let first_process = two_requests(&runs, options.clone());
    let second_process = two_requests(&runs, options);
    let mut client = Client::modern(&first_process);
    let (_, state) = ask_round(&mut client, json!({})).await;
    let retry = json!({"requestState": state, "inputResponses": {"ask-1": accept("name", "Ada")}});
    let mut elsewhere = Client::modern(&second_process);
    let error = elsewhere
        .call_modern("ask", retry.clone())
        .await
        .expect_err("refused");
    assert_eq!(error["code"], -32602);
    assert!(
        error["message"]
            .as_str()
            .expect("a text")
            .contains("must not run twice"),
        "{error}"
    );
    // It resumes at the process where it is suspended.
    let (keys, _) = ask_round(&mut client, retry).await;
    assert_eq!(keys, ["colour"]);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[runtimes::test]
async fn a_request_state_is_valid_once_and_only_for_its_request() {
    let runs = Arc::new(AtomicU32::new(0));
    let server = two_requests(&runs, ToolOptions::default());
    let mut client = Client::modern(&server);
    let (_, state) = ask_round(&mut client, json!({})).await;
    let retry = json!({"requestState": state, "inputResponses": {"ask-1": accept("name", "Ada")}});
    let mut other = retry.clone();
    other["arguments"] = json!({"changed": true});
    let refused = client
        .call_modern("ask", other)
        .await
        .expect_err("another request");
    let mut tampered = retry.clone();
    tampered["requestState"] = format!("{}A", state.as_str().expect("a text")).into();
    let tampered = client
        .call_modern("ask", tampered)
        .await
        .expect_err("tampered");
    let _ = ask_round(&mut client, retry.clone()).await;
    let again = client.call_modern("ask", retry).await.expect_err("used");
    // Only the log says which of the three it was.
    assert_eq!(refused, tampered);
    assert_eq!(refused, again);
    assert_eq!(refused["code"], -32602);
}

#[runtimes::test]
async fn repeats_unanswered_requests_and_rejects_invalid_answers() {
    let runs = Arc::new(AtomicU32::new(0));
    let server = two_requests(&runs, ToolOptions::default());
    let mut client = Client::modern(&server);
    let (_, state) = ask_round(&mut client, json!({})).await;
    let bad = json!({"requestState": state, "inputResponses": {"ask-1": accept("nam", "Ada")}});
    let error = client
        .call_modern("ask", bad)
        .await
        .expect_err("doesn't fit the schema");
    assert_eq!(error["code"], -32602);
    assert!(
        error["message"].as_str().expect("a text").contains("ask-1"),
        "{error}"
    );
    let none = json!({"requestState": state, "inputResponses": {"other": accept("name", "Ada")}});
    let (keys, state) = ask_round(&mut client, none).await;
    assert_eq!(keys, ["ask-1"]);
    let good = json!({"requestState": state, "inputResponses": {"ask-1": accept("name", "Ada")}});
    let (keys, _) = ask_round(&mut client, good).await;
    assert_eq!(keys, ["colour"]);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[runtimes::test]
async fn clients_without_the_capability_get_the_protocols_error() {
    let runs = Arc::new(AtomicU32::new(0));
    let server = two_requests(&runs, ToolOptions::default());
    let mut client = Client::modern(&server);
    client.capabilities = json!({"sampling": {}});
    let error = client
        .call_modern("ask", json!({}))
        .await
        .expect_err("refused");
    assert_eq!(error["code"], -32021);
    assert_eq!(
        error["data"],
        json!({"requiredCapabilities": {"elicitation": {}}})
    );
}

#[runtimes::test]
async fn evicts_the_oldest_suspended_handler_and_replays_it() {
    let runs = Arc::new(AtomicU32::new(0));
    let mut settings = settings();
    settings.max_suspended_handlers = 2;
    settings.client_share = 1.0;
    let server = two_requests_with(&runs, ToolOptions::default(), settings);
    let mut client = Client::modern(&server);
    let mut states = Vec::new();
    for _ in 0..3 {
        states.push(ask_round(&mut client, json!({})).await.1);
    }
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    let retry = |state: &Value| json!({"requestState": state, "inputResponses": {"ask-1": accept("name", "Ada")}});
    let (keys, _) = ask_round(&mut client, retry(&states[2])).await;
    assert_eq!(keys, ["colour"]);
    assert_eq!(runs.load(Ordering::SeqCst), 3, "the newest is still there");
    let (keys, _) = ask_round(&mut client, retry(&states[0])).await;
    assert_eq!(keys, ["colour"]);
    assert_eq!(runs.load(Ordering::SeqCst), 4, "the oldest runs again");
}

#[runtimes::test]
async fn bounds_calls_in_flight_over_all_sessions() {
    let mut settings = settings();
    settings.max_calls = 2;
    settings.client_share = 1.0;
    let server = Server::builder("busy", "1")
        .settings(settings)
        .build()
        .expect("builds")
        .tool("wait", "Waits for ever", |_: Nothing, _: Context| {
            std::future::pending::<Result<String, HandlerError>>()
        });
    let mut first = Client::modern(&server);
    let mut second = Client::modern(&server);
    first.begin_modern("tools/call", json!({"name": "wait", "arguments": {}}));
    first.begin_modern("tools/call", json!({"name": "wait", "arguments": {}}));
    let error = second
        .call_modern("wait", json!({}))
        .await
        .expect_err("busy");
    assert_eq!(error["code"], -31000);
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains("max_calls")),
        "{error}"
    );
    drop(first);
}

#[runtimes::test]
async fn cancels_a_suspended_handler_when_its_connection_closes() {
    let (cancel_sender, cancelled) = tokio::sync::oneshot::channel();
    let cancel_sender = std::sync::Mutex::new(Some(cancel_sender));
    let server = Server::builder("asker", "1")
        .settings(settings())
        .build()
        .expect("builds")
        .tool("ask", "Asks", move |_: Nothing, ctx: Context| {
            let cancel_sender = cancel_sender
                .lock()
                .expect("no panic")
                .take()
                .expect("one call");
            ctx.on_cancel(move || cancel_sender.send(()).expect("a receiver"));
            async move {
                ctx.request_input(InputRequest::new(
                    InputRequestMethod::Elicit,
                    form("Name?", "name"),
                ))
                .await?;
                Ok::<_, HandlerError>("done")
            }
        });
    let mut client = Client::modern(&server);
    let _ = ask_round(&mut client, json!({})).await;
    drop(client);
    cancelled.await.expect("it is cancelled");
}

// On a single thread only: with more, another thread may send the round before the second request is added.
#[tokio::test]
async fn concurrent_input_requests_share_a_round() {
    let server = Server::builder("asker", "1")
        .settings(settings())
        .build()
        .expect("builds")
        .tool(
            "ask",
            "Asks twice at once",
            |_: support::Nothing, ctx: Context| async move {
                let ask = |key: &str| {
                    ctx.request_input(
                        InputRequest::new(InputRequestMethod::Elicit, form(key, "name"))
                            .with_key(key),
                    )
                };
                let (one, two) = tokio::join!(ask("one"), ask("two"));
                one.and(two).map(|_| "both").map_err(HandlerError::from)
            },
        );
    let mut client = Client::modern(&server);
    let (mut keys, state) = ask_round(&mut client, json!({})).await;
    keys.sort();
    assert_eq!(keys, ["one", "two"]);
    let answers = json!({"one": accept("name", "a"), "two": accept("name", "b")});
    let result = client
        .call_modern(
            "ask",
            json!({"requestState": state, "inputResponses": answers}),
        )
        .await
        .expect("a result");
    assert_eq!(text(&result), "both");
}

#[runtimes::test]
async fn input_requests_made_during_a_round_go_into_the_next() {
    let mut settings = settings();
    // A second suspension of the same handler would exceed this limit.
    settings.max_suspended_handlers = 1;
    let late = Arc::new(tokio::sync::Notify::new());
    let ask_second = late.clone();
    let server = Server::builder("asker", "1")
        .settings(settings)
        .build()
        .expect("builds")
        .tool(
            "ask",
            "Asks once, and once more when it is told to",
            move |_: support::Nothing, ctx: Context| {
                let late = late.clone();
                async move {
                    let ask = |key: &str| {
                        ctx.request_input(
                            InputRequest::new(InputRequestMethod::Elicit, form(key, "name"))
                                .with_key(key),
                        )
                    };
                    let second = async {
                        late.notified().await;
                        ask("two").await
                    };
                    let (one, two) = tokio::join!(ask("one"), second);
                    one.and(two).map(|_| "both").map_err(HandlerError::from)
                }
            },
        );
    let mut client = Client::modern(&server);
    let (keys, state) = ask_round(&mut client, json!({})).await;
    assert_eq!(keys, ["one"]);
    ask_second.notify_one();
    // Long enough for the handler to make its second request, and for a round without a waiting call to end.
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    let extra = json!({"requestState": state, "inputResponses": {"one": accept("name", "a")}});
    let (keys, state) = ask_round(&mut client, extra).await;
    assert_eq!(keys, ["two"]);
    let extra = json!({"requestState": state, "inputResponses": {"two": accept("name", "b")}});
    let result = client.call_modern("ask", extra).await.expect("a result");
    assert_eq!(text(&result), "both");
}

#[runtimes::test]
async fn a_replay_with_different_input_requests_fails_with_a_typed_error() {
    let asker = |message: &'static str| {
        Server::builder("asker", "1")
            .settings(settings())
            .build()
            .expect("builds")
            .tool(
                "ask",
                "Asks",
                move |_: support::Nothing, ctx: Context| async move {
                    let answer = ctx
                        .request_input(InputRequest::new(
                            InputRequestMethod::Elicit,
                            form(message, "name"),
                        ))
                        .await;
                    answer
                        .map(|_| "answered")
                        .map_err(|error| HandlerError::Tool(error.to_string()))
                },
            )
    };
    let mut client = Client::modern(&asker("One?"));
    let (_, state) = ask_round(&mut client, json!({})).await;
    let mut elsewhere = Client::modern(&asker("Two?"));
    let result = elsewhere
        .call_modern(
            "ask",
            json!({"requestState": state, "inputResponses": {"ask-1": accept("name", "a")}}),
        )
        .await
        .expect("a tool error");
    assert!(text(&result).contains("differs"), "{result}");
}

/// A tool that returns its input request.
fn returning() -> Server {
    Server::builder("asker", "1")
        .settings(settings())
        .build()
        .expect("builds")
        .tool(
            "ask",
            "Returns its question",
            |_: support::Nothing, ctx: Context| async move {
                if let Some(answer) = ctx.input_responses().and_then(|r| r.member("name")) {
                    let state = ctx.request_state().unwrap_or_default();
                    return Reply::Tool(ToolReply::text(&format!("{state}: {}", answer.as_str())));
                }
                Reply::InputRequired(InputRequired {
                    requests: vec![KeyedInputRequest {
                        key: "name".into(),
                        method: InputRequestMethod::Elicit,
                        params: form("Name?", "name"),
                    }],
                    state: Some("mine".into()),
                })
            },
        )
}

#[runtimes::test]
async fn returned_input_requests_work_on_2026_07_28() {
    let mut client = Client::modern(&returning());
    let (keys, state) = ask_round(&mut client, json!({})).await;
    assert_eq!(keys, ["name"]);
    assert!(!state.as_str().expect("a text").contains("mine"));
    let result = client
        .call_modern(
            "ask",
            json!({"requestState": state, "inputResponses": {"name": accept("name", "Ada")}}),
        )
        .await
        .expect("a result");
    assert!(text(&result).starts_with("mine: "), "{result}");
}

#[runtimes::test]
async fn input_required_results_have_no_caching_hints() {
    let mut settings = settings();
    settings.resource_cache = CacheHints::new(60_000, CacheScope::Public);
    let server = Server::builder("asker", "1")
        .settings(settings)
        .build()
        .expect("builds")
        .resource(Resource::new("test://a", "a"), |ctx: Context| async move {
            let input_request =
                InputRequest::new(InputRequestMethod::Elicit, form("Name?", "name"));
            ctx.request_input(input_request)
                .await
                .map(|answer| answer.as_str().to_owned())
        });
    let mut client = Client::modern(&server);
    let id = client.begin_modern("resources/read", json!({"uri": "test://a"}));
    let input_required = client.response(&id).await.expect("a result");
    assert_eq!(input_required["resultType"], "input_required");
    let has = |result: &Value, name| result.get(name).is_some();
    assert!(
        !has(&input_required, "ttlMs") && !has(&input_required, "cacheScope"),
        "{input_required}"
    );
    let retry = json!({"uri": "test://a", "requestState": input_required["requestState"],
                       "inputResponses": {"ask-1": accept("name", "Ada")}});
    let id = client.begin_modern("resources/read", retry);
    let read = client.response(&id).await.expect("a result");
    assert!(has(&read, "ttlMs") && has(&read, "cacheScope"), "{read}");
}

#[runtimes::test]
async fn returned_input_requests_work_in_the_handshake_era() {
    let mut client = Client::legacy(&returning(), "2025-11-25").await;
    let id = client.begin("tools/call", json!({"name": "ask", "arguments": {}}));
    let input_request = client.next().await;
    assert_eq!(input_request["method"], "elicitation/create");
    client.send(
        json!({"jsonrpc": "2.0", "id": input_request["id"], "result": accept("name", "Ada")}),
    );
    let response = client.response(&id).await.expect("a result");
    assert!(text(&response).starts_with("mine: "), "{response}");
}

#[runtimes::test]
async fn the_same_handler_sends_requests_to_a_handshake_era_client() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let runs = Arc::new(AtomicU32::new(0));
        let server = two_requests(&runs, ToolOptions::default());
        let mut client = Client::legacy(&server, revision).await;
        let id = client.begin("tools/call", json!({"name": "ask", "arguments": {}}));
        for (name, value) in [("name", "Ada"), ("colour", "red")] {
            let input_request = client.next().await;
            assert_eq!(input_request["method"], "elicitation/create");
            client.send(
                json!({"jsonrpc": "2.0", "id": input_request["id"], "result": accept(name, value)}),
            );
        }
        let response = client.response(&id).await.expect("a result");
        assert_eq!(text(&response), "Ada likes red");
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }
}

#[runtimes::test]
async fn clients_without_elicitation_get_a_tool_error() {
    let runs = Arc::new(AtomicU32::new(0));
    let server = two_requests(&runs, ToolOptions::default());
    let mut client = Client::legacy(&server, "2025-03-26").await;
    let id = client.begin("tools/call", json!({"name": "ask", "arguments": {}}));
    let response = client.response(&id).await.expect("a tool error");
    assert_eq!(response["isError"], true);
    assert!(text(&response).contains("elicitation"), "{response}");
}

#[derive(Deserialize, JsonSchema)]
struct Trip {
    /// Where to.
    city: String,
    nights: Option<u32>,
}

#[runtimes::test]
async fn elicits_and_decodes_a_form_as_a_type() {
    let server = Server::new("forms", "1").tool(
        "book",
        "Asks for a trip",
        |_: Nothing, ctx: Context| async move {
            Ok::<_, HandlerError>(match ctx.elicit_as::<Trip>("Where to?").await? {
                Some(trip) => format!("{} {:?}", trip.city, trip.nights),
                None => "nowhere".to_owned(),
            })
        },
    );
    for (answer, expected) in [
        (
            json!({"action": "accept", "content": {"city": "Oslo", "nights": 2}}),
            "Oslo Some(2)",
        ),
        (
            json!({"action": "accept", "content": {"city": "Oslo"}}),
            "Oslo None",
        ),
        (json!({"action": "decline"}), "nowhere"),
    ] {
        let mut client = Client::legacy(&server, "2025-11-25").await;
        let id = client.begin("tools/call", json!({"name": "book"}));
        let input_request = client.next().await;
        let form = &input_request["params"]["requestedSchema"];
        assert_eq!(form["required"], json!(["city"]));
        assert_eq!(form["properties"]["city"]["description"], "Where to.");
        assert_eq!(form["properties"]["nights"]["type"], "integer");
        client.send(json!({"jsonrpc": "2.0", "id": input_request["id"], "result": answer}));
        assert_eq!(
            text(&client.response(&id).await.expect("a result")),
            expected
        );
    }
}

#[runtimes::test]
async fn completers_can_not_send_input_requests() {
    struct Asks;
    impl Handler for Asks {
        fn call(&self, call: Call) {
            let input_request =
                InputRequest::new(InputRequestMethod::Elicit, form("Name?", "name"));
            let context = call.context();
            context.request_input_with(input_request, move |outcome| {
                let said = match outcome {
                    Err(InputRequestError::OutsideCall) => "refused".to_owned(),
                    other => format!("{other:?}"),
                };
                let reply = CompletionReply {
                    values: vec![said],
                    ..CompletionReply::default()
                };
                call.reply(Ok(Reply::Completion(reply)));
            });
        }
    }
    let server = Server::new("asker", "1").prompt(
        Prompt::new("greet").with_arguments(vec![PromptArgument::new("name")]),
        |_: Nothing, _: Context| async { "hello" },
    );
    server
        .add_completer("greet", "name", Completer::Handler(Arc::new(Asks)))
        .expect("it has the argument");
    let mut client = Client::modern(&server);
    let params = json!({"ref": {"type": "ref/prompt", "name": "greet"},
                       "argument": {"name": "name", "value": ""}});
    let id = client.begin_modern("completion/complete", params);
    let result = client.response(&id).await.expect("candidates");
    assert_eq!(result["completion"]["values"], json!(["refused"]));
}

/// Waits for an input request with this method and returns its id.
async fn input_request_id(client: &mut Client, method: &str) -> Value {
    let input_request = client.next().await;
    assert_eq!(input_request["method"], method, "{input_request}");
    input_request["id"].clone()
}

#[runtimes::test]
async fn a_session_sends_input_requests_outside_of_calls_until_it_ends() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (sender, mut answers) = tokio::sync::mpsc::unbounded_channel();
        let server = Server::new("asker", "1").on_initialized(move |ctx: Context| {
            let sender = sender.clone();
            async move {
                let _ended = sender.clone();
                for _ in 0..2 {
                    let answer = ctx
                        .request_input(InputRequest::new(InputRequestMethod::ListRoots, None))
                        .await;
                    let answer = answer.map(|roots| roots.as_str().to_owned());
                    // The test may be over.
                    let _ = sender.send(answer.map_err(|error| error.to_string()));
                }
            }
        });
        let mut client = Client::legacy(&server, revision).await;
        let id = input_request_id(&mut client, "roots/list").await;
        client.send(json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}}));
        assert_eq!(answers.recv().await, Some(Ok(r#"{"roots":[]}"#.to_owned())));
        input_request_id(&mut client, "roots/list").await;
        drop(client);
        drop(server);
        // The handler was cancelled with its session: it sends nothing more, or only that the session is gone.
        while let Some(answers) = answers.recv().await {
            assert!(answers.is_err(), "{answers:?}");
        }
    }
}

#[runtimes::test]
async fn modern_clients_trigger_no_session_notifications() {
    let begun = Arc::new(AtomicU32::new(0));
    let count = begun.clone();
    let server = Server::new("asker", "1").on_roots_changed(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        async {}
    });
    let mut client = Client::modern(&server);
    for method in [
        "notifications/initialized",
        "notifications/roots/list_changed",
    ] {
        client.send(json!({"jsonrpc": "2.0", "method": method}));
    }
    let id = client.begin_modern("server/discover", json!({}));
    client.response(&id).await.expect("answered");
    assert_eq!(begun.load(Ordering::SeqCst), 0);
}
