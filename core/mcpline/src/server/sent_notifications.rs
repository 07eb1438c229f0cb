//! Notifications of handlers that middleware sees before the client does.

use std::sync::Arc;

use mcpline_protocol::vocabulary::LoggingLevel;
use mcpline_protocol::wire::{Method, Params, Raw};
use serde::{Deserialize, Serialize};

use crate::middleware::{MessageKind, MiddlewareRequest};
use crate::warning_limit::warn_limited;

use super::call::CallState;
use super::middleware::{Message, MessageMiddlewares, outcome_until};

/// The parameters of `notifications/progress` without its token.
#[derive(Serialize, Deserialize)]
pub(super) struct ProgressReport {
    pub(super) progress: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) total: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
}

/// The parameters of `notifications/message`.
#[derive(Serialize, Deserialize)]
pub(super) struct LogRecord {
    pub(super) level: LoggingLevel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) logger: Option<String>,
    pub(super) data: Raw,
}

/// Reads the parameters of a notification; `None`, with a warning, if a middleware has made them unusable.
pub(super) fn read<T: for<'de> Deserialize<'de>>(method: &str, params: Option<&Raw>) -> Option<T> {
    let read = params.unwrap_or(&Raw::EMPTY_OBJECT).decode();
    if let Err(error) = &read {
        warn_limited!(
            method,
            %error,
            "a notification was not sent: a middleware changed its parameters to something else"
        );
    }
    read.ok()
}

/// Lets middleware see a notification of the handler; the last one passes it on to `send`, with its parameters. Notifications
/// keep their order, and the outcome of the handler follows them. One that a middleware refuses or does not pass on is dropped.
pub(super) fn send(
    call: &Arc<CallState>,
    middlewares: MessageMiddlewares,
    method: Method,
    params: Option<Raw>,
    send: impl Fn(Option<&Raw>) + Send + Sync + 'static,
) {
    if call.has_too_many_messages() {
        let request = call.current_request();
        request.connection.client().counts().add_dropped_sent(1);
        tracing::debug!(
            method = method.as_str(),
            "dropped a notification of a handler: too many wait for middleware"
        );
        return;
    }
    let end = call.cancelled();
    let message = Message {
        kind: MessageKind::SentNotification,
        method: method.clone(),
        params: params.and_then(Params::from_raw),
        request: call.current_request(),
    };
    let chain = middlewares.run(message, end.clone(), move |request: MiddlewareRequest| {
        send(request.params());
        Box::pin(std::future::ready(Ok(Raw::EMPTY_OBJECT)))
    });
    call.deliver(Box::pin(async move {
        if let Some(Err(error)) = outcome_until(end, chain).await {
            tracing::debug!(
                method = method.as_str(),
                error = %error.message,
                "a middleware refused a notification of a handler"
            );
        }
    }));
}
