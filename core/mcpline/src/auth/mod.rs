//! Authorization: what a client needs of its host, and what a server needs to know of its callers.
//!
//! A client is given an [`Auth`]: a token of the host's own, or [`OAuth`]. With that, a client that is refused by its server
//! finds the authorization server, sends the user there, and keeps what it is
//! given. Two parts of that belong to the host, and are ready made for most:
//!
//! - [`UserAgent`]: how the user gets to the authorization server and back. [`Loopback`] is for programs on the
//!   user's own machine, [`Terminal`] for those elsewhere, [`Callback`] is the host's own way.
//! - [`TokenStore`]: where tokens and registrations are kept. [`MemoryStore`] forgets them with the process,
//!   [`FileStore`] keeps them for its owner alone, and with the cargo feature `keyring` there is a `KeyringStore` for
//!   the system's own.
//!
//! A server is served behind a [`ResourceServer`]: it says whose tokens are accepted, and makes an [`Caller`] of each,
//! which handlers find in [`Context::auth`](crate::Context::auth).

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "server")]
mod server;

pub use crate::caller::Caller;
pub use crate::http_client::{Auth, HttpSettings, Proxy};
pub use mcpline_auth::{AuthError, BoxFuture, Secret};
pub use mcpline_protocol::Scopes;

#[cfg(feature = "client")]
pub use mcpline_auth::client::{
    AssertionSource, BearerToken, Credentials, Enterprise, OAuth, OAuthBuilder, TokenSource,
    TokenWanted,
};
pub use mcpline_auth::registration::{ClientAuth, ClientMetadata};
#[cfg(feature = "keyring")]
pub use mcpline_auth::store::KeyringStore;
#[cfg(feature = "client")]
pub use mcpline_auth::store::{FileStore, MemoryStore, StoreError, TokenStore};
#[cfg(feature = "client")]
pub use mcpline_auth::user_agent::{
    Callback, Loopback, Redirected, Terminal, UserAgent, UserAgentError, Verdict, Visit,
};

#[cfg(feature = "server")]
pub(crate) use server::{AuthorizationEndpoint, EndpointAnswer, TokenRefusal};
#[cfg(feature = "server")]
pub use server::{Introspection, Keys, ResourceServer, ResourceServerBuilder, VerifyError};
