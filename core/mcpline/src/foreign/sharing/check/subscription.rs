//! The subscription of the check. It ends as that of a served server does: always, unless the function that subscribes fails.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::background::{self, JoinHandle};
use crate::server::{RunningSharingCall, Server};
use crate::sharing::{SharingReply, SharingRequest};

use super::super::bus::Receiver;
use super::super::requests::{Requests, failed, wrong_reply};
use super::{Failure, answer};

/// How long the check waits after its timeout for the function that subscribes, so that it ends a subscription that comes late.
const LATE_SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(10);

/// A subscription to the bus. If it is dropped, it ends in a task of its own.
pub(super) struct CheckSubscription {
    /// Dropped to end the subscription.
    keep: Option<oneshot::Sender<Infallible>>,
    subscribed: oneshot::Receiver<()>,
    task: JoinHandle<Result<(), Failure>>,
}

impl CheckSubscription {
    /// Begins to subscribe. `server` runs the functions until the subscription has ended.
    pub(super) fn begin(
        server: Server,
        requests: Arc<Requests>,
        receive: Receiver,
    ) -> Result<Self, Failure> {
        let request = SharingRequest::Subscribe { receive };
        let name = request.name();
        let call = requests
            .start(request, ())
            .map_err(|error| Failure::new(name, error))?;
        let (keep, ended) = oneshot::channel();
        let (sender, subscribed) = oneshot::channel();
        let task = background::spawn_here(async move {
            let outcome = keep_subscribed(&requests, name, call, sender, ended).await;
            drop(server);
            outcome
        });
        Ok(Self {
            keep: Some(keep),
            subscribed,
            task,
        })
    }

    /// Waits until messages arrive. Returns `false` if subscribing has failed: [`end`](Self::end) returns the reason.
    pub(super) async fn is_subscribed(&mut self) -> bool {
        (&mut self.subscribed).await.is_ok()
    }

    /// Ends the subscription, and waits until that is done. May be called again if this future was dropped before.
    ///
    /// # Errors
    ///
    /// A function has failed, or did not answer in time.
    pub(super) async fn end(&mut self) -> Result<(), Failure> {
        self.keep = None;
        // An error: the runtime ends.
        (&mut self.task).await.unwrap_or(Ok(()))
    }
}

/// Waits for the function that subscribes, then for `ended`, and unsubscribes.
async fn keep_subscribed(
    requests: &Arc<Requests>,
    name: &'static str,
    call: RunningSharingCall,
    subscribed: oneshot::Sender<()>,
    mut ended: oneshot::Receiver<Infallible>,
) -> Result<(), Failure> {
    let attempt = tokio::select! {
        attempt = wait_for_attempt(requests, name, call) => Some(attempt),
        // The call is cancelled now. The function may still subscribe.
        _ = &mut ended => None,
    };
    let outcome = match attempt {
        Some(Attempt::Failed(failure)) => return Err(failure),
        Some(Attempt::Late(failure)) => Err(failure),
        Some(Attempt::Subscribed) => {
            // The check may have been stopped.
            let _ = subscribed.send(());
            // An error: the sender was dropped, as intended.
            let _ = ended.await;
            Ok(())
        }
        None => Ok(()),
    };
    let unsubscribed = answer(requests, SharingRequest::Unsubscribe).await;
    outcome.and(unsubscribed.map(drop))
}

/// The outcome of an attempt to subscribe.
enum Attempt {
    Subscribed,
    /// The function has subscribed after the timeout, or still may.
    Late(Failure),
    Failed(Failure),
}

/// Waits for the function that subscribes. After the timeout it is cancelled, but may still subscribe.
async fn wait_for_attempt(
    requests: &Requests,
    name: &'static str,
    mut call: RunningSharingCall,
) -> Attempt {
    if let Ok(outcome) = timeout(requests.timeout(), call.outcome()).await {
        let error = match outcome {
            Ok(SharingReply::Done) => return Attempt::Subscribed,
            Ok(_) => wrong_reply(name),
            Err(error) => failed(name, &error),
        };
        return Attempt::Failed(Failure::new(name, error));
    }
    call.cancel();
    let failure = Failure::new(name, requests.timed_out(name));
    match timeout(LATE_SUBSCRIBE_TIMEOUT, call.outcome()).await {
        Ok(Ok(SharingReply::Done)) | Err(_) => Attempt::Late(failure),
        Ok(_) => Attempt::Failed(failure),
    }
}
