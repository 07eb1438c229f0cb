//! One client: the I/O thread performs Python's requests, and resolves a future or wakes a waiting thread.

use std::ffi::OsString;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use mcpline::client::{Client as CoreClient, RequestOptions};
use mcpline::foreign::IoAction;
use mcpline::foreign::channel::OpenChannel;
use mcpline::foreign::client::{
    ClientCloser, ClientCommand, ClientHandle, Outcome, OutcomeRecipient, ServerDescription,
    Target, WrongPhaseError, client_metrics,
};
use mcpline::protocol::wire::Raw;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::outcome::trusted;
use crate::runtime::Runtime;

use super::channel::ChannelOpener;
use super::event_queue::{Event, EventQueue, LoopQueue};
use super::events::{Events, Host};
use super::failure::{ClientFutureValue, into_python, phase};
use super::options::{RequestOptionArguments, request_options};
use super::thread_waiter::{ThreadWaiter, wait_for_waiting_threads};

/// How long threads whose calls have ended may take to get the interpreter before it ends: on a busy machine, much longer than a turn.
const THREADS_END_TIMEOUT: Duration = Duration::from_secs(2);

/// A client. Created without a connection; `open` connects it.
///
/// In a forked process, its connections and children belong to the parent: nothing of it is used or dropped.
#[pyclass(frozen, module = "mcpline._native", weakref)]
pub(crate) struct Client {
    handle: ManuallyDrop<ClientHandle>,
    runtime: ManuallyDrop<Arc<Runtime>>,
}

/// The recipient of an outcome.
enum RequestWaiter {
    Future(Arc<EventQueue>, Py<PyAny>),
    Thread(Arc<ThreadWaiter>),
}

impl OutcomeRecipient for RequestWaiter {
    fn settle(self, outcome: Outcome) {
        match self {
            Self::Future(event_queue, future) => {
                event_queue.post(Event::Resolve(future, ClientFutureValue::Outcome(outcome)));
            }
            Self::Thread(waiter) => waiter.give(outcome),
        }
    }
}

/// The context of an operation that an event loop begins: its queue, the loop, and the future to resolve.
type LoopRequest<'a, 'py> = (&'a Bound<'py, LoopQueue>, &'a Bound<'py, PyAny>, Py<PyAny>);

#[pymethods]
impl Client {
    /// Creates a client of a server of this kind: `"url"`, `"program"` or `"socket"`, with a URL or a path in `at` and
    /// the options of the kind.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "called in one place")]
    fn of(
        py: Python<'_>,
        loop_queue: &LoopQueue,
        host: Py<PyAny>,
        offer: &[u8],
        settings: &[u8],
        kind: &str,
        at: OsString,
        options: &[u8],
    ) -> PyResult<Self> {
        let target = Target::read(kind, at, options).map_err(|error| errors::core(py, &error))?;
        let runtime = super::shared_runtime(py)?;
        Self::make(
            py,
            loop_queue,
            Host::new(host),
            (offer, settings),
            target,
            runtime,
        )
    }

    /// Creates a client over channels that the host opens. They are opened by the drain of `channels`, which must not
    /// wait for that of `loop_queue`, unless both are the same queue.
    #[staticmethod]
    fn of_channel(
        py: Python<'_>,
        loop_queue: &LoopQueue,
        channels: &LoopQueue,
        host: Py<PyAny>,
        offer: &[u8],
        settings: &[u8],
    ) -> PyResult<Self> {
        let runtime = super::shared_runtime(py)?;
        let host = Host::new(host);
        let opener = ChannelOpener {
            event_queue: channels.event_queue().clone(),
            host: host.clone(),
            runtime: runtime.handle().clone(),
        };
        let opener: Arc<dyn OpenChannel> = Arc::new(opener);
        Self::make(
            py,
            loop_queue,
            host,
            (offer, settings),
            opener.into(),
            runtime,
        )
    }

    /// Creates a client of a server in this process. Its I/O is done by the thread that does the server's.
    #[staticmethod]
    fn of_server(
        py: Python<'_>,
        loop_queue: &LoopQueue,
        host: Py<PyAny>,
        offer: &[u8],
        settings: &[u8],
        server: &crate::server::Server,
        options: &[u8],
    ) -> PyResult<Self> {
        let target = Target::server(server.core().clone(), options);
        let target = target.map_err(|error| errors::core(py, &error))?;
        let runtime = server.start_runtime(py)?;
        Self::make(
            py,
            loop_queue,
            Host::new(host),
            (offer, settings),
            target,
            runtime,
        )
    }

