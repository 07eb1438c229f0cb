//! A server that shuts down, and connections that end. `shut_down` meets calls whose handlers end, requests that come in, and
//! whoever waits for the connection to be idle. Each request is answered once, and by then, not earlier, the connection is
//! idle.

use crate::models::check;

use super::*;

/// The shutdown ends the request, or its handler does.
#[test]
fn a_shutdown_meets_the_handlers_end() {
    check(|| {
        let threads = Threads::default();
        let others = threads.clone();
        let server = server(move |call| others.start(move || call.reply(done("done"))));
        let (connection, client) = (session(&server), Client::new());
        threads.start(receiving(&connection, &client, legacy_call(1)));
        let ending = connection.clone();
        threads.start(move || ending.shut_down());
        threads.join();
        assert!(client.ended_once(), "it is answered in any case");
        assert!(connection.is_idle());
    });
}

/// Whoever sees that a connection with a call in flight is idle finds the answer written.
#[test]
fn an_idle_connection_has_written_its_answers() {
    check(|| {
        let threads = Threads::default();
        let others = threads.clone();
        let server = server(move |call| others.start(move || call.reply(done("done"))));
        let (connection, client) = (session(&server), Client::new());
        receive(&connection, &client, &legacy_call(1));
        let ending = connection.clone();
        threads.start(move || ending.shut_down());
        if connection.is_idle() {
            assert_eq!(client.responses.all().len(), 1);
        }
        threads.join();
        assert!(client.ended_once());
    });
}

/// A call that asks on 2026-07-28, a shutdown, and a client that comes back.
#[test]
fn a_shutdown_meets_the_flush() {
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
        let (connection, client) = (exchange(&server), Client::new());
        let ending = connection.clone();
        threads.start(receiving(&connection, &client, modern_call(1)));
        threads.start(move || ending.shut_down());
        threads.join();
        assert!(client.ended_once(), "it is answered in any case");
        let response = client.responses.wait_for(0);
        match asks(&response) {
            true => assert_eq!(suspended(&server), 1),
            false => assert_eq!(suspended(&server), 0),
        }
        server.inner().cancel_suspended_over(connection.transport());
        assert!(outcomes.all().len() <= 1);
        assert!(connection.is_idle());
    });
}
