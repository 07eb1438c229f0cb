//! Decides which tools of a server a client sees and calls.

mod difference;
mod pin_file;
mod pins;

use std::path::PathBuf;

use mcpline_protocol::Printable;
use mcpline_protocol::wire::Raw;
use serde_json::Value;

use crate::background;
use crate::client::cursors::Cursors;
use crate::client::settings::Approval;
use crate::client_error::ClientError;
use crate::error::Error;
use crate::name_pattern::{NamePattern, matches_any};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    ClientMiddleware, ClientMiddlewareFuture, ClientNext, ClientOutcome, ClientRequest,
    ToolAdmission,
};

use pins::{PinCheck, PinComparison, Pins};

/// Maximum number of characters of a tool's name in an error: a server may send names of many megabytes.
const MAX_SHOWN_NAME_CHARS: usize = 200;

/// A [`ClientMiddleware`] that decides which tools of a server the client lists and calls.
///
/// Tools can be allowed and denied by name: others are left out of `tools/list`, and calls of them fail with
/// [`ClientError::ToolCallRefused`].
///
/// With pins, a tool keeps the definition that it had when it was first listed, with all members but its icons: a server cannot get
/// consent for a harmless tool and then change what the model reads. A tool whose definition has changed is left out of lists, with a
/// warning, and calls of it are refused with the difference, until it is [accepted](Self::accept). A tool that the
/// server does not list cannot be called. A call of a tool that was not listed on this connection, or since the server said that its
/// tools have changed, first lists the tools, within the timeouts of the call. Use one policy, with a file of its own, for each server.
///
/// Names are compared as they are written. A server may run a tool under another spelling, such as another case: to
/// limit what a server can do, allow names instead of denying some.
///
/// ```
/// use mcpline::client::Client;
/// use mcpline::client::middleware::ToolPolicy;
///
/// let policy = ToolPolicy::new().with_allowed(["get_*", "search"]).with_denied(["get_secret"]).with_pins();
/// let builder = Client::builder("host", "1.0.0").middleware(policy);
/// # let _ = builder;
/// ```
#[derive(Debug, Clone, Default)]
pub struct ToolPolicy {
    allowed: Option<Vec<NamePattern>>,
    denied: Vec<NamePattern>,
    approval: Option<Vec<NamePattern>>,
    pinned: Option<Arc<PinnedTools>>,
}

#[derive(Debug)]
struct PinnedTools {
    file: Option<PathBuf>,
    state: Mutex<PinState>,
    /// Held while tools are listed for a call, so that concurrent calls share one list.
    listing: tokio::sync::Mutex<()>,
    /// Held while the file is written.
    saving: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct PinState {
    pins: Pins,
    /// The connection and the number of changes for which tools are verified.
    epoch: Option<(u64, u64)>,
}

impl ToolPolicy {
    /// Creates a policy that allows all tools and pins none.
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

    /// Demands approval for calls of tools whose name matches one of these patterns: the host's hook
    /// ([`ClientBuilder::on_tool_call`](crate::client::ClientBuilder::on_tool_call)) runs for them, and without such a hook they are
    /// refused. For calls of other tools the hook does not run. Without this, it runs for all.
    ///
    /// Annotations such as `readOnlyHint` decide nothing here, because the server writes them (`server/tools`); the hook gets them.
    /// Of several policies, one that demands approval is enough.
    #[must_use]
    pub fn with_approval<S: AsRef<str>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        self.approval = Some(NamePattern::all(patterns));
        self
    }

    /// Pins the definitions of tools for the life of this policy.
    #[must_use]
    pub fn with_pins(self) -> Self {
        self.pinned_as(Pins::default(), None)
    }

    /// Pins the definitions of tools, and keeps them in a file: a JSON object of definitions by name, which people may read and
    /// edit. Removing a tool from the file lets it be pinned anew when the client starts. Several clients of one server may use
    /// the same file. Another file with the suffix `.lock` is created beside it.
    ///
    /// If the file cannot be written later, a warning is logged, and the pins last as long as this policy.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the file exists, and cannot be read or is not such an object.
    pub fn with_pin_file(self, file: impl Into<PathBuf>) -> Result<Self, Error> {
        let file = file.into();
        let definitions = pin_file::read(&file).map_err(|error| {
            Error::usage(format!(
                "`pin_file`: cannot use the file of pinned tools, {}: {error}",
                file.display()
            ))
        })?;
        Ok(self.pinned_as(Pins::new(definitions), Some(file)))
    }

