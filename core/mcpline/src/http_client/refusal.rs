//! Interprets unsuccessful statuses. Nothing else does.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use mcpline_protocol::RpcError;
use mcpline_protocol::wire::{Incoming, Message, read};

use crate::client_error::{ClientError, MAX_KEPT_BODY};

use super::response::HttpResponse;

/// Maximum size of a body that is searched for a JSON-RPC error. Errors with long `data` are larger than the part of a
/// page that is kept.
const MAX_READ_BODY: usize = 64 * 1024;

/// How long the body of a refusal may take. The head has the essentials, and a caller is waiting.
const BODY_TIME: Duration = Duration::from_secs(5);

/// Returns the error for an unsuccessful response. `in_session`: whether the request named a session.
pub(crate) async fn refusal(mut answer: HttpResponse, in_session: bool) -> ClientError {
    let status = answer.head.status;
    // Whatever the body says: the specification leaves nothing else to do (2025-11-25, session management).
    if status == StatusCode::NOT_FOUND && in_session {
        answer.drain().await;
        return ClientError::SessionExpired;
    }
    let challenge = challenge(&answer.head.headers);
    let body = tokio::time::timeout(BODY_TIME, answer.read_beginning(MAX_READ_BODY)).await;
    let body = body.unwrap_or_default();
    ClientError::Http {
        status: status.as_u16(),
        error: rpc_error(&body).map(Box::new),
        body: body_excerpt(&body),
        challenge,
    }
}

/// Returns the error for a redirect that is not followed.
pub(crate) fn redirect_error(status: StatusCode, why: String) -> ClientError {
    ClientError::Http {
        status: status.as_u16(),
        body: why,
        challenge: None,
        error: None,
    }
}

/// Returns the JSON-RPC error in a body, whatever its id: servers that refuse a request before they read it have no id
/// to repeat, and some invent one.
fn rpc_error(body: &Bytes) -> Option<RpcError> {
    match read(body.clone()) {
        Ok(Incoming::Single(Message::Response(response))) => response.outcome.err(),
        _ => None,
    }
}

fn challenge(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(header::WWW_AUTHENTICATE).iter();
    let texts: Vec<_> = values
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Returns the beginning of a body as text, cut between two characters.
fn body_excerpt(body: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(body).into_owned();
    if text.len() > MAX_KEPT_BODY {
        let end = (0..=MAX_KEPT_BODY)
            .rev()
            .find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
    }
    text
}
