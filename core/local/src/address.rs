//! Where the state is: the forms of the URL.

use std::path::PathBuf;

use crate::error::LocalError;

/// Maximum length of a name in bytes. It is a part of the paths of sockets, which may have 103 bytes on some systems.
pub(crate) const MAX_NAME: usize = 32;

/// The directory of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServiceAddress {
    /// The service's name within the directory of this user.
    Name(String),
    /// A directory of the program's own.
    Path(PathBuf),
}

impl ServiceAddress {
    /// Parses `local`, `local://NAME` or `local:///path`. Without a name, that of the server is used.
    pub(crate) fn parse(url: &str, server: &str) -> Result<Self, LocalError> {
        let invalid = |reason: &str| Err(LocalError::InvalidUrl(reason.to_owned()));
        let Some(rest) = url.strip_prefix("local") else {
            return invalid("must be `local`, `local://NAME` or `local:///path`");
        };
        let rest = match rest {
            "" => "",
            rest => match rest.strip_prefix("://") {
                Some(rest) => rest,
                None => return invalid("must be `local`, `local://NAME` or `local:///path`"),
            },
        };
        if rest.contains(['?', '#']) {
            return invalid("`local` has no options");
        }
        if rest.is_empty() {
            return Ok(Self::Name(name_of_server(server)));
        }
        if rest.starts_with('/') {
            return Ok(Self::Path(PathBuf::from(rest)));
        }
        Self::named(rest)
    }

    /// Checks a name.
    pub(crate) fn named(name: &str) -> Result<Self, LocalError> {
        if is_name(name) {
            return Ok(Self::Name(name.to_owned()));
        }
        Err(LocalError::InvalidUrl(format!(
            "the name must have 1 to {MAX_NAME} letters, digits or `-_.`, and must not begin with a dot"
        )))
    }
}

fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(allowed) && !name.starts_with('.')
}

/// Makes a name of any server's name: other names become their digest.
#[cfg(unix)]
fn name_of_server(server: &str) -> String {
    if is_name(server) {
        return server.to_owned();
    }
    let digest = crate::file_names::file_name(server);
    format!("server-{}", &digest[..16])
}

#[cfg(not(unix))]
fn name_of_server(server: &str) -> String {
    server.to_owned()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_service_or_a_directory() {
        let name = |url| ServiceAddress::parse(url, "weather");
        let named = |name: &str| Ok(ServiceAddress::Name(name.to_owned()));
        assert_eq!(name("local"), named("weather"));
        assert_eq!(name("local://"), named("weather"));
        assert_eq!(name("local://maps-2.0"), named("maps-2.0"));
        let path = ServiceAddress::Path(PathBuf::from("/run/weather"));
        assert_eq!(name("local:///run/weather"), Ok(path));
    }

    #[test]
    fn other_urls_are_refused() {
        let long = format!("local://{}", "x".repeat(33));
        for url in [
            "locale",
            "local:weather",
            "local://a/b",
            "local://..",
            "local://a?b=c",
            "local://é",
            &long,
        ] {
            let error = ServiceAddress::parse(url, "weather").unwrap_err();
            assert!(matches!(error, LocalError::InvalidUrl(_)), "{url}: {error}");
        }
    }

    #[test]
    fn any_name_of_a_server_becomes_a_different_name() {
        let names = ["a/b", "a b", "..", "", &"x".repeat(80)].map(name_of_server);
        for (index, name) in names.iter().enumerate() {
            assert!(is_name(name), "{name}");
            assert!(!names[..index].contains(name), "{name}");
        }
    }
}
