//! Exports spans to a collector of OpenTelemetry.

use std::ffi::c_char;

#[cfg(not(feature = "otlp"))]
use crate::status::FaultResult;
use crate::status::{entry, mcpl_status};
use crate::text;

/// Begins to export the spans of requests to a collector of OpenTelemetry, with OTLP over HTTP, in the background.
///
/// For programs that do not use OpenTelemetry themselves: the spans of servers and clients, by its semantic conventions for MCP. The
/// span of a call is the parent of those of requests that its handler sends on its thread, and `mcpl_call_trace_context` returns it
/// for others. Only in a library that was built with the feature `otlp`.
///
/// - `options`: a JSON object, or `NULL` for none. What is left out is read from the environment variables of OpenTelemetry, as are
///   `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER` and `OTEL_BSP_...`:
///   - `endpoint`: URL of the collector (`OTEL_EXPORTER_OTLP_ENDPOINT`, else `"http://localhost:4318"`).
///   - `headers`: an array of pairs of strings, such as a key for the collector (`OTEL_EXPORTER_OTLP_HEADERS`).
///   - `service_name`: name of the program in traces (`OTEL_SERVICE_NAME`).
///
/// Call it once, before `mcpl_set_diagnostics` and before the first server or client is created. End it with
/// `mcpl_stop_exporting_spans`. Returns `MCPL_USAGE_ERROR` if an option is invalid, it was called before, or the library was built
/// without the feature.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_export_spans(options: *const c_char) -> mcpl_status {
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        let options = unsafe { text::optional("the options", options)? };
        start(options.unwrap_or("{}"))
    })
}

/// Sends the spans that have ended, and ends the exporter. Without an exporter it does nothing.
///
/// Call it at the end of the program, after servers and clients are freed. Waits for the collector for at most five seconds; if it has
/// not answered by then, the exporter's thread ends when its request does, at most ten seconds later.
/// Returns `MCPL_TRANSPORT_ERROR` if the collector did not take them, and `MCPL_WOULD_DEADLOCK` within a callback. Any other thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_stop_exporting_spans() -> mcpl_status {
    entry(stop)
}

#[cfg(feature = "otlp")]
mod exporter {
    use std::sync::{Arc, Mutex, PoisonError};

    use mcpline::foreign::SpanExport;

    use crate::shared_runtime::{self, SharedRuntime};
    use crate::status::{Fault, FaultResult};
    use crate::{diagnostics, executor, threads};

    /// The exporter, and the runtime that its requests run on.
    static EXPORT: Mutex<Option<(SpanExport, Arc<SharedRuntime>)>> = Mutex::new(None);

    pub(super) fn start(options: &str) -> FaultResult {
        let mut export = EXPORT.lock().unwrap_or_else(PoisonError::into_inner);
        if export.is_some() {
            return Err(Fault::invalid("spans are exported already"));
        }
        let runtime = shared_runtime::enter()?;
        // The exporter has a thread of its own.
        let blocked = threads::block_signals();
        let started = diagnostics::export_spans(options, runtime.handle());
        drop(blocked);
        match started {
            Ok(started) => *export = Some((started, runtime)),
            Err(fault) => {
                drop(runtime);
                shared_runtime::leave();
                return Err(fault);
            }
        }
        Ok(())
    }

    pub(super) fn stop() -> FaultResult {
        if executor::is_library_thread()
            || executor::is_dispatching()
            || executor::is_within_a_callback()
        {
            return Err(Fault::would_deadlock());
        }
        let export = EXPORT.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((export, runtime)) = export else {
            return Ok(());
        };
        let stopped = export.stop();
        drop(runtime);
        shared_runtime::leave();
        Ok(stopped?)
    }
}

#[cfg(feature = "otlp")]
use exporter::{start, stop};

#[cfg(not(feature = "otlp"))]
fn start(_: &str) -> FaultResult {
    Err(crate::status::Fault::invalid(
        "this library was built without the feature `otlp`",
    ))
}

#[cfg(not(feature = "otlp"))]
fn stop() -> FaultResult {
    Ok(())
}
