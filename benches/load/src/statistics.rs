//! Latencies and the figures of one window.

use std::time::Duration;

use serde_json::{Value, json};

/// Computes the figures of a measured window.
pub fn figures(mut latencies: Vec<u32>, wall: Duration, server: Duration) -> Value {
    let calls = latencies.len();
    latencies.sort_unstable();
    let at = |share: f64| -> f64 {
        let index = ((calls as f64 * share) as usize).min(calls.saturating_sub(1));
        latencies
            .get(index)
            .map_or(0.0, |&nanoseconds| f64::from(nanoseconds) / 1000.0)
    };
    json!({
        "calls": calls,
        "calls_per_s": calls as f64 / wall.as_secs_f64(),
        "wall_s": wall.as_secs_f64(),
        "cpu_us_per_call": server.as_secs_f64() * 1e6 / calls.max(1) as f64,
        "server_busy": server.as_secs_f64() / wall.as_secs_f64(),
        "p50_us": at(0.50),
        "p99_us": at(0.99),
    })
}

/// Converts a duration for the list of latencies; a window is far below the four seconds that fit.
pub fn nanoseconds(duration: Duration) -> u32 {
    duration.as_nanos().try_into().unwrap_or(u32::MAX)
}
