//! Channels as the address of a client: foreign code opens one for each conversation.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::background;
use crate::client::{self, Address, ClientTransport};

use super::Channel;

/// Opens channels, in foreign code.
pub trait OpenChannel: Send + Sync + 'static {
    /// Has a channel opened: once for each conversation, anew when the last one was lost. Answered by
    /// [`Channel::opened`], now or later. Whoever carries the channel takes from [`Channel::next`] until that ends; it
    /// ends at once if nobody waits for the channel any more.
    fn open(&self, channel: Arc<Channel>);
}

/// Where a client's server is, for foreign code to know.
pub struct ChannelAddress(Arc<dyn OpenChannel>);

impl ChannelAddress {
    /// The address that these open.
    pub fn new(open: Arc<dyn OpenChannel>) -> Self {
        Self(open)
    }
}

impl std::fmt::Debug for ChannelAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelAddress").finish_non_exhaustive()
    }
}

impl From<ChannelAddress> for Address {
    fn from(address: ChannelAddress) -> Self {
        Self::Custom(Arc::new(address))
    }
}

impl ClientTransport for ChannelAddress {
    fn dial(&self) -> Pin<Box<dyn Future<Output = io::Result<client::Channel>> + Send + '_>> {
        Box::pin(async {
            let channel = Channel::new();
            channel.open(|channel| self.0.open(channel)).await?;
            let (to_server, sent) = mpsc::unbounded_channel();
            let (received, from_server) = mpsc::channel(1);
            background::spawn_here(write(channel.clone(), sent));
            background::spawn_here(read(channel, received));
            Ok(client::Channel {
                to_server,
                from_server,
            })
        })
    }
}

/// Gives the channel what the client says, until it has no more.
async fn write(channel: Arc<Channel>, mut sent: mpsc::UnboundedReceiver<Bytes>) {
    while let Some(message) = sent.recv().await {
        channel.outgoing.push(message);
    }
    channel.outgoing.end(Ok(()));
}

/// Gives the client what comes, until nothing more does or it wants no more. While it leaves too much unsent, nothing is
/// read: what a server asks makes it answer.
async fn read(channel: Arc<Channel>, received: mpsc::Sender<io::Result<Bytes>>) {
    let end = loop {
        // Who has left sends no more, and takes nothing.
        tokio::select! {
            () = channel.outgoing.room() => {}
            _ = channel.incoming.ended() => {}
            () = received.closed() => {}
        }
        let taken = tokio::select! {
            taken = channel.incoming.take() => taken,
            () = received.closed() => Err(Ok(())),
        };
        match taken {
            Ok(message) => {
                if received.send(Ok(message)).await.is_err() {
                    break Ok(());
                }
            }
            Err(end) => break end,
        }
    };
    if let Err(reason) = end {
        // The client may be gone, and need no reason.
        let _ = received.send(Err(io::Error::other(reason))).await;
    }
    channel.close();
}
