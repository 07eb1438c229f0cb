//! Wakes the JavaScript thread, with a thread-safe function that keeps the process alive only while something is
//! pending.

use std::ptr;
use std::sync::{Mutex, PoisonError};

use napi::bindgen_prelude::{JsValue, Object};
use napi::{Env, Error, Result, Status, sys};

/// Calls a JavaScript function without arguments, on its thread, from any thread.
pub(crate) struct ThreadWaker {
    /// `None` once the environment ends: Node frees the function then.
    function: Mutex<Option<Function>>,
}

#[derive(Clone, Copy)]
struct Function(sys::napi_threadsafe_function);

// SAFETY: Node-API allows thread-safe functions to be called from any thread; all other uses are on the JavaScript
// thread, and the mutex prevents uses after its end.
unsafe impl Send for Function {}

impl ThreadWaker {
    /// Creates it from a JavaScript function. By itself it does not keep the process alive.
    pub(crate) fn new(env: Env, callback: &Object<'_>) -> Result<Self> {
        let name = env.create_string("mcpline")?;
        let mut function = ptr::null_mut();
        // SAFETY: both values belong to this environment and are alive; without a context there is nothing to finalize.
        check(unsafe {
            sys::napi_create_threadsafe_function(
                env.raw(),
                callback.raw(),
                ptr::null_mut(),
                name.raw(),
                0,
                1,
                ptr::null_mut(),
                None,
                ptr::null_mut(),
                None,
                &mut function,
            )
        })?;
        // SAFETY: this is the JavaScript thread, and the function was just created.
        check(unsafe { sys::napi_unref_threadsafe_function(env.raw(), function) })?;
        Ok(Self {
            function: Mutex::new(Some(Function(function))),
        })
    }

    /// Calls the function soon. From any thread.
    pub(crate) fn wake(&self) {
        if let Some(Function(function)) = *self.lock() {
            // SAFETY: the function lives until `end` takes it, which the lock excludes. The call fails only when the
            // environment ends: then there is no thread to wake.
            let _ = unsafe {
                sys::napi_call_threadsafe_function(
                    function,
                    ptr::null_mut(),
                    sys::ThreadsafeFunctionCallMode::nonblocking,
                )
            };
        }
    }

    /// Sets whether it keeps the process alive while it waits to be woken. On the JavaScript thread.
    pub(crate) fn hold(&self, env: Env, held: bool) {
        if let Some(Function(function)) = *self.lock() {
            // SAFETY: as in `wake`, on the JavaScript thread. It never fails for a live function.
            let _ = unsafe {
                if held {
                    sys::napi_ref_threadsafe_function(env.raw(), function)
                } else {
                    sys::napi_unref_threadsafe_function(env.raw(), function)
                }
            };
        }
    }

    /// Ends it: the environment ends, and frees the function.
    pub(crate) fn end(&self) {
        self.lock().take();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Function>> {
        self.function.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts the status of a Node-API call to an error.
pub(crate) fn check(status: sys::napi_status) -> Result<()> {
    match status {
        sys::Status::napi_ok => Ok(()),
        status => Err(Error::from_status(Status::from(status))),
    }
}
