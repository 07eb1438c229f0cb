//! Opens links to the server at a URL.

use std::sync::Arc;

use crate::client::connect::{DialFuture, Dialler};
use crate::client::handshake_servers::ServerKey;
use crate::client::link::{Link, LinkFuture, SharedEventSink};
use crate::client_error::ClientError;
use mcpline_protocol::without_credentials;

use crate::http_client::target::Target;
use crate::http_client::{HttpClient, HttpSettings, is_loopback};
use crate::span::NetworkAddress;

use super::{HttpLink, HttpSseLink};

/// Dials the server at a URL.
pub(crate) struct HttpDialler {
    url: String,
    client: Arc<HttpClient>,
    /// `None` on this machine, where another program may soon own the port: clients do not share what they find there.
    server: Option<ServerKey>,
    address: NetworkAddress,
}

impl HttpDialler {
    /// Creates a dialler.
    ///
    /// # Errors
    ///
    /// [`ClientError::Usage`]: the URL or the settings are invalid.
    pub(crate) fn new(url: String, settings: HttpSettings) -> Result<Self, ClientError> {
        let client = HttpClient::of(&url, settings, tokio::runtime::Handle::current())?;
        let server = ServerKey::at(&without_credentials(&url));
        let server = (!is_loopback(&url)).then_some(server);
        let origin = Target::parse(&url)?.origin;
        let address = NetworkAddress {
            address: origin.host().to_owned(),
            port: Some(origin.port()),
        };
        Ok(Self {
            url,
            client,
            server,
            address,
        })
    }
}

impl Dialler for HttpDialler {
    fn dial(&self, sink: SharedEventSink, http_sse: bool) -> DialFuture<'_> {
        let link = if http_sse {
            HttpSseLink::open(&self.url, &self.client, sink).map(|link| link as Arc<dyn Link>)
        } else {
            HttpLink::open(&self.url, &self.client, sink).map(|link| link as Arc<dyn Link>)
        };
        Box::pin(async { link })
    }

    fn server_address(&self) -> Option<&NetworkAddress> {
        Some(&self.address)
    }

    fn known_server(&self) -> Option<ServerKey> {
        self.server
    }

    fn authorization(&self) -> u64 {
        self.client.authorization()
    }

    fn close(&self) -> LinkFuture {
        self.client.close();
        let tasks = self.client.tasks.clone();
        Box::pin(async move { tasks.close().await })
    }
}
