//! Client transports written in C: a channel is opened for each connection.

use std::ffi::c_void;
use std::sync::Arc;

use mcpline::foreign::PeerId;
use mcpline::foreign::channel::{Channel as CoreChannel, OpenChannel};

use crate::callback_tracker::CallbackTracker;
use crate::channel::{Channel, mcpl_channel_functions};
use crate::status::{Fault, entry, mcpl_status};
use crate::user_data::{UserData, mcpl_finalizer};

use super::handle::{Client, mcpl_client};
use super::settings::set_target;

/// Opens channels with C's callbacks.
struct ChannelOpener {
    owner: Arc<CallbackTracker>,
    functions: mcpl_channel_functions,
    data: Arc<UserData>,
}

impl OpenChannel for ChannelOpener {
    fn open(&self, core: Arc<CoreChannel>) {
        let (functions, data) = (self.functions, self.data.clone());
        // Keeps the client from closing before the last callback of the channel has returned.
        let entered = self.owner.enter().ok_or_else(|| Fault::closed("client"));
        let opened = entered.and_then(|entered| {
            let channel = Channel::new(&self.owner, PeerId::new(), functions, data, core.clone())?;
            Ok((entered, channel))
        });
        match opened {
            // A separate task, so that callbacks stay in order even if the client stops waiting for the channel.
            Ok((entered, channel)) => self.owner.library().spawn(async move {
                channel.open().await;
                channel.carry().await;
                drop(entered);
            }),
            Err(fault) => {
                core.opened(Err(fault.message));
            }
        }
    }
}

/// Sets a transport that the program provides. Call it before connecting; it replaces the server that was set before.
///
/// - `functions`: the callbacks of the transport. Copied. `open` is called with a new channel for each connection; call
///   `mcpl_channel_opened` from it or later. `send` is called with each message to the server, `close` last, when the
///   connection ends. Pass messages from the server to `mcpl_channel_receive`, and call `mcpl_channel_hang_up` when the
///   server disconnects.
/// - `user`, `finalize`: passed to the callbacks, and its finalizer, which runs when the client closes, another server
///   is set, or this function fails.
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
        // SAFETY: the caller upholds the contract in the header.
        let functions = unsafe { mcpl_channel_functions::from_ptr(functions)? };
        client.owner().keep(&data);
        let channels: Arc<dyn OpenChannel> = Arc::new(ChannelOpener {
            owner: client.owner().clone(),
            functions,
            data,
        });
        set_target(&client, channels.into())
    })
}
