//! Streams that are opened by GET: the session's own stream, and resumed streams of requests.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, StatusCode};
use mcpline_runtime::clock;

use crate::client_error::ClientError;
use crate::http_client::ConnectionReuse;
use crate::http_client::refusal::refusal;
use crate::http_client::response::{HttpResponse, Media};

use super::backoff::{Backoff, HASTY};
use super::events::{ResumptionState, StreamEnd, StreamOwner, pump};
use super::exchange::too_large;
use super::latch::Opener;
use super::streamable::HttpLinkShared;

/// The outcome of a GET.
enum GetOutcome {
    Stream(HttpResponse),
    /// Another attempt may succeed.
    Failed(ClientError),
    /// No other attempt will succeed.
    Refused(ClientError),
}

/// The attempts to keep one stream open.
struct Attempts {
    backoff: Backoff,
    /// Number of attempts in a row that delivered nothing. They lengthen the delay.
    idle: u32,
    /// Number of streams in a row that ended at once, whatever they delivered.
    hasty: u32,
    /// Number of failures in a row for which the server did not ask for a reconnection. They count as lost.
    vain: u32,
    /// Whether the latest stream may have ended together with those of other clients.
    spread: bool,
}

impl Attempts {
    async fn wait(&self, retry: Option<Duration>) {
        let random = u32::from_ne_bytes(clock::random());
        tokio::time::sleep(self.delay(retry, random)).await;
    }

    fn delay(&self, retry: Option<Duration>, random: u32) -> Duration {
        self.backoff
            .delay(self.idle, self.hasty, retry, self.spread, random)
    }

    /// Records the end of a connection that carried the stream since `begun`. `spread`: whether those of other clients may have
    /// ended at the same time.
    fn record_end(
        &mut self,
        received_event: bool,
        begun: Instant,
        retry: Option<Duration>,
        spread: bool,
    ) {
        self.spread = spread;
        self.hasty = match begun.elapsed() < HASTY {
            true => self.hasty.saturating_add(1),
            false => 0,
        };
        if received_event || begun.elapsed() >= self.backoff.cap {
            (self.idle, self.vain) = (0, 0);
            return;
        }
        self.idle = self.idle.saturating_add(1);
        // A server that demands a delay closes streams on purpose, even before it has anything to send.
        self.vain = self.vain.saturating_add(u32::from(retry.is_none()));
    }

    fn record_failure(&mut self) {
        self.idle = self.idle.saturating_add(1);
        self.vain = self.vain.saturating_add(1);
    }
}

impl HttpLinkShared {
    /// Keeps the session's own stream open for as long as the session lives. `opener` is dropped with the first
    /// response.
    pub(super) async fn listen(&self, opener: Opener) {
        let mut opener = Some(opener);
        let mut memory = ResumptionState::default();
        let mut attempts = self.attempts();
        let mut warned = false;
        loop {
            let got = self.get(&memory).await;
            drop(opener.take());
            match got {
                GetOutcome::Stream(answer) => {
                    let (limit, begun) = (self.client.settings.max_body_bytes, Instant::now());
                    match pump(answer, StreamOwner::Session, &mut memory, limit, &self.sink).await {
                        StreamEnd::Lost { received_event, .. } => {
                            // A server that shuts down closes the streams of all sessions.
                            attempts.record_end(received_event, begun, memory.retry, true);
                        }
                        StreamEnd::Answered => {}
                        StreamEnd::TooLarge { limit } => {
                            let what = too_large(limit);
                            self.sink.warning(format!("the session's stream: {what}"));
                            attempts.record_failure();
                        }
                    }
                }
                GetOutcome::Failed(error) => {
                    attempts.record_failure();
                    if attempts.vain >= self.client.settings.reconnect_attempts && !warned {
                        warned = true;
                        self.sink.warning(format!(
                            "cannot open the session's stream, retrying: {error}"
                        ));
                    }
                }
                GetOutcome::Refused(error) => {
                    // 405 means that there is no such stream, and 404 ends the session, which the next request finds
                    // out.
                    let quiet = matches!(error, ClientError::SessionExpired)
                        || matches!(error, ClientError::Http { status: 405, .. });
                    if !quiet {
                        self.sink.warning(format!(
                            "the server offers no stream for this session: {error}"
                        ));
                    }
                    return;
                }
            }
            attempts.wait(memory.retry).await;
        }
    }

