//! HTTP requests that another server receives: the basis of `Server.fetch` and `Server.handler`.
//!
//! The core's answer is polled on the JavaScript thread, so that a call of a handler that does not wait never leaves
//! it. When an exchange is woken later, it is polled there again.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::ThreadId;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri, Version};
use mcpline::TraceContext;
use mcpline::foreign::options::CallerOptions;
use mcpline::foreign::{self, BodyFeed, RequestBody, ResponseBody, SharingGuard};
use mcpline::transport::http::{Body, HttpService, MountPrefix, RemoteAddress};
use napi::bindgen_prelude::{Array, Buffer, JsValue, Uint8ArraySlice};
use napi::{Env, Result, sys};
use napi_derive::napi;

use crate::failure::Failure;
use crate::hub::{Event, Hub, PromiseOutcome, Shared, lock};
use crate::server::read;
use crate::text;
use crate::thread_waker::check;

/// The number of an exchange, stored in the extensions of its request.
#[derive(Clone, Copy)]
pub(crate) struct ExchangeNumber(pub(crate) u32);

/// Exchanges that are being answered, by the numbers that JavaScript assigned.
#[derive(Default)]
pub(crate) struct HttpExchanges {
    open: Mutex<HashMap<u32, HttpExchange>>,
    /// Exchanges that were woken while `collecting`.
    ready: Mutex<Vec<u32>>,
    /// Whether the JavaScript thread is going to check `ready` itself.
    collecting: AtomicBool,
}

impl HttpExchanges {
    /// Starts or stops collecting woken exchanges. Returns those that were collected.
    pub(crate) fn collect(&self, begins: bool) -> Vec<u32> {
        self.collecting.store(begins, Ordering::Relaxed);
        std::mem::take(&mut *lock(&self.ready))
    }

    pub(crate) fn clear(&self) {
        let open = std::mem::take(&mut *lock(&self.open));
        drop(open);
    }
}

struct HttpExchange {
    state: State,
    waker: Arc<ExchangeWaker>,
    /// Feeds the request's body, until its end.
    feed: BodyFeed,
}

enum State {
    Answering(ResponseFuture),
    Body(ResponseBody),
}

type ResponseFuture = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

struct ExchangeWaker {
    number: u32,
    shared: Weak<Shared>,
    thread: ThreadId,
    woken: AtomicBool,
}

impl Wake for ExchangeWaker {
    fn wake(self: Arc<Self>) {
        Self::wake_by_ref(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.woken.swap(true, Ordering::AcqRel) {
            return;
        }
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        if shared.exchanges.collecting.load(Ordering::Relaxed)
            && std::thread::current().id() == self.thread
        {
            lock(&shared.exchanges.ready).push(self.number);
        } else {
            shared.post(Event::Ready(self.number));
        }
    }
}

/// A server as an HTTP application.
#[napi]
pub struct HttpApp {
    service: HttpService,
    shared: Arc<Shared>,
    write_timeout: Duration,
    shutdown_timeout: Duration,
    /// Until the application ends.
    sharing: Mutex<Option<SharingGuard>>,
}

impl HttpApp {
    pub(crate) fn new(
        service: HttpService,
        write_timeout: Duration,
        shutdown_timeout: Duration,
        shared: Arc<Shared>,
        sharing: Option<SharingGuard>,
    ) -> Self {
        Self {
            service,
            shared,
            write_timeout,
            shutdown_timeout,
            sharing: Mutex::new(sharing),
        }
    }
}

#[napi]
impl HttpApp {
    /// Maximum time in ms in which a client reads nothing of a response.
    #[napi(getter)]
    pub fn write_timeout(&self) -> f64 {
        self.write_timeout.as_secs_f64() * 1000.0
    }

    /// Returns the path and content of the resource metadata; nothing without authorization.
    #[napi(catch_unwind)]
    pub fn well_known(&self) -> Option<Vec<String>> {
        let well_known = self.service.well_known()?;
        let document = String::from_utf8_lossy(well_known.json()).into_owned();
        Some(vec![well_known.path().to_owned(), document])
    }

