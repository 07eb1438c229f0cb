//! HTTP requests and responses: reuses connections, follows redirects, and classifies failures.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use mcpline_protocol::without_secrets;
use tokio::runtime::Handle;

use crate::background_tasks::BackgroundTasks;
use crate::client_error::ClientError;
use crate::shared_io_error::SharedIoError;

use super::address_policy::AddressPolicy;
use super::authorizer::{AttemptOutcome, Authorizer, RequestTimer};
use super::connector::{Connector, ProxyRequestHeaders};
use super::headers::parse_user_headers;
use super::pool::Pool;
use super::refusal;
use super::response::HttpResponse;
use super::settings::HttpSettings;
use super::target::{HttpsRedirects, Target};
#[cfg(feature = "auth")]
use mcpline_protocol::without_credentials;

/// Maximum number of remembered permanent redirects. A client has one endpoint, or two with HTTP+SSE, whose second one
/// may differ in each session.
const MOVED: usize = 8;

/// Builds the headers of a request each time that it is sent. A reference, because otherwise the code for requests
/// would be compiled for each closure type.
type MakeHeaders<'h> = &'h (dyn Fn() -> HeaderMap + Sync);

/// Whether a request may use a connection that was used before. The server may be closing such a connection at that
/// moment, and it is then unknown whether it received the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionReuse {
    /// It uses a new connection.
    No,
    /// It may reuse one, and is sent again if the connection closes without a response and its HTTP method is
    /// idempotent.
    Yes,
    /// It may reuse one, and is sent again whatever its HTTP method, because a duplicate does no harm.
    Repeatable,
}

/// State shared by the links of one client: settings, connections and runtime.
pub(crate) struct HttpClient {
    pub(crate) settings: HttpSettings,
    /// The user's own headers, validated.
    pub(crate) headers: HeaderMap,
    pub(crate) handle: Handle,
    connector: Connector,
    pub(crate) pool: Arc<Pool>,
    /// The tasks of the connections.
    pub(crate) tasks: BackgroundTasks,
    /// Gets tokens, if the settings have a source of them.
    authorizer: Option<Arc<dyn Authorizer>>,
    /// The redirects from `http` to `https` that are followed.
    upgrades: HttpsRedirects,
    /// Permanent redirects of targets.
    moved: Mutex<Vec<(Uri, Target)>>,
}

impl HttpClient {
    /// Creates a client without connections.
    ///
    /// # Errors
    ///
    /// [`ClientError::Usage`] if the settings contain an invalid header, proxy or certificate.
    pub(crate) fn new(settings: HttpSettings, handle: Handle) -> Result<Arc<Self>, ClientError> {
        Self::with_reach(settings, handle, AddressPolicy::Everywhere)
    }

