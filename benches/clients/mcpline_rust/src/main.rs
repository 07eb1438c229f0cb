//! The mcpline client for Rust, used as in a host: typed arguments, typed results. With `MODERN` in the environment it
//! uses 2026-07-28 instead of 2025-11-25.

use std::error::Error;

use bench_client::{Options, TEXT, Target, drive};
use mcpline::Revision;
use mcpline::client::{Address, Client, Command};

#[derive(serde::Serialize)]
struct Echo {
    text: &'static str,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse()?;
    let address = match &options.target {
        Target::Http(url) => Address::from(url.as_str()),
        Target::Stdio(command) => Command::new(&command[0]).args(&command[1..]).into(),
    };
    let revision = match std::env::var_os("MODERN") {
        Some(_) => Revision::V2026_07_28,
        None => Revision::V2025_11_25,
    };
    let client = Client::builder("bench", "1")
        .configure(|settings| settings.revisions = vec![revision])
        .connect(address)
        .await?;
    let local = tokio::task::LocalSet::new();
    let calling = client.clone();
    local
        .run_until(drive(&options, move |_| {
            let client = calling.clone();
            async move {
                let result = client.call_tool("echo", Echo { text: TEXT }).await?;
                if result.content.len() != 1 {
                    return Err("not the answer".into());
                }
                Ok(())
            }
        }))
        .await?;
    client.close().await;
    Ok(())
}
