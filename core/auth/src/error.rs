//! Errors of a client's authorization.

use mcpline_protocol::{Printable, Quoted};

use mcpline_protocol::Scopes;

/// Why a client has no token to send. No variant contains secrets: texts of servers are truncated, codes and tokens are
/// never repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// A URL is invalid or can't be used for its purpose.
    #[error("`{what}` {url:?} {}", Printable(reason))]
    InvalidUrl {
        /// What the URL is for.
        what: &'static str,
        /// The text, without credentials.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Secrets would have been sent over an unencrypted connection (OAuth 2.1, section 1.5).
    #[error("`{what}` {url:?} must use https")]
    InsecureUrl {
        /// What the URL is for.
        what: &'static str,
        /// The URL, without credentials.
        url: String,
    },
    /// A request for authorization could not be made, or a policy of this crate refused it.
    #[error("{}: {}", Printable(url), Printable(reason))]
    FetchFailed {
        /// The URL of the request.
        url: String,
        /// Why it failed.
        reason: String,
    },
    /// A document or response is malformed.
    #[error("{}: invalid response: {}", Printable(url), Printable(reason))]
    InvalidResponse {
        /// The URL that answered.
        url: String,
        /// What is wrong with the response.
        reason: String,
    },
    /// The metadata is for another resource than the server that was connected to (RFC 9728, section 3.3).
    #[error(
        "{}: the protected resource metadata names another resource: {}",
        Printable(server),
        Quoted(resource)
    )]
    ResourceMismatch {
        /// The server's URL.
        server: String,
        /// The resource that the metadata names.
        resource: String,
    },
    /// The metadata names another issuer than it was requested for (RFC 8414, section 3.3).
    #[error(
        "{}: the authorization server metadata names another issuer: {}",
        Printable(expected),
        Quoted(found)
    )]
    MetadataIssuerMismatch {
        /// The issuer that the metadata was requested for.
        expected: String,
        /// The issuer that it names.
        found: String,
    },
    /// The resource names no authorization server, or the one that it names has no metadata.
    #[error("no authorization server found: {}", Printable(.0))]
    NoAuthorizationServer(String),
    /// The authorization server doesn't announce support for code challenges (2025-11-25, `basic/authorization`,
    /// authorization code protection).
    #[error("{}: the authorization server does not support PKCE with S256", Printable(.0))]
    PkceUnsupported(String),
    /// The client has no identity at this authorization server.
    #[error(
        "{}: this client is not registered with the authorization server: {}",
        Printable(issuer),
        Printable(reason)
    )]
    NotRegistered {
        /// The authorization server.
        issuer: String,
        /// Which kinds of registration were tried, and what to do.
        reason: String,
    },
    /// The client's credentials were issued by another authorization server (2026-07-28,
    /// `basic/authorization/client-registration`, authorization server binding).
    #[error(
        "`credentials`: issued by {}, but the server requires tokens of {}",
        Printable(registered),
        Printable(issuer)
    )]
    CredentialsIssuerMismatch {
        /// The issuer of the credentials.
        registered: String,
        /// The issuer that the server requires.
        issuer: String,
    },
    /// The redirect does not answer the request that was made: another `state`, another redirect URI, another or no
    /// `iss` (RFC 9207). Nothing in it was used.
    #[error("authorization response rejected: {}", Printable(.0))]
    AuthorizationResponseMismatch(String),
    /// An endpoint returned an error.
    #[error(
        "authorization server returned an error: {}",
        refusal(error, description)
    )]
    AuthorizationServerError {
        /// The error code (RFC 6749, sections 4.1.2.1 and 5.2; RFC 7591, section 3.2.2).
        error: String,
        /// The server's description of the error.
        description: Option<String>,
    },
    /// The MCP server rejected the token that was just obtained for it, or that the host has given.
    #[error("server rejected the access token{}", description.as_deref().map(|text| format!(": {}", Quoted(text))).unwrap_or_default())]
    TokenRejected {
        /// The server's description of the error.
        description: Option<String>,
    },
    /// The MCP server requires more scopes than could be obtained.
    #[error("insufficient scope: the server requires {}", scopes_or_more(needed))]
    InsufficientScope {
        /// The scopes that it requires.
        needed: Scopes,
    },
    /// There is no token, and no user to ask for consent.
    #[error("`user_agent`: user consent is required, but no user agent is available: {}", Printable(.0))]
    Unattended(String),
    /// The user's sign-in did not complete: no browser, no redirect, or a timeout.
    #[error("user did not complete the authorization: {}", Printable(.0))]
    AuthorizationIncomplete(String),
    /// The token store failed.
    #[error("`store`: the token store failed: {}", Printable(.0))]
    TokenStoreFailed(String),
    /// A key can't sign, or a callback supplied no token.
    #[error("credentials are unusable: {}", Printable(.0))]
    CredentialsUnusable(String),
}

