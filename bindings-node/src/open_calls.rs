//! Open calls of handlers: JavaScript refers to each by a number, and uses its request context through it.

use mcpline::foreign::{self, IoAction};
use mcpline::middleware::MiddlewareOutcome;
use mcpline::protocol::vocabulary::LoggingLevel;
use mcpline::protocol::wire::Raw;
use mcpline::{Call, Context, ErrorKind, InputRequest, InputRequestMethod};
use napi::Result;
use napi::bindgen_prelude::{Buffer, Uint8ArraySlice};
use napi_derive::napi;

use crate::failure::Failure;
use crate::http_app::ExchangeNumber;
use crate::hub::{Event, Hub, PromiseOutcome, lock};
use crate::outcome::parse_stringified;
use crate::session_state::SessionNumber;

/// Maximum number of open calls, which the low digits of a number distinguish. The core admits far fewer.
const MAX_SLOTS: usize = 1 << 20;

/// Open calls by number. A number combines a slot and how often that slot was used, so that the number of an ended call
/// differs from those of later calls.
#[derive(Default)]
pub(crate) struct OpenCalls {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    call: Option<OpenCall>,
}

pub(crate) struct OpenCall {
    pub(crate) call: Call,
    /// Whether it arrived on the JavaScript thread, which then also replies to it.
    pub(crate) is_local: bool,
}

impl OpenCalls {
    /// Assigns a number to a call; returns the call if all are taken.
    pub(crate) fn open(&mut self, call: OpenCall) -> std::result::Result<f64, OpenCall> {
        let slot = match self.free.pop() {
            Some(slot) => slot as usize,
            None if self.slots.len() < MAX_SLOTS => {
                self.slots.push(Slot::default());
                self.slots.len() - 1
            }
            None => return Err(call),
        };
        let entry = &mut self.slots[slot];
        entry.generation = entry.generation.wrapping_add(1);
        entry.call = Some(call);
        Ok((u64::from(entry.generation) * MAX_SLOTS as u64 + slot as u64) as f64)
    }

    /// Invalidates a number.
    pub(crate) fn take(&mut self, number: f64) -> Option<OpenCall> {
        let slot = self.slot(number)?;
        let call = self.slots[slot].call.take()?;
        self.free.push(slot as u32);
        Some(call)
    }

    pub(crate) fn get(&self, number: f64) -> Option<&OpenCall> {
        self.slots[self.slot(number)?].call.as_ref()
    }

    /// Returns whether a handler is still running whose call was cancelled.
    pub(crate) fn has_cancelled(&self) -> bool {
        let mut open = self.slots.iter().filter_map(|slot| slot.call.as_ref());
        open.any(|open| open.call.context().is_cancelled())
    }

    pub(crate) fn take_all(&mut self) -> Vec<Call> {
        self.free.clear();
        let slots = std::mem::take(&mut self.slots);
        let open = slots.into_iter().filter_map(|slot| slot.call);
        open.map(|open| open.call).collect()
    }

    fn slot(&self, number: f64) -> Option<usize> {
        let number = number as u64;
        let slot = (number % MAX_SLOTS as u64) as usize;
        let entry = self.slots.get(slot)?;
        (u64::from(entry.generation) == number / MAX_SLOTS as u64).then_some(slot)
    }
}

/// Returns names and values, such as the attributes of a span, as a JSON object.
pub(crate) fn json_object(attributes: Vec<(&'static str, String)>) -> String {
    let members = attributes
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()));
    serde_json::Value::Object(members.collect()).to_string()
}

