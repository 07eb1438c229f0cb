//! Turns HTTP requests into responses, for both eras on one endpoint.
//!
//! The standalone server, tower stacks and the HTTP servers of bindings all mount an [`HttpService`]. It owns no
//! socket.

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use mcpline_protocol::wire::encode;
use mcpline_protocol::{ErrorCode, RpcError};
use tokio::runtime::Handle;

use crate::header_names::value_of;
use crate::quota::{ClientKey, ClientQuota, Exceeded, LimitOwner, RefusalReason};
use crate::server::connection::TransportId;
use crate::server::{HttpNetwork, Principal, Server, UnknownHttpVersion};
use crate::span::NetworkAddress;
use crate::warning_limit::warn_limited;

use super::authorization::Authorization;
use super::cors::{self, CorsOrigin};
use super::endpoints::{self, Endpoint};
use super::first_requests::{AwaitedFirstRequest, AwaitedFirstRequests};
use super::in_flight::RequestsInFlight;
use super::options::HttpOptions;
use super::request_body::{CollectError, collect};
use super::response_body::Body;
#[cfg(feature = "routes")]
use super::route::{self, RequestedRoute, RouteLookup};
use super::sessions::Sessions;
use super::stream_upgrade_timers::StreamUpgradeTimers;
use super::{authorization, http_sse, legacy, metrics, modern, post, security, stream_resumption};

/// How long the rest of a refused body may take to arrive.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Maximum number of body bytes read of a request that is refused by its headers.
const DRAINED: usize = 64 * 1024;

/// Serves a [`Server`] over HTTP: a tower service, and a plain async function.
///
/// It serves the paths of its [`HttpOptions`] and no others, relative to the [`MountPrefix`] if a request has one.
///
/// [`MountPrefix`]: super::MountPrefix
#[derive(Clone)]
pub struct HttpService {
    pub(super) shared: Arc<Shared>,
    /// Set if the service serves a single connection.
    connection: Option<Arc<OneConnection>>,
}

/// State shared by the requests of one connection.
struct OneConnection {
    /// The client of the connection.
    client: Arc<ClientQuota>,
    remote: SocketAddr,
    host: security::AllowedHostCache,
    first_request: AwaitedFirstRequest,
}

/// State shared by all requests of one service.
pub(super) struct Shared {
    pub(super) server: Server,
    pub(super) options: Arc<HttpOptions>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) upgrade_timers: Arc<StreamUpgradeTimers>,
    pub(super) in_flight: Arc<RequestsInFlight>,
    /// The first requests of connections.
    pub(super) first_requests: AwaitedFirstRequests,
    pub(super) transport: TransportId,
    /// Whether a shutdown has begun.
    pub(super) is_stopping: AtomicBool,
    pub(super) closed: AtomicBool,
    /// Quota of all clients of a mount that does not provide client addresses.
    unknown_clients: Arc<ClientQuota>,
    pub(super) authorization: Authorization,
    /// The address that the standalone server is bound to.
    bound: Option<IpAddr>,
    /// Whether the service is mounted in another HTTP server.
    pub(super) is_mounted: bool,
}

impl Server {
    /// Returns an HTTP service for this server, to mount in your own program.
    pub fn http_service(&self, options: HttpOptions) -> HttpService {
        HttpService::new(self.clone(), options, None, true)
    }
}

impl HttpService {
    pub(super) fn new(
        server: Server,
        mut options: HttpOptions,
        bound: Option<IpAddr>,
        is_mounted: bool,
    ) -> Self {
        // The standalone server and the bindings have refused it.
        if let Err(error) = options.normalize() {
            tracing::warn!(%error, "an option of the HTTP service has no effect");
        }
        let authorization = Authorization::of(&mut options);
        #[cfg(feature = "routes")]
        // Here too, and below.
        if let Err(error) = route::check(&server, &options) {
            tracing::warn!(%error, "a route cannot be reached: the server itself uses its path");
        }
        if let Err(error) = metrics::check(&server, &options) {
            tracing::warn!(%error, "metrics are not served");
        }
        let transport = server.inner().next_transport();
        Self {
            connection: None,
            shared: Arc::new(Shared {
                unknown_clients: server.inner().clients().unknown_clients(),
                sessions: Sessions::new(&server, options.max_sessions, transport),
                in_flight: Arc::default(),
                first_requests: AwaitedFirstRequests::default(),
                transport,
                is_stopping: AtomicBool::new(false),
                closed: AtomicBool::new(false),
                upgrade_timers: StreamUpgradeTimers::new(options.stream_upgrade_delay),
                authorization,
                server,
                options: Arc::new(options),
                bound,
                is_mounted,
            }),
        }
    }

