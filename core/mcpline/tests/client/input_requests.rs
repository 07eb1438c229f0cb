//! Input requests from servers to a host: requests the host cannot answer never reach it, invalid responses are never
//! sent, and only completions of known URL elicitations are delivered.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::log::Log;
use crate::support::peer::{LEAVE, Peer, host, notification, result, soon};
use mcpline::ErrorKind;
use mcpline::client::{ClientBuilder, ClientError, sampling_refused};
use mcpline::protocol::ErrorCode;
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::{
    ElicitAction, ElicitResult, ElicitationCapability, JsonObject, SamplingCapability,
};
use mcpline::{Revision, RpcError};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Returns hosts that declare some capability, each with an input request that it did not declare, and with text that
/// the error must contain.
fn unanswerable() -> Vec<(ClientBuilder, &'static str, Value, &'static str)> {
    let forms = || ElicitationCapability::default().with_form(JsonObject::new());
    let urls = || ElicitationCapability::default().with_url(JsonObject::new());
    let elicits = || host().on_elicit(|_| async { Ok(ElicitResult::new(ElicitAction::Cancel)) });
    let declares = |elicitation: ElicitationCapability| {
        elicits().capabilities(move |all| all.elicitation = Some(elicitation))
    };
    let samples = || {
        host().sample_with(Arc::new(|_| {
            Box::pin(async { Err(RpcError::internal_error("the host was asked")) })
        }))
    };
    let form = |mode: Option<&str>| {
        let mut form =
            json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
        if let Some(mode) = mode {
            form["mode"] = json!(mode);
        }
        form
    };
    let url_elicitation =
        |url: &str| json!({"mode": "url", "message": "?", "url": url, "elicitationId": "1"});
    let sample = |name: &str, value: Value| json!({"messages": [], "maxTokens": 1, name: value});
    let elicit = "elicitation/create";
    let mut cases = vec![
        (
            declares(forms()),
            elicit,
            url_elicitation("https://a.example/"),
            "elicitation.url",
        ),
        (
            declares(ElicitationCapability::default()),
            elicit,
            url_elicitation("https://a.example/"),
            "elicitation.url",
        ),
        (declares(urls()), elicit, form(None), "elicitation.form"),
        (
            declares(urls()),
            elicit,
            form(Some("form")),
            "elicitation.form",
        ),
        (elicits(), elicit, form(Some("voice")), "mode"),
        (
            samples(),
            "sampling/createMessage",
            sample("tools", json!([])),
            "sampling.tools",
        ),
        (
            samples().capabilities(|all| all.sampling = Some(SamplingCapability::default())),
            "sampling/createMessage",
            sample("toolChoice", json!({"mode": "auto"})),
            "sampling.tools",
        ),
    ];
    for url in [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "vscode://open",
        " https://a.example/",
        "https://a.example/\nb",
        "https:a.example",
        "https://",
        "a.example",
    ] {
        cases.push((elicits(), elicit, url_elicitation(url), "`url`"));
    }
    cases
}

#[runtimes::test]
async fn undeclared_input_requests_never_reach_the_host() {
    for (host, method, params, named) in unanswerable() {
        let (answer_sender, mut answers) = mpsc::unbounded_channel();
        let input_request =
            json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params});
        let sent = input_request.clone();
        let peer = Peer::new(
            Revision::V2025_11_25,
            move |message, say| match message["method"].as_str() {
                Some(_) => say(sent.clone()),
                None => answer_sender.send(message.clone()).expect("the test lives"),
            },
        );
        let client = peer.connect(host).await;
        client
            .notify("notifications/x", None)
            .await
            .expect("it is told");
        let answer = soon(answers.recv()).await.expect("an answer");
        assert_eq!(answer["error"]["code"], -32602, "{input_request}: {answer}");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.contains(named), "{input_request}: {message}");
        client.close().await;
    }
}

