//! HTTP clients of a program's own, and computed credentials, of imported HTTP APIs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use mcpline::client::{Client, RequestOptions};
use mcpline::openapi::{
    ApiHttpClient, BoxError, Credential, HttpResponseFuture, ImportAs, OpenApi, ResponseBody,
};
use mcpline::protocol::vocabulary::CallToolResult;
use mcpline::server::{MountOptions, Settings};
use mcpline::{Context, ErrorKind, HandlerError, Server};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

/// A document with a public operation, and two that need a token.
fn pets() -> Value {
    let responses = json!({"200": {"description": ""}});
    let body = json!({"content": {"application/json": {"schema": {
        "type": "object", "properties": {"name": {"type": "string"}},
    }}}});
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Pets", "version": "1"},
        "security": [{"token": []}],
        "components": {"securitySchemes": {
            "token": {"type": "http", "scheme": "bearer"},
            "login": {"type": "http", "scheme": "basic"},
            "mutual": {"type": "mutualTLS"},
        }},
        "paths": {
            "/pets/{id}": {
                "parameters": [
                    {"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}},
                    {"name": "X-Tenant", "in": "header", "schema": {"type": "string"}},
                ],
                "get": {"operationId": "getPet", "responses": responses},
                "put": {"operationId": "putPet", "requestBody": body, "responses": responses},
            },
            "/health": {"get": {"operationId": "health", "security": [], "responses": responses}},
        },
    })
}

fn open_api() -> OpenApi {
    OpenApi::from_json(pets().to_string().as_bytes())
        .expect("a document")
        .with_base_url("https://u:p@api.test/v1/")
}

async fn client_of(server: &Server) -> Client {
    Client::builder("test", "1")
        .connect(server)
        .await
        .expect("a client")
}

async fn client_with(api: OpenApi) -> Client {
    let server = Server::new("pets", "1");
    server.add(api).expect("operations");
    client_of(&server).await
}

async fn call(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    let called = client.call_tool(tool, arguments);
    called.await.expect("a result")
}

async fn failure(client: &Client, tool: &str, arguments: Value) -> String {
    let result = call(client, tool, arguments).await;
    assert_eq!(result.is_error, Some(true), "{result:?}");
    result.text()
}

fn usage(server: &Server, api: OpenApi) -> String {
    let error = server.add(api).expect_err("it is refused");
    assert_eq!(error.kind(), ErrorKind::Usage);
    error.to_string()
}

/// Answers with the request, as JSON.
async fn echo(request: Request<Bytes>) -> Result<Response<ResponseBody>, BoxError> {
    let header = |name: &str| {
        let value = request.headers().get(name)?;
        Some(value.to_str().expect("ASCII").to_owned())
    };
    let names: Vec<_> = request.headers().keys().map(|name| name.as_str()).collect();
    let echoed = json!({
        "method": request.method().as_str(),
        "url": request.uri().to_string(),
        "names": names,
        "authorization": header("authorization"),
        "body": String::from_utf8_lossy(request.body()),
        "called": request.extensions().get::<Context>().is_some(),
    });
    let mut response = Response::new(ResponseBody::from(echoed.to_string()));
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert("content-type", json);
    Ok(response)
}

#[runtimes::test]
async fn a_client_of_the_program_sends_the_requests() {
    let client = client_with(
        open_api()
            .with_header("X-Trace", "1")
            .with_http_client(echo),
    )
    .await;
    let result = call(&client, "putPet", json!({"id": 7, "name": "Rex"})).await;
    let mut echoed = result.structured_content.expect("JSON");
    let mut names: Vec<String> = serde_json::from_value(echoed["names"].take()).expect("names");
    names.sort();
    assert_eq!(
        names,
        ["accept", "authorization", "content-type", "x-trace"]
    );
    assert_eq!(
        echoed,
        json!({
            "method": "PUT",
            "url": "https://api.test/v1/pets/7",
            "names": null,
            "authorization": "Basic dTpw",
            "body": r#"{"name":"Rex"}"#,
            "called": true,
        })
    );
}

struct WithTenant;

