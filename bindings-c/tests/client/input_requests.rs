//! Input requests of a server: answered later, on another thread, twice or never, and cancelled.

use std::ptr::null;

use mcpline_c::mcpl_status::*;
use mcpline_c::*;
use serde_json::{Value, json};

use crate::host::{Event, EventReceiver, Host, ask, ok, release, withdrawn};
use crate::service::Service;

const ALL: usize = MCPL_AUTO_LENGTH;
const ACCEPTED: &std::ffi::CStr = c"{\"action\":\"accept\",\"content\":{\"name\":\"eve\"}}";

/// Connects a host that handles elicitation.
fn connect_for_elicitation(service: &Service, revision: &str, receiver: &EventReceiver) -> Host {
    let host = Host::of(service);
    host.speak(revision);
    // SAFETY: the data is released by its finalizer.
    ok(unsafe { mcpl_client_on_elicit(host.0, Some(ask), receiver.given(), Some(release)) });
    ok(mcpl_client_open(host.0));
    host
}

fn text(result: &str) -> String {
    let result: Value = serde_json::from_str(result).unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn an_input_request_is_answered_later_from_another_thread_in_every_era() {
    let service = Service::new();
    for revision in ["2025-11-25", "2026-07-28"] {
        let (receiver, end) = (EventReceiver::new(), EventReceiver::new());
        let host = connect_for_elicitation(&service, revision, &receiver);
        host.begin("ask", "{}", &end);
        let (input_request, params) = receiver.input_request();
        assert_eq!(params["message"], "Who?");
        assert!(!mcpl_input_request_is_cancelled(input_request));
        // SAFETY: the texts end with zero bytes.
        unsafe {
            // An invalid answer leaves it open.
            for unfit in [
                c"no",
                c"[]",
                c"{\"action\":\"maybe\"}",
                c"{\"action\":\"accept\",\"content\":{\"name\":7}}",
            ] {
                let refused = mcpl_input_request_answer(input_request, unfit.as_ptr(), ALL);
                assert_eq!(refused, MCPL_USAGE_ERROR);
            }
            assert_eq!(
                mcpl_input_request_answer(input_request, null(), 0),
                MCPL_USAGE_ERROR
            );
            ok(mcpl_input_request_answer(
                input_request,
                ACCEPTED.as_ptr(),
                ALL,
            ));
            // Only once.
            assert_eq!(
                mcpl_input_request_answer(input_request, ACCEPTED.as_ptr(), ALL),
                MCPL_STALE_HANDLE
            );
            let refused = mcpl_input_request_refuse(input_request, -1, c"no".as_ptr(), null(), 0);
            assert_eq!(refused, MCPL_STALE_HANDLE);
        }
        assert!(mcpl_input_request_is_cancelled(input_request));
        let answer: Value = serde_json::from_str(&text(&end.outcome().unwrap())).unwrap();
        assert_eq!(
            answer,
            json!({"action": "accept", "content": {"name": "eve"}})
        );
        ok(mcpl_client_close(host.0));
        assert_eq!(receiver.rest(), [Event::Released]);
    }
}

#[test]
fn a_refusal_reaches_the_server() {
    let service = Service::new();
    let (receiver, end) = (EventReceiver::new(), EventReceiver::new());
    let host = connect_for_elicitation(&service, "2025-11-25", &receiver);
    host.begin("ask", "{}", &end);
    let (input_request, _) = receiver.input_request();
    let data = c"[1]".as_ptr();
    // SAFETY: the texts end with zero bytes.
    ok(unsafe { mcpl_input_request_refuse(input_request, -32603, c"no".as_ptr(), data, ALL) });
    assert_eq!(text(&end.outcome().unwrap()), "MCPL_INPUT_REQUEST_FAILED");
}

#[test]
fn an_input_request_is_cancelled_with_the_clients_request() {
    let service = Service::new();
    let (receiver, end) = (EventReceiver::new(), EventReceiver::new());
    let host = connect_for_elicitation(&service, "2026-07-28", &receiver);
    let request = host.begin("ask", "{}", &end);
    let (input_request, _) = receiver.input_request();
    // SAFETY: here and below, the data is released by its finalizer, and the texts end with zero bytes.
    ok(unsafe {
        mcpl_input_request_on_cancel(
            input_request,
            Some(withdrawn),
            receiver.given(),
            Some(release),
        )
    });
    ok(mcpl_request_cancel(request));
    assert_eq!(end.outcome(), Err(MCPL_REQUEST_CANCELLED));
    assert_eq!(receiver.next(), Event::Withdrawn(input_request.addr()));
    assert_eq!(receiver.next(), Event::Released);
    assert!(mcpl_input_request_is_cancelled(input_request));
    let late = unsafe { mcpl_input_request_answer(input_request, ACCEPTED.as_ptr(), ALL) };
    assert_eq!(late, MCPL_STALE_HANDLE);
    // Too late for the callback: its data is released nevertheless.
    let late = unsafe {
        mcpl_input_request_on_cancel(
            input_request,
            Some(withdrawn),
            receiver.given(),
            Some(release),
        )
    };
    assert_eq!(late, MCPL_STALE_HANDLE);
    assert_eq!(receiver.next(), Event::Released);
}

#[test]
fn an_input_request_is_cancelled_when_the_server_stops_waiting() {
    let service = Service::with(r#"{"input_request_idle_timeout":0.05}"#);
    let (receiver, end) = (EventReceiver::new(), EventReceiver::new());
    let host = connect_for_elicitation(&service, "2025-11-25", &receiver);
    host.begin("ask", "{}", &end);
    let (input_request, _) = receiver.input_request();
    assert_eq!(text(&end.outcome().unwrap()), "MCPL_REQUEST_TIMED_OUT");
    while !mcpl_input_request_is_cancelled(input_request) {
        std::thread::yield_now();
    }
    // SAFETY: the text ends with a zero byte.
    let late = unsafe { mcpl_input_request_answer(input_request, ACCEPTED.as_ptr(), ALL) };
    assert_eq!(late, MCPL_STALE_HANDLE);
}

#[test]
fn a_cancellation_callback_is_replaced_and_released_with_the_answer() {
    let service = Service::new();
    let (receiver, end) = (EventReceiver::new(), EventReceiver::new());
    let host = connect_for_elicitation(&service, "2025-11-25", &receiver);
    host.begin("ask", "{}", &end);
    let (input_request, _) = receiver.input_request();
    // SAFETY: the data is released by its finalizer; the text ends with a zero byte.
    unsafe {
        let on_cancel = mcpl_input_request_on_cancel;
        ok(on_cancel(
            input_request,
            Some(withdrawn),
            receiver.given(),
            Some(release),
        ));
        assert_eq!(receiver.rest(), []);
        ok(on_cancel(
            input_request,
            Some(withdrawn),
            receiver.given(),
            Some(release),
        ));
        assert_eq!(receiver.rest(), [Event::Released]);
        assert_eq!(
            on_cancel(input_request, None, receiver.given(), Some(release)),
            MCPL_USAGE_ERROR
        );
        assert_eq!(receiver.rest(), [Event::Released]);
        ok(mcpl_input_request_answer(
            input_request,
            ACCEPTED.as_ptr(),
            ALL,
        ));
        assert_eq!(receiver.rest(), [Event::Released]);
    }
    assert!(end.outcome().is_ok());
}

#[test]
fn an_unanswered_input_request_ends_with_the_client() {
    let service = Service::new();
    for revision in ["2025-11-25", "2026-07-28"] {
        let (receiver, end) = (EventReceiver::new(), EventReceiver::new());
        let host = connect_for_elicitation(&service, revision, &receiver);
        host.begin("ask", "{}", &end);
        let (input_request, _) = receiver.input_request();
        ok(mcpl_client_close(host.0));
        assert_eq!(end.outcome(), Err(MCPL_CLOSED));
        assert_eq!(receiver.rest(), [Event::Released]);
        // SAFETY: the text ends with a zero byte.
        let late = unsafe { mcpl_input_request_answer(input_request, ACCEPTED.as_ptr(), ALL) };
        assert_eq!(late, MCPL_STALE_HANDLE);
        assert!(mcpl_input_request_is_cancelled(input_request));
    }
}

#[test]
fn sends_no_input_request_without_the_capability() {
    let service = Service::new();
    let host = Host::connected(&service, "2025-11-25");
    let result = host.call("ask", "{}").unwrap();
    assert_eq!(result["content"][0]["text"], "MCPL_NOT_SUPPORTED");
}

#[test]
fn approves_tool_calls_and_reports_their_outcomes() {
    let service = Service::new();
    let (before, after, end) = (
        EventReceiver::new(),
        EventReceiver::new(),
        EventReceiver::new(),
    );
    let host = Host::of(&service);
    // SAFETY: the data is released by its finalizer.
    unsafe {
        ok(mcpl_client_on_tool_call(
            host.0,
            Some(ask),
            before.given(),
            Some(release),
        ));
        ok(mcpl_client_on_tool_outcome(
            host.0,
            Some(ask),
            after.given(),
            Some(release),
        ));
    }
    ok(mcpl_client_open(host.0));
    let outcome_of = |refusal: Option<&std::ffi::CStr>| {
        host.begin("echo", r#"{"a":1}"#, &end);
        let (input_request, call) = before.input_request();
        assert_eq!(call["name"], "echo");
        assert_eq!(call["arguments"], json!({"a": 1}));
        // SAFETY: here and below, the texts end with zero bytes.
        ok(unsafe {
            match refusal {
                None => mcpl_input_request_answer(input_request, c"{}".as_ptr(), ALL),
                Some(why) => mcpl_input_request_refuse(input_request, -1, why.as_ptr(), null(), 0),
            }
        });
        let (input_request, outcome) = after.input_request();
        assert_eq!(outcome["call"], call);
        // The caller gets the outcome only after the answer.
        assert_eq!(end.rest(), []);
        ok(unsafe { mcpl_input_request_answer(input_request, c"{}".as_ptr(), ALL) });
        (outcome, end.outcome())
    };
    let (outcome_params, outcome) = outcome_of(None);
    assert_eq!(outcome_params["result"]["content"][0]["text"], r#"{"a":1}"#);
    assert_eq!(text(&outcome.unwrap()), r#"{"a":1}"#);
    let (outcome_params, outcome) = outcome_of(Some(c"not today"));
    assert_eq!(outcome_params["error"]["kind"], "tool_call_refused");
    assert!(
        outcome_params["error"]["message"]
            .as_str()
            .unwrap()
            .contains("not today")
    );
    assert_eq!(outcome, Err(MCPL_TOOL_CALL_REFUSED));
}