    /// Resumes the stream of a request whose connection was lost. `is_broken`: whether the connection broke, instead of being
    /// closed by the server.
    pub(super) async fn resume_stream(
        &self,
        number: u64,
        mut memory: ResumptionState,
        is_broken: bool,
    ) -> Result<(), ClientError> {
        let mut attempts = self.attempts();
        attempts.spread = is_broken;
        loop {
            attempts.wait(memory.retry).await;
            let error = match self.get(&memory).await {
                GetOutcome::Stream(answer) => {
                    let owner = StreamOwner::Request(number);
                    let (limit, begun) = (self.client.settings.max_body_bytes, Instant::now());
                    match pump(answer, owner, &mut memory, limit, &self.sink).await {
                        StreamEnd::Answered => return Ok(()),
                        StreamEnd::TooLarge { limit } => return Err(too_large(limit)),
                        StreamEnd::Lost {
                            received_event,
                            is_broken,
                            reason,
                        } => {
                            attempts.record_end(received_event, begun, memory.retry, is_broken);
                            reason
                        }
                    }
                }
                // The request was accepted once: even if the session is lost, the server may have performed it.
                GetOutcome::Refused(error) => return Err(ClientError::lost(format!("{error:#}"))),
                GetOutcome::Failed(error) => {
                    attempts.record_failure();
                    format!("{error:#}")
                }
            };
            if attempts.vain >= self.client.settings.reconnect_attempts {
                return Err(ClientError::lost(error));
            }
        }
    }

    fn attempts(&self) -> Attempts {
        Attempts {
            backoff: Backoff::of(&self.client.settings),
            idle: 0,
            hasty: 0,
            vain: 0,
            spread: false,
        }
    }

    async fn get(&self, memory: &ResumptionState) -> GetOutcome {
        let view = self.snapshot();
        let headers = || view.heads.after(memory.last_event.as_ref());
        let got = self
            .client
            .send_authorized(
                Method::GET,
                &self.target,
                &headers,
                &Bytes::new(),
                &(),
                ConnectionReuse::Yes,
            )
            .await;
        let answer = match got {
            Ok(answer) => answer,
            Err(error @ ClientError::Http { .. }) => return GetOutcome::Refused(error),
            Err(error) => return GetOutcome::Failed(error),
        };
        let status = answer.head.status;
        if status.is_success() && answer.media() == Media::EventStream {
            return GetOutcome::Stream(answer);
        }
        if status.is_success() {
            answer.drain().await;
            return GetOutcome::Refused(ClientError::InvalidResponse {
                reason: format!("HTTP status {} without an event stream", status.as_u16()),
            });
        }
        let again = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
            || status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::REQUEST_TIMEOUT;
        let error = refusal(answer, view.in_session).await;
        if again {
            GetOutcome::Failed(error)
        } else {
            GetOutcome::Refused(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_that_may_have_ended_together_are_reopened_at_different_times() {
        let mut attempts = Attempts {
            backoff: Backoff {
                first: Duration::from_millis(500),
                cap: Duration::from_secs(30),
            },
            idle: 3,
            hasty: 0,
            vain: 0,
            spread: false,
        };
        let retry = Some(Duration::from_millis(500));
        for (spread, random_part) in [(true, 250), (false, 0)] {
            // It has delivered something, so the attempt has not failed.
            attempts.record_end(true, Instant::now(), retry, spread);
            let [earliest, latest] = [0, u32::MAX].map(|random| attempts.delay(retry, random));
            assert_eq!(Some(earliest), retry);
            assert_eq!(latest - earliest, Duration::from_millis(random_part));
        }
    }
}
