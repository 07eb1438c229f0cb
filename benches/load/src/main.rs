//! The load generator of the benchmarks.
//!
//! It starts a server on one core, calls it from another, checks the responses, and reads the server's own CPU clock
//! around the measured window:
//!
//! ```text
//! bench-load http     [options] -- SERVER…    calls over N keep-alive connections
//! bench-load stdio    [options] -- SERVER…    calls with N in flight over a pipe
//! bench-load start    [options] -- SERVER…    from spawning to the answer of `initialize`; memory then
//! bench-load sessions [options] -- SERVER…    memory per idle session, without and with an open GET stream
//! ```
//!
//! The server gets `--http PORT` appended unless it serves stdio. Each run prints one JSON object on stdout.
//! Traffic stays on loopback, and every loop is bounded in time or count.

mod connection;
mod http;
mod messages;
mod options;
mod server;
mod sessions;
mod start;
mod statistics;
mod stdio;

use std::error::Error;
use std::process::ExitCode;

use options::{Options, What};

fn main() -> ExitCode {
    let outcome = Options::from_arguments(std::env::args().skip(1)).and_then(run);
    match outcome {
        Ok(figures) => {
            println!("{figures}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench-load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<serde_json::Value, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let measured = async {
            match options.what {
                What::Http => http::run(&options).await,
                What::Stdio => stdio::run(&options).await,
                What::Start => start::run(&options).await,
                What::Sessions => sessions::run(&options).await,
            }
        };
        // Dropping the owner of the server kills it.
        tokio::time::timeout(options.limit, measured)
            .await
            .map_err(|_| "it takes too long")?
    })
}
