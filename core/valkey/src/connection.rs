//! Connections to Valkey.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, Pipeline, RedisResult, Value};

use tokio::sync::watch;

use crate::address::Address;
use crate::error::ValkeyError;
use crate::failure::Failure;
use crate::options::ValkeyOptions;

/// Connects to what a URL names.
pub(crate) struct Connector {
    target: Target,
    /// How long to wait for a connection, and for the answer to a command.
    timeout: Duration,
    /// How many times the server turned out to be a replica.
    demotions: watch::Sender<u64>,
}

enum Target {
    Server(Client),
    #[cfg(feature = "cluster")]
    Cluster(Vec<redis::ConnectionInfo>, Option<Certificates>),
    #[cfg(feature = "sentinel")]
    Sentinel(tokio::sync::Mutex<redis::sentinel::SentinelClient>),
}

#[cfg(all(feature = "cluster", feature = "tls"))]
type Certificates = redis::TlsCertificates;
#[cfg(all(feature = "cluster", not(feature = "tls")))]
type Certificates = std::convert::Infallible;

/// A connection. Copies share it.
#[derive(Clone)]
pub(crate) struct Connection {
    inner: Inner,
    timeout: Duration,
}

#[derive(Clone)]
enum Inner {
    Server(MultiplexedConnection),
    #[cfg(feature = "cluster")]
    Cluster(redis::cluster_async::ClusterConnection),
}

impl Connector {
    pub(crate) fn new(address: Address, options: &ValkeyOptions) -> Result<Self, ValkeyError> {
        #[cfg(feature = "tls")]
        let certificates = certificates(options);
        let target = match address {
            Address::Server(info) => {
                #[cfg(feature = "tls")]
                let client = match (info.addr(), certificates) {
                    (redis::ConnectionAddr::TcpTls { .. }, Some(certificates)) => {
                        Client::build_with_tls(info, certificates).map_err(invalid_tls)?
                    }
                    _ => Client::open(info).map_err(invalid_url)?,
                };
                #[cfg(not(feature = "tls"))]
                let client = Client::open(info).map_err(invalid_url)?;
                Target::Server(client)
            }
            #[cfg(feature = "cluster")]
            Address::Cluster(nodes) => {
                #[cfg(not(feature = "tls"))]
                let certificates = None;
                let connector = Self {
                    target: Target::Cluster(nodes, certificates),
                    timeout: options.timeout,
                    demotions: watch::Sender::default(),
                };
                // Reads the certificates.
                connector.cluster_client(Duration::ZERO)?;
                return Ok(connector);
            }
            #[cfg(feature = "sentinel")]
            Address::Sentinel { sentinels, service } => {
                let client = sentinel_client(sentinels, &service, options)?;
                Target::Sentinel(tokio::sync::Mutex::new(client))
            }
        };
        Ok(Self {
            target,
            timeout: options.timeout,
            demotions: watch::Sender::default(),
        })
    }

    /// Notes that the server is a replica now. Other connections to it, which only read, do not notice.
    pub(crate) fn note_demotion(&self) {
        self.demotions.send_modify(|demotions| *demotions += 1);
    }

    /// Returns how many times the server turned out to be a replica. A connection from before the last time must be
    /// replaced.
    pub(crate) fn demotions(&self) -> watch::Receiver<u64> {
        self.demotions.subscribe()
    }

    /// Connects. The timeout of each command is longer by `wait`, for commands that block in the server.
    pub(crate) async fn connect(&self, wait: Duration) -> Result<Connection, Failure> {
        #[cfg(feature = "tls")]
        install_cryptography();
        let timeout = self.timeout.saturating_add(wait);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(timeout));
        let connecting = async {
            let inner = match &self.target {
                Target::Server(client) => Inner::Server(
                    client
                        .get_multiplexed_async_connection_with_config(&config)
                        .await
                        .map_err(|error| Failure::of(&error, self.timeout))?,
                ),
                #[cfg(feature = "cluster")]
                Target::Cluster(..) => Inner::Cluster(
                    self.cluster_client(wait)
                        .map_err(|error| Failure::Unreachable(error.to_string()))?
                        .get_async_connection()
                        .await
                        .map_err(|error| Failure::of(&error, self.timeout))?,
                ),
                #[cfg(feature = "sentinel")]
                Target::Sentinel(client) => Inner::Server(
                    client
                        .lock()
                        .await
                        .get_async_connection_with_config(&config)
                        .await
                        .map_err(|error| Failure::of(&error, self.timeout))?,
                ),
            };
            Ok(inner)
        };
        // Also limits the wait for a server that accepts the connection and does not answer.
        let inner = tokio::time::timeout(self.timeout, connecting)
            .await
            .map_err(|_| Failure::TimedOut(self.timeout))?
            .map_err(|failure: Failure| match failure.breaks_connection() {
                true => failure,
                // Whatever it says, there is no connection.
                false => Failure::Unreachable(failure.to_string()),
            })?;
        Ok(Connection { inner, timeout })
    }

    #[cfg(feature = "cluster")]
    fn cluster_client(&self, wait: Duration) -> Result<redis::cluster::ClusterClient, ValkeyError> {
        let Target::Cluster(nodes, certificates) = &self.target else {
            return Err(ValkeyError::InvalidUrl(
                "is not that of a cluster".to_owned(),
            ));
        };
        let mut builder = redis::cluster::ClusterClient::builder(nodes.iter().cloned())
            .retries(1)
            .connection_timeout(self.timeout)
            .response_timeout(self.timeout.saturating_add(wait))
            .overall_response_timeout(Some(self.timeout.saturating_add(wait)));
        #[cfg(feature = "tls")]
        if let Some(certificates) = certificates {
            builder = builder.certs(certificates.clone());
        }
        #[cfg(not(feature = "tls"))]
        let _ = certificates;
        builder = builder.use_protocol(redis::ProtocolVersion::RESP2);
        builder.build().map_err(invalid_url)
    }
}

