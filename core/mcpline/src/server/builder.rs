//! Builds servers with settings and a complete description.

use std::collections::BTreeMap;

use mcpline_protocol::mrtr::SuspendedHandlers;
use mcpline_protocol::session::ServerProfile;
use mcpline_protocol::vocabulary::{Implementation, JsonObject};
use mcpline_runtime::clock;

use crate::error::Error;
use crate::quota::ClientTable;
use crate::sharing::{Bus, BusEndpoint, BusEvent, Sharing};
use crate::sync::atomic::AtomicU64;
use crate::sync::{Arc, Mutex, OnceLock, RwLock, Weak};
use crate::timers::{Alarm, Timers};
use crate::traffic::TrafficFile;
use crate::warning_limit::WarningLimit;

use super::debug_mode;
use super::extension::{Extension, Extensions};
use super::inner::Inner;
use super::metrics::Metrics;
use super::middleware::Middlewares;
use super::mounts::Mounts;
use super::request_log::RequestLog;
use super::settings::Settings;
use super::state::TypeMap;
use super::traffic::TrafficLog;
use super::{Server, state_keys};

/// Builds a [`Server`] with settings and a complete description.
#[derive(Debug)]
pub struct ServerBuilder {
    pub(super) info: Implementation,
    pub(super) instructions: Option<String>,
    pub(super) settings: Settings,
    pub(super) extensions: Vec<Extension>,
    pub(super) experimental: BTreeMap<String, JsonObject>,
    pub(super) declared: DeclaredFeatures,
}

/// Features that are declared before any of them is registered.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DeclaredFeatures {
    pub(super) tools: bool,
    pub(super) resources: bool,
    pub(super) prompts: bool,
    pub(super) completions: bool,
}

impl ServerBuilder {
    pub(super) fn new(name: String, version: String) -> Self {
        Self {
            info: Implementation::new(name, version),
            instructions: None,
            settings: Settings::default(),
            extensions: Vec::new(),
            experimental: BTreeMap::new(),
            declared: DeclaredFeatures::default(),
        }
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Sets the complete description: icons, description, website and others.
    #[must_use]
    pub fn implementation(mut self, info: Implementation) -> Self {
        self.info = info;
        self
    }

    /// Sets instructions for the model on how to use the server.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Replaces the state that processes share in the settings.
    pub(crate) fn sharing(mut self, sharing: Sharing) -> Self {
        self.settings.sharing = Some(sharing);
        self
    }

    /// Sets limits, timeouts and other settings.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Adds an extension: declares it and registers its methods.
    #[must_use]
    pub fn extension(mut self, extension: Extension) -> Self {
        self.extensions.push(extension);
        self
    }

    /// Declares an experimental capability.
    #[must_use]
    pub fn experimental(mut self, name: impl Into<String>, settings: JsonObject) -> Self {
        self.experimental.insert(name.into(), settings);
        self
    }

    /// Declares tools before any is registered, because clients learn only once what a server has.
    #[must_use]
    pub fn declare_tools(mut self) -> Self {
        self.declared.tools = true;
        self
    }

    /// Declares resources before any is registered.
    #[must_use]
    pub fn declare_resources(mut self) -> Self {
        self.declared.resources = true;
        self
    }

    /// Declares prompts before any is registered.
    #[must_use]
    pub fn declare_prompts(mut self) -> Self {
        self.declared.prompts = true;
        self
    }

    /// Declares completions before any is registered.
    #[must_use]
    pub fn declare_completions(mut self) -> Self {
        self.declared.completions = true;
        self
    }

    /// Builds the server.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the secrets or [`DEBUG_VARIABLE`](super::DEBUG_VARIABLE) in the
    /// environment are invalid; `line` or `depth` of [`Settings::wire`] is zero, so that every message would be refused (the message
    /// calls them `max_line_bytes` and `max_json_depth`); the traffic file cannot be opened; [`Settings::metrics`] is on in a
    /// build without the cargo feature `metrics`; the identifier of an extension has no prefix or is used twice, or one of its
    /// features cannot be registered.
    pub fn build(mut self) -> Result<Server, Error> {
        let wire = self.settings.wire;
        for (name, limit) in [
            ("max_line_bytes", wire.max_line_bytes),
            ("max_json_depth", wire.max_json_depth),
        ] {
            if limit == 0 {
                return Err(Error::usage(format!("`{name}` must be more than zero")));
            }
        }
        let is_debugged = debug_mode::is_on(self.settings.debug)?;
        let traffic_file = TrafficFile::of(self.settings.traffic_file.as_deref())?;
        self.settings.check_output |= is_debugged;
        let metrics = Metrics::of(&self.settings)?;
        let extensions = Extensions::of(&self.extensions)?;
        let keys = state_keys::choose(self.settings.state_keys.clone())?;
        let info_json = serde_json::to_vec(&self.info).map_err(|error| {
            Error::usage(format!("the name, version or other information of the server cannot be written as JSON: {error}"))
        })?;
        let suspended = SuspendedHandlers::new(self.settings.max_suspended_handlers);
        let clients = ClientTable::new(
            self.settings.client_share,
            self.settings.max_total_client_bytes,
            self.settings.max_calls,
        );
        let sharing = self.settings.sharing.clone();
        let traffic = TrafficLog::new(&self.info.name, is_debugged, traffic_file);
        let inner = Arc::new_cyclic(|this| Inner {
            others: sharing.map(|sharing| join_bus(&sharing.bus, this.clone())),
            info_json,
            info: self.info,
            instructions: self.instructions,
            settings: self.settings,
            extensions,
            experimental: self.experimental,
            offered: Mutex::new(self.declared),
            registry: RwLock::default(),
            profile: RwLock::new(Arc::new(ServerProfile::default())),
            keys,
            suspended: Mutex::new(suspended),
            connections: Mutex::default(),
            next_connection: AtomicU64::new(1),
            clients,
            timers: Arc::new(Timers::new()),
            alarm: Alarm::default(),
            completions: Mutex::default(),
            warnings: WarningLimit::new(),
            executors: OnceLock::new(),
            mounts: Mounts::default(),
            middlewares: Middlewares::default(),
            request_log: RequestLog::default(),
            tracing: Default::default(),
            metrics,
            started: clock::now(),
            is_debugged,
            traffic,
            state: TypeMap::default(),
            this: this.clone(),
        });
        inner.refresh_profile();
        let server = Server { inner };
        for extension in self.extensions {
            server.add_extension(extension)?;
        }
        if is_debugged {
            debug_mode::warn(server.name());
        }
        Ok(server)
    }
}

/// Passes events of other processes on to the clients of this one.
fn join_bus(bus: &Arc<dyn Bus>, server: Weak<Inner>) -> BusEndpoint {
    BusEndpoint::join(bus, move |event| {
        let Some(server) = server.upgrade() else {
            return;
        };
        match event {
            BusEvent::Changed { change } => server.notify_change(&change),
            BusEvent::ElicitationComplete { elicitation } => {
                // At most one process has this client.
                let _ = server.notify_elicitation_complete(&elicitation);
            }
            BusEvent::Message { .. }
            | BusEvent::State { .. }
            | BusEvent::TakenOver { .. }
            | BusEvent::Ended { .. } => {}
        }
    })
}
