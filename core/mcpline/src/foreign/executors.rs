//! What a binding runs the handlers of a server's calls with: an event loop, threads.
//!
//! A handler can be called for several servers: its own and those that its server is mounted in. Each call runs with the
//! executors of the server that serves it, because only these are known to be running.

use std::any::Any;
use std::sync::Arc;

use crate::ErrorKind;
use crate::server::{Call, Context, Server};

use super::Failure;

/// Sets the executors of a server. Without effect if it has some.
pub fn set_executors(server: &Server, executors: Arc<dyn Any + Send + Sync>) {
    // A server is set up once, when its binding creates it.
    let _ = server.inner().executors.set(executors);
}

/// Returns the executors of the server that serves a call, if it has some of this type.
pub fn executors_of<T: Any + Send + Sync>(call: &Call) -> Option<&T> {
    call.server().executors.get()?.downcast_ref()
}

/// As [`executors_of`], by the context of a call.
pub fn executors_of_context<T: Any + Send + Sync>(context: &Context) -> Option<Arc<T>> {
    let executors = context.server().executors.get()?.clone();
    executors.downcast().ok()
}

/// Returns the value of this type that lives as long as the client's session: see [`Context::session_state`].
///
/// # Errors
///
/// [`ErrorKind::NotSupported`]: there is no session, or it has ended.
pub fn session_state<T: Default + Send + Sync + 'static>(
    context: &Context,
) -> Result<Arc<T>, Box<Failure<'static>>> {
    let value = context.session_value();
    value.map_err(|reason| Box::new(Failure::new(ErrorKind::NotSupported, reason.to_owned())))
}
