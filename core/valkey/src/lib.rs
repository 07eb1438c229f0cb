//! State of several `mcpline` servers, shared over Valkey 7 and later, or Redis 6 and later.
//!
//! [`Valkey::connect`] returns the [`Sharing`](mcpline::sharing::Sharing) that `Settings::sharing` takes. Servers that connect
//! to the same Valkey with the same key prefix serve each other's sessions: a load balancer may send each request to any
//! of them, and a session continues at another server when its process ends.
//!
//! ```no_run
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! use mcpline::{Server, Settings};
//! use mcpline_valkey::{Valkey, ValkeyOptions};
//!
//! let mut settings = Settings::default();
//! settings.sharing = Some(Valkey::connect("valkey://localhost", ValkeyOptions::default())?);
//! let server = Server::builder("weather", "1.0.0").settings(settings).build()?;
//! # Ok(())
//! # }
//! ```
//!
//! No operation waits for Valkey longer than twice [`ValkeyOptions::timeout`], or three times after the start. While Valkey
//! is unreachable, servers go on with the sessions that they have, and queue what others must know, within limits. The
//! module `limits` in the source has all limits with their reasons, and the section "Several processes" of
//! `docs/architecture.md` has the keys and what happens when Valkey fails.

mod address;
mod backoff;
mod bus;
mod connection;
mod error;
mod failure;
mod keys;
mod limits;
mod operation_queue;
mod options;
mod reader;
mod scripts;
mod store;
mod url_options;
mod writer;

pub use error::ValkeyError;
#[cfg(feature = "tls")]
pub use options::TlsIdentity;
pub use options::ValkeyOptions;
pub use store::Valkey;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The block of the page in Rust is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/deployment.md")]
struct Deployment;
