//! Notifications of a handler that middleware delays, raced by the handler's end and by a cancellation. In every order: they
//! reach the client in the order in which they were sent, the response follows them, and a cancelled request leaves nothing
//! behind.

use shuttle::future::yield_now;

use crate::middleware::{MiddlewareRequest, Next};
use crate::race_models::check;
use crate::server::MiddlewareScope;

use super::*;

const METHODS: [&str; 3] = ["acme/1", "acme/2", "acme/3"];

/// A server whose handler sends three notifications, two of them from another thread, and whose middleware waits a different
/// number of turns for each.
fn notifying(threads: &Threads) -> Server {
    let others = threads.clone();
    let server = server(move |call| {
        let context = call.context();
        context.notify(METHODS[0], None).expect("valid");
        others.start(move || {
            for method in &METHODS[1..] {
                context.notify(method, None).expect("valid");
            }
            call.reply(done("done"));
        });
    });
    let delay = |request: MiddlewareRequest, next: Next| async move {
        let turns = METHODS
            .iter()
            .rev()
            .position(|one| *one == request.method());
        for _ in 0..turns.unwrap_or_default() {
            yield_now().await;
        }
        next.run(request).await
    };
    server
        .add_middleware(
            MiddlewareScope::all().with_methods(METHODS),
            Arc::new(delay),
        )
        .expect("a middleware");
    server
}

#[test]
fn delayed_notifications_keep_their_order_before_the_response() {
    check(|| {
        let threads = Threads::default();
        let server = notifying(&threads);
        let (connection, client) = (session(&server), Client::new());
        receive(&connection, &client, &legacy_call(1));
        assert_eq!(text(&client.responses.wait_for(0)), "done");
        threads.join();
        assert_eq!(client.notified_before_response.all(), METHODS);
        assert!(client.ended_once());
        assert!(connection.is_idle());
    });
}

#[test]
fn cancellation_races_delayed_notifications() {
    check(|| {
        let threads = Threads::default();
        let server = notifying(&threads);
        let (connection, client) = (session(&server), Client::new());
        receive(&connection, &client, &legacy_call(1));
        threads.start(receiving(&connection, &client, cancellation(1)));
        threads.join();
        if client.responses.all().is_empty() {
            // The cancellation has ended it, and the tasks of the chain end later.
            assert!(connection.is_idle());
            return;
        }
        assert_eq!(client.notified_before_response.all(), METHODS);
    });
}
