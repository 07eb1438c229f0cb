//! The server object of JavaScript: the core's server, and the delivery of its calls.

use std::net::SocketAddr;
use std::sync::Arc;

use mcpline::foreign::channel::{Channel, ServedChannel};
use mcpline::foreign::options::{
    self, CallerOptions, FeatureOptions, HttpServingOptions, ServerOptions, TlsOptions,
    UnixServingOptions,
};
use mcpline::foreign::{
    self, CallQueue, Feature, FeatureKey, ForeignSharing, ServingRole, SharingCheck, WorkerProgram,
};
use mcpline::protocol::vocabulary::Implementation;
use mcpline::protocol::wire::Raw;
use mcpline::server::{Completer, RequestOutcome};
use mcpline::transport::http::HttpOptions;
use mcpline::{Call, Handler, transport};
use napi::Result;
use napi_derive::napi;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;

use crate::channel::Channels;
use crate::failure::Failure;
use crate::http_app::HttpApp;
use crate::hub::{Event, HandlerId, Hub, PromiseOutcome, Shared};
use crate::serving::{CoreServer, Serving, serve};
use crate::sharing::foreign_sharing;
use crate::verifier::Verifier;
use crate::waiting_records::WaitingRecord;

/// A server. Its handlers are JavaScript functions, each with a number.
#[napi]
pub struct Server {
    core: mcpline::Server,
    shared: Arc<Shared>,
    number: u32,
    /// The state that processes share, if JavaScript implements it.
    sharing: Option<ForeignSharing>,
}

impl Server {
    /// The core's server.
    pub(crate) fn core(&self) -> &mcpline::Server {
        &self.core
    }

    pub(crate) fn handler(&self, plan: u32) -> Arc<dyn Handler> {
        handler(&self.shared, self.number, plan)
    }

    fn served(&self) -> CoreServer {
        CoreServer {
            core: self.core.clone(),
            sharing: self.sharing.clone(),
        }
    }
}

fn handler(shared: &Arc<Shared>, server: u32, plan: u32) -> Arc<dyn Handler> {
    let queue = shared.calls().clone();
    let id = HandlerId {
        server,
        plan,
        channel: 0,
    };
    let direct = queue.handler(id);
    Arc::new(FunctionHandler { queue, id, direct })
}

tokio::task_local! {
    /// The number of the channel that a task serves. Calls start in the task that reads their channel.
    static CHANNEL: u32;
}

/// Queues calls for a JavaScript function, with the channel that they arrived on.
struct FunctionHandler {
    queue: CallQueue<HandlerId>,
    id: HandlerId,
    /// The handler of calls from other transports.
    direct: Arc<dyn Handler>,
}

impl Handler for FunctionHandler {
    fn call(&self, call: Call) {
        match CHANNEL.try_with(|channel| *channel) {
            Ok(channel) => {
                let id = HandlerId { channel, ..self.id };
                self.queue.handler(id).call(call);
            }
            Err(_) => self.direct.call(call),
        }
    }
}

#[napi]
impl Server {
    /// Creates a server whose calls refer to it by `number`. `info` is an `Implementation`, `settings` are those of
    /// `lib/settings.ts`; both are JSON. `sharing` are the numbers of the functions of shared state, in the order of
    /// `SharingFunctions`, and `sharing_timeout` their timeout in seconds.
    #[napi(constructor, catch_unwind)]
    pub fn new(
        hub: &Hub,
        number: u32,
        info: String,
        instructions: Option<String>,
        settings: Option<String>,
        sharing: Option<Vec<u32>>,
        sharing_timeout: Option<f64>,
    ) -> Result<Self> {
        let info: Implementation = read("the server's description", &info)?;
        let options: ServerOptions = match settings {
            Some(settings) => read("the settings", &settings)?,
            None => ServerOptions::default(),
        };
        let sharing = sharing
            .map(|plans| {
                let handlers = plans
                    .into_iter()
                    .map(|plan| handler(&hub.shared, number, plan));
                foreign_sharing(handlers.collect(), sharing_timeout)
            })
            .transpose()?;
        let builder = options.builder(info, instructions, mcpline_sharing::share);
        let built = builder.and_then(|builder| match &sharing {
            Some(sharing) => sharing.build_server(builder),
            None => builder.build(),
        });
        let core = built.map_err(|error| Failure::core(&error))?;
        foreign::print_traffic(&core);
        Ok(Self {
            core,
            shared: hub.shared.clone(),
            number,
            sharing,
        })
    }

