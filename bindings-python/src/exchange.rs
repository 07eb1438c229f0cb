//! HTTP requests that another server has received, answered by the core: what `Server.asgi` stands on.

use std::future::poll_fn;
use std::io::Write;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use mcpline::foreign::options::HttpServingOptions;
use mcpline::transport::http::{Body, HttpOptions, HttpService};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use pyo3::{PyTraverseError, PyVisit, intern};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::errors;
use crate::event_loop::{Event, Hub, Loop, Value, lock};
use crate::runtime::Runtime;
use crate::server::read;
use crate::verify::Verify;
use crate::workers::Pool;

/// A request whose body is longer than this is answered without the interpreter lock.
const LONG: usize = 64 * 1024;

type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// A server as an HTTP application.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct HttpApp {
    service: HttpService,
    hub: Arc<Hub>,
    pool: Arc<Pool>,
    event_loop: Py<Loop>,
    runtime: Mutex<Option<Arc<Runtime>>>,
    shutdown_grace: Duration,
    verify: Verify,
}

#[pymethods]
impl HttpApp {
    /// An application of a server that is attached to this loop.
    #[new]
    fn new(
        py: Python<'_>,
        server: &crate::server::Server,
        event_loop: Py<Loop>,
        options: &[u8],
        verify: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let verify = Verify::new(verify);
        let options = http_options(py, options, &verify)?;
        let runtime = server.start_runtime(py)?;
        let service = server.core().http_service(options);
        Ok(Self {
            service,
            hub: server.hub().clone(),
            pool: server.pool().clone(),
            event_loop,
            runtime: Mutex::new(Some(runtime)),
            shutdown_grace: server.core().settings().shutdown_grace,
            verify,
        })
    }

    /// Begins one exchange, of an ASGI scope and the request's body. Returns the answer as far as it is there, and the exchange if there is more to come.
    ///
    /// Called on the loop, where it does all that can be done at once: a call of an async handler that doesn't
    /// have to wait never leaves the loop's thread.
    fn begin<'py>(
        &self,
        py: Python<'py>,
        scope: &Bound<'_, PyDict>,
        body: &[u8],
    ) -> PyResult<(Option<Bound<'py, PyAny>>, Option<Exchange>)> {
        let runtime = lock(&self.runtime).clone();
        let Some(runtime) = runtime else {
            return Err(errors::closed(py, "the application has ended"));
        };
        let is_long = body.len() > LONG;
        let request = request(scope, body)?;
        let service = self.service.clone();
        let mut answering: Answering = Box::pin(async move { service.handle(request).await });
        let _entered = runtime.handle().enter();
        let calls = self.hub.calls().gather();
        let jobs = self.pool.jobs().gather();
        let mut polled = match is_long {
            true => py.detach(|| poll_now(&mut answering)),
            false => poll_now(&mut answering),
        };
        if polled.is_none() && !self.hub.calls().is_empty() {
            Loop::drain_within(self.event_loop.bind(py))?;
            polled = poll_now(&mut answering);
        }
        drop((calls, jobs));
        let exchange = |waiting| Exchange {
            runtime: runtime.handle().clone(),
            hub: self.hub.clone(),
            waiting: Mutex::new(Some(waiting)),
            wants: Mutex::new(None),
        };
        let Some(response) = polled else {
            return Ok((None, Some(exchange(Waiting::Answer(answering)))));
        };
        let mut cx = Context::from_waker(Waker::noop());
        let (answer, rest) = Answer::of(response, &mut cx);
        let rest = rest.map(|body| exchange(Waiting::Rest(body)));
        Ok((Some(answer.into_python(py)?), rest))
    }

    /// Lets calls end within the grace period, then answers those that are left with an error, and ends every session and
    /// stream. Sets the result of `future` when all of it is there to be sent.
    fn shut_down_into(&self, py: Python<'_>, future: Py<PyAny>) -> PyResult<()> {
        let runtime = lock(&self.runtime);
        let Some(runtime) = &*runtime else {
            return Err(errors::closed(py, "the application has ended"));
        };
        let (service, hub, grace) = (self.service.clone(), self.hub.clone(), self.shutdown_grace);
        runtime.handle().spawn(async move {
            service.shut_down(grace).await;
            hub.post(Event::Resolve(future, Value::Ended(None)));
        });
        Ok(())
    }

    /// Ends every session and stream.
    fn close(&self, py: Python<'_>) {
        self.service.close();
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

fn poll_now(answering: &mut Answering) -> Option<Response<Body>> {
    let mut cx = Context::from_waker(Waker::noop());
    match answering.as_mut().poll(&mut cx) {
        Poll::Ready(response) => Some(response),
        Poll::Pending => None,
    }
}

/// One request that is being answered.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Exchange {
    runtime: Handle,
    hub: Arc<Hub>,
    /// What is to come, until somebody wants it.
    waiting: Mutex<Option<Waiting>>,
    /// Takes what pieces of the body are wanted.
    wants: Mutex<Option<mpsc::UnboundedSender<Py<PyAny>>>>,
}

