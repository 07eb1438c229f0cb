//! The server state that handlers, connections and transports share: registry, suspended handlers, connections.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use mcpline_protocol::Quoted;
use mcpline_protocol::mrtr::{KeyRing, Resumption, SuspendedHandlers, SuspensionOwner};
use mcpline_protocol::session::{Change, ServerProfile, TokenBucket};
use mcpline_protocol::vocabulary::{
    Implementation, JsonObject, ListCapability, ResourcesCapability, ServerCapabilities,
};
use mcpline_protocol::wire::Raw;
use mcpline_runtime::clock;

use crate::error::Error;
use crate::quota::{ClientTable, Exceeded, Usage};
use crate::sharing::{BusEndpoint, BusEvent};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use crate::timers::{Alarm, Timed, Timers};
use crate::warning_limit::WarningLimit;

use super::builder::DeclaredFeatures;
use super::call::{Call, CallState};
use super::completion_candidates;
use super::connection::{Connection, TransportId};
use super::custom_methods::MethodEntry;
use super::extension::Extensions;
use super::feature_selection::FeatureSelection;
use super::handler::{self, Handler};
use super::metrics::Metrics;
use super::middleware::Middlewares;
use super::mounts::Mounts;
use super::registry::{ChangedFeatures, Completer, Registry};
use super::request_log::RequestLog;
use super::request_span::RequestTracing;
use super::settings::Settings;
use super::state::TypeMap;
use super::suspended_call::SuspendedCall;
use super::traffic::TrafficLog;

/// The server state that handlers, connections and transports share.
pub(crate) struct Inner {
    pub(super) info: Implementation,
    pub(super) info_json: Vec<u8>,
    pub(super) instructions: Option<String>,
    pub(crate) settings: Settings,
    pub(super) extensions: Extensions,
    pub(super) experimental: BTreeMap<String, JsonObject>,
    /// What is declared in any case; grows with the features that the server gets.
    pub(super) offered: Mutex<DeclaredFeatures>,
    pub(super) registry: RwLock<Arc<Registry>>,
    pub(super) profile: RwLock<Arc<ServerProfile>>,
    pub(super) keys: KeyRing,
    pub(super) suspended: Mutex<SuspendedHandlers<SuspendedCall>>,
    pub(super) connections: Mutex<HashMap<u64, Weak<Connection>>>,
    pub(super) next_connection: AtomicU64,
    /// Usage of this process by client.
    pub(super) clients: ClientTable,
    pub(super) timers: Arc<Timers>,
    pub(super) alarm: Alarm,
    /// The other processes of this service, if there are any.
    pub(super) others: Option<BusEndpoint>,
    /// Rate limiter of completion requests.
    pub(super) completions: Mutex<TokenBucket>,
    /// Limits the warnings about dropped notifications.
    pub(super) warnings: WarningLimit,
    /// What a binding runs the handlers of this server's calls with: see `foreign::executors`.
    pub(crate) executors: OnceLock<Arc<dyn Any + Send + Sync>>,
    /// The servers that are mounted in this one, and those that this one is mounted in.
    pub(super) mounts: Mounts,
    pub(super) middlewares: Middlewares,
    pub(super) request_log: RequestLog,
    /// Spans of requests for another language.
    pub(super) tracing: RequestTracing,
    /// `None` if they are off: see [`Settings::metrics`].
    pub(super) metrics: Option<Arc<Metrics>>,
    /// When the server was built.
    pub(super) started: Duration,
    /// Whether debug mode is on: see [`Settings::debug`].
    pub(crate) is_debugged: bool,
    /// Records messages, in debug mode or for a traffic file.
    pub(crate) traffic: Option<TrafficLog>,
    pub(super) this: Weak<Inner>,
    /// Values of the program, for its handlers.
    pub(crate) state: TypeMap,
}

