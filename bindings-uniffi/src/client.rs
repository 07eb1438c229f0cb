//! The client of the other language, and its host: the foreign trait that answers input requests and receives events.

use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcpline::client::{ConnectionEvent, RequestOptions};
use mcpline::foreign::Failure as CoreFailure;
use mcpline::foreign::channel::OpenChannel;
use mcpline::foreign::client::{
    BacklogSlot, CLOSING_TIMEOUT, ClientCloser, ClientCommand, ClientEvents, ClientHandle,
    Connection, HostInputRequest, InputRequests, Outcome, OutcomeRecipient, Target,
    WrongPhaseError,
};
use mcpline::foreign::options::CallOptions;
use mcpline::protocol::ListMethod;
use mcpline::protocol::vocabulary::Progress;
use mcpline::protocol::wire::Raw;
use mcpline::{ErrorKind, RpcError};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::call;
use crate::channel::{ChannelOpener, ClientTransport};
use crate::failure::{Failure, ForeignFailure, RpcFailure};
use crate::request_log::{self, RequestListener};
use crate::runtime::Runtime;
use crate::server::{Server, read_or_default};

/// Maximum number of events that cross the boundary at once.
const MAX_EVENTS: usize = 64;

/// The host of a client, in the other language.
#[uniffi::export(with_foreign)]
#[async_trait::async_trait]
pub trait Host: Send + Sync {
    /// Answers an input request of the server, or of the library (`auth/…`, `host/…`). `params` are JSON. Dropping the
    /// future cancels it.
    async fn input_request(
        &self,
        method: String,
        params: Option<String>,
    ) -> Result<InputAnswer, ForeignFailure>;

    /// Takes events, in the order in which they happened. The next ones come when it returns.
    async fn events(&self, events: Vec<ClientEvent>) -> Result<(), ForeignFailure>;
}

/// Receives the progress of one request, in the other language.
#[uniffi::export(with_foreign)]
#[async_trait::async_trait]
pub trait ProgressListener: Send + Sync {
    /// Takes one report. The next one comes when it returns.
    async fn progress(
        &self,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> Result<(), ForeignFailure>;
}

/// An answer to an input request.
#[derive(Debug, uniffi::Enum)]
pub enum InputAnswer {
    /// The request has a result.
    Answered {
        /// The result as JSON.
        json: String,
    },
    /// The request fails with a JSON-RPC error.
    Refused {
        /// The error that the server gets.
        error: RpcFailure,
    },
}

/// An event of a client.
#[derive(Debug, uniffi::Enum)]
pub enum ClientEvent {
    /// A notification of the server.
    Notification {
        /// The method.
        method: String,
        /// The parameters, as JSON.
        params: Option<String>,
    },
    /// A change of the connection.
    Connection {
        /// `ConnectionEvent::name`.
        state: String,
        /// Why the connection was lost.
        failure: Option<FailureRecord>,
    },
    /// A line that the server's process wrote to stderr.
    Stderr {
        /// The line.
        line: String,
    },
}

/// [`Failure::Failed`] as data.
#[derive(Debug, uniffi::Record)]
pub struct FailureRecord {
    /// The kind.
    pub kind: String,
    /// The message.
    pub text: String,
    /// All other facts.
    pub facts: String,
}

impl From<Failure> for FailureRecord {
    fn from(Failure::Failed { kind, text, facts }: Failure) -> Self {
        Self { kind, text, facts }
    }
}

/// Passes the events of one client to its host.
struct Events {
    host: Arc<dyn Host>,
    runtime: Handle,
    queue: mpsc::UnboundedSender<(ClientEvent, Option<BacklogSlot>)>,
    /// The input requests that the host answers: notified when one is withdrawn.
    answering: Arc<Mutex<HashMap<u64, Arc<Notify>>>>,
}

impl Events {
    /// Starts the task that passes events on. It ends with the client.
    fn start(host: Arc<dyn Host>, runtime: &Handle) -> Self {
        // Unbounded, because the slots are what is limited (`foreign::client::MAX_WAITING_NOTIFICATIONS`).
        let (queue, mut events) = mpsc::unbounded_channel();
        let listener = host.clone();
        runtime.spawn(async move {
            let mut batch = Vec::new();
            while events.recv_many(&mut batch, MAX_EVENTS).await > 0 {
                let (events, slots): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
                // The package logs what its listeners throw.
                let _ = listener.events(events).await;
                drop(slots);
            }
        });
        Self {
            host,
            runtime: runtime.clone(),
            queue,
            answering: Arc::default(),
        }
    }

