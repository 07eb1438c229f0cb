//! A client's end of a connection to a server in the same process.

use std::sync::Arc;

use bytes::Bytes;
use mcpline_protocol::Revision;
use tokio::sync::watch;

use crate::server::Server;
use crate::transport::{Memory, Stop};

use super::error::ClientError;
use super::link::{Ending, Link, Outgoing, Sink};

/// A link to a server in memory.
pub(super) struct MemoryLink {
    memory: Arc<Memory>,
    stop: Stop,
    over: watch::Receiver<bool>,
}

impl MemoryLink {
    pub(super) fn open(server: &Server, sink: Sink) -> Arc<Self> {
        let memory = Arc::new(server.connect());
        let stop = Stop::new();
        let (ended, over) = watch::channel(false);
        let (receiving, stopped) = (memory.clone(), stop.clone());
        tokio::spawn(async move {
            loop {
                let message: Option<Bytes> = tokio::select! {
                    biased;
                    () = stopped.stopped() => break,
                    message = receiving.receive() => message,
                };
                match message {
                    Some(message) => drop(sink.message(message, None)),
                    None => break,
                }
            }
            receiving.close();
            sink.ended(if stopped.is_stopped() {
                ClientError::Closed
            } else {
                ClientError::lost("the server closed its end")
            });
            ended.send_replace(true);
        });
        Arc::new(Self { memory, stop, over })
    }
}

impl Link for MemoryLink {
    fn send(&self, outgoing: Outgoing) {
        self.memory.send(outgoing.message);
    }

    fn abandon(&self, _: u64) {}

    fn opened(&self, _: Revision) {}

    fn close(&self) -> Ending {
        self.stop.stop();
        let mut over = self.over.clone();
        Box::pin(async move {
            // An error is the task being gone.
            let _ = over.wait_for(|over| *over).await;
        })
    }
}

impl Drop for MemoryLink {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
