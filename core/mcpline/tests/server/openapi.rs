//! Tools and resources of HTTP APIs: requests over real sockets, and what becomes of responses.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpline::client::{Client, RequestOptions};
use mcpline::openapi::{Credential, ImportAs, OpenApi, OpenApiSettings, Proxy};
use mcpline::protocol::vocabulary::CallToolResult;
use mcpline::protocol::wire::Raw;
use mcpline::server::{FeatureSelection, MountOptions, Settings};
use mcpline::{ErrorKind, Revision, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// An API on this machine that gives every request the same response.
struct Api {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Api {
    /// Starts one whose responses consist of these bytes, after which the connection is closed.
    async fn start(response: impl Into<Vec<u8>>) -> Self {
        let response = response.into();
        Self::start_with(move |_| response.clone()).await
    }

    /// Starts one whose response depends on the request.
    async fn start_with(respond: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, respond) = (requests.clone(), Arc::new(respond));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, respond) = (seen.clone(), respond.clone());
                tokio::spawn(async move {
                    let request = read_request(&mut stream).await;
                    seen.lock().expect("no panic").push(request.clone());
                    let response = respond(&request);
                    // The client may have given up.
                    let _ = stream.write_all(&response).await;
                });
            }
        });
        Self {
            url: format!("http://{address}"),
            requests,
        }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no panic").clone()
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut received = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.unwrap_or(0);
        received.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&received).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.parse().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        if read == 0 {
            return text;
        }
    }
}

