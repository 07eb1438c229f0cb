//! What a client does besides requesting results.

use std::borrow::Cow;

use mcpline_protocol::vocabulary::LoggingLevel;
use mcpline_protocol::wire::Raw;

use crate::client::{Client, ClientError, RequestOptions};
use crate::error::Error;
use crate::foreign::options::log_level;

/// An operation of a client that has no result.
#[derive(Debug, Clone)]
pub enum Operation {
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

impl Operation {
    /// Reads an operation by its method and its one argument: the level of `logging/setLevel`, the URI of
    /// `resources/subscribe` and `resources/unsubscribe`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): there is no such operation, or no such level.
    pub fn read(method: &str, argument: String) -> Result<Self, Error> {
        Ok(match method {
            "ping" => Self::Ping,
            "logging/setLevel" => Self::SetLogLevel(log_level(&argument)?),
            "resources/subscribe" => Self::Subscribe(argument),
            "resources/unsubscribe" => Self::Unsubscribe(argument),
            "notifications/roots/list_changed" => Self::RootsChanged,
            other => return Err(Error::usage(format!("{other:?} is not an operation"))),
        })
    }

    /// The method, as an error names its operation.
    pub fn method(&self) -> Cow<'static, str> {
        match self {
            Self::Ping => "ping".into(),
            Self::SetLogLevel(_) => "logging/setLevel".into(),
            Self::Subscribe(_) => "resources/subscribe".into(),
            Self::Unsubscribe(_) => "resources/unsubscribe".into(),
            Self::RootsChanged => "notifications/roots/list_changed".into(),
            Self::Notify(method, _) => method.clone().into(),
        }
    }

    /// Performs the operation. Notifications ignore the options.
    ///
    /// # Errors
    ///
    /// [`ClientError`]
    pub async fn perform(
        self,
        client: &Client,
        options: &RequestOptions,
    ) -> Result<(), ClientError> {
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
