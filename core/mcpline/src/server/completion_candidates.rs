//! Completion from a list of candidates.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mcpline_protocol::limits::MAX_INLINE_STEPS;
use mcpline_protocol::rank::{RankedCandidates, rank};
use mcpline_protocol::schema::StepBudget;

use crate::fair_queue::PeerId;
use crate::offload;

use super::registry::Completer;
use super::reply::{CompletionReply, HandlerError, Reply};

/// Answers with the best candidates for the typed text. Long lists are ranked on another thread.
pub(super) async fn complete(
    completer: Arc<Completer>,
    typed: String,
    peer: PeerId,
) -> Result<Reply, HandlerError> {
    let inline = rank_candidates(
        &completer,
        &typed,
        &mut StepBudget::new(MAX_INLINE_STEPS, None),
    );
    let ranked = match inline {
        Some(ranked) => Some(ranked),
        None => {
            let interrupt = Arc::new(AtomicBool::new(false));
            let ranking = offload::compute(peer, interrupt, move |interrupt| {
                let mut budget = StepBudget::new(usize::MAX, Some(interrupt));
                rank_candidates(&completer, &typed, &mut budget)
            });
            ranking.await.flatten()
        }
    };
    let ranked = ranked
        .ok_or_else(|| HandlerError::Internal("the candidates could not be ranked".into()))?;
    Ok(Reply::Completion(CompletionReply {
        values: ranked.values,
        total: Some(ranked.total as u64),
        has_more: Some(ranked.has_more),
    }))
}

fn rank_candidates(
    completer: &Completer,
    typed: &str,
    budget: &mut StepBudget<'_>,
) -> Option<RankedCandidates> {
    match completer {
        Completer::Candidates(candidates) => rank(typed, candidates, budget),
        // A handler answers by itself.
        Completer::Handler(_) => Some(RankedCandidates::default()),
    }
}
