//! Periodic pings of a client (2024-11-05 to 2025-11-25, `basic/utilities/ping`): when the next one is due. How long its
//! answer may take is the ping's own timeout among the [calls](super::OutgoingRequests).

use std::time::Duration;

use super::outgoing_requests::{CallKey, CallTimeouts};

/// How often a ping that does not reach the server is sent in its time, if not more often.
const MAX_PING_ATTEMPTS: u32 = 4;

/// How a client pings its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PingTimes {
    /// After how much silence of the server.
    pub interval: Duration,
    /// How long its answer may take.
    pub timeout: Duration,
}

impl PingTimes {
    pub(super) fn call_timeouts(self) -> CallTimeouts {
        CallTimeouts {
            idle: self.timeout,
            total: self.timeout,
        }
    }
}

/// The pings of one session.
#[derive(Debug)]
pub(super) struct Pings {
    pub(super) times: PingTimes,
    /// When the server last sent something, or a ping was last sent.
    last_activity: Duration,
    /// The latest ping, whether or not it has ended.
    pub(super) latest: Option<CallKey>,
    /// When it is sent again, if it did not reach the server.
    pub(super) resend_at: Option<Duration>,
}

impl Pings {
    pub(super) fn new(times: PingTimes, now: Duration) -> Self {
        Self {
            times,
            last_activity: now,
            latest: None,
            resend_at: None,
        }
    }

    /// The server sent something, whatever it is.
    pub(super) fn note_activity(&mut self, now: Duration) {
        self.last_activity = now;
        self.resend_at = None;
    }

    /// A ping is sent.
    pub(super) fn note_sent(&mut self, key: CallKey, now: Duration) {
        self.last_activity = now;
        self.latest = Some(key);
        self.resend_at = None;
    }

    /// The latest ping did not reach the server.
    pub(super) fn note_lost(&mut self, now: Duration) {
        let pause = self
            .times
            .interval
            .min(self.times.timeout / MAX_PING_ATTEMPTS);
        self.resend_at = Some(now.saturating_add(pause));
    }

    /// When the next one is due, unless one is in flight.
    pub(super) fn next_due(&self) -> Duration {
        self.last_activity.saturating_add(self.times.interval)
    }
}
