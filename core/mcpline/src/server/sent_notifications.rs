//! Notifications of handlers that middleware sees before the client does.

use mcpline_protocol::vocabulary::LoggingLevel;
use mcpline_protocol::wire::{Method, Params, Raw};
use serde::{Deserialize, Serialize};

use crate::middleware::{MessageKind, MiddlewareFuture, MiddlewareRequest};
use crate::sync::{Arc, Mutex, PoisonError};
use crate::warning_limit::warn_limited;

use super::call::CallState;
use super::middleware::{LatestReport, Message, MessageMiddlewares, WaitingMessage, outcome_until};

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
            "dropped a notification: a middleware made its parameters invalid"
        );
    }
    read.ok()
}

/// Sends a notification with these parameters.
pub(super) type SendParams = Box<dyn Fn(Option<&Raw>) + Send + Sync>;

/// A notification of a handler, and what sends it after the last middleware.
pub(super) struct SentNotification {
    pub(super) method: Method,
    pub(super) params: Option<Raw>,
    pub(super) send: SendParams,
}

/// Lets middleware see a notification of the handler. Notifications keep their order, and the outcome of the handler follows
/// them. One that a middleware refuses or does not pass on is dropped.
pub(super) fn send(
    call: &Arc<CallState>,
    middlewares: MessageMiddlewares,
    notification: SentNotification,
) {
    send_latest(call, middlewares, notification, false);
}

/// As [`send`], for a report of progress: while it waits, a later one takes its place, so that the last one is not dropped.
pub(super) fn send_progress(
    call: &Arc<CallState>,
    middlewares: MessageMiddlewares,
    notification: SentNotification,
) {
    let report = notification.params.as_ref();
    if !report.is_some_and(|report| call.replace_waiting_progress(report)) {
        send_latest(call, middlewares, notification, true);
    }
}

fn send_latest(
    call: &Arc<CallState>,
    middlewares: MessageMiddlewares,
    notification: SentNotification,
    is_progress: bool,
) {
    let SentNotification {
        method,
        params,
        send,
    } = notification;
    let size = params.as_ref().map_or(0, |params| params.as_bytes().len());
    if !is_progress && call.has_too_many_messages(size) {
        let request = call.current_request();
        request.connection.client().counts().add_dropped_sent(1);
        tracing::debug!(
            method = method.as_str(),
            "dropped a notification of a handler: too many wait for middleware"
        );
        return;
    }
    let latest: Option<LatestReport> = match is_progress {
        true => params.clone().map(|report| Arc::new(Mutex::new(report))),
        false => None,
    };
    let (end, sending, report) = (call.cancelled(), call.clone(), latest.clone());
    let delivery = async move {
        let latest = report.map(|report| {
            let latest = report.lock().unwrap_or_else(PoisonError::into_inner);
            latest.clone()
        });
        let params = latest.or(params);
        let message = Message {
            kind: MessageKind::SentNotification,
            method: method.clone(),
            params: params.and_then(Params::from_raw),
            request: sending.current_request(),
        };
        let pass_on = Box::new(move |request: MiddlewareRequest| -> MiddlewareFuture {
            send(request.params());
            Box::pin(std::future::ready(Ok(Raw::EMPTY_OBJECT)))
        });
        let running = end.clone();
        let chain = move || middlewares.run(message, running, pass_on);
        if let Some(Err(error)) = outcome_until(end, chain).await {
            tracing::debug!(
                method = method.as_str(),
                error = %error.message,
                "a middleware refused a notification of a handler"
            );
        }
    };
    call.deliver(WaitingMessage::new(size, delivery).with_progress(latest));
}
