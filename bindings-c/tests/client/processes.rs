//! Servers in their own processes: this program itself, started again.

use std::ptr::null;

use mcpline_c::mcpl_status::*;
use mcpline_c::*;

use crate::host::{Event, EventReceiver, Host, c, last_error, line, ok, release};
use crate::service::Service;

/// The environment variable that makes this program the server.
const SERVES: &str = "MCPLINE_C_TEST_SERVES";

/// Runs the server if the environment variable is set; otherwise a test that does nothing.
#[test]
fn serves_when_started_as_server() {
    if std::env::var_os(SERVES).is_some() {
        eprintln!("serving");
        let service = Service::new();
        ok(mcpl_server_run_stdio(service.server));
    }
}

/// Creates a client that starts this program as its server.
fn host() -> Host {
    let host = Host::new();
    let program = std::env::current_exe().unwrap();
    let argv = [
        program.to_str().unwrap(),
        "--exact",
        "processes::serves_when_started_as_server",
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
fn starts_a_server_process_and_receives_its_stderr() {
    let host = host();
    let receiver = EventReceiver::new();
    // SAFETY: the data is released by its finalizer.
    ok(unsafe { mcpl_client_on_stderr(host.0, Some(line), receiver.given(), Some(release)) });
    ok(mcpl_client_open(host.0));
    let result = host.call("echo", r#"{"far":true}"#).unwrap();
    assert_eq!(result["content"][0]["text"], r#"{"far":true}"#);
    ok(mcpl_client_close(host.0));
    let mut events = receiver.rest();
    assert_eq!(events.pop(), Some(Event::Released));
    assert!(
        events.contains(&Event::Line("serving".to_owned())),
        "{events:?}"
    );
}

#[test]
fn reports_the_last_stderr_lines_of_a_process_that_exited() {
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
fn reports_servers_that_cannot_be_started_or_reached() {
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
        // No server listens on the discard port.
        let status = mcpl_client_connect(host.0, c"http://127.0.0.1:9/mcp".as_ptr());
        assert_eq!(status, MCPL_SERVER_UNREACHABLE, "{}", last_error());
        ok(mcpl_client_set_socket(
            host.0,
            c"/nowhere/at/all.sock".as_ptr(),
        ));
        assert_eq!(mcpl_client_open(host.0), MCPL_SERVER_UNREACHABLE);
    }
}

#[test]
fn connects_to_a_server_over_http() {
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
