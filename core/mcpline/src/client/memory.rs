//! Links to a server in the same process.

use std::sync::Arc;

use bytes::Bytes;
use mcpline_protocol::Revision;

use crate::background;
use crate::client_error::ClientError;
use crate::server::Server;
use crate::transport::{MemoryTransport, MemoryTransportOptions};

use super::connect::{DialFuture, Dialler};
use super::link::{Link, LinkFuture, Outgoing, SharedEventSink};
use super::link_shutdown::{LinkShutdown, link_shutdown};

/// Dials a server in this process.
pub(super) struct MemoryDialler(pub(super) Server, pub(super) MemoryTransportOptions);

impl Dialler for MemoryDialler {
    fn dial(&self, sink: SharedEventSink, _: bool) -> DialFuture<'_> {
        let link: Arc<dyn Link> = MemoryLink::open(&self.0, self.1.clone(), sink);
        Box::pin(async { Ok(link) })
    }
}

/// A link to a server in memory.
pub(super) struct MemoryLink {
    memory: Arc<MemoryTransport>,
    closing: LinkShutdown,
}

impl MemoryLink {
    pub(super) fn open(
        server: &Server,
        options: MemoryTransportOptions,
        sink: SharedEventSink,
    ) -> Arc<Self> {
        let memory = Arc::new(server.connect_with(options));
        let (closing, running) = link_shutdown();
        let receiving = memory.clone();
        let server = server.clone();
        background::spawn_here(async move {
            loop {
                let message: Option<Bytes> = tokio::select! {
                    biased;
                    () = running.stop.stopped() => break,
                    message = receiving.receive() => message,
                };
                match message {
                    Some(message) => drop(sink.message(message, None)),
                    None => break,
                }
            }
            receiving.close();
            sink.ended(if running.stop.is_stopped() {
                ClientError::Closed
            } else {
                ClientError::lost("the server closed its end")
            });
            server.inner().wait_for_records().await;
        });
        Arc::new(Self { memory, closing })
    }
}

impl Link for MemoryLink {
    fn send(&self, outgoing: Outgoing) {
        self.memory.send(outgoing.message);
    }

    fn abandon(&self, _: u64) {}

    fn set_session_open(&self, _: Revision) {}

    fn close(&self) -> LinkFuture {
        self.closing.close()
    }
}
