//! Closing a client: requests in flight end, no callback runs afterwards, and no thread waits for itself.

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use mcpline_c::mcpl_status::*;
use mcpline_c::*;

use crate::host::{
    Event, EventReceiver, Host, done, hung_up, notified, ok, opening, release, sent,
};
use crate::service::Service;

static FUNCTIONS: mcpl_channel_functions = mcpl_channel_functions {
    size: size_of::<mcpl_channel_functions>(),
    open: Some(opening),
    send: Some(sent),
    ready: None,
    close: Some(hung_up),
};

#[test]
fn closing_a_client_ends_requests_in_flight() {
    let service = Service::new();
    for revision in ["2025-11-25", "2026-07-28"] {
        let host = Host::connected(&service, revision);
        let receiver = EventReceiver::new();
        let requests = [
            host.begin("keep", "{}", &receiver),
            host.begin("keep", "{}", &receiver),
        ];
        service.kept();
        service.kept();
        ok(mcpl_client_close(host.0));
        let ended = receiver.rest();
        assert_eq!(ended.len(), 2);
        for end in ended {
            let Event::Done(request, Err((MCPL_CLOSED, _))) = end else {
                panic!("{end:?}");
            };
            assert!(requests.iter().any(|one| one.addr() == request));
        }
        assert_eq!(mcpl_request_cancel(requests[0]), MCPL_STALE_HANDLE);
        assert_eq!(host.call("echo", "{}"), Err(MCPL_CLOSED));
        assert_eq!(mcpl_client_open(host.0), MCPL_CLOSED);
        ok(mcpl_client_close(host.0));
    }
}

#[test]
fn a_waiting_thread_fails_when_another_closes_the_client() {
    let service = Service::new();
    let host = Host::connected(&service, "2025-11-25");
    let client = host.0.addr();
    let waiting = std::thread::spawn(move || {
        let host = Host(std::ptr::without_provenance_mut(client));
        let outcome = host.call("keep", "{}");
        std::mem::forget(host);
        outcome
    });
    service.kept();
    ok(mcpl_client_close(host.0));
    assert_eq!(waiting.join().unwrap(), Err(MCPL_CLOSED));
}

#[test]
fn a_freed_client_is_a_stale_handle() {
    let service = Service::new();
    let host = Host::connected(&service, "2025-11-25");
    let client = host.0;
    let receiver = EventReceiver::new();
    host.begin("keep", "{}", &receiver);
    service.kept();
    drop(host);
    assert_eq!(receiver.outcome(), Err(MCPL_CLOSED));
    let ended = Host(client);
    assert_eq!(ended.call("echo", "{}"), Err(MCPL_STALE_HANDLE));
    assert_eq!(mcpl_client_close(client), MCPL_STALE_HANDLE);
    assert_eq!(mcpl_client_open(client), MCPL_STALE_HANDLE);
    mcpl_client_free(null_mut());
    assert_eq!(mcpl_client_close(null_mut()), MCPL_USAGE_ERROR);
}

/// A client, and the sender for the statuses that its callback receives.
struct Inside(*mut mcpl_client, Sender<[mcpl_status; 2]>);

/// Tries to close its own client, then frees it.
unsafe extern "C" fn ends_it(
    _: *mut mcpl_request,
    error: *const mcpl_error,
    _: *const c_char,
    _: usize,
    user: *mut c_void,
) {
    assert!(error.is_null());
    // SAFETY: the test passes this data, and the callback is called once.
    let Inside(client, sender) = *unsafe { Box::from_raw(user.cast::<Inside>()) };
    let closed = mcpl_client_close(client);
    mcpl_client_free(client);
    sender.send([closed, mcpl_client_open(client)]).unwrap();
}

#[test]
fn a_callback_cannot_close_its_own_client_but_free_it() {
    let service = Service::new();
    let host = Host::of(&service);
    let receiver = EventReceiver::new();
    // SAFETY: the receiver's data is released by its finalizer.
    ok(unsafe {
        mcpl_client_on_notification(host.0, Some(notified), receiver.given(), Some(release))
    });
    ok(mcpl_client_open(host.0));
    let (sender, statuses) = channel();
    let inside = Box::into_raw(Box::new(Inside(host.0, sender)));
    // SAFETY: the data has the type that the callback expects.
    ok(unsafe { mcpl_client_ping_async(host.0, null(), Some(ends_it), inside.cast(), null_mut()) });
    let seen = statuses.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(seen, [MCPL_WOULD_DEADLOCK, MCPL_STALE_HANDLE]);
    // It is closed in the background, and the data of its callbacks is released.
    while receiver.next() != Event::Released {}
}

#[test]
fn closing_the_client_ends_opening() {
    let host = Host::new();
    let (receiver, end) = (EventReceiver::new(), EventReceiver::new());
    // SAFETY: the receivers outlive the callbacks.
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
    let Event::Opening(channel) = receiver.next() else {
        panic!("not opened");
    };
    assert_eq!(mcpl_client_open(host.0), MCPL_USAGE_ERROR);
    ok(mcpl_client_close(host.0));
    assert!(matches!(
        &end.rest()[..],
        [Event::Done(_, Err((MCPL_CLOSED, _)))]
    ));
    assert_eq!(receiver.rest(), [Event::HungUp(channel), Event::Released]);
}

#[test]
fn opening_can_be_cancelled_and_tried_again() {
    let service = Service::new();
    let host = Host::new();
    let (receiver, end) = (EventReceiver::new(), EventReceiver::new());
    let mut request = null_mut();
    // SAFETY: the receivers outlive the callbacks.
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
            &raw mut request,
        ));
    }
    assert!(matches!(receiver.next(), Event::Opening(_)));
    ok(mcpl_request_cancel(request));
    assert_eq!(end.outcome(), Err(MCPL_REQUEST_CANCELLED));
    assert!(matches!(receiver.next(), Event::HungUp(_)));
    // The client is connecting until the I/O thread has processed the cancellation, which may take a moment.
    while mcpl_client_set_server(host.0, service.server) == MCPL_USAGE_ERROR {
        std::thread::yield_now();
    }
    ok(mcpl_client_open(host.0));
    assert!(host.call("echo", "{}").is_ok());
}
