//! Retries of messages without a response, whose loss nothing else would reveal.

use std::time::Duration;

use crate::client_error::ClientError;
use crate::http_client::HttpSettings;
use mcpline_runtime::clock;

use super::backoff::Backoff;

/// When a message is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryCondition {
    /// If none of it was sent: a notification of the host, which may have an effect each time.
    IfUnsent,
    /// Also if the server may have received it, because it ignores duplicates: the end of the handshake, a response, a
    /// cancellation. Without these the server would wait forever, and so would everything that waits for the server.
    IfLost,
}

/// The attempts to send one message.
pub(super) struct OneWayRetries {
    repeat: RetryCondition,
    backoff: Backoff,
    failed: u32,
    most: u32,
}

impl OneWayRetries {
    pub(super) fn new(settings: &HttpSettings, repeat: RetryCondition) -> Self {
        Self {
            repeat,
            backoff: Backoff::of(settings),
            failed: 0,
            most: settings.reconnect_attempts,
        }
    }

    /// Waits until the message has to be sent again after `error`. Returns `false` if it must not be.
    pub(super) async fn wait_for_retry(&mut self, error: &ClientError) -> bool {
        let is_lost = match error {
            ClientError::ServerUnreachable { .. } => true,
            ClientError::ConnectionLost { .. } => self.repeat == RetryCondition::IfLost,
            _ => false,
        };
        if !is_lost || self.failed >= self.most {
            return false;
        }
        tokio::time::sleep(self.delay()).await;
        self.failed += 1;
        true
    }

    /// The first retry is immediate: usually an idle connection was just being closed.
    fn delay(&self) -> Duration {
        match self.failed {
            0 => Duration::ZERO,
            failed => {
                let random = u32::from_ne_bytes(clock::random());
                self.backoff.delay(failed, 0, None, false, random)
            }
        }
    }
}
