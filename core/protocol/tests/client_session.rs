//! What a client sends and how it handles what it receives: requests, input requests, rounds, cached results, known
//! tools.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use mcpline_protocol::client::{
    ClientEvent, ClientSession, InputRequiredResult, MAX_CACHED_PARAMS_BYTES,
    MAX_CACHED_RESULT_BYTES, MAX_CACHED_TOTAL_BYTES, NegotiatedSession, OutgoingClientRequest,
    OutgoingRequestError, OutgoingRequestId, PingTimes, ResultCache, ToolAdmission, ToolCatalog,
    ToolPage, UrlElicitations,
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

fn session(revision: Revision) -> ClientSession<&'static str> {
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

fn request_json(
    session: &mut ClientSession<&'static str>,
    request: &OutgoingClientRequest<'_>,
) -> Value {
    let (_, message) = session.begin_request(request, "caller", SECOND);
    json_of(&message)
}

#[test]
fn handshake_era_requests_carry_the_callers_params_and_meta() {
    let mut session = session(Revision::V2025_11_25);
    let params = raw(&json!({"name": "echo", "arguments": {"a": 1}}));
    let plain = request_json(
        &mut session,
        &OutgoingClientRequest::new("tools/call", Some(&params)),
    );
    assert_eq!(
        plain,
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
               "params": {"name": "echo", "arguments": {"a": 1}}})
    );
    let bare = request_json(
        &mut session,
        &OutgoingClientRequest::new("tools/list", None),
    );
    assert_eq!(
        bare,
        json!({"jsonrpc": "2.0", "id": 8, "method": "tools/list"})
    );
    let meta = raw(&json!({"com.example/x": [1], "progressToken": "mine"}));
    let outgoing = OutgoingClientRequest {
        meta: Some(&meta),
        wants_progress: true,
        log_level: Some(LoggingLevel::Debug),
        ..OutgoingClientRequest::new("tools/list", None)
    };
    // The session replaces the caller's progress token. Log levels are set with a separate request.
    assert_eq!(
        request_json(&mut session, &outgoing)["params"],
        json!({"_meta": {"progressToken": 9, "com.example/x": [1]}})
    );
}

#[test]
fn modern_requests_carry_revision_client_info_and_capabilities() {
    let mut session = session(Revision::V2026_07_28);
    let outgoing = OutgoingClientRequest {
        log_level: Some(LoggingLevel::Warning),
        ..OutgoingClientRequest::new("tools/list", None)
    };
    assert_eq!(
        request_json(&mut session, &outgoing)["params"],
        json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "roots": {}},
            "io.modelcontextprotocol/logLevel": "warning",
        }})
    );
    let spaced = Raw::parse(Bytes::from_static(b" { } ")).expect("JSON");
    let params = request_json(
        &mut session,
        &OutgoingClientRequest::new("tools/list", Some(&spaced)),
    );
    assert_eq!(
        params["params"].as_object().map(serde_json::Map::len),
        Some(1)
    );
}

