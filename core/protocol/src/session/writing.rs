//! The messages that a session writes itself.

use crate::vocabulary::{SubscriptionFilter, meta};
use crate::wire::{Raw, RequestId, encode, json_string};

use super::incoming_requests::RequestKey;
use super::server::Outgoing;
use super::server_requests::ServerRequestKey;
use super::subscriptions::Change;

pub(super) fn notification(method: &str, params: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(params.len() + method.len() + 48);
    encode::notification(&mut message, method, Some(params));
    message
}

pub(super) fn change_message(change: &Change, subscription: Option<&RequestId>) -> Vec<u8> {
    let mut params = Vec::new();
    if let Some(id) = subscription {
        params.extend_from_slice(b"{\"_meta\":{\"");
        params.extend_from_slice(meta::SUBSCRIPTION_ID.as_bytes());
        params.extend_from_slice(b"\":");
        params.extend_from_slice(id.raw());
        params.push(b'}');
    }
    if let Change::Resource(uri) = change {
        params.extend_from_slice(if params.is_empty() {
            b"{\"uri\":"
        } else {
            b",\"uri\":"
        });
        json_string(&mut params, uri);
    }
    let mut message = Vec::with_capacity(params.len() + 80);
    if params.is_empty() {
        encode::notification(&mut message, change.method(), None);
    } else {
        params.push(b'}');
        encode::notification(&mut message, change.method(), Some(&params));
    }
    message
}

pub(super) fn cancellation(
    server_request: ServerRequestKey,
    related: Option<RequestKey>,
    reason: &str,
) -> Outgoing {
    let mut params = format!("{{\"requestId\":{},\"reason\":", server_request.0).into_bytes();
    json_string(&mut params, reason);
    params.push(b'}');
    Outgoing {
        related,
        message: notification("notifications/cancelled", &params),
    }
}

pub(super) fn honoured_json(filter: &SubscriptionFilter) -> Raw {
    // Booleans and strings always serialize.
    Raw::from_serialize(filter).unwrap_or(Raw::EMPTY_OBJECT)
}

/// Writes a finite number, without a fraction if it is integral, as the oldest clients expect.
pub(super) fn write_number(out: &mut Vec<u8>, number: f64) {
    use std::io::Write;

    const EXACT: f64 = 9_007_199_254_740_992.0;
    // Writing to a `Vec` can't fail.
    let _ = if number.fract() == 0.0 && number.abs() < EXACT {
        write!(out, "{}", number as i64)
    } else {
        write!(out, "{number}")
    };
}
