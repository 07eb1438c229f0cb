//! Input requests on 2026-07-28. The flush that answers a request with input requests races the client's retry (which
//! may arrive as soon as the first byte is on the wire), the handler's end, a disconnecting client, the eviction of
//! suspended calls, and a duplicate of the retry. In every order: each request ends once, each input request has one
//! outcome, the handler's result reaches the request that waits for it, and no call stays suspended that no client can
//! retry.
//!
//! The first request of every exchange has the key 0, so keys do not distinguish requests.

use crate::race_models::{Record, check};

use super::*;

/// The client retries at once on its own connection, while the flushing thread is still running.
#[test]
fn retry_races_flush() {
    check(|| {
        let threads = Threads::default();
        let others = threads.clone();
        let server = server(move |call| {
            let others = others.clone();
            call.context()
                .request_input_with(elicitation(), move |outcome| {
                    assert!(outcome.is_ok());
                    others.start(move || call.reply(done("done")));
                });
        });
        let (first, second) = (exchange(&server), exchange(&server));
        let (suspended, answered) = (Client::new(), Client::new());
        receive(&first, &suspended, &modern_call(1));
        let round = suspended.responses.wait_for(0);
        receive(&second, &answered, &retry(2, &round, "ask-1"));
        assert_eq!(text(&answered.responses.wait_for(0)), "done");
        threads.join();
        assert!(suspended.ended_once() && answered.ended_once());
        assert!(first.is_idle() && second.is_idle());
    });
}

/// A handler makes one input request after the other, and the client retries at once each time.
#[test]
fn consecutive_rounds_complete() {
    check(|| {
        let threads = Threads::default();
        let others = threads.clone();
        let server = server(move |call| {
            let others = others.clone();
            let context = call.context();
            context
                .clone()
                .request_input_with(elicitation(), move |outcome| {
                    assert!(outcome.is_ok());
                    // While the retry with the response is still being received.
                    others.start(move || {
                        context.request_input_with(elicitation(), move |outcome| {
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
            assert!(requires_input(&round), "{round}");
            request = retry(2, &round, key);
        }
        let client = Client::new();
        receive(&exchange(&server), &client, &request);
        assert_eq!(text(&client.responses.wait_for(0)), "done");
        threads.join();
        assert!(client.ended_once());
    });
}

/// The handler ends without the response, while the round is sent and the retry arrives.
#[test]
fn handler_end_races_round_and_retry() {
    check(|| {
        let threads = Threads::default();
        let outcomes = Outcomes::default();
        let (others, record) = (threads.clone(), outcomes.clone());
        let server = server(move |call| {
            request_input(&call.context(), &record);
            others.start(move || call.reply(done("early")));
        });
        let client = Client::new();
        receive(&exchange(&server), &client, &modern_call(1));
        let mut response = client.responses.wait_for(0);
        if requires_input(&response) {
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

/// The client of the first request disconnects while the input requests are sent. If it received them it may retry;
/// otherwise the handler is cancelled.
#[test]
fn disconnect_races_flush() {
    check(|| {
        let threads = Threads::default();
        let outcomes = Outcomes::default();
        let record = outcomes.clone();
        let held: Arc<Record<Arc<Call>>> = Arc::default();
        let holder = held.clone();
        let server = server(move |call| {
            request_input(&call.context(), &record);
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
        let sent = client.responses.all();
        if call.context().is_cancelled() {
            assert_eq!(outcomes.all(), [Err(InputRequestError::Cancelled)]);
            assert_eq!(suspended(&server), 0);
            assert!(sent.is_empty(), "{sent:?}");
        } else {
            // The disconnect came too late, or too early.
            assert!(outcomes.all().is_empty());
            assert_eq!(sent.len(), 1);
            let answered = Client::new();
            receive(&exchange(&server), &answered, &retry(2, &sent[0], "ask-1"));
            assert_eq!(outcomes.all(), [Ok(())]);
        }
    });
}

/// A transport ends together with its suspended calls, while a call is being suspended and its client retries over
/// another transport.
#[test]
fn transport_end_races_flush_and_retry() {
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
        let (first, client) = (exchange(&server), Client::new());
        let (inner, transport) = (server.inner().clone(), first.transport());
        receive(&first, &client, &modern_call(1));
        threads.start(move || inner.cancel_suspended_over(transport));
        let response = client.responses.wait_for(0);
        if requires_input(&response) {
            let answered = Client::new();
            receive(&exchange(&server), &answered, &retry(2, &response, "ask-1"));
            let response = answered.responses.wait_for(0);
            threads.join();
            // From the handler that took the retry, or from one that ran again.
            assert_eq!(text(&response), "done");
            assert!(answered.ended_once());
        }
        threads.join();
        assert!(client.ended_once());
        assert!(!outcomes.all().is_empty());
        assert_eq!(suspended(&server), 0);
    });
}

/// The same retry arrives twice: one is served, the other refused.
#[test]
fn duplicate_retries_race() {
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

/// Only one suspended call is allowed: the second call's round evicts the first, whose client retries at that moment.
/// Its handler is resumed, or runs again and makes its input request again.
#[test]
fn eviction_races_retry() {
    check(|| {
        let threads = Threads::default();
        let settings = crate::Settings {
            max_suspended_handlers: 1,
            ..crate::Settings::default()
        };
        let server = server_with(settings, move |call| {
            call.context()
                .request_input_with(elicitation(), move |outcome| {
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

/// A second thread of the handler makes an input request while the first is open, or while its response is received.
/// Input requests that a retry leaves open are sent again with the next round.
#[test]
fn input_request_races_round_and_retry() {
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
            let (requesting, answered) = (context.clone(), answer.clone());
            others.start(move || requesting.request_input_with(elicitation(), move |_| answered()));
            context.request_input_with(elicitation(), move |_| answer());
        });
        let mut request = modern_call(1);
        loop {
            let client = Client::new();
            receive(&exchange(&server), &client, &request);
            let response = client.responses.wait_for(0);
            if !requires_input(&response) {
                assert_eq!(text(&response), "done");
                break;
            }
            let requests = response["result"]["inputRequests"].as_object();
            let keys: Vec<_> = requests.expect("questions").keys().collect();
            request = retry(2, &response, keys[0]);
        }
        threads.join();
    });
}
