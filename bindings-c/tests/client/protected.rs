//! A server that requires tokens: options name the issuers, handlers their required scopes; handlers see the caller.

use std::ffi::{c_char, c_void};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::ptr::{null, null_mut};

use mcpline_c::*;

use crate::host::{c, ok, taken};
use crate::service::Service;

/// Keys of an issuer, made for this test, and tokens signed with them, valid until 2100.
const AUTH: &str = r#"{"auth":{"resource":"http://localhost/tools/mcp","issuers":["https://auth.example.com"],
    "required_scopes":["mcp"],"jwks":{"keys":[{"kty":"EC","crv":"P-256","kid":"test",
    "x":"PfMvP64_N_xaKjuQ-vmWaHEgXVJ2GqBF-Ng4Nndn4BI","y":"12o7THPxmII6V1eN4RQPd_nytfOSMJwKa6SPPU0acjs"}]}}}"#;
const READER: &str = "eyJhbGciOiAiRVMyNTYiLCAia2lkIjogInRlc3QifQ.eyJpc3MiOiAiaHR0cHM6Ly9hdXRoLmV4YW1wbGUuY29tIiwgInN1YiI6ICJhbGljZSIsICJjbGllbnRfaWQiOiAiY2xpZW50IiwgImF1ZCI6ICJodHRwOi8vbG9jYWxob3N0L3Rvb2xzL21jcCIsICJleHAiOiA0MTAyNDQ0ODAwLCAic2NvcGUiOiAibWNwIn0.ZkM2rjOprk4vIXgMSY6n6QVoyusI_O9-E-bXPpVuM_Q8RaIfU-8UGnXVL0iEFzae5KHZnPiAD1ZRp44YmaoHkA";
const WRITER: &str = "eyJhbGciOiAiRVMyNTYiLCAia2lkIjogInRlc3QifQ.eyJpc3MiOiAiaHR0cHM6Ly9hdXRoLmV4YW1wbGUuY29tIiwgInN1YiI6ICJhbGljZSIsICJjbGllbnRfaWQiOiAiY2xpZW50IiwgImF1ZCI6ICJodHRwOi8vbG9jYWxob3N0L3Rvb2xzL21jcCIsICJleHAiOiA0MTAyNDQ0ODAwLCAic2NvcGUiOiAibWNwIGZpbGVzOndyaXRlIn0._7fOy0-tnvRRHVQFSRp69bZ6lAAjwhe6zQOLabqxzX3e2uNsPYob0N7H2S-mOjH3b-kTeA_7dEuyf2H3c3CLJw";

/// Replies with the context of the request.
unsafe extern "C" fn reply_with_info(
    call: *mut mcpl_call,
    _: *const c_char,
    _: usize,
    _: *mut c_void,
) {
    let (mut json, mut length) = (null_mut(), 0);
    unsafe {
        ok(mcpl_call_info(call, &raw mut json, &raw mut length));
        let info = c(&taken(json));
        mcpl_call_reply_text(call, info.as_ptr(), MCPL_AUTO_LENGTH);
    }
}

fn start(service: &Service) -> u16 {
    let mut port = 0;
    let (host, options) = (c"127.0.0.1".as_ptr(), c(AUTH));
    ok(unsafe { mcpl_server_start_http(service.server, host, 0, options.as_ptr(), &raw mut port) });
    port
}

/// Requires the scope `files:write`, as a handler does that knows its requirement only from the arguments.
unsafe extern "C" fn require_write(
    call: *mut mcpl_call,
    _: *const c_char,
    _: usize,
    _: *mut c_void,
) {
    unsafe {
        let status = mcpl_call_require_scopes(call, c"files:write".as_ptr());
        if status == mcpl_status::MCPL_OK {
            ok(mcpl_call_reply_text(
                call,
                c"written".as_ptr(),
                MCPL_AUTO_LENGTH,
            ));
            return;
        }
        assert_eq!(status, mcpl_status::MCPL_RPC_ERROR);
        assert_eq!(mcpl_error_rpc_code(mcpl_last_error()), -31001);
        ok(mcpl_call_fail_with(call, mcpl_last_error()));
    }
}

fn add(service: &Service, name: &str, scopes: *const c_char, size: usize) -> mcpl_status {
    add_handler(service, name, scopes, size, reply_with_info)
}

fn add_handler(
    service: &Service,
    name: &str,
    scopes: *const c_char,
    size: usize,
    handler: unsafe extern "C" fn(*mut mcpl_call, *const c_char, usize, *mut c_void),
) -> mcpl_status {
    let definition = c(&format!(
        r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#
    ));
    let options = mcpl_handler_options {
        size,
        flags: 0,
        calls_per_second: 0,
        burst: 0,
        scopes,
        extension: std::ptr::null(),
        unchecked_variables: std::ptr::null(),
        timeout_ms: 0,
        cache_ttl_ms: 0,
    };
    unsafe {
        mcpl_server_add_tool_with(
            service.server,
            definition.as_ptr(),
            MCPL_AUTO_LENGTH,
            &raw const options,
            Some(handler),
            null_mut(),
            None,
        )
    }
}

