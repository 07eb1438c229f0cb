//! Lifetimes of keys, and forms of the header, without a network.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpline_auth::AuthError;
use mcpline_auth::fetch::FetchResponse;
use mcpline_auth::url::Url;
use mcpline_jose::{JwkSet, SigningKey};
use ring::rand::SystemRandom;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;

use crate::caller::Caller;
use crate::quota::ClientTable;

use super::authorization_server_redirects::{
    AuthorizationEndpoint, AuthorizationServerRedirects, EndpointAnswer,
};
use super::keys::{KeyCache, Keys};
use super::token_refusal::TokenRefusal;
use super::{Fetch, ResourceServer};

/// An authorization server that answers at once with what was published.
#[derive(Default)]
struct Publisher {
    keys: Mutex<Vec<String>>,
    cache_control: Mutex<Option<String>>,
    down: Mutex<bool>,
    /// Requests wait here, if there is a gate.
    gate: Mutex<Option<Arc<Notify>>>,
    fetched: AtomicUsize,
}

impl Publisher {
    fn of(ids: &[&str]) -> Arc<Self> {
        let this = Arc::new(Self::default());
        this.publish(ids);
        this
    }

    fn publish(&self, ids: &[&str]) {
        *self.keys.lock().expect("unpoisoned") = ids.iter().map(|id| (*id).to_owned()).collect();
    }

    fn fetched(&self) -> usize {
        self.fetched.load(Ordering::SeqCst)
    }

    fn cache(self: &Arc<Self>) -> KeyCache {
        KeyCache::new(
            None,
            Keys::At("https://auth.example/keys".into()),
            self.fetch(),
        )
    }

    fn fetch(self: &Arc<Self>) -> Fetch {
        let this = self.clone();
        Arc::new(move |request| {
            let this = this.clone();
            Box::pin(async move {
                this.fetched.fetch_add(1, Ordering::SeqCst);
                let gate = this.gate.lock().expect("unpoisoned").clone();
                if let Some(gate) = gate {
                    gate.notified().await;
                }
                if *this.down.lock().expect("unpoisoned") {
                    return Err(AuthError::FetchFailed {
                        url: request.url,
                        reason: "down".into(),
                    });
                }
                let key = |id: &String| Value::Object(public(id));
                let keys: Vec<_> = this
                    .keys
                    .lock()
                    .expect("unpoisoned")
                    .iter()
                    .map(key)
                    .collect();
                let cached = this.cache_control.lock().expect("unpoisoned").clone();
                Ok(FetchResponse {
                    status: 200,
                    headers: cached
                        .into_iter()
                        .map(|value| ("cache-control".into(), value))
                        .collect(),
                    body: json!({ "keys": keys }).to_string().into(),
                })
            })
        })
    }
}

/// A public key with this id. All ids share one key.
fn public(id: &str) -> serde_json::Map<String, Value> {
    static KEY: std::sync::OnceLock<SigningKey> = std::sync::OnceLock::new();
    let key = KEY.get_or_init(|| SigningKey::generate_es256(&SystemRandom::new()).expect("a key"));
    key.public_jwk().with_id(id).to_json()
}

async fn has(cache: &KeyCache, id: &str) -> Option<bool> {
    cache.get(Some(id)).await.ok().map(|keys| keys.has(id))
}

async fn pass(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
}

