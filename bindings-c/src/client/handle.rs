//! Creates, configures, closes and frees clients.

use std::ffi::c_char;
use std::sync::Arc;

use mcpline::client::Client as CoreClient;
use mcpline::foreign::client::{ClientConfiguration, ClientHandle};
use mcpline::protocol::vocabulary::Implementation;

use crate::callback_tracker::{CallbackTracker, Latch};
use crate::handles::{HandleTable, HandleToken};
use crate::shared_runtime;
use crate::status::{FaultResult, entry, entry_or, mcpl_status};
use crate::text::{self, OutString};

use super::listeners::ClientCallbacks;

/// A client: a connection to one server, which reconnects if it is lost.
///
/// Create it with `mcpl_client_new`, configure it with the functions that say "before connecting", connect it with
/// `mcpl_client_open`, `mcpl_client_connect` or `mcpl_client_spawn`, end it with `mcpl_client_close` and release it with
/// `mcpl_client_free`.
///
/// The handle may be used from any thread at any time: after it is released, functions return `MCPL_STALE_HANDLE`.
/// Its callbacks run on worker threads, or on the thread that dispatches the loop that it uses
/// (`mcpl_client_use_loop`).
pub struct mcpl_client {
    _token: [u8; 0],
}

static CLIENTS: HandleTable<Arc<Client>> = HandleTable::new("client");

/// One client.
pub(super) struct Client {
    token: HandleToken,
    owner: Arc<CallbackTracker>,
    callbacks: Arc<ClientCallbacks>,
    kernel: ClientHandle,
}

impl Client {
    /// Returns the client with this handle.
    pub(super) fn get(handle: *const mcpl_client) -> FaultResult<Arc<Self>> {
        CLIENTS.get(handle)
    }

    pub(super) fn owner(&self) -> &Arc<CallbackTracker> {
        &self.owner
    }

    pub(super) fn callbacks(&self) -> &Arc<ClientCallbacks> {
        &self.callbacks
    }

    pub(super) fn kernel(&self) -> &ClientHandle {
        &self.kernel
    }

    /// Changes the configuration. The value that `change` returns is dropped without a lock held.
    ///
    /// # Errors
    ///
    /// The client is connecting or connected; errors of `change`.
    pub(super) fn configure<T>(
        &self,
        change: impl FnOnce(&mut ClientConfiguration) -> FaultResult<T>,
    ) -> FaultResult<T> {
        self.kernel.configure(change)?
    }

    /// Returns the connection.
    ///
    /// # Errors
    ///
    /// The client is not connected.
    pub(super) fn core(&self) -> FaultResult<CoreClient> {
        Ok(self.kernel.connection().client()?)
    }

    /// Ends the connection and all requests in flight, and waits until no callback runs.
    fn close(&self) -> FaultResult {
        self.owner.check_may_close()?;
        let (latch, closing) = (Latch::new(), self.kernel.closing());
        let closed = CloseSignal(latch.clone());
        self.owner.library().spawn(async move {
            closing.await;
            drop(closed);
        });
        self.owner.closing_waiter().wait(&latch, None)?;
        let input_requests = self.callbacks.input_requests();
        input_requests.withdraw_all();
        // Repeated: the last callbacks may have led to further input requests.
        self.owner.close_with(|| input_requests.withdraw_all())
    }

    /// Like [`Self::close`], on threads that must not wait. User data is released when the last reference to it is
    /// dropped.
    fn close_unattended(self: Arc<Self>) {
        let closing = self.kernel.closing();
        self.owner.library().clone().spawn(async move {
            closing.await;
            self.owner.close_without_waiting();
            self.callbacks.input_requests().withdraw_all();
            drop(self);
            shared_runtime::leave();
        });
    }
}

/// Signals the end of a connection when it is dropped, which also happens if the I/O thread ends before the closing
/// task.
struct CloseSignal(Latch<()>);

impl Drop for CloseSignal {
    fn drop(&mut self) {
        self.0.set(());
    }
}

