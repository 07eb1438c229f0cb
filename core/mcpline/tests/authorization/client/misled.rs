//! Clients that a server tries to mislead: they refuse what it sends, and their secrets stay with them.

use std::sync::{Arc, Mutex};

use authorization_server::{AuthorizationServer, Config, Endpoint, Forced, ResourceConfig};
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use mcpline::auth::{Auth, FileStore, MemoryStore};
use mcpline::client::{Address, Client, HttpSettings};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::world::{World, call, follow, refusal};

/// An HTTP server that records requests and answers all alike.
struct Listener {
    origin: String,
    requests: Arc<Mutex<Vec<HeaderMap>>>,
}

impl Listener {
    async fn start(status: u16, headers: &[(&str, String)], body: &str) -> Self {
        let requests: Arc<Mutex<Vec<HeaderMap>>> = Arc::default();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("bound"));
        let status = StatusCode::from_u16(status).expect("a status");
        let mut answered = HeaderMap::new();
        for (name, value) in headers {
            let name: header::HeaderName = name.parse().expect("a name");
            answered.insert(name, value.parse().expect("a value"));
        }
        let (recorded, body) = (requests.clone(), body.to_owned());
        let router = Router::new().fallback(async move |request: Request| {
            recorded
                .lock()
                .expect("unpoisoned")
                .push(request.headers().clone());
            (status, answered.clone(), body.clone()).into_response()
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { origin, requests }
    }

    fn requests(&self) -> Vec<HeaderMap> {
        self.requests.lock().expect("unpoisoned").clone()
    }
}

fn members(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

fn forced(status: u16, body: impl ToString) -> Forced {
    Forced {
        status,
        body: body.to_string(),
        ..Forced::default()
    }
}

fn redirecting(location: &str) -> Forced {
    Forced {
        status: 307,
        headers: [("location".to_owned(), location.to_owned())].into(),
        ..Forced::default()
    }
}

/// Connects and returns the code of the error.
async fn code(world: &World) -> &'static str {
    refusal(world.connect(world.oauth().build()).await).code()
}

#[runtimes::test]
async fn does_not_send_a_code_of_an_honest_issuer_to_a_hostile_one() {
    // The server trusts a hostile authorization server, which sends its users to an honest one.
    let honest = AuthorizationServer::start(Config::default())
        .await
        .expect("a server");
    let world = World::exemplary().await;
    let mixed = json!({"authorization_endpoint": honest.url("/authorize"), "registration_endpoint": honest.url("/register")});
    world
        .issuer
        .change(|config| config.metadata = members(mixed));
    assert_eq!(code(&world).await, "authorization_response_mismatch");
    assert_eq!(honest.requests().count(Endpoint::Authorization), 1);
    assert_eq!(world.issuer.requests().count(Endpoint::Token), 0);
}

#[runtimes::test]
async fn rejects_malformed_token_responses() {
    let world = World::exemplary().await;
    for answer in [
        json!({"access_token": "good\r\nX-Injected: 1", "token_type": "Bearer"}),
        json!({"access_token": "g\u{f6}\u{f6}d", "token_type": "Bearer"}),
        json!({"access_token": "", "token_type": "Bearer"}),
        json!({"access_token": 1, "token_type": "Bearer"}),
        json!({"access_token": "x".repeat(200_000), "token_type": "Bearer"}),
        json!({"access_token": "good", "token_type": "mac"}),
        json!({"access_token": "good"}),
        json!({"token_type": "Bearer"}),
        json!(["access_token"]),
        json!("<html>"),
    ] {
        world.issuer.force(Endpoint::Token, forced(200, &answer));
        assert_eq!(code(&world).await, "invalid_response", "{answer:.80}");
    }
    let shown = world
        .resource
        .requests()
        .into_iter()
        .filter(|request| request.authorization.is_some());
    assert_eq!(shown.count(), 0);
}

#[runtimes::test]
async fn survives_senseless_token_lifetimes() {
    let world = World::exemplary().await;
    for expires in [
        json!(-1),
        json!(0),
        json!(u64::MAX),
        json!(1e300),
        json!("soon"),
        json!(null),
    ] {
        let token = world.issuer.issue("a client", "", &world.resource.url());
        let answer = json!({"access_token": token, "token_type": "bearer", "expires_in": expires});
        world.issuer.force(Endpoint::Token, forced(200, &answer));
        // The client may accept such a response or not, but nothing may hang, loop or overflow.
        if let Ok(client) = world.connect(world.oauth().build()).await {
            client.close().await;
        }
    }
    assert!(world.sign_ins() <= 12, "{}", world.sign_ins());
}

#[runtimes::test]
async fn limits_the_size_of_oauth_responses() {
    let body = format!("{{\"access_token\": \"{}\"}}", "x".repeat(4 * 1024 * 1024));
    for endpoint in [Endpoint::Token, Endpoint::Registration] {
        let world = World::exemplary().await;
        world.issuer.force(endpoint, forced(200, &body));
        assert_eq!(code(&world).await, "fetch_failed", "{endpoint:?}");
    }
}

#[runtimes::test]
async fn does_not_follow_oauth_redirects_to_another_host() {
    let elsewhere = Listener::start(200, &[], "{}").await;
    for endpoint in [Endpoint::Token, Endpoint::Registration] {
        let world = World::exemplary().await;
        world.issuer.force(
            endpoint,
            redirecting(&format!("{}/elsewhere", elsewhere.origin)),
        );
        let code = code(&world).await;
        assert!(
            matches!(
                code,
                "fetch_failed"
                    | "invalid_response"
                    | "authorization_server_error"
                    | "not_registered"
            ),
            "{code}"
        );
    }
    assert!(elsewhere.requests().is_empty());
}

#[runtimes::test]
async fn opens_only_web_urls_for_sign_in() {
    for endpoint in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "//127.0.0.1/",
        "",
        "-flag",
    ] {
        let world = World::exemplary().await;
        world.issuer.change(|config| {
            config.metadata = members(json!({"authorization_endpoint": endpoint}))
        });
        let code = code(&world).await;
        assert!(
            matches!(code, "invalid_url" | "insecure_url" | "invalid_response"),
            "{endpoint}: {code}"
        );
        assert_eq!(world.sign_ins(), 0, "{endpoint}");
    }
}

