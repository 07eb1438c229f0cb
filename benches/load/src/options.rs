//! The command line.

use std::error::Error;
use std::time::Duration;

/// The measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Calls over HTTP.
    Http,
    /// Calls over a pipe.
    Stdio,
    /// Spawning to the first answer.
    Start,
    /// Memory of idle sessions.
    Sessions,
}

/// How the generator opens the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Not at all: the server is a bare echo.
    Bare,
    /// Requests of 2025-11-25 without handshake or session, which stateless servers accept.
    Stateless,
    /// The handshake, and over HTTP a session per connection.
    Legacy,
    /// 2026-07-28.
    Modern,
}

/// The options of a run.
#[derive(Debug)]
pub struct Options {
    /// The measurement.
    pub what: What,
    /// The server's command, without `--http`.
    pub server: Vec<String>,
    /// How to open the session.
    pub era: Era,
    /// Connections, or requests in flight over a pipe.
    pub width: usize,
    /// Bytes of text to echo.
    pub payload: usize,
    /// The tool to call.
    pub tool: String,
    /// How long to measure, after a warm-up of a fifth of that time, at least 0.2 s.
    pub window: Duration,
    /// How many starts or sessions to measure.
    pub count: usize,
    /// Whether each session holds a GET stream open.
    pub streams: bool,
    /// The time limit for everything; after it the server is ended and the run has failed.
    pub limit: Duration,
    /// The endpoint's path.
    pub path: String,
    /// The cores for the server and the generator; `None` leaves both to the system.
    pub cores: Option<(usize, usize)>,
    /// Whether the server's main thread may use any core (for the cell on two cores).
    pub server_unpinned: bool,
}

impl Options {
    /// Parses the arguments after the program's name.
    pub fn from_arguments(
        mut arguments: impl Iterator<Item = String>,
    ) -> Result<Self, Box<dyn Error>> {
        let what = match arguments.next().as_deref() {
            Some("http") => What::Http,
            Some("stdio") => What::Stdio,
            Some("start") => What::Start,
            Some("sessions") => What::Sessions,
            _ => return Err("the first argument is http, stdio, start or sessions".into()),
        };
        let mut options = Self {
            what,
            server: Vec::new(),
            era: Era::Legacy,
            width: 1,
            payload: 32,
            tool: "echo".into(),
            window: Duration::from_secs(1),
            count: 10,
            streams: false,
            limit: Duration::from_secs(240),
            path: "/mcp".into(),
            cores: Some((0, 1)),
            server_unpinned: false,
        };
        while let Some(name) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .ok_or_else(|| format!("{name} needs a value"))
            };
            match name.as_str() {
                "--" => {
                    options.server = arguments.by_ref().collect();
                    break;
                }
                "--era" => {
                    options.era = match value()?.as_str() {
                        "bare" => Era::Bare,
                        "stateless" => Era::Stateless,
                        "legacy" => Era::Legacy,
                        "modern" => Era::Modern,
                        other => return Err(format!("there is no era {other}").into()),
                    }
                }
                "--width" => options.width = value()?.parse()?,
                "--payload" => options.payload = value()?.parse()?,
                "--tool" => options.tool = value()?,
                "--milliseconds" => options.window = Duration::from_millis(value()?.parse()?),
                "--count" => options.count = value()?.parse()?,
                "--streams" => options.streams = true,
                "--limit" => options.limit = Duration::from_secs(value()?.parse()?),
                "--path" => options.path = value()?,
                "--unpinned" => options.cores = None,
                "--server-unpinned" => options.server_unpinned = true,
                other => return Err(format!("there is no option {other}").into()),
            }
        }
        if options.server.is_empty() {
            return Err("after -- comes the server's command".into());
        }
        Ok(options)
    }
}
