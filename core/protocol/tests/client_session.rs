//! What a client sends and how it takes what it hears: requests, questions, rounds, kept results, known tools.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use mcpline_protocol::client::{
    CallError, CallKey, ClientEvent, ClientRequest, ClientSession, InputRequiredResult,
    MAX_CACHED_PARAMS_BYTES, MAX_CACHED_RESULT_BYTES, MAX_CACHED_TOTAL_BYTES, NegotiatedSession,
    PingTimes, ResultCache, ToolCatalog, ToolPage, UrlElicitations,
};
use mcpline_protocol::vocabulary::{
    ClientCapabilities, ElicitationCapability, Implementation, LoggingLevel, RootsCapability,
    ServerCapabilities,
};
use mcpline_protocol::wire::{Incoming, Message, Method, read};
use mcpline_protocol::{Raw, Revision, RpcError};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);

fn raw(value: &Value) -> Raw {
    Raw::from_serialize(value).expect("serializes")
}

fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

fn message(value: &Value) -> Message {
    match read(Bytes::from(value.to_string())) {
        Ok(Incoming::Single(message)) => message,
        other => panic!("no single message: {other:?}"),
    }
}

fn conversation(revision: Revision) -> ClientSession<&'static str> {
    let opened = NegotiatedSession {
        revision,
        capabilities: ServerCapabilities::default(),
        info: None,
        instructions: None,
        initialized: None,
        next_id: 7,
    };
    let capabilities = ClientCapabilities::default()
        .with_elicitation(ElicitationCapability::default())
        .with_roots(RootsCapability::default());
    ClientSession::new(
        &opened,
        &Implementation::new("host", "1"),
        &capabilities,
        UrlElicitations::default(),
    )
}

fn asked(conversation: &mut ClientSession<&'static str>, ask: &ClientRequest<'_>) -> Value {
    let (_, message) = conversation.begin_request(ask, "caller", SECOND);
    json_of(&message)
}

#[test]
fn a_request_of_the_handshake_era_carries_what_the_caller_gave() {
    let mut conversation = conversation(Revision::V2025_11_25);
    let params = raw(&json!({"name": "echo", "arguments": {"a": 1}}));
    let plain = asked(
        &mut conversation,
        &ClientRequest::new("tools/call", Some(&params)),
    );
    assert_eq!(
        plain,
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
               "params": {"name": "echo", "arguments": {"a": 1}}})
    );
    let bare = asked(&mut conversation, &ClientRequest::new("tools/list", None));
    assert_eq!(
        bare,
        json!({"jsonrpc": "2.0", "id": 8, "method": "tools/list"})
    );
    let meta = raw(&json!({"com.example/x": [1], "progressToken": "mine"}));
    let ask = ClientRequest {
        meta: Some(&meta),
        wants_progress: true,
        log_level: Some(LoggingLevel::Debug),
        ..ClientRequest::new("tools/list", None)
    };
    // The token is the request's own, whatever the caller says, and levels are set by a request of their own.
    assert_eq!(
        asked(&mut conversation, &ask)["params"],
        json!({"_meta": {"progressToken": 9, "com.example/x": [1]}})
    );
}

#[test]
fn a_request_of_2026_says_who_asks_in_which_revision() {
    let mut conversation = conversation(Revision::V2026_07_28);
    let ask = ClientRequest {
        log_level: Some(LoggingLevel::Warning),
        ..ClientRequest::new("tools/list", None)
    };
    assert_eq!(
        asked(&mut conversation, &ask)["params"],
        json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "roots": {}},
            "io.modelcontextprotocol/logLevel": "warning",
        }})
    );
    let spaced = Raw::parse(Bytes::from_static(b" { } ")).expect("JSON");
    let params = asked(
        &mut conversation,
        &ClientRequest::new("tools/list", Some(&spaced)),
    );
    assert_eq!(
        params["params"].as_object().map(serde_json::Map::len),
        Some(1)
    );
}