impl ApiHttpClient for WithTenant {
    fn send(&self, request: Request<Bytes>) -> HttpResponseFuture<'_> {
        Box::pin(echo(request))
    }

    fn header_names(&self) -> Vec<String> {
        vec!["x-tenant".to_owned()]
    }
}

#[runtimes::test]
async fn headers_of_the_client_are_no_arguments() {
    for (api, expected) in [
        (open_api().with_http_client(WithTenant), false),
        (open_api().with_http_client(echo), true),
    ] {
        let client = client_with(api).await;
        let tools = client.list_tools().await.expect("tools");
        let tool = tools.iter().find(|tool| tool.name == "getPet");
        let properties = &tool.expect("a tool").input_schema["properties"];
        assert_eq!(properties.get("X-Tenant").is_some(), expected);
    }
}

#[runtimes::test]
async fn a_resource_of_a_mounted_server_is_read_with_the_client() {
    let mut document = pets();
    document["paths"]["/pets/{id}"]["parameters"]
        .as_array_mut()
        .expect("parameters")
        .truncate(1);
    let api = OpenApi::from_json(document.to_string().as_bytes())
        .expect("a document")
        .with_base_url("https://api.test")
        .with_http_client(async |request: Request<Bytes>| {
            let mut response = Response::new(ResponseBody::from(request.uri().path().to_owned()));
            if request.uri().path().ends_with("/2") {
                *response.status_mut() = StatusCode::NOT_FOUND;
            }
            Ok::<_, BoxError>(response)
        })
        .select(|operation| match operation.id.as_deref() {
            Some("getPet") => ImportAs::Resource,
            _ => ImportAs::Nothing,
        });
    let inner = Server::new("pets", "1");
    inner.add(api).expect("operations");
    let outer = Server::new("all", "1");
    outer
        .mount(&inner, MountOptions::default().with_prefix("v1"))
        .expect("a mount");
    let client = client_of(&outer).await;
    let read = client.read_resource("api://v1/pets/1").await;
    let read = format!("{:?}", read.expect("a resource"));
    assert!(read.contains("/pets/1"), "{read}");
    let missing = client.read_resource("api://v1/pets/2").await;
    let missing = missing.expect_err("no resource").to_string();
    assert!(missing.contains("not found"), "{missing}");
}

/// A body of pieces that counts how many were taken, and fails after the last one.
struct Pieces {
    left: usize,
    taken: Arc<AtomicUsize>,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
        if self.left == 0 {
            return std::task::Poll::Ready(Some(Err("the cable s3cret was cut".into())));
        }
        self.left -= 1;
        self.taken.fetch_add(1, Ordering::Relaxed);
        let piece = Bytes::from(vec![b'x'; 1000]);
        std::task::Poll::Ready(Some(Ok(http_body::Frame::data(piece))))
    }
}

#[runtimes::test]
async fn a_body_is_read_no_further_than_its_limit() {
    for (status, pieces, expected, read) in [
        (
            200,
            100,
            "longer than 10000 bytes (`max_response_bytes`)",
            11,
        ),
        (200, 5, "HTTP 200, but the response broke off", 5),
        (500, 100, "HTTP 500", 5),
        (500, 2, "HTTP 500", 2),
    ] {
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = taken.clone();
        let api = open_api()
            .with_settings(|settings| settings.max_response_bytes = 10_000)
            .with_http_client(move |_: Request<Bytes>| {
                let taken = counted.clone();
                let body = ResponseBody::new(Pieces {
                    left: pieces,
                    taken,
                });
                async move {
                    let mut response = Response::new(body);
                    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
                    Ok::<_, BoxError>(response)
                }
            });
        let client = client_with(api).await;
        let failed = failure(&client, "health", json!({})).await;
        assert!(failed.contains(expected), "{failed}");
        assert!(!failed.contains("s3cret"), "{failed}");
        assert_eq!(taken.load(Ordering::Relaxed), read, "{expected}");
    }
}

