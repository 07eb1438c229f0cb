use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use mcpline_protocol::wire::Raw;
use mcpline_protocol::{ErrorCode, RpcError};
use tokio::runtime::{Builder, Runtime};

use crate::ErrorKind;
use crate::backlog::BacklogSlot;
use crate::client::{
    Address, Client, ClientBuilder, ClientTransport, HostRequest, HostRequestHandler,
    RequestOptions,
};
use crate::sync::{Arc, Mutex};

use super::*;

/// Sends outcomes to a test.
struct Sent(Sender<Outcome>);

impl OutcomeRecipient for Sent {
    fn settle(self, outcome: Outcome) {
        self.0.send(outcome).unwrap();
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn reply() -> (Sent, Receiver<Outcome>) {
    let (sender, outcomes) = channel();
    (Sent(sender), outcomes)
}

/// Returns the only outcome that was reported.
fn only(outcomes: &Receiver<Outcome>) -> Outcome {
    let outcome = outcomes.try_recv().expect("the reply was settled");
    assert!(outcomes.try_recv().is_err(), "the reply was settled once");
    outcome
}

fn kind(outcome: &Outcome) -> Option<ErrorKind> {
    match outcome {
        Outcome::Failed(failed) => Some(failed.failure().kind),
        _ => None,
    }
}

/// Lets the tasks of a runtime run until they wait.
async fn settle_tasks() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn settles_a_reply_once_with_its_outcome() {
    let (running, (reply, outcomes)) = (Arc::<RequestsInFlight>::default(), reply());
    let task = running.task(Some(1), reply, async { Outcome::Done });
    runtime().block_on(async {
        task();
        settle_tasks().await;
        assert!(!running.cancel(1), "it has ended");
    });
    assert!(matches!(only(&outcomes), Outcome::Done));
}

#[test]
fn settles_a_reply_whose_task_is_never_run() {
    let (running, (reply, outcomes)) = (Arc::<RequestsInFlight>::default(), reply());
    drop(running.task(Some(1), reply, async { Outcome::Done }));
    assert_eq!(kind(&only(&outcomes)), Some(ErrorKind::Closed));
}

#[test]
fn settles_a_reply_when_its_runtime_ends() {
    let (running, (reply, outcomes)) = (Arc::<RequestsInFlight>::default(), reply());
    let runtime = runtime();
    let task = running.task(Some(1), reply, std::future::pending());
    runtime.block_on(async {
        task();
        settle_tasks().await;
    });
    assert!(outcomes.try_recv().is_err());
    drop(runtime);
    assert_eq!(kind(&only(&outcomes)), Some(ErrorKind::Closed));
}

#[test]
fn settles_a_reply_whose_work_panics() {
    let (running, (reply, outcomes)) = (Arc::<RequestsInFlight>::default(), reply());
    let task = running.task(Some(1), reply, async { panic!("expected by this test") });
    runtime().block_on(async {
        task();
        settle_tasks().await;
    });
    assert_eq!(kind(&only(&outcomes)), Some(ErrorKind::Internal));
}

#[test]
fn cancels_a_request_in_flight_once() {
    let (running, (reply, outcomes)) = (Arc::<RequestsInFlight>::default(), reply());
    let task = running.task(Some(7), reply, std::future::pending());
    runtime().block_on(async {
        task();
        assert!(running.cancel(7));
        assert!(!running.cancel(7));
        settle_tasks().await;
        assert!(!running.cancel(7));
    });
    assert_eq!(kind(&only(&outcomes)), Some(ErrorKind::RequestCancelled));
}

#[test]
fn does_not_run_a_request_that_is_cancelled_before_its_start() {
    let (running, (reply, outcomes)) = (Arc::<RequestsInFlight>::default(), reply());
    let runtime = runtime();
    running.enter(1);
    assert!(running.cancel(1));
    let work = async { unreachable!("it was cancelled") };
    running.start(runtime.handle(), 1, reply, work);
    runtime.block_on(settle_tasks());
    assert_eq!(kind(&only(&outcomes)), Some(ErrorKind::RequestCancelled));
    assert!(!running.cancel(1));
}

#[test]
fn a_cancelled_request_ignores_a_late_result() {
    let (running, (reply, outcomes)) = (Arc::<RequestsInFlight>::default(), reply());
    let runtime = runtime();
    let cancelling = running.clone();
    running.enter(1);
    running.start(runtime.handle(), 1, reply, async move {
        assert!(cancelling.cancel(1));
        Outcome::Done
    });
    runtime.block_on(settle_tasks());
    assert_eq!(kind(&only(&outcomes)), Some(ErrorKind::RequestCancelled));
}

/// A channel that never opens.
struct Unreachable;

impl ClientTransport for Unreachable {
    fn dial(
        &self,
    ) -> std::pin::Pin<Box<dyn Future<Output = std::io::Result<crate::client::Channel>> + Send + '_>>
    {
        Box::pin(std::future::pending())
    }
}

fn unreachable() -> Address {
    Address::Custom(Arc::new(Unreachable))
}

fn builder() -> ClientBuilder {
    Client::builder("test", "1")
}

#[test]
fn a_connection_that_is_closed_while_it_opens_fails_to_open() {
    let (connection, (reply, outcomes)) = (Connection::new(), reply());
    let opening = connection.open(builder(), unreachable()).unwrap();
    assert_eq!(
        connection.client().err(),
        Some(WrongPhaseError::NotConnected)
    );
    assert_eq!(
        connection.open(builder(), unreachable()).err(),
        Some(WrongPhaseError::Opened)
    );
    let task = connection
        .requests_in_flight()
        .task(Some(1), reply, opening);
    runtime().block_on(async {
        task();
        settle_tasks().await;
        connection.close().await;
        settle_tasks().await;
    });
    assert_eq!(kind(&only(&outcomes)), Some(ErrorKind::Closed));
    assert_eq!(connection.client().err(), Some(WrongPhaseError::Closed));
    assert_eq!(
        connection.open(builder(), unreachable()).err(),
        Some(WrongPhaseError::Closed)
    );
}

/// A channel to a server that sends nothing.
struct Silent(Sender<tokio::sync::mpsc::Sender<std::io::Result<bytes::Bytes>>>);

impl ClientTransport for Silent {
    fn dial(
        &self,
    ) -> std::pin::Pin<Box<dyn Future<Output = std::io::Result<crate::client::Channel>> + Send + '_>>
    {
        let (to_server, _) = tokio::sync::mpsc::unbounded_channel();
        let (server, from_server) = tokio::sync::mpsc::channel(1);
        self.0.send(server).unwrap();
        let channel = crate::client::Channel {
            to_server,
            from_server,
        };
        Box::pin(async { Ok(channel) })
    }
}

fn silent() -> (
    Address,
    Receiver<tokio::sync::mpsc::Sender<std::io::Result<bytes::Bytes>>>,
) {
    let (dialled, servers) = channel();
    (Address::Custom(Arc::new(Silent(dialled))), servers)
}

#[test]
fn closing_waits_for_the_channel_of_a_connection_that_is_being_opened() {
    let (connection, (reply, outcomes)) = (Connection::new(), reply());
    let (address, servers) = silent();
    let opening = connection.open(builder(), address).unwrap();
    let task = connection
        .requests_in_flight()
        .task(Some(1), reply, opening);
    runtime().block_on(async {
        task();
        settle_tasks().await;
        let server = servers.try_recv().expect("it was dialled");
        assert!(!server.is_closed());
        connection.close().await;
        assert!(server.is_closed(), "nothing of it is left");
        settle_tasks().await;
    });
    assert_eq!(kind(&only(&outcomes)), Some(ErrorKind::Closed));
}

#[test]
fn closing_waits_for_the_channel_of_an_opening_that_was_cancelled() {
    let (connection, (reply, outcomes)) = (Connection::new(), reply());
    let (address, servers) = silent();
    let opening = connection.open(builder(), address).unwrap();
    let task = connection
        .requests_in_flight()
        .task(Some(1), reply, opening);
    runtime().block_on(async {
        task();
        settle_tasks().await;
        let server = servers.try_recv().expect("it was dialled");
        assert!(connection.requests_in_flight().cancel(1));
        connection.close().await;
        assert!(server.is_closed(), "nothing of it is left");
        settle_tasks().await;
    });
    assert_eq!(kind(&only(&outcomes)), Some(ErrorKind::RequestCancelled));
}

#[test]
fn a_connection_that_is_closed_before_it_opens_dials_nothing() {
    let connection = Connection::new();
    let opening = connection.open(builder(), unreachable()).unwrap();
    let outcome = runtime().block_on(async {
        connection.close().await;
        opening.await
    });
    assert_eq!(kind(&outcome), Some(ErrorKind::Closed));
}

#[test]
fn a_connection_whose_opening_was_dropped_may_be_opened_again() {
    let connection = Connection::new();
    drop(connection.open(builder(), unreachable()).unwrap());
    assert_eq!(connection.check_unopened(), Ok(()));
    assert!(connection.open(builder(), unreachable()).is_ok());
}

#[test]
fn a_client_that_begins_to_close_is_neither_opened_nor_configured() {
    let events = Arc::<Recorded>::default();
    let client = ClientHandle::unopened(events, ClientConfiguration::default());
    let closing = client.closing();
    let configured = client.configure(|_| ());
    assert_eq!(configured, Err(WrongPhaseError::Closed));
    let opened = client.open().err();
    assert!(
        matches!(opened, Some(OpenError::Phase(WrongPhaseError::Closed))),
        "{opened:?}"
    );
    runtime().block_on(closing);
}

#[cfg(feature = "server")]
#[test]
fn a_closed_connection_still_describes_its_server() {
    let server = crate::Server::builder("described", "1").build().unwrap();
    let connection = Connection::new();
    let address = Address::Server(server);
    let opening = connection.open(builder(), address).unwrap();
    runtime().block_on(async {
        assert!(matches!(opening.await, Outcome::Result(_)));
        assert!(connection.client().is_ok());
        connection.close().await;
        connection.close().await;
    });
    let described = connection.server().unwrap().to_json();
    let described: serde_json::Value = described.decode().unwrap();
    assert_eq!(described["serverInfo"]["name"], "described");
    assert_eq!(connection.client().err(), Some(WrongPhaseError::Closed));
}

/// Records how requests of a client ended, and its audit log.
#[cfg(feature = "server")]
struct RecordedClient {
    client: Client,
    ended: Arc<Mutex<Vec<String>>>,
    path: std::path::PathBuf,
}

#[cfg(feature = "server")]
impl RecordedClient {
    /// Connects a client to a server that must not be called.
    async fn connect(name: &str) -> Self {
        let server = crate::Server::new("weather", "1").tool("echo", "Must not run", async || {
            unreachable!("the call was given up");
            #[expect(unreachable_code, reason = "names the type of the result")]
            ""
        });
        let name = format!("mcpline-given-up-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let log = crate::middleware::AuditLog::open(&path).unwrap();
        let ended = Arc::<Mutex<Vec<String>>>::default();
        let listener = ended.clone();
        let builder = builder()
            .configure(|settings| settings.metrics = cfg!(feature = "metrics"))
            .on_request_end(move |record| {
                let line = format!("{} {}: {}", record.method, record.name, record.outcome);
                listener.lock().unwrap().push(line);
            });
        #[cfg(feature = "redaction")]
        let builder =
            builder.middleware(crate::middleware::Redaction::new().with_members(["iban"]));
        let client = builder
            .middleware(log.with_arguments(true))
            .connect(server)
            .await
            .unwrap();
        Self {
            client,
            ended,
            path,
        }
    }

    fn call(&self) -> impl Future<Output = Outcome> + Send + 'static + use<> {
        let params =
            r#"{"name":"echo","arguments":{"iban":"DE89","_":1},"_meta":{"a.example/b":1}}"#;
        let command = ClientCommand::Request("tools/call".into(), Some(Raw::from_trusted(params)));
        command.run(self.client.clone(), RequestOptions::new())
    }

    /// Asserts that a call was recorded as cancelled, and closes the client.
    async fn assert_cancelled(self) {
        assert_eq!(*self.ended.lock().unwrap(), ["tools/call echo: cancelled"]);
        #[cfg(feature = "metrics")]
        {
            let metrics = self.client.metrics_text();
            let counted = metrics.lines().any(|line| {
                let parts = ["_count{", "\"echo\"", "error_type=\"cancelled\"", "} 1"];
                parts.iter().all(|part| line.contains(part))
            });
            assert!(counted, "{metrics}");
        }
        self.client.close().await;
        // A thread writes the record.
        let mut records = String::new();
        while !records.ends_with('\n') {
            tokio::task::yield_now().await;
            records = std::fs::read_to_string(&self.path).unwrap();
        }
        std::fs::remove_file(&self.path).unwrap();
        let record: serde_json::Value = serde_json::from_str(&records).expect("one record");
        let iban = match cfg!(feature = "redaction") {
            true => "[redacted]",
            false => "DE89",
        };
        for (member, value) in [
            ("kind", "sent_request".into()),
            ("method", "tools/call".into()),
            ("name", "echo".into()),
            ("server", "weather".into()),
            ("outcome", "cancelled".into()),
            ("arguments", serde_json::json!({"iban": iban, "_": 1})),
        ] {
            assert_eq!(record[member], value, "{member} of {record}");
        }
        assert_eq!(record.get("request_id"), None, "it was not sent");
    }
}

#[cfg(feature = "server")]
#[test]
fn records_a_call_that_is_cancelled_before_it_begins() {
    runtime().block_on(async {
        let recorded = RecordedClient::connect("task").await;
        let (running, (reply, outcomes)) = (Arc::<RequestsInFlight>::default(), reply());
        let task = running.task(Some(1), reply, recorded.call());
        task();
        assert!(running.cancel(1));
        settle_tasks().await;
        assert_eq!(kind(&only(&outcomes)), Some(ErrorKind::RequestCancelled));
        recorded.assert_cancelled().await;
    });
}

#[cfg(feature = "server")]
#[test]
fn records_a_call_that_is_cancelled_before_it_is_started() {
    let runtime = runtime();
    runtime.block_on(async {
        let recorded = RecordedClient::connect("entered").await;
        let (running, (reply, outcomes)) = (Arc::<RequestsInFlight>::default(), reply());
        running.enter(1);
        assert!(running.cancel(1));
        running.start(runtime.handle(), 1, reply, recorded.call());
        assert_eq!(kind(&only(&outcomes)), Some(ErrorKind::RequestCancelled));
        recorded.assert_cancelled().await;
    });
}

/// Records the input requests and notifications of a client's host.
#[derive(Default)]
struct Recorded {
    input_requests: Mutex<Vec<HostInputRequest>>,
    cancelled: Mutex<Vec<u64>>,
    notifications: Mutex<Vec<(String, Option<Raw>, BacklogSlot)>>,
}

impl ClientEvents for Recorded {
    fn input_request(&self, _: &Arc<InputRequests>, request: HostInputRequest) {
        self.input_requests.lock().unwrap().push(request);
    }

    fn withdrawn(&self, number: u64) {
        self.cancelled.lock().unwrap().push(number);
    }

    fn notification(&self, method: &str, params: Option<Raw>, slot: BacklogSlot) {
        let mut notifications = self.notifications.lock().unwrap();
        notifications.push((method.to_owned(), params, slot));
    }

    fn stderr(&self, _: &str, _: BacklogSlot) {}
}

#[test]
fn an_input_request_is_answered_once() {
    let host = Arc::<Recorded>::default();
    let requests = InputRequests::new(host.clone());
    let answer = requests.request_handler("roots/list")(HostRequest::default());
    let number = host.input_requests.lock().unwrap()[0].number;
    requests.answer(number, Ok(Raw::EMPTY_OBJECT));
    requests.answer(number, Err(RpcError::internal_error("too late")));
    let answer = runtime().block_on(answer);
    assert_eq!(answer.unwrap().as_str(), "{}");
    assert!(host.cancelled.lock().unwrap().is_empty());
}

#[test]
fn a_dropped_input_request_is_cancelled() {
    let host = Arc::<Recorded>::default();
    let requests = InputRequests::new(host.clone());
    let request_handler = requests.request_handler("elicitation/create");
    drop(request_handler(HostRequest::default()));
    let number = host.input_requests.lock().unwrap()[0].number;
    assert_eq!(*host.cancelled.lock().unwrap(), [number]);
    // Answering it has no effect.
    requests.answer(number, Ok(Raw::EMPTY_OBJECT));
}

#[test]
fn a_gone_host_receives_no_requests_and_is_not_waited_for() {
    let host = Arc::<Recorded>::default();
    let requests = InputRequests::new(host.clone());
    let request_handler = requests.request_handler("roots/list");
    let (open, abandoned) = (
        request_handler(HostRequest::default()),
        request_handler(HostRequest::default()),
    );
    requests.abandon(2);
    let abandoned = runtime().block_on(abandoned);
    assert!(abandoned.is_err());
    requests.end();
    let late = request_handler(HostRequest::default());
    runtime().block_on(async {
        assert!(open.await.is_err());
        assert!(late.await.is_err());
    });
    assert_eq!(host.input_requests.lock().unwrap().len(), 2);
    assert!(host.cancelled.lock().unwrap().is_empty());
}

/// Sends an input request of a server to the host, lets it run, and cancels it. Returns whether the host received it.
fn request_and_cancel(request_handler: &HostRequestHandler, params: Option<Raw>) -> bool {
    let mut answer = request_handler(HostRequest {
        params,
        ..HostRequest::default()
    });
    let answered = runtime().block_on(async {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        answer.as_mut().poll(&mut context)
    });
    match answered {
        std::task::Poll::Pending => true,
        std::task::Poll::Ready(answered) => {
            assert_eq!(answered.unwrap_err().code, ErrorCode::BUSY);
            false
        }
    }
}

#[test]
fn cancelled_input_requests_that_wait_for_the_host_are_bounded_by_number() {
    let host = Arc::<Recorded>::default();
    let requests = InputRequests::new(host.clone());
    let elicit = requests.request_handler("elicitation/create");
    for _ in 0..MAX_WAITING_INPUT_REQUESTS {
        assert!(request_and_cancel(&elicit, None));
    }
    assert!(!request_and_cancel(&elicit, None));
    assert!(!request_and_cancel(
        &requests.request_handler("acme/pick"),
        None
    ));
    // The library's own requests are bounded by the operations that cause them.
    assert!(request_and_cancel(
        &requests.request_handler("auth/token"),
        None
    ));
    assert!(request_and_cancel(
        &requests.request_handler("host/tool_call"),
        None
    ));
    host.input_requests.lock().unwrap().remove(0);
    assert!(request_and_cancel(&elicit, None));
    assert!(!request_and_cancel(&elicit, None));
}

#[test]
fn cancelled_input_requests_that_wait_for_the_host_are_bounded_by_bytes() {
    let host = Arc::<Recorded>::default();
    let requests = InputRequests::new(host.clone());
    let sample = requests.request_handler("sampling/createMessage");
    let large = Raw::string(&"x".repeat(MAX_WAITING_INPUT_REQUEST_BYTES / 2 - 2));
    assert!(request_and_cancel(&sample, Some(large.clone())));
    assert!(request_and_cancel(&sample, Some(large.clone())));
    assert!(!request_and_cancel(&sample, Some(large.clone())));
    host.input_requests.lock().unwrap().clear();
    assert!(request_and_cancel(&sample, Some(large)));
}

#[test]
fn a_slow_listener_loses_what_exceeds_its_backlog() {
    let backlog = listener_backlog();
    let slots: Vec<_> = (0..MAX_WAITING_NOTIFICATIONS)
        .map(|_| backlog.admit(1).expect("there is room"))
        .collect();
    assert!(backlog.admit(1).is_none());
    drop(slots);
    let large = backlog.admit(MAX_WAITING_NOTIFICATION_BYTES);
    assert!(large.is_some());
    assert!(backlog.admit(1).is_none());
}

#[test]
fn passes_on_only_log_messages_until_it_listens_for_all_notifications() {
    use crate::sync::atomic::{AtomicBool, Ordering};
    use mcpline_protocol::wire::{self, Incoming, Message};

    let host = Arc::<Recorded>::default();
    let all = Arc::new(AtomicBool::new(false));
    let listener = notification_listener(host.clone(), listener_backlog(), all.clone());
    let send = |method: &str| {
        let json = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
        match wire::read(json.into()) {
            Ok(Incoming::Single(Message::Notification(notification))) => listener(&notification),
            other => panic!("{other:?}"),
        }
    };
    send("notifications/tools/list_changed");
    send("notifications/message");
    all.store(true, Ordering::Relaxed);
    send("notifications/tools/list_changed");
    let notifications = host.notifications.lock().unwrap();
    let methods: Vec<_> = notifications.iter().map(|(method, ..)| &**method).collect();
    assert_eq!(
        methods,
        ["notifications/message", "notifications/tools/list_changed"]
    );
}

#[test]
fn a_waiting_notification_holds_its_parameters_alone() {
    use mcpline_protocol::wire::{self, Incoming, Message};

    let host = Arc::<Recorded>::default();
    let listener = notification_listener(host.clone(), listener_backlog(), Arc::default());
    let json = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"},"large":""}"#;
    let message = bytes::Bytes::from(json.as_bytes().to_vec());
    match wire::read(message.clone()) {
        Ok(Incoming::Single(Message::Notification(notification))) => listener(&notification),
        other => panic!("{other:?}"),
    }
    let waiting = host.notifications.lock().unwrap();
    let params = waiting[0]
        .1
        .as_ref()
        .expect("the notification has parameters");
    assert_eq!(params.as_str(), r#"{"level":"info"}"#);
    assert!(message.is_unique(), "the listener holds the whole message");
}

#[test]
fn reads_commands_by_their_methods() {
    for method in [
        "ping",
        "resources/subscribe",
        "resources/unsubscribe",
        "notifications/roots/list_changed",
    ] {
        let command = ClientCommand::read(method, "x".to_owned()).unwrap();
        assert_eq!(command.method(), method);
    }
    assert!(ClientCommand::read("logging/setLevel", "error".to_owned()).is_ok());
    for (method, argument) in [("logging/setLevel", "loud"), ("tools/call", "")] {
        let error = ClientCommand::read(method, argument.to_owned()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
}

#[test]
fn closing_waits_for_all_clients_but_not_longer_than_its_deadline() {
    let closing = ClientCloser::default();
    let tasks = [(), ()].map(|()| closing.task(async {}));
    drop(closing.task(async {}));
    runtime().block_on(async {
        for task in tasks {
            task();
        }
        settle_tasks().await;
    });
    assert!(closing.wait(Duration::from_secs(60)));

    let closing = ClientCloser::default();
    let runtime = runtime();
    let task = closing.task(std::future::pending());
    runtime.block_on(async { task() });
    assert!(!closing.wait(Duration::ZERO));
}
