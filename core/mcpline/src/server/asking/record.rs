//! What one call has asked, and what was answered: the record that a replay reads from.

use mcpline_protocol::mrtr::{AskedInputRequest, EarlierResponse};
use mcpline_protocol::wire::Raw;

use crate::server::reply::InputRequest;

use super::{AskMethod, InputResponseCallback};

/// What a call has asked, and what was answered.
#[derive(Default)]
pub(crate) struct InputRecord {
    pub(super) answered: Vec<EarlierResponse>,
    pub(super) pending: Vec<Pending>,
    /// How many questions without a key were asked.
    pub(super) ordinal: u32,
    /// The keys that questions have.
    pub(super) used: Vec<String>,
    pub(super) round: u32,
    /// A flush is on its way: questions asked until then share its round.
    pub(super) flushing: bool,
}

pub(super) struct Pending {
    pub(super) key: String,
    pub(super) method: AskMethod,
    pub(super) params: Option<Raw>,
    pub(super) digest: String,
    pub(super) callback: InputResponseCallback,
}

impl InputRecord {
    /// The record of a handler that runs again with the answers of its first run.
    pub(super) fn replayed(answered: Vec<EarlierResponse>, round: u32) -> Self {
        Self {
            answered,
            round,
            ..Self::default()
        }
    }

    /// How many bytes the parameters of open questions have: what the handler asks may repeat what it was given.
    pub(in crate::server) fn pending_bytes(&self) -> usize {
        let params = self
            .pending
            .iter()
            .filter_map(|asked| asked.params.as_ref());
        params.map(|params| params.as_bytes().len()).sum()
    }

    /// A key that this run has not used: the author's, or the number of the question, numbered from the second use on. A
    /// replay that asks in the same order arrives at the same keys.
    pub(super) fn key_for(&mut self, author: Option<String>) -> String {
        let base = author.unwrap_or_else(|| {
            self.ordinal += 1;
            format!("ask-{}", self.ordinal)
        });
        let mut key = base.clone();
        let mut uses = 1;
        // An author's key may look like one that was numbered.
        while self.used.contains(&key) {
            uses += 1;
            key = format!("{base}#{uses}");
        }
        self.used.push(key.clone());
        key
    }
}

impl Pending {
    pub(super) fn asked(&self) -> AskedInputRequest {
        AskedInputRequest {
            key: self.key.clone(),
            method: self.method.as_str().to_owned(),
            question: self.digest.clone(),
        }
    }

    pub(super) fn request(&self) -> InputRequest {
        InputRequest {
            key: self.key.clone(),
            method: self.method.clone(),
            params: self.params.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_questions_of_a_run_share_a_key() {
        let given = [
            Some("a"),
            None,
            Some("a"),
            Some("a#2"),
            Some("ask-2"),
            None,
            Some("a"),
        ];
        let mut record = InputRecord::default();
        let keys: Vec<String> = given
            .iter()
            .map(|author| record.key_for(author.map(str::to_owned)))
            .collect();
        assert_eq!(
            keys,
            ["a", "ask-1", "a#2", "a#2#2", "ask-2", "ask-2#2", "a#3"]
        );
    }
}
