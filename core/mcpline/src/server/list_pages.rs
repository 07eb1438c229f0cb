//! Paginated lists.
//!
//! A cursor contains the number of the previous page's last item. Numbers never change, so a client that pages through
//! a list misses no item that exists all the time, whatever is registered or removed meanwhile.
//!
//! Items that a caller has no permission for are left out, and tools that a policy denies. Such a list is private to its caller:
//! no page of it may be cached for others, whether or not it lacks an item. One whose policies depend on no caller is not.
//!
//! Resources that templates list ([`template_lists`]) follow the registered ones, on the last page. No cursor refers to them.

use std::cell::Cell;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpline_protocol::ListMethod;
use mcpline_protocol::RpcError;
use mcpline_protocol::Scopes;
use mcpline_protocol::vocabulary::CacheScope;
use mcpline_protocol::wire::{Params, Raw, json_string};

use crate::message_sink::ResponseStatus;
use crate::middleware::{MiddlewareOrigin, ToolRule};
use crate::sync::Arc;
use crate::warning_limit::warn_of_limit;

use super::call::CurrentRequest;
use super::finish_call::{respond_error, respond_result, status_of};
use super::permission;
use super::registry::{Registry, RenderedItem, RenderedList};
use super::reply::ResultEnvelope;
use super::request_log::RequestOutcome;
use super::template_lists::{self, Lister};

/// Answers a list request with one page: at once, unless templates list resources that belong to it.
pub(super) fn answer(
    registry: &Arc<Registry>,
    kind: ListMethod,
    params: Option<Params>,
    current_request: Arc<CurrentRequest>,
) {
    let cursor = params.as_ref().and_then(|params| params.get("cursor"));
    let after = match cursor {
        None => 0,
        Some(cursor) => match cursor.string_value().and_then(|text| decode(kind, &text)) {
            Some(after) => after,
            None => {
                let error = RpcError::invalid_params("params.cursor is not a cursor of this list");
                respond_error(
                    &current_request,
                    ResponseStatus::Error(error.code.0),
                    &error,
                );
                return;
            }
        },
    };
    let list = registry.list(kind, current_request.peer.revision);
    let page = Page::new(&list, after, &current_request);
    let listers = match page.next {
        None => visible_listers(&list, &current_request),
        Some(_) => Vec::new(),
    };
    if listers.is_empty() {
        page.answer(kind, &list, &current_request, &Raw::EMPTY_ARRAY);
    } else {
        answer_with_listers(registry, listers, list, after, params, current_request);
    }
}

/// Runs the list handlers of templates, and answers with the last page of `resources/list`.
fn answer_with_listers(
    registry: &Arc<Registry>,
    listers: Vec<Lister>,
    list: Arc<RenderedList>,
    after: u64,
    params: Option<Params>,
    current_request: Arc<CurrentRequest>,
) {
    let mut in_flight = None;
    // Middleware has counted it already.
    if current_request.middleware.is_none() {
        match current_request.connection.client().begin_call() {
            Ok(charge) => in_flight = Some(Arc::new(charge)),
            Err(exceeded) => {
                let error = RpcError::from(exceeded);
                warn_of_limit(&error);
                let status = ResponseStatus::Refused(error.code.0);
                return respond_error(&current_request, status, &error);
            }
        }
    }
    let request = current_request.clone();
    let finish = Box::new(move |listed: Result<Raw, RpcError>| match listed {
        Ok(listed) => {
            let page = Page::new(&list, after, &request);
            page.answer(ListMethod::Resources, &list, &request, &listed);
        }
        Err(error) => respond_error(&request, status_of(&request, &error), &error),
    });
    let registry = registry.clone();
    template_lists::run(
        registry,
        listers,
        current_request,
        params,
        in_flight,
        finish,
    );
}

/// Returns the templates that list resources and that the caller may use.
fn visible_listers(list: &RenderedList, current_request: &CurrentRequest) -> Vec<Lister> {
    let listers = list.listers.iter().filter(|lister| {
        permission::has_scopes(
            &current_request.connection,
            current_request.http.as_deref(),
            &lister.entry.options.scopes,
        )
    });
    listers.cloned().collect()
}

/// One page of a list.
struct Page<'a> {
    items: Vec<&'a RenderedItem>,
    /// The number of the last item, if other items follow it.
    next: Option<u64>,
    /// Whether the scopes of the caller decide which tools it has.
    depends_on_caller: bool,
}

impl<'a> Page<'a> {
    /// Returns the items after this number that the caller may see.
    fn new(list: &'a RenderedList, after: u64, current_request: &CurrentRequest) -> Self {
        let server = current_request.connection.server();
        let begin = list.items.partition_point(|item| item.number <= after);
        let page_size = server.settings.page_size.max(1);
        let depends_on_caller = Cell::new(false);
        let has_scopes = |scopes: &Scopes| current_request.has_scopes(scopes);
        let of_policy = |scopes: &Scopes| {
            depends_on_caller.set(true);
            has_scopes(scopes)
        };
        let visible = |item: &&RenderedItem| {
            let tool = item.tool.as_ref();
            (!list.scoped || has_scopes(&item.scopes))
                && tool.is_none_or(|tool| server.tool_rule(tool, &of_policy) != ToolRule::Denied)
        };
        let mut items: Vec<_> = list.items[begin..]
            .iter()
            .filter(visible)
            .take(page_size.saturating_add(1))
            .collect();
        let more = items.len() > page_size;
        items.truncate(page_size);
        let last = items.last().filter(|_| more);
        Self {
            next: last.map(|last| last.number),
            items,
            depends_on_caller: depends_on_caller.get(),
        }
    }

    /// Answers the request, with the items of `added` after those of the page: a JSON array.
    fn answer(
        &self,
        kind: ListMethod,
        list: &RenderedList,
        current_request: &CurrentRequest,
        added: &Raw,
    ) {
        let server = current_request.connection.server();
        // What list handlers return may depend on the caller, and so may whether they run.
        let is_listed = self.next.is_none() && !list.listers.is_empty();
        let own;
        let cache = if list.scoped || is_listed || self.depends_on_caller {
            let mut hints = server.settings.list_cache.clone();
            hints.cache_scope = Some(CacheScope::Private);
            own = hints;
            &own
        } else {
            &server.settings.list_cache
        };
        let next = self.next.map(|number| encode_cursor(kind, number));
        // Without the brackets.
        let added = &added.as_bytes()[1..added.as_bytes().len() - 1];
        let items = self.items.iter();
        let len: usize = items.map(|item| item.json.as_bytes().len() + 1).sum();
        respond_result(
            current_request,
            kind.as_str(),
            RequestOutcome::Ok,
            len + added.len() + 256,
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
                for (index, item) in self.items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(item.json.as_bytes());
                }
                if !self.items.is_empty() && !added.is_empty() {
                    out.push(b',');
                }
                out.extend_from_slice(added);
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
