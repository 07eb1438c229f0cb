//! Requests in flight, by their numbers: each ends exactly once.

use std::collections::HashMap;

use tokio::runtime::Handle;

use crate::background::{self, AbortHandle};
use crate::client::ClientError;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::outcome::{Cause, Outcome, Reply};

/// The requests in flight of one client that can be cancelled.
#[derive(Default)]
pub struct Running {
    requests: Mutex<HashMap<u64, RequestPhase>>,
}

enum RequestPhase {
    /// Not started yet.
    Entered,
    Started(AbortHandle),
    /// Was ended; its task has yet to notice.
    Ended(RequestEnd),
}

#[derive(Clone, Copy)]
enum RequestEnd {
    Cancelled,
    Closed,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

impl Running {
    /// Returns what the I/O thread has to run to start a request. Under its number the request can be cancelled from then on;
    /// without one it can't be.
    ///
    /// The closure must run on the thread of a current-thread runtime. Closures that are handed over in order keep the order
    /// of starting and cancelling.
    pub fn task<R: Reply>(
        self: &Arc<Self>,
        number: Option<u64>,
        reply: R,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) -> impl FnOnce() + Send + 'static {
        let ending = ReplyGuard {
            entry: number.map(|number| (self.clone(), number)),
            reply: Some(reply),
        };
        move || {
            let entry = ending.entry.clone();
            let work = async move { ending.end(work.await) };
            let task = background::spawn_unboxed(&Handle::current(), work);
            if let Some((running, number)) = entry {
                // The task can't end before it is entered: this thread runs it.
                let started = RequestPhase::Started(task.abort_handle());
                running.lock().insert(number, started);
            }
        }
    }

    /// Enters a request that [`Running::start`] starts. It can be cancelled before that.
    pub fn enter(&self, number: u64) {
        self.lock().insert(number, RequestPhase::Entered);
    }

    /// Removes a request that is not started after all.
    pub fn forget(&self, number: u64) {
        self.lock().remove(&number);
    }

    /// Starts a request that was entered, from any thread.
    pub fn start<R: Reply>(
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
        if !matches!(self.lock().get(&number), Some(RequestPhase::Entered)) {
            // It was ended before.
            return;
        }
        let task = background::spawn_unboxed(runtime, async move { ending.end(work.await) });
        let task = task.abort_handle();
        if let Some(request @ RequestPhase::Entered) = self.lock().get_mut(&number) {
            *request = RequestPhase::Started(task);
            return;
        }
        // It was ended meanwhile, or has ended.
        task.abort();
    }

    /// Cancels a request: its reply is settled, and the server is notified. `false` if it has ended, or been cancelled.
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

    /// Ends all requests: their replies are settled with [`ClientError::Closed`].
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
    /// Marks it as ended. `None` if it was before.
    fn end(&mut self, end: RequestEnd) -> Option<Self> {
        match self {
            Self::Ended(_) => None,
            running => Some(std::mem::replace(running, Self::Ended(end))),
        }
    }
}

/// Settles the reply of a request, at the latest when it is dropped.
struct ReplyGuard<R: Reply> {
    entry: Option<(Arc<Running>, u64)>,
    reply: Option<R>,
}

impl<R: Reply> ReplyGuard<R> {
    fn end(mut self, outcome: Outcome) {
        self.settle(|| outcome);
    }

    fn settle(&mut self, outcome: impl FnOnce() -> Outcome) {
        let Some(reply) = self.reply.take() else {
            return;
        };
        let entry = self.entry.take();
        let entered = entry.and_then(|(running, number)| running.lock().remove(&number));
        // A request that was cancelled before this moment was cancelled, whatever has become of it.
        reply.settle(match entered {
            Some(RequestPhase::Ended(RequestEnd::Cancelled)) => Outcome::of(Cause::Cancelled),
            Some(RequestPhase::Ended(RequestEnd::Closed)) => {
                Outcome::failed(ClientError::Closed, "")
            }
            _ => outcome(),
        });
    }
}

impl<R: Reply> Drop for ReplyGuard<R> {
    fn drop(&mut self) {
        self.settle(|| match std::thread::panicking() {
            true => Outcome::of(Cause::Defect),
            false => Outcome::failed(ClientError::Closed, ""),
        });
    }
}
