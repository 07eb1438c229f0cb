//! Tools that require a URL elicitation before they do their work.

use std::sync::Arc;

use mcpline::protocol::vocabulary::ElicitParams;
use mcpline::{Context, HandlerError, Server};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::state::State;

#[derive(Deserialize, JsonSchema)]
struct ElicitationId {
    id: String,
}

/// Adds the tools.
pub(crate) fn add(server: &Server, state: &Arc<State>) {
    let elicitations = state.clone();
    let _ = server.clone().tool(
        "test_url_elicitation_required",
        "Needs a visit first",
        move |args: ElicitationId, ctx: Context| {
            let elicitations = elicitations.clone();
            async move {
                if elicitations.completed.is_set(&args.id) || accepted(&ctx, &args.id) {
                    return Ok(format!("authorised {}", args.id));
                }
                let url = format!("https://example.com/authorise?visit={}", args.id);
                let elicitation = ElicitParams::url("Please authorise access", url);
                Err(HandlerError::UrlElicitationRequired(vec![
                    elicitation.with_elicitation_id(args.id),
                ]))
            }
        },
    );
    let (elicitations, notifier) = (state.clone(), server.clone());
    let _ = server.clone().tool(
        "test_complete_url_elicitation",
        "Completes a visit",
        move |args: ElicitationId, _: Context| {
            elicitations.completed.set(&args.id);
            notifier.notify_elicitation_complete(&args.id);
            async move { format!("completed {}", args.id) }
        },
    );
}

/// Whether the client accepted the URL elicitation, which is an input request on 2026-07-28.
fn accepted(ctx: &Context, id: &str) -> bool {
    ctx.input_responses()
        .and_then(|responses| responses.member(id)?.member("action"))
        .is_some_and(|action| action.as_str() == "\"accept\"")
}
