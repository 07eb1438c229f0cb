//! Lists, page by page.
//!
//! A cursor names the last item of the page before it by its number, which never changes, so that a
//! client paging through a list misses nothing that was there all the time, whatever is registered or
//! removed meanwhile.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpline_protocol::RpcError;
use mcpline_protocol::wire::{Params, json_string};

use crate::lane::Status;

use super::call::Seat;
use super::completing::{respond, respond_error};
use super::registry::{ListKind, Registry};
use super::reply::Envelope;

/// Answers a list request with one page.
pub(super) fn answer(registry: &Registry, kind: ListKind, params: Option<&Params>, seat: &Seat) {
    let after = match params.and_then(|params| params.get("cursor")) {
        None => 0,
        Some(cursor) => match cursor.string_value().and_then(|text| decode(kind, &text)) {
            Some(after) => after,
            None => {
                let error = RpcError::invalid_params("params.cursor is not one of this list");
                respond_error(seat, Status::Error(error.code.0), &error);
                return;
            }
        },
    };
    let server = seat.connection.server();
    let items = registry.list(kind, seat.peer.revision);
    let begin = items.partition_point(|(number, _)| *number <= after);
    let rest = &items[begin..];
    let page = &rest[..rest.len().min(server.settings.page_size.max(1))];
    let next = match page.last() {
        Some((number, _)) if page.len() < rest.len() => Some(encode_cursor(kind, *number)),
        _ => None,
    };
    let len: usize = page.iter().map(|(_, item)| item.as_bytes().len() + 1).sum();
    respond(seat, Status::Result, len + 256, |out, revision| {
        let envelope = Envelope {
            revision,
            server_info: server.info_json(),
        };
        if envelope.open(out, "complete") {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(kind.member().as_bytes());
        out.extend_from_slice(b"\":[");
        for (index, (_, item)) in page.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(item.as_bytes());
        }
        out.push(b']');
        if let Some(next) = &next {
            out.extend_from_slice(b",\"nextCursor\":");
            json_string(out, next);
        }
        envelope.cache(out, &server.settings.list_cache);
        envelope.close(out, None);
    });
}

fn encode_cursor(kind: ListKind, number: u64) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}{number}", kind.mark()))
}

fn decode(kind: ListKind, cursor: &str) -> Option<u64> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    text.strip_prefix(kind.mark())?.parse().ok()
}
