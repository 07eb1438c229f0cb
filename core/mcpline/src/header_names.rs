//! The names of the protocol's own HTTP headers, as constants: a name that is given as text is parsed on each access.
//! And how a server reads one header of a request.

use http::HeaderName;
#[cfg(feature = "server")]
use http::{HeaderMap, HeaderValue};

/// The session of handshake revisions (`basic/transports`, session management).
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The last event that a client has received of a stream that it resumes.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The protocol revision of a request.
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The method that a request calls.
#[cfg(feature = "server")]
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// The tool, prompt or resource that a request names.
#[cfg(feature = "server")]
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Returns the first value of a header, like `HeaderMap::get`, but compares the names in turn. Hashing one takes longer
/// than comparing the few headers that a request has: hashed lookups took 5 % of a call's instructions.
#[cfg(feature = "server")]
pub(crate) fn value_of<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    values_of(headers, name).next()
}

/// Returns all values of a header, in the same way.
#[cfg(feature = "server")]
pub(crate) fn values_of<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'h HeaderValue> {
    headers
        .iter()
        .filter_map(move |(other, value)| (other == name).then_some(value))
}

#[cfg(test)]
mod tests {
    use mcpline_protocol::wire::header;

    use super::*;

    #[test]
    fn the_names_are_the_protocols() {
        for (name, expected) in [
            (SESSION_ID, header::SESSION_ID),
            (LAST_EVENT_ID, header::LAST_EVENT_ID),
            (PROTOCOL_VERSION, header::PROTOCOL_VERSION),
            #[cfg(feature = "server")]
            (METHOD, header::METHOD),
            #[cfg(feature = "server")]
            (NAME, header::NAME),
        ] {
            assert!(name.as_str().eq_ignore_ascii_case(expected));
        }
    }
}
