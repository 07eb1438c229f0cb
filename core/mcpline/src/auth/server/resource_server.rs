//! Admission of requests: by their token, its proof of possession, and the scopes that every request needs.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use mcpline_auth::claims::{ClaimRequirements, Claims, check_typ};
use mcpline_auth::metadata::ResourceMetadata;
use mcpline_auth::url::Url;
use mcpline_auth::{Secret, dpop, proof};
use mcpline_jose::{self as jose, Algorithm, JoseError, JwkSet, MAX_TOKEN_LEN, UnverifiedJwt};
use mcpline_protocol::{Challenge, Scopes};
use mcpline_runtime::clock;
use sha2::{Digest as _, Sha256};

use crate::caller::Caller;
use crate::quota::ClientQuota;
use crate::sharing::SessionStore;

use super::authorization_server_redirects::{
    AuthorizationEndpoint, AuthorizationServerRedirects, EndpointAnswer,
};
use super::builder::{ResourceServerBuilder, ScopeExpander, Verifier, VerifyError};
use super::introspection::Introspector;
use super::keys::KeyCache;
use super::proof_replay_cache::{ProofRefusal, ProofReplayCache, proof_digest};
use super::refused_tokens::RefusedTokens;
use super::shared_proofs::record_shared_use;
use super::token_cache::Digest;
use super::token_refusal::TokenRefusal;
use super::verified_tokens::{VerifiedToken, VerifiedTokens};

/// An MCP server as a protected resource: decides which tokens are accepted.
///
/// ```
/// use std::sync::Arc;
///
/// use mcpline::auth::ResourceServer;
/// use mcpline::transport::http::HttpOptions;
///
/// let auth = ResourceServer::builder("https://mcp.example.com/mcp")
///     .issuer("https://auth.example.com")
///     .required_scopes(["mcp"])
///     .build()?;
/// let mut options = HttpOptions::default();
/// options.auth = Some(Arc::new(auth));
/// # Ok::<(), mcpline::Error>(())
/// ```
///
/// Tokens are taken from the `Authorization` header only, never from the query (every revision, `basic/authorization`,
/// access token usage). A token is accepted if it is valid, for this resource, and signed by its issuer or confirmed by
/// it; and, if it is bound to a key, if the caller proves to have that key (RFC 9449). The token is for this server
/// only: it is not passed to handlers or anything beyond.
pub struct ResourceServer {
    /// `None` if a verifier checks keys of its own, and the URL is not given.
    pub(super) resource: Option<Url>,
    /// `None` if there is no authorization server that clients could get tokens from.
    pub(super) published: Option<PublishedMetadata>,
    pub(super) method: VerificationMethod,
    /// Set if there is a single issuer whose tokens clients of 2025-03-26 can use.
    pub(super) endpoints: Option<AuthorizationServerRedirects>,
    pub(super) policy: TokenRequirements,
    pub(super) remembered: Mutex<VerifiedTokens>,
    pub(super) refused_tokens: Mutex<RefusedTokens>,
    pub(super) proofs: Mutex<ProofReplayCache>,
}

/// Metadata from which clients learn where to get tokens.
pub(super) struct PublishedMetadata {
    pub(super) document: ResourceMetadata,
    pub(super) url: String,
    pub(super) path: String,
}

/// How tokens are verified.
pub(super) enum VerificationMethod {
    /// By an issuer's signature, and by introspection of those that are not signed.
    Issuers {
        signed: Vec<Issuer>,
        opaque: Option<Box<Introspector>>,
    },
    /// By a callback.
    Verifier(Verifier),
}

/// An authorization server whose signatures can be verified.
pub(super) struct Issuer {
    /// Its name; empty if tokens may have any issuer.
    pub(super) name: Vec<String>,
    pub(super) keys: KeyCache,
}

/// Requirements of tokens.
pub(super) struct TokenRequirements {
    pub(super) issuers: Vec<String>,
    pub(super) audiences: Vec<String>,
    pub(super) required: Scopes,
    pub(super) implies: BTreeMap<String, Scopes>,
    pub(super) expand: Option<ScopeExpander>,
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) skew: u64,
    pub(super) demands_proof: bool,
}

