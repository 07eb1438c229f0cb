//! Deadlines of a session: requests to the client, rate-limited messages, pings.

use std::time::Duration;

use crate::wire::{RequestId, encode};

use super::server::{Outgoing, ServerSession, TimeoutEvent};
use super::server_requests::{InputRequestError, ServerRequestKey};
use super::writing::cancellation;

impl<C, A> ServerSession<C, A> {
    /// When to call [`ServerSession::handle_timeout`] next; `None` if nothing is due.
    pub fn poll_deadline(&self) -> Option<Duration> {
        let (progress, log) = (self.limits.progress_rate, self.limits.log_rate);
        let thinned = self.requests.iter().flat_map(|(_, entry)| {
            let logged = entry.log.as_ref().and_then(|held| held.deadline(log));
            entry.progress.deadline(progress).into_iter().chain(logged)
        });
        thinned
            .chain(self.server_requests.deadline())
            .chain(self.log.deadline(log))
            .chain(self.next_ping)
            .min()
    }

    /// Handles the deadlines that have passed at `now`.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<TimeoutEvent<A>> {
        let mut due = Vec::new();
        for (key, server_request) in self.server_requests.take_timed_out(now) {
            let in_all = server_request.total_deadline <= now;
            let waited = if in_all {
                server_request.timeouts.total
            } else {
                server_request.timeouts.idle
            };
            due.push(TimeoutEvent::ServerRequest {
                cancel: cancellation(key, server_request.related, "timed out"),
                handle: server_request.handle,
                error: InputRequestError::TimedOut {
                    method: server_request.method,
                    waited,
                    in_all,
                },
            });
        }
        let (progress, log) = (self.limits.progress_rate, self.limits.log_rate);
        for (key, entry) in self.requests.iter_mut() {
            let held = entry.log.as_mut();
            let logged = held.and_then(|held| Some(held.due(log, now)?.message));
            for message in entry.progress.due(progress, now).into_iter().chain(logged) {
                due.push(TimeoutEvent::Send(Outgoing {
                    related: Some(key),
                    message,
                }));
            }
        }
        let logged = self.log.due(log, now);
        due.extend(logged.map(|held| TimeoutEvent::Send(held.message)));
        self.ping_if_due(now, &mut due);
        due
    }

    /// Starts pinging a silent handshake-era client, if the limits say so.
    pub fn start_pings(&mut self, now: Duration) {
        self.next_ping = self.limits.ping_interval.map(|interval| now + interval);
    }

    /// Postpones pings while no stream could carry one, and resets the number of unanswered pings.
    pub fn postpone_pings(&mut self, now: Duration) {
        if self.next_ping.is_some() {
            self.ping = None;
            self.pings_missed = 0;
            self.start_pings(now);
        }
    }

    fn ping_if_due(&mut self, now: Duration, due: &mut Vec<TimeoutEvent<A>>) {
        let (Some(interval), Some(at)) = (self.limits.ping_interval, self.next_ping) else {
            return;
        };
        if at > now {
            return;
        }
        if self.ping.is_none() && self.last_received + interval > now {
            self.next_ping = Some(self.last_received + interval);
            return;
        }
        if self.ping.is_some() {
            self.pings_missed += 1;
            if self.pings_missed >= self.limits.max_missed_pings {
                self.next_ping = None;
                due.push(TimeoutEvent::ClientUnresponsive);
                return;
            }
        }
        let key = ServerRequestKey(self.server_requests.next);
        self.server_requests.next += 1;
        self.ping = Some(key);
        self.next_ping = Some(now + interval);
        let mut message = Vec::new();
        encode::request(&mut message, &RequestId::number(key.0 as i64), "ping", None);
        due.push(TimeoutEvent::Send(Outgoing {
            related: None,
            message,
        }));
    }
}
