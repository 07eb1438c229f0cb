//! A transport written in C, as a client's: a channel is opened for each conversation.

use std::ffi::c_void;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use mcpline::client::{Channel as CoreChannel, Dial};
use tokio::sync::mpsc;

use crate::channel::{Channel, mcpl_channel_functions};
use crate::owner::Owner;
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
}

impl Dial for Dialler {
    fn dial(&self) -> Pin<Box<dyn Future<Output = io::Result<CoreChannel>> + Send + '_>> {
        Box::pin(async {
            let made = Channel::new(&self.owner, self.functions, self.data.clone());
            let (channel, from_server) = made.map_err(|fault| io::Error::other(fault.message))?;
            let (to_server, messages) = mpsc::unbounded_channel();
            // A task of its own, so that its callbacks stay in order if nobody waits for the channel any more.
            let (opening, opened) = tokio::sync::oneshot::channel();
            self.owner.library().handle().spawn(async move {
                let outcome = channel.open().await;
                let is_open = outcome.is_ok();
                if opening.send(outcome).is_ok() && is_open {
                    send_all(&channel, messages).await;
                }
                channel.close();
            });
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

/// Sends what comes until the client has no more.
async fn send_all(channel: &Arc<Channel>, mut messages: mpsc::UnboundedReceiver<Bytes>) {
    while let Some(first) = messages.recv().await {
        let mut batch = vec![first];
        while let Ok(next) = messages.try_recv() {
            batch.push(next);
        }
        channel.send(batch).await;
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
/// Any thread. Returns `MCPL_INVALID_ARGUMENT` if the functions or `send` are `NULL`, their size is not set or the client
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
        };
        set_target(&client, Target::Channel(Arc::new(dialler)))
    })
}
