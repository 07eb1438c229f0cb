//! A client's authorization over this crate's HTTP: adds tokens to requests, and reaches authorization servers as
//! configured by [`HttpSettings`].

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;

use http::response::Parts;
use http::{HeaderMap, Method};
use mcpline_auth::client::{
    BearerToken, FetcherFactory, OAuth, RequestAuthorizer, RetryCounts, SentAuthorization,
    TokenProvider, TokenRequest,
};
use mcpline_auth::fetch::Fetch;
use mcpline_auth::{AuthError, BoxFuture, Secret};
use tokio::runtime::Handle;

use crate::client_error::ClientError;
use crate::http_client::{
    AttemptOutcome, Auth, AuthSource, AuthorizationAttempts, Authorizer, Fetcher, HttpSettings,
    RequestTimer, is_public,
};

impl Auth {
    /// Sends a fixed token with every request.
    pub fn bearer(token: impl Into<String>) -> Self {
        Self(Arc::new(TokenProvider::fixed_token(Secret::from(
            token.into(),
        ))))
    }

    /// Gets tokens from the host: `source` is called when there is none, when it expires, and when the server rejects
    /// it.
    pub fn source<F, Fut>(source: F) -> Self
    where
        F: Fn(TokenRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<BearerToken, AuthError>> + Send + 'static,
    {
        Self(Arc::new(TokenProvider::source(source)))
    }

    /// Uses OAuth as the protocol specifies (`basic/authorization`).
    ///
    /// ```no_run
    /// use mcpline::auth::{Auth, FunctionUserAgent, OAuth};
    /// use mcpline::client::{Address, Client, HttpSettings};
    ///
    /// # async fn connect() -> Result<(), Box<dyn std::error::Error>> {
    /// let oauth = OAuth::builder("Example host")
    ///     .user_agent(FunctionUserAgent::new("https://host.example/callback", |url| async move {
    ///         // Send the user there; return the URL that the user is redirected to.
    ///         # let _ = url; Ok(String::new())
    ///     })?)
    ///     .build();
    /// let mut settings = HttpSettings::default();
    /// settings.auth = Some(Auth::oauth(oauth));
    /// let client = Client::connect(Address::Url("https://mcp.example.com/mcp".into(), settings)).await?;
    /// # Ok(()) }
    /// ```
    pub fn oauth(oauth: OAuth) -> Self {
        Self(Arc::new(TokenProvider::oauth(oauth)))
    }
}

impl From<OAuth> for Auth {
    fn from(oauth: OAuth) -> Self {
        Self::oauth(oauth)
    }
}

impl FetcherFactory for HttpSettings {
    fn fetcher(&self, handle: &Handle, allow_private: bool) -> Result<Fetch, String> {
        let fetcher = Fetcher::new(self, handle.clone(), allow_private);
        let fetcher = fetcher.map_err(|error| error.to_string())?;
        Ok(Arc::new(move |request| {
            let fetcher = fetcher.clone();
            Box::pin(async move { fetcher.fetch(request).await })
        }))
    }

    fn is_public(&self, address: IpAddr) -> bool {
        is_public(address)
    }
}

impl AuthSource for TokenProvider {
    fn authorizer(
        &self,
        server: &str,
        settings: &HttpSettings,
        handle: Handle,
    ) -> Arc<dyn Authorizer> {
        let connect = Arc::new(settings.clone());
        Arc::new(HttpRequestAuthorizer(RequestAuthorizer::new(
            self, server, connect, handle,
        )))
    }
}

/// Adapts a [`RequestAuthorizer`] to HTTP.
struct HttpRequestAuthorizer(Arc<RequestAuthorizer>);

impl Authorizer for HttpRequestAuthorizer {
    fn authorization(&self) -> u64 {
        self.0.authorization()
    }

    fn attempts(&self) -> Box<dyn AuthorizationAttempts> {
        Box::new(RequestAttempts {
            authorizer: self.0.clone(),
            retries: RetryCounts::default(),
            shown: SentAuthorization::default(),
        })
    }

    fn close(&self) {
        self.0.close();
    }
}

/// The attempts of one request, with the authorization of the latest.
struct RequestAttempts {
    authorizer: Arc<RequestAuthorizer>,
    retries: RetryCounts,
    shown: SentAuthorization,
}

impl AuthorizationAttempts for RequestAttempts {
    fn prepare<'a>(
        &'a mut self,
        timer: &'a dyn RequestTimer,
    ) -> BoxFuture<'a, Result<(), ClientError>> {
        Box::pin(async move {
            let shown = self
                .authorizer
                .obtain_authorization(&|held| timer.set_paused(held))
                .await;
            self.shown = shown.map_err(ClientError::AuthorizationFailed)?;
            Ok(())
        })
    }

    fn put(&self, headers: &mut HeaderMap, method: &Method, url: &str) {
        self.shown.put(headers, method, url);
    }

    fn handle_refusal<'a>(
        &'a mut self,
        head: &'a Parts,
        peer: Option<IpAddr>,
        timer: &'a dyn RequestTimer,
    ) -> BoxFuture<'a, Result<AttemptOutcome, ClientError>> {
        Box::pin(async move {
            let (shown, retries) = (&self.shown, &mut self.retries);
            let hold = |held| timer.set_paused(held);
            let handled = self
                .authorizer
                .handle_refusal(head, peer, shown, retries, &hold);
            match handled.await.map_err(ClientError::AuthorizationFailed)? {
                true => Ok(AttemptOutcome::Retry),
                false => Ok(AttemptOutcome::Done),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use mcpline_auth::fetch::FetchRequest;
    use tokio::net::TcpListener;

    use super::*;

    /// Fetches something from this machine for the metadata of `server`, and returns the status.
    async fn fetched(oauth: OAuth, server: &str) -> Result<u16, AuthError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let answering = tokio::spawn(async move {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let _ = stream.read(&mut [0; 4096]).await;
            let answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).await.expect("sent");
        });
        let origin = TokenProvider::oauth(oauth);
        let settings = Arc::new(HttpSettings::default());
        let authorizer = RequestAuthorizer::new(&origin, server, settings, Handle::current());
        let fetch = authorizer.fetcher(false).await?;
        let outcome = fetch(FetchRequest::get(format!("http://127.0.0.1:{port}/secret"))).await;
        answering.abort();
        outcome.map(|response| response.status)
    }

    #[runtimes::test]
    async fn a_public_server_cannot_make_this_machine_call_private_addresses() {
        let public = "https://93.184.216.34/mcp";
        let oauth = || OAuth::builder("a test");
        let error = fetched(oauth().build(), public).await.expect_err("refused");
        assert_eq!(error.code(), "fetch_failed");
        assert!(error.to_string().contains("private address"), "{error}");
        let allowed = oauth().allow_private_addresses(true).build();
        assert_eq!(fetched(allowed, public).await, Ok(404));
    }

    #[runtimes::test]
    async fn a_server_on_this_machine_may_name_others_on_it() {
        for server in ["http://127.0.0.1:1/mcp", "http://localhost:1/mcp"] {
            let oauth = OAuth::builder("a test").build();
            assert_eq!(fetched(oauth, server).await, Ok(404), "{server}");
        }
    }
}
