//! What a client sends for each feature, message by message, in every revision: its capabilities, requests for pages,
//! and responses to input requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::support::peer::{self, Peer, result, soon};
use mcpline::client::ClientBuilder;
use mcpline::protocol::Raw;
use mcpline::protocol::vocabulary::{
    CompleteParams, CreateMessageParams, ElicitAction, ElicitResult, Implementation, JsonObject,
    Root, SamplingCapability,
};
use mcpline::{Revision, RpcError};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// The messages that arrive at a peer.
type Arrived = mpsc::UnboundedReceiver<Value>;

/// A server of one revision that a closure scripts, and the messages that arrive at it. They must fit the schema.
fn checked_peer(
    revision: Revision,
    script: impl Fn(&Value) -> Vec<Value> + Send + Sync + 'static,
) -> (Peer, Arrived) {
    let says = move |message: &Value, say: &dyn Fn(Value)| {
        script(message).into_iter().for_each(say);
    };
    let mut peer = Peer::new(revision, says).checked();
    peer.capabilities = json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}});
    let arrived = peer.arrivals();
    (peer, arrived)
}

/// A host that opens no subscription by itself.
fn host() -> ClientBuilder {
    peer::host().configure(|settings| settings.listen = false)
}

/// A complete result with the caching hints that 2026-07-28 requires.
fn complete(to: &Value, mut members: Value) -> Value {
    members["resultType"] = json!("complete");
    members["ttlMs"] = json!(0);
    members["cacheScope"] = json!("private");
    result(to, members)
}

async fn next(arrived: &mut Arrived) -> Value {
    soon(arrived.recv()).await.expect("a message")
}

/// A list in two pages, with one of `items` in `member` on each.
fn pages(message: &Value, member: &str, items: [Value; 2]) -> Vec<Value> {
    let [first, second] = items;
    vec![match message["params"]["cursor"].as_str() {
        None => complete(message, json!({member: [first], "nextCursor": "zwei"})),
        Some("zwei") => complete(message, json!({member: [second]})),
        Some(other) => panic!("{other} is no cursor"),
    }]
}

#[runtimes::test]
async fn follows_the_pages_of_every_kind_of_list() {
    for revision in Revision::ALL {
        let (peer, _arrived) =
            checked_peer(*revision, |message| match message["method"].as_str() {
                Some("tools/list") => pages(
                    message,
                    "tools",
                    ["a", "b"].map(|name| json!({"name": name, "inputSchema": {"type": "object"}})),
                ),
                Some("prompts/list") => pages(
                    message,
                    "prompts",
                    ["a", "b"].map(|name| json!({"name": name})),
                ),
                Some("resources/list") => pages(
                    message,
                    "resources",
                    ["a", "b"].map(|name| json!({"uri": format!("x:{name}"), "name": name})),
                ),
                Some("resources/templates/list") => pages(
                    message,
                    "resourceTemplates",
                    ["a", "b"].map(
                        |name| json!({"uriTemplate": format!("x:{name}/{{id}}"), "name": name}),
                    ),
                ),
                other => panic!("{other:?} was not to be asked"),
            });
        let client = peer.connect(host()).await;
        let tools = client.list_tools().await.expect("tools");
        assert_eq!([&*tools[0].name, &*tools[1].name], ["a", "b"]);
        let prompts = client.list_prompts().await.expect("prompts");
        assert_eq!([&*prompts[0].name, &*prompts[1].name], ["a", "b"]);
        let resources = client.list_resources().await.expect("resources");
        assert_eq!([&*resources[0].uri, &*resources[1].uri], ["x:a", "x:b"]);
        let templates = client.list_resource_templates().await.expect("templates");
        assert_eq!([&*templates[0].name, &*templates[1].name], ["a", "b"]);
        for method in [
            "tools/list",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
        ] {
            assert_eq!(peer.params_of(method).len(), 2, "{method}");
        }
        client.close().await;
    }
}

#[runtimes::test]
async fn prompts_and_resources_that_require_input_are_retried_with_it() {
    let form = json!({"message": "Which?", "requestedSchema":
        {"type": "object", "properties": {"which": {"type": "string"}}, "required": ["which"]}});
    let (peer, _arrived) = checked_peer(Revision::V2026_07_28, move |message| {
        let params = &message["params"];
        if params["inputResponses"].is_null() {
            let requests = json!({"q": {"method": "elicitation/create", "params": form}});
            return vec![result(
                message,
                json!({"resultType": "input_required", "inputRequests": requests, "requestState": "s"}),
            )];
        }
        vec![match message["method"].as_str() {
            Some("prompts/get") => complete(message, json!({"messages": []})),
            _ => complete(message, json!({"contents": []})),
        }]
    });
    let client = peer
        .connect(host().on_elicit(|_| async {
            let mut content = JsonObject::new();
            content.insert("which".into(), "the second".into());
            let mut accepted = ElicitResult::new(ElicitAction::Accept);
            accepted.content = Some(content.into_iter().collect());
            Ok(accepted)
        }))
        .await;
    let arguments = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    client.get_prompt("p", &arguments).await.expect("a prompt");
    client.read_resource("x:y").await.expect("a resource");
    for (method, given) in [
        ("prompts/get", json!({"name": "p", "arguments": {"a": "b"}})),
        ("resources/read", json!({"uri": "x:y"})),
    ] {
        let sent_params = peer.params_of(method);
        assert_eq!(sent_params.len(), 2, "{method}");
        for (member, value) in given.as_object().expect("an object") {
            assert_eq!(&sent_params[1][member], value, "{method}");
        }
        assert!(sent_params[0]["requestState"].is_null());
        assert_eq!(sent_params[1]["requestState"], "s", "{method}");
        assert_eq!(
            sent_params[1]["inputResponses"],
            json!({"q": {"action": "accept", "content": {"which": "the second"}}}),
            "{method}"
        );
    }
    client.close().await;
}

