//! One client: what is asked of it is done on the I/O thread, and whoever asked is told the end.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use mcpline::client::{Address, Client as CoreClient, ClientBuilder, ClientError, RequestOptions};
use mcpline::foreign::Completion;
use mcpline::foreign::channel::ChannelAddress;
use mcpline::foreign::client::{Backlog, Operation, listener_backlog};
use mcpline::foreign::options::{ClientOptions, HostOptions, HttpClientOptions, ProgramOptions};
use mcpline::protocol::client::CallTimeouts;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokio::task::AbortHandle;

use crate::errors;
use crate::event_loop::lock;
use crate::outcome::trusted;
use crate::runtime::Runtime;
use crate::server::read;

use super::channel::Opener;
use super::failure::Given;
use super::host::{Host, answerer};
use super::options::{self, GivenOptions, log_level_of, request_options};
use super::port::{Event, Outlet, Port};
use super::waiting::Waiter;

/// A client. Made unconnected; `open` connects it.
#[pyclass(frozen, module = "mcpline._native", weakref)]
pub(crate) struct Client {
    shared: Arc<Shared>,
    runtime: Arc<Runtime>,
    timeouts: CallTimeouts,
}

/// What the client and its tasks share. With the last of them the connection ends.
struct Shared {
    /// How it is to be opened, until it is.
    plan: Mutex<Option<(ClientBuilder, Address)>>,
    core: OnceLock<CoreClient>,
    /// What waits for its listeners.
    backlog: Backlog,
    /// What is being done, to be given up.
    running: Mutex<HashMap<u64, AbortHandle>>,
}

/// Who is told the end of something. Told by being dropped, too: what was given up has failed.
struct Reply(Option<Asker>);

enum Asker {
    Future(Arc<Outlet>, Py<PyAny>),
    Thread(Arc<Waiter>),
}

impl Reply {
    fn give(mut self, given: Given) {
        self.tell(given);
    }

    fn tell(&mut self, given: Given) {
        match self.0.take() {
            Some(Asker::Future(outlet, future)) => outlet.post(Event::Resolve(future, given)),
            Some(Asker::Thread(waiter)) => waiter.give(given),
            None => {}
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.tell(Given::Failed(Box::new(ClientError::Closed), "".into()));
    }
}

async fn done(deed: Operation, core: CoreClient, options: RequestOptions) -> Given {
    let method = deed.method();
    Given::of_deed(deed.perform(&core, &options).await, method)
}

/// What Python wants done.
fn deed_of(py: Python<'_>, verb: &str, argument: Option<String>) -> PyResult<Operation> {
    let argument = argument.unwrap_or_default();
    Ok(match verb {
        "ping" => Operation::Ping,
        "set_log_level" => Operation::SetLogLevel(log_level_of(py, &argument)?),
        "subscribe" => Operation::Subscribe(argument),
        "unsubscribe" => Operation::Unsubscribe(argument),
        "roots_changed" => Operation::RootsChanged,
        other => return Err(errors::defect(&format!("a client can't {other}"))),
    })
}

#[pymethods]
impl Client {
    /// A client of a URL.
    #[staticmethod]
    fn of_url(
        py: Python<'_>,
        port: &Port,
        host: Py<PyAny>,
        offer: &[u8],
        settings: &[u8],
        url: String,
        http: &[u8],
    ) -> PyResult<Self> {
        let http: HttpClientOptions = read(py, "the settings of HTTP", http)?;
        let host = Host::new(host);
        let answerers = |method| answerer(port.outlet(), &host, method);
        let address = http.address(url, Some(&answerers));
        let address = address.map_err(|error| errors::core(py, &error))?;
        let runtime = super::shared_runtime(py)?;
        let offer: HostOptions = read(py, "the handlers", offer)?;
        Self::make(
            py,
            port,
            host,
            offer,
            settings,
            address,
            runtime,
            listener_backlog(),
        )
    }

