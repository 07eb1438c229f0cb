//! A server that requires tokens: which tokens it accepts, its challenges, and its metadata. Over real sockets, with an
//! authorization server of the tests.

use crate::support::authorized::{Answer, Rig};
use crate::support::{self, Nothing};
use authorization_server::{Algorithm, Key, unsigned};
use mcpline::auth::{Caller, ResourceServerBuilder, VerifyError};
use mcpline::{Context, Server};
use serde_json::{Value, json};

/// A server whose tool `whoami` returns what it knows about its caller.
fn server() -> Server {
    Server::new("protected", "1").tool(
        "whoami",
        "Tells who calls",
        |_: Nothing, ctx: Context| async move {
            let auth = ctx.auth();
            let http = ctx.http().expect("over HTTP");
            let seen = json!({
                "auth": auth.as_ref().map(Caller::to_json),
                "principal": http.principal,
                "authorization": http.header("authorization"),
                "shown": format!("{auth:?}"),
            });
            seen.to_string()
        },
    )
}

#[runtimes::test]
async fn omits_offline_access_from_metadata_and_challenges() {
    let rig = Rig::start(server(), |builder, issuer| {
        let scopes = ["mcp", "offline_access"];
        builder.issuer(issuer.issuer()).required_scopes(scopes)
    });
    let rig = rig.await;
    let path = "/.well-known/oauth-protected-resource/mcp";
    let metadata = rig.ask("GET", path, &[], &Value::Null).await;
    assert_eq!(metadata.body["scopes_supported"], json!(["mcp"]));
    assert_eq!(call(&rig, "").await.bearer().get("scope"), Some("mcp"));
    let lacks = call(&rig, &rig.token("other")).await;
    assert_eq!(lacks.status, 403);
    assert_eq!(lacks.bearer().get("scope"), Some("mcp"));
}

async fn rig() -> Rig {
    Rig::start(server(), |builder, issuer| builder.issuer(issuer.issuer())).await
}

async fn call(rig: &Rig, token: &str) -> Answer {
    let params = json!({"name": "whoami", "arguments": {}});
    rig.modern(token, "tools/call", params).await
}

fn seen(answer: &Answer) -> Value {
    let text = answer.body["result"]["content"][0]["text"].as_str();
    serde_json::from_str(text.unwrap_or_else(|| panic!("{answer:?}"))).expect("JSON")
}

/// Asserts that a token was refused as invalid for this reason.
fn assert_invalid(answer: &Answer, why: &str) {
    assert_eq!(answer.status, 401, "{why}: {answer:?}");
    let challenge = answer.bearer();
    assert_eq!(challenge.get("error"), Some("invalid_token"), "{why}");
    let description = challenge.get("error_description").unwrap_or_default();
    assert!(description.contains(why), "{description:?} lacks {why:?}");
    assert!(challenge.get("resource_metadata").is_some());
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("after 1970").as_secs() as i64
}

#[runtimes::test]
async fn handlers_see_the_caller_but_not_the_token() {
    let rig = rig().await;
    let token = rig.token("mcp files:read");
    let answer = call(&rig, &token).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = seen(&answer);
    let auth = &seen["auth"];
    assert_eq!(auth["subject"], "alice");
    assert_eq!(auth["client_id"], "client");
    assert_eq!(auth["issuer"], rig.issuer.issuer());
    assert_eq!(auth["scopes"], json!(["mcp", "files:read"]));
    assert_eq!(auth["audience"], json!([rig.resource]));
    assert_eq!(auth["claims"]["sub"], "alice");
    assert!(auth["expires_at"].as_i64() > Some(now()));
    assert!(seen["principal"].as_str().expect("text").contains("alice"));
    assert_eq!(seen["authorization"], Value::Null);
    assert!(!seen.to_string().contains(&token));
}

#[runtimes::test]
async fn requests_without_a_token_get_401_and_the_metadata_url() {
    let rig = rig().await;
    let metadata = format!(
        "http://{}/.well-known/oauth-protected-resource/mcp",
        rig.address
    );
    let session = [("Mcp-Session-Id", "made-up")];
    for (method, path, headers) in [
        ("POST", "/mcp", &[][..]),
        ("POST", "/mcp", &session),
        ("GET", "/mcp", &session),
        ("DELETE", "/mcp", &session),
        ("PUT", "/mcp", &[]),
        ("GET", "/sse", &[]),
        ("POST", "/messages?sessionId=made-up", &[]),
        // A token in the URL does not count, nor do other credentials.
        ("POST", "/mcp?access_token=x", &[]),
        ("POST", "/mcp", &[("Authorization", "Basic YTpi")]),
        ("POST", "/mcp", &[("Authorization", "Bearer")]),
    ] {
        let body = support::requests::initialize("2025-11-25");
        let answer = rig.ask(method, path, headers, &body).await;
        assert_eq!(answer.status, 401, "{method} {path}");
        let challenge = answer.bearer();
        assert_eq!(challenge.get("resource_metadata"), Some(metadata.as_str()));
        assert_eq!(challenge.get("scope"), Some("mcp"));
        assert_eq!(challenge.get("error"), None, "{method} {path}");
        assert_eq!(answer.body["error"]["code"], -32600);
        assert_eq!(answer.body.get("id"), None);
    }
    // Health checks need no token.
    assert_eq!(
        rig.ask("GET", "/health", &[], &Value::Null).await.status,
        200
    );
}

