//! Paginated lists.
//!
//! A cursor contains the number of the previous page's last item. Numbers never change, so a client that pages through
//! a list misses no item that exists all the time, whatever is registered or removed meanwhile.
//!
//! Items that a caller has no permission for are left out. Such a list is private to its caller: no page of it may be
//! cached for others, whether or not it lacks an item.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpline_protocol::ListMethod;
use mcpline_protocol::RpcError;
use mcpline_protocol::vocabulary::CacheScope;
use mcpline_protocol::wire::{Params, json_string};

use crate::message_sink::ResponseStatus;

use super::call::CurrentRequest;
use super::finish_call::{respond_error, respond_result};
use super::permission;
use super::registry::{Registry, RenderedItem};
use super::reply::ResultEnvelope;
use super::request_log::RequestOutcome;

/// Answers a list request with one page.
pub(super) fn answer(
    registry: &Registry,
    kind: ListMethod,
    params: Option<&Params>,
    current_request: &CurrentRequest,
) {
    let after = match params.and_then(|params| params.get("cursor")) {
        None => 0,
        Some(cursor) => match cursor.string_value().and_then(|text| decode(kind, &text)) {
            Some(after) => after,
            None => {
                let error = RpcError::invalid_params("params.cursor is not a cursor of this list");
                respond_error(current_request, ResponseStatus::Error(error.code.0), &error);
                return;
            }
        },
    };
    let server = current_request.connection.server();
    let list = registry.list(kind, current_request.peer.revision);
    let begin = list.items.partition_point(|item| item.number <= after);
    let rest = &list.items[begin..];
    let page_size = server.settings.page_size.max(1);
    let visible = |item: &&RenderedItem| {
        !list.scoped
            || permission::has(
                &current_request.connection,
                current_request.http.as_deref(),
                &item.scopes,
            )
    };
    let mut page: Vec<_> = rest
        .iter()
        .filter(visible)
        .take(page_size.saturating_add(1))
        .collect();
    let more = page.len() > page_size;
    page.truncate(page_size);
    let next = page
        .last()
        .filter(|_| more)
        .map(|last| encode_cursor(kind, last.number));
    let own;
    let cache = if list.scoped {
        let mut hints = server.settings.list_cache.clone();
        hints.cache_scope = Some(CacheScope::Private);
        own = hints;
        &own
    } else {
        &server.settings.list_cache
    };
    let len: usize = page.iter().map(|item| item.json.as_bytes().len() + 1).sum();
    respond_result(
        current_request,
        kind.as_str(),
        RequestOutcome::Ok,
        len + 256,
        |out, revision| {
            let envelope = ResultEnvelope {
                revision,
                server_info: server.info_json(),
            };
            if envelope.open(out, "complete") {
                out.push(b',');
            }
            out.push(b'"');
            out.extend_from_slice(kind.member().as_bytes());
            out.extend_from_slice(b"\":[");
            for (index, item) in page.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(item.json.as_bytes());
            }
            out.push(b']');
            if let Some(next) = &next {
                out.extend_from_slice(b",\"nextCursor\":");
                json_string(out, next);
            }
            envelope.cache(out, cache);
            envelope.close(out, None);
        },
    );
}

/// Returns the prefix of the list's cursors, which keeps them from being used for another list.
fn cursor_prefix(list: ListMethod) -> char {
    match list {
        ListMethod::Tools => 't',
        ListMethod::Resources => 'r',
        ListMethod::ResourceTemplates => 'm',
        ListMethod::Prompts => 'p',
    }
}

fn encode_cursor(kind: ListMethod, number: u64) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}{number}", cursor_prefix(kind)))
}

fn decode(kind: ListMethod, cursor: &str) -> Option<u64> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    text.strip_prefix(cursor_prefix(kind))?.parse().ok()
}
