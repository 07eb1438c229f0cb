//! The keys that seal `requestState`.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use mcpline_protocol::mrtr::KeyRing;
use mcpline_runtime::clock;

use crate::error::Error;

use super::settings::STATE_SECRETS_VARIABLE;

/// Chooses the configured key ring, or else that of the environment, or else that of all workers, or else a random one of this
/// process.
pub(super) fn choose(given: Option<KeyRing>) -> Result<KeyRing, Error> {
    if let Some(ring) = given {
        return Ok(ring);
    }
    if let Ok(text) = std::env::var(STATE_SECRETS_VARIABLE) {
        return from_text(&text);
    }
    #[cfg(feature = "http")]
    if let Some(worker) = crate::worker_process::WorkerProcess::current() {
        return from_text(&worker.secret);
    }
    KeyRing::new([clock::random::<32>()]).map_err(|error| Error::usage(error.to_string()))
}

/// Parses base64 secrets separated by commas into a key ring.
fn from_text(text: &str) -> Result<KeyRing, Error> {
    state_keys(text.split(','))
        .map_err(|error| Error::usage(format!("{STATE_SECRETS_VARIABLE}: {error}")))
}

/// Creates keys for [`Settings::state_keys`](crate::Settings) from base64 secrets of at least 32 bytes each.
///
/// The first one seals and all of them open: to rotate secrets, put a new one in front while states of the old one are
/// valid.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): there is no secret, or one is not base64 or is too short.
pub fn state_keys<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Result<KeyRing, Error> {
    let decode = |secret: &str| {
        let secret = secret.trim();
        STANDARD
            .decode(secret)
            .or_else(|_| STANDARD_NO_PAD.decode(secret))
            .map_err(|_| Error::usage("a state secret must be base64"))
    };
    let secrets = secrets
        .into_iter()
        .map(decode)
        .collect::<Result<Vec<_>, _>>()?;
    KeyRing::new(secrets).map_err(|error| Error::usage(error.to_string()))
}