fn response(status: &str, content_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

fn pets() -> Value {
    let pet = json!({
        "type": "object",
        "required": ["id", "name"],
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
    });
    let pet_response =
        json!({"200": {"description": "", "content": {"application/json": {"schema": pet}}}});
    let id = json!({"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}});
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": "http://127.0.0.1:1"}],
        "security": [{"key": []}],
        "paths": {
            "/pets": {
                "get": {
                    "operationId": "listPets",
                    "summary": "List pets",
                    "tags": ["read"],
                    "parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1}}],
                    "responses": {"200": {"description": "", "content": {"application/json": {"schema": {"type": "array", "items": pet}}}}},
                },
                "post": {
                    "operationId": "createPet",
                    "requestBody": {"required": true, "content": {"application/json": {"schema": pet}}},
                    "responses": {"201": {"description": ""}},
                },
            },
            "/pets/{id}": {
                "parameters": [id],
                "get": {"operationId": "getPet", "tags": ["read"], "responses": pet_response},
                "delete": {"operationId": "deletePet", "deprecated": true, "responses": {"204": {"description": ""}}},
            },
            "/pets/{id}/photo": {
                "parameters": [id],
                "get": {"operationId": "getPhoto", "responses": {"200": {"description": "", "content": {"image/png": {}}}}},
            },
        },
        "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    })
}

fn open_api(document: &Value) -> OpenApi {
    OpenApi::from_json(document.to_string().as_bytes()).expect("a document")
}

async fn client_of(server: &Server) -> Client {
    Client::builder("test", "1")
        .connect(server)
        .await
        .expect("a client")
}

/// A client of the pets at an API.
async fn pets_at(api: &Api) -> Client {
    let server = Server::new("pets", "1");
    server
        .add(open_api(&pets()).with_base_url(&*api.url))
        .expect("added");
    client_of(&server).await
}

async fn call(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    client.call_tool(tool, arguments).await.expect("a result")
}

/// The text of a failed call.
async fn failure(client: &Client, tool: &str, arguments: Value) -> String {
    let result = call(client, tool, arguments).await;
    assert_eq!(result.is_error, Some(true), "{result:?}");
    result.text()
}

fn usage(error: &mcpline::Error) -> String {
    assert_eq!(error.kind(), ErrorKind::Usage);
    error.to_string()
}

#[runtimes::test]
async fn an_operation_is_a_tool_with_hints_tags_and_schemas() {
    let server = Server::new("pets", "1");
    let added = open_api(&pets())
        .with_base_url("http://127.0.0.1:1")
        .add_to_server(&server);
    assert_eq!(
        added.expect("added"),
        ["listPets", "createPet", "getPet", "deletePet", "getPhoto"]
    );
    let client = client_of(&server).await;
    let tools = client.list_tools().await.expect("tools");
    let tool = |name: &str| {
        tools
            .iter()
            .find(|tool| tool.name == name)
            .expect("a tool")
            .clone()
    };
    let hints = |name: &str| {
        let hints = tool(name).annotations.expect("annotations");
        (
            hints.read_only_hint,
            hints.idempotent_hint,
            hints.destructive_hint,
        )
    };
    assert_eq!(hints("listPets"), (Some(true), None, None));
    assert_eq!(hints("createPet"), (Some(false), None, None));
    assert_eq!(hints("deletePet"), (Some(false), Some(true), Some(true)));
    let list = tool("listPets");
    assert_eq!(
        (list.title.as_deref(), list.description.as_deref()),
        (Some("List pets"), Some("List pets"))
    );
    assert_eq!(
        tool("deletePet").description.as_deref(),
        Some("Deprecated. DELETE /pets/{id}")
    );
    assert_eq!(
        tool("createPet").input_schema["required"],
        json!(["id", "name"])
    );
    assert!(tool("getPet").output_schema.is_some());
    assert_eq!(
        server.disable(FeatureSelection::all().with_tags(["read"])),
        2
    );
}

#[runtimes::test]
async fn a_call_becomes_a_request_and_its_response_a_result() {
    let api = Api::start(response(
        "200 OK",
        "application/json",
        r#"{"id": 7, "name": "Rex"}"#,
    ))
    .await;
    let server = Server::new("pets", "1");
    let pets = open_api(&pets())
        .with_base_url(format!("{}/v1/", api.url))
        .with_header("X-Tenant", "acme")
        .with_header("Accept", "application/vnd.pets+json")
        .with_credential("key", Credential::Secret("s3cret".to_owned()));
    server.add(pets).expect("added");
    let client = client_of(&server).await;
    let result = call(&client, "getPet", json!({"id": 7})).await;
    assert_eq!(
        result.structured_content,
        Some(json!({"id": 7, "name": "Rex"}))
    );
    call(&client, "createPet", json!({"id": 8, "name": "Ada"})).await;
    let requests = api.requests();
    let get = requests[0].to_ascii_lowercase();
    assert!(get.starts_with("get /v1/pets/7 http/1.1\r\n"), "{get}");
    for line in [
        "x-key: s3cret",
        "x-tenant: acme",
        "accept: application/vnd.pets+json",
        "accept-encoding: identity",
    ] {
        assert!(get.contains(&format!("\r\n{line}\r\n")), "{line} in {get}");
    }
    assert!(!get.contains("application/json"), "{get}");
    let post = &requests[1];
    assert!(post.starts_with("POST /v1/pets HTTP/1.1\r\n"), "{post}");
    assert!(
        post.ends_with("\r\n\r\n{\"id\":8,\"name\":\"Ada\"}"),
        "{post}"
    );
}

#[runtimes::test]
async fn arguments_are_checked_before_a_request_is_sent() {
    let api = Api::start(response("200 OK", "application/json", "[]")).await;
    let client = pets_at(&api).await;
    for arguments in [json!({"limit": 0}), json!({"limt": 1})] {
        failure(&client, "listPets", arguments).await;
    }
    assert!(api.requests().is_empty());
}

#[runtimes::test]
async fn every_revision_gets_an_array_as_it_can() {
    let api = Api::start(response("200 OK", "application/json", "[]")).await;
    let server = Server::new("pets", "1");
    server
        .add(open_api(&pets()).with_base_url(&*api.url))
        .expect("added");
    for (revision, expected) in [
        (Revision::V2026_07_28, json!([])),
        (Revision::V2025_11_25, json!({"result": []})),
    ] {
        let client = Client::builder("test", "1")
            .configure(|settings| settings.revisions = vec![revision])
            .connect(&server);
        let client = client.await.expect("a client");
        let result = call(&client, "listPets", json!({})).await;
        assert_eq!(result.structured_content, Some(expected), "{revision}");
    }
}

#[runtimes::test]
async fn an_error_of_the_api_is_an_error_of_the_tool() {
    let api = Api::start(response(
        "404 Not Found",
        "application/json",
        r#"{"message": "gone"}"#,
    ))
    .await;
    let client = pets_at(&api).await;
    let text = failure(&client, "getPet", json!({"id": 1})).await;
    assert_eq!(text, r#"HTTP 404 Not Found: {"message": "gone"}"#);
}

#[runtimes::test]
async fn a_response_that_does_not_match_the_document_is_not_lost() {
    for (content_type, body, reason) in [
        (
            "application/json",
            r#"{"id": "x", "name": "Rex"}"#,
            "at /id",
        ),
        ("application/json", "{\"id\": 1", "it is not JSON"),
        (
            "text/html",
            "<p>Sign in</p>",
            "it is not JSON, but \"text/html\"",
        ),
        ("application/json", "", "it is not JSON"),
    ] {
        let api = Api::start(response("200 OK", content_type, body)).await;
        let text = failure(&pets_at(&api).await, "getPet", json!({"id": 1})).await;
        assert!(
            text.starts_with("HTTP 200 OK. The request succeeded"),
            "{text}"
        );
        assert!(text.contains(reason) && text.ends_with(body), "{text}");
    }
}

#[runtimes::test]
async fn json_with_another_media_type_is_recognized() {
    let api = Api::start(response(
        "200 OK",
        "text/plain",
        r#"{"id": 1, "name": "Rex"}"#,
    ))
    .await;
    let result = call(&pets_at(&api).await, "getPet", json!({"id": 1})).await;
    assert_eq!(
        result.structured_content,
        Some(json!({"id": 1, "name": "Rex"}))
    );
}

#[runtimes::test]
async fn without_output_schemas_any_response_is_a_result() {
    let api = Api::start(response("200 OK", "application/json", r#"{"id": "x"}"#)).await;
    let server = Server::new("pets", "1");
    let pets = open_api(&pets()).with_base_url(&*api.url);
    server
        .add(pets.with_settings(|settings| settings.output_schemas = false))
        .expect("added");
    let client = client_of(&server).await;
    let result = call(&client, "getPet", json!({"id": 1})).await;
    assert_eq!(result.structured_content, Some(json!({"id": "x"})));
    assert_eq!(result.text(), r#"{"id": "x"}"#);
}

#[runtimes::test]
async fn a_server_that_validates_no_results_passes_any_json_on() {
    let api = Api::start(response("200 OK", "application/json", r#"{"id": "x"}"#)).await;
    let mut settings = Settings::default();
    settings.check_output = false;
    let server = Server::builder("pets", "1")
        .settings(settings)
        .build()
        .expect("a server");
    server
        .add(open_api(&pets()).with_base_url(&*api.url))
        .expect("added");
    let client = client_of(&server).await;
    let result = call(&client, "getPet", json!({"id": 1})).await;
    assert_eq!(result.structured_content, Some(json!({"id": "x"})));
}

#[runtimes::test]
async fn a_tool_whose_output_schema_was_removed_passes_any_response_on() {
    let api = Api::start(response("200 OK", "text/plain", "sorry")).await;
    let server = Server::new("pets", "1");
    server
        .add(open_api(&pets()).with_base_url(&*api.url))
        .expect("added");
    server
        .update_tool("getPet", |tool| tool.output_schema = None)
        .expect("updated");
    let result = call(&client_of(&server).await, "getPet", json!({"id": 1})).await;
    assert_eq!((result.is_error, result.text()), (None, "sorry".to_owned()));
}

#[runtimes::test]
async fn texts_images_and_empty_responses_are_content() {
    let api = Api::start(response("201 Created", "text/plain", "done")).await;
    assert_eq!(
        call(
            &pets_at(&api).await,
            "createPet",
            json!({"id": 1, "name": ""})
        )
        .await
        .text(),
        "done"
    );
    let api = Api::start(response("204 No Content", "text/plain", "")).await;
    assert_eq!(
        call(&pets_at(&api).await, "deletePet", json!({"id": 1}))
            .await
            .text(),
        "HTTP 204 No Content"
    );
    let api = Api::start(response("200 OK", "image/png", "png")).await;
    let photo = call(&pets_at(&api).await, "getPhoto", json!({"id": 1})).await;
    let content = serde_json::to_value(&photo.content).expect("JSON");
    assert_eq!(
        content,
        json!([{"type": "image", "data": "cG5n", "mimeType": "image/png"}])
    );
    let api = Api::start(response("200 OK", "application/zip", "PK\u{0}")).await;
    let photo = call(&pets_at(&api).await, "getPhoto", json!({"id": 1})).await;
    let content = serde_json::to_value(&photo.content).expect("JSON");
    assert_eq!(content[0]["resource"]["blob"], "UEsA");
}

#[runtimes::test]
async fn a_response_beyond_the_limit_is_refused() {
    let limit = 1024;
    for head in ["Content-Length: 5000", "Connection: close"] {
        let long = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{}", "x".repeat(5_000));
        let api = Api::start(long).await;
        let server = Server::new("pets", "1");
        let pets = open_api(&pets()).with_base_url(&*api.url);
        server
            .add(pets.with_settings(|settings| settings.max_response_bytes = limit))
            .expect("added");
        let text = failure(&client_of(&server).await, "getPhoto", json!({"id": 1})).await;
        assert!(
            text.contains("longer than 1024 bytes (`max_response_bytes`)"),
            "{text}"
        );
    }
}

#[runtimes::test]
async fn an_api_that_does_not_answer_in_time_is_given_up() {
    // It accepts connections, and says no more than the beginning.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let held = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        read_request(&mut stream).await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nslow")
            .await
            .expect("sent");
        let mut rest = Vec::new();
        // Returns when the client closes the connection.
        let _ = stream.read_to_end(&mut rest).await;
    });
    let server = Server::new("pets", "1");
    let pets = open_api(&pets()).with_base_url(url);
    let timeout = Duration::from_millis(200);
    server
        .add(pets.with_settings(|settings| settings.timeout = timeout))
        .expect("added");
    let client = client_of(&server).await;
    let text = failure(&client, "getPhoto", json!({"id": 1})).await;
    assert!(text.contains("within 0.2 s (`timeout`)"), "{text}");
    held.await.expect("the connection was closed");
}

#[runtimes::test]
async fn an_import_needs_time_and_a_usable_proxy() {
    let refused = |change: fn(&mut OpenApiSettings)| {
        let pets = open_api(&pets()).with_settings(change);
        usage(
            &pets
                .add_to_server(&Server::new("pets", "1"))
                .expect_err("refused"),
        )
    };
    let text = refused(|settings| settings.timeout = Duration::ZERO);
    assert!(text.contains("`timeout` must be longer than 0"), "{text}");
    let text = refused(|settings| settings.http.proxy = Proxy::Url("http://a:99999".to_owned()));
    assert!(
        text.contains("99999 in the proxy's URL is not a port"),
        "{text}"
    );
}

#[runtimes::test]
async fn an_integer_that_would_lose_digits_is_refused() {
    let api = Api::start(response("200 OK", "application/json", "[]")).await;
    let client = pets_at(&api).await;
    for (arguments, is_sent) in [
        (r#"{"id": 18446744073709551615, "name": "x"}"#, true),
        (
            r#"{"id": 123456789012345678901234567890, "name": "x"}"#,
            false,
        ),
        (
            r#"{"id": 1, "name": "123456789012345678901234567890"}"#,
            true,
        ),
    ] {
        let before = api.requests().len();
        let params = format!(r#"{{"name": "createPet", "arguments": {arguments}}}"#);
        let params = Raw::parse(params).expect("valid JSON");
        let options = RequestOptions::default();
        let result = client.request("tools/call", Some(&params), &options).await;
        let result = result.expect("a result");
        assert_eq!(
            api.requests().len() - before,
            usize::from(is_sent),
            "{arguments}"
        );
        let text = result.as_str();
        assert_eq!(text.contains("has more than 64 bits"), !is_sent, "{text}");
    }
}

#[runtimes::test]
async fn a_redirect_stays_at_its_origin() {
    let elsewhere = Api::start(response("200 OK", "application/json", "[]")).await;
    let target = elsewhere.url.clone();
    let api = Api::start_with(move |request| {
        let location = match request.starts_with("GET /pets HTTP") {
            true => format!("{target}/stolen"),
            false => "/pets/2".to_owned(),
        };
        match request.starts_with("GET /pets/2 ") {
            true => response("200 OK", "application/json", r#"{"id": 2, "name": "Moved"}"#),
            false => format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes(),
        }
    })
    .await;
    let client = pets_at(&api).await;
    let text = failure(&client, "listPets", json!({})).await;
    assert!(
        text.contains("HTTP 307") && text.contains("another origin"),
        "{text}"
    );
    assert!(elsewhere.requests().is_empty());
    let result = call(&client, "getPet", json!({"id": 1})).await;
    assert_eq!(
        result.structured_content,
        Some(json!({"id": 2, "name": "Moved"}))
    );
}

#[runtimes::test]
async fn a_redirect_to_another_port_is_not_followed_with_https_either() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let location = format!(
        "https://{}/pets",
        listener.local_addr().expect("an address")
    );
    let api = Api::start(format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    ))
    .await;
    let text = failure(&pets_at(&api).await, "listPets", json!({})).await;
    assert!(text.contains("it leads to another origin"), "{text}");
}

#[runtimes::test]
async fn an_error_for_a_model_contains_no_key_of_the_query() {
    let redirect = |status: &str, location: &str| {
        format!(
            "HTTP/1.1 {status}\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
    };
    let mut document = pets();
    document["components"]["securitySchemes"]["key"]["in"] = json!("query");
    for (status, location) in [
        (
            "307 Temporary Redirect",
            "http://u:s3cret@other.example/a?X-Key=s3cret",
        ),
        ("304 Not Modified", "/a?X-Key=s3cret#s3cret"),
    ] {
        let api = Api::start(redirect(status, location)).await;
        let server = Server::new("pets", "1");
        let pets = open_api(&document)
            .with_base_url(&*api.url)
            .with_credential("key", Credential::Secret("s3cret".to_owned()));
        server.add(pets).expect("added");
        let text = failure(&client_of(&server).await, "listPets", json!({})).await;
        assert!(
            text.contains("redirect to") && text.contains("/a…"),
            "{text}"
        );
        assert!(!text.contains("s3cret"), "{text}");
        assert!(api.requests()[0].contains("X-Key=s3cret"));
    }
}

#[runtimes::test]
async fn an_unreachable_api_is_an_error_of_the_tool() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let server = Server::new("pets", "1");
    server
        .add(open_api(&pets()).with_base_url(url))
        .expect("added");
    let text = failure(&client_of(&server).await, "listPets", json!({})).await;
    assert!(text.starts_with("The API gave no response: "), "{text}");
}

#[runtimes::test]
async fn a_server_that_the_document_names_has_to_be_public() {
    let api = Api::start(response("200 OK", "application/json", "[]")).await;
    let mut document = pets();
    for url in [api.url.clone(), api.url.replace("127.0.0.1", "localhost")] {
        document["servers"] = json!([{"url": url}]);
        let server = Server::new("pets", "1");
        server.add(open_api(&document)).expect("added");
        let text = failure(&client_of(&server).await, "listPets", json!({})).await;
        assert!(text.contains("private address"), "{text}");
    }
    assert!(api.requests().is_empty());
    document["servers"] = json!([{"url": api.url}]);
    let server = Server::new("pets", "1");
    let allowed =
        open_api(&document).with_settings(|settings| settings.allow_private_addresses = true);
    server.add(allowed).expect("added");
    call(&client_of(&server).await, "listPets", json!({})).await;
    assert_eq!(api.requests().len(), 1);
}

#[runtimes::test]
async fn a_server_that_the_document_names_is_not_reached_through_a_proxy() {
    let proxy = Api::start(response("200 OK", "application/json", "[]")).await;
    let mut document = pets();
    for (url, expected) in [
        ("http://api.example.com", "through a proxy"),
        ("http://2852039166", "usual form"),
        ("http://localhost", "private address"),
    ] {
        document["servers"] = json!([{"url": url}]);
        for is_allowed in [false, true] {
            let server = Server::new("pets", "1");
            let imported = open_api(&document).with_settings(|settings| {
                settings.http.proxy = mcpline::openapi::Proxy::Url(proxy.url.clone());
                settings.allow_private_addresses = is_allowed;
            });
            server.add(imported).expect("added");
            let client = client_of(&server).await;
            let before = proxy.requests().len();
            if is_allowed {
                call(&client, "listPets", json!({})).await;
                assert_eq!(proxy.requests().len(), before + 1);
                continue;
            }
            let text = failure(&client, "listPets", json!({})).await;
            assert!(text.contains(expected), "{text}");
            assert_eq!(proxy.requests().len(), before);
        }
    }
}

#[runtimes::test]
async fn operations_are_selected_named_and_mounted() {
    let api = Api::start(response(
        "200 OK",
        "application/json",
        r#"{"id": 1, "name": "Rex"}"#,
    ))
    .await;
    let pets_server = Server::new("pets", "1");
    let pets = open_api(&pets())
        .with_base_url(&*api.url)
        .with_name("getPet", "pet")
        .with_name("GET /pets", "all")
        .select(
            |operation| match operation.tags.iter().any(|tag| tag == "read") {
                true if operation.path == "/pets/{id}" => ImportAs::Resource,
                true => ImportAs::Tool,
                false => ImportAs::Nothing,
            },
        );
    assert_eq!(
        pets.add_to_server(&pets_server).expect("added"),
        ["all", "api://pets/{id}"]
    );
    let server = Server::new("all", "1");
    server
        .mount(&pets_server, MountOptions::default().with_prefix("v1"))
        .expect("mounted");
    let client = client_of(&server).await;
    let tools = client.list_tools().await.expect("tools");
    assert_eq!(
        tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(),
        ["v1_all"]
    );
    let read = client
        .read_resource("api://v1/pets/1")
        .await
        .expect("a resource");
    let contents = serde_json::to_value(&read.contents).expect("JSON");
    let expected = json!([{"uri": "api://v1/pets/1", "mimeType": "application/json", "text": "{\"id\": 1, \"name\": \"Rex\"}"}]);
    assert_eq!(contents, expected);
    assert!(api.requests()[0].starts_with("GET /pets/1 HTTP/1.1"));
}

#[runtimes::test]
async fn a_resource_that_the_api_does_not_have_is_not_found() {
    let api = Api::start(response("404 Not Found", "text/plain", "no")).await;
    let server = Server::new("pets", "1");
    let pets = open_api(&pets()).with_base_url(&*api.url);
    server
        .add(pets.select(|operation| match operation.name == "getPet" {
            true => ImportAs::Resource,
            false => ImportAs::Nothing,
        }))
        .expect("added");
    let client = client_of(&server).await;
    let error = client
        .read_resource("api://pets/1")
        .await
        .expect_err("not found");
    assert!(
        error
            .to_string()
            .contains("Resource not found: api://pets/1"),
        "{error}"
    );
    assert!(client.read_resource("api://pets/..%2Fadmin").await.is_err());
    assert_eq!(api.requests().len(), 1);
}

#[runtimes::test]
async fn variables_of_a_resource_are_validated_like_arguments() {
    let api = Api::start(response("200 OK", "application/json", "[]")).await;
    let server = Server::new("pets", "1");
    let pets = open_api(&pets()).with_base_url(&*api.url);
    server
        .add(pets.select(|operation| match operation.method.is_safe() {
            true => ImportAs::Resource,
            false => ImportAs::Nothing,
        }))
        .expect("added");
    let client = client_of(&server).await;
    for uri in [
        "api://pets/rex",
        "api://pets?limit=0",
        "api://pets?limit=many",
    ] {
        let error = client.read_resource(uri).await.expect_err("invalid");
        assert!(error.to_string().contains(uri), "{error}");
    }
    assert!(api.requests().is_empty());
    for uri in ["api://pets/7", "api://pets?limit=1", "api://pets"] {
        client.read_resource(uri).await.expect("a resource");
    }
    assert_eq!(api.requests().len(), 3);
}

#[runtimes::test]
async fn a_setting_that_cannot_work_is_refused_when_operations_are_added() {
    let add = |change: fn(OpenApi) -> OpenApi| {
        let server = Server::new("pets", "1");
        let error = change(open_api(&pets()))
            .add_to_server(&server)
            .expect_err("refused");
        usage(&error)
    };
    for (change, expected) in [
        (
            (|pets| pets.with_base_url("ftp://x")) as fn(OpenApi) -> OpenApi,
            "`base_url`",
        ),
        (|pets| pets.with_base_url("http://x/?a"), "has a query"),
        (|pets| pets.with_header("Host", "x"), "set by the library"),
        (
            |pets| pets.with_header("X", "a\r\nb"),
            "HTTP does not allow",
        ),
        (
            |pets| pets.with_credential("other", Credential::Secret("x".into())),
            "it has \"key\"",
        ),
        (
            |pets| pets.with_name("nothing", "x"),
            "no selected operation",
        ),
        (|pets| pets.with_name("getPet", "a b"), "has a space"),
        (
            |pets| pets.select(|_| ImportAs::Resource),
            "Select it as a tool",
        ),
        (
            |pets| {
                pets.with_settings(|settings| {
                    settings.http.proxy = mcpline::openapi::Proxy::Url("::".into())
                })
            },
            "proxy",
        ),
    ] {
        let message = add(change);
        assert!(message.contains(expected), "{message}");
    }
}

#[runtimes::test]
async fn all_operations_are_added_or_none() {
    let server =
        Server::new("pets", "1").tool("getPet", "Taken", |_: Value, _: mcpline::Context| async {
            ""
        });
    let error = open_api(&pets())
        .with_base_url("http://x")
        .add_to_server(&server)
        .expect_err("taken");
    assert!(usage(&error).contains("getPet"), "{error}");
    let tools = client_of(&server).await.list_tools().await.expect("tools");
    assert_eq!(tools.len(), 1);
}

#[runtimes::test]
async fn a_large_document_is_imported_as_a_whole() {
    let mut document = pets();
    let description = "A long description. ".repeat(500);
    let operation = json!({
        "description": description,
        "parameters": [{"name": "id", "in": "query", "description": description, "schema": {"$ref": "#/components/schemas/Node"}}],
        "responses": {"200": {"description": "", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}},
    });
    let paths = document["paths"].as_object_mut().expect("paths");
    for number in 0..500 {
        paths.insert(format!("/things/{number}"), json!({"get": operation}));
    }
    document["components"]["schemas"] = json!({"Node": {
        "type": "object",
        "properties": {"next": {"$ref": "#/components/schemas/Node"}},
    }});
    let json = document.to_string();
    assert!(json.len() > 10_000_000, "{}", json.len());
    let server = Server::new("things", "1");
    let things = OpenApi::from_json(json.as_bytes())
        .expect("a document")
        .with_base_url("http://x");
    assert_eq!(things.add_to_server(&server).expect("added").len(), 505);
}

#[runtimes::test]
async fn an_import_whose_schemas_are_too_large_together_is_refused() {
    let parameters = json!([
        {"name": "p", "in": "query", "schema": {"enum": ["x".repeat(1024 * 1024)]}},
    ]);
    let shared = json!({"parameters": parameters, "get": {"responses": {}}});
    let paths: serde_json::Map<_, _> = (0..70)
        .map(|number| (format!("/{number}"), json!({"$ref": "#/x-shared"})))
        .collect();
    let document = json!({
        "openapi": "3.1.0",
        "info": {"title": "Wide", "version": "1"},
        "paths": paths,
        "x-shared": shared,
    });
    let add = |count: usize| {
        let paths: Vec<_> = (0..count).map(|number| format!("/{number}")).collect();
        open_api(&document)
            .with_base_url("http://x")
            .with_settings(|settings| settings.max_schema_bytes = 2 * 1024 * 1024)
            .select(move |operation| match paths.contains(&operation.path) {
                true => ImportAs::Tool,
                false => ImportAs::Nothing,
            })
            .add_to_server(&Server::new("wide", "1"))
    };
    let error = add(70).expect_err("too large");
    let message = usage(&error);
    assert!(
        message.contains("`MAX_IMPORT_SCHEMA_BYTES`") && message.contains("`select`"),
        "{message}"
    );
    assert_eq!(add(5).expect("added").len(), 5);
}
