//! The interface of metrics, without the feature `metrics`: they cannot be turned on.

use std::convert::Infallible;
use std::time::Duration;

use mcpline_protocol::Revision;
use mcpline_protocol::session::InputRequestError;
use mcpline_protocol::wire::{Method, Raw};

use crate::error::Error;
use crate::message_sink::MessageSink;
use crate::sync::Arc;

use super::inner::Inner;
use super::request_log::RequestOutcome;
use super::settings::Settings;
use super::traffic::TransportKind;

/// Metrics, which do not exist.
pub(crate) struct Metrics(Infallible);

/// The request that metrics are about, as its labels name it.
pub(super) struct OperationNames(Infallible);

impl Metrics {
    pub(super) fn of(settings: &Settings) -> Result<Option<Arc<Self>>, Error> {
        match settings.metrics {
            false => Ok(None),
            true => Err(Error::usage(
                "`metrics` needs the feature `metrics`, which this build lacks",
            )),
        }
    }

    pub(super) fn record_operation(
        &self,
        _: &OperationNames,
        _: RequestOutcome,
        _: Option<Revision>,
        _: TransportKind,
        _: Duration,
    ) {
        match self.0 {}
    }

    pub(super) fn record_input_request(
        &self,
        _: Method,
        _: &Result<Raw, InputRequestError>,
        _: Revision,
        _: TransportKind,
        _: Duration,
    ) {
        match self.0 {}
    }

    pub(super) fn record_queue_time(&self, _: Duration) {
        match self.0 {}
    }

    pub(super) fn add_received(&self, _: TransportKind, _: usize) {
        match self.0 {}
    }

    pub(super) fn counting_sink(
        self: &Arc<Self>,
        _: TransportKind,
        _: &Arc<dyn MessageSink>,
    ) -> Arc<dyn MessageSink> {
        match self.0 {}
    }

    pub(super) fn record_session(&self, _: Revision, _: TransportKind, _: Duration) {
        match self.0 {}
    }
}

impl OperationNames {
    pub(super) fn of(server: &Inner, _: &Method, _: &str) -> Option<Self> {
        match server.metrics.as_ref()?.0 {}
    }
}
