//! Resources that resource templates list: their list handlers run when a client gets the last page of `resources/list`.

use std::collections::HashSet;

use mcpline_protocol::limits::MAX_INLINE_MATCH_STEPS;
use mcpline_protocol::schema::StepBudget;
use mcpline_protocol::vocabulary::Resource;
use mcpline_protocol::wire::{JsonKind, Method, Params, Raw};
use mcpline_protocol::{Printable, Quoted, Revision, RpcError, adapt, checks};
use tokio::sync::oneshot;

use crate::error::Error;
use crate::middleware::MiddlewareFuture;
use crate::quota::Charge;
use crate::sync::{Arc, Mutex, PoisonError};
use crate::warning_limit::warn_limited;

use super::Server;
use super::call::{Call, CallState, CurrentRequest, Target};
use super::feature_entries::TemplateEntry;
use super::finish_call;
use super::handler::Handler;
use super::input_requests::InputRecord;
use super::item_list::Item;
use super::middleware;
use super::registry::Registry;
use super::reply::{HandlerError, Reply};

/// Maximum number of resources that templates add to a list. They are all on its last page, because handlers have no
/// cursors, and hosts that show a list to a user or a model can use no longer one.
const MAX_LISTED_RESOURCES: usize = 5_000;

/// Maximum size of the resources that templates add to a list, in bytes: a quarter of the longest line that clients accept by
/// default, which leaves room for the registered resources of the page.
const MAX_LISTED_BYTES: usize = mcpline_protocol::limits::MAX_LINE / 4;

/// A template that lists resources.
pub(super) type Lister = Arc<Item<TemplateEntry>>;

/// A call of a template's list handler.
pub(crate) struct ListCall {
    lister: Lister,
    outcome: Mutex<Option<oneshot::Sender<Result<Raw, RpcError>>>>,
    /// Counts the request as in flight while its handlers run, which may be after it was cancelled.
    _in_flight: Option<Arc<Charge>>,
}

impl Server {
    /// Sets the handler that lists resources of a template. They follow the registered resources in `resources/list`, on its
    /// last page. Connected clients are notified.
    ///
    /// The handler replies with [`Reply::Result`], an object whose `resources` are an array of resources or of URIs; see
    /// [`resource_list_handler`](super::resource_list_handler). Resources that do not match the template, or that are
    /// registered, are left out. An error of the handler is the error of the request. The handler runs for each request of a
    /// client that may use the template, and clients may not share the result: call
    /// [`notify_resource_list_changed`](Server::notify_resource_list_changed) when it changes.
    ///
    /// Replaces an earlier handler of the same template.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): there is no such template, or it is one of a mounted server.
    pub fn set_resource_template_list(
        &self,
        template: &str,
        handler: Arc<dyn Handler>,
    ) -> Result<(), Error> {
        self.replace_feature(template, |entry: &TemplateEntry| {
            let mut changed = entry.clone();
            changed.list = Some(handler);
            Ok(changed)
        })
    }
}

impl ListCall {
    /// Returns the URI template.
    pub(super) fn name(&self) -> &str {
        &self.lister.name
    }

    pub(super) fn start(&self, call: Call) {
        match &self.lister.entry.list {
            Some(handler) => handler.call(call),
            None => call.reply(Ok(Reply::Result(Raw::EMPTY_OBJECT))),
        }
    }

    fn take_sender(&self) -> Option<oneshot::Sender<Result<Raw, RpcError>>> {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.take()
    }
}

/// Ends a call with the outcome of its handler.
pub(super) fn ended(call: &CallState, list: &ListCall, outcome: Result<Reply, HandlerError>) {
    let Some(sender) = list.take_sender() else {
        return;
    };
    if call.is_cancelled() {
        return;
    }
    let internal = |detail: &str| HandlerError::Internal(detail.to_owned());
    let outcome = outcome.and_then(|reply| {
        let resources = match reply {
            Reply::Result(result) => result.member("resources"),
            Reply::InputRequired(_) => {
                return Err(internal("the list of a template cannot ask for input"));
            }
            _ => None,
        };
        resources
            .filter(|resources| resources.kind() == JsonKind::Array)
            .ok_or_else(|| internal("the list of a template must be an array of resources"))
    });
    // Nothing waits for it if the request has ended.
    let _ = sender.send(outcome.map_err(|error| finish_call::as_error(call, error)));
}

/// Runs the list handlers in the order of registration, and passes their resources to `finish`: a JSON array. `finish` is not
/// called if the request ends before.
pub(super) fn run(
    registry: Arc<Registry>,
    listers: Vec<Lister>,
    request: Arc<CurrentRequest>,
    params: Option<Params>,
    in_flight: Option<Arc<Charge>>,
    finish: Box<dyn FnOnce(Result<Raw, RpcError>) + Send>,
) {
    let (key, connection) = (request.key, request.connection.clone());
    let end = move || connection.end_of_request(key?);
    let runtime = request.connection.runtime().clone();
    let listing = move || -> MiddlewareFuture {
        Box::pin(list(registry, listers, request, params, in_flight))
    };
    middleware::drive(&runtime, end, listing, move |outcome| {
        if let Some(outcome) = outcome {
            finish(outcome);
        }
    });
}

async fn list(
    registry: Arc<Registry>,
    listers: Vec<Lister>,
    request: Arc<CurrentRequest>,
    params: Option<Params>,
    in_flight: Option<Arc<Charge>>,
) -> Result<Raw, RpcError> {
    let mut listed = ListedResources::new(request.peer.revision);
    for lister in &listers {
        let resources = call(lister, &request, params.clone(), in_flight.clone()).await?;
        listed.add(&registry, lister, &resources);
        if listed.is_full {
            break;
        }
    }
    Ok(listed.into_array())
}

