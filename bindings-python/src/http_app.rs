//! HTTP requests that another server receives and the core answers: the basis of `Server.asgi`.

use std::collections::HashMap;
use std::fmt::Write;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri, Version};
use mcpline::TraceContext;
use mcpline::foreign::options::HttpServingOptions;
use mcpline::foreign::{self, BodyFeed, MAX_PIECE_BYTES, RequestBody, ResponseBody, SharingGuard};
use mcpline::transport::http::{Body, HttpOptions, HttpService, MountPrefix, RemoteAddress};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use pyo3::{PyTraverseError, PyVisit, intern};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::errors;
use crate::event_loop::{Event, FutureValue, Hub, Loop, lock};
use crate::runtime::Runtime;
use crate::server::read;
use crate::verifier::Verifier;
use crate::workers::Pool;

/// A request with a longer body is read without the interpreter lock.
const LONG: usize = 64 * 1024;

type ResponseFuture = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// A server as an HTTP application.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct HttpApp {
    service: HttpService,
    hub: Arc<Hub>,
    pool: Arc<Pool>,
    event_loop: Py<Loop>,
    runtime: Mutex<Option<Arc<Runtime>>>,
    shutdown_timeout: Duration,
    verify: Verifier,
    /// Until the application ends.
    sharing: Mutex<Option<SharingGuard>>,
}

#[pymethods]
impl HttpApp {
    /// Creates an application for a server that is attached to this loop.
    #[new]
    fn new(
        py: Python<'_>,
        server: &crate::server::Server,
        event_loop: Py<Loop>,
        options: &[u8],
        verify: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let verify = Verifier::new(verify);
        let options = http_options(py, options, &verify)?;
        let runtime = server.start_runtime(py)?;
        let service = server.core().http_service(options);
        let sharing = Mutex::new(server.enter_sharing(&runtime));
        Ok(Self {
            service,
            hub: server.hub().clone(),
            pool: server.pool().clone(),
            event_loop,
            runtime: Mutex::new(Some(runtime)),
            shutdown_timeout: server.core().settings().shutdown_timeout,
            verify,
            sharing,
        })
    }

    /// Checks the options of an application before there is an event loop.
    #[staticmethod]
    fn check_options(py: Python<'_>, options: &[u8], verify: Option<Py<PyAny>>) -> PyResult<()> {
        http_options(py, options, &Verifier::new(verify)).map(|_| ())
    }