/// What an exchange waits for.
enum Waiting {
    Answer(Answering),
    Rest(Body),
}

#[pymethods]
impl Exchange {
    /// Sets the result of `future` to the answer, as far as it is there then.
    fn answer_into(&self, py: Python<'_>, future: Py<PyAny>) -> PyResult<()> {
        let Some(Waiting::Answer(answering)) = lock(&self.waiting).take() else {
            return Err(errors::closed(py, "the request has been answered"));
        };
        let wanted = self.open();
        self.runtime
            .spawn(answer(self.hub.clone(), answering, future, wanted));
        Ok(())
    }

    /// Sets the result of `future` to the next piece of the body; to `None` after the last.
    fn next_into(&self, py: Python<'_>, future: Py<PyAny>) -> PyResult<()> {
        let waiting = lock(&self.waiting).take();
        if let Some(Waiting::Rest(body)) = waiting {
            let wanted = self.open();
            self.runtime.spawn(pump(self.hub.clone(), body, wanted));
        }
        let wants = lock(&self.wants);
        wants
            .as_ref()
            .and_then(|wants| wants.send(future).ok())
            .ok_or_else(|| errors::closed(py, "the response has ended"))
    }

    /// Says that the client disconnected, or that nothing more of the response is needed.
    fn close(&self) {
        lock(&self.wants).take();
        let waiting = lock(&self.waiting).take();
        if waiting.is_some() {
            // The core learns of the end by what is dropped.
            let _entered = self.runtime.enter();
            drop(waiting);
        }
    }
}

impl Exchange {
    fn open(&self) -> mpsc::UnboundedReceiver<Py<PyAny>> {
        let (wants, wanted) = mpsc::unbounded_channel();
        *lock(&self.wants) = Some(wants);
        wanted
    }
}

/// The head of a response, and as much of its body as is there.
pub(crate) struct Answer {
    head: http::response::Parts,
    body: Bytes,
    is_complete: bool,
}

impl Answer {
    /// Takes what is there of a response; the rest is the caller's, if there is any.
    fn of(response: Response<Body>, cx: &mut Context<'_>) -> (Self, Option<Body>) {
        let (head, mut body) = response.into_parts();
        let mut begun = Bytes::new();
        let is_complete = loop {
            let Poll::Ready(frame) = Pin::new(&mut body).poll_frame(cx) else {
                break false;
            };
            let Some(frame) = frame else { break true };
            let Ok(frame) = frame;
            let Ok(piece) = frame.into_data() else {
                continue;
            };
            begun = match begun.is_empty() {
                true => piece,
                false => [begun, piece].concat().into(),
            };
        };
        let answer = Self {
            head,
            body: begun,
            is_complete,
        };
        (answer, (!is_complete).then_some(body))
    }

    /// `(status, [(name, value), …], body, whether that is all of it)`
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let headers = PyList::empty(py);
        for (name, value) in &self.head.headers {
            let name = PyBytes::new(py, name.as_str().as_bytes());
            headers.append((name, PyBytes::new(py, value.as_bytes())))?;
        }
        if self.is_complete && self.head.status != StatusCode::NO_CONTENT {
            // Without it the outer server would send the body in chunks.
            let length = self.body.len().to_string();
            let name = PyBytes::new(py, b"content-length");
            headers.append((name, PyBytes::new(py, length.as_bytes())))?;
        }
        let body = PyBytes::new(py, &self.body);
        let answer = (self.head.status.as_u16(), headers, body, self.is_complete);
        Ok(answer.into_pyobject(py)?.into_any())
    }
}

/// Waits for the answer to one request, then for whoever wants the rest of it. Ends when nobody wants any more of
/// it: that drops the core's future or body, which is how the core learns that a client disconnected.
async fn answer(
    hub: Arc<Hub>,
    answering: Answering,
    future: Py<PyAny>,
    mut wanted: mpsc::UnboundedReceiver<Py<PyAny>>,
) {
    let response = tokio::select! {
        biased;
        response = answering => response,
        // Nothing is wanted before the answer is there, so this is the channel's end.
        _ = wanted.recv() => return,
    };
    let mut response = Some(response);
    let (answer, rest) = poll_fn(|cx| match response.take() {
        Some(response) => Poll::Ready(Answer::of(response, cx)),
        None => Poll::Pending,
    })
    .await;
    hub.post(Event::Resolve(future, Value::Response(answer)));
    if let Some(body) = rest {
        pump(hub, body, wanted).await;
    }
}

