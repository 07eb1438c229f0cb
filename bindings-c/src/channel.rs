//! Transports written in C: callbacks send messages one after the other, a function delivers received ones.

use std::collections::VecDeque;
use std::ffi::{CStr, c_char, c_void};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use mcpline::foreign::PeerId;
use mcpline::foreign::channel::{Channel as CoreChannel, MAX_WAITING_CHANNEL_BYTES, ServedChannel};
use mcpline::foreign::options::{self, CallerOptions};
use tokio::sync::{Notify, oneshot};

use crate::callback_tracker::CallbackTracker;
use crate::executor::Job;
use crate::handles::{HandleTable, HandleToken};
use crate::mcpl_status::{MCPL_BUSY, MCPL_CLOSED, MCPL_OK};
use crate::server::{Server, mcpl_server};
use crate::status::{Fault, FaultResult, entry, entry_or, mcpl_status, mcpl_status_name};
use crate::text::{self, NulTerminatedText};
use crate::user_data::{UserData, mcpl_finalizer};

/// A connection over a transport that the program provides: it carries JSON-RPC messages one at a time.
///
/// The handle is valid on any thread until the channel is closed; from then on functions return `MCPL_STALE_HANDLE`.
/// There is nothing to release.
pub struct mcpl_channel {
    _token: [u8; 0],
}

/// Callbacks of a channel. They run where callbacks run, one at a time and in order.
///
/// Begin with `MCPL_CHANNEL_FUNCTIONS_INIT`, then set the functions.
///
/// Both directions have backpressure. While `send` returns `MCPL_BUSY`, messages to the peer wait; while
/// `mcpl_channel_receive` returns it, messages from the peer wait. When more than 32 MiB wait for the peer, the library
/// takes no more messages from it, so that a peer which only sends does not fill the memory.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct mcpl_channel_functions {
    /// `sizeof(mcpl_channel_functions)`.
    pub size: usize,
    /// Opens a client's channel. Call `mcpl_channel_opened` when it is open or has failed, before or after the callback
    /// returns.
    ///
    /// `NULL` if the channel is open from the start. Called again with another handle when the client reconnects.
    /// Servers do not call it.
    pub open: Option<unsafe extern "C" fn(channel: *mut mcpl_channel, user: *mut c_void)>,
    /// Sends one message to the peer. Required.
    ///
    /// `message` has `length` bytes and no line break; a zero byte follows. Valid until the callback returns.
    ///
    /// Returns `MCPL_OK` if the transport has taken the message. If it cannot take it now, returns `MCPL_BUSY` at once
    /// instead of waiting, and calls `mcpl_channel_writable` when it can: then the same message is passed again, perhaps
    /// at another address. Any other status is a failure, as if the callback called `mcpl_channel_hang_up` with its name.
    pub send: Option<
        unsafe extern "C" fn(
            channel: *mut mcpl_channel,
            message: *const c_char,
            length: usize,
            user: *mut c_void,
        ) -> i32,
    >,
    /// Called once after `mcpl_channel_receive` has returned `MCPL_BUSY`, when it takes messages again. May be `NULL`.
    pub ready: Option<unsafe extern "C" fn(channel: *mut mcpl_channel, user: *mut c_void)>,
    /// Closes the channel. No callback of this channel is called afterwards. May be `NULL`.
    pub close: Option<unsafe extern "C" fn(channel: *mut mcpl_channel, user: *mut c_void)>,
}

impl mcpl_channel_functions {
    /// Copies the functions and checks them.
    ///
    /// # Safety
    ///
    /// `functions` is `NULL` or begins with its size.
    pub(crate) unsafe fn from_ptr(functions: *const Self) -> FaultResult<Self> {
        if functions.is_null() {
            return Err(Fault::invalid("the functions are NULL"));
        }
        // SAFETY: guaranteed by the caller. The struct of a later version is longer and begins with the same members.
        let size = unsafe { (&raw const (*functions).size).read() };
        if size < size_of::<Self>() {
            return Err(Fault::invalid(
                "the functions have no size: begin with MCPL_CHANNEL_FUNCTIONS_INIT",
            ));
        }
        // SAFETY: the size was checked.
        let read = unsafe { functions.read() };
        match read.send {
            Some(_) => Ok(read),
            None => Err(Fault::invalid("the function that sends is NULL")),
        }
    }
}

