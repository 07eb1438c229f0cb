//! Well-known URLs of metadata (2026-07-28, `basic/authorization/authorization-server-discovery`).

use crate::url::Url;

/// The well-known path of protected resource metadata (RFC 9728, section 3).
pub const PROTECTED_RESOURCE: &str = "/.well-known/oauth-protected-resource";

/// The well-known path of authorization server metadata (RFC 8414, section 3).
pub const AUTHORIZATION_SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// The possible URLs of a server's protected resource metadata, in the order to try them: at its path, then at the
/// root.
pub fn resource_metadata(server: &Url) -> Vec<String> {
    let origin = server.origin();
    let path = server.path().trim_end_matches('/');
    let query = server
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let mut urls = Vec::with_capacity(2);
    if !path.is_empty() || !query.is_empty() {
        urls.push(format!("{origin}{PROTECTED_RESOURCE}{path}{query}"));
    }
    urls.push(format!("{origin}{PROTECTED_RESOURCE}"));
    urls
}

/// The possible URLs of an authorization server's metadata, in the order to try them.
pub fn server_metadata(issuer: &Url) -> Vec<String> {
    let origin = issuer.origin();
    let path = issuer.path().trim_end_matches('/');
    if path.is_empty() {
        return vec![
            format!("{origin}{AUTHORIZATION_SERVER}"),
            format!("{origin}{OPENID}"),
        ];
    }
    vec![
        format!("{origin}{AUTHORIZATION_SERVER}{path}"),
        format!("{origin}{OPENID}{path}"),
        format!("{origin}{path}{OPENID}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse("url", text).expect("a URL")
    }

    #[test]
    fn a_resource_is_looked_for_at_its_path_then_at_the_root() {
        assert_eq!(
            resource_metadata(&url("https://example.com/public/mcp")),
            [
                "https://example.com/.well-known/oauth-protected-resource/public/mcp",
                "https://example.com/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(
            resource_metadata(&url("https://example.com:8443/")),
            ["https://example.com:8443/.well-known/oauth-protected-resource"]
        );
    }

    #[test]
    fn an_issuer_with_a_path_has_three_places_and_one_without_has_two() {
        assert_eq!(
            server_metadata(&url("https://auth.example.com/tenant1")),
            [
                "https://auth.example.com/.well-known/oauth-authorization-server/tenant1",
                "https://auth.example.com/.well-known/openid-configuration/tenant1",
                "https://auth.example.com/tenant1/.well-known/openid-configuration"
            ]
        );
        assert_eq!(
            server_metadata(&url("https://auth.example.com/")),
            [
                "https://auth.example.com/.well-known/oauth-authorization-server",
                "https://auth.example.com/.well-known/openid-configuration"
            ]
        );
    }
}
