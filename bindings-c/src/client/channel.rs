//! A transport written in C, as a client's: a channel is opened for each conversation.

use std::ffi::c_void;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;

use bytes::Bytes;
use mcpline::client::{Channel as CoreChannel, Dial};
use mcpline::foreign::Peer;
use tokio::sync::{mpsc, oneshot, watch};

use crate::channel::{Channel, mcpl_channel_functions};
use crate::owner::{Entered, Owner};
use crate::status::{entry, mcpl_status};
use crate::user::{UserData, mcpl_finalizer};

use super::handle::{Client, mcpl_client};
use super::plan::Target;
use super::settings::set_target;

/// Has C open channels.
pub(super) struct Dialler {
    owner: Arc<Owner>,
    functions: mcpl_channel_functions,
    data: Arc<UserData>,
    /// Whether all channels are to end.
    ending: watch::Sender<bool>,
}

impl Dialler {
    /// Ends all channels, also those that are being opened: nobody needs them any more.
    pub(super) fn end(&self) {
        self.ending.send_replace(true);
    }
}

impl Dial for Dialler {
    fn dial(&self) -> Pin<Box<dyn Future<Output = io::Result<CoreChannel>> + Send + '_>> {
        Box::pin(async {
            // The client closes after the channel, whose last callback still runs.
            let entered = self.owner.enter();
            let entered = entered.ok_or_else(|| io::Error::other("the client is closed"))?;
            let (functions, data) = (self.functions, self.data.clone());
            let made = Channel::new(&self.owner, Peer::new(), functions, data);
            let (channel, from_server) = made.map_err(|fault| io::Error::other(fault.message))?;
            let (to_server, messages) = mpsc::unbounded_channel();
            let (opening, opened) = oneshot::channel();
            let serving = Serving {
                channel,
                ending: self.ending.subscribe(),
                _entered: entered,
            };
            // A task of its own, so that its callbacks stay in order if nobody waits for the channel any more.
            let library = self.owner.library();
            library.spawn(serving.run(opening, messages));
            let outcome = opened.await;
            let outcome = outcome.unwrap_or_else(|_| Err("the client is gone".to_owned()));
            outcome.map_err(io::Error::other)?;
            Ok(CoreChannel {
                to_server,
                from_server,
            })
        })
    }
}

/// One channel, from its opening to its end. Dropped, it is closed.
struct Serving {
    channel: Arc<Channel>,
    ending: watch::Receiver<bool>,
    _entered: Entered,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.channel.close();
    }
}

impl Serving {
    /// Has it opened, tells how that went, and has it send what comes until the client has no more.
    async fn run(
        mut self,
        mut opening: oneshot::Sender<Result<(), String>>,
        mut messages: mpsc::UnboundedReceiver<Bytes>,
    ) {
        let outcome = {
            let mut open = pin!(self.channel.open());
            tokio::select! {
                biased;
                outcome = &mut open => outcome,
                () = either(opening.closed(), ended(&mut self.ending)) => {
                    self.channel.give_up();
                    open.await
                }
            }
        };
        let is_open = outcome.is_ok();
        if opening.send(outcome).is_err() || !is_open {
            return;
        }
        loop {
            let first = tokio::select! {
                biased;
                message = messages.recv() => message,
                () = ended(&mut self.ending) => None,
            };
            let Some(first) = first else { return };
            let rest = std::iter::from_fn(|| messages.try_recv().ok());
            let batch = std::iter::once(first).chain(rest).collect();
            self.channel.send(batch).await;
        }
    }
}

async fn ended(ending: &mut watch::Receiver<bool>) {
    // An error is the dialler being gone, and the client with it.
    let _ = ending.wait_for(|ending| *ending).await;
}

async fn either(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    tokio::select! {
        () = one => {}
        () = other => {}
    }
}

/// The server is reached over a transport of the host's own, written in C. Before connecting; replaces what was set before.
///
/// - `functions`: what the transport does; copied. `open` is called for each conversation, with a channel of its own, and
///   answered by `mcpl_channel_opened`; `send` with each message to the server; `close` when the conversation is over, as
///   the last. Messages from the server are handed over by `mcpl_channel_receive`, its end by `mcpl_channel_hang_up`.
/// - `user`, `finalize`: given to all of them, and what releases it once none is called any more: when the client closes,
///   another target is set, or this function fails.
///
/// Any thread. Returns `MCPL_USAGE_ERROR` if the functions or `send` are `NULL`, their size is not set or the client
/// connects already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_channel(
    client: *mut mcpl_client,
    functions: *const mcpl_channel_functions,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let data = UserData::new(user, finalize);
    entry(|| {
        let client = Client::get(client)?;
        // SAFETY: the header demands it.
        let functions = unsafe { mcpl_channel_functions::read(functions)? };
        client.owner().keep(&data);
        let dialler = Dialler {
            owner: client.owner().clone(),
            functions,
            data,
            ending: watch::Sender::new(false),
        };
        set_target(&client, Target::Channel(Arc::new(dialler)))
    })
}