#[runtimes::test]
async fn ignores_tokens_in_the_url_even_if_they_are_valid() {
    let rig = rig().await;
    let path = format!("/mcp?access_token={}", rig.token("mcp"));
    let body = support::requests::initialize("2025-11-25");
    assert_eq!(rig.ask("POST", &path, &[], &body).await.status, 401);
}

#[runtimes::test]
async fn rejects_tokens_with_invalid_claims() {
    let rig = rig().await;
    let changed = |name: &str, value: Value| {
        let mut claims = rig.claims("mcp");
        claims[name] = value;
        rig.issuer.mint(&claims)
    };
    for (token, why) in [
        (
            changed("aud", json!("https://other.example/mcp")),
            "another resource",
        ),
        (changed("aud", json!("client")), "another resource"),
        (changed("aud", Value::Null), "another resource"),
        (
            changed("iss", json!("https://other.example")),
            "another authorization server",
        ),
        (changed("iss", Value::Null), "another authorization server"),
        (changed("exp", json!(now() - 61)), "expired"),
        (changed("exp", Value::Null), "no expiry"),
        (changed("exp", json!("tomorrow")), "malformed"),
        (changed("nbf", json!(now() + 120)), "not valid yet"),
        (changed("iat", json!(now() + 120)), "not valid yet"),
        (changed("cnf", json!({"x5t#S256": "AAAA"})), "not supported"),
    ] {
        assert_invalid(&call(&rig, &token).await, why);
    }
    // Clocks may differ by a minute.
    assert_eq!(
        call(&rig, &changed("exp", json!(now() - 30))).await.status,
        200
    );
    assert_eq!(
        call(&rig, &changed("nbf", json!(now() + 30))).await.status,
        200
    );
}

#[runtimes::test]
async fn rejects_tokens_without_a_valid_signature() {
    let rig = rig().await;
    let good = rig.token("mcp");
    let kid = rig.issuer.jwks()["keys"][0]["kid"].clone();
    let claims = rig.claims("mcp");
    let stranger = Key::generate(Algorithm::Es256, 7);
    let (signed, _) = good.rsplit_once('.').expect("parts");
    let parts: Vec<&str> = good.split('.').collect();
    let mut admin = claims.clone();
    admin["scope"] = "mcp admin".into();
    let other = rig.issuer.mint(&admin);
    let admin_payload: &str = other.split('.').nth(1).expect("a payload");
    for (token, why) in [
        (unsigned(&json!({"alg": "none"}), &claims, b""), "algorithm"),
        (
            unsigned(&json!({"alg": "HS256", "kid": kid}), &claims, b"x"),
            "algorithm",
        ),
        (
            unsigned(&json!({"alg": "RS256", "kid": kid}), &claims, &[1; 256]),
            "unknown key",
        ),
        (
            unsigned(&json!({"alg": "ES256", "kid": kid}), &claims, &[1; 64]),
            "signature",
        ),
        (
            unsigned(&json!({"alg": "ES256", "kid": "x"}), &claims, &[1; 64]),
            "unknown key",
        ),
        (stranger.sign(&json!({"kid": kid}), &claims), "signature"),
        (
            stranger.sign(&json!({"kid": "stranger"}), &claims),
            "unknown key",
        ),
        (
            stranger.sign(&json!({"kid": kid, "jwk": stranger.public_jwk()}), &claims),
            "signature",
        ),
        (
            stranger.sign(
                &json!({"jku": "http://127.0.0.1:1/keys", "kid": "x"}),
                &claims,
            ),
            "unknown key",
        ),
        (
            rig.issuer.mint_with(&json!({"crit": ["exp"]}), &claims),
            "extension",
        ),
        (
            rig.issuer.mint_with(&json!({"typ": "dpop+jwt"}), &claims),
            "not an access token",
        ),
        (signed.to_owned(), "not a signed token"),
        (format!("{signed}."), "signature"),
        (
            format!("{}.{admin_payload}.{}", parts[0], parts[2]),
            "signature",
        ),
        ("opaque".into(), "not a signed token"),
        ("x".repeat(17_000), "longer"),
    ] {
        assert_invalid(&call(&rig, &token).await, why);
    }
    assert_eq!(call(&rig, &good).await.status, 200);
}

