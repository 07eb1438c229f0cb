//! Runs middleware around the messages that are not requests of a client: input requests and notifications of handlers, and
//! notifications for handlers. A middleware sees them if its scope names their method.

use mcpline_protocol::wire::{Method, Params};
use tokio::sync::watch;

use crate::middleware::{MessageKind, MiddlewareFuture, MiddlewareRequest, Next, NextStep};
use crate::sync::Arc;

use super::super::call::{CallState, CurrentRequest};
use super::super::inner::Inner;
use super::{MiddlewareImpl, handler_call, targets};

/// Middlewares that see a message, in the order in which it meets them. Never empty.
pub(in super::super) struct MessageMiddlewares(Vec<MiddlewareImpl>);

/// Which middlewares see a message.
#[derive(Clone, Copy)]
enum MessageVisibility {
    /// Those that name the method, of a message of the client.
    Received,
    /// Those that name the method, and redactions, of a message to the client.
    Sent,
    /// Redactions alone.
    Redacted,
}

/// What a message is, and where it comes from.
pub(in super::super) struct Message {
    pub(in super::super) kind: MessageKind,
    pub(in super::super) method: Method,
    pub(in super::super) params: Option<Params>,
    pub(in super::super) request: Arc<CurrentRequest>,
}

/// Passes a message on after the last middleware.
pub(in super::super) type PassOn = Box<dyn Fn(MiddlewareRequest) -> MiddlewareFuture + Send + Sync>;

struct MessageChain {
    middlewares: Vec<MiddlewareImpl>,
    request: Arc<CurrentRequest>,
    /// Closed when the message is of no use any more.
    end: watch::Receiver<()>,
    pass_on: PassOn,
}

/// The position in a chain.
struct MessageStep {
    chain: Arc<MessageChain>,
    index: usize,
}

impl MessageMiddlewares {
    /// Returns the middlewares that see a message which a handler sends: those of the server, and of the mounted servers that
    /// the feature comes from. `None` if there are none.
    #[inline]
    pub(in super::super) fn of_call(call: &CallState, method: &str) -> Option<Self> {
        if !call.server.middlewares.has_message_middleware() {
            return None;
        }
        let seen = match call.is_middleware() {
            // What a middleware sends is redacted, and seen by no other code, which might send the same again.
            true => MessageVisibility::Redacted,
            false => MessageVisibility::Sent,
        };
        Self::of_servers(call.message_servers(), method, seen)
    }

    /// Returns the middlewares that see a notification of a client to this server.
    #[inline]
    pub(in super::super) fn of_server(server: &Arc<Inner>, method: &str) -> Option<Self> {
        if !server.middlewares.has_message_middleware() {
            return None;
        }
        let servers = targets::servers_of_notification(server, method);
        Self::of_servers(&servers, method, MessageVisibility::Received)
    }

    fn of_servers(servers: &[Arc<Inner>], method: &str, seen: MessageVisibility) -> Option<Self> {
        let mut middlewares = Vec::new();
        for server in servers {
            let list = server.middlewares.list();
            let seeing = list.iter().filter(|registered| match seen {
                MessageVisibility::Received => registered.scope.names(method),
                MessageVisibility::Sent => {
                    registered.scope.names(method) || registered.redacts_everything()
                }
                MessageVisibility::Redacted => {
                    registered.redacts_everything()
                        || registered.redacts() && registered.scope.names(method)
                }
            });
            let seeing = seeing.map(|registered| registered.middleware.clone());
            match seen {
                MessageVisibility::Received => middlewares.extend(seeing),
                // It passes the outermost middleware last.
                MessageVisibility::Sent | MessageVisibility::Redacted => {
                    middlewares.extend(seeing.rev())
                }
            }
        }
        (!middlewares.is_empty()).then_some(Self(middlewares))
    }

    /// Runs the middlewares around a message, which the last one passes on to `pass_on`. Closing `end` tells middleware of other
    /// languages that the message is of no use any more.
    pub(in super::super) fn run(
        self,
        message: Message,
        end: watch::Receiver<()>,
        pass_on: PassOn,
    ) -> MiddlewareFuture {
        let Message {
            kind,
            method,
            params,
            request,
        } = message;
        let seen = MiddlewareRequest::new(kind, method, params, request.clone());
        let first = MessageStep {
            chain: Arc::new(MessageChain {
                middlewares: self.0,
                request,
                end,
                pass_on,
            }),
            index: 0,
        };
        first.run(seen)
    }
}

impl NextStep for MessageStep {
    fn run(&self, request: MiddlewareRequest) -> MiddlewareFuture {
        let Some(middleware) = self.chain.middlewares.get(self.index) else {
            return (self.chain.pass_on)(request);
        };
        let next = Next::new(Self {
            chain: self.chain.clone(),
            index: self.index + 1,
        });
        match middleware {
            MiddlewareImpl::Rust(middleware) => middleware.handle(request, next),
            MiddlewareImpl::Foreign(handler) => {
                let (handler, chain) = (handler.clone(), self.chain.clone());
                Box::pin(async move {
                    let end = chain.end.clone();
                    handler_call::call(handler, &chain.request, request, next, end).await
                })
            }
        }
    }
}
