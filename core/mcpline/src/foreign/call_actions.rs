//! Actions of a handler during its call, on their way to the I/O thread.

use mcpline_protocol::wire::Raw;

use crate::error::Error;
use crate::middleware::MiddlewareOutcome;
use crate::quota::Charge;
use crate::server::{Context, check_notification};
use crate::warning_limit::warn_limited;

use super::IoAction;
use super::io_thread_queue::REPORT_BYTES;

/// Returns the action for a log message or progress report of this size. Handlers on their own threads report faster
/// than the I/O thread processes, so waiting reports are charged to the call's client. Returns `None` if that has no
/// room; the report is then dropped.
pub fn report(
    context: &Context,
    bytes: usize,
    report: impl FnOnce(&Context) + Send + 'static,
) -> Option<IoAction> {
    match context.client().hold_bytes_if_free(REPORT_BYTES + bytes) {
        Ok(charge) => Some(charged_action(context, charge, report)),
        Err(exceeded) => {
            warn_limited!(
                %exceeded,
                "dropped a progress report or log message: no memory is left for its client (`max_total_client_bytes`, `client_share`)"
            );
            None
        }
    }
}

/// Returns the action for a custom notification, which is charged and dropped like a report.
///
/// # Errors
///
/// As for [`Context::notify`].
pub fn notification(
    context: &Context,
    method: String,
    params: Option<Raw>,
) -> Result<Option<IoAction>, Error> {
    check_notification(&method, params.as_ref())?;
    let bytes = method.len() + params.as_ref().map_or(0, |params| params.as_bytes().len());
    Ok(report(context, bytes, move |context| {
        // It has been checked above.
        let _ = context.notify(&method, params.as_ref());
    }))
}

/// Returns the action that passes the request of a middleware's call on; see [`CallKind::Middleware`]. `params` are the
/// changed parameters: a JSON object. `callback` gets the outcome, on an I/O thread, once.
///
/// [`CallKind::Middleware`]: crate::server::CallKind::Middleware
pub fn run_next(
    context: &Context,
    params: Option<Raw>,
    callback: impl FnOnce(MiddlewareOutcome) + Send + 'static,
) -> IoAction {
    request(context, move |context| {
        context.run_next(params, Box::new(callback));
    })
}

/// Returns the action for anything else that a handler does. It is charged, but never dropped.
pub fn request(context: &Context, request: impl FnOnce(&Context) + Send + 'static) -> IoAction {
    let charge = context.client().hold_bytes_anyway(REPORT_BYTES);
    charged_action(context, charge, request)
}

fn charged_action(
    context: &Context,
    charge: Charge,
    act: impl FnOnce(&Context) + Send + 'static,
) -> IoAction {
    let context = context.clone();
    IoAction::Run(Box::new(move || {
        // The messages that it sends have their own charges.
        drop(charge);
        act(&context);
    }))
}
