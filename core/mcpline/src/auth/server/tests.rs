//! Keys over time, and forms of the header, without a network.

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

use crate::quota::ClientTable;

use super::authorization_endpoints::{
    AuthorizationEndpoint, AuthorizationEndpoints, EndpointAnswer,
};
use super::keys::{KeyCache, Keys};
use super::{Fetch, ResourceServer};

/// An authorization server that answers at once with what it is told to.
#[derive(Default)]
struct Publisher {
    keys: Mutex<Vec<String>>,
    cache_control: Mutex<Option<String>>,
    down: Mutex<bool>,
    /// Where requests wait, if they do.
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

/// A public key under an id; which one doesn't matter here.
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

/// Lets tasks that are ready run.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_key_is_found_when_a_token_names_it_but_not_at_every_wish() {
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
async fn a_key_that_was_taken_back_is_gone_when_its_time_is_over() {
    let publisher = Publisher::of(&["old"]);
    let cache = publisher.cache();
    assert_eq!(has(&cache, "old").await, Some(true));
    publisher.publish(&["new"]);
    pass(599).await;
    assert_eq!(has(&cache, "old").await, Some(true));
    pass(2).await;
    // The request that finds the time over has them fetched, and isn't kept waiting.
    assert_eq!(has(&cache, "old").await, Some(true));
    settle().await;
    assert_eq!(has(&cache, "old").await, Some(false));
    assert_eq!(has(&cache, "new").await, Some(true));
    assert_eq!(publisher.fetched(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_publisher_says_how_long_within_bounds() {
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
async fn keys_are_used_on_for_an_hour_while_their_server_is_down_and_then_no_more() {
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
    // It is tried again and again, but not with every request.
    let tried = publisher.fetched();
    assert_eq!(has(&cache, "key").await, None);
    assert_eq!(publisher.fetched(), tried);
    *publisher.down.lock().expect("unpoisoned") = false;
    pass(30).await;
    assert_eq!(has(&cache, "key").await, Some(true));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_slow_server_while_the_keys_that_are_there_will_do() {
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
async fn a_server_that_never_answers_is_given_up() {
    let publisher = Publisher::of(&["key"]);
    *publisher.gate.lock().expect("unpoisoned") = Some(Arc::default());
    let cache = publisher.cache();
    assert_eq!(has(&cache, "key").await, None);
    assert_eq!(publisher.fetched(), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_waited_for_a_server_that_never_answers_does_not_ask_it_again() {
    let publisher = Publisher::of(&["key"]);
    *publisher.gate.lock().expect("unpoisoned") = Some(Arc::default());
    let cache = publisher.cache();
    let asked = tokio::time::Instant::now();
    let both = tokio::join!(has(&cache, "key"), has(&cache, "key"));
    assert_eq!(both, (None, None));
    assert_eq!(publisher.fetched(), 1);
    assert_eq!(asked.elapsed(), Duration::from_secs(10), "one deadline");
    // The pause is counted from the end of the fetch.
    pass(1).await;
    assert_eq!(has(&cache, "key").await, None);
    assert_eq!(publisher.fetched(), 1);
    pass(1).await;
    assert_eq!(has(&cache, "key").await, None);
    assert_eq!(publisher.fetched(), 2);
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_waiting_does_not_keep_others_from_the_keys() {
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
async fn the_same_keys_fetched_again_are_the_same() {
    let publisher = Publisher::of(&["key"]);
    let cache = publisher.cache();
    let before = cache.get(None).await.expect("keys");
    pass(601).await;
    let _ = cache.get(None).await;
    settle().await;
    let after = cache.fresh().expect("keys");
    assert_eq!(publisher.fetched(), 2);
    assert!(Arc::ptr_eq(&before, &after));
    assert!(cache.newer(&before).await.is_none());
}

#[runtimes::test]
async fn keys_that_are_given_are_never_fetched() {
    let publisher = Publisher::of(&[]);
    let set = json!({ "keys": [public("given")] }).to_string();
    let keys = Keys::These(JwkSet::parse(set).expect("keys"));
    let cache = KeyCache::new(None, keys, publisher.fetch());
    assert_eq!(has(&cache, "given").await, Some(true));
    assert_eq!(has(&cache, "other").await, Some(false));
    assert_eq!(publisher.fetched(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_issuers_metadata_are_fetched_at_a_fixed_rate_whoever_asks() {
    let publisher = Publisher::of(&[]);
    *publisher.down.lock().expect("unpoisoned") = true;
    let resource = Url::secure("resource", "https://mcp.example.com/mcp").expect("a URL");
    let issuer = Url::secure("issuer", "https://auth.example.com").expect("a URL");
    let endpoints = AuthorizationEndpoints::new(&resource, None, issuer, publisher.fetch());
    let ask = || endpoints.answer(AuthorizationEndpoint::Metadata, "");
    for _ in 0..30 {
        assert_eq!(ask().await, EndpointAnswer::Unavailable);
        pass(1).await;
    }
    // Every ten seconds, at each of two places.
    assert_eq!(publisher.fetched(), 6);
    *publisher.gate.lock().expect("unpoisoned") = Some(Arc::default());
    pass(10).await;
    let asked = tokio::time::Instant::now();
    assert_eq!(ask().await, EndpointAnswer::Unavailable);
    assert_eq!(
        asked.elapsed(),
        Duration::from_secs(10),
        "the deadline of a fetch"
    );
    assert_eq!(publisher.fetched(), 7);
}

#[tokio::test(start_paused = true)]
async fn whoever_waited_for_an_issuers_metadata_does_not_have_them_fetched_again() {
    let publisher = Publisher::of(&[]);
    *publisher.gate.lock().expect("unpoisoned") = Some(Arc::default());
    let resource = Url::secure("resource", "https://mcp.example.com/mcp").expect("a URL");
    let issuer = Url::secure("issuer", "https://auth.example.com").expect("a URL");
    let endpoints = AuthorizationEndpoints::new(&resource, None, issuer, publisher.fetch());
    let ask = || endpoints.answer(AuthorizationEndpoint::Metadata, "");
    let asked = tokio::time::Instant::now();
    let both = tokio::join!(ask(), ask());
    assert_eq!(
        both,
        (EndpointAnswer::Unavailable, EndpointAnswer::Unavailable)
    );
    assert_eq!(publisher.fetched(), 1);
    assert_eq!(asked.elapsed(), Duration::from_secs(10), "one deadline");
    pass(9).await;
    assert_eq!(ask().await, EndpointAnswer::Unavailable);
    assert_eq!(publisher.fetched(), 1);
    pass(1).await;
    assert_eq!(ask().await, EndpointAnswer::Unavailable);
    assert_eq!(publisher.fetched(), 2);
}

/// A server, and a good token for it.
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
async fn the_token_is_taken_out_of_the_request() {
    let (auth, token) = server_and_token();
    let client = ClientTable::new(1.0, usize::MAX, usize::MAX).sole_client();
    for scheme in ["Bearer", "bearer", "BEARER "] {
        let mut parts = parts_with(scheme, &token);
        let authorized = auth.admit(&mut parts, &client).await.expect("admitted");
        assert_eq!(authorized.subject(), Some("alice"));
        assert!(parts.headers.is_empty());
    }
}

#[runtimes::test]
async fn of_a_token_its_digest_is_kept_and_not_itself() {
    let (auth, token) = server_and_token();
    let client = ClientTable::new(1.0, usize::MAX, usize::MAX).sole_client();
    let mut parts = parts_with("Bearer", &token);
    auth.admit(&mut parts, &client).await.expect("admitted");
    let digest = Sha256::digest(&token).into();
    let kept = auth.remembered.lock().expect("unpoisoned").get(&digest, 0);
    let kept = kept.expect("remembered").authorized.to_json();
    let (_, signature) = token.rsplit_once('.').expect("signed");
    assert!(!kept.to_string().contains(signature), "{kept}");
}
