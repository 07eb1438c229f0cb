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
//! A [`Client`](client::Client) connects to a server of any revision by a URL, a command, a socket, in memory, or over
//! a channel of your own.
//!
//! The modules: [`server`] contains the server and the types of handlers, [`transport`] its transports, [`client`] the
//! client, [`sharing`] the state that several processes of one service share, [`traffic`] reads recorded messages, [`protocol`] the protocol's own
//! vocabulary, and [`jose`] signed tokens and their keys.
//!
//! # Cargo features
//!
//! All except `keyring`, `opentelemetry` and `otlp` are enabled by default. With `default-features = false` a program links only the ones that it
//! names:
//!
//! - `server`: [`Server`], served in memory and over byte streams ([`transport::lines`])
//! - `client`: [`Client`](client::Client), for servers in the same process and channels of your own
//! - `stdio`: [`transport::stdio`] and [`transport::unix`] for servers; child processes and Unix sockets for clients
//! - `http`: [`transport::http`] for servers; URLs for clients
//! - `tls`: `https` URLs, for clients and for the standalone server; implies `http`
//! - `auth`: OAuth on both sides ([`auth`]); implies `http`
//! - `schemars`: schemas derived from types ([`Server::tool`], [`Context::elicit_as`]); without it, add tools with
//!   schemas of your own ([`Server::add_tool_fn`])
//! - `macros`: [`#[mcpline::tools]`](macro@tools); implies `server` and `schemars`
//! - `metrics`: durations of requests and sessions, in the text format of Prometheus ([`server::Settings::metrics`],
//!   [`client::ClientSettings::metrics`])
//! - `openapi`: tools and resources for the operations of an HTTP API ([`openapi`]); implies `server` and `http`
//! - `redaction`: the middleware that replaces values ([`middleware::Redaction`]); implies `server`
//! - `routes`: paths of your own at the HTTP server ([`Server::route`]); implies `server` and `http`
//! - `spans`: spans of requests for subscribers of `tracing`, by the semantic conventions of OpenTelemetry
//! - `keyring`: tokens in the system's keyring; implies `auth`
//! - `opentelemetry`: the spans of clients and servers that `tracing-opentelemetry` exports are one trace, and requests that are not
//!   sampled cost little ([`open_telemetry`]); implies `spans`
//! - `otlp`: [`otlp::OtlpExporter`], for programs without a set-up of OpenTelemetry; implies `opentelemetry` and `http`

#![cfg_attr(docsrs, feature(doc_cfg))]
// Parts of shared modules that only some features use need no `cfg` each. With all features the lints apply.
#![cfg_attr(
    not(all(
        feature = "server",
        feature = "client",
        feature = "stdio",
        feature = "tls",
        feature = "auth",
        feature = "schemars",
        feature = "metrics",
        feature = "openapi"
    )),
    allow(dead_code, unreachable_pub, unused_imports)
)]

