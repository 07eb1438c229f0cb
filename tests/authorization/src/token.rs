//! The token endpoint: issues tokens for a code, a refresh token, client credentials or an assertion.

use serde_json::{Value, json};

use crate::Shared;
use crate::authorize::{has_refresh, id_claims, resources, scopes};
use crate::clients::{authenticate, check_times};
use crate::config::{AuthMethod, Client, Grant};
use crate::dpop;
use crate::exchange::{IncomingRequest, Parameters, Refusal, Reply};
use crate::keys::{self, challenge, random_text};
use crate::state::{Family, State};

const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
/// The `typ` of an identity assertion grant.
const ID_JAG_TYPE: &str = "oauth-id-jag+jwt";
/// Lifetime of such a grant in seconds.
const ID_JAG_LIFETIME: i64 = 300;

/// Handles requests to `/token`.
pub(crate) async fn token(shared: &Shared, request: &IncomingRequest) -> Result<Reply, Refusal> {
    let name = request.form.needed("grant_type")?;
    let grant = {
        let state = shared.state();
        let mut grants = state.config.grants.iter();
        grants.find(|grant| grant.name() == name).copied()
    };
    let unsupported = || Refusal::new("unsupported_grant_type", format!("{name} isn't supported"));
    let grant = grant.ok_or_else(unsupported)?;
    let client = if grant == Grant::JwtBearer && has_no_credentials(request) {
        // Authentication is optional here (RFC 7523, 2.1): the assertion is enough.
        Client::default()
    } else {
        authenticate(shared, request).await?
    };
    if !client.grants.is_empty() && !client.grants.iter().any(|known| known == name) {
        return Err(Refusal::new(
            "unauthorized_client",
            format!("the client isn't registered for {name}"),
        ));
    }
    let mut state = shared.state();
    let state = &mut *state;
    let url = state.url("/token");
    let key = dpop::proven(state, request, &url, None)?;
    if key.is_none() && client.dpop_bound_access_tokens {
        return Err(Refusal::new(
            "invalid_dpop_proof",
            "the client is registered for bound tokens",
        ));
    }
    let form = &request.form;
    let given = match grant {
        Grant::AuthorizationCode => for_code(state, &client, form, key),
        Grant::RefreshToken => for_refresh_token(state, &client, form, key),
        Grant::ClientCredentials => for_client(state, &client, form, key),
        Grant::JwtBearer => for_assertion(state, &client, form, key),
        Grant::TokenExchange => for_token(state, &client, form),
    }?;
    let reply = Reply::json(200, &given);
    Ok(if state.config.dpop_nonces {
        reply.with_header("DPoP-Nonce", state.new_nonce())
    } else {
        reply
    })
}

fn has_no_credentials(request: &IncomingRequest) -> bool {
    request.header("authorization").is_none()
        && ["client_id", "client_assertion"]
            .iter()
            .all(|name| request.form.get(name).is_none())
}

fn invalid_grant(why: impl Into<String>) -> Refusal {
    Refusal::new("invalid_grant", why)
}

fn for_code(
    state: &mut State,
    client: &Client,
    form: &Parameters,
    key: Option<String>,
) -> Result<Value, Refusal> {
    let text = form.needed("code")?;
    let verifier = form.needed("code_verifier")?;
    let redirect_uri = form.needed("redirect_uri")?;
    let code = state
        .codes
        .get(text)
        .cloned()
        .ok_or_else(|| invalid_grant("there is no such code"))?;
    if code.client_id != client.client_id {
        return Err(invalid_grant("the code is another client's"));
    }
    if let Some(family) = &code.family {
        state.revoke_family(family);
        return Err(invalid_grant("the code was used already"));
    }
    let wrong = if code.expires <= state.now() {
        "the code has expired"
    } else if code.redirect_uri != redirect_uri {
        "redirect_uri isn't the one that the code was sent to"
    } else if !is_verifier(verifier) || challenge(verifier) != code.challenge {
        "code_verifier doesn't fit the challenge"
    } else if code.jkt.is_some() && code.jkt != key {
        "the code is bound to another key"
    } else {
        ""
    };
    if !wrong.is_empty() {
        // A code can be tried once.
        state.codes.remove(text);
        return Err(invalid_grant(wrong));
    }
    let granted = narrowed(state, form, &code.resources)?;
    let id = random_text();
    let family = Family {
        client_id: client.client_id.clone(),
        subject: Some(state.config.subject.clone()),
        scopes: code.scopes.clone(),
        resources: code.resources.clone(),
        jkt: key,
        revoked: false,
    };
    state.families.insert(id.clone(), family);
    if let Some(code) = state.codes.get_mut(text) {
        code.family = Some(id.clone());
    }
    let mut given = response(state, &id, &code.scopes, &granted);
    if has_refresh(state, client, &code.scopes) {
        given["refresh_token"] = state.issue_refresh_token(&id).into();
    }
    if code.scopes.iter().any(|scope| scope == "openid") {
        let claims = id_claims(state, &client.client_id, code.nonce.as_deref());
        given["id_token"] = state.key().sign(&json!({}), &claims).into();
    }
    Ok(given)
}

