//! Routes: paths of the author's own at the HTTP server, standalone and mounted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::authorized::{Rig, ask};
use crate::support::connection::{Connection, TEST_TIMEOUT};
use crate::support::requests::{initialize, request};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use mcpline::auth::{Caller, ResourceServer};
use mcpline::server::{InputRequest, InputRequestMethod, PathVariables, Principal, Route};
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, MountPrefix, http};
use mcpline::{Context, Error, Server, Settings};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

async fn pong(_: Request<Bytes>, _: Context) -> Response<&'static str> {
    Response::new("pong")
}

/// Says what it got.
async fn echo(request: Request<Bytes>, ctx: Context) -> Response<String> {
    let variables = request.extensions().get::<PathVariables>();
    let variables: Vec<_> = variables
        .into_iter()
        .flat_map(PathVariables::iter)
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let said = json!({
        "method": request.method().as_str(),
        "uri": request.uri().to_string(),
        "type": request.headers().get("content-type").and_then(|value| value.to_str().ok()),
        "body": String::from_utf8_lossy(request.body()),
        "variables": variables,
        "principal": ctx.http().map(|http| http.principal.clone()),
        "auth": ctx.auth().and_then(|auth| auth.subject().map(str::to_owned)),
        "token": request.headers().contains_key("authorization"),
    });
    let response = Response::builder()
        .status(StatusCode::CREATED)
        .header("content-type", "application/json")
        .header("content-length", "3")
        .header("connection", "upgrade")
        .header("x-own", "1");
    response.body(said.to_string()).expect("a response")
}

fn server() -> Server {
    let both = [Method::POST, Method::PUT];
    Server::new("routes", "1")
        .route(Route::new("/ping"), pong)
        .route(Route::new("/open").with_public(true), pong)
        .route(Route::new("/echo/{first}/{*rest}").with_methods(both), echo)
}

struct Running {
    address: SocketAddr,
    stop: Stop,
    served: JoinHandle<Result<(), Error>>,
}

async fn serve(server: Server, options: HttpOptions) -> Running {
    let http = http(("127.0.0.1", 0), options).await.expect("a free port");
    let (address, stop) = (http.address(), Stop::new());
    let signal = stop.clone();
    let served = tokio::spawn(async move { server.serve_until(http, signal).await });
    Running {
        address,
        stop,
        served,
    }
}

#[runtimes::test]
async fn handlers_get_the_whole_request_and_return_the_whole_response() {
    let running = serve(server(), HttpOptions::default()).await;
    let headers = [("X-Any", "1")];
    let path = "/echo/a%20b/c/d?e=f";
    let answer = ask(running.address, "PUT", path, &headers, &json!({"g": 1})).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(
        answer.body,
        json!({"method": "PUT", "uri": path, "type": "application/json", "body": r#"{"g":1}"#,
               "variables": ["first=a b", "rest=c/d"], "principal": "", "auth": null, "token": false})
    );
    assert_eq!(answer.header("x-own"), Some("1"));
    assert_eq!(
        answer.header("connection"),
        Some("close"),
        "the server's own"
    );
    assert_ne!(answer.header("content-length"), Some("3"));
}

#[runtimes::test]
async fn other_methods_and_paths_are_refused() {
    let running = serve(server(), HttpOptions::default()).await;
    let status = async |method: &str, path: &str| {
        let answer = ask(running.address, method, path, &[], &Value::Null).await;
        (answer.status, answer.header("allow").map(str::to_owned))
    };
    assert_eq!(status("GET", "/ping").await, (200, None));
    let allowed = Some("GET, HEAD".to_owned());
    assert_eq!(status("POST", "/ping").await, (405, allowed));
    let allowed = Some("POST, PUT".to_owned());
    assert_eq!(status("GET", "/echo/a/b").await, (405, allowed));
    for path in ["/ping/", "/pings", "/echo/a", "/"] {
        assert_eq!(status("GET", path).await.0, 404, "{path}");
    }
    for path in [
        "/echo/../b",
        "/echo/a/b/..%2fc",
        "/echo/a//etc",
        "/echo/a%2fb/c",
    ] {
        assert_eq!(status("POST", path).await.0, 400, "{path}");
    }
    // Responses to HEAD have no body, on the same connection.
    let mut connection = Connection::open(running.address).await;
    let head = connection.send("HEAD", "/ping", &[], &Value::Null);
    head.await;
    connection.until(Some("\r\n\r\n")).await;
    assert!(connection.seen.contains("content-length: 4"));
    let get = connection.send("GET", "/ping", &[], &Value::Null);
    get.await;
    connection.until(Some("pong")).await;
    assert_eq!(connection.seen.matches("pong").count(), 1);
}

