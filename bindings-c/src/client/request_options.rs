//! Options of one request.

use std::ffi::{c_char, c_void};

use mcpline::foreign::options::{CallOptions, read};
use mcpline::protocol::vocabulary::Progress;

use crate::status::{Fault, FaultResult};
use crate::text;

use super::request_handle::mcpl_request;

/// Receives the progress of a request (`basic/utilities/progress`). Runs where callbacks run; for one request one at a time,
/// in order, and never after the request has ended.
///
/// - `request`: the request; `NULL` if its function waits for the result.
/// - `progress`: the current progress, which increases.
/// - `total`: the progress at the end; `NAN` if unknown.
/// - `message`: a description, or `NULL`. Valid until the callback returns.
/// - `user`: the pointer in the options.
pub type mcpl_progress = Option<
    unsafe extern "C" fn(
        request: *mut mcpl_request,
        progress: f64,
        total: f64,
        message: *const c_char,
        user: *mut c_void,
    ),
>;

/// Options of one request.
///
/// Begin with `MCPL_REQUEST_OPTIONS_INIT`, then set what you need. The options and what they point to are copied before the
/// function that takes them returns.
#[repr(C)]
pub struct mcpl_request_options {
    /// `sizeof(mcpl_request_options)`.
    pub size: usize,
    /// How long to wait without progress, in milliseconds. 0: the client's `timeout` (60 s by default); negative: no limit.
    pub timeout_ms: i64,
    /// How long to wait in total, in milliseconds. 0: the client's `total_timeout` (an hour by default); negative: no
    /// limit.
    pub total_timeout_ms: i64,
    /// Further options: a JSON object that ends with a zero byte, or `NULL`. Members, all optional:
    ///
    /// - `meta`: an object whose members are added to the request's `_meta`.
    /// - `log_level`: the minimum level of log messages during the request (2026-07-28): `"debug"` ... `"emergency"`.
    /// - `reissue`: whether to send the request again, at most twice, if the connection is lost before the response:
    ///   `"if-safe"` (the default: requests that only read, and, if `trust_tool_annotations` is on, calls of
    ///   read-only and idempotent tools), `"always"` or `"never"`.
    /// - `fresh`: `true` to bypass the cache.
    /// - `manual_results`: `true` to return results with input requests instead of calling the handlers (2026-07-28).
    /// - `timeout`, `total_timeout`: like the members above, in seconds.
    pub json: *const c_char,
    /// Called with progress. If it is `NULL`, the server does not report progress.
    pub progress: mcpl_progress,
    /// Passed to `progress`. Must be valid until the waiting function returns or the request's `mcpl_result_callback` is called.
    pub user: *mut c_void,
}

/// A pointer of the host that is only passed back to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct UserPointer(*mut c_void);

// SAFETY: the header requires that user data may be used from any thread.
unsafe impl Send for UserPointer {}
// SAFETY: as above.
unsafe impl Sync for UserPointer {}

impl UserPointer {
    pub(super) fn new(user: *mut c_void) -> Self {
        Self(user)
    }

    pub(super) fn pointer(self) -> *mut c_void {
        self.0
    }
}

/// Receives the progress of one request.
#[derive(Clone, Copy)]
pub(super) struct ProgressCallback {
    pub(super) function:
        unsafe extern "C" fn(*mut mcpl_request, f64, f64, *const c_char, *mut c_void),
    pub(super) user: UserPointer,
}

impl ProgressCallback {
    pub(super) fn call(self, request: *mut mcpl_request, progress: &Progress) {
        let message = progress.message.as_deref().map(text::to_c_string);
        let message = message
            .as_ref()
            .map_or(std::ptr::null(), |text| text.as_ptr());
        let total = progress.total.unwrap_or(f64::NAN);
        // SAFETY: the message outlives the call, and C has not been informed of the request's end.
        unsafe {
            (self.function)(
                request,
                progress.progress,
                total,
                message,
                self.user.pointer(),
            );
        }
    }
}

