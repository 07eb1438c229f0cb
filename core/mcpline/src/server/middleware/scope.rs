//! Which requests a middleware sees.

use std::collections::BTreeSet;

use mcpline_protocol::methods::MethodHandledBy;
use mcpline_protocol::wire::Method;

use super::super::feature_selection::FeatureSelection;
use crate::error::Error;

/// The requests that a [middleware](crate::middleware::Middleware) sees: all, those of some methods, those for some features, or both.
///
/// ```
/// use mcpline::server::{FeatureSelection, MiddlewareScope};
///
/// let calls = MiddlewareScope::all().with_methods(["tools/call"]);
/// let admin = MiddlewareScope::all().with_features(FeatureSelection::all().with_tags(["admin"]));
/// # let _ = (calls, admin);
/// ```
#[derive(Debug, Clone, Default)]
pub struct MiddlewareScope {
    methods: Option<BTreeSet<String>>,
    features: Option<FeatureSelection>,
}

impl MiddlewareScope {
    /// Every request.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only requests of these methods, such as `tools/call`.
    #[must_use]
    pub fn with_methods<S: Into<String>>(mut self, methods: impl IntoIterator<Item = S>) -> Self {
        self.methods = Some(methods.into_iter().map(Into::into).collect());
        self
    }

    /// Only requests for these features: calls of tools, reads of resources, requests for prompts, and completions for
    /// prompts and resource templates. Lists and custom requests are for none.
    #[must_use]
    pub fn with_features(mut self, features: FeatureSelection) -> Self {
        self.features = Some(features);
        self
    }

    /// Refuses methods that no middleware sees.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for name in self.methods.iter().flatten() {
            let method = Method::parse(name);
            let is_seen = method.spec().is_none_or(|spec| {
                spec.handled_by == MethodHandledBy::Features || spec.may_be_custom
            });
            if !is_seen {
                return Err(Error::usage(format!(
                    "the scope of a middleware has the method {name:?}: middleware sees lists, calls, completions and custom requests only"
                )));
            }
        }
        Ok(())
    }

    pub(crate) fn has_method(&self, method: &str) -> bool {
        self.methods
            .as_ref()
            .is_none_or(|methods| methods.contains(method))
    }

    pub(crate) fn features(&self) -> Option<&FeatureSelection> {
        self.features.as_ref()
    }
}
