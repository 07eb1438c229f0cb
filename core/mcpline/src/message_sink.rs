//! Destinations of messages: a pipe's outbox, an HTTP response, a queue in memory.

use mcpline_protocol::Scopes;

use crate::sync::{Arc, Mutex, PoisonError};

/// Appends a message to a buffer.
pub(crate) type Encode<'a> = &'a mut dyn FnMut(&mut Vec<u8>);

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageKind {
    /// A notification; more follows. It may be dropped for a slow reader.
    Notification,
    /// A request to the client; more follows.
    Request,
    /// The response, which ends the exchange.
    Response(ResponseStatus),
}

/// The outcome of an exchange, for transports with statuses of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseStatus {
    /// A result.
    Result,
    /// An error of a feature or a handler.
    Error(i64),
    /// An error before anything was dispatched: the request itself was refused.
    Refused(i64),
    /// An error because the caller lacks scopes, which the sink already knows.
    Forbidden(i64),
    /// An error because the message was invalid.
    Unreadable(i64),
}

/// A destination of messages. Sending never blocks and never fails: a sink whose other end is gone drops its messages,
/// and the transport reports to the session that it is gone.
pub(crate) trait MessageSink: Send + Sync + 'static {
    /// Sends one message. `encode` appends it to a buffer; `hint` is its approximate length.
    fn write(&self, kind: MessageKind, hint: usize, encode: Encode<'_>);

    /// Returns whether the sink has a reader.
    fn is_connected(&self) -> bool {
        true
    }

    /// Returns whether so much is unread that optional messages should be dropped.
    fn is_congested(&self) -> bool {
        false
    }

    /// Reports that no response will follow, because the request was cancelled.
    fn abandon(&self) {}

    /// Reports the scopes that the caller needs, before the error is sent: HTTP has a status and a header for them.
    fn report_missing_scopes(&self, _needed: &Scopes) {}

    /// Closes the stream while the request continues, so that the client reconnects for the rest (2025-11-25, polling).
    /// Transports without such streams ignore it.
    fn close_stream(&self) {}
}

/// Sends an encoded message.
pub(crate) fn send(sink: &dyn MessageSink, kind: MessageKind, message: &[u8]) {
    sink.write(kind, message.len(), &mut |out| {
        out.extend_from_slice(message);
    });
}

/// A sink that collects the responses of a batch into one array (JSON-RPC 2.0, section 6). If nothing in the batch was
/// a valid message, the array has the status of an invalid one.
pub(crate) struct BatchSink {
    inner: Arc<dyn MessageSink>,
    gathered: Mutex<BatchResponses>,
}

struct BatchResponses {
    awaited: usize,
    array: Vec<u8>,
    /// The error if everything so far was invalid; `None` once something was valid.
    unreadable: Option<i64>,
}

impl BatchSink {
    /// Creates a sink for a batch with `awaited` requests.
    pub(crate) fn new(inner: Arc<dyn MessageSink>, awaited: usize) -> Self {
        Self {
            inner,
            gathered: Mutex::new(BatchResponses {
                awaited,
                array: Vec::new(),
                unreadable: None,
            }),
        }
    }

    fn gather(&self, response: Option<(ResponseStatus, Encode<'_>)>) {
        let finished = {
            let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((status, encode)) = response {
                let is_first = gathered.array.is_empty();
                gathered.unreadable = match status {
                    ResponseStatus::Unreadable(code) if is_first => Some(code),
                    ResponseStatus::Unreadable(_) => gathered.unreadable,
                    _ => None,
                };
                gathered.array.push(if is_first { b'[' } else { b',' });
                encode(&mut gathered.array);
            }
            gathered.awaited = gathered.awaited.saturating_sub(1);
            let status = gathered
                .unreadable
                .map_or(ResponseStatus::Result, ResponseStatus::Unreadable);
            (gathered.awaited == 0).then(|| (status, std::mem::take(&mut gathered.array)))
        };
        match finished {
            Some((_, array)) if array.is_empty() => self.inner.abandon(),
            Some((status, mut array)) => {
                array.push(b']');
                self.inner
                    .write(MessageKind::Response(status), array.len(), &mut |out| {
                        out.extend_from_slice(&array);
                    });
            }
            None => {}
        }
    }
}

impl MessageSink for BatchSink {
    fn write(&self, kind: MessageKind, hint: usize, encode: Encode<'_>) {
        match kind {
            MessageKind::Notification | MessageKind::Request => {
                self.inner.write(kind, hint, encode)
            }
            MessageKind::Response(status) => self.gather(Some((status, encode))),
        }
    }

    fn is_congested(&self) -> bool {
        self.inner.is_congested()
    }

    fn abandon(&self) {
        self.gather(None);
    }
}
