//! State that servers share, in functions of the program: a store of sessions, a log of events and a bus.
//!
//! One [`RegisteredHandler`] handler answers all requests of the kernel: it calls the function in C for what is requested.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
#[cfg(feature = "sharing-check")]
use mcpline::foreign::SharingCheck;
use mcpline::foreign::{self, ForeignSharing, SharingFunctions};
use mcpline::server::Handler;
use mcpline::sharing::{LoggedEvents, SharingReply, SharingRequest};
use mcpline::{Context, Reply};

use crate::call::{self, OpenCall, mcpl_call};
use crate::callback_tracker::CallbackTracker;
use crate::handler::{Function, QueuedHandler, RegisteredHandler};
use crate::handles::{HandleTable, HandleToken};
use crate::server::{Server, mcpl_server};
use crate::status::{Fault, FaultResult, entry, mcpl_status};
use crate::text::{self, MCPL_AUTO_LENGTH, NulTerminatedText};
use crate::user_data::{UserData, mcpl_finalizer};

/// Bytes and their length. No zero byte needs to follow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct mcpl_bytes {
    /// The bytes. May be `NULL` if there are none.
    pub data: *const c_void,
    /// Their number.
    pub length: usize,
}

// SAFETY: those in an open call point to bytes that the call holds and that do not change.
unsafe impl Send for mcpl_bytes {}
// SAFETY: as above.
unsafe impl Sync for mcpl_bytes {}

/// Passes messages of a bus to a server.
///
/// The handle is valid on any thread from `subscribe` of `mcpl_sharing` until `unsubscribe` is called with it, or until
/// `subscribe` has failed and is called again; from then on `mcpl_bus_receive` returns `MCPL_STALE_HANDLE`. There is
/// nothing to release.
pub struct mcpl_bus_receiver {
    _token: [u8; 0],
}

