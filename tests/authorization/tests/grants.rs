//! Grants without a user, proofs of keys, and introspection; signed and verified by the library's own code if it has
//! some.

mod client;

use std::time::{SystemTime, UNIX_EPOCH};

use authorization_server::{
    Algorithm, AuthMethod, AuthorizationServer, Client, Config, Dpop, Grant, Key, TokenFormat,
    TrustedIssuer, thumbprint, unsigned,
};
use client::{REDIRECT, RESOURCE, form_request, get, post_form, send};
use mcpline_auth::Secret;
use mcpline_auth::assertion::client_assertion;
use mcpline_auth::dpop::DpopProofClaims;
use mcpline_jose::{self as jose, JwkSet, SigningKey};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};

const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

fn unique() -> [u8; 16] {
    let mut unique = [0; 16];
    SystemRandom::new().fill(&mut unique).unwrap();
    unique
}

async fn start(change: impl FnOnce(&mut Config)) -> AuthorizationServer {
    let mut config = Config::default();
    change(&mut config);
    AuthorizationServer::start(config).await.unwrap()
}

fn confidential(id: &str) -> Client {
    Client {
        client_id: id.into(),
        client_secret: Some("secret".into()),
        auth_method: AuthMethod::Basic,
        redirect_uris: vec![REDIRECT.into()],
        ..Client::default()
    }
}

#[tokio::test]
async fn the_library_verifies_signatures_of_every_algorithm() {
    let server = start(|_| {}).await;
    for (algorithm, theirs) in [
        (Algorithm::Es256, jose::Algorithm::Es256),
        (Algorithm::Rs256, jose::Algorithm::Rs256),
        (Algorithm::EdDsa, jose::Algorithm::EdDsa),
    ] {
        server.change(|config| config.algorithm = algorithm);
        let keys = get(&server.url("/jwks")).await.body;
        let keys = JwkSet::parse(keys).unwrap();
        let token = server.issue("a client", "a b", RESOURCE);
        let verified = jose::verify(&token, &keys, &[theirs]).unwrap();
        assert_eq!(verified.claims["scope"], "a b");
        let pem = Key::generate(algorithm, 0).private_pem();
        assert!(SigningKey::from_pem(pem.as_bytes(), Some(theirs), &SystemRandom::new()).is_ok());
        server.rotate_keys(false);
        let keys = JwkSet::parse(get(&server.url("/jwks")).await.body).unwrap();
        assert!(
            jose::verify(&token, &keys, &[theirs]).is_err(),
            "a key that was taken away"
        );
    }
}

#[tokio::test]
async fn a_client_assertion_is_accepted_once() {
    let entropy = SystemRandom::new();
    let key = SigningKey::generate_es256(&entropy).unwrap();
    let server = start(|config| {
        config.clients = vec![Client {
            client_id: "signer".into(),
            auth_method: AuthMethod::PrivateKeyJwt,
            jwks: Some(json!({"keys": [key.public_jwk().to_json()]})),
            ..Client::default()
        }];
    })
    .await;
    let ask = async |assertion: &str| {
        let form = [
            ("grant_type", "client_credentials"),
            ("resource", RESOURCE),
            ("client_assertion_type", ASSERTION),
            ("client_assertion", assertion),
        ];
        post_form(&server.url("/token"), &form, None).await
    };
    let signed = |issuer: &str, now| {
        client_assertion(&key, None, "signer", issuer, now, unique(), &entropy).unwrap()
    };
    let good = signed(&server.issuer(), now());
    let given = ask(&good).await;
    assert_eq!(given.status, 200, "{}", given.body);
    assert_eq!(given.json().get("refresh_token"), None);
    for (bad, why) in [
        (good.clone(), "used twice"),
        (
            signed(&server.url("/token"), now()),
            "for the token endpoint",
        ),
        (signed(&server.issuer(), now() - 1000), "expired"),
        (signed(&server.issuer(), now() + 1000), "not good yet"),
        (
            format!("{}x", signed(&server.issuer(), now())),
            "another signature",
        ),
    ] {
        assert_eq!(ask(&bad).await.status, 401, "{why}");
    }
}

