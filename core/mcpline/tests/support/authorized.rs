//! A server that requires tokens, the authorization server that issues them, and requests over real sockets.

use std::net::SocketAddr;
use std::sync::Arc;

use authorization_server::{AuthorizationServer, Config};
use mcpline::Server;
use mcpline::auth::{ResourceServer, ResourceServerBuilder};
use mcpline::protocol::Challenge;
use mcpline::transport::Stop;
use mcpline::transport::http::{Http, HttpOptions};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::connection::Connection;

/// A standalone server with its authorization server.
pub(crate) struct Rig {
    pub(crate) issuer: AuthorizationServer,
    pub(crate) address: SocketAddr,
    pub(crate) resource: String,
    _stop: Stop,
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Rig {
    /// Serves `server` to clients with a token of the issuer that has the scope `mcp`; `change` adjusts the resource
    /// server.
    pub(crate) async fn start(
        server: Server,
        change: impl FnOnce(ResourceServerBuilder, &AuthorizationServer) -> ResourceServerBuilder,
    ) -> Self {
        Self::start_with(Config::default(), server, change).await
    }

    pub(crate) async fn start_with(
        config: Config,
        server: Server,
        change: impl FnOnce(ResourceServerBuilder, &AuthorizationServer) -> ResourceServerBuilder,
    ) -> Self {
        let issuer = AuthorizationServer::start(config).await.expect("a port");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let resource = format!("http://{address}/mcp");
        let builder = ResourceServer::builder(&resource).required_scopes(["mcp"]);
        let auth = change(builder, &issuer).build().expect("usable options");
        let mut options = HttpOptions::default();
        options.auth = Some(Arc::new(auth));
        options.keep_alive_interval = std::time::Duration::from_millis(20);
        let http = Http::from_listener(listener, options).expect("an address");
        let stop = Stop::new();
        let signal = stop.clone();
        tokio::spawn(async move { server.serve_until(http, signal).await });
        Self {
            issuer,
            address,
            resource,
            _stop: stop,
        }
    }

    /// Returns the claims of a valid token, for tests to change.
    pub(crate) fn claims(&self, scope: &str) -> Value {
        self.issuer.claims("client", scope, &self.resource)
    }

    /// Returns a valid token.
    pub(crate) fn token(&self, scope: &str) -> String {
        self.issuer.mint(&self.claims(scope))
    }

    /// Returns a valid token of another subject.
    pub(crate) fn token_of(&self, subject: &str, scope: &str) -> String {
        let mut claims = self.claims(scope);
        claims["sub"] = subject.into();
        self.issuer.mint(&claims)
    }

    /// Sends one request on a connection of its own and reads the whole response.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        ask(self.address, method, path, headers, body).await
    }

    /// Sends a POST to the MCP endpoint, with the token unless it is empty.
    pub(crate) async fn post(&self, token: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let bearer = format!("Bearer {token}");
        let mut all = headers.to_vec();
        if !token.is_empty() {
            all.push(("Authorization", &bearer));
        }
        self.ask("POST", "/mcp", &all, body).await
    }

    /// Sends one request with a token.
    pub(crate) async fn ask_with(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str())];
        self.ask(method, path, &headers, body).await
    }

    /// Sends a 2026-07-28 request.
    pub(crate) async fn modern(&self, token: &str, method: &str, params: Value) -> Answer {
        let (name, body) = modern(method, params);
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
            ("Mcp-Name", &name),
        ];
        let headers = if name.is_empty() {
            &headers[..2]
        } else {
            &headers[..]
        };
        self.post(token, headers, &body).await
    }

    /// Performs the handshake and returns the session's id.
    pub(crate) async fn session(&self, token: &str, revision: &str) -> String {
        let begun = self
            .post(token, &[], &super::requests::initialize(revision))
            .await;
        assert_eq!(begun.status, 200, "{begun:?}");
        let id = begun
            .header("mcp-session-id")
            .expect("a session")
            .to_owned();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let accepted = self.post(token, &[("Mcp-Session-Id", &id)], &ready).await;
        assert_eq!(accepted.status, 202);
        id
    }

    /// Sends a request in a session.
    pub(crate) async fn in_session(
        &self,
        token: &str,
        session: &str,
        method: &str,
        params: Value,
    ) -> Answer {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(token, &[("Mcp-Session-Id", session)], &body)
            .await
    }

    /// Opens a connection and sends a request that is answered with a stream.
    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        token: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Connection {
        let bearer = format!("Bearer {token}");
        let mut all = headers.to_vec();
        all.push(("Authorization", &bearer));
        let mut connection = Connection::open(self.address).await;
        connection.send(method, path, &all, body).await;
        connection
    }
}

/// Returns the name that a 2026-07-28 request repeats in a header, and the request's body.
pub(crate) fn modern(method: &str, mut params: Value) -> (String, Value) {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"elicitation": {"form": {}}});
    let name = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        _ => None,
    };
    let name = name.unwrap_or_default().to_owned();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    (name, body)
}

/// Sends one request on a connection of its own and reads the whole response.
pub(crate) async fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Answer {
    let mut connection = Connection::open(address).await;
    let mut all = headers.to_vec();
    all.push(("Connection", "close"));
    connection.send(method, path, &all, body).await;
    connection.until(None).await;
    let (head, body) = connection.seen.split_once("\r\n\r\n").expect("a head");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Answer {
        status: status.expect("a status"),
        head: head.to_owned(),
        body: serde_json::from_str(body).unwrap_or(Value::Null),
    }
}

impl Answer {
    /// Returns the first header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers(name).into_iter().next()
    }

    fn headers(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().skip(1);
        let pairs = lines.filter_map(|line| line.split_once(": "));
        pairs
            .filter(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect()
    }

    /// Returns the challenges of the response.
    pub(crate) fn challenges(&self) -> Vec<Challenge> {
        Challenge::read(&self.headers("www-authenticate").join(", "))
    }

    /// Returns the only `Bearer` challenge.
    pub(crate) fn bearer(&self) -> Challenge {
        let found: Vec<_> = self.challenges();
        let mut bearer = found.into_iter().filter(|one| one.is("Bearer"));
        let challenge = bearer
            .next()
            .unwrap_or_else(|| panic!("no challenge: {self:?}"));
        assert!(bearer.next().is_none());
        challenge
    }

    /// Returns the names in the result of a list request.
    pub(crate) fn names(&self, list: &str) -> Vec<&str> {
        let items = self.body["result"][list].as_array();
        let items = items.unwrap_or_else(|| panic!("no list: {self:?}"));
        items
            .iter()
            .filter_map(|item| item["name"].as_str())
            .collect()
    }
}