#[test]
fn questions_are_answered_once_and_only_where_they_may_be_put() {
    let mut conversation = conversation(Revision::V2025_06_18);
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "?"}});
    let ClientEvent::InputRequest(request) = conversation.receive(message(&question), SECOND)
    else {
        panic!("no question");
    };
    // The same id again, while it is open.
    let ClientEvent::Reply(refusal) = conversation.receive(message(&question), SECOND) else {
        panic!("taken twice");
    };
    assert_eq!(json_of(&refusal)["error"]["code"], -32600);
    let answer = raw(&json!({"action": "decline"}));
    let sent = conversation
        .write_input_response(&request.id, Ok(&answer))
        .expect("it is open");
    assert_eq!(
        json_of(&sent),
        json!({"jsonrpc": "2.0", "id": "q", "result": {"action": "decline"}})
    );
    assert!(
        conversation
            .write_input_response(&request.id, Ok(&answer))
            .is_none()
    );
    // Withdrawn.
    assert!(matches!(
        conversation.receive(message(&question), SECOND),
        ClientEvent::InputRequest(_)
    ));
    let withdrawal = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "q", "reason": "late"}});
    assert!(matches!(
        conversation.receive(message(&withdrawal), SECOND),
        ClientEvent::InputRequestCancelled(_, Some(reason)) if reason == "late"
    ));
    assert!(
        conversation
            .write_input_response(&request.id, Err(&RpcError::internal_error("late")))
            .is_none()
    );
    // Not declared, and not of this revision.
    for method in ["sampling/createMessage", "tools/list"] {
        let question = json!({"jsonrpc": "2.0", "id": 1, "method": method});
        let ClientEvent::Reply(refusal) = conversation.receive(message(&question), SECOND) else {
            panic!("{method} was taken");
        };
        assert_eq!(json_of(&refusal)["error"]["code"], -32601);
    }
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let ClientEvent::Reply(pong) = conversation.receive(message(&ping), SECOND) else {
        panic!("no pong");
    };
    assert_eq!(
        json_of(&pong),
        json!({"jsonrpc": "2.0", "id": 2, "result": {}})
    );
}

#[test]
fn a_method_that_the_revision_defines_is_not_a_custom_request() {
    for revision in [
        Revision::V2024_11_05,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
    ] {
        let mut conversation = conversation(revision);
        conversation.serve_requests(["acme/pick", "tasks/get"]);
        for (id, method) in [(1, "acme/pick"), (2, "tasks/get")] {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": method});
            let event = conversation.receive(message(&request), SECOND);
            if method == "tasks/get" && revision == Revision::V2025_11_25 {
                let ClientEvent::Reply(refusal) = event else {
                    panic!("{revision}: {method} was taken");
                };
                assert_eq!(json_of(&refusal)["error"]["code"], -32601);
            } else {
                assert!(
                    matches!(event, ClientEvent::InputRequest(_)),
                    "{revision}: {method}"
                );
            }
        }
    }
}

#[test]
fn a_request_by_a_server_of_2026_is_dropped_with_a_warning() {
    let mut conversation = conversation(Revision::V2026_07_28);
    for method in ["elicitation/create", "roots/list", "ping", "no/such"] {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method});
        let heard = conversation.receive(message(&request), SECOND);
        let ClientEvent::Violation(warning) = heard else {
            panic!("{method}: {heard:?}");
        };
        assert!(warning.contains(method), "{warning}");
    }
    let unreadable = br#"{"jsonrpc":"2.0","id":"q","method":"roots/list","params":[1]}"#;
    let error = read(Bytes::from_static(unreadable)).expect_err("params must be an object");
    let heard = conversation.receive_unreadable(error, None);
    assert!(matches!(heard, ClientEvent::Violation(_)), "{heard:?}");
}

#[test]
fn an_unreadable_answer_ends_the_request_that_it_is_to() {
    let mut conversation = conversation(Revision::V2025_11_25);
    let (key, _) =
        conversation.begin_request(&ClientRequest::new("tools/list", None), "first", SECOND);
    let (second, _) =
        conversation.begin_request(&ClientRequest::new("tools/list", None), "second", SECOND);
    let broken = read(Bytes::from_static(
        br#"{"jsonrpc":"2.0","id":8,"result":{},"error":{}}"#,
    ));
    let heard = conversation.receive_unreadable(broken.expect_err("both"), None);
    assert!(
        matches!(
            heard,
            ClientEvent::RequestEnded("second", Err(CallError::Unreadable(_)))
        ),
        "{heard:?}"
    );
    assert!(conversation.handle(second).is_none());
    // Rubbish on a pipe is nobody's answer; on the stream of a request it is that request's.
    let rubbish = || read(Bytes::from_static(b"<html>")).expect_err("no JSON");
    assert!(matches!(
        conversation.receive_unreadable(rubbish(), None),
        ClientEvent::Ignored(_)
    ));
    let heard =
        conversation.receive_unreadable(rubbish(), Some(CallKey::from_number(key.number())));
    assert!(
        matches!(
            heard,
            ClientEvent::RequestEnded("first", Err(CallError::Unreadable(_)))
        ),
        "{heard:?}"
    );
}

