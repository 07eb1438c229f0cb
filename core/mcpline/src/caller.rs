//! Authenticated callers.

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "auth")]
use mcpline_auth::claims::Claims;
use mcpline_protocol::Scopes;
use mcpline_protocol::vocabulary::JsonObject;
use serde_json::{Value, json};

/// A caller that was authenticated by a token, or by a transport of the program. Cheap to clone. It does not contain
/// the token.
///
/// [`ResourceServer`](crate::auth::ResourceServer) creates it from a token's claims. A layer in front of
/// [`HttpService`](crate::transport::http::HttpService) that verifies tokens itself puts one into the request's
/// extensions, and a transport passes one to [`Server::connect_as`](crate::Server::connect_as). Then the scopes of
/// tools, resources and prompts apply to it, sessions are bound to [its principal](Self::principal), and handlers find
/// it in [`Context::auth`](crate::Context::auth).
///
/// ```
/// use mcpline::auth::Caller;
///
/// let caller = Caller::new().with_subject("alice").with_scopes(["files:read"]);
/// assert_eq!(caller.subject(), Some("alice"));
/// ```
#[derive(Clone, Default)]
pub struct Caller {
    inner: Arc<Inner>,
}

#[derive(Clone, Default)]
struct Inner {
    issuer: Option<String>,
    subject: Option<String>,
    client_id: Option<String>,
    audience: Vec<String>,
    scopes: Scopes,
    /// Scopes that the granted ones imply, without those.
    implied: Scopes,
    expires_at: Option<u64>,
    /// Until when requests with this token are accepted, with tolerance for different clocks.
    stream_deadline: Option<u64>,
    key_thumbprint: Option<String>,
    /// Digest of the token, which distinguishes callers without subject and client id.
    digest: Option<String>,
    claims: JsonObject,
}

impl Caller {
    /// Creates a caller without any properties.
    pub fn new() -> Self {
        Self::default()
    }

    #[cfg(feature = "auth")]
    pub(crate) fn of(claims: Claims) -> Self {
        Self {
            inner: Arc::new(Inner {
                issuer: claims.issuer,
                subject: claims.subject,
                client_id: claims.client_id,
                audience: claims.audience,
                scopes: claims.scopes,
                expires_at: claims.expires_at,
                key_thumbprint: claims.key_thumbprint,
                claims: claims.all,
                ..Inner::default()
            }),
        }
    }

