//! A host program whose callbacks send what they receive to the test.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::ThreadId;
use std::time::Duration;

use mcpline_c::mcpl_status::*;
use mcpline_c::*;
use serde_json::Value;

use crate::service::Service;

/// A generous limit that only prevents a test from hanging.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A call of a callback, with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// The end of a request: the result, or the status and the message.
    Done(usize, Result<String, (mcpl_status, String)>),
    Progress(usize, f64, f64, Option<String>),
    InputRequested(usize, Value),
    Withdrawn(usize),
    Notified(String, Value),
    Logged(mcpl_log_level, Option<String>, Value),
    Line(String),
    Opening(usize),
    Sent(usize, String),
    HungUp(usize),
    Released,
}

/// Receives the events of callbacks.
pub(crate) struct EventReceiver {
    sender: Box<Sender<(Event, ThreadId)>>,
    receiver: Receiver<(Event, ThreadId)>,
}

impl EventReceiver {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = channel();
        Self {
            sender: Box::new(sender),
            receiver,
        }
    }

    /// Returns user data for a callback without a finalizer, valid as long as this.
    pub(crate) fn lent(&self) -> *mut c_void {
        (&raw const *self.sender).cast_mut().cast()
    }

    /// Returns user data for a callback with the finalizer [`release`].
    pub(crate) fn given(&self) -> *mut c_void {
        Box::into_raw(self.sender.clone()).cast()
    }

    /// Returns the next event, and the thread on which the callback ran.
    #[track_caller]
    pub(crate) fn next_on(&self) -> (Event, ThreadId) {
        self.receiver
            .recv_timeout(TEST_TIMEOUT)
            .expect("something is told in time")
    }

    #[track_caller]
    pub(crate) fn next(&self) -> Event {
        self.next_on().0
    }

    /// Returns the events that are there already.
    pub(crate) fn rest(&self) -> Vec<Event> {
        self.receiver.try_iter().map(|(event, _)| event).collect()
    }

    /// Returns the next input request, and its parameters.
    #[track_caller]
    pub(crate) fn input_request(&self) -> (*mut mcpl_input_request, Value) {
        match self.next() {
            Event::InputRequested(input_request, params) => {
                (std::ptr::without_provenance_mut(input_request), params)
            }
            other => panic!("{other:?}"),
        }
    }

    /// Returns the outcome of the request that ends next.
    #[track_caller]
    pub(crate) fn outcome(&self) -> Result<String, mcpl_status> {
        match self.next() {
            Event::Done(_, outcome) => outcome.map_err(|(status, _)| status),
            other => panic!("{other:?}"),
        }
    }
}

/// # Safety
///
/// `user` comes from an [`EventReceiver`].
unsafe fn send_event(user: *mut c_void, event: Event) {
    // SAFETY: guaranteed by the caller.
    // A clone: the test may end, and drop the sender, as soon as it has received the event.
    let sender = unsafe { &*user.cast::<Sender<(Event, ThreadId)>>() }.clone();
    // The test may have ended.
    let _ = sender.send((event, std::thread::current().id()));
}

pub(crate) unsafe extern "C" fn release(user: *mut c_void) {
    // SAFETY: `EventReceiver::given` created it, and it is released once.
    unsafe {
        send_event(user, Event::Released);
        drop(Box::from_raw(user.cast::<Sender<(Event, ThreadId)>>()));
    }
}

/// # Safety
///
/// `text` is a string that ends with a zero byte, or `NULL`.
unsafe fn optional(text: *const c_char) -> Option<String> {
    // SAFETY: guaranteed by the caller.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned())
}

/// # Safety
///
/// `text` points to `length` bytes, followed by a zero byte.
unsafe fn text(text: *const c_char, length: usize) -> String {
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length + 1) };
    assert_eq!(bytes[length], 0);
    String::from_utf8(bytes[..length].to_vec()).unwrap()
}

unsafe fn json(data: *const c_char, length: usize) -> Value {
    // SAFETY: guaranteed by the caller.
    serde_json::from_str(&unsafe { text(data, length) }).unwrap()
}