/// Sends a request of 2026-07-28 and returns the whole response.
fn ask(port: u16, token: &str, method: &str, name: &str) -> String {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let params = match name {
        "" => format!(r#"{{"_meta":{meta}}}"#),
        name => format!(r#"{{"name":"{name}","arguments":{{}},"_meta":{meta}}}"#),
    };
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    let named = match name {
        "" => String::new(),
        name => format!("Mcp-Name: {name}\r\n"),
    };
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: {method}\r\n{named}Authorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn enforces_scopes_of_a_tool_and_passes_the_caller_to_its_handler() {
    let service = Service::new();
    let all = size_of::<mcpl_handler_options>();
    ok(add(&service, "whoami", null(), all));
    let scopes = c"files:write";
    ok(add(&service, "save", scopes.as_ptr(), all));
    let port = start(&service);

    let refused = ask(port, "made-up", "tools/list", "");
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let listed = ask(port, READER, "tools/list", "");
    assert!(
        listed.contains("whoami") && !listed.contains("save"),
        "{listed}"
    );
    let refused = ask(port, READER, "tools/call", "save");
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    assert!(refused.contains("scope=\"mcp files:write\""), "{refused}");

    let answer = ask(port, WRITER, "tools/call", "save");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let body = answer.split_once("\r\n\r\n").expect("a body").1;
    let answer: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let info = answer["result"]["content"][0]["text"]
        .as_str()
        .expect("text");
    assert!(!info.contains(WRITER), "{info}");
    let info: serde_json::Value = serde_json::from_str(info).expect("JSON");
    assert_eq!(info["auth"]["subject"], "alice");
    assert_eq!(info["auth"]["clientId"], "client");
    assert_eq!(info["auth"]["scopes"][1], "files:write");
    assert_eq!(info["auth"]["expiresAt"], 4_102_444_800_u64);
    assert_eq!(info["auth"]["claims"]["sub"], "alice");
}

#[test]
fn challenges_for_scopes_that_a_handler_requires() {
    let service = Service::new();
    let all = size_of::<mcpl_handler_options>();
    ok(add_handler(&service, "write", null(), all, require_write));
    let port = start(&service);

    // Every caller sees the tool.
    let listed = ask(port, READER, "tools/list", "");
    assert!(listed.contains("write"), "{listed}");
    let refused = ask(port, READER, "tools/call", "write");
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    assert!(
        refused.contains("error=\"insufficient_scope\""),
        "{refused}"
    );
    assert!(refused.contains("scope=\"mcp files:write\""), "{refused}");
    let answer = ask(port, WRITER, "tools/call", "write");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("written"), "{answer}");
}

/// Verifies two tokens: one is alice's, the other cannot be verified at the moment.
unsafe extern "C" fn check(
    input_request: *mut mcpl_input_request,
    params: *const c_char,
    length: usize,
    _: *mut c_void,
) {
    let params = unsafe { std::slice::from_raw_parts(params.cast::<u8>(), length) };
    let params: serde_json::Value = serde_json::from_slice(params).expect("JSON");
    unsafe {
        ok(match params["token"].as_str().expect("a token") {
            "sesame" => {
                let caller =
                    c(r#"{"subject": "alice", "scopes": ["mcp"], "claims": {"team": "red"}}"#);
                mcpl_input_request_answer(input_request, caller.as_ptr(), MCPL_AUTO_LENGTH)
            }
            "later" => {
                mcpl_input_request_refuse(input_request, -32603, c"no database".as_ptr(), null(), 0)
            }
            _ => {
                mcpl_input_request_refuse(input_request, -1, c"it is nobody's".as_ptr(), null(), 0)
            }
        });
    }
}

#[test]
fn a_callback_verifies_tokens_instead_of_the_server() {
    let service = Service::new();
    ok(add(
        &service,
        "whoami",
        null(),
        size_of::<mcpl_handler_options>(),
    ));
    let auth = c(
        r#"{"auth":{"resource":"http://localhost/mcp","required_scopes":["mcp"],"verifies":true,
        "authorization_servers":["https://auth.example.com"]}}"#,
    );
    let (host, mut port) = (c"127.0.0.1".as_ptr(), 0);
    let mut start =
        || unsafe { mcpl_server_start_http(service.server, host, 0, auth.as_ptr(), &raw mut port) };
    assert_eq!(start(), mcpl_status::MCPL_USAGE_ERROR, "nobody checks");
    ok(unsafe { mcpl_server_on_verify(service.server, Some(check), null_mut(), None) });
    ok(start());

    let answer = ask(port, "sesame", "tools/call", "whoami");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.contains("alice") && answer.contains("red"),
        "{answer}"
    );
    let refused = ask(port, "open", "tools/list", "");
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    assert!(refused.contains("it is nobody's"), "{refused}");
    let unknown = ask(port, "later", "tools/list", "");
    assert!(unknown.starts_with("HTTP/1.1 503"), "{unknown}");
    assert!(!unknown.contains("database"), "{unknown}");
}

#[test]
fn reads_options_without_scopes_and_rejects_bad_scopes() {
    let service = Service::new();
    let before = std::mem::offset_of!(mcpl_handler_options, scopes);
    // Bytes beyond the given size are not read.
    let nowhere = std::ptr::without_provenance::<c_char>(1);
    ok(add(&service, "before", nowhere, before));
    let all = size_of::<mcpl_handler_options>();
    for bad in [c"two  spaces", c"a\"b", c"caf\xc3\xa9"] {
        let refused = add(&service, "bad", bad.as_ptr(), all);
        assert_eq!(refused, mcpl_status::MCPL_USAGE_ERROR);
    }
    ok(add(&service, "bad", c"".as_ptr(), all));
}