    /// Refuses all requests from now on. For an application without sessions and requests.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.service.close();
        drop(lock(&self.sharing).take());
    }

    /// Lets calls finish within the grace period, then answers the remaining ones with an error, and ends every session
    /// and stream. The promise with this number is settled when everything is ready to be written.
    #[napi(catch_unwind)]
    pub fn shut_down(&self, ended: u32) -> Result<()> {
        let (service, shared) = (self.service.clone(), self.shared.clone());
        let grace = self.shutdown_timeout;
        let runtime = self.shared.runtime()?;
        let sharing = lock(&self.sharing).take();
        runtime.spawn(async move {
            service.shut_down(grace).await;
            if let Some(sharing) = sharing {
                sharing.leave().await;
            }
            shared.post(Event::Settled(ended, PromiseOutcome::Done));
        });
        Ok(())
    }
}

#[napi]
impl Hub {
    /// Begins an exchange of an application. Takes its number, the client's address if known, the caller if the outer
    /// server has authenticated it (JSON), the version of HTTP (11 for 1.1, 0 if it is not known), the method, the path with the
    /// query, the length of the prefix of the path below which the application is mounted, the headers (names and values alternating, one per line) and the
    /// available part of the body, which is all of it without `more`. `span` is the trace context of the outer server's span, if
    /// there is one: `traceparent`, `tracestate` and `baggage`, one per line. Returns the same as `poll_exchange`.
    #[napi(catch_unwind)]
    #[allow(clippy::too_many_arguments, reason = "called in one place")]
    pub fn begin_exchange(
        &self,
        env: Env,
        app: &HttpApp,
        number: u32,
        address: Option<String>,
        principal: Option<String>,
        version: u32,
        method: String,
        target: String,
        prefix: u32,
        headers: String,
        span: Option<String>,
        body: Option<Uint8ArraySlice<'_>>,
        more: bool,
        room: u32,
        texts: Array<'_>,
    ) -> Result<u32> {
        let body = body.map_or_else(Bytes::new, |body| Bytes::copy_from_slice(&body));
        let (body, feed) = begun_body(body, more);
        let mut request = request(&method, &target, headers, body)?;
        request.extensions_mut().insert(ExchangeNumber(number));
        if let Some(prefix) = target
            .get(..prefix as usize)
            .filter(|prefix| !prefix.is_empty())
        {
            let prefix = MountPrefix(prefix.to_owned());
            request.extensions_mut().insert(prefix);
        }
        if let Some(address) = address.and_then(|address| address.parse().ok()) {
            request.extensions_mut().insert(RemoteAddress(address));
        }
        match version {
            10 => *request.version_mut() = Version::HTTP_10,
            11 => *request.version_mut() = Version::HTTP_11,
            20 => *request.version_mut() = Version::HTTP_2,
            // `fetch` does not know it.
            _ => foreign::set_unknown_http_version(request.extensions_mut()),
        }
        if let Some(principal) = principal {
            let principal: CallerOptions = read("`auth`", &principal)?;
            request.extensions_mut().insert(principal.authorized());
        }
        if let Some(context) = span.as_deref().and_then(trace_context) {
            request.extensions_mut().insert(context);
        }
        let service = app.service.clone();
        let waker = Arc::new(ExchangeWaker {
            number,
            shared: Arc::downgrade(&self.shared),
            thread: std::thread::current().id(),
            woken: AtomicBool::new(false),
        });
        let answering: ResponseFuture = Box::pin(async move { service.handle(request).await });
        self.poll_answer(env, number, answering, (waker, feed), room, texts)
    }

