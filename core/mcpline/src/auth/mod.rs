//! Authorization: what a client needs from its host, and what a server learns about its callers.
//!
//! A client gets an [`Auth`]: a token of the host's own, or [`OAuth`]. With OAuth, a client that its server refuses
//! finds the authorization server, sends the user there, and stores the tokens that it gets. Two parts of that belong
//! to the host, with implementations for most:
//!
//! - [`UserAgent`]: how the user gets to the authorization server and back. [`Loopback`] is for programs on the user's
//!   own machine, [`Terminal`] for programs elsewhere, and [`FunctionUserAgent`] for the host's own way.
//! - [`TokenStore`]: where tokens and registrations are stored. [`MemoryStore`] loses them with the process,
//!   [`FileStore`] keeps them readable by their owner only, and with the cargo feature `keyring` there is a
//!   `KeyringStore` for the system's keyring.
//!
//! A server gets a [`ResourceServer`], which decides whose tokens are accepted and turns each into a [`Caller`].
//! Handlers find it in [`Context::auth`](crate::Context::auth).

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "server")]
mod server;

pub use crate::caller::Caller;
pub use crate::http_client::{Auth, ConnectTarget, HttpConnector, HttpSettings, Proxy};
pub use mcpline_auth::{AuthError, BoxFuture, Secret};
pub use mcpline_protocol::Scopes;

#[cfg(feature = "client")]
pub use mcpline_auth::client::{
    AssertionSource, BearerToken, Credentials, Enterprise, OAuth, OAuthBuilder, TokenRequest,
    TokenSource,
};
pub use mcpline_auth::registration::{ClientAuth, ClientMetadata};
#[cfg(feature = "keyring")]
pub use mcpline_auth::store::KeyringStore;
#[cfg(feature = "client")]
pub use mcpline_auth::store::{FileStore, MemoryStore, StoreError, TokenStore};
#[cfg(feature = "client")]
pub use mcpline_auth::user_agent::{
    FunctionUserAgent, Loopback, OutcomeReporter, Redirected, SignIn, Terminal, UserAgent,
    UserAgentError,
};

#[cfg(feature = "server")]
pub(crate) use server::{AuthorizationEndpoint, EndpointAnswer, TokenRefusal};
#[cfg(feature = "server")]
pub use server::{Introspection, Keys, ResourceServer, ResourceServerBuilder, VerifyError};
