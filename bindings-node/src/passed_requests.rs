//! Requests that middleware has passed on and waits for. Their handlers run in the asynchronous context in which it did so.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mcpline::Context;
use mcpline::protocol::session::ClientProfile;

use crate::hub::lock;

/// The promises of middleware that waits for requests, by request. JavaScript keeps the asynchronous context of each.
///
/// They are as many as calls of `next` that are not settled: the calls of middlewares, which the core limits, have one each,
/// unless a middleware passes its request on several times at once.
#[derive(Default)]
pub(crate) struct PassedRequests(Mutex<HashMap<RequestIdentity, Waiting>>);

/// What the calls for one request have in common: the description of the client, which is an object of the session or, on
/// 2026-07-28, of the request, and the id.
#[derive(Clone, PartialEq, Eq, Hash)]
struct RequestIdentity {
    peer: usize,
    id: String,
}

struct Waiting {
    /// The promises, in the order in which the request was passed on, and whether a call has begun for each.
    promises: Vec<(u32, bool)>,
    /// Kept, so that no other peer gets its address.
    _peer: Arc<ClientProfile>,
}

/// A request that was passed on once.
pub(crate) struct PassedRequest {
    identity: RequestIdentity,
    promise: u32,
}

impl PassedRequests {
    /// Adds the promise of a middleware that passes the request of its call on.
    pub(crate) fn add(&self, context: &Context, promise: u32) -> PassedRequest {
        let (identity, peer) = identify(context);
        let mut requests = lock(&self.0);
        let waiting = requests.entry(identity.clone()).or_insert(Waiting {
            promises: Vec::new(),
            _peer: peer,
        });
        waiting.promises.push((promise, false));
        PassedRequest { identity, promise }
    }

    /// Removes a promise that is settled.
    pub(crate) fn remove(&self, passed: &PassedRequest) {
        let mut requests = lock(&self.0);
        let Some(waiting) = requests.get_mut(&passed.identity) else {
            return;
        };
        waiting
            .promises
            .retain(|(promise, _)| *promise != passed.promise);
        if waiting.promises.is_empty() {
            requests.remove(&passed.identity);
        }
    }

    /// Returns the promise that waits for a call that begins.
    ///
    /// It is the first for which no call has begun: calls begin in the order in which a request is passed on. A handler that
    /// runs again for one promise gets the last, that of the innermost middleware.
    pub(crate) fn promise_of(&self, context: &Context) -> Option<u32> {
        let mut requests = lock(&self.0);
        if requests.is_empty() {
            return None;
        }
        let (identity, _) = identify(context);
        let promises = &mut requests.get_mut(&identity)?.promises;
        if let Some((promise, has_begun)) = promises.iter_mut().find(|(_, has_begun)| !*has_begun) {
            *has_begun = true;
            return Some(*promise);
        }
        promises.last().map(|(promise, _)| *promise)
    }
}

fn identify(context: &Context) -> (RequestIdentity, Arc<ClientProfile>) {
    let peer = context.peer();
    let identity = RequestIdentity {
        peer: Arc::as_ptr(&peer) as usize,
        id: context.request_id().as_str().to_owned(),
    };
    (identity, peer)
}
