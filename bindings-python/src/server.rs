//! The server object of Python: the core's server, and the executors of its calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mcpline::foreign::channel::ServedChannel;
use mcpline::foreign::options::{self, CallerOptions, CustomMethodOptions, ServerOptions};
use mcpline::protocol::session::Rate;
use mcpline::protocol::vocabulary::{Implementation, Prompt, Resource, ResourceTemplate, Tool};
use mcpline::server::{ClientNotification, Completer, PromptOptions, ResourceOptions, ToolOptions};
use mcpline::transport::{self, Stop};
use mcpline::{Call as CoreCall, Handler};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::client::Channel;
use crate::context::WaitMode;
use crate::errors;
use crate::event_loop::{Hub, lock};
use crate::exchange::http_options;
use crate::plan::{FeatureKind, Plan, SharedPlan};
use crate::runtime::{Runtime, RuntimeSlot, keep_thread_state};
use crate::serving::Serving;
use crate::verify::Verify;
use crate::workers::{self, Pool};

/// A server and its handlers.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Server {
    core: mcpline::Server,
    hub: Arc<Hub>,
    pool: Arc<Pool>,
    runtime: RuntimeSlot,
    /// The plans that the registry refers to, visible to the garbage collector.
    plans: Mutex<HashMap<(u8, String), Arc<SharedPlan>>>,
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

    /// Returns the I/O thread, started if there is none.
    pub(crate) fn start_runtime(&self, py: Python<'_>) -> PyResult<Arc<Runtime>> {
        let runtime = self.runtime.get(py)?;
        self.hub
            .set_completions(Some(runtime.completions().clone()));
        self.pool
            .attach(runtime.handle().clone(), runtime.completions().clone());
        Ok(runtime)
    }

    fn handler(&self, plan: &Plan) -> Arc<dyn Handler> {
        let planned = plan.planned.clone();
        match (planned.is_async, planned.inline) {
            (true, _) => self.hub.calls().handler(planned),
            (false, false) => self.pool.handler(planned),
            (false, true) => Arc::new(InlineHandler(planned)),
        }
    }

    fn keep(&self, plan: &Plan, name: &str) {
        let key = (plan.planned.kind as u8, name.to_owned());
        // Dropped after the lock is released: objects of a handler may use the server.
        let replaced = lock(&self.plans).insert(key, plan.planned.clone());
        drop(replaced);
    }

    fn forget(&self, kinds: &[FeatureKind], name: &str) {
        for kind in kinds {
            let removed = lock(&self.plans).remove(&(*kind as u8, name.to_owned()));
            drop(removed);
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
                .objects()
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
    #[pyo3(signature = (info, instructions, settings))]
    fn new(
        py: Python<'_>,
        info: &[u8],
        instructions: Option<String>,
        settings: Option<&[u8]>,
    ) -> PyResult<Self> {
        let info: Implementation = read(py, "the server's description", info)?;
        let options: ServerOptions = match settings {
            Some(settings) => read(py, "the settings", settings)?,
            None => ServerOptions::default(),
        };
        let builder = options.builder(info, instructions);
        let core = builder.and_then(mcpline::ServerBuilder::build);
        Ok(Self {
            core: core.map_err(|error| errors::core(py, &error))?,
            hub: Hub::new(),
            pool: workers::new_pool(),
            runtime: RuntimeSlot::default(),
            plans: Mutex::default(),
            stops: Mutex::default(),
        })
    }

    /// Adds a tool. `definition` is a `Tool` as JSON.
    #[pyo3(signature = (definition, plan, decodes_itself, run_once, rate, scopes))]
    #[allow(
        clippy::too_many_arguments,
        reason = "each is a keyword of the decorator"
    )]
    fn add_tool(
        &self,
        py: Python<'_>,
        definition: &[u8],
        plan: &Plan,
        decodes_itself: bool,
        run_once: bool,
        rate: Option<(u32, u32)>,
        scopes: Vec<String>,
    ) -> PyResult<()> {
        let tool: Tool = read(py, "the tool", definition)?;
        let name = tool.name.clone();
        let mut options = ToolOptions::default().with_scopes(scopes);
        options.run_once = run_once;
        options.decodes_itself = decodes_itself;
        options.rate = rate.map(|(per_second, burst)| Rate { per_second, burst });
        let handler = self.handler(plan);
        py.detach(|| self.core.add_tool(tool, options, handler))
            .map_err(|error| errors::core(py, &error))?;
        self.keep(plan, &name);
        Ok(())
    }

    fn remove_tool(&self, py: Python<'_>, name: &str) -> bool {
        let removed = py.detach(|| self.core.remove_tool(name));
        self.forget(&[FeatureKind::Tool], name);
        removed
    }

    /// Adds a resource or a template. `definition` is a `Resource` or a `ResourceTemplate` as JSON.
    fn add_resource(
        &self,
        py: Python<'_>,
        definition: &[u8],
        plan: &Plan,
        is_template: bool,
        scopes: Vec<String>,
    ) -> PyResult<()> {
        let options = ResourceOptions::default().with_scopes(scopes);
        let handler = self.handler(plan);
        let (name, added) = if is_template {
            let template: ResourceTemplate = read(py, "the template", definition)?;
            let name = template.uri_template.clone();
            let add = || {
                self.core
                    .add_resource_template_with(template, options, handler)
            };
            (name, py.detach(add))
        } else {
            let resource: Resource = read(py, "the resource", definition)?;
            let name = resource.uri.clone();
            let add = || self.core.add_resource_with(resource, options, handler);
            (name, py.detach(add))
        };
        added.map_err(|error| errors::core(py, &error))?;
        self.keep(plan, &name);
        Ok(())
    }

    fn remove_resource(&self, py: Python<'_>, uri: &str) -> bool {
        let removed =
            py.detach(|| self.core.remove_resource(uri) || self.core.remove_resource_template(uri));
        self.forget(&[FeatureKind::Resource], uri);
        removed
    }

    /// Notifies the client that the URL elicitation with this id is complete.
    fn notify_elicitation_complete(&self, py: Python<'_>, elicitation_id: &str) {
        py.detach(|| self.core.notify_elicitation_complete(elicitation_id));
    }

    /// Notifies the subscribers of a resource that it has changed.
    fn notify_resource_updated(&self, py: Python<'_>, uri: &str) {
        py.detach(|| self.core.notify_resource_updated(uri));
    }

    /// Adds a prompt. `definition` is a `Prompt` as JSON.
    fn add_prompt(
        &self,
        py: Python<'_>,
        definition: &[u8],
        plan: &Plan,
        scopes: Vec<String>,
    ) -> PyResult<()> {
        let prompt: Prompt = read(py, "the prompt", definition)?;
        let name = prompt.name.clone();
        let handler = self.handler(plan);
        let options = PromptOptions::default().with_scopes(scopes);
        py.detach(|| self.core.add_prompt_with(prompt, options, handler))
            .map_err(|error| errors::core(py, &error))?;
        self.keep(plan, &name);
        Ok(())
    }

    fn remove_prompt(&self, py: Python<'_>, name: &str) -> bool {
        let removed = py.detach(|| self.core.remove_prompt(name));
        self.forget(&[FeatureKind::Prompt], name);
        removed
    }

    /// Serves requests of a method that no revision defines. `options` are [`CustomMethodOptions`].
    fn add_request_handler(
        &self,
        py: Python<'_>,
        method: &str,
        options: &[u8],
        plan: &Plan,
    ) -> PyResult<()> {
        let options: CustomMethodOptions = read(py, "the options of the method", options)?;
        let options = options.options();
        let handler = self.handler(plan);
        py.detach(|| self.core.add_request_handler(method, options, handler))
            .map_err(|error| errors::core(py, &error))?;
        self.keep(plan, method);
        Ok(())
    }

    fn remove_request_handler(&self, py: Python<'_>, method: &str) -> bool {
        let removed = py.detach(|| self.core.remove_request_handler(method));
        self.forget(&[FeatureKind::Request], method);
        removed
    }

    /// Handles notifications of a method that no revision defines. `options` are [`CustomMethodOptions`].
    fn add_notification_handler(
        &self,
        py: Python<'_>,
        method: &str,
        options: &[u8],
        plan: &Plan,
    ) -> PyResult<()> {
        let options: CustomMethodOptions = read(py, "the options of the method", options)?;
        let options = options.options();
        let handler = self.handler(plan);
        py.detach(|| self.core.add_notification_handler(method, options, handler))
            .map_err(|error| errors::core(py, &error))?;
        self.keep(plan, method);
        Ok(())
    }

    fn remove_notification_handler(&self, py: Python<'_>, method: &str) -> bool {
        let removed = py.detach(|| self.core.remove_notification_handler(method));
        self.forget(&[FeatureKind::Notification], method);
        removed
    }

    /// Completes one argument from a list of candidates.
    fn add_candidates(&self, reference: &str, argument: &str, candidates: Vec<String>) {
        let completer = Completer::Candidates(candidates);
        self.core.add_completer(reference, argument, completer);
    }

    /// Completes one argument, or all others, with a handler.
    #[pyo3(signature = (reference, argument, plan))]
    fn add_completion(&self, reference: Option<&str>, argument: Option<&str>, plan: &Plan) {
        let handler = self.handler(plan);
        match (reference, argument) {
            (Some(reference), Some(argument)) => {
                let completer = Completer::Handler(handler);
                self.core.add_completer(reference, argument, completer);
                self.keep(plan, &format!("{reference}\n{argument}"));
            }
            _ => {
                self.core.set_completion(handler);
                self.keep(plan, "");
            }
        }
    }

    /// Sets the handler that is called when a session's handshake is complete.
    fn on_initialized(&self, plan: &Plan) {
        self.set_event_handler(ClientNotification::Initialized, "initialized", plan);
    }

    /// Sets the handler that is called when a client's roots have changed.
    fn on_roots_changed(&self, plan: &Plan) {
        self.set_event_handler(ClientNotification::RootsListChanged, "roots_changed", plan);
    }

    /// Begins to serve stdio.
    fn start_stdio(&self, py: Python<'_>) -> PyResult<Serving> {
        let runtime = self.start_runtime(py)?;
        let stop = self.new_stop();
        let core = self.core.clone();
        Serving::start(py, runtime, core, transport::stdio(), stop, None)
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
        Serving::start(py, runtime, self.core.clone(), transport, stop, None)
    }

    /// Begins to serve HTTP. The address is bound when this returns.
    fn start_http(
        &self,
        py: Python<'_>,
        host: &str,
        port: u16,
        options: &[u8],
        verify: Option<Py<PyAny>>,
    ) -> PyResult<Serving> {
        let options = http_options(py, options, &Verify::new(verify))?;
        let runtime = self.start_runtime(py)?;
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let address = (host.to_owned(), port);
        runtime.handle().spawn(async move {
            // The receiver waits below.
            let _ = sender.send(transport::http::http(address, options).await);
        });
        let bound = py
            .detach(move || receiver.recv())
            .map_err(|_| errors::closed(py, "the server has ended"))?;
        let bound = bound.map_err(|error| errors::core(py, &error))?;
        let address = (bound.address().ip().to_string(), bound.address().port());
        let stop = self.new_stop();
        Serving::start(py, runtime, self.core.clone(), bound, stop, Some(address))
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
    fn handlers(&self) -> (bool, bool) {
        let plans = lock(&self.plans);
        let any_async = plans.values().any(|plan| plan.is_async);
        let any_sync = plans.values().any(|plan| !plan.is_async && !plan.inline);
        (any_async, any_sync)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(plans) = self.plans.try_lock() {
            for planned in plans.values() {
                planned.traverse(&visit)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let plans = match self.plans.try_lock() {
            Ok(mut plans) => std::mem::take(&mut *plans),
            Err(_) => return,
        };
        for planned in plans.values() {
            planned.clear();
        }
    }
}

impl Server {
    fn set_event_handler(&self, event: ClientNotification, name: &str, plan: &Plan) {
        self.core.set_event_handler(event, self.handler(plan));
        self.keep(plan, name);
    }

    fn new_stop(&self) -> Stop {
        let stop = Stop::new();
        let mut stops = lock(&self.stops);
        stops.retain(|stop| !stop.is_stopped());
        stops.push(stop.clone());
        stop
    }
}

/// Reads JSON that the package's Python half has written.
pub(crate) fn read<T: serde::de::DeserializeOwned>(
    py: Python<'_>,
    what: &str,
    json: &[u8],
) -> PyResult<T> {
    options::read(what, json).map_err(|error| errors::core(py, &error))
}
