//! What limits count requests by.

use std::hash::BuildHasher;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use foldhash::quality::RandomState;
use sha2::{Digest as _, Sha256};

use super::MiddlewareRequest;

/// The beginning of the names of shared buckets. No key of a session or a proof has this length and beginning.
const NAME_PREFIX: &str = "rate-";

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
        self.seed.hash_one(self.parts(request).collect::<Vec<_>>())
    }

    /// Returns the name of the bucket of a request, which is the same in all processes: a digest of the limit's name and the
    /// keys.
    pub(super) fn shared_name(&self, limit: &str, request: &MiddlewareRequest) -> String {
        let mut hash = Sha256::new();
        hash.update(b"mcpline rate limit\0");
        let parts = self.parts(request).flat_map(|(kind, value)| [kind, value]);
        for part in [limit].into_iter().chain(parts) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        format!("{NAME_PREFIX}{}", URL_SAFE_NO_PAD.encode(hash.finalize()))
    }

    /// Whether a request counts by its connection, which no other process knows.
    pub(super) fn have_connection(&self, request: &MiddlewareRequest) -> bool {
        request.is_client_a_connection()
            && self.keys.iter().any(|key| match key {
                LimitKey::Client => true,
                LimitKey::Session => request.session_id().is_none(),
                LimitKey::Target => false,
            })
    }

    fn parts<'r>(
        &self,
        request: &'r MiddlewareRequest,
    ) -> impl Iterator<Item = (&'r str, &'r str)> {
        self.keys.iter().map(|key| match key {
            LimitKey::Client => ("", request.client()),
            LimitKey::Session => match request.session_id() {
                Some(session) => ("session", session),
                None => ("client", request.client()),
            },
            LimitKey::Target => (request.method(), request.name().unwrap_or_default()),
        })
    }
}
