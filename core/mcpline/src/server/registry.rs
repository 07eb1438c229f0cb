//! The features of a server: tools, resources, templates, prompts, completions.
//!
//! The registry is copied on write: a call uses the snapshot that it found, registration never waits for a call, and
//! lists are rendered once per revision and snapshot.

use std::collections::HashMap;

use foldhash::quality::RandomState;
use mcpline_protocol::ListMethod;
use mcpline_protocol::Scopes;
use mcpline_protocol::adapt;
use mcpline_protocol::revision::Revision;
use mcpline_protocol::schema::StepBudget;
use mcpline_protocol::session::Change;
use mcpline_protocol::uri_template::{MatchLimitReached, Variables};
use mcpline_protocol::wire::Raw;

use crate::error::Error;
use crate::sync::{Arc, OnceLock};

use super::client_notifications::ClientNotification;
use super::custom_methods::MethodEntry;
use super::feature_entries::{FeatureEntry, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry};
use super::feature_selection::{FeatureRules, FeatureSelection};
use super::feature_source::FeatureSources;
use super::handler::Handler;
use super::item_list::{Item, ItemList};
use super::mounts::MountId;
#[cfg(feature = "routes")]
use super::routes::RouteTable;
use super::template_lists::Lister;

/// Completes an argument.
#[derive(Clone)]
#[non_exhaustive]
pub enum Completer {
    /// A list of values, ranked by prefix and fuzzy match.
    Candidates(Vec<String>),
    /// A handler that receives `{"ref": …, "argument": …, "context": …}`.
    Handler(Arc<dyn Handler>),
}

impl std::fmt::Debug for Completer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Candidates(values) => write!(f, "Candidates({} values)", values.len()),
            Self::Handler(_) => f.write_str("Handler"),
        }
    }
}

/// Custom methods, by name.
pub(crate) type Methods = HashMap<Box<str>, MethodItem, RandomState>;

/// A custom method, with what the registry knows of it.
#[derive(Clone)]
pub(crate) struct MethodItem {
    pub(crate) entry: Arc<MethodEntry>,
    /// The mount that it comes from; `None` if it was registered here.
    pub(crate) mount: Option<MountId>,
    /// The servers that it comes from.
    pub(crate) sources: FeatureSources,
}

/// Snapshot of everything that a server offers.
#[derive(Default)]
pub(crate) struct Registry {
    pub(crate) tools: ItemList<ToolEntry>,
    pub(crate) resources: ItemList<ResourceEntry>,
    pub(crate) templates: ItemList<TemplateEntry>,
    pub(crate) prompts: ItemList<PromptEntry>,
    /// By `(reference, argument)`.
    pub(crate) completers: HashMap<(String, String), Arc<Completer>>,
    /// For arguments without a completer of their own.
    pub(crate) completion: Option<Arc<dyn Handler>>,
    /// Custom requests, by method.
    pub(crate) requests: Methods,
    /// Custom notifications, by method.
    pub(crate) notifications: Methods,
    /// By [`ClientNotification`].
    pub(crate) events: [Option<Arc<dyn Handler>>; ClientNotification::COUNT],
    /// Which features are enabled.
    pub(crate) rules: FeatureRules,
    #[cfg(feature = "routes")]
    pub(crate) routes: RouteTable,
    rendered: RenderedLists,
}

impl Clone for Registry {
    fn clone(&self) -> Self {
        Self {
            tools: self.tools.clone(),
            resources: self.resources.clone(),
            templates: self.templates.clone(),
            prompts: self.prompts.clone(),
            completers: self.completers.clone(),
            completion: self.completion.clone(),
            requests: self.requests.clone(),
            notifications: self.notifications.clone(),
            events: self.events.clone(),
            rules: self.rules.clone(),
            #[cfg(feature = "routes")]
            routes: self.routes.clone(),
            rendered: RenderedLists::default(),
        }
    }
}

/// How many features of each kind have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ChangedFeatures {
    pub(crate) tools: usize,
    pub(crate) resources: usize,
    pub(crate) prompts: usize,
}

