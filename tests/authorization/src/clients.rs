//! Clients (registered dynamically, described by a metadata document, or known in advance) and their authentication.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::Shared;
use crate::config::{AuthMethod, Client};
use crate::exchange::{IncomingRequest, Refusal, Reply};
use crate::keys::{self, random_text};
use crate::{fetch, redirects};

const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Seconds for which an assertion may be valid at most.
const ASSERTION_LIFETIME: i64 = 3600;

/// Registers a client (RFC 7591).
pub(crate) fn register(shared: &Shared, request: &IncomingRequest) -> Result<Reply, Refusal> {
    let wrong = |why: String| Refusal::new("invalid_client_metadata", why);
    let mut state = shared.state();
    if !state.config.registration {
        return Ok(Reply::json(404, &json!({"error": "not_found"})));
    }
    if !is_json(request) {
        return Err(wrong("the body has to be JSON".into()));
    }
    let mut said: Value =
        serde_json::from_str(&request.body).map_err(|error| wrong(error.to_string()))?;
    if said.is_object() && said["token_endpoint_auth_method"].is_null() {
        // The default of RFC 7591.
        said["token_endpoint_auth_method"] = "client_secret_basic".into();
    }
    let mut client: Client =
        serde_json::from_value(said).map_err(|error| wrong(error.to_string()))?;
    if !state.config.auth_methods.contains(&client.auth_method) {
        return Err(wrong(
            "this token_endpoint_auth_method isn't supported".into(),
        ));
    }
    let unknown = |grant: &&String| {
        state
            .config
            .grants
            .iter()
            .all(|known| known.name() != *grant)
    };
    if let Some(grant) = client.grants.iter().find(unknown) {
        return Err(wrong(format!("the grant {grant} isn't supported")));
    }
    if !state.config.registration_scopes && client.more.contains_key("scope") {
        return Err(wrong("scope isn't one of ours".into()));
    }
    let kind = client.more.get("application_type").and_then(Value::as_str);
    if let Some(kind) = kind.filter(|kind| !matches!(*kind, "native" | "web")) {
        return Err(wrong(format!("there is no application_type {kind}")));
    }
    for uri in &client.redirect_uris {
        redirects::check(uri, kind)?;
    }
    let sends_users = client.grants.is_empty()
        || client
            .grants
            .iter()
            .any(|grant| grant == "authorization_code");
    if sends_users && client.redirect_uris.is_empty() {
        return Err(Refusal::new(
            "invalid_redirect_uri",
            "redirect_uris is missing",
        ));
    }
    if client.grants.is_empty() {
        // The default of RFC 7591.
        client.grants = vec!["authorization_code".into()];
    }
    client.client_id = format!("client-{}", random_text());
    let has_secret = matches!(client.auth_method, AuthMethod::Basic | AuthMethod::Post);
    client.client_secret = has_secret.then(random_text);
    let mut said = json!(client);
    said["client_id_issued_at"] = state.now().into();
    if has_secret {
        said["client_secret_expires_at"] = 0.into();
    }
    state.clients.insert(client.client_id.clone(), client);
    Ok(Reply::json(201, &said))
}

fn is_json(request: &IncomingRequest) -> bool {
    let kind = request.header("content-type").unwrap_or_default();
    kind.split(';')
        .next()
        .is_some_and(|kind| kind.trim() == "application/json")
}

/// Returns the client with this id, or the reason why there is none, for the error response.
pub(crate) async fn find(shared: &Shared, id: &str) -> Result<Client, String> {
    let known_document = {
        let state = shared.state();
        let mut known = state.config.clients.iter();
        if let Some(client) = known.find(|client| client.client_id == id) {
            return Ok(client.clone());
        }
        if let Some(client) = state.clients.get(id) {
            return Ok(client.clone());
        }
        if !state.config.client_id_documents || !is_document_url(id) {
            return Err("no such client".into());
        }
        state.config.known_documents.get(id).cloned()
    };
    let document = match known_document {
        Some(document) => document,
        None => fetch::json(id)
            .await
            .map_err(|error| format!("its document: {error}"))?,
    };
    described(id, document)
}