#[test]
fn a_retry_repeats_the_request_with_the_answers_and_the_state_byte_for_byte() {
    let result = Raw::parse(Bytes::from_static(
        br#"{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"?"}},"where":{"method":"roots/list"}},"requestState":"a\u0062\/c"}"#,
    ))
    .expect("JSON");
    let needed = InputRequiredResult::of(&result)
        .expect("well formed")
        .expect("it asks");
    assert_eq!(needed.input_requests.len(), 2);
    assert_eq!(needed.input_requests[0].key, "who");
    assert_eq!(needed.input_requests[1].params, None);
    let params =
        raw(&json!({"name": "greet", "inputResponses": {"old": {}}, "requestState": "old"}));
    let answers = [
        ("who".to_owned(), raw(&json!({"action": "decline"}))),
        ("where".to_owned(), raw(&json!({"roots": []}))),
    ];
    assert_eq!(
        needed.retry(Some(&params), &answers).as_str(),
        r#"{"name":"greet","inputResponses":{"who":{"action":"decline"},"where":{"roots":[]}},"requestState":"a\u0062\/c"}"#
    );
    // Without a state, none is made up.
    let stateless = InputRequiredResult {
        state: None,
        ..needed
    };
    assert_eq!(
        stateless.retry(None, &answers[..1]).as_str(),
        r#"{"inputResponses":{"who":{"action":"decline"}}}"#
    );
}

#[test]
fn only_a_result_that_says_so_asks_and_it_must_ask_something() {
    for result in [
        json!({}),
        json!({"resultType": "complete"}),
        json!({"inputRequests": {"a": 1}}),
    ] {
        assert_eq!(InputRequiredResult::of(&raw(&result)), Ok(None), "{result}");
    }
    for rest in [
        json!({}),
        json!({"inputRequests": []}),
        json!({"inputRequests": {"a": {}}}),
        json!({"requestState": 1}),
    ] {
        let mut result = rest;
        result["resultType"] = json!("input_required");
        assert!(InputRequiredResult::of(&raw(&result)).is_err(), "{result}");
    }
}

