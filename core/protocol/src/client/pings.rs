//! Periodic pings of a client (2024-11-05 to 2025-11-25, `basic/utilities/ping`): when the next one is due. Waiting for
//! the response is subject to the ping's own timeout among the [calls](super::OutgoingRequests).

use std::time::Duration;

use super::outgoing_requests::{OutgoingRequestId, RequestTimeouts};

/// The largest number of attempts to send a ping that does not reach the server, within its timeout.
const MAX_PING_ATTEMPTS: u32 = 4;

/// How a client pings its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PingTimes {
    /// How long the server may be silent before a ping.
    pub interval: Duration,
    /// The timeout of a ping.
    pub timeout: Duration,
}

impl PingTimes {
    pub(super) fn call_timeouts(self) -> RequestTimeouts {
        RequestTimeouts {
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
    pub(super) latest: Option<OutgoingRequestId>,
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

    /// Records that the server sent something.
    pub(super) fn note_activity(&mut self, now: Duration) {
        self.last_activity = now;
        self.resend_at = None;
    }

    /// Records that a ping was sent.
    pub(super) fn note_sent(&mut self, key: OutgoingRequestId, now: Duration) {
        self.last_activity = now;
        self.latest = Some(key);
        self.resend_at = None;
    }

    /// Records that the latest ping did not reach the server.
    pub(super) fn note_lost(&mut self, now: Duration) {
        let pause = self
            .times
            .interval
            .min(self.times.timeout / MAX_PING_ATTEMPTS);
        self.resend_at = Some(now.saturating_add(pause));
    }

    /// When the next ping is due, unless one is in flight.
    pub(super) fn next_due(&self) -> Duration {
        self.last_activity.saturating_add(self.times.interval)
    }
}
