//! Dispatches admitted requests to the features that answer them.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mcpline_protocol::ListMethod;
use mcpline_protocol::RpcError;
use mcpline_protocol::Scopes;
use mcpline_protocol::checks;
use mcpline_protocol::schema::CompiledSchema;
use mcpline_protocol::session::AdmittedRequest;
use mcpline_protocol::vocabulary::JsonObject;
use mcpline_protocol::wire::{JsonKind, Method, Params, Raw};
use mcpline_runtime::clock;
use serde_json::Value;

use crate::background;
use crate::message_sink::{MessageSink, ResponseStatus};
use crate::middleware::{MiddlewareOrigin, ToolRule, unknown_tool};
use crate::quota::{Limit, LimitOwner};
use crate::warning_limit::warn_of_limit;

use super::call::{CallState, CurrentRequest, Target};
use super::connection::Connection;
use super::custom_methods::{self, MethodEntry};
use super::feature_entries::ToolEntry;
use super::finish_call::{respond_error, respond_result};
use super::input_requests::{self, InputRecord, Retry, RetryDisposition};
use super::item_list::Item;
use super::list_pages;
use super::middleware;
use super::mounts::source_of;
use super::offloaded_validation;
use super::permission;
use super::registry::{MethodItem, Registry};
use super::reply::{ResultEnvelope, ToolReply, write_tool};
use super::request_info::HttpInfo;
use super::request_log::RequestOutcome;
use super::request_span::RequestSpan;
use super::uri_matching::{self, Matched};

/// Why a request is not dispatched.
enum Refusal {
    /// The feature's error: an unknown tool, a missing resource.
    Feature(RpcError),
    /// The request is inconsistent, or does not match its headers.
    Request(RpcError),
    /// The caller has no permission.
    Forbidden(RpcError),
    /// A tool result that reports invalid arguments.
    Tool(Arc<ToolEntry>, ToolReply),
}

impl From<RpcError> for Refusal {
    fn from(error: RpcError) -> Self {
        Self::Feature(error)
    }
}

/// Answers list requests immediately, and starts a handler for all others; with middleware around both.
pub(super) fn dispatch(
    connection: &Arc<Connection>,
    admitted: AdmittedRequest,
    sink: &Arc<dyn MessageSink>,
    http: Option<&Arc<HttpInfo>>,
    span: Option<Arc<RequestSpan>>,
) {
    let AdmittedRequest {
        key,
        id,
        method,
        params,
        peer,
    } = admitted;
    let _entered = span.as_ref().map(|span| span.scope().enter());
    let server = connection.server();
    let is_list = ListMethod::of(&method).is_some();
    let has_middleware = server.middlewares.is_used();
    // A list is answered at once, unless middleware waits. Those with list handlers are counted in `listing`.
    let (in_flight, exceeded) = if is_list && !has_middleware {
        (None, None)
    } else {
        match connection.client().begin_call() {
            Ok(in_flight) => (Some(in_flight), None),
            Err(exceeded) => (None, Some(exceeded)),
        }
    };
    let current_request = Arc::new(CurrentRequest {
        connection: connection.clone(),
        sink: sink.clone(),
        key: Some(key),
        id,
        peer,
        http: http.cloned(),
        meta: params.as_ref().and_then(Params::meta),
        in_flight,
        span: span.clone(),
        middleware: None,
        was_approved: Default::default(),
    });
    if let Some(exceeded) = exceeded {
        return refuse(&current_request, Refusal::Request(exceeded.into()));
    }
    match has_middleware {
        true => middleware::run(current_request, method, params),
        false => answer(current_request, method, params),
    }
}

/// Answers a request that no middleware handles, or that the last one has passed on.
#[inline]
pub(super) fn answer(current_request: Arc<CurrentRequest>, method: Method, params: Option<Params>) {
    let registry = current_request.connection.server().registry();
    if let Some(list) = ListMethod::of(&method) {
        return list_pages::answer(&registry, list, params, current_request);
    }
    if let Err(refusal) = call(&registry, &current_request, method, params) {
        refuse(&current_request, refusal);
    }
}

