//! Transports written in JavaScript, for servers and for clients.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcpline::foreign::channel::{Channel, OpenChannel};
use mcpline::protocol::wire::Raw;
use napi::Result;
use napi_derive::napi;
use tokio::sync::Semaphore;

use crate::hub::{Event, Hub, PromiseOutcome, Shared, lock};

/// An action for JavaScript to perform on a channel. The numbers are those of `lib/channel.ts`.
#[derive(Debug, Clone, Copy)]
enum ChannelAction {
    /// Open the channel with this number.
    Open = 0,
    /// Send a message.
    Send = 1,
    /// Close the channel.
    Close = 2,
}

/// The channels of one transport. JavaScript refers to them by their numbers.
#[napi]
pub struct Channels(Arc<TransportChannels>);

pub(crate) struct TransportChannels {
    hub: Arc<Shared>,
    listener: u32,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    last: u32,
    carried: HashMap<u32, OpenedChannel>,
    is_over: bool,
}

#[derive(Clone)]
struct OpenedChannel {
    channel: Arc<Channel>,
    /// Counts sent messages that have not been consumed yet.
    sent: Arc<Semaphore>,
}

#[napi]
impl Channels {
    /// Creates the channels. The listener with this number receives the actions to perform on them.
    #[napi(constructor, catch_unwind)]
    pub fn new(hub: &Hub, number: u32) -> Self {
        Self(Arc::new(TransportChannels {
            hub: hub.shared.clone(),
            listener: number,
            table: Mutex::default(),
        }))
    }

    /// Reports that a channel is open or, with a reason, could not be opened.
    #[napi(catch_unwind)]
    pub fn opened(&self, channel: u32, failed: Option<String>) {
        if let Some(carried) = self.0.find(channel) {
            // Fails if the core no longer needs the channel.
            let _ = carried.channel.opened(failed.map_or(Ok(()), Err));
        }
    }

    /// Delivers a message from the peer. Returns whether there is room for another.
    #[napi(catch_unwind)]
    pub fn received(&self, channel: u32, message: String) -> bool {
        let Some(carried) = self.0.find(channel) else {
            // A closed channel accepts nothing, and must not make the reader wait.
            return true;
        };
        let received = carried.channel.receive(Bytes::from(message));
        received.unwrap_or(true)
    }

    /// Settles the promise when there is room for a message.
    #[napi(catch_unwind)]
    pub fn ready(&self, channel: u32, promise: u32) -> Result<()> {
        let (hub, carried) = (self.0.hub.clone(), self.0.find(channel));
        self.0.hub.runtime()?.spawn(async move {
            if let Some(carried) = carried {
                carried.channel.ready().await;
            }
            hub.post(Event::Settled(promise, PromiseOutcome::Done));
        });
        Ok(())
    }

    /// Reports that a message has been sent.
    #[napi(catch_unwind)]
    pub fn sent(&self, channel: u32) {
        if let Some(carried) = self.0.find(channel) {
            carried.sent.add_permits(1);
        }
    }

    /// Reports that the peer has disconnected; with a reason if it failed.
    #[napi(catch_unwind)]
    pub fn hung_up(&self, channel: u32, failure: Option<String>) {
        if let Some(carried) = self.0.find(channel) {
            carried.channel.hang_up(failure);
        }
    }
}

impl Channels {
    pub(crate) fn open(&self) -> Arc<TransportChannels> {
        self.0.clone()
    }
}

impl Drop for Channels {
    fn drop(&mut self) {
        // JavaScript has dropped the transport: its channels can carry nothing any more.
        let carried = {
            let mut table = lock(&self.0.table);
            table.is_over = true;
            std::mem::take(&mut table.carried)
        };
        for carried in carried.into_values() {
            carried.channel.close();
        }
    }
}

impl TransportChannels {
    fn find(&self, number: u32) -> Option<OpenedChannel> {
        lock(&self.table).carried.get(&number).cloned()
    }

    fn post_action(&self, about: ChannelAction, number: u32, message: Option<Raw>) {
        let number = f64::from(number);
        self.hub.post(Event::ListenerCalled(
            self.listener,
            about as u32,
            number,
            message,
            None,
        ));
    }

    /// Makes JavaScript open the channel and carry its messages, until the core no longer needs it.
    pub(crate) fn carry(
        self: &Arc<Self>,
        channel: Arc<Channel>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let carried = OpenedChannel {
            channel,
            sent: Arc::new(Semaphore::new(0)),
        };
        let number = {
            let mut table = lock(&self.table);
            if table.is_over {
                // JavaScript has dropped the transport.
                carried.channel.close();
            }
            table.last = table.last.wrapping_add(1);
            let number = table.last;
            table.carried.insert(number, carried.clone());
            number
        };
        self.post_action(ChannelAction::Open, number, None);
        let open = self.clone();
        async move {
            while let Some(messages) = carried.channel.next().await {
                let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
                for message in messages {
                    open.post_action(
                        ChannelAction::Send,
                        number,
                        Some(Raw::from_trusted(message)),
                    );
                }
                let sent = async {
                    // The semaphore is never closed.
                    if let Ok(sent) = carried.sent.acquire_many(count).await {
                        sent.forget();
                    }
                };
                if !carried.channel.wait_until_sent(sent).await {
                    break;
                }
            }
            lock(&open.table).carried.remove(&number);
            open.post_action(ChannelAction::Close, number, None);
        }
    }
}

/// Makes JavaScript open the channels of a client.
pub(crate) struct ChannelOpener(pub(crate) Arc<TransportChannels>);

impl OpenChannel for ChannelOpener {
    fn open(&self, channel: Arc<Channel>) {
        tokio::spawn(self.0.carry(channel));
    }
}