/// Creates a client, which is not connected.
///
/// - `name`, `version`: of the program, as sent to servers. Add other members with `mcpl_client_set_options`.
///
/// Release it with `mcpl_client_free`. Returns `NULL` if an argument is `NULL` or not UTF-8, or no thread can be created; see
/// `mcpl_last_error`. Any thread.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn mcpl_client_new(
    name: *const c_char,
    version: *const c_char,
) -> *mut mcpl_client {
    entry_or(std::ptr::null_mut(), || {
        // SAFETY: the caller upholds the contract in the header.
        let (name, version) = unsafe {
            (
                text::name("the name", name)?,
                text::name("the version", version)?,
            )
        };
        let mut configuration = ClientConfiguration::default();
        configuration.host.info = Implementation::new(name, version);
        let owner = CallbackTracker::new(shared_runtime::enter()?);
        let opened = CLIENTS.open(|token| {
            let callbacks = ClientCallbacks::new(token, &owner);
            Arc::new(Client {
                token,
                owner,
                kernel: ClientHandle::unopened(callbacks.clone(), configuration),
                callbacks,
            })
        });
        match opened {
            Ok(client) => Ok(client.token.handle()),
            Err(fault) => {
                shared_runtime::leave();
                Err(fault)
            }
        }
    })
}

/// Returns the id of the server's process, if the client has started it and is connected to it; otherwise, and for a handle
/// that was released, 0. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_client_pid(client: *mut mcpl_client) -> u32 {
    entry_or(0, || {
        let client = Client::get(client)?;
        Ok(client.kernel.connection().pid().unwrap_or_default())
    })
}

/// Returns a snapshot of what a client holds now. It needs no option and costs requests nothing.
///
/// - `json`, `length`: set to a JSON object and its length in bytes: `uptime` in seconds; `is_connected`; and the numbers
///   `connections`, which have been opened so far, `requests_in_flight`, `cached_results` and `cached_bytes`. `NULL` and 0 on
///   failure. Release it with `mcpl_string_free`.
///
/// Returns `MCPL_USAGE_ERROR` if the client was not opened, and `MCPL_CLOSED` if it was closed. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_stats(
    client: *mut mcpl_client,
    json: *mut *mut c_char,
    length: *mut usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    let out = unsafe { OutString::new(json, length) };
    entry(|| {
        let client = Client::get(client)?;
        out.write_string(client.kernel.connection().stats_json()?.as_bytes());
        Ok(())
    })
}

/// Returns the metrics of a client in the text format of Prometheus, version 0.0.4; the media type is
/// `text/plain; version=0.0.4`.
///
/// - `text`, `length`: set to the text and its length in bytes. Empty if the option `metrics` is off. `NULL` and 0 on failure.
///   Release it with `mcpl_string_free`.
///
/// Returns `MCPL_USAGE_ERROR` if the client was not opened, and `MCPL_CLOSED` if it was closed. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_metrics(
    client: *mut mcpl_client,
    text: *mut *mut c_char,
    length: *mut usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    let out = unsafe { OutString::new(text, length) };
    entry(|| {
        let client = Client::get(client)?;
        out.write_string(client.kernel.connection().metrics_text()?.as_bytes());
        Ok(())
    })
}

/// Closes a client and waits until its connection has ended and none of its callbacks runs.
///
/// Closes the connection as the transport requires (a server process gets time to exit, then it is killed). Requests in
/// flight fail with `MCPL_CLOSED`. Notifications, log messages and lines of stderr that wait for their callbacks are delivered, at
/// most 4,096 and 32 MiB of them; while so many wait, further ones are dropped. Then the finalizers run; no callback is called after
/// that. The handle stays valid until `mcpl_client_free`; calling this function again is allowed.
///
/// On the thread of the client's loop it dispatches the loop while it waits. If it is called on another thread, the loop's
/// thread must keep dispatching.
///
/// Returns `MCPL_WOULD_DEADLOCK`, and does nothing, within a callback or a finalizer of the client, on the I/O thread and
/// within a dispatch. Any other thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_client_close(client: *mut mcpl_client) -> mcpl_status {
    entry(|| Client::get(client)?.close())
}

