//! Sends messages that have no response: notifications, and responses to requests of the server.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::client_error::ClientError;

use super::one_way_retries::RetryCondition;

/// Maximum number of concurrent POSTs. Each takes a connection, and with it a file descriptor of the host.
const MAX_POSTS: usize = 16;

/// Maximum number of waiting messages: more than the open requests of a server that accepts responses.
const MAX_WAITING: usize = 1_024;

/// Maximum number of waiting bytes: two of the longest messages.
const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;

/// The outgoing messages of one link that have no response.
#[derive(Debug, Default)]
pub(super) struct OneWay {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of posting tasks.
    posting: usize,
    waiting: VecDeque<OneWayMessage>,
    bytes: usize,
}

/// A message that has no response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OneWayMessage {
    pub(super) bytes: Bytes,
    pub(super) repeat: RetryCondition,
}

/// How a message is handled.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PostAdmission {
    /// The caller must start a task that posts it, and then everything that [`next`](OneWay::next) returns.
    Post(OneWayMessage),
    /// A running task will post it.
    Waits,
    /// The server causes more messages than it accepts.
    Full,
}

impl OneWay {
    /// Admits a message.
    pub(super) fn admit(&self, message: OneWayMessage) -> PostAdmission {
        let mut state = self.lock();
        if state.posting < MAX_POSTS {
            state.posting += 1;
            return PostAdmission::Post(message);
        }
        if state.waiting.len() >= MAX_WAITING
            || state.bytes + message.bytes.len() > MAX_WAITING_BYTES
        {
            return PostAdmission::Full;
        }
        state.bytes += message.bytes.len();
        state.waiting.push_back(message);
        PostAdmission::Waits
    }

    /// Returns the next message for a task that has posted one; `None` ends the task.
    pub(super) fn next(&self) -> Option<OneWayMessage> {
        let mut state = self.lock();
        let Some(message) = state.waiting.pop_front() else {
            state.posting -= 1;
            return None;
        };
        state.bytes -= message.bytes.len();
        Some(message)
    }

    /// Returns the error with which the link ends if there is no room for a message.
    pub(super) fn overflow_error() -> ClientError {
        ClientError::InvalidResponse {
            reason: format!(
                "the server sends requests faster than it accepts the responses: more than {MAX_WAITING} \
                 messages or {MAX_WAITING_BYTES} bytes are waiting to be sent"
            ),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: impl Into<Bytes>) -> OneWayMessage {
        OneWayMessage {
            bytes: bytes.into(),
            repeat: RetryCondition::IfLost,
        }
    }

    #[test]
    fn posts_a_few_at_once_and_keeps_the_rest_in_order() {
        let one_way = OneWay::default();
        for _ in 0..MAX_POSTS {
            assert_eq!(
                one_way.admit(message("{}")),
                PostAdmission::Post(message("{}"))
            );
        }
        for number in 0..3u8 {
            assert_eq!(one_way.admit(message(vec![number])), PostAdmission::Waits);
        }
        for number in 0..3u8 {
            assert_eq!(one_way.next(), Some(message(vec![number])));
        }
        for _ in 0..MAX_POSTS {
            assert_eq!(one_way.next(), None);
        }
        assert_eq!(
            one_way.admit(message("{}")),
            PostAdmission::Post(message("{}"))
        );
    }

    #[test]
    fn is_full_by_number_and_by_bytes() {
        let one_way = OneWay::default();
        for _ in 0..MAX_POSTS {
            let _ = one_way.admit(message("{}"));
        }
        for _ in 0..MAX_WAITING {
            assert_eq!(one_way.admit(message("{}")), PostAdmission::Waits);
        }
        assert_eq!(one_way.admit(message("{}")), PostAdmission::Full);

        let one_way = OneWay::default();
        for _ in 0..MAX_POSTS {
            let _ = one_way.admit(message("{}"));
        }
        let half = || message(vec![0; MAX_WAITING_BYTES / 2]);
        assert_eq!(one_way.admit(half()), PostAdmission::Waits);
        assert_eq!(one_way.admit(half()), PostAdmission::Waits);
        assert_eq!(one_way.admit(message("{}")), PostAdmission::Full);
        assert!(one_way.next().is_some());
        assert_eq!(one_way.admit(message("{}")), PostAdmission::Waits);
    }
}