/// Information about a request, as JSON where it is more than a string.
#[napi(object, object_from_js = false)]
pub struct RequestInfo {
    /// The name of the tool, if the call is one of a tool.
    pub tool_name: Option<String>,
    /// The name of the prompt, if the call gets one.
    pub prompt_name: Option<String>,
    /// The URI of the resource, if the call reads one.
    pub uri: Option<String>,
    /// The revision that the request follows.
    pub revision: String,
    /// `Implementation` of the client.
    pub client: Option<String>,
    /// `ClientCapabilities`.
    pub client_capabilities: String,
    /// The request's JSON-RPC id.
    pub request_id: String,
    /// The kind of transport.
    pub transport: &'static str,
    /// The HTTP session's id.
    pub session_id: Option<String>,
    /// The HTTP headers, name after value.
    pub headers: Option<Vec<String>>,
    /// `_meta`.
    pub meta: Option<String>,
    /// Answers to the input requests that the handler returned.
    pub input_responses: Option<String>,
    /// The state that the handler's previous run returned.
    pub request_state: Option<String>,
    /// The authenticated caller, as JSON.
    pub auth: Option<String>,
    /// The number of the HTTP exchange, if another HTTP server received the request.
    pub exchange: Option<u32>,
}

/// The request of a route, or one to an imported API.
#[napi(object, object_from_js = false)]
pub struct HttpRequestParts {
    /// The head, as JSON.
    pub head: String,
    /// The body.
    pub body: Buffer,
}

#[napi]
impl Hub {
    /// Returns the request of a route; `null` once the call has ended.
    #[napi(catch_unwind)]
    pub fn call_route(&self, call: f64) -> Option<HttpRequestParts> {
        let (head, body) = foreign::route_request(&self.context(call)?)?;
        let body = Vec::from(body).into();
        Some(HttpRequestParts { head, body })
    }

    /// Returns the request that the HTTP client of an imported API sends; `null` once the call has ended.
    #[napi(catch_unwind)]
    pub fn call_api_request(&self, call: f64) -> Option<HttpRequestParts> {
        let (head, body) = foreign::api_request(&self.context(call)?)?;
        let body = Vec::from(body).into();
        Some(HttpRequestParts { head, body })
    }

    /// Ends the call of a route or an HTTP client with the next flush. `headers`: name after value.
    #[napi(catch_unwind)]
    pub fn reply_http(
        &mut self,
        call: f64,
        status: u32,
        headers: Vec<String>,
        body: Uint8ArraySlice<'_>,
    ) -> Result<()> {
        let pairs: Vec<_> = headers
            .chunks_exact(2)
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .collect();
        let status = u16::try_from(status).unwrap_or_default();
        let body = bytes::Bytes::copy_from_slice(&body);
        let reply =
            foreign::http_response(status, &pairs, body).map_err(|error| Failure::core(&error))?;
        let Some(open) = lock(&self.shared.open).take(call) else {
            return Ok(());
        };
        let action = IoAction::Reply(open.call, Ok(reply));
        match open.is_local {
            true => self.here.push(action),
            false => self.outgoing.push(action),
        }
        Ok(())
    }

    /// Returns information about the request of a call; `null` once it has ended.
    #[napi(catch_unwind)]
    pub fn call_info(&self, call: f64) -> Option<RequestInfo> {
        let context = self.context(call)?;
        let http = context.http();
        let headers = http.as_ref().map(|http| {
            let pairs = http.headers.iter().flat_map(|(name, value)| {
                // Values that are not UTF-8 are read as Latin-1.
                let value = value.as_bytes().iter().map(|byte| *byte as char).collect();
                [name.as_str().to_owned(), value]
            });
            pairs.collect()
        });
        let peer = context.peer();
        Some(RequestInfo {
            tool_name: context.tool_name(),
            prompt_name: context.prompt_name(),
            uri: context.uri(),
            revision: context.revision().as_str().to_owned(),
            client: peer.info.as_ref().map(text),
            client_capabilities: text(&peer.capabilities),
            request_id: text(&context.request_id()),
            transport: context.transport(),
            session_id: context.session_id(),
            headers,
            meta: context.meta().as_ref().map(text),
            input_responses: context.input_responses().as_ref().map(text),
            request_state: context.request_state(),
            auth: context.auth().map(|caller| caller.to_json().to_string()),
            exchange: exchange_of(&context),
        })
    }