    /// Begins an exchange for an ASGI scope. `span` is the trace context of a span that the ASGI server has for it. Returns the
    /// available part of the answer, and the exchange if there is
    /// more to come: read its body only if the exchange wants it.
    ///
    /// Called on the loop, where it does everything that is possible at once: a call of an async handler that does not
    /// wait never leaves the loop's thread.
    #[pyo3(signature = (scope, span = None))]
    fn begin<'py>(
        &self,
        py: Python<'py>,
        scope: &Bound<'_, PyDict>,
        span: Option<HashMap<String, String>>,
    ) -> PyResult<(Option<Bound<'py, PyAny>>, Option<HttpExchange>)> {
        let runtime = self.runtime(py)?;
        let (mut request, feed) = request(scope)?;
        if let Some(span) = span {
            let field = |name| span.get(name).map(String::as_str);
            let (parent, state) = (field("traceparent"), field("tracestate"));
            if let Some(context) = TraceContext::new(parent, state, field("baggage")) {
                request.extensions_mut().insert(context);
            }
        }
        let service = self.service.clone();
        let mut answering: ResponseFuture = Box::pin(async move { service.handle(request).await });
        let response = self.poll(py, &runtime, &mut answering, false)?;
        let exchange = |waiting| HttpExchange {
            runtime: runtime.handle().clone(),
            hub: self.hub.clone(),
            waiting: Mutex::new(Some(waiting)),
            wants: Mutex::new(None),
            feed: feed.clone(),
        };
        let Some(response) = response else {
            return Ok((
                None,
                Some(exchange(ExchangeStage::PartialResponse(answering))),
            ));
        };
        // A silent stream sets a timer.
        let _entered = runtime.handle().enter();
        let mut cx = Context::from_waker(Waker::noop());
        let (answer, rest) = PartialResponse::of(response, feed.is_unread(), &mut cx);
        let rest = rest.map(|body| exchange(ExchangeStage::Rest(body)));
        Ok((Some(answer.into_python(py)?), rest))
    }

    /// Passes a piece of the request's body to an exchange that wants it; without `more` it is the last one. Returns
    /// the available part of the answer.
    ///
    /// Called on the loop, where it does as much at once as `begin`, unless `answer_into` was called before.
    fn feed<'py>(
        &self,
        py: Python<'py>,
        exchange: &Bound<'_, HttpExchange>,
        piece: &[u8],
        more: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let exchange = exchange.get();
        let is_long = exchange.feed.push(piece, more);
        let waiting = lock(&exchange.waiting).take();
        let Some(ExchangeStage::PartialResponse(mut answering)) = waiting else {
            // Another thread polls the exchange, and has been woken.
            return Ok(None);
        };
        let runtime = self.runtime(py)?;
        let Some(response) = self.poll(py, &runtime, &mut answering, is_long)? else {
            *lock(&exchange.waiting) = Some(ExchangeStage::PartialResponse(answering));
            return Ok(None);
        };
        let _entered = runtime.handle().enter();
        let mut cx = Context::from_waker(Waker::noop());
        let (answer, rest) = PartialResponse::of(response, exchange.feed.is_unread(), &mut cx);
        *lock(&exchange.waiting) = rest.map(ExchangeStage::Rest);
        answer.into_python(py).map(Some)
    }

    /// Lets calls finish within the grace period, then answers the remaining ones with an error, and ends every session
    /// and stream. Sets the result of `future` when everything is ready to be sent.
    fn shut_down_into(&self, py: Python<'_>, future: Py<PyAny>) -> PyResult<()> {
        let runtime = lock(&self.runtime);
        let Some(runtime) = &*runtime else {
            return Err(errors::closed(py, "the application has ended"));
        };
        let (service, hub, grace) = (
            self.service.clone(),
            self.hub.clone(),
            self.shutdown_timeout,
        );
        let sharing = lock(&self.sharing).take();
        runtime.handle().spawn(async move {
            service.shut_down(grace).await;
            if let Some(sharing) = sharing {
                sharing.leave().await;
            }
            hub.post(Event::Resolve(future, FutureValue::Ended(None)));
        });
        Ok(())
    }

    /// Ends every session and stream.
    fn close(&self, py: Python<'_>) {
        self.service.close();
        drop(lock(&self.sharing).take());
        let runtime = lock(&self.runtime).take();
        if let Some(runtime) = runtime
            && let Some(runtime) = Arc::into_inner(runtime)
        {
            runtime.close(py);
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.verify.traverse(&visit)?;
        visit.call(&self.event_loop)
    }

    fn __clear__(&self) {
        self.verify.clear();
    }
}

impl HttpApp {
    fn runtime(&self, py: Python<'_>) -> PyResult<Arc<Runtime>> {
        lock(&self.runtime)
            .clone()
            .ok_or_else(|| errors::closed(py, "the application has ended"))
    }

    /// Advances an exchange as far as possible at once.
    fn poll(
        &self,
        py: Python<'_>,
        runtime: &Runtime,
        answering: &mut ResponseFuture,
        is_long: bool,
    ) -> PyResult<Option<Response<Body>>> {
        let _entered = runtime.handle().enter();
        let _calls = self.hub.calls().gather();
        let _jobs = self.pool.gather();
        let mut polled = match is_long {
            true => py.detach(|| poll_now(answering)),
            false => poll_now(answering),
        };
        if polled.is_none() && !self.hub.calls().is_empty() {
            Loop::drain_within(self.event_loop.bind(py))?;
            polled = poll_now(answering);
        }
        Ok(polled)
    }
}

