//! Shared by the measured clients: the arguments `CLIENT WIDTH MILLISECONDS stdio COMMAND…` or `CLIENT WIDTH
//! MILLISECONDS http URL`, a loop with that many calls in flight, and the process's own CPU clock.

use std::cell::Cell;
use std::error::Error;
use std::future::Future;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

/// The text to echo.
pub const TEXT: &str = "abcdefghijklmnopabcdefghijklmnop";

/// The command line options.
pub struct Options {
    /// Calls in flight.
    pub width: usize,
    /// How long to measure, after a warm-up of a quarter of that time.
    pub window: Duration,
    /// The server to call.
    pub target: Target,
}

/// The server to call.
pub enum Target {
    /// A child over stdio.
    Stdio(Vec<String>),
    /// A URL.
    Http(String),
}

impl Options {
    /// Parses the command line.
    ///
    /// # Errors
    ///
    /// If an argument is missing.
    pub fn parse() -> Result<Self, Box<dyn Error>> {
        let mut arguments = std::env::args().skip(1);
        let mut next = |what: &str| arguments.next().ok_or(format!("{what} is missing"));
        let width = next("the width")?.parse()?;
        let window = Duration::from_millis(next("the time")?.parse()?);
        let kind = next("the transport")?;
        let rest: Vec<String> = arguments.collect();
        let target = match kind.as_str() {
            "stdio" if !rest.is_empty() => Target::Stdio(rest),
            "http" if rest.len() == 1 => Target::Http(rest.concat()),
            _ => return Err("stdio needs a command, http a URL".into()),
        };
        Ok(Self {
            width,
            window,
            target,
        })
    }
}

/// The CPU time of this process without its children.
fn cpu() -> Result<Duration, Box<dyn Error>> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let of = |time: nix::sys::time::TimeVal| {
        Duration::from_micros(u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000)
            + Duration::from_micros(u64::try_from(time.tv_usec()).unwrap_or(0))
    };
    Ok(of(usage.user_time()) + of(usage.system_time()))
}

/// Keeps `width` calls in flight: each slot starts its next call when its last one has ended. Prints the cost of a
/// call. `call` gets the number of its slot. Must run in a `LocalSet`.
///
/// # Errors
///
/// The first failure of a call.
pub async fn drive<F, Fut>(options: &Options, call: F) -> Result<(), Box<dyn Error>>
where
    F: Fn(usize) -> Fut + 'static,
    Fut: Future<Output = Result<(), Box<dyn Error>>> + 'static,
{
    let call = Rc::new(call);
    let calls = Rc::new(Cell::new(0_u64));
    let going = Rc::new(Cell::new(true));
    let mut slots = Vec::new();
    for slot in 0..options.width {
        let (call, calls, going) = (call.clone(), calls.clone(), going.clone());
        slots.push(tokio::task::spawn_local(async move {
            while going.get() {
                call(slot).await.map_err(|error| error.to_string())?;
                calls.set(calls.get() + 1);
            }
            Ok::<(), String>(())
        }));
    }
    tokio::time::sleep(options.window / 4).await;
    let (before, cpu_before, began) = (calls.get(), cpu()?, Instant::now());
    tokio::time::sleep(options.window).await;
    let (made, spent, took) = (calls.get() - before, cpu()? - cpu_before, began.elapsed());
    going.set(false);
    for slot in slots {
        slot.await??;
    }
    let per_call = spent.as_secs_f64() * 1e6 / made as f64;
    let rate = made as f64 / took.as_secs_f64();
    println!(r#"{{"calls":{made},"cpu_us_per_call":{per_call:.3},"calls_per_s":{rate:.0}}}"#);
    Ok(())
}