    /// Whether the server is in debug mode.
    #[napi(getter)]
    pub fn is_debugged(&self) -> bool {
        self.core.is_debugged()
    }

    /// Returns what the server holds now, as JSON.
    #[napi(catch_unwind)]
    pub fn stats(&self) -> String {
        foreign::stats_json(&self.core)
    }

    /// Returns the metrics in the text format of Prometheus.
    #[napi(catch_unwind)]
    pub fn metrics(&self) -> String {
        self.core.metrics_text()
    }

    /// Adds a feature: see [`Feature::read`]. `definition` and `options`, which are [`FeatureOptions`], are JSON.
    #[napi(catch_unwind)]
    pub fn add_feature(
        &self,
        kind: String,
        definition: String,
        options: Option<String>,
        plan: u32,
    ) -> Result<()> {
        let options: FeatureOptions = match options {
            Some(options) => read("the options", &options)?,
            None => FeatureOptions::default(),
        };
        let kind = foreign::call_kind(&kind);
        let feature = kind.and_then(|kind| Feature::read(kind, definition.as_bytes(), options));
        to_napi_result(feature.and_then(|feature| feature.add(&self.core, self.handler(plan))))
    }

    /// Adds a middleware that the library provides: see [`foreign::add_built_in_middleware`]. Both are JSON.
    #[napi(catch_unwind)]
    pub fn add_built_in_middleware(&self, definition: String, scope: String) -> Result<()> {
        let (definition, scope) = (definition.as_bytes(), Some(scope.as_bytes()));
        to_napi_result(foreign::add_built_in_middleware(
            &self.core, definition, scope,
        ))
    }

    /// Removes a feature: see [`FeatureKey`]. Returns whether it was registered.
    #[napi(catch_unwind)]
    pub fn remove_feature(&self, kind: String, name: String) -> Result<bool> {
        let kind = foreign::call_kind(&kind).map_err(|error| Failure::core(&error))?;
        Ok(FeatureKey::new(kind, name).remove(&self.core))
    }

    /// Completes one argument from a list of candidates.
    #[napi(catch_unwind)]
    pub fn add_candidates(
        &self,
        reference: String,
        argument: String,
        candidates: Vec<String>,
    ) -> Result<()> {
        let completer = Completer::Candidates(candidates);
        to_napi_result(self.core.add_completer(&reference, &argument, completer))
    }

    /// Changes a definition: see [`FeatureKey::update`].
    #[napi(catch_unwind)]
    pub fn update_feature(&self, kind: String, name: String, changes: String) -> Result<()> {
        let kind = foreign::call_kind(&kind).map_err(|error| Failure::core(&error))?;
        to_napi_result(FeatureKey::new(kind, name).update(&self.core, changes.as_bytes()))
    }

    /// Changes a tool: see [`foreign::transform_tool`].
    #[napi(catch_unwind)]
    pub fn transform_tool(&self, name: String, transform: String) -> Result<()> {
        to_napi_result(foreign::transform_tool(&self.core, &name, transform.as_bytes()).map(|_| ()))
    }

    /// Enables or disables features: see [`foreign::feature_selection`]. Returns how many have changed.
    #[napi(catch_unwind)]
    pub fn set_enabled(
        &self,
        enabled: bool,
        kinds: Option<Vec<String>>,
        names: Option<Vec<String>>,
        tags: Option<Vec<String>>,
    ) -> Result<u32> {
        let selection = foreign::feature_selection(kinds, names, tags)
            .map_err(|error| Failure::core(&error))?;
        let changed = match enabled {
            true => self.core.enable(selection),
            false => self.core.disable(selection),
        };
        Ok(u32::try_from(changed).unwrap_or(u32::MAX))
    }

    /// Mounts another server: see [`mcpline::Server::mount`].
    #[napi(catch_unwind)]
    pub fn mount(
        &self,
        server: &Server,
        prefix: Option<String>,
        snapshot: bool,
        tools: Option<String>,
    ) -> Result<()> {
        let tools = tools.as_deref().map(str::as_bytes);
        let options = foreign::mount_options(prefix, snapshot, tools)
            .map_err(|error| Failure::core(&error))?;
        to_napi_result(self.core.mount(&server.core, options))
    }

