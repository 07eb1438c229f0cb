//! Registration of handlers: the arguments that C passes, and how each handler is run.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

use mcpline::foreign::options::FeatureOptions;

use crate::handler::{Function, QueuedHandler, RegisteredHandler, mcpl_handler};
use crate::server::Server;
use crate::status::{Fault, FaultResult};
use crate::text;
use crate::user_data::{UserData, mcpl_finalizer};

/// A handler to be registered, with its user data.
pub(crate) struct NewHandler {
    run: mcpl_handler,
    data: Arc<UserData>,
    pub(crate) inline: bool,
}

impl NewHandler {
    /// Takes ownership of the data at once, so that it is released however the registration ends.
    pub(crate) fn new(run: mcpl_handler, user: *mut c_void, finalize: mcpl_finalizer) -> Self {
        Self {
            run,
            data: UserData::new(user, finalize),
            inline: false,
        }
    }

    pub(crate) fn handler(
        self,
        server: &Server,
        mime_type: Option<String>,
    ) -> FaultResult<Arc<QueuedHandler>> {
        let run = self
            .run
            .ok_or_else(|| Fault::invalid("the handler is NULL"))?;
        if server.owner.is_closed() {
            return Err(Fault::closed("server"));
        }
        server.owner.keep(&self.data);
        Ok(Arc::new(QueuedHandler(Arc::new(RegisteredHandler {
            function: Function::Handler(run),
            data: self.data,
            owner: server.owner.clone(),
            inline: self.inline,
            mime_type,
        }))))
    }
}

/// Runs the handler on the I/O thread, without waking a worker thread.
///
/// Only for handlers that never wait: no other message is read or written meanwhile. `mcpl_call_request_input_wait` returns
/// `MCPL_WOULD_DEADLOCK` there. An HTTP server with the option `io_threads` may run it on several threads at the same time.
pub const MCPL_HANDLER_INLINE: u32 = 1;
/// Never runs the handler twice for one request: a retry (2026-07-28) that reaches another process fails instead. Tools
/// and custom requests only.
pub const MCPL_HANDLER_RUN_ONCE: u32 = 2;

/// Shared caches may store what the handler of a resource returns, for `cache_ttl_ms`: it is the same for all callers.
/// Without effect if the resource has `scopes`.
pub const MCPL_HANDLER_SHARED_CACHE: u32 = 4;

/// `cache_ttl_ms` is set, also if it is 0: clients may not cache what the handler of a resource returns.
pub const MCPL_HANDLER_CACHE: u32 = 8;

/// How the server runs a handler. Begin with `MCPL_HANDLER_OPTIONS_INIT`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct mcpl_handler_options {
    /// `sizeof(mcpl_handler_options)`.
    pub size: usize,
    /// Any of `MCPL_HANDLER_INLINE`, `MCPL_HANDLER_RUN_ONCE`, `MCPL_HANDLER_SHARED_CACHE` and `MCPL_HANDLER_CACHE`, combined
    /// with `|`.
    pub flags: u32,
    /// Calls of a tool per second that the whole server accepts. 0: the server's `tool_rate`.
    pub calls_per_second: u32,
    /// Calls that may arrive at once within that rate. 0: as many as `calls_per_second`.
    pub burst: u32,
    /// Scopes that a caller needs, all of them, separated by spaces. `NULL`: none.
    ///
    /// For tools, resources, templates, prompts and custom methods of servers that authenticate callers. What a caller
    /// may not use is missing from lists; using it fails with an error that names the required scopes.
    pub scopes: *const c_char,
    /// Identifier of the extension that a custom method belongs to. `NULL`: none.
    ///
    /// The server must declare the extension (`extensions` of `mcpl_server_new_with`). If a client does not declare it,
    /// requests fail with -32021 and notifications are dropped with a warning in the diagnostics. Tools, resources,
    /// templates and prompts cannot have one.
    pub extension: *const c_char,
    /// Names of variables of a resource template that may have any value, separated by spaces. `NULL`: none.
    ///
    /// A URI in which another variable contains a `..` segment, an absolute path or the character NUL is answered with
    /// an error, and the handler is not run: joined to a directory, such a value names a file outside of it.
    pub unchecked_variables: *const c_char,
    /// How long a call of a tool may take, in milliseconds. 0: no limit.
    ///
    /// When the time is over, the client gets a tool error that says so, and the call is cancelled as if the client had
    /// cancelled the request (`mcpl_call_is_cancelled`, `mcpl_call_on_cancel`); completing it has no effect any more. The time
    /// includes that in which the call waits for a worker thread, and does not pass while an input request of the call is
    /// open (`mcpl_call_request_input`). Only tools have a timeout.
    pub timeout_ms: u64,
    /// How long clients may cache the contents of a resource, in milliseconds (2026-07-28); see
    /// `MCPL_HANDLER_SHARED_CACHE`. 0 without `MCPL_HANDLER_CACHE`: the server's `resource_cache`. Resources and resource
    /// templates have it.
    pub cache_ttl_ms: u64,
}