    /// A client of a program, which it starts.
    #[staticmethod]
    fn of_program(
        py: Python<'_>,
        port: &Port,
        host: Py<PyAny>,
        offer: &[u8],
        settings: &[u8],
        program: &[u8],
    ) -> PyResult<Self> {
        let program: ProgramOptions = read(py, "the program", program)?;
        let host = Host::new(host);
        let offer: HostOptions = read(py, "the handlers", offer)?;
        let backlog = listener_backlog();
        let stderr = offer
            .stderr
            .then(|| (port.outlet().clone(), host.clone(), backlog.clone()));
        let address = options::command(py, program, stderr)?;
        let runtime = super::shared_runtime(py)?;
        Self::make(py, port, host, offer, settings, address, runtime, backlog)
    }

    /// A client of a Unix socket.
    #[staticmethod]
    fn of_socket(
        py: Python<'_>,
        port: &Port,
        host: Py<PyAny>,
        offer: &[u8],
        settings: &[u8],
        path: std::path::PathBuf,
    ) -> PyResult<Self> {
        let runtime = super::shared_runtime(py)?;
        let offer: HostOptions = read(py, "the handlers", offer)?;
        let address = Address::Socket(path);
        Self::make(
            py,
            port,
            Host::new(host),
            offer,
            settings,
            address,
            runtime,
            listener_backlog(),
        )
    }

    /// A client over channels that the host opens: by `channels`, which must not wait for what drains `port` unless it is the
    /// same.
    #[staticmethod]
    fn of_channel(
        py: Python<'_>,
        port: &Port,
        channels: &Port,
        host: Py<PyAny>,
        offer: &[u8],
        settings: &[u8],
    ) -> PyResult<Self> {
        let runtime = super::shared_runtime(py)?;
        let offer: HostOptions = read(py, "the handlers", offer)?;
        let host = Host::new(host);
        let opener = Opener {
            outlet: channels.outlet().clone(),
            host: host.clone(),
            runtime: runtime.handle().clone(),
        };
        let address = ChannelAddress::new(Arc::new(opener)).into();
        Self::make(
            py,
            port,
            host,
            offer,
            settings,
            address,
            runtime,
            listener_backlog(),
        )
    }

    /// A client of a server in this process. Its I/O is done where the server's is.
    #[staticmethod]
    fn of_server(
        py: Python<'_>,
        port: &Port,
        host: Py<PyAny>,
        offer: &[u8],
        settings: &[u8],
        server: &crate::server::Server,
    ) -> PyResult<Self> {
        let runtime = server.start_runtime(py)?;
        let offer: HostOptions = read(py, "the handlers", offer)?;
        let address = Address::Server(server.core().clone());
        Self::make(
            py,
            port,
            Host::new(host),
            offer,
            settings,
            address,
            runtime,
            listener_backlog(),
        )
    }

    /// Connects. `future` is told when it is; returns the number of the attempt.
    fn open_into(
        &self,
        py: Python<'_>,
        port: &Bound<'_, Port>,
        event_loop: &Bound<'_, PyAny>,
        future: Py<PyAny>,
    ) -> PyResult<u64> {
        let reply = Reply(Some(Asker::Future(port.get().outlet().clone(), future)));
        let (number, completion) = self.opening(py, reply)?;
        Port::send(port, event_loop, &self.runtime, completion)?;
        Ok(number)
    }

    /// Connects, and waits until it is.
    fn open(&self, py: Python<'_>) -> PyResult<()> {
        let waiter = Waiter::new(py)?;
        let (number, completion) = self.opening(py, of_thread(&waiter))?;
        self.wait(py, &waiter, number, completion, None).map(drop)
    }

    /// Sends a request; `future` is told its end. Returns its number, to cancel it by.
    #[expect(clippy::too_many_arguments, reason = "called in one place")]
    fn request_into(
        &self,
        py: Python<'_>,
        port: &Bound<'_, Port>,
        event_loop: &Bound<'_, PyAny>,
        future: Py<PyAny>,
        method: &str,
        params: Option<&Bound<'_, PyBytes>>,
        options: Option<GivenOptions>,
    ) -> PyResult<u64> {
        let core = self.core(py)?;
        let outlet = port.get().outlet();
        let options = match options {
            None => RequestOptions::new(),
            Some(given) => {
                let (mut options, listener) = request_options(py, self.timeouts, given)?;
                if let Some(listener) = listener {
                    let (outlet, listener) = (outlet.clone(), Arc::new(listener));
                    let backlog = self.shared.backlog.clone();
                    options.progress = Some(Arc::new(move |progress| {
                        let bytes = progress.message.as_ref().map_or(0, String::len);
                        if let Some(place) = backlog.admit(bytes) {
                            outlet.post(Event::Progress(listener.clone(), progress, place));
                        }
                    }));
                }
                options
            }
        };
        let reply = Reply(Some(Asker::Future(outlet.clone(), future)));
        let request = request(core, method, params, options);
        let (number, completion) = self.task(reply, request);
        Port::send(port, event_loop, &self.runtime, completion)?;
        Ok(number)
    }

