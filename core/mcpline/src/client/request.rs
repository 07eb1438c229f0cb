//! The path of one request: cached results, rounds of input requests, the tool catalog, and recovery when the
//! connection is lost.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mcpline_protocol::adapt;
use mcpline_protocol::checks;
use mcpline_protocol::client::{
    InputRequiredResult, OutgoingClientRequest, OutputCheck, RequestTimeouts, ToolPage,
    is_cacheable, is_header_mismatch, is_input_required,
};
use mcpline_protocol::methods::RetrySafety;
use mcpline_protocol::wire::header::standard_headers;
use mcpline_protocol::wire::{JsonKind, Method, Params, Raw};
use mcpline_protocol::{ErrorCode, Printable, Revision};
use mcpline_runtime::clock;

use crate::background;
use crate::client_error::ClientError;
use crate::error_kind::ErrorKind;
use crate::offload;
use crate::span;
use crate::sync::{Arc, PoisonError};

use super::cursors::Cursors;
use super::inner::{Inner, jitter};
use super::input_request_span::InputRequestOrigin;
use super::metrics::MeasuredRequest;
use super::middleware::admission;
use super::session::Session;
use super::settings::{ClientSettings, Reissue, RequestOptions};

/// Maximum number of attempts after lost sessions: a server that loses every session is broken.
const MAX_SESSIONS_LOST: u32 = 2;

/// Maximum number of repetitions with unknown outcome, to stop if the request itself ends the server each time.
const MAX_REPEATS: u32 = 2;

/// Refuses parameters that are not an object.
pub(super) fn check_params(params: Option<&Raw>) -> Result<(), ClientError> {
    match params.is_some_and(|params| params.members().is_none()) {
        true => Err(ClientError::Usage(
            "parameters must be a JSON object".to_owned(),
        )),
        false => Ok(()),
    }
}

/// Moves `_meta` from the parameters to the options.
pub(super) fn split_meta(
    params: Option<&Raw>,
    mut options: RequestOptions,
) -> Result<(Option<Raw>, RequestOptions), ClientError> {
    let Some(meta) = params.and_then(|params| params.member("_meta")) else {
        return Ok((params.cloned(), options));
    };
    if options.meta.is_some() || meta.members().is_none() {
        return Err(ClientError::Usage(
            "_meta must be an object, in the parameters or in the options".to_owned(),
        ));
    }
    options.meta = Some(meta);
    Ok((params.map(|params| params.without("_meta")), options))
}

/// Checks the keys of the host's `_meta`, and logs a warning about malformed ones.
pub(super) fn check_meta(method: &str, given: &Raw) -> Result<(), ClientError> {
    if let Some(warning) = checks::meta(given).map_err(ClientError::Usage)? {
        tracing::warn!("{method}: {warning}");
    }
    Ok(())
}

impl Inner {
    /// Sends a request of the host, after its parameters are checked, through its middleware and hooks; in a span, if a subscriber
    /// wants it.
    pub(super) async fn checked_request(
        &self,
        method: &str,
        params: Option<&Raw>,
        options: &RequestOptions,
    ) -> Result<Raw, ClientError> {
        check_params(params)?;
        if options
            .meta
            .as_ref()
            .is_some_and(|meta| meta.members().is_none())
        {
            return Err(ClientError::Usage("_meta must be a JSON object".to_owned()));
        }
        let has_meta = params.is_some_and(|params| params.member("_meta").is_some());
        let has_contents = self.settings.span_contents && options.sent.is_some();
        let is_logged = self.handlers.request_log.is_wanted();
        if has_meta || span::is_wanted() || self.metrics.is_some() || has_contents || is_logged {
            return Box::pin(self.observed_request(method, params, options)).await;
        }
        // Boxed, and decided here: the size of this future is the cost of every request.
        if !self.handlers.middlewares.is_empty() {
            return Box::pin(self.request_through_middleware(method, params, options)).await;
        }
        self.hooked_request(method, params, options).await
    }

