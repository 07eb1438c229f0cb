//! A client whose callbacks run on the thread that dispatches a loop.

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use mcpline_c::mcpl_status::*;
use mcpline_c::*;

use crate::host::{Event, EventReceiver, Host, logged, notified, ok, options, progress, release};
use crate::service::Service;

/// Dispatches until there is an event.
fn dispatch(events: *mut mcpl_loop, receiver: &EventReceiver) -> (Event, std::thread::ThreadId) {
    ok(mcpl_loop_wait(events, 60_000));
    // SAFETY: NULL is allowed.
    ok(unsafe { mcpl_loop_dispatch(events, 1, null_mut()) });
    receiver.next_on()
}

#[test]
fn all_callbacks_run_on_the_thread_that_dispatches() {
    let here = std::thread::current().id();
    let events = mcpl_loop_new();
    let service = Service::new();
    let host = Host::of(&service);
    host.speak("2025-11-25");
    let receiver = EventReceiver::new();
    ok(mcpl_client_use_loop(host.0, events));
    assert_eq!(mcpl_client_use_loop(host.0, events), MCPL_USAGE_ERROR);
    // SAFETY: the data is released by its finalizer.
    ok(unsafe { mcpl_client_on_log(host.0, Some(logged), receiver.given(), Some(release)) });
    // Waiting on the loop's thread dispatches it.
    ok(mcpl_client_open(host.0));
    let options_with_progress = mcpl_request_options {
        progress: Some(progress),
        user: receiver.lent(),
        ..options()
    };
    host.begin_with("report", "{}", &raw const options_with_progress, &receiver);
    for _ in 0..2 {
        let (event, thread) = dispatch(events, &receiver);
        assert!(matches!(event, Event::Progress(..)), "{event:?}");
        assert_eq!(thread, here);
    }
    let (event, thread) = dispatch(events, &receiver);
    assert!(matches!(event, Event::Done(_, Ok(_))), "{event:?}");
    assert_eq!(thread, here);
    host.call_with("report", "{}", &raw const options_with_progress)
        .unwrap();
    assert_eq!(receiver.rest().len(), 2);
    host.call("log", "{}").unwrap();
    ok(mcpl_client_close(host.0));
    while let Some(event) = receiver.rest().pop() {
        assert!(matches!(event, Event::Logged(..) | Event::Released));
    }
    drop(host);
    mcpl_loop_free(events);
}

/// A client, and the status that its callback receives.
struct Inside(*mut mcpl_client, Mutex<Vec<mcpl_status>>);

unsafe extern "C" fn waits(
    _: *mut mcpl_request,
    _: *const mcpl_error,
    _: *const c_char,
    _: usize,
    user: *mut c_void,
) {
    // SAFETY: the data outlives the request.
    let Inside(client, seen) = unsafe { &*user.cast::<Inside>() };
    let mut seen = seen.lock().unwrap();
    seen.push(unsafe { mcpl_client_ping(*client, null()) });
    seen.push(mcpl_client_open(*client));
    seen.push(mcpl_client_close(*client));
}

#[test]
fn waiting_within_a_dispatch_would_deadlock() {
    let events = mcpl_loop_new();
    let service = Service::new();
    let host = Host::of(&service);
    ok(mcpl_client_use_loop(host.0, events));
    ok(mcpl_client_open(host.0));
    let inside = Inside(host.0, Mutex::default());
    let user = (&raw const inside).cast_mut().cast();
    // SAFETY: the data outlives the request.
    ok(unsafe { mcpl_client_ping_async(host.0, null(), Some(waits), user, null_mut()) });
    ok(mcpl_loop_wait(events, 60_000));
    // SAFETY: NULL is allowed.
    ok(unsafe { mcpl_loop_dispatch(events, 0, null_mut()) });
    assert_eq!(*inside.1.lock().unwrap(), [MCPL_WOULD_DEADLOCK; 3]);
    drop(host);
    mcpl_loop_free(events);
}

#[test]
fn closing_on_the_loops_thread_dispatches_remaining_callbacks() {
    let events = mcpl_loop_new();
    let service = Service::new();
    let host = Host::of(&service);
    ok(mcpl_client_use_loop(host.0, events));
    ok(mcpl_client_open(host.0));
    let receiver = EventReceiver::new();
    host.begin("keep", "{}", &receiver);
    service.kept();
    ok(mcpl_client_close(host.0));
    assert!(matches!(
        &receiver.rest()[..],
        [Event::Done(_, Err((MCPL_CLOSED, _)))]
    ));
    drop(host);
    mcpl_loop_free(events);
}