#[runtimes::test]
async fn malformed_authorization_headers_are_bad_requests() {
    let rig = rig().await;
    let good = format!("Bearer {}", rig.token("mcp"));
    let body = support::requests::initialize("2025-11-25");
    for headers in [
        &[
            ("Authorization", good.as_str()),
            ("Authorization", "Bearer x"),
        ][..],
        &[("Authorization", "Bearer two words")],
        &[("Authorization", "Bearer \"quoted\"")],
        &[("Authorization", "Bearer ==")],
        &[("Authorization", "Bearer caf\u{e9}")],
    ] {
        let answer = rig.ask("POST", "/mcp", headers, &body).await;
        assert_eq!(answer.status, 400, "{headers:?}");
        assert_eq!(answer.bearer().get("error"), Some("invalid_request"));
    }
}

#[runtimes::test]
async fn token_contents_can_not_inject_headers() {
    let rig = rig().await;
    let evil = "x\r\nX-Injected: yes\", scope=\"admin";
    for name in ["iss", "aud", "sub", "scope"] {
        let mut claims = rig.claims("mcp");
        claims[name] = evil.into();
        let token = rig.issuer.mint_with(&json!({"kid": evil}), &claims);
        let answer = call(&rig, &token).await;
        assert_ne!(answer.status, 200);
        assert!(!answer.head.contains("njected"), "{}", answer.head);
    }
}

#[runtimes::test]
async fn verifier_messages_can_not_inject_headers() {
    let rig = Rig::start(server(), |builder, issuer| {
        builder
            .authorization_server(issuer.issuer())
            .verifier(|token| async move {
                let said = format!("{}\r\nX-Injected: yes\", scope=\"admin", token.expose());
                Err(VerifyError::Invalid(said))
            })
    })
    .await;
    let answer = call(&rig, "token").await;
    assert_eq!(answer.status, 401);
    let challenge = answer.bearer();
    assert_eq!(challenge.get("scope"), Some("mcp"));
    assert!(!answer.head.contains("\nX-Injected"), "{}", answer.head);
}

#[runtimes::test]
async fn tokens_without_the_required_scope_get_403() {
    let rig = rig().await;
    for scope in ["", "files:read", "MCP", "mcp2"] {
        let answer = call(&rig, &rig.token(scope)).await;
        assert_eq!(answer.status, 403, "{scope}");
        let challenge = answer.bearer();
        assert_eq!(challenge.get("error"), Some("insufficient_scope"));
        assert_eq!(challenge.get("scope"), Some("mcp"));
        assert!(challenge.get("resource_metadata").is_some());
    }
}

#[runtimes::test]
async fn the_standalone_server_serves_its_resource_metadata() {
    let rig = rig().await;
    let path = "/.well-known/oauth-protected-resource/mcp";
    // Pages of any origin may read it, under any host name that a proxy uses.
    let page = [("Origin", "https://app.example.com")];
    let answer = rig.ask("GET", path, &page, &Value::Null).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(
        answer.body,
        json!({
            "resource": rig.resource,
            "authorization_servers": [rig.issuer.issuer()],
            "scopes_supported": ["mcp"],
            "bearer_methods_supported": ["header"],
            "dpop_signing_alg_values_supported": ["RS256", "ES256", "PS256", "EdDSA"],
        })
    );
    let preflight = rig.ask("OPTIONS", path, &page, &Value::Null).await;
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-headers"), Some("*"));
    assert_eq!(rig.ask("POST", path, &[], &json!({})).await.status, 405);
    for other in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/other",
    ] {
        assert_eq!(rig.ask("GET", other, &[], &Value::Null).await.status, 404);
    }
}

#[runtimes::test]
async fn a_verifier_callback_replaces_other_token_checks() {
    fn checked(builder: ResourceServerBuilder, issuer: &str) -> ResourceServerBuilder {
        builder
            .authorization_server(issuer)
            .verifier(|token| async move {
                let alice = Caller::new().with_subject("alice");
                match token.expose() {
                    "good" => Ok(alice.with_scopes(["mcp"])),
                    "poor" => Ok(alice),
                    "old" => Ok(alice.with_scopes(["mcp"]).with_expiry(1)),
                    "down" => Err(VerifyError::Unavailable("the database is away".into())),
                    _ => Err(VerifyError::Invalid("nobody has that".into())),
                }
            })
    }
    let rig = Rig::start(server(), |builder, issuer| {
        checked(builder, &issuer.issuer())
    })
    .await;
    let good = call(&rig, "good").await;
    assert_eq!(seen(&good)["auth"]["subject"], "alice");
    assert_eq!(call(&rig, "poor").await.status, 403);
    assert_invalid(&call(&rig, "old").await, "expired");
    assert_invalid(&call(&rig, "bad").await, "nobody has that");
    let down = call(&rig, "down").await;
    assert_eq!(down.status, 503);
    assert!(!down.head.contains("database") && down.challenges().is_empty());
}

#[runtimes::test]
async fn caches_valid_tokens_only_until_they_expire() {
    let rig = rig().await;
    let mut claims = rig.claims("mcp");
    claims["exp"] = (now() - 59).into();
    let token = rig.issuer.mint(&claims);
    // Valid for one more second, with the clock skew: after that, it must not be cached as valid.
    while call(&rig, &token).await.status == 200 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_invalid(&call(&rig, &token).await, "expired");
}
