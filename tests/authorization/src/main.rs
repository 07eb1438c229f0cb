//! `authorization-server [--config JSON]`: runs until standard input ends.
//!
//! Prints one line of JSON once it listens: its issuer and its control URL.

use std::io::{Write, stdout};
use std::process::ExitCode;

use authorization_server::{AuthorizationServer, Config};
use serde_json::json;
use tokio::io::{AsyncReadExt, stdin};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("authorization-server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = config()?;
    config.control = true;
    let server = AuthorizationServer::start(config).await?;
    let origin = server.issuer();
    let origin = origin
        .strip_suffix(&server.config().issuer_path)
        .unwrap_or(&origin);
    let line = json!({"issuer": server.issuer(), "control": format!("{origin}/.control")});
    writeln!(stdout(), "{line}")?;
    let mut ignored = [0; 1024];
    while stdin().read(&mut ignored).await? > 0 {}
    Ok(())
}

fn config() -> Result<Config, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    match (
        arguments.next().as_deref(),
        arguments.next(),
        arguments.next(),
    ) {
        (None, ..) => Ok(Config::default()),
        (Some("--config"), Some(json), None) => Ok(serde_json::from_str(&json)?),
        _ => Err("usage: authorization-server [--config JSON]".into()),
    }
}