pub(crate) unsafe extern "C" fn done(
    request: *mut mcpl_request,
    error: *const mcpl_error,
    result: *const c_char,
    length: usize,
    user: *mut c_void,
) {
    // SAFETY: guaranteed by the header.
    unsafe {
        let outcome = match error.is_null() {
            true => Ok(text(result, length)),
            false => {
                assert!(result.is_null() && length == 0);
                Err((
                    mcpl_error_status(error),
                    optional(mcpl_error_message(error)).unwrap(),
                ))
            }
        };
        send_event(user, Event::Done(request.addr(), outcome));
    }
}

pub(crate) unsafe extern "C" fn progress(
    request: *mut mcpl_request,
    progress: f64,
    total: f64,
    message: *const c_char,
    user: *mut c_void,
) {
    // SAFETY: guaranteed by the header.
    unsafe {
        send_event(
            user,
            Event::Progress(request.addr(), progress, total, optional(message)),
        )
    }
}

pub(crate) unsafe extern "C" fn ask(
    input_request: *mut mcpl_input_request,
    params: *const c_char,
    length: usize,
    user: *mut c_void,
) {
    // SAFETY: guaranteed by the header.
    unsafe {
        send_event(
            user,
            Event::InputRequested(input_request.addr(), json(params, length)),
        )
    }
}

pub(crate) unsafe extern "C" fn withdrawn(
    input_request: *mut mcpl_input_request,
    user: *mut c_void,
) {
    // SAFETY: guaranteed by the header.
    unsafe { send_event(user, Event::Withdrawn(input_request.addr())) }
}

pub(crate) unsafe extern "C" fn notified(
    _: *mut mcpl_client,
    method: *const c_char,
    params: *const c_char,
    length: usize,
    user: *mut c_void,
) {
    // SAFETY: guaranteed by the header.
    unsafe {
        send_event(
            user,
            Event::Notified(optional(method).unwrap(), json(params, length)),
        )
    }
}

pub(crate) unsafe extern "C" fn logged(
    _: *mut mcpl_client,
    level: mcpl_log_level,
    logger: *const c_char,
    data: *const c_char,
    length: usize,
    user: *mut c_void,
) {
    // SAFETY: guaranteed by the header.
    unsafe {
        send_event(
            user,
            Event::Logged(level, optional(logger), json(data, length)),
        )
    }
}

pub(crate) unsafe extern "C" fn line(
    _: *mut mcpl_client,
    line: *const c_char,
    length: usize,
    user: *mut c_void,
) {
    // SAFETY: guaranteed by the header.
    unsafe { send_event(user, Event::Line(text(line, length))) }
}

pub(crate) unsafe extern "C" fn opening(channel: *mut mcpl_channel, user: *mut c_void) {
    // SAFETY: guaranteed by the header.
    unsafe { send_event(user, Event::Opening(channel.addr())) }
}

pub(crate) unsafe extern "C" fn sent(
    channel: *mut mcpl_channel,
    message: *const c_char,
    length: usize,
    user: *mut c_void,
) -> i32 {
    // SAFETY: guaranteed by the header.
    unsafe { send_event(user, Event::Sent(channel.addr(), text(message, length))) }
    MCPL_OK as i32
}

pub(crate) unsafe extern "C" fn hung_up(channel: *mut mcpl_channel, user: *mut c_void) {
    // SAFETY: guaranteed by the header.
    unsafe { send_event(user, Event::HungUp(channel.addr())) }
}

/// The message of this thread's last failure.
pub(crate) fn last_error() -> String {
    // SAFETY: the error is read before any other function is called.
    unsafe { optional(mcpl_error_message(mcpl_last_error())).unwrap() }
}

#[track_caller]
pub(crate) fn ok(status: mcpl_status) {
    assert_eq!(status, MCPL_OK, "{}", last_error());
}

/// Copies and releases a string that the library returned.
pub(crate) fn taken(text: *mut c_char) -> String {
    assert!(!text.is_null());
    // SAFETY: the library returned it, and it is released once.
    unsafe {
        let copy = optional(text).unwrap();
        mcpl_string_free(text);
        copy
    }
}

