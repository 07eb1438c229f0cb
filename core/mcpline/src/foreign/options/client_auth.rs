//! Options of a client's authorization.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcpline_protocol::RpcError;
use serde::Deserialize;
use serde_json::json;

use crate::auth::{
    Auth, AuthError, BearerToken, ClientAuth, Credentials, Enterprise, FileStore,
    FunctionUserAgent, Loopback, MemoryStore, OAuth, Terminal, TokenStore, UserAgent,
    UserAgentError,
};
use crate::background;
use crate::error::Error;
use crate::foreign::auth::{HostRequest, HostRequestHandlers, HostStore, IgnoredAnswer};

use super::options_macro::options;
use super::seconds;

/// [`Auth`] from foreign code: `{"bearer": token}`, `{"source": {}}` for tokens from the host, or `{"oauth": {…}}`. The
/// requests to the host are listed in `foreign::auth`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum AuthOptions {
    /// A fixed token.
    Bearer(String),
    /// Tokens from the host.
    Source {},
    /// OAuth.
    Oauth(Box<OAuthOptions>),
}

options! {
    /// [`OAuth`] from foreign code. `client_name` is required; other absent members keep their defaults.
    #[derive(Default)]
    pub struct OAuthOptions {
        client_name: String,
        client_uri: Option<String>,
        logo_uri: Option<String>,
        software_id: Option<String>,
        software_version: Option<String>,
        client_id_metadata_url: Option<String>,
        credentials: Vec<CredentialsOptions>,
        grant: GrantOptions,
        user_agent: Option<UserAgentOptions>,
        scopes: Option<String>,
        store: StoreOptions,
        account: Option<String>,
        dpop: Option<bool>,
        allow_private_addresses: Option<bool>,
        require_pkce: Option<bool>,
    }
    needs client_name;
}

options! {
    /// [`Credentials`] from foreign code.
    #[derive(Default)]
    struct CredentialsOptions {
        client_id: String,
        issuer: Option<String>,
        secret: Option<String>,
        private_key: Option<String>,
        algorithm: Option<String>,
        key_id: Option<String>,
        auth: Option<ClientAuth>,
    }
    needs client_id;
}

/// The grant by which tokens are requested.
#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum GrantOptions {
    #[default]
    User,
    ClientCredentials,
    WorkloadIdentity,
    Enterprise(EnterpriseOptions),
}

options! {
    #[derive(Default)]
    struct EnterpriseOptions {
        token_endpoint: String,
        client_id: String,
        secret: Option<String>,
    }
    needs token_endpoint, client_id;
}

/// How the user reaches the authorization server.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum UserAgentOptions {
    Loopback(LoopbackOptions),
    Terminal(TerminalOptions),
    Host(HostUserAgentOptions),
}

options! {
    #[derive(Default)]
    struct LoopbackOptions {
        redirect_uri: Option<String>,
        timeout: Option<f64>,
        browser: BrowserOptions,
        /// Whether the host receives URLs for which no browser could be opened.
        unopened: bool,
    }
}

options! {
    #[derive(Default)]
    struct TerminalOptions {
        redirect_uri: Option<String>,
        timeout: Option<f64>,
    }
}

options! {
    #[derive(Default)]
    struct HostUserAgentOptions {
        redirect_uri: String,
    }
    needs redirect_uri;
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum BrowserOptions {
    #[default]
    System,
    Host,
    None,
}

/// Where tokens are stored.
#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum StoreOptions {
    #[default]
    Memory,
    /// A directory.
    File(std::path::PathBuf),
    /// Name of the entries.
    Keyring(String),
    Host(HostStoreOptions),
}

options! {
    #[derive(Default)]
    struct HostStoreOptions {
        locks: bool,
        /// Identifies stores that the host considers the same.
        group: Option<String>,
    }
}

/// Omits what may be secret.
impl std::fmt::Debug for AuthOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bearer(_) => "Bearer",
            Self::Source {} => "Source",
            Self::Oauth(_) => "Oauth",
        })
    }
}

/// Omits what may be secret.
impl std::fmt::Debug for OAuthOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OAuthOptions")
            .field("client_name", &self.client_name)
            .finish_non_exhaustive()
    }
}

