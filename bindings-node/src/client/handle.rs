//! One client: the I/O thread performs JavaScript's requests and settles promises.

use std::collections::HashMap;
use std::ffi::OsString;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use mcpline::client::RequestOptions;
use mcpline::foreign::IoAction;
use mcpline::foreign::channel::OpenChannel;
use mcpline::foreign::client::{
    ClientCommand, ClientHandle, Connection, Outcome, OutcomeRecipient, SentRequest, Target,
};
use mcpline::foreign::options::CallOptions;
use mcpline::protocol::ErrorCode;
use mcpline::protocol::wire::Raw;
use mcpline::{RpcError, TraceContext};
use napi::bindgen_prelude::JsValue;
use napi::{Env, JsString, Result};
use napi_derive::napi;

use crate::channel::{ChannelOpener, Channels};
use crate::failure::Failure;
use crate::hub::{Event, PromiseOutcome, Shared};
use crate::open_calls::json_object;
use crate::server::{Server, read};
use crate::text;

use super::close_at_exit::{Clients, OpenClients};
use super::events::Events;
use super::failure::phase;

/// A flag of a request: its progress is reported.
const REPORTS_PROGRESS: u32 = 1;
/// A flag of a request: it may be cancelled.
const MAY_END: u32 = 2;
/// A flag of a request: it has a span, which `take_sent` is called for.
const IS_TRACED: u32 = 4;

/// A client. Created without a connection; `open` connects it.
#[napi]
pub struct Client {
    handle: ClientHandle,
    events: Events,
    open: Arc<OpenClients>,
    /// Actions to hand over at the end of this turn.
    outgoing: Vec<IoAction>,
    /// What is known of requests that have spans, by the number of their promise, until their spans end.
    sent: HashMap<u32, SentRequest>,
}

/// Settles the promise with this number.
struct Promise(Arc<Shared>, u32);

impl OutcomeRecipient for Promise {
    fn settle(self, outcome: Outcome) {
        let settled = match outcome {
            Outcome::Done => PromiseOutcome::Done,
            Outcome::Result(result) => PromiseOutcome::Json(result),
            Outcome::Failed(failed) => PromiseOutcome::Failed(Failure::of(failed.failure())),
        };
        self.0.post(Event::Settled(self.1, settled));
    }
}

impl Client {
    pub(super) fn connection(&self) -> &Arc<Connection> {
        self.handle.connection()
    }
}

#[napi]
impl Client {
    /// Creates a client of a server of this kind: `"url"`, `"program"` or `"socket"`, with a URL or a path in `at` and
    /// the options of the kind. Its events go to the listener with this number.
    #[napi(factory, catch_unwind)]
    pub fn of(
        clients: &Clients,
        number: u32,
        offer: String,
        settings: String,
        kind: String,
        at: String,
        options: String,
    ) -> Result<Self> {
        let target = Target::read(&kind, OsString::from(at), options.as_bytes());
        let target = target.map_err(|error| Failure::core(&error))?;
        Self::make(clients, number, &offer, &settings, target)
    }

    /// Creates a client of a server in this process.
    #[napi(factory, catch_unwind)]
    pub fn of_server(
        clients: &Clients,
        number: u32,
        offer: String,
        settings: String,
        server: &Server,
        options: String,
    ) -> Result<Self> {
        let target = Target::server(server.core().clone(), options.as_bytes());
        let target = target.map_err(|error| Failure::core(&error))?;
        Self::make(clients, number, &offer, &settings, target)
    }

    /// Creates a client over channels that JavaScript opens.
    #[napi(factory, catch_unwind)]
    pub fn of_channel(
        clients: &Clients,
        number: u32,
        offer: String,
        settings: String,
        channels: &Channels,
    ) -> Result<Self> {
        let opener: Arc<dyn OpenChannel> = Arc::new(ChannelOpener(channels.open()));
        Self::make(clients, number, &offer, &settings, opener.into())
    }

    /// Reports the requests to the listener from now on, when they end. Before it is opened.
    #[napi(catch_unwind)]
    pub fn record_requests(&self) -> Result<()> {
        let recorded = self.handle.record_requests(self.events.request_listener());
        recorded.map_err(phase)
    }

