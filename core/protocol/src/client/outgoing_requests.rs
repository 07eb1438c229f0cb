//! A client's requests in flight: each ends exactly once, by a response, a timeout, cancellation, or the end of the
//! connection.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::error::RpcError;
use crate::printable::Printable;
use crate::vocabulary::Progress;
use crate::wire::{Params, Raw, RequestId, encode, json_string};

/// Identifies a request in flight. It is also the request's JSON-RPC id and its progress token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OutgoingRequestId(u64);

impl OutgoingRequestId {
    /// The key of the request with this number.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The number, which is the request's id.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The request's JSON-RPC id.
    pub fn id(self) -> RequestId {
        RequestId::number(i64::try_from(self.0).unwrap_or(i64::MAX))
    }
}

/// How long a request waits for its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTimeouts {
    /// Time without progress; each progress notification restarts it (every revision, `basic/utilities/progress`).
    /// Default: 60 seconds.
    pub idle: Duration,
    /// Total time. Default: one hour.
    pub total: Duration,
}

impl Default for RequestTimeouts {
    /// A minute without progress, an hour in all.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(60),
            total: Duration::from_secs(3_600),
        }
    }
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OutgoingRequestError {
    /// The server returned an error.
    #[error("server returned an error: {0}")]
    Rpc(RpcError),
    /// No response arrived in time.
    #[error("no response within {} s{}", waited.as_secs_f64(), if *in_all { " in total (`total_timeout`)" } else { " without progress (`timeout`)" })]
    TimedOut {
        /// How long the client waited: since the last sign of life, or in total.
        waited: Duration,
        /// Whether the total timeout elapsed.
        in_all: bool,
    },
    /// The response cannot be read.
    #[error("cannot read the response: {}", Printable(.0))]
    Unreadable(String),
    /// The connection ended. It is unknown whether the server processed the request.
    #[error(
        "connection lost before the response arrived; the server may have performed the request"
    )]
    Closed,
}

/// The meaning of a message for a request in flight.
#[derive(Debug, PartialEq)]
pub enum OutgoingRequestEvent<H> {
    /// The request has ended.
    Ended(H, Result<Raw, OutgoingRequestError>),
    /// The request reported its progress.
    Progress(OutgoingRequestId, Progress),
    /// The message belongs to no request in flight; the text says why, for a log.
    Ignored(&'static str),
}

/// A request that timed out: complete its handle with the error, and send the cancellation to the server.
#[derive(Debug, PartialEq)]
pub struct TimedOutRequest<H> {
    /// The driver's handle.
    pub handle: H,
    /// The error for the handle.
    pub error: OutgoingRequestError,
    /// `notifications/cancelled`, for transports that carry it; over HTTP on 2026-07-28 the request's stream is
    /// closed instead (`basic/patterns/cancellation`).
    pub cancellation: Vec<u8>,
}

/// The requests of one connection in flight. `H` is the driver's handle for the caller that waits for the response.
#[derive(Debug)]
pub struct OutgoingRequests<H> {
    next: u64,
    entries: BTreeMap<OutgoingRequestId, OutgoingRequest<H>>,
    /// Deadlines in order: the next one is needed with every request, however many are in flight.
    deadlines: BTreeSet<(Duration, OutgoingRequestId)>,
}

#[derive(Debug)]
struct OutgoingRequest<H> {
    handle: H,
    timeouts: RequestTimeouts,
    idle_deadline: Duration,
    total_deadline: Duration,
    /// Whether its timeouts are paused, because it waits for something other than the server.
    is_paused: bool,
    /// Whether the caller wants progress, so that the request carried a token.
    wants_progress: bool,
    last_progress: Option<f64>,
}

impl<H> OutgoingRequest<H> {
    fn deadline(&self) -> Duration {
        match self.is_paused {
            true => Duration::MAX,
            false => self.idle_deadline.min(self.total_deadline),
        }
    }
}

impl<H> OutgoingRequests<H> {
    /// Starts without requests; ids begin with `first`, the first one that the [negotiation](super::Negotiation) has
    /// not used.
    pub fn new(first: u64) -> Self {
        Self {
            next: first,
            entries: BTreeMap::new(),
            deadlines: BTreeSet::new(),
        }
    }

