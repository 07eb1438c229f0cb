//! Tokens that the host supplies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use mcpline_protocol::{Challenge, Scopes};
use tokio::sync::Mutex;

use crate::BoxFuture;
use crate::token::MAX_TOKEN;
use crate::{AuthError, Secret};

/// Supplies tokens.
pub type TokenSource =
    Arc<dyn Fn(TokenRequest) -> BoxFuture<'static, Result<BearerToken, AuthError>> + Send + Sync>;

/// A token and its expiry.
#[derive(Debug, Clone)]
pub struct BearerToken {
    /// The token.
    pub token: Secret,
    /// When it expires; `None` if it doesn't, or if that is unknown.
    pub expires_at: Option<SystemTime>,
}

impl<T: Into<String>> From<T> for BearerToken {
    fn from(token: T) -> Self {
        Self {
            token: token.into().into(),
            expires_at: None,
        }
    }
}

/// A request for a token from a [`TokenSource`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenRequest {
    /// The server that the token is for: its URL without credentials.
    pub server: String,
    /// Whether the server rejected the previous token.
    pub refused: bool,
    /// The scopes that the server requires, if it named any.
    pub scopes: Scopes,
}

/// A token source with the last token that it supplied.
pub(crate) struct CachedTokenSource {
    source: TokenSource,
    given: Mutex<CachedToken>,
    /// The number of the latest token, readable without the lock.
    number: AtomicU64,
}

#[derive(Default)]
struct CachedToken {
    number: u64,
    token: Option<BearerToken>,
}

impl CachedTokenSource {
    pub(super) fn new(source: TokenSource) -> Self {
        Self {
            source,
            given: Mutex::default(),
            number: AtomicU64::new(0),
        }
    }

    /// The number of the latest token.
    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Returns the current token and its number. Concurrent callers share one call of the source.
    pub(super) async fn token(&self, server: &str) -> Result<(Secret, u64), AuthError> {
        let mut given = self.given.lock().await;
        let lapsed =
            |token: &BearerToken| token.expires_at.is_some_and(|at| at <= SystemTime::now());
        match &given.token {
            Some(token) if !lapsed(token) => {}
            _ => self.ask(&mut given, server, false, Scopes::new()).await?,
        }
        let token = given.token.as_ref().map(|token| token.token.clone());
        let token =
            token.ok_or_else(|| AuthError::CredentialsUnusable("there is no token".to_owned()))?;
        Ok((token, given.number))
    }

    /// Replaces the token with this number, which the server rejected.
    pub(super) async fn renew(
        &self,
        server: &str,
        number: u64,
        challenge: Option<&Challenge>,
    ) -> Result<(), AuthError> {
        let mut given = self.given.lock().await;
        if given.number != number {
            return Ok(());
        }
        let scopes = challenge.and_then(|challenge| challenge.get("scope"));
        let scopes = scopes.map(Scopes::parse).unwrap_or_default();
        self.ask(&mut given, server, true, scopes).await
    }

    async fn ask(
        &self,
        given: &mut CachedToken,
        server: &str,
        refused: bool,
        scopes: Scopes,
    ) -> Result<(), AuthError> {
        let wanted = TokenRequest {
            server: server.to_owned(),
            refused,
            scopes,
        };
        let token = (self.source)(wanted).await?;
        let text = token.token.expose();
        if text.is_empty()
            || text.len() > MAX_TOKEN
            || !text.bytes().all(|byte| matches!(byte, 0x21..=0x7e))
        {
            return Err(AuthError::CredentialsUnusable(format!(
                "the access token must have 1 to {MAX_TOKEN} visible ASCII characters"
            )));
        }
        given.token = Some(token);
        given.number += 1;
        self.number.store(given.number, Ordering::Release);
        Ok(())
    }
}
