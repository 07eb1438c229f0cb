//! Finds the state that several servers share by its URL, for the bindings and for programs that have nothing but a URL.

use mcpline::sharing::Sharing;

/// Returns the state at this URL, for a server with this name: `local`, `local://NAME` and `local:///path` for processes of one
/// machine (feature `local`), all others over Valkey (feature `valkey`).
///
/// # Errors
///
/// The URL is invalid, its feature is left out of this build, or the state cannot be set up. The message has no password.
pub fn share(url: &str, server: &str) -> Result<Sharing, String> {
    if is_local(url) {
        return share_local(url, server);
    }
    share_over_valkey(url)
}

fn is_local(url: &str) -> bool {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    scheme == "local"
}

#[cfg(feature = "local")]
fn share_local(url: &str, server: &str) -> Result<Sharing, String> {
    mcpline_local::Local::at_url(url, server).map_err(|error| error.to_string())
}

#[cfg(not(feature = "local"))]
fn share_local(_: &str, _: &str) -> Result<Sharing, String> {
    Err("this build of mcpline cannot share state between processes of one machine: it lacks the feature `local`".to_owned())
}

#[cfg(feature = "valkey")]
fn share_over_valkey(url: &str) -> Result<Sharing, String> {
    mcpline_valkey::Valkey::connect_on_own_thread(url).map_err(|error| error.to_string())
}

#[cfg(not(feature = "valkey"))]
fn share_over_valkey(_: &str) -> Result<Sharing, String> {
    Err(
        "this build of mcpline cannot share state over Valkey: it lacks the feature `valkey`"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_scheme_decides() {
        for url in ["local", "local:", "local://weather", "local:///run/weather"] {
            assert!(is_local(url), "{url}");
        }
        for url in ["localhost", "valkey://local", "", "locale://weather"] {
            assert!(!is_local(url), "{url}");
        }
    }
}
