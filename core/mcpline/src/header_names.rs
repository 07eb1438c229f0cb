//! The names of the protocol's own HTTP headers, as constants: a name that is given as text is parsed on each access.

use http::HeaderName;

/// The session of handshake revisions (`basic/transports`, session management).
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The last event that a client has received of a stream that it resumes.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The protocol revision of a request.
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

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
        ] {
            assert!(name.as_str().eq_ignore_ascii_case(expected));
        }
    }
}
