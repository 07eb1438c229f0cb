//! Cancellations of the handshake era. A client's cancellation meets the dispatch of its request, the handler's end, the other
//! requests of a batch, and the answer to a question. A request that is cancelled is never answered, a batch is answered with
//! the rest of it, a handler that was started is told once if it is told at all, and a question has one outcome.

use crate::models::{Record, check};

use super::*;

/// The cancellation may come before the request is known, before its call is attached, before the handler has said that it
/// wants to be told, while it ends, and after.
#[test]
fn a_cancellation_meets_dispatch_and_the_handlers_end() {
    check(|| {
        let threads = Threads::default();
        let told: Arc<Record<()>> = Arc::default();
        let (others, record) = (threads.clone(), told.clone());
        let server = server(move |call| {
            let record = record.clone();
            call.context().on_cancel(move || record.add(()));
            others.start(move || call.reply(done("done")));
        });
        let (connection, client) = (session(&server), Client::new());
        threads.start(receiving(&connection, &client, legacy_call(1)));
        threads.start(receiving(&connection, &Client::new(), cancellation(1)));
        threads.join();
        let answered = client.ended_once();
        assert!(told.all().len() <= usize::from(!answered));
        assert!(connection.is_idle());
    });
}

/// A handler that waits to be told of the cancellation is told, if it was started.
#[test]
fn a_handler_that_waits_for_its_cancellation_is_told() {
    check(|| {
        let threads = Threads::default();
        let (others, started) = (threads.clone(), Arc::new(AtomicUsize::new(0)));
        let count = started.clone();
        let told: Arc<Record<()>> = Arc::default();
        let record = told.clone();
        let server = server(move |call| {
            count.fetch_add(1, Ordering::SeqCst);
            let record = record.clone();
            let context = call.context();
            others.start(move || {
                context.on_cancel(move || {
                    record.add(());
                    drop(call);
                });
            });
        });
        let (connection, client) = (session(&server), Client::new());
        threads.start(receiving(&connection, &client, legacy_call(1)));
        threads.start(receiving(&connection, &Client::new(), cancellation(1)));
        threads.join();
        if client.abandoned() == 0 {
            // It came before the request, and was about nothing.
            receive(&connection, &Client::new(), &cancellation(1));
        }
        assert!(!client.ended_once());
        assert_eq!(told.all().len(), started.load(Ordering::SeqCst));
        assert!(connection.is_idle());
    });
}

/// One request of a batch is cancelled while the others are answered.
#[test]
fn a_cancellation_meets_the_end_of_its_batch() {
    check(|| {
        let threads = Threads::default();
        let others = threads.clone();
        let server = server(move |call| others.start(move || call.reply(done("done"))));
        let (connection, client) = (session(&server), Client::new());
        let batch = json!([legacy_call(1), legacy_call(2)]);
        threads.start(receiving(&connection, &client, batch));
        threads.start(receiving(&connection, &Client::new(), cancellation(1)));
        threads.join();
        assert!(client.ended_once());
        let response = client.responses.wait_for(0);
        let mut ids: Vec<_> = response
            .as_array()
            .expect("a batch")
            .iter()
            .map(|answer| answer["id"].as_u64().expect("an id"))
            .collect();
        ids.sort_unstable();
        assert!(ids == [2] || ids == [1, 2], "{ids:?}");
        assert!(connection.is_idle());
    });
}

/// Every request of a batch is cancelled: the client waits for nothing.
#[test]
fn cancellations_meet_in_one_batch() {
    check(|| {
        let threads = Threads::default();
        let server = server(|call| {
            let context = call.context();
            context.on_cancel(move || drop(call));
        });
        let (connection, client) = (session(&server), Client::new());
        receive(
            &connection,
            &client,
            &json!([legacy_call(1), legacy_call(2)]),
        );
        for id in [1, 2] {
            threads.start(receiving(&connection, &Client::new(), cancellation(id)));
        }
        threads.join();
        assert!(!client.ended_once());
        assert!(connection.is_idle());
    });
}

/// The answer to a question meets the cancellation of its call and the end of the connection.
#[test]
fn an_answer_meets_a_cancellation_and_a_close() {
    check(|| {
        let threads = Threads::default();
        let outcomes = Outcomes::default();
        let record = outcomes.clone();
        let server = server(move |call| {
            let record = record.clone();
            call.context().ask_with(question(), move |outcome| {
                record.add(outcome.map(|_| ()));
                call.reply(done("done"));
            });
        });
        let (connection, client) = (session_with_questions(&server), Client::new());
        receive(&connection, &client, &legacy_call(1));
        let id = client.requests.wait_for(0)["id"].clone();
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}});
        threads.start(receiving(&connection, &Client::new(), answer));
        threads.start(receiving(&connection, &Client::new(), cancellation(1)));
        let closing = connection.clone();
        threads.start(move || closing.close());
        threads.join();
        client.ended_once();
        assert_eq!(outcomes.all().len(), 1);
        assert!(connection.is_idle());
    });
}
