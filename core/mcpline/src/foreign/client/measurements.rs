//! Statistics and metrics of clients for foreign code.

use std::borrow::Borrow;

use super::connection::{Connection, WrongPhaseError};

impl Connection {
    /// Returns the [statistics](crate::client::Client::stats) of the client as JSON: an object with times in seconds.
    ///
    /// # Errors
    ///
    /// [`WrongPhaseError::NotConnected`], [`WrongPhaseError::Closed`]
    pub fn stats_json(&self) -> Result<String, WrongPhaseError> {
        let stats = self.client()?.stats();
        // Numbers and fixed names always serialize.
        Ok(serde_json::to_string(&stats).unwrap_or_default())
    }

    /// Returns the metrics of the client as text. Empty if they are off.
    ///
    /// # Errors
    ///
    /// [`WrongPhaseError::NotConnected`], [`WrongPhaseError::Closed`]
    pub fn metrics_text(&self) -> Result<String, WrongPhaseError> {
        let client = self.client()?;
        #[cfg(feature = "metrics")]
        return Ok(client.metrics_text());
        #[cfg(not(feature = "metrics"))]
        {
            // It is open, which is all that there is to say.
            drop(client);
            Ok(String::new())
        }
    }
}

/// Returns the metrics of several clients as one text, each with its name as a label. Those that are not connected, and those
/// whose metrics are off, are left out.
#[cfg(feature = "metrics")]
pub fn client_metrics<C: Borrow<Connection>>(
    clients: impl IntoIterator<Item = (String, C)>,
) -> String {
    let clients = clients.into_iter();
    let open: Vec<_> = clients
        .filter_map(|(name, connection)| Some((name, connection.borrow().client().ok()?)))
        .collect();
    let named = open.iter().map(|(name, client)| (&**name, client));
    crate::client::Client::metrics_of(named)
}
