//! Proofs of possession of a client's key (RFC 9449).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use crate::config::Dpop;
use crate::exchange::{IncomingRequest, Refusal};
use crate::keys;
use crate::state::State;

/// Tolerated difference between clocks, in seconds.
const WINDOW: i64 = 60;

/// Returns the thumbprint of the key whose possession the request proves, if it has a proof.
///
/// `url` is the target of the request, `token` the access token that it carries.
pub(crate) fn proven(
    state: &mut State,
    request: &IncomingRequest,
    url: &str,
    token: Option<&str>,
) -> Result<Option<String>, Refusal> {
    if state.config.dpop == Dpop::Off {
        return Ok(None);
    }
    let mut proofs = request.headers.get_all("dpop").iter();
    let Some(proof) = proofs.next() else {
        return match state.config.dpop {
            Dpop::Required => Err(invalid("there is no proof")),
            _ => Ok(None),
        };
    };
    if proofs.next().is_some() {
        return Err(invalid("there is more than one proof"));
    }
    let proof = proof.to_str().map_err(|_| invalid("no JWT"))?;
    let (header, _) = keys::read_unverified(proof).ok_or_else(|| invalid("no JWT"))?;
    let key = &header["jwk"];
    if header["typ"] != "dpop+jwt" {
        return Err(invalid("typ isn't dpop+jwt"));
    }
    let private = ["d", "p", "q", "dp", "dq", "qi", "k"];
    if private.iter().any(|member| !key[*member].is_null()) {
        return Err(invalid("the key isn't only a public one"));
    }
    let (_, claims) = keys::verify(proof, std::slice::from_ref(key)).map_err(invalid)?;
    check_claims(state, request, url, token, &claims)?;
    if state.config.dpop_nonces && !is_nonce(state, &claims["nonce"]) {
        let nonce = state.new_nonce();
        return Err(
            Refusal::new("use_dpop_nonce", "the proof needs a nonce of ours")
                .with_header("DPoP-Nonce", nonce),
        );
    }
    keys::thumbprint(key)
        .map(Some)
        .ok_or_else(|| invalid("the key can't be read"))
}

fn check_claims(
    state: &mut State,
    request: &IncomingRequest,
    url: &str,
    token: Option<&str>,
    claims: &Value,
) -> Result<(), Refusal> {
    if claims["htm"] != request.method.as_str() {
        return Err(invalid("htm is another method"));
    }
    if claims["htu"] != url {
        return Err(invalid(format!("htu is {} and not {url}", claims["htu"])));
    }
    let made = claims["iat"]
        .as_i64()
        .ok_or_else(|| invalid("iat is missing"))?;
    if (state.now() - made).abs() > WINDOW {
        return Err(invalid("iat isn't now"));
    }
    let hash = token.map(|token| URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes())));
    if claims["ath"].as_str() != hash.as_deref() {
        return Err(invalid("ath isn't the token's hash"));
    }
    let id = claims["jti"].as_str().filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| invalid("jti is missing"))?;
    if !state.is_new(format!("proof {id}")) {
        return Err(invalid("the proof was used already"));
    }
    Ok(())
}

fn is_nonce(state: &State, said: &Value) -> bool {
    state.nonces.iter().any(|nonce| *said == nonce.as_str())
}

fn invalid(why: impl Into<String>) -> Refusal {
    Refusal::new("invalid_dpop_proof", why)
}