fn refuse(current_request: &CurrentRequest, refusal: Refusal) {
    match refusal {
        Refusal::Feature(error) => {
            warn_of_limit(&error);
            respond_error(current_request, ResponseStatus::Error(error.code.0), &error)
        }
        Refusal::Request(error) => {
            warn_of_limit(&error);
            respond_error(
                current_request,
                ResponseStatus::Refused(error.code.0),
                &error,
            )
        }
        Refusal::Forbidden(error) => respond_error(
            current_request,
            ResponseStatus::Forbidden(error.code.0),
            &error,
        ),
        Refusal::Tool(entry, reply) => {
            let outcome = RequestOutcome::ToolError;
            respond_result(
                current_request,
                "tools/call",
                outcome,
                256,
                |out, revision| {
                    let envelope = ResultEnvelope {
                        revision,
                        server_info: current_request.connection.server().info_json(),
                    };
                    write_tool(out, &reply, entry.wrapped, &envelope);
                },
            );
        }
    }
}

fn call(
    registry: &Arc<Registry>,
    current_request: &Arc<CurrentRequest>,
    method: Method,
    params: Option<Params>,
) -> Result<(), Refusal> {
    if method.is_custom_in(current_request.peer.revision) {
        return custom_request(registry, current_request, method, params);
    }
    let Some(params) = params else {
        return Err(RpcError::invalid_params(format!("{} needs params", method.as_str())).into());
    };
    let mut needs_approval = false;
    let (target, arguments) = match method {
        Method::ToolsCall => {
            let (entry, arguments, rule) = tool(registry, current_request, &params)?;
            needs_approval = rule == ToolRule::NeedsApproval;
            (Target::Tool(entry), arguments)
        }
        Method::PromptsGet => prompt(registry, current_request, &params)?,
        Method::ResourcesRead => match resource(registry, current_request, &params)? {
            Some(found) => found,
            None => {
                read_on_offload_thread(registry, current_request, params)?;
                return Ok(());
            }
        },
        _ => completion(registry, current_request, &params)?,
    };
    begin(
        current_request,
        method,
        Some(params),
        target,
        arguments,
        needs_approval,
    )
}

/// Finds the handler of a custom request.
fn custom_request(
    registry: &Registry,
    current_request: &Arc<CurrentRequest>,
    method: Method,
    params: Option<Params>,
) -> Result<(), Refusal> {
    let Some(MethodItem { entry, .. }) = registry.requests.get(method.as_str()) else {
        // Removed since the session admitted it.
        return Err(Refusal::Request(RpcError::method_not_found(
            method.as_str(),
        )));
    };
    entry
        .check_extension(&current_request.peer)
        .map_err(Refusal::Request)?;
    require_scopes(current_request, &entry.scopes)?;
    let client = current_request.connection.client();
    let is_retried = method.is_retried_with_input(current_request.peer.revision);
    let own = custom_methods::own_params(params.as_ref(), is_retried, client);
    let own = own.map_err(|exceeded| Refusal::Request(exceeded.into()))?;
    begin(
        current_request,
        method,
        params,
        Target::Request(entry.clone()),
        own,
        false,
    )
}

/// Starts the handler of a target.
fn begin(
    current_request: &Arc<CurrentRequest>,
    method: Method,
    params: Option<Params>,
    target: Target,
    arguments: Raw,
    needs_approval: bool,
) -> Result<(), Refusal> {
    let unchecked = match &target {
        Target::Tool(entry) => check_arguments(entry, current_request, &arguments)?,
        Target::Request(entry) => check_params(entry, &arguments)?,
        _ => None,
    };
    let mut input = None;
    let mut record = InputRecord::default();
    if method.is_retried_with_input(current_request.peer.revision)
        && !matches!(target, Target::Completion(_))
        && let Some(retry) = Retry::of(params.as_ref()).map_err(Refusal::Request)?
    {
        match input_requests::resume(
            current_request,
            &target,
            method.as_str(),
            params.as_ref(),
            &retry,
        )? {
            RetryDisposition::Taken => return Ok(()),
            RetryDisposition::Run(author, recorded) => {
                input = author;
                record = *recorded;
            }
        }
    }
    if let Target::Tool(entry) = &target
        && !entry.admit(clock::now)
    {
        let counts = current_request.connection.client().counts();
        counts.add_reached(Limit::ToolRate, LimitOwner::Server);
        return Err(RpcError::busy(format!(
            "the tool {} is called too often; try again later",
            entry.tool.name
        ))
        .into());
    }
    let call = CallState::new(
        target,
        method,
        params,
        arguments,
        input,
        record,
        current_request.clone(),
    );
    if needs_approval {
        call.demand_approval();
        if let Some(awaited) = &current_request.middleware {
            awaited.set_needs_approval();
        }
    }
    if current_request.attach(&call) {
        match unchecked {
            None => call.start(),
            Some(schema) => offloaded_validation::validate_then_start(call, schema),
        }
    }
    Ok(())
}