    /// Like [`new`](Self::new), but connects only to addresses within `reach`.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub(crate) fn with_reach(
        settings: HttpSettings,
        handle: Handle,
        reach: AddressPolicy,
    ) -> Result<Arc<Self>, ClientError> {
        Self::unauthorized(settings, handle, reach).map(Arc::new)
    }

    /// Like [`with_reach`](Self::with_reach), for requests to an API, whose redirects stay at their origin, or lead from port 80 to
    /// port 443.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    #[cfg(feature = "openapi")]
    pub(crate) fn of_api(
        settings: HttpSettings,
        handle: Handle,
        reach: AddressPolicy,
    ) -> Result<Arc<Self>, ClientError> {
        let mut client = Self::unauthorized(settings, handle, reach)?;
        client.upgrades = HttpsRedirects::DefaultPorts;
        Ok(Arc::new(client))
    }

    /// Checks the proxy and the certificates of settings, before there is a runtime for a client.
    ///
    /// # Errors
    ///
    /// [`ClientError::Usage`]: one of them is invalid.
    #[cfg(feature = "openapi")]
    pub(crate) fn check(settings: &HttpSettings) -> Result<(), ClientError> {
        Connector::new(
            settings,
            AddressPolicy::Everywhere,
            &BackgroundTasks::default(),
        )
        .map(drop)
    }

    fn unauthorized(
        settings: HttpSettings,
        handle: Handle,
        reach: AddressPolicy,
    ) -> Result<Self, ClientError> {
        let tasks = BackgroundTasks::default();
        Ok(Self {
            headers: parse_user_headers(&settings.headers)?,
            connector: Connector::new(&settings, reach, &tasks)?,
            pool: Arc::new(Pool::new(&tasks)),
            tasks,
            authorizer: None,
            upgrades: HttpsRedirects::AnyPort,
            moved: Mutex::default(),
            settings,
            handle,
        })
    }

    /// Returns a number that changes with the credentials that authorize requests.
    pub(crate) fn authorization(&self) -> u64 {
        let authorizer = self.authorizer.as_ref();
        authorizer.map_or(0, |authorizer| authorizer.authorization())
    }

    /// Closes idle connections now, and others as soon as they are idle.
    pub(crate) fn close(&self) {
        if let Some(authorizer) = &self.authorizer {
            authorizer.close();
        }
        self.pool.close();
    }

    /// Sends a request and waits for the head of its response, whatever its status. `headers` is called for each
    /// attempt: the first one, each redirect, and each repetition with another token. `reuse` applies to the first
    /// attempt.
    ///
    /// # Errors
    ///
    /// [`ClientError::ServerUnreachable`] if nothing of it was sent, [`ClientError::ConnectionLost`] if something may
    /// have been, [`ClientError::Http`] for a redirect that is not followed, [`ClientError::AuthorizationFailed`] if
    /// the server accepts no available token.
    pub(crate) async fn send_authorized(
        &self,
        method: Method,
        target: &Target,
        headers: MakeHeaders<'_>,
        body: &Bytes,
        timer: &dyn RequestTimer,
        mut reuse: ConnectionReuse,
    ) -> Result<HttpResponse, ClientError> {
        let moved = self.known_redirect(target);
        let target = moved.as_ref().unwrap_or(target);
        let with_host = || {
            let mut headers = headers();
            if moved.is_some() {
                headers.insert(header::HOST, target.host.clone());
            }
            headers
        };
        let headers: MakeHeaders<'_> = &with_host;
        let Some(authorizer) = &self.authorizer else {
            let answer = self.send(method, target, headers, body, reuse).await?;
            return self.check_given_token(answer).await;
        };
        let mut attempts = authorizer.attempts();
        let url = target.uri.to_string();
        loop {
            attempts.prepare(timer).await?;
            let with_token = || {
                let mut headers = headers();
                attempts.put(&mut headers, &method, &url);
                headers
            };
            let answer = self
                .send(method.clone(), target, &with_token, body, reuse)
                .await?;
            match attempts
                .handle_refusal(&answer.head, answer.peer, timer)
                .await?
            {
                AttemptOutcome::Done => return Ok(answer),
                AttemptOutcome::Retry => {
                    answer.drain().await;
                    // The server may be closing connections that were idle during the wait for consent.
                    reuse = ConnectionReuse::No;
                }
            }
        }
    }

    /// Reports that the server refuses the token in the headers of the host. Without one, the host decides what the status
    /// means.
    #[cfg(feature = "auth")]
    async fn check_given_token(&self, answer: HttpResponse) -> Result<HttpResponse, ClientError> {
        let given = self.settings.headers.iter();
        let mut names = given.map(|(name, _)| name);
        let has_token = names.any(|name| name.eq_ignore_ascii_case(header::AUTHORIZATION.as_str()));
        if !has_token {
            return Ok(answer);
        }
        match mcpline_auth::client::given_token_error(answer.head.status, &answer.head.headers) {
            Some(error) => {
                answer.drain().await;
                Err(ClientError::AuthorizationFailed(error))
            }
            None => Ok(answer),
        }
    }

    #[cfg(not(feature = "auth"))]
    async fn check_given_token(&self, answer: HttpResponse) -> Result<HttpResponse, ClientError> {
        Ok(answer)
    }

    /// Sends a request without authorization over a new connection, and each redirect likewise.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::request`].
    pub(crate) async fn send_afresh(
        &self,
        method: Method,
        target: &Target,
        headers: MakeHeaders<'_>,
        body: &Bytes,
    ) -> Result<HttpResponse, ClientError> {
        let moved = self.known_redirect(target);
        let target = moved.as_ref().unwrap_or(target);
        let with_host = || {
            let mut headers = headers();
            if moved.is_some() {
                headers.insert(header::HOST, target.host.clone());
            }
            headers
        };
        self.send(method, target, &with_host, body, ConnectionReuse::No)
            .await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        target: &Target,
        headers: MakeHeaders<'_>,
        body: &Bytes,
        reuse: ConnectionReuse,
    ) -> Result<HttpResponse, ClientError> {
        let answer = self.once(&method, target, headers, body, reuse).await?;
        if answer.head.status.is_redirection() {
            return Box::pin(self.follow(answer, &method, target, headers, body, reuse)).await;
        }
        Ok(answer)
    }

    /// Follows the redirects of a response.
    async fn follow(
        &self,
        mut answer: HttpResponse,
        method: &Method,
        target: &Target,
        headers: MakeHeaders<'_>,
        body: &Bytes,
        reuse: ConnectionReuse,
    ) -> Result<HttpResponse, ClientError> {
        let original_target = target;
        let mut target = target.clone();
        let mut followed = 0;
        // Target of the leading permanent redirects.
        let mut moved = None;
        let mut for_good = true;
        while let Some(location) = location(&answer)? {
            let status = answer.head.status;
            let refuse = |why: &str| {
                let shown = without_secrets(&location);
                let why = format!("the redirect to {shown} is not followed: {why}");
                Err(refusal::redirect_error(status, why))
            };
            if *method != Method::GET && changes_method(status) {
                return refuse(
                    "status 301, 302 and 303 turn POST into GET: use the final URL, or let the server redirect with 307 or 308",
                );
            }
            if followed == self.settings.max_redirects {
                return refuse("too many redirects");
            }
            let next = match target.resolve(&location) {
                Ok(next) => next,
                Err(problem) => return refuse(&problem),
            };
            if let Some(why) = target.redirect_refusal(&next, self.upgrades) {
                return refuse(why);
            }
            answer.drain().await;
            followed += 1;
            target = next;
            for_good &= status == StatusCode::PERMANENT_REDIRECT;
            if for_good {
                moved = Some(target.clone());
            }
            let with_host = || {
                let mut headers = headers();
                headers.insert(header::HOST, target.host.clone());
                headers
            };
            answer = self.once(method, &target, &with_host, body, reuse).await?;
        }
        if let Some(moved) = moved {
            self.remember(original_target, moved);
        }
        Ok(answer)
    }

    /// Returns the target of a known permanent redirect.
    fn known_redirect(&self, target: &Target) -> Option<Target> {
        let moved = self.lock_moved();
        let known = moved.iter().find(|(from, _)| *from == target.uri);
        known.map(|(_, to)| to.clone())
    }

    /// Remembers a permanent redirect (RFC 9110, section 15.4.9).
    fn remember(&self, target: &Target, to: Target) {
        let mut moved = self.lock_moved();
        if moved.len() < MOVED && moved.iter().all(|(from, _)| *from != target.uri) {
            moved.push((target.uri.clone(), to));
        }
    }

    fn lock_moved(&self) -> MutexGuard<'_, Vec<(Uri, Target)>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request over an idle connection or a new one. If an idle one ends when the server may have read the
    /// request, a request that may be repeated is sent once more, over a new connection (RFC 9110, section 9.2.2).
    async fn once(
        &self,
        method: &Method,
        target: &Target,
        headers: MakeHeaders<'_>,
        body: &Bytes,
        mut reuse: ConnectionReuse,
    ) -> Result<HttpResponse, ClientError> {
        let mut request = request(method, headers(), body);
        loop {
            let idle = match reuse {
                ConnectionReuse::No => None,
                ConnectionReuse::Yes | ConnectionReuse::Repeatable => {
                    self.pool.take(&target.origin)
                }
            };
            let (mut wire, used) = match idle {
                Some(wire) => (wire, true),
                None => match Box::pin(self.connector.connect(target)).await {
                    Ok(wire) => (wire, false),
                    Err(error) => return Err(error),
                },
            };
            address(&mut request, target, wire.proxied.as_ref());
            let may_repeat =
                used && (reuse == ConnectionReuse::Repeatable || is_idempotent(method));
            match wire.sender.try_send_request(request).await {
                Ok(response) => {
                    let origin = target.origin.clone();
                    return Ok(HttpResponse::new(response, wire, origin, self.pool.clone()));
                }
                Err(mut error) => match error.take_message() {
                    // The server had closed it; nothing was written.
                    Some(unsent) if used => request = unsent,
                    Some(_) => {
                        let (reason, source) = SharedIoError::split(error.error());
                        return Err(ClientError::ServerUnreachable { reason, source });
                    }
                    // The server was closing it, and whether it read the request makes no difference. The headers are
                    // built again, because a proof of possession must not be used twice (RFC 9449, section 11.1).
                    None if may_repeat => {
                        request = self::request(method, headers(), body);
                        reuse = ConnectionReuse::No;
                    }
                    None => {
                        let (reason, source) = SharedIoError::split(error.error());
                        return Err(ClientError::ConnectionLost { reason, source });
                    }
                },
            }
        }
    }
}