/// Returns the scopes that a server publishes: whether tokens can be refreshed does not concern the resource
/// (2026-07-28,
/// `basic/authorization`, refresh tokens).
pub(super) fn without_offline_access(scopes: &Scopes) -> Scopes {
    scopes
        .iter()
        .filter(|scope| *scope != "offline_access")
        .collect()
}

/// The scheme of the `Authorization` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Bearer,
    Dpop,
}

impl ResourceServer {
    /// Starts building a resource server. `resource` is the URL by which clients know it, the canonical one (RFC 8707;
    /// every revision since 2025-06-18, `basic/authorization`, canonical server URI), such as
    /// `https://mcp.example.com/mcp`.
    pub fn builder(resource: impl Into<String>) -> ResourceServerBuilder {
        ResourceServerBuilder::new(Some(resource.into()))
    }

    /// Starts building a server whose tokens are no OAuth tokens, such as API keys that you issue: `verify` checks each of
    /// them. Nothing is published about where to get them, and clients do not try to sign in. See
    /// [`ResourceServerBuilder::verifier`].
    ///
    /// ```
    /// use mcpline::auth::{Caller, ResourceServer, VerifyError};
    ///
    /// let auth = ResourceServer::verified_by(|key| async move {
    ///     match key.expose() {
    ///         "wonderland" => Ok(Caller::new().with_subject("alice")),
    ///         _ => Err(VerifyError::Invalid("unknown token".into())),
    ///     }
    /// })
    /// .build()?;
    /// # Ok::<(), mcpline::Error>(())
    /// ```
    pub fn verified_by<F, Fut>(verify: F) -> ResourceServerBuilder
    where
        F: Fn(Secret) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Caller, VerifyError>> + Send + 'static,
    {
        ResourceServerBuilder::new(None).verifier(verify)
    }

    /// Returns the URL by which clients know this server; `None` if it is not given, as a verifier needs none.
    pub fn resource(&self) -> Option<&str> {
        self.resource.as_ref().map(Url::as_str)
    }

    /// Returns the metadata from which clients learn where to get tokens (RFC 9728); `None` without an authorization
    /// server.
    pub fn metadata(&self) -> Option<&ResourceMetadata> {
        self.published.as_ref().map(|published| &published.document)
    }

    /// Returns the URL of the metadata.
    pub fn metadata_url(&self) -> Option<&str> {
        self.published
            .as_ref()
            .map(|published| published.url.as_str())
    }

    /// Returns the path of the metadata's URL.
    pub fn metadata_path(&self) -> Option<&str> {
        self.published
            .as_ref()
            .map(|published| published.path.as_str())
    }

    /// Whether this server answers where clients of 2025-03-26 look for its authorization server.
    pub(crate) fn has_endpoints(&self) -> bool {
        self.endpoints.is_some()
    }

    /// Answers a client of 2025-03-26 that looks for the authorization server here.
    pub(crate) async fn answer_at(
        &self,
        endpoint: AuthorizationEndpoint,
        query: &str,
    ) -> EndpointAnswer {
        match &self.endpoints {
            Some(endpoints) => endpoints.answer(endpoint, query).await,
            None => EndpointAnswer::Absent,
        }
    }

    /// Returns the path of the URL by which clients know this server.
    pub(crate) fn path(&self) -> Option<&str> {
        self.resource.as_ref().map(Url::path)
    }

    pub(crate) fn host(&self) -> Option<String> {
        self.resource.as_ref().map(Url::host)
    }

