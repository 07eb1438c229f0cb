//! Options of an exporter of spans.

use super::options_macro::options;

options! {
    /// [`OtlpSettings`](crate::otlp::OtlpSettings) from foreign code.
    #[derive(Default)]
    pub struct SpanExportOptions {
        pub(crate) endpoint: Option<String>,
        pub(crate) headers: Vec<(String, String)>,
        pub(crate) service_name: Option<String>,
    }
}

/// Omits what may be secret.
impl std::fmt::Debug for SpanExportOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpanExportOptions").finish_non_exhaustive()
    }
}
