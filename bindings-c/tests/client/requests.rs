//! Requests: results and errors, by waiting and by callbacks; progress, timeouts, cancellation.

use std::ptr::{null, null_mut};

use mcpline_c::mcpl_status::*;
use mcpline_c::*;
use serde_json::{Value, json};

use crate::host::{Event, EventReceiver, Host, c, done, given, last_error, ok, options, progress};
use crate::service::Service;

const ALL: usize = MCPL_AUTO_LENGTH;

/// A revision of each era.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

#[test]
fn returns_a_tools_result_in_every_era() {
    let service = Service::new();
    for revision in REVISIONS {
        let host = Host::connected(&service, revision);
        let result = host.call("echo", r#"{"a":1}"#).unwrap();
        assert_eq!(result["content"][0]["text"], r#"{"a":1}"#);
        let info = given(|json, length| unsafe { mcpl_client_info(host.0, json, length) }).unwrap();
        assert_eq!(info["protocolVersion"], revision);
        assert_eq!(info["serverInfo"]["title"], "Test");
        assert!(info["serverCapabilities"]["tools"].is_object());
        assert_eq!(info["instructions"], Value::Null);
    }
}

#[test]
fn clients_and_servers_have_statistics_and_metrics() {
    let service = Service::new();
    let host = Host::connected(&service, "2025-11-25");
    host.call("echo", "{}").unwrap();
    // SAFETY: the other pointers are writable.
    let stats = given(|json, length| unsafe { mcpl_client_stats(host.0, json, length) }).unwrap();
    assert_eq!(stats["is_connected"], true);
    assert_eq!(stats["connections"], 1);
    // SAFETY: as above.
    let stats = given(|json, length| unsafe { mcpl_server_stats(service.server, json, length) });
    let stats = stats.unwrap();
    assert_eq!(stats["sessions"], 1);
    assert_eq!(stats["budgets"][0]["name"], "max_total_client_bytes");
    // They are off.
    for is_server in [true, false] {
        let (mut text, mut length) = (null_mut(), 1);
        // SAFETY: both can be written to, and the text is released once.
        unsafe {
            ok(match is_server {
                true => mcpl_server_metrics(service.server, &mut text, &mut length),
                false => mcpl_client_metrics(host.0, &mut text, &mut length),
            });
            assert_eq!(length, 0);
            assert_eq!(std::ffi::CStr::from_ptr(text), c"");
            mcpl_string_free(text);
        }
    }
}

#[test]
fn returns_lists_with_all_pages() {
    let service = Service::with(r#"{"page_size":1}"#);
    let host = Host::connected(&service, "2025-11-25");
    type List = unsafe extern "C" fn(
        *mut mcpl_client,
        *const mcpl_request_options,
        *mut *mut std::ffi::c_char,
        *mut usize,
    ) -> mcpl_status;
    let lists: [(List, usize); 4] = [
        (mcpl_client_list_tools, 6),
        (mcpl_client_list_resources, 1),
        (mcpl_client_list_resource_templates, 1),
        (mcpl_client_list_prompts, 1),
    ];
    for (list, count) in lists {
        // SAFETY: the other pointers are writable.
        let items =
            given(|result, length| unsafe { list(host.0, null(), result, length) }).unwrap();
        let items = items.as_array().unwrap();
        assert_eq!(items.len(), count);
        assert!(items.iter().all(|item| item["name"].is_string()));
    }
}

#[test]
fn requests_every_feature_of_a_server() {
    let service = Service::new();
    for revision in REVISIONS {
        let host = Host::connected(&service, revision);
        let uri = c"test://text".as_ptr();
        // SAFETY: here and below, the texts end with zero bytes.
        let read = given(|result, length| unsafe {
            mcpl_client_read_resource(host.0, uri, null(), result, length)
        });
        assert_eq!(read.unwrap()["contents"][0]["text"], "contents");
        let (name, who) = (c"greet".as_ptr(), c"{\"who\":\"eve\"}".as_ptr());
        let prompt = given(|result, length| unsafe {
            mcpl_client_get_prompt(host.0, name, who, ALL, null(), result, length)
        });
        assert_eq!(
            prompt.unwrap()["messages"][0]["content"]["text"],
            r#"{"who":"eve"}"#
        );
        let params = c(
            r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"b"}}"#,
        );
        let completed = given(|result, length| unsafe {
            mcpl_client_complete(host.0, params.as_ptr(), ALL, null(), result, length)
        });
        assert_eq!(completed.unwrap()["completion"]["values"], json!(["bob"]));
        let params = c(r#"{"name":"echo","arguments":{}}"#);
        let (method, params) = (c"tools/call".as_ptr(), params.as_ptr());
        let called = given(|result, length| unsafe {
            mcpl_client_request(host.0, method, params, ALL, null(), result, length)
        });
        assert_eq!(called.unwrap()["content"][0]["text"], "{}");
    }
}

#[test]
fn operations_without_a_result_pass_an_empty_one_to_their_callback() {
    let service = Service::new();
    let host = Host::of(&service);
    host.options(r#"{"revisions":["2025-11-25"],"capabilities":{"roots":{"listChanged":true}}}"#);
    ok(mcpl_client_open(host.0));
    let level = mcpl_log_level::MCPL_LOG_INFO as i32;
    let (uri, method) = (c"test://text".as_ptr(), c"notifications/x-mine".as_ptr());
    let receiver = EventReceiver::new();
    let (user, none) = (receiver.lent(), null_mut());
    // SAFETY: the texts end with zero bytes, and the receiver outlives the requests.
    unsafe {
        ok(mcpl_client_ping(host.0, null()));
        ok(mcpl_client_set_log_level(host.0, level, null()));
        ok(mcpl_client_subscribe(host.0, uri, null()));
        ok(mcpl_client_unsubscribe(host.0, uri, null()));
        ok(mcpl_client_notify(host.0, method, null(), 0));
        ok(mcpl_client_roots_changed(host.0));
        ok(mcpl_client_ping_async(
            host.0,
            null(),
            Some(done),
            user,
            none,
        ));
        ok(mcpl_client_set_log_level_async(
            host.0,
            level,
            null(),
            Some(done),
            user,
            none,
        ));
        ok(mcpl_client_subscribe_async(
            host.0,
            uri,
            null(),
            Some(done),
            user,
            none,
        ));
        ok(mcpl_client_unsubscribe_async(
            host.0,
            uri,
            null(),
            Some(done),
            user,
            none,
        ));
        ok(mcpl_client_roots_changed_async(
            host.0,
            Some(done),
            user,
            none,
        ));
        ok(mcpl_client_notify_async(
            host.0,
            method,
            null(),
            0,
            Some(done),
            user,
            none,
        ));
    }
    for _ in 0..6 {
        assert_eq!(receiver.outcome(), Ok(String::new()));
    }
    // SAFETY: no options are passed.
    let refused = unsafe { mcpl_client_set_log_level(host.0, 8, null()) };
    assert_eq!(refused, MCPL_USAGE_ERROR);
}

#[test]
fn sends_no_request_for_undeclared_capabilities() {
    // SAFETY: the texts end with zero bytes.
    let bare = unsafe { mcpl_server_new(c"bare".as_ptr(), c"1".as_ptr()) };
    let host = Host::new();
    ok(mcpl_client_set_server(host.0, bare));
    ok(mcpl_client_open(host.0));
    let refused = [
        host.call("echo", "{}").unwrap_err(),
        // SAFETY: here and below, the client is open, and the text ends with a zero byte.
        unsafe { mcpl_client_subscribe(host.0, c"test://text".as_ptr(), null()) },
        unsafe { mcpl_client_roots_changed(host.0) },
    ];
    assert_eq!(refused, [MCPL_NOT_SUPPORTED; 3]);
    assert!(last_error().contains("does not declare the capability"));
    let host = Host::new();
    ok(mcpl_client_set_server(host.0, bare));
    host.options(r#"{"allow_undeclared_capabilities":true}"#);
    ok(mcpl_client_open(host.0));
    assert_eq!(host.call("echo", "{}"), Err(MCPL_RPC_ERROR));
    mcpl_server_free(bare);
}

#[test]
fn calls_the_callback_of_a_request_once() {
    let service = Service::new();
    let host = Host::connected(&service, "2026-07-28");
    let receiver = EventReceiver::new();
    let request = host.begin("echo", "{}", &receiver);
    let Event::Done(which, Ok(result)) = receiver.next() else {
        panic!("no result");
    };
    assert_eq!(which, request.addr());
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["content"][0]["text"], "{}");
    assert_eq!(mcpl_request_cancel(request), MCPL_STALE_HANDLE);
    ok(mcpl_client_close(host.0));
    assert_eq!(receiver.rest(), []);
}

#[test]
fn reports_the_code_and_data_of_a_servers_error() {
    let service = Service::new();
    let host = Host::connected(&service, "2025-11-25");
    assert_eq!(host.call("fail", "{}"), Err(MCPL_RPC_ERROR));
    // SAFETY: the error is this thread's last.
    let (code, operation, details) = unsafe {
        let error = mcpl_last_error();
        assert!(!mcpl_error_is_retry_safe(error) && !mcpl_error_is_outcome_unknown(error));
        let operation = std::ffi::CStr::from_ptr(mcpl_error_operation(error));
        let details = std::ffi::CStr::from_ptr(mcpl_error_details(error));
        (
            mcpl_error_rpc_code(error),
            operation.to_str().unwrap(),
            serde_json::from_slice::<Value>(details.to_bytes()).unwrap(),
        )
    };
    assert_eq!(code, -32001);
    assert_eq!(operation, "tools/call");
    assert_eq!(details["operation"], operation);
    assert_eq!(details["source"]["data"], json!({"why": 1}));
    assert_eq!(details["outcome_unknown"], false);
    let receiver = EventReceiver::new();
    host.begin("fail", "{}", &receiver);
    assert_eq!(receiver.outcome(), Err(MCPL_RPC_ERROR));
}

#[test]
fn runs_the_middleware_of_its_options() {
    let service = Service::new();
    for revision in REVISIONS {
        let host = Host::of(&service);
        let policy = r#"[{"retry":{}},{"tool_policy":{"denied":["e*"],"pin":true}}]"#;
        host.options(&format!(
            r#"{{"revisions":["{revision}"],"middleware":{policy}}}"#
        ));
        ok(mcpl_client_open(host.0));
        assert_eq!(host.call("echo", "{}"), Err(MCPL_TOOL_CALL_REFUSED));
        assert!(last_error().contains("does not allow the tool"));
        // SAFETY: the other pointers are writable.
        let tools = given(|result, length| unsafe {
            mcpl_client_list_tools(host.0, null(), result, length)
        });
        let tools = tools.unwrap();
        let mut names = tools.as_array().unwrap().iter().map(|tool| &tool["name"]);
        assert!(names.all(|name| name != "echo"));
        assert_eq!(host.call("fail", "{}"), Err(MCPL_RPC_ERROR));
    }
}

#[test]
fn records_its_requests_in_an_audit_log() {
    let service = Service::new();
    let name = format!("mcpline-c-client-audit-{}.jsonl", std::process::id());
    let path = std::env::temp_dir().join(name);
    let host = Host::of(&service);
    let log = serde_json::json!([{"audit_log": {"path": path, "arguments": true}}]);
    host.options(&format!(r#"{{"middleware":{log}}}"#));
    ok(mcpl_client_open(host.0));
    assert!(host.call("echo", r#"{"password":"p"}"#).is_ok());
    assert_eq!(host.call("fail", "{}"), Err(MCPL_RPC_ERROR));
    let text = std::fs::read_to_string(&path).unwrap();
    let _ = std::fs::remove_file(&path);
    let records: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records[0]["kind"], "sent_request");
    assert_eq!(records[0]["name"], "echo");
    assert_eq!(records[0]["arguments"]["password"], "[redacted]");
    assert_eq!(records[1]["error_kind"], "rpc_error");
    assert_eq!(records.len(), 2);
}

#[cfg(feature = "redaction")]
#[test]
fn redacts_arguments_and_results() {
    let service = Service::new();
    let host = Host::of(&service);
    host.options(r#"{"middleware":[{"redaction":{"members":["iban"],"arguments":true}}]}"#);
    ok(mcpl_client_open(host.0));
    // The tool returns its arguments.
    let result = host.call("echo", r#"{"IBAN":"DE1"}"#).unwrap().to_string();
    assert!(!result.contains("DE1"), "{result}");
    assert!(result.contains("[redacted]"), "{result}");
}

#[test]
fn rejects_invalid_requests_without_calling_a_callback() {
    let service = Service::new();
    let unconnected = Host::of(&service);
    assert_eq!(unconnected.call("echo", "{}"), Err(MCPL_USAGE_ERROR));
    assert_eq!(last_error(), "the client is not connected");
    let host = Host::connected(&service, "2025-11-25");
    for arguments in ["[]", "{", ""] {
        assert_eq!(
            host.call("echo", arguments),
            Err(MCPL_USAGE_ERROR),
            "{arguments}"
        );
    }
    let unset = mcpl_request_options {
        size: 0,
        ..options()
    };
    assert_eq!(
        host.call_with("echo", "{}", &raw const unset),
        Err(MCPL_USAGE_ERROR)
    );
    let receiver = EventReceiver::new();
    let (tool, mut request) = (c"echo".as_ptr(), std::ptr::dangling_mut());
    let client = host.0;
    // SAFETY: NULL is allowed.
    unsafe {
        let begin = mcpl_client_call_tool_async;
        let out = &raw mut request;
        let (user, not_utf8) = (receiver.lent(), c"\xff".as_ptr());
        let refused = [
            begin(client, tool, null(), 0, null(), None, user, out),
            begin(client, null(), null(), 0, null(), Some(done), user, out),
            begin(client, not_utf8, null(), 0, null(), Some(done), user, out),
            begin(
                client,
                tool,
                c"1".as_ptr(),
                ALL,
                null(),
                Some(done),
                user,
                out,
            ),
            begin(null_mut(), tool, null(), 0, null(), Some(done), user, out),
        ];
        assert_eq!(refused, [MCPL_USAGE_ERROR; 5]);
        let complete = |params, options| {
            mcpl_client_complete_async(client, params, ALL, options, Some(done), user, out)
        };
        let no_object = mcpl_request_options {
            json: c"{\"meta\":[]}".as_ptr(),
            ..options()
        };
        let refused = [
            complete(null(), null()),
            complete(c"[]".as_ptr(), null()),
            complete(c"{}".as_ptr(), &raw const no_object),
        ];
        assert_eq!(refused, [MCPL_USAGE_ERROR; 3]);
    }
    assert!(request.is_null());
    ok(mcpl_client_close(host.0));
    assert_eq!(receiver.rest(), []);
}

#[test]
fn reports_progress_in_order_before_the_result() {
    let service = Service::new();
    for revision in REVISIONS {
        let host = Host::connected(&service, revision);
        let receiver = EventReceiver::new();
        let options_with_progress = mcpl_request_options {
            progress: Some(progress),
            user: receiver.lent(),
            ..options()
        };
        let request = host
            .begin_with("report", "{}", &raw const options_with_progress, &receiver)
            .addr();
        assert_eq!(
            receiver.next(),
            Event::Progress(request, 1.0, 2.0, Some("half".to_owned()))
        );
        let Event::Progress(_, reached, total, message) = receiver.next() else {
            panic!("no progress");
        };
        assert!(reached == 2.0 && total.is_nan() && message.is_none());
        assert!(receiver.outcome().is_ok());
        // A function that waits reports all progress before it returns.
        host.call_with("report", "{}", &raw const options_with_progress)
            .unwrap();
        let events = receiver.rest();
        assert_eq!(events.len(), 2, "{events:?}");
        assert_eq!(
            events[0],
            Event::Progress(0, 1.0, 2.0, Some("half".to_owned()))
        );
    }
}

#[test]
fn a_timed_out_request_reports_how_long_it_waited() {
    let service = Service::new();
    let host = Host::connected(&service, "2025-11-25");
    let hurried = mcpl_request_options {
        timeout_ms: 20,
        ..options()
    };
    assert_eq!(
        host.call_with("keep", "{}", &raw const hurried),
        Err(MCPL_REQUEST_TIMED_OUT)
    );
    assert!(last_error().contains("0.02 s"), "{}", last_error());
    let in_all = mcpl_request_options {
        timeout_ms: -1,
        total_timeout_ms: 20,
        ..options()
    };
    assert_eq!(
        host.call_with("keep", "{}", &raw const in_all),
        Err(MCPL_REQUEST_TIMED_OUT)
    );
    service.kept();
    service.kept();
}

#[test]
fn cancelling_a_request_ends_it_and_notifies_the_server() {
    let service = Service::new();
    for revision in REVISIONS {
        let host = Host::connected(&service, revision);
        let receiver = EventReceiver::new();
        let request = host.begin("keep", "{}", &receiver);
        let call = service.kept();
        let (sender, cancellations) = std::sync::mpsc::channel::<()>();
        let sender = Box::into_raw(Box::new(sender)).cast();
        // SAFETY: the data has the type that the callback expects.
        ok(unsafe { mcpl_call_on_cancel(call, Some(cancelled), sender, None) });
        ok(mcpl_request_cancel(request));
        assert_eq!(mcpl_request_cancel(request), MCPL_STALE_HANDLE);
        assert_eq!(receiver.outcome(), Err(MCPL_REQUEST_CANCELLED));
        cancellations.recv().unwrap();
        assert!(mcpl_call_is_cancelled(call));
        // SAFETY: the call is a handle.
        ok(unsafe { mcpl_call_fail(call, c"".as_ptr(), 0) });
        // Later requests work.
        assert!(host.call("echo", "{}").is_ok());
    }
}

unsafe extern "C" fn cancelled(_: *mut mcpl_call, user: *mut std::ffi::c_void) {
    // SAFETY: the data is a sender, and this is called once.
    let sender = unsafe { Box::from_raw(user.cast::<std::sync::mpsc::Sender<()>>()) };
    sender.send(()).unwrap();
}

#[test]
fn many_requests_at_once_each_get_their_own_answer() {
    let service = Service::new();
    let host = Host::connected(&service, "2026-07-28");
    let receiver = EventReceiver::new();
    let requests: Vec<(usize, String)> = (0..200)
        .map(|number| {
            let arguments = format!(r#"{{"n":{number}}}"#);
            (host.begin("echo", &arguments, &receiver).addr(), arguments)
        })
        .collect();
    let mut answers = std::collections::HashMap::new();
    for _ in 0..requests.len() {
        let Event::Done(request, Ok(result)) = receiver.next() else {
            panic!("no result");
        };
        let result: Value = serde_json::from_str(&result).unwrap();
        answers.insert(request, result["content"][0]["text"].clone());
    }
    for (request, arguments) in requests {
        assert_eq!(answers[&request], Value::String(arguments));
    }
}