    fn post(&self, event: ClientEvent, slot: Option<BacklogSlot>) {
        // The task ends with the runtime.
        let _ = self.queue.send((event, slot));
    }
}

impl ClientEvents for Events {
    fn input_request(&self, requests: &Arc<InputRequests>, request: HostInputRequest) {
        let HostInputRequest {
            number,
            method,
            params,
            slot,
            ..
        } = request;
        let withdrawn = Arc::new(Notify::new());
        lock(&self.answering).insert(number, withdrawn.clone());
        let (host, requests) = (self.host.clone(), requests.clone());
        let answering = self.answering.clone();
        self.runtime.spawn(async move {
            // The host takes it now.
            drop(slot);
            let params = params.map(|params| params.as_str().to_owned());
            let answer = tokio::select! {
                biased;
                answer = host.input_request(method.to_string(), params) => answer,
                () = withdrawn.notified() => return,
            };
            lock(&answering).remove(&number);
            requests.answer(
                number,
                match answer {
                    Ok(InputAnswer::Answered { json }) => Raw::parse(json).map_err(|_| {
                        RpcError::internal_error(
                            "the result of the client's handler is not valid JSON",
                        )
                    }),
                    Ok(InputAnswer::Refused { error }) => Err(error.rpc_error()),
                    Err(_) => Err(RpcError::internal_error("the handler failed")),
                },
            );
        });
    }

    fn withdrawn(&self, number: u64) {
        if let Some(withdrawn) = lock(&self.answering).remove(&number) {
            withdrawn.notify_one();
        }
    }

    fn notification(&self, method: &str, params: Option<Raw>, slot: BacklogSlot) {
        let event = ClientEvent::Notification {
            method: method.to_owned(),
            params: params.map(|params| params.as_str().to_owned()),
        };
        self.post(event, Some(slot));
    }

    fn connection(&self, event: &ConnectionEvent, slot: Option<BacklogSlot>) {
        let failure = event.error();
        let failure = failure.map(|error| Failure::of(CoreFailure::of_client(error)).into());
        let state = event.name().to_owned();
        self.post(ClientEvent::Connection { state, failure }, slot);
    }

    fn stderr(&self, line: &str, slot: BacklogSlot) {
        let line = line.to_owned();
        self.post(ClientEvent::Stderr { line }, Some(slot));
    }
}

/// A client. Created without a connection; `open` connects it.
#[derive(uniffi::Object)]
pub struct Client {
    handle: ClientHandle,
    runtime: Arc<Runtime>,
}

#[uniffi::export]
impl Client {
    /// Creates a client of a server of this kind: `"url"`, `"program"` or `"socket"`, with a URL or a path in `at` and the
    /// options of the kind. `offer` are `HostOptions`, `settings` are `ClientOptions`; all of them are JSON.
    #[uniffi::constructor]
    pub fn of(
        host: Arc<dyn Host>,
        offer: String,
        settings: String,
        kind: String,
        at: String,
        options: String,
    ) -> Result<Arc<Self>, Failure> {
        let target = Target::read(&kind, OsString::from(at), options.as_bytes())?;
        Self::create(host, &offer, &settings, target)
    }

    /// Creates a client of a server in this process.
    #[uniffi::constructor]
    pub fn of_server(
        host: Arc<dyn Host>,
        offer: String,
        settings: String,
        server: Arc<Server>,
        options: String,
    ) -> Result<Arc<Self>, Failure> {
        let target = Target::server(server.core.clone(), options.as_bytes())?;
        Self::create(host, &offer, &settings, target)
    }