/// Whether a client id is a URL of a metadata document: with a path, and without anything that a browser would
/// normalise away.
fn is_document_url(id: &str) -> bool {
    let rest = id.strip_prefix("https://").or_else(|| {
        // Plain HTTP is allowed on this machine, because a test may run everything on it.
        id.strip_prefix("http://")
            .filter(|rest| rest.starts_with("127.0.0.1:") || rest.starts_with("localhost:"))
    });
    rest.and_then(|rest| rest.split_once('/'))
        .is_some_and(|(authority, path)| {
            !authority.is_empty()
                && !authority.contains('@')
                && !path.is_empty()
                && !id.contains('#')
                && !path.split('/').any(|part| matches!(part, "." | ".."))
        })
}

/// Returns the client that its metadata document describes.
fn described(id: &str, document: Value) -> Result<Client, String> {
    if document["client_id"] != id {
        return Err("its document is about another client_id".into());
    }
    if document["client_name"].as_str().is_none_or(str::is_empty) {
        return Err("its document has no client_name".into());
    }
    if !document["client_secret"].is_null() || !document["client_secret_expires_at"].is_null() {
        return Err("its document has a secret".into());
    }
    let kind = document["application_type"].as_str().map(str::to_owned);
    let client: Client =
        serde_json::from_value(document).map_err(|error| format!("its document: {error}"))?;
    if matches!(client.auth_method, AuthMethod::Basic | AuthMethod::Post) {
        return Err("its document asks for a secret".into());
    }
    if client.redirect_uris.is_empty() {
        return Err("its document has no redirect_uris".into());
    }
    for uri in &client.redirect_uris {
        redirects::check(uri, kind.as_deref()).map_err(|refusal| refusal.description)?;
    }
    Ok(client)
}

/// Authenticates the client of a request to an endpoint by the one method that it is registered for.
pub(crate) async fn authenticate(
    shared: &Shared,
    request: &IncomingRequest,
) -> Result<Client, Refusal> {
    let basic = request.header("authorization").map(basic_credentials);
    let refused = |why: String| {
        let refusal = Refusal::new("invalid_client", why).with_status(401);
        match basic {
            Some(_) => {
                refusal.with_header("WWW-Authenticate", "Basic realm=\"authorization-server\"")
            }
            None => refusal,
        }
    };
    let secret = request.form.one("client_secret")?;
    let assertion = request.form.one("client_assertion")?;
    let said_id = request.form.one("client_id")?;
    let (method, id) = match (&basic, secret, assertion) {
        (Some(credentials), None, None) => {
            let credentials = credentials
                .as_ref()
                .ok_or_else(|| refused("not Basic".into()))?;
            (AuthMethod::Basic, credentials.0.clone())
        }
        (None, Some(_), None) => (
            AuthMethod::Post,
            request.form.needed("client_id")?.to_owned(),
        ),
        (None, None, Some(assertion)) => {
            if request.form.one("client_assertion_type")? != Some(ASSERTION) {
                return Err(refused("client_assertion_type isn't jwt-bearer".into()));
            }
            let (_, claims) =
                keys::read_unverified(assertion).ok_or_else(|| refused("no JWT".into()))?;
            let subject = claims["sub"].as_str().unwrap_or_default();
            (AuthMethod::PrivateKeyJwt, subject.to_owned())
        }
        (None, None, None) => (
            AuthMethod::None,
            request.form.needed("client_id")?.to_owned(),
        ),
        _ => {
            return Err(Refusal::new(
                "invalid_request",
                "authenticated in more than one way",
            ));
        }
    };
    if said_id.is_some_and(|said| said != id) {
        return Err(Refusal::new(
            "invalid_request",
            "client_id is another client's",
        ));
    }
    let client = find(shared, &id).await.map_err(refused)?;
    if client.auth_method != method || !shared.state().config.auth_methods.contains(&method) {
        return Err(refused(format!(
            "{:?} isn't how this client authenticates",
            method
        )));
    }
    let proven = match method {
        AuthMethod::None => true,
        AuthMethod::Basic => basic.as_ref().is_some_and(|credentials| {
            credentials.as_ref().map(|(_, secret)| secret) == client.client_secret.as_ref()
        }),
        AuthMethod::Post => secret == client.client_secret.as_deref(),
        AuthMethod::PrivateKeyJwt => {
            let assertion = assertion.unwrap_or_default();
            check_assertion(shared, &client, assertion)
                .await
                .map_err(refused)?;
            true
        }
    };
    if proven {
        Ok(client)
    } else {
        Err(refused("wrong secret".into()))
    }
}

