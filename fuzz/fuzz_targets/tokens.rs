//! Tokens, key sets and challenges: no input is slow, panics, or is valid without a signature.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpline_auth::claims::Claims;
use mcpline_jose::{Algorithm, JwkSet, UnverifiedJwt, verify};
use mcpline_protocol::Challenge;

fuzz_target!(|data: &[u8]| {
    // A token and a key set, on one line each.
    let text = String::from_utf8_lossy(data);
    let (token, keys) = text.split_once('\n').unwrap_or((&text, ""));
    let keys = JwkSet::parse(keys.to_owned()).unwrap_or_default();
    for key in keys.keys() {
        let written = key.to_json();
        let read = mcpline_jose::Jwk::parse(&written).expect("what was written");
        assert_eq!(read.thumbprint(), key.thumbprint());
    }
    if let Ok(parsed) = UnverifiedJwt::parse(token, &Algorithm::ALL) {
        let _ = (parsed.key_id(), parsed.kind(), parsed.claimed_issuer());
    }
    if let Ok(verified) = verify(token, &keys, &Algorithm::ALL) {
        assert!(!keys.keys().is_empty());
        drop(Claims::read(verified.claims));
    }
    for challenge in Challenge::read(&text) {
        let written = challenge.to_header();
        assert!(!written.bytes().any(|byte| byte.is_ascii_control()));
    }
});