#[runtimes::test]
async fn a_response_to_head_has_the_length_of_the_response_to_get_or_none() {
    let without_body = async |request: Request<Bytes>, _: Context| {
        let response = Response::builder().header("x-own", "1");
        let response = match request.uri().query() {
            Some(length) => response.header("content-length", length),
            None => response,
        };
        response.body(Bytes::new()).expect("a response")
    };
    let server = server().route(Route::new("/own"), without_body);
    let service = server.http_service(HttpOptions::default());
    let running = serve(server, HttpOptions::default()).await;
    for (path, expected) in [
        ("/ping", Some("4")),
        ("/own?12345", Some("12345")),
        ("/own?12,13", None),
        ("/own", None),
    ] {
        let mut connection = Connection::open(running.address).await;
        connection.send("HEAD", path, &[], &Value::Null).await;
        connection.until(Some("\r\n\r\n")).await;
        let length = connection
            .seen
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        assert_eq!(length, expected, "{path}: {}", connection.seen);
        let mut request: Request<Full<_>> = request(Method::HEAD, &[], Value::Null);
        *request.uri_mut() = path.parse().expect("a path");
        let response = service.handle(request).await;
        let hint = axum::body::HttpBody::size_hint(response.body()).exact();
        let stated = response.headers().get("content-length");
        let stated = stated.and_then(|length| length.to_str().ok()?.parse().ok());
        let expected = expected.and_then(|length| length.parse::<u64>().ok());
        assert_eq!(stated.or(hint), expected, "{path}, mounted");
    }
}

#[runtimes::test]
async fn routes_are_protected_like_the_endpoint_unless_they_are_public() {
    let service = server().http_service(HttpOptions::default());
    let status = async |path: &str, headers: &[(&str, &str)]| {
        let mut request: Request<Full<_>> = request(Method::GET, headers, Value::Null);
        *request.uri_mut() = path.parse().expect("a path");
        service.handle(request).await.status().as_u16()
    };
    for (headers, expected, of_other_method) in [
        ([("host", "evil.example")], 403, 403),
        ([("origin", "https://evil.example")], 403, 403),
        ([("origin", "http://localhost:3000")], 200, 405),
    ] {
        assert_eq!(status("/ping", &headers).await, expected, "{headers:?}");
        let other_method = status("/echo/a/b", &headers).await;
        assert_eq!(other_method, of_other_method, "{headers:?}");
        assert_eq!(status("/open", &headers).await, 200, "{headers:?}");
    }
}