/// Releases a client, and closes it first if it is open. `NULL` is ignored.
///
/// Where `mcpl_client_close` would return `MCPL_WOULD_DEADLOCK`, such as within a callback or a finalizer of the client, it is
/// closed in the background: callbacks that are about to run may still run, then the finalizers. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_client_free(client: *mut mcpl_client) {
    if client.is_null() {
        return;
    }
    entry(|| {
        let client = CLIENTS.end(client)?;
        if client.close().is_ok() {
            shared_runtime::leave();
            return Ok(());
        }
        // Closing must not happen on this thread.
        let closing = client.clone();
        let begun = shared_runtime::in_background("mcpline-close", move || {
            if let Err(fault) = closing.close() {
                tracing::warn!("a client could not be closed: {}", fault.message);
            }
            shared_runtime::leave();
        });
        if begun.is_err() {
            client.close_unattended();
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use std::ffi::c_void;

    use mcpline::client::HostRequest;

    use super::super::handlers::mcpl_client_on_elicit;
    use super::super::input_request::{Handler, mcpl_input_request};
    use super::*;
    use crate::shared_runtime::{NO_THREADS, SharedRuntime};
    use crate::user_data::UserData;

    /// Creates a client with its own I/O thread.
    fn client() -> (Arc<SharedRuntime>, Arc<Client>) {
        let library = SharedRuntime::start().unwrap();
        let owner = CallbackTracker::new(library.clone());
        let opened = CLIENTS.open(|token| {
            let callbacks = ClientCallbacks::new(token, &owner);
            let configuration = ClientConfiguration::default();
            Arc::new(Client {
                token,
                owner,
                kernel: ClientHandle::unopened(callbacks.clone(), configuration),
                callbacks,
            })
        });
        let handle = opened.unwrap().token.handle::<mcpl_client>();
        (library, CLIENTS.end(handle).unwrap())
    }

    /// Closes the client on another thread.
    fn close(client: &Arc<Client>) -> mpsc::Receiver<bool> {
        let (closed, closes) = mpsc::channel();
        let client = client.clone();
        std::thread::spawn(move || closed.send(client.close().is_ok()));
        closes
    }

    const TEST_TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn closes_after_the_io_thread_has_ended() {
        let (library, client) = client();
        library.end();
        assert!(close(&client).recv_timeout(TEST_TIMEOUT).unwrap());
    }

    /// Sets the latch that `user` points to. Sets a clone, because the test may end, and drop its latch, as soon as it
    /// is set.
    fn set_latch(user: *mut c_void) {
        // SAFETY: the test waits until its latch is set.
        let latch = unsafe { &*user.cast::<Latch<()>>() }.clone();
        latch.set(());
    }

    unsafe extern "C" fn never_answers(
        _: *mut mcpl_input_request,
        _: *const c_char,
        _: usize,
        user: *mut c_void,
    ) {
        set_latch(user);
    }

    #[test]
    fn an_input_request_that_comes_while_callbacks_end_is_withdrawn() {
        let (library, client) = client();
        let received = Latch::<()>::new();
        let data = UserData::new((&raw const received).cast_mut().cast(), None);
        let handler = Handler::new(Some(never_answers), &data).unwrap();
        let handlers = client.callbacks.input_requests();
        handlers.set("host/tool_outcome".to_owned(), handler);
        let running = client.owner.enter().unwrap();
        let closes = close(&client);
        // The client has cancelled its open requests by then.
        while !client.owner.is_closing() {
            std::thread::yield_now();
        }
        let answer = client
            .kernel
            .input_requests()
            .request_handler("host/tool_outcome")(HostRequest::default());
        assert_eq!(handlers.count_open(), 1);
        received.take(None);
        drop(running);
        assert!(closes.recv_timeout(TEST_TIMEOUT).unwrap());
        assert_eq!(handlers.count_open(), 0);
        drop(answer);
        library.end();
    }

    unsafe extern "C" fn finalized(user: *mut c_void) {
        set_latch(user);
    }

    #[test]
    fn a_client_that_is_freed_where_no_thread_can_be_started_is_closed() {
        let released = Latch::<()>::new();
        let user = (&raw const released).cast_mut().cast();
        // SAFETY: the texts end with zero bytes, and the data outlives the client.
        let handle = unsafe {
            let handle = mcpl_client_new(c"test".as_ptr(), c"1".as_ptr());
            let set = mcpl_client_on_elicit(handle, Some(never_answers), user, Some(finalized));
            assert_eq!(set, mcpl_status::MCPL_OK);
            handle
        };
        let client = Client::get(handle).unwrap();
        let running = client.owner.enter().unwrap();
        NO_THREADS.set(true);
        running.run(|| mcpl_client_free(handle));
        NO_THREADS.set(false);
        let planned = client.kernel.connection().check_unopened();
        assert!(planned.is_err(), "it does not close");
        drop((running, client));
        let until = std::time::Instant::now() + TEST_TIMEOUT;
        assert!(released.take(Some(until)).is_some(), "it is still open");
    }
}
