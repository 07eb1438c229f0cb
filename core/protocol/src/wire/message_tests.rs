use super::*;
use crate::limits::MAX_BATCH;

fn single(text: &str) -> Result<Message, ReadError> {
    match read(Bytes::copy_from_slice(text.as_bytes()))? {
        Incoming::Single(message) => Ok(message),
        Incoming::Batch(_) => panic!("a batch"),
    }
}

fn request(text: &str) -> Request {
    match single(text) {
        Ok(Message::Request(request)) => request,
        other => panic!("{other:?}"),
    }
}

fn refusal(text: &str) -> (i64, Option<RequestId>, ApparentMessageKind) {
    let error = single(text).expect_err("an invalid message");
    (error.error.code.0, error.id, error.shape)
}

#[test]
fn a_request_is_read_with_its_params_as_slices() {
    let request = request(
        r#" {"jsonrpc":"2.0", "id":7,"method":"tools/call",
            "params": {"name":"a\"b", "arguments" : {"x": [1, 2]} ,"_meta":{"progressToken":1}}} "#,
    );
    assert_eq!(request.id, RequestId::number(7));
    assert_eq!(request.method, Method::ToolsCall);
    let params = request.params.expect("params");
    assert_eq!(params.get_str("name").as_deref(), Some("a\"b"));
    assert_eq!(
        params.get("arguments").expect("arguments").as_str(),
        r#"{"x": [1, 2]}"#
    );
    assert_eq!(
        params.meta().expect("meta").as_str(),
        r#"{"progressToken":1}"#
    );
    assert_eq!(params.get("other"), None);
    assert_eq!(params.get_str("arguments"), None);
    assert_eq!(
        Params::from_raw(params.raw().clone()).expect("object"),
        params
    );
}

