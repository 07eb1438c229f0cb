//! Targets of requests: a parsed URL, and the resolution of references against it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fluent_uri::UriRef;
use http::{HeaderValue, Uri};
use mcpline_protocol::{HttpOrigin, without_secrets};

use crate::client_error::ClientError;

/// A URL to send requests to. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The URL without credentials and fragment.
    pub(crate) uri: Uri,
    /// Only path and query, as in the request line without a proxy.
    pub(crate) path: Uri,
    pub(crate) host: HeaderValue,
    pub(crate) origin: Arc<HttpOrigin>,
    /// `Authorization` for the credentials in the URL.
    pub(crate) credentials: Option<HeaderValue>,
}

/// The redirects from `http` to `https` on the same host that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpsRedirects {
    /// From any port to any port.
    AnyPort,
    /// From port 80 to port 443: another port may belong to another service.
    #[cfg(feature = "openapi")]
    DefaultPorts,
}

impl Target {
    /// Parses a URL from the user.
    ///
    /// # Errors
    ///
    /// [`ClientError::Usage`] if it is invalid, or neither `http` nor `https`.
    pub(crate) fn parse(url: &str) -> Result<Self, ClientError> {
        Self::read(url).map_err(|reason| {
            let shown = without_secrets(url);
            let reason = match with_scheme(&shown) {
                Some(meant) => {
                    format!("it does not begin with http:// or https://; did you mean {meant:?}?")
                }
                None => reason,
            };
            ClientError::Usage(format!("invalid URL {shown:?}: {reason}"))
        })
    }

    /// Resolves a reference from this target: a `Location`, an `endpoint`.
    ///
    /// # Errors
    ///
    /// The problem, for an error that names the reference's source.
    pub(crate) fn resolve(&self, reference: &str) -> Result<Self, String> {
        let base = self.uri.to_string();
        let base = fluent_uri::Uri::parse(base.as_str()).map_err(|error| error.to_string())?;
        let reference = UriRef::parse(reference).map_err(|error| error.to_string())?;
        let resolved = reference
            .resolve_against(&base)
            .map_err(|error| error.to_string())?;
        Self::read(resolved.as_str())
    }

    /// Returns why a redirect from this target to `other` must not be followed, or `None` if it may. The request's
    /// arguments and credentials are meant for the user's host, over a connection that is at least as secure.
    pub(crate) fn redirect_refusal(
        &self,
        other: &Self,
        upgrades: HttpsRedirects,
    ) -> Option<&'static str> {
        let (from, to) = (&*self.origin, &*other.origin);
        if from.is_https() && !to.is_https() {
            return Some("it leads from https to http");
        }
        let may_upgrade = match upgrades {
            HttpsRedirects::AnyPort => true,
            #[cfg(feature = "openapi")]
            HttpsRedirects::DefaultPorts => from.port() == 80 && to.port() == 443,
        };
        let upgrade = may_upgrade && !from.is_https() && to.is_https() && from.host() == to.host();
        (from != to && !upgrade).then_some("it leads to another origin")
    }

    fn read(url: &str) -> Result<Self, String> {
        let url = url.split_once('#').map_or(url, |(url, _)| url);
        let given: Uri = url.parse().map_err(|error| format!("{error}"))?;
        let https = match given.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(other) => return Err(format!("its scheme is {other}, not http or https")),
            None => return Err("it has no scheme".to_owned()),
        };
        let authority = given.authority().ok_or("it has no host")?;
        let host = authority.host();
        if host.is_empty() {
            return Err("it has no host".to_owned());
        }
        let place = match authority.as_str().rsplit_once('@') {
            Some((_, place)) => place,
            None => authority.as_str(),
        };
        let credentials = authority.as_str().rsplit_once('@').map(|(user, _)| user);
        let path = given
            .path_and_query()
            .cloned()
            .unwrap_or_else(|| http::uri::PathAndQuery::from_static("/"));
        let uri = Uri::builder()
            .scheme(if https { "https" } else { "http" })
            .authority(place)
            .path_and_query(path.clone())
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            uri,
            path: path.into(),
            host: HeaderValue::from_str(place).map_err(|error| error.to_string())?,
            origin: Arc::new(HttpOrigin::new(https, host, authority.port_u16())),
            credentials: credentials.and_then(basic),
        })
    }
}