#[tokio::test]
async fn assertions_of_trusted_issuers_are_grants() {
    let workload = Key::generate(Algorithm::Es256, 0);
    let server = start(|config| {
        config.trusted_issuers = vec![TrustedIssuer {
            issuer: "https://workloads.example".into(),
            jwks: json!({"keys": [workload.public_jwk()]}),
        }];
    })
    .await;
    let ask = async |assertion: String| {
        let form = [
            ("grant_type", Grant::JwtBearer.name()),
            ("assertion", &assertion),
            ("resource", RESOURCE),
        ];
        post_form(&server.url("/token"), &form, None).await
    };
    let claims = json!({"iss": "https://workloads.example", "sub": "job", "aud": server.issuer(),
                        "exp": now() + 60});
    let changed = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        workload.sign(&json!({}), &claims)
    };
    let given = ask(workload.sign(&json!({}), &claims)).await;
    assert_eq!(given.status, 200, "{}", given.body);
    let token = given.json()["access_token"].as_str().unwrap().to_owned();
    assert_eq!(server.active_claims(&token).unwrap()["sub"], "job");
    for bad in [
        changed("iss", "https://example.com".into()),
        changed("aud", "https://example.com".into()),
        changed("exp", (now() - 1).into()),
        changed("exp", Value::Null),
        Key::generate(Algorithm::Es256, 0).sign(&json!({}), &claims),
        unsigned(&json!({"alg": "none"}), &claims, b""),
    ] {
        assert_eq!(ask(bad).await.json()["error"], "invalid_grant");
    }
}

#[tokio::test]
async fn an_id_token_is_exchanged_for_an_identity_grant_that_is_valid_once() {
    let provider = start(|config| config.clients = vec![confidential("client")]).await;
    let server = start(|config| {
        config.clients = vec![confidential("client")];
        config.trusted_issuers = vec![TrustedIssuer {
            issuer: provider.issuer(),
            jwks: provider.jwks(),
        }];
    })
    .await;
    let id_token = provider.id_token("client");
    let audience = server.issuer();
    let form = [
        ("grant_type", Grant::TokenExchange.name()),
        ("requested_token_type", ID_JAG),
        ("subject_token_type", ID_TOKEN),
        ("subject_token", &id_token),
        ("audience", &audience),
        ("resource", RESOURCE),
        ("scope", "a"),
    ];
    let exchanged = post_form(&provider.url("/token"), &form, Some(("client", "secret")))
        .await
        .json();
    assert_eq!(exchanged["issued_token_type"], ID_JAG);
    assert_eq!(exchanged["token_type"], "N_A");
    let grant = exchanged["access_token"].as_str().unwrap();
    let form = [
        ("grant_type", Grant::JwtBearer.name()),
        ("assertion", grant),
    ];
    let given = post_form(&server.url("/token"), &form, Some(("client", "secret"))).await;
    assert_eq!(given.status, 200, "{}", given.body);
    let token = given.json()["access_token"].as_str().unwrap().to_owned();
    let claims = server.active_claims(&token).unwrap();
    assert_eq!(
        (&claims["aud"], &claims["sub"], &claims["scope"]),
        (&json!(RESOURCE), &json!("alice"), &json!("a"))
    );
    let again = post_form(&server.url("/token"), &form, Some(("client", "secret"))).await;
    assert_eq!(again.json()["error"], "invalid_grant");
}

