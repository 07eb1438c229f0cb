//! The time and entropy that protocol logic takes as arguments.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The time on the driver's clock: monotonic, since the first call in the process. It is the runtime's clock, so it
/// stands still where a test has paused that.
pub fn now() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    let now = tokio::time::Instant::now().into_std();
    now.saturating_duration_since(*start)
}

/// Seconds since 1970-01-01 UTC, for times that other processes must be able to compare.
pub fn unix_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Fresh random bytes from the operating system.
///
/// # Panics
///
/// If the operating system has no entropy source: nothing that needs secrecy could work.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system supplies random bytes");
    bytes
}

/// An unguessable token of visible ASCII: 192 random bits, base64url.
pub fn token() -> String {
    URL_SAFE_NO_PAD.encode(random::<24>())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn tokens_are_192_bits_of_which_none_is_fixed() {
        let drawn: Vec<String> = (0..1_000).map(|_| token()).collect();
        let distinct: HashSet<&String> = drawn.iter().collect();
        assert_eq!(distinct.len(), drawn.len());
        let (mut ones, mut zeros) = ([0_u8; 24], [0_u8; 24]);
        for token in &drawn {
            let bits = URL_SAFE_NO_PAD.decode(token).expect("base64url");
            assert_eq!(bits.len(), 24);
            for (at, byte) in bits.iter().enumerate() {
                ones[at] |= byte;
                zeros[at] |= !byte;
            }
        }
        // A bit that is the same in a thousand draws is not random.
        assert_eq!((ones, zeros), ([0xff; 24], [0xff; 24]));
    }
}
