//! Periodic pings of a client (2024-11-05 to 2025-11-25, `basic/utilities/ping`): when the next one is due. How long its
//! answer may take is the ping's own timeout among the [calls](super::Calls).

use std::time::Duration;

use super::calls::{CallKey, CallTimeouts};

/// How often a ping that does not reach the server is sent in its time, if not more often.
const ATTEMPTS: u32 = 4;

/// How a client pings its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PingTimes {
    /// After how much silence of the server.
    pub interval: Duration,
    /// How long its answer may take.
    pub timeout: Duration,
}

impl PingTimes {
    pub(super) fn call(self) -> CallTimeouts {
        CallTimeouts {
            idle: self.timeout,
            total: self.timeout,
        }
    }
}

/// The pings of one conversation.
#[derive(Debug)]
pub(super) struct Pings {
    pub(super) times: PingTimes,
    /// When the server was heard, or a ping sent, the last time.
    since: Duration,
    /// The latest ping, whether or not it has ended.
    pub(super) latest: Option<CallKey>,
    /// When it is sent again, if it did not reach the server.
    pub(super) again: Option<Duration>,
}

impl Pings {
    pub(super) fn new(times: PingTimes, now: Duration) -> Self {
        Self {
            times,
            since: now,
            latest: None,
            again: None,
        }
    }

    /// The server sent something, whatever it is.
    pub(super) fn heard(&mut self, now: Duration) {
        self.since = now;
        self.again = None;
    }

    /// A ping is sent.
    pub(super) fn sent(&mut self, key: CallKey, now: Duration) {
        self.since = now;
        self.latest = Some(key);
        self.again = None;
    }

    /// The latest ping did not reach the server.
    pub(super) fn missed(&mut self, now: Duration) {
        let pause = self.times.interval.min(self.times.timeout / ATTEMPTS);
        self.again = Some(now.saturating_add(pause));
    }

    /// When the next one is due, unless one is in flight.
    pub(super) fn due(&self) -> Duration {
        self.since.saturating_add(self.times.interval)
    }
}
