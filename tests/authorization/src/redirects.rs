//! Redirect URIs: which may be registered, and whether one is registered.

use crate::exchange::Refusal;

/// The relevant parts of a URI.
struct Parts<'a> {
    scheme: &'a str,
    host: &'a str,
    port: &'a str,
    rest: &'a str,
}

fn parts(uri: &str) -> Option<Parts<'_>> {
    let (scheme, rest) = uri.split_once(':')?;
    let Some(rest) = rest.strip_prefix("//") else {
        return Some(Parts {
            scheme,
            host: "",
            port: "",
            rest,
        });
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let host_end = if authority.starts_with('[') {
        authority.find(']')? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (host, port) = authority.split_at(host_end);
    Some(Parts {
        scheme,
        host,
        port,
        rest,
    })
}

fn is_loopback(host: &str) -> bool {
    matches!(host, "127.0.0.1" | "[::1]")
}

/// Checks that a client of this `application_type` may register the URI.
pub(crate) fn check(uri: &str, application_type: Option<&str>) -> Result<(), Refusal> {
    let refused = |why: &str| {
        Err(Refusal::new(
            "invalid_redirect_uri",
            format!("{uri}: {why}"),
        ))
    };
    let Some(found) = parts(uri) else {
        return refused("not a URI");
    };
    if uri.contains('#') {
        return refused("a fragment");
    }
    let local = is_loopback(found.host) || found.host == "localhost";
    match (found.scheme, application_type) {
        ("http", _) if !local => refused("http to another machine"),
        ("http", Some("web")) => refused("a web client needs https"),
        ("http" | "https", _) if found.host.is_empty() => refused("no host"),
        ("https", Some("native")) if local => refused("https on loopback"),
        ("https" | "http", _) => Ok(()),
        (_, Some("web")) => refused("a web client needs https"),
        (scheme, _) if scheme.contains('.') => Ok(()),
        _ => refused("a scheme of an application's own contains a dot"),
    }
}

/// Whether the URI is registered: an exact match, except for the port of a loopback address (RFC 8252, 7.3).
pub(crate) fn is_registered(uri: &str, registered: &[String]) -> bool {
    registered.iter().any(|known| {
        known == uri
            || match (parts(known), parts(uri)) {
                (Some(known), Some(found)) => {
                    known.scheme == "http"
                        && found.scheme == "http"
                        && is_loopback(known.host)
                        && known.host == found.host
                        && known.rest == found.rest
                        && (found.port.is_empty() || found.port[1..].parse::<u16>().is_ok())
                }
                _ => false,
            }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_port_of_a_loopback_address_may_differ() {
        let registered = [
            "http://127.0.0.1:1/callback".to_owned(),
            "http://localhost:3000/callback".to_owned(),
            "https://example.com/callback".to_owned(),
        ];
        for good in [
            "http://127.0.0.1:1/callback",
            "http://127.0.0.1:40000/callback",
            "http://localhost:3000/callback",
            "https://example.com/callback",
        ] {
            assert!(is_registered(good, &registered), "{good}");
        }
        for bad in [
            "http://127.0.0.1:1/callback/",
            "http://127.0.0.1:1/callback?a=b",
            "http://127.0.0.1:99999/callback",
            "http://127.0.0.1:1@example.com/callback",
            "http://127.0.0.1.example.com/callback",
            "http://localhost:3001/callback",
            "https://example.com:8443/callback",
            "https://example.com/callback/..",
        ] {
            assert!(!is_registered(bad, &registered), "{bad}");
        }
    }

    #[test]
    fn registers_only_uris_that_fit_the_application_type() {
        for (uri, kind) in [
            ("http://localhost:3000/callback", None),
            ("http://127.0.0.1/callback", Some("native")),
            ("com.example.app:/callback", Some("native")),
            ("https://example.com/callback", Some("web")),
        ] {
            assert!(check(uri, kind).is_ok(), "{uri} {kind:?}");
        }
        for (uri, kind) in [
            ("http://example.com/callback", None),
            ("http://127.0.0.1/callback", Some("web")),
            ("com.example.app:/callback", Some("web")),
            ("javascript:alert(1)", None),
            ("https://example.com/#", None),
            ("https://127.0.0.1/", Some("native")),
            ("callback", None),
        ] {
            assert!(check(uri, kind).is_err(), "{uri} {kind:?}");
        }
    }
}
