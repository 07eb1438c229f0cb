//! The user's headers, and our own name.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::client_error::ClientError;

/// The value of `User-Agent`.
pub(crate) const USER_AGENT_VALUE: HeaderValue =
    HeaderValue::from_static(concat!("mcpline/", env!("CARGO_PKG_VERSION")));

/// Headers that only the transport may set.
const RESERVED: &[&str] = &[
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Validates the user's headers.
pub(crate) fn parse_user_headers(given: &[(String, String)]) -> Result<HeaderMap, ClientError> {
    let mut headers = HeaderMap::with_capacity(given.len());
    for (name, value) in given {
        let invalid = |why: &str| ClientError::Usage(format!("the header {name:?} {why}"));
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| invalid("has a name that HTTP doesn't allow"))?;
        if RESERVED.contains(&parsed.as_str()) || parsed.as_str().starts_with("mcp-") {
            return Err(invalid("is written by the transport"));
        }
        // The value may be a secret, so the error does not repeat it.
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| invalid("has a value that HTTP doesn't allow"))?;
        value.set_sensitive(true);
        headers.append(parsed, value);
    }
    Ok(headers)
}
