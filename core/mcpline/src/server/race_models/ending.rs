//! Server shutdown and the end of connections. `end_with_shutdown_error` races handlers that end, incoming requests, and code that
//! waits for the connection to be idle. Each request is answered exactly once, and the connection is idle only after
//! that.

use crate::race_models::check;

use super::*;

/// The shutdown ends the request, or its handler does.
#[test]
fn shutdown_races_handler_end() {
    check(|| {
        let threads = Threads::default();
        let others = threads.clone();
        let server = server(move |call| others.start(move || call.reply(done("done"))));
        let (connection, client) = (session(&server), Client::new());
        threads.start(receiving(&connection, &client, legacy_call(1)));
        let ending = connection.clone();
        threads.start(move || ending.end_with_shutdown_error());
        threads.join();
        assert!(client.ended_once(), "it is answered in any case");
        assert!(connection.is_idle());
    });
}

/// When a connection with a call in flight becomes idle, the response has been written.
#[test]
fn idle_connection_has_written_its_responses() {
    check(|| {
        let threads = Threads::default();
        let others = threads.clone();
        let server = server(move |call| others.start(move || call.reply(done("done"))));
        let (connection, client) = (session(&server), Client::new());
        receive(&connection, &client, &legacy_call(1));
        let ending = connection.clone();
        threads.start(move || ending.end_with_shutdown_error());
        if connection.is_idle() {
            assert_eq!(client.responses.all().len(), 1);
        }
        threads.join();
        assert!(client.ended_once());
    });
}

/// On 2026-07-28 a call makes an input request while the server shuts down.
#[test]
fn shutdown_races_flush() {
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
        let (connection, client) = (exchange(&server), Client::new());
        let ending = connection.clone();
        threads.start(receiving(&connection, &client, modern_call(1)));
        threads.start(move || ending.end_with_shutdown_error());
        threads.join();
        assert!(client.ended_once(), "it is answered in any case");
        let response = client.responses.wait_for(0);
        match requires_input(&response) {
            true => assert_eq!(suspended(&server), 1),
            false => assert_eq!(suspended(&server), 0),
        }
        server.inner().cancel_suspended_over(connection.transport());
        assert!(outcomes.all().len() <= 1);
        assert!(connection.is_idle());
    });
}
