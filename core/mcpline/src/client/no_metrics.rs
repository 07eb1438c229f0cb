//! The interface of a client's metrics, without the feature `metrics`: they cannot be turned on.

use std::convert::Infallible;

use mcpline_protocol::wire::Raw;

use crate::client_error::ClientError;
use crate::sync::Arc;

use super::inner::Inner;
use super::session::Session;
use super::settings::ClientSettings;

/// Metrics, which do not exist.
pub(super) struct ClientMetrics(Infallible);

/// A request that is measured.
pub(super) struct MeasuredRequest(Infallible);

impl ClientMetrics {
    pub(super) fn of(settings: &ClientSettings) -> Result<Option<Arc<Self>>, ClientError> {
        match settings.metrics {
            false => Ok(None),
            true => Err(ClientError::Usage(
                "`metrics` needs the feature `metrics`, which this build lacks".to_owned(),
            )),
        }
    }

    pub(super) fn record_session(&self, _: &Session) {
        match self.0 {}
    }
}

impl MeasuredRequest {
    pub(super) fn begin(client: &Inner, _: &str, _: Option<&Raw>) -> Option<Self> {
        match client.metrics.as_ref()?.0 {}
    }

    pub(super) fn end(self, _: &Result<Raw, ClientError>) {
        match self.0 {}
    }
}
