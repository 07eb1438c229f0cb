//! The two things that protocol logic takes as arguments: the time and entropy.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The time on the driver's clock: monotonic, since the process first asked. It is the runtime's clock, so that it
/// stands still where a test has paused that.
pub(crate) fn now() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    let now = tokio::time::Instant::now().into_std();
    now.saturating_duration_since(*start)
}

/// Seconds since 1970-01-01 UTC, for what other processes must be able to compare.
pub(crate) fn unix_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Fresh random bytes from the operating system.
///
/// # Panics
///
/// If the operating system has no entropy source: nothing that needs secrecy could work.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system supplies random bytes");
    bytes
}

/// An unguessable token of visible ASCII: 192 random bits, base64url.
pub(crate) fn token() -> String {
    URL_SAFE_NO_PAD.encode(random::<24>())
}
