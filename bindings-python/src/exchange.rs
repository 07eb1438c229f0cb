//! HTTP requests that another server has received, answered by the core: what `Server.asgi` stands on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use mcpline::transport::http::{Body, HttpOptions, HttpService};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::errors;
use crate::event_loop::{Event, Hub, Value, lock};
use crate::runtime::Runtime;
use crate::server::read;

/// A server as an HTTP application.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct HttpApp {
    service: HttpService,
    hub: Arc<Hub>,
    runtime: Mutex<Option<Arc<Runtime>>>,
}

#[pymethods]
impl HttpApp {
    #[new]
    fn new(py: Python<'_>, server: &crate::server::Server, options: &[u8]) -> PyResult<Self> {
        let options = http_options(py, options)?;
        let runtime = server.start_runtime(py)?;
        let service = server.core().http_service(options);
        Ok(Self {
            service,
            hub: server.hub().clone(),
            runtime: Mutex::new(Some(runtime)),
        })
    }

    /// Begins one exchange. The result of `future` is set to the response's status, headers, and body if
    /// that is complete; else the body is read from the exchange.
    fn begin(
        &self,
        py: Python<'_>,
        method: &str,
        path: &str,
        headers: Vec<(Bound<'_, PyBytes>, Bound<'_, PyBytes>)>,
        body: &[u8],
        future: Py<PyAny>,
    ) -> PyResult<Exchange> {
        let runtime = lock(&self.runtime).clone();
        let Some(runtime) = runtime else {
            return Err(errors::closed(py, "the application has ended"));
        };
        let request = request(method, path, &headers, body)
            .ok_or_else(|| errors::misuse(py, "this is no HTTP request"))?;
        let (wants, wanted) = mpsc::unbounded_channel();
        let service = self.service.clone();
        let hub = self.hub.clone();
        runtime
            .handle()
            .spawn(answer(service, hub, request, future, wanted));
        Ok(Exchange {
            wants: Mutex::new(Some(wants)),
        })
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
}

/// One request that is being answered.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Exchange {
    wants: Mutex<Option<mpsc::UnboundedSender<Py<PyAny>>>>,
}

#[pymethods]
impl Exchange {
    /// Sets the result of `future` to the next piece of the body; to `None` after the last.
    fn next_into(&self, py: Python<'_>, future: Py<PyAny>) -> PyResult<()> {
        let wants = lock(&self.wants);
        wants
            .as_ref()
            .and_then(|wants| wants.send(future).ok())
            .ok_or_else(|| errors::closed(py, "the response has ended"))
    }

    /// Says that the client disconnected, or that nothing more of the response is needed.
    fn close(&self) {
        lock(&self.wants).take();
    }
}

/// Answers one request, and hands the body over as it is wanted. Ends when nobody wants any more of it: that
/// drops the core's future or body, which is how the core learns that a client disconnected.
async fn answer(
    service: HttpService,
    hub: Arc<Hub>,
    request: Request<Full<Bytes>>,
    future: Py<PyAny>,
    mut wanted: mpsc::UnboundedReceiver<Py<PyAny>>,
) {
    let mut early = None;
    let response = tokio::select! {
        biased;
        response = service.handle(request) => response,
        // A want before the response can't be; the channel's end can.
        want = wanted.recv() => match want {
            None => return,
            Some(want) => {
                early = Some(want);
                return drop(early);
            }
        },
    };
    drop(early);
    let (parts, mut body) = response.into_parts();
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| {
            let name = Bytes::copy_from_slice(name.as_str().as_bytes());
            (name, Bytes::copy_from_slice(value.as_bytes()))
        })
        .collect();
    let complete = complete_body(&mut body).await;
    let is_complete = complete.is_some();
    hub.post(Event::Resolve(
        future,
        Value::Response {
            status: parts.status.as_u16(),
            headers,
            body: complete,
        },
    ));
    if is_complete {
        return;
    }
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