/// A store of sessions, a log of the events of streams, and a bus: what the processes of a service share, so that a client of
/// the revisions up to 2025-11-25 may reach any of them (docs/deployment.md, "Sessions in a store of your own").
///
/// Begin with `MCPL_SHARING_INIT`, then set the functions: all of them are required.
///
/// The functions get opaque bytes under opaque names, which only the library reads. Names end with a zero byte. The arguments
/// of a function are valid until it has returned and its call has ended.
///
/// Calls. Each function ends its call exactly once, from any thread: with `mcpl_call_reply_session` or `mcpl_call_reply_events`
/// where the function says so, otherwise with `mcpl_call_reply_done`, or with `mcpl_call_fail`. To end it after the function has
/// returned, call `mcpl_call_keep` first. `mcpl_call_on_cancel` reports that the time is over; the call stays open until it is
/// ended. The call belongs to no client: it cannot send anything to one.
///
/// Threads. The functions run where callbacks run, several at once: at most 16 calls for sessions, 5 that read streams, 8 that
/// write them and 3 of the bus are open. A function that waits for a database occupies a worker thread meanwhile: give the
/// database a timeout.
///
/// Failures. After a failure, or without an answer in time, a process continues with the sessions that it has; requests of other
/// sessions get status 503. A diagnostic of level `MCPL_LOG_WARNING` has the message. A call that is not ended in time counts for
/// the limits until it is ended.
///
/// Limits. Calls fail if 1,024 of them, or 32 MiB, wait or run. Above 32 MiB, the oldest events and messages that wait are
/// dropped, and messages that wait for 30 seconds.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct mcpl_sharing {
    /// `sizeof(mcpl_sharing)`.
    pub size: usize,
    /// How long a call may take, in milliseconds. 0: 2,000.
    pub timeout_ms: u64,
    /// Stores a session, unless another process has changed it.
    ///
    /// Store `session` if the store has `replaces`, `session` itself, or nothing under `id`: it may have lost what it had.
    /// Otherwise change nothing, and reply with what is stored (`mcpl_call_reply_session`). Comparing and storing must be one
    /// step, for example a transaction. A session that was removed in the last minutes should stay removed: reply as if it was
    /// stored.
    ///
    /// If tokens are bound to keys (DPoP), each proof that was used is saved like a session, once, for some minutes. Its `id`
    /// begins with `proof-`.
    ///
    /// `id` has at most 64 letters, digits, `-` and `_`. `lifetime_ms` is how long to keep the session at least; negative if it
    /// does not end. A session in use is saved again before that time is over.
    pub save: Option<
        unsafe extern "C" fn(
            call: *mut mcpl_call,
            id: *const c_char,
            session: *const c_void,
            session_length: usize,
            replaces: *const c_void,
            replaces_length: usize,
            lifetime_ms: i64,
            user: *mut c_void,
        ),
    >,
    /// Replies with the session that was saved last (`mcpl_call_reply_session`). If there is none, or its lifetime is over, replies
    /// with `mcpl_call_reply_done`.
    pub load:
        Option<unsafe extern "C" fn(call: *mut mcpl_call, id: *const c_char, user: *mut c_void)>,
    /// Removes a session, if it is there. Its id is never used again.
    pub remove:
        Option<unsafe extern "C" fn(call: *mut mcpl_call, id: *const c_char, user: *mut c_void)>,
    /// Adds events to the end of a stream, which may be new.
    ///
    /// The calls of `append` and `end` for one stream do not overlap: after a timeout, the next one begins once the previous one
    /// has ended. `number` is that of the first event; each of the others has the next one. There are at most 256. If `number`
    /// does not follow the last stored event, events were lost: what is stored before is of no use, and the stream begins anew.
    ///
    /// `stream` is the id of its session, a slash and a name within the session: at most 128 characters. Once a session is
    /// removed or has expired, its streams are not read any more. Limit the size and the lifetime of streams: a server itself
    /// keeps the latest 1,024 events or 4 MiB of each.
    pub append: Option<
        unsafe extern "C" fn(
            call: *mut mcpl_call,
            stream: *const c_char,
            number: u64,
            events: *const mcpl_bytes,
            count: usize,
            user: *mut c_void,
        ),
    >,
    /// Stores that no more events of a stream follow. Does nothing if the stream is unknown.
    ///
    /// `last` is the number of its last event. If the last stored event has another number, events were lost: remove the stream,
    /// because a client must not take what is left for the whole stream.
    pub end: Option<
        unsafe extern "C" fn(
            call: *mut mcpl_call,
            stream: *const c_char,
            last: u64,
            user: *mut c_void,
        ),
    >,
    /// Replies with the events that follow the one with the number `after` (`mcpl_call_reply_events`): in order and without gaps,
    /// beginning with `after + 1`. After the last event there are none. If the stream is unknown, some of the events are no longer
    /// kept, or `after` is higher than the number of the last event, replies with `mcpl_call_reply_done`.
    pub read: Option<
        unsafe extern "C" fn(
            call: *mut mcpl_call,
            stream: *const c_char,
            after: u64,
            user: *mut c_void,
        ),
    >,
    /// Sends a message to every subscriber. Messages must arrive in their order. It does not matter whether the server that
    /// publishes a message gets it too.
    ///
    /// Calls do not overlap, as those of `append`. A message has usually some 100 bytes, and up to 16 MiB.
    pub publish: Option<
        unsafe extern "C" fn(
            call: *mut mcpl_call,
            message: *const c_void,
            length: usize,
            user: *mut c_void,
        ),
    >,
    /// Subscribes: from now on pass each message to `mcpl_bus_receive`. End the call once messages arrive.
    ///
    /// Called when the server begins to be served. If it fails, it is called again some seconds later, with another receiver.
    pub subscribe: Option<
        unsafe extern "C" fn(
            call: *mut mcpl_call,
            receiver: *mut mcpl_bus_receiver,
            user: *mut c_void,
        ),
    >,
    /// Ends the subscription of a receiver, whose handle is no longer valid.
    ///
    /// Called when the server is no longer served, unless `subscribe` has failed: after that function has returned, but perhaps
    /// before its call has ended. Then end both calls.
    pub unsubscribe: Option<
        unsafe extern "C" fn(
            call: *mut mcpl_call,
            receiver: *mut mcpl_bus_receiver,
            user: *mut c_void,
        ),
    >,
}

/// The function of a receiver.
type Receive = Arc<dyn Fn(Bytes) + Send + Sync>;

static RECEIVERS: HandleTable<Receive> = HandleTable::new("receiver");