#[runtimes::test]
async fn routes_need_a_token_with_their_scopes_where_there_is_authorization() {
    let scoped = Route::new("/scoped/{a}/{*b}")
        .with_methods([Method::POST])
        .with_scopes(["files:write"]);
    let asked = server().route(scoped, echo).route(
        Route::new("/asks"),
        |_: Request<Bytes>, ctx: Context| async move {
            match ctx.require_scopes(["files:write"]) {
                Ok(()) => Response::new("may"),
                Err(_) => Response::new("may not"),
            }
        },
    );
    let rig = Rig::start(asked, |builder, issuer| builder.issuer(issuer.issuer())).await;
    let taken = Server::new("taken", "1").route(Route::new("/token"), pong);
    let builder = ResourceServer::builder("http://127.0.0.1:9/mcp").issuer(rig.issuer.issuer());
    let mut options = HttpOptions::default();
    options.auth = Some(Arc::new(builder.build().expect("usable options")));
    let http = http(("127.0.0.1", 0), options).await.expect("a free port");
    let error = taken.serve_until(http, Stop::new()).await;
    let error = error.expect_err("the path is taken").to_string();
    assert!(error.contains("`auth`"), "{error}");
    let path = "/scoped/a/b";
    let anonymous = rig.ask("POST", path, &[], &Value::Null).await;
    assert_eq!(anonymous.status, 401, "{anonymous:?}");
    assert!(anonymous.header("www-authenticate").is_some());
    let reader = rig.token("mcp");
    let refused = rig.ask_with(&reader, "POST", path, &Value::Null).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let challenge = refused.header("www-authenticate").expect("a challenge");
    assert!(challenge.contains("files:write"), "{challenge}");
    // Nor is it said what the path has.
    for (method, path, admitted) in [("GET", path, 405), ("POST", "/scoped/a/..", 400)] {
        let anonymous = rig.ask(method, path, &[], &Value::Null).await;
        assert_eq!(anonymous.status, 401, "{method} {path}: {anonymous:?}");
        assert_eq!(anonymous.header("allow"), None, "{method} {path}");
        let refused = rig.ask_with(&reader, method, path, &Value::Null).await;
        assert_eq!(refused.status, admitted, "{method} {path}: {refused:?}");
    }
    let writer = rig.token("mcp files:write");
    let served = rig.ask_with(&writer, "POST", path, &Value::Null).await;
    assert_eq!(served.status, 201, "{served:?}");
    assert_eq!(served.body["auth"], "alice");
    assert_eq!(served.body["token"], false, "handlers cannot pass it on");
    let open = rig.ask("GET", "/open", &[], &Value::Null).await;
    assert_eq!(open.status, 200);
}

#[runtimes::test]
async fn paths_of_the_server_itself_are_refused_and_the_health_check_is_replaced() {
    for (path, expected) in [
        ("/mcp", "`path`"),
        ("/mcp/", "`path`"),
        ("/sse", "`sse_paths`"),
    ] {
        let server = Server::new("taken", "1").route(Route::new(path), pong);
        let http = http(("127.0.0.1", 0), HttpOptions::default());
        let http = http.await.expect("a free port");
        let error = server.serve_until(http, Stop::new()).await.expect_err(path);
        assert!(error.to_string().contains(expected), "{error}");
    }
    let own = Server::new("own", "1")
        .route(Route::new("/health"), pong)
        .route(Route::new("/{*any}").with_public(true), echo);
    let running = serve(own, HttpOptions::default()).await;
    let mut connection = Connection::open(running.address).await;
    let get = connection.send("GET", "/health", &[], &Value::Null);
    get.await;
    connection.until(Some("pong")).await;
    let rest = ask(running.address, "GET", "/anything", &[], &Value::Null).await;
    assert_eq!(rest.body["variables"], json!(["any=anything"]));
    for route in [
        Route::new("/{name}").with_methods([Method::POST]),
        Route::new("/{*any}"),
    ] {
        let other = serve(
            Server::new("other", "1").route(route, pong),
            HttpOptions::default(),
        );
        let other = other.await;
        let mut connection = Connection::open(other.address).await;
        let get = connection.send("GET", "/health", &[], &Value::Null);
        get.await;
        connection.until(Some("\r\n\r\nok")).await;
    }
    let begun = ask(
        running.address,
        "POST",
        "/mcp",
        &[],
        &initialize("2025-11-25"),
    )
    .await;
    assert_eq!(
        begun.status, 200,
        "the endpoint comes before a route for everything"
    );
}