    /// Verifies the request's token and removes it from the headers, because it is for this server only. `client` is
    /// the client that the request comes from, and `store` what the processes of the service share, if they do.
    pub(crate) async fn admit(
        &self,
        parts: &mut Parts,
        client: &ClientQuota,
        store: Option<&dyn SessionStore>,
    ) -> Result<Caller, TokenRefusal> {
        let (scheme, token) = token_of_headers(&parts.headers)?;
        let now = clock::unix_now();
        let verified = self.verify(&token, client, now).await;
        let authorized = verified.map_err(|refused| match (scheme, refused) {
            // A token that was sent with this scheme gets the error of this scheme (RFC 9449, section 7.1).
            (Scheme::Dpop, TokenRefusal::InvalidToken(why)) => TokenRefusal::Unbound(why),
            (_, refused) => refused,
        })?;
        self.check_possession(parts, scheme, (&token, &authorized), now, store)
            .await?;
        parts.headers.remove(AUTHORIZATION);
        parts.headers.remove(dpop::HEADER);
        if authorized.has_scopes(&self.policy.required) {
            Ok(authorized)
        } else {
            Err(TokenRefusal::InsufficientScope(
                self.policy.required.clone(),
            ))
        }
    }

    /// Returns the challenge of a refusal; `None` if another token would not help.
    pub(crate) fn challenge_for(&self, refused: &TokenRefusal) -> Option<Challenge> {
        let required = &self.policy.required;
        let usual = |error: Option<(&str, &str)>, scopes: &Scopes| match self.policy.demands_proof {
            true => self.dpop_challenge(error, scopes),
            false => self.challenge("Bearer", error, scopes),
        };
        Some(match refused {
            TokenRefusal::NoToken => usual(None, required),
            TokenRefusal::Malformed(why) => usual(Some(("invalid_request", why)), required),
            TokenRefusal::InvalidToken(why) => usual(Some(("invalid_token", why)), required),
            TokenRefusal::Unbound(why) => {
                self.dpop_challenge(Some(("invalid_token", why)), required)
            }
            TokenRefusal::InvalidProof(why) => {
                self.dpop_challenge(Some(("invalid_dpop_proof", why)), required)
            }
            TokenRefusal::InsufficientScope(needed) => {
                // All scopes of the operation in one challenge, so that a single authorization is enough.
                let error = ("insufficient_scope", "the token lacks a scope");
                usual(Some(error), &required.union(needed))
            }
            TokenRefusal::Unavailable(_) => return None,
        })
    }

    fn challenge(&self, scheme: &str, error: Option<(&str, &str)>, scopes: &Scopes) -> Challenge {
        let mut challenge = Challenge::new(scheme);
        if let Some((error, description)) = error {
            challenge = challenge
                .with("error", error)
                .with("error_description", description);
        }
        let scopes = without_offline_access(scopes);
        if !scopes.is_empty() {
            challenge = challenge.with("scope", scopes.to_string());
        }
        match self.metadata_url() {
            Some(url) => challenge.with("resource_metadata", url),
            None => challenge,
        }
    }

    fn dpop_challenge(&self, error: Option<(&str, &str)>, scopes: &Scopes) -> Challenge {
        let names: Vec<_> = self
            .policy
            .algorithms
            .iter()
            .map(|one| one.as_str())
            .collect();
        self.challenge("DPoP", error, scopes)
            .with("algs", names.join(" "))
    }

    async fn verify(
        &self,
        token: &str,
        client: &ClientQuota,
        now: u64,
    ) -> Result<Caller, TokenRefusal> {
        let digest: Digest = Sha256::digest(token).into();
        let authorized = match &self.method {
            VerificationMethod::Verifier(verify) => {
                let authorized = verify(token.into()).await.map_err(|error| match error {
                    VerifyError::Invalid(why) => TokenRefusal::InvalidToken(why),
                    VerifyError::Unavailable(why) => TokenRefusal::Unavailable(why),
                })?;
                let expiry = authorized.expires_at();
                if expiry.is_some_and(|expiry| now >= expiry.saturating_add(self.policy.skew)) {
                    return Err(TokenRefusal::InvalidToken("the token has expired".into()));
                }
                self.complete(authorized, &digest)
            }
            VerificationMethod::Issuers { signed, opaque } => {
                if let Some(known) = self.recall(&digest, now) {
                    return Ok(known);
                }
                // Without issuers whose signatures are verified here, every token is opaque.
                let parsed = match signed.is_empty() {
                    true => Err(JoseError::UnknownKey),
                    false => UnverifiedJwt::parse(token, &self.policy.algorithms),
                };
                match (parsed, opaque) {
                    (Ok(parsed), _) => {
                        self.verify_signed(signed, token, &parsed, &digest, now)
                            .await?
                    }
                    (Err(error), Some(opaque))
                        if signed.is_empty() || matches!(error, JoseError::Malformed(_)) =>
                    {
                        self.introspect_token(opaque, client, token, &digest, now)
                            .await?
                    }
                    (Err(error), _) => return Err(invalid_token_refusal(&error)),
                }
            }
        };
        Ok(authorized)
    }