    /// Connects. The promise is settled with the description of the server.
    #[napi(catch_unwind)]
    pub fn open(&self, promise: u32) -> Result<()> {
        let opening = self.handle.open();
        let opening = opening.map_err(|error| Failure::of(error.failure()))?;
        let opening = self.task(promise, true, opening);
        self.events.hub.push(opening)
    }

    /// Sends a request with the next `flush`. `params` is a JSON object, or empty; `options` are `CallOptions` as JSON.
    /// Progress is reported under the promise's number.
    #[napi(catch_unwind)]
    pub fn request(
        &mut self,
        env: Env,
        promise: u32,
        method: String,
        params: JsString<'_>,
        options: Option<String>,
        flags: u32,
    ) -> Result<()> {
        let client = self.handle.connection().client().map_err(phase)?;
        let params = text::from_js(env.raw(), params.raw(), parameters)??;
        let mut options = self.options_of(options)?;
        if flags & REPORTS_PROGRESS != 0 {
            let events = self.events.clone();
            let report = move |progress, slot| events.progress(promise, &progress, slot);
            options.progress = Some(self.handle.progress_listener(report));
        }
        self.track(promise, flags, &mut options);
        let request = ClientCommand::Request(method.into(), params).run(client, options);
        let request = self.task(promise, flags & MAY_END != 0, request);
        self.outgoing.push(request);
        Ok(())
    }

    /// Performs an operation without a result, with the next `flush`.
    #[napi(catch_unwind, js_name = "do")]
    pub fn operation(
        &mut self,
        promise: u32,
        method: String,
        argument: String,
        options: Option<String>,
        flags: u32,
    ) -> Result<()> {
        let operation = ClientCommand::read(&method, argument);
        let operation = operation.map_err(|error| Failure::core(&error))?;
        let mut options = self.options_of(options)?;
        self.track(promise, flags, &mut options);
        self.perform(promise, operation, options)
    }

    /// Sends a notification with the next `flush`. `params` is a JSON object, or empty.
    #[napi(catch_unwind)]
    pub fn notify(&mut self, promise: u32, method: String, params: String) -> Result<()> {
        let notification = ClientCommand::Notify(method, parameters(params.as_bytes())?);
        self.perform(promise, notification, RequestOptions::new())
    }

    /// Returns the attributes of the span of a request that has ended, as JSON, once; `null` if it has none.
    #[napi(catch_unwind)]
    pub fn take_sent(&mut self, promise: u32) -> Option<String> {
        let sent = self.sent.remove(&promise)?;
        Some(json_object(sent.attributes()))
    }

    /// Returns the id of the server's process, if the client has started it.
    #[napi(catch_unwind)]
    pub fn pid(&self) -> Option<u32> {
        self.handle.connection().pid()
    }

    /// Returns what the client holds now, as JSON.
    #[napi(catch_unwind)]
    pub fn stats(&self) -> Result<String> {
        self.handle.connection().stats_json().map_err(phase)
    }

    /// Returns the metrics in the text format of Prometheus.
    #[napi(catch_unwind)]
    pub fn metrics(&self) -> Result<String> {
        self.handle.connection().metrics_text().map_err(phase)
    }

    /// Hands over the actions that were queued since the last flush.
    #[napi(catch_unwind)]
    pub fn flush(&mut self) -> Result<()> {
        self.events.hub.push_all(&mut self.outgoing)
    }

    /// Cancels the operation that settles this promise: the server is notified.
    #[napi(catch_unwind)]
    pub fn cancel(&mut self, promise: u32) -> Result<()> {
        let running = self.handle.connection().requests_in_flight().clone();
        // In order: the operation may not have been handed over yet.
        self.outgoing.push(IoAction::Run(Box::new(move || {
            running.cancel(promise.into());
        })));
        self.flush()
    }

    /// Delivers every notification from now on.
    #[napi(catch_unwind)]
    pub fn listen_to_notifications(&self) -> Result<()> {
        self.handle.listen().map_err(phase)
    }

