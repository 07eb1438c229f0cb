//! The configuration of a client, which may change until it connects.

use crate::client::{Address, Answerer, ClientBuilder, ClientSettings};
use crate::error::Error;
use crate::foreign::options::HostOptions;
use crate::sync::Arc;

use super::handle::Host;
use super::input_requests::host_gone;
use super::target::Target;

/// The configuration of a client: its host, its settings and its server.
#[derive(Debug, Default)]
pub struct ClientConfiguration {
    /// What the host says of itself, and which handlers it has.
    pub host: HostOptions,
    /// Whether the host answers input requests of authorization (`auth/…`).
    pub authorizes: bool,
    /// The core's settings.
    pub settings: ClientSettings,
    /// Where the server is.
    pub target: Option<Target>,
}

impl ClientConfiguration {
    /// Checks what the host says of itself.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a capability is not the protocol's, or a custom request has a name of
    /// the library's own.
    pub fn check_host(&self) -> Result<(), Error> {
        let never = |_: &str| -> Answerer { Arc::new(|_| Box::pin(async { Err(host_gone()) })) };
        self.host.builder(self.settings.clone(), never).map(drop)
    }

    /// The builder of a connection, and the address of its server.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): there is no target; authorization needs the host, which does not answer
    /// it.
    pub(super) fn builder_and_address(
        &self,
        host: &Host,
    ) -> Result<(ClientBuilder, Address), Error> {
        let target = self
            .target
            .as_ref()
            .ok_or_else(|| Error::usage("the client has no server: set its address first"))?;
        let answerers = |method: &str| host.input_requests.answerer(method);
        let authorizers = |method: &'static str| answerers(method);
        let address = target.address(
            self.authorizes
                .then_some(&authorizers as &dyn Fn(&'static str) -> Answerer),
            self.host.stderr.then(|| host.stderr_listener()),
        )?;
        let mut builder = self.host.builder(self.settings.clone(), answerers)?;
        if self.host.notifications {
            builder = builder.on_notification(host.notification_listener());
        } else if self.host.logs {
            builder = builder.on_logged(host.notification_listener());
        }
        Ok((builder, address))
    }
}
