//! What one call has asked, and what was answered: the record that a replay reads from.

use mcpline_protocol::mrtr::{Answer, Asked};
use mcpline_protocol::wire::Raw;

use crate::server::reply::{AskMethod, InputRequest};

use super::AskSink;

/// What a call has asked, and what was answered.
#[derive(Default)]
pub(crate) struct Book {
    pub(super) answered: Vec<Answer>,
    pub(super) pending: Vec<Pending>,
    /// How many questions without a key were asked.
    pub(super) ordinal: u32,
    /// How often each of the author's keys was used.
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
    pub(super) sink: AskSink,
}

impl Book {
    /// The book of a handler that runs again with the answers of its first run.
    pub(super) fn replayed(answered: Vec<Answer>, round: u32) -> Self {
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

    /// A key that this run has not used: the author's, numbered from the second use on, or the number
    /// of the question. A replay that asks in the same order arrives at the same keys.
    pub(super) fn key_for(&mut self, author: Option<String>) -> String {
        let Some(author) = author else {
            self.ordinal += 1;
            return format!("ask-{}", self.ordinal);
        };
        let uses = self.used.iter().filter(|used| **used == author).count();
        self.used.push(author.clone());
        match uses {
            0 => author,
            uses => format!("{author}#{}", uses + 1),
        }
    }
}

impl Pending {
    pub(super) fn asked(&self) -> Asked {
        Asked {
            key: self.key.clone(),
            method: self.method.as_str().to_owned(),
            question: self.digest.clone(),
        }
    }

    pub(super) fn request(&self) -> InputRequest {
        InputRequest {
            key: self.key.clone(),
            method: self.method,
            params: self.params.clone(),
        }
    }
}
