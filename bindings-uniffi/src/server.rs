//! The server of the other language: the core's server, whose handlers are foreign.

use std::sync::{Arc, OnceLock};

use mcpline::foreign::channel::{Channel as CoreChannel, ServedChannel};
use mcpline::foreign::options::{
    self, CallerOptions, FeatureOptions, HttpServingOptions, ServerOptions, UnixServingOptions,
};
use mcpline::foreign::{self, Feature, FeatureKey};
use mcpline::protocol::vocabulary::Implementation;
use mcpline::server::Completer;
use mcpline::transport::{self, Stop, Transport};
use serde::de::DeserializeOwned;
use tokio::sync::{oneshot, watch};

use crate::call::{ForeignHandler, Handler};
use crate::channel::{Channel, carry};
use crate::failure::Failure;
use crate::handler_calls::HandlerQueue;
use crate::request_log::{self, RequestListener};
use crate::runtime::Runtime;

/// A server.
#[derive(uniffi::Object)]
pub struct Server {
    pub(crate) core: mcpline::Server,
    runtime: Arc<Runtime>,
    /// The calls of its numbered handlers, once it has some.
    handler_queue: OnceLock<Arc<HandlerQueue>>,
}

#[uniffi::export]
impl Server {
    /// Creates a server. `info` is an `Implementation`, `settings` are `ServerOptions`; both are JSON.
    #[uniffi::constructor]
    pub fn new(
        info: String,
        instructions: Option<String>,
        settings: Option<String>,
    ) -> Result<Arc<Self>, Failure> {
        let info: Implementation = read("the server's description", &info)?;
        let options: ServerOptions = read_or_default("the settings", settings.as_deref())?;
        let core = options
            .builder(info, instructions, mcpline_sharing::share)?
            .build()?;
        foreign::print_traffic(&core);
        let runtime = Runtime::shared()?;
        Ok(Arc::new(Self {
            core,
            runtime,
            handler_queue: OnceLock::new(),
        }))
    }

    /// Adds a feature: see [`Feature::read`]. `definition` and `options`, which are [`FeatureOptions`], are JSON.
    pub fn add_feature(
        &self,
        kind: String,
        definition: String,
        options: Option<String>,
        handler: Arc<dyn Handler>,
    ) -> Result<(), Failure> {
        let feature = feature(&kind, &definition, options.as_deref())?;
        let handler = ForeignHandler {
            handler,
            mime_type: feature.mime_type().map(Into::into),
            runtime: self.runtime.handle().clone(),
            queue: self.runtime.queue().clone(),
        };
        feature.add(&self.core, Arc::new(handler))?;
        Ok(())
    }

    /// Returns the number of the queue from which the calls of numbered handlers are taken: see `mcpline_take_handler_call`.
    pub fn handler_queue(&self) -> u64 {
        self.calls_of_handlers().number()
    }

    /// Adds a feature as [`Self::add_feature`] does, whose calls threads of the other language take: see
    /// [`Self::handler_queue`]. `handler` is the number of the handler, which no other handler of this process has had.
    pub fn add_numbered_feature(
        &self,
        kind: String,
        definition: String,
        options: Option<String>,
        handler: u64,
    ) -> Result<(), Failure> {
        let feature = feature(&kind, &definition, options.as_deref())?;
        let mime_type = feature.mime_type().map(Into::into);
        let handler = self.calls_of_handlers().handler(handler, mime_type);
        feature.add(&self.core, handler)?;
        Ok(())
    }

    /// Adds a middleware that the library provides: see [`foreign::add_built_in_middleware`]. `definition` and `scope` are JSON.
    pub fn add_built_in_middleware(
        &self,
        definition: String,
        scope: Option<String>,
    ) -> Result<(), Failure> {
        let scope = scope.as_ref().map(String::as_bytes);
        foreign::add_built_in_middleware(&self.core, definition.as_bytes(), scope)?;
        Ok(())
    }

    /// Completes one argument from a list of candidates.
    pub fn add_candidates(
        &self,
        reference: String,
        argument: String,
        candidates: Vec<String>,
    ) -> Result<(), Failure> {
        let completer = Completer::Candidates(candidates);
        self.core.add_completer(&reference, &argument, completer)?;
        Ok(())
    }