impl mcpl_sharing {
    /// Copies the functions and checks them.
    ///
    /// # Safety
    ///
    /// `sharing` is `NULL` or begins with its size.
    unsafe fn from_ptr(sharing: *const Self) -> FaultResult<Self> {
        if sharing.is_null() {
            return Err(Fault::invalid("the functions are NULL"));
        }
        // SAFETY: guaranteed by the caller. The struct of a later version is longer and begins with the same members.
        let size = unsafe { (&raw const (*sharing).size).read() };
        if size < size_of::<Self>() {
            return Err(Fault::invalid(
                "the functions have no size: begin with MCPL_SHARING_INIT",
            ));
        }
        // SAFETY: the size was checked.
        let read = unsafe { sharing.read() };
        let missing = [
            (read.save.is_none(), "save"),
            (read.load.is_none(), "load"),
            (read.remove.is_none(), "remove"),
            (read.append.is_none(), "append"),
            (read.end.is_none(), "end"),
            (read.read.is_none(), "read"),
            (read.publish.is_none(), "publish"),
            (read.subscribe.is_none(), "subscribe"),
            (read.unsubscribe.is_none(), "unsubscribe"),
        ];
        match missing.into_iter().find(|(is_missing, _)| *is_missing) {
            Some((_, name)) => Err(Fault::invalid(format!("the function `{name}` is NULL"))),
            None => Ok(read),
        }
    }
}

/// The shared state that a server is built with.
#[derive(Clone)]
pub(crate) struct OwnSharing {
    functions: mcpl_sharing,
    data: Arc<UserData>,
    owner: Arc<CallbackTracker>,
}

impl OwnSharing {
    /// Returns the shared state of one server of the core.
    pub(crate) fn foreign(&self) -> FaultResult<ForeignSharing> {
        let registered = Arc::new(RegisteredHandler {
            function: Function::Sharing(StoreFunctions::new(self.functions)),
            data: self.data.clone(),
            owner: self.owner.clone(),
            inline: false,
            mime_type: None,
        });
        let handler: Arc<dyn Handler> = Arc::new(QueuedHandler(registered));
        let functions = SharingFunctions::in_order(vec![handler; 9])?;
        let timeout = match self.functions.timeout_ms {
            0 => None,
            timeout => Some(Duration::from_millis(timeout).as_secs_f64()),
        };
        Ok(ForeignSharing::new(functions, timeout)?)
    }
}

/// The functions in C, and the subscription that they have.
pub(crate) struct StoreFunctions {
    functions: mcpl_sharing,
    subscription: Mutex<Subscription>,
}

/// The state of a subscription. There is one at a time.
enum Subscription {
    None,
    /// The function that subscribes runs. A call that ends the subscription waits until it has returned.
    Beginning {
        receiver: HandleToken,
        ending: Option<Arc<OpenCall>>,
    },
    /// It has returned, perhaps before its call has ended.
    Begun {
        receiver: HandleToken,
    },
}

impl Subscription {
    /// Ends the subscription, and with it the receiver.
    fn end(&mut self) -> Self {
        let ended = std::mem::replace(self, Self::None);
        match ended {
            Self::Beginning { receiver, .. } | Self::Begun { receiver } => {
                RECEIVERS.take(receiver);
            }
            Self::None => {}
        }
        ended
    }
}

impl StoreFunctions {
    fn new(functions: mcpl_sharing) -> Self {
        Self {
            functions,
            subscription: Mutex::new(Subscription::None),
        }
    }

    /// Calls the function for the request of a call.
    pub(crate) fn run(&self, open: &Arc<OpenCall>, data: &UserData) {
        let Some(request) = foreign::sharing_request(open.context()) else {
            return;
        };
        let (call, name, user) = (open.handle(), open.arguments().as_ptr(), data.pointer());
        let functions = &self.functions;
        // SAFETY: the arguments are valid until the call has ended, and the data is released after the last callback.
        unsafe {
            match request {
                SharingRequest::Save {
                    session,
                    replaces,
                    lifetime,
                    ..
                } => {
                    if let Some(save) = functions.save {
                        save(
                            call,
                            name,
                            session.as_ptr().cast(),
                            session.len(),
                            replaces.as_ptr().cast(),
                            replaces.len(),
                            lifetime.map_or(-1, milliseconds),
                            user,
                        );
                    }
                }
                SharingRequest::Load { .. } => {
                    if let Some(load) = functions.load {
                        load(call, name, user);
                    }
                }
                SharingRequest::Remove { .. } => {
                    if let Some(remove) = functions.remove {
                        remove(call, name, user);
                    }
                }
                SharingRequest::Append { number, .. } => {
                    let events = open.events();
                    if let Some(append) = functions.append {
                        append(call, name, *number, events.as_ptr(), events.len(), user);
                    }
                }
                SharingRequest::End { last, .. } => {
                    if let Some(end) = functions.end {
                        end(call, name, *last, user);
                    }
                }
                SharingRequest::Read { after, .. } => {
                    if let Some(read) = functions.read {
                        read(call, name, *after, user);
                    }
                }
                SharingRequest::Publish { message } => {
                    if let Some(publish) = functions.publish {
                        publish(call, message.as_ptr().cast(), message.len(), user);
                    }
                }
                SharingRequest::Subscribe { receive } => self.subscribe(open, receive, user),
                SharingRequest::Unsubscribe => self.unsubscribe(open, user),
            }
        }
    }