    /// Sends a request whose parameters have `_meta`, which has a span here or in another language, or which is measured or
    /// logged.
    async fn observed_request(
        &self,
        method: &str,
        params: Option<&Raw>,
        options: &RequestOptions,
    ) -> Result<Raw, ClientError> {
        let (params, options) = split_meta(params, options.clone())?;
        let measured = MeasuredRequest::begin(self, method, params.as_ref());
        let outcome = match span::is_wanted() {
            true => self.request_in_span(method, params.as_ref(), options).await,
            false => {
                self.recorded_request(method, params.as_ref(), &options)
                    .await
            }
        };
        if let Some(measured) = measured {
            measured.end(&outcome);
        }
        outcome
    }

    /// Sends a request, answers input requests of the server, and recovers if the connection is lost.
    pub(super) async fn request(
        &self,
        method: &str,
        params: Option<&Raw>,
        options: &RequestOptions,
    ) -> Result<Raw, ClientError> {
        if let Some(given) = &options.meta {
            check_meta(method, given)?;
        }
        let name = Method::parse(method);
        let cached = self.settings.cache && is_cacheable(&name);
        if cached && !options.fresh {
            // A closed client returns no cached results.
            self.open_session()?;
            if let Some(result) = self.cache().get(&name, params, clock::now()) {
                self.add_page(&name, params, &result, self.latest_connection())?;
                return Ok(result);
            }
        }
        let mut retry: Option<Raw> = None;
        let mut rounds = 0;
        let started = clock::now();
        let mut attempt = AttemptCounts::begun(started);
        loop {
            // Rarely needed futures are boxed: a request's future is moved often, and its size determines the cost.
            let session = match self.open_session()? {
                Some(session) => session,
                None => Box::pin(self.session()).await?,
            };
            session.check_capability(&name, &self.settings)?;
            self.check_cursor(&session, &name, params)?;
            if name == Method::ToolsCall && session.has_task_calls() {
                self.check_task(params)?;
            }
            let generation = if cached { self.cache().generation() } else { 0 };
            let sent_params = retry.as_ref().or(params);
            match self
                .request_once(&session, &name, sent_params, options)
                .await
            {
                Ok(result) => {
                    let has_types = session.revision().features().result_type;
                    let resolver = match has_types && !options.manual_results {
                        true => self.resolver_of(&result),
                        false => None,
                    };
                    let (mut since, mut is_kept) = (started, rounds == 0);
                    let result = match resolver {
                        None => result,
                        Some(resolver) => {
                            let resolved =
                                self.resolve_result(resolver, method, sent_params, result);
                            let resolved = Box::pin(resolved).await?;
                            // Resolving has no timeout of its own, so time starts over; and the result is the host's,
                            // not the server's.
                            (since, is_kept) = (clock::now(), false);
                            resolved
                        }
                    };
                    let needed = match has_types {
                        true => self.input_needed(&name, session.revision(), &result, options)?,
                        false => None,
                    };
                    let Some(needed) = needed else {
                        let timeouts = options.timeouts.unwrap_or(self.settings.timeouts);
                        // A result that is returned unchanged may have a type without tool output.
                        let is_ordinary = !has_types || is_input_required(&result) == Ok(false);
                        let unchecked = match is_ordinary {
                            true => self.check_output(&name, params, &result)?,
                            false => None,
                        };
                        if let Some(check) = unchecked {
                            let check = move |interrupt: &AtomicBool| check.run(interrupt);
                            Box::pin(self.compute(check, since, timeouts))
                                .await?
                                .map_err(|reason| ClientError::InvalidResponse { reason })?;
                        }
                        self.check_result(&session, &name, params, &result)?;
                        let result = match name {
                            Method::ToolsList => {
                                Box::pin(self.update_tool_catalog(result, since, timeouts)).await?
                            }
                            _ => result,
                        };
                        // Results that depended on answers are not cached for others.
                        if cached && is_kept {
                            let now = clock::now();
                            self.cache().insert(&name, params, &result, generation, now);
                        }
                        return Ok(result);
                    };
                    rounds += 1;
                    if rounds > self.settings.max_input_rounds {
                        return Err(ClientError::TooManyRounds {
                            rounds: self.settings.max_input_rounds,
                        });
                    }
                    let answers = Box::pin(self.answer_input_requests(&needed)).await?;
                    retry = Some(needed.retry(params, &answers));
                }
                Err(error) => {
                    let pages = cached && params.is_some_and(|all| all.member("cursor").is_some());
                    if pages && error.rpc().is_some() {
                        self.cache().remove_pages(&name);
                    }
                    let recovery = self.prepare_retry(
                        &session,
                        &name,
                        sent_params,
                        options,
                        error,
                        &mut attempt,
                    );
                    Box::pin(recovery).await?;
                }
            }
        }
    }

