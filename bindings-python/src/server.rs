//! The server object of Python: the core's server, and the executors of its calls.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use mcpline::foreign::channel::ServedChannel;
use mcpline::foreign::options::{
    self, CallerOptions, FeatureOptions, OpenApiOptions, ServerOptions, TlsOptions,
    UnixServingOptions,
};
use mcpline::foreign::{
    self, Feature, FeatureKey, ForeignSharing, MAX_RUNNING_FUNCTIONS, OpenApiFunctions,
    OpenApiImport, ServingRole, SharingCheck, SharingFunctions, SharingGuard, WorkerProgram,
};
use mcpline::protocol::vocabulary::{Implementation, JsonObject};
use mcpline::server::{CallKind, Completer};
use mcpline::transport::{self, Stop};
use mcpline::{Call as CoreCall, Handler};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pyo3::{PyTraverseError, PyVisit};
use serde_json::Value;

use crate::client::Channel;
use crate::context::WaitMode;
use crate::detached_drop::DetachedDrop;
use crate::errors;
use crate::event_loop::{Hub, lock};
use crate::http_app::http_options;
use crate::plan::{Plan, SharedPlan};
use crate::runtime::{Runtime, RuntimeSlot, keep_thread_state};
use crate::serving::{Description, Serving};
use crate::session_states::{SessionNumber, SessionStates};
use crate::verifier::Verifier;
use crate::workers::{self, Pool};

/// A server and its handlers.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Server {
    core: DetachedDrop<mcpline::Server>,
    hub: Arc<Hub>,
    pool: Arc<Pool>,
    sharing_pool: Arc<Pool>,
    runtime: RuntimeSlot,
    /// The plans that the registry refers to, visible to the garbage collector.
    plans: Mutex<HashMap<FeatureKey, Arc<SharedPlan>>>,
    /// The state that processes share, if Python implements it.
    sharing: Option<ForeignSharing>,
    /// Removed plans that a snapshot of this server may still have. This server is their owner for the garbage collector,
    /// because every server with a snapshot refers to it.
    removed_plans: Mutex<Vec<Arc<SharedPlan>>>,
    /// Whether there is a snapshot of this server, or of one that it is mounted in.
    has_snapshots: AtomicBool,
    /// The servers that are mounted in this one, once for each time.
    mounted: Mutex<Vec<Py<Server>>>,
    /// The state of the sessions of clients.
    session_states: Arc<SessionStates>,
    stops: Mutex<Vec<Stop>>,
}

impl Server {
    pub(crate) fn core(&self) -> &mcpline::Server {
        &self.core
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The threads for functions of the program that implement shared state, if there are any.
    pub(crate) fn sharing_pool(&self) -> Option<&Arc<Pool>> {
        self.sharing.as_ref().map(|_| &self.sharing_pool)
    }

    /// Announces that shared state of the program is used soon, for a transport that is about to be served.
    pub(crate) fn prepare_sharing(&self) -> Option<SharingGuard> {
        self.sharing.as_ref().map(ForeignSharing::prepare)
    }

    /// Begins to use shared state of the program, for a transport that is served. Handlers can run.
    pub(crate) fn enter_sharing(&self, runtime: &Runtime) -> Option<SharingGuard> {
        let sharing = self.sharing.as_ref()?;
        Some(sharing.enter(runtime.handle()))
    }

    /// Returns the I/O thread, started if there is none.
    pub(crate) fn start_runtime(&self, py: Python<'_>) -> PyResult<Arc<Runtime>> {
        let runtime = self.runtime.get(py)?;
        self.hub.set_io_queue(Some(runtime.io_queue().clone()));
        for pool in [&self.pool, &self.sharing_pool] {
            pool.attach(runtime.handle().clone(), runtime.io_queue().clone());
        }
        Ok(runtime)
    }
}

/// A program, its arguments, the directory in which it starts, how many processes of it serve, and how many seconds each may take to
/// start.
type WorkerArguments = (
    PathBuf,
    Vec<String>,
    Option<PathBuf>,
    NonZeroUsize,
    Option<f64>,
);

/// What the handlers of a server's calls run on.
struct Executors {
    hub: Arc<Hub>,
    pool: Arc<Pool>,
    sharing_pool: Arc<Pool>,
    session_states: Weak<SessionStates>,
}

/// Returns the dictionary that lives as long as the session of a call's client.
pub(crate) fn session_state<'py>(
    py: Python<'py>,
    context: &mcpline::Context,
) -> PyResult<Bound<'py, PyDict>> {
    let session = foreign::session_state::<SessionNumber>(context);
    let session = session.map_err(|failure| errors::failure(py, &failure))?;
    let executors = foreign::executors_of_context::<Executors>(context);
    let states = executors.and_then(|executors| executors.session_states.upgrade());
    let states = states.ok_or_else(|| errors::closed(py, "the server is gone"))?;
    Ok(states.dictionary(py, &session))
}

