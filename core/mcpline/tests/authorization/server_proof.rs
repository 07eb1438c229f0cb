//! Tokens bound to a key (DPoP): valid only with a proof of possession made for the same request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::authorized::{Answer, Rig, modern};
use crate::support::{Nothing, requests};
use bytes::Bytes;
use http::Method;
use mcpline::auth::{Keys, ResourceServer};
use mcpline::jose::{JwkSet, SigningKey};
use mcpline::protocol::Challenge;
use mcpline::sharing::{Pending, SaveOutcome, SessionStore, Sharing, SharingError};
use mcpline::transport::http::{HttpOptions, HttpService};
use mcpline::{Context, Server, Settings};
use mcpline_auth::dpop::DpopProofClaims;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};
use tokio::time::Instant;

/// A server, and a client with its own key.
struct Bound {
    rig: Rig,
    key: SigningKey,
    token: String,
}

/// The contents of a proof, for tests to change.
struct Made<'m> {
    method: &'m str,
    url: &'m str,
    token: &'m str,
    key: &'m SigningKey,
    at: i64,
}

fn key() -> SigningKey {
    SigningKey::generate_es256(&SystemRandom::new()).expect("a key")
}

/// The time in seconds since 1970.
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("after 1970").as_secs()
}

fn sign_proof(made: &Made<'_>) -> String {
    let mut unique = [0; 16];
    SystemRandom::new().fill(&mut unique).expect("entropy");
    let token = made.token.into();
    let proof = DpopProofClaims {
        method: made.method,
        url: made.url,
        nonce: None,
        token: Some(&token),
    };
    let time = now().saturating_add_signed(made.at);
    let proof = proof.sign(made.key, time, unique, &SystemRandom::new());
    proof.expect("signed")
}

impl Bound {
    async fn start(demands_proof: bool) -> Self {
        let server =
            Server::new("bound", "1").tool("plain", "Answers", |_: Nothing, _: Context| async {
                "done"
            });
        let rig = Rig::start(server, |builder, issuer| {
            let builder = builder.issuer(issuer.issuer());
            match demands_proof {
                true => builder.demand_proof_of_possession(),
                false => builder,
            }
        })
        .await;
        let key = key();
        let mut claims = rig.claims("mcp");
        claims["cnf"] = json!({"jkt": key.public_jwk().thumbprint()});
        let token = rig.issuer.mint(&claims);
        Self { rig, key, token }
    }

    fn proof<'m>(&'m self, change: impl FnOnce(&mut Made<'m>)) -> String {
        let mut made = Made {
            method: "POST",
            url: &self.rig.resource,
            token: &self.token,
            key: &self.key,
            at: 0,
        };
        change(&mut made);
        sign_proof(&made)
    }

    async fn list(&self, headers: &[(&str, &str)]) -> Answer {
        let (_, body) = modern("tools/list", json!({}));
        let mut all = headers.to_vec();
        all.push(("MCP-Protocol-Version", "2026-07-28"));
        all.push(("Mcp-Method", "tools/list"));
        self.rig.ask("POST", "/mcp", &all, &body).await
    }

    async fn with(&self, proof: &str) -> Answer {
        let authorization = format!("DPoP {}", self.token);
        self.list(&[("Authorization", &authorization), ("DPoP", proof)])
            .await
    }
}

fn dpop(answer: &Answer) -> Challenge {
    assert_eq!(answer.status, 401, "{answer:?}");
    let mut challenges = answer.challenges().into_iter();
    challenges.find(|one| one.is("DPoP")).expect("a challenge")
}