/// Clients with authorization.
#[cfg(feature = "auth")]
impl HttpClient {
    /// Creates a client of the server at `url`, with the authorization of the settings.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new); [`ClientError::Usage`] also if the settings contain several kinds of authorization,
    /// or the URL is invalid.
    pub(crate) fn of(
        url: &str,
        settings: HttpSettings,
        handle: Handle,
    ) -> Result<Arc<Self>, ClientError> {
        let Some(auth) = settings.auth.clone() else {
            return Self::new(settings, handle);
        };
        let target = Target::parse(url)?;
        let mut names = settings.headers.iter().map(|(name, _)| name);
        if target.credentials.is_some()
            || names.any(|name| name.eq_ignore_ascii_case("authorization"))
        {
            return Err(ClientError::Usage(
                "set either `auth` or the header `Authorization`, not both".to_owned(),
            ));
        }
        let server = without_credentials(url);
        let authorizer = auth.0.authorizer(&server, &settings, handle.clone());
        let mut client = Self::unauthorized(settings, handle, AddressPolicy::Everywhere)?;
        client.authorizer = Some(authorizer);
        Ok(Arc::new(client))
    }
}

#[cfg(not(feature = "auth"))]
impl HttpClient {
    /// Creates a client of the server at `url`.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub(crate) fn of(
        _: &str,
        settings: HttpSettings,
        handle: Handle,
    ) -> Result<Arc<Self>, ClientError> {
        Self::new(settings, handle)
    }
}