/// A host whose model gives this answer, and the parameters of the sampling requests it receives.
fn model(answer: &Value) -> (ClientBuilder, mpsc::UnboundedReceiver<Value>) {
    let (sender, requests) = mpsc::unbounded_channel();
    let answer = answer.clone();
    let host = host()
        .sample_with(Arc::new(move |params| {
            let params = params.params.expect("parameters");
            let read: CreateMessageParams = params.decode().expect("a question");
            sender
                .send(serde_json::to_value(read).expect("JSON"))
                .expect("the test lives");
            let answer = Raw::from_serialize(&answer).expect("JSON");
            Box::pin(async { Ok::<_, RpcError>(answer) })
        }))
        .capabilities(|all| {
            all.sampling = Some(SamplingCapability::default().with_tools(JsonObject::new()));
        });
    (host, requests)
}

#[runtimes::test]
async fn declares_the_hosts_capabilities_in_every_revision() {
    for revision in Revision::ALL {
        let (peer, _arrived) = checked_peer(*revision, |_| vec![]);
        let client = peer.connect(host()).await;
        assert_eq!(peer.declared(), json!({}), "{revision}");
        client.close().await;

        let (peer, _arrived) = checked_peer(*revision, |_| vec![]);
        let (host, _requests) = model(&json!({}));
        let host = host
            .roots([Root::new("file:///a").expect("a root")])
            .implementation(Implementation::new("host", "1").with_title("Host"));
        let client = peer.connect(host).await;
        let declared = peer.declared();
        let roots = match revision.is_modern() {
            false => json!({"listChanged": true}),
            true => json!({}),
        };
        assert_eq!(declared["roots"], roots, "{revision}");
        let sampling = match revision.features().sampling_tools {
            true => json!({"tools": {}}),
            false => json!({}),
        };
        assert_eq!(declared["sampling"], sampling, "{revision}");
        let titled = !peer.identity()["title"].is_null();
        assert_eq!(titled, revision.features().titles, "{revision}");
        client.close().await;
    }
}

#[runtimes::test]
async fn notifies_of_changed_roots_and_returns_the_new_ones() {
    for revision in Revision::LEGACY {
        let (peer, mut arrived) =
            checked_peer(*revision, |message| match message["method"].as_str() {
                Some("notifications/roots/list_changed") => {
                    vec![json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})]
                }
                _ => vec![],
            });
        let now = Arc::new(Mutex::new("file:///old"));
        let then = now.clone();
        let client = peer
            .connect(host().list_roots_with(Arc::new(move |_| {
                let uri = *now.lock().expect("not poisoned");
                let roots = Raw::from_serialize(&json!({"roots": [{"uri": uri}]}));
                Box::pin(async { Ok(roots.expect("JSON")) })
            })))
            .await;
        *then.lock().expect("not poisoned") = "file:///new";
        client.roots_changed().await.expect("it is told");
        let notification = next(&mut arrived).await;
        assert_eq!(notification["method"], "notifications/roots/list_changed");
        let answer = next(&mut arrived).await;
        assert_eq!(answer["id"], "q");
        assert_eq!(
            answer["result"]["roots"],
            json!([{"uri": "file:///new"}]),
            "{revision}"
        );
        client.close().await;
    }
}

#[runtimes::test]
async fn rejects_roots_requests_without_roots() {
    for revision in Revision::LEGACY {
        let (peer, mut arrived) =
            checked_peer(*revision, |message| match message["method"].as_str() {
                Some(_) => vec![json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})],
                None => vec![],
            });
        let (host, _requests) = model(&json!({}));
        let client = peer.connect(host).await;
        let cancelled = Raw::from_serialize(&json!({"requestId": "none"})).ok();
        client
            .notify("notifications/cancelled", cancelled.as_ref())
            .await
            .expect("it is told");
        next(&mut arrived).await;
        let answer = next(&mut arrived).await;
        assert_eq!(answer["error"]["code"], -32601, "{revision}: {answer}");
        client.close().await;
    }
}