fn poll_now(answering: &mut ResponseFuture) -> Option<Response<Body>> {
    let mut cx = Context::from_waker(Waker::noop());
    match answering.as_mut().poll(&mut cx) {
        Poll::Ready(response) => Some(response),
        Poll::Pending => None,
    }
}

/// One request that is being answered.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct HttpExchange {
    runtime: Handle,
    hub: Arc<Hub>,
    /// The rest of the response, until it is requested.
    waiting: Mutex<Option<ExchangeStage>>,
    /// Receives the futures for the pieces of the body that are requested.
    wants: Mutex<Option<mpsc::UnboundedSender<Py<PyAny>>>>,
    feed: Feed,
}

/// The request's body, as the outer server receives it.
#[derive(Clone)]
struct Feed {
    body: BodyFeed,
    received: Arc<RequestBodyProgress>,
    /// Whether there may be a body.
    is_expected: bool,
    /// Whether the connection cannot be reused until the body is read to its end.
    is_http_1: bool,
}

#[derive(Default)]
struct RequestBodyProgress {
    bytes: AtomicUsize,
    ended: AtomicBool,
}

impl Feed {
    /// Passes on a piece. Returns whether the body is a long one.
    fn push(&self, piece: &[u8], more: bool) -> bool {
        let before = self
            .received
            .bytes
            .fetch_add(piece.len(), Ordering::Relaxed);
        self.received.ended.store(!more, Ordering::Relaxed);
        if let Some(waker) = self.body.push(Bytes::copy_from_slice(piece), more) {
            waker.wake();
        }
        before + piece.len() > LONG
    }

    /// Whether the connection must be closed after the response, because the outer server would read the rest of the
    /// body in vain.
    fn is_unread(&self) -> bool {
        self.is_expected && self.is_http_1 && !self.received.ended.load(Ordering::Relaxed)
    }
}

/// What an exchange is waiting for.
enum ExchangeStage {
    PartialResponse(ResponseFuture),
    Rest(ResponseBody),
}

#[pymethods]
impl HttpExchange {
    /// Sets the result of `future` to the available part of the answer, once there is one.
    fn answer_into(&self, py: Python<'_>, future: Py<PyAny>) -> PyResult<()> {
        let Some(ExchangeStage::PartialResponse(answering)) = lock(&self.waiting).take() else {
            return Err(errors::closed(py, "the request has been answered"));
        };
        let wanted = self.open();
        self.runtime.spawn(answer(
            self.hub.clone(),
            answering,
            future,
            wanted,
            self.feed.clone(),
        ));
        Ok(())
    }

    /// Whether the request may have a body that the core has not read to its end.
    #[getter]
    fn has_body(&self) -> bool {
        self.feed.is_expected && !self.feed.received.ended.load(Ordering::Relaxed)
    }

    /// Whether the core is waiting for the next piece of the request's body.
    #[getter]
    fn wants_body(&self) -> bool {
        self.feed.body.is_wanted()
    }

    /// Sets the result of `future` to `True` when the core waits for the next piece of the request's body, and to
    /// `False` when it needs no more of it.
    fn wants_body_into(&self, future: Py<PyAny>) {
        let hub = self.hub.clone();
        self.feed.body.on_wanted(move |wanted| {
            hub.post(Event::Resolve(future, FutureValue::Wanted(wanted)));
        });
    }

    /// Sets the result of `future` to the next piece of the body; to `None` after the last one.
    fn next_into(&self, py: Python<'_>, future: Py<PyAny>) -> PyResult<()> {
        let waiting = lock(&self.waiting).take();
        if let Some(ExchangeStage::Rest(body)) = waiting {
            let wanted = self.open();
            self.runtime.spawn(pump(self.hub.clone(), body, wanted));
        }
        let wants = lock(&self.wants);
        wants
            .as_ref()
            .and_then(|wants| wants.send(future).ok())
            .ok_or_else(|| errors::closed(py, "the response has ended"))
    }