    /// Begins the subscription. An end that is requested meanwhile follows when the function has returned.
    fn subscribe(&self, open: &Arc<OpenCall>, receive: &Receive, user: *mut c_void) {
        let mut opened = None;
        if let Err(fault) = RECEIVERS.open(|token| {
            opened = Some(token);
            receive.clone()
        }) {
            return open.fail(fault.message);
        }
        let Some(receiver) = opened else { return };
        {
            let mut subscription = self.subscription();
            // The last one has failed.
            subscription.end();
            *subscription = Subscription::Beginning {
                receiver,
                ending: None,
            };
            // Its end may have been requested before, and had no effect.
            if open.context().is_cancelled() {
                subscription.end();
                drop(subscription);
                return open.fail("the request was cancelled");
            }
        }
        if let Some(subscribe) = self.functions.subscribe {
            // SAFETY: the data is released after the last callback.
            unsafe { subscribe(open.handle(), receiver.handle(), user) }
        }
        let ending = {
            let mut subscription = self.subscription();
            match &mut *subscription {
                Subscription::Beginning { ending, .. } => {
                    let ending = ending.take();
                    *subscription = match ending {
                        Some(_) => Subscription::None,
                        None => Subscription::Begun { receiver },
                    };
                    ending
                }
                Subscription::None | Subscription::Begun { .. } => None,
            }
        };
        if let Some(ending) = ending {
            self.end_subscription(&ending, receiver, user);
            ending.release_holder();
        }
    }

    /// Ends the subscription, if there is one.
    fn unsubscribe(&self, open: &Arc<OpenCall>, user: *mut c_void) {
        let receiver = {
            let mut subscription = self.subscription();
            match &mut *subscription {
                Subscription::None => None,
                Subscription::Beginning { receiver, ending } => {
                    RECEIVERS.take(*receiver);
                    open.keep();
                    *ending = Some(open.clone());
                    return;
                }
                Subscription::Begun { receiver } => {
                    let receiver = *receiver;
                    subscription.end();
                    Some(receiver)
                }
            }
        };
        match receiver {
            Some(receiver) => self.end_subscription(open, receiver, user),
            None => open.reply(Reply::Sharing(SharingReply::Done)),
        }
    }

    /// Calls the function that ends the subscription of a receiver.
    fn end_subscription(&self, open: &OpenCall, receiver: HandleToken, user: *mut c_void) {
        if let Some(unsubscribe) = self.functions.unsubscribe {
            // SAFETY: the data is released after the last callback.
            unsafe { unsubscribe(open.handle(), receiver.handle(), user) }
        }
    }

    fn subscription(&self) -> MutexGuard<'_, Subscription> {
        self.subscription
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StoreFunctions {
    fn drop(&mut self) {
        self.subscription().end();
    }
}

/// Returns a lifetime, rounded up.
fn milliseconds(lifetime: Duration) -> i64 {
    i64::try_from(lifetime.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// Returns what the function of a call gets as its name, and its events. `None` if the call is not one of shared state.
pub(crate) fn arguments(context: &Context) -> Option<(NulTerminatedText, Vec<mcpl_bytes>)> {
    let mut listed = Vec::new();
    let name = match foreign::sharing_request(context)? {
        SharingRequest::Save { id, .. }
        | SharingRequest::Load { id }
        | SharingRequest::Remove { id } => id,
        SharingRequest::Append { stream, events, .. } => {
            listed.extend(events.iter().map(|event| mcpl_bytes {
                data: event.as_ptr().cast(),
                length: event.len(),
            }));
            stream
        }
        SharingRequest::End { stream, .. } | SharingRequest::Read { stream, .. } => stream,
        SharingRequest::Publish { .. }
        | SharingRequest::Subscribe { .. }
        | SharingRequest::Unsubscribe => "",
    };
    Some((NulTerminatedText::new(name.as_bytes()), listed))
}

/// Shares sessions, event streams and notifications with other servers, over functions of the program. Call it before features
/// are added and the server is served.
///
/// - `sharing`: the functions. The library copies the structure.
/// - `user`, `finalize`: passed to the functions, and its finalizer, which runs when the server closes, other functions replace
///   these, or this function fails.
///
/// The functions are called while the server is served, for example by `mcpl_server_start_http`. A server that is not served does
/// not publish announcements to other processes.
///
/// Returns `MCPL_USAGE_ERROR` if a function is `NULL`, the server has the option `sharing`, or it is in use. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_set_sharing(
    server: *mut mcpl_server,
    sharing: *const mcpl_sharing,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let data = UserData::new(user, finalize);
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the caller upholds the contract in the header.
        let functions = unsafe { mcpl_sharing::from_ptr(sharing)? };
        server.owner.keep(&data);
        server.share(&OwnSharing {
            functions,
            data,
            owner: server.owner.clone(),
        })
    })
}