    /// The number of requests in flight.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no request is in flight.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a request. Only with `wants_progress` may the request carry a progress token (`_meta.progressToken`): the
    /// [id](OutgoingRequestId::id) of the key.
    pub fn begin(
        &mut self,
        handle: H,
        timeouts: RequestTimeouts,
        wants_progress: bool,
        now: Duration,
    ) -> OutgoingRequestId {
        let key = OutgoingRequestId(self.next);
        self.next += 1;
        let entry = OutgoingRequest {
            handle,
            timeouts,
            idle_deadline: now.saturating_add(timeouts.idle),
            total_deadline: now.saturating_add(timeouts.total),
            is_paused: false,
            wants_progress,
            last_progress: None,
        };
        self.schedule(key, entry.deadline());
        self.entries.insert(key, entry);
        key
    }

    /// Processes a response.
    pub fn receive_response(
        &mut self,
        id: Option<&RequestId>,
        outcome: Result<Raw, RpcError>,
    ) -> OutgoingRequestEvent<H> {
        let Some(id) = id else {
            return OutgoingRequestEvent::Ignored("a response without an id");
        };
        match self.key_of(id).and_then(|key| self.take(key)) {
            Some(entry) => OutgoingRequestEvent::Ended(
                entry.handle,
                outcome.map_err(OutgoingRequestError::Rpc),
            ),
            // Cancelled or timed out in the meantime, already answered, or never sent.
            None => OutgoingRequestEvent::Ignored("a response to no request in flight"),
        }
    }

    /// Processes a response that cannot be read.
    pub fn receive_unreadable_response(
        &mut self,
        id: &RequestId,
        why: &str,
    ) -> OutgoingRequestEvent<H> {
        match self.key_of(id).and_then(|key| self.take(key)) {
            Some(entry) => OutgoingRequestEvent::Ended(
                entry.handle,
                Err(OutgoingRequestError::Unreadable(why.to_owned())),
            ),
            None => OutgoingRequestEvent::Ignored("a response to no request in flight"),
        }
    }

    /// Pauses the timeouts of a request until [`resume_timeout`](Self::resume_timeout), while something other than the
    /// server is awaited, such as the user's consent.
    pub fn pause_timeout(&mut self, key: OutgoingRequestId) {
        self.change(key, |entry| entry.is_paused = true);
    }

    /// Restarts the timeouts of a paused request with their full length.
    pub fn resume_timeout(&mut self, key: OutgoingRequestId, now: Duration) {
        self.change(key, |entry| {
            if std::mem::take(&mut entry.is_paused) {
                entry.idle_deadline = now.saturating_add(entry.timeouts.idle);
                entry.total_deadline = now.saturating_add(entry.timeouts.total);
            }
        });
    }

    /// The driver's handle of a request in flight.
    pub fn get(&self, key: OutgoingRequestId) -> Option<&H> {
        self.entries.get(&key).map(|entry| &entry.handle)
    }

    /// Removes a request that can't get a response any more.
    pub fn remove(&mut self, key: OutgoingRequestId) -> Option<H> {
        self.take(key).map(|entry| entry.handle)
    }

    /// Processes `notifications/progress`. Progress that doesn't increase is ignored, and so is progress of a request
    /// that has ended.
    pub fn receive_progress(
        &mut self,
        params: Option<&Params>,
        now: Duration,
    ) -> OutgoingRequestEvent<H> {
        let Some(progress) = params.and_then(|params| params.raw().decode::<Progress>().ok())
        else {
            return OutgoingRequestEvent::Ignored("progress that can't be read");
        };
        let Some(key) = self.key_of(&progress.progress_token) else {
            return OutgoingRequestEvent::Ignored("progress of no request in flight");
        };
        let Some(entry) = self
            .entries
            .get_mut(&key)
            .filter(|entry| entry.wants_progress)
        else {
            return OutgoingRequestEvent::Ignored("progress without a listener");
        };
        if entry
            .last_progress
            .is_some_and(|last| progress.progress <= last)
        {
            return OutgoingRequestEvent::Ignored("progress that does not increase");
        }
        entry.last_progress = Some(progress.progress);
        self.change(key, |entry| {
            entry.idle_deadline = now.saturating_add(entry.timeouts.idle);
        });
        OutgoingRequestEvent::Progress(key, progress)
    }

