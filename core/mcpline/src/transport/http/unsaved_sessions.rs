//! Changes of sessions that the store did not take: this process tries again until it does, or until the sessions end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::background;

use super::sessions::{Session, Sessions};

/// The time between attempts. As long as the store fails, each attempt is for one session: little load for a store that has just
/// recovered. The client's changes at other processes soon meet those of this one.
const SAVE_RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Tries again to save the changes of sessions.
pub(super) struct UnsavedSessions {
    sessions: Weak<Sessions>,
    retries: Mutex<Retries>,
}

#[derive(Default)]
struct Retries {
    is_running: bool,
    /// Whether a session may have become unsaved since the latest attempt began.
    has_new: bool,
}

impl UnsavedSessions {
    pub(super) fn new(sessions: Weak<Sessions>) -> Self {
        Self {
            sessions,
            retries: Mutex::default(),
        }
    }

    /// Saves the changes of a session later, with those of other sessions.
    pub(super) fn save_later(&self, session: &Session) {
        let mut retries = self.lock();
        retries.has_new = true;
        if std::mem::replace(&mut retries.is_running, true) {
            return;
        }
        drop(retries);
        if let Some(sessions) = self.sessions.upgrade() {
            let running = RunningRetry(Some(self.sessions.clone()));
            background::spawn(sessions.runtime_of(session), retry(running));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Retries> {
        self.retries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sessions with unsaved changes; `None` if there are none, after which this does nothing until there are.
    fn begin_attempt(&self, sessions: &Sessions) -> Option<Vec<Arc<Session>>> {
        let mut retries = self.lock();
        let has_new = std::mem::take(&mut retries.has_new);
        let mut unsaved = sessions.all();
        unsaved.retain(|session| session.has_unsaved_changes());
        retries.is_running = has_new || !unsaved.is_empty();
        retries.is_running.then_some(unsaved)
    }
}

/// The task that tries again. It may end early, by a panic of the store or with its runtime: then the next session that is to be
/// saved starts another one.
struct RunningRetry(Option<Weak<Sessions>>);

impl RunningRetry {
    fn sessions(&self) -> Option<Arc<Sessions>> {
        self.0.as_ref()?.upgrade()
    }

    /// Notes that nothing was left to save, after which another task may run already.
    fn conclude(mut self) {
        self.0 = None;
    }
}

impl Drop for RunningRetry {
    fn drop(&mut self) {
        if let Some(sessions) = self.sessions()
            && let Some(replicas) = sessions.replicas()
        {
            replicas.unsaved.lock().is_running = false;
        }
    }
}

/// Saves the changes of all sessions, until none has any.
async fn retry(running: RunningRetry) {
    let mut attempts: usize = 0;
    loop {
        tokio::time::sleep(SAVE_RETRY_INTERVAL).await;
        let Some(sessions) = running.sessions() else {
            return;
        };
        let Some(replicas) = sessions.replicas() else {
            return;
        };
        let Some(mut unsaved) = replicas.unsaved.begin_attempt(&sessions) else {
            return running.conclude();
        };
        // A session that the store never takes does not keep others from being saved.
        if !unsaved.is_empty() {
            let first = attempts % unsaved.len();
            unsaved.rotate_left(first);
        }
        attempts = attempts.wrapping_add(1);
        for session in unsaved {
            if !replicas.save_again(&session).await {
                break;
            }
        }
    }
}