/// Lets ready tasks run.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn fetches_a_new_key_that_a_token_names_but_not_every_time() {
    let publisher = Publisher::of(&["old"]);
    let cache = publisher.cache();
    assert_eq!(has(&cache, "old").await, Some(true));
    publisher.publish(&["old", "new"]);
    pass(29).await;
    assert_eq!(has(&cache, "new").await, Some(false));
    assert_eq!(publisher.fetched(), 1);
    pass(2).await;
    assert_eq!(has(&cache, "new").await, Some(true));
    assert_eq!(publisher.fetched(), 2);
    for _ in 0..100 {
        assert_eq!(has(&cache, "made-up").await, Some(false));
    }
    assert_eq!(publisher.fetched(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_key_is_gone_when_its_lifetime_is_over() {
    let publisher = Publisher::of(&["old"]);
    let cache = publisher.cache();
    assert_eq!(has(&cache, "old").await, Some(true));
    publisher.publish(&["new"]);
    pass(599).await;
    assert_eq!(has(&cache, "old").await, Some(true));
    pass(2).await;
    // The request that finds the keys stale starts a fetch and does not wait for it.
    assert_eq!(has(&cache, "old").await, Some(true));
    settle().await;
    assert_eq!(has(&cache, "old").await, Some(false));
    assert_eq!(has(&cache, "new").await, Some(true));
    assert_eq!(publisher.fetched(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_publisher_sets_the_lifetime_within_bounds() {
    for (said, fresh) in [
        ("max-age=3600", 3_600),
        ("public, MAX-AGE=120, must-revalidate", 120),
        ("max-age=1", 60),
        ("no-store", 60),
        ("max-age=99999999999", 86_400),
        ("max-age=soon", 600),
    ] {
        let publisher = Publisher::of(&["key"]);
        *publisher.cache_control.lock().expect("unpoisoned") = Some(said.into());
        let cache = publisher.cache();
        assert_eq!(has(&cache, "key").await, Some(true));
        pass(fresh - 1).await;
        assert!(cache.fresh().is_some(), "{said}");
        pass(2).await;
        assert!(cache.fresh().is_none(), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn stale_keys_are_used_for_an_hour_while_their_server_is_down() {
    let publisher = Publisher::of(&["key"]);
    let cache = publisher.cache();
    assert_eq!(has(&cache, "key").await, Some(true));
    *publisher.down.lock().expect("unpoisoned") = true;
    for _ in 0..7 {
        pass(599).await;
        assert_eq!(has(&cache, "key").await, Some(true));
        settle().await;
    }
    pass(10).await;
    assert_eq!(has(&cache, "key").await, None);
    // Fetches are repeated, but not with every request.
    let tried = publisher.fetched();
    assert_eq!(has(&cache, "key").await, None);
    assert_eq!(publisher.fetched(), tried);
    *publisher.down.lock().expect("unpoisoned") = false;
    pass(30).await;
    assert_eq!(has(&cache, "key").await, Some(true));
}

#[tokio::test(start_paused = true)]
async fn requests_do_not_wait_for_a_slow_server_while_cached_keys_are_usable() {
    let publisher = Publisher::of(&["key"]);
    let cache = publisher.cache();
    assert_eq!(has(&cache, "key").await, Some(true));
    *publisher.gate.lock().expect("unpoisoned") = Some(Arc::default());
    pass(601).await;
    for _ in 0..5 {
        assert_eq!(has(&cache, "key").await, Some(true));
        settle().await;
    }
    assert_eq!(publisher.fetched(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_fetch_from_a_server_that_never_answers_times_out() {
    let publisher = Publisher::of(&["key"]);
    *publisher.gate.lock().expect("unpoisoned") = Some(Arc::default());
    let cache = publisher.cache();
    assert_eq!(has(&cache, "key").await, None);
    assert_eq!(publisher.fetched(), 1);
}

#[tokio::test(start_paused = true)]
async fn requests_that_waited_for_a_timed_out_fetch_do_not_start_another() {
    let publisher = Publisher::of(&["key"]);
    *publisher.gate.lock().expect("unpoisoned") = Some(Arc::default());
    let cache = publisher.cache();
    let begun = tokio::time::Instant::now();
    let both = tokio::join!(has(&cache, "key"), has(&cache, "key"));
    assert_eq!(both, (None, None));
    assert_eq!(publisher.fetched(), 1);
    assert_eq!(begun.elapsed(), Duration::from_secs(10), "one deadline");
    // The pause begins at the end of the fetch.
    pass(1).await;
    assert_eq!(has(&cache, "key").await, None);
    assert_eq!(publisher.fetched(), 1);
    pass(1).await;
    assert_eq!(has(&cache, "key").await, None);
    assert_eq!(publisher.fetched(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_stops_waiting_does_not_abort_the_fetch() {
    let publisher = Publisher::of(&["key"]);
    let gate = Arc::new(Notify::new());
    *publisher.gate.lock().expect("unpoisoned") = Some(gate.clone());
    let cache = publisher.cache();
    let impatient = tokio::time::timeout(Duration::from_secs(1), cache.get(Some("key"))).await;
    assert!(impatient.is_err());
    gate.notify_one();
    settle().await;
    assert!(cache.fresh().is_some());
    assert_eq!(publisher.fetched(), 1);
}

#[tokio::test(start_paused = true)]
async fn unchanged_keys_keep_their_identity_after_a_fetch() {
    let publisher = Publisher::of(&["key"]);
    let cache = publisher.cache();
    let before = cache.get(None).await.expect("keys");
    pass(601).await;
    let _ = cache.get(None).await;
    settle().await;
    let after = cache.fresh().expect("keys");
    assert_eq!(publisher.fetched(), 2);
    assert!(Arc::ptr_eq(&before, &after));
    assert!(cache.fetch_newer(&before).await.is_none());
}

#[runtimes::test]
async fn given_keys_are_never_fetched() {
    let publisher = Publisher::of(&[]);
    let set = json!({ "keys": [public("given")] }).to_string();
    let keys = Keys::These(JwkSet::parse(set).expect("keys"));
    let cache = KeyCache::new(None, keys, publisher.fetch());
    assert_eq!(has(&cache, "given").await, Some(true));
    assert_eq!(has(&cache, "other").await, Some(false));
    assert_eq!(publisher.fetched(), 0);
}

#[tokio::test(start_paused = true)]
async fn metadata_of_an_issuer_is_fetched_at_a_limited_rate() {
    let publisher = Publisher::of(&[]);
    *publisher.down.lock().expect("unpoisoned") = true;
    let resource = Url::secure("resource", "https://mcp.example.com/mcp").expect("a URL");
    let issuer = Url::secure("issuer", "https://auth.example.com").expect("a URL");
    let endpoints = AuthorizationServerRedirects::new(&resource, None, issuer, publisher.fetch());
    let request = || endpoints.answer(AuthorizationEndpoint::Metadata, "");
    for _ in 0..30 {
        assert_eq!(request().await, EndpointAnswer::Unavailable);
        pass(1).await;
    }
    // Every ten seconds, from both well-known URLs.
    assert_eq!(publisher.fetched(), 6);
    *publisher.gate.lock().expect("unpoisoned") = Some(Arc::default());
    pass(10).await;
    let begun = tokio::time::Instant::now();
    assert_eq!(request().await, EndpointAnswer::Unavailable);
    assert_eq!(
        begun.elapsed(),
        Duration::from_secs(10),
        "the deadline of a fetch"
    );
    assert_eq!(publisher.fetched(), 7);
}

#[tokio::test(start_paused = true)]
async fn requests_that_waited_for_metadata_do_not_fetch_it_again() {
    let publisher = Publisher::of(&[]);
    *publisher.gate.lock().expect("unpoisoned") = Some(Arc::default());
    let resource = Url::secure("resource", "https://mcp.example.com/mcp").expect("a URL");
    let issuer = Url::secure("issuer", "https://auth.example.com").expect("a URL");
    let endpoints = AuthorizationServerRedirects::new(&resource, None, issuer, publisher.fetch());
    let request = || endpoints.answer(AuthorizationEndpoint::Metadata, "");
    let begun = tokio::time::Instant::now();
    let both = tokio::join!(request(), request());
    assert_eq!(
        both,
        (EndpointAnswer::Unavailable, EndpointAnswer::Unavailable)
    );
    assert_eq!(publisher.fetched(), 1);
    assert_eq!(begun.elapsed(), Duration::from_secs(10), "one deadline");
    pass(9).await;
    assert_eq!(request().await, EndpointAnswer::Unavailable);
    assert_eq!(publisher.fetched(), 1);
    pass(1).await;
    assert_eq!(request().await, EndpointAnswer::Unavailable);
    assert_eq!(publisher.fetched(), 2);
}

/// A server with a valid token for it.
fn server_and_token() -> (ResourceServer, String) {
    let key = SigningKey::generate_es256(&SystemRandom::new()).expect("a key");
    let resource = "https://mcp.example.com/mcp";
    let auth = ResourceServer::builder(resource)
        .issuer_with_keys(
            "https://auth.example.com",
            Keys::These(JwkSet::of([key.public_jwk()])),
        )
        .build()
        .expect("usable options");
    let claims = json!({"iss": "https://auth.example.com", "aud": resource, "sub": "alice",
                        "exp": mcpline_runtime::clock::unix_now() + 60});
    let claims = claims.as_object().expect("an object");
    let token = key.sign(&SystemRandom::new(), &Default::default(), claims);
    (auth, token.expect("signed"))
}

fn parts_with(scheme: &str, token: &str) -> http::request::Parts {
    let request = http::Request::builder()
        .header("authorization", format!("{scheme} {token}"))
        .header("dpop", "x");
    request.body(()).expect("a request").into_parts().0
}

#[runtimes::test]
async fn removes_the_token_from_the_request() {
    let (auth, token) = server_and_token();
    let client = ClientTable::new(1.0, usize::MAX, usize::MAX).sole_client();
    for scheme in ["Bearer", "bearer", "BEARER "] {
        let mut parts = parts_with(scheme, &token);
        let authorized = auth
            .admit(&mut parts, &client, None)
            .await
            .expect("admitted");
        assert_eq!(authorized.subject(), Some("alice"));
        assert!(parts.headers.is_empty());
    }
}

#[runtimes::test]
async fn keeps_the_digest_of_a_token_but_not_the_token() {
    let (auth, token) = server_and_token();
    let client = ClientTable::new(1.0, usize::MAX, usize::MAX).sole_client();
    let mut parts = parts_with("Bearer", &token);
    auth.admit(&mut parts, &client, None)
        .await
        .expect("admitted");
    let digest = Sha256::digest(&token).into();
    let kept = auth.remembered.lock().expect("unpoisoned").get(&digest, 0);
    let kept = kept.expect("remembered").authorized.to_json();
    let (_, signature) = token.rsplit_once('.').expect("signed");
    assert!(!kept.to_string().contains(signature), "{kept}");
}

#[test]
fn a_verifier_alone_needs_no_authorization_server() {
    let server = ResourceServer::verified_by(|_| async { Ok(Caller::new()) })
        .build()
        .expect("can be built");
    assert_eq!((server.resource(), server.metadata_url()), (None, None));
    assert!(server.metadata().is_none() && !server.has_endpoints());
    let challenge = server.challenge_for(&TokenRefusal::NoToken).expect("one");
    assert_eq!(challenge.to_header(), "Bearer");
}

#[test]
fn a_verifier_of_oauth_tokens_publishes_metadata() {
    let url = "https://mcp.example.com/mcp";
    let server = ResourceServer::builder(url)
        .authorization_server("https://auth.example.com")
        .verifier(|_| async { Ok(Caller::new()) })
        .build()
        .expect("can be built");
    assert_eq!(server.metadata().expect("some").resource, url);
}

#[test]
fn oauth_needs_the_url_of_the_server_and_an_authorization_server() {
    let verified = || ResourceServer::verified_by(|_| async { Ok(Caller::new()) });
    let without_url = verified().authorization_server("https://auth.example.com");
    let error = without_url.build().expect_err("is refused");
    assert!(error.to_string().contains("name the resource"), "{error}");
    // A proof of possession is OAuth's.
    let error = verified().demand_proof_of_possession().build();
    assert!(error.is_err());
}