#[test]
fn callbacks_run_on_workers_once_their_loop_is_freed() {
    let here = std::thread::current().id();
    let events = mcpl_loop_new();
    let service = Service::new();
    let host = Host::of(&service);
    host.speak("2025-11-25");
    let receiver = EventReceiver::new();
    ok(mcpl_client_use_loop(host.0, events));
    // SAFETY: the data is released by its finalizer.
    ok(unsafe {
        mcpl_client_on_notification(host.0, Some(notified), receiver.given(), Some(release))
    });
    ok(mcpl_client_open(host.0));
    let end = EventReceiver::new();
    host.begin("echo", "{}", &end);
    ok(mcpl_loop_wait(events, 60_000));
    mcpl_loop_free(events);
    // A callback that was queued, and a later one.
    assert!(end.outcome().is_ok());
    host.begin("echo", "{}", &end);
    let (event, thread) = end.next_on();
    assert!(matches!(event, Event::Done(_, Ok(_))));
    assert_ne!(thread, here);
    ok(mcpl_client_close(host.0));
    assert!(receiver.rest().contains(&Event::Released));
}

/// A callback that reports when it runs, and blocks until the test lets it return.
struct Held {
    runs: Sender<()>,
    may_return: Mutex<Receiver<()>>,
    /// Whether the function that this was passed to has returned.
    returned: AtomicBool,
}

impl Held {
    fn new() -> (Self, Receiver<()>, Sender<()>) {
        let ((runs, running), (lets, may_return)) = (channel(), channel());
        let held = Self {
            runs,
            may_return: Mutex::new(may_return),
            returned: AtomicBool::new(false),
        };
        (held, running, lets)
    }

    fn user(&self) -> *mut c_void {
        (&raw const *self).cast_mut().cast()
    }

    fn run(&self) {
        self.runs.send(()).unwrap();
        // An error means that the sender is gone: the callback may return.
        let _ = self.may_return.lock().unwrap().recv();
    }
}

unsafe extern "C" fn held_done(
    _: *mut mcpl_request,
    _: *const mcpl_error,
    _: *const c_char,
    _: usize,
    user: *mut c_void,
) {
    // SAFETY: the data outlives the test.
    unsafe { &*user.cast::<Held>() }.run();
}

unsafe extern "C" fn held_progress(
    _: *mut mcpl_request,
    _: f64,
    _: f64,
    _: *const c_char,
    user: *mut c_void,
) {
    // SAFETY: the data outlives the test.
    let held = unsafe { &*user.cast::<Held>() };
    assert!(!held.returned.load(Ordering::SeqCst), "the data is gone");
    held.run();
}

#[test]
fn no_progress_callback_runs_after_a_failed_wait() {
    let service = Service::new();
    let host = Host::of(&service);
    host.speak("2025-11-25");
    let (done, done_runs, let_done) = Held::new();
    let (progress, progress_runs, let_progress) = Held::new();
    let (done, progress): (&Held, &Held) = (Box::leak(Box::new(done)), Box::leak(progress.into()));
    let client = host.0.addr();
    let (opened, opens) = channel();
    let waiting = std::thread::spawn(move || {
        let host = Host(std::ptr::without_provenance_mut(client));
        let events = mcpl_loop_new();
        ok(mcpl_client_use_loop(host.0, events));
        ok(mcpl_client_open(host.0));
        opened.send(events.addr()).unwrap();
        let options_with_progress = mcpl_request_options {
            progress: Some(held_progress),
            user: progress.user(),
            ..options()
        };
        let outcome = host.call_with("keep", "{}", &raw const options_with_progress);
        progress.returned.store(true, Ordering::SeqCst);
        std::mem::forget(host);
        outcome
    });
    let timeout = Duration::from_secs(60);
    let events = std::ptr::without_provenance_mut(opens.recv_timeout(timeout).unwrap());
    let call = service.kept();
    // The waiting thread dispatches this callback and is blocked in it.
    let user = done.user();
    // SAFETY: the data outlives the request.
    ok(unsafe { mcpl_client_ping_async(host.0, null(), Some(held_done), user, null_mut()) });
    done_runs.recv_timeout(timeout).unwrap();
    // Its progress is queued on the loop, and moves to the workers when the loop is freed.
    for reported in [1.0, 2.0] {
        // SAFETY: NULL is allowed.
        ok(unsafe { mcpl_call_progress(call, reported, f64::NAN, null()) });
    }
    host.call("echo", "{}").unwrap();
    mcpl_loop_free(events);
    progress_runs.recv_timeout(timeout).unwrap();
    drop(let_done);
    // A wait that did not wait for the callback would return now.
    std::thread::sleep(Duration::from_millis(100));
    drop(let_progress);
    assert_eq!(waiting.join().unwrap(), Err(MCPL_STALE_HANDLE));
    ok(mcpl_client_close(host.0));
}
