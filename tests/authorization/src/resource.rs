//! A protected resource in front of any router, which requires tokens of the server and sends challenges.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract;
use axum::http::Response;
use axum::middleware::{self, Next};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::Shared;
use crate::config::Dpop;
use crate::dpop;
use crate::exchange::{Parameters, Reply, read};

/// Larger than any request body of a test.
const BODY_LIMIT: usize = 16 * 1024 * 1024;

/// Requirements and metadata of a resource. They can be changed while it runs.
#[derive(Clone, Debug)]
pub struct ResourceConfig {
    /// The path that requires a token. Cannot change after the start.
    pub path: String,
    /// Other paths of the same resource.
    pub also: Vec<String>,
    /// Paths of the metadata.
    pub places: Vec<String>,
    /// Members to add to the metadata or to replace; null removes a member.
    pub metadata: Map<String, Value>,
    /// The `resource_metadata` of challenges: the first of `places` if `Some("")`, otherwise this URL, or none.
    pub names_metadata: Option<String>,
    /// The `scope` of the challenge to a request without a valid token.
    pub scope: Option<String>,
    /// Required scopes, by the method of the JSON-RPC message or by `tools/call NAME`.
    pub needed: BTreeMap<String, String>,
    /// JSON-RPC methods that require no token.
    pub open: Vec<String>,
    /// Whether the token's audience must be this resource.
    pub checks_audience: bool,
    /// Whether tokens must come with a proof of the client's key.
    pub dpop: bool,
}

impl Default for ResourceConfig {
    fn default() -> Self {
        Self {
            path: "/mcp".into(),
            also: Vec::new(),
            places: vec!["/.well-known/oauth-protected-resource/mcp".into()],
            metadata: Map::new(),
            names_metadata: Some(String::new()),
            scope: None,
            needed: BTreeMap::new(),
            open: Vec::new(),
            checks_audience: true,
            dpop: false,
        }
    }
}

/// A request that the resource received.
#[derive(Clone, Debug)]
pub struct ResourceRequest {
    /// The HTTP method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The query's parameters.
    pub query: Parameters,
    /// The `Authorization` header.
    pub authorization: Option<String>,
    /// The method of its JSON-RPC message.
    pub message: Option<String>,
    /// The status of the response.
    pub status: u16,
}

/// A resource that runs until it is dropped.
pub struct ProtectedResource {
    guard: Arc<Guard>,
    running: JoinHandle<()>,
}

struct Guard {
    server: Arc<Shared>,
    origin: String,
    config: Mutex<ResourceConfig>,
    requests: Mutex<Vec<ResourceRequest>>,
}

impl ProtectedResource {
    pub(crate) async fn start(
        server: Arc<Shared>,
        config: ResourceConfig,
        inner: Router,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let guard = Arc::new(Guard {
            server,
            origin: format!("http://{}", listener.local_addr()?),
            config: Mutex::new(config),
            requests: Mutex::default(),
        });
        let layer = middleware::from_fn_with_state(Arc::clone(&guard), pass);
        let running = tokio::spawn(async move {
            // Runs until the task is aborted.
            let _ = axum::serve(listener, inner.layer(layer)).await;
        });
        Ok(Self { guard, running })
    }

    /// The URL that requires a token.
    pub fn url(&self) -> String {
        format!("{}{}", self.guard.origin, self.guard.config().path)
    }

    /// Its origin.
    pub fn origin(&self) -> &str {
        &self.guard.origin
    }

    /// Changes the configuration, except for the path.
    pub fn change(&self, change: impl FnOnce(&mut ResourceConfig)) {
        change(&mut self.guard.config());
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<ResourceRequest> {
        self.guard.requests().clone()
    }
}

impl Drop for ProtectedResource {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Guard {
    fn config(&self) -> MutexGuard<'_, ResourceConfig> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requests(&self) -> MutexGuard<'_, Vec<ResourceRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn metadata(&self) -> Value {
        let config = self.config();
        let mut said = json!({
            "resource": format!("{}{}", self.origin, config.path),
            "authorization_servers": [self.server.state().issuer()],
            "bearer_methods_supported": ["header"],
        });
        for (name, value) in &config.metadata {
            if value.is_null() {
                drop(said.as_object_mut().and_then(|said| said.remove(name)));
            } else {
                said[name] = value.clone();
            }
        }
        said
    }

    /// Whether a path belongs to the resource.
    fn has(&self, path: &str) -> bool {
        let config = self.config();
        config.path == path || config.also.iter().any(|also| also == path)
    }

