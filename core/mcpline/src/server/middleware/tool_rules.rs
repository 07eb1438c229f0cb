//! What the tool policies of a server, and of the mounted servers that a tool comes from, say about it.
//!
//! It is asked where a tool is listed and where it is called, so that neither other middleware nor a mount bypasses a policy.

use mcpline_protocol::Scopes;
use mcpline_protocol::wire::Method;

use crate::middleware::{ToolPolicy, ToolRule};

use super::super::call_kind::CallKind;
use super::super::feature_entries::{FeatureEntry, ToolEntry};
use super::super::inner::Inner;
use super::super::item_list::Item;
use super::{MiddlewareImpl, Middlewares, RegisteredMiddleware};

impl Inner {
    /// Returns the strictest rule for a tool. `has_scopes` says whether the caller has scopes; it is called if that matters.
    #[inline]
    pub(in super::super) fn tool_rule(
        &self,
        item: &Item<ToolEntry>,
        has_scopes: &dyn Fn(&Scopes) -> bool,
    ) -> ToolRule {
        match self.middlewares.has_tool_policy() {
            false => ToolRule::Allowed,
            true => self.strictest_tool_rule(item, has_scopes),
        }
    }

    fn strictest_tool_rule(
        &self,
        item: &Item<ToolEntry>,
        has_scopes: &dyn Fn(&Scopes) -> bool,
    ) -> ToolRule {
        let own = self
            .middlewares
            .tool_rule(&item.name, item.entry.tags(), has_scopes);
        let sources = item.origin.iter().flat_map(|origin| origin.sources.iter());
        let of_sources = sources.map(|source| {
            let middlewares = &source.server.middlewares;
            middlewares.tool_rule(&source.key, &source.tags, has_scopes)
        });
        of_sources.fold(own, ToolRule::max)
    }
}

impl Middlewares {
    fn tool_rule(
        &self,
        name: &str,
        tags: &[String],
        has_scopes: &dyn Fn(&Scopes) -> bool,
    ) -> ToolRule {
        if !self.has_tool_policy() {
            return ToolRule::Allowed;
        }
        let list = self.list();
        let policies = list
            .iter()
            .filter_map(|registered| registered.tool_policy(name, tags));
        let rules = policies.map(|policy| policy.rule(name, has_scopes));
        rules.max().unwrap_or(ToolRule::Allowed)
    }
}

impl RegisteredMiddleware {
    /// Returns the policy that decides on calls of a tool.
    fn tool_policy(&self, name: &str, tags: &[String]) -> Option<&ToolPolicy> {
        let MiddlewareImpl::Rust(middleware) = &self.middleware else {
            return None;
        };
        let policy = middleware.tool_policy()?;
        let features = self.scope.features();
        let is_seen = self.scope.has_method(Method::ToolsCall.as_str())
            && features.is_none_or(|features| features.matches(CallKind::Tool, name, tags));
        is_seen.then_some(policy)
    }
}
