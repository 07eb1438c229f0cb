//! What a host gives along with a callback, and what releases it.

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

/// A host's data. Released with the last that holds it, or by [`UserData::finish`].
pub(crate) struct UserData {
    user: *mut c_void,
    finalize: Mutex<mcpl_finalizer>,
    /// Who releases it at the latest, and for which peer.
    owner: OnceLock<(Arc<CallbackTracker>, PeerId)>,
}

// SAFETY: the header says that data given along with callbacks must be usable from any thread.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

/// A pointer of the host's and what releases it, on their way to another thread.
struct Release(*mut c_void, unsafe extern "C" fn(*mut c_void));

// SAFETY: as for `UserData`.
unsafe impl Send for Release {}

impl Release {
    fn run(self) {
        // SAFETY: the host gave both together, and nothing uses the pointer any more.
        unsafe { (self.1)(self.0) }
    }
}

impl UserData {
    /// Of nobody yet: made before anything is checked, so that it is released however that ends.
    pub(crate) fn new(user: *mut c_void, finalize: mcpl_finalizer) -> Arc<Self> {
        Arc::new(Self {
            user,
            finalize: Mutex::new(finalize),
            owner: OnceLock::new(),
        })
    }

    /// The pointer that callbacks get. Only while the owner's gate is held open.
    pub(crate) fn pointer(&self) -> *mut c_void {
        self.user
    }

    /// From now on of this owner, who releases it when it closes at the latest, and of this peer's callbacks. Returns whether there
    /// is anything to release.
    pub(crate) fn belong(&self, owner: &Arc<CallbackTracker>, peer: PeerId) -> bool {
        // Set once: data is registered once.
        let _ = self.owner.set((owner.clone(), peer));
        self.lock().is_some()
    }

    /// Releases it, here and now, unless it has been.
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
            // Foreign code has no place on the I/O thread unless it asked for one.
            Some((owner, peer)) if is_io_thread() => {
                let place = owner.clone();
                let releasing = move || owner.release(|| release.run());
                place.run_for(peer, Job::Run(Box::new(releasing)));
            }
            Some((owner, _)) => owner.release(|| release.run()),
            None => release.run(),
        }
    }
}
