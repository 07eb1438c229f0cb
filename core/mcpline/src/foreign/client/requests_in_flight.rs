//! Requests in flight by number, each of which ends exactly once.

use std::collections::HashMap;

use tokio::runtime::Handle;

use crate::background::{self, AbortHandle};
use crate::client::ClientError;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::outcome::{Cause, Outcome, OutcomeRecipient};

/// The cancellable requests in flight of one client.
#[derive(Default)]
pub struct RequestsInFlight {
    requests: Mutex<HashMap<u64, RequestPhase>>,
}

enum RequestPhase {
    /// Not started yet.
    Entered,
    Started(AbortHandle),
    /// It was ended; its task has not noticed yet.
    Ended(RequestEnd),
}

#[derive(Clone, Copy)]
enum RequestEnd {
    Cancelled,
    Closed,
}

impl std::fmt::Debug for RequestsInFlight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

/// Makes the span that is current here that of a request, if the core exports spans.
#[cfg(feature = "otlp")]
fn within_current_span<W: Future>(work: W) -> impl Future<Output = W::Output> {
    crate::span::SpanScope::current().run(work)
}

#[cfg(not(feature = "otlp"))]
fn within_current_span<W: Future>(work: W) -> W {
    work
}

/// Does the work of a request and settles its reply. If it is dropped, the work is dropped first, so that it is recorded before
/// the program gets the reply.
#[expect(
    clippy::manual_async_fn,
    reason = "an async function moves its arguments, which makes the task of each request larger"
)]
fn work_and_end<R: OutcomeRecipient>(
    work: impl Future<Output = Outcome> + Send + 'static,
    ending: ReplyGuard<R>,
) -> impl Future<Output = ()> + Send + 'static {
    async move {
        // A block drops what it uses in the order of the first use.
        let outcome = work.await;
        ending.end(outcome);
    }
}

impl RequestsInFlight {
    /// Returns a closure for the I/O thread that starts a request. From now on the request can be cancelled under its
    /// number; without a number it cannot be cancelled.
    ///
    /// The closure must run on the thread of a current-thread runtime. Closures that are passed on in order preserve
    /// the order of starting and cancelling.
    pub fn task<R: OutcomeRecipient>(
        self: &Arc<Self>,
        number: Option<u64>,
        reply: R,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) -> impl FnOnce() + Send + 'static {
        let ending = ReplyGuard {
            entry: number.map(|number| (self.clone(), number)),
            reply: Some(reply),
        };
        let work = within_current_span(work);
        move || {
            let entry = ending.entry.clone();
            let work = work_and_end(work, ending);
            let task = background::spawn_unboxed(&Handle::current(), work);
            if let Some((running, number)) = entry {
                // The task cannot end before it is entered, because this thread runs it.
                let started = RequestPhase::Started(task.abort_handle());
                running.lock().insert(number, started);
            }
        }
    }

    /// Enters a request for [`RequestsInFlight::start`]. It can be cancelled before that.
    pub fn enter(&self, number: u64) {
        self.lock().insert(number, RequestPhase::Entered);
    }

    /// Removes a request that will not be started.
    pub fn forget(&self, number: u64) {
        self.lock().remove(&number);
    }

    /// Starts an entered request, from any thread.
    pub fn start<R: OutcomeRecipient>(
        self: &Arc<Self>,
        runtime: &Handle,
        number: u64,
        reply: R,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) {
        let ending = ReplyGuard {
            entry: Some((self.clone(), number)),
            reply: Some(reply),
        };
        let work = work_and_end(within_current_span(work), ending);
        if !matches!(self.lock().get(&number), Some(RequestPhase::Entered)) {
            // It was ended before.
            return;
        }
        let task = background::spawn_unboxed(runtime, work);
        let task = task.abort_handle();
        if let Some(request @ RequestPhase::Entered) = self.lock().get_mut(&number) {
            *request = RequestPhase::Started(task);
            return;
        }
        // It was ended meanwhile, or has finished.
        task.abort();
    }

    /// Cancels a request: settles its reply and notifies the server. Returns `false` if it has ended or was cancelled
    /// before.
    pub fn cancel(&self, number: u64) -> bool {
        let ended = match self.lock().get_mut(&number) {
            Some(request) => request.end(RequestEnd::Cancelled),
            None => return false,
        };
        match ended {
            Some(RequestPhase::Started(task)) => task.abort(),
            Some(_) => {}
            None => return false,
        }
        true
    }

    /// Ends all requests: settles their replies with [`ClientError::Closed`].
    pub fn end_all(&self) {
        let ended: Vec<_> = {
            let mut requests = self.lock();
            let requests = requests.values_mut();
            requests
                .filter_map(|request| request.end(RequestEnd::Closed))
                .collect()
        };
        for request in ended {
            if let RequestPhase::Started(task) = request {
                task.abort();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, RequestPhase>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestPhase {
    /// Marks the request as ended. Returns `None` if it was before.
    fn end(&mut self, end: RequestEnd) -> Option<Self> {
        match self {
            Self::Ended(_) => None,
            running => Some(std::mem::replace(running, Self::Ended(end))),
        }
    }
}

/// Settles the reply of a request, at the latest on drop.
struct ReplyGuard<R: OutcomeRecipient> {
    entry: Option<(Arc<RequestsInFlight>, u64)>,
    reply: Option<R>,
}

impl<R: OutcomeRecipient> ReplyGuard<R> {
    fn end(mut self, outcome: Outcome) {
        self.settle(|| outcome);
    }

    fn settle(&mut self, outcome: impl FnOnce() -> Outcome) {
        let Some(reply) = self.reply.take() else {
            return;
        };
        let entry = self.entry.take();
        let entered = entry.and_then(|(running, number)| running.lock().remove(&number));
        // A request that was cancelled before this point counts as cancelled, whatever its outcome.
        reply.settle(match entered {
            Some(RequestPhase::Ended(RequestEnd::Cancelled)) => Outcome::of(Cause::Cancelled),
            Some(RequestPhase::Ended(RequestEnd::Closed)) => {
                Outcome::failed(ClientError::Closed, "")
            }
            _ => outcome(),
        });
    }
}

impl<R: OutcomeRecipient> Drop for ReplyGuard<R> {
    fn drop(&mut self) {
        self.settle(|| match std::thread::panicking() {
            true => Outcome::of(Cause::Defect),
            false => Outcome::failed(ClientError::Closed, ""),
        });
    }
}