    /// Sends the requests to the logger `mcpline.requests.client`, when they end. Before it is opened.
    fn record_requests(&self, py: Python<'_>) -> PyResult<()> {
        let recorded = self
            .handle
            .record_requests(crate::log::client_request_listener());
        recorded.map_err(|error| phase(py, error))
    }

    /// Connects, and resolves `future` at the end. Returns the number of the attempt.
    fn open_into(
        &self,
        py: Python<'_>,
        loop_queue: &Bound<'_, LoopQueue>,
        event_loop: &Bound<'_, PyAny>,
        future: Py<PyAny>,
    ) -> PyResult<u64> {
        self.begin((loop_queue, event_loop, future), self.opening(py)?)
    }

    /// Connects and waits until the client is connected.
    fn open(&self, py: Python<'_>) -> PyResult<()> {
        self.wait_for(py, &ThreadWaiter::new(py)?, None, self.opening(py)?)
            .map(drop)
    }

    /// Sends a request, and resolves `future` with its outcome. Returns its number, for `cancel`.
    #[expect(clippy::too_many_arguments, reason = "called in one place")]
    fn request_into(
        &self,
        py: Python<'_>,
        loop_queue: &Bound<'_, LoopQueue>,
        event_loop: &Bound<'_, PyAny>,
        future: Py<PyAny>,
        method: &str,
        params: Option<&Bound<'_, PyBytes>>,
        options: Option<RequestOptionArguments>,
    ) -> PyResult<u64> {
        let client = self.client(py)?;
        let (mut options, listener) = request_options(py, &self.handle, options)?;
        if let Some(listener) = listener {
            let (event_queue, listener) =
                (loop_queue.get().event_queue().clone(), Arc::new(listener));
            options.progress = Some(self.handle.progress_listener(move |progress, slot| {
                event_queue.post(Event::Progress(listener.clone(), progress, slot));
            }));
        }
        let request = ClientCommand::Request(method.to_owned().into(), params.map(trusted));
        self.begin(
            (loop_queue, event_loop, future),
            request.run(client, options),
        )
    }