static CHANNELS: HandleTable<Arc<Channel>> = HandleTable::new("channel");

/// What C's `send` did with messages.
enum SendOutcome {
    All,
    /// It did not take these.
    Busy(VecDeque<Bytes>),
    Failed,
}

/// An open channel as C sees it.
pub(crate) struct Channel {
    token: HandleToken,
    owner: Arc<CallbackTracker>,
    /// The peer whose turns its callbacks take: a channel with many messages delays no other.
    peer: PeerId,
    functions: mcpl_channel_functions,
    data: Arc<UserData>,
    core: Arc<CoreChannel>,
    /// Notified when the transport reports that it can take a message again.
    writable: Notify,
    /// Whether C waits for `ready`, because a message was refused.
    wants_ready: AtomicBool,
    /// Notified when `wants_ready` is set.
    refused: Notify,
}

impl Channel {
    /// Creates C's side of a core channel, whose callbacks run for this peer.
    pub(crate) fn new(
        owner: &Arc<CallbackTracker>,
        peer: PeerId,
        functions: mcpl_channel_functions,
        data: Arc<UserData>,
        core: Arc<CoreChannel>,
    ) -> FaultResult<Arc<Self>> {
        CHANNELS.open(|token| {
            Arc::new(Self {
                token,
                owner: owner.clone(),
                peer,
                functions,
                data,
                core,
                writable: Notify::new(),
                wants_ready: AtomicBool::new(false),
                refused: Notify::new(),
            })
        })
    }

    pub(crate) fn core(&self) -> &Arc<CoreChannel> {
        &self.core
    }

    /// Calls C's `open`; `mcpl_channel_opened` reports the outcome. Resolves when the callback has returned.
    pub(crate) async fn open(self: &Arc<Self>) {
        let Some(open) = self.functions.open else {
            self.core.opened(Ok(()));
            return;
        };
        self.call(move |channel| {
            // SAFETY: the data is released after the last callback.
            unsafe { open(channel.handle(), channel.data.pointer()) }
        })
        .await;
    }

    /// Sends the core's messages to the peer with C's callback until the core has no more or the peer does not take
    /// them, then closes the channel.
    pub(crate) async fn carry(self: &Arc<Self>) {
        // One for all messages: a transport that stays busy gets no further time with each attempt.
        let mut given_up = pin!(self.core.unsent_timeout_elapsed());
        while let Some(messages) = self.while_calling_ready(self.core.next()).await {
            if !self.send(messages.into(), given_up.as_mut()).await {
                break;
            }
        }
        self.close();
    }

    /// Sends messages one after the other with C's callback, and waits while the transport is busy. Returns `false` if
    /// it has failed, or was still busy some time after the core has closed the channel.
    async fn send(
        self: &Arc<Self>,
        mut messages: VecDeque<Bytes>,
        mut given_up: Pin<&mut impl Future<Output = ()>>,
    ) -> bool {
        loop {
            let sending = self.call(move |channel| channel.send_now(messages));
            messages = match sending.await {
                Some(SendOutcome::Busy(unsent)) => unsent,
                Some(SendOutcome::Failed) => return false,
                // If it was not called, the server or client is closing.
                Some(SendOutcome::All) | None => return true,
            };
            let writable = self.while_calling_ready(async {
                tokio::select! {
                    biased;
                    () = given_up.as_mut() => false,
                    () = self.core.failed() => false,
                    () = self.writable.notified() => true,
                }
            });
            if !writable.await {
                return false;
            }
        }
    }

    /// Calls C's `send` with each message until the transport is busy or fails.
    fn send_now(&self, mut messages: VecDeque<Bytes>) -> SendOutcome {
        let Some(send) = self.functions.send else {
            return SendOutcome::All;
        };
        while let Some(message) = messages.front() {
            let message = NulTerminatedText::new(message);
            // SAFETY: the message outlives the call, and the data is released after the last callback.
            let status = unsafe {
                send(
                    self.handle(),
                    message.as_ptr(),
                    message.len(),
                    self.data.pointer(),
                )
            };
            if status == MCPL_BUSY as i32 {
                return SendOutcome::Busy(messages);
            }
            if status != MCPL_OK as i32 {
                // SAFETY: names are static.
                let name = unsafe { CStr::from_ptr(mcpl_status_name(status)) };
                let failure = format!("`send` returned {}", name.to_string_lossy());
                self.core.hang_up(Some(failure));
                return SendOutcome::Failed;
            }
            messages.pop_front();
        }
        SendOutcome::All
    }