fn is_verifier(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    (43..=128).contains(&text.len()) && text.bytes().all(fits)
}

fn for_refresh_token(
    state: &mut State,
    client: &Client,
    form: &Parameters,
    key: Option<String>,
) -> Result<Value, Refusal> {
    let text = form.needed("refresh_token")?;
    let unknown = || invalid_grant("there is no such refresh token");
    let token = state.refresh_tokens.get(text).ok_or_else(unknown)?;
    let (id, used, expires) = (token.family.clone(), token.used, token.expires);
    let family = state.families.get(&id).cloned().ok_or_else(unknown)?;
    if family.client_id != client.client_id {
        return Err(invalid_grant("the refresh token is another client's"));
    }
    if used {
        // The token was used by two parties, and it is unknown which is the legitimate one.
        state.revoke_family(&id);
        return Err(invalid_grant("the refresh token was used already"));
    }
    if family.revoked || expires <= state.now() {
        return Err(invalid_grant("the refresh token isn't good any more"));
    }
    if client.auth_method == AuthMethod::None && family.jkt.is_some() && family.jkt != key {
        return Err(invalid_grant("the refresh token is bound to another key"));
    }
    let mut granted = scopes(state, form.one("scope")?)?;
    if granted.is_empty() {
        granted.clone_from(&family.scopes);
    }
    if let Some(scope) = granted.iter().find(|scope| !family.scopes.contains(scope)) {
        return Err(Refusal::new(
            "invalid_scope",
            format!("{scope:?} was never granted"),
        ));
    }
    let resources = narrowed(state, form, &family.resources)?;
    if let Some(family) = state.families.get_mut(&id) {
        family.jkt = key;
    }
    let mut given = response(state, &id, &granted, &resources);
    if state.config.rotation {
        if let Some(token) = state.refresh_tokens.get_mut(text) {
            token.used = true;
        }
        given["refresh_token"] = state.issue_refresh_token(&id).into();
    }
    Ok(given)
}

/// Returns the requested resources, which must be among those that were granted.
fn narrowed(state: &State, form: &Parameters, granted: &[String]) -> Result<Vec<String>, Refusal> {
    let requested = resources(state, form)?;
    if let Some(resource) = requested
        .iter()
        .find(|resource| !granted.contains(resource))
    {
        return Err(Refusal::new(
            "invalid_target",
            format!("{resource:?} was never granted"),
        ));
    }
    Ok(if requested.is_empty() {
        granted.to_vec()
    } else {
        requested
    })
}

fn for_client(
    state: &mut State,
    client: &Client,
    form: &Parameters,
    key: Option<String>,
) -> Result<Value, Refusal> {
    if client.auth_method == AuthMethod::None {
        return Err(Refusal::new(
            "unauthorized_client",
            "anybody can say to be a public client",
        ));
    }
    let family = Family {
        client_id: client.client_id.clone(),
        subject: None,
        scopes: scopes(state, form.one("scope")?)?,
        resources: resources(state, form)?,
        jkt: key,
        revoked: false,
    };
    Ok(alone(state, family))
}

fn for_assertion(
    state: &mut State,
    client: &Client,
    form: &Parameters,
    key: Option<String>,
) -> Result<Value, Refusal> {
    let assertion = form.needed("assertion")?;
    let (header, claims) = believed(state, assertion).map_err(invalid_grant)?;
    let subject = claims["sub"]
        .as_str()
        .ok_or_else(|| invalid_grant("sub is missing"))?;
    let is_grant = header["typ"] == ID_JAG_TYPE;
    let (granted, targets) = if is_grant {
        check_identity_grant(state, client, &claims).map_err(invalid_grant)?;
        let requested = form.one("scope")?.or_else(|| claims["scope"].as_str());
        let targets = match &claims["resource"] {
            Value::String(one) => vec![one.clone()],
            _ => resources(state, form)?,
        };
        (scopes(state, requested)?, targets)
    } else {
        (scopes(state, form.one("scope")?)?, resources(state, form)?)
    };
    let family = Family {
        client_id: if client.client_id.is_empty() {
            subject.to_owned()
        } else {
            client.client_id.clone()
        },
        subject: Some(subject.to_owned()),
        scopes: granted,
        resources: targets,
        jkt: key,
        revoked: false,
    };
    Ok(alone(state, family))
}

