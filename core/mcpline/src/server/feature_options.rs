//! Options of tools, resources and prompts, besides their definitions.

use std::time::Duration;

use mcpline_protocol::Scopes;
use mcpline_protocol::session::Rate;
use mcpline_protocol::uri_template::UriTemplate;
use mcpline_protocol::vocabulary::CacheHints;

use crate::error::Error;

use super::feature_selection::check_tags;

/// Options of a tool, besides its definition.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ToolOptions {
    /// Never run the handler twice for one request: a retry (2026-07-28) that reaches another process fails instead.
    pub run_once: bool,
    /// The handler validates its arguments itself while it decodes them.
    pub decodes_itself: bool,
    /// Maximum rate of calls, server-wide. `None`: the server's `tool_rate`.
    pub rate: Option<Rate>,
    /// How long a handler may run. `None`: no limit.
    ///
    /// When the time is over, the client gets a tool error that says so, and the handler is cancelled as if the client had
    /// cancelled the request: see [`Context::is_cancelled`](super::Context::is_cancelled). A function on a thread goes on
    /// unless it checks that, and its result is dropped. The time begins when the arguments have been validated, includes
    /// the time that the handler waits for a thread, and does not pass while an input request of the handler is open: how
    /// long a user may take is limited by [`Settings::input_request_timeouts`](super::Settings::input_request_timeouts). A
    /// request that the handler does not wait for any more is open until it is answered or that limit ends it. A handler that
    /// runs again, with the answers to input requests, has the whole time again.
    pub timeout: Option<Duration>,
    /// Scopes that a caller needs, all of them. Default: none.
    ///
    /// The tool is missing from lists for callers that lack one, and a call fails with an error that names the required
    /// scopes (2025-11-25, `basic/authorization`, scope challenge handling). Enforced where the transport knows the
    /// caller: over HTTP and for [principals](crate::Server::connect_as). Callers over stdio and in memory may call it.
    pub scopes: Scopes,
    /// Words by which a [selection](super::FeatureSelection) finds the feature, such as `"beta"`. They are not sent to
    /// clients. Default: none.
    pub tags: Vec<String>,
    /// The handler makes sure itself that structured content matches the output schema ([`Call::output_schema`]).
    ///
    /// [`Call::output_schema`]: super::Call::output_schema
    pub(crate) checks_output_itself: bool,
    /// A value given as a scope that is not a valid one. Kept to refuse the registration, which would lack protection.
    unusable: Option<String>,
}

impl ToolOptions {
    pub(super) fn check(&self) -> Result<(), Error> {
        check_tags(&self.tags)?;
        check_scopes(self.unusable.as_deref())
    }

    /// Sets how long a handler may run.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the tags.
    #[must_use]
    pub fn with_tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the required scopes.
    #[must_use]
    pub fn with_scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        (self.scopes, self.unusable) = checked_scopes(scopes);
        self
    }
}

/// Options of a resource or resource template, besides its definition.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ResourceOptions {
    /// Scopes that a caller needs to list, read and subscribe to the resource: see [`ToolOptions::scopes`].
    pub scopes: Scopes,
    /// Variables of a template that may have any value. Default: none.
    ///
    /// A URI in which another variable contains a `..` segment, an absolute path or the character NUL is answered with
    /// an error, and the handler is not run: joined to a directory, such a value names a file outside of it.
    pub unchecked_variables: Vec<String>,
    /// How long clients may cache the contents, and who may (2026-07-28). `None`: the server's
    /// [`resource_cache`](super::Settings::resource_cache). A handler may return hints of its own
    /// ([`ResourceReply::cache`](super::ResourceReply::cache)). With `scopes` the contents are private in any case.
    pub cache: Option<CacheHints>,
    /// Words by which a [selection](super::FeatureSelection) finds the feature, such as `"beta"`. They are not sent to
    /// clients. Default: none.
    pub tags: Vec<String>,
    /// A value given as a scope that is not a valid one. Kept to refuse the registration, which would lack protection.
    unusable: Option<String>,
}

impl ResourceOptions {
    pub(super) fn check(&self) -> Result<(), Error> {
        check_tags(&self.tags)?;
        check_scopes(self.unusable.as_deref())
    }

    /// Sets the variables of a template that may have any value: see
    /// [`unchecked_variables`](Self::unchecked_variables).
    #[must_use]
    pub fn with_unchecked_variables<S: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = S>,
    ) -> Self {
        self.unchecked_variables = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how long clients may cache the contents, and who may.
    #[must_use]
    pub fn with_cache(mut self, cache: CacheHints) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Refuses exceptions for variables that the template does not have, such as misspelt ones.
    pub(super) fn check_unchecked_variables(
        &self,
        template: Option<&UriTemplate>,
    ) -> Result<(), Error> {
        let has =
            |name: &str| template.is_some_and(|template| template.names().any(|own| own == name));
        match self.unchecked_variables.iter().find(|name| !has(name)) {
            None => Ok(()),
            Some(name) => Err(Error::usage(format!(
                "unchecked_variables names {name:?}, which is not a variable of the resource's URI"
            ))),
        }
    }

    /// Sets the tags.
    #[must_use]
    pub fn with_tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the required scopes.
    #[must_use]
    pub fn with_scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        (self.scopes, self.unusable) = checked_scopes(scopes);
        self
    }
}

/// Options of a prompt, besides its definition.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PromptOptions {
    /// Scopes that a caller needs to list and get it: see [`ToolOptions::scopes`].
    pub scopes: Scopes,
    /// Words by which a [selection](super::FeatureSelection) finds the feature, such as `"beta"`. They are not sent to
    /// clients. Default: none.
    pub tags: Vec<String>,
    /// A value given as a scope that is not a valid one. Kept to refuse the registration, which would lack protection.
    unusable: Option<String>,
}

impl PromptOptions {
    pub(super) fn check(&self) -> Result<(), Error> {
        check_tags(&self.tags)?;
        check_scopes(self.unusable.as_deref())
    }

    /// Sets the tags.
    #[must_use]
    pub fn with_tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the required scopes.
    #[must_use]
    pub fn with_scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        (self.scopes, self.unusable) = checked_scopes(scopes);
        self
    }
}

/// Returns the scopes, or the first value that is not a valid one.
pub(super) fn checked_scopes<S: AsRef<str>>(
    scopes: impl IntoIterator<Item = S>,
) -> (Scopes, Option<String>) {
    match Scopes::checked(scopes) {
        Ok(scopes) => (scopes, None),
        Err(unusable) => (Scopes::new(), Some(unusable)),
    }
}

/// Refuses a registration with an invalid scope.
pub(super) fn check_scopes(unusable: Option<&str>) -> Result<(), Error> {
    match unusable {
        None => Ok(()),
        Some(text) => Err(Error::usage(format!(
            "{text:?} can't be a scope: scopes are visible ASCII without quotes and backslashes"
        ))),
    }
}