/// Checks the arguments of a tool whose handler does not. Returns the schema if validation takes too long for this
/// thread.
fn check_arguments(
    entry: &Arc<ToolEntry>,
    current_request: &CurrentRequest,
    arguments: &Raw,
) -> Result<Option<CompiledSchema>, Refusal> {
    let checks =
        current_request.connection.server().settings.check_input && !entry.options.decodes_itself;
    let Some(schema) = entry.input.as_ref().filter(|_| checks) else {
        return Ok(None);
    };
    match schema.validate_inline(arguments) {
        Some(Ok(())) => Ok(None),
        Some(Err(violation)) => {
            let schema = &entry.tool.input_schema;
            let reply = offloaded_validation::refused_arguments(&violation, arguments, schema);
            Err(Refusal::Tool(entry.clone(), reply))
        }
        None => Ok(Some(schema.clone())),
    }
}

/// Checks the parameters of a custom request. Returns the schema if validation takes too long for this thread.
fn check_params(entry: &MethodEntry, params: &Raw) -> Result<Option<CompiledSchema>, Refusal> {
    let Some(schema) = &entry.params else {
        return Ok(None);
    };
    match schema.validate_inline(params) {
        Some(Ok(())) => Ok(None),
        Some(Err(violation)) => Err(Refusal::Feature(offloaded_validation::refused_params(
            &violation,
        ))),
        None => Ok(Some(schema.clone())),
    }
}

/// Refuses callers without these scopes.
fn require_scopes(current_request: &CurrentRequest, scopes: &Scopes) -> Result<(), Refusal> {
    permission::check(
        &current_request.connection,
        current_request.http.as_deref(),
        &*current_request.sink,
        scopes,
    )
    .map_err(Refusal::Forbidden)
}

fn tool(
    registry: &Registry,
    current_request: &CurrentRequest,
    params: &Params,
) -> Result<(Arc<ToolEntry>, Raw, ToolRule), Refusal> {
    let name = params
        .get_str("name")
        .ok_or_else(|| RpcError::invalid_params("params.name must be a string"))?;
    let item = registry.tools.item(name.as_ref());
    let item = item
        .filter(|item| item.enabled)
        .ok_or_else(|| unknown_tool(&name))?;
    let server = current_request.connection.server();
    let rule = server.tool_rule(item, &|scopes| current_request.has_scopes(scopes));
    if rule == ToolRule::Denied {
        return Err(unknown_tool(&name).into());
    }
    let entry = &item.entry;
    require_scopes(current_request, &entry.options.scopes)?;
    let arguments = match params.get("arguments") {
        None => Raw::EMPTY_OBJECT,
        Some(arguments) if arguments.kind() == JsonKind::Object => arguments,
        Some(_) => {
            return Err(RpcError::invalid_params("params.arguments must be an object").into());
        }
    };
    if !current_request.is_changed() {
        check_headers_of(entry, current_request, &arguments).map_err(Refusal::Request)?;
    }
    Ok((entry.clone(), arguments, rule))
}

/// Checks that the headers of a call repeat its arguments (2026-07-28, `basic/transports`, `Mcp-Param`). Middleware may change the
/// arguments, so this is checked before it.
pub(super) fn check_param_headers(
    current_request: &CurrentRequest,
    method: &Method,
    params: Option<&Params>,
) -> Result<(), RpcError> {
    let (Method::ToolsCall, Some(params), true) = (method, params, current_request.http.is_some())
    else {
        return Ok(());
    };
    let server = current_request.connection.server();
    let registry = server.registry();
    let name = params.get_str("name");
    let item = name.and_then(|name| registry.tools.item(&name));
    // A tool that a policy hides is refused below like one that does not exist.
    let entry = item.filter(|item| {
        let has_scopes = |scopes: &Scopes| current_request.has_scopes(scopes);
        item.enabled && server.tool_rule(item, &has_scopes) != ToolRule::Denied
    });
    let arguments = match params.get("arguments") {
        None => Raw::EMPTY_OBJECT,
        Some(arguments) => arguments,
    };
    match entry {
        Some(item) if arguments.kind() == JsonKind::Object => {
            check_headers_of(&item.entry, current_request, &arguments)
        }
        // The refusal of the call has the reason.
        _ => Ok(()),
    }
}

