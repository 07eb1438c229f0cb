//! Queued completions run in order, on the runtime's own task or on the thread that drives the runtime.

use std::sync::{Arc, Mutex};

use mcpline::foreign::{IoAction, IoThreadQueue};

fn note(order: &Arc<Mutex<Vec<u32>>>, number: u32) -> IoAction {
    let order = order.clone();
    IoAction::Run(Box::new(move || order.lock().unwrap().push(number)))
}

#[test]
fn runs_queued_actions_on_the_thread_that_calls_run() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let completions = IoThreadQueue::start(runtime.handle());
    completions.set_attended(false);
    let order = Arc::default();
    for number in 0..3 {
        completions.push_and_wake_other(note(&order, number));
    }
    assert!(order.lock().unwrap().is_empty());
    runtime.block_on(async { completions.run() });
    assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
}

#[test]
fn runs_actions_on_the_thread_that_drives_the_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let completions = IoThreadQueue::start(runtime.handle());
    let order = Arc::default();
    let (done, finished) = tokio::sync::oneshot::channel();
    std::thread::scope(|scope| {
        let attending = scope.spawn(|| runtime.block_on(finished));
        completions.push_and_wake_other(note(&order, 1));
        completions.push(note(&order, 2));
        completions.push_and_wake_other(IoAction::Run(Box::new(move || done.send(()).unwrap())));
        attending.join().unwrap().unwrap();
    });
    assert_eq!(*order.lock().unwrap(), [1, 2]);
}
