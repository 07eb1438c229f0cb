//! Access tokens that a callback verifies.

use std::ffi::c_void;
use std::sync::Arc;

use mcpline::auth::{Caller, ResourceServerBuilder, VerifyError};
use mcpline::client::HostRequestHandler;
use mcpline::foreign::client::InputRequests;
use mcpline::foreign::options::{self, CallerOptions};
use mcpline::protocol::wire::Raw;
use serde_json::json;

use crate::callback_tracker::CallbackTracker;
use crate::client::{Handler, InputRequestHandlers, mcpl_input_request_handler};
use crate::server::{Server, mcpl_server};
use crate::status::{entry, mcpl_status};
use crate::user_data::{UserData, mcpl_finalizer};

/// The method of the input requests that pass tokens to the callback.
const VERIFY: &str = "host/verify";

/// Passes access tokens to a server's callback.
pub(crate) struct Verifier {
    handlers: Arc<InputRequestHandlers>,
    requests: Arc<InputRequests>,
}

impl Verifier {
    pub(crate) fn new(owner: &Arc<CallbackTracker>) -> Self {
        let handlers = InputRequestHandlers::new(owner);
        Self {
            requests: InputRequests::new(handlers.clone()),
            handlers,
        }
    }

    /// Returns a function that passes tokens to the callback, if one is set.
    pub(crate) fn request_handler(&self) -> Option<HostRequestHandler> {
        let has_handler = self.handlers.has_handler(VERIFY);
        has_handler.then(|| self.requests.request_handler(VERIFY))
    }

    /// Cancels all open verifications.
    pub(crate) fn withdraw_all(&self) {
        self.handlers.withdraw_all();
    }
}

/// The error code for an invalid token. Any other code means that the token could not be verified.
const NOT_GOOD: i64 = -1;

/// Verifies access tokens with a callback instead of by the server (`basic/authorization`).
///
/// Takes effect for servers that are started afterwards with `"verifies": true` in `auth` of their HTTP options.
///
/// - `handler`: called with each token, as the parameters `{"token": "..."}`; see `mcpl_input_request_handler`. The
///   token is secret and valid until the callback returns.
/// - `user`, `finalize`: passed to the handler, and its finalizer, which runs when the server closes, another handler
///   replaces this one, or this function fails.
///
/// For a valid token answer with an object with any of `issuer`, `subject`, `client_id`, `audience` (array), `scopes`
/// (array), `expires_at` (seconds since 1970) and `claims` (object). For an invalid token answer with an error of code
/// -1. Any other code means that the token cannot be verified at the moment, and the request is answered with status
/// 503, as it is when no answer comes within 30 seconds.
///
/// Returns `MCPL_USAGE_ERROR` if `handler` is `NULL`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_on_verify(
    server: *mut mcpl_server,
    handler: mcpl_input_request_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    // Before anything can fail, so that it is released whatever the outcome.
    let data = UserData::new(user, finalize);
    entry(|| {
        let handler = Handler::new(handler, &data)?;
        let server = Server::get(server)?;
        server.owner.keep(&data);
        // The previous handler is released here, without a lock held.
        drop(server.verifier.handlers.set(VERIFY.to_owned(), handler));
        Ok(())
    })
}

/// Verifies every token with the callback.
pub(crate) fn verified_by(
    request_handler: HostRequestHandler,
    builder: ResourceServerBuilder,
) -> ResourceServerBuilder {
    builder.verifier(move |token| {
        let params = json!({ "token": token.expose() }).to_string();
        let answer = request_handler(Raw::from_trusted(params).into());
        async move {
            match answer.await {
                Ok(caller) => read(&caller),
                Err(error) if error.code.0 == NOT_GOOD => {
                    Err(VerifyError::Invalid(error.message.into_owned()))
                }
                Err(error) => Err(VerifyError::Unavailable(error.message.into_owned())),
            }
        }
    })
}

fn read(caller: &Raw) -> Result<Caller, VerifyError> {
    let caller: CallerOptions = options::read("what the verifier returned", caller.as_bytes())
        .map_err(|error| VerifyError::Unavailable(error.to_string()))?;
    Ok(caller.authorized())
}
