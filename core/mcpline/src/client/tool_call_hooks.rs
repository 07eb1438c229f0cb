//! Hooks for tool calls: before a call is sent, and after it has ended.
//!
//! They implement what the specification requires of hosts: the user's consent, and an audit log ("Security and Trust &
//! Safety"; `server/tools`, security considerations).

use std::sync::atomic::{AtomicU64, Ordering};

use mcpline_protocol::Raw;
use mcpline_protocol::vocabulary::{JsonObject, ToolAnnotations};
use serde::Deserialize;

use crate::background;
use crate::background_tasks::{BackgroundTasks, TaskGuard};
use crate::client_error::ClientError;
use crate::error_kind::ErrorKind;

use super::handlers::{HostRequestHandler, call_host};
use super::inner::Inner;
use super::settings::{Approval, RequestOptions};

/// A tool call, as passed to hooks.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// Identifies the call in this process; the same in [`ToolCallOutcome`].
    pub id: u64,
    /// Name of the tool.
    pub name: String,
    /// Arguments that are sent.
    #[serde(default)]
    pub arguments: JsonObject,
    /// Annotations of the tool, if it was listed. Untrusted unless the server is trusted.
    #[serde(default)]
    pub annotations: Option<ToolAnnotations>,
}

/// Outcome of a tool call: a result or an error.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct ToolCallOutcome {
    /// The call.
    pub call: ToolCall,
    /// The result as sent by the server, also one with `isError`.
    #[serde(default)]
    pub result: Option<JsonObject>,
    /// The reason why there is no result.
    #[serde(default)]
    pub error: Option<ToolCallError>,
}

/// Why a tool call has no result.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct ToolCallError {
    /// Identifier of the [`ErrorKind`](crate::ErrorKind), such as `request_timed_out`; `request_cancelled` if the
    /// caller cancelled the call.
    pub kind: String,
    /// The error message.
    pub message: String,
}

/// The host's hooks for tool calls. Called with JSON: [`ToolCall`] and [`ToolCallOutcome`].
#[derive(Clone, Default)]
pub(super) struct ToolCallHooks {
    /// Any result permits the call. An error refuses it; its message is the reason.
    pub(super) before: Option<HostRequestHandler>,
    /// Receives the outcome. Its answer is ignored.
    pub(super) after: Option<HostRequestHandler>,
}

impl Inner {
    /// Sends a request, with the host's hooks if it is a tool call.
    pub(super) async fn hooked_request(
        &self,
        method: &str,
        params: Option<&Raw>,
        options: &RequestOptions,
    ) -> Result<Raw, ClientError> {
        let hooks = &self.handlers.tool_calls;
        let has_hooks = hooks.before.is_some() || hooks.after.is_some();
        if method != "tools/call" || !(has_hooks || options.approval == Approval::Needed) {
            return self.request(method, params, options).await;
        }
        Box::pin(self.hooked_call(params, options)).await
    }

    async fn hooked_call(
        &self,
        params: Option<&Raw>,
        options: &RequestOptions,
    ) -> Result<Raw, ClientError> {
        // The hook must not run for a call that cannot be sent.
        self.open_session()?;
        let call = self.described_call(params);
        let hooks = &self.handlers.tool_calls;
        let report = ToolOutcomeReporter {
            after: hooks.after.clone(),
            call: call.clone(),
            runtime: self.runtime.clone(),
            alive: self.handlers.tasks.begin(),
        };
        let consent = match (&hooks.before, options.approval) {
            (_, Approval::Needless) | (None, Approval::Undecided) => Ok(()),
            (Some(before), _) => request_consent(&self.handlers.tasks, before.clone(), call).await,
            (None, Approval::Needed) => Err(ClientError::ToolCallRefused {
                reason: "the tool policy of this client demands approval, but no hook gives it: set `on_tool_call`"
                    .to_owned(),
            }),
        };
        let outcome = match consent {
            Ok(()) => self.request("tools/call", params, options).await,
            Err(error) => Err(error),
        };
        report.end(&outcome).await;
        outcome
    }

    /// Returns a [`ToolCall`] as JSON.
    fn described_call(&self, params: Option<&Raw>) -> Raw {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let id = NUMBER.fetch_add(1, Ordering::Relaxed);
        let member = |name| params.and_then(|params| params.member(name));
        let name = member("name").unwrap_or_else(|| Raw::string(""));
        let mut call = format!(r#"{{"id":{id},"name":{name}"#);
        // Some hosts write `null` for no arguments.
        if let Some(arguments) = member("arguments").filter(|given| !given.is_null()) {
            call += &format!(r#","arguments":{arguments}"#);
        }
        let known = Raw::string_value(&name).and_then(|name| self.tools().annotations(&name));
        if let Some(annotations) = known.and_then(|known| Raw::from_serialize(&known).ok()) {
            call += &format!(r#","annotations":{annotations}"#);
        }
        call.push('}');
        Raw::from_trusted(call)
    }
}

/// Runs the hook before a call. Closing the client ends it.
async fn request_consent(
    tasks: &BackgroundTasks,
    before: HostRequestHandler,
    call: Raw,
) -> Result<(), ClientError> {
    match tasks.until_closed(call_host(before, call.into(), ())).await {
        Some(Ok(_)) => Ok(()),
        Some(Err(refusal)) => Err(ClientError::ToolCallRefused {
            reason: refusal.message.into_owned(),
        }),
        None => Err(ClientError::Closed),
    }
}

/// Reports the outcome of a call once; if dropped before, that the caller cancelled it.
struct ToolOutcomeReporter {
    after: Option<HostRequestHandler>,
    call: Raw,
    runtime: tokio::runtime::Handle,
    /// Keeps the client's `close` waiting until the outcome is reported.
    alive: TaskGuard,
}

impl ToolOutcomeReporter {
    async fn end(mut self, outcome: &Result<Raw, ClientError>) {
        let Some(after) = self.after.take() else {
            return;
        };
        let outcome = match outcome {
            Ok(result) => format!(r#""result":{result}"#),
            Err(error) => failed(error.kind().as_str(), &format!("{error:#}")),
        };
        // In a task of its own, so that the outcome is reported even if the caller gives up meanwhile.
        let report = report_outcome(after, self.call.clone(), outcome, self.alive.clone());
        let report = background::spawn(&self.runtime, report);
        // A panic of the hook is already logged.
        let _ = report.await;
    }
}

impl Drop for ToolOutcomeReporter {
    fn drop(&mut self) {
        if let Some(after) = self.after.take() {
            let outcome = failed(
                ErrorKind::RequestCancelled.as_str(),
                "request was cancelled",
            );
            let report = report_outcome(after, self.call.clone(), outcome, self.alive.clone());
            background::spawn(&self.runtime, report);
        }
    }
}

fn failed(kind: &str, message: &str) -> String {
    let message = Raw::string(message);
    format!(r#""error":{{"kind":"{kind}","message":{message}}}"#)
}

async fn report_outcome(after: HostRequestHandler, call: Raw, outcome: String, _alive: TaskGuard) {
    let params = Raw::from_trusted(format!(r#"{{"call":{call},{outcome}}}"#));
    if let Err(error) = call_host(after, params.into(), ()).await {
        tracing::warn!("the tool outcome hook failed: {error}");
    }
}
