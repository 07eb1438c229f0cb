//! Exports the spans of a program in a language that has no OpenTelemetry of its own.

use tokio::runtime::Handle;

use crate::error::Error;
use crate::http_client::HttpSettings;
use crate::otlp::{OtlpExporter, OtlpSettings};

use super::diagnostics::{self, Diagnostic};
use super::options::{SpanExportOptions, read};

/// An exporter of spans, and the subscriber that passes them to it.
#[derive(Debug)]
pub struct SpanExport(OtlpExporter);

impl SpanExport {
    /// Starts to export spans, and to pass diagnostics to `listener` after [`diagnostics::set_min_level`]. Once per process, and in
    /// place of [`diagnostics::install_listener`]. `options` is [`SpanExportOptions`] as JSON. Requests run on this runtime.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): an option or an environment variable is invalid, or the process has a
    /// subscriber of `tracing`.
    pub fn start(
        options: &[u8],
        runtime: &Handle,
        listener: impl Fn(Diagnostic<'_>) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let options: SpanExportOptions = read("the options", options)?;
        let exporter = {
            let _entered = runtime.enter();
            OtlpExporter::start(options.settings())?
        };
        if !diagnostics::listen_and_export(&exporter, listener) {
            exporter.shut_down_here()?;
            return Err(Error::usage(
                "spans are exported already, or diagnostics were requested before: begin to export spans first",
            ));
        }
        Ok(Self(exporter))
    }

    /// Sends the spans that have ended, and ends the exporter. Blocks this thread, which must not be one of the runtime.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Transport`](crate::ErrorKind::Transport): the collector did not take them.
    pub fn stop(self) -> Result<(), Error> {
        self.0.shut_down_here()
    }
}

impl SpanExportOptions {
    fn settings(self) -> OtlpSettings {
        OtlpSettings {
            endpoint: self.endpoint,
            headers: self.headers,
            service_name: self.service_name,
            http: HttpSettings::default(),
        }
    }
}
