//! Statistics and metrics of a server for foreign code.

use crate::server::Server;

/// Returns the [statistics](Server::stats) of a server as JSON: an object with times in seconds.
pub fn stats_json(server: &Server) -> String {
    // Numbers and fixed names always serialize.
    serde_json::to_string(&server.stats()).unwrap_or_default()
}

/// Returns the metrics of a server as text. Empty if they are off.
#[cfg_attr(
    not(feature = "metrics"),
    expect(unused_variables, reason = "they cannot be turned on")
)]
pub fn metrics_text(server: &Server) -> String {
    #[cfg(feature = "metrics")]
    return server.metrics_text();
    #[cfg(not(feature = "metrics"))]
    String::new()
}
