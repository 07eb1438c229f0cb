//! What a handler reports in the course of its call, on its way to the I/O thread.

use crate::server::Context;

use super::Completion;

/// A report that holds so many bytes. Handlers on threads of their own report faster than the I/O thread takes it in, so
/// what waits is charged to the call's client. `None` if that has no room: then the report is dropped.
pub fn report(
    context: &Context,
    bytes: usize,
    report: impl FnOnce(&Context) + Send + 'static,
) -> Option<Completion> {
    let charge = match context.client().hold_bytes_if_free(bytes) {
        Ok(charge) => charge,
        Err(exceeded) => {
            tracing::warn!(%exceeded, "a report of a call was dropped");
            return None;
        }
    };
    let context = context.clone();
    Some(Completion::Run(Box::new(move || {
        // Whatever is made of it has a charge of its own.
        drop(charge);
        report(&context);
    })))
}
