//! Who calls, as a token said it, or a transport.

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "auth")]
use mcpline_auth::claims::Claims;
use mcpline_protocol::Scopes;
use mcpline_protocol::vocabulary::JsonObject;
use serde_json::{Value, json};

/// A caller that was authenticated, by a token or by a transport of the program's own. Cheap to clone. It doesn't hold the
/// token.
///
/// [`ResourceServer`](crate::auth::ResourceServer) makes it of a token's claims. A layer in front of
/// [`HttpService`](crate::transport::http::HttpService) that checks tokens itself puts one among the request's
/// extensions, and a transport gives one to [`Server::connect_as`](crate::Server::connect_as). Then the scopes of tools,
/// resources and prompts hold for it, sessions are bound to [its principal](Self::principal), and handlers find it in
/// [`Context::auth`](crate::Context::auth).
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
    /// What the scopes imply, beyond themselves.
    implied: Scopes,
    expires_at: Option<u64>,
    /// Until when requests with this token are accepted: clocks may be apart.
    good_until: Option<u64>,
    key_thumbprint: Option<String>,
    /// Tells callers apart of whom nothing else is known: a digest of the token.
    digest: Option<String>,
    claims: JsonObject,
}

impl Caller {
    /// Somebody of whom nothing is known yet.
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

    /// Sets who vouches for the caller.
    #[must_use]
    pub fn with_issuer(self, issuer: impl Into<String>) -> Self {
        self.change(|inner| inner.issuer = Some(issuer.into()))
    }

    /// Sets who the caller is.
    #[must_use]
    pub fn with_subject(self, subject: impl Into<String>) -> Self {
        self.change(|inner| inner.subject = Some(subject.into()))
    }

    /// Sets the client that calls in the subject's name.
    #[must_use]
    pub fn with_client_id(self, client_id: impl Into<String>) -> Self {
        self.change(|inner| inner.client_id = Some(client_id.into()))
    }

    /// Sets what the caller may do.
    #[must_use]
    pub fn with_scopes<S: AsRef<str>>(self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.change(|inner| inner.scopes = scopes.into_iter().collect())
    }

    /// Sets until when the token is good, in seconds since 1970. Streams that belong to no call end then.
    #[must_use]
    pub fn with_expiry(self, expires_at: u64) -> Self {
        self.change(|inner| inner.expires_at = Some(expires_at))
    }

    /// Sets the key that the token is bound to, by its thumbprint (RFC 7638): a
    /// [`ResourceServer`](crate::auth::ResourceServer) then wants a proof that the caller has it (RFC 9449).
    #[must_use]
    pub fn with_key_thumbprint(self, thumbprint: impl Into<String>) -> Self {
        self.change(|inner| inner.key_thumbprint = Some(thumbprint.into()))
    }

    /// Sets whatever else handlers may want to know.
    #[must_use]
    pub fn with_claims(self, claims: JsonObject) -> Self {
        self.change(|inner| inner.claims = claims)
    }

    pub(crate) fn with_implied(self, implied: Scopes) -> Self {
        self.change(|inner| inner.implied = implied)
    }

    pub(crate) fn with_good_until(self, good_until: Option<u64>) -> Self {
        self.change(|inner| inner.good_until = good_until)
    }

    pub(crate) fn with_digest(self, digest: String) -> Self {
        self.change(|inner| inner.digest = Some(digest))
    }

    /// Who vouches for the caller: the authorization server (`iss`).
    pub fn issuer(&self) -> Option<&str> {
        self.inner.issuer.as_deref()
    }

    /// Who the caller is (`sub`); a name that is this issuer's alone.
    pub fn subject(&self) -> Option<&str> {
        self.inner.subject.as_deref()
    }

    /// The client that calls in the subject's name (`client_id`, `azp`).
    pub fn client_id(&self) -> Option<&str> {
        self.inner.client_id.as_deref()
    }

    /// Whom the token was issued for (`aud`).
    pub fn audience(&self) -> &[String] {
        &self.inner.audience
    }

    /// What the caller may do, as it was granted.
    pub fn scopes(&self) -> &Scopes {
        &self.inner.scopes
    }

    /// Until when the token is good (`exp`), in seconds since 1970.
    pub fn expires_at(&self) -> Option<u64> {
        self.inner.expires_at
    }

    /// All that the token says, or the authorization server says of it.
    pub fn claims(&self) -> &JsonObject {
        &self.inner.claims
    }

    /// Whether the caller has all of these scopes, by themselves or because others imply them.
    pub fn may(&self, needed: &Scopes) -> bool {
        let has =
            |scope: &str| self.inner.scopes.contains(scope) || self.inner.implied.contains(scope);
        needed.iter().all(has)
    }

    /// What sessions, request states and streams of the caller are bound to: issuer and subject, or the client where
    /// there is no subject.
    pub fn principal(&self) -> String {
        let inner = &*self.inner;
        let (kind, name) = match (&inner.subject, &inner.client_id, &inner.digest) {
            (Some(subject), ..) => ("sub", subject.as_str()),
            (None, Some(client_id), _) => ("client_id", client_id.as_str()),
            (None, None, Some(digest)) => ("token", digest.as_str()),
            (None, None, None) => ("", ""),
        };
        // A JSON text, so that no two callers can be one text.
        json!([inner.issuer, kind, name]).to_string()
    }

    pub(crate) fn key_thumbprint(&self) -> Option<&str> {
        self.inner.key_thumbprint.as_deref()
    }

    /// Until when streams that were opened with the token go on, in seconds since 1970.
    pub(crate) fn good_until(&self) -> Option<u64> {
        self.inner.good_until.or(self.inner.expires_at)
    }

    /// All of it as JSON, for other languages.
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

/// Without the claims: they may be personal.
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
        // The client makes no difference to whose session it is.
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
