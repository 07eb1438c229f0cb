//! Messages without an answer, sent again when their connection fails: nothing else would tell that they were lost.

use std::time::Duration;

use crate::client_error::ClientError;
use crate::http_client::HttpSettings;
use mcpline_runtime::clock;

use super::backoff::Backoff;

/// When a message is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryCondition {
    /// If nothing of it was sent: a notification of the host's, which may mean something each time.
    IfUnsent,
    /// Also if the server may have received it, because it ignores the second one: the end of the handshake, an answer, a
    /// cancellation. Without these the server would wait in vain, and in its turn whoever waits for the server.
    IfLost,
}

/// The attempts to send one message.
pub(super) struct Retries {
    repeat: RetryCondition,
    backoff: Backoff,
    failed: u32,
    most: u32,
}

impl Retries {
    pub(super) fn new(settings: &HttpSettings, repeat: RetryCondition) -> Self {
        Self {
            repeat,
            backoff: Backoff::of(settings),
            failed: 0,
            most: settings.reconnect_attempts,
        }
    }

    /// Waits until the message is to be sent again after it failed with `error`; `false` if it isn't.
    pub(super) async fn again(&mut self, error: &ClientError) -> bool {
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

    /// The first is sent again at once: most often an idle connection was just being closed.
    fn delay(&self) -> Duration {
        match self.failed {
            0 => Duration::ZERO,
            failed => {
                let random = u32::from_ne_bytes(clock::random());
                self.backoff.delay(failed, 0, None, random)
            }
        }
    }
}