#[runtimes::test]
async fn encoded_bodies_are_refused_and_redirects_not_followed() {
    let api = open_api().with_http_client(async |request: Request<Bytes>| {
        let response = match request.uri().path() {
            "/v1/health" => Response::builder().header("content-encoding", "br"),
            _ => Response::builder()
                .status(302)
                .header("location", "https://other.test/?s3cret"),
        };
        Ok::<_, BoxError>(response.body(ResponseBody::from("x"))?)
    });
    let client = client_with(api).await;
    let encoded = failure(&client, "health", json!({})).await;
    assert!(encoded.contains(r#"the encoding "br""#), "{encoded}");
    let redirected = failure(&client, "getPet", json!({"id": 1})).await;
    assert!(redirected.contains("https://other.test/"), "{redirected}");
    assert!(!redirected.contains("s3cret"), "{redirected}");
}

#[derive(Debug, thiserror::Error)]
#[error("s3cret")]
struct Secret;

#[runtimes::test]
async fn errors_of_the_client_are_sent_in_debug_mode_only() {
    for is_debugged in [false, true] {
        let mut settings = Settings::default();
        settings.debug = Some(is_debugged);
        let server = Server::builder("pets", "1").settings(settings);
        let server = server.build().expect("a server");
        let api = open_api().with_http_client(async |request: Request<Bytes>| {
            let error: BoxError = match request.uri().path() {
                "/v1/health" => HandlerError::Tool("No pets today".to_owned()).into(),
                _ => Secret.into(),
            };
            Err::<Response<ResponseBody>, _>(error)
        });
        server.add(api).expect("operations");
        let client = client_of(&server).await;
        let message = "The API gave no response: the HTTP client failed";
        let expected = match is_debugged {
            true => format!("{message}: s3cret"),
            false => message.to_owned(),
        };
        assert_eq!(failure(&client, "getPet", json!({"id": 1})).await, expected);
        let for_model = failure(&client, "health", json!({})).await;
        assert_eq!(for_model, "No pets today");
    }
}

/// Tells a channel when it is dropped.
struct OnDrop(mpsc::UnboundedSender<()>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        // The test may have failed.
        let _ = self.0.send(());
    }
}

#[runtimes::test]
async fn a_request_is_dropped_when_it_takes_too_long_or_its_call_is_cancelled() {
    for timeout in [Duration::from_millis(20), Duration::MAX] {
        let (sender, mut dropped) = mpsc::unbounded_channel();
        let begun = Arc::new(Notify::new());
        let begins = begun.clone();
        let api = open_api()
            .with_settings(|settings| settings.timeout = timeout)
            .with_http_client(move |_: Request<Bytes>| {
                let on_drop = OnDrop(sender.clone());
                let begins = begins.clone();
                async move {
                    let _on_drop = on_drop;
                    begins.notify_one();
                    std::future::pending().await
                }
            });
        let client = client_with(api).await;
        if timeout == Duration::MAX {
            let options = RequestOptions::default();
            let pending = client.call_tool_with("health", json!({}), &options);
            tokio::select! {
                _ = pending => panic!("there is no response"),
                () = begun.notified() => {}
            }
        } else {
            let failed = failure(&client, "health", json!({})).await;
            assert!(failed.contains("within 0.02 s (`timeout`)"), "{failed}");
        }
        dropped.recv().await.expect("the request is dropped");
    }
}

/// The header `Authorization` of an echoed request.
fn authorization(result: &CallToolResult) -> Option<&str> {
    result.structured_content.as_ref()?["authorization"].as_str()
}

#[runtimes::test]
async fn credentials_are_provided_for_each_request_that_needs_them() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let api = OpenApi::from_json(pets().to_string().as_bytes())
        .expect("a document")
        .with_base_url("https://api.test")
        .with_http_client(echo)
        .with_credential("token", Credential::Secret("fixed".to_owned()))
        .with_credential_provider("token", move |context: Context| {
            let number = counted.fetch_add(1, Ordering::Relaxed);
            assert!(context.auth().is_none());
            async move {
                tokio::task::yield_now().await;
                Ok::<_, BoxError>(Credential::Secret(number.to_string()))
            }
        });
    let client = client_with(api).await;
    let mut sent = Vec::new();
    for (tool, arguments) in [
        ("getPet", json!({"id": 1})),
        ("health", json!({})),
        ("putPet", json!({"id": 1})),
    ] {
        let result = call(&client, tool, arguments).await;
        sent.push(authorization(&result).map(str::to_owned));
    }
    let expected = [
        Some("Bearer 0".to_owned()),
        None,
        Some("Bearer 1".to_owned()),
    ];
    assert_eq!(sent, expected);
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

#[runtimes::test]
async fn a_request_without_its_credential_is_not_sent() {
    let message = r#"The credential "token" for the API could not be obtained"#;
    let basic = || Credential::Basic {
        username: "ada".to_owned(),
        password: "s3cret".to_owned(),
    };
    type Provided = Box<dyn Fn() -> Result<Credential, BoxError> + Send + Sync>;
    let cases: [(Provided, &str); 5] = [
        (Box::new(|| Err(Secret.into())), message),
        (Box::new(move || Ok(basic())), message),
        (Box::new(|| Ok(Credential::Secret(String::new()))), message),
        (
            Box::new(|| Ok(Credential::Secret("a\r\ns3cret".to_owned()))),
            message,
        ),
        (
            Box::new(|| Err(HandlerError::Tool("Sign in first".to_owned()).into())),
            "Sign in first",
        ),
    ];
    for (provide, expected) in cases {
        let requests = Arc::new(Mutex::new(0));
        let counted = requests.clone();
        let api = open_api()
            .with_http_client(move |request: Request<Bytes>| {
                *counted.lock().expect("no panic") += 1;
                echo(request)
            })
            .with_credential_provider("token", move |_: Context| {
                let provided = provide();
                async move { provided }
            });
        let client = client_with(api).await;
        let failed = failure(&client, "getPet", json!({"id": 1})).await;
        assert_eq!(failed, expected);
        assert_eq!(*requests.lock().expect("no panic"), 0);
    }
}

#[runtimes::test]
async fn a_credential_that_takes_too_long_is_given_up() {
    let (sender, mut dropped) = mpsc::unbounded_channel();
    let api = open_api()
        .with_settings(|settings| settings.timeout = Duration::from_millis(20))
        .with_credential_provider("token", move |_: Context| {
            let on_drop = OnDrop(sender.clone());
            async move {
                let _on_drop = on_drop;
                std::future::pending().await
            }
        });
    let client = client_with(api).await;
    let failed = failure(&client, "getPet", json!({"id": 1})).await;
    let expected =
        r#"The credential "token" for the API could not be obtained in time (`timeout`)"#;
    assert_eq!(failed, expected);
    dropped.recv().await.expect("the provider is dropped");
}

#[runtimes::test]
async fn what_cannot_work_is_refused_when_operations_are_added() {
    let server = Server::new("pets", "1");
    let token = async |_: Context| Ok::<_, BoxError>(Credential::Secret("x".to_owned()));
    let unknown = open_api().with_credential_provider("other", token);
    assert!(usage(&server, unknown).contains(r#"it has "login", "mutual", "token""#));
    let unsupported = open_api().with_credential_provider("mutual", token);
    assert!(usage(&server, unsupported).contains("are not supported"));
    let mut document = pets();
    document["servers"] = json!([{"url": "http://10.0.0.1"}]);
    let of_document = || {
        let api = OpenApi::from_json(document.to_string().as_bytes());
        api.expect("a document").with_http_client(echo)
    };
    assert!(usage(&server, of_document()).contains("needs `base_url`"));
    assert!(
        !client_of(&server)
            .await
            .list_tools()
            .await
            .is_ok_and(|tools| !tools.is_empty())
    );
    let allowed = of_document().with_settings(|settings| settings.allow_private_addresses = true);
    server.add(allowed).expect("operations");
    let client = client_of(&server).await;
    let result = call(&client, "health", json!({})).await;
    let content = result.structured_content.as_ref().map(Value::to_string);
    assert!(content.is_some_and(|content| content.contains("http://10.0.0.1/health")));
}
