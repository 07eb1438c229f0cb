//! A server in this process, with a feature of each kind.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use mcpline_c::mcpl_status::*;
use mcpline_c::*;

use crate::host::{c, ok};

/// A server, closed and freed when it is dropped.
pub(crate) struct Service {
    pub(crate) server: *mut mcpl_server,
    kept: Receiver<usize>,
}

impl Service {
    pub(crate) fn new() -> Self {
        Self::with("{}")
    }

    /// Creates a server with options.
    pub(crate) fn with(options: &str) -> Self {
        let (sender, kept) = channel::<usize>();
        let info = c(r#"{"name":"test","version":"1","title":"Test"}"#);
        let options = c(options);
        // SAFETY: the texts end with zero bytes, and the data has the type that the callbacks expect.
        unsafe {
            let all = MCPL_AUTO_LENGTH;
            let server = mcpl_server_new_with(info.as_ptr(), all, options.as_ptr(), all);
            assert!(!server.is_null());
            let tools: [(_, mcpl_handler); 5] = [
                (c"echo", Some(echo)),
                (c"fail", Some(fail)),
                (c"ask", Some(ask)),
                (c"report", Some(report)),
                (c"log", Some(log)),
            ];
            let schema = c"{\"type\":\"object\"}".as_ptr();
            for (name, handler) in tools {
                let name = name.as_ptr();
                ok(mcpl_server_add_tool(
                    server,
                    name,
                    name,
                    schema,
                    handler,
                    null_mut(),
                    None,
                ));
            }
            let sender = Box::into_raw(Box::new(sender)).cast();
            let name = c"keep".as_ptr();
            ok(mcpl_server_add_tool(
                server,
                name,
                name,
                schema,
                Some(keep),
                sender,
                Some(drop_sender),
            ));
            let (uri, name) = (c"test://text".as_ptr(), c"text".as_ptr());
            ok(mcpl_server_add_resource(
                server,
                uri,
                name,
                null(),
                Some(text),
                null_mut(),
                None,
            ));
            let template = c"test://{name}/x".as_ptr();
            ok(mcpl_server_add_resource_template(
                server,
                template,
                name,
                null(),
                Some(echo),
                null_mut(),
                None,
            ));
            let (prompt, argument) = (c"greet".as_ptr(), c"[{\"name\":\"who\"}]".as_ptr());
            ok(mcpl_server_add_prompt(
                server,
                prompt,
                prompt,
                argument,
                Some(echo),
                null_mut(),
                None,
            ));
            let candidates = [c"alice".as_ptr(), c"bob".as_ptr()];
            ok(mcpl_server_add_candidates(
                server,
                prompt,
                c"who".as_ptr(),
                candidates.as_ptr(),
                2,
            ));
            Self { server, kept }
        }
    }

    /// Returns the next call of the tool `keep`, which only the test ends.
    #[track_caller]
    pub(crate) fn kept(&self) -> *mut mcpl_call {
        let call = self
            .kept
            .recv_timeout(Duration::from_secs(60))
            .expect("a call in time");
        std::ptr::without_provenance_mut(call)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        mcpl_server_free(self.server);
    }
}

/// Replies with the arguments.
unsafe extern "C" fn echo(
    call: *mut mcpl_call,
    arguments: *const c_char,
    length: usize,
    _: *mut c_void,
) {
    // SAFETY: guaranteed by the header.
    unsafe { mcpl_call_reply_text(call, arguments, length) };
}

unsafe extern "C" fn fail(call: *mut mcpl_call, _: *const c_char, _: usize, _: *mut c_void) {
    let data = c"{\"why\":1}".as_ptr();
    // SAFETY: the texts end with zero bytes.
    unsafe { mcpl_call_fail_rpc(call, -32001, c"no".as_ptr(), data, MCPL_AUTO_LENGTH) };
}

/// Passes its call to the test.
unsafe extern "C" fn keep(call: *mut mcpl_call, _: *const c_char, _: usize, user: *mut c_void) {
    // SAFETY: the data is a sender.
    let sender = unsafe { &*user.cast::<Sender<usize>>() }.clone();
    assert_eq!(mcpl_call_keep(call), MCPL_OK);
    // The test may have ended.
    let _ = sender.send(call.addr());
}

unsafe extern "C" fn drop_sender(user: *mut c_void) {
    // SAFETY: the data is a sender, and released once.
    drop(unsafe { Box::from_raw(user.cast::<Sender<usize>>()) });
}

/// Asks the user for a name, and replies with the answer or the error.
unsafe extern "C" fn ask(call: *mut mcpl_call, _: *const c_char, _: usize, _: *mut c_void) {
    let params = c(
        r#"{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}"#,
    );
    let (all, kind) = (
        MCPL_AUTO_LENGTH,
        mcpl_input_request_method::MCPL_INPUT_REQUEST_METHOD_ELICIT as i32,
    );
    // SAFETY: the texts end with zero bytes.
    unsafe {
        let status = mcpl_call_request_input(
            call,
            null(),
            kind,
            params.as_ptr(),
            all,
            Some(answered),
            null_mut(),
            None,
        );
        if status != MCPL_OK {
            mcpl_call_fail_with(call, mcpl_last_error());
        }
    }
}

unsafe extern "C" fn answered(
    call: *mut mcpl_call,
    error: *const mcpl_error,
    result: *const c_char,
    length: usize,
    _: *mut c_void,
) {
    // SAFETY: guaranteed by the header.
    unsafe {
        match error.is_null() {
            true => mcpl_call_reply_text(call, result, length),
            false => {
                let text = CStr::from_ptr(mcpl_status_name(mcpl_error_status(error) as i32));
                mcpl_call_fail(call, text.as_ptr(), MCPL_AUTO_LENGTH)
            }
        };
    }
}

/// Reports progress, then replies.
unsafe extern "C" fn report(call: *mut mcpl_call, _: *const c_char, _: usize, _: *mut c_void) {
    // SAFETY: the texts end with zero bytes.
    unsafe {
        mcpl_call_progress(call, 1.0, 2.0, c"half".as_ptr());
        mcpl_call_progress(call, 2.0, f64::NAN, null());
        mcpl_call_reply_text(call, c"done".as_ptr(), MCPL_AUTO_LENGTH);
    }
}

static LOGGED: AtomicUsize = AtomicUsize::new(0);

/// Logs a few numbered messages, then replies.
unsafe extern "C" fn log(call: *mut mcpl_call, _: *const c_char, _: usize, _: *mut c_void) {
    let level = mcpl_log_level::MCPL_LOG_WARNING as i32;
    for _ in 0..20 {
        let number = c(&LOGGED.fetch_add(1, Ordering::Relaxed).to_string());
        // SAFETY: the texts end with zero bytes.
        unsafe {
            mcpl_call_log(
                call,
                level,
                c"lumber".as_ptr(),
                number.as_ptr(),
                MCPL_AUTO_LENGTH,
            )
        };
    }
    // SAFETY: the text ends with a zero byte.
    unsafe { mcpl_call_reply_text(call, c"done".as_ptr(), MCPL_AUTO_LENGTH) };
}

unsafe extern "C" fn text(call: *mut mcpl_call, _: *const c_char, _: usize, _: *mut c_void) {
    // SAFETY: the text ends with a zero byte.
    unsafe { mcpl_call_reply_text(call, c"contents".as_ptr(), MCPL_AUTO_LENGTH) };
}

/// Counts the calls of a finalizer.
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Returns user data for a callback, to be released by [`count`].
    pub(crate) fn given(&self) -> *mut c_void {
        Arc::into_raw(self.0.clone()).cast_mut().cast()
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

pub(crate) unsafe extern "C" fn count(user: *mut c_void) {
    // SAFETY: `Count::given` created it, and it is released once.
    unsafe { Arc::from_raw(user.cast::<AtomicUsize>()) }.fetch_add(1, Ordering::SeqCst);
}
