//! Preconfigured client credentials.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use mcpline_jose::{Algorithm, SigningKey};
use ring::rand::SystemRandom;

use crate::BoxFuture;
use crate::metadata::ServerMetadata;
use crate::registration::{ClientAuth, ClientRegistration, auth_method};
use crate::{AuthError, Secret};

/// A client's preregistered identity at an authorization server.
#[derive(Debug, Clone)]
pub struct Credentials {
    pub(super) issuer: Option<String>,
    pub(super) client_id: String,
    pub(super) secret: Option<Secret>,
    pub(super) key: Option<Key>,
    pub(super) auth: Option<ClientAuth>,
}

/// A private key and the server's identifier for it.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) key: Arc<SigningKey>,
    pub(super) id: Option<String>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Credentials {
    /// Credentials with this client identifier.
    pub fn new(client_id: impl Into<String>) -> Self {
        Self {
            issuer: None,
            client_id: client_id.into(),
            secret: None,
            key: None,
            auth: None,
        }
    }

    /// The issuer identifier of the authorization server that issued the credentials, compared character by character.
    /// They are sent to no other server. Without it, they are sent to the first one that the MCP server names
    /// (2026-07-28, `basic/authorization/client-registration`, authorization server binding).
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// The client secret.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secret = Some(Secret::from(secret.into()));
        self
    }

    /// The client's private key, in PEM, for `private_key_jwt`. `algorithm` is a name such as `ES256`; by default, the
    /// usual one for the type of the key. `key_id` is the authorization server's identifier for the key, if it knows
    /// several.
    ///
    /// # Errors
    ///
    /// [`AuthError::CredentialsUnusable`] if the key or the algorithm can't be used.
    pub fn private_key(
        mut self,
        pem: &[u8],
        algorithm: Option<&str>,
        key_id: Option<String>,
    ) -> Result<Self, AuthError> {
        let invalid =
            |reason: String| AuthError::CredentialsUnusable(format!("the private key: {reason}"));
        let algorithm = match algorithm {
            None => None,
            Some(name) => Some(
                Algorithm::parse(name)
                    .ok_or_else(|| invalid(format!("the algorithm {name} is not supported")))?,
            ),
        };
        let key = SigningKey::from_pem(pem, algorithm, &SystemRandom::new());
        self.key = Some(Key {
            key: Arc::new(key.map_err(|error| invalid(error.to_string()))?),
            id: key_id,
        });
        Ok(self)
    }

    /// How the client authenticates; by default, with a method that the authorization server supports.
    #[must_use]
    pub fn auth(mut self, auth: ClientAuth) -> Self {
        self.auth = Some(auth);
        self
    }

    /// Whether these credentials may be sent to this issuer.
    pub(super) fn are_of(&self, issuer: &str) -> bool {
        self.issuer.as_deref().is_none_or(|own| own == issuer)
    }

    /// The registration that these credentials stand for.
    pub(super) fn registration(&self, server: &ServerMetadata) -> ClientRegistration {
        let auth = auth_method(server, self.secret.is_some(), self.key.is_some());
        ClientRegistration::known(
            server.issuer.clone(),
            self.client_id.clone(),
            self.secret.clone(),
            self.auth.unwrap_or(auth),
        )
    }
}

/// Supplies a signed assertion: a workload's identity, or a user's ID token. It is called each time an assertion is
/// needed, with the issuer that the assertion is for, and must return one that hasn't expired.
pub type AssertionSource =
    Arc<dyn Fn(String) -> BoxFuture<'static, Result<String, AuthError>> + Send + Sync>;

/// Makes an [`AssertionSource`] of a function.
pub(super) fn assertion_source<F, Fut>(source: F) -> AssertionSource
where
    F: Fn(String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, AuthError>> + Send + 'static,
{
    Arc::new(move |audience| Box::pin(source(audience)))
}

/// An enterprise's identity provider, which consents on the user's behalf (enterprise-managed authorization).
#[derive(Clone)]
pub struct Enterprise {
    pub(super) token_endpoint: String,
    pub(super) client_id: String,
    pub(super) secret: Option<Secret>,
    pub(super) id_token: AssertionSource,
}

impl Enterprise {
    /// The identity provider with this token endpoint, where the client has this identifier. `id_token` supplies the ID
    /// token of the user's sign-on.
    pub fn new<F, Fut>(
        token_endpoint: impl Into<String>,
        client_id: impl Into<String>,
        id_token: F,
    ) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, AuthError>> + Send + 'static,
    {
        Self {
            token_endpoint: token_endpoint.into(),
            client_id: client_id.into(),
            secret: None,
            id_token: assertion_source(id_token),
        }
    }

    /// The client's secret at the identity provider.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secret = Some(Secret::from(secret.into()));
        self
    }

    /// The client's registration at the identity provider.
    pub(super) fn registration(&self) -> ClientRegistration {
        let auth = match self.secret {
            Some(_) => ClientAuth::SecretPost,
            None => ClientAuth::None,
        };
        ClientRegistration::known(
            self.token_endpoint.clone(),
            self.client_id.clone(),
            self.secret.clone(),
            auth,
        )
    }
}

impl fmt::Debug for Enterprise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enterprise")
            .field("token_endpoint", &self.token_endpoint)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}
