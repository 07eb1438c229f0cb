//! Requests: results and errors, by waiting and by callbacks, progress, limits of time, cancelling.

use std::ptr::{null, null_mut};

use mcpline_c::mcpl_status::*;
use mcpline_c::*;
use serde_json::{Value, json};

use crate::host::{Ear, Host, Told, c, done, given, last_error, ok, options, progress};
use crate::service::Service;

const ALL: usize = MCPL_AUTO_LENGTH;

/// Each of the two eras.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

#[test]
fn a_tools_result_is_given_back_on_every_era() {
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
fn lists_are_given_whole_however_many_pages_they_have() {
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
        // SAFETY: the rest can be written to.
        let items =
            given(|result, length| unsafe { list(host.0, null(), result, length) }).unwrap();
        let items = items.as_array().unwrap();
        assert_eq!(items.len(), count);
        assert!(items.iter().all(|item| item["name"].is_string()));
    }
}

#[test]
fn every_feature_of_a_server_can_be_asked_for() {
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
fn what_has_no_result_is_done_and_its_callback_gets_an_empty_one() {
    let service = Service::new();
    let host = Host::of(&service);
    host.options(r#"{"revisions":["2025-11-25"],"capabilities":{"roots":{"listChanged":true}}}"#);
    ok(mcpl_client_open(host.0));
    let level = mcpl_log_level::MCPL_LOG_INFO as i32;
    let (uri, method) = (c"test://text".as_ptr(), c"notifications/x-mine".as_ptr());
    let ear = Ear::new();
    let (user, none) = (ear.lent(), null_mut());
    // SAFETY: the texts end with zero bytes, and the ear outlives the requests.
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
        assert_eq!(ear.outcome(), Ok(String::new()));
    }
    // SAFETY: no options are given.
    let refused = unsafe { mcpl_client_set_log_level(host.0, 8, null()) };
    assert_eq!(refused, MCPL_USAGE_ERROR);
}

#[test]
fn what_was_not_declared_is_not_sent() {
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
fn a_callback_is_told_the_end_of_its_request_once() {
    let service = Service::new();
    let host = Host::connected(&service, "2026-07-28");
    let ear = Ear::new();
    let request = host.begin("echo", "{}", &ear);
    let Told::Done(which, Ok(result)) = ear.next() else {
        panic!("no result");
    };
    assert_eq!(which, request.addr());
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["content"][0]["text"], "{}");
    assert_eq!(mcpl_request_cancel(request), MCPL_STALE_HANDLE);
    ok(mcpl_client_close(host.0));
    assert_eq!(ear.rest(), []);
}

#[test]
fn a_servers_error_is_told_with_its_code_and_its_data() {
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
    let ear = Ear::new();
    host.begin("fail", "{}", &ear);
    assert_eq!(ear.outcome(), Err(MCPL_RPC_ERROR));
}

#[test]
fn what_cannot_be_asked_is_refused_and_no_callback_is_called() {
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
    let ear = Ear::new();
    let (tool, mut request) = (c"echo".as_ptr(), std::ptr::dangling_mut());
    let client = host.0;
    // SAFETY: NULL may be given.
    unsafe {
        let begin = mcpl_client_call_tool_async;
        let out = &raw mut request;
        let (user, not_utf8) = (ear.lent(), c"\xff".as_ptr());
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
    assert_eq!(ear.rest(), []);
}

#[test]
fn progress_is_told_in_order_and_before_the_end() {
    let service = Service::new();
    for revision in REVISIONS {
        let host = Host::connected(&service, revision);
        let ear = Ear::new();
        let hearing = mcpl_request_options {
            progress: Some(progress),
            user: ear.lent(),
            ..options()
        };
        let request = host
            .begin_with("report", "{}", &raw const hearing, &ear)
            .addr();
        assert_eq!(
            ear.next(),
            Told::Progress(request, 1.0, 2.0, Some("half".to_owned()))
        );
        let Told::Progress(_, reached, total, message) = ear.next() else {
            panic!("no progress");
        };
        assert!(reached == 2.0 && total.is_nan() && message.is_none());
        assert!(ear.outcome().is_ok());
        // One that is waited for tells all of it before it returns.
        host.call_with("report", "{}", &raw const hearing).unwrap();
        let told = ear.rest();
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(
            told[0],
            Told::Progress(0, 1.0, 2.0, Some("half".to_owned()))
        );
    }
}

#[test]
fn a_request_that_is_not_answered_in_time_fails_and_says_how_long_it_waited() {
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
fn a_request_that_is_cancelled_ends_and_the_server_hears_of_it() {
    let service = Service::new();
    for revision in REVISIONS {
        let host = Host::connected(&service, revision);
        let ear = Ear::new();
        let request = host.begin("keep", "{}", &ear);
        let call = service.kept();
        let (heard, hears) = std::sync::mpsc::channel::<()>();
        let heard = Box::into_raw(Box::new(heard)).cast();
        // SAFETY: the data is what the callback takes it for.
        ok(unsafe { mcpl_call_on_cancel(call, Some(cancelled), heard, None) });
        ok(mcpl_request_cancel(request));
        assert_eq!(mcpl_request_cancel(request), MCPL_STALE_HANDLE);
        assert_eq!(ear.outcome(), Err(MCPL_REQUEST_CANCELLED));
        hears.recv().unwrap();
        assert!(mcpl_call_is_cancelled(call));
        // SAFETY: it is a handle.
        ok(unsafe { mcpl_call_fail(call, c"".as_ptr(), 0) });
        // What comes after goes on.
        assert!(host.call("echo", "{}").is_ok());
    }
}

unsafe extern "C" fn cancelled(_: *mut mcpl_call, user: *mut std::ffi::c_void) {
    // SAFETY: the data is a sender, and this is called once.
    let heard = unsafe { Box::from_raw(user.cast::<std::sync::mpsc::Sender<()>>()) };
    heard.send(()).unwrap();
}

#[test]
fn many_requests_at_once_each_get_their_own_answer() {
    let service = Service::new();
    let host = Host::connected(&service, "2026-07-28");
    let ear = Ear::new();
    let requests: Vec<(usize, String)> = (0..200)
        .map(|number| {
            let arguments = format!(r#"{{"n":{number}}}"#);
            (host.begin("echo", &arguments, &ear).addr(), arguments)
        })
        .collect();
    let mut answers = std::collections::HashMap::new();
    for _ in 0..requests.len() {
        let Told::Done(request, Ok(result)) = ear.next() else {
            panic!("no result");
        };
        let result: Value = serde_json::from_str(&result).unwrap();
        answers.insert(request, result["content"][0]["text"].clone());
    }
    for (request, arguments) in requests {
        assert_eq!(answers[&request], Value::String(arguments));
    }
}