    /// Sends one request over one connection.
    async fn request_once(
        &self,
        session: &Arc<Session>,
        method: &Method,
        params: Option<&Raw>,
        options: &RequestOptions,
    ) -> Result<Raw, ClientError> {
        let features = session.revision().features();
        let adapted =
            params.and_then(|given| adapt::request_params(method, given, session.revision()));
        let params = adapted.as_ref().or(params);
        let headers = if features.standard_headers && session.link.mirrors_params_as_headers() {
            self.headers(method, params)
        } else {
            Vec::new()
        };
        let level = options.log_level.or_else(|| {
            features
                .request_log_level
                .then(|| self.log_level())
                .flatten()
        });
        let outgoing = OutgoingClientRequest {
            method: method.as_str(),
            params,
            meta: options.meta.as_ref(),
            log_level: level,
            wants_progress: options.progress.is_some(),
            timeouts: options.timeouts.unwrap_or(self.settings.timeouts),
        };
        // Pinned, because a future that is moved before it is awaited takes its size twice.
        let response =
            std::pin::pin!(session.send_request(&outgoing, options.progress.clone(), headers));
        if let (Some(sent), Some(number)) = (&options.sent, response.number()) {
            sent.set(session, number);
        }
        response.await
    }

    fn headers(&self, method: &Method, params: Option<&Raw>) -> Vec<(String, String)> {
        let params = params.cloned().and_then(Params::from_raw);
        let mut headers: Vec<(String, String)> = standard_headers(method, params.as_ref())
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        if *method == Method::ToolsCall
            && let Some(params) = &params
            && let Some(tool) = params.get_str("name")
        {
            let arguments = params.get("arguments");
            headers.extend(self.tools().headers(&tool, arguments.as_ref()));
        }
        headers
    }

    /// Returns the input that a result requests from the host, unless it is complete or left to the caller.
    fn input_needed(
        &self,
        method: &Method,
        revision: Revision,
        result: &Raw,
        options: &RequestOptions,
    ) -> Result<Option<InputRequiredResult>, ClientError> {
        let extensions = &self.handlers.capabilities.extensions;
        if options.manual_results && extensions.as_ref().is_some_and(|all| !all.is_empty()) {
            return Ok(None);
        }
        let needed = match is_input_required(result) {
            Ok(true) if may_require_input(method, revision) && !options.manual_results => {
                InputRequiredResult::of(result)
            }
            known => known.map(|_| None),
        };
        needed.map_err(|reason| ClientError::InvalidResponse {
            reason: format!("the result of {method}: {reason}"),
        })
    }

