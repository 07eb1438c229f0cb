//! What the session store failed to do: this process tries again to save changes of sessions, until the store takes them or the
//! sessions end, and to remove sessions that have ended.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::background;

use super::replicas::Replicas;
use super::sessions::{Session, Sessions};

/// The time between attempts. As long as the store fails, each attempt is for one session to remove and one to save: little load
/// for a store that has just recovered. The client's changes at other processes soon meet those of this one.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Tries again to save the changes of sessions, and to remove sessions.
pub(super) struct StoreRetries {
    sessions: Weak<Sessions>,
    retries: Mutex<Retries>,
}

#[derive(Default)]
struct Retries {
    is_running: bool,
    /// Whether the store may have failed since the latest attempt began.
    has_new: bool,
}

/// What is left to do.
struct Unfinished {
    /// The keys of ended sessions, with the numbers of their removals.
    unremoved: Vec<(Arc<str>, u64)>,
    unsaved: Vec<Arc<Session>>,
}

impl StoreRetries {
    pub(super) fn new(sessions: Weak<Sessions>) -> Self {
        Self {
            sessions,
            retries: Mutex::default(),
        }
    }

    /// Saves the changes of a session later, with those of other sessions.
    pub(super) fn save_later(&self, session: &Session) {
        if let Some(sessions) = self.sessions.upgrade() {
            self.begin(sessions.runtime_of(session));
        }
    }

    /// Tries again later, in a task of this runtime unless one is running.
    pub(super) fn begin(&self, runtime: &Handle) {
        let mut retries = self.lock();
        retries.has_new = true;
        if std::mem::replace(&mut retries.is_running, true) {
            return;
        }
        drop(retries);
        let running = RunningRetry(Some(self.sessions.clone()));
        background::spawn(runtime, retry(running));
    }

    fn lock(&self) -> MutexGuard<'_, Retries> {
        self.retries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is left to do; `None` if nothing is, after which this does nothing until there is.
    fn begin_attempt(&self, sessions: &Sessions, replicas: &Replicas) -> Option<Unfinished> {
        let mut retries = self.lock();
        let has_new = std::mem::take(&mut retries.has_new);
        let mut unsaved = sessions.all();
        unsaved.retain(|session| session.has_unsaved_changes());
        let unremoved = replicas.unremoved.failed();
        retries.is_running = has_new || !unsaved.is_empty() || !unremoved.is_empty();
        retries
            .is_running
            .then_some(Unfinished { unremoved, unsaved })
    }
}

/// The task that tries again. It may end early, by a panic of the store or with its runtime: then the next session that is to be
/// saved or removed starts another one.
struct RunningRetry(Option<Weak<Sessions>>);

impl RunningRetry {
    fn sessions(&self) -> Option<Arc<Sessions>> {
        self.0.as_ref()?.upgrade()
    }

    /// Notes that nothing was left to do, after which another task may run already.
    fn conclude(mut self) {
        self.0 = None;
    }
}

impl Drop for RunningRetry {
    fn drop(&mut self) {
        if let Some(sessions) = self.sessions()
            && let Some(replicas) = sessions.replicas()
        {
            replicas.retries.lock().is_running = false;
        }
    }
}

/// Removes sessions and saves the changes of all others, until nothing is left to do.
async fn retry(running: RunningRetry) {
    let mut attempts: usize = 0;
    loop {
        tokio::time::sleep(RETRY_INTERVAL).await;
        let Some(sessions) = running.sessions() else {
            return;
        };
        let Some(replicas) = sessions.replicas() else {
            return;
        };
        let Some(mut left) = replicas.retries.begin_attempt(&sessions, replicas) else {
            return running.conclude();
        };
        rotate(&mut left.unremoved, attempts);
        rotate(&mut left.unsaved, attempts);
        attempts = attempts.wrapping_add(1);
        for (key, number) in left.unremoved {
            if !replicas.remove_again(&key, number).await {
                break;
            }
        }
        for session in left.unsaved {
            if !replicas.save_again(&session).await {
                break;
            }
        }
    }
}

/// Begins with another one at each attempt: one for which the store always fails does not keep it from others.
fn rotate<T>(left: &mut [T], attempts: usize) {
    if !left.is_empty() {
        left.rotate_left(attempts % left.len());
    }
}