impl ChangedFeatures {
    pub(crate) fn sum(self) -> usize {
        self.tools + self.resources + self.prompts
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            tools: self.tools + other.tools,
            resources: self.resources + other.resources,
            prompts: self.prompts + other.prompts,
        }
    }

    /// Returns the lists that have changed.
    pub(crate) fn lists(self) -> impl Iterator<Item = Change> {
        let all = [
            (self.tools, Change::Tools),
            (self.resources, Change::Resources),
            (self.prompts, Change::Prompts),
        ];
        all.into_iter()
            .filter_map(|(count, change)| (count > 0).then_some(change))
    }
}

/// A list in the form of one revision.
#[derive(Default)]
pub(crate) struct RenderedList {
    pub(crate) items: Vec<RenderedItem>,
    /// Whether some items require scopes.
    pub(crate) scoped: bool,
    /// Of `resources/list`: the templates whose list handlers add to it, in the order of registration.
    pub(crate) listers: Vec<Lister>,
}

/// One item of a list.
pub(crate) struct RenderedItem {
    pub(crate) number: u64,
    pub(crate) json: Raw,
    /// Scopes that a caller needs to see it.
    pub(crate) scopes: Scopes,
    /// The tool, of which tool policies decide whether a caller sees it.
    pub(crate) tool: Option<Arc<Item<ToolEntry>>>,
}

#[derive(Default)]
struct RenderedLists {
    cells: [[OnceLock<Arc<RenderedList>>; Revision::ALL.len()]; ListMethod::ALL.len()],
}

impl Registry {
    /// Whether a custom method has a handler.
    pub(crate) fn has_custom_method(&self, method: &str) -> bool {
        self.requests.contains_key(method) || self.notifications.contains_key(method)
    }

    /// Changes the registry and discards the rendered lists.
    pub(crate) fn change(&mut self, apply: impl FnOnce(&mut Self) -> bool) -> bool {
        self.rendered = RenderedLists::default();
        apply(self)
    }

    /// Adds a feature. Returns `false` and leaves it in `entry` if its name is taken.
    pub(crate) fn add<T: FeatureEntry>(&mut self, entry: &mut Option<T>) -> bool {
        let Some(name) = entry.as_ref().map(|entry| entry.key().to_owned()) else {
            return false;
        };
        let enabled = entry.as_ref().is_none_or(|entry| self.enables(entry));
        T::list_mut(self).add(&name, entry, enabled)
    }

    /// Whether the rules enable a feature.
    pub(crate) fn enables<T: FeatureEntry>(&self, entry: &T) -> bool {
        self.rules.enables(T::KIND, entry.key(), entry.tags())
    }

    /// Adds a rule, and applies all rules. Returns the number of features that are enabled or disabled by it.
    pub(crate) fn add_rule(
        &mut self,
        selection: FeatureSelection,
        enabled: bool,
    ) -> ChangedFeatures {
        self.rules.add(selection, enabled);
        ChangedFeatures {
            tools: self.apply_rules::<ToolEntry>(),
            resources: self.apply_rules::<ResourceEntry>() + self.apply_rules::<TemplateEntry>(),
            prompts: self.apply_rules::<PromptEntry>(),
        }
    }

    fn apply_rules<T: FeatureEntry>(&mut self) -> usize {
        let rules = std::mem::take(&mut self.rules);
        let changed = T::list_mut(self)
            .set_enabled(|item| rules.enables(T::KIND, &item.name, item.entry.tags()));
        self.rules = rules;
        changed
    }

    /// Returns a list in the form of this revision, rendered on first use.
    pub(crate) fn list(&self, kind: ListMethod, revision: Revision) -> Arc<RenderedList> {
        self.rendered.cells[kind as usize][revision as usize]
            .get_or_init(|| Arc::new(self.render(kind, revision)))
            .clone()
    }

    /// Returns the scopes that a caller needs to read this resource, or `None` if the registry has no resource or
    /// template for it.
    ///
    /// # Errors
    /// When the budget is used up before that is known.
    pub(crate) fn resource_scopes(
        &self,
        uri: &str,
        budget: &mut StepBudget<'_>,
    ) -> Result<Option<&Scopes>, MatchLimitReached> {
        if let Some(entry) = self.resources.get(uri) {
            return Ok(Some(&entry.options.scopes));
        }
        let matched = self.template(uri, budget)?;
        Ok(matched.map(|(entry, _)| &entry.options.scopes))
    }