#[runtimes::test]
async fn a_bound_token_is_accepted_with_a_proof_for_each_request() {
    let bound = Bound::start(false).await;
    for _ in 0..3 {
        let answer = bound.with(&bound.proof(|_| {})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    // Clocks may differ by a minute.
    assert_eq!(
        bound.with(&bound.proof(|made| made.at = 50)).await.status,
        200
    );
    assert_eq!(
        bound.with(&bound.proof(|made| made.at = -50)).await.status,
        200
    );
}

#[runtimes::test]
async fn rejects_a_replayed_proof() {
    let bound = Bound::start(false).await;
    let proof = bound.proof(|_| {});
    assert_eq!(bound.with(&proof).await.status, 200);
    let challenge = dpop(&bound.with(&proof).await);
    assert_eq!(challenge.get("error"), Some("invalid_dpop_proof"));
    assert!(
        challenge
            .get("algs")
            .is_some_and(|algs| algs.contains("ES256"))
    );
    assert!(challenge.get("resource_metadata").is_some());
}

#[runtimes::test]
async fn rejects_a_proof_for_another_request() {
    let bound = Bound::start(false).await;
    let other = key();
    let other_url = bound.rig.resource.replace("/mcp", "/other");
    for proof in [
        bound.proof(|made| made.method = "GET"),
        bound.proof(|made| made.url = "https://other.example/mcp"),
        bound.proof(|made| made.url = &other_url),
        bound.proof(|made| made.token = "another"),
        bound.proof(|made| made.key = &other),
        bound.proof(|made| made.at = 300),
        bound.proof(|made| made.at = -300),
        bound.token.clone(),
        "x".into(),
    ] {
        let challenge = dpop(&bound.with(&proof).await);
        assert_eq!(
            challenge.get("error"),
            Some("invalid_dpop_proof"),
            "{proof}"
        );
    }
    let authorization = format!("DPoP {}", bound.token);
    let authorization = ("Authorization", authorization.as_str());
    let (one, two) = (bound.proof(|_| {}), bound.proof(|_| {}));
    for headers in [
        &[authorization][..],
        &[authorization, ("DPoP", &one), ("DPoP", &two)],
    ] {
        dpop(&bound.list(headers).await);
    }
}

#[runtimes::test]
async fn rejects_a_bound_token_used_as_a_bearer_token() {
    let bound = Bound::start(false).await;
    let bearer = format!("Bearer {}", bound.token);
    let proof = bound.proof(|_| {});
    for headers in [
        &[("Authorization", bearer.as_str())][..],
        &[("Authorization", &bearer), ("DPoP", &proof)],
    ] {
        let challenge = dpop(&bound.list(headers).await);
        assert_eq!(challenge.get("error"), Some("invalid_token"));
    }
    // Nor is an unbound token accepted as a bound one.
    let plain = format!("DPoP {}", bound.rig.token("mcp"));
    let challenge = dpop(
        &bound
            .list(&[("Authorization", &plain), ("DPoP", &proof)])
            .await,
    );
    assert_eq!(challenge.get("error"), Some("invalid_token"));
}

#[runtimes::test]
async fn an_invalid_token_with_a_proof_gets_a_dpop_challenge() {
    let bound = Bound::start(false).await;
    let authorization = format!("DPoP {}x", bound.token);
    let proof = bound.proof(|_| {});
    let answer = bound
        .list(&[("Authorization", &authorization), ("DPoP", &proof)])
        .await;
    assert_eq!(dpop(&answer).get("error"), Some("invalid_token"));
    assert_eq!(answer.challenges().len(), 1);
}

#[runtimes::test]
async fn can_require_that_every_token_is_bound() {
    let bound = Bound::start(true).await;
    let plain = bound.rig.token("mcp");
    let plain = [("Authorization", format!("Bearer {plain}"))];
    let challenge = dpop(&bound.list(&[(plain[0].0, &plain[0].1)]).await);
    assert_eq!(challenge.get("error"), Some("invalid_token"));
    let bare = bound.list(&[]).await;
    assert!(bare.challenges().iter().all(|one| one.is("DPoP")));
    assert_eq!(dpop(&bare).get("scope"), Some("mcp"));
    assert_eq!(bound.with(&bound.proof(|_| {})).await.status, 200);
    let path = "/.well-known/oauth-protected-resource/mcp";
    let metadata = bound.rig.ask("GET", path, &[], &Value::Null).await;
    assert_eq!(metadata.body["dpop_bound_access_tokens_required"], true);
}

/// One process of a service whose processes share state.
struct Replica(HttpService);

/// What the processes of a service and their client have in common.
struct Service {
    resource: &'static str,
    issuer: SigningKey,
    key: SigningKey,
    token: String,
}

impl Service {
    fn new() -> Self {
        let (issuer, key) = (key(), key());
        let resource = "https://mcp.example.com/mcp";
        let claims = json!({"iss": "https://auth.example.com", "aud": resource, "sub": "alice",
                            "exp": now() + 600, "cnf": {"jkt": key.public_jwk().thumbprint()}});
        let claims = claims.as_object().expect("an object");
        let token = issuer.sign(&SystemRandom::new(), &Default::default(), claims);
        Self {
            resource,
            token: token.expect("signed"),
            issuer,
            key,
        }
    }

    /// Starts a process; `sharing` is `None` for one that shares nothing.
    fn start(&self, sharing: Option<&Sharing>) -> Replica {
        let mut settings = Settings::default();
        settings.sharing = sharing.cloned();
        let server = Server::builder("replica", "1").settings(settings);
        let server = server.build().expect("a server");
        let server = server.tool("plain", "Answers", |_: Nothing, _: Context| async {
            "done"
        });
        let keys = Keys::These(JwkSet::of([self.issuer.public_jwk()]));
        let auth = ResourceServer::builder(self.resource)
            .issuer_with_keys("https://auth.example.com", keys)
            .build();
        let mut options = HttpOptions::default();
        options.auth = Some(Arc::new(auth.expect("usable options")));
        Replica(server.http_service(options))
    }

    fn proof(&self) -> String {
        sign_proof(&Made {
            method: "POST",
            url: self.resource,
            token: &self.token,
            key: &self.key,
            at: 0,
        })
    }

    /// Sends a request with this proof to a process; returns the status and the error of the challenge.
    async fn send(&self, replica: &Replica, proof: &str) -> (u16, Option<String>) {
        let (_, body) = modern("tools/list", json!({}));
        let authorization = format!("DPoP {}", self.token);
        let headers = [
            ("host", "mcp.example.com"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/list"),
            ("authorization", &authorization),
            ("dpop", proof),
        ];
        let request = requests::request(Method::POST, &headers, body);
        let response = replica.0.handle(request).await;
        let challenge = response.headers().get("www-authenticate");
        let challenges = challenge.map(|value| Challenge::read(value.to_str().expect("ASCII")));
        let error = challenges.and_then(|found| found[0].get("error").map(str::to_owned));
        (response.status().as_u16(), error)
    }
}

/// The outcome of a request whose proof was used before.
fn replayed() -> (u16, Option<String>) {
    (401, Some("invalid_dpop_proof".to_owned()))
}

/// A store whose outcome of uses a test chooses: an error, or none.
struct Faulty {
    answers: bool,
    uses: AtomicUsize,
}

impl SessionStore for Faulty {
    fn save<'a>(&'a self, _: &'a str, _: Bytes, _: Bytes, _: Duration) -> Pending<'a, SaveOutcome> {
        self.uses.fetch_add(1, Ordering::SeqCst);
        let answers = self.answers;
        Box::pin(async move {
            match answers {
                true => Err(SharingError::new("unreachable")),
                false => std::future::pending().await,
            }
        })
    }

    fn load<'a>(&'a self, _: &'a str) -> Pending<'a, Option<Bytes>> {
        Box::pin(async { Ok(None) })
    }

    fn remove<'a>(&'a self, _: &'a str) -> Pending<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}

/// A store with the methods for sessions only, as stores in other languages have.
struct SessionsOnly(Arc<dyn SessionStore>);

impl SessionStore for SessionsOnly {
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        lifetime: Duration,
    ) -> Pending<'a, SaveOutcome> {
        // As long as any process may accept the proof: its age, and the differences of clocks.
        assert!((Duration::from_secs(150)..Duration::from_secs(200)).contains(&lifetime));
        self.0.save(id, session, replaces, lifetime)
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        self.0.load(id)
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        self.0.remove(id)
    }
}

#[tokio::test(start_paused = true)]
async fn a_proof_used_at_one_process_is_refused_at_all_that_share_state() {
    let service = Service::new();
    let own = Sharing::in_memory();
    let mut sessions_only = Sharing::in_memory();
    sessions_only.sessions = Arc::new(SessionsOnly(sessions_only.sessions));
    for sharing in [own, sessions_only] {
        let [a, b] = [(); 2].map(|()| service.start(Some(&sharing)));
        let proof = service.proof();
        assert_eq!(service.send(&a, &proof).await, (200, None));
        for replica in [&b, &a, &service.start(Some(&sharing))] {
            assert_eq!(service.send(replica, &proof).await, replayed());
        }
        // Each new one is accepted by any process.
        assert_eq!(service.send(&b, &service.proof()).await, (200, None));
        // A process that shares nothing has its own memory.
        assert_eq!(
            service.send(&service.start(None), &proof).await,
            (200, None)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_proof_sent_to_two_processes_at_once_is_accepted_by_one() {
    let service = Service::new();
    let sharing = Sharing::in_memory();
    let [a, b] = [(); 2].map(|()| service.start(Some(&sharing)));
    for _ in 0..20 {
        let proof = service.proof();
        let (at_a, at_b) = tokio::join!(service.send(&a, &proof), service.send(&b, &proof));
        let mut both = [at_a, at_b];
        both.sort();
        assert_eq!(both, [(200, None), replayed()]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_or_hangs_refuses_no_proof_but_replays_at_the_same_process() {
    let service = Service::new();
    for answers in [true, false] {
        let store = Arc::new(Faulty {
            answers,
            uses: AtomicUsize::new(0),
        });
        let mut sharing = Sharing::in_memory();
        sharing.sessions = store.clone();
        let [a, b] = [(); 2].map(|()| service.start(Some(&sharing)));
        let proof = service.proof();
        let began = Instant::now();
        assert_eq!(service.send(&a, &proof).await, (200, None));
        assert!(began.elapsed() <= Duration::from_millis(500));
        assert_eq!(service.send(&a, &proof).await, replayed());
        // The process's own memory is enough to refuse it.
        assert_eq!(store.uses.load(Ordering::SeqCst), 1);
        assert_eq!(service.send(&b, &proof).await, (200, None));
    }
}

#[tokio::test(start_paused = true)]
async fn only_valid_proofs_reach_the_store() {
    let service = Service::new();
    let store = Arc::new(Faulty {
        answers: true,
        uses: AtomicUsize::new(0),
    });
    let mut sharing = Sharing::in_memory();
    sharing.sessions = store.clone();
    let replica = service.start(Some(&sharing));
    let other = Service::new();
    assert_eq!(service.send(&replica, "x").await, replayed());
    assert_eq!(service.send(&replica, &other.proof()).await, replayed());
    assert_eq!(store.uses.load(Ordering::SeqCst), 0);
    assert_eq!(service.send(&replica, &service.proof()).await, (200, None));
    assert_eq!(store.uses.load(Ordering::SeqCst), 1);
}
