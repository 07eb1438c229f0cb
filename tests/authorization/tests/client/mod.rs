//! A minimal client of the server.

#![allow(dead_code)] // Not every test file uses everything.

use authorization_server::{AuthorizationServer, Parameters};
use axum::body::Body;
use axum::http::{HeaderMap, Request};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

pub(crate) const REDIRECT: &str = "http://127.0.0.1:1/callback";
pub(crate) const RESOURCE: &str = "http://127.0.0.1:1/mcp";
const VERIFIER: &str = "a-verifier-of-which-nobody-needs-to-guess-any-part";

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

pub(crate) async fn send(request: Request<Body>) -> Answer {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await.unwrap();
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    }
}

pub(crate) async fn get(url: &str) -> Answer {
    send(Request::get(url).body(Body::empty()).unwrap()).await
}

pub(crate) async fn post_json(url: &str, body: &Value) -> Answer {
    let request = Request::post(url).header("Content-Type", "application/json");
    send(request.body(Body::from(body.to_string())).unwrap()).await
}

pub(crate) async fn post_form(
    url: &str,
    form: &[(&str, &str)],
    basic: Option<(&str, &str)>,
) -> Answer {
    send(form_request(url, form, basic)).await
}

pub(crate) fn form_request(
    url: &str,
    form: &[(&str, &str)],
    basic: Option<(&str, &str)>,
) -> Request<Body> {
    let form = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    let mut request =
        Request::post(url).header("Content-Type", "application/x-www-form-urlencoded");
    if let Some((id, secret)) = basic {
        let credentials = STANDARD.encode(format!("{id}:{secret}"));
        request = request.header("Authorization", format!("Basic {credentials}"));
    }
    request.body(Body::from(form)).unwrap()
}

pub(crate) fn query_of(url: &str) -> Parameters {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    Parameters(
        form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect(),
    )
}

/// Registers a public client and returns its id.
pub(crate) async fn register(server: &AuthorizationServer) -> String {
    let about = json!({"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none",
                       "application_type": "native", "grant_types": ["authorization_code", "refresh_token"]});
    let answer = post_json(&server.url("/register"), &about).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    answer.json()["client_id"].as_str().unwrap().to_owned()
}

/// Replaces the pairs that are in `changes`, or removes them if their value is empty.
fn changed<'a>(
    pairs: &[(&'a str, &'a str)],
    changes: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let kept = pairs
        .iter()
        .filter(|(name, _)| !changes.iter().any(|(changed, _)| changed == name));
    kept.chain(changes.iter().filter(|(_, value)| !value.is_empty()))
        .copied()
        .collect()
}

pub(crate) fn authorization_url(
    server: &AuthorizationServer,
    id: &str,
    changes: &[(&str, &str)],
) -> String {
    let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, VERIFIER.as_bytes()));
    let pairs = changed(
        &[
            ("response_type", "code"),
            ("client_id", id),
            ("redirect_uri", REDIRECT),
            ("state", "some state"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", RESOURCE),
        ],
        changes,
    );
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish();
    format!("{}?{query}", server.url("/authorize"))
}

/// Returns the parameters of the redirect to the client.
pub(crate) async fn authorize(
    server: &AuthorizationServer,
    id: &str,
    changes: &[(&str, &str)],
) -> Parameters {
    let answer = get(&authorization_url(server, id, changes)).await;
    let location = answer
        .header("location")
        .unwrap_or_else(|| panic!("{}", answer.body));
    assert!(location.starts_with(REDIRECT));
    query_of(location)
}

pub(crate) async fn redeem(server: &AuthorizationServer, id: &str, code: &str) -> Answer {
    redeem_with(server, id, code, &[]).await
}

pub(crate) async fn redeem_with(
    server: &AuthorizationServer,
    id: &str,
    code: &str,
    changes: &[(&str, &str)],
) -> Answer {
    post_form(&server.url("/token"), &redemption(id, code, changes), None).await
}

/// The form of a token request for a code.
pub(crate) fn redemption<'a>(
    id: &'a str,
    code: &'a str,
    changes: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let pairs = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("code_verifier", VERIFIER),
        ("redirect_uri", REDIRECT),
        ("client_id", id),
        ("resource", RESOURCE),
    ];
    changed(&pairs, changes)
}

pub(crate) async fn refresh(server: &AuthorizationServer, id: &str, token: &Value) -> Answer {
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", token.as_str().unwrap()),
        ("client_id", id),
        ("resource", RESOURCE),
    ];
    post_form(&server.url("/token"), &form, None).await
}

/// Registers a client and returns its id and its tokens.
pub(crate) async fn tokens(
    server: &AuthorizationServer,
    changes: &[(&str, &str)],
) -> (String, Value) {
    let id = register(server).await;
    let back = authorize(server, &id, changes).await;
    let given = redeem(server, &id, back.get("code").unwrap()).await;
    assert_eq!(given.status, 200, "{}", given.body);
    (id, given.json())
}
