//! Checks whether a request may be served: by its host, and by the origin of the web page that sent it.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::OnceLock;

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::header_names::value_of;

use super::options::HttpOptions;

/// Longest `Host` that [`AllowedHostCache`] remembers: DNS names are not longer (RFC 1035, section 2.3.4).
const MAX_KNOWN_HOST_BYTES: usize = 255;

/// The allowed host of an earlier request on the same connection. Most connections only use one, so it is parsed once.
#[derive(Default)]
pub(super) struct AllowedHostCache(OnceLock<Box<[u8]>>);

impl AllowedHostCache {
    fn contains(&self, host: &HeaderValue) -> bool {
        self.0
            .get()
            .is_some_and(|known| **known == *host.as_bytes())
    }

    fn remember(&self, host: &HeaderValue) {
        if host.len() <= MAX_KNOWN_HOST_BYTES {
            // Copied, because the header is a slice of the connection's buffer. The first one stays.
            let _ = self.0.set(host.as_bytes().into());
        }
    }
}

/// Refuses a request that a page of another site could have made by DNS rebinding (every revision with HTTP,
/// `basic/transports`, security warning).
///
/// `known` is the host of earlier requests on the same connection, if the service serves a single one.
///
/// # Errors
///
/// The violation, and the option to set.
pub(super) fn check(
    headers: &HeaderMap,
    authority: Option<&str>,
    options: &HttpOptions,
    bound: Option<IpAddr>,
    known: Option<&AllowedHostCache>,
) -> Result<(), String> {
    match (authority, value_of(headers, &HOST)) {
        (Some(authority), _) => check_host(authority, options, bound)?,
        (None, Some(host)) if known.is_some_and(|known| known.contains(host)) => {}
        (None, Some(host)) => {
            check_host(ascii(host).ok_or("Host is not ASCII")?, options, bound)?;
            if let Some(known) = known {
                known.remember(host);
            }
        }
        (None, None) => return Err("the Host header is missing".into()),
    }
    let Some(origin) = value_of(headers, &ORIGIN) else {
        return Ok(());
    };
    let origin = ascii(origin).ok_or("Origin is not ASCII")?;
    if is_listed_origin(origin, options) || is_own_origin(origin, options, bound) {
        Ok(())
    } else {
        Err(format!(
            "Origin {} is not allowed: add it to `allowed_origins` (`allowedOrigins` in JavaScript)",
            printable(origin)
        ))
    }
}

/// Whether the option `allowed_origins` lists the origin.
pub(super) fn is_listed_origin(origin: &str, options: &HttpOptions) -> bool {
    options
        .allowed_origins
        .iter()
        .any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(origin))
}

fn check_host(host: &str, options: &HttpOptions, bound: Option<IpAddr>) -> Result<(), String> {
    let is_any = options.allowed_hosts.iter().any(|allowed| allowed == "*");
    let is_allowed = |name| allows(name, options, bound) || matches_pattern(name, options);
    if is_any || host_name(host).is_some_and(is_allowed) {
        return Ok(());
    }
    Err(format!(
        "Host {} is not allowed: add it to `allowed_hosts` (`allowedHosts` in JavaScript)",
        printable(host)
    ))
}

/// Whether the origin is a web page of an allowed host. Only `http` and `https` origins are: browser extensions choose
/// their own host. `*` among the hosts does not allow pages.
fn is_own_origin(origin: &str, options: &HttpOptions, bound: Option<IpAddr>) -> bool {
    let authority = ["http://", "https://"].into_iter().find_map(|scheme| {
        let (head, rest) = origin.split_at_checked(scheme.len())?;
        head.eq_ignore_ascii_case(scheme).then_some(rest)
    });
    authority
        .and_then(host_name)
        .is_some_and(|name| allows(name, options, bound))
}

/// Returns the address that a proxy reports for a request: the last one in its header, because the client may have sent
/// what precedes it.
pub(super) fn forwarded(headers: &HeaderMap, header: &HeaderName) -> Option<IpAddr> {
    let last = headers.get_all(header).iter().next_back()?;
    let last = ascii(last)?.rsplit(',').next()?.trim();
    if let Ok(address) = last.parse() {
        return Some(address);
    }
    // Some proxies add the port.
    host_name(last)?.parse().ok()
}

