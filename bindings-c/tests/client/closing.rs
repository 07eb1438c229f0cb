//! The end of a client: whatever is in flight ends, nothing is called after it, and nobody waits for himself.

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use mcpline_c::mcpl_status::*;
use mcpline_c::*;

use crate::host::{Ear, Host, Told, done, hung_up, notified, ok, opening, release, sent};
use crate::service::Service;

static FUNCTIONS: mcpl_channel_functions = mcpl_channel_functions {
    size: size_of::<mcpl_channel_functions>(),
    open: Some(opening),
    send: Some(sent),
    close: Some(hung_up),
};

#[test]
fn what_is_in_flight_has_ended_when_a_client_is_closed() {
    let service = Service::new();
    for revision in ["2025-11-25", "2026-07-28"] {
        let host = Host::connected(&service, revision);
        let ear = Ear::new();
        let requests = [
            host.begin("keep", "{}", &ear),
            host.begin("keep", "{}", &ear),
        ];
        service.kept();
        service.kept();
        ok(mcpl_client_close(host.0));
        let ended = ear.rest();
        assert_eq!(ended.len(), 2);
        for end in ended {
            let Told::Done(request, Err((MCPL_CLOSED, _))) = end else {
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
fn a_thread_that_waits_is_told_when_another_closes_the_client() {
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
fn a_client_that_was_freed_is_told_to_have_ended() {
    let service = Service::new();
    let host = Host::connected(&service, "2025-11-25");
    let client = host.0;
    let ear = Ear::new();
    host.begin("keep", "{}", &ear);
    service.kept();
    drop(host);
    assert_eq!(ear.outcome(), Err(MCPL_CLOSED));
    let ended = Host(client);
    assert_eq!(ended.call("echo", "{}"), Err(MCPL_STALE_HANDLE));
    assert_eq!(mcpl_client_close(client), MCPL_STALE_HANDLE);
    assert_eq!(mcpl_client_open(client), MCPL_STALE_HANDLE);
    mcpl_client_free(null_mut());
    assert_eq!(mcpl_client_close(null_mut()), MCPL_USAGE_ERROR);
}

/// A client, and who is told what its callback saw.
struct Inside(*mut mcpl_client, Sender<[mcpl_status; 2]>);

/// Tries to end its own client.
unsafe extern "C" fn ends_it(
    _: *mut mcpl_request,
    error: *const mcpl_error,
    _: *const c_char,
    _: usize,
    user: *mut c_void,
) {
    assert!(error.is_null());
    // SAFETY: the data is what was given, and this is called once.
    let Inside(client, told) = *unsafe { Box::from_raw(user.cast::<Inside>()) };
    let closed = mcpl_client_close(client);
    mcpl_client_free(client);
    told.send([closed, mcpl_client_open(client)]).unwrap();
}

#[test]
fn a_callback_cannot_close_its_own_client_but_free_it() {
    let service = Service::new();
    let host = Host::of(&service);
    let ear = Ear::new();
    // SAFETY: the ear's data is released by its finalizer.
    ok(unsafe { mcpl_client_on_notification(host.0, Some(notified), ear.given(), Some(release)) });
    ok(mcpl_client_open(host.0));
    let (told, hears) = channel();
    let inside = Box::into_raw(Box::new(Inside(host.0, told)));
    // SAFETY: the data is what the callback takes it for.
    ok(unsafe { mcpl_client_ping_async(host.0, null(), Some(ends_it), inside.cast(), null_mut()) });
    let seen = hears.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(seen, [MCPL_WOULD_DEADLOCK, MCPL_STALE_HANDLE]);
    // It is closed in the background: what its callbacks were given is released.
    while ear.next() != Told::Released {}
}

#[test]
fn opening_ends_when_the_client_is_closed_meanwhile() {
    let host = Host::new();
    let (ear, end) = (Ear::new(), Ear::new());
    // SAFETY: the ears outlive what they are given to.
    unsafe {
        ok(mcpl_client_set_channel(
            host.0,
            &raw const FUNCTIONS,
            ear.given(),
            Some(release),
        ));
        ok(mcpl_client_open_async(
            host.0,
            Some(done),
            end.lent(),
            null_mut(),
        ));
    }
    let Told::Opening(channel) = ear.next() else {
        panic!("not opened");
    };
    assert_eq!(mcpl_client_open(host.0), MCPL_USAGE_ERROR);
    ok(mcpl_client_close(host.0));
    assert!(matches!(
        &end.rest()[..],
        [Told::Done(_, Err((MCPL_CLOSED, _)))]
    ));
    assert_eq!(ear.rest(), [Told::HungUp(channel), Told::Released]);
}

#[test]
fn opening_can_be_cancelled_and_tried_again() {
    let service = Service::new();
    let host = Host::new();
    let (ear, end) = (Ear::new(), Ear::new());
    let mut request = null_mut();
    // SAFETY: the ears outlive what they are given to.
    unsafe {
        ok(mcpl_client_set_channel(
            host.0,
            &raw const FUNCTIONS,
            ear.given(),
            Some(release),
        ));
        ok(mcpl_client_open_async(
            host.0,
            Some(done),
            end.lent(),
            &raw mut request,
        ));
    }
    assert!(matches!(ear.next(), Told::Opening(_)));
    ok(mcpl_request_cancel(request));
    assert_eq!(end.outcome(), Err(MCPL_REQUEST_CANCELLED));
    assert!(matches!(ear.next(), Told::HungUp(_)));
    // It is not connecting any more as soon as the I/O thread has noticed, which may take a moment.
    while mcpl_client_set_server(host.0, service.server) == MCPL_USAGE_ERROR {
        std::thread::yield_now();
    }
    ok(mcpl_client_open(host.0));
    assert!(host.call("echo", "{}").is_ok());
}