/// Returns the header and the claims of an assertion by a trusted issuer, if it is for this server and valid now.
fn believed(state: &State, assertion: &str) -> Result<(Value, Value), String> {
    let (_, claims) = keys::read_unverified(assertion).ok_or("the assertion is no JWT")?;
    let mut trusted = state.config.trusted_issuers.iter();
    let issuer = trusted.find(|trusted| claims["iss"] == trusted.issuer.as_str());
    let issuer = issuer.ok_or("the assertion's issuer isn't trusted")?;
    let keys = issuer.jwks["keys"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let (header, claims) = keys::verify(assertion, keys)?;
    check_times(&claims, state.now())?;
    let mut audiences = vec![state.issuer()];
    if state.config.token_endpoint_is_audience {
        audiences.push(state.url("/token"));
    }
    let said = match &claims["aud"] {
        Value::Array(several) => several.clone(),
        one => vec![one.clone()],
    };
    if !audiences
        .iter()
        .any(|audience| said.iter().any(|said| *said == audience.as_str()))
    {
        return Err("the assertion isn't for this issuer".into());
    }
    Ok((header, claims))
}

fn check_identity_grant(state: &mut State, client: &Client, claims: &Value) -> Result<(), String> {
    if claims["client_id"] != client.client_id.as_str() {
        return Err("the grant is for another client".into());
    }
    let id = claims["jti"].as_str().ok_or("jti is missing")?;
    if !state.is_new(format!("grant {} {id}", claims["iss"])) {
        return Err("the grant was used already".into());
    }
    Ok(())
}

/// Issues an ID-JAG for an ID token of this server, as an enterprise's identity provider does.
fn for_token(state: &mut State, client: &Client, form: &Parameters) -> Result<Value, Refusal> {
    let invalid = |why: &str| Refusal::new("invalid_request", why);
    if form.needed("requested_token_type")? != ID_JAG {
        return Err(invalid("requested_token_type isn't id-jag"));
    }
    if form.needed("subject_token_type")? != ID_TOKEN {
        return Err(invalid("subject_token_type isn't id_token"));
    }
    let audience = form.needed("audience")?;
    let keys: Vec<Value> = state.keys.iter().map(|key| key.public_jwk()).collect();
    let verified = keys::verify(form.needed("subject_token")?, &keys);
    let (_, subject) = verified.map_err(|why| invalid(&why))?;
    check_times(&subject, state.now()).map_err(|why| invalid(&why))?;
    if subject["iss"] != state.issuer() || subject["aud"] != client.client_id.as_str() {
        return Err(invalid("the subject token is somebody else's"));
    }
    let granted = scopes(state, form.one("scope")?)?;
    let now = state.now();
    let mut claims = json!({
        "iss": state.issuer(),
        "sub": subject["sub"],
        "aud": audience,
        // The client's id at the other server, which is the same here.
        "client_id": client.client_id,
        "jti": random_text(),
        "iat": now,
        "exp": now + ID_JAG_LIFETIME,
        "scope": granted.join(" "),
    });
    if let Some(resource) = form.one("resource")? {
        claims["resource"] = resource.into();
    }
    let grant = state.key().sign(&json!({"typ": ID_JAG_TYPE}), &claims);
    Ok(json!({
        "issued_token_type": ID_JAG,
        "access_token": grant,
        "token_type": "N_A",
        "expires_in": ID_JAG_LIFETIME,
        "scope": granted.join(" "),
    }))
}

/// Issues a token without a refresh token.
fn alone(state: &mut State, family: Family) -> Value {
    let id = random_text();
    let (scopes, resources) = (family.scopes.clone(), family.resources.clone());
    state.families.insert(id.clone(), family);
    response(state, &id, &scopes, &resources)
}

fn response(state: &mut State, id: &str, scopes: &[String], resources: &[String]) -> Value {
    let token = state.issue_access_token(id, scopes, resources);
    let bound = state
        .families
        .get(id)
        .is_some_and(|family| family.jkt.is_some());
    let mut given = json!({
        "access_token": token,
        "token_type": if bound { "DPoP" } else { "Bearer" },
        "scope": scopes.join(" "),
    });
    if state.config.says_lifetime {
        given["expires_in"] = state.config.token_lifetime.into();
    }
    given
}
