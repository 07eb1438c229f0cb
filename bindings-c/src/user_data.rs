//! The `user` pointer of a callback, and the finalizer that releases it.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mcpline::foreign::PeerId;

use crate::callback_tracker::CallbackTracker;
use crate::executor::{Job, is_io_thread};

/// Releases the `user` pointer of a callback.
///
/// Called exactly once, when no callback that receives the pointer is running or will run again, also if the function
/// that was to register the callback fails. It runs where callbacks run, or on the thread of the function that ended
/// the registration.
///
/// It may call every function. As within a callback, those that wait for the end of the same server or client return
/// `MCPL_WOULD_DEADLOCK`, and `mcpl_server_free` and `mcpl_client_free` close it in the background.
pub type mcpl_finalizer = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// A `user` pointer and its finalizer. Released when the last reference is dropped, or by [`UserData::finish`].
pub(crate) struct UserData {
    user: *mut c_void,
    finalize: Mutex<mcpl_finalizer>,
    /// The owner that releases it at the latest, and the peer whose callbacks use it.
    owner: OnceLock<(Arc<CallbackTracker>, PeerId)>,
}

// SAFETY: the header requires that user data may be used from any thread.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

/// A pointer and its finalizer on the way to another thread.
struct Release(*mut c_void, unsafe extern "C" fn(*mut c_void));

// SAFETY: as for `UserData`.
unsafe impl Send for Release {}

impl Release {
    fn run(self) {
        // SAFETY: the host passed both together, and no callback uses the pointer any more.
        unsafe { (self.1)(self.0) }
    }
}

impl UserData {
    /// Takes the data before any argument is checked, so that it is released whatever the outcome. It has no owner yet.
    pub(crate) fn new(user: *mut c_void, finalize: mcpl_finalizer) -> Arc<Self> {
        Arc::new(Self {
            user,
            finalize: Mutex::new(finalize),
            owner: OnceLock::new(),
        })
    }

    /// Returns the pointer for callbacks. Use it only while a
    /// [`RunningCallback`](crate::callback_tracker::RunningCallback) of the owner exists.
    pub(crate) fn pointer(&self) -> *mut c_void {
        self.user
    }

    /// Assigns the data to an owner, which releases it when it closes at the latest, and to a peer. Returns whether
    /// there is anything to release.
    pub(crate) fn set_owner(&self, owner: &Arc<CallbackTracker>, peer: PeerId) -> bool {
        // Data is registered once, so this is set once.
        let _ = self.owner.set((owner.clone(), peer));
        self.lock().is_some()
    }

    /// Runs the finalizer on this thread, unless it has run.
    pub(crate) fn finish(&self) {
        let finalize = self.lock().take();
        if let Some(finalize) = finalize {
            let release = Release(self.user, finalize);
            match self.owner.get() {
                Some((owner, _)) => owner.release(|| release.run()),
                None => release.run(),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, mcpl_finalizer> {
        self.finalize.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UserData {
    fn drop(&mut self) {
        let Some(finalize) = self.lock().take() else {
            return;
        };
        let release = Release(self.user, finalize);
        match self.owner.take() {
            // Finalizers do not run on the I/O thread: they may block it.
            Some((owner, peer)) if is_io_thread() => {
                let place = owner.clone();
                let releasing = move || owner.release(|| release.run());
                place.enqueue_for_peer(peer, Job::Run(Box::new(releasing)));
            }
            Some((owner, _)) => owner.release(|| release.run()),
            None => release.run(),
        }
    }
}
