//! A transport written in C, as a client's: a channel is opened for each conversation.

use std::ffi::c_void;
use std::sync::Arc;

use mcpline::foreign::Peer;
use mcpline::foreign::channel::{Channel as CoreChannel, OpenChannel};
use tokio::sync::watch;

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
    /// Whether all channels are to end.
    ending: watch::Sender<bool>,
}

impl Dialler {
    /// Ends all channels, also those that are being opened: nobody needs them any more.
    pub(super) fn end(&self) {
        self.ending.send_replace(true);
    }
}

impl OpenChannel for Dialler {
    fn open(&self, core: Arc<CoreChannel>) {
        // The client closes after the channel, whose last callback still runs.
        let Some(entered) = self.owner.enter() else {
            core.opened(Err("the client is closed".to_owned()));
            return;
        };
        let (functions, data) = (self.functions, self.data.clone());
        let made = Channel::new(&self.owner, Peer::new(), functions, data, core.clone());
        let channel = match made {
            Ok(channel) => channel,
            Err(fault) => {
                core.opened(Err(fault.message));
                return;
            }
        };
        let mut ending = self.ending.subscribe();
        // A task of its own, so that its callbacks stay in order if nobody waits for the channel any more.
        self.owner.library().spawn(async move {
            let _entered = entered;
            let carried = async {
                channel.open().await;
                channel.carry().await;
            };
            let closed = async {
                // An error is the dialler being gone, and the client with it.
                let _ = ending.wait_for(|ending| *ending).await;
                core.close();
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = carried => {}
                () = closed => {}
            }
        });
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