#[test]
fn the_order_of_members_and_escaped_names_do_not_matter() {
    let request =
        request(r#"{"params":{"\u006eame":"n"},"m\u0065thod":"x\/y","id":"1","jsonrpc":"2.0"}"#);
    assert_eq!(request.method, Method::Other("x/y".into()));
    assert_eq!(
        request.params.expect("params").get_str("name").as_deref(),
        Some("n")
    );
}

#[test]
fn a_notification_has_no_id() {
    let message = single(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let Ok(Message::Notification(notification)) = message else {
        panic!("{message:?}")
    };
    assert_eq!(notification.method, Method::NotificationsInitialized);
    assert_eq!(notification.params, None);
}

#[test]
fn responses_carry_a_result_or_an_error() {
    let message = single(r#"{"jsonrpc":"2.0","id":"a","result":{"x":1}}"#);
    let Ok(Message::Response(response)) = message else {
        panic!("{message:?}")
    };
    assert_eq!(response.id, Some(RequestId::string("a")));
    assert_eq!(response.outcome.expect("a result").as_str(), r#"{"x":1}"#);

    let message =
        single(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"m","data":[1]}}"#);
    let Ok(Message::Response(response)) = message else {
        panic!("{message:?}")
    };
    let error = response.outcome.expect_err("an error");
    assert_eq!((error.code.0, error.message.as_ref()), (-5, "m"));
    assert_eq!(error.data.expect("data").as_str(), "[1]");

    for id in ["", r#""id":null,"#] {
        let message = single(&format!(
            r#"{{"jsonrpc":"2.0",{id}"error":{{"code":1,"message":""}}}}"#
        ));
        let Ok(Message::Response(response)) = message else {
            panic!("{message:?}")
        };
        assert_eq!(response.id, None);
    }
}

#[test]
fn unknown_members_are_kept() {
    let request = request(r#"{"jsonrpc":"2.0","id":1,"method":"ping","x":{"y":1},"z":[]}"#);
    let extra: Vec<_> = request
        .extra
        .iter()
        .map(|(key, raw)| (key.as_str(), raw.as_str()))
        .collect();
    assert_eq!(extra, [("x", r#"{"y":1}"#), ("z", "[]")]);
}

#[test]
fn names_that_only_begin_like_those_of_json_rpc_are_unknown() {
    let request = request(
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","id\u0000":2,"params\u0000x":[],"jsonrpc2":3,"":4}"#,
    );
    let names: Vec<_> = request.extra.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(names, ["id\0", "params\0x", "jsonrpc2", ""]);
}

#[test]
fn params_that_come_twice_are_refused() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1},"params":{"b":2}}"#;
    assert_eq!(refusal(text), (-32700, None, ApparentMessageKind::Request));
}

#[test]
fn what_is_not_json_is_a_parse_error_without_id() {
    for text in [
        "",
        "{",
        "nonsense",
        r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}"#,
        "{} {}",
    ] {
        assert_eq!(
            refusal(text),
            (-32700, None, ApparentMessageKind::Request),
            "{text}"
        );
    }
}

#[test]
fn json_that_is_no_message_is_an_invalid_request() {
    for text in [
        "1",
        "null",
        "\"x\"",
        "{}",
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","params":{}}"#,
    ] {
        assert_eq!(
            refusal(text),
            (-32600, None, ApparentMessageKind::Request),
            "{text}"
        );
    }
}

#[test]
fn a_faulty_request_is_refused_with_its_id() {
    let one = Some(RequestId::number(1));
    for (text, code) in [
        (r#"{"id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":7}"#,
            -32602,
        ),
    ] {
        assert_eq!(
            refusal(text),
            (code, one.clone(), ApparentMessageKind::Request),
            "{text}"
        );
    }
}

#[test]
fn an_id_alone_may_be_a_request_or_a_response() {
    let text = r#"{"jsonrpc":"2.0","id":1}"#;
    let one = Some(RequestId::number(1));
    assert_eq!(refusal(text), (-32600, one, ApparentMessageKind::Bare));
    let error = read(text.into()).expect_err("not a message");
    assert!(error.is_answerable());
}

#[test]
fn ids_that_are_not_strings_or_integers_are_refused() {
    for id in ["null", "1.5", "1e2", "true", "[]", "{}"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        assert_eq!(refusal(&text), (-32600, None, ApparentMessageKind::Request));
    }
}

#[test]
fn faulty_notifications_and_responses_are_not_answered() {
    assert_eq!(
        refusal(r#"{"method":"notifications/x"}"#).2,
        ApparentMessageKind::Notification
    );
    assert_eq!(
        refusal(r#"{"jsonrpc":"2.0","method":"n","params":[]}"#).2,
        ApparentMessageKind::Notification
    );
    let one = Some(RequestId::number(1));
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#,
        r#"{"id":1,"result":{}}"#,
    ] {
        assert_eq!(
            refusal(text),
            (-32600, one.clone(), ApparentMessageKind::Response),
            "{text}"
        );
    }
    assert_eq!(
        refusal(r#"{"jsonrpc":"2.0","result":{}}"#).2,
        ApparentMessageKind::Response
    );
    assert_eq!(
        refusal(r#"{"jsonrpc":"2.0","id":null,"result":{}}"#).2,
        ApparentMessageKind::Response
    );
}

#[test]
fn each_message_of_a_batch_is_read_on_its_own() {
    let batch = read(Bytes::from_static(
        br#"[{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1}}, 5, [], {"jsonrpc":"2.0","id":2},
            {"jsonrpc":"2.0","method":"notifications/x","params":{"b":"c"}}]"#,
    ));
    let Ok(Incoming::Batch(messages)) = batch else {
        panic!("{batch:?}")
    };
    assert_eq!(messages.len(), 5);
    let Ok(Message::Request(first)) = &messages[0] else {
        panic!("{messages:?}")
    };
    assert_eq!(
        first
            .params
            .as_ref()
            .and_then(|p| p.get("a"))
            .expect("a")
            .as_str(),
        "1"
    );
    assert!(messages[1].is_err() && messages[2].is_err());
    assert_eq!(
        messages[3].as_ref().expect_err("no method").id,
        Some(RequestId::number(2))
    );
    let Ok(Message::Notification(last)) = &messages[4] else {
        panic!("{messages:?}")
    };
    assert_eq!(
        last.params.as_ref().and_then(|p| p.get_str("b")).as_deref(),
        Some("c")
    );
}

#[test]
fn batches_are_neither_empty_nor_too_long_nor_broken() {
    let error = |text: String| read(text.into()).expect_err("refused").error.code.0;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let batch = |count: usize| format!("[{}]", vec![ping; count].join(","));
    assert!(read(batch(MAX_BATCH).into()).is_ok());
    assert_eq!(error(batch(MAX_BATCH + 1)), -32600);
    assert_eq!(error("[]".into()), -32600);
    assert_eq!(error(format!("[{ping},{{]")), -32700);
    assert_eq!(error(format!("[{ping}] x")), -32700);
}

#[test]
fn the_messages_of_an_oversize_batch_are_known_by_their_ids() {
    let limits = WireLimits {
        max_batch_messages: 2,
        ..WireLimits::default()
    };
    let text = r#"[{"jsonrpc":"2.0","id":1,"method":"a"}, 7, {"jsonrpc":"2.0","method":"b"},
        {"jsonrpc":"2.0","id":"x","result":{}}, {"jsonrpc":"2.0","id":1.5,"method":"c"},
        {"jsonrpc":"1.0","id":2,"method":5}, {"id":3}]"#;
    let error = read_within(text.into(), limits).expect_err("too long");
    let batch = error.batch.expect("a batch");
    let messages: Vec<(ApparentMessageKind, RequestId)> = batch.messages().collect();
    assert_eq!(
        messages,
        [
            (ApparentMessageKind::Request, RequestId::number(1)),
            (ApparentMessageKind::Response, RequestId::string("x")),
            (ApparentMessageKind::Request, RequestId::number(2)),
            (ApparentMessageKind::Bare, RequestId::number(3)),
        ]
    );
    let requests: Vec<RequestId> = batch.requests().collect();
    assert_eq!(requests, [1, 2, 3].map(RequestId::number));
}

#[test]
fn limits_bound_batch_length_and_depth() {
    let limits = WireLimits {
        max_batch_messages: 2,
        max_json_depth: 3,
        ..WireLimits::default()
    };
    let code = |text: String| {
        let read = read_within(text.into(), limits);
        read.err().map(|error| error.error.code.0)
    };
    let call =
        |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
    assert_eq!(code(call(r#"{"a":[1]}"#)), None);
    assert_eq!(code(call(r#"{"a":[[]]}"#)), Some(-32700));
    assert_eq!(code(format!("[{}]", call(r#"{"a":1}"#))), None);
    assert_eq!(code(format!("[{}]", call(r#"{"a":[]}"#))), Some(-32700));
    let batch = |count: usize| format!("[{}]", vec![call("{}"); count].join(","));
    assert_eq!(code(batch(2)), None);
    assert_eq!(code(batch(3)), Some(-32600));
}

#[test]
fn depth_limit_is_capped_at_the_maximum() {
    let limits = WireLimits {
        max_json_depth: usize::MAX,
        ..WireLimits::default()
    };
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{open}{close}}}}}"#);
        read_within(text.into(), limits).is_ok()
    };
    assert!(nested(MAX_DEPTH - 2));
    assert!(!nested(MAX_DEPTH - 1));
}

#[test]
fn params_share_the_received_buffer() {
    let bytes =
        Bytes::from(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"k":"v"}}"#.to_owned());
    let range = bytes.as_ptr_range();
    let Ok(Incoming::Single(Message::Request(request))) = read(bytes.clone()) else {
        panic!("no request")
    };
    let value = request.params.expect("params").get("k").expect("k");
    assert!(range.contains(&value.as_bytes().as_ptr()));
}

#[test]
fn null_parameters_count_as_absent() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"cursor":null,"n":0}}"#;
    let Ok(Message::Request(request)) = single(text) else {
        panic!("a request");
    };
    let params = request.params.expect("params");
    assert_eq!(
        (params.get("cursor"), params.get("n").is_some()),
        (None, true)
    );
    let Ok(Message::Request(request)) =
        single(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#)
    else {
        panic!("a request");
    };
    assert_eq!(request.params, None);
}