    /// Creates a client of a server that a transport in the other language reaches.
    #[uniffi::constructor]
    pub fn of_transport(
        host: Arc<dyn Host>,
        offer: String,
        settings: String,
        transport: Arc<dyn ClientTransport>,
    ) -> Result<Arc<Self>, Failure> {
        let opener: Arc<dyn OpenChannel> = Arc::new(ChannelOpener(transport));
        Self::create(host, &offer, &settings, opener.into())
    }

    /// Passes the records of requests to a listener. To be called before [`open`](Self::open).
    pub fn record_requests(&self, listener: Arc<dyn RequestListener>) -> Result<(), Failure> {
        let listener = request_log::of_client(listener, self.runtime.handle());
        self.handle.record_requests(listener).map_err(wrong_phase)
    }

    /// Connects. Returns the description of the server, as JSON.
    pub async fn open(&self) -> Result<String, Failure> {
        let opening = self.handle.open();
        let opening = opening.map_err(|error| Failure::of(error.failure()))?;
        self.result(opening).await
    }

    /// Sends a request and returns its result. `params` are a JSON object; `options` are `CallOptions` as JSON.
    pub async fn request(
        &self,
        method: String,
        params: Option<String>,
        options: Option<String>,
        listener: Option<Arc<dyn ProgressListener>>,
    ) -> Result<String, Failure> {
        let params = params.map(|params| call::read("the parameters", params));
        let command = ClientCommand::Request(method.into(), params.transpose()?);
        let mut options = self.options(options)?;
        let Some(listener) = listener else {
            return self.result(self.command(command, options)?).await;
        };
        // Unbounded, because the slots are what is limited.
        let (sender, mut reports) = mpsc::unbounded_channel();
        options.progress = Some(self.handle.progress_listener(move |progress, slot| {
            // The request may have ended.
            let _ = sender.send((progress, slot));
        }));
        let result = self.result(self.command(command, options)?);
        tokio::pin!(result);
        let result = loop {
            tokio::select! {
                biased;
                report = reports.recv() => match report {
                    Some(report) => deliver(&*listener, report).await,
                    // The request has ended, and its listener with it.
                    None => break result.await,
                },
                result = &mut result => break result,
            }
        };
        // Those that came before the result.
        while let Ok(report) = reports.try_recv() {
            deliver(&*listener, report).await;
        }
        result
    }

    /// Returns all pages of a list, as a JSON array.
    pub async fn list(&self, method: String, options: Option<String>) -> Result<String, Failure> {
        let mut lists = ListMethod::ALL.iter().copied();
        let list = lists
            .find(|list| list.as_str() == method)
            .ok_or_else(|| Failure::usage(format!("{method:?} is not a list")))?;
        let options = self.options(options)?;
        self.result(self.command(ClientCommand::List(list), options)?)
            .await
    }

    /// Performs an operation without a result: see [`ClientCommand::read`].
    pub async fn perform(
        &self,
        method: String,
        argument: String,
        options: Option<String>,
    ) -> Result<(), Failure> {
        let command = ClientCommand::read(&method, argument)?;
        let options = self.options(options)?;
        let work = self.command(command, options)?;
        self.outcome(true, work).await.map(drop)
    }

    /// Sends a notification. `params` are a JSON object.
    pub async fn notify(&self, method: String, params: Option<String>) -> Result<(), Failure> {
        let params = params.map(|params| call::read("the parameters", params));
        let command = ClientCommand::Notify(method, params.transpose()?);
        let work = self.command(command, RequestOptions::new())?;
        self.outcome(true, work).await.map(drop)
    }

    /// Delivers every notification from now on.
    pub fn listen(&self) -> Result<(), Failure> {
        self.handle.listen().map_err(wrong_phase)
    }

    /// Returns the id of the server's process, if the client has started it.
    pub fn pid(&self) -> Option<u32> {
        self.handle.connection().pid()
    }

    /// Returns what the client holds now, as JSON.
    pub fn stats(&self) -> Result<String, Failure> {
        let stats = self.handle.connection().stats_json();
        stats.map_err(wrong_phase)
    }

    /// Returns the metrics in the text format of Prometheus.
    pub fn metrics(&self) -> Result<String, Failure> {
        let metrics = self.handle.connection().metrics_text();
        metrics.map_err(wrong_phase)
    }