impl mcpl_handler_options {
    /// Returns the options, and whether the handler runs inline.
    ///
    /// # Safety
    ///
    /// `options` is `NULL` or begins with its size, and its strings end with a zero byte.
    pub(crate) unsafe fn read(options: *const Self) -> FaultResult<(FeatureOptions, bool)> {
        let mut read = Self {
            size: size_of::<Self>(),
            flags: 0,
            calls_per_second: 0,
            burst: 0,
            scopes: std::ptr::null(),
            extension: std::ptr::null(),
            unchecked_variables: std::ptr::null(),
            timeout_ms: 0,
            cache_ttl_ms: 0,
        };
        if !options.is_null() {
            // SAFETY: guaranteed by the caller. The struct of a later version is longer and begins with the same
            // members; that of an earlier version ends before `scopes`.
            let size = unsafe { (&raw const (*options).size).read() };
            if size < std::mem::offset_of!(Self, scopes) {
                return Err(Fault::invalid(
                    "the options have no size: begin with MCPL_HANDLER_OPTIONS_INIT",
                ));
            }
            let known = size.min(size_of::<Self>());
            // SAFETY: the struct has this size, and its bytes are numbers, or pointers that the caller has set.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    options.cast::<u8>(),
                    (&raw mut read).cast::<u8>(),
                    known,
                );
            }
        }
        let known = MCPL_HANDLER_INLINE
            | MCPL_HANDLER_RUN_ONCE
            | MCPL_HANDLER_SHARED_CACHE
            | MCPL_HANDLER_CACHE;
        if read.flags & !known != 0 {
            return Err(Fault::invalid(
                "the options have unknown flags: use only the constants MCPL_HANDLER_… of this version",
            ));
        }
        let has_cache = read.cache_ttl_ms > 0 || read.flags & MCPL_HANDLER_CACHE != 0;
        if !has_cache && read.flags & MCPL_HANDLER_SHARED_CACHE != 0 {
            return Err(Fault::invalid(
                "MCPL_HANDLER_SHARED_CACHE needs cache_ttl_ms",
            ));
        }
        // SAFETY: guaranteed by the caller.
        let (scopes, extension, unchecked_variables) = unsafe {
            (
                text::optional("the scopes", read.scopes)?,
                text::optional("the extension", read.extension)?,
                text::optional("the unchecked variables", read.unchecked_variables)?,
            )
        };
        let options = FeatureOptions {
            scopes: split_list(scopes),
            unchecked_variables: split_list(unchecked_variables),
            run_once: read.flags & MCPL_HANDLER_RUN_ONCE != 0,
            rate: (read.calls_per_second > 0).then_some((
                read.calls_per_second,
                match read.burst {
                    0 => read.calls_per_second,
                    burst => burst,
                },
            )),
            extension: extension.map(str::to_owned),
            timeout: (read.timeout_ms > 0)
                .then(|| Duration::from_millis(read.timeout_ms).as_secs_f64()),
            cache: has_cache.then_some((
                read.cache_ttl_ms,
                read.flags & MCPL_HANDLER_SHARED_CACHE != 0,
            )),
            ..FeatureOptions::default()
        };
        Ok((options, read.flags & MCPL_HANDLER_INLINE != 0))
    }
}

/// Splits a list at its spaces.
pub(crate) fn split_list(list: Option<&str>) -> Vec<String> {
    match list {
        None | Some("") => Vec::new(),
        Some(list) => list.split(' ').map(str::to_owned).collect(),
    }
}