    /// Sends a request and waits for its end.
    fn request<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        params: Option<&Bound<'py, PyBytes>>,
        options: Option<GivenOptions>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let core = self.core(py)?;
        let waiter = Waiter::new(py)?;
        let (options, listener) = match options {
            None => (RequestOptions::new(), None),
            Some(given) => {
                let (mut options, listener) = request_options(py, self.timeouts, given)?;
                if listener.is_some() {
                    let waiter = waiter.clone();
                    let backlog = self.shared.backlog.clone();
                    options.progress = Some(Arc::new(move |progress| {
                        let bytes = progress.message.as_ref().map_or(0, String::len);
                        if let Some(place) = backlog.admit(bytes) {
                            waiter.progress(progress, place);
                        }
                    }));
                }
                (options, listener)
            }
        };
        let request = request(core, method, params, options);
        let (number, completion) = self.task(of_thread(&waiter), request);
        let given = self.wait(py, &waiter, number, completion, listener.as_ref())?;
        given.into_python(py)
    }

    /// Does something that has no result; `future` is told when it is done. Returns its number.
    #[expect(clippy::too_many_arguments, reason = "called in one place")]
    fn do_into(
        &self,
        py: Python<'_>,
        port: &Bound<'_, Port>,
        event_loop: &Bound<'_, PyAny>,
        future: Py<PyAny>,
        verb: &str,
        argument: Option<String>,
        options: Option<GivenOptions>,
    ) -> PyResult<u64> {
        let deed = deed_of(py, verb, argument)?;
        let options = self.options_of(py, options)?;
        self.deed_into(py, port, event_loop, future, deed, options)
    }

    /// Does something that has no result, and waits until it is done.
    #[pyo3(name = "do")]
    fn do_now(
        &self,
        py: Python<'_>,
        verb: &str,
        argument: Option<String>,
        options: Option<GivenOptions>,
    ) -> PyResult<()> {
        let deed = deed_of(py, verb, argument)?;
        let options = self.options_of(py, options)?;
        self.deed(py, deed, options)
    }

    /// Sends a notification; `future` is told when it is on its way. Returns its number.
    fn notify_into(
        &self,
        py: Python<'_>,
        port: &Bound<'_, Port>,
        event_loop: &Bound<'_, PyAny>,
        future: Py<PyAny>,
        method: String,
        params: Option<&Bound<'_, PyBytes>>,
    ) -> PyResult<u64> {
        let deed = Operation::Notify(method, params.map(trusted));
        let options = RequestOptions::new();
        self.deed_into(py, port, event_loop, future, deed, options)
    }

    /// Sends a notification, and waits until it is on its way.
    fn notify(
        &self,
        py: Python<'_>,
        method: String,
        params: Option<&Bound<'_, PyBytes>>,
    ) -> PyResult<()> {
        let deed = Operation::Notify(method, params.map(trusted));
        self.deed(py, deed, RequestOptions::new())
    }

    /// Gives up what has this number: the server hears of it.
    fn cancel(&self, port: &Port, number: u64) {
        // In order: what is cancelled may not have been handed over yet.
        port.hand_over();
        self.give_up(number);
    }

    /// Ends the connection; `future` is told when nothing of it is left.
    fn close_into(
        &self,
        port: &Bound<'_, Port>,
        event_loop: &Bound<'_, PyAny>,
        future: Py<PyAny>,
    ) -> PyResult<()> {
        let reply = Reply(Some(Asker::Future(port.get().outlet().clone(), future)));
        Port::send(port, event_loop, &self.runtime, self.closing(reply))
    }