/// Equivalent to [`HeaderValue::to_str`], which checks one byte at a time.
pub(super) fn ascii(value: &HeaderValue) -> Option<&str> {
    std::str::from_utf8(value.as_bytes())
        .ok()
        .filter(|text| text.is_ascii())
}

/// Returns the part of a header that an error message repeats.
fn printable(text: &str) -> String {
    let most = 200;
    text.chars()
        .filter(|character| !character.is_control())
        .take(most)
        .collect()
}

/// Whether a pattern such as `*.example.com` among the allowed hosts stands for this one. Patterns do not allow pages:
/// those of other customers of a hosting provider match, too.
fn matches_pattern(name: &str, options: &HttpOptions) -> bool {
    options.allowed_hosts.iter().any(|allowed| {
        let suffix = allowed
            .strip_prefix('*')
            .filter(|suffix| suffix.starts_with('.'));
        suffix.is_some_and(|suffix| {
            let head = name.len().checked_sub(suffix.len());
            head.filter(|head| *head > 0)
                .and_then(|head| name.get(head..))
                .is_some_and(|end| end.eq_ignore_ascii_case(suffix))
        })
    })
}

fn allows(name: &str, options: &HttpOptions, bound: Option<IpAddr>) -> bool {
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let is_listed = options
        .allowed_hosts
        .iter()
        .filter_map(|allowed| host_name(allowed))
        .any(|allowed| allowed != "*" && allowed.eq_ignore_ascii_case(name));
    if is_listed {
        return true;
    }
    match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || bound == Some(address),
        Err(_) => false,
    }
}

/// Returns a host without its port, and an IPv6 address without brackets; `None` if the text is not a host with an
/// optional port (RFC 3986, section 3.2).
pub(super) fn host_name(authority: &str) -> Option<&str> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (address, after) = rest.split_once(']')?;
        let is_port = after.is_empty() || after.strip_prefix(':').is_some_and(is_port);
        return (is_port && address.parse::<Ipv6Addr>().is_ok()).then_some(address);
    }
    let name = match authority.split_once(':') {
        None => authority,
        Some((name, port)) if is_port(port) => name,
        // Configured addresses may have no brackets; a `Host` always does.
        Some(_) => return authority.parse::<Ipv6Addr>().ok().map(|_| authority),
    };
    let is_host =
        |byte: u8| !matches!(byte, b'/' | b'?' | b'#' | b'@' | b'[' | b']' | b'\\' | b' ');
    name.bytes().all(is_host).then_some(name)
}