fn check_headers_of(
    entry: &ToolEntry,
    current_request: &CurrentRequest,
    arguments: &Raw,
) -> Result<(), RpcError> {
    match &current_request.http {
        Some(http)
            if current_request.peer.revision.features().param_headers
                && !entry.headers.is_empty() =>
        {
            entry.headers.check(|name| http.field(name), arguments)
        }
        _ => Ok(()),
    }
}

fn prompt(
    registry: &Registry,
    current_request: &CurrentRequest,
    params: &Params,
) -> Result<(Target, Raw), Refusal> {
    let name = params
        .get_str("name")
        .ok_or_else(|| RpcError::invalid_params("params.name must be a string"))?;
    let entry = registry
        .prompts
        .get(name.as_ref())
        .ok_or_else(|| RpcError::invalid_params(format!("Unknown prompt: {name}")))?;
    require_scopes(current_request, &entry.options.scopes)?;
    let arguments = match params.get("arguments") {
        None => Raw::EMPTY_OBJECT,
        Some(arguments) if arguments.kind() == JsonKind::Object => arguments,
        Some(_) => {
            return Err(RpcError::invalid_params("params.arguments must be an object").into());
        }
    };
    let arguments = string_arguments(arguments)
        .map_err(|reason| RpcError::invalid_params(format!("the prompt {name}: {reason}")))?;
    for argument in entry.prompt.arguments.iter().flatten() {
        if argument.required == Some(true) && arguments.member(&argument.name).is_none() {
            return Err(RpcError::invalid_params(format!(
                "the prompt {name} needs the argument {}",
                argument.name
            ))
            .into());
        }
    }
    Ok((Target::Prompt(entry.clone()), arguments))
}

/// Returns the arguments of a prompt, which must be strings. `null` counts as absent.
fn string_arguments(arguments: Raw) -> Result<Raw, String> {
    let mut has_null = false;
    for (name, value) in arguments.members().into_iter().flatten() {
        match value.kind() {
            JsonKind::String => {}
            JsonKind::Null => has_null = true,
            _ => return Err(format!("the argument {name} must be a string")),
        }
    }
    if !has_null {
        return Ok(arguments);
    }
    let given: Result<JsonObject, _> = arguments.decode();
    let mut given = given.map_err(|error| error.to_string())?;
    given.retain(|_, value| !value.is_null());
    Raw::from_serialize(&given).map_err(|error| error.to_string())
}

/// Finds the resource with this URI. Returns `None` if matching templates takes too long for this thread.
fn resource(
    registry: &Registry,
    current_request: &CurrentRequest,
    params: &Params,
) -> Result<Option<(Target, Raw)>, Refusal> {
    let uri = read_uri(params)?;
    if let Some(entry) = registry.resources.get(uri.as_ref()) {
        require_scopes(current_request, &entry.options.scopes)?;
        return Ok(Some((Target::Resource(entry.clone()), Raw::EMPTY_OBJECT)));
    }
    match uri_matching::template_inline(registry, &uri) {
        Some(matched) => template(current_request, &uri, matched).map(Some),
        None => Ok(None),
    }
}

/// Matches a URI against templates on another thread, then starts the handler. Cancelling the request interrupts it.
fn read_on_offload_thread(
    registry: &Arc<Registry>,
    current_request: &Arc<CurrentRequest>,
    params: Params,
) -> Result<(), Refusal> {
    let uri = read_uri(&params)?.into_owned();
    let interrupt = Arc::new(AtomicBool::new(false));
    let goes_on = current_request
        .key
        .is_some_and(|key| current_request.connection.interrupt_at_end(key, &interrupt));
    if !goes_on {
        return Ok(());
    }
    let (registry, current_request) = (registry.clone(), current_request.clone());
    let runtime = current_request.connection.runtime().clone();
    let peer = current_request.connection.client().peer;
    background::spawn(&runtime, async move {
        let matched = uri_matching::find_template_offloaded(registry, &uri, peer, interrupt).await;
        let begun = matched
            .map_err(Refusal::from)
            .and_then(|matched| template(&current_request, &uri, matched))
            .and_then(|(target, variables)| {
                begin(
                    &current_request,
                    Method::ResourcesRead,
                    Some(params),
                    target,
                    variables,
                    false,
                )
            });
        if let Err(refusal) = begun {
            refuse(&current_request, refusal);
        }
    });
    Ok(())
}

