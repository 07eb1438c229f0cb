//! The phases of a connection, and what is requested over it.

use mcpline_protocol::wire::Raw;

use crate::ErrorKind;
use crate::client::{Address, Client, ClientBuilder, ClientError, UnopenedClient};
use crate::error::Error;
use crate::foreign::Failure;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::outcome::Outcome;
use super::running::Running;

/// A connection to one server: planned, opening, open, closed.
///
/// Requests share it. The connection ends when it is closed, or when the last reference to it is dropped.
#[derive(Debug, Default)]
pub struct Connection {
    state: Mutex<State>,
    running: Arc<Running>,
    last_number: AtomicU64,
    server: OnceLock<ServerDescription>,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    /// The client that is being opened, and those whose opening has failed or was given up, until nothing of them is left.
    openings: Vec<UnopenedClient>,
}

impl State {
    fn forget(&mut self, opening: &UnopenedClient) {
        self.openings.retain(|other| !other.is_same_as(opening));
    }
}

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Planned,
    Opening,
    Open(Client),
    /// With the client that is being closed, for others that wait for the same.
    Closing(Option<Client>),
    Closed,
}

/// A connection is in the wrong phase for what was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PhaseError {
    /// It was not opened yet.
    NotConnected,
    /// It is being opened, or open.
    Opened,
    /// It is closed.
    Closed,
}

impl PhaseError {
    /// The error, ready for another language.
    pub fn failure(self) -> Failure<'static> {
        match self {
            Self::NotConnected => {
                Failure::new(ErrorKind::Usage, "the client is not connected".to_owned())
            }
            Self::Opened => Failure::new(
                ErrorKind::Usage,
                "the client is connecting or connected already".to_owned(),
            ),
            Self::Closed => Failure::of_client(&ClientError::Closed),
        }
    }
}

/// A client can't be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// It is in the wrong phase.
    Phase(PhaseError),
    /// It has no server, or authorization needs the host, which does not answer it.
    Configuration(Error),
}

impl OpenError {
    /// The error, ready for another language.
    pub fn failure(&self) -> Failure<'_> {
        match self {
            Self::Phase(error) => error.failure(),
            Self::Configuration(error) => Failure::of_error(error),
        }
    }
}

impl From<PhaseError> for OpenError {
    fn from(error: PhaseError) -> Self {
        Self::Phase(error)
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Configuration(error)
    }
}

/// What a client knows of its server since it was opened.
#[derive(Debug, Clone)]
pub struct ServerDescription {
    /// The revision that both speak.
    pub revision: &'static str,
    /// `Implementation`, as JSON.
    pub info: Option<Raw>,
    /// `ServerCapabilities`, as JSON.
    pub capabilities: Raw,
    /// How to use the server, for the model.
    pub instructions: Option<String>,
}

impl ServerDescription {
    fn of(client: &Client) -> Self {
        Self {
            revision: client.revision().as_str(),
            info: client
                .server_info()
                .and_then(|info| Raw::from_serialize(info).ok()),
            capabilities: Raw::from_serialize(client.server_capabilities())
                .unwrap_or(Raw::EMPTY_OBJECT),
            instructions: client.instructions().map(str::to_owned),
        }
    }

    /// All of it as a JSON object: `protocolVersion`, `serverInfo`, `serverCapabilities`, `instructions`.
    pub fn to_json(&self) -> Raw {
        let revision = Raw::string(self.revision);
        let info = self.info.as_ref().map_or("null", Raw::as_str);
        let capabilities = &self.capabilities;
        let instructions = self.instructions.as_deref().map(Raw::string);
        let instructions = instructions.as_ref().map_or("null", Raw::as_str);
        Raw::from_trusted(format!(
            r#"{{"protocolVersion":{revision},"serverInfo":{info},"serverCapabilities":{capabilities},"instructions":{instructions}}}"#
        ))
    }
}

/// A connection that is being opened. If it is dropped before it is open, the connection may be opened again.
struct Opening {
    connection: Arc<Connection>,
    /// Taken when it is open. Else it is closed, and forgotten when nothing of it is left.
    client: Option<UnopenedClient>,
}

impl Opening {
    /// Begins to open a client, unless the connection was closed meanwhile.
    fn begin(&mut self, client: UnopenedClient) -> Result<UnopenedClient, ClientError> {
        let mut state = self.connection.lock();
        if !matches!(state.phase, Phase::Opening) {
            return Err(ClientError::Closed);
        }
        state.openings.push(client.clone());
        self.client = Some(client.clone());
        Ok(client)
    }

