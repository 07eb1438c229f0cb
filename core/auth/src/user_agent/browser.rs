//! Opening a URL in the user's browser.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use mcpline_runtime::background;

use crate::BoxFuture;

use super::UserAgentError;

type Open = dyn Fn(String) -> BoxFuture<'static, Result<(), String>> + Send + Sync;

/// How a URL is opened for the user.
#[derive(Clone)]
pub(super) enum UrlOpener {
    /// In the system's browser.
    System,
    /// By a function of the host.
    Host(Arc<Open>),
    /// Not at all: the user opens it.
    None,
}

impl UrlOpener {
    /// Opens URLs with a function of the host.
    pub(super) fn host<F, Fut>(open: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self::Host(Arc::new(move |url| Box::pin(open(url))))
    }

    /// Opens `url`. The error says in words for the user why it can't be opened.
    pub(super) async fn open(self, url: String) -> Result<(), String> {
        match self {
            Self::System => {
                // Searches for programs, starts one and watches it for a moment.
                let opened = background::blocking(move || system(&url)).await;
                opened.unwrap_or_else(|| Err("looking for a browser failed".to_owned()))
            }
            Self::Host(open) => open(url).await,
            Self::None => Err("opening a browser is disabled".to_owned()),
        }
    }
}

impl fmt::Debug for UrlOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "System",
            Self::Host(_) => "Host",
            Self::None => "None",
        })
    }
}

/// Checks that a URL is safe to open: `http` or `https` only, because the system's URL opener also opens files and
/// starts programs.
pub(super) fn check(url: &str) -> Result<(), UserAgentError> {
    const REASON: &str = "the URL to open for the user must begin with http:// or https://";
    let read = fluent_uri::Uri::parse(url).map_err(|_| UserAgentError::Url(REASON))?;
    let scheme = read.scheme().as_str();
    let is_web = ["https", "http"]
        .iter()
        .any(|web| scheme.eq_ignore_ascii_case(web));
    let has_host = read
        .authority()
        .is_some_and(|authority| !authority.host().is_empty());
    if is_web && has_host {
        Ok(())
    } else {
        Err(UserAgentError::Url(REASON))
    }
}

fn system(url: &str) -> Result<(), String> {
    // In containers of remote editors only this variable is set. Lists and templates are left to the system's URL
    // opener.
    let program = std::env::var("BROWSER").unwrap_or_default();
    let is_program = !program.is_empty() && !program.contains([':', '%', ' ']);
    if cfg!(target_os = "linux") && is_program && open::with_detached(url, program).is_ok() {
        return Ok(());
    }
    if !has_display() {
        // The URL opener would start a terminal browser that the user can't see.
        return Err("there is no display".to_owned());
    }
    open::that_detached(url).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "no browser was found".to_owned(),
        _ => error.to_string(),
    })
}

/// Whether there seems to be a display for a browser.
fn has_display() -> bool {
    let displays = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"];
    !cfg!(target_os = "linux")
        || displays
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_pages_are_opened() {
        for url in [
            "https://as.example/authorize?state=a%20b",
            "HTTP://localhost:1/x",
        ] {
            check(url).expect("a web page");
        }
        for url in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https:opaque",
            "https:///nowhere",
            "/bin/sh",
            "--help",
            "https://as.example/a b",
            "https://as.example/\"&calc",
            "",
        ] {
            check(url).expect_err(url);
        }
    }
}