impl AuthOptions {
    /// Converts into the core's authorization, which sends requests to the host by `request_handlers`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a value is invalid.
    pub fn auth(self, request_handlers: HostRequestHandlers<'_>) -> Result<Auth, Error> {
        match self {
            Self::Bearer(token) => Ok(Auth::bearer(token)),
            Self::Source {} => source(request_handlers),
            Self::Oauth(options) => options.oauth(request_handlers).map(Auth::oauth),
        }
    }
}

impl OAuthOptions {
    /// Converts into the core's OAuth; see [`AuthOptions::auth`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a value is invalid.
    pub fn oauth(self, request_handlers: HostRequestHandlers<'_>) -> Result<OAuth, Error> {
        let misuse = |error: AuthError| Error::usage(error.to_string());
        let mut builder = OAuth::builder(self.client_name.clone());
        if let Some(url) = self.client_id_metadata_url {
            builder = builder.client_id_metadata_url(url).map_err(misuse)?;
        }
        builder = builder.client(|client| {
            client.client_uri = self.client_uri;
            client.logo_uri = self.logo_uri;
            client.software_id = self.software_id;
            client.software_version = self.software_version;
        });
        for credentials in self.credentials {
            builder = builder.credentials(credentials.credentials()?);
        }
        if let Some(scopes) = self.scopes {
            builder = builder.scopes(&scopes);
        }
        if let Some(account) = self.account {
            builder = builder.account(account);
        }
        if let Some(dpop) = self.dpop {
            builder = builder.dpop(dpop);
        }
        if let Some(allow) = self.allow_private_addresses {
            builder = builder.allow_private_addresses(allow);
        }
        if let Some(require) = self.require_pkce {
            builder = builder.require_pkce(require);
        }
        builder = builder.store(self.store.store(request_handlers)?);
        if let Some(user_agent) = self.user_agent {
            builder =
                builder.user_agent(user_agent.user_agent(&self.client_name, request_handlers)?);
        }
        let builder = match self.grant {
            GrantOptions::User => builder,
            GrantOptions::ClientCredentials => builder.client_credentials(),
            GrantOptions::WorkloadIdentity => {
                let request = HostRequest::new(request_handlers, "auth/assertion")?;
                builder
                    .workload_identity(move |audience| token_from_host(request.clone(), audience))
            }
            GrantOptions::Enterprise(EnterpriseOptions {
                token_endpoint,
                client_id,
                secret,
            }) => {
                let request = HostRequest::new(request_handlers, "auth/id_token")?;
                let enterprise = Enterprise::new(token_endpoint, client_id, move |audience| {
                    token_from_host(request.clone(), audience)
                });
                builder.enterprise(match secret {
                    Some(secret) => enterprise.secret(secret),
                    None => enterprise,
                })
            }
        };
        Ok(builder.build())
    }
}

impl CredentialsOptions {
    fn credentials(self) -> Result<Credentials, Error> {
        let mut credentials = Credentials::new(self.client_id);
        if let Some(issuer) = self.issuer {
            credentials = credentials.issuer(issuer);
        }
        if let Some(secret) = self.secret {
            credentials = credentials.secret(secret);
        }
        if let Some(key) = self.private_key {
            credentials = credentials
                .private_key(key.as_bytes(), self.algorithm.as_deref(), self.key_id)
                .map_err(|error| Error::usage(error.to_string()))?;
        }
        if let Some(auth) = self.auth {
            credentials = credentials.auth(auth);
        }
        Ok(credentials)
    }
}

