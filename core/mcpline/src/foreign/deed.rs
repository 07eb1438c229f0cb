//! What a client does besides asking for results.

use mcpline_protocol::vocabulary::LoggingLevel;
use mcpline_protocol::wire::Raw;

use crate::client::{Client, ClientError, RequestOptions};

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
    /// The method, as an error names its operation.
    pub fn method(&self) -> std::borrow::Cow<'static, str> {
        match self {
            Self::Ping => "ping".into(),
            Self::SetLogLevel(_) => "logging/setLevel".into(),
            Self::Subscribe(_) => "resources/subscribe".into(),
            Self::Unsubscribe(_) => "resources/unsubscribe".into(),
            Self::RootsChanged => "notifications/roots/list_changed".into(),
            Self::Notify(method, _) => method.clone().into(),
        }
    }

    /// Has the client do it. A message without an answer has no use for options.
    ///
    /// # Errors
    ///
    /// [`ClientError`]
    pub async fn done(self, client: &Client, options: &RequestOptions) -> Result<(), ClientError> {
        match self {
            Self::Ping => client.ping_with(options).await,
            Self::SetLogLevel(level) => client.set_log_level_with(level, options).await,
            Self::Subscribe(uri) => client.subscribe_with(&uri, options).await,
            Self::Unsubscribe(uri) => client.unsubscribe_with(&uri, options).await,
            Self::RootsChanged => client.roots_changed().await,
            Self::Notify(method, params) => client.notify(&method, params.as_ref()).await,
        }
    }
}