    /// Ends the connection, and waits until nothing of it is left.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.runtime.is_foreign() {
            return Ok(());
        }
        let waiter = Waiter::new(py)?;
        let closing = self.closing(of_thread(&waiter));
        self.runtime.completions().push(closing);
        waiter.wait(py, None).map(drop)
    }

    /// Ends these connections at the end of the interpreter, which waits no longer than `patience` seconds.
    #[staticmethod]
    fn close_all(py: Python<'_>, clients: Vec<PyRef<'_, Client>>, patience: f64) {
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut open = 0;
        for client in clients.iter().filter(|client| !client.runtime.is_foreign()) {
            let (shared, sender) = (client.shared.clone(), sender.clone());
            client
                .runtime
                .completions()
                .push(Completion::Run(Box::new(move || {
                    tokio::spawn(async move {
                        shared.close().await;
                        // Nobody waits any more if it took too long.
                        let _ = sender.send(());
                    });
                })));
            open += 1;
        }
        let patience = std::time::Duration::try_from_secs_f64(patience).unwrap_or_default();
        py.detach(move || {
            let until = std::time::Instant::now() + patience;
            for _ in 0..open {
                let left = until.saturating_duration_since(std::time::Instant::now());
                if receiver.recv_timeout(left).is_err() {
                    return;
                }
            }
        });
    }

    /// Whether it was connected once.
    #[getter]
    fn opened(&self) -> bool {
        self.shared.core.get().is_some()
    }

    #[getter]
    fn revision(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.core(py)?.revision().as_str())
    }

    /// `Implementation` of the server, as JSON.
    #[getter]
    fn server_info<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let core = self.core(py)?;
        core.server_info().map(|info| json(py, info)).transpose()
    }

    /// `ServerCapabilities`, as JSON.
    #[getter]
    fn server_capabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        json(py, self.core(py)?.server_capabilities())
    }

    #[getter]
    fn instructions(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.core(py)?.instructions().map(str::to_owned))
    }
}

