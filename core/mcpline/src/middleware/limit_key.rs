//! What limits count requests by.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;

use super::MiddlewareRequest;

/// What a limit counts requests by. Several keys together count by their combination, and none counts all requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitKey {
    /// The client: the authenticated caller, else the address of its requests (for IPv6 its network of 64 bits), else its
    /// connection. Clients of a mount that does not provide addresses count as one.
    Client,
    /// The session, over HTTP on handshake revisions; other requests count by their client.
    Session,
    /// The method and the tool, prompt or resource.
    Target,
}

impl LimitKey {
    /// All keys.
    pub const ALL: &'static [Self] = &[Self::Client, Self::Session, Self::Target];

    /// Returns the name: `client`, `session` or `target`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Session => "session",
            Self::Target => "target",
        }
    }
}

/// Turns requests into numbers by their keys. Only the number is kept, so that names which clients choose take no memory. Two
/// clients with the same number would share a limit. Clients cannot cause this, because the seed of the hash is secret.
#[derive(Debug, Default)]
pub(super) struct LimitKeys {
    keys: Vec<LimitKey>,
    seed: RandomState,
}

impl LimitKeys {
    pub(super) fn new(keys: impl IntoIterator<Item = LimitKey>) -> Self {
        Self {
            keys: keys.into_iter().collect(),
            seed: RandomState::default(),
        }
    }

    pub(super) fn number_of(&self, request: &MiddlewareRequest) -> u64 {
        let parts = self.keys.iter().map(|key| match key {
            LimitKey::Client => ("", request.client()),
            LimitKey::Session => match request.session_id() {
                Some(session) => ("session", session),
                None => ("client", request.client()),
            },
            LimitKey::Target => (request.method(), request.name().unwrap_or_default()),
        });
        self.seed.hash_one(parts.collect::<Vec<_>>())
    }
}