#[runtimes::test]
async fn challenges_can_not_point_to_internal_addresses() {
    for url in [
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/metadata",
        "http://[fe80::1]/metadata",
        "http://metadata.internal/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
    ] {
        let config = ResourceConfig {
            names_metadata: Some(url.into()),
            ..ResourceConfig::default()
        };
        let world = World::start(Config::default(), config).await;
        let error = refusal(world.connect(world.oauth().build()).await);
        assert!(
            matches!(
                error.code(),
                "insecure_url" | "invalid_url" | "fetch_failed"
            ),
            "{url}: {error}"
        );
        assert_eq!(world.sign_ins(), 0);
    }
}

#[runtimes::test]
async fn rejects_resources_that_only_resemble_the_server() {
    for change in [
        |url: &str, _: &str| format!("{url}-evil"),
        |url: &str, _: &str| url.trim_end_matches('p').to_owned(),
        |_: &str, origin: &str| format!("{origin}.evil.example/mcp"),
        |_: &str, origin: &str| format!("{}@evil.example/mcp", origin),
        |_: &str, origin: &str| format!("{origin}1/mcp"),
        |_: &str, origin: &str| format!("{origin}/other"),
        |url: &str, _: &str| format!("{url}#fragment"),
        |url: &str, _: &str| url.replace("http:", "https:"),
    ] {
        let world = World::exemplary().await;
        let resource = change(&world.resource.url(), world.resource.origin());
        world
            .resource
            .change(|config| config.metadata = members(json!({"resource": resource})));
        let error = refusal(world.connect(world.oauth().build()).await);
        assert!(
            matches!(
                error.code(),
                "resource_mismatch" | "invalid_url" | "invalid_response"
            ),
            "{resource}: {error}"
        );
        assert_eq!(world.sign_ins(), 0, "{resource}");
    }
}

#[runtimes::test]
async fn redirects_do_not_carry_tokens_to_another_server() {
    let elsewhere =
        Listener::start(200, &[("content-type", "application/json".into())], "{}").await;
    for status in [301, 302, 303, 307, 308] {
        let location = ("location", format!("{}/mcp", elsewhere.origin));
        let server = Listener::start(status, &[location], "").await;
        let mut settings = HttpSettings::default();
        settings.auth = Some(Auth::bearer("a secret"));
        let url = format!("{}/mcp", server.origin);
        let _ = Client::connect(Address::Url(url, settings)).await;
        assert!(
            server
                .requests()
                .iter()
                .any(|headers| headers.contains_key("authorization")),
            "{status}"
        );
    }
    let carried = elsewhere
        .requests()
        .into_iter()
        .filter(|headers| headers.contains_key("authorization"));
    assert_eq!(carried.count(), 0);
}