#[runtimes::test]
async fn undeclared_input_requests_in_a_result_fail_the_call() {
    for (host, method, params, named) in unanswerable() {
        let input_request = json!({"method": method, "params": params});
        let peer = Peer::new(Revision::V2026_07_28, move |message, say| {
            say(result(
                message,
                json!({"resultType": "input_required", "inputRequests": {"q": input_request}}),
            ));
        });
        let client = peer.connect(host).await;
        let error = client.call_tool("t", json!({})).await;
        let error = error.expect_err("it can't be answered");
        assert_eq!(
            error.kind(),
            ErrorKind::InputRequestFailed,
            "{params}: {error}"
        );
        assert!(error.to_string().contains(named), "{params}: {error}");
        assert_eq!(peer.count("tools/call"), 1);
        client.close().await;
    }
}

#[runtimes::test]
async fn declared_input_requests_reach_the_host() {
    let host = || {
        host()
            .on_elicit(|_| async { Ok(ElicitResult::new(ElicitAction::Decline)) })
            .sample_with(Arc::new(|_| {
                Box::pin(async {
                    Ok(Raw::from_trusted(
                        r#"{"role":"assistant","model":"m","content":[]}"#,
                    ))
                })
            }))
            .capabilities(|all| {
                all.sampling = Some(SamplingCapability::default().with_tools(JsonObject::new()));
            })
    };
    let url_elicitation =
        |url: &str| json!({"mode": "url", "message": "?", "url": url, "elicitationId": "1"});
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    for (method, params) in [
        ("elicitation/create", form),
        (
            "elicitation/create",
            url_elicitation("https://a.example/b?c=d"),
        ),
        ("elicitation/create", url_elicitation("HTTP://127.0.0.1:1/")),
        (
            "sampling/createMessage",
            json!({"messages": [], "maxTokens": 1, "tools": [], "toolChoice": {"mode": "none"}}),
        ),
    ] {
        let input_request = json!({"method": method, "params": params});
        let peer = Peer::new(Revision::V2026_07_28, move |message, say| {
            say(match message["params"]["inputResponses"].is_null() {
                true => result(
                    message,
                    json!({"resultType": "input_required", "inputRequests": {"q": input_request}}),
                ),
                false => result(message, json!({"resultType": "complete", "content": []})),
            });
        });
        let client = peer.connect(host()).await;
        client.call_tool("t", json!({})).await.expect("a result");
        client.close().await;
    }
}

#[tokio::test]
async fn logs_the_reason_of_a_cancelled_input_request() {
    let log = Log::new(tracing::Level::DEBUG);
    let _guard = tracing::subscriber::set_default(log.clone());
    let peer = Peer::new(Revision::V2025_11_25, |message, say| {
        say(
            json!({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage",
                   "params": {"messages": [], "maxTokens": 1}}),
        );
        let reason = json!({"requestId": "q", "reason": "the user left"});
        say(notification("notifications/cancelled", reason));
        say(result(message, json!({})));
    });
    let host = host().sample_with(Arc::new(|_| Box::pin(std::future::pending())));
    let client = peer.connect(host).await;
    client.ping().await.expect("a sign of life");
    assert!(log.has("the user left"));
    client.close().await;
}

/// Returns what the client answers to an input request from a server of a handshake revision.
async fn answer_of(host: ClientBuilder, revision: Revision, input_request: Value) -> Value {
    let (answer_sender, mut answers) = mpsc::unbounded_channel();
    let peer = Peer::new(revision, move |message, say| {
        match message["method"].as_str() {
            Some(_) => say(input_request.clone()),
            None => answer_sender.send(message.clone()).expect("the test lives"),
        }
    });
    let client = peer.connect(host).await;
    let notified = client.notify("notifications/x", None).await;
    notified.expect("it is told");
    let answer = soon(answers.recv()).await.expect("an answer");
    client.close().await;
    answer
}

/// Returns what the client answers to an input request in a result of a 2026-07-28 server, or why its call failed.
async fn response_of(host: ClientBuilder, input_request: Value) -> Result<Value, ClientError> {
    let responses = Arc::new(Mutex::new(Value::Null));
    let kept = responses.clone();
    let peer = Peer::new(Revision::V2026_07_28, move |message, say| {
        let given = &message["params"]["inputResponses"];
        let complete = json!({"resultType": "complete", "content": []});
        let input_required =
            json!({"resultType": "input_required", "inputRequests": {"q": input_request}});
        say(result(
            message,
            if given.is_null() {
                input_required
            } else {
                complete
            },
        ));
        *kept.lock().expect("not poisoned") = given["q"].clone();
    });
    let client = peer.connect(host).await;
    let outcome = client.call_tool("t", json!({})).await;
    client.close().await;
    let response = responses.lock().expect("not poisoned").clone();
    outcome.map(|_| response)
}