#[runtimes::test]
async fn mounted_servers_serve_routes_below_their_prefix() {
    let service = server().http_service(HttpOptions::default());
    let get = async |path: &str, caller: Option<Caller>| {
        let mut request: Request<Full<_>> = request(Method::POST, &[], Value::Null);
        *request.uri_mut() = path.parse().expect("a path");
        request.extensions_mut().insert(MountPrefix("/api".into()));
        if let Some(caller) = caller {
            request.extensions_mut().insert(Principal("ann".into()));
            request.extensions_mut().insert(caller);
        }
        let response = service.handle(request).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a body");
        let body = serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null);
        (status, body)
    };
    let caller = Caller::new().with_subject("ann");
    let (status, body) = get("/api/echo/a/b", Some(caller)).await;
    assert_eq!(status, 201);
    assert_eq!(body["principal"], "ann");
    assert_eq!(body["auth"], "ann");
    assert_eq!(get("/api/echoes", None).await.0, 404);
}

#[runtimes::test]
async fn failures_are_answered_without_their_reason() {
    let failing = Server::new("failing", "1")
        .route(
            Route::new("/panics"),
            |_: Request<Bytes>, _: Context| async {
                if true {
                    panic!("a secret");
                }
                Response::new("")
            },
        )
        .route(
            Route::new("/informs"),
            |_: Request<Bytes>, _: Context| async {
                let response = Response::builder().status(103);
                response.body("").expect("a response")
            },
        )
        .route(
            Route::new("/asks"),
            |_: Request<Bytes>, ctx: Context| async move {
                let asked = ctx
                    .request_input(InputRequest::new(InputRequestMethod::ListRoots, None))
                    .await;
                let refused = asked.expect_err("there is no client").to_string();
                Response::new(refused)
            },
        )
        .route(
            Route::new("/nothing"),
            |_: Request<Bytes>, _: Context| async {
                let response = Response::builder().status(204);
                response.body("no body").expect("a response")
            },
        );
    let running = serve(failing, HttpOptions::default()).await;
    for path in ["/panics", "/informs"] {
        let mut connection = Connection::open(running.address).await;
        let get = connection.send("GET", path, &[], &Value::Null);
        get.await;
        connection.until(Some("Internal Server Error")).await;
        assert!(connection.seen.starts_with("HTTP/1.1 500"), "{path}");
        assert!(!connection.seen.contains("secret"));
    }
    let mut connection = Connection::open(running.address).await;
    let get = connection.send("GET", "/asks", &[], &Value::Null);
    get.await;
    connection.until(Some("only while a tool call")).await;
    let get = connection.send("GET", "/nothing", &[], &Value::Null);
    get.await;
    connection.until(Some("204 No Content")).await;
    assert!(!connection.seen.contains("no body"));
}

#[runtimes::test]
async fn bodies_are_limited_as_those_of_messages() {
    let mut options = HttpOptions::default();
    options.max_body_bytes = 1_000;
    let running = serve(server(), options).await;
    let long = json!("a".repeat(1_000));
    let answer = ask(running.address, "POST", "/echo/a/b", &[], &long).await;
    assert_eq!(answer.status, 413, "{answer:?}");
    let short = json!("a".repeat(900));
    let answer = ask(running.address, "POST", "/echo/a/b", &[], &short).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}

/// A server with a route that waits, and notes when its handler is dropped before its end.
fn waiting(began: &Arc<Notify>, go_on: &Arc<Notify>, dropped: &Arc<AtomicBool>) -> Server {
    struct Unfinished(Arc<AtomicBool>, bool);
    impl Drop for Unfinished {
        fn drop(&mut self) {
            self.0.store(!self.1, Ordering::SeqCst);
        }
    }
    let mut settings = Settings::default();
    settings.shutdown_timeout = TEST_TIMEOUT;
    settings.max_calls = 4;
    let (began, go_on, dropped) = (began.clone(), go_on.clone(), dropped.clone());
    let builder = Server::builder("waiting", "1").settings(settings);
    builder.build().expect("a server").route(
        Route::new("/waits"),
        move |_: Request<Bytes>, _: Context| {
            let (began, go_on) = (began.clone(), go_on.clone());
            let dropped = dropped.clone();
            async move {
                let mut unfinished = Unfinished(dropped, false);
                began.notify_one();
                go_on.notified().await;
                unfinished.1 = true;
                Response::new("finished")
            }
        },
    )
}