fn notification(method: &str, params: &Value) -> mcpline_protocol::wire::Notification {
    match message(&json!({"jsonrpc": "2.0", "method": method, "params": params})) {
        Message::Notification(notification) => notification,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_result_is_kept_for_as_long_as_it_says_and_until_something_changes() {
    let mut cache = ResultCache::new();
    let fresh = raw(&json!({"tools": [], "ttlMs": 2000, "cacheScope": "private"}));
    let page = raw(&json!({"cursor": ""}));
    cache.insert(&Method::ToolsList, None, &fresh, cache.generation(), SECOND);
    assert_eq!(
        cache.get(&Method::ToolsList, None, 2 * SECOND),
        Some(fresh.clone())
    );
    assert_eq!(cache.get(&Method::ToolsList, Some(&page), 2 * SECOND), None);
    assert_eq!(cache.get(&Method::PromptsList, None, 2 * SECOND), None);
    assert_eq!(cache.get(&Method::ToolsList, None, 3 * SECOND), None);
    // Never: without a time, with none, a call.
    for (method, result) in [
        (Method::ToolsList, json!({"tools": []})),
        (Method::ToolsList, json!({"tools": [], "ttlMs": 0})),
        (Method::ToolsList, json!({"tools": [], "ttlMs": -5})),
        (Method::ToolsCall, json!({"ttlMs": 5000})),
    ] {
        cache.clear();
        cache.insert(&method, None, &raw(&result), cache.generation(), SECOND);
        assert_eq!(cache.get(&method, None, SECOND), None, "{result}");
    }
    // What changed while the answer was on its way is not kept.
    let before = cache.generation();
    cache.invalidate(&notification(
        "notifications/tools/list_changed",
        &json!({}),
    ));
    cache.insert(&Method::ToolsList, None, &fresh, before, SECOND);
    assert_eq!(cache.get(&Method::ToolsList, None, SECOND), None);
}

#[test]
fn what_is_kept_is_forgotten_when_requests_are_authorized_by_something_else() {
    let mut cache = ResultCache::new();
    let fresh = raw(&json!({"tools": [], "ttlMs": 60_000, "cacheScope": "private"}));
    let list = Method::ToolsList;
    cache.set_authorization(1);
    cache.insert(&list, None, &fresh, cache.generation(), SECOND);
    cache.set_authorization(1);
    assert!(cache.get(&list, None, SECOND).is_some());
    let before = cache.generation();
    cache.set_authorization(2);
    assert_eq!(cache.get(&list, None, SECOND), None);
    // An answer to somebody else that was on its way isn't kept either.
    cache.insert(&list, None, &fresh, before, SECOND);
    assert_eq!(cache.get(&list, None, SECOND), None);
}

#[test]
fn what_is_kept_is_bounded_in_bytes() {
    let mut cache = ResultCache::new();
    let text = "x".repeat(MAX_CACHED_RESULT_BYTES - 100);
    let large = raw(&json!({"tools": [], "ttlMs": 60_000, "text": text}));
    let page = |number: usize| raw(&json!({"cursor": number.to_string()}));
    let list = Method::ToolsList;
    let count = MAX_CACHED_TOTAL_BYTES / MAX_CACHED_RESULT_BYTES + 8;
    for number in 0..count {
        let now = Duration::from_millis(number as u64);
        cache.insert(&list, Some(&page(number)), &large, cache.generation(), now);
    }
    let kept: Vec<_> = (0..count)
        .filter(|number| cache.get(&list, Some(&page(*number)), SECOND).is_some())
        .collect();
    assert_eq!(kept.len(), MAX_CACHED_TOTAL_BYTES / MAX_CACHED_RESULT_BYTES);
    // The first to lapse made room.
    assert_eq!(kept.last(), Some(&(count - 1)));

    // What was forgotten makes room as well.
    cache.remove_pages(&list);
    for number in 0..8 {
        cache.insert(
            &list,
            Some(&page(number)),
            &large,
            cache.generation(),
            SECOND,
        );
    }
    assert!((0..8).all(|number| cache.get(&list, Some(&page(number)), SECOND).is_some()));
}

#[test]
fn results_of_long_parameters_are_not_kept() {
    let mut cache = ResultCache::new();
    let small = raw(&json!({"tools": [], "ttlMs": 60_000}));
    let list = Method::ToolsList;
    for (length, is_kept) in [(100, true), (MAX_CACHED_PARAMS_BYTES, false)] {
        let page = raw(&json!({"cursor": "c".repeat(length)}));
        cache.insert(&list, Some(&page), &small, cache.generation(), SECOND);
        assert_eq!(
            cache.get(&list, Some(&page), SECOND).is_some(),
            is_kept,
            "{length}"
        );
    }
}

#[test]
fn a_notification_forgets_just_what_it_is_about() {
    let mut cache = ResultCache::new();
    let result = raw(&json!({"ttlMs": 60_000}));
    let uri = |uri: &str| raw(&json!({"uri": uri}));
    let read = Method::ResourcesRead;
    for (method, params) in [
        (Method::ToolsList, None),
        (Method::ResourcesTemplatesList, None),
        (read.clone(), Some(uri("file:///a"))),
        (read.clone(), Some(uri("file:///b"))),
    ] {
        cache.insert(
            &method,
            params.as_ref(),
            &result,
            cache.generation(),
            SECOND,
        );
    }
    cache.invalidate(&notification(
        "notifications/resources/updated",
        &json!({"uri": "file:///a/part"}),
    ));
    assert!(cache.get(&read, Some(&uri("file:///a")), SECOND).is_none());
    assert!(cache.get(&read, Some(&uri("file:///b")), SECOND).is_some());
    cache.invalidate(&notification(
        "notifications/resources/list_changed",
        &json!({}),
    ));
    assert!(
        cache
            .get(&Method::ResourcesTemplatesList, None, SECOND)
            .is_none()
    );
    assert!(cache.get(&Method::ToolsList, None, SECOND).is_some());
}

#[test]
fn tools_whose_headers_break_a_rule_are_left_out_where_headers_are_sent() {
    let page = raw(&json!({"nextCursor": "", "tools": [
        {"name": "good", "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}},
        {"name": "bad", "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "a b"}}}},
    ], "ttlMs": 5}));
    let mut book = ToolCatalog::new();
    let learnt = book.add_raw_page(&page, true).expect("a page");
    let rest = learnt.page.expect("one is left out");
    let names: Vec<Value> = json_of(rest.as_bytes())["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(names, [json!("good")]);
    assert_eq!(json_of(rest.as_bytes())["ttlMs"], 5);
    assert!(learnt.warnings[0].contains("bad"), "{:?}", learnt.warnings);
    let arguments = raw(&json!({"region": "Zürich"}));
    assert_eq!(book.headers("good", Some(&arguments)).len(), 1);
    assert!(book.headers("unknown", Some(&arguments)).is_empty());
    // Elsewhere the annotation means nothing.
    let learnt = ToolCatalog::new()
        .add_raw_page(&page, false)
        .expect("a page");
    assert_eq!(
        learnt,
        mcpline_protocol::client::FilteredToolPage::default()
    );
}

#[test]
fn few_of_the_tools_that_are_left_out_are_named() {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "a b"}}});
    let tools: Vec<Value> = (0..1_000)
        .map(|number| json!({"name": format!("{number}{}", "x".repeat(1_000)), "inputSchema": schema}))
        .collect();
    let learnt = ToolCatalog::new().add_raw_page(&raw(&json!({"tools": tools})), true);
    let warnings = learnt.expect("a page").warnings;
    assert_eq!(warnings.len(), 17);
    assert_eq!(warnings[16], "984 more tools are left out");
    assert!(warnings.iter().all(|warning| warning.len() < 500));
}

#[test]
fn an_error_repeats_little_of_the_name_of_a_tool_without_input_schema() {
    let page = |name: String| raw(&json!({"tools": [{"name": name}]}));
    let error = ToolCatalog::new().add_raw_page(&page("x".repeat(1_000_000)), true);
    let error = error.expect_err("it has no input schema");
    assert!(error.len() < 500, "{} bytes", error.len());
    let error = ToolCatalog::new().add_raw_page(&page("add".to_owned()), true);
    assert_eq!(
        error,
        Err("the tool \"add\" has no input schema".to_owned())
    );
}

#[test]
fn an_error_repeats_little_of_the_key_of_an_input_request_without_method() {
    let of = |key: String| {
        let needed = json!({"resultType": "input_required", "inputRequests": {key: {}}});
        InputRequiredResult::of(&raw(&needed)).expect_err("it has no method")
    };
    let error = of("x".repeat(1_000_000));
    assert!(error.len() < 200, "{} bytes", error.len());
    assert_eq!(of("who".to_owned()), "input request \"who\" has no method");
}

#[test]
fn a_large_page_is_not_read_inline_and_reading_it_can_be_interrupted() {
    let tool =
        json!({"name": "x", "inputSchema": {"type": "object"}, "description": "d".repeat(100_000)});
    let page = raw(&json!({"tools": [tool]}));
    assert!(ToolPage::read_inline(&page, false).is_none());
    assert!(ToolPage::read(&page, false, &AtomicBool::new(true)).is_err());
    assert!(ToolPage::read(&page, false, &AtomicBool::new(false)).is_ok());
    let small = raw(&json!({"tools": []}));
    assert!(matches!(ToolPage::read_inline(&small, false), Some(Ok(_))));
}

#[test]
fn structured_content_is_held_against_the_schema_of_the_list() {
    let page = raw(&json!({"tools": [
        {"name": "add", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": true},
         "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}},
        {"name": "say", "inputSchema": {"type": "object"}},
    ]}));
    let mut book = ToolCatalog::new();
    book.add_raw_page(&page, true).expect("a page");
    assert!(book.is_repeatable("add") && !book.is_repeatable("say"));
    let checked = |tool: &str, result: Value| {
        let check = book.output_check(tool, &raw(&result))?;
        let elsewhere = check.run(&AtomicBool::new(false));
        assert_eq!(check.run_inline(), Some(elsewhere.clone()));
        Some(elsewhere)
    };
    let fits = json!({"content": [], "structuredContent": {"sum": 1}});
    assert_eq!(checked("add", fits), Some(Ok(())));
    assert_eq!(
        checked("add", json!({"content": [], "isError": true})),
        None
    );
    assert_eq!(checked("say", json!({"content": []})), None);
    for wrong in [
        json!({"content": []}),
        json!({"content": [], "structuredContent": {"sum": "1"}}),
    ] {
        let error = checked("add", wrong).expect("it has a schema");
        let error = error.expect_err("it doesn't fit");
        assert!(error.contains("add"), "{error}");
    }
    assert!(
        book.add_raw_page(&raw(&json!({"tools": [{"name": "x"}]})), true)
            .is_err()
    );
    assert!(book.add_raw_page(&raw(&json!({})), true).is_err());
}

#[test]
fn output_that_takes_long_to_check_is_not_checked_inline() {
    let mut defs = serde_json::Map::new();
    defs.insert("0".to_owned(), json!({"maxLength": 50_000}));
    for level in 1..=18 {
        let lower = json!({"$ref": format!("#/$defs/{}", level - 1)});
        let twice = json!({"anyOf": [{"allOf": [lower]}, {"allOf": [lower]}]});
        defs.insert(level.to_string(), twice);
    }
    let schema =
        json!({"type": "object", "properties": {"text": {"$ref": "#/$defs/18"}}, "$defs": defs});
    let page = raw(&json!({"tools": [
        {"name": "hostile", "inputSchema": {"type": "object"}, "outputSchema": schema},
        {"name": "large", "inputSchema": {"type": "object"}, "outputSchema": {
            "type": "object", "$comment": "c".repeat(1_000_000), "minProperties": 1,
        }},
    ]}));
    let mut book = ToolCatalog::new();
    book.add_raw_page(&page, false).expect("a page");
    let result = raw(&json!({"content": [], "structuredContent": {"text": "x".repeat(60_000)}}));
    let hostile = book.output_check("hostile", &result).expect("a schema");
    assert_eq!(hostile.run_inline(), None);
    let error = hostile.run(&AtomicBool::new(false)).expect_err("too much");
    assert!(
        error.contains("the validation limit was reached"),
        "{error}"
    );
    let small = raw(&json!({"content": [], "structuredContent": {"x": 1}}));
    let large = book.output_check("large", &small).expect("a schema");
    assert_eq!(large.run_inline(), None);
    let interrupted = large.run(&AtomicBool::new(true)).expect_err("interrupted");
    assert!(interrupted.contains("limit"), "{interrupted}");
    assert_eq!(large.run(&AtomicBool::new(false)), Ok(()));
    assert_eq!(large.run_inline(), Some(Ok(())));
}

#[test]
fn an_unreadable_request_is_refused_under_its_id() {
    let mut conversation = conversation(Revision::V2025_11_25);
    let (key, _) =
        conversation.begin_request(&ClientRequest::new("tools/list", None), "caller", SECOND);
    let question = br#"{"jsonrpc":"2.0","id":"q","method":"roots/list","params":[1]}"#;
    let error = || read(Bytes::from_static(question)).expect_err("params must be an object");
    // On a stream of ours it is no answer to what we asked.
    for course in [None, Some(CallKey::from_number(key.number()))] {
        let ClientEvent::Reply(refusal) = conversation.receive_unreadable(error(), course) else {
            panic!("the server waits");
        };
        let refusal = json_of(&refusal);
        assert_eq!(
            (&refusal["id"], &refusal["error"]["code"]),
            (&json!("q"), &json!(-32602))
        );
    }
    assert!(conversation.handle(key).is_some());
}

#[test]
fn a_bare_id_is_an_answer_without_a_result() {
    let mut conversation = conversation(Revision::V2025_11_25);
    asked(&mut conversation, &ClientRequest::new("ping", None));
    let error = read(Bytes::from_static(br#"{"jsonrpc":"2.0","id":7}"#)).expect_err("no message");
    let heard = conversation.receive_unreadable(error, None);
    assert!(
        matches!(
            heard,
            ClientEvent::RequestEnded("caller", Err(CallError::Unreadable(_)))
        ),
        "{heard:?}"
    );
}

#[test]
fn what_is_remembered_of_tools_is_bounded_in_bytes() {
    let mut book = ToolCatalog::new();
    let schema = json!({"type": "object", "$comment": "c".repeat(10 * 1024 * 1024)});
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}, "outputSchema": schema});
    // The first is learnt again, in its own place.
    for name in ["a", "b", "c", "d", "a"] {
        let page = raw(&json!({"tools": [tool(name)]}));
        book.add_raw_page(&page, false).expect("a page");
    }
    let result = raw(&json!({"content": []}));
    let known = ["a", "b", "c", "d"].map(|name| book.output_check(name, &result).is_some());
    assert_eq!(known, [true, true, true, false]);
}

#[test]
fn a_server_ends_nothing_but_subscriptions() {
    let mut conversation = conversation(Revision::V2026_07_28);
    let (call, _) =
        conversation.begin_request(&ClientRequest::new("tools/call", None), "call", SECOND);
    let (key, _) = conversation.begin_request(
        &ClientRequest::new("subscriptions/listen", None),
        "listener",
        SECOND,
    );
    let cancellation = |id: u64| {
        message(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": id, "reason": "moving"}}),
        )
    };
    for id in [call.number(), 99] {
        let heard = conversation.receive(cancellation(id), SECOND);
        assert!(matches!(heard, ClientEvent::Ignored(_)), "{heard:?}");
    }
    let heard = conversation.receive(cancellation(key.number()), SECOND);
    let ClientEvent::SubscriptionEnded(ended, "listener", Some(reason)) = heard else {
        panic!("{heard:?}");
    };
    assert_eq!((ended, reason.as_str()), (key, "moving"));
    let heard = conversation.receive(cancellation(key.number()), SECOND);
    assert!(matches!(heard, ClientEvent::Ignored(_)), "{heard:?}");
    assert_eq!(conversation.handle(call), Some(&"call"));
}

#[test]
fn a_notification_belongs_to_the_open_subscription_that_it_names() {
    let changed = |meta: Value| {
        message(
            &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                        "params": {"_meta": meta}}),
        )
    };
    let id = "io.modelcontextprotocol/subscriptionId";
    let mut conversation = conversation(Revision::V2026_07_28);
    let (call, _) =
        conversation.begin_request(&ClientRequest::new("tools/call", None), "call", SECOND);
    let (old, _) = conversation.begin_request(
        &ClientRequest::new("subscriptions/listen", None),
        "old",
        SECOND,
    );
    let (new, _) = conversation.begin_request(
        &ClientRequest::new("subscriptions/listen", None),
        "new",
        SECOND,
    );
    let heard = conversation.receive(changed(json!({id: old.number()})), SECOND);
    assert!(matches!(heard, ClientEvent::Notification(_)), "{heard:?}");
    conversation.cancel(old, "replaced").expect("it was open");
    let text = new.number().to_string();
    for other in [
        json!(old.number()),
        json!(call.number()),
        json!(99),
        json!(text),
        json!(null),
    ] {
        let heard = conversation.receive(changed(json!({id: other})), SECOND);
        assert!(
            matches!(heard, ClientEvent::UnknownSubscription(_)),
            "{other}: {heard:?}"
        );
    }
    for meta in [json!({}), json!({id: new.number()})] {
        let heard = conversation.receive(changed(meta), SECOND);
        assert!(matches!(heard, ClientEvent::Notification(_)), "{heard:?}");
    }
    // Before, the member means nothing.
    let mut before = self::conversation(Revision::V2025_11_25);
    let heard = before.receive(changed(json!({id: 99})), SECOND);
    assert!(matches!(heard, ClientEvent::Notification(_)), "{heard:?}");
}