    /// Refuses completions that no client can ask for.
    pub(crate) fn check_completion(&self, reference: &str, argument: &str) -> Result<(), Error> {
        let (kind, has_argument) = if let Some(item) = self.prompts.item(reference) {
            let mut arguments = item.entry.prompt.arguments.iter().flatten();
            ("prompt", arguments.any(|own| own.name == argument))
        } else if let Some(item) = self.templates.item(reference) {
            let mut names = item.entry.pattern.names();
            ("resource template", names.any(|own| own == argument))
        } else {
            return Err(Error::usage(format!(
                "a completion is for {reference:?}, but the server has no such prompt or resource template: register it \
                 before its completions"
            )));
        };
        match has_argument {
            true => Ok(()),
            false => Err(Error::usage(format!(
                "a completion is for {argument:?}, which the {kind} {reference:?} does not have"
            ))),
        }
    }

    /// Lets the completers of a prompt or template follow its new name.
    pub(crate) fn rename_completers(&mut self, name: &str, new_name: &str) {
        let keys: Vec<_> = self
            .completers
            .keys()
            .filter(|(own, _)| own == name)
            .cloned()
            .collect();
        for key in keys {
            if let Some(completer) = self.completers.remove(&key) {
                self.completers
                    .insert((new_name.to_owned(), key.1), completer);
            }
        }
    }

    /// Whether arguments are completed.
    pub(crate) fn has_completions(&self) -> bool {
        self.completion.is_some() || !self.completers.is_empty()
    }

    /// Returns the handler of a session event.
    pub(crate) fn event_handler(&self, event: ClientNotification) -> Option<Arc<dyn Handler>> {
        self.events[event as usize].clone()
    }

    /// Returns the first template that matches this URI, with its variables.
    ///
    /// # Errors
    /// When the budget is used up before that is known.
    pub(crate) fn template(
        &self,
        uri: &str,
        budget: &mut StepBudget<'_>,
    ) -> Result<Option<(&Arc<TemplateEntry>, Variables)>, MatchLimitReached> {
        for item in self.templates.iter() {
            let entry = &item.entry;
            if let Some(variables) = entry.pattern.matches_within(uri, budget)? {
                return Ok(Some((entry, variables)));
            }
        }
        Ok(None)
    }

    /// Returns the enabled templates that list resources.
    fn listers(&self) -> Vec<Lister> {
        let templates = self.templates.iter();
        templates
            .filter(|item| item.entry.list.is_some())
            .cloned()
            .collect()
    }

    fn render(&self, kind: ListMethod, revision: Revision) -> RenderedList {
        fn each<T>(
            list: &ItemList<T>,
            scopes: impl Fn(&T) -> &Scopes,
            render: impl Fn(&T) -> Result<Raw, serde_json::Error>,
            tool: impl Fn(&Arc<Item<T>>) -> Option<Arc<Item<ToolEntry>>>,
        ) -> RenderedList {
            let items = list.iter().filter_map(|item| {
                Some(RenderedItem {
                    number: item.number,
                    json: render(&item.entry).ok()?,
                    scopes: scopes(&item.entry).clone(),
                    tool: tool(item),
                })
            });
            let items: Vec<_> = items.collect();
            RenderedList {
                scoped: items.iter().any(|item| !item.scopes.is_empty()),
                items,
                listers: Vec::new(),
            }
        }
        match kind {
            ListMethod::Tools => each(
                &self.tools,
                |entry| &entry.options.scopes,
                |entry| Raw::from_serialize(&adapt::tool(&entry.tool, revision)),
                |item| Some(item.clone()),
            ),
            ListMethod::Resources => RenderedList {
                listers: self.listers(),
                ..each(
                    &self.resources,
                    |entry| &entry.options.scopes,
                    |entry| Raw::from_serialize(&adapt::resource(&entry.resource, revision)),
                    |_| None,
                )
            },
            ListMethod::ResourceTemplates => each(
                &self.templates,
                |entry| &entry.options.scopes,
                |entry| Raw::from_serialize(&adapt::resource_template(&entry.template, revision)),
                |_| None,
            ),
            ListMethod::Prompts => each(
                &self.prompts,
                |entry| &entry.options.scopes,
                |entry| Raw::from_serialize(&adapt::prompt(&entry.prompt, revision)),
                |_| None,
            ),
        }
    }
}
