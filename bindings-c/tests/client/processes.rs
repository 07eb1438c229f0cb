//! Servers in processes of their own: this program itself, started again.

use std::ptr::null;

use mcpline_c::mcpl_status::*;
use mcpline_c::*;

use crate::host::{Ear, Host, Told, c, last_error, line, ok, release};
use crate::service::Service;

/// What tells this program that it is the server.
const SERVES: &str = "MCPLINE_C_TEST_SERVES";

/// Is a server if it is told so; a test among others if it isn't.
#[test]
fn serves_when_told() {
    if std::env::var_os(SERVES).is_some() {
        eprintln!("serving");
        let service = Service::new();
        ok(mcpl_server_run_stdio(service.server));
    }
}

/// A client of this program as a server.
fn host() -> Host {
    let host = Host::new();
    let program = std::env::current_exe().unwrap();
    let argv = [
        program.to_str().unwrap(),
        "--exact",
        "processes::serves_when_told",
        "--nocapture",
    ]
    .map(c);
    let argv = argv.each_ref().map(|text| text.as_ptr());
    let options = c(&format!(r#"{{"env":{{"{SERVES}":"1"}}}}"#));
    // SAFETY: the texts end with zero bytes.
    ok(unsafe { mcpl_client_set_command(host.0, argv.as_ptr(), argv.len(), options.as_ptr()) });
    host
}

#[test]
fn a_program_is_started_asked_and_ended_and_its_stderr_is_heard() {
    let host = host();
    let ear = Ear::new();
    // SAFETY: the data is released by its finalizer.
    ok(unsafe { mcpl_client_on_stderr(host.0, Some(line), ear.given(), Some(release)) });
    ok(mcpl_client_open(host.0));
    let result = host.call("echo", r#"{"far":true}"#).unwrap();
    assert_eq!(result["content"][0]["text"], r#"{"far":true}"#);
    ok(mcpl_client_close(host.0));
    let mut heard = ear.rest();
    assert_eq!(heard.pop(), Some(Told::Released));
    assert!(
        heard.contains(&Told::Line("serving".to_owned())),
        "{heard:?}"
    );
}

#[test]
fn a_program_that_ends_says_its_last_words() {
    let host = Host::new();
    let argv = [c"sh", c"-c", c"echo oh no >&2; exit 3"].map(|text| text.as_ptr());
    // SAFETY: the texts end with zero bytes.
    assert_eq!(
        unsafe { mcpl_client_spawn(host.0, argv.as_ptr(), 3) },
        MCPL_SERVER_EXITED
    );
    assert!(last_error().contains("oh no"), "{}", last_error());
    // SAFETY: the error is this thread's last.
    let details = unsafe { std::ffi::CStr::from_ptr(mcpl_error_details(mcpl_last_error())) };
    let details: serde_json::Value = serde_json::from_slice(details.to_bytes()).unwrap();
    assert_eq!(details["stderr"], serde_json::json!(["oh no"]));
}

#[test]
fn what_cannot_be_started_or_reached_is_told() {
    let host = Host::new();
    let nothing = [c"/nowhere/at/all".as_ptr()];
    // SAFETY: the texts end with zero bytes.
    unsafe {
        assert_eq!(
            mcpl_client_spawn(host.0, nothing.as_ptr(), 1),
            MCPL_SERVER_UNREACHABLE
        );
        assert_eq!(mcpl_client_spawn(host.0, null(), 1), MCPL_USAGE_ERROR);
        assert_eq!(mcpl_client_spawn(host.0, null(), 0), MCPL_USAGE_ERROR);
        // Nobody listens on the discard port.
        let nobody = mcpl_client_connect(host.0, c"http://127.0.0.1:9/mcp".as_ptr());
        assert_eq!(nobody, MCPL_SERVER_UNREACHABLE, "{}", last_error());
        ok(mcpl_client_set_socket(
            host.0,
            c"/nowhere/at/all.sock".as_ptr(),
        ));
        assert_eq!(mcpl_client_open(host.0), MCPL_SERVER_UNREACHABLE);
    }
}

#[test]
fn a_server_over_http_is_connected_to() {
    let service = Service::new();
    let mut port = 0;
    // SAFETY: the texts end with zero bytes.
    unsafe {
        ok(mcpl_server_start_http(
            service.server,
            c"127.0.0.1".as_ptr(),
            0,
            null(),
            &raw mut port,
        ));
        let url = c(&format!("http://127.0.0.1:{port}/mcp"));
        let host = Host::new();
        ok(mcpl_client_connect(host.0, url.as_ptr()));
        let result = host.call("echo", "{}").unwrap();
        assert_eq!(result["content"][0]["text"], "{}");
        ok(mcpl_client_close(host.0));
    }
}