    fn pinned_as(mut self, pins: Pins, file: Option<PathBuf>) -> Self {
        self.pinned = Some(Arc::new(PinnedTools {
            file,
            state: Mutex::new(PinState { pins, epoch: None }),
            listing: tokio::sync::Mutex::new(()),
            saving: tokio::sync::Mutex::new(()),
        }));
        self
    }

    /// Returns the names of the tools whose definition has changed since they were pinned, with the difference.
    pub fn changed_tools(&self) -> Vec<(String, String)> {
        let pinned = self.pinned.as_ref();
        pinned.map_or_else(Vec::new, |pinned| pinned.state().pins.changes())
    }

    /// Pins the changed definition of a tool, as it was listed last; it can then be called, and the next list has it. Compare
    /// the difference of [`changed_tools`](Self::changed_tools) before and after, if the server may list another one meanwhile.
    /// The file is written after the next list.
    ///
    /// Returns `false` if its definition had not changed, or all changed definitions exceed 8 MiB.
    pub fn accept(&self, name: &str) -> bool {
        let pinned = self.pinned.as_ref();
        pinned.is_some_and(|pinned| pinned.state().pins.accept(name))
    }

    fn allows(&self, name: &str) -> bool {
        !matches_any(&self.denied, name)
            && self
                .allowed
                .as_ref()
                .is_none_or(|patterns| matches_any(patterns, name))
    }

    /// Calls a tool, or refuses that.
    async fn call(self, mut request: ClientRequest, next: ClientNext) -> ClientOutcome {
        let Some(name) = request.name() else {
            return next.run(request).await;
        };
        if !self.allows(&name) {
            return Err(refused(format!(
                "the tool policy of this client does not allow the tool {}",
                shown(&name)
            )));
        }
        if let Some(pinned) = &self.pinned {
            let timeouts = request.timeouts();
            let verifying = pinned.verify(&name, &request, &next);
            let verified = tokio::time::timeout(timeouts.total, verifying).await;
            verified.map_err(|_| ClientError::RequestTimedOut {
                waited: timeouts.total,
                in_all: true,
            })??;
            pinned.check_call(&name)?;
        }
        if let Some(patterns) = &self.approval {
            let approval = match matches_any(patterns, &name) {
                true => Approval::Needed,
                false => Approval::Needless,
            };
            let options = request.options_mut();
            options.approval = options.approval.max(approval);
        }
        next.run(request).await
    }
}

impl PinnedTools {
    fn state(&self) -> MutexGuard<'_, PinState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists the server's tools, unless it is known that this one has its pinned definition.
    async fn verify(
        &self,
        name: &str,
        request: &ClientRequest,
        next: &ClientNext,
    ) -> Result<(), ClientError> {
        if self.is_verified(name, request) {
            return Ok(());
        }
        let _listing = self.listing.lock().await;
        if self.is_verified(name, request) {
            return Ok(());
        }
        let mut cursors = Cursors::new("tools/list");
        let mut params = None;
        loop {
            let mut list = request.another("tools/list", params);
            list.options_mut().fresh = true;
            let page = next.run(list).await?;
            let cursor = page.member("nextCursor").filter(|cursor| !cursor.is_null());
            let text = cursor.as_ref().and_then(Raw::string_value);
            if !cursors.follow(text.as_deref())? {
                break;
            }
            params = cursor.map(|cursor| Raw::EMPTY_OBJECT.with("cursor", &cursor));
        }
        self.enter_epoch(request);
        self.save().await;
        Ok(())
    }

    /// Whether the tool was listed with its pinned definition, on this connection and since its tools changed.
    fn is_verified(&self, name: &str, request: &ClientRequest) -> bool {
        self.update_epoch(request);
        let state = self.state();
        state.epoch.is_some() && state.pins.is_verified(name)
    }

    /// Forgets what was listed on another connection, or before the tools changed.
    fn update_epoch(&self, request: &ClientRequest) {
        let epoch = request.tool_epoch();
        let mut state = self.state();
        if state.epoch != epoch {
            state.pins.clear_verified();
            state.epoch = epoch;
        }
    }