#[test]
fn a_log_message_has_data_and_a_level_of_the_protocol() {
    for revision in Revision::ALL {
        let mut conversation = conversation(*revision);
        let mut hear = |params: Value| {
            let log =
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params});
            conversation.receive(message(&log), SECOND)
        };
        for params in [
            json!({"level": "warn", "data": "x"}),
            json!({"level": 3, "data": "x"}),
            json!({"data": "x"}),
            json!({"level": "error"}),
        ] {
            let heard = hear(params);
            assert!(matches!(heard, ClientEvent::Violation(_)), "{heard:?}");
        }
        for params in [
            json!({"level": "warning", "data": "x"}),
            json!({"level": "error", "data": null}),
        ] {
            let heard = hear(params);
            assert!(matches!(heard, ClientEvent::Notification(_)), "{heard:?}");
        }
    }
}

#[test]
fn an_acknowledgement_is_that_of_the_subscription_which_it_names() {
    let mut conversation = conversation(Revision::V2026_07_28);
    let (call, _) =
        conversation.begin_request(&ClientRequest::new("tools/call", None), "call", SECOND);
    let (key, _) = conversation.begin_request(
        &ClientRequest::new("subscriptions/listen", None),
        "listener",
        SECOND,
    );
    let acknowledgement = |meta: Value| {
        message(
            &json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                    "params": {"_meta": meta, "notifications": {}}}),
        )
    };
    let id = "io.modelcontextprotocol/subscriptionId";
    let heard = conversation.receive(acknowledgement(json!({})), SECOND);
    assert!(matches!(heard, ClientEvent::Notification(_)), "{heard:?}");
    for other in [json!(call.number()), json!(99), json!("8")] {
        let heard = conversation.receive(acknowledgement(json!({id: other})), SECOND);
        assert!(
            matches!(heard, ClientEvent::UnknownSubscription(_)),
            "{heard:?}"
        );
    }
    let heard = conversation.receive(acknowledgement(json!({id: key.number()})), SECOND);
    assert!(
        matches!(heard, ClientEvent::SubscriptionAcknowledged(named, _) if named == key),
        "{heard:?}"
    );
}

