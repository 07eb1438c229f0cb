//! The metrics of the server, at a path of their own.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Response, StatusCode};

use crate::error::Error;
use crate::server::Server;

use super::options::HttpOptions;
use super::response_body::Body;
use super::service::{not_allowed, refusal};

/// The media type of the text format of Prometheus.
const TEXT_FORMAT: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Checks that metrics which are to be served are on, and have a path of their own.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage), with the option to change.
pub(crate) fn check(server: &Server, options: &HttpOptions) -> Result<(), Error> {
    let Some(path) = &options.metrics_path else {
        return Ok(());
    };
    if !server.inner().has_metrics() {
        return Err(Error::usage(
            "`metrics_path` is set, but the server's metrics are off: turn on the setting `metrics`",
        ));
    }
    if !path.starts_with('/') {
        return Err(Error::usage(format!(
            "`metrics_path`: {path:?} does not begin with a slash"
        )));
    }
    let sse = options.sse_paths.as_ref().filter(|_| !options.stateless);
    let taken = if path == &options.path {
        "path"
    } else if sse.is_some_and(|(stream, messages)| path == stream || path == messages) {
        "sse_paths"
    } else if options.health_path.as_ref() == Some(path) {
        "health_path"
    } else if options.ready_path.as_ref() == Some(path) {
        "ready_path"
    } else {
        return Ok(());
    };
    Err(Error::usage(format!(
        "`metrics_path`: {path:?} is the path of `{taken}` as well: give one of them another path"
    )))
}

/// Answers a request for the metrics, whose host is allowed.
pub(super) fn answer(server: &Server, method: &Method) -> Response<Body> {
    if method != Method::GET {
        return not_allowed(method, "GET");
    }
    match text(server) {
        Some(text) => {
            let mut response = Response::new(Body::full(text));
            response.headers_mut().insert(CONTENT_TYPE, TEXT_FORMAT);
            response
        }
        None => refusal(
            StatusCode::NOT_FOUND,
            "the server's metrics are off (setting `metrics`)",
        ),
    }
}

#[cfg(feature = "metrics")]
fn text(server: &Server) -> Option<String> {
    server.inner().has_metrics().then(|| server.metrics_text())
}

/// Without the feature `metrics`, they are off.
#[cfg(not(feature = "metrics"))]
fn text(_: &Server) -> Option<String> {
    None
}