pub(crate) fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// A client, freed when it is dropped.
pub(crate) struct Host(pub(crate) *mut mcpl_client);

impl Host {
    pub(crate) fn new() -> Self {
        // SAFETY: the texts end with zero bytes.
        let client = unsafe { mcpl_client_new(c"host".as_ptr(), c"1".as_ptr()) };
        assert!(!client.is_null());
        Self(client)
    }

    /// Creates a client of a server in this process.
    pub(crate) fn of(service: &Service) -> Self {
        let host = Self::new();
        ok(mcpl_client_set_server(host.0, service.server));
        host
    }

    /// Creates a client and connects it to a server in this process, with this revision.
    pub(crate) fn connected(service: &Service, revision: &str) -> Self {
        let host = Self::of(service);
        host.speak(revision);
        ok(mcpl_client_open(host.0));
        host
    }

    pub(crate) fn speak(&self, revision: &str) {
        self.options(&format!(r#"{{"revisions":["{revision}"]}}"#));
    }

    pub(crate) fn options(&self, json: &str) {
        let json = c(json);
        // SAFETY: it ends with a zero byte.
        ok(unsafe { mcpl_client_set_options(self.0, json.as_ptr(), MCPL_AUTO_LENGTH) });
    }

    /// Calls a tool and waits for its result.
    pub(crate) fn call(&self, tool: &str, arguments: &str) -> Result<Value, mcpl_status> {
        self.call_with(tool, arguments, null())
    }

    pub(crate) fn call_with(
        &self,
        tool: &str,
        arguments: &str,
        options: *const mcpl_request_options,
    ) -> Result<Value, mcpl_status> {
        let (tool, arguments) = (c(tool), c(arguments));
        let (tool, arguments) = (tool.as_ptr(), arguments.as_ptr());
        let all = MCPL_AUTO_LENGTH;
        // SAFETY: the texts end with zero bytes.
        given(|result, length| unsafe {
            mcpl_client_call_tool(self.0, tool, arguments, all, options, result, length)
        })
    }

    /// Calls a tool without waiting. The receiver gets its outcome.
    pub(crate) fn begin(
        &self,
        tool: &str,
        arguments: &str,
        receiver: &EventReceiver,
    ) -> *mut mcpl_request {
        self.begin_with(tool, arguments, null(), receiver)
    }

    pub(crate) fn begin_with(
        &self,
        tool: &str,
        arguments: &str,
        options: *const mcpl_request_options,
        receiver: &EventReceiver,
    ) -> *mut mcpl_request {
        let (tool, arguments) = (c(tool), c(arguments));
        let mut request = null_mut();
        // SAFETY: the texts end with zero bytes, and the receiver outlives the request.
        ok(unsafe {
            mcpl_client_call_tool_async(
                self.0,
                tool.as_ptr(),
                arguments.as_ptr(),
                MCPL_AUTO_LENGTH,
                options,
                Some(done),
                receiver.lent(),
                &raw mut request,
            )
        });
        assert!(!request.is_null());
        request
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        mcpl_client_free(self.0);
    }
}

/// Returns the result of a function that returns JSON.
pub(crate) fn given(
    function: impl FnOnce(*mut *mut c_char, *mut usize) -> mcpl_status,
) -> Result<Value, mcpl_status> {
    let (mut result, mut length) = (std::ptr::dangling_mut(), 7);
    let status = function(&raw mut result, &raw mut length);
    if status != MCPL_OK {
        assert!(result.is_null() && length == 0);
        return Err(status);
    }
    let result = taken(result);
    assert_eq!(result.len(), length);
    Ok(serde_json::from_str(&result).unwrap())
}

/// Returns options without any set.
pub(crate) fn options() -> mcpl_request_options {
    mcpl_request_options {
        size: size_of::<mcpl_request_options>(),
        timeout_ms: 0,
        total_timeout_ms: 0,
        json: null(),
        progress: None,
        user: null_mut(),
    }
}
