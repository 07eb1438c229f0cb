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

    /// Runs the command with this client and returns the outcome. Notifications ignore the options. If the future is dropped
    /// before it is polled, a request or list is recorded as cancelled.
    pub fn run(
        self,
        client: Client,
        options: RequestOptions,
    ) -> impl Future<Output = Outcome> + Send + 'static {
        let mut given = GivenCommand {
            command: self,
            client,
            options,
            has_begun: false,
        };
        async move {
            given.has_begun = true;
            match given.result().await {
                Ok(Some(result)) => Outcome::Result(result),
                Ok(None) => Outcome::Done,
                Err(error) => Outcome::failed(error, given.command.method()),
            }
        }
    }
}

/// A command of a program.
struct GivenCommand {
    command: ClientCommand,
    client: Client,
    options: RequestOptions,
    /// Whether it has begun, so that the client records it.
    has_begun: bool,
}

impl GivenCommand {
    async fn result(&self) -> Result<Option<Raw>, ClientError> {
        let (client, options) = (&self.client, &self.options);
        match &self.command {
            ClientCommand::Request(method, params) => {
                return client
                    .request(method, params.as_ref(), options)
                    .await
                    .map(Some);
            }
            // Rare, so kept out of the future of every request.
            ClientCommand::List(list) => {
                return Box::pin(list_all_pages(*list, client, options))
                    .await
                    .map(Some);
            }
            ClientCommand::Ping => client.ping_with(options).await,
            ClientCommand::SetLogLevel(level) => client.set_log_level_with(*level, options).await,
            ClientCommand::Subscribe(uri) => client.subscribe_with(uri, options).await,
            ClientCommand::Unsubscribe(uri) => client.unsubscribe_with(uri, options).await,
            ClientCommand::RootsChanged => client.roots_changed().await,
            ClientCommand::Notify(method, params) => client.notify(method, params.as_ref()).await,
        }
        .map(|()| None)
    }
}

impl Drop for GivenCommand {
    fn drop(&mut self) {
        if self.has_begun {
            return;
        }
        // The revision decides whether the others send a request, and which one.
        let (method, params) = match &self.command {
            ClientCommand::Request(method, params) => (&**method, params.as_ref()),
            ClientCommand::List(list) => (list.as_str(), None),
            _ => return,
        };
        self.client
            .record_cancelled_before_start(method, params, &self.options);
    }
}

/// Returns all pages of a list as one JSON array.
async fn list_all_pages(
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
