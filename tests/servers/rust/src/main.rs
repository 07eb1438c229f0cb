//! The Rust everything-server: what the conformance suite, the official clients and the recorded exchanges
//! talk to. Specified in `../../README.md`; enter at [`build`].

mod asking;
mod content;
mod failures;
mod info;
mod others;
mod returned;
mod running;
mod state;
mod visits;

use std::sync::Arc;

use mcpline::protocol::vocabulary::Implementation;
use mcpline::transport::{self, Stop, http::HttpOptions};
use mcpline::{Error, Server, Settings};

use state::State;

/// The server with everything that the specification names.
fn build(page_size: Option<usize>) -> Result<Server, Error> {
    let mut settings = Settings::default();
    if let Some(page_size) = page_size {
        settings.page_size = page_size;
    }
    let info =
        Implementation::new("mcpline-everything", "1.0.0").with_title("mcpline everything server");
    let server = Server::builder("", "")
        .implementation(info)
        .instructions("Fixture server of the mcpline tests.")
        .settings(settings)
        .build()?;
    let state = Arc::new(State::default());
    content::add(&server)?;
    failures::add(&server)?;
    running::add(&server, &state)?;
    asking::add(&server)?;
    visits::add(&server, &state);
    returned::add(&server)?;
    info::add(&server, &state)?;
    others::add(&server, &state)?;
    returned::add_prompt(&server);
    Ok(server)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut port = None;
    let mut page_size = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().unwrap_or_default().parse::<usize>();
        match argument.as_str() {
            "--http" => port = Some(u16::try_from(number()?)?),
            "--page-size" => page_size = Some(number()?),
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    let server = build(page_size)?;
    let stop = Stop::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    match port {
        Some(port) => {
            let http = transport::http::http(("127.0.0.1", port), HttpOptions::default()).await?;
            server.serve_until(http, stop).await?;
        }
        None => server.serve_until(transport::stdio(), stop).await?,
    }
    Ok(())
}

async fn stop_on_signal(stop: Stop) {
    use tokio::signal::unix::{SignalKind, signal};

    let (Ok(mut terminate), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    stop.stop();
}
