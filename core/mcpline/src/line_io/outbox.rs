//! What waits to be written to a pipe: one buffer that everybody appends to and the pipe's task drains.

use mcpline_protocol::wire::encode::one_line;
use tokio::sync::Notify;

use crate::message_sink::{MessageKind, MessageSink};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// While more than this waits, a pipe reads no further and handlers' own notifications are dropped: its client does not read
/// our answers, and each message that we took in would make us hold more of them.
pub(crate) const OUTBOX_LIMIT: usize = 32 * 1024 * 1024;

/// A buffer that grew past this is given back once it is empty, so that one large answer doesn't keep
/// its memory for ever.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// Messages to write, each ended by a newline.
#[derive(Default)]
pub(crate) struct Outbox {
    waiting: Mutex<Vec<u8>>,
    filled: Notify,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exchanges what waits for an empty buffer.
    pub(crate) fn take(&self, emptied: &mut Vec<u8>) {
        emptied.clear();
        if emptied.capacity() > KEPT_CAPACITY {
            *emptied = Vec::new();
        }
        std::mem::swap(&mut *self.lock(), emptied);
    }

    /// How much waits.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Waits until something was put in since the last wait.
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
            // A handler may have given indented JSON; a line end within a message would end it.
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
