//! What a handler wants done in the course of its call, on its way to the I/O thread.

use mcpline_protocol::wire::Raw;

use crate::error::Error;
use crate::quota::Charge;
use crate::server::{Context, check_notification};
use crate::warning_limit::warn_limited;

use super::IoAction;
use super::io_queue::REPORT_BYTES;

/// A log message or progress that holds so many bytes. Handlers on threads of their own report faster than the I/O thread
/// takes it in, so what waits is charged to the call's client. `None` if that has no room: then the report is dropped.
pub fn report(
    context: &Context,
    bytes: usize,
    report: impl FnOnce(&Context) + Send + 'static,
) -> Option<IoAction> {
    match context.client().hold_bytes_if_free(REPORT_BYTES + bytes) {
        Ok(charge) => Some(charged(context, charge, report)),
        Err(exceeded) => {
            warn_limited!(%exceeded, "dropped a progress report or a log message of a call");
            None
        }
    }
}

/// A notification that no revision defines, which is charged and dropped as a report is.
///
/// # Errors
///
/// As [`Context::notify`].
pub fn notification(
    context: &Context,
    method: String,
    params: Option<Raw>,
) -> Result<Option<IoAction>, Error> {
    check_notification(&method, params.as_ref())?;
    let bytes = method.len() + params.as_ref().map_or(0, |params| params.as_bytes().len());
    Ok(report(context, bytes, move |context| {
        // It was checked.
        let _ = context.notify(&method, params.as_ref());
    }))
}

/// Anything else that a handler wants done, which is charged, but never dropped.
pub fn request(context: &Context, request: impl FnOnce(&Context) + Send + 'static) -> IoAction {
    let charge = context.client().hold_bytes_anyway(REPORT_BYTES);
    charged(context, charge, request)
}

fn charged(
    context: &Context,
    charge: Charge,
    act: impl FnOnce(&Context) + Send + 'static,
) -> IoAction {
    let context = context.clone();
    IoAction::Run(Box::new(move || {
        // Whatever is made of it has a charge of its own.
        drop(charge);
        act(&context);
    }))
}
