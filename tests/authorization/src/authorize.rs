//! The authorization endpoint: asks the user for consent and redirects them to the client with a code.

use serde_json::Value;

use crate::Shared;
use crate::clients;
use crate::config::{Client, Consent, IssParameter, RefreshTokens};
use crate::exchange::{IncomingRequest, Parameters, Refusal, Reply};
use crate::keys::random_text;
use crate::redirects;
use crate::state::{Code, State};

/// Handles requests to `/authorize`.
pub(crate) async fn authorize(shared: &Shared, request: &IncomingRequest) -> Reply {
    let parameters = if request.method == "POST" {
        &request.form
    } else {
        &request.query
    };
    let (client, redirect_uri) = match target(shared, parameters).await {
        Ok(found) => found,
        // A user is never redirected to a URI that isn't the client's.
        Err(refusal) => return page(400, "This can't go on", &refusal.description),
    };
    let mut state = shared.state();
    let back = parameters.get("state").map(str::to_owned);
    match code(&state, &client, redirect_uri, back.clone(), parameters) {
        Err(refusal) => refused(&state, redirect_uri, back.as_deref(), &refusal),
        Ok(code) => match state.config.consent {
            Consent::Auto => granted(&mut state, code),
            Consent::Denied => denied(&state, &code),
            Consent::Page => {
                let ticket = random_text();
                let shown = consent_page(&state, &client, &code, &ticket);
                state.pending.insert(ticket, code);
                shown
            }
        },
    }
}

/// Handles the form of the consent page.
pub(crate) fn decide(shared: &Shared, request: &IncomingRequest) -> Reply {
    let mut state = shared.state();
    let ticket = request.form.get("ticket").unwrap_or_default();
    match state.pending.remove(ticket) {
        None => page(400, "This can't go on", "The page was answered already."),
        Some(code) if request.form.get("decision") == Some("allow") => granted(&mut state, code),
        Some(code) => denied(&state, &code),
    }
}

/// Returns the client and its redirect URI.
async fn target<'a>(
    shared: &Shared,
    parameters: &'a Parameters,
) -> Result<(Client, &'a str), Refusal> {
    let id = parameters.needed("client_id")?;
    let client = clients::find(shared, id)
        .await
        .map_err(|why| Refusal::new("invalid_client", why))?;
    let redirect_uri = parameters.needed("redirect_uri")?;
    if !redirects::is_registered(redirect_uri, &client.redirect_uris) {
        return Err(Refusal::new(
            "invalid_request",
            "redirect_uri isn't one of the client's",
        ));
    }
    Ok((client, redirect_uri))
}

/// Checks the parameters whose errors are reported to the client by a redirect.
fn code(
    state: &State,
    client: &Client,
    redirect_uri: &str,
    back: Option<String>,
    parameters: &Parameters,
) -> Result<Code, Refusal> {
    let invalid = |why: &str| Err(Refusal::new("invalid_request", why));
    if parameters.needed("response_type")? != "code" {
        return Err(Refusal::new(
            "unsupported_response_type",
            "response_type isn't code",
        ));
    }
    if !client.grants.is_empty()
        && !client
            .grants
            .iter()
            .any(|grant| grant == "authorization_code")
    {
        return Err(Refusal::new(
            "unauthorized_client",
            "the client doesn't use codes",
        ));
    }
    parameters.one("state")?;
    let challenge = parameters.needed("code_challenge")?;
    if parameters.needed("code_challenge_method")? != "S256" {
        return invalid("code_challenge_method isn't S256");
    }
    let is_base64 = challenge
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if challenge.len() != 43 || !is_base64 {
        return invalid("code_challenge isn't the SHA-256 of anything");
    }
    Ok(Code {
        client_id: client.client_id.clone(),
        redirect_uri: redirect_uri.to_owned(),
        state: back,
        challenge: challenge.to_owned(),
        nonce: parameters.one("nonce")?.map(str::to_owned),
        jkt: parameters.one("dpop_jkt")?.map(str::to_owned),
        scopes: scopes(state, parameters.one("scope")?)?,
        resources: resources(state, parameters)?,
        expires: state.now() + state.config.code_lifetime,
        family: None,
    })
}

/// Returns the requested scopes that can be granted.
pub(crate) fn scopes(state: &State, requested: Option<&str>) -> Result<Vec<String>, Refusal> {
    let config = &state.config;
    let mut granted: Vec<String> = Vec::new();
    for scope in requested
        .unwrap_or_default()
        .split(' ')
        .filter(|scope| !scope.is_empty())
    {
        if granted.iter().any(|known| known == scope) {
            continue;
        }
        if config.scopes.is_empty() || config.scopes.iter().any(|known| known == scope) {
            granted.push(scope.to_owned());
        } else if config.unknown_scope_is_error {
            return Err(Refusal::new(
                "invalid_scope",
                format!("there is no scope {scope:?}"),
            ));
        }
    }
    Ok(granted)
}

