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

/// Sets a transport that the program provides. Call it before connecting; it replaces the server that was set before.
///
/// - `functions`: the callbacks of the transport. Copied. `open` is called with a new channel for each connection; call
///   `mcpl_channel_opened` from it or later. `send` is called with each message to the server, `close` last, when the
///   connection ends. Pass messages from the server to `mcpl_channel_receive`, and call `mcpl_channel_hang_up` when the
///   server disconnects.
/// - `user`, `finalize`: passed to the callbacks, and its finalizer, which runs when the client closes, another server is
///   set, or this function fails.
///
/// Returns `MCPL_USAGE_ERROR` if `functions` or `send` is `NULL`, `size` is not set, or the client is connecting or connected.
/// Any thread.
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
