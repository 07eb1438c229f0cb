//! Serving on a Unix socket.

use std::ffi::c_char;
use std::path::PathBuf;
use std::sync::Arc;

use mcpline::foreign::options::{self, UnixServingOptions};
use mcpline::foreign::{LocalSocketOptions, local_socket};

use crate::callback_tracker::Latch;
use crate::server::{Server, mcpl_server};
use crate::serving::serve;
use crate::status::{Fault, FaultResult, entry, mcpl_status};
use crate::text;

/// Serves on a Unix socket, and waits until `mcpl_server_stop` is called. Each connection is a client, and messages are
/// lines, as over stdio.
///
/// The socket has its permissions before it can be connected to. A socket that an ended server has left at the path is
/// replaced; one that another server uses is not, and neither is a file of another kind. The socket is removed at the end.
/// Clients may use everything: the permissions of the socket decide who may connect. SIGINT and SIGTERM end the process
/// and its calls at once, and leave the socket; see `mcpl_server_stop_on_signals`.
///
/// - `path`: path of the socket, ending with a zero byte.
/// - `options`: JSON object that ends with a zero byte, or `NULL` for the defaults. All members are optional:
///   - `mode` (`"0600"`): permissions of the socket file, which say who may connect: octal digits, or a number. `"0660"`
///     admits the group of the file too. The umask does not change them.
///   - `max_connections` (256): maximum number of open connections; further ones are closed at once.
///
/// Returns `MCPL_TRANSPORT_ERROR` if the socket cannot be created or another server uses it, `MCPL_USAGE_ERROR` if the
/// path is too long for a socket or an option is invalid, and `MCPL_WOULD_DEADLOCK` on the I/O thread and within
/// `mcpl_loop_dispatch`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_run_unix(
    server: *mut mcpl_server,
    path: *const c_char,
    options: *const c_char,
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the caller upholds the contract in the header.
        let (path, options) = unsafe { address(path, options)? };
        let waiter = server.owner.waiter()?;
        server.start_unix(path, options)?;
        let outcome = server.serving.outcome(&waiter, -1);
        server.flush_log();
        outcome
    })
}

/// Serves on a Unix socket in the background and returns as soon as the server listens. Otherwise like
/// `mcpl_server_run_unix`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_start_unix(
    server: *mut mcpl_server,
    path: *const c_char,
    options: *const c_char,
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the caller upholds the contract in the header.
        let (path, options) = unsafe { address(path, options)? };
        server.start_unix(path, options)
    })
}

/// # Safety
///
/// As for [`text::name`].
unsafe fn address(
    path: *const c_char,
    options: *const c_char,
) -> FaultResult<(PathBuf, LocalSocketOptions)> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let path = text::name("the path", path)?.into();
        let options = match text::optional("the options", options)? {
            None => LocalSocketOptions::default(),
            Some(given) => {
                options::read::<UnixServingOptions>("the options", given.as_bytes())?.options()?
            }
        };
        Ok((path, options))
    }
}

impl Server {
    fn start_unix(self: &Arc<Self>, path: PathBuf, options: LocalSocketOptions) -> FaultResult {
        let waiter = self.owner.waiter()?;
        let bound = Latch::<FaultResult>::new();
        let giving = bound.clone();
        self.spawn(move |core, stop| async move {
            match local_socket(path, options).await {
                Ok(unix) => {
                    giving.set(Ok(()));
                    serve(core, unix, stop).await
                }
                Err(error) => {
                    giving.set(Err(error.into()));
                    Ok(())
                }
            }
        })?;
        match waiter.wait(&bound, None)? {
            Some(bound) => bound,
            None => Err(Fault::closed("server")),
        }
    }
}
