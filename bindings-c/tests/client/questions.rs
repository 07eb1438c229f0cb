//! Questions of a server: answered at once, later, from elsewhere, twice, never, and no longer wanted.

use std::ptr::null;

use mcpline_c::mcpl_status::*;
use mcpline_c::*;
use serde_json::{Value, json};

use crate::host::{Ear, Host, Told, ask, ok, release, withdrawn};
use crate::service::Service;

const ALL: usize = MCPL_AUTO_LENGTH;
const ACCEPTED: &std::ffi::CStr = c"{\"action\":\"accept\",\"content\":{\"name\":\"eve\"}}";

/// A host whose user is asked.
fn asked(service: &Service, revision: &str, ear: &Ear) -> Host {
    let host = Host::of(service);
    host.speak(revision);
    // SAFETY: the data is released by its finalizer.
    ok(unsafe { mcpl_client_on_elicit(host.0, Some(ask), ear.given(), Some(release)) });
    ok(mcpl_client_open(host.0));
    host
}

fn text(result: &str) -> String {
    let result: Value = serde_json::from_str(result).unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_question_is_answered_later_from_another_thread_on_every_era() {
    let service = Service::new();
    for revision in ["2025-11-25", "2026-07-28"] {
        let (ear, end) = (Ear::new(), Ear::new());
        let host = asked(&service, revision, &ear);
        host.begin("ask", "{}", &end);
        let (question, params) = ear.question();
        assert_eq!(params["message"], "Who?");
        assert!(!mcpl_input_request_is_cancelled(question));
        // SAFETY: the texts end with zero bytes.
        unsafe {
            // What is no answer leaves it open.
            for unfit in [
                c"no",
                c"[]",
                c"{\"action\":\"maybe\"}",
                c"{\"action\":\"accept\",\"content\":{\"name\":7}}",
            ] {
                let refused = mcpl_input_request_answer(question, unfit.as_ptr(), ALL);
                assert_eq!(refused, MCPL_USAGE_ERROR);
            }
            assert_eq!(
                mcpl_input_request_answer(question, null(), 0),
                MCPL_USAGE_ERROR
            );
            ok(mcpl_input_request_answer(question, ACCEPTED.as_ptr(), ALL));
            // Once.
            assert_eq!(
                mcpl_input_request_answer(question, ACCEPTED.as_ptr(), ALL),
                MCPL_STALE_HANDLE
            );
            let refused = mcpl_input_request_refuse(question, -1, c"no".as_ptr(), null(), 0);
            assert_eq!(refused, MCPL_STALE_HANDLE);
        }
        assert!(mcpl_input_request_is_cancelled(question));
        let answer: Value = serde_json::from_str(&text(&end.outcome().unwrap())).unwrap();
        assert_eq!(
            answer,
            json!({"action": "accept", "content": {"name": "eve"}})
        );
        ok(mcpl_client_close(host.0));
        assert_eq!(ear.rest(), [Told::Released]);
    }
}

#[test]
fn a_refusal_reaches_the_server() {
    let service = Service::new();
    let (ear, end) = (Ear::new(), Ear::new());
    let host = asked(&service, "2025-11-25", &ear);
    host.begin("ask", "{}", &end);
    let (question, _) = ear.question();
    let data = c"[1]".as_ptr();
    // SAFETY: the texts end with zero bytes.
    ok(unsafe { mcpl_input_request_refuse(question, -32603, c"no".as_ptr(), data, ALL) });
    assert_eq!(text(&end.outcome().unwrap()), "MCPL_INPUT_REQUEST_FAILED");
}

#[test]
fn a_question_is_withdrawn_when_its_request_is_given_up() {
    let service = Service::new();
    let (ear, end) = (Ear::new(), Ear::new());
    let host = asked(&service, "2026-07-28", &ear);
    let request = host.begin("ask", "{}", &end);
    let (question, _) = ear.question();
    // SAFETY: here and below, the data is released by its finalizer, and the texts end with zero bytes.
    ok(unsafe {
        mcpl_input_request_on_cancel(question, Some(withdrawn), ear.given(), Some(release))
    });
    ok(mcpl_request_cancel(request));
    assert_eq!(end.outcome(), Err(MCPL_REQUEST_CANCELLED));
    assert_eq!(ear.next(), Told::Withdrawn(question.addr()));
    assert_eq!(ear.next(), Told::Released);
    assert!(mcpl_input_request_is_cancelled(question));
    let late = unsafe { mcpl_input_request_answer(question, ACCEPTED.as_ptr(), ALL) };
    assert_eq!(late, MCPL_STALE_HANDLE);
    // Too late to hear of it: what was given is released all the same.
    let late = unsafe {
        mcpl_input_request_on_cancel(question, Some(withdrawn), ear.given(), Some(release))
    };
    assert_eq!(late, MCPL_STALE_HANDLE);
    assert_eq!(ear.next(), Told::Released);
}

#[test]
fn a_question_is_withdrawn_when_the_server_waits_no_longer() {
    let service = Service::with(r#"{"ask_idle_timeout":0.05}"#);
    let (ear, end) = (Ear::new(), Ear::new());
    let host = asked(&service, "2025-11-25", &ear);
    host.begin("ask", "{}", &end);
    let (question, _) = ear.question();
    assert_eq!(text(&end.outcome().unwrap()), "MCPL_REQUEST_TIMED_OUT");
    while !mcpl_input_request_is_cancelled(question) {
        std::thread::yield_now();
    }
    // SAFETY: the text ends with a zero byte.
    let late = unsafe { mcpl_input_request_answer(question, ACCEPTED.as_ptr(), ALL) };
    assert_eq!(late, MCPL_STALE_HANDLE);
}

#[test]
fn who_is_told_of_the_withdrawal_is_replaced_and_forgotten_with_the_answer() {
    let service = Service::new();
    let (ear, end) = (Ear::new(), Ear::new());
    let host = asked(&service, "2025-11-25", &ear);
    host.begin("ask", "{}", &end);
    let (question, _) = ear.question();
    // SAFETY: the data is released by its finalizer; the text ends with a zero byte.
    unsafe {
        let tell = mcpl_input_request_on_cancel;
        ok(tell(question, Some(withdrawn), ear.given(), Some(release)));
        assert_eq!(ear.rest(), []);
        ok(tell(question, Some(withdrawn), ear.given(), Some(release)));
        assert_eq!(ear.rest(), [Told::Released]);
        assert_eq!(
            tell(question, None, ear.given(), Some(release)),
            MCPL_USAGE_ERROR
        );
        assert_eq!(ear.rest(), [Told::Released]);
        ok(mcpl_input_request_answer(question, ACCEPTED.as_ptr(), ALL));
        assert_eq!(ear.rest(), [Told::Released]);
    }
    assert!(end.outcome().is_ok());
}

#[test]
fn a_question_that_is_never_answered_ends_with_the_client() {
    let service = Service::new();
    for revision in ["2025-11-25", "2026-07-28"] {
        let (ear, end) = (Ear::new(), Ear::new());
        let host = asked(&service, revision, &ear);
        host.begin("ask", "{}", &end);
        let (question, _) = ear.question();
        ok(mcpl_client_close(host.0));
        assert_eq!(end.outcome(), Err(MCPL_CLOSED));
        assert_eq!(ear.rest(), [Told::Released]);
        // SAFETY: the text ends with a zero byte.
        let late = unsafe { mcpl_input_request_answer(question, ACCEPTED.as_ptr(), ALL) };
        assert_eq!(late, MCPL_STALE_HANDLE);
        assert!(mcpl_input_request_is_cancelled(question));
    }
}

#[test]
fn a_host_that_cannot_be_asked_is_not_asked() {
    let service = Service::new();
    let host = Host::connected(&service, "2025-11-25");
    let result = host.call("ask", "{}").unwrap();
    assert_eq!(result["content"][0]["text"], "MCPL_NOT_SUPPORTED");
}

#[test]
fn tool_calls_are_asked_about_and_their_outcomes_told() {
    let service = Service::new();
    let (before, after, end) = (Ear::new(), Ear::new(), Ear::new());
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
        let (question, call) = before.question();
        assert_eq!(call["name"], "echo");
        assert_eq!(call["arguments"], json!({"a": 1}));
        // SAFETY: here and below, the texts end with zero bytes.
        ok(unsafe {
            match refusal {
                None => mcpl_input_request_answer(question, c"{}".as_ptr(), ALL),
                Some(why) => mcpl_input_request_refuse(question, -1, why.as_ptr(), null(), 0),
            }
        });
        let (question, outcome) = after.question();
        assert_eq!(outcome["call"], call);
        // Its caller hears of it next.
        assert_eq!(end.rest(), []);
        ok(unsafe { mcpl_input_request_answer(question, c"{}".as_ptr(), ALL) });
        (outcome, end.outcome())
    };
    let (told, outcome) = outcome_of(None);
    assert_eq!(told["result"]["content"][0]["text"], r#"{"a":1}"#);
    assert_eq!(text(&outcome.unwrap()), r#"{"a":1}"#);
    let (told, outcome) = outcome_of(Some(c"not today"));
    assert_eq!(told["error"]["kind"], "tool_call_refused");
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("not today")
    );
    assert_eq!(outcome, Err(MCPL_TOOL_CALL_REFUSED));
}
