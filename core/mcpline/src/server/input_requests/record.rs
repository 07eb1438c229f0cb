//! The input requests and responses of one call, from which a replay is answered.

use mcpline_protocol::mrtr::{EarlierResponse, SentInputRequest};
use mcpline_protocol::wire::Raw;

use crate::server::reply::KeyedInputRequest;

use super::{InputRequestMethod, InputResponseCallback};

/// The input requests of a call and the responses to them.
#[derive(Default)]
pub(crate) struct InputRecord {
    pub(super) answered: Vec<EarlierResponse>,
    pub(super) pending: Vec<Pending>,
    /// Number of input requests without a key.
    pub(super) ordinal: u32,
    /// Keys in use.
    pub(super) used: Vec<String>,
    pub(super) round: u32,
    /// A flush is scheduled: input requests made until then share its round.
    pub(super) flushing: bool,
}

pub(super) struct Pending {
    pub(super) key: String,
    pub(super) method: InputRequestMethod,
    pub(super) params: Option<Raw>,
    pub(super) digest: String,
    pub(super) callback: InputResponseCallback,
}

impl InputRecord {
    /// Returns the record for a handler that runs again with the responses of its first run.
    pub(super) fn for_replay(answered: Vec<EarlierResponse>, round: u32) -> Self {
        Self {
            answered,
            round,
            ..Self::default()
        }
    }

    /// Returns the size of the parameters of pending input requests. They count because they may repeat the call's
    /// arguments.
    pub(in crate::server) fn pending_bytes(&self) -> usize {
        let params = self
            .pending
            .iter()
            .filter_map(|asked| asked.params.as_ref());
        params.map(|params| params.as_bytes().len()).sum()
    }

    /// Returns a key that this run has not used: the handler's, or the number of the input request; from the second use
    /// on with a counter. A replay that makes its input requests in the same order gets the same keys.
    pub(super) fn key_for(&mut self, author: Option<String>) -> String {
        let base = author.unwrap_or_else(|| {
            self.ordinal += 1;
            format!("ask-{}", self.ordinal)
        });
        let mut key = base.clone();
        let mut uses = 1;
        // The handler's own key may look like a numbered one.
        while self.used.contains(&key) {
            uses += 1;
            key = format!("{base}#{uses}");
        }
        self.used.push(key.clone());
        key
    }
}

impl Pending {
    pub(super) fn asked(&self) -> SentInputRequest {
        SentInputRequest {
            key: self.key.clone(),
            method: self.method.as_str().to_owned(),
            request: self.digest.clone(),
        }
    }

    pub(super) fn request(&self) -> KeyedInputRequest {
        KeyedInputRequest {
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
    fn keys_are_unique_within_a_run() {
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
