//! Opaque tokens, which are verified with requests to their issuer (RFC 7662).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpline_auth::Secret;
use mcpline_auth::claims::{ClaimRequirements, Claims};
use mcpline_auth::fetch::FetchRequest;
use mcpline_protocol::vocabulary::JsonObject;
use mcpline_protocol::wire::Raw;
use tokio::sync::watch;

use crate::offload::fair_semaphore::FairSemaphore;
use crate::quota::ClientQuota;

use super::Fetch;
use super::token_cache::Digest;
use super::token_refusal::TokenRefusal;

/// Maximum number of concurrent requests, so that clients with invented tokens cannot overload the authorization
/// server. Further ones wait, and clients take turns: a valid token waits for one invented token of each client.
const AT_ONCE: usize = 16;

/// Maximum number of tokens that wait for introspection: if a response takes 50 ms, the last one's turn comes within
/// about 3 seconds. A client may have its share of them; if there is no room, a token of the client with the most is
/// dropped for a client with fewer. Requests of a client with the same token count once.
const MAX_WAITING: usize = 1_024;

/// How to introspect tokens at an authorization server (RFC 7662).
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
    /// Creates settings for introspection at this URL. The endpoint must authenticate its callers (RFC 7662, section
    /// 2.1): see [`with_client`](Self::with_client) and [`with_token`](Self::with_token).
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            credentials: Credentials::None,
            keep_for: Duration::from_secs(60),
            audience_known: false,
        }
    }

    /// Authenticates as this client, by HTTP Basic (RFC 6749, section 2.3.1).
    #[must_use]
    pub fn with_client(mut self, client_id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        self.credentials = Credentials::Client(client_id.into(), secret.into());
        self
    }

    /// Authenticates with a token of our own.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<Secret>) -> Self {
        self.credentials = Credentials::Bearer(token.into());
        self
    }

    /// Sets how long a response is cached, which is also how long a revoked token may be accepted. Default: 60 seconds;
    /// with zero every request is introspected. Never longer than the token is valid.
    #[must_use]
    pub fn keep_for(mut self, time: Duration) -> Self {
        self.keep_for = time;
        self
    }

    /// Declares that the endpoint returns tokens as active only if they are for this server. Otherwise a response must
    /// contain the audience, because a server must not accept tokens for others (every revision since 2025-06-18,
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

/// Introspects tokens.
pub(super) struct Introspector {
    pub(super) how: Introspection,
    fetch: Fetch,
    turns: Arc<FairSemaphore>,
    waiting: Mutex<WaitingTokens>,
}

/// The tokens of each client that wait for their turn.
#[derive(Default)]
struct WaitingTokens {
    clients: HashMap<u64, HashMap<Digest, WaitingToken>>,
    /// Number of tokens of all clients.
    count: usize,
    /// Number of the next token.
    next: u64,
}

/// A token that waits for its turn.
struct WaitingToken {
    /// Distinguishes it from a later entry of the same token.
    number: u64,
    /// Number of requests that wait for it.
    requests: usize,
    /// Dropped when the token is dropped for another client's.
    gives_way: watch::Sender<()>,
}

/// A request that waits for its turn.
struct WaitingRequest<'a> {
    introspector: &'a Introspector,
    client: u64,
    digest: Digest,
    number: u64,
    gives_way: watch::Receiver<()>,
}

/// No more tokens may wait.
struct TooManyWaitingTokens;

impl WaitingTokens {
    /// Makes room for a token of a client that has `count` already: removes one of the client with the most, unless
    /// that has no more than this client will have. Returns the removed token.
    fn make_room(&mut self, count: usize) -> Result<Option<WaitingToken>, TooManyWaitingTokens> {
        if self.count < MAX_WAITING {
            return Ok(None);
        }
        let most = self.clients.values_mut().max_by_key(|tokens| tokens.len());
        let most = most
            .filter(|most| most.len() > count + 1)
            .ok_or(TooManyWaitingTokens)?;
        let digest = *most.keys().next().ok_or(TooManyWaitingTokens)?;
        self.count -= 1;
        Ok(most.remove(&digest))
    }

    fn get(&mut self, waiting: &WaitingRequest<'_>) -> Option<&mut WaitingToken> {
        let token = self
            .clients
            .get_mut(&waiting.client)?
            .get_mut(&waiting.digest)?;
        (token.number == waiting.number).then_some(token)
    }

    fn remove(&mut self, waiting: &WaitingRequest<'_>) {
        let Some(tokens) = self.clients.get_mut(&waiting.client) else {
            return;
        };
        if tokens.remove(&waiting.digest).is_some() {
            self.count -= 1;
        }
        if tokens.is_empty() {
            self.clients.remove(&waiting.client);
        }
    }
}

impl WaitingRequest<'_> {
    /// Waits until the token was dropped for another client's.
    async fn wait_until_dropped(&mut self) {
        // Nothing is ever sent.
        while self.gives_way.changed().await.is_ok() {}
    }

    /// Stops waiting. Returns whether the token was not dropped.
    fn end(self) -> bool {
        self.introspector.lock_waiting().get(&self).is_some()
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        let mut waiting = self.introspector.lock_waiting();
        let Some(token) = waiting.get(self) else {
            return;
        };
        token.requests -= 1;
        if token.requests == 0 {
            waiting.remove(self);
        }
    }
}

