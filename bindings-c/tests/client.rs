//! The client as C calls it, toward a server in the same process.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::mpsc;
use std::time::Duration;

use mcpline_c::mcpl_status::*;
use mcpline_c::*;

/// Long beside anything that happens here: a guard against hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// A text that the library has given back.
fn taken(text: *mut c_char) -> String {
    assert!(!text.is_null());
    // SAFETY: the library gave it, and it is released once.
    unsafe {
        let copy = CStr::from_ptr(text).to_str().unwrap().to_owned();
        mcpl_string_free(text);
        copy
    }
}

fn last_error() -> String {
    // SAFETY: it is read before anything else is called.
    unsafe {
        let error = mcpl_last_error();
        CStr::from_ptr(mcpl_error_message(error)).to_str().unwrap().to_owned()
    }
}

#[track_caller]
fn ok(status: mcpl_status) {
    assert_eq!(status, MCPL_OK, "{}", last_error());
}

/// Answers with the arguments.
unsafe extern "C" fn echo(call: *mut mcpl_call, arguments: *const c_char, length: usize, _: *mut c_void) {
    // SAFETY: as the header says.
    unsafe { ok(mcpl_call_reply_text(call, arguments, length)) }
}

/// Keeps its call.
unsafe extern "C" fn keep(call: *mut mcpl_call, _: *const c_char, _: usize, user: *mut c_void) {
    // SAFETY: it was given one.
    let sender = unsafe { &*user.cast::<mpsc::Sender<usize>>() };
    sender.send(call.addr()).unwrap();
}

fn server() -> *mut mcpl_server {
    // SAFETY: the texts end with zero bytes.
    unsafe {
        let server = mcpl_server_new(c"test".as_ptr(), c"1".as_ptr());
        let schema = c"{\"type\":\"object\"}".as_ptr();
        let name = c"echo".as_ptr();
        ok(mcpl_server_add_tool(server, name, name, schema, Some(echo), null_mut(), None));
        server
    }
}

fn client(server: *mut mcpl_server) -> *mut mcpl_client {
    // SAFETY: the texts end with zero bytes.
    unsafe {
        let client = mcpl_client_new(c"host".as_ptr(), c"1".as_ptr());
        ok(mcpl_client_set_server(client, server));
        client
    }
}

fn done(client: *mut mcpl_client, server: *mut mcpl_server) {
    ok(mcpl_client_close(client));
    mcpl_client_free(client);
    // SAFETY: it is a handle.
    unsafe {
        ok(mcpl_server_close(server));
        mcpl_server_free(server);
    }
}

#[test]
fn a_tool_is_called_and_its_result_given_back() {
    let server = server();
    let client = client(server);
    ok(mcpl_client_open(client));
    let (mut result, mut length) = (null_mut(), 0);
    // SAFETY: the texts end with zero bytes, and the rest can be written to.
    unsafe {
        let arguments = c"{\"a\":1}";
        let (name, given) = (c"echo".as_ptr(), arguments.as_ptr());
        ok(mcpl_client_call_tool(client, name, given, usize::MAX, null(), &raw mut result, &raw mut length));
    }
    let result = taken(result);
    assert_eq!(result.len(), length);
    assert!(result.contains(r#""text":"{\"a\":1}""#), "{result}");
    done(client, server);
}
