//! Transports in the other language, for servers and for clients.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcpline::foreign::channel::{Channel as CoreChannel, OpenChannel};

use crate::failure::ForeignFailure;

/// How long a channel may take to close: a closing handshake over a slow network. Then its function is cancelled.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// An open channel, in the other language.
#[uniffi::export(with_foreign)]
#[async_trait::async_trait]
pub trait Channel: Send + Sync {
    /// Sends messages to the peer, in order. The next ones come when it returns.
    async fn send(&self, messages: Vec<String>) -> Result<(), ForeignFailure>;

    /// Returns the next message, or batch, of the peer; `None` if the peer has closed the channel. Dropping the future
    /// cancels it.
    async fn receive(&self) -> Result<Option<String>, ForeignFailure>;

    /// Closes the channel. Called last. Not named `close`, which Kotlin objects of the library have already.
    async fn end(&self) -> Result<(), ForeignFailure>;
}

/// Opens channels to a server, in the other language.
#[uniffi::export(with_foreign)]
#[async_trait::async_trait]
pub trait ClientTransport: Send + Sync {
    /// Opens a channel: once for each connection, again after a loss. Dropping the future cancels it.
    async fn open_channel(&self) -> Result<OpenedChannel, ForeignFailure>;
}

/// What [`ClientTransport::open_channel`] returns: asynchronous functions cannot return foreign traits themselves.
#[derive(uniffi::Record)]
pub struct OpenedChannel {
    /// The channel.
    pub channel: Arc<dyn Channel>,
}

/// Opens the channels of a client.
pub(crate) struct ChannelOpener(pub(crate) Arc<dyn ClientTransport>);

impl OpenChannel for ChannelOpener {
    fn open(&self, channel: Arc<CoreChannel>) {
        let transport = self.0.clone();
        tokio::spawn(async move {
            let opened = tokio::select! {
                opened = transport.open_channel() => opened,
                // The client no longer needs it.
                () = channel.ended() => return,
            };
            match opened {
                Ok(OpenedChannel { channel: opened }) => {
                    channel.opened(Ok(()));
                    carry(&channel, &*opened).await;
                }
                Err(failure) => {
                    channel.opened(Err(failure.to_string()));
                }
            }
        });
    }
}

/// Carries the messages of a channel until the core no longer needs it, and closes it.
pub(crate) async fn carry(channel: &CoreChannel, foreign: &dyn Channel) {
    tokio::select! {
        () = send(channel, foreign) => {}
        () = receive(channel, foreign) => {}
    }
    // The package logs what it throws.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, foreign.end()).await;
}

/// Sends the core's messages until there are none left and the core no longer needs the channel.
async fn send(channel: &CoreChannel, foreign: &dyn Channel) {
    while let Some(messages) = channel.next().await {
        let messages = messages.iter().map(text).collect();
        let sent = async {
            if let Err(failure) = foreign.send(messages).await {
                channel.hang_up(Some(failure.to_string()));
            }
        };
        if !channel.wait_until_sent(sent).await {
            break;
        }
    }
}

/// Passes the peer's messages to the core. Never returns: the core may have messages to send when the peer sends no more.
async fn receive(channel: &CoreChannel, foreign: &dyn Channel) {
    loop {
        channel.ready().await;
        match foreign.receive().await {
            Ok(Some(message)) => {
                if channel.receive(message).is_err() {
                    break;
                }
            }
            Ok(None) => {
                channel.hang_up(None);
                break;
            }
            Err(failure) => {
                channel.hang_up(Some(failure.to_string()));
                break;
            }
        }
    }
    std::future::pending().await
}

/// Returns a message of the core, which is valid UTF-8.
fn text(message: &Bytes) -> String {
    String::from_utf8_lossy(message).into_owned()
}
