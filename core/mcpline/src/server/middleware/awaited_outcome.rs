//! The outcome of a request, on its way from the handler to the middleware that waits for it.

use tokio::sync::oneshot;

use mcpline_protocol::RpcError;
use mcpline_protocol::wire::Raw;

use crate::message_sink::ResponseStatus;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, PoisonError, Weak};

use super::super::call::CallState;
use super::super::request_log::RequestOutcome;

/// Takes the outcome of one run of a request in place of the client.
pub(in super::super) struct AwaitedOutcome {
    sender: Mutex<Option<oneshot::Sender<EndedRequest>>>,
    /// The call, once there is one. Weak, because the call has this.
    call: Mutex<Weak<CallState>>,
    /// Whether middleware has changed the parameters.
    is_changed: bool,
    /// Whether the user is asked before the tool runs.
    needs_approval: AtomicBool,
}

/// How a run of a request ended.
pub(super) struct EndedRequest {
    pub(super) outcome: Result<Raw, RpcError>,
    pub(super) status: ResponseStatus,
    /// As the log of requests names it.
    pub(super) logged: RequestOutcome,
}

impl AwaitedOutcome {
    pub(super) fn new(is_changed: bool) -> (Arc<Self>, oneshot::Receiver<EndedRequest>) {
        let (sender, receiver) = oneshot::channel();
        let awaited = Arc::new(Self {
            sender: Mutex::new(Some(sender)),
            call: Mutex::new(Weak::new()),
            is_changed,
            needs_approval: AtomicBool::new(false),
        });
        (awaited, receiver)
    }

    /// Whether the parameters differ from those that the client sent, so that headers need not match them.
    pub(in super::super) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Records that the user is asked before the tool runs.
    pub(in super::super) fn set_needs_approval(&self) {
        self.needs_approval.store(true, Ordering::Release);
    }

    /// Whether the user is, or was, asked before the tool runs.
    pub(super) fn needs_approval(&self) -> bool {
        self.needs_approval.load(Ordering::Acquire)
    }

    /// Sets the call that is cancelled if nothing waits for the outcome any more. Returns `false` if that has happened.
    pub(in super::super) fn set_call(&self, call: &Arc<CallState>) -> bool {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(call);
        sender.is_some()
    }

    /// Passes the outcome on. Returns `false` if nothing waits for it, or it has one.
    pub(in super::super) fn end(
        &self,
        outcome: Result<Raw, RpcError>,
        status: ResponseStatus,
        logged: RequestOutcome,
    ) -> bool {
        let ended = EndedRequest {
            outcome,
            status,
            logged,
        };
        self.take_sender()
            .is_some_and(|sender| sender.send(ended).is_ok())
    }

    fn take_sender(&self) -> Option<oneshot::Sender<EndedRequest>> {
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        sender.take()
    }
}

/// Cancels the handler of a run when it is dropped before the outcome.
pub(super) struct CancelOnDrop(pub(super) Arc<AwaitedOutcome>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(sender) = self.0.take_sender() else {
            return;
        };
        drop(sender);
        let call = {
            let mut call = self.0.call.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *call).upgrade()
        };
        if let Some(call) = call {
            call.cancel();
        }
    }
}
