//! Proofs of possession that any process of the service has accepted: a proof that was used at one is refused at the others.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::sharing::{SessionStore, UseOutcome};
use crate::warning_limit::warn_limited;

use super::proof_replay_cache::{ProofDigest, ProofRefusal};

/// How long a request waits for the store. A store answers within milliseconds; one that does not is overloaded or
/// unreachable, and every request with a proof would wait for it.
const STORE_TIMEOUT: Duration = Duration::from_millis(500);

/// The beginning of the keys of proofs. No key of a session has this length and beginning.
const KEY_PREFIX: &str = "proof-";

/// Uses a proof that this process has not accepted before, for all processes. `lifetime` is how long another process might
/// accept it.
///
/// If the store fails, the proof is accepted: otherwise an outage of the store would refuse all requests with proofs. The
/// proof can then be replayed once at each other process.
pub(super) async fn record_shared_use(
    store: &dyn SessionStore,
    proof: &ProofDigest,
    lifetime: Duration,
) -> Result<(), ProofRefusal> {
    let key = format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(proof));
    let recording = store.record_use(&key, lifetime);
    let recorded = tokio::time::timeout(STORE_TIMEOUT, recording).await;
    let error = match recorded {
        Ok(Ok(UseOutcome::First)) => return Ok(()),
        Ok(Ok(UseOutcome::Repeated)) => return Err(ProofRefusal::Replayed),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} ms", STORE_TIMEOUT.as_millis()),
    };
    warn_limited!(
        error,
        "a DPoP proof was accepted without the shared store: each other process may accept it once more"
    );
    Ok(())
}