    /// Returns a refusal with its challenge.
    fn challenge(&self, status: u16, error: Option<&str>, scope: Option<&str>) -> Reply {
        let config = self.config();
        let mut parameters = Vec::new();
        let mut say = |name: &str, value: &str| parameters.push(format!("{name}=\"{value}\""));
        if let Some(error) = error {
            say("error", error);
        }
        if let Some(scope) = scope {
            say("scope", scope);
        }
        match (config.names_metadata.as_deref(), config.places.first()) {
            (Some(""), Some(place)) => say("resource_metadata", &format!("{}{place}", self.origin)),
            (Some(""), None) | (None, _) => {}
            (Some(url), _) => say("resource_metadata", url),
        }
        let scheme = if config.dpop { "DPoP" } else { "Bearer" };
        let challenge = format!("{scheme} {}", parameters.join(", "));
        Reply::json(status, &json!({"error": error}))
            .with_header("WWW-Authenticate", challenge.trim())
    }
}

async fn pass(
    extract::State(guard): extract::State<Arc<Guard>>,
    request: extract::Request,
    next: Next,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_LIMIT).await else {
        return Reply::empty(413).into_response();
    };
    let request = read(&head, &body);
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut noted = ResourceRequest {
        method: request.method.clone(),
        path: request.path.clone(),
        query: request.query.clone(),
        authorization: request.header("authorization").map(str::to_owned),
        message: message["method"].as_str().map(str::to_owned),
        status: 0,
    };
    let is_metadata = guard.config().places.contains(&request.path);
    let response = if is_metadata {
        Reply::json(200, &guard.metadata()).into_response()
    } else if !guard.has(&request.path) {
        Reply::empty(404).into_response()
    } else {
        match refusal(&guard, &request, &message) {
            Some(reply) => reply.into_response(),
            None => {
                next.run(extract::Request::from_parts(head, Body::from(body)))
                    .await
            }
        }
    };
    noted.status = response.status().as_u16();
    guard.requests().push(noted);
    response
}

/// Returns the refusal of a request, or `None` if it is admitted.
fn refusal(
    guard: &Guard,
    request: &crate::exchange::IncomingRequest,
    message: &Value,
) -> Option<Reply> {
    let method = message["method"].as_str().unwrap_or_default();
    let (scope, bound, checks_audience, needed) = {
        let config = guard.config();
        if config.open.iter().any(|open| open == method) {
            return None;
        }
        let call = format!(
            "{method} {}",
            message["params"]["name"].as_str().unwrap_or_default()
        );
        let needed = config
            .needed
            .get(&call)
            .or_else(|| config.needed.get(method))
            .cloned();
        (
            config.scope.clone(),
            config.dpop,
            config.checks_audience,
            needed,
        )
    };
    let resource = format!("{}{}", guard.origin, guard.config().path);
    let Some((scheme, token)) = request
        .header("authorization")
        .and_then(|header| header.split_once(' '))
    else {
        return Some(guard.challenge(401, None, scope.as_deref()));
    };
    let invalid = || Some(guard.challenge(401, Some("invalid_token"), scope.as_deref()));
    let mut state = guard.server.state();
    let Some(claims) = state.active_claims(token).cloned() else {
        drop(state);
        return invalid();
    };
    if bound || !claims["cnf"].is_null() {
        let dpop = std::mem::replace(&mut state.config.dpop, Dpop::Required);
        let proven = dpop::proven(&mut state, request, &resource, Some(token));
        state.config.dpop = dpop;
        drop(state);
        match proven {
            Ok(Some(key)) if claims["cnf"]["jkt"] == key.as_str() && scheme == "DPoP" => {}
            Ok(_) => return invalid(),
            Err(why) => {
                let mut reply = guard.challenge(401, Some(why.code), scope.as_deref());
                for (name, value) in why.headers {
                    reply = reply.with_header(name, value);
                }
                return Some(reply);
            }
        }
    } else {
        drop(state);
        if !scheme.eq_ignore_ascii_case("bearer") {
            return invalid();
        }
    }
    if checks_audience && !audiences(&claims).any(|audience| *audience == resource.as_str()) {
        return invalid();
    }
    let granted: Vec<&str> = claims["scope"]
        .as_str()
        .unwrap_or_default()
        .split(' ')
        .collect();
    let needed = needed.unwrap_or_default();
    if needed
        .split(' ')
        .any(|scope| !scope.is_empty() && !granted.contains(&scope))
    {
        return Some(guard.challenge(403, Some("insufficient_scope"), Some(&needed)));
    }
    None
}

fn audiences(claims: &Value) -> impl Iterator<Item = &Value> {
    match &claims["aud"] {
        Value::Array(several) => several.iter(),
        one => std::slice::from_ref(one).iter(),
    }
}