#[cfg(feature = "macros")]
#[doc(hidden)]
#[path = "macro_support.rs"]
pub mod __private;
#[cfg(feature = "auth")]
#[cfg_attr(docsrs, doc(cfg(feature = "auth")))]
pub mod auth;
mod background;
#[cfg(any(
    feature = "client",
    feature = "auth",
    feature = "openapi",
    feature = "otlp"
))]
mod background_tasks;
#[cfg(feature = "client")]
mod backlog;
#[cfg(any(feature = "server", feature = "auth"))]
mod caller;
#[cfg(feature = "client")]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
pub mod client;
#[cfg(any(
    feature = "client",
    feature = "auth",
    feature = "openapi",
    feature = "otlp"
))]
mod client_error;
mod error;
mod error_kind;
mod fair_queue;
#[cfg(any(feature = "server", feature = "client"))]
#[doc(hidden)]
pub mod foreign;
#[cfg(feature = "http")]
mod header_names;
#[cfg(all(
    feature = "http",
    any(
        feature = "client",
        feature = "auth",
        feature = "openapi",
        feature = "otlp"
    )
))]
mod http_client;
#[cfg(any(feature = "server", feature = "client"))]
mod json_error;
mod line_io;
#[cfg(any(feature = "server", feature = "client"))]
mod log_file;
mod message_sink;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(any(feature = "server", feature = "client"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "server", feature = "client"))))]
pub mod middleware;
#[cfg(any(feature = "server", feature = "client"))]
mod name_pattern;
mod offload;
#[cfg(all(feature = "opentelemetry", any(feature = "server", feature = "client")))]
#[cfg_attr(docsrs, doc(cfg(feature = "opentelemetry")))]
pub mod open_telemetry;
#[cfg(feature = "openapi")]
#[cfg_attr(docsrs, doc(cfg(feature = "openapi")))]
pub mod openapi;
#[cfg(feature = "otlp")]
#[cfg_attr(docsrs, doc(cfg(feature = "otlp")))]
pub mod otlp;
#[cfg(feature = "server")]
mod quota;
#[cfg(all(test, mcpline_models))]
mod race_models;
#[cfg(any(feature = "server", feature = "client"))]
mod secret_names;
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub mod server;
mod shared_io_error;
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub mod sharing;
#[cfg(any(feature = "server", feature = "client"))]
mod span;
mod stop;
mod sync;
mod timers;
#[cfg(any(feature = "server", feature = "client"))]
mod timestamp;
#[cfg(any(feature = "server", feature = "client"))]
mod trace_context;
#[cfg(any(feature = "server", feature = "client"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "server", feature = "client"))))]
pub mod traffic;
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub mod transport;
#[cfg(any(feature = "server", feature = "client"))]
mod warning_limit;
#[cfg(all(feature = "server", feature = "http"))]
mod worker_process;

/// Runs the code blocks of the Rust guide as tests.
#[cfg(all(doctest, feature = "default"))]
#[doc = include_str!("../../../docs/guides/rust.md")]
struct Guide;

/// Runs the code blocks of the page about migrating as tests.
#[cfg(all(doctest, feature = "default"))]
#[doc = include_str!("../../../docs/migrating-from-rmcp.md")]
struct MigratingFromRmcp;

/// Runs the code block of the page about HTTP APIs as a test.
#[cfg(all(doctest, feature = "default"))]
#[doc = include_str!("../../../docs/openapi.md")]
struct HttpApis;

/// Compiles the code block about traffic files as a test.
#[cfg(all(doctest, feature = "default"))]
#[doc = include_str!("../../../docs/traffic-files.md")]
struct TrafficFiles;

/// Runs the code block about exporting spans as a test.
#[cfg(all(doctest, feature = "default", feature = "otlp"))]
#[doc = include_str!("../../../docs/observability.md")]
struct Observability;

/// Runs the code block of the README as a test.
#[cfg(all(doctest, feature = "default"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Runs the code blocks of the crate's README as tests.
#[cfg(all(doctest, feature = "default"))]
#[doc = include_str!("../README.md")]
struct CrateReadme;