/// Checks that functions of the program do what `mcpl_sharing` says, with the requests that a server sends; for a test of the
/// program. Waits until everything was checked. Only in a library that was built with the feature `sharing-check`, which is not
/// one of the default features.
///
/// - `server`: a server that is not in use, after `mcpl_server_set_sharing`. It runs the functions as its callbacks, and is in
///   use from now on.
/// - `other`: the functions as another process has them, with connections of their own to the same database. Copied. `NULL`:
///   those of the server.
/// - `user`, `finalize`: passed to the functions of `other`, and its finalizer, which runs when the server closes, or before
///   this function returns if it calls none of them.
///
/// It saves, changes and removes sessions, also at the same time, writes and reads streams, subscribes and publishes messages.
/// Use a database for tests: what is written under names that begin with `check-` may stay there.
///
/// Returns `MCPL_USAGE_ERROR` if a function fails, does not end its call in time or does something else: `mcpl_last_error`
/// begins with the name of the function, such as `sessions.save`, and says what is wrong. Also returns it if a function is
/// `NULL`, the server has no functions or is in use, or the library lacks the feature. Returns `MCPL_CLOSED` if the server is
/// stopped meanwhile, and `MCPL_WOULD_DEADLOCK` on the I/O thread and within `mcpl_loop_dispatch`. Any other thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_check_sharing(
    server: *mut mcpl_server,
    other: *const mcpl_sharing,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let data = UserData::new(user, finalize);
    entry(|| {
        let server = Server::get(server)?;
        let waiter = server.owner.waiter()?;
        let own = server.own_sharing()?;
        let other = match other.is_null() {
            true => own.clone(),
            false => {
                server.owner.keep(&data);
                OwnSharing {
                    // SAFETY: the caller upholds the contract in the header.
                    functions: unsafe { mcpl_sharing::from_ptr(other)? },
                    data,
                    owner: server.owner.clone(),
                }
            }
        };
        check_sharing(&server, &own, &other)?;
        server.serving.outcome(&waiter, -1)
    })
}

/// Starts the check.
#[cfg(feature = "sharing-check")]
fn check_sharing(server: &Arc<Server>, own: &OwnSharing, other: &OwnSharing) -> FaultResult {
    server.check_sharing(SharingCheck::new(own.foreign()?, other.foreign()?))
}

#[cfg(not(feature = "sharing-check"))]
fn check_sharing(_: &Arc<Server>, _: &OwnSharing, _: &OwnSharing) -> FaultResult {
    Err(Fault::invalid(
        "this library was built without the feature `sharing-check`",
    ))
}

/// Passes a message of the bus to a server, unless the server itself has published it.
///
/// - `receiver`: that of the subscription.
/// - `message`, `length`: the message and its length in bytes; `MCPL_AUTO_LENGTH` is not allowed. Copied. Messages of more than
///   16 MiB, and those that mcpline has not published, are ignored with a diagnostic.
///
/// Returns `MCPL_STALE_HANDLE` once the subscription has ended. Does not wait. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_bus_receive(
    receiver: *mut mcpl_bus_receiver,
    message: *const c_void,
    length: usize,
) -> mcpl_status {
    entry(|| {
        let receive = RECEIVERS.get(receiver)?;
        // SAFETY: the caller upholds the contract in the header.
        receive(unsafe { copied("the message", message, length)? });
        Ok(())
    })
}

