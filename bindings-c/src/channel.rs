//! Transports written in C: messages go to a callback one after the other, and come by a function.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use mcpline::foreign::Peer;
use mcpline::transport::Memory;
use tokio::sync::{mpsc, oneshot};

use crate::handles::{Table, Token};
use crate::mcpl_status::{MCPL_CLOSED, MCPL_LIMIT_EXCEEDED};
use crate::owner::Owner;
use crate::place::Job;
use crate::server::{Server, mcpl_server};
use crate::status::{Done, Fault, entry, entry_or, mcpl_status};
use crate::text::{self, Text};
use crate::user::{UserData, mcpl_finalizer};

/// How many messages that C hands over may wait for the I/O thread: it takes them at once unless it is busy, and what
/// waits is held in memory.
const WAITING: usize = 1_024;

/// How often the end of a server's channel looks whether calls have ended.
const SETTLING: Duration = Duration::from_millis(10);

/// How long the host may take to send the last answers once the server has ended: as on other transports.
const LAST_ANSWERS: Duration = Duration::from_millis(750);

/// A connection over a transport of the host's own: messages of JSON-RPC, one at a time, over whatever it is that the host
/// has.
///
/// A token that may be used from any thread at any time: once the channel is closed, functions return `MCPL_ENDED`.
pub struct mcpl_channel {
    _token: [u8; 0],
}

/// What a channel does. Set `size` to `sizeof(mcpl_channel_functions)`. All run where callbacks run, one at a time, in
/// order.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct mcpl_channel_functions {
    /// `sizeof(mcpl_channel_functions)`.
    pub size: usize,
    /// Opens the channel, of a client; answered by `mcpl_channel_opened`, now or later. `NULL` if it is open already. Called
    /// again, with another handle, when a client connects again.
    pub open: Option<unsafe extern "C" fn(channel: *mut mcpl_channel, user: *mut c_void)>,
    /// Sends one message to the other side: `length` bytes, without a line break, which a zero byte follows.
    pub send: Option<
        unsafe extern "C" fn(
            channel: *mut mcpl_channel,
            message: *const c_char,
            length: usize,
            user: *mut c_void,
        ),
    >,
    /// The channel is needed no more: the last that is called of it. May be `NULL`.
    pub close: Option<unsafe extern "C" fn(channel: *mut mcpl_channel, user: *mut c_void)>,
}

impl mcpl_channel_functions {
    /// # Safety
    ///
    /// `functions` is `NULL` or begins with its size.
    pub(crate) unsafe fn read(functions: *const Self) -> Done<Self> {
        if functions.is_null() {
            return Err(Fault::invalid("the functions are NULL"));
        }
        // SAFETY: as the caller promises. A later version's are more, and begin as these.
        let size = unsafe { (&raw const (*functions).size).read() };
        if size < size_of::<Self>() {
            return Err(Fault::invalid("the size of the functions is not set"));
        }
        // SAFETY: they have the size.
        let read = unsafe { functions.read() };
        match read.send {
            Some(_) => Ok(read),
            None => Err(Fault::invalid("the function that sends is NULL")),
        }
    }
}

static CHANNELS: Table<Arc<Channel>> = Table::new("channel");

/// An open channel, as both sides know it.
pub(crate) struct Channel {
    token: Token,
    owner: Arc<Owner>,
    /// For whom its functions run: what one channel has to send delays no other.
    peer: Peer,
    functions: mcpl_channel_functions,
    data: Arc<UserData>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Where messages go that C has received; gone once the other side has hung up.
    incoming: Option<mpsc::Sender<Bytes>>,
    opening: Option<oneshot::Sender<Result<(), String>>>,
}

