//! Authorizes the requests of one client: adds tokens to them and handles rejections.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use mcpline_jose::SigningKey;
use mcpline_protocol::{Challenge, Scopes};
use mcpline_runtime::clock;
use ring::rand::SystemRandom;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use crate::Secret;
use crate::dpop::{self, DpopProofClaims};
use crate::error::AuthError;
use crate::fetch::Fetch;
use crate::token::TokenType;
use crate::url::Url;

use super::bearer::CachedTokenSource;
use super::token_renewal::{RenewalOutcome, TokenManager, TokenNeed};
use super::{FetcherFactory, TokenProvider, TokenProviderKind};

/// How often one request is sent again with another token: after a refresh, after consent, and after renewals by
/// others.
const MAX_RENEWALS: u32 = 4;

/// How often one request may step up (2025-11-25, `basic/authorization`, step-up: no more than a few times).
const MAX_STEP_UPS: u32 = 2;

/// How often one request is sent again with another nonce.
const MAX_NONCES: u32 = 2;

const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// Pauses (`true`) or resumes a request's timeout while something other than the server is awaited, such as the user's
/// consent.
pub type TimeoutPauser<'h> = dyn Fn(bool) + Send + Sync + 'h;

/// Authorizes the requests of one client.
pub struct RequestAuthorizer {
    tokens: ServerTokens,
    server: String,
    connect: Arc<dyn FetcherFactory>,
    handle: Handle,
    /// One for public addresses only, and one for private ones too. Created on first use: most tokens are valid.
    fetchers: [OnceCell<Fetch>; 2],
    /// Whether the server is at a private address.
    at_private: AtomicBool,
    /// The nonce that the server requires in proofs.
    nonce: Mutex<Option<String>>,
}

enum ServerTokens {
    Fixed(Secret),
    Source(Arc<CachedTokenSource>),
    Account(Arc<TokenManager>),
}

/// The authorization that a request was sent with.
#[derive(Default)]
pub struct SentAuthorization {
    number: u64,
    token: Option<(TokenType, Secret)>,
    key: Option<Arc<SigningKey>>,
    nonce: Option<String>,
}

/// How often one request was sent again, and why.
#[derive(Debug, Default)]
pub struct RetryCounts {
    renewals: u32,
    step_ups: u32,
    nonces: u32,
    /// Whether a token was refreshed for it.
    refreshed: bool,
    /// Whether the user consented for it.
    authorized: bool,
}