    /// Refuses to continue a list whose session is over: cursors must not be kept beyond it (up to 2025-11-25,
    /// `server/utilities/pagination`). The caller must start over.
    fn check_cursor(
        &self,
        session: &Session,
        method: &Method,
        params: Option<&Raw>,
    ) -> Result<(), ClientError> {
        if session.revision().is_modern() || !is_list(method) {
            return Ok(());
        }
        let cursor = params.and_then(|params| params.member("cursor"));
        let cursor = cursor.as_ref().and_then(Raw::string_value);
        let conversation = cursor.and_then(|cursor| {
            let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
            sizes.connection_of_cursor(method.as_str(), &cursor)
        });
        match conversation.is_some_and(|number| number != session.number) {
            true => Err(ClientError::SessionExpired),
            false => Ok(()),
        }
    }

    /// Refuses a plain call of a tool that its server runs only as a task.
    fn check_task(&self, params: Option<&Raw>) -> Result<(), ClientError> {
        let member = |name| params.and_then(|params| params.member(name));
        let tool = member("name");
        let tool = tool.as_ref().and_then(Raw::string_value);
        let is_task = member("task").is_some_and(|task| !task.is_null());
        match tool.filter(|tool| !is_task && self.tools().requires_task(tool)) {
            None => Ok(()),
            Some(tool) => Err(ClientError::NotSupported(format!(
                "tools/call was not sent: tool {tool:?} can only be called as a task (`execution.taskSupport` is \
                 `required`), which the client does not do by itself"
            ))),
        }
    }

    /// Checks a tool's result against its output schema if that is quick. Returns the check if it is not.
    fn check_output(
        &self,
        method: &Method,
        params: Option<&Raw>,
        result: &Raw,
    ) -> Result<Option<OutputCheck>, ClientError> {
        if *method != Method::ToolsCall || !self.settings.check_output {
            return Ok(None);
        }
        let tool = params.and_then(|params| params.member("name"));
        let check = tool
            .as_ref()
            .and_then(Raw::string_value)
            .and_then(|tool| self.tools().output_check(&tool, result));
        match check.as_ref().and_then(OutputCheck::run_inline) {
            Some(outcome) => outcome
                .map(|()| None)
                .map_err(|reason| ClientError::InvalidResponse { reason }),
            None => Ok(check),
        }
    }

