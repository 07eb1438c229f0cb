//! OAuth settings of a client: its identity, its user agent, its token store.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use mcpline_protocol::Scopes;
use mcpline_protocol::without_credentials;

use crate::AuthError;
use crate::registration::{ClientMetadata, check_client_id_metadata_url};
use crate::store::{MemoryStore, TokenStore};
use crate::user_agent::UserAgent;

use super::credentials::{AssertionSource, Credentials, Enterprise, assertion_source};
use super::request_authorizer::RequestAuthorizer;
use super::token_renewal::{TokenManager, TokenManagerEntry};
use super::{FetcherFactory, TokenProvider};

/// OAuth for clients (`basic/authorization`, every revision that has it). Cheap to clone; clients that use clones of
/// one share their tokens.
///
/// ```
/// use mcpline_auth::client::OAuth;
/// use mcpline_auth::user_agent::FunctionUserAgent;
///
/// let oauth = OAuth::builder("Example host")
///     .user_agent(FunctionUserAgent::new("https://host.example/callback", |url| async move {
///         // Send the user there; resolve with the URL that the user is redirected to.
///         # let _ = url; Ok(String::new())
///     })?)
///     .build();
/// # Ok::<(), mcpline_auth::user_agent::UserAgentError>(())
/// ```
#[derive(Clone)]
pub struct OAuth(pub(super) Arc<OAuthSettings>);

/// The built settings.
pub(crate) struct OAuthSettings {
    pub(crate) client: ClientMetadata,
    pub(crate) metadata_url: Option<String>,
    pub(crate) credentials: Vec<Credentials>,
    pub(crate) grant: GrantKind,
    pub(crate) scopes: Scopes,
    pub(crate) store: Arc<dyn TokenStore>,
    pub(crate) account: Option<String>,
    pub(crate) dpop: bool,
    pub(crate) allow_private_addresses: bool,
    pub(crate) require_pkce: bool,
    accounts: Mutex<HashMap<String, TokenManagerEntry>>,
}

/// Which grant tokens are requested with.
pub(crate) enum GrantKind {
    /// Authorization code: the user consents.
    User(Option<Arc<dyn UserAgent>>),
    /// Client credentials: the client acts for itself.
    Client,
    /// JWT bearer: a signed assertion.
    Assertion(AssertionSource),
    /// Enterprise-managed: an identity provider consents on the user's behalf.
    Enterprise(Enterprise),
}

/// Builds an [`OAuth`].
pub struct OAuthBuilder {
    pub(crate) settings: OAuthSettings,
}

impl OAuth {
    /// Starts with the client name that users see when they are asked for consent.
    pub fn builder(client_name: impl Into<String>) -> OAuthBuilder {
        let client = ClientMetadata {
            client_name: client_name.into(),
            ..ClientMetadata::default()
        };
        OAuthBuilder {
            settings: OAuthSettings {
                client,
                metadata_url: None,
                credentials: Vec::new(),
                grant: GrantKind::User(None),
                scopes: Scopes::new(),
                store: Arc::new(MemoryStore::default()),
                account: None,
                dpop: false,
                allow_private_addresses: false,
                require_pkce: true,
                accounts: Mutex::default(),
            },
        }
    }

    /// The token manager for the server with this URL.
    pub(super) fn account(&self, server: &str) -> Arc<TokenManager> {
        let mut accounts = self
            .0
            .accounts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = accounts.get(server).and_then(TokenManagerEntry::account) {
            return account;
        }
        accounts.retain(|_, known| known.is_needed());
        let account = TokenManager::new(self.clone(), server, accounts.get(server));
        accounts.insert(server.to_owned(), account.registry_entry());
        account
    }

    /// Deletes the tokens for the server with this URL, also from the store. The user will have to consent again.
    ///
    /// # Errors
    ///
    /// [`AuthError::TokenStoreFailed`] if the store fails.
    pub async fn forget(&self, server: &str) -> Result<(), AuthError> {
        self.account(&without_credentials(server)).forget().await
    }

    /// Signs the user out of the server with this URL: revokes the tokens if the authorization server supports it (RFC
    /// 7009), and deletes them. `settings` say how the authorization server is reached: `HttpSettings`.
    ///
    /// # Errors
    ///
    /// [`AuthError::TokenStoreFailed`] if the store fails, or the reason why the tokens could not be revoked; they are
    /// deleted in any case.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn sign_out(
        &self,
        server: &str,
        settings: &(impl FetcherFactory + Clone + 'static),
    ) -> Result<(), AuthError> {
        let server = without_credentials(server);
        let handle = tokio::runtime::Handle::current();
        let authorizer = RequestAuthorizer::new(
            &TokenProvider::oauth(self.clone()),
            &server,
            Arc::new(settings.clone()),
            handle,
        );
        self.account(&server).sign_out(&authorizer).await
    }
}

