//! Tokens bound to a key (DPoP): valid only with a proof of possession made for the same request.

use crate::support::Nothing;
use crate::support::authorized::{Answer, Rig, modern};
use mcpline::jose::SigningKey;
use mcpline::{Context, Server};
use mcpline_auth::dpop::DpopProofClaims;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};

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
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = since.expect("after 1970").as_secs();
        let mut unique = [0; 16];
        SystemRandom::new().fill(&mut unique).expect("entropy");
        let token = made.token.into();
        let proof = DpopProofClaims {
            method: made.method,
            url: made.url,
            nonce: None,
            token: Some(&token),
        };
        proof
            .sign(
                made.key,
                now.saturating_add_signed(made.at),
                unique,
                &SystemRandom::new(),
            )
            .expect("signed")
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

fn dpop(answer: &Answer) -> mcpline::protocol::Challenge {
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