    /// Closes the connection. Returns when it has ended completely.
    pub async fn disconnect(&self) -> Result<(), Failure> {
        let closing = self.handle.closing();
        // Closing is not cancelled with the operation that waits for it.
        let closed = self.outcome(false, async move {
            closing.await;
            Outcome::Done
        });
        closed.await.map(drop)
    }
}

async fn deliver(listener: &dyn ProgressListener, (progress, slot): (Progress, BacklogSlot)) {
    let Progress {
        progress,
        total,
        message,
        ..
    } = progress;
    // The package logs what its listeners throw.
    let _ = listener.progress(progress, total, message).await;
    drop(slot);
}

/// Sends the outcome of a request to its caller.
struct OutcomeSender(oneshot::Sender<Outcome>);

impl OutcomeRecipient for OutcomeSender {
    fn settle(self, outcome: Outcome) {
        // The caller may be gone.
        let _ = self.0.send(outcome);
    }
}

/// Cancels a request whose caller drops its future.
struct CancelOnDrop<'a> {
    client: &'a Client,
    number: Option<u64>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let running = self.client.handle.connection().requests_in_flight().clone();
            // In order: the request may not have started yet.
            self.client.runtime.run(move || {
                running.cancel(number);
            });
        }
    }
}

impl Client {
    fn create(
        host: Arc<dyn Host>,
        offer: &str,
        settings: &str,
        target: Target,
    ) -> Result<Arc<Self>, Failure> {
        let runtime = Runtime::shared()?;
        let events = Arc::new(Events::start(host, runtime.handle()));
        let handle = ClientHandle::new(events, offer.as_bytes(), settings.as_bytes(), target)?;
        let mut open = lock(&OPEN);
        open.retain(|connection| connection.strong_count() > 0);
        open.push(Arc::downgrade(handle.connection()));
        Ok(Arc::new(Self { handle, runtime }))
    }

    fn options(&self, options: Option<String>) -> Result<RequestOptions, Failure> {
        let options: CallOptions = read_or_default("the options", options.as_deref())?;
        Ok(self.handle.options(options)?)
    }

    fn command(
        &self,
        command: ClientCommand,
        options: RequestOptions,
    ) -> Result<impl Future<Output = Outcome> + Send + 'static + use<>, Failure> {
        let client = self.handle.connection().client().map_err(wrong_phase)?;
        Ok(command.run(client, options))
    }

    async fn result(
        &self,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) -> Result<String, Failure> {
        let result = self.outcome(true, work).await?;
        result.ok_or_else(|| Failure::new(ErrorKind::Internal, "the request has no result"))
    }

    /// Runs an operation on the I/O thread. Dropping the future cancels it if it may end.
    async fn outcome(
        &self,
        may_end: bool,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) -> Result<Option<String>, Failure> {
        let connection = self.handle.connection();
        let number = may_end.then(|| connection.next_number());
        let (sender, outcome) = oneshot::channel();
        let task = connection
            .requests_in_flight()
            .task(number, OutcomeSender(sender), work);
        self.runtime.run(task);
        let mut cancelling = CancelOnDrop {
            client: self,
            number,
        };
        let outcome = outcome.await;
        cancelling.number = None;
        match outcome.map_err(|_| Failure::ended())? {
            Outcome::Result(result) => Ok(Some(result.as_str().to_owned())),
            Outcome::Done => Ok(None),
            Outcome::Failed(failed) => Err(Failure::of(failed.failure())),
        }
    }
}

fn wrong_phase(error: WrongPhaseError) -> Failure {
    Failure::of(error.failure())
}

/// The connections of this process.
static OPEN: Mutex<Vec<Weak<Connection>>> = Mutex::new(Vec::new());

/// Closes all clients and waits for a limited time, so that no child process is left. For the end of the process.
#[uniffi::export]
pub fn close_clients() {
    let open = std::mem::take(&mut *lock(&OPEN));
    let Ok(runtime) = Runtime::shared() else {
        return;
    };
    let closer = ClientCloser::default();
    for connection in open.iter().filter_map(Weak::upgrade) {
        runtime.run(closer.task(async move { connection.close().await }));
    }
    closer.wait(CLOSING_TIMEOUT);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