    /// Waits for a future, and calls C's `ready` meanwhile when it is due.
    async fn while_calling_ready<T>(self: &Arc<Self>, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            tokio::select! {
                biased;
                done = &mut future => return done,
                () = self.has_room_again() => {}
            }
            // Before the call: `mcpl_channel_receive` may fail again meanwhile.
            self.wants_ready.store(false, Ordering::SeqCst);
            if let Some(ready) = self.functions.ready {
                self.call(move |channel| {
                    // SAFETY: the data is released after the last callback.
                    unsafe { ready(channel.handle(), channel.data.pointer()) }
                })
                .await;
            }
        }
    }

    /// Waits until a message was refused and there is room again.
    async fn has_room_again(&self) {
        while !self.wants_ready.load(Ordering::SeqCst) {
            self.refused.notified().await;
        }
        self.core.ready().await;
    }

    /// Calls C's `close`, after the callbacks that were queued before.
    fn close(self: &Arc<Self>) {
        let channel = self.clone();
        let closing = move || {
            if let Some(close) = channel.functions.close {
                // SAFETY: the data is released after the last callback.
                unsafe { close(channel.handle(), channel.data.pointer()) }
            }
            CHANNELS.take(channel.token);
        };
        if !self.owner.call_back_for(self.peer, closing) {
            CHANNELS.take(self.token);
        }
    }

    /// Runs a callback. Returns its outcome, or `None` if it did not run because the server or client is closed.
    async fn call<T: Send + 'static>(
        self: &Arc<Self>,
        callback: impl FnOnce(&Arc<Self>) -> T + Send + 'static,
    ) -> Option<T> {
        let channel = self.clone();
        let (sender, done) = oneshot::channel();
        let entered = self.owner.enter()?;
        let calling = move || {
            let outcome = entered.run(|| callback(&channel));
            // Fails if the channel was abandoned, which is fine.
            let _ = sender.send(outcome);
        };
        self.owner
            .enqueue_for_peer(self.peer, Job::Run(Box::new(calling)));
        // Dropping the sender ends the wait as well.
        done.await.ok()
    }

    pub(crate) fn handle(&self) -> *mut mcpl_channel {
        self.token.handle()
    }
}

/// Serves one client over a channel in the background, until either side closes it.
///
/// Pass messages from the client to `mcpl_channel_receive`, and call `mcpl_channel_hang_up` when the client
/// disconnects.
///
/// - `functions`: the functions `send`, which is called for each message to the client, and `close`. The library copies
///   the structure.
/// - `principal`, `length`: the client that the transport has authenticated, and the length in bytes or
///   `MCPL_AUTO_LENGTH`: a JSON object with any of `issuer`, `subject`, `client_id`, `audience` (array), `scopes` (array),
///   `expires_at` (seconds since 1970) and `claims` (object). May be `NULL`. The principal stays the same while the
///   channel is open.
/// - `user`, `finalize`: passed to the callbacks, and its finalizer, which runs after `close` or if this function
///   fails.
///
/// Handlers find the principal as `auth` in `mcpl_call_info`. Required scopes are enforced as over HTTP: features that
/// the principal may not use are missing from lists, and calls of them fail with error -31001. Limits per client apply
/// to all channels of a principal together. If `principal` is `NULL`, the client may use everything; this is right for
/// the parent process.
///
/// Returns `NULL` on failure; see `mcpl_last_error`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_serve_channel(
    server: *mut mcpl_server,
    functions: *const mcpl_channel_functions,
    principal: *const c_char,
    length: usize,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> *mut mcpl_channel {
    let data = UserData::new(user, finalize);
    entry_or(std::ptr::null_mut(), || {
        let server = Server::get(server)?;
        // SAFETY: the caller upholds the contract in the header.
        let functions = unsafe { mcpl_channel_functions::from_ptr(functions)? };
        // SAFETY: the caller upholds the contract in the header.
        let principal = unsafe { text::optional_json("the principal", principal, length)? };
        let principal = match principal {
            Some(principal) => {
                let read = options::read("the principal", principal.as_bytes());
                let read: CallerOptions =
                    read.map_err(|error| Fault::invalid(error.to_string()))?;
                Some(read.authorized())
            }
            None => None,
        };
        let peer = PeerId::new();
        server.owner.keep_for(peer, &data);
        let channel = Channel::new(&server.owner, peer, functions, data, CoreChannel::new())?;
        let serving = channel.clone();
        let spawned = server.spawn(move |core, stop| async move {
            let transport = ServedChannel::new(serving.core().clone(), principal);
            let (served, ()) = tokio::join!(core.serve_until(transport, stop), serving.carry());
            // Only this client is lost, not the server.
            served.or_else(|error| {
                tracing::info!(%error, "the server lost a client on a custom channel");
                Ok(())
            })
        });
        if let Err(fault) = spawned {
            CHANNELS.take(channel.token);
            return Err(fault);
        }
        Ok(channel.handle())
    })
}