    /// Passes a piece of the body to a request that needs it; without `more` it is the last one. Returns the same as
    /// `poll_exchange`.
    #[napi(catch_unwind)]
    pub fn feed_exchange(
        &self,
        env: Env,
        number: u32,
        piece: Option<Uint8ArraySlice<'_>>,
        more: bool,
        room: u32,
        texts: Array<'_>,
    ) -> Result<u32> {
        let Some(exchange) = self.take(number) else {
            return Err(Failure::closed("the exchange has ended").into());
        };
        let State::Answering(answering) = exchange.state else {
            return Err(Failure::usage("the exchange has been answered").into());
        };
        let piece = piece.map_or_else(Bytes::new, |piece| Bytes::copy_from_slice(&piece));
        // The exchange is polled right below, so no wake-up is needed.
        let _ = exchange.feed.push(piece, more);
        let parts = (exchange.waker, exchange.feed);
        self.poll_answer(env, number, answering, parts, room, texts)
    }

    /// Polls for the head of an answer. Returns its status, or 0 if it is not available yet. With a status, `texts`
    /// contains the headers, as in `begin_exchange`, and the available part of the body that fits into `room` bytes;
    /// the first number says whether that is all of it. With 0, the first number says whether there are calls to drain,
    /// and the second whether the core is waiting for the next piece of the body.
    #[napi(catch_unwind)]
    pub fn poll_exchange(&self, env: Env, number: u32, room: u32, texts: Array<'_>) -> Result<u32> {
        let Some(exchange) = self.take(number) else {
            return Err(Failure::closed("the exchange has ended").into());
        };
        let State::Answering(answering) = exchange.state else {
            return Err(Failure::usage("the exchange has been answered").into());
        };
        let parts = (exchange.waker, exchange.feed);
        self.poll_answer(env, number, answering, parts, room, texts)
    }

    /// Returns the next piece of a body; `null` if it is not available yet. After the last piece it also returns
    /// `null`, and the first number of the table is 1.
    #[napi(catch_unwind)]
    pub fn poll_body(&self, number: u32) -> Result<Option<Buffer>> {
        let runtime = self.shared.runtime()?;
        let _entered = runtime.enter();
        self.write_cell(0, 0.0);
        let Some(exchange) = self.take(number) else {
            self.write_cell(0, 1.0);
            return Ok(None);
        };
        let State::Body(mut body) = exchange.state else {
            return Err(Failure::usage("the exchange has no answer yet").into());
        };
        let (waker, feed) = (exchange.waker, exchange.feed);
        let piece = match poll(&waker, |context| body.poll_piece(context)) {
            Poll::Ready(None) => {
                self.write_cell(0, 1.0);
                return Ok(None);
            }
            Poll::Ready(Some(piece)) => Some(Buffer::from(Vec::from(piece))),
            Poll::Pending => None,
        };
        self.put(number, State::Body(body), waker, feed);
        Ok(piece)
    }

    /// Reports that a client has disconnected, or that the rest of an answer is not needed.
    #[napi(catch_unwind)]
    pub fn drop_exchange(&self, number: u32) -> Result<()> {
        let runtime = self.shared.runtime()?;
        // Dropping it informs the core of the end.
        let _entered = runtime.enter();
        drop(self.take(number));
        Ok(())
    }
}