impl Connection {
    /// Sends a command.
    pub(crate) async fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, Failure> {
        let timeout = self.timeout;
        let asked = async {
            match &mut self.inner {
                Inner::Server(connection) => command.query_async(connection).await,
                #[cfg(feature = "cluster")]
                Inner::Cluster(connection) => command.query_async(connection).await,
            }
        };
        within(timeout, asked).await
    }

    /// Sends commands whose keys are on the same node. Returns the outcome of each.
    pub(crate) async fn query_all(
        &mut self,
        commands: Vec<Cmd>,
    ) -> Result<Vec<Result<Value, Failure>>, Failure> {
        let mut pipeline = Pipeline::with_capacity(commands.len());
        pipeline.ignore_errors();
        for command in commands {
            pipeline.add_command(command);
        }
        let timeout = self.timeout;
        let asked = async {
            match &mut self.inner {
                Inner::Server(connection) => pipeline.query_async(connection).await,
                #[cfg(feature = "cluster")]
                Inner::Cluster(connection) => pipeline.query_async(connection).await,
            }
        };
        let outcomes: Vec<RedisResult<Value>> = within(timeout, asked).await?;
        let outcomes = outcomes.into_iter();
        Ok(outcomes
            .map(|outcome| outcome.map_err(|error| Failure::of(&error, timeout)))
            .collect())
    }

    /// Whether commands that are sent together must have keys on the same node.
    pub(crate) fn is_cluster(&self) -> bool {
        match &self.inner {
            Inner::Server(_) => false,
            #[cfg(feature = "cluster")]
            Inner::Cluster(_) => true,
        }
    }
}

async fn within<T>(
    timeout: Duration,
    asked: impl Future<Output = RedisResult<T>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(timeout, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Failure::of(&error, timeout)),
        Err(_) => Err(Failure::TimedOut(timeout)),
    }
}

#[cfg(feature = "sentinel")]
fn sentinel_client(
    sentinels: Vec<redis::ConnectionInfo>,
    service: &str,
    options: &ValkeyOptions,
) -> Result<redis::sentinel::SentinelClient, ValkeyError> {
    use redis::sentinel::{SentinelClientBuilder, SentinelServerType};

    // All have the same settings: those of the URL.
    let settings = sentinels
        .first()
        .map(|first| first.redis_settings().clone());
    let addresses: Vec<redis::ConnectionAddr> =
        sentinels.iter().map(|info| info.addr().clone()).collect();
    #[cfg(feature = "tls")]
    let has_tls = addresses
        .iter()
        .any(|address| matches!(address, redis::ConnectionAddr::TcpTls { .. }));
    let mut builder = SentinelClientBuilder::new(addresses, service, SentinelServerType::Master)
        .map_err(invalid_url)?;
    if let Some(settings) = settings {
        builder = builder.set_client_to_redis_db(settings.db());
        if let Some(username) = settings.username() {
            builder = builder.set_client_to_redis_username(username);
        }
        if let Some(password) = settings.password() {
            builder = builder.set_client_to_redis_password(password);
        }
    }
    if let Some(username) = &options.sentinel_username {
        builder = builder.set_client_to_sentinel_username(username);
    }
    if let Some(password) = &options.sentinel_password {
        builder = builder.set_client_to_sentinel_password(password);
    }
    #[cfg(feature = "tls")]
    if has_tls {
        builder = builder
            .set_client_to_redis_tls_mode(redis::TlsMode::Secure)
            .set_client_to_sentinel_tls_mode(redis::TlsMode::Secure);
        if let Some(certificates) = certificates(options) {
            builder = builder
                .set_client_to_redis_certificates(certificates.clone())
                .set_client_to_sentinel_certificates(certificates);
        }
    }
    builder.build().map_err(invalid_url)
}

#[cfg(feature = "tls")]
fn certificates(options: &ValkeyOptions) -> Option<redis::TlsCertificates> {
    if options.tls_roots.is_none() && options.tls_identity.is_none() {
        return None;
    }
    Some(redis::TlsCertificates {
        client_tls: options
            .tls_identity
            .as_ref()
            .map(|identity| redis::ClientTlsConfig {
                client_cert: identity.certificate.clone(),
                client_key: identity.key.clone(),
            }),
        root_cert: options.tls_roots.clone(),
    })
}

/// Installs ring as the default rustls crypto provider of this process, unless the program has installed one. The client
/// crate uses the default provider.
#[cfg(feature = "tls")]
fn install_cryptography() {
    use tokio_rustls::rustls::crypto::{CryptoProvider, ring};

    if CryptoProvider::get_default().is_none() {
        // Fails if another thread was first.
        let _ = ring::default_provider().install_default();
    }
}

fn invalid_url(error: redis::RedisError) -> ValkeyError {
    ValkeyError::InvalidUrl(format!("is invalid ({error})"))
}

#[cfg(feature = "tls")]
fn invalid_tls(error: redis::RedisError) -> ValkeyError {
    ValkeyError::InvalidOption {
        option: "tls_roots or tls_identity",
        reason: format!("not valid PEM ({error})"),
    }
}