    /// Unmounts a server. Returns whether it was mounted.
    #[napi(catch_unwind)]
    pub fn unmount(&self, server: &Server) -> bool {
        self.core.unmount(&server.core)
    }

    /// Notifies the subscribers of a resource that it has changed.
    #[napi(catch_unwind)]
    pub fn notify_resource_updated(&self, uri: String) {
        self.core.notify_resource_updated(&uri);
    }

    /// Notifies clients that the list of resources has changed.
    #[napi(catch_unwind)]
    pub fn notify_resource_list_changed(&self) {
        self.core.notify_resource_list_changed();
    }

    /// Notifies the client that the URL elicitation with this id is complete.
    #[napi(catch_unwind)]
    pub fn notify_elicitation_complete(&self, elicitation_id: String) {
        self.core.notify_elicitation_complete(&elicitation_id);
    }

    /// Reports the requests to this JavaScript thread from now on, when they end.
    #[napi(catch_unwind)]
    pub fn record_requests(&self) {
        let (shared, number) = (Arc::downgrade(&self.shared), self.number);
        let waiting = Arc::default();
        self.core.on_request_end(move |record| {
            let Some(waiting) = WaitingRecord::count(&waiting) else {
                return;
            };
            let code = match record.outcome {
                RequestOutcome::Error(code) => Some(code.0),
                _ => None,
            };
            let record = serde_json::json!({
                "method": record.method,
                "name": record.name,
                "outcome": record.outcome.name(),
                "code": code,
                "duration": record.duration.as_secs_f64() * 1e3,
                "client": record.client,
                "session": record.session,
                "issuer": record.issuer,
                "subject": record.subject,
                "clientId": record.client_id,
                "traceId": record.trace_id,
                "number": foreign::span_number_of_record(record),
            });
            if let Some(shared) = shared.upgrade() {
                let record = Raw::from_trusted(record.to_string());
                shared.post(Event::RequestEnded(number, record, waiting));
            }
        });
    }

    /// Traces the requests from now on: reports their spans to this JavaScript thread.
    #[napi(catch_unwind)]
    pub fn trace_requests(&self) {
        let shared = Arc::downgrade(&self.shared);
        let waiting = Arc::default();
        self.shared.trace_calls();
        foreign::trace_requests(&self.core, move |ended| {
            let counted = WaitingRecord::count(&waiting);
            if counted.is_none() && foreign::number_of_span(&ended).is_none() {
                return;
            }
            // The span of a handler must end in any case. There are not more of them than handlers have begun.
            if let Some(shared) = shared.upgrade() {
                let ended = Raw::from_trusted(ended);
                shared.post(Event::SpanEnded(ended, counted));
            }
        });
    }

    /// Begins to serve stdio; the promise `ended` is settled at the end.
    #[napi(catch_unwind)]
    pub fn serve_stdio(&self, ended: u32) -> Result<Serving> {
        let runtime = self.shared.runtime()?;
        let _entered = runtime.enter();
        let serving = Serving::new(foreign::startup_message(&self.core, None));
        let shared = self.shared.clone();
        serving.start(&runtime, self.served(), transport::stdio(), shared, ended);
        Ok(serving)
    }

    /// Begins to check the shared state that JavaScript implements. The promise `ended` is settled with the outcome. `sharing` and
    /// `other`, which is the same state as another process has it, are the numbers of functions, and the timeouts are in seconds.
    #[napi(catch_unwind)]
    pub fn check_sharing(
        &self,
        ended: u32,
        sharing: Vec<u32>,
        timeout: Option<f64>,
        other: Vec<u32>,
        other_timeout: Option<f64>,
    ) -> Result<Serving> {
        let state = |plans: Vec<u32>, timeout| {
            let handlers = plans.into_iter().map(|plan| self.handler(plan));
            foreign_sharing(handlers.collect(), timeout)
        };
        let check = SharingCheck::new(state(sharing, timeout)?, state(other, other_timeout)?);
        let runtime = self.shared.runtime()?;
        let _entered = runtime.enter();
        let serving = Serving::new(None);
        serving.start(&runtime, self.served(), check, self.shared.clone(), ended);
        Ok(serving)
    }

