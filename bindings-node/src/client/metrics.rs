//! The metrics of several clients as one text.

use std::sync::Arc;

use mcpline::foreign::client::{Connection, client_metrics};
use napi_derive::napi;

use super::handle::Client;

/// Clients whose metrics are joined.
#[napi]
#[derive(Default)]
pub struct ClientMetrics {
    clients: Vec<(String, Arc<Connection>)>,
}

#[napi]
impl ClientMetrics {
    #[napi(constructor)]
    #[allow(clippy::new_without_default, reason = "only JavaScript creates it")]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a client. Its metrics have the name as a label.
    #[napi(catch_unwind)]
    pub fn add(&mut self, name: String, client: &Client) {
        self.clients.push((name, client.connection().clone()));
    }

    /// Returns the metrics in the text format of Prometheus.
    #[napi(catch_unwind)]
    pub fn text(&self) -> String {
        let clients = self.clients.iter();
        client_metrics(clients.map(|(name, connection)| (name.clone(), connection.clone())))
    }
}
