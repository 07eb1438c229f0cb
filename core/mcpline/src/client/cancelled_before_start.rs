//! Records of requests that a program of another language gives up before they begin.

use mcpline_protocol::wire::Raw;
use mcpline_runtime::clock;

use crate::middleware::MAX_RECORD_REDACTION_TIME;

use super::Client;
use super::metrics::MeasuredRequest;
use super::middleware::ClientRequest;
use super::request::{check_params, split_meta};
use super::request_log::RunningRequest;
use super::settings::RequestOptions;

impl Client {
    /// Records that a request was cancelled before it was sent: in the audit logs of the client's middleware, in the log of
    /// requests and in the metrics. A request with invalid parameters has no record, whether it begins or not.
    pub(crate) fn record_cancelled_before_start(
        &self,
        method: &str,
        params: Option<&Raw>,
        options: &RequestOptions,
    ) {
        let inner = self.inner();
        let Ok((params, options)) =
            check_params(params).and_then(|()| split_meta(params, options.clone()))
        else {
            return;
        };
        let params = params.as_ref();
        // Recorded as cancelled when they are dropped.
        let _measured = MeasuredRequest::begin(inner, method, params);
        let _running = RunningRequest::of_sent(inner, method, params, &options);
        if inner.handlers.middlewares.is_empty() {
            return;
        }
        let Some(client) = inner.this.upgrade() else {
            return;
        };
        let until = clock::now().saturating_add(MAX_RECORD_REDACTION_TIME);
        let mut request = ClientRequest::new(client, method, params, &options);
        for middleware in inner.handlers.middlewares.iter() {
            middleware.record_cancelled_before_start(&request);
            // Those after a redaction must not see what it replaces.
            request.redact_arguments(|arguments| middleware.redact_recorded(arguments, until));
        }
    }
}
