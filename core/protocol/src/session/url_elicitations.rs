//! URL elicitations that were sent to a client, so that the server can announce their completion (2025-11-25,
//! `client/elicitation`, completion notifications).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::incoming_requests::RequestKey;

/// The number of URL elicitations that a session remembers; the oldest are dropped. The completion of a dropped one is
/// not announced, which the specification allows.
const MAX_SENT_URL_ELICITATIONS: usize = 64;

/// The URL elicitations of one session.
#[derive(Debug, Default)]
pub(super) struct SentUrlElicitations(VecDeque<SentUrlElicitation>);

/// One URL elicitation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SentUrlElicitation {
    pub(super) id: String,
    /// The client's request that it belongs to; unknown after a restart.
    #[serde(skip)]
    pub(super) related: Option<RequestKey>,
}

impl SentUrlElicitations {
    pub(super) fn remember(&mut self, id: String, related: Option<RequestKey>) {
        self.forget(&id);
        if self.0.len() >= MAX_SENT_URL_ELICITATIONS {
            self.0.pop_front();
        }
        self.0.push_back(SentUrlElicitation { id, related });
    }

    pub(super) fn forget(&mut self, id: &str) -> Option<SentUrlElicitation> {
        let index = self.0.iter().position(|elicitation| elicitation.id == id)?;
        self.0.remove(index)
    }

    pub(super) fn all(&self) -> Vec<SentUrlElicitation> {
        self.0.iter().cloned().collect()
    }

    pub(super) fn restore(url_elicitations: &[SentUrlElicitation]) -> Self {
        Self(url_elicitations.iter().cloned().collect())
    }
}