impl Client {
    #[expect(clippy::too_many_arguments, reason = "what a client is made of")]
    fn make(
        py: Python<'_>,
        port: &Port,
        host: Arc<Host>,
        offer: HostOptions,
        settings: &[u8],
        address: Address,
        runtime: Arc<Runtime>,
        backlog: Backlog,
    ) -> PyResult<Self> {
        let settings: ClientOptions = read(py, "the settings", settings)?;
        let settings = settings.settings();
        let settings = settings.map_err(|error| errors::core(py, &error))?;
        let timeouts = settings.timeouts;
        let builder = options::builder(py, offer, settings, port.outlet(), &host, &backlog)?;
        let shared = Shared {
            plan: Mutex::new(Some((builder, address))),
            backlog,
            core: OnceLock::new(),
            running: Mutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            runtime,
            timeouts,
        })
    }

    fn core(&self, py: Python<'_>) -> PyResult<CoreClient> {
        if self.runtime.is_foreign() {
            return Err(errors::misuse(
                py,
                "the client was connected in the process that this one was forked from",
            ));
        }
        let core = self.shared.core.get();
        core.cloned()
            .ok_or_else(|| errors::misuse(py, "the client is not connected: await or enter it"))
    }

    fn opening(&self, py: Python<'_>, reply: Reply) -> PyResult<(u64, Completion)> {
        if self.runtime.is_foreign() {
            return Err(errors::misuse(py, "the client was made in another process"));
        }
        let plan = lock(&self.shared.plan).take();
        let Some((builder, address)) = plan else {
            return Err(errors::misuse(py, "the client was connected before"));
        };
        let shared = self.shared.clone();
        Ok(self.task(reply, async move {
            match builder.connect(address).await {
                Ok(core) => {
                    // It is opened once.
                    let _ = shared.core.set(core);
                    Given::Done
                }
                Err(error) => Given::Failed(Box::new(error), "connect".into()),
            }
        }))
    }

    /// What the I/O thread has to do to run this, and the number to give it up by.
    fn task(
        &self,
        reply: Reply,
        work: impl Future<Output = Given> + Send + 'static,
    ) -> (u64, Completion) {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let shared = self.shared.clone();
        let completion = Completion::Run(Box::new(move || {
            let ended = Ended(shared.clone(), number);
            // It can't end before it is entered: this thread runs it.
            let task = tokio::spawn(async move {
                let _ended = ended;
                let given = work.await;
                reply.give(given);
            });
            lock(&shared.running).insert(number, task.abort_handle());
        }));
        (number, completion)
    }

    fn give_up(&self, number: u64) {
        let shared = self.shared.clone();
        self.runtime
            .completions()
            .push(Completion::Run(Box::new(move || {
                let task = lock(&shared.running).remove(&number);
                if let Some(task) = task {
                    task.abort();
                }
            })));
    }

    fn wait(
        &self,
        py: Python<'_>,
        waiter: &Waiter,
        number: u64,
        completion: Completion,
        listener: Option<&Py<PyAny>>,
    ) -> PyResult<Given> {
        self.runtime.completions().push(completion);
        let given = match waiter.wait(py, listener) {
            Ok(given) => given,
            Err(error) => {
                self.give_up(number);
                return Err(error);
            }
        };
        match given {
            Given::Failed(..) => Err(given.into_python(py).err().unwrap_or_else(|| {
                // A failure is always an exception.
                errors::defect("a failure without an exception")
            })),
            given => Ok(given),
        }
    }

    /// The options of what reports no progress.
    fn options_of(&self, py: Python<'_>, given: Option<GivenOptions>) -> PyResult<RequestOptions> {
        match given {
            None => Ok(RequestOptions::new()),
            Some(given) => Ok(request_options(py, self.timeouts, given)?.0),
        }
    }

    fn deed_into(
        &self,
        py: Python<'_>,
        port: &Bound<'_, Port>,
        event_loop: &Bound<'_, PyAny>,
        future: Py<PyAny>,
        deed: Operation,
        options: RequestOptions,
    ) -> PyResult<u64> {
        let core = self.core(py)?;
        let reply = Reply(Some(Asker::Future(port.get().outlet().clone(), future)));
        let (number, completion) = self.task(reply, done(deed, core, options));
        Port::send(port, event_loop, &self.runtime, completion)?;
        Ok(number)
    }

    fn deed(&self, py: Python<'_>, deed: Operation, options: RequestOptions) -> PyResult<()> {
        let core = self.core(py)?;
        let waiter = Waiter::new(py)?;
        let (number, completion) = self.task(of_thread(&waiter), done(deed, core, options));
        self.wait(py, &waiter, number, completion, None).map(drop)
    }

    /// Not given up by whoever waits for it: a connection that is closed, is.
    fn closing(&self, reply: Reply) -> Completion {
        let shared = self.shared.clone();
        Completion::Run(Box::new(move || {
            tokio::spawn(async move {
                shared.close().await;
                reply.give(Given::Done);
            });
        }))
    }
}

impl Shared {
    async fn close(&self) {
        // If it isn't open, it is being opened, or never will be.
        lock(&self.plan).take();
        match self.core.get() {
            Some(core) => core.close().await,
            None => {
                let tasks = std::mem::take(&mut *lock(&self.running));
                for task in tasks.values() {
                    task.abort();
                }
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.runtime.is_foreign() {
            // Its connections and children are the parent's.
            std::mem::forget(self.shared.clone());
            std::mem::forget(self.runtime.clone());
        }
    }
}

/// Takes something off the list of what is being done, however it ended.
struct Ended(Arc<Shared>, u64);

impl Drop for Ended {
    fn drop(&mut self) {
        lock(&self.0.running).remove(&self.1);
    }
}

fn of_thread(waiter: &Arc<Waiter>) -> Reply {
    Reply(Some(Asker::Thread(waiter.clone())))
}

fn request(
    core: CoreClient,
    method: &str,
    params: Option<&Bound<'_, PyBytes>>,
    options: RequestOptions,
) -> impl Future<Output = Given> + Send + 'static {
    let method = method.to_owned();
    let params = params.map(trusted);
    async move {
        let result = core.request(&method, params.as_ref(), &options).await;
        Given::of_result(result, method)
    }
}

fn json<'py>(py: Python<'py>, value: &impl serde::Serialize) -> PyResult<Bound<'py, PyBytes>> {
    match serde_json::to_vec(value) {
        Ok(json) => Ok(PyBytes::new(py, &json)),
        Err(error) => Err(errors::defect(&error.to_string())),
    }
}
