//! Calls that ask on 2026-07-28. The flush that ends a request with questions meets the client's retry, which may come as soon
//! as the first byte is on the wire, the handler's end, a client that disconnects, a server that lets go of suspended calls,
//! and a second copy of the retry. Whatever comes first: each request ends once, each question has one outcome, the handler's
//! result reaches the request that waits for it, and nothing stays suspended that nobody can come back for.
//!
//! Every exchange's first request has the key 0, so that a request can't be told from another by its key.

use crate::models::{Record, check};

use super::*;

/// The client sends its retry at once, on a connection of its own, while the thread that flushes is still at it.
#[test]
fn a_retry_meets_the_flush() {
    check(|| {
        let threads = Threads::default();
        let others = threads.clone();
        let server = server(move |call| {
            let others = others.clone();
            call.context().ask_with(question(), move |outcome| {
                assert!(outcome.is_ok());
                others.start(move || call.reply(done("done")));
            });
        });
        let (first, second) = (exchange(&server), exchange(&server));
        let (asked, answered) = (Client::new(), Client::new());
        receive(&first, &asked, &modern_call(1));
        let round = asked.responses.wait_for(0);
        receive(&second, &answered, &retry(2, &round, "ask-1"));
        assert_eq!(text(&answered.responses.wait_for(0)), "done");
        threads.join();
        assert!(asked.ended_once() && answered.ended_once());
        assert!(first.is_idle() && second.is_idle());
    });
}

/// A handler that asks one question after the other, and a client that comes back at once each time.
#[test]
fn rounds_follow_each_other() {
    check(|| {
        let threads = Threads::default();
        let others = threads.clone();
        let server = server(move |call| {
            let others = others.clone();
            let context = call.context();
            context.clone().ask_with(question(), move |outcome| {
                assert!(outcome.is_ok());
                // While the retry that brought the answer is still being taken in.
                others.start(move || {
                    context.ask_with(question(), move |outcome| {
                        assert!(outcome.is_ok());
                        call.reply(done("done"));
                    });
                });
            });
        });
        let mut request = modern_call(1);
        for key in ["ask-1", "ask-2"] {
            let client = Client::new();
            receive(&exchange(&server), &client, &request);
            let round = client.responses.wait_for(0);
            assert!(asks(&round), "{round}");
            request = retry(2, &round, key);
        }
        let client = Client::new();
        receive(&exchange(&server), &client, &request);
        assert_eq!(text(&client.responses.wait_for(0)), "done");
        threads.join();
        assert!(client.ended_once());
    });
}

/// A handler that ends without its answer, while the round goes out and the retry comes in.
#[test]
fn the_handlers_end_meets_the_round_and_the_retry() {
    check(|| {
        let threads = Threads::default();
        let outcomes = Outcomes::default();
        let (others, record) = (threads.clone(), outcomes.clone());
        let server = server(move |call| {
            ask(&call.context(), &record);
            others.start(move || call.reply(done("early")));
        });
        let client = Client::new();
        receive(&exchange(&server), &client, &modern_call(1));
        let mut response = client.responses.wait_for(0);
        if asks(&response) {
            let second = Client::new();
            receive(&exchange(&server), &second, &retry(2, &response, "ask-1"));
            response = second.responses.wait_for(0);
            threads.join();
            assert!(second.ended_once());
        }
        threads.join();
        assert_eq!(text(&response), "early");
        assert!(client.ended_once());
        assert_eq!(outcomes.all().len(), 1);
    });
}

/// The client of the first request disconnects while its questions go out. If it has them it may come back; else its handler
/// is told.
#[test]
fn a_disconnect_meets_the_flush() {
    check(|| {
        let threads = Threads::default();
        let outcomes = Outcomes::default();
        let record = outcomes.clone();
        let held: Arc<Record<Arc<Call>>> = Arc::default();
        let holder = held.clone();
        let server = server(move |call| {
            ask(&call.context(), &record);
            holder.add(Arc::new(call));
        });
        let (connection, client) = (exchange(&server), Client::new());
        let gone = connection.clone();
        threads.start(receiving(&connection, &client, modern_call(1)));
        threads.start(move || gone.cancel_all());
        threads.join();
        let Some(call) = held.all().into_iter().next() else {
            // It was cancelled before its handler started.
            return;
        };
        let asked = client.responses.all();
        if call.context().is_cancelled() {
            assert_eq!(outcomes.all(), [Err(InputRequestError::Cancelled)]);
            assert_eq!(suspended(&server), 0);
            assert!(asked.is_empty(), "{asked:?}");
        } else {
            // It came too late, or too early.
            assert!(outcomes.all().is_empty());
            assert_eq!(asked.len(), 1);
            let answered = Client::new();
            receive(&exchange(&server), &answered, &retry(2, &asked[0], "ask-1"));
            assert_eq!(outcomes.all(), [Ok(())]);
        }
    });
}

