//! Statistics of a server for foreign code.

use crate::server::Server;

/// Returns the [statistics](Server::stats) of a server as JSON: an object with times in seconds.
pub fn stats_json(server: &Server) -> String {
    // Numbers and fixed names always serialize.
    serde_json::to_string(&server.stats()).unwrap_or_default()
}