fn elicits(answer: &Value) -> ClientBuilder {
    let answer = Raw::from_trusted(answer.to_string());
    host().elicit_with(Arc::new(move |_| {
        let answer = answer.clone();
        Box::pin(async move { Ok(answer) })
    }))
}

fn samples(answer: &Value) -> ClientBuilder {
    let answer = Raw::from_trusted(answer.to_string());
    let tools = SamplingCapability::default().with_tools(JsonObject::new());
    host()
        .sample_with(Arc::new(move |_| {
            let answer = answer.clone();
            Box::pin(async move { Ok(answer) })
        }))
        .capabilities(|all| all.sampling = Some(tools))
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params})
}

fn form() -> Value {
    let name = json!({"type": "string", "minLength": 2});
    let age = json!({"type": "integer", "maximum": 120});
    json!({"message": "Who?", "requestedSchema": {
        "type": "object", "properties": {"name": name, "age": age}, "required": ["name"]}})
}

#[tokio::test]
async fn form_content_that_does_not_match_its_schema_is_not_sent() {
    let log = Log::new(tracing::Level::WARN);
    let _guard = tracing::subscriber::set_default(log.clone());
    for (content, place) in [
        (json!({"name": "x"}), "/name"),
        (json!({"name": "Ada", "age": "old"}), "/age"),
        (json!({}), "name"),
        (Value::Null, "name"),
        (json!(["Ada"]), "`content` must be an object"),
    ] {
        let answer = json!({"action": "accept", "content": content});
        for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
            let input_request = request("elicitation/create", &form());
            let response = answer_of(elicits(&answer), revision, input_request).await;
            assert_eq!(response["error"]["code"], -32603, "{content}: {response}");
            let message = response["error"]["message"].as_str().expect("a message");
            assert!(message.contains(place), "{content}: {message}");
            assert!(log.has(place), "{content}");
        }
        let input_request = json!({"method": "elicitation/create", "params": form()});
        let error = response_of(elicits(&answer), input_request).await;
        let error = error.expect_err("there is nothing to send");
        assert_eq!(error.kind(), ErrorKind::InputRequestFailed, "{error}");
        assert!(error.to_string().contains(place), "{content}: {error}");
    }
    let fits = json!({"action": "accept", "content": {"name": "Ada", "age": 36}});
    let input_request = request("elicitation/create", &form());
    let response = answer_of(elicits(&fits), Revision::V2025_11_25, input_request).await;
    assert_eq!(response["result"], fits);
}

#[runtimes::test]
async fn sends_content_only_for_accepted_forms() {
    let content = json!({"name": "Ada"});
    let url_elicitation =
        json!({"mode": "url", "message": "?", "url": "https://a.example/", "elicitationId": "1"});
    for (params, action) in [
        (form(), "decline"),
        (form(), "cancel"),
        (url_elicitation.clone(), "accept"),
        (url_elicitation, "decline"),
    ] {
        let answer = json!({"action": action, "content": content, "_meta": {"a": 1}});
        let sent = json!({"action": action, "_meta": {"a": 1}});
        let input_request = request("elicitation/create", &params);
        let response = answer_of(elicits(&answer), Revision::V2025_11_25, input_request).await;
        assert_eq!(response["result"], sent);
        let input_request = json!({"method": "elicitation/create", "params": params});
        let response = response_of(elicits(&answer), input_request).await;
        assert_eq!(response.expect("a response"), sent);
    }
}