const PINGS: PingTimes = PingTimes {
    interval: Duration::from_secs(10),
    timeout: Duration::from_secs(4),
};

/// A conversation that has been pinged since second 1.
fn pinged(revision: Revision) -> ClientSession<&'static str> {
    let mut conversation = conversation(revision);
    conversation.start_pings(PINGS, SECOND);
    conversation
}

#[test]
fn a_silent_server_is_pinged_and_one_that_says_something_is_not() {
    for revision in Revision::ALL {
        let mut conversation = pinged(*revision);
        if revision.is_modern() {
            assert_eq!(conversation.poll_deadline(), None, "there is no ping");
            assert!(conversation.ping_if_due(|| "ping", 60 * SECOND).is_none());
            continue;
        }
        assert_eq!(conversation.poll_deadline(), Some(11 * SECOND));
        assert!(conversation.ping_if_due(|| "ping", 10 * SECOND).is_none());
        // Whatever the server says puts it off.
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
        conversation.receive(message(&log), 8 * SECOND);
        assert_eq!(conversation.note_activity(8 * SECOND), None);
        assert_eq!(conversation.poll_deadline(), Some(18 * SECOND));
        assert!(conversation.ping_if_due(|| "ping", 11 * SECOND).is_none());
        let (key, ping) = conversation
            .ping_if_due(|| "ping", 18 * SECOND)
            .expect("a ping");
        assert_eq!(
            json_of(&ping),
            json!({"jsonrpc": "2.0", "id": 7, "method": "ping"})
        );
        assert!(conversation.is_ping(key));
        // One at a time, and the next one after as much silence again.
        assert!(conversation.ping_if_due(|| "ping", 19 * SECOND).is_none());
        let pong = message(&json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
        let heard = conversation.receive(pong, 20 * SECOND);
        assert!(
            matches!(heard, ClientEvent::RequestEnded("ping", Ok(_))),
            "{heard:?}"
        );
        assert_eq!(conversation.note_activity(20 * SECOND), None);
        assert_eq!(conversation.poll_deadline(), Some(30 * SECOND));
    }
}

#[test]
fn a_ping_without_an_answer_is_given_up_in_its_own_time() {
    let mut conversation = pinged(Revision::V2025_11_25);
    let call = ClientRequest::new("tools/call", None);
    conversation.begin_request(&call, "caller", SECOND);
    let (key, _) = conversation
        .ping_if_due(|| "ping", 11 * SECOND)
        .expect("a ping");
    assert_eq!(conversation.poll_deadline(), Some(15 * SECOND));
    assert!(conversation.handle_timeout(14 * SECOND).is_empty());
    let late = conversation.handle_timeout(15 * SECOND);
    let [(late, overdue)] = late.as_slice() else {
        panic!("{late:?}");
    };
    assert_eq!((*late, overdue.handle), (key, "ping"));
    assert!(conversation.is_ping(key));
    assert_eq!(conversation.in_flight(), 1, "the call goes on");
    // Nothing falls due any more when it is over.
    assert_eq!(conversation.close(), ["caller"]);
    assert_eq!(conversation.poll_deadline(), None);
}

#[test]
fn a_ping_in_flight_needs_no_answer_once_the_server_has_said_something() {
    let mut conversation = pinged(Revision::V2025_11_25);
    let ping = conversation.ping_if_due(|| "ping", 11 * SECOND);
    let (key, _) = ping.expect("a ping");
    let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
    conversation.receive(message(&log), 14 * SECOND);
    assert_eq!(conversation.note_activity(14 * SECOND), Some(key));
    assert!(conversation.handle_timeout(15 * SECOND).is_empty());
    assert_eq!(conversation.poll_deadline(), Some(24 * SECOND));
    // Its answer comes too late for anybody to wait for it.
    let pong = message(&json!({"jsonrpc": "2.0", "id": key.number(), "result": {}}));
    let heard = conversation.receive(pong, 16 * SECOND);
    assert!(matches!(heard, ClientEvent::Ignored(_)), "{heard:?}");
}

#[test]
fn a_ping_that_does_not_get_through_is_sent_again_in_what_is_left_of_its_time() {
    let mut conversation = pinged(Revision::V2025_11_25);
    let ping = conversation.ping_if_due(|| "ping", 11 * SECOND);
    let (first, _) = ping.expect("a ping");
    assert!(!conversation.note_lost_ping(CallKey::from_number(first.number() + 1), 11 * SECOND));
    assert!(conversation.note_lost_ping(first, 11 * SECOND));
    assert_eq!(conversation.poll_deadline(), Some(12 * SECOND));
    let ping = conversation.ping_if_due(|| "another", 12 * SECOND);
    let (second, message) = ping.expect("a ping");
    let sent = json!({"jsonrpc": "2.0", "id": first.number() + 1, "method": "ping"});
    assert_eq!(json_of(&message), sent);
    assert!(conversation.is_ping(second) && !conversation.is_ping(first));
    assert!(!conversation.note_lost_ping(first, 12 * SECOND));
    // The time of the first holds for all of them.
    assert_eq!(conversation.poll_deadline(), Some(15 * SECOND));
    assert!(conversation.note_lost_ping(second, 14 * SECOND + SECOND / 2));
    let late = conversation.handle_timeout(15 * SECOND);
    let [(late, overdue)] = late.as_slice() else {
        panic!("{late:?}");
    };
    assert_eq!((*late, overdue.handle), (second, "ping"));
    let (waited, in_all) = (PINGS.timeout, true);
    assert_eq!(overdue.error, CallError::TimedOut { waited, in_all });
}

#[test]
fn nothing_is_pinged_once_that_has_been_ended() {
    let mut conversation = pinged(Revision::V2025_11_25);
    let ping = conversation.ping_if_due(|| "ping", 11 * SECOND);
    let (key, _) = ping.expect("a ping");
    assert_eq!(conversation.stop_pings(), Some(key));
    assert_eq!(conversation.poll_deadline(), None);
    assert!(!conversation.is_ping(key));
    assert!(conversation.ping_if_due(|| "ping", 60 * SECOND).is_none());
}
