//! Exports batches, and keeps why the last one that was lost was not exported.

use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as ExportSpans};

use crate::sync::{Arc, Mutex, PoisonError};
use crate::warning_limit::warn_limited;

/// The exporter of OTLP, whose failures the SDK keeps for itself.
#[derive(Debug)]
pub(super) struct FailureLoggingExporter {
    exporter: SpanExporter,
    attempt: FailureText,
    failure: FailureText,
}

/// Why something has failed.
#[derive(Debug, Clone, Default)]
pub(super) struct FailureText(Arc<Mutex<Option<String>>>);

impl FailureText {
    pub(super) fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }
}

impl FailureLoggingExporter {
    /// `attempt` has the failure of the last request, `failure` gets that of the last batch.
    pub(super) fn new(exporter: SpanExporter, attempt: FailureText, failure: FailureText) -> Self {
        Self {
            exporter,
            attempt,
            failure,
        }
    }
}

impl ExportSpans for FailureLoggingExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let exported = self.exporter.export(batch).await;
        let attempt = self.attempt.take();
        if let Err(error) = &exported {
            let reason = attempt.unwrap_or_else(|| error.to_string());
            warn_limited!(spans, reason, "spans were not exported");
            self.failure.set(reason);
        }
        exported
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