/// The id and the secret of a `Basic` header, which are form-encoded before they are joined (RFC 6749, 2.3.1).
fn basic_credentials(header: &str) -> Option<(String, String)> {
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let joined = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (id, secret) = joined.split_once(':')?;
    Some((form_decoded(id)?, form_decoded(secret)?))
}

/// Decodes form-encoded text. Returns `None` if it is not form-encoded, to detect clients that forget to encode.
fn form_decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_fine = match byte {
            b'%' => (0..2).all(|_| bytes.next().is_some_and(|digit| digit.is_ascii_hexdigit())),
            byte => byte.is_ascii_alphanumeric() || b"-._~*+".contains(&byte),
        };
        if !is_fine {
            return None;
        }
    }
    let mut pairs = form_urlencoded::parse(text.as_bytes());
    Some(
        pairs
            .next()
            .map_or_else(String::new, |(whole, _)| whole.into_owned()),
    )
}

/// Checks a client's assertion about itself (RFC 7523), which must be valid and not used before.
async fn check_assertion(shared: &Shared, client: &Client, assertion: &str) -> Result<(), String> {
    let keys = match (&client.jwks, &client.jwks_uri) {
        (Some(keys), _) => keys.clone(),
        (None, Some(url)) => fetch::json(url)
            .await
            .map_err(|error| format!("jwks_uri: {error}"))?,
        (None, None) => return Err("the client has no keys".into()),
    };
    let (_, claims) = keys::verify(
        assertion,
        keys["keys"].as_array().map_or(&[], Vec::as_slice),
    )?;
    let mut state = shared.state();
    let now = state.now();
    if claims["iss"] != client.client_id.as_str() || claims["sub"] != client.client_id.as_str() {
        return Err("iss and sub have to be the client's id".into());
    }
    let mut audiences = vec![state.issuer()];
    if state.config.token_endpoint_is_audience {
        audiences.push(state.url("/token"));
    }
    if !audiences
        .iter()
        .any(|audience| claims["aud"] == audience.as_str())
    {
        return Err(format!("aud is {} and not the issuer", claims["aud"]));
    }
    check_times(&claims, now)?;
    let id = claims["jti"].as_str().ok_or("jti is missing")?;
    if !state.is_new(format!("assertion {} {id}", client.client_id)) {
        return Err("the assertion was used already".into());
    }
    Ok(())
}

/// Checks that a JWT of another party is valid now, and not for too long.
pub(crate) fn check_times(claims: &Value, now: i64) -> Result<(), String> {
    let expires = claims["exp"].as_i64().ok_or("exp is missing")?;
    if expires <= now {
        return Err("expired".into());
    }
    if expires > now + ASSERTION_LIFETIME {
        return Err("exp is too far off".into());
    }
    let begins = [&claims["nbf"], &claims["iat"]];
    // Another clock may be half a minute ahead of ours.
    if begins
        .iter()
        .any(|begin| begin.as_i64().is_some_and(|begin| begin > now + 30))
    {
        return Err("not good yet".into());
    }
    Ok(())
}
