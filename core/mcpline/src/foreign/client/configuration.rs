//! The configuration of a client, which may change until it connects.

use crate::client::{Address, ClientBuilder, ClientSettings, HostRequestHandler, RequestListener};
use crate::error::Error;
use crate::foreign::options::{CallOptions, HostOptions};
use crate::sync::Arc;

use super::handle::Host;
use super::input_requests::host_gone_error;
use super::target::Target;
use super::target_settings::TargetSettings;

/// The configuration of a client: its host, its settings and its server.
#[derive(Default)]
pub struct ClientConfiguration {
    /// Description and handlers of the host.
    pub host: HostOptions,
    /// Whether the host answers input requests of authorization (`auth/…`).
    pub authorizes: bool,
    /// The core's settings.
    pub settings: ClientSettings,
    /// Where the server is.
    pub target: Option<Target>,
    /// Settings of the server that apply to any target.
    pub target_settings: TargetSettings,
    /// Gets the record of each request that has ended.
    pub request_listener: Option<RequestListener>,
}

impl std::fmt::Debug for ClientConfiguration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientConfiguration")
            .field("host", &self.host)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl ClientConfiguration {
    /// Sets how long a request may go without a response or progress, and in total, in seconds; `None` for the default.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a value is invalid.
    pub fn set_timeouts(&mut self, idle: Option<f64>, total: Option<f64>) -> Result<(), Error> {
        let given = CallOptions {
            timeout: idle,
            total_timeout: total,
            ..CallOptions::default()
        };
        let defaults = ClientSettings::default().timeouts;
        self.settings.timeouts = given.options(defaults)?.timeouts.unwrap_or(defaults);
        Ok(())
    }

    /// Checks the description and handlers of the host.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a capability is not one of the protocol, or a custom request has
    /// a name that is reserved for the library.
    pub fn check_host(&self) -> Result<(), Error> {
        let never = |_: &str| -> HostRequestHandler {
            Arc::new(|_| Box::pin(async { Err(host_gone_error()) }))
        };
        self.host.builder(self.settings.clone(), never).map(drop)
    }

    /// Returns the builder of a connection and the address of its server.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): there is no target, or authorization needs requests that the host
    /// does not answer.
    pub(super) fn builder_and_address(
        &self,
        host: &Host,
    ) -> Result<(ClientBuilder, Address), Error> {
        let target = self
            .target
            .as_ref()
            .ok_or_else(|| Error::usage("the client has no server: set its address first"))?;
        let request_handlers = |method: &str| host.input_requests.request_handler(method);
        let authorizers = |method: &'static str| request_handlers(method);
        let address = target.address(
            self.authorizes
                .then_some(&authorizers as &dyn Fn(&'static str) -> HostRequestHandler),
            self.host.stderr.then(|| host.stderr_listener()),
        )?;
        let address = self.target_settings.apply(address);
        let mut builder = self.host.builder(self.settings.clone(), request_handlers)?;
        if self.host.notifications {
            builder = builder.on_notification(host.notification_listener());
        } else if self.host.logs {
            builder = builder.on_logged(host.notification_listener());
        }
        if self.host.connection {
            builder = builder.on_connection(host.connection_listener());
        }
        if let Some(listener) = &self.request_listener {
            builder = builder.shared_request_listener(listener.clone());
        }
        Ok((builder, address))
    }
}
