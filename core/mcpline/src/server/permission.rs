//! Whether a caller may use what it asks for.
//!
//! Scopes are what an authorization server lets a client do in somebody's name. They hold where a caller is known by them:
//! over HTTP, where requests come with tokens, and over a transport that names its principal. Whoever runs the server as
//! a program, or within its own, needs no permission of anybody. Over HTTP nobody has scopes until a token, or a layer in
//! front, says so: a server whose tools want scopes and that is served without authorization serves these tools to nobody.

use mcpline_protocol::RpcError;
use mcpline_protocol::Scopes;

use crate::message_sink::MessageSink;
use crate::warning_limit::warn_limited;

use super::connection::Connection;
use super::request_info::HttpInfo;

/// Whether the caller has these scopes.
pub(super) fn has(connection: &Connection, http: Option<&HttpInfo>, needed: &Scopes) -> bool {
    if needed.is_empty() {
        return true;
    }
    match (http, connection.auth()) {
        (Some(http), _) => http.auth.as_ref().is_some_and(|auth| auth.may(needed)),
        (None, Some(principal)) => principal.may(needed),
        (None, None) => true,
    }
}

/// Checks that the caller has these scopes, and tells the transport which are needed if it hasn't: all of them in one
/// challenge, and the same whether the caller could know of what it asked for or not.
///
/// # Errors
///
/// [`ErrorCode::INSUFFICIENT_SCOPE`](mcpline_protocol::ErrorCode::INSUFFICIENT_SCOPE)
pub(super) fn check(
    connection: &Connection,
    http: Option<&HttpInfo>,
    sink: &dyn MessageSink,
    needed: &Scopes,
) -> Result<(), RpcError> {
    if has(connection, http, needed) {
        return Ok(());
    }
    if http.is_some_and(|http| http.auth.is_none()) {
        warn_limited!(
            scopes = %needed,
            "refused a request that needs scopes: this HTTP server has no authorization (`auth`), so no caller has scopes"
        );
    }
    sink.demand(needed);
    Err(RpcError::insufficient_scope(needed))
}
