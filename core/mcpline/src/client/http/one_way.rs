//! Messages that have no answer, on their way out: notifications, and answers to what the server asks.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::client_error::ClientError;

use super::retries::RetryCondition;

/// How many are posted at once. Each takes a connection, and with it a descriptor of the host's.
const MAX_POSTS: usize = 16;

/// How many wait for that: more than a server has outstanding that takes the answers to what it asks.
const MAX_WAITING: usize = 1_024;

/// How many bytes wait: two of the longest messages.
const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;

/// The messages of one link that have no answer.
#[derive(Debug, Default)]
pub(super) struct OneWay {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many tasks post.
    posting: usize,
    waiting: VecDeque<OneWayMessage>,
    bytes: usize,
}

/// A message that has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OneWayMessage {
    pub(super) bytes: Bytes,
    pub(super) repeat: RetryCondition,
}

/// What becomes of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// A task has to post it, and then whatever [`next`](OneWay::next) gives.
    Post(OneWayMessage),
    /// One of the tasks will post it.
    Waits,
    /// The server makes the client send more than it takes.
    Full,
}

impl OneWay {
    /// Takes a message.
    pub(super) fn admit(&self, message: OneWayMessage) -> Admission {
        let mut state = self.lock();
        if state.posting < MAX_POSTS {
            state.posting += 1;
            return Admission::Post(message);
        }
        if state.waiting.len() >= MAX_WAITING
            || state.bytes + message.bytes.len() > MAX_WAITING_BYTES
        {
            return Admission::Full;
        }
        state.bytes += message.bytes.len();
        state.waiting.push_back(message);
        Admission::Waits
    }

    /// The next message for a task that has posted one; `None` ends the task.
    pub(super) fn next(&self) -> Option<OneWayMessage> {
        let mut state = self.lock();
        let Some(message) = state.waiting.pop_front() else {
            state.posting -= 1;
            return None;
        };
        state.bytes -= message.bytes.len();
        Some(message)
    }

    /// Why the conversation ends that has no room for a message.
    pub(super) fn overflow() -> ClientError {
        ClientError::InvalidResponse {
            reason: format!(
                "the server sends requests faster than it takes their answers: more than {MAX_WAITING} \
                 messages or {MAX_WAITING_BYTES} bytes wait"
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
            assert_eq!(one_way.admit(message("{}")), Admission::Post(message("{}")));
        }
        for number in 0..3u8 {
            assert_eq!(one_way.admit(message(vec![number])), Admission::Waits);
        }
        for number in 0..3u8 {
            assert_eq!(one_way.next(), Some(message(vec![number])));
        }
        for _ in 0..MAX_POSTS {
            assert_eq!(one_way.next(), None);
        }
        assert_eq!(one_way.admit(message("{}")), Admission::Post(message("{}")));
    }

    #[test]
    fn is_full_by_number_and_by_bytes() {
        let one_way = OneWay::default();
        for _ in 0..MAX_POSTS {
            let _ = one_way.admit(message("{}"));
        }
        for _ in 0..MAX_WAITING {
            assert_eq!(one_way.admit(message("{}")), Admission::Waits);
        }
        assert_eq!(one_way.admit(message("{}")), Admission::Full);

        let one_way = OneWay::default();
        for _ in 0..MAX_POSTS {
            let _ = one_way.admit(message("{}"));
        }
        let half = || message(vec![0; MAX_WAITING_BYTES / 2]);
        assert_eq!(one_way.admit(half()), Admission::Waits);
        assert_eq!(one_way.admit(half()), Admission::Waits);
        assert_eq!(one_way.admit(message("{}")), Admission::Full);
        assert!(one_way.next().is_some());
        assert_eq!(one_way.admit(message("{}")), Admission::Waits);
    }
}
