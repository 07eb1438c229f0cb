//! Limits how long a connection may be without a request: from the end of one to the complete head of the next.
//!
//! hyper has such a limit, too. But it starts a timer for each request: allocating, inserting and removing it took 2 % of
//! a call's instructions. This timer is moved only when it fires.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep};

use super::write_backpressure::WriteBackpressure;

/// The limit for one connection. It outlives hyper's restarts on the same socket.
pub(super) struct HeadTimeout {
    limit: Duration,
    /// Since when the client has owed a request, if it owes one.
    since: Option<Instant>,
    /// Created for the first request.
    timer: Option<Pin<Box<Sleep>>>,
    /// When the timer fires: at the deadline of the current request, or of one before it.
    fires_at: Instant,
}

impl HeadTimeout {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            since: None,
            timer: None,
            fires_at: Instant::now(),
        }
    }

    /// Ready when the client has taken too long. To be called by the task of the connection, whenever it has been woken
    /// and hyper can do no more.
    pub(super) fn poll(&mut self, outgoing: &WriteBackpressure, cx: &mut Context<'_>) -> Poll<()> {
        // A client that still has to read its response is not expected to send anything.
        if !outgoing.awaits_request() {
            self.since = None;
            return Poll::Pending;
        }
        if outgoing.take_begun() {
            self.since = None;
        }
        let is_new = self.since.is_none();
        let since = *self.since.get_or_insert_with(Instant::now);
        let Some(deadline) = since.checked_add(self.limit) else {
            return Poll::Pending;
        };
        match &mut self.timer {
            // The usual case, which does not read the timer.
            Some(_) if is_new && since < self.fires_at => Poll::Pending,
            // It wakes the task: every connection has only one, which has polled the timer before.
            Some(timer) if !timer.is_elapsed() => Poll::Pending,
            Some(timer) => {
                if self.fires_at < deadline {
                    self.fires_at = deadline;
                    timer.as_mut().reset(deadline);
                }
                poll_surely(timer, cx)
            }
            none => {
                self.fires_at = deadline;
                let timer = none.insert(Box::pin(tokio::time::sleep_until(deadline)));
                poll_surely(timer, cx)
            }
        }
    }
}

/// Polls the timer even if the task has used up its budget: it would not be started then, and is not polled again before it
/// fires.
fn poll_surely(timer: &mut Pin<Box<Sleep>>, cx: &mut Context<'_>) -> Poll<()> {
    Pin::new(&mut unconstrained(timer.as_mut())).poll(cx)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::task::Waker;

    use tokio::task::coop::poll_proceed;
    use tokio::time::advance;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    struct Connection {
        outgoing: Arc<WriteBackpressure>,
        timeout: HeadTimeout,
    }

    impl Connection {
        fn new(limit: Duration) -> Self {
            Self {
                outgoing: Arc::default(),
                timeout: HeadTimeout::new(limit),
            }
        }

        fn is_late(&mut self) -> bool {
            let mut cx = Context::from_waker(Waker::noop());
            self.timeout.poll(&self.outgoing, &mut cx).is_ready()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_request_has_to_come_in_time() {
        let mut connection = Connection::new(LIMIT);
        assert!(!connection.is_late());
        advance(LIMIT - Duration::from_millis(2)).await;
        assert!(!connection.is_late());
        advance(Duration::from_millis(4)).await;
        assert!(connection.is_late());
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_starts_anew_after_each_request() {
        let mut connection = Connection::new(LIMIT);
        assert!(!connection.is_late());
        for _ in 0..5 {
            advance(LIMIT * 2 / 3).await;
            // Served at once, as hyper does for handlers that are ready immediately.
            drop(connection.outgoing.begin());
            assert!(!connection.is_late());
        }
        advance(LIMIT - Duration::from_millis(2)).await;
        assert!(!connection.is_late());
        advance(Duration::from_millis(4)).await;
        assert!(connection.is_late());
    }

    #[tokio::test(start_paused = true)]
    async fn no_request_is_owed_while_one_is_served_or_its_response_is_unread() {
        let mut connection = Connection::new(LIMIT);
        assert!(!connection.is_late());
        let answering = connection.outgoing.begin();
        advance(LIMIT * 3).await;
        assert!(!connection.is_late());
        connection.outgoing.set_blocked(true);
        drop(answering);
        advance(LIMIT * 3).await;
        assert!(!connection.is_late());
        connection.outgoing.set_blocked(false);
        assert!(!connection.is_late());
        advance(LIMIT + Duration::from_millis(2)).await;
        assert!(connection.is_late());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_has_used_up_its_budget_starts_the_timer() {
        let mut connection = Connection::new(LIMIT);
        for _ in 0..2 {
            drop(connection.outgoing.begin());
            poll_fn(|cx| {
                while let Poll::Ready(unit) = poll_proceed(cx) {
                    unit.made_progress();
                }
                assert!(!connection.is_late());
                Poll::Ready(())
            })
            .await;
            advance(LIMIT + Duration::from_millis(2)).await;
        }
        assert!(connection.is_late());
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_limit_is_none() {
        let mut connection = Connection::new(Duration::MAX);
        assert!(!connection.is_late());
        advance(LIMIT).await;
        assert!(!connection.is_late());
    }
}
