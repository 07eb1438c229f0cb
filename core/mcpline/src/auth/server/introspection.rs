//! Tokens that mean something to their issuer alone: it is asked what they are (RFC 7662).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpline_protocol::auth::Secret;
use mcpline_protocol::auth::claims::{Claims, Expected};
use mcpline_protocol::auth::fetch::FetchRequest;
use mcpline_protocol::vocabulary::JsonObject;
use mcpline_protocol::wire::Raw;
use tokio::sync::Semaphore;

use crate::quota::ClientQuota;

use super::Fetch;
use super::recent_tokens::Digest;
use super::refused::Refused;

/// How many questions are put at once, so that whoever sends made-up tokens doesn't have us overrun the authorization
/// server. More wait.
const AT_ONCE: usize = 16;

/// How many tokens may wait for an answer, of which one client may have its share: those that send made-up tokens fill their
/// own part of the queue, and a token that is good waits for a bounded number of others. Requests with the same token wait
/// as one.
const MAX_WAITING: usize = 128;

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
        )
        .repeatable();
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
    /// The tokens of each client that wait for an answer, and how many requests with each.
    waiting: Mutex<HashMap<u64, HashMap<Digest, usize>>>,
}

/// A request that waits for an answer.
struct Waiting<'a> {
    introspector: &'a Introspector,
    client: u64,
    digest: Digest,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiting = self.introspector.lock_waiting();
        let Some(tokens) = waiting.get_mut(&self.client) else {
            return;
        };
        if let Some(requests) = tokens.get_mut(&self.digest) {
            *requests -= 1;
            if *requests == 0 {
                tokens.remove(&self.digest);
            }
        }
        if tokens.is_empty() {
            waiting.remove(&self.client);
        }
    }
}

impl Introspector {
    pub(super) fn new(how: Introspection, fetch: Fetch) -> Self {
        Self {
            how,
            fetch,
            places: Semaphore::new(AT_ONCE),
            waiting: Mutex::default(),
        }
    }

    fn lock_waiting(&self) -> MutexGuard<'_, HashMap<u64, HashMap<Digest, usize>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request of this client, unless too many tokens of it wait.
    fn wait(&self, client: &ClientQuota, digest: &Digest) -> Option<Waiting<'_>> {
        let mut waiting = self.lock_waiting();
        let tokens = waiting.entry(client.number).or_default();
        if tokens.len() >= client.share_of(MAX_WAITING) && !tokens.contains_key(digest) {
            return None;
        }
        *tokens.entry(*digest).or_default() += 1;
        Some(Waiting {
            introspector: self,
            client: client.number,
            digest: *digest,
        })
    }

    /// What a token is. `known` is asked again once it is our turn: somebody may have asked the same meanwhile.
    pub(super) async fn ask<T>(
        &self,
        client: &ClientQuota,
        (token, digest): (&str, &Digest),
        expected: &Expected<'_>,
        known: impl FnOnce() -> Option<Result<T, Refused>>,
        learn: impl FnOnce(Claims) -> T,
    ) -> Result<T, Refused> {
        let unavailable =
            |reason: String| Refused::Unavailable(format!("the introspection endpoint {reason}"));
        let Some(_waiting) = self.wait(client, digest) else {
            return Err(Refused::Unavailable(
                "too many tokens of this client wait for the introspection endpoint".into(),
            ));
        };
        // Never closed.
        let _place = self.places.acquire().await.ok();
        if let Some(known) = known() {
            return known;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcpline_protocol::auth::fetch::FetchResponse;
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::quota::{ClientKey, ClientTable};

    fn client(clients: &ClientTable, address: &str) -> Arc<ClientQuota> {
        clients.client(ClientKey::of_address(address.parse().expect("an address")))
    }

    #[tokio::test]
    async fn made_up_tokens_of_one_client_leave_room_for_good_ones_of_others() {
        let open = Arc::new(Semaphore::new(0));
        let gate = open.clone();
        let fetch: Fetch = Arc::new(move |request| {
            let gate = gate.clone();
            Box::pin(async move {
                gate.acquire().await.expect("never closed").forget();
                let active = request.body.starts_with(b"token=good");
                let body = format!(r#"{{"active": {active}}}"#);
                Ok(FetchResponse {
                    status: 200,
                    headers: Vec::new(),
                    body: body.into(),
                })
            })
        });
        let how = Introspection::new("https://auth.example.com/introspect").knows_audience();
        let introspector = Arc::new(Introspector::new(how, fetch));
        let clients = ClientTable::new(0.25, usize::MAX, usize::MAX);
        let ask = |address: &str, token: String| {
            let (introspector, client) = (introspector.clone(), client(&clients, address));
            tokio::spawn(async move {
                let expected = Expected {
                    issuers: &[],
                    audiences: &[],
                    skew: 60,
                    now: 0,
                };
                let digest = Sha256::digest(&token).into();
                introspector
                    .ask(&client, (&token, &digest), &expected, || None, |_| ())
                    .await
            })
        };
        let made_up: Vec<_> = (0..200)
            .map(|number| ask("192.0.2.1", format!("made-up-{number}")))
            .collect();
        tokio::task::yield_now().await;
        let good = ask("192.0.2.2", "good".into());
        // As many requests with one token as there may be wait together.
        let together: Vec<_> = (0..100).map(|_| ask("192.0.2.3", "good".into())).collect();
        tokio::task::yield_now().await;
        // As many answers as the made-up tokens may wait for, and one more.
        open.add_permits(MAX_WAITING / 4 + 1 + together.len());
        assert!(good.await.expect("no panic").is_ok());
        for task in together {
            assert!(task.await.expect("no panic").is_ok());
        }
        let mut refused_at_once = 0;
        for task in made_up {
            match task.await.expect("no panic") {
                Err(Refused::Unavailable(_)) => refused_at_once += 1,
                Err(Refused::InvalidToken(_)) => {}
                other => panic!("{:?}", other.is_ok()),
            }
        }
        assert_eq!(refused_at_once, 200 - MAX_WAITING / 4);
        assert!(introspector.lock_waiting().is_empty());
    }
}