    /// Returns the error for missing scopes as JSON, if the caller lacks one of these.
    #[napi(catch_unwind)]
    pub fn call_missing_scopes(&self, call: f64, scopes: Vec<String>) -> Result<Option<String>> {
        let Some(context) = self.context(call) else {
            return Err(Failure::closed("the request has ended").into());
        };
        let error = context.require_scopes(scopes).err();
        Ok(error.and_then(|error| serde_json::to_string(&error).ok()))
    }

    /// Returns the attributes of the spans of a call's input requests, as JSON; `null` once it has ended.
    #[napi(catch_unwind)]
    pub fn span_attributes(&self, call: f64) -> Option<String> {
        let attributes = foreign::span_attributes(&self.context(call)?);
        Some(json_object(attributes))
    }

    /// Returns the number of the state of the client's session; the event `SessionEnded` has the same number.
    #[napi(catch_unwind)]
    pub fn call_session(&self, call: f64) -> Result<u32> {
        let Some(context) = self.context(call) else {
            return Err(Failure::closed("the request has ended").into());
        };
        let session = foreign::session_state::<SessionNumber>(&context);
        let session = session.map_err(|failure| Failure::of(*failure))?;
        Ok(session.get(&self.shared))
    }

    /// Returns the name of the called tool or prompt, or the URI of the resource.
    #[napi(catch_unwind)]
    pub fn call_name(&self, call: f64) -> Option<String> {
        Some(lock(&self.shared.open).get(call)?.call.name())
    }

    /// Begins the span of a call's request and returns what it begins with, as JSON; `null` if another handler has begun it, or if
    /// the request has ended.
    #[napi(catch_unwind)]
    pub fn begin_span(&self, call: f64) -> Option<String> {
        foreign::begin_span(&self.context(call)?).map(|(_, description)| description)
    }

    /// Returns whether the request was cancelled, or has ended.
    #[napi(catch_unwind)]
    pub fn call_cancelled(&self, call: f64) -> bool {
        self.context(call)
            .is_none_or(|context| context.is_cancelled())
    }

    /// Returns whether a handler is still running whose call was cancelled.
    #[napi(catch_unwind)]
    pub fn has_cancelled(&self) -> bool {
        lock(&self.shared.open).has_cancelled()
    }

    /// Delivers the cancellation of a call as an event.
    #[napi(catch_unwind)]
    pub fn watch_call(&self, call: f64) {
        if let Some(context) = self.context(call) {
            let shared = self.shared.clone();
            context.on_cancel(move || shared.post(Event::Cancelled(call)));
        }
    }

    /// Reports progress with the next flush.
    #[napi(catch_unwind)]
    pub fn progress(
        &mut self,
        call: f64,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) {
        let bytes = message.as_ref().map_or(0, String::len);
        let progress =
            move |context: &Context| context.progress(progress, total, message.as_deref());
        self.hand_over(call, |context| foreign::report(context, bytes, progress));
    }

    /// Sends a log message with the next flush; `data` is JSON.
    #[napi(catch_unwind)]
    pub fn log(
        &mut self,
        call: f64,
        level: String,
        logger: Option<String>,
        data: String,
    ) -> Result<()> {
        let level = LoggingLevel::parse(&level)
            .ok_or_else(|| Failure::usage(format!("unknown log level {level}")))?;
        let data = checked(data)?;
        let bytes = data.as_bytes().len() + logger.as_ref().map_or(0, String::len);
        let log = move |context: &Context| context.log_raw(level, logger.as_deref(), &data);
        self.hand_over(call, |context| foreign::report(context, bytes, log));
        Ok(())
    }

    /// Sends a custom notification with the next flush; `params` is JSON.
    #[napi(catch_unwind)]
    pub fn notify(&mut self, call: f64, method: String, params: Option<String>) -> Result<()> {
        let params = params.map(checked).transpose()?;
        let mut refused = None;
        self.hand_over(call, |context| {
            foreign::notification(context, method, params).unwrap_or_else(|error| {
                refused = Some(error);
                None
            })
        });
        refused.map_or(Ok(()), |error| Err(Failure::core(&error).into()))
    }

