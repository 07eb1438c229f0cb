//! Commands to a client: requests, lists, subscriptions, notifications.

use std::borrow::Cow;

use mcpline_protocol::ListMethod;
use mcpline_protocol::vocabulary::LoggingLevel;
use mcpline_protocol::wire::Raw;

use crate::client::{Client, ClientError, Cursors, RequestOptions};
use crate::error::Error;
use crate::foreign::options::log_level;

use super::outcome::Outcome;

/// A command to a client. All but requests and lists have no result.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ClientCommand {
    /// [`Client::request`]
    Request(Cow<'static, str>, Option<Raw>),
    /// All pages of a list, as one JSON array.
    List(ListMethod),
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

impl ClientCommand {
    /// Reads a command without a result by its method and its one argument: the level of `logging/setLevel`, the URI of
    /// `resources/subscribe` and `resources/unsubscribe`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): no command has this method, or no log level this name.
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

    /// Returns the method, as in the operation of an error.
    pub fn method(&self) -> Cow<'static, str> {
        match self {
            Self::Request(method, _) => method.clone(),
            Self::List(list) => list.as_str().into(),
            Self::Ping => "ping".into(),
            Self::SetLogLevel(_) => "logging/setLevel".into(),
            Self::Subscribe(_) => "resources/subscribe".into(),
            Self::Unsubscribe(_) => "resources/unsubscribe".into(),
            Self::RootsChanged => "notifications/roots/list_changed".into(),
            Self::Notify(method, _) => method.clone().into(),
        }
    }

    /// Runs the command with this client and returns the outcome. Notifications ignore the options.
    pub async fn run(self, client: Client, options: RequestOptions) -> Outcome {
        let method = self.method();
        match self.result(&client, &options).await {
            Ok(Some(result)) => Outcome::Result(result),
            Ok(None) => Outcome::Done,
            Err(error) => Outcome::failed(error, method),
        }
    }

    async fn result(
        self,
        client: &Client,
        options: &RequestOptions,
    ) -> Result<Option<Raw>, ClientError> {
        match self {
            Self::Request(method, params) => {
                return client
                    .request(&method, params.as_ref(), options)
                    .await
                    .map(Some);
            }
            // Rare, so kept out of the future of every request.
            Self::List(list) => return Box::pin(all(list, client, options)).await.map(Some),
            Self::Ping => client.ping_with(options).await,
            Self::SetLogLevel(level) => client.set_log_level_with(level, options).await,
            Self::Subscribe(uri) => client.subscribe_with(&uri, options).await,
            Self::Unsubscribe(uri) => client.unsubscribe_with(&uri, options).await,
            Self::RootsChanged => client.roots_changed().await,
            Self::Notify(method, params) => client.notify(&method, params.as_ref()).await,
        }
        .map(|()| None)
    }
}

/// Returns all pages of a list as one JSON array.
async fn all(
    list: ListMethod,
    client: &Client,
    options: &RequestOptions,
) -> Result<Raw, ClientError> {
    let (method, member) = (list.as_str(), list.member());
    let mut cursors = Cursors::new(method);
    let mut params = None;
    let mut all = vec![b'['];
    loop {
        let page = client.request(method, params.as_ref(), options).await?;
        let items = page.member(member);
        let items = items.as_ref().and_then(Raw::elements);
        let items = items.ok_or_else(|| ClientError::InvalidResponse {
            reason: format!("a page of {method} has no array {member}"),
        })?;
        for item in items {
            if all.len() > 1 {
                all.push(b',');
            }
            all.extend_from_slice(item.as_bytes());
        }
        let cursor = page.member("nextCursor").filter(|cursor| !cursor.is_null());
        let next = cursor.as_ref().and_then(Raw::string_value);
        if !cursors.follow(next.as_deref())? {
            all.push(b']');
            return Ok(Raw::from_trusted(all));
        }
        params = cursor.map(|cursor| Raw::from_trusted(format!(r#"{{"cursor":{cursor}}}"#)));
    }
}
