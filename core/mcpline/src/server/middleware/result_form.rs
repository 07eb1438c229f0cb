//! The form of results that middleware returns: what the client's revision requires of each, and how they count.

use mcpline_protocol::RpcError;
use mcpline_protocol::wire::{JsonKind, Method, Raw};

use super::super::call::CurrentRequest;
use super::super::request_log::RequestOutcome;

/// Adds the members that the client's revision requires of each result and that are missing.
///
/// # Errors
///
/// The result is not an object.
pub(super) fn completed(
    request: &CurrentRequest,
    method: &Method,
    result: Raw,
) -> Result<Raw, RpcError> {
    if result.kind() != JsonKind::Object {
        tracing::error!(
            method = method.as_str(),
            "a middleware returned a result that is not an object"
        );
        return Err(RpcError::internal_error(format!(
            "{} failed",
            method.as_str()
        )));
    }
    let features = request.peer.revision.features();
    let mut added = Vec::new();
    let result_type = result.member("resultType");
    if features.result_type
        && result_type
            .as_ref()
            .is_some_and(|own| own.kind() != JsonKind::String)
    {
        return completed(request, method, result.without("resultType"));
    }
    if features.result_type && result_type.is_none() {
        added.extend_from_slice(b"\"resultType\":\"complete\",");
    }
    let is_cacheable = method.spec().is_some_and(|spec| spec.is_cacheable);
    if features.cache_hints && is_cacheable {
        if result.member("ttlMs").is_none() {
            added.extend_from_slice(b"\"ttlMs\":0,");
        }
        if result.member("cacheScope").is_none() {
            added.extend_from_slice(b"\"cacheScope\":\"private\",");
        }
    }
    if added.is_empty() {
        return Ok(result);
    }
    let rest = result.as_bytes()[1..].trim_ascii_start();
    if rest == b"}" {
        // The comma after the last added member.
        added.pop();
    }
    let mut completed = Vec::with_capacity(1 + added.len() + rest.len());
    completed.push(b'{');
    completed.extend_from_slice(&added);
    completed.extend_from_slice(rest);
    Ok(Raw::from_trusted(completed))
}

/// Returns how a request with this result ended.
pub(super) fn outcome_of(method: &Method, result: &Raw) -> RequestOutcome {
    let member_is = |name: &str, expected: &[u8]| {
        let member = result.member(name);
        member.is_some_and(|member| member.as_bytes() == expected)
    };
    if member_is("resultType", b"\"input_required\"") {
        RequestOutcome::InputRequired
    } else if *method == Method::ToolsCall && member_is("isError", b"true") {
        RequestOutcome::ToolError
    } else {
        RequestOutcome::Ok
    }
}