    /// Returns the remembered caller of a token, if the token was verified with the keys that are fresh now, or
    /// recently introspected.
    fn recall(&self, digest: &Digest, now: u64) -> Option<Caller> {
        let VerifiedToken {
            authorized, keys, ..
        } = self.lock_remembered().get(digest, now)?;
        let Some((issuer, keys)) = keys else {
            return Some(authorized);
        };
        let VerificationMethod::Issuers { signed, .. } = &self.method else {
            return None;
        };
        let fresh = signed.get(issuer)?.keys.fresh()?;
        Arc::ptr_eq(&fresh, &keys).then_some(authorized)
    }

    async fn verify_signed(
        &self,
        issuers: &[Issuer],
        token: &str,
        parsed: &UnverifiedJwt<'_>,
        digest: &Digest,
        now: u64,
    ) -> Result<Caller, TokenRefusal> {
        let invalid = |error: &dyn fmt::Display| TokenRefusal::InvalidToken(error.to_string());
        check_typ(parsed.kind()).map_err(|error| invalid(&error))?;
        let claimed = parsed.claimed_issuer();
        let named = |issuer: &Issuer| {
            claimed
                .as_ref()
                .is_some_and(|name| issuer.name.contains(name))
        };
        let number = issuers
            .iter()
            .position(named)
            .or_else(|| issuers.iter().position(|issuer| issuer.name.is_empty()))
            .ok_or_else(|| invalid(&mcpline_auth::claims::ClaimError::Issuer))?;
        let issuer = &issuers[number];
        let (keys, verified) = self.verify_by(issuer, token, parsed).await?;
        let claims = Claims::read(verified.claims).map_err(|error| invalid(&error))?;
        let expected = self.expected(&issuer.name, now);
        claims.check(&expected).map_err(|error| invalid(&error))?;
        let authorized = self.complete(Caller::of(claims), digest);
        self.remember(*digest, &authorized, u64::MAX, Some((number, keys)));
        Ok(authorized)
    }

    async fn verify_by(
        &self,
        issuer: &Issuer,
        token: &str,
        parsed: &UnverifiedJwt<'_>,
    ) -> Result<(Arc<JwkSet>, jose::VerifiedJwt), TokenRefusal> {
        let algorithms = &self.policy.algorithms;
        let id = parsed.key_id();
        let keys = issuer
            .keys
            .get(id)
            .await
            .map_err(TokenRefusal::Unavailable)?;
        match jose::verify(token, &keys, algorithms) {
            Ok(verified) => Ok((keys, verified)),
            // The token names no key, so only a fetch shows whether there is a new one.
            Err(JoseError::BadSignature | JoseError::UnknownKey) if id.is_none() => {
                let newer = issuer.keys.fetch_newer(&keys).await;
                let keys = newer.ok_or_else(|| invalid_token_refusal(&JoseError::BadSignature))?;
                let verified = jose::verify(token, &keys, algorithms);
                Ok((
                    keys,
                    verified.map_err(|error| invalid_token_refusal(&error))?,
                ))
            }
            Err(error) => Err(invalid_token_refusal(&error)),
        }
    }

