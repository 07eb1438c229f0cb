//! The features of a server: tools, resources, templates, prompts, completions.
//!
//! The registry is copied on write: a call uses the snapshot that it found, registration never waits for a call, and
//! lists are rendered once per revision and snapshot.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::quality::RandomState;
use mcpline_protocol::ListMethod;
use mcpline_protocol::Scopes;
use mcpline_protocol::adapt;
use mcpline_protocol::revision::Revision;
use mcpline_protocol::schema::{Budget, CompiledSchema};
use mcpline_protocol::session::{Rate, TokenBucket};
use mcpline_protocol::uri_template::{MatchLimit, UriTemplate, Variables};
use mcpline_protocol::vocabulary::{CacheHints, Prompt, Resource, ResourceTemplate, Tool};
use mcpline_protocol::wire::Raw;
use mcpline_protocol::wire::header::ParamHeaders;

use crate::error::Error;
use crate::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::client_notifications::ClientNotification;
use super::custom::MethodEntry;
use super::handler::Handler;

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
    /// Scopes that a caller needs, all of them. Default: none.
    ///
    /// The tool is missing from lists for callers that lack one, and a call fails with an error that names the required
    /// scopes (2025-11-25, `basic/authorization`, scope challenge handling). Enforced where the transport knows the
    /// caller: over HTTP and for [principals](crate::Server::connect_as). Callers over stdio and in memory may call it.
    pub scopes: Scopes,
    /// A value given as a scope that is not a valid one. Kept to refuse the registration, which would lack protection.
    unusable: Option<String>,
}

impl ToolOptions {
    pub(super) fn check(&self) -> Result<(), Error> {
        check_scopes(self.unusable.as_deref())
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
    /// A value given as a scope that is not a valid one. Kept to refuse the registration, which would lack protection.
    unusable: Option<String>,
}

impl ResourceOptions {
    pub(super) fn check(&self) -> Result<(), Error> {
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
    /// A value given as a scope that is not a valid one. Kept to refuse the registration, which would lack protection.
    unusable: Option<String>,
}

impl PromptOptions {
    pub(super) fn check(&self) -> Result<(), Error> {
        check_scopes(self.unusable.as_deref())
    }

    /// Sets the required scopes.
    #[must_use]
    pub fn with_scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        (self.scopes, self.unusable) = checked_scopes(scopes);
        self
    }
}

pub(crate) struct ToolEntry {
    pub(crate) tool: Tool,
    pub(crate) options: ToolOptions,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) input: Option<CompiledSchema>,
    pub(crate) output: Option<CompiledSchema>,
    /// The output schema is not an object's: older revisions get the structured content wrapped.
    pub(crate) wrapped: bool,
    pub(crate) headers: ParamHeaders,
    /// Rate limit of its calls, with the current state.
    pub(crate) bucket: Option<(Rate, Mutex<TokenBucket>)>,
}

pub(crate) struct ResourceEntry {
    pub(crate) resource: Resource,
    pub(crate) options: ResourceOptions,
    pub(crate) cache: Option<CacheHints>,
    pub(crate) handler: Arc<dyn Handler>,
}

pub(crate) struct TemplateEntry {
    pub(crate) template: ResourceTemplate,
    pub(crate) pattern: UriTemplate,
    pub(crate) options: ResourceOptions,
    pub(crate) cache: Option<CacheHints>,
    pub(crate) handler: Arc<dyn Handler>,
}

pub(crate) struct PromptEntry {
    pub(crate) prompt: Prompt,
    pub(crate) options: PromptOptions,
    pub(crate) handler: Arc<dyn Handler>,
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

/// Items of one kind in the order of registration. The number of an item never changes, so a cursor that contains it
/// stays valid whatever is added or removed.
pub(crate) struct ItemList<T> {
    items: Vec<(u64, Arc<T>)>,
    by_name: HashMap<String, Arc<T>, RandomState>,
    next: u64,
}

impl<T> Clone for ItemList<T> {
    fn clone(&self) -> Self {
        Self {
            items: self.items.clone(),
            by_name: self.by_name.clone(),
            next: self.next,
        }
    }
}

impl<T> Default for ItemList<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            by_name: HashMap::default(),
            next: 1,
        }
    }
}

