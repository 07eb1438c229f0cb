//! Serves one client over a channel.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::server::{Caller, Server};
use crate::transport::{EOF_GRACE, LAST_ANSWERS, Memory, Stop, Transport};

use super::{Channel, ChannelEndResult};

/// How often the end looks whether calls have ended.
const SETTLING: Duration = Duration::from_millis(10);

/// A server's transport over a channel that is open. It ends when either side closes the channel.
#[derive(Debug)]
pub struct ServedChannel {
    channel: Arc<Channel>,
    principal: Option<Caller>,
}

impl ServedChannel {
    /// Serves whoever is at the other end of the channel: in the name of `principal`
    /// ([`Server::connect_as`]), or, without one, of a client that may do everything.
    pub fn new(channel: Arc<Channel>, principal: Option<Caller>) -> Self {
        Self { channel, principal }
    }

    /// The same over a channel that foreign code opens first ([`Channel::open`]).
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

/// The core needs the channel no more, however it ended.
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
            () = stop.stopped() => (Ok(()), Some(server.settings().shutdown_grace)),
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

/// Gives the server what comes, until nothing more does.
async fn read(channel: &Channel, memory: &Memory) -> ChannelEndResult {
    loop {
        match channel.incoming.take().await {
            Ok(message) => memory.send(message),
            Err(end) => return end,
        }
        memory.ready().await;
    }
}

/// Gives the channel what the server says, until the server has closed its end.
async fn write(channel: &Channel, memory: &Memory) {
    while let Some(message) = memory.receive().await {
        channel.outgoing.push(message);
        channel.outgoing.room().await;
    }
}

/// Lets calls in flight end within `grace`, or [`EOF_GRACE`] once the client has closed its direction, ends those that are
/// left, and has all answers sent. Until then the client may cancel calls; its requests are refused.
async fn wind_down(channel: &Channel, memory: &Memory, grace: Duration) {
    memory.wind_down();
    let settled = async {
        while !memory.is_idle() {
            // What ends without an answer yields nothing.
            let message = tokio::time::timeout(SETTLING, memory.receive()).await;
            if let Ok(Some(message)) = message {
                channel.outgoing.push(message);
                channel.outgoing.room().await;
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
    // Out of time: nobody takes it any more.
    let _ = tokio::time::timeout(LAST_ANSWERS, channel.outgoing.sent()).await;
}