    /// Closes the connection. The promise is settled when it has ended completely.
    #[napi(catch_unwind)]
    pub fn close(&mut self, promise: u32) -> Result<()> {
        self.open.forget(self.events.client);
        let closing = self.handle.closing();
        // Closing is not cancelled with the operation that waits for it.
        let closing = self.task(promise, false, async move {
            closing.await;
            Outcome::Done
        });
        self.outgoing.push(closing);
        self.flush()
    }

    /// Answers an input request with a result, as JSON.
    #[napi(catch_unwind)]
    pub fn answer(&self, number: i64, result: String) {
        let result = Raw::parse(Bytes::from(result)).map_err(|_| {
            RpcError::internal_error("the result of the client's handler is not valid JSON")
        });
        self.handle.input_requests().answer(number as u64, result);
    }

    /// Returns what the span of an input request begins with, as JSON: its own attributes, and in `parent` the trace context of
    /// its parent.
    #[napi(catch_unwind)]
    pub fn input_request_span(&self, number: i64) -> String {
        let span = self.handle.input_requests().span(number as u64);
        let parent = span.parent.iter().flat_map(TraceContext::fields);
        let parent = parent.map(|(name, value)| (name, value.to_owned()));
        let (attributes, parent) = (json_object(span.attributes), json_object(parent.collect()));
        format!(r#"{{"attributes":{attributes},"parent":{parent}}}"#)
    }

    /// Answers an input request with an error; `data` is JSON.
    #[napi(catch_unwind)]
    pub fn refuse(&self, number: i64, code: i32, message: String, data: Option<String>) {
        let mut error = RpcError::new(ErrorCode(code.into()), message);
        error.data = data.and_then(|data| Raw::parse(Bytes::from(data)).ok());
        self.handle
            .input_requests()
            .answer(number as u64, Err(error));
    }
}

impl Client {
    fn make(
        clients: &Clients,
        number: u32,
        offer: &str,
        settings: &str,
        target: Target,
    ) -> Result<Self> {
        let open = clients.open().clone();
        let events = Events {
            hub: open.hub.clone(),
            client: number,
        };
        let (host, settings) = (offer.as_bytes(), settings.as_bytes());
        let handle = ClientHandle::new(Arc::new(events.clone()), host, settings, target);
        let handle = handle.map_err(|error| Failure::core(&error))?;
        open.enter(number, handle.connection());
        Ok(Self {
            handle,
            events,
            open,
            outgoing: Vec::new(),
            sent: HashMap::new(),
        })
    }

    fn track(&mut self, promise: u32, flags: u32, options: &mut RequestOptions) {
        if flags & IS_TRACED != 0 {
            self.sent.insert(promise, SentRequest::track(options));
        }
    }

    /// Reads `CallOptions` from JSON.
    fn options_of(&self, options: Option<String>) -> Result<RequestOptions> {
        let Some(options) = options else {
            return Ok(RequestOptions::new());
        };
        let options: CallOptions = read("the options", &options)?;
        let options = self.handle.options(options);
        Ok(options.map_err(|error| Failure::core(&error))?)
    }

    fn perform(
        &mut self,
        promise: u32,
        command: ClientCommand,
        options: RequestOptions,
    ) -> Result<()> {
        let client = self.handle.connection().client().map_err(phase)?;
        let operation = self.task(promise, true, command.run(client, options));
        self.outgoing.push(operation);
        Ok(())
    }

    /// Returns the action for the I/O thread that runs an operation and settles the promise.
    fn task(
        &self,
        promise: u32,
        may_end: bool,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) -> IoAction {
        let reply = Promise(self.events.hub.clone(), promise);
        let number = may_end.then_some(promise.into());
        let running = self.handle.connection().requests_in_flight();
        IoAction::Run(Box::new(running.task(number, reply, work)))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.open.forget(self.events.client);
    }
}

/// Reads the parameters of a request that `JSON.stringify` wrote; empty for none.
fn parameters(json: &[u8]) -> Result<Option<Raw>> {
    if json.is_empty() {
        return Ok(None);
    }
    let json = Bytes::copy_from_slice(json);
    if !text::may_be_ill_formed(&json) {
        return Ok(Some(Raw::from_trusted(json)));
    }
    match Raw::parse(json) {
        Ok(params) => Ok(Some(params)),
        Err(error) => Err(Failure::usage(format!("the parameters: {error}")).into()),
    }
}