/// Hands a body over as it is wanted.
async fn pump(hub: Arc<Hub>, mut body: Body, mut wanted: mpsc::UnboundedReceiver<Py<PyAny>>) {
    while let Some(want) = wanted.recv().await {
        let chunk = tokio::select! {
            chunk = body.frame() => chunk,
            // Nothing is wanted twice, so this is the channel's end.
            _ = wanted.recv() => {
                hub.post(Event::Resolve(want, Value::Chunk(None)));
                return;
            }
        };
        let chunk = chunk
            .and_then(Result::ok)
            .and_then(|frame| frame.into_data().ok());
        let ended = chunk.is_none();
        hub.post(Event::Resolve(want, Value::Chunk(chunk)));
        if ended {
            return;
        }
    }
}

/// The request that an ASGI scope describes.
fn request(scope: &Bound<'_, PyDict>, body: &[u8]) -> PyResult<Request<Full<Bytes>>> {
    let py = scope.py();
    let none = || errors::misuse(py, "this is no HTTP request");
    let mut request = Request::new(Full::new(Bytes::copy_from_slice(body)));
    let method = scope
        .get_item(intern!(py, "method"))?
        .ok_or_else(none)?
        .cast_into::<PyString>()?;
    *request.method_mut() = Method::from_bytes(method.to_str()?.as_bytes()).map_err(|_| none())?;
    let address = address(scope)?;
    *request.uri_mut() = Uri::try_from(address).map_err(|_| none())?;
    let map = request.headers_mut();
    let headers = scope.get_item(intern!(py, "headers"))?.ok_or_else(none)?;
    for header in headers.try_iter()? {
        let (name, value): (Bound<'_, PyBytes>, Bound<'_, PyBytes>) = header?.extract()?;
        map.append(
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| none())?,
            HeaderValue::from_bytes(value.as_bytes()).map_err(|_| none())?,
        );
    }
    let scope = AsgiScope(Arc::new(scope.clone().unbind()));
    request.extensions_mut().insert(scope);
    Ok(request)
}

/// What an application tells of where its tokens are had, apart from its mount.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct WellKnown {
    core: mcpline::transport::http::WellKnown,
}

#[pymethods]
impl WellKnown {
    /// What these options have to tell; they must have `auth`.
    #[new]
    fn new(py: Python<'_>, options: &[u8]) -> PyResult<Self> {
        let auth = http_options(py, options, &Verify::default())?.auth;
        let auth = auth.ok_or_else(|| {
            errors::misuse(py, "an application without auth has nothing to tell of it")
        })?;
        Ok(Self {
            core: mcpline::transport::http::WellKnown::of(&auth),
        })
    }

    /// The path to serve it at, from the root.
    #[getter]
    fn path(&self) -> &str {
        self.core.path()
    }

    /// The answer to a request of this method.
    fn answer<'py>(&self, py: Python<'py>, method: &str) -> PyResult<Bound<'py, PyAny>> {
        let mut request = Request::new(());
        *request.method_mut() = Method::from_bytes(method.as_bytes())
            .map_err(|_| errors::misuse(py, "this is no HTTP request"))?;
        let mut cx = Context::from_waker(Waker::noop());
        let (answer, _) = Answer::of(self.core.handle(&request), &mut cx);
        answer.into_python(py)
    }
}

/// The ASGI scope of a request, among its extensions, for handlers to see what middleware put there.
#[derive(Clone)]
pub(crate) struct AsgiScope(pub(crate) Arc<Py<PyDict>>);

/// Path and query. The path is the whole one, whether or not what is in front of us has taken its own part of it
/// away, and escaped again: ASGI hands it over decoded.
fn address(scope: &Bound<'_, PyDict>) -> PyResult<Vec<u8>> {
    const SAFE: &[u8] = b"/:@!$&'()*+,;=~-._";
    let py = scope.py();
    let text = |name| -> PyResult<Option<Bound<'_, PyString>>> {
        let value: Option<Bound<'_, PyAny>> = scope.get_item(name)?;
        Ok(value.map(Bound::cast_into).transpose()?)
    };
    let path = text(intern!(py, "path"))?;
    let path = match &path {
        Some(path) => path.to_str()?,
        None => "",
    };
    let root = text(intern!(py, "root_path"))?;
    let root = match &root {
        Some(root) if !path.starts_with(root.to_str()?) => root.to_str()?,
        _ => "",
    };
    let mut address = Vec::with_capacity(root.len() + path.len() + 1);
    for byte in root.bytes().chain(path.bytes()) {
        if byte.is_ascii_alphanumeric() || SAFE.contains(&byte) {
            address.push(byte);
        } else {
            // Writing to a vector never fails.
            let _ = write!(address, "%{byte:02X}");
        }
    }
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
    Ok(address)
}

/// The core's options.
pub(crate) fn http_options(
    py: Python<'_>,
    options: &[u8],
    verify: &Verify,
) -> PyResult<HttpOptions> {
    let given: HttpServingOptions = read(py, "the options", options)?;
    let options = given.options_with(|builder| verify.added_to(builder));
    options.map_err(|error| errors::core(py, &error))
}