    /// Computes something on another thread, within the timeouts of a call that began at `started`.
    async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
        started: Duration,
        timeouts: RequestTimeouts,
    ) -> Result<T, ClientError> {
        let interrupt = Arc::new(AtomicBool::new(false));
        let computing = offload::compute(self.handlers.peer, interrupt, work);
        within(computing, started, timeouts)
            .await?
            .ok_or(ClientError::Closed)
    }

    /// Checks that a result has the method's form, and that its list is not too large.
    fn check_result(
        &self,
        session: &Session,
        method: &Method,
        params: Option<&Raw>,
        result: &Raw,
    ) -> Result<(), ClientError> {
        if method.is(|spec| spec.has_empty_result) {
            return Ok(());
        }
        if result.kind() != JsonKind::Object {
            let reason = format!("the result of {method} is not an object");
            return Err(ClientError::InvalidResponse { reason });
        }
        self.add_page(method, params, result, session.number)
    }

    /// Updates the tool catalog with a page of `tools/list` before the caller gets it, and removes invalid tools. Large
    /// pages are read on another thread.
    async fn update_tool_catalog(
        &self,
        page: Raw,
        started: Duration,
        timeouts: RequestTimeouts,
    ) -> Result<Raw, ClientError> {
        let mirrored = self.open_session()?.is_some_and(|session| {
            session.revision().features().param_headers && session.link.mirrors_params_as_headers()
        });
        let learning = async {
            // Waiting for other pages counts toward the call's timeouts.
            let _turn = self.learning.lock().await;
            let middlewares = self.handlers.middlewares.clone();
            let admit = move |name: &str, tool: &Raw| admission(&middlewares, name, tool);
            let read = match ToolPage::read_inline(&page, mirrored, &admit) {
                Some(read) => read,
                None => {
                    let page = page.clone();
                    let interrupt = Arc::new(AtomicBool::new(false));
                    let read = move |interrupt: &AtomicBool| {
                        ToolPage::read(&page, mirrored, &admit, interrupt)
                    };
                    let reading = offload::compute(self.handlers.peer, interrupt, read);
                    reading.await.ok_or(ClientError::Closed)?
                }
            };
            let read = read.map_err(|reason| ClientError::InvalidResponse { reason })?;
            Ok::<_, ClientError>(self.tools().add_page(read))
        };
        let learnt = within(learning, started, timeouts).await??;
        for warning in learnt.warnings {
            tracing::warn!("{}", Printable(warning));
        }
        Ok(learnt.page.unwrap_or(page))
    }

    /// Adds a page to the size of its list. Ignores other results.
    fn add_page(
        &self,
        method: &Method,
        params: Option<&Raw>,
        page: &Raw,
        conversation: u64,
    ) -> Result<(), ClientError> {
        if !is_list(method) {
            return Ok(());
        }
        let cursor = params.and_then(|params| params.member("cursor"));
        let next = page.member("nextCursor");
        let mut sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.add(
            method.as_str(),
            cursor.as_ref().and_then(Raw::string_value).as_deref(),
            next.as_ref().and_then(Raw::string_value).as_deref(),
            page.as_bytes().len(),
            self.settings.max_list_bytes,
            conversation,
        )
    }

    /// Answers all input requests of a result concurrently.
    async fn answer_input_requests(
        &self,
        needed: &InputRequiredResult,
    ) -> Result<Vec<(String, Raw)>, ClientError> {
        let mut answering = Vec::new();
        let session = self.open_session().ok().flatten();
        let origin = InputRequestOrigin {
            session: session.as_deref(),
            server: self.dialler.server_address(),
            request_id: None,
        };
        for request in &needed.input_requests {
            let params = request.params.clone();
            let answer = self
                .handlers
                .answer_recorded(&request.method, params, &origin);
            answering.push((
                request.key.clone(),
                request.method.as_str(),
                background::spawn(&self.runtime, self.handlers.tasks.until_closed(answer)),
            ));
        }
        let mut aborting = AbortOnDrop(
            answering
                .iter()
                .map(|(_, _, task)| task.abort_handle())
                .collect(),
        );
        let mut answers = Vec::with_capacity(answering.len());
        for (key, method, task) in answering {
            let answer = task.await.ok().flatten().ok_or(ClientError::Closed)?;
            let answer = answer.map_err(|error| ClientError::InputRequestFailed {
                method: Some(method.to_owned()),
                error,
            })?;
            answers.push((key, answer));
        }
        aborting.0.clear();
        Ok(answers)
    }

    /// Decides whether a failed request is sent again, and waits until then. Returns its error if not.
    async fn prepare_retry(
        &self,
        session: &Arc<Session>,
        method: &Method,
        params: Option<&Raw>,
        options: &RequestOptions,
        error: ClientError,
        attempt: &mut AttemptCounts,
    ) -> Result<(), ClientError> {
        if error.rpc().is_some_and(is_header_mismatch) && !attempt.refreshed {
            attempt.refreshed = true;
            let timeouts = options.timeouts.unwrap_or(self.settings.timeouts);
            self.refresh_tools(error, attempt.started, timeouts).await?;
            // The host has not seen the new definition.
            let tool = params.and_then(|params| params.member("name"));
            return match tool.as_ref().and_then(Raw::string_value) {
                Some(tool) => self.admit_call(&tool),
                None => Ok(()),
            };
        }
        let refuses_revision = error
            .rpc()
            .is_some_and(|error| error.code == ErrorCode::UNSUPPORTED_VERSION);
        let again = match &error {
            // The server was replaced since the connection was opened (2026-07-28, `basic/versioning`): a new
            // connection negotiates again, or reports that there is no common revision.
            _ if refuses_revision && session.revision().is_modern() => {
                self.handle_connection_loss(session, &error);
                attempt.sessions += 1;
                attempt.sessions <= MAX_SESSIONS_LOST
            }
            ClientError::SessionExpired => {
                // Only new requests use a new session: requests in flight may still be answered in the old one.
                self.handle_connection_loss(session, &error);
                attempt.sessions += 1;
                attempt.sessions <= MAX_SESSIONS_LOST
            }
            // Everything possible has already been tried.
            _ if error.kind() == ErrorKind::AuthorizationFailed => false,
            // The backlog would not be smaller a moment later.
            ClientError::TooMuchUnsent { .. } => false,
            _ if error.is_retry_safe() => attempt.count_attempt(&self.settings),
            ClientError::ConnectionLost { .. } | ClientError::ServerExited { .. } => {
                self.may_repeat(method, params, options.reissue)
                    && attempt.repeat()
                    && attempt.count_attempt(&self.settings)
            }
            _ => false,
        };
        if !again || self.is_closed() {
            return Err(as_rpc(error));
        }
        let delay = self.settings.reconnect.delay(attempt.sent, jitter());
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        Ok(())
    }

    /// Lists the tools again, within the timeouts of a call that began at `started`: one of its headers did not match
    /// the server's tool.
    async fn refresh_tools(
        &self,
        error: ClientError,
        started: Duration,
        timeouts: RequestTimeouts,
    ) -> Result<(), ClientError> {
        self.cache().remove_tools();
        self.tools().clear();
        let mut cursors = Cursors::new("tools/list");
        let mut cursor: Option<Raw> = None;
        loop {
            let params = cursor
                .as_ref()
                .map(|cursor| Raw::from_trusted(format!(r#"{{"cursor":{}}}"#, cursor.as_str())));
            let session = self.session().await?;
            let left = timeouts
                .total
                .saturating_sub(clock::now().saturating_sub(started));
            let options = RequestOptions {
                timeouts: Some(RequestTimeouts {
                    total: left,
                    ..timeouts
                }),
                ..RequestOptions::default()
            };
            let listing =
                self.request_once(&session, &Method::ToolsList, params.as_ref(), &options);
            let page = match listing.await {
                Ok(page) => page,
                Err(ClientError::RequestTimedOut { waited, in_all }) => {
                    let waited = if in_all { timeouts.total } else { waited };
                    return Err(ClientError::RequestTimedOut { waited, in_all });
                }
                Err(_) => return Err(as_rpc(error)),
            };
            self.check_result(&session, &Method::ToolsList, params.as_ref(), &page)?;
            let page = self.update_tool_catalog(page, started, timeouts).await?;
            cursor = page.member("nextCursor").filter(|cursor| !cursor.is_null());
            let text = cursor.as_ref().and_then(Raw::string_value);
            match cursors.follow(text.as_deref()) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(_) => return Err(as_rpc(error)),
            }
        }
    }

    /// Whether a request may be sent again although the server may have performed it.
    pub(super) fn may_repeat(
        &self,
        method: &Method,
        params: Option<&Raw>,
        reissue: Reissue,
    ) -> bool {
        match reissue {
            Reissue::Always => true,
            Reissue::Never => false,
            Reissue::IfSafe => match method.spec().map(|spec| spec.repeat) {
                Some(RetrySafety::Safe) => true,
                Some(RetrySafety::ByTool) if self.settings.trust_tool_annotations => {
                    let tool = params.and_then(|params| params.member("name"));
                    let tool = tool.as_ref().and_then(Raw::string_value);
                    tool.is_some_and(|tool| self.tools().is_repeatable(&tool))
                }
                _ => false,
            },
        }
    }
}

/// Counters of the attempts for one request.
#[derive(Debug)]
struct AttemptCounts {
    started: Duration,
    sent: u32,
    /// Number of repetitions although the server may have performed the request.
    repeated: u32,
    sessions: u32,
    refreshed: bool,
}

impl AttemptCounts {
    fn repeat(&mut self) -> bool {
        self.repeated += 1;
        self.repeated <= MAX_REPEATS
    }

    fn begun(started: Duration) -> Self {
        Self {
            started,
            sent: 0,
            repeated: 0,
            sessions: 0,
            refreshed: false,
        }
    }

    fn count_attempt(&mut self, settings: &ClientSettings) -> bool {
        self.sent += 1;
        self.sent <= settings.reconnect.attempts
    }
}

/// Aborts tasks on drop.
pub(super) struct AbortOnDrop(pub(super) Vec<background::AbortHandle>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// Waits for a future within the timeouts of a call that began at `started`.
async fn within<T>(
    future: impl Future<Output = T>,
    started: Duration,
    timeouts: RequestTimeouts,
) -> Result<T, ClientError> {
    let left = timeouts
        .total
        .saturating_sub(clock::now().saturating_sub(started));
    let in_all = left < timeouts.idle;
    let outcome = tokio::time::timeout(left.min(timeouts.idle), future).await;
    outcome.map_err(|_| ClientError::RequestTimedOut {
        waited: if in_all {
            timeouts.total
        } else {
            timeouts.idle
        },
        in_all,
    })
}

/// Whether results of this method are pages of a list.
fn is_list(method: &Method) -> bool {
    method.is(|spec| spec.is_list)
}

/// Whether a result of this method may contain input requests (2026-07-28, `basic/patterns/mrtr`, supported requests).
/// Results of custom methods may.
fn may_require_input(method: &Method, revision: Revision) -> bool {
    let is_retried = method.is_retried_with_input(revision);
    is_retried && (method.is_custom_in(revision) || method.is(|spec| spec.may_require_input))
}

/// Returns a JSON-RPC error in the body of an HTTP error status as the server's response.
fn as_rpc(error: ClientError) -> ClientError {
    match error {
        ClientError::Http {
            error: Some(error), ..
        } if error.code != ErrorCode::PARSE_ERROR => ClientError::Rpc(*error),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use mcpline_protocol::vocabulary::Tool;
    use serde_json::{Value, json};

    use super::*;
    use crate::server::{Context, Server, ToolOptions};

    #[runtimes::test]
    async fn the_future_of_a_request_stays_small() {
        let server = Server::new("test", "1");
        let client = super::super::Client::connect(&server)
            .await
            .expect("connects");
        let options = RequestOptions::new();
        let request = client.request("ping", None, &options);
        // Bindings move it three times per call. Without the boxes it was ten times as large.
        assert!(size_of_val(&request) < 1_000, "{}", size_of_val(&request));
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_another_tools_page_counts_toward_the_call_timeouts() {
        let server = Server::new("test", "1");
        let (tool, options) = (
            Tool::new("x", json!({"type": "object"})),
            ToolOptions::default(),
        );
        let added = server.add_tool_fn(tool, options, |_: Value, _: Context| async { "done" });
        added.expect("a tool");
        let client = super::super::Client::connect(&server)
            .await
            .expect("connects");
        let inner = &client.handle.inner;
        // Holds the lock as a call does while its large page is read.
        let learning = inner.learning.lock().await;
        for (idle, total) in [(5, 60), (60, 5)] {
            let options = RequestOptions {
                timeouts: Some(RequestTimeouts {
                    idle: Duration::from_secs(idle),
                    total: Duration::from_secs(total),
                }),
                ..RequestOptions::new()
            };
            let begun = tokio::time::Instant::now();
            let outcome = client.request("tools/list", None, &options).await;
            let Err(ClientError::RequestTimedOut { waited, in_all }) = outcome else {
                panic!("{outcome:?}");
            };
            assert_eq!((waited, in_all), (Duration::from_secs(5), total == 5));
            assert_eq!(begun.elapsed().as_secs(), 5);
        }
        drop(learning);
        let options = RequestOptions::new();
        let listed = client.request("tools/list", None, &options).await;
        listed.expect("a list");
    }
}