#[runtimes::test]
async fn rejects_form_schemas_of_an_unknown_dialect() {
    let mut odd = form();
    odd["requestedSchema"]["$schema"] = json!("https://schemas.example/draft-99");
    let host = elicits(&json!({"action": "accept", "content": {"name": "Ada"}}));
    let input_request = request("elicitation/create", &odd);
    let response = answer_of(host, Revision::V2025_11_25, input_request).await;
    assert_eq!(response["error"]["code"], -32602, "{response}");
    let message = response["error"]["message"].as_str().expect("a message");
    assert!(message.contains("draft-99"), "{message}");
}

/// Returns invalid sampling messages, each with text that the error must contain.
fn invalid_conversations() -> Vec<(Value, &'static str)> {
    let text = json!({"type": "text", "text": "hi"});
    let uses = json!({"type": "tool_use", "id": "a", "name": "t", "input": {}});
    let given = json!({"type": "tool_result", "toolUseId": "a", "content": []});
    let user = |content: &Value| json!({"role": "user", "content": content});
    let model = |content: &Value| json!({"role": "assistant", "content": content});
    vec![
        (json!([user(&text), model(&uses)]), "tool_result"),
        (json!([model(&uses), user(&text)]), "tool_result"),
        (
            json!([model(&uses), user(&json!([given, text]))]),
            "nothing else",
        ),
        (
            json!([user(&json!({"type": "text"}))]),
            "messages[0].content",
        ),
        (
            json!([user(&json!({"type": "image", "data": ""}))]),
            "mimeType",
        ),
        (json!([user(&json!("hi"))]), "messages[0].content"),
        (
            json!([{"role": "system", "content": text}]),
            "messages[0].role",
        ),
        (json!({"role": "user"}), "`messages`"),
    ]
}

#[runtimes::test]
async fn invalid_sampling_messages_never_reach_the_host() {
    for (messages, named) in invalid_conversations() {
        let params = json!({"messages": messages, "maxTokens": 1});
        let host_calls = Arc::new(AtomicUsize::new(0));
        let host = || {
            let host_calls = host_calls.clone();
            samples(&Value::Null).sample_with(Arc::new(move |_| {
                host_calls.fetch_add(1, Ordering::Relaxed);
                Box::pin(async { Err(RpcError::internal_error("the host was asked")) })
            }))
        };
        let input_request = request("sampling/createMessage", &params);
        let response = answer_of(host(), Revision::V2025_11_25, input_request).await;
        assert_eq!(response["error"]["code"], -32602, "{messages}: {response}");
        let message = response["error"]["message"].as_str().expect("a message");
        assert!(message.contains(named), "{messages}: {message}");
        let input_request = json!({"method": "sampling/createMessage", "params": params});
        let error = response_of(host(), input_request).await;
        let error = error.expect_err("it can't be continued");
        assert_eq!(error.kind(), ErrorKind::InputRequestFailed, "{error}");
        assert!(error.to_string().contains(named), "{messages}: {error}");
        assert_eq!(host_calls.load(Ordering::Relaxed), 0);
    }
}

#[runtimes::test]
async fn sampling_messages_with_tool_uses_and_results_reach_the_host() {
    let uses = |id: &str| json!({"type": "tool_use", "id": id, "name": "t", "input": {}});
    let given = |id: &str| json!({"type": "tool_result", "toolUseId": id, "content": []});
    let messages = json!([
        {"role": "user", "content": {"type": "text", "text": "hi"}},
        {"role": "assistant", "content": [uses("a"), uses("b")]},
        {"role": "user", "content": [given("b"), given("a")]},
    ]);
    let params = json!({"messages": messages, "maxTokens": 1, "tools": []});
    // The model may use tools again, two at once.
    let says = json!({"role": "assistant", "model": "m", "stopReason": "toolUse",
                      "content": [uses("c"), uses("d")]});
    let input_request = request("sampling/createMessage", &params);
    let response = answer_of(samples(&says), Revision::V2025_11_25, input_request).await;
    assert_eq!(response["result"], says);
    let input_request = json!({"method": "sampling/createMessage", "params": params});
    assert_eq!(
        response_of(samples(&says), input_request)
            .await
            .expect("an answer"),
        says
    );
}

