//! An authorization server, a server that requires its tokens, and users who consent to everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use authorization_server::{AuthorizationServer, Config, ProtectedResource, ResourceConfig};
use axum::Router;
use mcpline::auth::{Auth, AuthError, FunctionUserAgent, OAuth, OAuthBuilder, UserAgentError};
use mcpline::client::{Address, Client, ClientBuilder, ClientError, HttpSettings};
use mcpline::transport::http::HttpOptions;
use mcpline::{Context, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) const REDIRECT: &str = "http://127.0.0.1:1/callback";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// All parties of a test.
pub(crate) struct World {
    pub(crate) issuer: AuthorizationServer,
    pub(crate) resource: ProtectedResource,
    /// How often a user signed in.
    pub(crate) sign_ins: Arc<AtomicUsize>,
}

impl World {
    pub(crate) async fn start(config: Config, resource: ResourceConfig) -> Self {
        let server = Server::builder("guarded", "1").build().expect("a server");
        let server = server
            .tool("look", "Looks", |_: Nothing, _: Context| async { "seen" })
            .tool("edit", "Edits", |_: Nothing, _: Context| async { "edited" });
        let service = server.http_service(HttpOptions::default());
        let issuer = AuthorizationServer::start(config)
            .await
            .expect("an authorization server");
        let router = Router::new().fallback_service(service);
        let resource = issuer.protect(resource, router).await.expect("a resource");
        Self {
            issuer,
            resource,
            sign_ins: Arc::default(),
        }
    }

    /// Starts a world with the default configurations.
    pub(crate) async fn exemplary() -> Self {
        Self::start(Config::default(), ResourceConfig::default()).await
    }

    /// Builds an OAuth configuration whose user consents to everything.
    pub(crate) fn oauth(&self) -> OAuthBuilder {
        let sign_ins = self.sign_ins.clone();
        self.oauth_with(move |url| {
            let sign_ins = sign_ins.clone();
            async move {
                sign_ins.fetch_add(1, Ordering::Relaxed);
                Ok(follow(&url).await)
            }
        })
    }

    /// Builds an OAuth configuration with a user agent of the test.
    pub(crate) fn oauth_with<F, Fut>(&self, open: F) -> OAuthBuilder
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, UserAgentError>> + Send + 'static,
    {
        let user_agent = FunctionUserAgent::new(REDIRECT, open).expect("a user agent");
        OAuth::builder("a test").user_agent(user_agent)
    }

    pub(crate) async fn connect(&self, auth: impl Into<Auth>) -> Result<Client, ClientError> {
        self.connect_with(Client::builder("host", "1"), auth).await
    }

    pub(crate) async fn connect_with(
        &self,
        builder: ClientBuilder,
        auth: impl Into<Auth>,
    ) -> Result<Client, ClientError> {
        let mut settings = HttpSettings::default();
        settings.auth = Some(auth.into());
        builder
            .connect(Address::Url(self.resource.url(), settings))
            .await
    }

    pub(crate) fn sign_ins(&self) -> usize {
        self.sign_ins.load(Ordering::Relaxed)
    }

    /// Returns how often this grant was requested.
    pub(crate) fn grants(&self, grant: &str) -> usize {
        self.issuer.requests().grants(grant)
    }
}

/// Opens a URL as a browser would; returns where it redirects to.
pub(crate) async fn follow(url: &str) -> String {
    let rest = url.strip_prefix("http://").expect("an http URL");
    let (place, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(place).await.expect("a connection");
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let mut lines = answer.lines();
    let location = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location")
            .then(|| value.trim().to_owned())
    });
    location.unwrap_or_else(|| panic!("no redirect: {answer}"))
}

/// Calls a tool and returns the text of its result.
pub(crate) async fn call(client: &Client, tool: &str) -> Result<String, ClientError> {
    let result = client.call_tool(tool, serde_json::json!({})).await?;
    Ok(
        serde_json::to_value(&result.content).expect("JSON")[0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    )
}

/// Returns the authorization error of a failed connection.
pub(crate) fn refusal(outcome: Result<impl Sized, ClientError>) -> AuthError {
    match outcome.err() {
        Some(ClientError::AuthorizationFailed(error)) => error,
        other => panic!("no refusal: {other:?}"),
    }
}