/// The body, if it is there as a whole.
async fn complete_body(body: &mut Body) -> Option<Bytes> {
    use http_body::Body as _;
    if body.is_end_stream() {
        return Some(Bytes::new());
    }
    body.size_hint().exact()?;
    let frame = body.frame().await?.ok()?;
    frame.into_data().ok()
}

fn request(
    method: &str,
    path: &str,
    headers: &[(Bound<'_, PyBytes>, Bound<'_, PyBytes>)],
    body: &[u8],
) -> Option<Request<Full<Bytes>>> {
    let body = Full::new(Bytes::copy_from_slice(body));
    let mut request = Request::new(body);
    *request.method_mut() = Method::from_bytes(method.as_bytes()).ok()?;
    *request.uri_mut() = Uri::try_from(path).ok()?;
    let map = request.headers_mut();
    for (name, value) in headers {
        map.append(
            HeaderName::from_bytes(name.as_bytes()).ok()?,
            HeaderValue::from_bytes(value.as_bytes()).ok()?,
        );
    }
    Some(request)
}

/// Options of serving over HTTP, as Python gives them: what is absent keeps the core's default.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    path: Option<String>,
    sse_paths: Option<(String, String)>,
    serve_sse: bool,
    health_path: Option<String>,
    serve_health: bool,
    proxy_prefix: Option<String>,
    allowed_hosts: Vec<String>,
    allowed_origins: Vec<String>,
    body_limit: Option<usize>,
    read_timeout: Option<f64>,
    write_timeout: Option<f64>,
    connections: Option<usize>,
    sessions: Option<usize>,
    session_idle: Option<f64>,
    silence: Option<f64>,
    keep_alive: Option<f64>,
    retry: Option<f64>,
    kept_events: Option<usize>,
    kept_bytes: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            path: None,
            sse_paths: None,
            serve_sse: true,
            health_path: None,
            serve_health: true,
            proxy_prefix: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            body_limit: None,
            read_timeout: None,
            write_timeout: None,
            connections: None,
            sessions: None,
            session_idle: None,
            silence: None,
            keep_alive: None,
            retry: None,
            kept_events: None,
            kept_bytes: None,
        }
    }
}

/// The core's options.
pub(crate) fn http_options(py: Python<'_>, options: &[u8]) -> PyResult<HttpOptions> {
    let given: Options = read(py, "the options", options)?;
    let mut options = HttpOptions::default();
    let seconds = |value: f64| {
        Duration::try_from_secs_f64(value)
            .map_err(|error| errors::misuse(py, format!("{value} seconds: {error}")))
    };
    if let Some(path) = given.path {
        options.path = path;
    }
    if let Some(paths) = given.sse_paths {
        options.sse_paths = Some(paths);
    }
    if !given.serve_sse {
        options.sse_paths = None;
    }
    if let Some(path) = given.health_path {
        options.health_path = Some(path);
    }
    if !given.serve_health {
        options.health_path = None;
    }
    if let Some(prefix) = given.proxy_prefix {
        options.proxy_prefix = prefix;
    }
    options.allowed_hosts = given.allowed_hosts;
    options.allowed_origins = given.allowed_origins;
    if let Some(limit) = given.body_limit {
        options.body_limit = limit;
    }
    for (value, option) in [
        (given.read_timeout, &mut options.read_timeout),
        (given.write_timeout, &mut options.write_timeout),
        (given.session_idle, &mut options.session_idle),
        (given.silence, &mut options.silence),
        (given.keep_alive, &mut options.keep_alive),
        (given.retry, &mut options.retry),
    ] {
        if let Some(value) = value {
            *option = seconds(value)?;
        }
    }
    for (value, option) in [
        (given.connections, &mut options.connections),
        (given.sessions, &mut options.sessions),
        (given.kept_events, &mut options.kept_events),
        (given.kept_bytes, &mut options.kept_bytes),
    ] {
        if let Some(value) = value {
            *option = value;
        }
    }
    Ok(options)
}
