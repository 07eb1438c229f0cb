//! Selections of features by kind, name and tag, and the rules that enable or disable what they select.

use std::collections::BTreeSet;

use super::call_kind::CallKind;
use crate::error::Error;

/// Tools, resources, resource templates and prompts with a kind, a name or a tag: to
/// [enable](crate::Server::enable) or [disable](crate::Server::disable) them, or to limit middleware to them
/// ([`MiddlewareScope`](crate::server::MiddlewareScope)).
///
/// A feature is selected if it matches each of the criteria that are given; without criteria, every feature is. An empty
/// criterion, such as no names, selects nothing.
///
/// ```
/// use mcpline::Server;
/// use mcpline::server::{CallKind, FeatureSelection};
///
/// let server = Server::new("files", "1.0.0");
/// server.disable(FeatureSelection::all().with_tags(["destructive"]));
/// server.enable(
///     FeatureSelection::all()
///         .with_kinds([CallKind::Tool])
///         .with_names(["trash"]),
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeatureSelection {
    kinds: Option<Vec<CallKind>>,
    names: Option<BTreeSet<String>>,
    tags: Option<BTreeSet<String>>,
}

impl FeatureSelection {
    /// Selects every tool, resource, resource template and prompt.
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects features of these kinds only. [`CallKind::Resource`] includes templates; other kinds than tools, resources
    /// and prompts are not features, and select nothing.
    #[must_use]
    pub fn with_kinds(mut self, kinds: impl IntoIterator<Item = CallKind>) -> Self {
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|kind| kind.name());
        kinds.dedup();
        self.kinds = Some(kinds);
        self
    }

    /// Selects features with these names only: names of tools and prompts, URIs of resources and templates.
    #[must_use]
    pub fn with_names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.names = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Selects features with at least one of these tags only.
    #[must_use]
    pub fn with_tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }

    pub(super) fn matches(&self, kind: CallKind, name: &str, tags: &[String]) -> bool {
        let has_kind = self
            .kinds
            .as_ref()
            .is_none_or(|kinds| kinds.contains(&kind));
        let has_name = self.names.as_ref().is_none_or(|names| names.contains(name));
        let has_tag = |selected: &BTreeSet<String>| tags.iter().any(|tag| selected.contains(tag));
        has_kind && has_name && self.tags.as_ref().is_none_or(has_tag)
    }
}

/// Which features are enabled: for each feature the last rule that selects it decides.
#[derive(Debug, Clone, Default)]
pub(crate) struct FeatureRules(Vec<(FeatureSelection, bool)>);

impl FeatureRules {
    /// Adds a rule. It takes the place of an earlier one with the same selection, so that toggling needs no memory. Rules
    /// that enable what no earlier rule disables have no effect and are not kept: a name that is disabled while its feature
    /// exists, and enabled before or after it is removed, leaves nothing.
    pub(super) fn add(&mut self, selection: FeatureSelection, enabled: bool) {
        if selection == FeatureSelection::all() {
            self.0.clear();
        }
        self.0.retain(|(earlier, _)| *earlier != selection);
        self.0.push((selection, enabled));
        let idle = self.0.iter().take_while(|(_, enabled)| *enabled).count();
        self.0.drain(..idle);
    }

    pub(super) fn enables(&self, kind: CallKind, name: &str, tags: &[String]) -> bool {
        let mut rules = self.0.iter().rev();
        rules
            .find(|(selection, _)| selection.matches(kind, name, tags))
            .is_none_or(|(_, enabled)| *enabled)
    }
}

/// Refuses tags that select nothing.
pub(super) fn check_tags(tags: &[String]) -> Result<(), Error> {
    match tags.iter().any(String::is_empty) {
        false => Ok(()),
        true => Err(Error::usage("a tag is empty")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(tags: &[&str]) -> Vec<String> {
        tags.iter().map(|tag| (*tag).to_owned()).collect()
    }

    #[test]
    fn a_selection_needs_every_criterion_and_one_of_its_tags() {
        let selection = FeatureSelection::all()
            .with_kinds([CallKind::Tool])
            .with_tags(["beta", "admin"]);
        assert!(selection.matches(CallKind::Tool, "a", &tags(&["x", "admin"])));
        assert!(!selection.matches(CallKind::Prompt, "a", &tags(&["admin"])));
        assert!(!selection.matches(CallKind::Tool, "a", &tags(&["x"])));
        assert!(!selection.matches(CallKind::Tool, "admin", &[]));
        let named = FeatureSelection::all().with_names(["a"]);
        assert!(named.matches(CallKind::Prompt, "a", &[]));
        assert!(!named.matches(CallKind::Prompt, "b", &[]));
        let empty = FeatureSelection::all().with_names([""; 0]);
        assert!(!empty.matches(CallKind::Prompt, "a", &[]));
    }

    #[test]
    fn the_last_rule_that_selects_a_feature_decides() {
        let mut rules = FeatureRules::default();
        assert!(rules.enables(CallKind::Tool, "a", &[]));
        rules.add(FeatureSelection::all(), false);
        rules.add(FeatureSelection::all().with_tags(["public"]), true);
        rules.add(FeatureSelection::all().with_names(["secret"]), false);
        assert!(!rules.enables(CallKind::Tool, "a", &[]));
        assert!(rules.enables(CallKind::Tool, "a", &tags(&["public"])));
        assert!(!rules.enables(CallKind::Tool, "secret", &tags(&["public"])));
    }

    #[test]
    fn toggling_keeps_at_most_one_rule() {
        let mut rules = FeatureRules::default();
        for _ in 0..100 {
            rules.add(FeatureSelection::all().with_names(["a"]), true);
            rules.add(FeatureSelection::all().with_names(["a"]), false);
        }
        assert_eq!(rules.0.len(), 1);
        rules.add(FeatureSelection::all(), false);
        assert_eq!(rules.0.len(), 1);
    }

    #[test]
    fn names_that_are_enabled_again_leave_no_rules() {
        let mut rules = FeatureRules::default();
        let job = |number: usize| FeatureSelection::all().with_names([format!("job-{number}")]);
        for number in 0..100 {
            rules.add(job(number), false);
            rules.add(job(number), true);
        }
        assert_eq!(rules.0.len(), 0);
        rules.add(FeatureSelection::all().with_tags(["jobs"]), false);
        rules.add(job(0), true);
        let jobs = tags(&["jobs"]);
        assert!(rules.enables(CallKind::Tool, "job-0", &jobs));
        assert!(!rules.enables(CallKind::Tool, "job-1", &jobs));
        rules.add(FeatureSelection::all().with_tags(["jobs"]), true);
        assert_eq!(rules.0.len(), 0);
    }
}
