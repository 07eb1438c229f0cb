//! Whether a request may be served at all: the host it is for, and the page it comes from.

use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderValue};

use super::options::HttpOptions;

/// Refuses a request that a page of another site could have made by rebinding a name to this machine
/// (every revision with HTTP, `basic/transports`, security warning).
///
/// # Errors
///
/// What is wrong, and the option to set.
pub(super) fn check(
    headers: &HeaderMap,
    authority: Option<&str>,
    options: &HttpOptions,
    bound: Option<IpAddr>,
) -> Result<(), String> {
    let host = match (authority, headers.get(HOST)) {
        (Some(authority), _) => authority,
        (None, Some(host)) => ascii(host).ok_or("Host is not ASCII")?,
        (None, None) => return Err("the request names no Host".into()),
    };
    if !allows(host_name(host), options, bound) {
        return Err(format!(
            "Host {host} is not allowed: add it to the option allowed_hosts"
        ));
    }
    let Some(origin) = headers.get(ORIGIN) else {
        return Ok(());
    };
    let origin = ascii(origin).ok_or("Origin is not ASCII")?;
    let listed = options
        .allowed_origins
        .iter()
        .any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(origin));
    let own = origin
        .split_once("://")
        .is_some_and(|(_, authority)| allows(host_name(authority), options, bound));
    if listed || own {
        Ok(())
    } else {
        Err(format!(
            "Origin {origin} is not allowed: add it to the option allowed_origins"
        ))
    }
}

/// What [`HeaderValue::to_str`] gives, which looks at one byte at a time.
fn ascii(value: &HeaderValue) -> Option<&str> {
    std::str::from_utf8(value.as_bytes())
        .ok()
        .filter(|text| text.is_ascii())
}

fn allows(name: &str, options: &HttpOptions, bound: Option<IpAddr>) -> bool {
    if options
        .allowed_hosts
        .iter()
        .any(|allowed| allowed == "*" || host_name(allowed).eq_ignore_ascii_case(name))
    {
        return true;
    }
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || bound == Some(address),
        Err(_) => false,
    }
}

/// A host without its port, an IPv6 address without its brackets.
fn host_name(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(address, _)| address);
    }
    match authority.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') && port.bytes().all(|b| b.is_ascii_digit()) => {
            name
        }
        _ => authority,
    }
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
        check(&headers, None, options, None)
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
    fn what_is_listed_is_allowed() {
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
}