    /// Sends a request and waits for its outcome.
    fn request<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        params: Option<&Bound<'py, PyBytes>>,
        options: Option<RequestOptionArguments>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let client = self.client(py)?;
        let waiter = ThreadWaiter::new(py)?;
        let (mut options, listener) = request_options(py, &self.handle, options)?;
        if listener.is_some() {
            let waiter = waiter.clone();
            let report = move |progress, slot| waiter.progress(progress, slot);
            options.progress = Some(self.handle.progress_listener(report));
        }
        let request = ClientCommand::Request(method.to_owned().into(), params.map(trusted));
        let request = request.run(client, options);
        self.wait_for(py, &waiter, listener.as_ref(), request)
    }

    /// Performs an operation without a result, and resolves `future` when it is done. Returns its number.
    #[expect(clippy::too_many_arguments, reason = "called in one place")]
    fn do_into(
        &self,
        py: Python<'_>,
        loop_queue: &Bound<'_, LoopQueue>,
        event_loop: &Bound<'_, PyAny>,
        future: Py<PyAny>,
        method: &str,
        argument: Option<String>,
        options: Option<RequestOptionArguments>,
    ) -> PyResult<u64> {
        let operation = self.command(py, command_of(py, method, argument)?, options)?;
        self.begin((loop_queue, event_loop, future), operation)
    }

    /// Performs an operation without a result and waits until it is done.
    #[pyo3(name = "do")]
    fn do_now(
        &self,
        py: Python<'_>,
        method: &str,
        argument: Option<String>,
        options: Option<RequestOptionArguments>,
    ) -> PyResult<()> {
        let operation = self.command(py, command_of(py, method, argument)?, options)?;
        self.wait_for(py, &ThreadWaiter::new(py)?, None, operation)
            .map(drop)
    }

    /// Sends a notification, and resolves `future` when it is sent. Returns its number.
    fn notify_into(
        &self,
        py: Python<'_>,
        loop_queue: &Bound<'_, LoopQueue>,
        event_loop: &Bound<'_, PyAny>,
        future: Py<PyAny>,
        method: String,
        params: Option<&Bound<'_, PyBytes>>,
    ) -> PyResult<u64> {
        let notification = ClientCommand::Notify(method, params.map(trusted));
        let notification = self.command(py, notification, None)?;
        self.begin((loop_queue, event_loop, future), notification)
    }

    /// Sends a notification and waits until it is sent.
    fn notify(
        &self,
        py: Python<'_>,
        method: String,
        params: Option<&Bound<'_, PyBytes>>,
    ) -> PyResult<()> {
        let notification = ClientCommand::Notify(method, params.map(trusted));
        let notification = self.command(py, notification, None)?;
        self.wait_for(py, &ThreadWaiter::new(py)?, None, notification)
            .map(drop)
    }

    /// Cancels the operation with this number: the server is notified.
    fn cancel(&self, loop_queue: &LoopQueue, number: u64) {
        // In order: the operation may not have been handed over yet.
        loop_queue.hand_over();
        self.cancel_number(number);
    }

    /// Closes the connection, and resolves `future` when it has ended completely.
    fn close_into(
        &self,
        loop_queue: &Bound<'_, LoopQueue>,
        event_loop: &Bound<'_, PyAny>,
        future: Py<PyAny>,
    ) -> PyResult<()> {
        let reply = RequestWaiter::Future(loop_queue.get().event_queue().clone(), future);
        LoopQueue::send(loop_queue, event_loop, &self.runtime, self.closing(reply))
    }

    /// Closes the connection and waits until it has ended completely.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.runtime.is_foreign() {
            return Ok(());
        }
        let waiter = ThreadWaiter::new(py)?;
        let closing = self.closing(RequestWaiter::Thread(waiter.clone()));
        self.runtime.io_queue().push(closing);
        waiter.wait(py, None).map(drop)
    }

    /// Closes these clients when the interpreter ends. Waits at most `timeout` seconds.
    #[staticmethod]
    fn close_all(py: Python<'_>, clients: Vec<PyRef<'_, Client>>, timeout: f64) {
        let closing = ClientCloser::default();
        for client in clients.iter().filter(|client| !client.runtime.is_foreign()) {
            let task = closing.task(client.handle.closing());
            let task = IoAction::Run(Box::new(task));
            client.runtime.io_queue().push(task);
        }
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or_default();
        py.detach(move || {
            closing.wait(timeout);
            // Their calls have ended.
            wait_for_waiting_threads(THREADS_END_TIMEOUT);
        });
    }

    /// Whether it was ever connected.
    #[getter]
    fn opened(&self) -> bool {
        self.handle.connection().server().is_some()
    }

    /// The id of the server's process, if the client has started it.
    #[getter]
    fn pid(&self) -> Option<u32> {
        self.handle.connection().pid()
    }

    /// Returns what the client holds now, as JSON.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.check_process(py)?;
        let stats = self.handle.connection().stats_json();
        let stats = stats.map_err(|error| phase(py, error))?;
        Ok(PyBytes::new(py, stats.as_bytes()))
    }

    /// Returns the metrics in the text format of Prometheus.
    fn metrics(&self, py: Python<'_>) -> PyResult<String> {
        self.check_process(py)?;
        let text = self.handle.connection().metrics_text();
        text.map_err(|error| phase(py, error))
    }

    /// Returns the metrics of several clients as one text.
    #[staticmethod]
    fn metrics_of(clients: Vec<(String, PyRef<'_, Client>)>) -> String {
        let clients = clients.into_iter();
        client_metrics(clients.map(|(name, client)| (name, client.handle.connection().clone())))
    }

    #[getter]
    fn revision(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.server(py)?.revision)
    }

    /// `Implementation` of the server, as JSON.
    #[getter]
    fn server_info<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let info = self.server(py)?.info.as_ref();
        Ok(info.map(|info| bytes(py, info)))
    }

    /// `ServerCapabilities`, as JSON.
    #[getter]
    fn server_capabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(bytes(py, &self.server(py)?.capabilities))
    }

    #[getter]
    fn instructions(&self, py: Python<'_>) -> PyResult<Option<&str>> {
        Ok(self.server(py)?.instructions.as_deref())
    }
}

impl Client {
    fn make(
        py: Python<'_>,
        loop_queue: &LoopQueue,
        host: Arc<Host>,
        (offer, settings): (&[u8], &[u8]),
        target: Target,
        runtime: Arc<Runtime>,
    ) -> PyResult<Self> {
        let event_queue = loop_queue.event_queue().clone();
        let events = Arc::new(Events { event_queue, host });
        let handle = ClientHandle::new(events, offer, settings, target);
        let handle = handle.map_err(|error| errors::core(py, &error))?;
        Ok(Self {
            handle: ManuallyDrop::new(handle),
            runtime: ManuallyDrop::new(runtime),
        })
    }

    fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        match self.runtime.is_foreign() {
            true => Err(errors::usage_error(
                py,
                "this client belongs to the parent process: create another one after the fork",
            )),
            false => Ok(()),
        }
    }

    fn client(&self, py: Python<'_>) -> PyResult<CoreClient> {
        self.check_process(py)?;
        let client = self.handle.connection().client();
        client.map_err(|error| phase(py, error))
    }

    fn server(&self, py: Python<'_>) -> PyResult<&ServerDescription> {
        self.check_process(py)?;
        let server = self.handle.connection().server();
        server.ok_or_else(|| phase(py, WrongPhaseError::NotConnected))
    }

    fn opening(
        &self,
        py: Python<'_>,
    ) -> PyResult<impl Future<Output = Outcome> + Send + 'static + use<>> {
        self.check_process(py)?;
        let opening = self.handle.open();
        opening.map_err(|error| errors::failure(py, &error.failure()))
    }

    fn command(
        &self,
        py: Python<'_>,
        command: ClientCommand,
        options: Option<RequestOptionArguments>,
    ) -> PyResult<impl Future<Output = Outcome> + Send + 'static + use<>> {
        let client = self.client(py)?;
        let (options, _): (RequestOptions, _) = request_options(py, &self.handle, options)?;
        Ok(command.run(client, options))
    }

    /// Returns the action for the I/O thread that runs an operation, and the number for `cancel`.
    fn task(
        &self,
        reply: RequestWaiter,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) -> (u64, IoAction) {
        let connection = self.handle.connection();
        let number = connection.next_number();
        let task = connection
            .requests_in_flight()
            .task(Some(number), reply, work);
        (number, IoAction::Run(Box::new(task)))
    }

    /// Runs an operation for an event loop. Returns its number.
    ///
    /// # Errors
    ///
    /// As for [`LoopQueue::send`]. The operation and the future are cancelled: the caller does not know the number.
    fn begin(
        &self,
        (loop_queue, event_loop, future): LoopRequest<'_, '_>,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) -> PyResult<u64> {
        let py = event_loop.py();
        let unawaited = future.clone_ref(py);
        let reply = RequestWaiter::Future(loop_queue.get().event_queue().clone(), future);
        let (number, action) = self.task(reply, work);
        if let Err(error) = LoopQueue::send(loop_queue, event_loop, &self.runtime, action) {
            self.cancel_number(number);
            unawaited.call_method0(py, intern!(py, "cancel"))?;
            return Err(error);
        }
        Ok(number)
    }

    /// Runs an operation for the calling thread, which waits for its outcome.
    fn wait_for<'py>(
        &self,
        py: Python<'py>,
        waiter: &Arc<ThreadWaiter>,
        listener: Option<&Py<PyAny>>,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (number, action) = self.task(RequestWaiter::Thread(waiter.clone()), work);
        self.runtime.io_queue().push(action);
        let outcome = waiter.wait(py, listener);
        let outcome = outcome.inspect_err(|_| self.cancel_number(number))?;
        into_python(py, outcome)
    }

    fn cancel_number(&self, number: u64) {
        let running = self.handle.connection().requests_in_flight().clone();
        let cancelling = IoAction::Run(Box::new(move || {
            running.cancel(number);
        }));
        self.runtime.io_queue().push(cancelling);
    }

    /// Closing is not cancelled with the task that waits for it.
    fn closing(&self, reply: RequestWaiter) -> IoAction {
        let closing = self.handle.closing();
        let running = self.handle.connection().requests_in_flight();
        IoAction::Run(Box::new(running.task(None, reply, async move {
            closing.await;
            Outcome::Done
        })))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !self.runtime.is_foreign() {
            // SAFETY: neither is used afterwards.
            unsafe {
                ManuallyDrop::drop(&mut self.handle);
                ManuallyDrop::drop(&mut self.runtime);
            }
        }
    }
}

fn command_of(py: Python<'_>, method: &str, argument: Option<String>) -> PyResult<ClientCommand> {
    let operation = ClientCommand::read(method, argument.unwrap_or_default());
    operation.map_err(|error| errors::core(py, &error))
}

fn bytes<'py>(py: Python<'py>, json: &Raw) -> Bound<'py, PyBytes> {
    PyBytes::new(py, json.as_bytes())
}
