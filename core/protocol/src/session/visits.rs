//! URLs that a client's user was sent to, so that the client can be told when a visit is over (2025-11-25,
//! `client/elicitation`, completion notifications).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::requests::RequestKey;

/// How many visits of a session are remembered, the oldest forgotten first: a client whose visit is forgotten
/// is not told of its end, which the specification leaves open anyway.
const REMEMBERED: usize = 64;

/// The visits of one session.
#[derive(Debug, Default)]
pub(super) struct Visits(VecDeque<Visit>);

/// One visit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Visit {
    pub(super) id: String,
    /// The request in whose course it was asked for; not known any more after a restart.
    #[serde(skip)]
    pub(super) related: Option<RequestKey>,
}

impl Visits {
    pub(super) fn remember(&mut self, id: String, related: Option<RequestKey>) {
        self.forget(&id);
        if self.0.len() >= REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(Visit { id, related });
    }

    pub(super) fn forget(&mut self, id: &str) -> Option<Visit> {
        let index = self.0.iter().position(|visit| visit.id == id)?;
        self.0.remove(index)
    }

    pub(super) fn all(&self) -> Vec<Visit> {
        self.0.iter().cloned().collect()
    }

    pub(super) fn restore(visits: &[Visit]) -> Self {
        Self(visits.iter().cloned().collect())
    }
}
