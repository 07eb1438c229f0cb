//! The answer to one POST: a single JSON body, or an event stream from the moment that there is more to
//! say than the response, or nothing to say for too long.

use std::task::{Poll, Waker};

use bytes::Bytes;
use mcpline_protocol::Scopes;
use mcpline_protocol::wire::encode;
use mcpline_protocol::{RequestId, RpcError};

use crate::message_sink::{MessageKind, MessageSink, ResponseStatus};
use crate::quota::{self, ClientQuota, Exceeded, UNCHARGED_BYTES};
use crate::sync::{Arc, Mutex, OnceLock, PoisonError};
use crate::warning_limit::warn_limited;

use super::stream::Stream;

/// One POST's answer in the making.
pub(super) struct Exchange {
    state: Mutex<State>,
    /// Makes the stream, when one is needed.
    open: Box<dyn Fn() -> Arc<Stream> + Send + Sync>,
    /// The scopes that the caller lacks, if that is why it is refused.
    demanded: OnceLock<Scopes>,
    /// Whom the answer is held for.
    client: Arc<ClientQuota>,
    /// The id of the request, unless it is a batch.
    id: Option<RequestId>,
}

enum State {
    Waiting(Option<Waker>),
    Decided(Outcome),
    Streaming(Arc<Stream>),
    /// The outcome was handed out, or nobody waits any more.
    Done,
}

/// How a POST is answered.
pub(super) enum Outcome {
    /// With one JSON body.
    Json(Bytes, ResponseStatus),
    /// With an event stream.
    Stream(Arc<Stream>),
    /// Not at all: the request was cancelled.
    Nothing,
}

impl Exchange {
    /// The answer to a request, which is held for `client`. `open` makes the stream when one is needed.
    pub(super) fn new(
        client: Arc<ClientQuota>,
        id: Option<RequestId>,
        open: impl Fn() -> Arc<Stream> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            client,
            id,
            state: Mutex::new(State::Waiting(None)),
            open: Box::new(open),
            demanded: OnceLock::new(),
        })
    }

    /// Whom the answer is held for.
    pub(super) fn client(&self) -> &Arc<ClientQuota> {
        &self.client
    }

    /// The scopes that the caller needs, if it was refused for want of them.
    pub(super) fn demanded(&self) -> Option<&Scopes> {
        self.demanded.get()
    }

    fn lock(&self) -> crate::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outcome, once it is decided.
    pub(super) fn poll(&self, cx: &std::task::Context<'_>) -> Poll<Outcome> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Done) {
            State::Decided(outcome) => {
                if let Outcome::Stream(stream) = &outcome {
                    *state = State::Streaming(stream.clone());
                }
                Poll::Ready(outcome)
            }
            State::Waiting(_) => {
                *state = State::Waiting(Some(cx.waker().clone()));
                Poll::Pending
            }
            State::Streaming(stream) => {
                *state = State::Streaming(stream.clone());
                Poll::Ready(Outcome::Stream(stream))
            }
            State::Done => Poll::Ready(Outcome::Nothing),
        }
    }

    /// Whether its one answer is decided: nothing follows.
    pub(super) fn is_answered(&self) -> bool {
        match &*self.lock() {
            State::Decided(Outcome::Json(..) | Outcome::Nothing) | State::Done => true,
            State::Decided(Outcome::Stream(stream)) | State::Streaming(stream) => stream.is_ended(),
            State::Waiting(_) => false,
        }
    }

    /// Has `callback` called if the exchange is a stream and its connection goes away before its end.
    pub(super) fn on_lost(&self, callback: impl FnOnce() + Send + 'static) {
        let stream = match &*self.lock() {
            State::Streaming(stream) => Some(stream.clone()),
            _ => None,
        };
        if let Some(stream) = stream {
            stream.on_lost(callback);
        }
    }

    /// Turns into a stream, if nothing is decided yet.
    pub(super) fn break_silence(&self) {
        let (_, waker) = self.become_stream(&mut self.lock());
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn become_stream(&self, state: &mut State) -> (Option<Arc<Stream>>, Option<Waker>) {
        match state {
            State::Waiting(waker) => {
                let waker = waker.take();
                let stream = (self.open)();
                *state = State::Decided(Outcome::Stream(stream.clone()));
                (Some(stream), waker)
            }
            State::Decided(Outcome::Stream(stream)) | State::Streaming(stream) => {
                (Some(stream.clone()), None)
            }
            State::Decided(_) | State::Done => (None, None),
        }
    }
}