#[runtimes::test]
async fn tokens_of_one_server_are_not_sent_to_another() {
    let world = World::exemplary().await;
    let oauth = world.oauth().store(MemoryStore::default()).build();
    let client = world.connect(oauth.clone()).await.expect("connected");
    let other = Listener::start(500, &[], "").await;
    let mut settings = HttpSettings::default();
    settings.auth = Some(oauth.into());
    let _ = Client::connect(Address::Url(format!("{}/mcp", other.origin), settings)).await;
    assert!(!other.requests().is_empty());
    assert!(
        other
            .requests()
            .iter()
            .all(|headers| !headers.contains_key("authorization"))
    );
    client.close().await;
}

#[runtimes::test]
async fn sanitizes_server_text_in_errors() {
    let world = World::exemplary().await;
    let said = format!("\u{1b}[2J\r\nAll is well.\u{202e}{}", "x".repeat(10_000));
    let answer = json!({"error": "invalid_grant", "error_description": said});
    world.issuer.force(Endpoint::Token, forced(400, &answer));
    let error = refusal(world.connect(world.oauth().build()).await).to_string();
    assert!(error.contains("invalid_grant"), "{error}");
    assert!(
        !error
            .chars()
            .any(|char| char.is_control() || char == '\u{202e}'),
        "{error:?}"
    );
    assert!(error.len() < 2_000, "{}", error.len());
}

#[runtimes::test]
async fn secrets_appear_in_no_error_and_no_debug_output() {
    let world = World::exemplary().await;
    let secrets: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = secrets.clone();
    let oauth = world.oauth_with(move |url| {
        let seen = seen.clone();
        async move {
            let location = follow(&url).await;
            let code = location
                .split("code=")
                .nth(1)
                .and_then(|rest| rest.split('&').next());
            seen.lock()
                .expect("unpoisoned")
                .push(code.unwrap_or_default().to_owned());
            Ok(location)
        }
    });
    let oauth = oauth.build();
    world
        .issuer
        .force(Endpoint::Token, forced(400, r#"{"error":"invalid_grant"}"#));
    let error = refusal(world.connect(oauth.clone()).await);
    let verifier = world.issuer.requests();
    let verifier = verifier
        .of(Endpoint::Token)
        .next()
        .and_then(|request| request.parameter("code_verifier"));
    secrets
        .lock()
        .expect("unpoisoned")
        .push(verifier.expect("a verifier").to_owned());
    let mut settings = HttpSettings::default();
    settings.auth = Some(oauth.into());
    let shown = format!(
        "{error} {error:?} {settings:?} {:?}",
        Auth::bearer("wonderland")
    );
    for secret in secrets.lock().expect("unpoisoned").iter() {
        assert!(secret.len() > 20 && !shown.contains(secret), "{shown}");
    }
    assert!(!shown.contains("wonderland"), "{shown}");
}

#[runtimes::test]
async fn signs_in_again_if_the_store_is_corrupted() {
    let test = std::thread::current().id();
    let folder_name = format!("mcpline-misled-{}-{test:?}", std::process::id());
    let folder = std::env::temp_dir().join(folder_name);
    let world = World::exemplary().await;
    let store = FileStore::new(&folder);
    let client = world
        .connect(world.oauth().store(store.clone()).build())
        .await
        .expect("connected");
    client.close().await;
    for file in std::fs::read_dir(&folder).expect("a folder") {
        let file = file.expect("an entry").path();
        if file.is_file() {
            std::fs::write(&file, b"{\"nonsense\": [").expect("written");
        }
    }
    let client = world
        .connect(world.oauth().store(store).build())
        .await
        .expect("connected");
    assert_eq!(call(&client, "look").await.expect("a result"), "seen");
    client.close().await;
    assert_eq!(world.sign_ins(), 2);
    std::fs::remove_dir_all(&folder).expect("removed");
}