/// The scopes, or what is known if the server names none.
fn scopes_or_more(needed: &Scopes) -> String {
    match needed.is_empty() {
        true => "scopes that the token does not have".to_owned(),
        false => needed.to_string(),
    }
}

impl AuthError {
    /// A stable name for bindings.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidUrl { .. } => "invalid_url",
            Self::InsecureUrl { .. } => "insecure_url",
            Self::FetchFailed { .. } => "fetch_failed",
            Self::InvalidResponse { .. } => "invalid_response",
            Self::ResourceMismatch { .. } => "resource_mismatch",
            Self::MetadataIssuerMismatch { .. } => "metadata_issuer_mismatch",
            Self::NoAuthorizationServer(_) => "no_authorization_server",
            Self::PkceUnsupported(_) => "pkce_unsupported",
            Self::NotRegistered { .. } => "not_registered",
            Self::CredentialsIssuerMismatch { .. } => "credentials_issuer_mismatch",
            Self::AuthorizationResponseMismatch(_) => "authorization_response_mismatch",
            Self::AuthorizationServerError { .. } => "authorization_server_error",
            Self::TokenRejected { .. } => "token_rejected",
            Self::InsufficientScope { .. } => "insufficient_scope",
            Self::Unattended(_) => "unattended",
            Self::AuthorizationIncomplete(_) => "authorization_incomplete",
            Self::TokenStoreFailed(_) => "token_store_failed",
            Self::CredentialsUnusable(_) => "credentials_unusable",
        }
    }

    /// The error for a response with this status and body: an authorization server error if the body is an error
    /// document (RFC 6749, section 5.2), otherwise an invalid response.
    pub fn refused(url: &str, status: u16, body: &[u8]) -> Self {
        #[derive(serde::Deserialize)]
        struct ErrorResponse {
            error: String,
            error_description: Option<String>,
        }
        match serde_json::from_slice::<ErrorResponse>(body) {
            Ok(document) => Self::AuthorizationServerError {
                error: cut(&document.error),
                description: document.error_description.as_deref().map(cut),
            },
            Err(_) => Self::InvalidResponse {
                url: mcpline_protocol::without_user_info(url),
                reason: format!("HTTP status {status} without an OAuth error"),
            },
        }
    }
}

/// The longest server text that an error repeats.
const MAX_TEXT: usize = 300;

/// Truncates a server's text and removes what could disguise the rest: control characters, line separators, and marks
/// that change the text direction.
pub(crate) fn cut(text: &str) -> String {
    let turns = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let printable = text.chars().filter(|c| !c.is_control() && !turns(*c));
    printable.take(MAX_TEXT).collect()
}

fn refusal(error: &str, description: &Option<String>) -> String {
    match description {
        Some(description) => format!("{} ({})", Printable(error), Quoted(description)),
        None => Printable(error).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_recased_names_of_variants() {
        let text = String::new;
        let errors = [
            AuthError::InvalidUrl {
                what: "",
                url: text(),
                reason: text(),
            },
            AuthError::InsecureUrl {
                what: "",
                url: text(),
            },
            AuthError::FetchFailed {
                url: text(),
                reason: text(),
            },
            AuthError::InvalidResponse {
                url: text(),
                reason: text(),
            },
            AuthError::ResourceMismatch {
                server: text(),
                resource: text(),
            },
            AuthError::MetadataIssuerMismatch {
                expected: text(),
                found: text(),
            },
            AuthError::NoAuthorizationServer(text()),
            AuthError::PkceUnsupported(text()),
            AuthError::NotRegistered {
                issuer: text(),
                reason: text(),
            },
            AuthError::CredentialsIssuerMismatch {
                registered: text(),
                issuer: text(),
            },
            AuthError::AuthorizationResponseMismatch(text()),
            AuthError::AuthorizationServerError {
                error: text(),
                description: None,
            },
            AuthError::TokenRejected { description: None },
            AuthError::InsufficientScope {
                needed: Scopes::default(),
            },
            AuthError::Unattended(text()),
            AuthError::AuthorizationIncomplete(text()),
            AuthError::TokenStoreFailed(text()),
            AuthError::CredentialsUnusable(text()),
        ];
        for error in errors {
            let debug = format!("{error:?}");
            let variant: String = debug
                .chars()
                .take_while(char::is_ascii_alphabetic)
                .collect();
            let mut code = String::new();
            for character in variant.chars() {
                if character.is_ascii_uppercase() && !code.is_empty() {
                    code.push('_');
                }
                code.push(character.to_ascii_lowercase());
            }
            assert_eq!(code, error.code());
        }
    }
}