    fn change(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.inner));
        self
    }

    /// Sets the issuer that vouches for the caller.
    #[must_use]
    pub fn with_issuer(self, issuer: impl Into<String>) -> Self {
        self.change(|inner| inner.issuer = Some(issuer.into()))
    }

    /// Sets the caller's subject.
    #[must_use]
    pub fn with_subject(self, subject: impl Into<String>) -> Self {
        self.change(|inner| inner.subject = Some(subject.into()))
    }

    /// Sets the client that acts for the subject.
    #[must_use]
    pub fn with_client_id(self, client_id: impl Into<String>) -> Self {
        self.change(|inner| inner.client_id = Some(client_id.into()))
    }

    /// Sets the audience of the token.
    #[must_use]
    pub fn with_audience<A: Into<String>>(self, audience: impl IntoIterator<Item = A>) -> Self {
        self.change(|inner| inner.audience = audience.into_iter().map(Into::into).collect())
    }

    /// Sets the granted scopes.
    #[must_use]
    pub fn with_scopes<S: AsRef<str>>(self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.change(|inner| inner.scopes = scopes.into_iter().collect())
    }

    /// Sets when the token expires, in seconds since 1970. Streams that belong to no call end then.
    #[must_use]
    pub fn with_expiry(self, expires_at: u64) -> Self {
        self.change(|inner| inner.expires_at = Some(expires_at))
    }

    /// Sets the key that the token is bound to, by its thumbprint (RFC 7638). A
    /// [`ResourceServer`](crate::auth::ResourceServer) then requires a proof that the caller has it (RFC 9449).
    #[must_use]
    pub fn with_key_thumbprint(self, thumbprint: impl Into<String>) -> Self {
        self.change(|inner| inner.key_thumbprint = Some(thumbprint.into()))
    }

    /// Sets further claims for handlers.
    #[must_use]
    pub fn with_claims(self, claims: JsonObject) -> Self {
        self.change(|inner| inner.claims = claims)
    }

    pub(crate) fn with_implied(self, implied: Scopes) -> Self {
        self.change(|inner| inner.implied = implied)
    }

    pub(crate) fn with_stream_deadline(self, stream_deadline: Option<u64>) -> Self {
        self.change(|inner| inner.stream_deadline = stream_deadline)
    }

    pub(crate) fn with_digest(self, digest: String) -> Self {
        self.change(|inner| inner.digest = Some(digest))
    }

    /// Returns the issuer that vouches for the caller: the authorization server (`iss`).
    pub fn issuer(&self) -> Option<&str> {
        self.inner.issuer.as_deref()
    }

    /// Returns the caller's subject (`sub`), which is unique for its issuer.
    pub fn subject(&self) -> Option<&str> {
        self.inner.subject.as_deref()
    }

    /// Returns the client that acts for the subject (`client_id`, `azp`).
    pub fn client_id(&self) -> Option<&str> {
        self.inner.client_id.as_deref()
    }

    /// Returns the audience of the token (`aud`).
    pub fn audience(&self) -> &[String] {
        &self.inner.audience
    }

    /// Returns the granted scopes.
    pub fn scopes(&self) -> &Scopes {
        &self.inner.scopes
    }

    /// Returns when the token expires (`exp`), in seconds since 1970.
    pub fn expires_at(&self) -> Option<u64> {
        self.inner.expires_at
    }

    /// Returns all claims of the token, or of the authorization server's response about it.
    pub fn claims(&self) -> &JsonObject {
        &self.inner.claims
    }

    /// Returns whether the caller has all of these scopes, granted or implied.
    pub fn has_scopes(&self, needed: &Scopes) -> bool {
        let has =
            |scope: &str| self.inner.scopes.contains(scope) || self.inner.implied.contains(scope);
        needed.iter().all(has)
    }

    /// Returns the principal that sessions, request states and streams of the caller are bound to: issuer and subject,
    /// or the client if there is no subject.
    pub fn principal(&self) -> String {
        let inner = &*self.inner;
        let (kind, name) = match (&inner.subject, &inner.client_id, &inner.digest) {
            (Some(subject), ..) => ("sub", subject.as_str()),
            (None, Some(client_id), _) => ("client_id", client_id.as_str()),
            (None, None, Some(digest)) => ("token", digest.as_str()),
            (None, None, None) => ("", ""),
        };
        // JSON, so that different callers never have the same text.
        json!([inner.issuer, kind, name]).to_string()
    }

    pub(crate) fn key_thumbprint(&self) -> Option<&str> {
        self.inner.key_thumbprint.as_deref()
    }

    /// Returns when streams that were opened with the token have to end, in seconds since 1970.
    pub(crate) fn stream_deadline(&self) -> Option<u64> {
        self.inner.stream_deadline.or(self.inner.expires_at)
    }

    /// Returns everything as JSON, for other languages.
    pub fn to_json(&self) -> Value {
        let inner = &*self.inner;
        json!({
            "issuer": inner.issuer,
            "subject": inner.subject,
            "client_id": inner.client_id,
            "audience": inner.audience,
            "scopes": inner.scopes.iter().collect::<Vec<_>>(),
            "expires_at": inner.expires_at,
            "claims": inner.claims,
        })
    }
}

/// Omits the claims, which may be personal.
impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("issuer", &self.inner.issuer)
            .field("subject", &self.inner.subject)
            .field("client_id", &self.inner.client_id)
            .field("scopes", &self.inner.scopes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_of_different_issuers_or_kinds_are_never_the_same_principal() {
        let someone = Caller::new;
        let principals = [
            someone().with_subject("a"),
            someone().with_client_id("a"),
            someone().with_digest("a".into()),
            someone().with_issuer("a"),
            someone().with_issuer("a").with_subject("b"),
            someone().with_issuer("a\",\"sub\",\"b"),
            someone().with_issuer("b").with_subject("a"),
            someone(),
        ];
        let distinct: std::collections::BTreeSet<_> =
            principals.iter().map(Caller::principal).collect();
        assert_eq!(distinct.len(), principals.len());
        // The client does not affect the principal.
        let alice = someone().with_issuer("i").with_subject("alice");
        assert_eq!(
            alice.clone().with_client_id("one").principal(),
            alice.with_client_id("other").principal()
        );
    }

    #[test]
    fn debug_shows_no_claims() {
        let mut claims = JsonObject::new();
        claims.insert("email".into(), "alice@example.com".into());
        let shown = format!(
            "{:?}",
            Caller::new().with_subject("alice").with_claims(claims)
        );
        assert!(shown.contains("alice"));
        assert!(!shown.contains("example.com"), "{shown}");
    }
}
