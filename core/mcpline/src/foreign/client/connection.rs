//! The phases of a connection, and the requests over it.

use mcpline_protocol::wire::Raw;

use crate::ErrorKind;
use crate::client::{Address, Client, ClientBuilder, ClientError, UnopenedClient};
use crate::error::Error;
use crate::foreign::Failure;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::outcome::Outcome;
use super::requests_in_flight::RequestsInFlight;

/// A connection to one server: planned, opening, open, closed.
///
/// Requests share it. The connection ends when it is closed, or when the last reference to it is dropped.
#[derive(Debug, Default)]
pub struct Connection {
    state: Mutex<State>,
    running: Arc<RequestsInFlight>,
    last_number: AtomicU64,
    server: OnceLock<ServerDescription>,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    /// The client that is being opened, and those that failed to open or were given up, until nothing of them is left.
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
    /// With the client that is being closed, for concurrent calls to wait for.
    Closing(Option<Client>),
    Closed,
}

/// A connection is in the wrong phase for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WrongPhaseError {
    /// It is not connected yet.
    NotConnected,
    /// It is connecting or connected.
    Opened,
    /// It is closed.
    Closed,
}

impl WrongPhaseError {
    /// Converts into an error for another language.
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

/// A client cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// It is in the wrong phase.
    Phase(WrongPhaseError),
    /// It has no server, or authorization needs requests that the host does not answer.
    Configuration(Error),
}

impl OpenError {
    /// Converts into an error for another language.
    pub fn failure(&self) -> Failure<'_> {
        match self {
            Self::Phase(error) => error.failure(),
            Self::Configuration(error) => Failure::of_error(error),
        }
    }
}

impl From<WrongPhaseError> for OpenError {
    fn from(error: WrongPhaseError) -> Self {
        Self::Phase(error)
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Configuration(error)
    }
}

/// Description of the server, known once the client is open.
#[derive(Debug, Clone)]
pub struct ServerDescription {
    /// The negotiated revision.
    pub revision: &'static str,
    /// `Implementation`, as JSON.
    pub info: Option<Raw>,
    /// `ServerCapabilities`, as JSON.
    pub capabilities: Raw,
    /// Instructions for the model on how to use the server.
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

    /// Returns everything as a JSON object: `protocolVersion`, `serverInfo`, `serverCapabilities`, `instructions`.
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

/// A connection that is being opened. If this is dropped before it is open, it may be opened again.
struct ConnectionAttempt {
    connection: Arc<Connection>,
    /// Taken when the client is open. Otherwise it is closed, and forgotten when nothing of it is left.
    client: Option<UnopenedClient>,
}

impl ConnectionAttempt {
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

    /// Stores the open client. Returns it if the connection was closed meanwhile.
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

impl Drop for ConnectionAttempt {
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
    /// Creates a connection that is not open yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns a number for a request that is unique in this connection. Bindings may use their own instead.
    pub fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the requests that can be cancelled.
    pub fn requests_in_flight(&self) -> &Arc<RequestsInFlight> {
        &self.running
    }

    /// Checks that the connection has not been opened yet, so that it can be configured.
    ///
    /// # Errors
    ///
    /// [`WrongPhaseError::Opened`], [`WrongPhaseError::Closed`]
    pub fn check_unopened(&self) -> Result<(), WrongPhaseError> {
        match self.lock().phase {
            Phase::Planned => Ok(()),
            Phase::Opening | Phase::Open(_) => Err(WrongPhaseError::Opened),
            Phase::Closing(_) | Phase::Closed => Err(WrongPhaseError::Closed),
        }
    }

    /// Returns the client of the open connection.
    ///
    /// # Errors
    ///
    /// [`WrongPhaseError::NotConnected`], [`WrongPhaseError::Closed`]
    pub fn client(&self) -> Result<Client, WrongPhaseError> {
        match &self.lock().phase {
            Phase::Open(client) => Ok(client.clone()),
            Phase::Planned | Phase::Opening => Err(WrongPhaseError::NotConnected),
            Phase::Closing(_) | Phase::Closed => Err(WrongPhaseError::Closed),
        }
    }

    /// Returns the id of the server's process, if the client has started it and is connected to it.
    pub fn pid(&self) -> Option<u32> {
        self.client().ok()?.pid()
    }

    /// Returns the description of the server, even after the connection was closed. `None` before it was opened.
    pub fn server(&self) -> Option<&ServerDescription> {
        self.server.get()
    }

    /// Begins to open the connection. Returns the future that opens it, for [`RequestsInFlight::task`] or [`RequestsInFlight::start`]; it
    /// returns the [`ServerDescription`] as JSON. If it fails or is dropped, the connection may be opened again.
    ///
    /// # Errors
    ///
    /// [`WrongPhaseError::Opened`], [`WrongPhaseError::Closed`]
    pub fn open(
        self: &Arc<Self>,
        builder: ClientBuilder,
        address: Address,
    ) -> Result<impl Future<Output = Outcome> + Send + 'static + use<>, WrongPhaseError> {
        {
            let mut state = self.lock();
            match state.phase {
                Phase::Planned => state.phase = Phase::Opening,
                Phase::Opening | Phase::Open(_) => return Err(WrongPhaseError::Opened),
                Phase::Closing(_) | Phase::Closed => return Err(WrongPhaseError::Closed),
            }
        }
        let mut opening = ConnectionAttempt {
            connection: self.clone(),
            client: None,
        };
        Ok(async move {
            let begun = builder.build_unopened(address);
            let client = match begun.and_then(|client| opening.begin(client)) {
                Ok(client) => client,
                Err(error) => return Outcome::failed(error, "connect"),
            };
            let client = match client.open().await {
                Ok(client) => client,
                Err(error) => return Outcome::failed(error, "connect"),
            };
            // Set only once: a connection is only opened again if it failed before.
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

    /// Refuses requests and opening from now on. [`Connection::close`] does the rest.
    pub(super) fn begin_closing(&self) {
        let mut state = self.lock();
        let client = match std::mem::replace(&mut state.phase, Phase::Closed) {
            Phase::Open(client) | Phase::Closing(Some(client)) => Some(client),
            Phase::Closed => return,
            Phase::Planned | Phase::Opening | Phase::Closing(None) => None,
        };
        state.phase = Phase::Closing(client);
    }

    /// Closes the connection, and resolves when nothing of it is left. Requests in flight fail with
    /// [`ClientError::Closed`]. Repeated calls wait as well.
    pub async fn close(&self) {
        self.begin_closing();
        let (client, openings) = {
            let state = self.lock();
            match &state.phase {
                Phase::Closing(client) => (client.clone(), state.openings.clone()),
                _ => return,
            }
        };
        // Those that were given up are already closing, so this waits for all at once.
        for opening in openings {
            opening.close().await;
        }
        if let Some(client) = client {
            client.close().await;
        }
        // Lets requests fail by themselves, with their own errors.
        tokio::task::yield_now().await;
        // Ends the requests that wait for the host.
        self.running.end_all();
        // Foreign code may keep the connection for long after this.
        let closed = std::mem::replace(&mut self.lock().phase, Phase::Closed);
        drop(closed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
