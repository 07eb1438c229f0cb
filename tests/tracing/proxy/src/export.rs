//! Exports spans with OTLP over HTTP, with the crate `opentelemetry-otlp`.

use std::error::Error;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Sends requests on the runtime: the batch processor calls it on a thread of its own.
///
/// The clients that the crate `opentelemetry-http` has would add reqwest or HTTP/2 to the workspace.
#[derive(Debug)]
struct OnRuntime(Handle);

#[async_trait::async_trait]
impl HttpClient for OnRuntime {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        self.0.spawn(send(request)).await?
    }
}

async fn send(mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let authority = request.uri().authority().ok_or("no authority")?.clone();
    let path = request.uri().path_and_query().ok_or("no path")?.clone();
    *request.uri_mut() = Uri::from(path);
    let host = HeaderValue::from_str(authority.as_str())?;
    request.headers_mut().insert(HOST, host);
    let stream = TcpStream::connect(authority.as_str()).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let response = sender.send_request(request.map(Full::new)).await?;
    let (head, body) = response.into_parts();
    Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
}

/// Exports the spans of this program and of the library.
pub(crate) fn install() -> Result<SdkTracerProvider, Box<dyn Error>> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(OnRuntime(Handle::current()))
        .build()?;
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .build();
    opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("proxy"));
    let own = Targets::new().with_targets([
        ("mcpline::spans", tracing::Level::INFO),
        ("tracing_proxy", tracing::Level::INFO),
    ]);
    tracing_subscriber::registry()
        .with(layer.with_filter(own))
        .try_init()?;
    Ok(provider)
}