async fn call(
    lister: &Lister,
    request: &CurrentRequest,
    params: Option<Params>,
    in_flight: Option<Arc<Charge>>,
) -> Result<Raw, RpcError> {
    let (sender, outcome) = oneshot::channel();
    let call = CallState::new(
        Target::ResourceList(Arc::new(ListCall {
            lister: lister.clone(),
            outcome: Mutex::new(Some(sender)),
            _in_flight: in_flight,
        })),
        Method::ResourcesList,
        params,
        Raw::EMPTY_OBJECT,
        None,
        InputRecord::default(),
        Arc::new(request.with_separate_outcome()),
    );
    let ended = || RpcError::internal_error("the request has ended");
    if !request.attach(&call) {
        return Err(ended());
    }
    let call = CancelOnDrop(call);
    call.0.start();
    outcome.await.unwrap_or_else(|_| Err(ended()))
}

/// Cancels the call when the request ends before it.
struct CancelOnDrop(Arc<CallState>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The resources that handlers have listed so far, as JSON for one revision.
struct ListedResources {
    revision: Revision,
    json: Vec<u8>,
    uris: HashSet<String>,
    /// The limits are reached.
    is_full: bool,
}

/// Why a resource is not listed.
enum UnlistedReason {
    /// It is in the list already.
    Duplicate,
    /// For the author.
    Invalid { uri: String, reason: String },
}

impl ListedResources {
    fn new(revision: Revision) -> Self {
        Self {
            revision,
            json: b"[".to_vec(),
            uris: HashSet::new(),
            is_full: false,
        }
    }

    fn into_array(mut self) -> Raw {
        self.json.push(b']');
        Raw::from_trusted(self.json)
    }

    /// Adds the resources of one template. Logs the first that is left out for a mistake of its handler.
    fn add(&mut self, registry: &Registry, lister: &Lister, resources: &Raw) {
        let mut invalid = 0_usize;
        let mut first = None;
        for resource in resources.elements().into_iter().flatten() {
            let resource = match self.checked(registry, lister, &resource) {
                Ok(resource) => resource,
                Err(UnlistedReason::Duplicate) => continue,
                Err(UnlistedReason::Invalid { uri, reason }) => {
                    invalid += 1;
                    first.get_or_insert((uri, reason));
                    continue;
                }
            };
            let rendered = Raw::from_serialize(&*adapt::resource(&resource, self.revision));
            let Ok(rendered) = rendered else {
                continue;
            };
            let bytes = self.json.len() + 1 + rendered.as_bytes().len();
            if self.uris.len() == MAX_LISTED_RESOURCES || bytes > MAX_LISTED_BYTES {
                self.is_full = true;
                warn_limited!(
                    template = &*lister.name,
                    "`resources/list` is cut: the lists of resource templates have {MAX_LISTED_RESOURCES} resources and \
                     {MAX_LISTED_BYTES} bytes at most"
                );
                break;
            }
            if !self.uris.is_empty() {
                self.json.push(b',');
            }
            self.json.extend_from_slice(rendered.as_bytes());
            self.uris.insert(resource.uri);
        }
        if let Some((uri, reason)) = first {
            warn_limited!(
                template = &*lister.name,
                uri = %Quoted(&uri),
                "left out {invalid} resources that the list of a resource template returned; the first: {}",
                Printable(&reason)
            );
        }
    }

    fn checked(
        &self,
        registry: &Registry,
        lister: &Lister,
        listed: &Raw,
    ) -> Result<Resource, UnlistedReason> {
        let mut resource = read(listed).map_err(|reason| UnlistedReason::Invalid {
            uri: String::new(),
            reason,
        })?;
        if let Some(origin) = &lister.origin {
            let sources = origin.sources.iter().rev();
            resource.uri = sources.fold(resource.uri, |uri, source| source.mounted_uri(uri));
        }
        let uri = &resource.uri;
        if self.uris.contains(uri) || registry.resources.get(uri).is_some() {
            return Err(UnlistedReason::Duplicate);
        }
        match check(&lister.entry, &resource) {
            Ok(()) => Ok(resource),
            Err(reason) => Err(UnlistedReason::Invalid {
                uri: resource.uri,
                reason,
            }),
        }
    }
}

/// Reads a resource or a URI. The name of a resource without one is its URI.
fn read(listed: &Raw) -> Result<Resource, String> {
    if let Some(uri) = listed.string_value() {
        return Ok(Resource::new(uri.as_ref(), uri.as_ref()));
    }
    let named = match (listed.member("name"), listed.member("uri")) {
        (None, Some(uri)) => listed.with("name", &uri),
        _ => listed.clone(),
    };
    named.decode().map_err(|error| error.to_string())
}

/// Checks that clients can read a resource by the template that lists it.
fn check(entry: &TemplateEntry, resource: &Resource) -> Result<(), String> {
    let uri = &resource.uri;
    checks::resource(resource)?;
    let mut budget = StepBudget::new(MAX_INLINE_MATCH_STEPS, None);
    let variables = entry.pattern.matches_within(uri, &mut budget);
    let variables = variables.map_err(|limit| limit.to_string())?;
    let variables = variables.ok_or("the URI does not match the template")?;
    checks::path_variables(
        &entry.pattern,
        &variables,
        &entry.options.unchecked_variables,
    )
}