/// Ends a call of a function of `mcpl_sharing` that has done what is requested, or, for `load` and `read`, has found nothing.
///
/// Returns `MCPL_USAGE_ERROR` if another handler was called (the call stays open) and `MCPL_STALE_HANDLE` if the call has
/// ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_done(call: *mut mcpl_call) -> mcpl_status {
    reply(call, |request| {
        Ok(match request {
            SharingRequest::Load { .. } => SharingReply::Session(None),
            SharingRequest::Read { .. } => SharingReply::Events(None),
            _ => SharingReply::Done,
        })
    })
}

/// Ends a call of `load` or `save` of `mcpl_sharing` with the session that is stored. To `save`, it says that another process has
/// changed the session.
///
/// - `session`, `length`: the session and its length in bytes, at most 16 MiB; `MCPL_AUTO_LENGTH` is not allowed. Copied.
///
/// Returns `MCPL_USAGE_ERROR` if another function or handler was called (the call stays open) and `MCPL_STALE_HANDLE` if the call
/// has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_session(
    call: *mut mcpl_call,
    session: *const c_void,
    length: usize,
) -> mcpl_status {
    reply(call, |request| {
        // SAFETY: the caller upholds the contract in the header.
        let session = || unsafe { copied("the session", session, length) };
        match request {
            SharingRequest::Load { .. } => Ok(SharingReply::Session(Some(session()?))),
            SharingRequest::Save { .. } => Ok(SharingReply::Conflict(session()?)),
            other => Err(misfit(other, "a session")),
        }
    })
}

/// Ends a call of `read` of `mcpl_sharing` with events.
///
/// - `events`, `count`: the events, one after the other, and their number. Copied. May be `NULL` if there are none.
/// - `ended`: whether the stream ended after them (`end` of `mcpl_sharing`).
/// - `has_more`: whether further events are stored already: then `read` is called again for the next part. `count` must not be 0.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid, or another function or handler was called (the call stays open), and
/// `MCPL_STALE_HANDLE` if the call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_events(
    call: *mut mcpl_call,
    events: *const mcpl_bytes,
    count: usize,
    ended: bool,
    has_more: bool,
) -> mcpl_status {
    reply(call, |request| {
        if !matches!(request, SharingRequest::Read { .. }) {
            return Err(misfit(request, "events"));
        }
        if has_more && (count == 0 || ended) {
            return Err(Fault::invalid(
                "with `has_more`, there must be events, and the stream has not ended after them",
            ));
        }
        // SAFETY: the caller upholds the contract in the header.
        let events = unsafe { listed(events, count)? };
        let mut part = LoggedEvents::new(events, ended);
        part.has_more = has_more;
        Ok(SharingReply::Events(Some(part)))
    })
}

/// Ends a call of a function of shared state. If `make` fails, the call stays open.
fn reply(
    call: *mut mcpl_call,
    make: impl FnOnce(&SharingRequest) -> FaultResult<SharingReply>,
) -> mcpl_status {
    call::end(call, |open| {
        let request = foreign::sharing_request(open.context())
            .ok_or_else(|| Fault::invalid("the call is not one of a function of `mcpl_sharing`"))?;
        Ok(Ok(Reply::Sharing(make(request)?)))
    })
}

fn misfit(request: &SharingRequest, reply: &str) -> Fault {
    Fault::invalid(format!("`{}` cannot reply with {reply}", request.name()))
}

/// # Safety
///
/// As for [`text::bytes`].
unsafe fn copied(what: &str, data: *const c_void, length: usize) -> FaultResult<Bytes> {
    if length == MCPL_AUTO_LENGTH {
        return Err(Fault::invalid(format!(
            "{what} does not end with a zero byte: set its length"
        )));
    }
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { text::bytes(what, data.cast(), length)? };
    Ok(Bytes::copy_from_slice(bytes))
}

/// # Safety
///
/// `events` is `NULL` or points to `count` events, each as for [`text::bytes`].
unsafe fn listed(events: *const mcpl_bytes, count: usize) -> FaultResult<Vec<Bytes>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let size = count.saturating_mul(size_of::<mcpl_bytes>());
    if events.is_null() || isize::try_from(size).is_err() {
        return Err(Fault::invalid("the events are NULL"));
    }
    // SAFETY: guaranteed by the caller.
    let events = unsafe { std::slice::from_raw_parts(events, count) };
    let copies = events.iter().map(|event| {
        // SAFETY: guaranteed by the caller.
        unsafe { copied("the event", event.data, event.length) }
    });
    copies.collect()
}
