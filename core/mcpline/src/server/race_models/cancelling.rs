//! Cancellations on handshake revisions. A cancellation races the dispatch of its request, the end of the handler, the
//! other requests of a batch, and the response to an input request. A cancelled request gets no response, its batch is
//! answered without it, a handler is notified of the cancellation at most once, and an input request has exactly one
//! outcome.

use crate::race_models::{Record, check};

use super::*;

/// The cancellation may arrive before the request, before its call is attached, before the handler registers its
/// callback, while the handler ends, and later.
#[test]
fn cancellation_races_dispatch_and_handler_end() {
    check(|| {
        let threads = Threads::default();
        let cancellations: Arc<Record<()>> = Arc::default();
        let (others, record) = (threads.clone(), cancellations.clone());
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
        assert!(cancellations.all().len() <= usize::from(!answered));
        assert!(connection.is_idle());
    });
}

/// A started handler that waits for its cancellation is notified.
#[test]
fn notifies_handlers_that_wait_for_cancellation() {
    check(|| {
        let threads = Threads::default();
        let (others, started) = (threads.clone(), Arc::new(AtomicUsize::new(0)));
        let count = started.clone();
        let cancellations: Arc<Record<()>> = Arc::default();
        let record = cancellations.clone();
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
            // The cancellation came before the request and had no effect.
            receive(&connection, &Client::new(), &cancellation(1));
        }
        assert!(!client.ended_once());
        assert_eq!(cancellations.all().len(), started.load(Ordering::SeqCst));
        assert!(connection.is_idle());
    });
}

/// One request of a batch is cancelled while the others are answered.
#[test]
fn cancellation_races_end_of_batch() {
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

/// Every request of a batch is cancelled, so the batch has no response.
#[test]
fn cancellations_of_one_batch_race() {
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

/// The response to an input request races the cancellation of its call and the end of the connection.
#[test]
fn input_response_races_cancellation_and_close() {
    check(|| {
        let threads = Threads::default();
        let outcomes = Outcomes::default();
        let record = outcomes.clone();
        let server = server(move |call| {
            let record = record.clone();
            call.context()
                .request_input_with(elicitation(), move |outcome| {
                    record.add(outcome.map(|_| ()));
                    call.reply(done("done"));
                });
        });
        let (connection, client) = (session_with_elicitation(&server), Client::new());
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
