//! URLs as authorization compares them. Their text is never changed, because `resource`, `issuer` and `iss` are
//! compared character by character (RFC 8414, section 3.3; RFC 9207, section 2.4; RFC 9728, section 3.3).

use fluent_uri::Uri;

use crate::error::AuthError;
use mcpline_protocol::{HttpOrigin, without_user_info};

/// A parsed URL that keeps its original text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    uri: Uri<String>,
}

impl Url {
    /// Parses an absolute `http` or `https` URL with a host. `what` names it in errors.
    ///
    /// # Errors
    ///
    /// [`AuthError::InvalidUrl`] if it is not such a URL.
    pub fn parse(what: &'static str, text: &str) -> Result<Self, AuthError> {
        let invalid = |reason: &str| AuthError::InvalidUrl {
            what,
            url: without_user_info(text),
            reason: reason.to_owned(),
        };
        let uri = Uri::parse(text.to_owned()).map_err(|_| invalid("is not a valid URL"))?;
        let scheme = uri.scheme().as_str();
        if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
            return Err(invalid("is neither https nor http"));
        }
        if uri
            .authority()
            .is_none_or(|authority| authority.host().is_empty())
        {
            return Err(invalid("has no host"));
        }
        Ok(Self { uri })
    }

    /// Parses a URL and checks that it is safe for secrets: `https`, or `http` to this machine (OAuth 2.1, section
    /// 1.5).
    ///
    /// # Errors
    ///
    /// [`AuthError::InvalidUrl`] if it is not a URL, [`AuthError::InsecureUrl`] if it is not safe.
    pub fn secure(what: &'static str, text: &str) -> Result<Self, AuthError> {
        let url = Self::parse(what, text)?;
        if url.http_origin().is_secure() {
            return Ok(url);
        }
        Err(AuthError::InsecureUrl {
            what,
            url: without_user_info(text),
        })
    }

    /// The original text.
    pub fn as_str(&self) -> &str {
        self.uri.as_str()
    }

    /// Whether the scheme is `https`.
    pub fn is_https(&self) -> bool {
        self.uri.scheme().as_str().eq_ignore_ascii_case("https")
    }

    /// Whether the host is a loopback address or `localhost`.
    pub fn is_loopback(&self) -> bool {
        self.http_origin().is_loopback()
    }

    /// The host in lower case; an IPv6 address without its brackets.
    pub fn host(&self) -> String {
        self.http_origin().host().to_owned()
    }

    /// Scheme, host and port for comparisons.
    pub fn http_origin(&self) -> HttpOrigin {
        let authority = self.uri.authority();
        let host = authority.map_or("", |authority| authority.host());
        let port = authority.and_then(|authority| authority.port_to_u16().ok().flatten());
        HttpOrigin::new(self.is_https(), host, port)
    }

    /// The path; may be empty.
    pub fn path(&self) -> &str {
        self.uri.path().as_str()
    }

    /// The query without its question mark.
    pub fn query(&self) -> Option<&str> {
        self.uri.query().map(|query| query.as_str())
    }

    /// Whether the URL has a fragment.
    pub fn has_fragment(&self) -> bool {
        self.uri.has_fragment()
    }

    /// Whether the URL has a user name or password.
    pub fn has_credentials(&self) -> bool {
        let authority = self.uri.authority();
        authority.is_some_and(|authority| authority.has_userinfo())
    }

    /// Scheme and authority in their original spelling, without credentials.
    pub fn origin(&self) -> String {
        let authority = self
            .uri
            .authority()
            .map_or("", |authority| authority.as_str());
        let place = authority
            .rsplit_once('@')
            .map_or(authority, |(_, place)| place);
        format!("{}://{place}", self.uri.scheme())
    }

    /// Whether scheme, host and port are equal.
    pub fn same_origin(&self, other: &Self) -> bool {
        self.http_origin() == other.http_origin()
    }

    /// Whether `other` is this URL or below it, by whole path segments.
    pub fn covers(&self, other: &Self) -> bool {
        let own = self.path().trim_end_matches('/');
        let rest = other.path().strip_prefix(own);
        self.same_origin(other)
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            && self
                .query()
                .is_none_or(|query| other.query() == Some(query))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse("url", text).expect("a URL")
    }

    #[test]
    fn a_resource_covers_what_lies_under_it_by_whole_segments() {
        let origin = url("https://Example.com");
        assert!(origin.covers(&url("https://example.com:443/mcp")));
        assert!(url("https://example.com/mcp").covers(&url("HTTPS://EXAMPLE.com/mcp")));
        assert!(url("HTTPS://EXAMPLE.com/mcp").covers(&url("https://example.com/mcp")));
        assert!(url("https://example.com/mcp").covers(&url("https://example.com/mcp")));
        assert!(url("https://example.com/a/").covers(&url("https://example.com/a/b")));
        for other in [
            "https://example.com/mcp2",
            "https://example.com/",
            "http://example.com/mcp",
            "https://a.example.com/mcp",
        ] {
            assert!(
                !url("https://example.com/mcp").covers(&url(other)),
                "{other}"
            );
        }
    }

    #[test]
    fn http_is_secure_only_on_this_machine() {
        for good in [
            "https://example.com/",
            "http://localhost:1/",
            "http://127.0.0.1",
            "http://[::1]:8/x",
        ] {
            assert!(Url::secure("url", good).is_ok(), "{good}");
        }
        for bad in [
            "http://example.com/",
            "http://10.0.0.1/",
            "http://localhost.example.com/",
            "ftp://localhost/",
            "https:///x",
            "x",
        ] {
            assert!(Url::secure("url", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_origin_has_no_credentials_and_keeps_its_spelling() {
        assert_eq!(
            url("https://me:pw@Example.com:8443/x?y#z").origin(),
            "https://Example.com:8443"
        );
    }
}
