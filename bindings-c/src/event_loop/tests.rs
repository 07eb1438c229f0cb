use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use mcpline::transport::MemoryTransport;
use serde_json::{Value, json};

use super::*;
use crate::call::{mcpl_call, mcpl_call_keep, mcpl_call_on_cancel};
use crate::callback_tracker::Latch;
use crate::executor::CallbackExecutor;
use crate::mcpl_status::MCPL_OK;
use crate::server::{Server, mcpl_server, mcpl_server_free, mcpl_server_new, mcpl_server_use_loop};
use crate::server_features::mcpl_server_add_tool;

/// A generous limit that only prevents a test from hanging.
fn guard() -> Option<Instant> {
    deadline(60_000)
}

/// The calls that the handlers of one server have recorded, by the numbers of its clients, which are the tools' names.
#[derive(Default)]
struct Noted {
    called: Mutex<Vec<usize>>,
    cancelled: Mutex<Vec<usize>>,
}

/// The number of a tool, and where it records its calls.
struct Noting<'n>(usize, &'n Noted);

unsafe extern "C" fn call(call: *mut mcpl_call, _: *const c_char, _: usize, user: *mut c_void) {
    // SAFETY: the test outlives its server.
    let Noting(number, noted) = unsafe { &*user.cast::<Noting>() };
    noted.called.lock().unwrap().push(*number);
    // SAFETY: as above.
    let status = unsafe { mcpl_call_on_cancel(call, Some(cancel), user, None) };
    assert_eq!(status, MCPL_OK);
    assert_eq!(mcpl_call_keep(call), MCPL_OK);
}

unsafe extern "C" fn cancel(_: *mut mcpl_call, user: *mut c_void) {
    // SAFETY: the test outlives its server.
    let Noting(number, noted) = unsafe { &*user.cast::<Noting>() };
    noted.cancelled.lock().unwrap().push(*number);
}

/// A server whose callbacks run on a loop.
struct Looped {
    events: *mut mcpl_loop,
    server: *mut mcpl_server,
}

impl Looped {
    fn new(tools: &[Noting<'_>]) -> Self {
        let events = mcpl_loop_new();
        // SAFETY: all pointers are valid strings, or outlive the server.
        unsafe {
            let server = mcpl_server_new(c"test".as_ptr(), c"1".as_ptr());
            assert_eq!(mcpl_server_use_loop(server, events), MCPL_OK);
            for tool in tools {
                let name = std::ffi::CString::new(tool.0.to_string()).unwrap();
                let user = std::ptr::from_ref(tool).cast_mut().cast();
                let added = mcpl_server_add_tool(
                    server,
                    name.as_ptr(),
                    c"notes its calls".as_ptr(),
                    std::ptr::null(),
                    Some(call),
                    user,
                    None,
                );
                assert_eq!(added, MCPL_OK);
            }
            Self { events, server }
        }
    }

    fn connect(&self) -> Arc<MemoryTransport> {
        let server = Server::get(self.server).unwrap();
        let _entered = server.owner.library().handle().enter();
        let client = Arc::new(server.core().connect());
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        send(&client, [hello, initialized]);
        client
    }

    /// Dispatches until so many calls have begun.
    fn dispatch_calls(&self, noted: &Noted, count: usize) {
        while noted.called.lock().unwrap().len() < count {
            assert_eq!(mcpl_loop_wait(self.events, 60_000), MCPL_OK);
            self.dispatch(0);
        }
    }

    fn dispatch(&self, most: u32) {
        // SAFETY: NULL is allowed for the count.
        let status = unsafe { mcpl_loop_dispatch(self.events, most, std::ptr::null_mut()) };
        assert_eq!(status, MCPL_OK);
    }
}

impl Drop for Looped {
    fn drop(&mut self) {
        mcpl_server_free(self.server);
        mcpl_loop_free(self.events);
    }
}

/// Sends messages on the I/O thread, and waits until the server has received them.
fn send(client: &Arc<MemoryTransport>, messages: impl IntoIterator<Item = Value>) {
    let library = shared_runtime::enter().unwrap();
    let (sent, sending) = (Latch::new(), client.clone());
    let messages: Vec<Bytes> = messages
        .into_iter()
        .map(|message| message.to_string().into())
        .collect();
    let done = sent.clone();
    library.spawn(async move {
        messages
            .into_iter()
            .for_each(|message| sending.send(message));
        done.set(());
    });
    assert_eq!(sent.take(guard()), Some(()));
    shared_runtime::leave();
}

fn tool_call(id: usize, tool: usize) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool.to_string()}})
}

fn cancellation(id: usize) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

#[test]
fn cancellations_of_one_client_delay_no_other_client() {
    const FLOOD: usize = 50;
    let noted = Noted::default();
    let tools = [Noting(0, &noted), Noting(1, &noted)];
    let looped = Looped::new(&tools);
    let clients = [looped.connect(), looped.connect()];
    send(&clients[0], (1..=FLOOD).map(|id| tool_call(id, 0)));
    send(&clients[1], [tool_call(1, 1)]);
    looped.dispatch_calls(&noted, FLOOD + 1);
    send(&clients[0], (1..=FLOOD).map(cancellation));
    send(&clients[1], [cancellation(1)]);
    looped.dispatch(2);
    assert_eq!(*noted.cancelled.lock().unwrap(), [0, 1]);
    looped.dispatch(0);
    assert_eq!(noted.cancelled.lock().unwrap().len(), FLOOD + 1);
}