    /// Sets the runtime of tasks that belong to no connection. Without it they run on that of the connection that needs them first.
    pub(super) fn set_runtime(&self, runtime: &Handle) {
        self.shared.upgrade_timers.set_runtime(runtime);
        self.shared.sessions.set_runtime(runtime);
    }

    /// Answers one request.
    ///
    /// A layer in front can put the authenticated caller into the request's extensions, as
    /// [`Caller`](crate::auth::Caller) or [`Principal`]. Dropping the future or the response's body means that
    /// the client disconnected.
    pub fn handle<B>(
        &self,
        request: Request<B>,
    ) -> impl Future<Output = Response<Body>> + use<'_, B>
    where
        B: http_body::Body<Data: Into<Bytes> + Send>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        // Not an async function: its future would contain the request twice, and is moved as a whole.
        async move {
            let Some(origin) = CorsOrigin::of_request(&parts.headers, &self.shared.options) else {
                let mut response = self.answer(&mut parts, pin!(body)).await;
                self.count_refusal(&response);
                cors::vary(&mut response, &self.shared.options);
                return response;
            };
            let mut response = match origin.preflight(&parts) {
                Some(preflight) => preflight,
                None => Box::pin(self.answer(&mut parts, pin!(body))).await,
            };
            self.count_refusal(&response);
            origin.expose(&mut response);
            response
        }
    }

    /// Counts a response of the transport itself.
    fn count_refusal(&self, response: &Response<Body>) {
        if !response.status().is_success()
            && let Some(reason) = response.extensions().get::<RefusalReason>()
        {
            let clients = self.shared.server.inner().clients();
            clients.counts().add_refused(*reason);
        }
    }

    /// Answers a request. All but the usual ones, POSTs to the MCP endpoint, are answered in a box: what their code keeps
    /// would otherwise cost every request, whose future is moved as a whole.
    async fn answer<B>(&self, parts: &mut Parts, body: Pin<&mut B>) -> Response<Body>
    where
        B: http_body::Body<Data: Into<Bytes> + Send>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let shared = &self.shared;
        let endpoint = Endpoint::of(shared, parts);
        let is_closed = shared.closed.load(Ordering::Acquire);
        if endpoint != Endpoint::Mcp || parts.method != Method::POST || is_closed {
            return Box::pin(self.answer_other(endpoint, parts, body)).await;
        }
        self.note_network(parts);
        if let Err(refused) = self.check_host(parts) {
            discard(body, DRAINED).await;
            return refused.response();
        }
        if let Err(response) = self.admit(parts).await {
            discard(body, DRAINED).await;
            return response;
        }
        let client = self.client_of(parts);
        match self.read(parts, body, &client).await {
            Ok(body) => {
                let answering = post::begin(shared, parts, body, &client);
                let response = answering.response(shared).await;
                if let Some(connection) = &self.connection {
                    connection.first_request.end();
                }
                response
            }
            Err(refusal) => refusal.response(),
        }
    }

    /// Answers a request that is no POST to the MCP endpoint, and any while the service is closed.
    async fn answer_other<B>(
        &self,
        endpoint: Endpoint,
        parts: &mut Parts,
        body: Pin<&mut B>,
    ) -> Response<Body>
    where
        B: http_body::Body<Data: Into<Bytes> + Send>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let shared = &self.shared;
        if shared.closed.load(Ordering::Acquire) && !endpoint.is_check() {
            let mut body = Vec::new();
            encode::error_without_id(&mut body, &RpcError::shutting_down());
            let mut response = json(StatusCode::SERVICE_UNAVAILABLE, body);
            response
                .extensions_mut()
                .insert(RefusalReason::ShuttingDown);
            // An HTTP server that shuts down, and in which the service is mounted, would wait for the connection as long as
            // the client tries again. HTTP/2 has no such header (RFC 9113, section 8.2.2).
            if parts.version < Version::HTTP_2 {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
            }
            return response;
        }
        #[cfg(feature = "routes")]
        if endpoint.is_check() || endpoint == Endpoint::Nothing {
            match route::find(shared, parts) {
                // The checks give way to a route of the same path, not to one that matches others too.
                RouteLookup::Route(route) if endpoint.is_check() && !route.is_literal() => {}
                RouteLookup::Refused { .. } if endpoint.is_check() => {}
                RouteLookup::Route(route) => {
                    return self.answer_route(parts, body, route).await;
                }
                RouteLookup::Nothing => {}
                RouteLookup::Refused {
                    response,
                    is_public,
                } => {
                    discard(body, DRAINED).await;
                    let admitted = match is_public {
                        true => Ok(()),
                        false => self.admit_to_route(parts).await,
                    };
                    return admitted.map_or_else(|refused| refused, |()| response);
                }
            }
        }
        if endpoint == Endpoint::Health {
            return plain(StatusCode::OK, "ok");
        }
        if endpoint == Endpoint::Ready {
            return match shared.is_stopping.load(Ordering::Acquire) {
                true => plain(StatusCode::SERVICE_UNAVAILABLE, "shutting down"),
                false => plain(StatusCode::OK, "ready"),
            };
        }
        self.note_network(parts);
        if let Endpoint::Authorization(endpoint) = endpoint {
            discard(body, DRAINED).await;
            let answer = shared
                .authorization
                .answer(endpoint, &shared.options, parts);
            return answer.await;
        }
        if endpoint == Endpoint::Nothing {
            discard(body, DRAINED).await;
            return refusal(
                StatusCode::NOT_FOUND,
                &format!(
                    "nothing is served at this path; the MCP endpoint is {}{} (option `path`)",
                    endpoints::prefix(parts),
                    shared.options.path
                ),
            );
        }
        if let Err(refused) = self.check_host(parts) {
            discard(body, DRAINED).await;
            return refused.response();
        }
        if endpoint == Endpoint::Metrics {
            discard(body, DRAINED).await;
            return metrics::answer(&shared.server, &parts.method);
        }
        if let Err(response) = self.admit(parts).await {
            discard(body, DRAINED).await;
            return response;
        }
        match (endpoint, &parts.method) {
            (Endpoint::Mcp, &Method::GET | &Method::DELETE) if !shared.has_sessions() => {
                discard(body, DRAINED).await;
                not_allowed(&parts.method, "POST")
            }
            (Endpoint::Mcp, &Method::GET) if !modern::names_modern_revision(&parts.headers) => {
                stream_resumption::open_or_resume(shared, parts, &self.client_of(parts)).await
            }
            (Endpoint::Mcp, &Method::DELETE) if !modern::names_modern_revision(&parts.headers) => {
                legacy::delete(shared, parts, &self.client_of(parts)).await
            }
            (Endpoint::Mcp, _) => {
                discard(body, DRAINED).await;
                not_allowed(&parts.method, "POST, GET, DELETE")
            }
            (Endpoint::SseStream, &Method::GET) => {
                http_sse::open(shared, parts, &self.client_of(parts))
            }
            // Clients that try another transport first send a POST.
            (Endpoint::SseStream, _) => {
                discard(body, DRAINED).await;
                not_allowed(&parts.method, "GET")
            }
            (_, &Method::POST) => {
                let client = self.client_of(parts);
                match self.read(parts, body, &client).await {
                    Ok(body) => http_sse::post(shared, parts, body),
                    Err(refusal) => refusal.response(),
                }
            }
            (_, _) => {
                discard(body, DRAINED).await;
                not_allowed(&parts.method, "POST")
            }
        }
    }

    /// Answers a request to a route of the author.
    #[cfg(feature = "routes")]
    async fn answer_route<B>(
        &self,
        parts: &mut Parts,
        body: Pin<&mut B>,
        requested: RequestedRoute,
    ) -> Response<Body>
    where
        B: http_body::Body<Data: Into<Bytes> + Send>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if !requested.entry.is_public
            && let Err(response) = self.admit_to_route(parts).await
        {
            discard(body, DRAINED).await;
            return response;
        }
        let client = self.client_of(parts);
        match self.collect(body, &client).await {
            Ok(body) => route::serve(&self.shared, parts, requested, body, &client).await,
            Err(refusal) => refusal.response(),
        }
    }

    /// Checks that the caller may use routes that are not public.
    #[cfg(feature = "routes")]
    async fn admit_to_route(&self, parts: &mut Parts) -> Result<(), Response<Body>> {
        self.check_host(parts)
            .map_err(|refused| refused.response())?;
        self.admit(parts).await
    }

    /// Identifies the caller of a request.
    async fn admit(&self, parts: &mut Parts) -> Result<(), Response<Body>> {
        let shared = &self.shared;
        let sharing = shared.server.inner().settings.sharing.as_ref();
        let client = |parts: &Parts| self.client_of(parts);
        authorization::admit(&shared.options, parts, sharing, client).await
    }

    /// Checks that the request's host and origin are allowed.
    fn check_host(&self, parts: &Parts) -> Result<(), Refusal> {
        let shared = &self.shared;
        let authority = parts.uri.authority().map(http::uri::Authority::as_str);
        let known = self.connection.as_ref().map(|connection| &connection.host);
        let checked = security::check(
            &parts.headers,
            authority,
            &shared.options,
            shared.bound,
            known,
        );
        checked.map_err(|reason| {
            tracing::warn!(reason, "a request was refused");
            Refusal::new(StatusCode::FORBIDDEN, reason)
        })
    }

    /// Returns the same service for the requests of one connection.
    pub(super) fn for_connection(&self, client: Arc<ClientQuota>, remote: SocketAddr) -> Self {
        Self {
            shared: self.shared.clone(),
            connection: Some(Arc::new(OneConnection {
                client,
                remote,
                host: security::AllowedHostCache::default(),
                first_request: self.shared.first_requests.begin(),
            })),
        }
    }

    /// Keeps how a request has arrived, for its span.
    fn note_network(&self, parts: &mut Parts) {
        if !self.shared.server.inner().has_spans() {
            return;
        }
        let header = self.shared.options.client_address_header.as_ref();
        let forwarded = header.and_then(|header| security::forwarded(&parts.headers, header));
        let (address, port) = match (forwarded, &self.connection) {
            (Some(address), _) => (Some(address), None),
            (None, Some(connection)) => {
                (Some(connection.remote.ip()), Some(connection.remote.port()))
            }
            (None, None) => {
                let remote = parts.extensions.get::<RemoteAddress>();
                (remote.map(|RemoteAddress(address)| *address), None)
            }
        };
        let client = address.map(|address| NetworkAddress {
            address: address.to_canonical().to_string(),
            port,
        });
        let is_known = parts.extensions.get::<UnknownHttpVersion>().is_none();
        let version = match parts.version {
            Version::HTTP_10 => Some("1.0"),
            Version::HTTP_11 => Some("1.1"),
            Version::HTTP_2 => Some("2"),
            Version::HTTP_3 => Some("3"),
            _ => None,
        };
        parts.extensions.insert(HttpNetwork {
            client,
            version: version.filter(|_| is_known),
        });
    }

    /// Returns the client that a request is charged to.
    fn client_of(&self, parts: &Parts) -> Arc<ClientQuota> {
        let clients = self.shared.server.inner().clients();
        let principal = principal(parts);
        if !principal.is_empty() {
            return clients.client(ClientKey::Principal(principal.to_owned()));
        }
        let header = self.shared.options.client_address_header.as_ref();
        if let Some(address) = header.and_then(|header| security::forwarded(&parts.headers, header))
        {
            return clients.client(ClientKey::of_address(address));
        }
        if let Some(connection) = &self.connection {
            return connection.client.clone();
        }
        match parts.extensions.get::<RemoteAddress>() {
            Some(RemoteAddress(address)) => clients.client(ClientKey::of_address(*address)),
            None => self.shared.unknown_clients.clone(),
        }
    }

    async fn read<B>(
        &self,
        parts: &Parts,
        body: Pin<&mut B>,
        client: &Arc<ClientQuota>,
    ) -> Result<Bytes, Refusal>
    where
        B: http_body::Body<Data: Into<Bytes> + Send>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if !value_of(&parts.headers, &CONTENT_TYPE).is_some_and(is_json) {
            discard(body, DRAINED).await;
            return Err(Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Content-Type must be application/json",
            ));
        }
        self.collect(body, client).await
    }

    /// Collects a body within the limits of its size and time.
    async fn collect<B>(
        &self,
        mut body: Pin<&mut B>,
        client: &Arc<ClientQuota>,
    ) -> Result<Bytes, Refusal>
    where
        B: http_body::Body<Data: Into<Bytes> + Send>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let options = &self.shared.options;
        let limit = options.max_body_bytes;
        let collected = {
            let mut collected = pin!(collect(body.as_mut(), limit, client));
            // Most bodies have already arrived and need no timer.
            match now_or_never(collected.as_mut()).await {
                Some(collected) => Ok(collected),
                None => Box::pin(tokio::time::timeout(options.read_timeout, collected)).await,
            }
        };
        match collected {
            Ok(Ok(collected)) => Ok(collected),
            Ok(Err(CollectError::TooLong)) => {
                discard(body, limit).await;
                Err(Refusal::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    format!("the body has more than {limit} bytes: raise `max_body_bytes`"),
                ))
            }
            Ok(Err(CollectError::NoRoom(exceeded))) => {
                discard(body, limit).await;
                Err(Refusal::from(exceeded))
            }
            Ok(Err(CollectError::Broken(error))) => Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                format!("the body could not be read: {error}"),
            )),
            Err(_) => Err(Refusal::new(
                StatusCode::REQUEST_TIMEOUT,
                "the body did not arrive in time (`read_timeout` of the server)",
            )),
        }
    }
}