fn is_port(text: &str) -> bool {
    text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(host: &str, origin: Option<&str>, options: &HttpOptions) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().expect("a header"));
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().expect("a header"));
        }
        check(&headers, None, options, None, None)
    }

    #[test]
    fn patterns_allow_hosts_but_not_pages() {
        let options = HttpOptions {
            allowed_hosts: vec!["*.example.app".into()],
            ..HttpOptions::default()
        };
        for host in ["a.example.app", "A.B.Example.App:443"] {
            assert_eq!(verdict(host, None, &options), Ok(()), "{host}");
        }
        for host in [
            "example.app",
            ".example.app",
            "aexample.app",
            "a.example.app.evil.com",
        ] {
            verdict(host, None, &options).expect_err(host);
        }
        let page = Some("https://evil.example.app");
        verdict("a.example.app", page, &options).expect_err("a page of another customer");
    }

    #[test]
    fn a_connection_whose_host_is_known_may_name_no_other() {
        let options = HttpOptions::default();
        let known = AllowedHostCache::default();
        let verdict = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().expect("a header"));
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().expect("a header"));
            }
            check(&headers, None, &options, None, Some(&known))
        };
        assert!(verdict("evil.example.com", None).is_err());
        assert!(verdict("evil.example.com", None).is_err(), "not remembered");
        assert_eq!(verdict("localhost:8000", None), Ok(()));
        assert_eq!(verdict("localhost:8000", None), Ok(()));
        assert_eq!(
            verdict("127.0.0.1:8000", None),
            Ok(()),
            "another that may be"
        );
        for host in ["localhost:8000.evil.example.com", "evil.example.com"] {
            assert!(verdict(host, None).is_err(), "{host}");
        }
        assert!(verdict("localhost:8000", Some("http://evil.example.com")).is_err());
    }

    #[test]
    fn loopback_is_allowed_by_any_of_its_names_and_ports() {
        let options = HttpOptions::default();
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:8000",
            "[::1]:1",
            "127.9.9.9",
        ] {
            assert_eq!(verdict(host, None, &options), Ok(()), "{host}");
        }
        assert_eq!(
            verdict("localhost:1", Some("http://localhost:3000"), &options),
            Ok(())
        );
    }

    #[test]
    fn foreign_hosts_and_pages_are_refused_with_the_option_to_set() {
        let options = HttpOptions::default();
        for host in [
            "evil.example.com",
            "localhost.evil.example.com",
            "10.0.0.1:80",
            "",
        ] {
            let error = verdict(host, None, &options).expect_err(host);
            assert!(error.contains("allowed_hosts"), "{error}");
        }
        for origin in [
            "http://evil.example.com",
            "null",
            "https://localhost.evil.example.com",
        ] {
            let error = verdict("localhost", Some(origin), &options).expect_err(origin);
            assert!(error.contains("allowed_origins"), "{error}");
        }
    }

    #[test]
    fn allows_listed_hosts_and_origins() {
        let options = HttpOptions {
            allowed_hosts: vec!["mcp.example.com".into()],
            allowed_origins: vec!["https://app.example.com".into()],
            ..HttpOptions::default()
        };
        let origin = Some("https://app.example.com");
        assert_eq!(verdict("mcp.example.com:443", origin, &options), Ok(()));
        assert!(
            verdict(
                "mcp.example.com",
                Some("https://other.example.com"),
                &options
            )
            .is_err()
        );
    }

    #[test]
    fn refuses_hosts_that_only_begin_like_an_allowed_one() {
        let options = HttpOptions::default();
        for host in [
            "[::1].evil.example",
            "[::1]evil.example:80",
            "[::1]:80.evil.example",
            "localhost:80@evil.example",
            "localhost:x",
            "localhost/evil",
            "[localhost]",
        ] {
            assert!(verdict(host, None, &options).is_err(), "{host}");
        }
        for origin in [
            "chrome-extension://localhost",
            "file://localhost",
            "http://[::1].evil.example",
            "http://localhost@evil.example",
            "http://localhost/../evil",
        ] {
            assert!(
                verdict("localhost", Some(origin), &options).is_err(),
                "{origin}"
            );
        }
        assert_eq!(
            verdict("[::1]:8000", Some("http://[::1]:3000"), &options),
            Ok(())
        );
    }

    #[test]
    fn wildcard_host_does_not_allow_any_origin() {
        let options = HttpOptions {
            allowed_hosts: vec!["*".into()],
            ..HttpOptions::default()
        };
        assert_eq!(verdict("whatever.example", None, &options), Ok(()));
        let page = Some("https://evil.example");
        assert!(verdict("whatever.example", page, &options).is_err());
        assert_eq!(
            verdict("whatever.example", Some("http://localhost:1"), &options),
            Ok(())
        );
    }

    #[test]
    fn the_last_address_of_a_proxys_header_counts() {
        let header = HeaderName::from_static("x-forwarded-for");
        let address = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(&header, value.parse().expect("a header"));
            }
            forwarded(&headers, &header).map(|address| address.to_string())
        };
        assert_eq!(
            address(&["1.2.3.4, 192.0.2.1"]).as_deref(),
            Some("192.0.2.1")
        );
        assert_eq!(
            address(&["1.2.3.4", "192.0.2.2:99"]).as_deref(),
            Some("192.0.2.2")
        );
        assert_eq!(
            address(&["[2001:db8::1]:99"]).as_deref(),
            Some("2001:db8::1")
        );
        assert_eq!(address(&["unknown"]), None);
        assert_eq!(address(&[]), None);
    }
}
