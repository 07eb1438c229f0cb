//! Where the calls of a Rust handler begin: on the thread that reads the client's messages, or, once the handler has blocked
//! it, on a thread for blocking work.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long a handler may run before it waits for the first time. Longer ones are felt: until then the client's other
/// messages are not read.
const MAX_FIRST_POLL: Duration = Duration::from_millis(50);

/// One call in this many is timed, the first included: reading the clock takes longer than a handler that returns at once.
/// A handler that blocks does so in most calls.
const TIMED_CALLS: u32 = 16;

/// So many calls in a row must be fast until the next ones begin on the reading thread again. A first call may have been slow
/// because it loaded something.
const FAST_CALLS: u32 = 16;

/// Decides it from the times of earlier calls.
#[derive(Debug, Default)]
pub(super) struct HandlerStart {
    /// Counts calls that begin on the reading thread, of which every [`TIMED_CALLS`]th is timed.
    calls: AtomicU32,
    /// How many more calls begin on another thread.
    elsewhere: AtomicU32,
}

impl HandlerStart {
    /// Whether the next call begins on a thread for blocking work.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.elsewhere.load(Ordering::Relaxed) > 0
    }

    /// Counts a call that begins on the reading thread. Returns whether to time it.
    pub(super) fn is_timed(&self) -> bool {
        self.calls
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(TIMED_CALLS)
    }

    /// Records how long a call ran before it waited for the first time. Returns whether that was too long.
    pub(super) fn record(&self, took: Duration) -> bool {
        if took >= MAX_FIRST_POLL {
            self.elsewhere.store(FAST_CALLS, Ordering::Relaxed);
            return true;
        }
        // Fails if it is 0.
        let _ = self
            .elsewhere
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |calls| {
                calls.checked_sub(1)
            });
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Duration = Duration::from_millis(49);

    #[test]
    fn the_first_call_and_every_sixteenth_is_timed() {
        let start = HandlerStart::default();
        let timed: Vec<u32> = (0..40).filter(|_| start.is_timed()).collect();
        assert_eq!(timed, [0, 16, 32]);
    }

    #[test]
    fn calls_begin_elsewhere_after_a_slow_one_until_enough_are_fast() {
        let start = HandlerStart::default();
        assert!(!start.record(FAST));
        assert!(!start.is_elsewhere());
        assert!(start.record(MAX_FIRST_POLL));
        for _ in 1..FAST_CALLS {
            assert!(start.is_elsewhere());
            assert!(!start.record(FAST));
        }
        assert!(start.record(MAX_FIRST_POLL));
        for _ in 0..FAST_CALLS {
            assert!(start.is_elsewhere());
            assert!(!start.record(FAST));
        }
        assert!(!start.is_elsewhere());
    }
}