    /// Closes the response stream with the next flush, while the call continues.
    #[napi(catch_unwind)]
    pub fn close_stream(&mut self, call: f64) {
        self.hand_over(call, |context| {
            Some(foreign::request(context, Context::close_stream))
        });
    }

    /// Sends an input request with the next flush: those of one turn are sent together. The promise with this number is
    /// settled with the answer, which is JSON.
    #[napi(catch_unwind)]
    pub fn request_input(
        &mut self,
        call: f64,
        promise: u32,
        method: String,
        params: Option<String>,
        key: Option<String>,
    ) -> Result<()> {
        let mut input_request = InputRequest::new(
            parse_input_request_method(&method)?,
            params.map(checked).transpose()?,
        );
        input_request.key = key;
        let Some(context) = self.context(call) else {
            return Err(Failure::closed("the request has ended").into());
        };
        let shared = self.shared.clone();
        let sink = Box::new(move |answer: std::result::Result<Raw, _>| {
            let settled = match answer {
                Ok(answer) => PromiseOutcome::Json(answer),
                Err(error) => PromiseOutcome::Failed(Failure::input_request(&error, &method)),
            };
            shared.post(Event::Settled(promise, settled));
        });
        self.outgoing
            .push(IoAction::InputRequest(context, input_request, sink));
        Ok(())
    }

    /// Passes the request of a middleware's call on with the next flush. `params` is JSON if they are changed. The promise with
    /// this number is settled with the result, which is JSON; handlers of the request run with it as their origin.
    #[napi(catch_unwind)]
    pub fn run_next(&mut self, call: f64, promise: u32, params: Option<String>) -> Result<()> {
        let params = params.map(|params| parse_stringified(params.as_bytes()));
        let params = params.transpose().map_err(Failure::usage)?;
        let Some(context) = self.context(call) else {
            return Err(Failure::closed("the request has ended").into());
        };
        let passed = self.shared.passed_requests.add(&context, promise);
        let (shared, waiting) = (self.shared.clone(), context.clone());
        let settle = move |outcome: MiddlewareOutcome| {
            shared.passed_requests.remove(&passed);
            let settled = match outcome {
                Ok(result) => PromiseOutcome::Json(result),
                Err(_) if waiting.is_cancelled() => PromiseOutcome::Failed(Failure::new(
                    ErrorKind::RequestCancelled,
                    "request was cancelled",
                )),
                Err(error) => PromiseOutcome::Failed(Failure::rpc(&error)),
            };
            shared.post(Event::Settled(promise, settled));
        };
        self.hand_over(call, |context| {
            Some(foreign::run_next(context, params, settle))
        });
        Ok(())
    }

    /// Queues an action of a call, before the one that ends it.
    fn hand_over(&mut self, call: f64, make: impl FnOnce(&Context) -> Option<IoAction>) {
        let found = lock(&self.shared.open)
            .get(call)
            .map(|open| (open.call.context(), open.is_local));
        let Some((context, is_local)) = found else {
            return;
        };
        let Some(run) = make(&context) else {
            return;
        };
        if is_local {
            self.here.push(run);
        } else {
            self.outgoing.push(run);
        }
    }

    pub(crate) fn context(&self, call: f64) -> Option<Context> {
        lock(&self.shared.open)
            .get(call)
            .map(|open| open.call.context())
    }
}

/// Returns the number of the HTTP exchange that a call arrived in, if another HTTP server received the request.
pub(crate) fn exchange_of(context: &Context) -> Option<u32> {
    let http = context.http()?;
    http.extensions
        .get::<ExchangeNumber>()
        .map(|number| number.0)
}

fn text(json: &Raw) -> String {
    json.as_str().to_owned()
}

/// Validates JSON that `JSON.stringify` wrote: this is not on the fast path.
pub(crate) fn checked(json: String) -> Result<Raw> {
    Raw::parse(json).map_err(|error| Failure::usage(error.to_string()).into())
}

/// Parses the method of an input request.
pub(crate) fn parse_input_request_method(name: &str) -> Result<InputRequestMethod> {
    InputRequestMethod::parse(name).map_err(|error| Failure::usage(error.to_string()).into())
}