impl Hub {
    fn poll_answer(
        &self,
        env: Env,
        number: u32,
        mut answering: ResponseFuture,
        (waker, feed): (Arc<ExchangeWaker>, BodyFeed),
        room: u32,
        texts: Array<'_>,
    ) -> Result<u32> {
        let runtime = self.shared.runtime()?;
        let _entered = runtime.enter();
        let gathering = self.shared.calls().gather();
        let polled = poll(&waker, |context| answering.as_mut().poll(context));
        let Poll::Ready(response) = polled else {
            self.write_cell(1, f64::from(u8::from(feed.is_wanted())));
            self.put(number, State::Answering(answering), waker, feed);
            let has_calls = !self.shared.calls().is_empty();
            if has_calls {
                // They are drained right after this, so no thread needs to be woken.
                std::mem::forget(gathering);
            }
            self.write_cell(0, f64::from(u8::from(has_calls)));
            return Ok(0);
        };
        drop(gathering);
        let (head, body) = response.into_parts();
        let mut body = ResponseBody::new(body);
        let begun = poll(&waker, |context| body.begin_text(room as usize, context));
        let length = body.content_length(&head, &begun);
        let (begun, is_complete) = begun;
        let mut lines = String::with_capacity(128);
        for (name, value) in &head.headers {
            lines.push_str(name.as_str());
            lines.push('\n');
            match value.to_str() {
                Ok(value) => lines.push_str(value),
                Err(_) => lines.extend(value.as_bytes().iter().map(|byte| *byte as char)),
            }
            lines.push('\n');
        }
        if let Some(length) = length {
            lines.push_str("content-length\n");
            lines.push_str(itoa::Buffer::new().format(length));
            lines.push('\n');
        }
        for (index, bytes) in [lines.as_bytes(), &begun].into_iter().enumerate() {
            let text = text::to_js(env.raw(), bytes)?;
            // SAFETY: both values belong to this environment and are alive.
            check(unsafe { sys::napi_set_element(env.raw(), texts.raw(), index as u32, text) })?;
        }
        self.write_cell(0, f64::from(u8::from(is_complete)));
        if !is_complete {
            self.put(number, State::Body(body), waker, feed);
        }
        Ok(u32::from(head.status.as_u16()))
    }

    fn put(&self, number: u32, state: State, waker: Arc<ExchangeWaker>, feed: BodyFeed) {
        let exchange = HttpExchange { state, waker, feed };
        lock(&self.shared.exchanges.open).insert(number, exchange);
    }

    fn take(&self, number: u32) -> Option<HttpExchange> {
        lock(&self.shared.exchanges.open).remove(&number)
    }
}

fn poll<T>(waker: &Arc<ExchangeWaker>, poll: impl FnOnce(&mut Context<'_>) -> T) -> T {
    waker.woken.store(false, Ordering::Release);
    let waker = Waker::from(waker.clone());
    poll(&mut Context::from_waker(&waker))
}

/// Reads a trace context: `traceparent`, `tracestate` and `baggage`, one per line.
fn trace_context(lines: &str) -> Option<TraceContext> {
    let mut lines = lines.split('\n').map(Some);
    let mut next = || lines.next().flatten();
    TraceContext::new(next(), next(), next())
}

/// Creates a body that begins with this piece, and its feed for the rest.
fn begun_body(piece: Bytes, more: bool) -> (RequestBody, BodyFeed) {
    let (body, feed) = RequestBody::new(None);
    // The body has no reader yet.
    let _ = feed.push(piece, more);
    (body, feed)
}

fn request(
    method: &str,
    target: &str,
    headers: String,
    body: RequestBody,
) -> Result<Request<RequestBody>> {
    let none = || Failure::usage("invalid HTTP request: its method, URL or headers are not valid");
    let mut request = Request::new(body);
    *request.method_mut() = Method::from_bytes(method.as_bytes()).map_err(|_| none())?;
    *request.uri_mut() = Uri::try_from(target).map_err(|_| none())?;
    // Header values are Latin-1, as in HTTP, and nearly always ASCII. They are slices of one buffer.
    let lines: Vec<u8> = match headers.is_ascii() {
        true => headers.into_bytes(),
        false => {
            let bytes = headers.chars().map(|char| u8::try_from(char as u32));
            bytes
                .collect::<std::result::Result<_, _>>()
                .map_err(|_| none())?
        }
    };
    let lines = Bytes::from(lines);
    let mut start = 0;
    let mut next = || {
        let end = memchr::memchr(b'\n', lines.get(start..)?).map_or(lines.len(), |at| start + at);
        let line = lines.slice(start..end);
        start = end + 1;
        Some(line)
    };
    while let (Some(name), Some(value)) = (next(), next()) {
        request.headers_mut().append(
            HeaderName::from_bytes(&name).map_err(|_| none())?,
            HeaderValue::from_maybe_shared(value).map_err(|_| none())?,
        );
    }
    Ok(request)
}
