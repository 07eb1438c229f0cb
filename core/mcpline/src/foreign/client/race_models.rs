//! Models of a connection that several threads open, cancel and close. The reply of its opening is settled exactly
//! once; `close` returns only when every dialled channel has ended; after that it is neither open nor opened again.

use std::io;
use std::pin::Pin;

use bytes::Bytes;
use mcpline_protocol::Revision;
use mcpline_protocol::wire::Raw;
use serde_json::{Value, json};
use shuttle::future::block_on;
use tokio::sync::mpsc;

use crate::ErrorKind;
use crate::client::{Address, Channel, Client, ClientTransport, HostRequest};
use crate::race_models::{Record, check, spawn};
use crate::server::race_models::Threads;
use crate::sync::Arc;

use super::*;

/// Number of the opening among the requests of its connection.
const OPENING: u64 = 1;

type FromServer = mpsc::Sender<io::Result<Bytes>>;

/// A server with the channels that were dialled to it.
#[derive(Clone, Default)]
struct TestServer {
    answers: bool,
    channels: Arc<Record<FromServer>>,
}

impl TestServer {
    /// Whether nothing is left of the channels.
    fn has_ended(&self) -> bool {
        self.channels.all().iter().all(mpsc::Sender::is_closed)
    }
}

impl ClientTransport for TestServer {
    fn dial(&self) -> Pin<Box<dyn Future<Output = io::Result<Channel>> + Send + '_>> {
        let (to_server, mut sent) = mpsc::unbounded_channel::<Bytes>();
        let (server, from_server) = mpsc::channel(8);
        self.channels.add(server.clone());
        if self.answers {
            spawn(async move {
                while let Some(message) = sent.recv().await {
                    let message: Value = serde_json::from_slice(&message).expect("JSON");
                    if message["method"] == "initialize" {
                        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                            "serverInfo": {"name": "test", "version": "1"}});
                        let answer =
                            json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                        // The client may have closed the channel.
                        let _ = server.send(Ok(answer.to_string().into())).await;
                    }
                }
            });
        }
        Box::pin(async move {
            Ok(Channel {
                to_server,
                from_server,
            })
        })
    }
}

/// Records the outcomes of replies.
#[derive(Clone, Default)]
struct Outcomes(Arc<Record<Option<ErrorKind>>>);

impl OutcomeRecipient for Outcomes {
    fn settle(self, outcome: Outcome) {
        self.0.add(match outcome {
            Outcome::Failed(failed) => Some(failed.failure().kind),
            _ => None,
        });
    }
}

/// A connection with the threads that use it.
struct Model {
    connection: Arc<Connection>,
    server: TestServer,
    outcomes: Outcomes,
    threads: Threads,
}

impl Model {
    /// Opens the connection in a thread.
    fn start(answers: bool) -> Self {
        let server = TestServer {
            answers,
            ..TestServer::default()
        };
        let (connection, outcomes) = (Connection::new(), Outcomes::default());
        let threads = Threads::default();
        let builder = Client::builder("test", "1")
            .configure(|settings| settings.revisions = vec![Revision::V2025_11_25]);
        connection.requests_in_flight().enter(OPENING);
        let (opened, reply, address) = (connection.clone(), outcomes.clone(), server.clone());
        threads.start(move || {
            let address = Address::Custom(Arc::new(address));
            let Ok(opening) = opened.open(builder, address) else {
                opened.requests_in_flight().forget(OPENING);
                return reply.settle(Outcome::failed(crate::client::ClientError::Closed, ""));
            };
            let runtime = tokio::runtime::Handle::current();
            let running = opened.requests_in_flight().clone();
            running.start(&runtime, OPENING, reply, opening);
        });
        Self {
            connection,
            server,
            outcomes,
            threads,
        }
    }

    /// Closes the connection in a thread.
    fn close(&self) {
        let (connection, server) = (self.connection.clone(), self.server.clone());
        self.threads.start(move || {
            block_on(connection.close());
            assert!(server.has_ended(), "a channel is left");
            assert_eq!(connection.client().err(), Some(WrongPhaseError::Closed));
        });
    }

    /// Cancels the opening in a thread.
    fn cancel(&self) {
        let running = self.connection.requests_in_flight().clone();
        self.threads.start(move || {
            running.cancel(OPENING);
        });
    }

    /// Returns the outcome of the opening.
    fn end(self) -> Option<ErrorKind> {
        self.threads.join();
        let outcomes = self.outcomes.0.all();
        assert_eq!(outcomes.len(), 1, "{outcomes:?}");
        assert!(self.server.has_ended(), "a channel is left");
        assert!(self.server.channels.all().len() <= 1);
        assert_eq!(
            self.connection.check_unopened(),
            Err(WrongPhaseError::Closed)
        );
        outcomes[0]
    }
}

#[test]
fn an_opening_meets_two_who_close() {
    check(|| {
        let model = Model::start(false);
        model.close();
        model.close();
        assert_eq!(model.end(), Some(ErrorKind::Closed));
    });
}

#[test]
fn an_opening_meets_its_cancellation_and_the_close() {
    check(|| {
        let model = Model::start(false);
        model.cancel();
        model.close();
        let ended = model.end();
        assert!(
            matches!(ended, Some(ErrorKind::Closed | ErrorKind::RequestCancelled)),
            "{ended:?}"
        );
    });
}

#[test]
fn an_opening_that_succeeds_meets_its_cancellation_and_the_close() {
    check(|| {
        let model = Model::start(true);
        model.cancel();
        model.close();
        let ended = model.end();
        assert!(
            matches!(
                ended,
                None | Some(ErrorKind::Closed | ErrorKind::RequestCancelled)
            ),
            "{ended:?}"
        );
    });
}

/// Records input requests and cancellations without answering.
#[derive(Default)]
struct RecordedEvents {
    received: Record<u64>,
    cancelled: Record<u64>,
}

impl ClientEvents for RecordedEvents {
    fn input_request(&self, _: &Arc<InputRequests>, request: HostInputRequest) {
        self.received.add(request.number);
    }

    fn withdrawn(&self, number: u64) {
        self.cancelled.add(number);
    }
}

/// The host answers or ends, while the server cancels its request.
#[test]
fn answer_races_cancellation_and_end_of_host() {
    check(|| {
        let events = Arc::new(RecordedEvents::default());
        let requests = InputRequests::new(events.clone());
        let answer = requests.request_handler("roots/list")(HostRequest::default());
        let number = events.received.wait_for(0);
        let threads = Threads::default();
        let answering = requests.clone();
        threads.start(move || answering.answer(number, Ok(Raw::EMPTY_OBJECT)));
        threads.start(move || drop(answer));
        threads.start(move || requests.end());
        threads.join();
        assert!(events.cancelled.all().len() <= 1);
    });
}
