//! The outbox of a pipe: one buffer that all senders append to and the pipe's task drains.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use mcpline_protocol::wire::encode::one_line;

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
    unwritten: Mutex<Unwritten>,
}

#[derive(Default)]
struct Unwritten {
    messages: Vec<u8>,
    /// Wakes the pipe's task while it waits for messages.
    waker: Option<Waker>,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Unwritten> {
        self.unwritten
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Exchanges the waiting messages for an empty buffer.
    pub(crate) fn take(&self, emptied: &mut Vec<u8>) {
        emptied.clear();
        if emptied.capacity() > KEPT_CAPACITY {
            *emptied = Vec::new();
        }
        std::mem::swap(&mut self.lock().messages, emptied);
    }

    /// Returns the number of waiting bytes.
    pub(crate) fn len(&self) -> usize {
        self.lock().messages.len()
    }

    /// Waits until there is something to write. One task may wait at a time.
    pub(crate) async fn wait_until_filled(&self) {
        // The task that waits is also the one that reads requests: writing their responses must not wake it again.
        let _waiting = Waiting(self);
        poll_fn(|cx| {
            let mut unwritten = self.lock();
            if !unwritten.messages.is_empty() {
                return Poll::Ready(());
            }
            unwritten.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Removes the waker when the task stops waiting.
struct Waiting<'a>(&'a Outbox);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let waker = self.0.lock().waker.take();
        drop(waker);
    }
}

impl MessageSink for Outbox {
    fn write(&self, _: MessageKind, hint: usize, encode: &mut dyn FnMut(&mut Vec<u8>)) {
        let waker = {
            let mut unwritten = self.lock();
            let messages = &mut unwritten.messages;
            messages.reserve(hint + 1);
            let begin = messages.len();
            encode(messages);
            // A handler may return indented JSON; a line break within a message would end it.
            one_line(&mut messages[begin..]);
            messages.push(b'\n');
            unwritten.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn is_congested(&self) -> bool {
        self.len() >= OUTBOX_LIMIT
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake};

    use super::*;
    use crate::message_sink;

    #[derive(Default)]
    struct WakeCounter(AtomicUsize);

    impl Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn wakes_the_task_only_while_it_waits() {
        let outbox = Outbox::default();
        let counter = Arc::new(WakeCounter::default());
        let waker = Waker::from(counter.clone());
        let mut cx = Context::from_waker(&waker);
        let send = || message_sink::send(&outbox, MessageKind::Notification, b"1");
        let wakes = || counter.0.load(Ordering::Relaxed);
        {
            let mut filled = pin!(outbox.wait_until_filled());
            assert!(filled.as_mut().poll(&mut cx).is_pending());
            send();
            send();
            assert_eq!(wakes(), 1);
            assert!(filled.as_mut().poll(&mut cx).is_ready());
        }
        assert!(pin!(outbox.wait_until_filled()).poll(&mut cx).is_ready());
        outbox.take(&mut Vec::new());
        assert!(pin!(outbox.wait_until_filled()).poll(&mut cx).is_pending());
        send();
        assert_eq!(wakes(), 1);
    }

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