impl Channel {
    /// A channel whose functions run for this peer, and what C receives by it.
    pub(crate) fn new(
        owner: &Arc<Owner>,
        peer: Peer,
        functions: mcpl_channel_functions,
        data: Arc<UserData>,
    ) -> Done<(Arc<Self>, mpsc::Receiver<Bytes>)> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let channel = CHANNELS.open(|token| {
            Arc::new(Self {
                token,
                owner: owner.clone(),
                peer,
                functions,
                data,
                state: Mutex::new(State {
                    incoming: Some(sender),
                    opening: None,
                }),
            })
        })?;
        Ok((channel, receiver))
    }

    /// Has C open it; resolves when it has, or with why it couldn't.
    pub(crate) async fn open(self: &Arc<Self>) -> Result<(), String> {
        let Some(open) = self.functions.open else {
            return Ok(());
        };
        let (opening, opened) = oneshot::channel();
        self.lock().opening = Some(opening);
        self.call(move |channel| {
            // SAFETY: the data is released after the last callback.
            unsafe { open(channel.handle(), channel.data.pointer()) }
        })
        .await;
        opened
            .await
            .unwrap_or_else(|_| Err("the channel was closed".into()))
    }

    /// Nobody waits for it to be opened any more: `open` resolves as soon as what it has called has returned.
    pub(crate) fn give_up(&self) {
        let opening = self.lock().opening.take();
        drop(opening);
    }

    /// Has C send these, one after the other; resolves when it has.
    pub(crate) async fn send(self: &Arc<Self>, messages: Vec<Bytes>) {
        let Some(send) = self.functions.send else {
            return;
        };
        self.call(move |channel| {
            for message in messages {
                let message = Text::new(&message);
                // SAFETY: the message outlives the call, and the data is released after the last callback.
                unsafe {
                    send(
                        channel.handle(),
                        message.as_ptr(),
                        message.len(),
                        channel.data.pointer(),
                    )
                }
            }
        })
        .await;
    }

    /// Has C send a message of the server's, and what else there is by now.
    async fn send_all(self: &Arc<Self>, first: Bytes, memory: &Memory) {
        let mut messages = vec![first];
        messages.extend(std::iter::from_fn(|| memory.try_receive()));
        self.send(messages).await;
    }

    /// The channel is needed no more. After whatever was called before.
    pub(crate) fn close(self: &Arc<Self>) {
        *self.lock() = State::default();
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

    /// Runs a callback; resolves when it has returned.
    async fn call(self: &Arc<Self>, callback: impl FnOnce(&Arc<Self>) + Send + 'static) {
        let channel = self.clone();
        let (sender, done) = oneshot::channel::<()>();
        let Some(entered) = self.owner.enter() else {
            return;
        };
        let calling = move || {
            entered.run(|| callback(&channel));
            // Nobody waits any more if the channel is given up.
            let _ = sender.send(());
        };
        self.owner.run_for(self.peer, Job::Run(Box::new(calling)));
        // It ends with the sender, too.
        let _ = done.await;
    }

    pub(crate) fn handle(&self) -> *mut mcpl_channel {
        self.token.handle()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves one client over a transport of the host's own, in the background, until either side closes it.
///
/// `send` is called for every message to the client; what comes from the client is handed over by
/// `mcpl_channel_receive`, its end by `mcpl_channel_hang_up`. `user` is released after `close`, the last callback.
///
/// Returns `NULL` on failure; see `mcpl_last_error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_serve_channel(
    server: *mut mcpl_server,
    functions: *const mcpl_channel_functions,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> *mut mcpl_channel {
    let data = UserData::new(user, finalize);
    entry_or(std::ptr::null_mut(), || {
        let server = Server::get(server)?;
        // SAFETY: the header demands it.
        let functions = unsafe { mcpl_channel_functions::read(functions)? };
        let peer = Peer::new();
        server.owner.keep_for(peer, &data);
        let (channel, mut received) = Channel::new(&server.owner, peer, functions, data)?;
        let serving = channel.clone();
        let spawned = server.spawn(move |core, stop| async move {
            let memory = core.connect();
            let stopped = stop.stopped();
            tokio::pin!(stopped);
            loop {
                tokio::select! {
                    message = received.recv() => match message {
                        Some(message) => memory.send(message),
                        None => break,
                    },
                    message = memory.receive() => match message {
                        Some(message) => serving.send_all(message, &memory).await,
                        None => break,
                    },
                    () = &mut stopped => {
                        wind_down(&serving, &memory, core.settings().shutdown_grace).await;
                        break;
                    }
                }
            }
            memory.close();
            serving.close();
            Ok(())
        });
        if let Err(fault) = spawned {
            CHANNELS.take(channel.token);
            return Err(fault);
        }
        Ok(channel.handle())
    })
}

/// Lets calls in flight end within `grace`, ends those that are left, and sends all answers.
async fn wind_down(channel: &Arc<Channel>, memory: &Memory, grace: Duration) {
    memory.wind_down();
    let settled = async {
        loop {
            if let Some(message) = memory.try_receive() {
                channel.send_all(message, memory).await;
            } else if memory.is_idle() {
                return;
            } else if let Ok(Some(message)) = tokio::time::timeout(SETTLING, memory.receive()).await
            {
                channel.send_all(message, memory).await;
            }
        }
    };
    if tokio::time::timeout(grace, settled).await.is_ok() {
        return;
    }
    memory.shut_down();
    let last = async {
        if let Some(message) = memory.try_receive() {
            channel.send_all(message, memory).await;
        }
    };
    // Out of time, or done: it is closed now.
    let _ = tokio::time::timeout(LAST_ANSWERS, last).await;
}

/// A channel that was to be opened is open; or, with a reason, could not be opened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_channel_opened(
    channel: *mut mcpl_channel,
    failure: *const c_char,
) -> mcpl_status {
    entry(|| {
        let channel = CHANNELS.get(channel)?;
        // SAFETY: the header demands it.
        let failure = unsafe { text::optional("the failure", failure)? };
        let opening = channel.lock().opening.take();
        let opening = opening.ok_or_else(|| Fault::invalid("the channel is not being opened"))?;
        // Nobody may wait for it any more.
        let _ = opening.send(failure.map_or(Ok(()), |failure| Err(failure.to_owned())));
        Ok(())
    })
}

/// Hands over a message that has come from the other side: JSON-RPC, `length` bytes, copied. It is not checked here: what
/// is no message is answered or ignored as the protocol says.
///
/// Returns `MCPL_LIMIT_EXCEEDED` if the I/O thread has not taken up a thousand messages before it, `MCPL_CLOSED` after
/// `mcpl_channel_hang_up`, `MCPL_ENDED` once the channel is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_channel_receive(
    channel: *mut mcpl_channel,
    message: *const c_char,
    length: usize,
) -> mcpl_status {
    entry(|| {
        let channel = CHANNELS.get(channel)?;
        // SAFETY: the header demands it.
        let message = unsafe { text::bytes("the message", message, length)? };
        let incoming = channel.lock().incoming.clone();
        let incoming = incoming.ok_or_else(|| Fault::new(MCPL_CLOSED, "the channel is hung up"))?;
        match incoming.try_send(Bytes::copy_from_slice(message)) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Full(_)) => Err(Fault::new(
                MCPL_LIMIT_EXCEEDED,
                format!("{WAITING} messages wait already"),
            )),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Fault::closed("channel")),
        }
    })
}

/// The other side is gone. What it has sent is still read; then the channel is closed. `reason` may be `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_channel_hang_up(
    channel: *mut mcpl_channel,
    reason: *const c_char,
) -> mcpl_status {
    entry(|| {
        let channel = CHANNELS.get(channel)?;
        // SAFETY: the header demands it.
        let reason = unsafe { text::optional("the reason", reason)? };
        let state = std::mem::take(&mut *channel.lock());
        if let Some(opening) = state.opening {
            // Nobody may wait for it any more.
            let _ = opening.send(Err(reason.unwrap_or("the channel was hung up").to_owned()));
        }
        Ok(())
    })
}
