//! Token introspection (RFC 7662) and revocation (RFC 7009).

use serde_json::{Value, json};

use crate::Shared;
use crate::clients::authenticate;
use crate::config::AuthMethod;
use crate::exchange::{IncomingRequest, Refusal, Reply};

/// Handles requests to `/introspect`.
pub(crate) async fn introspect(
    shared: &Shared,
    request: &IncomingRequest,
) -> Result<Reply, Refusal> {
    let client = authenticate(shared, request).await?;
    if client.auth_method == AuthMethod::None {
        return Err(Refusal::new("invalid_client", "anybody could ask").with_status(401));
    }
    let token = request.form.needed("token")?;
    let state = shared.state();
    let mut said = match state.active_claims(token) {
        Some(claims) => claims.clone(),
        None => return Ok(Reply::json(200, &json!({"active": false}))),
    };
    said["active"] = true.into();
    let bound = !said["cnf"].is_null();
    said["token_type"] = if bound { "DPoP" } else { "Bearer" }.into();
    said["username"] = Value::clone(&said["sub"]);
    Ok(Reply::json(200, &said))
}

/// Handles requests to `/revoke`.
pub(crate) async fn revoke(shared: &Shared, request: &IncomingRequest) -> Result<Reply, Refusal> {
    let client = authenticate(shared, request).await?;
    let token = request.form.needed("token")?;
    let mut state = shared.state();
    let refresh = state
        .refresh_tokens
        .get(token)
        .map(|refresh| refresh.family.clone());
    let access = state
        .access_tokens
        .get(token)
        .map(|access| access.family.clone());
    let Some(id) = refresh.as_ref().or(access.as_ref()) else {
        // An unknown token counts as revoked.
        return Ok(Reply::empty(200));
    };
    if state
        .families
        .get(id)
        .is_none_or(|family| family.client_id != client.client_id)
    {
        return Err(Refusal::new(
            "invalid_request",
            "the token is another client's",
        ));
    }
    if let Some(id) = refresh {
        state.revoke_family(&id);
    } else if let Some(access) = state.access_tokens.get_mut(token) {
        access.revoked = true;
    }
    Ok(Reply::empty(200))
}
