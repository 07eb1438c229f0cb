//! The call of a function that implements a part of shared state in another language. It belongs to no client: the executors of
//! the server run it as they run handlers.

use std::any::Any;

use mcpline_protocol::session::{ClientProfile, SessionScope};
use mcpline_protocol::wire::{Method, Raw};
use mcpline_protocol::{RequestId, Revision};
use tokio::sync::oneshot;

use crate::message_sink::{Encode, MessageKind, MessageSink};
use crate::quota::ClientQuota;
use crate::sharing::{SharingReply, SharingRequest};
use crate::sync::{Arc, Mutex, PoisonError};

use super::Inner;
use super::call::{CallState, CurrentRequest, Target};
use super::connection::{Connection, ConnectionOptions};
use super::handler::Handler;
use super::input_requests::InputRecord;
use super::reply::{HandlerError, Reply};
use super::traffic::TransportKind;

/// A request to shared state, and where its answer goes.
pub(crate) struct SharingCall {
    pub(super) handler: Arc<dyn Handler>,
    request: SharingRequest,
    waiting: Mutex<Option<Waiting>>,
}

/// What ends with the call.
struct Waiting {
    sender: oneshot::Sender<Result<Reply, HandlerError>>,
    /// Dropped when the function has returned, which may be after its caller has stopped waiting.
    _held: Box<dyn Any + Send>,
}

impl SharingCall {
    pub(super) fn request(&self) -> &SharingRequest {
        &self.request
    }

    /// Passes the outcome to the caller.
    pub(super) fn end(&self, outcome: Result<Reply, HandlerError>) {
        let waiting = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.take()
        };
        if let Some(waiting) = waiting {
            // The caller may no longer wait.
            let _ = waiting.sender.send(outcome);
        }
    }
}

/// A call of a function, which is cancelled when this is dropped.
pub(crate) struct RunningSharingCall {
    call: Arc<CallState>,
    outcome: oneshot::Receiver<Result<Reply, HandlerError>>,
}

impl RunningSharingCall {
    /// Cancels the function. Its outcome is still to come: it may clean up, or ignore that it is cancelled.
    pub(crate) fn cancel(&self) {
        self.call.cancel();
    }

    /// Waits until the function has returned.
    ///
    /// # Errors
    ///
    /// That of the function, or it replied with something else.
    pub(crate) async fn outcome(&mut self) -> Result<SharingReply, HandlerError> {
        let outcome = (&mut self.outcome).await;
        match outcome
            .unwrap_or_else(|_| Err(HandlerError::Internal("the server has ended".into())))?
        {
            Reply::Sharing(reply) => Ok(reply),
            _ => Err(HandlerError::Internal(
                "the function replied with the result of a feature".into(),
            )),
        }
    }
}

impl Drop for RunningSharingCall {
    fn drop(&mut self) {
        // Without effect once it has ended.
        self.call.cancel();
    }
}

/// Calls a function, on behalf of no client. `held` is dropped when the function has returned.
pub(crate) fn start_sharing_function(
    server: &Arc<Inner>,
    client: Arc<ClientQuota>,
    handler: Arc<dyn Handler>,
    request: SharingRequest,
    held: impl Any + Send,
) -> RunningSharingCall {
    let sink: Arc<dyn MessageSink> = Arc::new(NoClient);
    let connection = Connection::for_one_exchange(
        server,
        ConnectionOptions {
            scope: SessionScope::Exchange,
            limits: server.settings.session,
            general: sink.clone(),
            session_id: None,
            auth: None,
            principal: String::new(),
            transport: server.next_transport(),
            transport_kind: TransportKind::Memory,
            traffic: None,
            client,
        },
    );
    let (sender, outcome) = oneshot::channel();
    let method = Method::from(request.name());
    let current_request = CurrentRequest {
        connection,
        sink,
        key: None,
        id: RequestId::string(""),
        peer: Arc::new(ClientProfile {
            revision: Revision::V2026_07_28,
            info: None,
            capabilities: Raw::EMPTY_OBJECT,
        }),
        http: None,
        meta: None,
        in_flight: None,
        span: None,
        middleware: None,
        was_approved: Default::default(),
    };
    let call = CallState::new(
        Target::Sharing(Arc::new(SharingCall {
            handler,
            request,
            waiting: Mutex::new(Some(Waiting {
                sender,
                _held: Box::new(held),
            })),
        })),
        method,
        None,
        Raw::EMPTY_OBJECT,
        None,
        InputRecord::default(),
        Arc::new(current_request),
    );
    let call = RunningSharingCall { call, outcome };
    call.call.start();
    call
}

/// Sink for messages to an MCP client, which the call does not have.
struct NoClient;

impl MessageSink for NoClient {
    fn write(&self, _: MessageKind, _: usize, _: Encode<'_>) {}
}
