//! A mounted service serves the paths of its options and no others: an outer application may protect paths.

use crate::support::requests::{initialize, request};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use mcpline::Server;
use mcpline::transport::http::{HttpOptions, HttpService, MountPrefix};
use serde_json::Value;

fn service(path: &str) -> HttpService {
    let mut options = HttpOptions::default();
    options.path = path.into();
    Server::new("mounted", "1").http_service(options)
}

async fn status(service: &HttpService, prefix: Option<&str>, method: Method, path: &str) -> u16 {
    let body = match method {
        Method::POST => initialize("2025-11-25"),
        _ => Value::Null,
    };
    let mut request: Request<Full<_>> = request(method, &[], body);
    *request.uri_mut() = path.parse().expect("a path");
    if let Some(prefix) = prefix {
        let prefix = MountPrefix(prefix.to_owned());
        request.extensions_mut().insert(prefix);
    }
    service.handle(request).await.status().as_u16()
}

#[runtimes::test]
async fn only_the_configured_paths_are_served() {
    for (path, prefix, served, others) in [
        (
            "/mcp",
            None,
            &["/mcp", "/mcp/"][..],
            &["/", "/admin", "/admin/mcp", "/mcp/admin", "/mcpx", "//mcp"][..],
        ),
        (
            "/only/here",
            None,
            &["/only/here"],
            &["/", "/mcp", "/here", "/only", "/only/here/admin"],
        ),
        ("/", None, &["/"], &["/mcp", "/admin"]),
        // The mount point is the default below a prefix.
        (
            "/mcp",
            Some("/tools"),
            &["/tools", "/tools/", "/tools/mcp"],
            &["/tools/admin", "/toolsmcp", "/", "/other/mcp"],
        ),
        (
            "/mcp",
            Some("/tools/"),
            &["/tools", "/tools/mcp"],
            &["/tools/admin"],
        ),
        (
            "/",
            Some("/tools"),
            &["/tools", "/tools/"],
            &["/tools/mcp", "/tools/admin"],
        ),
        (
            "/own",
            Some("/tools"),
            &["/tools/own"],
            &["/tools", "/tools/", "/tools/mcp"],
        ),
        // A route for exactly one path.
        ("/mcp", Some("/api/tools"), &["/api/tools"], &["/api"]),
        ("/own", Some("/own"), &["/own"], &["/own/mcp"]),
    ] {
        let service = service(path);
        for served in served {
            let status = status(&service, prefix, Method::POST, served).await;
            assert_eq!(status, StatusCode::OK, "{path} below {prefix:?}: {served}");
        }
        for other in others {
            for method in [Method::POST, Method::GET, Method::DELETE] {
                let status = status(&service, prefix, method.clone(), other).await;
                assert_eq!(
                    status,
                    StatusCode::NOT_FOUND,
                    "{path} below {prefix:?}: {method} {other}"
                );
            }
        }
    }
}

#[runtimes::test]
async fn the_other_endpoints_are_relative_to_the_mount_point_too() {
    let service = service("/mcp");
    for (prefix, path, expected) in [
        (None, "/health", 200),
        (None, "/tools/health", 404),
        (Some("/tools"), "/tools/health", 200),
        (Some("/tools"), "/tools/x/health", 404),
        (None, "/sse", 200),
        (None, "/tools/sse", 404),
        (Some("/tools"), "/tools/sse", 200),
    ] {
        let status = status(&service, prefix, Method::GET, path).await;
        assert_eq!(status, expected, "{prefix:?}: {path}");
    }
}
