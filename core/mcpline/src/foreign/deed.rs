//! What a client does besides asking for results.

use mcpline_protocol::vocabulary::LoggingLevel;
use mcpline_protocol::wire::Raw;

use crate::client::{Client, ClientError};

/// Something that a client does and that has no result.
#[derive(Debug, Clone)]
pub enum Deed {
    /// [`Client::ping`]
    Ping,
    /// [`Client::set_log_level`]
    SetLogLevel(LoggingLevel),
    /// [`Client::subscribe`]
    Subscribe(String),
    /// [`Client::unsubscribe`]
    Unsubscribe(String),
    /// [`Client::roots_changed`]
    RootsChanged,
    /// [`Client::notify`]
    Notify(String, Option<Raw>),
}

impl Deed {
    /// Has the client do it.
    ///
    /// # Errors
    ///
    /// [`ClientError`]
    pub async fn done(self, client: &Client) -> Result<(), ClientError> {
        match self {
            Self::Ping => client.ping().await,
            Self::SetLogLevel(level) => client.set_log_level(level).await,
            Self::Subscribe(uri) => client.subscribe(&uri).await,
            Self::Unsubscribe(uri) => client.unsubscribe(&uri).await,
            Self::RootsChanged => client.roots_changed().await,
            Self::Notify(method, params) => client.notify(&method, params.as_ref()).await,
        }
    }
}
