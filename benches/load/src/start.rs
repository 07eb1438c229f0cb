//! Time from spawning a server on stdio to its response to `initialize`, and its memory at that point.

use std::error::Error;
use std::time::Instant;

use serde_json::{Value, json};

use crate::options::{Era, Options};
use crate::server::Server;
use crate::stdio::Pipe;

/// Starts the server `count` times in sequence and returns medians.
pub async fn run(options: &Options) -> Result<Value, Box<dyn Error>> {
    let (mut wall, mut cpu, mut resident) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.count {
        let begun = Instant::now();
        let mut server = Server::spawn_stdio(options)?;
        let mut pipe = Pipe::of(&mut server)?;
        if options.era == Era::Bare {
            // A bare interpreter prints a line once it has completed its imports.
            pipe.next_line().await?;
        } else {
            pipe.handshake(Era::Legacy).await?;
        }
        wall.push(begun.elapsed().as_secs_f64() * 1e3);
        cpu.push(server.cpu()?.as_secs_f64() * 1e3);
        resident.push(server.resident()? as f64 / 1024.0);
        drop(pipe);
        server.end().await?;
    }
    Ok(json!({
        "starts": options.count,
        "start_ms": median(&mut wall),
        "start_cpu_ms": median(&mut cpu),
        "resident_mib": median(&mut resident),
    }))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
