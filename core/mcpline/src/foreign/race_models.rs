//! Models of the queues between a foreign loop and the runtime: actions on their way in, calls on their way out.
//! Threads that queue, the task or thread that runs actions, and the end of either side race each other. Each action
//! runs once and in order, or is dropped if the runtime has ended; a task ends with the last handle; each call is
//! drained once.

use shuttle::sync::Condvar;
use shuttle::thread;

use crate::race_models::{Record, check, end_runtime, settle};
use crate::server::race_models::{
    Client, Threads, done, legacy_call, receiving, server, session, text,
};
use crate::server::{Call, ToolOptions};
use crate::sync::{Arc, Mutex};

use super::call_queue::CallQueue;
use super::io_thread_queue::{IoAction, IoThreadQueue};

/// Completed actions: thread and number of each.
type Done = Arc<Record<(usize, usize)>>;

fn io_queue() -> IoThreadQueue {
    IoThreadQueue::start(&tokio::runtime::Handle::current())
}

fn noting(done: &Done, thread: usize, number: usize) -> IoAction {
    let done = done.clone();
    IoAction::Run(Box::new(move || done.add((thread, number))))
}

/// Asserts that all actions of each thread ran, in order.
fn assert_all_done(done: &Done, threads: usize, each: usize) {
    let done = done.all();
    for thread in 0..threads {
        let numbers = done.iter().filter(|(by, _)| *by == thread);
        let numbers: Vec<usize> = numbers.map(|(_, number)| *number).collect();
        assert_eq!(numbers, (0..each).collect::<Vec<_>>(), "of {thread}");
    }
    assert_eq!(done.len(), threads * each);
}

/// The last two handles are dropped concurrently, one of them just after its use.
#[test]
fn task_ends_when_the_last_handles_are_dropped_concurrently() {
    check(|| {
        let done = Done::default();
        let first = io_queue();
        let second = first.clone();
        let action = noting(&done, 0, 0);
        let threads = [
            thread::spawn(move || {
                first.push(action);
                drop(first);
            }),
            thread::spawn(move || drop(second)),
        ];
        for thread in threads {
            thread.join().expect("no panic");
        }
        settle();
        assert_all_done(&done, 1, 1);
    });
}

/// Threads queue actions in each possible way, one of them from within the runtime.
#[test]
fn queued_actions_run_once_and_in_order() {
    check(|| {
        let done = Done::default();
        let queue = io_queue();
        let threads = Threads::default();
        let (pushing, noted) = (queue.clone(), done.clone());
        threads.start(move || {
            pushing.push(noting(&noted, 0, 0));
            pushing.push_all(&mut vec![noting(&noted, 0, 1), noting(&noted, 0, 2)]);
        });
        let (leaving, noted) = (queue.clone(), done.clone());
        threads.start(move || {
            for number in 0..3 {
                leaving.push_without_wake(noting(&noted, 1, number));
            }
            leaving.wake();
        });
        let (driving, noted) = (queue.clone(), done.clone());
        threads.start(move || {
            driving.set_attended(false);
            (0..3).for_each(|number| driving.push_and_wake_other(noting(&noted, 2, number)));
            driving.run();
            driving.set_attended(true);
        });
        drop(queue);
        threads.join();
        assert_all_done(&done, 3, 3);
    });
}

/// The runtime ends while actions are queued that hold the queue.
#[test]
fn end_of_runtime_races_queued_actions() {
    check(|| {
        let queue = io_queue();
        let held = Arc::new(());
        let threads = Threads::default();
        for _ in 0..2 {
            let (queue, held) = (queue.clone(), held.clone());
            threads.start(move || {
                for _ in 0..2 {
                    let holds = (queue.clone(), held.clone());
                    queue.push(IoAction::Run(Box::new(move || drop(holds))));
                }
            });
        }
        end_runtime();
        threads.join();
        assert_eq!(Arc::strong_count(&held), 1, "nothing keeps an action");
    });
}

/// A foreign loop that is woken by a counter, as by a file descriptor.
#[derive(Default)]
struct Loop {
    wakes: Mutex<usize>,
    woken: Condvar,
}

impl Loop {
    fn wake(&self) {
        *self.wakes.lock().expect("no panic") += 1;
        self.woken.notify_one();
    }

    /// Waits until it is woken.
    fn wait(&self) {
        let mut wakes = self.wakes.lock().expect("no panic");
        while *wakes == 0 {
            wakes = self.woken.wait(wakes).expect("no panic");
        }
        *wakes = 0;
    }
}

