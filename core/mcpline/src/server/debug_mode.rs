//! Debug mode: whether it is on.

use crate::error::Error;

#[cfg(feature = "http")]
use super::Server;
use super::settings::DEBUG_VARIABLE;

/// Returns whether debug mode is on: as the setting says, or else the environment.
pub(super) fn is_on(setting: Option<bool>) -> Result<bool, Error> {
    match setting {
        Some(is_on) => Ok(is_on),
        None => of_variable(std::env::var_os(DEBUG_VARIABLE).as_deref()),
    }
}

fn of_variable(value: Option<&std::ffi::OsStr>) -> Result<bool, Error> {
    match value.map(|value| value.to_str()) {
        None | Some(Some("" | "0")) => Ok(false),
        Some(Some("1")) => Ok(true),
        Some(_) => Err(Error::usage(format!(
            "{DEBUG_VARIABLE}: must be 1 (debug mode is on) or 0 (it is off)"
        ))),
    }
}

/// Logs that debug mode is on.
pub(super) fn warn(server: &str) {
    tracing::warn!("{}", warning(server));
}

/// Returns the warning that debug mode is on.
pub(crate) fn warning(server: &str) -> String {
    format!(
        "debug mode of server {} is on (setting `debug`, or {DEBUG_VARIABLE}): clients get the texts of internal errors, \
         and the log gets all messages; do not use it in production",
        mcpline_protocol::Quoted(server)
    )
}

/// Logs that other machines can reach a server in debug mode.
#[cfg(feature = "http")]
pub(crate) fn warn_of_address(server: &Server, address: std::net::SocketAddr) {
    if server.is_debugged() && !address.ip().to_canonical().is_loopback() {
        tracing::warn!(
            "server {} is in debug mode and listens on {address}, which other machines may reach: they get the texts of \
             internal errors; bind it to 127.0.0.1, or turn debug mode off",
            mcpline_protocol::Quoted(server.name())
        );
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn the_variable_is_1_or_0() {
        for (value, expected) in [
            (None, Some(false)),
            (Some(""), Some(false)),
            (Some("0"), Some(false)),
            (Some("1"), Some(true)),
            (Some("yes"), None),
        ] {
            assert_eq!(
                of_variable(value.map(OsStr::new)).ok(),
                expected,
                "{value:?}"
            );
        }
    }

    #[test]
    fn the_setting_has_precedence_over_the_variable() {
        assert!(is_on(Some(true)).expect("on"));
        assert!(!is_on(Some(false)).expect("off"));
    }
}