impl Exchange {
    /// The bytes of a response, charged to the client for as long as they are there. Where the client's memory is used up
    /// because it reads too little of what it asks for, an error takes their place.
    fn hold(&self, response: Vec<u8>, status: ResponseStatus) -> (Bytes, ResponseStatus) {
        if response.len() < UNCHARGED_BYTES {
            return (response.into(), status);
        }
        match self.client.hold_bytes(response.len()) {
            Ok(charge) => (quota::charged(response.into(), charge), status),
            Err(exceeded) => self.refused(exceeded),
        }
    }

    /// Sends a message on the stream that the exchange has become.
    fn stream(&self, stream: &Stream, kind: MessageKind, message: Bytes) {
        let sent = stream.message(kind, message);
        let MessageKind::Response(_) = kind else {
            if let Err(exceeded) = sent {
                warn_limited!(%exceeded, "a message of a call was dropped");
            }
            return;
        };
        if let Err(exceeded) = sent {
            // Short, so that it is taken.
            let _ = stream.message(kind, self.refused(exceeded).0);
        }
        stream.end();
    }

    fn refused(&self, exceeded: Exceeded) -> (Bytes, ResponseStatus) {
        warn_limited!(%exceeded, "a response was replaced by an error");
        let error = RpcError::from(exceeded);
        let mut out = Vec::new();
        match &self.id {
            Some(id) => encode::error(&mut out, Some(id), &error),
            None => encode::error_without_id(&mut out, &error),
        }
        (out.into(), ResponseStatus::Error(error.code.0))
    }
}

impl MessageSink for Exchange {
    fn write(&self, kind: MessageKind, hint: usize, encode: &mut dyn FnMut(&mut Vec<u8>)) {
        let mut message = Vec::with_capacity(hint);
        encode(&mut message);
        let mut state = self.lock();
        if let (State::Waiting(waker), MessageKind::Response(status)) = (&mut *state, kind) {
            let waker = waker.take();
            let (message, status) = self.hold(message, status);
            *state = State::Decided(Outcome::Json(message, status));
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
            return;
        }
        let (stream, waker) = self.become_stream(&mut state);
        drop(state);
        if let Some(stream) = stream {
            self.stream(&stream, kind, message.into());
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn is_congested(&self) -> bool {
        let state = self.lock();
        match &*state {
            State::Decided(Outcome::Stream(stream)) | State::Streaming(stream) => {
                stream.is_congested()
            }
            State::Waiting(_) | State::Decided(_) | State::Done => false,
        }
    }

    fn abandon(&self) {
        let mut state = self.lock();
        let mut open = None;
        let waker = match &mut *state {
            State::Waiting(waker) => {
                let waker = waker.take();
                *state = State::Decided(Outcome::Nothing);
                waker
            }
            State::Decided(Outcome::Stream(stream)) | State::Streaming(stream) => {
                open = Some(stream.clone());
                None
            }
            State::Decided(_) | State::Done => None,
        };
        drop(state);
        // What it lets go of may hold this exchange.
        if let Some(stream) = open {
            stream.end();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn demand(&self, needed: &Scopes) {
        // There is one answer, so this is said once.
        let _ = self.demanded.set(needed.clone());
    }

    fn close_stream(&self) {
        let mut state = self.lock();
        let (stream, waker) = self.become_stream(&mut state);
        drop(state);
        if let Some(stream) = stream {
            stream.close_connection();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
