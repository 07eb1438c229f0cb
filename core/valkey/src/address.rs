//! URLs.

use redis::{ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use crate::error::ValkeyError;

/// What a URL leads to.
#[derive(Debug, Clone)]
pub(crate) enum Address {
    /// One server.
    Server(ConnectionInfo),
    /// A cluster, by some of its nodes.
    #[cfg(feature = "cluster")]
    Cluster(Vec<ConnectionInfo>),
    /// The primary of this name, by its sentinels.
    #[cfg(feature = "sentinel")]
    Sentinel {
        sentinels: Vec<ConnectionInfo>,
        service: String,
    },
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, ValkeyError> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| {
            invalid("must begin with a scheme such as `valkey://`, `valkeys://` or `redis://`")
        })?;
        match scheme {
            "valkey" | "redis" | "valkey+unix" | "redis+unix" => {
                parse_host(scheme, rest).map(Self::Server)
            }
            "valkeys" | "rediss" => {
                require_feature(cfg!(feature = "tls"), scheme, "tls")?;
                parse_host(scheme, rest).map(Self::Server)
            }
            _ => match scheme.rsplit_once('-') {
                Some((base @ ("valkey" | "redis" | "valkeys" | "rediss"), kind)) => {
                    if base.ends_with('s') && base != "redis" {
                        require_feature(cfg!(feature = "tls"), scheme, "tls")?;
                    }
                    parse_multiple_hosts(scheme, base, kind, rest)
                }
                _ => Err(invalid(
                    "has an unknown scheme: use `valkey`, `valkeys`, `redis` or `rediss`",
                )),
            },
        }
    }
}

/// Parses the URL of a cluster or of sentinels.
fn parse_multiple_hosts(
    scheme: &str,
    base: &str,
    kind: &str,
    rest: &str,
) -> Result<Address, ValkeyError> {
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, hosts) = match hosts.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), hosts),
    };
    let nodes: Vec<ConnectionInfo> = hosts
        .split(',')
        .map(|host| parse_host(base, &format!("{user}{host}/{path}")))
        .collect::<Result<_, _>>()?;
    match kind {
        "cluster" => {
            require_feature(cfg!(feature = "cluster"), scheme, "cluster")?;
            if !path.is_empty() && path != "0" {
                return Err(invalid("a cluster has no database but 0"));
            }
            #[cfg(feature = "cluster")]
            return Ok(Address::Cluster(nodes));
        }
        "sentinel" => {
            require_feature(cfg!(feature = "sentinel"), scheme, "sentinel")?;
            let service = query
                .split('&')
                .find_map(|part| part.strip_prefix("service="))
                .filter(|name| !name.is_empty())
                .ok_or_else(|| invalid("sentinels need the primary's name: add `?service=NAME`"))?;
            #[cfg(feature = "sentinel")]
            return Ok(Address::Sentinel {
                sentinels: nodes,
                service: service.to_owned(),
            });
            #[cfg(not(feature = "sentinel"))]
            let _ = service;
        }
        _ => {}
    }
    let _ = nodes;
    Err(invalid(
        "has an unknown scheme: after the hyphen, use `cluster` or `sentinel`",
    ))
}

fn require_feature(
    is_enabled: bool,
    scheme: &str,
    feature: &'static str,
) -> Result<(), ValkeyError> {
    match is_enabled {
        true => Ok(()),
        false => Err(ValkeyError::MissingFeature {
            scheme: scheme.to_owned(),
            feature,
        }),
    }
}

/// Parses the part of a URL for one server. The answers of all servers are read in the same version of the protocol.
fn parse_host(scheme: &str, rest: &str) -> Result<ConnectionInfo, ValkeyError> {
    let info = format!("{scheme}://{rest}")
        .into_connection_info()
        // The detail may contain a part of the URL.
        .map_err(|error| invalid(&format!("is invalid ({})", describe(&error))))?;
    let settings = info.redis_settings().clone();
    Ok(info.set_redis_settings(settings.set_protocol(ProtocolVersion::RESP2)))
}

/// Returns the constant part of an error's message.
fn describe(error: &redis::RedisError) -> String {
    let text = error.to_string();
    let constant = text.split(" - ").next().unwrap_or_default();
    constant
        .trim_end_matches(|letter: char| letter == ':' || letter.is_whitespace())
        .to_owned()
}

fn invalid(reason: &str) -> ValkeyError {
    ValkeyError::InvalidUrl(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_one_server() {
        for url in [
            "valkey://localhost",
            "redis://user:secret@[::1]:7000/3",
            "valkey+unix:///run/valkey.sock",
        ] {
            assert!(
                matches!(Address::parse(url), Ok(Address::Server(_))),
                "{url}"
            );
        }
    }

    #[test]
    fn an_invalid_url_is_refused_without_its_password() {
        for url in [
            "localhost:6379",
            "http://localhost",
            "valkey://",
            "valkey://user:secret@:6379",
            "valkey://user:secret@localhost:secret",
            "valkey://user:secret@localhost/secret",
            "valkey-ring://user:secret@localhost",
        ] {
            let error = Address::parse(url).expect_err(url);
            assert!(
                matches!(error, ValkeyError::InvalidUrl(_)),
                "{url}: {error}"
            );
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn urls_with_tls() {
        for url in ["valkeys://localhost", "rediss://localhost"] {
            let Ok(Address::Server(info)) = Address::parse(url) else {
                panic!("{url}");
            };
            assert!(
                matches!(
                    info.addr(),
                    redis::ConnectionAddr::TcpTls {
                        insecure: false,
                        ..
                    }
                ),
                "{url}"
            );
        }
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn urls_with_tls_need_the_feature() {
        let error = Address::parse("valkeys://localhost").expect_err("no TLS");
        assert!(matches!(
            error,
            ValkeyError::MissingFeature { feature: "tls", .. }
        ));
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn urls_of_clusters() {
        let Ok(Address::Cluster(nodes)) =
            Address::parse("valkey-cluster://user:secret@one:7000,two")
        else {
            panic!("a cluster");
        };
        assert_eq!(nodes.len(), 2);
        assert_eq!(nodes[1].redis_settings().password(), Some("secret"));
        assert!(Address::parse("valkey-cluster://one/2").is_err());
    }

    #[cfg(feature = "sentinel")]
    #[test]
    fn urls_of_sentinels_name_a_service() {
        let Ok(Address::Sentinel { sentinels, service }) =
            Address::parse("redis-sentinel://one:26379,two:26379/2?service=main")
        else {
            panic!("sentinels");
        };
        assert_eq!((sentinels.len(), service.as_str()), (2, "main"));
        assert_eq!(sentinels[0].redis_settings().db(), 2);
        assert!(Address::parse("redis-sentinel://one:26379").is_err());
    }
}