    /// Reports that the client has disconnected, or that the rest of the response is not needed.
    fn close(&self) {
        if let Some(waker) = self.feed.body.set_disconnected() {
            waker.wake();
        }
        lock(&self.wants).take();
        let waiting = lock(&self.waiting).take();
        if waiting.is_some() {
            // Dropping it informs the core of the end.
            let _entered = self.runtime.enter();
            drop(waiting);
        }
    }
}

impl HttpExchange {
    fn open(&self) -> mpsc::UnboundedReceiver<Py<PyAny>> {
        let (wants, wanted) = mpsc::unbounded_channel();
        *lock(&self.wants) = Some(wants);
        wanted
    }
}

/// The head of a response, and as much of its body as is available and the outer server takes at once.
pub(crate) struct PartialResponse {
    head: http::response::Parts,
    body: Bytes,
    /// What to add as `content-length`.
    length: Option<u64>,
    is_complete: bool,
    closes: bool,
}

impl PartialResponse {
    /// Takes the available part of a response; the rest, if any, is left to the caller. `closes` marks the connection
    /// as not reusable.
    fn of(
        response: Response<Body>,
        closes: bool,
        cx: &mut Context<'_>,
    ) -> (Self, Option<ResponseBody>) {
        let (head, body) = response.into_parts();
        let mut body = ResponseBody::new(body);
        let begun = body.begin(MAX_PIECE_BYTES, cx);
        let length = body.content_length(&head, &begun);
        let (begun, is_complete) = begun;
        let answer = Self {
            length,
            head,
            body: begun,
            is_complete,
            closes,
        };
        (answer, (!is_complete).then_some(body))
    }

    /// Returns `(status, [(name, value), …], body, whether that is all of it)`.
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let headers = PyList::empty(py);
        for (name, value) in &self.head.headers {
            let name = PyBytes::new(py, name.as_str().as_bytes());
            headers.append((name, PyBytes::new(py, value.as_bytes())))?;
        }
        if let Some(length) = self.length {
            let length = length.to_string();
            let name = PyBytes::new(py, b"content-length");
            headers.append((name, PyBytes::new(py, length.as_bytes())))?;
        }
        if self.closes {
            headers.append((PyBytes::new(py, b"connection"), PyBytes::new(py, b"close")))?;
        }
        let body = PyBytes::new(py, &self.body);
        let answer = (self.head.status.as_u16(), headers, body, self.is_complete);
        Ok(answer.into_pyobject(py)?.into_any())
    }
}

/// Waits for the answer to a request, then for a consumer of the rest. Ends when the consumer is gone: that drops the
/// core's future or body, which informs the core that the client has disconnected.
async fn answer(
    hub: Arc<Hub>,
    answering: ResponseFuture,
    future: Py<PyAny>,
    mut wanted: mpsc::UnboundedReceiver<Py<PyAny>>,
    feed: Feed,
) {
    let response = tokio::select! {
        biased;
        response = answering => response,
        // Nothing is requested before the answer is available, so this is the end of the channel.
        _ = wanted.recv() => return,
    };
    let mut response = Some(response);
    let (answer, rest) = poll_fn(|cx| match response.take() {
        Some(response) => Poll::Ready(PartialResponse::of(response, feed.is_unread(), cx)),
        None => Poll::Pending,
    })
    .await;
    hub.post(Event::Resolve(future, FutureValue::Response(answer)));
    if let Some(body) = rest {
        pump(hub, body, wanted).await;
    }
}