/// Returns `Authorization` for `user:password` as written in a URL.
fn basic(user_info: &str) -> Option<HeaderValue> {
    let decoded = percent_decoded(user_info);
    let with_colon = if user_info.contains(':') {
        decoded
    } else {
        [decoded, b":".to_vec()].concat()
    };
    let mut value =
        HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(with_colon))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.as_bytes().get(at) {
        let digits = text.get(at + 1..at + 3).filter(|_| byte == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                out.push(value);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

/// Returns whether the host of a URL is this machine.
pub(crate) fn is_loopback(url: &str) -> bool {
    Target::parse(url).is_ok_and(|target| target.origin.is_loopback())
}

/// Returns the URL that was probably meant, if this one has no scheme, or one without `://`: servers on this machine
/// rarely have certificates.
fn with_scheme(url: &str) -> Option<String> {
    if url.contains("://") || url.is_empty() || url.starts_with('/') {
        return None;
    }
    for scheme in ["http", "https"] {
        let rest = url.strip_prefix(scheme);
        if let Some(rest) = rest.and_then(|rest| rest.strip_prefix([':', '/'])) {
            let rest = rest.trim_start_matches(['/', '\\']);
            return (!rest.is_empty()).then(|| format!("{scheme}://{rest}"));
        }
    }
    let is_local = ["localhost", "127.", "[::1]"]
        .iter()
        .any(|local| url.starts_with(local));
    let scheme = if is_local { "http" } else { "https" };
    Some(format!("{scheme}://{url}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_scheme_is_refused_with_a_suggestion() {
        for (url, meant) in [
            ("localhost:8000/mcp", "http://localhost:8000/mcp"),
            ("127.0.0.1/mcp", "http://127.0.0.1/mcp"),
            ("mcp.example.com/mcp", "https://mcp.example.com/mcp"),
            ("http:/localhost", "http://localhost"),
            ("https:example.com/mcp", "https://example.com/mcp"),
            ("http//example.com", "http://example.com"),
            ("https.example.com", "https://https.example.com"),
        ] {
            let error = Target::parse(url).expect_err(url).to_string();
            assert!(
                error.contains(&format!("did you mean {meant:?}?")),
                "{error}"
            );
        }
        for url in ["", "/mcp", "ftp://example.com"] {
            let error = Target::parse(url).expect_err(url).to_string();
            assert!(!error.contains("did you mean"), "{error}");
        }
    }

    #[test]
    fn an_error_of_a_url_has_no_query_and_no_password() {
        for url in [
            "http://u:s3cret@x y/",
            "http://x/ ?key=s3cret",
            "x/?key=s3cret",
        ] {
            let error = Target::parse(url).expect_err(url).to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    fn target(url: &str) -> Target {
        Target::parse(url).expect("a URL")
    }

    #[test]
    fn resolves_references_against_their_source() {
        let base = target("https://example.com:8443/a/mcp?x=1");
        for (reference, expected) in [
            ("/b", "https://example.com:8443/b"),
            ("c?y=2", "https://example.com:8443/a/c?y=2"),
            ("../d", "https://example.com:8443/d"),
            ("?z", "https://example.com:8443/a/mcp?z"),
            ("//other/e", "https://other/e"),
            ("http://other:1/f#g", "http://other:1/f"),
        ] {
            let resolved = base.resolve(reference).expect("a URL");
            assert_eq!(resolved.uri.to_string(), expected, "{reference}");
        }
    }

    #[test]
    fn a_default_port_and_the_case_of_a_host_make_no_difference() {
        let (one, other) = (
            target("https://Example.com/a"),
            target("HTTPS://example.COM:443/b"),
        );
        assert_eq!(one.redirect_refusal(&other, HttpsRedirects::AnyPort), None);
        assert_eq!(one.origin, other.origin);
    }

    #[test]
    fn only_the_same_origin_or_its_upgrade_to_https_is_followed() {
        let plain = target("http://example.com/");
        assert_eq!(
            plain.redirect_refusal(&target("https://example.com/"), HttpsRedirects::AnyPort),
            None
        );
        assert_eq!(
            plain.redirect_refusal(
                &target("https://example.com:8443/"),
                HttpsRedirects::AnyPort
            ),
            None
        );
        for other in [
            "http://example.com:81/",
            "http://example.org/",
            "https://www.example.com/",
        ] {
            assert!(
                plain
                    .redirect_refusal(&target(other), HttpsRedirects::AnyPort)
                    .is_some(),
                "{other}"
            );
        }
        let secure = target("https://example.com/");
        for other in [
            "http://example.com/",
            "https://example.com:444/",
            "https://example.org/",
        ] {
            assert!(
                secure
                    .redirect_refusal(&target(other), HttpsRedirects::AnyPort)
                    .is_some(),
                "{other}"
            );
        }
    }

    #[cfg(feature = "openapi")]
    #[test]
    fn an_upgrade_can_be_limited_to_the_default_ports() {
        let is_followed = |from: &str, to: &str| {
            let forbidden =
                target(from).redirect_refusal(&target(to), HttpsRedirects::DefaultPorts);
            forbidden.is_none()
        };
        assert!(is_followed("http://example.com/", "https://example.com/"));
        assert!(is_followed(
            "http://example.com:81/",
            "http://example.com:81/a"
        ));
        for (from, to) in [
            ("http://example.com/", "https://example.com:8443/"),
            ("http://example.com:8080/", "https://example.com/"),
            ("http://example.com/", "https://example.org/"),
            ("https://example.com/", "http://example.com/"),
        ] {
            assert!(!is_followed(from, to), "{from} {to}");
        }
    }
}
