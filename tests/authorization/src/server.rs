//! The server: starting, inspecting and changing it, and the routing of its endpoints.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract;
use axum::http::Response;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::{Client, Config, Endpoint, Forced};
use crate::exchange::{IncomingRequest, Refusal, Reply, Requests, read};
use crate::keys::random_text;
use crate::resource::{ProtectedResource, ResourceConfig};
use crate::state::{Family, State};
use crate::{authorize, clients, control, introspection, metadata, token};

/// Larger than any request body.
const BODY_LIMIT: usize = 1024 * 1024;

/// A server that runs until it is dropped.
pub struct AuthorizationServer {
    shared: Arc<Shared>,
    running: JoinHandle<()>,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    /// Number of guards that hold each endpoint.
    held: watch::Sender<BTreeMap<Endpoint, usize>>,
    /// Notified of each request that arrives.
    arrivals: watch::Sender<()>,
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Delays requests to an endpoint until it is dropped.
pub struct Held {
    shared: Arc<Shared>,
    endpoint: Endpoint,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.held.send_modify(|held| {
            if let Some(holders) = held.get_mut(&self.endpoint) {
                *holders -= 1;
            }
        });
    }
}

impl AuthorizationServer {
    /// Starts a server on 127.0.0.1.
    pub async fn start(config: Config) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", config.port)).await?;
        let origin = format!("http://{}:{}", config.host, listener.local_addr()?.port());
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(config, origin)),
            held: watch::Sender::default(),
            arrivals: watch::Sender::default(),
        });
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&shared));
        let running = tokio::spawn(async move {
            // Runs until the task is aborted.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { shared, running })
    }

    /// The issuer.
    pub fn issuer(&self) -> String {
        self.shared.state().issuer()
    }

    /// The URL of an endpoint by its path (`/token`).
    pub fn url(&self, path: &str) -> String {
        self.shared.state().url(path)
    }

    /// The current configuration.
    pub fn config(&self) -> Config {
        self.shared.state().config.clone()
    }

    /// Changes the configuration, except for the host and the port.
    pub fn change(&self, change: impl FnOnce(&mut Config)) {
        change(&mut self.shared.state().config);
    }

    /// All requests so far.
    pub fn requests(&self) -> Requests {
        self.shared.state().requests.clone()
    }

    /// Clears the log of requests.
    pub fn clear_requests(&self) {
        self.shared.state().requests.clear();
    }

    /// Waits until an endpoint has received `count` requests in total.
    pub async fn asked(&self, endpoint: Endpoint, count: usize) {
        let mut arrivals = self.shared.arrivals.subscribe();
        while self.requests().count(endpoint) < count {
            if arrivals.changed().await.is_err() {
                return;
            }
        }
    }

    /// Delays requests to an endpoint, after they are logged, until the guard is dropped.
    #[must_use = "dropping it lets requests go on"]
    pub fn hold(&self, endpoint: Endpoint) -> Held {
        self.shared
            .held
            .send_modify(|held| *held.entry(endpoint).or_default() += 1);
        Held {
            shared: Arc::clone(&self.shared),
            endpoint,
        }
    }

    /// Makes an endpoint return another response, `forced.times` times.
    pub fn force(&self, endpoint: Endpoint, forced: Forced) {
        self.change(|config| drop(config.forced.insert(endpoint, forced)));
    }

    /// Starts a resource in front of `inner` that requires tokens of this server.
    pub async fn protect(
        &self,
        config: ResourceConfig,
        inner: Router,
    ) -> io::Result<ProtectedResource> {
        ProtectedResource::start(Arc::clone(&self.shared), config, inner).await
    }

    /// The public keys.
    pub fn jwks(&self) -> Value {
        let mut state = self.shared.state();
        state.key();
        let keys: Vec<Value> = state.keys.iter().map(|key| key.public_jwk()).collect();
        json!({"keys": keys})
    }

    /// Signs with another key from now on. Old tokens stay valid if `keep`.
    pub fn rotate_keys(&self, keep: bool) {
        self.shared.state().rotate_keys(keep);
    }

    /// Signs any claims as an access token, unchanged.
    pub fn mint(&self, claims: &Value) -> String {
        self.mint_with(&json!({"typ": "at+jwt"}), claims)
    }

    /// Signs any claims. Members of `header` are added to `alg` and `kid`, and removed if they are null.
    pub fn mint_with(&self, header: &Value, claims: &Value) -> String {
        self.shared.state().key().sign(header, claims)
    }

    /// The claims that an access token of the user would have now, to change and to mint.
    pub fn claims(&self, client_id: &str, scope: &str, resource: &str) -> Value {
        let state = self.shared.state();
        let scopes: Vec<String> = scope
            .split(' ')
            .filter(|scope| !scope.is_empty())
            .map(str::to_owned)
            .collect();
        let family = Family {
            client_id: client_id.to_owned(),
            subject: Some(state.config.subject.clone()),
            scopes: scopes.clone(),
            resources: Vec::new(),
            jkt: None,
            revoked: false,
        };
        state.claims(&family, &scopes, &[resource.to_owned()])
    }

    /// Issues an access token as the token endpoint would; introspection knows it.
    pub fn issue(&self, client_id: &str, scope: &str, resource: &str) -> String {
        let mut state = self.shared.state();
        let scopes: Vec<String> = scope
            .split(' ')
            .filter(|scope| !scope.is_empty())
            .map(str::to_owned)
            .collect();
        let resources = vec![resource.to_owned()];
        let family = Family {
            client_id: client_id.to_owned(),
            subject: Some(state.config.subject.clone()),
            scopes: scopes.clone(),
            resources: resources.clone(),
            jkt: None,
            revoked: false,
        };
        let id = random_text();
        state.families.insert(id.clone(), family);
        state.issue_access_token(&id, &scopes, &resources)
    }

    /// Issues an ID token of the user for a client.
    pub fn id_token(&self, client_id: &str) -> String {
        let mut state = self.shared.state();
        let claims = authorize::id_claims(&state, client_id, None);
        state.key().sign(&json!({}), &claims)
    }

    /// The claims of an access token of this server if it is valid now, as introspection returns them.
    pub fn active_claims(&self, token: &str) -> Option<Value> {
        self.shared.state().active_claims(token).cloned()
    }

    /// Revokes every access token; refresh tokens stay valid.
    pub fn revoke_access_tokens(&self) {
        for access in self.shared.state().access_tokens.values_mut() {
            access.revoked = true;
        }
    }

    /// Revokes all codes, access tokens and refresh tokens.
    pub fn revoke_everything(&self) {
        let mut state = self.shared.state();
        state.codes.clear();
        for family in state.families.values_mut() {
            family.revoked = true;
        }
    }

    /// Forgets dynamically registered clients.
    pub fn forget_clients(&self) {
        self.shared.state().clients.clear();
    }

    /// The dynamically registered clients.
    pub fn registered_clients(&self) -> Vec<Client> {
        self.shared.state().clients.values().cloned().collect()
    }

    /// Rejects all nonces that were issued so far.
    pub fn forget_nonces(&self) {
        self.shared.state().nonces.clear();
    }
}

