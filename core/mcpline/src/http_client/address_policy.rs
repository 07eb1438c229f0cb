//! Restricts the addresses to connect to.
//!
//! A server's metadata names the authorization server. A hostile server could name something that only this machine can
//! reach: a cloud's metadata service, a router, a database. So URLs that come from a server are fetched from public
//! addresses only, and addresses are checked where they are used, after names were resolved (2025-11-25, security best
//! practices, server-side request forgery).

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use mcpline_protocol::is_loopback_host;
use tower_service::Service;

/// The addresses that may be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressPolicy {
    /// Any address.
    Everywhere,
    /// Public addresses. A proxy resolves names itself, so with one, only addresses are checked.
    #[cfg(any(feature = "auth", test))]
    Public,
    /// Public addresses without a proxy.
    #[cfg(feature = "openapi")]
    PublicDirect,
}

impl AddressPolicy {
    /// Refuses a host that is an address out of reach, or another spelling of one. The [`Resolver`] refuses names, but does
    /// not see them if a proxy resolves them.
    pub(crate) fn check_host(self, host: &str) -> Result<(), String> {
        if self == Self::Everywhere {
            return Ok(());
        }
        match host.parse::<IpAddr>() {
            Ok(address) if !self.allows(address) => Err(private_address_error(host)),
            Ok(_) => Ok(()),
            Err(_) if is_loopback_host(host.trim_end_matches('.')) => {
                Err(private_address_error(host))
            }
            Err(_) if is_address_in_another_form(host) => Err(format!(
                "{host} is neither a host name nor an IP address in its usual form: a server must not send this client to it"
            )),
            Err(_) => Ok(()),
        }
    }

    /// Refuses a proxy between this client and a host, if it is not known which address that leads to.
    pub(crate) fn check_proxy(self, host: &str) -> Result<(), String> {
        match self {
            #[cfg(feature = "openapi")]
            Self::PublicDirect => Err(format!(
                "{host} would be reached through a proxy, which may lead to a private address: set `base_url`, or allow \
                 private addresses (`allow_private_addresses`)"
            )),
            _ => {
                let _ = host;
                Ok(())
            }
        }
    }

    fn allows(self, address: IpAddr) -> bool {
        self == Self::Everywhere || is_public(address)
    }
}

/// Whether a system may read a host that is no [`IpAddr`] as an address: its last part is a number, as in `127.1`, `0x7f.1`
/// and `2130706433` (WHATWG URL, ends-in-a-number checker), or it has characters that no name has.
fn is_address_in_another_form(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_decimal = last.bytes().all(|byte| byte.is_ascii_digit());
    let hexadecimal = last.strip_prefix("0x").or(last.strip_prefix("0X"));
    let is_hexadecimal =
        hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    is_decimal || is_hexadecimal || !name.bytes().all(is_of_name)
}

fn private_address_error(host: &str) -> String {
    format!(
        "{host} is at a private address: a server must not send this client there (see `allow_private_addresses`)"
    )
}

/// Resolves names with the system's resolver, and leaves out addresses out of reach.
#[derive(Clone)]
pub(crate) struct Resolver {
    system: GaiResolver,
    reach: AddressPolicy,
}

impl Resolver {
    pub(crate) fn new(reach: AddressPolicy) -> Self {
        Self {
            system: GaiResolver::new(),
            reach,
        }
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.system.poll_ready(cx)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (host, reach) = (name.as_str().to_owned(), self.reach);
        let addresses = self.system.call(name);
        Box::pin(async move {
            let addresses: Vec<_> = addresses.await?.collect();
            let reachable: Vec<_> = addresses
                .iter()
                .copied()
                .filter(|address| reach.allows(address.ip()))
                .collect();
            if reachable.is_empty() && !addresses.is_empty() {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    private_address_error(&host),
                ));
            }
            Ok(reachable.into_iter())
        })
    }
}

/// Returns whether an address belongs to the public internet.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let benchmarking = a == 198 && (b == 18 || b == 19);
    let assigned = (a, b, c) == (192, 0, 0);
    !(a == 0
        || a >= 240
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || shared
        || benchmarking
        || assigned)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // Mapped, translated and tunnelled addresses are as public as the embedded ones.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            embedded(high, low)
        }
        [0x2002, high, low, ..] => embedded(high, low),
        [0x2001, 0xdb8, ..] | [0x2001, 0, ..] => false,
        // Globally routed addresses are in 2000::/3.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_are_not_public() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "::127.0.0.1",
        ] {
            let parsed: IpAddr = address.parse().expect("an address");
            assert!(!is_public(parsed), "{address}");
            assert!(AddressPolicy::Public.check_host(address).is_err());
            assert!(AddressPolicy::Everywhere.check_host(address).is_ok());
        }
        for address in [
            "93.184.216.34",
            "8.8.8.8",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(address.parse().expect("an address")), "{address}");
        }
    }

    #[test]
    fn other_spellings_of_addresses_are_not_public() {
        for host in [
            "localhost",
            "LOCALHOST.",
            "api.localhost",
            "2852039166",
            "169.254.43518",
            "127.1",
            "0x7f000001",
            "0x7f.0.0.0x1",
            "0177.0.0.1",
            "127.0.0.1.",
            "0x",
            "1.2.3.4.5",
            "",
            "fe80::1%eth0",
            "%6cocalhost",
        ] {
            assert!(AddressPolicy::Public.check_host(host).is_err(), "{host}");
            assert!(AddressPolicy::Everywhere.check_host(host).is_ok(), "{host}");
        }
        for host in [
            "example.com",
            "example.com.",
            "1.example",
            "a_b.example",
            "8.8.8.8",
            "xn--4ca.example",
        ] {
            assert!(AddressPolicy::Public.check_host(host).is_ok(), "{host}");
        }
    }

    #[runtimes::test]
    async fn a_name_of_a_private_address_is_refused_when_it_is_resolved() {
        let name = || "localhost".parse::<Name>().expect("a name");
        let error = Resolver::new(AddressPolicy::Public)
            .call(name())
            .await
            .expect_err("private");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(
            Resolver::new(AddressPolicy::Everywhere)
                .call(name())
                .await
                .expect("resolved")
                .len()
                > 0
        );
    }
}