/// Reads and discards the body of a refused request, up to `most` bytes and for [`DRAIN_TIME`]. Many clients read a
/// response only after they have sent everything, and report a broken pipe if the connection is closed before.
fn discard<B: http_body::Body>(
    mut body: Pin<&mut B>,
    most: usize,
) -> Pin<Box<impl Future<Output = ()> + use<'_, B>>> {
    Box::pin(async move {
        let drained = async {
            let mut read = 0;
            while read <= most
                && let Some(Ok(frame)) = body.frame().await
            {
                read += frame.data_ref().map_or(0, Buf::remaining);
            }
        };
        // Done, or at a limit: it is refused either way.
        let _ = tokio::time::timeout(DRAIN_TIME, drained).await;
    })
}

impl Shared {
    /// Whether clients of a served revision get sessions.
    pub(super) fn has_sessions(&self) -> bool {
        self.has_handshake() && !self.options.stateless
    }

    /// Whether a served revision has the handshake.
    pub(super) fn has_handshake(&self) -> bool {
        let served = &self.server.inner().settings.revisions;
        served.iter().any(|revision| !revision.is_modern())
    }
}

/// Client address of a request, for a layer in front of [`HttpService`] to put into the request's extensions.
///
/// Requests without authentication count for the client at this address
/// ([`Settings::client_share`](crate::server::Settings::client_share)). Without it they cannot be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteAddress(pub IpAddr);