#[tokio::test]
async fn tokens_are_bound_to_the_proven_key() {
    let entropy = SystemRandom::new();
    let key = SigningKey::generate_es256(&entropy).unwrap();
    let server = start(|config| {
        config.dpop = Dpop::Required;
        config.dpop_nonces = true;
    })
    .await;
    let id = client::register(&server).await;
    let url = server.url("/token");
    let proof = |method, url: &str, nonce, now| {
        let proof = DpopProofClaims {
            method,
            url,
            nonce,
            token: None::<&Secret>,
        };
        proof.sign(&key, now, unique(), &entropy).unwrap()
    };
    let back = client::authorize(&server, &id, &[]).await;
    let form = client::redemption(&id, back.get("code").unwrap(), &[]);
    let ask = async |proofs: &[&str]| {
        let mut request = form_request(&url, &form, None);
        for proof in proofs {
            request.headers_mut().append("DPoP", proof.parse().unwrap());
        }
        send(request).await
    };
    let challenged = ask(&[&proof("POST", &url, None, now())]).await;
    assert_eq!(
        (challenged.status, &challenged.json()["error"]),
        (400, &json!("use_dpop_nonce"))
    );
    let nonce = challenged.header("dpop-nonce").unwrap();
    let good = proof("POST", &url, Some(nonce), now());
    for (bad, why) in [
        (vec![], "none"),
        (vec![good.as_str(), good.as_str()], "two"),
        (
            vec![&*proof("GET", &url, Some(nonce), now())],
            "another method",
        ),
        (
            vec![&*proof("POST", "http://127.0.0.1/", Some(nonce), now())],
            "another URL",
        ),
        (
            vec![&*proof("POST", &url, Some(nonce), now() - 1000)],
            "an old one",
        ),
    ] {
        let bad: Vec<String> = bad.into_iter().map(str::to_owned).collect();
        let bad: Vec<&str> = bad.iter().map(String::as_str).collect();
        assert_eq!(
            ask(&bad).await.json()["error"],
            "invalid_dpop_proof",
            "{why}"
        );
    }
    let given = ask(&[&good]).await;
    assert_eq!(given.status, 200, "{}", given.body);
    let given = given.json();
    assert_eq!(given["token_type"], "DPoP");
    let claims = server
        .active_claims(given["access_token"].as_str().unwrap())
        .unwrap();
    let jwk = Value::Object(key.public_jwk().to_json());
    assert_eq!(claims["cnf"]["jkt"], thumbprint(&jwk).unwrap());
    assert_eq!(claims["cnf"]["jkt"], key.public_jwk().thumbprint());
    let replayed = ask(&[&good]).await;
    assert_eq!(replayed.json()["error"], "invalid_dpop_proof");
}

#[tokio::test]
async fn introspection_describes_an_opaque_token_until_it_is_revoked() {
    let server = start(|config| {
        config.tokens = TokenFormat::Opaque;
        config.clients = vec![confidential("resource server")];
    })
    .await;
    let (id, given) = client::tokens(&server, &[("scope", "a")]).await;
    let token = given["access_token"].as_str().unwrap();
    let refresh = given["refresh_token"].as_str().unwrap();
    assert!(!token.contains('.'));
    let introspect = async || {
        let answer = post_form(
            &server.url("/introspect"),
            &[("token", token)],
            Some(("resource+server", "secret")),
        )
        .await;
        answer.json()
    };
    let said = introspect().await;
    assert_eq!(
        (&said["active"], &said["sub"], &said["aud"]),
        (&json!(true), &json!("alice"), &json!(RESOURCE))
    );
    let unauthenticated = post_form(
        &server.url("/introspect"),
        &[("token", token), ("client_id", &id)],
        None,
    )
    .await;
    assert_eq!(unauthenticated.status, 401);
    let revoke = [("token", refresh), ("client_id", &id)];
    assert_eq!(
        post_form(&server.url("/revoke"), &revoke, None)
            .await
            .status,
        200
    );
    assert_eq!(introspect().await, json!({"active": false}));
    assert_eq!(
        client::refresh(&server, &id, &given["refresh_token"])
            .await
            .json()["error"],
        "invalid_grant"
    );
    assert_eq!(
        post_form(&server.url("/revoke"), &revoke, None)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn tokens_expire_when_the_clock_is_set_ahead() {
    let server = start(|_| {}).await;
    let (id, given) = client::tokens(&server, &[]).await;
    let token = given["access_token"].as_str().unwrap();
    assert!(server.active_claims(token).is_some());
    server.change(|config| config.clock_ahead = config.token_lifetime + 1);
    assert!(server.active_claims(token).is_none());
    let refreshed = client::refresh(&server, &id, &given["refresh_token"]).await;
    assert_eq!(refreshed.status, 200);
    server.change(|config| config.clock_ahead += config.refresh_lifetime);
    let late = client::refresh(&server, &id, &refreshed.json()["refresh_token"]).await;
    assert_eq!(late.json()["error"], "invalid_grant");
}
