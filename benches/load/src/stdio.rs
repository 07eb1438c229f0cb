//! Calls over a pipe with a fixed number in flight.

use std::collections::HashMap;
use std::error::Error;
use std::time::{Duration, Instant};

use memchr::memchr;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};

use crate::messages::{FIRST_ID, Template, call_line, check, id_of, initialize, initialized, line};
use crate::options::{Era, Options};
use crate::server::Server;
use crate::statistics::{figures, nanoseconds};

/// The longest line; a longer one is treated as endless.
const LINE_LIMIT: usize = 64 * 1024 * 1024;

/// Both pipes, received data and data that is still to be written.
pub struct Pipe {
    input: ChildStdin,
    output: ChildStdout,
    read: Vec<u8>,
    scanned: usize,
    unsent: Vec<u8>,
    /// How much of `unsent` has been written.
    written: usize,
}

impl Pipe {
    /// Takes the pipes of a server.
    pub fn of(server: &mut Server) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            input: server.child.stdin.take().ok_or("no stdin")?,
            output: server.child.stdout.take().ok_or("no stdout")?,
            read: Vec::with_capacity(1 << 17),
            scanned: 0,
            unsent: Vec::with_capacity(1 << 17),
            written: 0,
        })
    }

    /// Sends the handshake, if the era has one, and waits for the response.
    pub async fn handshake(&mut self, era: Era) -> Result<(), Box<dyn Error>> {
        if era == Era::Legacy {
            self.unsent.extend(line(&initialize()));
            self.next_line().await?;
            self.consume();
            self.unsent.extend(line(&initialized()));
        }
        Ok(())
    }

    /// Drives both directions until a whole line has arrived; returns its length.
    ///
    /// Both, because a server may stop reading while its responses are not read.
    pub async fn next_line(&mut self) -> Result<usize, Box<dyn Error>> {
        loop {
            if let Some(length) = memchr(b'\n', &self.read[self.scanned..]) {
                return Ok(self.scanned + length);
            }
            self.scanned = self.read.len();
            if self.read.len() > LINE_LIMIT {
                return Err("a line without end".into());
            }
            if self.unsent.is_empty() {
                if self.output.read_buf(&mut self.read).await? == 0 {
                    return Err("the server closed its output".into());
                }
                continue;
            }
            tokio::select! {
                biased;
                sent = self.input.write(&self.unsent[self.written..]) => {
                    self.written += sent?;
                    if self.written == self.unsent.len() {
                        self.unsent.clear();
                        self.written = 0;
                    }
                }
                count = self.output.read_buf(&mut self.read) => {
                    if count? == 0 {
                        return Err("the server closed its output".into());
                    }
                }
            }
        }
    }

    /// Drops the first line.
    pub fn consume(&mut self) {
        if let Some(length) = memchr(b'\n', &self.read) {
            self.read.drain(..=length);
            self.scanned = 0;
        }
    }

    /// Whether a whole line has arrived.
    fn has_line(&self) -> bool {
        memchr(b'\n', &self.read[self.scanned..]).is_some()
    }
}

/// The calls in flight over one pipe.
struct Calls {
    pipe: Pipe,
    template: Template,
    next: u64,
    begun: HashMap<u64, Instant>,
}

impl Calls {
    fn send(&mut self, now: Instant) {
        let id = self.next;
        self.next += 1;
        self.pipe
            .unsent
            .extend_from_slice(self.template.with_id(id));
        self.begun.insert(id, now);
    }

    /// Takes all available lines, at least one; each completed call makes room for the next.
    async fn turn(&mut self, refill: bool, latencies: &mut Vec<u32>) -> Result<(), Box<dyn Error>> {
        self.pipe.next_line().await?;
        let now = Instant::now();
        let mut start = 0;
        while let Some(length) = memchr(b'\n', &self.pipe.read[start..]) {
            let message = &self.pipe.read[start..start + length];
            start += length + 1;
            let Some(begun) = id_of(message).and_then(|id| self.begun.remove(&id)) else {
                // Notifications are allowed, responses to no request are not.
                if memchr::memmem::find(message, br#""method""#).is_some() {
                    continue;
                }
                let shown =
                    String::from_utf8_lossy(&message[..message.len().min(300)]).into_owned();
                return Err(format!("not an answer to a call in flight: {shown}").into());
            };
            latencies.push(nanoseconds(now - begun));
            if refill {
                self.send(now);
            }
        }
        self.pipe.read.drain(..start);
        self.pipe.scanned = 0;
        Ok(())
    }

    async fn window(&mut self, length: Duration) -> Result<(Vec<u32>, Duration), Box<dyn Error>> {
        let begun = Instant::now();
        let mut latencies = Vec::with_capacity(1 << 18);
        while begun.elapsed() < length {
            self.turn(true, &mut latencies).await?;
        }
        Ok((latencies, begun.elapsed()))
    }
}

/// Measures one window.
pub async fn run(options: &Options) -> Result<Value, Box<dyn Error>> {
    let mut server = Server::spawn_stdio(options)?;
    let mut pipe = Pipe::of(&mut server)?;
    pipe.handshake(options.era).await?;
    let mut template = call_line(options)?;
    pipe.unsent.extend_from_slice(template.with_id(FIRST_ID));
    loop {
        let length = pipe.next_line().await?;
        let answer = id_of(&pipe.read[..length]) == Some(FIRST_ID);
        if answer {
            check(options, &pipe.read[..length])?;
        }
        pipe.consume();
        if answer {
            break;
        }
    }
    debug_assert!(!pipe.has_line());

    let mut calls = Calls {
        pipe,
        template,
        next: FIRST_ID + 1,
        begun: HashMap::with_capacity(options.width * 2),
    };
    let now = Instant::now();
    for _ in 0..options.width {
        calls.send(now);
    }
    calls
        .window((options.window / 5).max(Duration::from_millis(200)))
        .await?;
    let before = server.cpu()?;
    let (latencies, wall) = calls.window(options.window).await?;
    let figures = figures(latencies, wall, server.cpu()? - before);
    let mut rest = Vec::new();
    while !calls.begun.is_empty() {
        calls.turn(false, &mut rest).await?;
    }
    drop(calls);
    server.end().await?;
    Ok(figures)
}
