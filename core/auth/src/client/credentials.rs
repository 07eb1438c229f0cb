//! What a client is known by beforehand.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use mcpline_jose::{Algorithm, SigningKey};
use ring::rand::SystemRandom;

use crate::BoxFuture;
use crate::metadata::ServerMetadata;
use crate::registration::{ClientAuth, Registration, auth_method};
use crate::{AuthError, Secret};

/// What an authorization server knows a client by, had from it in some other way.
#[derive(Debug, Clone)]
pub struct Credentials {
    pub(super) issuer: Option<String>,
    pub(super) client_id: String,
    pub(super) secret: Option<Secret>,
    pub(super) key: Option<Key>,
    pub(super) auth: Option<ClientAuth>,
}

/// A private key, and what the server calls it.
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
    /// The client with this identifier.
    pub fn new(client_id: impl Into<String>) -> Self {
        Self {
            issuer: None,
            client_id: client_id.into(),
            secret: None,
            key: None,
            auth: None,
        }
    }

    /// Who gave them: the issuer identifier of an authorization server, character by character. They are shown to nobody
    /// else; without it they are shown to the one that the server named first (2026-07-28,
    /// `basic/authorization/client-registration`, authorization server binding).
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// The client's password.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secret = Some(Secret::from(secret.into()));
        self
    }

    /// The client's private key, in PEM, for `private_key_jwt`. `algorithm` is one such as `ES256`, by default the usual one
    /// of that kind of key; `key_id` is what the authorization server calls the key, if it has several.
    ///
    /// # Errors
    ///
    /// [`AuthError::CredentialsUnusable`] if the key can't be used so.
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

    /// How the client proves who it is; by default what the authorization server takes.
    #[must_use]
    pub fn auth(mut self, auth: ClientAuth) -> Self {
        self.auth = Some(auth);
        self
    }

    /// Whether they may be shown to this issuer.
    pub(super) fn are_of(&self, issuer: &str) -> bool {
        self.issuer.as_deref().is_none_or(|own| own == issuer)
    }

    /// The registration that they are.
    pub(super) fn registration(&self, server: &ServerMetadata) -> Registration {
        let auth = auth_method(server, self.secret.is_some(), self.key.is_some());
        Registration::known(
            server.issuer.clone(),
            self.client_id.clone(),
            self.secret.clone(),
            self.auth.unwrap_or(auth),
        )
    }
}

/// Gives somebody's signed word: a workload's identity, or a user's ID token. It is asked each time that one is needed, with
/// the issuer that the word is to be shown to, and gives one that hasn't lapsed.
pub type AssertionSource =
    Arc<dyn Fn(String) -> BoxFuture<'static, Result<String, AuthError>> + Send + Sync>;

/// Makes a [`AssertionSource`] of a function.
pub(super) fn word_source<F, Fut>(source: F) -> AssertionSource
where
    F: Fn(String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, AuthError>> + Send + 'static,
{
    Arc::new(move |audience| Box::pin(source(audience)))
}

/// An enterprise's identity provider, which decides in the user's place (enterprise-managed authorization).
#[derive(Clone)]
pub struct Enterprise {
    pub(super) token_endpoint: String,
    pub(super) client_id: String,
    pub(super) secret: Option<Secret>,
    pub(super) id_token: AssertionSource,
}

impl Enterprise {
    /// The identity provider with this token endpoint, which knows the client by this identifier. `id_token` gives the
    /// ID token of the user's sign-on.
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
            id_token: word_source(id_token),
        }
    }

    /// The client's password at the identity provider.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secret = Some(Secret::from(secret.into()));
        self
    }

    /// How the client is known to the identity provider.
    pub(super) fn registration(&self) -> Registration {
        let auth = match self.secret {
            Some(_) => ClientAuth::SecretPost,
            None => ClientAuth::None,
        };
        Registration::known(
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
