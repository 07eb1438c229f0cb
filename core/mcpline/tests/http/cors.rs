//! Web pages of allowed origins, and no others, may send requests and read the responses (CORS).

use crate::support::Nothing;
use crate::support::requests::{body, call, initialize, request};
use http::{HeaderMap, Method, Response, StatusCode};
use mcpline::transport::http::{Body, HttpOptions, HttpService};
use mcpline::{Context, Server};
use serde_json::Value;

const PAGE: &str = "https://app.example.com";

fn service(allowed_origins: &[&str]) -> HttpService {
    let mut options = HttpOptions::default();
    options.allowed_origins = allowed_origins.iter().map(ToString::to_string).collect();
    Server::new("cors", "1")
        .tool("plain", "Answers", |_: Nothing, _: Context| async {
            "done"
        })
        .http_service(options)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().expect("text"))
}

fn is_readable(response: &Response<Body>, origin: &str) -> bool {
    let headers = response.headers();
    let allowed = header(headers, "access-control-allow-origin");
    assert!(
        allowed.is_none() || header(headers, "vary").is_some_and(|vary| vary.starts_with("Origin")),
        "a cache must not give it to other origins"
    );
    assert!(!headers.contains_key("access-control-allow-credentials"));
    allowed == Some(origin)
}

async fn preflight(service: &HttpService, origin: &str) -> Response<Body> {
    let headers = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        (
            "access-control-request-headers",
            "authorization,content-type,mcp-param-region",
        ),
    ];
    let request = request(Method::OPTIONS, &headers, Value::Null);
    service.handle(request).await
}

#[runtimes::test]
async fn preflight_requests_of_listed_origins_are_answered() {
    let service = service(&[PAGE]);
    let response = preflight(&service, PAGE).await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    assert!(is_readable(&response, PAGE));
    let headers = response.headers();
    assert_eq!(
        header(headers, "access-control-allow-methods"),
        Some("GET, HEAD, POST, PUT, PATCH, DELETE")
    );
    assert_eq!(
        header(headers, "access-control-allow-headers"),
        Some("authorization,content-type,mcp-param-region")
    );
    assert_eq!(header(headers, "access-control-max-age"), Some("7200"));
}

#[runtimes::test]
async fn responses_to_listed_origins_are_readable_with_the_protocols_headers() {
    let service = service(&[PAGE]);
    let page = [("origin", PAGE)];
    let begun = service
        .handle(request(Method::POST, &page, initialize("2025-11-25")))
        .await;
    assert_eq!(begun.status(), StatusCode::OK);
    assert!(is_readable(&begun, PAGE));
    let exposed = header(begun.headers(), "access-control-expose-headers").expect("exposed");
    for name in [
        "Mcp-Session-Id",
        "MCP-Protocol-Version",
        "WWW-Authenticate",
        "Retry-After",
    ] {
        assert!(exposed.split(", ").any(|other| other == name), "{name}");
    }
    assert!(begun.headers().contains_key("mcp-session-id"));
    body(begun).await;
    // So are errors, and responses that are event streams.
    let unknown = [("origin", PAGE), ("mcp-session-id", "unknown")];
    let refused = service
        .handle(request(Method::POST, &unknown, call(1, "plain")))
        .await;
    assert_eq!(refused.status(), StatusCode::NOT_FOUND);
    assert!(is_readable(&refused, PAGE));
    let headers = [("origin", PAGE), ("accept", "text/event-stream")];
    let mut stream = request(Method::GET, &headers, Value::Null);
    *stream.uri_mut() = "/sse".parse().expect("a path");
    assert!(is_readable(&service.handle(stream).await, PAGE));
}

#[runtimes::test]
async fn other_origins_can_neither_ask_nor_read() {
    for (allowed, origin) in [
        (&[PAGE][..], "https://other.example.com"),
        (&[PAGE], "https://app.example.com.evil.example"),
        (&[PAGE], "http://app.example.com"),
        (&[], PAGE),
    ] {
        let service = service(allowed);
        let response = preflight(&service, origin).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{origin}");
        assert!(
            !response
                .headers()
                .contains_key("access-control-allow-origin")
        );
        let headers = [("origin", origin)];
        let response = service
            .handle(request(Method::POST, &headers, initialize("2025-11-25")))
            .await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{origin}");
        assert!(
            !response
                .headers()
                .contains_key("access-control-allow-origin")
        );
    }
}

#[runtimes::test]
async fn pages_of_allowed_hosts_read_only_if_they_are_listed() {
    let local = "http://localhost:3000";
    for (allowed, reads) in [(&[][..], false), (&[local], true), (&["*"], true)] {
        let headers = [("origin", local)];
        let response = service(allowed)
            .handle(request(Method::POST, &headers, initialize("2025-11-25")))
            .await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(is_readable(&response, local), reads, "{allowed:?}");
    }
}

#[runtimes::test]
async fn requests_without_an_origin_have_no_cors_headers() {
    let response = service(&["*"])
        .handle(request(Method::POST, &[], initialize("2025-11-25")))
        .await;
    assert!(
        !response
            .headers()
            .contains_key("access-control-allow-origin")
    );
}

#[runtimes::test]
async fn a_malformed_list_of_headers_is_not_repeated() {
    let headers = [
        ("origin", PAGE),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "a b, c:d"),
    ];
    let request = request(Method::OPTIONS, &headers, Value::Null);
    let response = service(&[PAGE]).handle(request).await;
    assert_eq!(
        header(response.headers(), "access-control-allow-headers"),
        Some("Content-Type")
    );
}
