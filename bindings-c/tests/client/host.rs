//! A program with callbacks, each of which tells the test what it was told.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::ThreadId;
use std::time::Duration;

use mcpline_c::mcpl_status::*;
use mcpline_c::*;
use serde_json::Value;

use crate::service::Service;

/// Long beside anything that happens here: a guard against hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a callback was told, and the thread that it ran on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Told {
    /// The end of a request: the result, or the status and the message.
    Done(usize, Result<String, (mcpl_status, String)>),
    Progress(usize, f64, f64, Option<String>),
    Asked(usize, Value),
    Withdrawn(usize),
    Notified(String, Value),
    Logged(mcpl_log_level, Option<String>, Value),
    Line(String),
    Opening(usize),
    Sent(usize, String),
    HungUp(usize),
    Released,
}

/// Who hears what callbacks are told.
pub(crate) struct Ear {
    sender: Box<Sender<(Told, ThreadId)>>,
    receiver: Receiver<(Told, ThreadId)>,
}

impl Ear {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = channel();
        Self {
            sender: Box::new(sender),
            receiver,
        }
    }

    /// Data for a callback that has no finalizer: it lives as long as this.
    pub(crate) fn lent(&self) -> *mut c_void {
        (&raw const *self.sender).cast_mut().cast()
    }

    /// Data for a callback that has a finalizer, [`release`].
    pub(crate) fn given(&self) -> *mut c_void {
        Box::into_raw(self.sender.clone()).cast()
    }

    /// What was told next, and where.
    #[track_caller]
    pub(crate) fn next_on(&self) -> (Told, ThreadId) {
        self.receiver
            .recv_timeout(PATIENCE)
            .expect("something is told in time")
    }

    #[track_caller]
    pub(crate) fn next(&self) -> Told {
        self.next_on().0
    }

    /// What was told already.
    pub(crate) fn rest(&self) -> Vec<Told> {
        self.receiver.try_iter().map(|(told, _)| told).collect()
    }

    /// The question that is asked next, and its parameters.
    #[track_caller]
    pub(crate) fn question(&self) -> (*mut mcpl_input_request, Value) {
        match self.next() {
            Told::Asked(question, params) => (std::ptr::without_provenance_mut(question), params),
            other => panic!("{other:?}"),
        }
    }

    /// How the request ends that ends next.
    #[track_caller]
    pub(crate) fn outcome(&self) -> Result<String, mcpl_status> {
        match self.next() {
            Told::Done(_, outcome) => outcome.map_err(|(status, _)| status),
            other => panic!("{other:?}"),
        }
    }
}

/// # Safety
///
/// `user` is an ear's.
unsafe fn tell(user: *mut c_void, told: Told) {
    // SAFETY: as the caller promises.
    // One of its own: the test may end as soon as it is told, while the sender is still at it.
    let sender = unsafe { &*user.cast::<Sender<(Told, ThreadId)>>() }.clone();
    // The test may have ended.
    let _ = sender.send((told, std::thread::current().id()));
}

pub(crate) unsafe extern "C" fn release(user: *mut c_void) {
    // SAFETY: `Ear::given` made it, and it is released once.
    unsafe {
        tell(user, Told::Released);
        drop(Box::from_raw(user.cast::<Sender<(Told, ThreadId)>>()));
    }
}

/// # Safety
///
/// It is a text that ends with a zero byte, or `NULL`.
unsafe fn optional(text: *const c_char) -> Option<String> {
    // SAFETY: as the caller promises.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned())
}

/// # Safety
///
/// It points to so many bytes, after which a zero byte follows.
unsafe fn text(text: *const c_char, length: usize) -> String {
    // SAFETY: as the caller promises.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length + 1) };
    assert_eq!(bytes[length], 0);
    String::from_utf8(bytes[..length].to_vec()).unwrap()
}

unsafe fn json(data: *const c_char, length: usize) -> Value {
    // SAFETY: as the caller promises.
    serde_json::from_str(&unsafe { text(data, length) }).unwrap()
}

pub(crate) unsafe extern "C" fn done(
    request: *mut mcpl_request,
    error: *const mcpl_error,
    result: *const c_char,
    length: usize,
    user: *mut c_void,
) {
    // SAFETY: as the header says.
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
        tell(user, Told::Done(request.addr(), outcome));
    }
}