    /// Removes a feature: see [`FeatureKey`]. Returns whether it was registered.
    pub fn remove_feature(&self, kind: String, name: String) -> Result<bool, Failure> {
        let kind = foreign::call_kind(&kind)?;
        Ok(FeatureKey::new(kind, name).remove(&self.core))
    }

    /// Changes a definition: see [`FeatureKey::update`].
    pub fn update_feature(
        &self,
        kind: String,
        name: String,
        changes: String,
    ) -> Result<(), Failure> {
        let kind = foreign::call_kind(&kind)?;
        FeatureKey::new(kind, name).update(&self.core, changes.as_bytes())?;
        Ok(())
    }

    /// Notifies the subscribers of a resource that it has changed.
    pub fn notify_resource_updated(&self, uri: String) {
        self.core.notify_resource_updated(&uri);
    }

    /// Notifies clients that the list of resources has changed.
    pub fn notify_resource_list_changed(&self) {
        self.core.notify_resource_list_changed();
    }

    /// Notifies the client that the URL elicitation with this id is complete.
    pub fn notify_elicitation_complete(&self, elicitation_id: String) {
        self.core.notify_elicitation_complete(&elicitation_id);
    }

    /// Passes the records of requests to a listener from now on. Replaces an earlier one.
    pub fn record_requests(&self, listener: Arc<dyn RequestListener>) {
        let listener = request_log::of_server(listener, self.runtime.handle());
        self.core.on_request_end(listener);
    }

    /// Returns what the server holds now, as JSON.
    pub fn stats(&self) -> String {
        foreign::stats_json(&self.core)
    }

    /// Returns the metrics in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        foreign::metrics_text(&self.core)
    }

    /// Begins to serve stdio.
    pub fn serve_stdio(&self) -> Arc<Serving> {
        let _entered = self.runtime.handle().enter();
        let message = foreign::startup_message(&self.core, None);
        let facts = TransportAddress {
            startup_message: message,
            ..TransportAddress::default()
        };
        let (serving, stop, ending) = Serving::new(facts, self.runtime.clone());
        let ends = serve(self.core.clone(), transport::stdio(), stop, ending);
        self.runtime.handle().spawn(ends);
        serving
    }

    /// Begins to serve one client over an open channel: as the authenticated client `principal`, `CallerOptions` as JSON, or
    /// without one as a client that may use everything.
    pub fn serve_channel(
        &self,
        channel: Arc<dyn Channel>,
        principal: Option<String>,
    ) -> Result<Arc<Serving>, Failure> {
        let principal: Option<CallerOptions> = principal
            .map(|principal| read("the principal", &principal))
            .transpose()?;
        let principal = principal.map(CallerOptions::authorized);
        let (serving, stop, ending) =
            Serving::new(TransportAddress::default(), self.runtime.clone());
        let core = self.core.clone();
        self.runtime.handle().spawn(async move {
            let carried = CoreChannel::new();
            let served = core.serve_until(ServedChannel::new(carried.clone(), principal), stop);
            let (end, ()) = tokio::join!(served, carry(&carried, &*channel));
            // There may be no reader left.
            let _ = ending.send(Some(end.map_err(Failure::from)));
        });
        Ok(serving)
    }

    /// Begins to serve HTTP; `options` are [`HttpServingOptions`] as JSON. Returns when the server listens.
    pub async fn listen(
        &self,
        host: String,
        port: u16,
        options: Option<String>,
    ) -> Result<Arc<Serving>, Failure> {
        let options: HttpServingOptions = read_or_default("the options", options.as_deref())?;
        let (core, options) = (self.core.clone(), options.options()?);
        let listening = async move { foreign::listen(&core, (host, port), options).await };
        self.begin(listening, |http| (http.url(), http.address().port()))
            .await
    }

    /// Begins to serve a Unix socket; `options` are [`UnixServingOptions`] as JSON. Returns when the server listens.
    pub async fn listen_unix(
        &self,
        path: String,
        options: Option<String>,
    ) -> Result<Arc<Serving>, Failure> {
        let options: UnixServingOptions = read_or_default("the options", options.as_deref())?;
        let listening = foreign::local_socket(path, options.options()?);
        self.begin(listening, |unix| (unix.url(), 0)).await
    }
}

impl Server {
    fn calls_of_handlers(&self) -> &Arc<HandlerQueue> {
        let open = || {
            let queues = self.runtime.handler_queues();
            queues.open(self.runtime.queue().clone())
        };
        self.handler_queue.get_or_init(open)
    }