impl Drop for HttpClient {
    /// Stops waiting for a user's consent.
    fn drop(&mut self) {
        if let Some(authorizer) = &self.authorizer {
            authorizer.close();
        }
    }
}

fn request(method: &Method, headers: HeaderMap, body: &Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body.clone()));
    *request.method_mut() = method.clone();
    *request.headers_mut() = headers;
    request
}

/// Whether a request that may have been received can be sent again (RFC 9110, section 9.2.2).
fn is_idempotent(method: &Method) -> bool {
    method.is_idempotent()
}

/// Sets the form of the request line: an HTTP proxy requires the whole URL, and its own credentials.
fn address(
    request: &mut Request<Full<Bytes>>,
    target: &Target,
    proxied: Option<&ProxyRequestHeaders>,
) {
    let Some(proxied) = proxied else {
        request.uri_mut().clone_from(&target.path);
        return;
    };
    request.uri_mut().clone_from(&target.uri);
    if let Some(authorization) = &proxied.authorization {
        let headers = request.headers_mut();
        headers.insert(header::PROXY_AUTHORIZATION, authorization.clone());
    }
}

/// Returns the redirect target of a response, or `None`.
fn location(answer: &HttpResponse) -> Result<Option<String>, ClientError> {
    let status = answer.head.status;
    let redirects = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    match answer.head.headers.get(header::LOCATION) {
        Some(location) if redirects => match location.to_str() {
            Ok(location) => Ok(Some(location.to_owned())),
            Err(_) => Err(refusal::redirect_error(
                status,
                "invalid redirect URL".to_owned(),
            )),
        },
        _ => Ok(None),
    }
}

/// Whether clients follow this status with a GET, whatever the request's method.
fn changes_method(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301..=303)
}