    /// Begins to serve a Unix socket. The promise `bound` is settled with the start-up message, `ended` at the end.
    #[napi(catch_unwind)]
    pub fn serve_unix(
        &self,
        bound: u32,
        ended: u32,
        path: String,
        options: String,
    ) -> Result<Serving> {
        let options: UnixServingOptions = read("the options", &options)?;
        let options = options.options().map_err(|error| Failure::core(&error))?;
        let runtime = self.shared.runtime()?;
        let serving = Serving::new(None);
        let stop = serving.signal();
        let (core, shared) = (self.core.clone(), self.shared.clone());
        let served = self.served();
        runtime.spawn(async move {
            match foreign::local_socket(path, options).await {
                Ok(unix) => {
                    let message = foreign::startup_message(&core, Some(&unix.url()));
                    let message = Raw::from_trusted(serde_json::json!(message).to_string());
                    shared.post(Event::Settled(bound, PromiseOutcome::Json(message)));
                    serve(served, unix, stop, shared, ended).await;
                }
                Err(error) => {
                    let failure = PromiseOutcome::Failed(Failure::core(&error));
                    shared.post(Event::Settled(bound, failure));
                    shared.post(Event::Settled(ended, PromiseOutcome::Done));
                }
            }
        });
        Ok(serving)
    }

    /// Begins to serve one client over a channel that JavaScript opens. `principal` is the authenticated client, as
    /// JSON. The promise `opened` is settled when opening succeeds or fails, `ended` at the end. Calls of the client
    /// have the number of `ended` as their origin.
    #[napi(catch_unwind)]
    pub fn serve_channel(
        &self,
        opened: u32,
        ended: u32,
        channels: &Channels,
        principal: Option<String>,
    ) -> Result<Serving> {
        let principal: Option<CallerOptions> = principal
            .map(|principal| read("the principal", &principal))
            .transpose()?;
        let principal = principal.map(CallerOptions::authorized);
        let runtime = self.shared.runtime()?;
        let _entered = runtime.enter();
        let serving = Serving::new(None);
        let (core, shared, stop) = (self.core.clone(), self.shared.clone(), serving.signal());
        let open = channels.open();
        let sharing = self.sharing.clone();
        // Handlers run in the asynchronous context of their channel, which JavaScript finds by this number.
        runtime.spawn(CHANNEL.scope(ended, async move {
            let mut carrying = None;
            let transport = ServedChannel::open(Channel::new(), principal, |channel| {
                carrying = Some(tokio::spawn(open.carry(channel)));
            });
            let transport = tokio::select! {
                transport = transport => transport,
                // Stopped before it was open: the channel is closed when it is dropped.
                () = stop.stopped() => return shared.post(Event::Settled(ended, PromiseOutcome::Done)),
            };
            let end = match transport {
                Ok(transport) => {
                    shared.post(Event::Settled(opened, PromiseOutcome::Done));
                    let sharing = sharing.map(|sharing| sharing.enter(&Handle::current()));
                    let end = core.serve_until(transport, stop).await;
                    if let Some(sharing) = sharing {
                        sharing.leave().await;
                    }
                    end
                }
                Err(error) => Err(error),
            };
            if let Some(carrying) = carrying {
                // Ends with the channel.
                let _ = carrying.await;
            }
            let settled = match end {
                Ok(()) => PromiseOutcome::Done,
                Err(error) => PromiseOutcome::Failed(Failure::core(&error)),
            };
            shared.post(Event::Settled(ended, settled));
        }));
        Ok(serving)
    }

