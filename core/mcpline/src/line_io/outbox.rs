//! The outbox of a pipe: one buffer that all senders append to and the pipe's task drains.

use mcpline_protocol::wire::encode::one_line;
use tokio::sync::Notify;

use crate::message_sink::{MessageKind, MessageSink};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Limit of waiting bytes, above which a pipe reads no further and drops custom notifications of handlers: its client
/// does not read, and each accepted message would add another response.
pub(crate) const OUTBOX_LIMIT: usize = 32 * 1024 * 1024;

/// A larger buffer is released once it is empty, so that one large message does not occupy its memory forever.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// Messages to write, each with a trailing newline.
#[derive(Default)]
pub(crate) struct Outbox {
    waiting: Mutex<Vec<u8>>,
    filled: Notify,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exchanges the waiting messages for an empty buffer.
    pub(crate) fn take(&self, emptied: &mut Vec<u8>) {
        emptied.clear();
        if emptied.capacity() > KEPT_CAPACITY {
            *emptied = Vec::new();
        }
        std::mem::swap(&mut *self.lock(), emptied);
    }

    /// Returns the number of waiting bytes.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Waits until something was added since the last wait.
    pub(crate) async fn filled(&self) {
        self.filled.notified().await;
    }
}

impl MessageSink for Outbox {
    fn write(&self, _: MessageKind, hint: usize, encode: &mut dyn FnMut(&mut Vec<u8>)) {
        let first = {
            let mut waiting = self.lock();
            let first = waiting.is_empty();
            waiting.reserve(hint + 1);
            let begin = waiting.len();
            encode(&mut waiting);
            // A handler may return indented JSON; a line break within a message would end it.
            one_line(&mut waiting[begin..]);
            waiting.push(b'\n');
            first
        };
        if first {
            self.filled.notify_one();
        }
    }

    fn is_congested(&self) -> bool {
        self.len() >= OUTBOX_LIMIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_sink;

    #[test]
    fn is_congested_from_its_limit_on() {
        let outbox = Outbox::default();
        message_sink::send(
            &outbox,
            MessageKind::Notification,
            &vec![b'1'; OUTBOX_LIMIT - 2],
        );
        assert!(!outbox.is_congested());
        message_sink::send(&outbox, MessageKind::Notification, b"2");
        assert!(outbox.is_congested());
        outbox.take(&mut Vec::new());
        assert!(!outbox.is_congested());
    }
}
