//! State that processes share, in JavaScript: arguments and results of its functions.

use std::sync::Arc;

use bytes::Bytes;
use mcpline::foreign::{self, ForeignSharing, IoAction, SharingFunctions};
use mcpline::sharing::{LoggedEvents, SharingReply, SharingRequest};
use mcpline::{Handler, Reply};
use napi::Result;
use napi::bindgen_prelude::{Buffer, Uint8Array, Uint8ArraySlice};
use napi_derive::napi;

use crate::failure::Failure;
use crate::hub::{Hub, lock};

/// The kind of a result. The numbers are those of `lib/sharing.ts`.
enum ResultKind {
    Done = 0,
    Session = 1,
    Conflict = 2,
    Events = 3,
    NoEvents = 4,
}

/// Arguments of a function.
#[napi(object, object_from_js = false)]
pub struct SharingArguments {
    /// The id of a session or the name of a stream; empty for the bus.
    pub name: String,
    /// The lifetime of a session in ms, or the number of an event.
    pub number: Option<f64>,
    /// A session and what it replaces, events, or a message.
    pub bytes: Vec<Buffer>,
}

/// Receives the messages of a bus.
#[napi]
pub struct BusReceiver(Arc<dyn Fn(Bytes) + Send + Sync>);

#[napi]
impl BusReceiver {
    /// Passes a message on.
    #[napi(catch_unwind)]
    pub fn receive(&self, message: Uint8ArraySlice<'_>) {
        (self.0)(Bytes::copy_from_slice(&message));
    }
}

#[napi]
impl Hub {
    /// Returns the arguments of a function of shared state; `null` once the call has ended.
    #[napi(catch_unwind)]
    pub fn call_sharing(&self, call: f64) -> Option<SharingArguments> {
        let context = self.context(call)?;
        Some(arguments(foreign::sharing_request(&context)?))
    }

    /// Returns the receiver that a bus is given with a subscription; `null` once the call has ended.
    #[napi(catch_unwind)]
    pub fn call_bus_receiver(&self, call: f64) -> Option<BusReceiver> {
        let context = self.context(call)?;
        match foreign::sharing_request(&context)? {
            SharingRequest::Subscribe { receive } => Some(BusReceiver(receive.clone())),
            _ => None,
        }
    }

    /// Ends the call of a function of shared state with the next flush.
    #[napi(catch_unwind)]
    pub fn reply_sharing(
        &mut self,
        call: f64,
        kind: u32,
        bytes: Vec<Uint8Array>,
        is_ended: bool,
        has_more: bool,
    ) {
        let mut bytes = bytes.iter().map(|bytes| Bytes::copy_from_slice(bytes));
        let is = |wanted: ResultKind| kind == wanted as u32;
        let reply = if is(ResultKind::Session) {
            SharingReply::Session(bytes.next())
        } else if is(ResultKind::Conflict) {
            SharingReply::Conflict(bytes.next().unwrap_or_default())
        } else if is(ResultKind::Events) {
            let mut part = LoggedEvents::new(bytes.collect(), is_ended);
            part.has_more = has_more;
            SharingReply::Events(Some(part))
        } else if is(ResultKind::NoEvents) {
            SharingReply::Events(None)
        } else {
            debug_assert!(is(ResultKind::Done));
            SharingReply::Done
        };
        let Some(open) = lock(&self.shared.open).take(call) else {
            return;
        };
        let action = IoAction::Reply(open.call, Ok(Reply::Sharing(reply)));
        match open.is_local {
            true => self.here.push(action),
            false => self.outgoing.push(action),
        }
    }
}

fn arguments(request: &SharingRequest) -> SharingArguments {
    let buffer = |bytes: &Bytes| Buffer::from(bytes.to_vec());
    let arguments = |name: &str, number: Option<f64>, bytes: Vec<Buffer>| SharingArguments {
        name: name.to_owned(),
        number,
        bytes,
    };
    match request {
        SharingRequest::Save {
            id,
            session,
            replaces,
            lifetime,
        } => {
            let lifetime = lifetime.map(|lifetime| lifetime.as_secs_f64() * 1e3);
            arguments(id, lifetime, vec![buffer(session), buffer(replaces)])
        }
        SharingRequest::Load { id } | SharingRequest::Remove { id } => {
            arguments(id, None, Vec::new())
        }
        SharingRequest::Append {
            stream,
            number,
            events,
        } => arguments(
            stream,
            Some(*number as f64),
            events.iter().map(buffer).collect(),
        ),
        SharingRequest::End {
            stream,
            last: number,
        }
        | SharingRequest::Read {
            stream,
            after: number,
        } => arguments(stream, Some(*number as f64), Vec::new()),
        SharingRequest::Publish { message } => arguments("", None, vec![buffer(message)]),
        SharingRequest::Subscribe { .. } | SharingRequest::Unsubscribe => {
            arguments("", None, Vec::new())
        }
    }
}

/// Returns shared state whose functions are in the order of [`SharingFunctions::in_order`].
pub(crate) fn foreign_sharing(
    handlers: Vec<Arc<dyn Handler>>,
    timeout: Option<f64>,
) -> Result<ForeignSharing> {
    let functions = SharingFunctions::in_order(handlers).map_err(|error| Failure::core(&error))?;
    ForeignSharing::new(functions, timeout).map_err(|error| Failure::core(&error).into())
}