impl RequestAuthorizer {
    /// Creates one for `server`, the URL that is connected to, without credentials.
    pub fn new(
        origin: &TokenProvider,
        server: &str,
        connect: Arc<dyn FetcherFactory>,
        handle: Handle,
    ) -> Arc<Self> {
        Arc::new(Self {
            tokens: match &origin.0 {
                TokenProviderKind::Fixed(token) => ServerTokens::Fixed(token.clone()),
                TokenProviderKind::Source(source) => ServerTokens::Source(source.clone()),
                TokenProviderKind::OAuth(oauth) => ServerTokens::Account(oauth.account(server)),
            },
            server: server.to_owned(),
            at_private: AtomicBool::new(is_this_machine(server, &*connect)),
            connect,
            handle,
            fetchers: Default::default(),
            nonce: Mutex::new(None),
        })
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Ends the renewals that this client started.
    pub fn close(&self) {
        if let ServerTokens::Account(account) = &self.tokens {
            account.abort_renewal_of(self);
        }
    }

    /// Returns the HTTP client for this server's authorization. A server at a private address may name others there:
    /// the user who connected to it allowed that. `trusted` says whether that was so when the tokens were granted.
    ///
    /// The address that the server answered from decides, not its name: the owner of a name can let it resolve to one
    /// address now and to another later.
    pub async fn fetcher(&self, trusted: bool) -> Result<&Fetch, AuthError> {
        let private = trusted || self.may_name_private();
        let make = || async {
            let made = self.connect.fetcher(&self.handle, private);
            made.map_err(|reason| AuthError::FetchFailed {
                url: self.server.clone(),
                reason,
            })
        };
        self.fetchers[usize::from(private)]
            .get_or_try_init(make)
            .await
    }

    /// Whether this server may name others at private addresses.
    pub(super) fn may_name_private(&self) -> bool {
        let allowed = match &self.tokens {
            ServerTokens::Account(account) => account.allows_private_addresses(),
            _ => false,
        };
        allowed || self.at_private.load(Ordering::Relaxed)
    }

    /// A number that changes whenever the token changes. It doesn't say whether a new token belongs to the same user.
    pub fn authorization(&self) -> u64 {
        match &self.tokens {
            ServerTokens::Fixed(_) => 0,
            ServerTokens::Source(source) => source.number(),
            ServerTokens::Account(account) => account.generation(),
        }
    }

    /// Returns the authorization to send a request with.
    pub async fn obtain_authorization(
        self: &Arc<Self>,
        hold: &TimeoutPauser<'_>,
    ) -> Result<SentAuthorization, AuthError> {
        let mut shown = SentAuthorization::default();
        match &self.tokens {
            ServerTokens::Fixed(token) => shown.token = Some((TokenType::Bearer, token.clone())),
            ServerTokens::Source(source) => {
                let _held = TimeoutPause::new(hold);
                let (token, number) = source.token(&self.server).await?;
                (shown.token, shown.number) = (Some((TokenType::Bearer, token)), number);
            }
            ServerTokens::Account(account) => {
                let tokens = match account.ready() {
                    Some(tokens) => tokens,
                    None => {
                        let _held = TimeoutPause::new(hold);
                        account.tokens(self).await?
                    }
                };
                shown.number = tokens.generation;
                if let Some(record) = tokens.record {
                    let token = record.tokens.access_token.clone();
                    shown.token = Some((record.tokens.token_type, token));
                    shown.key.clone_from(&record.key);
                    shown.nonce = self.lock_nonce().clone();
                }
            }
        }
        Ok(shown)
    }

    /// Handles the response to a request that was sent with `shown`, and returns whether to send the request again.
    /// Everything needed for that has been done when this returns. `peer` is the server's address, or `None` behind a
    /// proxy.
    ///
    /// # Errors
    ///
    /// The reason why no token is accepted.
    pub async fn handle_refusal(
        self: &Arc<Self>,
        head: &Parts,
        peer: Option<IpAddr>,
        shown: &SentAuthorization,
        retries: &mut RetryCounts,
        hold: &TimeoutPauser<'_>,
    ) -> Result<bool, AuthError> {
        let other_nonce = self.note_nonce(head);
        if !matches!(
            head.status,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
        ) {
            return Ok(false);
        }
        self.note_peer(peer);
        let challenges = challenges(&head.headers);
        if challenges
            .iter()
            .any(|one| one.get("error") == Some(dpop::USE_NONCE))
        {
            retries.nonces += 1;
            let again = other_nonce && retries.nonces <= MAX_NONCES;
            return Ok(again);
        }
        let challenge = challenges
            .iter()
            .find(|one| one.is("bearer") || one.is("dpop"));
        if head.status == StatusCode::FORBIDDEN {
            let lacking = challenge.filter(|one| lacks_scope(one));
            return match (lacking, &self.tokens) {
                (Some(challenge), ServerTokens::Account(account)) => {
                    let _held = TimeoutPause::new(hold);
                    self.step_up(account, challenge, shown, retries).await
                }
                // A token with more scopes has to come from the host.
                (Some(challenge), ServerTokens::Fixed(_) | ServerTokens::Source(_)) => {
                    Err(AuthError::InsufficientScope {
                        needed: scopes_of(challenge),
                    })
                }
                (None, _) => Ok(false),
            };
        }
        retries.renewals += 1;
        let description = || {
            let description = challenge.and_then(|one| one.get("error_description"));
            description.map(str::to_owned)
        };
        if retries.authorized || retries.renewals > MAX_RENEWALS {
            return Err(AuthError::TokenRejected {
                description: description(),
            });
        }
        let _held = TimeoutPause::new(hold);
        match &self.tokens {
            // There is no other one.
            ServerTokens::Fixed(_) => {
                return Err(AuthError::TokenRejected {
                    description: description(),
                });
            }
            ServerTokens::Source(source) => {
                // Once only: a source without a better token would loop for ever.
                retries.authorized = true;
                source.renew(&self.server, shown.number, challenge).await?;
            }
            ServerTokens::Account(account) => {
                let need = TokenNeed::Other {
                    generation: shown.number,
                    challenge: challenge.cloned(),
                    in_vain: retries.refreshed,
                };
                let did = account.renew(self, need).await?;
                retries.refreshed |= did == RenewalOutcome::Refreshed;
                retries.authorized = did == RenewalOutcome::Authorized;
            }
        }
        Ok(true)
    }

    async fn step_up(
        self: &Arc<Self>,
        account: &Arc<TokenManager>,
        challenge: &Challenge,
        shown: &SentAuthorization,
        retries: &mut RetryCounts,
    ) -> Result<bool, AuthError> {
        let needed = scopes_of(challenge);
        retries.step_ups += 1;
        // Scopes that were requested but not granted won't be granted by another request.
        let in_vain = retries.step_ups > 1 && account.requested().contains_all(&needed);
        if needed.is_empty() || in_vain || retries.step_ups > MAX_STEP_UPS {
            return Err(AuthError::InsufficientScope { needed });
        }
        let need = TokenNeed::More {
            generation: shown.number,
            challenge: challenge.clone(),
            needed,
        };
        account.renew(self, need).await?;
        Ok(true)
    }

    /// Stores the address of the server. A proxy's address says nothing.
    fn note_peer(&self, peer: Option<IpAddr>) {
        if let Some(peer) = peer {
            self.at_private
                .store(!self.connect.is_public(peer), Ordering::Relaxed);
        }
    }

    /// Stores the nonce that a response names, and returns whether it differs from the previous one.
    fn note_nonce(&self, head: &Parts) -> bool {
        let Some(named) = head
            .headers
            .get(DPOP_NONCE)
            .and_then(|value| value.to_str().ok())
        else {
            return false;
        };
        let mut nonce = self.lock_nonce();
        let other = nonce.as_deref() != Some(named);
        *nonce = Some(named.to_owned());
        other
    }

    fn lock_nonce(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.nonce.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SentAuthorization {
    /// Adds the token to the headers of a request.
    pub fn put(&self, headers: &mut HeaderMap, method: &Method, url: &str) {
        let Some((kind, token)) = &self.token else {
            return;
        };
        // Tokens that can't be in a header were rejected when they were received.
        let Ok(mut value) = HeaderValue::from_str(&format!("{} {}", kind.scheme(), token.expose()))
        else {
            return;
        };
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
        let (TokenType::Dpop, Some(key)) = (kind, &self.key) else {
            return;
        };
        let proof = DpopProofClaims {
            method: method.as_str(),
            url,
            nonce: self.nonce.as_deref(),
            token: Some(token),
        };
        let proof = proof.sign(
            key,
            clock::unix_now(),
            clock::random(),
            &SystemRandom::new(),
        );
        // Without a proof the server rejects the request and says why.
        if let Some(Ok(proof)) = proof.ok().map(|proof| HeaderValue::from_str(&proof)) {
            headers.insert(DPOP, proof);
        }
    }
}

/// Whether the host of a URL is literally this machine or a private address.
fn is_this_machine(server: &str, connect: &dyn FetcherFactory) -> bool {
    Url::parse("server", server).is_ok_and(|url| {
        let address = url.host().parse::<IpAddr>();
        url.is_loopback() || address.is_ok_and(|address| !connect.is_public(address))
    })
}

/// Returns the error for a refusal of a token that the host has given, and that no other token replaces.
///
/// `None` if the response does not refuse the token: a status other than 401, or 403 without the error
/// `insufficient_scope` in its challenge (RFC 6750, section 3.1).
pub fn given_token_error(status: StatusCode, headers: &HeaderMap) -> Option<AuthError> {
    let challenges = challenges(headers);
    let mut challenges = challenges.iter();
    let challenge = challenges.find(|one| one.is("bearer") || one.is("dpop"));
    match status {
        StatusCode::UNAUTHORIZED => {
            let description = challenge.and_then(|one| one.get("error_description"));
            Some(AuthError::TokenRejected {
                description: description.map(str::to_owned),
            })
        }
        StatusCode::FORBIDDEN => {
            let lacking = challenge.filter(|one| lacks_scope(one))?;
            Some(AuthError::InsufficientScope {
                needed: scopes_of(lacking),
            })
        }
        _ => None,
    }
}

fn lacks_scope(challenge: &Challenge) -> bool {
    challenge.get("error") == Some("insufficient_scope")
}

/// Returns the scopes that a challenge names.
fn scopes_of(challenge: &Challenge) -> Scopes {
    let scopes = challenge.get("scope").map(Scopes::parse);
    scopes.unwrap_or_default()
}

fn challenges(headers: &HeaderMap) -> Vec<Challenge> {
    let values = headers.get_all(WWW_AUTHENTICATE).iter();
    let texts: Vec<_> = values.filter_map(|value| value.to_str().ok()).collect();
    Challenge::read(&texts.join(", "))
}

/// Pauses a request's timeout until it is dropped.
struct TimeoutPause<'h>(&'h TimeoutPauser<'h>);

impl<'h> TimeoutPause<'h> {
    fn new(hold: &'h TimeoutPauser<'h>) -> Self {
        hold(true);
        Self(hold)
    }
}

impl Drop for TimeoutPause<'_> {
    fn drop(&mut self) {
        (self.0)(false);
    }
}

#[cfg(test)]
mod tests {
    use super::super::OAuth;
    use super::*;

    /// Treats addresses that don't begin with 10 as public, and fetches nothing.
    struct Ten;

    impl FetcherFactory for Ten {
        fn fetcher(&self, _: &Handle, _: bool) -> Result<Fetch, String> {
            Err("nothing is fetched".to_owned())
        }

        fn is_public(&self, address: IpAddr) -> bool {
            !matches!(address, IpAddr::V4(address) if address.octets()[0] == 10)
        }
    }

    #[runtimes::test]
    async fn private_addresses_depend_on_the_peer_address_not_on_the_server_name() {
        let oauth = TokenProvider::oauth(OAuth::builder("a test").build());
        // The test's own machine would resolve to a private address; this name is never resolved.
        let server = "https://mcp.example.com/mcp";
        let authorizer = RequestAuthorizer::new(&oauth, server, Arc::new(Ten), Handle::current());
        assert!(!authorizer.may_name_private());
        authorizer.note_peer(Some([10, 1, 2, 3].into()));
        assert!(authorizer.may_name_private());
        authorizer.note_peer(None);
        assert!(authorizer.may_name_private());
        authorizer.note_peer(Some([93, 184, 216, 34].into()));
        assert!(!authorizer.may_name_private());
    }
}
