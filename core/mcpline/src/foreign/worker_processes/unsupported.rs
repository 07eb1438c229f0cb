//! Systems without processes that inherit sockets.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use crate::error::Error;
use crate::server::Server;
use crate::transport::http::Http;
use crate::transport::{Stop, Transport};

use super::WorkerProgram;

/// Worker processes, which this system does not have.
#[derive(Debug)]
pub struct WorkerProcesses(Infallible);

impl WorkerProcesses {
    pub(super) fn new(
        _http: Http,
        _name: String,
        _program: WorkerProgram,
        _start_timeout: Duration,
    ) -> Result<Self, Error> {
        Err(Error::usage(
            "`workers` is not available on this system: start several processes at different ports, behind a load balancer",
        ))
    }

    /// Returns the address that the workers serve.
    pub fn address(&self) -> SocketAddr {
        match self.0 {}
    }

    /// Returns the URL of the MCP endpoint.
    pub fn url(&self, _scheme: &str) -> String {
        match self.0 {}
    }
}

impl Transport for WorkerProcesses {
    async fn serve(self, _server: Server, _stop: Stop) -> Result<(), Error> {
        match self.0 {}
    }
}
