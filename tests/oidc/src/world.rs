//! The authorization server, a server of ours that requires its tokens, and users who agree to everything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpline::auth::{
    Auth, FunctionUserAgent, Introspection, OAuth, OAuthBuilder, ResourceServer, UserAgentError,
};
use mcpline::client::{Address, Client, ClientError, HttpSettings};
use mcpline::protocol::vocabulary::Tool;
use mcpline::server::ToolOptions;
use mcpline::transport::Stop;
use mcpline::transport::http::{Http, HttpOptions};
use mcpline::{Context, Server};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::browser::{Browser, post};

/// The redirect URI. Nothing listens there: the browser stops before it.
pub(crate) const REDIRECT: &str = "http://127.0.0.1:1/callback";

/// The result of a behaviour, with the reason if it failed.
pub(crate) type Outcome = Result<(), String>;

/// oidc-provider, and the private key of its client `signer`.
#[derive(Clone, serde::Deserialize)]
pub(crate) struct Provider {
    pub(crate) issuer: String,
    pub(crate) key: String,
}

impl Provider {
    /// Changes its settings.
    pub(crate) async fn set(&self, settings: Value) -> Outcome {
        post(&format!("{}/control/settings", self.issuer), &settings)
            .await
            .map(drop)
    }

    /// Deletes all its data of these kinds.
    pub(crate) async fn forget(&self, kinds: &[&str]) -> Outcome {
        post(
            &format!("{}/control/forget", self.issuer),
            &json!({"kinds": kinds}),
        )
        .await
        .map(drop)
    }

    /// Returns how many entries of a kind it stores.
    pub(crate) async fn kept(&self, kind: &str) -> Result<u64, String> {
        let kept = post(
            &format!("{}/control/kept", self.issuer),
            &json!({"kind": kind}),
        )
        .await?;
        kept.as_u64().ok_or_else(|| format!("no number: {kept}"))
    }

    /// Returns how often each path was requested.
    pub(crate) async fn counts(&self) -> Result<BTreeMap<String, u64>, String> {
        let counts = post(&format!("{}/control/counts", self.issuer), &json!({})).await?;
        serde_json::from_value(counts).map_err(|error| error.to_string())
    }
}

/// A server, and a user with a browser.
pub(crate) struct World {
    pub(crate) provider: Provider,
    pub(crate) url: String,
    browser: Browser,
    sign_ins: Arc<AtomicUsize>,
    before: BTreeMap<String, u64>,
    clients_before: u64,
    _stop: Stop,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

impl World {
    /// Starts a server whose tool `look` requires the scope `read`, and `edit` the scope `write`.
    pub(crate) async fn start(provider: Provider) -> Result<Self, String> {
        let error = |error: &dyn std::fmt::Display| error.to_string();
        provider
            .set(json!({"format": "jwt", "lifetime": 3600, "documents": {}}))
            .await?;
        let server = Server::new("guarded", "1").tool(
            "look",
            "Looks",
            |_: Nothing, ctx: Context| async move {
                let caller = ctx.auth();
                caller
                    .and_then(|caller| caller.subject().map(str::to_owned))
                    .unwrap_or_default()
            },
        );
        let edit = Tool::new("edit", json!({"type": "object"}));
        let mut writes = ToolOptions::default();
        writes.scopes = ["write"].into_iter().collect();
        let edits = |_: Nothing, _: Context| async { "edited" };
        server
            .add_tool_fn(edit, writes, edits)
            .map_err(|why| error(&why))?;
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .map_err(|why| error(&why))?;
        let url = format!(
            "http://{}/mcp",
            listener.local_addr().map_err(|why| error(&why))?
        );
        // A revoked token is refused immediately.
        let introspection = Introspection::new(format!("{}/token/introspection", provider.issuer))
            .with_client(
                "resource-server",
                "a secret of the resource server's, long enough".to_owned(),
            )
            .keep_for(Duration::ZERO);
        let auth = ResourceServer::builder(&url)
            .issuer(&provider.issuer)
            .introspection(introspection)
            .clock_skew(Duration::ZERO)
            .required_scopes(["read"])
            .build()
            .map_err(|why| error(&why))?;
        let mut options = HttpOptions::default();
        options.auth = Some(Arc::new(auth));
        let http = Http::from_listener(listener, options).map_err(|why| error(&why))?;
        let stop = Stop::new();
        let signal = stop.clone();
        tokio::spawn(async move { server.serve_until(http, signal).await });
        let before = provider.counts().await?;
        let clients_before = provider.kept("Client").await?;
        Ok(Self {
            provider,
            url,
            browser: Browser::default(),
            sign_ins: Arc::default(),
            before,
            clients_before,
            _stop: stop,
        })
    }

    /// The same with opaque access tokens, which are valid for as long as the provider says.
    pub(crate) async fn with_opaque_tokens(provider: Provider) -> Result<Self, String> {
        let world = Self::start(provider).await?;
        world.provider.set(json!({"format": "opaque"})).await?;
        Ok(world)
    }

    /// The client's OAuth settings, with the user.
    pub(crate) fn oauth(&self) -> OAuthBuilder {
        let (browser, sign_ins) = (self.browser.clone(), self.sign_ins.clone());
        let user_agent = FunctionUserAgent::new(REDIRECT, move |url| {
            let (browser, sign_ins) = (browser.clone(), sign_ins.clone());
            async move {
                sign_ins.fetch_add(1, Ordering::Relaxed);
                browser
                    .follow(url, REDIRECT)
                    .await
                    .map_err(UserAgentError::other)
            }
        });
        OAuth::builder("A test").user_agent(user_agent.expect("a place of this machine"))
    }

    pub(crate) async fn connect(&self, oauth: impl Into<Auth>) -> Result<Client, String> {
        let mut settings = HttpSettings::default();
        settings.auth = Some(oauth.into());
        let address = Address::Url(self.url.clone(), settings);
        Client::builder("A test", "1")
            .connect(address)
            .await
            .map_err(|error| error.to_string())
    }

    /// How often the user was sent to the authorization server.
    pub(crate) fn sign_ins(&self) -> usize {
        self.sign_ins.load(Ordering::Relaxed)
    }

    /// Returns the number of clients registered since the start. The first attempt of each is refused, because the
    /// provider does not accept scopes of a resource in a registration.
    pub(crate) async fn registrations(&self) -> Result<u64, String> {
        Ok(self.provider.kept("Client").await? - self.clients_before)
    }

    /// Returns how often a path of the provider was requested since the start.
    pub(crate) async fn request_count(&self, path: &str) -> Result<u64, String> {
        let before = self.before.get(path).copied().unwrap_or_default();
        Ok(self
            .provider
            .counts()
            .await?
            .get(path)
            .copied()
            .unwrap_or_default()
            - before)
    }
}

/// Calls a tool and returns its text.
pub(crate) async fn call(client: &Client, tool: &str) -> Result<String, ClientError> {
    let result = client.call_tool(tool, json!({})).await?;
    let content = serde_json::to_value(&result.content).unwrap_or_default();
    Ok(content[0]["text"].as_str().unwrap_or_default().to_owned())
}

/// The same for a call that must succeed.
pub(crate) async fn must_call(client: &Client, tool: &str) -> Result<String, String> {
    call(client, tool)
        .await
        .map_err(|error| format!("{tool}: {error}"))
}

/// Fails unless two values are equal.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Outcome {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: {found:?} and not {expected:?}"))
    }
}