/// A queue with its loop, and a server with a tool whose calls are queued there.
fn queued() -> (CallQueue<usize>, Arc<Loop>, crate::Server) {
    let looping = Arc::new(Loop::default());
    let woken = looping.clone();
    let queue = CallQueue::new(16, move || woken.wake());
    let server = server(|_| unreachable!("it is called by another name"));
    let tool =
        mcpline_protocol::vocabulary::Tool::new("queued", serde_json::json!({"type": "object"}));
    server
        .add_tool(tool, ToolOptions::default(), queue.handler(7))
        .expect("a tool");
    (queue, looping, server)
}

fn queued_call(id: u64) -> serde_json::Value {
    let mut call = legacy_call(id);
    call["params"]["name"] = "queued".into();
    call
}

fn answer(calls: &mut Vec<(usize, Call)>) -> usize {
    calls
        .drain(..)
        .map(|(_, call)| call.reply(done("drained")))
        .count()
}

/// The loop sleeps until it is woken, and drains two calls at a time.
#[test]
fn call_that_arrives_during_a_drain_wakes_the_loop_again() {
    check(|| {
        let (queue, looping, server) = queued();
        let connection = session(&server);
        let clients: Vec<_> = (0..4).map(|_| Client::new()).collect();
        let threads = Threads::default();
        for (id, client) in (1..).zip(&clients) {
            threads.start(receiving(&connection, client, queued_call(id)));
        }
        let draining = queue.clone();
        threads.start(move || {
            let (mut calls, mut drained) = (Vec::new(), 0);
            while drained < 4 {
                looping.wait();
                draining.drain(2, &mut calls);
                drained += answer(&mut calls);
            }
        });
        threads.join();
        for client in &clients {
            assert!(client.ended_once());
            assert_eq!(text(&client.responses.wait_for(0)), "drained");
        }
        assert!(queue.is_empty());
    });
}

/// Threads take calls one by one. One is woken, the other goes on taking while calls are left, as after a call.
#[test]
fn no_call_is_left_when_several_threads_take_calls() {
    check(|| {
        let (queue, looping, server) = queued();
        let connection = session(&server);
        let clients: Vec<_> = (0..3).map(|_| Client::new()).collect();
        let threads = Threads::default();
        for (id, client) in (1..).zip(&clients) {
            threads.start(receiving(&connection, client, queued_call(id)));
        }
        let taken = Arc::new(Mutex::new(0));
        let take = {
            let (queue, taken) = (queue.clone(), taken.clone());
            move || {
                while let Some((_, call, left)) = queue.take() {
                    call.reply(done("taken"));
                    *taken.lock().expect("no panic") += 1;
                    if left == 0 {
                        break;
                    }
                }
            }
        };
        let (other, woken) = (take.clone(), looping.clone());
        threads.start(move || {
            other();
            // The first thread may wait for calls that this one has taken.
            woken.wake();
        });
        threads.start(move || {
            while *taken.lock().expect("no panic") < 3 {
                looping.wait();
                take();
            }
        });
        threads.join_threads();
        assert!(clients.iter().all(|client| client.ended_once()));
        assert!(queue.is_empty());
    });
}

/// The loop's own thread receives calls, gathers and drains them, while others arrive.
#[test]
fn calls_that_arrive_while_others_are_gathered_wake_the_loop() {
    check(|| {
        let (queue, looping, server) = queued();
        let connection = session(&server);
        let clients: Vec<_> = (0..3).map(|_| Client::new()).collect();
        let threads = Threads::default();
        for (id, client) in (1..3).zip(&clients) {
            threads.start(receiving(&connection, client, queued_call(id)));
        }
        let own = receiving(&connection, &clients[2], queued_call(3));
        threads.start(move || {
            let (mut calls, mut drained) = (Vec::new(), 0);
            let gathering = queue.gather();
            own();
            queue.drain(16, &mut calls);
            drop(gathering);
            drained += answer(&mut calls);
            while drained < 3 {
                looping.wait();
                queue.drain(16, &mut calls);
                drained += answer(&mut calls);
            }
        });
        threads.join();
        assert!(clients.iter().all(|client| client.ended_once()));
    });
}

/// The loop ends: waiting and later calls are answered.
#[test]
fn end_of_loop_races_calls() {
    check(|| {
        let (queue, _looping, server) = queued();
        let connection = session(&server);
        let clients: Vec<_> = (0..2).map(|_| Client::new()).collect();
        let threads = Threads::default();
        for (id, client) in (1..).zip(&clients) {
            threads.start(receiving(&connection, client, queued_call(id)));
        }
        let closing = queue.clone();
        threads.start(move || {
            closing.close();
        });
        threads.join();
        assert!(clients.iter().all(|client| client.ended_once()));
        assert!(queue.is_empty());
        assert!(connection.is_idle());
    });
}