impl Drop for AuthorizationServer {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn answer(
    extract::State(shared): extract::State<Arc<Shared>>,
    request: extract::Request,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_LIMIT).await else {
        return Reply::empty(413).into_response();
    };
    let request = read(&head, &body);
    if request.path.starts_with("/.control/") && shared.state().config.control {
        return control::answer(&shared, &request).into_response();
    }
    let (endpoint, number) = {
        let mut state = shared.state();
        let endpoint = endpoint(&state.config.issuer_path, &request.path);
        (endpoint, state.requests.add(endpoint, &request))
    };
    shared.arrivals.send_replace(());
    let mut held = shared.held.subscribe();
    let is_free =
        |held: &BTreeMap<Endpoint, usize>| held.get(&endpoint).is_none_or(|holders| *holders == 0);
    // Fails only without a sender, which `shared` owns.
    let _ = held.wait_for(is_free).await;
    let forced = forced(&mut shared.state().config, endpoint);
    let reply = match forced {
        Some(reply) => reply,
        None => ask(&shared, endpoint, &request).await,
    };
    shared.state().requests.answered(number, reply.status);
    reply.into_response()
}

fn endpoint(issuer_path: &str, path: &str) -> Endpoint {
    if metadata::is_well_known(path) {
        return Endpoint::Metadata;
    }
    match path.strip_prefix(issuer_path) {
        Some("/jwks") => Endpoint::Jwks,
        Some("/register") => Endpoint::Registration,
        Some("/authorize") => Endpoint::Authorization,
        Some("/decision") => Endpoint::Decision,
        Some("/token") => Endpoint::Token,
        Some("/introspect") => Endpoint::Introspection,
        Some("/revoke") => Endpoint::Revocation,
        _ => Endpoint::Nothing,
    }
}

fn forced(config: &mut Config, endpoint: Endpoint) -> Option<Reply> {
    let forced = config.forced.get_mut(&endpoint)?;
    if forced.times == Some(0) {
        return None;
    }
    forced.times = forced.times.map(|times| times - 1);
    let mut reply = Reply::text(forced.status, "application/json", forced.body.clone());
    for (name, value) in &forced.headers {
        reply = reply.with_header(name, value.clone());
    }
    Some(reply)
}

async fn ask(shared: &Shared, endpoint: Endpoint, request: &IncomingRequest) -> Reply {
    let allowed: &[&str] = match endpoint {
        Endpoint::Metadata | Endpoint::Jwks => &["GET"],
        Endpoint::Authorization => &["GET", "POST"],
        Endpoint::Nothing => return Reply::json(404, &json!({"error": "not_found"})),
        _ => &["POST"],
    };
    if !allowed.contains(&request.method.as_str()) {
        return Reply::empty(405).with_header("Allow", allowed.join(", "));
    }
    let answered = match endpoint {
        Endpoint::Metadata => Ok(metadata::document(&shared.state(), &request.path)),
        Endpoint::Jwks => Ok(metadata::jwks(&mut shared.state())),
        Endpoint::Registration => clients::register(shared, request),
        Endpoint::Authorization => Ok(authorize::authorize(shared, request).await),
        Endpoint::Decision => Ok(authorize::decide(shared, request)),
        Endpoint::Token => token::token(shared, request).await,
        Endpoint::Introspection => introspection::introspect(shared, request).await,
        Endpoint::Revocation => introspection::revoke(shared, request).await,
        Endpoint::Nothing => {
            Err(Refusal::new("invalid_request", "nothing is here").with_status(404))
        }
    };
    answered.unwrap_or_else(Refusal::reply)
}
