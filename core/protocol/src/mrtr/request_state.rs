//! The content of `requestState`, and the checks of a retry that presents it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpline_derive::Members;
use serde::Serialize;

use crate::wire::Raw;

use super::seal::{KeyRing, OpenError};

/// The state that a retry needs and a client must not change.
///
/// It is bound to the principal, the method and a digest of the arguments, and short-lived: only the client that
/// received it can present it, only for the request that it came from, and only for a while (2026-07-28,
/// `basic/patterns/mrtr`, server requirement 5).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Members)]
pub struct RequestState {
    /// Digest of the authenticated principal; empty without authentication.
    #[serde(rename = "p", skip_serializing_if = "String::is_empty")]
    pub principal: String,
    /// Method and digest of the parameters, base64url.
    #[serde(rename = "d")]
    pub request: String,
    /// Expiry, in seconds since 1970-01-01 UTC.
    #[serde(rename = "x")]
    pub expires: u64,
    /// The ticket of the suspended handler in the process that sealed this.
    #[serde(rename = "t")]
    pub ticket: String,
    /// The number of rounds so far, including this one.
    #[serde(rename = "r")]
    pub round: u32,
    /// The input requests of this round.
    #[serde(rename = "q", skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<SentInputRequest>,
    /// The input responses of earlier rounds, for a replay in another process.
    #[serde(rename = "a", skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<EarlierResponse>,
    /// The state of the handler's author, if the handler returned its input requests itself.
    #[serde(rename = "s", skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

/// One input request of the round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Members)]
pub struct SentInputRequest {
    /// Its key in `inputRequests`.
    #[serde(rename = "k")]
    pub key: String,
    /// Its method.
    #[serde(rename = "m")]
    pub method: String,
    /// Digest of the input request, base64url; empty if the handler returned its input requests itself.
    #[serde(rename = "q")]
    pub request: String,
}

/// One input request of an earlier round with its response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Members)]
pub struct EarlierResponse {
    /// Its key in `inputRequests`.
    #[serde(rename = "k")]
    pub key: String,
    /// Digest of the input request, base64url; a replay with another input request under this key is an error.
    #[serde(rename = "q")]
    pub request: String,
    /// The client's result.
    #[serde(rename = "a")]
    pub answer: Raw,
}

/// Why a retry's state is rejected. For the log; the client only learns that it was.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The seal could not be opened.
    #[error(transparent)]
    Seal(#[from] OpenError),
    /// The seal is valid but the content isn't: another version wrote it.
    #[error("the request state was written by another version of mcpline")]
    Layout,
    /// It has expired.
    #[error("the request state expired {ago_s} s ago")]
    Expired {
        /// How many seconds ago it expired.
        ago_s: u64,
    },
    /// It belongs to another principal.
    #[error("the request state was issued to another principal")]
    Principal,
    /// It belongs to another request.
    #[error("the request state was issued for another request")]
    Request,
}

impl RequestState {
    /// Seals this state. `nonce` must be fresh random bytes.
    pub fn seal(&self, ring: &KeyRing, nonce: [u8; 24]) -> String {
        // Strings and valid JSON always serialize.
        let plain = serde_json::to_vec(self).unwrap_or_default();
        ring.seal(&plain, nonce)
    }

    /// Opens a sealed state and checks that it was issued to `principal` for the request with the digest `request`, and
    /// has not expired at `now` (seconds since 1970-01-01 UTC).
    ///
    /// # Errors
    ///
    /// [`StateError`], for the log and not for the client.
    pub fn open(
        ring: &KeyRing,
        sealed: &str,
        principal: &str,
        request: &[u8; 32],
        now: u64,
    ) -> Result<Self, StateError> {
        let plain = ring.open(sealed)?;
        let state: Self = serde_json::from_slice(&plain).map_err(|_| StateError::Layout)?;
        if state.principal != principal {
            return Err(StateError::Principal);
        }
        if state.request != Self::digest_text(request) {
            return Err(StateError::Request);
        }
        if state.expires < now {
            return Err(StateError::Expired {
                ago_s: now - state.expires,
            });
        }
        Ok(state)
    }

    /// The form of a digest inside a state.
    pub fn digest_text(digest: &[u8; 32]) -> String {
        URL_SAFE_NO_PAD.encode(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> RequestState {
        RequestState {
            principal: "alice".into(),
            request: RequestState::digest_text(&[3; 32]),
            expires: 1_000,
            ticket: "t".into(),
            round: 1,
            asked: vec![SentInputRequest {
                key: "name".into(),
                method: "elicitation/create".into(),
                request: "q".into(),
            }],
            answers: Vec::new(),
            author: Some("mine".into()),
        }
    }

    fn ring() -> KeyRing {
        KeyRing::new([[9_u8; 32]]).expect("long enough")
    }

    #[test]
    fn state_round_trips() {
        let sealed = state().seal(&ring(), [1; 24]);
        assert_eq!(
            RequestState::open(&ring(), &sealed, "alice", &[3; 32], 999),
            Ok(state())
        );
    }

    #[test]
    fn a_state_is_bound_to_principal_request_and_time() {
        let sealed = state().seal(&ring(), [1; 24]);
        let open = |who, request, now| RequestState::open(&ring(), &sealed, who, request, now);
        assert_eq!(open("bob", &[3; 32], 999), Err(StateError::Principal));
        assert_eq!(open("alice", &[4; 32], 999), Err(StateError::Request));
        assert_eq!(
            open("alice", &[3; 32], 1_010),
            Err(StateError::Expired { ago_s: 10 })
        );
    }
}
