//! Tokens that a callback of C's checks.

use std::ffi::c_void;
use std::sync::Arc;

use mcpline::auth::{Authorized, ResourceServerBuilder, VerifyError};
use mcpline::foreign::options::{self, AuthorizedOptions};
use mcpline::protocol::wire::Raw;
use serde_json::json;

use crate::client::{Asked, mcpl_question_handler};
use crate::server::{Server, mcpl_server};
use crate::status::{Fault, entry, mcpl_status};
use crate::user::{UserData, mcpl_finalizer};

/// The code of a refusal that is a verdict; with any other nobody knows.
const NOT_GOOD: i64 = -1;

/// Has `handler` check every token, in place of the server, where the `auth` among the options of HTTP has
/// `"verifies": true` (`basic/authorization`). Before serving.
///
/// Its parameters have the `token`. It is answered with what the token says, all of it optional: `issuer`, `subject`,
/// `client_id`, `scopes` (an array), `expires_at` (seconds since 1970), `claims` (an object). It is refused with the code -1 if
/// it isn't good; with any other code if nobody can tell now, and the request is answered 503. So it is if no answer comes
/// within 30 seconds.
///
/// - `handler`: is called with each token; see `mcpl_question_handler`. The token is valid until it returns, and secret.
/// - `user`, `finalize`: given to it, and what releases it once it is not called any more: when the server closes, a further
///   call of this function replaces the handler, or this one fails.
///
/// Any thread. Returns `MCPL_USAGE_ERROR` if the handler is `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_on_verify(
    server: *mut mcpl_server,
    handler: mcpl_question_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    // First of all: it is released however this ends.
    let data = UserData::new(user, finalize);
    entry(|| {
        let ask = handler.ok_or_else(|| Fault::invalid("the handler is NULL"))?;
        let server = Server::get(server)?;
        server.owner.keep(&data);
        let owner = server.owner.clone();
        let before = server.verifies_with(Arc::new(Asked {
            ask,
            data,
            owner,
            fit: |_, answer| Ok(answer),
        }));
        // Released where nothing is locked.
        drop(before);
        Ok(())
    })
}

/// Has the callback check every token.
pub(crate) fn verified_by(
    asked: Arc<Asked>,
    builder: ResourceServerBuilder,
) -> ResourceServerBuilder {
    builder.verifier(move |token| {
        let params = json!({ "token": token.expose() }).to_string();
        let answer = asked.answer(Some(Raw::from_trusted(params)));
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

fn read(caller: &Raw) -> Result<Authorized, VerifyError> {
    let caller: AuthorizedOptions =
        options::read("what was answered of a token", caller.as_bytes())
            .map_err(|error| VerifyError::Unavailable(error.to_string()))?;
    Ok(caller.authorized())
}