#[test]
fn refuses_calls_as_busy_when_the_queue_is_full() {
    let noted = Noted::default();
    let tools = [Noting(0, &noted)];
    let looped = Looped::new(&tools);
    let client = looped.connect();
    send(&client, [tool_call(1, 0)]);
    assert_eq!(mcpl_loop_wait(looped.events, 60_000), MCPL_OK);
    let job = Loop::get(looped.events).unwrap().lock().jobs.pop();
    job.expect("the call").refuse();
    let answer = Latch::new();
    let answered = answer.clone();
    let library = shared_runtime::enter().unwrap();
    library.spawn(async move {
        while let Some(message) = client.receive().await {
            let message: Value = serde_json::from_slice(&message).unwrap();
            if message["id"] == 1 {
                return answered.set(message["error"]["code"].clone());
            }
        }
    });
    assert_eq!(answer.take(guard()), Some(json!(-31000)));
    shared_runtime::leave();
    assert!(noted.called.lock().unwrap().is_empty());
}

/// Jobs are numbered in the order in which a thread queues them while the loop is freed.
#[test]
fn jobs_keep_their_order_when_their_loop_is_freed() {
    const BEFORE: usize = 100_000;
    let events = mcpl_loop_new();
    let library = shared_runtime::enter().unwrap();
    let place = CallbackExecutor::Loop(Loop::get(events).unwrap(), library.pool().clone());
    let (peer, ran) = (PeerId::new(), Arc::new(Mutex::new(Vec::new())));
    let run = |number| {
        let ran = ran.clone();
        let job = Job::Run(Box::new(move || ran.lock().unwrap().push(number)));
        assert!(place.run(peer, job).is_ok());
    };
    (0..BEFORE).for_each(run);
    let (pushed, freed) = (AtomicUsize::new(BEFORE), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !freed.load(Ordering::Acquire) {
                run(pushed.fetch_add(1, Ordering::AcqRel));
            }
        });
        while pushed.load(Ordering::Acquire) == BEFORE {
            std::thread::yield_now();
        }
        mcpl_loop_free(events);
        freed.store(true, Ordering::Release);
    });
    let all = pushed.into_inner();
    while ran.lock().unwrap().len() < all {
        std::thread::yield_now();
    }
    // Workers take jobs in order, but one may be delayed before it runs its job: then later jobs run first.
    let workers = 2 * std::thread::available_parallelism().unwrap().get() + 64;
    let ran = ran.lock().unwrap();
    let early = ran
        .iter()
        .enumerate()
        .find(|(at, number)| **number > at + workers);
    assert_eq!(early, None, "a job ran before others that came before it");
    shared_runtime::leave();
}

/// Creates a loop with jobs that count themselves. Returns the count as well.
fn counting(jobs: usize) -> (*mut mcpl_loop, Arc<Loop>, Arc<AtomicUsize>) {
    let handle = mcpl_loop_new();
    let (events, ran) = (Loop::get(handle).unwrap(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..jobs {
        let ran = ran.clone();
        let job = Job::Run(Box::new(move || {
            ran.fetch_add(1, Ordering::SeqCst);
        }));
        assert!(events.push(PeerId::new(), job).is_ok());
    }
    (handle, events, ran)
}

#[test]
fn a_wait_ends_in_time_though_the_loop_stays_busy() {
    let (handle, events, ran) = counting(100);
    let is_ready = events.dispatch_until(&|| false, Some(Instant::now()));
    assert_eq!(is_ready.ok(), Some(false));
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    mcpl_loop_free(handle);
}

#[test]
fn a_wait_ends_with_the_callback_that_it_waits_for() {
    let (handle, events, ran) = counting(100);
    let ready = || ran.load(Ordering::SeqCst) >= 3;
    assert_eq!(events.dispatch_until(&ready, guard()).ok(), Some(true));
    assert_eq!(ran.load(Ordering::SeqCst), 3);
    mcpl_loop_free(handle);
}

#[test]
fn a_loop_goes_on_after_a_panic() {
    let (handle, events, ran) = counting(0);
    let panics = Job::Run(Box::new(|| panic!("a defect")));
    assert!(events.push(PeerId::new(), panics).is_ok());
    // SAFETY: NULL is allowed for the count.
    let status = unsafe { mcpl_loop_dispatch(handle, 0, std::ptr::null_mut()) };
    assert_eq!(status, mcpl_status::MCPL_INTERNAL_ERROR);
    assert!(!events.lock().signalled, "nothing is left to dispatch");
    let counted = ran.clone();
    let job = Job::Run(Box::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    }));
    assert!(events.push(PeerId::new(), job).is_ok());
    assert_eq!(mcpl_loop_wait(handle, 60_000), MCPL_OK);
    // SAFETY: as above.
    let status = unsafe { mcpl_loop_dispatch(handle, 0, std::ptr::null_mut()) };
    assert_eq!(status, MCPL_OK);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    mcpl_loop_free(handle);
}