pub(super) fn principal(parts: &Parts) -> &str {
    parts
        .extensions
        .get::<Principal>()
        .map_or("", |principal| principal.0.as_str())
}

/// Returns the output of a future if it is ready immediately.
async fn now_or_never<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|cx| {
        Poll::Ready(match future.as_mut().poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

/// Whether a `Content-Type` is JSON, with any parameters.
fn is_json(content_type: &HeaderValue) -> bool {
    // Fast path: the form that most clients send.
    content_type == "application/json"
        || content_type.to_str().is_ok_and(|content_type| {
            let essence = content_type.split(';').next().unwrap_or_default().trim();
            essence.eq_ignore_ascii_case("application/json")
        })
}

/// The content type of all bodies except event streams.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Returns a response with a JSON body.
pub(super) fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// A refusal of a request by the transport itself.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) reason: Cow<'static, str>,
}

impl From<Exceeded> for Refusal {
    fn from(exceeded: Exceeded) -> Self {
        let status = match exceeded.level {
            LimitOwner::Server => StatusCode::SERVICE_UNAVAILABLE,
            LimitOwner::Client => StatusCode::TOO_MANY_REQUESTS,
        };
        Self::new(status, exceeded.to_string())
    }
}

impl Refusal {
    pub(super) fn new(status: StatusCode, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            reason: reason.into(),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn response(&self) -> Response<Body> {
        refusal(self.status, &self.reason)
    }
}

/// Returns a refusal of the transport: a JSON-RPC error without an id (every revision with HTTP, `basic/transports`).
pub(super) fn refusal(status: StatusCode, reason: &str) -> Response<Body> {
    let is_busy = matches!(
        status,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
    );
    let code = match is_busy {
        true => ErrorCode::BUSY,
        false => ErrorCode::INVALID_REQUEST,
    };
    let mut body = Vec::new();
    encode::error_without_id(&mut body, &RpcError::new(code, reason.to_owned()));
    let mut response = json(status, body);
    response
        .extensions_mut()
        .insert(RefusalReason::of(status.as_u16()));
    if is_busy {
        warn_limited!(reason, "a limit is reached: an HTTP request was refused");
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
    }
    response
}

/// How long a client that was refused as busy should wait.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// Returns a response without a body.
pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::full(Bytes::new()));
    *response.status_mut() = status;
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::full(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, http::HeaderValue::from_static("text/plain"));
    response
}

pub(super) fn not_allowed(method: &Method, allowed: &'static str) -> Response<Body> {
    let mut response = refusal(
        StatusCode::METHOD_NOT_ALLOWED,
        &format!("{method} is not allowed here"),
    );
    response
        .headers_mut()
        .insert(ALLOW, http::HeaderValue::from_static(allowed));
    response
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: http_body::Body<Data: Into<Bytes> + Send> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.handle(request).await) })
    }
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService").finish_non_exhaustive()
    }
}