/// Passes on pieces of a body as they are requested.
async fn pump(
    hub: Arc<Hub>,
    mut body: ResponseBody,
    mut wanted: mpsc::UnboundedReceiver<Py<PyAny>>,
) {
    while let Some(want) = wanted.recv().await {
        let chunk = tokio::select! {
            chunk = poll_fn(|cx| body.poll_piece(cx)) => chunk,
            // No piece is requested while another one is, so this is the end of the channel.
            _ = wanted.recv() => {
                hub.post(Event::Resolve(want, FutureValue::Chunk(None)));
                return;
            }
        };
        let ended = chunk.is_none();
        hub.post(Event::Resolve(want, FutureValue::Chunk(chunk)));
        if ended {
            return;
        }
    }
}

/// Returns the client's address, if the outer server knows it: `client` is a host and a port, or `None` for a Unix
/// socket.
fn remote_address(scope: &Bound<'_, PyDict>) -> PyResult<Option<IpAddr>> {
    let Some(client) = scope.get_item(intern!(scope.py(), "client"))? else {
        return Ok(None);
    };
    // A host that is not an address, as some test clients send, identifies no client.
    let host = client.get_item(0).and_then(|host| host.extract::<String>());
    Ok(host.ok().and_then(|host| host.parse().ok()))
}

/// Converts an ASGI scope to a request.
fn request(scope: &Bound<'_, PyDict>) -> PyResult<(Request<RequestBody>, Feed)> {
    let py = scope.py();
    let none = || errors::usage_error(py, "this is not an HTTP request");
    let mut request = Request::new(());
    let method = scope
        .get_item(intern!(py, "method"))?
        .ok_or_else(none)?
        .cast_into::<PyString>()?;
    let method = Method::from_bytes(method.to_str()?.as_bytes()).map_err(|_| none())?;
    *request.method_mut() = method.clone();
    let (address, prefix) = address(scope)?;
    *request.uri_mut() = Uri::try_from(address).map_err(|_| none())?;
    if let Some(prefix) = prefix {
        request.extensions_mut().insert(prefix);
    }
    let map = request.headers_mut();
    let headers = scope.get_item(intern!(py, "headers"))?.ok_or_else(none)?;
    for header in headers.try_iter()? {
        let (name, value): (Bound<'_, PyBytes>, Bound<'_, PyBytes>) = header?.extract()?;
        map.append(
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| none())?,
            HeaderValue::from_bytes(value.as_bytes()).map_err(|_| none())?,
        );
    }
    let length = match map.get(CONTENT_LENGTH) {
        Some(length) => length.to_str().ok().and_then(|length| length.parse().ok()),
        None => None,
    };
    let is_expected = match length {
        Some(length) => length > 0,
        // HTTP/2 needs no header for a body.
        None => map.contains_key(TRANSFER_ENCODING) || method == Method::POST,
    };
    let version = text_of(scope, intern!(py, "http_version"))?;
    match version
        .as_ref()
        .map(|version| version.to_str())
        .transpose()?
    {
        Some("1.0") => *request.version_mut() = Version::HTTP_10,
        Some("1.1") => *request.version_mut() = Version::HTTP_11,
        Some("2") => *request.version_mut() = Version::HTTP_2,
        Some("3") => *request.version_mut() = Version::HTTP_3,
        _ => foreign::set_unknown_http_version(request.extensions_mut()),
    }
    let is_http_1 = match &version {
        Some(version) => version.to_str()?.starts_with('1'),
        None => true,
    };
    request
        .extensions_mut()
        .insert(AsgiScope(Arc::new(scope.clone().unbind())));
    if let Some(address) = remote_address(scope)? {
        request.extensions_mut().insert(RemoteAddress(address));
    }
    let (body, feed) = RequestBody::new(length);
    if !is_expected {
        // The body is complete: a refusal need not wait for it. It has no reader yet.
        let _ = feed.push(Bytes::new(), false);
    }
    let feed = Feed {
        body: feed,
        received: Arc::default(),
        is_expected,
        is_http_1,
    };
    Ok((request.map(|()| body), feed))
}

/// The metadata of the protected resource, which an outer application serves apart from the mount.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct MetadataEndpoint {
    core: mcpline::transport::http::MetadataEndpoint,
}

