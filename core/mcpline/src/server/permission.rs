//! Checks whether a caller has the scopes that a feature requires.
//!
//! An authorization server grants scopes to a client that acts for a user. They apply where the transport identifies
//! the caller: over HTTP, where requests carry tokens, and on transports with a principal. On stdio and in memory the
//! caller is the user who runs the server and needs no scopes. Over HTTP a caller has no scopes until a token, or a
//! layer in front, grants them: without authorization, tools that require scopes cannot be called.

use mcpline_protocol::RpcError;
use mcpline_protocol::Scopes;

use crate::message_sink::MessageSink;
use crate::warning_limit::warn_limited;

use super::connection::Connection;
use super::request_info::HttpInfo;

/// Returns whether the caller has these scopes.
pub(super) fn has_scopes(
    connection: &Connection,
    http: Option<&HttpInfo>,
    needed: &Scopes,
) -> bool {
    if needed.is_empty() {
        return true;
    }
    match (http, connection.auth()) {
        (Some(http), _) => http
            .auth
            .as_ref()
            .is_some_and(|auth| auth.has_scopes(needed)),
        (None, Some(principal)) => principal.has_scopes(needed),
        (None, None) => true,
    }
}

/// Checks that the caller has these scopes; if not, passes them to the transport's challenge. The challenge names all
/// of them, and is the same whether or not the caller could know that the feature exists.
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
    if has_scopes(connection, http, needed) {
        return Ok(());
    }
    if http.is_some_and(|http| http.auth.is_none()) {
        warn_limited!(
            scopes = %needed,
            "refused a request that needs scopes: this HTTP server has no authorization (`auth`), so no caller has scopes"
        );
    }
    sink.report_missing_scopes(needed);
    Err(RpcError::insufficient_scope(needed))
}
