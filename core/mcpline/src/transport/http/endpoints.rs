//! Finds the endpoint that a request is for, by its path.

use http::request::Parts;

use super::authorization::AuthEndpoint;
use super::options::{DEFAULT_PATH, HttpOptions};
use super::service::Shared;

/// The prefix of a request's path below which the service is mounted, for a layer in front of
/// [`HttpService`](super::HttpService) to put into the request's extensions.
///
/// The paths of the options are relative to it. With the default [`path`](HttpOptions::path), the prefix itself is an
/// MCP endpoint, too. Routers that remove the prefix from the path, such as axum's `nest_service`, need none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountPrefix(pub String);

/// An endpoint of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    Mcp,
    SseStream,
    SseMessages,
    Health,
    Ready,
    Metrics,
    Authorization(AuthEndpoint),
    Nothing,
}

impl Endpoint {
    /// Whether it is a check of this process, for monitoring and load balancers.
    pub(super) fn is_check(self) -> bool {
        matches!(self, Self::Health | Self::Ready)
    }

    pub(super) fn of(shared: &Shared, parts: &Parts) -> Self {
        let options = &*shared.options;
        let path = parts.uri.path();
        // The usual case. A prefix would be an extension.
        if path == options.path && parts.extensions.is_empty() {
            return Self::Mcp;
        }
        let (below, is_below) = below_prefix(parts);
        // HTTP+SSE is a session.
        if let Some((stream, messages)) = options.sse_paths.as_ref().filter(|_| !options.stateless)
        {
            if below == stream {
                return Self::SseStream;
            }
            if below == messages {
                return Self::SseMessages;
            }
        }
        if options.health_path.as_deref() == Some(below) {
            return Self::Health;
        }
        if options.ready_path.as_deref() == Some(below) {
            return Self::Ready;
        }
        if options.metrics_path.as_deref() == Some(below) {
            return Self::Metrics;
        }
        let revisions = &shared.server.inner().settings.revisions;
        let authorization = &shared.authorization;
        if let Some(endpoint) = authorization.endpoint(path, options, revisions, shared.is_mounted)
        {
            return Self::Authorization(endpoint);
        }
        let is_mount_point = is_below && matches!(below, "" | "/") && options.path == DEFAULT_PATH;
        let is_mcp = is_same_path(below, &options.path)
            || is_mount_point
            || (shared.is_mounted
                && (is_same_path(path, &options.path) || is_resource(path, options)));
        match is_mcp {
            true => Self::Mcp,
            false => Self::Nothing,
        }
    }
}

/// Returns the path of a request without the prefix of the mount, if it has one.
#[cfg(feature = "routes")]
pub(super) fn path_below_prefix(parts: &Parts) -> &str {
    below_prefix(parts).0
}

/// Returns the path of a request without the prefix of the mount, and whether the request has that.
fn below_prefix(parts: &Parts) -> (&str, bool) {
    let path = parts.uri.path();
    let prefix = prefix(parts);
    match path.strip_prefix(prefix) {
        Some(below) if below.is_empty() || below.starts_with('/') => (below, !prefix.is_empty()),
        _ => (path, false),
    }
}

/// Returns the prefix below which a request reached the service, without a slash at its end.
pub(super) fn prefix(parts: &Parts) -> &str {
    let prefix = parts.extensions.get::<MountPrefix>();
    prefix.map_or("", |prefix| prefix.0.trim_end_matches('/'))
}

/// Whether a path is a known one, with or without a slash at its end.
fn is_same_path(path: &str, known: &str) -> bool {
    path == known
        || path.strip_suffix('/').unwrap_or(path) == known.strip_suffix('/').unwrap_or(known)
}

/// Whether a path is that of the resource that access tokens are for: clients know the endpoint by its URL.
#[cfg(feature = "auth")]
fn is_resource(path: &str, options: &HttpOptions) -> bool {
    let resource = options.auth.as_ref();
    resource
        .and_then(|resource| resource.path())
        .is_some_and(|own| is_same_path(path, own))
}

#[cfg(not(feature = "auth"))]
fn is_resource(_: &str, _: &HttpOptions) -> bool {
    false
}