#[pymethods]
impl MetadataEndpoint {
    /// Creates the document for these options, which must contain `auth`.
    #[new]
    fn new(py: Python<'_>, options: &[u8]) -> PyResult<Self> {
        let auth = http_options(py, options, &Verifier::default())?.auth;
        let auth = auth.ok_or_else(|| {
            errors::usage_error(py, "`auth` is not set, so there is no metadata to serve")
        })?;
        let core = mcpline::transport::http::MetadataEndpoint::of(&auth).ok_or_else(|| {
            errors::usage_error(
                py,
                "`auth` has no authorization server, so there is no metadata: set `authorization_servers` or an issuer",
            )
        })?;
        Ok(Self { core })
    }

    /// The path to serve the document at, from the root of the origin.
    #[getter]
    fn path(&self) -> &str {
        self.core.path()
    }

    /// Answers a request of this method.
    fn answer<'py>(&self, py: Python<'py>, method: &str) -> PyResult<Bound<'py, PyAny>> {
        let mut request = Request::new(());
        *request.method_mut() = Method::from_bytes(method.as_bytes()).map_err(|_| {
            errors::usage_error(py, "invalid HTTP request: its method is not valid")
        })?;
        let mut cx = Context::from_waker(Waker::noop());
        let (answer, _) = PartialResponse::of(self.core.handle(&request), false, &mut cx);
        answer.into_python(py)
    }
}

/// The ASGI scope of a request, stored in its extensions, through which handlers see additions of middleware.
#[derive(Clone)]
pub(crate) struct AsgiScope(pub(crate) Arc<Py<PyDict>>);

/// Returns a text of a scope.
fn text_of<'py>(
    scope: &Bound<'py, PyDict>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyString>>> {
    let value: Option<Bound<'_, PyAny>> = scope.get_item(name)?;
    Ok(value.map(Bound::cast_into).transpose()?)
}

/// Returns path and query, and the prefix of the path that is the mount point. The path includes it, whether or not the
/// outer application has removed it, and is escaped again: ASGI passes it decoded.
fn address(scope: &Bound<'_, PyDict>) -> PyResult<(Vec<u8>, Option<MountPrefix>)> {
    let py = scope.py();
    let text = |name| text_of(scope, name);
    let path = text(intern!(py, "path"))?;
    let path = match &path {
        Some(path) => path.to_str()?,
        None => "",
    };
    let root = text(intern!(py, "root_path"))?;
    let root = match &root {
        Some(root) => root.to_str()?.trim_end_matches('/'),
        None => "",
    };
    let path = match path.strip_prefix(root) {
        Some(below) if below.is_empty() || below.starts_with('/') => below,
        _ => path,
    };
    let mut address = escaped(root);
    let prefix = (!root.is_empty()).then(|| MountPrefix(address.clone()));
    address.push_str(&escaped(path));
    let mut address = address.into_bytes();
    if address.is_empty() {
        address.push(b'/');
    }
    if let Some(query) = scope.get_item(intern!(py, "query_string"))? {
        let query = query.cast_into::<PyBytes>()?;
        if !query.as_bytes().is_empty() {
            address.push(b'?');
            address.extend_from_slice(query.as_bytes());
        }
    }
    Ok((address, prefix))
}

/// Escapes a decoded path.
fn escaped(path: &str) -> String {
    const SAFE: &[u8] = b"/:@!$&'()*+,;=~-._";
    let mut escaped = String::with_capacity(path.len() + 1);
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || SAFE.contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string never fails.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// Returns the core's options.
pub(crate) fn http_options(
    py: Python<'_>,
    options: &[u8],
    verify: &Verifier,
) -> PyResult<HttpOptions> {
    let given: HttpServingOptions = read(py, "the options", options)?;
    let options = given.options_with(|builder| verify.added_to(builder));
    options.map_err(|error| errors::core(py, &error))
}
