//! Where the messages of one exchange go: a pipe's outbox, an HTTP response, a queue in memory.

use mcpline_protocol::Scopes;

use crate::sync::{Arc, Mutex, PoisonError};

/// Appends a message to a buffer.
pub(crate) type Encode<'a> = &'a mut dyn FnMut(&mut Vec<u8>);

/// What a message is to its sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageKind {
    /// A notification; more follows. It may be dropped for a reader that is too slow.
    Notification,
    /// A request to the client; more follows.
    Request,
    /// The response that ends the exchange.
    Response(ResponseStatus),
}

/// How an exchange ended, for transports that have a status of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseStatus {
    /// With a result.
    Result,
    /// With an error that a feature or a handler gave.
    Error(i64),
    /// With an error before anything was dispatched: the request itself was refused.
    Refused(i64),
    /// With an error because the caller lacks scopes; the sink was told which.
    Forbidden(i64),
    /// With an error because the bytes were no message.
    Unreadable(i64),
}

/// A destination for messages. Sending never blocks and never fails: a sink whose other end is gone drops
/// what it gets, and the transport tells the session that it is gone.
pub(crate) trait MessageSink: Send + Sync + 'static {
    /// Takes one message. `encode` appends it to a buffer; `hint` is about how long it will be.
    fn write(&self, kind: MessageKind, hint: usize, encode: Encode<'_>);

    /// Whether the sink has a reader.
    fn is_connected(&self) -> bool {
        true
    }

    /// Whether so much waits to be read that what can be left out should be.
    fn is_congested(&self) -> bool {
        false
    }

    /// Says that no response will come: the request was cancelled.
    fn abandon(&self) {}

    /// Says which scopes the caller needs for what it asked, before the error goes out: HTTP has a status and a header for
    /// that.
    fn demand(&self, _needed: &Scopes) {}

    /// Asks the transport to close the stream while the request goes on, for the client to come back
    /// for the rest (2025-11-25, polling). Transports without such streams ignore it.
    fn close_stream(&self) {}
}

/// Sends a message that is encoded already.
pub(crate) fn send(sink: &dyn MessageSink, kind: MessageKind, message: &[u8]) {
    sink.write(kind, message.len(), &mut |out| {
        out.extend_from_slice(message);
    });
}

/// A sink that gathers the responses of a batch into one array (JSON-RPC 2.0, section 6). The array has the status of bytes
/// that are no message if nothing in the batch was one.
pub(crate) struct BatchSink {
    inner: Arc<dyn MessageSink>,
    gathered: Mutex<Gathered>,
}

struct Gathered {
    awaited: usize,
    array: Vec<u8>,
    /// Why what was refused so far is no message; none once something was.
    unreadable: Option<i64>,
}

impl BatchSink {
    /// A sink for a batch with `awaited` requests in it.
    pub(crate) fn new(inner: Arc<dyn MessageSink>, awaited: usize) -> Self {
        Self {
            inner,
            gathered: Mutex::new(Gathered {
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
