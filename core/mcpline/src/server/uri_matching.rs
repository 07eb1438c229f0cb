//! Matches URIs against the templates of a server: inline if that is fast, otherwise off the I/O threads.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcpline_protocol::RpcError;
use mcpline_protocol::Scopes;
use mcpline_protocol::limits::{MATCH_STEPS_PER_BYTE, MAX_INLINE_MATCH_STEPS, MAX_MATCH_STEPS};
use mcpline_protocol::schema::StepBudget;
use mcpline_protocol::session::{SessionLimits, subscribed_uris};
use mcpline_protocol::uri_template::{MatchLimitReached, Variables};
use mcpline_protocol::wire::{Method, Raw, Request};

use crate::fair_queue::PeerId;
use crate::offload;

use super::feature_entries::TemplateEntry;
use super::registry::Registry;

/// The template that matches a URI, with its variables. `None` if no template does.
pub(super) type Matched = Option<(Arc<TemplateEntry>, Variables)>;

/// Sets its flag when dropped. Kept with a request, it interrupts the request's computations once the request has
/// ended, in any way.
#[derive(Debug)]
pub(super) struct InterruptOnDrop(pub(super) Arc<AtomicBool>);

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Finds the template that matches this URI. Returns `None` if that takes too long for this thread.
pub(super) fn template_inline(registry: &Registry, uri: &str) -> Option<Matched> {
    let mut budget = StepBudget::new(MAX_INLINE_MATCH_STEPS, None);
    template(registry, uri, &mut budget).ok()
}

/// Finds the template that matches a URI on another thread. Setting `interrupt`, or dropping the future, interrupts it.
///
/// # Errors
/// When it takes more steps than a request may.
pub(super) async fn find_template_offloaded(
    registry: Arc<Registry>,
    uri: &str,
    peer: PeerId,
    interrupt: Arc<AtomicBool>,
) -> Result<Matched, RpcError> {
    let uri = uri.to_owned();
    let matching = offload::compute(peer, interrupt, move |interrupt| {
        let mut budget = StepBudget::new(MAX_MATCH_STEPS, Some(interrupt));
        template(&registry, &uri, &mut budget)
            .map_err(|limit| RpcError::invalid_params(format!("params.uri: {limit}")))
    });
    matching.await.unwrap_or_else(|| Err(match_limit_error()))
}

fn template(
    registry: &Registry,
    uri: &str,
    budget: &mut StepBudget<'_>,
) -> Result<Matched, MatchLimitReached> {
    let matched = registry.template(uri, budget);
    #[cfg(test)]
    steps::count(budget.spent());
    Ok(matched?.map(|(entry, variables)| (entry.clone(), variables)))
}

fn match_limit_error() -> RpcError {
    RpcError::internal_error("the URIs could not be compared with the templates of the server")
}

/// The URIs that a request subscribes to. A caller that may not read a resource does not learn of its changes either;
/// and a URI without a resource or template never changes.
pub(super) struct SubscribedUris {
    registry: Arc<Registry>,
    uris: Vec<Raw>,
}

/// What the registry knows of the URIs that a request subscribes to.
#[derive(Debug, Default)]
pub(super) struct Subscribable {
    /// The union of the scopes that they need.
    pub(super) scopes: Scopes,
    /// URIs without a resource or template.
    pub(super) unknown: HashSet<String>,
}

impl SubscribedUris {
    /// Returns the URIs of a request, or `None` if it subscribes to none.
    ///
    /// # Errors
    /// When they are too many or too long.
    pub(super) fn of(
        request: &Request,
        registry: impl FnOnce() -> Arc<Registry>,
        limits: &SessionLimits,
    ) -> Result<Option<Self>, RpcError> {
        let Some(params) = &request.params else {
            return Ok(None);
        };
        // Limits apply before anything else is done with them.
        let uris: Vec<Raw> = match request.method {
            Method::ResourcesSubscribe => params.get("uri").into_iter().collect(),
            Method::SubscriptionsListen => subscribed_uris(params, limits)?,
            _ => return Ok(None),
        };
        Ok((!uris.is_empty()).then(|| Self {
            registry: registry(),
            uris,
        }))
    }

    /// Looks the URIs up. Returns `None` if that takes too long for this thread.
    pub(super) fn look_up_inline(&self) -> Option<Subscribable> {
        self.look_up_within(&mut StepBudget::new(MAX_INLINE_MATCH_STEPS, None))
            .ok()
    }

    /// Looks the URIs up on another thread. Setting `interrupt`, or dropping the future, interrupts it.
    ///
    /// # Errors
    /// When it takes more steps than a request of its size may.
    pub(super) async fn look_up(
        self,
        peer: PeerId,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Subscribable, RpcError> {
        let matching = offload::compute(peer, interrupt, move |interrupt| {
            let bytes: usize = self.uris.iter().map(|uri| uri.as_bytes().len()).sum();
            let steps = MAX_MATCH_STEPS + bytes.saturating_mul(MATCH_STEPS_PER_BYTE);
            self.look_up_within(&mut StepBudget::new(steps, Some(interrupt)))
                .map_err(|limit| RpcError::invalid_params(format!("the URIs: {limit}")))
        });
        matching.await.unwrap_or_else(|| Err(match_limit_error()))
    }

    fn look_up_within(
        &self,
        budget: &mut StepBudget<'_>,
    ) -> Result<Subscribable, MatchLimitReached> {
        let found = self.look_up_each(budget);
        #[cfg(test)]
        steps::count(budget.spent());
        found
    }

    fn look_up_each(&self, budget: &mut StepBudget<'_>) -> Result<Subscribable, MatchLimitReached> {
        let mut found = Subscribable::default();
        for uri in &self.uris {
            // A URI that is found by exact name costs its bytes, too.
            budget
                .charge_bytes(uri.as_bytes().len())
                .ok_or(MatchLimitReached)?;
            let Some(uri) = uri.string_value() else {
                continue;
            };
            match self.registry.resource_scopes(&uri, budget)? {
                Some(scopes) if scopes.is_empty() => {}
                Some(scopes) => found.scopes = found.scopes.union(scopes),
                None => drop(found.unknown.insert(uri.into_owned())),
            }
        }
        Ok(found)
    }
}

/// Counts the steps that the calling thread has taken.
#[cfg(test)]
pub(super) mod steps {
    use std::cell::Cell;

    thread_local! {
        static COUNTED: Cell<usize> = const { Cell::new(0) };
    }

    pub(in crate::server) fn count(steps: usize) {
        COUNTED.set(COUNTED.get() + steps);
    }

    pub(in crate::server) fn counted() -> usize {
        COUNTED.get()
    }
}

#[cfg(test)]
mod tests;
