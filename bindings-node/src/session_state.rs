//! The state of sessions: the core's session has a number, by which JavaScript keeps a map until the session ends.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use crate::hub::{Event, Shared};

/// What the core keeps with a session.
#[derive(Default)]
pub(crate) struct SessionNumber(OnceLock<Registration>);

struct Registration {
    number: u32,
    hub: Arc<Shared>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.hub.post(Event::SessionEnded(self.number));
    }
}

impl SessionNumber {
    /// Returns the number, which is unique in this process. The end of the session is posted to `hub`.
    pub(crate) fn get(&self, hub: &Arc<Shared>) -> u32 {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let registration = self.0.get_or_init(|| Registration {
            number: LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
            hub: hub.clone(),
        });
        registration.number
    }
}