    /// Begins to serve HTTP, or to supervise the workers ([`WorkerProgram`] as JSON) that do so. The promise `bound` is settled with host, port, URL,
    /// start-up message and role (`worker` or `supervisor`), `ended` at the end.
    #[napi(catch_unwind)]
    #[allow(clippy::too_many_arguments, reason = "called in one place")]
    pub fn serve_http(
        &self,
        bound: u32,
        ended: u32,
        host: String,
        port: u16,
        options: String,
        verifier: Option<&Verifier>,
        tls: Option<String>,
        workers: Option<String>,
    ) -> Result<Serving> {
        let options = serving_options(&options, verifier)?;
        let workers: Option<WorkerProgram> = workers
            .map(|workers| read("`workers`", &workers))
            .transpose()?;
        let tls: Option<TlsOptions> = tls.map(|tls| read("`tls`", &tls)).transpose()?;
        let tls = tls.map(TlsOptions::tls).transpose();
        let tls = tls.map_err(|error| Failure::core(&error))?;
        let runtime = self.shared.runtime()?;
        let serving = Serving::new(None);
        let stop = serving.signal();
        let (core, shared) = (self.core.clone(), self.shared.clone());
        let mut served = self.served();
        runtime.spawn(async move {
            let signal = stop.clone();
            let listening = match workers {
                None => foreign::listen(&core, (host, port), options)
                    .await
                    .map(ServingRole::Server),
                Some(workers) => {
                    foreign::listen_with_workers(&core, (host, port), options, workers, &signal)
                        .await
                }
            };
            let role = match &listening {
                Ok(ServingRole::Worker(_)) => Some("worker"),
                Ok(ServingRole::Supervisor(_)) => Some("supervisor"),
                _ => None,
            };
            let ready = |address: SocketAddr, url: String| {
                let message = foreign::startup_message(&core, Some(&url));
                let facts = serde_json::json!([address.ip(), address.port(), url, message, role]);
                let facts = PromiseOutcome::Json(Raw::from_trusted(facts.to_string()));
                shared.post(Event::Settled(bound, facts));
            };
            match (listening, tls) {
                (Ok(ServingRole::Server(http) | ServingRole::Worker(http)), None) => {
                    ready(http.address(), http.url());
                    serve(served, http, stop, shared, ended).await;
                }
                (Ok(ServingRole::Server(http) | ServingRole::Worker(http)), Some(tls)) => {
                    let address = http.address();
                    let https = http.tls(tls);
                    ready(address, https.url());
                    serve(served, https, stop, shared, ended).await;
                }
                (Ok(ServingRole::Supervisor(workers)), tls) => {
                    let scheme = if tls.is_some() { "https" } else { "http" };
                    ready(workers.address(), workers.url(scheme));
                    // The workers use it.
                    served.sharing = None;
                    serve(served, workers, stop, shared, ended).await;
                }
                (Err(error), _) => {
                    let failure = PromiseOutcome::Failed(Failure::core(&error));
                    shared.post(Event::Settled(bound, failure));
                    shared.post(Event::Settled(ended, PromiseOutcome::Done));
                }
            }
        });
        Ok(serving)
    }

    /// Says that handlers can run, if this process is a worker.
    #[napi(catch_unwind)]
    pub fn report_ready(&self) {
        foreign::report_ready();
    }

    /// Returns the server as an HTTP application.
    #[napi(catch_unwind)]
    pub fn http_app(&self, options: String, verifier: Option<&Verifier>) -> Result<HttpApp> {
        let options = serving_options(&options, verifier)?;
        let runtime = self.shared.runtime()?;
        let _entered = runtime.enter();
        let write_timeout = options.write_timeout;
        let service = self.core.http_service(options);
        let grace = self.core.settings().shutdown_timeout;
        let sharing = self.sharing.as_ref();
        Ok(HttpApp::new(
            service,
            write_timeout,
            grace,
            self.shared.clone(),
            sharing.map(|sharing| sharing.enter(&runtime)),
        ))
    }
}

fn serving_options(options: &str, verifier: Option<&Verifier>) -> Result<HttpOptions> {
    let options: HttpServingOptions = read("the options", options)?;
    let options = match verifier {
        Some(verifier) => options.options_with(|builder| Ok(verifier.added_to(builder))),
        None => options.options(),
    };
    options.map_err(|error| Failure::core(&error).into())
}

fn to_napi_result(added: std::result::Result<(), mcpline::Error>) -> Result<()> {
    added.map_err(|error| Failure::core(&error).into())
}

/// Reads JSON that the package's JavaScript half has written.
pub(crate) fn read<T: DeserializeOwned>(what: &str, json: &str) -> Result<T> {
    options::read(what, json.as_bytes()).map_err(|error| Failure::core(&error).into())
}
