//! Requests to foreign code: how many, how long.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::quota::ClientQuota;
use crate::server::{
    Handler, HandlerError, Inner, RunningSharingCall, Server, start_sharing_function,
};
use crate::sharing::{SharingError, SharingReply, SharingRequest};

use super::SharingFunctions;
use super::limits::{MAX_REASON_BYTES, MAX_RUNNING_READS, MAX_RUNNING_SESSION_REQUESTS};

/// Sends requests to the functions of one shared state.
pub(super) struct Requests {
    functions: SharingFunctions,
    timeout: Duration,
    /// For each part, so that one that does not answer leaves the others room. The queues of events and messages limit theirs.
    sessions: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    /// The server whose executors run the functions.
    server: OnceLock<(Weak<Inner>, Arc<ClientQuota>)>,
}

/// A number of things, and their bytes, that may not exceed a limit.
pub(super) struct BoundedCount {
    used: Mutex<(usize, usize)>,
    limit: (usize, usize),
}

/// Counts a thing until it is dropped.
pub(super) struct CountGuard {
    counted: Arc<BoundedCount>,
    bytes: usize,
}

impl Requests {
    pub(super) fn new(functions: SharingFunctions, timeout: Duration) -> Self {
        Self {
            functions,
            timeout,
            sessions: Arc::new(Semaphore::new(MAX_RUNNING_SESSION_REQUESTS)),
            reads: Arc::new(Semaphore::new(MAX_RUNNING_READS)),
            server: OnceLock::new(),
        }
    }

    /// Returns the same for a forked process: none of its parent's functions run in it.
    pub(super) fn forked(&self) -> Self {
        Self {
            server: self.server.clone(),
            ..Self::new(self.functions.clone(), self.timeout)
        }
    }

    /// Returns the timeout of a request.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sets the server, once.
    pub(super) fn set_server(&self, server: &Server) {
        let inner = server.inner();
        // Each server has its own shared state.
        let _ = self
            .server
            .set((Arc::downgrade(inner), inner.clients().sole_client()));
    }

    /// Sends a request and waits for its answer. `held` is dropped when the function has returned, which may be after the
    /// timeout.
    ///
    /// # Errors
    ///
    /// The function has failed, or did not answer in time.
    pub(super) async fn send(
        &self,
        request: SharingRequest,
        held: impl Any + Send,
    ) -> Result<SharingReply, SharingError> {
        let name = request.name();
        let answered = async {
            let permits = match request {
                SharingRequest::Save { .. }
                | SharingRequest::Load { .. }
                | SharingRequest::Remove { .. } => Some(&self.sessions),
                SharingRequest::Read { .. } => Some(&self.reads),
                _ => None,
            };
            let permit = match permits {
                // The semaphore is never closed.
                Some(permits) => permits.clone().acquire_owned().await.ok(),
                None => None,
            };
            let mut call = self.start(request, (permit, held))?;
            let outcome = call.outcome().await;
            outcome.map_err(|error| failed(name, &error))
        };
        let answered = tokio::time::timeout(self.timeout, answered).await;
        answered.unwrap_or_else(|_| Err(self.timed_out(name)))
    }

    /// Calls the function of a request. `held` is dropped when it has returned.
    pub(super) fn start(
        &self,
        request: SharingRequest,
        held: impl Any + Send,
    ) -> Result<RunningSharingCall, SharingError> {
        let server = self.server.get();
        let server = server.and_then(|(server, client)| Some((server.upgrade()?, client.clone())));
        let Some((server, client)) = server else {
            let name = request.name();
            return Err(SharingError::new(format!("{name}: the server has ended")));
        };
        let handler = self.functions.of(&request).clone();
        Ok(start_sharing_function(
            &server, client, handler, request, held,
        ))
    }

    /// The error of a request without an answer in time.
    pub(super) fn timed_out(&self, name: &str) -> SharingError {
        SharingError::new(format!(
            "{name}: no answer within {} s (`timeout`)",
            self.timeout.as_secs_f64()
        ))
    }
}

impl SharingFunctions {
    fn of(&self, request: &SharingRequest) -> &Arc<dyn Handler> {
        match request {
            SharingRequest::Save { .. } => &self.save,
            SharingRequest::Load { .. } => &self.load,
            SharingRequest::Remove { .. } => &self.remove,
            SharingRequest::Append { .. } => &self.append,
            SharingRequest::End { .. } => &self.end,
            SharingRequest::Read { .. } => &self.read,
            SharingRequest::Publish { .. } => &self.publish,
            SharingRequest::Subscribe { .. } => &self.subscribe,
            SharingRequest::Unsubscribe => &self.unsubscribe,
        }
    }
}

/// The error of a function.
pub(super) fn failed(name: &str, error: &HandlerError) -> SharingError {
    let reason = error.to_string();
    SharingError::new(format!("{name}: {}", reason_excerpt(&reason)))
}

/// The error of a reply that belongs to another method.
pub(super) fn wrong_reply(name: &str) -> SharingError {
    SharingError::new(format!(
        "{name}: the function returned the result of another function"
    ))
}

/// Returns the beginning of the text of an error.
fn reason_excerpt(reason: &str) -> &str {
    if reason.len() <= MAX_REASON_BYTES {
        return reason;
    }
    let end = (0..=MAX_REASON_BYTES)
        .rev()
        .find(|end| reason.is_char_boundary(*end));
    &reason[..end.unwrap_or_default()]
}

impl BoundedCount {
    pub(super) fn new(limit: (usize, usize)) -> Self {
        Self {
            used: Mutex::default(),
            limit,
        }
    }

    /// Counts a thing with this number of bytes; `None` above the limit.
    pub(super) fn count(self: &Arc<Self>, bytes: usize) -> Option<CountGuard> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let next = (used.0 + 1, used.1.saturating_add(bytes));
        if next.0 > self.limit.0 || (next.1 > self.limit.1 && used.0 > 0) {
            return None;
        }
        *used = next;
        Some(CountGuard {
            counted: self.clone(),
            bytes,
        })
    }
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        let mut used = self
            .counted
            .used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        used.0 -= 1;
        used.1 -= self.bytes;
    }
}