impl<T> ItemList<T> {
    /// Adds an item. Returns `false` and leaves it in `item` if the name is taken.
    pub(crate) fn add(&mut self, name: &str, item: &mut Option<T>) -> bool {
        if self.by_name.contains_key(name) {
            return false;
        }
        let Some(item) = item.take() else {
            return false;
        };
        let item = Arc::new(item);
        self.by_name.insert(name.to_owned(), item.clone());
        self.items.push((self.next, item));
        self.next += 1;
        true
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<Arc<T>> {
        let item = self.by_name.remove(name)?;
        self.items.retain(|(_, other)| !Arc::ptr_eq(other, &item));
        Some(item)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<T>> {
        self.by_name.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.items.iter().map(|(_, item)| item)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// Custom methods, by name.
pub(crate) type Methods = HashMap<Box<str>, Arc<MethodEntry>, RandomState>;

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
    rendered: Rendered,
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
            rendered: Rendered::default(),
        }
    }
}

/// A list in the form of one revision.
#[derive(Default)]
pub(crate) struct RenderedList {
    pub(crate) items: Vec<RenderedItem>,
    /// Whether some items require scopes.
    pub(crate) scoped: bool,
}

/// One item of a list.
pub(crate) struct RenderedItem {
    pub(crate) number: u64,
    pub(crate) json: Raw,
    /// Scopes that a caller needs to see it.
    pub(crate) scopes: Scopes,
}

#[derive(Default)]
struct Rendered {
    cells: [[OnceLock<Arc<RenderedList>>; Revision::ALL.len()]; ListMethod::ALL.len()],
}

impl Registry {
    /// Changes the registry and discards the rendered lists.
    pub(crate) fn change(&mut self, apply: impl FnOnce(&mut Self) -> bool) -> bool {
        self.rendered = Rendered::default();
        apply(self)
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
        budget: &mut Budget<'_>,
    ) -> Result<Option<&Scopes>, MatchLimit> {
        if let Some(entry) = self.resources.get(uri) {
            return Ok(Some(&entry.options.scopes));
        }
        let matched = self.template(uri, budget)?;
        Ok(matched.map(|(entry, _)| &entry.options.scopes))
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
        budget: &mut Budget<'_>,
    ) -> Result<Option<(&Arc<TemplateEntry>, Variables)>, MatchLimit> {
        for entry in self.templates.iter() {
            if let Some(variables) = entry.pattern.matches_within(uri, budget)? {
                return Ok(Some((entry, variables)));
            }
        }
        Ok(None)
    }

    fn render(&self, kind: ListMethod, revision: Revision) -> RenderedList {
        fn each<T>(
            list: &ItemList<T>,
            scopes: impl Fn(&T) -> &Scopes,
            render: impl Fn(&T) -> Result<Raw, serde_json::Error>,
        ) -> RenderedList {
            let items = list.items.iter().filter_map(|(number, item)| {
                Some(RenderedItem {
                    number: *number,
                    json: render(item).ok()?,
                    scopes: scopes(item).clone(),
                })
            });
            let items: Vec<_> = items.collect();
            RenderedList {
                scoped: items.iter().any(|item| !item.scopes.is_empty()),
                items,
            }
        }
        match kind {
            ListMethod::Tools => each(
                &self.tools,
                |entry| &entry.options.scopes,
                |entry| Raw::from_serialize(&adapt::tool(&entry.tool, revision)),
            ),
            ListMethod::Resources => each(
                &self.resources,
                |entry| &entry.options.scopes,
                |entry| Raw::from_serialize(&adapt::resource(&entry.resource, revision)),
            ),
            ListMethod::ResourceTemplates => each(
                &self.templates,
                |entry| &entry.options.scopes,
                |entry| Raw::from_serialize(&adapt::resource_template(&entry.template, revision)),
            ),
            ListMethod::Prompts => each(
                &self.prompts,
                |entry| &entry.options.scopes,
                |entry| Raw::from_serialize(&adapt::prompt(&entry.prompt, revision)),
            ),
        }
    }
}

impl ToolEntry {
    /// Returns whether the rate limit admits a call at the time that `now` returns. `now` is called only for tools with
    /// a limit.
    pub(crate) fn admit(&self, now: impl FnOnce() -> Duration) -> bool {
        self.bucket.as_ref().is_none_or(|(rate, bucket)| {
            bucket
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(*rate, now())
        })
    }
}