#[test]
fn answers_each_supported_input_request_once() {
    let mut session = session(Revision::V2025_06_18);
    let input_request = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "?"}});
    let ClientEvent::InputRequest(request) = session.receive(message(&input_request), SECOND)
    else {
        panic!("no question");
    };
    // The same id again, while the first is open.
    let ClientEvent::Reply(refusal) = session.receive(message(&input_request), SECOND) else {
        panic!("taken twice");
    };
    assert_eq!(json_of(&refusal)["error"]["code"], -32600);
    let answer = raw(&json!({"action": "decline"}));
    let sent = session
        .write_input_response(&request.id, Ok(&answer))
        .expect("it is open");
    assert_eq!(
        json_of(&sent),
        json!({"jsonrpc": "2.0", "id": "q", "result": {"action": "decline"}})
    );
    assert!(
        session
            .write_input_response(&request.id, Ok(&answer))
            .is_none()
    );
    // Cancelled.
    assert!(matches!(
        session.receive(message(&input_request), SECOND),
        ClientEvent::InputRequest(_)
    ));
    let withdrawal = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "q", "reason": "late"}});
    assert!(matches!(
        session.receive(message(&withdrawal), SECOND),
        ClientEvent::InputRequestCancelled(_, Some(reason)) if reason == "late"
    ));
    assert!(
        session
            .write_input_response(&request.id, Err(&RpcError::internal_error("late")))
            .is_none()
    );
    // Not declared, and not in this revision.
    for method in ["sampling/createMessage", "tools/list"] {
        let input_request = json!({"jsonrpc": "2.0", "id": 1, "method": method});
        let ClientEvent::Reply(refusal) = session.receive(message(&input_request), SECOND) else {
            panic!("{method} was taken");
        };
        assert_eq!(json_of(&refusal)["error"]["code"], -32601);
    }
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let ClientEvent::Reply(pong) = session.receive(message(&ping), SECOND) else {
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
        let mut session = session(revision);
        session.serve_requests(["acme/pick", "tasks/get"]);
        for (id, method) in [(1, "acme/pick"), (2, "tasks/get")] {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": method});
            let event = session.receive(message(&request), SECOND);
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
fn drops_requests_of_modern_servers_with_a_warning() {
    let mut session = session(Revision::V2026_07_28);
    for method in ["elicitation/create", "roots/list", "ping", "no/such"] {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method});
        let event = session.receive(message(&request), SECOND);
        let ClientEvent::Violation(warning) = event else {
            panic!("{method}: {event:?}");
        };
        assert!(warning.contains(method), "{warning}");
    }
    let unreadable = br#"{"jsonrpc":"2.0","id":"q","method":"roots/list","params":[1]}"#;
    let error = read(Bytes::from_static(unreadable)).expect_err("params must be an object");
    let event = session.receive_unreadable(error, None);
    assert!(matches!(event, ClientEvent::Violation(_)), "{event:?}");
}

#[test]
fn unreadable_responses_end_the_request_they_belong_to() {
    let mut session = session(Revision::V2025_11_25);
    let (key, _) = session.begin_request(
        &OutgoingClientRequest::new("tools/list", None),
        "first",
        SECOND,
    );
    let (second, _) = session.begin_request(
        &OutgoingClientRequest::new("tools/list", None),
        "second",
        SECOND,
    );
    let broken = read(Bytes::from_static(
        br#"{"jsonrpc":"2.0","id":8,"result":{},"error":{}}"#,
    ));
    let event = session.receive_unreadable(broken.expect_err("both"), None);
    assert!(
        matches!(
            event,
            ClientEvent::RequestEnded("second", Err(OutgoingRequestError::Unreadable(_)))
        ),
        "{event:?}"
    );
    assert!(session.request_handle(second).is_none());
    // Garbage on a pipe answers no request; on the stream of a request, it ends that request.
    let rubbish = || read(Bytes::from_static(b"<html>")).expect_err("no JSON");
    assert!(matches!(
        session.receive_unreadable(rubbish(), None),
        ClientEvent::Ignored(_)
    ));
    let event = session.receive_unreadable(
        rubbish(),
        Some(OutgoingRequestId::from_number(key.number())),
    );
    assert!(
        matches!(
            event,
            ClientEvent::RequestEnded("first", Err(OutgoingRequestError::Unreadable(_)))
        ),
        "{event:?}"
    );
}

