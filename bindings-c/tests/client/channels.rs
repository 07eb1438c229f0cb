//! Clients over a transport that the host provides.

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

use mcpline_c::mcpl_status::*;
use mcpline_c::*;

use crate::host::{
    Event, EventReceiver, Host, c, done, hung_up, last_error, ok, opening, release, sent,
};
use crate::service::{Count, Service, count};

const ALL: usize = MCPL_AUTO_LENGTH;

static FUNCTIONS: mcpl_channel_functions = mcpl_channel_functions {
    size: size_of::<mcpl_channel_functions>(),
    open: Some(opening),
    send: Some(sent),
    ready: None,
    close: Some(hung_up),
};

fn channel(event: &Event) -> *mut mcpl_channel {
    match event {
        Event::Opening(channel) => std::ptr::without_provenance_mut(*channel),
        other => panic!("{other:?}"),
    }
}

/// A wire between a client and a server, with a channel at each end: each receives what the other sends.
#[derive(Default)]
struct Wire {
    service: Mutex<usize>,
    client: Mutex<usize>,
    server: Mutex<usize>,
    closed: Mutex<Vec<&'static str>>,
}

impl Wire {
    fn of<'w>(user: *mut c_void) -> &'w Self {
        // SAFETY: the tests pass no other data.
        unsafe { &*user.cast() }
    }

    fn forward(end: &Mutex<usize>, message: *const c_char, length: usize) {
        let channel = std::ptr::without_provenance_mut(*end.lock().unwrap());
        // SAFETY: the message has this length. The other end may be closed already.
        unsafe { mcpl_channel_receive(channel, message, length) };
    }
}

unsafe extern "C" fn dial(channel: *mut mcpl_channel, user: *mut c_void) {
    let wire = Wire::of(user);
    *wire.client.lock().unwrap() = channel.addr();
    let functions = mcpl_channel_functions {
        open: None,
        send: Some(to_client),
        close: Some(server_closed),
        ..FUNCTIONS
    };
    let server = std::ptr::without_provenance_mut(*wire.service.lock().unwrap());
    // SAFETY: the wire outlives both channels.
    unsafe {
        let end = mcpl_server_serve_channel(server, &raw const functions, null(), 0, user, None);
        assert!(!end.is_null());
        *wire.server.lock().unwrap() = end.addr();
        ok(mcpl_channel_opened(channel, null()));
        assert_eq!(mcpl_channel_opened(channel, null()), MCPL_USAGE_ERROR);
    }
}

unsafe extern "C" fn to_server(
    _: *mut mcpl_channel,
    message: *const c_char,
    length: usize,
    user: *mut c_void,
) -> i32 {
    Wire::forward(&Wire::of(user).server, message, length);
    MCPL_OK as i32
}

unsafe extern "C" fn to_client(
    _: *mut mcpl_channel,
    message: *const c_char,
    length: usize,
    user: *mut c_void,
) -> i32 {
    Wire::forward(&Wire::of(user).client, message, length);
    MCPL_OK as i32
}

unsafe extern "C" fn client_closed(_: *mut mcpl_channel, user: *mut c_void) {
    let wire = Wire::of(user);
    wire.closed.lock().unwrap().push("client");
    let server = std::ptr::without_provenance_mut(*wire.server.lock().unwrap());
    // SAFETY: it is a handle.
    unsafe { mcpl_channel_hang_up(server, null()) };
}

unsafe extern "C" fn server_closed(_: *mut mcpl_channel, user: *mut c_void) {
    Wire::of(user).closed.lock().unwrap().push("server");
}

#[test]
fn connects_a_client_to_a_server_over_a_custom_transport() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let wire = Wire::default();
        let service = Service::new();
        *wire.service.lock().unwrap() = service.server.addr();
        let host = Host::new();
        host.speak(revision);
        let functions = mcpl_channel_functions {
            open: Some(dial),
            send: Some(to_server),
            close: Some(client_closed),
            ..FUNCTIONS
        };
        let user = (&raw const wire).cast_mut().cast();
        // SAFETY: the wire outlives the client.
        ok(unsafe { mcpl_client_set_channel(host.0, &raw const functions, user, None) });
        ok(mcpl_client_open(host.0));
        for number in 0..50 {
            let arguments = format!(r#"{{"n":{number}}}"#);
            let result = host.call("echo", &arguments).unwrap();
            assert_eq!(result["content"][0]["text"], arguments);
        }
        ok(mcpl_client_close(host.0));
        assert_eq!(wire.closed.lock().unwrap()[0], "client");
        drop(service);
        assert_eq!(*wire.closed.lock().unwrap(), ["client", "server"]);
    }
}

