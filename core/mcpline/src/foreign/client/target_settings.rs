//! Settings of a client's server that are set one at a time, whatever its address is and whenever that is set.

#[cfg(feature = "stdio")]
use std::path::PathBuf;

use crate::client::Address;

/// What is added to the options of a [`Target`](super::Target), or replaces them: headers and a token for a server at a URL,
/// environment and working directory for a server that the client starts. Other servers have none of these.
#[derive(Default)]
pub struct TargetSettings {
    #[cfg(feature = "http")]
    headers: Vec<(String, String)>,
    #[cfg(feature = "auth")]
    bearer: Option<String>,
    #[cfg(feature = "stdio")]
    environment: Vec<(String, String)>,
    #[cfg(feature = "stdio")]
    directory: Option<PathBuf>,
}

/// Omits the values, which may be secret.
impl std::fmt::Debug for TargetSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TargetSettings").finish_non_exhaustive()
    }
}

/// Replaces a named value; without a value, removes it.
#[cfg(any(feature = "http", feature = "stdio"))]
fn replace(
    values: &mut Vec<(String, String)>,
    name: &str,
    value: Option<&str>,
    is_same: impl Fn(&str, &str) -> bool,
) {
    values.retain(|(known, _)| !is_same(known, name));
    values.extend(value.map(|value| (name.to_owned(), value.to_owned())));
}

impl TargetSettings {
    /// Sets a header that is sent with each request, in place of one of the same name in the target's options; `None`
    /// for no header of this function.
    #[cfg(feature = "http")]
    pub fn set_header(&mut self, name: &str, value: Option<&str>) {
        replace(&mut self.headers, name, value, str::eq_ignore_ascii_case);
    }

    /// Sets a fixed access token, in place of the authorization in the target's options; `None` for no token of this
    /// function.
    #[cfg(feature = "auth")]
    pub fn set_bearer(&mut self, token: Option<&str>) {
        self.bearer = token.map(str::to_owned);
    }

    /// Sets an environment variable of the process, in place of one of the same name in the target's options; `None`
    /// for no variable of this function.
    #[cfg(feature = "stdio")]
    pub fn set_environment_variable(&mut self, name: &str, value: Option<&str>) {
        replace(&mut self.environment, name, value, |known, name| {
            known == name
        });
    }

    /// Sets the working directory of the process, in place of the one in the target's options; `None` for no directory
    /// of this function.
    #[cfg(feature = "stdio")]
    pub fn set_directory(&mut self, directory: Option<&str>) {
        self.directory = directory.map(PathBuf::from);
    }

    /// Applies the settings to the address of a target.
    pub(super) fn apply(&self, address: Address) -> Address {
        match address {
            #[cfg(feature = "http")]
            Address::Url(url, mut settings) => {
                for (name, value) in &self.headers {
                    let is_same = str::eq_ignore_ascii_case;
                    replace(&mut settings.headers, name, Some(value), is_same);
                }
                #[cfg(feature = "auth")]
                if let Some(token) = &self.bearer {
                    settings.auth = Some(crate::auth::Auth::bearer(token.as_str()));
                }
                Address::Url(url, settings)
            }
            #[cfg(feature = "stdio")]
            Address::Command(mut command) => {
                for (name, value) in &self.environment {
                    command = command.env(name, value);
                }
                if let Some(directory) = &self.directory {
                    command = command.current_dir(directory);
                }
                Address::Command(command)
            }
            other => other,
        }
    }
}
