//! User data of callbacks is released exactly once, whatever happens to the callbacks.

use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use mcpline_c::mcpl_status::*;
use mcpline_c::*;

use crate::host::{Host, ok};
use crate::service::{Count, Service, count};

unsafe extern "C" fn ask(_: *mut mcpl_input_request, _: *const c_char, _: usize, _: *mut c_void) {}

unsafe extern "C" fn notified(
    _: *mut mcpl_client,
    _: *const c_char,
    _: *const c_char,
    _: usize,
    _: *mut c_void,
) {
}

unsafe extern "C" fn logged(
    _: *mut mcpl_client,
    _: mcpl_log_level,
    _: *const c_char,
    _: *const c_char,
    _: usize,
    _: *mut c_void,
) {
}

unsafe extern "C" fn line(_: *mut mcpl_client, _: *const c_char, _: usize, _: *mut c_void) {}

/// Registers every callback of a client, each with data.
fn register(client: *mut mcpl_client, released: &Count, there: bool) -> [mcpl_status; 7] {
    let data = || released.given();
    // SAFETY: the data is released by its finalizer, and not used elsewhere.
    unsafe {
        [
            mcpl_client_on_elicit(client, there.then_some(ask), data(), Some(count)),
            mcpl_client_on_sample(client, there.then_some(ask), data(), Some(count)),
            mcpl_client_on_list_roots(client, there.then_some(ask), data(), Some(count)),
            mcpl_client_on_authorize(client, there.then_some(ask), data(), Some(count)),
            mcpl_client_on_notification(client, there.then_some(notified), data(), Some(count)),
            mcpl_client_on_log(client, there.then_some(logged), data(), Some(count)),
            mcpl_client_on_stderr(client, there.then_some(line), data(), Some(count)),
        ]
    }
}

#[test]
fn data_is_released_when_its_callback_is_replaced_and_when_the_client_closes() {
    let service = Service::new();
    let host = Host::of(&service);
    let released = Count::new();
    assert_eq!(register(host.0, &released, true), [MCPL_OK; 7]);
    assert_eq!(released.get(), 0);
    assert_eq!(register(host.0, &released, true), [MCPL_OK; 7]);
    assert_eq!(released.get(), 7);
    ok(mcpl_client_open(host.0));
    assert_eq!(released.get(), 7);
    ok(mcpl_client_close(host.0));
    assert_eq!(released.get(), 14);
    drop(host);
    assert_eq!(released.get(), 14);
}

#[test]
fn data_is_released_when_the_registration_fails() {
    let service = Service::new();
    let host = Host::of(&service);
    let released = Count::new();
    assert_eq!(register(host.0, &released, false), [MCPL_USAGE_ERROR; 7]);
    assert_eq!(released.get(), 7);
    assert_eq!(register(null_mut(), &released, true), [MCPL_USAGE_ERROR; 7]);
    assert_eq!(released.get(), 14);
    ok(mcpl_client_open(host.0));
    assert_eq!(register(host.0, &released, true), [MCPL_USAGE_ERROR; 7]);
    assert_eq!(released.get(), 21);
    ok(mcpl_client_close(host.0));
    assert_eq!(register(host.0, &released, true), [MCPL_CLOSED; 7]);
    assert_eq!(released.get(), 28);
    let client = host.0;
    drop(host);
    assert_eq!(register(client, &released, true), [MCPL_STALE_HANDLE; 7]);
    assert_eq!(released.get(), 35);
}

#[test]
fn data_of_a_client_that_never_connects_is_released_with_it() {
    let host = Host::new();
    let released = Count::new();
    assert_eq!(register(host.0, &released, true), [MCPL_OK; 7]);
    drop(host);
    assert_eq!(released.get(), 7);
}

/// A client, and the sender for the statuses that the finalizer receives.
struct Ends(*mut mcpl_client, Sender<[mcpl_status; 2]>);

/// Tries to close, then frees, the client whose callback's data it releases.
unsafe extern "C" fn end(user: *mut c_void) {
    // SAFETY: the test passes this data, and the finalizer is called once.
    let Ends(client, sender) = *unsafe { Box::from_raw(user.cast::<Ends>()) };
    let closed = mcpl_client_close(client);
    mcpl_client_free(client);
    sender.send([closed, mcpl_client_open(client)]).unwrap();
}

/// Releases the data of two callbacks of a client with `release`; one of the finalizers ends the client. Returns when it
/// has ended.
fn end_within_a_finalizer(release: impl FnOnce(*mut mcpl_client) + Send + 'static) {
    let released = Count::new();
    // SAFETY: the texts end with zero bytes.
    let client = unsafe { mcpl_client_new(c"host".as_ptr(), c"1".as_ptr()) };
    let (sender, receiver) = channel();
    let ends = Box::into_raw(Box::new(Ends(client, sender))).cast();
    // SAFETY: the data is released by its finalizer, and not used elsewhere.
    unsafe {
        let counted = released.given();
        ok(mcpl_client_on_elicit(client, Some(ask), ends, Some(end)));
        ok(mcpl_client_on_sample(
            client,
            Some(ask),
            counted,
            Some(count),
        ));
    }
    let (ended, ends) = channel();
    let handle = client.addr();
    std::thread::spawn(move || {
        release(std::ptr::without_provenance_mut(handle));
        ended.send(()).unwrap();
    });
    let timeout = Duration::from_secs(60);
    let seen = receiver.recv_timeout(timeout).expect("it does not wait");
    assert_eq!(seen, [MCPL_WOULD_DEADLOCK, MCPL_STALE_HANDLE]);
    ends.recv_timeout(timeout).expect("nothing waits");
    // The client ends in the background, unless `release` has ended it.
    while released.get() == 0 {
        std::thread::yield_now();
    }
    assert_eq!(released.get(), 1);
}

#[test]
fn a_finalizer_that_runs_as_the_client_closes_cannot_close_it_but_free_it() {
    end_within_a_finalizer(|client| ok(mcpl_client_close(client)));
}

#[test]
fn a_finalizer_of_a_replaced_callback_cannot_close_its_client_but_free_it() {
    end_within_a_finalizer(|client| {
        // SAFETY: there is no user data.
        ok(unsafe { mcpl_client_on_elicit(client, Some(ask), null_mut(), None) });
    });
}
