//! Serves one client over a channel.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::server::{Caller, Server};
use crate::transport::{EOF_GRACE, LAST_ANSWERS, MemoryTransport, Stop, Transport};

use super::{Channel, ChannelEndResult};

/// How often a shutdown checks whether calls have ended.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// A server's transport over an open channel. It ends when either side closes the channel.
#[derive(Debug)]
pub struct ServedChannel {
    channel: Arc<Channel>,
    principal: Option<Caller>,
}

impl ServedChannel {
    /// Serves the client at the other end of the channel: as `principal` ([`Server::connect_as`]), or without one as a
    /// client that may use everything.
    pub fn new(channel: Arc<Channel>, principal: Option<Caller>) -> Self {
        Self { channel, principal }
    }

    /// Like [`new`](Self::new), for a channel that foreign code opens first ([`Channel::open`]).
    ///
    /// # Errors
    ///
    /// If it could not be opened.
    pub async fn open(
        channel: Arc<Channel>,
        principal: Option<Caller>,
        open: impl FnOnce(Arc<Channel>),
    ) -> Result<Self, Error> {
        let opened = channel.open(open).await;
        opened
            .map_err(|error| Error::transport("serve", "the channel could not be opened", error))?;
        Ok(Self::new(channel, principal))
    }
}

/// Closes the channel on drop, however serving ended.
struct CloseOnDrop(Arc<Channel>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Transport for ServedChannel {
    async fn serve(self, server: Server, stop: Stop) -> Result<(), Error> {
        let CloseOnDrop(channel) = &CloseOnDrop(self.channel);
        let memory = match self.principal {
            Some(principal) => server.connect_as(principal),
            None => server.connect(),
        };
        let (end, grace) = tokio::select! {
            end = read(channel, &memory) => (end, Some(EOF_GRACE)),
            () = write(channel, &memory) => (Ok(()), None),
            () = stop.stopped() => (Ok(()), Some(server.settings().shutdown_timeout)),
        };
        if end.is_ok()
            && let Some(grace) = grace
        {
            wind_down(channel, &memory, grace).await;
        }
        memory.close();
        end.map_err(|reason| {
            Error::transport("serve", "the channel failed", std::io::Error::other(reason))
        })
    }
}

/// Passes messages of the channel to the server until there are no more.
async fn read(channel: &Channel, memory: &MemoryTransport) -> ChannelEndResult {
    loop {
        match channel.incoming.take().await {
            Ok(message) => memory.send(message),
            Err(end) => return end,
        }
        memory.ready().await;
    }
}

/// Passes messages of the server to the channel until the server has closed its end.
async fn write(channel: &Channel, memory: &MemoryTransport) {
    while let Some(message) = memory.receive().await {
        channel.outgoing.push(message);
        channel.outgoing.wait_for_room().await;
    }
}

/// Waits for calls in flight within `grace`, or [`EOF_GRACE`] once the client has closed its direction, cancels those
/// that are left, and sends all responses. Until then the client may cancel calls; its requests are refused.
async fn wind_down(channel: &Channel, memory: &MemoryTransport, grace: Duration) {
    memory.wind_down();
    let settled = async {
        while !memory.is_idle() {
            // A call that ends without a response yields no message.
            let message = tokio::time::timeout(IDLE_CHECK_INTERVAL, memory.receive()).await;
            if let Ok(Some(message)) = message {
                channel.outgoing.push(message);
                channel.outgoing.wait_for_room().await;
            }
        }
    };
    let given_up = async {
        let closed = async {
            if read(channel, memory).await.is_ok() {
                tokio::time::sleep(EOF_GRACE).await;
            }
        };
        let _ = tokio::time::timeout(grace, closed).await;
    };
    tokio::select! {
        biased;
        () = settled => {}
        () = given_up => memory.shut_down(),
    }
    while let Some(message) = memory.try_receive() {
        channel.outgoing.push(message);
    }
    channel.outgoing.end(Ok(()));
    // Out of time: the messages are no longer taken.
    let _ = tokio::time::timeout(LAST_ANSWERS, channel.outgoing.sent()).await;
}
