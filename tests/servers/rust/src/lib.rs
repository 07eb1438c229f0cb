//! The Rust everything-server, for the conformance suite, the official clients and the recorded exchanges.
//! `../../README.md` is its specification; [`build`] is the entry point.

pub mod channel;
mod content;
mod custom;
mod extensions;
mod extras;
mod failures;
mod info;
mod input_requests;
mod more;
pub mod mounted;
mod others;
mod returned_input_requests;
mod running;
mod small;
mod state;
mod url_elicitations;

use std::sync::Arc;
use std::time::Duration;

use mcpline::protocol::vocabulary::Implementation;
use mcpline::transport::http::HttpOptions;
use mcpline::{Error, Server, Settings};
use mcpline_local::Local;
use mcpline_valkey::{Valkey, ValkeyOptions};

use state::State;

/// The command line.
#[derive(Debug, Default)]
pub struct Arguments {
    /// The port to serve HTTP on; stdio is served without one.
    pub port: Option<u16>,
    /// The number of the principal to serve over a custom transport on stdin and stdout.
    pub channel: Option<usize>,
    /// Whether HTTP is served by a hyper server of the program.
    pub is_mounted: bool,
    /// Whether the server has extensions of the protocol.
    pub has_extensions: bool,
    has_extras: bool,
    has_more: bool,
    small: Option<small::Small>,
    settings: Settings,
    /// The options of HTTP.
    pub http: HttpOptions,
}

impl Arguments {
    /// Reads the command line of this process.
    ///
    /// # Errors
    ///
    /// An argument is unknown, or its value is not a number or not a URL.
    pub fn read() -> Result<Self, Box<dyn std::error::Error>> {
        let mut read = Self::default();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let value = arguments.next().unwrap_or_default();
            if argument == "--sharing" {
                let shared = match value.starts_with("local") {
                    true => Local::at_url(&value, "mcpline-everything")?,
                    false => Valkey::connect(&value, ValkeyOptions::default())?,
                };
                read.settings.sharing = Some(shared);
                continue;
            }
            let number: usize = value.parse()?;
            let seconds = Duration::from_secs(number as u64);
            match argument.as_str() {
                "--http" => read.port = Some(u16::try_from(number)?),
                "--channel" => read.channel = Some(number),
                "--tower" => read.is_mounted = number != 0,
                "--page-size" => read.settings.page_size = number,
                "--max-suspended-handlers" => read.settings.max_suspended_handlers = number,
                "--max-sessions" => read.http.max_sessions = number,
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
///
/// # Errors
///
/// The library rejects a feature.
pub fn build(arguments: &Arguments) -> Result<Server, Error> {
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
    input_requests::add(&server)?;
    url_elicitations::add(&server, &state);
    returned_input_requests::add(&server)?;
    info::add(&server, &state)?;
    others::add(&server, &state)?;
    returned_input_requests::add_prompt(&server);
    custom::add(&server, &state)?;
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