pub(crate) unsafe extern "C" fn progress(
    request: *mut mcpl_request,
    progress: f64,
    total: f64,
    message: *const c_char,
    user: *mut c_void,
) {
    // SAFETY: as the header says.
    unsafe {
        tell(
            user,
            Told::Progress(request.addr(), progress, total, optional(message)),
        )
    }
}

pub(crate) unsafe extern "C" fn ask(
    question: *mut mcpl_input_request,
    params: *const c_char,
    length: usize,
    user: *mut c_void,
) {
    // SAFETY: as the header says.
    unsafe { tell(user, Told::Asked(question.addr(), json(params, length))) }
}

pub(crate) unsafe extern "C" fn withdrawn(question: *mut mcpl_input_request, user: *mut c_void) {
    // SAFETY: as the header says.
    unsafe { tell(user, Told::Withdrawn(question.addr())) }
}

pub(crate) unsafe extern "C" fn notified(
    _: *mut mcpl_client,
    method: *const c_char,
    params: *const c_char,
    length: usize,
    user: *mut c_void,
) {
    // SAFETY: as the header says.
    unsafe {
        tell(
            user,
            Told::Notified(optional(method).unwrap(), json(params, length)),
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
    // SAFETY: as the header says.
    unsafe {
        tell(
            user,
            Told::Logged(level, optional(logger), json(data, length)),
        )
    }
}

pub(crate) unsafe extern "C" fn line(
    _: *mut mcpl_client,
    line: *const c_char,
    length: usize,
    user: *mut c_void,
) {
    // SAFETY: as the header says.
    unsafe { tell(user, Told::Line(text(line, length))) }
}

pub(crate) unsafe extern "C" fn opening(channel: *mut mcpl_channel, user: *mut c_void) {
    // SAFETY: as the header says.
    unsafe { tell(user, Told::Opening(channel.addr())) }
}

pub(crate) unsafe extern "C" fn sent(
    channel: *mut mcpl_channel,
    message: *const c_char,
    length: usize,
    user: *mut c_void,
) {
    // SAFETY: as the header says.
    unsafe { tell(user, Told::Sent(channel.addr(), text(message, length))) }
}

pub(crate) unsafe extern "C" fn hung_up(channel: *mut mcpl_channel, user: *mut c_void) {
    // SAFETY: as the header says.
    unsafe { tell(user, Told::HungUp(channel.addr())) }
}

/// The message of this thread's last failure.
pub(crate) fn last_error() -> String {
    // SAFETY: it is read before anything else is called.
    unsafe { optional(mcpl_error_message(mcpl_last_error())).unwrap() }
}

#[track_caller]
pub(crate) fn ok(status: mcpl_status) {
    assert_eq!(status, MCPL_OK, "{}", last_error());
}

/// A text that the library has given back.
pub(crate) fn taken(text: *mut c_char) -> String {
    assert!(!text.is_null());
    // SAFETY: the library gave it, and it is released once.
    unsafe {
        let copy = optional(text).unwrap();
        mcpl_string_free(text);
        copy
    }
}

pub(crate) fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// A client that is freed at the end.
pub(crate) struct Host(pub(crate) *mut mcpl_client);

impl Host {
    pub(crate) fn new() -> Self {
        // SAFETY: the texts end with zero bytes.
        let client = unsafe { mcpl_client_new(c"host".as_ptr(), c"1".as_ptr()) };
        assert!(!client.is_null());
        Self(client)
    }

    /// Of a server in this process.
    pub(crate) fn of(service: &Service) -> Self {
        let host = Self::new();
        ok(mcpl_client_set_server(host.0, service.server));
        host
    }

    /// Connected to a server in this process, over this revision.
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

    /// Calls a tool, and has the ear hear of its end.
    pub(crate) fn begin(&self, tool: &str, arguments: &str, ear: &Ear) -> *mut mcpl_request {
        self.begin_with(tool, arguments, null(), ear)
    }

    pub(crate) fn begin_with(
        &self,
        tool: &str,
        arguments: &str,
        options: *const mcpl_request_options,
        ear: &Ear,
    ) -> *mut mcpl_request {
        let (tool, arguments) = (c(tool), c(arguments));
        let mut request = null_mut();
        // SAFETY: the texts end with zero bytes, and the ear outlives the request.
        ok(unsafe {
            mcpl_client_call_tool_async(
                self.0,
                tool.as_ptr(),
                arguments.as_ptr(),
                MCPL_AUTO_LENGTH,
                options,
                Some(done),
                ear.lent(),
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

/// What a function that gives JSON back gives.
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

/// Options that are all zero.
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
