//! The Model Context Protocol: every revision, every transport, one implementation.
//!
//! A [`Server`] offers tools, resources and prompts. It serves any client over [`transport::stdio`],
//! [`transport::http`], in memory, or a channel of your own:
//!
//! ```no_run
//! use mcpline::{Context, Server, transport};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add {
//!     a: i64,
//!     b: i64,
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), mcpline::Error> {
//!     let server = Server::new("calculator", "1.0.0").tool(
//!         "add",
//!         "Add two integers",
//!         |args: Add, _ctx: Context| async move { args.a + args.b },
//!     );
//!     server.serve(transport::stdio()).await
//! }
//! ```
//!
//! A [`Client`](client::Client) connects to a server of any age by a URL, a command, a socket, in memory, or over a
//! channel of your own.
//!
//! What the types are about: [`server`] has the server and what handlers get and give, [`transport`] the
//! ways to serve, [`client`] the client, [`sharing`] what several processes of one service have in common, [`protocol`] the
//! vocabulary of the protocol itself, [`jose`] signed tokens and their keys.

pub mod auth;
mod authorized;
mod background;
pub mod client;
mod client_error;
mod client_tasks;
mod clock;
mod error;
pub mod foreign;
mod header;
mod http_client;
mod lane;
mod line_io;
#[cfg(all(test, mcpline_models))]
mod models;
mod offload;
mod quota;
pub mod server;
pub mod sharing;
mod stop;
mod sync;
mod timers;
pub mod transport;

/// The blocks of the Rust guide are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Guide;

pub use mcpline_jose as jose;
pub use mcpline_protocol as protocol;
pub use mcpline_protocol::{Revision, RpcError};

pub use error::{Error, ErrorKind};
pub use server::{
    Ask, AskMethod, Call, Context, Handler, HandlerError, HttpInfo, InputRequired, Json, Reply,
    Server, ServerBuilder, Settings, ToolError, ToolReply,
};
