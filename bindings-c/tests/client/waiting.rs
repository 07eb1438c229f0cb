//! Waiting within callbacks: allowed where the wait can end, refused where it cannot.

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use mcpline_c::mcpl_status::*;
use mcpline_c::*;

use crate::host::{EventReceiver, Host, c, ok};
use crate::service::Service;

/// Replies with the result of another server; its user data is the client of that server.
unsafe extern "C" fn relay(
    call: *mut mcpl_call,
    arguments: *const c_char,
    length: usize,
    user: *mut c_void,
) {
    let (mut result, mut size) = (null_mut(), 0);
    unsafe {
        let (result, size, name) = (&raw mut result, &raw mut size, c"echo".as_ptr());
        match mcpl_client_call_tool(user.cast(), name, arguments, length, null(), result, size) {
            MCPL_OK => {
                ok(mcpl_call_reply_result(call, *result, *size));
                mcpl_string_free(*result);
            }
            status => {
                let text = mcpl_status_name(status as i32);
                ok(mcpl_call_fail(call, text, MCPL_AUTO_LENGTH));
            }
        }
    }
}

/// Creates a server whose tool `relay` calls a tool of another server.
fn relaying(behind: &Host, flags: u32) -> Service {
    let service = Service::new();
    let definition = c(r#"{"name":"relay","inputSchema":{"type":"object"}}"#);
    let options = mcpl_handler_options {
        size: size_of::<mcpl_handler_options>(),
        flags,
        calls_per_second: 0,
        burst: 0,
        scopes: std::ptr::null(),
        extension: std::ptr::null(),
        unchecked_variables: std::ptr::null(),
        timeout_ms: 0,
        cache_ttl_ms: 0,
    };
    let (definition, client) = (definition.as_ptr(), behind.0.cast());
    ok(unsafe {
        let (all, options) = (MCPL_AUTO_LENGTH, &raw const options);
        mcpl_server_add_tool_with(
            service.server,
            definition,
            all,
            options,
            Some(relay),
            client,
            None,
        )
    });
    service
}

#[test]
fn any_number_of_handlers_may_wait_for_other_servers() {
    let service = Service::new();
    let behind = Host::connected(&service, "2025-11-25");
    let front = relaying(&behind, 0);
    let host = Host::connected(&front, "2025-11-25");
    let receiver = EventReceiver::new();
    for number in 0..100 {
        host.begin("relay", &format!(r#"{{"n":{number}}}"#), &receiver);
    }
    let mut answers: Vec<String> = (0..100).map(|_| receiver.outcome().unwrap()).collect();
    answers.sort_unstable();
    answers.dedup();
    assert_eq!(answers.len(), 100);
    assert!(answers.iter().all(|answer| answer.contains(r#"{\"n\":"#)));
}

#[test]
fn a_handler_on_the_io_thread_must_not_wait() {
    let service = Service::new();
    let behind = Host::connected(&service, "2025-11-25");
    let front = relaying(&behind, 1);
    let host = Host::connected(&front, "2025-11-25");
    let result = host.call("relay", "{}").unwrap();
    assert_eq!(result["content"][0]["text"], "MCPL_WOULD_DEADLOCK");
}

#[test]
fn many_threads_use_one_client_and_one_of_them_closes_it() {
    let service = Service::new();
    let host = Arc::new(Shared(Host::connected(&service, "2026-07-28")));
    let (answered, answers) = std::sync::mpsc::channel();
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (host, answered) = (host.clone(), answered.clone());
            std::thread::spawn(move || {
                loop {
                    match host.get().call("echo", "{}") {
                        // The test waits only for the first ones.
                        Ok(_) => drop(answered.send(())),
                        Err(status) => return status,
                    }
                }
            })
        })
        .collect();
    for _ in 0..100 {
        answers.recv().unwrap();
    }
    ok(mcpl_client_close(host.get().0));
    for thread in threads {
        assert_eq!(thread.join().unwrap(), MCPL_CLOSED);
    }
}

/// A client may be used from any thread.
struct Shared(Host);

unsafe impl Send for Shared {}
unsafe impl Sync for Shared {}

impl Shared {
    fn get(&self) -> &Host {
        &self.0
    }
}

#[test]
fn handlers_of_a_freed_server_do_not_run() {
    let service = Service::new();
    let host = Host::connected(&service, "2025-11-25");
    drop(service);
    assert_eq!(host.call("echo", "{}").unwrap()["isError"], true);
    ok(mcpl_client_close(host.0));
}