    /// Adds a request that did not reach the server again, with its remaining time, and returns its new key.
    pub(super) fn requeue(&mut self, key: OutgoingRequestId) -> Option<OutgoingRequestId> {
        let entry = self.take(key)?;
        let (key, deadline) = (OutgoingRequestId(self.next), entry.deadline());
        self.next += 1;
        self.entries.insert(key, entry);
        self.schedule(key, deadline);
        Some(key)
    }

    /// Cancels a request. Returns the driver's handle and the cancellation to send; `None` if the request has ended.
    pub fn cancel(&mut self, key: OutgoingRequestId, reason: &str) -> Option<(H, Vec<u8>)> {
        let entry = self.take(key)?;
        Some((entry.handle, cancellation(key, reason)))
    }

    /// Ends all requests because the connection has ended.
    pub fn close(&mut self) -> impl Iterator<Item = (H, OutgoingRequestError)> + use<H> {
        self.deadlines.clear();
        std::mem::take(&mut self.entries)
            .into_values()
            .map(|entry| (entry.handle, OutgoingRequestError::Closed))
    }

    /// When to call [`OutgoingRequests::handle_timeout`].
    pub fn poll_deadline(&self) -> Option<Duration> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Ends the requests that timed out.
    pub fn handle_timeout(
        &mut self,
        now: Duration,
    ) -> Vec<(OutgoingRequestId, TimedOutRequest<H>)> {
        let late = self.deadlines.iter().take_while(|(at, _)| *at <= now);
        let mut late: Vec<OutgoingRequestId> = late.map(|(_, key)| *key).collect();
        // In the order in which they were sent.
        late.sort_unstable();
        late.into_iter()
            .filter_map(|key| {
                let entry = self.take(key)?;
                let in_all = entry.total_deadline <= now;
                let waited = if in_all {
                    entry.timeouts.total
                } else {
                    entry.timeouts.idle
                };
                let overdue = TimedOutRequest {
                    handle: entry.handle,
                    error: OutgoingRequestError::TimedOut { waited, in_all },
                    cancellation: cancellation(key, "timed out"),
                };
                Some((key, overdue))
            })
            .collect()
    }

    fn schedule(&mut self, key: OutgoingRequestId, deadline: Duration) {
        if deadline != Duration::MAX {
            self.deadlines.insert((deadline, key));
        }
    }

    /// Changes a request in flight, and updates its deadline.
    fn change(&mut self, key: OutgoingRequestId, change: impl FnOnce(&mut OutgoingRequest<H>)) {
        if let Some(entry) = self.entries.get_mut(&key) {
            self.deadlines.remove(&(entry.deadline(), key));
            change(entry);
            let deadline = entry.deadline();
            self.schedule(key, deadline);
        }
    }

    fn take(&mut self, key: OutgoingRequestId) -> Option<OutgoingRequest<H>> {
        let entry = self.entries.remove(&key)?;
        self.deadlines.remove(&(entry.deadline(), key));
        Some(entry)
    }

    pub(super) fn key_of(&self, id: &RequestId) -> Option<OutgoingRequestId> {
        let number = u64::try_from(id.as_integer()?).ok()?;
        Some(OutgoingRequestId(number)).filter(|key| self.entries.contains_key(key))
    }
}

fn cancellation(key: OutgoingRequestId, reason: &str) -> Vec<u8> {
    let mut params = format!("{{\"requestId\":{},\"reason\":", key.0).into_bytes();
    json_string(&mut params, reason);
    params.push(b'}');
    let mut message = Vec::new();
    encode::notification(&mut message, "notifications/cancelled", Some(&params));
    message
}
