//! A transport that is being served, from its start to its end.

use std::sync::Arc;

use mcpline::foreign::ForeignSharing;
use mcpline::transport::{Stop, Transport};
use napi_derive::napi;
use tokio::runtime::Handle;

use crate::failure::Failure;
use crate::hub::{Event, PromiseOutcome, Shared};

/// A transport that is being served.
#[napi]
pub struct Serving {
    stop: Stop,
    startup_message: Option<String>,
}

#[napi]
impl Serving {
    /// Stops the transport: calls in flight may finish within the grace period.
    #[napi(catch_unwind)]
    pub fn stop(&self) {
        self.stop.stop();
    }

    /// The line to write when the transport is ready, if it is ready at once and there is to be one.
    #[napi(getter, catch_unwind)]
    pub fn startup_message(&self) -> Option<&str> {
        self.startup_message.as_deref()
    }
}

impl Serving {
    /// Creates the state of a transport before it starts.
    pub(crate) fn new(startup_message: Option<String>) -> Self {
        Self {
            stop: Stop::new(),
            startup_message,
        }
    }

    /// Serves until the end, and then settles the promise with this number.
    pub(crate) fn start(
        &self,
        runtime: &Handle,
        server: CoreServer,
        transport: impl Transport + 'static,
        shared: Arc<Shared>,
        ended: u32,
    ) {
        let stop = self.stop.clone();
        runtime.spawn(serve(server, transport, stop, shared, ended));
    }

    pub(crate) fn signal(&self) -> Stop {
        self.stop.clone()
    }
}

/// A server to serve.
pub(crate) struct CoreServer {
    pub(crate) core: mcpline::Server,
    /// The state that processes share, if JavaScript implements it, and this process uses it.
    pub(crate) sharing: Option<ForeignSharing>,
}

/// Serves until the end, and then settles the promise with this number.
pub(crate) async fn serve(
    server: CoreServer,
    transport: impl Transport,
    stop: Stop,
    shared: Arc<Shared>,
    ended: u32,
) {
    let sharing = server
        .sharing
        .map(|sharing| sharing.enter(&Handle::current()));
    let end = server.core.serve_until(transport, stop).await;
    if let Some(sharing) = sharing {
        sharing.leave().await;
    }
    let settled = match end {
        Ok(()) => PromiseOutcome::Done,
        Err(error) => PromiseOutcome::Failed(Failure::core(&error)),
    };
    shared.post(Event::Settled(ended, settled));
}
