//! The origin of an HTTP URL. It decides whether two URLs lead to the same server, and whether that is this machine.
//!
//! Other crates parse the URLs. `fluent_uri` reads those that authorization compares character by character, strictly
//! by RFC 3986; `http` reads those that requests go to, and also accepts what browsers accept.

use std::net::IpAddr;

/// Scheme, host and port of an HTTP URL (RFC 6454, section 4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOrigin {
    is_https: bool,
    host: String,
    port: u16,
}

impl HttpOrigin {
    /// Creates the origin of a URL. The host may have any case, and an IPv6 address may have brackets; without a port,
    /// the scheme's default applies.
    pub fn new(is_https: bool, host: &str, port: Option<u16>) -> Self {
        Self {
            is_https,
            host: without_brackets(host).to_ascii_lowercase(),
            port: port.unwrap_or(if is_https { 443 } else { 80 }),
        }
    }

    /// Whether the scheme is `https`.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// The host in lower case; an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the host is this machine: see [`is_loopback_host`].
    pub fn is_loopback(&self) -> bool {
        is_loopback_host(&self.host)
    }

    /// Whether requests to it are safe from eavesdropping: `https`, or `http` to this machine (OAuth 2.1, section 1.5).
    pub fn is_secure(&self) -> bool {
        self.is_https || self.is_loopback()
    }
}

/// Whether a host is this machine by its name (RFC 6761, section 6.3) or by its address. An IPv6 address may have
/// brackets.
pub fn is_loopback_host(host: &str) -> bool {
    let host = without_brackets(host);
    let suffix = host.len().checked_sub(".localhost".len());
    host.eq_ignore_ascii_case("localhost")
        || suffix
            .and_then(|at| host.get(at..))
            .is_some_and(|end| end.eq_ignore_ascii_case(".localhost"))
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn without_brackets(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

/// Returns the URL that tokens are for: without credentials and fragment, otherwise unchanged.
pub fn without_credentials(url: &str) -> String {
    let url = url.split_once('#').map_or(url, |(url, _)| url);
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let place = authority
        .rsplit_once('@')
        .map_or(authority, |(_, place)| place);
    format!("{scheme}://{place}{path}")
}

/// Returns a URL for a message or a log, without user name and password.
pub fn without_user_info(url: &str) -> String {
    match url
        .split_once("://")
        .map(|(scheme, rest)| (scheme, rest.rsplit_once('@')))
    {
        Some((scheme, Some((_, rest)))) => format!("{scheme}://…@{rest}"),
        _ => url.to_owned(),
    }
}

/// Returns a URL, or a reference to one, for a message: without user name and password, query and fragment, which may all
/// contain credentials.
pub fn without_secrets(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (shown, rest) = url.split_at(end);
    let cut = if rest.is_empty() { "" } else { "…" };
    let Some((scheme, place)) = shown.split_once("//") else {
        return format!("{shown}{cut}");
    };
    match place.rsplit_once('@') {
        Some((_, place)) => format!("{scheme}//…@{place}{cut}"),
        // The `?` or `#` may be one of a password.
        None if !place.contains('/') && rest.contains('@') => format!("{scheme}//…"),
        None => format!("{scheme}//{place}{cut}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_urls_without_secrets() {
        for (url, expected) in [
            ("https://example.com/a", "https://example.com/a"),
            ("https://example.com/a?key=s", "https://example.com/a…"),
            ("https://example.com/a#s", "https://example.com/a…"),
            ("https://u:s@example.com/a", "https://…@example.com/a"),
            ("https://u:s?s@example.com/a", "https://…"),
            ("https://example.com?key=s@s", "https://…"),
            ("https://example.com/?key=s@s", "https://example.com/…"),
            ("//u:s@example.com/a", "//…@example.com/a"),
            ("/a?key=s", "/a…"),
            ("a", "a"),
        ] {
            assert_eq!(without_secrets(url), expected, "{url}");
        }
    }

    #[test]
    fn case_brackets_and_default_ports_make_no_difference() {
        assert_eq!(
            HttpOrigin::new(true, "Example.com", None),
            HttpOrigin::new(true, "example.COM", Some(443))
        );
        assert_eq!(
            HttpOrigin::new(false, "[::1]", None),
            HttpOrigin::new(false, "::1", Some(80))
        );
        assert_ne!(
            HttpOrigin::new(false, "example.com", None),
            HttpOrigin::new(true, "example.com", None)
        );
    }

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        for host in [
            "localhost",
            "LocalHost",
            "a.localhost",
            "127.0.0.9",
            "::1",
            "[::1]",
        ] {
            assert!(is_loopback_host(host), "{host}");
        }
        for host in [
            "",
            "example.com",
            "localhost.example.com",
            "notlocalhost",
            "10.0.0.1",
            "[::1",
            "é.localhos",
        ] {
            assert!(!is_loopback_host(host), "{host}");
        }
    }

    #[test]
    fn names_and_passwords_are_left_out() {
        assert_eq!(
            without_user_info("https://me:secret@example.com/a"),
            "https://…@example.com/a"
        );
        assert_eq!(
            without_user_info("https://example.com/a"),
            "https://example.com/a"
        );
        assert_eq!(without_user_info("secret"), "secret");
    }
}