#[test]
fn reports_why_a_channel_did_not_open_and_allows_a_retry() {
    let host = Host::new();
    let (receiver, end) = (EventReceiver::new(), EventReceiver::new());
    // SAFETY: the data is released by its finalizer.
    ok(unsafe {
        mcpl_client_set_channel(
            host.0,
            &raw const FUNCTIONS,
            receiver.given(),
            Some(release),
        )
    });
    let mut last = null_mut();
    for _ in 0..2 {
        // SAFETY: the receiver outlives the request.
        ok(unsafe { mcpl_client_open_async(host.0, Some(done), end.lent(), null_mut()) });
        let channel = channel(&receiver.next());
        // SAFETY: the text ends with a zero byte.
        ok(unsafe { mcpl_channel_opened(channel, c"the modem is busy".as_ptr()) });
        let Event::Done(_, Err((status, message))) = end.next() else {
            panic!("opened");
        };
        assert_eq!(status, MCPL_SERVER_UNREACHABLE);
        assert!(message.contains("the modem is busy"), "{message}");
        assert_eq!(receiver.next(), Event::HungUp(channel.addr()));
        last = channel;
    }
    ok(mcpl_client_close(host.0));
    assert_eq!(
        unsafe { mcpl_channel_opened(last, null()) },
        MCPL_STALE_HANDLE
    );
    assert_eq!(receiver.rest(), [Event::Released]);
}

#[test]
fn a_request_fails_when_its_channel_is_hung_up() {
    let host = Host::new();
    host.options(r#"{"revisions":["2025-11-25"],"reconnect_attempts":0}"#);
    let (receiver, end) = (EventReceiver::new(), EventReceiver::new());
    // SAFETY: the data is released by its finalizer; the receiver outlives the request.
    unsafe {
        ok(mcpl_client_set_channel(
            host.0,
            &raw const FUNCTIONS,
            receiver.given(),
            Some(release),
        ));
        ok(mcpl_client_open_async(
            host.0,
            Some(done),
            end.lent(),
            null_mut(),
        ));
    }
    let line = channel(&receiver.next());
    // SAFETY: here and below, the texts end with zero bytes.
    ok(unsafe { mcpl_channel_opened(line, null()) });
    let Event::Sent(_, message) = receiver.next() else {
        panic!("nothing sent");
    };
    let request: serde_json::Value = serde_json::from_str(&message).unwrap();
    assert_eq!(request["method"], "initialize");
    let answer = c(&format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#,
        request["id"]
    ));
    ok(unsafe { mcpl_channel_receive(line, answer.as_ptr(), answer.count_bytes()) });
    assert_eq!(end.outcome(), Ok(String::new()));
    assert!(matches!(receiver.next(), Event::Sent(_, message) if message.contains("initialized")));
    host.begin("anything", "{}", &end);
    assert!(matches!(receiver.next(), Event::Sent(_, message) if message.contains("tools/call")));
    ok(unsafe { mcpl_channel_hang_up(line, c"gone".as_ptr()) });
    assert_eq!(end.outcome(), Err(MCPL_CONNECTION_LOST));
    assert_eq!(receiver.next(), Event::HungUp(line.addr()));
    ok(mcpl_client_close(host.0));
    let late = unsafe { mcpl_channel_receive(line, c"{}".as_ptr(), ALL) };
    assert_eq!(late, MCPL_STALE_HANDLE);
    assert_eq!(receiver.rest(), [Event::Released]);
}

#[test]
fn rejects_invalid_functions_and_releases_their_data() {
    let host = Host::new();
    let released = Count::new();
    let sizeless = mcpl_channel_functions {
        size: 0,
        ..FUNCTIONS
    };
    let mute = mcpl_channel_functions {
        send: None,
        ..FUNCTIONS
    };
    // SAFETY: the data is released by its finalizer.
    unsafe {
        for unfit in [&raw const sizeless, &raw const mute, null()] {
            let refused = mcpl_client_set_channel(host.0, unfit, released.given(), Some(count));
            assert_eq!(refused, MCPL_USAGE_ERROR, "{}", last_error());
        }
    }
    assert_eq!(released.get(), 3);
}
