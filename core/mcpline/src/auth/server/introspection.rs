//! Tokens that mean something to their issuer alone: it is asked what they are (RFC 7662).

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpline_protocol::auth::Secret;
use mcpline_protocol::auth::claims::{Claims, Expected};
use mcpline_protocol::auth::fetch::FetchRequest;
use mcpline_protocol::vocabulary::JsonObject;
use mcpline_protocol::wire::Raw;
use tokio::sync::Semaphore;

use super::Fetch;
use super::refused::Refused;

/// How many questions are put at once, so that whoever sends made-up tokens doesn't have us overrun the authorization
/// server. More wait.
const AT_ONCE: usize = 16;

/// How to ask an authorization server about tokens (RFC 7662).
#[derive(Clone)]
pub struct Introspection {
    endpoint: String,
    credentials: Credentials,
    pub(super) keep_for: Duration,
    audience_known: bool,
}

#[derive(Clone)]
enum Credentials {
    None,
    Client(String, Secret),
    Bearer(Secret),
}

impl Introspection {
    /// Asks at this URL. An endpoint must know who asks (RFC 7662, section 2.1): see
    /// [`with_client`](Self::with_client) and [`with_token`](Self::with_token).
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            credentials: Credentials::None,
            keep_for: Duration::from_secs(60),
            audience_known: false,
        }
    }

    /// Asks as this client, by HTTP Basic (RFC 6749, section 2.3.1).
    #[must_use]
    pub fn with_client(mut self, client_id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        self.credentials = Credentials::Client(client_id.into(), secret.into());
        self
    }

    /// Asks with a token of our own.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<Secret>) -> Self {
        self.credentials = Credentials::Bearer(token.into());
        self
    }

    /// For how long an answer is believed: so long does a token live that was revoked. 60 seconds by default; zero has
    /// the server asked with every request. Never longer than the token is good.
    #[must_use]
    pub fn keep_for(mut self, time: Duration) -> Self {
        self.keep_for = time;
        self
    }

    /// Says that the endpoint calls tokens active only if they are for this server. Without, an answer must name the
    /// audience, because a server must not accept tokens that are for others (every revision since 2025-06-18,
    /// `basic/authorization`, token handling).
    #[must_use]
    pub fn knows_audience(mut self) -> Self {
        self.audience_known = true;
        self
    }

    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn request(&self, token: &str) -> FetchRequest {
        let body = form_urlencoded::Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        let request = FetchRequest::post(
            &self.endpoint,
            "application/x-www-form-urlencoded",
            body.into_bytes(),
        );
        let encode =
            |text: &str| -> String { form_urlencoded::byte_serialize(text.as_bytes()).collect() };
        match &self.credentials {
            Credentials::None => request,
            Credentials::Client(id, secret) => {
                let pair = format!("{}:{}", encode(id), encode(secret.expose()));
                request.with("authorization", format!("Basic {}", STANDARD.encode(pair)))
            }
            Credentials::Bearer(token) => {
                request.with("authorization", format!("Bearer {}", token.expose()))
            }
        }
    }
}

impl fmt::Debug for Introspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introspection")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// Asks.
pub(super) struct Introspector {
    pub(super) how: Introspection,
    fetch: Fetch,
    places: Semaphore,
}

impl Introspector {
    pub(super) fn new(how: Introspection, fetch: Fetch) -> Self {
        Self {
            how,
            fetch,
            places: Semaphore::new(AT_ONCE),
        }
    }

    /// What a token is. `known` is asked again once it is our turn: somebody may have asked the same meanwhile.
    pub(super) async fn ask<T>(
        &self,
        token: &str,
        expected: &Expected<'_>,
        known: impl FnOnce() -> Option<T>,
        learn: impl FnOnce(Claims) -> T,
    ) -> Result<T, Refused> {
        let unavailable =
            |reason: String| Refused::Unavailable(format!("the introspection endpoint {reason}"));
        // Never closed.
        let _place = self.places.acquire().await.ok();
        if let Some(known) = known() {
            return Ok(known);
        }
        let response = (self.fetch)(self.how.request(token))
            .await
            .map_err(|error| unavailable(format!("can't be reached: {error}")))?;
        if response.status != 200 {
            return Err(unavailable(format!("answered {}", response.status)));
        }
        let answer: JsonObject = Raw::parse(response.body)
            .ok()
            .and_then(|answer| answer.decode().ok())
            .ok_or_else(|| unavailable("answered with what is no JSON object".into()))?;
        match answer.get("active").and_then(serde_json::Value::as_bool) {
            Some(true) => {}
            Some(false) => return Err(Refused::InvalidToken("the token is not active".into())),
            None => {
                return Err(unavailable(
                    "doesn't say whether the token is active".into(),
                ));
            }
        }
        let claims = self.check(answer, expected);
        let claims = claims.map_err(|error| Refused::InvalidToken(error.to_string()))?;
        Ok(learn(claims))
    }

    fn check(
        &self,
        answer: JsonObject,
        expected: &Expected<'_>,
    ) -> Result<Claims, mcpline_protocol::auth::claims::ClaimError> {
        let mut claims = Claims::read(answer)?;
        // The answer need not name the issuer, whose endpoint it is (RFC 7662, section 2.2).
        match (&claims.issuer, expected.issuers) {
            (Some(_), _) => claims.check_issuer(expected)?,
            (None, [only]) => claims.issuer = Some(only.clone()),
            (None, _) => {}
        }
        if !self.how.audience_known {
            claims.check_audience(expected)?;
        }
        claims.check_time(expected)?;
        Ok(claims)
    }
}
