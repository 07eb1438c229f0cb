//! Decides which tools clients of a server see and call.

use mcpline_protocol::wire::Method;
use mcpline_protocol::{RpcError, Scopes};

use crate::error::Error;
use crate::name_pattern::{NamePattern, matches_any};

use super::{Middleware, MiddlewareFuture, MiddlewareRequest, Next};

/// A [`Middleware`] that decides which tools of a server clients list and call, by the names of the tools.
///
/// A tool that is not allowed is left out of `tools/list`, and a call of it fails like that of a tool that does not exist. For
/// some tools, the user can be asked first: the server sends an elicitation (`elicitation/create`) with the name and the
/// arguments, and runs the tool if the user accepts. A client that does not support elicitation in form mode cannot call such a
/// tool.
///
/// Names are those that the tools have at the server of the policy: at a mounted server without the prefix of the mount, and
/// for a [transformed tool](crate::Server::transform_tool) the new name. Of several policies, the strictest decides, also of those of
/// mounted servers. A policy also decides on tools to which other middleware passes a request, whatever their order. If other
/// middleware answers a call by itself, the user is not asked. [`ResponseCache`](super::ResponseCache) does not keep results of calls
/// that the user was asked for.
///
/// ```
/// use std::sync::Arc;
///
/// use mcpline::Server;
/// use mcpline::middleware::ToolPolicy;
/// use mcpline::server::{FeatureSelection, MiddlewareScope};
///
/// let server = Server::new("files", "1.0.0");
/// // Callers without the scope `admin` get tools that read, and `upload` if the user accepts.
/// let policy = ToolPolicy::new()
///     .with_allowed(["get_*", "search", "upload"])
///     .with_approval(["upload"])
///     .with_exempt_scopes(["admin"])?;
/// let server = server.middleware(policy);
/// // The user is asked before each tool with this tag runs.
/// let destructive = FeatureSelection::all().with_tags(["destructive"]);
/// let policy = ToolPolicy::new().with_approval(["*"]);
/// server.add_middleware(MiddlewareScope::all().with_features(destructive), Arc::new(policy))?;
/// # Ok::<(), mcpline::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ToolPolicy {
    allowed: Option<Vec<NamePattern>>,
    denied: Vec<NamePattern>,
    approval: Vec<NamePattern>,
    exempt: Option<Scopes>,
}

/// What a policy says about a tool. Later ones are stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ToolRule {
    Allowed,
    /// The user is asked before it is called.
    NeedsApproval,
    /// It is neither listed nor called.
    Denied,
}

impl ToolPolicy {
    /// Creates a policy that allows all tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows only tools whose name matches one of these patterns, in which `*` stands for any characters.
    #[must_use]
    pub fn with_allowed<S: AsRef<str>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        self.allowed = Some(NamePattern::all(patterns));
        self
    }

    /// Denies tools whose name matches one of these patterns, also those that are allowed.
    #[must_use]
    pub fn with_denied<S: AsRef<str>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        self.denied = NamePattern::all(patterns);
        self
    }

    /// Asks the user before each call of a tool whose name matches one of these patterns.
    #[must_use]
    pub fn with_approval<S: AsRef<str>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        self.approval = NamePattern::all(patterns);
        self
    }

    /// Exempts callers that have all of these scopes: nothing is denied to them, and no approval is needed. Callers have scopes
    /// as for [`ToolOptions::scopes`](crate::server::ToolOptions::scopes): on stdio and Unix sockets, and in memory and on channels
    /// without a principal, the caller is the user who runs the server, or admitted by that user, and is exempt.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): there are none, or one is not a valid scope.
    pub fn with_exempt_scopes<S: AsRef<str>>(
        mut self,
        scopes: impl IntoIterator<Item = S>,
    ) -> Result<Self, Error> {
        let scopes = Scopes::checked(scopes).map_err(|scope| {
            Error::usage(format!(
                "the exempt scopes of a tool policy contain {scope:?}, which is not a scope"
            ))
        })?;
        if scopes.is_empty() {
            return Err(Error::usage(
                "the exempt scopes of a tool policy are empty: every caller would be exempt",
            ));
        }
        self.exempt = Some(scopes);
        Ok(self)
    }

    /// Returns what the policy says about a tool. `has_scopes` says whether the caller has scopes; it is called if that matters.
    pub(crate) fn rule(&self, name: &str, has_scopes: &dyn Fn(&Scopes) -> bool) -> ToolRule {
        if self.exempt.as_ref().is_some_and(has_scopes) {
            return ToolRule::Allowed;
        }
        let is_allowed = self
            .allowed
            .as_ref()
            .is_none_or(|patterns| matches_any(patterns, name));
        if !is_allowed || matches_any(&self.denied, name) {
            ToolRule::Denied
        } else if matches_any(&self.approval, name) {
            ToolRule::NeedsApproval
        } else {
            ToolRule::Allowed
        }
    }
}

/// Returns the error of a call of a tool that does not exist, or that the caller may not know.
pub(crate) fn unknown_tool(name: &str) -> RpcError {
    RpcError::invalid_params(format!("Unknown tool: {name}"))
}

impl Middleware for ToolPolicy {
    /// Refuses calls before other middleware sees them. The rest is enforced when the server finds the tool.
    fn handle(&self, request: MiddlewareRequest, next: Next) -> MiddlewareFuture {
        let is_denied = *request.protocol_method() == Method::ToolsCall
            && request.name().is_some_and(|name| {
                self.rule(name, &|scopes| request.has_scopes(scopes)) == ToolRule::Denied
            });
        if is_denied {
            let error = unknown_tool(&request.target().unwrap_or_default());
            return Box::pin(std::future::ready(Err(error)));
        }
        Box::pin(async move { next.run(request).await })
    }

    fn tool_policy(&self) -> Option<&ToolPolicy> {
        Some(self)
    }
}