#[test]
fn retries_repeat_the_request_with_answers_and_state_byte_for_byte() {
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
    // Without a state, none is added.
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
fn rejects_malformed_input_required_results() {
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
fn results_are_cached_until_they_expire_or_change() {
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
    // Not cached: without a TTL, with a TTL of zero or less, results of calls.
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
    // A result is not cached if it was invalidated while the response was in transit.
    let before = cache.generation();
    cache.invalidate(&notification(
        "notifications/tools/list_changed",
        &json!({}),
    ));
    cache.insert(&Method::ToolsList, None, &fresh, before, SECOND);
    assert_eq!(cache.get(&Method::ToolsList, None, SECOND), None);
}

#[test]
fn new_authorization_clears_cached_results() {
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
    // Nor is a response in transit to a request with the old authorization.
    cache.insert(&list, None, &fresh, before, SECOND);
    assert_eq!(cache.get(&list, None, SECOND), None);
}

#[test]
fn cached_results_are_bounded_in_bytes() {
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
    // The entries that expire first were evicted.
    assert_eq!(kept.last(), Some(&(count - 1)));

    // Removed entries make room as well.
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
fn results_of_long_parameters_are_not_cached() {
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
fn notifications_invalidate_only_the_results_they_concern() {
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
fn omits_tools_with_invalid_header_annotations_where_headers_are_sent() {
    let page = raw(&json!({"nextCursor": "", "tools": [
        {"name": "good", "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}},
        {"name": "bad", "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "a b"}}}},
    ], "ttlMs": 5}));
    let mut catalog = ToolCatalog::new();
    let filtered = catalog.add_raw_page(&page, true).expect("a page");
    let rest = filtered.page.expect("one is left out");
    let names: Vec<Value> = json_of(rest.as_bytes())["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(names, [json!("good")]);
    assert_eq!(json_of(rest.as_bytes())["ttlMs"], 5);
    assert!(
        filtered.warnings[0].contains("bad"),
        "{:?}",
        filtered.warnings
    );
    let arguments = raw(&json!({"region": "Zürich"}));
    assert_eq!(catalog.headers("good", Some(&arguments)).len(), 1);
    assert!(catalog.headers("unknown", Some(&arguments)).is_empty());
    // Other transports ignore the annotation.
    let filtered = ToolCatalog::new()
        .add_raw_page(&page, false)
        .expect("a page");
    assert_eq!(
        filtered,
        mcpline_protocol::client::FilteredToolPage::default()
    );
}

#[test]
fn names_only_a_few_omitted_tools() {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "a b"}}});
    let tools: Vec<Value> = (0..1_000)
        .map(|number| json!({"name": format!("{number}{}", "x".repeat(1_000)), "inputSchema": schema}))
        .collect();
    let filtered = ToolCatalog::new().add_raw_page(&raw(&json!({"tools": tools})), true);
    let warnings = filtered.expect("a page").warnings;
    assert_eq!(warnings.len(), 17);
    assert_eq!(warnings[16], "984 more tools are left out");
    assert!(warnings.iter().all(|warning| warning.len() < 500));
}

#[test]
fn errors_truncate_the_name_of_a_tool_without_input_schema() {
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
fn errors_truncate_the_key_of_an_input_request_without_method() {
    let of = |key: String| {
        let needed = json!({"resultType": "input_required", "inputRequests": {key: {}}});
        InputRequiredResult::of(&raw(&needed)).expect_err("it has no method")
    };
    let error = of("x".repeat(1_000_000));
    assert!(error.len() < 200, "{} bytes", error.len());
    assert_eq!(of("who".to_owned()), "input request \"who\" has no method");
}

#[test]
fn large_pages_are_not_read_inline_and_can_be_interrupted() {
    let tool =
        json!({"name": "x", "inputSchema": {"type": "object"}, "description": "d".repeat(100_000)});
    let page = raw(&json!({"tools": [tool]}));
    let all = |_: &str, _: &Raw| ToolAdmission::Admitted;
    assert!(ToolPage::read_inline(&page, false, &all).is_none());
    assert!(ToolPage::read(&page, false, &all, &AtomicBool::new(true)).is_err());
    assert!(ToolPage::read(&page, false, &all, &AtomicBool::new(false)).is_ok());
    let small = raw(&json!({"tools": []}));
    assert!(matches!(
        ToolPage::read_inline(&small, false, &all),
        Some(Ok(_))
    ));
}

#[test]
fn validates_structured_content_against_the_listed_schema() {
    let page = raw(&json!({"tools": [
        {"name": "add", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": true},
         "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}},
        {"name": "say", "inputSchema": {"type": "object"}},
    ]}));
    let mut catalog = ToolCatalog::new();
    catalog.add_raw_page(&page, true).expect("a page");
    assert!(catalog.is_repeatable("add") && !catalog.is_repeatable("say"));
    let checked = |tool: &str, result: Value| {
        let check = catalog.output_check(tool, &raw(&result))?;
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
        catalog
            .add_raw_page(&raw(&json!({"tools": [{"name": "x"}]})), true)
            .is_err()
    );
    assert!(catalog.add_raw_page(&raw(&json!({})), true).is_err());
}

#[test]
fn expensive_output_checks_do_not_run_inline() {
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
    let mut catalog = ToolCatalog::new();
    catalog.add_raw_page(&page, false).expect("a page");
    let result = raw(&json!({"content": [], "structuredContent": {"text": "x".repeat(60_000)}}));
    let hostile = catalog.output_check("hostile", &result).expect("a schema");
    assert_eq!(hostile.run_inline(), None);
    let error = hostile.run(&AtomicBool::new(false)).expect_err("too much");
    assert!(
        error.contains("the validation limit was reached"),
        "{error}"
    );
    let small = raw(&json!({"content": [], "structuredContent": {"x": 1}}));
    let large = catalog.output_check("large", &small).expect("a schema");
    assert_eq!(large.run_inline(), None);
    let interrupted = large.run(&AtomicBool::new(true)).expect_err("interrupted");
    assert!(interrupted.contains("limit"), "{interrupted}");
    assert_eq!(large.run(&AtomicBool::new(false)), Ok(()));
    assert_eq!(large.run_inline(), Some(Ok(())));
}

#[test]
fn refuses_unreadable_requests_with_their_id() {
    let mut session = session(Revision::V2025_11_25);
    let (key, _) = session.begin_request(
        &OutgoingClientRequest::new("tools/list", None),
        "caller",
        SECOND,
    );
    let input_request = br#"{"jsonrpc":"2.0","id":"q","method":"roots/list","params":[1]}"#;
    let error = || read(Bytes::from_static(input_request)).expect_err("params must be an object");
    // On the stream of a request, it does not answer that request.
    for stream_owner in [None, Some(OutgoingRequestId::from_number(key.number()))] {
        let ClientEvent::Reply(refusal) = session.receive_unreadable(error(), stream_owner) else {
            panic!("the server waits");
        };
        let refusal = json_of(&refusal);
        assert_eq!(
            (&refusal["id"], &refusal["error"]["code"]),
            (&json!("q"), &json!(-32602))
        );
    }
    assert!(session.request_handle(key).is_some());
}

#[test]
fn treats_a_bare_id_as_a_response_without_result() {
    let mut session = session(Revision::V2025_11_25);
    request_json(&mut session, &OutgoingClientRequest::new("ping", None));
    let error = read(Bytes::from_static(br#"{"jsonrpc":"2.0","id":7}"#)).expect_err("no message");
    let event = session.receive_unreadable(error, None);
    assert!(
        matches!(
            event,
            ClientEvent::RequestEnded("caller", Err(OutgoingRequestError::Unreadable(_)))
        ),
        "{event:?}"
    );
}

#[test]
fn the_tool_catalog_is_bounded_in_bytes() {
    let mut catalog = ToolCatalog::new();
    let schema = json!({"type": "object", "$comment": "c".repeat(10 * 1024 * 1024)});
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}, "outputSchema": schema});
    // The first is added again, in its own place.
    for name in ["a", "b", "c", "d", "a"] {
        let page = raw(&json!({"tools": [tool(name)]}));
        catalog.add_raw_page(&page, false).expect("a page");
    }
    let result = raw(&json!({"content": []}));
    let known = ["a", "b", "c", "d"].map(|name| catalog.output_check(name, &result).is_some());
    assert_eq!(known, [true, true, true, false]);
}

#[test]
fn server_cancellations_end_only_subscriptions() {
    let mut session = session(Revision::V2026_07_28);
    let (call, _) = session.begin_request(
        &OutgoingClientRequest::new("tools/call", None),
        "call",
        SECOND,
    );
    let (key, _) = session.begin_request(
        &OutgoingClientRequest::new("subscriptions/listen", None),
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
        let event = session.receive(cancellation(id), SECOND);
        assert!(matches!(event, ClientEvent::Ignored(_)), "{event:?}");
    }
    let event = session.receive(cancellation(key.number()), SECOND);
    let ClientEvent::SubscriptionEnded(ended, "listener", Some(reason)) = event else {
        panic!("{event:?}");
    };
    assert_eq!((ended, reason.as_str()), (key, "moving"));
    let event = session.receive(cancellation(key.number()), SECOND);
    assert!(matches!(event, ClientEvent::Ignored(_)), "{event:?}");
    assert_eq!(session.request_handle(call), Some(&"call"));
}

#[test]
fn accepts_notifications_only_of_open_subscriptions() {
    let changed = |meta: Value| {
        message(
            &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                        "params": {"_meta": meta}}),
        )
    };
    let id = "io.modelcontextprotocol/subscriptionId";
    let mut session = session(Revision::V2026_07_28);
    let (call, _) = session.begin_request(
        &OutgoingClientRequest::new("tools/call", None),
        "call",
        SECOND,
    );
    let (old, _) = session.begin_request(
        &OutgoingClientRequest::new("subscriptions/listen", None),
        "old",
        SECOND,
    );
    let (new, _) = session.begin_request(
        &OutgoingClientRequest::new("subscriptions/listen", None),
        "new",
        SECOND,
    );
    let event = session.receive(changed(json!({id: old.number()})), SECOND);
    assert!(matches!(event, ClientEvent::Notification(_)), "{event:?}");
    session.cancel(old, "replaced").expect("it was open");
    let text = new.number().to_string();
    for other in [
        json!(old.number()),
        json!(call.number()),
        json!(99),
        json!(text),
        json!(null),
    ] {
        let event = session.receive(changed(json!({id: other})), SECOND);
        assert!(
            matches!(event, ClientEvent::UnknownSubscription(_)),
            "{other}: {event:?}"
        );
    }
    for meta in [json!({}), json!({id: new.number()})] {
        let event = session.receive(changed(meta), SECOND);
        assert!(matches!(event, ClientEvent::Notification(_)), "{event:?}");
    }
    // Earlier revisions ignore the member.
    let mut before = self::session(Revision::V2025_11_25);
    let event = before.receive(changed(json!({id: 99})), SECOND);
    assert!(matches!(event, ClientEvent::Notification(_)), "{event:?}");
}

#[test]
fn rejects_log_messages_without_data_or_with_an_unknown_level() {
    for revision in Revision::ALL {
        let mut session = session(*revision);
        let mut receive_log = |params: Value| {
            let log =
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params});
            session.receive(message(&log), SECOND)
        };
        for params in [
            json!({"level": "warn", "data": "x"}),
            json!({"level": 3, "data": "x"}),
            json!({"data": "x"}),
            json!({"level": "error"}),
        ] {
            let event = receive_log(params);
            assert!(matches!(event, ClientEvent::Violation(_)), "{event:?}");
        }
        for params in [
            json!({"level": "warning", "data": "x"}),
            json!({"level": "error", "data": null}),
        ] {
            let event = receive_log(params);
            assert!(matches!(event, ClientEvent::Notification(_)), "{event:?}");
        }
    }
}

#[test]
fn acknowledgements_belong_to_the_subscription_they_name() {
    let mut session = session(Revision::V2026_07_28);
    let (call, _) = session.begin_request(
        &OutgoingClientRequest::new("tools/call", None),
        "call",
        SECOND,
    );
    let (key, _) = session.begin_request(
        &OutgoingClientRequest::new("subscriptions/listen", None),
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
    let event = session.receive(acknowledgement(json!({})), SECOND);
    assert!(matches!(event, ClientEvent::Notification(_)), "{event:?}");
    for other in [json!(call.number()), json!(99), json!("8")] {
        let event = session.receive(acknowledgement(json!({id: other})), SECOND);
        assert!(
            matches!(event, ClientEvent::UnknownSubscription(_)),
            "{event:?}"
        );
    }
    let event = session.receive(acknowledgement(json!({id: key.number()})), SECOND);
    assert!(
        matches!(event, ClientEvent::SubscriptionAcknowledged(named, _) if named == key),
        "{event:?}"
    );
}

const PINGS: PingTimes = PingTimes {
    interval: Duration::from_secs(10),
    timeout: Duration::from_secs(4),
};

/// A session with pings started at second 1.
fn pinged(revision: Revision) -> ClientSession<&'static str> {
    let mut session = session(revision);
    session.start_pings(PINGS, SECOND);
    session
}

#[test]
fn pings_only_silent_servers() {
    for revision in Revision::ALL {
        let mut session = pinged(*revision);
        if revision.is_modern() {
            assert_eq!(session.poll_deadline(), None, "there is no ping");
            assert!(session.ping_if_due(|| "ping", 60 * SECOND).is_none());
            continue;
        }
        assert_eq!(session.poll_deadline(), Some(11 * SECOND));
        assert!(session.ping_if_due(|| "ping", 10 * SECOND).is_none());
        // Any message from the server postpones the ping.
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
        session.receive(message(&log), 8 * SECOND);
        assert_eq!(session.note_activity(8 * SECOND), None);
        assert_eq!(session.poll_deadline(), Some(18 * SECOND));
        assert!(session.ping_if_due(|| "ping", 11 * SECOND).is_none());
        let (key, ping) = session.ping_if_due(|| "ping", 18 * SECOND).expect("a ping");
        assert_eq!(
            json_of(&ping),
            json!({"jsonrpc": "2.0", "id": 7, "method": "ping"})
        );
        assert!(session.is_ping(key));
        // One ping at a time, and the next after another full interval of silence.
        assert!(session.ping_if_due(|| "ping", 19 * SECOND).is_none());
        let pong = message(&json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
        let event = session.receive(pong, 20 * SECOND);
        assert!(
            matches!(event, ClientEvent::RequestEnded("ping", Ok(_))),
            "{event:?}"
        );
        assert_eq!(session.note_activity(20 * SECOND), None);
        assert_eq!(session.poll_deadline(), Some(30 * SECOND));
    }
}

#[test]
fn unanswered_pings_time_out_after_their_own_timeout() {
    let mut session = pinged(Revision::V2025_11_25);
    let call = OutgoingClientRequest::new("tools/call", None);
    session.begin_request(&call, "caller", SECOND);
    let (key, _) = session.ping_if_due(|| "ping", 11 * SECOND).expect("a ping");
    assert_eq!(session.poll_deadline(), Some(15 * SECOND));
    assert!(session.handle_timeout(14 * SECOND).is_empty());
    let late = session.handle_timeout(15 * SECOND);
    let [(late, overdue)] = late.as_slice() else {
        panic!("{late:?}");
    };
    assert_eq!((*late, overdue.handle), (key, "ping"));
    assert!(session.is_ping(key));
    assert_eq!(session.in_flight(), 1, "the call goes on");
    // A closed session has no deadlines.
    assert_eq!(session.close(), ["caller"]);
    assert_eq!(session.poll_deadline(), None);
}

#[test]
fn any_server_message_satisfies_a_ping_in_flight() {
    let mut session = pinged(Revision::V2025_11_25);
    let ping = session.ping_if_due(|| "ping", 11 * SECOND);
    let (key, _) = ping.expect("a ping");
    let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
    session.receive(message(&log), 14 * SECOND);
    assert_eq!(session.note_activity(14 * SECOND), Some(key));
    assert!(session.handle_timeout(15 * SECOND).is_empty());
    assert_eq!(session.poll_deadline(), Some(24 * SECOND));
    // Its response arrives after the ping was dropped.
    let pong = message(&json!({"jsonrpc": "2.0", "id": key.number(), "result": {}}));
    let event = session.receive(pong, 16 * SECOND);
    assert!(matches!(event, ClientEvent::Ignored(_)), "{event:?}");
}

#[test]
fn lost_pings_are_resent_within_the_original_timeout() {
    let mut session = pinged(Revision::V2025_11_25);
    let ping = session.ping_if_due(|| "ping", 11 * SECOND);
    let (first, _) = ping.expect("a ping");
    assert!(!session.note_lost_ping(
        OutgoingRequestId::from_number(first.number() + 1),
        11 * SECOND
    ));
    assert!(session.note_lost_ping(first, 11 * SECOND));
    assert_eq!(session.poll_deadline(), Some(12 * SECOND));
    let ping = session.ping_if_due(|| "another", 12 * SECOND);
    let (second, message) = ping.expect("a ping");
    let sent = json!({"jsonrpc": "2.0", "id": first.number() + 1, "method": "ping"});
    assert_eq!(json_of(&message), sent);
    assert!(session.is_ping(second) && !session.is_ping(first));
    assert!(!session.note_lost_ping(first, 12 * SECOND));
    // The deadline of the first applies to all of them.
    assert_eq!(session.poll_deadline(), Some(15 * SECOND));
    assert!(session.note_lost_ping(second, 14 * SECOND + SECOND / 2));
    let late = session.handle_timeout(15 * SECOND);
    let [(late, overdue)] = late.as_slice() else {
        panic!("{late:?}");
    };
    assert_eq!((*late, overdue.handle), (second, "ping"));
    let (waited, in_all) = (PINGS.timeout, true);
    assert_eq!(
        overdue.error,
        OutgoingRequestError::TimedOut { waited, in_all }
    );
}

#[test]
fn sends_no_pings_after_they_are_stopped() {
    let mut session = pinged(Revision::V2025_11_25);
    let ping = session.ping_if_due(|| "ping", 11 * SECOND);
    let (key, _) = ping.expect("a ping");
    assert_eq!(session.stop_pings(), Some(key));
    assert_eq!(session.poll_deadline(), None);
    assert!(!session.is_ping(key));
    assert!(session.ping_if_due(|| "ping", 60 * SECOND).is_none());
}
