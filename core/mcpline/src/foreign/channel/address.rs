//! Channels as a client's address: foreign code opens one for each connection.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::background;
use crate::client::{self, Address, ClientTransport};

use super::Channel;

/// Opens channels in foreign code.
pub trait OpenChannel: Send + Sync + 'static {
    /// Opens a channel: once for each connection, again after a loss. Answer with [`Channel::opened`], now or later.
    /// The code that carries the channel takes messages from [`Channel::next`] until that ends, which is at once if the
    /// channel is no longer needed.
    fn open(&self, channel: Arc<Channel>);
}

/// The address of a client's server, which only foreign code knows.
pub struct ChannelAddress(Arc<dyn OpenChannel>);

impl ChannelAddress {
    /// Creates an address whose channels are opened by `open`.
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

/// Passes messages of the client to the channel until there are no more.
async fn write(channel: Arc<Channel>, mut sent: mpsc::UnboundedReceiver<Bytes>) {
    while let Some(message) = sent.recv().await {
        channel.outgoing.push(message);
    }
    channel.outgoing.end(Ok(()));
}

/// Passes messages of the channel to the client until either side ends. While too much is unsent, nothing is read,
/// because requests of the server cause responses.
async fn read(channel: Arc<Channel>, received: mpsc::Sender<io::Result<Bytes>>) {
    let end = loop {
        // A side that has left sends nothing more and accepts nothing.
        tokio::select! {
            () = channel.outgoing.wait_for_room() => {}
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
        // The client may be gone and need no reason.
        let _ = received.send(Err(io::Error::other(reason))).await;
    }
    channel.close();
}