    async fn introspect_token(
        &self,
        opaque: &Introspector,
        client: &ClientQuota,
        token: &str,
        digest: &Digest,
        now: u64,
    ) -> Result<Caller, TokenRefusal> {
        if let Some(why) = self.lock_refused_tokens().get(digest, now) {
            return Err(TokenRefusal::InvalidToken(why));
        }
        let expected = self.expected(&self.policy.issuers, now);
        let known = || match self.recall(digest, now) {
            Some(authorized) => Some(Ok(authorized)),
            None => {
                let why = self.lock_refused_tokens().get(digest, now)?;
                Some(Err(TokenRefusal::InvalidToken(why)))
            }
        };
        let learn = |claims| {
            let authorized = self.complete(Caller::of(claims), digest);
            let keep = opaque.how.keep_for.as_secs();
            self.remember(*digest, &authorized, now.saturating_add(keep), None);
            authorized
        };
        let introspected = opaque
            .introspect_in_turn(client, (token, digest), &expected, known, learn)
            .await;
        if let Err(TokenRefusal::InvalidToken(why)) = &introspected {
            let keep = opaque.how.keep_for.as_secs();
            self.lock_refused_tokens().put(*digest, why, keep, now);
        }
        introspected
    }

    fn lock_refused_tokens(&self) -> std::sync::MutexGuard<'_, RefusedTokens> {
        self.refused_tokens
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn expected<'e>(&'e self, issuers: &'e [String], now: u64) -> ClaimRequirements<'e> {
        ClaimRequirements {
            issuers,
            audiences: &self.policy.audiences,
            skew: self.policy.skew,
            now,
        }
    }

    /// Completes a caller with what its token does not contain: implied scopes, and how long the token is accepted.
    fn complete(&self, authorized: Caller, digest: &Digest) -> Caller {
        let implied = self.policy.with_implied_scopes(authorized.scopes());
        let expiry = authorized.expires_at();
        let stream_deadline = expiry.map(|expiry| expiry.saturating_add(self.policy.skew));
        let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        authorized
            .with_implied(implied)
            .with_stream_deadline(stream_deadline)
            .with_digest(digest)
    }

    fn remember(
        &self,
        digest: Digest,
        authorized: &Caller,
        until: u64,
        keys: Option<(usize, Arc<JwkSet>)>,
    ) {
        let entry = VerifiedToken {
            authorized: authorized.clone(),
            until: until.min(authorized.stream_deadline().unwrap_or(u64::MAX)),
            keys,
        };
        self.lock_remembered().put(digest, entry);
    }

    fn lock_remembered(&self) -> std::sync::MutexGuard<'_, VerifiedTokens> {
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the caller has the key that a token is bound to (RFC 9449, sections 4.3 and 7.1). Otherwise a bound
    /// token is refused, so that a stolen one is useless.
    async fn check_possession(
        &self,
        parts: &Parts,
        scheme: Scheme,
        (token, authorized): (&str, &Caller),
        now: u64,
        store: Option<&dyn SessionStore>,
    ) -> Result<(), TokenRefusal> {
        let thumbprint = match (scheme, authorized.key_thumbprint()) {
            (Scheme::Bearer, None) if !self.policy.demands_proof => return Ok(()),
            (_, None) => {
                return Err(TokenRefusal::Unbound(
                    "the token is not bound to a key".into(),
                ));
            }
            (Scheme::Bearer, Some(_)) => {
                let why = "the token is bound to a key: send it as DPoP, with a proof";
                return Err(TokenRefusal::Unbound(why.into()));
            }
            (Scheme::Dpop, Some(thumbprint)) => thumbprint,
        };
        let shown = proof::ExpectedProof {
            token,
            thumbprint,
            method: parts.method.as_str(),
            algorithms: &self.policy.algorithms,
            skew: self.policy.skew,
            now,
        };
        let proof = single_header(&parts.headers, dpop::HEADER).ok_or_else(|| {
            TokenRefusal::InvalidProof("a request with DPoP needs exactly one `DPoP` header".into())
        })?;
        let proof = proof::check(proof, &shown, |url| {
            self.is_request_url(url, parts.uri.path())
        })
        .map_err(|error| TokenRefusal::InvalidProof(error.to_string()))?;
        self.use_proof(&proof, thumbprint, &authorized.principal(), now, store)
            .await
            .map_err(|refused| match refused {
                ProofRefusal::Replayed => TokenRefusal::InvalidProof(
                    "the DPoP proof was used before: send a new one with each request".into(),
                ),
                ProofRefusal::Full => TokenRefusal::Unavailable(
                    "too many DPoP proofs of one principal are remembered; try again later".into(),
                ),
            })
    }