    /// The client is open. Gives it back if the connection was closed meanwhile.
    fn end(&mut self, opened: Client) -> Result<(), Client> {
        let mut state = self.connection.lock();
        if !matches!(state.phase, Phase::Opening) {
            return Err(opened);
        }
        state.phase = Phase::Open(opened);
        if let Some(client) = self.client.take() {
            state.forget(&client);
        }
        Ok(())
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        let mut state = self.connection.lock();
        if let Phase::Opening = state.phase {
            state.phase = Phase::Planned;
        }
        drop(state);
        if let Some(client) = self.client.take() {
            let (connection, closed) = (Arc::downgrade(&self.connection), client.clone());
            client.close_in_background(move || {
                if let Some(connection) = connection.upgrade() {
                    connection.lock().forget(&closed);
                }
            });
        }
    }
}

impl Connection {
    /// A connection that was not opened yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A number for a request, which no other request of this connection has. Bindings may use their own instead.
    pub fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The requests that can be cancelled.
    pub fn running(&self) -> &Arc<Running> {
        &self.running
    }

    /// Checks that the connection was not opened yet: what is set before opening may be set.
    ///
    /// # Errors
    ///
    /// [`PhaseError::Opened`], [`PhaseError::Closed`]
    pub fn check_planned(&self) -> Result<(), PhaseError> {
        match self.lock().phase {
            Phase::Planned => Ok(()),
            Phase::Opening | Phase::Open(_) => Err(PhaseError::Opened),
            Phase::Closing(_) | Phase::Closed => Err(PhaseError::Closed),
        }
    }

    /// The open connection.
    ///
    /// # Errors
    ///
    /// [`PhaseError::NotConnected`], [`PhaseError::Closed`]
    pub fn client(&self) -> Result<Client, PhaseError> {
        match &self.lock().phase {
            Phase::Open(client) => Ok(client.clone()),
            Phase::Planned | Phase::Opening => Err(PhaseError::NotConnected),
            Phase::Closing(_) | Phase::Closed => Err(PhaseError::Closed),
        }
    }

    /// What is known of the server, also after the connection was closed. `None` before it was opened.
    pub fn server(&self) -> Option<&ServerDescription> {
        self.server.get()
    }

    /// Begins to open the connection. Returns what opens it, which ends with the [`ServerDescription`] as JSON and is given to
    /// [`Running::task`] or [`Running::start`]. Where that fails, or is dropped, the connection may be opened again.
    ///
    /// # Errors
    ///
    /// [`PhaseError::Opened`], [`PhaseError::Closed`]
    pub fn open(
        self: &Arc<Self>,
        builder: ClientBuilder,
        address: Address,
    ) -> Result<impl Future<Output = Outcome> + Send + 'static + use<>, PhaseError> {
        {
            let mut state = self.lock();
            match state.phase {
                Phase::Planned => state.phase = Phase::Opening,
                Phase::Opening | Phase::Open(_) => return Err(PhaseError::Opened),
                Phase::Closing(_) | Phase::Closed => return Err(PhaseError::Closed),
            }
        }
        let mut opening = Opening {
            connection: self.clone(),
            client: None,
        };
        Ok(async move {
            let begun = builder.unopened(address);
            let client = match begun.and_then(|client| opening.begin(client)) {
                Ok(client) => client,
                Err(error) => return Outcome::failed(error, "connect"),
            };
            let client = match client.open().await {
                Ok(client) => client,
                Err(error) => return Outcome::failed(error, "connect"),
            };
            // Opened once: whoever opens it again has failed before.
            let connection = opening.connection.clone();
            let server = connection
                .server
                .get_or_init(|| ServerDescription::of(&client));
            match opening.end(client) {
                Ok(()) => Outcome::Result(server.to_json()),
                Err(client) => {
                    client.close().await;
                    Outcome::failed(ClientError::Closed, "connect")
                }
            }
        })
    }

    /// Refuses requests from now on, and to be opened. [`Connection::close`] does the rest.
    pub(super) fn begin_closing(&self) {
        let mut state = self.lock();
        let client = match std::mem::replace(&mut state.phase, Phase::Closed) {
            Phase::Open(client) | Phase::Closing(Some(client)) => Some(client),
            Phase::Closed => return,
            Phase::Planned | Phase::Opening | Phase::Closing(None) => None,
        };
        state.phase = Phase::Closing(client);
    }

    /// Closes the connection, and resolves when nothing of it is left. Requests in flight fail with [`ClientError::Closed`].
    /// A second call waits for the same.
    pub async fn close(&self) {
        self.begin_closing();
        let (client, openings) = {
            let state = self.lock();
            match &state.phase {
                Phase::Closing(client) => (client.clone(), state.openings.clone()),
                _ => return,
            }
        };
        // They are closed side by side: those that were given up are being closed already.
        for opening in openings {
            opening.close().await;
        }
        if let Some(client) = client {
            client.close().await;
        }
        // Requests fail by themselves, and say which they were.
        tokio::task::yield_now().await;
        // What waits for its host.
        self.running.end_all();
        // Foreign code may hold the connection for long after this.
        let closed = std::mem::replace(&mut self.lock().phase, Phase::Closed);
        drop(closed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
