//! The response to one POST: a single JSON body, or an event stream from the moment when there is another message, or
//! none for too long.

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

/// The response to one POST while it is being produced.
pub(super) struct PostResponse {
    state: Mutex<State>,
    /// Creates the stream when it is needed.
    open: Box<dyn Fn() -> Arc<Stream> + Send + Sync>,
    /// The scopes that the caller lacks, if it is refused for that reason.
    demanded: OnceLock<Scopes>,
    /// The client that the response is charged to.
    client: Arc<ClientQuota>,
    /// The id of the request, unless it is a batch.
    id: Option<RequestId>,
}

enum State {
    Waiting(Option<Waker>),
    Decided(Outcome),
    Streaming(Arc<Stream>),
    /// The outcome was taken, or it is no longer needed.
    Done,
}

/// The form of the response to a POST.
pub(super) enum Outcome {
    /// One JSON body.
    Json(Bytes, ResponseStatus),
    /// An event stream.
    Stream(Arc<Stream>),
    /// No response: the request was cancelled.
    Nothing,
}

impl PostResponse {
    /// Creates an exchange charged to `client`. `open` creates the stream when it is needed.
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

    /// Returns the client that the response is charged to.
    pub(super) fn client(&self) -> &Arc<ClientQuota> {
        &self.client
    }

    /// Returns the scopes that the caller lacks, if it was refused for that reason.
    pub(super) fn demanded(&self) -> Option<&Scopes> {
        self.demanded.get()
    }

    fn lock(&self) -> crate::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls for the outcome.
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

    /// Whether its single response is decided, so that nothing follows.
    pub(super) fn is_answered(&self) -> bool {
        match &*self.lock() {
            State::Decided(Outcome::Json(..) | Outcome::Nothing) | State::Done => true,
            State::Decided(Outcome::Stream(stream)) | State::Streaming(stream) => stream.is_ended(),
            State::Waiting(_) => false,
        }
    }

    /// Registers a callback for when the exchange is a stream and its connection is lost before its end.
    pub(super) fn on_lost(&self, callback: impl FnOnce() + Send + 'static) {
        let stream = match &*self.lock() {
            State::Streaming(stream) => Some(stream.clone()),
            _ => None,
        };
        if let Some(stream) = stream {
            stream.on_lost(callback);
        }
    }

    /// Becomes a stream, unless the outcome is decided already.
    pub(super) fn upgrade_to_stream(&self) {
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

impl PostResponse {
    /// Returns the bytes of a response, charged to the client for as long as they exist. If the client's memory limit
    /// is exhausted, because it reads too little of what it requests, an error takes their place.
    fn charge_response(
        &self,
        response: Vec<u8>,
        status: ResponseStatus,
    ) -> (Bytes, ResponseStatus) {
        if response.len() < UNCHARGED_BYTES {
            return (response.into(), status);
        }
        match self.client.hold_bytes(response.len()) {
            Ok(charge) => (quota::attach_charge(response.into(), charge), status),
            Err(exceeded) => self.limit_response(exceeded),
        }
    }

    /// Sends a message on the stream that the exchange has become.
    fn stream(&self, stream: &Stream, kind: MessageKind, message: Bytes) {
        let sent = stream.message(kind, message);
        let MessageKind::Response(_) = kind else {
            if let Err(exceeded) = sent {
                self.client.counts().add_dropped_sent(1);
                warn_limited!(%exceeded, "a message of a call was dropped");
            }
            return;
        };
        if let Err(exceeded) = sent {
            // Accepted in any case, because it is short.
            let _ = stream.message(kind, self.limit_response(exceeded).0);
        }
        stream.end();
    }

    fn limit_response(&self, exceeded: Exceeded) -> (Bytes, ResponseStatus) {
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

impl MessageSink for PostResponse {
    fn write(&self, kind: MessageKind, hint: usize, encode: &mut dyn FnMut(&mut Vec<u8>)) {
        let mut message = Vec::with_capacity(hint);
        encode(&mut message);
        let mut state = self.lock();
        if let (State::Waiting(waker), MessageKind::Response(status)) = (&mut *state, kind) {
            let waker = waker.take();
            let (message, status) = self.charge_response(message, status);
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
        // Dropping the callbacks may drop a reference to this exchange, so no lock is held.
        if let Some(stream) = open {
            stream.end();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn report_missing_scopes(&self, needed: &Scopes) {
        // There is only one response, so this is set only once.
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