    /// Passes on a page of a list that the host reads.
    async fn list(&self, request: ClientRequest, next: ClientNext) -> ClientOutcome {
        self.update_epoch(&request);
        let outcome = next.run(request.clone()).await;
        self.enter_epoch(&request);
        self.save().await;
        outcome
    }

    /// Records the connection that a list has made.
    fn enter_epoch(&self, request: &ClientRequest) {
        let epoch = request.tool_epoch();
        let mut state = self.state();
        if state.epoch.is_none() {
            state.epoch = epoch;
        }
    }

    /// Compares a listed definition with the pinned one, or pins it.
    fn admit(&self, name: &str, tool: &Raw) -> ToolAdmission {
        let definition = match tool.decode::<Value>() {
            Ok(definition) => Arc::new(pins::compared(definition)),
            Err(error) => return ToolAdmission::Refused(format!("it cannot be pinned: {error}")),
        };
        // Compared without the lock, because that may take long.
        let pinned = self.state().pins.pinned(name);
        let compared = PinComparison::of(pinned.as_deref(), &definition);
        let verdict = self.state().pins.record(name, definition, compared);
        match verdict {
            PinCheck::Same => ToolAdmission::Admitted,
            PinCheck::Changed(difference) => ToolAdmission::Refused(format!(
                "its definition has changed since it was pinned: {difference}"
            )),
            PinCheck::Full => {
                ToolAdmission::Refused("there is no room to pin its definition".to_owned())
            }
        }
    }

    fn check_call(&self, name: &str) -> Result<(), ClientError> {
        let state = self.state();
        let shown = shown(name);
        if let Some(difference) = state.pins.difference(name) {
            return Err(refused(format!(
                "the definition of the tool {shown} has changed since it was pinned: {difference}"
            )));
        }
        match state.pins.is_verified(name) {
            true => Ok(()),
            false => Err(refused(format!(
                "the tool {shown} is not pinned: the server's list does not have it"
            ))),
        }
    }

    /// Writes new pins to the file.
    async fn save(&self) {
        let Some(file) = self.file.clone() else {
            return;
        };
        let _saving = self.saving.lock().await;
        let Some((definitions, accepted)) = self.state().pins.take_unwritten() else {
            return;
        };
        let shown = file.display().to_string();
        let kept = accepted.clone();
        let adding = move || pin_file::add(&file, &definitions, &accepted);
        match background::blocking(adding).await {
            Some(Ok(written)) => self.state().pins.adopt(written),
            Some(Err(error)) => {
                self.state().pins.record_failed_write(kept);
                tracing::warn!("cannot write the file of pinned tools, {shown}: {error}");
            }
            None => self.state().pins.record_failed_write(kept),
        }
    }
}

fn shown(name: &str) -> String {
    let shown: String = name.chars().take(MAX_SHOWN_NAME_CHARS).collect();
    Printable(format!("{shown:?}")).to_string()
}

fn refused(reason: String) -> ClientError {
    ClientError::ToolCallRefused { reason }
}

impl ClientMiddleware for ToolPolicy {
    fn handle(&self, request: ClientRequest, next: ClientNext) -> ClientMiddlewareFuture {
        let this = self.clone();
        match request.method() {
            "tools/call" => Box::pin(this.call(request, next)),
            "tools/list" => Box::pin(async move {
                match &this.pinned {
                    Some(pinned) => pinned.list(request, next).await,
                    None => next.run(request).await,
                }
            }),
            _ => Box::pin(async move { next.run(request).await }),
        }
    }

    fn admits_tool(&self, name: &str, definition: &Raw) -> ToolAdmission {
        if !self.allows(name) {
            return ToolAdmission::Hidden;
        }
        let pinned = self.pinned.as_ref();
        pinned.map_or(ToolAdmission::Admitted, |pinned| {
            pinned.admit(name, definition)
        })
    }

    fn admits_call(&self, name: &str) -> Result<(), String> {
        let pinned = self.pinned.as_ref();
        let checked = pinned.map_or(Ok(()), |pinned| pinned.check_call(name));
        checked.map_err(|error| match error {
            ClientError::ToolCallRefused { reason } => reason,
            other => other.to_string(),
        })
    }
}
