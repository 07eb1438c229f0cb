//! Timeouts of tool calls: the time that a handler may run, without the time that its client takes to answer.

use std::time::Duration;

use mcpline_protocol::Quoted;
use mcpline_runtime::clock;

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use crate::timers::{Alarm, Timed};
use crate::warning_limit::warn_limited;

use super::call::CallState;

/// The timeout of one run of a handler.
pub(super) struct CallTimeout {
    /// Weak, because the call has the timeout.
    call: Weak<CallState>,
    timeout: Duration,
    elapsed: Mutex<ElapsedTime>,
    alarm: Alarm,
}

/// The time that the handler has had so far.
struct ElapsedTime {
    /// Until `running_since`.
    earlier: Duration,
    /// When the client answered last, or the handler was started. Without a meaning while requests are open.
    running_since: Duration,
    open_input_requests: u32,
}

/// Holds the time of a handler while one of its input requests is open.
pub(super) struct OpenInputRequest(Arc<CallTimeout>);

impl CallTimeout {
    /// Starts the time of a handler.
    pub(super) fn start(call: &Arc<CallState>, timeout: Duration) -> Arc<Self> {
        let now = clock::now();
        let started = Arc::new(Self {
            call: Arc::downgrade(call),
            timeout,
            elapsed: Mutex::new(ElapsedTime {
                earlier: Duration::ZERO,
                running_since: now,
                open_input_requests: 0,
            }),
            alarm: Alarm::default(),
        });
        let end = now.saturating_add(timeout);
        call.server.timers().schedule(end, &started);
        started
    }

    /// Holds the time until the returned value is dropped.
    pub(super) fn pause(self: &Arc<Self>) -> OpenInputRequest {
        let mut elapsed = self.lock();
        if elapsed.open_input_requests == 0 {
            elapsed.earlier = elapsed.until(clock::now());
        }
        elapsed.open_input_requests += 1;
        OpenInputRequest(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, ElapsedTime> {
        self.elapsed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ElapsedTime {
    /// Returns the time that the handler has had when no request is open.
    fn until(&self, now: Duration) -> Duration {
        let since = now.saturating_sub(self.running_since);
        self.earlier.saturating_add(since)
    }
}

impl Drop for OpenInputRequest {
    fn drop(&mut self) {
        let timeout = &self.0;
        let now = clock::now();
        let left = {
            let mut elapsed = timeout.lock();
            elapsed.open_input_requests -= 1;
            if elapsed.open_input_requests > 0 {
                return;
            }
            elapsed.running_since = now;
            timeout.timeout.saturating_sub(elapsed.earlier)
        };
        if let Some(call) = timeout.call.upgrade()
            && !call.is_done()
        {
            let end = now.saturating_add(left);
            call.server.timers().schedule(end, timeout);
        }
    }
}

impl Timed for CallTimeout {
    fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    fn fire(self: Arc<Self>) {
        let Some(call) = self.call.upgrade() else {
            return;
        };
        if call.is_done() {
            return;
        }
        let now = clock::now();
        let left = {
            let elapsed = self.lock();
            if elapsed.open_input_requests > 0 {
                // The end of the last of them schedules the timer again.
                return;
            }
            self.timeout.saturating_sub(elapsed.until(now))
        };
        if left > Duration::ZERO {
            // Scheduled before an input request was made.
            let end = now.saturating_add(left);
            call.server.timers().schedule(end, &self);
            return;
        }
        let text = message(&call.name(), self.timeout);
        if call.time_out(&text) {
            warn_limited!(
                name = %Quoted(call.name()),
                "a tool was cancelled because its `timeout` of {} elapsed",
                in_seconds(self.timeout)
            );
        }
    }
}

/// Returns the text of the tool error.
fn message(name: &str, timeout: Duration) -> String {
    format!(
        "The tool {name} did not finish within {}",
        in_seconds(timeout)
    )
}

fn in_seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let unit = match time == Duration::from_secs(1) {
        true => "second",
        false => "seconds",
    };
    format!("{seconds} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_time_in_seconds() {
        let text = |millis| message("slow", Duration::from_millis(millis));
        assert_eq!(text(500), "The tool slow did not finish within 0.5 seconds");
        assert_eq!(text(1_000), "The tool slow did not finish within 1 second");
        assert_eq!(
            text(30_000),
            "The tool slow did not finish within 30 seconds"
        );
    }
}