impl UserAgentOptions {
    fn user_agent(
        self,
        client_name: &str,
        request_handlers: HostRequestHandlers<'_>,
    ) -> Result<Arc<dyn UserAgent>, Error> {
        let refused = |error: UserAgentError| Error::usage(error.to_string());
        Ok(match self {
            Self::Loopback(LoopbackOptions {
                redirect_uri,
                timeout,
                browser,
                unopened,
            }) => {
                let mut loopback = Loopback::new().client_name(client_name);
                if let Some(uri) = redirect_uri {
                    loopback = loopback.redirect_uri(&uri).map_err(refused)?;
                }
                if let Some(timeout) = timeout {
                    loopback = loopback.timeout(seconds(timeout)?);
                }
                loopback = match browser {
                    BrowserOptions::System => loopback,
                    BrowserOptions::None => loopback.without_browser(),
                    BrowserOptions::Host => {
                        let request = HostRequest::new(request_handlers, "auth/browser")?;
                        loopback.browser(move |url| {
                            let request = request.clone();
                            async move {
                                let asked =
                                    request.call_host::<IgnoredAnswer>(json!({ "url": url }));
                                asked
                                    .await
                                    .map(drop)
                                    .map_err(|error| error.message.into_owned())
                            }
                        })
                    }
                };
                if unopened {
                    let request = HostRequest::new(request_handlers, "auth/unopened")?;
                    loopback = loopback.when_unopened(move |url, reason| {
                        let request = request.clone();
                        let params = json!({ "url": url, "reason": reason });
                        background::spawn_here(async move {
                            let _ = request.call_host::<IgnoredAnswer>(params).await;
                        });
                    });
                }
                Arc::new(loopback)
            }
            Self::Terminal(TerminalOptions {
                redirect_uri,
                timeout,
            }) => {
                let mut terminal = Terminal::new();
                if let Some(uri) = redirect_uri {
                    terminal = terminal.redirect_uri(uri).map_err(refused)?;
                }
                if let Some(timeout) = timeout {
                    terminal = terminal.timeout(seconds(timeout)?);
                }
                Arc::new(terminal)
            }
            Self::Host(HostUserAgentOptions { redirect_uri }) => {
                #[derive(Deserialize)]
                struct OpenAnswer {
                    url: String,
                }
                let request = HostRequest::new(request_handlers, "auth/open")?;
                let callback = FunctionUserAgent::new(redirect_uri, move |url| {
                    let request = request.clone();
                    async move {
                        let opened = request.call_host::<OpenAnswer>(json!({ "url": url })).await;
                        let user_agent_error =
                            |error: RpcError| UserAgentError::other(error.message);
                        opened.map(|opened| opened.url).map_err(user_agent_error)
                    }
                });
                Arc::new(callback.map_err(refused)?)
            }
        })
    }
}

impl StoreOptions {
    fn store(
        self,
        request_handlers: HostRequestHandlers<'_>,
    ) -> Result<Arc<dyn TokenStore>, Error> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryStore::new()),
            Self::File(path) => Arc::new(FileStore::new(path)),
            Self::Keyring(service) => return keyring(service),
            Self::Host(HostStoreOptions { locks, group }) => {
                Arc::new(HostStore::new(request_handlers, locks, group)?)
            }
        })
    }
}

#[cfg(feature = "keyring")]
fn keyring(service: String) -> Result<Arc<dyn TokenStore>, Error> {
    Ok(Arc::new(crate::auth::KeyringStore::new(service)))
}

#[cfg(not(feature = "keyring"))]
fn keyring(_service: String) -> Result<Arc<dyn TokenStore>, Error> {
    Err(Error::usage(
        "this build of mcpline has no store for the system's keyring (cargo feature `keyring`)",
    ))
}

/// Returns authorization with tokens from the host.
fn source(request_handlers: HostRequestHandlers<'_>) -> Result<Auth, Error> {
    #[derive(Deserialize)]
    struct TokenAnswer {
        token: String,
        expires_in: Option<f64>,
    }
    let request = HostRequest::new(request_handlers, "auth/token")?;
    Ok(Auth::source(move |wanted| {
        let request = request.clone();
        async move {
            let params = json!({
                "server": wanted.server,
                "refused": wanted.refused,
                "scopes": wanted.scopes.to_string(),
            });
            let given: TokenAnswer = request
                .call_host(params)
                .await
                .map_err(unusable_credentials)?;
            let lasts = given
                .expires_in
                .map(Duration::try_from_secs_f64)
                .transpose();
            let lasts = lasts.map_err(|error| AuthError::CredentialsUnusable(error.to_string()))?;
            let mut token = BearerToken::from(given.token);
            token.expires_at = lasts.and_then(|lasts| SystemTime::now().checked_add(lasts));
            Ok(token)
        }
    }))
}

/// Requests a signed assertion from the host.
async fn token_from_host(request: Arc<HostRequest>, audience: String) -> Result<String, AuthError> {
    #[derive(Deserialize)]
    enum AssertionAnswer {
        #[serde(rename = "assertion", alias = "id_token")]
        Is(String),
    }
    let request = request.call_host(json!({ "audience": audience })).await;
    let AssertionAnswer::Is(request) = request.map_err(unusable_credentials)?;
    Ok(request)
}

fn unusable_credentials(error: RpcError) -> AuthError {
    AuthError::CredentialsUnusable(error.message.into_owned())
}