#[tokio::test]
async fn validates_sampling_results_before_sending_them() {
    let log = Log::new(tracing::Level::WARN);
    let _guard = tracing::subscriber::set_default(log.clone());
    let text = json!({"type": "text", "text": "hi"});
    let params = json!({"messages": [], "maxTokens": 1});
    for (says, named) in [
        (
            json!({"role": "assistant", "model": "m", "content": {"type": "text"}}),
            "`content`",
        ),
        (
            json!({"role": "assistant", "model": "m", "content": [text, {"text": "x"}]}),
            "content[1]",
        ),
        (
            json!({"role": "robot", "model": "m", "content": text}),
            "`role`",
        ),
        (json!({"role": "assistant", "content": text}), "`model`"),
        (json!("hi"), "must be an object"),
    ] {
        for revision in [Revision::V2024_11_05, Revision::V2025_11_25] {
            let input_request = request("sampling/createMessage", &params);
            let response = answer_of(samples(&says), revision, input_request).await;
            assert_eq!(response["error"]["code"], -32603, "{says}: {response}");
        }
        assert!(log.has(named), "{says}");
        let input_request = json!({"method": "sampling/createMessage", "params": params});
        let error = response_of(samples(&says), input_request).await;
        let error = error.expect_err("there is nothing to send");
        assert!(error.to_string().contains(named), "{says}: {error}");
    }
}

#[runtimes::test]
async fn reports_refused_sampling_as_error_minus_1() {
    let refuses = || {
        host().sample_with(Arc::new(|_| {
            Box::pin(async { Err(sampling_refused("not now")) })
        }))
    };
    let params = json!({"messages": [], "maxTokens": 1});
    let input_request = request("sampling/createMessage", &params);
    let response = answer_of(refuses(), Revision::V2025_11_25, input_request).await;
    assert_eq!(response["error"], json!({"code": -1, "message": "not now"}));
    let input_request = json!({"method": "sampling/createMessage", "params": params});
    let error = response_of(refuses(), input_request)
        .await
        .expect_err("refused");
    assert!(
        matches!(&error, ClientError::InputRequestFailed { error, .. } if error.code == ErrorCode(-1)),
        "{error}"
    );
}

#[runtimes::test]
async fn does_not_fetch_elicitation_urls() {
    let page = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", page.local_addr().expect("an address"));
    let params = json!({"mode": "url", "message": "?", "url": url, "elicitationId": "1"});
    let (seen, mut urls) = mpsc::unbounded_channel();
    let host = || {
        let seen = seen.clone();
        host().on_elicit(move |elicitation| {
            seen.send(elicitation.url).expect("the test lives");
            async { Ok(ElicitResult::new(ElicitAction::Accept)) }
        })
    };
    let input_request = request("elicitation/create", &params);
    let response = answer_of(host(), Revision::V2025_11_25, input_request).await;
    assert_eq!(response["result"], json!({"action": "accept"}));
    let input_request = json!({"method": "elicitation/create", "params": params});
    response_of(host(), input_request)
        .await
        .expect("a response");
    // Nor is the URL of a required URL elicitation in an error.
    let required = json!({"elicitations": [params]});
    let peer = Peer::new(Revision::V2025_11_25, move |message, say| {
        say(json!({"jsonrpc": "2.0", "id": message["id"],
                   "error": {"code": -32042, "message": "go there", "data": required}}));
    });
    let client = peer.connect(host()).await;
    let outcome = client.call_tool("t", json!({})).await;
    outcome.expect_err("the user has to go there");
    client.close().await;
    for _ in 0..2 {
        assert_eq!(urls.recv().await, Some(Some(url.clone())));
    }
    page.set_nonblocking(true).expect("a socket");
    let no_connection = page.accept().expect_err("nobody has come");
    assert_eq!(no_connection.kind(), std::io::ErrorKind::WouldBlock);
}

/// Returns unusual elicitation ids that a server may send.
fn odd_ids() -> Vec<String> {
    let odd = [
        "1",
        "",
        " ",
        "日本語 \u{1f600}",
        "a\u{0}\n\"b",
        "null",
        "../../etc",
    ];
    let odd = odd.into_iter().map(str::to_owned);
    odd.chain(["x".repeat(100_000)]).collect()
}