    /// Opens a transport on the I/O thread and serves it. `facts` returns its URL and port.
    async fn begin<T: Transport + Send + 'static>(
        &self,
        opening: impl Future<Output = Result<T, mcpline::Error>> + Send + 'static,
        facts: impl FnOnce(&T) -> (String, u16) + Send + 'static,
    ) -> Result<Arc<Serving>, Failure> {
        let (bound, binding) = oneshot::channel();
        let (core, runtime) = (self.core.clone(), self.runtime.clone());
        self.runtime.handle().spawn(async move {
            let transport = match opening.await {
                Ok(transport) => transport,
                Err(error) => {
                    // The caller may have given up.
                    let _ = bound.send(Err(Failure::from(error)));
                    return;
                }
            };
            let (url, port) = facts(&transport);
            let facts = TransportAddress {
                startup_message: foreign::startup_message(&core, Some(&url)),
                url: Some(url),
                port,
            };
            let (serving, stop, ending) = Serving::new(facts, runtime);
            // A caller that gives up drops it, and so stops the transport.
            if bound.send(Ok(serving)).is_ok() {
                serve(core, transport, stop, ending).await;
            }
        });
        binding.await.map_err(|_| Failure::ended())?
    }
}

async fn serve(core: mcpline::Server, transport: impl Transport, stop: Stop, ending: EndSender) {
    let end = core.serve_until(transport, stop).await;
    // There may be no reader left.
    let _ = ending.send(Some(end.map_err(Failure::from)));
}

/// The end of a transport, once it has ended.
type End = Option<Result<(), Failure>>;
type EndSender = watch::Sender<End>;

/// What is known when a transport is ready.
#[derive(Default)]
struct TransportAddress {
    url: Option<String>,
    port: u16,
    startup_message: Option<String>,
}

/// A transport that is being served; dropping it stops the transport.
#[derive(uniffi::Object)]
pub struct Serving {
    stop: Stop,
    ended: watch::Receiver<End>,
    facts: TransportAddress,
    _runtime: Arc<Runtime>,
}

impl Serving {
    fn new(facts: TransportAddress, runtime: Arc<Runtime>) -> (Arc<Self>, Stop, EndSender) {
        let stop = Stop::new();
        let (ending, ended) = watch::channel(None);
        let serving = Self {
            stop: stop.clone(),
            ended,
            facts,
            _runtime: runtime,
        };
        (Arc::new(serving), stop, ending)
    }
}

/// Stops a transport whose caller gave up between its start and the return of the function that starts it.
impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

#[uniffi::export]
impl Serving {
    /// The URL; `None` for stdio.
    pub fn url(&self) -> Option<String> {
        self.facts.url.clone()
    }

    /// The port; 0 for other transports than HTTP.
    pub fn port(&self) -> u16 {
        self.facts.port
    }

    /// The line to write when the transport is ready, if there is to be one.
    pub fn startup_message(&self) -> Option<String> {
        self.facts.startup_message.clone()
    }

    /// Stops the transport: calls in flight may finish within the grace period.
    pub fn stop(&self) {
        self.stop.stop();
    }

    /// Returns when the transport has ended.
    pub async fn ended(&self) -> Result<(), Failure> {
        let mut ended = self.ended.clone();
        let end = ended.wait_for(Option::is_some).await;
        match end.as_deref() {
            Ok(Some(end)) => end.clone(),
            // The sender is gone only if the I/O thread has ended.
            _ => Err(Failure::ended()),
        }
    }
}

fn feature(kind: &str, definition: &str, options: Option<&str>) -> Result<Feature, Failure> {
    let options: FeatureOptions = read_or_default("the options", options)?;
    let kind = foreign::call_kind(kind)?;
    Ok(Feature::read(kind, definition.as_bytes(), options)?)
}

/// Reads JSON that the package wrote.
pub(crate) fn read<T: DeserializeOwned>(what: &str, json: &str) -> Result<T, Failure> {
    Ok(options::read(what, json.as_bytes())?)
}

/// Reads options that may be absent.
pub(crate) fn read_or_default<T: DeserializeOwned + Default>(
    what: &str,
    json: Option<&str>,
) -> Result<T, Failure> {
    json.map_or_else(|| Ok(T::default()), |json| read(what, json))
}