fn handler(plan: &Plan) -> Arc<dyn Handler> {
    let planned = plan.planned.clone();
    match (planned.is_async, planned.inline) {
        (false, true) => Arc::new(InlineHandler(planned)),
        _ => Arc::new(QueuedHandler(planned)),
    }
}

/// Runs an async handler on the event loop, and a sync one on the threads, of the server that serves its call: that of the
/// handler, or one that it is mounted in.
struct QueuedHandler(Arc<SharedPlan>);

impl Handler for QueuedHandler {
    fn call(&self, call: CoreCall) {
        let planned = self.0.clone();
        let Some(executors) = foreign::executors_of::<Executors>(&call) else {
            // Every server of this binding has executors, and others cannot be mounted.
            drop(call);
            return;
        };
        if planned.is_async {
            let calls = executors.hub.calls().clone();
            calls.push(planned, call);
        } else {
            let pool = match planned.kind {
                CallKind::Sharing => &executors.sharing_pool,
                _ => &executors.pool,
            };
            pool.clone().run_call(planned, call);
        }
    }
}

/// Runs a sync handler where its call arrives: on the I/O thread.
struct InlineHandler(Arc<SharedPlan>);

impl Handler for InlineHandler {
    fn call(&self, call: CoreCall) {
        keep_thread_state();
        let outcome = Python::attach(|py| {
            let value = self
                .0
                .lock_objects()
                .and_then(|objects| self.0.invoke(py, &objects, &call, &WaitMode::Inline));
            match value {
                Ok(value) => self.0.outcome(py, || call.name(), &value),
                Err(error) => Err(self.0.failure(py, &error)),
            }
        });
        call.reply(outcome);
    }
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (info, instructions, settings, worker_threads, sharing))]
    fn new(
        py: Python<'_>,
        info: &[u8],
        instructions: Option<String>,
        settings: Option<&[u8]>,
        worker_threads: Option<NonZeroUsize>,
        sharing: Option<(Vec<PyRef<'_, Plan>>, Option<f64>)>,
    ) -> PyResult<Self> {
        // The thread that imports it first is its main thread, and the log thread imports it with `logging`.
        py.import("threading")?;
        let info: Implementation = read(py, "the server's description", info)?;
        let options: ServerOptions = match settings {
            Some(settings) => read(py, "the settings", settings)?,
            None => ServerOptions::default(),
        };
        let mut plans = HashMap::new();
        let sharing = match sharing {
            None => None,
            Some((functions, timeout)) => {
                for function in &functions {
                    let name = plans.len().to_string();
                    let key = FeatureKey::new(function.planned.kind, name);
                    plans.insert(key, function.planned.clone());
                }
                Some(foreign_sharing(py, &functions, timeout)?)
            }
        };
        let builder = options.builder(info, instructions, mcpline_sharing::share);
        let core = builder.and_then(|builder| match &sharing {
            Some(sharing) => sharing.build_server(builder),
            None => builder.build(),
        });
        let core = core.map_err(|error| errors::core(py, &error))?;
        crate::log::record_traffic(&core);
        let (hub, pool) = (Hub::new(), workers::new_pool(worker_threads));
        let sharing_pool = workers::new_pool(NonZeroUsize::new(MAX_RUNNING_FUNCTIONS));
        let session_states = Arc::<SessionStates>::default();
        let executors = Executors {
            hub: hub.clone(),
            pool: pool.clone(),
            sharing_pool: sharing_pool.clone(),
            session_states: Arc::downgrade(&session_states),
        };
        foreign::set_executors(&core, Arc::new(executors));
        Ok(Self {
            core: DetachedDrop::new(core),
            hub,
            pool,
            sharing_pool,
            runtime: RuntimeSlot::default(),
            plans: Mutex::new(plans),
            sharing,
            removed_plans: Mutex::default(),
            has_snapshots: AtomicBool::new(false),
            mounted: Mutex::default(),
            session_states,
            stops: Mutex::default(),
        })
    }

    /// Adds a feature of the plan's kind: see [`Feature::read`]. `definition` and `options`, which are
    /// [`FeatureOptions`], are JSON.
    #[pyo3(signature = (definition, options, plan))]
    fn add_feature(
        &self,
        py: Python<'_>,
        definition: &[u8],
        options: Option<&[u8]>,
        plan: &Plan,
    ) -> PyResult<()> {
        let options: FeatureOptions = match options {
            Some(options) => read(py, "the options", options)?,
            None => FeatureOptions::default(),
        };
        let feature = Feature::read(plan.planned.kind, definition, options)
            .map_err(|error| errors::core(py, &error))?;
        let key = feature.key();
        let handler = handler(plan);
        py.detach(|| feature.add(&self.core, handler))
            .map_err(|error| errors::core(py, &error))?;
        // Dropped after the lock is released: objects of a handler may use the server.
        let replaced = lock(&self.plans).insert(key, plan.planned.clone());
        drop(replaced);
        Ok(())
    }

    /// Adds the operations of an HTTP API: see [`OpenApiImport`]. `select` gets the operations as JSON, and returns a word for
    /// each of them. `client` sends the requests, with headers of these names; `credentials` return those of security schemes.
    #[pyo3(signature = (document, options, select, client, header_names, credentials))]
    #[expect(
        clippy::too_many_arguments,
        reason = "called in one place, by keywords"
    )]
    fn add_openapi(
        &self,
        py: Python<'_>,
        document: &[u8],
        options: &[u8],
        select: &Bound<'_, PyAny>,
        client: Option<PyRef<'_, Plan>>,
        header_names: Vec<String>,
        credentials: Vec<(String, PyRef<'_, Plan>)>,
    ) -> PyResult<Vec<String>> {
        let options: OpenApiOptions = read(py, "the options", options)?;
        let credential =
            |(scheme, plan): &(String, PyRef<'_, Plan>)| (scheme.clone(), handler(plan));
        let functions = OpenApiFunctions {
            http_client: client.as_deref().map(handler),
            header_names,
            credentials: credentials.iter().map(credential).collect(),
        };
        let api = py
            .detach(|| OpenApiImport::read(document, options, functions))
            .map_err(|error| errors::core(py, &error))?;
        let operations = api.operations();
        let selected: Vec<String> = select.call1((operations.as_bytes(),))?.extract()?;
        let added = py
            .detach(|| api.add(&self.core, &selected))
            .map_err(|error| errors::core(py, &error))?;
        let plans = credentials.iter().map(|(_, plan)| plan);
        for plan in plans.chain(&client) {
            self.keep_function(plan.planned.clone());
        }
        Ok(added)
    }

    /// Adds a middleware that the library provides: see [`foreign::add_built_in_middleware`].
    fn add_built_in_middleware(
        &self,
        py: Python<'_>,
        definition: &[u8],
        scope: &[u8],
    ) -> PyResult<()> {
        py.detach(|| foreign::add_built_in_middleware(&self.core, definition, Some(scope)))
            .map_err(|error| errors::core(py, &error))
    }

    /// Removes a feature: see [`FeatureKey`]. Returns whether it was registered.
    fn remove_feature(&self, py: Python<'_>, kind: &str, name: &str) -> PyResult<bool> {
        let kind = foreign::call_kind(kind).map_err(|error| errors::core(py, &error))?;
        let key = FeatureKey::new(kind, name);
        let was_registered = py.detach(|| key.remove(&self.core));
        // With a template goes the function that lists its resources.
        let list =
            (kind == CallKind::Resource).then(|| FeatureKey::new(CallKind::ResourceList, name));
        let mut removed = Vec::new();
        for key in [Some(key), list].into_iter().flatten() {
            removed.extend(lock(&self.plans).remove(&key));
        }
        if self.has_snapshots.load(Ordering::Relaxed) {
            lock(&self.removed_plans).extend(removed);
            self.release_plans(py);
        }
        Ok(was_registered)
    }

    /// Changes a definition: see [`FeatureKey::update`].
    fn update_feature(
        &self,
        py: Python<'_>,
        kind: &str,
        name: &str,
        changes: &[u8],
    ) -> PyResult<()> {
        let kind = foreign::call_kind(kind).map_err(|error| errors::core(py, &error))?;
        let key = FeatureKey::new(kind, name);
        py.detach(|| key.update(&self.core, changes))
            .map_err(|error| errors::core(py, &error))?;
        let changed: JsonObject = read(py, "the changes", changes)?;
        let new_name = match kind {
            CallKind::Resource => changed.get("uri").or(changed.get("uriTemplate")),
            _ => changed.get("name"),
        };
        if let Some(new_name) = new_name.and_then(Value::as_str) {
            self.rename_plan(&key, FeatureKey::new(kind, new_name));
            if kind == CallKind::Resource {
                let list = |name| FeatureKey::new(CallKind::ResourceList, name);
                self.rename_plan(&list(name), list(new_name));
            }
        }
        Ok(())
    }

    /// Changes a tool: see [`foreign::transform_tool`].
    fn transform_tool(&self, py: Python<'_>, name: &str, transform: &[u8]) -> PyResult<()> {
        let new_name = py
            .detach(|| foreign::transform_tool(&self.core, name, transform))
            .map_err(|error| errors::core(py, &error))?;
        if let Some(new_name) = new_name {
            let kind = CallKind::Tool;
            self.rename_plan(
                &FeatureKey::new(kind, name),
                FeatureKey::new(kind, new_name),
            );
        }
        Ok(())
    }

    /// Enables or disables features: see [`foreign::feature_selection`]. Returns how many have changed.
    fn set_enabled(
        &self,
        py: Python<'_>,
        enabled: bool,
        kinds: Option<Vec<String>>,
        names: Option<Vec<String>>,
        tags: Option<Vec<String>>,
    ) -> PyResult<usize> {
        let selection = foreign::feature_selection(kinds, names, tags)
            .map_err(|error| errors::core(py, &error))?;
        Ok(py.detach(|| match enabled {
            true => self.core.enable(selection),
            false => self.core.disable(selection),
        }))
    }

    /// Mounts another server: see [`mcpline::Server::mount`]. The caller allows one change of mounts at a time.
    fn mount(
        &self,
        py: Python<'_>,
        server: &Bound<'_, Server>,
        prefix: Option<String>,
        snapshot: bool,
        tools: Option<&[u8]>,
    ) -> PyResult<()> {
        let options = foreign::mount_options(prefix, snapshot, tools)
            .map_err(|error| errors::core(py, &error))?;
        let mounted = server.get().core.clone();
        py.detach(|| self.core.mount(&mounted, options))
            .map_err(|error| errors::core(py, &error))?;
        if snapshot {
            server.get().keep_removed_plans();
        }
        lock(&self.mounted).push(server.clone().unbind());
        Ok(())
    }

    /// Unmounts a server. Returns whether it was mounted.
    fn unmount(&self, py: Python<'_>, server: &Bound<'_, Server>) -> bool {
        let mounted = server.get().core.clone();
        let was_mounted = py.detach(|| self.core.unmount(&mounted));
        server.get().release_plans(py);
        let unmounted: Vec<_> = lock(&self.mounted)
            .extract_if(.., |other| other.is(server))
            .collect();
        // Dropped after the lock is released.
        drop(unmounted);
        was_mounted
    }

    /// Notifies the client that the URL elicitation with this id is complete.
    fn notify_elicitation_complete(&self, py: Python<'_>, elicitation_id: &str) {
        py.detach(|| self.core.notify_elicitation_complete(elicitation_id));
    }

    /// Notifies the subscribers of a resource that it has changed.
    fn notify_resource_updated(&self, py: Python<'_>, uri: &str) {
        py.detach(|| self.core.notify_resource_updated(uri));
    }

    /// Notifies clients that the list of resources has changed.
    fn notify_resource_list_changed(&self, py: Python<'_>) {
        py.detach(|| self.core.notify_resource_list_changed());
    }

    /// Completes one argument from a list of candidates.
    fn add_candidates(
        &self,
        py: Python<'_>,
        reference: &str,
        argument: &str,
        candidates: Vec<String>,
    ) -> PyResult<()> {
        let completer = Completer::Candidates(candidates);
        py.detach(|| self.core.add_completer(reference, argument, completer))
            .map_err(|error| errors::core(py, &error))
    }

    /// Begins to serve stdio.
    fn start_stdio(&self, py: Python<'_>) -> PyResult<Serving> {
        let runtime = self.start_runtime(py)?;
        let stop = self.new_stop();
        let core = self.core().clone();
        let description = Description {
            startup_message: foreign::startup_message(&core, None),
            ..Description::default()
        };
        let stdio = transport::stdio().flush_before_end(crate::log::flush);
        Serving::start(py, runtime, self, stdio, stop, description)
    }

    /// Begins to check the shared state that Python implements. `other` is the same state as another process has it: its
    /// functions, and their timeout in seconds.
    fn start_sharing_check(
        &self,
        py: Python<'_>,
        other: (Vec<PyRef<'_, Plan>>, Option<f64>),
    ) -> PyResult<Serving> {
        let Some(sharing) = self.sharing.clone() else {
            return Err(errors::usage_error(
                py,
                "the server has no functions for shared state",
            ));
        };
        let (functions, timeout) = other;
        let other = foreign_sharing(py, &functions, timeout)?;
        {
            let mut plans = lock(&self.plans);
            for (number, function) in functions.iter().enumerate() {
                let name = format!("other {number}");
                let key = FeatureKey::new(function.planned.kind, name);
                plans.insert(key, function.planned.clone());
            }
        }
        let runtime = self.start_runtime(py)?;
        let stop = self.new_stop();
        let check = SharingCheck::new(sharing, other);
        Serving::start(py, runtime, self, check, stop, Description::default())
    }

    /// Begins to serve a Unix socket. `options` are [`UnixServingOptions`] as JSON. The socket listens when this returns.
    fn start_unix(&self, py: Python<'_>, path: PathBuf, options: &[u8]) -> PyResult<Serving> {
        let options: UnixServingOptions = read(py, "the options", options)?;
        let options = options
            .options()
            .map_err(|error| errors::core(py, &error))?;
        let runtime = self.start_runtime(py)?;
        // First: a thread may stop the server as soon as the socket listens.
        let stop = self.new_stop();
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        runtime.handle().spawn(async move {
            // The receiver waits below.
            let _ = sender.send(foreign::local_socket(path, options).await);
        });
        let bound = py
            .detach(move || receiver.recv())
            .map_err(|_| errors::closed(py, "the server has ended"))?;
        let bound = bound.map_err(|error| errors::core(py, &error))?;
        let core = self.core().clone();
        let description = Description {
            startup_message: foreign::startup_message(&core, Some(&bound.url())),
            ..Description::default()
        };
        Serving::start(py, runtime, self, bound, stop, description)
    }

    /// Begins to serve one client over an open channel, as `principal`: an `Authorized` as JSON.
    fn start_channel(
        &self,
        py: Python<'_>,
        channel: &Channel,
        principal: Option<&[u8]>,
    ) -> PyResult<Serving> {
        let principal: Option<CallerOptions> = principal
            .map(|principal| read(py, "the principal", principal))
            .transpose()?;
        let principal = principal.map(CallerOptions::authorized);
        let runtime = self.start_runtime(py)?;
        let transport = ServedChannel::new(channel.core().clone(), principal);
        let stop = self.new_stop();
        Serving::start(py, runtime, self, transport, stop, Description::default())
    }

    /// Begins to serve HTTP, with TLS if `tls`, which are [`TlsOptions`] as JSON, are given. The address is bound when this
    /// returns. Processes of `workers` serve in place of this one.
    #[pyo3(signature = (host, port, options, verify, tls, workers))]
    #[allow(clippy::too_many_arguments, reason = "called in one place")]
    fn start_http(
        &self,
        py: Python<'_>,
        host: &str,
        port: u16,
        options: &[u8],
        verify: Option<Py<PyAny>>,
        tls: Option<&[u8]>,
        workers: Option<WorkerArguments>,
    ) -> PyResult<Serving> {
        // First: a thread may stop the server while files are read and the port is opened.
        let stop = self.new_stop();
        let options = http_options(py, options, &Verifier::new(verify))?;
        let tls: Option<TlsOptions> = tls.map(|tls| read(py, "`tls`", tls)).transpose()?;
        // Files may be on a slow disk.
        let tls = py
            .detach(|| tls.map(TlsOptions::tls).transpose())
            .map_err(|error| errors::core(py, &error))?;
        let runtime = self.start_runtime(py)?;
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let address = (host.to_owned(), port);
        let (core, signal) = (self.core().clone(), stop.clone());
        runtime.handle().spawn(async move {
            // The receiver waits below.
            let _ = sender.send(match workers {
                None => foreign::listen(&core, address, options)
                    .await
                    .map(ServingRole::Server),
                Some((program, arguments, directory, count, start_timeout)) => {
                    let workers = WorkerProgram {
                        program,
                        arguments,
                        directory,
                        count,
                        start_timeout,
                    };
                    foreign::listen_with_workers(&core, address, options, workers, &signal).await
                }
            });
        });
        let bound = py
            .detach(move || receiver.recv())
            .map_err(|_| errors::closed(py, "the server has ended"))?;
        let bound = bound.map_err(|error| errors::core(py, &error))?;
        let core = self.core().clone();
        let is_worker = matches!(bound, ServingRole::Worker(_));
        let description = |address: SocketAddr, url: String| Description {
            address: Some((address.ip().to_string(), address.port())),
            startup_message: foreign::startup_message(&core, Some(&url)),
            url: Some(url),
            has_workers: false,
            is_worker,
        };
        match (bound, tls) {
            (ServingRole::Server(bound) | ServingRole::Worker(bound), None) => {
                let description = description(bound.address(), bound.url());
                Serving::start(py, runtime, self, bound, stop, description)
            }
            (ServingRole::Server(bound) | ServingRole::Worker(bound), Some(tls)) => {
                let address = bound.address();
                let bound = bound.tls(tls);
                let description = description(address, bound.url());
                Serving::start(py, runtime, self, bound, stop, description)
            }
            (ServingRole::Supervisor(workers), tls) => {
                let scheme = if tls.is_some() { "https" } else { "http" };
                let mut description = description(workers.address(), workers.url(scheme));
                description.has_workers = true;
                Serving::start(py, runtime, self, workers, stop, description)
            }
        }
    }

    /// Sends the requests to the logger `mcpline.requests` from now on, when they end.
    fn record_requests(&self) {
        crate::log::record_requests(&self.core);
    }

    /// Makes a span of each request from now on, with `mcpline._open_telemetry`.
    fn trace_requests(&self) {
        crate::log::trace_requests(&self.core);
    }

    /// Returns what the server holds now, as JSON.
    fn stats<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, foreign::stats_json(&self.core).as_bytes())
    }

    /// Returns the metrics in the text format of Prometheus.
    fn metrics(&self) -> String {
        self.core.metrics_text()
    }

    /// Stops all transports.
    fn stop(&self) {
        for stop in lock(&self.stops).drain(..) {
            stop.stop();
        }
    }

    /// Whether an event loop runs the async handlers.
    #[getter]
    fn has_loop(&self) -> bool {
        self.hub.is_attached()
    }

    /// Whether an I/O thread runs.
    #[getter]
    fn has_runtime(&self) -> bool {
        self.runtime.running().is_some()
    }

    /// The kinds of handlers: whether there are async ones, and sync ones for the pool.
    #[getter]
    fn handlers(&self, py: Python<'_>) -> (bool, bool) {
        let (mut any_async, mut any_sync) = {
            let plans = lock(&self.plans);
            (
                plans.values().any(|plan| plan.is_async),
                plans.values().any(|plan| !plan.is_async && !plan.inline),
            )
        };
        // Copied: another thread that needs the lock may have to wait for the interpreter's.
        let mounted: Vec<_> = lock(&self.mounted)
            .iter()
            .map(|server| server.clone_ref(py))
            .collect();
        for server in mounted {
            let (mounted_async, mounted_sync) = server.get().handlers(py);
            any_async |= mounted_async;
            any_sync |= mounted_sync;
        }
        (any_async, any_sync)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(mounted) = self.mounted.try_lock() {
            for server in mounted.iter() {
                visit.call(server)?;
            }
        }
        if let Ok(plans) = self.plans.try_lock() {
            for planned in plans.values() {
                planned.traverse(&visit)?;
            }
        }
        if let Ok(plans) = self.removed_plans.try_lock() {
            for planned in plans.iter() {
                planned.traverse(&visit)?;
            }
        }
        self.session_states.traverse(&visit)
    }

    fn __clear__(&self) {
        self.session_states.clear();
        let mounted = match self.mounted.try_lock() {
            Ok(mut mounted) => std::mem::take(&mut *mounted),
            Err(_) => return,
        };
        drop(mounted);
        let plans = match self.plans.try_lock() {
            Ok(mut plans) => std::mem::take(&mut *plans),
            Err(_) => return,
        };
        for planned in plans.values() {
            planned.clear();
        }
        let plans = match self.removed_plans.try_lock() {
            Ok(mut plans) => std::mem::take(&mut *plans),
            Err(_) => return,
        };
        for planned in &plans {
            planned.clear();
        }
    }
}

