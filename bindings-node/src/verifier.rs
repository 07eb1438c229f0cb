//! Access tokens that a JavaScript function verifies: it receives each with a number, and answers under that number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mcpline::auth::{Caller, ResourceServerBuilder, VerifyError};
use mcpline::foreign::options::CallerOptions;
use mcpline::protocol::wire::Raw;
use napi::Result;
use napi_derive::napi;
use tokio::sync::oneshot;

use crate::hub::{Event, Hub, Shared, lock};
use crate::server::read;

type VerifyResult = std::result::Result<Caller, VerifyError>;

/// A JavaScript function that verifies tokens.
#[napi]
pub struct Verifier {
    number: u32,
    shared: Arc<Shared>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    last: u32,
    senders: HashMap<u32, oneshot::Sender<VerifyResult>>,
}

/// A pending verification. Dropping it frees its number, whatever the reason.
struct PendingVerification {
    number: u32,
    waiting: Arc<Mutex<Waiting>>,
}

impl Drop for PendingVerification {
    fn drop(&mut self) {
        lock(&self.waiting).senders.remove(&self.number);
    }
}

#[napi]
impl Verifier {
    /// Creates a verifier. The listener with this number receives tokens: a number, and the token as JSON.
    #[napi(constructor, catch_unwind)]
    pub fn new(hub: &Hub, number: u32) -> Self {
        Self {
            number,
            shared: hub.shared.clone(),
            waiting: Arc::default(),
        }
    }

    /// Accepts the token. `caller` is the authenticated caller, as JSON.
    #[napi(catch_unwind)]
    pub fn accept(&self, number: u32, caller: String) -> Result<()> {
        let caller: CallerOptions = read("what the verifier returned", &caller)?;
        self.end(number, Ok(caller.authorized()));
        Ok(())
    }

    /// Rejects the token.
    #[napi(catch_unwind)]
    pub fn refuse(&self, number: u32) {
        self.end(
            number,
            Err(VerifyError::Invalid(
                "the token was rejected by the server's `verifier`".into(),
            )),
        );
    }

    /// Reports that the token cannot be verified at the moment.
    #[napi(catch_unwind)]
    pub fn fail(&self, number: u32) {
        self.end(
            number,
            Err(VerifyError::Unavailable("the verifier failed".into())),
        );
    }

    fn end(&self, number: u32, result: VerifyResult) {
        let sender = lock(&self.waiting).senders.remove(&number);
        if let Some(sender) = sender {
            // Fails if the verification was abandoned.
            let _ = sender.send(result);
        }
    }

    /// Makes the function verify every token.
    pub(crate) fn added_to(&self, builder: ResourceServerBuilder) -> ResourceServerBuilder {
        let (listener, shared, waiting) = (self.number, self.shared.clone(), self.waiting.clone());
        builder.verifier(move |token| {
            let (sender, result) = oneshot::channel();
            let number = {
                let mut waiting = lock(&waiting);
                waiting.last = waiting.last.wrapping_add(1);
                let number = waiting.last;
                waiting.senders.insert(number, sender);
                number
            };
            let token_json = Some(Raw::string(token.expose()));
            shared.post(Event::ListenerCalled(
                listener,
                0,
                f64::from(number),
                token_json,
                None,
            ));
            let place = PendingVerification {
                number,
                waiting: waiting.clone(),
            };
            async move {
                let _place = place;
                result.await.unwrap_or_else(|_| {
                    Err(VerifyError::Unavailable(
                        "the verifier ended without a result".into(),
                    ))
                })
            }
        })
    }
}