/// Options of one request as C passed them.
pub(super) type GivenOptions = (CallOptions, Option<ProgressCallback>);

/// Reads the options of one request; `NULL` for the defaults.
///
/// # Safety
///
/// `options` is `NULL` or begins with its size; its `json` is `NULL` or a string that ends with a zero byte.
pub(super) unsafe fn read_options(
    options: *const mcpl_request_options,
) -> FaultResult<GivenOptions> {
    if options.is_null() {
        return Ok((CallOptions::default(), None));
    }
    // SAFETY: guaranteed by the caller. The struct of a later version is longer and begins with the same members.
    let size = unsafe { (&raw const (*options).size).read() };
    if size < size_of::<mcpl_request_options>() {
        return Err(Fault::invalid(
            "the options have no size: begin with MCPL_REQUEST_OPTIONS_INIT",
        ));
    }
    // SAFETY: the size was checked.
    let options = unsafe { &*options };
    // SAFETY: guaranteed by the caller.
    let json = unsafe { text::optional("the options", options.json)? };
    let mut given: CallOptions = match json {
        Some(json) => read("the options", json.as_bytes())?,
        None => CallOptions::default(),
    };
    given.timeout = seconds(options.timeout_ms).or(given.timeout);
    given.total_timeout = seconds(options.total_timeout_ms).or(given.total_timeout);
    let progress = options.progress.map(|function| ProgressCallback {
        function,
        user: UserPointer::new(options.user),
    });
    Ok((given, progress))
}

/// Converts milliseconds to seconds; `None` for 0.
pub(super) fn seconds(milliseconds: i64) -> Option<f64> {
    match milliseconds {
        0 => None,
        ..0 => Some(f64::INFINITY),
        #[expect(
            clippy::cast_precision_loss,
            reason = "not within the next 285,000 years"
        )]
        1.. => Some(milliseconds as f64 / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::mcpl_status::MCPL_USAGE_ERROR;

    fn options() -> mcpl_request_options {
        mcpl_request_options {
            size: size_of::<mcpl_request_options>(),
            timeout_ms: 0,
            total_timeout_ms: 0,
            json: std::ptr::null(),
            progress: None,
            user: std::ptr::null_mut(),
        }
    }

    fn given(options: &mcpl_request_options) -> FaultResult<CallOptions> {
        // SAFETY: the size is set.
        unsafe { read_options(options) }.map(|(options, _)| options)
    }

    #[test]
    fn omitted_options_come_from_the_client() {
        let given = given(&options()).unwrap();
        assert!(given.timeout.is_none() && given.total_timeout.is_none());
        // SAFETY: NULL is allowed.
        let none = unsafe { read_options(std::ptr::null()) };
        assert!(none.is_ok_and(|(_, progress)| progress.is_none()));
    }

    #[test]
    fn timeouts_are_milliseconds_and_negative_means_no_limit() {
        let given = given(&mcpl_request_options {
            timeout_ms: 250,
            total_timeout_ms: -1,
            ..options()
        });
        let given = given.unwrap();
        assert_eq!(given.timeout, Some(0.25));
        assert_eq!(given.total_timeout, Some(f64::INFINITY));
    }

    #[test]
    fn reads_further_options_from_json() {
        let given = given(&mcpl_request_options {
            json: c"{\"fresh\":true,\"meta\":{\"a\":1},\"timeout\":2}".as_ptr(),
            ..options()
        });
        let given = given.unwrap();
        assert!(given.fresh);
        assert_eq!(given.meta.unwrap().as_str(), "{\"a\":1}");
        assert_eq!(given.timeout, Some(2.0));
    }

    #[test]
    fn rejects_invalid_options() {
        let sizeless = mcpl_request_options {
            size: 8,
            ..options()
        };
        let unread = mcpl_request_options {
            json: c"{\"frehs\":true}".as_ptr(),
            ..options()
        };
        for unfit in [sizeless, unread] {
            assert_eq!(given(&unfit).unwrap_err().status, MCPL_USAGE_ERROR);
        }
    }
}