    /// Uses a valid proof: in this process first, whose memory is fair to principals and costs nothing, and then in all.
    async fn use_proof(
        &self,
        proof: &proof::VerifiedProof,
        thumbprint: &str,
        principal: &str,
        now: u64,
        store: Option<&dyn SessionStore>,
    ) -> Result<(), ProofRefusal> {
        let digest = proof_digest(thumbprint, &proof.id);
        let skew = self.policy.skew;
        self.proofs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .record_use(digest, principal, now, skew)?;
        let Some(store) = store else {
            return Ok(());
        };
        // The clock of another process may be behind by as much as that of a client.
        let left = proof.good_until.saturating_sub(now);
        let lifetime = left.saturating_add(skew).saturating_add(1);
        record_shared_use(store, &digest, Duration::from_secs(lifetime)).await
    }

    /// Whether a request for this path may have been sent to this URL. A router or proxy in front may have removed a
    /// prefix of the path, so its end is compared.
    fn is_request_url(&self, url: &Url, path: &str) -> bool {
        let bare = |path: &str| path.trim_end_matches('/').to_owned();
        self.resource.as_ref().is_some_and(|resource| {
            resource.same_origin(url)
                && (bare(url.path()) == bare(resource.path())
                    || (path.len() > 1 && url.path().ends_with(path)))
        })
    }
}

impl TokenRequirements {
    /// Returns the scopes that these imply, directly and indirectly.
    fn with_implied_scopes(&self, granted: &Scopes) -> Scopes {
        let mut all = granted.clone();
        if let Some(expand) = &self.expand {
            all = all.union(&expand(&all));
        }
        loop {
            let more = all
                .iter()
                .filter_map(|scope| self.implies.get(scope))
                .fold(all.clone(), |more, implied| more.union(implied));
            if more.len() == all.len() {
                return all;
            }
            all = more;
        }
    }
}

impl fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceServer")
            .field("resource", &self.resource())
            .field("required", &self.policy.required)
            .finish_non_exhaustive()
    }
}

fn invalid_token_refusal(error: &JoseError) -> TokenRefusal {
    TokenRefusal::InvalidToken(error.to_string())
}

/// Returns the token, from the `Authorization` header only (RFC 6750, section 2.1).
fn token_of_headers(headers: &HeaderMap) -> Result<(Scheme, String), TokenRefusal> {
    let header = match headers.get_all(AUTHORIZATION).iter().count() {
        0 => return Err(TokenRefusal::NoToken),
        1 => single_header(headers, AUTHORIZATION.as_str())
            .ok_or(TokenRefusal::Malformed("Authorization is not ASCII"))?,
        _ => {
            return Err(TokenRefusal::Malformed(
                "there is more than one Authorization",
            ));
        }
    };
    let (scheme, token) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
    let scheme = if scheme.eq_ignore_ascii_case("Bearer") {
        Scheme::Bearer
    } else if scheme.eq_ignore_ascii_case("DPoP") {
        Scheme::Dpop
    } else {
        // Credentials of another scheme are not a token.
        return Err(TokenRefusal::NoToken);
    };
    let token = token.trim();
    if token.is_empty() {
        return Err(TokenRefusal::NoToken);
    }
    if token.len() > MAX_TOKEN_LEN {
        return Err(invalid_token_refusal(&JoseError::TooLong));
    }
    let body = token.trim_end_matches('=');
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    if body.is_empty() || !body.bytes().all(allowed) {
        return Err(TokenRefusal::Malformed(
            "the token is empty, or has characters that a bearer token cannot have",
        ));
    }
    Ok((scheme, token.to_owned()))
}

/// Returns the value of a header that occurs exactly once.
fn single_header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