#[cfg(feature = "auth")]
#[cfg_attr(docsrs, doc(cfg(feature = "auth")))]
pub use mcpline_jose as jose;
/// Turns the methods of an `impl` block into tools, resources and prompts. [`Server::with`] and [`Server::add`] add them to
/// a server.
///
/// ```
/// use mcpline::{Args, Context, Server};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Sum {
///     a: i64,
///     b: i64,
/// }
///
/// struct Calculator;
///
/// #[mcpline::tools]
/// impl Calculator {
///     /// Adds two integers.
///     #[tool(read_only, title = "Sum")]
///     async fn add(&self, Args(sum): Args<Sum>) -> i64 {
///         sum.a + sum.b
///     }
///
///     /// Multiplies two integers.
///     #[tool(read_only)]
///     async fn multiply(
///         &self,
///         /// The first factor.
///         a: i64,
///         b: Option<i64>,
///         ctx: &Context,
///     ) -> i64 {
///         ctx.progress(1.0, Some(1.0), None);
///         a * b.unwrap_or(1)
///     }
///
///     /// The multiples of a number.
///     #[resource("multiples://{number}", mime_type = "text/plain")]
///     async fn multiples(&self, number: i64) -> String {
///         format!("{number}, {}, {}", number * 2, number * 3)
///     }
///
///     /// Explains a term.
///     #[prompt]
///     async fn explain(&self, term: String) -> String {
///         format!("Explain {term}.")
///     }
/// }
///
/// let server = Server::new("calculator", "1.0.0").with(Calculator);
/// # drop(server);
/// ```
///
/// # Attributes of methods
///
/// | Option | `#[tool]` | `#[resource("URI")]` | `#[prompt]` |
/// | --- | --- | --- | --- |
/// | `name = "…"`: default is the method's name | yes | yes | yes |
/// | `title = "…"`, `description = "…"`: default description is the method's documentation | yes | yes | yes |
/// | `scopes("…", "…")`: the scopes that a caller needs | yes | yes | yes |
/// | `tags("…", "…")`: for [`Server::enable`] and [`Server::disable`] | yes | yes | yes |
/// | `blocking`: the method is not `async`, and runs as [`Blocking`](server::Blocking) | yes | yes | yes |
/// | `read_only`, `destructive`, `idempotent`, `open_world`: hints; also `= false` | yes | – | – |
/// | `run_once`: see [`ToolOptions::run_once`](server::ToolOptions::run_once) | yes | – | – |
/// | `timeout = Duration::from_secs(…)`: how long a call may run ([`ToolOptions::timeout`](server::ToolOptions::timeout)) | yes | – | – |
/// | `output_schema = json!(…)`: instead of that of the returned type | yes | – | – |
/// | `icons(Icon::new("…"))`, `meta = …`, a JSON object | yes | yes | yes |
/// | `mime_type = "…"`, `annotations = Annotations::…`, `cache = CacheHints::new(…)` | – | yes | – |
/// | `list = method`: a method of the block that lists resources of a URI template, with the context or without parameters ([`ResourceDefinition::list`](server::ResourceDefinition::list)) | – | yes | – |
/// | `unchecked_variables("…")`: see [`ResourceDefinition::unchecked_variables`](server::ResourceDefinition::unchecked_variables) | – | yes | – |
///
/// # Parameters
///
/// - `&self`: the value that was added, which all calls share. Methods without a receiver work too.
/// - `ctx: Context` or `ctx: &Context`, under this name of the type: the context.
/// - `Args(value): Args<T>`, under this name of the type: all arguments as one type that implements `Deserialize` and, for
///   tools and prompts, `JsonSchema`. The arguments of prompts must be strings.
/// - Every other parameter is one argument with its own documentation; `Option<T>` is optional. Those of tools implement
///   `Deserialize` and `JsonSchema` and may have the attributes `#[serde(…)]` and `#[schemars(…)]`. Those of prompts, and the
///   variables of a URI template, are texts, and parsed with [`FromStr`](std::str::FromStr).
///
/// A method returns what a function returns: [`IntoToolReply`](server::IntoToolReply),
/// [`IntoResourceReply`](server::IntoResourceReply) or [`IntoPromptReply`](server::IntoPromptReply).
///
/// ```compile_fail
/// struct App;
///
/// #[mcpline::tools]
/// impl App {
///     #[tool]
///     async fn thread(&self) -> std::thread::ThreadId {
///         std::thread::current().id()
///     }
/// }
/// ```
///
/// A type has at most one block with this attribute: use a type for each group of features.
#[cfg(feature = "macros")]
#[cfg_attr(docsrs, doc(cfg(feature = "macros")))]
pub use mcpline_macros::tools;
pub use mcpline_protocol as protocol;
pub use mcpline_protocol::{Revision, RpcError};

pub use error::Error;
pub use error_kind::ErrorKind;
/// The crate that derives schemas, in the version that [`Server::tool`] takes.
#[cfg(feature = "schemars")]
#[cfg_attr(docsrs, doc(cfg(feature = "schemars")))]
pub use schemars;
#[cfg(feature = "macros")]
#[cfg_attr(docsrs, doc(cfg(feature = "macros")))]
pub use server::Args;
#[cfg(all(feature = "server", feature = "http"))]
pub use server::HttpInfo;
#[cfg(all(feature = "server", feature = "schemars"))]
pub use server::Json;
#[cfg(feature = "server")]
pub use server::{
    Call, Context, Handler, HandlerError, InputRequest, InputRequestMethod, InputRequired, Reply,
    Server, ServerBuilder, Settings, ToolError, ToolReply,
};
pub use shared_io_error::SharedIoError;
#[cfg(any(feature = "server", feature = "client"))]
pub use trace_context::TraceContext;