#[runtimes::test]
async fn clients_that_leave_cancel_the_handler() {
    let (began, go_on) = (Arc::<Notify>::default(), Arc::<Notify>::default());
    let dropped = Arc::<AtomicBool>::default();
    let running = serve(waiting(&began, &go_on, &dropped), HttpOptions::default()).await;
    let mut connection = Connection::open(running.address).await;
    let get = connection.send("GET", "/waits", &[], &Value::Null);
    get.await;
    began.notified().await;
    drop(connection);
    while !dropped.load(Ordering::SeqCst) {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    running.stop.stop();
    running.served.await.expect("no panic").expect("in order");
}

#[runtimes::test]
async fn a_shutdown_waits_for_requests_to_routes() {
    let (began, go_on) = (Arc::<Notify>::default(), Arc::<Notify>::default());
    let dropped = Arc::<AtomicBool>::default();
    let running = serve(waiting(&began, &go_on, &dropped), HttpOptions::default()).await;
    let mut connection = Connection::open(running.address).await;
    let get = connection.send("GET", "/waits", &[], &Value::Null);
    get.await;
    began.notified().await;
    running.stop.stop();
    // No longer accepts connections: the shutdown has begun.
    while tokio::net::TcpStream::connect(running.address)
        .await
        .is_ok()
    {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    go_on.notify_one();
    connection.until(Some("finished")).await;
    running.served.await.expect("no panic").expect("in order");
    assert!(!dropped.load(Ordering::SeqCst));
}

#[runtimes::test]
async fn requests_that_outlast_the_grace_period_are_answered_with_503() {
    let (began, go_on) = (Arc::<Notify>::default(), Arc::<Notify>::default());
    let dropped = Arc::<AtomicBool>::default();
    let server = waiting(&began, &go_on, &dropped);
    let service = server.http_service(HttpOptions::default());
    let mut request: Request<Full<_>> = request(Method::GET, &[], Value::Null);
    *request.uri_mut() = "/waits".parse().expect("a path");
    let handling = tokio::spawn({
        let service = service.clone();
        async move { service.handle(request).await.status() }
    });
    began.notified().await;
    service.close();
    assert_eq!(
        handling.await.expect("no panic"),
        StatusCode::SERVICE_UNAVAILABLE
    );
    while !dropped.load(Ordering::SeqCst) {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[runtimes::test]
async fn a_client_has_as_many_requests_to_routes_as_calls() {
    let (began, go_on) = (Arc::<Notify>::default(), Arc::<Notify>::default());
    let dropped = Arc::<AtomicBool>::default();
    let server = waiting(&began, &go_on, &dropped);
    let most = server.settings().max_calls;
    let service = server.http_service(HttpOptions::default());
    let mut open = Vec::new();
    let get = || {
        let mut request: Request<Full<_>> = request(Method::GET, &[], Value::Null);
        *request.uri_mut() = "/waits".parse().expect("a path");
        let service = service.clone();
        tokio::spawn(async move { service.handle(request).await })
    };
    let mut refused: Option<HeaderMap> = None;
    for _ in 0..=most {
        let mut handling = get();
        tokio::select! {
            () = began.notified() => open.push(handling),
            response = &mut handling => {
                let response = response.expect("no panic");
                assert!(matches!(response.status().as_u16(), 429 | 503));
                refused = Some(response.headers().clone());
                break;
            }
        }
    }
    let refused = refused.expect("one was refused");
    assert!(refused.contains_key("retry-after"));
    for _ in &open {
        go_on.notify_one();
        tokio::task::yield_now().await;
    }
}