/// Returns the requested resources (RFC 8707).
pub(crate) fn resources(state: &State, parameters: &Parameters) -> Result<Vec<String>, Refusal> {
    let config = &state.config;
    let requested: Vec<String> = parameters.all("resource").map(str::to_owned).collect();
    let invalid = |why: String| Err(Refusal::new("invalid_target", why));
    if requested.is_empty() && config.resource_required {
        return invalid("resource is missing".into());
    }
    for resource in &requested {
        if !resource.contains("://") || resource.contains('#') {
            return invalid(format!(
                "{resource:?} is no absolute URI without a fragment"
            ));
        }
        if !config.resources.is_empty() && !config.resources.contains(resource) {
            return invalid(format!("{resource:?} is unknown"));
        }
    }
    Ok(requested)
}

fn granted(state: &mut State, code: Code) -> Reply {
    let text = random_text();
    let reply = back(
        state,
        &code.redirect_uri,
        code.state.as_deref(),
        &[("code", &text)],
    );
    state.codes.insert(text, code);
    reply
}

fn denied(state: &State, code: &Code) -> Reply {
    let refusal = Refusal::new("access_denied", "the user said no");
    refused(state, &code.redirect_uri, code.state.as_deref(), &refusal)
}

fn refused(state: &State, redirect_uri: &str, said: Option<&str>, refusal: &Refusal) -> Reply {
    let why = [
        ("error", refusal.code),
        ("error_description", &refusal.description),
    ];
    back(state, redirect_uri, said, &why)
}

/// Redirects the user to the client.
fn back(state: &State, redirect_uri: &str, said: Option<&str>, what: &[(&str, &str)]) -> Reply {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(what);
    if let Some(said) = said {
        query.append_pair("state", said);
    }
    match &state.config.iss {
        IssParameter::Right => drop(query.append_pair("iss", &state.issuer())),
        IssParameter::Missing => {}
        IssParameter::Wrong(other) => drop(query.append_pair("iss", other)),
    }
    let mark = if redirect_uri.contains('?') { '&' } else { '?' };
    Reply::redirect(format!("{redirect_uri}{mark}{}", query.finish()))
}

/// Whether a refresh token is issued for the granted scopes.
pub(crate) fn has_refresh(state: &State, client: &Client, scopes: &[String]) -> bool {
    let may =
        client.grants.is_empty() || client.grants.iter().any(|grant| grant == "refresh_token");
    may && match state.config.refresh {
        RefreshTokens::Always => true,
        RefreshTokens::OfflineAccess => scopes.iter().any(|scope| scope == "offline_access"),
        RefreshTokens::Never => false,
    }
}

fn consent_page(state: &State, client: &Client, code: &Code, ticket: &str) -> Reply {
    let name = client.client_name.as_deref().unwrap_or(&client.client_id);
    let list = |items: &[String]| -> String {
        let items = items
            .iter()
            .map(|item| format!("<li>{}</li>", escaped(item)));
        items.collect()
    };
    page_of(
        200,
        "May it?",
        &format!(
            "<p><b>{}</b> asks to act for {} at</p><ul>{}</ul><p>and to</p><ul>{}</ul>\
             <form method=\"post\" action=\"{}\"><input type=\"hidden\" name=\"ticket\" value=\"{ticket}\">\
             <button name=\"decision\" value=\"allow\">Allow</button> \
             <button name=\"decision\" value=\"deny\">Deny</button></form>",
            escaped(name),
            escaped(&state.config.subject),
            list(&code.resources),
            list(&code.scopes),
            escaped(&state.url("/decision")),
        ),
    )
}

fn page(status: u16, title: &str, text: &str) -> Reply {
    page_of(status, title, &format!("<p>{}</p>", escaped(text)))
}

fn page_of(status: u16, title: &str, content: &str) -> Reply {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <style>body{{font:16px/1.5 sans-serif;max-width:30em;margin:4em auto}}</style>\
         <h1>{title}</h1>{content}</html>"
    );
    Reply::text(status, "text/html; charset=utf-8", html)
        .with_header(
            "Content-Security-Policy",
            "default-src 'none'; style-src 'unsafe-inline'",
        )
        .with_header("X-Frame-Options", "DENY")
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the claims of an ID token.
pub(crate) fn id_claims(state: &State, client_id: &str, nonce: Option<&str>) -> Value {
    let now = state.now();
    let mut claims = serde_json::json!({
        "iss": state.issuer(),
        "sub": state.config.subject,
        "aud": client_id,
        "exp": now + state.config.token_lifetime,
        "iat": now,
    });
    if let Some(nonce) = nonce {
        claims["nonce"] = nonce.into();
    }
    claims
}
