//! `_meta`: reserved keys, and rules for other keys (2026-07-28, "Base protocol", `_meta`).

/// Requests progress notifications.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The revision of a request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The name and version of the client.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The client's capabilities for a request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The name and version of the server, in results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The minimum level of log messages for a request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The subscription that a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The task that a message of 2025-11-25 belongs to.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// W3C Trace Context.
pub const TRACEPARENT: &str = "traceparent";
/// W3C Trace Context.
pub const TRACESTATE: &str = "tracestate";
/// W3C Baggage.
pub const BAGGAGE: &str = "baggage";

/// Returns whether `key` has a valid form: an optional prefix of dotted labels and a slash, then a name.
pub fn is_valid_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let alphanumeric = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(u8::is_ascii_alphabetic)
            && alphanumeric(bytes.last())
            && bytes
                .iter()
                .all(|&byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let bytes = name.as_bytes();
    let name = bytes.is_empty()
        || (alphanumeric(bytes.first())
            && alphanumeric(bytes.last())
            && bytes
                .iter()
                .all(|&byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)));
    name && prefix.is_none_or(|prefix| prefix.split('.').all(label)) && !key.is_empty()
}

/// The prefix for keys of the specification and its official extensions.
const OWN_PREFIX: &str = "io.modelcontextprotocol";

/// Checks a key of an application. Keys of the specification and of its official extensions are accepted.
///
/// # Errors
///
/// The prefix of the key is reserved for the protocol.
pub fn check_key(key: &str) -> Result<(), String> {
    let prefix = key.split_once('/').map(|(prefix, _)| prefix);
    if prefix.is_some_and(|prefix| prefix != OWN_PREFIX) && is_reserved_key(key) {
        return Err(format!(
            "the key {key:?} of `_meta` has a prefix that is reserved for the Model Context Protocol"
        ));
    }
    Ok(())
}

/// Returns a warning for the author of a malformed key. The key is sent all the same: such keys are in use, and peers
/// read them (`_fastmcp`, for example).
///
/// A name may contain further slashes, which the specification does not allow: hosts define such names themselves, for
/// example `openai/toolInvocation/invoking`.
pub fn key_warning(key: &str) -> Option<String> {
    let (prefix, name) = key.split_once('/').unwrap_or((key, ""));
    let is_valid = match name.contains('/') {
        false => is_valid_key(key),
        true => name
            .split('/')
            .all(|part| !part.is_empty() && is_valid_key(&format!("{prefix}/{part}"))),
    };
    (!is_valid).then(|| {
        format!("the key {key:?} of `_meta` is malformed: it needs the form `name` or `com.example/name`")
    })
}

/// Whether `identifier` can name an extension: a key with a prefix (2026-07-28, `basic/versioning`, extension
/// negotiation).
pub fn is_extension_identifier(identifier: &str) -> bool {
    identifier.contains('/') && is_valid_key(identifier)
}

/// Whether `key` is reserved for the protocol and its extensions: `modelcontextprotocol` or `mcp` is the second label
/// of the prefix, or it is one of the keys without a prefix above.
pub fn is_reserved_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, _)) => {
            matches!(
                prefix.split('.').nth(1),
                Some("modelcontextprotocol" | "mcp")
            )
        }
        None => matches!(key, PROGRESS_TOKEN | TRACEPARENT | TRACESTATE | BAGGAGE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_have_a_prefix() {
        assert!(is_extension_identifier("io.modelcontextprotocol/ui"));
        for identifier in ["", "ui", "/ui", "io..example/ui", "io.example/u i"] {
            assert!(!is_extension_identifier(identifier), "{identifier}");
        }
    }

    #[test]
    fn keys_have_an_optional_prefix_and_a_name() {
        for key in [
            "a",
            "a-b_c.d",
            "com.example/x",
            "com.example/",
            "io.x-y/a1",
            "progressToken",
            "localhost/x",
        ] {
            assert!(is_valid_key(key), "{key}");
        }
        for key in [
            "", "-a", "a-", "a b", ".com/x", "com./x", "1com/x", "com-/x", "a/b/c", "/x", "é",
        ] {
            assert!(!is_valid_key(key), "{key}");
        }
    }

    #[test]
    fn checks_keys_of_authors_and_warns_of_malformed_ones() {
        for key in [
            "a",
            "example.com/answer",
            "com.example/",
            "io.modelcontextprotocol/ui",
            PROGRESS_TOKEN,
            TRACEPARENT,
            "openai/outputTemplate",
            "openai/toolInvocation/invoking",
            "ui/resourceUri",
            "com.example.mcp/x",
        ] {
            assert_eq!(check_key(key), Ok(()), "{key}");
            assert_eq!(key_warning(key), None, "{key}");
        }
        for key in [
            "",
            "bad key",
            "_fastmcp",
            "-a",
            "/x",
            "1com/x",
            "a//b",
            "a/b/",
            "openai/a/-b",
        ] {
            assert_eq!(check_key(key), Ok(()), "{key}");
            assert!(key_warning(key).is_some(), "{key}");
        }
        for key in [
            "dev.mcp/",
            "com.mcp.tools/-x y",
            "com.mcp.tools/x",
            "org.modelcontextprotocol.api/x",
            "io.modelcontextprotocol.x/y",
        ] {
            assert!(check_key(key).is_err(), "{key}");
        }
    }

    #[test]
    fn the_second_label_decides_what_is_reserved() {
        for key in [
            "io.modelcontextprotocol/x",
            "dev.mcp/",
            "org.modelcontextprotocol.api/x",
            "com.mcp.tools/x",
            "baggage",
        ] {
            assert!(is_reserved_key(key), "{key}");
        }
        for key in ["com.example.mcp/x", "mcp/x", "x", "com.example/mcp"] {
            assert!(!is_reserved_key(key), "{key}");
        }
    }
}