impl Inner {
    pub(crate) fn info_json(&self) -> &[u8] {
        &self.info_json
    }

    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn profile(&self) -> Arc<ServerProfile> {
        self.profile
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether the rate limit admits a completion request now.
    pub(super) fn take_completion_token(&self, now: Duration) -> bool {
        let Some(rate) = self.settings.completion_rate else {
            return true;
        };
        let mut bucket = self
            .completions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        bucket.take(rate, now)
    }

    /// Logs a warning that a client's notification was dropped, unless there were many recently.
    pub(super) fn warn_of_drop(&self, method: &str, reason: &dyn std::fmt::Display) {
        self.clients.counts().add_dropped_received();
        if self.warnings.admits() {
            tracing::warn!(method, %reason, "a notification was dropped");
        }
    }

    pub(crate) fn key_ring(&self) -> &KeyRing {
        &self.keys
    }

    pub(crate) fn clients(&self) -> &ClientTable {
        &self.clients
    }

    pub(crate) fn timers(&self) -> &Timers {
        &self.timers
    }

    /// Starts the background tasks on this runtime.
    pub(crate) fn start(&self, runtime: &tokio::runtime::Handle) {
        self.timers.start(runtime);
    }

    pub(crate) fn next_connection(&self) -> u64 {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a new id for a transport.
    pub(crate) fn next_transport(&self) -> TransportId {
        TransportId(self.next_connection())
    }

    pub(crate) fn list_connection(&self, number: u64, connection: &Arc<Connection>) {
        self.lock_connections()
            .insert(number, Arc::downgrade(connection));
    }

    pub(crate) fn unlist_connection(&self, number: u64) {
        self.lock_connections().remove(&number);
    }

    /// Returns the connections that receive change notifications.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        let mut listed = self.lock_connections();
        let mut connections = Vec::with_capacity(listed.len());
        listed.retain(|_, connection| match connection.upgrade() {
            Some(connection) => {
                connections.push(connection);
                true
            }
            None => false,
        });
        connections
    }

    /// Returns the number of connections over pipes and in memory.
    pub(super) fn count_pipes(&self) -> usize {
        let mut connections = Vec::new();
        {
            let listed = self.lock_connections();
            connections.extend(listed.values().filter_map(Weak::upgrade));
        }
        // Dropped after the lock, because the last reference to a connection may use it.
        let pipes = connections.iter().filter(|connection| connection.is_pipe());
        pipes.count()
    }

    /// Returns how many suspended handlers are kept.
    pub(super) fn suspended_usage(&self) -> Usage {
        Usage {
            used: self.lock_suspended().len(),
            limit: self.settings.max_suspended_handlers,
        }
    }

    /// Whether metrics are on.
    #[cfg(feature = "http")]
    pub(crate) fn has_metrics(&self) -> bool {
        self.metrics.is_some()
    }

    fn lock_connections(&self) -> crate::sync::MutexGuard<'_, HashMap<u64, Weak<Connection>>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_suspended(&self) -> crate::sync::MutexGuard<'_, SuspendedHandlers<SuspendedCall>> {
        self.suspended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a suspended handler until its client's retry.
    ///
    /// # Errors
    ///
    /// The client's memory limit is exhausted.
    pub(crate) fn suspend(
        &self,
        ticket: String,
        call: Arc<CallState>,
        expires: Duration,
    ) -> Result<(), Exceeded> {
        let current_request = call.current_request();
        let client = current_request.connection.client();
        let holder = SuspensionOwner {
            client: client.number,
            share: client.share_of(self.settings.max_suspended_handlers),
        };
        let suspended = SuspendedCall::new(call, &current_request)?;
        let evicted = self
            .lock_suspended()
            .insert(ticket, suspended, holder, expires);
        if let Some(evicted) = evicted {
            tracing::debug!(
                name = evicted.call.name(),
                "cancelled a suspended handler to make room: its retry runs it again (`max_suspended_handlers`, `client_share`)"
            );
            evicted.call.cancel();
        }
        if let Some(server) = self.this.upgrade() {
            self.timers.schedule(expires, &server);
        }
        Ok(())
    }

    pub(crate) fn peek_suspended(&self, ticket: &str) -> Option<Arc<CallState>> {
        let suspended = self.lock_suspended();
        Some(suspended.peek(ticket)?.call.clone())
    }

    pub(crate) fn take_suspended(&self, ticket: &str) -> Resumption<Arc<CallState>> {
        match self.lock_suspended().take(ticket) {
            Resumption::Found(suspended) => Resumption::Found(suspended.call),
            Resumption::AlreadyUsed => Resumption::AlreadyUsed,
            Resumption::Unknown => Resumption::Unknown,
        }
    }

    /// Cancels the suspended handlers of a transport that has ended: their clients cannot retry on it.
    pub(crate) fn cancel_suspended_over(&self, transport: TransportId) {
        let suspended = self.lock_suspended().drain_where(|suspended| {
            suspended.call.lock_current_request().connection.transport() == transport
        });
        for suspended in suspended {
            suspended.call.cancel();
        }
    }

    /// Cancels the suspended handlers of a closed connection whose client cannot retry on another one.
    pub(crate) fn cancel_suspended_of(&self, connection: &Arc<Connection>) {
        let suspended = self
            .lock_suspended()
            .drain_where(|suspended| suspended.is_of(connection));
        for suspended in suspended {
            suspended.call.cancel();
        }
    }

    /// Returns the handler that answers a completion request: the completer of its argument, or the general one.
    pub(crate) fn completion_handler(&self, asked: &Raw) -> Option<Arc<dyn Handler>> {
        let registry = self.registry();
        let text = |value: Option<Raw>, name: &str| {
            Some(value?.member(name)?.string_value()?.into_owned())
        };
        let reference = asked.member("ref");
        // The same member by which `dispatch` has checked the reference.
        let name = match text(reference.clone(), "type").as_deref() {
            Some("ref/resource") => text(reference, "uri"),
            _ => text(reference, "name"),
        };
        let argument = text(asked.member("argument"), "name");
        let completer = name
            .zip(argument)
            .and_then(|key| registry.completers.get(&key).cloned());
        let Some(completer) = completer else {
            return registry.completion.clone();
        };
        if let Completer::Handler(handler) = &*completer {
            return Some(handler.clone());
        }
        let typed = text(asked.member("argument"), "value").unwrap_or_default();
        Some(handler::handler(move |call: &Call| {
            let peer = call.context().client().peer;
            completion_candidates::complete(completer.clone(), typed.clone(), peer)
        }))
    }

    /// Changes the registry and notifies the clients of this process, which the registry belongs to. Returns `None` if
    /// `apply` changed nothing.
    pub(super) fn register(
        &self,
        change: Change,
        apply: impl FnOnce(&mut Registry) -> bool,
    ) -> Option<()> {
        if !self.change_registry(apply) {
            return None;
        }
        self.refresh_profile();
        self.notify_change(&change);
        self.update_parents();
        Some(())
    }

    /// Adds a rule that enables or disables features. Returns how many have changed.
    pub(super) fn add_rule(&self, selection: FeatureSelection, enabled: bool) -> usize {
        let mut changed = ChangedFeatures::default();
        self.change_registry(|registry| {
            changed = registry.add_rule(selection, enabled);
            true
        });
        for change in changed.lists() {
            self.notify_change(&change);
        }
        self.update_parents();
        changed.sum()
    }

    /// Refuses a method of an extension that the server does not declare.
    pub(super) fn check_extension_of(&self, entry: &MethodEntry) -> Result<(), Error> {
        match &entry.extension {
            Some(identifier) if !self.extensions.declared.contains_key(identifier) => {
                Err(Error::usage(format!(
                    "method {:?} belongs to extension {identifier:?}, which the server does not declare: add it to the \
                     server's extensions",
                    entry.method
                )))
            }
            _ => Ok(()),
        }
    }

    /// Adds or removes a custom method. Lists do not contain these.
    pub(super) fn register_method(&self, apply: impl FnOnce(&mut Registry) -> bool) -> bool {
        let is_changed = self.change_registry(apply);
        if is_changed {
            self.refresh_profile();
            self.update_parents();
        }
        is_changed
    }

    pub(super) fn change_registry(&self, apply: impl FnOnce(&mut Registry) -> bool) -> bool {
        let mut registry = self
            .registry
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut registry).change(apply)
    }

    /// Reports a change to middleware, and notifies the clients of this process.
    pub(super) fn notify_change(&self, change: &Change) {
        self.report_change(change);
        for connection in self.connections() {
            connection.notify_change(change);
        }
    }

    /// Reports a change to middleware: to that of mounted servers first, because a cache here would keep what one of theirs
    /// answers.
    pub(super) fn report_change(&self, change: &Change) {
        // Mounted servers have other URIs, and report changes of their resources themselves.
        if !matches!(change, Change::Resource(_)) {
            self.report_change_to_mounted(change);
        }
        self.middlewares.changed(change);
    }

    /// Notifies the clients of every process, and those of servers that this one is mounted in.
    pub(super) fn notify_all_processes(&self, change: &Change) {
        self.report_change(change);
        self.tell_parents(change);
        self.notify_change(change);
        if let Some(others) = &self.others {
            others.publish(&BusEvent::Changed {
                change: change.clone(),
            });
        }
    }

    /// Notifies the client of a URL elicitation that it is complete. Returns `false` if no connection here has it.
    pub(super) fn notify_elicitation_complete(&self, elicitation_id: &str) -> bool {
        self.connections()
            .iter()
            .any(|connection| connection.elicitation_complete(elicitation_id))
    }

    /// Notifies the client of a URL elicitation that it is complete, whichever process it is connected to.
    pub(super) fn notify_elicitation_complete_everywhere(&self, elicitation_id: &str) {
        if !self.notify_elicitation_complete(elicitation_id)
            && let Some(others) = &self.others
        {
            others.publish(&BusEvent::ElicitationComplete {
                elicitation: elicitation_id.to_owned(),
            });
        }
    }

    /// Publishes the server's current profile.
    pub(super) fn refresh_profile(&self) {
        loop {
            let registry = self.registry();
            // Hooks of extensions run here, so no lock is held.
            let profile = Arc::new(self.server_profile(&registry));
            let mut published = self.profile.write().unwrap_or_else(PoisonError::into_inner);
            // The profile that is published last reflects every change of the registry.
            if Arc::ptr_eq(&registry, &self.registry()) {
                *published = profile;
                return;
            }
        }
    }

    /// Returns what the server declares: what the author says, every kind of feature that it has or ever had, because
    /// clients learn of capabilities only once, and all lists while a mounted server may add to them.
    fn declared_features(&self, registry: &Registry) -> DeclaredFeatures {
        let is_open = self.has_live_mounts();
        let completes = registry.has_completions() || self.mounted_have_completions();
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        offered.tools |= is_open || !registry.tools.is_empty();
        offered.resources |=
            is_open || !registry.resources.is_empty() || !registry.templates.is_empty();
        offered.prompts |= is_open || !registry.prompts.is_empty();
        offered.completions |= completes;
        *offered
    }

    fn server_profile(&self, registry: &Registry) -> ServerProfile {
        let declared = self.declared_features(registry);
        let lists = ListCapability::default().with_list_changed(true);
        let resources = ResourcesCapability::default()
            .with_list_changed(true)
            .with_subscribe(true);
        let mut capabilities = ServerCapabilities::default().with_logging(JsonObject::new());
        if declared.tools {
            capabilities = capabilities.with_tools(lists.clone());
        }
        if declared.resources {
            capabilities = capabilities.with_resources(resources);
        }
        if declared.prompts {
            capabilities = capabilities.with_prompts(lists);
        }
        if declared.completions {
            capabilities = capabilities.with_completions(JsonObject::new());
        }
        if !self.experimental.is_empty() {
            capabilities = capabilities.with_experimental(self.experimental.clone());
        }
        self.extensions.declare(&mut capabilities);
        ServerProfile {
            info: self.info.clone(),
            capabilities,
            instructions: self.instructions.clone(),
            discover_cache: self.settings.list_cache.clone(),
            revisions: self.settings.revisions.clone(),
            requests: registry.requests.keys().cloned().collect(),
            notifications: registry.notifications.keys().cloned().collect(),
        }
    }
}

impl Timed for Inner {
    /// Cancels suspended handlers whose retry did not come in time.
    fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    fn fire(self: Arc<Self>) {
        let (lapsed, next) = {
            let mut suspended = self.lock_suspended();
            (suspended.expire(clock::now()), suspended.poll_deadline())
        };
        if let Some(next) = next {
            self.timers.schedule(next, &self);
        }
        for suspended in lapsed {
            let call = suspended.call;
            tracing::debug!(name = %Quoted(call.name()), "a suspended handler expired");
            call.cancel();
        }
    }
}