/// A transport ends, and its suspended calls with it, while one is being suspended and its client comes back over another.
#[test]
fn the_end_of_a_transport_meets_the_flush_and_the_retry() {
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
        let (first, client) = (exchange(&server), Client::new());
        let (inner, transport) = (server.inner().clone(), first.transport());
        receive(&first, &client, &modern_call(1));
        threads.start(move || inner.cancel_suspended_over(transport));
        let response = client.responses.wait_for(0);
        if asks(&response) {
            let answered = Client::new();
            receive(&exchange(&server), &answered, &retry(2, &response, "ask-1"));
            let response = answered.responses.wait_for(0);
            threads.join();
            // The handler that took the retry, or one that ran again.
            assert_eq!(text(&response), "done");
            assert!(answered.ended_once());
        }
        threads.join();
        assert!(client.ended_once());
        assert!(!outcomes.all().is_empty());
        assert_eq!(suspended(&server), 0);
    });
}

/// The same retry twice: one is served, the other refused.
#[test]
fn a_retry_meets_its_copy() {
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
        let client = Client::new();
        receive(&exchange(&server), &client, &modern_call(1));
        let retry = retry(2, &client.responses.wait_for(0), "ask-1");
        let clients = [Client::new(), Client::new()];
        for client in &clients {
            threads.start(receiving(&exchange(&server), client, retry.clone()));
        }
        threads.join();
        assert!(clients.iter().all(|client| client.ended_once()));
        let results = clients.iter().filter(|client| {
            let response = client.responses.wait_for(0);
            response.get("result").is_some()
        });
        assert_eq!(results.count(), 1);
        assert_eq!(outcomes.all(), [Ok(())]);
    });
}

/// There is room for one suspended call: the second one's round cancels the first, whose client comes back just then. Its
/// handler is resumed, or runs again and asks again.
#[test]
fn an_eviction_meets_the_retry() {
    check(|| {
        let threads = Threads::default();
        let settings = crate::Settings {
            suspended: 1,
            ..crate::Settings::default()
        };
        let server = server_with(settings, move |call| {
            call.context().ask_with(question(), move |outcome| {
                call.reply(done(if outcome.is_ok() { "done" } else { "gave up" }));
            });
        });
        let clients = [Client::new(), Client::new()];
        receive(&exchange(&server), &clients[0], &modern_call(1));
        let round = clients[0].responses.wait_for(0);
        let evicting = exchange(&server);
        threads.start(receiving(&evicting, &clients[1], modern_call(2)));
        let answered = Client::new();
        receive(&exchange(&server), &answered, &retry(3, &round, "ask-1"));
        assert_eq!(text(&answered.responses.wait_for(0)), "done");
        threads.join();
        assert!(answered.ended_once());
        assert!(clients.iter().all(|client| client.ended_once()));
        server.inner().cancel_suspended_over(evicting.transport());
    });
}

/// A second thread of the handler asks while the first question is out, or while its answer is being taken in. Whatever is not
/// answered by a retry is asked again by it.
#[test]
fn a_question_meets_the_round_and_the_retry() {
    check(|| {
        let threads = Threads::default();
        let others = threads.clone();
        let server = server(move |call| {
            let (context, call) = (call.context(), Arc::new(Mutex::new((0, Some(call)))));
            let answer = move || {
                let mut waiting = call.lock().expect("no panic");
                waiting.0 += 1;
                let last = (waiting.0 == 2).then(|| waiting.1.take()).flatten();
                drop(waiting);
                if let Some(call) = last {
                    call.reply(done("done"));
                }
            };
            let (asking, answered) = (context.clone(), answer.clone());
            others.start(move || asking.ask_with(question(), move |_| answered()));
            context.ask_with(question(), move |_| answer());
        });
        let mut request = modern_call(1);
        loop {
            let client = Client::new();
            receive(&exchange(&server), &client, &request);
            let response = client.responses.wait_for(0);
            if !asks(&response) {
                assert_eq!(text(&response), "done");
                break;
            }
            let asked = response["result"]["inputRequests"].as_object();
            let keys: Vec<_> = asked.expect("questions").keys().collect();
            request = retry(2, &response, keys[0]);
        }
        threads.join();
    });
}
