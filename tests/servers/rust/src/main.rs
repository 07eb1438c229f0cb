//! The Rust everything-server, for the conformance suite, the official clients and the recorded exchanges.
//! `../../README.md` is its specification; [`build`] is the entry point.

mod asking;
mod content;
mod custom;
mod extensions;
mod extras;
mod failures;
mod info;
mod more;
mod mounted;
mod others;
mod returned;
mod running;
mod small;
mod state;
mod visits;

use std::sync::Arc;
use std::time::Duration;

use mcpline::protocol::vocabulary::Implementation;
use mcpline::transport::{self, Stop, http::HttpOptions};
use mcpline::{Error, Server, Settings};

use state::State;

/// The command line.
#[derive(Default)]
struct Arguments {
    port: Option<u16>,
    has_extras: bool,
    has_more: bool,
    has_extensions: bool,
    small: Option<small::Small>,
    is_mounted: bool,
    settings: Settings,
    http: HttpOptions,
}

impl Arguments {
    fn read() -> Result<Self, Box<dyn std::error::Error>> {
        let mut read = Self::default();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let number: usize = arguments.next().unwrap_or_default().parse()?;
            let seconds = Duration::from_secs(number as u64);
            match argument.as_str() {
                "--http" => read.port = Some(u16::try_from(number)?),
                "--tower" => read.is_mounted = number != 0,
                "--page-size" => read.settings.page_size = number,
                "--suspended" => read.settings.suspended = number,
                "--sessions" => read.http.sessions = number,
                "--read-timeout" => read.http.read_timeout = seconds,
                "--write-timeout" => read.http.write_timeout = seconds,
                "--extras" => read.has_extras = number != 0,
                "--more" => read.has_more = number != 0,
                "--extensions" => read.has_extensions = number != 0,
                "--declared" => read.small = Some(small::Small::Declared),
                "--tools-only" => read.small = Some(small::Small::ToolsOnly),
                "--prompts-only" => read.small = Some(small::Small::PromptsOnly),
                other => return Err(format!("unknown argument {other}").into()),
            }
        }
        Ok(read)
    }
}

/// Creates the server with all features of the specification.
fn build(arguments: &Arguments) -> Result<Server, Error> {
    let info =
        Implementation::new("mcpline-everything", "1.0.0").with_title("mcpline everything server");
    let state = Arc::new(State::default());
    let mut builder = Server::builder("", "")
        .implementation(info)
        .instructions("Fixture server of the mcpline tests.")
        .settings(arguments.settings.clone());
    if let Some(small) = arguments.small {
        return small.build(builder);
    }
    if arguments.has_extensions {
        builder = extensions::declare(builder, &state);
    }
    let server = builder.build()?;
    content::add(&server)?;
    failures::add(&server)?;
    running::add(&server, &state)?;
    asking::add(&server)?;
    visits::add(&server, &state);
    returned::add(&server)?;
    info::add(&server, &state)?;
    others::add(&server, &state)?;
    returned::add_prompt(&server);
    custom::add(&server, &state);
    if arguments.has_more {
        more::add(&server)?;
    }
    if arguments.has_extensions {
        extensions::add(&server)?;
    }
    if arguments.has_extras {
        extras::add(&server)?;
    }
    Ok(server)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::read()?;
    let server = build(&arguments)?;
    let stop = Stop::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    match arguments.port {
        Some(port) if arguments.is_mounted => {
            mounted::serve(&server, arguments.http, port, &stop).await?;
        }
        Some(port) => {
            let http = transport::http::http(("127.0.0.1", port), arguments.http).await?;
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