/// Sampling requests and results, each with the first revision that supports it.
fn sampled() -> Vec<(Revision, Value, Value)> {
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    let audio = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
    let answer = |content: &Value, reason: &str| json!({"role": "assistant", "model": "m", "content": content, "stopReason": reason});
    let request = |content: &Value| json!({"messages": [{"role": "user", "content": content}], "maxTokens": 9});
    let meta = json!({"example.com/trace": "t"});
    let uses = json!([
        {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}, "_meta": meta},
        {"type": "tool_use", "id": "2", "name": "g", "input": {}}
    ]);
    let results = json!([
        {"type": "tool_result", "toolUseId": "1", "content": [{"type": "text", "text": "r"}], "_meta": meta},
        {"type": "tool_result", "toolUseId": "2", "content": []}
    ]);
    let tools = json!([{"name": "f", "inputSchema": {"type": "object"}}, {"name": "g", "inputSchema": {"type": "object"}}]);
    let mut rounds = request(&json!({"type": "text", "text": "?"}));
    rounds["tools"] = tools;
    let messages = rounds["messages"].as_array_mut().expect("a list");
    messages.push(json!({"role": "assistant", "content": uses}));
    messages.push(json!({"role": "user", "content": results}));
    vec![
        (
            Revision::V2024_11_05,
            request(&image),
            answer(&image, "out of ink"),
        ),
        (
            Revision::V2025_03_26,
            request(&audio),
            answer(&audio, "endTurn"),
        ),
        (Revision::V2025_11_25, rounds, answer(&uses, "toolUse")),
    ]
}

#[runtimes::test]
async fn sampling_supports_every_kind_of_content() {
    for revision in Revision::ALL {
        for (since, params, answer) in sampled() {
            if *revision < since {
                continue;
            }
            let (host, mut requests) = model(&answer);
            let request = json!({"method": "sampling/createMessage", "params": params});
            let modern = revision.is_modern();
            let (peer, mut arrived) = checked_peer(*revision, move |message| {
                let needs_input = message["method"] == "tools/call"
                    && message["params"]["inputResponses"].is_null();
                vec![match (needs_input, modern) {
                    (true, true) => result(
                        message,
                        json!({"resultType": "input_required", "inputRequests": {"q": request}}),
                    ),
                    (true, false) => {
                        let mut request = request.clone();
                        request["jsonrpc"] = json!("2.0");
                        request["id"] = json!("q");
                        request
                    }
                    (false, true) => complete(message, json!({"content": []})),
                    // The response to the input request: the call, which is the first request, ends.
                    (false, false) => json!({"jsonrpc": "2.0", "id": 2, "result": {"content": []}}),
                }]
            });
            let client = peer.connect(host).await;
            let call = client.call_tool("t", json!({}));
            let (called, ()) = tokio::join!(call, async {
                assert_eq!(
                    requests.recv().await.expect("a question"),
                    params,
                    "{revision}"
                );
                next(&mut arrived).await;
                let answered = next(&mut arrived).await;
                let given = match modern {
                    true => &answered["params"]["inputResponses"]["q"],
                    false => &answered["result"],
                };
                assert_eq!(given, &answer, "{revision}");
            });
            called.expect("a result");
            client.close().await;
        }
    }
}

#[runtimes::test]
async fn accepts_unknown_server_capabilities() {
    for revision in Revision::ALL {
        let (mut peer, _arrived) = checked_peer(*revision, |message| {
            vec![complete(message, json!({"tools": []}))]
        });
        peer.capabilities = json!({"telepathy": {"range": 5}, "tools": {"colour": "red"}});
        let client = peer.connect(host()).await;
        assert_eq!(client.list_tools().await.expect("a list"), []);
        let declared = client.server_capabilities();
        assert_eq!(declared.extra["telepathy"], json!({"range": 5}));
        let tools = declared.tools.as_ref().expect("tools");
        assert_eq!(tools.extra["colour"], "red");
        client.close().await;
    }
}

#[runtimes::test]
async fn sends_known_arguments_with_completion_requests() {
    let params: CompleteParams = serde_json::from_value(json!({
        "ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "b", "value": "x"},
        "context": {"arguments": {"a": "paris"}}
    }))
    .expect("parameters");
    for revision in Revision::ALL {
        let (peer, _arrived) = checked_peer(*revision, |message| {
            vec![complete(message, json!({"completion": {"values": ["y"]}}))]
        });
        let client = peer.connect(host()).await;
        let given = client.complete(&params).await.expect("candidates");
        assert_eq!(given.completion.values, ["y"]);
        let sent = &peer.params_of("completion/complete")[0];
        assert_eq!(sent["argument"], json!({"name": "b", "value": "x"}));
        let context = match revision.features().completion_context {
            true => json!({"arguments": {"a": "paris"}}),
            false => Value::Null,
        };
        assert_eq!(sent["context"], context, "{revision}");
        client.close().await;
    }
}
