//! State of several `mcpline` servers on one machine, shared over a directory and Unix sockets.
//!
//! [`Local::named`] returns the [`Sharing`](mcpline::sharing::Sharing) that `Settings::sharing` takes. Servers of one user with
//! the same name serve each other's sessions: connections may go to any of the worker processes, and a session continues at
//! another worker when its process ends. There is no server and no main process: each process can be killed at any time.
//!
//! ```no_run
//! # #[cfg(unix)]
//! # fn server() -> Result<(), Box<dyn std::error::Error>> {
//! use mcpline::{Server, Settings};
//! use mcpline_local::Local;
//!
//! let mut settings = Settings::default();
//! settings.sharing = Some(Local::named("weather")?);
//! let server = Server::builder("weather", "1.0.0").settings(settings).build()?;
//! # Ok(())
//! # }
//! ```
//!
//! Needs Unix sockets: on Windows every constructor fails with [`LocalError::Unsupported`]. The section "One machine" of
//! `docs/architecture.md` has the files, the limits, and what happens when a process is killed.

mod address;
mod error;
mod local;

#[cfg(unix)]
mod buckets;
#[cfg(unix)]
mod directory;
#[cfg(unix)]
mod file_names;
#[cfg(unix)]
mod inbox;
#[cfg(unix)]
mod limits;
#[cfg(unix)]
mod operation_queue;
#[cfg(unix)]
mod outbox;
#[cfg(unix)]
mod peers;
#[cfg(unix)]
mod readers;
#[cfg(unix)]
mod record;
#[cfg(unix)]
mod sessions;
#[cfg(unix)]
mod streams;
#[cfg(unix)]
mod sweep;
#[cfg(unix)]
mod used_keys;
#[cfg(unix)]
mod worker;

pub use error::LocalError;
pub use local::Local;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