fn read_uri(params: &Params) -> Result<Cow<'_, str>, Refusal> {
    let uri = params.get_str("uri");
    Ok(uri.ok_or_else(|| RpcError::invalid_params("params.uri must be a string"))?)
}

/// Returns the target for a URI that matched a template.
fn template(
    current_request: &CurrentRequest,
    uri: &str,
    matched: Matched,
) -> Result<(Target, Raw), Refusal> {
    let Some((entry, variables)) = matched else {
        return Err(RpcError::resource_not_found(current_request.peer.revision, Some(uri)).into());
    };
    require_scopes(current_request, &entry.options.scopes)?;
    let unchecked = &entry.options.unchecked_variables;
    checks::path_variables(&entry.pattern, &variables, unchecked)
        .map_err(|reason| RpcError::invalid_params(format!("params.uri: {reason}")))?;
    let variables = Raw::from_serialize(&variables)
        .map_err(|error| RpcError::internal_error(error.to_string()))?;
    Ok((Target::Template(entry), variables))
}

fn completion(
    registry: &Registry,
    current_request: &CurrentRequest,
    params: &Params,
) -> Result<(Target, Raw), Refusal> {
    for name in ["ref", "argument"] {
        if params
            .get(name)
            .is_none_or(|value| value.kind() != JsonKind::Object)
        {
            return Err(
                RpcError::invalid_params(format!("params.{name} must be an object")).into(),
            );
        }
    }
    let text = |of: &str, name: &str| {
        let object = params.get(of)?;
        Some(object.member(name)?.string_value()?.into_owned())
    };
    for name in ["name", "value"] {
        if text("argument", name).is_none() {
            return Err(RpcError::invalid_params(format!(
                "params.argument.{name} must be a string"
            ))
            .into());
        }
    }
    let reference = |name: &str| text("ref", name);
    let server = current_request.connection.server();
    let found = match (
        reference("type").as_deref(),
        reference("name"),
        reference("uri"),
    ) {
        (Some("ref/prompt"), Some(name), _) => {
            let item = enabled(registry.prompts.item(&name));
            item.map(|item| (&item.entry.options.scopes, source_of(server, item)))
        }
        (Some("ref/resource"), _, Some(uri)) => match enabled(registry.templates.item(&uri)) {
            Some(item) => Some((&item.entry.options.scopes, source_of(server, item))),
            None => enabled(registry.resources.item(&uri))
                .map(|item| (&item.entry.options.scopes, source_of(server, item))),
        },
        _ => None,
    };
    let Some((scopes, source)) = found else {
        return Err(RpcError::invalid_params(
            "params.ref is not a prompt or resource of this server",
        )
        .into());
    };
    require_scopes(current_request, scopes)?;
    if !current_request
        .connection
        .server()
        .take_completion_token(clock::now())
    {
        let counts = current_request.connection.client().counts();
        counts.add_reached(Limit::CompletionRate, LimitOwner::Server);
        let reason = "completions are asked for too often (`completion_rate`); try again later";
        return Err(RpcError::busy(reason).into());
    }
    let Some(source) = source else {
        return Ok((Target::Completion(None), params.raw().clone()));
    };
    let arguments = completion_at_source(params, &source.name)
        .map_err(|error| RpcError::internal_error(error.to_string()))?;
    Ok((Target::Completion(Some(source.server)), arguments))
}

fn enabled<T>(item: Option<&Arc<Item<T>>>) -> Option<&Arc<Item<T>>> {
    item.filter(|item| item.enabled)
}

/// Returns the parameters of a completion with the name that the prompt or resource has at the server that it comes from.
fn completion_at_source(params: &Params, name: &str) -> Result<Raw, serde_json::Error> {
    let mut members: JsonObject = params.raw().decode()?;
    if let Some(Value::Object(reference)) = members.get_mut("ref") {
        let key = match reference.get("type").and_then(Value::as_str) {
            Some("ref/resource") => "uri",
            _ => "name",
        };
        reference.insert(key.into(), name.into());
    }
    Raw::from_serialize(&members)
}