/// Reports the outcome of `open`.
///
/// - `failure`: `NULL` if the channel is open, else why it could not be opened.
///
/// Returns `MCPL_USAGE_ERROR` if the channel is not being opened and `MCPL_STALE_HANDLE` if it is closed. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_channel_opened(
    channel: *mut mcpl_channel,
    failure: *const c_char,
) -> mcpl_status {
    entry(|| {
        let channel = CHANNELS.get(channel)?;
        // SAFETY: the caller upholds the contract in the header.
        let failure = unsafe { text::optional("the failure", failure)? };
        let outcome = failure.map_or(Ok(()), |failure| Err(failure.to_owned()));
        match channel.core.opened(outcome) {
            true => Ok(()),
            false => Err(Fault::invalid(
                "the channel is not being opened: call `mcpl_channel_opened` once for each `open`",
            )),
        }
    })
}

/// Delivers a message from the peer.
///
/// - `message`, `length`: one JSON-RPC message and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied. Invalid messages
///   are answered or ignored as the protocol requires.
///
/// Returns `MCPL_BUSY` if more than 32 MiB are waiting, because the library is busy or the peer does not take its
/// messages. The message was not taken: stop reading, and deliver it again when `ready` of the channel's functions is
/// called (see `MCPL_BUSY`). Returns `MCPL_CLOSED` after `mcpl_channel_hang_up` and `MCPL_STALE_HANDLE` once the channel
/// is closed. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_channel_receive(
    channel: *mut mcpl_channel,
    message: *const c_char,
    length: usize,
) -> mcpl_status {
    entry(|| {
        let channel = CHANNELS.get(channel)?;
        // SAFETY: the caller upholds the contract in the header.
        let message = unsafe { text::bytes("the message", message, length)? };
        if !channel.core.has_room() {
            if channel.functions.ready.is_some() {
                channel.wants_ready.store(true, Ordering::SeqCst);
                channel.refused.notify_one();
            }
            return Err(Fault::new(
                MCPL_BUSY,
                format!(
                    "more than {MAX_WAITING_CHANNEL_BYTES} received bytes are waiting: try again later, or when `ready` is called"
                ),
            ));
        }
        let received = channel.core.receive(Bytes::copy_from_slice(message));
        received
            .map(drop)
            .map_err(|_| Fault::new(MCPL_CLOSED, "the channel is closed"))
    })
}

/// Reports that the transport can take a message again, after `send` has returned `MCPL_BUSY`.
///
/// May be called before `send` has returned, and without need: then `send` is called once more than necessary.
///
/// Returns `MCPL_STALE_HANDLE` if the channel is closed. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_channel_writable(channel: *mut mcpl_channel) -> mcpl_status {
    entry(|| {
        CHANNELS.get(channel)?.writable.notify_one();
        Ok(())
    })
}

/// Reports that the peer has disconnected. Messages that it sent before are still processed; then the channel is
/// closed.
///
/// - `reason`: `NULL` for a normal end. Otherwise the transport failed for this reason, and open requests of a client
///   fail with it.
///
/// Returns `MCPL_STALE_HANDLE` if the channel is closed. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_channel_hang_up(
    channel: *mut mcpl_channel,
    reason: *const c_char,
) -> mcpl_status {
    entry(|| {
        let channel = CHANNELS.get(channel)?;
        // SAFETY: the caller upholds the contract in the header.
        let reason = unsafe { text::optional("the reason", reason)? };
        channel.core.hang_up(reason.map(str::to_owned));
        Ok(())
    })
}