#[runtimes::test]
async fn delivers_each_completion_of_a_known_url_elicitation_once() {
    let url_elicitation = |id: &str, url: &str| json!({"mode": "url", "message": "?", "url": url, "elicitationId": id});
    let known_ids = odd_ids();
    let end = |id: &Value| {
        notification(
            "notifications/elicitation/complete",
            json!({ "elicitationId": id }),
        )
    };
    let answers = AtomicUsize::new(0);
    let script_ids = known_ids.clone();
    let peer = Peer::new(Revision::V2025_11_25, move |message, say| {
        let ids = &script_ids;
        match message["method"].as_str() {
            Some("tools/call") => {
                for (index, id) in ids.iter().enumerate() {
                    let params = url_elicitation(id, "https://a.example/");
                    say(
                        json!({"jsonrpc": "2.0", "id": index, "method": "elicitation/create", "params": params}),
                    );
                }
                // An elicitation that never reaches the host.
                let params = url_elicitation("refused", "javascript:alert(1)");
                say(
                    json!({"jsonrpc": "2.0", "id": "refused", "method": "elicitation/create", "params": params}),
                );
                say(result(message, json!({"content": []})));
            }
            Some("ping") => {
                say(end(&json!("unknown")));
                say(end(&json!("refused")));
                say(end(&json!(7)));
                say(notification(
                    "notifications/elicitation/complete",
                    json!({}),
                ));
                for id in ids {
                    say(end(&json!(id)));
                    say(end(&json!(id)));
                }
                say(result(message, json!({})));
            }
            None => drop(answers.fetch_add(1, Ordering::Relaxed)),
            Some(_) => {}
        }
    });
    let (id_sender, mut completed_ids) = mpsc::unbounded_channel();
    let elicited_ids = Arc::new(Mutex::new(Vec::new()));
    let kept = elicited_ids.clone();
    let host = host()
        .on_elicit(move |params| {
            kept.lock()
                .expect("not poisoned")
                .push(params.elicitation_id.unwrap_or_default());
            async { Ok(ElicitResult::new(ElicitAction::Accept)) }
        })
        .on_notification(move |notification| {
            let params = notification.params.as_ref().expect("parameters");
            let id = params.get_str("elicitationId").expect("an id");
            // The test may be over.
            let _ = id_sender.send(id.into_owned());
        });
    let client = peer.connect(host).await;
    client.call_tool("t", json!({})).await.expect("a result");
    let answered = async {
        while peer.count("response") <= known_ids.len() {
            tokio::task::yield_now().await;
        }
    };
    soon(answered).await;
    client.ping().await.expect("a sign of life");
    let mut given = elicited_ids.lock().expect("not poisoned").clone();
    given.sort();
    let mut sent = known_ids.clone();
    sent.sort();
    assert_eq!(given, sent);
    for id in &known_ids {
        assert_eq!(soon(completed_ids.recv()).await.as_ref(), Some(id));
    }
    client.close().await;
    drop(client);
    assert_eq!(soon(completed_ids.recv()).await, None);
}

#[runtimes::test]
async fn url_elicitation_completions_reach_the_host_after_a_reconnection() {
    let url_elicitation = |id: &str| json!({"mode": "url", "message": "?", "url": "https://a.example/", "elicitationId": id});
    let left = AtomicBool::new(false);
    let peer = Peer::new(Revision::V2025_11_25, move |message, say| {
        match message["method"].as_str() {
            Some("tools/call") => {
                say(
                    json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": url_elicitation("asked")}),
                );
                let required = json!({"elicitations": [url_elicitation("required")]});
                say(json!({"jsonrpc": "2.0", "id": message["id"],
                           "error": {"code": -32042, "message": "sign in first", "data": required}}));
            }
            // A list request is sent again on the next connection.
            Some("tools/list") if !left.swap(true, Ordering::Relaxed) => say(LEAVE),
            Some("tools/list") => {
                for id in ["unknown", "required", "asked", "asked", "required"] {
                    let params = json!({ "elicitationId": id });
                    say(notification("notifications/elicitation/complete", params));
                }
                say(result(message, json!({"tools": []})));
            }
            _ => {}
        }
    });
    let (id_sender, mut completed_ids) = mpsc::unbounded_channel();
    let host = host()
        .on_elicit(|_| async { Ok(ElicitResult::new(ElicitAction::Accept)) })
        .on_notification(move |notification| {
            let params = notification.params.as_ref().expect("parameters");
            let id = params.get_str("elicitationId").expect("an id");
            // The test may be over.
            let _ = id_sender.send(id.into_owned());
        });
    let client = peer.connect(host).await;
    let called = client.call_tool("t", json!({})).await;
    called.expect_err("the user has to sign in");
    peer.wait_for("response", 1).await;
    client.list_tools().await.expect("a list");
    assert_eq!(peer.dialled(), 2);
    client.close().await;
    drop(client);
    for id in ["required", "asked"] {
        assert_eq!(soon(completed_ids.recv()).await.as_deref(), Some(id));
    }
    assert_eq!(soon(completed_ids.recv()).await, None);
}