impl OAuthBuilder {
    /// How the user reaches the authorization server and returns from it. Without a user agent and without another
    /// grant, everything that needs consent fails with [`AuthError::Unattended`].
    #[must_use]
    pub fn user_agent(mut self, user_agent: impl UserAgent + 'static) -> Self {
        self.settings.grant = GrantKind::User(Some(Arc::new(user_agent)));
        self
    }

    /// Sets further metadata for registration: `client_uri`, `logo_uri`, `software_id`.
    #[must_use]
    pub fn client(mut self, change: impl FnOnce(&mut ClientMetadata)) -> Self {
        change(&mut self.settings.client);
        self
    }

    /// The `https` URL of the client's metadata document, which serves as its identifier where that is supported
    /// (2025-11-25, `basic/authorization`, client id metadata documents). Elsewhere the client registers.
    ///
    /// # Errors
    ///
    /// [`AuthError::InvalidUrl`] if it is not an `https` URL with a path.
    pub fn client_id_metadata_url(mut self, url: impl Into<String>) -> Result<Self, AuthError> {
        let url = url.into();
        check_client_id_metadata_url(&url)?;
        self.settings.metadata_url = Some(url);
        Ok(self)
    }

    /// Preregistered credentials. They take precedence over every other kind of registration. Can be called several
    /// times, for several authorization servers.
    #[must_use]
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.settings.credentials.push(credentials);
        self
    }

    /// Requests tokens on the client's own behalf, without a user (client credentials extension). Needs
    /// [`credentials`](Self::credentials) with a secret or a key.
    #[must_use]
    pub fn client_credentials(mut self) -> Self {
        self.settings.grant = GrantKind::Client;
        self
    }

    /// Requests tokens with a workload's identity: `source` supplies a JWT of its platform for the authorization server
    /// that it is called with (RFC 7523, section 2.1).
    #[must_use]
    pub fn workload_identity<F, Fut>(mut self, source: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, AuthError>> + Send + 'static,
    {
        self.settings.grant = GrantKind::Assertion(assertion_source(source));
        self
    }

    /// Requests tokens through an enterprise's identity provider (enterprise-managed authorization extension).
    #[must_use]
    pub fn enterprise(mut self, enterprise: Enterprise) -> Self {
        self.settings.grant = GrantKind::Enterprise(enterprise);
        self
    }

    /// Scopes to request besides those that the server requires, separated by spaces.
    #[must_use]
    pub fn scopes(mut self, scopes: &str) -> Self {
        self.settings.scopes = Scopes::parse(scopes);
        self
    }

    /// Where tokens and registrations are stored; in memory by default.
    #[must_use]
    pub fn store(mut self, store: impl TokenStore + 'static) -> Self {
        self.settings.store = Arc::new(store);
        self
    }

    /// The user that the tokens belong to, where several users of one host share a store.
    #[must_use]
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.settings.account = Some(account.into());
        self
    }

    /// Whether tokens are bound to a key, so that a stolen token is useless (RFC 9449). `false` by default: few servers
    /// support it.
    #[must_use]
    pub fn dpop(mut self, dpop: bool) -> Self {
        self.settings.dpop = dpop;
        self
    }

    /// Whether a server at a public address may name authorization servers at private ones. `false` by default: a
    /// hostile server could make this machine send requests to addresses that only it can reach. Servers at private
    /// addresses may always do so.
    #[must_use]
    pub fn allow_private_addresses(mut self, allow: bool) -> Self {
        self.settings.allow_private_addresses = allow;
        self
    }

    /// Whether an authorization server must announce PKCE support, as the specification requires (2025-11-25,
    /// `basic/authorization`, authorization code protection). `true` by default; some servers that support it don't
    /// announce it. PKCE is used in any case.
    #[must_use]
    pub fn require_pkce(mut self, require: bool) -> Self {
        self.settings.require_pkce = require;
        self
    }

    /// Builds the settings.
    pub fn build(self) -> OAuth {
        OAuth(Arc::new(self.settings))
    }
}

impl OAuthSettings {
    /// The storage key of the tokens for a server.
    pub(super) fn token_key(&self, server: &str) -> String {
        match &self.account {
            Some(account) => format!("tokens {server} {account}"),
            None => format!("tokens {server}"),
        }
    }

    /// The storage key of a registration with an authorization server.
    pub(super) fn registration_key(&self, issuer: &str) -> String {
        format!("client {issuer} {}", self.client.client_name)
    }

    /// The credentials that may be sent to this issuer.
    pub(super) fn credentials_of(&self, issuer: &str) -> Option<&Credentials> {
        let exact = self
            .credentials
            .iter()
            .find(|own| own.issuer.as_deref() == Some(issuer));
        exact.or_else(|| self.credentials.iter().find(|own| own.are_of(issuer)))
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth")
            .field("client_name", &self.0.client.client_name)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OAuthBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthBuilder")
            .field("client_name", &self.settings.client.client_name)
            .finish_non_exhaustive()
    }
}
