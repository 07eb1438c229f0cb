//! Tools that need a visit to a URL before they do their work.

use std::sync::Arc;

use mcpline::protocol::vocabulary::ElicitParams;
use mcpline::{Context, HandlerError, Server};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::state::State;

#[derive(Deserialize, JsonSchema)]
struct Visit {
    id: String,
}

/// Adds the tools.
pub(crate) fn add(server: &Server, state: &Arc<State>) {
    let visits = state.clone();
    let _ = server.clone().tool(
        "test_url_elicitation_required",
        "Needs a visit first",
        move |args: Visit, ctx: Context| {
            let visits = visits.clone();
            async move {
                if visits.visited.is_set(&args.id) || accepted(&ctx, &args.id) {
                    return Ok(format!("authorised {}", args.id));
                }
                let url = format!("https://example.com/authorise?visit={}", args.id);
                let visit = ElicitParams::url("Please authorise access", url);
                Err(HandlerError::UrlElicitationRequired(vec![
                    visit.with_elicitation_id(args.id),
                ]))
            }
        },
    );
    let (visits, told) = (state.clone(), server.clone());
    let _ = server.clone().tool(
        "test_complete_url_elicitation",
        "Completes a visit",
        move |args: Visit, _: Context| {
            visits.visited.set(&args.id);
            told.notify_elicitation_complete(&args.id);
            async move { format!("completed {}", args.id) }
        },
    );
}

/// Whether the client answered the visit, on 2026-07-28, where it is a question.
fn accepted(ctx: &Context, id: &str) -> bool {
    ctx.input_responses()
        .and_then(|responses| responses.member(id)?.member("action"))
        .is_some_and(|action| action.as_str() == "\"accept\"")
}