impl Server {
    /// Makes a function of an imported API visible to the garbage collector, and drops those of imports that are gone.
    fn keep_function(&self, plan: Arc<SharedPlan>) {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        // They have no name.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let key = FeatureKey::new(plan.kind, number.to_string());
        let unused: Vec<_> = {
            let mut plans = lock(&self.plans);
            let unused = plans.extract_if(|_, plan| {
                matches!(plan.kind, CallKind::HttpClient | CallKind::Credential)
                    && Arc::strong_count(plan) == 1
            });
            let unused = unused.collect();
            plans.insert(key, plan);
            unused
        };
        // Dropped after the lock is released: objects of a function may use the server.
        drop(unused);
    }

    /// Keeps a plan under the new name of its feature.
    fn rename_plan(&self, old: &FeatureKey, new: FeatureKey) {
        let mut plans = lock(&self.plans);
        if let Some(plan) = plans.remove(old) {
            plans.insert(new, plan);
        }
    }

    /// Keeps plans that are removed from now on, also those of mounted servers, because a snapshot has them.
    fn keep_removed_plans(&self) {
        self.has_snapshots.store(true, Ordering::Relaxed);
        for server in lock(&self.mounted).iter() {
            server.get().keep_removed_plans();
        }
    }

    /// Drops removed plans that nothing else refers to, also those of mounted servers.
    fn release_plans(&self, py: Python<'_>) {
        let unused: Vec<_> = lock(&self.removed_plans)
            .extract_if(.., |plan| Arc::strong_count(plan) == 1)
            .collect();
        // Dropped after the lock is released: objects of a handler may use the server.
        drop(unused);
        let mounted = lock(&self.mounted);
        let mounted: Vec<_> = mounted.iter().map(|server| server.clone_ref(py)).collect();
        for server in &mounted {
            server.get().release_plans(py);
        }
    }

    fn new_stop(&self) -> Stop {
        let stop = Stop::new();
        let mut stops = lock(&self.stops);
        stops.retain(|stop| !stop.is_stopped());
        stops.push(stop.clone());
        stop
    }
}

/// Returns shared state whose functions are in the order of [`SharingFunctions::in_order`].
fn foreign_sharing(
    py: Python<'_>,
    functions: &[PyRef<'_, Plan>],
    timeout: Option<f64>,
) -> PyResult<ForeignSharing> {
    let handlers = functions.iter().map(|plan| handler(plan)).collect();
    let functions =
        SharingFunctions::in_order(handlers).map_err(|error| errors::core(py, &error))?;
    ForeignSharing::new(functions, timeout).map_err(|error| errors::core(py, &error))
}

/// Reads JSON that the package's Python half has written.
pub(crate) fn read<T: serde::de::DeserializeOwned>(
    py: Python<'_>,
    what: &str,
    json: &[u8],
) -> PyResult<T> {
    options::read(what, json).map_err(|error| errors::core(py, &error))
}