impl Introspector {
    pub(super) fn new(how: Introspection, fetch: Fetch) -> Self {
        Self {
            how,
            fetch,
            turns: FairSemaphore::new(AT_ONCE),
            waiting: Mutex::default(),
        }
    }

    fn lock_waiting(&self) -> MutexGuard<'_, WaitingTokens> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a request of this client, unless too many tokens wait.
    fn wait(&self, client: &ClientQuota, digest: &Digest) -> Option<WaitingRequest<'_>> {
        // Dropped after the lock, because that wakes the requests that wait for it.
        let _gives_way;
        let mut waiting = self.lock_waiting();
        let tokens = waiting.clients.get_mut(&client.number);
        let count = tokens.as_ref().map_or(0, |tokens| tokens.len());
        let (number, gives_way) = match tokens.and_then(|tokens| tokens.get_mut(digest)) {
            Some(token) => {
                token.requests += 1;
                (token.number, token.gives_way.subscribe())
            }
            None => {
                if count >= client.share_of(MAX_WAITING) {
                    return None;
                }
                _gives_way = waiting.make_room(count).ok()?;
                waiting.count += 1;
                waiting.next += 1;
                let number = waiting.next;
                let (sender, gives_way) = watch::channel(());
                let token = WaitingToken {
                    number,
                    requests: 1,
                    gives_way: sender,
                };
                let tokens = waiting.clients.entry(client.number).or_default();
                tokens.insert(*digest, token);
                (number, gives_way)
            }
        };
        Some(WaitingRequest {
            introspector: self,
            client: client.number,
            digest: *digest,
            number,
            gives_way,
        })
    }

    /// Introspects a token. `known` is called again at its turn, because another request may have introspected it
    /// meanwhile.
    pub(super) async fn introspect_in_turn<T>(
        &self,
        client: &ClientQuota,
        (token, digest): (&str, &Digest),
        expected: &ClaimRequirements<'_>,
        known: impl FnOnce() -> Option<Result<T, TokenRefusal>>,
        learn: impl FnOnce(Claims) -> T,
    ) -> Result<T, TokenRefusal> {
        let unavailable = |reason: String| {
            TokenRefusal::Unavailable(format!("the introspection endpoint {reason}"))
        };
        let too_many = || {
            let why = "too many tokens of this client wait for the introspection endpoint";
            TokenRefusal::Unavailable(why.into())
        };
        let mut waiting = self.wait(client, digest).ok_or_else(too_many)?;
        let _turn = tokio::select! {
            turn = self.turns.wait(client.peer) => turn,
            () = waiting.wait_until_dropped() => None,
        };
        if !waiting.end() {
            return Err(too_many());
        }
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
            .ok_or_else(|| unavailable("did not answer with a JSON object".into()))?;
        match answer.get("active").and_then(serde_json::Value::as_bool) {
            Some(true) => {}
            Some(false) => {
                return Err(TokenRefusal::InvalidToken("the token is not active".into()));
            }
            None => {
                return Err(unavailable(
                    "doesn't say whether the token is active".into(),
                ));
            }
        }
        let claims = self.check(answer, expected);
        let claims = claims.map_err(|error| TokenRefusal::InvalidToken(error.to_string()))?;
        Ok(learn(claims))
    }

    fn check(
        &self,
        answer: JsonObject,
        expected: &ClaimRequirements<'_>,
    ) -> Result<Claims, mcpline_auth::claims::ClaimError> {
        let mut claims = Claims::read(answer)?;
        // The response need not contain the issuer, whose endpoint this is (RFC 7662, section 2.2).
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
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use mcpline_auth::fetch::FetchResponse;
    use sha2::{Digest as _, Sha256};
    use tokio::sync::Semaphore;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::quota::{ClientKey, ClientTable};

    fn client(clients: &ClientTable, address: &str) -> Arc<ClientQuota> {
        clients.client(ClientKey::of_address(address.parse().expect("an address")))
    }

    /// An introspector whose endpoint waits for a permit of `open` for each token, records it, and considers tokens
    /// active that begin with `good`.
    struct Rig {
        introspector: Arc<Introspector>,
        clients: ClientTable,
        open: Arc<Semaphore>,
        tokens: Arc<Mutex<Vec<String>>>,
        /// Number of requests, and of those that have begun to wait or were refused.
        requests: Cell<usize>,
        begun: Arc<AtomicUsize>,
    }

    impl Rig {
        fn new() -> Self {
            let open = Arc::new(Semaphore::new(0));
            let tokens = Arc::new(Mutex::new(Vec::new()));
            let (gate, notes) = (open.clone(), tokens.clone());
            let fetch: Fetch = Arc::new(move |request| {
                let gate = gate.clone();
                let body = String::from_utf8_lossy(&request.body).into_owned();
                let active = body.starts_with("token=good");
                notes.lock().expect("not poisoned").push(body);
                Box::pin(async move {
                    gate.acquire().await.expect("never closed").forget();
                    let body = format!(r#"{{"active": {active}}}"#);
                    Ok(FetchResponse {
                        status: 200,
                        headers: Vec::new(),
                        body: body.into(),
                    })
                })
            });
            let how = Introspection::new("https://auth.example.com/introspect").knows_audience();
            Self {
                introspector: Arc::new(Introspector::new(how, fetch)),
                clients: ClientTable::new(0.25, usize::MAX, usize::MAX),
                open,
                tokens,
                requests: Cell::default(),
                begun: Arc::default(),
            }
        }

        fn request(&self, address: &str, token: String) -> JoinHandle<Result<(), TokenRefusal>> {
            let client = client(&self.clients, address);
            let (introspector, begun) = (self.introspector.clone(), self.begun.clone());
            self.requests.set(self.requests.get() + 1);
            tokio::spawn(async move {
                // Runs up to its first wait without interruption.
                begun.fetch_add(1, Ordering::Relaxed);
                let expected = ClaimRequirements {
                    issuers: &[],
                    audiences: &[],
                    skew: 60,
                    now: 0,
                };
                let digest = Sha256::digest(&token).into();
                introspector
                    .introspect_in_turn(&client, (&token, &digest), &expected, || None, |_| ())
                    .await
            })
        }

        /// Waits until all requests wait or were refused.
        async fn settle(&self) {
            while self.begun.load(Ordering::Relaxed) < self.requests.get() {
                tokio::task::yield_now().await;
            }
        }

        fn count_waiting(&self) -> usize {
            let waiting = self.introspector.lock_waiting();
            let tokens = waiting.clients.values().map(HashMap::len).sum();
            assert_eq!(waiting.count, tokens);
            tokens
        }

        /// Returns the number of tokens that are introspected before the valid one.
        fn count_introspected_before_valid(&self) -> usize {
            let tokens = self.tokens.lock().expect("not poisoned");
            let good = tokens
                .iter()
                .position(|body| body.starts_with("token=good"));
            good.expect("it is asked about")
        }
    }

    /// Returns the number of requests that were refused without introspection.
    async fn refused(requests: Vec<JoinHandle<Result<(), TokenRefusal>>>) -> usize {
        let mut refused = 0;
        for task in requests {
            match task.await.expect("no panic") {
                Err(TokenRefusal::Unavailable(_)) => refused += 1,
                Err(TokenRefusal::InvalidToken(_)) => {}
                other => panic!("{:?}", other.is_ok()),
            }
        }
        refused
    }

    #[tokio::test]
    async fn invented_tokens_of_one_client_leave_room_for_valid_ones_of_others() {
        let rig = Rig::new();
        let made_up: Vec<_> = (0..400)
            .map(|number| rig.request("192.0.2.1", format!("made-up-{number}")))
            .collect();
        rig.settle().await;
        let good = rig.request("192.0.2.2", "good".into());
        // The maximum number of requests with one token waits together.
        let together: Vec<_> = (0..400)
            .map(|_| rig.request("192.0.2.3", "good".into()))
            .collect();
        rig.settle().await;
        assert_eq!(rig.count_waiting(), MAX_WAITING / 4 + 2);
        rig.open.add_permits(1_000);
        assert!(good.await.expect("no panic").is_ok());
        for task in together {
            assert!(task.await.expect("no panic").is_ok());
        }
        assert_eq!(refused(made_up).await, 400 - AT_ONCE - MAX_WAITING / 4);
        // Those that did not wait, and the one whose turn was next.
        assert_eq!(rig.count_introspected_before_valid(), AT_ONCE + 1);
        assert_eq!(rig.count_waiting(), 0);
        assert!(rig.introspector.lock_waiting().clients.is_empty());
    }

    #[tokio::test]
    async fn invented_tokens_from_many_addresses_delay_a_valid_one_by_one_turn_each() {
        let rig = Rig::new();
        let mut made_up = Vec::new();
        for client in 0..100 {
            for number in 0..32 {
                let address = format!("192.0.2.{client}");
                made_up.push(rig.request(&address, format!("made-up-{client}-{number}")));
            }
        }
        rig.settle().await;
        assert_eq!(rig.count_waiting(), MAX_WAITING);
        let good = rig.request("198.51.100.1", "good".into());
        rig.settle().await;
        // A token of another client was dropped for it.
        assert_eq!(rig.count_waiting(), MAX_WAITING);
        rig.open.add_permits(AT_ONCE + MAX_WAITING);
        assert!(good.await.expect("no panic").is_ok());
        assert!(rig.count_introspected_before_valid() <= AT_ONCE + 100);
        let answered = AT_ONCE + MAX_WAITING - 1;
        assert_eq!(refused(made_up).await, 100 * 32 - answered);
        assert_eq!(rig.count_waiting(), 0);
        assert!(rig.introspector.turns.is_idle(AT_ONCE));
    }
}