#[runtimes::test]
async fn delivers_a_required_url_elicitation_and_then_its_completion() {
    let url_elicitation = json!({"mode": "url", "message": "Sign in", "url": "https://a.example/?e=1", "elicitationId": "e1"});
    let required = json!({"elicitations": [url_elicitation]});
    let data = required.clone();
    let peer = Peer::new(
        Revision::V2025_11_25,
        move |message, say| match message["method"].as_str() {
            Some("tools/call") if message["params"]["arguments"]["signed_in"] == true => {
                say(result(message, json!({"content": []})));
            }
            Some("tools/call") => {
                say(json!({"jsonrpc": "2.0", "id": message["id"],
                           "error": {"code": -32042, "message": "sign in first", "data": data}}));
                for id in ["e2", "e1", "e1"] {
                    let params = json!({ "elicitationId": id });
                    say(notification("notifications/elicitation/complete", params));
                }
                say(notification(
                    "notifications/message",
                    json!({"level": "info", "data": "last"}),
                ));
            }
            _ => {}
        },
    );
    let (id_sender, mut completed_ids) = mpsc::unbounded_channel();
    let host = host().on_notification(move |notification| {
        let params = notification.params.as_ref().expect("parameters");
        let id = params.get_str("elicitationId").map(|id| id.into_owned());
        // The test may be over.
        let _ = id_sender.send(id);
    });
    let client = peer.connect(host).await;
    let error = client.call_tool("t", json!({})).await;
    let error = error.expect_err("the user has to sign in");
    let rpc = error.rpc().expect("an error of the server's");
    assert_eq!(rpc.code, ErrorCode::URL_ELICITATION_REQUIRED);
    let given: Value = rpc.data.as_ref().expect("data").decode().expect("JSON");
    assert_eq!(given, required);
    assert_eq!(
        soon(completed_ids.recv()).await,
        Some(Some("e1".to_owned()))
    );
    assert_eq!(soon(completed_ids.recv()).await, Some(None));
    // The host may wait for the completion and try again.
    let again = client.call_tool("t", json!({"signed_in": true})).await;
    again.expect("a result");
    client.close().await;
}

#[runtimes::test]
async fn rejects_required_url_elicitations_with_non_web_urls() {
    for url in [
        json!("javascript:alert(1)"),
        json!("file:///etc/passwd"),
        json!("a.example"),
        json!(7),
        Value::Null,
    ] {
        let url_elicitation =
            |url: &Value| json!({"mode": "url", "message": "?", "url": url, "elicitationId": "e1"});
        let required = json!({"elicitations": [url_elicitation(&json!("https://a.example/")), url_elicitation(&url)]});
        let peer = Peer::new(Revision::V2025_11_25, move |message, say| {
            say(json!({"jsonrpc": "2.0", "id": message["id"],
                       "error": {"code": -32042, "message": "go there", "data": required}}));
        });
        let client = peer.connect(host()).await;
        let error = client.call_tool("t", json!({})).await;
        let error = error.expect_err("it is not to be followed");
        assert_eq!(error.kind(), ErrorKind::InvalidResponse, "{url}: {error}");
        assert!(error.to_string().contains("elicitations[1].url"), "{error}");
        assert!(error.rpc().is_none());
        client.close().await;
    }
}
